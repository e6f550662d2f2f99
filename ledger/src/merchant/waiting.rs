//! What waits for the outcome of a rail, charges and cashouts: by id, by the time at which the rail is asked, and by the section in
//! which it is kept.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use crate::id::ObjectId;
use crate::section::{Section, Touched};
use crate::time::Timestamp;

/// What was opened one after the other is kept together: most of it is closed together too. A charge with a split or two takes about
/// 100 bytes.
const ORDINALS_PER_SECTION: u64 = 64;

/// Something that waits for a rail.
pub(super) trait Waits {
    /// When the rail is to be asked about it.
    fn attention_at(&self) -> Timestamp;

    /// The ordinal of the merchant's Record that opened it, where that is known.
    fn opened(&self) -> Option<u64>;
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting<T> {
    by_id: BTreeMap<ObjectId, T>,
    attention: BTreeSet<(Timestamp, ObjectId)>,
    by_section: BTreeSet<(u64, ObjectId)>,
    touched: Touched,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self {
            by_id: BTreeMap::new(),
            attention: BTreeSet::new(),
            by_section: BTreeSet::new(),
            touched: Touched::default(),
        }
    }
}

impl<T: Waits + Encode<()> + for<'b> Decode<'b, ()>> Waiting<T> {
    /// What was kept in another way: all of it counts as touched.
    pub(super) fn of(by_id: BTreeMap<ObjectId, T>) -> Self {
        let mut waiting = Self::default();
        by_id.into_iter().for_each(|(id, one)| waiting.insert(id, one));
        waiting
    }

    pub(super) fn by_id(&self) -> &BTreeMap<ObjectId, T> {
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
            self.attention.remove(&(one.attention_at(), id));
            self.by_section.remove(&(section_of(&one), id));
            self.touched.touch(section_of(&one));
        }
    }

    /// When the first rail is to be asked.
    pub(super) fn first_attention(&self) -> Option<Timestamp> {
        self.attention.first().map(|(at, _)| *at)
    }

    /// Those whose rail is to be asked by `now`, oldest first.
    pub(super) fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &T)> {
        let ids = self.attention.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id);
        ids.filter_map(|id| self.by_id.get(&id).map(|one| (id, one)))
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<T> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[id, what waits], …]`; none when there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let (first, last) = ((number, ObjectId(0)), (number, ObjectId(u128::MAX)));
        let ids = self.by_section.range(first..=last).map(|(_, id)| id);
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
        self.attention.insert((one.attention_at(), id));
        self.by_section.insert((section_of(&one), id));
        self.by_id.insert(id, one);
    }
}

/// That of which it is not known which Record opened it has section 0 for itself.
fn section_of(one: &impl Waits) -> u64 {
    one.opened().map_or(0, |ordinal| 1 + ordinal / ORDINALS_PER_SECTION)
}
