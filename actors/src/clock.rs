//! Clock of the engine: wall time, of the store's server where it has one, plus the offset of the
//! sandbox. It never goes back. When the wall
//! clock jumps back, this clock stands still until the wall clock has caught up.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ledger::time::Timestamp;

/// Wall time plus the sandbox's offset; it never goes back.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// How far the clock that all processes of a store share is ahead of this machine's.
    ahead_ms: AtomicI64,
    offset_ms: AtomicI64,
    latest_ms: AtomicI64,
}

impl Clock {
    /// A clock that is `offset_ms` ahead of wall time and begins no earlier than `not_before`.
    pub(crate) fn new(offset_ms: i64, not_before: Timestamp) -> Self {
        Self {
            ahead_ms: AtomicI64::new(0),
            offset_ms: AtomicI64::new(offset_ms),
            latest_ms: AtomicI64::new(not_before.0),
        }
    }

    /// From now on it is at least `offset_ms` ahead of wall time, and at least at `not_before`.
    pub(crate) fn begin(&self, offset_ms: i64, not_before: Timestamp) {
        self.offset_ms.fetch_max(offset_ms, Ordering::AcqRel);
        self.latest_ms.fetch_max(not_before.0, Ordering::AcqRel);
    }

    /// The time now: wall time plus the offset, never before a time that it gave earlier.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.shared_ms().saturating_add(self.offset_ms.load(Ordering::Acquire));
        Timestamp(self.latest_ms.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// Moves the clock forward so that now is at least `target`.
    pub(crate) fn advance_to(&self, target: Timestamp) {
        let ahead = target.0.saturating_sub(self.shared_ms());
        self.offset_ms.fetch_max(ahead, Ordering::AcqRel);
    }

    /// Follows the clock that all processes of a store share. An estimate that differs a little
    /// from the one before shows only how long an answer took.
    pub(crate) fn follow(&self, ahead_ms: i64) {
        let before = self.ahead_ms.load(Ordering::Acquire);
        if ahead_ms.abs_diff(before) >= DIFFERENCE_MIN_MS {
            tracing::info!(ahead_ms, "this machine's clock differs from the store's, which counts");
            self.ahead_ms.store(ahead_ms, Ordering::Release);
        }
    }

    fn shared_ms(&self) -> i64 {
        wall_ms().saturating_add(self.ahead_ms.load(Ordering::Acquire))
    }

    /// Sandbox time minus wall time, milliseconds.
    pub(crate) fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }
}

/// Difference of clocks that is followed, milliseconds.
const DIFFERENCE_MIN_MS: u64 = 500;

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_forward_only() {
        let far = Timestamp(4_000_000_000_000);
        let clock = Clock::new(0, Timestamp::default());
        let before = clock.now();
        clock.advance_to(far);
        assert!(clock.now() >= far);
        clock.advance_to(before);
        assert!(clock.now() >= far, "an earlier target changes nothing");
        let held = Clock::new(0, far);
        assert_eq!(held.now(), far, "a clock that begins ahead of wall time stands until wall time has caught up");
    }
}
