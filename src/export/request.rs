//! Requests for exports: the ledger, the days and the format.

use chrono::NaiveDate;
use clap::ValueEnum;
use strum::IntoStaticStr;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// One JSON object a row.
    Jsonl,
    /// The same columns, by RFC 4180.
    Csv,
    /// CSV as Brazilian spreadsheets read it.
    CsvPtbr,
    /// The rows as typed columns.
    Parquet,
    /// The rows as a workbook for spreadsheets.
    Xlsx,
    /// For beancount.
    Beancount,
    /// For hledger.
    Hledger,
    /// For ledger.
    Ledger,
    /// Entries with the codes of another chart of accounts, for bookkeeping programs.
    Erp,
    /// The same for QuickBooks.
    Quickbooks,
    /// The same for NetSuite.
    Netsuite,
}

impl Format {
    /// The formats of entries with the codes of another chart of accounts, which the command makes.
    pub const MAPPED: [Self; 3] = [Self::Erp, Self::Quickbooks, Self::Netsuite];

    /// The formats that need no chart of accounts.
    pub const MADE: [Self; 8] = [
        Self::Jsonl,
        Self::Csv,
        Self::CsvPtbr,
        Self::Parquet,
        Self::Xlsx,
        Self::Beancount,
        Self::Hledger,
        Self::Ledger,
    ];

    /// The format's name on the command line and in a query.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The format of a name, if it needs no chart of accounts.
    pub fn made(name: &str) -> Option<Self> {
        Self::MADE.into_iter().find(|format| format.name() == name)
    }

    /// The ending of the format's files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::CsvPtbr => "ptbr.csv",
            Self::Erp => "erp.csv",
            Self::Quickbooks => "quickbooks.csv",
            Self::Netsuite => "netsuite.csv",
            format => format.name(),
        }
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/jsonl",
            Self::Csv | Self::CsvPtbr => "text/csv; charset=utf-8; header=present",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// Whether its accounts are those of another chart.
    pub fn is_mapped(self) -> bool {
        Self::MAPPED.contains(&self)
    }

    /// Whether its rows are files of so many lines each, with a number in their names.
    pub fn is_in_pieces(self) -> bool {
        self == Self::Quickbooks
    }

    /// Whether its files are compressed already.
    pub fn is_compressed(self) -> bool {
        matches!(self, Self::Parquet | Self::Xlsx)
    }

    /// Whether it is a format of plain-text accounting. Its files hold one ledger each, because
    /// accounts of two owners may have the same name.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Beancount | Self::Hledger | Self::Ledger)
    }
}

/// Name of the platform as one ledger: all shards and the house, with one chart of accounts.
pub const PLATFORM: &str = "P-all";

/// Request for an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One ledger, by its outside name (`M-…`, `R-…`, `P-…`, [`PLATFORM`]); all of them when
    /// absent.
    pub ledger: Option<String>,
    /// Format of the files.
    pub format: Format,
    /// The first day; from the beginning when absent.
    pub from: Option<NaiveDate>,
    /// The last day; through the cut when absent.
    pub to: Option<NaiveDate>,
}

impl Request {
    /// File name of an export in one file.
    pub fn file_name(&self) -> String {
        format!("{}.{}", self.dated(self.ledger.as_deref().unwrap_or("all")), self.format.ending())
    }

    /// Whether the platform is asked for as one ledger.
    pub fn is_of_platform(&self) -> bool {
        self.ledger.as_deref() == Some(PLATFORM)
    }

    /// File name of a piece of an export, from 1.
    pub fn piece_name(&self, piece: u32) -> String {
        format!("{}.{piece}.{}", self.dated(self.ledger.as_deref().unwrap_or("all")), self.format.ending())
    }

    /// A name with the requested days in it, so that another month gets another file.
    pub fn dated(&self, name: &str) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => format!("{name}_{from}_{to}"),
            (Some(from), None) => format!("{name}_from_{from}"),
            (None, Some(to)) => format!("{name}_to_{to}"),
            (None, None) => name.to_owned(),
        }
    }
}
