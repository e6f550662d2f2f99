//! `centavo restore`: makes a data directory from a backup, and adds the later Records of a second
//! copy of the journal, if one is given.
//!
//! The directory is made beside its place under another name, and is renamed when it is complete. A
//! restore that is interrupted leaves no half journal, and can be run again. The backup holds the
//! keys, except the master key.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use actors::backup::{BackupError, BackupFolder, RestoreResult, Tail, TailTaken, restore};
use derived::extents::Extents;
use store::place_stamps::stamp_whole;
use store::{Part, Remains, SledOptions, SledStore, Store as AnyStore, StoreError, rename_durably};

use crate::commands::new_folder::{is_free, unfinished};
use crate::commands::terminal;
use crate::commands::verify::quietly;
use crate::commands::{Failure, verify};
use crate::settings::args::RestoreArgs;
use crate::settings::store_choice::{Store, open_empty};

/// Restores, prints a summary, and verifies the result.
pub fn run(RestoreArgs { from, data, tail, store, master_key }: RestoreArgs) -> Result<(), Failure> {
    let (store, master_key) = (store.store()?, master_key.source()?);
    let tail = tail.as_deref();
    let restored = quietly("the restore could not go on", || make(&from, &data, tail, &store))?;
    for line in summary(&data, tail, &store, &restored) {
        terminal::say(&line);
    }
    verify::run(&data, &store, &master_key, None)
}

fn make(from: &Path, data: &Path, tail: Option<&Path>, store: &Store) -> Result<RestoreResult, Failure> {
    let backup = BackupFolder::open(from)?;
    let second = || tail.map(|tail| Second::open(tail, &backup)).transpose().map_err(no_tail);
    if let Store::Postgres(options) = store {
        let not_empty = "there is a journal in it, or the beginning of one; restore to an empty database";
        let not_empty = || format!("{}: {not_empty}", store.place());
        let second = second()?;
        let empty = open_empty(options, "restore into an empty database")?.ok_or_else(not_empty)?;
        let restored = fill(&backup, second.as_ref(), &empty)?;
        stamp_whole(&*empty)?;
        return Ok(restored);
    }
    let data = std::path::absolute(data).map_err(|source| StoreError::machine(data, source))?;
    if !is_free(&data).map_err(|source| StoreError::machine(&data, source))? {
        let text = "not empty; restore to a new directory, and put master.key there afterwards";
        return Err(format!("{}: {text}", data.display()).into());
    }
    let unfinished = unfinished(&data, ".restoring");
    remove_cut_restore(&unfinished)?;
    let second = second()?;
    let store: Arc<dyn AnyStore> = Arc::new(SledStore::open(&unfinished, &SledOptions::default())?);
    let restored = fill(&backup, second.as_ref(), &store);
    drop(store);
    if restored.is_err() {
        let _the_next_run_removes_it = fs::remove_dir_all(&unfinished);
        return restored;
    }
    rename_durably(&unfinished, &data).map_err(|source| StoreError::machine(&data, source))?;
    restored
}

fn no_tail(error: BackupError) -> String {
    format!("the second copy does not open: {error}; without --tail the backup alone is restored")
}

fn fill(backup: &BackupFolder, second: Option<&Second>, store: &Arc<dyn AnyStore>) -> Result<RestoreResult, Failure> {
    let second = second.map(Second::tail);
    Ok(terminal::with_bar("restoring the journal", "Records", |advance| restore(backup, second, store, advance))?)
}

/// A second copy of the journal, which may go further than the backup.
enum Second {
    Backup(BackupFolder),
    Data(Vec<Part>, Remains),
}

impl Second {
    /// Opens a second copy of what `backup` is of.
    fn open(path: &Path, backup: &BackupFolder) -> Result<Self, BackupError> {
        if BackupFolder::is_one(path) {
            return BackupFolder::open(path).map(Second::Backup);
        }
        let remains = Remains::of_log(path)?;
        // It may have lost its end: the Records that are left and continue the backup are used.
        let options = SledOptions { checks_end: false, ..SledOptions::default() };
        let store: Arc<dyn AnyStore> = match SledStore::open_existing(path, &options) {
            Ok(store) => Arc::new(store),
            Err(error @ (StoreError::Damaged { .. } | StoreError::Machine { .. })) => {
                return Ok(Second::Data(Vec::new(), remains.without_store(path, error)));
            }
            Err(error) => return Err(error.into()),
        };
        // Where its values are damaged, it has the partitions of the backup.
        let extents = Extents::of(&*store).or_else(|_| backup.extents())?;
        Ok(Second::Data(extents.reading(&store), remains))
    }

    fn tail(&self) -> Tail<'_> {
        match self {
            Second::Backup(folder) => Tail::Backup(folder),
            Second::Data(parts, remains) => Tail::Folder(parts, remains),
        }
    }
}

/// Removes the files of an interrupted restore. Fails if that restore is still running.
fn remove_cut_restore(unfinished: &Path) -> Result<(), BackupError> {
    let in_use = || StoreError::InUse { folder: unfinished.to_path_buf() };
    let failed = |source| BackupError::from(StoreError::machine(unfinished, source));
    match File::open(unfinished.join("lock")) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use().into()),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(failed(source)),
    }
    match fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

fn summary(data: &Path, tail: Option<&Path>, store: &Store, restored: &RestoreResult) -> Vec<String> {
    let last = restored.heads.cut().name();
    let place = if store.is_postgres() { store.place().to_owned() } else { data.display().to_string() };
    let mut lines = vec![format!("{place}: restored through sequence {last}")];
    if let (Some(path), Some(tail)) = (tail, &restored.tail) {
        lines.extend(told_of_tail(path, tail));
    }
    lines.push("  To serve it, give it the master key that the data was made with: CENTAVO_MASTER_KEY, or".to_owned());
    lines.push(match store {
        Store::Sled => format!("  {}", data.join("master.key").display()),
        Store::Postgres(_) => "  CENTAVO_MASTER_KEY_FILE".to_owned(),
    });
    lines
}

fn told_of_tail(path: &Path, tail: &TailTaken) -> Vec<String> {
    let count = terminal::count(tail.records);
    let mut lines = vec![format!("  {count} Records of it from the second copy {}", path.display())];
    if let Some(error) = &tail.stopped {
        lines.push(format!("  The second copy could be read no further: {error}"));
    }
    if let Some(error) = &tail.without_keys {
        lines
            .push(format!("  The keys are those of the backup, since those of the second copy can't be read: {error}"));
    }
    lines
}
