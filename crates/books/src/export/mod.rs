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

mod arrangement;
mod chart;
mod columns;
mod csv_rows;
mod destination;
mod exporter;
mod folder;
pub mod jobs;
mod layout;
mod ledger_books;
mod manifest;
mod mapped_entries;
mod parquet;
mod plain_text;
mod request;
mod rows;
mod totals;
mod writer;
mod xlsx;

pub use chart::{Chart, ChartError, Level};
pub(crate) use columns::head_ptbr;
pub use columns::{SCHEMA, read_by_duckdb};
pub use destination::{Out, Part, Stream};
pub use exporter::Exporter;
pub use folder::Folder;
pub(crate) use ledger_books::cleaned;
pub use manifest::{ExportedFile, Manifest, ManifestDraft, ManifestError, are_over};
pub(crate) use request::days_of_name;
pub use request::{Format, PLATFORM, Request};
pub use totals::{AccountSums, AccountTotals, ExportTotals};
