//! Closing of a month: a Record fixes the sums of its books. No manual entry takes effect in it
//! after that. One operator asks for it, and another carries it out.

use crate::{Decision, Event, Month, Object, ObjectId, Record, Rejection, Timestamp};

pub use crate::terms::{MonthEnd, month_notes_id, period_id};

/// A month that was closed, or that an operator asked to close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The month.
    pub month: Month,
    /// The operator who asked to close it.
    pub requested_by: String,
    /// When that was asked.
    pub requested_at: Timestamp,
    /// Its closing, once another operator carried it out.
    pub closed: Option<Closing>,
}

/// The closing of a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The operator who closed it.
    pub by: String,
    /// When it was closed.
    pub at: Timestamp,
    /// What the journal held at the month's end.
    pub end: MonthEnd,
}

/// Time between the end of a month and its closing, milliseconds. By then all of its Records are
/// published.
const SETTLED_AFTER_MS: i64 = 60_000;

impl Period {
    /// Decides a request to close a month. `period` is the month as it stands, `closed_through` the
    /// last month that is closed; `operator` asks. `end` is the state of the journal at the
    /// month's end.
    pub fn close(
        month: Month,
        (period, closed_through): (Option<&Self>, Option<Month>),
        (operator, now): (&str, Timestamp),
        end: MonthEnd,
    ) -> Result<Decision, Rejection> {
        if closed_through.is_some_and(|through| month <= through) {
            return Err(Rejection::PeriodIsClosed);
        }
        if now < month.next().begin().plus_ms(SETTLED_AFTER_MS) {
            return Err(Rejection::PeriodNotOver);
        }
        match period {
            None => Ok(Decision::of(Event::PeriodCloseRequested { month })),
            Some(period) if period.requested_by == operator => Err(Rejection::SecondOperatorNeeded),
            Some(_) => Ok(Decision::of(Event::PeriodClosed { month, end })),
        }
    }
}

impl Object for Period {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::PeriodCloseRequested { month } => Some(Self {
                month: *month,
                requested_by: record.operator.clone().unwrap_or_default(),
                requested_at: record.effective_at,
                closed: None,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        period_id(self.month)
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            if let Event::PeriodClosed { month, end } = event
                && *month == self.month
            {
                let by = record.operator.clone().unwrap_or_default();
                self.closed = Some(Closing { by, at: record.effective_at, end: *end });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::LedgerId;
    use crate::record::Requester;

    #[test]
    fn a_month_is_closed_by_two_operators_when_it_is_over() {
        let month = Month::parse("2026-11").unwrap();
        let end = MonthEnd { through: 7, head: [1; 32].into(), totals: [2; 32].into() };
        let over = month.next().begin().plus_ms(SETTLED_AFTER_MS);
        let close = |period, through, operator, now| Period::close(month, (period, through), (operator, now), end);
        assert_eq!(close(None, None, "ana", over.plus_ms(-1)), Err(Rejection::PeriodNotOver));
        let record = |decision: Decision, operator: &str| {
            let mut record = decision.into_record(LedgerId::System, 1, over);
            record.requested_by(Some(Requester::Operator(operator.to_owned())));
            record
        };
        let requested = record(close(None, None, "ana", over).unwrap(), "ana");
        let pending = Period::made_by(&requested).unwrap();
        let mut period = pending.clone();
        assert_eq!(close(Some(&pending), None, "ana", over), Err(Rejection::SecondOperatorNeeded));
        let closed = record(close(Some(&pending), Some(Month(month.0 - 1)), "rui", over).unwrap(), "rui");
        period.follow(&closed);
        assert_eq!(period.closed, Some(Closing { by: "rui".to_owned(), at: over, end }));
        for through in [month, month.next()] {
            assert_eq!(close(Some(&pending), Some(through), "eva", over), Err(Rejection::PeriodIsClosed));
        }
    }
}
