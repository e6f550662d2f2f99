//! Stamps of a place: whether the books in a store are whole, and whether they were moved away.
//!
//! A store that a command fills is stamped before its first block, and the stamp goes last: what is
//! not whole is neither served nor read. A store that was moved away is stamped before the new
//! place can be served: of the two at most one serves. Stamps of a place are never copied to
//! another one.

use super::{Result, Store, StoreError};

/// The command that fills the store.
const FILLING: &[u8] = b"stamp/filling";

/// Where the books were moved to.
const MOVED: &[u8] = b"stamp/moved";

/// True if a common key belongs to its own place alone.
pub fn is_of_place(key: &[u8]) -> bool {
    key == FILLING || key == MOVED
}

/// Stamps a store that a command begins to fill. Gives the command that stands there: the first one
/// wins.
pub fn stamp_filling(store: &dyn Store, command: &str) -> Result<String> {
    store.insert_common(FILLING, command.as_bytes()).map(text)
}

/// The command that has not finished to fill a store.
pub fn filling(store: &dyn Store) -> Result<Option<String>> {
    Ok(store.common(FILLING)?.map(text))
}

/// Takes the stamp away: the books are whole.
pub fn stamp_whole(store: &dyn Store) -> Result<()> {
    store.remove_common(FILLING)
}

/// Stamps a store whose books are at another place from now on. Gives the place that stands there:
/// the first one wins.
pub fn stamp_moved(store: &dyn Store, to: &str) -> Result<String> {
    store.insert_common(MOVED, to.as_bytes()).map(text)
}

/// Where the books of a store were moved to.
pub fn moved(store: &dyn Store) -> Result<Option<String>> {
    Ok(store.common(MOVED)?.map(text))
}

/// Refuses a store whose books are not whole.
pub fn admit_reading(store: &dyn Store) -> Result<()> {
    filling(store)?.map_or(Ok(()), |command| Err(StoreError::NotWhole { command }))
}

/// Refuses a store whose books are not whole, or are served at another place.
pub fn admit_serving(store: &dyn Store) -> Result<()> {
    admit_reading(store)?;
    moved(store)?.map_or(Ok(()), |to| Err(StoreError::Moved { to }))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
