//! Cells of tables: the kinds of columns and the typed values that reports and lists have, as
//! people read them in Brazil, and as lines of CSV.

use std::borrow::Cow;

use chrono::NaiveDate;
use ledger::Rate;
use wire::csv_cell::write_text;
use wire::reais::reais;
use wire::timestamp::{local, with_milliseconds};

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An id, a name.
    Text,
    /// One of a few words, short.
    Word,
    /// The outside name of a ledger, beside which the owner's name and tax id may stand.
    Owner,
    /// An amount of money, centavos; below zero too.
    Amount,
    /// A count or a place.
    Count,
    /// A percentage.
    Rate,
    /// A day in America/Sao_Paulo.
    Day,
    /// Date and time of day.
    Instant,
}

/// Value of one column in one row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// No value.
    Empty,
    /// An id, a name.
    Text(String),
    /// A word: for programs, and in Portuguese for people.
    Word(Cow<'static, str>, Cow<'static, str>),
    /// An amount, centavos.
    Amount(i128),
    /// A day in America/Sao_Paulo.
    Day(NaiveDate),
    /// A count or a place.
    Count(u64),
    /// A percentage.
    Rate(Rate),
    /// An instant, milliseconds since the Unix epoch.
    Instant(i64),
}

impl Cell {
    /// A text; no value where there is none.
    pub fn optional(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.into()))
    }

    /// An amount, centavos; no value where there is none.
    pub fn amount(centavos: Option<i64>) -> Self {
        centavos.map_or(Self::Empty, |centavos| Self::Amount(centavos.into()))
    }

    /// The cell as it is read in Brazil: reais with a decimal comma, DD/MM/AAAA.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => text.clone(),
            Self::Word(_, ptbr) => ptbr.clone().into_owned(),
            Self::Amount(centavos) => reais(*centavos),
            Self::Day(day) => day.format("%d/%m/%Y").to_string(),
            Self::Count(count) => count.to_string(),
            Self::Rate(rate) => rate.as_percent().to_string().replace('.', ","),
            Self::Instant(at) => local(*at).format("%d/%m/%Y %H:%M:%S").to_string(),
        }
    }
}

/// Dialect of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// RFC 4180; amounts in centavos, days in ISO 8601, instants in RFC 3339.
    Plain,
    /// `;` between cells, amounts in reais with a decimal comma, DD/MM/AAAA, times in
    /// America/Sao_Paulo, a byte order mark.
    Brazilian,
}

impl Dialect {
    /// What stands between two cells.
    pub(crate) fn separator(self) -> char {
        if self == Self::Plain { ',' } else { ';' }
    }

    /// The first line of a file, of the names of its columns for programs and for people.
    pub(crate) fn head<'a>(self, columns: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let heads = columns.map(|(name, label)| if self == Self::Plain { name } else { label });
        let heads = heads.collect::<Vec<_>>().join(&self.separator().to_string());
        format!("{}{heads}\r\n", if self == Self::Plain { "" } else { "\u{feff}" })
    }

    /// Appends a row as a line.
    pub(crate) fn write(self, cells: &[Cell], line: &mut Vec<u8>) {
        let separator = self.separator();
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                line.push(separator as u8);
            }
            match (cell, self) {
                (Cell::Text(text), _) => write_text(text, separator, line),
                (Cell::Word(name, _), Self::Plain) => write_text(name, separator, line),
                (Cell::Word(_, ptbr), Self::Brazilian) => write_text(ptbr, separator, line),
                (Cell::Amount(centavos), Self::Plain) => line.extend(centavos.to_string().bytes()),
                (Cell::Amount(centavos), Self::Brazilian) => line.extend(ungrouped(*centavos).bytes()),
                (Cell::Day(day), Self::Plain) => line.extend(day.to_string().bytes()),
                (Cell::Rate(rate), Self::Plain) => line.extend(rate.as_percent().to_string().bytes()),
                (Cell::Instant(at), Self::Plain) => line.extend(with_milliseconds(*at).bytes()),
                (cell, _) => line.extend(cell.shown().bytes()),
            }
        }
        line.extend_from_slice(b"\r\n");
    }
}

/// Reais with a decimal comma, without dots between thousands.
fn ungrouped(centavos: i128) -> String {
    let sign = if centavos < 0 { "-" } else { "" };
    format!("{sign}{},{:02}", centavos.unsigned_abs() / 100, centavos.unsigned_abs() % 100)
}
