//! Typed rows of a report, and the interface of the formats that write them.

use std::io;
use store::cut::Cut;

use chrono::NaiveDate;
use ledger::money::Rate;

use super::request::ReportRequest;

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An id, a name, a word.
    Text,
    /// An amount of money, centavos; below zero too.
    Centavos,
    /// A day in America/Sao_Paulo.
    Day,
    /// A count or a place.
    Count,
    /// A percentage.
    Rate,
}

/// Name, label and kind of the cells in one place of each row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Its name for programs.
    pub(super) name: &'static str,
    /// Its head for people, in Portuguese.
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    /// Whether its values have a sum that means something.
    pub(super) is_summed: bool,
}

pub(super) const fn column(name: &'static str, label: &'static str, kind: Kind) -> Column {
    Column { name, label, kind, is_summed: false }
}

/// A column of amounts in centavos that are added up.
pub(super) const fn sum(name: &'static str, label: &'static str) -> Column {
    Column { is_summed: true, ..column(name, label, Kind::Centavos) }
}

/// A column of counts that are added up.
pub(super) const fn count(name: &'static str, label: &'static str) -> Column {
    Column { is_summed: true, ..column(name, label, Kind::Count) }
}

/// Value of one column in one row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// No value.
    Empty,
    Text(String),
    /// An amount in centavos.
    Centavos(i128),
    Day(NaiveDate),
    Count(u64),
    Rate(Rate),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// What stands above the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading<'a> {
    pub(super) request: &'a ReportRequest,
    pub(super) columns: &'static [Column],
}

/// What stands below the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableFooter {
    /// The last Records that count.
    pub(super) cut: Cut,
    /// Hash of the journal there, in hexadecimal digits.
    pub(super) head: String,
    /// Time of its booking, milliseconds since the Unix epoch; 0 when there is none.
    pub(super) booked_at_ms: i64,
    /// How many rows there are.
    pub(super) rows: u64,
    /// The sum of each column; `None` if it has no meaning.
    pub(super) totals: Vec<Option<i128>>,
}

/// A format that is being written.
pub(super) trait Renderer {
    /// Writes the next row.
    fn row(&mut self, cells: &[Cell]) -> io::Result<()>;
    /// Writes what is left.
    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()>;
}

/// Destination of the rows of a report: counts them and adds them up.
pub(super) struct Rows<'a> {
    columns: &'static [Column],
    renderer: Box<dyn Renderer + 'a>,
    count: u64,
    totals: Vec<i128>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(columns: &'static [Column], renderer: Box<dyn Renderer + 'a>) -> Self {
        Self { columns, renderer, count: 0, totals: vec![0; columns.len()] }
    }

    /// Writes a row.
    pub(super) fn add(&mut self, cells: &[Cell]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.count += 1;
        for (total, cell) in self.totals.iter_mut().zip(cells) {
            match cell {
                Cell::Centavos(centavos) => *total += centavos,
                Cell::Count(count) => *total += i128::from(*count),
                Cell::Empty | Cell::Text(_) | Cell::Day(_) | Cell::Rate(_) => {}
            }
        }
        self.renderer.row(cells)
    }

    /// Writes what is left, and gives it.
    pub(super) fn finish(self, cut: Cut, head: String, booked_at_ms: i64) -> io::Result<TableFooter> {
        let totals = self.columns.iter().zip(self.totals);
        let totals = totals.map(|(column, total)| column.is_summed.then_some(total)).collect();
        let closing = TableFooter { cut, head, booked_at_ms, rows: self.count, totals };
        self.renderer.finish(&closing)?;
        Ok(closing)
    }
}
