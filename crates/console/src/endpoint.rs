//! One API key as a webhook endpoint: its address, its secret, the events that wait or were
//! given up, and its last tries.

use axum::response::Response;
use ledger::{EventChoice, GroupNumber, LedgerId, ObjectId};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::keys::{json_of, revoke_form, shown_secret};
use crate::merchants::{last_used, scopes};
use crate::paging::range;
use crate::table::Table;
use crate::webhooks::{answer, at_endpoint};
use crate::{PageRequest, PostedForm, Screen, Section, Visit, pager_named, part_named, show, wire_words, words};
use ops::webhooks::{WebhookTryView, endpoint, redeliver_given_up, try_views};
use ops::{api_keys, webhooks};
use web::{FormOutcome, Result, Role, query};

/// Tries on a part of the page.
const TRIES_A_PART: u64 = 20;

/// Page of an API key.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, parts } = &request;
    let (group, key) = endpoint(desk, id)?;
    visit.sees(Some(group))?;
    let ledger = LedgerId::Merchant(group);
    let merchant = show::merchant_id(&desk.engine, ledger).unwrap_or_default().uuid().to_string();
    let row = desk.engine.known_api_key(key)?;
    let address = row.webhook.url.as_deref();
    let (waiting, mut given_up) = (desk.webhooks.waiting(group, key), desk.webhooks.given_up(group, key));
    given_up.reverse();
    let at = |name, heading, numbers: &[u64]| at_endpoint(desk, visit, parts, (group, key), (name, heading, numbers));
    let is_behind = !waiting.is_empty() || !given_up.is_empty();
    let waiting = at("waiting", words::WAITING, &waiting)?;
    let of_given_up = at("given-up", words::GIVEN_UP, &given_up)?;
    let body = html! {
        section.card aria-label=(visit.say(words::API_KEY)) {
            (show::facts(vec![
                (visit.say(words::ID), html! { code { (id) } }),
                (visit.say(words::MERCHANT), show::owner_link(&desk.engine, visit.language, ledger)),
                (visit.say(words::SCOPES), html! { (scopes(visit, &row.scopes.names())) }),
                (visit.say(words::WEBHOOK_ADDRESS), html! { bdi { (address.unwrap_or("—")) } }),
                (visit.say(words::EVENTS_SENT), html! { (chosen(visit, row.webhook.events)) }),
                (visit.say(words::GIVEN_UP), html! { (given_up.len()) }),
                (visit.say(words::LAST_USED), last_used(visit, api_keys::last_used_at(desk, key).as_deref())),
            ]))
            @if visit.may(Role::Decide) && is_behind { (visit.form(&format!("/console/keys/{id}/redeliver"), html! {}, words::SEND_ALL_AGAIN)) }
            @if visit.may(Role::Decide) && address.is_some() {
                (visit.form(&format!("/console/keys/{id}/test"), html! {}, words::SEND_TEST))
            }
        }
        @if visit.may(Role::Admin) {
            (visit.card("change", words::CHANGE, html! {
                (address_form(visit, id, address))
                (rotate_form(visit, id))
                (revoke_form(visit, &merchant, id))
            }))
        }
        (waiting)
        (of_given_up)
        (tries(&request, group, key)?)
    };
    Ok(Screen { section: Section::Webhooks, title: visit.say(words::API_KEY).to_owned(), body })
}

/// The events that an address receives.
fn chosen(visit: &Visit, events: EventChoice) -> String {
    let all = || visit.say(words::ALL_KINDS).to_owned();
    events.names().map_or_else(all, |names| names.join(", "))
}

fn address_form(visit: &Visit, id: &str, address: Option<&str>) -> Markup {
    let fields = html! {
        label for="webhook_url" { (visit.say(words::WEBHOOK_ADDRESS)) }
        input id="webhook_url" name="webhook_url" type="url" maxlength="2048" value=[address] placeholder="https://…" autocomplete="off";
    };
    visit.form(&format!("/console/keys/{id}/address"), fields, words::SET_ADDRESS)
}

fn rotate_form(visit: &Visit, id: &str) -> Markup {
    let what = html! { p.dim { (visit.say(words::ROTATE_WHAT)) } };
    visit.form(&format!("/console/keys/{id}/rotate"), what, words::ROTATE)
}

fn tries(PageRequest { desk, visit, parts, .. }: &PageRequest, group: GroupNumber, key: ObjectId) -> Result<Markup> {
    let mut all = desk.webhooks.tries(group, key);
    let (page, total) = (part_named(&query(parts)?, "tries", TRIES_A_PART)?, all.len());
    let rows: Vec<WebhookTryView> = try_views(desk, group, all.drain(range(total, page)).collect())?;
    let table = Table::of(visit.language, words::LAST_TRIES, &rows)
        .text(words::WHAT, |row| visit.say(wire_words::event_named(row.kind)))
        .text(words::ID, |row| show::code_link("webhooks", &row.event_id))
        .text(words::LAST_ANSWER, |row| answer(visit, Some(&row.answer)))
        .text(words::RESPONSE, |row| html! { samp { bdi { (row.response) } } });
    Ok(visit.card(
        "tries",
        words::LAST_TRIES,
        html! {
            (table.shown()) (pager_named(visit, parts, "tries", page, total as u64))
        },
    ))
}

/// Sends a test event, as `POST /ops/endpoints/{id}/test` does, and shows how it ended.
pub(crate) async fn test(posted: PostedForm) -> Response {
    let PostedForm { visit, id, .. } = &posted;
    let tested = async {
        let ended = posted.call(webhooks::test, "/ops/endpoints/{id}/test", json!({})).await?;
        Ok(tested_screen(visit, id, &json_of(ended).await?))
    };
    visit.answer(tested.await)
}

/// Page with the outcome of a test event.
fn tested_screen(visit: &Visit, id: &str, ended: &Value) -> Screen {
    let cause = ended["cause"].as_str().map_or(words::ACCEPTED, |name| wire_words::CAUSES.of(name));
    let how = html! {
        @if let Some(status) = ended["status"].as_u64() { (status) " " }
        (visit.say(cause)) " " span.dim { (ended["duration_ms"].as_u64().unwrap_or_default()) " ms" }
    };
    let body = html! {
        section.card role="status" aria-label=(visit.say(words::SEND_TEST)) {
            (show::facts(vec![
                (visit.say(words::LAST_ANSWER), how),
                (visit.say(words::RESPONSE), html! { code { bdi { (ended["response"].as_str().unwrap_or_default()) } } }),
            ]))
        }
        p { a href={"/console/keys/" (id)} { "← " (visit.say(words::API_KEY)) } }
    };
    Screen { section: Section::Webhooks, title: visit.say(words::SEND_TEST).to_owned(), body }
}

/// Delivers what waits or was given up, as `POST /ops/endpoints/{id}/redeliver` does.
pub(crate) async fn send_all_again(posted: PostedForm) -> Response {
    let sent = posted.call(redeliver_given_up, "/ops/endpoints/{id}/redeliver", json!({})).await;
    posted.visit.done(sent, &format!("/console/keys/{}", posted.id), FormOutcome::AllSentAgain)
}

/// Sets the address, as the route of `/ops` does.
pub(crate) async fn set_address(posted: PostedForm) -> Response {
    let address = Some(posted.form.value("webhook_url")).filter(|address| !address.is_empty());
    let body = json!({"webhook_url": address});
    let set = posted.call(api_keys::change, "/ops/api-keys/{id}/address", body).await;
    posted.visit.done(set, &format!("/console/keys/{}", posted.id), FormOutcome::AddressSet)
}

/// Makes a new webhook secret and shows it, as the route of `/ops` does.
pub(crate) async fn rotate(posted: PostedForm) -> Response {
    let PostedForm { visit, id, .. } = &posted;
    let rotated = async {
        let rotated = posted.call(api_keys::rotate_secret, "/ops/api-keys/{id}/rotate-secret", json!({})).await;
        let made = json_of(rotated?).await?;
        Ok(shown_secret(visit, id, made["webhook_secret"].as_str().unwrap_or("—")))
    };
    visit.answer(rotated.await)
}
