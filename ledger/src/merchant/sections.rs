//! How a merchant's state is kept: its head, and sections of keys, recipients, open charges, open cashouts, sums, plans, subscriptions and
//! what can still change of paid charges. What is derived from these is
//! built again when they are read.
//!
//! This is version 1 of the states' encoding, with that of [`crate::recipient`]. Fields may be appended as options, as in events; any
//! other change, of what a section holds or of which section it is in too, is a new version.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::{ApiKey, MerchantState, Recipient};
use crate::balances::{KeptBalance, Ledger};
use crate::fees::Settings;
use crate::id::{Fingerprint, ObjectId, RecipientNumber};
use crate::personal::Sealed;
use crate::section::{Section, Touched, unknown};

const API_KEYS: u8 = 1;
const RECIPIENTS: u8 = 2;
const RECEIVABLES: u8 = 3;
const OPEN_CHARGES: u8 = 4;
const OPEN_CASHOUTS: u8 = 5;
const PENDING: u8 = 6;
const ACQUIRER_DUE: u8 = 7;
const ADJUSTED_CHARGES: u8 = 8;
const OPEN_ADJUSTMENTS: u8 = 9;
const PLANS: u8 = 10;
const SUBSCRIPTIONS: u8 = 11;

/// A registration with an address and a bank account takes about 350 bytes, sealed.
const RECIPIENTS_PER_SECTION: usize = 16;

#[derive(Encode, Decode)]
struct Head {
    #[n(0)]
    id: Option<ObjectId>,
    #[n(1)]
    settings: Settings,
    #[n(2)]
    profile: Sealed,
    #[n(3)]
    accounts: Vec<KeptBalance>,
}

/// The sub-recipients, by number and by document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recipients {
    /// Number n stands at n − 1.
    list: Vec<Recipient>,
    by_document: BTreeMap<Fingerprint, RecipientNumber>,
    touched: Touched,
}

impl Recipients {
    pub(super) fn list(&self) -> &[Recipient] {
        &self.list
    }

    pub(super) fn number_of(&self, document: Fingerprint) -> Option<RecipientNumber> {
        self.by_document.get(&document).copied()
    }

    /// Appends the next one.
    pub(super) fn push(&mut self, recipient: Recipient) {
        self.touched.touch((self.list.len() / RECIPIENTS_PER_SECTION) as u64);
        self.index(recipient);
    }

    pub(super) fn change(&mut self, number: RecipientNumber, change: impl FnOnce(&mut Recipient)) {
        let Some(at) = (number.0 as usize).checked_sub(1) else { return };
        if let Some(recipient) = self.list.get_mut(at) {
            change(recipient);
            self.touched.touch((at / RECIPIENTS_PER_SECTION) as u64);
        }
    }

    fn section(&self, number: u64) -> Option<Vec<u8>> {
        let page = self.list.chunks(RECIPIENTS_PER_SECTION).nth(usize::try_from(number).ok()?)?;
        Some(minicbor::to_vec(page).expect("writing into memory cannot fail"))
    }

    /// Sections come in order, and all but the last are full.
    fn read_section(&mut self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        if self.list.len() as u64 != number * RECIPIENTS_PER_SECTION as u64 {
            return Err(Error::message("recipients are counted without a gap"));
        }
        let page: Vec<Recipient> = minicbor::decode(bytes)?;
        page.into_iter().for_each(|recipient| self.index(recipient));
        Ok(())
    }

    fn index(&mut self, recipient: Recipient) {
        let number = u32::try_from(self.list.len() + 1).expect("a group has fewer than 2^30 recipients");
        self.by_document.insert(recipient.document, RecipientNumber(number));
        self.list.push(recipient);
    }
}

/// The API keys, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ApiKeys {
    by_id: BTreeMap<ObjectId, ApiKey>,
    touched: Touched,
}

impl ApiKeys {
    pub(super) fn by_id(&self) -> &BTreeMap<ObjectId, ApiKey> {
        &self.by_id
    }

    pub(super) fn insert(&mut self, id: ObjectId, key: ApiKey) {
        self.by_id.insert(id, key);
        self.touched.touch(0);
    }

    pub(super) fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut ApiKey)) {
        if let Some(key) = self.by_id.get_mut(&id) {
            change(key);
            self.touched.touch(0);
        }
    }
}

impl MerchantState {
    /// The encoding of what belongs to no section.
    pub fn head(&self) -> Vec<u8> {
        let Self { id, settings, .. } = *self;
        let head = Head { id, settings, profile: self.profile.clone(), accounts: self.ledger.plain() };
        minicbor::to_vec(head).expect("writing into memory cannot fail")
    }

    /// The sections that were touched since they were taken last, or since the state was read.
    pub fn take_touched(&mut self) -> BTreeSet<Section> {
        let mut touched = BTreeSet::new();
        touched.extend(self.keys.touched.take(API_KEYS));
        touched.extend(self.recipients.touched.take(RECIPIENTS));
        touched.extend(self.ledger.take_touched(RECEIVABLES));
        touched.extend(self.open_charges.take_touched(OPEN_CHARGES));
        touched.extend(self.cashouts.take_touched(OPEN_CASHOUTS));
        touched.extend(self.pending.take_touched(PENDING));
        touched.extend(self.acquirer_due.take_touched(ACQUIRER_DUE));
        touched.extend(self.adjustments.take_touched(ADJUSTED_CHARGES, OPEN_ADJUSTMENTS));
        touched.extend(self.plans.take_touched(PLANS));
        touched.extend(self.subscriptions.take_touched(SUBSCRIPTIONS));
        touched
    }

    /// The encoding of a section; none when there is nothing in it.
    pub fn section(&self, section: Section) -> Option<Vec<u8>> {
        match section.kind {
            API_KEYS => {
                let keys = &self.keys.by_id;
                (!keys.is_empty()).then(|| minicbor::to_vec(keys).expect("writing into memory cannot fail"))
            }
            RECIPIENTS => self.recipients.section(section.number),
            RECEIVABLES => self.ledger.section(section.number),
            OPEN_CHARGES => self.open_charges.section(section.number),
            OPEN_CASHOUTS => self.cashouts.section(section.number),
            PENDING => self.pending.section(section.number),
            ACQUIRER_DUE => self.acquirer_due.section(section.number),
            ADJUSTED_CHARGES => self.adjustments.charges_section(section.number),
            OPEN_ADJUSTMENTS => self.adjustments.open_section(section.number),
            PLANS => self.plans.section(section.number),
            SUBSCRIPTIONS => self.subscriptions.section(section.number),
            _ => None,
        }
    }

    /// Reads a state from its head and all of its sections, which come in order.
    pub fn from_sections<'a>(
        head: &[u8],
        sections: impl IntoIterator<Item = (Section, &'a [u8])>,
    ) -> Result<Self, Error> {
        let Head { id, settings, profile, accounts } = minicbor::decode(head)?;
        let mut state = Self { id, settings, profile, ledger: Ledger::of_plain(accounts), ..Self::default() };
        for (section, bytes) in sections {
            match section.kind {
                API_KEYS => state.keys.by_id = minicbor::decode(bytes)?,
                RECIPIENTS => state.recipients.read_section(section.number, bytes)?,
                RECEIVABLES => state.ledger.read_section(bytes)?,
                OPEN_CHARGES => state.open_charges.read_section(bytes)?,
                OPEN_CASHOUTS => state.cashouts.read_section(bytes)?,
                PENDING => state.pending.read_section(section.number, bytes)?,
                ACQUIRER_DUE => state.acquirer_due.read_section(section.number, bytes)?,
                ADJUSTED_CHARGES => state.adjustments.read_charges(bytes)?,
                OPEN_ADJUSTMENTS => state.adjustments.read_open(bytes)?,
                PLANS => state.plans.read_section(section.number, bytes)?,
                SUBSCRIPTIONS => state.subscriptions.read_section(bytes)?,
                _ => return Err(unknown(section)),
            }
        }
        state.adjustments.index();
        Ok(state)
    }
}
