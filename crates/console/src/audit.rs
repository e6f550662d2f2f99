//! Audit trail: who did what, newest first.

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use maud::html;
use serde_json::Value;
use wire::cut_text::record_name;

use crate::page::{Screen, Section, Visit};
use crate::paging::{pager, part};
use crate::queue::merchant_link;
use crate::show;
use crate::show::Head::Text;
use crate::wire_words;
use crate::words;
use ops::audit;
use ops::desk::Desk;
use web::problem::Problem;
use web::reply::query;

const ROWS_A_PAGE: u64 = 50;

/// Page of the audit trail, newest first.
pub(crate) async fn list(State(desk): State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    visit.answer(screen(&desk, &visit, &parts))
}

fn screen(desk: &Desk, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    let pairs = query(parts)?;
    let page = part(&pairs, ROWS_A_PAGE)?;
    let Listed { total, items } = desk.engine.audit(visit.scope.group(), page.skip(), page.count())?;
    let rows = items.map(|found| Ok(audit::row(desk, found?))).collect::<Result<Vec<_>, Problem>>()?;
    let heads = [words::WHEN, words::WHO, words::WHAT, words::MERCHANT, words::NOTES, words::RECORD].map(Text);
    let body = html! {
        section.card aria-label=(visit.say(words::AUDIT)) {
            @if !rows.is_empty() {
                (show::scrolled(visit.say(words::AUDIT), show::table(visit.language, &heads, html! {
                    @for row in rows {
                        tr {
                            td { (show::text_moment(visit.language, &row.at)) }
                            td { (row.operator.as_deref().unwrap_or(visit.say(words::API_KEY))) }
                            td { (visit.say(wire_words::action(row.action))) " " (visit.say(wire_words::audited(row.kind))) @if let Some(id) = &row.id { br; code { (id) } } }
                            td { (merchant_link(desk, visit, row.merchant_id.as_deref())) }
                            td {
                                bdi { (row.notes.as_deref().unwrap_or_default()) }
                                @for change in &row.changes { div { code { (change.field) } @if !change.new.is_null() { ": " bdi { (shown(&change.old)) } " → " bdi { (shown(&change.new)) } } } }
                            }
                            td { @let name = record_name(row.at()); a href={"/console/records/" (name)} { (name) } }
                        }
                    }
                })))
            }
            (pager(visit, parts, page, total))
        }
    };
    Ok(Screen { section: Section::Audit, title: visit.say(words::AUDIT).to_owned(), body })
}

/// A value as text: that of a bank account has its parts one after the other.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "—".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(parts) => {
            let parts = parts.values().filter(|part| !part.is_null()).map(shown);
            parts.collect::<Vec<_>>().join(" · ")
        }
        other => other.to_string(),
    }
}
