//! Store: the durable journal, and the keys, cursors and files beside it.
//!
//! The journal is blocks of opaque Record bytes. The store makes each block durable whole or not at
//! all; blocks are numbered without a gap and chained by hash. Beside the journal the store keeps
//! an area of keys and values for what is derived from the journal or kept apart from it
//! (snapshots, sealed keys, stamps), cursors, and files.
//!
//! A write survives a power cut when [`Store::append`] or [`Store::put_state`] has answered `Ok`.
//! Readers see a block only when it is durable. Damage is an error that names its place, never
//! silence and never a panic. The store knows nothing of the content of a Record: no ledger, no
//! event, no money.

pub(crate) mod anchor;
mod chunk;
mod cursors;
mod disk;
mod durable_sync;
mod files;
mod monitor;
mod options;
mod segment;
mod segments;
mod sled;
mod space;
mod state_area;
mod wal;
mod write_behind;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use self::chunk::{Key as ChunkKey, cut};
pub use self::disk::SledStore;
pub(crate) use self::durable_sync::with_short_slice;
pub use self::durable_sync::{durable_syncs, durable_syncs_at_once_max};
#[cfg(feature = "testkit")]
pub(crate) use self::files::damaged;
pub(crate) use self::files::{create_private_folder, make_private};
pub use self::monitor::{LongestWait, Monitor, Wait, WaitFor};
pub use self::options::SledOptions;
use self::sled::{Database, Pair, check_sync};

/// The longest key of the state area, in bytes.
pub(crate) const STATE_KEY_BYTES_MAX: usize = 128;

/// The longest name of a file.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 64;

/// Store of the journal, the state area, the cursors and the files.
///
/// One thread appends; any number of threads read meanwhile. Readers see a block only when it is
/// durable.
///
/// ```
/// use actors::store::{Block, Partition, Sequence, Store};
/// use actors::testkit::MemoryStore;
///
/// let store = MemoryStore::new();
/// let head = store.head(Partition(0))?;
/// let records = vec![b"one".to_vec(), b"two".to_vec()];
/// let (partition, first, previous) = (Partition(0), head.next, head.hash);
/// let block = Block { partition, first, booked_at_ms: 0, previous, records };
/// let hash = store.append(&block)?;
/// assert_eq!(store.head(Partition(0))?.hash, hash);
/// assert_eq!(store.record(Partition(0), Sequence(2))?.expect("a durable Record").bytes, b"two");
/// // It takes a block once: the next one must continue the chain.
/// assert!(store.append(&block).is_err());
/// # Ok::<(), actors::store::StoreError>(())
/// ```
pub trait Store: Send + Sync + 'static {
    /// Makes a block durable: whole when this returns `Ok`, and whole or not at all whatever
    /// happens before that.
    ///
    /// The block must follow the head of its partition (see [`Head::admit`]). After an error of the
    /// machine the store refuses to write in this process: a failed flush may have dropped pages
    /// that it could not write, so a second flush would report them as durable. The process ends,
    /// and a new one reads the disk anew.
    ///
    /// Returns the block's hash, which the next block names as its previous one.
    fn append(&self, block: &Block) -> Result<BlockHash, StoreError>;

    /// The end of the durable journal of one partition.
    fn head(&self, partition: Partition) -> Result<Head, StoreError>;

    /// One Record by its sequence number, or `None` when the durable journal does not have it
    /// (yet). Reads only the chunks that hold it and checks their checksums; [`Store::blocks`] also
    /// checks the block's hash.
    fn record(&self, partition: Partition, sequence: Sequence) -> Result<Option<StoredRecord>, StoreError>;

    /// The blocks that were durable at the time of the call, in order, beginning with the one that
    /// holds `from`.
    ///
    /// It checks every chunk's checksum, the completeness of each block, its hash, its place in the
    /// chain (also that of the first block), and that the last block is the head. The iterator ends
    /// after its first error.
    fn blocks(
        &self,
        partition: Partition,
        from: Sequence,
    ) -> Box<dyn Iterator<Item = Result<Block, StoreError>> + Send + '_>;

    /// Replaces the value of a key, atomically; durable when it returns. A key has at most
    /// [`STATE_KEY_BYTES_MAX`] bytes, a value may have any size.
    fn put_state(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Puts the value of a key that has none, and returns the value of the key afterwards: the
    /// first writer wins, also among processes. Durable when it returns. It is for values on which
    /// all users of the store must agree, such as the key that seals a month's personal data.
    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// Replaces the value of a key, atomically, but without waiting for the disk: for data that can
    /// be derived again, such as snapshots. It becomes durable within about a second. After a crash
    /// before that the key holds this value, the one before, or nothing, but never a part of
    /// either. A failure stops nothing else.
    fn put_state_lazily(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// The value of a key. A lazily put value with a wrong checksum reads as absent. A durably put
    /// one is [`StoreError::Damaged`], since it cannot be derived again.
    fn state(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes a key and its value; durable when it returns. Removing an absent key changes
    /// nothing.
    fn delete_state(&self, key: &[u8]) -> Result<(), StoreError>;

    /// Removes a key and its value without waiting for the disk. After a crash the key may be there
    /// again, with its value. Puts and removals reach the disk in the order of the calls: none is
    /// there without those before it.
    fn delete_state_lazily(&self, key: &[u8]) -> Result<(), StoreError>;

    /// The keys that begin with `prefix`, in the order of their bytes.
    fn state_keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Replaces the value of a cursor: a small value that changes every second and may be behind
    /// after a crash, such as how far a webhook endpoint has come. It becomes durable within about
    /// a second. After a crash before that the cursor holds the last durable value or a later one.
    /// Keys have the limits of the state area, but are apart from its keys.
    fn put_cursor(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// The value of a cursor.
    fn cursor(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes a cursor, as durably as one is put.
    fn delete_cursor(&self, key: &[u8]) -> Result<(), StoreError>;

    /// The keys of the cursors, in the order of their bytes.
    fn cursor_keys(&self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Writes a file of data derived from the journal, such as a run of the index. It is whole and
    /// durable when this returns, or not there at all. A file is never changed; one of the same
    /// name is replaced. The name has at most [`FILE_NAME_BYTES_MAX`] lower-case letters, digits,
    /// `-` and `.`, and begins with a letter. The store adds no checksum: the content needs its
    /// own. A failure stops nothing else, and the caller may try again.
    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Like [`Store::put_file`], for a file that may be too large for memory: `write` writes its
    /// bytes. Returns their number. When `write` fails, no file is there.
    fn put_file_in_parts(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<u64, StoreError> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|source| StoreError::Machine { folder: name.into(), source })?;
        self.put_file(name, &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Up to `length` bytes of a file from `offset`; fewer at its end, none when there is no such
    /// file.
    fn file_part(&self, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>, StoreError>;

    /// The names and sizes of the files, in the order of their names.
    fn files(&self) -> Result<Vec<(String, u64)>, StoreError>;

    /// Removes a file; removing an absent one changes nothing.
    fn remove_file(&self, name: &str) -> Result<(), StoreError>;

    /// Bytes that are free where the store writes; none for a store that does not know.
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Bytes that must stay free there, so that writes under way can finish and the store can be
    /// opened again.
    fn reserve_bytes(&self) -> u64 {
        0
    }

    /// The size of the store on its disk, in bytes.
    fn size_bytes(&self) -> Result<u64, StoreError>;

    /// The monitor of the store's waits.
    fn monitor(&self) -> Arc<Monitor>;
}

/// A part of the journal with a chain and sequence numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u16);

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
    pub fn admit(&self, block: &Block) -> Result<(), StoreError> {
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
    #[error("{}: there is no journal here; is this the data directory?", folder.display())]
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
    /// The disk was not told to make a write durable, so nothing could be acknowledged.
    #[error("{}: writes and renames are not synced in this program, so they would not survive a power cut", folder.display())]
    SyncNotDurable {
        /// The folder concerned.
        folder: PathBuf,
    },
}

/// Refuses the name of a file that no store would take.
pub(crate) fn admit_file_name(name: &str) -> Result<(), StoreError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.len() <= FILE_NAME_BYTES_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(StoreError::Unstorable("a file's name has 1 to 64 lower-case letters, digits, '-' and '.', a letter first"))
}

/// Refuses a key of the state area that no store would take.
pub(crate) fn admit_state_key(key: &[u8]) -> Result<(), StoreError> {
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
