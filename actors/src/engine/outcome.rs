//! Context and outcome of a command. The context travels with the command. The outcome has a type
//! and is computed from the Record alone, so the replay of a request computes the same outcome from
//! the stored Record.

use std::sync::Arc;

use ledger::event::{Event, Terms};
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::record::{Record, Requester};
use ledger::time::Timestamp;

use super::{Engine, Unavailable};
use crate::journal::Permit;
use crate::resident::{KeyLookup, Outcome};

/// Context of a request's command.
#[derive(Clone, Debug)]
pub struct CommandContext {
    /// The request's idempotency key, looked up and not found; none when it has none.
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

impl Engine {
    /// Sends a request's command to a merchant's actor; see [`Engine::command`].
    pub(super) async fn ask(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        CommandContext { key, requester, permit }: CommandContext,
    ) -> Result<Outcome, Unavailable> {
        self.command(group, command, key, requester, permit).await
    }
}

/// The charge that a Record opens: its id, its terms, and when its PIX code expires.
pub(super) fn terms_opened_by(record: &Record) -> Option<(ObjectId, &Terms, Option<Timestamp>)> {
    record.events.iter().find_map(|event| match event {
        Event::ChargeOpened { charge, terms, expires_at, .. } => Some((*charge, terms, *expires_at)),
        _ => None,
    })
}
