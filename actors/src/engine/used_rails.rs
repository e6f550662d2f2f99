//! Memory, beside the journal, of the rails that new orders went to: a rail is still needed for a
//! while after its last day.

use ledger::{RailName, Timestamp};

use super::{Engine, Result};
use crate::rails::NamedRails;

/// How long after its last day as the rail of new orders a rail is still needed, days. Cards: until
/// the last installment is settled and no chargeback can come. Transfers: until none can come back.
/// PIX: the longest life of a code, and the time in which a payment can be sent back.
const NEEDED_DAYS: [(Kind, i64); 3] = [(Kind::Card, 550), (Kind::Payout, 120), (Kind::Pix, 120)];
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

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

impl Engine {
    /// The rails that orders of the last months name, and that are not among those of their kind.
    /// Notes that the rails of new orders are in use from now on.
    pub fn missing_rails(&self) -> Result<Vec<RailName>> {
        let now = self.now();
        let mut missing = Vec::new();
        for (kind, days) in NEEDED_DAYS {
            for (name, used_at) in self.used_rails(kind)? {
                let is_needed = used_at.0.saturating_add(days * DAY_MS) > now.0;
                if is_needed && !self.has_rail(kind, &name) && !missing.contains(&name) {
                    missing.push(name);
                }
            }
        }
        self.note_rails_used(now)?;
        Ok(missing)
    }

    /// Notes that the rails of new orders are in use.
    pub(super) fn note_rails_used(&self, now: Timestamp) -> Result<()> {
        for (kind, _) in NEEDED_DAYS {
            if let Some(current) = self.current_rail(kind) {
                self.keep(&format!("{}{current}", kind.prefix()), &now.0.to_be_bytes())?;
            }
        }
        Ok(())
    }

    fn used_rails(&self, kind: Kind) -> Result<Vec<(RailName, Timestamp)>> {
        let mut used = Vec::new();
        for key in self.side_value_names(kind.prefix())? {
            let used_at = self.side_value(&key)?.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_be_bytes);
            let name = key.strip_prefix(kind.prefix()).and_then(RailName::parse);
            used.extend(name.map(|name| (name, Timestamp(used_at))));
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
