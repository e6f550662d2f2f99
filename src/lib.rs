//! The program: the merchants' API, the route table, settings, commands, and the wiring of a
//! server.
//!
//! It turns requests into commands of the engine, and the engine's results into responses. It
//! decides nothing about money. What HTTP needs without a resource is in [`web`], the operators'
//! API in [`ops`], their pages in [`console`].

pub mod api;
pub mod backup;
pub mod books_location;
pub mod check;
pub mod checkpoints;
pub mod config;
pub mod demo;
pub mod export;
pub mod folder_files;
pub mod follow;
pub mod grow;
pub mod journal_source;
pub mod listen;
pub mod log_queue;
pub mod logging;
pub mod migrate;
pub mod named_rails;
pub mod new_folder;
pub mod privacy;
pub mod rail_check;
pub mod remote;
pub mod report;
pub mod restore;
pub mod routes;
pub mod runtime;
pub mod secrets;
pub mod serve;
pub mod settings_file;
pub mod shell_help;
pub mod store_choice;
pub mod terminal;
pub mod trigger;
pub mod verify;
pub mod watchdog;

/// A charge allocates some hundred small pieces on one thread and frees them on another: mimalloc
/// is made for that. Huge pages are off, because the process held twice as much memory with them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
