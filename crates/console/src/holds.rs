//! Suspension and end of a merchant, hold of its payouts, freeze of a recipient, and withdrawal for
//! one: the forms on their pages.

use axum::response::Response;
use ledger::{LedgerId, ObjectId, Settings};
use maud::{Markup, html};
use serde_json::json;

use crate::table::Table;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, Word, show, wire_words, words};
use ops::DeciderCall;
use ops::closing::{self, MerchantOpenItemView};
use ops::holds;
use ops::merchants;
use ops::withdrawals;
use web::{Code, FormOutcome, Problem, Result, Role};

/// Whether a merchant is suspended, closing or closed, or its payouts are held.
pub(crate) fn badges(visit: &Visit, settings: &Settings) -> Markup {
    let held = [
        (settings.suspended, words::SUSPENDED),
        (settings.payouts_held, words::PAYOUTS_HELD),
        (settings.closing && !settings.closed, words::CLOSING),
        (settings.closed, words::CLOSED),
    ];
    html! { @for (is_so, word) in held { @if is_so { span.badge.bad { (visit.say(word)) } " " } } }
}

/// The form that suspends a merchant or holds its payouts, or ends that; a closed one can only be
/// opened again.
pub(crate) fn of_merchant(visit: &Visit, id: &str, settings: &Settings) -> Markup {
    let suspend = if settings.suspended { ("resume", words::RESUME) } else { ("suspend", words::SUSPEND) };
    let hold = match settings.payouts_held {
        true => ("release-payouts", words::RELEASE_PAYOUTS),
        false => ("hold-payouts", words::HOLD_PAYOUTS),
    };
    let action = format!("/console/merchants/{id}/holds");
    let mut changes = if settings.closed { Vec::new() } else { vec![suspend, hold] };
    changes.extend(settings.closing.then_some(("reopen", words::REOPEN)));
    let heading =
        if settings.closed { [words::REOPEN, words::REOPEN_WHAT] } else { [words::HOLDS_HEADING, words::HOLDS_WHAT] };
    form(visit, "holds", heading, &action, &changes)
}

/// The form that begins to end a merchant, or closes it; none of a closed one.
pub(crate) fn end_of_merchant(visit: &Visit, id: &str, settings: &Settings) -> Markup {
    let action = format!("/console/merchants/{id}/open-items");
    html! {
        @if !settings.closed {
            (form(visit, "close", [words::CLOSE_MERCHANT, words::CLOSE_MERCHANT_WHAT], &action, &[("close", words::CLOSE_MERCHANT)]))
        }
    }
}

/// The form that asks for a withdrawal of all that a recipient has available.
pub(crate) fn withdrawal_of_recipient(visit: &Visit, id: ObjectId) -> Markup {
    let action = format!("/console/recipients/{}/withdraw", id.uuid());
    let change = ("withdraw", words::PAY_RECIPIENT);
    form(visit, "withdraw", [words::PAY_RECIPIENT, words::PAY_RECIPIENT_WHAT], &action, &[change])
}

/// The form that freezes a recipient, or ends that.
pub(crate) fn of_recipient(visit: &Visit, id: ObjectId, frozen: bool) -> Markup {
    let change = if frozen { ("unfreeze", words::UNFREEZE) } else { ("freeze", words::FREEZE) };
    let action = format!("/console/recipients/{}/freeze", id.uuid());
    form(visit, "holds", [change.1, words::FREEZE_WHAT], &action, &[change])
}

/// A form with a reason and a button for each change; its ids begin with `name`.
fn form(visit: &Visit, name: &str, [heading, what]: [Word; 2], action: &str, changes: &[(&str, Word)]) -> Markup {
    html! {
        @if visit.may(Role::Decide) {
            (visit.card(name, heading, html! {
                p.dim { (visit.say(what)) }
                form method="post" action=(action) {
                    (visit.form_fields())
                    (visit.reason_field(&format!("{name}-reason")))
                    p.actions {
                        @for (name, word) in changes {
                            button type="submit" name="change" value=(name) { (visit.say(*word)) }
                        }
                    }
                }
            }))
        }
    }
}

/// Calls a route of `/ops` with the reason of a form.
async fn call<F: Future<Output = Result<Response>>>(
    posted: &PostedForm,
    route: impl FnOnce(DeciderCall) -> F,
    path: &'static str,
) -> Result<Response> {
    posted.call(route, path, json!({ "reason": posted.form.value("reason") })).await
}

/// Suspends or holds, as the routes of `/ops` do.
pub(crate) async fn change_merchant(posted: PostedForm) -> Response {
    let changed = match posted.form.value("change") {
        "suspend" => call(&posted, holds::suspend, "/ops/merchants/{id}/suspend").await,
        "resume" => call(&posted, holds::resume, "/ops/merchants/{id}/resume").await,
        "hold-payouts" => call(&posted, holds::hold_payouts, "/ops/merchants/{id}/hold-payouts").await,
        "release-payouts" => call(&posted, holds::release_payouts, "/ops/merchants/{id}/release-payouts").await,
        "reopen" => call(&posted, holds::reopen, "/ops/merchants/{id}/reopen").await,
        _ => Err(Problem::new(Code::ValidationFailed)),
    };
    posted.visit.done(changed, &format!("/console/merchants/{}", posted.id), FormOutcome::MerchantChanged)
}

/// Freezes a recipient or ends that, as the routes of `/ops` do.
pub(crate) async fn change_recipient(posted: PostedForm) -> Response {
    let changed = match posted.form.value("change") {
        "freeze" => call(&posted, holds::freeze, "/ops/sub-recipients/{id}/freeze").await,
        "unfreeze" => call(&posted, holds::unfreeze, "/ops/sub-recipients/{id}/unfreeze").await,
        _ => Err(Problem::new(Code::ValidationFailed)),
    };
    posted.visit.done(changed, &format!("/console/recipients/{}", posted.id), FormOutcome::Decided)
}

/// Begins to end a merchant or closes it, as the route of `/ops` does.
pub(crate) async fn close_merchant(posted: PostedForm) -> Response {
    let closed = call(&posted, closing::close, "/ops/merchants/{id}/close").await;
    posted.visit.done(closed, &format!("/console/merchants/{}/open-items", posted.id), FormOutcome::MerchantChanged)
}

/// Asks for a withdrawal for a recipient, as the route of `/ops` does.
pub(crate) async fn withdraw(posted: PostedForm) -> Response {
    let asked = call(&posted, withdrawals::ask, "/ops/sub-recipients/{id}/withdraw").await;
    posted.visit.done(asked, &format!("/console/recipients/{}", posted.id), FormOutcome::EntryAsked)
}

/// Page of what is open of a merchant, and the form that ends it.
pub(crate) async fn open_items(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, .. } = &request;
    let group = merchants::find(desk, id)?;
    visit.sees(Some(group))?;
    let (settings, recipients) = desk.engine.known_merchant(group, |row| (row.settings, row.recipients.len()))?;
    let settings = closing::shown_settings(&desk.engine, group, settings, recipients);
    let open = closing::open_items(desk, group).await?;
    let heading = visit.say(words::OPEN_OF_MERCHANT);
    let table = Table::of(visit.language, words::OPEN_OF_MERCHANT, &open.items)
        .text(words::KIND, |item| visit.say(wire_words::OPEN_KINDS.of(item.kind)))
        .text(words::OWNER, |item| html! { bdi { (item.owner.as_deref().unwrap_or_default()) } })
        .text(words::ACCOUNT, |item| open_object(visit, item))
        .amount(words::AMOUNT, |item| item.amount.map(|amount| visit.money(amount)).unwrap_or_default());
    let body = html! {
        section.card aria-labelledby="open" {
            h2 id="open" { (heading) " (" (open.total) ")" }
            p { (badges(visit, &settings)) }
            (table.shown())
        }
        (end_of_merchant(visit, id, &settings))
        p { a href={"/console/merchants/" (id)} { "← " (visit.say(words::MERCHANT)) } }
    };
    let title = format!("{heading} · {}", show::owner_name(&desk.engine, visit.language, LedgerId::Merchant(group)));
    Ok(Screen { section: Section::Merchants, title, body })
}

/// The account of a balance, or a link to an object.
fn open_object(visit: &Visit, item: &MerchantOpenItemView) -> Markup {
    let id = item.id.as_deref().unwrap_or_default();
    html! {
        @match item.kind {
            "balance" => (show::account_named(visit.language, item.account.as_deref().unwrap_or_default())),
            "charge" => (show::code_link("charges", id)),
            "refund" | "dispute" | "entry" => (show::code_link("queue", id)),
            _ => code { (id) },
        }
    }
}
