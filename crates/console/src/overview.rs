//! Overview: assets, debts and income of the platform, and the length of the queue.

use std::sync::Arc;

use actors::engine::Totals;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::account::Account;
use maud::{Markup, html};

use crate::page::{Screen, Section, Visit};
use crate::queue::kind_word;
use crate::records::cut_link;
use crate::scope::Scope;
use crate::show;
use crate::words::{self, Word};
use ops::desk::Desk;
use ops::health::readiness;
use ops::queue;
use ops::queue_item::kind_name;
use web::language::Language;

/// The overview. That of one merchant is the merchant's page.
pub(crate) async fn show(State(desk): State<Arc<Desk>>, visit: Visit) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/merchants/{}", id.uuid()))).into_response();
    }
    let body = figures(&desk, visit.language);
    visit.answer(Ok(Screen { section: Section::Overview, title: visit.say(words::OVERVIEW).to_owned(), body }))
}

/// Types of the platform's accounts by the beginning of their names. `true` where credits are the
/// sign of the type.
const TYPES: [(Word, &str, bool); 5] = [
    (words::HOLDS, "Assets:", false),
    (words::OWES, "Liabilities:", true),
    (words::EQUITY, "Equity:", true),
    (words::EARNED, "Income:", true),
    (words::SPENT, "Expenses:", false),
];

/// Whether an account is of the platform's books. Those of merchants and recipients mirror them.
fn is_of_the_platform(account: Account) -> bool {
    use Account::*;
    match account {
        Pending
        | Available
        | ReservedCashout
        | ReservedDispute
        | TransitCashout
        | ReceivableRecipient(_)
        | Deficit
        | SalesCard
        | SalesPix
        | SalesInitialFee
        | ContraSplits
        | ContraRefunds
        | ContraChargebacks
        | OtherIncome
        | FeeMdr
        | FeeAntifraud
        | FeeMargin
        | FeePix
        | FeeCashout
        | LossClawback => false,
        ReservedWithdrawal | TransitWithdrawal | SplitsCard | SplitsPix | SplitReversals | FeeAnticipation
        | Clawback => false,
        AcquirerReceivable
        | BankSettlement
        | BankPix
        | MerchantDeficit
        | MerchantPending
        | MerchantAvailable
        | MerchantReservedCashout
        | MerchantReservedDispute
        | RecipientPending(_)
        | RecipientAvailable(_)
        | RecipientReservedWithdrawal(_)
        | PayersRefunds
        | CommissionMdr
        | CommissionAntifraud
        | CommissionMargin
        | CommissionPix
        | IncomeCashout
        | IncomeAnticipation
        | AcquirerMdr
        | Losses
        | Capital
        | BankOwn
        | Suspense
        | BankFees
        | AcquirerFees => true,
    }
}

/// The books, and what waits.
fn figures(desk: &Desk, language: Language) -> Markup {
    let say = |word: Word| word.text(language);
    let Totals { through, is_balanced, kinds: totals } = desk.engine.totals();
    let sums = TYPES.map(|(heading, name, is_credit)| {
        let of = totals.iter().filter(|(account, _)| is_of_the_platform(*account));
        let of_type = of.filter(|(account, _)| account.kind_name().starts_with(name));
        let net: i128 = of_type.map(|(_, balance)| balance.net()).sum();
        (heading, if is_credit { -net } else { net })
    });
    let now = desk.engine.now();
    let counts = desk.engine.queue_counts(|item| queue::is_shown(item, now).then(|| kind_name(item)));
    let total: usize = counts.values().sum();
    let waiting = queue::KINDS.map(|kind| (kind, counts.get(kind).copied().unwrap_or_default()));
    let readiness = readiness(desk);
    html! {
        section.card aria-labelledby="books" {
            h2 id="books" { (say(words::BOOKS)) }
            dl.figures {
                @for (heading, sum) in sums {
                    div { dt { (say(heading)) } dd { (show::money(language, sum)) } }
                }
            }
            p {
                @if is_balanced { (say(words::BALANCED)) } @else { strong { (say(words::UNBALANCED)) } }
                @if !through.is_empty() { " (" (say(words::THROUGH_RECORD)) " " (cut_link(language, &through)) ")" }
            }
            p {
                a href="/console/health" { (say(words::HEALTH)) } ": "
                @match &readiness {
                    Ok(()) => span.badge.good { (say(words::READY)) },
                    Err(problem) => { span.badge.bad { (say(words::NOT_READY)) } " " (show::problem(language, problem)) }
                }
            }
        }
        section.card aria-labelledby="waits" {
            h2 id="waits" { (say(words::WAITS)) }
            @if total == 0 { p.dim { (say(words::NOTHING)) } }
            dl.figures {
                @for (kind, count) in waiting {
                    div { dt { a href={"/console/queue?kind=" (kind)} { (say(kind_word(kind))) } } dd { (count) } }
                }
            }
        }
    }
}
