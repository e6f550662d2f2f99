//! Movements of the last three hours, minute by minute.

use std::sync::Arc;

use actors::engine::{MinuteSums, MovementKind, MovementSum};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::problem::Problem;
use crate::http::reply::{ok, only, query, time};
use crate::ops::operator::Operator;

/// The minutes of the last three hours that had movements.
#[derive(Debug, Serialize, ToSchema)]
pub struct MinuteList {
    /// The minutes, newest first.
    items: Vec<MinuteView>,
    /// How many there are, 180 at most.
    total: usize,
}

/// The movements that took effect in one minute.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MinuteOfMovements)]
pub struct MinuteView {
    /// When the minute began.
    minute: String,
    /// Card charges that the acquirer captured.
    card_captured: MovementView,
    /// PIX charges that were paid.
    pix_paid: MovementView,
    /// Card charges that the acquirer refused; no money moves, so their amount is 0.
    card_refused: MovementView,
    /// Refunds that were approved.
    refunded: MovementView,
    /// Cashouts that were carried out, with the fees in them.
    cashed_out: MovementView,
    /// Withdrawals that were paid.
    withdrawn: MovementView,
}

/// Movements of one kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MovementsOfKind)]
pub struct MovementView {
    /// How many there were.
    count: u64,
    /// Their amounts together, centavos.
    #[schema(value_type = i64)]
    amount: i128,
}

impl MinuteView {
    fn of(sums: &MinuteSums) -> Self {
        let of = |kind| {
            let MovementSum { count, centavos } = sums.of(kind);
            MovementView { count, amount: centavos }
        };
        Self {
            minute: time(sums.minute.start()),
            card_captured: of(MovementKind::CardCaptured),
            pix_paid: of(MovementKind::PixPaid),
            card_refused: of(MovementKind::CardRefused),
            refunded: of(MovementKind::Refunded),
            cashed_out: of(MovementKind::CashedOut),
            withdrawn: of(MovementKind::Withdrawn),
        }
    }
}

/// Movements of all merchants by minute and kind, of the last three hours on the service's clock.
/// They are counted in memory, from the start of this process.
#[utoipa::path(get, path = "/ops/minutes", operation_id = "list_minutes",
    responses((status = 200, body = MinuteList), (status = 400)))]
pub async fn list(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    let items: Vec<_> = app.engine.minutes().iter().rev().map(MinuteView::of).collect();
    Ok(ok(MinuteList { total: items.len(), items }))
}
