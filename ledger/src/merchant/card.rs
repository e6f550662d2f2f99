//! Card charges (interface 2.1, 2.2, 2.13 rules 2 and 4): the acquirer's answer.

use super::MerchantState;
use crate::event::Event;
use crate::fees::SPLIT_SETTLEMENT_DAYS;
use crate::id::ObjectId;
use crate::money::Centavos;
use crate::record::Decision;
use crate::rejection::Rejection;
use crate::time::Timestamp;

impl MerchantState {
    /// The splits wait 30 days; the seller's part as long as its terms say. What the acquirer says it keeps is held between nothing
    /// and the total.
    pub(super) fn capture_card(
        &self,
        charge: ObjectId,
        acquirer_mdr: Centavos,
        now: Timestamp,
    ) -> Result<Decision, Rejection> {
        let open = self.open_charge(charge, true)?;
        let (terms, opened) = (open.terms.clone(), open.opened);
        Ok(Decision::of(Event::CardCaptured {
            charge,
            acquirer_mdr: acquirer_mdr.or_zero().min(terms.amount),
            seller: self.seller_part(terms.seller_net()),
            seller_due: now.plus_days(terms.settlement_days).minute(),
            splits_due: now.plus_days(SPLIT_SETTLEMENT_DAYS).minute(),
            terms,
            opened,
        }))
    }
}
