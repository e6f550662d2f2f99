//! Refund that an operator starts on the page of a charge. It moves no money: the page of the item
//! in the queue shows the entries before they are approved.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;

use crate::form::amount;
use crate::{PostedForm, Visit, words};
use ops::refunds;
use web::{Code, FormOutcome, Role};

/// The form on the page of a paid charge.
pub(crate) fn form(visit: &Visit, txid: &str) -> Markup {
    let fields = html! {
        label for="refund-amount" { (visit.say(words::AMOUNT)) " (R$)" }
        input id="refund-amount" name="amount" inputmode="decimal" maxlength="20" autocomplete="off" aria-describedby="refund-all";
        p.dim id="refund-all" { (visit.say(words::REFUND_ALL)) }
        (visit.reason_field("refund-reason"))
    };
    let form = visit.form(&format!("/console/charges/{txid}/refunds"), fields, words::START_REFUND);
    html! { @if visit.may(Role::Decide) { (visit.card("refund", words::START_REFUND, form)) } }
}

/// Starts the refund, as the route of `/ops` does, and leads to its charge, which lists it.
pub(crate) async fn start(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let started = async {
        posted.require(Role::Decide)?;
        let amount = match form.value("amount") {
            "" => None,
            text => Some(amount(visit.language, "amount", text)?),
        };
        let mut body = json!({"reason": form.value("reason")});
        if let Some(amount) = amount {
            body["amount"] = json!(amount);
        }
        let started = posted.call(refunds::start, "/ops/charges/{txid}/refunds", body).await;
        started.map_err(|problem| match problem.code() {
            Code::RefundExceedsAvailable => {
                let message = problem.message_shown().to_owned();
                problem.field("amount", "exceeds_available", message)
            }
            _ => problem,
        })
    };
    visit.done(started.await, &format!("/console/charges/{id}"), FormOutcome::RefundStarted)
}
