//! Conformance test of the [`Store`] trait: one suite that is run against every store.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::{
    AppendOutcome, Block, BlockHash, FILE_NAME_BYTES_MAX, Head, Part, Partition, STATE_KEY_BYTES_MAX, Sequence, Store,
    StoreError, StoredRecord,
};

/// Runs the whole test, which panics where a store does otherwise. `create` makes a new empty place
/// and returns what opens a store there; the test opens it again and again, each time after the
/// store that was opened before has been dropped.
pub fn all<Open: Fn() -> Arc<dyn Store>>(create: impl Fn() -> Open) {
    let stores = create;
    let create = || {
        let open = stores();
        move || Part::take(open(), PARTITION).unwrap()
    };
    an_empty_journal(&create());
    blocks_come_back_in_order(&create());
    what_does_not_follow_is_refused(&create());
    sizes_from_nothing_to_megabytes(&create());
    three_thousand_records(&create());
    records_of_any_size_are_found_by_sequence(&create);
    partitions_are_apart(&create());
    blocks_of_several_partitions_in_one_call(&create());
    partitions_have_nothing_in_common(&create());
    state_is_replaced_and_removed(&create());
    state_of_any_size(&create());
    the_first_writer_of_a_common_key_wins(&create());
    state_keys_by_prefix(&create());
    cursors_are_replaced_and_removed(&create());
    files_are_replaced_and_removed(&create());
    files_in_parts(&create());
    names_of_files(&create());
    readers_beside_the_writer(&create());
    who_was_fenced_writes_nothing(&create());
    the_same_block_again_is_durable(&create());
    of_two_that_take_at_once_one_gets_it(&create());
}

/// The block of these Records that follows `head` in partition 0.
pub fn block_after(head: Head, records: Vec<Vec<u8>>) -> Block {
    let booked_at_ms = head.booked_at_ms.max(1_750_000_000_000) + 1;
    Block { partition: PARTITION, first: head.next, booked_at_ms, previous: head.hash, records }
}

/// Appends a block of these Records to partition 0 and returns it.
pub fn append(store: &Part, records: Vec<Vec<u8>>) -> Block {
    let block = block_after(store.head().unwrap(), records);
    store.append(&block).unwrap();
    block
}

/// Bytes that differ from Record to Record and do not repeat within one.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

const PARTITION: Partition = Partition(0);

fn all_blocks(store: &Part, from: u64) -> Vec<Block> {
    store.blocks(Sequence(from)).map(Result::unwrap).collect()
}

fn cursors_are_replaced_and_removed(open: &dyn Fn() -> Part) {
    let store = open();
    store.put_state(b"key", b"apart").unwrap();
    assert_eq!(store.cursor(b"key").unwrap(), None);
    store.put_cursor(b"key", b"first").unwrap();
    store.put_cursor(b"key", &bytes(1, 40_000)).unwrap();
    store.put_cursor(b"other", b"").unwrap();
    store.put_cursor(b"gone", b"gone").unwrap();
    store.delete_cursor(b"gone").unwrap();
    store.delete_cursor(b"absent").unwrap();
    assert!(matches!(store.put_cursor(&[0; 129], b""), Err(StoreError::Unstorable(_))));
    drop(store);
    for _ in 0..2 {
        let store = open();
        assert_eq!(store.cursor_keys().unwrap(), [b"key".to_vec(), b"other".to_vec()]);
        assert_eq!(store.cursor(b"key").unwrap(), Some(bytes(1, 40_000)));
        assert_eq!(store.cursor(b"other").unwrap(), Some(vec![]));
        assert_eq!(store.cursor(b"gone").unwrap(), None);
        assert_eq!(store.state(b"key").unwrap(), Some(b"apart".to_vec()));
    }
}

/// Each partition has values, cursors and files of its own under the same keys and names.
fn partitions_have_nothing_in_common(open: &dyn Fn() -> Part) {
    let first = open();
    let second = Part::take(Arc::clone(first.store()), Partition(258)).unwrap();
    for (part, content) in [(&first, b"first"), (&second, b"other")] {
        part.put_state(b"key", content).unwrap();
        part.put_state_lazily(b"lazy", content).unwrap();
        part.put_cursor(b"cursor", content).unwrap();
        part.put_file("run", content).unwrap();
        part.put_file_in_parts("part-1.x", &mut |file| file.write_all(content)).unwrap();
    }
    second.put_state(b"alone", b"").unwrap();
    second.put_cursor(b"alone", b"").unwrap();
    second.put_file("alone", b"").unwrap();
    assert!(second.put_state(&[b'k'; 128], b"long").is_ok());
    assert!(second.put_cursor(&[b'k'; 128], b"long").is_ok());
    second.delete_state(&[b'k'; 128]).unwrap();
    second.delete_cursor(&[b'k'; 128]).unwrap();
    drop((first, second));
    let first = open();
    let second = Part::reading(Arc::clone(first.store()), Partition(258));
    for (part, content, alone) in [(&first, b"first", false), (&second, b"other", true)] {
        assert_eq!(part.state(b"key").unwrap().unwrap(), content);
        assert_eq!(part.cursor(b"cursor").unwrap().unwrap(), content);
        assert_eq!(part.file_part("run", 0, 9).unwrap().unwrap(), content);
        assert_eq!(part.file_part("part-1.x", 0, 9).unwrap().unwrap(), content);
        let keys = |all: &[&str]| all.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>();
        let (state, cursors, files): (&[_], &[_], &[_]) = match alone {
            true => (&["alone", "key", "lazy"], &["alone", "cursor"], &[("alone", 0), ("part-1.x", 5), ("run", 5)]),
            false => (&["key", "lazy"], &["cursor"], &[("part-1.x", 5), ("run", 5)]),
        };
        assert_eq!(part.state_keys(b"").unwrap(), keys(state));
        assert_eq!(part.state_keys(b"ke").unwrap(), keys(&["key"]));
        assert_eq!(part.cursor_keys().unwrap(), keys(cursors));
        let named: Vec<_> = files.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        assert_eq!(part.files().unwrap(), named);
    }
    assert!(first.state(b"alone").unwrap().is_none() && first.cursor(b"alone").unwrap().is_none());
    assert!(first.file_part("alone", 0, 9).unwrap().is_none());
    let second = Part::take(Arc::clone(first.store()), Partition(258)).unwrap();
    second.remove_file("run").unwrap();
    second.delete_cursor(b"cursor").unwrap();
    second.delete_state(b"key").unwrap();
    assert_eq!(first.file_part("run", 0, 9).unwrap().unwrap(), b"first");
    assert!(first.cursor(b"cursor").unwrap().is_some() && first.state(b"key").unwrap().is_some());
}

fn an_empty_journal(open: &dyn Fn() -> Part) {
    for _ in 0..2 {
        let store = open();
        assert_eq!(store.head().unwrap(), Head::EMPTY);
        assert_eq!(store.record(Sequence(0)).unwrap(), None);
        assert_eq!(store.record(Sequence::FIRST).unwrap(), None);
        assert_eq!(all_blocks(&store, 0), []);
        assert_eq!(all_blocks(&store, 1), []);
        assert_eq!(store.state(b"").unwrap(), None);
        assert_eq!(store.state_keys(b"").unwrap(), Vec::<Vec<u8>>::new());
    }
}

fn blocks_come_back_in_order(open: &dyn Fn() -> Part) {
    let mut written = Vec::new();
    for round in 0..3 {
        let store = open();
        for count in 1..=5 {
            let records = (0..count).map(|number| bytes(round * 100 + number, 300)).collect();
            written.push(append(&store, records));
        }
    }
    let store = open();
    let last = written.last().unwrap();
    assert_eq!(store.head().unwrap(), Head::after(last, last.hash()));
    assert_eq!(last.next(), Sequence(46));
    for from in 0..50 {
        let expected: Vec<Block> = written.iter().filter(|block| block.next().0 > from).cloned().collect();
        assert_eq!(all_blocks(&store, from), expected, "from {from}");
    }
    let mut previous = BlockHash::ZERO;
    for block in all_blocks(&store, 1) {
        assert_eq!(block.previous, previous);
        previous = block.hash();
    }
    assert!(store.store().size_bytes().unwrap() >= 45 * 300);
}

fn what_does_not_follow_is_refused(open: &dyn Fn() -> Part) {
    let store = open();
    append(&store, vec![b"first".to_vec()]);
    let head = store.head().unwrap();
    let good = block_after(head, vec![b"second".to_vec()]);
    let out_of_order = [
        Block { first: Sequence(1), ..good.clone() },
        Block { first: Sequence(3), ..good.clone() },
        Block { previous: BlockHash::ZERO, ..good.clone() },
        Block { booked_at_ms: head.booked_at_ms - 1, ..good.clone() },
    ];
    for block in out_of_order {
        assert!(matches!(store.append(&block), Err(StoreError::OutOfOrder { .. })), "{block:?}");
    }
    let elsewhere = Block { partition: Partition(1), ..good.clone() };
    assert!(matches!(store.append(&elsewhere), Err(StoreError::Fenced { .. })));
    let empty = Block { records: vec![], ..good.clone() };
    assert!(matches!(store.append(&empty), Err(StoreError::Unstorable(_))));
    assert_eq!(store.head().unwrap(), head);
    // A refusal is no failure of the machine: the store goes on. Two blocks may be booked in the
    // same millisecond.
    let same_millisecond = Block { booked_at_ms: head.booked_at_ms, ..good };
    store.append(&same_millisecond).unwrap();
    assert_eq!(all_blocks(&store, 2), [same_millisecond]);
}

fn sizes_from_nothing_to_megabytes(open: &dyn Fn() -> Part) {
    let sizes = [0, 5 << 20, 1, 7_000, 7_168, 14_336, 0, 0];
    let records: Vec<_> = sizes.iter().enumerate().map(|(seed, size)| bytes(seed as u64, *size)).collect();
    append(&open(), vec![vec![]]);
    let block = append(&open(), records);
    append(&open(), vec![b"after".to_vec()]);
    let store = open();
    assert_eq!(all_blocks(&store, 2)[0], block);
    let large = store.record(Sequence(3)).unwrap().unwrap();
    assert!(large.bytes == block.records[1], "the record of 5 MB differs");
    assert_eq!(store.record(Sequence(1)).unwrap().unwrap().bytes, b"");
    assert_eq!(store.record(Sequence(9)).unwrap().unwrap().bytes, b"");
    assert_eq!(store.record(Sequence(10)).unwrap().unwrap().bytes, b"after");
    assert_eq!(store.record(Sequence(11)).unwrap(), None);
}

fn three_thousand_records(open: &dyn Fn() -> Part) {
    let block = append(&open(), (0..3_000).map(|seed| bytes(seed, 300)).collect());
    let store = open();
    assert_eq!(all_blocks(&store, 2_999), [block]);
    assert_eq!(store.head().unwrap().next, Sequence(3_001));
}

fn records_of_any_size_are_found_by_sequence<Open: Fn() -> Part>(create: &impl Fn() -> Open) {
    let size = prop_oneof![0..600usize, 6_900..7_200usize, 0..30_000usize];
    let journal = proptest::collection::vec(proptest::collection::vec(size, 1..20), 1..12);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(12) });
    let outcome = runner.run(&journal, |journal| {
        let open = create();
        let mut expected = Vec::new();
        let store = open();
        for sizes in &journal {
            let seed = expected.len() as u64;
            let records = sizes.iter().enumerate().map(|(number, size)| bytes(seed + number as u64, *size)).collect();
            let block = append(&store, records);
            for (offset, bytes) in block.records.iter().enumerate() {
                let sequence = block.first.plus(offset as u64);
                expected.push(StoredRecord { sequence, booked_at_ms: block.booked_at_ms, bytes: bytes.clone() });
            }
        }
        prop_assert!(finds_all(&store, &expected));
        drop(store);
        prop_assert!(finds_all(&open(), &expected));
        Ok(())
    });
    outcome.unwrap();
}

fn finds_all(store: &Part, expected: &[StoredRecord]) -> bool {
    let found = |record: &StoredRecord| store.record(record.sequence).unwrap().as_ref() == Some(record);
    let read: Vec<Vec<u8>> = all_blocks(store, 1).into_iter().flat_map(|block| block.records).collect();
    expected.iter().all(found) && read.iter().eq(expected.iter().map(|record| &record.bytes))
}

fn partitions_are_apart(open: &dyn Fn() -> Part) {
    let partitions = [0, 1, 255, 256, u16::MAX].map(Partition);
    for round in 0..3u8 {
        let store = open();
        for partition in partitions {
            let part = Part::take(Arc::clone(store.store()), partition).unwrap();
            let records = vec![vec![round, partition.0 as u8], bytes(u64::from(partition.0), 8_000)];
            part.append(&Block { partition, ..block_after(part.head().unwrap(), records) }).unwrap();
        }
    }
    let store = open();
    for partition in partitions {
        let part = Part::reading(Arc::clone(store.store()), partition);
        assert_eq!(part.head().unwrap().next, Sequence(7));
        assert_eq!(part.record(Sequence(5)).unwrap().unwrap().bytes, [2, partition.0 as u8]);
        assert_eq!(part.blocks(Sequence(3)).map(Result::unwrap).count(), 2);
        assert_eq!(part.record(Sequence(7)).unwrap(), None);
    }
    let nothing = Part::reading(Arc::clone(store.store()), Partition(2));
    assert_eq!(nothing.head().unwrap(), Head::EMPTY);
    assert_eq!(nothing.blocks(Sequence(1)).count(), 0);
}

/// Each block of one call has an outcome of its own.
fn blocks_of_several_partitions_in_one_call(open: &dyn Fn() -> Part) {
    let first = open();
    let store = Arc::clone(first.store());
    let others = (1..6).map(|number| Part::take(Arc::clone(&store), Partition(number)).unwrap());
    let parts: Vec<Part> = std::iter::once(first).chain(others).collect();
    let block = |part: &Part, seed: u64| {
        let records = vec![bytes(seed, 40), bytes(seed + 1, 20_000)];
        Block { partition: part.partition(), ..block_after(part.head().unwrap(), records) }
    };
    let append = |blocks: &[Block]| {
        let with_tenures = parts.iter().map(Part::tenure).zip(blocks).collect::<Vec<_>>();
        store.append(&with_tenures).unwrap()
    };
    let mut last = Vec::new();
    for round in 0..3 {
        let blocks: Vec<Block> = parts.iter().zip(0..).map(|(part, seed)| block(part, round * 100 + seed)).collect();
        assert_eq!(
            append(&blocks),
            blocks.iter().map(|block| AppendOutcome::Durable(block.hash())).collect::<Vec<_>>()
        );
        last = blocks;
    }
    // Of these, each has its own outcome: new, durable already, fenced, new, fenced, new.
    let mut blocks: Vec<Block> = parts.iter().zip(900..).map(|(part, seed)| block(part, seed)).collect();
    blocks[1] = last[1].clone();
    let taken = [2, 4].map(|number| Part::take(Arc::clone(&store), Partition(number)).unwrap());
    let durable = |block: &Block| AppendOutcome::Durable(block.hash());
    let expected = [
        durable(&blocks[0]),
        durable(&blocks[1]),
        AppendOutcome::Fenced,
        durable(&blocks[3]),
        AppendOutcome::Fenced,
        durable(&blocks[5]),
    ];
    assert_eq!(append(&blocks), expected);
    assert_eq!(append(&blocks), expected, "the same again has the same outcomes");
    for (part, next) in parts.iter().zip([9, 7, 7, 9, 7, 9]) {
        assert_eq!(part.head().unwrap().next, Sequence(next));
        assert_eq!(all_blocks(part, 1).len() as u64, (next - 1) / 2);
    }
    for part in taken {
        part.append(&block(&part, 1_000)).unwrap();
    }
}

/// Two owners of one store: whatever the former one writes late is refused, and changes nothing.
fn who_was_fenced_writes_nothing(open: &dyn Fn() -> Part) {
    let former = open();
    append(&former, vec![b"of the former".to_vec()]);
    former.put_state(b"key", b"former").unwrap();
    former.put_cursor(b"cursor", b"former").unwrap();
    former.put_file("run", b"former").unwrap();
    let owner = Part::take(Arc::clone(former.store()), PARTITION).unwrap();
    let reader = Part::reading(Arc::clone(former.store()), PARTITION);
    let late = block_after(former.head().unwrap(), vec![b"late".to_vec()]);
    for part in [&former, &reader] {
        let refusals = [
            part.append(&late).map(drop),
            part.put_state(b"key", b"late"),
            part.put_state_lazily(b"key", b"late"),
            part.delete_state(b"key"),
            part.delete_state_lazily(b"key"),
            part.put_cursor(b"cursor", b"late"),
            part.delete_cursor(b"cursor"),
            part.put_file("run", b"late"),
            part.put_file_in_parts("run", &mut |file| file.write_all(b"late")).map(drop),
            part.remove_file("run"),
        ];
        for (number, refusal) in refusals.into_iter().enumerate() {
            assert!(matches!(refusal, Err(StoreError::Fenced { partition: PARTITION })), "{number}: {refusal:?}");
        }
    }
    assert_eq!(owner.head().unwrap().next, Sequence(2));
    assert_eq!(owner.state(b"key").unwrap(), Some(b"former".to_vec()));
    assert_eq!(owner.cursor(b"cursor").unwrap(), Some(b"former".to_vec()));
    assert_eq!(owner.file_part("run", 0, 9).unwrap(), Some(b"former".to_vec()));
    // The owner writes, and the former one stays refused at the place that is taken.
    let block = append(&owner, vec![b"of the owner".to_vec()]);
    assert!(matches!(former.append(&late), Err(StoreError::Fenced { .. })));
    owner.put_state(b"key", b"owner").unwrap();
    drop((former, owner, reader));
    let store = open();
    assert_eq!(all_blocks(&store, 2), [block]);
    assert_eq!(store.state(b"key").unwrap(), Some(b"owner".to_vec()));
}

/// Whoever got no answer hands in the same block again, also when its tenure has ended meanwhile.
fn the_same_block_again_is_durable(open: &dyn Fn() -> Part) {
    let store = open();
    let blocks: Vec<Block> = (1..=3).map(|seed| append(&store, vec![bytes(seed, 9_000)])).collect();
    for block in &blocks {
        assert_eq!(store.append(block).unwrap(), block.hash());
    }
    let owner = Part::take(Arc::clone(store.store()), PARTITION).unwrap();
    assert_eq!(store.append(&blocks[2]).unwrap(), blocks[2].hash());
    let other = Block { booked_at_ms: blocks[2].booked_at_ms + 1, ..blocks[2].clone() };
    assert!(matches!(store.append(&other), Err(StoreError::Fenced { .. })));
    assert!(matches!(owner.append(&other), Err(StoreError::OutOfOrder { .. })));
    assert_eq!(all_blocks(&owner, 1), blocks);
}

fn of_two_that_take_at_once_one_gets_it(open: &dyn Fn() -> Part) {
    let part = open();
    let (store, seen) = (part.store(), part.store().epoch(PARTITION).unwrap());
    let tenure = store.take(PARTITION, seen).unwrap().unwrap();
    assert!(tenure.epoch > seen);
    assert_eq!(store.take(PARTITION, seen).unwrap(), None);
    assert_eq!(store.epoch(PARTITION).unwrap(), tenure.epoch);
    drop(part);
    // An epoch is never used twice, also by a new process.
    assert!(open().store().epoch(PARTITION).unwrap() > tenure.epoch);
}

fn state_is_replaced_and_removed(open: &dyn Fn() -> Part) {
    let long = bytes(1, 20_000);
    let longer = bytes(2, 50_000);
    let values: [&[u8]; 6] = [b"", b"one", &long, &longer, &long, b"two"];
    for value in values {
        let store = open();
        store.put_state(b"key", value).unwrap();
        store.put_state_lazily(b"lazy", value).unwrap();
        // An equal value can be put again.
        store.put_state(b"key", value).unwrap();
        assert_eq!(store.state(b"key").unwrap().as_deref(), Some(value));
        assert_eq!(store.state(b"lazy").unwrap().as_deref(), Some(value));
        drop(store);
        assert_eq!(open().state(b"key").unwrap().as_deref(), Some(value));
    }
    let store = open();
    store.put_state(b"key", &longer).unwrap();
    store.delete_state(b"key").unwrap();
    store.delete_state(b"never put").unwrap();
    store.delete_state_lazily(b"lazy").unwrap();
    store.delete_state_lazily(b"never put").unwrap();
    for key in [b"key".as_slice(), b"lazy"] {
        assert_eq!(store.state(key).unwrap(), None);
    }
    drop(store);
    assert_eq!(open().state(b"key").unwrap(), None);
    assert_eq!(open().state(b"lazy").unwrap(), None);
}

fn state_of_any_size(open: &dyn Fn() -> Part) {
    let sizes = [0usize, 1, 100, 6_999, 7_000, 7_100, 7_168, 14_200, 100_000, 1 << 20];
    let store = open();
    for (seed, size) in sizes.into_iter().enumerate() {
        store.put_state(&size.to_be_bytes(), &bytes(seed as u64, size)).unwrap();
    }
    drop(store);
    let store = open();
    for (seed, size) in sizes.into_iter().enumerate() {
        let value = store.state(&size.to_be_bytes()).unwrap();
        assert!(value == Some(bytes(seed as u64, size)), "the value of {size} bytes differs");
    }
}

fn the_first_writer_of_a_common_key_wins(open: &dyn Fn() -> Part) {
    let store = open();
    let stands = std::thread::scope(|scope| {
        let insert = |writer: u8| store.store().insert_common(b"keys/common", &[writer; 10_000]).unwrap();
        let writers: Vec<_> = (0..4).map(|writer| scope.spawn(move || insert(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(stands.iter().all(|value| *value == stands[0]));
    assert!(matches!(store.store().insert_common(b"other", b""), Err(StoreError::Unstorable(_))));
    drop(store);
    let store = open();
    assert_eq!(store.store().common(b"keys/common").unwrap().as_ref(), Some(&stands[0]));
    assert_eq!(store.store().insert_common(b"keys/common", b"late").unwrap(), stands[0]);
    assert_eq!(store.store().commons().unwrap(), [(b"keys/common".to_vec(), stands[0].clone())]);
    // A removed key is free again.
    store.store().remove_common(b"keys/common").unwrap();
    assert_eq!(store.store().insert_common(b"keys/common", b"anew").unwrap(), b"anew");
}

fn state_keys_by_prefix(open: &dyn Fn() -> Part) {
    let longest = [0xFF; STATE_KEY_BYTES_MAX];
    let keys: [&[u8]; 7] = [b"", b"a", b"a\0", b"a/1", b"a/2", b"b", &longest];
    let store = open();
    for key in keys {
        store.put_state_lazily(key, &bytes(9, 10_000)).unwrap();
    }
    assert!(matches!(store.put_state(&[0; STATE_KEY_BYTES_MAX + 1], b""), Err(StoreError::Unstorable(_))));
    let cases: [(&[u8], &[&[u8]]); 6] = [
        (b"", &keys),
        (b"a", &[b"a", b"a\0", b"a/1", b"a/2"]),
        (b"a/", &[b"a/1", b"a/2"]),
        (b"b", &[b"b"]),
        (&[0xFF], &[&longest]),
        (b"c", &[]),
    ];
    for (prefix, expected) in cases {
        assert_eq!(store.state_keys(prefix).unwrap(), expected, "prefix {prefix:?}");
    }
}

fn files_are_replaced_and_removed(open: &dyn Fn() -> Part) {
    let sizes = [0usize, 1, 4_096, 100_000, 3 << 20, 10];
    for (seed, size) in sizes.into_iter().enumerate() {
        let file = bytes(seed as u64, size);
        let store = open();
        store.put_file("run", &file).unwrap();
        store.put_file("run-2", b"beside").unwrap();
        let expected = [("run".to_owned(), size as u64), ("run-2".to_owned(), 6)];
        let check = |store: &Part| {
            assert!(store.file_part("run", 0, size).unwrap() == Some(file.clone()), "the file of {size} bytes differs");
            assert_eq!(store.file_part("run-2", 0, 6).unwrap().unwrap(), b"beside");
            assert_eq!(store.files().unwrap(), expected);
        };
        check(&store);
        drop(store);
        check(&open());
    }
    let store = open();
    store.remove_file("run").unwrap();
    store.remove_file("never-put").unwrap();
    assert_eq!(store.file_part("run", 0, 10).unwrap(), None);
    drop(store);
    let store = open();
    assert_eq!(store.file_part("run", 0, 10).unwrap(), None);
    assert_eq!(store.files().unwrap(), [("run-2".to_owned(), 6)]);
    // A name can be used again.
    store.put_file("run", b"anew").unwrap();
    assert_eq!(store.file_part("run", 0, 10).unwrap().unwrap(), b"anew");
}

fn files_in_parts(open: &dyn Fn() -> Part) {
    let store = open();
    let file = bytes(1, 10_000);
    store.put_file("run", &file).unwrap();
    // Offset, length, what is read.
    let cases: [(u64, usize, &[u8]); 9] = [
        (0, 10_000, &file),
        (0, 0, &[]),
        (0, 1, &file[..1]),
        (4_095, 2, &file[4_095..4_097]),
        (9_999, 1, &file[9_999..]),
        (9_000, 5_000, &file[9_000..]),
        (10_000, 1, &[]),
        (10_001, 100, &[]),
        (1 << 40, 1, &[]),
    ];
    for (offset, length, expected) in cases {
        let part = store.file_part("run", offset, length).unwrap();
        assert_eq!(part.as_deref(), Some(expected), "{length} bytes from {offset}");
    }
    assert_eq!(store.file_part("absent", 0, 1).unwrap(), None);
    assert_eq!(store.file_part("absent", 100, 0).unwrap(), None);
}

fn names_of_files(open: &dyn Fn() -> Part) {
    let store = open();
    let longest = "n".repeat(FILE_NAME_BYTES_MAX);
    let too_long = "n".repeat(FILE_NAME_BYTES_MAX + 1);
    let refused = [
        "", ".", "..", "../run", "/run", "run/1", "Run", "1", "-", ".run", "run~", "run 1", "run_1", "r\0", "é",
        &too_long,
    ];
    for name in refused {
        let is_refused = |answer: Result<(), StoreError>| matches!(answer, Err(StoreError::Unstorable(_)));
        assert!(is_refused(store.put_file(name, b"bytes")), "{name:?}");
        assert!(is_refused(store.file_part(name, 0, 1).map(drop)), "{name:?}");
        assert!(is_refused(store.remove_file(name)), "{name:?}");
    }
    assert_eq!(store.files().unwrap(), []);
    // A refusal is no failure of the machine: the store goes on.
    let names = ["run-10", "a", "run.1", longest.as_str(), "run-1"];
    names.iter().for_each(|name| store.put_file(name, name.as_bytes()).unwrap());
    let listed: Vec<String> = store.files().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, ["a", &longest, "run-1", "run-10", "run.1"]);
}

/// Many threads read while one appends and another replaces state. Every Record below the head can
/// be read, and none above it; a value is always one of those that were put.
fn readers_beside_the_writer(open: &dyn Fn() -> Part) {
    const BLOCKS: u64 = 60;
    let store = open();
    let store = &store;
    store.put_state_lazily(b"key", &[0; 20_000]).unwrap();
    store.put_file("run", &[0; 20_000]).unwrap();
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            for number in 0..BLOCKS {
                append(store, vec![bytes(number, 300), bytes(number, 9_000)]);
            }
        });
        scope.spawn(|| {
            for number in 0..200 {
                store.put_state_lazily(b"key", &[number as u8; 20_000]).unwrap();
            }
        });
        scope.spawn(|| (1..=50).for_each(|number| store.put_file("run", &[number; 20_000]).unwrap()));
        while !appending.is_finished() {
            let head = store.head().unwrap();
            let last = Sequence(head.next.0 - 1);
            assert_eq!(store.record(last).unwrap().is_some(), last.0 > 0);
            let beyond = store.record(head.next).unwrap();
            assert!(beyond.is_none() || store.head().unwrap().next > head.next);
            assert!(all_blocks(store, last.0).len() as u64 >= u64::from(last.0 > 0));
            let value = store.state(b"key").unwrap().unwrap();
            let file = store.file_part("run", 0, 30_000).unwrap().unwrap();
            for bytes in [value, file] {
                assert!(bytes.len() == 20_000 && bytes.iter().all(|byte| *byte == bytes[0]));
            }
        }
    });
    assert_eq!(all_blocks(store, 1).len() as u64, BLOCKS);
}
