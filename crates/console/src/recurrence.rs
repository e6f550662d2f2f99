//! Pages of one subscription and of one stored card: what the routes of `/ops` say, and the Records
//! about it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::ObjectId;
use maud::{Markup, html};
use serde_json::Value;

use crate::charge::timeline;
use crate::keys::json_of;
use crate::people::delete_form;
use crate::queue::merchant_link;
use crate::show::Facts;
use crate::wire_words::{METHOD_NAMES, brand, status_word};
use crate::{PageRequest, Screen, Section, Visit, show, words};
use ops::{ItemKind, cards, charges, subscriptions};
use web::views::charge::CardView;
use web::{PathId, Result, Role, not_found};

/// Page of a subscription, with its plan and its card.
pub(crate) async fn subscription(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, .. } = &request;
    let read = subscriptions::get(State(Arc::clone(desk)), visit.operator.clone(), PathId(id.clone())).await;
    let (found, timeline) = found(&request, read).await?;
    let text = |name: &str| found[name].as_str();
    let count = |name: &str| html! { (show::count(visit.language, found[name].as_u64().unwrap_or_default())) };
    let token = text("card_token").zip(face(&found["card"]));
    let card = token.map(|(token, face)| html! { a href={"/console/cards/" (token)} { (shown_face(visit, face)) } });
    let mut facts = whose(&request, &found);
    facts
        .word(words::STATUS, status_word(ItemKind::Subscriptions, text("status").unwrap_or_default()))
        .text(words::PLAN, text("plan").unwrap_or_default())
        .money(words::AMOUNT, found["amount"].as_i64().unwrap_or_default())
        .word(words::METHOD, METHOD_NAMES.of(text("payment_method").unwrap_or_default()))
        .add(words::CARD, card);
    for split in splits(visit, &found) {
        facts.add(words::RECIPIENT, split);
    }
    facts
        .add(words::PAID_CYCLES, count("paid_cycles"))
        .add(words::UNPAID_CYCLES, count("unpaid_cycles"))
        .when(words::NEXT_CHARGE, text("next_charge_at"))
        .when(words::BEGAN, text("started_at"))
        .when(words::STATUS_CANCELLED, text("cancelled_at"));
    let body = html! {
        section.card aria-label=(visit.say(words::SUBSCRIPTION)) { (facts.shown()) }
        (timeline)
    };
    Ok(Screen { section: Section::Lists, title: visit.say(words::SUBSCRIPTION).to_owned(), body })
}

/// Page of a stored card, with the form that deletes it.
pub(crate) async fn card(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, .. } = &request;
    let read = cards::get(State(Arc::clone(desk)), visit.operator.clone(), PathId(id.clone())).await;
    let (found, timeline) = found(&request, read).await?;
    let is_deleted = found["deleted"] == true;
    let mut facts = whose(&request, &found);
    facts
        .add(words::CARD, face(&found).map(|face| html! { (shown_face(visit, face)) }))
        .when(words::WHEN, found["created_at"].as_str().unwrap_or_default());
    let body = html! {
        @if is_deleted { p { span.badge.bad { (visit.say(words::DELETED)) } } }
        section.card aria-label=(visit.say(words::CARD)) {
            (facts.shown())
            @if visit.may(Role::Decide) && !is_deleted { (delete_form(visit, id)) }
        }
        (timeline)
    };
    Ok(Screen { section: Section::Lists, title: visit.say(words::CARD).to_owned(), body })
}

/// What a route answers about the object of a page, and the Records about it.
async fn found(request: &PageRequest, read: Result<Response>) -> Result<(Value, Markup)> {
    let PageRequest { desk, visit, id, .. } = request;
    let found = json_of(read?).await?;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    visit.sees(Some(desk.engine.ids().group(id)))?;
    let (records, are_more) = charges::records_about(&desk.engine, id)?;
    let timeline = timeline(desk, visit, &records)?;
    Ok((found, html! { @if are_more { p.warning { (visit.say(words::MORE_RECORDS)) } } (timeline) }))
}

/// The splits of a subscription: each recipient, and its part of a cycle.
fn splits(visit: &Visit, found: &Value) -> impl Iterator<Item = Markup> {
    let splits = found["splits"].as_array().into_iter().flatten();
    splits.zip(found["recipients"].as_array().into_iter().flatten()).map(move |(split, recipient)| {
        html! {
            a href={"/console/recipients/" (recipient["id"].as_str().unwrap_or_default())} {
                bdi { (recipient["name"].as_str().unwrap_or_default()) }
            }
            " " (visit.money(split["amount"].as_i64().unwrap_or_default()))
            @if let Some(percent) = split["percent"].as_str() { " (" (percent) " %)" }
        }
    })
}

/// The merchant and its customer.
fn whose<'a>(PageRequest { desk, visit, id, .. }: &'a PageRequest, found: &Value) -> Facts<'a> {
    let customer = ["name", "document"].map(|name| found["customer"][name].as_str().unwrap_or_default());
    let mut facts = Facts::of(visit);
    facts
        .code(words::ID, id.as_str())
        .add(words::MERCHANT, merchant_link(desk, visit, found["merchant_id"].as_str()))
        .add(words::PAYER, html! { bdi { (customer[0]) } " " span.dim { (customer[1]) } });
    facts
}

/// The scheme of a card and its last four digits.
fn face(card: &Value) -> Option<(&str, &str)> {
    card["brand"].as_str().zip(card["last4"].as_str())
}

fn shown_face(visit: &Visit, (scheme, last4): (&str, &str)) -> String {
    format!("{} •••• {last4}", visit.say(brand(scheme)))
}

/// A card in a row of a list.
pub(crate) fn card_in_list(visit: &Visit, card: Option<&CardView>) -> Markup {
    html! { @if let Some(card) = card { (shown_face(visit, (card.brand, &card.last4))) } }
}
