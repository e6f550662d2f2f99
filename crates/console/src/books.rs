//! Books: the journal by blocks, one Record with its block, and one ledger with its accounts and
//! entries.

use actors::engine::Listed;
use ledger::event::ReturnEntry;
use ledger::{Balance, Cashout, Event, Record};
use maud::{Markup, html};
use store::Sequence;
use wire::cut_text::{cut_name, named_record, record_name};

use crate::form::optional;
use crate::paging::{self, part};
use crate::records::{block_card, block_records, cut_link, facts_of, record_link};
use crate::show::Facts;
use crate::table::Table;
use crate::{
    PageRequest, Screen, Section, Visit, field_changes, pager, pager_named, part_named, show, wire_words, words,
};
use ops::Desk;
use ops::audited_changes::changes;
use ops::books;
use web::cut::requested_before;
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::views::ledger::ledger_name;
use web::{Result, not_found, query};

/// Postings of a Record on a page.
const POSTINGS_A_PAGE: u64 = 120;
/// Accounts of a ledger on a page.
const ACCOUNTS_A_PAGE: u64 = 50;
/// Postings of a ledger's entries on a page; the page of a Record has all of it.
const POSTINGS_OF_ENTRIES_MAX: usize = 100;
/// Blocks of the journal on a page.
const BLOCKS_A_PAGE: usize = 10;
/// Entries of a ledger on a page.
const ENTRIES_A_PAGE: u64 = 20;

/// The page of a Record.
pub(crate) async fn record(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id: name, parts } = &request;
    let at = named_record(name).ok_or_else(not_found)?;
    let block = desk.engine.block(at)?.ok_or_else(not_found)?;
    let record = desk.engine.record(at)?;
    visit.sees(record.owner.group())?;
    let owner = ledger_name(&desk.engine, record.owner);
    let by = match (&record.operator, record.api_key) {
        (Some(name), _) => html! { (name) },
        (None, Some(key)) => html! { (visit.say(words::API_KEY)) " " code { (key.uuid()) } },
        (None, None) => html! { (visit.say(words::THE_SERVICE)) },
    };
    let mut about = Facts::of(visit);
    about
        .add(words::EVENTS, html! { (facts_of(visit.language, &record)) })
        .add(words::OWNER, ledger_link(desk, visit, &record, &owner))
        .add(words::TOOK_EFFECT, show::moment(visit.language, record.takes_effect_at()))
        .add(words::WHO, by);
    say_of_operators(&mut about, desk, &record)?;
    let page = part_named(&query(parts)?, "postings", POSTINGS_A_PAGE)?;
    let changes = changes(desk, at, &record);
    let postings = show::by_ledger(&record.entries);
    let body = html! {
        section.card aria-label=(visit.say(words::RECORD)) { (about.shown()) }
        @if !changes.is_empty() { (visit.card("changes", words::FIELD_CHANGES, field_changes::lines(visit, &changes))) }
        (visit.card("entries", words::ENTRIES, html! {
            @if postings.is_empty() { p.dim { (visit.say(words::OPENED_WITHOUT_MONEY)) } }
            (show::t_accounts(&desk.engine, visit.language, &postings, paging::range(postings.len(), page)))
            (pager_named(visit, parts, "postings", page, postings.len() as u64))
        }))
        (block_card(visit, &block, &html! {}))
    };
    Ok(Screen { section: Section::Journal, title: format!("{} {}", visit.say(words::RECORD), record_name(at)), body })
}

/// What operators said of the entry, or of the closing of a month, that a Record is about; why its
/// cashout failed.
fn say_of_operators(about: &mut Facts<'_>, desk: &Desk, record: &Record) -> Result<()> {
    for event in &record.events {
        match event {
            Event::HouseEntryRequested { id, .. }
            | Event::HouseEntryApproved { id, .. }
            | Event::HouseEntryRejected { id, .. }
            | Event::AdjustmentRequested { id, .. }
            | Event::AdjustmentRejected { id, .. }
            | Event::AdjustmentCreated { id, .. }
            | Event::WriteOffRequested { id, .. }
            | Event::WriteOffRejected { id, .. }
            | Event::WithdrawalReturnRequested { id, .. }
            | Event::WithdrawalReturnRejected { id, .. }
            | Event::WithdrawalReturned { entry: Some(ReturnEntry { id, .. }), .. }
            | Event::DisputeReversed { entry: Some(ReturnEntry { id, .. }), .. }
            | Event::DeficitWrittenOff { id, .. }
            | Event::ClawbackWrittenOff { id, .. } => {
                if let Some(entry) = OperatorEntry::find(&desk.engine, *id)? {
                    say_entry(about, &HouseEntryView::of_any(&desk.engine, entry));
                }
            }
            Event::CashoutCreated { id, .. } | Event::CashoutFailed { id, .. } | Event::CashoutReturned { id, .. } => {
                let cashout: Cashout = desk.engine.known_object(*id)?;
                let (by, notes) = cashout.rejection().unzip();
                about
                    .word(words::REJECTED_BY, by.map(|by| wire_words::REJECTED_BY.of(by.into())))
                    .text(words::NOTES, notes.flatten());
            }
            Event::PeriodCloseRequested { month } | Event::PeriodClosed { month, .. } => {
                about.add(words::MONTH, html! { a href={"/console/periods/" (month)} { (month) } });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds an entry of an operator: what was said of it, who asked for it, and who decided.
fn say_entry(about: &mut Facts<'_>, entry: &HouseEntryView) {
    let decided = if entry.status == "rejected" { words::REJECTED_BY } else { words::APPROVED_BY };
    about
        .account(words::DEBIT, &*entry.debit)
        .account(words::CREDIT, &*entry.credit)
        .money(words::AMOUNT, entry.amount)
        .text(words::NOTES, &*entry.reason)
        .text(words::REFERENCE, &*entry.reference)
        .text(words::ASKED_BY, &*entry.requested_by)
        .code(words::WITHDRAWAL, entry.withdrawal.as_deref())
        .text(decided, entry.decided_by.as_deref())
        .text(words::REJECTED_WHY, entry.notes.as_deref());
}

fn ledger_link(desk: &Desk, visit: &Visit, record: &Record, owner: &str) -> Markup {
    let name = show::owner_name(&desk.engine, visit.language, record.owner);
    html! { a href={"/console/ledgers/" (owner)} { bdi { (name) } } }
}

/// The page of a ledger: its accounts, and its entries, newest first.
pub(crate) async fn ledger(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id: name, parts } = &request;
    let ledger = books::find(desk, name)?;
    visit.sees(ledger.group())?;
    let given: Vec<_> = query(parts)?.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let (page, cut) = (part(&given, ENTRIES_A_PAGE)?, books::requested_cut(desk, &given)?);
    let balances = match &cut {
        Some(cut) => desk.engine.ledger_as_of(ledger, cut)?,
        None => desk.engine.accounts(ledger).await?,
    };
    let partition = desk.engine.position_of(ledger, Sequence::FIRST).partition;
    let through = cut.as_ref().map_or(Sequence(u64::MAX), |cut| cut.of(partition));
    let Listed { total, items } = desk.engine.entries_through(ledger, through, page.skip(), page.count())?;
    let records = items.collect::<Result<Vec<_>, _>>()?;
    let title = format!("{} · {}", visit.say(words::LEDGER), show::owner_name(&desk.engine, visit.language, ledger));
    let of_accounts = part_named(&given, "accounts", ACCOUNTS_A_PAGE)?;
    let (count, mut sum) = (balances.len() as u64, Balance::default());
    balances.iter().for_each(|(_, balance)| sum.add(*balance));
    let accounts =
        balances.iter().skip(of_accounts.skip() as usize).take(of_accounts.count()).map(|(account, balance)| {
            let name = account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(&desk.engine, ledger));
            (show::account_named(visit.language, &name), *balance)
        });
    let mut room = POSTINGS_OF_ENTRIES_MAX;
    let entries: Vec<_> = records
        .iter()
        .map(|(at, record)| {
            let own: Vec<_> = record.entries_of(ledger).cloned().collect();
            (at, record, show::entries(&desk.engine, visit.language, &own, &mut room))
        })
        .collect();
    let body = html! {
        p { code { (name) } @if let Some(cut) = &cut { " · " (visit.say(words::THROUGH_RECORD)) " " (cut_link(visit.language, cut)) } }
        (day_form(visit, &given, &[])?)
        (visit.card("accounts", words::BALANCE, html! {
            (balance_table_of(visit, accounts.collect(), sum))
            (pager_named(visit, parts, "accounts", of_accounts, count))
        }))
        (visit.card("entries", words::ENTRIES, html! {
            @if entries.is_empty() { p.dim { (visit.say(words::NOTHING)) } }
            @for (at, record, shown) in &entries {
                h3 {
                    (show::moment(visit.language, record.takes_effect_at())) " " (facts_of(visit.language, record)) " "
                    span.aside { "(" (record_link(visit.language, **at)) ")" }
                }
                (shown)
            }
            (pager(visit, parts, page, total))
        }))
    };
    Ok(Screen { section: Section::Journal, title, body })
}

/// The form that asks for the books of a day, with the parameters that it keeps.
pub(crate) fn day_form(visit: &Visit, given: &[(String, String)], preserved: &[&'static str]) -> Result<Markup> {
    let date = optional(given, "date")?;
    Ok(html! {
        form.filters {
            (visit.scope.field())
            @for name in preserved {
                @if let Some(value) = optional(given, name)? { input type="hidden" name=(name) value=(value); }
            }
            div {
                label for="date" { (visit.say(words::AT_END_OF)) }
                input id="date" type="date" name="date" value=[date];
            }
            button type="submit" { (visit.say(words::SHOW)) }
        }
    })
}

/// Accounts with the sums of both sides and the balance.
pub(crate) fn balance_table(visit: &Visit, rows: Vec<(Markup, Balance)>) -> Markup {
    let mut sum = Balance::default();
    rows.iter().for_each(|(_, balance)| sum.add(*balance));
    balance_table_of(visit, rows, sum)
}

/// Some of the accounts with the sums of both sides and the balance, and the sums of all accounts.
fn balance_table_of(visit: &Visit, rows: Vec<(Markup, Balance)>, sum: Balance) -> Markup {
    let column = |centavos| show::column(visit.language, centavos);
    let sums = [column(sum.debits), column(sum.credits), show::money(visit.language, sum.net())];
    Table::of(visit.language, words::TRIAL_BALANCE, &rows)
        .text(words::ACCOUNT, |(name, _)| name)
        .amount(words::DEBIT, |(_, balance)| column(balance.debits))
        .amount(words::CREDIT, |(_, balance)| column(balance.credits))
        .amount(words::BALANCE, |(_, balance)| column(balance.net()))
        .sums(sums)
        .shown()
}

/// The journal: its newest blocks, or those before a Record.
pub(crate) async fn journal(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.whole()?;
    let pairs = query(parts)?;
    let is_later = pairs.iter().any(|(name, _)| name == "before");
    let through = requested_before(&pairs, &desk.engine.published())?;
    let (found, rest) = desk.engine.blocks_back(&through, BLOCKS_A_PAGE)?;
    let mut blocks = Vec::new();
    for block in found {
        let records = block_records(desk, visit, &block)?;
        blocks.push((block, records));
    }
    let go_on_before = (!rest.is_empty()).then(|| cut_name(&rest.next()));
    let body = html! {
        @if blocks.is_empty() { p.dim { (visit.say(words::NOTHING)) } }
        @for (block, records) in &blocks { (block_card(visit, block, records)) }
        p.pager {
            @if is_later { a href="/console/journal" { "← " (visit.say(words::NEWEST)) } }
            " "
            @if let Some(before) = go_on_before { a href={"/console/journal?before=" (before)} { (visit.say(words::BEFORE_BLOCK)) " →" } }
        }
    };
    Ok(Screen { section: Section::Journal, title: visit.say(words::JOURNAL).to_owned(), body })
}
