//! Bloom filters of the newest keys of Records, idempotency keys among them. A request with a new
//! key, as nearly all are, asks these filters and the older runs. Look-ups take no lock that the
//! journal's thread holds while it counts a block.
//!
//! A key is here before its Record is published. All Records whose keys are not here are in runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::filter;
use super::key::IndexKey;

/// Largest number of filters. With a million keys each they take 21 MB.
const FILTERS_MAX: usize = 8;

/// The filters, oldest first.
pub(super) struct KeyFilters {
    set: RwLock<FilterSet>,
    /// Keys of each filter.
    keys_each: usize,
}

struct FilterSet {
    /// All keys of the Records from this sequence on are in the filters.
    since: u64,
    filters: VecDeque<Arc<KeyFilter>>,
}

/// A filter over some keys. One thread adds to it while others ask it.
struct KeyFilter {
    /// Of earlier Records, some keys may be in the filter before.
    whole_from: u64,
    words: Box<[AtomicU64]>,
}

/// The end that adds keys: one for all filters.
#[derive(Default)]
pub(super) struct KeyWriter {
    filter: Option<Arc<KeyFilter>>,
    /// How many keys have room in it.
    left: usize,
}

impl KeyFilters {
    pub(super) fn new(keys_each: usize) -> Self {
        Self { set: RwLock::new(FilterSet { since: u64::MAX, filters: VecDeque::new() }), keys_each }
    }

    /// Records are counted from this one on: those before it are in runs.
    pub(super) fn begin(&self, first: u64) {
        self.set.write().since = first;
    }

    /// The sequence from which on no Record has the key. `None` if one may have it.
    pub(super) fn lacks(&self, key: IndexKey) -> Option<u64> {
        let (filters_now, hash) = (self.set.read(), filter::hash(key));
        (!filters_now.filters.iter().any(|filter| filter.may_hold(hash))).then_some(filters_now.since)
    }

    /// Another filter, from this Record on. The oldest goes if all Records before the next one are
    /// in runs: those before `unwritten` are.
    fn next(&self, sequence: u64, unwritten: u64) -> Arc<KeyFilter> {
        let words = filter::words_for(self.keys_each);
        let words = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        let next = Arc::new(KeyFilter { whole_from: sequence + 1, words });
        let mut filters_now = self.set.write();
        filters_now.filters.push_back(Arc::clone(&next));
        while filters_now.filters.len() > FILTERS_MAX && filters_now.filters[1].whole_from <= unwritten {
            filters_now.filters.pop_front();
            filters_now.since = filters_now.filters[0].whole_from;
        }
        next
    }
}

impl KeyWriter {
    /// Adds a key of a Record. The Records before `unwritten` are in runs.
    pub(super) fn add(&mut self, filters: &KeyFilters, key: IndexKey, sequence: u64, unwritten: u64) {
        if self.left == 0 {
            self.left = filters.keys_each;
            self.filter = Some(filters.next(sequence, unwritten));
        }
        self.left -= 1;
        if let Some(newest) = &self.filter {
            newest.add(filter::hash(key));
        }
    }
}

impl KeyFilter {
    fn add(&self, hash: u64) {
        for (word, bits) in self.block(hash).iter().zip(filter::bits(hash)) {
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }

    fn may_hold(&self, hash: u64) -> bool {
        self.block(hash).iter().zip(filter::bits(hash)).all(|(word, bits)| word.load(Ordering::Relaxed) & bits == bits)
    }

    fn block(&self, hash: u64) -> &[AtomicU64] {
        let number = filter::block_of(hash, self.words.len() / filter::BLOCK_WORDS);
        &self.words[number * filter::BLOCK_WORDS..][..filter::BLOCK_WORDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS_EACH: usize = 10;

    fn key(number: u64) -> IndexKey {
        IndexKey { kind: 4, whose: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }

    /// Each Record has three keys. Those before the last `behind` are in runs.
    fn counted(behind: u64) -> (KeyFilters, u64) {
        let (filters, mut writer) = (KeyFilters::new(KEYS_EACH), KeyWriter::default());
        assert_eq!(filters.lacks(key(1)), Some(u64::MAX), "nothing is known");
        filters.begin(100);
        for sequence in 100..400 {
            for number in 3 * sequence..3 * sequence + 3 {
                writer.add(&filters, key(number), sequence, sequence.saturating_sub(behind));
            }
            for number in 300..3 * sequence + 3 {
                let may_have_it = filters.lacks(key(number)).is_none_or(|since| number / 3 < since);
                assert!(may_have_it, "key {number} at {sequence}");
            }
        }
        let since = filters.lacks(key(7)).expect("none has it");
        (filters, since)
    }

    #[test]
    fn keys_of_the_last_records_are_known_and_the_oldest_let_go() {
        let (filters, since) = counted(5);
        assert_eq!(filters.set.read().filters.len(), FILTERS_MAX);
        assert!((370..380).contains(&since), "{since}");
    }

    #[test]
    fn keys_of_records_that_are_in_no_run_stay() {
        let (filters, since) = counted(200);
        assert!((180..200).contains(&since), "{since}");
        assert!(filters.set.read().filters.len() > 60);
        let (_, since) = counted(400);
        assert_eq!(since, 100);
    }
}
