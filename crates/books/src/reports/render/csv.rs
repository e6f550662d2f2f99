//! Reports as CSV: the rows alone, without totals and cut.

use std::io::{self, Write};

use wire::csv_cell::write_text;

use super::words::shown;
use crate::reports::table::{Cell, Heading, Renderer, TableFooter};

/// ReportDialect of a report's CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportDialect {
    /// RFC 4180; amounts in centavos, days in ISO 8601.
    Plain,
    /// `;` between cells, amounts in reais with a decimal comma, DD/MM/AAAA, a byte order mark.
    Brazilian,
}

/// A report that is being written.
pub(super) struct CsvTable<'a> {
    dialect: ReportDialect,
    out: &'a mut dyn Write,
    line: Vec<u8>,
}

impl<'a> CsvTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, dialect: ReportDialect, out: &'a mut dyn Write) -> io::Result<Self> {
        let names = heading.columns.iter();
        let head = match dialect {
            ReportDialect::Plain => names.map(|column| column.name).collect::<Vec<_>>().join(","),
            ReportDialect::Brazilian => {
                format!("\u{feff}{}", names.map(|column| column.label).collect::<Vec<_>>().join(";"))
            }
        };
        out.write_all(head.as_bytes())?;
        out.write_all(b"\r\n")?;
        Ok(Self { dialect, out, line: Vec::new() })
    }
}

impl Renderer for CsvTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.line.clear();
        let separator = if self.dialect == ReportDialect::Plain { ',' } else { ';' };
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                self.line.push(separator as u8);
            }
            match (cell, self.dialect) {
                (Cell::Word(name, _), ReportDialect::Plain) => write_text(name, separator, &mut self.line),
                (Cell::Word(_, ptbr), _) => write_text(ptbr, separator, &mut self.line),
                (Cell::Text(text), _) => write_text(text, separator, &mut self.line),
                (Cell::Centavos(centavos), ReportDialect::Plain) => self.line.extend(centavos.to_string().bytes()),
                (Cell::Centavos(centavos), ReportDialect::Brazilian) => self.line.extend(ungrouped(*centavos).bytes()),
                (Cell::Day(day), ReportDialect::Plain) => self.line.extend(day.to_string().bytes()),
                (Cell::Rate(rate), ReportDialect::Plain) => self.line.extend(rate.as_percent().to_string().bytes()),
                (cell, _) => self.line.extend(shown(cell).bytes()),
            }
        }
        self.line.extend_from_slice(b"\r\n");
        self.out.write_all(&self.line)
    }

    fn finish(self: Box<Self>, _: &TableFooter) -> io::Result<()> {
        Ok(())
    }
}

/// Reais with a decimal comma, without dots between thousands.
fn ungrouped(centavos: i128) -> String {
    let sign = if centavos < 0 { "-" } else { "" };
    format!("{sign}{},{:02}", centavos.unsigned_abs() / 100, centavos.unsigned_abs() % 100)
}
