//! Ledger that a person names: by the ledger's own name, by the id of its owner, or by the owner's
//! name, where one merchant or recipient has it.

use actors::engine::{FoundKind, SoughtValue};
use derived::names::HOUSE;
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use wire::case_folding::search_key;

use crate::books::find;
use crate::search::ids_of;
use crate::{Desk, merchants};
use web::views::ledger::{ledger_name, owner_name};
use web::views::recipient::find_recipient;
use web::{Result, not_found, refused, single};

/// Registrations that are read for a name.
const READ_MAX: usize = 200;
/// Owners that a refusal names.
const NAMED_MAX: usize = 5;

/// The ledger of `M-…`, `R-…`, `P-…` or `P-house`, of the id of a merchant or recipient, or of the
/// one merchant or recipient with this name: the whole name, else beginnings of its words. `field`
/// has the text. Errors: 404 for an id that nobody has; `unknown` or `ambiguous` for a name, the
/// latter also where there are too many to look at all.
pub fn named_ledger(desk: &Desk, field: &'static str, text: &str) -> Result<LedgerId> {
    let all = OwnersSought { said: "lojista ou recebedor", kinds: &KINDS, group: None };
    named_among(desk, field, text, &all)
}

const KINDS: [FoundKind; 2] = [FoundKind::Merchant, FoundKind::Recipient];

/// Owners among whom one is named.
struct OwnersSought {
    /// What they are called.
    said: &'static str,
    /// Which they are. Both stand for all ledgers.
    kinds: &'static [FoundKind],
    /// The group among whose owners a name is looked for.
    group: Option<GroupNumber>,
}

impl OwnersSought {
    fn has(&self, ledger: &LedgerId) -> bool {
        match ledger {
            LedgerId::Merchant(_) => self.kinds.contains(&FoundKind::Merchant),
            LedgerId::Recipient(..) => self.kinds.contains(&FoundKind::Recipient),
            LedgerId::Platform(_) | LedgerId::System => self.kinds == KINDS,
        }
    }
}

/// As [`named_ledger`], among the ledgers of some owners.
fn named_among(desk: &Desk, field: &'static str, text: &str, among: &OwnersSought) -> Result<LedgerId> {
    let text = text.trim();
    if let Ok(ledger) = find(desk, text) {
        return Some(ledger).filter(|ledger| among.has(ledger)).ok_or_else(not_found);
    }
    if let Some(id) = ObjectId::parse(text) {
        return of_id(desk, id).filter(|ledger| among.has(ledger)).ok_or_else(not_found);
    }
    if text.split_once('-').is_some_and(|(kind, id)| kind.len() == 1 && ObjectId::parse(id).is_some()) {
        return Err(not_found());
    }
    let (found, are_all) = of_name(desk, text, among)?;
    let (code, message) = match &found[..] {
        [one] if are_all => return Ok(*one),
        [] if !are_all => ("ambiguous", format!("{field} é um nome de muitos: use o id")),
        [] => ("unknown", format!("{field} não é o nome nem o id de um {}", among.said)),
        [first, ..] => {
            let names = found.iter().take(NAMED_MAX).map(|ledger| ledger_name(&desk.engine, *ledger));
            let name = owner_name(&desk.engine, *first).unwrap_or_default();
            let names = names.collect::<Vec<_>>().join(", ");
            ("ambiguous", format!("{field} é de mais de um ({name}, …): escolha entre {names}"))
        }
    };
    Err(refused(field, code, message))
}

fn of_id(desk: &Desk, id: ObjectId) -> Option<LedgerId> {
    let merchant = merchants::find(desk, &id.txid()).ok().map(LedgerId::Merchant);
    merchant.or_else(|| find_recipient(&desk.engine, id).map(|(ledger, _)| ledger))
}

/// As [`named_ledger`], for what moves money: a name counts where it is the whole name.
pub fn exactly_named_ledger(desk: &Desk, field: &'static str, text: &str) -> Result<LedgerId> {
    let ledger = named_ledger(desk, field, text)?;
    let wanted = search_key(text.trim());
    let name = owner_name(&desk.engine, ledger).unwrap_or_default();
    let is_id = find(desk, text.trim()).is_ok() || ObjectId::parse(text.trim()).is_some();
    if is_id || search_key(&name) == wanted {
        return Ok(ledger);
    }
    Err(refused(field, "unknown", format!("{field} deve ser o nome inteiro, como {name}")))
}

/// The merchant and the recipient that a filter asks for, by `merchant_id` and `recipient_id`, or
/// by `merchant` and `recipient`, which take names too. The name of a recipient is looked for among
/// those of the merchant. Errors: as those of [`named_ledger`]; 400 where one is asked for in both
/// ways.
pub fn filtered_owners(desk: &Desk, pairs: &[(String, String)]) -> Result<(Option<GroupNumber>, Option<LedgerId>)> {
    let one = |named: &'static str, by_id: &'static str, among: OwnersSought| {
        let id = single(pairs, by_id)?.map(|id| {
            let id = ObjectId::parse(id).and_then(|id| of_id(desk, id)).filter(|ledger| among.has(ledger));
            id.ok_or_else(not_found)
        });
        let name = single(pairs, named)?;
        if id.is_some() && name.is_some() {
            return Err(refused(named, "twice", format!("{named} e {by_id} são o mesmo filtro")));
        }
        id.or_else(|| name.map(|name| named_among(desk, named, name, &among))).transpose()
    };
    let merchants = OwnersSought { said: "lojista", kinds: &[FoundKind::Merchant], group: None };
    let group = one("merchant", "merchant_id", merchants)?.and_then(LedgerId::group);
    let recipients = OwnersSought { said: "recebedor", kinds: &[FoundKind::Recipient], group };
    Ok((group, one("recipient", "recipient_id", recipients)?))
}

/// The merchants and recipients with a name; those with just this name where there are any. The
/// flag is false where not all that have it were looked at.
fn of_name(desk: &Desk, text: &str, among: &OwnersSought) -> Result<(Vec<LedgerId>, bool)> {
    let words = if text.contains(char::is_alphabetic) { desk.engine.name_beginnings(text) } else { Vec::new() };
    let (mut found, mut are_all) = (Vec::new(), true);
    if words.is_empty() {
        return Ok((found, are_all));
    }
    let registered = desk.engine.search(&[SoughtValue::Personal(words)], |_| READ_MAX)?;
    for (kind, records) in registered {
        if among.kinds.contains(&kind) {
            are_all &= !records.is_more && records.total <= records.newest.len();
            let records = records.newest.iter();
            let ids = records.flat_map(|(_, record)| ids_of(&desk.engine, kind, record));
            let ledgers = ids.filter_map(|id| of_id(desk, id));
            found.extend(ledgers.filter(|ledger| among.group.is_none_or(|group| ledger.group() == Some(group))));
        }
    }
    found.sort_unstable();
    found.dedup();
    let wanted = search_key(text);
    let has_just_it =
        |ledger: &LedgerId| owner_name(&desk.engine, *ledger).is_some_and(|name| search_key(&name) == wanted);
    let just: Vec<_> = found.iter().copied().filter(has_just_it).collect();
    Ok((if just.is_empty() { found } else { just }, are_all))
}

/// The outside name of the ledger that a person names: also `P-all` and the words `Plataforma` for
/// the whole platform and `Casa` for the house.
pub fn outside_name(desk: &Desk, field: &'static str, text: &str) -> Result<String> {
    match search_key(text.trim()).as_str() {
        "p-all" | "plataforma" => Ok(books::export::PLATFORM.to_owned()),
        "casa" => Ok(HOUSE.to_owned()),
        _ => named_ledger(desk, field, text).map(|ledger| ledger_name(&desk.engine, ledger)),
    }
}
