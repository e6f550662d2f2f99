//! Parts of pages about splits: the anticipations and the paid debts of a recipient, and the splits
//! of a charge with the time at which each becomes available.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::{Engine, Listed};
use axum::http::request::Parts;
use ledger::event::{AnticipatedSplit, PaidBack};
use ledger::{Charge, Event, LedgerId, Rate, RecipientNumber, Record, SplitHistory, Timestamp};
use maud::{Markup, html};
use store::cut::Position;

use crate::records::record_link;
use crate::show::Head::{Amount, Text};
use crate::show::{self, Head};
use crate::{Visit, Word, pager_named, paging, part_named, words};
use ops::desk::Desk;
use web::views::recipient::recipient_id;
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
        @if !anticipations.is_empty() { (anticipations_card(visit, &anticipations)) }
        @if !debts.is_empty() { (debts_card(visit, &debts)) }
        @if is_cut { p.dim { (visit.say(words::OF_NEWEST_ENTRIES)) } }
    })
}

fn anticipations_card(visit: &Visit, rows: &[Anticipation]) -> Markup {
    let sum = |splits: &[AnticipatedSplit], of: fn(&AnticipatedSplit) -> i64| splits.iter().map(of).sum::<i64>();
    let [when, count, rate, record] = [words::WHEN, words::COUNT, words::RATE, words::RECORD].map(Text);
    let heads = [when, count, Amount(words::AMOUNT), Amount(words::FEE), rate, record];
    card(
        visit,
        "anticipations",
        words::ANTICIPATIONS,
        &heads,
        html! {
            @for row in rows {
                tr {
                    td { (show::short_moment(visit.language, row.at)) }
                    td.amount { (row.splits.len()) }
                    td.amount { (visit.money(sum(&row.splits, |split| split.amount.0))) }
                    td.amount { (visit.money(sum(&row.splits, |split| split.fee.0))) }
                    td { (show::decimal(visit.language, &row.rate.as_percent().to_string())) " · D+" (row.days) }
                    td { (record_link(visit.language, row.record)) }
                }
            }
        },
    )
}

fn debts_card(visit: &Visit, rows: &[(Position, Timestamp, PaidBack)]) -> Markup {
    let heads = [Text(words::WHEN), Text(words::CHARGE), Amount(words::AMOUNT), Text(words::RECORD)];
    card(
        visit,
        "paid-back",
        words::PAID_BACK,
        &heads,
        html! {
            @for (sequence, at, paid) in rows {
                @let txid = paid.split.charge.txid();
                tr {
                    td { (show::short_moment(visit.language, *at)) }
                    td { a href={"/console/charges/" (txid)} { code { (txid) } } }
                    td.amount { (visit.money((paid.from_pending + paid.from_available).0)) }
                    td { (record_link(visit.language, *sequence)) }
                }
            }
        },
    )
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
    let [recipient, status, when] = [words::RECIPIENT, words::STATUS, words::WHEN].map(Text);
    let heads = [recipient, Amount(words::AMOUNT), Amount(words::REST), status, when];
    let table = html! {
        @for (split, rest, at, state) in &rows {
            @let ledger = LedgerId::Recipient(group, split.recipient);
            @let id = recipient_id(engine, ledger).unwrap_or_default();
            tr {
                td { a href={"/console/recipients/" (id.uuid())} { bdi { (show::owner_name(engine, visit.language, ledger)) } } }
                td.amount { (visit.money(split.amount.0)) }
                td.amount { (visit.money(rest.0)) }
                td { (visit.say(*state)) }
                td { @match at { Some(at) => (show::short_moment(visit.language, *at)), None => "—" } }
            }
        }
    };
    Ok(html! {
        @if !rows.is_empty() { (card(visit, "splits", words::SPLITS_OF, &heads, table)) }
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

/// A card with a table of one heading, whose amounts stand to the right.
fn card(visit: &Visit, id: &str, heading: Word, heads: &[Head], rows: Markup) -> Markup {
    html! {
        (visit.card(id, heading, html! {
            (show::scrolled(visit.say(heading), show::table(visit.language, heads, rows)))
        }))
    }
}
