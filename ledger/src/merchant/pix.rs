//! PIX charges (interface 2.3, 2.5, 2.13 rules 1 and 4): creation, payment and cancellation.

use super::MerchantState;
use crate::recurrence::CycleOutcome;
use crate::{Centavos, Decision, Event, ObjectId, RailName, Rejection, Result, Sealed, Terms, Timestamp};

impl MerchantState {
    pub(super) fn open_pix(
        charge: ObjectId,
        terms: Terms,
        expires_at: Timestamp,
        payer: Sealed,
        rail: Option<RailName>,
    ) -> Decision {
        let opened = Event::ChargeOpened { charge, terms, card: None, expires_at: Some(expires_at), rail };
        Decision { events: vec![opened], personal: Some(payer) }
    }

    /// The institution has the charge: its code can be paid. Hearing of it again changes nothing; a
    /// charge that has ended meanwhile needs no code.
    pub(super) fn register_pix(&self, charge: ObjectId, code: String) -> Result<Decision> {
        let registers = self.open_charge(charge, false)?.registers_until.is_some();
        Ok(if registers { Decision::of(Event::PixRegistered { charge, code }) } else { Decision::default() })
    }

    /// PIX settles at once, the splits with it. A rise of Available first repays the Deficit. No
    /// charge waits for a payment of another amount.
    pub(super) fn confirm_pix(&self, charge: ObjectId, amount: Centavos, end_to_end_id: String) -> Result<Decision> {
        let open = self.open_charge(charge, false)?;
        if amount != open.terms.amount {
            return Err(Rejection::ChargeNotPending);
        }
        let (terms, opened) = (open.terms.clone(), open.opened);
        let seller = self.seller_part(terms.seller_net());
        let mut events = vec![Event::PixPaid { charge, terms, seller, end_to_end_id, opened }];
        events.extend(self.recovery(seller.raised));
        Ok(self.advancing(Decision { events, personal: None }, charge, CycleOutcome::Paid, None))
    }

    pub(super) fn cancel_pix(&self, charge: ObjectId) -> Result<Decision> {
        let open = self.open_charge(charge, false)?;
        let recipients = open.terms.splits.iter().map(|split| split.recipient).collect();
        let cancelled = Decision::of(Event::PixCancelled { charge, recipients, opened: open.opened });
        Ok(self.advancing(cancelled, charge, CycleOutcome::Unpaid, None))
    }
}
