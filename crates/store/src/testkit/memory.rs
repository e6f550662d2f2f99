//! In-memory store, for tests and simulations.
//!
//! It keeps every promise of [`Store`] that does not need a disk. It can be made to fail and to
//! lose power: a simulation may kill it between any two steps.
//!
//! Its journal is a row of segments. They are closed in the steps of `segments.rs`, and the head is
//! stored apart by the rules of `anchor.rs`. So a simulation can lose a part of either and see
//! whether that is noticed.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::anchor::{self, AnchorSlot};
use crate::{
    AppendOutcome, Block, Durability, Epoch, Head, KeyAndValue, Monitor, Part, Partition, Result, Sequence, Store,
    StoreError, StoredRecord, Tenure, WriteBytes, admit_common_key, admit_file_name, admit_state_key, damaged,
};

/// A store in memory. A clone is the same store, as if its folder had been opened again.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    poisoned: Arc<AtomicBool>,
    hanging: Arc<Hanging>,
    followed: Arc<AtomicBool>,
    monitor: Arc<Monitor>,
}

/// Whether appends hang.
#[derive(Debug, Default)]
struct Hanging {
    hangs: Mutex<bool>,
    ended: Condvar,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// An empty store whose segments are full after this number of blocks.
    #[must_use]
    pub fn with_segments_of(blocks_max: usize) -> MemoryStore {
        let disk = Disk { segment_blocks_max: Some(blocks_max), ..Disk::default() };
        MemoryStore { disk: Arc::new(Mutex::new(disk)), ..MemoryStore::default() }
    }

    /// Partition 0, in the tenure of its owner. Takes it if nobody has yet.
    #[must_use]
    pub fn part(&self) -> Part {
        super::part(Arc::new(self.clone()))
    }

    /// The store that a new process finds after a power cut at this moment: all that was put
    /// durably, and of the rest as much as `cut` says. The old store goes on by itself; nothing
    /// that it does is seen by the new one.
    pub fn after_power_cut(&self, cut: PowerCut) -> Result<MemoryStore> {
        self.after_damage(cut, &[])
    }

    /// The store that a new process finds when, after a power cut, this was done to its folder too;
    /// or why there is none.
    pub fn after_damage(&self, cut: PowerCut, damage: &[Damage]) -> Result<MemoryStore> {
        let mut disk = self.disk.lock().clone();
        disk.cut(cut);
        damage.iter().for_each(|damage| disk.suffer(*damage));
        disk.open()?;
        Ok(MemoryStore { disk: Arc::new(Mutex::new(disk)), ..MemoryStore::default() })
    }

    /// Appends a block; a power cut at this moment lets only its first steps happen. True if a full
    /// folder is closed for it.
    pub fn append_until(&self, block: &Block, reached: AppendStep) -> Result<bool> {
        self.write(|disk| disk.append(block, reached))?
    }

    /// Step of the thread that syncs the anchor beside the writer. True if there was something to
    /// do.
    pub fn sync_anchor(&self) -> bool {
        self.disk.lock().anchor.sync()
    }

    /// Step of the thread that makes the next segment of the journal ahead of time. True if there
    /// was something to do.
    pub fn make_next_segment(&self) -> bool {
        let mut disk = self.disk.lock();
        let made = disk.journals.values_mut().map(StoredBlocks::make_next);
        made.fold(false, |any, made| any | made)
    }

    /// Step of the thread that makes the cursors durable. True if there was something to do.
    pub fn sync_cursors(&self) -> bool {
        let mut disk = self.disk.lock();
        let is_changed = disk.durable_cursors != disk.cursors;
        disk.durable_cursors = disk.cursors.clone();
        is_changed
    }

    /// How many puts and removals the power cut of this moment may take or leave: those that were
    /// asked for lazily, after the last durable one.
    #[must_use]
    pub fn lazy_count(&self) -> usize {
        self.disk.lock().lazy.len()
    }

    /// How many parts of files were read.
    #[must_use]
    pub fn file_parts_read(&self) -> u64 {
        self.disk.lock().file_parts_read
    }

    /// How many segments the journal of a partition lies in, with one that was made ahead of time.
    #[must_use]
    pub fn segments(&self, partition: Partition) -> usize {
        self.disk.lock().journals.get(&partition).map_or(1, |journal| journal.segments.len())
    }

    /// How many blocks of a partition a new process would not find anchored after a power cut at
    /// this moment.
    #[must_use]
    pub fn blocks_behind_anchor(&self, partition: Partition, cut: PowerCut) -> usize {
        let disk = self.disk.lock();
        let anchored = AnchorSlot::newest(&disk.anchor.after(cut)).ok().flatten();
        let next = anchored.and_then(|anchored| anchored.heads.get(&partition).map(|(next, _)| *next));
        let blocks = disk.journals.get(&partition).into_iter().flat_map(StoredBlocks::blocks);
        blocks.filter(|block| next.is_none_or(|next| block.first >= next)).count()
    }

    /// Makes the next write fail as a broken disk would, without any effect. After it the store
    /// refuses to write.
    pub fn fail_next_write(&self) {
        self.disk.lock().fails_next_write = true;
    }

    /// Makes files fail to be written, as where no file can be opened, until it is set otherwise.
    /// Nothing else fails for that.
    pub fn fail_files(&self, fails: bool) {
        self.disk.lock().fails_files = fails;
    }

    /// Says that other processes read what is written.
    pub fn set_followed(&self) {
        self.followed.store(true, Ordering::Release);
    }

    /// Makes appends wait, as on a disk that answers no more, until it is set otherwise.
    pub fn hang_appends(&self, hangs: bool) {
        *self.hanging.hangs.lock() = hangs;
        self.hanging.ended.notify_all();
    }

    fn change_file(&self, tenure: Tenure, name: &str, bytes: Option<Arc<[u8]>>) -> Result<()> {
        admit_file_name(name)?;
        if self.disk.lock().fails_files {
            self.monitor.derived_failed();
            let source = std::io::Error::other("the disk was told to fail");
            return Err(StoreError::Machine { folder: "memory".into(), source });
        }
        self.write_owned(tenure, |disk| disk.put((tenure.partition, name.to_owned()), bytes))
    }

    /// Runs a write of the owner of a partition.
    fn write_owned<Written>(&self, tenure: Tenure, write: impl FnOnce(&mut Disk) -> Written) -> Result<Written> {
        self.write(|disk| {
            tenure.admit(disk.epoch(tenure.partition))?;
            Ok(write(disk))
        })?
    }

    fn write<Written>(&self, write: impl FnOnce(&mut Disk) -> Written) -> Result<Written> {
        let mut disk = self.disk.lock();
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(StoreError::Poisoned);
        }
        if std::mem::take(&mut disk.fails_next_write) {
            self.poisoned.store(true, Ordering::SeqCst);
            let source = std::io::Error::other("the disk was told to fail");
            return Err(StoreError::Machine { folder: "memory".into(), source });
        }
        Ok(write(&mut disk))
    }
}

impl Store for MemoryStore {
    fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Acquire)
    }

    fn epoch(&self, partition: Partition) -> Result<Epoch> {
        Ok(self.disk.lock().epoch(partition))
    }

    fn take(&self, partition: Partition, seen: Epoch) -> Result<Option<Tenure>> {
        self.write(|disk| {
            let epoch = disk.epochs.entry(partition).or_default();
            (*epoch == seen).then(|| {
                epoch.0 += 1;
                Tenure { partition, epoch: *epoch }
            })
        })
    }

    fn append(&self, blocks: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>> {
        let mut hangs = self.hanging.hangs.lock();
        while *hangs {
            self.hanging.ended.wait(&mut hangs);
        }
        drop(hangs);
        blocks.iter().map(|(tenure, block)| self.write(|disk| disk.append_one(*tenure, block))?).collect()
    }

    fn head(&self, partition: Partition) -> Result<Head> {
        Ok(self.disk.lock().journals.get(&partition).map_or(Head::EMPTY, |journal| journal.head))
    }

    fn records(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        let disk = self.disk.lock();
        let journal = disk.journals.get(&partition);
        let read = |sequence: Sequence| {
            let block = journal?.block_with(sequence)?;
            let offset = usize::try_from(sequence.0.checked_sub(block.first.0)?).ok()?;
            let bytes = block.records.get(offset)?.clone();
            Some(StoredRecord { sequence, booked_at_ms: block.booked_at_ms, bytes })
        };
        Ok(sequences.iter().map(|sequence| read(*sequence)).collect())
    }

    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
        let disk = self.disk.lock();
        let blocks: Vec<_> = disk.journals.get(&partition).map_or_else(Vec::new, |journal| {
            journal.blocks().filter(|block| from < block.next()).map(Arc::clone).collect()
        });
        Box::new(blocks.into_iter().map(|block| Ok(Block::clone(&block))))
    }

    fn put_state(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>, how: Durability) -> Result<()> {
        admit_state_key(key)?;
        self.write_owned(tenure, |disk| {
            disk.put_lazily(Some(tenure.partition), key, value);
            if how == Durability::Durable {
                disk.sync_state();
            }
        })
    }

    fn states(&self, partition: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let disk = self.disk.lock();
        Ok(keys.iter().map(|key| disk.state.get(&(Some(partition), key.to_vec())).cloned()).collect())
    }

    fn state_keys(&self, partition: Partition, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(self.disk.lock().pairs(Some(partition), prefix).map(|(key, _)| key.clone()).collect())
    }

    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        admit_common_key(key)?;
        self.write(|disk| {
            if let Some(stands) = disk.state.get(&(None, key.to_vec())) {
                return stands.clone();
            }
            disk.put_lazily(None, key, Some(value));
            disk.sync_state();
            value.to_vec()
        })
    }

    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.disk.lock().state.get(&(None, key.to_vec())).cloned())
    }

    fn remove_common(&self, key: &[u8]) -> Result<()> {
        self.write(|disk| {
            disk.put_lazily(None, key, None);
            disk.sync_state();
        })
    }

    fn commons(&self) -> Result<Vec<KeyAndValue>> {
        Ok(self.disk.lock().pairs(None, b"").map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn put_cursor(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        admit_state_key(key)?;
        let place = (tenure.partition, key.to_vec());
        self.write_owned(tenure, |disk| set(&mut disk.cursors, place, value.map(<[u8]>::to_vec)))
    }

    fn cursor(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.disk.lock().cursors.get(&(partition, key.to_vec())).cloned())
    }

    fn cursor_keys(&self, partition: Partition) -> Result<Vec<Vec<u8>>> {
        let disk = self.disk.lock();
        Ok(disk.cursors.keys().filter(|(owner, _)| *owner == partition).map(|(_, key)| key.clone()).collect())
    }

    fn put_file_in_parts(&self, tenure: Tenure, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(|source| StoreError::Machine { folder: name.into(), source })?;
        let written = bytes.len() as u64;
        self.change_file(tenure, name, Some(bytes.into()))?;
        Ok(written)
    }

    fn file_part(&self, partition: Partition, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        admit_file_name(name)?;
        let mut disk = self.disk.lock();
        disk.file_parts_read += 1;
        let Some(bytes) = disk.files.get(&(partition, name.to_owned())) else { return Ok(None) };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(length).min(bytes.len());
        Ok(Some(bytes[from..to].to_vec()))
    }

    fn files(&self, partition: Partition) -> Result<Vec<(String, u64)>> {
        let disk = self.disk.lock();
        let own = disk.files.iter().filter(|((owner, _), _)| *owner == partition);
        Ok(own.map(|((_, name), bytes)| (name.clone(), bytes.len() as u64)).collect())
    }

    fn remove_file(&self, tenure: Tenure, name: &str) -> Result<()> {
        self.change_file(tenure, name, None)
    }

    fn size_bytes(&self) -> Result<u64> {
        let disk = self.disk.lock();
        let blocks = disk.journals.values().flat_map(StoredBlocks::blocks);
        let journal_bytes: usize = blocks.flat_map(|block| &block.records).map(Vec::len).sum();
        let state_bytes: usize = disk.state.iter().map(|((_, key), value)| key.len() + value.len()).sum();
        Ok((journal_bytes + state_bytes) as u64)
    }

    fn monitor(&self) -> Arc<Monitor> {
        Arc::clone(&self.monitor)
    }
}

/// The part of the writes before a power cut that survives although it was not durable.
#[derive(Debug, Clone, Copy, Default)]
pub struct PowerCut {
    /// Number of lazy puts and removals that survive, oldest first (see
    /// [`MemoryStore::lazy_count`]).
    pub lazy_kept: usize,
    /// Number of last writes of files that are undone, as if the thread that writes them had not
    /// come to them yet.
    pub files_undone: usize,
    /// The cursors that were not durable are there.
    pub cursors_are_kept: bool,
    /// Unsynced writes of the anchor survive.
    pub anchor_is_kept: bool,
    /// Or half of its newest slot is.
    pub anchor_is_torn: bool,
}

/// How far an append has come: a full segment is closed before the first block goes into the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppendStep {
    /// The next segment is made.
    NextSegment,
    /// The closing line of the full segment is written.
    ClosingLine,
    /// The block is there.
    Block,
}

/// Damage to a store's folder while no process has it open. Segments are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// A segment of the journal is gone.
    Segment(usize),
    /// The closing line of a segment is gone.
    ClosingLine(usize),
    /// This number of last blocks of the last segment with blocks are gone: all, if it has fewer.
    LastBlocks(usize),
    /// The anchor is gone.
    Anchor,
    /// A slot of the anchor cannot be read.
    AnchorSlot(usize),
}

type StateKey = (Option<Partition>, Vec<u8>);
type FileKey = (Partition, String);

#[derive(Debug, Clone, Default)]
struct Disk {
    journals: BTreeMap<Partition, StoredBlocks>,
    segment_blocks_max: Option<usize>,
    anchor: AnchorFile,
    epochs: BTreeMap<Partition, Epoch>,
    /// The values by partition and key; a common key has no partition.
    state: BTreeMap<StateKey, Vec<u8>>,
    durable_state: BTreeMap<StateKey, Vec<u8>>,
    /// Puts and removals since everything was durable, in order.
    lazy: Vec<(StateKey, Option<Vec<u8>>)>,
    cursors: BTreeMap<(Partition, Vec<u8>), Vec<u8>>,
    durable_cursors: BTreeMap<(Partition, Vec<u8>), Vec<u8>>,
    files: BTreeMap<FileKey, Arc<[u8]>>,
    /// Earlier content of the files that were written last, in order.
    files_before: VecDeque<(FileKey, Option<Arc<[u8]>>)>,
    fails_next_write: bool,
    fails_files: bool,
    file_parts_read: u64,
}

/// Most writes of files that can be undone.
const FILES_UNDONE_MAX: usize = 32;

impl Disk {
    fn append(&mut self, block: &Block, reached: AppendStep) -> Result<bool> {
        let journal = self.journals.entry(block.partition).or_default();
        journal.head.admit(block)?;
        let rolls = journal.append(block, reached, self.segment_blocks_max.unwrap_or(usize::MAX));
        if reached == AppendStep::Block {
            self.anchor.hand_over(block.partition, journal.head);
        }
        Ok(rolls)
    }

    /// A block of the owner of its partition; or one that is there already, whoever hands it in.
    fn append_one(&mut self, tenure: Tenure, block: &Block) -> Result<AppendOutcome> {
        let there = self.journals.get(&block.partition).and_then(|journal| journal.block_with(block.first));
        if there.is_some_and(|there| **there == *block) {
            return Ok(AppendOutcome::Durable(block.hash()));
        }
        if block.partition != tenure.partition || tenure.admit(self.epoch(tenure.partition)).is_err() {
            return Ok(AppendOutcome::Fenced);
        }
        self.append(block, AppendStep::Block)?;
        Ok(AppendOutcome::Durable(block.hash()))
    }

    fn epoch(&self, partition: Partition) -> Epoch {
        self.epochs.get(&partition).copied().unwrap_or_default()
    }

    /// The values whose key begins with `prefix`.
    fn pairs(&self, partition: Option<Partition>, prefix: &[u8]) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let pairs = self.state.range((partition, prefix.to_vec())..);
        let is_asked = move |key: &StateKey| key.0 == partition && key.1.starts_with(prefix);
        pairs.take_while(move |(key, _)| is_asked(key)).map(|((_, key), value)| (key, value))
    }

    fn put_lazily(&mut self, partition: Option<Partition>, key: &[u8], value: Option<&[u8]>) {
        let (key, value) = ((partition, key.to_vec()), value.map(<[u8]>::to_vec));
        set(&mut self.state, key.clone(), value.clone());
        self.lazy.push((key, value));
    }

    fn sync_state(&mut self) {
        for (key, value) in self.lazy.drain(..) {
            set(&mut self.durable_state, key, value);
        }
    }

    fn put(&mut self, name: FileKey, bytes: Option<Arc<[u8]>>) {
        self.files_before.push_back((name.clone(), self.files.get(&name).cloned()));
        if self.files_before.len() > FILES_UNDONE_MAX {
            self.files_before.pop_front();
        }
        set(&mut self.files, name, bytes);
    }

    fn cut(&mut self, cut: PowerCut) {
        self.lazy.truncate(cut.lazy_kept);
        self.sync_state();
        self.state = self.durable_state.clone();
        if !cut.cursors_are_kept {
            self.cursors = self.durable_cursors.clone();
        }
        self.durable_cursors = self.cursors.clone();
        for (name, before) in self.files_before.drain(..).rev().take(cut.files_undone) {
            set(&mut self.files, name, before);
        }
        self.files_before.clear();
        (self.fails_next_write, self.fails_files) = (false, false);
        self.anchor.file = Some(self.anchor.after(cut)).filter(|file| !file.is_empty());
    }

    fn suffer(&mut self, damage: Damage) {
        match damage {
            Damage::Anchor => self.anchor.file = None,
            Damage::AnchorSlot(at) => {
                if let Some(byte) = self.anchor.file.as_mut().and_then(|file| file.get_mut(at * anchor::SLOT_BYTES)) {
                    *byte ^= 0x40;
                }
            }
            damage => self.journals.values_mut().for_each(|journal| journal.suffer(damage)),
        }
    }

    /// Checks and takes up the store, as a new process does.
    fn open(&mut self) -> Result<()> {
        let segment = Path::new("memory/journal");
        let newer = |found| StoreError::NewerFormat { folder: "memory/anchor".into(), found, known: 1 };
        let anchored = self.anchor.file.as_deref().map(AnchorSlot::newest).transpose().map_err(newer)?.flatten();
        let is_begun = anchored.as_ref().is_some_and(|anchored| !anchored.heads.is_empty());
        for journal in self.journals.values_mut() {
            journal.open(is_begun, segment)?;
        }
        let heads = self.journals.iter().map(|(partition, journal)| (*partition, journal.head));
        let heads: BTreeMap<_, _> = heads.collect();
        if let Some(anchored) = &anchored {
            anchored.check(segment, &heads, |partition, next| {
                let journal = self.journals.get(&partition);
                let ends = journal.into_iter().flat_map(StoredBlocks::blocks).find(|block| block.next() == next);
                Ok(ends.map_or(crate::BlockHash::ZERO, |block| block.hash()))
            })?;
        }
        let heads = heads.into_iter().map(|(partition, head)| (partition, (head.next, head.hash))).collect();
        self.anchor.open(anchored, heads);
        Ok(())
    }
}

fn set<Key: Ord, Value>(map: &mut BTreeMap<Key, Value>, key: Key, value: Option<Value>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

/// The file of the anchor as it is read, and as it stands on the disk.
#[derive(Debug, Clone, Default)]
struct AnchorFile {
    file: Option<Vec<u8>>,
    synced: Vec<u8>,
    slots: anchor::AnchorSlots,
    /// Slot that was written last, unless it was synced.
    unsynced: Option<usize>,
}

impl AnchorFile {
    fn open(&mut self, anchored: Option<AnchorSlot>, heads: anchor::AnchoredHeads) {
        if anchored.is_none() {
            self.file = Some(anchor::new_file(&heads));
        }
        self.synced = self.file.clone().unwrap_or_default();
        self.slots = anchor::AnchorSlots::new(anchored.as_ref(), heads);
        self.write();
        self.sync();
    }

    fn hand_over(&mut self, partition: Partition, head: Head) {
        self.slots.heads.insert(partition, (head.next, head.hash));
        self.write();
    }

    fn write(&mut self) {
        let (place, slot) = self.slots.next();
        let file = self.file.get_or_insert_with(|| anchor::new_file(&anchor::AnchoredHeads::new()));
        file[place as usize..place as usize + slot.len()].copy_from_slice(&slot);
        self.unsynced = Some(place as usize);
    }

    fn sync(&mut self) -> bool {
        let syncing = self.unsynced.take().map(|_| self.slots.begin_sync());
        if let (Some(file), Some(slot)) = (&self.file, syncing) {
            let slot_bytes = slot as usize * anchor::SLOT_BYTES..(slot as usize + 1) * anchor::SLOT_BYTES;
            self.synced.resize(file.len(), 0);
            self.synced[slot_bytes.clone()].copy_from_slice(&file[slot_bytes]);
            self.slots.end_sync(slot);
        }
        syncing.is_some()
    }

    /// The file that a power cut leaves.
    fn after(&self, cut: PowerCut) -> Vec<u8> {
        let Some(file) = &self.file else { return Vec::new() };
        if cut.anchor_is_kept {
            return file.clone();
        }
        let mut left = self.synced.clone();
        left.resize(file.len(), 0);
        if let Some(place) = self.unsynced.filter(|_| cut.anchor_is_torn) {
            let half = place..place + anchor::SLOT_BYTES / 2;
            left[half.clone()].copy_from_slice(&file[half]);
        }
        left
    }
}

/// The journal of a partition: a row of segments.
#[derive(Debug, Clone)]
struct StoredBlocks {
    head: Head,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default)]
struct Segment {
    blocks: BTreeMap<Sequence, Arc<Block>>,
    /// Its closing line: the head at its end.
    closed: Option<Head>,
    is_lost: bool,
}

impl Default for StoredBlocks {
    fn default() -> StoredBlocks {
        StoredBlocks { head: Head::EMPTY, segments: vec![Segment::default()] }
    }
}

impl StoredBlocks {
    fn blocks(&self) -> impl DoubleEndedIterator<Item = &Arc<Block>> {
        self.segments.iter().flat_map(|segment| segment.blocks.values())
    }

    fn block_with(&self, sequence: Sequence) -> Option<&Arc<Block>> {
        let ends_before = |segment: &Segment| segment.closed.is_some_and(|head| head.next <= sequence);
        let segment = self.segments.get(self.segments.partition_point(ends_before))?;
        let (_, block) = segment.blocks.range(..=sequence).next_back()?;
        (sequence < block.next()).then_some(block)
    }

    /// The place of the segment that is written.
    fn current(&self) -> usize {
        self.segments.partition_point(|segment| segment.closed.is_some())
    }

    fn make_next(&mut self) -> bool {
        let is_missing = self.current() + 1 == self.segments.len();
        if is_missing {
            self.segments.push(Segment::default());
        }
        is_missing
    }

    fn append(&mut self, block: &Block, reached: AppendStep, blocks_max: usize) -> bool {
        let rolls = self.segments[self.current()].blocks.len() >= blocks_max;
        if rolls {
            self.make_next();
            if reached == AppendStep::NextSegment {
                return rolls;
            }
            let current = self.current();
            self.segments[current].closed = Some(self.head);
        }
        if reached == AppendStep::Block {
            let current = self.current();
            self.segments[current].blocks.insert(block.first, Arc::new(block.clone()));
            self.head = Head::after(block, block.hash());
        }
        rolls
    }

    fn suffer(&mut self, damage: Damage) {
        match damage {
            Damage::Segment(at) => {
                if let Some(segment) = self.segments.get_mut(at) {
                    (segment.blocks, segment.is_lost) = (BTreeMap::new(), true);
                }
            }
            Damage::ClosingLine(at) => {
                if let Some(segment) = self.segments.get_mut(at) {
                    segment.closed = None;
                }
            }
            Damage::LastBlocks(count) => {
                if let Some(segment) = self.segments.iter_mut().rfind(|segment| !segment.blocks.is_empty()) {
                    (0..count).for_each(|_| drop(segment.blocks.pop_last()));
                }
            }
            Damage::Anchor | Damage::AnchorSlot(_) => {}
        }
    }

    /// The segments must form a row without a gap. Every segment continues the one before, and ends
    /// where its closing line says; a lost closing line is made anew.
    fn open(&mut self, is_expected: bool, path: &Path) -> Result<()> {
        let is_lost = |segment: &Segment| segment.is_lost && segment.closed.is_none();
        while self.segments.last().is_some_and(is_lost)
            && self.segments.len().checked_sub(2).is_none_or(|before| self.segments[before].closed.is_none())
        {
            self.segments.pop();
        }
        if self.segments.is_empty() && !is_expected {
            self.segments.push(Segment::default());
        }
        if self.segments.is_empty() || self.segments.iter().any(|segment| segment.is_lost) {
            return Err(damaged(path, "a segment of the journal is missing"));
        }
        let last_used = self.segments.iter().rposition(|segment| !segment.blocks.is_empty()).unwrap_or_default();
        let mut head = Head::EMPTY;
        for (at, segment) in self.segments.iter_mut().enumerate() {
            for block in segment.blocks.values() {
                head.admit(block)
                    .map_err(|_| damaged(path, "a segment of the journal does not continue the others"))?;
                head = Head::after(block, block.hash());
            }
            if segment.closed.is_some_and(|closed| closed != head) {
                return Err(damaged(path, "a segment of the journal does not end where it was closed"));
            }
            if at < last_used {
                segment.closed = Some(head);
            }
        }
        self.head = head;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::conformance;

    #[test]
    fn it_conforms() {
        conformance::all(|| {
            let store = MemoryStore::new();
            move || Arc::new(store.clone())
        });
    }

    #[test]
    fn a_power_cut_leaves_what_was_durable_and_some_of_the_rest_in_order() {
        let store = MemoryStore::new();
        store.part().append(&conformance::block_after(Head::EMPTY, vec![b"record".to_vec()])).unwrap();
        store.part().put_state_lazily(b"key", b"sealed with the next").unwrap();
        store.part().put_state(b"snapshot", b"old").unwrap();
        store.part().put_state(b"removed lazily", b"there again").unwrap();
        store.part().put_state_lazily(b"snapshot", b"new").unwrap();
        store.part().put_state_lazily(b"other snapshot", b"new").unwrap();
        store.part().delete_state_lazily(b"removed lazily").unwrap();
        assert_eq!(store.lazy_count(), 3);
        let new = Some(b"new".to_vec());
        for lazy_kept in 0..=3 {
            let after = store.after_power_cut(PowerCut { lazy_kept, ..PowerCut::default() }).unwrap();
            assert_eq!(after.head(Partition(0)).unwrap(), store.head(Partition(0)).unwrap());
            assert_eq!(after.part().state(b"key").unwrap(), Some(b"sealed with the next".to_vec()));
            let snapshot = if lazy_kept > 0 { new.clone() } else { Some(b"old".to_vec()) };
            assert_eq!(after.part().state(b"snapshot").unwrap(), snapshot);
            assert_eq!(after.part().state(b"other snapshot").unwrap(), new.clone().filter(|_| lazy_kept > 1));
            let removed = Some(b"there again".to_vec()).filter(|_| lazy_kept < 3);
            assert_eq!(after.part().state(b"removed lazily").unwrap(), removed);
        }
        assert_eq!(store.part().state(b"removed lazily").unwrap(), None);
        assert_eq!(store.part().state(b"snapshot").unwrap(), new);
    }

    #[test]
    fn a_power_cut_leaves_a_cursor_as_it_was_or_as_it_was_when_it_was_synced() {
        let store = MemoryStore::new();
        store.part().put_cursor(b"cursor", b"old").unwrap();
        assert!(store.sync_cursors() && !store.sync_cursors());
        store.part().put_cursor(b"cursor", b"new").unwrap();
        for (cursors_are_kept, expected) in [(true, b"new"), (false, b"old")] {
            let after = store.after_power_cut(PowerCut { cursors_are_kept, ..PowerCut::default() }).unwrap();
            assert_eq!(after.part().cursor(b"cursor").unwrap(), Some(expected.to_vec()));
        }
    }

    /// A store of these many blocks, three to a segment, all of them anchored.
    fn store_of(blocks: u8) -> MemoryStore {
        let store = MemoryStore::with_segments_of(3);
        (0..blocks).for_each(|block| drop(conformance::append(&store.part(), vec![vec![block]])));
        store.sync_anchor();
        store
    }

    #[test]
    fn what_is_lost_of_the_journal_is_noticed_and_what_is_derived_is_made_anew() {
        let store = store_of(8);
        let whole = store.head(Partition(0)).unwrap();
        let after = |damage: &[Damage]| store.after_damage(PowerCut::default(), damage);
        let noticed: [&[Damage]; 7] = [
            &[Damage::Segment(0)],
            &[Damage::Segment(1)],
            &[Damage::Segment(2)],
            &[Damage::ClosingLine(1), Damage::Segment(2)],
            &[Damage::LastBlocks(1)],
            &[Damage::LastBlocks(2)],
            &[Damage::Segment(0), Damage::Segment(1), Damage::Segment(2)],
        ];
        for damage in noticed {
            assert!(matches!(after(damage), Err(StoreError::Damaged { .. })), "{damage:?}");
        }
        let harmless: [&[Damage]; 5] = [
            &[],
            &[Damage::ClosingLine(0)],
            &[Damage::ClosingLine(0), Damage::ClosingLine(1)],
            &[Damage::Anchor],
            &[Damage::AnchorSlot(0), Damage::AnchorSlot(1)],
        ];
        for damage in harmless {
            let mut opened = after(damage).unwrap();
            assert_eq!(opened.head(Partition(0)).unwrap(), whole, "{damage:?}");
            // A line that was made anew is as good as before.
            opened = opened.after_power_cut(PowerCut::default()).unwrap();
            assert!(opened.after_damage(PowerCut::default(), &[Damage::LastBlocks(1)]).is_err(), "{damage:?}");
            assert!(opened.after_damage(PowerCut::default(), &[Damage::Segment(2)]).is_err(), "{damage:?}");
        }
        // Nobody can detect it any more.
        let shorter = after(&[Damage::Anchor, Damage::LastBlocks(1)]).unwrap();
        assert_eq!(shorter.head(Partition(0)).unwrap().next, Sequence(8));
    }

    #[test]
    fn a_roll_may_be_cut_between_any_two_steps() {
        for (reached, segments, blocks) in
            [(AppendStep::NextSegment, 2, 3), (AppendStep::ClosingLine, 2, 3), (AppendStep::Block, 2, 4)]
        {
            let store = store_of(3);
            let block = conformance::block_after(store.head(Partition(0)).unwrap(), vec![vec![3]]);
            store.append_until(&block, reached).unwrap();
            let after = store.after_power_cut(PowerCut::default()).unwrap();
            assert_eq!(after.segments(Partition(0)), segments);
            assert_eq!(after.blocks(Partition(0), Sequence::FIRST).count(), blocks);
            let next = conformance::append(&after.part(), vec![b"next".to_vec()]);
            assert_eq!(after.part().record(next.first).unwrap().unwrap().bytes, b"next");
            assert_eq!(after.segments(Partition(0)), 2);
        }
        // One that was made ahead of time may be lost as long as it is empty and the one before it
        // is not closed.
        let store = store_of(3);
        assert!(store.make_next_segment() && !store.make_next_segment());
        let after = store.after_damage(PowerCut::default(), &[Damage::Segment(1)]).unwrap();
        assert_eq!((after.segments(Partition(0)), after.head(Partition(0)).unwrap().next), (1, Sequence(4)));
    }

    #[test]
    fn the_anchor_is_written_with_each_block_and_survives_being_torn() {
        let store = MemoryStore::new();
        for block in 1..20_u8 {
            conformance::append(&store.part(), vec![vec![block]]);
            if block % 5 == 0 {
                store.sync_anchor();
            }
            for (anchor_is_kept, anchor_is_torn) in [(true, false), (false, false), (false, true)] {
                let cut = PowerCut { anchor_is_kept, anchor_is_torn, ..PowerCut::default() };
                let behind = store.blocks_behind_anchor(Partition(0), cut);
                assert_eq!(behind, if anchor_is_kept { 0 } else { usize::from(block % 5) }, "{block}");
                let after = store.after_power_cut(cut).unwrap();
                assert_eq!(after.head(Partition(0)).unwrap(), store.head(Partition(0)).unwrap());
                let one_too_many = store.after_damage(cut, &[Damage::LastBlocks(behind + 1)]);
                assert!(behind + 1 > usize::from(block) || one_too_many.is_err(), "{block}");
            }
        }
    }

    #[test]
    fn a_failed_write_has_no_effect_and_no_successor() {
        let store = MemoryStore::new();
        let block = conformance::block_after(Head::EMPTY, vec![b"record".to_vec()]);
        let part = store.part();
        store.fail_next_write();
        assert!(matches!(part.append(&block), Err(StoreError::Machine { .. })));
        assert!(matches!(part.append(&block), Err(StoreError::Poisoned)));
        assert!(matches!(part.put_state(b"key", b"value"), Err(StoreError::Poisoned)));
        assert_eq!(store.head(Partition(0)).unwrap(), Head::EMPTY);
        store.after_power_cut(PowerCut::default()).unwrap().part().append(&block).unwrap();
    }
}
