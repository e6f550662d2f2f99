//! Capabilities of a bridge: the rails that it serves, and its promises about repeats of an order.

use std::time::{Duration, Instant};

use ledger::id::SHORT_ID_LEN;
use ledger::time::Timestamp;
use parking_lot::RwLock;
use serde::Deserialize;

use super::settings::RailKind;
use crate::shared_settings::Repeats;

/// How long an answer counts.
const FRESH_FOR: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest patience with an answer.
const PATIENCE: [u64; 2] = [1_000, 60_000];

/// Answer of `GET /capabilities`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Capabilities {
    /// True where no money moves.
    pub(super) test: bool,
    /// The rails that it is: `card`, `pix`, `payout`.
    pub(super) serves: Vec<String>,
    /// What a repeat does.
    pub(super) repeats: Repeats,
    /// For how long after an order `repeats` is promised of its id, seconds.
    pub(super) remembers_s: u64,
    /// How long after an order `not_found` proves nothing, seconds.
    pub(super) horizon_s: u64,
    /// Whether the end of a card or PIX charge can be ordered.
    pub(super) closes: bool,
    /// How long an answer may take, milliseconds.
    pub(super) answers_within_ms: u64,
    /// Whether the changes have the cases of payers' banks; false in a bridge that does not say.
    #[serde(default)]
    pub(super) disputes: bool,
    /// Whether a stored card can be deleted; false in a bridge that does not say.
    #[serde(default)]
    pub(super) deletes_tokens: bool,
    /// Characters that an id of a transfer has at the institution, at most; none in a bridge that
    /// does not say.
    pub(super) id_length: Option<usize>,
}

impl Capabilities {
    /// Whether the bridge is a rail of this kind.
    pub(super) fn has(&self, kind: RailKind) -> bool {
        self.serves.iter().any(|served| served == kind.name())
    }

    /// Whether an order that was first sent at `first` may be sent again at `now`.
    pub(super) fn may_repeat(&self, first: Timestamp, now: Timestamp) -> bool {
        let age_ms = u64::try_from(now.0.saturating_sub(first.0)).unwrap_or_default();
        self.repeats != Repeats::Again && age_ms < self.remembers_s.saturating_mul(1_000)
    }

    /// Error: the institution keeps less than a short id has.
    pub(super) fn checked(self) -> Result<Self, String> {
        match self.id_length {
            Some(length) if length < SHORT_ID_LEN => Err("id_length is below 20".to_owned()),
            _ => Ok(self),
        }
    }

    /// How long an answer may take that is no surprise.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.answers_within_ms.clamp(PATIENCE[0], PATIENCE[1]))
    }

    pub(super) fn horizon(&self) -> Duration {
        Duration::from_secs(self.horizon_s)
    }
}

/// The last answer.
#[derive(Default)]
pub(super) struct KnownCapabilities(RwLock<Option<(Instant, Capabilities)>>);

impl KnownCapabilities {
    /// The last answer, however old; none before the first one.
    pub(super) fn last(&self) -> Option<Capabilities> {
        self.0.read().as_ref().map(|(_, known)| known.clone())
    }

    /// An answer that still counts.
    pub(super) fn fresh(&self) -> Option<Capabilities> {
        let known = self.0.read();
        known.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR).map(|(_, known)| known.clone())
    }

    pub(super) fn note(&self, answered: Capabilities) {
        *self.0.write() = Some((Instant::now(), answered));
    }
}
