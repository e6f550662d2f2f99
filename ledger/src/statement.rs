//! Account statement of a merchant: the lines of each Record. They agree with the books: for each
//! account, the lines of a Record sum to its postings there.

use crate::facts::{self, Facets, Lines};
use crate::{Event, LedgerId, Record, Timestamp};

pub use crate::facts::statement_line::{StatementAccount, StatementLine, StatementLineKind};

/// The lines of a Record about the merchant's money, in order. A line that moves nothing is left
/// out. No account is below zero after a line if it was not before.
pub fn statement_lines(record: &Record) -> Vec<StatementLine> {
    let mut lines = Vec::new();
    each_statement_line(record, |line| lines.push(line));
    lines
}

/// Passes each of [`statement_lines`] to `sink`, without a list of them.
pub fn each_statement_line(record: &Record, sink: impl FnMut(StatementLine)) {
    let by_merchant = matches!(record.owner, LedgerId::Merchant(_));
    let mut collector = LineCollector { at: record.takes_effect_at(), sink };
    // Of a recipient's facts, only the repayment of a debt moves its merchant's money.
    for event in record.events.iter().filter(|event| by_merchant || matches!(event, Event::ClawbackRecovered { .. })) {
        facts::say(event, &mut collector);
    }
}

/// Takes the statement lines of facts.
struct LineCollector<F> {
    at: Timestamp,
    sink: F,
}

impl<F: FnMut(StatementLine)> Facets for LineCollector<F> {
    fn lines(&mut self, write: impl FnOnce(&mut Lines<'_>)) {
        write(&mut Lines { at: self.at, sink: &mut self.sink });
    }
}
