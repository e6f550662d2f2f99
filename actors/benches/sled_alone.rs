//! Deadlock of sled 0.34.7: two databases under the writes of `tests/churn.rs`, without the bounds
//! of `store/sled.rs`. It shows why these bounds are there. sled is used as its documentation
//! says; nothing of this crate is linked.
//!
//! `cargo bench -p actors --bench sled_alone -- --seconds 120`: ends with code 3 when nothing has
//! moved for 20 seconds, and with 0 when that did not happen. It is no test: whether sled hangs,
//! and after how long, depends on how the threads are scheduled. On two busy cores it hung after 50
//! seconds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A database that has not moved for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(20);
const HUNG: i32 = 3;
const THREADS: usize = 7;

#[derive(Default)]
struct Churn {
    changes: [AtomicU64; THREADS],
    is_over: AtomicBool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.iter().position(|argument| argument == "--seconds").and_then(|at| arguments.get(at + 1));
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(120);
    let folder = tempfile::tempdir().expect("a folder");
    let [state, journal] = ["state", "journal"].map(|name| open(&folder.path().join(name)));
    let churn = Arc::new(Churn::default());
    let puts = [("small", 400, 1_700), ("also-small", 200, 1_700), ("large", 100, 40_000)];
    for (thread, (name, keys, bytes_max)) in puts.into_iter().enumerate() {
        let state = state.clone();
        churn.run(thread, move |random| {
            let key = format!("{name}/{:05}", random % keys);
            state.insert(key, vec![random as u8; (random % bytes_max) as usize]).expect("an insert");
        });
    }
    let (deleted, grown) = (state.clone(), journal.clone());
    churn.run(3, move |random| drop(deleted.remove(format!("large/{:05}", random % 100)).expect("a removal")));
    churn.run(4, move |random| {
        let key = grown.generate_id().expect("a number").to_be_bytes();
        grown.insert(key, random.to_be_bytes().repeat((random % 800) as usize)).expect("an insert");
    });
    for (thread, flushed, pause_ms) in [(5, state, 1_000), (6, journal, 20)] {
        churn.run(thread, move |_| {
            flushed.flush().expect("a flush");
            thread::sleep(Duration::from_millis(pause_ms));
        });
    }
    churn.watch(Duration::from_secs(seconds));
    // Its threads are not waited for, and its databases not closed: that may hang, too.
    drop(folder);
    std::process::exit(0);
}

fn open(folder: &Path) -> sled::Db {
    sled::Config::new().path(folder).flush_every_ms(None).cache_capacity(1 << 20).open().expect("a database")
}

impl Churn {
    /// Changes something again and again, on a thread of its own.
    fn run(self: &Arc<Self>, thread: usize, change: impl Fn(u64) + Send + 'static) {
        let churn = Arc::clone(self);
        thread::spawn(move || {
            let mut random = thread as u64 + 1;
            while !churn.is_over.load(Ordering::Relaxed) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                change(random >> 20);
                churn.changes[thread].fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Watches until the time is over; ends the process where no thread moves any more.
    fn watch(&self, lasting: Duration) {
        let (begun, mut before, mut moved) = (Instant::now(), [u64::MAX; THREADS], Instant::now());
        while begun.elapsed() < lasting {
            thread::sleep(Duration::from_secs(1));
            let now = std::array::from_fn(|thread| self.changes[thread].load(Ordering::Relaxed));
            if now != before {
                (before, moved) = (now, Instant::now());
            } else if moved.elapsed() >= HANGS_AFTER {
                println!("it hangs since second {}; changes: {now:?}", moved.duration_since(begun).as_secs());
                std::process::exit(HUNG);
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        println!("it did not hang within {} s; changes: {before:?}", lasting.as_secs());
    }
}
