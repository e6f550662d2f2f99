//! The newest charges of all merchants, by what a filter asks for.

use std::sync::Arc;

use actors::engine::NewestCharges;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::charge::Charge;
use ledger::id::LedgerId;
use maud::{Markup, html};
use wire::cut_text::cut_name;

use crate::list_filter::{Field, as_sent};
use crate::merchants::charge_filters;
use crate::page::{Screen, Section, Visit};
use crate::scope::Scope;
use crate::show;
use crate::show::Head::{Amount, Text};
use crate::wire_words;
use crate::words;
use ops::charges::{FILTERS, charge_query};
use ops::desk::Desk;
use web::cut::requested_before;
use web::problem::Problem;
use web::reply::query;

/// Charges on a page.
const A_PAGE: usize = 50;

/// Page of the newest charges. Those of one merchant have a page of their own.
pub(crate) async fn charges(State(desk): State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/merchants/{}/charges", id.uuid())))
            .into_response();
    }
    visit.answer(screen(&desk, &visit, &parts))
}

fn screen(desk: &Desk, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    let given: Vec<_> = query(parts)?.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let is_later = given.iter().any(|(name, _)| name == "before");
    let through = requested_before(&given, &desk.engine.published())?;
    let wanted = charge_query(desk, &as_sent(visit, parts)?)?;
    let NewestCharges { found, rest } = desk.engine.newest_charges(&through, &wanted, A_PAGE)?;
    let go_on_before = (!rest.is_empty()).then(|| go_on(&given, &cut_name(&rest.next())));
    let mut charges = Vec::new();
    for (_, id) in found {
        charges.push(desk.engine.known_object::<Charge>(id)?);
    }
    let body = html! {
        (charge_filters(visit, &given, vec![
            Field::Amount("amount_from", words::LEAST),
            Field::Amount("amount_to", words::MOST),
            Field::Hidden("recipient_id"),
        ]))
        section.card aria-label=(visit.say(words::CHARGES)) {
            @if charges.is_empty() {
                p.dim { (visit.say(if go_on_before.is_some() { words::NO_CHARGE_HERE } else { words::NOTHING })) }
            } @else {
                (show::scrolled(visit.say(words::CHARGES), table(desk, visit, &charges)))
            }
            p.pager {
                @if is_later { a href="/console/charges" { "← " (visit.say(words::NEWEST)) } }
                " "
                @if let Some(before) = go_on_before {
                    a href={"/console/charges?" (before)} rel="next" { (visit.say(words::OLDER)) " →" }
                }
            }
        }
    };
    Ok(Screen { section: Section::Charges, title: visit.say(words::CHARGES).to_owned(), body })
}

/// The query of the next, older charges: the same filters from another place on.
fn go_on(given: &[(String, String)], before: &str) -> String {
    let filters = given.iter().filter(|(name, _)| FILTERS.contains(&name.as_str()));
    let pairs = filters.map(|(name, value)| (name.as_str(), value.as_str())).chain([("before", before)]);
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn table(desk: &Desk, visit: &Visit, charges: &[Charge]) -> Markup {
    let [txid, when, merchant] = [words::TXID, words::WHEN, words::MERCHANT].map(Text);
    let heads = [txid, when, merchant, Text(words::METHOD), Text(words::STATUS), Amount(words::AMOUNT)];
    let rows = html! {
        @for charge in charges {
            @let merchant = LedgerId::Merchant(desk.engine.ids().group(charge.id));
            @let id = show::merchant_id(&desk.engine, merchant).unwrap_or_default();
            tr {
                td { a href={"/console/charges/" (charge.id.txid())} { code { (charge.id.txid()) } } }
                td { (show::short_moment(visit.language, charge.id.created_at())) }
                td { a href={"/console/merchants/" (id.uuid())} { bdi { (show::owner_name(&desk.engine, visit.language, merchant)) } } }
                td { (visit.say(wire_words::method(charge.terms.method))) }
                td { (visit.say(wire_words::charge_status(&charge.outcome))) }
                td.amount { (visit.money(charge.terms.amount.0)) }
            }
        }
    };
    show::table(visit.language, &heads, rows)
}
