//! Anticipation (interface 2.10): pending card splits become available at once, each less a fee
//! that is rounded by itself.

use super::{CardSplit, RecipientState};
use crate::event::{AnticipatedSplit, Cut, Event};
use crate::id::ObjectId;
use crate::money::{Centavos, Rate};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// An anticipation that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anticipation {
    /// The anticipation's id.
    pub id: ObjectId,
    /// How many splits.
    pub count: usize,
    /// What was left of the splits before the fee, centavos.
    pub original: Centavos,
    /// The platform's fee, centavos.
    pub fee: Centavos,
    /// In how many days the money is there: 2, 7 or 15.
    pub target_days: u8,
    /// The rate of the fee.
    pub rate: Rate,
}

impl Anticipation {
    /// The anticipation among events; none when there is none.
    pub fn of(events: &[Event]) -> Option<Self> {
        events.iter().find_map(|event| match event {
            Event::SplitsAnticipated { id, splits, target_days, rate, .. } => Some(Self {
                id: *id,
                count: splits.len(),
                original: splits.iter().map(|split| split.amount).sum(),
                fee: splits.iter().map(|split| split.fee).sum(),
                target_days: *target_days,
                rate: *rate,
            }),
            _ => None,
        })
    }

    /// What is available now, centavos.
    pub fn net(&self) -> Centavos {
        self.original - self.fee
    }
}

impl RecipientState {
    /// The part of a card split that can be anticipated: what take-backs left of it, while it is
    /// pending.
    pub fn anticipable(&self, split: &CardSplit, now: Timestamp, cut: Cut) -> Option<Centavos> {
        let exception = self.exceptions.get(split.due, split.split);
        let is_pending = split.due > now.minute() && split.sequence <= cut.foreign && !exception.anticipated;
        Some(split.nominal - exception.taken).filter(|left| is_pending && left.is_positive())
    }

    pub(super) fn anticipated(
        &self,
        splits: &[CardSplit],
        rate: Rate,
        now: Timestamp,
        cut: Cut,
    ) -> Result<Vec<AnticipatedSplit>, Rejection> {
        let anticipated = splits.iter().enumerate().map(|(index, split)| {
            let amount = self.anticipable(split, now, cut).ok_or(Rejection::SplitNotAnticipable { index })?;
            Ok(AnticipatedSplit { split: split.split, due: split.due, amount, fee: rate.of(amount) })
        });
        anticipated.collect()
    }
}
