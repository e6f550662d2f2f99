//! Log of requests that the door refused though nothing was wrong with them: which partition was
//! missing, or not held any more. One line a second at most, which says how many there were since
//! the line before.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::Partition;

/// Time between two lines.
const LINES_EVERY: Duration = Duration::from_secs(1);

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unmet {
    /// It needs all partitions, and these were neither served here nor followed for as long as it
    /// waited.
    #[error("a request about all merchants was refused: these partitions are neither served nor followed here")]
    Missing(Vec<Partition>),
    /// It needs all partitions, and those of other processes could not be read to their ends.
    #[error("a request about all merchants was refused: partitions of other nodes could not be read")]
    Unread,
    /// Its answer was made, and one of all partitions was out of sight meanwhile.
    #[error("an answer about all merchants was held back: a partition was not followed meanwhile")]
    OutOfSight,
    /// It needs a partition that had no owner for as long as it waited.
    #[error("a request was refused: no node that answers has its partition")]
    WithoutOwner(Partition),
    /// It was sent on from here, came back to here, and found its partition elsewhere again.
    #[error("a request was refused: its partition moved twice meanwhile")]
    Moving(Partition),
    /// Its answer was made, and this process did not hold the partition any more.
    #[error("an answer was held back: its partition is not held any more")]
    Lapsed(Partition),
}

/// Log of refusals.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    last: Option<Instant>,
    /// Refusals since the last line.
    untold: u64,
}

impl Refusals {
    /// Logs a refusal, unless there was a line within the last second.
    pub(super) fn log(&self, refusal: &Unmet) {
        let Some(count) = self.count(Instant::now()) else { return };
        let partitions: Vec<_> = match refusal {
            Unmet::Missing(partitions) => partitions.iter().map(|partition| partition.0).collect(),
            Unmet::WithoutOwner(partition) | Unmet::Moving(partition) | Unmet::Lapsed(partition) => vec![partition.0],
            Unmet::Unread | Unmet::OutOfSight => Vec::new(),
        };
        tracing::warn!(count, ?partitions, "{refusal}");
    }

    /// Number of refusals for a log line at this moment; none where it is too early for one.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut lines = self.0.lock();
        lines.untold += 1;
        if lines.last.is_some_and(|last| now.saturating_duration_since(last) < LINES_EVERY) {
            return None;
        }
        lines.last = Some(now);
        Some(std::mem::take(&mut lines.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_tells_how_many_were_refused() {
        let (refusals, begun) = (Refusals::default(), Instant::now());
        let at = |ms| refusals.count(begun + Duration::from_millis(ms));
        assert_eq!([0, 1, 999, 1_000, 1_500, 5_000].map(at), [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
