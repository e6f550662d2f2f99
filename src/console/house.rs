//! House ledger: the platform's own books, what waits for a second operator, and the form that asks
//! for an entry.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::event::HouseEntryTerms;
use ledger::house::{HouseAccount, HouseEntry};
use ledger::id::LedgerId;
use maud::{Markup, html};
use serde_json::json;

use crate::app::App;
use crate::console::books::balance_table;
use crate::console::form::{centavos, hidden_key};
use crate::console::page::{Screen, Section, Visit};
use crate::console::posted::Posted;
use crate::console::show;
use crate::console::words;
use crate::http::body::{FormBody, JsonBody};
use crate::http::credential::Role;
use crate::http::idempotency::SentKey;
use crate::http::problem::{Code, Problem};
use crate::http::session::Done;
use crate::http::timestamp::date;
use crate::ops::entries;
use crate::ops::operator::Decider;
use crate::ops::queue::kind_name;

/// Entries that wait and are shown; the queue has all.
const WAITING_MAX: usize = 40;

/// Page of the house ledger.
pub async fn show(State(app): State<Arc<App>>, visit: Visit) -> Response {
    let made = screen(&app, &visit).await;
    visit.answer(made)
}

async fn screen(app: &App, visit: &Visit) -> Result<Screen, Problem> {
    visit.whole()?;
    let accounts = app.engine.accounts(LedgerId::System).await?;
    let name = |account: &ledger::account::Account| account.name(Default::default(), |_| String::new());
    let accounts = accounts.iter().map(|(account, balance)| (show::breakable(&name(account)), *balance)).collect();
    let body = html! {
        section.card aria-labelledby="balances" {
            h2 id="balances" { (visit.say(words::BALANCE)) }
            (balance_table(visit, accounts))
            p.actions { a.button href="/console/ledgers/P-house" { (visit.say(words::LEDGER)) } }
        }
        section.card aria-labelledby="waits" {
            h2 id="waits" { (visit.say(words::WAITS)) }
            (waiting(app, visit)?)
        }
        @if visit.may(Role::Decide) { (form(visit)) }
    };
    Ok(Screen { section: Section::House, title: visit.say(words::HOUSE).to_owned(), body })
}

fn waiting(app: &App, visit: &Visit) -> Result<Markup, Problem> {
    let (_, items) = app.engine.queue(|item| kind_name(item) == "entry", WAITING_MAX);
    let mut entries = Vec::new();
    for item in items {
        entries.extend(app.engine.object::<HouseEntry>(item.id)?);
    }
    let heading = visit.say(words::WAITS);
    Ok(html! {
        @if entries.is_empty() { p.dim { (visit.say(words::NOTHING)) } } @else {
            (show::scrolled(heading, html! {
                table {
                    thead {
                        tr {
                            th scope="col" { (visit.say(words::DEBIT)) }
                            th scope="col" { (visit.say(words::CREDIT)) }
                            th.amount scope="col" { (visit.say(words::AMOUNT)) }
                            th scope="col" { (visit.say(words::WHO)) }
                            th scope="col" { (visit.say(words::NOTES)) }
                            th scope="col" { (visit.say(words::REFERENCE)) }
                        }
                    }
                    tbody {
                        @for entry in &entries {
                            @let HouseEntryTerms { debit, credit, amount, reference, effective_day } = &entry.terms;
                            tr {
                                td { a href={"/console/queue/" (entry.id.uuid())} { (show::breakable(&debit.account().kind_name())) } }
                                td { (show::breakable(&credit.account().kind_name())) }
                                td.amount { (visit.money(amount.0)) }
                                td { bdi { (entry.requested_by) } }
                                td { bdi { (entry.reason) } }
                                td { bdi { (reference) } @if let Some(day) = effective_day { " · " (date(*day)) } }
                            }
                        }
                    }
                }
            }))
        }
    })
}

fn form(visit: &Visit) -> Markup {
    let account = |name: &'static str, word: words::Word| {
        html! {
            label for=(name) { (visit.say(word)) }
            select id=(name) name=(name) {
                @for account in HouseAccount::ALL { option { (account.account().kind_name()) } }
            }
        }
    };
    html! {
        section.card aria-labelledby="ask" {
            h2 id="ask" { (visit.say(words::ASK_ENTRY)) }
            form method="post" action="/console/house" {
                (visit.token_field())
                (hidden_key())
                (account("debit", words::DEBIT))
                (account("credit", words::CREDIT))
                label for="amount" { (visit.say(words::AMOUNT)) " (R$)" }
                input id="amount" name="amount" inputmode="decimal" required maxlength="20" autocomplete="off";
                label for="reason" { (visit.say(words::NOTES)) }
                textarea id="reason" name="reason" rows="2" maxlength="500" required {}
                label for="reference" { (visit.say(words::REFERENCE)) }
                input id="reference" name="reference" required maxlength="100" autocomplete="off";
                p.dim { (visit.say(words::SECOND_OPERATOR)) }
                p.actions { button.primary type="submit" { (visit.say(words::ASK_ENTRY)) } }
            }
        }
    }
}

/// Asks for an entry, as the route of `/ops` does.
pub async fn ask(State(app): State<Arc<App>>, Posted { visit, form }: Posted) -> Response {
    let asked = async {
        visit.operator.require(Role::Decide)?;
        visit.whole()?;
        let key = SentKey::of_form(form.value("key"), "/ops/entries");
        entries::request(State(Arc::clone(&app)), Decider(visit.operator.clone()), key, wanted(&visit, &form)?).await
    };
    match asked.await {
        Ok(_) => visit.done(&app, "/console/house", Done::EntryAsked),
        Err(problem) => visit.answer(Err(problem)),
    }
}

/// The request that the form stands for.
fn wanted(visit: &Visit, form: &FormBody) -> Result<JsonBody, Problem> {
    let wrong = || Problem::new(Code::ValidationFailed).detail(visit.say(words::AMOUNT_WRONG));
    let amount = centavos(visit.language, form.value("amount")).ok_or_else(wrong)?;
    let text = |name| form.value(name);
    let body = json!({
        "debit": text("debit"), "credit": text("credit"), "amount": amount,
        "reason": text("reason"), "reference": text("reference"),
    });
    Ok(JsonBody::made(body.to_string()))
}
