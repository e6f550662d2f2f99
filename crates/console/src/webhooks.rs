//! Webhooks: endpoints with a backlog, the events of one merchant with their delivery, and sending
//! an event again.

use axum::http::request::Parts;
use axum::response::Response;
use ledger::webhook_events::webhook_events;
use ledger::{GroupNumber, LedgerId, ObjectId, Record};
use maud::{Markup, html};
use serde_json::json;
use store::cut::Position;

use crate::paging::{self, part};
use crate::queue::merchant_link;
use crate::records::record_link;
use crate::table::Table;
use crate::{
    PageRequest, PostedForm, Screen, Section, Visit, Word, pager, pager_named, part_named, show, wire_words, words,
};
use ops::Desk;
use ops::merchants::find;
use ops::other_nodes::backlogs;
use ops::webhooks::{EventTry, event_tries, payload, redeliver, view};
use web::views::delivery::AnswerView;
use web::{FormOutcome, Result, Role, failed, not_found, query};
use webhooks::DeliveryStatus;
use webhooks::event::OutboxEvent;

/// Endpoints on a page.
const ENDPOINTS_A_PAGE: u64 = 60;
/// Deliveries of one event on its page.
const DELIVERIES_A_PAGE: u64 = 60;
/// Events of an endpoint on a part of its page.
const EVENTS_OF_ENDPOINT_A_PART: u64 = 20;
/// Endpoints of one event whose delivery is shown.
const DELIVERIES_MAX: usize = 3;
/// Events of a charge that are shown.
const OF_CHARGE_MAX: usize = 12;
/// Events on a page.
const EVENTS_A_PAGE: u64 = 30;

/// The endpoints that are behind.
pub(crate) async fn list(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    let page = part(&query(parts)?, ENDPOINTS_A_PAGE)?;
    let through = usize::try_from(page.skip().saturating_add(page.per_page)).unwrap_or(usize::MAX);
    let (total, mut backlogs) = backlogs(desk, visit.scope.group(), through).await?;
    let rows = backlogs.drain(paging::range(backlogs.len(), page));
    let rows = rows.map(|behind| view(desk, behind));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let table = Table::list(visit.language, words::WEBHOOKS, &rows)
        .column("name", words::MERCHANT, |row| {
            html! {
                (merchant_link(desk, visit, Some(&row.merchant_id))) " "
                a href={"/console/merchants/" (row.merchant_id) "/events"} { (visit.say(words::EVENTS_OF)) }
            }
        })
        .column("when", words::WEBHOOK_ADDRESS, |row| {
            html! { a href={"/console/keys/" (row.api_key_id)} { bdi { (row.webhook_url) } } }
        })
        .column("amount", words::WAITING, |row| row.waiting)
        .column("status amount", words::GIVEN_UP, |row| row.given_up)
        .column("more", words::LAST_ANSWER, |row| answer(visit, row.last_answer.as_ref()));
    let body = html! {
        section.card aria-label=(visit.say(words::WEBHOOKS)) {
            p { (total) " " (visit.say(words::ENDPOINTS_BEHIND)) }
            @if !rows.is_empty() { (table.shown()) }
            (pager_named(visit, parts, "page", page, total as u64))
        }
    };
    Ok(Screen { section: Section::Webhooks, title: visit.say(words::WEBHOOKS).to_owned(), body })
}

/// How a try ended, in words.
pub(crate) fn answer(visit: &Visit, answer: Option<&AnswerView>) -> Markup {
    html! {
        @match answer {
            None => "—",
            Some(answer) => {
                @if let Some(status) = answer.status { (status) " " }
                @if let Some(cause) = answer.cause { (visit.say(wire_words::CAUSES.of(cause))) " " }
                span.dim { (answer.duration_ms) " ms, " (show::text_moment(visit.language, &answer.at)) }
            }
        }
    }
}

/// The webhook events of a merchant, newest first.
pub(crate) async fn events(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, parts } = &request;
    let group = find(desk, id)?;
    visit.sees(Some(group))?;
    let page = part(&query(parts)?, EVENTS_A_PAGE)?;
    let end = desk.engine.published_of(group).plus(1);
    let total = desk.engine.webhook_event_count(group, end)?;
    let last = total.saturating_sub(page.skip());
    let mut listed = desk.engine.webhook_events(group, last.saturating_sub(page.per_page) + 1..last + 1)?;
    listed.reverse();
    let mut rows = Vec::new();
    for listed in listed {
        let event = OutboxEvent::read(&desk.engine, group, listed)?;
        let statuses = desk.webhooks.delivery_statuses(group, &event);
        rows.push((event, statuses));
    }
    let body = html! {
        section.card aria-label=(visit.say(words::WEBHOOKS)) {
            (table(visit, (id, words::WEBHOOKS), &rows))
            (pager(visit, parts, page, total))
        }
    };
    let owner = show::owner_name(&desk.engine, visit.language, LedgerId::Merchant(group));
    let title = format!("{} · {owner}", visit.say(words::WEBHOOKS));
    Ok(Screen { section: Section::Webhooks, title, body })
}

/// One webhook event, with its delivery to each endpoint.
pub(crate) async fn event(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, parts } = &request;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    visit.sees(Some(group))?;
    let event = OutboxEvent::find(&desk.engine, group, id)?.ok_or_else(not_found)?;
    let merchant = show::merchant_id(&desk.engine, LedgerId::Merchant(group)).map(|id| id.uuid().to_string());
    let statuses = desk.webhooks.delivery_statuses(group, &event);
    let page = part_named(&query(parts)?, "deliveries", DELIVERIES_A_PAGE)?;
    let kind = visit.say(wire_words::event(event.content.kind));
    let body = html! {
        section.card aria-label=(visit.say(words::EVENT)) {
            (show::facts(vec![
                (visit.say(words::WHAT), html! { (kind) }),
                (visit.say(words::ID), html! { code { (event.id.uuid()) } }),
                (visit.say(words::WHEN), show::moment(visit.language, event.at())),
                (visit.say(words::MERCHANT), merchant_link(desk, visit, merchant.as_deref())),
                (visit.say(words::RECORD), record_link(visit.language, event.position(&desk.engine))),
            ]))
            @if visit.may(Role::Decide) && !statuses.is_empty() {
                (again_form(visit, &event, merchant.as_deref().unwrap_or_default(), kind))
            }
        }
        (visit.card("delivery", words::DELIVERY, html! {
            (deliveries(desk, visit, paging::items(&statuses, page)))
            (pager_named(visit, parts, "deliveries", page, statuses.len() as u64))
        }))
        (tries(visit, &event_tries(&desk.webhooks, group, &event)))
        (body_that_is_sent(desk, visit, &event)?)
    };
    Ok(Screen { section: Section::Webhooks, title: format!("{}: {kind}", visit.say(words::EVENT)), body })
}

/// The body of an event's webhooks.
fn body_that_is_sent(desk: &Desk, visit: &Visit, event: &OutboxEvent) -> Result<Markup> {
    let body = serde_json::to_string_pretty(&payload(desk, event)?).map_err(failed)?;
    Ok(html! {
        (visit.card("payload", words::PAYLOAD, html! {
            p.dim { (visit.say(words::PAYLOAD_MASKED)) }
            pre tabindex="0" { code { (body) } }
        }))
    })
}

/// The stored tries of an event, each with its answer.
fn tries(visit: &Visit, tries: &[EventTry]) -> Markup {
    let table = Table::of(visit.language, words::TRIES_OF_EVENT, tries)
        .text(words::WHEN, |tried| show::text_moment(visit.language, &tried.answer.at))
        .text(words::API_KEY, |tried| show::code_link("keys", &tried.api_key_id))
        .text(words::LAST_ANSWER, |tried| answer(visit, Some(&tried.answer)))
        .text(words::RESPONSE, |tried| html! { samp { bdi { (tried.response) } } });
    html! {
        section.card aria-labelledby="tries" {
            h2 id="tries" { (visit.say(words::TRIES_OF_EVENT)) " (" (tries.len()) ")" }
            p.dim { (visit.say(words::TRIES_STORED)) }
            @if !tries.is_empty() { (table.shown()) }
        }
    }
}

fn deliveries(desk: &Desk, visit: &Visit, statuses: &[(ObjectId, DeliveryStatus)]) -> Markup {
    Table::of(visit.language, words::DELIVERY, statuses)
        .text(words::WEBHOOK_ADDRESS, |(key, _)| {
            let address = desk.engine.api_key(*key).and_then(|row| row.webhook.url);
            html! { a href={"/console/keys/" (key.uuid())} { bdi { (address.as_deref().unwrap_or("—")) } } }
        })
        .text(words::DELIVERY, |(_, status)| delivery(visit, status))
        .shown()
}

/// Some of the events of an endpoint, by their numbers: a part of them, which the parameter `name`
/// says.
pub(crate) fn at_endpoint(
    desk: &Desk,
    visit: &Visit,
    parts: &Parts,
    (group, key): (GroupNumber, ObjectId),
    (name, heading, numbers): (&'static str, Word, &[u64]),
) -> Result<Markup> {
    let page = part_named(&query(parts)?, name, EVENTS_OF_ENDPOINT_A_PART)?;
    let mut rows = Vec::new();
    for number in paging::items(numbers, page) {
        let event = OutboxEvent::numbered(&desk.engine, group, *number)?;
        let statuses = desk.webhooks.delivery_statuses(group, &event);
        rows.push((event, statuses.into_iter().filter(|(at, _)| *at == key).collect()));
    }
    let merchant = show::merchant_id(&desk.engine, LedgerId::Merchant(group)).unwrap_or_default().uuid().to_string();
    Ok(html! {
        section.card aria-labelledby=(name) {
            h2 id=(name) { (visit.say(heading)) " (" (show::count(visit.language, numbers.len() as u64)) ")" }
            (table(visit, (&merchant, heading), &rows))
            (pager_named(visit, parts, name, page, numbers.len() as u64))
        }
    })
}

/// The first webhook events of some Records of a group, with their delivery, and a link to all of
/// the merchant's; nothing where there are none.
pub(crate) fn of_records(
    desk: &Desk,
    visit: &Visit,
    group: GroupNumber,
    records: &[(Position, Record)],
) -> Result<Markup> {
    let mut rows = Vec::new();
    for (at, record) in records {
        let count = webhook_events(record).len().min(OF_CHARGE_MAX - rows.len()) as u64;
        if count == 0 {
            continue;
        }
        let first = desk.engine.webhook_event_count(group, at.sequence)? + 1;
        for listed in desk.engine.webhook_events(group, first..first + count)? {
            let event = OutboxEvent::read(&desk.engine, group, listed)?;
            let statuses = desk.webhooks.delivery_statuses(group, &event);
            rows.push((event, statuses));
        }
    }
    let merchant = desk.engine.merchant(group, |row| row.id).unwrap_or_default().uuid().to_string();
    Ok(html! {
        @if !rows.is_empty() {
            (visit.card("webhooks", words::ITS_WEBHOOKS, html! {
                (table(visit, (&merchant, words::ITS_WEBHOOKS), &rows))
                @if rows.len() == OF_CHARGE_MAX { p { a href={"/console/merchants/" (merchant) "/events"} { (visit.say(words::EVENTS_OF)) } } }
            }))
        }
    })
}

type EventDeliveries = (OutboxEvent, Vec<(ObjectId, DeliveryStatus)>);

fn table(visit: &Visit, (merchant, label): (&str, Word), rows: &[EventDeliveries]) -> Markup {
    let kind = |event: &OutboxEvent| visit.say(wire_words::event(event.content.kind));
    Table::list(visit.language, label, rows)
        .column("name", words::WHAT, |(event, _)| {
            html! { (kind(event)) br; (show::code_link("webhooks", &event.id.uuid().to_string())) }
        })
        .column("when", words::WHEN, |(event, _)| show::short_moment(visit.language, event.at()))
        .column("status", words::DELIVERY, |(_, statuses)| {
            html! {
                @if statuses.is_empty() { "—" }
                @for (_, status) in statuses.iter().take(DELIVERIES_MAX) { p { (delivery(visit, status)) } }
                @if statuses.len() > DELIVERIES_MAX { p.dim { "+ " (statuses.len() - DELIVERIES_MAX) } }
            }
        })
        .column("more", words::SEND_AGAIN, |(event, statuses)| {
            html! {
                @if visit.may(Role::Decide) && !statuses.is_empty() { (again_form(visit, event, merchant, kind(event))) }
            }
        })
        .shown()
}

fn again_form(visit: &Visit, event: &OutboxEvent, merchant: &str, kind: &str) -> Markup {
    let send = visit.say(words::SEND_AGAIN);
    html! {
        form method="post" action={"/console/webhooks/" (event.id.uuid()) "/redeliver"} {
            (visit.form_fields())
            input type="hidden" name="merchant" value=(merchant);
            button type="submit" aria-label={(send) " " (kind) " " (event.number())} { (send) }
        }
    }
}

fn delivery(visit: &Visit, status: &DeliveryStatus) -> Markup {
    html! {
        @match status {
            DeliveryStatus::NotSent => "—",
            DeliveryStatus::Delivered => (visit.say(words::DELIVERED)),
            DeliveryStatus::Pending { tries, last_answer, .. } => {
                (visit.say(words::WAITING)) ", " (tries) " " (visit.say(words::TRIES)) " "
                (answer(visit, last_answer.map(AnswerView::of).as_ref()))
            }
            DeliveryStatus::GivenUp { last_answer } => {
                strong { (visit.say(words::GIVEN_UP)) } " " (answer(visit, last_answer.map(AnswerView::of).as_ref()))
            }
        }
    }
}

/// Sends an event again, as the route of `/ops` does.
pub(crate) async fn send_again(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, form, .. } = &posted;
    let place = match find(desk, form.value("merchant")) {
        Ok(_) => format!("/console/merchants/{}/events", form.value("merchant")),
        Err(_) => "/console/webhooks".to_owned(),
    };
    let sent = posted.call(redeliver, "/ops/webhooks/{id}/redeliver", json!({})).await;
    visit.done(sent, &place, FormOutcome::SentAgain)
}
