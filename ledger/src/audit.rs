//! Audit trail: the row of a Record. It says what an operator did, or which API key changed the
//! bank account of a recipient, took a withdrawal back, or made, changed or revoked an API key.

use crate::facts::{self, Facets};
use crate::{Event, Record};

pub use crate::facts::{AuditSubject, AuditedFact};

/// The row of a Record: that of its first fact with a row, or that two operators said what became
/// of an order, whatever ended the order by it. `None` if no fact has one.
pub fn of_record(record: &Record) -> Option<AuditedFact> {
    let mut row = Row(None);
    let words = record.events.iter().filter(|event| matches!(event, Event::RailWordGiven { .. }));
    words.chain(&record.events).for_each(|event| facts::say(event, &mut row));
    row.0
}

/// Takes the first row.
struct Row(Option<AuditedFact>);

impl Facets for Row {
    fn audited(&mut self, row: impl FnOnce() -> AuditedFact) {
        self.0.get_or_insert_with(row);
    }
}
