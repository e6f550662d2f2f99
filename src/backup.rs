//! `centavo backup`: copies the new Records of the journal to a backup folder, from a stopped data
//! directory or through the server that has it open.

use std::path::Path;
use std::time::Instant;

use actors::backup::{BackupError, BackupRun, Frame, Taken};

use crate::config::BackupSettings;
use crate::journal_source::{JournalSource, JournalSourceFailure};
use crate::last_backup::LastBackup;
use crate::terminal::{self, advance};
use crate::verify::quietly;

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
    let (taken, source) = made.unwrap_or_else(|error| Err(BackupFailure::Panicked(error.to_string())))?;
    for line in summary(&out, &taken, &source, begun.elapsed().as_secs_f64()) {
        terminal::say(&line);
    }
    Ok(())
}

fn panicked<T>(message: String) -> Result<T, BackupFailure> {
    Err(BackupFailure::Panicked(message))
}

/// Makes the backup. Gives the source of its journal too.
fn make(settings: &BackupSettings) -> Result<(Taken, String), BackupFailure> {
    let journal = JournalSource::open(&settings.journal)?;
    let run = begin(&settings.out)?;
    let frames = journal.frames(run.head().next)?;
    let taken = take(run, frames)?;
    // A server notes the time of a backup by itself.
    if let JournalSource::Stopped { data, .. } = &journal {
        LastBackup::of(data).note();
    }
    Ok((taken, journal.to_string()))
}

fn begin(out: &Path) -> Result<BackupRun, BackupError> {
    let bar = terminal::bar("checking the backup", "Records");
    let run = BackupRun::begin(out, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    run
}

fn take(run: BackupRun, frames: impl Iterator<Item = Result<Frame, BackupError>>) -> Result<Taken, BackupError> {
    let bar = terminal::bar("copying the journal", "Records");
    let taken = run.take(frames, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    taken
}

fn summary(out: &Path, taken: &Taken, source: &str, seconds: f64) -> Vec<String> {
    let last = taken.head.next.0 - 1;
    let rows = [
        ["Records".to_owned(), format!("{} new, {} in all", terminal::count(taken.records), terminal::count(last))],
        [
            "Size".to_owned(),
            format!("{} new, {} in all", terminal::bytes(taken.bytes), terminal::bytes(taken.bytes_in_all)),
        ],
        ["Head".to_owned(), format!("sequence {last}, {:?}", taken.head.hash)],
        ["Taken from".to_owned(), source.to_owned()],
        ["Not in it".to_owned(), "the master key (CENTAVO_MASTER_KEY, or master.key beside the data)".to_owned()],
    ];
    let mut lines = vec![format!("{}: the backup is whole ({seconds:.1} s)", out.display())];
    lines.extend(terminal::aligned(&rows, 2).iter().map(|line| format!("  {line}")));
    lines
}
