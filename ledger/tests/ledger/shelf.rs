//! Shelf with the sections of a state: only sections reported as touched are put there
//! again.

use std::collections::BTreeMap;

use ledger::section::{Section, Sectioned};

/// Stored sections of one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(BTreeMap<Section, Vec<u8>>);

impl Shelf {
    /// Stores the touched sections, and reads all stored sections.
    pub(crate) fn keep_and_read<S: Sectioned>(&mut self, state: &mut S) -> S {
        for section in state.take_touched() {
            match state.section(section) {
                Some(bytes) => self.0.insert(section, bytes),
                None => self.0.remove(&section),
            };
        }
        let sections = self.0.iter().map(|(section, bytes)| (*section, bytes.as_slice()));
        S::from_sections(&state.head(), sections).expect("the stored state can be read")
    }
}
