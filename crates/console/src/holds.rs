//! Suspension of a merchant and hold of its payouts: the forms on the merchant's page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::fees::Settings;
use maud::{Markup, html};
use serde_json::json;

use crate::page::Visit;
use crate::sent_form::PostedForm;
use crate::words::{self, Word};
use ops::desk::Desk;
use ops::operator::Decider;
use ops::{merchant_holds, merchants};
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

/// The forms that suspend a merchant or hold its payouts, or end that.
pub(crate) fn forms(visit: &Visit, id: &str, settings: &Settings) -> Markup {
    let suspend = if settings.suspended { ("resume", words::RESUME) } else { ("suspend", words::SUSPEND) };
    let hold = match settings.payouts_held {
        true => ("release-payouts", words::RELEASE_PAYOUTS),
        false => ("hold-payouts", words::HOLD_PAYOUTS),
    };
    html! {
        @if visit.may(Role::Decide) {
            section.card aria-labelledby="holds" {
                h2 id="holds" { (visit.say(words::HOLDS_HEADING)) }
                p.dim { (visit.say(words::HOLDS_WHAT)) }
                form method="post" action={"/console/merchants/" (id) "/holds"} {
                    (visit.form_fields())
                    label for="hold-reason" { (visit.say(words::NOTES)) }
                    textarea id="hold-reason" name="reason" rows="2" maxlength="500" required {}
                    p.actions { @for (name, word) in [suspend, hold] { (button(visit, name, word)) } }
                }
            }
        }
    }
}

fn button(visit: &Visit, name: &str, word: Word) -> Markup {
    html! { button type="submit" name="change" value=(name) { (visit.say(word)) } }
}

/// Suspends or holds, as the routes of `/ops` do.
pub(crate) async fn change(
    State(desk): State<Arc<Desk>>,
    PathId(id): PathId,
    PostedForm { visit, form }: PostedForm,
) -> Response {
    let changed = async {
        visit.operator.require(Role::Decide)?;
        visit.sees(Some(merchants::find(&desk, &id)?))?;
        let body = json!({ "reason": form.value("reason") }).to_string();
        let sent = |path| KeyedBody::of_form(form.value("key"), path, body.clone());
        let key = |path| (State(Arc::clone(&desk)), Decider(visit.operator.clone()), PathId(id.clone()), sent(path));
        match form.value("change") {
            "suspend" => {
                let (desk, operator, id, sent) = key("/ops/merchants/{id}/suspend");
                merchant_holds::suspend(desk, operator, id, sent).await
            }
            "resume" => {
                let (desk, operator, id, sent) = key("/ops/merchants/{id}/resume");
                merchant_holds::resume(desk, operator, id, sent).await
            }
            "hold-payouts" => {
                let (desk, operator, id, sent) = key("/ops/merchants/{id}/hold-payouts");
                merchant_holds::hold_payouts(desk, operator, id, sent).await
            }
            "release-payouts" => {
                let (desk, operator, id, sent) = key("/ops/merchants/{id}/release-payouts");
                merchant_holds::release_payouts(desk, operator, id, sent).await
            }
            _ => Err(Problem::new(Code::ValidationFailed)),
        }
    };
    visit.done(changed.await, &format!("/console/merchants/{id}"), FormOutcome::MerchantChanged)
}
