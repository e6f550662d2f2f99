//! Encoding of a merchant's state: a head with its settings and plain accounts, and sections for
//! everything that may be many. Lists that follow from these are built again when they are read.
//!
//! This is version 1 of the states' encoding, together with that of [`crate::recipient`]. Fields
//! may be appended as options, as in events. Any other change needs a new version: also a change of
//! a section's content or place.

use std::collections::BTreeSet;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::MerchantState;
use super::acquirer::SettledThrough;
use super::stored_cards::DeletedCards;
use crate::balances::{Ledger, StoredBalance};
use crate::section::{Section, Sectioned, unknown};
use crate::write_off::OpenWriteOff;
use crate::{ObjectId, Sealed, Settings};

const API_KEYS: u8 = 1;
const RECIPIENTS: u8 = 2;
const RECEIVABLES: u8 = 3;
const OPEN_CHARGES: u8 = 4;
const OPEN_CASHOUTS: u8 = 5;
const PENDING: u8 = 6;
const ADJUSTED_CHARGES: u8 = 8;
const OPEN_ADJUSTMENTS: u8 = 9;
const PLANS: u8 = 10;
const SUBSCRIPTIONS: u8 = 11;

#[derive(Encode, Decode)]
struct MerchantHead {
    #[n(0)]
    id: Option<ObjectId>,
    #[n(1)]
    settings: Settings,
    #[n(2)]
    profile: Sealed,
    #[n(3)]
    accounts: Vec<StoredBalance>,
    #[n(4)]
    settled: Option<SettledThrough>,
    #[n(5)]
    write_off: Option<OpenWriteOff>,
    #[n(6)]
    settled_by_files: Option<SettledThrough>,
    /// None while none waits.
    #[n(7)]
    goodwill: Option<Vec<OpenWriteOff>>,
    /// None while there are none.
    #[n(8)]
    deleted_cards: Option<DeletedCards>,
}

impl Sectioned for MerchantState {
    fn head(&self) -> Vec<u8> {
        let Self { id, settings, settled, settled_by_files, .. } = *self;
        let begun = |settled: SettledThrough| (settled != SettledThrough::default()).then_some(settled);
        let [settled, settled_by_files] = [settled, settled_by_files].map(begun);
        let (profile, accounts, write_off) = (self.profile.clone(), self.ledger.plain(), self.write_off.clone());
        let goodwill = (!self.goodwill.is_empty()).then(|| self.goodwill.clone());
        let deleted_cards = (!self.deleted_cards.is_empty()).then(|| self.deleted_cards.clone());
        let head = MerchantHead {
            id,
            settings,
            profile,
            accounts,
            settled,
            write_off,
            settled_by_files,
            goodwill,
            deleted_cards,
        };
        minicbor::to_vec(head).expect("writing into memory cannot fail")
    }

    fn take_touched(&mut self) -> BTreeSet<Section> {
        let mut touched = BTreeSet::new();
        touched.extend(self.keys.take_touched(API_KEYS));
        touched.extend(self.recipients.take_touched(RECIPIENTS));
        touched.extend(self.ledger.take_touched(RECEIVABLES));
        touched.extend(self.open_charges.take_touched(OPEN_CHARGES));
        touched.extend(self.cashouts.take_touched(OPEN_CASHOUTS));
        touched.extend(self.pending.take_touched(PENDING));
        touched.extend(self.adjustments.take_touched(ADJUSTED_CHARGES, OPEN_ADJUSTMENTS));
        touched.extend(self.plans.take_touched(PLANS));
        touched.extend(self.subscriptions.take_touched(SUBSCRIPTIONS));
        touched
    }

    fn section(&self, section: Section) -> Option<Vec<u8>> {
        match section.kind {
            API_KEYS => self.keys.section(),
            RECIPIENTS => self.recipients.section(section.number),
            RECEIVABLES => self.ledger.section(section.number),
            OPEN_CHARGES => self.open_charges.section(section.number),
            OPEN_CASHOUTS => self.cashouts.section(section.number),
            PENDING => self.pending.section(section.number),
            ADJUSTED_CHARGES => self.adjustments.charges.section(section.number),
            OPEN_ADJUSTMENTS => self.adjustments.open.section(section.number),
            PLANS => self.plans.section(section.number),
            SUBSCRIPTIONS => self.subscriptions.section(section.number),
            _ => None,
        }
    }

    fn from_sections<'a>(head: &[u8], sections: impl IntoIterator<Item = (Section, &'a [u8])>) -> Result<Self, Error> {
        let MerchantHead {
            id,
            settings,
            profile,
            accounts,
            settled,
            write_off,
            settled_by_files,
            goodwill,
            deleted_cards,
        } = minicbor::decode(head)?;
        let [settled, settled_by_files] = [settled, settled_by_files].map(Option::unwrap_or_default);
        let ledger = Ledger::of_plain(accounts);
        let goodwill = goodwill.unwrap_or_default();
        let mut state = Self { id, settings, profile, settled, settled_by_files, ledger, ..Self::default() };
        (state.write_off, state.goodwill) = (write_off, goodwill);
        state.deleted_cards = deleted_cards.unwrap_or_default();
        for (section, bytes) in sections {
            match section.kind {
                API_KEYS => state.keys.read_section(bytes)?,
                RECIPIENTS => state.recipients.read_section(section.number, bytes)?,
                RECEIVABLES => state.ledger.read_section(bytes)?,
                OPEN_CHARGES => state.open_charges.read_section(bytes)?,
                OPEN_CASHOUTS => state.cashouts.read_section(bytes)?,
                PENDING => state.pending.read_section(section.number, bytes)?,
                ADJUSTED_CHARGES => state.adjustments.charges.read_section(bytes)?,
                OPEN_ADJUSTMENTS => state.adjustments.open.read_section(bytes)?,
                PLANS => state.plans.read_section(section.number, bytes)?,
                SUBSCRIPTIONS => state.subscriptions.read_section(bytes)?,
                _ => return Err(unknown(section)),
            }
        }
        state.adjustments.index();
        Ok(state)
    }
}
