//! Closing of months: one operator asks for it, another carries it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::engine::{BooksAsOf, Engine, SumOfKind};
use axum::extract::State;
use axum::response::Response;
use derived::checkpoint::hex;
use ledger::period::Period;
use ledger::{Account, LedgerId, Month, Timestamp};
use serde::Serialize;
use store::cut::{Cut, Position};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;
use wire::cut_text::{CutView, by_partition};
use wire::timestamp::{begin_of, day_of};

use crate::queue_item::kind_name;
use crate::reconciliations::Reconciliation;
use crate::reconciliations::coverage::Coverage;
use crate::uncompared::uncompared;
use crate::{DeciderCall, Desk, DeskState, Operator};
use web::reply::All;
use web::streamed_body::{in_turn, turn, turn_in_time};
use web::{PathId, Result, decided, not_found, ok, parse_unread_exact, time};

/// A month, and its closing.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct PeriodView {
    /// The month.
    pub period: String,
    /// `open`, `pending` while it waits for a second operator, or `closed`.
    #[schema(pattern = "^(open|pending|closed)$")]
    pub status: &'static str,
    /// The operator who asked to close it; absent while it is open.
    pub requested_by: Option<String>,
    /// When that was asked.
    pub requested_at: Option<String>,
    /// The operator who closed it; absent until then.
    pub closed_by: Option<String>,
    /// When it was closed.
    pub closed_at: Option<String>,
    /// The last Record of the month, by partition of the journal.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"0": 42}))]
    pub cut: CutView,
    /// Hash of the journal at the month's end, of the partition of the house; absent until it is
    /// closed.
    pub head: Option<String>,
    /// Digest of the sums of all accounts at the month's end; absent until it is closed.
    pub totals: Option<String>,
    /// What was open at the month's end, or is open now while the month is not over.
    pub open: Vec<OpenItem>,
}

/// Something that was open at the end of a month.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenItem {
    /// `suspense`: money that nobody has explained; `negative_bank`: a bank account below zero;
    /// `in_flight`: money that is held for orders without an end; `unanswered`: card charges
    /// without an answer of the acquirer; `waiting`: decisions of operators that were asked for by
    /// then and are not taken; `unreconciled`: differences that reconciliations of its days found;
    /// `uncompared`: what no reconciliation covers of its days that are over.
    #[schema(pattern = "^(suspense|negative_bank|in_flight|unanswered|waiting|unreconciled|uncompared)$")]
    pub kind: &'static str,
    /// The account, without ids; of `unanswered`, `charge`; of `waiting`, the kind of the queue's
    /// items; of `unreconciled`, the kind of file; of `uncompared`, a bank account (days on which
    /// it moved), `pix` (days with payments) or `acquirer` (batches).
    #[schema(example = "Liabilities:Suspense")]
    pub name: String,
    /// Balance in centavos, debits minus credits; absent for a count.
    #[schema(value_type = i64)]
    pub balance: Option<i128>,
    /// How many there are; absent for a balance.
    pub count: Option<u64>,
}

/// A month that was closed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClosedPeriod {
    /// The month; all before it are closed too.
    period: String,
    /// The Record of the house that closed it: its place in the journal of its partition.
    #[schema(minimum = 1, example = 42)]
    sequence: u64,
    /// The partition.
    partition: u16,
}

/// The months that were closed, in order. Closing a month closes all months before it.
#[utoipa::path(get, path = "/ops/periods", operation_id = "list_periods", responses((status = 200, body = All<ClosedPeriod>)))]
pub async fn list(State(desk): DeskState, _: Operator) -> Result<Response> {
    let closed = desk.engine.closed_periods().into_iter();
    let item = |(month, Position { partition, sequence }): (Month, Position)| ClosedPeriod {
        period: month.to_string(),
        sequence: sequence.0,
        partition: partition.0,
    };
    Ok(ok(All::of(closed.map(item).collect())))
}

/// A month: whether it is closed, and what was open at its end.
#[utoipa::path(get, path = "/ops/periods/{period}", operation_id = "get_period",
    params(("period" = String, Path, pattern = "^[0-9]{4}-[0-9]{2}$", example = "2026-01", description = "A month in America/Sao_Paulo.")),
    responses((status = 200, body = PeriodView)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(period): PathId) -> Result<Response> {
    shown(&desk, named(&period)?).await.map(ok)
}

/// Asks to close a month that is over. When another operator asked before, it closes the month:
/// the sums of all accounts and the hash of the journal at its end are fixed in a Record, no entry
/// of the house ledger takes effect in it any more, and rows of exports that do are marked `late`.
/// The operator who asked gets 409 `second_operator_needed`.
#[utoipa::path(post, path = "/ops/periods/{period}/close", operation_id = "close_period",
    params(("period" = String, Path, pattern = "^[0-9]{4}-[0-9]{2}$", example = "2026-01", description = "A month in America/Sao_Paulo.")),
    responses((status = 200, body = PeriodView)))]
pub async fn close(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id: period, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let month = named(period)?;
    let key = call.key(&month.to_string())?;
    let execute = |admitted| async move { decided(desk.engine.close_period(month, operator.context(admitted)).await?) };
    let done = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    let period = shown(desk, month).await?;
    done.answer(|()| Ok(ok(period)))
}

/// The month of a name such as `2026-11`.
pub fn named(period: &str) -> Result<Month> {
    Month::parse(period).ok_or_else(not_found)
}

async fn shown(desk: &Arc<Desk>, month: Month) -> Result<PeriodView> {
    let turn = turn(&desk.reading_past, "Other books of the past are being read.").await?;
    read(desk, month, turn).await
}

/// A month, as soon as no other books of the past are read.
pub async fn read_patiently(desk: &Arc<Desk>, month: Month) -> Result<PeriodView> {
    read(desk, month, turn_in_time(&desk.reading_past).await).await
}

async fn read(desk: &Arc<Desk>, month: Month, turn: OwnedSemaphorePermit) -> Result<PeriodView> {
    let desk = Arc::clone(desk);
    in_turn(turn, move || PeriodView::of(&desk.engine, month)).await
}

/// Where the closing of a month stands: `open`, `pending` or `closed`.
pub fn status(engine: &Engine, month: Month) -> Result<&'static str> {
    Ok(status_of(engine, month, engine.period(month)?.as_ref()))
}

fn status_of(engine: &Engine, month: Month, period: Option<&Period>) -> &'static str {
    let is_closed = engine.closed_periods().last().is_some_and(|(closed, _)| month <= *closed);
    match period {
        _ if is_closed => "closed",
        Some(_) => "pending",
        None => "open",
    }
}

impl PeriodView {
    fn of(engine: &Arc<Engine>, month: Month) -> Result<Self> {
        let end = month.next().begin();
        let through = engine.last_booked_before(end)?;
        let period: Option<Period> = engine.period(month)?;
        let closing = period.as_ref().and_then(|period| period.closed.as_ref());
        Ok(Self {
            period: month.to_string(),
            status: status_of(engine, month, period.as_ref()),
            requested_by: period.as_ref().map(|period| period.requested_by.clone()),
            requested_at: period.as_ref().map(|period| time(period.requested_at)),
            closed_by: closing.map(|closing| closing.by.clone()),
            closed_at: closing.map(|closing| time(closing.at)),
            cut: by_partition(&through),
            head: closing.map(|closing| hex(&*closing.end.head)),
            totals: closing.map(|closing| hex(&*closing.end.totals)),
            open: open_items(engine, &through, (month.begin(), end))?,
        })
    }
}

/// What was open after the last Record that was booked before `end`; the differences that
/// reconciliations of the days since `begin` found; and the days that none of them covers.
fn open_items(engine: &Arc<Engine>, through: &Cut, (begin, end): (Timestamp, Timestamp)) -> Result<Vec<OpenItem>> {
    let mut open = Vec::new();
    let read = |books: &BooksAsOf| Ok((books.sums()?.kinds, books.unanswered_cards()?));
    let (kinds, unanswered) = engine.read_as_of(through, read)?;
    for SumOfKind { account, balance, .. } in kinds {
        let net = balance.net();
        let kind = match account {
            Account::Suspense if net != 0 => "suspense",
            Account::BankSettlement | Account::BankPix | Account::BankOwn if net < 0 => "negative_bank",
            Account::ReservedCashout
            | Account::ReservedDispute
            | Account::ReservedWithdrawal
            | Account::PayersRefunds
                if net != 0 =>
            {
                "in_flight"
            }
            _ => continue,
        };
        open.push(OpenItem { kind, name: account.kind_name(), balance: Some(net), count: None });
    }
    if unanswered > 0 {
        let name = "charge".to_owned();
        open.push(OpenItem { kind: "unanswered", name, balance: None, count: Some(unanswered) });
    }
    let waiting = engine.queue_counts(|item| (item.since() < end).then(|| kind_name(item)));
    let mut counted: Vec<_> =
        waiting.into_iter().map(|(name, count)| ("waiting", name.to_owned(), count as u64)).collect();
    let last_over = day_of(begin_of(day_of(engine.now().0)) - 1);
    let (results, from, to) = (Reconciliation::all(engine)?, day_of(begin.0), day_of(end.0 - 1));
    let coverage = Coverage::of(&results);
    let mut differences: BTreeMap<&str, u64> = BTreeMap::new();
    for result in results.iter().filter(|result| result.meets(from, to)) {
        *differences.entry(result.kind.as_str()).or_default() += result.differences(engine, &coverage)?;
    }
    let found = differences.into_iter().filter(|(_, count)| *count > 0);
    counted.extend(found.map(|(name, count)| ("unreconciled", name.to_owned(), count)));
    let lacking = uncompared(engine, &coverage, [from, to.min(last_over)])?;
    counted.extend(lacking.into_iter().map(|(name, count)| ("uncompared", name, count)));
    open.extend(counted.into_iter().map(|(kind, name, count)| OpenItem {
        kind,
        name,
        balance: None,
        count: Some(count),
    }));
    Ok(open)
}
