//! Verification: reads a whole journal and checks every promise that it makes, without trusting
//! anything derived.
//!
//! First the journal is read, from its first block to its head. It is checked that
//!
//! - checksums, hash chain and sequences are right (the store's part);
//! - booking times never go back, ordinals have no gaps, and this release can read every Record;
//! - entries are balanced, and are those that [`ledger::postings`] makes of the events;
//! - every invariant of [`ledger::invariants`] holds after every Record;
//! - what is due to whom sums to `Pending` and to `Acquirer:Receivable` after every Record, and
//!   nothing matures that was not due ([`ledger::receivable_sums`]);
//! - an idempotency key is unique for as long as it is kept;
//! - sealed parts open;
//! - the index and the read model agree with the journal;
//! - a closed month is sealed with what the journal held at its end;
//! - it is the journal of which the given checkpoints tell.
//!
//! Then every owner's state is built by replay, one at a time. It is compared with the snapshot at
//! the snapshot's two positions, and, at the head, with the books.
//!
//! It changes no Record, no key and no snapshot, and stops at the first promise that is broken,
//! which [`Broken`] names.
//!
//! # Memory
//! It grows with the accounts of all ledgers, with eight bytes for each Record and owner whose
//! state it concerns, with the minutes in which something is still due to a ledger (some 40 bytes
//! each, however many charges), and with the idempotency keys of the last 24 hours. While there are
//! receivables files to compare, it also grows with what they hold: up to 2^20 parts of some 150
//! bytes. It does not grow with the content of Records.

mod checkpoints;
mod derived;
mod states;
mod summary;

use std::fmt;

use crate::checkpoint::SignedCheckpoint;
use crate::records::LoadError;
use crate::seal::{Keyring, SealError};
use crate::store::{Head, Part, Sequence, StoreError};

use checkpoints::Against;

pub use derived::DerivedParts;

/// Verifies a store as [`verify_against`] does, without checkpoints.
pub fn verify(
    store: &Part,
    keyring: Option<&Keyring>,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<Verified, VerifyError> {
    verify_against(store, keyring, &[], progress)
}

/// Verifies a store that nobody writes to. The journal must be the one of which the checkpoints
/// tell. Without a key ring the sealed parts are counted and not
/// opened. Calls `progress` as it goes on.
pub fn verify_against(
    store: &Part,
    keyring: Option<&Keyring>,
    checkpoints: &[SignedCheckpoint],
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<Verified, VerifyError> {
    let head = store.head()?;
    let journal = summary::check(store, keyring, Against::new(checkpoints)?, head, progress)?;
    let states = states::check(store, &journal, head, progress)?;
    Ok(Verified {
        records: head.next.0 - 1,
        blocks: journal.blocks,
        ledgers: states.ledgers,
        snapshots: states.snapshots,
        snapshots_unusable: states.snapshots_unusable,
        debits: journal.debits,
        credits: journal.credits,
        idempotency_keys: journal.idempotency_keys,
        sealed: journal.sealed,
        derived: journal.derived,
        head,
        size_bytes: store.size_bytes()?,
    })
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyProgress {
    /// Records of the journal that were checked, and their total.
    Journal(u64, u64),
    /// Steps of the replays that were done, and their total.
    States(u64, u64),
}

/// Result of a verification.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Records in the journal.
    pub records: u64,
    /// Blocks in the journal.
    pub blocks: u64,
    /// Ledgers: merchants', recipients', the platform's shards, and the house's if it has entries.
    pub ledgers: u64,
    /// Snapshots that equal a replay.
    pub snapshots: u64,
    /// Snapshots that are damaged or of another release: they are not used, and made again.
    pub snapshots_unusable: u64,
    /// Sum of all debits, centavos.
    pub debits: i128,
    /// Sum of all credits, centavos.
    pub credits: i128,
    /// Records with an idempotency key.
    pub idempotency_keys: u64,
    /// Counts of the sealed parts.
    pub sealed: SealedParts,
    /// Counts of the runs and pages.
    pub derived: DerivedParts,
    /// The end of the journal.
    pub head: Head,
    /// The size of the store, bytes.
    pub size_bytes: u64,
}

/// Counts of the sealed parts of the Records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedParts {
    /// How many there are.
    pub found: u64,
    /// How many of them were opened; none when there was no key ring.
    pub opened: Option<u64>,
    /// How many of them can't be opened any more, because their month's key was dropped.
    pub erased: u64,
}

/// Why a verification ended early.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The store failed, or found its blocks damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The master key is wrong, or a key can't be read.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A Record could not be read again for a replay.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A promise is broken.
    #[error(transparent)]
    Broken(Box<Broken>),
}

/// A promise that the data does not keep, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{ledger}: {promise}: expected {expected}, found {found}",
    sequence.map(|sequence| format!("sequence {}, ", sequence.0)).unwrap_or_default()
)]
pub struct Broken {
    /// The broken promise.
    pub promise: Promise,
    /// The Record after which it is broken; none for a state.
    pub sequence: Option<Sequence>,
    /// The outside name of the owner.
    pub ledger: String,
    /// The expected content.
    pub expected: String,
    /// The content found.
    pub found: String,
}

/// Promises of a journal and its derived data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// No block is booked before the one that it follows.
    BookingTime,
    /// This release can read the Record, and its entries balance.
    Readable,
    /// An owner's Records are counted 1, 2, 3, …
    Ordinal,
    /// Entries stay in the group of their Record.
    Group,
    /// A claim and the liability that mirrors it sum to zero.
    Mirror,
    /// A claim on the platform is never negative.
    NotNegative,
    /// The merchant gives away as much as its recipients get.
    Splits,
    /// Fees paid are the platform's income.
    Fees,
    /// The entries are what the events make.
    Entries,
    /// Receivables sum to the accounts, and none matures that was not due.
    Receivables,
    /// An idempotency key is used once while it is kept.
    IdempotencyKey,
    /// What was sealed opens, or its month's key was dropped.
    Sealed,
    /// A run of the index is what the journal makes of it.
    Index,
    /// A balance file has the balances of the journal.
    BalanceFile,
    /// The pages of the read model have the balances of the journal.
    ReadersView,
    /// A snapshot is what the journal makes of its owner.
    Snapshot,
    /// An owner's state agrees with its ledger accounts.
    State,
    /// A closed month is sealed with what the journal held at its end.
    Period,
    /// The journal is the one of which a checkpoint tells.
    Checkpoint,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BookingTime => "booking times never go back",
            Self::Readable => "Records are readable",
            Self::Ordinal => "an owner's Records are counted without gaps",
            Self::Group => "entries stay in their group",
            Self::Mirror => "a claim and its mirror sum to zero",
            Self::NotNegative => "a claim is never negative",
            Self::Splits => "splits given and received sum to zero",
            Self::Fees => "fees paid and earned sum to zero",
            Self::Entries => "entries are what the events make",
            Self::Receivables => "receivables sum to what is pending and what the acquirer owes",
            Self::IdempotencyKey => "an idempotency key is used once in 24 hours",
            Self::Sealed => "sealed parts open",
            Self::Index => "the index is what the journal makes of it",
            Self::BalanceFile => "a balance file has the balances of the journal",
            Self::ReadersView => "the readers' view has the balances of the journal",
            Self::Snapshot => "a snapshot equals a replay",
            Self::State => "a state says what the books say",
            Self::Period => "a closed month is sealed with what the journal held",
            Self::Checkpoint => "the journal is the one of which a checkpoint tells",
        })
    }
}

fn broken(
    promise: Promise,
    sequence: Option<Sequence>,
    ledger: String,
    expected: impl fmt::Display,
    found: impl fmt::Display,
) -> VerifyError {
    let (expected, found) = (expected.to_string(), found.to_string());
    VerifyError::Broken(Box::new(Broken { promise, sequence, ledger, expected, found }))
}

#[cfg(test)]
mod tests;
