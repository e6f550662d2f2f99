//! Months: those that are over, with the closing of each; one month with what is open in it, and
//! the form that asks for its closing or carries it out. The route of `/ops` does it.

use axum::response::Response;
use ledger::time::{Month, Timestamp};
use maud::{Markup, html};
use serde_json::json;
use store::Sequence;
use store::cut::{Cut, Position};
use wire::cut_text::cut_of;
use wire::timestamp::day_of;

use crate::keys::json_of;
use crate::paging::part;
use crate::queue::kind_word;
use crate::records::{cut_link, record_link};
use crate::show::Facts;
use crate::table::Table;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, notes, pager, show, wire_words, words};
use ops::Desk;
use ops::notes::NoteSubject;
use ops::periods::{self, OpenItem, PeriodView};
use web::{FormOutcome, Language, Result, Role, query};

/// Months on a page.
const MONTHS_A_PAGE: u64 = 24;

/// The months that are over, newest first, and a link to the current month.
pub(crate) async fn list(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.whole()?;
    let page = part(&query(parts)?, MONTHS_A_PAGE)?;
    let current = visit.now.month();
    let closed = desk.engine.closed_periods();
    let first = first_booked(desk)?.map_or(current, Timestamp::month);
    let first = closed.first().map_or(first, |(month, _)| first.min(*month));
    let total = u64::from(current.0.saturating_sub(first.0));
    let newest = u64::from(current.0).saturating_sub(page.skip());
    let oldest = newest.saturating_sub(page.per_page).max(first.0.into());
    let mut rows = Vec::new();
    for month in (oldest..newest).rev().filter_map(|number| u32::try_from(number).ok()).map(Month) {
        let by = closed.iter().find(|(through, _)| month <= *through).map(|(_, sequence)| *sequence);
        rows.push((month, periods::status(&desk.engine, month)?, by));
    }
    let body = html! {
        p { (visit.say(words::MONTHS_WHAT)) }
        p.actions { a.button href={"/console/periods/" (current)} { (visit.say(words::THIS_MONTH)) } }
        section.card aria-label=(visit.say(words::MONTHS)) {
            (table(visit, &rows))
            (pager(visit, parts, page, total))
        }
    };
    Ok(Screen { section: Section::TrialBalance, title: visit.say(words::MONTHS).to_owned(), body })
}

fn table(visit: &Visit, rows: &[(Month, &'static str, Option<Position>)]) -> Markup {
    Table::of(visit.language, words::MONTHS, rows)
        .text(words::MONTH, |(month, ..)| {
            html! { a href={"/console/periods/" (month)} { (name(visit.language, *month)) } }
        })
        .text(words::STATUS, |(_, status, _)| visit.say(wire_words::PERIOD_STATUSES.of(status)))
        .text(words::CLOSED_BY_RECORD, |(.., by)| by.map_or(html! { "—" }, |by| record_link(visit.language, by)))
        .shown()
}

pub(crate) fn name(language: Language, month: Month) -> String {
    let text = month.to_string();
    match (language, text.split_once('-')) {
        (Language::Portuguese, Some((year, month))) => format!("{month}/{year}"),
        _ => text,
    }
}

/// One month.
pub(crate) async fn one(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id: period, .. } = &request;
    visit.whole()?;
    let month = periods::named(period)?;
    let period = periods::read_patiently(desk, month).await?;
    let is_over = month < visit.now.month();
    let body = html! {
        section.card aria-label=(visit.say(words::MONTH)) { (facts(desk, visit, month, &period)) }
        (visit.card("open", words::OPEN_ITEMS, html! {
            @if period.open.is_empty() { p { (visit.say(words::OPEN_NOTHING)) } } @else { (open_items(visit, month, &period.open)) }
        }))
        @if period.status != "closed" { (closing(visit, &period, is_over)) }
        (notes::section(desk, visit, NoteSubject::Month(month))?)
        p { a href="/console/periods" { "← " (visit.say(words::MONTHS)) } }
    };
    let title = format!("{} {}", visit.say(words::MONTH), name(visit.language, month));
    Ok(Screen { section: Section::TrialBalance, title, body })
}

/// The last Record of a month; none while there is no Record.
fn cut(period: &PeriodView) -> Option<Cut> {
    Some(cut_of(&period.cut)).filter(|cut| !cut.is_empty())
}

/// When the first Record of all was booked.
fn first_booked(desk: &Desk) -> Result<Option<Timestamp>> {
    let mut first: Option<i64> = None;
    for at in desk.engine.published().iter() {
        let block = desk.engine.block(Position { sequence: Sequence::FIRST, ..at })?;
        first = first.into_iter().chain(block.map(|block| block.booked_at_ms)).min();
    }
    Ok(first.map(Timestamp))
}

fn facts(desk: &Desk, visit: &Visit, month: Month, period: &PeriodView) -> Markup {
    let by = |name: &str, at: &Option<String>| {
        html! { bdi { (name) } @if let Some(at) = at { " · " (show::text_moment(visit.language, at)) } }
    };
    let cut = html! { @if let Some(cut) = cut(period) { (cut_link(visit.language, &cut)) } @else { "—" } };
    let asked_by = period.requested_by.as_ref().map(|name| by(name, &period.requested_at));
    let hash = |hash: &String| html! { code.hash { (hash) } };
    let mut facts = Facts::of(visit);
    facts
        .word(words::STATUS, wire_words::PERIOD_STATUSES.of(period.status))
        .add(words::MONTH_CUT, cut)
        .add(words::CLOSE_ASKED_BY, asked_by);
    match &period.closed_by {
        Some(name) => {
            facts.add(words::CLOSED_BY, by(name, &period.closed_at));
        }
        None if period.status == "closed" => {
            let closed = desk.engine.closed_periods().into_iter().find(|(through, _)| month <= *through);
            let link = html! {
                @if let Some((later, by)) = closed { (name(visit.language, later)) " · " (record_link(visit.language, by)) }
            };
            facts.add(words::CLOSED_WITH, link);
        }
        None => {}
    }
    facts
        .add(words::MONTH_HEAD, period.head.as_ref().map(hash))
        .add(words::MONTH_TOTALS, period.totals.as_ref().map(hash))
        .shown()
}

fn open_items(visit: &Visit, month: Month, items: &[OpenItem]) -> Markup {
    let last_day = day_of(month.next().begin().0 - 1);
    let account = |name: &str| show::account_named(visit.language, name);
    let named = |item: &OpenItem| {
        let (name, file) = (&item.name, visit.say(wire_words::file_kind(&item.name)));
        match item.kind {
            "waiting" => html! { a href={"/console/queue?kind=" (name)} { (visit.say(kind_word(name))) } },
            "unanswered" => html! { a href="/console/charges?status=pending" { (visit.say(words::CHARGES)) } },
            "unreconciled" => {
                html! { a href={"/console/reconciliations?open=true&month=" (month) "&kind=" (name)} { (file) } }
            }
            "uncompared" => html! {
                a href={"/console/reconciliations?month=" (month)} {
                    @if name.contains(':') { (account(name)) } @else { (file) }
                }
            },
            _ => {
                html! { a href={"/console/trial-balance?account=" (name) "&date=" (last_day)} { (account(name)) } }
            }
        }
    };
    Table::of(visit.language, words::OPEN_ITEMS, items)
        .text(words::WHAT, |item| visit.say(wire_words::OPEN_AT_END.of(item.kind)))
        .text(words::NAME, named)
        .amount(words::BALANCE, |item| item.balance.map(|balance| visit.money(balance)).unwrap_or_default())
        .amount(words::COUNT, |item| item.count.map(|count| show::count(visit.language, count)).unwrap_or_default())
        .shown()
}

/// The form of what comes next: asking for the closing, or the closing by a second operator.
fn closing(visit: &Visit, period: &PeriodView, is_over: bool) -> Markup {
    let is_asked = period.status == "pending";
    let is_own = period.requested_by.as_deref() == Some(visit.operator.name.as_str());
    let heading = if is_asked { words::CLOSE_MONTH } else { words::ASK_CLOSE };
    let form = visit.main_form(&format!("/console/periods/{}", period.period), html! {}, heading);
    visit.card(
        "close",
        heading,
        html! {
            @if !is_over { p { (visit.say(words::MONTH_GOES_ON)) } }
            @else {
                p.dim { (visit.say(words::CLOSE_WHAT)) }
                @if is_own || !is_asked { p.warning { (visit.say(words::SECOND_CLOSES)) } }
                @if visit.may(Role::Decide) && !is_own { (form) }
            }
        },
    )
}

/// Asks for the closing of a month or carries it out, as the route of `/ops` does.
pub(crate) async fn close(posted: PostedForm) -> Response {
    let closed = async { json_of(posted.call(periods::close, "/ops/periods/{period}/close", json!({})).await?).await };
    let closed = closed.await;
    let is_closed = closed.as_ref().is_ok_and(|month| month["status"] == "closed");
    let done = if is_closed { FormOutcome::MonthClosed } else { FormOutcome::CloseAsked };
    posted.visit.done(closed, &format!("/console/periods/{}", posted.id), done)
}
