//! Trial balance: the sums of all ledgers by account, or the accounts ledger by ledger; now, or at
//! the end of a day. An account leads to the ledgers that have it, and a ledger to
//! its postings. The sums are those of `GET /ops/trial-balance`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::entry::Balance;
use maud::{Markup, html};

use crate::books::{balance_table, day_form};
use crate::form::optional;
use crate::paging::part;
use crate::records::cut_link;
use crate::scope::Scope;
use crate::table::Table;
use crate::{Screen, Section, Visit, pager, show, words};
use ops::books::{
    LedgerAccountView, TrialBalance, TrialBalanceQuery, find, read_patiently, requested_account, requested_cut,
};
use ops::{Desk, DeskState};
use web::{Result, query};

/// Accounts by ledger on a page.
const ACCOUNTS_A_PAGE: u64 = 100;

/// Page of the trial balance. In the scope of one merchant it is the merchant's ledger.
pub(crate) async fn show(State(desk): DeskState, visit: Visit, parts: Parts) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/ledgers/M-{}", id.uuid()))).into_response();
    }
    let made = screen(&desk, &visit, &parts).await;
    visit.answer(made)
}

async fn screen(desk: &Arc<Desk>, visit: &Visit, parts: &Parts) -> Result<Screen> {
    let given: Vec<_> = query(parts)?.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let (cut, account) = (requested_cut(desk, &given)?, requested_account(&given)?);
    let by_account = account.is_none() && optional(&given, "by")? != Some("ledger");
    let page = part(&given, ACCOUNTS_A_PAGE)?;
    let asked =
        TrialBalanceQuery { ledger: None, by_account, account, cut, effect_before: None, level: usize::MAX, page };
    let balance = read_patiently(desk, asked).await?;
    let day_query = kept_day(&given);
    let by = |by: &str, heading, is_current: bool| {
        html! { a.button href={"/console/trial-balance?by=" (by) (day_query)} aria-current=[is_current.then_some("page")] { (visit.say(heading)) } }
    };
    let name = account.map(|account| account.kind_name());
    let body = html! {
        p.actions {
            (by("account", words::BY_ACCOUNT, by_account))
            (by("ledger", words::BY_LEDGER, !by_account && name.is_none()))
            a.button href="/console/periods" { (visit.say(words::MONTHS)) }
        }
        (day_form(visit, &given, &["by", "account"])?)
        section.card aria-label=(visit.say(words::TRIAL_BALANCE)) {
            @if let Some(name) = &name { p { (visit.say(words::LEDGERS_WITH)) " " strong { (show::account_named(visit.language, name)) } } }
            (state(visit, &balance))
            @if by_account { (balance_table(visit, of_kinds(visit, &balance.accounts, &day_query))) } @else {
                (ledgers(desk, visit, &balance.accounts, &day_query))
                (pager(visit, parts, page, balance.total))
            }
        }
    };
    Ok(Screen { section: Section::TrialBalance, title: visit.say(words::TRIAL_BALANCE).to_owned(), body })
}

/// The parameter of the day, as a link goes on with it.
fn kept_day(given: &[(String, String)]) -> String {
    let day_query = given.iter().filter(|(name, _)| name == "date").map(|(name, value)| {
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        format!("&{name}={value}")
    });
    day_query.collect()
}

/// Whether debits equal credits, and through which Record.
fn state(visit: &Visit, balance: &TrialBalance) -> Markup {
    let through = balance.through();
    html! {
        p {
            @if balance.balanced { (visit.say(words::BALANCED)) } @else { strong { (visit.say(words::UNBALANCED)) } }
            @if !through.is_empty() { " (" (visit.say(words::THROUGH_RECORD)) " " (cut_link(visit.language, &through)) ")" }
        }
    }
}

/// The sums by account, each with a link to the ledgers that have the account.
fn of_kinds(visit: &Visit, rows: &[LedgerAccountView], day_query: &str) -> Vec<(Markup, Balance)> {
    let link = |row: &LedgerAccountView| {
        html! { a href={"/console/trial-balance?account=" (row.account) (day_query)} { (show::account_named(visit.language, &row.account)) } }
    };
    rows.iter().map(|row| (link(row), Balance { debits: row.debits, credits: row.credits })).collect()
}

fn ledgers(desk: &Desk, visit: &Visit, rows: &[LedgerAccountView], day_query: &str) -> Markup {
    let then = day_query.strip_prefix('&').map(|day_query| format!("?{day_query}")).unwrap_or_default();
    let owner = |row: &LedgerAccountView| {
        let name = row.ledger.as_deref().unwrap_or_default();
        let owner = find(desk, name).map(|ledger| show::owner_name(&desk.engine, visit.language, ledger));
        html! { a href={"/console/ledgers/" (name) (then) "#entries"} { (name.get(..2).unwrap_or_default()) bdi { (owner.unwrap_or_default()) } } }
    };
    let column = |centavos| show::column(visit.language, centavos);
    Table::of(visit.language, words::TRIAL_BALANCE, rows)
        .text(words::LEDGER, owner)
        .text(words::ACCOUNT, |row| show::account_named(visit.language, &row.account))
        .amount(words::DEBIT, |row| column(row.debits))
        .amount(words::CREDIT, |row| column(row.credits))
        .amount(words::BALANCE, |row| column(row.balance))
        .shown()
}
