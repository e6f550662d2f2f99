//! Reports as workbooks: real numbers (reais) and days; the cut stands on a sheet of its own.

use std::io::{self, Read, Seek, Write};

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, XlsxError};

use super::words::{cut, subject};
use crate::export::serial_day;
use crate::reports::table::{Cell, Column, Heading, Kind, Renderer, TableFooter};

/// Rows of a sheet below the head: a sheet has at most 2^20.
const SHEET_ROWS: u32 = (1 << 20) - 1;
/// Bytes of the finished file that are handed on at once.
const PART_BYTES: usize = 64 * 1024;

/// A workbook that is being written.
pub(super) struct XlsxTable<'a> {
    workbook: Workbook,
    columns: &'static [Column],
    title: String,
    /// Rows of the last sheet, the head counted.
    rows: u32,
    sheets: usize,
    amount: Format,
    day: Format,
    text: Format,
    out: &'a mut dyn Write,
}

impl<'a> XlsxTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> io::Result<Self> {
        let mut table = Self {
            workbook: Workbook::new(),
            columns: heading.columns,
            title: format!("{} {}", heading.request.report.title(), subject(heading)).trim_end().to_owned(),
            rows: 0,
            sheets: 0,
            amount: Format::new().set_num_format("#,##0.00"),
            day: Format::new().set_num_format("dd/mm/yyyy"),
            // Digits stay text when somebody edits the cell.
            text: Format::new().set_num_format("@"),
            out,
        };
        table.add_sheet().map_err(io::Error::other)?;
        Ok(table)
    }

    fn add_sheet(&mut self) -> Result<(), XlsxError> {
        self.sheets += 1;
        let bold = Format::new().set_bold();
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(format!("Rows {}", self.sheets))?.set_freeze_panes(1, 0)?;
        // Widths come before the first row: it is on the disk when the next one begins.
        for (place, column) in (0..).zip(self.columns) {
            sheet.set_column_width(place, column_width(column))?;
        }
        for (place, column) in (0..).zip(self.columns) {
            sheet.write_string_with_format(0, place, column.name, &bold)?;
        }
        self.rows = 1;
        Ok(())
    }

    fn write(&mut self, cells: &[Cell]) -> Result<(), XlsxError> {
        if self.rows > SHEET_ROWS {
            self.add_sheet()?;
        }
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1)?;
        for (place, cell) in (0..).zip(cells) {
            match cell {
                Cell::Empty => continue,
                Cell::Text(text) => sheet.write_string_with_format(self.rows, place, text, &self.text)?,
                Cell::Centavos(centavos) => {
                    sheet.write_number_with_format(self.rows, place, *centavos as f64 / 100.0, &self.amount)?
                }
                Cell::Day(day) => sheet.write_number_with_format(self.rows, place, serial_day(*day), &self.day)?,
                Cell::Count(count) => sheet.write_number(self.rows, place, *count as f64)?,
                Cell::Rate(rate) => sheet.write_string(self.rows, place, rate.as_percent().to_string())?,
            };
        }
        self.rows += 1;
        Ok(())
    }

    fn about(&mut self, closing: &TableFooter) -> Result<(), XlsxError> {
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name("Cut")?;
        sheet.write_string(0, 0, &self.title)?.write_string(1, 0, cut(closing))?;
        let created = ExcelDateTime::from_timestamp(closing.booked_at_ms.div_euclid(1_000))?;
        self.workbook.set_properties(&DocProperties::new().set_creation_datetime(&created));
        Ok(())
    }
}

/// Width of a column that shows its head and every value, in characters.
fn column_width(column: &Column) -> f64 {
    let values = match column.kind {
        Kind::Text => 39,
        Kind::Centavos => 20,
        Kind::Day | Kind::Count | Kind::Rate => 12,
    };
    values.max(column.name.len() + 2) as f64
}

impl Renderer for XlsxTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.write(cells).map_err(io::Error::other)
    }

    fn finish(mut self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        self.about(closing).map_err(io::Error::other)?;
        let mut file = tempfile::tempfile()?;
        self.workbook.save_to_writer(io::BufWriter::new(&mut file)).map_err(io::Error::other)?;
        file.rewind()?;
        let mut part = vec![0; PART_BYTES];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(()),
                read => self.out.write_all(&part[..read])?,
            }
        }
    }
}
