//! Anticipation (interface 2.10): pending card splits become available at once, each less a fee
//! that is rounded by itself.

use super::{CardSplit, RecipientState};
use crate::event::{AnticipatedSplit, Cut};
use crate::money::{Centavos, Rate};
use crate::rejection::Rejection;
use crate::time::Timestamp;

impl RecipientState {
    /// The part of a card split that can be anticipated: what take-backs left of it, while it is
    /// pending.
    pub fn anticipable(&self, split: &CardSplit, now: Timestamp, cut: Cut) -> Option<Centavos> {
        let exception = self.exceptions.get(split.due, split.split);
        let is_pending = split.due > now.minute() && split.sequence <= cut.foreign && !exception.anticipated;
        Some(split.nominal - exception.taken).filter(|left| is_pending && left.is_positive())
    }

    /// What an anticipation of these splits takes of each, and its fee; changes nothing. Error: one
    /// of them cannot be anticipated.
    pub fn anticipated(
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
