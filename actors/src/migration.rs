//! Migration of the books from one store to another, such as from a folder to a database: every
//! block of every partition byte by byte, and the values beside the journal that can't be made
//! again from it.
//!
//! What is moved: the blocks, with their hashes; common keys (sealed keys of months, the proof of
//! the master key, the mode, the extents); the cursors (how far webhooks were delivered); results
//! of reconciliations and the last checkpoint that was sent. The target makes the rest again:
//! index, snapshots, read model, balance files. A value of an unknown kind is an error, so that
//! none is left behind in silence.
//!
//! An interrupted migration goes on where it ended: the target's blocks must be the first ones of
//! the source, in each partition. The source is only read.

use std::collections::BTreeMap;

use crate::backup::durable_values;
use crate::engine::KEPT_PREFIX;
use derived::heads::{Heads, named};
use derived::outbox;
use store::{Block, COMMON_PREFIXES, Head, Part, Partition, Position, Sequence, StoreError};

/// What the keys of the state area begin with whose values are made again from the journal.
const DERIVED_PREFIXES: [&[u8]; 3] = [b"snapshot/", b"section/", b"readers"];

/// Why the books were not moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The source can't be read, or is damaged.
    #[error("the source: {0}")]
    Source(StoreError),
    /// The target can't be written or read.
    #[error("the target: {0}")]
    Target(StoreError),
    /// The target has blocks that the source does not have.
    #[error("the target holds the books of another journal, or is further than the source: they differ at {}", named(*at))]
    OtherJournal {
        /// The first Record that differs.
        at: Position,
    },
    /// Source and target have other partitions.
    #[error("the source has {source_has} partitions, and the target {target_has}")]
    OtherPartitions {
        /// Partitions of the source.
        source_has: usize,
        /// Partitions of the target.
        target_has: usize,
    },
    /// The target lost or changed a part of the copy.
    #[error("the target does not hold what it was given: {0}")]
    Differs(String),
    /// The source has a value of a kind that this release does not know.
    #[error("the source has a value under `{0}`, which this release can't move: use the release that wrote it")]
    UnknownValue(String),
}

/// Values beside the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedValues {
    /// By key.
    common: BTreeMap<Vec<u8>, Vec<u8>>,
    /// By partition and key.
    cursors: BTreeMap<(Partition, Vec<u8>), Vec<u8>>,
    side_values: BTreeMap<(Partition, Vec<u8>), Vec<u8>>,
}

/// What was copied and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationResult {
    /// The heads, which both have.
    pub heads: Heads,
    /// Blocks, each the same in both.
    pub blocks: u64,
}

/// Copies what the target lacks of the blocks and values of a source to which nobody writes. Both
/// are given as all their partitions, in order. `progress` gets the Records that the target has,
/// and their total.
pub fn copy(
    source: &[Part],
    target: &[Part],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MovedValues, MigrationError> {
    if source.len() != target.len() {
        return Err(MigrationError::OtherPartitions { source_has: source.len(), target_has: target.len() });
    }
    let values = MovedValues::read(source, MigrationError::Source, MigrationError::UnknownValue)?;
    let heads = Heads::of_parts(source).map_err(MigrationError::Source)?;
    let begun = Heads::of_parts(target).map_err(MigrationError::Target)?;
    for part in source {
        admit_begun(part, begun.of(part.partition()))?;
    }
    values.write(target).map_err(MigrationError::Target)?;
    let (mut copied, total) = (begun.records(), heads.records());
    progress(copied, total);
    for (from, to) in source.iter().zip(target) {
        for block in from.blocks(begun.of(from.partition()).next) {
            let block = block.map_err(MigrationError::Source)?;
            to.append(&block).map_err(MigrationError::Target)?;
            copied += block.records.len() as u64;
            progress(copied, total);
        }
    }
    Ok(values)
}

/// Reads all blocks of both, and compares them byte by byte, with their hashes and the heads.
/// `progress` gets the Records that are the same, and their total.
pub fn compare(
    source: &[Part],
    target: &[Part],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MigrationResult, MigrationError> {
    let heads = Heads::of_parts(source).map_err(MigrationError::Source)?;
    let there = Heads::of_parts(target).map_err(MigrationError::Target)?;
    if let Some((partition, ..)) = heads.first_difference(&there) {
        return Err(MigrationError::Differs(format!("the head of partition {} is another one", partition.0)));
    }
    let (mut compared, total, mut blocks) = (0, heads.records(), 0);
    let mut last = Heads::default();
    for (from, to) in source.iter().zip(target) {
        let mut copies = to.blocks(Sequence::FIRST);
        for block in from.blocks(Sequence::FIRST) {
            let block = block.map_err(MigrationError::Source)?;
            let copied = copies.next().transpose().map_err(MigrationError::Target)?;
            if !copied.is_some_and(|copied| copied == block && copied.hash() == block.hash()) {
                let at = named(Position { partition: block.partition, sequence: block.first });
                return Err(MigrationError::Differs(format!("the block at {at} is another one")));
            }
            last.pass(&block).map_err(MigrationError::Source)?;
            blocks += 1;
            compared += block.records.len() as u64;
            progress(compared, total);
        }
        if copies.next().is_some() {
            return Err(MigrationError::Differs("it has more blocks".to_owned()));
        }
    }
    if last != heads {
        return Err(MigrationError::Differs("it has fewer blocks".to_owned()));
    }
    Ok(MigrationResult { heads, blocks })
}

impl MovedValues {
    /// Compares them with those of a target.
    pub fn compare(&self, target: &[Part]) -> Result<(), MigrationError> {
        let unknown = |key| MigrationError::Differs(format!("it has a value under `{key}`"));
        match Self::read(target, MigrationError::Target, unknown)? == *self {
            true => Ok(()),
            false => Err(MigrationError::Differs("its values beside the journal are others".to_owned())),
        }
    }

    /// How many there are: sealed keys and stamps, cursors of webhooks, side values.
    pub fn counts(&self) -> [usize; 3] {
        [self.common.len(), self.cursors.len(), self.side_values.len()]
    }

    /// The values of a store, or why they can't be moved: it can't be read, or has a value under an
    /// unknown key.
    fn read(
        parts: &[Part],
        failed: fn(StoreError) -> MigrationError,
        unknown: fn(String) -> MigrationError,
    ) -> Result<Self, MigrationError> {
        let values = durable_values(parts).map_err(failed)?.into_iter();
        let (cursors, common): (Vec<_>, Vec<_>) = values.partition(|value| value.key.starts_with(outbox::PREFIX));
        let common = common.into_iter().map(|value| (value.key, value.value)).collect();
        let cursors = cursors.into_iter().map(|value| ((value.partition, value.key), value.value)).collect();
        let mut side_values = BTreeMap::new();
        for part in parts {
            for key in part.state_keys(b"").map_err(failed)? {
                let begins = |prefix: &&[u8]| key.starts_with(prefix);
                if key.starts_with(KEPT_PREFIX) {
                    let value = part.state(&key).map_err(failed)?;
                    side_values.extend(value.map(|value| ((part.partition(), key), value)));
                } else if !COMMON_PREFIXES.iter().chain(&DERIVED_PREFIXES).any(begins) {
                    return Err(unknown(String::from_utf8_lossy(&key).into_owned()));
                }
            }
        }
        Ok(Self { common, cursors, side_values })
    }

    /// Gives the target these values and no others.
    fn write(&self, target: &[Part]) -> Result<(), StoreError> {
        for (place, part) in target.iter().enumerate() {
            if place == 0 {
                self.write_common(part)?;
            }
            let of_part = |values: &BTreeMap<(Partition, Vec<u8>), Vec<u8>>| -> BTreeMap<Vec<u8>, Vec<u8>> {
                let values = values.iter().filter(|((partition, _), _)| *partition == part.partition());
                values.map(|((_, key), value)| (key.clone(), value.clone())).collect()
            };
            let (cursors, side_values) = (of_part(&self.cursors), of_part(&self.side_values));
            for key in part.cursor_keys()?.iter().filter(|key| !cursors.contains_key(*key)) {
                part.delete_cursor(key)?;
            }
            cursors.iter().try_for_each(|(key, value)| part.put_cursor(key, value))?;
            for key in part.state_keys(KEPT_PREFIX)?.iter().filter(|key| !side_values.contains_key(*key)) {
                part.delete_state(key)?;
            }
            side_values.iter().try_for_each(|(key, value)| part.put_state(key, value))?;
        }
        Ok(())
    }

    fn write_common(&self, target: &Part) -> Result<(), StoreError> {
        for (key, _) in target.store().commons()? {
            if !self.common.contains_key(&key) && !store::place_stamps::is_of_place(&key) {
                target.store().remove_common(&key)?;
            }
        }
        for (key, value) in &self.common {
            if target.store().insert_common(key, value)? != *value {
                target.store().remove_common(key)?;
                target.store().insert_common(key, value)?;
            }
        }
        Ok(())
    }
}

/// Refuses a target whose last block of a partition is not at its place in the source.
fn admit_begun(source: &Part, begun: Head) -> Result<(), MigrationError> {
    if begun == Head::EMPTY {
        return Ok(());
    }
    let last = Sequence(begun.next.0 - 1);
    let there: Option<Block> = source.blocks(last).next().transpose().map_err(MigrationError::Source)?;
    match there.is_some_and(|block| Head::after(&block, block.hash()) == begun) {
        true => Ok(()),
        false => Err(MigrationError::OtherJournal { at: Position { partition: source.partition(), sequence: last } }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;
    use crate::backup::DurableValue;
    use derived::extents::{Extent, Extents};
    use ledger::id::GroupNumber;
    use store::place_stamps::{admit_reading, admit_serving, stamp_filling, stamp_moved, stamp_whole};
    use store::testkit::MemoryStore;
    use store::{BlockHash, SledOptions, SledStore, Store};

    fn extend(store: &Part, word: &str, blocks: u64) {
        let partition = store.partition();
        for number in 0..blocks {
            let Head { next, hash, booked_at_ms } = store.head().unwrap();
            let records = (0..=number % 3).map(|record| format!("{word} {number} {record}").into_bytes()).collect();
            let booked_at_ms = booked_at_ms.max(0) + 1;
            store.append(&Block { partition, first: next, booked_at_ms, previous: hash, records }).unwrap();
        }
    }

    /// A store with blocks, all kinds of values that are moved, and some that are made again.
    fn furnished(store: Arc<dyn Store>, blocks: u64) -> Part {
        let part = store::testkit::part(store);
        extend(&part, "a", blocks);
        for key in ["keys/proof", "keys/month/00671", "stamp/mode"] {
            part.store().insert_common(key.as_bytes(), key.as_bytes()).unwrap();
        }
        part.put_cursor(b"webhooks/1/2", b"progress").unwrap();
        part.put_state(b"kept/checkpoint", b"the last one").unwrap();
        part.put_state(b"kept/reconciliation/abc", &[7; 20_000]).unwrap();
        for key in ["snapshot/1", "section/1", "readers", "readers/1"] {
            part.put_state_lazily(key.as_bytes(), b"derived").unwrap();
        }
        part.put_file("run-1", b"derived").unwrap();
        part
    }

    fn blocks(store: &Part) -> Vec<Block> {
        store.blocks(Sequence::FIRST).map(Result::unwrap).collect()
    }

    fn durable_values(store: &Part) -> Result<Vec<DurableValue>, StoreError> {
        crate::backup::durable_values([store])
    }

    fn migrate(source: &Part, target: &Part) -> Result<MigrationResult, MigrationError> {
        migrate_all(std::slice::from_ref(source), std::slice::from_ref(target))
    }

    fn migrate_all(source: &[Part], target: &[Part]) -> Result<MigrationResult, MigrationError> {
        let values = copy(source, target, &mut |_, _| {})?;
        let compared = compare(source, target, &mut |_, _| {})?;
        values.compare(target)?;
        Ok(compared)
    }

    #[test]
    fn what_cannot_be_made_again_is_moved_between_all_kinds_of_stores() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let sled = |at: usize| -> Arc<dyn Store> {
            Arc::new(SledStore::open(folders[at].path(), &SledOptions::default()).unwrap())
        };
        let source = furnished(sled(0), 40);
        let memory = MemoryStore::new().part();
        let there = migrate(&source, &memory).unwrap();
        let back = store::testkit::part(sled(1));
        assert_eq!(migrate(&memory, &back).unwrap(), there);
        assert_eq!((there.blocks, there.heads.of(Partition(0))), (40, source.head().unwrap()));
        for target in [&memory, &back] {
            assert_eq!(blocks(target), blocks(&source));
            assert_eq!(durable_values(target).unwrap(), durable_values(&source).unwrap());
            assert_eq!(target.cursor(b"webhooks/1/2").unwrap().unwrap(), b"progress");
            assert_eq!(target.state(b"kept/checkpoint").unwrap().unwrap(), b"the last one");
            assert_eq!(target.state(b"kept/reconciliation/abc").unwrap().unwrap(), [7; 20_000]);
            for derived in ["snapshot/", "section/", "readers"] {
                assert!(target.state_keys(derived.as_bytes()).unwrap().is_empty(), "{derived}");
            }
            assert_eq!(target.files().unwrap(), []);
        }
    }

    #[test]
    fn an_interrupted_one_goes_on_after_any_block_and_follows_changes_of_the_source() {
        let source = furnished(Arc::new(MemoryStore::new()), 9);
        for cut in 0..9 {
            let target = MemoryStore::new().part();
            let mut seen = 0;
            let killed = catch_unwind(AssertUnwindSafe(|| {
                copy(std::slice::from_ref(&source), std::slice::from_ref(&target), &mut |_, _| {
                    assert!(seen < cut, "killed");
                    seen += 1;
                })
            }));
            assert!(killed.is_err());
            // Meanwhile the source was served again: values came and went.
            let source = furnished(Arc::new(MemoryStore::new()), 11);
            source.store().remove_common(b"keys/month/00671").unwrap();
            source.store().remove_common(b"stamp/mode").unwrap();
            source.store().insert_common(b"stamp/mode", b"other").unwrap();
            source.delete_cursor(b"webhooks/1/2").unwrap();
            source.delete_state(b"kept/checkpoint").unwrap();
            migrate(&source, &target).unwrap();
            assert_eq!(blocks(&target), blocks(&source));
            assert_eq!(durable_values(&target).unwrap(), durable_values(&source).unwrap());
        }
    }

    #[test]
    fn a_target_of_another_journal_is_refused_and_left_as_it_was() {
        let source = furnished(Arc::new(MemoryStore::new()), 5);
        let (other, further) = (MemoryStore::new().part(), furnished(Arc::new(MemoryStore::new()), 6));
        extend(&other, "b", 3);
        for target in [&other, &further] {
            let before = (blocks(target), durable_values(target).unwrap());
            let error = migrate(&source, target).unwrap_err();
            assert!(matches!(error, MigrationError::OtherJournal { .. }), "{error}");
            assert_eq!((blocks(target), durable_values(target).unwrap()), before);
        }
    }

    #[test]
    fn a_difference_is_found_wherever_it_is() {
        let source = furnished(Arc::new(MemoryStore::new()), 4);
        let target = MemoryStore::new().part();
        let (sources, targets) = ([source], [target]);
        let values = copy(&sources, &targets, &mut |_, _| {}).unwrap();
        targets[0].put_cursor(b"webhooks/1/2", b"other progress").unwrap();
        assert!(matches!(values.compare(&targets), Err(MigrationError::Differs(_))));
        // Of the same length, with a chain of its own.
        let (one, other) = (MemoryStore::new().part(), MemoryStore::new().part());
        extend(&one, "a", 4);
        extend(&other, "b", 4);
        assert_ne!(one.head().unwrap().hash, BlockHash::ZERO);
        let error = compare(&[one], &[other], &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, MigrationError::Differs(_)), "{error}");
    }

    #[test]
    fn a_value_of_an_unknown_kind_is_not_left_behind() {
        let source = furnished(Arc::new(MemoryStore::new()), 1);
        source.put_state(b"novel/1", b"value").unwrap();
        let target = MemoryStore::new().part();
        let error = migrate(&source, &target).unwrap_err();
        assert!(error.to_string().contains("`novel/1`"), "{error}");
        assert_eq!(blocks(&target), []);
    }

    /// The partitions of a store with three of them.
    fn three(store: Arc<dyn Store>) -> Vec<Part> {
        let all = Extent { from: GroupNumber(0), first: Partition(0), count: 3 };
        let extents = Extents::new(vec![all]).unwrap().keep(&*store).unwrap();
        extents.all().map(|partition| Part::take(Arc::clone(&store), partition).unwrap()).collect()
    }

    /// Three partitions; the middle one has no blocks.
    fn furnished_three(store: Arc<dyn Store>) -> Vec<Part> {
        let parts = three(store);
        for (at, blocks) in [(0, 5), (2, 7)] {
            extend(&parts[at], "a", blocks);
            parts[at].put_cursor(b"webhooks/1/2", format!("progress {at}").as_bytes()).unwrap();
            parts[at].put_state(b"kept/value", format!("kept {at}").as_bytes()).unwrap();
        }
        parts
    }

    /// Blocks and side values of each partition, and the durable values.
    type Contents = (Vec<Vec<Block>>, Vec<DurableValue>, Vec<Option<Vec<u8>>>);

    fn contents(parts: &[Part]) -> Contents {
        let side_values = parts.iter().map(|part| part.state(b"kept/value").unwrap()).collect();
        (parts.iter().map(blocks).collect(), crate::backup::durable_values(parts).unwrap(), side_values)
    }

    #[test]
    fn all_partitions_are_moved_there_and_back_with_the_extents() {
        let folder = tempfile::tempdir().unwrap();
        let source = furnished_three(Arc::new(MemoryStore::new()));
        let sled: Arc<dyn Store> = Arc::new(SledStore::open(folder.path(), &SledOptions::default()).unwrap());
        let there = three(sled);
        let moved = migrate_all(&source, &there).unwrap();
        assert_eq!((moved.blocks, moved.heads.cut().to_string()), (12, "0=9,1=0,2=13".to_owned()));
        drop(there);
        let sled: Arc<dyn Store> = Arc::new(SledStore::open(folder.path(), &SledOptions::default()).unwrap());
        let there = Extents::parts_of(&sled).unwrap();
        assert_eq!(contents(&there), contents(&source));
        let back = three(Arc::new(MemoryStore::new()));
        assert_eq!(migrate_all(&there, &back).unwrap(), moved);
        assert_eq!(contents(&back), contents(&source));
    }

    #[test]
    fn an_interrupted_one_of_several_partitions_goes_on() {
        let source = furnished_three(Arc::new(MemoryStore::new()));
        for cut in 0..13 {
            let target = three(Arc::new(MemoryStore::new()));
            let mut seen = 0;
            let killed = catch_unwind(AssertUnwindSafe(|| {
                copy(&source, &target, &mut |_, _| {
                    assert!(seen < cut, "killed");
                    seen += 1;
                })
            }));
            assert!(killed.is_err());
            migrate_all(&source, &target).unwrap();
            assert_eq!(contents(&target), contents(&source));
        }
    }

    #[test]
    fn a_difference_in_one_partition_is_found() {
        let source = furnished_three(Arc::new(MemoryStore::new()));
        let other = three(Arc::new(MemoryStore::new()));
        extend(&other[2], "b", 7);
        let error = migrate_all(&source, &other).unwrap_err().to_string();
        assert!(error.ends_with("they differ at sequence 13 of partition 2"), "{error}");
        extend(&other[0], "a", 5);
        let error = compare(&source, &other, &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.ends_with("the head of partition 2 is another one"), "{error}");
        let target = three(Arc::new(MemoryStore::new()));
        let values = copy(&source, &target, &mut |_, _| {}).unwrap();
        target[2].put_state(b"kept/value", b"another").unwrap();
        assert!(matches!(values.compare(&target), Err(MigrationError::Differs(_))));
        assert!(matches!(copy(&source, &target[..2], &mut |_, _| {}), Err(MigrationError::OtherPartitions { .. })));
    }

    #[test]
    fn stamps_keep_a_place_from_being_served_and_stay_there() {
        let store = MemoryStore::new();
        let part = furnished(Arc::new(store.clone()), 2);
        assert_eq!(stamp_filling(&store, "migrate from A").unwrap(), "migrate from A");
        assert_eq!(stamp_filling(&store, "restore").unwrap(), "migrate from A", "the first one wins");
        for refused in [admit_reading(&store), admit_serving(&store)] {
            assert!(refused.unwrap_err().to_string().contains("`migrate from A` has not finished"));
        }
        stamp_whole(&store).unwrap();
        stamp_moved(&store, "postgres://db/books").unwrap();
        admit_reading(&store).unwrap();
        assert!(admit_serving(&store).unwrap_err().to_string().contains("were moved to postgres://db/books"));
        let target = MemoryStore::new();
        migrate(&part, &target.part()).unwrap();
        admit_serving(&target).unwrap();
    }
}
