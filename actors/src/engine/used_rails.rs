//! Memory, beside the journal, of the rails that new orders went to: a rail is still needed for a
//! while after its last day.

use ledger::{RailName, Timestamp};

use super::{Engine, Result};
use crate::rails::NamedRails;

/// How long after its last day as the rail of new orders a rail is still needed, days. Cards: until
/// the last installment is settled and no chargeback can come. Transfers: until none can come back.
/// PIX: the longest life of a code, and the time in which a payment can be sent back.
const NEEDED_DAYS: [(Kind, u16); 3] = [(Kind::Card, CARDS_NEEDED_DAYS), (Kind::Payout, 120), (Kind::Pix, 120)];
/// The same of an acquirer.
const CARDS_NEEDED_DAYS: u16 = 550;

/// Kinds of rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Card,
    Payout,
    Pix,
}

impl Kind {
    /// The beginning of the names under which the store keeps when a rail was last that of new
    /// orders, milliseconds.
    fn prefix(self) -> &'static str {
        match self {
            Self::Card => "card-used/",
            Self::Payout => "payout-used/",
            Self::Pix => "pix-used/",
        }
    }
}

/// When a rail was last that of new orders, and its host, where it was noted.
fn used_at(stored: &[u8]) -> (Timestamp, Option<&str>) {
    let (at, host) = stored.split_first_chunk().map_or((0, &[][..]), |(at, host)| (i64::from_be_bytes(*at), host));
    (Timestamp(at), std::str::from_utf8(host).ok().filter(|host| !host.is_empty()))
}

impl Engine {
    /// The rails that orders of the last months name, and that are not among those of their kind.
    /// Where none is missing, notes that the rails of new orders are in use from now on: a refused
    /// start leaves no trace.
    pub fn missing_rails(&self) -> Result<Vec<RailName>> {
        let now = self.now();
        let mut missing = Vec::new();
        for (kind, days) in NEEDED_DAYS {
            for (name, used_at) in self.used_rails(kind)? {
                let is_needed = used_at.plus_days(days) > now;
                if is_needed && !self.has_rail(kind, &name) && !missing.contains(&name) {
                    missing.push(name);
                }
            }
        }
        if missing.is_empty() {
            self.note_rails_used(now)?;
        }
        Ok(missing)
    }

    /// The acquirer whose keys hold at one host, and whose host is another one than that of the
    /// charges of the last months; with that host.
    pub fn moved_acquirer(&self) -> Result<Option<(RailName, String)>> {
        for (name, rail) in self.rails.card.named_ones() {
            let used = self.side_value(&format!("{}{name}", Kind::Card.prefix()))?.unwrap_or_default();
            let (used_at, host) = used_at(&used);
            let is_needed = used_at.plus_days(CARDS_NEEDED_DAYS) > self.now();
            if is_needed && host.is_some() && host != rail.keys_hold_at() {
                return Ok(host.map(|host| (name.clone(), host.to_owned())));
            }
        }
        Ok(None)
    }

    /// Notes that the rails of new orders are in use, and the host of an acquirer whose keys hold
    /// there alone.
    pub(super) fn note_rails_used(&self, now: Timestamp) -> Result<()> {
        for (kind, _) in NEEDED_DAYS {
            if let Some(current) = self.current_rail(kind) {
                let host = self.rails.card.get(Some(current)).and_then(|rail| rail.keys_hold_at());
                let host = host.filter(|_| kind == Kind::Card).unwrap_or_default();
                let used = [&now.0.to_be_bytes(), host.as_bytes()].concat();
                self.keep(&format!("{}{current}", kind.prefix()), &used)?;
            }
        }
        Ok(())
    }

    fn used_rails(&self, kind: Kind) -> Result<Vec<(RailName, Timestamp)>> {
        let mut used = Vec::new();
        for key in self.side_value_names(kind.prefix())? {
            let stored = self.side_value(&key)?.unwrap_or_default();
            let name = key.strip_prefix(kind.prefix()).and_then(RailName::parse);
            used.extend(name.map(|name| (name, used_at(&stored).0)));
        }
        Ok(used)
    }

    fn has_rail(&self, kind: Kind, name: &RailName) -> bool {
        match kind {
            Kind::Card => self.rails.card.get(Some(name)).is_some(),
            Kind::Payout => self.rails.payout.get(Some(name)).is_some(),
            Kind::Pix => self.rails.pix.get(Some(name)).is_some(),
        }
    }

    fn current_rail(&self, kind: Kind) -> Option<&RailName> {
        fn name_of<R: ?Sized>(rails: &NamedRails<R>) -> Option<&RailName> {
            rails.current().and_then(|(name, _)| name)
        }
        match kind {
            Kind::Card => name_of(&self.rails.card),
            Kind::Payout => name_of(&self.rails.payout),
            Kind::Pix => name_of(&self.rails.pix),
        }
    }
}
