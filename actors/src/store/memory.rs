//! A store without a disk, for tests and simulations.
//!
//! It keeps every promise of [`Store`] that does not need a disk, and can be made to fail and to crash: it is the twin that
//! a simulation may kill between any two steps. It never becomes a product's store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Block, Head, Partition, Sequence, Store, StoreError, StoredRecord, admit_file_name, admit_state_key};

/// A store in memory. A clone is the same store, as if its folder had been opened again.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    poisoned: Arc<AtomicBool>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// The store that a new process finds after a power cut at this moment: all blocks and all state that was put durably;
    /// of what was put lazily, nothing. The old store goes on by itself; nothing that it does is seen by the new one.
    #[must_use]
    pub fn after_power_cut(&self) -> MemoryStore {
        let mut disk = self.disk.lock().clone();
        disk.state = disk.durable_state.clone();
        disk.fails_next_write = false;
        MemoryStore { disk: Arc::new(Mutex::new(disk)), poisoned: Arc::default() }
    }

    /// Makes the next write fail as a broken disk would, without any effect. After it the store refuses to write.
    pub fn fail_next_write(&self) {
        self.disk.lock().fails_next_write = true;
    }

    fn write<Written>(&self, write: impl FnOnce(&mut Disk) -> Written) -> Result<Written, StoreError> {
        let mut disk = self.disk.lock();
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(StoreError::Poisoned);
        }
        if std::mem::take(&mut disk.fails_next_write) {
            self.poisoned.store(true, Ordering::SeqCst);
            let source = std::io::Error::other("the disk was told to fail");
            return Err(StoreError::Machine { folder: "memory".into(), source });
        }
        Ok(write(&mut disk))
    }
}

impl Store for MemoryStore {
    fn append(&self, block: &Block) -> Result<(), StoreError> {
        self.write(|disk| {
            let journal = disk.journals.entry(block.partition).or_default();
            journal.head.admit(block)?;
            journal.head = Head::after(block, block.hash());
            journal.blocks.insert(block.first, Arc::new(block.clone()));
            Ok(())
        })?
    }

    fn head(&self, partition: Partition) -> Result<Head, StoreError> {
        Ok(self.disk.lock().journals.get(&partition).map_or(Head::EMPTY, |journal| journal.head))
    }

    fn record(&self, partition: Partition, sequence: Sequence) -> Result<Option<StoredRecord>, StoreError> {
        let disk = self.disk.lock();
        let block = disk.journals.get(&partition).and_then(|journal| journal.block_with(sequence));
        Ok(block.and_then(|block| {
            let offset = usize::try_from(sequence.0.checked_sub(block.first.0)?).ok()?;
            let bytes = block.records.get(offset)?.clone();
            Some(StoredRecord { sequence, booked_at_ms: block.booked_at_ms, bytes })
        }))
    }

    fn blocks(
        &self,
        partition: Partition,
        from: Sequence,
    ) -> Box<dyn Iterator<Item = Result<Block, StoreError>> + Send + '_> {
        let disk = self.disk.lock();
        let blocks: Vec<_> = disk.journals.get(&partition).map_or_else(Vec::new, |journal| {
            let first = journal.block_with(from).map_or(from, |block| block.first);
            journal.blocks.range(first..).map(|(_, block)| Arc::clone(block)).collect()
        });
        Box::new(blocks.into_iter().map(|block| Ok(Block::clone(&block))))
    }

    fn put_state(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        admit_state_key(key)?;
        self.write(|disk| {
            disk.state.insert(key.to_vec(), value.to_vec());
            disk.durable_state.insert(key.to_vec(), value.to_vec());
        })
    }

    fn put_state_lazily(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        admit_state_key(key)?;
        self.write(|disk| {
            disk.state.insert(key.to_vec(), value.to_vec());
        })
    }

    fn state(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.disk.lock().state.get(key).cloned())
    }

    fn delete_state(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(|disk| {
            disk.state.remove(key);
            disk.durable_state.remove(key);
        })
    }

    fn delete_state_lazily(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(|disk| {
            disk.state.remove(key);
        })
    }

    fn state_keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        let disk = self.disk.lock();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let keys = disk.state.range::<[u8], _>(from).map(|(key, _)| key);
        Ok(keys.take_while(|key| key.starts_with(prefix)).cloned().collect())
    }

    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        admit_file_name(name)?;
        self.write(|disk| {
            disk.files.insert(name.to_owned(), bytes.into());
        })
    }

    fn file_part(&self, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>, StoreError> {
        admit_file_name(name)?;
        let disk = self.disk.lock();
        let Some(bytes) = disk.files.get(name) else { return Ok(None) };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(length).min(bytes.len());
        Ok(Some(bytes[from..to].to_vec()))
    }

    fn files(&self) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(self.disk.lock().files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect())
    }

    fn remove_file(&self, name: &str) -> Result<(), StoreError> {
        admit_file_name(name)?;
        self.write(|disk| {
            disk.files.remove(name);
        })
    }

    fn size_bytes(&self) -> Result<u64, StoreError> {
        let disk = self.disk.lock();
        let blocks = disk.journals.values().flat_map(|journal| journal.blocks.values());
        let journal_bytes: usize = blocks.flat_map(|block| &block.records).map(Vec::len).sum();
        let state_bytes: usize = disk.state.iter().map(|(key, value)| key.len() + value.len()).sum();
        Ok((journal_bytes + state_bytes) as u64)
    }
}

#[derive(Debug, Clone, Default)]
struct Disk {
    journals: BTreeMap<Partition, Journal>,
    state: BTreeMap<Vec<u8>, Vec<u8>>,
    durable_state: BTreeMap<Vec<u8>, Vec<u8>>,
    files: BTreeMap<String, Arc<[u8]>>,
    fails_next_write: bool,
}

#[derive(Debug, Clone)]
struct Journal {
    head: Head,
    blocks: BTreeMap<Sequence, Arc<Block>>,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal { head: Head::EMPTY, blocks: BTreeMap::new() }
    }
}

impl Journal {
    fn block_with(&self, sequence: Sequence) -> Option<&Arc<Block>> {
        let (_, block) = self.blocks.range(..=sequence).next_back()?;
        (sequence < block.next()).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[test]
    fn it_conforms() {
        conformance::conformance(|| {
            let store = MemoryStore::new();
            move || Box::new(store.clone())
        });
    }

    #[test]
    fn a_power_cut_leaves_what_was_durable() {
        let store = MemoryStore::new();
        store.append(&conformance::block_after(Head::EMPTY, vec![b"record".to_vec()])).unwrap();
        store.put_state(b"key", b"sealed").unwrap();
        store.put_state(b"snapshot", b"old").unwrap();
        store.put_state_lazily(b"snapshot", b"new").unwrap();
        store.put_state_lazily(b"other snapshot", b"new").unwrap();
        store.put_state(b"removed lazily", b"there again").unwrap();
        store.delete_state_lazily(b"removed lazily").unwrap();
        let after = store.after_power_cut();
        assert_eq!(after.head(Partition(0)).unwrap(), store.head(Partition(0)).unwrap());
        assert_eq!(after.state(b"key").unwrap(), Some(b"sealed".to_vec()));
        assert_eq!(after.state(b"snapshot").unwrap(), Some(b"old".to_vec()));
        assert_eq!(after.state(b"other snapshot").unwrap(), None);
        assert_eq!(store.state(b"removed lazily").unwrap(), None);
        assert_eq!(after.state(b"removed lazily").unwrap(), Some(b"there again".to_vec()));
        assert_eq!(store.state(b"snapshot").unwrap(), Some(b"new".to_vec()));
    }

    #[test]
    fn a_failed_write_has_no_effect_and_no_successor() {
        let store = MemoryStore::new();
        let block = conformance::block_after(Head::EMPTY, vec![b"record".to_vec()]);
        store.fail_next_write();
        assert!(matches!(store.append(&block), Err(StoreError::Machine { .. })));
        assert!(matches!(store.append(&block), Err(StoreError::Poisoned)));
        assert!(matches!(store.put_state(b"key", b"value"), Err(StoreError::Poisoned)));
        assert_eq!(store.head(Partition(0)).unwrap(), Head::EMPTY);
        store.after_power_cut().append(&block).unwrap();
    }
}
