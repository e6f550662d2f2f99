//! Batches of the acquirer: the list of those that are booked.

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::State;
use axum::response::Response;
use books::reconcile::acquirer;
use ledger::merchant::EndedBatch;
use ledger::record::Record;
use serde::Serialize;
use store::cut::Position;
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::operator::Operator;
use web::problem::Problem;
use web::reply::{List, PageQuery, list_of, time};

/// A batch of the acquirer that is booked whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub struct BatchView {
    /// The acquirer's name for it, which stands on the bank statement.
    #[schema(example = "LOTE-20785")]
    batch: String,
    /// The day of the payment.
    #[schema(format = Date, example = "2026-11-27")]
    paid_on: String,
    /// How many lines it has.
    #[schema(example = 3)]
    lines: u64,
    /// What the acquirer paid: the sum of its lines, after fees, centavos; below zero when it took
    /// more than it paid.
    #[schema(example = 970_100)]
    net: i64,
    /// How many of its lines name a charge that was never captured.
    #[schema(example = 0)]
    unexplained_lines: u64,
    /// The sum of these, after fees, centavos. It is in `Liabilities:Suspense` of `P-house`.
    #[schema(example = 0)]
    unexplained_net: i64,
    /// When it was booked.
    #[schema(format = "date-time")]
    booked_at: String,
    /// The Record that ended it: its place in the journal of its partition.
    #[schema(minimum = 1, example = 42)]
    sequence: u64,
    /// The partition.
    partition: u16,
}

/// The acquirer's batches that are booked, newest first.
#[utoipa::path(get, path = "/ops/batches", operation_id = "list_batches",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<BatchView>)))]
pub async fn list(
    State(desk): State<Arc<Desk>>,
    _: Operator,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let Listed { total, items } = desk.engine.batches(page.skip(), page.count())?;
    list_of(total, page, items.map(|found| Ok(view(found?))))
}

fn view((at, record, booked): (Position, Record, EndedBatch)) -> BatchView {
    BatchView {
        paid_on: acquirer::day(booked.batch.paid_on).to_string(),
        batch: booked.batch.reference,
        lines: booked.lines,
        net: booked.net.0,
        unexplained_lines: booked.unexplained_lines,
        unexplained_net: booked.unexplained_net.0,
        booked_at: time(record.effective_at),
        sequence: at.sequence.0,
        partition: at.partition.0,
    }
}
