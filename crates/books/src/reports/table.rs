//! Typed rows of a report, and the interface of the formats that write them.

use std::io::{self, Write};
use std::ops::Range;
use store::cut::Cut;

use ledger::account::Account;

use super::context::{AddedCells, ReportContext};
use super::render::renderer;
use super::request::{ReportFormat, ReportRequest};
pub(super) use crate::cells::{Cell, Kind};

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
    /// Where a page has its values.
    pub(super) on_page: OnPage,
}

/// Where a page has the values of a column: several columns share one there, so that amounts fit on
/// a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnPage {
    /// In a column of their own.
    Alone,
    /// Above those of the column before.
    Above,
    /// In small letters below those of the column before.
    Below,
    /// Not at all: files alone have them.
    Absent,
}

impl Column {
    /// The same, above the column before on a page.
    pub(super) const fn above(self) -> Self {
        Self { on_page: OnPage::Above, ..self }
    }

    /// The same, in files alone.
    pub(super) const fn in_files(self) -> Self {
        Self { on_page: OnPage::Absent, ..self }
    }

    /// The same, below the column before on a page.
    pub(super) const fn below(self) -> Self {
        Self { on_page: OnPage::Below, ..self }
    }
}

pub(super) const fn column(name: &'static str, label: &'static str, kind: Kind) -> Column {
    Column { name, label, kind, is_summed: false, on_page: OnPage::Alone }
}

/// A column of amounts in centavos that are added up.
pub(super) const fn sum(name: &'static str, label: &'static str) -> Column {
    Column { is_summed: true, ..column(name, label, Kind::Amount) }
}

/// A column of counts that are added up.
pub(super) const fn count(name: &'static str, label: &'static str) -> Column {
    Column { is_summed: true, ..column(name, label, Kind::Count) }
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A word for programs, and the same in Portuguese.
    pub(super) fn word(name: &'static str, ptbr: &'static str) -> Self {
        Self::Word(name.into(), ptbr.into())
    }

    /// The name of an account in Portuguese, by its name in the books.
    pub(super) fn account_name(account: &str) -> Self {
        Account::named(account).map_or(Self::Empty, |account| Self::text(account.name_ptbr()))
    }
}

/// What stands above the rows.
#[derive(Clone, Debug)]
pub(super) struct Heading<'a> {
    pub(super) request: &'a ReportRequest,
    pub(super) columns: &'a [Column],
    /// The lines below the title: of whom and of which days it is, first.
    pub(super) lines: &'a [String],
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
    of_fold: &'static [Column],
    columns: Vec<Column>,
    renderer: Box<dyn Renderer + 'a>,
    added: Option<AddedCells>,
    /// The rows that are written, from 0.
    range: Range<u64>,
    count: u64,
    totals: Vec<i128>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        of_fold: &'static [Column],
        request: &ReportRequest,
        format: ReportFormat,
        context: ReportContext,
        out: &'a mut dyn Write,
    ) -> io::Result<Self> {
        let (mut columns, lines) = (context.columns(of_fold), context.lines(request));
        columns.iter_mut().for_each(|column| column.is_summed &= request.has_totals());
        let renderer = renderer(format, &Heading { request, columns: &columns, lines: &lines }, out)?;
        let range = context.rows.unwrap_or(0..u64::MAX);
        let is_wider = columns.len() > of_fold.len();
        let added = is_wider.then(|| AddedCells::new(context.owners, context.labels));
        let totals = vec![0; columns.len()];
        Ok(Self { of_fold, columns, renderer, added, range, count: 0, totals })
    }

    /// Writes a row.
    pub(super) fn add(&mut self, cells: &[Cell]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.of_fold.len());
        let wide = self.added.as_mut().map(|added| added.widened(cells, self.of_fold)).transpose()?;
        let cells = wide.as_deref().unwrap_or(cells);
        let is_written = self.range.contains(&self.count);
        self.count += 1;
        for (total, cell) in self.totals.iter_mut().zip(cells) {
            match cell {
                Cell::Amount(centavos) => *total += centavos,
                Cell::Count(count) => *total += i128::from(*count),
                _ => {}
            }
        }
        if is_written { self.renderer.row(cells) } else { Ok(()) }
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
