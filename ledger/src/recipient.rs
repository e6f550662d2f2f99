//! A sub-recipient's books (interface 2.8, 3.3): credited by its merchant's Records, lowered only by its own.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::event::{Event, Split};
use crate::id::{LedgerId, RecipientNumber};
use crate::merchant::maturity::due;
use crate::merchant::{add, take};
use crate::money::Centavos;
use crate::record::{Decision, Record};
use crate::time::{Minute, Timestamp};

/// All that a recipient's decisions need. It grows with the minutes that wait to fall due, never with history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct RecipientState {
    #[n(0)]
    pending: BTreeMap<Minute, Centavos>,
    #[n(1)]
    available: Centavos,
}

impl RecipientState {
    /// The Record of all that is due at `now`; none when nothing is. `foreign_through` is the cut: every Record of the merchant
    /// through this sequence has been received.
    pub fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        let dues = due(&self.pending, now);
        if dues.is_empty() {
            return None;
        }
        let later = Minute(now.minute().0.saturating_add(1));
        let next_due = self.pending.range(later..).next().map(|(minute, _)| minute.start());
        Some(Decision::of(Event::Matured { dues, foreign_through, next_due }))
    }

    /// Applies one of the recipient's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        for event in &record.events {
            if let Event::Matured { dues, .. } = event {
                for due in dues {
                    take(&mut self.pending, due.minute, due.amount);
                    self.available += due.amount;
                }
            }
        }
    }

    /// Counts a Record of the merchant. Sums commute, so it does not matter which own Records came before.
    pub fn receive(&mut self, record: &Record, ledger: LedgerId) {
        let LedgerId::Recipient(_, number) = ledger else { return };
        for event in &record.events {
            match event {
                Event::CardCaptured { terms, splits_due, .. } => {
                    add(&mut self.pending, *splits_due, share(&terms.splits, number));
                }
                Event::PixPaid { terms, .. } => self.available += share(&terms.splits, number),
                _ => {}
            }
        }
    }

    /// True when no claim on the platform is negative.
    pub fn is_sound(&self) -> bool {
        self.available >= Centavos::ZERO && self.pending.values().all(|sum| sum.is_positive())
    }

    /// When money falls due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.pending.keys().next().map(|minute| minute.start())
    }

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.pending.values().copied().sum()
    }

    /// Money that can be withdrawn, centavos.
    pub fn available(&self) -> Centavos {
        self.available
    }
}

fn share(splits: &[Split], number: RecipientNumber) -> Centavos {
    splits.iter().filter(|split| split.recipient == number).map(|split| split.amount).sum()
}
