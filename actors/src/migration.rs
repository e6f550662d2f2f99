//! Migration of the books from one store to another, such as from a folder to a database: every
//! block byte by byte, and the values beside the journal that can't be made again from it.
//!
//! What is moved: the blocks, with their hashes; common keys (sealed keys of months, the proof of
//! the master key, the mode); the cursors (how far webhooks were delivered); results of
//! reconciliations and the last checkpoint that was sent. The target makes the rest again: index,
//! snapshots, read model, balance files. A value of an unknown kind is an error, so that none is
//! left behind in silence.
//!
//! An interrupted migration goes on where it ended: the target's blocks must be the first ones of
//! the source. The source is only read.

use std::collections::BTreeMap;

use crate::backup::durable_values;
use crate::engine::KEPT_PREFIX;
use crate::outbox;
use crate::store::{Block, COMMON_PREFIXES, Head, Part, Sequence, StoreError};

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
    #[error(
        "the target holds the books of another journal, or is further than the source: they differ at Record {}",
        sequence.0
    )]
    OtherJournal {
        /// The first Record that differs.
        sequence: Sequence,
    },
    /// The target lost or changed a part of the copy.
    #[error("the target does not hold what it was given: {0}")]
    Differs(String),
    /// The source has a value of a kind that this release does not know.
    #[error("the source has a value under `{0}`, which this release can't move: use the release that wrote it")]
    UnknownValue(String),
}

/// Progress: Records done, and their total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationProgress {
    /// Records that the target has.
    Copied(u64, u64),
    /// Records that were read from both and are the same.
    Compared(u64, u64),
}

/// Values beside the journal, by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedValues {
    common: BTreeMap<Vec<u8>, Vec<u8>>,
    cursors: BTreeMap<Vec<u8>, Vec<u8>>,
    kept: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What was copied and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The head, which both have.
    pub head: Head,
    /// Blocks, each the same in both.
    pub blocks: u64,
}

/// Copies what the target lacks of the blocks and values of a source to which nobody writes.
pub fn copy(
    source: &Part,
    target: &Part,
    progress: &mut dyn FnMut(MigrationProgress),
) -> Result<MovedValues, MigrationError> {
    let values = MovedValues::read(source).map_err(ReadError::of_source)?;
    let head = source.head().map_err(MigrationError::Source)?;
    let begun = target.head().map_err(MigrationError::Target)?;
    admit_begun(source, begun)?;
    values.write(target).map_err(MigrationError::Target)?;
    let total = head.next.0 - 1;
    progress(MigrationProgress::Copied(begun.next.0 - 1, total));
    for block in source.blocks(begun.next) {
        let block = block.map_err(MigrationError::Source)?;
        target.append(&block).map_err(MigrationError::Target)?;
        progress(MigrationProgress::Copied(block.next().0 - 1, total));
    }
    Ok(values)
}

/// Reads all blocks of both, and compares them byte by byte, with their hashes and the head.
pub fn compare(
    source: &Part,
    target: &Part,
    progress: &mut dyn FnMut(MigrationProgress),
) -> Result<Compared, MigrationError> {
    let head = source.head().map_err(MigrationError::Source)?;
    if target.head().map_err(MigrationError::Target)? != head {
        return Err(MigrationError::Differs("its head is another one".to_owned()));
    }
    let (total, mut blocks) = (head.next.0 - 1, 0);
    let mut copies = target.blocks(Sequence::FIRST);
    let mut last = Head::EMPTY;
    for block in source.blocks(Sequence::FIRST) {
        let block = block.map_err(MigrationError::Source)?;
        let copied = copies.next().transpose().map_err(MigrationError::Target)?;
        let hash = block.hash();
        if !copied.is_some_and(|copied| copied == block && copied.hash() == hash) {
            return Err(MigrationError::Differs(format!("block {} is another one", block.first.0)));
        }
        last = Head::after(&block, hash);
        blocks += 1;
        progress(MigrationProgress::Compared(block.next().0 - 1, total));
    }
    if copies.next().is_some() || last != head {
        return Err(MigrationError::Differs("it has more blocks, or fewer".to_owned()));
    }
    Ok(Compared { head, blocks })
}

impl MovedValues {
    /// Compares them with those of a target.
    pub fn compare(&self, target: &Part) -> Result<(), MigrationError> {
        match Self::read(target).map_err(ReadError::of_target)? == *self {
            true => Ok(()),
            false => Err(MigrationError::Differs("its values beside the journal are others".to_owned())),
        }
    }

    /// How many there are: sealed keys and stamps, cursors of webhooks, kept results.
    pub fn counts(&self) -> [usize; 3] {
        [self.common.len(), self.cursors.len(), self.kept.len()]
    }

    fn read(store: &Part) -> Result<Self, ReadError> {
        let (cursors, common) =
            durable_values(store)?.into_iter().partition(|(key, _)| key.starts_with(outbox::PREFIX));
        let mut kept = BTreeMap::new();
        for key in store.state_keys(b"")? {
            let begins = |prefix: &&[u8]| key.starts_with(prefix);
            if key.starts_with(KEPT_PREFIX) {
                kept.extend(store.state(&key)?.map(|value| (key, value)));
            } else if !COMMON_PREFIXES.iter().chain(&DERIVED_PREFIXES).any(begins) {
                return Err(ReadError::Unknown(String::from_utf8_lossy(&key).into_owned()));
            }
        }
        Ok(Self { common, cursors, kept })
    }

    /// Gives the target these values and no others.
    fn write(&self, target: &Part) -> Result<(), StoreError> {
        for (key, _) in target.store().commons()? {
            if !self.common.contains_key(&key) && !crate::store::place::is_of_place(&key) {
                target.store().remove_common(&key)?;
            }
        }
        for (key, value) in &self.common {
            if target.store().insert_common(key, value)? != *value {
                target.store().remove_common(key)?;
                target.store().insert_common(key, value)?;
            }
        }
        for key in target.cursor_keys()?.iter().filter(|key| !self.cursors.contains_key(*key)) {
            target.delete_cursor(key)?;
        }
        self.cursors.iter().try_for_each(|(key, value)| target.put_cursor(key, value))?;
        for key in target.state_keys(KEPT_PREFIX)?.iter().filter(|key| !self.kept.contains_key(*key)) {
            target.delete_state(key)?;
        }
        self.kept.iter().try_for_each(|(key, value)| target.put_state(key, value))
    }
}

enum ReadError {
    Store(StoreError),
    Unknown(String),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        ReadError::Store(error)
    }
}

impl ReadError {
    fn of_source(self) -> MigrationError {
        match self {
            ReadError::Store(error) => MigrationError::Source(error),
            ReadError::Unknown(key) => MigrationError::UnknownValue(key),
        }
    }

    fn of_target(self) -> MigrationError {
        match self {
            ReadError::Store(error) => MigrationError::Target(error),
            ReadError::Unknown(key) => MigrationError::Differs(format!("it has a value under `{key}`")),
        }
    }
}

/// Refuses a target whose last block is not at its place in the source.
fn admit_begun(source: &Part, begun: Head) -> Result<(), MigrationError> {
    if begun == Head::EMPTY {
        return Ok(());
    }
    let last = Sequence(begun.next.0 - 1);
    let there: Option<Block> = source.blocks(last).next().transpose().map_err(MigrationError::Source)?;
    match there.is_some_and(|block| Head::after(&block, block.hash()) == begun) {
        true => Ok(()),
        false => Err(MigrationError::OtherJournal { sequence: last }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;
    use crate::store::place::{admit_reading, admit_serving, stamp_filling, stamp_moved, stamp_returned, stamp_whole};
    use crate::store::{BlockHash, Partition, SledOptions, SledStore, Store};
    use crate::testkit::MemoryStore;

    fn extend(store: &Part, word: &str, blocks: u64) {
        for number in 0..blocks {
            let Head { next, hash, booked_at_ms } = store.head().unwrap();
            let records = (0..=number % 3).map(|record| format!("{word} {number} {record}").into_bytes()).collect();
            let booked_at_ms = booked_at_ms.max(0) + 1;
            store
                .append(&Block { partition: Partition(0), first: next, booked_at_ms, previous: hash, records })
                .unwrap();
        }
    }

    /// A store with blocks, all kinds of values that are moved, and some that are made again.
    fn furnished(store: Arc<dyn Store>, blocks: u64) -> Part {
        let part = crate::testkit::part(store);
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

    fn migrate(source: &Part, target: &Part) -> Result<Compared, MigrationError> {
        let values = copy(source, target, &mut |_| {})?;
        let compared = compare(source, target, &mut |_| {})?;
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
        let back = crate::testkit::part(sled(1));
        assert_eq!(migrate(&memory, &back).unwrap(), there);
        assert_eq!((there.blocks, there.head), (40, source.head().unwrap()));
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
                copy(&source, &target, &mut |_| {
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
            let error = copy(&source, target, &mut |_| {}).unwrap_err();
            assert!(matches!(error, MigrationError::OtherJournal { .. }), "{error}");
            assert_eq!((blocks(target), durable_values(target).unwrap()), before);
        }
    }

    #[test]
    fn a_difference_is_found_wherever_it_is() {
        let source = furnished(Arc::new(MemoryStore::new()), 4);
        let target = MemoryStore::new().part();
        let values = copy(&source, &target, &mut |_| {}).unwrap();
        target.put_cursor(b"webhooks/1/2", b"other progress").unwrap();
        assert!(matches!(values.compare(&target), Err(MigrationError::Differs(_))));
        // Of the same length, with a chain of its own.
        let (one, other) = (MemoryStore::new().part(), MemoryStore::new().part());
        extend(&one, "a", 4);
        extend(&other, "b", 4);
        let error = compare(&one, &other, &mut |_| {}).unwrap_err();
        assert!(matches!(error, MigrationError::Differs(_)), "{error}");
        assert_ne!(one.head().unwrap().hash, BlockHash::ZERO);
    }

    #[test]
    fn a_value_of_an_unknown_kind_is_not_left_behind() {
        let source = furnished(Arc::new(MemoryStore::new()), 1);
        source.put_state(b"novel/1", b"value").unwrap();
        let target = MemoryStore::new().part();
        let error = copy(&source, &target, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("`novel/1`"), "{error}");
        assert_eq!(blocks(&target), []);
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
        stamp_returned(&store).unwrap();
        admit_serving(&store).unwrap();
    }
}
