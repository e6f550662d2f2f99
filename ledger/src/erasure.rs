//! Erasure of personal data after its retention: once a Record says so, the keys of months are
//! dropped, and what was sealed under them opens nowhere. One operator asks for it, and another
//! carries it out. The books stay as they are.

use crate::{Decision, Event, Month, Record, Rejection, Result, Timestamp};

pub use crate::terms::{ERASURES, erasure_id};

/// When the retention of what was sealed in a month ends: so many months after it.
pub fn retained_until(month: Month, months: u32) -> Timestamp {
    Month(month.0.saturating_add(months)).next().begin()
}

/// An erasure that an operator asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// What was sealed in this month or before it.
    pub through: Month,
    /// The operator who asked for it.
    pub requested_by: String,
    /// When that was asked.
    pub requested_at: Timestamp,
    /// The operator who carried it out, and when.
    pub done: Option<(String, Timestamp)>,
}

impl Erasure {
    /// Decides a request of an operator; `asked` is the erasure of this month as it stands. The
    /// retention of the month is over ([`retained_until`]).
    pub fn decide(through: Month, asked: Option<&Self>, operator: &str) -> Result<Decision> {
        match asked {
            None => Ok(Decision::of(Event::ErasureRequested { through })),
            Some(Self { done: Some(_), .. }) => Err(Rejection::HouseEntryAlreadyDecided),
            Some(asked) if asked.requested_by == operator => Err(Rejection::SecondOperatorNeeded),
            Some(_) => Ok(Decision::of(Event::KeysErased { through })),
        }
    }

    /// Decides that a request is taken back; `asked` is the erasure as it stands.
    pub fn withdraw(through: Month, asked: &Self) -> Result<Decision> {
        match asked.done {
            None => Ok(Decision::of(Event::ErasureWithdrawn { through })),
            Some(_) => Err(Rejection::HouseEntryAlreadyDecided),
        }
    }

    /// Adds what a Record says to the erasures so far, in the order in which they were asked for.
    pub fn follow(erasures: &mut Vec<Self>, record: &Record) {
        let (by, at) = (record.operator.clone().unwrap_or_default(), record.effective_at);
        for event in &record.events {
            match event {
                Event::ErasureRequested { through } => {
                    let erasure = Self { through: *through, requested_by: by.clone(), requested_at: at, done: None };
                    erasures.push(erasure);
                }
                Event::KeysErased { through } => {
                    let asked = erasures.iter_mut().find(|erasure| erasure.through == *through);
                    asked.into_iter().for_each(|erasure| erasure.done = Some((by.clone(), at)));
                    // Requests for months before it have nothing left to erase.
                    erasures.retain(|erasure| erasure.done.is_some() || erasure.through > *through);
                }
                Event::ErasureWithdrawn { through } => {
                    erasures.retain(|erasure| erasure.done.is_some() || erasure.through != *through);
                }
                _ => {}
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
    fn keys_are_dropped_by_two_operators_once() {
        let through = Month::parse("2016-10").unwrap();
        assert_eq!(retained_until(through, 120), Month::parse("2026-11").unwrap().begin());
        let mut erasures = Vec::new();
        let step = |erasures: &mut Vec<Erasure>, operator: &str| {
            let decision = Erasure::decide(through, erasures.first(), operator)?;
            let mut record = decision.into_record(LedgerId::System, 1, Timestamp(7));
            record.requested_by(Some(Requester::Operator(operator.to_owned())));
            Erasure::follow(erasures, &record);
            Ok::<_, Rejection>(erasures.clone())
        };
        let asked = Erasure { through, requested_by: "ana".to_owned(), requested_at: Timestamp(7), done: None };
        let done = Erasure { done: Some(("rui".to_owned(), Timestamp(7))), ..asked.clone() };
        assert_eq!(step(&mut erasures, "ana"), Ok(vec![asked]));
        assert_eq!(step(&mut erasures, "ana"), Err(Rejection::SecondOperatorNeeded));
        assert_eq!(step(&mut erasures, "rui"), Ok(vec![done]));
        assert_eq!(step(&mut erasures, "eva"), Err(Rejection::HouseEntryAlreadyDecided));
    }
}
