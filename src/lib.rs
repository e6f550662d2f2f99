//! The program: the merchants' API, the route table, settings, commands, and the wiring of a
//! server.
//!
//! It turns requests into commands of the engine, and the engine's results into responses. It
//! decides nothing about money. What HTTP needs without a resource is in [`web`], the operators'
//! API in [`ops`], their pages in [`console`].

pub mod api;
pub mod commands;
pub mod server;
pub mod settings;

/// A charge allocates some hundred small pieces on one thread and frees them on another: mimalloc
/// is made for that. Huge pages are off, because the process held twice as much memory with them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
