//! Entries by two operators: one asks for an entry, and another one approves or rejects it. So are
//! booked entries of the house ledger, write-offs of debts, and returns of withdrawals.

use crate::event::ReturnEntry;
use crate::{Event, LedgerId, Object, ObjectId, Record, Rejection};

/// Command of an operator about an entry. `T` is what is asked for.
#[derive(Clone, Debug)]
pub enum EntryCommand<T> {
    /// Asks for an entry.
    Request {
        /// The entry's id, a new one.
        id: ObjectId,
        /// What is asked for.
        terms: T,
        /// Why, in the operator's words.
        reason: String,
    },
    /// Decides an entry that waits.
    Decide {
        /// The entry's id.
        id: ObjectId,
        /// Approval or rejection.
        ruling: Ruling,
    },
}

impl<T> EntryCommand<T> {
    /// The entry that it is about.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Request { id, .. } | Self::Decide { id, .. } => *id,
        }
    }
}

/// What an operator decides about an entry.
#[derive(Clone, Debug)]
pub enum Ruling {
    /// It is booked at once.
    Approve {
        /// The operator who approves: another one than the one who asked.
        operator: String,
    },
    /// It is not booked. One may take back one's own.
    Reject {
        /// Why, in the operator's words.
        notes: String,
    },
}

impl Ruling {
    /// The notes of a rejection; none of an approval. Errors: the operator who asked approves.
    pub(crate) fn rejects(self, requested_by: &str) -> Result<Option<String>, Rejection> {
        match self {
            Self::Approve { operator } if operator == requested_by => Err(Rejection::SecondOperatorNeeded),
            Self::Approve { .. } => Ok(None),
            Self::Reject { notes } => Ok(Some(notes)),
        }
    }
}

/// Status of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryDecision {
    /// No second operator has decided yet.
    Pending,
    /// It is booked.
    Approved {
        /// The operator who approved it.
        by: String,
    },
    /// It is not booked.
    Rejected {
        /// The operator who rejected it.
        by: String,
        /// Why, in the operator's words.
        notes: String,
    },
}

/// Terms of an entry, as its events carry them.
pub trait EntryTerms: Sized {
    /// Id, terms and reason of the entry that an event asks for.
    fn requested(event: &Event) -> Option<(ObjectId, Self, &String)>;
}

impl Event {
    /// The entry of two operators that this event books, or rejects for a reason.
    pub fn decided_entry(&self) -> Option<(ObjectId, Option<&String>)> {
        match self {
            Self::HouseEntryApproved { id, .. }
            | Self::AdjustmentCreated { id, .. }
            | Self::DeficitWrittenOff { id, .. }
            | Self::ClawbackWrittenOff { id, .. }
            | Self::WithdrawalReturned { entry: Some(ReturnEntry { id, .. }), .. }
            | Self::DisputeReversed { entry: Some(ReturnEntry { id, .. }), .. } => Some((*id, None)),
            Self::HouseEntryRejected { id, notes }
            | Self::AdjustmentRejected { id, notes }
            | Self::WriteOffRejected { id, notes }
            | Self::WithdrawalReturnRejected { id, notes } => Some((*id, Some(notes))),
            _ => None,
        }
    }
}

/// An entry that an operator asked for, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedEntry<T> {
    /// Its id, which contains the time of the request.
    pub id: ObjectId,
    /// The ledger that decides it: the house, the debtor, or the recipient of the withdrawal.
    pub owner: LedgerId,
    /// What is asked for.
    pub terms: T,
    /// Why, as the first operator said.
    pub reason: String,
    /// The operator who asked for it.
    pub requested_by: String,
    /// Its status.
    pub decision: EntryDecision,
}

impl<T: EntryTerms> Object for AskedEntry<T> {
    fn made_by(record: &Record) -> Option<Self> {
        let (id, terms, reason) = record.events.iter().find_map(T::requested)?;
        let (reason, requested_by) = (reason.clone(), record.operator.clone().unwrap_or_default());
        let decision = EntryDecision::Pending;
        let mut made = Self { id, owner: record.owner, terms, reason, requested_by, decision };
        // What no operator asked for is booked by the Record that asks for it.
        made.follow(record);
        Some(made)
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        let decided = record.events.iter().filter_map(Event::decided_entry);
        for (_, notes) in decided.filter(|(id, _)| *id == self.id) {
            let by = record.operator.clone().unwrap_or_default();
            self.decision = match notes.cloned() {
                None => EntryDecision::Approved { by },
                Some(notes) => EntryDecision::Rejected { by, notes },
            };
        }
    }
}
