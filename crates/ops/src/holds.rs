//! Suspension of a merchant, hold of its payouts, and freeze of a recipient, with the reason.

use axum::response::Response;
use ledger::{GroupNumber, LedgerId, MerchantCommand, ObjectId, Settings};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::merchants::{MerchantView, find, row, view};
use crate::{DeciderCall, Desk};
use web::views::recipient::{self, RecipientView, find_recipient, known_recipient};
use web::{Code, KeyedResult, Problem, Raw, Result, checked, decided, not_found, ok, parse_exact};

/// Why an operator does what stops or ends something, or pays a recipient.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"reason": "Cobranças com cartões roubados"}))]
pub struct HoldReason<'a> {
    /// The reason, at most 500 characters; it stands in the audit trail.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

impl HoldReason<'_> {
    /// The reason.
    pub(crate) fn check(&self) -> Result<String> {
        Ok(checked(|check| check.prose("reason", self.reason, 1..=500))?.into_owned())
    }
}

/// Suspends a merchant: new charges, subscriptions and cashouts are 403 `merchant_suspended`, and a
/// cycle of a subscription passes without a charge. What is open goes on: PIX codes can be paid,
/// refunds and disputes are decided. Again: 200, nothing changes.
#[utoipa::path(post, path = "/ops/merchants/{id}/suspend", operation_id = "suspend_merchant",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn suspend(call: DeciderCall) -> Result<Response> {
    change(call, |settings| settings.suspended = true).await
}

/// Ends the suspension of a merchant.
#[utoipa::path(post, path = "/ops/merchants/{id}/resume", operation_id = "resume_merchant",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn resume(call: DeciderCall) -> Result<Response> {
    change(call, |settings| settings.suspended = false).await
}

/// Holds the payouts of a merchant: its cashouts and the approval of withdrawals of its recipients
/// are 403 `payouts_held`. Transfers that were ordered before go on. Again: 200, nothing changes.
#[utoipa::path(post, path = "/ops/merchants/{id}/hold-payouts", operation_id = "hold_payouts",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn hold_payouts(call: DeciderCall) -> Result<Response> {
    change(call, |settings| settings.payouts_held = true).await
}

/// Ends the hold of the payouts of a merchant.
#[utoipa::path(post, path = "/ops/merchants/{id}/release-payouts", operation_id = "release_payouts",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn release_payouts(call: DeciderCall) -> Result<Response> {
    change(call, |settings| settings.payouts_held = false).await
}

/// Takes the end of a merchant back: it takes new charges again. What was cancelled meanwhile,
/// subscriptions and PIX codes, stays cancelled. Of one that does not end: 200, nothing changes.
#[utoipa::path(post, path = "/ops/merchants/{id}/reopen", operation_id = "reopen_merchant",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn reopen(call: DeciderCall) -> Result<Response> {
    change(call, |settings| (settings.closing, settings.closed) = (false, false)).await
}

/// Freezes a recipient: splits go on, and new withdrawals, approvals of withdrawals and
/// anticipations are 403 `recipient_frozen`. Transfers that were ordered before go on. Again: 200,
/// nothing changes.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/freeze", operation_id = "freeze_recipient",
    request_body = HoldReason, responses((status = 200, body = RecipientView)))]
pub async fn freeze(call: DeciderCall) -> Result<Response> {
    set_frozen(call, true).await
}

/// Ends the freeze of a recipient.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/unfreeze", operation_id = "unfreeze_recipient",
    request_body = HoldReason, responses((status = 200, body = RecipientView)))]
pub async fn unfreeze(call: DeciderCall) -> Result<Response> {
    set_frozen(call, false).await
}

async fn change(call: DeciderCall, put: fn(&mut Settings)) -> Result<Response> {
    let put = |settings: Settings| async move {
        let mut changed = settings;
        put(&mut changed);
        Ok(changed)
    };
    change_settings(&call, put).await?.answer(|group| Ok(ok(view(&call.desk, group)?)))
}

/// Changes the settings of a merchant for a reason; the group of the merchant. `put` gives the
/// settings that follow those that stand.
pub(crate) async fn change_settings<F: Future<Output = Result<Settings>>>(
    call: &DeciderCall,
    put: impl Fn(Settings) -> F,
) -> Result<KeyedResult<GroupNumber>> {
    let DeciderCall { desk, operator, id, sent, .. } = call;
    let wire: HoldReason<'_> = parse_exact(sent.bytes())?;
    let group = find(desk, id)?;
    let (reason, put) = (&wire.check()?, &put);
    let key = call.key(id)?;
    let execute = |admitted| async move {
        // As for any change of the settings: of two at once, the second starts from the first.
        let _one_at_a_time = desk.opening.lock().await;
        let before = row(desk, group)?.settings;
        let settings = put(before).await?;
        if settings == before {
            return Ok(Some(group));
        }
        let command = MerchantCommand::Change { settings, profile: None, reason: Some(reason.clone()) };
        let done = decided(desk.engine.command(group, command, operator.context(admitted)).await?)?;
        Ok(done.map(|()| group))
    };
    key.run(LedgerId::Merchant(group), |_| Ok(group), execute).await
}

async fn set_frozen(call: DeciderCall, frozen: bool) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: HoldReason<'_> = parse_exact(sent.bytes())?;
    let found = ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
    let (_, row) = found.ok_or_else(not_found)?;
    let (id, group, reason) = (row.id, desk.engine.ids().group(row.id), &wire.check()?);
    let key = call.key(&id.txid())?;
    let execute = |admitted| async move {
        let command = MerchantCommand::FreezeRecipient { id, frozen, reason: reason.clone() };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let changed = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    changed.answer(|()| {
        let (ledger, row) = known_recipient(&desk.engine, id)?;
        Ok(ok(recipient::view(&desk.engine, ledger, &row)))
    })
}

/// Refuses a payout of a merchant whose payouts are held, or which is suspended.
pub fn refuse_held_payout(desk: &Desk, group: GroupNumber) -> Result<()> {
    let settings = desk.engine.known_merchant(group, |row| row.settings)?;
    match settings {
        Settings { suspended: true, .. } => Err(Problem::new(Code::MerchantSuspended)),
        Settings { payouts_held: true, .. } => Err(Problem::new(Code::PayoutsHeld)),
        _ => Ok(()),
    }
}
