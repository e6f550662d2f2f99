//! Rows as a workbook for spreadsheets: real numbers, days and times. Rows go to temporary files of
//! the system; only one is in memory.

use std::io::{self, Read, Seek};

use chrono::{NaiveDate, NaiveDateTime};
use ledger::id::LedgerId;
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, Worksheet, XlsxError};
use wire::timestamp::local;

use super::columns::{COLUMNS, RowCell, WIDTH};
use super::destination::{Out, Part};
use super::exporter::ExportError;
use super::ledger_books::{LedgerBooks, LedgerMovement};
use super::rows::ExportedRow;
use super::writer::{Ledgers, Writer};

/// Rows of a sheet below the head: a sheet has at most 2^20.
const SHEET_ROWS: u32 = (1 << 20) - 1;
/// The day before a spreadsheet's first day, with the leap day that 1900 did not have.
const DAY_ZERO: NaiveDate = NaiveDate::from_ymd_opt(1899, 12, 30).expect("it is a day");
const DAY_MILLISECONDS: f64 = 86_400_000.0;
/// Bytes of the finished file that are handed on at once.
const PART_BYTES: usize = 64 * 1024;

/// A workbook that is being written.
pub(super) struct XlsxRows {
    workbook: Workbook,
    sheet_rows: u32,
    /// Rows of the last sheet, the head counted.
    rows: u32,
    sheets: usize,
    head: Format,
    amount: Format,
    day: Format,
    instant: Format,
    text: Format,
}

impl XlsxRows {
    pub(super) fn new() -> io::Result<Self> {
        Self::with_sheets_of(SHEET_ROWS)
    }

    fn with_sheets_of(sheet_rows: u32) -> io::Result<Self> {
        let format = |number: &str| Format::new().set_num_format(number);
        let mut rows = Self {
            workbook: Workbook::new(),
            sheet_rows,
            rows: 0,
            sheets: 0,
            head: Format::new().set_bold(),
            amount: format("#,##0.00"),
            day: format("dd/mm/yyyy"),
            instant: format("dd/mm/yyyy hh:mm:ss.000"),
            // Digits stay text when somebody edits the cell.
            text: format("@"),
        };
        rows.add_sheet().map_err(failed)?;
        Ok(rows)
    }

    /// Writes the file, which was created at a time (milliseconds since the Unix epoch): the same
    /// rows are the same bytes.
    fn save(&mut self, created_ms: i64, out: &mut dyn Out) -> io::Result<()> {
        let created = ExcelDateTime::from_timestamp(created_ms.div_euclid(1_000)).map_err(failed)?;
        self.workbook.set_properties(&DocProperties::new().set_creation_datetime(&created));
        let mut file = tempfile::tempfile()?;
        self.workbook.save_to_writer(io::BufWriter::new(&mut file)).map_err(failed)?;
        file.rewind()?;
        let mut part = vec![0; PART_BYTES];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(()),
                read => out.write(Part::Rows, &part[..read])?,
            }
        }
    }

    fn add_sheet(&mut self) -> Result<(), XlsxError> {
        self.sheets += 1;
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(format!("Rows {}", self.sheets))?.set_freeze_panes(1, 0)?;
        // Widths come before the first row: it is on the disk when the next one begins.
        for (place, column) in (0..).zip(&COLUMNS) {
            sheet.set_column_width(place, column.width())?;
        }
        for (place, column) in (0..).zip(&COLUMNS) {
            sheet.write_string_with_format(0, place, column.name, &self.head)?;
        }
        self.rows = 1;
        Ok(())
    }

    fn write(&mut self, cells: &[RowCell<'_>; WIDTH]) -> Result<(), XlsxError> {
        if self.rows > self.sheet_rows {
            self.add_sheet()?;
        }
        let sheet: &mut Worksheet = self.workbook.worksheet_from_index(self.sheets - 1)?;
        for (place, cell) in (0..).zip(cells) {
            match cell {
                RowCell::Empty => continue,
                RowCell::Number(number) => sheet.write_number(self.rows, place, *number as f64)?,
                RowCell::Amount(centavos) => {
                    sheet.write_number_with_format(self.rows, place, *centavos as f64 / 100.0, &self.amount)?
                }
                RowCell::Text(text) => sheet.write_string_with_format(self.rows, place, text.as_ref(), &self.text)?,
                RowCell::Day(day, _) => {
                    sheet.write_number_with_format(self.rows, place, serial_day(*day), &self.day)?
                }
                RowCell::Instant(at, _) => {
                    sheet.write_number_with_format(self.rows, place, serial(local(*at)), &self.instant)?
                }
            };
        }
        self.rows += 1;
        Ok(())
    }
}

impl Writer for XlsxRows {
    fn movement(
        &mut self,
        ledger: LedgerId,
        books: &mut LedgerBooks,
        movement: &LedgerMovement<'_>,
        _: &mut dyn Out,
    ) -> io::Result<()> {
        ExportedRow::all(ledger, books, movement).try_for_each(|row| self.write(&row.cells()).map_err(failed))
    }

    fn finish(
        mut self: Box<Self>,
        _: &mut Ledgers,
        (_, through_ms): (NaiveDate, i64),
        out: &mut dyn Out,
    ) -> Result<(), ExportError> {
        Ok(self.save(through_ms, out)?)
    }
}

/// A day as a spreadsheet counts it.
pub(crate) fn serial_day(day: NaiveDate) -> f64 {
    (day - DAY_ZERO).num_days() as f64
}

/// An instant as a spreadsheet counts it: in days, with the time as a fraction.
fn serial(at: NaiveDateTime) -> f64 {
    let begin = DAY_ZERO.and_time(chrono::NaiveTime::MIN);
    (at - begin).num_milliseconds() as f64 / DAY_MILLISECONDS
}

fn failed(error: XlsxError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};

    use super::*;
    use crate::export::Stream;

    #[test]
    fn a_full_sheet_is_followed_by_another() {
        let mut rows = XlsxRows::with_sheets_of(3).unwrap();
        for number in 1..=7 {
            let cells: [RowCell<'_>; WIDTH] = std::array::from_fn(|_| RowCell::Number(number));
            rows.write(&cells).unwrap();
        }
        let mut out = Stream(Vec::new());
        rows.save(0, &mut out).unwrap();
        let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(out.0)).unwrap();
        assert_eq!(book.sheet_names(), ["Rows 1", "Rows 2", "Rows 3"]);
        let mut found = Vec::new();
        for name in book.sheet_names() {
            let sheet = book.worksheet_range(&name).unwrap();
            let mut lines = sheet.rows();
            assert_eq!(lines.next().unwrap()[0], Data::String("sequence".to_owned()), "{name}");
            found.extend(lines.map(|line| line[0].clone()));
        }
        assert_eq!(found, (1..=7).map(|number| Data::Float(f64::from(number))).collect::<Vec<_>>());
    }
}
