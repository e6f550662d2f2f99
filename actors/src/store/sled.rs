//! One sled database. The only file that names sled.
//!
//! sled 0.34.7 is used against its grain, for reasons that were measured:
//!
//! - Its `flush` is not durable on Linux; `durable_sync` makes it so, and every flush checks that it was.
//! - A flush wakes its seven threads, one of which writes and syncs a file that grows. So blocks are durable elsewhere first (`tail.rs`), and
//!   their chunks are inserted one by one; only a block too large for that is a batch, which is recovered whole or not at all.
//! - A batch locks out every other call into sled in this process, whichever database it belongs to, and so does a flush lock
//!   out a batch. So the state area uses no batches: a long value is written under a new generation, one chunk a call, and
//!   becomes the key's value with the single insert of its manifest. And a snapshot is put lazily, without a flush.
//! - sled's log is recovered up to the first gap. What was inserted later is never there without what was inserted before,
//!   which is why a manifest is never seen without its chunks.
//! - It relies on the name of its newest snapshot before that name is durable; `durable_sync` makes it so.
//! - It does not open what a power cut left of a database that it was making: its settings, half written, are damage to it for
//!   ever. So a database is made under another name, and gets its own when it is durable.
//! - It panics where it finds damage, and when its last sync fails while it is closed. Every call is caught and becomes an
//!   error that names the folder.
//! - Where it has no snapshot of its own yet, it takes a damaged byte for the end of its log and opens with a shorter journal,
//!   silently. No check in this file can tell that; `anchor.rs` can, and the closing lines in `folders.rs`.
//! - It re-reads at opening all that was written since it was last opened.
//! - It takes a read that fails while it opens for the end of its log. `durable_sync` keeps it from writing what it makes of that,
//!   and such a database is not used.
//! - It has no background flush here: what is durable is decided by this file alone. Its `mode` does nothing in this version.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::RangeBounds;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::sled::{Batch, Config, Db, Error, IVec, Iter};
use parking_lot::Mutex;

use super::StoreError;
use super::durable_sync::{REPLACES_SYNC, durable_renames, durable_syncs, guarded_calls, is_distrusted, trust_again};
use super::files::{create_folder, damaged, machine, remove_folder, sync_folder};

/// A sled database in a folder, and the place where its panics and errors become ours.
#[derive(Debug)]
pub(super) struct Database {
    /// There until it is closed.
    database: Option<Db>,
    path: PathBuf,
}

/// A key and its value.
pub(super) type Pair = (IVec, IVec);

impl Database {
    /// Opens what is there. Waits for whoever still has it open.
    pub(super) fn open(path: &Path, cache_bytes: u64, lock_wait: Duration) -> Result<Database, StoreError> {
        create_folder(path)?;
        remove_unfinished_snapshots(path)?;
        let file = path.join(DATABASE_FILE);
        if let Ok(file) = file.metadata() {
            trust_again(&file);
        }
        let deadline = Instant::now() + lock_wait;
        let database = loop {
            let config = Config::new().path(path).cache_capacity(cache_bytes).flush_every_ms(None);
            match guarded(path, || config.open()) {
                Err(StoreError::InUse { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
                opened => break opened?,
            }
        };
        let database = Database { database: Some(database), path: path.to_path_buf() };
        if is_distrusted(&file.metadata().map_err(|source| machine(&file, source))?) {
            return Err(machine(&file, io::Error::other("it could not be read while it was opened")));
        }
        sync_folder(path)?;
        Ok(database)
    }

    /// Opens what is there, or an empty database, which is durable before it has its name. It stays open under its new name:
    /// sled uses the old one only while it opens.
    pub(super) fn open_or_make(path: &Path, cache_bytes: u64, lock_wait: Duration) -> Result<Database, StoreError> {
        if path.exists() {
            return Database::open(path, cache_bytes, lock_wait);
        }
        let unfinished = path.with_extension("unfinished");
        remove_folder(&unfinished)?;
        let mut database = Database::open(&unfinished, cache_bytes, lock_wait)?;
        database.flush(None)?;
        sync_folder(&unfinished)?;
        std::fs::rename(&unfinished, path).map_err(|source| machine(path, source))?;
        path.parent().map_or(Ok(()), sync_folder)?;
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

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.call(|database| database.get(key))
    }

    /// Answers with the value that the key had before.
    pub(super) fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.wait(|database| database.insert(key, value))
    }

    /// Inserts one after the other.
    pub(super) fn insert_each<'a, Key: AsRef<[u8]>>(
        &self,
        mut pairs: impl Iterator<Item = (Key, &'a [u8])>,
    ) -> Result<(), StoreError> {
        self.wait(|database| pairs.try_for_each(|(key, value)| database.insert(key, value).map(drop)))
    }

    /// Inserts all of them or none.
    pub(super) fn insert_all<Key: AsRef<[u8]>>(&self, pairs: Vec<(Key, Vec<u8>)>) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        for (key, value) in pairs {
            batch.insert(key.as_ref(), value);
        }
        self.wait(|database| database.apply_batch(batch))
    }

    /// Answers with the value that the key had.
    pub(super) fn remove(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.call(|database| database.remove(key))
    }

    /// What lies in a range of keys, in their order, from either end.
    pub(super) fn range<Key: AsRef<[u8]>>(&self, keys: impl RangeBounds<Key>) -> Pairs<'_> {
        Pairs { path: &self.path, pairs: self.database().range(keys) }
    }

    /// What lies under the keys that begin with `prefix`.
    pub(super) fn with_prefix(&self, prefix: &[u8]) -> Pairs<'_> {
        Pairs { path: &self.path, pairs: self.database().scan_prefix(prefix) }
    }

    /// Makes everything written so far durable. `syncs` is the count from before something was written, if anything was: it
    /// must have risen. Without it the flush only waits for what others wrote.
    pub(super) fn flush(&self, syncs: Option<u64>) -> Result<(), StoreError> {
        self.wait(|database| database.flush())?;
        if REPLACES_SYNC && syncs.is_some_and(|before| durable_syncs() == before) {
            return Err(StoreError::SyncNotDurable { folder: self.path.clone() });
        }
        Ok(())
    }

    fn call<Answer>(&self, call: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer, StoreError> {
        guarded(&self.path, || call(self.database()))
    }

    /// A call that waits for the disk. When a write fails on one of the database's own threads, it notes the error and may forget to
    /// wake who waits; a flush from another thread sees the note and wakes them.
    fn wait<Answer>(&self, call: impl FnOnce(&Db) -> Result<Answer, Error>) -> Result<Answer, StoreError> {
        let _watched = watch(self.database().clone());
        self.call(call)
    }

    fn database(&self) -> &Db {
        self.database.as_ref().expect("it is only taken out when it is dropped")
    }
}

/// Who waits for the disk, and since when. One thread of the program looks after them.
#[derive(Default)]
struct Waiting {
    next: u64,
    calls: BTreeMap<u64, (Instant, Db)>,
}

static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);

/// A call that takes longer than this is looked after, and again after each as long.
const WAIT_PATIENCE: Duration = Duration::from_secs(1);

/// Ends the watch when it is dropped.
struct Watched(u64);

impl Drop for Watched {
    fn drop(&mut self) {
        let call = WAITING.lock().as_mut().and_then(|waiting| waiting.calls.remove(&self.0));
        // What it drops must not be dropped under the lock.
        drop(call);
    }
}

fn watch(database: Db) -> Watched {
    let mut waiting = WAITING.lock();
    if waiting.is_none() {
        let looking = std::thread::Builder::new().name("journal watch".to_owned()).spawn(look_after);
        *waiting = looking.ok().map(|_| Waiting::default());
    }
    let Some(waiting) = waiting.as_mut() else { return Watched(0) };
    waiting.next += 1;
    waiting.calls.insert(waiting.next, (Instant::now(), database));
    Watched(waiting.next)
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
            // It may wait as long as the call: it has a thread of its own.
            let waking = std::thread::Builder::new().name("journal wake".to_owned());
            let _cannot_be_helped = waking.spawn(move || {
                let _told_to_the_caller = catch_unwind(AssertUnwindSafe(|| database.flush()));
            });
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let database = self.database.take();
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
    type Item = Result<Pair, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        guarded(self.path, || self.pairs.next().transpose()).transpose()
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        guarded(self.path, || self.pairs.next_back().transpose()).transpose()
    }
}

/// Writes to a scratch database, and writes, truncates, reads and renames a file; looks whether all that reached us, unless this process has seen
/// it before.
pub(super) fn check_sync(data: &Path, lock_wait: Duration) -> Result<(), StoreError> {
    if !REPLACES_SYNC || durable_syncs() > 0 {
        return Ok(());
    }
    let scratch = data.join("sync-check");
    remove_folder(&scratch)?;
    let database = Database::open(&scratch, 1 << 20, lock_wait)?;
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
        // A file that ends too early, or says what none of ours does: sled's version is pinned, so it never has to be another's.
        Error::Io(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => {
            damaged(folder, &error.to_string())
        }
        Error::Io(error) => machine(folder, error),
        other => damaged(folder, &other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_database_is_an_error_that_says_what_to_do() {
        let panics = || -> Result<(), Error> { panic!("as sled does") };
        let error = guarded(Path::new("data/journal"), panics).unwrap_err().to_string();
        assert!(error.starts_with("data/journal: damaged: the database panicked"), "{error}");
        assert!(error.contains("restore the last backup"), "{error}");
    }
}
