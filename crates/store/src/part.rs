//! Part of a store: one partition with the right to write it. All that an engine keeps goes through
//! one.

use std::sync::Arc;

use super::{
    AppendOutcome, Block, BlockHash, Durability, Epoch, Head, Partition, Result, Sequence, Store, StoreError,
    StoredRecord, Tenure, WriteBytes,
};

/// A partition of a store, and the tenure with which it is written. Copies share the tenure; once
/// another owner took the partition, writes of all of them are [`StoreError::Fenced`].
///
/// The methods are those of [`Store`] for this partition.
#[derive(Clone)]
pub struct Part {
    store: Arc<dyn Store>,
    tenure: Tenure,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Part").field("tenure", &self.tenure).finish_non_exhaustive()
    }
}

impl Part {
    /// A partition that was taken already.
    pub fn of(store: Arc<dyn Store>, tenure: Tenure) -> Part {
        Part { store, tenure }
    }

    /// Takes a partition from whoever had it.
    pub fn take(store: Arc<dyn Store>, partition: Partition) -> Result<Part> {
        let seen = store.epoch(partition)?;
        let tenure = store.take(partition, seen)?.ok_or(StoreError::Fenced { partition })?;
        Ok(Part::of(store, tenure))
    }

    /// A partition that is only read: every write is refused.
    pub fn reading(store: Arc<dyn Store>, partition: Partition) -> Part {
        Part::of(store, Tenure { partition, epoch: Epoch::NONE })
    }

    /// The store, for what is common to all its partitions.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The partition that may be written.
    pub fn partition(&self) -> Partition {
        self.tenure.partition
    }

    /// The right to write it.
    pub fn tenure(&self) -> Tenure {
        self.tenure
    }

    /// See [`Store::release`].
    pub fn release(&self) -> Result<()> {
        self.store.release(self.tenure)
    }

    /// Makes a block durable and returns its hash, which the next block names as its previous one.
    pub fn append(&self, block: &Block) -> Result<BlockHash> {
        let landed = self.store.append(&[(self.tenure, block)])?;
        match landed.first() {
            Some(AppendOutcome::Durable(hash)) => Ok(*hash),
            Some(AppendOutcome::Fenced) => Err(StoreError::Fenced { partition: self.tenure.partition }),
            Some(AppendOutcome::Unknown) | None => Err(StoreError::Unknown { partition: self.tenure.partition }),
        }
    }

    /// See [`Store::head`].
    pub fn head(&self) -> Result<Head> {
        self.store.head(self.tenure.partition)
    }

    /// One Record; see [`Store::records`].
    pub fn record(&self, sequence: Sequence) -> Result<Option<StoredRecord>> {
        Ok(self.store.records(self.tenure.partition, &[sequence])?.pop().flatten())
    }

    /// See [`Store::records`].
    pub fn records(&self, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        self.store.records(self.tenure.partition, sequences)
    }

    /// See [`Store::blocks`].
    pub fn blocks(&self, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
        self.store.blocks(self.tenure.partition, from)
    }

    /// Replaces a value; durable when it returns. See [`Store::put_state`].
    pub fn put_state(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put_state(self.tenure, key, Some(value), Durability::Durable)
    }

    /// Replaces a value without waiting for the disk. See [`Store::put_state`].
    pub fn put_state_lazily(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put_state(self.tenure, key, Some(value), Durability::Lazy)
    }

    /// Removes a value; durable when it returns. See [`Store::put_state`].
    pub fn delete_state(&self, key: &[u8]) -> Result<()> {
        self.store.put_state(self.tenure, key, None, Durability::Durable)
    }

    /// Removes a value without waiting for the disk. See [`Store::put_state`].
    pub fn delete_state_lazily(&self, key: &[u8]) -> Result<()> {
        self.store.put_state(self.tenure, key, None, Durability::Lazy)
    }

    /// The value of one key; see [`Store::states`].
    pub fn state(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.store.states(self.tenure.partition, &[key])?.pop().flatten())
    }

    /// See [`Store::state_keys`].
    pub fn state_keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.store.state_keys(self.tenure.partition, prefix)
    }

    /// Replaces the value of a cursor. See [`Store::put_cursor`].
    pub fn put_cursor(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put_cursor(self.tenure, key, Some(value))
    }

    /// Removes a cursor. See [`Store::put_cursor`].
    pub fn delete_cursor(&self, key: &[u8]) -> Result<()> {
        self.store.put_cursor(self.tenure, key, None)
    }

    /// See [`Store::cursor`].
    pub fn cursor(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.store.cursor(self.tenure.partition, key)
    }

    /// See [`Store::cursor_keys`].
    pub fn cursor_keys(&self) -> Result<Vec<Vec<u8>>> {
        self.store.cursor_keys(self.tenure.partition)
    }

    /// Writes a file that is in memory. See [`Store::put_file_in_parts`].
    pub fn put_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_file_in_parts(name, &mut |file| file.write_all(bytes)).map(drop)
    }

    /// See [`Store::put_file_in_parts`].
    pub fn put_file_in_parts(&self, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        self.store.put_file_in_parts(self.tenure, name, write)
    }

    /// See [`Store::file_part`].
    pub fn file_part(&self, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        self.store.file_part(self.tenure.partition, name, offset, length)
    }

    /// See [`Store::files`].
    pub fn files(&self) -> Result<Vec<(String, u64)>> {
        self.store.files(self.tenure.partition)
    }

    /// See [`Store::remove_file`].
    pub fn remove_file(&self, name: &str) -> Result<()> {
        self.store.remove_file(self.tenure, name)
    }
}
