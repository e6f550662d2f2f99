//! Parts of pages about splits: the anticipations and the paid debts of a recipient, and the splits
//! of a charge with the time at which each becomes available.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::{Engine, Listed};
use axum::http::request::Parts;
use ledger::event::{AnticipatedSplit, PaidBack};
use ledger::terms::Split;
use ledger::{Charge, Event, LedgerId, Rate, RecipientNumber, Record, SplitHistory, Timestamp};
use maud::{Markup, html};
use store::cut::Position;

use crate::records::record_link;
use crate::table::Table;
use crate::{Visit, pager_named, paging, part_named, show, words};
use ops::desk::Desk;
use web::{Result, query};

/// Entries of a recipient that are looked through, the newest.
const ENTRIES_MAX: usize = 200;
/// Anticipations that are shown, and debts.
const SHOWN_MAX: usize = 40;
/// Splits of a charge on a page.
const SPLITS_A_PAGE: u64 = 20;

struct Anticipation {
    record: Position,
    at: Timestamp,
    splits: Vec<AnticipatedSplit>,
    days: u8,
    rate: Rate,
}

/// The anticipations of a recipient, and the debts that it paid back.
pub(crate) fn of_recipient(desk: &Arc<Desk>, visit: &Visit, ledger: LedgerId) -> Result<Markup> {
    let Listed { total, items } = desk.engine.entries(ledger, 0, ENTRIES_MAX)?;
    let (mut anticipations, mut debts) = (Vec::new(), Vec::new());
    for found in items {
        let (place, record) = found?;
        let at = record.effective_at;
        for event in record.events.into_iter().filter(|_| record.owner == ledger) {
            match event {
                Event::SplitsAnticipated { splits, target_days: days, rate, .. } => {
                    anticipations.push(Anticipation { record: place, at, splits, days, rate });
                }
                Event::ClawbackRecovered { debts: paid, .. } => {
                    debts.extend(paid.into_iter().map(|paid| (place, at, paid)));
                }
                _ => {}
            }
        }
    }
    let is_cut = total > ENTRIES_MAX as u64 || anticipations.len() > SHOWN_MAX || debts.len() > SHOWN_MAX;
    anticipations.truncate(SHOWN_MAX);
    debts.truncate(SHOWN_MAX);
    Ok(html! {
        @if !anticipations.is_empty() { (visit.card("anticipations", words::ANTICIPATIONS, made(visit, &anticipations))) }
        @if !debts.is_empty() { (visit.card("paid-back", words::PAID_BACK, paid_back(visit, &debts))) }
        @if is_cut { p.dim { (visit.say(words::OF_NEWEST_ENTRIES)) } }
    })
}

fn made(visit: &Visit, rows: &[Anticipation]) -> Markup {
    let sum =
        |splits: &[AnticipatedSplit], of: fn(&AnticipatedSplit) -> i64| visit.money(splits.iter().map(of).sum::<i64>());
    Table::of(visit.language, words::ANTICIPATIONS, rows)
        .text(words::WHEN, |row| show::short_moment(visit.language, row.at))
        .amount(words::COUNT, |row| row.splits.len())
        .amount(words::AMOUNT, |row| sum(&row.splits, |split| split.amount.0))
        .amount(words::FEE, |row| sum(&row.splits, |split| split.fee.0))
        .text(words::RATE, |row| {
            format!("{} · D+{}", show::decimal(visit.language, &row.rate.as_percent().to_string()), row.days)
        })
        .text(words::RECORD, |row| record_link(visit.language, row.record))
        .shown()
}

fn paid_back(visit: &Visit, rows: &[(Position, Timestamp, PaidBack)]) -> Markup {
    Table::of(visit.language, words::PAID_BACK, rows)
        .text(words::WHEN, |(_, at, _)| show::short_moment(visit.language, *at))
        .text(words::CHARGE, |(_, _, paid)| show::code_link("charges", &paid.split.charge.txid()))
        .amount(words::AMOUNT, |(_, _, paid)| visit.money((paid.from_pending + paid.from_available).0))
        .text(words::RECORD, |(record, ..)| record_link(visit.language, *record))
        .shown()
}

/// The splits of a charge that its recipients' statements list: whose, what is left of each, and
/// when it becomes or became available.
pub(crate) fn of_charge(
    engine: &Engine,
    visit: &Visit,
    charge: &Charge,
    records: &[(Position, Record)],
    parts: &Parts,
) -> Result<Markup> {
    let anticipated = anticipated(charge, records);
    let group = engine.ids().group(charge.id);
    let page = part_named(&query(parts)?, "splits", SPLITS_A_PAGE)?;
    let shown = paging::items(&charge.terms.splits, page).iter();
    let mut histories: BTreeMap<RecipientNumber, Option<SplitHistory>> = BTreeMap::new();
    for split in shown.clone() {
        if let Entry::Vacant(unread) = histories.entry(split.recipient) {
            unread.insert(engine.split_history(LedgerId::Recipient(group, split.recipient), charge.id)?);
        }
    }
    let rows: Vec<_> = shown
        .zip(u32::try_from(page.skip()).unwrap_or(u32::MAX)..)
        .filter_map(|(split, index)| {
            let history = histories.get(&split.recipient)?.as_ref()?;
            let rest = history.left(index)?;
            let state = match history.place(index, visit.now) {
                _ if anticipated.contains(&index) => words::SPLIT_ANTICIPATED,
                Some(_) => words::SPLIT_AVAILABLE,
                None => words::SPLIT_PENDING,
            };
            Some((split, rest, history.available_at(index), state))
        })
        .collect();
    let ledger = |split: &Split| LedgerId::Recipient(group, split.recipient);
    let table = Table::of(visit.language, words::SPLITS_OF, &rows)
        .text(words::RECIPIENT, |(split, ..)| show::owner_link(engine, visit.language, ledger(split)))
        .amount(words::AMOUNT, |(split, ..)| visit.money(split.amount.0))
        .amount(words::REST, |(_, rest, ..)| visit.money(rest.0))
        .text(words::STATUS, |(.., state)| visit.say(*state))
        .text(words::WHEN, |(_, _, at, _)| at.map_or(html! { "—" }, |at| show::short_moment(visit.language, at)));
    Ok(html! {
        @if !rows.is_empty() { (visit.card("splits", words::SPLITS_OF, table.shown())) }
        @if !rows.is_empty() || page.page > 1 {
            (pager_named(visit, parts, "splits", page, charge.terms.splits.len() as u64))
        }
    })
}

/// The places of the splits of a charge that were anticipated.
fn anticipated(charge: &Charge, records: &[(Position, Record)]) -> BTreeSet<u32> {
    let events = records.iter().flat_map(|(_, record)| &record.events);
    let splits = events.filter_map(|event| match event {
        Event::SplitsAnticipated { splits, .. } => Some(splits),
        _ => None,
    });
    splits.flatten().filter(|part| part.split.charge == charge.id).map(|part| part.split.index).collect()
}
