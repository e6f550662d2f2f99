//! PIX charges (interface 2.3, 2.5, 2.13 rules 1 and 4): payment and cancellation.

use super::MerchantState;
use crate::event::Event;
use crate::id::ObjectId;
use crate::record::Decision;
use crate::rejection::Rejection;

impl MerchantState {
    /// PIX settles at once, the splits with it. A rise of Available first repays the Deficit.
    pub(super) fn confirm_pix(&self, charge: ObjectId, end_to_end_id: String) -> Result<Decision, Rejection> {
        let open = self.open_charge(charge, false)?;
        let (terms, opened) = (open.terms.clone(), open.opened);
        let seller = self.seller_part(terms.seller_net());
        let mut events = vec![Event::PixPaid { charge, terms, seller, end_to_end_id, opened }];
        events.extend(self.recovery(seller.raised));
        Ok(Decision { events, personal: None })
    }

    pub(super) fn cancel_pix(&self, charge: ObjectId) -> Result<Decision, Rejection> {
        let open = self.open_charge(charge, false)?;
        let recipients = open.terms.splits.iter().map(|split| split.recipient).collect();
        Ok(Decision::of(Event::PixCancelled { charge, recipients, opened: open.opened }))
    }
}
