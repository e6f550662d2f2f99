//! Refund: the read model of one refund and of the decision on it (interface 2.11, 3.6).

use crate::event::{Event, Split};
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;
use crate::object::Object;
use crate::personal::Sealed;
use crate::record::Record;

/// Status of a refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundDecision {
    /// The operations team has not decided yet.
    Pending,
    /// The operations team approved it; the money has moved.
    Approved,
    /// The operations team rejected it.
    Rejected {
        /// The operator's reason.
        notes: String,
    },
}

/// A refund, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// The refund's id. It tells when the refund was asked for.
    pub id: ObjectId,
    /// The charge that it gives back a part of.
    pub charge: ObjectId,
    /// The merchant's ledger.
    pub merchant: LedgerId,
    /// How much is given back, centavos.
    pub amount: Centavos,
    /// Take-backs of splits: one for each recipient.
    pub take_back: Vec<Split>,
    /// Why, if the merchant said so: a sealed [`crate::personal::FreeText`].
    pub reason: Option<Sealed>,
    /// Its status.
    pub decision: RefundDecision,
}

impl Object for Refund {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::RefundRequested { id, charge, amount, take_back, .. } => Some(Self {
                id: *id,
                charge: *charge,
                merchant: record.owner,
                amount: *amount,
                take_back: take_back.clone(),
                reason: record.personal.clone(),
                decision: RefundDecision::Pending,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::RefundApproved { id, .. } if *id == self.id => self.decision = RefundDecision::Approved,
                Event::RefundRejected { id, notes, .. } if *id == self.id => {
                    self.decision = RefundDecision::Rejected { notes: notes.clone() };
                }
                _ => {}
            }
        }
    }
}
