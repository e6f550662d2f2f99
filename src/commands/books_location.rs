//! Location of the books: a data folder or a database, as the source and as the target of a
//! migration.
//!
//! A source is taken from whoever had it, so that nothing is booked behind the copy. A target is
//! stamped, or has another name, until it is whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use derived::extents::{ExtentError, Extents};
use store::place_stamps::{admit_reading, filling, moved, stamp_filling, stamp_moved, stamp_whole};
use store::{
    Epoch, Head, Part, Partition, PostgresOptions, PostgresStore, SledOptions, SledStore, Store, StoreError,
    rename_durably,
};

use crate::commands::Failure;
use crate::commands::new_folder::{is_free, unfinished};
use crate::settings::store_choice::{self, DatabaseArgs, StoreSettingsError, is_address};
use nodes::takeover::{Idle, take_idle};

/// How long to wait for a server that is stopping.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Ending of a folder that is not whole yet.
const MOVING: &str = ".moving";

/// What the stamp of a target begins with: other commands fill databases too.
const COMMAND: &str = "centavo migrate --from ";

/// Where books are.
#[derive(Debug)]
pub(crate) enum Location {
    /// A data folder, by its absolute path.
    Folder(PathBuf),
    /// A database.
    Database(Box<PostgresOptions>),
}

impl Location {
    /// A folder, or the address of a database.
    pub(crate) fn parse(text: &str, database: &DatabaseArgs) -> Result<Self, StoreSettingsError> {
        if is_address(text) {
            return Ok(Location::Database(Box::new(database.options(text)?)));
        }
        Ok(Location::Folder(std::path::absolute(text).unwrap_or_else(|_| text.into())))
    }

    /// Its name, without a password.
    pub(crate) fn name(&self) -> String {
        match self {
            Location::Folder(folder) => folder.display().to_string(),
            Location::Database(options) => options.address.place().to_owned(),
        }
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Location::Folder(folder) => Some(folder),
            Location::Database(_) => None,
        }
    }

    /// Opens the books, all their partitions. Meanwhile no server can open them.
    pub(crate) fn open(&self) -> Result<Vec<Part>, Failure> {
        let parts = match self {
            Location::Folder(folder) => {
                let options = SledOptions { lock_wait: LOCK_WAIT, ..SledOptions::default() };
                store_choice::folder(folder, &options).map_err(in_use)?
            }
            Location::Database(options) => {
                // A wrong address is an error, and makes no tables.
                drop(PostgresStore::open_snapshot(options)?);
                let store = Arc::new(PostgresStore::open(options)?);
                let extents = Extents::of(&*store)?;
                self.take(store, &extents)?
            }
        };
        admit_reading(&**parts[0].store()).inspect_err(|_| release(&parts))?;
        Ok(parts)
    }

    /// Opens the source of a move to `to`. One that was moved away is refused, unless it was to
    /// that place, and the move was cut off at its end.
    pub(crate) fn open_source(&self, to: &Location) -> Result<Vec<Part>, Failure> {
        let parts = self.open()?;
        let stamp = moved(&**parts[0].store()).inspect_err(|_| release(&parts))?;
        match stamp.filter(|stamp| *stamp != to.name()) {
            None => Ok(parts),
            Some(to) => {
                release(&parts);
                Err(format!("{}: the books were moved from here to {to}. Move them on from there", self.name()).into())
            }
        }
    }

    /// Opens a place that is empty, or that an earlier run has begun to fill, with as many
    /// partitions as the source has.
    pub(crate) fn open_target(self, from: &Location, extents: Extents) -> Result<MoveTarget, Failure> {
        let command = format!("{COMMAND}{}", from.name());
        match &self {
            Location::Folder(folder) => {
                if !is_free(folder).map_err(|source| StoreError::machine(folder, source))? {
                    return Err(self.not_empty());
                }
                // Nothing is made where there is no room.
                let (found, most) = (extents.partitions() as usize, SledStore::PARTITIONS_MAX);
                if found > most {
                    let text = "partitions, and a store on one machine has";
                    return Err(format!("{}: the books have {found} {text} {most} at most", self.name()).into());
                }
                let parts = open_unfinished(folder, &extents).map_err(|error| in_use(error.into()))?;
                stamp_filling(&**parts[0].store(), &command)?;
                Ok(MoveTarget { place: self, extents, parts })
            }
            Location::Database(options) => {
                let store = Arc::new(PostgresStore::open(options)?);
                let begun = filling(&*store)?;
                match &begun {
                    Some(other) if !other.starts_with(COMMAND) => {
                        let text = "has begun to fill it; drop this database, and begin with an empty one";
                        return Err(format!("{}: `{other}` {text}", self.name()).into());
                    }
                    None if !is_empty(&*store)? => return Err(self.not_empty()),
                    _ => {}
                }
                stamp_filling(&*store, &command)?;
                let stamped: Arc<dyn Store> = Arc::<PostgresStore>::clone(&store);
                let parts = self.take(store, &extents).inspect_err(|_| {
                    if begun.is_none() {
                        // A server took it in this moment: it is not ours to stamp.
                        let _stays = stamp_whole(&*stamped);
                    }
                })?;
                Ok(MoveTarget { place: self, extents, parts })
            }
        }
    }

    fn take(&self, store: Arc<PostgresStore>, extents: &Extents) -> Result<Vec<Part>, Failure> {
        match take_idle(&store, extents)? {
            Idle::Taken(parts) => Ok(parts),
            Idle::Served(owner) => Err(served(&self.name(), &format!("the process {owner}"))),
        }
    }

    fn not_empty(&self) -> Failure {
        let text = "it holds something already; the books move to a new folder or an empty database";
        format!("{}: {text}", self.name()).into()
    }
}

fn served(place: &str, owner: &str) -> Failure {
    format!("{place}: {owner} has it open; stop it, and all that wait to take over, then begin again").into()
}

fn in_use(error: ExtentError) -> Failure {
    match error {
        ExtentError::Store(StoreError::InUse { folder }) => served(&folder.display().to_string(), "another process"),
        error => error.into(),
    }
}

/// Stamps a source: from now on it is not served.
pub(crate) fn leave(source: &[Part], to: &str) -> Result<(), StoreError> {
    stamp_moved(&**source[0].store(), to).map(drop)
}

/// Gives a database up, so that nobody has to wait until this process is known to be gone.
pub(crate) fn release(parts: &[Part]) {
    for part in parts {
        let _found_out_by_waiting = part.release();
    }
}

/// A place that is being filled.
#[derive(Debug)]
pub(crate) struct MoveTarget {
    place: Location,
    extents: Extents,
    /// None once it is finished.
    parts: Vec<Part>,
}

impl MoveTarget {
    /// What is written to.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How messages call it: its folder, or its URL without the password.
    pub(crate) fn name(&self) -> String {
        self.place.name()
    }

    /// The folder that is filled, under the name that it has now; none for a database.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.place.folder().map(|folder| unfinished(folder, MOVING))
    }

    /// Makes all durable that was put lazily.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        match &self.place {
            Location::Database(_) => self.parts.iter().try_for_each(Part::release)?,
            Location::Folder(folder) => {
                // Closing waits for the disk; what is read afterwards comes from there.
                self.parts.clear();
                self.parts = open_unfinished(folder, &self.extents)?;
            }
        }
        Ok(())
    }

    /// The books are whole: they can be served.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        stamp_whole(&**self.parts[0].store())?;
        self.parts.clear();
        let Location::Folder(folder) = &self.place else { return Ok(()) };
        Ok(rename_durably(&unfinished(folder, MOVING), folder).map_err(|source| StoreError::machine(folder, source))?)
    }
}

impl Drop for MoveTarget {
    fn drop(&mut self) {
        if let Location::Database(_) = &self.place {
            release(&self.parts);
        }
    }
}

fn open_unfinished(folder: &Path, extents: &Extents) -> Result<Vec<Part>, StoreError> {
    let options = SledOptions { lock_wait: LOCK_WAIT, ..SledOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SledStore::open(&unfinished(folder, MOVING), &options)?);
    extents.all().map(|partition| Part::take(Arc::clone(&store), partition)).collect()
}

fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    let first = Partition(0);
    Ok(store.epoch(first)? == Epoch::NONE && store.head(first)? == Head::EMPTY && store.commons()?.is_empty())
}
