//! The books: the trial balance, a ledger's accounts, a ledger's entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::account::Account;
use ledger::entry::{Balance, Side};
use ledger::id::{LedgerId, ObjectId};
use serde::Serialize;
use utoipa::ToSchema;

use super::merchants;
use crate::http::app::{App, Operator, PathId};
use crate::http::charges::recipient_id;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{List, PageQuery, list_of, ok, only, query, time};
use crate::http::sub_recipients::find_recipient;

/// Every account of every ledger, at one cut.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialBalance {
    /// The last Record counted, by partition of the journal.
    #[schema(example = json!({"0": 42}))]
    cut: BTreeMap<&'static str, u64>,
    /// True when debits equal credits, in every ledger.
    balanced: bool,
    /// The accounts.
    accounts: Vec<AccountRow>,
}

/// One account; amounts in centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountRow {
    /// `M-…`, `R-…` or `P-…`.
    #[schema(example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    ledger: String,
    /// Its full name.
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
pub struct PostingRow {
    /// The account's full name.
    #[schema(example = "Assets:Platform:Available")]
    account: String,
    /// `debit` or `credit`.
    #[schema(pattern = "^(debit|credit)$")]
    side: &'static str,
    /// Centavos.
    amount: i64,
}

/// The trial balance.
#[utoipa::path(get, path = "/ops/trial-balance", operation_id = "get_trial_balance",
    responses((status = 200, body = TrialBalance), (status = 400)))]
pub async fn trial_balance(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    Ok(ok(trial_balance_of(&app)))
}

/// Every account of every ledger, at one cut.
pub fn trial_balance_of(app: &App) -> TrialBalance {
    let (through, rows) = app.engine.projector().trial_balance();
    let mut sums: BTreeMap<LedgerId, i128> = BTreeMap::new();
    for (ledger, _, balance) in &rows {
        *sums.entry(*ledger).or_default() += balance.net();
    }
    TrialBalance {
        cut: BTreeMap::from([("0", through.0)]),
        balanced: sums.values().all(|sum| *sum == 0),
        accounts: rows.iter().map(|(ledger, account, balance)| account_row(app, *ledger, *account, *balance)).collect(),
    }
}

/// A ledger's accounts.
#[utoipa::path(get, path = "/ops/ledgers/{id}/accounts", operation_id = "list_accounts", params(("id" = String, Path, pattern = "^[MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")),
    responses((status = 200, body = Items<AccountRow>)))]
pub async fn accounts(State(app): State<Arc<App>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    let ledger = find(&app, &id)?;
    let balances = app.engine.projector().balances(ledger);
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
    let (total, sequences) = app.engine.projector().entries_page(ledger, page.skip(), page.count())?;
    list_of(total, page, sequences.into_iter().map(move |sequence| entry_row(&app, ledger, sequence)))
}

fn entry_row(app: &App, ledger: LedgerId, sequence: Sequence) -> Result<EntryRow, Problem> {
    let record = app.engine.record(sequence)?;
    let lines = record.entries_of(ledger).flat_map(|entry| entry.postings());
    let postings = lines.map(|posting| PostingRow {
        account: account_name(app, ledger, posting.account),
        side: if posting.side == Side::Debit { "debit" } else { "credit" },
        amount: posting.amount.0,
    });
    let postings = postings.collect();
    Ok(EntryRow { sequence: sequence.0, effective_at: time(record.effective_at), postings })
}

/// The ledger of an outside name.
pub(super) fn find(app: &App, name: &str) -> Result<LedgerId, Problem> {
    let not_found = || Problem::new(Code::NotFound);
    let (kind, id) = name.split_once('-').ok_or_else(not_found)?;
    match kind {
        "M" => merchants::find(app, id).map(LedgerId::Merchant),
        "P" => merchants::find(app, id).map(LedgerId::Platform),
        "R" => {
            let found = ObjectId::parse(id).and_then(|id| find_recipient(app, id));
            found.map(|(ledger, _)| ledger).ok_or_else(not_found)
        }
        _ => Err(not_found()),
    }
}

/// The outside name of a ledger.
pub fn ledger_name(app: &App, ledger: LedgerId) -> String {
    let merchant = ledger.group().and_then(|group| app.engine.projector().merchant(group, |row| row.id));
    let uuid = |id: Option<ObjectId>| id.unwrap_or_default().uuid();
    match ledger {
        LedgerId::Merchant(_) => format!("M-{}", uuid(merchant)),
        LedgerId::Platform(_) => format!("P-{}", uuid(merchant)),
        LedgerId::Recipient(..) => format!("R-{}", uuid(recipient_id(app, ledger))),
        LedgerId::System => "system".to_owned(),
    }
}

fn account_name(app: &App, ledger: LedgerId, account: Account) -> String {
    account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(app, ledger))
}

fn account_row(app: &App, ledger: LedgerId, account: Account, balance: Balance) -> AccountRow {
    AccountRow {
        ledger: ledger_name(app, ledger),
        account: account_name(app, ledger, account),
        debits: balance.debits,
        credits: balance.credits,
        balance: balance.net(),
    }
}
