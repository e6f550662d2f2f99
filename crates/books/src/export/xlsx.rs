//! Rows as a workbook for spreadsheets: real numbers, days and times.

use std::io;

use chrono::NaiveDate;

use super::columns::{RowCell, columns};
use super::destination::{Out, Part};
use super::ledger_books::{LedgerBooks, LedgerMovement};
use super::request::Request;
use super::rows::ExportedRow;
use super::writer::{Ledgers, Writer};
use crate::cells::{Cell, Kind};
use crate::error::BooksError;
use crate::workbook::{SheetTitle, TableBook, days_ptbr};

/// A workbook that is being written.
pub(super) struct XlsxRows {
    book: TableBook,
    /// Sums of the columns that can be added up, centavos.
    totals: Vec<Option<i128>>,
}

impl XlsxRows {
    pub(super) fn new(request: &Request, has_labels: bool) -> io::Result<Self> {
        let days = days_ptbr(request.from, request.to);
        let subject = [request.ledger.clone(), Some(days)];
        let title =
            SheetTitle { title: "Partidas", subject: subject.into_iter().flatten().collect::<Vec<_>>().join(", ") };
        let of_rows = columns(has_labels);
        let columns = of_rows.iter().map(|column| (column.name, column.head_ptbr, column.kind));
        let totals = of_rows.iter().map(|column| (column.kind == Kind::Amount).then_some(0)).collect();
        Ok(Self { book: TableBook::new(title, columns.collect())?, totals })
    }
}

impl Writer for XlsxRows {
    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, _: &mut dyn Out) -> io::Result<()> {
        ExportedRow::all(books, movement).try_for_each(|row| {
            let cells = row.cells();
            for (total, cell) in self.totals.iter_mut().zip(&cells) {
                if let (Some(total), RowCell::Amount(centavos)) = (total, cell) {
                    *total += i128::from(*centavos);
                }
            }
            let cells: Vec<_> = cells[..self.totals.len()].iter().map(Cell::from).collect();
            self.book.row(&cells)
        })
    }

    fn finish(
        self: Box<Self>,
        _: &mut Ledgers,
        (last, through_ms): (NaiveDate, i64),
        out: &mut dyn Out,
    ) -> Result<(), BooksError> {
        let Self { book, totals } = *self;
        let about = format!("Registros até {}", last.format("%d/%m/%Y"));
        Ok(book.finish(&totals, &about, through_ms, |part| out.write(Part::Rows, part))?)
    }
}

impl From<&RowCell<'_>> for Cell {
    fn from(cell: &RowCell<'_>) -> Self {
        match cell {
            RowCell::Empty => Self::Empty,
            RowCell::Number(number) => Self::Count(*number),
            RowCell::Amount(centavos) => Self::Amount((*centavos).into()),
            RowCell::Text(text) => Self::Text(text.clone().into_owned()),
            RowCell::Day(day, _) => Self::Day(*day),
            RowCell::Instant(at, _) => Self::Instant(*at),
        }
    }
}
