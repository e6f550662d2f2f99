//! Formats of reports, a file each.

mod csv;
mod html;
mod json;
mod text;
mod words;
mod xlsx;

use std::io::{self, Write};

use super::request::ReportFormat;
use super::table::{Heading, Renderer};
use crate::cells::Dialect;

/// Begins a file.
pub(super) fn renderer<'a>(
    format: ReportFormat,
    heading: &Heading<'_>,
    out: &'a mut dyn Write,
) -> io::Result<Box<dyn Renderer + 'a>> {
    Ok(match format {
        ReportFormat::Table => Box::new(text::TextTable::new(heading, out)),
        ReportFormat::Json => Box::new(json::JsonTable::new(heading, out)?),
        ReportFormat::Csv => Box::new(csv::CsvTable::new(heading, Dialect::Plain, out)?),
        ReportFormat::CsvPtbr => Box::new(csv::CsvTable::new(heading, Dialect::Brazilian, out)?),
        ReportFormat::Xlsx => Box::new(xlsx::XlsxTable::new(heading, out)?),
        ReportFormat::Html => Box::new(html::HtmlTable::new(heading, out)?),
    })
}
