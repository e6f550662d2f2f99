//! Writer of the failing-call tests: the process whose system calls fail, and the lines in which it
//! reports its steps.

use std::fmt::{Display, Formatter};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Arc;

use store::testkit::conformance::bytes;
use store::{Block, Part, Partition, Sequence, SledOptions, SledStore, StoreError};

/// What the process is to do; it does nothing, as a test like any other, if this is not set.
pub(crate) const ROLE: &str = "CENTAVO_FAIL_ROLE";
/// The role that writes the whole script, whatever is refused.
pub(crate) const WRITE: &str = "write";
/// The role that reads everything.
pub(crate) const READ: &str = "read";
/// The folder of the store.
pub(crate) const DATA: &str = "CENTAVO_FAIL_DATA";
/// What stands for the version of a value or file that is not there.
pub(crate) const ABSENT: &str = "-";
/// How the process ends when something was refused.
pub(crate) const REFUSED: i32 = 3;

/// Does its work only in a process that a test has started for it.
#[test]
fn the_process_whose_calls_fail() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let data = PathBuf::from(std::env::var_os(DATA).unwrap());
    let outcome = match role.as_str() {
        WRITE => write(&data),
        READ => SledStore::open_existing(&data, &options())
            .and_then(|store| print_all(&Part::reading(Arc::new(store), PARTITION), &mut Line::print)),
        other => panic!("no such role: {other}"),
    };
    // The last that it says on either output, behind whatever the closing of the store had to say.
    let word = outcome.as_ref().map_or_else(ToString::to_string, |()| "nothing was refused".to_owned());
    eprintln!("the end: {word}");
    Line::End(word).print();
    exit(if outcome.is_ok() { 0 } else { REFUSED });
}

/// A line of the script's log. Every kind of thing has a name: a block by its first sequence number
/// and its hash as version, and a value or file by its name and the version of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is going to be written.
    Try(String, String),
    /// It was acknowledged.
    Done(String, String),
    /// It was not, for this reason.
    Refused(String, String),
    /// It was read.
    Found(String, String),
    End(String),
    /// Report of the shim that a call failed: the call, its path, its thread, and whether the path
    /// is in a closed segment of the journal.
    FailedCall {
        call: String,
        path: String,
        thread: String,
        is_closed: bool,
    },
    /// By the shim: how many calls there were.
    CallsSeen(u64),
}

impl Line {
    pub(crate) fn parse(line: &str) -> Option<Line> {
        let (name, rest) = line.split_once(' ')?;
        let pair = || rest.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned()));
        Some(match name {
            "try" => pair().map(|(name, version)| Line::Try(name, version))?,
            "done" => pair().map(|(name, version)| Line::Done(name, version))?,
            "refused" => pair().map(|(name, reason)| Line::Refused(name, reason))?,
            "found" => pair().map(|(name, version)| Line::Found(name, version))?,
            "end" => Line::End(rest.to_owned()),
            "calls-seen" => Line::CallsSeen(rest.parse().ok()?),
            "failed-call" => {
                let (call, place) = pair()?;
                let (path, rest) = place.split_once('|')?;
                let (thread, folder) = rest.split_once('|')?;
                let is_closed = folder == "closed";
                Line::FailedCall { call, path: path.to_owned(), thread: thread.to_owned(), is_closed }
            }
            _ => return None,
        })
    }

    /// One write to the pipe. The empty line before it ends what the test harness may have begun.
    fn print(self) {
        std::io::stdout().lock().write_all(format!("\n{self}\n").as_bytes()).unwrap();
    }
}

impl Display for Line {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Line::Try(name, version) => write!(formatter, "try {name} {version}"),
            Line::Done(name, version) => write!(formatter, "done {name} {version}"),
            Line::Refused(name, reason) => write!(formatter, "refused {name} {}", reason.replace('\n', " ")),
            Line::Found(name, version) => write!(formatter, "found {name} {version}"),
            Line::End(word) => write!(formatter, "end {}", word.replace('\n', " ")),
            Line::FailedCall { call, path, thread, is_closed } => {
                write!(formatter, "failed-call {call} {path}|{thread}|{}", if *is_closed { "closed" } else { "open" })
            }
            Line::CallsSeen(count) => write!(formatter, "calls-seen {count}"),
        }
    }
}

/// Small segments, so that the script closes some of them.
pub(crate) fn options() -> SledOptions {
    SledOptions {
        journal_cache_bytes: 1 << 20,
        state_cache_bytes: 1 << 20,
        segment_bytes: 60_000,
        reserve_bytes: 0,
        ballast_bytes: 1 << 20,
        ..SledOptions::default()
    }
}

/// Opens the store as its owner.
pub(crate) fn open(data: &Path) -> Result<Part, StoreError> {
    Part::take(Arc::new(SledStore::open(data, &options())?), PARTITION)
}

/// Opens the store and writes a little of everything. Goes on after a refusal, to see whether it
/// lasts; answers with the first.
fn write(data: &Path) -> Result<(), StoreError> {
    let mut writer = Writer { store: open(data)?, version: 0, refusal: None };
    writer.append(300);
    writer.append(20_000);
    writer.put_state("value", 100);
    writer.put_state("long", 30_000);
    writer.put_lazily("lazy", 100);
    writer.put_lazily("lazy-long", 20_000);
    writer.put_file("run-1", 20_000);
    // The next segment is made ahead of time at three quarters of one, and here it is full.
    writer.append(30_000);
    writer.append(20_000);
    writer.put_file("run-1", 3_000);
    // More than one segment of the database, as one batch.
    writer.append(600_000);
    writer.put_state("value", 200);
    writer.put_state("long", 20_000);
    writer.append(300);
    writer.put_lazily("lazy-long", 30_000);
    writer.delete_state("value");
    writer.put_file("run-2", 10);
    writer.append(70_000);
    writer.remove_file("run-1");
    writer.append(300);
    writer.put_state("value", 300);
    writer.append(300);
    let Writer { store, refusal, .. } = writer;
    drop(store);
    refusal.map_or(Ok(()), Err)
}

struct Writer {
    store: Part,
    version: u64,
    refusal: Option<StoreError>,
}

impl Writer {
    fn append(&mut self, size: usize) {
        let block = next_block(&self.store, size);
        self.run(block_name(&block), format!("{:?}", block.hash()), |store| store.append(&block).map(drop));
    }

    fn put_state(&mut self, key: &str, size: usize) {
        let (version, value) = self.next(size);
        self.run(format!("state/{key}"), version, |store| store.put_state(key.as_bytes(), &value));
    }

    fn put_lazily(&mut self, key: &str, size: usize) {
        let (version, value) = self.next(size);
        self.run(format!("lazy/{key}"), version, |store| store.put_state_lazily(key.as_bytes(), &value));
    }

    fn delete_state(&mut self, key: &str) {
        self.run(format!("state/{key}"), ABSENT.to_owned(), |store| store.delete_state(key.as_bytes()));
    }

    fn put_file(&mut self, name: &str, size: usize) {
        let (version, bytes) = self.next(size);
        self.run(format!("file/{name}"), version, |store| store.put_file(name, &bytes));
    }

    fn remove_file(&mut self, name: &str) {
        self.run(format!("file/{name}"), ABSENT.to_owned(), |store| store.remove_file(name));
    }

    /// A version that was not used yet, and its content.
    fn next(&mut self, size: usize) -> (String, Vec<u8>) {
        self.version += 1;
        (self.version.to_string(), content_of(self.version, size))
    }

    fn run(&mut self, name: String, version: String, write: impl FnOnce(&Part) -> Result<(), StoreError>) {
        Line::Try(name.clone(), version.clone()).print();
        match write(&self.store) {
            Ok(()) => Line::Done(name, version).print(),
            Err(error) => {
                Line::Refused(name, error.to_string()).print();
                self.refusal.get_or_insert(error);
            }
        }
    }
}

/// Reads all that the store holds, in every way in which it can be read.
pub(crate) fn print_all(store: &Part, line_sink: &mut impl FnMut(Line)) -> Result<(), StoreError> {
    for block in store.blocks(Sequence::FIRST) {
        let block = block?;
        for (number, expected) in block.records.iter().enumerate() {
            let record = store.record(block.first.plus(number as u64))?;
            assert!(record.is_some_and(|record| record.bytes == *expected), "a Record is not that of its block");
        }
        line_sink(Line::Found(block_name(&block), format!("{:?}", block.hash())));
    }
    line_sink(Line::Found("end".to_owned(), store.head()?.next.0.to_string()));
    for key in store.state_keys(b"")? {
        let version = version_of(store.state(&key)?);
        let key = String::from_utf8(key).unwrap();
        let kind = if key.starts_with("lazy") { "lazy" } else { "state" };
        line_sink(Line::Found(format!("{kind}/{key}"), version));
    }
    for (name, size) in store.files()? {
        let bytes = store.file_part(&name, 0, usize::try_from(size).unwrap())?;
        line_sink(Line::Found(format!("file/{name}"), version_of(bytes)));
    }
    Ok(())
}

/// Proves that the store can be written.
pub(crate) fn write_on(store: &Part) -> Result<(), StoreError> {
    store.append(&next_block(store, 300))?;
    store.put_state(b"after", b"after")?;
    store.delete_state(b"after")
}

fn next_block(store: &Part, size: usize) -> Block {
    let head = store.head().unwrap();
    let content = bytes(head.next.0, size);
    let records = content.chunks(size.div_ceil(3)).map(<[u8]>::to_vec).collect();
    let booked_at_ms = head.booked_at_ms.max(0) + 1;
    Block { partition: PARTITION, first: head.next, booked_at_ms, previous: head.hash, records }
}

fn block_name(block: &Block) -> String {
    format!("block/{:04}", block.first.0)
}

/// A content that begins with its version and size.
fn content_of(version: u64, size: usize) -> Vec<u8> {
    [version.to_be_bytes().as_slice(), &size.to_be_bytes(), &bytes(version, size)].concat()
}

/// The version of a content, if it is whole.
fn version_of(content: Option<Vec<u8>>) -> String {
    let Some(content) = content else { return ABSENT.to_owned() };
    let word = |at: usize| content.get(at..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
    match (word(0), word(8)) {
        (Some(version), Some(size)) if content == content_of(version, size as usize) => version.to_string(),
        _ => format!("torn after {} bytes", content.len()),
    }
}

const PARTITION: Partition = Partition(0);
