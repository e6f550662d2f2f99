//! Ring of the last three hours, minute by minute: how many movements of each kind took effect, and
//! how many centavos they moved. It is in memory only and begins with the process.

use ledger::event::Event;
use ledger::record::Record;
use ledger::time::{Minute, Timestamp};

/// Minutes that the ring keeps.
pub const MINUTES_KEPT: u32 = 180;

/// A kind of movement that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovementKind {
    /// The acquirer captured a card charge.
    CardCaptured,
    /// A payer paid a PIX charge.
    PixPaid,
    /// The acquirer refused a card charge; no money moves.
    CardRefused,
    /// A refund was approved.
    Refunded,
    /// A cashout was carried out; its gross amount.
    CashedOut,
    /// A withdrawal was paid.
    Withdrawn,
}

impl MovementKind {
    /// All kinds, in the order of their places in [`MinuteSums`].
    pub const ALL: [Self; 6] =
        [Self::CardCaptured, Self::PixPaid, Self::CardRefused, Self::Refunded, Self::CashedOut, Self::Withdrawn];
}

/// Movements of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovementSum {
    /// How many there were.
    pub count: u64,
    /// Their amounts together, centavos.
    pub centavos: i128,
}

impl MovementSum {
    /// Adds the movements of another sum.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.centavos += other.centavos;
    }
}

/// The movements of one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteSums {
    /// The minute in which they took effect.
    pub minute: Minute,
    kinds: [MovementSum; MovementKind::ALL.len()],
}

impl MinuteSums {
    /// Adds the movements of the same minute in another partition.
    pub(crate) fn add(&mut self, other: &Self) {
        self.kinds.iter_mut().zip(&other.kinds).for_each(|(sum, other)| sum.add(*other));
    }

    /// The movements of one kind.
    pub fn of(&self, kind: MovementKind) -> MovementSum {
        self.kinds[kind as usize]
    }
}

/// The ring: a minute stands at the place of its number modulo [`MINUTES_KEPT`].
#[derive(Debug)]
pub(super) struct MinuteRing(Vec<MinuteSums>);

impl Default for MinuteRing {
    fn default() -> Self {
        Self(vec![MinuteSums::default(); MINUTES_KEPT as usize])
    }
}

impl MinuteRing {
    /// Counts the movements of a Record. One of a minute that the ring has left behind is not
    /// counted.
    pub(super) fn count(&mut self, record: &Record) {
        for event in &record.events {
            let Some((kind, centavos)) = movement(event) else { continue };
            let minute = minute_of(record.effective_at);
            let sums = &mut self.0[(minute.0 % MINUTES_KEPT) as usize];
            if sums.minute < minute {
                *sums = MinuteSums { minute, ..MinuteSums::default() };
            }
            if sums.minute == minute {
                sums.kinds[kind as usize].add(MovementSum { count: 1, centavos: centavos.into() });
            }
        }
    }

    /// The minutes with movements among the last [`MINUTES_KEPT`] before `now`, oldest first.
    pub(super) fn since(&self, now: Timestamp) -> Vec<MinuteSums> {
        let now = minute_of(now);
        let oldest = Minute(now.0.saturating_sub(MINUTES_KEPT - 1));
        let is_kept = |sums: &&MinuteSums| sums.minute.0 > 0 && (oldest..=now).contains(&sums.minute);
        let mut kept: Vec<_> = self.0.iter().filter(is_kept).copied().collect();
        kept.sort_unstable_by_key(|sums| sums.minute);
        kept
    }
}

/// The minute that a time is in.
fn minute_of(at: Timestamp) -> Minute {
    Minute(u32::try_from(at.0.max(0) / 60_000).unwrap_or(u32::MAX))
}

/// The kind of movement that an event is, and its centavos; none when it is none that is counted.
fn movement(event: &Event) -> Option<(MovementKind, i64)> {
    match event {
        Event::CardCaptured { terms, .. } => Some((MovementKind::CardCaptured, terms.amount.0)),
        Event::PixPaid { terms, .. } => Some((MovementKind::PixPaid, terms.amount.0)),
        Event::CardRefused { .. } => Some((MovementKind::CardRefused, 0)),
        Event::RefundApproved { amount, .. } => Some((MovementKind::Refunded, amount.0)),
        Event::CashoutProcessed { amount, .. } => Some((MovementKind::CashedOut, amount.0)),
        Event::WithdrawalPaid { amount, .. } => Some((MovementKind::Withdrawn, amount.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ledger::id::{GroupNumber, LedgerId, ObjectId};
    use ledger::money::Centavos;
    use ledger::record::Decision;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn withdrawn(amount: i64, at_ms: i64) -> Record {
        let event = Event::WithdrawalPaid {
            id: ObjectId(1),
            amount: Centavos(amount),
            transfer_id: String::new(),
            returnable_until: Timestamp(0),
            bank: None,
        };
        Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(1)), 1, Timestamp(at_ms))
    }

    fn shown(ring: &MinuteRing, now_ms: i64) -> Vec<(u32, u64, i128)> {
        let of = |sums: MinuteSums| {
            let sum = sums.of(MovementKind::Withdrawn);
            (sums.minute.0, sum.count, sum.centavos)
        };
        ring.since(Timestamp(now_ms)).into_iter().map(of).collect()
    }

    #[test]
    fn a_minute_has_its_movements_and_leaves_after_three_hours() {
        let mut ring = MinuteRing::default();
        let begun = 1_000 * HOUR_MS;
        for (amount, at_ms) in [(5, begun), (7, begun + 59_999), (11, begun + 60_000)] {
            ring.count(&withdrawn(amount, at_ms));
        }
        let first = 60_000;
        assert_eq!(shown(&ring, begun + 60_000), [(first, 2, 12), (first + 1, 1, 11)]);
        assert_eq!(shown(&ring, begun), [(first, 2, 12)], "what is ahead of the clock is not shown");
        assert_eq!(shown(&ring, begun + 3 * HOUR_MS), [(first + 1, 1, 11)], "the first minute is three hours ago");
        ring.count(&withdrawn(13, begun + 3 * HOUR_MS));
        ring.count(&withdrawn(1_000, begun));
        assert_eq!(shown(&ring, begun + 3 * HOUR_MS), [(first + 1, 1, 11), (first + 180, 1, 13)], "its place is taken");
        assert_eq!(shown(&ring, begun + 400 * HOUR_MS), []);
    }
}
