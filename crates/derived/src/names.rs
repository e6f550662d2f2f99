//! Outside names of ledgers (`M-…`, `R-…`, `P-…`, `P-house`), learned while the journal is read
//! from its beginning.

use std::collections::HashMap;

use ledger::{Event, LedgerId, ObjectId, Record};

/// The outside name of the house ledger.
pub const HOUSE: &str = "P-house";

/// The ids of merchants and recipients, each under its own ledger.
#[derive(Debug, Default)]
pub struct Names(HashMap<LedgerId, ObjectId>);

impl Names {
    /// The merchants and recipients that a Record opens, each with its id.
    pub fn opened_by(record: &Record) -> impl Iterator<Item = (LedgerId, ObjectId)> {
        let group = record.owner.group();
        record.events.iter().filter_map(move |event| match event {
            Event::MerchantOpened { id, .. } => Some((LedgerId::Merchant(group?), *id)),
            Event::RecipientRegistered { number, id, .. } => Some((LedgerId::Recipient(group?, *number), *id)),
            _ => None,
        })
    }

    /// Takes up the names of a Record.
    pub fn learn(&mut self, record: &Record) {
        self.0.extend(Self::opened_by(record));
    }

    /// Takes up the id of a merchant or a recipient.
    pub fn insert(&mut self, ledger: LedgerId, id: ObjectId) {
        self.0.insert(ledger, id);
    }

    /// Whether a merchant or a recipient has a name.
    pub fn knows(&self, ledger: LedgerId) -> bool {
        self.0.contains_key(&ledger)
    }

    /// The outside name of a ledger, or words for one that nothing named yet.
    pub fn of(&self, ledger: LedgerId) -> String {
        let id = |ledger| self.0.get(&ledger).map(|id| id.uuid());
        match ledger {
            LedgerId::System => HOUSE.to_owned(),
            LedgerId::Merchant(group) => {
                id(ledger).map_or(format!("the merchant of group {}", group.0), |id| format!("M-{id}"))
            }
            LedgerId::Recipient(group, number) => {
                id(ledger).map_or(format!("recipient {} of group {}", number.0, group.0), |id| format!("R-{id}"))
            }
            LedgerId::Platform(group) => id(LedgerId::Merchant(group))
                .map_or(format!("the platform's shard of group {}", group.0), |id| format!("P-{id}")),
        }
    }
}
