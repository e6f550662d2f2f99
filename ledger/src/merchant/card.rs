//! Card charges (interface 2.1, 2.2, 2.13 rules 2 and 4): the intent, and the acquirer's answer.

use super::MerchantState;
use super::charge::{Authorization, CAPTURE_AGAIN_AFTER_MS, OpenCharge};
use crate::event::SellerPart;
use crate::fees::SPLIT_SETTLEMENT_DAYS;
use crate::recurrence::{CycleOutcome, UnpaidReason};
use crate::{
    CardBrand, CardFace, CardRefusal, Centavos, Decision, Event, Minute, ObjectId, RailName, Record, Result, Sealed,
    Terms, Timestamp,
};

impl MerchantState {
    /// The intent, which is durable before the acquirer is called.
    pub(super) fn open_card(
        charge: ObjectId,
        terms: Terms,
        card: CardFace,
        payer: Sealed,
        rail: Option<RailName>,
    ) -> Decision {
        let opened = Event::ChargeOpened { charge, terms, card: Some(card), expires_at: None, rail };
        Decision { events: vec![opened], personal: Some(payer) }
    }

    /// No money moves. An authorization that is known changes nothing.
    pub(super) fn authorize_card(&self, charge: ObjectId, brand: Option<CardBrand>) -> Result<Decision> {
        let is_known = self.open_charge(charge, true)?.authorized.is_some();
        Ok(if is_known { Decision::default() } else { Decision::of(Event::CardAuthorized { charge, brand }) })
    }

    /// Keeps what the acquirer said of its authorization, until the charge is captured.
    pub(super) fn keep_authorized(&mut self, charge: ObjectId, brand: Option<CardBrand>, record: &Record) {
        let (Some(open), Some(stamp)) = (self.open_charges.get(charge).cloned(), record.rail.clone()) else { return };
        let attention_at = record.effective_at.plus_ms(CAPTURE_AGAIN_AFTER_MS);
        let authorized = Some(Box::new(Authorization { stamp, brand }));
        self.open_charges.insert(charge, OpenCharge { authorized, attention_at, ..open });
    }

    /// The splits wait 30 days from the capture, the seller's part as long as its terms say. Money
    /// that would have been due before we hear of the capture is due at once. The fee that the
    /// acquirer reports is clamped to zero and the total. `brand` is the acquirer's word.
    pub(super) fn capture_card(
        &self,
        charge: ObjectId,
        acquirer_mdr: Centavos,
        captured_at: Timestamp,
        brand: Option<CardBrand>,
        now: Timestamp,
    ) -> Result<Decision> {
        let open = self.open_charge(charge, true)?;
        let due = |days: u16| captured_at.min(now).plus_days(days).max(now).minute();
        let (terms, opened) = (open.terms.clone(), open.opened);
        let brand = brand.or_else(|| open.authorized.as_ref()?.brand);
        let captured = Decision::of(Event::CardCaptured {
            charge,
            acquirer_mdr: acquirer_mdr.or_zero().min(terms.amount),
            seller: self.seller_part(terms.seller_net()),
            seller_due: due(terms.settlement_days),
            splits_due: due(SPLIT_SETTLEMENT_DAYS),
            terms,
            opened,
            brand,
        });
        Ok(self.advancing(captured, charge, CycleOutcome::Paid, None))
    }

    /// A subscription does not try a card again that the schemes forbid to try.
    pub(super) fn refuse_card(&self, charge: ObjectId, refusal: CardRefusal) -> Result<Decision> {
        let open = self.open_charge(charge, true)?;
        let (opened, method) = (open.opened, open.terms.method);
        let refused = Decision::of(Event::CardRefused { charge, refusal, opened, method });
        let given_up = refusal.is_final().then_some(UnpaidReason::CardRefused);
        Ok(self.advancing(refused, charge, CycleOutcome::Refused, given_up))
    }

    /// The charge stays open: a reconciliation asks the acquirer later.
    pub(super) fn leave_unanswered(&self, charge: ObjectId) -> Result<Decision> {
        self.open_charge(charge, true)?;
        Ok(Decision::of(Event::CardUnanswered { charge }))
    }

    /// The seller's part of a captured charge falls due later.
    pub(super) fn apply_capture(&mut self, charge: ObjectId, seller: &SellerPart, seller_due: Minute) {
        self.open_charges.remove(charge);
        self.pending.add(seller_due, seller.raised);
    }
}
