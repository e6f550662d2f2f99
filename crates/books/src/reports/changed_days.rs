//! Changed days: the days of effect of what was booked in some days, for who keeps figures by day
//! of effect elsewhere and reads again what changed.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("effective_date", "Data de competência", Kind::Day),
    count("records", "Registros"),
    count("late", "Registrados depois do dia"),
    sum("debits", "Débitos"),
    column("last_date", "Último registro em", Kind::Day),
];

/// Fold of the changed days: what was booked for each day of effect.
#[derive(Default)]
pub(super) struct ChangedDays(BTreeMap<NaiveDate, Change>);

#[derive(Default)]
struct Change {
    records: u64,
    late: u64,
    /// Debits of all ledgers that the report takes, centavos.
    debits: i128,
    last: NaiveDate,
}

impl Fold for ChangedDays {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        let entries = posted.record.entries.iter().filter(|entry| posted.scope.takes(entry.ledger()));
        let debits: i128 = entries.flat_map(|entry| entry.postings()).map(|posting| posting.sums().debits).sum();
        if debits == 0 {
            return Ok(());
        }
        let effective = day_of(posted.record.takes_effect_at().0);
        let change = self.0.entry(effective).or_default();
        change.records += 1;
        change.late += u64::from(effective < posted.day);
        change.debits += debits;
        change.last = posted.day;
        Ok(())
    }

    fn finish(self: Box<Self>, _: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        self.0.into_iter().try_for_each(|(day, Change { records, late, debits, last })| {
            let counts = [Cell::Count(records), Cell::Count(late), Cell::Amount(debits)];
            rows.add(&[&[Cell::Day(day)][..], &counts, &[Cell::Day(last)]].concat())
        })
    }
}
