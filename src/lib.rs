//! Centavo's door: HTTP, operations, rails, command line, wiring.
//!
//! The only room that knows HTTP and JSON. It turns what callers send into commands of the engine and what the engine
//! answers into responses; it decides nothing about money.

pub mod api;
pub mod app;
pub mod backup;
pub mod brcode;
pub mod config;
pub mod demo;
pub mod descriptors;
pub mod export;
pub mod folding;
pub mod http;
pub mod journal_source;
pub mod last_backup;
pub mod logging;
pub mod mask;
pub mod network;
pub mod ops;
pub mod rails;
pub mod restore;
pub mod routes;
pub mod serve;
pub mod terminal;
pub mod verify;
pub mod views;
pub mod watchdog;
pub mod webhooks;

/// A charge allocates some hundred small pieces on one thread and frees them on another, for which this allocator is made. Without huge
/// pages, with which it held twice as much.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
