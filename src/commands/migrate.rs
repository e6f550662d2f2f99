//! `centavo migrate`: moves the books from a data folder to a database, or back, or to another
//! folder or database.
//!
//! Every block is copied byte by byte and compared; then the books of the target are verified from
//! the first Record to the last. Only then the source is stamped, so that it is not served any
//! more, and after that the target becomes one that can be served. In this order at most one of the
//! two is ever served. A run that was cut off goes on when it is repeated.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use actors::migration::{MigrationResult, MovedValues, compare, copy};
use actors::verify::{VerifyProgress, verify};
use derived::extents::Extents;
use derived::heads::Heads;
use derived::seal::Keyring;
use store::{Part, StoreError};

use crate::commands::books_location::{Location, MoveTarget, leave, release};
use crate::commands::terminal;
use crate::commands::verify::quietly;
use crate::commands::{Failure, folder_files};
use crate::settings::args::MigrateArgs;
use crate::settings::secrets::{MASTER_KEY_FILE, SecretError, SecretSource, existing_master_key};
use web::credential::Secret;

/// Moves the books, and prints a summary.
pub fn run(args: MigrateArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let MigrateArgs { from, from_file, to, to_file, beside, database, master_key } = args;
    let place = |text, file| Ok::<_, Failure>(Location::parse(&named(text, file)?, &database)?);
    let from = place(from, from_file)?;
    let to = place(to, to_file)?;
    let (key, name) = (master_key.source()?, from.name());
    let from = &from;
    let moved =
        quietly(&format!("the migration could not go on. {AS_BEFORE}"), || make(from, to, beside.as_deref(), &key))?;
    say_moved(&name, &moved, begun.elapsed().as_secs_f64());
    Ok(())
}

/// The text of a place, from the command line or from a file.
fn named(text: Option<Secret>, file: Option<PathBuf>) -> Result<String, SecretError> {
    let source = text.map_or_else(|| SecretSource::File(file.unwrap_or_default()), SecretSource::Text);
    Ok(source.read("".as_ref(), "")?.map(|text| text.reveal().to_owned()).unwrap_or_default())
}

const NO_MASTER_KEY: &str = "the master key of the books is needed, to see that it opens them in the new place: set \
     CENTAVO_MASTER_KEY or CENTAVO_MASTER_KEY_FILE";
const AS_BEFORE: &str = "The target can't be served; the source is as it was";

fn as_before(error: impl std::fmt::Display) -> Failure {
    format!("{error}. {AS_BEFORE}").into()
}

/// Books that were moved.
struct MovedBooks {
    to: String,
    source: Heads,
    target: Heads,
    compared: MigrationResult,
    values: [usize; 3],
    /// Sealed parts that the key opened.
    opened: u64,
    beside: Beside,
    /// The folder that the target is; none for a database.
    folder: Option<PathBuf>,
}

/// What became of the files beside the journal.
enum Beside {
    /// These were copied to the folder.
    Copied(Vec<&'static str>, PathBuf),
    /// They are in that folder, as before.
    StayIn(PathBuf, Vec<&'static str>),
    /// They are where the servers of the database have them.
    Elsewhere,
}

fn make(from: &Location, to: Location, beside: Option<&Path>, key: &SecretSource) -> Result<MovedBooks, Failure> {
    if from.name() == to.name() {
        return Err("the source and the target are the same place".into());
    }
    if beside.is_some() && from.folder().is_some() == to.folder().is_some() {
        let text =
            "--beside is for moves between a folder and a database; between two of a kind there is no third folder";
        return Err(text.into());
    }
    if let (Some(from), Some(beside)) = (from.folder(), beside) {
        let found = folder_files::in_the_way(from, beside).map_err(|source| StoreError::machine(beside, source))?;
        if let Some(path) = found {
            let text = "it is there already, with another content; give an empty folder for --beside";
            return Err(format!("{}: {text}", path.display()).into());
        }
    }
    let key = match (from.folder(), key) {
        (None, SecretSource::Data) => None,
        (folder, key) => existing_master_key(key, folder.unwrap_or(Path::new("")))?,
    };
    let key = key.ok_or(NO_MASTER_KEY)?;
    let source = from.open_source(&to)?;
    let moved = move_all(from, &source, to, beside, key);
    release(&source);
    moved
}

fn move_all(
    from: &Location,
    source: &[Part],
    to: Location,
    beside: Option<&Path>,
    key: [u8; 32],
) -> Result<MovedBooks, Failure> {
    let heads = Heads::of_parts(source)?;
    if heads.records() == 0 {
        let text = "nothing is booked there, so there is nothing to move; serve the new place empty";
        return Err(format!("{}: {text}", from.name()).into());
    }
    let store = source[0].store();
    drop(Keyring::open_unchanged(key, Arc::clone(store))?);
    let mut target = to.open_target(from, Extents::of(&**store)?)?;
    let values = copy_all(source, &target)?;
    let compared = compare_all(source, &target)?;
    let opened = verify_all(target.parts(), key)?;
    target.settle()?;
    values.compare(target.parts()).map_err(as_before)?;
    let beside = copy_beside(from, &target, beside)?;
    let (to, folder, there) = (target.name(), target.folder().is_some(), Heads::of_parts(target.parts())?);
    leave(source, &to)?;
    target.finish()?;
    let folder = folder.then(|| PathBuf::from(&to));
    let values = values.counts();
    Ok(MovedBooks { to, source: heads, target: there, compared, values, opened, beside, folder })
}

fn copy_all(source: &[Part], target: &MoveTarget) -> Result<MovedValues, Failure> {
    let (there, all) = (Heads::of_parts(target.parts())?.records(), Heads::of_parts(source)?.records());
    let (there, all) = (terminal::count(there), terminal::count(all));
    terminal::say(&format!("Copying {all} Records to {}, which has {there} of them", target.name()));
    let copied = terminal::with_bar("copying the journal", "Records", |advance| copy(source, target.parts(), advance));
    copied.map_err(as_before)
}

fn compare_all(source: &[Part], target: &MoveTarget) -> Result<MigrationResult, Failure> {
    terminal::say("Comparing the blocks of both, byte by byte");
    let compared =
        terminal::with_bar("comparing the blocks", "Records", |advance| compare(source, target.parts(), advance));
    compared.map_err(as_before)
}

/// Verifies the books of the target, and opens its sealed parts. Gives how many the key opened.
fn verify_all(target: &[Part], key: [u8; 32]) -> Result<u64, Failure> {
    terminal::say("Verifying the books, every Record and every sealed part");
    let keyring = Keyring::open_unchanged(key, Arc::clone(target[0].store()))?;
    let verified = terminal::with_bar("verifying the books", "steps", |advance| {
        verify(target, Some(&keyring), &mut |progress| {
            let (VerifyProgress::Journal(done, total) | VerifyProgress::States(done, total)) = progress;
            advance(done, total);
        })
    });
    let verified = verified.map_err(|error| as_before(format!("the copy does not verify: {error}")))?;
    Ok(verified.sealed.opened.unwrap_or_default())
}

/// Takes the files beside the journal along, where it is known from where and to where.
fn copy_beside(from: &Location, target: &MoveTarget, beside: Option<&Path>) -> Result<Beside, Failure> {
    let (here, there) = match (from.folder(), target.folder(), beside) {
        (Some(here), Some(there), _) => (here.to_owned(), there),
        (Some(here), None, Some(beside)) => (here.to_owned(), beside.to_owned()),
        (None, Some(there), Some(beside)) => (beside.to_owned(), there),
        (Some(here), None, None) => return Ok(Beside::StayIn(here.to_owned(), folder_files::found(here))),
        (None, _, _) => return Ok(Beside::Elsewhere),
    };
    if target.folder().is_some() {
        // What an earlier run copied may be out of date.
        folder_files::remove(&there).map_err(|source| StoreError::machine(&there, source))?;
    }
    let names = folder_files::copy(&here, &there).map_err(|source| StoreError::machine(&there, source))?;
    Ok(Beside::Copied(names, if target.folder().is_some() { target.name().into() } else { there }))
}

fn say_moved(from: &str, moved: &MovedBooks, seconds: f64) {
    let MovedBooks { to, source, target, compared, values: [common, cursors, side_values], opened, beside, folder } =
        moved;
    let head = |heads: &Heads| format!("sequence {}, {:?}", heads.cut().name(), heads.hash());
    let count = |number: usize| terminal::count(number as u64);
    let (records, blocks) = (terminal::count(compared.heads.records()), terminal::count(compared.blocks));
    let rows = [
        ["Records", &format!("{records} in {blocks} blocks, each the same byte by byte")],
        [
            "Values",
            &format!(
                "{} sealed keys and stamps, {} cursors of webhooks, {} kept results and checkpoints",
                count(*common),
                count(*cursors),
                count(*side_values)
            ),
        ],
        ["Sealed parts", &format!("{} open with the master key", terminal::count(*opened))],
        ["Head before", &format!("{}, {from}", head(source))],
        ["Head now", &format!("{}, {to}", head(target))],
        ["Beside them", &told_of_beside(beside)],
        ["Made again", "index, read model, snapshots and balance files, at the first start"],
    ];
    let rows = rows.map(|[name, value]| [name.to_owned(), value.to_owned()]);
    terminal::say_done(&format!("{to}: the books are whole, and are here now"), seconds, &rows);
    let key = match folder {
        Some(folder) => folder.join(MASTER_KEY_FILE).display().to_string(),
        None => "CENTAVO_MASTER_KEY_FILE, on every machine. It is not in the database".to_owned(),
    };
    terminal::say(&format!(
        "  {from} is not served any more. Keep it until a backup of the new place is made.\n  \
         To serve the new place, give it the master key that the data was made with: CENTAVO_MASTER_KEY, or\n  {key}"
    ));
}

fn told_of_beside(beside: &Beside) -> String {
    let list = |names: &[&str]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    match beside {
        Beside::Copied(names, folder) => format!("{} copied to {}", list(names), folder.display()),
        Beside::StayIn(folder, names) if names.is_empty() => format!("nothing, in {}", folder.display()),
        Beside::StayIn(folder, names) => {
            format!("{} stay in {}: serve with --data there, or copy them", list(names), folder.display())
        }
        Beside::Elsewhere => {
            "not copied: operator.token, sandbox and last-backup of the data folder that the database's server had"
                .to_owned()
        }
    }
}
