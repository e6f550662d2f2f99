//! Exports: the books of one ledger, or of all ledgers, as files for other programs.
//!
//! Every format is made of the same rows, one for each posting of the journal ([`rows`]).
//! `jsonl` is that row, `csv` its columns. `beancount`, `hledger` and `ledger` make one transaction
//! of the rows that a Record has in a ledger, and add opening, running and closing balances, which
//! those programs check.
//!
//! A day is a day in America/Sao_Paulo. The day of a row is the day of its booking; bookings never
//! go back in time, so a day that is over never changes. The same request at the same cut gives the
//! same bytes.
//!
//! **Architecture Invariant:** an export holds ids, and no name, tax id, description or address of
//! a person. It therefore needs no master key. The free text that is left (an operator's name, a
//! rail's id) is cleaned by one list of allowed characters.
//!
//! Memory does not grow with the Records. The server keeps some thousand ledgers of rows; entries
//! for other programs are of one ledger, whose accounts are in memory. The command has the ids of
//! all ledgers, and the accounts of those that it writes as plain text.

mod books;
mod chart;
mod columns;
pub mod command;
mod csv;
mod destination;
mod exporter;
mod facts;
mod folder;
pub mod jobs;
mod layout;
mod manifest;
mod mapped;
mod parquet;
mod plain_text;
pub mod reporting;
mod request;
mod rows;
mod totals;
mod xlsx;

pub(crate) use books::cleaned;
pub use chart::{Chart, ChartError, Level};
pub use columns::{SCHEMA, read_by_duckdb};
pub use destination::{Out, Part, Stream};
pub use exporter::{ExportError, Exporter};
pub use folder::Folder;
pub use manifest::{FileMade, ManifestError};
pub use request::{Format, PLATFORM, Request};
pub use totals::{AccountSums, AccountTotals, Exported};
pub(crate) use xlsx::serial_day;
