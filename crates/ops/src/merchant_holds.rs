//! Suspension of a merchant, and hold of its payouts, with the reason.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::fees::Settings;
use ledger::id::{GroupNumber, LedgerId};
use ledger::merchant::MerchantCommand;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::merchants::{MerchantView, find, row, view};
use crate::operator::Decider;
use web::caller::PathId;
use web::idempotency::{KeyScope, decided};
use web::json::{Checker, Raw, parse_exact};
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::ok;

/// Why a merchant is suspended, its payouts are held, or that ends.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"reason": "Cobranças com cartões roubados"}))]
pub struct HoldReason<'a> {
    /// The reason, at most 500 characters; it stands in the audit trail.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

/// Suspends a merchant: new charges, subscriptions and cashouts are 403 `merchant_suspended`, and a
/// cycle of a subscription passes without a charge. What is open goes on: PIX codes can be paid,
/// refunds and disputes are decided. Again: 200, nothing changes.
#[utoipa::path(post, path = "/ops/merchants/{id}/suspend", operation_id = "suspend_merchant",
    params(("id" = String, Path)), request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn suspend(
    state: State<Arc<Desk>>,
    operator: Decider,
    id: PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    change(state, operator, id, sent, |settings| settings.suspended = true).await
}

/// Ends the suspension of a merchant.
#[utoipa::path(post, path = "/ops/merchants/{id}/resume", operation_id = "resume_merchant",
    params(("id" = String, Path)), request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn resume(
    state: State<Arc<Desk>>,
    operator: Decider,
    id: PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    change(state, operator, id, sent, |settings| settings.suspended = false).await
}

/// Holds the payouts of a merchant: its cashouts and the approval of withdrawals of its recipients
/// are 403 `payouts_held`. Transfers that were ordered before go on. Again: 200, nothing changes.
#[utoipa::path(post, path = "/ops/merchants/{id}/hold-payouts", operation_id = "hold_payouts",
    params(("id" = String, Path)), request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn hold_payouts(
    state: State<Arc<Desk>>,
    operator: Decider,
    id: PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    change(state, operator, id, sent, |settings| settings.payouts_held = true).await
}

/// Ends the hold of the payouts of a merchant.
#[utoipa::path(post, path = "/ops/merchants/{id}/release-payouts", operation_id = "release_payouts",
    params(("id" = String, Path)), request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn release_payouts(
    state: State<Arc<Desk>>,
    operator: Decider,
    id: PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    change(state, operator, id, sent, |settings| settings.payouts_held = false).await
}

async fn change(
    State(desk): State<Arc<Desk>>,
    Decider(operator): Decider,
    PathId(id): PathId,
    sent: KeyedBody,
    put: fn(&mut Settings),
) -> Result<Response, Problem> {
    let wire: HoldReason<'_> = parse_exact(sent.bytes())?;
    let group = find(&desk, &id)?;
    let mut check = Checker::new();
    let reason = check.prose("reason", wire.reason, 1..=500);
    let reason = check.finish_with(reason)?.into_owned();
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&id))?;
    let (desk, operator, reason) = (&desk, &operator, &reason);
    let execute = |admitted| async move {
        // As for any change of the settings: of two at once, the second starts from the first.
        let _one_at_a_time = desk.opening.lock().await;
        let before = row(desk, group)?.settings;
        let mut settings = before;
        put(&mut settings);
        if settings == before {
            return Ok(Some(()));
        }
        let command = MerchantCommand::Change { settings, profile: None, reason: Some(reason.clone()) };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let changed = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    changed.answer(|()| Ok(ok(view(desk, group)?)))
}

/// Refuses a payout of a merchant whose payouts are held, or which is suspended.
pub fn refuse_held_payout(desk: &Desk, group: GroupNumber) -> Result<(), Problem> {
    let settings = desk.engine.known_merchant(group, |row| row.settings)?;
    match settings {
        Settings { suspended: true, .. } => Err(Problem::new(Code::MerchantSuspended)),
        Settings { payouts_held: true, .. } => Err(Problem::new(Code::PayoutsHeld)),
        _ => Ok(()),
    }
}
