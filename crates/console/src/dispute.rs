//! Opening a dispute of a charge: the entries that it will book, and then the dispute. The reversal
//! of one that was accepted and is won later.

use axum::response::{IntoResponse, Redirect, Response};
use ledger::{ObjectId, PaymentMethod};
use maud::{Markup, html};
use serde_json::json;

use crate::form::{amount, optional};
use crate::{PageRequest, PostedForm, Screen, Section, Visit, show, words};
use ops::disputes;
use ops::preview::of_new_dispute;
use web::{Code, FormOutcome, Problem, Result, Role, query};

/// Postings that are shown.
const POSTINGS_MAX: usize = 120;

/// The form on the page of a charge: how much, and the kind that its method has.
pub(crate) fn form(visit: &Visit, txid: &str, method: PaymentMethod) -> Markup {
    html! {
        @if visit.may(Role::Decide) {
            (visit.card("dispute", words::OPEN_DISPUTE, html! {
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
            }))
        }
    }
}

/// The entries that a dispute will book, and the form that opens it.
pub(crate) async fn confirm(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id: txid, parts } = &request;
    visit.operator.require(Role::Decide)?;
    visit.sees(ObjectId::parse(txid).map(|id| desk.engine.ids().group(id)))?;
    let pairs = query(parts)?;
    let amount = amount(visit.language, "amount", optional(&pairs, "amount")?.unwrap_or_default())?;
    let kind = optional(&pairs, "kind")?.unwrap_or("chargeback");
    let record = of_new_dispute(desk, txid, amount, kind).await?;
    let mut room = POSTINGS_MAX;
    let fields = html! {
        input type="hidden" name="amount" value=(amount);
        input type="hidden" name="kind" value=(kind);
        (visit.reason_field("reason"))
    };
    let body = html! {
        (visit.card("booked", words::BOOKS_AT_ONCE, html! {
            (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
            (visit.main_form(&format!("/console/charges/{txid}/dispute"), fields, words::OPEN_DISPUTE))
        }))
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
    visit.answer_with(opened.await.map(|_| Redirect::to(&format!("/console/find?q={id}")).into_response()))
}

/// The form on the page of an accepted dispute: it was won later.
pub(crate) fn reversal_form(visit: &Visit, id: &str) -> Markup {
    let fields = html! {
        (visit.reason_field("reverse-reason"))
        label for="reverse-reference" { (visit.say(words::REFERENCE)) }
        input id="reverse-reference" name="reference" maxlength="100" autocomplete="off";
    };
    let content = html! {
        p.dim { (visit.say(words::REVERSE_WHAT)) }
        (visit.form(&format!("/console/queue/{id}/reverse"), fields, words::REVERSE_DISPUTE))
    };
    html! { @if visit.may(Role::Decide) { (visit.card("reverse", words::REVERSE_DISPUTE, content)) } }
}

/// Asks for the reversal, as the route of `/ops` does.
pub(crate) async fn reverse(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let reference = Some(form.value("reference").trim()).filter(|reference| !reference.is_empty());
    let body = json!({"reason": form.value("reason"), "reference": reference});
    let asked = posted.call(disputes::reverse, "/ops/disputes/{id}/reverse", body).await;
    visit.done(asked, &format!("/console/queue/{id}"), FormOutcome::EntryAsked)
}
