//! Refunds that a rail refuses to carry out. The money returns to where the approval drew it from:
//! the seller's own, and the parts that recipients paid back. Commission that was given back is
//! charged again.

use super::MerchantState;
use super::adjustments::{ChargeAdjustments, Open, Repayment, RepaymentKind};
use super::refund::{ChargeFacts, drawn, is_pending};
use crate::fees::Commission;
use crate::refund::RefundMoney;
use crate::{Centavos, Decision, Event, Fingerprint, ObjectId, Timestamp};

/// A refund that the rail refused.
#[derive(Clone, Debug)]
pub struct FailRefund {
    /// The refund.
    pub id: ObjectId,
    /// Its charge.
    pub facts: ChargeFacts,
    /// Where its money came from.
    pub money: RefundMoney,
    /// Why, in the rail's words.
    pub notes: String,
    /// The refund as the rail had confirmed it, where it has undone it; none of one that waits for
    /// its rail.
    pub reversed: Option<ReversedRefund>,
}

/// A refund that a rail had confirmed and has undone.
#[derive(Clone, Copy, Debug)]
pub struct ReversedRefund {
    /// Its amount, centavos.
    pub amount: Centavos,
    /// Counts once for ever.
    pub key: Fingerprint,
}

impl MerchantState {
    /// Takes an approved refund back, confirmed or not. Hearing of it again changes nothing.
    pub(super) fn fail_refund(&self, failed: FailRefund, now: Timestamp) -> Decision {
        let FailRefund { id, facts, money, notes, reversed } = failed;
        let (charge, method) = (facts.charge, facts.terms.method);
        let (amount, reversal) = match (self.open_of(id, &facts), reversed) {
            (Some(Open::Repayment(Repayment { amount, kind: RepaymentKind::Sent, .. })), _) => (*amount, None),
            (None, Some(ReversedRefund { amount, key })) => {
                (amount, Some(Event::RepaymentReversed { id, charge, method, amount, key }))
            }
            _ => return Decision::default(),
        };
        let give_backs = money.give_backs(facts.splits_due.filter(|due| !due.is_due(now)));
        let given: Centavos = give_backs.iter().map(|part| part.to_pending + part.to_available).sum();
        let to_pending = if is_pending(&facts, now) { money.kept_from_pending() } else { Centavos::ZERO };
        let to_available = amount - given - to_pending;
        let adjusted = self.adjusted(charge);
        let (commission, commission_through) = charged_again(&facts, &adjusted, &money, amount);
        let (pending, available) = (self.pending_of(&facts, now) + to_pending, self.available() + to_available);
        let charged = drawn(commission.total(), pending, available);
        let mut events = Vec::from_iter(reversal);
        events.push(Event::RefundFailed {
            id,
            charge,
            method,
            amount,
            notes,
            to_pending,
            seller_due: facts.seller_due,
            to_available,
            give_backs,
            commission,
            charged,
            commission_through,
        });
        events.extend(self.recovery(available - charged.from_available));
        Decision { events, personal: None }
    }

    pub(super) fn apply_failed_refund(&mut self, event: &Event) {
        let Event::RefundFailed {
            id,
            charge,
            amount,
            to_pending,
            seller_due,
            give_backs,
            charged,
            commission_through,
            ..
        } = event
        else {
            return;
        };
        self.raise_pending(*seller_due, *to_pending);
        self.draw_pending(*seller_due, charged);
        let drawn_pending = charged.from_pending - *to_pending;
        self.adjustments.fail([*id, *charge], *amount, drawn_pending, *commission_through, give_backs);
    }
}

/// The commission that a refund gave back, and the sum of the charge's other refunds that gave
/// some back. Each component is rounded on that sum, as it was when the refund was approved.
fn charged_again(
    facts: &ChargeFacts,
    adjusted: &ChargeAdjustments,
    money: &RefundMoney,
    amount: Centavos,
) -> (Commission, Centavos) {
    let through = adjusted.commission_through;
    if !money.gave_commission {
        return (Commission::default(), through);
    }
    let (before, charged) = (through - amount, &facts.terms.commission);
    let again = |part: Centavos| part.share(through, facts.terms.amount) - part.share(before, facts.terms.amount);
    let commission = Commission {
        mdr: again(charged.mdr),
        antifraud: again(charged.antifraud),
        margin: again(charged.margin),
        pix: again(charged.pix),
    };
    (commission, before)
}
