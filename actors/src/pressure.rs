//! How long commands wait for their outcome lately: from when they are sent to their actor until what they decided is durable. It says when
//! more callers than there are would only make each other wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Commands that wait longer than this on average wait for each other.
const WAIT_MAX: Duration = Duration::from_millis(15);
/// The average follows about this many commands.
const COMMANDS_AVERAGED: u64 = 32;
/// What was seen longer ago than this says nothing.
const SEEN_LATELY: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub struct Pressure {
    since: Instant,
    /// The moving average, microseconds. Two that note at once may lose one of their notes: it is an average.
    waited_us: AtomicU64,
    /// When it was noted last, microseconds since `since`.
    noted_us: AtomicU64,
}

impl Default for Pressure {
    fn default() -> Self {
        Self { since: Instant::now(), waited_us: AtomicU64::new(0), noted_us: AtomicU64::new(0) }
    }
}

impl Pressure {
    /// Notes how long a command waited.
    pub fn note(&self, waited: Duration) {
        let average = self.waited_us.load(Ordering::Relaxed);
        let average = (average * (COMMANDS_AVERAGED - 1) + micros(waited)) / COMMANDS_AVERAGED;
        self.waited_us.store(average, Ordering::Relaxed);
        self.noted_us.store(micros(self.since.elapsed()), Ordering::Relaxed);
    }

    /// True while commands wait too long.
    pub fn is_high(&self) -> bool {
        self.waited_us.load(Ordering::Relaxed) > micros(WAIT_MAX)
            && micros(self.since.elapsed()).saturating_sub(self.noted_us.load(Ordering::Relaxed)) < micros(SEEN_LATELY)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_with_many_that_wait_long_and_falls_with_many_that_do_not() {
        let pressure = Pressure::default();
        pressure.note(Duration::from_millis(400));
        assert!(!pressure.is_high(), "one that waits long is no pressure");
        (0..100).for_each(|_| pressure.note(Duration::from_millis(60)));
        assert!(pressure.is_high());
        (0..100).for_each(|_| pressure.note(Duration::from_millis(5)));
        assert!(!pressure.is_high());
    }

    #[test]
    fn what_was_seen_long_ago_says_nothing() {
        let pressure = Pressure::default();
        (0..100).for_each(|_| pressure.note(Duration::from_millis(60)));
        let long_ago = Pressure { since: Instant::now() - SEEN_LATELY * 2, ..pressure };
        long_ago.noted_us.store(0, Ordering::Relaxed);
        assert!(!long_ago.is_high());
    }
}
