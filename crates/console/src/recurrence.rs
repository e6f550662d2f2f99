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
use crate::wire_words::{brand, method_named, status_word};
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
    let moment = |name: &str| text(name).map(|at| show::text_moment(visit.language, at));
    let mut pairs = whose(&request, &found);
    pairs.push((
        visit.say(words::STATUS),
        word(visit, status_word(ItemKind::Subscriptions, text("status").unwrap_or_default())),
    ));
    pairs.push((visit.say(words::PLAN), html! { bdi { (text("plan").unwrap_or_default()) } }));
    pairs.push((visit.say(words::AMOUNT), html! { (visit.money(found["amount"].as_i64().unwrap_or_default())) }));
    pairs.push((visit.say(words::METHOD), word(visit, method_named(text("payment_method").unwrap_or_default()))));
    let token = text("card_token").zip(face(&found["card"]));
    pairs.extend(token.map(|(token, face)| {
        (visit.say(words::CARD), html! { a href={"/console/cards/" (token)} { (shown_face(visit, face)) } })
    }));
    pairs.extend(splits(visit, &found));
    let counts = [(words::PAID_CYCLES, "paid_cycles"), (words::UNPAID_CYCLES, "unpaid_cycles")];
    pairs.extend(counts.map(|(name, count)| {
        (visit.say(name), html! { (show::count(visit.language, found[count].as_u64().unwrap_or_default())) })
    }));
    let times = [
        (words::NEXT_CHARGE, "next_charge_at"),
        (words::BEGAN, "started_at"),
        (words::STATUS_CANCELLED, "cancelled_at"),
    ];
    pairs.extend(times.into_iter().filter_map(|(name, at)| Some((visit.say(name), moment(at)?))));
    let body = html! {
        section.card aria-label=(visit.say(words::SUBSCRIPTION)) { (show::facts(pairs)) }
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
    let mut pairs = whose(&request, &found);
    pairs.extend(face(&found).map(|face| (visit.say(words::CARD), html! { (shown_face(visit, face)) })));
    pairs.push((
        visit.say(words::WHEN),
        show::text_moment(visit.language, found["created_at"].as_str().unwrap_or_default()),
    ));
    let body = html! {
        @if is_deleted { p { span.badge.bad { (visit.say(words::DELETED)) } } }
        section.card aria-label=(visit.say(words::CARD)) {
            (show::facts(pairs))
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
fn splits(visit: &Visit, found: &Value) -> Vec<(&'static str, Markup)> {
    let splits = found["splits"].as_array().into_iter().flatten();
    let shown = splits.zip(found["recipients"].as_array().into_iter().flatten()).map(|(split, recipient)| {
        html! {
            a href={"/console/recipients/" (recipient["id"].as_str().unwrap_or_default())} {
                bdi { (recipient["name"].as_str().unwrap_or_default()) }
            }
            " " (visit.money(split["amount"].as_i64().unwrap_or_default()))
            @if let Some(percent) = split["percent"].as_str() { " (" (percent) " %)" }
        }
    });
    shown.map(|split| (visit.say(words::RECIPIENT), split)).collect()
}

/// The merchant and its customer.
fn whose(PageRequest { desk, visit, id, .. }: &PageRequest, found: &Value) -> Vec<(&'static str, Markup)> {
    let customer = &found["customer"];
    vec![
        (visit.say(words::ID), html! { code { (id) } }),
        (visit.say(words::MERCHANT), merchant_link(desk, visit, found["merchant_id"].as_str())),
        (
            visit.say(words::PAYER),
            html! {
                bdi { (customer["name"].as_str().unwrap_or_default()) } " "
                span.dim { (customer["document"].as_str().unwrap_or_default()) }
            },
        ),
    ]
}

fn word(visit: &Visit, word: words::Word) -> Markup {
    html! { (visit.say(word)) }
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
