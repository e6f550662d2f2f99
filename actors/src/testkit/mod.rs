//! Test equipment: a store in memory, power cuts of processes, and conformance tests for stores and
//! rails.
//!
//! The feature `testkit` compiles it. Only tests and benchmarks of this repository enable the
//! feature; the product has none of it.

#![allow(clippy::unwrap_used, reason = "where a test has nothing to unwrap it has failed, and says where")]

pub mod conformance;
pub mod power_cut;
pub mod rails;

mod memory;

pub use self::memory::{Damage, MemoryStore, PowerCut, Reached};
