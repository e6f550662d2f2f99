//! `centavo restore`: makes a data directory from a backup, and adds the later Records of a second
//! copy of the journal, if one is given.
//!
//! The directory is made beside its place under another name, and is renamed when it is complete. A
//! restore that is interrupted leaves no half journal, and can be run again. The backup holds the
//! keys, except the master key.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actors::backup::{BackupError, BackupFolder, Restored, Tail, TailTaken, restore};
use actors::store::{Part, Partition, SledOptions, SledStore, StoreError};

use crate::config::{ConfigError, RestoreArgs};
use crate::terminal;
use crate::verify::{self, VerifyFailure, quietly};

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    /// The store or the backup failed, or is damaged.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The data directory exists and is not empty.
    #[error("{}: not empty; restore to a new directory, and put master.key there afterwards", data.display())]
    NotEmpty {
        /// The data directory.
        data: PathBuf,
    },
    /// The second copy can't be opened. Nothing was restored.
    #[error("the second copy does not open: {0}; without --tail the backup alone is restored")]
    Tail(BackupError),
    /// The master key is set twice.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The restored data does not verify.
    #[error(transparent)]
    Verify(#[from] VerifyFailure),
    /// Reading the data made the program panic: the data is damaged.
    #[error("the restore could not go on: {0}")]
    Panicked(String),
}

impl From<StoreError> for RestoreFailure {
    fn from(error: StoreError) -> Self {
        RestoreFailure::Backup(error.into())
    }
}

/// Restores, prints a summary, and verifies the result.
pub fn run(args: &RestoreArgs) -> Result<(), RestoreFailure> {
    let master_key = args.master_key.source()?;
    let restored = quietly(|| make(args)).unwrap_or_else(|message| Err(RestoreFailure::Panicked(message)))?;
    for line in summary(args, &restored) {
        terminal::say(&line);
    }
    Ok(verify::run(&args.data, &master_key)?)
}

fn make(args: &RestoreArgs) -> Result<Restored, RestoreFailure> {
    let backup = BackupFolder::open(&args.from)?;
    let data = std::path::absolute(&args.data).map_err(|source| machine(&args.data, source))?;
    if !is_free(&data)? {
        return Err(RestoreFailure::NotEmpty { data });
    }
    let unfinished = unfinished(&data);
    remove_cut_restore(&unfinished)?;
    let second = args.tail.as_deref().map(Second::open).transpose().map_err(RestoreFailure::Tail)?;
    let restored = fill(&backup, second.as_ref(), &unfinished);
    if restored.is_err() {
        let _the_next_run_removes_it = fs::remove_dir_all(&unfinished);
        return restored;
    }
    fs::rename(&unfinished, &data).map_err(|source| machine(&data, source))?;
    let parent = data.parent().unwrap_or(&data);
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(|source| machine(parent, source))?;
    restored
}

fn fill(backup: &BackupFolder, second: Option<&Second>, folder: &Path) -> Result<Restored, RestoreFailure> {
    let store = Part::take(Arc::new(SledStore::open(folder, &SledOptions::default())?), Partition(0))?;
    let bar = terminal::bar("restoring the journal", "Records");
    let restored = restore(backup, second.map(Second::tail), &store, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(restored?)
}

/// A second copy of the journal, which may go further than the backup.
enum Second {
    Backup(BackupFolder),
    Data(Part),
}

impl Second {
    fn open(path: &Path) -> Result<Self, BackupError> {
        if BackupFolder::is_one(path) {
            return BackupFolder::open(path).map(Second::Backup);
        }
        // It may have lost its end: the Records that are left and continue the backup are used.
        let options = SledOptions { checks_end: false, ..SledOptions::default() };
        let store = Arc::new(SledStore::open_existing(path, &options)?);
        Ok(Second::Data(Part::reading(store, Partition(0))))
    }

    fn tail(&self) -> Tail<'_> {
        match self {
            Second::Backup(folder) => Tail::Backup(folder),
            Second::Data(store) => Tail::Store(store),
        }
    }
}

/// Whether a directory is empty or absent.
fn is_free(data: &Path) -> Result<bool, RestoreFailure> {
    match fs::read_dir(data) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(machine(data, source).into()),
    }
}

/// The name of a directory while it is being restored.
fn unfinished(data: &Path) -> PathBuf {
    let mut name = data.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    data.with_file_name(name)
}

/// Removes the files of an interrupted restore. Fails if that restore is still running.
fn remove_cut_restore(unfinished: &Path) -> Result<(), BackupError> {
    let in_use = || StoreError::InUse { folder: unfinished.to_path_buf() };
    let failed = |source| machine(unfinished, source);
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

fn machine(path: &Path, source: io::Error) -> BackupError {
    BackupError::Machine { path: path.to_path_buf(), source }
}

fn summary(args: &RestoreArgs, restored: &Restored) -> Vec<String> {
    let last = restored.head.next.0 - 1;
    let mut lines = vec![format!("{}: restored through sequence {last}", args.data.display())];
    if let (Some(path), Some(tail)) = (&args.tail, &restored.tail) {
        lines.extend(told_of_tail(path, tail));
    }
    lines.push("  To serve it, give it the master key that the data was made with: CENTAVO_MASTER_KEY, or".to_owned());
    lines.push(format!("  {}", args.data.join("master.key").display()));
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
