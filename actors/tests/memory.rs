//! Memory of a store whose closed segments are read: they are files, of which a few pages are kept.
//! One test, since the memory is that of the process.

#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::sync::Arc;

use store::{Block, Part, Partition, Sequence, SledOptions, SledStore, Store};
use tempfile::TempDir;

const PARTITION: Partition = Partition(0);
const MIB: u64 = 1 << 20;
const SEGMENTS: u64 = 4;
const SEGMENT_BYTES: u64 = 32 * MIB;
/// Records of a block, and the bytes of each.
const RECORDS: usize = 40;
const RECORD_BYTES: usize = 2_000;

/// Bytes that no compression makes smaller.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..RECORD_BYTES).map(|_| next()).collect()
}

/// Resident memory of the process, and its peak, bytes.
fn memory() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    };
    [bytes("VmRSS:"), bytes("VmHWM:")]
}

fn fill(part: &Part) {
    let bytes_of_block = (RECORDS * RECORD_BYTES) as u64;
    // One more, so that four are closed.
    for number in 0..(SEGMENTS + 1) * SEGMENT_BYTES / bytes_of_block {
        let head = part.head().unwrap();
        let records = (0..RECORDS as u64).map(|record| noise(number << 8 | record)).collect();
        let (partition, first, previous) = (PARTITION, head.next, head.hash);
        part.append(&Block { partition, first, booked_at_ms: 0, previous, records }).unwrap();
    }
}

/// Names the folder to a second process of this test, whose memory knows nothing of the writes.
const FOLDER: &str = "MEMORY_OF_STORE";

#[test]
fn closed_segments_that_were_read_are_not_kept_in_memory() {
    let options = SledOptions { segment_bytes: SEGMENT_BYTES, reserve_bytes: 0, ..SledOptions::default() };
    if let Some(data) = std::env::var_os(FOLDER) {
        return read(&SledStore::open_existing(data.as_ref(), &options).unwrap());
    }
    let data = TempDir::new().unwrap();
    let store = SledStore::open(data.path(), &options).unwrap();
    fill(&Part::take(Arc::new(store), PARTITION).unwrap());
    let mut reader = Command::new(std::env::current_exe().unwrap());
    reader.args(["--exact", "closed_segments_that_were_read_are_not_kept_in_memory", "--nocapture"]);
    assert!(reader.env(FOLDER, data.path()).status().unwrap().success());
}

fn read(store: &SledStore) {
    let [before, _] = memory();
    let scanned = || store.blocks(PARTITION, Sequence::FIRST).map(|block| block.unwrap().records.len()).sum::<usize>();
    let first = scanned();
    assert_eq!(first as u64, store.head(PARTITION).unwrap().next.0 - 1);
    assert_eq!(scanned(), first);
    let [_, scans] = memory();
    for sequence in (1..=first as u64).step_by(RECORDS / 2) {
        assert!(store.records(PARTITION, &[Sequence(sequence)]).unwrap()[0].is_some());
    }
    let [_, all] = memory();
    let grown = [scans, all].map(|peak| peak.saturating_sub(before) / MIB);
    println!("it grew by {grown:?} MiB: two scans; Records from everywhere besides");
    assert!(grown.iter().all(|grown| *grown < 16), "{grown:?}");
}
