//! Sandbox: the clock that is moved by hand, PIX charges that are paid, test cards.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;

use crate::keys::admin;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, show, words};
use ops::sandbox::{advance_clock, pay_pix};
use web::{Code, FormOutcome, Problem, Result, Role, not_found};

/// Moves that the form offers: hours.
const HOURS: [(u32, words::Word); 5] = [
    (1, words::ONE_HOUR),
    (24, words::ONE_DAY),
    (7 * 24, words::ONE_WEEK),
    (30 * 24, words::THIRTY_DAYS),
    (365 * 24, words::ONE_YEAR),
];

/// Card numbers that the sandbox acquirer answers in its own way.
const CARDS: [(&str, words::Word); 4] = [
    ("4111 1111 1111 1111", words::CARD_APPROVED),
    ("4000 0000 0000 0002", words::CARD_REFUSED),
    ("4000 0000 0000 9995", words::CARD_WITHOUT_FUNDS),
    ("4000 0000 0000 0119", words::CARD_SILENT),
];

/// The page; absent where money is real.
pub(crate) async fn form(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, .. } = &request;
    visit.whole()?;
    if !desk.sandbox {
        return Err(not_found());
    }
    let hours = html! {
        label for="hours" { (visit.say(words::MOVE_CLOCK)) }
        select id="hours" name="hours" { @for (hours, word) in HOURS { option value=(hours) { (visit.say(word)) } } }
    };
    let body = html! {
        (visit.card("clock", words::CLOCK, html! {
            p { (show::moment(visit.language, visit.now)) }
            @if visit.may(Role::Admin) { (visit.main_form("/console/sandbox", hours, words::MOVE)) }
        }))
        @if visit.may(Role::Admin) { (pix_form(visit)) }
        (visit.card("cards", words::TEST_CARDS, html! {
            (show::facts(CARDS.map(|(number, word)| (visit.say(word), html! { code { (number) } })).into()))
        }))
    };
    Ok(Screen { section: Section::Sandbox, title: visit.say(words::SANDBOX).to_owned(), body })
}

fn pix_form(visit: &Visit) -> Markup {
    let fields = html! {
        label for="txid" { "txid" }
        input id="txid" name="txid" required maxlength="36" autocomplete="off";
    };
    visit.card("pix", words::PAY_PIX, visit.form("/console/sandbox/pix", fields, words::PAY))
}

/// Pays a PIX charge as its payer would, as the route of `/ops` does.
pub(crate) async fn pay(posted: PostedForm) -> Response {
    let txid = posted.form.value("txid").trim().to_owned();
    let paid = async {
        require_sandbox(&posted)?;
        posted.call_about(&txid, pay_pix, "/ops/sandbox/pix/{txid}/pay", json!({})).await
    };
    posted.visit.done(paid.await, "/console/sandbox", FormOutcome::PixPaid(txid))
}

/// Moves the clock, as the route of `/ops` does.
pub(crate) async fn advance(posted: PostedForm) -> Response {
    let moved = async {
        require_sandbox(&posted)?;
        let hours: u32 = posted.form.value("hours").parse().map_err(|_| Problem::new(Code::ValidationFailed))?;
        let sent = posted.request("/ops/sandbox/clock", &json!({"advance_seconds": u64::from(hours) * 3_600}));
        advance_clock(State(Arc::clone(&posted.desk)), admin(&posted.visit)?, sent).await
    };
    posted.visit.done(moved.await, "/console/sandbox", FormOutcome::ClockMoved)
}

/// A form that only a sandbox has. Errors: a smaller role; money is real.
fn require_sandbox(posted: &PostedForm) -> Result<()> {
    posted.require(Role::Admin)?;
    posted.desk.sandbox.then_some(()).ok_or_else(not_found)
}
