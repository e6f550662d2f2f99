//! Disputes: a payer's bank wants a charge back, by a chargeback (card) or by the special return
//! mechanism, MED (PIX). The money is held while a dispute is open. If it is accepted, the seller
//! bears it; if it is released, the money goes back where it was drawn from. So it does if an
//! accepted dispute is won later.

use super::MerchantState;
use super::adjustments::{Open, Repayment};
use super::refund::{ChargeFacts, drawn, is_pending};
use crate::adjustment::{self, AdjustmentCommand, AdjustmentTerms};
use crate::dispute::DisputeDecision;
use crate::event::{DisputeCase, ReturnEntry, SellerDraw};
use crate::{
    AdjustmentTarget, Centavos, Decision, Dispute, DisputeKind, Event, Fingerprint, Minute, ObjectId, Record,
    Rejection, Result, Sealed, Timestamp,
};

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
    /// The rail's case; none where an operator opens it.
    pub case: Option<DisputeCase>,
}

/// An accepted dispute that was won later.
#[derive(Clone, Debug)]
pub struct ReverseDispute {
    /// The dispute, as its Records say.
    pub dispute: Dispute,
    /// Its charge.
    pub facts: ChargeFacts,
    /// Keyed digest of the dispute's id, which counts once for ever.
    pub key: Fingerprint,
    /// What an operator does about the entry that says so; `None` if the rail says so.
    pub command: Option<AdjustmentCommand>,
}

impl MerchantState {
    /// A payer's bank does not ask: a dispute is recorded whatever was refunded before. What passes
    /// the rest of the charge is marked, for the operator to contest it. Disputes sum to at most
    /// what was charged: beyond that, one was reported twice.
    pub(super) fn open_dispute(&self, reported: OpenDispute, now: Timestamp) -> Result<Decision> {
        let OpenDispute { id, facts, kind, amount, reason, case } = reported;
        if facts.terms.method.is_card() != (kind == DisputeKind::Chargeback) {
            return Err(Rejection::DisputeKindUnfit);
        }
        // A rail says what is, however late.
        if case.is_none() && now > facts.disputable_until() {
            return Err(Rejection::DisputeTooLate);
        }
        let adjusted = self.adjusted(facts.charge);
        if amount > facts.terms.amount - adjusted.disputed - adjusted.lost {
            return Err(Rejection::DisputeExceedsCharge);
        }
        let left = adjusted.ungiven(facts.terms.amount).max(Centavos::ZERO);
        let exceeds = Some(amount - left).filter(|exceeds| exceeds.is_positive());
        let opened = Event::DisputeOpened {
            id,
            charge: facts.charge,
            kind,
            amount,
            drawn: drawn(amount, self.pending_of(&facts, now), self.available()),
            seller_due: facts.seller_due,
            window_ends: facts.window_ends(),
            exceeds,
            case,
        };
        Ok(Decision { events: vec![opened], personal: Some(reason) })
    }

    /// Accepts a part of a dispute, or all of it. The rest is released by the same Record, before
    /// the part is accepted.
    pub(super) fn accept_dispute(
        &self,
        id: ObjectId,
        part: Option<Centavos>,
        facts: &ChargeFacts,
        now: Timestamp,
    ) -> Result<Decision> {
        let Some(Open::Dispute { charge, amount: held, drawn }) = self.open_of(id, facts) else {
            return Err(Rejection::DisputeAlreadyDecided);
        };
        let amount = part.unwrap_or(*held);
        if amount > *held {
            return Err(Rejection::AcceptanceExceedsDispute);
        }
        let accepted = Event::DisputeAccepted { id, charge: *charge, method: facts.terms.method, amount };
        if amount == *held {
            return Ok(Decision::of(accepted));
        }
        let mut events = self.released((id, facts), drawn, (amount, None), now);
        events.insert(1, accepted);
        Ok(Decision { events, personal: None })
    }

    pub(super) fn release_dispute(
        &self,
        id: ObjectId,
        facts: &ChargeFacts,
        notes: Option<String>,
        now: Timestamp,
    ) -> Result<Decision> {
        let Some(Open::Dispute { drawn, .. }) = self.open_of(id, facts) else {
            return Err(Rejection::DisputeAlreadyDecided);
        };
        Ok(Decision { events: self.released((id, facts), drawn, (Centavos::ZERO, notes), now), personal: None })
    }

    /// The release of the held amount, less the accepted part. The accounts gave that part first.
    /// Money from the charge's Pending goes back there while that is not due. The rest
    /// goes to Available, which repays the Deficit.
    fn released(
        &self,
        (id, facts): (ObjectId, &ChargeFacts),
        held: &SellerDraw,
        (accepted, notes): (Centavos, Option<String>),
        now: Timestamp,
    ) -> Vec<Event> {
        let amount = held.total() - accepted;
        let from_pending = held.from_pending - held.first(accepted).from_pending;
        let to_pending = if is_pending(facts, now) { from_pending } else { Centavos::ZERO };
        let to_available = amount - to_pending;
        let mut events = vec![Event::DisputeReleased {
            id,
            charge: facts.charge,
            amount,
            to_pending,
            seller_due: facts.seller_due,
            to_available,
            accepted: Some(accepted).filter(|accepted| accepted.is_positive()),
            notes,
        }];
        events.extend(self.recovery(to_available));
        events
    }

    /// Gives back what an accepted dispute took, by the rail's word or by two operators. Errors: it
    /// is not accepted; an entry that says so waits; the operator who asked for it approves it.
    pub(super) fn reverse_dispute(&self, reversal: ReverseDispute, now: Timestamp) -> Result<Decision> {
        let ReverseDispute { dispute, facts, key, command } = reversal;
        let DisputeDecision::Accepted { amount, .. } = dispute.decision else {
            return Err(Rejection::DisputeNotAccepted);
        };
        let target = Some(AdjustmentTarget::Dispute(dispute.id));
        let is_waiting = || self.goodwill.iter().any(|open| open.target == target);
        let entry = match command {
            Some(AdjustmentCommand::Request { .. }) if is_waiting() => return Err(Rejection::ReversalWaits),
            Some(AdjustmentCommand::Request { id, terms, reason }) => {
                let terms = AdjustmentTerms { amount, target, ..terms };
                return AdjustmentCommand::Request { id, terms, reason }.decide(&self.goodwill).map(Decision::of);
            }
            Some(command) => match command.decide(&self.goodwill)? {
                Event::AdjustmentCreated { id, reference, .. } => {
                    Some(ReturnEntry { id, reference, effective_day: None })
                }
                event => return Ok(Decision::of(event)),
            },
            None => None,
        };
        let from_pending = dispute.drawn.first(amount).from_pending;
        let to_pending = if is_pending(&facts, now) { from_pending } else { Centavos::ZERO };
        let to_available = amount - to_pending;
        let reversed = Event::DisputeReversed {
            id: dispute.id,
            charge: facts.charge,
            method: facts.terms.method,
            amount,
            to_pending,
            seller_due: facts.seller_due,
            to_available,
            key,
            entry,
        };
        let recovery = self.recovery(self.available() + to_available);
        Ok(Decision { events: [reversed].into_iter().chain(recovery).collect(), personal: None })
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

    pub(super) fn apply_release(
        &mut self,
        id: ObjectId,
        amount: Centavos,
        to_pending: Centavos,
        seller_due: Option<Minute>,
    ) {
        self.raise_pending(seller_due, to_pending);
        self.adjustments.release(id, amount, to_pending);
    }

    pub(super) fn apply_reversal(&mut self, event: &Event, record: &Record) {
        let Event::DisputeReversed { id, charge, amount, to_pending, seller_due, .. } = event else { return };
        self.raise_pending(*seller_due, *to_pending);
        self.adjustments.reverse([*id, *charge], *amount, *to_pending);
        adjustment::follow(&mut self.goodwill, event, record);
    }

    /// The open refund or dispute of an id, if it is of this charge.
    pub(super) fn open_of(&self, id: ObjectId, facts: &ChargeFacts) -> Option<&Open> {
        self.adjustments.open(id).filter(|open| open.charge() == facts.charge)
    }
}
