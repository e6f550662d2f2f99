//! The charges that wait for their outcome: by txid, by the time at which their rail is asked, and by the section in which they
//! are kept.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;

use super::OpenCharge;
use crate::id::ObjectId;
use crate::section::{Section, Touched};
use crate::time::Timestamp;

/// Charges that were opened one after the other are kept together: most of them are closed together too. A charge with a split or
/// two takes about 100 bytes.
const ORDINALS_PER_SECTION: u64 = 64;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenCharges {
    by_id: BTreeMap<ObjectId, OpenCharge>,
    attention: BTreeSet<(Timestamp, ObjectId)>,
    by_section: BTreeSet<(u64, ObjectId)>,
    touched: Touched,
}

impl OpenCharges {
    /// Charges that were kept in another way: all of them count as touched.
    pub(super) fn of(by_id: BTreeMap<ObjectId, OpenCharge>) -> Self {
        let mut charges = Self::default();
        by_id.into_iter().for_each(|(id, charge)| charges.insert(id, charge));
        charges
    }

    pub(super) fn by_id(&self) -> &BTreeMap<ObjectId, OpenCharge> {
        &self.by_id
    }

    pub(super) fn get(&self, id: ObjectId) -> Option<&OpenCharge> {
        self.by_id.get(&id)
    }

    pub(super) fn insert(&mut self, id: ObjectId, charge: OpenCharge) {
        self.touched.touch(section_of(&charge));
        self.index(id, charge);
    }

    pub(super) fn remove(&mut self, id: ObjectId) {
        if let Some(charge) = self.by_id.remove(&id) {
            self.attention.remove(&(charge.attention_at, id));
            self.by_section.remove(&(section_of(&charge), id));
            self.touched.touch(section_of(&charge));
        }
    }

    /// When the first rail is to be asked.
    pub(super) fn first_attention(&self) -> Option<Timestamp> {
        self.attention.first().map(|(at, _)| *at)
    }

    /// The charges whose rail is to be asked by `now`, oldest first.
    pub(super) fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCharge)> {
        let ids = self.attention.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id);
        ids.filter_map(|id| self.by_id.get(&id).map(|charge| (id, charge)))
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[txid, charge], …]`; none when there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let (first, last) = ((number, ObjectId(0)), (number, ObjectId(u128::MAX)));
        let ids = self.by_section.range(first..=last).map(|(_, id)| id);
        let charges: Vec<_> = ids.filter_map(|id| self.by_id.get(id).map(|charge| (id, charge))).collect();
        (!charges.is_empty()).then(|| minicbor::to_vec(charges).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let charges: Vec<(ObjectId, OpenCharge)> = minicbor::decode(bytes)?;
        charges.into_iter().for_each(|(id, charge)| self.index(id, charge));
        Ok(())
    }

    fn index(&mut self, id: ObjectId, charge: OpenCharge) {
        self.attention.insert((charge.attention_at, id));
        self.by_section.insert((section_of(&charge), id));
        self.by_id.insert(id, charge);
    }
}

/// The charges of which it is not known which Record opened them have section 0 for themselves.
fn section_of(charge: &OpenCharge) -> u64 {
    charge.opened.map_or(0, |ordinal| 1 + ordinal / ORDINALS_PER_SECTION)
}
