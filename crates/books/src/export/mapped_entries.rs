//! Entries for other bookkeeping programs: the accounts have the codes of a [`Chart`], its layout
//! says the columns, and every document is balanced. One document is a Record's postings in a
//! ledger, or those of a day.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use chrono::NaiveDate;
use ledger::entry::Side;
use wire::csv_cell::write_cell;

use super::chart::{Chart, ChartRow, Level};
use super::destination::{Out, Part};
use super::layout::{LayoutPlace, ValuePart};
use super::ledger_books::{LedgerBooks, LedgerMovement, cleaned};
use super::writer::{Ledgers, Writer};
use crate::error::BooksError;

/// Entries that are being written.
pub(super) struct MappedEntries {
    chart: Chart,
    level: Level,
    /// The documents' ledger.
    ledger: String,
    /// The day that is being summed, with both sides of each row of the chart.
    day: Option<(NaiveDate, BTreeMap<ChartRow, [i128; 2]>)>,
    /// Whether the file has begun.
    has_begun: bool,
    /// Accounts without a code.
    missing: BTreeSet<String>,
    text: Vec<u8>,
}

/// What the lines of a document have in common.
struct Document {
    name: String,
    day: NaiveDate,
    effective_day: NaiveDate,
}

/// One line of a document.
struct Line {
    code: String,
    side: Side,
    /// In centavos, above zero.
    amount: i128,
    history: String,
    cost_center: String,
    reference: String,
}

impl MappedEntries {
    pub(super) fn new(chart: Chart, level: Level, ledger: String) -> Self {
        let (missing, text) = (BTreeSet::new(), Vec::new());
        Self { chart, level, ledger, day: None, has_begun: false, missing, text }
    }

    /// Writes the day that was summed: of each row of the chart the debits, then the credits.
    fn end_day(&mut self, out: &mut dyn Out) -> io::Result<()> {
        let Some((day, sums)) = self.day.take() else { return Ok(()) };
        let mut lines = Vec::new();
        for (row, [debits, credits]) in sums {
            let date = day.to_string();
            let values = ["day", "movimento do dia", "", &date, &date, &self.ledger];
            let history = history(row.history.as_deref().unwrap_or("{event} {date}"), values);
            let sides = [(Side::Debit, debits), (Side::Credit, credits)];
            for (side, amount) in sides.into_iter().filter(|(_, amount)| *amount != 0) {
                lines.push(Line {
                    code: row.code.clone(),
                    side,
                    amount,
                    history: history.trim().to_owned(),
                    cost_center: row.cost_center.clone(),
                    reference: self.ledger.clone(),
                });
            }
        }
        let name = day.format("%Y%m%d").to_string();
        self.write(&Document { name, day, effective_day: day }, &lines, out)
    }

    fn write(&mut self, document: &Document, lines: &[Line], out: &mut dyn Out) -> io::Result<()> {
        self.write_head();
        for (place, line) in (1..).zip(lines) {
            let cells: Vec<_> = self
                .chart
                .layout
                .columns
                .iter()
                .map(|column| self.cell(&column.value, document, place, line))
                .collect();
            self.write_cells(&cells);
        }
        self.flush(out)
    }

    fn write_head(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) && self.chart.layout.has_heads {
            let heads: Vec<_> = self.chart.layout.columns.iter().map(|column| column.head.clone()).collect();
            self.write_cells(&heads);
        }
    }

    fn cell(&self, value: &[ValuePart], document: &Document, place: usize, line: &Line) -> String {
        let part = |part: &ValuePart| match part {
            ValuePart::Text(text) => text.clone(),
            ValuePart::Place(of) => self.value(*of, document, place, line),
        };
        value.iter().map(part).collect()
    }

    /// The text of a place in one line.
    fn value(&self, of: LayoutPlace, document: &Document, place: usize, line: &Line) -> String {
        let layout = &self.chart.layout;
        let amount = || format!("{}{}{:02}", line.amount / 100, layout.decimal, line.amount % 100);
        let code_of = |side| if line.side == side { line.code.clone() } else { String::new() };
        let amount_of = |side| if line.side == side { amount() } else { layout.zero.clone() };
        match of {
            LayoutPlace::Date => document.day.to_string(),
            LayoutPlace::DateBr => document.day.format("%d/%m/%Y").to_string(),
            LayoutPlace::EffectiveDate => document.effective_day.to_string(),
            LayoutPlace::Document => document.name.clone(),
            LayoutPlace::Line => place.to_string(),
            LayoutPlace::Ledger => self.ledger.clone(),
            LayoutPlace::Code => line.code.clone(),
            LayoutPlace::DebitCode => code_of(Side::Debit),
            LayoutPlace::CreditCode => code_of(Side::Credit),
            LayoutPlace::Debit => amount_of(Side::Debit),
            LayoutPlace::Credit => amount_of(Side::Credit),
            LayoutPlace::Amount => amount(),
            LayoutPlace::Side => if line.side == Side::Debit { "D" } else { "C" }.to_owned(),
            LayoutPlace::History => line.history.clone(),
            LayoutPlace::CostCenter => line.cost_center.clone(),
            LayoutPlace::Reference => line.reference.clone(),
        }
    }

    fn write_cells(&mut self, cells: &[String]) {
        let separator = self.chart.layout.separator;
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                self.text.push(separator as u8);
            }
            write_cell(cell, separator, &mut self.text);
        }
        self.text.extend_from_slice(b"\r\n");
    }

    /// Hands the text on, unless an account has no code.
    fn flush(&mut self, out: &mut dyn Out) -> io::Result<()> {
        if self.missing.is_empty() {
            out.write(Part::Rows, &self.text)?;
        }
        self.text.clear();
        Ok(())
    }
}

/// The history of a line: a text of the chart, with its places filled.
fn history(text: &str, values: [&str; 6]) -> String {
    let places = ["{event}", "{event_ptbr}", "{sequence}", "{date}", "{effective_date}", "{reference}"];
    places.into_iter().zip(values).fold(text.to_owned(), |text, (place, value)| text.replace(place, value))
}

impl Writer for MappedEntries {
    fn begin(&mut self, _: &mut Ledgers, _: NaiveDate, _: &mut dyn Out) -> io::Result<()> {
        Ok(())
    }

    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        if self.day.as_ref().is_some_and(|(day, _)| *day != movement.day) {
            self.end_day(out)?;
        }
        let mut lines = Vec::with_capacity(movement.lines.len());
        for line in &movement.lines {
            let account = &books.accounts[&line.posting.account].name;
            let Some(row) = self.chart.row(account) else {
                self.missing.insert(account.clone());
                continue;
            };
            let amount = i128::from(line.posting.amount.0);
            let side = line.posting.side;
            if self.level == Level::Day {
                let (_, sums) = self.day.get_or_insert_with(|| (movement.day, BTreeMap::new()));
                sums.entry(row.clone()).or_default()[usize::from(side == Side::Credit)] += amount;
                continue;
            }
            let reference = line.source.objects.first().map(|(_, id)| cleaned(id).into_owned()).unwrap_or_default();
            let (source, name) = (line.source, movement.name());
            let (date, effective) = (movement.date, movement.effective_date);
            let values = [source.event, source.event_ptbr, &name, date, effective, &reference];
            let history = history(row.history.as_deref().unwrap_or("{event} {sequence}"), values);
            let (code, cost_center) = (row.code.clone(), row.cost_center.clone());
            lines.push(Line { code, side, amount, history, cost_center, reference });
        }
        if lines.is_empty() {
            return Ok(());
        }
        let (day, effective_day) = (movement.day, movement.effective_day);
        self.write(&Document { name: movement.name(), day, effective_day }, &lines, out)
    }

    /// Writes the last day and, if there was nothing, the head.
    fn finish(mut self: Box<Self>, _: &mut Ledgers, _: (NaiveDate, i64), out: &mut dyn Out) -> Result<(), BooksError> {
        self.end_day(out)?;
        self.write_head();
        self.flush(out)?;
        if self.missing.is_empty() { Ok(()) } else { Err(BooksError::NoCode(self.missing.into_iter().collect())) }
    }
}
