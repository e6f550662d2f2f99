//! The store on one machine: two sled databases in a folder. The only file that names sled.
//!
//! ```text
//! <data>/lock       held while the store is open
//! <data>/journal/   the blocks, cut into chunks
//! <data>/state/     the keys and values: snapshots, sealed keys, stamps
//! <data>/files/     what is derived from the journal and too large for a value
//! ```
//!
//! They are two so that the journal is only ever appended to: it can be closed and continued in another folder, and copied
//! while it grows. sled 0.34.7 is used against its grain, for reasons that were measured:
//!
//! - Its `flush` is not durable on Linux; `durable_sync` makes it so, and every append checks that it was.
//! - A block of one chunk is a plain insert, which costs one sync; a longer one is a batch, which costs two and is
//!   recovered whole or not at all.
//! - A batch locks out every other call into sled in this process, whichever database it belongs to, and so does a flush lock
//!   out a batch. So the state area uses no batches: a long value is written under a new generation, one chunk a call, and
//!   becomes the key's value with the single insert of its manifest. And a snapshot is put lazily, without a flush.
//! - sled's log is recovered up to the first gap. What was inserted later is never there without what was inserted before,
//!   which is why a manifest is never seen without its chunks.
//! - It relies on the name of its newest snapshot before that name is durable; `durable_sync` makes it so.
//! - It does not open what a power cut left of a database that it was making: its settings, half written, are damage to it for
//!   ever. So a database is made under another name, and gets its own when it is durable.
//! - It panics where it finds damage. Every call is caught and becomes an error that names the folder.
//! - Where it has no snapshot of its own yet, it takes a damaged byte for the end of its log and opens with a shorter journal,
//!   silently. No check in this file can tell that; a head that is kept elsewhere can.
//! - It has no background flush here: what is durable is decided by this file alone. Its `mode` does nothing in this version.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ::sled::{Batch, Config, Db, Error, IVec};
use parking_lot::{Mutex, RwLock};

use super::chunk::{self, BlockAssembler, CHECKSUM_BYTES, Chunk, Fault, Key, RecordAssembler, checksum_of};
use super::durable_sync::{REPLACES_SYNC, durable_renames, durable_syncs};
use super::files::Files;
use super::{
    Block, BlockHash, Head, Partition, Sequence, Store, StoreError, StoredRecord, admit_file_name, admit_state_key,
};

/// How a [`SledStore`] is opened.
#[derive(Debug, Clone)]
pub struct SledOptions {
    /// The memory for pages of the journal, in bytes. Little is read twice there.
    pub journal_cache_bytes: u64,
    /// The memory for pages of the state area, in bytes.
    pub state_cache_bytes: u64,
    /// How long to wait for another process that still has the folder open.
    pub lock_wait: Duration,
}

impl Default for SledOptions {
    fn default() -> SledOptions {
        SledOptions { journal_cache_bytes: 64 << 20, state_cache_bytes: 32 << 20, lock_wait: Duration::from_secs(10) }
    }
}

/// A store in a folder of this machine.
#[derive(Debug)]
pub struct SledStore {
    heads: RwLock<BTreeMap<Partition, Head>>,
    journal: Folder,
    state: StateArea,
    files: Files,
    appending: Mutex<()>,
    poisoned: AtomicBool,
    /// Released last, when both databases are closed.
    _lock: File,
}

impl SledStore {
    /// Opens the store in `data`, or makes an empty one there. Waits for a process that is just ending.
    pub fn open(data: &Path, options: &SledOptions) -> Result<SledStore, StoreError> {
        let data = create_folder(data)?;
        Self::open_made(data, options)
    }

    /// Opens the store in `data`, and makes nothing where there is none: a wrong path is an error, not an empty store.
    pub fn open_existing(data: &Path, options: &SledOptions) -> Result<SledStore, StoreError> {
        let data = std::path::absolute(data).map_err(|source| machine(data, source))?;
        let is_made = ["journal", "state"].iter().all(|folder| data.join(folder).join(DATABASE_FILE).is_file());
        if !is_made {
            return Err(StoreError::NoStore { folder: data });
        }
        Self::open_made(data, options)
    }

    fn open_made(data: PathBuf, options: &SledOptions) -> Result<SledStore, StoreError> {
        let lock = lock_folder(&data, options.lock_wait)?;
        check_sync(&data, options)?;
        let open = |name: &str, cache_bytes| {
            let path = data.join(name);
            make_database(&path, options.lock_wait)?;
            Folder::open(&path, cache_bytes, options.lock_wait)
        };
        let journal = open("journal", options.journal_cache_bytes)?;
        let state = open("state", options.state_cache_bytes)?;
        sync_folder(&data)?;
        Ok(SledStore {
            heads: RwLock::new(journal.heads()?),
            journal,
            state: StateArea::open(state)?,
            files: Files::open(create_folder(&data.join("files"))?)?,
            appending: Mutex::new(()),
            poisoned: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// Runs a write, unless an earlier one failed; after a failure of the machine no write is run again.
    fn write(&self, write: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(StoreError::Poisoned);
        }
        let written = write();
        if let Err(error) = &written {
            tracing::error!(%error, "a write to the store failed; nothing more is written by this process");
            self.poisoned.store(true, Ordering::SeqCst);
        }
        written
    }
}

impl Store for SledStore {
    fn append(&self, block: &Block) -> Result<(), StoreError> {
        let _appending = self.appending.lock();
        self.head(block.partition)?.admit(block)?;
        let hash = block.hash();
        self.write(|| self.journal.write_chunks(chunk::cut(block, hash)))?;
        self.heads.write().insert(block.partition, Head::after(block, hash));
        Ok(())
    }

    fn head(&self, partition: Partition) -> Result<Head, StoreError> {
        Ok(self.heads.read().get(&partition).copied().unwrap_or(Head::EMPTY))
    }

    fn record(&self, partition: Partition, sequence: Sequence) -> Result<Option<StoredRecord>, StoreError> {
        if sequence < Sequence::FIRST || sequence >= self.head(partition)?.next {
            return Ok(None);
        }
        self.journal.record(partition, sequence).map(Some)
    }

    fn blocks(
        &self,
        partition: Partition,
        from: Sequence,
    ) -> Box<dyn Iterator<Item = Result<Block, StoreError>> + Send + '_> {
        let head = self.heads.read().get(&partition).copied().unwrap_or(Head::EMPTY);
        let from = from.max(Sequence::FIRST);
        if from >= head.next {
            return Box::new(std::iter::empty());
        }
        match self.journal.blocks(partition, from, head) {
            Ok(blocks) => Box::new(blocks),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn put_state(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        admit_state_key(key)?;
        self.write(|| {
            let syncs = durable_syncs();
            let changed = self.state.put(key, value, true)?;
            self.state.folder.flush(changed.then_some(syncs))
        })
    }

    fn put_state_lazily(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        admit_state_key(key)?;
        self.write(|| self.state.put(key, value, false).map(drop))
    }

    fn state(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.state.value(key)
    }

    fn delete_state(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(|| {
            let syncs = durable_syncs();
            let changed = self.state.delete(key)?;
            self.state.folder.flush(changed.then_some(syncs))
        })
    }

    fn delete_state_lazily(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(|| self.state.delete(key).map(drop))
    }

    fn state_keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.state.keys(prefix)
    }

    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        admit_file_name(name)?;
        self.write(|| self.files.put(name, bytes))
    }

    fn file_part(&self, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>, StoreError> {
        admit_file_name(name)?;
        self.files.part(name, offset, length)
    }

    fn files(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.files.list()
    }

    fn remove_file(&self, name: &str) -> Result<(), StoreError> {
        admit_file_name(name)?;
        self.write(|| self.files.remove(name))
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let files: u64 = self.files.list()?.iter().map(|(_, bytes)| bytes).sum();
        Ok(self.journal.size_bytes()? + self.state.folder.size_bytes()? + files)
    }
}

/// One sled database, and the place where its panics and errors become ours.
#[derive(Debug)]
struct Folder {
    database: Db,
    path: PathBuf,
}

impl Folder {
    fn open(path: &Path, cache_bytes: u64, lock_wait: Duration) -> Result<Folder, StoreError> {
        create_folder(path)?;
        remove_unfinished_snapshots(path)?;
        let deadline = Instant::now() + lock_wait;
        let database = loop {
            let config = Config::new().path(path).cache_capacity(cache_bytes).flush_every_ms(None);
            match guarded(path, || config.open()) {
                Err(StoreError::InUse { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
                opened => break opened?,
            }
        };
        sync_folder(path)?;
        Ok(Folder { database, path: path.to_path_buf() })
    }

    fn call<Answer>(&self, call: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer, StoreError> {
        guarded(&self.path, || call(&self.database))
    }

    /// Makes everything written so far durable. `syncs` is the count from before something was written, if anything was: it
    /// must have risen. Without it the flush only waits for what others wrote.
    fn flush(&self, syncs: Option<u64>) -> Result<(), StoreError> {
        self.call(|database| database.flush())?;
        if REPLACES_SYNC && syncs.is_some_and(|before| durable_syncs() == before) {
            return Err(StoreError::SyncNotDurable { folder: self.path.clone() });
        }
        Ok(())
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        self.call(|database| database.size_on_disk())
    }

    fn damaged(&self, sequence: Option<Sequence>, fault: Fault) -> StoreError {
        let folder = self.path.clone();
        match fault {
            Fault::NewerFormat(found) => StoreError::NewerFormat { folder, found, known: chunk::FORMAT },
            _ => StoreError::Damaged { folder, sequence, detail: fault.to_string() },
        }
    }
}

/// The journal's side of a folder.
impl Folder {
    fn write_chunks(&self, chunks: Vec<(Key, Vec<u8>)>) -> Result<(), StoreError> {
        let syncs = durable_syncs();
        if let [(key, value)] = chunks.as_slice() {
            self.call(|database| database.insert(key.to_bytes(), value.as_slice()))?;
        } else {
            let mut batch = Batch::default();
            for (key, value) in chunks {
                batch.insert(key.to_bytes().as_slice(), value);
            }
            self.call(|database| database.apply_batch(batch))?;
        }
        self.flush(Some(syncs))
    }

    /// The heads of all partitions, each from its last block, which must be whole.
    fn heads(&self) -> Result<BTreeMap<Partition, Head>, StoreError> {
        let mut heads = BTreeMap::new();
        let mut above = None;
        while let Some(last) = self.last_chunk_before(above)? {
            let partition = last.key.partition;
            let (block, hash) = self.block(partition, last.first)?;
            if last.key.index + 1 != last.count {
                return Err(self.damaged(Some(last.key.at), Fault::Missing));
            }
            heads.insert(partition, Head::after(&block, hash));
            above = Some(Key::of_block(partition, Sequence(0)));
        }
        Ok(heads)
    }

    /// A Record below the head.
    fn record(&self, partition: Partition, sequence: Sequence) -> Result<StoredRecord, StoreError> {
        let damaged = |fault| self.damaged(Some(sequence), fault);
        let start = self.chunk_where_it_starts(partition, sequence)?;
        let mut assembler = RecordAssembler::new(start, sequence).map_err(damaged)?;
        while assembler.record().is_none() {
            let chunk = self.chunk_after(assembler.last_key(), sequence)?;
            assembler.push(chunk).map_err(damaged)?;
        }
        let bytes = assembler.record().map(<[u8]>::to_vec).ok_or_else(|| damaged(Fault::Missing))?;
        Ok(StoredRecord { sequence, booked_at_ms: assembler.booked_at_ms(), bytes })
    }

    /// The chunk in which a Record below the head starts.
    fn chunk_where_it_starts(&self, partition: Partition, sequence: Sequence) -> Result<Chunk, StoreError> {
        let missing = || self.damaged(Some(sequence), Fault::Missing);
        let first_at_it = Key { partition, at: sequence, index: 0 };
        let last_at_it = Key { partition, at: sequence, index: u32::MAX };
        let found = self.call(|database| database.range(..=last_at_it.to_bytes()).next_back().transpose())?;
        let chunk = self.parse(sequence, found)?.ok_or_else(missing)?;
        let starts_before_or_here = |chunk: &Chunk| {
            chunk.key.at < sequence || chunk.start.is_some_and(|start| start.record == sequence && start.offset == 0)
        };
        if starts_before_or_here(&chunk) {
            return Ok(chunk);
        }
        // The Record is continued in chunks of its own: it starts in the first of them, or in the one before.
        let found = self.call(|database| database.range(first_at_it.to_bytes()..).next().transpose())?;
        let chunk = self.parse(sequence, found)?.ok_or_else(missing)?;
        if starts_before_or_here(&chunk) {
            return Ok(chunk);
        }
        let found = self.call(|database| database.range(..first_at_it.to_bytes()).next_back().transpose())?;
        self.parse(sequence, found)?.ok_or_else(missing)
    }

    /// The blocks from the one that holds `from` up to `head`.
    fn blocks(&self, partition: Partition, from: Sequence, head: Head) -> Result<Blocks<'_>, StoreError> {
        let first = self.chunk_where_it_starts(partition, from)?.first;
        let previous = match first {
            Sequence::FIRST => BlockHash::ZERO,
            _ => self.hash_of_block_before(partition, first)?,
        };
        Ok(Blocks { folder: self, partition, head, next: first, previous, is_over: false })
    }

    fn hash_of_block_before(&self, partition: Partition, first: Sequence) -> Result<BlockHash, StoreError> {
        let missing = || self.damaged(Some(Sequence(first.0.saturating_sub(1))), Fault::Missing);
        let last = self.last_chunk_before(Some(Key::of_block(partition, first)))?.ok_or_else(missing)?;
        let key = Key::of_block(partition, last.first).to_bytes();
        let value = self.call(|database| database.get(key))?;
        let chunk = self.parse(last.first, value.map(|value| (IVec::from(&key), value)))?;
        let is_next_to = |chunk: &Chunk| chunk.key.partition == partition && chunk.next_block() == first;
        chunk.filter(is_next_to).and_then(|chunk| chunk.seal).map(|seal| seal.hash).ok_or_else(missing)
    }

    /// The block that begins with `first`, whole and with the hash that it names.
    fn block(&self, partition: Partition, first: Sequence) -> Result<(Block, BlockHash), StoreError> {
        let damaged = |fault| self.damaged(Some(first), fault);
        let mut chunks = self.database.range(Key::of_block(partition, first).to_bytes()..);
        let mut next_chunk = || {
            let found = guarded(&self.path, || chunks.next().transpose())?;
            self.parse(first, found)?.ok_or_else(|| damaged(Fault::Missing))
        };
        let chunk = next_chunk()?;
        if chunk.key != Key::of_block(partition, first) {
            return Err(damaged(Fault::Missing));
        }
        let mut assembler = BlockAssembler::new(chunk).map_err(damaged)?;
        while !assembler.is_complete() {
            assembler.push(next_chunk()?).map_err(damaged)?;
        }
        assembler.finish().map_err(damaged)
    }

    fn last_chunk_before(&self, above: Option<Key>) -> Result<Option<Chunk>, StoreError> {
        let found = self.call(|database| match above {
            Some(key) => database.range(..key.to_bytes()).next_back().transpose(),
            None => database.last(),
        })?;
        self.parse_at(None, found)
    }

    fn chunk_after(&self, key: Key, sequence: Sequence) -> Result<Chunk, StoreError> {
        let above = Key { index: key.index.saturating_add(1), ..key };
        let found = self.call(|database| database.range(above.to_bytes()..).next().transpose())?;
        self.parse(sequence, found)?.ok_or_else(|| self.damaged(Some(sequence), Fault::Missing))
    }

    fn parse(&self, sequence: Sequence, found: Option<(IVec, IVec)>) -> Result<Option<Chunk>, StoreError> {
        self.parse_at(Some(sequence), found)
    }

    /// Checks a chunk that was read for the sake of the Record `sequence`; without one, the chunk's own key tells which
    /// Record is concerned.
    fn parse_at(&self, sequence: Option<Sequence>, found: Option<(IVec, IVec)>) -> Result<Option<Chunk>, StoreError> {
        let Some((key, value)) = found else { return Ok(None) };
        let concerned = || sequence.or_else(|| Key::parse(&key).map(|key| key.at));
        Chunk::parse(&key, &value).map(Some).map_err(|fault| self.damaged(concerned(), fault))
    }
}

/// Reads and checks one block after the other.
struct Blocks<'a> {
    folder: &'a Folder,
    partition: Partition,
    head: Head,
    next: Sequence,
    previous: BlockHash,
    is_over: bool,
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.next == self.head.next {
            return None;
        }
        let checked = self.checked();
        self.is_over = checked.is_err();
        Some(checked)
    }
}

impl Blocks<'_> {
    fn checked(&mut self) -> Result<Block, StoreError> {
        let (block, hash) = self.folder.block(self.partition, self.next)?;
        let reaches_head = block.next() == self.head.next;
        let is_beyond_head = block.next() > self.head.next;
        if block.previous != self.previous || is_beyond_head || (reaches_head && hash != self.head.hash) {
            return Err(self.folder.damaged(Some(self.next), Fault::Chain));
        }
        self.next = block.next();
        self.previous = hash;
        Ok(block)
    }
}

/// The keys and values beside the journal.
///
/// A value that fits stands in its key's manifest. A longer one stands in chunks under a generation of its own, which the
/// manifest names; a note of work to finish says which generations a crash may have left without a manifest.
#[derive(Debug)]
struct StateArea {
    folder: Folder,
    /// The generation of the next long value. Held while a value is written: there is one writer at a time.
    next_generation: Mutex<u64>,
}

impl StateArea {
    fn open(folder: Folder) -> Result<StateArea, StoreError> {
        let area = StateArea { folder, next_generation: Mutex::new(1) };
        area.finish_notes()?;
        let last = area.folder.call(|database| database.range([CHUNK]..[CHUNK + 1]).next_back().transpose())?;
        if let Some((key, _)) = last {
            let generation = key.get(1..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
            *area.next_generation.lock() = generation.ok_or_else(|| area.damaged(&key))? + 1;
        }
        Ok(area)
    }

    /// Whether anything was written: sled writes nothing when a key keeps the value that it has.
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<bool, StoreError> {
        let mut next_generation = self.next_generation.lock();
        let old = self.replaceable_generation(key)?;
        let mut manifest = Manifest { durable, bytes: value.len() as u64, body: Body::Inline(value.to_vec()) };
        let generation = *next_generation;
        let is_long = value.len() > INLINE_BYTES_MAX;
        if is_long {
            *next_generation += 1;
            self.note(generation, key)?;
            self.put_chunks(generation, value)?;
            manifest.body = Body::Chunks { generation, checksum: crc32c::crc32c(value) };
        }
        if let Some(old) = old {
            self.note(old, key)?;
        }
        let manifest_key = manifest_key(key);
        let encoded = manifest.to_bytes(&manifest_key);
        // From here on the key has its new value; before, it had the old one.
        let before = self.folder.call(|database| database.insert(manifest_key, encoded.as_slice()))?;
        if is_long {
            self.remove_note(generation)?;
        }
        if let Some(old) = old {
            self.remove_generation(old)?;
        }
        Ok(before.is_none_or(|before| before != encoded))
    }

    /// Whether there was anything to remove.
    fn delete(&self, key: &[u8]) -> Result<bool, StoreError> {
        let _writing = self.next_generation.lock();
        let old = self.replaceable_generation(key)?;
        if let Some(old) = old {
            self.note(old, key)?;
        }
        let removed = self.folder.call(|database| database.remove(manifest_key(key)))?;
        if let Some(old) = old {
            self.remove_generation(old)?;
        }
        Ok(removed.is_some())
    }

    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Ok(value) = self.read(key) {
            return Ok(value);
        }
        // Either the value is damaged, or it was replaced while it was read: nobody writes now.
        let _nobody_writes = self.next_generation.lock();
        match self.read(key) {
            Err(Unreadable::Lazy) => Ok(None),
            Err(Unreadable::Durable(error)) => Err(error),
            Ok(value) => Ok(value),
        }
    }

    fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
        let Some(manifest) = self.manifest(key).map_err(Unreadable::Durable)? else { return Ok(None) };
        let (generation, checksum) = match manifest.body {
            Body::Inline(value) => return Ok(Some(value)),
            Body::Chunks { generation, checksum } => (generation, checksum),
        };
        let mut value = Vec::with_capacity(usize::try_from(manifest.bytes).unwrap_or(0).min(64 << 20));
        let collected = self.folder.call(|database| {
            let chunks = database.scan_prefix(generation_prefix(generation));
            chunks.into_iter().try_for_each(|chunk| chunk.map(|(_, bytes)| value.extend_from_slice(&bytes)))
        });
        let is_whole = value.len() as u64 == manifest.bytes && crc32c::crc32c(&value) == checksum;
        match collected {
            Ok(()) if is_whole => Ok(Some(value)),
            Err(StoreError::Machine { folder, source }) => Err(StoreError::Machine { folder, source }.into()),
            _ if !manifest.durable => Err(Unreadable::Lazy),
            Err(error) => Err(error.into()),
            Ok(()) => Err(self.damaged(key).into()),
        }
    }

    fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.folder.call(|database| {
            let keys = database.scan_prefix(manifest_key(prefix)).keys();
            keys.map(|key| key.map(|key| key[1..].to_vec())).collect()
        })
    }

    /// Removes what a crash left between the steps of a put or a delete.
    fn finish_notes(&self) -> Result<(), StoreError> {
        let notes: Vec<(IVec, IVec)> = self.folder.call(|database| database.scan_prefix([NOTE]).collect())?;
        for (note, key) in notes {
            let generation = note.get(1..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
            let generation = generation.ok_or_else(|| self.damaged(&key))?;
            let is_in_use = self.manifest(&key)?.is_some_and(|manifest| manifest.generation() == Some(generation));
            match is_in_use {
                true => self.remove_note(generation)?,
                false => self.remove_generation(generation)?,
            }
        }
        Ok(())
    }

    fn manifest(&self, key: &[u8]) -> Result<Option<Manifest>, StoreError> {
        let manifest_key = manifest_key(key);
        let Some(bytes) = self.folder.call(|database| database.get(&manifest_key))? else { return Ok(None) };
        let folder = self.folder.path.clone();
        match Manifest::parse(&manifest_key, &bytes) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Some(found)) => Err(StoreError::NewerFormat { folder, found, known: STATE_FORMAT }),
            Err(None) => Err(self.damaged(key)),
        }
    }

    /// The generation of the long value that a new value of this key replaces. A damaged manifest is replaced too; of it only
    /// chunks remain that nothing names.
    fn replaceable_generation(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        match self.manifest(key) {
            Err(StoreError::Damaged { .. }) => Ok(None),
            manifest => Ok(manifest?.and_then(|manifest| manifest.generation())),
        }
    }

    fn put_chunks(&self, generation: u64, value: &[u8]) -> Result<(), StoreError> {
        for (index, bytes) in value.chunks(INLINE_BYTES_MAX).enumerate() {
            let mut key = generation_prefix(generation).to_vec();
            key.extend_from_slice(&(index as u64).to_be_bytes());
            self.folder.call(|database| database.insert(key, bytes))?;
        }
        Ok(())
    }

    fn remove_generation(&self, generation: u64) -> Result<(), StoreError> {
        self.folder.call(|database| {
            let chunks = database.scan_prefix(generation_prefix(generation)).keys();
            chunks.into_iter().try_for_each(|key| database.remove(key?).map(drop))
        })?;
        self.remove_note(generation)
    }

    fn note(&self, generation: u64, key: &[u8]) -> Result<(), StoreError> {
        self.folder.call(|database| database.insert(note_key(generation), key)).map(drop)
    }

    fn remove_note(&self, generation: u64) -> Result<(), StoreError> {
        self.folder.call(|database| database.remove(note_key(generation))).map(drop)
    }

    fn damaged(&self, key: &[u8]) -> StoreError {
        let detail = format!("the value of the key {} does not match its checksum", key.escape_ascii());
        StoreError::Damaged { folder: self.folder.path.clone(), sequence: None, detail }
    }
}

/// Why a value could not be read: whether it may count as absent.
enum Unreadable {
    Lazy,
    Durable(StoreError),
}

impl From<StoreError> for Unreadable {
    fn from(error: StoreError) -> Unreadable {
        Unreadable::Durable(error)
    }
}

/// What stands under a key of the state area.
struct Manifest {
    durable: bool,
    bytes: u64,
    body: Body,
}

enum Body {
    Inline(Vec<u8>),
    Chunks { generation: u64, checksum: u32 },
}

impl Manifest {
    fn generation(&self) -> Option<u64> {
        match self.body {
            Body::Inline(_) => None,
            Body::Chunks { generation, .. } => Some(generation),
        }
    }

    fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut bytes = vec![STATE_FORMAT, u8::from(self.durable)];
        bytes.extend_from_slice(&self.bytes.to_be_bytes());
        match &self.body {
            Body::Inline(value) => {
                bytes.push(INLINE);
                bytes.extend_from_slice(value);
            }
            Body::Chunks { generation, checksum } => {
                bytes.push(CHUNKED);
                bytes.extend_from_slice(&generation.to_be_bytes());
                bytes.extend_from_slice(&checksum.to_be_bytes());
            }
        }
        let checksum = checksum_of(key, &bytes);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// The manifest; or, as an error, the newer format in which it is written, if it is not damaged.
    fn parse(key: &[u8], bytes: &[u8]) -> Result<Manifest, Option<u8>> {
        let (covered, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(None)?;
        if checksum_of(key, covered) != *checksum {
            return Err(None);
        }
        let (&[format, durable], rest) = covered.split_first_chunk().ok_or(None)?;
        if format > STATE_FORMAT {
            return Err(Some(format));
        }
        let (length, rest) = rest.split_first_chunk().ok_or(None)?;
        let (kind, rest) = rest.split_first().ok_or(None)?;
        let body = match *kind {
            INLINE => Body::Inline(rest.to_vec()),
            _ => {
                let (generation, rest) = rest.split_first_chunk().ok_or(None)?;
                let checksum = rest.first_chunk().ok_or(None)?;
                Body::Chunks { generation: u64::from_be_bytes(*generation), checksum: u32::from_be_bytes(*checksum) }
            }
        };
        Ok(Manifest { durable: durable != 0, bytes: u64::from_be_bytes(*length), body })
    }
}

const STATE_FORMAT: u8 = 1;
const INLINE: u8 = 0;
const CHUNKED: u8 = 1;
/// What fits beside a manifest's other fields into a value of the size of a journal's chunk.
const INLINE_BYTES_MAX: usize = 6_900;
/// The first bytes of the keys of the state area: chunks of long values, notes, manifests.
const CHUNK: u8 = b'c';
const NOTE: u8 = b'n';
const MANIFEST: u8 = b'v';

fn manifest_key(key: &[u8]) -> Vec<u8> {
    [&[MANIFEST], key].concat()
}

fn note_key(generation: u64) -> [u8; 9] {
    let mut key = [NOTE; 9];
    key[1..].copy_from_slice(&generation.to_be_bytes());
    key
}

fn generation_prefix(generation: u64) -> [u8; 9] {
    let mut prefix = [CHUNK; 9];
    prefix[1..].copy_from_slice(&generation.to_be_bytes());
    prefix
}

/// Writes to a scratch database and renames a file, and looks whether both reached our syncs, unless this process has seen
/// it before.
fn check_sync(data: &Path, options: &SledOptions) -> Result<(), StoreError> {
    if !REPLACES_SYNC || durable_syncs() > 0 {
        return Ok(());
    }
    let scratch = data.join("sync-check");
    remove_folder(&scratch)?;
    let folder = Folder::open(&scratch, 1 << 20, options.lock_wait)?;
    let syncs = durable_syncs();
    folder.call(|database| database.insert(b"scratch", b"scratch"))?;
    let written = folder.flush(Some(syncs));
    drop(folder);
    let renames = durable_renames();
    let (old, new) = (scratch.join("old"), scratch.join("new"));
    File::create(&old).and_then(|_| std::fs::rename(&old, &new)).map_err(|source| machine(&scratch, source))?;
    let is_renamed = durable_renames() > renames;
    remove_folder(&scratch)?;
    match written {
        Ok(()) if is_renamed => Ok(()),
        Err(StoreError::Machine { folder, source }) => Err(StoreError::Machine { folder, source }),
        _ => Err(StoreError::SyncNotDurable { folder: data.to_path_buf() }),
    }
}

/// Makes an empty database, durable before it has its name; does nothing where there is one.
fn make_database(path: &Path, lock_wait: Duration) -> Result<(), StoreError> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("unfinished");
    remove_folder(&unfinished)?;
    drop(Folder::open(&unfinished, 1 << 20, lock_wait)?);
    std::fs::rename(&unfinished, path).map_err(|source| machine(path, source))?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Takes the folder for this process, waiting for one that is just ending.
fn lock_folder(data: &Path, wait: Duration) -> Result<File, StoreError> {
    let path = data.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| machine(&path, source))?;
    let deadline = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { folder: data.to_path_buf() }),
            Err(TryLockError::Error(source)) => return Err(machine(&path, source)),
        }
    }
}

/// The file that sled makes first in a database's folder.
const DATABASE_FILE: &str = "db";

const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Makes a folder, with those above it, and makes their names durable. Answers with its absolute path.
fn create_folder(path: &Path) -> Result<PathBuf, StoreError> {
    let failed = |source| machine(path, source);
    let path = std::path::absolute(path).map_err(failed)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(&path).map_err(failed)?;
    for parent in missing.iter().filter_map(|folder| folder.parent()) {
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(failed)?;
    }
    Ok(path)
}

/// Makes the files of a folder and their names durable; sled leaves that to chance when it makes them.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let sync = || {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                File::open(entry.path())?.sync_all()?;
            }
        }
        File::open(path)?.sync_all()
    };
    sync().map_err(|source| machine(path, source))
}

/// Removes the snapshots that sled was writing when it was killed: it would take them for finished ones and refuse to open.
/// The folder's lock is held, so that none is being written now.
fn remove_unfinished_snapshots(path: &Path) -> Result<(), StoreError> {
    let remove = || {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("snap.") && name.ends_with(".generating") {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    remove().map_err(|source| machine(path, source))
}

fn remove_folder(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(machine(path, error)),
        _ => Ok(()),
    }
}

/// Calls sled; turns its errors and panics into ours.
fn guarded<Answer>(folder: &Path, call: impl FnOnce() -> Result<Answer, Error>) -> Result<Answer, StoreError> {
    // What sled leaves half changed in memory is not used again: after a panic in a write nothing more is written, and
    // pages are only ever replaced as a whole.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer.map_err(|error| translate(folder, error)),
        Err(_panic) => Err(damaged(folder, "the database panicked over what it found in this folder")),
    }
}

fn translate(folder: &Path, error: Error) -> StoreError {
    match error {
        Error::Io(error) if error.to_string().contains("could not acquire lock") => {
            StoreError::InUse { folder: folder.to_path_buf() }
        }
        Error::Io(error) => machine(folder, error),
        Error::Unsupported(detail) => machine(folder, io::Error::new(io::ErrorKind::Unsupported, detail)),
        other => damaged(folder, &other.to_string()),
    }
}

fn machine(folder: &Path, source: io::Error) -> StoreError {
    StoreError::Machine { folder: folder.to_path_buf(), source }
}

fn damaged(folder: &Path, detail: &str) -> StoreError {
    StoreError::Damaged { folder: folder.to_path_buf(), sequence: None, detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::store::conformance::{append, block_after, bytes, conformance};

    const PARTITION: Partition = Partition(0);

    #[test]
    fn it_conforms() {
        conformance(|| {
            let data = TempDir::new().unwrap();
            move || Box::new(open(data.path()))
        });
    }

    #[test]
    fn opening_what_exists_makes_nothing() {
        let data = TempDir::new().unwrap();
        for place in [data.path().to_path_buf(), data.path().join("nowhere")] {
            let error = SledStore::open_existing(&place, &SledOptions::default()).unwrap_err();
            assert!(matches!(error, StoreError::NoStore { .. }), "{error}");
        }
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
        append(&open(data.path()), vec![vec![1]]);
        let store = SledStore::open_existing(data.path(), &SledOptions::default()).unwrap();
        assert_eq!(store.head(PARTITION).unwrap().next, Sequence(2));
    }

    #[test]
    fn every_commit_is_a_durable_sync() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        for records in [vec![bytes(1, 300)], vec![bytes(2, 30_000)]] {
            let syncs = durable_syncs();
            append(&store, records);
            assert!(!REPLACES_SYNC || durable_syncs() > syncs);
        }
        assert!(!data.path().join("sync-check").exists());
    }

    /// sled moves a leaf that grows too large into a file of its own, which it never syncs.
    #[test]
    fn nothing_is_stored_outside_the_synced_files() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        append(&store, vec![bytes(1, 1 << 20), bytes(2, 1 << 20)]);
        for number in 0..100 {
            // Chunks that are as full as a chunk gets, alone and in a batch.
            append(&store, vec![bytes(number, 7_000)]);
            append(&store, vec![bytes(number, 21_000)]);
            let mut key = [b'k'; 128];
            key[120..].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            store.put_state_lazily(&key, &bytes(number, INLINE_BYTES_MAX)).unwrap();
            store.put_state(&key[1..], &bytes(number, 3 * INLINE_BYTES_MAX)).unwrap();
        }
        for folder in ["journal/blobs", "state/blobs"] {
            assert_eq!(std::fs::read_dir(data.path().join(folder)).unwrap().count(), 0, "{folder}");
        }
    }

    /// The Records of three blocks: 1 and 2 in one chunk, 3 in many chunks of one block with 4, 5 alone.
    fn three_blocks(data: &Path) -> SledStore {
        let store = open(data);
        append(&store, vec![bytes(1, 300), bytes(2, 300)]);
        append(&store, vec![bytes(3, 30_000), bytes(4, 300)]);
        append(&store, vec![bytes(5, 300)]);
        store
    }

    fn keys(store: &SledStore) -> Vec<IVec> {
        store.journal.database.iter().keys().map(Result::unwrap).collect()
    }

    /// What reading finds: the Records that can't be read by sequence, and the sequence at which the scan stopped.
    fn damage_found(store: &SledStore) -> (Vec<u64>, Option<u64>) {
        let unreadable = |sequence: &u64| {
            let read = store.record(PARTITION, Sequence(*sequence));
            matches!(read, Err(StoreError::Damaged { sequence: Some(found), .. }) if found.0 == *sequence)
        };
        let scanned = store.blocks(PARTITION, Sequence::FIRST).find_map(Result::err);
        let stopped = scanned.map(|error| match error {
            StoreError::Damaged { sequence, .. } => sequence.unwrap().0,
            other => panic!("{other}"),
        });
        ((1..=5).filter(unreadable).collect(), stopped)
    }

    #[test]
    fn a_flipped_byte_of_a_chunk_is_found() {
        // Chunk, the Records that it makes unreadable, the block at which a scan stops.
        let cases: [(usize, &[u64], u64); 4] = [(0, &[1, 2], 1), (1, &[3], 3), (3, &[3], 3), (6, &[5], 5)];
        for (chunk, unreadable, stopped) in cases {
            let data = TempDir::new().unwrap();
            let store = three_blocks(data.path());
            assert_eq!(damage_found(&store), (vec![], None));
            let key = &keys(&store)[chunk];
            let mut value = store.journal.database.get(key).unwrap().unwrap().to_vec();
            let middle = value.len() / 2;
            value[middle] ^= 0x10;
            store.journal.database.insert(key, value).unwrap();
            assert_eq!(damage_found(&store), (unreadable.to_vec(), Some(stopped)), "chunk {chunk}");
        }
    }

    #[test]
    fn a_missing_chunk_is_found() {
        let cases: [(usize, &[u64], u64); 4] = [(0, &[1, 2], 1), (1, &[3], 3), (3, &[3], 3), (6, &[5], 5)];
        for (chunk, unreadable, stopped) in cases {
            let data = TempDir::new().unwrap();
            let store = three_blocks(data.path());
            store.journal.database.remove(&keys(&store)[chunk]).unwrap();
            assert_eq!(damage_found(&store), (unreadable.to_vec(), Some(stopped)), "chunk {chunk}");
        }
    }

    #[test]
    fn a_last_block_without_all_its_chunks_does_not_open() {
        for missing in 0..5 {
            let data = TempDir::new().unwrap();
            let store = open(data.path());
            append(&store, vec![bytes(1, 30_000)]);
            let keys = keys(&store);
            assert_eq!(keys.len(), 5);
            store.journal.database.remove(&keys[missing]).unwrap();
            drop(store);
            let error = SledStore::open(data.path(), &options()).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { sequence: Some(Sequence(1)), .. }), "{missing}: {error}");
        }
    }

    /// A block whose place in the chain was taken by another, with good checksums and a good hash of its own.
    #[test]
    fn an_exchanged_block_is_found_by_the_chain() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let first = store.blocks(PARTITION, Sequence(1)).next().unwrap().unwrap();
        let forged = block_after(Head::EMPTY, vec![bytes(6, 300), first.records[1].clone()]);
        let (key, value) = chunk::cut(&forged, forged.hash()).remove(0);
        store.journal.database.insert(key.to_bytes(), value).unwrap();
        assert_eq!(damage_found(&store), (vec![], Some(3)));
        // A scan that begins behind the exchanged block sees that its own first block does not follow it.
        assert!(matches!(store.blocks(PARTITION, Sequence(3)).next(), Some(Err(StoreError::Damaged { .. }))));
        assert!(matches!(store.blocks(PARTITION, Sequence(5)).next(), Some(Ok(_))));
    }

    #[test]
    fn an_unfinished_snapshot_of_sled_does_not_keep_it_from_opening() {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        for folder in ["journal", "state"] {
            std::fs::write(data.path().join(folder).join("snap.00FFFFFFFFFFFFFF.generating"), b"torn").unwrap();
        }
        assert_eq!(damage_found(&open(data.path())), (vec![], None));
    }

    #[test]
    fn an_unfinished_database_does_not_keep_it_from_opening() {
        let data = TempDir::new().unwrap();
        for name in ["journal", "state"] {
            let unfinished = data.path().join(name).with_extension("unfinished");
            std::fs::create_dir(&unfinished).unwrap();
            std::fs::write(unfinished.join("conf"), [0; 40]).unwrap();
        }
        let store = open(data.path());
        append(&store, vec![bytes(1, 300)]);
        drop(store);
        let names = |path: &Path| -> Vec<_> {
            let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
            entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.file_name()).collect()
        };
        let mut found = names(data.path());
        found.sort();
        assert_eq!(found, ["files", "journal", "state"]);
        assert_eq!(read_all(data.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_second_open_is_refused_by_name() {
        let data = TempDir::new().unwrap();
        let _first = open(data.path());
        let impatient = SledOptions { lock_wait: Duration::from_millis(50), ..options() };
        let error = SledStore::open(data.path(), &impatient).unwrap_err();
        assert!(error.to_string().contains("in use by another process"), "{error}");
    }

    #[test]
    fn a_database_that_another_program_has_open_is_refused_by_name() {
        let data = TempDir::new().unwrap();
        drop(open(data.path()));
        let impatient = SledOptions { lock_wait: Duration::from_millis(200), ..options() };
        let _other = Config::new().path(data.path().join("state")).open().unwrap();
        let error = SledStore::open(data.path(), &impatient).unwrap_err();
        assert!(error.to_string().contains("state: in use by another process"), "{error}");
    }

    /// Whatever byte of sled's own files is damaged, the answer is a clear error or a beginning of what was written, with a
    /// good chain. That an end is missing can only be told by a head that is kept elsewhere.
    #[test]
    fn damaged_files_are_errors_and_no_panics() {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        let written = read_all(data.path()).unwrap();
        // Reading opened it once more, so that sled wrote a snapshot of where everything stands.
        let mut refused = 0;
        for file in files_of(&data.path().join("journal")) {
            let sound = std::fs::read(&file).unwrap();
            let used = sound.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            for place in (0..used).step_by(used.div_ceil(32)) {
                let copy = TempDir::new().unwrap();
                std::fs::create_dir(copy.path().join("journal")).unwrap();
                for file in files_of(&data.path().join("journal")) {
                    std::fs::copy(&file, copy.path().join("journal").join(file.file_name().unwrap())).unwrap();
                }
                let mut damaged = sound.clone();
                damaged[place] ^= 0x20;
                std::fs::write(copy.path().join("journal").join(file.file_name().unwrap()), damaged).unwrap();
                match read_all(copy.path()) {
                    Ok(blocks) => assert_eq!(blocks, written[..blocks.len()], "{file:?}, byte {place}"),
                    Err(StoreError::Damaged { .. } | StoreError::Machine { .. }) => refused += 1,
                    Err(error) => panic!("{file:?}, byte {place}: {error}"),
                }
            }
        }
        assert!(refused > 30, "only {refused} damaged copies were noticed");
    }

    #[test]
    fn a_panic_of_the_database_is_an_error_that_says_what_to_do() {
        let panics = || -> Result<(), Error> { panic!("as sled does") };
        let error = guarded(Path::new("data/journal"), panics).unwrap_err().to_string();
        assert!(error.starts_with("data/journal: damaged: the database panicked"), "{error}");
        assert!(error.contains("restore the last backup"), "{error}");
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let key = keys(&store)[0].clone();
        let mut value = store.journal.database.get(&key).unwrap().unwrap().to_vec();
        value.truncate(value.len() - CHECKSUM_BYTES);
        value[0] = chunk::FORMAT + 1;
        let checksum = checksum_of(&key, &value);
        value.extend_from_slice(&checksum);
        store.journal.database.insert(key, value).unwrap();
        let error = store.record(PARTITION, Sequence(1)).unwrap_err();
        assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn after_a_failed_write_nothing_is_written() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let failed = store.write(|| Err(machine(data.path(), io::Error::other("broken"))));
        assert!(matches!(failed, Err(StoreError::Machine { .. })));
        let head = store.head(PARTITION).unwrap();
        let refused = store.append(&block_after(head, vec![bytes(6, 10)]));
        assert!(matches!(refused, Err(StoreError::Poisoned)));
        assert!(matches!(store.put_state(b"key", b""), Err(StoreError::Poisoned)));
        assert!(matches!(store.put_state_lazily(b"key", b""), Err(StoreError::Poisoned)));
        assert!(matches!(store.delete_state(b"key"), Err(StoreError::Poisoned)));
        assert_eq!(store.head(PARTITION).unwrap(), head);
        assert_eq!(damage_found(&store), (vec![], None));
    }

    #[test]
    fn a_torn_value_is_absent_if_it_was_lazy_and_damage_if_it_was_not() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        store.put_state_lazily(b"snapshot", &bytes(1, 20_000)).unwrap();
        store.put_state(b"sealed key", &bytes(2, 20_000)).unwrap();
        for generation in [1, 2] {
            let mut key = generation_prefix(generation).to_vec();
            key.extend_from_slice(&1u64.to_be_bytes());
            store.state.folder.database.remove(key).unwrap().unwrap();
        }
        assert_eq!(store.state(b"snapshot").unwrap(), None);
        assert!(matches!(store.state(b"sealed key"), Err(StoreError::Damaged { .. })));
        // Either can be put again.
        store.put_state(b"snapshot", b"anew").unwrap();
        store.put_state(b"sealed key", b"anew").unwrap();
        assert_eq!(store.state(b"snapshot").unwrap(), Some(b"anew".to_vec()));
        assert_eq!(store.state(b"sealed key").unwrap(), Some(b"anew".to_vec()));
    }

    /// A crash can come between any two steps of a put; each leaves the old value or the new one, and nothing besides.
    #[test]
    fn a_put_that_was_cut_short_leaves_nothing_behind() {
        let (old, new) = (bytes(1, 20_000), bytes(2, 30_000));
        for steps in 0..4 {
            let data = TempDir::new().unwrap();
            let store = open(data.path());
            store.put_state(b"key", &old).unwrap();
            let area = &store.state;
            if steps > 0 {
                area.note(2, b"key").unwrap();
            }
            if steps > 1 {
                area.put_chunks(2, &new).unwrap();
            }
            if steps > 2 {
                area.note(1, b"key").unwrap();
                let body = Body::Chunks { generation: 2, checksum: crc32c::crc32c(&new) };
                let manifest = Manifest { durable: true, bytes: new.len() as u64, body };
                let key = manifest_key(b"key");
                area.folder.database.insert(&key, manifest.to_bytes(&key)).unwrap();
            }
            drop(store);
            let store = open(data.path());
            let expected = if steps > 2 { &new } else { &old };
            assert_eq!(store.state(b"key").unwrap().as_ref(), Some(expected), "{steps} steps");
            let entries = 1 + expected.len().div_ceil(INLINE_BYTES_MAX);
            assert_eq!(store.state.folder.database.len(), entries, "{steps} steps");
            store.put_state(b"key", b"short").unwrap();
            assert_eq!(store.state.folder.database.len(), 1, "{steps} steps");
            store.delete_state(b"key").unwrap();
            assert!(store.state.folder.database.is_empty());
        }
    }

    fn read_all(data: &Path) -> Result<Vec<Block>, StoreError> {
        SledStore::open(data, &options())?.blocks(PARTITION, Sequence::FIRST).collect()
    }

    fn files_of(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries.filter(|entry| entry.file_type().unwrap().is_file()).map(|entry| entry.path()).collect()
    }

    fn open(data: &Path) -> SledStore {
        SledStore::open(data, &options()).unwrap()
    }

    fn options() -> SledOptions {
        SledOptions { journal_cache_bytes: 4 << 20, state_cache_bytes: 4 << 20, ..SledOptions::default() }
    }
}
