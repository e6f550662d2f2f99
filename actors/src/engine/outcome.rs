//! Context and outcome of a command. The context travels with the command. The outcome has a type
//! and is computed from the Record alone, so the replay of a request computes the same outcome from
//! the stored Record.

use std::sync::Arc;

use ledger::{Event, ObjectId, RailStamp, Record, Requester, Terms};

use super::Unavailable;
use crate::journal::Permit;
use crate::resident::{KeyLookup, Outcome};

/// Context of a request's command.
#[derive(Clone, Debug)]
pub struct CommandContext {
    /// The request's idempotency key, looked up and not found; `None` if it has none.
    pub key: Option<KeyLookup>,
    /// The requester, whom the Record names.
    pub requester: Option<Requester>,
    /// Admission in the journal for all that the command can cause.
    pub permit: Arc<Permit>,
}

impl Outcome {
    /// The outcome that `of` reads in the Record. A Record in which it finds none contradicts the
    /// command.
    pub fn typed<T>(self, of: impl FnOnce(&Record) -> Option<T>) -> Result<Outcome<T>, Unavailable> {
        Ok(match self {
            Self::Recorded(record) => {
                Outcome::Recorded(of(&record).ok_or_else(|| Unavailable::contradicting("a command"))?)
            }
            Self::Unchanged => Outcome::Unchanged,
            Self::Refused(rejection) => Outcome::Refused(rejection),
            Self::KeyTaken => Outcome::KeyTaken,
        })
    }
}

impl CommandContext {
    /// A command that books what an institution did.
    pub(super) fn of_rail(stamp: Option<RailStamp>, permit: Arc<Permit>) -> Self {
        Self { key: None, requester: stamp.map(Requester::Rail), permit }
    }
}

impl From<Arc<Permit>> for CommandContext {
    /// A command of the service itself.
    fn from(permit: Arc<Permit>) -> Self {
        Self { key: None, requester: None, permit }
    }
}

/// The charge that a Record opens: its id and its terms.
pub(super) fn terms_opened_by(record: &Record) -> Option<(ObjectId, &Terms)> {
    record.events.iter().find_map(|event| match event {
        Event::ChargeOpened { charge, terms, .. } => Some((*charge, terms)),
        _ => None,
    })
}
