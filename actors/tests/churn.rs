//! Churn: many small values that are written over and over by several threads, beside a journal
//! that grows. sled 0.34.7 alone can hang for ever under such writes (why: `store/sled.rs`). The
//! store must go on, since it bounds how many of sled's threads can wait at once.
//!
//! By default each thread makes a few thousand changes. `CENTAVO_CHURN_SECONDS` lets it run for so
//! long.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::{Block, Part, Partition, SledOptions, SledStore, durable_syncs_at_once_max};
use tempfile::TempDir;

const PARTITION: Partition = Partition(0);
/// Changes of each thread, unless a time is given.
const CHANGES: u64 = 3_000;
/// sled has seven threads. Two writes of the state area and four of the journal's segment may be
/// under way.
const WRITES_AT_ONCE_MAX: u64 = 6;

struct Churn {
    store: Part,
    ends_at: Option<Instant>,
    changes: [AtomicU64; 5],
    is_over: AtomicBool,
}

impl Churn {
    /// Changes something again and again.
    fn run(&self, thread: usize, change: impl Fn(u64)) {
        let mut random = thread as u64 + 1;
        loop {
            let done = self.changes[thread].fetch_add(1, Ordering::Relaxed);
            if self.ends_at.map_or(done >= CHANGES, |end| Instant::now() >= end) {
                return;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            change(random >> 20);
        }
    }

    fn put(&self, name: &str, keys: u64, random: u64, bytes: u64) {
        let key = format!("{name}/{:05}", random % keys);
        let value = vec![random as u8; bytes as usize];
        self.store.put_state_lazily(key.as_bytes(), &value).unwrap();
    }

    fn append(&self, random: u64) {
        let head = self.store.head().unwrap();
        // Half of it does not compress.
        let mut byte = random | 1;
        let bytes = (0..random % 30_000).map(|_| {
            byte = byte.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if byte >> 63 == 0 { (byte >> 33) as u8 } else { 0 }
        });
        let (first, previous, booked_at_ms) = (head.next, head.hash, head.booked_at_ms.max(0));
        let block = Block { partition: PARTITION, first, previous, booked_at_ms, records: vec![bytes.collect()] };
        self.store.append(&block).unwrap();
    }

    /// Prints the progress each ten seconds, and ends the process if there is none for long: a
    /// hanging test prints nothing.
    fn watch(&self) {
        let (mut before, mut reported_at) = ([u64::MAX; 5], Instant::now());
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(10));
            let now = [0, 1, 2, 3, 4].map(|thread: usize| self.changes[thread].load(Ordering::Relaxed));
            println!("{now:?}, writes at once: {}", durable_syncs_at_once_max());
            if now != before {
                (before, reported_at) = (now, Instant::now());
            } else if reported_at.elapsed() > Duration::from_secs(120) {
                eprintln!("it hangs: {:?}", self.store.store().monitor().longest_wait());
                std::process::exit(1);
            }
        }
    }
}

#[test]
fn the_store_goes_on_under_churn_and_bounds_its_writes_under_way() {
    let data = TempDir::new().unwrap();
    let seconds = std::env::var("CENTAVO_CHURN_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let mut options = SledOptions { reserve_bytes: 0, ..SledOptions::default() };
    if seconds.is_some() {
        // Small segments, so that some are closed, opened and made meanwhile.
        options.segment_bytes = 16 << 20;
    }
    let churn = Arc::new(Churn {
        store: Part::take(Arc::new(SledStore::open(data.path(), &options).unwrap()), PARTITION).unwrap(),
        ends_at: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        changes: [const { AtomicU64::new(0) }; 5],
        is_over: AtomicBool::new(false),
    });
    let watched = Arc::clone(&churn);
    let watch = std::thread::spawn(move || watched.watch());
    std::thread::scope(|scope| {
        let churn = &*churn;
        scope.spawn(|| churn.run(0, |random| churn.put("small", 400, random, 200 + random % 1_500)));
        scope.spawn(|| churn.run(1, |random| churn.put("also-small", 200, random, 200 + random % 1_500)));
        scope.spawn(|| churn.run(2, |random| churn.put("large", 100, random, random % 40_000)));
        scope.spawn(|| churn.run(3, |random| churn.append(random)));
        scope.spawn(|| {
            churn.run(4, |random| match random % 16 {
                0 => churn.store.put_state(b"durable", &random.to_be_bytes()).unwrap(),
                1 => churn.store.delete_state_lazily(format!("small/{:05}", random % 400).as_bytes()).unwrap(),
                _ => drop(churn.store.state(format!("large/{:05}", random % 100).as_bytes()).unwrap()),
            });
        });
    });
    churn.is_over.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    watch.join().unwrap();
    let most = durable_syncs_at_once_max();
    // A segment that is made or closed meanwhile may write once more.
    let most_expected = if seconds.is_some() { WRITES_AT_ONCE_MAX + 1 } else { WRITES_AT_ONCE_MAX };
    assert!((1..=most_expected).contains(&most), "{most} writes were under way at once");
}
