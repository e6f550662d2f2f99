//! Errors of exports and reports.

use std::io;

use derived::records::LoadError;
use ledger::record::DecodeError;
use store::cut::Position;

/// Why an export or a report did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The destination failed, or the format cannot hold the rows.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A Record can't be read.
    #[error("Record {at}: {error}")]
    Decode {
        /// Place of the Record.
        at: Position,
        /// The defect.
        error: DecodeError,
    },
    /// The books before the first day can't be read.
    #[error("the books before the first day: {0}")]
    Before(#[from] LoadError),
    /// Accounts have no code in the chart.
    #[error("the chart has no code for: {}", .0.join(", "))]
    NoCode(Vec<String>),
    /// No Record names the ledger.
    #[error("there is no ledger {0}; ledgers are named M-…, R-…, P-… and P-house, and P-all is the whole platform")]
    NoLedger(String),
}
