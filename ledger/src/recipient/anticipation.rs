//! Anticipation (interface 2.10): pending card splits become available at once, each less a fee
//! that is rounded by itself.

use super::{AnticipationTerms, CardSplit, RecipientState};
use crate::event::{AnticipatedSplit, Cut};
use crate::{Centavos, Rejection, Timestamp};

impl RecipientState {
    /// The part of a card split that can be anticipated: what take-backs left of it, while it is
    /// pending.
    pub fn anticipable(&self, split: &CardSplit, now: Timestamp, cut: Cut) -> Option<Centavos> {
        let exception = self.exceptions.get(split.due, split.split);
        let is_pending = split.due > now.minute() && split.sequence <= cut.foreign && !exception.anticipated;
        Some(split.nominal - exception.taken).filter(|left| is_pending && left.is_positive())
    }

    /// What an anticipation of these splits takes of each, and its fee; changes nothing. Errors:
    /// the recipient is frozen; one of them cannot be anticipated, or would be sent later than
    /// without; the fee is another.
    pub fn anticipated(
        &self,
        splits: &[CardSplit],
        terms: AnticipationTerms,
        now: Timestamp,
        cut: Cut,
    ) -> Result<Vec<AnticipatedSplit>, Rejection> {
        self.check_not_frozen()?;
        let anticipated = splits.iter().enumerate().map(|(index, split)| {
            let amount = self.anticipable(split, now, cut).ok_or(Rejection::SplitNotAnticipable { index })?;
            if !split.is_offered(terms.target_days, now) {
                return Err(Rejection::AnticipationAfterDue { index });
            }
            Ok(AnticipatedSplit { split: split.split, due: split.due, amount, fee: terms.rate.of(amount) })
        });
        let anticipated = anticipated.collect::<Result<Vec<_>, _>>()?;
        let fee = anticipated.iter().map(|split| split.fee).sum();
        match terms.expected_fee {
            Some(expected) if expected != fee => Err(Rejection::AnticipationFeeDiffers { fee }),
            _ => Ok(anticipated),
        }
    }
}

impl CardSplit {
    /// True when the money can be sent in so many days no later than on the day on which the split
    /// falls due. The shortest term is always offered: its money is sent on that day at the latest.
    pub fn is_offered(&self, target_days: u8, now: Timestamp) -> bool {
        target_days == SHORTEST_DAYS || settlement_day(target_days, now) <= self.due.start().day()
    }
}

impl AnticipatedSplit {
    /// Day on which its money can be sent, days since 1970-01-01: the anticipation's, and never
    /// later than the day on which the split would have fallen due.
    pub fn settled_on(&self, settlement_day: u32) -> u32 {
        settlement_day.min(self.due.start().day())
    }
}

/// The shortest term of an anticipation, days.
const SHORTEST_DAYS: u8 = 2;

/// Day in Sao Paulo that lies so many days after `now`, days since 1970-01-01.
pub(super) fn settlement_day(target_days: u8, now: Timestamp) -> u32 {
    now.day() + u32::from(target_days)
}
