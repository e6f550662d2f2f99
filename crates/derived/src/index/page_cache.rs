//! Cache of pages of the sorted runs' directories and filters, so that their memory has a bound
//! however long the journal is.

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::id::IdMap;
use parking_lot::Mutex;

use store::Part;

/// Largest number of cached pages: 64 MiB.
pub(super) const PAGES_MAX: usize = 16_384;
const SHARDS: usize = 16;

/// Cache of pages, in shards, with a bound on their number.
pub(super) struct PageCache {
    shards: [Mutex<Shard>; SHARDS],
    shard_pages_max: usize,
}

#[derive(Default)]
struct Shard {
    pages: IdMap<PageKey, CachedPages>,
    /// Order of eviction (clock algorithm): a page that was used since it was last looked at stays.
    order: VecDeque<PageKey>,
}

/// The number of a run in this process, and the place of a page in its file.
type PageKey = (u64, u32);

struct CachedPages {
    bytes: Arc<[u8]>,
    is_used: bool,
}

/// The store and the cache through which runs are read.
#[derive(Clone, Copy)]
pub(super) struct RunFiles<'a> {
    pub(super) store: &'a Part,
    pub(super) cache: &'a PageCache,
}

impl PageCache {
    pub(super) fn new(pages_max: usize) -> Self {
        Self { shards: Default::default(), shard_pages_max: pages_max.div_ceil(SHARDS) }
    }

    pub(super) fn get(&self, key: PageKey) -> Option<Arc<[u8]>> {
        self.look(key, Arc::clone)
    }

    /// Looks at a cached page.
    pub(super) fn look<T>(&self, key: PageKey, look: impl FnOnce(&Arc<[u8]>) -> T) -> Option<T> {
        let mut shard = self.shard(key).lock();
        let known = shard.pages.get_mut(&key)?;
        known.is_used = true;
        Some(look(&known.bytes))
    }

    pub(super) fn put(&self, key: PageKey, bytes: Arc<[u8]>) {
        let mut shard = self.shard(key).lock();
        if shard.pages.insert(key, CachedPages { bytes, is_used: false }).is_none() {
            shard.order.push_back(key);
        }
        while shard.pages.len() > self.shard_pages_max {
            shard.forget_one();
        }
    }

    /// Number of cached pages.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().pages.len()).sum()
    }

    fn shard(&self, (run, place): PageKey) -> &Mutex<Shard> {
        &self.shards[((run ^ u64::from(place)) % SHARDS as u64) as usize]
    }
}

impl Shard {
    fn forget_one(&mut self) {
        while let Some(key) = self.order.pop_front() {
            match self.pages.get_mut(&key) {
                Some(known) if known.is_used => {
                    known.is_used = false;
                    self.order.push_back(key);
                }
                _ => {
                    self.pages.remove(&key);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pages_are_kept_and_those_that_are_used_longest() {
        let cache = PageCache::new(64);
        let page = |place: u32| Arc::from(place.to_be_bytes().as_slice());
        for place in 0..10_000 {
            cache.put((1, place), page(place));
            assert_eq!(cache.get((1, 3)).is_some(), place >= 3, "it is asked for again and again");
        }
        assert_eq!(cache.len(), 64);
        assert_eq!(cache.get((1, 3)), Some(page(3)));
        assert_eq!(cache.get((2, 3)), None, "of another run");
        assert_eq!(cache.get((1, 4)), None, "nobody asked for it");
    }
}
