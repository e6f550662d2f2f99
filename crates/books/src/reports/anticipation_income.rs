//! Income of anticipations: the discount, and the part of it that is earned by the passing of days.
//!
//! Two policies read the same rows. One takes the whole discount as income on the day of the
//! anticipation, as the books do. The other earns it pro rata until the due date, and defers the
//! rest. The days from the anticipation (not counted) to the due date (counted) earn equal parts;
//! parts are rounded down on the running sum, so that they add up to the discount.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use derived::balance_files::{AnticipatedOn, AnticipatedSums, BooksAsOf};
use derived::records::LoadError;
use ledger::{Event, GroupNumber, LedgerId, Timestamp};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("anticipated_on", "Antecipado em", Kind::Day),
    column("due_date", "Vencimento", Kind::Day),
    column("merchant", "Lojista", Kind::Owner),
    count("count", "Quantidade"),
    sum("amount", "Valor antecipado"),
    sum("discount", "Deságio"),
    sum("earned_before", "Apropriado antes"),
    sum("earned", "Apropriado no período"),
    sum("deferred", "A apropriar"),
];

/// Fold of the income of anticipations.
#[derive(Default)]
pub(super) struct AnticipationIncome(BTreeMap<(NaiveDate, NaiveDate, GroupNumber), AnticipatedSums>);

impl AnticipationIncome {
    fn add(&mut self, posted: &PostedRecord<'_>) {
        let Some(group) = posted.record.owner.group() else { return };
        for event in &posted.record.events {
            let Event::SplitsAnticipated { splits, .. } = event else { continue };
            for split in splits {
                let due = day_of(split.due.start().0);
                let sums = self.0.entry((posted.day, due, group)).or_default();
                sums.count += 1;
                sums.amount += i128::from(split.amount.0);
                sums.discount += i128::from(split.fee.0);
            }
        }
    }
}

/// The part of a discount that is earned at the end of a day, centavos.
fn earned(discount: i128, (anticipated_on, due): (NaiveDate, NaiveDate), day: NaiveDate) -> i128 {
    let days = i128::from((due - anticipated_on).num_days());
    let passed = i128::from((day - anticipated_on).num_days());
    match (passed, days) {
        (..0, _) => 0,
        (passed, days) if passed >= days => discount,
        (passed, days) => discount * passed / days,
    }
}

impl Fold for AnticipationIncome {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn carry(&mut self, before: &mut BooksAsOf) -> Result<(), LoadError> {
        let day = |day| day_of(Timestamp::end_of_day(day).0);
        let carried = before.anticipated()?.into_iter();
        self.0.extend(carried.map(|(AnticipatedOn { due, on, group }, sums)| ((day(on), day(due), group), sums)));
        Ok(())
    }

    fn open(&mut self, posted: &PostedRecord<'_>) -> io::Result<()> {
        self.add(posted);
        Ok(())
    }

    fn begin(&mut self, _: Openings, begun: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        // What was earned before the first day has no row.
        self.0.retain(|(_, due, _), _| *due >= begun.from);
        Ok(())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        self.add(posted);
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((anticipated_on, due, group), AnticipatedSums { count, amount, discount }) in self.0 {
            if !ended.scope.takes(LedgerId::Merchant(group)) {
                continue;
            }
            let days = (anticipated_on, due);
            let before = ended.from.pred_opt().map_or(0, |day| earned(discount, days, day));
            let through = earned(discount, days, ended.to);
            rows.add(&[
                Cell::Day(anticipated_on),
                Cell::Day(due),
                Cell::Text(ended.names.of(LedgerId::Merchant(group))),
                Cell::Count(count),
                Cell::Amount(amount),
                Cell::Amount(discount),
                Cell::Amount(before),
                Cell::Amount(through - before),
                Cell::Amount(discount - through),
            ])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_days_are_the_discount() {
        let day = |day| NaiveDate::from_ymd_opt(2026, 7, day).unwrap();
        let days = (day(1), day(8));
        let parts: Vec<_> = (1..=9).map(|at| earned(100, days, day(at))).collect();
        assert_eq!(parts, [0, 14, 28, 42, 57, 71, 85, 100, 100]);
        assert_eq!(earned(100, (day(2), day(8)), day(1)), 0, "nothing is earned before");
        assert_eq!(earned(100, (day(1), day(1)), day(1)), 100, "what is due at once is earned at once");
    }
}
