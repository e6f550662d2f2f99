//! Idempotency keys, and other keys of Records, that no run has yet: looked up for each request that brings one, so they are apart from
//! the lists that a block's counting holds, and in shards.
//!
//! A key is here before its Record is published and until after its run can be read. A look-up that comes here first and to the runs
//! afterwards misses none.

use ledger::id::{Fingerprint, IdMap};
use parking_lot::Mutex;

use super::Numbers;
use super::key::IndexKey;

const SHARDS: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct RecentKeys {
    shards: [Mutex<IdMap<u64, Numbers>>; SHARDS],
}

impl RecentKeys {
    /// The Record of this sequence has a key.
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

    /// The Records through this one are in runs.
    pub(super) fn forget_through(&self, last: u64) {
        for shard in &self.shards {
            shard.lock().retain(|_, known| known.forget_through(last));
        }
    }

    fn shard(&self, number: u64) -> &Mutex<IdMap<u64, Numbers>> {
        &self.shards[(number % SHARDS as u64) as usize]
    }
}
