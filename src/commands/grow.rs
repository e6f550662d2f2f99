//! `centavo grow`: adds partitions to a store, for the accounts that are opened from now on.
//! Accounts that are there stay where they are.
//!
//! The command holds all partitions meanwhile. A process that had one of them ends, and one that
//! starts later reads how many there are.

use std::num::NonZeroU16;
use std::sync::Arc;

use actors::growth::{Growth, GrowthError, grow};
use store::{Part, StoreError};

use crate::commands::books_location::{Location, PlaceFailure, release};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::args::GrowArgs;
use crate::settings::checked::{ConfigError, PARTITIONS_MAX};
use crate::settings::store_choice::{Store, StoreSettingsError};

/// Why no partitions were added.
#[derive(Debug, thiserror::Error)]
pub enum GrowFailure {
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address of the database is wrong.
    #[error(transparent)]
    Address(#[from] StoreSettingsError),
    /// The store is refused, or fails.
    #[error(transparent)]
    Place(#[from] PlaceFailure),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It does not grow.
    #[error("{place}: {error}")]
    Growth {
        /// The store.
        place: String,
        /// The reason why it does not.
        error: GrowthError,
    },
    /// Reading the data made the program panic: the data is damaged.
    #[error("the journal could not be read: {0}. Nothing was changed")]
    Panicked(String),
}

/// Adds partitions, and prints a summary.
pub fn run(args: GrowArgs) -> Result<(), GrowFailure> {
    let GrowArgs { data, store, partitions } = args;
    let wanted = NonZeroU16::new(partitions).unwrap_or(NonZeroU16::MIN);
    let location = match store.store()? {
        Store::Sled => Location::Folder(std::path::absolute(&data).unwrap_or(data)),
        Store::Postgres(options) => Location::Database(options),
    };
    let grown = quietly(|| make(&location, wanted)).unwrap_or_else(|message| Err(GrowFailure::Panicked(message)))?;
    let (place, has) = (location.name(), grown.extents.partitions());
    if grown.added == 0 {
        terminal::say(&format!("{place}: the store has {has} partitions already; nothing was changed."));
        return Ok(());
    }
    let growing = grown.extents.growing();
    let last = growing.first.0 + (growing.count - 1);
    terminal::say(&format!("{place}: the store has {has} partitions now, of which {} are new.", grown.added));
    match growing.count {
        1 => terminal::say(&format!(
            "  Accounts are opened in partition {last} from now on, so one node gets all new ones;"
        )),
        _ => terminal::say(&format!("  Accounts are opened in partitions {} to {last} from now on;", growing.first.0)),
    }
    terminal::say(&format!(
        "  those of the {} Records that are there stay where they are.",
        terminal::count(grown.records)
    ));
    Ok(())
}

fn make(location: &Location, wanted: NonZeroU16) -> Result<Growth, GrowFailure> {
    let parts = location.open_source(location)?;
    let bar = terminal::bar("reading the journal", "Records");
    let grown = grow(&parts, wanted, PARTITIONS_MAX, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    let shown = grown.as_ref().map_or(Ok(()), |grown| show_new(&parts, grown));
    release(&parts);
    shown?;
    grown.map_err(|error| GrowFailure::Growth { place: location.name(), error })
}

/// Takes the new partitions once, so that a process that does not know them yet sees them in the
/// store, and ends.
fn show_new(parts: &[Part], grown: &Growth) -> Result<(), StoreError> {
    for partition in grown.extents.all().skip(parts.len()) {
        Part::take(Arc::clone(parts[0].store()), partition)?.release()?;
    }
    Ok(())
}
