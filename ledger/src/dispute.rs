//! Dispute: the read model of one charge that a payer's bank wants back, and of the decision on it.

use strum::IntoStaticStr;

use crate::event::{DisputeCase, SellerDraw};
use crate::{Centavos, DisputeKind, Event, LedgerId, Object, ObjectId, Record, Sealed, Timestamp};

/// Status of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DisputeDecision {
    /// The money is held; nobody has decided yet.
    Open,
    /// The money goes back to the payer; the seller bears it. What was not accepted was released.
    Accepted {
        /// When it was accepted.
        at: Timestamp,
        /// The part that was accepted, centavos.
        amount: Centavos,
    },
    /// It was accepted, and won later: the seller has the money again.
    Reversed {
        /// When it was reversed.
        at: Timestamp,
        /// The part that was accepted, centavos.
        amount: Centavos,
    },
    /// The seller keeps the money.
    Released {
        /// When it was released.
        at: Timestamp,
    },
}

impl DisputeDecision {
    /// When the dispute was decided last; none while it is open.
    pub fn at(self) -> Option<Timestamp> {
        match self {
            Self::Open => None,
            Self::Accepted { at, .. } | Self::Reversed { at, .. } | Self::Released { at } => Some(at),
        }
    }
}

/// A dispute, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// The dispute's id, which contains the time of its opening.
    pub id: ObjectId,
    /// The charge that is disputed.
    pub charge: ObjectId,
    /// The merchant's ledger.
    pub merchant: LedgerId,
    /// Chargeback or MED.
    pub kind: DisputeKind,
    /// Disputed amount, centavos.
    pub amount: Centavos,
    /// Where its money was taken from.
    pub drawn: SellerDraw,
    /// The part that passes what was left of the charge, centavos; `None` if nothing does.
    pub exceeds: Option<Centavos>,
    /// Why, as the payer's bank says: a sealed [`crate::personal::FreeText`].
    pub reason: Option<Sealed>,
    /// The rail's case; none of a dispute that an operator opened.
    pub case: Option<DisputeCase>,
    /// Why it was released, in the operator's words.
    pub notes: Option<String>,
    /// Its status.
    pub decision: DisputeDecision,
}

impl Object for Dispute {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::DisputeOpened { id, charge, kind, amount, drawn, exceeds, case, .. } => Some(Self {
                id: *id,
                charge: *charge,
                merchant: record.owner,
                kind: *kind,
                amount: *amount,
                drawn: *drawn,
                exceeds: *exceeds,
                reason: record.personal.clone(),
                case: case.clone(),
                notes: None,
                decision: DisputeDecision::Open,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        let at = record.effective_at;
        for event in &record.events {
            match event {
                Event::DisputeAccepted { id, amount, .. } if *id == self.id => {
                    self.decision = DisputeDecision::Accepted { at, amount: *amount };
                }
                Event::DisputeReversed { id, amount, .. } if *id == self.id => {
                    self.decision = DisputeDecision::Reversed { at, amount: *amount };
                }
                // The release of a rest comes before the acceptance in its Record.
                Event::DisputeReleased { id, notes, .. } if *id == self.id => {
                    self.decision = DisputeDecision::Released { at };
                    self.notes.clone_from(notes);
                }
                _ => {}
            }
        }
    }
}
