//! What only a sandbox has: the clock (`POST /ops/sandbox/clock`), and payers of PIX charges
//! (`POST /ops/sandbox/pix/{txid}/pay`).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use ledger::id::LedgerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::pix;
use crate::app::App;
use crate::ops::charges;
use crate::ops::operator::Admin;
use web::caller::PathId;
use web::idempotency::KeyScope;
use web::json::{Checker, Raw, parse_exact, parse_unread_exact};
use web::keyed::KeyedBody;
use web::problem::Problem;
use web::reply::{ok, time};
use web::trace::spawn_blocking;
use web::views::charge::ChargeView;

/// A move of the clock.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"advance_seconds": 86400}))]
pub struct ClockRequest<'a> {
    /// Seconds, from 0 to ten years.
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
    Admin(operator): Admin,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    let wire: ClockRequest<'_> = parse_exact(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Operators, None)?;
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
    if let (Some(institutions), now) = (app.institutions.clone(), app.engine.now()) {
        let closed = spawn_blocking(move || institutions.close_days(now)).await;
        if let Ok(Err(error)) = closed {
            tracing::error!(%error, "the sandbox's institutions can't write their files");
        }
    }
    moved.answer(|now| Ok(ok(ClockResponse { now: time(now) })))
}

/// Plays the payer of a pending PIX charge of any merchant. One that is cancelled is paid too late:
/// 409, and the money goes back to the payer. The audit trail names the operator.
#[utoipa::path(post, path = "/ops/sandbox/pix/{txid}/pay", operation_id = "pay_pix_of_any_merchant", params(("txid" = String, Path)),
    responses((status = 200, body = ChargeView), (status = 409)))]
pub async fn pay_pix(
    State(app): State<Arc<App>>,
    Admin(operator): Admin,
    PathId(txid): PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    parse_unread_exact(sent.bytes())?;
    let charge = charges::named(&app, &txid)?;
    let (id, group) = (charge.id, app.engine.ids().group(charge.id));
    let key = sent.key(&app.engine, KeyScope::Operators, Some(&id.txid()))?;
    let (app, charge, operator) = (&app, &charge, &operator);
    let execute = |admitted| async move { pix::pay(app, charge, operator.context(admitted)).await };
    let paid = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    paid.answer(|()| Ok(ok(ChargeView::of(&app.engine, &charges::named(app, &id.txid())?)?)))
}
