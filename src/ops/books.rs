//! Books: the trial balance, the accounts of a ledger, the entries of a ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::engine::Listed;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::account::Account;
use ledger::entry::{Balance, Side};
use ledger::id::{LedgerId, ObjectId};
use ledger::record::Record;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::caller::PathId;
use crate::http::json::Checker;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{List, Page, PageQuery, list_of, number, ok, only, query, single, time};
use crate::ops::merchants;
use crate::ops::operator::Operator;
use crate::views::ledger::ledger_name;
use crate::views::recipient::find_recipient;

/// Accounts of all ledgers, each page at one cut.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialBalance {
    /// The last Record counted, by partition of the journal.
    #[schema(example = json!({"0": 42}))]
    cut: BTreeMap<&'static str, u64>,
    /// True when debits equal credits, in every ledger, on whichever page.
    balanced: bool,
    /// The accounts of this page.
    accounts: Vec<AccountRow>,
    /// Accounts on all pages.
    total: u64,
    /// This page, from 1.
    page: u64,
    /// How many pages there are.
    pages: u64,
    /// Accounts a page.
    per_page: u64,
}

/// One account; amounts in centavos.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LedgerAccount)]
pub struct AccountRow {
    /// `M-…`, `R-…` or `P-…`; absent from a sum over all ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    ledger: Option<String>,
    /// Its full name; without ids in a sum over all ledgers.
    #[schema(example = "Assets:Platform:Available")]
    account: String,
    /// Sum of the debit side.
    #[schema(value_type = i64)]
    debits: i128,
    /// Sum of the credit side.
    #[schema(value_type = i64)]
    credits: i128,
    /// Debits minus credits.
    #[schema(value_type = i64)]
    balance: i128,
}

/// One entry of a ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LedgerEntry)]
pub struct EntryRow {
    /// Its place in the journal.
    sequence: u64,
    /// When it took effect.
    effective_at: String,
    /// Its lines.
    postings: Vec<PostingRow>,
}

/// One line of an entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Posting)]
pub struct PostingRow {
    /// The account's full name.
    #[schema(example = "Assets:Platform:Available")]
    account: String,
    /// `debit` or `credit`.
    #[schema(pattern = "^(debit|credit)$")]
    side: &'static str,
    /// Amount of the posting, centavos.
    amount: i64,
}

/// The most accounts of a trial balance on a page, and how many there are unless asked otherwise.
const ACCOUNTS_A_PAGE: u64 = 1_000;

/// The trial balance: the accounts of all ledgers, ledger by ledger; or the sums of the accounts of
/// each name over all ledgers.
#[utoipa::path(get, path = "/ops/trial-balance", operation_id = "get_trial_balance",
    params(("by" = Option<String>, Query, pattern = "^(ledger|account)$", description = "`ledger` when absent; `account` for the sums over all ledgers by the account's name without ids, which fit one page."),
        ("page" = Option<u64>, Query, minimum = 1), ("per_page" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "1,000 when absent.")),
    responses((status = 200, body = TrialBalance), (status = 400)))]
pub async fn trial_balance(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let pairs = query(&parts)?;
    only(&pairs, &["by", "page", "per_page"])?;
    let page = Page {
        page: number(&pairs, "page", 1..=u64::MAX)?.unwrap_or(1),
        per_page: number(&pairs, "per_page", 1..=ACCOUNTS_A_PAGE)?.unwrap_or(ACCOUNTS_A_PAGE),
    };
    let mut check = Checker::new();
    let answer = match single(&pairs, "by")? {
        None | Some("ledger") => Some(by_ledger(&app, page)),
        Some("account") => Some(by_account(&app, page)),
        Some(_) => check.refuse("by", "unknown", "by deve ser ledger ou account"),
    };
    check.finish_with(answer).map(ok)
}

fn by_ledger(app: &App, page: Page) -> TrialBalance {
    let found = app.engine.trial_balance_page(page.skip(), page.count());
    let rows = found.rows.iter().map(|(ledger, account, balance)| account_row(app, *ledger, *account, *balance));
    TrialBalance::of(found.through, found.is_balanced, rows.collect(), found.total, page)
}

fn by_account(app: &App, page: Page) -> TrialBalance {
    let (through, is_balanced, sums) = app.engine.totals();
    let total = sums.len() as u64;
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let sums = sums.into_iter().skip(skip).take(page.count());
    let rows = sums.map(|(account, sum)| AccountRow::new(None, account.kind_name(), sum));
    TrialBalance::of(through, is_balanced, rows.collect(), total, page)
}

impl TrialBalance {
    fn of(through: Sequence, balanced: bool, accounts: Vec<AccountRow>, total: u64, page: Page) -> Self {
        let cut = BTreeMap::from([("0", through.0)]);
        Self { cut, balanced, accounts, total, page: page.page, pages: page.pages(total), per_page: page.per_page }
    }
}

impl AccountRow {
    fn new(ledger: Option<String>, account: String, balance: Balance) -> Self {
        let Balance { debits, credits } = balance;
        Self { ledger, account, debits, credits, balance: balance.net() }
    }
}

/// A ledger's accounts.
#[utoipa::path(get, path = "/ops/ledgers/{id}/accounts", operation_id = "list_accounts", params(("id" = String, Path, pattern = "^[MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")),
    responses((status = 200, body = Items<AccountRow>)))]
pub async fn accounts(State(app): State<Arc<App>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    let ledger = find(&app, &id)?;
    let balances = app.engine.accounts(ledger).await?;
    let items: Vec<_> =
        balances.iter().map(|(account, balance)| account_row(&app, ledger, *account, *balance)).collect();
    let total = items.len();
    Ok(ok(Items { items, total }))
}

/// A list that fits one page.
#[derive(Debug, Serialize, ToSchema)]
struct Items<T> {
    /// The items.
    items: Vec<T>,
    /// How many there are.
    total: usize,
}

/// A ledger's entries, newest first.
#[utoipa::path(get, path = "/ops/ledgers/{id}/entries", operation_id = "list_entries",
    params(("id" = String, Path, pattern = "^[MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e"), ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<EntryRow>)))]
pub async fn entries(
    State(app): State<Arc<App>>,
    _: Operator,
    PathId(id): PathId,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let ledger = find(&app, &id)?;
    let Listed { total, items } = app.engine.entries(ledger, page.skip(), page.count())?;
    list_of(
        total,
        page,
        items.map(move |found| found.map(|found| entry_row(&app, ledger, found)).map_err(Problem::from)),
    )
}

fn entry_row(app: &App, ledger: LedgerId, (sequence, record): (Sequence, Record)) -> EntryRow {
    let lines = record.entries_of(ledger).flat_map(|entry| entry.postings());
    let postings = lines.map(|posting| PostingRow {
        account: account_name(app, ledger, posting.account),
        side: if posting.side == Side::Debit { "debit" } else { "credit" },
        amount: posting.amount.0,
    });
    let postings = postings.collect();
    EntryRow { sequence: sequence.0, effective_at: time(record.effective_at), postings }
}

/// The ledger of an outside name.
pub(super) fn find(app: &App, name: &str) -> Result<LedgerId, Problem> {
    let not_found = || Problem::new(Code::NotFound);
    let (kind, id) = name.split_once('-').ok_or_else(not_found)?;
    match kind {
        "M" => merchants::find(app, id).map(LedgerId::Merchant),
        "P" => merchants::find(app, id).map(LedgerId::Platform),
        "R" => {
            let found = ObjectId::parse(id).and_then(|id| find_recipient(&app.engine, id));
            found.map(|(ledger, _)| ledger).ok_or_else(not_found)
        }
        _ => Err(not_found()),
    }
}

fn account_name(app: &App, ledger: LedgerId, account: Account) -> String {
    account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(&app.engine, ledger))
}

fn account_row(app: &App, ledger: LedgerId, account: Account, balance: Balance) -> AccountRow {
    AccountRow::new(Some(ledger_name(&app.engine, ledger)), account_name(app, ledger, account), balance)
}
