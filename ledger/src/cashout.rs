//! Cashout: the read model of one transfer out of a merchant's balance (interface 2.6).

use crate::event::CashoutFailure;
use crate::withdrawal::RejectedBy;
use crate::{Centavos, Event, LedgerId, Object, ObjectId, RailName, Record, Sealed, Timestamp};

/// How far a cashout has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CashoutStage {
    /// The institution has not said yet what became of it.
    InProcessing,
    /// The institution carried it out.
    Processed {
        /// The transfer's id at the institution.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
    },
    /// The institution carried it out, and the bank sent the money back: the whole amount is
    /// available again.
    Returned {
        /// The transfer's id at the institution.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
        /// Why, in the words of the institution or of an operator.
        notes: String,
    },
    /// It did not happen; the whole amount is available again.
    Failed {
        /// Whether the institution took it.
        failure: CashoutFailure,
        /// Why, in the same words; `None` in older Records.
        notes: Option<String>,
    },
}

/// A cashout, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cashout {
    /// The cashout's id, which contains the time of the request.
    pub id: ObjectId,
    /// The merchant's ledger.
    pub merchant: LedgerId,
    /// `merchant_transaction_id`: a UUID.
    pub transaction: [u8; 16],
    /// Gross, centavos: what the balance gives.
    pub amount: Centavos,
    /// The platform's fee, part of the amount.
    pub fee: Centavos,
    /// Receiver: a sealed [`crate::personal::PixDestination`].
    pub destination: Option<Sealed>,
    /// The rail that it goes to; none in a sandbox.
    pub rail: Option<RailName>,
    /// Last change of its metadata, sealed.
    pub metadata: Option<Sealed>,
    /// How often its metadata was changed.
    pub changes: u32,
    /// How far it has come.
    pub stage: CashoutStage,
    /// When it came there; the time of its id while it is in processing.
    pub updated_at: Timestamp,
}

impl Cashout {
    /// Net amount, which the receiver gets, centavos.
    pub fn net(&self) -> Centavos {
        self.amount - self.fee
    }

    /// Who rejected or returned it, and why; `None` unless it failed.
    pub fn rejection(&self) -> Option<(RejectedBy, Option<&str>)> {
        match &self.stage {
            CashoutStage::InProcessing | CashoutStage::Processed { .. } => None,
            CashoutStage::Failed { notes, .. } => Some((RejectedBy::Bank, notes.as_deref())),
            CashoutStage::Returned { notes, .. } => Some((RejectedBy::Returned, Some(notes))),
        }
    }
}

impl Object for Cashout {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::CashoutCreated { id, transaction, amount, fee, rail, .. } => Some(Self {
                id: *id,
                merchant: record.owner,
                transaction: *transaction,
                amount: *amount,
                fee: *fee,
                destination: record.personal.clone(),
                rail: rail.clone(),
                metadata: None,
                changes: 0,
                stage: CashoutStage::InProcessing,
                updated_at: id.created_at(),
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            self.stage = match event {
                Event::CashoutProcessed { id, transfer_id, end_to_end_id, .. } if *id == self.id => {
                    let (transfer_id, end_to_end_id) = (transfer_id.clone(), end_to_end_id.clone());
                    CashoutStage::Processed { transfer_id, end_to_end_id }
                }
                Event::CashoutFailed { id, failure, notes, .. } if *id == self.id => {
                    CashoutStage::Failed { failure: *failure, notes: notes.clone() }
                }
                Event::CashoutReturned { id, reason, .. } if *id == self.id => match self.stage.clone() {
                    CashoutStage::Processed { transfer_id, end_to_end_id } => {
                        CashoutStage::Returned { transfer_id, end_to_end_id, notes: reason.clone() }
                    }
                    _ => continue,
                },
                Event::MetadataChanged { id, .. } if *id == self.id => {
                    self.metadata.clone_from(&record.personal);
                    self.changes += 1;
                    continue;
                }
                _ => continue,
            };
            self.updated_at = record.effective_at;
        }
    }
}
