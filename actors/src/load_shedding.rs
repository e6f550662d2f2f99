//! Load shedding: how many commands may be under way at once, by how long they take.
//!
//! A command is under way from its sending to its actor until its decision is durable and its reply
//! leaves. Calls that wait for an acquirer do not count. The limit follows the time that a request
//! takes: its wait in the socket ([`crate::lag`]), and its command. The target of that time is 12
//! ms, or four commits of a slower disk. Where requests take twice the target, about twice as many
//! are under way as should be (Little's law). So the limit goes to the part of it that would meet
//! the target, in small steps: down by a quarter at most, and up by an eighth at most while it is
//! used up. In a stall no command ends, so the number under way stays, and the limit holds.
//!
//! At the limit, a merchant with less than its fair share under way is still admitted, so that one
//! hot merchant cannot starve the others. Never more than twice the limit is under way.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ledger::id::GroupNumber;
use parking_lot::Mutex;

use crate::lag::LagProbe;

/// The limit at the start.
const LIMIT_FIRST: usize = 256;
/// The minimum of the limit: one block takes that many, however slow the machine is.
const LIMIT_MIN: usize = 64;
/// The maximum of the limit: as many commands as the journal admits.
const LIMIT_MAX: usize = 16_384;
/// How many commits of this disk a command may take, from being sent until it is durable.
const COMMITS_MAX: u64 = 4;
/// How long requests may always take, microseconds: a fast disk does not speed up requests that
/// wait for the processor.
const TARGET_MIN_US: u64 = 12_000;
/// The limit is looked at after this many commands, and not before a quarter of the target's time
/// has passed. With a whole one it would answer too late to requests that pile up in the sockets.
const WINDOW_COMMANDS: u64 = 64;
/// How many places merchants are counted in. Two that share a place are counted together.
const PLACES: usize = 4_096;

/// The limit, and the commands under way by merchant.
#[derive(Debug)]
pub(crate) struct LoadShedder {
    since: Instant,
    /// None in tests of the limit alone.
    lag: Option<LagProbe>,
    under_way: AtomicUsize,
    limit: AtomicUsize,
    window: Mutex<Window>,
    /// Commands under way, by merchant.
    places: Box<[AtomicU32]>,
    /// Places that have any.
    merchants: AtomicUsize,
}

impl Default for LoadShedder {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            lag: None,
            under_way: AtomicUsize::new(0),
            limit: AtomicUsize::new(LIMIT_FIRST),
            window: Mutex::default(),
            places: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
            merchants: AtomicUsize::new(0),
        }
    }
}

impl LoadShedder {
    /// A shedder that also counts how long requests wait before the present runtime reads them.
    ///
    /// Fails when no socket can be opened.
    pub(crate) fn watching_the_runtime() -> io::Result<Self> {
        Ok(Self { lag: Some(LagProbe::start()?), ..Self::default() })
    }

    /// Whether one more command is let in. `group` names its merchant; it is called only at the
    /// limit.
    pub(crate) fn admits(&self, group: impl FnOnce() -> Option<GroupNumber>) -> bool {
        let (under_way, limit) = (self.under_way(), self.limit());
        if under_way < limit {
            return true;
        }
        let Some(group) = group().filter(|_| under_way < 2 * limit) else { return false };
        let own = self.places[place(group)].load(Ordering::Relaxed) as usize;
        let merchants = self.merchants.load(Ordering::Relaxed) + usize::from(own == 0);
        own < limit / merchants.max(1)
    }

    /// True while as many are under way as the limit says.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way() >= self.limit()
    }

    /// Counts a command of a merchant as under way until the guard is dropped.
    pub(crate) fn enter(&self, group: Option<GroupNumber>) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let place = group.map(place);
        if let Some(place) = place
            && self.places[place].fetch_add(1, Ordering::Relaxed) == 0
        {
            self.merchants.fetch_add(1, Ordering::Relaxed);
        }
        UnderWay { load_shedder: self, place }
    }

    /// Notes how long a command took from being sent to its durable reply, and how long a commit
    /// takes.
    pub(crate) fn note(&self, waited: Duration, commit: Duration) {
        let target_us = TARGET_MIN_US.max(COMMITS_MAX * micros(commit));
        // When two threads note at once, one note is lost: an average does not need it.
        let Some(mut window) = self.window.try_lock() else { return };
        let (limit, now_us) = (self.limit(), micros(self.since.elapsed()));
        let lag_us = self.lag.as_ref().map_or(0, LagProbe::look);
        if let Some(limit) =
            window.note(micros(waited).saturating_add(lag_us), self.under_way(), limit, target_us, now_us)
        {
            self.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// Commands that may be under way.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Commands that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }
}

/// A command that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    load_shedder: &'a LoadShedder,
    place: Option<usize>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.load_shedder.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Some(place) = self.place
            && self.load_shedder.places[place].fetch_sub(1, Ordering::Relaxed) == 1
        {
            self.load_shedder.merchants.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Durations of commands since the limit was last adjusted.
#[derive(Debug, Default)]
struct Window {
    began_us: u64,
    commands: u64,
    waited_us: u64,
    most_under_way: usize,
}

impl Window {
    /// Notes a command; gives the limit when the window is full.
    fn note(&mut self, waited_us: u64, under_way: usize, limit: usize, target_us: u64, now_us: u64) -> Option<usize> {
        self.commands += 1;
        self.waited_us = self.waited_us.saturating_add(waited_us);
        self.most_under_way = self.most_under_way.max(under_way);
        if self.commands < WINDOW_COMMANDS || now_us < self.began_us + target_us / 4 {
            return None;
        }
        let waited_us = self.waited_us / self.commands;
        let is_used = self.most_under_way >= limit - limit / 4;
        *self = Window { began_us: now_us, ..Window::default() };
        let fitting = usize::try_from(limit as u64 * target_us / waited_us.max(1)).unwrap_or(usize::MAX);
        Some(if waited_us > target_us {
            fitting.max(limit - limit / 4).max(LIMIT_MIN)
        } else if is_used {
            fitting.min(limit + limit / 8).min(LIMIT_MAX)
        } else {
            limit
        })
    }
}

/// Estimate of a median in constant memory: it goes up a step for a greater value and down one for
/// a lesser value.
#[derive(Debug, Default)]
pub(crate) struct RunningMedian(AtomicU64);

impl RunningMedian {
    /// Counts a value. When two threads count at once, one value may be lost.
    pub(crate) fn note(&self, duration: Duration) {
        let (median, next) = (self.0.load(Ordering::Relaxed), micros(duration));
        let step = (median / 16).max(1);
        let median = match median {
            0 => next,
            _ if next > median => median + step.min(next - median),
            _ => median - step.min(median - next),
        };
        self.0.store(median, Ordering::Relaxed);
    }

    /// The median; zero before the first.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

fn place(group: GroupNumber) -> usize {
    // Groups are numbered in order: neighbors do not share a place.
    group.0 as usize % PLACES
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOT: GroupNumber = GroupNumber(1);
    const COLD: GroupNumber = GroupNumber(2);

    /// Passes this number of windows, in which commands take this long and this many are under way,
    /// and gives the limit.
    fn after(windows: u64, waited_us: u64, under_way: usize, limit: usize, target_us: u64) -> usize {
        let mut window = Window::default();
        (0..windows * WINDOW_COMMANDS).fold(limit, |limit, command| {
            let now_us = (command + 1) * target_us.div_ceil(WINDOW_COMMANDS);
            window.note(waited_us, under_way.min(limit), limit, target_us, now_us).unwrap_or(limit)
        })
    }

    #[test]
    fn the_limit_shrinks_with_what_waits_and_grows_with_what_is_used() {
        let ms = 1_000;
        // Windows, how long commands wait, how many are under way, the limit before, the target,
        // the limit after.
        let cases = [
            (1, 11 * ms, 512, 512, 10 * ms, 465),
            (1, 20 * ms, 512, 512, 10 * ms, 384),
            (8, 400 * ms, 1_024, 1_024, 10 * ms, 104),
            (1_000, 400 * ms, 256, 256, 10 * ms, LIMIT_MIN),
            (1_000, 10 * ms, 256, 256, 10 * ms, 256),
            (1, 9_500, 256, 256, 10 * ms, 269),
            (1, 4 * ms, 256, 256, 10 * ms, 288),
            (1, 5 * ms, 100, 256, 10 * ms, 256),
            (1_000, 5 * ms, LIMIT_MAX, 256, 10 * ms, LIMIT_MAX),
            // Slow for a fast disk, but not for a slow one.
            (1, 30 * ms, 256, 256, 32 * ms, 273),
        ];
        for (windows, waited_us, under_way, limit, target_us, expected) in cases {
            assert_eq!(after(windows, waited_us, under_way, limit, target_us), expected, "{waited_us} of {target_us}");
        }
    }

    #[test]
    fn a_burst_of_slow_ones_is_one_reason_to_shrink() {
        let mut window = Window::default();
        let limits = (0..1_000).filter_map(|_| window.note(200_000, 512, 512, 10_000, 500_000));
        assert_eq!(limits.collect::<Vec<_>>(), [384], "they all came at one moment, after a stall");
    }

    #[test]
    fn a_slow_disk_alone_sheds_no_load() {
        for (commit_ms, limit) in [(1, 384), (8, 576)] {
            let since = Instant::now() - Duration::from_secs(60);
            let shedder = LoadShedder { since, limit: AtomicUsize::new(512), ..LoadShedder::default() };
            let _under_way: Vec<_> = (0..512).map(|_| shedder.enter(Some(HOT))).collect();
            (0..WINDOW_COMMANDS)
                .for_each(|_| shedder.note(Duration::from_millis(24), Duration::from_millis(commit_ms)));
            assert_eq!(shedder.limit(), limit, "a commit takes {commit_ms} ms, a command 24");
        }
    }

    #[test]
    fn a_stall_does_not_open_the_door() {
        let shedder = LoadShedder::default();
        let stalled: Vec<_> = (0..LIMIT_FIRST).map(|_| shedder.enter(Some(HOT))).collect();
        // Nothing passes, and nothing is noted, however long it lasts.
        let later = LoadShedder { since: shedder.since - Duration::from_secs(3_600), ..LoadShedder::default() };
        let _stalled_too: Vec<_> = (0..LIMIT_FIRST).map(|_| later.enter(Some(HOT))).collect();
        assert!(!shedder.admits(|| Some(HOT)) && !later.admits(|| Some(HOT)));
        drop(stalled);
        assert!(shedder.admits(|| Some(HOT)));
        assert_eq!((shedder.under_way(), shedder.merchants.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test]
    async fn what_waits_before_it_is_read_counts_too() {
        let started = Instant::now() - Duration::from_secs(60);
        let shedder = LoadShedder { since: started, ..LoadShedder::watching_the_runtime().unwrap() };
        let quick = || (0..WINDOW_COMMANDS).for_each(|_| shedder.note(Duration::ZERO, Duration::ZERO));
        std::thread::sleep(Duration::from_millis(3));
        quick();
        assert_eq!(shedder.limit(), LIMIT_FIRST);
        // Nothing is read meanwhile, as this is the only thread of the runtime.
        std::thread::sleep(Duration::from_millis(40));
        quick();
        assert_eq!(shedder.limit(), LIMIT_FIRST - LIMIT_FIRST / 4);
    }

    #[test]
    fn one_hot_merchant_does_not_starve_the_others() {
        let shedder = LoadShedder::default();
        let mut under_way: Vec<_> = (0..LIMIT_FIRST).map(|_| shedder.enter(Some(HOT))).collect();
        let mut let_in = |group: GroupNumber| {
            let mut count = 0;
            while shedder.admits(|| Some(group)) {
                under_way.push(shedder.enter(Some(group)));
                count += 1;
            }
            count
        };
        assert_eq!(let_in(HOT), 0);
        assert_eq!(let_in(COLD), LIMIT_FIRST / 2, "half, as there are two");
        assert_eq!(let_in(GroupNumber(3)), LIMIT_FIRST / 3);
        assert_eq!(let_in(GroupNumber(4)), 2 * LIMIT_FIRST - LIMIT_FIRST - LIMIT_FIRST / 2 - LIMIT_FIRST / 3);
        assert_eq!(let_in(GroupNumber(5)), 0, "twice the limit is the most");
        assert!(!shedder.admits(|| None), "who cannot be told has no share");
    }

    #[test]
    fn a_running_median_is_not_moved_by_what_is_rare() {
        let median = RunningMedian::default();
        for round in 0..2_000 {
            median.note(Duration::from_micros(if round % 10 == 0 { 1_000_000 } else { 800 + round % 7 * 100 }));
        }
        let found = median.get().as_micros();
        assert!((1_000..=1_400).contains(&found), "{found}");
    }
}
