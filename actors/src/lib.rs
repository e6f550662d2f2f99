//! # The engine
//!
//! Engine of the ledger: ownership, order and durability. Every merchant and every sub-recipient is
//! an actor that owns its ledger. A command becomes one Record. The journal makes Records durable
//! in blocks, delivers and publishes them, and only then releases replies.
//!
//! **Architecture Invariant:** this crate has no HTTP, no JSON and no fee. The order of things is
//! decided in two synchronous state machines without I/O (`journal::Machine` and
//! `resident::Resident`); threads, actors and files are shells around them.
//!
//! # The public face
//! [`engine::Engine`] is the façade: it opens a store, takes commands and answers questions.
//! [`rails`] has the traits of institutions that it calls, [`metrics`] what it measures.
//! [`backup`], [`cluster`], [`growth`], [`migration`] and [`verify`] work without an engine.
//! [`journal`], [`load`] and [`resident`] are inner parts, public for the tests that drive them by
//! themselves; no crate above names them. `testkit` is test equipment, behind the feature of that
//! name.

pub mod backup;
pub mod cluster;
pub mod engine;
pub mod growth;
pub mod journal;
pub mod load;
pub mod metrics;
pub mod migration;
pub mod rails;
pub mod resident;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod verify;

mod actor;
mod clock;
mod directory;
