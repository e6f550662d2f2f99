//! Cashouts (interface 2.6, 3.2): the whole gross is held when one is created, and goes out or comes back when the institution has said
//! what became of it. An open cashout is never failed for want of an answer.

use minicbor::{Decode, Encode};

use super::MerchantState;
use super::waiting::Waits;
use crate::event::{CashoutFailure, Event};
use crate::id::ObjectId;
use crate::money::Centavos;
use crate::record::Decision;
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// What became of a cashout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CashoutOutcome {
    /// The institution carried it out.
    Processed {
        /// The transfer's id at the institution.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
    },
    /// It did not happen, and will not.
    Failed(CashoutFailure),
}

/// A cashout that waits for its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenCashout {
    /// Gross, centavos: what is held.
    #[n(0)]
    pub amount: Centavos,
    /// The platform's fee, part of the amount.
    #[n(1)]
    pub fee: Centavos,
    /// From when on the institution is asked about it: its creation.
    #[n(2)]
    pub attention_at: Timestamp,
    /// The ordinal of the merchant's Record that created it.
    #[n(3)]
    pub opened: u64,
}

impl OpenCashout {
    /// What the receiver gets, centavos.
    pub fn net(&self) -> Centavos {
        self.amount - self.fee
    }
}

impl Waits for OpenCashout {
    fn attention_at(&self) -> Timestamp {
        self.attention_at
    }

    fn opened(&self) -> u64 {
        self.opened
    }
}

impl MerchantState {
    /// The cashouts that wait for their outcome and whose institution is to be asked by `now`, oldest first.
    pub fn cashouts_needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCashout)> {
        self.cashouts.needing_attention(now)
    }

    /// The fee of a cashout that may be created now.
    pub(super) fn cashout_fee(&self, amount: Centavos) -> Result<Centavos, Rejection> {
        if !self.settings.cashout_enabled {
            return Err(Rejection::CashoutNotEnabled);
        }
        let minimum = self.settings.cashout_minimum();
        if amount < minimum {
            return Err(Rejection::CashoutBelowMinimum { minimum });
        }
        if amount > self.available() {
            return Err(Rejection::CashoutAboveAvailable);
        }
        Ok(self.settings.fees.cashout)
    }

    /// A cashout ends once. What comes back first repays the Deficit.
    pub(super) fn settle_cashout(&self, id: ObjectId, outcome: CashoutOutcome) -> Result<Decision, Rejection> {
        let OpenCashout { amount, fee, .. } = *self.cashouts.get(id).ok_or(Rejection::CashoutNotInProcessing)?;
        match outcome {
            CashoutOutcome::Processed { transfer_id, end_to_end_id } => {
                Ok(Decision::of(Event::CashoutProcessed { id, amount, fee, end_to_end_id, transfer_id }))
            }
            CashoutOutcome::Failed(failure) => {
                let mut events = vec![Event::CashoutFailed { id, amount, failure }];
                events.extend(self.recovery(amount));
                Ok(Decision { events, personal: None })
            }
        }
    }
}
