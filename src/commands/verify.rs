//! `centavo verify`: checks a stopped data directory, a database as it is now, or the journal that
//! a running server sends (`--live`), from its first Record to its last.
//!
//! Prints what was checked on standard output, or the first defect in one line on standard error.
//! It writes no Record, and makes no data directory where there is none. It needs the master key
//! only to open the sealed parts.

use std::any::Any;
use std::cell::RefCell;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use actors::verify::{
    Promise, SealedParts, THREADS, VerificationResult, VerifyError, VerifyProgress, verify_against, without_gaps,
};
use derived::checkpoint::{SignedCheckpoint, hex};
use derived::extents::ExtentError;
use derived::seal::Keyring;
use indicatif::ProgressBar;
use store::{Part, SledOptions, StoreError, priority};
use wire::reais::reais;

use crate::commands::journal_source::JournalSource;
use crate::commands::served_journal::ServedJournal;
use crate::commands::{Failure, terminal};
use crate::server::checkpoints;
use crate::settings::checked::JournalSettings;
use crate::settings::secrets::{SecretSource, existing_master_key};
use crate::settings::store_choice::{Store, folder, snapshot};
use web::views::checkpoint::CheckpointView;

/// How long to wait for a server that is stopping.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Verifies a data directory, also against a file of checkpoints, and prints a summary. Without
/// such a file it is compared with the checkpoints that a server wrote into the directory.
pub fn run(data: &Path, store: &Store, master_key: &SecretSource, against: Option<&Path>) -> Result<(), Failure> {
    let place = if store.is_postgres() { store.place().to_owned() } else { data.display().to_string() };
    let open = || opened(data, store);
    summarize(data, (&place, false), master_key, against, open)
}

/// The same with the journal that a running server sends; without a server, with the directory. It
/// runs when others leave time.
pub fn run_live(journal: &JournalSettings, master_key: &SecretSource, against: Option<&Path>) -> Result<(), Failure> {
    priority::run_last();
    let source = JournalSource::open(journal)?;
    let (place, is_served) = (source.to_string(), matches!(source, JournalSource::Served { .. }));
    let open = || match source {
        JournalSource::Stopped { parts, .. } | JournalSource::Database { parts, .. } => Ok(parts),
        served @ JournalSource::Served { .. } => ServedJournal::parts(served),
    };
    summarize(&journal.data, (&place, is_served), master_key, against, open)
}

/// Verifies what `open` gives, and prints a summary.
fn summarize(
    data: &Path,
    (place, is_served): (&str, bool),
    master_key: &SecretSource,
    against: Option<&Path>,
    open: impl FnOnce() -> Result<Vec<Part>, Failure>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let own = data.join(checkpoints::FOLDER);
    let checkpoints = match against {
        Some(path) => given(path)?,
        None if own.is_dir() => checkpoints_in(&own)?,
        None => Vec::new(),
    };
    let checked = quietly("the check could not go on", || check(&open()?, data, master_key, &checkpoints));
    let CheckResult { verified, skipped, set_aside } =
        checked.map_err(|failure| if against.is_none() { of_own(failure, &own) } else { failure })?;
    say_verified((place, is_served), &verified, skipped, begun.elapsed());
    say_compared(&checkpoints, against.is_none().then_some(&own));
    for file in set_aside {
        terminal::say(&format!("  damaged, made again, and kept: {}", file.display()));
    }
    Ok(())
}

/// Says with which checkpoints the journal was compared; `own` is the folder beside it, where they
/// are from there.
fn say_compared(checkpoints: &[SignedCheckpoint], own: Option<&PathBuf>) {
    let Some(first) = checkpoints.first() else {
        terminal::say("  not compared with any checkpoint (--against): that nothing was exchanged is not shown");
        return;
    };
    let count = terminal::count(checkpoints.len() as u64);
    terminal::say(&format!("  {count} checkpoints agree, signed with the key"));
    terminal::say(&format!("  {}", hex(&first.public_key)));
    if let Some(own) = own {
        terminal::say(&format!(
            "  They are those in {}: that nobody exchanged them too, only others show (--against)",
            own.display()
        ));
    }
}

/// Names the folder, where a difference is from its checkpoints.
fn of_own(failure: Failure, folder: &Path) -> Failure {
    match failure.downcast_ref::<VerifyError>().and_then(VerifyError::promise) {
        Some(Promise::Checkpoint) => format!("{failure}; the checkpoints are those in {}", folder.display()).into(),
        _ => failure,
    }
}

/// The text of a file, or of the files `*.json` of a folder in the order of their names.
fn text_of(path: &Path) -> std::io::Result<Vec<u8>> {
    if !path.is_dir() {
        return std::fs::read(path);
    }
    let mut files = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files.iter().map(std::fs::read).collect::<std::io::Result<Vec<_>>>()?.concat())
}

/// Checkpoints of the caller: at least one, and none missing between them.
fn given(path: &Path) -> Result<Vec<SignedCheckpoint>, Failure> {
    let checkpoints = checkpoints_in(path)?;
    if checkpoints.is_empty() {
        return Err(format!("the checkpoints in {}: there is none in it", path.display()).into());
    }
    without_gaps(&checkpoints)?;
    Ok(checkpoints)
}

/// The checkpoints of a file or folder: JSON objects, one after the other.
fn checkpoints_in(path: &Path) -> Result<Vec<SignedCheckpoint>, Failure> {
    let failure = |defect: String| format!("the checkpoints in {}: {defect}", path.display());
    let text = text_of(path).map_err(|error| failure(error.to_string()))?;
    let mut checkpoints = Vec::new();
    for found in serde_json::Deserializer::from_slice(&text).into_iter::<CheckpointView>() {
        let view = found.map_err(|error| failure(error.to_string()))?;
        let number = checkpoints.len() + 1;
        checkpoints.push(view.read().ok_or_else(|| failure(format!("checkpoint {number} has wrong digits")))?);
    }
    Ok(checkpoints)
}

/// What `verify` prints.
#[derive(Debug)]
struct CheckResult {
    verified: VerificationResult,
    /// The sealed parts were skipped for want of a key.
    skipped: bool,
    /// Damaged files that were made again.
    set_aside: Vec<PathBuf>,
}

/// The partitions of a stopped data directory, or of a database as it is now.
fn opened(data: &Path, store: &Store) -> Result<Vec<Part>, Failure> {
    let parts = match store {
        Store::Sled => folder(data, &SledOptions { lock_wait: LOCK_WAIT, ..SledOptions::default() }),
        Store::Postgres(options) => snapshot(options),
    };
    parts.map_err(|error| match error {
        ExtentError::Store(StoreError::InUse { folder }) => {
            let place = folder.display();
            format!("{place}: in use by another process; stop it, or verify what it sends, with --live").into()
        }
        ExtentError::Store(error) => VerifyError::from(error).into(),
        error => VerifyError::from(error).into(),
    })
}

/// Verifies partitions; the master key may be in the data directory.
fn check(
    parts: &[Part],
    data: &Path,
    master_key: &SecretSource,
    checkpoints: &[SignedCheckpoint],
) -> Result<CheckResult, Failure> {
    let key = existing_master_key(master_key, data)?;
    let keyring = key.map(|key| Keyring::open_unchanged(key, Arc::clone(parts[0].store()))).transpose();
    let keyring = keyring.map_err(VerifyError::from)?;
    // Each partition is read, and then its states are replayed: one bar at a time.
    let mut bar: Option<(bool, ProgressBar)> = None;
    let verified = verify_against(parts, keyring.as_ref(), checkpoints, &mut |progress| {
        let (is_of_journal, done, total) = match progress {
            VerifyProgress::Journal(done, total) => (true, done, total),
            VerifyProgress::States(done, total) => (false, done, total),
        };
        if let Some((_, other)) = bar.take_if(|(before, _)| *before != is_of_journal) {
            other.finish_and_clear();
        }
        let (_, bar) = bar.get_or_insert_with(|| match is_of_journal {
            true => (true, terminal::bar("checking the journal", "Records")),
            false => (false, terminal::bar("replaying the states", "steps")),
        });
        bar.set_length(total);
        bar.set_position(done);
    });
    if let Some((_, bar)) = bar {
        bar.finish_and_clear();
    }
    let set_aside = parts[0].store().monitor().files_set_aside();
    Ok(CheckResult { verified: verified?, skipped: keyring.is_none(), set_aside })
}

thread_local! {
    /// The last panic of this thread's work, where that is to print none.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`, and gives the message of a panic as the error. Nothing is printed by the panic:
/// damage makes the database panic, the store turns that into its own error, and the printed
/// message would only hide it. Panics of other work are printed as ever.
pub(crate) fn quietly<T>(what_ended: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let note = |last: &RefCell<Option<String>>| {
                let mut last = last.try_borrow_mut().ok()?;
                *last.as_mut()? = info.to_string().replace('\n', " ");
                Some(())
            };
            // A second panic in here would abort the process.
            let is_noted = PANIC.try_with(note).ok().flatten().is_some();
            // Their panics are errors of the store, or go on in the caller.
            let goes_on = |name: &str| name.starts_with("sled") || name.starts_with(THREADS);
            if !is_noted && !thread::current().name().is_some_and(goes_on) {
                before(info);
            }
        }));
    });
    PANIC.set(Some(String::new()));
    let done = panic::catch_unwind(panic::AssertUnwindSafe(work));
    let message = PANIC.take().unwrap_or_default();
    done.unwrap_or_else(|panic| {
        // That of another thread was not noted here.
        let message = if message.is_empty() { panic_text(&*panic) } else { &message };
        Err(format!("{what_ended}: {message}").into())
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied()).unwrap_or_default()
}

fn say_verified((place, is_served): (&str, bool), verified: &VerificationResult, skipped: bool, took: Duration) {
    let row = |label: &str, text: String| [label.to_owned(), text];
    let count = terminal::count;
    let unusable = |unusable: u64| match unusable {
        0 => String::new(),
        unusable => format!("; {} unusable, to be made again", count(unusable)),
    };
    let (last, derived) = (verified.heads.cut().name(), &verified.derived);
    let mut rows = vec![
        row("Records", format!("{} in {} blocks", count(verified.records), count(verified.blocks))),
        row("Ledgers", count(verified.ledgers)),
        row(
            "Snapshots",
            format!("{}, each equal to a replay{}", count(verified.snapshots), unusable(verified.snapshots_unusable)),
        ),
        row(
            "Index",
            format!("{} runs, each as the journal makes it{}", count(derived.runs), unusable(derived.runs_unusable)),
        ),
        row(
            "Readers' view",
            format!(
                "{} pages, each with the journal's balances{}",
                count(derived.pages),
                unusable(derived.pages_unusable)
            ),
        ),
        row(
            "Balance files",
            format!(
                "{}, each with the journal's balances{}",
                count(derived.balance_files),
                unusable(derived.balance_files_unusable)
            ),
        ),
        row("Debits", format!("R$ {}", reais(verified.debits))),
        row("Credits", format!("R$ {}", reais(verified.credits))),
        row("Idempotency keys", count(verified.idempotency_keys)),
        row("Sealed parts", sealed(&verified.sealed, skipped)),
        row("Head", format!("sequence {last}, {:?}", verified.heads.hash())),
        row("Size", terminal::bytes(verified.size_bytes)),
        row("Not checked", "what is derived: snapshots, index, readers' view, balance files".to_owned()),
    ];
    let is_of_served = |label: &str| !["Snapshots", "Index", "Readers' view", "Balance files", "Size"].contains(&label);
    rows.retain(|[label, _]| if is_served { is_of_served(label) } else { label != "Not checked" });
    terminal::say_done(&format!("{place}: the books are whole"), took.as_secs_f64(), &rows);
}

fn sealed(parts: &SealedParts, skipped: bool) -> String {
    let found = terminal::count(parts.found);
    if skipped {
        return format!(
            "{found}, not opened: there is no master key (CENTAVO_MASTER_KEY, CENTAVO_MASTER_KEY_FILE, or master.key in the data \
             directory)"
        );
    }
    let opened = terminal::count(parts.opened.unwrap_or_default());
    format!("{found}: {opened} open, {} erased with their month's key", terminal::count(parts.erased))
}

#[cfg(test)]
mod tests {
    use store::SledStore;

    use super::*;

    #[test]
    fn a_wrong_path_is_an_error_and_makes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let error = opened(&place.path().join("nowhere"), &Store::Sled).unwrap_err().to_string();
        assert!(error.contains("there is no journal here"), "{error}");
        let error = opened(place.path(), &Store::Sled).unwrap_err().to_string();
        assert!(error.contains("there is no journal here"), "{error}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_server_that_runs_is_named() {
        let place = tempfile::tempdir().unwrap();
        let store = SledStore::open(place.path(), &SledOptions::default()).unwrap();
        let error = opened(place.path(), &Store::Sled).unwrap_err().to_string();
        assert!(error.contains("in use by another process; stop it, or verify what it sends, with --live"), "{error}");
        drop(store);
        let parts = opened(place.path(), &Store::Sled).unwrap();
        check(&parts, place.path(), &SecretSource::Data, &[]).unwrap();
        assert!(!place.path().join("master.key").exists());
    }

    #[test]
    fn a_panic_is_one_more_failure() {
        let failure = quietly("it ended", || -> Result<(), Failure> { panic!("sums do not fit") }).unwrap_err();
        let failure = failure.to_string();
        assert!(failure.starts_with("it ended: ") && failure.contains("sums do not fit"), "{failure}");
        assert!(!failure.contains('\n'), "{failure}");
    }
}
