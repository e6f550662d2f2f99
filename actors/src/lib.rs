//! # The engine
//!
//! Who owns what, in which order, made durable. Every merchant and every sub-recipient is an actor that owns its ledger; a command
//! becomes one Record; the journal makes Records durable in blocks, publishes and delivers them, and only then lets replies go.
//!
//! **Architecture Invariant:** this crate knows no HTTP, no JSON and no fee. One file names sled. The order of things is decided in
//! two synchronous state machines without I/O ([`journal::Machine`] and [`resident::Resident`]); threads, actors and files are
//! shells around them.

pub mod actor;
pub mod backup;
pub mod clock;
pub mod directory;
pub mod dues;
pub mod engine;
pub mod index;
pub mod journal;
pub mod load;
pub mod load_shedding;
pub mod metrics;
pub mod names;
pub mod outbox;
pub mod priority;
pub mod rails;
pub mod read_model;
pub mod resident;
pub mod seal;
pub mod snapshots;
pub mod store;
pub mod verify;
