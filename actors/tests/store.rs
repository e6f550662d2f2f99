//! Store in a program that links the engine: it keeps the promises that hold inside the engine's
//! own test binary, above all that sled's syncs are the replaced ones. Blocks reach the disk by the
//! write-ahead log's own sync, which tests/power_cut covers.

use std::path::Path;
use std::sync::Arc;

use store::{Block, Head, Part, Partition, Sequence, SledOptions, SledStore, StoreError, durable_syncs};

#[test]
fn a_durable_value_is_synced_in_a_program_that_links_the_engine() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path()).unwrap();
    for number in 1..=20u8 {
        append(&store, vec![vec![number; 300]]).unwrap();
        let syncs = durable_syncs();
        store.put_state(b"key", &[number]).unwrap();
        if cfg!(target_os = "linux") {
            assert!(durable_syncs() > syncs, "value {number} was acknowledged without a sync");
        }
    }
    drop(store);
    let store = open(data.path()).unwrap();
    assert_eq!(store.head().unwrap().next, Sequence(21));
}

#[test]
fn what_a_store_can_not_do_is_told_by_folder() {
    let data = tempfile::tempdir().unwrap();
    let place = data.path().join("a file, no folder");
    std::fs::write(&place, b"").unwrap();
    let error = open(&place).unwrap_err();
    assert!(matches!(error, StoreError::Machine { .. }), "{error}");
    assert!(error.to_string().contains("a file, no folder"), "{error}");
}

const PARTITION: Partition = Partition(0);

fn open(data: &Path) -> Result<Part, StoreError> {
    Part::take(Arc::new(SledStore::open(data, &SledOptions::default())?), PARTITION)
}

fn append(store: &Part, records: Vec<Vec<u8>>) -> Result<(), StoreError> {
    let head: Head = store.head()?;
    let booked_at_ms = head.booked_at_ms.max(0);
    store
        .append(&Block { partition: PARTITION, first: head.next, booked_at_ms, previous: head.hash, records })
        .map(drop)
}
