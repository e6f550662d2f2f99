//! Opening a dispute of a charge: the entries that it will book, and then the dispute. The reversal
//! of one that was accepted and is won later.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::fees::PaymentMethod;
use ledger::id::ObjectId;
use maud::{Markup, html};
use serde_json::json;

use crate::form::{amount, optional};
use crate::page::{Screen, Section, Visit};
use crate::sent_form::PostedForm;
use crate::show;
use crate::words;
use ops::desk::Desk;
use ops::disputes;
use ops::preview::of_new_dispute;
use web::caller::PathId;
use web::credential::Role;
use web::problem::{Code, Problem};
use web::reply::query;
use web::session::FormOutcome;

/// Postings that are shown.
const POSTINGS_MAX: usize = 120;

/// The form on the page of a charge: how much, and the kind that its method has.
pub(crate) fn form(visit: &Visit, txid: &str, method: PaymentMethod) -> Markup {
    html! {
        @if visit.may(Role::Decide) {
            section.card aria-labelledby="dispute" {
                h2 id="dispute" { (visit.say(words::OPEN_DISPUTE)) }
                form.filters action={"/console/charges/" (txid) "/dispute"} {
                    div {
                        label for="amount" { (visit.say(words::AMOUNT)) " (R$)" }
                        input id="amount" name="amount" inputmode="decimal" required maxlength="20" autocomplete="off";
                    }
                    div {
                        label for="kind" { (visit.say(words::KIND)) }
                        select id="kind" name="kind" {
                            @if method.is_card() { option value="chargeback" { (visit.say(words::KIND_CHARGEBACK)) } }
                            @else { option value="med" { (visit.say(words::KIND_MED)) } }
                        }
                    }
                    button type="submit" { (visit.say(words::SHOW_ENTRIES)) }
                }
            }
        }
    }
}

/// The entries that a dispute will book, and the form that opens it.
pub(crate) async fn confirm(
    State(desk): State<Arc<Desk>>,
    visit: Visit,
    PathId(txid): PathId,
    parts: Parts,
) -> Response {
    let made = screen(&desk, &visit, &txid, &parts).await;
    visit.answer(made)
}

async fn screen(desk: &Desk, visit: &Visit, txid: &str, parts: &Parts) -> Result<Screen, Problem> {
    visit.operator.require(Role::Decide)?;
    visit.sees(ObjectId::parse(txid).map(|id| desk.engine.ids().group(id)))?;
    let pairs = query(parts)?;
    let amount = amount(visit.language, "amount", optional(&pairs, "amount")?.unwrap_or_default())?;
    let kind = optional(&pairs, "kind")?.unwrap_or("chargeback");
    let record = of_new_dispute(desk, txid, amount, kind).await?;
    let mut room = POSTINGS_MAX;
    let body = html! {
        section.card aria-labelledby="booked" {
            h2 id="booked" { (visit.say(words::BOOKS_AT_ONCE)) }
            (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
            form method="post" action={"/console/charges/" (txid) "/dispute"} {
                (visit.form_fields())
                input type="hidden" name="amount" value=(amount);
                input type="hidden" name="kind" value=(kind);
                label for="reason" { (visit.say(words::NOTES)) }
                textarea id="reason" name="reason" rows="2" maxlength="500" required {}
                p.actions { button.primary type="submit" { (visit.say(words::OPEN_DISPUTE)) } }
            }
        }
        p { a href={"/console/charges/" (txid)} { "← " (visit.say(words::CHARGE)) } }
    };
    let title = format!("{} · {}", visit.say(words::OPEN_DISPUTE), visit.money(amount));
    Ok(Screen { section: Section::Found, title, body })
}

/// Opens the dispute, as the route of `/ops` does.
pub(crate) async fn open(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let opened = async {
        posted.require(Role::Decide)?;
        let amount: i64 = form.value("amount").parse().map_err(|_| Problem::new(Code::ValidationFailed))?;
        let body = json!({"amount": amount, "kind": form.value("kind"), "reason": form.value("reason")});
        posted.call(disputes::open, "/ops/charges/{txid}/disputes", body).await
    };
    match opened.await {
        Ok(_) => Redirect::to(&format!("/console/find?q={id}")).into_response(),
        Err(problem) => visit.answer(Err(problem)),
    }
}

/// The form on the page of an accepted dispute: it was won later.
pub(crate) fn reversal_form(visit: &Visit, id: &str) -> Markup {
    html! {
        @if visit.may(Role::Decide) {
            section.card aria-labelledby="reverse" {
                h2 id="reverse" { (visit.say(words::REVERSE_DISPUTE)) }
                p.dim { (visit.say(words::REVERSE_WHAT)) }
                form method="post" action={"/console/queue/" (id) "/reverse"} {
                    (visit.form_fields())
                    label for="reverse-reason" { (visit.say(words::NOTES)) }
                    textarea id="reverse-reason" name="reason" rows="2" maxlength="500" required {}
                    label for="reverse-reference" { (visit.say(words::REFERENCE)) }
                    input id="reverse-reference" name="reference" maxlength="100" autocomplete="off";
                    p.actions { button type="submit" { (visit.say(words::REVERSE_DISPUTE)) } }
                }
            }
        }
    }
}

/// Asks for the reversal, as the route of `/ops` does.
pub(crate) async fn reverse(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let reference = Some(form.value("reference").trim()).filter(|reference| !reference.is_empty());
    let body = json!({"reason": form.value("reason"), "reference": reference});
    let asked = posted.call(disputes::reverse, "/ops/disputes/{id}/reverse", body).await;
    visit.done(asked, &format!("/console/queue/{id}"), FormOutcome::EntryAsked)
}
