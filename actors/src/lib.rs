//! # The engine
//!
//! Engine of the ledger: ownership, order and durability. Every merchant and every sub-recipient is
//! an actor that owns its ledger. A command becomes one Record. The journal makes Records durable
//! in blocks, delivers and publishes them, and only then releases replies.
//!
//! **Architecture Invariant:** this crate knows no HTTP, no JSON and no fee. One file names sled.
//! The order of things is decided in two synchronous state machines without I/O
//! ([`journal::Machine`] and [`resident::Resident`]); threads, actors and files are shells around
//! them.
//!
//! # The public face
//! [`engine::Engine`] is the façade: it opens a store, takes commands and answers questions. Beside
//! it are public
//! - what a caller of the façade hands over or gets back: [`rails`], [`records`], [`outbox`],
//!   [`seal`], [`store`];
//! - what works without an engine: [`backup`], [`balance_files`], [`checkpoint`], [`verify`],
//!   [`names`], [`priority`];
//! - the inner parts that simulations and benchmarks drive by themselves: [`index`], [`journal`],
//!   [`load`], [`read_model`], [`resident`], [`snapshots`];
//! - for tests alone, behind a feature: `testkit`.

pub mod backup;
pub mod balance_files;
pub mod checkpoint;
pub mod engine;
pub mod index;
pub mod journal;
pub mod load;
pub mod names;
pub mod outbox;
pub mod priority;
pub mod rails;
pub mod read_model;
pub mod records;
pub mod resident;
pub mod seal;
pub mod snapshots;
pub mod store;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod verify;

mod actor;
mod clock;
mod directory;
mod dues;
mod load_shedding;
mod metrics;
