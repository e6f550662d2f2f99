//! Backups of stores in memory, for any journal, cut into any runs and files: a restored store
//! equals the original, and damage is named.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::testkit::MemoryStore;

fn append(store: &Part, booked_at_ms: i64, records: Vec<Vec<u8>>) {
    let head = store.head().unwrap();
    let booked_at_ms = booked_at_ms.max(head.booked_at_ms);
    let block = Block { partition: PARTITION, first: head.next, booked_at_ms, previous: head.hash, records };
    store.append(&block).unwrap();
}

/// A journal of this number of blocks of two Records; each Record says `word`.
fn journal(word: &str, blocks: u32) -> Part {
    let store = MemoryStore::new().part();
    store.store().insert_common(b"stamp/mode", b"sandbox").unwrap();
    extend(&store, word, blocks);
    store
}

fn extend(store: &Part, word: &str, blocks: u32) {
    for _ in 0..blocks {
        let next = store.head().unwrap().next.0;
        append(store, 1_000, vec![format!("{word} {next}").into_bytes(), word.as_bytes().repeat(40)]);
    }
}

fn run(store: &Part, folder: &Path, file_bytes_max: u64) -> Result<Taken, BackupError> {
    let mut run = BackupRun::begin(folder, &mut |_, _| {})?;
    run.file_bytes_max = file_bytes_max;
    let from = run.head().next;
    run.take(frames(store, from)?, &mut |_, _| {})
}

fn restored(folder: &Path, tail: Option<Tail<'_>>) -> Result<(Part, Restored), BackupError> {
    let store = MemoryStore::new().part();
    let restored = restore(&BackupFolder::open(folder)?, tail, &store, &mut |_, _| {})?;
    Ok((store, restored))
}

fn blocks(store: &Part) -> Vec<Block> {
    store.blocks(Sequence::FIRST).map(Result::unwrap).collect()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// The whole backup, read and checked.
fn check(folder: &Path) -> Result<(), BackupError> {
    BackupFolder::open(folder)?.blocks().try_for_each(|block| block.map(drop))
}

fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_restored_is_what_was_there(
        blocks_of_runs in prop::collection::vec(prop::collection::vec((records(), 0_i64..5), 0..8), 1..5),
        values in prop::collection::btree_map("keys/[a-z]{1,9}", prop::collection::vec(any::<u8>(), 0..99), 0..4),
        file_bytes_max in 1_u64..2_000,
    ) {
        let folder = TempDir::new().unwrap();
        let store = MemoryStore::new().part();
        for (key, value) in &values {
            store.put_state(key.as_bytes(), value).unwrap();
        }
        store.put_state_lazily(b"snapshot/1", b"derived").unwrap();
        let mut booked_at_ms = 0;
        for blocks_of_run in blocks_of_runs {
            let count: usize = blocks_of_run.iter().map(|(records, _)| records.len()).sum();
            for (records, later) in blocks_of_run {
                booked_at_ms += later;
                append(&store, booked_at_ms, records);
            }
            let taken = run(&store, folder.path(), file_bytes_max).unwrap();
            prop_assert_eq!(taken.records, count as u64);
            prop_assert_eq!(taken.head, store.head().unwrap());
        }
        let (again, _) = restored(folder.path(), None).unwrap();
        prop_assert_eq!(blocks(&again), blocks(&store));
        prop_assert_eq!(durable_values(&again).unwrap(), durable_values(&store).unwrap());
        prop_assert_eq!(again.state_keys(b"snapshot").unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_frame_reads_back_and_no_byte_of_it_can_change(records in records(), place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let head = Head { next: Sequence(7), hash: crate::store::BlockHash([9; 32]), booked_at_ms: -5 };
        let block = Block { partition: PARTITION, first: head.next, booked_at_ms: 3, previous: head.hash, records };
        let value = Frame::Value { key: b"key".to_vec(), value: b"value".to_vec() };
        for frame in [Frame::Block(block), value, Frame::End(head)] {
            let mut bytes = Vec::new();
            write_magic(&mut bytes).unwrap();
            bytes.extend(frame.to_bytes().unwrap());
            let read = |bytes: &[u8]| {
                let mut reader = FrameReader::new(bytes, "bytes".into())?;
                let frame = reader.next_frame()?;
                reader.finish().map(|()| frame)
            };
            prop_assert_eq!(read(&bytes).unwrap(), frame);
            let at = place.index(bytes.len());
            prop_assert!(read(&bytes[..at]).is_err(), "cut at {}", at);
            bytes[at] ^= 1 << bit;
            prop_assert!(read(&bytes).is_err(), "changed at {}", at);
        }
    }
}

#[test]
fn a_run_that_takes_often_has_few_files_and_the_same_blocks() {
    let folder = TempDir::new().unwrap();
    let store = journal("a", 1);
    let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
    let (mut files_most, mut crashes) = (0, 0);
    for _ in 0..300 {
        let from = run.head().next;
        assert_eq!(run.take(frames(&store, from).unwrap(), &mut |_, _| {}).unwrap().records, 2);
        // The files before the merge: a crash may leave those after the merged one behind.
        let before = files(folder.path());
        run.merge().unwrap();
        let after = files(folder.path());
        if after.len() < before.len() && crashes < 20 {
            crashes += 1;
            let crashed = TempDir::new().unwrap();
            for (name, bytes) in before.iter().filter(|(name, _)| !after.iter().any(|(other, _)| other == name)) {
                fs::write(crashed.path().join(name), bytes).unwrap();
            }
            after.iter().for_each(|(name, bytes)| fs::write(crashed.path().join(name), bytes).unwrap());
            check(crashed.path()).unwrap();
            let again = super::tests::run(&store, crashed.path(), 1 << 20).unwrap();
            assert_eq!((again.records, again.head), (0, store.head().unwrap()));
        }
        files_most = files_most.max(files(folder.path()).len());
        extend(&store, "a", 1);
    }
    assert!(crashes == 20 && (4..=30).contains(&files_most), "{files_most} files");
    let from = run.head().next;
    run.take(frames(&store, from).unwrap(), &mut |_, _| {}).unwrap();
    check(folder.path()).unwrap();
    let (again, _) = restored(folder.path(), None).unwrap();
    assert_eq!(blocks(&again), blocks(&store));
    drop(run);
    // A file does not grow beyond the largest size.
    for _ in 0..20 {
        extend(&store, "a", 1);
        super::tests::run(&store, folder.path(), 700).unwrap();
    }
    let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
    run.file_bytes_max = 700;
    let before = files(folder.path());
    run.merge().unwrap();
    check(folder.path()).unwrap();
    let grown = files(folder.path()).iter().any(|file| !before.contains(file) && file.1.len() > 700);
    assert!(!grown);
}

#[test]
fn a_backup_in_runs_holds_what_one_run_holds() {
    let (often, once) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = journal("a", 0);
    for _ in 0..5 {
        extend(&store, "a", 3);
        assert_eq!(run(&store, often.path(), 1 << 20).unwrap().records, 6);
    }
    assert_eq!(run(&store, often.path(), 1 << 20).unwrap().records, 0, "nothing is new");
    run(&store, once.path(), 1 << 20).unwrap();
    let names = |folder: &Path| files(folder).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(once.path()), ["000001.blocks", "keys", "lock"]);
    assert_eq!(names(often.path()).len(), 5 + 2);
    for folder in [&often, &once] {
        assert_eq!(blocks(&restored(folder.path(), None).unwrap().0), blocks(&store));
    }
    let keys = |folder: &Path| fs::read(folder.join("keys")).unwrap();
    assert_eq!(keys(often.path()), keys(once.path()));
}

#[test]
fn a_run_that_is_cut_anywhere_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let store = journal("a", 2);
    run(&store, folder.path(), 200).unwrap();
    let before = files(folder.path());
    extend(&store, "a", 6);
    let from = store.blocks(Sequence(5)).next().unwrap().unwrap().first;
    let whole = frames(&store, from).unwrap().count();
    for length in 0..whole {
        let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
        run.file_bytes_max = 200;
        let cut = frames(&store, from).unwrap().take(length);
        let error = run.take(cut, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, BackupError::Source("it breaks off")), "{length}: {error}");
        assert_eq!(files(folder.path()), before, "{length}");
    }
    run(&store, folder.path(), 200).unwrap();
    assert_eq!(blocks(&restored(folder.path(), None).unwrap().0), blocks(&store));
}

/// A kill can come between any two of a run's changes to the folder's names.
#[test]
fn a_run_that_is_killed_between_two_renames_is_run_again() {
    let (folder, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = journal("a", 2);
    for place in [&folder, &whole] {
        run(&store, place.path(), 200).unwrap();
    }
    let first = store.head().unwrap();
    let counted = files(folder.path()).len();
    extend(&store, "a", 6);
    run(&store, whole.path(), 200).unwrap();
    let new = files(whole.path()).into_iter().filter(|(name, _)| name.ends_with(".blocks")).skip(counted - 2);
    for (name, bytes) in new {
        fs::write(folder.path().join(&name), bytes).unwrap();
        fs::write(folder.path().join("000099.blocks~"), b"unfinished").unwrap();
        assert_eq!(restored(folder.path(), None).unwrap().1.head, first, "until the keys are there, nothing counts");
    }
    let other = journal("b", 3);
    assert!(matches!(run(&other, folder.path(), 200), Err(BackupError::OtherJournal { .. })));
    extend(&store, "a", 1);
    run(&store, folder.path(), 1 << 20).unwrap();
    assert_eq!(files(folder.path()).len(), counted + 1, "the files that did not count were replaced by one");
    assert_eq!(blocks(&restored(folder.path(), None).unwrap().0), blocks(&store));

    let begun = TempDir::new().unwrap();
    run(&journal("a", 0), begun.path(), 200).unwrap();
    fs::write(begun.path().join("000001.blocks"), b"of a first run that was killed").unwrap();
    run(&store, begun.path(), 200).unwrap();
    check(begun.path()).unwrap();
}

/// By the mode with which they are made: the crate does not rely on the umask of its process.
#[test]
fn files_are_for_their_owner_alone() {
    let (store, folder) = (journal("a", 6), TempDir::new().unwrap());
    run(&store, folder.path(), 200).unwrap();
    let mut merged = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
    merged.merge().unwrap();
    for file in fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}: {mode:o}", file.display());
    }
}

#[test]
fn every_damage_is_named_by_its_file() {
    let folder = TempDir::new().unwrap();
    let store = journal("a", 8);
    run(&store, folder.path(), 300).unwrap();
    let whole = files(folder.path());
    let damage = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        let before = fs::read(&path).unwrap();
        bytes.map_or_else(|| fs::remove_file(&path), |bytes| fs::write(&path, bytes)).unwrap();
        for error in [check(folder.path()).unwrap_err(), run(&store, folder.path(), 300).unwrap_err()] {
            let said = error.to_string();
            assert!(said.starts_with(&path.display().to_string()), "{name}: {said}");
        }
        fs::write(&path, before).unwrap();
        check(folder.path()).unwrap();
    };
    assert!(whole.len() > 4, "the journal takes some files");
    for (name, bytes) in whole.iter().filter(|(name, _)| name != "lock") {
        damage(name, None);
        for at in (0..bytes.len()).step_by(7) {
            damage(name, Some(&bytes[..at]));
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            damage(name, Some(&flipped));
        }
        damage(name, Some(&[bytes.as_slice(), b"x"].concat()));
        let mut newer = bytes.clone();
        newer[15] = FORMAT + 1;
        fs::write(folder.path().join(name), newer).unwrap();
        let error = check(folder.path()).unwrap_err();
        assert!(
            error.to_string().ends_with("written in format 2; this release reads formats up to 1: use a newer release")
        );
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let (first, second) = (folder.path().join("000001.blocks"), folder.path().join("000002.blocks"));
    fs::copy(&second, &first).unwrap();
    let said = check(folder.path()).unwrap_err().to_string();
    assert!(said.contains("000001.blocks: damaged: a block does not continue the chain"), "{said}");
}

#[test]
fn a_journal_that_does_not_continue_the_backup_is_refused() {
    let folder = TempDir::new().unwrap();
    let store = journal("a", 4);
    run(&store, folder.path(), 1 << 20).unwrap();
    let before = files(folder.path());
    let shorter = journal("a", 3);
    for other in [journal("b", 4), journal("b", 9), journal("b", 2), shorter, journal("a", 0)] {
        let error = run(&other, folder.path(), 1 << 20).unwrap_err();
        assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
        assert_eq!(files(folder.path()), before);
    }
    let run_of_another = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
    assert!(matches!(run(&store, folder.path(), 1 << 20), Err(BackupError::InUse { .. })));
    drop(run_of_another);
    fs::remove_file(folder.path().join("keys")).unwrap();
    let said = run(&store, folder.path(), 1 << 20).unwrap_err().to_string();
    assert!(said.contains("keys: damaged: missing beside the blocks"), "{said}");
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("letter"), b"").unwrap();
    assert!(matches!(run(&store, elsewhere.path(), 1), Err(BackupError::NotEmpty { .. })));
    assert!(matches!(BackupFolder::open(&elsewhere.path().join("nowhere")), Err(BackupError::NoBackup { .. })));
}

#[test]
fn a_source_that_leaves_something_out_is_found_out() {
    let store = journal("a", 4);
    let whole: Vec<Frame> = frames(&store, Sequence::FIRST).unwrap().map(Result::unwrap).collect();
    for left_out in 0..whole.len() {
        if matches!(whole[left_out], Frame::Value { .. }) {
            continue;
        }
        let folder = TempDir::new().unwrap();
        let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
        let rest = whole.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, frame)| Ok(frame.clone()));
        assert!(run.take(rest, &mut |_, _| {}).is_err(), "{left_out}");
        assert!(!BackupFolder::is_one(folder.path()));
    }
}

#[test]
fn a_tail_goes_on_where_the_backup_ends() {
    let (folder, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = journal("a", 3);
    run(&store, folder.path(), 1 << 20).unwrap();
    store.store().insert_common(b"keys/month/1", b"newer").unwrap();
    extend(&store, "a", 4);
    run(&store, second.path(), 300).unwrap();
    let other_backup = BackupFolder::open(second.path()).unwrap();
    for tail in [Tail::Store(&store), Tail::Backup(&other_backup)] {
        let (again, told) = restored(folder.path(), Some(tail)).unwrap();
        assert_eq!(blocks(&again), blocks(&store));
        assert_eq!(again.store().common(b"keys/month/1").unwrap().as_deref(), Some(&b"newer"[..]));
        let told = told.tail.unwrap();
        assert!((told.records, told.stopped.is_none(), told.without_keys.is_none()) == (8, true, true), "{told:?}");
    }
    let (_, told) = restored(second.path(), Some(Tail::Backup(&BackupFolder::open(folder.path()).unwrap()))).unwrap();
    assert_eq!(told.tail.unwrap().records, 0, "an older copy gives nothing");
    for other in [journal("b", 7), journal("b", 3)] {
        let error = restored(folder.path(), Some(Tail::Store(&other))).unwrap_err();
        assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
    }
    // Cut somewhere behind the first copy's end.
    let last = second.path().join("000003.blocks");
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() / 2]).unwrap();
    let (again, told) = restored(folder.path(), Some(Tail::Backup(&other_backup))).unwrap();
    let told = told.tail.unwrap();
    assert!(told.stopped.unwrap().to_string().contains("000003.blocks: damaged: it is cut off"));
    assert!((1..8).contains(&told.records));
    assert!(blocks(&store).starts_with(&blocks(&again)));
}
