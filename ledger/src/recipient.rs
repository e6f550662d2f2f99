//! A sub-recipient's books (interface 2.8, 3.3): credited by its merchant's Records, lowered only by its own.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;

use minicbor::{Decode, Encode};

use crate::event::{Cut, Event, Split};
use crate::id::{LedgerId, RecipientNumber};
use crate::money::Centavos;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::section::{Section, Sums, unknown};
use crate::time::{Minute, Timestamp};

/// What can be asked of a recipient. Shapes and ranges are checked at the door; rules are checked here.
#[derive(Clone, Debug)]
pub enum RecipientCommand {}

/// All that a recipient's decisions need. It grows with the minutes that wait to fall due, never with history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientState {
    pending: Sums,
    available: Centavos,
}

const PENDING: u8 = 1;

#[derive(Encode, Decode)]
struct Head {
    #[n(0)]
    available: Centavos,
}

/// The encoding of version 1, which was one value.
#[derive(Decode)]
struct Version1 {
    #[n(0)]
    pending: BTreeMap<Minute, Centavos>,
    #[n(1)]
    available: Centavos,
}

impl RecipientState {
    /// The Record of all that is due at `now`; none when nothing is. `foreign_through` is the cut: every Record of the merchant
    /// through this sequence has been received.
    pub fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        let dues = self.pending.due(now);
        if dues.is_empty() {
            return None;
        }
        let later = Minute(now.minute().0.saturating_add(1));
        let next_due = self.pending.next_from(later);
        Some(Decision::of(Event::Matured { dues, foreign_through, next_due }))
    }

    /// Decides a command; changes nothing. `cut` is how far this state has come.
    pub fn decide(&self, command: RecipientCommand, _now: Timestamp, _cut: Cut) -> Result<Decision, Rejection> {
        match command {}
    }

    /// Applies one of the recipient's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        for event in &record.events {
            if let Event::Matured { dues, .. } = event {
                for due in dues {
                    self.pending.take(due.minute, due.amount);
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
                    self.pending.add(*splits_due, share(&terms.splits, number));
                }
                Event::PixPaid { terms, .. } => self.available += share(&terms.splits, number),
                _ => {}
            }
        }
    }

    /// True when no claim on the platform is negative.
    pub fn is_sound(&self) -> bool {
        self.available >= Centavos::ZERO && self.pending.are_positive()
    }

    /// When money falls due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.pending.next_from(Minute(0))
    }

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.pending.total()
    }

    /// Money that can be withdrawn, centavos.
    pub fn available(&self) -> Centavos {
        self.available
    }

    /// The encoding of what belongs to no section.
    pub fn head(&self) -> Vec<u8> {
        minicbor::to_vec(Head { available: self.available }).expect("writing into memory cannot fail")
    }

    /// The sections that were touched since they were taken last, or since the state was read.
    pub fn take_touched(&mut self) -> BTreeSet<Section> {
        self.pending.take_touched(PENDING).collect()
    }

    /// The encoding of a section; none when there is nothing in it. How it may change is told at a merchant's sections.
    pub fn section(&self, section: Section) -> Option<Vec<u8>> {
        if section.kind == PENDING { self.pending.section(section.number) } else { None }
    }

    /// Reads a state from its head and all of its sections.
    pub fn from_sections<'a>(
        head: &[u8],
        sections: impl IntoIterator<Item = (Section, &'a [u8])>,
    ) -> Result<Self, Error> {
        let Head { available } = minicbor::decode(head)?;
        let mut state = Self { available, ..Self::default() };
        for (section, bytes) in sections {
            match section.kind {
                PENDING => state.pending.read_section(section.number, bytes)?,
                _ => return Err(unknown(section)),
            }
        }
        Ok(state)
    }

    /// Reads a state in the encoding of version 1. Every section counts as touched.
    pub fn from_version_1(bytes: &[u8]) -> Result<Self, Error> {
        let Version1 { pending, available } = minicbor::decode(bytes)?;
        Ok(Self { pending: Sums::of(pending), available })
    }
}

fn share(splits: &[Split], number: RecipientNumber) -> Centavos {
    splits.iter().filter(|split| split.recipient == number).map(|split| split.amount).sum()
}
