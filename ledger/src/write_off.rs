//! Write-off of a debt that will not be paid back: a merchant's Deficit, or a recipient's Clawback.
//! An operator asks for it, and another one approves it. It belongs to the debtor's ledger, which
//! has at most one that waits.

use minicbor::{Decode, Encode};

use crate::asked_entry::{AskedEntry, EntryCommand, EntryTerms};
use crate::{AdjustmentTarget, Centavos, Decision, Event, ObjectId, Record, Rejection};

/// What a write-off takes off a debt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOffTerms {
    /// How much of the debt, centavos.
    pub amount: Centavos,
    /// Reference of the document that proves it.
    pub reference: String,
}

/// Command of an operator about a write-off.
pub type WriteOffCommand = EntryCommand<WriteOffTerms>;

/// A write-off, from its Records. Its owner is the debtor: a merchant that has a Deficit, or a
/// recipient that has a Clawback.
pub type WriteOff = AskedEntry<WriteOffTerms>;

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
    /// What an adjustment credits; none of a write-off.
    #[n(4)]
    pub(crate) target: Option<AdjustmentTarget>,
}

impl OpenWriteOff {
    /// The open write-off after an event of its debtor's Record.
    pub(crate) fn follow(open: &mut Option<Self>, event: &Event, record: &Record) {
        match event {
            Event::WriteOffRequested { id, amount, reference, .. } => {
                let requested_by = record.operator.clone().unwrap_or_default();
                let (id, amount, reference) = (*id, *amount, reference.clone());
                *open = Some(Self { id, amount, reference, requested_by, target: None });
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
        let covered = |amount| if amount > debt { Err(Rejection::WriteOffExceedsDebt) } else { Ok(()) };
        let event = match self {
            Self::Request { .. } if open.is_some() => return Err(Rejection::WriteOffWaits),
            Self::Request { id, terms: WriteOffTerms { amount, reference }, reason } => {
                covered(amount)?;
                Event::WriteOffRequested { id, amount, reference, reason }
            }
            Self::Decide { id, ruling } => {
                let open = open.filter(|open| open.id == id).ok_or(Rejection::HouseEntryAlreadyDecided)?;
                match ruling.rejects(&open.requested_by)? {
                    Some(notes) => Event::WriteOffRejected { id, notes },
                    None => {
                        covered(open.amount)?;
                        book(open)
                    }
                }
            }
        };
        Ok(Decision::of(event))
    }
}

impl EntryTerms for WriteOffTerms {
    fn requested(event: &Event) -> Option<(ObjectId, Self, &String)> {
        match event {
            Event::WriteOffRequested { id, amount, reference, reason } => {
                Some((*id, Self { amount: *amount, reference: reference.clone() }, reason))
            }
            _ => None,
        }
    }
}
