//! Entries for other bookkeeping programs: the accounts have the codes of a [`Chart`], and every
//! document is balanced. One document is a Record's postings in a ledger, or those of a day.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use chrono::NaiveDate;
use ledger::entry::Side;

use super::books::{LedgerBooks, LedgerMovement, cleaned};
use super::chart::{Chart, ChartRow, Level};
use super::csv::write_cell;
use super::destination::{Out, Part};
use super::request::Format;

/// Entries that are being written.
pub(super) struct Mapped {
    chart: Chart,
    level: Level,
    format: Format,
    /// The documents' ledger.
    ledger: String,
    /// The day that is being summed, with both sides of each row of the chart.
    day: Option<(NaiveDate, BTreeMap<ChartRow, [i128; 2]>)>,
    /// The current file, from 1, and its lines, the head counted.
    piece: u32,
    lines: usize,
    /// Accounts without a code.
    missing: BTreeSet<String>,
    /// The first document that the format cannot hold.
    defect: Option<String>,
    text: Vec<u8>,
}

/// One line of a document.
struct Line {
    code: String,
    /// Amount in centavos; 0 on the side that the line does not have.
    debit: i128,
    credit: i128,
    history: String,
    cost_center: String,
    reference: String,
}

/// Most lines of a file for QuickBooks, the head counted.
const QUICKBOOKS_LINES_MAX: usize = 1_000;
/// NetSuite takes ten digits before the decimal point.
const NETSUITE_AMOUNT_MAX: i128 = 999_999_999_999;

impl Mapped {
    pub(super) fn new(chart: Chart, level: Level, format: Format, ledger: String) -> Self {
        let (missing, text) = (BTreeSet::new(), Vec::new());
        Self { chart, level, format, ledger, day: None, piece: 1, lines: 0, missing, defect: None, text }
    }

    /// Adds the postings of one Record in the ledger.
    pub(super) fn post(
        &mut self,
        books: &LedgerBooks,
        movement: &LedgerMovement<'_>,
        out: &mut dyn Out,
    ) -> io::Result<()> {
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
            let (debit, credit) = if line.posting.side == Side::Debit { (amount, 0) } else { (0, amount) };
            if self.level == Level::Day {
                let (_, sums) = self.day.get_or_insert_with(|| (movement.day, BTreeMap::new()));
                let sides = sums.entry(row.clone()).or_default();
                *sides = [sides[0] + debit, sides[1] + credit];
                continue;
            }
            let reference = line.source.objects.first().map(|(_, id)| cleaned(id).into_owned()).unwrap_or_default();
            let history = row.history.as_deref().unwrap_or("{event} {sequence}");
            let history = history.replace("{event}", line.source.event);
            let history = history.replace("{sequence}", &movement.at.sequence.0.to_string());
            let history = history.replace("{date}", movement.date).replace("{reference}", &reference);
            let (code, cost_center) = (row.code.clone(), row.cost_center.clone());
            lines.push(Line { code, debit, credit, history, cost_center, reference });
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.write(movement.day, &movement.at.sequence.0.to_string(), lines, out)
    }

    /// Writes the last day and, where there was nothing, the head.
    pub(super) fn finish(&mut self, out: &mut dyn Out) -> io::Result<()> {
        self.end_day(out)?;
        if self.lines == 0 && self.is_sound() {
            self.write_head();
            self.flush(out)?;
        }
        Ok(())
    }

    /// The accounts that have no code, in order.
    pub(super) fn missing(&self) -> impl Iterator<Item = &String> {
        self.missing.iter()
    }

    /// What the format cannot hold.
    pub(super) fn defect(&self) -> Option<&String> {
        self.defect.as_ref()
    }

    fn is_sound(&self) -> bool {
        self.missing.is_empty() && self.defect.is_none()
    }

    /// Writes the day that was summed: of each row of the chart the debits, then the credits.
    fn end_day(&mut self, out: &mut dyn Out) -> io::Result<()> {
        let Some((day, sums)) = self.day.take() else { return Ok(()) };
        let mut lines = Vec::new();
        for (row, [debits, credits]) in sums {
            let history = row.history.as_deref().unwrap_or("{event} {date}");
            let history = history.replace("{event}", "day").replace("{sequence}", "");
            let history = history.replace("{date}", &day.to_string()).replace("{reference}", &self.ledger);
            for (debit, credit) in [(debits, 0), (0, credits)].into_iter().filter(|sides| *sides != (0, 0)) {
                lines.push(Line {
                    code: row.code.clone(),
                    debit,
                    credit,
                    history: history.trim().to_owned(),
                    cost_center: row.cost_center.clone(),
                    reference: self.ledger.clone(),
                });
            }
        }
        self.write(day, &day.format("%Y%m%d").to_string(), lines, out)
    }

    fn write(&mut self, day: NaiveDate, document: &str, lines: Vec<Line>, out: &mut dyn Out) -> io::Result<()> {
        self.note_defect(document, &lines);
        if !self.is_sound() {
            return Ok(());
        }
        if self.format == Format::Quickbooks && self.lines + lines.len() > QUICKBOOKS_LINES_MAX {
            (self.piece, self.lines) = (self.piece + 1, 0);
        }
        if self.lines == 0 {
            self.write_head();
        }
        for (place, line) in (1..).zip(&lines) {
            let cells = self.cells(day, document, place, line);
            write_cells(cells.iter().map(String::as_str), &mut self.text);
        }
        self.lines += lines.len();
        self.flush(out)
    }

    fn note_defect(&mut self, document: &str, lines: &[Line]) {
        let is_long = self.format == Format::Quickbooks && lines.len() >= QUICKBOOKS_LINES_MAX;
        let is_large = |line: &Line| line.debit.max(line.credit) > NETSUITE_AMOUNT_MAX;
        let has_large = self.format == Format::Netsuite && lines.iter().any(is_large);
        if self.defect.is_none() && (is_long || has_large) {
            let what = if is_long { "more lines than a file may have" } else { "an amount of more than ten digits" };
            self.defect = Some(format!("the entry {document} has {what}"));
        }
    }

    fn write_head(&mut self) {
        let head: &[&str] = match self.format {
            Format::Quickbooks => &["JournalNo", "JournalDate", "AccountName", "Debits", "Credits", "Description"],
            Format::Netsuite => &["External ID", "Date", "Account", "Debit", "Credit", "Memo"],
            _ => &[
                "posting_date",
                "document",
                "line",
                "account_code",
                "debit",
                "credit",
                "history",
                "cost_center",
                "reference",
            ],
        };
        write_cells(head.iter().copied(), &mut self.text);
        self.lines += 1;
    }

    fn cells(&self, day: NaiveDate, document: &str, place: usize, line: &Line) -> Vec<String> {
        let [debit, credit] = [line.debit, line.credit].map(|side| amount(side, self.format));
        let (code, history) = (line.code.clone(), line.history.clone());
        let day_first = || day.format("%d/%m/%Y").to_string();
        match self.format {
            Format::Quickbooks => vec![document.to_owned(), day_first(), code, debit, credit, history],
            Format::Netsuite => {
                vec![format!("{}-{document}", self.ledger), day_first(), code, debit, credit, history]
            }
            _ => {
                let (cost_center, reference) = (line.cost_center.clone(), line.reference.clone());
                let (day, document, place) = (day.to_string(), document.to_owned(), place.to_string());
                vec![day, document, place, code, debit, credit, history, cost_center, reference]
            }
        }
    }

    fn flush(&mut self, out: &mut dyn Out) -> io::Result<()> {
        let part = if self.format.is_in_pieces() { Part::Piece(self.piece) } else { Part::Rows };
        out.write(part, &self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// An amount in reais with a decimal point. The side that a line does not have is 0.00, or empty
/// where the program wants it so.
fn amount(centavos: i128, format: Format) -> String {
    if centavos == 0 && format != Format::Erp {
        return String::new();
    }
    format!("{}.{:02}", centavos / 100, centavos % 100)
}

fn write_cells<'a>(cells: impl Iterator<Item = &'a str>, text: &mut Vec<u8>) {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            text.push(b',');
        }
        write_cell(cell, ',', text);
    }
    text.extend_from_slice(b"\r\n");
}
