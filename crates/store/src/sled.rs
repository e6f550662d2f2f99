//! Sled database: opening, reading, changing and flushing one. This is the only file that names
//! sled.
//!
//! sled 0.34.7 is used against its grain, for reasons that were measured:
//!
//! - Its `flush` is not durable on Linux; `durable_sync` makes it so, and every flush checks that
//!   it was.
//! - A flush wakes its seven threads; one of them writes and syncs a file that grows. So blocks are
//!   durable elsewhere first (`wal.rs`), and their chunks are inserted one by one.
//! - A batch locks out every other call into sled in this process, whichever database it belongs
//!   to, and cannot be flushed in parts. So there are no batches: a long value of the state area is
//!   written under a new generation, one chunk a call, and becomes the key's value with the single
//!   insert of its manifest.
//! - sled recovers its log up to the first gap. A later insert is never there without the earlier
//!   ones, so a manifest is never seen without its chunks.
//! - It relies on the name of its newest snapshot before that name is durable; `durable_sync` makes
//!   it so.
//! - It does not open what a power cut left of a database that it was making: its settings, half
//!   written, are damage to it for ever. So a database is made under another name, and gets its own
//!   when it is durable.
//! - It panics where it finds damage, and when its last sync fails while it is closed. Every call
//!   is caught and becomes an error that names the folder.
//! - Where it has no snapshot of its own yet, it takes a damaged byte for the end of its log and
//!   opens with a shorter journal, silently. No check in this file can detect that; `anchor.rs`
//!   can, and the closing lines in `segments.rs`.
//! - At opening it reads everything that was written since it was last opened.
//! - Where its settings (`conf`) or its snapshot (`snap.*`) are damaged, it does not open, or may
//!   read them wrongly, though its log has all that is in both. So their checksums are looked at
//!   before it opens, and what is damaged gets another name: [`set_aside_damaged`].
//! - When a read fails while it opens, it takes the place for the end of its log. `durable_sync`
//!   keeps it from writing the shortened log, and such a database is not used.
//! - Its background flush is off: this file alone decides what is durable. Its `mode` does nothing
//!   in this version.
//!
//! # Deadlock of sled's thread pool, and what is done against it
//!
//! Two databases in one process, written over and over without the bounds below, hung for ever
//! after 50 seconds on two busy cores (sled 0.34.7).
//!
//! All databases of a process share one pool of seven threads. It does not grow while all of them
//! are busy: the counter of idle threads wraps below zero and reads as more than enough. Tasks of
//! the pool are: writes of sealed I/O buffers (one for each segment of 512 KiB, and one for each
//! flush), truncations of a file, and reads of segment headers while a database opens. A write ends
//! by locking the database's segment accountant (`sa_stabilize`). A thread that needs a new segment
//! holds that lock. Where the file's end was given back before, it also waits for the queued
//! truncation (`bump_tip`). If seven writes wait for such locks, no thread is left to truncate, and
//! nobody ever goes on.
//!
//! A truncation itself waits for no lock. So it is enough that one thread stays free. The following
//! bounds leave one free, but for two weak steps:
//!
//! 1. A database has one writer at a time ([`Database::change`] holds a lock), and one flush at a
//!    time.
//! 2. Before more would be inserted than the database's bound
//!    ([`DatabaseOptions::unflushed_bytes_max`]) since what the last finished flush covered, the
//!    writer flushes and waits. sled writes up to 9 bytes of log for each inserted byte between two
//!    flushes, since it writes whole pages (measured: 914 KiB for 128 KiB in the journal, 1,065 KiB
//!    in a state area under churn). In the state area that is less than a segment: at most one
//!    buffer is sealed because it is full, and one by a flush. In the journal it is less than three
//!    segments: at most three buffers, and one by a flush.
//! 3. At most two databases are written at once, the state area and the current segment: six
//!    writes.
//! 4. Databases are opened and closed one at a time ([`OPENING`]). While one opens, only its opener
//!    has its segment accountant, and truncations are waited for before anybody else gets it; one
//!    that closes has one write left. So that seventh write never waits for a truncation, and its
//!    thread becomes free.
//!
//! The first weak step: a flush returns when the write is synced (`mark_interval`), just before the
//! write's last step, the lock in `sa_stabilize`. The bounds do not count a thread that is not
//! scheduled between the two. For a deadlock the scheduler would have to leave out several threads
//! at this place, for as long as the writer takes for several flushes, and each of these flushes
//! needs another thread of the pool. Reads are the second: a reader flushes a page that
//! left the cache before it was flushed. Against both stands the watchdog: a wait that is too long
//! ends the process, and a restart loses nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::RangeBounds;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ::sled::{Config, Db, Error, IVec, Iter};
use parking_lot::Mutex;

use super::durable_sync::{REPLACES_SYNC, durable_renames, durable_syncs, guarded_calls, is_distrusted, trust_again};
use super::files::{create_folder, damaged, machine, remove_folder, rename_durably, sync_folder};
use super::monitor::{Monitor, WaitFor};
use super::{Result, StoreError};

/// A sled database in a folder, and the place where its panics and errors become ours.
#[derive(Debug)]
pub(super) struct Database {
    /// There until it is closed.
    database: Option<Db>,
    path: PathBuf,
    /// Held while something is inserted or removed: there is one writer at a time.
    written: Mutex<InsertedBytes>,
    /// Held while it is flushed.
    flushing: Mutex<()>,
    unflushed_bytes_max: u64,
    monitor: Arc<Monitor>,
}

/// How a database is opened.
#[derive(Debug, Clone)]
pub(super) struct DatabaseOptions {
    /// The memory for its pages, in bytes.
    pub(super) cache_bytes: u64,
    /// Bytes that may be inserted beyond what the last finished flush covers:
    /// [`UNFLUSHED_BYTES_MAX_OF_JOURNAL`] or [`UNFLUSHED_BYTES_MAX_OF_STATE`].
    pub(super) unflushed_bytes_max: u64,
    /// How long to wait for whoever still has it open.
    pub(super) lock_wait: Duration,
    /// Monitor of the waits for it.
    pub(super) monitor: Arc<Monitor>,
}

/// A key and its value.
pub(super) type Pair = (IVec, IVec);

/// For the journal's segments.
pub(super) const UNFLUSHED_BYTES_MAX_OF_JOURNAL: u64 = 192 << 10;
/// For the state area.
pub(super) const UNFLUSHED_BYTES_MAX_OF_STATE: u64 = 48 << 10;

/// Bytes that each insert or removal counts beside its key and value.
const CHANGE_BYTES: usize = 128;

/// Bytes that were inserted into a database since it was opened.
#[derive(Debug, Default)]
struct InsertedBytes {
    all: u64,
    /// Bytes that are durable.
    flushed: u64,
}

/// Held while a database is opened or closed.
static OPENING: Mutex<()> = Mutex::new(());

impl Database {
    /// Opens what is there. Waits for whoever still has it open.
    pub(super) fn open(path: &Path, opening: &DatabaseOptions) -> Result<Database> {
        create_folder(path)?;
        remove_unfinished_snapshots(path)?;
        set_aside_damaged(path, &opening.monitor)?;
        let file = path.join(DATABASE_FILE);
        if let Ok(file) = file.metadata() {
            trust_again(&file);
        }
        let deadline = Instant::now() + opening.lock_wait;
        let database = loop {
            let config = Config::new().path(path).cache_capacity(opening.cache_bytes).flush_every_ms(None);
            let opened = {
                let _one_at_a_time = OPENING.lock();
                guarded(path, || config.open())
            };
            match opened {
                Err(StoreError::InUse { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
                opened => break opened?,
            }
        };
        let database = Database {
            database: Some(database),
            path: path.to_path_buf(),
            written: Mutex::default(),
            flushing: Mutex::default(),
            unflushed_bytes_max: opening.unflushed_bytes_max,
            monitor: Arc::clone(&opening.monitor),
        };
        if is_distrusted(&file.metadata().map_err(|source| machine(&file, source))?) {
            return Err(machine(&file, io::Error::other("it could not be read while it was opened")));
        }
        sync_folder(path)?;
        Ok(database)
    }

    /// Opens the database, or makes an empty one, which is durable before it has its name. It stays
    /// open under its new name: sled uses the old one only while it opens.
    pub(super) fn open_or_make(path: &Path, opening: &DatabaseOptions) -> Result<Database> {
        if path.exists() {
            return Database::open(path, opening);
        }
        let unfinished = path.with_extension("unfinished");
        remove_folder(&unfinished)?;
        let mut database = Database::open(&unfinished, opening)?;
        database.flush(None)?;
        sync_folder(&unfinished)?;
        rename_durably(&unfinished, path).map_err(|source| machine(path, source))?;
        database.path = path.to_path_buf();
        Ok(database)
    }

    /// Whether a database was made here.
    pub(super) fn is_made(path: &Path) -> bool {
        path.join(DATABASE_FILE).is_file()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>> {
        self.call(|database| database.get(key))
    }

    /// Sets a value. Returns the value that the key had before.
    pub(super) fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<IVec>> {
        self.change(key.len() + value.len(), |database| database.insert(key, value))
    }

    /// Removes a key. Returns its value.
    pub(super) fn remove(&self, key: &[u8]) -> Result<Option<IVec>> {
        self.change(key.len(), |database| database.remove(key))
    }

    /// Pairs in a range of keys, in their order, from either end.
    pub(super) fn range<Key: AsRef<[u8]>>(&self, keys: impl RangeBounds<Key>) -> Pairs<'_> {
        Pairs { path: &self.path, pairs: self.database().range(keys) }
    }

    /// Pairs whose keys begin with `prefix`.
    pub(super) fn with_prefix(&self, prefix: &[u8]) -> Pairs<'_> {
        Pairs { path: &self.path, pairs: self.database().scan_prefix(prefix) }
    }

    /// Makes everything written so far durable. `syncs` is the count from before something was
    /// written, if anything was: it must have risen. Without it the flush only waits for what
    /// others wrote.
    pub(super) fn flush(&self, syncs: Option<u64>) -> Result<()> {
        let written = self.written.lock().all;
        self.flush_now()?;
        let mut counted = self.written.lock();
        counted.flushed = counted.flushed.max(written);
        drop(counted);
        if REPLACES_SYNC && syncs.is_some_and(|before| durable_syncs() == before) {
            return Err(StoreError::SyncNotDurable { folder: self.path.clone() });
        }
        Ok(())
    }

    /// Whether it is time to flush, so that who writes more does not have to wait for it.
    pub(super) fn wants_flush(&self) -> bool {
        self.unflushed_bytes() > self.unflushed_bytes_max / 4 * 3
    }

    /// Bytes that were written since what the last finished flush covered.
    pub(super) fn unflushed_bytes(&self) -> u64 {
        let written = self.written.lock();
        written.all - written.flushed
    }

    fn flush_now(&self) -> Result<()> {
        let _waiting = self.monitor.begin(WaitFor::Flush);
        let _one_at_a_time = self.flushing.lock();
        self.wait(|database| database.flush()).map(drop)
    }

    /// Runs a change of `bytes` bytes, after a flush if too many bytes are not durable. The
    /// module's header says why that bound prevents the deadlock.
    fn change<Answer>(&self, bytes: usize, change: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer> {
        let _waiting = self.monitor.begin(WaitFor::Change);
        let mut written = self.written.lock();
        let bytes = (bytes + CHANGE_BYTES) as u64;
        if written.all + bytes > written.flushed + self.unflushed_bytes_max {
            self.flush_now()?;
            written.flushed = written.all;
        }
        written.all += bytes;
        self.wait(change)
    }

    fn call<Answer>(&self, call: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer> {
        guarded(&self.path, || call(self.database()))
    }

    /// A call that waits for the disk. When a write fails on one of the database's own threads, it
    /// notes the error and may forget to wake who waits; a flush from another thread sees the note
    /// and wakes them.
    fn wait<Answer>(&self, call: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer> {
        let _watched = watch(self.database().clone());
        self.call(call)
    }

    fn database(&self) -> &Db {
        self.database.as_ref().expect("it is only taken out when it is dropped")
    }
}

/// Calls that wait for the disk, and since when. One thread of the program looks after them.
#[derive(Default)]
struct WaitingCalls {
    next: u64,
    calls: BTreeMap<u64, (Instant, Db)>,
}

static WAITING: Mutex<Option<WaitingCalls>> = Mutex::new(None);

/// A call that takes longer than this is looked after, and again after each as long.
const WAIT_PATIENCE: Duration = Duration::from_secs(1);

/// Ends the watch when it is dropped.
struct WatchGuard(u64);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let call = WAITING.lock().as_mut().and_then(|waiting| waiting.calls.remove(&self.0));
        // Its values must not be dropped under the lock.
        drop(call);
    }
}

fn watch(database: Db) -> WatchGuard {
    let mut waiting = WAITING.lock();
    if waiting.is_none() {
        let looking = std::thread::Builder::new().name("journal watch".to_owned()).spawn(look_after);
        *waiting = looking.ok().map(|_| WaitingCalls::default());
    }
    let Some(waiting) = waiting.as_mut() else { return WatchGuard(0) };
    waiting.next += 1;
    waiting.calls.insert(waiting.next, (Instant::now(), database));
    WatchGuard(waiting.next)
}

fn look_after() {
    loop {
        std::thread::sleep(WAIT_PATIENCE / 2);
        let late: Vec<Db> = {
            let mut waiting = WAITING.lock();
            let calls = waiting.as_mut().into_iter().flat_map(|waiting| waiting.calls.values_mut());
            let late = calls.filter(|(since, _)| since.elapsed() >= WAIT_PATIENCE);
            late.map(|(since, database)| {
                *since = Instant::now();
                database.clone()
            })
            .collect()
        };
        for database in late {
            tracing::warn!("the disk takes longer than a second");
            if WAKING.fetch_add(1, Ordering::AcqRel) >= WAKING_MAX {
                WAKING.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            // It may wait as long as the call: it has a thread of its own.
            let waking = std::thread::Builder::new().name("journal wake".to_owned());
            let waking = waking.spawn(move || {
                let _told_to_the_caller = catch_unwind(AssertUnwindSafe(|| database.flush()));
                WAKING.fetch_sub(1, Ordering::AcqRel);
            });
            if waking.is_err() {
                WAKING.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

/// Threads that flush for a call that is late.
static WAKING: AtomicUsize = AtomicUsize::new(0);

/// Number of them at once: more would not help.
const WAKING_MAX: usize = 8;

impl Drop for Database {
    fn drop(&mut self) {
        let database = self.database.take();
        let _one_at_a_time = OPENING.lock();
        let is_closed = catch_unwind(AssertUnwindSafe(|| drop(database))).is_ok();
        if !is_closed {
            tracing::error!(folder = %self.path.display(), "the database could not be closed; what was acknowledged is durable");
        }
    }
}

/// Reads pairs from either end of a range.
pub(super) struct Pairs<'a> {
    path: &'a Path,
    pairs: Iter,
}

impl Iterator for Pairs<'_> {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        guarded(self.path, || self.pairs.next().transpose()).transpose()
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        guarded(self.path, || self.pairs.next_back().transpose()).transpose()
    }
}

/// Writes to a scratch database, and writes, truncates, reads and renames a file; looks whether all
/// that reached us, unless this process has seen it before.
pub(super) fn check_sync(data: &Path, lock_wait: Duration) -> Result<()> {
    if !REPLACES_SYNC || durable_syncs() > 0 {
        return Ok(());
    }
    let scratch = data.join("sync-check");
    remove_folder(&scratch)?;
    let monitor = Arc::new(Monitor::default());
    let unflushed_bytes_max = UNFLUSHED_BYTES_MAX_OF_STATE;
    let database =
        Database::open(&scratch, &DatabaseOptions { cache_bytes: 1 << 20, unflushed_bytes_max, lock_wait, monitor })?;
    let syncs = durable_syncs();
    database.insert(b"scratch", b"scratch")?;
    let written = database.flush(Some(syncs));
    drop(database);
    let renames = durable_renames();
    let (old, new) = (scratch.join("old"), scratch.join("new"));
    let guarded = guarded_calls();
    let change = || {
        let file = File::create_new(&old)?;
        file.write_at(b"scratch", 0)?;
        file.set_len(1)?;
        File::open(&old)?.read_at(&mut [0], 0)?;
        std::fs::rename(&old, &new)
    };
    change().map_err(|source| machine(&scratch, source))?;
    let is_replaced = durable_renames() > renames && guarded_calls() >= guarded + 3;
    remove_folder(&scratch)?;
    match written {
        Ok(()) if is_replaced => Ok(()),
        Err(StoreError::Machine { folder, source }) => Err(StoreError::Machine { folder, source }),
        _ => Err(StoreError::SyncNotDurable { folder: data.to_path_buf() }),
    }
}

/// The file that sled makes first in a database's folder.
const DATABASE_FILE: &str = "db";

const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Removes the snapshots that sled was writing when it was killed: it would take them for finished
/// ones and refuse to open. The folder's lock is held, so that none is being written now.
fn remove_unfinished_snapshots(path: &Path) -> Result<()> {
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

/// Gives other names to the settings and snapshots of a database that are damaged, whose content
/// sled makes again from its log. Whoever opens it compares what it then has with the anchor or
/// with a closing line.
fn set_aside_damaged(path: &Path, monitor: &Monitor) -> Result<()> {
    let names = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let names = names.map_err(|source| machine(path, source))?;
    let names: Vec<_> = names.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_whole = |name: &String, trailer_bytes: usize| {
        let file = path.join(name);
        let bytes = std::fs::read(&file).map_err(|source| machine(&file, source))?;
        Ok::<_, StoreError>(has_checksum(&bytes, trailer_bytes))
    };
    let mut damaged: Vec<&String> = Vec::new();
    for name in names.iter().filter(|name| *name == SETTINGS_FILE) {
        damaged.extend((!is_whole(name, SETTINGS_TRAILER_BYTES)?).then_some(name));
    }
    let snapshots: Vec<&String> = names.iter().filter(|name| name.starts_with(SNAPSHOT)).collect();
    for name in &snapshots {
        if !is_whole(name, SNAPSHOT_TRAILER_BYTES)? {
            // An older one would not fit the log.
            damaged.extend(snapshots);
            break;
        }
    }
    for name in damaged {
        let (from, to) = (path.join(name), path.join(format!("{SET_ASIDE}{name}")));
        std::fs::rename(&from, &to).map_err(|source| machine(&from, source))?;
        tracing::warn!(file = %from.display(), kept = %to.display(), "this file was damaged, and is made again from its database");
        monitor.set_aside(to);
    }
    Ok(())
}

/// Whether the last four bytes are the CRC-32 of those before the trailer, as sled writes them.
fn has_checksum(bytes: &[u8], trailer_bytes: usize) -> bool {
    let Some(covered) = bytes.len().checked_sub(trailer_bytes).filter(|covered| *covered > 0) else { return false };
    let checksum = bytes.last_chunk().copied().map(u32::from_le_bytes);
    checksum == Some(crc32fast::hash(&bytes[..covered]))
}

const SETTINGS_FILE: &str = "conf";
/// A checksum.
const SETTINGS_TRAILER_BYTES: usize = 4;
const SNAPSHOT: &str = "snap.";
/// A length and a checksum.
const SNAPSHOT_TRAILER_BYTES: usize = 12;
/// Before the name of a file that sled must not see.
const SET_ASIDE: &str = "damaged-";

/// Calls sled; turns its errors and panics into ours. What can be made again was looked at before
/// ([`set_aside_damaged`]), so what is damaged is the log.
fn guarded<Answer>(folder: &Path, call: impl FnOnce() -> Result<Answer, Error>) -> Result<Answer> {
    // State that sled leaves half changed in memory is not used again: after a panic in a write
    // nothing more is written, and pages are only ever replaced as a whole.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer.map_err(|error| translate(folder, error)),
        Err(_panic) => {
            Err(damaged(&folder.join(DATABASE_FILE), "the database panicked over what it found in this file"))
        }
    }
}

fn translate(folder: &Path, error: Error) -> StoreError {
    match error {
        Error::Io(error) if error.to_string().contains("could not acquire lock") => {
            StoreError::InUse { folder: folder.to_path_buf() }
        }
        // A file that ends too early, or says what none of ours does: sled's version is pinned, so
        // it never has to be another's.
        Error::Io(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => {
            damaged(&folder.join(DATABASE_FILE), &error.to_string())
        }
        Error::Io(error) => machine(folder, error),
        other => damaged(&folder.join(DATABASE_FILE), &other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_database_is_an_error_that_says_what_to_do() {
        let panics = || -> Result<(), Error> { panic!("as sled does") };
        let error = guarded(Path::new("data/journal"), panics).unwrap_err().to_string();
        assert!(error.starts_with("data/journal/db: damaged: the database panicked"), "{error}");
        assert!(error.contains("restore the last backup"), "{error}");
    }
}
