//! Writers: one for each format. [`Exporter`](super::exporter::Exporter) folds Records into
//! movements of ledgers, and a writer makes the files of these.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use ledger::id::LedgerId;

use super::csv_rows::CsvRows;
use super::destination::{Out, Part};
use super::ledger_books::{LedgerBooks, LedgerMovement};
use super::parquet::ParquetRows;
use super::plain_text::PlainText;
use super::request::{Format, Request};
use super::rows::JsonRows;
use super::xlsx::XlsxRows;
use crate::cells::Dialect;
use crate::error::BooksError;

/// The ledgers of an export so far.
pub(super) type Ledgers = BTreeMap<LedgerId, LedgerBooks>;

/// Writer of one format.
pub(super) trait Writer: Send {
    /// Writes what stands before the first movement, which is of the day `first`.
    fn begin(&mut self, _: &mut Ledgers, _first: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        out.write(Part::Rows, b"")
    }

    /// Writes the lines that a Record has in a ledger.
    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()>;

    /// Writes the end. `last` is the last day, `through_ms` the last booking in milliseconds since
    /// the Unix epoch.
    fn finish(
        self: Box<Self>,
        _: &mut Ledgers,
        (_last, _through_ms): (NaiveDate, i64),
        _: &mut dyn Out,
    ) -> Result<(), BooksError> {
        Ok(())
    }
}

/// The writer of a request. Journal entries need a chart, so they have none here.
pub(super) fn writer_of(request: &Request, has_labels: bool) -> io::Result<Box<dyn Writer>> {
    Ok(match request.format {
        Format::Jsonl => Box::new(JsonRows::new(has_labels)),
        Format::Csv => Box::new(CsvRows::new(Dialect::Plain, has_labels)),
        Format::CsvPtbr => Box::new(CsvRows::new(Dialect::Brazilian, has_labels)),
        Format::Parquet => Box::new(ParquetRows::new(has_labels)?),
        Format::Xlsx => Box::new(XlsxRows::new(request, has_labels)?),
        Format::Beancount | Format::Hledger | Format::Ledger => Box::new(PlainText::new(request)),
        Format::JournalEntries => return Err(io::Error::other("journal entries need a chart of accounts")),
    })
}
