//! Verification: reads the whole journal of every partition and checks every promise that it makes,
//! without trusting anything derived. No entry and no state crosses partitions, so each is verified
//! for itself.
//!
//! First the journal is read, from its first block to its head. It is checked that
//!
//! - checksums, hash chain and sequences are right (the store's part);
//! - booking times never go back, ordinals have no gaps, and this release can read every Record;
//! - every Record's group is one of the partition;
//! - entries are balanced, and are those that [`ledger::postings`] makes of the events;
//! - every invariant of [`ledger::invariants`] holds after every Record;
//! - what is due to whom sums to `Pending` and to `Acquirer:Receivable` after every Record, and
//!   nothing matures that was not due ([`ledger::receivable_sums`]);
//! - an idempotency key is unique until it expires;
//! - sealed parts open;
//! - the index and the read model agree with the journal;
//! - a closed month is sealed with what the journal held at its end;
//! - it is the journal that the given checkpoints describe.
//!
//! Meanwhile every owner's state is replayed. It is compared with the snapshot at the snapshot's
//! two positions, and, at the head, with the books.
//!
//! Reading, decoding, checking and replaying are done by threads of their own, which give one
//! another the Records in the order of the journal (see `stream.rs`).
//!
//! It changes no Record, no key and no snapshot, and stops at the first promise that is broken,
//! which [`BrokenPromise`] names.
//!
//! # Memory
//! It grows with the accounts of all ledgers, with the minutes in which something is still due to a
//! ledger (some 40 bytes each, however many charges), and with the idempotency keys of the last 24
//! hours. There are the states of at most [`OWNERS_MAX`] owners in it, as when they are awake; the
//! journal is read once more for each further [`OWNERS_MAX`]. While there are receivables files to
//! compare, it also grows with what they hold: up to 2^20 parts of some 150 bytes. Of the Records
//! themselves, only those that are under way between threads are in memory (see `stream.rs`). It is
//! that of the largest partition.

mod checkpoints;
mod derived_data;
mod states;
mod stream;
mod summary;

use std::fmt;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

use derived::checkpoint::SignedCheckpoint;
use derived::extents::{ExtentError, Extents};
use derived::heads::Heads;
use derived::records::LoadError;
use derived::seal::{Keyring, SealError};
use ledger::Record;
use store::{Head, Part, Partition, Sequence, StoreError};

use checkpoints::CheckpointCheck;
pub use checkpoints::without_gaps;
use states::{Replays, States};
use summary::{CheckedRecord, Checker, JournalSummary};

pub use derived_data::DerivedParts;
pub use stream::THREADS;

/// Owners whose states are replayed in one pass over the journal. Each takes some kilobytes.
pub const OWNERS_MAX: usize = 1 << 17;

/// Verifies a store as [`verify_against`] does, without checkpoints.
pub fn verify(
    parts: &[Part],
    keyring: Option<&Keyring>,
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<VerificationResult> {
    verify_against(parts, keyring, &[], progress)
}

/// Verifies all partitions of a store that nobody writes to. Their journals must be the ones that
/// the checkpoints describe; [`without_gaps`] reports checkpoints missing between others. Without a
/// key ring the sealed parts are counted and not opened. Calls `progress` as it goes on.
pub fn verify_against(
    parts: &[Part],
    keyring: Option<&Keyring>,
    checkpoints: &[SignedCheckpoint],
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<VerificationResult> {
    verify_in_passes(parts, keyring, checkpoints, OWNERS_MAX, progress)
}

/// Verifies with the states of at most so many owners in memory.
fn verify_in_passes(
    parts: &[Part],
    keyring: Option<&Keyring>,
    checkpoints: &[SignedCheckpoint],
    owners_max: usize,
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<VerificationResult> {
    let heads = Heads::of_parts(parts)?;
    let extents = parts.first().map(|part| Extents::of(&**part.store())).transpose()?.unwrap_or_default();
    let (records, of_heads) = (heads.records(), heads.clone());
    let mut verified = VerificationResult { records, heads: of_heads, ..VerificationResult::default() };
    let unknown = checkpoints.iter().find(|one| parts.iter().all(|part| part.partition() != one.checkpoint.partition));
    if let Some(SignedCheckpoint { checkpoint, .. }) = unknown {
        let (at, found) = (checkpoint.sequence, format!("a store with {} partitions", parts.len()));
        let expected = format!("partition {}", checkpoint.partition.0);
        return Err(broken(Promise::Checkpoint, Some(at), "the journal", expected, found));
    }
    let (mut read, total) = (0, heads.records());
    for part in parts {
        let partition = part.partition();
        let head = heads.of(partition);
        let mut of_all = |of_part| {
            progress(match of_part {
                VerifyProgress::Journal(done, _) => VerifyProgress::Journal(read + done, total),
                states @ VerifyProgress::States(..) => states,
            });
        };
        let against = CheckpointCheck::new(checkpoints, partition);
        let of_part = against.and_then(|against| {
            let checker = Checker::new(part, &extents, keyring.is_some(), against)?;
            let replays = Replays::new(part, head, owners_max)?;
            verify_part(part, head, keyring, (checker, replays), &mut of_all)
        });
        verified.add(of_part.map_err(|error| error.of(partition))?);
        read += head.next.0 - 1;
    }
    if let Some(first) = parts.first() {
        verified.size_bytes = first.store().size_bytes()?;
    }
    Ok(verified)
}

/// Verifies one partition, in one pass over its journal and further ones for the states of owners
/// beyond the first.
fn verify_part(
    part: &Part,
    head: Head,
    keyring: Option<&Keyring>,
    (mut checker, mut replays): (Checker, Replays),
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<(JournalSummary, States)> {
    let (records, mut read_through) = (head.next.0 - 1, 0);
    thread::scope(|scope| {
        let (checked, to_replay) = sync_channel::<Vec<(Sequence, Record)>>(stream::AHEAD);
        let replaying = stream::start(scope, "states", || {
            to_replay.into_iter().flatten().try_for_each(|(at, record)| replays.take(at, &record))
        });
        let decode = |bytes: &[u8]| CheckedRecord::of(bytes, keyring);
        let journal = stream::in_order(part.blocks(Sequence::FIRST), decode, |block, records_of_block| {
            // A replay that failed takes no more; the journal is read to its end all the same.
            let _is_taken = checked.send(checker.block(&block, records_of_block)?).is_ok();
            read_through = block.next().0 - 1;
            progress(VerifyProgress::Journal(read_through, records));
            Ok(())
        });
        drop(checked);
        let replayed = replaying.join();
        journal?;
        replayed.unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    if read_through < records {
        let (folder, sequence) = ("the journal".into(), Some(Sequence(read_through + 1)));
        return Err(StoreError::Damaged { folder, sequence, detail: "it ends before its head".to_owned() }.into());
    }
    let journal = checker.finish(head)?;
    let mut pass = 0;
    while replays.end_pass(&journal)? {
        stream::in_order(part.blocks(Sequence::FIRST), Record::decode, |block, decoded| {
            for (at, record) in (block.first.0..).zip(decoded) {
                let record = record.map_err(|error| LoadError::Decode { sequence: at, error })?;
                replays.take(Sequence(at), &record)?;
            }
            progress(VerifyProgress::States(pass * records + block.next().0 - 1, (pass + 1) * records));
            Ok(())
        })?;
        pass += 1;
    }
    Ok((journal, replays.finish()))
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyProgress {
    /// Records of the journals that were checked, and their total.
    Journal(u64, u64),
    /// Records of one partition that were read again for more states, and their total so far.
    States(u64, u64),
}

/// Counts of a verified journal, and its sums.
#[derive(Clone, Debug, Default)]
pub struct VerificationResult {
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
    /// The ends of the journals.
    pub heads: Heads,
    /// The size of the store, bytes.
    pub size_bytes: u64,
}

impl VerificationResult {
    /// Adds what was counted in a partition.
    fn add(&mut self, (journal, states): (JournalSummary, States)) {
        self.blocks += journal.blocks;
        self.ledgers += states.ledgers;
        self.snapshots += states.snapshots;
        self.snapshots_unusable += states.snapshots_unusable;
        self.debits += journal.debits;
        self.credits += journal.credits;
        self.idempotency_keys += journal.idempotency_keys;
        self.sealed.add(journal.sealed);
        self.derived.add(journal.derived);
    }
}

/// Counts of the sealed parts of the Records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedParts {
    /// How many there are.
    pub found: u64,
    /// How many of them were opened; `None` if there was no key ring.
    pub opened: Option<u64>,
    /// How many of them can't be opened any more, because their month's key was dropped.
    pub erased: u64,
}

impl SealedParts {
    fn add(&mut self, others: Self) {
        self.found += others.found;
        self.erased += others.erased;
        if let Some(opened) = others.opened {
            *self.opened.get_or_insert_default() += opened;
        }
    }
}

/// What a verification found, or why it ended early.
pub type VerifyResult<T> = Result<T, VerifyError>;

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
    /// The partitions of the store contradict each other.
    #[error(transparent)]
    Extents(#[from] ExtentError),
    /// A promise is broken.
    #[error(transparent)]
    Broken(Box<BrokenPromise>),
    /// The same in another partition than 0.
    #[error("partition {}: {error}", partition.0)]
    OfPartition {
        /// The partition.
        partition: Partition,
        /// What was found there.
        error: Box<VerifyError>,
    },
}

impl VerifyError {
    /// The same error, in a partition.
    fn of(self, partition: Partition) -> Self {
        match partition {
            Partition(0) => self,
            partition => VerifyError::OfPartition { partition, error: Box::new(self) },
        }
    }

    /// The promise that is broken, if it is one.
    pub fn promise(&self) -> Option<Promise> {
        match self {
            VerifyError::Broken(broken) => Some(broken.promise),
            VerifyError::OfPartition { error, .. } => error.promise(),
            _ => None,
        }
    }
}

/// A promise that the data does not keep, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{ledger}: {promise}: expected {expected}, found {found}",
    sequence.map(|sequence| format!("sequence {}, ", sequence.0)).unwrap_or_default()
)]
pub struct BrokenPromise {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Promise {
    /// No block is booked before its predecessor.
    #[strum(to_string = "booking times never go back")]
    BookingTime,
    /// This release can read the Record, and its entries balance.
    #[strum(to_string = "Records are readable")]
    Readable,
    /// An owner's Records are counted 1, 2, 3, …
    #[strum(to_string = "an owner's Records are counted without gaps")]
    Ordinal,
    /// Entries stay in the group of their Record.
    #[strum(to_string = "entries stay in their group")]
    Group,
    /// A group's Records are in the partition of its extent.
    #[strum(to_string = "a group is in the partition of its extent")]
    Partition,
    /// A claim and the liability that mirrors it sum to zero.
    #[strum(to_string = "a claim and its mirror sum to zero")]
    Mirror,
    /// A claim on the platform is never negative.
    #[strum(to_string = "a claim is never negative")]
    NotNegative,
    /// The merchant gives away as much as its recipients get.
    #[strum(to_string = "splits given and received sum to zero")]
    Splits,
    /// Fees paid are the platform's income.
    #[strum(to_string = "fees paid and earned sum to zero")]
    Fees,
    /// The entries are what the events make.
    #[strum(to_string = "entries are what the events make")]
    Entries,
    /// Receivables sum to the accounts, and none matures that was not due.
    #[strum(to_string = "receivables sum to what is pending and what the acquirer owes")]
    Receivables,
    /// An idempotency key is used once before it expires.
    #[strum(to_string = "an idempotency key is used once in 24 hours")]
    IdempotencyKey,
    /// What was sealed opens, or its month's key was dropped.
    #[strum(to_string = "sealed parts open")]
    Sealed,
    /// A run of the index is what the journal makes of it.
    #[strum(to_string = "the index is what the journal makes of it")]
    Index,
    /// A balance file has the balances of the journal.
    #[strum(to_string = "a balance file has the balances of the journal")]
    BalanceFile,
    /// The pages of the read model have the balances of the journal.
    #[strum(to_string = "the readers' view has the balances of the journal")]
    ReadersView,
    /// A snapshot is what the journal makes of its owner.
    #[strum(to_string = "a snapshot equals a replay")]
    Snapshot,
    /// An owner's state agrees with its ledger accounts.
    #[strum(to_string = "a state says what the books say")]
    State,
    /// A closed month is sealed with what the journal held at its end.
    #[strum(to_string = "a closed month is sealed with what the journal held")]
    Period,
    /// A checkpoint describes this journal.
    #[strum(to_string = "the journal is the one of which a checkpoint tells")]
    Checkpoint,
}

fn broken(
    promise: Promise,
    sequence: Option<Sequence>,
    ledger: impl Into<String>,
    expected: impl fmt::Display,
    found: impl fmt::Display,
) -> VerifyError {
    let (ledger, expected, found) = (ledger.into(), expected.to_string(), found.to_string());
    VerifyError::Broken(Box::new(BrokenPromise { promise, sequence, ledger, expected, found }))
}

#[cfg(test)]
mod tests;
