//! Change of a merchant: its name, what it may do, its fees, options and rate limits.

use std::num::NonZeroU32;

use actors::engine::MerchantRow;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::form::amount;
use crate::merchants::{FIXED, MDR_BASES, RATES, SPLIT_GUARDS};
use crate::{PageRequest, PostedForm, Screen, Section, Visit, Word, show, words};
use ops::merchants;
use web::views::ledger::merchant_profile;
use web::{Code, FormBody, FormOutcome, Problem, Result, Role, not_found};

/// The form, with what stands.
pub(crate) async fn form(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, .. } = &request;
    visit.operator.require(Role::Admin)?;
    let group = merchants::find(desk, id)?;
    visit.sees(Some(group))?;
    let row = desk.engine.merchant(group, Clone::clone).ok_or_else(not_found)?;
    let profile = merchant_profile(&desk.engine, group);
    let body = html! {
        form.card method="post" action={"/console/merchants/" (id) "/change"} {
            (visit.form_fields())
            input type="hidden" name="name-before" value=(profile.name);
            input type="hidden" name="city-before" value=(profile.city);
            (field("name", visit.say(words::NAME), &profile.name, 140))
            (field("city", visit.say(words::CITY), &profile.city, 60))
            (choice("split_enabled", visit.say(words::SPLITS), row.settings.split_enabled))
            (choice("cashout_enabled", visit.say(words::CASHOUTS), row.settings.cashout_enabled))
            (fees(visit, &row))
            (options(visit, &row))
            p.actions { button.primary type="submit" { (visit.say(words::CHANGE)) } }
        }
    };
    Ok(Screen { section: Section::Merchants, title: format!("{} · {}", visit.say(words::CHANGE), profile.name), body })
}

fn field(name: &str, label: &str, value: &str, most: u16) -> Markup {
    html! {
        label for=(name) { (label) }
        input id=(name) name=(name) value=(value) maxlength=(most) autocomplete="off";
    }
}

fn choice(name: &str, label: &str, is_on: bool) -> Markup {
    html! { label { input type="checkbox" name=(name) value="on" checked[is_on]; " " (label) } }
}

fn fees(visit: &Visit, row: &MerchantRow) -> Markup {
    let fees = &row.settings.fees;
    let decimal = |number: &str| show::decimal(visit.language, number);
    html! {
        fieldset {
            legend { (visit.say(words::PRICES)) }
            div.filters {
                @for (label, path, of) in RATES {
                    @let rate = of(fees).as_percent().to_string();
                    div { (field(last(path), &format!("{} (%)", visit.say(label)), &decimal(&rate), 8)) }
                }
                @for (label, name, _, of) in FIXED {
                    @let fee = reais(of(fees).0);
                    div { (field(name, &format!("{} (R$)", visit.say(label)), &decimal(&fee), 12)) }
                }
            }
        }
    }
}

/// The name of a rate in the form.
fn last(path: &[&'static str]) -> &'static str {
    path.last().copied().unwrap_or_default()
}

/// Centavos as the form takes them.
fn reais(centavos: i64) -> String {
    format!("{}.{:02}", centavos / 100, centavos % 100)
}

fn options(visit: &Visit, row: &MerchantRow) -> Markup {
    let (settings, options) = (&row.settings, &row.settings.options);
    let one_of = |name: &'static str, heading: Word, names: [(&'static str, Word); 2], is_second: bool| {
        html! {
            div {
                label for=(name) { (visit.say(heading)) }
                select id=(name) name=(name) {
                    @for (place, (value, word)) in names.into_iter().enumerate() {
                        option value=(value) selected[(place == 1) == is_second] { (visit.say(word)) }
                    }
                }
            }
        }
    };
    let limit = |limit: Option<NonZeroU32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    html! {
        fieldset {
            legend { (visit.say(words::OPTIONS)) }
            div.filters {
                (one_of("split_guard", words::SPLIT_GUARD, SPLIT_GUARDS, options.split_guard_net))
                (one_of("mdr_base", words::MDR_BASE, MDR_BASES, options.mdr_on_seller_gross))
                div { (field("card_settlement_days", visit.say(words::SETTLEMENT_DAYS), &options.card_settlement_days.to_string(), 3)) }
                div { (field("limit_card", visit.say(words::LIMIT_CARD), &limit(settings.card_requests_per_minute), 7)) }
                div { (field("limit_other", visit.say(words::LIMIT_OTHER), &limit(settings.other_requests_per_minute), 7)) }
            }
            (choice("refund_commission", visit.say(words::REFUND_COMMISSION), options.refund_commission))
            (choice("own_keys", visit.say(words::OWN_KEYS), !options.own_keys_forbidden))
            p.dim { (visit.say(words::LIMIT_EMPTY)) }
        }
    }
}

/// Changes the merchant, as the route of `/ops` does.
pub(crate) async fn change(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let changed = async {
        posted.require(Role::Admin)?;
        let mut body = wanted(visit, form)?;
        for (name, before) in [("name", "name-before"), ("city", "city-before")] {
            // A profile that stays is not sealed anew. The form alone decides, so that sending it
            // again is the same request.
            if form.value(name) != form.value(before) {
                if name == "name" && form.value(name).is_empty() {
                    return Err(Problem::new(Code::ValidationFailed));
                }
                body[name] = Value::from(form.value(name));
            }
        }
        posted.call(merchants::change, "/ops/merchants/{id}", body).await
    };
    visit.done(changed.await, &format!("/console/merchants/{id}"), FormOutcome::MerchantChanged)
}

/// The request that the form stands for, without the profile.
fn wanted(visit: &Visit, form: &FormBody) -> Result<Value> {
    let number = |name| match form.value(name).trim() {
        "" => Value::Null,
        text => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    };
    let is_on = |name| form.value(name) == "on";
    let mut body = json!({
        "split_enabled": is_on("split_enabled"),
        "cashout_enabled": is_on("cashout_enabled"),
        "options": {
            "split_guard": form.value("split_guard"),
            "mdr_base": form.value("mdr_base"),
            "refund_commission": is_on("refund_commission"),
            "own_keys": is_on("own_keys"),
            "card_settlement_days": number("card_settlement_days"),
        },
        "rate_limits": {"card": number("limit_card"), "other": number("limit_other")},
    });
    for (_, path, _) in RATES {
        let place = path.iter().fold(&mut body, |place, part| &mut place[*part]);
        *place = Value::from(form.value(last(path)).trim().replace(',', "."));
    }
    for (_, name, wire, _) in FIXED {
        body["fees"][wire] = Value::from(amount(visit.language, name, form.value(name))?);
    }
    Ok(body)
}
