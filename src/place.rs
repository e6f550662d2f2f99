//! Location of the books: a data folder or a database, as the source and as the target of a
//! migration.
//!
//! A source is taken from whoever had it, so that nothing is booked behind the copy. A target is
//! stamped, or has another name, until it is whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actors::store::place::{admit_reading, filling, moved, stamp_filling, stamp_moved, stamp_returned, stamp_whole};
use actors::store::{
    Epoch, Head, Part, Partition, PostgresOptions, PostgresStore, SledOptions, SledStore, Store, StoreError,
};

use crate::new_folder::{give_name, is_free, unfinished};
use crate::store::{DatabaseArgs, Idle, StoreSettingsError, is_address, take_idle};

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

/// Why a place is refused, or fails.
#[derive(Debug, thiserror::Error)]
pub enum PlaceFailure {
    /// The store or the machine failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server has the place.
    #[error("{place}: {owner} has it open; stop it, and all that wait to take over, then begin again")]
    Served {
        /// The place.
        place: String,
        /// The process, as far as it is known.
        owner: String,
    },
    /// The target is not empty.
    #[error("{place}: it holds something already; the books move to a new folder or an empty database")]
    NotEmpty {
        /// The place.
        place: String,
    },
    /// Another command has begun to fill the target.
    #[error("{place}: `{command}` has begun to fill it; drop this database, and begin with an empty one")]
    OtherCommand {
        /// The place.
        place: String,
        /// The command.
        command: String,
    },
    /// The books were moved away before.
    #[error(
        "{place}: the books were moved from here to {to}. Move them on from there. If nothing was ever booked there, they \
         may go back: centavo migrate --undo --from HERE"
    )]
    Moved {
        /// The place.
        place: String,
        /// Where they are.
        to: String,
    },
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

    /// Opens the books. Meanwhile no server can open them.
    pub(crate) fn open(&self) -> Result<Part, PlaceFailure> {
        let part = match self {
            Location::Folder(folder) => {
                let options = SledOptions { lock_wait: LOCK_WAIT, ..SledOptions::default() };
                let store = SledStore::open_existing(folder, &options).map_err(|error| self.served(error))?;
                Part::reading(Arc::new(store), PARTITION)
            }
            Location::Database(options) => {
                // A wrong address is an error, and makes no tables.
                drop(PostgresStore::open_snapshot(options)?);
                self.take(Arc::new(PostgresStore::open(options)?))?
            }
        };
        admit_reading(&**part.store()).inspect_err(|_| release(&part))?;
        Ok(part)
    }

    /// Opens the source of a move to `to`. One that was moved away is refused, unless it was to
    /// that place, and the move was cut off at its end.
    pub(crate) fn open_source(&self, to: &Location) -> Result<Part, PlaceFailure> {
        let part = self.open()?;
        let stamp = moved(&**part.store()).inspect_err(|_| release(&part))?;
        match stamp.filter(|stamp| *stamp != to.name()) {
            None => Ok(part),
            Some(to) => {
                release(&part);
                Err(PlaceFailure::Moved { place: self.name(), to })
            }
        }
    }

    /// Opens a place that is empty, or that an earlier run has begun to fill.
    pub(crate) fn open_target(self, from: &Location) -> Result<MoveTarget, PlaceFailure> {
        let command = format!("{COMMAND}{}", from.name());
        match &self {
            Location::Folder(folder) => {
                if !is_free(folder).map_err(|source| StoreError::machine(folder, source))? {
                    return Err(PlaceFailure::NotEmpty { place: self.name() });
                }
                let part = open_unfinished(folder).map_err(|error| self.served(error))?;
                stamp_filling(&**part.store(), &command)?;
                Ok(MoveTarget { place: self, part: Some(part) })
            }
            Location::Database(options) => {
                let store = Arc::new(PostgresStore::open(options)?);
                let begun = filling(&*store)?;
                match &begun {
                    Some(other) if !other.starts_with(COMMAND) => {
                        return Err(PlaceFailure::OtherCommand { place: self.name(), command: other.clone() });
                    }
                    None if !is_empty(&*store)? => return Err(PlaceFailure::NotEmpty { place: self.name() }),
                    _ => {}
                }
                stamp_filling(&*store, &command)?;
                let stamped: Arc<dyn Store> = Arc::<PostgresStore>::clone(&store);
                let part = self.take(store).inspect_err(|_| {
                    if begun.is_none() {
                        // A server took it in this moment: it is not ours to stamp.
                        let _stays = stamp_whole(&*stamped);
                    }
                })?;
                Ok(MoveTarget { place: self, part: Some(part) })
            }
        }
    }

    /// Lets books that were moved away be served here again. Gives where they had been moved to.
    pub(crate) fn undo(&self) -> Result<Option<String>, PlaceFailure> {
        let part = self.open()?;
        let store = &**part.store();
        let undone = moved(store).and_then(|to| to.map(|to| stamp_returned(store).map(|()| to)).transpose());
        release(&part);
        Ok(undone?)
    }

    fn take(&self, store: Arc<PostgresStore>) -> Result<Part, PlaceFailure> {
        match take_idle(store)? {
            Idle::Taken(part) => Ok(part),
            Idle::Served(owner) => {
                Err(PlaceFailure::Served { place: self.name(), owner: format!("the process {owner}") })
            }
        }
    }

    fn served(&self, error: StoreError) -> PlaceFailure {
        match error {
            StoreError::InUse { folder } => {
                PlaceFailure::Served { place: folder.display().to_string(), owner: "another process".to_owned() }
            }
            error => error.into(),
        }
    }
}

/// Stamps a source: from now on it is not served.
pub(crate) fn leave(source: &Part, to: &str) -> Result<(), StoreError> {
    stamp_moved(&**source.store(), to).map(drop)
}

/// Gives a database up, so that nobody has to wait until this process is known to be gone.
pub(crate) fn release(part: &Part) {
    let _found_out_by_waiting = part.release();
}

/// A place that is being filled.
#[derive(Debug)]
pub(crate) struct MoveTarget {
    place: Location,
    /// None once it is finished.
    part: Option<Part>,
}

impl MoveTarget {
    /// What is written to.
    pub(crate) fn part(&self) -> &Part {
        self.part.as_ref().expect("a target is open until it is finished")
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
    pub(crate) fn settle(&mut self) -> Result<(), PlaceFailure> {
        match &self.place {
            Location::Database(_) => self.part().release()?,
            Location::Folder(folder) => {
                // Closing waits for the disk; what is read afterwards comes from there.
                drop(self.part.take());
                self.part = Some(open_unfinished(folder)?);
            }
        }
        Ok(())
    }

    /// The books are whole: they can be served.
    pub(crate) fn finish(mut self) -> Result<(), PlaceFailure> {
        stamp_whole(&**self.part().store())?;
        drop(self.part.take());
        let Location::Folder(folder) = &self.place else { return Ok(()) };
        Ok(give_name(&unfinished(folder, MOVING), folder).map_err(|source| StoreError::machine(folder, source))?)
    }
}

impl Drop for MoveTarget {
    fn drop(&mut self) {
        if let (Some(part), Location::Database(_)) = (&self.part, &self.place) {
            release(part);
        }
    }
}

/// The partition that this release keeps everything in.
const PARTITION: Partition = Partition(0);

fn open_unfinished(folder: &Path) -> Result<Part, StoreError> {
    let options = SledOptions { lock_wait: LOCK_WAIT, ..SledOptions::default() };
    Part::take(Arc::new(SledStore::open(&unfinished(folder, MOVING), &options)?), PARTITION)
}

fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    Ok(store.epoch(PARTITION)? == Epoch::NONE && store.head(PARTITION)? == Head::EMPTY && store.commons()?.is_empty())
}
