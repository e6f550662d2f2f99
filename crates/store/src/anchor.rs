//! Anchor: a copy of the journal's head in a file of its own, by which a start notices that the
//! journal lost its end.
//!
//! A database that lost the end of its log opens as if nothing had been there. So the head is also
//! written to the anchor once a block is durable. A thread syncs the file at a pace that leaves the
//! disk to the journal: a sync of the anchor with every block made a block 35 % slower. The anchor
//! never stands ahead of what is durable, and:
//!
//! - However a process ends, the anchor names its last block or the one before it: *a journal that
//!   lost more than its last two blocks is noticed*.
//! - After a power cut the anchor names a block that was the last at most [`PACE_MAX`] and two
//!   syncs of the anchor before the cut.
//!
//! The file has three slots of 4 KiB: while one slot is being synced and another is written, the
//! slot that was synced last is not touched.
//!
//! The anchor is derived: where all slots are lost, it is written anew.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::chunk::{CHECKSUM_BYTES, add_checksum, in_format};
use super::files::{Files, machine};
use super::{BlockHash, Head, Partition, Result, Sequence, StoreError};

/// The most partitions whose heads fit into a slot.
pub(super) const PARTITIONS_MAX: usize = 64;

/// The newest whole slot of the file at opening.
#[derive(Debug, Default)]
pub(crate) struct AnchorSlot {
    counter: u64,
    /// Its place in the file, from 0.
    slot: u64,
    pub(crate) heads: BTreeMap<Partition, (Sequence, BlockHash)>,
}

impl AnchorSlot {
    /// The heads in the anchor of the folder `data`; none if there is no file or no slot is whole.
    pub(super) fn read(data: &Path) -> Result<Option<AnchorSlot>> {
        let path = data.join(ANCHOR);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|source| machine(&path, source))?,
        };
        AnchorSlot::newest(&bytes).map_err(|found| StoreError::NewerFormat { folder: path, found, known: FORMAT })
    }

    /// The newest of the slots that are whole; or, as an error, the newer format in which one is
    /// written.
    pub(crate) fn newest(bytes: &[u8]) -> Result<Option<AnchorSlot>, u8> {
        let mut newest: Option<AnchorSlot> = None;
        for (place, slot) in (0..).zip(bytes.chunks_exact(SLOT_BYTES)) {
            match parse(slot) {
                Ok(slot) if newest.as_ref().is_none_or(|newest| newest.counter < slot.counter) => {
                    newest = Some(AnchorSlot { slot: place, ..slot });
                }
                Err(Some(found)) => return Err(found),
                Ok(_) | Err(None) => {}
            }
        }
        Ok(newest)
    }

    /// Whether the journal in `folder` reaches what was anchored, and had the same block there.
    pub(crate) fn check(
        &self,
        folder: &Path,
        heads: &BTreeMap<Partition, Head>,
        hash_before: impl Fn(Partition, Sequence) -> Result<BlockHash>,
    ) -> Result<()> {
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
    shared: Arc<AnchorShared>,
    thread: Option<JoinHandle<()>>,
}

impl Anchor {
    /// Begins to keep `heads`, the heads of the journal. They continue the heads in `anchored`.
    pub(super) fn open(
        data: &Path,
        anchored: Option<AnchorSlot>,
        heads: &BTreeMap<Partition, Head>,
        poisoned: Arc<AtomicBool>,
    ) -> Result<Anchor> {
        let path = data.join(ANCHOR);
        let heads: AnchoredHeads = heads.iter().map(|(partition, head)| (*partition, (head.next, head.hash))).collect();
        if anchored.is_none() {
            if !heads.is_empty() {
                tracing::warn!(anchor = %path.display(), "the anchor was lost or damaged and is written anew");
            }
            Files::open(data.to_path_buf())?.put(ANCHOR, &new_file(&heads))?;
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(|source| machine(&path, source))?;
        // A journal that is ahead of the anchor is anchored at once.
        let mut state =
            AnchorState { slots: AnchorSlots::new(anchored.as_ref(), heads), is_changed: false, is_over: false };
        state.write(&file).and_then(|()| file.sync_data()).map_err(|source| machine(&path, source))?;
        let syncing = state.slots.begin_sync();
        state.slots.end_sync(syncing);
        let shared = Arc::new(AnchorShared { path, file, state: Mutex::new(state), changed: Condvar::new(), poisoned });
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal anchor".to_owned());
        let thread = thread.spawn(move || writing.sync()).map_err(|source| machine(data, source))?;
        Ok(Anchor { shared, thread: Some(thread) })
    }

    /// Writes the head of a partition after a block became durable.
    pub(super) fn hand_over(&self, partition: Partition, head: Head) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.slots.heads.insert(partition, (head.next, head.hash));
        state.write(&self.shared.file).map_err(|source| machine(&self.shared.path, source))?;
        if !std::mem::replace(&mut state.is_changed, true) {
            self.shared.changed.notify_all();
        }
        Ok(())
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

pub(crate) type AnchoredHeads = BTreeMap<Partition, (Sequence, BlockHash)>;

#[derive(Debug)]
struct AnchorShared {
    path: PathBuf,
    file: File,
    state: Mutex<AnchorState>,
    changed: Condvar,
    poisoned: Arc<AtomicBool>,
}

#[derive(Debug)]
struct AnchorState {
    slots: AnchorSlots,
    /// Whether a write is not yet being synced.
    is_changed: bool,
    is_over: bool,
}

impl AnchorState {
    /// Writes the heads to the active slot.
    fn write(&mut self, file: &File) -> io::Result<()> {
        let (place, slot) = self.slots.next();
        file.write_all_at(&slot, place)
    }
}

/// Order of writes: the slot that was synced last is not written, nor one that is being synced.
#[derive(Debug, Clone)]
pub(crate) struct AnchorSlots {
    pub(crate) heads: AnchoredHeads,
    counter: u64,
    synced: u64,
    active: u64,
}

impl Default for AnchorSlots {
    fn default() -> AnchorSlots {
        AnchorSlots::new(None, AnchoredHeads::new())
    }
}

impl AnchorSlots {
    /// Continues what was anchored with these heads.
    pub(crate) fn new(anchored: Option<&AnchorSlot>, heads: AnchoredHeads) -> AnchorSlots {
        let (counter, synced) = anchored.map_or((0, 0), |anchored| (anchored.counter, anchored.slot));
        AnchorSlots { heads, counter, synced, active: (synced + 1) % SLOTS }
    }

    /// Place of the next slot in the file, and its bytes.
    pub(crate) fn next(&mut self) -> (u64, Vec<u8>) {
        self.counter += 1;
        (self.active * SLOT_BYTES as u64, to_bytes(self.counter, &self.heads))
    }

    /// The slot to be synced. From here on the third one is written.
    pub(crate) fn begin_sync(&mut self) -> u64 {
        let syncing = self.active;
        self.active = SLOTS - self.synced - syncing;
        syncing
    }

    pub(crate) fn end_sync(&mut self, syncing: u64) {
        self.synced = syncing;
    }
}

/// A file that begins with these heads.
pub(crate) fn new_file(heads: &AnchoredHeads) -> Vec<u8> {
    let mut file = to_bytes(0, heads);
    file.resize(SLOTS as usize * SLOT_BYTES, 0);
    file
}

impl AnchorShared {
    /// Syncs what was written, until it is over and nothing is left.
    fn sync(&self) {
        let mut state = self.state.lock();
        loop {
            if !state.is_changed {
                if state.is_over {
                    return;
                }
                self.changed.wait(&mut state);
                continue;
            }
            let syncing = state.slots.begin_sync();
            state.is_changed = false;
            let begun = Instant::now();
            drop(state);
            let done = self.file.sync_data();
            let pause = (begun.elapsed() * PACE).min(PACE_MAX);
            state = self.state.lock();
            if let Err(error) = done {
                let anchor = self.path.display();
                tracing::error!(%anchor, %error, "the anchor can't be synced; nothing more is written by this process");
                self.poisoned.store(true, Ordering::SeqCst);
                return;
            }
            state.slots.end_sync(syncing);
            if !state.is_over {
                // Woken early only when it is over.
                let until = Instant::now() + pause;
                while !state.is_over && !self.changed.wait_until(&mut state, until).timed_out() {}
            }
        }
    }
}

/// Pause after a sync of the anchor, as a multiple of the time that the sync took: the disk belongs
/// to the journal then.
const PACE: u32 = 20;
/// The longest pause.
const PACE_MAX: Duration = Duration::from_millis(100);

/// A slot: a byte for the format, the counter, how many partitions, and for each its number, the
/// next sequence and the hash of the last block. The last four bytes are, in this format and every
/// later one, the CRC32C of all before them.
fn to_bytes(counter: u64, heads: &AnchoredHeads) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    bytes.extend_from_slice(&counter.to_be_bytes());
    bytes.push(heads.len() as u8);
    for (partition, (next, hash)) in heads {
        bytes.extend_from_slice(&partition.0.to_be_bytes());
        bytes.extend_from_slice(&next.0.to_be_bytes());
        bytes.extend_from_slice(&hash.0);
    }
    bytes.resize(SLOT_BYTES - CHECKSUM_BYTES, 0);
    add_checksum(b"", &mut bytes);
    bytes
}

/// The slot; or, as an error, the newer format in which it is written, if it is not damaged.
fn parse(slot: &[u8]) -> Result<AnchorSlot, Option<u8>> {
    let (counter, rest) = in_format(FORMAT, b"", slot)?.split_first_chunk().ok_or(None)?;
    let (count, rest) = rest.split_first().ok_or(None)?;
    let mut heads = AnchoredHeads::new();
    for head in rest.chunks_exact(HEAD_BYTES).take(usize::from(*count)) {
        let (partition, head) = head.split_first_chunk().ok_or(None)?;
        let (next, hash) = head.split_first_chunk().ok_or(None)?;
        let hash = BlockHash(hash.try_into().map_err(|_| None)?);
        heads.insert(Partition(u16::from_be_bytes(*partition)), (Sequence(u64::from_be_bytes(*next)), hash));
    }
    Ok(AnchorSlot { counter: u64::from_be_bytes(*counter), slot: 0, heads })
}

const ANCHOR: &str = "anchor";
const FORMAT: u8 = 1;
/// Number of slots. It is also the sum of their places, from which the third follows.
const SLOTS: u64 = 3;
pub(crate) const SLOT_BYTES: usize = 4096;
const HEAD_BYTES: usize = 42;

#[cfg(test)]
mod tests {
    use super::*;

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_format_1_stay_as_they_are() {
        let heads = AnchoredHeads::from([(Partition(0), (Sequence(9), BlockHash([3; 32])))]);
        let slot = to_bytes(7, &heads);
        assert_eq!((slot.len(), crc32c::crc32c(&slot[..SLOT_BYTES - CHECKSUM_BYTES])), (4_096, 514_784_926));
        assert_eq!(parse(&slot).unwrap().heads, heads);
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let slot = to_bytes(7, &AnchoredHeads::from([(Partition(0), (Sequence(9), BlockHash([3; 32])))]));
        for bit in 0..slot.len() * 8 {
            let mut flipped = slot.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped).err(), Some(None), "bit {bit}");
        }
    }
}
