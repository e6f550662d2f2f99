//! Orders on a payment: its capture, a refund, its cancellation. Adyen answers that it has received
//! them; what became of them comes as a notification, and only of those that failed it matters.

use actors::rails::{CaptureCard, CardAnswer, RailError, RailResult, Repay, RepayAnswer};
use ledger::merchant::Authorization;
use ledger::{Centavos, ObjectId, RailStamp};

use super::calls::{AdyenCalls, KeyedRequest};
use super::messages::{Amount, Modification, NewModification};
use crate::client::values::is_reference;
use crate::client::{Answer, json_body, now};

/// The word of an order that Adyen has.
const RECEIVED: &str = "received";
/// For how long after it was decided a refund may be ordered again under its key, milliseconds: a
/// day less than Adyen keeps keys, 31 days.
const KEYS_HELD_MS: i64 = 30 * 86_400_000;

/// Orders the capture of an authorized payment. Adyen's fee is not in its answer: a batch that
/// settles the charge brings it.
pub(super) async fn capture(calls: &AdyenCalls, call: &CaptureCard) -> RailResult<CardAnswer> {
    let Authorization { stamp, brand } = &call.authorized;
    let (txid, path) = (call.charge.txid(), format!("/payments/{}/captures", stamp.id));
    let key = format!("{txid}-capture");
    let request = KeyedRequest { path: &path, key: &key, body: body(calls, &txid, Some(call.amount), None) };
    modify(calls, request, |modification| modification.is_of(&stamp.id, call.amount)).await?;
    let stamp = RailStamp { at: now(), ..stamp.clone() };
    Ok(CardAnswer::Captured { acquirer_mdr: Centavos::ZERO, brand: *brand, stamp })
}

/// Orders that money go back to the payer. Adyen can't be asked about a refund, so a repeat is the
/// question; one that it may have forgotten is not ordered again.
pub(super) async fn refund(calls: &AdyenCalls, call: &Repay) -> RailResult<RepayAnswer> {
    let (id, path) = (call.id.txid(), format!("/payments/{}/refunds", call.payment));
    if call.is_repeat {
        if call.decided_at.plus_ms(KEYS_HELD_MS) > now() {
            return Err(RailError::HasNone);
        }
        calls.complain(&path, "the refund is too old to be ordered again");
        return Err(RailError::NoAnswer);
    }
    let request = KeyedRequest { path: &path, key: &id, body: body(calls, &id, Some(call.amount), None) };
    let modification = modify(calls, request, |modification| modification.is_of(&call.payment, call.amount)).await?;
    Ok(RepayAnswer::Repaid(RailStamp::new(modification.psp_reference, now())))
}

/// Orders that whatever Adyen has under a charge's reference be cancelled.
pub(super) async fn cancel(calls: &AdyenCalls, charge: ObjectId) -> RailResult<()> {
    let txid = charge.txid();
    let key = format!("{txid}-cancel");
    let request = KeyedRequest { path: "/cancels", key: &key, body: body(calls, &txid, None, Some(&txid)) };
    modify(calls, request, |modification| modification.payment_reference.as_ref() == Some(&txid)).await.map(drop)
}

fn body(
    calls: &AdyenCalls,
    reference: &str,
    amount: Option<Centavos>,
    payment_reference: Option<&str>,
) -> bytes::Bytes {
    let merchant_account = &calls.merchant_account;
    json_body(&NewModification { amount: amount.map(Amount::of), merchant_account, reference, payment_reference })
}

/// Sends an order. No code of an error refuses one for good.
async fn modify(
    calls: &AdyenCalls,
    request: KeyedRequest<'_>,
    is_ours: impl Fn(&Modification) -> bool,
) -> RailResult<Modification> {
    let read = |answer: &Answer| match answer.status.as_u16() {
        200 | 201 => match answer.read::<Modification>()? {
            modification
                if modification.status == RECEIVED
                    && is_reference(&modification.psp_reference)
                    && is_ours(&modification) =>
            {
                Ok(modification)
            }
            _ => Err("it has received something else".to_owned()),
        },
        status => Err(format!("its answer {status} is no outcome")),
    };
    calls.order(request, read).await
}

impl Modification {
    /// Whether it is about this payment and this amount.
    fn is_of(&self, payment: &str, amount: Centavos) -> bool {
        let is_amount = self.amount.as_ref().is_some_and(|answered| answered.is(amount));
        is_amount && self.payment_psp_reference.as_deref() == Some(payment)
    }
}
