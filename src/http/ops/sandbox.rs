//! The sandbox clock.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::app::{App, Operator};
use crate::http::body::JsonBody;
use crate::http::json::{Checker, Raw, parse};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{ok, time};

/// A move of the clock.
#[derive(Deserialize, ToSchema)]
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
    now: String,
}

/// Moves the clock forward; what falls due on the way has happened when this answers.
#[utoipa::path(post, path = "/ops/sandbox/clock", request_body = ClockRequest,
    responses((status = 200, body = ClockResponse), (status = 404)))]
pub async fn advance_clock(
    State(app): State<Arc<App>>,
    _: Operator,
    JsonBody { 0: body }: JsonBody,
) -> Result<Response, Problem> {
    if !app.sandbox {
        return Err(Problem::new(Code::NotFound));
    }
    let wire: ClockRequest<'_> = parse(&body)?;
    let mut check = Checker::new();
    let seconds = check.integer("advance_seconds", wire.advance_seconds, 0..=315_576_000);
    let seconds = check.finish_with(seconds)?;
    let now = app.engine.advance_clock(Duration::from_secs(seconds.unsigned_abs())).await?;
    Ok(ok(ClockResponse { now: time(now) }))
}
