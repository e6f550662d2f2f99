//! Workbook of one table (XLSX), as accountants expect it: title, Portuguese heads that stay in
//! view, a filter on each column, real numbers and days, a row of totals.
//!
//! Row 1 is the title, row 2 the period, row 4 the heads ([`HEAD_ROW`]); the rows follow. What a
//! sheet cannot hold goes on in another one, with the same four rows. Rows go to temporary files of
//! the system; only one is in memory. The same rows are the same bytes.

use std::io::{self, Read, Seek};

use chrono::NaiveDate;
use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, FormatBorder, Formula, Workbook, Worksheet, XlsxError,
};
use wire::timestamp::local;

use crate::cells::{Cell, Kind};
use crate::table_file::TableColumn;

/// Row of the heads, from 0.
pub(crate) const HEAD_ROW: u32 = 3;
/// Most rows that programs open in one sheet.
const SHEET_ROWS: u32 = 1 << 20;
/// Letters of a sheet's name.
const SHEET_NAME_MAX: usize = 31;
/// A4, in the numbers of spreadsheets.
const A4: u8 = 9;
/// The day before a spreadsheet's first day, with the leap day that 1900 did not have.
const DAY_ZERO: NaiveDate = NaiveDate::from_ymd_opt(1899, 12, 30).expect("it is a day");
const DAY_MILLISECONDS: f64 = 86_400_000.0;
/// Bytes of the finished file that are handed on at once.
const PART_BYTES: usize = 64 * 1024;

/// What stands above the rows.
pub(crate) struct SheetTitle {
    /// The title, which is the sheet's name, too; letters and blanks.
    pub(crate) title: &'static str,
    /// Whose it is and of which days.
    pub(crate) subject: String,
}

/// A workbook that is being written.
pub(crate) struct TableBook {
    workbook: Workbook,
    title: SheetTitle,
    columns: Vec<TableColumn>,
    formats: Vec<Format>,
    /// Number of the next row in each sheet.
    ends: Vec<u32>,
    sheet_rows: u32,
}

impl TableBook {
    pub(crate) fn new(title: SheetTitle, columns: Vec<TableColumn>) -> io::Result<Self> {
        Self::with_sheets_of(SHEET_ROWS, title, columns)
    }

    pub(crate) fn with_sheets_of(sheet_rows: u32, title: SheetTitle, columns: Vec<TableColumn>) -> io::Result<Self> {
        let formats = columns.iter().map(|(.., kind)| format_of(*kind)).collect();
        let mut book = Self { workbook: Workbook::new(), title, columns, formats, ends: Vec::new(), sheet_rows };
        book.add_sheet().map_err(io::Error::other)?;
        Ok(book)
    }

    /// Writes the next row: a cell for each column.
    pub(crate) fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.write(cells).map_err(io::Error::other)
    }

    /// Writes the totals (centavos or counts; `None` where a sum has no meaning) and a sheet
    /// `Corte` with the line `about`, and gives the file in parts. `created_ms` is its time, in
    /// milliseconds since the Unix epoch.
    pub(crate) fn finish(
        mut self,
        totals: &[Option<i128>],
        about: &str,
        created_ms: i64,
        mut out: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.end(totals, about, created_ms).map_err(io::Error::other)?;
        let mut file = tempfile::tempfile()?;
        self.workbook.save_to_writer(io::BufWriter::new(&mut file)).map_err(io::Error::other)?;
        file.rewind()?;
        let mut part = vec![0; PART_BYTES];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(()),
                read => out(&part[..read])?,
            }
        }
    }

    fn add_sheet(&mut self) -> Result<(), XlsxError> {
        let name = sheet_name(self.title.title, self.ends.len() + 1);
        let bold = Format::new().set_bold();
        let head = bold.clone().set_background_color(Color::RGB(0x00E7_E6E6)).set_border_bottom(FormatBorder::Thin);
        let head = head.set_text_wrap();
        let last = self.columns.len().saturating_sub(1) as u16;
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(name)?.set_freeze_panes(HEAD_ROW + 1, 0)?;
        sheet.set_landscape().set_paper_size(A4).set_print_fit_to_pages(1, 0).set_repeat_rows(HEAD_ROW, HEAD_ROW)?;
        sheet.set_footer(format!("&L{}&RPágina &P de &N", self.title.title));
        // Widths come before the first row: it is on the disk when the next one begins.
        for (place, (_, head, kind)) in (0..).zip(&self.columns) {
            sheet.set_column_width(place, width(head, *kind))?;
        }
        sheet.write_string_with_format(0, 0, self.title.title, &bold.set_font_size(14))?;
        sheet.write_string(1, 0, &self.title.subject)?;
        for (place, (_, text, _)) in (0..).zip(&self.columns) {
            sheet.write_string_with_format(HEAD_ROW, place, *text, &head)?;
        }
        sheet.autofilter(HEAD_ROW, 0, HEAD_ROW, last)?;
        self.ends.push(HEAD_ROW + 1);
        Ok(())
    }

    fn sheet(&mut self) -> Result<&mut Worksheet, XlsxError> {
        self.workbook.worksheet_from_index(self.ends.len() - 1)
    }

    fn end_of_sheet(&self) -> u32 {
        self.ends.last().copied().unwrap_or_default()
    }

    fn write(&mut self, cells: &[Cell]) -> Result<(), XlsxError> {
        // The last row is for the totals.
        if self.end_of_sheet() >= self.sheet_rows - 1 {
            self.end_filter()?;
            self.add_sheet()?;
        }
        let row = self.end_of_sheet();
        let formats = std::mem::take(&mut self.formats);
        let sheet = self.sheet()?;
        for ((place, cell), format) in (0..).zip(cells).zip(&formats) {
            match cell {
                Cell::Empty => continue,
                Cell::Text(text) => sheet.write_string_with_format(row, place, text, format)?,
                Cell::Word(_, ptbr) => sheet.write_string_with_format(row, place, ptbr.as_ref(), format)?,
                cell => sheet.write_number_with_format(row, place, number(cell), format)?,
            };
        }
        self.formats = formats;
        if let Some(end) = self.ends.last_mut() {
            *end += 1;
        }
        Ok(())
    }

    /// Widens the filter of the last sheet to its rows.
    fn end_filter(&mut self) -> Result<(), XlsxError> {
        let (last, end) = (self.columns.len().saturating_sub(1) as u16, self.end_of_sheet());
        self.sheet()?.autofilter(HEAD_ROW, 0, end - 1, last)?;
        Ok(())
    }

    fn end(&mut self, totals: &[Option<i128>], about: &str, created_ms: i64) -> Result<(), XlsxError> {
        self.end_filter()?;
        if totals.iter().any(Option::is_some) {
            self.write_totals(totals)?;
        }
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name("Corte")?.set_column_width(0, 100)?;
        sheet.write_string(0, 0, about)?;
        let created = ExcelDateTime::from_timestamp(created_ms.div_euclid(1_000))?;
        let properties = DocProperties::new().set_title(self.title.title).set_creation_datetime(&created);
        self.workbook.set_properties(&properties);
        Ok(())
    }

    /// Totals that follow the filter: of the rows that are shown.
    fn write_totals(&mut self, totals: &[Option<i128>]) -> Result<(), XlsxError> {
        let row = self.end_of_sheet();
        let formats: Vec<_> = self.formats.iter().map(|format| total_format(format.clone())).collect();
        let kinds: Vec<_> = self.columns.iter().map(|(.., kind)| *kind).collect();
        let formulas: Vec<_> = (0..).zip(totals).map(|(place, _)| self.sum_of_column(place)).collect();
        let sheet = self.sheet()?;
        for (place, total) in totals.iter().enumerate() {
            let (column, format) = (place as u16, &formats[place]);
            match total {
                None if place == 0 => sheet.write_string_with_format(row, 0, "Total", format)?,
                None => sheet.write_blank(row, column, format)?,
                Some(total) => {
                    let value = if kinds[place] == Kind::Amount { *total as f64 / 100.0 } else { *total as f64 };
                    let formula = Formula::new(&formulas[place]).set_result(value.to_string());
                    sheet.write_formula_with_format(row, column, formula, format)?
                }
            };
        }
        Ok(())
    }

    fn sum_of_column(&self, place: u16) -> String {
        let letters = rust_xlsxwriter::utility::column_number_to_name(place);
        let sums = (1..).zip(&self.ends).map(|(number, end)| {
            // Without rows, it is the sum of the heads, which are no numbers: 0.
            let first = (HEAD_ROW + 2).min(*end);
            format!("SUBTOTAL(109,'{}'!{letters}{first}:{letters}{end})", sheet_name(self.title.title, number))
        });
        format!("={}", sums.collect::<Vec<_>>().join("+"))
    }
}

/// Days in Portuguese: the first and the last one, where there are.
pub fn days_ptbr(from: Option<NaiveDate>, to: Option<NaiveDate>) -> String {
    let day = |day: NaiveDate| day.format("%d/%m/%Y").to_string();
    match (from, to) {
        (Some(from), Some(to)) => format!("de {} a {}", day(from), day(to)),
        (Some(from), None) => format!("desde {}", day(from)),
        (None, Some(to)) => format!("até {}", day(to)),
        (None, None) => "desde o início dos livros".to_owned(),
    }
}

/// The name of a sheet: the title, and from the second on a number.
fn sheet_name(title: &str, number: usize) -> String {
    let suffix = if number > 1 { format!(" {number}") } else { String::new() };
    title.chars().take(SHEET_NAME_MAX - suffix.len()).chain(suffix.chars()).collect()
}

fn format_of(kind: Kind) -> Format {
    Format::new().set_num_format(match kind {
        // Digits stay text when somebody edits the cell.
        Kind::Text | Kind::Word | Kind::Owner => "@",
        // Below zero in red and in parentheses.
        Kind::Amount => "#,##0.00_);[Red](#,##0.00)",
        Kind::Count => "0",
        Kind::Rate => "0.00##%",
        Kind::Day => "dd/mm/yyyy",
        Kind::Instant => "dd/mm/yyyy hh:mm:ss",
    })
}

fn total_format(format: Format) -> Format {
    format.set_bold().set_border_top(FormatBorder::Thin)
}

/// Width of a column that shows its head and every value, in characters.
fn width(head: &str, kind: Kind) -> f64 {
    let values = match kind {
        Kind::Text | Kind::Owner => 39,
        Kind::Amount | Kind::Word => 20,
        Kind::Instant => 24,
        Kind::Day | Kind::Count | Kind::Rate => 12,
    };
    // The button of the filter takes three characters.
    values.max(head.chars().count() + 4) as f64
}

/// A cell as the number that a spreadsheet has for it.
fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Empty | Cell::Text(_) | Cell::Word(..) => 0.0,
        Cell::Amount(centavos) => *centavos as f64 / 100.0,
        Cell::Count(count) => *count as f64,
        Cell::Rate(rate) => f64::from(rate.millionths()) / 1_000_000.0,
        Cell::Day(day) => (*day - DAY_ZERO).num_days() as f64,
        Cell::Instant(at) => {
            (local(*at) - DAY_ZERO.and_time(chrono::NaiveTime::MIN)).num_milliseconds() as f64 / DAY_MILLISECONDS
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};

    use super::*;

    /// Seven rows in sheets of three; the totals are of all, and stand in the last sheet.
    #[test]
    fn a_full_sheet_is_followed_by_another() {
        let title = SheetTitle { title: "Lançamentos de meses anteriores", subject: "julho".to_owned() };
        let columns = vec![("sequence", "Sequência", Kind::Count), ("debit", "Débito", Kind::Amount)];
        let mut rows = TableBook::with_sheets_of(HEAD_ROW + 1 + 3 + 1, title, columns).unwrap();
        for number in 1..=7 {
            rows.row(&[Cell::Count(number), Cell::Amount(-i128::from(number))]).unwrap();
        }
        let mut out = Vec::new();
        let write = |part: &[u8]| {
            out.extend_from_slice(part);
            Ok(())
        };
        rows.finish(&[None, Some(-28)], "até 42", 0, write).unwrap();
        let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(out)).unwrap();
        let names =
            ["Lançamentos de meses anteriores", "Lançamentos de meses anterior 2", "Lançamentos de meses anterior 3"];
        assert_eq!(book.sheet_names(), [&names[..], &["Corte"]].concat());
        let mut found = Vec::new();
        for name in names {
            let sheet = book.worksheet_range(name).unwrap();
            let head = HEAD_ROW as usize;
            assert_eq!(sheet.rows().nth(head).unwrap()[0], Data::String("Sequência".to_owned()), "{name}");
            found.extend(sheet.rows().skip(head + 1).map(|line| line.to_vec()));
        }
        let total = found.pop().unwrap();
        assert_eq!(total, [Data::String("Total".to_owned()), Data::Float(-0.28)]);
        let expected =
            (1..=7).map(|number| vec![Data::Float(f64::from(number)), Data::Float(f64::from(-number) / 100.0)]);
        assert_eq!(found, expected.collect::<Vec<_>>());
        let formula = book.worksheet_formula(names[2]).unwrap();
        let (_, _, formula) = formula.used_cells().next().unwrap();
        assert_eq!(formula.matches("SUBTOTAL(109,").count(), 3, "{formula}");
    }
}
