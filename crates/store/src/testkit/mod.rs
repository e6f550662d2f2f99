//! Test equipment: a store in memory, power cuts of processes, and conformance tests for stores.
//!
//! The feature `testkit` compiles it. Only tests and benchmarks of this repository enable the
//! feature; the product has none of it.

#![allow(clippy::unwrap_used, reason = "where a test has nothing to unwrap it has failed, and says where")]

pub mod conformance;
pub mod postgres;
pub mod power_cut;

mod memory;
mod watched_store;

use std::sync::Arc;

use crate::{Epoch, Part, Partition, Store, Tenure};

pub use self::memory::{AppendStep, Damage, MemoryStore, PowerCut};
pub use self::watched_store::{Watch, WatchedStore};

/// Partition 0 of a store, in the tenure of its owner. Takes it if nobody has yet.
#[must_use]
pub fn part(store: Arc<dyn Store>) -> Part {
    let partition = Partition(0);
    match store.epoch(partition).unwrap() {
        Epoch::NONE => Part::take(store, partition).unwrap(),
        epoch => Part::of(store, Tenure { partition, epoch }),
    }
}
