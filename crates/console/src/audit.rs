//! Audit trail: who did what, newest first.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::list_file::ListFormat;
use maud::html;
use wire::cut_text::record_name;

use crate::list_filter::{self, Field, as_sent, file_links};
use crate::paging::part;
use crate::queue::merchant_link;
use crate::{Screen, Section, Visit, field_changes, pager, show, wire_words, words};
use ops::audit::{self, AuditFilter};
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

fn asked(desk: &Desk, visit: &Visit, parts: &Parts) -> Result<(AuditFilter, Option<ListFormat>)> {
    let given = as_sent(visit, parts)?;
    Ok((AuditFilter::read(desk, &given)?, requested_format(&given)?))
}

fn fields() -> [Field<'static>; 6] {
    [
        Field::Text("operator", words::WHO),
        Field::Choice("action", words::WHAT, ACTIONS.into()),
        Field::Choice("kind", words::KIND, KINDS.into()),
        Field::Text("id", words::ID),
        Field::Day("from", words::FROM),
        Field::Day("to", words::TO),
    ]
}

fn screen(desk: &Desk, visit: &Visit, parts: &Parts, filter: &AuditFilter) -> Result<Screen> {
    let given = as_sent(visit, parts)?;
    let page = part(&given, ROWS_A_PAGE)?;
    let (total, rows) = filter.page(desk, page)?;
    let heads = [
        ("when", words::WHEN),
        ("status", words::WHO),
        ("name", words::WHAT),
        ("more", words::MERCHANT),
        ("amount", words::RECORD),
    ];
    let body = html! {
        (list_filter::form(desk, visit, &given, &fields()))
        section.card aria-label=(visit.say(words::AUDIT)) {
            @if !rows.is_empty() {
                (show::scrolled(visit.say(words::AUDIT), show::list(visit.language, &heads, html! {
                    @for row in rows {
                        tr {
                            td.when { (show::text_moment(visit.language, &row.at)) }
                            td.status { (row.operator.as_deref().unwrap_or(visit.say(words::API_KEY))) }
                            td.name { (visit.say(wire_words::action(row.action))) " " (visit.say(wire_words::audited(row.kind))) " " bdi { (row.name.as_deref().unwrap_or_default()) } @if let Some(id) = &row.id { br; code { (id) } }
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
                            td.more { (merchant_link(desk, visit, row.merchant_id.as_deref())) }
                            td.amount { @let name = record_name(row.at()); a href={"/console/records/" (name)} { (name) } }
                        }
                    }
                })))
            }
            (pager(visit, parts, page, total))
            (file_links(visit, parts, false))
        }
    };
    Ok(Screen { section: Section::Audit, title: visit.say(words::AUDIT).to_owned(), body })
}
