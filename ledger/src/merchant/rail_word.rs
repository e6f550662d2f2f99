//! Orders that operators end in place of a rail: charges, cashouts and repayments.

use super::adjustments::{Open, Repayment, RepaymentKind};
use super::cashout::CashoutOutcome;
use super::{MerchantState, OpenCashout, OpenCharge};
use crate::event::CashoutFailure;
use crate::rail_word::SayRailWord;
use crate::{CardRefusal, Centavos, Decision, Event, ObjectId, Rejection, Result, Timestamp};

/// An order of a merchant that waits for its rail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingOrder {
    /// A charge.
    Charge {
        /// True for a card.
        is_card: bool,
    },
    /// A cashout.
    Cashout,
    /// Money that goes back to a payer.
    Repayment(Repayment),
}

impl MerchantState {
    /// The order of this id that waits for its rail; `None` if it has ended.
    pub fn waiting_order(&self, id: ObjectId) -> Option<WaitingOrder> {
        if let Some(open) = self.open_charges.get(id) {
            return Some(WaitingOrder::Charge { is_card: open.terms.method.is_card() });
        }
        if self.cashouts.get(id).is_some() {
            return Some(WaitingOrder::Cashout);
        }
        match self.adjustments.open(id) {
            Some(Open::Repayment(repayment)) => Some(WaitingOrder::Repayment(*repayment)),
            _ => None,
        }
    }

    /// The order is sent once more, under the same id.
    pub(super) fn try_order(&self, id: ObjectId, attempt: u32) -> Result<Decision> {
        self.waiting_order(id).ok_or(Rejection::OutcomeNotUnknown)?;
        Ok(Decision::of(Event::RailTried { id, attempt }))
    }

    /// The first word is noted, if a second one can end the order by it; the second one ends it. A
    /// capture by word has no fee of the acquirer: the batch that settles it brings the fee.
    pub(super) fn say_rail_word(&self, mut said: SayRailWord, now: Timestamp) -> Result<Decision> {
        let (id, returned, deferred) = (said.id, said.returned.take(), said.deferred);
        let mut decision = match (returned, deferred) {
            (Some(returned), _) => self.return_cashout(*returned),
            (None, Some(charge)) => Decision::of(Event::DeferredCaseEnded { id, charge }),
            (None, None) => {
                said.check_age(self.order_times(id).ok_or(Rejection::OutcomeNotUnknown)?, now)?;
                self.ended_by_word(&said, now)?
            }
        };
        let Some(asked_by) = said.asked_by.clone() else { return Ok(Decision::of(said.into_request())) };
        decision.events.push(said.given(asked_by));
        Ok(decision)
    }

    /// When the rail was to know the order, and when the order was last sent again.
    fn order_times(&self, id: ObjectId) -> Option<(Timestamp, Option<Timestamp>)> {
        Some(match self.waiting_order(id)? {
            WaitingOrder::Charge { .. } => {
                let open = self.open_charges.get(id)?;
                (open.attention_at, open.tried_at)
            }
            WaitingOrder::Cashout => (id.created_at(), Some(self.cashouts.get(id)?.attention_at)),
            WaitingOrder::Repayment(repayment) => (repayment.since, repayment.tried_at),
        })
    }

    /// Notes when an order was sent once more.
    pub(super) fn note_tried(&mut self, id: ObjectId, at: Timestamp) {
        if let Some(open) = self.open_charges.get(id).cloned() {
            self.open_charges.insert(id, OpenCharge { tried_at: Some(at), ..open });
        } else if let Some(open) = self.cashouts.get(id).cloned() {
            self.cashouts.insert(id, OpenCashout { attention_at: at, ..open });
        } else {
            self.adjustments.note_tried(id, at);
        }
    }

    fn ended_by_word(&self, said: &SayRailWord, now: Timestamp) -> Result<Decision> {
        let SayRailWord { id, word, .. } = said;
        let (id, reference) = (*id, || word.reference.clone());
        match (self.waiting_order(id).ok_or(Rejection::OutcomeNotUnknown)?, word.happened) {
            (WaitingOrder::Charge { is_card: true }, true) => {
                self.capture_card(id, Centavos::ZERO, id.created_at(), None, now)
            }
            (WaitingOrder::Charge { is_card: true }, false) => self.refuse_card(id, CardRefusal::Failed),
            (WaitingOrder::Charge { is_card: false }, true) => {
                let amount = self.open_charge(id, false)?.terms.amount;
                self.confirm_pix(id, amount, reference())
            }
            (WaitingOrder::Charge { is_card: false }, false) => self.cancel_pix(id),
            (WaitingOrder::Cashout, true) => {
                let (transfer_id, end_to_end_id) = (reference(), reference());
                self.settle_cashout(id, CashoutOutcome::Processed { transfer_id, end_to_end_id, bank: said.bank })
            }
            (WaitingOrder::Cashout, false) => {
                let (failure, notes) = (CashoutFailure::NotCarriedOut, said.reason.clone());
                self.settle_cashout(id, CashoutOutcome::Failed { failure, notes })
            }
            (WaitingOrder::Repayment(_), true) => Ok(self.repaid(id)),
            (WaitingOrder::Repayment(repayment), false) => match (repayment.kind, &said.refund) {
                (RepaymentKind::Sent, Some(refund)) => Ok(self.fail_refund((**refund).clone(), now)),
                (RepaymentKind::Unordered, _) => self.not_repaid(id, said.reason.clone()),
                _ => Err(Rejection::OutcomeNotUnknown),
            },
        }
    }

    /// The rail refuses to send a payment back that nobody asked for: the money stays owed to the
    /// payer, and the rail is not asked again.
    pub(super) fn not_repaid(&self, id: ObjectId, reason: String) -> Result<Decision> {
        match self.adjustments.open(id) {
            Some(Open::Repayment(Repayment {
                kind: RepaymentKind::Unordered,
                is_refused: false,
                charge,
                amount,
                ..
            })) => Ok(Decision::of(Event::PayerNotRepaid { id, charge: *charge, amount: *amount, reason })),
            _ => Err(Rejection::OutcomeNotUnknown),
        }
    }
}
