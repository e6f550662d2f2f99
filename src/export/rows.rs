//! Rows of an export: one posting and its origin, as a JSON object or as a line of CSV.

use ledger::entry::Side;
use serde::{Serialize, Serializer};

use super::books::{LedgerBooks, Line, Movement, cleaned};
use crate::http::timestamp::with_milliseconds;

/// One posting. The columns, in this order, are the same in JSON and CSV.
#[derive(Debug, Serialize)]
pub(super) struct PostingRow<'a> {
    /// Sequence of the Record.
    sequence: u64,
    /// Time of the booking: RFC 3339, milliseconds, `Z`.
    booked_at: &'a str,
    /// Time of the effect, in the same form.
    effective_at: String,
    /// The day of the booking in America/Sao_Paulo.
    date: String,
    /// `M-…`, `R-…` or `P-…`.
    ledger: &'a str,
    /// Place of the entry in its Record, from 1. Sequence, entry and line identify a row for ever.
    entry: usize,
    /// Place of the posting in its entry, from 1.
    line: usize,
    /// The account's full name.
    account: &'a str,
    /// Centavos; 0 when it is a credit.
    debit: i64,
    /// Centavos; 0 when it is a debit.
    credit: i64,
    /// Ledger of the owner who decided the Record.
    owner: &'a str,
    /// Name of the event that caused the posting.
    event: &'static str,
    /// Outside ids of the event's objects, by name: `txid`, …
    objects: Objects<'a>,
    /// Name of the operator who asked for it, if one did.
    operator: Option<String>,
}

/// Names and ids of objects. In CSV they are `name=id`, separated by blanks.
#[derive(Debug)]
struct Objects<'a>(&'a [(&'static str, String)]);

impl Serialize for Objects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, id)| (name, cleaned(id))))
    }
}

/// The names of the columns.
const COLUMNS: [&str; 14] = [
    "sequence",
    "booked_at",
    "effective_at",
    "date",
    "ledger",
    "entry",
    "line",
    "account",
    "debit",
    "credit",
    "owner",
    "event",
    "objects",
    "operator",
];

/// The first line of a CSV file.
pub(super) fn csv_head() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

impl<'a> PostingRow<'a> {
    pub(super) fn of(books: &'a LedgerBooks, movement: &'a Movement<'_>, line: &Line<'a>) -> Self {
        let (amount, record) = (line.posting.amount.0, movement.record);
        let (debit, credit) = match line.posting.side {
            Side::Debit => (amount, 0),
            Side::Credit => (0, amount),
        };
        Self {
            sequence: movement.sequence.0,
            booked_at: &movement.booked_at,
            effective_at: with_milliseconds(record.effective_at.0),
            date: movement.day.to_string(),
            ledger: &books.name,
            entry: line.entry,
            line: line.line,
            account: &books.accounts[&line.posting.account].name,
            debit,
            credit,
            owner: &movement.owner,
            event: line.source.event,
            objects: Objects(&line.source.objects),
            operator: record.operator.as_deref().map(cleaned),
        }
    }

    /// Appends the row as a line with a JSON object.
    pub(super) fn write_json(&self, text: &mut Vec<u8>) -> std::io::Result<()> {
        serde_json::to_writer(&mut *text, self)?;
        text.push(b'\n');
        Ok(())
    }

    /// Appends the row as a line of CSV.
    pub(super) fn write_csv(&self, text: &mut Vec<u8>) {
        let objects: Vec<_> = self.objects.0.iter().map(|(name, id)| format!("{name}={}", cleaned(id))).collect();
        let numbers = [self.sequence.to_string(), self.entry.to_string(), self.line.to_string()];
        let [sequence, entry, line] = &numbers;
        let amounts = [self.debit.to_string(), self.credit.to_string()];
        let cells: [&str; COLUMNS.len()] = [
            sequence,
            self.booked_at,
            &self.effective_at,
            &self.date,
            self.ledger,
            entry,
            line,
            self.account,
            &amounts[0],
            &amounts[1],
            self.owner,
            self.event,
            &objects.join(" "),
            self.operator.as_deref().unwrap_or_default(),
        ];
        for (place, cell) in cells.into_iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            write_cell(cell, text);
        }
        text.extend_from_slice(b"\r\n");
    }
}

/// Appends a cell, in quotes where RFC 4180 wants them. A cell that a spreadsheet would take for a
/// formula gets an apostrophe.
fn write_cell(cell: &str, text: &mut Vec<u8>) {
    let guard = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if cell.contains(['"', ',', '\r', '\n']) {
        text.extend_from_slice(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).as_bytes());
    } else {
        text.extend_from_slice(guard.as_bytes());
        text.extend_from_slice(cell.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_text_and_never_a_formula() {
        let cases = [
            ("plain", "plain"),
            ("", ""),
            ("two words", "two words"),
            ("a,b", "\"a,b\""),
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
            write_cell(cell, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{cell:?}");
        }
    }
}
