//! Idempotency keys, and other keys of Records, that are in no run yet.
//!
//! Each request with a key is looked up here. Look-ups share the locks of 16 shards, and do not
//! wait for the lock that the journal's thread holds while it adds a block.
//!
//! A key is here before its Record is published. The keys of a range of Records stay until its run
//! can be read, and go together. So a look-up that asks here first and then the runs misses no key.

use std::sync::Arc;

use ledger::id::{Fingerprint, IdMap};
use parking_lot::RwLock;

use super::key::IndexKey;
use super::numbers::Numbers;

const SHARDS: usize = 16;

/// The sequences of a range's Records with each key, in shards by key.
#[derive(Debug, Default)]
pub(super) struct RangeKeys {
    shards: [RwLock<IdMap<u64, Numbers>>; SHARDS],
}

impl RangeKeys {
    /// No keys, and room for as many as another range has.
    pub(super) fn with_room_of(other: &Self) -> Self {
        let room = |shard: &RwLock<IdMap<u64, Numbers>>| {
            RwLock::new(IdMap::with_capacity_and_hasher(shard.read().len(), Default::default()))
        };
        Self { shards: other.shards.each_ref().map(room) }
    }

    /// Adds a Record's sequence to a key.
    pub(super) fn add(&self, key: IndexKey, sequence: u64) {
        let mut shard = self.shard(key).write();
        shard.entry(key.whose).and_modify(|known| known.add(sequence)).or_insert(Numbers::One(sequence));
    }

    /// Each key with each of its sequences.
    pub(super) fn all(&self) -> Vec<(IndexKey, u64)> {
        let mut all = Vec::with_capacity(self.shards.iter().map(|shard| shard.read().len()).sum());
        for shard in &self.shards {
            for (whose, sequences) in shard.read().iter() {
                all.extend(sequences.as_slice().iter().map(|sequence| (IndexKey::of_record(*whose), *sequence)));
            }
        }
        all
    }

    fn shard(&self, key: IndexKey) -> &RwLock<IdMap<u64, Numbers>> {
        &self.shards[(key.whose % SHARDS as u64) as usize]
    }
}

/// The keys of the ranges that are in no run yet, in the order of their Records.
#[derive(Default)]
pub(super) struct RecentKeys(RwLock<Vec<Arc<RangeKeys>>>);

impl RecentKeys {
    /// A range begins.
    pub(super) fn begin(&self, range: &Arc<RangeKeys>) {
        self.0.write().push(Arc::clone(range));
    }

    /// Forgets a range, which is in a run now.
    pub(super) fn forget(&self, range: &Arc<RangeKeys>) {
        self.0.write().retain(|known| !Arc::ptr_eq(known, range));
    }

    /// The sequences of the Records with a key, lowest first.
    pub(super) fn sequences(&self, key: Fingerprint) -> Vec<u64> {
        let (key, mut found) = (IndexKey::key(key), Vec::new());
        for range in self.0.read().iter() {
            if let Some(sequences) = range.shard(key).read().get(&key.whose) {
                found.extend_from_slice(sequences.as_slice());
            }
        }
        found
    }
}
