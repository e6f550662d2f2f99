//! `centavo grow`: adds partitions to a store, for the accounts that are opened from now on.
//! Accounts that are there stay where they are.
//!
//! The command holds all partitions meanwhile. A process that had one of them ends, and one that
//! starts later reads how many there are.

use std::num::NonZeroU16;
use std::sync::Arc;

use actors::growth::{Growth, grow};
use store::{Part, StoreError};

use crate::commands::Failure;
use crate::commands::books_location::{Location, release};
use crate::commands::terminal;
use crate::commands::verify::quietly;
use crate::settings::args::GrowArgs;
use crate::settings::checked::PARTITIONS_MAX;
use crate::settings::store_choice::Store;

/// Adds partitions, and prints a summary.
pub fn run(args: GrowArgs) -> Result<(), Failure> {
    let GrowArgs { data, store, partitions } = args;
    let wanted = NonZeroU16::new(partitions).unwrap_or(NonZeroU16::MIN);
    let location = match store.store()? {
        Store::Sled => Location::Folder(std::path::absolute(&data).unwrap_or(data)),
        Store::Postgres(options) => Location::Database(options),
    };
    let grown = quietly("nothing was changed, since the journal could not be read", || make(&location, wanted))?;
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

fn make(location: &Location, wanted: NonZeroU16) -> Result<Growth, Failure> {
    let parts = location.open_source(location)?;
    let grown =
        terminal::with_bar("reading the journal", "Records", |advance| grow(&parts, wanted, PARTITIONS_MAX, advance));
    let shown = grown.as_ref().map_or(Ok(()), |grown| show_new(&parts, grown));
    release(&parts);
    shown?;
    grown.map_err(|error| format!("{}: {error}", location.name()).into())
}

/// Takes the new partitions once, so that a process that does not know them yet sees them in the
/// store, and ends.
fn show_new(parts: &[Part], grown: &Growth) -> Result<(), StoreError> {
    for partition in grown.extents.all().skip(parts.len()) {
        Part::take(Arc::clone(parts[0].store()), partition)?.release()?;
    }
    Ok(())
}
