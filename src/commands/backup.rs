//! `centavo backup`: copies the new Records of the journal to a backup folder, from a stopped data
//! directory or through the server that has it open.

use std::path::Path;
use std::time::Instant;

use actors::backup::{BackupError, BackupResult, BackupRun, Frame};

use crate::commands::journal_source::JournalSource;
use crate::commands::terminal;
use crate::commands::verify::quietly;
use crate::commands::{Failure, backup_follow};
use crate::settings::args::BackupArgs;
use crate::settings::checked::JournalSettings;
use ops::last_backup::LastBackup;

/// Makes or continues a backup, and prints a summary.
pub async fn run(args: BackupArgs) -> Result<(), Failure> {
    let BackupArgs { journal, out, follow, trust } = args;
    let (begun, journal) = (Instant::now(), journal.settings()?);
    if let Some(url) = follow {
        return backup_follow::run(&url, &journal, out, trust.as_ref()).await;
    }
    let folder = out.clone();
    let work = move || quietly("the backup could not go on", || make(&journal, &folder));
    let made = tokio::task::spawn_blocking(work).await??;
    say_made(&out, &made, begun.elapsed().as_secs_f64());
    Ok(())
}

/// A backup that was made.
struct NewBackup {
    taken: BackupResult,
    /// Where its journal was read.
    source: String,
}

fn make(settings: &JournalSettings, out: &Path) -> Result<NewBackup, Failure> {
    let journal = JournalSource::open(settings)?;
    let mut run = begin(out)?;
    let frames = journal.backup_frames(&run.heads().next())?;
    let taken = take(&mut run, frames)?;
    // A server notes the time of a backup by itself, unless it is read past it, in its database.
    let through = taken.heads.records();
    match &journal {
        JournalSource::Stopped { data, .. } => LastBackup::of(data).note(through),
        JournalSource::Database { .. } if settings.data.is_dir() => {
            LastBackup::of(&settings.data).note(through);
        }
        JournalSource::Database { .. } | JournalSource::Served { .. } => {}
    }
    Ok(NewBackup { taken, source: journal.to_string() })
}

pub(crate) fn begin(out: &Path) -> Result<BackupRun, BackupError> {
    terminal::with_bar("checking the backup", "Records", |advance| BackupRun::begin(out, advance))
}

fn take(
    run: &mut BackupRun,
    frames: impl Iterator<Item = Result<Frame, BackupError>>,
) -> Result<BackupResult, BackupError> {
    terminal::with_bar("copying the journal", "Records", |advance| run.take(frames, advance))
}

fn say_made(out: &Path, made: &NewBackup, seconds: f64) {
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
    terminal::say_done(&format!("{}: the backup is whole", out.display()), seconds, &rows);
}
