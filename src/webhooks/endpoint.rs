//! One endpoint: what waits for it, in which order it is tried, and when again. Nothing here waits, calls or looks at a clock.

use std::collections::BTreeSet;

use actors::outbox::{Progress, Waiting};
use ledger::time::Timestamp;

/// After how many seconds a notice is tried again: ten tries in about 75 hours. Then it is given up.
pub(super) const RETRY_AFTER_SECONDS: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// How many notices wait at one endpoint; more of them stay in the journal until there is room.
pub(super) const WAITING_MAX: usize = 1_000;
/// How many of an endpoint that answers are under way at once.
const AT_ONCE_MAX: usize = 4;
/// How many of those that were given up are remembered.
const GIVEN_UP_MAX: usize = 1_000;

/// What became of a notice at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is from before the endpoint's time.
    Before,
    /// It waits to be tried.
    Pending {
        /// How often it was tried in vain.
        tries: u32,
        /// When it is tried next; none when its turn has not come.
        next_at: Option<Timestamp>,
    },
    /// The endpoint took it.
    Delivered,
    /// It was given up.
    GivenUp,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    progress: Progress,
    /// The first notice that is for it.
    first: u64,
    under_way: BTreeSet<u64>,
    is_failing: bool,
    is_changed: bool,
}

impl Endpoint {
    /// Goes on from what was kept. The journal has `count` notices: what is said of others belongs to another journal. `first` is the
    /// number of the first notice that is for this endpoint.
    pub(super) fn new(mut progress: Progress, first: u64, count: u64) -> Self {
        progress.through = progress.through.clamp(first.saturating_sub(1), count.max(first.saturating_sub(1)));
        progress.waiting.retain(|waiting| waiting.number <= count);
        progress.given_up.retain(|number| *number <= count);
        let is_failing = progress.waiting.iter().any(|waiting| waiting.tries > 0);
        Self { progress, first, under_way: BTreeSet::new(), is_failing, is_changed: true }
    }

    /// What is to be kept.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether it changed since this was asked last.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Whether the last try failed: then one is under way at a time.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// The number of the next notice to be taken from the journal, and how many there is room for.
    pub(super) fn wanted(&self) -> (u64, usize) {
        (self.progress.through + 1, WAITING_MAX.saturating_sub(self.progress.waiting.len()))
    }

    /// Takes the next notice.
    pub(super) fn add(&mut self, number: u64, subject: u64, told_at: Timestamp, now: Timestamp) {
        self.progress.through = number;
        self.progress.waiting.push(Waiting { number, tries: 0, next_at: now, again: false, subject, told_at });
        self.is_changed = true;
    }

    /// Takes a notice that somebody asked for again: it is tried at once, and waits for no other. One that waits in its order is tried
    /// as soon as that allows, and one that was not taken yet comes anyway.
    pub(super) fn add_again(&mut self, number: u64, subject: u64, told_at: Timestamp, now: Timestamp) {
        if number > self.progress.through {
            return;
        }
        match self.progress.waiting.iter_mut().find(|waiting| waiting.number == number) {
            Some(waiting) => (waiting.tries, waiting.next_at) = (0, now),
            None => {
                let again = Waiting { number, tries: 0, next_at: now, again: true, subject, told_at };
                let place = self.progress.waiting.partition_point(|waiting| waiting.number < number);
                self.progress.waiting.insert(place, again);
            }
        }
        self.progress.given_up.retain(|given_up| *given_up != number);
        self.is_changed = true;
    }

    /// The next notice whose turn it is; it is under way from here on.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<u64> {
        let at_once = if self.is_failing { 1 } else { AT_ONCE_MAX };
        if self.under_way.len() >= at_once {
            return None;
        }
        let is_ready = |waiting: &&Waiting| waiting.next_at <= now && !self.under_way.contains(&waiting.number);
        let number = self.first_of_each().find(is_ready)?.number;
        self.under_way.insert(number);
        Some(number)
    }

    /// A try that was begun could not be made: its turn comes again.
    pub(super) fn put_back(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    /// The endpoint took a notice.
    pub(super) fn delivered(&mut self, number: u64) {
        self.under_way.remove(&number);
        self.progress.waiting.retain(|waiting| waiting.number != number);
        (self.is_failing, self.is_changed) = (false, true);
    }

    /// A try failed. True when it was the last one: the notice is given up.
    pub(super) fn failed(&mut self, number: u64, now: Timestamp) -> bool {
        self.under_way.remove(&number);
        (self.is_failing, self.is_changed) = (true, true);
        let Some(place) = self.progress.waiting.iter().position(|waiting| waiting.number == number) else {
            return false;
        };
        let waiting = &mut self.progress.waiting[place];
        waiting.tries += 1;
        match RETRY_AFTER_SECONDS.get(waiting.tries as usize - 1) {
            Some(seconds) => {
                waiting.next_at = now.plus_ms(seconds * 1_000);
                false
            }
            None => {
                self.progress.waiting.remove(place);
                self.progress.given_up.push(number);
                if self.progress.given_up.len() > GIVEN_UP_MAX {
                    self.progress.given_up.remove(0);
                }
                true
            }
        }
    }

    /// When the next one is tried that waits for its time only.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let waiting = self.first_of_each().filter(|waiting| !self.under_way.contains(&waiting.number));
        waiting.map(|waiting| waiting.next_at).min()
    }

    /// What became of a notice. Of those that were given up long ago nothing is known any more: they read as delivered.
    pub(super) fn standing(&self, number: u64) -> Standing {
        if let Some(waiting) = self.progress.waiting.iter().find(|waiting| waiting.number == number) {
            let is_first = self.first_of_each().any(|first| first.number == number);
            return Standing::Pending { tries: waiting.tries, next_at: is_first.then_some(waiting.next_at) };
        }
        if number > self.progress.through {
            Standing::Pending { tries: 0, next_at: None }
        } else if self.progress.given_up.contains(&number) {
            Standing::GivenUp
        } else if number < self.first {
            Standing::Before
        } else {
            Standing::Delivered
        }
    }

    /// When the oldest that waits was told.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.progress.waiting.iter().map(|waiting| waiting.told_at).min()
    }

    /// What may be tried: the first of those about the same thing, and whatever was asked for again.
    fn first_of_each(&self) -> impl Iterator<Item = &Waiting> {
        let mut seen = BTreeSet::new();
        self.progress.waiting.iter().filter(move |waiting| waiting.again || seen.insert(waiting.subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn with(subjects: &[u64]) -> Endpoint {
        let mut endpoint = Endpoint::new(Progress::default(), 1, u64::MAX);
        for (number, subject) in (1..).zip(subjects) {
            endpoint.add(number, *subject, NOW, NOW);
        }
        endpoint
    }

    fn begun(endpoint: &mut Endpoint, now: Timestamp) -> Vec<u64> {
        std::iter::from_fn(|| endpoint.begin(now)).collect()
    }

    #[test]
    fn one_about_the_same_thing_waits_for_those_before_it() {
        let mut endpoint = with(&[7, 7, 8, 7, 9]);
        assert_eq!(begun(&mut endpoint, NOW), [1, 3, 5]);
        endpoint.delivered(3);
        endpoint.delivered(5);
        assert_eq!(begun(&mut endpoint, NOW), [0; 0], "2 and 4 wait for 1");
        assert!(!endpoint.failed(1, NOW));
        assert_eq!(begun(&mut endpoint, NOW), [0; 0], "also while 1 waits to be tried again");
        assert_eq!(begun(&mut endpoint, NOW.plus_ms(5_000)), [1]);
        endpoint.delivered(1);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        endpoint.delivered(2);
        assert_eq!(begun(&mut endpoint, NOW), [4]);
    }

    #[test]
    fn ten_tries_in_seventy_five_hours_and_then_the_next() {
        let mut endpoint = with(&[7, 7]);
        let (mut now, mut tries) = (NOW, 0);
        loop {
            assert_eq!(begun(&mut endpoint, now), [1]);
            assert_eq!(begun(&mut endpoint, now.plus_ms(1_000_000_000)), [0; 0], "it is under way");
            tries += 1;
            if endpoint.failed(1, now) {
                break;
            }
            let next = endpoint.next_at().unwrap();
            assert_eq!(begun(&mut endpoint, Timestamp(next.0 - 1)), [0; 0]);
            now = next;
        }
        assert_eq!(tries, 10);
        assert_eq!((now.0 - NOW.0) / 1_000, RETRY_AFTER_SECONDS.iter().sum::<i64>());
        assert_eq!((now.0 - NOW.0) / 3_600_000, 75);
        assert_eq!(endpoint.standing(1), Standing::GivenUp);
        assert_eq!(begun(&mut endpoint, now), [2]);
    }

    #[test]
    fn few_are_under_way_at_once_and_one_at_an_endpoint_that_fails() {
        let mut endpoint = with(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(begun(&mut endpoint, NOW), [1, 2, 3, 4]);
        endpoint.failed(1, NOW);
        for number in [2, 3] {
            endpoint.put_back(number);
            assert_eq!(begun(&mut endpoint, NOW), [0; 0]);
        }
        endpoint.put_back(4);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        endpoint.delivered(2);
        assert_eq!(begun(&mut endpoint, NOW), [3, 4, 5, 6], "it answers again");
    }

    #[test]
    fn what_is_asked_for_again_is_tried_at_once() {
        let mut endpoint = with(&[7, 7, 7]);
        assert_eq!(begun(&mut endpoint, NOW), [1]);
        endpoint.delivered(1);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        endpoint.failed(2, NOW);
        endpoint.add_again(1, 7, NOW, NOW);
        assert_eq!(endpoint.standing(1), Standing::Pending { tries: 0, next_at: Some(NOW) });
        assert_eq!(begun(&mut endpoint, NOW), [1], "the second waits for its time, the third for the second");
        endpoint.delivered(1);
        endpoint.add_again(2, 7, NOW, NOW);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        endpoint.add_again(9, 7, NOW, NOW);
        assert_eq!(endpoint.wanted(), (4, WAITING_MAX - 2), "one that was not taken yet comes anyway");
    }

    #[test]
    fn what_was_kept_of_a_longer_journal_is_dropped() {
        let mut endpoint = with(&[1, 2, 3]);
        endpoint.failed(1, NOW);
        let kept = endpoint.progress().clone();
        let endpoint = Endpoint::new(kept, 1, 2);
        assert_eq!(endpoint.wanted().0, 3);
        assert_eq!(endpoint.progress().waiting.iter().map(|waiting| waiting.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(endpoint.standing(3), Standing::Pending { tries: 0, next_at: None });
    }

    #[test]
    fn the_journal_waits_while_a_thousand_wait() {
        let mut endpoint = with(&(0..WAITING_MAX as u64).collect::<Vec<_>>());
        assert_eq!(endpoint.wanted(), (1_001, 0));
        assert_eq!(begun(&mut endpoint, NOW), [1, 2, 3, 4]);
        endpoint.delivered(2);
        assert_eq!(endpoint.wanted(), (1_001, 1));
    }
}
