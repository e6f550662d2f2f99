//! `centavo backup`: copies the new Records of the journal to a backup folder, from a stopped data
//! directory or through the server that has it open.

use std::path::Path;
use std::time::Instant;

use actors::backup::{BackupError, BackupResult, BackupRun, Frame};

use crate::commands::journal_source::{JournalSource, JournalSourceFailure};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::checked::BackupSettings;
use ops::last_backup::LastBackup;

/// Why no backup was made.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailure {
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalSourceFailure),
    /// The backup failed, or is damaged.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Reading the data made the program panic: the data is damaged.
    #[error("the backup could not go on: {0}")]
    Panicked(String),
}

/// Makes or continues a backup, and prints a summary.
pub async fn run(settings: BackupSettings) -> Result<(), BackupFailure> {
    let begun = Instant::now();
    let out = settings.out.clone();
    let made = tokio::task::spawn_blocking(move || quietly(|| make(&settings)).unwrap_or_else(panicked)).await;
    let made = made.unwrap_or_else(|error| Err(BackupFailure::Panicked(error.to_string())))?;
    for line in summary(&out, &made, begun.elapsed().as_secs_f64()) {
        terminal::say(&line);
    }
    Ok(())
}

fn panicked<T>(message: String) -> Result<T, BackupFailure> {
    Err(BackupFailure::Panicked(message))
}

/// A backup that was made.
struct NewBackup {
    taken: BackupResult,
    /// Where its journal was read.
    source: String,
}

fn make(settings: &BackupSettings) -> Result<NewBackup, BackupFailure> {
    let journal = JournalSource::open(&settings.journal)?;
    let mut run = begin(&settings.out)?;
    let frames = journal.frames(&run.heads().next())?;
    let taken = take(&mut run, frames)?;
    // A server notes the time of a backup by itself, unless it is read past it, in its database.
    let through = taken.heads.records();
    match &journal {
        JournalSource::Stopped { data, .. } => LastBackup::of(data).note(through),
        JournalSource::Database { .. } if settings.journal.data.is_dir() => {
            LastBackup::of(&settings.journal.data).note(through);
        }
        JournalSource::Database { .. } | JournalSource::Served { .. } => {}
    }
    Ok(NewBackup { taken, source: journal.to_string() })
}

pub(crate) fn begin(out: &Path) -> Result<BackupRun, BackupError> {
    let bar = terminal::bar("checking the backup", "Records");
    let run = BackupRun::begin(out, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    run
}

fn take(
    run: &mut BackupRun,
    frames: impl Iterator<Item = Result<Frame, BackupError>>,
) -> Result<BackupResult, BackupError> {
    let bar = terminal::bar("copying the journal", "Records");
    let taken = run.take(frames, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    taken
}

fn summary(out: &Path, made: &NewBackup, seconds: f64) -> Vec<String> {
    let NewBackup { taken, source } = made;
    let (last, all) = (taken.heads.cut().name(), taken.heads.records());
    let rows = [
        ["Records".to_owned(), format!("{} new, {} in all", terminal::count(taken.records), terminal::count(all))],
        [
            "Size".to_owned(),
            format!("{} new, {} in all", terminal::bytes(taken.bytes), terminal::bytes(taken.bytes_in_all)),
        ],
        ["Head".to_owned(), format!("sequence {last}, {:?}", taken.heads.hash())],
        ["Taken from".to_owned(), source.clone()],
        ["Not in it".to_owned(), "the master key (CENTAVO_MASTER_KEY, or master.key beside the data)".to_owned()],
    ];
    let mut lines = vec![format!("{}: the backup is whole ({seconds:.1} s)", out.display())];
    lines.extend(terminal::aligned(&rows, 2).iter().map(|line| format!("  {line}")));
    lines
}
