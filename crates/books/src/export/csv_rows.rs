//! Rows as CSV: by RFC 4180, or as Brazilian spreadsheets read it.

use std::borrow::Cow;
use std::io;

use chrono::NaiveDate;
use wire::csv_cell::{write_cell, write_text};
use wire::timestamp::local;

use super::columns::{RowCell, columns};
use super::destination::{Out, Part};
use super::ledger_books::{LedgerBooks, LedgerMovement};
use super::rows::{ExportedRow, plain};
use super::writer::{Ledgers, Writer};
use crate::cells::Dialect;

/// Writer of CSV.
pub(super) struct CsvRows {
    dialect: Dialect,
    has_labels: bool,
    text: Vec<u8>,
}

impl CsvRows {
    pub(super) fn new(dialect: Dialect, has_labels: bool) -> Self {
        Self { dialect, has_labels, text: Vec::new() }
    }
}

impl Writer for CsvRows {
    fn begin(&mut self, _: &mut Ledgers, _: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        let columns = columns(self.has_labels).iter().map(|column| (column.name, column.head_ptbr));
        out.write(Part::Rows, self.dialect.head(columns).as_bytes())
    }

    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        self.text.clear();
        for row in ExportedRow::all(books, movement) {
            write(self.dialect, &row.cells()[..columns(self.has_labels).len()], &mut self.text)?;
        }
        out.write(Part::Rows, &self.text)
    }
}

/// Appends a row as a line.
fn write(dialect: Dialect, cells: &[RowCell<'_>], text: &mut Vec<u8>) -> io::Result<()> {
    let separator = dialect.separator();
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            text.push(separator as u8);
        }
        match (dialect, cell) {
            (_, RowCell::Empty) => {}
            (_, RowCell::Number(number)) => serde_json::to_writer(&mut *text, number)?,
            (_, RowCell::Text(of)) => write_text(of, separator, text),
            (Dialect::Plain, _) => write_cell(&plain(cell), separator, text),
            (Dialect::Brazilian, _) => write_cell(&brazilian(cell), separator, text),
        }
    }
    text.extend_from_slice(b"\r\n");
    Ok(())
}

/// The text of a cell as Brazilian spreadsheets read it.
fn brazilian<'a>(cell: &'a RowCell<'_>) -> Cow<'a, str> {
    match cell {
        RowCell::Amount(centavos) => format!("{},{:02}", centavos / 100, centavos % 100).into(),
        RowCell::Day(day, _) => day.format("%d/%m/%Y").to_string().into(),
        RowCell::Instant(at, _) => local(*at).format("%d/%m/%Y %H:%M:%S").to_string().into(),
        cell => plain(cell),
    }
}

#[cfg(test)]
mod tests {
    use wire::timestamp::day;

    use super::*;

    #[test]
    fn a_cell_is_text_and_never_a_formula() {
        let cases = [
            ("plain", "plain"),
            ("", ""),
            ("two words", "two words"),
            ("a,b", "\"a,b\""),
            ("a;b", "a;b"),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("=cmd()", "'=cmd()"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@x", "'@x"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("=a,b", "\"'=a,b\""),
        ];
        for (cell, expected) in cases {
            let mut text = Vec::new();
            write_cell(cell, ',', &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{cell:?}");
        }
    }

    #[test]
    fn a_text_is_never_a_number() {
        for (cell, expected) in [
            ("000123", "'000123"),
            ("12345678901234567890", "'12345678901234567890"),
            ("12e34", "'12e34"),
            ("1.5", "'1.5"),
            ("1,5", "\"'1,5\""),
            ("E1234", "E1234"),
            ("2026-07", "2026-07"),
            ("01a22082-4c7b", "01a22082-4c7b"),
            ("visa", "visa"),
            ("", ""),
            ("=1", "'=1"),
        ] {
            let mut text = Vec::new();
            write_text(cell, ',', &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{cell:?}");
        }
    }

    #[test]
    fn a_brazilian_spreadsheet_reads_amounts_days_and_times() {
        let day = day("2026-07-01").unwrap();
        for (cell, expected) in [
            (RowCell::Amount(0), "0,00"),
            (RowCell::Amount(5), "0,05"),
            (RowCell::Amount(1_234_567), "12345,67"),
            (RowCell::Day(day, "2026-07-01"), "01/07/2026"),
            (RowCell::Instant(1_782_874_799_999, "2026-07-01T02:59:59.999Z"), "30/06/2026 23:59:59"),
            (RowCell::Number(1_000), "1000"),
            (RowCell::Empty, ""),
        ] {
            assert_eq!(brazilian(&cell), expected, "{cell:?}");
        }
    }
}
