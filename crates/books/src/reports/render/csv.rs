//! Reports as CSV: the rows alone, without totals and cut.

use std::io::{self, Write};

use crate::cells::Dialect;
use crate::reports::table::{Cell, Heading, Renderer, TableFooter};

/// A report that is being written.
pub(super) struct CsvTable<'a> {
    dialect: Dialect,
    out: &'a mut dyn Write,
    line: Vec<u8>,
}

impl<'a> CsvTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, dialect: Dialect, out: &'a mut dyn Write) -> io::Result<Self> {
        let columns = heading.columns.iter().map(|column| (column.name, column.label));
        out.write_all(dialect.head(columns).as_bytes())?;
        Ok(Self { dialect, out, line: Vec::new() })
    }
}

impl Renderer for CsvTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.line.clear();
        self.dialect.write(cells, &mut self.line);
        self.out.write_all(&self.line)
    }

    fn finish(self: Box<Self>, _: &TableFooter) -> io::Result<()> {
        Ok(())
    }
}
