//! Formats of reports, a file each; CSV and workbooks are those of all tables.

mod html;
mod json;
mod text;
mod words;

use std::io::{self, Write};

use self::html::HtmlTable;
use self::json::JsonTable;
use self::text::TextTable;
use super::request::ReportFormat;
use super::table::{Cell, Heading, Renderer, TableFooter};
use crate::table_file::{TableFile, TableFormat};
use crate::workbook::SheetTitle;

/// Begins a file.
pub(super) fn renderer<'a>(
    format: ReportFormat,
    heading: &Heading<'_>,
    out: &'a mut dyn Write,
) -> io::Result<Box<dyn Renderer + 'a>> {
    let format = match format {
        ReportFormat::Table => return Ok(Box::new(TextTable::new(heading, out))),
        ReportFormat::Json => return Ok(Box::new(JsonTable::new(heading, out)?)),
        ReportFormat::Html => return Ok(Box::new(HtmlTable::new(heading, out)?)),
        ReportFormat::Csv => TableFormat::Csv,
        ReportFormat::CsvPtbr => TableFormat::CsvPtbr,
        ReportFormat::Xlsx => TableFormat::Xlsx,
    };
    let title = SheetTitle { title: heading.request.report.title(), subject: heading.lines.join(" · ") };
    let columns = heading.columns.iter().map(|column| (column.name, column.label, column.kind));
    Ok(Box::new(TableFile::new(format, title, columns.collect(), out)?))
}

/// CSV has the rows alone. A workbook has the totals too, and the cut on a sheet of its own.
impl<W: Write> Renderer for TableFile<W> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.write_row(cells)
    }

    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        self.end(&closing.totals, &words::cut(closing), closing.booked_at_ms)
    }
}
