//! Adjustment: an amount that two operators give a merchant or one of its recipients. It is
//! goodwill of the house, or what an accepted dispute took that was won later. An operator asks for
//! it, and another one approves it. It belongs to the merchant's ledger.

use crate::asked_entry::{AskedEntry, EntryCommand, EntryTerms};
use crate::write_off::OpenWriteOff;
use crate::{AdjustmentTarget, Centavos, Event, ObjectId, Record, Rejection};

/// What an adjustment gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjustmentTerms {
    /// How much, centavos.
    pub amount: Centavos,
    /// Reference of the document that proves it.
    pub reference: String,
    /// What it credits; `None` for the merchant's Available.
    pub target: Option<AdjustmentTarget>,
}

impl AdjustmentTerms {
    /// The id under which the Records are found that ask for an adjustment with a reference.
    pub fn reference_id(reference: &str) -> ObjectId {
        ObjectId::of_text(&format!("adjustment {reference}"))
    }
}

/// Command of an operator about an adjustment.
pub type AdjustmentCommand = EntryCommand<AdjustmentTerms>;

/// An adjustment, from its Records. Its owner is the merchant, also where a recipient gets the
/// money.
pub type Adjustment = AskedEntry<AdjustmentTerms>;

/// The adjustments that wait for a second operator, after an event of the merchant's Record.
pub(crate) fn follow(open: &mut Vec<OpenWriteOff>, event: &Event, record: &Record) {
    match event {
        Event::AdjustmentRequested { id, amount, reference, target, .. } => {
            let (requested_by, reference) = (record.operator.clone().unwrap_or_default(), reference.clone());
            open.push(OpenWriteOff { id: *id, amount: *amount, reference, requested_by, target: *target });
        }
        _ => open.retain(|waiting| event.decided_entry().is_none_or(|(id, _)| waiting.id != id)),
    }
}

impl AdjustmentCommand {
    /// Decides it for a merchant of which `open` waits. Errors: it does not wait; the operator who
    /// asked for it approves it.
    pub(crate) fn decide(self, open: &[OpenWriteOff]) -> Result<Event, Rejection> {
        match self {
            Self::Request { id, terms: AdjustmentTerms { amount, reference, target }, reason } => {
                Ok(Event::AdjustmentRequested { id, amount, reference, reason, target })
            }
            Self::Decide { id, ruling } => {
                let open = open.iter().find(|open| open.id == id).ok_or(Rejection::HouseEntryAlreadyDecided)?;
                Ok(match ruling.rejects(&open.requested_by)? {
                    Some(notes) => Event::AdjustmentRejected { id, notes },
                    None => Event::AdjustmentCreated {
                        id,
                        amount: open.amount,
                        reference: open.reference.clone(),
                        target: open.target,
                        is_beside_splits: matches!(open.target, Some(AdjustmentTarget::Recipient(_))),
                    },
                })
            }
        }
    }
}

impl EntryTerms for AdjustmentTerms {
    fn requested(event: &Event) -> Option<(ObjectId, Self, &String)> {
        match event {
            Event::AdjustmentRequested { id, amount, reference, reason, target } => {
                Some((*id, Self { amount: *amount, reference: reference.clone(), target: *target }, reason))
            }
            _ => None,
        }
    }
}
