//! Tables as files: rows of typed cells as CSV or as a workbook, with one row in memory. A list is
//! the rows that an operator sees on a page; its file has all of them.

use std::io::{self, Write};

use strum::IntoStaticStr;
use wire::timestamp::{day_of, local};

use crate::cells::{Cell, Dialect, Kind};
pub use crate::workbook::days_ptbr;
use crate::workbook::{SheetTitle, TableBook};

/// Format of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TableFormat {
    /// RFC 4180; amounts in centavos, instants in RFC 3339.
    Csv,
    /// `;` between cells, amounts in reais with a decimal comma, times of Sao Paulo, a byte order
    /// mark.
    CsvPtbr,
    /// A workbook with numbers and times as such.
    Xlsx,
}

impl TableFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Csv, Self::CsvPtbr, Self::Xlsx];

    /// Its name in a query.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What HTTP calls it in `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv | Self::CsvPtbr => "text/csv; charset=utf-8; header=present",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }

    /// The end of its file's name.
    pub fn ending(self) -> &'static str {
        if self == Self::Xlsx { "xlsx" } else { "csv" }
    }
}

/// Name of a column for programs, its head for people, in Portuguese, and its kind.
pub type TableColumn = (&'static str, &'static str, Kind);

/// A file of a table that is being written.
pub(crate) struct TableFile<W> {
    out: W,
    rows: Rows,
}

enum Rows {
    Csv(Dialect, Vec<u8>),
    Sheet(Box<TableBook>),
}

impl<W: Write> TableFile<W> {
    /// Begins a file with its head.
    pub(crate) fn new(
        format: TableFormat,
        title: SheetTitle,
        columns: Vec<TableColumn>,
        mut out: W,
    ) -> io::Result<Self> {
        let dialect = match format {
            TableFormat::Csv => Dialect::Plain,
            TableFormat::CsvPtbr => Dialect::Brazilian,
            TableFormat::Xlsx => {
                let rows = Rows::Sheet(Box::new(TableBook::new(title, columns)?));
                return Ok(Self { out, rows });
            }
        };
        out.write_all(dialect.head(columns.iter().map(|(name, label, _)| (*name, *label))).as_bytes())?;
        Ok(Self { out, rows: Rows::Csv(dialect, Vec::new()) })
    }

    /// Writes a row: a cell for each column.
    pub(crate) fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        match &mut self.rows {
            Rows::Csv(dialect, line) => {
                line.clear();
                dialect.write(cells, line);
                self.out.write_all(line)
            }
            Rows::Sheet(book) => book.row(cells),
        }
    }

    /// Writes what is left, which only a workbook has; see [`TableBook::finish`].
    pub(crate) fn end(mut self, totals: &[Option<i128>], about: &str, created_ms: i64) -> io::Result<()> {
        match self.rows {
            Rows::Csv(..) => Ok(()),
            Rows::Sheet(book) => book.finish(totals, about, created_ms, |part| self.out.write_all(part)),
        }
    }
}

/// A file of a list that is being written.
pub struct ListFile<'a> {
    file: TableFile<&'a mut (dyn Write + Send)>,
    /// Sums of the amounts of each column, centavos; `None` before the first one.
    totals: Vec<Option<i128>>,
}

impl<'a> ListFile<'a> {
    /// Begins a file with its head. `title` and `subject` stand above the rows of a workbook.
    pub fn new(
        format: TableFormat,
        (title, subject): (&'static str, String),
        columns: &[TableColumn],
        out: &'a mut (dyn Write + Send),
    ) -> io::Result<Self> {
        let file = TableFile::new(format, SheetTitle { title, subject }, columns.to_vec(), out)?;
        Ok(Self { file, totals: vec![None; columns.len()] })
    }

    /// Writes a row: a cell for each column.
    pub fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        for (total, cell) in self.totals.iter_mut().zip(cells) {
            if let Cell::Amount(centavos) = cell {
                *total.get_or_insert_default() += centavos;
            }
        }
        self.file.write_row(cells)
    }

    /// Writes what is left: in a workbook the sums of amounts. `now_ms` is the time of the list,
    /// milliseconds since the Unix epoch.
    pub fn finish(self, now_ms: i64) -> io::Result<()> {
        let about = format!("Lista de {}", local(now_ms).format("%d/%m/%Y %H:%M:%S"));
        self.file.end(&self.totals, &about, now_ms)
    }
}

/// The days of a list in Portuguese: from an instant, and before another one, milliseconds since
/// the Unix epoch.
pub fn period_ptbr(from_ms: Option<i64>, until_ms: Option<i64>) -> String {
    days_ptbr(from_ms.map(day_of), until_ms.map(|until| day_of(until - 1)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};

    use super::*;

    const COLUMNS: [TableColumn; 4] = [
        ("id", "ID", Kind::Text),
        ("name", "Nome", Kind::Text),
        ("amount", "Valor", Kind::Amount),
        ("created_at", "Criada em", Kind::Instant),
    ];

    fn file(format: TableFormat) -> Vec<u8> {
        let mut out = Vec::new();
        let mut file = ListFile::new(format, ("Lista", period_ptbr(None, Some(0))), &COLUMNS, &mut out).unwrap();
        let text = |text: &str| Cell::Text(text.to_owned());
        file.row(&[text("000123"), text("=cmd(); \"x\""), Cell::Amount(-123_456), Cell::Instant(0)]).unwrap();
        file.row(&[text("2"), Cell::Empty, Cell::Amount(5), Cell::Empty]).unwrap();
        file.finish(0).unwrap();
        out
    }

    #[test]
    fn the_same_rows_in_each_format() {
        let plain = String::from_utf8(file(TableFormat::Csv)).unwrap();
        let expected = "id,name,amount,created_at\r\n'000123,\"'=cmd(); \"\"x\"\"\",-123456,1970-01-01T00:00:00.000Z\r\n'2,,5,\r\n";
        assert_eq!(plain, expected);
        let brazilian = String::from_utf8(file(TableFormat::CsvPtbr)).unwrap();
        let expected = "\u{feff}ID;Nome;Valor;Criada em\r\n'000123;\"'=cmd(); \"\"x\"\"\";-1234,56;31/12/1969 21:00:00\r\n'2;;0,05;\r\n";
        assert_eq!(brazilian, expected);
        let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(file(TableFormat::Xlsx))).unwrap();
        let sheet = book.worksheet_range_at(0).unwrap().unwrap();
        let rows: Vec<_> = sheet.rows().skip_while(|row| row[0] != Data::String("ID".into())).collect();
        assert_eq!(rows[0][2], Data::String("Valor".to_owned()));
        assert_eq!(
            rows[1][..3],
            [Data::String("000123".into()), Data::String("=cmd(); \"x\"".into()), Data::Float(-1234.56)]
        );
        assert!(matches!(rows[1][3], Data::DateTime(_)), "{:?}", rows[1][3]);
        assert_eq!(sheet.get_value((1, 0)), Some(&Data::String("até 31/12/1969".into())));
        assert_eq!(rows[3][..3], [Data::String("Total".into()), Data::Empty, Data::Float(-1234.51)]);
        assert_eq!((rows[2][1].clone(), rows[2][2].clone()), (Data::Empty, Data::Float(0.05)));
    }
}
