//! Outside names of ledgers, `M-…`, `R-…`, `P-…` and `P-house`, and the names of their owners.

use actors::engine::{Engine, MerchantRow};
use derived::names::HOUSE;
use ledger::{GroupNumber, LedgerId, MerchantProfile, ObjectId, Sealed, SealedFor};

use crate::views::recipient::{find_recipient, open, recipient_id};

/// The outside name of a ledger.
pub fn ledger_name(engine: &Engine, ledger: LedgerId) -> String {
    let merchant = ledger.group().and_then(|group| engine.glance(group, |row| row.id));
    let uuid = |id: Option<ObjectId>| id.unwrap_or_default().uuid();
    match ledger {
        LedgerId::Merchant(_) => format!("M-{}", uuid(merchant)),
        LedgerId::Platform(_) => format!("P-{}", uuid(merchant)),
        LedgerId::Recipient(..) => format!("R-{}", uuid(recipient_id(engine, ledger))),
        LedgerId::System => HOUSE.to_owned(),
    }
}

/// The profile of a group's merchant; empty when it was erased.
pub fn merchant_profile(engine: &Engine, group: GroupNumber) -> MerchantProfile {
    opened_profile(engine, group, |row| row.profiles.current())
}

/// The profile of a group's merchant as of the merchant's Record of an ordinal; empty when it was
/// erased.
pub fn merchant_profile_at(engine: &Engine, group: GroupNumber, ordinal: u64) -> MerchantProfile {
    opened_profile(engine, group, |row| row.profiles.at(ordinal))
}

fn opened_profile(
    engine: &Engine,
    group: GroupNumber,
    version: impl FnOnce(&MerchantRow) -> Option<&Sealed>,
) -> MerchantProfile {
    let sealed = engine.merchant(group, |row| version(row).cloned()).flatten();
    let profile = sealed.and_then(|sealed| engine.keyring().open_value(SealedFor::merchant(group), &sealed));
    profile.unwrap_or_default()
}

/// Name and document (CPF or CNPJ, unmasked) of the merchant or recipient whose ledger it is; empty
/// of the platform's and the house's ledgers, and where the personal data was erased.
pub fn owner(engine: &Engine, ledger: LedgerId) -> (String, String) {
    match ledger {
        LedgerId::Merchant(group) => {
            let MerchantProfile { name, document, .. } = merchant_profile(engine, group);
            (name, document)
        }
        LedgerId::Recipient(..) => {
            let found = recipient_id(engine, ledger).and_then(|id| find_recipient(engine, id));
            let profile = found.map(|(_, row)| open(engine, &row, row.profiles.current()));
            profile.map(|profile| (profile.name, profile.document)).unwrap_or_default()
        }
        LedgerId::Platform(_) | LedgerId::System => Default::default(),
    }
}

/// The name of [`owner`]; `None` where it is empty.
pub fn owner_name(engine: &Engine, ledger: LedgerId) -> Option<String> {
    Some(owner(engine, ledger).0).filter(|name| !name.is_empty())
}
