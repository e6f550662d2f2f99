//! Points in time. The ledger reads no clock: `now` is always an argument.

use minicbor::{Decode, Encode};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] pub i64);

impl Timestamp {
    /// This point moved by `milliseconds`.
    pub fn plus_ms(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// This point moved by whole days of 24 hours.
    pub fn plus_days(self, days: u16) -> Self {
        self.plus_ms(i64::from(days) * 24 * 60 * 60 * 1000)
    }

    /// The minute that this point lies in.
    pub fn minute(self) -> Minute {
        Minute(u32::try_from(self.0.div_euclid(60_000)).unwrap_or(if self.0 < 0 { 0 } else { u32::MAX }))
    }
}

/// A whole minute since 1970-01-01T00:00Z. Money falls due by the minute: capture + days × 24 h,
/// rounded down.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Minute(#[n(0)] pub u32);

impl Minute {
    /// The instant at which the minute begins: what falls due in it is due from here on.
    pub fn start(self) -> Timestamp {
        Timestamp(i64::from(self.0) * 60_000)
    }

    /// True when the minute has begun at `now`.
    pub fn is_due(self, now: Timestamp) -> bool {
        self.start() <= now
    }
}
