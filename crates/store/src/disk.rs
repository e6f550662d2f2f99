//! Store on one machine: a folder with the journal, the state area, cursors, files and the anchor.
//!
//! ```text
//! <data>/lock       held while the store is open
//! <data>/journal/   the blocks, cut into chunks, in a row of segments; see `segments.rs`
//! <data>/state/     the keys and values: snapshots, sealed keys, stamps
//! <data>/cursors    the values that change every second; see `cursors.rs`
//! <data>/files/     what is derived from the journal and too large for a value
//!                   (`00001.` before the names of partition 1)
//! <data>/anchor     the head of the journal once more; see `anchor.rs`
//! <data>/ballast    takes room, to be deleted when the disk is full; see `space.rs`
//! ```
//!
//! Journal and state area are separate so that the journal is only ever appended to: it goes on in
//! another segment when one is full, and closed segments can be copied while it grows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::anchor::{self, Anchor, AnchorSlot};
use super::chunk;
use super::cursors::Cursors;
use super::files::{Files, bytes_below, create_folder, machine, make_private, private_file, sync_folder};
use super::monitor::Monitor;
use super::segments::Segments;
use super::sled::{DatabaseOptions, UNFLUSHED_BYTES_MAX_OF_STATE};
use super::space;
use super::state_area::StateArea;
use super::write_behind::WriteBehind;
use super::{
    AppendOutcome, Block, COMMON_PREFIXES, Database, Durability, Epoch, Head, KeyAndValue, Partition, Result, Sequence,
    SledOptions, Store, StoreError, StoredRecord, Tenure, WriteBytes, admit_common_key, admit_file_name,
    admit_state_key, check_sync,
};

/// A store in a folder of this machine.
#[derive(Debug)]
pub struct SledStore {
    heads: RwLock<BTreeMap<Partition, Head>>,
    /// The epochs of the partitions that were taken.
    epochs: RwLock<BTreeMap<Partition, Epoch>>,
    journal: Segments,
    anchor: Anchor,
    write_behind: WriteBehind,
    state: Arc<StateArea>,
    cursors: Arc<Cursors>,
    files: Files,
    monitor: Arc<Monitor>,
    folder: PathBuf,
    reserve_bytes: u64,
    appending: Mutex<()>,
    /// Held from the look at a common key until its value is durable.
    inserting: Mutex<()>,
    /// True once a write failed, here or in the background.
    poisoned: Arc<AtomicBool>,
    /// Released last, when both databases are closed.
    _lock: File,
}

impl SledStore {
    /// How many partitions it has at most.
    pub const PARTITIONS_MAX: usize = anchor::PARTITIONS_MAX;

    /// Opens the store in `data`, or makes an empty one there. Waits for a process that is just
    /// ending.
    pub fn open(data: &Path, options: &SledOptions) -> Result<SledStore> {
        let data = create_folder(data)?;
        make_private(&data);
        Self::open_made(data.clone(), options).map_err(|error| space::name_ballast(&data, error))
    }

    /// Opens the store in `data`, and makes nothing where there is none: a wrong path is an error,
    /// not an empty store.
    pub fn open_existing(data: &Path, options: &SledOptions) -> Result<SledStore> {
        let data = std::path::absolute(data).map_err(|source| machine(data, source))?;
        if !Segments::is_made(&data) || !Database::is_made(&data.join(STATE)) {
            return Err(StoreError::NoStore { folder: data });
        }
        Self::open_made(data.clone(), options).map_err(|error| space::name_ballast(&data, error))
    }

    fn open_made(data: PathBuf, options: &SledOptions) -> Result<SledStore> {
        let lock = lock_folder(&data, options.lock_wait)?;
        space::keep_ballast(&data, options.ballast_bytes, options.reserve_bytes)?;
        check_sync(&data, options.lock_wait)?;
        let anchored = AnchorSlot::read(&data)?;
        let is_begun = anchored.as_ref().is_some_and(|anchored| !anchored.heads.is_empty());
        let poisoned = Arc::new(AtomicBool::new(false));
        let monitor = Arc::new(Monitor::default());
        let journal = Segments::open(&data, options, is_begun, Arc::clone(&poisoned), Arc::clone(&monitor))?;
        let heads = journal.heads()?;
        if let Some(anchored) = anchored.as_ref().filter(|_| options.checks_end) {
            anchored.check(&data.join("journal"), &heads, |partition, next| journal.hash_before(partition, next))?;
        }
        let SledOptions { state_cache_bytes: cache_bytes, lock_wait, .. } = *options;
        let (unflushed_bytes_max, noted) = (UNFLUSHED_BYTES_MAX_OF_STATE, Arc::clone(&monitor));
        let opening = DatabaseOptions { cache_bytes, unflushed_bytes_max, lock_wait, monitor: noted };
        let state = Arc::new(StateArea::open(Database::open_or_make(&data.join(STATE), &opening)?)?);
        let cursors = Arc::new(Cursors::open(&data)?);
        sync_folder(&data)?;
        Ok(SledStore {
            journal,
            anchor: Anchor::open(&data, anchored, &heads, Arc::clone(&poisoned))?,
            heads: RwLock::new(heads),
            epochs: RwLock::new(state.epochs()?),
            write_behind: WriteBehind::start(
                Arc::clone(&state),
                Arc::clone(&cursors),
                Arc::clone(&monitor),
                (data.clone(), options.reserve_bytes),
            )?,
            state,
            cursors,
            files: Files::open(create_folder(&data.join("files"))?)?,
            monitor,
            folder: data,
            reserve_bytes: options.reserve_bytes,
            appending: Mutex::new(()),
            inserting: Mutex::new(()),
            poisoned,
            _lock: lock,
        })
    }

    /// Runs a write, unless an earlier one failed; after a failure of the machine no write is run
    /// again.
    fn write(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        self.admit_write()?;
        let written = write();
        if let Err(error) = &written {
            tracing::error!(%error, "a write to the store failed; nothing more is written by this process");
            self.poisoned.store(true, Ordering::SeqCst);
        }
        // Nothing is acknowledged either once something failed in the background.
        written.and_then(|()| self.admit_write())
    }

    /// Runs a write of something that is derived, or that may be behind. A failure is counted, and
    /// stops nothing else: it is written again later.
    fn write_derived<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        self.admit_write()?;
        write().inspect_err(|_| self.monitor.derived_failed())
    }

    fn append_one(&self, tenure: Tenure, block: &Block) -> Result<AppendOutcome> {
        let epochs = self.epochs.read();
        let _appending = self.appending.lock();
        let refused = self.head(block.partition)?.admit(block);
        if refused.is_err()
            && let Some(there) = self.blocks(block.partition, block.first).next().transpose()?
            && there == *block
        {
            return Ok(AppendOutcome::Durable(there.hash()));
        }
        let now = epochs.get(&tenure.partition).copied().unwrap_or_default();
        if block.partition != tenure.partition || tenure.admit(now).is_err() {
            return Ok(AppendOutcome::Fenced);
        }
        refused?;
        if block.first == Sequence::FIRST && self.heads.read().len() >= anchor::PARTITIONS_MAX {
            return Err(StoreError::Unstorable("a store on one machine has at most 64 partitions"));
        }
        let hash = block.hash();
        let head = Head::after(block, hash);
        self.write(|| {
            self.journal.append(chunk::cut(block, hash))?;
            self.anchor.hand_over(block.partition, head)
        })?;
        self.heads.write().insert(block.partition, head);
        Ok(AppendOutcome::Durable(hash))
    }

    /// Refuses an owner whose tenure has ended; while the guard is held, nobody takes a partition.
    fn admit_beside_journal(&self, tenure: Tenure) -> Result<RwLockReadGuard<'_, BTreeMap<Partition, Epoch>>> {
        let epochs = self.epochs.read();
        tenure.admit(epochs.get(&tenure.partition).copied().unwrap_or_default())?;
        Ok(epochs)
    }

    fn admit_write(&self) -> Result<()> {
        if self.poisoned.load(Ordering::SeqCst) { Err(StoreError::Poisoned) } else { Ok(()) }
    }
}

impl Store for SledStore {
    fn epoch(&self, partition: Partition) -> Result<Epoch> {
        Ok(self.epochs.read().get(&partition).copied().unwrap_or_default())
    }

    fn take(&self, partition: Partition, seen: Epoch) -> Result<Option<Tenure>> {
        let mut epochs = self.epochs.write();
        if epochs.get(&partition).copied().unwrap_or_default() != seen {
            return Ok(None);
        }
        let epoch = Epoch(seen.0 + 1);
        self.write(|| self.state.put_epoch(partition, epoch))?;
        epochs.insert(partition, epoch);
        Ok(Some(Tenure { partition, epoch }))
    }

    fn append(&self, blocks: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>> {
        blocks.iter().map(|(tenure, block)| self.append_one(*tenure, block)).collect()
    }

    fn head(&self, partition: Partition) -> Result<Head> {
        Ok(self.heads.read().get(&partition).copied().unwrap_or(Head::EMPTY))
    }

    fn records(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        let known = Sequence::FIRST..self.head(partition)?.next;
        let read = |sequence: &Sequence| match known.contains(sequence) {
            true => self.journal.record(partition, *sequence).map(Some),
            false => Ok(None),
        };
        sequences.iter().map(read).collect()
    }

    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
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

    fn put_state(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>, how: Durability) -> Result<()> {
        admit_state_key(key)?;
        let _owner = self.admit_beside_journal(tenure)?;
        let key = &*key_of(tenure.partition, key);
        match (value, how) {
            (Some(value), Durability::Durable) => return self.write(|| self.state.put_durably(key, value)),
            (None, Durability::Durable) => return self.write(|| self.state.delete_durably(key)),
            (Some(value), Durability::Lazy) => self.write_derived(|| self.state.put(key, value, false).map(drop))?,
            (None, Durability::Lazy) => self.write_derived(|| self.state.delete(key).map(drop))?,
        }
        self.write_behind.note();
        Ok(())
    }

    fn states(&self, partition: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().map(|key| self.state.value(&key_of(partition, key))).collect()
    }

    fn state_keys(&self, partition: Partition, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(keys_within(partition, self.state.keys(&key_of(partition, prefix))?))
    }

    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        admit_common_key(key)?;
        let _one_at_a_time = self.inserting.lock();
        if let Some(stands) = self.state.value(key)? {
            return Ok(stands);
        }
        self.write(|| self.state.put_durably(key, value))?;
        Ok(value.to_vec())
    }

    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.state.value(key)
    }

    fn remove_common(&self, key: &[u8]) -> Result<()> {
        let _one_at_a_time = self.inserting.lock();
        self.write(|| self.state.delete_durably(key))
    }

    fn commons(&self) -> Result<Vec<KeyAndValue>> {
        let mut values = Vec::new();
        for prefix in COMMON_PREFIXES {
            for key in self.state.keys(prefix)? {
                // A key that was removed meanwhile is gone on purpose.
                values.extend(self.state.value(&key)?.map(|value| (key, value)));
            }
        }
        Ok(values)
    }

    fn put_cursor(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        admit_state_key(key)?;
        let _owner = self.admit_beside_journal(tenure)?;
        self.admit_write()?;
        self.cursors.put(&key_of(tenure.partition, key), value);
        self.write_behind.note_cursor();
        Ok(())
    }

    fn cursor(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.cursors.value(&key_of(partition, key)))
    }

    fn cursor_keys(&self, partition: Partition) -> Result<Vec<Vec<u8>>> {
        Ok(keys_within(partition, self.cursors.keys()))
    }

    fn put_file_in_parts(&self, tenure: Tenure, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        admit_file_name(name)?;
        let _owner = self.admit_beside_journal(tenure)?;
        self.write_derived(|| self.files.put_in_parts(&file_name_of(tenure.partition, name), write))
    }

    fn file_part(&self, partition: Partition, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        admit_file_name(name)?;
        self.files.part(&file_name_of(partition, name), offset, length)
    }

    fn files(&self, partition: Partition) -> Result<Vec<(String, u64)>> {
        let own = |(name, bytes): (String, u64)| match file_of(&name) {
            (owner, name) if owner == partition => Some((name.to_owned(), bytes)),
            _ => None,
        };
        Ok(self.files.list()?.into_iter().filter_map(own).collect())
    }

    fn remove_file(&self, tenure: Tenure, name: &str) -> Result<()> {
        admit_file_name(name)?;
        let _owner = self.admit_beside_journal(tenure)?;
        self.write_derived(|| self.files.remove(&file_name_of(tenure.partition, name)))
    }

    fn partitions_max(&self) -> usize {
        Self::PARTITIONS_MAX
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        space::free_bytes(&self.folder).map(Some)
    }

    fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    fn size_bytes(&self) -> Result<u64> {
        // By their names and sizes: nothing is opened for it.
        ["journal", STATE, "files"].iter().map(|folder| bytes_below(&self.folder.join(folder))).sum()
    }

    fn monitor(&self) -> Arc<Monitor> {
        Arc::clone(&self.monitor)
    }
}

/// Before the keys of values and cursors of other partitions than 0; the partition's number
/// follows, big-endian, and then the key.
const OF_PARTITION: &[u8] = b"partition/";

/// A key of a partition as it stands in the state area and among the cursors.
fn key_of(partition: Partition, key: &[u8]) -> Cow<'_, [u8]> {
    match partition {
        Partition(0) => Cow::Borrowed(key),
        Partition(number) => Cow::Owned([OF_PARTITION, &number.to_be_bytes(), key].concat()),
    }
}

/// The keys of one partition, as its owner calls them, in their order.
fn keys_within(partition: Partition, keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let own = |key: Vec<u8>| match partition {
        Partition(0) => (!key.starts_with(OF_PARTITION)).then_some(key),
        partition => key.strip_prefix(&*key_of(partition, b"")).map(<[u8]>::to_vec),
    };
    keys.into_iter().filter_map(own).collect()
}

/// The name of a partition's file in the folder `files`: its number stands before it, but for
/// partition 0. No name begins with a digit.
pub fn file_name_of(partition: Partition, name: &str) -> String {
    match partition {
        Partition(0) => name.to_owned(),
        Partition(number) => format!("{number:05}.{name}"),
    }
}

/// The partition of a file of that folder, and the name that its owner gave it.
pub fn file_of(name: &str) -> (Partition, &str) {
    let named = name.split_once('.').filter(|(number, _)| number.len() == 5);
    let found = named.and_then(|(number, name)| Some((Partition(number.parse().ok()?), name)));
    found.unwrap_or((Partition(0), name))
}

/// The folder of the state area.
const STATE: &str = "state";

/// Takes the folder for this process, waiting for one that is just ending.
fn lock_folder(data: &Path, wait: Duration) -> Result<File> {
    let path = data.join("lock");
    let file = private_file().create(true).truncate(false).write(true).open(&path);
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

const LOCK_RETRY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::io;

    use tempfile::TempDir;

    use super::*;
    use crate::Part;
    use crate::chunk::{CHECKSUM_BYTES, checksum_of};
    use crate::durable_sync::{REPLACES_SYNC, durable_syncs};
    use crate::state_area::INLINE_BYTES_MAX;
    use crate::testkit;
    use crate::testkit::conformance::{self, block_after, bytes};

    const PARTITION: Partition = Partition(0);

    #[test]
    fn it_conforms() {
        conformance::all(|| {
            let data = TempDir::new().unwrap();
            move || open(data.path())
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

    /// Every block is durable in the write-ahead log, and in the database when that is closed. A
    /// large block makes the database flush.
    #[test]
    fn the_database_is_made_durable_where_the_wal_is_not_enough() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        append(&store, vec![bytes(1, 300)]);
        let syncs = durable_syncs();
        append(&store, vec![bytes(2, 5 << 20)]);
        assert!(!REPLACES_SYNC || durable_syncs() > syncs);
        append(&store, vec![bytes(3, 300)]);
        drop(store);
        for name in ["journal/wal-0", "journal/wal-1"] {
            std::fs::remove_file(data.path().join(name)).unwrap();
        }
        assert_eq!(read_all(data.path()).unwrap().len(), 3);
        assert!(!data.path().join("sync-check").exists());
    }

    /// A kill leaves the files as they are, without values that are only in memory. The copy is
    /// opened until all lazily put values are there; nothing but the store itself makes them
    /// durable.
    #[test]
    fn what_is_put_lazily_survives_a_kill_soon_after() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        part(&store).put_state_lazily(b"snapshot", &bytes(1, 300)).unwrap();
        part(&store).put_state_lazily(b"long snapshot", &bytes(2, 30_000)).unwrap();
        part(&store).put_cursor(b"cursor", &bytes(3, 300)).unwrap();
        let is_there = || {
            let copy = TempDir::new().unwrap();
            copy_folder(data.path(), &copy.path().join("data"));
            // A copy that was made while the database wrote need not open.
            let opened = SledStore::open(&copy.path().join("data"), &options());
            opened.is_ok_and(|killed| {
                let killed = part(&Arc::new(killed));
                let state = |key: &[u8]| killed.state(key).unwrap();
                state(b"snapshot") == Some(bytes(1, 300))
                    && state(b"long snapshot") == Some(bytes(2, 30_000))
                    && killed.cursor(b"cursor").unwrap() == Some(bytes(3, 300))
            })
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_there() {
            assert!(Instant::now() < deadline, "it is not made durable");
        }
    }

    /// A derived file may fail to be written; nothing else fails for that.
    #[test]
    fn a_file_that_cannot_be_written_stops_nothing() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        let (files, aside) = (data.path().join("files"), data.path().join("aside"));
        std::fs::rename(&files, &aside).unwrap();
        assert!(matches!(part(&store).put_file("run-1", b"run"), Err(StoreError::Machine { .. })));
        assert_eq!(store.monitor().derived_failures(), 1);
        append(&store, vec![bytes(1, 300)]);
        part(&store).put_state(b"key", b"value").unwrap();
        std::fs::rename(&aside, &files).unwrap();
        part(&store).put_file("run-1", b"run").unwrap();
    }

    /// A database never has more unflushed than the bound, however much is inserted into it.
    #[test]
    fn a_database_has_little_that_is_not_flushed() {
        let data = TempDir::new().unwrap();
        let opening = impatient_opening();
        let database = Database::open(data.path(), &opening).unwrap();
        let mut most = 0;
        for number in 0..500_u64 {
            database.insert(&number.to_be_bytes(), &bytes(number, 6_000)).unwrap();
            most = most.max(database.unflushed_bytes());
        }
        assert!((UNFLUSHED_BYTES_MAX_OF_STATE / 2..=UNFLUSHED_BYTES_MAX_OF_STATE).contains(&most), "{most}");
        database.flush(None).unwrap();
        assert_eq!(database.unflushed_bytes(), 0);
    }

    /// The database lost blocks that it had not synced. The write-ahead log still has them. A gap
    /// in the log is an error.
    #[test]
    fn the_write_ahead_log_gives_back_what_the_database_lost() {
        let data = TempDir::new().unwrap();
        append(&open(data.path()), vec![bytes(0, 300)]);
        let (current, before) = (data.path().join("journal/000001"), data.path().join("before"));
        copy_folder(&current, &before);
        let store = open(data.path());
        (1..9).for_each(|number| drop(append(&store, vec![bytes(number, 9_000), bytes(number, 300)])));
        drop(store);
        let written = read_all(data.path()).unwrap();
        let lose_all_but_the_first = || {
            std::fs::remove_dir_all(&current).unwrap();
            copy_folder(&before, &current);
        };
        lose_all_but_the_first();
        assert_eq!(read_all(data.path()).unwrap(), written);
        lose_all_but_the_first();
        let wal = data.path().join("journal/wal-0");
        let mut damaged = std::fs::read(&wal).unwrap();
        damaged[3 * 3 * 4_096 + 100] ^= 1;
        std::fs::write(&wal, damaged).unwrap();
        let error = read_all(data.path()).unwrap_err().to_string();
        assert!(error.contains("ends before sequence 8, but the write-ahead log goes on with sequence 10"), "{error}");
        let what_is_left = SledOptions { checks_end: false, ..options() };
        assert_eq!(read_all_in(data.path(), &what_is_left).unwrap(), written[..4]);
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
            part(&store).put_state_lazily(&key, &bytes(number, INLINE_BYTES_MAX)).unwrap();
            part(&store).put_state(&key[1..], &bytes(number, 3 * INLINE_BYTES_MAX)).unwrap();
        }
        for folder in ["journal/000001/blobs", "state/blobs"] {
            assert_eq!(std::fs::read_dir(data.path().join(folder)).unwrap().count(), 0, "{folder}");
        }
    }

    /// The Records of three blocks: 1 and 2 in one chunk, 3 in many chunks of one block with 4, 5
    /// alone.
    fn three_blocks(data: &Path) -> Arc<SledStore> {
        let store = open(data);
        append(&store, vec![bytes(1, 300), bytes(2, 300)]);
        append(&store, vec![bytes(3, 30_000), bytes(4, 300)]);
        append(&store, vec![bytes(5, 300)]);
        store
    }

    fn keys(store: &Arc<SledStore>) -> Vec<Vec<u8>> {
        store.journal.current().keys()
    }

    /// Damage that reading finds: the Records that can't be read by sequence, and the sequence at
    /// which the scan stopped.
    fn damage_found(store: &Arc<SledStore>) -> (Vec<u64>, Option<u64>) {
        let unreadable = |sequence: &u64| {
            let read = part(store).record(Sequence(*sequence));
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
            let mut value = store.journal.current().database().get(key).unwrap().unwrap().to_vec();
            let middle = value.len() / 2;
            value[middle] ^= 0x10;
            store.journal.current().database().insert(key.as_ref(), &value).unwrap();
            assert_eq!(damage_found(&store), (unreadable.to_vec(), Some(stopped)), "chunk {chunk}");
        }
    }

    #[test]
    fn a_missing_chunk_is_found() {
        let cases: [(usize, &[u64], u64); 4] = [(0, &[1, 2], 1), (1, &[3], 3), (3, &[3], 3), (6, &[5], 5)];
        for (chunk, unreadable, stopped) in cases {
            let data = TempDir::new().unwrap();
            let store = three_blocks(data.path());
            store.journal.current().database().remove(&keys(&store)[chunk]).unwrap();
            assert_eq!(damage_found(&store), (unreadable.to_vec(), Some(stopped)), "chunk {chunk}");
        }
    }

    #[test]
    fn a_last_block_without_all_its_chunks_does_not_open() {
        for missing in 0..5 {
            for has_wal in [true, false] {
                let data = TempDir::new().unwrap();
                let store = open(data.path());
                append(&store, vec![bytes(1, 30_000)]);
                let keys = keys(&store);
                assert_eq!(keys.len(), 5);
                store.journal.current().database().remove(&keys[missing]).unwrap();
                drop(store);
                if !has_wal {
                    std::fs::remove_file(data.path().join("journal/wal-0")).unwrap();
                }
                match SledStore::open(data.path(), &options()) {
                    // The database may end anywhere, and is given the rest again.
                    Ok(store) => assert_eq!((missing, has_wal, damage_found(&Arc::new(store)).1), (4, true, None)),
                    Err(StoreError::Damaged { sequence: Some(Sequence(1)), .. }) => assert!(missing < 4 || !has_wal),
                    Err(error) => panic!("{missing}: {error}"),
                }
            }
        }
    }

    /// A block whose place in the chain was taken by another, with good checksums and a good hash
    /// of its own.
    #[test]
    fn an_exchanged_block_is_found_by_the_chain() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let first = store.blocks(PARTITION, Sequence(1)).next().unwrap().unwrap();
        let forged = block_after(Head::EMPTY, vec![bytes(6, 300), first.records[1].clone()]);
        let (key, value) = chunk::cut(&forged, forged.hash()).remove(0);
        store.journal.current().database().insert(&key.to_bytes(), &value).unwrap();
        assert_eq!(damage_found(&store), (vec![], Some(3)));
        // A scan that begins behind the exchanged block sees that its own first block does not
        // follow it.
        assert!(matches!(store.blocks(PARTITION, Sequence(3)).next(), Some(Err(StoreError::Damaged { .. }))));
        assert!(matches!(store.blocks(PARTITION, Sequence(5)).next(), Some(Ok(_))));
    }

    #[test]
    fn an_unfinished_snapshot_of_sled_does_not_keep_it_from_opening() {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        for folder in ["journal/000001", "state"] {
            std::fs::write(data.path().join(folder).join("snap.00FFFFFFFFFFFFFF.generating"), b"torn").unwrap();
        }
        assert_eq!(damage_found(&open(data.path())), (vec![], None));
    }

    #[test]
    fn an_unfinished_database_does_not_keep_it_from_opening() {
        let data = TempDir::new().unwrap();
        for name in ["journal/000001", "state"] {
            let unfinished = data.path().join(name).with_extension("unfinished");
            std::fs::create_dir_all(&unfinished).unwrap();
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
        let opening = impatient_opening();
        let _other = Database::open(&data.path().join(STATE), &opening).unwrap();
        let error = SledStore::open(data.path(), &impatient).unwrap_err();
        assert!(error.to_string().contains("state: in use by another process"), "{error}");
    }

    /// A damaged byte anywhere in the database's own files gives a clear error, or everything that
    /// was written: the anchor shows that an end is missing.
    #[test]
    fn damaged_files_are_errors_and_no_panics() {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        let written = read_all(data.path()).unwrap();
        // Reading opened it once more, so that sled wrote a snapshot of where everything stands.
        let mut refused = 0;
        let (folder, anchor) = (Path::new("journal/000001"), Path::new("anchor"));
        let files = files_of(&data.path().join(folder));
        for file in &files {
            let sound = std::fs::read(file).unwrap();
            let used = sound.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            for place in (0..used).step_by(used.div_ceil(32)) {
                let copy = TempDir::new().unwrap();
                let copied = copy.path().join(folder);
                std::fs::create_dir_all(&copied).unwrap();
                for file in &files {
                    std::fs::copy(file, copied.join(file.file_name().unwrap())).unwrap();
                }
                std::fs::copy(data.path().join(anchor), copy.path().join(anchor)).unwrap();
                let mut damaged = sound.clone();
                damaged[place] ^= 0x20;
                std::fs::write(copied.join(file.file_name().unwrap()), damaged).unwrap();
                match read_all(copy.path()) {
                    Ok(blocks) => assert_eq!(blocks, written, "{file:?}, byte {place}"),
                    Err(error) if !file.ends_with("db") => panic!("{file:?} can be made again, byte {place}: {error}"),
                    Err(StoreError::Damaged { .. } | StoreError::Machine { .. }) => refused += 1,
                    Err(error) => panic!("{file:?}, byte {place}: {error}"),
                }
            }
        }
        assert!(refused > 20, "only {refused} damaged copies were noticed");
    }

    /// Of a closed segment, of the current one and of the state area.
    #[test]
    fn files_that_can_be_made_again_are_set_aside() {
        let data = TempDir::new().unwrap();
        let written = seven_segments(data.path());
        let values =
            |store: &Arc<SledStore>| ["short", "long", "gone"].map(|key| part(store).state(key.as_bytes()).unwrap());
        let store = open_with(data.path(), &small_segments());
        for number in 0..40 {
            part(&store).put_state(b"short", &bytes(number, 100)).unwrap();
            part(&store).put_state(b"long", &bytes(number, 3 * INLINE_BYTES_MAX)).unwrap();
            part(&store).put_state(b"gone", &bytes(number, INLINE_BYTES_MAX)).unwrap();
        }
        part(&store).delete_state(b"gone").unwrap();
        let before = values(&store);
        assert!(before[0].is_some() && before[1].is_some() && before[2].is_none());
        drop(store);
        // Each database is opened once more, so that sled has snapshots.
        assert_eq!(open_with(data.path(), &small_segments()).blocks(PARTITION, Sequence::FIRST).count(), written.len());
        for folder in ["journal/000007", "state"] {
            let files = files_of(&data.path().join(folder));
            let files: Vec<_> = files.iter().filter(|file| !file.ends_with("db")).collect();
            assert_eq!(files.len(), 2, "settings and a snapshot: {files:?}");
            for file in files {
                let sound = std::fs::read(file).unwrap();
                let flipped =
                    |place: usize| sound.iter().enumerate().map(move |(at, byte)| byte ^ u8::from(at == place));
                let places = [sound.len() / 2, sound.len() - 1];
                let mut damaged: Vec<Vec<u8>> = places.into_iter().map(|place| flipped(place).collect()).collect();
                damaged.push(sound[..sound.len() / 2].to_vec());
                for damaged in damaged {
                    let copy = TempDir::new().unwrap();
                    let place = copy.path().join("data");
                    copy_folder(data.path(), &place);
                    let harmed = place.join(file.strip_prefix(data.path()).unwrap());
                    std::fs::write(&harmed, &damaged).unwrap();
                    let store = open_with(&place, &small_segments());
                    assert_eq!(
                        store.blocks(PARTITION, Sequence::FIRST).map(Result::unwrap).collect::<Vec<_>>(),
                        written
                    );
                    assert_eq!(values(&store), before, "{harmed:?}");
                    let aside = store.monitor().files_set_aside();
                    assert_eq!(aside.len(), 1, "{harmed:?}");
                    assert_eq!(std::fs::read(&aside[0]).unwrap(), damaged, "it is still there");
                    drop(store);
                    assert_eq!(open_with(&place, &small_segments()).monitor().files_set_aside().len(), 0);
                }
            }
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let key = keys(&store)[0].clone();
        let mut value = store.journal.current().database().get(&key).unwrap().unwrap().to_vec();
        value.truncate(value.len() - CHECKSUM_BYTES);
        value[0] = chunk::FORMAT + 1;
        let checksum = checksum_of(&key, &value);
        value.extend_from_slice(&checksum);
        store.journal.current().database().insert(key.as_ref(), &value).unwrap();
        let error = part(&store).record(Sequence(1)).unwrap_err();
        assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn after_a_failed_write_nothing_is_written() {
        let data = TempDir::new().unwrap();
        let store = three_blocks(data.path());
        let failed = store.write(|| Err(machine(data.path(), io::Error::other("broken"))));
        assert!(matches!(failed, Err(StoreError::Machine { .. })));
        let head = store.head(PARTITION).unwrap();
        let refused = part(&store).append(&block_after(head, vec![bytes(6, 10)]));
        assert!(matches!(refused, Err(StoreError::Poisoned)));
        assert!(matches!(part(&store).put_state(b"key", b""), Err(StoreError::Poisoned)));
        assert!(matches!(part(&store).put_state_lazily(b"key", b""), Err(StoreError::Poisoned)));
        assert!(matches!(part(&store).delete_state(b"key"), Err(StoreError::Poisoned)));
        assert_eq!(store.head(PARTITION).unwrap(), head);
        assert_eq!(damage_found(&store), (vec![], None));
    }

    #[test]
    fn it_conforms_across_segments() {
        conformance::all(|| {
            let data = TempDir::new().unwrap();
            move || open_with(data.path(), &small_segments())
        });
    }

    #[test]
    fn blocks_and_records_are_found_across_segments() {
        let data = TempDir::new().unwrap();
        let written = seven_segments(data.path());
        for _ in 0..2 {
            let store = open_with(data.path(), &small_segments());
            for block in &written {
                let next = store.blocks(PARTITION, block.first).next().unwrap().unwrap();
                assert_eq!(next, *block);
                let record = part(&store).record(block.first).unwrap().unwrap();
                assert_eq!(record.bytes, block.records[0]);
            }
            assert_eq!(store.blocks(PARTITION, Sequence(1)).map(Result::unwrap).collect::<Vec<_>>(), written);
        }
    }

    #[test]
    fn closed_segments_become_files() {
        let data = TempDir::new().unwrap();
        let written = seven_segments(data.path());
        let journal = |name: &str| data.path().join("journal").join(name);
        for number in 1..=6 {
            assert!(journal(&format!("{number:06}.chunks")).is_file() && !journal(&format!("{number:06}")).exists());
        }
        // A process that ended before it had removed the database, or written the file.
        copy_folder(&journal("000007"), &journal("000003"));
        assert_eq!(read_all_in(data.path(), &small_segments()).unwrap(), written);
        assert!(!journal("000003").exists());
    }

    /// Where the disk has no room for a file beside its database, the database serves readers.
    #[test]
    fn a_closed_segment_stays_a_database_until_there_is_room() {
        let data = TempDir::new().unwrap();
        let store = open_with(data.path(), &SledOptions { reserve_bytes: u64::MAX >> 1, ..small_segments() });
        let written: Vec<_> = (0..7).map(|number| append(&store, vec![bytes(number, 6_900)])).collect();
        drop(store);
        assert!(data.path().join("journal/000002").is_dir() && !data.path().join("journal/000002.chunks").exists());
        let store = open_with(data.path(), &SledOptions { reserve_bytes: u64::MAX >> 1, ..small_segments() });
        assert_eq!(store.journal.closed_databases(), 2);
        assert_eq!(store.blocks(PARTITION, Sequence::FIRST).collect::<Result<Vec<_>>>().unwrap(), written);
        drop(store);
        assert_eq!(read_all_in(data.path(), &small_segments()).unwrap(), written);
        assert!(!data.path().join("journal/000002").exists() && data.path().join("journal/000002.chunks").is_file());
    }

    /// Pages of a file: chunks of many sizes and several partitions, each read alone and in a row.
    #[test]
    fn every_record_and_block_of_a_large_file_is_found() {
        let data = TempDir::new().unwrap();
        let store = open_with(data.path(), &SledOptions { segment_bytes: 2 << 20, ..options() });
        let take = |number| Part::take(Arc::<SledStore>::clone(&store), Partition(number)).unwrap();
        let parts: Vec<Part> = (0..3).map(take).collect();
        let sizes = [1, 300, 6_900, 20_000, 2_500];
        for number in 0..600_usize {
            let records = (0..=number % 3).map(|at| bytes(number as u64, sizes[(number + at) % 5])).collect();
            let (part, partition) = (&parts[number % 3], Partition((number % 3) as u16));
            let block = block_after(part.head().unwrap(), records);
            part.append(&Block { partition, ..block }).unwrap();
        }
        let all = |store: &SledStore| -> Vec<Block> {
            let of = |number| store.blocks(Partition(number), Sequence::FIRST).map(Result::unwrap).collect::<Vec<_>>();
            (0..3).flat_map(of).collect()
        };
        let written = all(&store);
        drop((parts, store));
        let store = open(data.path());
        assert!(data.path().join("journal/000001.chunks").metadata().unwrap().len() > 6 * 256 * 1024);
        assert_eq!(all(&store), written);
        for block in &written {
            for (offset, expected) in block.records.iter().enumerate() {
                let sequence = block.first.plus(offset as u64);
                let found = store.records(block.partition, &[sequence]).unwrap().remove(0).unwrap();
                assert_eq!((&found.bytes, found.sequence), (expected, sequence));
            }
            let next = store.blocks(block.partition, block.first).next().unwrap().unwrap();
            assert_eq!(next, *block);
        }
    }

    /// A flipped bit of a file is found by what is read there, and by nothing else.
    #[test]
    fn a_damaged_file_of_a_closed_segment_is_found_when_it_is_read() {
        let data = TempDir::new().unwrap();
        let written = seven_segments(data.path());
        let path = data.path().join("journal/000002.chunks");
        let sound = std::fs::read(&path).unwrap();
        // Behind the last chunk there are zeros, which nobody reads.
        let used = sound.iter().rposition(|byte| *byte != 0).unwrap();
        for at in (0..used).step_by(37) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            let store = open_with(data.path(), &small_segments());
            let read: Vec<_> = store.blocks(PARTITION, Sequence::FIRST).collect();
            assert!(matches!(read.last(), Some(Err(StoreError::Damaged { .. }))), "byte {at}");
            assert!((3..6).contains(&(read.len() - 1)), "byte {at}: {}", read.len());
            let after = store.blocks(PARTITION, Sequence(7)).map(Result::unwrap);
            assert_eq!(after.collect::<Vec<_>>(), written[6..], "byte {at}");
        }
    }

    /// Readers wander through the segments, while a writer closes some and an iterator holds one.
    #[test]
    fn readers_wander_while_segments_are_closed() {
        let data = TempDir::new().unwrap();
        seven_segments(data.path());
        let store = open_with(data.path(), &small_segments());
        let mut held = store.blocks(PARTITION, Sequence(1));
        held.next().unwrap().unwrap();
        std::thread::scope(|scope| {
            for reader in 0..3u64 {
                let store = &store;
                scope.spawn(move || {
                    for step in 0..40 {
                        let sequence = Sequence(1 + (step * (5 + 3 * reader)) % 21);
                        part(store).record(sequence).unwrap().unwrap();
                    }
                });
            }
            for number in 0..12 {
                append(&store, vec![bytes(number, 6_900)]);
            }
        });
        assert_eq!(held.map(Result::unwrap).count(), 20);
    }

    #[test]
    fn a_missing_segment_is_named() {
        for missing in ["journal/000001", "journal/000003", "journal/000006", "journal/000007"] {
            let data = TempDir::new().unwrap();
            seven_segments(data.path());
            match missing {
                "journal/000007" => std::fs::remove_dir_all(data.path().join(missing)).unwrap(),
                closed => std::fs::remove_file(data.path().join(format!("{closed}.chunks"))).unwrap(),
            }
            let error = SledStore::open(data.path(), &small_segments()).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{missing}: {error}");
            assert!(error.to_string().contains(missing), "{missing}: {error}");
        }
        // With nothing left but the anchor, no empty journal takes its place.
        let data = TempDir::new().unwrap();
        seven_segments(data.path());
        std::fs::remove_dir_all(data.path().join("journal")).unwrap();
        let error = SledStore::open(data.path(), &small_segments()).unwrap_err();
        assert!(error.to_string().contains("journal/000001: damaged: this segment"), "{error}");
    }

    #[test]
    fn a_lost_or_damaged_closing_line_is_written_anew() {
        let data = TempDir::new().unwrap();
        let written = seven_segments(data.path());
        for number in 1..=6 {
            let line = data.path().join(format!("journal/{number:06}.closed"));
            let sound = std::fs::read(&line).unwrap();
            std::fs::remove_file(&line).unwrap();
            assert_eq!(read_all_in(data.path(), &small_segments()).unwrap(), written);
            assert_eq!(std::fs::read(&line).unwrap(), sound);
            for byte in 0..sound.len() {
                let mut damaged = sound.clone();
                damaged[byte] ^= 1;
                std::fs::write(&line, damaged).unwrap();
                if byte % 40 == 0 {
                    assert_eq!(read_all_in(data.path(), &small_segments()).unwrap(), written);
                    assert_eq!(std::fs::read(&line).unwrap(), sound, "byte {byte}");
                }
            }
            std::fs::write(&line, sound).unwrap();
        }
    }

    /// Whether its closing line is there or must be made anew, a closed segment that lost its end
    /// is damaged.
    #[test]
    fn a_closed_segment_that_is_shorter_is_damaged() {
        for keeps_line in [true, false] {
            let data = TempDir::new().unwrap();
            seven_segments(data.path());
            let path = data.path().join("journal/000002.chunks");
            let sound = std::fs::read(&path).unwrap();
            std::fs::write(&path, &sound[..10_000]).unwrap();
            if !keeps_line {
                std::fs::remove_file(data.path().join("journal/000002.closed")).unwrap();
            }
            let error = read_all_in(data.path(), &small_segments()).unwrap_err();
            assert!(error.to_string().contains("000002.chunks: damaged"), "{error}");
        }
    }

    /// A database that sled opens shorter than it was closed never becomes a file.
    #[test]
    fn a_closed_database_that_is_shorter_is_refused_and_stays() {
        let full = SledOptions { reserve_bytes: u64::MAX >> 1, ..small_segments() };
        let data = TempDir::new().unwrap();
        append(&open_with(data.path(), &full), vec![bytes(0, 6_900)]);
        let (folder, shorter) = (data.path().join("journal/000001"), data.path().join("shorter"));
        copy_folder(&folder, &shorter);
        append(&open(data.path()), vec![bytes(0, 6_900)]);
        let store = open_with(data.path(), &full);
        (1..7).for_each(|number| drop(append(&store, vec![bytes(number, 6_900)])));
        drop(store);
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::rename(&shorter, &folder).unwrap();
        for _ in 0..2 {
            let error = SledStore::open(data.path(), &small_segments()).unwrap_err().to_string();
            assert!(error.contains("journal/000001: damaged") && error.contains("but it was closed before"), "{error}");
            assert!(folder.is_dir() && !folder.with_extension("chunks").exists());
        }
    }

    /// A chunk that is missing between others keeps its segment a database, and no other one.
    #[test]
    fn a_database_with_a_gap_stays_and_others_become_files() {
        let full = SledOptions { reserve_bytes: u64::MAX >> 1, ..small_segments() };
        let data = TempDir::new().unwrap();
        let store = open_with(data.path(), &full);
        (0..2).for_each(|number| drop(append(&store, vec![bytes(number, 6_900)])));
        let keys = keys(&store);
        store.journal.current().database().remove(&keys[1]).unwrap();
        (2..9).for_each(|number| drop(append(&store, vec![bytes(number, 6_900)])));
        drop(store);
        drop(open_with(data.path(), &small_segments()));
        let is_file = |number: u32| data.path().join(format!("journal/{number:06}.chunks")).is_file();
        assert_eq!([1, 2].map(is_file), [false, true]);
    }

    /// Puts the journal back by some blocks.
    fn shortened_by(blocks: u64) -> (TempDir, Result<SledStore>) {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        let shorter = data.path().join("shorter");
        copy_folder(&data.path().join("journal"), &shorter);
        let store = open(data.path());
        (0..blocks).for_each(|number| drop(append(&store, vec![bytes(number, 300)])));
        drop(store);
        std::fs::remove_dir_all(data.path().join("journal")).unwrap();
        std::fs::rename(&shorter, data.path().join("journal")).unwrap();
        let opened = SledStore::open(data.path(), &options());
        (data, opened)
    }

    #[test]
    fn a_shortened_journal_is_noticed() {
        shortened_by(0).1.unwrap();
        for blocks in [1, 2, 3, 10] {
            let error = shortened_by(blocks).1.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { sequence: Some(Sequence(6)), .. }), "{error}");
            let expected =
                format!("ends at sequence 5, but {} Records were acknowledged: {blocks} are missing", 5 + blocks);
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    /// Readers all over the journal, while it rolls on: databases become files behind them, and
    /// nobody notices.
    #[test]
    fn readers_find_every_record_while_segments_become_files() {
        let data = TempDir::new().unwrap();
        let store = open_with(data.path(), &small_segments());
        std::thread::scope(|scope| {
            for reader in 0..2_u64 {
                let store = &store;
                scope.spawn(move || {
                    for step in 0..400 {
                        let next = store.head(PARTITION).unwrap().next.0;
                        let sequence = 1 + (step * 7_919 + reader * 31) % next;
                        if let Some(record) = part(store).record(Sequence(sequence)).unwrap() {
                            assert_eq!(record.bytes, bytes(sequence, 3_000));
                        }
                    }
                });
            }
            (1..=100).for_each(|number| drop(append(&store, vec![bytes(number, 3_000)])));
        });
        assert!(store.blocks(PARTITION, Sequence::FIRST).all(|block| block.is_ok()));
        let rolled = std::fs::read_dir(data.path().join("journal")).unwrap().count();
        assert!(rolled > 10, "{rolled} segments and closing lines");
        let deadline = Instant::now() + Duration::from_secs(20);
        while store.journal.closed_databases() > 0 {
            assert!(Instant::now() < deadline, "{} stay databases", store.journal.closed_databases());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A process is killed at any moment: the anchor is written with the block.
    #[test]
    fn the_anchor_names_the_last_block() {
        let data = TempDir::new().unwrap();
        let store = open(data.path());
        for number in 1..=200 {
            append(&store, vec![bytes(number, 300)]);
            let anchored = AnchorSlot::read(data.path()).unwrap().unwrap();
            assert_eq!(anchored.heads[&PARTITION].0, Sequence(number + 1));
        }
    }

    #[test]
    fn another_journal_of_the_same_length_is_noticed() {
        let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        drop(three_blocks(one.path()));
        let store = three_blocks(other.path());
        append(&store, vec![bytes(7, 300)]);
        drop(store);
        let store = open(one.path());
        append(&store, vec![bytes(8, 300)]);
        drop(store);
        std::fs::copy(other.path().join("anchor"), one.path().join("anchor")).unwrap();
        let error = SledStore::open(one.path(), &options()).unwrap_err();
        assert!(error.to_string().contains("another block was acknowledged here"), "{error}");
    }

    #[test]
    fn a_lost_anchor_is_written_anew_and_a_newer_one_is_refused() {
        let data = TempDir::new().unwrap();
        drop(three_blocks(data.path()));
        let anchor = data.path().join("anchor");
        let sound = std::fs::read(&anchor).unwrap();
        let mut half = sound.clone();
        half[..4096].fill(0xFF);
        for damaged in [None, Some(vec![]), Some(vec![0xFF; sound.len()]), Some(half)] {
            match &damaged {
                None => std::fs::remove_file(&anchor).unwrap(),
                Some(bytes) => std::fs::write(&anchor, bytes).unwrap(),
            }
            assert_eq!(read_all(data.path()).unwrap().len(), 3);
            let anchored = AnchorSlot::read(data.path()).unwrap().unwrap();
            assert_eq!(anchored.heads[&PARTITION].0, Sequence(6));
        }
        let mut newer = sound;
        for slot in newer.chunks_exact_mut(4096) {
            slot[0] = 2;
            let (covered, checksum) = slot.split_last_chunk_mut::<CHECKSUM_BYTES>().unwrap();
            *checksum = checksum_of(b"", covered);
        }
        std::fs::write(&anchor, newer).unwrap();
        let error = SledStore::open(data.path(), &options()).unwrap_err();
        assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1, .. }), "{error}");
    }

    /// Three blocks fill a segment; the seventh is full, and the eighth was made ahead of time.
    /// Each Record is a block.
    fn seven_segments(data: &Path) -> Vec<Block> {
        let store = open_with(data, &small_segments());
        let written = (0..21).map(|number| append(&store, vec![bytes(number, 6_900)])).collect();
        drop(store);
        assert!(data.join("journal/000007").is_dir() && !data.join("journal/000009").exists());
        written
    }

    fn small_segments() -> SledOptions {
        SledOptions { segment_bytes: 20_000, ..options() }
    }

    fn impatient_opening() -> DatabaseOptions {
        let unflushed_bytes_max = UNFLUSHED_BYTES_MAX_OF_STATE;
        DatabaseOptions {
            cache_bytes: 1 << 20,
            unflushed_bytes_max,
            lock_wait: Duration::ZERO,
            monitor: Arc::default(),
        }
    }

    fn copy_folder(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let place = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy_folder(&entry.path(), &place),
                false => drop(std::fs::copy(entry.path(), place).unwrap()),
            }
        }
    }

    fn read_all_in(data: &Path, options: &SledOptions) -> Result<Vec<Block>> {
        SledStore::open(data, options)?.blocks(PARTITION, Sequence::FIRST).collect()
    }

    fn read_all(data: &Path) -> Result<Vec<Block>> {
        read_all_in(data, &options())
    }

    fn files_of(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries.filter(|entry| entry.file_type().unwrap().is_file()).map(|entry| entry.path()).collect()
    }

    fn open(data: &Path) -> Arc<SledStore> {
        open_with(data, &options())
    }

    fn open_with(data: &Path, options: &SledOptions) -> Arc<SledStore> {
        Arc::new(SledStore::open(data, options).unwrap())
    }

    fn part(store: &Arc<SledStore>) -> Part {
        testkit::part(Arc::<SledStore>::clone(store))
    }

    fn append(store: &Arc<SledStore>, records: Vec<Vec<u8>>) -> Block {
        conformance::append(&part(store), records)
    }

    fn options() -> SledOptions {
        SledOptions { journal_cache_bytes: 4 << 20, state_cache_bytes: 4 << 20, ..SledOptions::default() }
    }
}
