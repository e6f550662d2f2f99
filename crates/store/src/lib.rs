//! Store: the durable journal, and the keys, cursors and files beside it.
//!
//! The journal is blocks of opaque Record bytes. The store makes each block durable whole or not at
//! all; blocks are numbered without a gap and chained by hash. Beside the journal the store keeps
//! an area of keys and values for what is derived from the journal or stored apart from it
//! (snapshots, sealed keys, stamps), cursors, and files.
//!
//! A write survives a power cut when [`Store::append`] or [`Store::put_state`] has answered `Ok`.
//! Readers see a block only when it is durable. Damage is an error that names its place, never
//! silence and never a panic. The store knows nothing of the content of a Record: no ledger, no
//! event, no money.
//!
//! # Where things are
//! [`SledStore`] is the store in a folder (`disk.rs`). Its journal is `segments.rs`, a row of
//! `segment.rs` (which grows) and `segment_file.rs` (closed ones), of chunks (`chunk.rs`),
//! with what was written last in `wal.rs`. Keys and values are in `state_area.rs`, in the database
//! of `sled.rs`. [`PostgresStore`] is the store that several processes share. An engine sees either
//! through a [`Part`].

mod anchor;
mod chunk;
mod cursors;
pub mod cut;
mod disk;
mod durable_sync;
mod files;
mod monitor;
mod options;
mod part;
pub mod place_stamps;
mod postgres;
pub mod priority;
mod salvage;
mod segment;
mod segment_file;
mod segments;
mod sled;
mod space;
mod state_area;
#[cfg(feature = "testkit")]
pub mod testkit;
mod wal;
mod write_behind;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use self::chunk::{Fields, Key as ChunkKey, covered, cut};
pub use self::cut::{Cut, Position};
pub use self::disk::SledStore;
pub use self::disk::{file_name_of, file_of};
use self::durable_sync::with_short_slice;
pub use self::durable_sync::{durable_syncs, durable_syncs_at_once_max};
#[cfg(feature = "testkit")]
pub(crate) use self::files::damaged;
pub use self::files::{
    UNFINISHED, create_private_folder, make_private, private_file, rename_durably, unfinished, write_whole,
};
pub use self::monitor::{LongestWait, Monitor, Wait, WaitFor};
pub use self::options::SledOptions;
pub use self::part::Part;
pub use self::postgres::{
    NodeSeen, OwnerWatch, PartitionSeen, Picture, PostgresAddress, PostgresDemands, PostgresOptions, PostgresStore,
    TAKEOVER, now_ms,
};
pub use self::salvage::Remains;
use self::sled::{Database, check_sync};

/// The longest key of the state area, in bytes.
pub const STATE_KEY_BYTES_MAX: usize = 128;

/// What the keys begin with that are common to all partitions. Their values can't be derived from
/// the journal.
pub const COMMON_PREFIXES: [&[u8]; 2] = [b"keys/", b"stamp/"];

/// The longest name of a file.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 64;

/// Store of the journal, the state area, the cursors and the files, each divided into partitions.
///
/// A partition is written by its owner, who took it ([`Store::take`]) and holds a [`Tenure`]. Once
/// another owner has taken it, every write of the former one is refused as fenced. One thread
/// appends to a partition; any number of threads read meanwhile. Readers see a block only when it
/// is durable. An engine works with one partition through a [`Part`].
///
/// ```
/// use centavo_store::{Block, Part, Partition, Sequence, StoreError};
/// use centavo_store::testkit::MemoryStore;
///
/// let store = std::sync::Arc::new(MemoryStore::new());
/// let part = Part::take(store.clone(), Partition(0))?;
/// let head = part.head()?;
/// let records = vec![b"one".to_vec(), b"two".to_vec()];
/// let (partition, first, previous) = (Partition(0), head.next, head.hash);
/// let block = Block { partition, first, booked_at_ms: 0, previous, records };
/// let hash = part.append(&block)?;
/// assert_eq!(part.head()?.hash, hash);
/// assert_eq!(part.record(Sequence(2))?.expect("a durable Record").bytes, b"two");
/// // The same block again is durable already; another one must continue the chain.
/// assert_eq!(part.append(&block)?, hash);
/// assert!(part.append(&Block { booked_at_ms: 1, ..block.clone() }).is_err());
/// // After another owner took the partition, this one may not write.
/// let _other = Part::take(store, Partition(0))?;
/// assert!(matches!(part.put_state(b"key", b"value"), Err(StoreError::Fenced { .. })));
/// # Ok::<(), StoreError>(())
/// ```
pub trait Store: Send + Sync + 'static {
    /// The epoch of a partition: how many times it was taken.
    fn epoch(&self, partition: Partition) -> Result<Epoch>;

    /// Takes a partition whose epoch is still `seen`: begins the next epoch, durably, and returns
    /// the right to write in it. None if somebody else took the partition meanwhile.
    fn take(&self, partition: Partition, seen: Epoch) -> Result<Option<Tenure>>;

    /// Gives a partition up. The next owner need not wait until this one is known to be gone.
    /// A store of several processes refuses writes in this tenure from now on, also after an error,
    /// and its next owner is no reason to end.
    fn release(&self, _tenure: Tenure) -> Result<()> {
        Ok(())
    }

    /// True while this process is certainly the owner of what it took. Otherwise its memory may be
    /// out of date, and it must not answer. Always true for a store of one process.
    fn is_current(&self) -> bool {
        true
    }

    /// Whether another process took a partition that this one had: this process must end.
    fn is_superseded(&self) -> bool {
        false
    }

    /// Whether other processes may read what this one writes.
    fn is_followed(&self) -> bool {
        false
    }

    /// A look whether the store can be used ([`Store::is_current`]), also while it is closed.
    fn watch_use(&self) -> Box<dyn Fn() -> bool + Send> {
        Box::new(|| true)
    }

    /// What the servers of the store said that do not work, each with its name; `None` if all do.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Whether a server of the store takes writes although another one replaced it.
    fn has_former(&self) -> bool {
        false
    }

    /// How far the clock that all users of the store share is ahead of this machine's,
    /// milliseconds: an estimate, off by half the time of an answer at most. 0 for a store of one
    /// machine.
    fn ahead_ms(&self) -> i64 {
        0
    }

    /// The heads of several partitions, in the order asked.
    fn heads(&self, partitions: &[Partition]) -> Result<Vec<Head>> {
        partitions.iter().map(|partition| self.head(*partition)).collect()
    }

    /// Makes blocks durable, each for itself: a block is there whole, or not at all. There is at
    /// most one block of a partition. The outcomes come in the order of the blocks.
    ///
    /// A block must follow the head of its partition (see [`Head::admit`]). A block that is in the
    /// journal already is durable, even when the tenure has ended: whoever got no answer hands in
    /// the same block again. After an error of the machine the store refuses to write in this
    /// process: a failed flush may have dropped pages that it could not write, so a second flush
    /// would report them as durable. The process ends, and a new one reads the disk anew.
    fn append(&self, blocks: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>>;

    /// The end of the durable journal of one partition.
    fn head(&self, partition: Partition) -> Result<Head>;

    /// Records by their sequence numbers, in the order asked; `None` for one that the durable
    /// journal does not have (yet). Reads only the chunks that hold them and checks their
    /// checksums; [`Store::blocks`] also checks the hashes of blocks.
    fn records(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>>;

    /// The blocks that were durable at the time of the call, in order, from the block that holds
    /// `from`.
    ///
    /// It checks every chunk's checksum, the completeness of each block, its hash, its place in the
    /// chain (also that of the first block), and that the last block is the head. The iterator ends
    /// after its first error.
    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_>;

    /// Replaces the value of a key, or removes it, atomically. A key has at most
    /// [`STATE_KEY_BYTES_MAX`] bytes, a value may have any size. Removing an absent key changes
    /// nothing.
    ///
    /// A lazy change is for data that can be derived again, such as snapshots. It becomes durable
    /// within about a second. After a crash before that the key holds this value, the one before,
    /// or nothing, but never a part of either. Changes reach the disk in the order of the calls:
    /// none is there without those before it. A failure of a lazy change stops nothing else.
    fn put_state(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>, how: Durability) -> Result<()>;

    /// The values of keys, in the order asked. A lazily put value with a wrong checksum reads as
    /// absent. A durably put one is [`StoreError::Damaged`], since it cannot be derived again.
    fn states(&self, partition: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;

    /// The keys that begin with `prefix`, in the order of their bytes.
    fn state_keys(&self, partition: Partition, prefix: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Puts the value of a key that has none, and returns the value of the key afterwards: the
    /// first writer wins, also among processes. Durable when it returns. It is for values on which
    /// all users of the store must agree, such as the key that seals a month's personal data. No
    /// partition owns it. The key begins with one of [`COMMON_PREFIXES`].
    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>>;

    /// The value of a common key.
    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Removes a common key and its value; durable when it returns.
    fn remove_common(&self, key: &[u8]) -> Result<()>;

    /// All common keys and their values, in the order of the keys' bytes.
    fn commons(&self) -> Result<Vec<KeyAndValue>>;

    /// Replaces the value of a cursor, or removes it: a small value that changes every second and
    /// may be behind after a crash, such as how far a webhook endpoint has come. It becomes durable
    /// within about a second. After a crash before that the cursor holds the last durable value or
    /// a later one. Keys have the limits of the state area, but are apart from its keys.
    fn put_cursor(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>) -> Result<()>;

    /// The value of a cursor.
    fn cursor(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The keys of the cursors, in the order of their bytes.
    fn cursor_keys(&self, partition: Partition) -> Result<Vec<Vec<u8>>>;

    /// Writes a file of data derived from the journal, such as a run of the index. It is whole and
    /// durable when this returns, or not there at all. A file is never changed; one of the same
    /// name is replaced. The name has at most [`FILE_NAME_BYTES_MAX`] lower-case letters, digits,
    /// `-` and `.`, and begins with a letter. The store adds no checksum: the content needs its
    /// own. A failure stops nothing else, and the caller may try again.
    ///
    /// The file may be too large for memory: `write` writes its bytes. Returns their number. When
    /// `write` fails, no file is there.
    fn put_file_in_parts(&self, tenure: Tenure, name: &str, write: WriteBytes<'_>) -> Result<u64>;

    /// Up to `length` bytes of a file from `offset`; fewer at its end, `None` if there is no such
    /// file.
    fn file_part(&self, partition: Partition, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>>;

    /// The names and sizes of the files, in the order of their names.
    fn files(&self, partition: Partition) -> Result<Vec<(String, u64)>>;

    /// Removes a file; removing an absent one changes nothing.
    fn remove_file(&self, tenure: Tenure, name: &str) -> Result<()>;

    /// How many partitions it may have.
    fn partitions_max(&self) -> usize {
        1 << 16
    }

    /// Bytes that are free where the store writes; none for a store that does not know.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Bytes that must stay free there, so that writes under way can finish and the store can be
    /// opened again.
    fn reserve_bytes(&self) -> u64 {
        0
    }

    /// The size of the store on its disk, in bytes.
    fn size_bytes(&self) -> Result<u64>;

    /// The monitor of the store's waits.
    fn monitor(&self) -> Arc<Monitor>;
}

/// Writes the bytes of a file.
pub type WriteBytes<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// A common key, or the key of a cursor, and its value.
pub type KeyAndValue = (Vec<u8>, Vec<u8>);

/// A part of the journal with a chain and sequence numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Partition(pub u16);

/// How many times a partition was taken. Only the owner of the last epoch may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of a partition that nobody has taken. Nobody may write in it.
    pub const NONE: Epoch = Epoch(0);
}

/// The right to write one partition, until another owner takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    /// What may be written.
    pub partition: Partition,
    /// The epoch that began when the owner took it.
    pub epoch: Epoch,
}

impl Tenure {
    /// Refuses a write when the partition's epoch is another one by now, or was never begun.
    pub(crate) fn admit(self, now: Epoch) -> Result<()> {
        if self.epoch == now && now != Epoch::NONE {
            return Ok(());
        }
        Err(StoreError::Fenced { partition: self.partition })
    }
}

/// Outcome of a block that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is durable, and this is its hash.
    Durable(BlockHash),
    /// Another owner took the partition before: it will never be in the journal.
    Fenced,
    /// It may be in the journal or come into it later. The tenure ended before that was known.
    Unknown,
}

/// When a change of the state area is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Durable,
    /// Within about a second, in the order of the calls.
    Lazy,
}

/// The place of a Record in its partition's journal. The first one is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The sequence number of the first Record of a journal.
    pub const FIRST: Sequence = Sequence(1);

    /// The sequence number `count` Records later.
    #[must_use]
    pub fn plus(self, count: u64) -> Sequence {
        Sequence(self.0 + count)
    }
}

/// The SHA-256 of a block, which covers the hash of the block before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHash(pub [u8; 32]);

impl BlockHash {
    /// The previous hash of the first block of a journal.
    pub const ZERO: BlockHash = BlockHash([0; 32]);
}

impl std::fmt::Debug for BlockHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Records that become durable together.
///
/// ```
/// use centavo_store::{Block, BlockHash, Partition, Sequence};
///
/// let block = Block {
///     partition: Partition(0),
///     first: Sequence::FIRST,
///     booked_at_ms: 1_767_225_600_000,
///     previous: BlockHash::ZERO,
///     records: vec![b"one".to_vec(), b"two".to_vec()],
/// };
/// assert_eq!(block.next(), Sequence(3));
/// let forged = Block { records: vec![b"one".to_vec(), b"too".to_vec()], ..block.clone() };
/// assert_ne!(block.hash(), forged.hash(), "the next block names the hash of this one");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The partition whose journal it continues.
    pub partition: Partition,
    /// The sequence number of its first Record; the others follow without a gap.
    pub first: Sequence,
    /// Time of booking, in milliseconds since 1970 (UTC); never before that of the block it
    /// follows.
    pub booked_at_ms: i64,
    /// The hash of the block before it.
    pub previous: BlockHash,
    /// Its Records, each as the opaque bytes of its encoding. At least one.
    pub records: Vec<Vec<u8>>,
}

impl Block {
    /// The SHA-256 over the format of the hash, the block's header, and the length and bytes of
    /// every Record.
    #[must_use]
    pub fn hash(&self) -> BlockHash {
        let mut digest = Sha256::new();
        digest.update([BLOCK_HASH_FORMAT]);
        digest.update(self.partition.0.to_be_bytes());
        digest.update(self.first.0.to_be_bytes());
        digest.update(self.booked_at_ms.to_be_bytes());
        digest.update(self.previous.0);
        digest.update((self.records.len() as u64).to_be_bytes());
        for record in &self.records {
            digest.update((record.len() as u64).to_be_bytes());
            digest.update(record);
        }
        BlockHash(digest.finalize().into())
    }

    /// The sequence number that the Record after this block will have.
    #[must_use]
    pub fn next(&self) -> Sequence {
        self.first.plus(self.records.len() as u64)
    }
}

/// Version of the fields that [`Block::hash`] covers, and of their order.
const BLOCK_HASH_FORMAT: u8 = 1;

/// Head: the end of a partition's journal, which the next block must continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The sequence number of the next Record.
    pub next: Sequence,
    /// The hash of the last block.
    pub hash: BlockHash,
    /// When the last block was booked, in milliseconds since 1970 (UTC).
    pub booked_at_ms: i64,
}

impl Head {
    /// The head of a journal without blocks.
    pub const EMPTY: Head = Head { next: Sequence::FIRST, hash: BlockHash::ZERO, booked_at_ms: i64::MIN };

    /// The head once `block`, whose hash is `hash`, is the last one.
    #[must_use]
    pub fn after(block: &Block, hash: BlockHash) -> Head {
        Head { next: block.next(), hash, booked_at_ms: block.booked_at_ms }
    }

    /// Whether `block` may follow: it takes the next sequence number, names the hash of the last
    /// block, was not booked before it, and holds between one and 2^32 − 1 Records of less than
    /// 4 GiB each.
    pub fn admit(&self, block: &Block) -> Result<()> {
        if block.first != self.next || block.previous != self.hash || block.booked_at_ms < self.booked_at_ms {
            return Err(StoreError::OutOfOrder {
                partition: block.partition,
                head: Box::new(*self),
                first: block.first,
                previous: block.previous,
                booked_at_ms: block.booked_at_ms,
            });
        }
        let countable = u32::try_from(block.records.len()).is_ok();
        let measurable = block.records.iter().all(|record| u32::try_from(record.len()).is_ok());
        if block.records.is_empty() || !countable || !measurable {
            return Err(StoreError::Unstorable("a block holds at least one Record, and no Record of 4 GiB or more"));
        }
        Ok(())
    }
}

/// A Record as it was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the journal.
    pub sequence: Sequence,
    /// When its block was booked, in milliseconds since 1970 (UTC).
    pub booked_at_ms: i64,
    /// Its encoding.
    pub bytes: Vec<u8>,
}

/// Result of a call to a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Failures of a store. None of these is a refusal by the business.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A block that does not continue the journal. Nothing was written.
    #[error(
        "block {} (previous {previous:?}, booked at {booked_at_ms}) does not follow the head of partition {}: {head:?}",
        first.0,
        partition.0
    )]
    OutOfOrder {
        /// The partition of the refused block.
        partition: Partition,
        /// The head that it would have had to follow.
        head: Box<Head>,
        /// The first sequence number of the refused block.
        first: Sequence,
        /// The previous hash that the refused block names.
        previous: BlockHash,
        /// The booking time of the refused block.
        booked_at_ms: i64,
    },
    /// Another owner took the partition. Nothing was written.
    #[error("partition {} was taken by another owner: this one may not write it any more", partition.0)]
    Fenced {
        /// The partition.
        partition: Partition,
    },
    /// The tenure ended before the store reported whether a block is in the journal.
    #[error("partition {} was taken by another owner before it was known whether a block is durable", partition.0)]
    Unknown {
        /// The partition.
        partition: Partition,
    },
    /// A block or key outside the limits of every store. Nothing was written.
    #[error("it can't be stored: {0}")]
    Unstorable(&'static str),
    /// An earlier write of this process failed; the process must end before anything is written
    /// again.
    #[error("an earlier write failed, nothing more is written: restart the process")]
    Poisoned,
    /// The machine failed: the disk is full or broken, a file may not be opened.
    #[error("{}: {source}", folder.display())]
    Machine {
        /// The folder concerned.
        folder: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder is open somewhere else.
    #[error(
        "{}: in use by another process; stop it, or ask the running server instead of opening its folder",
        folder.display()
    )]
    InUse {
        /// The folder concerned.
        folder: PathBuf,
    },
    /// A store was to be opened where none was ever made. Nothing was written.
    #[error("{}: there is no journal here; is this the right data directory or database? A backup is verified by restoring it", folder.display())]
    NoStore {
        /// The folder concerned.
        folder: PathBuf,
    },
    /// The bytes on the disk differ from those that were written.
    #[error(
        "{}: damaged{}: {detail}. Keep a copy of this folder and restore the last backup; \
         what was acknowledged after that backup is only in the copy",
        folder.display(),
        sequence.map(|sequence| format!(" at sequence {}", sequence.0)).unwrap_or_default()
    )]
    Damaged {
        /// The folder concerned.
        folder: PathBuf,
        /// The first Record that can't be trusted, where it is known.
        sequence: Option<Sequence>,
        /// The defect.
        detail: String,
    },
    /// Written by a newer release than this one.
    #[error("{}: written in format {found}; this release reads formats up to {known}: use a newer release", folder.display())]
    NewerFormat {
        /// The folder concerned.
        folder: PathBuf,
        /// The format found.
        found: u8,
        /// The newest format that this release reads.
        known: u8,
    },
    /// The database does not answer. What was to be written may be written or not.
    #[error("{place} does not answer: {detail}")]
    Unavailable {
        /// Host, port and database.
        place: String,
        /// The last error.
        detail: String,
    },
    /// The database refuses, and would refuse the same again.
    #[error("{place}: {detail}")]
    Refused {
        /// Host, port and database.
        place: String,
        /// The error of the database.
        detail: String,
    },
    /// The database lacks what this process has seen in it.
    #[error("{place}: {detail}")]
    Behind {
        /// Host, port and database.
        place: String,
        /// Where the database stands, where it stood, and the way out.
        detail: String,
    },
    /// The database may lose what it has acknowledged.
    #[error("{place}: {what}")]
    UnsafeDatabase {
        /// Host, port and database.
        place: String,
        /// The setting and what it does.
        what: &'static str,
    },
    /// A command that fills the store has not finished.
    #[error(
        "the books here are not whole: `{command}` has not finished, and nothing of them may be used. A migration that \
         was cut off goes on when it is run again; all else begins again with an empty database or folder"
    )]
    NotWhole {
        /// The command.
        command: String,
    },
    /// The books were moved to another place.
    #[error(
        "the books were moved to {to}: serve them there. What is booked there is not here. To have them here \
         again, move them back from there: centavo migrate"
    )]
    Moved {
        /// The place.
        to: String,
    },
    /// The disk got no request to make a write durable, so nothing could be acknowledged.
    #[error("{}: writes and renames are not synced in this program, so they would not survive a power cut", folder.display())]
    SyncNotDurable {
        /// The folder concerned.
        folder: PathBuf,
    },
}

impl StoreError {
    /// The error of the operating system at a file or folder.
    pub fn machine(path: &Path, source: io::Error) -> Self {
        Self::Machine { folder: path.to_path_buf(), source }
    }
}

/// Refuses the name of a file that no store would take.
pub(crate) fn admit_file_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.len() <= FILE_NAME_BYTES_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(StoreError::Unstorable("a file's name has 1 to 64 lower-case letters, digits, '-' and '.', a letter first"))
}

/// Refuses a common key that no store would take.
pub(crate) fn admit_common_key(key: &[u8]) -> Result<()> {
    if !COMMON_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        return Err(StoreError::Unstorable("a common key begins with keys/ or stamp/"));
    }
    admit_state_key(key)
}

/// Refuses a key of the state area that no store would take.
pub(crate) fn admit_state_key(key: &[u8]) -> Result<()> {
    if key.len() > STATE_KEY_BYTES_MAX {
        return Err(StoreError::Unstorable("a key of the state area has at most 128 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chain is only worth something when no field of a block can change under the same hash.
    #[test]
    fn the_hash_covers_every_field_and_where_records_end() {
        let block = Block {
            partition: Partition(0),
            first: Sequence(7),
            booked_at_ms: 1_700_000_000_000,
            previous: BlockHash([3; 32]),
            records: vec![b"ab".to_vec(), b"c".to_vec()],
        };
        let changed = [
            Block { partition: Partition(1), ..block.clone() },
            Block { first: Sequence(8), ..block.clone() },
            Block { booked_at_ms: 1_700_000_000_001, ..block.clone() },
            Block { previous: BlockHash([4; 32]), ..block.clone() },
            Block { records: vec![b"a".to_vec(), b"bc".to_vec()], ..block.clone() },
            Block { records: vec![b"abc".to_vec()], ..block.clone() },
            Block { records: vec![b"ab".to_vec(), b"c".to_vec(), vec![]], ..block.clone() },
        ];
        for other in changed {
            assert_ne!(other.hash(), block.hash(), "{other:?}");
        }
        // Written down so that a change of the format does not pass unnoticed: stored journals
        // depend on it.
        assert_eq!(format!("{:?}", block.hash()), "950f9dc89c1c261f1d32226c646984be8e5b87be57a712106b9f5ff07e99f149");
    }
}
