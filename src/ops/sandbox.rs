//! Sandbox clock: `POST /ops/sandbox/clock`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use ledger::id::LedgerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::http::body::JsonBody;
use crate::http::idempotency::{KeyScope, SentKey};
use crate::http::json::{Checker, Raw, parse};
use crate::http::problem::Problem;
use crate::http::reply::{ok, time};
use crate::ops::operator::Operator;

/// A move of the clock.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"advance_seconds": 86400}))]
pub struct ClockRequest<'a> {
    /// Seconds, from 0 to ten years.
    #[serde(borrow)]
    #[schema(value_type = i64, minimum = 0, maximum = 315576000)]
    advance_seconds: Raw<'a>,
}

/// The clock.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClockResponse {
    /// Now, on the sandbox clock.
    #[schema(format = "date-time")]
    now: String,
}

/// Moves the clock forward; what falls due on the way has happened when this answers.
#[utoipa::path(post, path = "/ops/sandbox/clock", operation_id = "advance_clock", request_body = ClockRequest,
    responses((status = 200, body = ClockResponse)))]
pub async fn advance_clock(
    State(app): State<Arc<App>>,
    operator: Operator,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: ClockRequest<'_> = parse(&body)?;
    let key = sent_key.read(&app.engine, KeyScope::Operators, None, &body)?;
    // The clock has no actor that could notice a second request with the same key: one at a time.
    let _one_at_a_time = app.opening.lock().await;
    let (app, wire, operator) = (&app, &wire, &operator);
    let execute = |admitted| async move {
        let mut check = Checker::new();
        let seconds = check.integer("advance_seconds", wire.advance_seconds, 0..=315_576_000);
        let seconds = Duration::from_secs(check.finish_with(seconds)?.unsigned_abs());
        app.engine.advance_clock(seconds, operator.context(admitted)).await.map(Some).map_err(Problem::from)
    };
    let moved = key.run(LedgerId::System, |record| Ok(record.effective_at), execute).await?;
    moved.answer(|now| Ok(ok(ClockResponse { now: time(now) })))
}
