//! Opening a merchant, and its API keys: made, shown once, revoked. The routes of `/ops` do it.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::{PostedForm, Screen, Section, Visit, Word, show, words};
use ops::{Admin, api_keys, merchants};
use web::{Code, Problem, Result, Role, failed};

/// Most bytes of an answer of a route of `/ops`: more than the 3,000 lines of a reconciliation
/// have.
const ANSWER_MAX: usize = 16 << 20;

/// The form of a new merchant.
pub(crate) async fn new_merchant(visit: Visit) -> Response {
    let made = visit.operator.require(Role::Admin).and_then(|()| visit.whole()).map(|()| {
        let field = |name: &'static str, word: Word, most: u16, is_required: bool| {
            html! {
                label for=(name) { (visit.say(word)) }
                input id=(name) name=(name) maxlength=(most) required[is_required] autocomplete="off";
            }
        };
        let body = html! {
            form.card method="post" action="/console/merchants" {
                (visit.form_fields())
                (field("name", words::NAME, 140, true))
                (field("document", words::TAX_ID, 18, true))
                (field("city", words::CITY, 60, false))
                (choice("split_enabled", visit.say(words::SPLITS)))
                (choice("cashout_enabled", visit.say(words::CASHOUTS)))
                p.actions { button.primary type="submit" { (visit.say(words::OPEN_MERCHANT)) } }
            }
        };
        Screen { section: Section::Merchants, title: visit.say(words::NEW_MERCHANT).to_owned(), body }
    });
    visit.answer(made)
}

fn choice(name: &'static str, text: &str) -> Markup {
    html! { label { input type="checkbox" name=(name) value="on"; " " (text) } }
}

/// Takes the form that opens a merchant, and leads to the merchant's page.
pub(crate) async fn open_merchant(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, form, .. } = &posted;
    let opened = async {
        posted.require(Role::Admin)?;
        let mut body = Map::new();
        for name in ["name", "document", "city"] {
            if !form.value(name).is_empty() {
                body.insert(name.to_owned(), Value::from(form.value(name)));
            }
        }
        for name in ["split_enabled", "cashout_enabled"] {
            body.insert(name.to_owned(), Value::from(form.value(name) == "on"));
        }
        let sent = posted.request("/ops/merchants", &Value::Object(body));
        json_of(merchants::create(State(Arc::clone(desk)), admin(visit)?, sent).await?).await
    };
    visit.answer_with(opened.await.map(|merchant| led_to(visit, merchant["id"].as_str())))
}

fn led_to(visit: &Visit, merchant: Option<&str>) -> Response {
    match merchant {
        Some(id) => Redirect::to(&format!("/console/merchants/{id}")).into_response(),
        None => visit.answer(Err(failed("an answer names no merchant"))),
    }
}

/// Makes an API key and shows it, once.
pub(crate) async fn create(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let made = async {
        let address = Some(form.value("webhook_url")).filter(|address| !address.is_empty());
        let body = json!({"webhook_url": address});
        let answer = posted.call(api_keys::create, "/ops/merchants/{id}/api-keys", body).await?;
        shown_once(visit, id, &json_of(answer).await?)
    };
    visit.answer(made.await)
}

fn shown_once(visit: &Visit, merchant: &str, made: &Value) -> Result<Screen> {
    let text = |name: &str| made[name].as_str().unwrap_or("—").to_owned();
    let body = html! {
        section.card aria-label=(visit.say(words::API_KEY)) {
            p.warning role="status" { (visit.say(words::SHOWN_ONCE)) }
            (show::facts(vec![
                (visit.say(words::ID), html! { code { (text("id")) } }),
                (visit.say(words::API_KEY), html! { code.hash { (text("api_key")) } }),
                (visit.say(words::WEBHOOK_SECRET), html! { code.hash { (text("webhook_secret")) } }),
            ]))
        }
        p { a href={"/console/merchants/" (merchant)} { "← " (visit.say(words::MERCHANT)) } }
    };
    Ok(Screen { section: Section::Merchants, title: visit.say(words::NEW_KEY).to_owned(), body })
}

/// The page that shows a new webhook secret, once.
pub(crate) fn shown_secret(visit: &Visit, key: &str, secret: &str) -> Screen {
    let body = html! {
        section.card aria-label=(visit.say(words::WEBHOOK_SECRET)) {
            p.warning role="status" { (visit.say(words::SHOWN_ONCE)) }
            (show::facts(vec![(visit.say(words::WEBHOOK_SECRET), html! { code.hash { (secret) } })]))
            p { (visit.say(words::ROTATE_WHAT)) }
        }
        p { a href={"/console/keys/" (key)} { "← " (visit.say(words::API_KEY)) } }
    };
    Screen { section: Section::Webhooks, title: visit.say(words::WEBHOOK_SECRET).to_owned(), body }
}

/// Revokes an API key.
pub(crate) async fn revoke(posted: PostedForm) -> Response {
    let PostedForm { visit, form, .. } = &posted;
    let revoked = async {
        if form.value("sure") != "on" {
            return Err(Problem::new(Code::ValidationFailed).says(visit.say(words::NOT_SURE)));
        }
        posted.call(api_keys::revoke, "/ops/api-keys/{id}", json!({})).await
    };
    let merchant = Some(form.value("merchant")).filter(|id| id.bytes().all(is_of_id));
    visit.answer_with(revoked.await.map(|_| led_to(visit, merchant)))
}

fn is_of_id(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-'
}

/// The form of a new key.
pub(crate) fn key_form(visit: &Visit, merchant: &str) -> Markup {
    let fields = html! {
        label for="webhook_url" { (visit.say(words::WEBHOOK_ADDRESS)) }
        input id="webhook_url" name="webhook_url" type="url" maxlength="2048" placeholder="https://…" autocomplete="off";
    };
    let action = format!("/console/merchants/{merchant}/keys");
    html! { @if visit.may(Role::Admin) { (visit.form(&action, fields, words::NEW_KEY)) } }
}

/// The form that revokes a key.
pub(crate) fn revoke_form(visit: &Visit, merchant: &str, key: &str) -> Markup {
    html! {
        @if visit.may(Role::Admin) {
            form.inline method="post" action={"/console/keys/" (key) "/revoke"} {
                (visit.form_fields())
                input type="hidden" name="merchant" value=(merchant);
                label { input type="checkbox" name="sure" value="on" required; " " (visit.say(words::SURE)) }
                button type="submit" aria-label={(visit.say(words::REVOKE)) " " (key)} { (visit.say(words::REVOKE)) }
            }
        }
    }
}

/// The operator of a visit, who may do everything.
pub(crate) fn admin(visit: &Visit) -> Result<Admin> {
    visit.operator.require(Role::Admin)?;
    Ok(Admin(visit.operator.clone()))
}

/// The JSON of an answer of a route of `/ops`.
pub(crate) async fn json_of(answer: Response) -> Result<Value> {
    let bytes = to_bytes(answer.into_body(), ANSWER_MAX).await.map_err(failed)?;
    serde_json::from_slice(&bytes).map_err(failed)
}
