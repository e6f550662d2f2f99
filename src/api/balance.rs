//! `GET /api/balance` and `GET /api/balance/operations`: a merchant's balances, and the lines of
//! its account statement.

use actors::engine::{LedgerList, Slice};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::statement::StatementLineKind;
use ledger::{ChargeFacts, Fingerprint, LedgerId, MerchantState, ObjectId, RecipientNumber, Record, Timestamp};
use serde::Serialize;
use strum::VariantNames;
use utoipa::ToSchema;

use crate::api::charges;
use crate::api::{App, AppState};
use web::reply::{Filter, PeriodParams};
use web::{Caller, CursorParams, Cursors, List, Page, PageParams, Result, ok, query, single, time};

/// A merchant's money, centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct Balance {
    /// Can be paid out.
    #[schema(example = 593800)]
    available: i64,
    /// Falls due later.
    pending: i64,
    /// Held for cashouts and disputes.
    reserved: i64,
    /// What the merchant owes.
    deficit: i64,
}

/// The account's balance, after booking what is due.
#[utoipa::path(get, path = "/api/balance", operation_id = "get_balance", responses((status = 200, body = Balance)))]
pub async fn get(State(app): AppState, caller: Caller) -> Result<Response> {
    let look = |books: &MerchantState, _: Timestamp| Balance {
        available: books.available().0,
        pending: books.pending().0,
        reserved: (books.reserved_cashout() + books.reserved_for_disputes()).0,
        deficit: books.deficit().0,
    };
    Ok(ok(app.engine.read_merchant(caller.group, look).await?))
}

/// One line of the account statement; amounts in centavos.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Operation)]
pub struct OperationRow {
    /// The operation's id.
    id: String,
    /// `charge`, `fee`, `split`, `settlement`, `refund`, `take_back`, `cashout`, `cashout_fee`,
    /// `cashout_returned`, `deficit`, `dispute` or `adjustment`.
    #[serde(rename = "type")]
    #[schema(
        pattern = "^(charge|fee|split|settlement|refund|take_back|cashout|cashout_fee|cashout_returned|deficit|dispute|adjustment)$"
    )]
    kind: &'static str,
    /// Above zero when the account rises, below when it falls.
    #[schema(example = 10000)]
    amount: i64,
    /// `pending`, `available` or `reserved`.
    #[schema(pattern = "^(pending|available|reserved)$")]
    account: &'static str,
    /// The charge, cashout, refund or other object that it comes from; null for what sums up many.
    #[schema(required, example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e")]
    source_id: Option<String>,
    /// When the money is available, or since when it is.
    #[schema(required)]
    available_at: Option<String>,
    /// When it happened, by the word of the acquirer or institution. The list is in the order of
    /// booking, which may be later; `from` and `to` go by that.
    created_at: String,
    /// What stood on the account after it.
    #[schema(example = 10000)]
    balance_after: i64,
}

/// The account's operations, newest first, after booking what is due. With a type, the period may
/// hold 2,000 operations. Of a charge, those of its refunds and disputes are listed too.
#[utoipa::path(get, path = "/api/balance/operations", operation_id = "list_operations",
    params(("type" = Option<String>, Query, pattern = "^(charge|fee|split|settlement|refund|take_back|cashout|cashout_fee|cashout_returned|deficit|dispute|adjustment)$", description = "Operations of this type only"),
        ("charge" = Option<String>, Query, description = "Operations of the charge with this txid only"),
        PeriodParams, PageParams, CursorParams),
    responses((status = 200, body = List<OperationRow>), (status = 404)))]
pub async fn list_operations(State(app): AppState, caller: Caller, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let (page, cursors) = (Page::read(&pairs, 20)?, Cursors::read(&parts)?);
    let filter = Filter::read(&pairs, "type", StatementLineKind::VARIANTS)?;
    let charge = single(&pairs, "charge")?.map(|txid| charges::named(&app, caller, txid)).transpose()?;
    app.engine.read_merchant(caller.group, |_, _| ()).await?;
    let merchant = caller.ledger();
    let range = filter.range(&app.engine, LedgerList::StatementLines, merchant)?;
    let (total, listed) = match &charge {
        Some(charge) => (0, app.engine.statement_of(merchant, charge.id, range)?),
        None => {
            let lines_of = |number: u64| {
                let (_, lines) = app.engine.statement(merchant, Slice::new(number..number + 1, 0, usize::MAX))?;
                Ok(lines.iter().map(|line| line.index).collect())
            };
            let span = cursors.span(range, |id| place_of(&app, caller, id), lines_of)?;
            let (skip, count) = filter.to_read(page);
            let (in_range, mut listed) =
                app.engine.statement(merchant, Slice::new(span.range.clone(), span.newer + skip, count))?;
            span.cut(&mut listed, in_range, skip);
            (span.total(in_range), listed)
        }
    };
    filter.check("type", total)?;
    let mut items = Vec::with_capacity(listed.len());
    app.engine.each_listed_line(caller.group, &listed, |line, operation, record| {
        items.push(OperationRow {
            id: operation_id(&app, caller, record, line.index),
            kind: operation.kind.into(),
            amount: operation.amount.0,
            account: operation.account.into(),
            source_id: operation.source.map(|id| name_of_source(record, id)),
            available_at: operation.available_at.map(time),
            created_at: time(record.takes_effect_at()),
            balance_after: line.balance_after.0,
        });
    })?;
    if charge.is_some() {
        items = cursors.between(items, |item| ObjectId::parse(&item.id).unwrap_or_default())?;
    }
    items.retain(|item| filter.word.is_none_or(|word| word == item.kind));
    let is_whole = filter.word.is_some() || charge.is_some();
    let list = if is_whole { List::of_all(items, page) } else { List::new(items, total, page) };
    let last = list.items.last().map(|item| item.id.clone());
    Ok(list.on(&cursors, last))
}

/// The Record of the account's operation of an id, and the operation's place in it. Its id has the
/// time, near which it is looked for.
fn place_of(app: &App, caller: Caller, id: &str) -> Result<Option<(u64, u32)>> {
    let Some(wanted) = ObjectId::parse(id) else { return Ok(None) };
    let (at, wanted) = (wanted.created_at(), wanted.uuid().to_string());
    let (from, to) = (at.plus_ms(-OUT_OF_ORDER_MS), at.plus_ms(OUT_OF_ORDER_MS + 1));
    let near = app.engine.range(LedgerList::StatementLines, caller.ledger(), (Some(from), Some(to)))?;
    let (_, listed) = app.engine.statement(caller.ledger(), Slice::new(near, 0, usize::MAX))?;
    let mut found = None;
    app.engine.each_listed_line(caller.group, &listed, |line, _, record| {
        if operation_id(app, caller, record, line.index) == wanted {
            found = Some((line.sequence.0, line.index));
        }
    })?;
    Ok(found)
}

/// By how much an operation may be booked before an earlier one, milliseconds.
const OUT_OF_ORDER_MS: i64 = 50;

/// A charge is named by its txid, everything else by its UUID, as where it is read.
fn name_of_source(record: &Record, id: ObjectId) -> String {
    let is_charge = record.events.iter().any(|event| ChargeFacts::is_payment_of(event, id));
    if is_charge { id.txid() } else { id.uuid().to_string() }
}

/// Id of an operation, from data that never changes: its time, and a keyed digest of its place
/// among its owner's Records. It does not reveal the number of Records.
fn operation_id(app: &App, caller: Caller, record: &Record, index: u32) -> String {
    let recipient = match record.owner {
        LedgerId::Recipient(_, RecipientNumber(number)) => number,
        _ => 0,
    };
    let place = [&recipient.to_le_bytes()[..], &record.ordinal.to_le_bytes(), &index.to_le_bytes()];
    let Fingerprint(digest) = app.engine.keyring().fingerprint("operation", &place);
    let random = digest.iter().fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
    app.engine.ids().object(caller.group, record.effective_at, random).uuid().to_string()
}
