//! Books: the trial balance, the accounts of a ledger, the entries of a ledger.

use std::sync::Arc;

use actors::engine::Listed;
use actors::engine::{SumOfKind, SumsAsOf, Totals};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use derived::names::HOUSE;
use derived::records::LoadError;
use ledger::{Account, Balance, Balances, LedgerId, ObjectId, Posting, Record, Side, Timestamp};
use serde::Serialize;
use store::cut::{Cut, Position, positions};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;
use wire::cut_text::{CutView, by_partition, cut_name, cut_of};
use wire::timestamp::{PeriodLimit, day};

use crate::named_ledger::named_ledger;
use crate::{Desk, DeskState, Operator, merchants};
use web::reply::list_of;
use web::streamed_body::{ReadPace, in_turn, streamed, turn, turn_in_time};
use web::views::ledger::ledger_name;
use web::views::recipient::find_recipient;
use web::{
    Checker, List, Page, PageQuery, PathId, Problem, Result, not_found, number, ok, one_of, query, refused, single,
    time,
};

/// Accounts of all ledgers, each page at one cut.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialBalance {
    /// The last Record counted, by partition of the journal.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"0": 42}))]
    cut: CutView,
    /// True when debits equal credits, in every ledger, on whichever page.
    pub balanced: bool,
    /// The accounts of this page.
    pub accounts: Vec<LedgerAccountView>,
    /// Accounts on all pages.
    pub total: u64,
    /// This page, from 1.
    page: u64,
    /// How many pages there are.
    pages: u64,
    /// Accounts a page.
    per_page: u64,
}

/// One account; amounts in centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct LedgerAccountView {
    /// `M-…`, `R-…`, `P-…` or `P-house`; absent from a sum over all ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// Its full name; without ids in a sum over all ledgers.
    pub account: String,
    /// Sum of the debit side.
    #[schema(value_type = i64)]
    pub debits: i128,
    /// Sum of the credit side.
    #[schema(value_type = i64)]
    pub credits: i128,
    /// Debits minus credits.
    #[schema(value_type = i64)]
    pub balance: i128,
}

/// One entry of a ledger.
#[derive(Debug, Serialize, ToSchema)]
pub struct LedgerEntryView {
    /// Its place in the journal of its partition.
    sequence: u64,
    /// The partition.
    partition: u16,
    /// When it took effect.
    effective_at: String,
    /// Its lines.
    postings: Vec<PostingView>,
}

/// One line of an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct PostingView {
    /// The account's full name.
    account: String,
    /// `debit` or `credit`.
    #[schema(pattern = "^(debit|credit)$")]
    side: &'static str,
    /// Amount of the posting, centavos.
    amount: i64,
}

/// The most accounts of a trial balance on a page, and how many there are unless asked otherwise.
const ACCOUNTS_A_PAGE: u64 = 1_000;
/// Codes of accounts that are looked through for a name.
const ACCOUNT_CODES_MAX: u16 = 999;

/// The trial balance: the accounts of all ledgers, ledger by ledger; or the sums of the accounts of
/// each name over all ledgers.
///
/// With `date` it has the books at the end of a day in America/Sao_Paulo, by the time of booking.
/// `by=effect` has the sums of `by=account`, or the accounts of `ledger`, by the day of effect:
/// what was booked after `date` and took effect by then counts too. `ledger` shows the accounts of
/// one ledger, and `level` sums accounts by the first parts of their
/// names. `account` shows the ledgers that have an account of this name. `format=csv` streams all
/// accounts.
#[utoipa::path(get, path = "/ops/trial-balance", operation_id = "get_trial_balance",
    params(("by" = Option<String>, Query, pattern = "^(ledger|account|effect)$", description = "`ledger` when absent; `account` for the sums over all ledgers by the account's name without ids, which fit one page; `effect` for these by the day of effect."),
        ("date" = Option<String>, Query, format = Date, example = "2026-11-30", description = "The last day that counts."),
        ("ledger" = Option<String>, Query, max_length = 200, description = "One ledger, by its name, by the id of its merchant or recipient, or by their name where it is unique; all of them when absent."),
        ("level" = Option<u64>, Query, minimum = 1, maximum = 9, description = "Parts of the names by which accounts are summed; with `ledger` or `by=account`."),
        ("account" = Option<String>, Query, max_length = 60, example = "Liabilities:Suspense", description = "Only the accounts of this name, without ids, ledger by ledger; not with `ledger`, `by=account` or `format=csv`."),
        ("format" = Option<String>, Query, pattern = "^(json|csv)$", description = "`json` when absent; `csv` for all accounts by ledger, without pages."),
        ("page" = Option<u64>, Query, minimum = 1), ("per_page" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "1,000 when absent.")),
    responses((status = 200, content((TrialBalance = "application/json"), (String = "text/csv"))), (status = 400), (status = 404)))]
pub async fn trial_balance(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let (asked, as_csv) = asked(&desk, &pairs)?;
    if as_csv {
        return csv(&desk, asked.cut).await;
    }
    read(&desk, asked).await.map(ok)
}

/// What a trial balance is asked for.
#[derive(Clone, Debug)]
pub struct TrialBalanceQuery {
    /// One ledger; all of them when absent.
    pub ledger: Option<LedgerId>,
    /// Sums over all ledgers by the accounts' names.
    pub by_account: bool,
    /// Only accounts of this kind, ledger by ledger.
    pub account: Option<Account>,
    /// The last Records of the day that it is of; all that are published when absent.
    pub cut: Option<Cut>,
    /// The end of that day, where what took effect before it counts, whenever it was booked.
    pub effect_before: Option<Timestamp>,
    /// Parts of the names by which accounts are summed.
    pub level: usize,
    /// The page.
    pub page: Page,
}

fn asked(desk: &Desk, pairs: &[(String, String)]) -> Result<(TrialBalanceQuery, bool)> {
    let page = Page {
        page: number(pairs, "page", 1..=u64::MAX)?.unwrap_or(1),
        per_page: number(pairs, "per_page", 1..=ACCOUNTS_A_PAGE)?.unwrap_or(ACCOUNTS_A_PAGE),
    };
    let level = number(pairs, "level", 1..=9)?;
    let ledger = single(pairs, "ledger")?.map(|name| named_ledger(desk, "ledger", name)).transpose()?;
    let end = requested_end(pairs)?;
    let cut = end.map(|end| desk.engine.last_booked_before(end)).transpose()?;
    let account = requested_account(pairs)?;
    let by = one_of(pairs, "by", &["ledger", "account", "effect"])?;
    let by_account = matches!(by, Some("account" | "effect"));
    let effect_before = end.filter(|_| by == Some("effect"));
    let as_csv = one_of(pairs, "format", &["json", "csv"])? == Some("csv");
    let mut check = Checker::new();
    let is_one_list = ledger.is_some() || by_account;
    if level.is_some() && !is_one_list {
        check.refuse::<()>("level", "not_summed", "level precisa de ledger ou de by=account");
    }
    if as_csv && is_one_list {
        check.refuse::<()>("format", "not_streamed", "csv traz todas as contas: sem ledger e sem by=account");
    }
    if account.is_some() && (is_one_list || as_csv) {
        check.refuse::<()>("account", "not_filtered", "account não vem com ledger, by=account nem format=csv");
    }
    check.finish()?;
    let level = level.map_or(usize::MAX, |level| level as usize);
    Ok((TrialBalanceQuery { ledger, by_account, account, cut, effect_before, level, page }, as_csv))
}

/// The kind of account that a query names, if it does.
pub fn requested_account(pairs: &[(String, String)]) -> Result<Option<Account>> {
    let Some(name) = single(pairs, "account")? else { return Ok(None) };
    let found = (1..=ACCOUNT_CODES_MAX).filter_map(Account::of_kind).find(|account| account.kind_name() == name);
    let found = found.ok_or_else(|| refused("account", "unknown", "account deve ser o nome de uma conta, sem ids"));
    found.map(Some)
}

/// The trial balance that is asked for. What needs the books of the past is read one at a time, on
/// a thread that may wait: an answer that waits longer than 2 s for the one before is 503.
pub async fn read(desk: &Arc<Desk>, asked: TrialBalanceQuery) -> Result<TrialBalance> {
    if !asked.is_of_the_past() {
        return read_now(desk, asked);
    }
    let turn = turn(&desk.reading_past, "Other books of the past are being read.").await?;
    read_in_turn(desk, asked, turn).await
}

/// The trial balance that is asked for, as soon as no other books of the past are read.
pub async fn read_patiently(desk: &Arc<Desk>, asked: TrialBalanceQuery) -> Result<TrialBalance> {
    if !asked.is_of_the_past() {
        return read_now(desk, asked);
    }
    read_in_turn(desk, asked, turn_in_time(&desk.reading_past).await).await
}

async fn read_in_turn(desk: &Arc<Desk>, asked: TrialBalanceQuery, turn: OwnedSemaphorePermit) -> Result<TrialBalance> {
    let reading = Arc::clone(desk);
    in_turn(turn, move || read_now(&reading, asked)).await
}

fn read_now(desk: &Desk, asked: TrialBalanceQuery) -> Result<TrialBalance> {
    let TrialBalanceQuery { ledger, by_account, account, cut, effect_before, level, page } = asked;
    if let Some(ledger) = ledger {
        return of_ledger(desk, ledger, (cut, effect_before), (level, page));
    }
    Ok(match (by_account, cut) {
        (true, None) => by_kind(desk.engine.totals(), (level, page)),
        (true, Some(cut)) => {
            let mut totals = of_the_past(desk.engine.sums_as_of(&cut)?);
            if let Some(end) = effect_before {
                let (late, through) = booked_later(desk, &cut, end, None)?;
                (totals.through, totals.is_balanced) = (through, totals.is_balanced && is_balanced(&late));
                totals.kinds.extend(late);
            }
            by_kind(totals, (level, page))
        }
        (false, None) if account.is_none() => by_ledger(desk, page),
        (false, cut) => by_ledger_as_of(desk, &cut.unwrap_or_else(|| desk.engine.published()), account, page)?,
    })
}

impl TrialBalanceQuery {
    /// Whether the answer needs books of the past. The read model has no list by account either.
    fn is_of_the_past(&self) -> bool {
        self.cut.is_some() || self.account.is_some()
    }
}

/// Sums of the past as the read model gives those of the present.
fn of_the_past(sums: SumsAsOf) -> Totals {
    let kinds = sums.kinds.iter().map(|SumOfKind { account, balance, .. }| (*account, *balance));
    Totals { is_balanced: sums.is_balanced, kinds: kinds.collect(), through: sums.through }
}

/// The last Records of the day whose books are asked for, if they are.
pub fn requested_cut(desk: &Desk, pairs: &[(String, String)]) -> Result<Option<Cut>> {
    Ok(requested_end(pairs)?.map(|end| desk.engine.last_booked_before(end)).transpose()?)
}

/// The end of the day whose books are asked for, if they are.
fn requested_end(pairs: &[(String, String)]) -> Result<Option<Timestamp>> {
    let Some(date) = single(pairs, "date")? else { return Ok(None) };
    let named = day(date).and_then(|_| PeriodLimit::parse(date));
    let named = named.ok_or_else(|| refused("date", "invalid_date", "date deve ser uma data (AAAA-MM-DD)"));
    Ok(Some(Timestamp(named?.end)))
}

/// Sums of what was booked after a cut and took effect before `end`, by account of one ledger, or
/// by kind of account of all; and the last Records that were read, from the cut on. Nothing takes
/// effect after it is booked.
fn booked_later(desk: &Desk, after: &Cut, end: Timestamp, of: Option<LedgerId>) -> Result<(Balances, Cut)> {
    let (mut sums, through) = (Balances::new(), desk.engine.published());
    let mut pace = ReadPace::new(&desk.engine);
    for block in desk.engine.blocks(after) {
        let block = block.map_err(Problem::from)?;
        let records = positions(&block).filter(|(at, _)| through.contains(*at) && !after.contains(*at));
        for (at, bytes) in records {
            let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence: at.sequence.0, error })?;
            if record.takes_effect_at() >= end {
                continue;
            }
            for entry in record.entries.iter().filter(|entry| of.is_none_or(|ledger| entry.ledger() == ledger)) {
                for posting in entry.postings() {
                    let kind = Account::of_kind(posting.account.code().0).filter(|_| of.is_none());
                    sums.entry(kind.unwrap_or(posting.account)).or_default().post(posting);
                }
            }
        }
        pace.step();
    }
    Ok((sums, through))
}

fn is_balanced(sums: &Balances) -> bool {
    sums.values().map(|balance| balance.net()).sum::<i128>() == 0
}

/// The accounts of one ledger, now or at a cut; with the end of the cut's day, by the day of
/// effect.
fn of_ledger(
    desk: &Desk,
    ledger: LedgerId,
    (cut, effect_before): (Option<Cut>, Option<Timestamp>),
    (level, page): (usize, Page),
) -> Result<TrialBalance> {
    let mut through = cut.unwrap_or_else(|| desk.engine.published());
    let mut balances = desk.engine.ledger_as_of(ledger, &through)?;
    if let Some(end) = effect_before {
        let (late, last) = booked_later(desk, &through, end, Some(ledger))?;
        late.into_iter().for_each(|(account, sum)| balances.entry(account).or_default().add(sum));
        through = last;
    }
    let named = balances.iter().map(|(account, balance)| (account_name(desk, ledger, *account), *balance));
    let name = ledger_name(&desk.engine, ledger);
    let rows =
        summed(named, level).into_iter().map(|(account, sum)| LedgerAccountView::new(Some(name.clone()), account, sum));
    Ok(TrialBalance::paged(&through, is_balanced(&balances), rows.collect(), page))
}

/// Balances by the first `level` parts of the accounts' names.
fn summed(balances: impl Iterator<Item = (String, Balance)>, level: usize) -> Vec<(String, Balance)> {
    let mut sums: Vec<(String, Balance)> = Vec::new();
    for (name, balance) in balances {
        let shown = name.match_indices(':').nth(level - 1).map_or(name.as_str(), |(end, _)| &name[..end]);
        match sums.iter_mut().find(|(known, _)| known == shown) {
            Some((_, sum)) => sum.add(balance),
            None => sums.push((shown.to_owned(), balance)),
        }
    }
    sums
}

fn by_ledger(desk: &Desk, page: Page) -> TrialBalance {
    let found = desk.engine.trial_balance_page(page.skip(), page.count());
    let rows = found.rows.iter().map(|(ledger, account, balance)| account_row(desk, *ledger, *account, *balance));
    TrialBalance::of(&found.through, found.is_balanced, rows.collect(), found.total, page)
}

fn by_ledger_as_of(desk: &Desk, cut: &Cut, wanted: Option<Account>, page: Page) -> Result<TrialBalance> {
    let is_wanted = |account: Account| wanted.is_none_or(|wanted| wanted.code().0 == account.code().0);
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    Ok(desk.engine.read_as_of(cut, |books| {
        let sums = books.sums()?;
        let total = sums.kinds.iter().filter(|kind| is_wanted(kind.account)).map(|kind| kind.count).sum();
        let found = books.rows().filter(|row| row.as_ref().map_or(true, |(_, account, _)| is_wanted(*account)));
        let rows = found.skip(skip).take(page.count()).map(|row| {
            let (ledger, account, balance) = row?;
            Ok(account_row(desk, ledger, account, balance))
        });
        Ok(TrialBalance::of(&sums.through, sums.is_balanced, rows.collect::<Result<_, LoadError>>()?, total, page))
    })?)
}

fn by_kind(totals: Totals, (level, page): (usize, Page)) -> TrialBalance {
    let Totals { through, is_balanced, kinds } = totals;
    let sums = summed(kinds.into_iter().map(|(account, sum)| (account.kind_name(), sum)), level);
    let rows = sums.into_iter().map(|(account, sum)| LedgerAccountView::new(None, account, sum));
    TrialBalance::paged(&through, is_balanced, rows.collect(), page)
}

/// All accounts, ledger by ledger, as a stream of CSV.
async fn csv(desk: &Arc<Desk>, cut: Option<Cut>) -> Result<Response> {
    let one_at_a_time = turn(&desk.reading_past, "Other books of the past are being read.").await?;
    let (reading, cut) = (Arc::clone(desk), cut.unwrap_or_else(|| desk.engine.published()));
    let name = format!("attachment; filename=\"trial-balance_{}.csv\"", cut_name(&cut));
    let body = streamed("a trial balance", move |out| {
        let _until_it_ends = one_at_a_time;
        let as_of = reading.engine.balances_as_of(&cut)?;
        out.write_all(b"ledger,account,debits,credits,balance\r\n")?;
        for row in as_of.rows() {
            let (ledger, account, balance) = row?;
            let Balance { debits, credits } = balance;
            let (ledger, account) = (ledger_name(&reading.engine, ledger), account_name(&reading, ledger, account));
            write!(out, "{ledger},{account},{debits},{credits},{}\r\n", balance.net())?;
        }
        Ok(())
    });
    let headers = [(CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}

impl TrialBalance {
    fn of(through: &Cut, balanced: bool, accounts: Vec<LedgerAccountView>, total: u64, page: Page) -> Self {
        let cut = by_partition(through);
        Self { cut, balanced, accounts, total, page: page.page, pages: page.pages(total), per_page: page.per_page }
    }

    /// The last Records that count.
    pub fn through(&self) -> Cut {
        cut_of(&self.cut)
    }

    /// The page of rows that are all there.
    fn paged(through: &Cut, balanced: bool, rows: Vec<LedgerAccountView>, page: Page) -> Self {
        let total = rows.len() as u64;
        let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
        let rows = rows.into_iter().skip(skip).take(page.count()).collect();
        Self::of(through, balanced, rows, total, page)
    }
}

impl LedgerAccountView {
    fn new(ledger: Option<String>, account: String, balance: Balance) -> Self {
        let Balance { debits, credits } = balance;
        Self { ledger, account, debits, credits, balance: balance.net() }
    }
}

/// A ledger's accounts, now or at the end of a day: by the time of booking, or by the day of
/// effect, with what was booked later and took effect by then.
#[utoipa::path(get, path = "/ops/ledgers/{id}/accounts", operation_id = "list_accounts", params(
        ("date" = Option<String>, Query, format = Date, example = "2026-11-30", description = "The last day that counts."),
        ("by" = Option<String>, Query, pattern = "^(booking|effect)$", description = "`booking` when absent."), ("id" = String, Path, pattern = "^([MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|P-house)$", example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")),
    responses((status = 200, body = Items<LedgerAccountView>)))]
pub async fn accounts(State(desk): DeskState, _: Operator, PathId(id): PathId, parts: Parts) -> Result<Response> {
    let (ledger, pairs) = (find(&desk, &id)?, query(&parts)?);
    let (by, end) = (one_of(&pairs, "by", &["booking", "effect"])?, requested_end(&pairs)?);
    let items = match end {
        Some(end) => {
            let (cut, effect_before) =
                (Some(desk.engine.last_booked_before(end)?), Some(end).filter(|_| by == Some("effect")));
            let page = Page { page: 1, per_page: u64::from(u32::MAX) };
            let (by_account, account, level) = (false, None, usize::MAX);
            let asked =
                TrialBalanceQuery { ledger: Some(ledger), by_account, account, cut, effect_before, level, page };
            read(&desk, asked).await?.accounts
        }
        // Nothing takes effect after it is booked: now both are the same.
        None => {
            let balances = desk.engine.accounts(ledger).await?;
            balances.iter().map(|(account, balance)| account_row(&desk, ledger, *account, *balance)).collect()
        }
    };
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
    params(("id" = String, Path, pattern = "^([MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|P-house)$", example = "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e"), ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<LedgerEntryView>)))]
pub async fn entries(State(desk): DeskState, _: Operator, PathId(id): PathId, query: PageQuery) -> Result<Response> {
    let ledger = find(&desk, &id)?;
    let Listed { total, items } = desk.engine.entries(ledger, query.page.skip(), query.page.count())?;
    list_of(
        total,
        query.page,
        items.map(move |found| found.map(|found| entry_row(&desk, ledger, found)).map_err(Problem::from)),
    )
}

fn entry_row(desk: &Desk, ledger: LedgerId, (at, record): (Position, Record)) -> LedgerEntryView {
    let lines = record.entries_of(ledger).flat_map(|entry| entry.postings());
    let postings = lines.map(|posting| posting_row(desk, ledger, posting)).collect();
    LedgerEntryView {
        sequence: at.sequence.0,
        partition: at.partition.0,
        effective_at: time(record.takes_effect_at()),
        postings,
    }
}

/// The ledger of an outside name.
pub fn find(desk: &Desk, name: &str) -> Result<LedgerId> {
    if name == HOUSE {
        return Ok(LedgerId::System);
    }
    let (kind, id) = name.split_once('-').ok_or_else(not_found)?;
    match kind {
        "M" => merchants::find(desk, id).map(LedgerId::Merchant),
        "P" => merchants::find(desk, id).map(LedgerId::Platform),
        "R" => {
            let found = ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
            found.map(|(ledger, _)| ledger).ok_or_else(not_found)
        }
        _ => Err(not_found()),
    }
}

/// One entry that a Record has, or would have.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewedEntryView {
    /// `M-…`, `R-…` or `P-…`.
    ledger: String,
    /// Its lines.
    postings: Vec<PostingView>,
}

/// The entries of a Record, of all ledgers.
pub(super) fn entries_view(desk: &Desk, record: &Record) -> Vec<PreviewedEntryView> {
    let views = record.entries.iter().map(|entry| PreviewedEntryView {
        ledger: ledger_name(&desk.engine, entry.ledger()),
        postings: entry.postings().iter().map(|posting| posting_row(desk, entry.ledger(), posting)).collect(),
    });
    views.collect()
}

fn posting_row(desk: &Desk, ledger: LedgerId, posting: &Posting) -> PostingView {
    PostingView {
        account: account_name(desk, ledger, posting.account),
        side: if posting.side == Side::Debit { "debit" } else { "credit" },
        amount: posting.amount.0,
    }
}

pub(super) fn account_name(desk: &Desk, ledger: LedgerId, account: Account) -> String {
    account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(&desk.engine, ledger))
}

fn account_row(desk: &Desk, ledger: LedgerId, account: Account, balance: Balance) -> LedgerAccountView {
    LedgerAccountView::new(Some(ledger_name(&desk.engine, ledger)), account_name(desk, ledger, account), balance)
}
