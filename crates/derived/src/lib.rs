//! Data that can be rebuilt from the journal, and is stored so that nobody has to: the index, the
//! read model, files of balances, snapshots of states, events that wait; and what seals and signs
//! it.
//!
//! It knows Records and stores. Actors, order and replies are not here.
//!
//! Single things are found by [`index`], lists and counts are in [`read_model`], balances of month
//! ends in [`balance_files`], and stored states of actors in [`snapshots`]. [`outbox`] has the
//! events that wait for webhooks, [`dues`] the work that becomes due. [`seal`] encrypts, and
//! [`checkpoint`] signs.

pub mod balance_files;
pub mod checkpoint;
pub mod dues;
pub mod extents;
pub mod heads;
pub mod index;
pub mod merged;
pub mod names;
pub mod outbox;
pub mod personal_index;
pub mod read_model;
pub mod records;
pub mod seal;
pub mod snapshots;
