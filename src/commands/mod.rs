//! Commands of the program: a file each, and what several of them use. `serve` is in
//! [`crate::server`].

use std::error::Error;

/// Why a command ended: words for the person who runs it. The causes are printed and not told
/// apart, so they have no type of their own.
pub type Failure = Box<dyn Error + Send + Sync>;

pub mod backup;
pub mod backup_follow;
pub mod books_location;
pub mod check;
pub mod demo;
pub mod erase;
pub mod export;
pub mod folder_files;
pub mod grow;
pub mod journal_source;
pub mod listen;
pub mod migrate;
pub mod new_folder;
pub mod rail_check;
pub mod remote;
pub mod report;
pub mod restore;
pub mod served_journal;
pub mod shell_help;
pub mod terminal;
pub mod trigger;
pub mod verify;
