//! Rows of an export: one posting and its origin. As JSON it is an object a line.

use std::borrow::Cow;
use std::io;
use std::sync::LazyLock;

use chrono::NaiveDate;
use ledger::Side;
use ledger::source::Source;
use wire::timestamp::day_of;

use super::arrangement::{Arrangement, arrangement, due};
use super::columns::{RowCell, WIDTH, columns};
use super::destination::{Out, Part};
use super::ledger_books::{LedgerBooks, LedgerMovement, Line, cleaned};
use super::writer::Writer;

/// One posting. Partition, sequence, entry and line identify it for ever.
pub(super) struct ExportedRow<'a> {
    /// `M-…`, `R-…` or `P-…`.
    ledger: &'a str,
    account: &'a str,
    movement: &'a LedgerMovement<'a>,
    line: &'a Line<'a>,
    arrangement: Arrangement,
    /// The day on which the money falls due, and its text.
    due: Option<(NaiveDate, String)>,
}

impl<'a> ExportedRow<'a> {
    /// The rows of a movement, in order.
    pub(super) fn all(books: &'a LedgerBooks, movement: &'a LedgerMovement<'_>) -> impl Iterator<Item = Self> {
        movement.lines.iter().map(move |line| Self::of(books, movement, line))
    }

    fn of(books: &'a LedgerBooks, movement: &'a LedgerMovement<'_>, line: &'a Line<'_>) -> Self {
        let account = line.posting.account;
        let event = movement.record.events.get(line.source.place);
        let due = event.and_then(|event| due(event, books.ledger, account));
        Self {
            ledger: &books.name,
            account: &books.accounts[&account].name,
            movement,
            line,
            arrangement: event.map(|event| arrangement(event, movement.brand)).unwrap_or_default(),
            due: due.map(|minute| day_of(minute.start().0)).map(|day| (day, day.to_string())),
        }
    }

    /// The values of the columns.
    pub(super) fn cells(&self) -> [RowCell<'_>; WIDTH] {
        let Self { movement, line, arrangement, .. } = self;
        let amount = line.posting.amount.0;
        let (debit, credit) = match line.posting.side {
            Side::Debit => (amount, 0),
            Side::Credit => (0, amount),
        };
        let mut cells = [const { RowCell::Empty }; WIDTH];
        let (before, after) = cells.split_at_mut(WIDTH - Source::OBJECTS.len() - 2 - line.labels.len());
        let values = [
            RowCell::Number(movement.at.sequence.0),
            RowCell::Instant(movement.booked_at_ms, movement.booked_at),
            RowCell::Instant(movement.effective_at_ms, movement.effective_at),
            RowCell::Day(movement.day, movement.date),
            RowCell::Day(movement.effective_day, movement.effective_date),
            if movement.is_late { RowCell::Text("late".into()) } else { RowCell::Empty },
            self.due.as_ref().map_or(RowCell::Empty, |(day, text)| RowCell::Day(*day, text)),
            RowCell::Text(self.ledger.into()),
            RowCell::Number(line.entry as u64),
            RowCell::Number(line.line as u64),
            RowCell::Text(self.account.into()),
            RowCell::Amount(debit),
            RowCell::Amount(credit),
            RowCell::Text(movement.owner.into()),
            RowCell::Text(line.source.event.into()),
            RowCell::text(arrangement.method),
            RowCell::text(arrangement.brand),
            arrangement.installments.map_or(RowCell::Empty, |count| RowCell::Number(count.into())),
        ];
        before.iter_mut().zip(values).for_each(|(cell, value)| *cell = value);
        for (name, id) in line.source.objects.iter().rev() {
            let place = Source::OBJECTS.iter().position(|of| of == name);
            place.into_iter().for_each(|place| after[place] = RowCell::Text(cleaned(id)));
        }
        after[Source::OBJECTS.len()] = RowCell::text(movement.record.operator.as_deref().map(cleaned));
        after[Source::OBJECTS.len() + 1] = RowCell::Number(movement.at.partition.0.into());
        let labels = after[Source::OBJECTS.len() + 2..].iter_mut().zip(line.labels);
        labels.for_each(|(cell, label)| *cell = RowCell::text(label));
        cells
    }
}

/// Writer of JSON lines.
pub(super) struct JsonRows {
    text: Vec<u8>,
    width: usize,
}

impl JsonRows {
    pub(super) fn new(has_labels: bool) -> Self {
        Self { text: Vec::new(), width: columns(has_labels).len() }
    }
}

impl Writer for JsonRows {
    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        self.text.clear();
        for row in ExportedRow::all(books, movement) {
            write_json(&row.cells()[..self.width], &mut self.text)?;
        }
        out.write(Part::Rows, &self.text)
    }
}

/// Each column's name as a member of an object has it, and then as one without a value.
static MEMBERS: LazyLock<[[String; 2]; WIDTH]> = LazyLock::new(|| {
    std::array::from_fn(|place| {
        let name = format!("{}\"{}\":", if place == 0 { '{' } else { ',' }, columns(true)[place].name);
        [name.clone(), name + "null"]
    })
});

/// Appends a row as a line with a JSON object.
fn write_json(cells: &[RowCell<'_>], text: &mut Vec<u8>) -> io::Result<()> {
    for ([name, without], cell) in MEMBERS.iter().zip(cells) {
        if let RowCell::Empty = cell {
            text.extend_from_slice(without.as_bytes());
            continue;
        }
        text.extend_from_slice(name.as_bytes());
        match cell {
            RowCell::Empty => {}
            RowCell::Number(number) => serde_json::to_writer(&mut *text, number)?,
            RowCell::Amount(centavos) => serde_json::to_writer(&mut *text, centavos)?,
            RowCell::Text(of) => write_json_text(of, text)?,
            RowCell::Day(_, of) | RowCell::Instant(_, of) => write_in_quotes(of, text),
        }
    }
    text.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends a text. Most have nothing to escape, and are copied whole.
fn write_json_text(of: &str, text: &mut Vec<u8>) -> io::Result<()> {
    // Without an early end, so that it is done for many bytes at once.
    let is_plain = of.bytes().fold(true, |is_plain, byte| is_plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'));
    if !is_plain {
        return Ok(serde_json::to_writer(text, of)?);
    }
    write_in_quotes(of, text);
    Ok(())
}

fn write_in_quotes(of: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    text.extend_from_slice(of.as_bytes());
    text.push(b'"');
}

/// The text of a cell, in the interface's form; amounts in centavos.
pub(super) fn plain<'a>(cell: &'a RowCell<'_>) -> Cow<'a, str> {
    match cell {
        RowCell::Empty => "".into(),
        RowCell::Number(number) => number.to_string().into(),
        RowCell::Amount(centavos) => centavos.to_string().into(),
        RowCell::Text(text) => text.as_ref().into(),
        RowCell::Day(_, text) | RowCell::Instant(_, text) => (*text).into(),
    }
}
