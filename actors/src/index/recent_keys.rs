//! Idempotency keys, and other keys of Records, that are in no run yet.
//!
//! Each request with a key is looked up here. So these keys are in shards, and the journal's thread
//! does not lock them while it adds a block to the other lists.
//!
//! A key is here before its Record is published, and stays until its run can be read. So a look-up
//! that asks here first and then the runs misses no key.

use ledger::id::{Fingerprint, IdMap};
use parking_lot::Mutex;

use super::key::IndexKey;
use super::recent::Numbers;

const SHARDS: usize = 16;

/// The sequences of the Records with each key, in shards by key.
#[derive(Default)]
pub(super) struct RecentKeys {
    shards: [Mutex<IdMap<u64, Numbers>>; SHARDS],
}

impl RecentKeys {
    /// Adds a Record's sequence to a key.
    pub(super) fn add(&self, key: Fingerprint, sequence: u64) {
        let number = IndexKey::key(key).whose;
        let mut shard = self.shard(number).lock();
        shard.entry(number).and_modify(|known| known.add(sequence)).or_insert(Numbers::One(sequence));
    }

    /// The sequences of the Records with a key, lowest first.
    pub(super) fn sequences(&self, key: Fingerprint) -> Vec<u64> {
        let number = IndexKey::key(key).whose;
        self.shard(number).lock().get(&number).map_or(Vec::new(), |known| known.as_slice().to_vec())
    }

    /// Removes the Records through `last`, which are in runs now.
    pub(super) fn forget_through(&self, last: u64) {
        for shard in &self.shards {
            shard.lock().retain(|_, known| known.forget_through(last));
        }
    }

    fn shard(&self, number: u64) -> &Mutex<IdMap<u64, Numbers>> {
        &self.shards[(number % SHARDS as u64) as usize]
    }
}
