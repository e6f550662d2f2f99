//! Coverage: which withdrawal has which splits, without a list of splits.
//!
//! Splits are ordered by the place at which they became available: a PIX split at its charge's
//! payment, a card split at the end of its minute, an anticipated split at its anticipation. A cut
//! is a position in that order: how far the recipient's state had come when a withdrawal was
//! requested. A withdrawal has spans of splits, each between two cuts.

use super::{OpenWithdrawal, RecipientState};
use crate::event::{Cut, Span};
use crate::{Centavos, Minute};

/// Place at which a split became available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// PIX: with the payment.
    Paid {
        /// The sequence of the payment's Record.
        sequence: u64,
    },
    /// Card: when its minute had passed.
    Due {
        /// The sequence of the capture.
        sequence: u64,
        /// The minute.
        minute: Minute,
    },
    /// Card, before its time: with the anticipation.
    Anticipated {
        /// The ordinal of the recipient's Record.
        ordinal: u64,
    },
}

impl Cut {
    /// True when a split that became available at this place was counted.
    pub fn covers(&self, place: Place) -> bool {
        match place {
            Place::Paid { sequence } => sequence <= self.foreign,
            Place::Due { sequence, minute } => sequence <= self.foreign && minute <= self.minute,
            Place::Anticipated { ordinal } => ordinal <= self.own,
        }
    }
}

impl Span {
    /// True when the place lies in this span.
    pub fn covers(&self, place: Place) -> bool {
        self.through.covers(place) && !self.after.covers(place)
    }
}

/// Holder of a split that became available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// It can be withdrawn.
    Nobody,
    /// It is in the withdrawal that is not settled yet.
    Pending,
    /// It was paid out.
    Paid,
}

/// Available money of a recipient, and the coverage of its splits by withdrawals.
#[derive(Clone, Debug)]
pub struct SplitStanding {
    /// Can be withdrawn, centavos.
    pub available: Centavos,
    /// The part of the available splits that debts consumed, centavos. Below zero for money of
    /// failed refunds whose splits were paid out.
    pub consumed: Centavos,
    /// The part of `available` that is goodwill, which no split has, centavos.
    pub goodwill: Centavos,
    /// The withdrawal that is not settled yet.
    pub withdrawal: Option<OpenWithdrawal>,
    covered: Cut,
    holes: Vec<Span>,
}

impl SplitStanding {
    /// The withdrawal, if any, that has the splits of a place.
    pub fn holder(&self, place: Place) -> Holder {
        let are_in = |spans: &[Span]| spans.iter().any(|span| span.covers(place));
        if !self.covered.covers(place) || are_in(&self.holes) {
            Holder::Nobody
        } else if self.withdrawal.as_ref().is_some_and(|withdrawal| are_in(&withdrawal.spans)) {
            Holder::Pending
        } else {
            Holder::Paid
        }
    }
}

impl RecipientState {
    /// Its available money, and the coverage of its splits by withdrawals.
    pub fn standing(&self) -> SplitStanding {
        SplitStanding {
            available: self.available(),
            consumed: self.outflow.consumed,
            goodwill: self.outflow.goodwill,
            withdrawal: self.outflow.withdrawal.clone(),
            covered: self.outflow.covered,
            holes: self.outflow.holes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lies_in_one_span() {
        let cut = |foreign, minute, own| Cut { foreign, minute: Minute(minute), own };
        let (first, second) = (cut(10, 100, 5), cut(20, 200, 8));
        let early = Span { after: Cut::default(), through: first };
        let late = Span { after: first, through: second };
        let paid = |sequence| Place::Paid { sequence };
        let due = |sequence, minute| Place::Due { sequence, minute: Minute(minute) };
        let anticipated = |ordinal| Place::Anticipated { ordinal };
        for (place, expected) in [
            (paid(1), (true, false)),
            (paid(10), (true, false)),
            (paid(11), (false, true)),
            (paid(21), (false, false)),
            (due(10, 100), (true, false)),
            (due(10, 101), (false, true)),
            // It came with its minute already passed.
            (due(11, 100), (false, true)),
            (due(21, 100), (false, false)),
            (due(20, 201), (false, false)),
            (anticipated(5), (true, false)),
            (anticipated(6), (false, true)),
            (anticipated(9), (false, false)),
        ] {
            assert_eq!((early.covers(place), late.covers(place)), expected, "{place:?}");
        }
    }
}
