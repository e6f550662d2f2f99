//! Reports as aligned columns for a terminal.

use std::io::{self, Write};

use super::words::{cut, totals};
use crate::reports::table::{Cell, Heading, Kind, Renderer, TableFooter};

/// A report that is being gathered.
pub(super) struct TextTable<'a> {
    title: String,
    kinds: Vec<Kind>,
    lines: Vec<Vec<String>>,
    out: &'a mut dyn Write,
}

impl<'a> TextTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> Self {
        Self {
            title: format!("{}: {}", heading.request.report.title(), heading.lines.join(", ")),
            kinds: heading.columns.iter().map(|column| column.kind).collect(),
            lines: vec![heading.columns.iter().map(|column| column.label.to_owned()).collect()],
            out,
        }
    }
}

impl Renderer for TextTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.lines.push(cells.iter().map(Cell::shown).collect());
        Ok(())
    }

    fn finish(mut self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        let counts: Vec<_> = self.kinds.iter().map(|kind| *kind == Kind::Count).collect();
        if closing.totals.iter().any(Option::is_some) {
            self.lines.push(totals(&counts, closing));
        }
        let width = |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<_> = (0..self.kinds.len()).map(|column| width(column).unwrap_or_default()).collect();
        writeln!(self.out, "{}\n", self.title)?;
        for line in &self.lines {
            let cells = line.iter().zip(&self.kinds).zip(&widths).map(|((cell, kind), width)| match kind {
                Kind::Amount | Kind::Count | Kind::Rate => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
            writeln!(self.out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        writeln!(self.out, "\n{}", cut(closing))
    }
}
