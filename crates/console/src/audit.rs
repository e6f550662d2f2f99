//! Audit trail: who did what, newest first.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::table_file::TableFormat;
use maud::{Markup, html};
use wire::cut_text::record_name;

use crate::list_filter::{self, Field, as_sent, file_links};
use crate::paging::part;
use crate::queue::merchant_link;
use crate::table::Table;
use crate::{Screen, Section, Visit, field_changes, pager, show, wire_words, words};
use ops::audit::{self, AuditEntryView, AuditFilter};
use ops::list_file::requested_format;
use ops::wire_words::{ACTIONS, KINDS};
use ops::{Desk, DeskState};
use web::Result;

const ROWS_A_PAGE: u64 = 50;

/// Page of the audit trail, newest first, by what a filter asks for; or all of it as a file.
pub(crate) async fn list(State(desk): DeskState, visit: Visit, parts: Parts) -> Response {
    match asked(&desk, &visit, &parts) {
        Ok((filter, Some(format))) => visit.answer_with(audit::file(&desk, &filter, format).await),
        Ok((filter, None)) => visit.answer(screen(&desk, &visit, &parts, &filter)),
        Err(problem) => visit.answer(Err(problem)),
    }
}

fn asked(desk: &Desk, visit: &Visit, parts: &Parts) -> Result<(AuditFilter, Option<TableFormat>)> {
    let given = as_sent(visit, parts)?;
    Ok((AuditFilter::read(desk, &given)?, requested_format(&given)?))
}

fn fields() -> [Field<'static>; 6] {
    [
        Field::Text("operator", words::WHO),
        Field::Choice("action", words::WHAT, ACTIONS.0.into()),
        Field::Choice("kind", words::KIND, KINDS.0.into()),
        Field::Text("id", words::ID),
        Field::Day("from", words::FROM),
        Field::Day("to", words::TO),
    ]
}

fn screen(desk: &Desk, visit: &Visit, parts: &Parts, filter: &AuditFilter) -> Result<Screen> {
    let given = as_sent(visit, parts)?;
    let page = part(&given, ROWS_A_PAGE)?;
    let (total, rows) = filter.page(desk, page)?;
    let table = Table::list(visit.language, words::AUDIT, &rows)
        .column("when", words::WHEN, |row| show::text_moment(visit.language, &row.at))
        .column("status", words::WHO, |row| row.operator.as_deref().unwrap_or(visit.say(words::API_KEY)))
        .column("name", words::WHAT, |row| what(visit, row))
        .column("more", words::MERCHANT, |row| merchant_link(desk, visit, row.merchant_id.as_deref()))
        .column("amount", words::RECORD, |row| {
            let name = record_name(row.at());
            html! { a href={"/console/records/" (name)} { (name) } }
        });
    let body = html! {
        (list_filter::form(desk, visit, &given, &fields()))
        section.card aria-label=(visit.say(words::AUDIT)) {
            (table.shown())
            (pager(visit, parts, page, total))
            (file_links(visit, parts, false))
        }
    };
    Ok(Screen { section: Section::Audit, title: visit.say(words::AUDIT).to_owned(), body })
}

/// What was done, and to what.
fn what(visit: &Visit, row: &AuditEntryView) -> Markup {
    html! {
        (visit.say(wire_words::ACTIONS.of(row.action))) " " (visit.say(wire_words::KINDS.of(row.kind))) " "
        bdi { (row.name.as_deref().unwrap_or_default()) }
        @if let Some(id) = &row.id { br; code { (id) } }
        @if let Some(card) = &row.card { div { (visit.say(wire_words::brand(card.brand))) " ••••" (card.last4) } }
        @if let Some(amount) = row.amount {
            div {
                (visit.money(amount))
                @if let (Some(debit), Some(credit)) = (&row.debit, &row.credit) {
                    " · " (show::account_named(visit.language, debit)) " → " (show::account_named(visit.language, credit))
                }
            }
        }
        @if let Some(notes) = &row.notes { div { bdi { (notes) } } }
        (field_changes::lines(visit, &row.changes))
    }
}
