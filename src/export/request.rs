//! Requests for exports: the ledger, the days and the format.

use chrono::NaiveDate;
use clap::ValueEnum;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a row.
    Jsonl,
    /// The same columns, by RFC 4180.
    Csv,
    /// CSV as Brazilian spreadsheets read it. Not made by this release.
    #[value(hide = true)]
    CsvPtbr,
    /// Not made by this release.
    #[value(hide = true)]
    Parquet,
    /// Not made by this release.
    #[value(hide = true)]
    Xlsx,
    /// For beancount.
    Beancount,
    /// For hledger.
    Hledger,
    /// For ledger.
    Ledger,
    /// Not made by this release.
    #[value(hide = true)]
    Quickbooks,
    /// Not made by this release.
    #[value(hide = true)]
    Netsuite,
}

impl Format {
    /// The formats that this release makes.
    pub const MADE: [Self; 5] = [Self::Jsonl, Self::Csv, Self::Beancount, Self::Hledger, Self::Ledger];

    /// The format's name on the command line and in a query, also the ending of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::CsvPtbr => "csv-ptbr",
            Self::Parquet => "parquet",
            Self::Xlsx => "xlsx",
            Self::Beancount => "beancount",
            Self::Hledger => "hledger",
            Self::Ledger => "ledger",
            Self::Quickbooks => "quickbooks",
            Self::Netsuite => "netsuite",
        }
    }

    /// The format of a name, if this release makes it.
    pub fn made(name: &str) -> Option<Self> {
        Self::MADE.into_iter().find(|format| format.name() == name)
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/jsonl",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// Whether it is a format of plain-text accounting. Its files hold one ledger each, because
    /// accounts of two owners may have the same name.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Beancount | Self::Hledger | Self::Ledger)
    }
}

/// Request for an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One ledger, by its outside name (`M-…`, `R-…`, `P-…`); all of them when absent.
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
        format!("{}.{}", self.dated(self.ledger.as_deref().unwrap_or("all")), self.format.name())
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
