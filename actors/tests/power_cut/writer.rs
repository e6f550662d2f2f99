//! Writer of the power-cut tests: the process whose power is cut, and the lines in which it reports
//! its steps.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::testkit::power_cut::Chance;
use store::{Block, Head, Part, Partition, Sequence, SledOptions, SledStore, StoreError};

/// What the process is to do; it does nothing, as a test like any other, if this is not set.
pub(crate) const ROLE: &str = "CENTAVO_CUT_ROLE";
/// The role that writes to a store until it is killed.
pub(crate) const STORE: &str = "store";
/// The role that changes a few files and ends.
pub(crate) const FILES: &str = "files";
/// The folder to write in.
pub(crate) const DATA: &str = "CENTAVO_CUT_DATA";
/// How many writers the folder has had, with this one.
pub(crate) const NUMBER: &str = "CENTAVO_CUT_NUMBER";
/// Seed of the writer's choices.
pub(crate) const SEED: &str = "CENTAVO_CUT_WRITER_SEED";
/// What stands for the version of a value that is not there.
pub(crate) const ABSENT: &str = "-";

/// Does its work only in a process that a test has started for it.
#[test]
fn the_process_whose_power_is_cut() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let data = PathBuf::from(std::env::var_os(DATA).unwrap());
    match role.as_str() {
        STORE => write_store(&data),
        FILES => write_files(&data),
        other => panic!("no such role: {other}"),
    }
}

/// Output of the writer, a line each.
pub(crate) enum Line {
    Opening,
    FoundBlock(u64, String),
    FoundValue(String, String),
    /// All findings are printed.
    Checked,
    Failed(String),
    TryBlock(u64, String),
    Block(u64, String),
    TryValue(String, String),
    Value(String, String),
    TryLazyValue(String, String),
}

impl Line {
    pub(crate) fn parse(line: &str) -> Option<Line> {
        let (name, rest) = line.split_once(' ')?;
        let pair = || rest.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned()));
        let block = || pair().and_then(|(first, hash)| Some((first.parse().ok()?, hash)));
        Some(match name {
            "opening" => Line::Opening,
            "found-block" => block().map(|(first, hash)| Line::FoundBlock(first, hash))?,
            "found-value" => pair().map(|(key, version)| Line::FoundValue(key, version))?,
            "checked" => Line::Checked,
            "failed" => Line::Failed(rest.to_owned()),
            "try-block" => block().map(|(first, hash)| Line::TryBlock(first, hash))?,
            "block" => block().map(|(first, hash)| Line::Block(first, hash))?,
            "try-value" => pair().map(|(key, version)| Line::TryValue(key, version))?,
            "value" => pair().map(|(key, version)| Line::Value(key, version))?,
            "try-lazy-value" => pair().map(|(key, version)| Line::TryLazyValue(key, version))?,
            _ => return None,
        })
    }

    /// One write to the pipe, which is there for the reader even if the process dies at the next
    /// instruction.
    fn print(&self) {
        std::io::stdout().lock().write_all(format!("{self}\n").as_bytes()).unwrap();
    }
}

impl Display for Line {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            // The test harness may have begun a line.
            Line::Opening => write!(formatter, "\nopening "),
            Line::FoundBlock(first, hash) => write!(formatter, "found-block {first} {hash}"),
            Line::FoundValue(key, version) => write!(formatter, "found-value {key} {version}"),
            Line::Checked => write!(formatter, "checked "),
            Line::Failed(message) => write!(formatter, "failed {}", message.replace('\n', " ")),
            Line::TryBlock(first, hash) => write!(formatter, "try-block {first} {hash}"),
            Line::Block(first, hash) => write!(formatter, "block {first} {hash}"),
            Line::TryValue(key, version) => write!(formatter, "try-value {key} {version}"),
            Line::Value(key, version) => write!(formatter, "value {key} {version}"),
            Line::TryLazyValue(key, version) => write!(formatter, "try-lazy-value {key} {version}"),
        }
    }
}

/// Opens the store, prints its contents, and writes until it is killed.
fn write_store(data: &Path) {
    Line::Opening.print();
    let options = SledOptions {
        journal_cache_bytes: 4 << 20,
        state_cache_bytes: 4 << 20,
        segment_bytes: 700_000,
        wal_bytes: 128 << 10,
        ..SledOptions::default()
    };
    let written =
        SledStore::open(data, &options).and_then(|store| Part::take(Arc::new(store), PARTITION)).and_then(|store| {
            tell_what_is_found(&store)?;
            std::thread::scope(|scope| {
                let values = scope.spawn(|| put_values(&store));
                append_blocks(&store)?;
                values.join().expect("the thread does not panic")
            })
        });
    Line::Failed(written.map_or_else(|error| error.to_string(), |()| "it stopped writing".to_owned())).print();
}

fn tell_what_is_found(store: &Part) -> Result<(), StoreError> {
    for block in store.blocks(Sequence::FIRST) {
        let block = block?;
        Line::FoundBlock(block.first.0, format!("{:?}", block.hash())).print();
    }
    for key in KEYS.into_iter().chain(LAZY_KEYS) {
        let version = match store.state(key.as_bytes())? {
            None => ABSENT.to_owned(),
            Some(value) => version_of(&value).unwrap_or_else(|| "torn".to_owned()),
        };
        Line::FoundValue(key.to_owned(), version).print();
    }
    for name in FILES_OF_STORE {
        let version = match store.file_part(name, 0, VALUE_BYTES_MAX)? {
            None => ABSENT.to_owned(),
            Some(bytes) => version_of(&bytes).unwrap_or_else(|| "torn".to_owned()),
        };
        Line::FoundValue(name.to_owned(), version).print();
    }
    Line::Checked.print();
    Ok(())
}

fn append_blocks(store: &Part) -> Result<(), StoreError> {
    let mut chance = Chance(number(SEED) ^ (number(NUMBER) << 32));
    loop {
        let head: Head = store.head()?;
        let size = match chance.below(24) {
            0 => 600_000,
            1..=6 => 1 + chance.below(6_000),
            _ => 1_000 + chance.below(39_000),
        };
        let mut bytes = bytes_of(chance.next(), size as usize).into_iter().peekable();
        let record_size = 1 + chance.below(2 * size) as usize;
        let mut records = Vec::new();
        while bytes.peek().is_some() {
            records.push(bytes.by_ref().take(record_size).collect());
        }
        let booked_at_ms = head.booked_at_ms.max(0) + 1;
        let block = Block { partition: PARTITION, first: head.next, booked_at_ms, previous: head.hash, records };
        let (first, hash) = (block.first.0, format!("{:?}", block.hash()));
        Line::TryBlock(first, hash.clone()).print();
        store.append(&block)?;
        Line::Block(first, hash).print();
    }
}

/// Puts values and files of many sizes, removes some values, and prints each; versions are not used
/// twice in the life of a folder.
fn put_values(store: &Part) -> Result<(), StoreError> {
    let mut chance = Chance(!number(SEED) ^ (number(NUMBER) << 32));
    let mut version = number(NUMBER) << 32;
    let mut present = BTreeMap::new();
    loop {
        version += 1;
        let content = version.to_string();
        if chance.below(2) == 0 {
            let key = LAZY_KEYS[chance.below(LAZY_KEYS.len() as u64) as usize];
            Line::TryLazyValue(key.to_owned(), content).print();
            store.put_state_lazily(key.as_bytes(), &value_of(version))?;
            continue;
        }
        if chance.below(4) == 0 {
            let name = FILES_OF_STORE[chance.below(FILES_OF_STORE.len() as u64) as usize];
            Line::TryValue(name.to_owned(), content.clone()).print();
            store.put_file(name, &value_of(version))?;
            Line::Value(name.to_owned(), content).print();
            continue;
        }
        let key = KEYS[chance.below(KEYS.len() as u64) as usize];
        let is_present = present.entry(key).or_insert(false);
        if *is_present && chance.below(4) == 0 {
            Line::TryValue(key.to_owned(), ABSENT.to_owned()).print();
            store.delete_state(key.as_bytes())?;
            Line::Value(key.to_owned(), ABSENT.to_owned()).print();
            *is_present = false;
        } else {
            Line::TryValue(key.to_owned(), content.clone()).print();
            store.put_state(key.as_bytes(), &value_of(version))?;
            Line::Value(key.to_owned(), content).print();
            *is_present = true;
        }
    }
}

/// More than any value has.
const VALUE_BYTES_MAX: usize = 500_000;

/// A value that begins with its version, which decides the rest.
fn value_of(version: u64) -> Vec<u8> {
    let mut chance = Chance(version);
    let size = match chance.below(12) {
        0 => 200_000 + chance.below(200_000),
        1..=4 => chance.below(40_000),
        _ => chance.below(2_000),
    };
    let mut value = version.to_be_bytes().to_vec();
    value.extend(bytes_of(chance.next(), size as usize));
    value
}

/// The version of a value, if it is the whole value of that version.
fn version_of(value: &[u8]) -> Option<String> {
    let version = u64::from_be_bytes(*value.first_chunk()?);
    (value == value_of(version)).then(|| version.to_string())
}

fn bytes_of(seed: u64, size: usize) -> Vec<u8> {
    let mut chance = Chance(seed);
    let mut bytes: Vec<u8> = (0..size.div_ceil(8)).flat_map(|_| chance.next().to_be_bytes()).collect();
    bytes.truncate(size);
    bytes
}

/// Makes files durable with the content "old", and then changes them without a sync, as their names
/// say.
fn write_files(data: &Path) {
    for name in ["synced", "appended", "overwritten", "shortened", "emptied", "removed", "renamed"] {
        let mut file = File::create(data.join(name)).unwrap();
        file.write_all(b"old").unwrap();
        file.sync_data().unwrap();
    }
    File::open(data).unwrap().sync_all().unwrap();
    fs::rename(data.join("renamed"), data.join("renamed to")).unwrap();
    let open = |name: &str| OpenOptions::new().write(true).open(data.join(name)).unwrap();
    OpenOptions::new().append(true).open(data.join("appended")).unwrap().write_all(b" and new").unwrap();
    open("overwritten").write_all(b"new").unwrap();
    open("shortened").set_len(1).unwrap();
    drop(File::create(data.join("emptied")).unwrap());
    fs::remove_file(data.join("removed")).unwrap();
    fs::write(data.join("new"), b"new").unwrap();
}

fn number(name: &str) -> u64 {
    std::env::var(name).unwrap().parse().unwrap()
}

const PARTITION: Partition = Partition(0);
const KEYS: [&str; 4] = ["stamp", "key-1", "key-2", "key-3"];
const FILES_OF_STORE: [&str; 2] = ["file-1", "file-2"];
const LAZY_KEYS: [&str; 3] = ["snapshot-1", "snapshot-2", "snapshot-3"];
