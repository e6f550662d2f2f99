//! Write-off of a debt that will not be paid back: a merchant's Deficit, or a recipient's Clawback.
//! An operator asks for it, and another one approves it. It belongs to the debtor's ledger, which
//! has at most one that waits.

use minicbor::{Decode, Encode};

use crate::event::Event;
use crate::house::HouseEntryDecision;
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;
use crate::object::Object;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;

/// A request of an operator about a write-off.
#[derive(Clone, Debug)]
pub enum WriteOffCommand {
    /// Asks for one.
    Request {
        /// The write-off's id, a new one.
        id: ObjectId,
        /// How much of the debt, centavos.
        amount: Centavos,
        /// Reference of the document that proves it.
        reference: String,
        /// Why, in the operator's words.
        reason: String,
    },
    /// Approves it, which books it at once.
    Approve {
        /// The write-off's id.
        id: ObjectId,
        /// The operator who approves.
        operator: String,
    },
    /// Rejects it, or takes back one's own.
    Reject {
        /// The write-off's id.
        id: ObjectId,
        /// Why, in the operator's words.
        notes: String,
    },
}

/// The write-off of a debtor that waits for a second operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct OpenWriteOff {
    #[n(0)]
    pub(crate) id: ObjectId,
    #[n(1)]
    pub(crate) amount: Centavos,
    #[n(2)]
    pub(crate) reference: String,
    /// The operator who asked for it.
    #[n(3)]
    pub(crate) requested_by: String,
}

impl OpenWriteOff {
    /// The one that waits after an event of its debtor's Record.
    pub(crate) fn follow(open: &mut Option<Self>, event: &Event, record: &Record) {
        match event {
            Event::WriteOffRequested { id, amount, reference, .. } => {
                let requested_by = record.operator.clone().unwrap_or_default();
                *open = Some(Self { id: *id, amount: *amount, reference: reference.clone(), requested_by });
            }
            Event::WriteOffRejected { .. } | Event::DeficitWrittenOff { .. } | Event::ClawbackWrittenOff { .. } => {
                *open = None;
            }
            _ => {}
        }
    }
}

impl WriteOffCommand {
    /// Decides it for a debtor that owes `debt`; `open` waits, and `book` makes the event of an
    /// approved one.
    pub(crate) fn decide(
        self,
        open: Option<&OpenWriteOff>,
        debt: Centavos,
        book: impl FnOnce(&OpenWriteOff) -> Event,
    ) -> Result<Decision, Rejection> {
        let of = |id| open.filter(|open| open.id == id).ok_or(Rejection::HouseEntryAlreadyDecided);
        let covered = |amount| if amount > debt { Err(Rejection::WriteOffExceedsDebt) } else { Ok(()) };
        let event = match self {
            Self::Request { .. } if open.is_some() => return Err(Rejection::WriteOffWaits),
            Self::Request { id, amount, reference, reason } => {
                covered(amount)?;
                Event::WriteOffRequested { id, amount, reference, reason }
            }
            Self::Approve { id, operator } => {
                let open = of(id)?;
                if open.requested_by == operator {
                    return Err(Rejection::SecondOperatorNeeded);
                }
                covered(open.amount)?;
                book(open)
            }
            Self::Reject { id, notes } => Event::WriteOffRejected { id: of(id)?.id, notes },
        };
        Ok(Decision::of(event))
    }
}

/// A write-off, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOff {
    /// Its id. It tells when the write-off was asked for.
    pub id: ObjectId,
    /// The debtor: a merchant that has a Deficit, or a recipient that has a Clawback.
    pub debtor: LedgerId,
    /// How much, centavos.
    pub amount: Centavos,
    /// Reference of the document that proves it.
    pub reference: String,
    /// Why, as the first operator said.
    pub reason: String,
    /// The operator who asked for it.
    pub requested_by: String,
    /// Its status.
    pub decision: HouseEntryDecision,
}

impl Object for WriteOff {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::WriteOffRequested { id, amount, reference, reason } => Some(Self {
                id: *id,
                debtor: record.owner,
                amount: *amount,
                reference: reference.clone(),
                reason: reason.clone(),
                requested_by: record.operator.clone().unwrap_or_default(),
                decision: HouseEntryDecision::Pending,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        let entry = self.id;
        self.decision.follow(
            record,
            |event| matches!(event, Event::DeficitWrittenOff { id, .. } | Event::ClawbackWrittenOff { id, .. } if *id == entry),
            |event| match event {
                Event::WriteOffRejected { id, notes } if *id == entry => Some(notes),
                _ => None,
            },
        );
    }
}
