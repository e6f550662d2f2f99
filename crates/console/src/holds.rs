//! Suspension of a merchant, hold of its payouts, and freeze of a recipient: the forms on their
//! pages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::fees::Settings;
use ledger::id::ObjectId;
use maud::{Markup, html};
use serde_json::json;

use crate::page::Visit;
use crate::sent_form::PostedForm;

use crate::words::{self, Word};
use ops::desk::Desk;
use ops::holds::{self, HoldCall};
use ops::merchants;
use ops::operator::Decider;
use web::body::FormBody;
use web::caller::PathId;
use web::credential::Role;
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::session::FormOutcome;

/// Whether a merchant is suspended, or its payouts are held.
pub(crate) fn badges(visit: &Visit, settings: &Settings) -> Markup {
    let held = [(settings.suspended, words::SUSPENDED), (settings.payouts_held, words::PAYOUTS_HELD)];
    html! { @for (is_so, word) in held { @if is_so { span.badge.bad { (visit.say(word)) } " " } } }
}

/// The form that suspends a merchant or holds its payouts, or ends that.
pub(crate) fn of_merchant(visit: &Visit, id: &str, settings: &Settings) -> Markup {
    let suspend = if settings.suspended { ("resume", words::RESUME) } else { ("suspend", words::SUSPEND) };
    let hold = match settings.payouts_held {
        true => ("release-payouts", words::RELEASE_PAYOUTS),
        false => ("hold-payouts", words::HOLD_PAYOUTS),
    };
    let action = format!("/console/merchants/{id}/holds");
    form(visit, [words::HOLDS_HEADING, words::HOLDS_WHAT], &action, &[suspend, hold])
}

/// The form that freezes a recipient, or ends that.
pub(crate) fn of_recipient(visit: &Visit, id: ObjectId, frozen: bool) -> Markup {
    let change = if frozen { ("unfreeze", words::UNFREEZE) } else { ("freeze", words::FREEZE) };
    let action = format!("/console/recipients/{}/freeze", id.uuid());
    form(visit, [change.1, words::FREEZE_WHAT], &action, &[change])
}

/// A form with a reason and a button for each change.
fn form(visit: &Visit, [heading, what]: [Word; 2], action: &str, changes: &[(&str, Word)]) -> Markup {
    html! {
        @if visit.may(Role::Decide) {
            section.card aria-labelledby="holds" {
                h2 id="holds" { (visit.say(heading)) }
                p.dim { (visit.say(what)) }
                form method="post" action=(action) {
                    (visit.form_fields())
                    label for="hold-reason" { (visit.say(words::NOTES)) }
                    textarea id="hold-reason" name="reason" rows="2" maxlength="500" required {}
                    p.actions {
                        @for (name, word) in changes {
                            button type="submit" name="change" value=(name) { (visit.say(*word)) }
                        }
                    }
                }
            }
        }
    }
}

/// The call of a route of `/ops` that a form asks for.
fn call(desk: &Arc<Desk>, visit: &Visit, id: &str, form: &FormBody, path: &'static str) -> HoldCall {
    let body = json!({ "reason": form.value("reason") }).to_string();
    let sent = KeyedBody::of_form(form.value("key"), path, body);
    (State(Arc::clone(desk)), Decider(visit.operator.clone()), PathId(id.to_owned()), sent)
}

/// Suspends or holds, as the routes of `/ops` do.
pub(crate) async fn change_merchant(
    State(desk): State<Arc<Desk>>,
    PathId(id): PathId,
    PostedForm { visit, form }: PostedForm,
) -> Response {
    let changed = async {
        visit.operator.require(Role::Decide)?;
        visit.sees(Some(merchants::find(&desk, &id)?))?;
        let call = |path| call(&desk, &visit, &id, &form, path);
        match form.value("change") {
            "suspend" => holds::suspend(call("/ops/merchants/{id}/suspend")).await,
            "resume" => holds::resume(call("/ops/merchants/{id}/resume")).await,
            "hold-payouts" => holds::hold_payouts(call("/ops/merchants/{id}/hold-payouts")).await,
            "release-payouts" => holds::release_payouts(call("/ops/merchants/{id}/release-payouts")).await,
            _ => Err(Problem::new(Code::ValidationFailed)),
        }
    };
    visit.done(changed.await, &format!("/console/merchants/{id}"), FormOutcome::MerchantChanged)
}

/// Freezes a recipient or ends that, as the routes of `/ops` do.
pub(crate) async fn change_recipient(
    State(desk): State<Arc<Desk>>,
    PathId(id): PathId,
    PostedForm { visit, form }: PostedForm,
) -> Response {
    let changed = async {
        visit.operator.require(Role::Decide)?;
        visit.sees(ObjectId::parse(&id).map(|id| desk.engine.ids().group(id)))?;
        let call = |path| call(&desk, &visit, &id, &form, path);
        match form.value("change") {
            "freeze" => holds::freeze(call("/ops/sub-recipients/{id}/freeze")).await,
            "unfreeze" => holds::unfreeze(call("/ops/sub-recipients/{id}/unfreeze")).await,
            _ => Err(Problem::new(Code::ValidationFailed)),
        }
    };
    visit.done(changed.await, &format!("/console/recipients/{id}"), FormOutcome::Decided)
}
