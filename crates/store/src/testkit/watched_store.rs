//! Store in memory whose changes of the state area a test watches, or loses, and whose blocks it
//! damages.

use std::sync::Arc;

use super::MemoryStore;
use crate::{
    AppendOutcome, Block, Durability, Epoch, Head, KeyAndValue, Monitor, Partition, Result, Sequence, Store,
    StoreError, StoredRecord, Tenure, WriteBytes,
};

/// Watcher of the state area.
pub trait Watch: Send + Sync + 'static {
    /// Sees a change before it is made. True loses the change, without an error for its caller.
    fn loses(&self, key: &[u8], value: Option<&[u8]>, how: Durability) -> bool;

    /// Whether a block reads as damaged.
    fn damages(&self, _block: &Block) -> bool {
        false
    }
}

/// A store in memory, and the watcher of its state area.
#[derive(Debug, Default)]
pub struct WatchedStore<W> {
    /// The store.
    pub store: MemoryStore,
    /// The watcher.
    pub watch: W,
}

impl<W: Watch> Store for WatchedStore<W> {
    fn epoch(&self, partition: Partition) -> Result<Epoch> {
        self.store.epoch(partition)
    }

    fn take(&self, partition: Partition, seen: Epoch) -> Result<Option<Tenure>> {
        self.store.take(partition, seen)
    }

    fn append(&self, blocks: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>> {
        self.store.append(blocks)
    }

    fn head(&self, partition: Partition) -> Result<Head> {
        self.store.head(partition)
    }

    fn records(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        self.store.records(partition, sequences)
    }

    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
        let mut blocks = self.store.blocks(partition, from);
        let mut has_ended = false;
        Box::new(std::iter::from_fn(move || {
            let block = blocks.next().filter(|_| !has_ended)?;
            let block = block.and_then(|block| match self.watch.damages(&block) {
                true => Err(StoreError::Damaged {
                    folder: "memory".into(),
                    sequence: Some(block.first),
                    detail: "a chunk does not match its checksum".to_owned(),
                }),
                false => Ok(block),
            });
            has_ended = block.is_err();
            Some(block)
        }))
    }

    fn put_state(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>, how: Durability) -> Result<()> {
        if self.watch.loses(key, value, how) { Ok(()) } else { self.store.put_state(tenure, key, value, how) }
    }

    fn states(&self, partition: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.store.states(partition, keys)
    }

    fn state_keys(&self, partition: Partition, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.store.state_keys(partition, prefix)
    }

    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        self.store.insert_common(key, value)
    }

    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.store.common(key)
    }

    fn remove_common(&self, key: &[u8]) -> Result<()> {
        self.store.remove_common(key)
    }

    fn commons(&self) -> Result<Vec<KeyAndValue>> {
        self.store.commons()
    }

    fn put_cursor(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.store.put_cursor(tenure, key, value)
    }

    fn cursor(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.store.cursor(partition, key)
    }

    fn cursor_keys(&self, partition: Partition) -> Result<Vec<Vec<u8>>> {
        self.store.cursor_keys(partition)
    }

    fn put_file_in_parts(&self, tenure: Tenure, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        self.store.put_file_in_parts(tenure, name, write)
    }

    fn file_part(&self, partition: Partition, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        self.store.file_part(partition, name, offset, length)
    }

    fn files(&self, partition: Partition) -> Result<Vec<(String, u64)>> {
        self.store.files(partition)
    }

    fn remove_file(&self, tenure: Tenure, name: &str) -> Result<()> {
        self.store.remove_file(tenure, name)
    }

    fn size_bytes(&self) -> Result<u64> {
        self.store.size_bytes()
    }

    fn monitor(&self) -> Arc<Monitor> {
        self.store.monitor()
    }
}
