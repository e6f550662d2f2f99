//! Cashouts (interface 2.6, 3.2). The whole gross is held when one is created; it goes out or comes
//! back when the institution has answered. An open cashout never fails because no answer came.

use minicbor::{Decode, Encode};

use super::MerchantState;
use super::rail_waits::Waits;
use crate::event::CashoutFailure;
use crate::{
    Centavos, Decision, Event, Fingerprint, ObjectId, PayoutBank, RailName, Record, Rejection, Result, Sealed,
    Timestamp,
};

/// The institution's answer to a cashout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CashoutOutcome {
    /// The institution carried it out.
    Processed {
        /// The transfer's id at the institution.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
        /// The account that the money left.
        bank: PayoutBank,
    },
    /// It did not happen, and will not.
    Failed {
        /// Whether the institution took it.
        failure: CashoutFailure,
        /// Why, in the words of the institution or of an operator.
        notes: String,
    },
}

/// A processed cashout whose money came back. The caller has read the cashout, and looked up that
/// `key` is new.
#[derive(Clone, Debug)]
pub struct ReturnedCashout {
    /// The cashout.
    pub id: ObjectId,
    /// Gross, centavos.
    pub amount: Centavos,
    /// The fee in it.
    pub fee: Centavos,
    /// The account that the money came back to.
    pub bank: PayoutBank,
    /// Why, in the words of the institution or of an operator.
    pub reason: String,
    /// Keyed digest of the cashout's id, which counts once for ever.
    pub key: Fingerprint,
}

/// A cashout that waits for its outcome. Field 4 of its encoding is a count in older states, and
/// is not used again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenCashout {
    /// Gross, centavos: this much is held.
    #[n(0)]
    pub amount: Centavos,
    /// The platform's fee, part of the amount.
    #[n(1)]
    pub fee: Centavos,
    /// The institution is asked about it from this time on: when it was last ordered.
    #[n(2)]
    pub attention_at: Timestamp,
    /// The ordinal of the merchant's Record that created it.
    #[n(3)]
    pub opened: u64,
}

impl OpenCashout {
    /// The part that the receiver gets, centavos.
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
    /// The cashouts that wait for their outcome and whose institution is to be asked by `now`,
    /// oldest first.
    pub fn cashouts_needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCashout)> {
        self.cashouts.needing_attention(now)
    }

    /// The intent, which is durable before the institution is called. `transaction` is the
    /// merchant's id and its keyed digest.
    pub(super) fn create_cashout(
        &self,
        id: ObjectId,
        (transaction, transaction_key): ([u8; 16], Fingerprint),
        amount: Centavos,
        destination: Sealed,
        rail: Option<RailName>,
    ) -> Result<Decision> {
        let fee = self.cashout_fee(amount)?;
        let created = Event::CashoutCreated { id, transaction, transaction_key, amount, fee, rail };
        Ok(Decision { events: vec![created], personal: Some(destination) })
    }

    /// The money of a processed cashout comes back; it first repays the Deficit.
    pub(super) fn return_cashout(&self, returned: ReturnedCashout) -> Decision {
        let ReturnedCashout { id, amount, fee, bank, reason, key } = returned;
        let mut events = vec![Event::CashoutReturned { id, amount, fee, bank, reason, key }];
        events.extend(self.recovery(amount));
        Decision { events, personal: None }
    }

    /// Keeps a cashout until the institution has said what became of it.
    pub(super) fn hold_cashout(&mut self, id: ObjectId, amount: Centavos, fee: Centavos, record: &Record) {
        let (attention_at, opened) = (record.effective_at, record.ordinal);
        self.cashouts.insert(id, OpenCashout { amount, fee, attention_at, opened });
    }

    /// The fee of a cashout that may be created now.
    fn cashout_fee(&self, amount: Centavos) -> Result<Centavos> {
        if self.settings.suspended {
            return Err(Rejection::MerchantSuspended);
        }
        if self.settings.payouts_held {
            return Err(Rejection::PayoutsHeld);
        }
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

    /// A cashout ends once. Money that comes back first repays the Deficit.
    pub(super) fn settle_cashout(&self, id: ObjectId, outcome: CashoutOutcome) -> Result<Decision> {
        let OpenCashout { amount, fee, .. } = *self.cashouts.get(id).ok_or(Rejection::CashoutNotInProcessing)?;
        match outcome {
            CashoutOutcome::Processed { transfer_id, end_to_end_id, bank } => {
                let bank = Some(bank);
                Ok(Decision::of(Event::CashoutProcessed { id, amount, fee, end_to_end_id, transfer_id, bank }))
            }
            CashoutOutcome::Failed { failure, notes } => {
                let mut events = vec![Event::CashoutFailed { id, amount, failure, notes: Some(notes) }];
                events.extend(self.recovery(amount));
                Ok(Decision { events, personal: None })
            }
        }
    }
}
