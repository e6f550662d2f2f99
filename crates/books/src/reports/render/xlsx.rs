//! Reports as workbooks: real numbers (reais) and days; the cut stands on a sheet of its own.

use std::io::{self, Write};

use super::words::cut;
use crate::reports::table::{Cell, Heading, Renderer, TableFooter};
use crate::workbook::{SheetCell, SheetColumn, SheetTitle, TableBook};

/// A report that is being written.
pub(super) struct XlsxTable<'a> {
    book: TableBook,
    out: &'a mut dyn Write,
}

impl<'a> XlsxTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> io::Result<Self> {
        let title = SheetTitle { title: heading.request.report.title(), subject: heading.lines.join(" · ") };
        let columns =
            heading.columns.iter().map(|column| SheetColumn { head: column.label, kind: column.kind }).collect();
        Ok(Self { book: TableBook::new(title, columns)?, out })
    }
}

impl Renderer for XlsxTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.book.row(cells.iter().map(SheetCell::from))
    }

    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        let Self { book, out } = *self;
        book.finish(&closing.totals, &[cut(closing)], closing.booked_at_ms, |part| out.write_all(part))
    }
}
