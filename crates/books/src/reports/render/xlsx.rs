//! Reports as workbooks: real numbers (reais) and days; the cut stands on a sheet of its own.

use std::io::{self, Write};

use super::words::cut;
use crate::reports::table::{Cell, Column, Heading, Kind, Renderer, TableFooter};
use crate::workbook::{SheetCell, SheetColumn, SheetKind, SheetTitle, TableBook};

/// A report that is being written.
pub(super) struct XlsxTable<'a> {
    book: TableBook,
    out: &'a mut dyn Write,
}

impl<'a> XlsxTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> io::Result<Self> {
        let title = SheetTitle { title: heading.request.report.title(), subject: heading.lines.join(" · ") };
        let columns = heading.columns.iter().map(sheet_column).collect();
        Ok(Self { book: TableBook::new(title, columns)?, out })
    }
}

fn sheet_column(column: &Column) -> SheetColumn {
    let kind = match column.kind {
        Kind::Text | Kind::Owner => SheetKind::Text,
        Kind::Word => SheetKind::Word,
        Kind::Centavos => SheetKind::Amount,
        Kind::Day => SheetKind::Day,
        Kind::Count => SheetKind::Count,
        Kind::Rate => SheetKind::Rate,
    };
    SheetColumn { head: column.label, kind }
}

fn sheet_cell(cell: &Cell) -> SheetCell<'_> {
    match cell {
        Cell::Empty => SheetCell::Empty,
        Cell::Text(text) => SheetCell::Text(text),
        Cell::Word(_, ptbr) => SheetCell::Text(ptbr),
        Cell::Centavos(centavos) => SheetCell::Amount(*centavos),
        Cell::Day(day) => SheetCell::Day(*day),
        Cell::Count(count) => SheetCell::Count(*count),
        Cell::Rate(rate) => SheetCell::Rate(*rate),
    }
}

impl Renderer for XlsxTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.book.row(cells.iter().map(sheet_cell))
    }

    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        let Self { book, out } = *self;
        book.finish(&closing.totals, &[cut(closing)], closing.booked_at_ms, |part| out.write_all(part))
    }
}
