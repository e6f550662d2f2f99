//! Rate limits (interface 7, 8): requests of an API key, and refused tries of a card, within a
//! minute.
//!
//! The window is a sliding minute with an exact count: a request passes when fewer than the limit
//! passed in the 60 seconds before it. Refused requests are not counted, so a caller that waits a
//! minute always passes. It is written by hand because the crates of the field keep token buckets,
//! which let up to twice the limit pass within one minute.
//!
//! A try counts against a card when the acquirer refuses it. Tries of one card that are under way
//! at once all pass. A card is identified by a keyed digest of its number, a stored card by its
//! token. An API key also has a limit of refused cards, so that it cannot try stolen cards one
//! after the other. The first charge of a subscription is a try; later charges by the schedule are
//! not. Time is wall time, whatever the sandbox clock says.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ledger::{Fingerprint, GroupNumber, ObjectId, Settings};
use parking_lot::Mutex;

use crate::problem::{Code, Problem};

const WINDOW: Duration = Duration::from_secs(60);
/// Refused tries of one card in a window.
const REFUSED_CARDS_MAX: usize = 10;
/// Refused tries of one API key in a window, of whatever cards.
const REFUSED_OF_ACCOUNT_MAX: usize = 60;
/// Keys that are held at least before those without a request in the window are dropped.
const KEYS_MIN: usize = 1_024;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Which limit a route is under; each is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Policy {
    /// Card charges.
    Card,
    /// Everything else.
    Default,
}

impl Policy {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// Requests of one API key in a minute, as the operator sets them for all merchants or for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitSettings {
    /// Card charges.
    pub card: NonZeroU32,
    /// Other requests.
    pub other: NonZeroU32,
}

impl Default for RateLimitSettings {
    /// The numbers of the contract: 120 and 600.
    fn default() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self { card: number(120), other: number(600) }
    }
}

impl RateLimitSettings {
    /// The numbers of an account: its own where it has some, these otherwise.
    pub fn for_account(self, account: &Settings) -> Self {
        Self {
            card: account.card_requests_per_minute.unwrap_or(self.card),
            other: account.other_requests_per_minute.unwrap_or(self.other),
        }
    }

    fn of(self, policy: Policy) -> usize {
        let limit = match policy {
            Policy::Card => self.card,
            Policy::Default => self.other,
        };
        limit.get() as usize
    }
}

/// Requests that passed within the last minute, which bounds the memory: 8 bytes a request; idle
/// keys are dropped.
pub struct RateLimits {
    origin: Instant,
    settings: RateLimitSettings,
    requests: Mutex<Windows<(Policy, ObjectId)>>,
    refused: Mutex<RefusedCards>,
}

/// The refused tries of cards within the last minute.
#[derive(Default)]
struct RefusedCards {
    of_cards: Windows<Fingerprint>,
    of_accounts: Windows<GroupNumber>,
    /// First charges of subscriptions, by account. The schedule makes them, so that their outcome
    /// is not known when they are asked for: each is counted as refused until it was paid.
    under_way: HashMap<GroupNumber, Vec<FirstCharge>>,
}

struct FirstCharge {
    subscription: ObjectId,
    card: Fingerprint,
    at_ms: u64,
}

impl RateLimits {
    /// Counts nothing yet.
    pub fn new(settings: RateLimitSettings) -> Self {
        Self { origin: Instant::now(), settings, requests: Mutex::default(), refused: Mutex::default() }
    }

    /// Refuses a card that was refused too often, and an account that had too many cards refused,
    /// whichever of its keys asked; asked before the acquirer is called. `was_paid` says how the
    /// first charge of a subscription ended; none while that is not known.
    pub fn admit_card(
        &self,
        card: Fingerprint,
        account: GroupNumber,
        was_paid: impl Fn(ObjectId) -> Option<bool>,
    ) -> Result<(), Problem> {
        let now_ms = self.now_ms();
        let under_way = self.refused.lock().under_way(account, now_ms);
        // Outside of the lock: to see how they ended takes a look into the journal.
        let ended = under_way.into_iter().filter_map(|id| was_paid(id).map(|was_paid| (id, was_paid)));
        let ended: HashMap<ObjectId, bool> = ended.collect();
        let mut refused = self.refused.lock();
        refused.settle(account, &ended);
        let of_card = refused.of_cards.standing(card, REFUSED_CARDS_MAX, now_ms);
        let of_account = refused.of_accounts.standing(account, REFUSED_OF_ACCOUNT_MAX, now_ms);
        let exhausted = [of_card, of_account].into_iter().find(|standing| standing.remaining == 0);
        exhausted.map_or(Ok(()), |standing| Err(standing.refusal()))
    }

    /// Counts a card that the acquirer refused.
    pub fn count_refused_card(&self, card: Fingerprint, account: GroupNumber) {
        self.refused.lock().count(card, account, self.now_ms());
    }

    /// Counts the first charge of a subscription, which the schedule is about to make.
    pub fn count_first_charge(&self, subscription: ObjectId, card: Fingerprint, account: GroupNumber) {
        let mut refused = self.refused.lock();
        let at_ms = self.now_ms();
        refused.count(card, account, at_ms);
        refused.under_way.entry(account).or_default().push(FirstCharge { subscription, card, at_ms });
    }

    /// The numbers of all accounts that have no own.
    pub fn settings(&self) -> RateLimitSettings {
        self.settings
    }

    /// Counts a request of an API key if it is within the limit; says whether it is, and how the
    /// key stands then. `account` are the settings of the key's account.
    pub fn admit(&self, policy: Policy, key: ObjectId, account: &Settings) -> (bool, RateStanding) {
        let limit = self.settings.for_account(account).of(policy);
        self.requests.lock().admit((policy, key), limit, self.now_ms())
    }

    fn now_ms(&self) -> u64 {
        self.origin.elapsed().as_millis() as u64
    }
}

impl RefusedCards {
    fn count(&mut self, card: Fingerprint, account: GroupNumber, now_ms: u64) {
        self.of_cards.count(card, now_ms);
        self.of_accounts.count(account, now_ms);
    }

    /// First charges of an account without a known outcome. Those of more than a minute ago are
    /// forgotten, of every account: few have any.
    fn under_way(&mut self, account: GroupNumber, now_ms: u64) -> Vec<ObjectId> {
        self.under_way.retain(|_, charges| {
            charges.retain(|charge| !is_past(charge.at_ms, now_ms));
            !charges.is_empty()
        });
        let charges = self.under_way.get(&account).into_iter().flatten();
        charges.map(|charge| charge.subscription).collect()
    }

    /// Takes paid first charges out of the count, and forgets those that have ended.
    fn settle(&mut self, account: GroupNumber, ended: &HashMap<ObjectId, bool>) {
        let Some(charges) = self.under_way.get_mut(&account) else { return };
        charges.retain(|charge| {
            let was_paid = ended.get(&charge.subscription);
            if was_paid == Some(&true) {
                self.of_cards.take_back(charge.card, charge.at_ms);
                self.of_accounts.take_back(account, charge.at_ms);
            }
            was_paid.is_none()
        });
    }
}

/// How a key stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStanding {
    /// How many requests are let through in a window.
    limit: usize,
    /// How many of them are left.
    remaining: usize,
    /// Until there is one more again, milliseconds; the whole window when none was let through.
    more_in_ms: u64,
}

impl RateStanding {
    fn more_in_seconds(self) -> u64 {
        self.more_in_ms.div_ceil(1_000)
    }

    /// The problem of a key that has nothing left.
    pub fn refusal(self) -> Problem {
        let seconds = self.more_in_seconds();
        let detail = format!("Try again in {seconds} seconds.");
        Problem::new(Code::RateLimited).detail(detail).retry_after(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// The headers of the IETF's draft (draft-ietf-httpapi-ratelimit-headers).
    pub fn add_to(self, policy: Policy, headers: &mut HeaderMap) {
        let name = policy.name();
        let policy = format!("\"{name}\";q={};w={}", self.limit, WINDOW.as_secs());
        let standing = format!("\"{name}\";r={};t={}", self.remaining, self.more_in_seconds());
        for (header, value) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, standing)] {
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (header, value)));
        }
    }
}

/// When what was counted happened, milliseconds, key by key.
struct Windows<K> {
    by_key: HashMap<K, VecDeque<u64>>,
    /// Idle keys are dropped at this number of keys.
    dropped_at: usize,
}

impl<K> Default for Windows<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), dropped_at: KEYS_MIN }
    }
}

impl<K: Copy + Eq + Hash> Windows<K> {
    /// Counts what the limit lets through; says whether it does, and how the key stands then.
    fn admit(&mut self, key: K, limit: usize, now_ms: u64) -> (bool, RateStanding) {
        let is_admitted = self.standing(key, limit, now_ms).remaining > 0;
        if is_admitted {
            self.count(key, now_ms);
        }
        (is_admitted, self.standing(key, limit, now_ms))
    }

    fn standing(&mut self, key: K, limit: usize, now_ms: u64) -> RateStanding {
        let counted = self.by_key.get_mut(&key);
        if let Some(counted) = counted {
            let past = counted.partition_point(|at| is_past(*at, now_ms));
            counted.drain(..past);
            let more_in_ms = counted.front().map_or(WINDOW_MS, |oldest| oldest + WINDOW_MS - now_ms);
            return RateStanding { limit, remaining: limit.saturating_sub(counted.len()), more_in_ms };
        }
        RateStanding { limit, remaining: limit, more_in_ms: WINDOW_MS }
    }

    /// Undoes a count of that time.
    fn take_back(&mut self, key: K, at_ms: u64) {
        let Some(counted) = self.by_key.get_mut(&key) else { return };
        if let Ok(place) = counted.binary_search(&at_ms) {
            counted.remove(place);
        }
    }

    fn count(&mut self, key: K, now_ms: u64) {
        if self.by_key.len() >= self.dropped_at {
            self.by_key.retain(|_, counted| counted.back().is_some_and(|newest| !is_past(*newest, now_ms)));
            self.dropped_at = KEYS_MIN.max(2 * self.by_key.len());
        }
        self.by_key.entry(key).or_default().push_back(now_ms);
    }
}

const WINDOW_MS: u64 = WINDOW.as_millis() as u64;

fn is_past(at_ms: u64, now_ms: u64) -> bool {
    at_ms + WINDOW_MS <= now_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_counted_exactly_and_refusals_do_not_lengthen_it() {
        let mut windows = Windows::default();
        // When, whether it is let through, what is left, and in how many milliseconds there is one
        // more.
        let cases = [
            (0, true, 2, 60_000),
            (1_000, true, 1, 59_000),
            (59_000, true, 0, 1_000),
            (59_001, false, 0, 999),
            (59_999, false, 0, 1),
            (60_000, true, 0, 1_000),
            (60_999, false, 0, 1),
            (61_000, true, 0, 58_000),
            (118_999, false, 0, 1),
            (119_000, true, 0, 1_000),
            (300_000, true, 2, 60_000),
        ];
        for (now_ms, is_admitted, remaining, more_in_ms) in cases {
            let standing = RateStanding { limit: 3, remaining, more_in_ms };
            assert_eq!(windows.admit("a", 3, now_ms), (is_admitted, standing), "at {now_ms}");
        }
        assert_eq!(windows.admit("b", 3, 300_000).1.remaining, 2, "keys are counted apart");
    }

    #[test]
    fn waiting_is_told_in_whole_seconds_that_suffice() {
        for (more_in_ms, seconds) in [(60_000, 60), (59_001, 60), (1_000, 1), (999, 1), (1, 1)] {
            assert_eq!(RateStanding { limit: 1, remaining: 0, more_in_ms }.more_in_seconds(), seconds, "{more_in_ms}");
        }
    }

    #[test]
    fn only_refused_cards_count_and_only_for_a_minute() {
        let mut cards = Windows::default();
        let card = Fingerprint([7; 16]);
        for now_ms in 0..10 {
            assert_ne!(cards.standing(card, REFUSED_CARDS_MAX, now_ms).remaining, 0);
            cards.count(card, now_ms);
        }
        assert_eq!(cards.standing(card, REFUSED_CARDS_MAX, 59_999).remaining, 0);
        assert_eq!(cards.standing(card, REFUSED_CARDS_MAX, 60_000).remaining, 1);
        assert_eq!(cards.standing(Fingerprint([8; 16]), REFUSED_CARDS_MAX, 10).remaining, 10);
    }

    #[test]
    fn a_first_charge_counts_as_refused_until_it_was_paid() {
        let limits = RateLimits::new(RateLimitSettings::default());
        let (card, account) = (Fingerprint([7; 16]), GroupNumber(1));
        for subscription in (0..10).map(ObjectId) {
            limits.admit_card(card, account, |_| None).unwrap();
            limits.count_first_charge(subscription, card, account);
        }
        assert!(limits.admit_card(card, account, |_| None).is_err(), "none of them has an outcome");
        assert!(limits.admit_card(card, account, |one| (one == ObjectId(3)).then_some(true)).is_ok(), "one was paid");
        limits.count_refused_card(card, account);
        assert!(limits.admit_card(card, account, |_| Some(false)).is_err(), "nine were refused, and one beside them");
        assert!(limits.admit_card(card, account, |_| Some(true)).is_err(), "what was refused is not asked about again");
        let other = Fingerprint([8; 16]);
        assert!(
            limits.admit_card(other, account, |_| None).is_ok()
                && limits.admit_card(card, GroupNumber(2), |_| None).is_err()
        );
        for number in 0..50 {
            limits.count_refused_card(Fingerprint([100 + number; 16]), account);
        }
        assert!(limits.admit_card(other, account, |_| None).is_err(), "sixty of this account, whatever the card");
        assert!(limits.admit_card(other, GroupNumber(2), |_| None).is_ok(), "accounts are counted apart");
    }

    #[test]
    fn keys_that_fell_silent_are_dropped() {
        let mut windows = Windows::default();
        for minute in 0..100_u64 {
            for key in 0..KEYS_MIN as u64 {
                windows.count((minute, key), minute * WINDOW_MS + key);
            }
        }
        assert!(windows.by_key.len() <= 2 * KEYS_MIN, "{} keys are held", windows.by_key.len());
    }
}
