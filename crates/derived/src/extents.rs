//! Extents: which partition a group is in. An extent is a range of groups that is dealt out to
//! partitions of its own, one group to each in turn. Each extent begins where the one before ends,
//! and the last one has no end.
//!
//! ```text
//! partition = first + (group − from) mod count    of the last extent at or below the group
//! place     = (group − from) / count              the group's place in its partition's tables
//! ```
//!
//! A group never leaves its partition, since Records name positions of its journal. So extents are
//! only added, for groups that nobody has yet. A journal that was moved from another store is an
//! extent of one partition; groups that are made afterwards are in the next one.
//!
//! The house ledger has no group. It is one a partition; what is booked for the whole installation
//! is in the partition of group 0, which no merchant has.
//!
//! An extent is stored as a common value of the store, so it is in every store and in every backup,
//! and of two processes that add one the first wins. An extent that was added later also has the
//! keys of requests that opened accounts shortly before: a retry of one finds its account in the
//! earlier partition ([`crate::growth`]).

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;

use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::{Fingerprint, GroupNumber, Timestamp};

use store::{KeyAndValue, Part, Partition, Sequence, Store, StoreError};

/// Prefix of the common keys; the extent's number in order follows, big-endian.
const PREFIX: &[u8] = b"stamp/extent/";

/// The group of what has none, such as the house ledger: no merchant has it.
pub const HOUSE: GroupNumber = GroupNumber(0);

/// A range of groups and the partitions to which it is dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first group.
    pub from: GroupNumber,
    /// Its first partition.
    pub first: Partition,
    /// How many partitions it has, at least 1.
    pub count: u16,
}

/// All extents of a store, in order.
///
/// ```
/// use centavo_derived::extents::Extents;
/// use store::Partition;
/// use ledger::id::GroupNumber;
///
/// // A journal of one partition, moved from one machine; groups from 1,000 on are in 64 others.
/// let extents = Extents::default().grown(GroupNumber(1_000), 64)?;
/// assert_eq!(extents.partition_of(GroupNumber(999)), Partition(0));
/// assert_eq!(extents.partition_of(GroupNumber(1_000)), Partition(1));
/// assert_eq!(extents.place_of(GroupNumber(1_065)), (Partition(2), 1));
/// assert_eq!(extents.partitions(), 65);
/// # Ok::<(), centavo_derived::extents::ExtentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    /// In the order of their groups, at least one.
    all: Vec<Extent>,
    /// Of each extent, in the same order.
    opened: Vec<OpenedAccounts>,
}

/// Accounts that were opened shortly before an extent was added, by the idempotency keys of their
/// requests: when, and in which partition.
pub type OpenedAccounts = BTreeMap<Fingerprint, (Timestamp, Partition)>;

/// Why extents cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExtentError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They leave out groups or partitions, or deal one out twice.
    #[error("the extents of this store contradict each other: {0:?}")]
    Contradiction(Vec<Extent>),
    /// There are not so many partitions.
    #[error("a store has at most 65,536 partitions")]
    TooMany,
}

impl Default for Extents {
    /// One partition with all groups.
    fn default() -> Self {
        Self::one(1)
    }
}

impl Extents {
    fn one(count: u16) -> Self {
        Self { all: vec![Extent { from: HOUSE, first: Partition(0), count }], opened: vec![OpenedAccounts::new()] }
    }

    /// Extents in the order of their groups. The first one has group 0 and partition 0, and each
    /// has the partitions after those of the one before.
    pub fn new(extents: Vec<Extent>) -> Result<Self, ExtentError> {
        let opened = vec![OpenedAccounts::new(); extents.len()];
        Self::admitted(extents, opened)
    }

    fn admitted(extents: Vec<Extent>, opened: Vec<OpenedAccounts>) -> Result<Self, ExtentError> {
        let mut next = (HOUSE, 0);
        for (at, extent) in extents.iter().enumerate() {
            let follows = if at == 0 { extent.from == HOUSE } else { extent.from >= next.0 };
            if !follows || u32::from(extent.first.0) != next.1 || extent.count == 0 {
                return Err(ExtentError::Contradiction(extents));
            }
            next = (GroupNumber(extent.from.0.saturating_add(1)), next.1 + u32::from(extent.count));
        }
        match next.1 {
            0 => Err(ExtentError::Contradiction(extents)),
            1..=0x1_0000 => Ok(Self { all: extents, opened }),
            _ => Err(ExtentError::TooMany),
        }
    }

    /// All groups in these many partitions, at least one.
    pub fn of_partitions(count: NonZeroU16) -> Self {
        Self::one(count.get())
    }

    /// The extents of a store. One that has no journal and no extents yet gets `new` partitions: of
    /// two processes that make it, the first one says how many.
    pub fn made(store: &dyn Store, new: NonZeroU16) -> Result<Self, ExtentError> {
        let has_extents = store.commons()?.iter().any(|(key, _)| key.starts_with(PREFIX));
        if has_extents || store.head(Partition(0))?.next > Sequence::FIRST {
            return Self::of(store);
        }
        Self::of_partitions(new).keep(store)
    }

    /// The extents of a store; one partition if none are stored.
    pub fn of(store: &dyn Store) -> Result<Self, ExtentError> {
        Self::among(&store.commons()?)
    }

    /// The extents among the common values of a store; one partition where there are none.
    pub fn among(commons: &[KeyAndValue]) -> Result<Self, ExtentError> {
        let rows = commons.iter().filter(|(key, _)| key.starts_with(PREFIX));
        let decoded: Option<Vec<_>> = rows.map(|(_, value)| decode(value)).collect();
        match decoded {
            None => Err(ExtentError::Contradiction(Vec::new())),
            Some(none) if none.is_empty() => Ok(Self::default()),
            Some(rows) => {
                let (extents, opened) = rows.into_iter().unzip();
                Self::admitted(extents, opened)
            }
        }
    }

    /// All partitions of a store, in their order, to be read only.
    pub fn parts_of(store: &Arc<dyn Store>) -> Result<Vec<Part>, ExtentError> {
        Ok(Self::of(&**store)?.reading(store))
    }

    /// The partitions of these extents in a store, in their order, to be read only.
    pub fn reading(&self, store: &Arc<dyn Store>) -> Vec<Part> {
        self.all().map(|partition| Part::reading(Arc::clone(store), partition)).collect()
    }

    /// Keeps the extents in a store, and gives those that stand: another process may have been
    /// faster.
    pub fn keep(&self, store: &dyn Store) -> Result<Self, ExtentError> {
        for (number, (extent, opened)) in (0_u32..).zip(self.all.iter().zip(&self.opened)) {
            let value = encode(*extent, opened);
            if store.insert_common(&[PREFIX, &number.to_be_bytes()].concat(), &value)? != value {
                break;
            }
        }
        Self::of(store)
    }

    /// These extents and one more, of partitions that nobody has yet, for the groups from `from`
    /// on. None of these groups may have been given yet.
    pub fn grown(&self, from: GroupNumber, count: u16) -> Result<Self, ExtentError> {
        self.grown_after(OpenedAccounts::new(), from, count)
    }

    /// The same, where these accounts were opened shortly before.
    pub fn grown_after(&self, opened: OpenedAccounts, from: GroupNumber, count: u16) -> Result<Self, ExtentError> {
        let first = u16::try_from(self.partitions()).map_err(|_| ExtentError::TooMany)?;
        let added = Extent { from, first: Partition(first), count };
        Self::admitted([self.all.as_slice(), &[added]].concat(), [self.opened.as_slice(), &[opened]].concat())
    }

    /// The partition in which a request with one of these idempotency keys opened an account before
    /// an extent was added. `None` if no such request is known, or its key has expired.
    pub fn opened_before(&self, keys: &[Fingerprint], now: Timestamp) -> Option<Partition> {
        let is_recent = |(at, _): &&(Timestamp, Partition)| now.0 - at.0 < IDEMPOTENCY_KEPT_MS;
        let found = self.opened.iter().flat_map(|opened| keys.iter().filter_map(|key| opened.get(key)));
        found.rev().find(is_recent).map(|(_, partition)| *partition)
    }

    /// How many partitions there are; they are numbered from 0.
    pub fn partitions(&self) -> u32 {
        self.all.iter().map(|extent| u32::from(extent.count)).sum()
    }

    /// The partitions, in their order.
    pub fn all(&self) -> impl Iterator<Item = Partition> + use<> {
        (0..self.partitions()).map(|number| Partition(number as u16))
    }

    /// The partition of a group.
    pub fn partition_of(&self, group: GroupNumber) -> Partition {
        self.place_of(group).0
    }

    /// The partition of a group, and its place among the groups of that partition.
    pub fn place_of(&self, group: GroupNumber) -> (Partition, u32) {
        // The first extent has group 0, so there is always one.
        let extent = self.all.iter().rfind(|extent| extent.from <= group).unwrap_or(&self.all[0]);
        let (within, count) = (group.0 - extent.from.0, u32::from(extent.count));
        (Partition(extent.first.0 + (within % count) as u16), within / count)
    }

    /// The group at a place of a partition; `None` if another partition has that group, or none
    /// has.
    pub fn group_at(&self, partition: Partition, place: u32) -> Option<GroupNumber> {
        let extent = self.all.iter().rfind(|extent| extent.first <= partition)?;
        let within = u64::from(place) * u64::from(extent.count) + u64::from(partition.0 - extent.first.0);
        let group = GroupNumber(u32::try_from(u64::from(extent.from.0) + within).ok()?);
        (self.place_of(group) == (partition, place)).then_some(group)
    }

    /// The partitions to which new groups are dealt out.
    pub fn growing(&self) -> Extent {
        self.all[self.all.len() - 1]
    }
}

/// Places of one partition's groups in its tables, so that a table is as long as the partition has
/// groups. By default those of the only partition: a group's number is its place.
#[derive(Clone, Debug, Default)]
pub struct Places {
    extents: Arc<Extents>,
    partition: Partition,
}

impl Places {
    /// Places of a partition.
    pub fn new(extents: Arc<Extents>, partition: Partition) -> Self {
        Self { extents, partition }
    }

    /// The place of a group, which is one of this partition's.
    pub fn of(&self, group: GroupNumber) -> usize {
        let (partition, place) = self.extents.place_of(group);
        debug_assert_eq!(partition, self.partition, "{group:?} is in another partition");
        place as usize
    }

    /// The group at a place; `None` if the partition has none there.
    pub fn group(&self, place: usize) -> Option<GroupNumber> {
        self.extents.group_at(self.partition, u32::try_from(place).ok()?)
    }
}

/// Bytes of an extent, and of each account after it: key, time of opening, partition.
const EXTENT_BYTES: usize = 8;
const ACCOUNT_BYTES: usize = 26;

fn encode(extent: Extent, opened: &OpenedAccounts) -> Vec<u8> {
    let mut value =
        [&extent.from.0.to_be_bytes()[..], &extent.first.0.to_be_bytes(), &extent.count.to_be_bytes()].concat();
    for (key, (at, partition)) in opened {
        value.extend([&key.0[..], &at.0.to_be_bytes(), &partition.0.to_be_bytes()].concat());
    }
    value
}

fn decode(value: &[u8]) -> Option<(Extent, OpenedAccounts)> {
    let (extent, accounts) = value.split_first_chunk::<EXTENT_BYTES>()?;
    let [from @ .., first, first_low, count, count_low] = *extent;
    let (first, count) = (u16::from_be_bytes([first, first_low]), u16::from_be_bytes([count, count_low]));
    let extent = Extent { from: GroupNumber(u32::from_be_bytes(from)), first: Partition(first), count };
    let (accounts, rest) = accounts.as_chunks::<ACCOUNT_BYTES>();
    let account = |bytes: &[u8; ACCOUNT_BYTES]| {
        let (key, rest) = bytes.split_first_chunk::<16>()?;
        let (at, partition) = rest.split_first_chunk::<8>()?;
        let partition = Partition(u16::from_be_bytes(partition.try_into().ok()?));
        Some((Fingerprint(*key), (Timestamp(i64::from_be_bytes(*at)), partition)))
    };
    let accounts: Option<OpenedAccounts> = accounts.iter().map(account).collect();
    rest.is_empty().then_some((extent, accounts?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use store::testkit::MemoryStore;

    /// Extents that grew by these numbers of groups and partitions.
    fn grown(steps: &[(u32, u16)]) -> Extents {
        let mut from = 0;
        let mut all = Vec::new();
        let mut first = 0;
        for (groups, count) in steps {
            all.push(Extent { from: GroupNumber(from), first: Partition(first), count: *count });
            (from, first) = (from + groups, first + count);
        }
        Extents::new(all).unwrap()
    }

    fn steps() -> impl Strategy<Value = Vec<(u32, u16)>> {
        prop::collection::vec((1_u32..400, 1_u16..20), 1..5)
    }

    proptest! {
        #[test]
        fn every_group_has_one_place_and_every_place_at_most_one_group(steps in steps()) {
            let extents = grown(&steps);
            let groups = steps.iter().map(|(groups, _)| groups).sum::<u32>();
            let mut places = BTreeSet::new();
            for group in (0..groups + 50).map(GroupNumber) {
                let (partition, place) = extents.place_of(group);
                prop_assert_eq!(extents.partition_of(group), partition);
                prop_assert!(u32::from(partition.0) < extents.partitions());
                prop_assert!(places.insert((partition, place)), "two groups at {:?}", (partition, place));
                prop_assert_eq!(extents.group_at(partition, place), Some(group));
            }
            // The places of a partition are dense: its tables have no holes.
            for (partition, place) in &places {
                prop_assert!(*place == 0 || places.contains(&(*partition, place - 1)));
            }
        }

        #[test]
        fn growing_moves_no_group_and_gives_new_ones_to_new_partitions(steps in steps(), count in 1_u16..70) {
            let before = grown(&steps);
            let from = GroupNumber(steps.iter().map(|(groups, _)| groups).sum());
            let after = before.grown(from, count).unwrap();
            for group in (0..from.0).map(GroupNumber) {
                prop_assert_eq!(after.place_of(group), before.place_of(group));
            }
            let new: BTreeSet<_> =
                (from.0..from.0 + u32::from(count)).map(|group| after.partition_of(GroupNumber(group))).collect();
            prop_assert_eq!(new.len(), usize::from(count), "each new partition has one of the next groups");
            prop_assert!(new.iter().all(|partition| u32::from(partition.0) >= before.partitions()));
            prop_assert_eq!(after.partitions(), before.partitions() + u32::from(count));
        }

        #[test]
        fn a_place_beyond_an_extent_has_no_group(steps in steps(), place in 0_u32..2_000) {
            let extents = grown(&steps);
            for partition in (0..extents.partitions() as u16).map(Partition) {
                if let Some(group) = extents.group_at(partition, place) {
                    prop_assert_eq!(extents.place_of(group), (partition, place));
                }
            }
        }
    }

    #[test]
    fn a_moved_journal_is_whole_and_the_last_group_has_a_place() {
        let moved = Extents::default();
        assert_eq!(moved.place_of(GroupNumber(u32::MAX)), (Partition(0), u32::MAX));
        let grown = moved.grown(GroupNumber(7), 64).unwrap();
        assert!((0..7).all(|group| grown.partition_of(GroupNumber(group)) == Partition(0)));
        assert_eq!(grown.growing(), Extent { from: GroupNumber(7), first: Partition(1), count: 64 });
        assert_eq!(grown.partition_of(HOUSE), Partition(0));
        assert_eq!(grown.partition_of(GroupNumber(8)), Partition(2));
        assert_eq!(grown.group_at(Partition(0), 7), None, "that group is in another partition");
        assert_eq!(grown.group_at(Partition(64), u32::MAX), None);
    }

    #[test]
    fn contradictions_are_refused() {
        let extent = |from, first, count| Extent { from: GroupNumber(from), first: Partition(first), count };
        let refused = [
            vec![],
            vec![extent(1, 0, 1)],
            vec![extent(0, 1, 1)],
            vec![extent(0, 0, 0)],
            vec![extent(0, 0, 2), extent(0, 2, 1)],
            vec![extent(0, 0, 2), extent(9, 1, 1)],
            vec![extent(0, 0, 2), extent(9, 3, 1)],
        ];
        for extents in refused {
            assert!(matches!(Extents::new(extents.clone()), Err(ExtentError::Contradiction(_))), "{extents:?}");
        }
        let all = Extents::new(vec![extent(0, 0, u16::MAX), extent(1, u16::MAX, 1)]).unwrap();
        assert_eq!(all.partitions(), 0x1_0000);
        assert!(matches!(all.grown(GroupNumber(2), 1), Err(ExtentError::TooMany)));
    }

    #[test]
    fn a_new_store_gets_partitions_and_one_with_a_journal_keeps_what_it_has() {
        let [one, four] = [1, 4].map(|count| NonZeroU16::new(count).unwrap());
        let store = MemoryStore::new();
        assert_eq!(Extents::made(&store, four).unwrap(), Extents::of_partitions(four));
        assert_eq!(Extents::made(&store, one).unwrap(), Extents::of_partitions(four), "they were made before");
        let store = MemoryStore::new();
        assert_eq!(Extents::made(&store, one).unwrap(), Extents::default());
        assert_eq!(Extents::made(&store, four).unwrap(), Extents::default(), "another process serves it so");
        let store = MemoryStore::new();
        store::testkit::conformance::append(&store.part(), vec![b"a Record".to_vec()]);
        assert_eq!(Extents::made(&store, four).unwrap(), Extents::default());
    }

    #[test]
    fn accounts_that_were_opened_before_are_found_until_their_keys_are_forgotten() {
        let store = MemoryStore::new();
        let key = |byte| Fingerprint([byte; 16]);
        let opened = |byte, at, partition| OpenedAccounts::from([(key(byte), (Timestamp(at), Partition(partition)))]);
        let grown = Extents::default().grown_after(opened(1, 5_000, 0), GroupNumber(9), 2).unwrap();
        let grown = grown.grown_after(opened(2, 7_000, 2), GroupNumber(20), 2).unwrap();
        assert_eq!(grown.keep(&store).unwrap(), grown);
        let stored = Extents::of(&store).unwrap();
        assert_eq!(stored, grown);
        let until = 5_000 + IDEMPOTENCY_KEPT_MS;
        assert_eq!(stored.opened_before(&[key(7), key(1)], Timestamp(until - 1)), Some(Partition(0)));
        assert_eq!(stored.opened_before(&[key(1)], Timestamp(until)), None, "the key may be used anew");
        assert_eq!(stored.opened_before(&[key(2)], Timestamp(until)), Some(Partition(2)));
        assert_eq!(stored.opened_before(&[key(3)], Timestamp(0)), None);
    }

    #[test]
    fn a_store_keeps_them_and_the_first_writer_wins() {
        let store = MemoryStore::new();
        assert_eq!(Extents::of(&store).unwrap(), Extents::default());
        let one = Extents::default().grown(GroupNumber(300), 64).unwrap();
        assert_eq!(one.keep(&store).unwrap(), one);
        for from in [300, 200] {
            let late = Extents::default().grown(GroupNumber(from), 16).unwrap().grown(GroupNumber(900), 1).unwrap();
            assert_eq!(late.keep(&store).unwrap(), one, "both work with what stands");
        }
        store.insert_common(b"stamp/extent/\0\0\0\x02", &[0; 8]).unwrap();
        assert!(matches!(Extents::of(&store), Err(ExtentError::Contradiction(_))));
    }
}
