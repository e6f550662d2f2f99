//! Reading the journal of the embedded store: `cargo bench --bench journal`.
//!
//! A journal of 29 closed segments and a current one, of 8 MiB each: 20,000 single Records of
//! either, in turns, and a scan of all. Printed are the time of a Record, the rate of the scan, and
//! the memory that the process has more afterwards.

use std::sync::Arc;
use std::time::Instant;

use store::{Block, Part, Partition, Sequence, SledOptions, SledStore, Store};

const PARTITION: Partition = Partition(0);
const SEGMENTS: u64 = 29;
const SEGMENT_BYTES: u64 = 8 << 20;
/// Records of a block, and the bytes of each.
const RECORDS: u64 = 64;
const RECORD_BYTES: usize = 252;
const LOOK_UPS: u64 = 20_000;
const TURNS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SledOptions { segment_bytes: SEGMENT_BYTES, reserve_bytes: 0, ..SledOptions::default() };
    let open = || Arc::new(SledStore::open(folder.path(), &options).expect("a store"));
    let part = Part::take(open(), PARTITION).expect("it is free");
    let mut begin_of_current = Sequence::FIRST;
    let current = folder.path().join(format!("journal/{:06}", SEGMENTS + 1));
    let closed = folder.path().join(format!("journal/{SEGMENTS:06}.closed"));
    while !closed.exists() || part.head().expect("a head").next.0 - begin_of_current.0 < SEGMENT_BYTES / 1_000 {
        let head = part.head().expect("a head");
        if !closed.exists() {
            begin_of_current = head.next;
        }
        let records = (0..RECORDS).map(|record| noise(head.next.0 + record)).collect();
        let (first, previous) = (head.next, head.hash);
        part.append(&Block { partition: PARTITION, first, booked_at_ms: 0, previous, records }).expect("it is durable");
    }
    // What is closed is in files when the store is closed.
    drop(part);
    assert!(current.is_dir(), "the current segment is a database");
    let store = open();
    let before = memory_mib();
    let end = store.head(PARTITION).expect("a head").next.0;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (times, range) in times.iter_mut().zip([1..begin_of_current.0, begin_of_current.0 + RECORDS..end]) {
            let begun = Instant::now();
            for number in 0..LOOK_UPS {
                let sequence = range.start + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (range.end - range.start);
                let found = store.records(PARTITION, &[Sequence(sequence)]).expect("it can be read");
                assert!(found[0].is_some(), "it is below the head");
            }
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let [closed, current] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[TURNS / 2]
    });
    let us = |seconds: f64| seconds * 1e6 / LOOK_UPS as f64;
    println!(
        "{LOOK_UPS} Records, median of {TURNS} turns: of {SEGMENTS} closed segments {closed:.2} s ({:.1} us each),",
        us(closed)
    );
    println!("of the current one {current:.2} s ({:.1} us each): {:.2} x", us(current), closed / current);
    let begun = Instant::now();
    let blocks = store.blocks(PARTITION, Sequence::FIRST).map(|block| block.expect("it is whole"));
    let bytes: usize = blocks.flat_map(|block| block.records).map(|record| record.len()).sum();
    let rate = bytes as f64 / (1 << 20) as f64 / begun.elapsed().as_secs_f64();
    println!("a scan: {rate:.0} MiB/s, {:.0} Records/s", rate * (1 << 20) as f64 / RECORD_BYTES as f64);
    println!("memory: {} MiB more than before the first read", memory_mib().saturating_sub(before));
}

/// Bytes of which a half can be compressed, as in Records.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let byte = |at: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if at.is_multiple_of(2) { state as u8 } else { 0 }
    };
    (0..RECORD_BYTES).map(byte).collect()
}

/// Resident memory of the process, MiB.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() >> 10
}
