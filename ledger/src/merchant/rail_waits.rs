//! Items that wait for a rail (charges, cashouts): a map by id, stored in sections, with the
//! sections in the order of the times at which the rail is to be asked.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use crate::section::{Section, TouchedSections};
use crate::{IdMap, ObjectId, Timestamp};

/// Objects that were opened one after the other share a section: most of them are closed together
/// too. A charge with a split or two takes about 100 bytes.
const ORDINALS_PER_SECTION: u64 = 64;

/// A charge or cashout that waits for a rail.
pub(super) trait Waits {
    /// The time from which the rail is to be asked about it.
    fn attention_at(&self) -> Timestamp;

    /// The ordinal of the merchant's Record that opened it.
    fn opened(&self) -> u64;
}

/// The objects of one kind that wait, with the lists that find them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingObjects<T> {
    by_id: IdMap<ObjectId, T>,
    sections: BTreeMap<u64, SectionIds>,
    /// The sections by the time at which the first rail of each is to be asked.
    attention: BTreeSet<(Timestamp, u64)>,
    touched: TouchedSections,
}

/// The objects of a section: ids, in order, and the time from which the rail of each is to be
/// asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SectionIds(Vec<(ObjectId, Timestamp)>);

impl SectionIds {
    fn first_attention(&self) -> Option<Timestamp> {
        self.0.iter().map(|(_, at)| *at).min()
    }

    fn insert(&mut self, id: ObjectId, at: Timestamp) {
        match self.0.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(place) => self.0[place].1 = at,
            Err(place) => self.0.insert(place, (id, at)),
        }
    }

    fn remove(&mut self, id: ObjectId) {
        if let Ok(place) = self.0.binary_search_by_key(&id, |(id, _)| *id) {
            self.0.remove(place);
        }
    }
}

impl<T> Default for WaitingObjects<T> {
    fn default() -> Self {
        Self {
            by_id: IdMap::default(),
            sections: BTreeMap::new(),
            attention: BTreeSet::new(),
            touched: TouchedSections::default(),
        }
    }
}

impl<T: Waits + Encode<()> + for<'b> Decode<'b, ()>> WaitingObjects<T> {
    pub(super) fn by_id(&self) -> &IdMap<ObjectId, T> {
        &self.by_id
    }

    pub(super) fn get(&self, id: ObjectId) -> Option<&T> {
        self.by_id.get(&id)
    }

    pub(super) fn insert(&mut self, id: ObjectId, one: T) {
        self.touched.touch(section_of(&one));
        self.index(id, one);
    }

    pub(super) fn remove(&mut self, id: ObjectId) {
        if let Some(one) = self.by_id.remove(&id) {
            self.touched.touch(section_of(&one));
            self.change_section(section_of(&one), |section| section.remove(id));
        }
    }

    /// The time from which the first rail is to be asked.
    pub(super) fn first_attention(&self) -> Option<Timestamp> {
        self.attention.first().map(|(at, _)| *at)
    }

    /// The objects whose rail is to be asked by `now`. The section whose oldest object has waited
    /// longest comes first.
    pub(super) fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &T)> {
        let sections = self.attention.iter().take_while(move |(at, _)| *at <= now);
        let section = sections.filter_map(|(_, number)| self.sections.get(number)).flat_map(|section| &section.0);
        let ids = section.filter(move |(_, at)| *at <= now).map(|(id, _)| *id);
        ids.filter_map(|id| self.by_id.get(&id).map(|one| (id, one)))
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<T> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[id, what waits], …]`; `None` if there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let ids = self.sections.get(&number)?.0.iter().map(|(id, _)| id);
        let waiting: Vec<_> = ids.filter_map(|id| self.by_id.get(id).map(|one| (id, one))).collect();
        (!waiting.is_empty()).then(|| minicbor::to_vec(waiting).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let waiting: Vec<(ObjectId, T)> = minicbor::decode(bytes)?;
        waiting.into_iter().for_each(|(id, one)| self.index(id, one));
        Ok(())
    }

    fn index(&mut self, id: ObjectId, one: T) {
        self.change_section(section_of(&one), |section| section.insert(id, one.attention_at()));
        self.by_id.insert(id, one);
    }

    fn change_section(&mut self, number: u64, change: impl FnOnce(&mut SectionIds)) {
        let section = self.sections.entry(number).or_default();
        let before = section.first_attention();
        change(section);
        let after = section.first_attention();
        if after.is_none() {
            self.sections.remove(&number);
        }
        if before != after {
            before.into_iter().for_each(|at| {
                self.attention.remove(&(at, number));
            });
            self.attention.extend(after.map(|at| (at, number)));
        }
    }
}

fn section_of(one: &impl Waits) -> u64 {
    one.opened() / ORDINALS_PER_SECTION
}
