//! # The engine
//!
//! Engine of the ledger: ownership, order and durability. Every merchant and every sub-recipient is
//! an actor that owns its ledger. A command becomes one Record. The journal makes Records durable
//! in blocks, delivers and publishes them, and only then releases replies.
//!
//! **Architecture Invariant:** this crate knows no HTTP, no JSON and no fee. One file names sled.
//! The order of things is decided in two synchronous state machines without I/O
//! (`journal::Machine` and `resident::Resident`); threads, actors and files are shells around them.
//!
//! # The public face
//! [`engine::Engine`] is the façade: it opens a store, takes commands and answers questions. Beside
//! it are public
//! - what a caller of the façade hands over or gets back: [`rails`], [`records`], [`outbox`],
//!   [`seal`], [`store`];
//! - what works without an engine: [`backup`], [`checkpoint`], [`cluster`], [`cut`], [`extents`],
//!   [`growth`], [`migration`], [`names`], [`priority`], [`verify`];
//! - behind the feature `testkit`, which the product does not enable: test equipment (`testkit`),
//!   and the inner parts that simulations and benchmarks drive by themselves: `index`, `journal`,
//!   `load`, `read_model`, `resident`, `snapshots`.

// What only tests reach is `pub` for them alone.
#![cfg_attr(not(feature = "testkit"), allow(dead_code, unreachable_pub, unused_imports))]

pub mod backup;
pub mod cluster;
pub mod engine;
pub mod growth;
pub mod migration;
pub mod rails;
pub mod verify;

#[cfg(feature = "testkit")]
pub mod journal;
#[cfg(feature = "testkit")]
pub mod load;
#[cfg(feature = "testkit")]
pub mod resident;
#[cfg(feature = "testkit")]
pub mod testkit;

#[cfg(not(feature = "testkit"))]
mod journal;
#[cfg(not(feature = "testkit"))]
mod load;
#[cfg(not(feature = "testkit"))]
mod resident;

mod actor;
mod clock;
mod directory;
mod metrics;
