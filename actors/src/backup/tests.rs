//! Backups of stores in memory, for any journals of any partitions, cut into any runs and files: a
//! restored store equals the original, and damage is named.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use derived::extents::Extent;
use ledger::id::GroupNumber;
use store::testkit::{MemoryStore, Watch, WatchedStore};
use store::{BlockHash, Durability, Head, SledOptions, SledStore};

/// A store and its partitions.
#[derive(Debug)]
struct Journals(Vec<Part>);

impl Journals {
    /// A new store with this number of partitions; of one partition it says nothing.
    fn new(partitions: u16) -> Self {
        Self::made_in(Arc::new(MemoryStore::new()), partitions)
    }

    fn made_in(store: Arc<dyn Store>, partitions: u16) -> Self {
        store.insert_common(b"stamp/mode", b"sandbox").unwrap();
        if partitions > 1 {
            let all = Extent { from: GroupNumber(0), first: Partition(0), count: partitions };
            Extents::new(vec![all]).unwrap().keep(&*store).unwrap();
        }
        Self(Extents::of(&*store).unwrap().all().map(|one| Part::take(Arc::clone(&store), one).unwrap()).collect())
    }

    /// The partitions that a restore has made, to be read only.
    fn of(store: &Arc<dyn Store>) -> Self {
        Self(Extents::parts_of(store).unwrap())
    }

    fn store(&self) -> &dyn Store {
        &**self.0[0].store()
    }

    fn append(&self, partition: usize, booked_at_ms: i64, records: Vec<Vec<u8>>) {
        let head = self.0[partition].head().unwrap();
        let booked_at_ms = booked_at_ms.max(head.booked_at_ms);
        let partition_of_block = self.0[partition].partition();
        let (first, previous) = (head.next, head.hash);
        let block = Block { partition: partition_of_block, first, booked_at_ms, previous, records };
        self.0[partition].append(&block).unwrap();
    }

    fn heads(&self) -> Heads {
        Heads::of_parts(&self.0).unwrap()
    }

    fn values(&self) -> Vec<DurableValue> {
        durable_values(&self.0).unwrap()
    }

    /// The blocks of each partition.
    fn blocks(&self) -> Vec<Vec<Block>> {
        self.0.iter().map(|part| part.blocks(Sequence::FIRST).map(Result::unwrap).collect()).collect()
    }
}

/// A journal of this number of blocks of two Records; each Record says `word`.
fn journal(word: &str, blocks: u32) -> Journals {
    let journal = Journals::new(1);
    extend(&journal, word, blocks);
    journal
}

fn extend(journals: &Journals, word: &str, blocks: u32) {
    extend_in(journals, 0, word, blocks);
}

fn extend_in(journals: &Journals, partition: usize, word: &str, blocks: u32) {
    for _ in 0..blocks {
        let next = journals.0[partition].head().unwrap().next.0;
        journals.append(partition, 1_000, vec![format!("{word} {next}").into_bytes(), word.as_bytes().repeat(40)]);
    }
}

/// Three partitions, of which the last has a cursor and the middle one nothing.
fn three(word: &str, blocks: u32) -> Journals {
    three_in(MemoryStore::new(), word, blocks)
}

fn three_in(store: MemoryStore, word: &str, blocks: u32) -> Journals {
    let journals = Journals::made_in(Arc::new(store), 3);
    extend_in(&journals, 0, word, blocks);
    extend_in(&journals, 2, word, blocks);
    journals.0[2].put_cursor(b"webhooks/2", b"progress").unwrap();
    journals.0[2].put_cursor(b"webhooks/tries/2", b"tries").unwrap();
    journals
}

fn run(journals: &Journals, folder: &Path, file_bytes_max: u64) -> Result<BackupResult, BackupError> {
    let mut run = BackupRun::begin(folder, &mut |_, _| {})?;
    run.file_bytes_max = file_bytes_max;
    let from = run.heads().next();
    run.take(frames(&journals.0, &from)?, &mut |_, _| {})
}

fn restored(folder: &Path, tail: Option<Tail<'_>>) -> Result<(Journals, RestoreResult), BackupError> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let restored = restore(&BackupFolder::open(folder)?, tail, &store, &mut |_, _| {})?;
    Ok((Journals::of(&store), restored))
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
        partitions in 1_u16..5,
        blocks_of_runs in prop::collection::vec(prop::collection::vec((0_usize..5, records(), 0_i64..5), 0..8), 1..5),
        values in prop::collection::btree_map("keys/[a-z]{1,9}", prop::collection::vec(any::<u8>(), 0..99), 0..4),
        cursors in prop::collection::btree_map((0_usize..5, "webhooks/[a-z]{1,9}"), prop::collection::vec(any::<u8>(), 0..99), 0..4),
        file_bytes_max in 1_u64..2_000,
    ) {
        let folder = TempDir::new().unwrap();
        let journals = Journals::new(partitions);
        for (key, value) in &values {
            journals.store().insert_common(key.as_bytes(), value).unwrap();
        }
        let part = |number: usize| &journals.0[number % usize::from(partitions)];
        for ((number, key), value) in &cursors {
            part(*number).put_cursor(key.as_bytes(), value).unwrap();
        }
        part(1).put_state_lazily(b"snapshot/1", b"derived").unwrap();
        let mut booked_at_ms = 0;
        for blocks_of_run in blocks_of_runs {
            let count: usize = blocks_of_run.iter().map(|(_, records, _)| records.len()).sum();
            for (number, records, later) in blocks_of_run {
                booked_at_ms += later;
                journals.append(number % usize::from(partitions), booked_at_ms, records);
            }
            let taken = run(&journals, folder.path(), file_bytes_max).unwrap();
            prop_assert_eq!(taken.records, count as u64);
            prop_assert_eq!(taken.heads, journals.heads());
        }
        let (again, outcome) = restored(folder.path(), None).unwrap();
        prop_assert_eq!(&outcome.heads, &journals.heads());
        prop_assert_eq!(again.blocks(), journals.blocks());
        prop_assert_eq!(again.values(), journals.values());
        prop_assert_eq!(again.0[usize::from(partitions) - 1].state_keys(b"snapshot").unwrap(), Vec::<Vec<u8>>::new());
        // Blocks of all partitions stand in the order of booking.
        let booked: Vec<_> = frames(&journals.0, &Cut::default()).unwrap().filter_map(|frame| match frame.unwrap() {
            Frame::Block(block) => Some(block.booked_at_ms),
            _ => None,
        }).collect();
        prop_assert!(booked.is_sorted(), "{:?}", booked);
    }

    #[test]
    fn a_frame_reads_back_and_no_byte_of_it_can_change(
        records in records(),
        partition in 0_u16..3,
        place in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let head = Head { next: Sequence(7), hash: BlockHash([9; 32]), booked_at_ms: -5 };
        let partition = Partition(partition);
        let block = Block { partition, first: head.next, booked_at_ms: 3, previous: head.hash, records };
        let value = Frame::Value(DurableValue { partition, key: b"key".to_vec(), value: b"value".to_vec() });
        let heads = Heads::new(vec![Head::EMPTY, head]);
        for frame in [Frame::Block(block), value, Frame::End(heads)] {
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
        let from = run.heads().next();
        assert_eq!(run.take(frames(&store.0, &from).unwrap(), &mut |_, _| {}).unwrap().records, 2);
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
            assert_eq!((again.records, again.heads), (0, store.heads()));
        }
        files_most = files_most.max(files(folder.path()).len());
        extend(&store, "a", 1);
    }
    assert!(crashes == 20 && (4..=30).contains(&files_most), "{files_most} files");
    let from = run.heads().next();
    run.take(frames(&store.0, &from).unwrap(), &mut |_, _| {}).unwrap();
    check(folder.path()).unwrap();
    let (again, _) = restored(folder.path(), None).unwrap();
    assert_eq!(again.blocks(), store.blocks());
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
        assert_eq!(restored(folder.path(), None).unwrap().0.blocks(), store.blocks());
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
    let from = Cut::new(vec![store.0[0].blocks(Sequence(5)).next().unwrap().unwrap().first]);
    let whole = frames(&store.0, &from).unwrap().count();
    for length in 0..whole {
        let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
        run.file_bytes_max = 200;
        let cut = frames(&store.0, &from).unwrap().take(length);
        let error = run.take(cut, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, BackupError::Source("it breaks off")), "{length}: {error}");
        assert_eq!(files(folder.path()), before, "{length}");
    }
    run(&store, folder.path(), 200).unwrap();
    assert_eq!(restored(folder.path(), None).unwrap().0.blocks(), store.blocks());
}

/// A kill can come between any two of a run's changes to the folder's names.
#[test]
fn a_run_that_is_killed_between_two_renames_is_run_again() {
    let (folder, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = journal("a", 2);
    for place in [&folder, &whole] {
        run(&store, place.path(), 200).unwrap();
    }
    let first = store.heads();
    let counted = files(folder.path()).len();
    extend(&store, "a", 6);
    run(&store, whole.path(), 200).unwrap();
    let new = files(whole.path()).into_iter().filter(|(name, _)| name.ends_with(".blocks")).skip(counted - 2);
    for (name, bytes) in new {
        fs::write(folder.path().join(&name), bytes).unwrap();
        fs::write(folder.path().join("000099.blocks~"), b"unfinished").unwrap();
        assert_eq!(restored(folder.path(), None).unwrap().1.heads, first, "until the keys are there, nothing counts");
    }
    let other = journal("b", 3);
    assert!(matches!(run(&other, folder.path(), 200), Err(BackupError::OtherJournal { .. })));
    extend(&store, "a", 1);
    run(&store, folder.path(), 1 << 20).unwrap();
    assert_eq!(files(folder.path()).len(), counted + 1, "the files that did not count were replaced by one");
    assert_eq!(restored(folder.path(), None).unwrap().0.blocks(), store.blocks());

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
        assert!(error.to_string().ends_with("written in format 2; this release reads format 1: use a newer release"));
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
    let whole: Vec<Frame> = frames(&store.0, &Cut::default()).unwrap().map(Result::unwrap).collect();
    for left_out in 0..whole.len() {
        if matches!(whole[left_out], Frame::Value(_)) {
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
    for tail in [Tail::Store(&store.0), Tail::Backup(&other_backup)] {
        let (again, result) = restored(folder.path(), Some(tail)).unwrap();
        assert_eq!(again.blocks(), store.blocks());
        assert_eq!(again.store().common(b"keys/month/1").unwrap().as_deref(), Some(&b"newer"[..]));
        let tail = result.tail.unwrap();
        assert!((tail.records, tail.stopped.is_none(), tail.without_keys.is_none()) == (8, true, true), "{tail:?}");
    }
    let (_, outcome) =
        restored(second.path(), Some(Tail::Backup(&BackupFolder::open(folder.path()).unwrap()))).unwrap();
    assert_eq!(outcome.tail.unwrap().records, 0, "an older copy gives nothing");
    for other in [journal("b", 7), journal("b", 3)] {
        let error = restored(folder.path(), Some(Tail::Store(&other.0))).unwrap_err();
        assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
    }
    // Cut somewhere behind the first copy's end.
    let last = second.path().join("000003.blocks");
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() / 2]).unwrap();
    let (again, outcome) = restored(folder.path(), Some(Tail::Backup(&other_backup))).unwrap();
    let outcome = outcome.tail.unwrap();
    assert!(outcome.stopped.unwrap().to_string().contains("000003.blocks: damaged: it is cut off"));
    assert!((1..8).contains(&outcome.records));
    assert!(store.blocks()[0].starts_with(&again.blocks()[0]));
}

#[test]
fn all_partitions_are_restored_with_their_cursors_and_the_extents() {
    let folder = TempDir::new().unwrap();
    let journals = three("a", 3);
    run(&journals, folder.path(), 300).unwrap();
    extend_in(&journals, 2, "a", 2);
    let taken = run(&journals, folder.path(), 300).unwrap();
    assert_eq!((taken.records, taken.heads.cut().to_string()), (4, "0=6,1=0,2=10".to_owned()));
    let (again, outcome) = restored(folder.path(), None).unwrap();
    assert_eq!((again.0.len(), &outcome.heads), (3, &journals.heads()));
    assert_eq!((again.blocks(), again.values()), (journals.blocks(), journals.values()));
    assert_eq!(again.0[2].cursor(b"webhooks/2").unwrap().unwrap(), b"progress");
    assert_eq!(again.0[0].cursor_keys().unwrap(), Vec::<Vec<u8>>::new());
    // The partitions were given up by whoever restored them, and one without blocks is there too.
    for part in &again.0 {
        assert!(again.store().epoch(part.partition()).unwrap().0 > 0);
    }
}

#[test]
fn a_run_that_is_cut_anywhere_changes_nothing_in_any_partition() {
    let folder = TempDir::new().unwrap();
    let journals = three("a", 2);
    run(&journals, folder.path(), 300).unwrap();
    let before = files(folder.path());
    extend_in(&journals, 2, "a", 3);
    extend_in(&journals, 1, "a", 2);
    let from = BackupFolder::open(folder.path()).unwrap().heads().next();
    let whole = frames(&journals.0, &from).unwrap().count();
    for length in 0..whole {
        let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
        run.file_bytes_max = 300;
        let cut = frames(&journals.0, &from).unwrap().take(length);
        assert!(matches!(run.take(cut, &mut |_, _| {}), Err(BackupError::Source("it breaks off"))), "{length}");
        assert_eq!(files(folder.path()), before, "{length}");
    }
    // What is left out in one partition is noticed, although the others are whole.
    let frames_of_all: Vec<Frame> = frames(&journals.0, &from).unwrap().map(Result::unwrap).collect();
    for left_out in 0..whole {
        if !matches!(frames_of_all[left_out], Frame::Block(_)) {
            continue;
        }
        let mut run = BackupRun::begin(folder.path(), &mut |_, _| {}).unwrap();
        let rest = frames_of_all.iter().enumerate().filter(|(at, _)| *at != left_out);
        assert!(run.take(rest.map(|(_, frame)| Ok(frame.clone())), &mut |_, _| {}).is_err(), "{left_out}");
        assert_eq!(files(folder.path()), before, "{left_out}");
    }
    run(&journals, folder.path(), 300).unwrap();
    assert_eq!(restored(folder.path(), None).unwrap().0.blocks(), journals.blocks());
}

#[test]
fn another_journal_is_told_by_the_partition_that_differs() {
    let folder = TempDir::new().unwrap();
    run(&three("a", 4), folder.path(), 1 << 20).unwrap();
    let before = files(folder.path());
    let tail_of = |blocks: [u32; 2], words: [&str; 2]| {
        let other = Journals::new(3);
        extend_in(&other, 0, words[0], blocks[0]);
        extend_in(&other, 2, words[1], blocks[1]);
        let error = run(&other, folder.path(), 1 << 20).unwrap_err();
        assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
        assert_eq!(files(folder.path()), before);
        error.to_string()
    };
    let shorter = tail_of([4, 3], ["a", "a"]);
    assert!(shorter.ends_with("goes through sequence 8 of partition 2, and the journal ends at 6"), "{shorter}");
    for blocks in [4, 6] {
        let other = tail_of([4, blocks], ["a", "b"]);
        assert!(other.ends_with("another block at sequence 8 of partition 2"), "{other}");
        let other = tail_of([blocks, 4], ["b", "a"]);
        assert!(other.ends_with("another block at sequence 8"), "{other}");
    }
}

/// A backup of a store that got more partitions since.
#[test]
fn a_backup_goes_on_with_the_partitions_that_came_later() {
    let folder = TempDir::new().unwrap();
    let before = journal("a", 2);
    run(&before, folder.path(), 1 << 20).unwrap();
    let store = Arc::clone(before.0[0].store());
    let more = Extents::of(&*store).unwrap().grown(GroupNumber(9), 2).unwrap().keep(&*store).unwrap();
    let grown = Journals(more.all().map(|one| Part::take(Arc::clone(&store), one).unwrap()).collect());
    extend_in(&grown, 1, "a", 3);
    extend_in(&grown, 0, "a", 1);
    assert_eq!(run(&grown, folder.path(), 1 << 20).unwrap().records, 8);
    let (again, _) = restored(folder.path(), None).unwrap();
    assert_eq!((again.blocks(), again.values()), (grown.blocks(), grown.values()));
}

#[test]
fn a_tail_goes_on_in_every_partition_and_brings_its_cursors() {
    let (folder, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let journals = three("a", 2);
    run(&journals, folder.path(), 1 << 20).unwrap();
    for (partition, blocks) in [(0, 1), (1, 2), (2, 3)] {
        extend_in(&journals, partition, "a", blocks);
    }
    journals.0[1].put_cursor(b"webhooks/1", b"newer").unwrap();
    run(&journals, second.path(), 300).unwrap();
    let other_backup = BackupFolder::open(second.path()).unwrap();
    for tail in [Tail::Store(&journals.0), Tail::Backup(&other_backup)] {
        let (again, outcome) = restored(folder.path(), Some(tail)).unwrap();
        assert_eq!((again.blocks(), again.values()), (journals.blocks(), journals.values()));
        assert_eq!((outcome.tail.unwrap().records, outcome.heads), (12, journals.heads()));
    }
    let other = three("a", 2);
    extend_in(&other, 2, "b", 1);
    let longer = three("b", 3);
    restored(folder.path(), Some(Tail::Store(&other.0))).unwrap();
    let error = restored(folder.path(), Some(Tail::Store(&longer.0))).unwrap_err();
    assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
}

#[test]
fn a_store_that_has_no_room_for_the_partitions_is_refused_at_once() {
    let (folder, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store: Arc<dyn Store> = Arc::new(store::SledStore::open(data.path(), &Default::default()).unwrap());
    for (partitions, fits) in [(65, false), (64, true)] {
        let journals = Journals::new(partitions);
        extend_in(&journals, usize::from(partitions) - 1, "a", 1);
        let folder = folder.path().join(partitions.to_string());
        run(&journals, &folder, 1 << 20).unwrap();
        let filled = restore(&BackupFolder::open(&folder).unwrap(), None, &store, &mut |_, _| {});
        let said = filled.map(drop).map_err(|error| error.to_string());
        let refused = "the backup has 65 partitions, and a store on one machine has 64 at most".to_owned();
        assert_eq!(said, if fits { Ok(()) } else { Err(refused) });
    }
}

/// Damage of the block that begins with this Record of this partition.
struct DamageAt(Partition, Sequence);

impl Watch for DamageAt {
    fn loses(&self, _: &[u8], _: Option<&[u8]>, _: Durability) -> bool {
        false
    }

    fn damages(&self, block: &Block) -> bool {
        (block.partition, block.first) == (self.0, self.1)
    }
}

#[test]
fn damage_in_one_partition_of_a_second_copy_ends_that_partition_alone() {
    let folder = TempDir::new().unwrap();
    let memory = MemoryStore::new();
    let journals = three_in(memory.clone(), "a", 2);
    run(&journals, folder.path(), 1 << 20).unwrap();
    for partition in 0..3 {
        extend_in(&journals, partition, "a", 3);
    }
    let watch = DamageAt(Partition(0), Sequence(7));
    let damaged: Arc<dyn Store> = Arc::new(WatchedStore { store: memory, watch });
    let parts = Extents::parts_of(&damaged).unwrap();
    let (again, outcome) = restored(folder.path(), Some(Tail::Store(&parts))).unwrap();
    let outcome = outcome.tail.unwrap();
    assert!(outcome.stopped.unwrap().to_string().contains("damaged at sequence 7"));
    assert_eq!((outcome.records, again.heads().cut().to_string()), (14, "0=6,1=6,2=10".to_owned()));
    // A backup of such a store is refused, and its folder stays as it was.
    let before = files(folder.path());
    let error = run(&Journals(parts), folder.path(), 1 << 20).unwrap_err();
    assert!(matches!(error, BackupError::Store(StoreError::Damaged { .. })), "{error}");
    assert_eq!(files(folder.path()), before);
}

/// A flipped bit where a database begins: its folder does not open. The journal is read by itself,
/// or at least its write-ahead log.
#[test]
fn a_tail_whose_store_does_not_open_gives_what_can_be_read() {
    let data = TempDir::new().unwrap();
    let options = SledOptions { reserve_bytes: 0, checks_end: false, ..SledOptions::default() };
    let open = |data: &Path| Arc::new(SledStore::open(data, &options).unwrap());
    let journals = Journals::made_in(open(data.path()), 1);
    extend(&journals, "a", 3);
    let folder = TempDir::new().unwrap();
    run(&journals, folder.path(), 1 << 20).unwrap();
    extend(&journals, "a", 4);
    let written = journals.blocks();
    drop(journals);
    // It is opened once more, so that sled has snapshots, and does not take damage for an end.
    drop(open(data.path()));
    let other = TempDir::new().unwrap();
    extend(&Journals::made_in(open(other.path()), 1), "b", 9);
    for database in ["state/db", "journal/000001/db"] {
        let path = data.path().join(database);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, vec![0x55; sound.len()]).unwrap();
        let remains = Remains::of_log(data.path()).unwrap();
        let reason = SledStore::open_existing(data.path(), &options).unwrap_err();
        assert!(reason.to_string().contains(database), "{reason}");
        let remains = remains.without_store(data.path(), reason);
        let (again, outcome) = restored(folder.path(), Some(Tail::Folder(&[], &remains))).unwrap();
        let outcome = outcome.tail.unwrap();
        assert_eq!((again.blocks(), outcome.records), (written.clone(), 8), "{database}");
        for outcome in [outcome.stopped.unwrap(), outcome.without_keys.unwrap()] {
            assert!(outcome.to_string().contains(database), "{outcome}");
        }
        fs::write(&path, sound).unwrap();
    }
    // A log of another journal is refused, and one that begins too late is named.
    let foreign = Remains::of_log(other.path()).unwrap();
    let error = restored(folder.path(), Some(Tail::Folder(&[], &foreign))).unwrap_err();
    assert!(matches!(error, BackupError::OtherJournal { .. }), "{error}");
    let empty = TempDir::new().unwrap();
    run(&Journals::new(1), empty.path(), 1 << 20).unwrap();
    let wal = data.path().join("journal/wal-0");
    let mut log = fs::read(&wal).unwrap();
    log[..4_096].fill(0);
    fs::write(&wal, log).unwrap();
    let late = Remains::of_log(data.path()).unwrap();
    let (_, outcome) = restored(empty.path(), Some(Tail::Folder(&[], &late))).unwrap();
    let outcome = outcome.tail.unwrap();
    let gap = outcome.stopped.unwrap().to_string();
    assert!(outcome.records == 0 && gap.contains("goes on at") && gap.contains("sequence 1"), "{gap}");
}
