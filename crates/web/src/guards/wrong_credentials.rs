//! Throttling of wrong credentials, by address, and their line in the log.
//!
//! The first wrong credentials of an address are answered at once, the next ones slowly, and then
//! they are refused as too many requests. A right credential always passes, since many callers may
//! share an address. Each wrong credential is counted in the metrics, and the log has at most one
//! line a second about them. Neither holds the credential.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actors::metrics::add;
use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, HeaderMap};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::server::Peer;
use crate::{Code, Problem};

/// Wrong credentials that are answered at once, from one address in a minute.
const AT_ONCE_MAX: u64 = 20;
/// Wrong credentials that are answered at all, from one address in a minute.
const ANSWERED_MAX: u64 = 100;
/// How long the others of these wait for their answer.
const SLOWED_BY: Duration = Duration::from_millis(500);
/// A wrong credential is forgotten after this long.
const FORGOTTEN_AFTER_MS: u64 = 60_000 / ANSWERED_MAX;
/// Number of counters of addresses; two addresses that share one are counted together.
const PLACES: usize = 16_384;
/// How often the log has a line.
const LOGGED_EVERY_MS: u64 = 1_000;

/// Which credentials are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// An API key.
    ApiKey,
    /// An operator's token.
    OperatorToken,
}

impl CredentialKind {
    fn listener(self) -> &'static str {
        match self {
            Self::ApiKey => "merchants",
            Self::OperatorToken => "operators",
        }
    }
}

/// How a wrong credential is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongCredentialAnswer {
    /// 401 at once.
    AtOnce,
    /// 401 after a while.
    Slowly,
    /// 429; the next one is answered after this number of seconds.
    Refused(u32),
}

/// Counters of wrong credentials, by address. Their memory is fixed: 128 KiB.
pub struct WrongCredentials {
    is_limited: bool,
    origin: Instant,
    hasher: RandomState,
    /// Until when, milliseconds, what came from the addresses of a place is remembered.
    places: Box<[AtomicU64]>,
    counts: Family<[(&'static str, &'static str); 1], Counter>,
    logged_ms: AtomicU64,
    unlogged: AtomicU64,
}

impl WrongCredentials {
    /// Nobody has guessed yet. Without a limit, wrong credentials are only counted and logged.
    /// A registry gets the count.
    pub fn new(is_limited: bool, registry: &mut Registry) -> Self {
        let (to, help) = (registry.sub_registry_with_prefix("centavo"), "Requests without a credential that opens");
        Self {
            is_limited,
            origin: Instant::now(),
            hasher: RandomState::new(),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            counts: add(to, "http_unauthorized", help, Family::default()),
            logged_ms: AtomicU64::new(0),
            unlogged: AtomicU64::new(0),
        }
    }

    /// Notes a request whose credential is missing or wrong, and says how it is answered. `key` is
    /// what may be said of the API key: the beginning of its id. A missing credential is no guess.
    pub fn note(
        &self,
        kind: CredentialKind,
        headers: &HeaderMap,
        extensions: &Extensions,
        key: Option<&str>,
    ) -> WrongCredentialAnswer {
        let peer = extensions.get::<Peer>();
        self.counts.get_or_create(&[("listener", kind.listener())]).inc();
        let now_ms = self.origin.elapsed().as_millis() as u64;
        if let Some(requests) = self.line(now_ms) {
            let address = peer.map(|Peer(address)| tracing::field::display(address));
            let listener = kind.listener();
            tracing::warn!(address, listener, key, requests, "credentials are missing or wrong");
        }
        let is_given = headers.contains_key(AUTHORIZATION) || headers.contains_key("token");
        match peer {
            Some(peer) if self.is_limited && is_given => self.count(*peer, now_ms),
            _ => WrongCredentialAnswer::AtOnce,
        }
    }

    /// How many requests a line of the log stands for, if it is time for one.
    fn line(&self, now_ms: u64) -> Option<u64> {
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        let logged = self.logged_ms.load(Ordering::Relaxed);
        let is_time = logged == 0 || now_ms >= logged + LOGGED_EVERY_MS;
        let is_ours =
            || self.logged_ms.compare_exchange(logged, now_ms.max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_time && is_ours()).then(|| self.unlogged.swap(0, Ordering::Relaxed))
    }

    /// Counts one more from an address, unless it is refused: who waits is always answered again.
    fn count(&self, peer: Peer, now_ms: u64) -> WrongCredentialAnswer {
        let place = &self.places[self.hasher.hash_one(peer) as usize % PLACES];
        let remembered = |until: u64| until.saturating_sub(now_ms).div_ceil(FORGOTTEN_AFTER_MS);
        let counted = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            (remembered(until) < ANSWERED_MAX).then(|| until.max(now_ms) + FORGOTTEN_AFTER_MS)
        });
        match counted {
            Ok(until) if remembered(until) < AT_ONCE_MAX => WrongCredentialAnswer::AtOnce,
            Ok(_) => WrongCredentialAnswer::Slowly,
            Err(until) => {
                let wait_ms = until.saturating_sub(now_ms + (ANSWERED_MAX - 1) * FORGOTTEN_AFTER_MS);
                WrongCredentialAnswer::Refused(u32::try_from(wait_ms.div_ceil(1_000)).unwrap_or(u32::MAX).max(1))
            }
        }
    }
}

impl WrongCredentialAnswer {
    /// The answer, when it is time for it.
    pub async fn problem(self, unauthorized: Problem) -> Problem {
        match self {
            Self::AtOnce => unauthorized,
            Self::Slowly => {
                tokio::time::sleep(SLOWED_BY).await;
                unauthorized
            }
            Self::Refused(seconds) => {
                let detail = "Too many wrong credentials came from this address.";
                Problem::new(Code::RateLimited).detail(detail).retry_after(seconds)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::from(IpAddr::from([203, 0, 113, last]))
    }

    #[test]
    fn an_address_is_slowed_down_then_refused_and_answered_again() {
        let wrong_credentials = WrongCredentials::new(true, &mut Registry::default());
        let answers: Vec<_> = (0..150).map(|_| wrong_credentials.count(peer(1), 5_000)).collect();
        let count = |answered| answers.iter().filter(|answer| **answer == answered).count();
        assert_eq!(
            [
                count(WrongCredentialAnswer::AtOnce),
                count(WrongCredentialAnswer::Slowly),
                count(WrongCredentialAnswer::Refused(1))
            ],
            [20, 80, 50]
        );
        assert!(answers.is_sorted_by_key(|answer| match answer {
            WrongCredentialAnswer::AtOnce => 0,
            WrongCredentialAnswer::Slowly => 1,
            WrongCredentialAnswer::Refused(_) => 2,
        }));
        // When, and how one more is answered then.
        let cases = [
            (5_599, WrongCredentialAnswer::Refused(1)),
            (5_600, WrongCredentialAnswer::Slowly),
            (5_601, WrongCredentialAnswer::Refused(1)),
            (52_000, WrongCredentialAnswer::Slowly),
            (56_000, WrongCredentialAnswer::AtOnce),
            (1_000_000, WrongCredentialAnswer::AtOnce),
        ];
        for (now_ms, answered) in cases {
            assert_eq!(wrong_credentials.count(peer(1), now_ms), answered, "at {now_ms}");
        }
    }

    #[test]
    fn addresses_are_counted_apart_in_memory_that_does_not_grow() {
        let wrong_credentials = WrongCredentials::new(true, &mut Registry::default());
        let others = (2..=255).map(peer);
        let apart = others.filter(|other| {
            let place = |peer: Peer| wrong_credentials.hasher.hash_one(peer) as usize % PLACES;
            place(*other) != place(peer(1))
        });
        let apart: Vec<_> = apart.collect();
        (0..200).for_each(|_| {
            wrong_credentials.count(peer(1), 0);
        });
        assert!(apart.iter().all(|other| wrong_credentials.count(*other, 0) == WrongCredentialAnswer::AtOnce));
        assert_eq!(wrong_credentials.places.len(), PLACES);
    }

    #[test]
    fn the_log_has_a_line_a_second_that_says_how_many() {
        let wrong_credentials = WrongCredentials::new(true, &mut Registry::default());
        let lines: Vec<_> = [0, 1, 2, 999, 1_001, 1_002, 5_000].map(|now_ms| wrong_credentials.line(now_ms)).into();
        assert_eq!(lines, [Some(1), None, None, None, Some(4), None, Some(2)]);
    }

    #[test]
    fn what_is_no_guess_is_only_counted() {
        let (headers, mut extensions) = (HeaderMap::new(), Extensions::new());
        extensions.insert(peer(1));
        let mut guessed = HeaderMap::new();
        guessed.insert("token", "test_x".parse().unwrap());
        for (is_limited, headers, last) in [
            (true, &headers, WrongCredentialAnswer::AtOnce),
            (false, &guessed, WrongCredentialAnswer::AtOnce),
            (true, &guessed, WrongCredentialAnswer::Slowly),
        ] {
            let wrong_credentials = WrongCredentials::new(is_limited, &mut Registry::default());
            let noted = || wrong_credentials.note(CredentialKind::ApiKey, headers, &extensions, None);
            assert_eq!((0..50).fold(None, |_, _| Some(noted())), Some(last));
            let counted = wrong_credentials.counts.get_or_create(&[("listener", "merchants")]).get();
            assert_eq!(counted, 50);
        }
    }
}
