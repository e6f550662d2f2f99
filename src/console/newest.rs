//! The newest charges of all merchants.

use std::sync::Arc;

use actors::engine::NewestCharges;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::charge::Charge;
use ledger::id::LedgerId;
use maud::{Markup, html};
use wire::cut_text::cut_name;

use crate::app::App;
use crate::console::page::{Screen, Section, Visit};
use crate::console::scope::Scope;
use crate::console::show;
use crate::console::show::Head::{Amount, Text};
use crate::console::wire_words;
use crate::console::words;
use web::cut::requested_before;
use web::problem::Problem;
use web::reply::query;

/// Charges on a page.
const A_PAGE: usize = 50;

/// Page of the newest charges. Those of one merchant have a page of their own.
pub async fn charges(State(app): State<Arc<App>>, visit: Visit, parts: Parts) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/merchants/{}/charges", id.uuid())))
            .into_response();
    }
    visit.answer(screen(&app, &visit, &parts))
}

fn screen(app: &App, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    let pairs = query(parts)?;
    let is_later = pairs.iter().any(|(name, _)| name == "before");
    let through = requested_before(&pairs, &app.engine.published())?;
    let NewestCharges { found, rest } = app.engine.newest_charges(&through, A_PAGE)?;
    let go_on_before = (!rest.is_empty()).then(|| cut_name(&rest.next()));
    let mut charges = Vec::new();
    for (_, id) in found {
        charges.push(app.engine.known_object::<Charge>(id)?);
    }
    let body = html! {
        section.card aria-label=(visit.say(words::CHARGES)) {
            @if charges.is_empty() {
                p.dim { (visit.say(if go_on_before.is_some() { words::NO_CHARGE_HERE } else { words::NOTHING })) }
            } @else {
                (show::scrolled(visit.say(words::CHARGES), table(app, visit, &charges)))
            }
            p.pager {
                @if is_later { a href="/console/charges" { "← " (visit.say(words::NEWEST)) } }
                " "
                @if let Some(before) = go_on_before {
                    a href={"/console/charges?before=" (before)} rel="next" { (visit.say(words::OLDER)) " →" }
                }
            }
        }
    };
    Ok(Screen { section: Section::Charges, title: visit.say(words::CHARGES).to_owned(), body })
}

fn table(app: &App, visit: &Visit, charges: &[Charge]) -> Markup {
    let [txid, when, merchant] = [words::TXID, words::WHEN, words::MERCHANT].map(Text);
    let heads = [txid, when, merchant, Text(words::METHOD), Text(words::STATUS), Amount(words::AMOUNT)];
    let rows = html! {
        @for charge in charges {
            @let merchant = LedgerId::Merchant(app.engine.ids().group(charge.id));
            @let id = show::merchant_id(&app.engine, merchant).unwrap_or_default();
            tr {
                td { a href={"/console/charges/" (charge.id.txid())} { code { (charge.id.txid()) } } }
                td { (show::short_moment(visit.language, charge.id.created_at())) }
                td { a href={"/console/merchants/" (id.uuid())} { bdi { (show::owner_name(&app.engine, visit.language, merchant)) } } }
                td { (visit.say(wire_words::method(charge.terms.method))) }
                td { (visit.say(wire_words::charge_status(&charge.outcome))) }
                td.amount { (visit.money(charge.terms.amount.0)) }
            }
        }
    };
    show::table(visit.language, &heads, rows)
}
