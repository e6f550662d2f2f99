//! Field of a form that names a ledger: it offers merchants and recipients by their names, and
//! takes also the own name of a ledger or an id.

use std::collections::BTreeMap;

use ledger::id::{LedgerId, RecipientNumber};
use maud::{Markup, html};
use wire::case_folding::search_key;

use crate::{Visit, Word, show, words};
use ops::Desk;
use ops::merchants::listed;
use web::Page;
use web::views::ledger::{ledger_name, owner_name};

/// Merchants, and recipients, that a field offers at most; it takes the others too.
const OFFERED_MAX: u64 = 20;

/// Whose ledgers a field offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerChoice {
    /// Of merchants.
    Merchants,
    /// Of recipients.
    Recipients,
    /// Of merchants and recipients.
    Owners,
    /// Of these, and of the platform.
    All,
}

/// A field of a form. Its id on the page is `id`, and its name in the form `name`.
pub(crate) struct LedgerField<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub label: Word,
    pub offered: LedgerChoice,
    pub is_required: bool,
    pub value: &'a str,
}

impl LedgerField<'_> {
    /// The field with its label and what it offers.
    pub(crate) fn show(&self, desk: &Desk, visit: &Visit) -> Markup {
        let Self { id, name, label, offered, is_required, value } = *self;
        let options = options(desk, visit, offered);
        let chosen = options.iter().find(|(ledger, ..)| ledger == value);
        let value = chosen.map_or(value, |(_, value, _)| value);
        let list = format!("{id}-names");
        html! {
            label for=(id) { (visit.say(label)) }
            input id=(id) name=(name) maxlength="200" list=(list) autocomplete="off" spellcheck="false"
                required[is_required] value=(value);
            datalist id=(list) { @for (_, value, about) in &options { option value=(value) { (about) } } }
            p.dim { (visit.say(words::NAME_OR_ID)) }
        }
    }
}

/// A ledger that a field offers: its name, the text of the field, and what is said of it.
type OfferedLedger = (String, String, String);

fn options(desk: &Desk, visit: &Visit, offered: LedgerChoice) -> Vec<OfferedLedger> {
    let engine = &desk.engine;
    let groups = match visit.scope.group() {
        Some(group) => vec![group],
        None => listed(desk, Page { page: 1, per_page: OFFERED_MAX }).1,
    };
    let recipients = groups.iter().filter(|_| offered != LedgerChoice::Merchants).flat_map(|group| {
        let count = engine.merchant(*group, |row| row.recipients.len() as u32).unwrap_or_default();
        (1..=count).map(move |number| LedgerId::Recipient(*group, RecipientNumber(number)))
    });
    let merchants = groups.iter().filter(|_| offered != LedgerChoice::Recipients);
    let merchants = merchants.map(|group| LedgerId::Merchant(*group));
    let ledgers = merchants.chain(recipients.take(OFFERED_MAX as usize));
    let named: Vec<_> = ledgers.filter_map(|ledger| Some((ledger, owner_name(engine, ledger)?))).collect();
    let mut holders: BTreeMap<String, usize> = BTreeMap::new();
    named.iter().for_each(|(_, name)| *holders.entry(search_key(name)).or_default() += 1);
    let platform = [("P-all", "Plataforma", words::PLATFORM), ("P-house", "Casa", words::HOUSE)];
    let platform = platform.into_iter().filter(|_| offered == LedgerChoice::All);
    let platform = platform.map(|(ledger, name, word)| [ledger, name, visit.say(word)].map(str::to_owned).into());
    let owners = named.into_iter().map(|(ledger, name)| {
        let id = ledger_name(engine, ledger);
        let of = ledger.group().filter(|_| matches!(ledger, LedgerId::Recipient(..)));
        let merchant = of.map(|group| show::owner_name(engine, visit.language, LedgerId::Merchant(group)));
        let kind = if of.is_some() { words::RECIPIENT } else { words::MERCHANT };
        let about = [Some(visit.say(kind).to_owned()), merchant].into_iter().flatten().collect::<Vec<_>>().join(" · ");
        // A name that several have is replaced by the id.
        match holders.get(&search_key(&name)) {
            Some(1) => (id, name, about),
            _ => (id.clone(), id, format!("{name} · {about}")),
        }
    });
    platform.chain(owners).collect()
}
