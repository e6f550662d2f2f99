//! Disputes: a payer's bank wants a charge back, by a chargeback (card) or by the special return
//! mechanism, MED (PIX). The money is held while a dispute is open. If it is accepted, the seller
//! bears it; if it is released, the money goes back where it was drawn from.

use super::MerchantState;
use super::adjustments::{Open, Repayment};
use super::refund::{ChargeFacts, drawn, is_pending};
use crate::event::{DisputeKind, Event};
use crate::id::ObjectId;
use crate::money::Centavos;
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::time::{Minute, Timestamp};

/// A dispute as the payer's bank reports it.
#[derive(Clone, Debug)]
pub struct OpenDispute {
    /// Its id.
    pub id: ObjectId,
    /// The charge.
    pub facts: ChargeFacts,
    /// Chargeback or MED.
    pub kind: DisputeKind,
    /// The amount, centavos.
    pub amount: Centavos,
    /// Why, sealed.
    pub reason: Sealed,
}

impl MerchantState {
    /// Disputes and refunds, the undecided ones too, sum to at most what was charged.
    pub(super) fn open_dispute(&self, reported: OpenDispute, now: Timestamp) -> Result<Decision, Rejection> {
        let OpenDispute { id, facts, kind, amount, reason } = reported;
        if amount > self.in_window(&facts, now)?.free(facts.terms.amount) {
            return Err(Rejection::DisputeExceedsCharge);
        }
        let opened = Event::DisputeOpened {
            id,
            charge: facts.charge,
            kind,
            amount,
            drawn: drawn(amount, self.pending_of(&facts, now), self.available()),
            seller_due: facts.seller_due,
            window_ends: facts.window_ends(),
        };
        Ok(Decision { events: vec![opened], personal: Some(reason) })
    }

    pub(super) fn accept_dispute(&self, id: ObjectId, facts: &ChargeFacts) -> Result<Decision, Rejection> {
        let Some(Open::Dispute { charge, amount, .. }) = self.open_of(id, facts) else {
            return Err(Rejection::DisputeAlreadyDecided);
        };
        Ok(Decision::of(Event::DisputeAccepted { id, charge: *charge, method: facts.terms.method, amount: *amount }))
    }

    /// Money from the charge's Pending goes back there while that is not due. The rest goes to
    /// Available, which repays the Deficit.
    pub(super) fn release_dispute(
        &self,
        id: ObjectId,
        facts: &ChargeFacts,
        now: Timestamp,
    ) -> Result<Decision, Rejection> {
        let Some(Open::Dispute { charge, amount, drawn }) = self.open_of(id, facts) else {
            return Err(Rejection::DisputeAlreadyDecided);
        };
        let to_pending = if is_pending(facts, now) { drawn.from_pending } else { Centavos::ZERO };
        let to_available = *amount - to_pending;
        let mut events = vec![Event::DisputeReleased {
            id,
            charge: *charge,
            amount: *amount,
            to_pending,
            seller_due: facts.seller_due,
            to_available,
        }];
        events.extend(self.recovery(to_available));
        Ok(Decision { events, personal: None })
    }

    pub(super) fn apply_dispute(&mut self, event: &Event, record: &Record) {
        let Event::DisputeOpened { id, charge, amount, drawn, seller_due, window_ends, .. } = event else { return };
        self.draw_pending(*seller_due, drawn);
        self.adjustments.hold(record.ordinal, *id, (*charge, *window_ends), *amount, *drawn);
    }

    /// The payer is to be repaid what was held.
    pub(super) fn apply_acceptance(&mut self, event: &Event, record: &Record) {
        self.adjustments.accept(record.ordinal, Repayment::of(event, record.effective_at));
    }

    pub(super) fn apply_release(&mut self, id: ObjectId, to_pending: Centavos, seller_due: Option<Minute>) {
        self.raise_pending(seller_due, to_pending);
        self.adjustments.release(id, to_pending);
    }

    /// The open refund or dispute of an id, if it is of this charge.
    pub(super) fn open_of(&self, id: ObjectId, facts: &ChargeFacts) -> Option<&Open> {
        self.adjustments.open(id).filter(|open| open.charge() == facts.charge)
    }
}
