//! Requests for exports: the ledger, the days and the format.

use chrono::NaiveDate;
use clap::ValueEnum;
use strum::IntoStaticStr;

/// Format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// Entries with the codes of another chart of accounts, for bookkeeping programs.
    JournalEntries,
    /// One JSON object a row.
    #[default]
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
}

impl Format {
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
            Self::JournalEntries => "journal-entries.csv",
            format => format.name(),
        }
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/jsonl",
            Self::JournalEntries | Self::Csv | Self::CsvPtbr => "text/csv; charset=utf-8; header=present",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// Whether its accounts are those of another chart.
    pub fn is_mapped(self) -> bool {
        self == Self::JournalEntries
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// A name with the requested days in it, so that another month gets another file.
    pub fn dated(&self, name: &str) -> String {
        format!("{name}{}", days_of_name(self.from, self.to))
    }
}

/// The days of a file in its name; empty for all days.
pub(crate) fn days_of_name(from: Option<NaiveDate>, to: Option<NaiveDate>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => format!("_{from}_{to}"),
        (Some(from), None) => format!("_from_{from}"),
        (None, Some(to)) => format!("_to_{to}"),
        (None, None) => String::new(),
    }
}
