//! The head of the journal, kept apart from it, so that a journal that was shortened is noticed.
//!
//! A database that lost the end of its log opens as if nothing had been there. So the head is also kept in a file of its own,
//! of two slots of 4 KiB that are written in turn. A thread writes it while the journal goes on: the anchor stands one block
//! behind as a rule and never more than two, which is what a writer waits for. *A journal shortened by more than its last two
//! blocks is noticed.* It never stands ahead of what is durable.
//!
//! It is derived: where both slots are lost, it is written anew.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::chunk::{CHECKSUM_BYTES, checksum_of};
use super::files::{Files, machine};
use super::{BlockHash, Head, Partition, Sequence, StoreError};

/// The most partitions whose heads fit into a slot.
pub(super) const PARTITIONS_MAX: usize = 64;

/// What stood in the file at opening: the newest slot that is whole.
#[derive(Debug, Default)]
pub(super) struct Anchored {
    pub(super) counter: u64,
    pub(super) heads: BTreeMap<Partition, (Sequence, BlockHash)>,
}

impl Anchored {
    /// What stands in the file of the folder `data`; nothing if there is no file or neither slot is whole.
    pub(super) fn read(data: &Path) -> Result<Option<Anchored>, StoreError> {
        let path = data.join(ANCHOR);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|source| machine(&path, source))?,
        };
        Anchored::newest(&bytes).map_err(|found| StoreError::NewerFormat { folder: path, found, known: FORMAT })
    }

    /// The newest of the slots that are whole; or, as an error, the newer format in which one is written.
    pub(super) fn newest(bytes: &[u8]) -> Result<Option<Anchored>, u8> {
        let mut newest: Option<Anchored> = None;
        for slot in bytes.chunks_exact(SLOT_BYTES) {
            match parse(slot) {
                Ok(slot) if newest.as_ref().is_none_or(|newest| newest.counter < slot.counter) => newest = Some(slot),
                Err(Some(found)) => return Err(found),
                Ok(_) | Err(None) => {}
            }
        }
        Ok(newest)
    }

    /// Whether the journal in `folder` reaches what was anchored, and had the same block there.
    pub(super) fn check(
        &self,
        folder: &Path,
        heads: &BTreeMap<Partition, Head>,
        hash_before: impl Fn(Partition, Sequence) -> Result<BlockHash, StoreError>,
    ) -> Result<(), StoreError> {
        for (&partition, &(next, hash)) in &self.heads {
            let head = heads.get(&partition).copied().unwrap_or(Head::EMPTY);
            let damaged = |sequence, detail| {
                Err(StoreError::Damaged { folder: folder.to_path_buf(), sequence: Some(sequence), detail })
            };
            if head.next < next {
                let missing = next.0 - head.next.0;
                let (found, acknowledged) = (head.next.0 - 1, next.0 - 1);
                let detail = format!(
                    "the journal ends at sequence {found}, but {acknowledged} Records were acknowledged: {missing} are missing at its end"
                );
                return damaged(head.next, detail);
            }
            let found = if head.next == next { head.hash } else { hash_before(partition, next)? };
            if found != hash {
                let detail = "another block was acknowledged here: it is not the journal that this folder had";
                return damaged(Sequence(next.0 - 1), detail.to_owned());
            }
        }
        Ok(())
    }
}

/// The file and the thread that writes it.
#[derive(Debug)]
pub(super) struct Anchor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Anchor {
    /// Begins to keep `heads`, the heads of the journal, which continues what was `anchored`.
    pub(super) fn open(
        data: &Path,
        anchored: Option<Anchored>,
        heads: &BTreeMap<Partition, Head>,
        poisoned: Arc<AtomicBool>,
    ) -> Result<Anchor, StoreError> {
        let path = data.join(ANCHOR);
        let heads: Heads = heads.iter().map(|(partition, head)| (*partition, (head.next, head.hash))).collect();
        let counter = match anchored {
            Some(anchored) => anchored.counter,
            None => {
                if !heads.is_empty() {
                    tracing::warn!(anchor = %path.display(), "the anchor was lost or damaged and is written anew");
                }
                Files::open(data.to_path_buf())?.put(ANCHOR, &new_file(&heads))?;
                0
            }
        };
        let file = OpenOptions::new().write(true).open(&path).map_err(|source| machine(&path, source))?;
        let state = State { heads, handed: HANDED_AT_OPENING, written: 0, failed: None, is_over: false };
        let shared = Arc::new(Shared { path, state: Mutex::new(state), changed: Condvar::new(), poisoned });
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal anchor".to_owned());
        let thread = thread.spawn(move || writing.write(&file, counter)).map_err(|source| machine(data, source))?;
        Ok(Anchor { shared, thread: Some(thread) })
    }

    /// Waits until another block may become durable: until at most one is not anchored.
    pub(super) fn wait(&self) -> Result<(), StoreError> {
        let mut state = self.shared.state.lock();
        while state.failed.is_none() && must_wait(state.handed, state.written) {
            self.shared.changed.wait(&mut state);
        }
        match state.failed {
            Some(kind) => Err(machine(&self.shared.path, kind.into())),
            None => Ok(()),
        }
    }

    /// Takes in that a block is durable.
    pub(super) fn hand_over(&self, partition: Partition, head: Head) {
        let mut state = self.shared.state.lock();
        state.heads.insert(partition, (head.next, head.hash));
        state.handed += 1;
        self.shared.changed.notify_all();
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the anchor panicked");
        }
    }
}

pub(super) type Heads = BTreeMap<Partition, (Sequence, BlockHash)>;

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
    poisoned: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    heads: Heads,
    /// How many heads were handed over, and how many of them are written or overtaken by a later one that is.
    handed: u64,
    written: u64,
    failed: Option<io::ErrorKind>,
    is_over: bool,
}

impl Shared {
    /// Writes whatever is the newest, until it is over and nothing is left to write.
    fn write(&self, file: &File, mut counter: u64) {
        let mut state = self.state.lock();
        loop {
            if state.handed == state.written {
                if state.is_over {
                    return;
                }
                self.changed.wait(&mut state);
                continue;
            }
            counter += 1;
            let (handed, (place, slot)) = (state.handed, slot(counter, &state.heads));
            drop(state);
            let written = file.write_all_at(&slot, place).and_then(|()| file.sync_data());
            state = self.state.lock();
            self.changed.notify_all();
            if let Err(error) = written {
                tracing::error!(%error, "the anchor can't be written; nothing more is written by this process");
                self.poisoned.store(true, Ordering::SeqCst);
                state.failed = Some(error.kind());
                return;
            }
            state.written = handed;
        }
    }
}

/// Whether the writer of blocks waits, so that after the next one no more than two are not anchored: when this many heads were
/// handed over, and so many of them are written.
pub(super) fn must_wait(handed: u64, written: u64) -> bool {
    handed - written > 1
}

/// At opening the anchor may stand as far behind as a process ever leaves it: the first block waits for it.
pub(super) const HANDED_AT_OPENING: u64 = 2;

/// A file that begins with these heads.
pub(super) fn new_file(heads: &Heads) -> Vec<u8> {
    [to_bytes(0, heads), vec![0; SLOT_BYTES]].concat()
}

/// Where in the file the slot of a counter stands, and what is in it.
pub(super) fn slot(counter: u64, heads: &Heads) -> (u64, Vec<u8>) {
    (counter % SLOTS * SLOT_BYTES as u64, to_bytes(counter, heads))
}

/// A slot: a byte for the format, the counter, how many partitions, and for each its number, the next sequence and the hash
/// of the last block. The last four bytes are, in this format and every later one, the CRC32C of all before them.
fn to_bytes(counter: u64, heads: &Heads) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    bytes.extend_from_slice(&counter.to_be_bytes());
    bytes.push(heads.len() as u8);
    for (partition, (next, hash)) in heads {
        bytes.extend_from_slice(&partition.0.to_be_bytes());
        bytes.extend_from_slice(&next.0.to_be_bytes());
        bytes.extend_from_slice(&hash.0);
    }
    bytes.resize(SLOT_BYTES - CHECKSUM_BYTES, 0);
    let checksum = checksum_of(b"", &bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// The slot; or, as an error, the newer format in which it is written, if it is not damaged.
fn parse(slot: &[u8]) -> Result<Anchored, Option<u8>> {
    let (covered, checksum) = slot.split_last_chunk::<CHECKSUM_BYTES>().ok_or(None)?;
    if checksum_of(b"", covered) != *checksum {
        return Err(None);
    }
    let (format, rest) = covered.split_first().ok_or(None)?;
    if *format != FORMAT {
        return Err(Some(*format));
    }
    let (counter, rest) = rest.split_first_chunk().ok_or(None)?;
    let (count, rest) = rest.split_first().ok_or(None)?;
    let mut heads = Heads::new();
    for head in rest.chunks_exact(HEAD_BYTES).take(usize::from(*count)) {
        let (partition, head) = head.split_first_chunk().ok_or(None)?;
        let (next, hash) = head.split_first_chunk().ok_or(None)?;
        let hash = BlockHash(hash.try_into().map_err(|_| None)?);
        heads.insert(Partition(u16::from_be_bytes(*partition)), (Sequence(u64::from_be_bytes(*next)), hash));
    }
    Ok(Anchored { counter: u64::from_be_bytes(*counter), heads })
}

const ANCHOR: &str = "anchor";
const FORMAT: u8 = 1;
const SLOTS: u64 = 2;
pub(super) const SLOT_BYTES: usize = 4096;
const HEAD_BYTES: usize = 42;
