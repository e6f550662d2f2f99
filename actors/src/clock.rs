//! Clock of the engine: wall time, of the store's server where it has one, plus the offset of the
//! sandbox. It never goes back, and it does not follow a wall clock that jumps ahead.
//!
//! When the wall clock jumps back, this clock stands still until the wall clock has caught up. When
//! the wall clock is ahead of the time that has passed by more than a minute, this clock goes on
//! with the steady clock of the machine, and [`Clock::doubt`] says so until the wall clock is set
//! right or operators confirm it. The steady clock counts suspension (`CLOCK_BOOTTIME`).
//!
//! A live start compares the wall clock with the last Record: a process knows no time that has
//! passed before it began.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ledger::time::Timestamp;

use store::now_ms as steady_ms;

/// How far the wall clock may be ahead of the time that has passed, milliseconds.
const STEP_MAX_MS: i64 = 60_000;
/// Steps of the wall clock that are trusted in a second, milliseconds: a minute an hour, so that
/// many small steps do not make a large one.
const STEP_TRUSTED_MS: i64 = 17;
/// How far the last Record may be ahead of a live start, milliseconds: the clocks of two processes
/// differ a little.
const BEFORE_MAX_MS: i64 = 2_000;
/// The last Record of a start that needs no word, or has it.
const SETTLED: i64 = i64::MIN;

/// Wall time plus the sandbox's offset; it never goes back.
#[derive(Debug)]
pub(crate) struct Clock {
    /// How far the clock that all processes of a store share is ahead of this machine's.
    ahead_ms: AtomicI64,
    offset_ms: AtomicI64,
    latest_ms: AtomicI64,
    trust: Trust,
}

/// Why the wall clock is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Doubt {
    /// It is ahead of the time that has passed since the process began.
    Step,
    /// The process began too long after the last Record.
    LateStart,
    /// The process began before the last Record.
    EarlyStart,
}

/// The wall clock beside the time that the engine goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Wall time, of the store's server where it has one, without the sandbox's offset.
    pub wall: Timestamp,
    /// How far it is ahead of the trusted time, milliseconds; negative when it is behind.
    pub ahead_ms: i64,
    /// Why it is not followed; `None` if it is.
    pub doubt: Option<Doubt>,
    /// How far it is ahead of the steady clock, milliseconds: the same until somebody sets it.
    pub(crate) lead_ms: i64,
}

/// What a start compares the wall clock with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartCheck {
    /// When the last Record of the store was booked.
    pub(crate) last_record: Timestamp,
    /// How long after it a start needs no word of an operator.
    pub(crate) gap_max: Duration,
}

impl StartCheck {
    /// What a start at this time would be in doubt of.
    pub(crate) fn doubt(&self, now_ms: i64) -> Option<Doubt> {
        let now = Now { wall_ms: now_ms, steady_ms: 0 };
        Trust::begin(now, Some(*self)).doubt(now)
    }
}

impl Clock {
    /// A clock of a process that begins now, beside a shared clock that is this far ahead. Without
    /// a live start the wall clock of this moment is trusted.
    pub(crate) fn new(ahead_ms: i64, live: Option<StartCheck>) -> Self {
        let now = Now { wall_ms: wall_ms().saturating_add(ahead_ms), steady_ms: steady_ms() };
        let clock = Self {
            ahead_ms: AtomicI64::new(ahead_ms),
            offset_ms: AtomicI64::default(),
            latest_ms: AtomicI64::default(),
            trust: Trust::begin(now, live),
        };
        clock.trust.look(now);
        if ahead_ms.unsigned_abs() >= DIFFERENCE_MIN_MS {
            tell_of_difference(ahead_ms);
        }
        clock
    }

    /// From now on it is at least `offset_ms` ahead of wall time, and at least at `not_before`.
    pub(crate) fn begin(&self, offset_ms: i64, not_before: Timestamp) {
        self.offset_ms.fetch_max(offset_ms, Ordering::AcqRel);
        self.latest_ms.fetch_max(not_before.0, Ordering::AcqRel);
    }

    /// The time now: trusted time plus the offset, never before a time that it gave earlier.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.trusted_ms().saturating_add(self.offset_ms.load(Ordering::Acquire));
        Timestamp(self.latest_ms.fetch_max(now, Ordering::AcqRel).max(now))
    }

    /// Moves the clock forward so that now is at least `target`.
    pub(crate) fn advance_to(&self, target: Timestamp) {
        let ahead = target.0.saturating_sub(self.trusted_ms());
        self.offset_ms.fetch_max(ahead, Ordering::AcqRel);
    }

    /// Follows the clock that all processes of a store share. An estimate that differs a little
    /// from the one before shows only how long an answer took.
    pub(crate) fn follow(&self, ahead_ms: i64) {
        let before = self.ahead_ms.load(Ordering::Acquire);
        if ahead_ms.abs_diff(before) >= DIFFERENCE_MIN_MS {
            tell_of_difference(ahead_ms);
            self.ahead_ms.store(ahead_ms, Ordering::Release);
        }
    }

    /// Compares the wall clock with the time that has passed; to be called once a second.
    pub(crate) fn look(&self) -> ClockReading {
        self.trust.look(self.read());
        self.reading()
    }

    /// The wall clock beside the trusted time.
    pub(crate) fn reading(&self) -> ClockReading {
        let now = self.read();
        let ahead_ms = now.wall_ms.saturating_sub(self.trust.passed_ms(now));
        let lead_ms = now.wall_ms.saturating_sub(now.steady_ms);
        ClockReading { wall: Timestamp(now.wall_ms), ahead_ms, doubt: self.trust.doubt(now), lead_ms }
    }

    /// Why the wall clock is not followed at this moment; `None` if it is.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.trust.doubt(self.read())
    }

    /// Trusts the wall clock as it stands.
    pub(crate) fn confirm(&self) {
        self.trust.confirm(self.read());
    }

    /// Sandbox time minus wall time, milliseconds.
    pub(crate) fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    fn trusted_ms(&self) -> i64 {
        self.trust.time_ms(self.read())
    }

    fn read(&self) -> Now {
        let wall_ms = wall_ms().saturating_add(self.ahead_ms.load(Ordering::Acquire));
        Now { wall_ms, steady_ms: steady_ms() }
    }
}

/// Both clocks at one moment, milliseconds.
#[derive(Clone, Copy, Debug)]
struct Now {
    wall_ms: i64,
    steady_ms: i64,
}

/// What is trusted of a wall clock. The times are arguments.
#[derive(Debug)]
struct Trust {
    /// Trusted time minus the time of the steady clock, milliseconds.
    lead_ms: AtomicI64,
    /// The last Record of a live start that waits to be settled.
    last_record_ms: AtomicI64,
    gap_max_ms: i64,
}

impl Trust {
    fn begin(now: Now, live: Option<StartCheck>) -> Self {
        let gap_max = live.map_or(Duration::ZERO, |live| live.gap_max);
        Self {
            lead_ms: AtomicI64::new(now.wall_ms.saturating_sub(now.steady_ms)),
            last_record_ms: AtomicI64::new(live.map_or(SETTLED, |live| live.last_record.0)),
            gap_max_ms: i64::try_from(gap_max.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// The last Record of a start that waits.
    fn waits_for(&self) -> Option<i64> {
        Some(self.last_record_ms.load(Ordering::Acquire)).filter(|last_ms| *last_ms != SETTLED)
    }

    /// Time that has passed: where the wall clock should be.
    fn passed_ms(&self, now: Now) -> i64 {
        let passed_ms = || now.steady_ms.saturating_add(self.lead_ms.load(Ordering::Acquire));
        self.waits_for().unwrap_or_else(passed_ms)
    }

    fn doubt(&self, now: Now) -> Option<Doubt> {
        let ahead_ms = now.wall_ms.saturating_sub(self.passed_ms(now));
        match self.waits_for() {
            Some(_) if ahead_ms > self.gap_max_ms => Some(Doubt::LateStart),
            Some(_) if ahead_ms < -BEFORE_MAX_MS => Some(Doubt::EarlyStart),
            None if ahead_ms > STEP_MAX_MS => Some(Doubt::Step),
            _ => None,
        }
    }

    /// The time that counts: the wall clock's, unless that is in doubt.
    fn time_ms(&self, now: Now) -> i64 {
        if self.doubt(now).is_some() { self.passed_ms(now) } else { now.wall_ms }
    }

    /// Settles a start that fits, and trusts a small step little by little. A wall clock that is
    /// behind changes nothing: it may be set right.
    fn look(&self, now: Now) {
        if self.doubt(now).is_some() {
            return;
        }
        if self.waits_for().is_some() {
            return self.confirm(now);
        }
        let ahead_ms = now.wall_ms.saturating_sub(self.passed_ms(now));
        self.lead_ms.fetch_add(ahead_ms.clamp(0, STEP_TRUSTED_MS), Ordering::AcqRel);
    }

    fn confirm(&self, now: Now) {
        self.lead_ms.store(now.wall_ms.saturating_sub(now.steady_ms), Ordering::Release);
        self.last_record_ms.store(SETTLED, Ordering::Release);
    }
}

/// Difference of clocks that is followed, milliseconds.
const DIFFERENCE_MIN_MS: u64 = 500;

fn tell_of_difference(ahead_ms: i64) {
    tracing::info!(ahead_ms, "this machine's clock differs from the store's, which counts");
}

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000;
    const HOUR: i64 = 3_600 * SECOND;
    const DAY: i64 = 24 * HOUR;

    #[test]
    fn it_moves_forward_only() {
        let far = Timestamp(4_000_000_000_000);
        let clock = Clock::new(0, None);
        let before = clock.now();
        clock.advance_to(far);
        assert!(clock.now() >= far);
        clock.advance_to(before);
        assert!(clock.now() >= far, "an earlier target changes nothing");
        let held = Clock::new(0, None);
        held.begin(0, far);
        assert_eq!(held.now(), far, "a clock that begins ahead of wall time stands until wall time has caught up");
    }

    #[test]
    fn a_database_whose_clock_jumps_is_not_followed() {
        let clock = Clock::new(0, None);
        let before = clock.now();
        clock.follow(365 * DAY);
        assert_eq!(clock.reading().doubt, Some(Doubt::Step));
        assert!(clock.now().0 < before.0 + HOUR);
        clock.follow(-365 * DAY);
        assert_eq!(clock.reading().doubt, None, "a clock that goes back is waited for");
        assert!(clock.now() >= before);
        clock.follow(0);
        assert_eq!(clock.reading().doubt, None);
    }

    /// Time of the steady clock, of the wall clock, and of the books; why the wall clock is not
    /// followed. All relative to the start, in seconds.
    type Look = (i64, i64, i64, Option<Doubt>);

    fn check(trust: &Trust, looks: &[Look]) {
        for (steady, wall, time, doubt) in looks {
            let now = Now { wall_ms: wall * SECOND, steady_ms: 5_000 + steady * SECOND };
            assert_eq!((trust.doubt(now), trust.time_ms(now) / SECOND), (*doubt, *time), "{steady} s, wall {wall} s");
            trust.look(now);
        }
    }

    fn at_start() -> Now {
        Now { wall_ms: 0, steady_ms: 5_000 }
    }

    #[test]
    fn a_step_ahead_is_not_followed_and_one_back_may_be_set_right() {
        let trust = Trust::begin(at_start(), None);
        check(
            &trust,
            &[
                (1, 1, 1, None),
                (2, 62, 62, None),
                (3, 64, 3, Some(Doubt::Step)),
                (4, 31_536_000, 4, Some(Doubt::Step)),
                (5, 5, 5, None),
                // A machine that slept: both clocks have counted.
                (80_000, 80_000, 80_000, None),
                (80_001, -3_600, -3_600, None),
                (90_000, 90_000, 90_000, None),
                (90_001, 93_601, 90_001, Some(Doubt::Step)),
            ],
        );
    }

    #[test]
    fn many_small_steps_are_a_minute_an_hour() {
        let trust = Trust::begin(at_start(), None);
        for second in 0..3_600 {
            trust.look(Now { wall_ms: (second + 50) * SECOND, steady_ms: 5_000 + second * SECOND });
        }
        check(&trust, &[(3_600, 3_700, 3_700, None), (3_601, 3_720, 3_651, Some(Doubt::Step))]);
    }

    #[test]
    fn a_confirmed_step_is_followed_and_the_next_one_is_not() {
        let trust = Trust::begin(at_start(), None);
        let now = Now { wall_ms: 1_001 * SECOND, steady_ms: 6_000 };
        assert_eq!(trust.doubt(now), Some(Doubt::Step));
        trust.confirm(now);
        check(&trust, &[(2, 1_002, 1_002, None), (3, 2_003, 1_003, Some(Doubt::Step))]);
    }

    #[test]
    fn a_live_start_far_from_the_last_record_waits() {
        let week = Duration::from_secs(7 * 86_400);
        // The last Record relative to the start, and the doubt.
        let cases = [
            (-7 * DAY, None),
            (-7 * DAY - SECOND, Some(Doubt::LateStart)),
            (-365 * DAY, Some(Doubt::LateStart)),
            (2 * SECOND, None),
            (3 * SECOND, Some(Doubt::EarlyStart)),
            (HOUR, Some(Doubt::EarlyStart)),
        ];
        for (last_ms, doubt) in cases {
            let live = StartCheck { last_record: Timestamp(last_ms), gap_max: week };
            let trust = Trust::begin(at_start(), Some(live));
            assert_eq!(trust.doubt(at_start()), doubt, "{last_ms} ms");
            trust.look(at_start());
            assert_eq!(trust.waits_for().is_some(), doubt.is_some());
            let time_ms = if doubt.is_some() { last_ms } else { 0 };
            assert_eq!(trust.time_ms(at_start()), time_ms);
            trust.confirm(at_start());
            assert_eq!((trust.doubt(at_start()), trust.time_ms(at_start())), (None, 0));
        }
    }

    #[test]
    fn a_live_start_goes_on_once_the_clock_is_right() {
        let live = StartCheck { last_record: Timestamp(HOUR), gap_max: Duration::from_secs(86_400) };
        let trust = Trust::begin(at_start(), Some(live));
        check(
            &trust,
            &[(1, 1, 3_600, Some(Doubt::EarlyStart)), (2, 5_000, 5_000, None), (3, 9_000, 5_001, Some(Doubt::Step))],
        );
    }
}
