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
//! <backup>/generations/    earlier states of the backup, where a run is to keep them
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
//! - `v`, a value: length of the key (u32), key, value.
//! - `e`, an end: the head of the journal there: next sequence (u64), hash (32 bytes), booking time
//!   (i64). Nothing follows it.
//!
//! A `.blocks` file is blocks and an end; `keys` is values and an end, which is the end of the
//! whole backup. A server sends the same: the beginning of a file, the values, an end with the head
//! that is being sent, then the blocks through it, and an end.
//!
//! New kinds of frames and other payloads come with a higher format byte, which older releases
//! refuse by name. A release reads every released format before its own. The hash of a block
//! ([`crate::store::Block::hash`]) never changes under the same format.
//!
//! # Promises of a run
//! Files get their names when they are whole and on the disk: first the blocks, then `keys`. The
//! rename of `keys` completes the run. `.blocks` files beyond its end come from an interrupted run;
//! they do not count, and the next run removes them. So a missing file is noticed, also when it is
//! the last. Keys are read after the head that is copied, and a key is durable before any Record
//! that is sealed with it: every Record of a backup finds its key there.
//!
//! The master key is **not** in a backup: whoever has only the backup cannot read a person's name.
//! Derived data (snapshots, the index, the read model) is not there either; a restored store makes
//! it again.

mod folder;
mod frame;
mod generations;
mod merge;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::store::place::is_of_place;
use crate::store::{Block, Head, KeyAndValue, Part, Partition, Sequence, StoreError};

pub use folder::{BackupFolder, BackupRun, Taken};
pub use frame::{Frame, FrameReader, write_magic};
pub use generations::Generations;

/// The newest format that this release writes and reads.
pub(crate) const FORMAT: u8 = 1;

/// The partition that is copied. This release has one.
const PARTITION: Partition = Partition(0);

/// Why a backup is not made, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store failed, or found its blocks damaged; or the machine failed: the disk is full, a
    /// file may not be opened, a connection broke.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    #[error("{}: written in format {found}; this release reads formats up to {FORMAT}: use a newer release", file.display())]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// The format found.
        found: u8,
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

/// Frames for a backup that has everything before `from`: the durable values, an end with the head
/// of this moment, the blocks through that head, and an end. No lock is held between two frames, so
/// a slow reader disturbs nobody.
pub fn frames(
    store: &Part,
    from: Sequence,
) -> Result<impl Iterator<Item = Result<Frame, BackupError>> + '_, BackupError> {
    // In this order: a Record below the head is sealed with a key that was there before it.
    let head = store.head()?;
    let values = durable_values(store)?;
    let blocks = store.blocks(from).take_while(move |block| match block {
        Ok(block) => block.next() <= head.next,
        Err(_) => true,
    });
    let values = values.into_iter().map(|(key, value)| Ok(Frame::Value { key, value }));
    let blocks = blocks.map(|block| block.map(Frame::Block).map_err(BackupError::from));
    let end = || std::iter::once(Ok(Frame::End(head)));
    Ok(values.chain(end()).chain(blocks).chain(end()))
}

/// The values beside the journal that can't be derived from it, by key, without the stamps of this
/// place. The cursors are among them: how far webhooks were delivered, so that a restored server
/// does not deliver those of years again.
pub fn durable_values(store: &Part) -> Result<Vec<KeyAndValue>, StoreError> {
    let mut values = store.store().commons()?;
    values.retain(|(key, _)| !is_of_place(key));
    for key in store.cursor_keys()? {
        values.extend(store.cursor(&key)?.map(|value| (key, value)));
    }
    Ok(values)
}

/// Source of the blocks after those of a backup.
pub enum Tail<'a> {
    /// Another backup.
    Backup(&'a BackupFolder),
    /// A store that nobody writes to.
    Store(&'a Part),
}

/// Result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// The head of the store now.
    pub head: Head,
    /// Records taken from the tail.
    pub tail: Option<TailTaken>,
}

/// Records that a restore took from a tail.
#[derive(Debug)]
pub struct TailTaken {
    /// Number of Records that it gave.
    pub records: u64,
    /// Why it ended before its own end.
    pub stopped: Option<BackupError>,
    /// Why its keys could not be read, so that those of the backup stand.
    pub without_keys: Option<BackupError>,
}

/// Fills an empty store from a backup, then from a tail as far as it can be read. Calls `progress`
/// with the number of Records restored and their total.
pub fn restore(
    backup: &BackupFolder,
    tail: Option<Tail<'_>>,
    store: &Part,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, BackupError> {
    let mut values = backup.values().to_vec();
    let total = backup.head().next.0 - 1;
    for block in backup.blocks() {
        let block = block?;
        store.append(&block)?;
        progress(block.next().0 - 1, total);
    }
    let tail = tail.map(|tail| append_tail(backup, &tail, store, &mut values)).transpose()?;
    for (key, value) in values {
        if key.starts_with(crate::outbox::PREFIX) {
            store.put_cursor(&key, &value)?;
        } else {
            store.store().insert_common(&key, &value)?;
        }
    }
    Ok(Restored { head: store.head()?, tail })
}

/// Appends the blocks that a second copy has beyond the head. Its keys, if it has any, are the
/// newer ones.
fn append_tail(
    backup: &BackupFolder,
    tail: &Tail<'_>,
    store: &Part,
    values: &mut Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<TailTaken, BackupError> {
    let begin = store.head()?;
    let mut stopped = None;
    for block in tail.blocks_from(begin) {
        let block = match block {
            Ok(block) => block,
            Err(error) => {
                stopped = Some(error);
                break;
            }
        };
        let is_before = block.next() <= begin.next;
        let parts = match is_before {
            true => block.next() == begin.next && block.hash() != begin.hash,
            false => store.head()?.admit(&block).is_err(),
        };
        if parts {
            let detail = format!("block {} of the second copy does not belong to it", block.first.0);
            return Err(BackupError::OtherJournal { folder: backup.path().to_path_buf(), detail });
        }
        if is_before {
            continue;
        }
        store.append(&block)?;
    }
    let records = store.head()?.next.0 - begin.next.0;
    let mut without_keys = None;
    if records > 0 {
        match tail.values() {
            Ok(newer) => *values = newer,
            Err(error) => without_keys = Some(error),
        }
    }
    Ok(TailTaken { records, stopped, without_keys })
}

type BlockStream<'a> = Box<dyn Iterator<Item = Result<Block, BackupError>> + 'a>;

impl Tail<'_> {
    /// The last block through a head and those beyond it, perhaps after some before.
    fn blocks_from(&self, head: Head) -> BlockStream<'_> {
        match self {
            Tail::Backup(folder) => Box::new(folder.blocks()),
            Tail::Store(store) => {
                let from = Sequence(head.next.0 - 1).max(Sequence::FIRST);
                Box::new(store.blocks(from).map(|block| block.map_err(BackupError::from)))
            }
        }
    }

    fn values(&self) -> Result<Vec<KeyAndValue>, BackupError> {
        match self {
            Tail::Backup(folder) => Ok(folder.values().to_vec()),
            Tail::Store(store) => Ok(durable_values(store)?),
        }
    }
}
