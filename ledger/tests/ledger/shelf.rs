//! A shelf on which a state is kept in sections: only what the state says was touched is put there
//! again.

use std::collections::{BTreeMap, BTreeSet};

use ledger::merchant::MerchantState;
use ledger::recipient::RecipientState;
use ledger::section::Section;
use minicbor::decode::Error;

/// A state that can be kept in sections.
pub(crate) trait Sectioned: Sized {
    fn head(&self) -> Vec<u8>;
    fn take_touched(&mut self) -> BTreeSet<Section>;
    fn section(&self, section: Section) -> Option<Vec<u8>>;
    fn from_sections<'a>(head: &[u8], sections: impl Iterator<Item = (Section, &'a [u8])>) -> Result<Self, Error>;
}

impl Sectioned for MerchantState {
    fn head(&self) -> Vec<u8> {
        self.head()
    }

    fn take_touched(&mut self) -> BTreeSet<Section> {
        self.take_touched()
    }

    fn section(&self, section: Section) -> Option<Vec<u8>> {
        self.section(section)
    }

    fn from_sections<'a>(head: &[u8], sections: impl Iterator<Item = (Section, &'a [u8])>) -> Result<Self, Error> {
        Self::from_sections(head, sections)
    }
}

impl Sectioned for RecipientState {
    fn head(&self) -> Vec<u8> {
        self.head()
    }

    fn take_touched(&mut self) -> BTreeSet<Section> {
        self.take_touched()
    }

    fn section(&self, section: Section) -> Option<Vec<u8>> {
        self.section(section)
    }

    fn from_sections<'a>(head: &[u8], sections: impl Iterator<Item = (Section, &'a [u8])>) -> Result<Self, Error> {
        Self::from_sections(head, sections)
    }
}

/// What was kept of one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(BTreeMap<Section, Vec<u8>>);

impl Shelf {
    /// Keeps what was touched, and reads all that is kept.
    pub(crate) fn keep_and_read<S: Sectioned>(&mut self, state: &mut S) -> S {
        for section in state.take_touched() {
            match state.section(section) {
                Some(bytes) => self.0.insert(section, bytes),
                None => self.0.remove(&section),
            };
        }
        let sections = self.0.iter().map(|(section, bytes)| (*section, bytes.as_slice()));
        S::from_sections(&state.head(), sections).expect("what was kept can be read")
    }
}
