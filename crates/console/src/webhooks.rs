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
use crate::show::Head::Text;
use crate::{
    PageRequest, PostedForm, Screen, Section, Visit, Word, pager, pager_named, part_named, show, wire_words, words,
};
use ops::Desk;
use ops::merchants::find;
use ops::other_nodes::backlogs;
use ops::webhooks::{EventTry, event_tries, payload, redeliver, view};
use web::views::delivery::AnswerView;
use web::{Code, FormOutcome, Problem, Result, Role, failed, query};
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
    let heads = [
        ("name", words::MERCHANT),
        ("when", words::WEBHOOK_ADDRESS),
        ("amount", words::WAITING),
        ("status amount", words::GIVEN_UP),
        ("more", words::LAST_ANSWER),
    ];
    let body = html! {
        section.card aria-label=(visit.say(words::WEBHOOKS)) {
            p { (total) " " (visit.say(words::ENDPOINTS_BEHIND)) }
            @if !rows.is_empty() {
                (show::scrolled(visit.say(words::WEBHOOKS), show::list(visit.language, &heads, html! {
                    @for row in rows {
                        tr {
                            td.name { (merchant_link(desk, visit, Some(&row.merchant_id))) " " a href={"/console/merchants/" (row.merchant_id) "/events"} { (visit.say(words::EVENTS_OF)) } }
                            td.when { a href={"/console/keys/" (row.api_key_id)} { bdi { (row.webhook_url) } } }
                            td.amount { (row.waiting) }
                            td.status.amount { (row.given_up) }
                            td.more { (answer(visit, row.last_answer.as_ref())) }
                        }
                    }
                })))
            }
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
                @if let Some(cause) = answer.cause { (visit.say(wire_words::cause(cause))) " " }
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
            @if !rows.is_empty() { (show::scrolled(visit.say(words::WEBHOOKS), table(visit, id, &rows))) }
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
    let not_found = || Problem::new(Code::NotFound);
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    visit.sees(Some(group))?;
    let event = OutboxEvent::find(&desk.engine, group, id)?.ok_or_else(not_found)?;
    let merchant = show::merchant_id(&desk.engine, LedgerId::Merchant(group)).map(|id| id.uuid().to_string());
    let statuses = desk.webhooks.delivery_statuses(group, &event);
    let page = part_named(&query(parts)?, "deliveries", DELIVERIES_A_PAGE)?;
    let heading = visit.say(words::DELIVERY);
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
        section.card aria-labelledby="delivery" {
            h2 id="delivery" { (heading) }
            @if statuses.is_empty() { p.dim { (visit.say(words::NOTHING)) } } @else {
                (show::scrolled(heading, deliveries(desk, visit, paging::items(&statuses, page))))
                (pager_named(visit, parts, "deliveries", page, statuses.len() as u64))
            }
        }
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
    let heading = visit.say(words::TRIES_OF_EVENT);
    let heads = [words::WHEN, words::API_KEY, words::LAST_ANSWER, words::RESPONSE].map(Text);
    html! {
        section.card aria-labelledby="tries" {
            h2 id="tries" { (heading) " (" (tries.len()) ")" }
            p.dim { (visit.say(words::TRIES_STORED)) }
            @if !tries.is_empty() {
                (show::scrolled(heading, show::table(visit.language, &heads, html! {
                    @for tried in tries {
                        tr {
                            td { (show::text_moment(visit.language, &tried.answer.at)) }
                            td { a href={"/console/keys/" (tried.api_key_id)} { code { (tried.api_key_id) } } }
                            td { (answer(visit, Some(&tried.answer))) }
                            td { samp { bdi { (tried.response) } } }
                        }
                    }
                })))
            }
        }
    }
}

fn deliveries(desk: &Desk, visit: &Visit, statuses: &[(ObjectId, DeliveryStatus)]) -> Markup {
    let rows = html! {
        @for (key, status) in statuses {
            @let address = desk.engine.api_key(*key).and_then(|row| row.webhook.url);
            tr {
                td { a href={"/console/keys/" (key.uuid())} { bdi { (address.as_deref().unwrap_or("—")) } } }
                td { (delivery(visit, status)) }
            }
        }
    };
    show::table(visit.language, &[Text(words::WEBHOOK_ADDRESS), Text(words::DELIVERY)], rows)
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
    let heading = visit.say(heading);
    Ok(html! {
        section.card aria-labelledby=(name) {
            h2 id=(name) { (heading) " (" (show::count(visit.language, numbers.len() as u64)) ")" }
            @if rows.is_empty() { p.dim { (visit.say(words::NOTHING)) } } @else {
                (show::scrolled(heading, table(visit, &merchant, &rows)))
            }
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
    let heading = visit.say(words::ITS_WEBHOOKS);
    Ok(html! {
        @if !rows.is_empty() {
            section.card aria-labelledby="webhooks" {
                h2 id="webhooks" { (heading) }
                (show::scrolled(heading, table(visit, &merchant, &rows)))
                @if rows.len() == OF_CHARGE_MAX { p { a href={"/console/merchants/" (merchant) "/events"} { (visit.say(words::EVENTS_OF)) } } }
            }
        }
    })
}

type EventDeliveries = (OutboxEvent, Vec<(ObjectId, DeliveryStatus)>);

fn table(visit: &Visit, merchant: &str, rows: &[EventDeliveries]) -> Markup {
    let rows = html! {
        @for (event, statuses) in rows {
            @let kind = visit.say(wire_words::event(event.content.kind));
            tr {
                td.name { (kind) br; a href={"/console/webhooks/" (event.id.uuid())} { code { (event.id.uuid()) } } }
                td.when { (show::short_moment(visit.language, event.at())) }
                td.status {
                    @if statuses.is_empty() { "—" }
                    @for (_, status) in statuses.iter().take(DELIVERIES_MAX) { p { (delivery(visit, status)) } }
                    @if statuses.len() > DELIVERIES_MAX { p.dim { "+ " (statuses.len() - DELIVERIES_MAX) } }
                }
                td.more {
                    @if visit.may(Role::Decide) && !statuses.is_empty() {
                        (again_form(visit, event, merchant, kind))
                    }
                }
            }
        }
    };
    let heads =
        [("name", words::WHAT), ("when", words::WHEN), ("status", words::DELIVERY), ("more", words::SEND_AGAIN)];
    show::list(visit.language, &heads, rows)
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
