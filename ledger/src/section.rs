//! Sections: the parts of an actor's state that are written by themselves (incremental snapshot). A
//! snapshot writes again only the sections that were touched since the last one, so its cost
//! follows the changes and not the size of the state.
//!
//! The method that changes an item also notes its section as touched, so no caller can forget it.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Decoder, Encode, Encoder};

use crate::event::Due;
use crate::{Centavos, Minute, ObjectId, Timestamp};

/// A part of a state: its kind, and its number among those of the kind. A state's head belongs to
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Section {
    /// Kind of its content; each kind of state has its own kinds.
    pub kind: u8,
    /// Place among the sections of its kind, from 0.
    pub number: u64,
}

/// State that is stored as a head and sections.
pub trait Sectioned: Sized {
    /// The encoding of the head: everything outside sections.
    fn head(&self) -> Vec<u8>;

    /// The sections that were touched since they were taken last, or since the state was read.
    fn take_touched(&mut self) -> BTreeSet<Section>;

    /// The encoding of a section; `None` if there is nothing in it.
    fn section(&self, section: Section) -> Option<Vec<u8>>;

    /// Reads a state from its head and all of its sections, in order. Errors: a damaged encoding,
    /// or a section of a later release.
    fn from_sections<'a>(head: &[u8], sections: impl IntoIterator<Item = (Section, &'a [u8])>) -> Result<Self, Error>;
}

/// Numbers of the touched sections of one kind, until a snapshot takes them. They are no part of a
/// state's value: states that differ only in them are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct TouchedSections(BTreeSet<u64>);

impl PartialEq for TouchedSections {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for TouchedSections {}

impl TouchedSections {
    pub(crate) fn touch(&mut self, number: u64) {
        self.0.insert(number);
    }

    pub(crate) fn take(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        std::mem::take(&mut self.0).into_iter().map(move |number| Section { kind, number })
    }
}

/// Objects that came one after the other share a section: most of them go together too.
const ORDINALS_PER_SECTION: u64 = 64;

/// Objects by id. The ordinal of the Record that brought an object decides its section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objects<T> {
    by_id: BTreeMap<ObjectId, (u64, T)>,
    by_section: BTreeSet<(u64, ObjectId)>,
    touched: TouchedSections,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), by_section: BTreeSet::new(), touched: TouchedSections::default() }
    }
}

impl<T> Objects<T> {
    pub(crate) fn get(&self, id: ObjectId) -> Option<&T> {
        self.by_id.get(&id).map(|(_, object)| object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ObjectId, &T)> {
        self.by_id.iter().map(|(id, (_, object))| (*id, object))
    }

    /// Puts an object in its place; one that is there already is replaced.
    pub(crate) fn insert(&mut self, id: ObjectId, ordinal: u64, object: T) {
        self.remove(id);
        self.touched.touch(ordinal / ORDINALS_PER_SECTION);
        self.place(id, ordinal, object);
    }

    /// Changes an object that is there.
    pub(crate) fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut T)) {
        if let Some((ordinal, object)) = self.by_id.get_mut(&id) {
            change(object);
            self.touched.touch(*ordinal / ORDINALS_PER_SECTION);
        }
    }

    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<T> {
        let (ordinal, object) = self.by_id.remove(&id)?;
        let section = ordinal / ORDINALS_PER_SECTION;
        self.by_section.remove(&(section, id));
        self.touched.touch(section);
        Some(object)
    }

    pub(crate) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<T> {
        self.touched.take(kind)
    }

    fn place(&mut self, id: ObjectId, ordinal: u64, object: T) {
        self.by_section.insert((ordinal / ORDINALS_PER_SECTION, id));
        self.by_id.insert(id, (ordinal, object));
    }
}

impl<T: Encode<()> + for<'b> Decode<'b, ()>> Objects<T> {
    /// The encoding of one section, `[[id, ordinal, object], …]`; `None` if it is empty.
    pub(crate) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let ids = self.by_section.range((number, ObjectId(0))..=(number, ObjectId(u128::MAX))).map(|(_, id)| id);
        let objects = ids.filter_map(|id| self.by_id.get(id).map(|(ordinal, object)| (id, ordinal, object)));
        let objects: Vec<_> = objects.collect();
        (!objects.is_empty()).then(|| minicbor::to_vec(objects).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(crate) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let objects: Vec<(ObjectId, u64, T)> = minicbor::decode(bytes)?;
        objects.into_iter().for_each(|(id, ordinal, object)| self.place(id, ordinal, object));
        Ok(())
    }
}

/// Half a day of sums, each up to 9 bytes, fits what a store keeps inline in one key; a day does
/// not.
const MINUTES_PER_SECTION: u32 = 12 * 60;

/// Sums by the minute in which they fall due. A minute without money is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    by_minute: BTreeMap<Minute, Centavos>,
    touched: TouchedSections,
}

impl Sums {
    /// Adds to a minute's sum.
    pub(crate) fn add(&mut self, minute: Minute, amount: Centavos) {
        if !amount.is_zero() {
            *self.by_minute.entry(minute).or_default() += amount;
            self.touched.touch(section_of(minute));
        }
    }

    /// Takes from a minute's sum, and forgets the minute when nothing is left.
    pub(crate) fn take(&mut self, minute: Minute, amount: Centavos) {
        let left = self.by_minute.get(&minute).copied().unwrap_or_default() - amount;
        if left.is_zero() {
            self.by_minute.remove(&minute);
        } else {
            self.by_minute.insert(minute, left);
        }
        self.touched.touch(section_of(minute));
    }

    /// The sums whose minute has begun at `now`.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<Due> {
        let due = self.by_minute.range(..=now.minute());
        due.map(|(minute, amount)| Due { minute: *minute, amount: *amount }).collect()
    }

    /// The first minute that has a sum.
    pub(crate) fn first(&self) -> Option<Minute> {
        self.by_minute.keys().next().copied()
    }

    /// When the first minute at or after `minute` begins that has a sum.
    pub(crate) fn next_from(&self, minute: Minute) -> Option<Timestamp> {
        self.by_minute.range(minute..).next().map(|(minute, _)| minute.start())
    }

    /// The same, without the minutes that `taken` empties.
    pub(crate) fn next_besides(&self, minute: Minute, taken: &BTreeMap<Minute, Centavos>) -> Option<Timestamp> {
        let mut left = self.by_minute.range(minute..).filter(|(minute, sum)| taken.get(minute) != Some(sum));
        left.next().map(|(minute, _)| minute.start())
    }

    /// True when a minute has a sum.
    pub(crate) fn has(&self, minute: Minute) -> bool {
        self.by_minute.contains_key(&minute)
    }

    /// All of them, centavos.
    pub(crate) fn total(&self) -> Centavos {
        self.by_minute.values().copied().sum()
    }

    /// True when every sum is above zero.
    pub(crate) fn are_positive(&self) -> bool {
        self.by_minute.values().all(|sum| sum.is_positive())
    }

    pub(crate) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[minute within it, centavos, …]`; `None` if there is nothing
    /// in it.
    pub(crate) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let first = u32::try_from(number).ok()?.checked_mul(MINUTES_PER_SECTION)?;
        let last = first.saturating_add(MINUTES_PER_SECTION - 1);
        let sums: Vec<_> = self.by_minute.range(Minute(first)..=Minute(last)).collect();
        if sums.is_empty() {
            return None;
        }
        let mut e = Encoder::new(Vec::with_capacity(9 * sums.len()));
        let mut write = || {
            e.array(2 * sums.len() as u64)?;
            sums.iter().try_for_each(|(minute, amount)| e.u32(minute.0 - first)?.i64(amount.0).map(drop))
        };
        write().expect("writing into memory cannot fail");
        Some(e.into_writer())
    }

    /// Adds what the encoding of one section says.
    pub(crate) fn read_section(&mut self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let first = u32::try_from(number).ok().and_then(|number| number.checked_mul(MINUTES_PER_SECTION));
        let first = first.ok_or(Error::message("no minute lies in this section"))?;
        let mut d = Decoder::new(bytes);
        for _ in 0..d.array()?.unwrap_or_default() / 2 {
            let (offset, amount) = (d.u32()?, Centavos(d.i64()?));
            if offset >= MINUTES_PER_SECTION || !amount.is_positive() {
                return Err(Error::message("a section holds sums of its own minutes"));
            }
            self.by_minute.insert(Minute(first.saturating_add(offset)), amount);
        }
        Ok(())
    }
}

fn section_of(minute: Minute) -> u64 {
    u64::from(minute.0 / MINUTES_PER_SECTION)
}

/// The error for a section of a kind that the state does not have: a later release wrote it, or it
/// is damaged.
pub(crate) fn unknown(section: Section) -> Error {
    Error::message(format!("a section of the unknown kind {}", section.kind))
}
