//! `GET /api/dashboard/sub-recipients/{id}/splits`: a recipient's statement (interface 2.8).
//!
//! What is pending and what is available is told by the recipient's own state; the splits themselves are history, read a page at
//! a time. A PIX split is listed as pending from the charge's creation, and is money only once it is paid.

use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::response::Response;
use ledger::event::Event;
use ledger::id::ObjectId;
use ledger::recipient::RecipientState;
use ledger::time::{Minute, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Caller, PathId};
use super::charges::{Charge, Fate};
use super::problem::{Code, Problem};
use super::reply::{PageQuery, ok, time};
use super::sub_recipients::{RecipientBalance, find_own};
use crate::mask;

/// A page of a statement.
#[derive(Debug, Serialize, ToSchema)]
pub struct Statement {
    /// Splits, newest first.
    items: Vec<SplitRecord>,
    /// Splits on all pages.
    total: u64,
    /// This page, from 1.
    page: u64,
    /// How many pages there are.
    pages: u64,
    /// Items a page.
    per_page: u64,
    /// The recipient's money.
    balance: RecipientBalance,
}

/// One split.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitRecord {
    /// The split's id.
    #[schema(example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e-0")]
    id: String,
    /// The charge's txid.
    payment_id: String,
    /// Centavos.
    #[schema(example = 2000)]
    amount_cents: i64,
    /// `pending`, `available` or `paid`.
    #[schema(pattern = "^(pending|available|paid)$")]
    status: &'static str,
    /// When it was paid to the recipient's bank account.
    #[schema(required)]
    paid_at: Option<String>,
    /// When the charge was created.
    created_at: String,
    /// The charge.
    payment: SplitPayment,
}

/// The charge of a split.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitPayment {
    /// Payer's name.
    #[schema(example = "João Ávila")]
    nome: String,
    /// Payer's CPF, formatted.
    #[schema(example = "123.456.789-09")]
    cpf: String,
    /// Total charged, centavos.
    #[schema(example = 10000)]
    gross_amount: i64,
    /// `pix` or `credit_card`.
    #[schema(pattern = "^(credit_card|pix)$")]
    payment_method: &'static str,
    /// When the split becomes or became available; null while a PIX charge is unpaid.
    #[schema(required)]
    balance_available_at: Option<String>,
}

/// A recipient's splits and balance.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients/{id}/splits", operation_id = "list_splits",
    params(("id" = String, Path), ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = Statement)))]
pub async fn splits(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(id): PathId,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let (ledger, _) = find_own(&app, caller, &id)?;
    let look = |books: &RecipientState, now: Timestamp| (books.available().0, books.pending().0, now);
    let (available, pending, now) = app.engine.read_recipient(ledger, look).await?;
    let (total, listed) = app.engine.projector().splits_page(ledger, page.skip(), page.count())?;
    let mut items = Vec::with_capacity(listed.len());
    let mut read: Option<(Sequence, Listed)> = None;
    for split in listed {
        // A charge's splits stand together: it is read once.
        let charge = match read.take().filter(|(sequence, _)| *sequence == split.sequence) {
            Some((_, known)) => known,
            None => listed_charge(&app, caller, split.sequence)?,
        };
        items.push(split_record(&charge, split.index, now)?);
        read = Some((split.sequence, charge));
    }
    let books = RecipientBalance::of_books(&app, ledger);
    let balance = RecipientBalance { available, pending, ..books };
    let (page_number, per_page, pages) = (page.page, page.per_page, page.pages(total));
    Ok(ok(Statement { items, total, page: page_number, pages, per_page, balance }))
}

/// A charge, and when its card splits fall due.
type Listed = (Charge, Option<Minute>);

fn split_record((charge, due): &Listed, index: u32, now: Timestamp) -> Result<SplitRecord, Problem> {
    let (id, terms) = (charge.id, &charge.terms);
    let split = terms.splits.get(index as usize).ok_or_else(|| Problem::new(Code::Internal))?;
    let available_at = match (due, &charge.fate) {
        (Some(minute), _) => Some(minute.start()),
        (None, Fate::Paid { at, .. }) => Some(*at),
        (None, _) => None,
    };
    let is_available = available_at.is_some_and(|at| at <= now);
    Ok(SplitRecord {
        id: split_id(id, index),
        payment_id: id.txid(),
        amount_cents: split.amount.0,
        status: if is_available { "available" } else { "pending" },
        paid_at: None,
        created_at: time(charge.created_at),
        payment: SplitPayment {
            cpf: mask::formatted_cpf(&charge.payer.document),
            nome: charge.payer.name.clone(),
            gross_amount: terms.amount.0,
            payment_method: if charge.card.is_some() { "credit_card" } else { "pix" },
            balance_available_at: available_at.map(time),
        },
    })
}

/// The charge of the Record that made a split.
fn listed_charge(app: &App, caller: Caller, sequence: Sequence) -> Result<Listed, Problem> {
    let record = app.engine.record(sequence)?;
    let made = record.events.iter().find_map(|event| match event {
        Event::ChargeOpened { charge, .. } => Some((*charge, None)),
        Event::CardCaptured { charge, splits_due, .. } => Some((*charge, Some(*splits_due))),
        _ => None,
    });
    let (id, due) = made.ok_or_else(|| Problem::new(Code::Internal))?;
    let charge = Charge::find(app, caller, id)?.ok_or_else(|| Problem::new(Code::Internal))?;
    Ok((charge, due))
}

/// A split's id: its charge and its place in it. It names its group as the charge does.
fn split_id(charge: ObjectId, index: u32) -> String {
    format!("{}-{index}", charge.txid())
}
