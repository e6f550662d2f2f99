//! State of one webhook endpoint: the events that wait for it, their order, the number of tries at
//! once, and the time of the next try. Pure: it does not wait, call or read a clock.

use std::collections::{BTreeMap, BTreeSet};

use actors::engine::{PastChoices, WebhookRow};
use derived::outbox::{Answer, LastAnswer, Progress, WaitingDelivery};
use ledger::{EventChoice, Timestamp, WebhookEventKind};
use minicbor::{Decode, Encode};
use store::Sequence;

use super::last_tries::{DeliveryTry, TryLog};
use super::try_slots::{AT_ONCE_MAX, Pool};

/// Seconds from a failed try to the next one: ten tries in about 75 hours. After the last one the
/// event is given up.
pub(super) const RETRY_AFTER_SECONDS: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// Most events that wait at one endpoint. More of them stay in the journal until there is room.
pub(super) const WAITING_MAX: usize = 1_000;
/// Most events of one endpoint that are read from the journal in one go.
const TAKEN_AT_ONCE: usize = 64;
/// Events that were not chosen and are passed over in one round, about: they take no room, and the
/// other endpoints have their turn too.
const PASSED_MAX: usize = 2_000;
/// Tries at once at an endpoint that was not called yet.
const AT_ONCE_AT_FIRST: usize = 4;
/// An endpoint whose last answer took longer is slow, milliseconds.
const SLOW_MS: u32 = 5_000;
/// Most events of one endpoint that are remembered as given up.
const GIVEN_UP_MAX: usize = 1_000;

/// Delivery of one event to one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// The event is not for this endpoint: it is older than its address, or of a kind that the
    /// endpoint did not choose.
    NotSent,
    /// The event waits to be tried.
    Pending {
        /// Number of tries that failed.
        tries: u32,
        /// Time of the next try; none while an earlier event about the same thing waits.
        next_at: Option<Timestamp>,
        /// Result of the last try; none before the first.
        last_answer: Option<Answer>,
    },
    /// The endpoint took it.
    Delivered,
    /// The last try failed.
    GivenUp {
        /// Result of the last try; `None` if it was not stored.
        last_answer: Option<Answer>,
    },
}

/// State of an endpoint at which events wait or were given up, as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EndpointBacklog {
    /// Events that wait, 1,000 at most: more of them may be in the journal.
    #[n(0)]
    pub waiting: usize,
    /// When the oldest of them happened.
    #[n(1)]
    pub oldest_at: Option<Timestamp>,
    /// Events that are remembered as given up, 1,000 at most.
    #[n(2)]
    pub given_up: usize,
    /// Tries under way.
    #[n(3)]
    pub under_way: usize,
    /// Result of the last try, of whatever event.
    #[n(4)]
    pub last_answer: Option<Answer>,
}

/// One endpoint: an API key's address, from the Record on that set it.
#[derive(Clone, Debug, Default)]
pub(super) struct Endpoint {
    since: u64,
    /// The kinds of events that it receives, and received before.
    choice: EventChoice,
    past_choices: PastChoices,
    /// Events through this number were read from the journal.
    through: u64,
    /// Number of the first event that is for this endpoint.
    first: u64,
    waiting: BTreeMap<u64, WaitingDelivery>,
    /// Subject and number of the events that wait in order: the first of each subject may be tried.
    in_order: BTreeSet<(u64, u64)>,
    /// Events that may be tried and are not under way, by the time of their try.
    turns: BTreeSet<(Timestamp, u64)>,
    under_way: BTreeSet<u64>,
    given_up: Vec<u64>,
    /// Results of the last tries of events that wait or were given up.
    failures: BTreeMap<u64, Answer>,
    last_answer: Option<Answer>,
    /// The last tries, of whatever event.
    tries: TryLog,
    tries_changed: bool,
    /// Most tries at once.
    at_once: usize,
    pool: Pool,
    /// Whether the journal may have events that were not read.
    is_behind: bool,
    /// Room from which on more events are read from the journal.
    refill_room: usize,
    /// Events that were passed over in this round.
    passed: usize,
    is_changed: bool,
}

impl Endpoint {
    /// Goes on from stored progress. The journal has `count` events: stored numbers above that
    /// belong to another journal, and are ignored. `first` is the number of the first event for
    /// this endpoint.
    pub(super) fn new(progress: Progress, first: u64, count: u64) -> Self {
        let is_failing = progress.waiting.iter().any(|waiting| waiting.tries > 0);
        let mut endpoint = Self {
            since: progress.since,
            through: progress.through.clamp(first.saturating_sub(1), count.max(first.saturating_sub(1))),
            first,
            given_up: progress.given_up.into_iter().filter(|number| *number <= count).collect(),
            failures: progress.last_answers.into_iter().map(|last| (last.number, last.answer)).collect(),
            at_once: if is_failing { 1 } else { AT_ONCE_AT_FIRST },
            pool: if is_failing { Pool::Troubled } else { Pool::Answering },
            is_behind: true,
            refill_room: 1,
            is_changed: true,
            ..Self::default()
        };
        progress
            .waiting
            .into_iter()
            .filter(|waiting| waiting.number <= count)
            .for_each(|waiting| endpoint.insert(waiting));
        let (waiting, given_up) = (&endpoint.waiting, &endpoint.given_up);
        endpoint.failures.retain(|number, _| waiting.contains_key(number) || given_up.contains(number));
        endpoint.last_answer = endpoint.failures.values().copied().max_by_key(|answer| answer.at);
        endpoint
    }

    /// Takes the choices of its events. Those that wait are still sent.
    pub(super) fn choose(&mut self, row: &WebhookRow) {
        (self.choice, self.past_choices) = (row.events, row.past_choices.clone());
    }

    /// Whether the endpoint chose events of a kind when this Record came.
    pub(super) fn wants(&self, kind: WebhookEventKind, at: Sequence) -> bool {
        self.past_choices.at(at).unwrap_or(self.choice).has(kind)
    }

    /// Sequence of the Record that set the address: later events are for this endpoint.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The progress to be stored.
    pub(super) fn progress(&self) -> Progress {
        let last_answers = self.failures.iter().map(|(number, answer)| LastAnswer { number: *number, answer: *answer });
        Progress {
            since: self.since,
            through: self.through,
            waiting: self.waiting.values().copied().collect(),
            given_up: self.given_up.clone(),
            last_answers: last_answers.collect(),
        }
    }

    /// The last tries as they are stored.
    pub(super) fn try_log(&self) -> &TryLog {
        &self.tries
    }

    /// Takes the tries of before: those at an earlier address, or of an earlier process.
    pub(super) fn go_on_with(&mut self, tries: TryLog) {
        (self.tries, self.tries_changed) = (tries, true);
    }

    /// Takes the tries of an earlier process at this address.
    pub(super) fn restore(&mut self, tries: TryLog) {
        self.last_answer = self.last_answer.into_iter().chain(tries.newest()).max_by_key(|answer| answer.at);
        self.go_on_with(tries);
    }

    /// Notes what a try that has ended looked like.
    pub(super) fn note(&mut self, ended: DeliveryTry) {
        self.tries.note(ended);
        self.tries_changed = true;
    }

    /// Whether the tries have changed since the last call.
    pub(super) fn take_tries_changed(&mut self) -> bool {
        std::mem::take(&mut self.tries_changed)
    }

    /// Whether the progress has changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// The pool whose slots its tries take.
    pub(super) fn pool(&self) -> Pool {
        self.pool
    }

    /// Number of tries under way.
    pub(super) fn under_way_count(&self) -> usize {
        self.under_way.len()
    }

    /// Number of events that wait.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Notes that the journal has new events.
    pub(super) fn has_events(&mut self) {
        (self.is_behind, self.refill_room) = (true, 1);
    }

    /// Notes that all events of the journal were read.
    pub(super) fn has_all(&mut self) {
        self.is_behind = false;
    }

    /// Number of the next event to be read from the journal, and how many to read in one go; none
    /// while there are no new ones or no room, and when many were passed over in this round. A full
    /// endpoint is filled again when it has some room.
    pub(super) fn wanted(&mut self) -> Option<(u64, usize)> {
        if self.passed >= PASSED_MAX {
            return None;
        }
        let room = WAITING_MAX.saturating_sub(self.waiting.len());
        let is_wanted = self.is_behind && room >= self.refill_room;
        self.refill_room = if is_wanted { 1 } else { TAKEN_AT_ONCE };
        is_wanted.then_some((self.through + 1, room.min(TAKEN_AT_ONCE)))
    }

    /// Adds the next event of the journal.
    pub(super) fn add(&mut self, number: u64, subject: u64, told_at: Timestamp, now: Timestamp) {
        self.through = number;
        self.insert(WaitingDelivery { number, tries: 0, next_at: now, again: false, subject, told_at });
    }

    /// Passes over the next event of the journal, of a kind that was not chosen.
    pub(super) fn pass(&mut self, number: u64) {
        (self.through, self.is_changed) = (number, true);
        self.passed += 1;
    }

    /// Ends a round of reading. True if it stopped where many were passed over: there may be more.
    pub(super) fn end_round(&mut self) -> bool {
        std::mem::take(&mut self.passed) >= PASSED_MAX
    }

    /// Adds an event that the merchant asked for again. It is tried at once, and waits for no
    /// other. One that waits in order is tried as soon as its order allows; one that was not read
    /// from the journal yet comes anyway. False when there is no room.
    pub(super) fn add_again(&mut self, number: u64, subject: u64, told_at: Timestamp, now: Timestamp) -> bool {
        if number > self.through {
            return true;
        }
        let again = match self.waiting.get(&number) {
            Some(waiting) => WaitingDelivery { tries: 0, next_at: now, ..*waiting },
            None if self.waiting.len() >= WAITING_MAX => return false,
            None => WaitingDelivery { number, tries: 0, next_at: now, again: true, subject, told_at },
        };
        self.given_up.retain(|given_up| *given_up != number);
        self.insert(again);
        true
    }

    /// Makes the events due now that wait for a later try, as if none had failed before. Gives how
    /// many they are.
    pub(super) fn hasten(&mut self, now: Timestamp) -> usize {
        let later: Vec<_> = self.waiting.values().filter(|waiting| waiting.next_at > now).copied().collect();
        later.iter().for_each(|waiting| self.insert(WaitingDelivery { tries: 0, next_at: now, ..*waiting }));
        later.len()
    }

    /// Adds an event to those that wait, or changes one of them.
    fn insert(&mut self, waiting: WaitingDelivery) {
        if let Some(before) = self.waiting.insert(waiting.number, waiting) {
            self.turns.remove(&(before.next_at, before.number));
        }
        if !waiting.again {
            self.in_order.insert((waiting.subject, waiting.number));
        }
        self.offer(&waiting);
        self.is_changed = true;
    }

    /// Schedules the try of an event, if it may be tried.
    fn offer(&mut self, waiting: &WaitingDelivery) {
        if self.may_be_tried(waiting) && !self.under_way.contains(&waiting.number) {
            self.turns.insert((waiting.next_at, waiting.number));
        }
    }

    /// The first event about one thing may be tried, and any event that was asked for again.
    fn may_be_tried(&self, waiting: &WaitingDelivery) -> bool {
        waiting.again || self.first_about(waiting.subject) == Some(waiting.number)
    }

    fn first_about(&self, subject: u64) -> Option<u64> {
        self.in_order.range((subject, 0)..=(subject, u64::MAX)).next().map(|(_, number)| *number)
    }

    /// Removes an event that waits, and schedules the next one about the same thing.
    fn remove(&mut self, number: u64) {
        let Some(removed) = self.waiting.remove(&number) else { return };
        self.turns.remove(&(removed.next_at, number));
        self.in_order.remove(&(removed.subject, number));
        let next = self.first_about(removed.subject).and_then(|next| self.waiting.get(&next)).copied();
        if let Some(next) = next {
            self.offer(&next);
        }
    }

    /// Whether a try may begin now.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.under_way.len() < self.at_once && self.next_at().is_some_and(|at| at <= now)
    }

    /// Begins the next try: gives its event, which counts as under way from now on.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<u64> {
        if !self.is_ready(now) {
            return None;
        }
        let (_, number) = self.turns.pop_first()?;
        self.under_way.insert(number);
        Some(number)
    }

    /// Notes that the endpoint accepted an event. An endpoint that made as many tries at once as it
    /// may gets one more, which doubles their number with each round of answers (slow start).
    pub(super) fn delivered(&mut self, number: u64, answer: Answer) {
        if self.under_way.len() >= self.at_once {
            self.at_once = (self.at_once + 1).min(AT_ONCE_MAX);
        }
        self.pool = if answer.duration_ms > SLOW_MS { Pool::Troubled } else { Pool::Answering };
        self.end(number, answer);
        self.failures.remove(&number);
        self.remove(number);
    }

    /// Notes that a try failed. True when it was the last one: the event is given up. The endpoint
    /// gets one try at a time from now on.
    pub(super) fn failed(&mut self, number: u64, answer: Answer, now: Timestamp) -> bool {
        (self.at_once, self.pool) = (1, Pool::Troubled);
        self.end(number, answer);
        let Some(mut waiting) = self.waiting.get(&number).copied() else { return false };
        self.failures.insert(number, answer);
        waiting.tries += 1;
        let Some(seconds) = RETRY_AFTER_SECONDS.get(waiting.tries as usize - 1) else {
            self.remove(number);
            self.give_up(number);
            return true;
        };
        waiting.next_at = now.plus_ms(seconds * 1_000);
        self.insert(waiting);
        false
    }

    /// Notes that a try found no room for its body: it is made again at `until`, one at a time.
    pub(super) fn postpone(&mut self, number: u64, until: Timestamp) {
        self.under_way.remove(&number);
        self.at_once = 1;
        if let Some(waiting) = self.waiting.get(&number).copied() {
            self.insert(WaitingDelivery { next_at: until, ..waiting });
        }
    }

    fn end(&mut self, number: u64, answer: Answer) {
        self.under_way.remove(&number);
        self.last_answer = Some(answer);
        self.is_changed = true;
    }

    fn give_up(&mut self, number: u64) {
        self.given_up.push(number);
        if self.given_up.len() > GIVEN_UP_MAX {
            let forgotten = self.given_up.remove(0);
            self.failures.remove(&forgotten);
        }
    }

    /// Time of the next try, among the events that wait for their time only.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.turns.first().map(|(at, _)| *at)
    }

    /// Delivery of an event. Events that were given up long ago are forgotten, and show as
    /// delivered.
    pub(super) fn status(&self, number: u64) -> DeliveryStatus {
        let last_answer = self.failures.get(&number).copied();
        if let Some(waiting) = self.waiting.get(&number) {
            let next_at = self.may_be_tried(waiting).then_some(waiting.next_at);
            return DeliveryStatus::Pending { tries: waiting.tries, next_at, last_answer };
        }
        if number > self.through {
            DeliveryStatus::Pending { tries: 0, next_at: None, last_answer }
        } else if self.given_up.contains(&number) {
            DeliveryStatus::GivenUp { last_answer }
        } else if number < self.first {
            DeliveryStatus::NotSent
        } else {
            DeliveryStatus::Delivered
        }
    }

    /// When the oldest event that waits happened.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.waiting.values().next().map(|waiting| waiting.told_at)
    }

    /// Numbers of the events that wait, oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.waiting.keys().copied()
    }

    /// Numbers of the events that were given up, oldest first.
    pub(super) fn given_up(&self) -> &[u64] {
        &self.given_up
    }

    /// Its state for an operator; `None` if nothing waits and nothing was given up.
    pub(super) fn backlog(&self) -> Option<EndpointBacklog> {
        let is_one = !self.waiting.is_empty() || !self.given_up.is_empty();
        is_one.then(|| EndpointBacklog {
            waiting: self.waiting.len(),
            oldest_at: self.oldest(),
            given_up: self.given_up.len(),
            under_way: self.under_way.len(),
            last_answer: self.last_answer,
        })
    }
}

#[cfg(test)]
mod tests {
    use derived::outbox::Cause;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn with(subjects: &[u64]) -> Endpoint {
        let mut endpoint = Endpoint::new(Progress::default(), 1, u64::MAX);
        for (number, subject) in (1..).zip(subjects) {
            endpoint.add(number, *subject, NOW, NOW);
        }
        endpoint
    }

    fn took(endpoint: &mut Endpoint, number: u64) {
        endpoint.delivered(number, Answer { status: Some(204), cause: None, at: NOW, duration_ms: 100 });
    }

    fn refused(endpoint: &mut Endpoint, number: u64, now: Timestamp) -> bool {
        endpoint.failed(number, REFUSED, now)
    }

    const REFUSED: Answer = Answer { status: None, cause: Some(Cause::Refused), at: NOW, duration_ms: 1 };

    fn begun(endpoint: &mut Endpoint, now: Timestamp) -> Vec<u64> {
        std::iter::from_fn(|| endpoint.begin(now)).collect()
    }

    #[test]
    fn one_about_the_same_thing_waits_for_those_before_it() {
        let mut endpoint = with(&[7, 7, 8, 7, 9]);
        assert_eq!(begun(&mut endpoint, NOW), [1, 3, 5]);
        took(&mut endpoint, 3);
        took(&mut endpoint, 5);
        assert_eq!(begun(&mut endpoint, NOW), [0; 0], "2 and 4 wait for 1");
        assert!(!refused(&mut endpoint, 1, NOW));
        assert_eq!(begun(&mut endpoint, NOW), [0; 0], "also while 1 waits to be tried again");
        assert_eq!(begun(&mut endpoint, NOW.plus_ms(5_000)), [1]);
        took(&mut endpoint, 1);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        took(&mut endpoint, 2);
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
            if refused(&mut endpoint, 1, now) {
                break;
            }
            let next = endpoint.next_at().unwrap();
            assert_eq!(begun(&mut endpoint, Timestamp(next.0 - 1)), [0; 0]);
            now = next;
        }
        assert_eq!(tries, 10);
        assert_eq!((now.0 - NOW.0) / 1_000, RETRY_AFTER_SECONDS.iter().sum::<i64>());
        assert_eq!((now.0 - NOW.0) / 3_600_000, 75);
        assert_eq!(endpoint.status(1), DeliveryStatus::GivenUp { last_answer: Some(REFUSED) });
        assert_eq!(begun(&mut endpoint, now), [2]);
    }

    #[test]
    fn an_endpoint_that_answers_gets_twice_as_many_at_once_with_each_round() {
        let mut endpoint = with(&(1..=1_000).collect::<Vec<_>>());
        refused(&mut endpoint, 1, NOW);
        let mut rounds = Vec::new();
        let mut under_way = begun(&mut endpoint, NOW);
        while !under_way.is_empty() {
            rounds.push(under_way.len());
            let answered = std::mem::take(&mut under_way);
            for number in answered {
                took(&mut endpoint, number);
                under_way.extend(begun(&mut endpoint, NOW));
            }
        }
        assert_eq!(rounds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 488]);
        assert_eq!(rounds.iter().sum::<usize>(), 999);
    }

    #[test]
    fn one_that_fails_falls_back_to_one_at_a_time() {
        let mut endpoint = with(&(1..=100).collect::<Vec<_>>());
        assert_eq!(begun(&mut endpoint, NOW), [1, 2, 3, 4]);
        assert_eq!(endpoint.pool(), Pool::Answering);
        took(&mut endpoint, 1);
        assert_eq!(begun(&mut endpoint, NOW), [5, 6]);
        refused(&mut endpoint, 2, NOW);
        assert_eq!(endpoint.pool(), Pool::Troubled);
        for number in [3, 4, 5] {
            assert_eq!(begun(&mut endpoint, NOW), [0; 0]);
            refused(&mut endpoint, number, NOW);
        }
        assert_eq!(begun(&mut endpoint, NOW), [0; 0], "6 is under way");
        refused(&mut endpoint, 6, NOW);
        assert_eq!(begun(&mut endpoint, NOW), [7]);
        took(&mut endpoint, 7);
        assert_eq!(endpoint.pool(), Pool::Answering);
        assert_eq!(begun(&mut endpoint, NOW), [8, 9], "it answers again");
    }

    #[test]
    fn one_that_does_not_use_what_it_may_gets_no_more() {
        let mut endpoint = with(&[1]);
        for number in 1..100 {
            assert_eq!(begun(&mut endpoint, NOW), [number]);
            took(&mut endpoint, number);
            endpoint.add(number + 1, number + 1, NOW, NOW);
        }
        (101..200).for_each(|number| endpoint.add(number, number, NOW, NOW));
        assert_eq!(begun(&mut endpoint, NOW).len(), AT_ONCE_AT_FIRST);
    }

    #[test]
    fn one_that_is_slow_takes_no_slot_from_those_that_answer_soon() {
        let mut endpoint = with(&[1, 2]);
        for (number, duration_ms, pool) in [(1, SLOW_MS + 1, Pool::Troubled), (2, SLOW_MS, Pool::Answering)] {
            begun(&mut endpoint, NOW);
            endpoint.delivered(number, Answer { status: Some(200), cause: None, at: NOW, duration_ms });
            assert_eq!(endpoint.pool(), pool);
        }
    }

    #[test]
    fn one_without_room_comes_again_and_that_is_no_failure() {
        let mut endpoint = with(&[7, 7, 8]);
        assert_eq!(begun(&mut endpoint, NOW), [1, 3]);
        let later = NOW.plus_ms(1_000);
        endpoint.postpone(1, later);
        assert_eq!(endpoint.status(1), DeliveryStatus::Pending { tries: 0, next_at: Some(later), last_answer: None });
        took(&mut endpoint, 3);
        assert_eq!(begun(&mut endpoint, NOW), [0; 0]);
        assert_eq!(begun(&mut endpoint, later), [1]);
    }

    #[test]
    fn what_is_asked_for_again_is_tried_at_once() {
        let mut endpoint = with(&[7, 7, 7]);
        assert_eq!(begun(&mut endpoint, NOW), [1]);
        took(&mut endpoint, 1);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        refused(&mut endpoint, 2, NOW);
        endpoint.add_again(1, 7, NOW, NOW);
        assert_eq!(endpoint.status(1), DeliveryStatus::Pending { tries: 0, next_at: Some(NOW), last_answer: None });
        assert_eq!(begun(&mut endpoint, NOW), [1], "the second waits for its time, the third for the second");
        took(&mut endpoint, 1);
        endpoint.add_again(2, 7, NOW, NOW);
        assert_eq!(begun(&mut endpoint, NOW), [2]);
        endpoint.add_again(9, 7, NOW, NOW);
        assert_eq!(endpoint.wanted(), Some((4, TAKEN_AT_ONCE)), "one that was not taken yet comes anyway");
    }

    #[test]
    fn what_is_asked_for_again_waits_within_the_bound() {
        let mut endpoint = with(&(0..WAITING_MAX as u64).collect::<Vec<_>>());
        took(&mut endpoint, 1);
        took(&mut endpoint, 2);
        assert!(endpoint.add_again(1, 0, NOW, NOW));
        assert!(endpoint.add_again(1, 0, NOW, NOW), "it waits already");
        assert!(endpoint.add_again(WAITING_MAX as u64, 0, NOW, NOW), "and so does this one");
        endpoint.add(1_001, 1_001, NOW, NOW);
        assert!(!endpoint.add_again(2, 1, NOW, NOW), "a thousand wait");
        assert_eq!(endpoint.waiting_count(), WAITING_MAX);
        assert_eq!(endpoint.status(2), DeliveryStatus::Delivered);
    }

    #[test]
    fn why_an_event_failed_is_known_until_it_is_delivered_or_forgotten() {
        let mut endpoint = with(&[7, 8]);
        begun(&mut endpoint, NOW);
        refused(&mut endpoint, 2, NOW);
        let next_at = Some(NOW.plus_ms(5_000));
        let waits = DeliveryStatus::Pending { tries: 1, next_at, last_answer: Some(REFUSED) };
        let mut endpoint = Endpoint::new(endpoint.progress(), 1, 2);
        assert_eq!(endpoint.status(2), waits, "also after a restart");
        assert_eq!(endpoint.backlog().unwrap().last_answer, Some(REFUSED));
        assert_eq!(endpoint.status(1), DeliveryStatus::Pending { tries: 0, next_at: Some(NOW), last_answer: None });
        took(&mut endpoint, 1);
        took(&mut endpoint, 2);
        assert_eq!((endpoint.backlog(), endpoint.progress().last_answers), (None, Vec::new()));
    }

    #[test]
    fn events_that_failed_are_tried_now_where_an_operator_says_so() {
        let mut endpoint = with(&[7, 8, 7]);
        begun(&mut endpoint, NOW);
        refused(&mut endpoint, 1, NOW);
        refused(&mut endpoint, 2, NOW);
        assert!(begun(&mut endpoint, NOW).is_empty(), "they wait for their time");
        assert_eq!(endpoint.hasten(NOW), 2, "the third waits for the first, not for a time");
        assert_eq!(begun(&mut endpoint, NOW), [1], "one at a time");
        took(&mut endpoint, 1);
        assert!(matches!(endpoint.status(2), DeliveryStatus::Pending { tries: 0, next_at: Some(NOW), .. }));
        refused(&mut endpoint, 2, NOW);
        let again = NOW.plus_ms(RETRY_AFTER_SECONDS[0] * 1_000);
        assert!(
            matches!(endpoint.status(2), DeliveryStatus::Pending { tries: 1, next_at: Some(at), .. } if at == again)
        );
        assert_eq!(endpoint.hasten(again), 0);
    }

    #[test]
    fn the_last_answer_after_a_restart_is_that_of_the_newest_stored_try() {
        let mut endpoint = with(&[7, 8]);
        begun(&mut endpoint, NOW);
        refused(&mut endpoint, 1, NOW);
        let at = REFUSED.at.plus_ms(1);
        let accepted = Answer { status: Some(204), cause: None, at, duration_ms: 1 };
        for (answer, newest) in [(REFUSED, REFUSED), (accepted, accepted), (REFUSED, accepted)] {
            endpoint.note(DeliveryTry { number: 2, answer, response: Box::default() });
            let mut again = Endpoint::new(endpoint.progress(), 1, 2);
            again.restore(endpoint.try_log().clone());
            assert_eq!(again.backlog().unwrap().last_answer, Some(newest));
        }
    }

    #[test]
    fn of_what_was_given_up_the_last_thousand_are_remembered() {
        let mut endpoint = Endpoint::new(Progress::default(), 1, u64::MAX);
        for number in 1..=GIVEN_UP_MAX as u64 + 1 {
            endpoint.add(number, number, NOW, NOW);
            while !refused(&mut endpoint, number, NOW) {}
        }
        let progress = endpoint.progress();
        assert_eq!((progress.given_up.len(), progress.last_answers.len()), (GIVEN_UP_MAX, GIVEN_UP_MAX));
        assert_eq!(endpoint.status(1), DeliveryStatus::Delivered);
        assert_eq!(endpoint.status(2), DeliveryStatus::GivenUp { last_answer: Some(REFUSED) });
    }

    #[test]
    fn what_was_kept_of_a_longer_journal_is_dropped() {
        let mut endpoint = with(&[1, 2, 3]);
        refused(&mut endpoint, 1, NOW);
        let progress = endpoint.progress();
        let mut endpoint = Endpoint::new(progress, 1, 2);
        assert_eq!(endpoint.wanted(), Some((3, TAKEN_AT_ONCE)));
        assert_eq!(endpoint.progress().waiting.iter().map(|waiting| waiting.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(endpoint.status(3), DeliveryStatus::Pending { tries: 0, next_at: None, last_answer: None });
    }

    #[test]
    fn those_that_are_passed_over_end_the_round_and_the_next_goes_on() {
        let mut endpoint = with(&[7]);
        let (mut rounds, mut passed) = (0, 1);
        while rounds < 3 {
            while let Some((next, most)) = endpoint.wanted() {
                assert!(passed <= PASSED_MAX as u64 * 4, "a round has an end");
                (next..next + most as u64).for_each(|number| endpoint.pass(number));
                passed = next + most as u64 - 1;
            }
            assert!(endpoint.end_round());
            rounds += 1;
        }
        assert_eq!(endpoint.wanted(), Some((passed + 1, TAKEN_AT_ONCE)), "with as much room as before");
        assert_eq!(passed, 1 + 3 * PASSED_MAX.next_multiple_of(TAKEN_AT_ONCE) as u64);
        endpoint.pass(passed + 1);
        endpoint.has_all();
        assert_eq!((endpoint.wanted(), endpoint.end_round()), (None, false));
    }

    #[test]
    fn the_journal_waits_while_a_thousand_wait() {
        let mut endpoint = with(&(0..WAITING_MAX as u64).collect::<Vec<_>>());
        assert_eq!(endpoint.wanted(), None);
        for number in 1..TAKEN_AT_ONCE as u64 {
            took(&mut endpoint, number);
            assert_eq!(endpoint.wanted(), None);
        }
        took(&mut endpoint, TAKEN_AT_ONCE as u64);
        assert_eq!(endpoint.wanted(), Some((1_001, TAKEN_AT_ONCE)));
        (1_001..1_064).for_each(|number| endpoint.add(number, number, NOW, NOW));
        assert_eq!(endpoint.wanted(), Some((1_064, 1)), "to the brim");
        endpoint.has_all();
        assert_eq!(endpoint.wanted(), None);
        endpoint.has_events();
        assert_eq!(endpoint.wanted(), Some((1_064, 1)), "news is taken while there is room");
    }
}
