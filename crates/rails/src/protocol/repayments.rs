//! Money back to a payer: refunds, and disputes that are accepted.

use actors::rails::{RailError, RailResult, Repay, RepayAnswer};
use ledger::{Centavos, RailStamp};
use serde::Serialize;

use super::calls::{BridgeCalls, now};
use super::messages::{Object, Outcome, body};
use super::settings::RailKind;

pub(super) const LIST: &str = "/repayments";

#[derive(Serialize)]
struct NewRepayment<'a> {
    kind: &'static str,
    charge: String,
    payment: &'a str,
    amount: i64,
    before: i64,
}

/// Orders a repayment. Where a repeat may be carried out twice, one that may have been ordered
/// before is only asked for.
pub(super) async fn repay(calls: &BridgeCalls, kind: RailKind, call: &Repay) -> RailResult<RepayAnswer> {
    ordered(calls, kind, "refund", call).await
}

/// Accepts a dispute at the rail.
pub(super) async fn accept_dispute(calls: &BridgeCalls, kind: RailKind, dispute: &Repay) -> RailResult<RailStamp> {
    match ordered(calls, kind, "dispute", dispute).await? {
        RepayAnswer::Repaid(stamp) => Ok(stamp),
        RepayAnswer::UnderWay => Err(RailError::NoAnswer),
        RepayAnswer::Refused { reason } => {
            Err(calls.unknown(LIST, &format!("it refuses an accepted dispute: {reason}")))
        }
    }
}

async fn ordered(calls: &BridgeCalls, kind: RailKind, why: &'static str, call: &Repay) -> RailResult<RepayAnswer> {
    let of = calls.serving(kind).await?;
    let id = call.id.txid();
    let (charge, payment, amount, before) = (call.charge.txid(), &call.payment, call.amount.0, call.before.0);
    let message = NewRepayment { kind: why, charge, payment, amount, before };
    let outcome = match call.is_repeat {
        true => calls.find(LIST, &id).await?,
        false => calls.order(LIST, &id, body(&message)).await?,
    };
    let unknown = |defect: &str| calls.unknown(&format!("{LIST}/{id}"), defect);
    match outcome {
        Outcome::None if of.may_repeat(call.decided_at, now()) => Err(RailError::HasNone),
        Outcome::None => Err(unknown("it has none, and the order may not be sent again")),
        Outcome::Refused(refusal) => Ok(RepayAnswer::Refused { reason: refusal.reason }),
        Outcome::It(object) => repaid(&object, call.amount).map_err(unknown),
    }
}

/// A repayment of this amount, to the last field.
pub(super) fn repaid(object: &Object, amount: Centavos) -> Result<RepayAnswer, &'static str> {
    if !object.has_amount(amount) {
        return Err("amount is not that of the order");
    }
    match object.status.as_str() {
        "under_way" => Ok(RepayAnswer::UnderWay),
        "done" => object.stamp().map(RepayAnswer::Repaid),
        _ => Err("status says no outcome"),
    }
}
