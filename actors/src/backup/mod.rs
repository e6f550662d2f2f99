//! Backup: a copy of the journal and of the keys beside it, in files of their own format, from
//! which any store can be made again.
//!
//! A backup consists of blocks, not of a store's files, so it does not depend on the layout of a
//! store. Everything in it is checked when it is made and again whenever it is read. It is
//! incremental to the block.
//!
//! ```text
//! <backup>/000001.blocks   blocks in order, from the first of the journal, at most 256 MiB a file
//! <backup>/000002.blocks   each run of a backup adds one file or more; a file is never changed,
//!                          but the last ones may be replaced by one with the same blocks
//! <backup>/keys            the durable values beside the journal, and how far the backup goes;
//!                          replaced by each run
//! <backup>/lock            held while a run writes
//! ```
//!
//! # The format
//! Integers are big-endian. A file is `centavo backup`, a line feed, the byte of the format (now
//! 1), and frames: kind (one byte), length of the payload (u32), payload, CRC32C of all three
//! (u32). The kinds:
//!
//! - `b`, a block: partition (u16), sequence of its first Record (u64), booking time (i64,
//!   milliseconds), hash of the block before it (32 bytes), number of Records (u32), and each
//!   Record's length (u32) and bytes. Its own hash is not written: it is computed, and the next
//!   block, or the end, must name it.
//! - `v`, a value that is common to all partitions, or one of partition 0: length of the key (u32),
//!   key, value.
//! - `p`, a value of another partition: partition (u16), length of the key (u32), key, value.
//! - `e`, an end: for each partition, from 0 on, the head of its journal there: next sequence
//!   (u64), hash (32 bytes), booking time (i64). Partitions that it does not name have no blocks.
//!   Nothing follows it.
//!
//! Blocks of all partitions stand in the order of booking. Each continues the one before it of its
//! own partition.
//!
//! A `.blocks` file is blocks and an end; `keys` is values and an end, which is the end of the
//! whole backup. A server sends the same: the beginning of a file, the values, an end with the
//! heads that are being sent, then the blocks through them, and an end.
//!
//! New kinds of frames and other payloads come with a higher format byte, which older releases
//! refuse by name. The hash of a block ([`store::Block::hash`]) never changes under the same
//! format.
//!
//! # Promises of a run
//! Files get their names when they are whole and on the disk: first the blocks, then `keys`. The
//! rename of `keys` completes the run. `.blocks` files beyond its end come from an interrupted run;
//! they do not count, and the next run removes them. So a missing file is noticed, also when it is
//! the last. Keys are read after the heads that are copied, and a key is durable before any Record
//! that is sealed with it: every Record of a backup finds its key there.
//!
//! The master key is **not** in a backup: whoever has only the backup cannot read a person's name.
//! Derived data (snapshots, the index, the read model) is not there either; a restored store makes
//! it again.

mod folder;
mod frame;
mod merge;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use derived::extents::{ExtentError, Extents};
use derived::heads::{Heads, named};
use derived::merged;
use store::place_stamps::is_of_place;
use store::{Block, Cut, KeyAndValue, Part, Partition, Position, Remains, Sequence, Store, StoreError};

pub use folder::{BackupFolder, BackupResult, BackupRun};
pub use frame::{Frame, FrameReader, write_magic};

/// The format that is written and read.
pub(crate) const FORMAT: u8 = 1;

/// Why a backup is not made, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store failed, or found its blocks damaged; or the machine failed: the disk is full, a
    /// file may not be opened, a connection broke.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The partitions of the store, or of the backup, contradict each other.
    #[error(transparent)]
    Extents(#[from] ExtentError),
    /// The store has no room for so many partitions.
    #[error("the backup has {found} partitions, and {place} has {most} at most")]
    TooManyPartitions {
        /// Partitions of the backup.
        found: usize,
        /// What is to be filled.
        place: &'static str,
        /// Those that it may have.
        most: usize,
    },
    /// The bytes of the backup differ from those that were written.
    #[error("{}: damaged: {detail}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The defect.
        detail: String,
    },
    /// A store or a server gave blocks that do not continue the backup.
    #[error("what was to be copied: {0}")]
    Source(&'static str),
    /// There is no backup.
    #[error("{}: there is no backup here", folder.display())]
    NoBackup {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds something else.
    #[error("{}: this is no file of a backup; a backup begins in an empty folder", file.display())]
    NotEmpty {
        /// A file that is in the way.
        file: PathBuf,
    },
    /// Another run writes to the backup.
    #[error("{}: another backup is being written here", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// Written by a newer release than this one.
    #[error("{}: written in format {found}; this release reads format {FORMAT}: use a newer release", file.display())]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// The format found.
        found: u8,
    },
    /// The store of a second copy does not open; its journal and its write-ahead log are read by
    /// themselves.
    #[error("its store does not open: {0}")]
    Unopened(String),
    /// The write-ahead log of a second copy begins behind the end of what could be read before.
    #[error("its write-ahead log goes on at {to}, and the Records from {from} to there can't be read")]
    Gap {
        /// The first Record that is missing.
        from: String,
        /// The first Record of the log.
        to: String,
    },
    /// The journal does not continue the backup.
    #[error("{}: a backup of another journal: {detail}", folder.display())]
    OtherJournal {
        /// The folder of the backup.
        folder: PathBuf,
        /// The first difference.
        detail: String,
    },
}

/// A value beside the journal that can't be derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableValue {
    /// Its partition; 0 for one that is common to all of them.
    pub partition: Partition,
    /// Its key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// Frames in their order: see [`frames`].
pub type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, BackupError>> + Send + 'a>;

/// Frames for a backup that has everything before these Records: the durable values, an end with
/// the heads of this moment, the blocks of all partitions through those heads in the order of
/// booking, and an end. No lock is held between two frames, so a slow reader disturbs nobody.
pub fn frames<'a>(parts: impl IntoIterator<Item = &'a Part>, from: &Cut) -> Result<Frames<'a>, BackupError> {
    let parts: Vec<&Part> = parts.into_iter().collect();
    // In this order: a Record below a head is sealed with a key that was there before it.
    let heads = Heads::of_parts(parts.iter().copied())?;
    let values = durable_values(parts.iter().copied())?;
    let through = heads.clone();
    let blocks = merged::blocks(parts, from).filter(move |block| match block {
        Ok(block) => block.next() <= through.of(block.partition).next,
        Err(_) => true,
    });
    let values = values.into_iter().map(|value| Ok(Frame::Value(value)));
    let blocks = blocks.map(|block| block.map(Frame::Block).map_err(BackupError::from));
    let end = || std::iter::once(Ok(Frame::End(heads.clone())));
    Ok(Box::new(values.chain(end()).chain(blocks).chain(end())))
}

/// The values beside the journals that can't be derived from them: the common ones without the
/// stamps of this place, then the cursors of each partition. Those say how far webhooks were
/// delivered, so that a restored server does not deliver those of years again.
pub fn durable_values<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Result<Vec<DurableValue>, StoreError> {
    let mut values = Vec::new();
    for (place, part) in parts.into_iter().enumerate() {
        if place == 0 {
            let commons = part.store().commons()?.into_iter().filter(|(key, _)| !is_of_place(key));
            values.extend(commons.map(|(key, value)| DurableValue { partition: Partition(0), key, value }));
        }
        for key in part.cursor_keys()? {
            let value = part.cursor(&key)?;
            values.extend(value.map(|value| DurableValue { partition: part.partition(), key, value }));
        }
    }
    Ok(values)
}

/// Source of the blocks after those of a backup.
pub enum Tail<'a> {
    /// Another backup.
    Backup(&'a BackupFolder),
    /// All partitions of a store that nobody writes to.
    Store(&'a [Part]),
    /// A data folder that nobody writes to: the partitions of its store, empty if it does not open,
    /// and what else can be read.
    Folder(&'a [Part], &'a Remains),
}

/// Heads of a restored store, and what its tail gave.
#[derive(Debug)]
pub struct RestoreResult {
    /// The heads of the store now.
    pub heads: Heads,
    /// Records taken from the tail.
    pub tail: Option<TailTaken>,
}

/// Records that a restore took from a tail.
#[derive(Debug)]
pub struct TailTaken {
    /// Number of Records that it gave.
    pub records: u64,
    /// Why a partition of it ended before its own end.
    pub stopped: Option<BackupError>,
    /// Why its keys could not be read, so that those of the backup stand.
    pub without_keys: Option<BackupError>,
}

/// Fills an empty store, whose partitions nobody has, from a backup, then from a tail as far as it
/// can be read. The partitions are those of the backup, and of the tail where that has more; in the
/// end they are given up. Calls `progress` with the number of Records restored and their total.
pub fn restore(
    backup: &BackupFolder,
    tail: Option<Tail<'_>>,
    store: &Arc<dyn Store>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RestoreResult, BackupError> {
    let mut filled = FillingStore { store, parts: Vec::new(), heads: Heads::default() };
    filled.admit(&partitions_of(backup.values(), backup.heads())?)?;
    let mut values = backup.values().to_vec();
    let total = backup.heads().records();
    let mut restored = 0;
    for block in backup.blocks() {
        let block = block?;
        filled.append(&block)?;
        restored += block.records.len() as u64;
        progress(restored, total);
    }
    let tail = tail.map(|tail| append_tail(backup, &tail, &mut filled, &mut values)).transpose()?;
    for DurableValue { partition, key, value } in &values {
        if key.starts_with(derived::outbox::PREFIX) {
            filled.part(*partition)?.put_cursor(key, value)?;
        } else {
            store.insert_common(key, value)?;
        }
    }
    // Those without blocks are there too, and the first one always is.
    for partition in partitions_of(&values, &filled.heads)? {
        filled.part(partition)?;
    }
    filled.parts.iter().flatten().try_for_each(Part::release)?;
    Ok(RestoreResult { heads: filled.heads, tail })
}

/// Partitions that the stored extents name, and partitions with blocks.
fn partitions_of(values: &[DurableValue], heads: &Heads) -> Result<BTreeSet<Partition>, ExtentError> {
    Ok(extents_among(values)?.all().chain(heads.iter().map(|(partition, _)| partition)).collect())
}

/// The extents among values; one partition where there are none.
fn extents_among(values: &[DurableValue]) -> Result<Extents, ExtentError> {
    let values: Vec<KeyAndValue> = values.iter().map(|value| (value.key.clone(), value.value.clone())).collect();
    Extents::among(&values)
}

/// A store that is being filled.
struct FillingStore<'a> {
    store: &'a Arc<dyn Store>,
    /// The partitions that were taken, by number.
    parts: Vec<Option<Part>>,
    heads: Heads,
}

impl FillingStore<'_> {
    /// Refuses more partitions than the store can have.
    fn admit(&self, partitions: &BTreeSet<Partition>) -> Result<(), BackupError> {
        let (found, most) = (partitions.len(), self.store.partitions_max());
        match found <= most {
            true => Ok(()),
            false => Err(BackupError::TooManyPartitions { found, place: "a store on one machine", most }),
        }
    }

    /// A partition, which is taken when it is the first time.
    fn part(&mut self, partition: Partition) -> Result<&Part, StoreError> {
        let place = usize::from(partition.0);
        if self.parts.len() <= place {
            self.parts.resize(place + 1, None);
        }
        match &mut self.parts[place] {
            Some(part) => Ok(part),
            none => Ok(none.insert(Part::take(Arc::clone(self.store), partition)?)),
        }
    }

    fn append(&mut self, block: &Block) -> Result<(), StoreError> {
        self.part(block.partition)?.append(block)?;
        self.heads.pass(block)
    }
}

/// Appends the blocks that a second copy has beyond the heads. Its keys, if it has any, are the
/// newer ones.
fn append_tail(
    backup: &BackupFolder,
    tail: &Tail<'_>,
    filled: &mut FillingStore<'_>,
    values: &mut Vec<DurableValue>,
) -> Result<TailTaken, BackupError> {
    let begin = filled.heads.clone();
    let mut stopped = None;
    for block in tail.blocks_from(&begin.cut()) {
        let block = match block {
            Ok(block) => block,
            // What is damaged in one partition of a store ends that partition alone.
            Err(error) => {
                stopped.get_or_insert(error);
                continue;
            }
        };
        let begun = begin.of(block.partition);
        let is_before = block.next() <= begun.next;
        let parts = match is_before {
            true => block.next() == begun.next && block.hash() != begun.hash,
            false => filled.heads.of(block.partition).admit(&block).is_err(),
        };
        if parts {
            let at = named(Position { partition: block.partition, sequence: block.first });
            let detail = format!("the block at {at} of the second copy does not belong to it");
            return Err(BackupError::OtherJournal { folder: backup.path().to_path_buf(), detail });
        }
        if !is_before {
            filled.append(&block)?;
        }
    }
    append_logged(backup, tail, filled, &mut stopped)?;
    let records = filled.heads.records() - begin.records();
    let mut without_keys = None;
    if records > 0 {
        match tail.values() {
            Ok(newer) => *values = newer,
            Err(error) => without_keys = Some(error),
        }
    }
    Ok(TailTaken { records, stopped, without_keys })
}

/// Appends the blocks of a write-ahead log that go on behind the heads. Those that lie before, or
/// that a newer one replaced, are passed over.
fn append_logged(
    backup: &BackupFolder,
    tail: &Tail<'_>,
    filled: &mut FillingStore<'_>,
    stopped: &mut Option<BackupError>,
) -> Result<(), BackupError> {
    for block in tail.logged() {
        let head = filled.heads.of(block.partition);
        let at = || named(Position { partition: block.partition, sequence: block.first });
        if block.first < head.next {
            continue;
        }
        if block.first > head.next {
            let end = named(Position { partition: block.partition, sequence: head.next });
            let gap = BackupError::Gap { from: end, to: at() };
            stopped.get_or_insert(gap);
            continue;
        }
        if head.admit(block).is_err() {
            let detail = format!("the write-ahead log of the second copy goes on with another block at {}", at());
            return Err(BackupError::OtherJournal { folder: backup.path().to_path_buf(), detail });
        }
        filled.append(block)?;
    }
    Ok(())
}

type BlockStream<'a> = Box<dyn Iterator<Item = Result<Block, BackupError>> + 'a>;

impl Tail<'_> {
    /// The last block of each partition through a cut and those beyond it, perhaps after some
    /// before.
    fn blocks_from(&self, cut: &Cut) -> BlockStream<'_> {
        match self {
            Tail::Backup(folder) => Box::new(folder.blocks()),
            Tail::Store(parts) | Tail::Folder(parts, _) => {
                let from = cut.clone();
                let blocks =
                    parts.iter().flat_map(move |part| part.blocks(from.of(part.partition()).max(Sequence::FIRST)));
                let blocks =
                    self.unopened().map(Err).into_iter().chain(blocks.map(|block| block.map_err(BackupError::from)));
                let from = cut.clone();
                let rest = self.remains().map(|remains| remains.journal_from(move |partition| from.of(partition)));
                Box::new(blocks.chain(rest.into_iter().flatten().map(|block| block.map_err(BackupError::from))))
            }
        }
    }

    fn remains(&self) -> Option<&Remains> {
        match self {
            Tail::Folder(_, remains) => Some(remains),
            Tail::Backup(_) | Tail::Store(_) => None,
        }
    }

    fn logged(&self) -> &[Block] {
        self.remains().map_or(&[], Remains::logged)
    }

    /// Why the store of a folder does not open.
    fn unopened(&self) -> Option<BackupError> {
        self.remains().and_then(Remains::unopened).map(|reason| BackupError::Unopened(reason.to_string()))
    }

    fn values(&self) -> Result<Vec<DurableValue>, BackupError> {
        match self {
            Tail::Backup(folder) => Ok(folder.values().to_vec()),
            Tail::Store(parts) | Tail::Folder(parts, _) => match self.unopened() {
                Some(reason) => Err(reason),
                None => Ok(durable_values(*parts)?),
            },
        }
    }
}
