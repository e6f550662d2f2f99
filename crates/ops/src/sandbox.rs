//! What only a sandbox has: the clock (`POST /ops/sandbox/clock`), and payers of PIX charges
//! (`POST /ops/sandbox/pix/{txid}/pay`).

use std::time::Duration;

use actors::engine::{CommandContext, Engine, Outcome, PixPayment};
use actors::rails::PixReceipt;
use axum::extract::State;
use axum::response::Response;
use ledger::{Charge, ChargeOutcome, Event, LedgerId, Timestamp};
use rails::end_to_end_id;
use rails::sandbox::Institutions;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Admin, AdminCall, DeskState, charges};
use web::request_context::spawn_blocking;
use web::views::charge::{ChargeView, not_pending};
use web::{
    Code, KeyScope, KeyedBody, Problem, Raw, Result, checked, decided, ok, parse_exact, parse_unread_exact, time,
};

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
    now: String,
}

/// Moves the clock forward; what falls due on the way has happened when this answers.
#[utoipa::path(post, path = "/ops/sandbox/clock", operation_id = "advance_clock", request_body = ClockRequest,
    responses((status = 200, body = ClockResponse)))]
pub async fn advance_clock(State(desk): DeskState, Admin(operator): Admin, sent: KeyedBody) -> Result<Response> {
    let wire: ClockRequest<'_> = parse_exact(sent.bytes())?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    // The clock has no actor that could notice a second request with the same key: one at a time.
    let _one_at_a_time = desk.opening.lock().await;
    let (desk, wire, operator) = (&desk, &wire, &operator);
    let execute = |admitted| async move {
        let seconds = checked(|check| check.integer("advance_seconds", wire.advance_seconds, 0..=315_576_000))?;
        let seconds = Duration::from_secs(seconds.unsigned_abs());
        desk.engine.advance_clock(seconds, operator.context(admitted)).await.map(Some).map_err(Problem::from)
    };
    let moved = key.run(LedgerId::System, |record| Ok(record.effective_at), execute).await?;
    if let (Some(institutions), now) = (desk.institutions.clone(), desk.engine.now()) {
        let closed = spawn_blocking(move || institutions.close_days(now)).await;
        if let Ok(Err(error)) = closed {
            tracing::error!(%error, "the sandbox's institutions can't write their files");
        }
    }
    moved.answer(|now| Ok(ok(ClockResponse { now: time(now) })))
}

/// Plays the payer of a pending PIX charge of any merchant. One that is cancelled is paid too late:
/// 409, and the money goes back to the payer. The audit trail names the operator.
#[utoipa::path(post, path = "/ops/sandbox/pix/{txid}/pay", operation_id = "pay_pix_of_any_merchant",
    responses((status = 200, body = ChargeView), (status = 409)))]
pub async fn pay_pix(call: AdminCall) -> Result<Response> {
    let AdminCall { desk, operator, id: txid, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let charge = &charges::named(desk, txid)?;
    let (id, group) = (charge.id, desk.engine.ids().group(charge.id));
    let key = call.key(&id.txid())?;
    let execute = |admitted| async move {
        pay(&desk.engine, desk.institutions.as_deref(), charge, operator.context(admitted)).await
    };
    let paid = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    paid.answer(|()| Ok(ok(ChargeView::of_any_merchant(&desk.engine, &charges::named(desk, &id.txid())?)?)))
}

/// Pays a PIX charge of the sandbox as its payer would, and has the PIX institution write the
/// payment into its own records. A payment that comes too late is 409. `None` if the request's key
/// was used a moment ago.
pub async fn pay(
    engine: &Engine,
    institutions: Option<&Institutions>,
    charge: &Charge,
    context: CommandContext,
) -> Result<Option<()>> {
    if charge.card.is_some() {
        return Err(Problem::new(Code::ChargeNotFound));
    }
    let too_late = || {
        let detail = "The charge is cancelled: the payment came too late and goes back to the payer.";
        Err(not_pending(charge).detail(detail))
    };
    match charge.outcome {
        ChargeOutcome::Pending => {}
        ChargeOutcome::Cancelled if charge.was_paid_late => return too_late(),
        ChargeOutcome::Cancelled => {}
        _ => return Err(not_pending(charge)),
    }
    // The institution has a payment before we hear of it. A charge has one payment, however often
    // it is played.
    let (group, at) = (engine.ids().group(charge.id), engine.now());
    let (txid, amount) = (Some(charge.id.txid()), charge.terms.amount);
    let of_charge = end_to_end_id(charge.id.created_at(), charge.id.0 as u64);
    let end_to_end_id = note_payment(institutions, charge, of_charge, at).await;
    let payment = PixReceipt { end_to_end_id, txid, amount, paid_at: at };
    match engine.receive_pix(group, charge.id, payment, context).await? {
        Outcome::Recorded(PixPayment::Unordered(_)) => too_late(),
        // Who ends the code at this moment hears of the payment from the institution, and may book
        // it first.
        Outcome::Recorded(PixPayment::BookedBefore) if is_booked_by_rail(engine, charge)? => Ok(Some(())),
        Outcome::Recorded(PixPayment::BookedBefore) => Err(Problem::new(Code::ChargeNotPending)),
        outcome => decided(outcome),
    }
}

/// Whether the payment of a charge was booked because its institution knew it, and not because
/// somebody played its payer.
fn is_booked_by_rail(engine: &Engine, charge: &Charge) -> Result<bool> {
    for found in engine.history(charge.id)? {
        let (_, record) = found?;
        if record.events.iter().any(|event| matches!(event, Event::PixPaid { charge: of, .. } if *of == charge.id)) {
            return Ok(record.operator.is_none() && record.api_key.is_none());
        }
    }
    Ok(false)
}

/// Has the PIX institution of the sandbox write a payment into its own records. Gives the id that
/// the payment has there.
async fn note_payment(
    institutions: Option<&Institutions>,
    charge: &Charge,
    end_to_end_id: String,
    at: Timestamp,
) -> String {
    let Some(institutions) = institutions else { return end_to_end_id };
    let noted = institutions.pix.paid(charge.id, end_to_end_id.clone(), charge.terms.amount, at).await;
    noted.unwrap_or_else(|error| {
        tracing::error!(%error, "a payment is not in the records of the sandbox's PIX institution");
        end_to_end_id
    })
}
