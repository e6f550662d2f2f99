//! Deadline that progress moves: the least rate at which a peer must send or take bytes.

use std::time::Duration;

use tokio::time::Instant;

/// How slow a peer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long it may send or take nothing, at most.
    pub idle_max: Duration,
    /// The least rate on average.
    pub bytes_per_second: u32,
}

/// When a peer is too slow. Each byte extends the deadline by its time at the least rate, so that a
/// byte now and then does not keep a connection.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    pace: Pace,
    at: Instant,
}

impl Deadline {
    /// The deadline of a peer that begins now.
    pub fn begin(pace: Pace, now: Instant) -> Self {
        Deadline { pace, at: now + pace.idle_max }
    }

    /// Moves the deadline: this number of bytes have passed.
    pub fn moved(&mut self, bytes: usize, now: Instant) {
        let bought = Duration::from_secs(bytes as u64) / self.pace.bytes_per_second;
        self.at = (self.at + bought).min(now + self.pace.idle_max);
    }

    /// When the peer is given up, if nothing more passes.
    pub fn at(&self) -> Instant {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { idle_max: Duration::from_secs(10), bytes_per_second: 1_024 };

    #[test]
    fn bytes_buy_time_and_no_more_than_there_is_to_have() {
        let begun = Instant::now();
        let after = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        // When how many bytes pass, and what the deadline is then.
        let cases = [(1.0, 0, 10.0), (2.0, 512, 10.5), (3.0, 1_024, 11.5), (4.0, 1 << 30, 14.0), (14.0, 2_048, 16.0)];
        let mut deadline = Deadline::begin(PACE, begun);
        assert_eq!(deadline.at(), after(10.0));
        for (seconds, bytes, at) in cases {
            deadline.moved(bytes, after(seconds));
            assert_eq!(deadline.at(), after(at), "{bytes} bytes after {seconds} s");
        }
    }

    #[test]
    fn a_byte_a_second_does_not_keep_a_connection() {
        let begun = Instant::now();
        let mut deadline = Deadline::begin(PACE, begun);
        let sent = (1..).find(|second| {
            let now = begun + Duration::from_secs(*second);
            deadline.moved(1, now);
            deadline.at() <= now
        });
        assert_eq!(sent, Some(11));
    }
}
