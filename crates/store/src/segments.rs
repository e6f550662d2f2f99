//! Segments of the journal: only the last one is written, and is a database.
//!
//! ```text
//! journal/000001.chunks   a closed segment: a file of chunks; see `segment_file.rs`
//! journal/000001.closed   its closing line: what it holds and where it ends
//! journal/000002/         the current segment: a database of chunks; see `segment.rs`
//! journal/000003/         perhaps: the next one, made ahead of time and empty
//! journal/wal-0, wal-1    the write-ahead log: the last blocks, which the current segment may not
//!                         have on the disk yet; see `wal.rs`
//! ```
//!
//! So the time that opening takes, the reach of a flipped bit and the memory for reading do not
//! grow with the journal, and a copy of closed segments stays good for ever.
//!
//! A segment is closed in this order, each step durable before the next: the next segment is made,
//! all blocks are in this one, the closing line is written, the next block goes into the next
//! segment. Then a background thread writes its chunks into a file and removes the database. Where
//! there is not enough room for the file, or the process ends before, the database serves readers
//! until a later attempt: at the next start, or when the next segment is closed.
//!
//! An open database keeps in memory all that it gave and took, whatever its cache is set to. So
//! only the current segment may be in memory as a whole, and one that was just closed.
//!
//! A closing line is derived: one that is lost or damaged is made anew from its segment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::chunk::{Fault, Key, add_checksum, in_format};
use super::files::{Files, bytes_below, create_folder, damaged, machine, remove_folder};
use super::monitor::{Monitor, WaitFor};
use super::segment::{Chunks, Segment, Span};
use super::segment_file::{self, RecentDirectories, SegmentFile};
use super::sled::{DatabaseOptions, UNFLUSHED_BYTES_MAX_OF_JOURNAL};
use super::wal::{AppendResult, WalFrame, WriteAheadLog};
use super::{
    Block, BlockHash, Database, Head, Partition, Result, Sequence, SledOptions, StoreError, StoredRecord, priority,
    space,
};

/// The segments of the journal.
#[derive(Debug)]
pub(super) struct Segments {
    shared: Arc<SegmentsShared>,
    /// Requests to three threads, which end when these are dropped: to make the next segment, which
    /// will soon be needed; to flush the current one, for which the writer may wait; and to write
    /// closed segments into files.
    making: Option<Sender<()>>,
    settling: Option<Sender<Settle>>,
    filing: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Segments {
    /// Opens the journal in the folder `data`. Makes one where there is none, unless blocks are
    /// `expected`.
    pub(super) fn open(
        data: &Path,
        options: &SledOptions,
        expected: bool,
        poisoned: Arc<AtomicBool>,
        monitor: Arc<Monitor>,
    ) -> Result<Segments> {
        let path = create_folder(&data.join(JOURNAL))?;
        let (wal, frames) = WriteAheadLog::open(&path, options.wal_bytes)?;
        let (files, recent) = (Arc::new(Files::open(path.clone())?), Arc::default());
        let place = Place { files, recent, path, options: options.clone(), monitor };
        let (row, next) = place.open_row(expected, frames)?;
        let spans = row.current.spans()?;
        let bytes = if spans.is_empty() { 0 } else { bytes_below(row.current.path())? };
        let shared = Arc::new(SegmentsShared {
            place,
            wal,
            row: RwLock::new(row),
            next: Mutex::new(next),
            bytes: AtomicU64::new(bytes),
            is_next_asked_for: AtomicBool::new(false),
            is_flush_asked_for: AtomicBool::new(false),
            poisoned,
        });
        let (making, to_make) = channel();
        let (settling, to_settle) = channel();
        let (filing, to_file) = channel();
        let [made, settled, filed] = [(); 3].map(|()| Arc::clone(&shared));
        let thread = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|source| machine(data, source))
        };
        let threads = vec![
            thread("journal segments", Box::new(move || to_make.iter().for_each(|()| made.make_next())))?,
            thread("journal wal", Box::new(move || to_settle.iter().for_each(|settle| settled.settle(settle))))?,
            thread("journal files", Box::new(move || filed.write_closed_when(&to_file)))?,
        ];
        let segments =
            Segments { shared, making: Some(making), settling: Some(settling), filing: Some(filing), threads };
        if options.checks_end {
            // What an earlier process closed and did not write into a file.
            ask(&segments.filing, ());
        }
        Ok(segments)
    }

    /// The folder of the journal below `data`.
    pub(super) fn folder(data: &Path) -> PathBuf {
        data.join(JOURNAL)
    }

    /// Whether a journal was ever made below `data`.
    pub(super) fn is_made(data: &Path) -> bool {
        Self::folder(data).is_dir()
    }

    /// The heads of all partitions.
    pub(super) fn heads(&self) -> Result<BTreeMap<Partition, Head>> {
        let row = self.shared.row.read();
        let mut heads = row.heads_when_closed();
        heads.extend(row.current.spans()?.into_iter().map(|(partition, span)| (partition, span.head)));
        Ok(heads)
    }

    /// Makes the chunks of a block durable; in the next segment if the current one is full. There
    /// is one writer at a time.
    pub(super) fn append(&self, chunks: Vec<(Key, Vec<u8>)>) -> Result<()> {
        let shared = &self.shared;
        let segment_bytes = shared.place.options.segment_bytes;
        if shared.bytes.load(Ordering::Relaxed) >= segment_bytes {
            let _waiting = shared.place.monitor.begin(WaitFor::SegmentRoll);
            shared.roll()?;
            ask(&self.filing, ());
        }
        let chunk_bytes: u64 = chunks.iter().map(|(_, value)| value.len() as u64).sum();
        let current = Arc::clone(&shared.row.read().current);
        let appended = {
            let _waiting = shared.place.monitor.begin(WaitFor::Sync);
            shared.wal.append(&chunks)?
        };
        if appended == AppendResult::AndFilled {
            ask(&self.settling, Settle::Filled);
        }
        current.insert_chunks(&chunks)?;
        if current.wants_flush() && !shared.is_flush_asked_for.swap(true, Ordering::Relaxed) {
            ask(&self.settling, Settle::Flush);
        }
        let bytes = shared.bytes.fetch_add(chunk_bytes, Ordering::Relaxed) + chunk_bytes;
        if bytes >= segment_bytes / 4 * 3 && !shared.is_next_asked_for.swap(true, Ordering::Relaxed) {
            ask(&self.making, ());
        }
        Ok(())
    }

    /// A Record below the head.
    pub(super) fn record(&self, partition: Partition, sequence: Sequence) -> Result<StoredRecord> {
        self.segment_with(partition, sequence).0.record(partition, sequence)
    }

    /// The blocks from the block that holds `from` up to `head`; `from` is below `head`.
    pub(super) fn blocks(&self, partition: Partition, from: Sequence, head: Head) -> Result<BlocksOfSegments<'_>> {
        let (segment, span) = self.segment_with(partition, from);
        let first = segment.first_of_block_with(partition, from)?;
        let previous = match span {
            Some(span) if span.first == first => span.previous,
            _ => self.hash_before(partition, first)?,
        };
        Ok(BlocksOfSegments { journal: self, partition, head, next: first, previous, is_over: false })
    }

    /// The hash of the block that ends where `first` begins, in whichever segment that is.
    pub(super) fn hash_before(&self, partition: Partition, first: Sequence) -> Result<BlockHash> {
        if first == Sequence::FIRST {
            return Ok(BlockHash::ZERO);
        }
        let (segment, span) = self.segment_with(partition, Sequence(first.0 - 1));
        match span {
            Some(span) if span.head.next == first => Ok(span.head.hash),
            _ => segment.hash_of_block_before(partition, first),
        }
    }

    /// The segment that holds a Record below the head; and, if it is closed, what it holds of the
    /// partition.
    fn segment_with(&self, partition: Partition, sequence: Sequence) -> (Arc<dyn Chunks>, Option<Span>) {
        let row = self.shared.row.read();
        match row.closed_with(partition, sequence) {
            Some(closed) => (closed.chunks(), closed.spans.get(&partition).copied()),
            None => (Arc::<Segment>::clone(&row.current), None),
        }
    }

    #[cfg(test)]
    pub(super) fn current(&self) -> Arc<Segment> {
        Arc::clone(&self.shared.row.read().current)
    }

    /// How many closed segments are databases still.
    #[cfg(test)]
    pub(super) fn closed_databases(&self) -> usize {
        let row = self.shared.row.read();
        row.closed.iter().filter(|closed| closed.database.read().is_some()).count()
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        drop((self.making.take(), self.settling.take(), self.filing.take()));
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the journal's segments panicked");
            }
        }
    }
}

/// Asks a thread for something. It is only gone when it panicked: what it would do ahead of time is
/// then done when it is needed, or not at all.
fn ask<Request>(thread: &Option<Sender<Request>>, request: Request) {
    let _ = thread.as_ref().map(|thread| thread.send(request));
}

/// Reads and checks one block after the other, across the segments. A segment is looked up for each
/// block, so that nobody holds a database between two blocks.
pub(super) struct BlocksOfSegments<'a> {
    journal: &'a Segments,
    partition: Partition,
    head: Head,
    next: Sequence,
    previous: BlockHash,
    is_over: bool,
}

impl Iterator for BlocksOfSegments<'_> {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.next == self.head.next {
            return None;
        }
        let checked = self.checked();
        self.is_over = checked.is_err();
        Some(checked)
    }
}

impl BlocksOfSegments<'_> {
    fn checked(&mut self) -> Result<Block> {
        let (segment, span) = self.journal.segment_with(self.partition, self.next);
        let end = span.map_or(self.head.next, |span| span.head.next);
        let (block, hash) = segment.block(self.partition, self.next)?;
        let reaches_head = block.next() == self.head.next;
        let is_beyond = block.next() > self.head.next || block.next() > end;
        if block.previous != self.previous || is_beyond || (reaches_head && hash != self.head.hash) {
            return Err(segment.damaged(Some(self.next), Fault::Chain));
        }
        self.next = block.next();
        self.previous = hash;
        Ok(block)
    }
}

/// Reasons to flush the current segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settle {
    /// A file of the write-ahead log is full.
    Filled,
    /// The segment soon takes nothing more before it is flushed.
    Flush,
}

#[derive(Debug)]
struct SegmentsShared {
    place: Place,
    wal: WriteAheadLog,
    row: RwLock<Row>,
    /// The next segment, once it is made.
    next: Mutex<Option<Segment>>,
    /// Bytes in the current segment.
    bytes: AtomicU64,
    is_next_asked_for: AtomicBool,
    is_flush_asked_for: AtomicBool,
    poisoned: Arc<AtomicBool>,
}

impl SegmentsShared {
    /// Closes the current segment and goes on in the next one.
    fn roll(&self) -> Result<()> {
        // Held to the end, so that the next segment is not made twice.
        let mut made = self.next.lock();
        let (number, current) = {
            let row = self.row.read();
            (row.number(), Arc::clone(&row.current))
        };
        let next = match made.take() {
            Some(next) => next,
            None => self.place.make(number + 1)?,
        };
        current.flush()?;
        let closing = SegmentClosing { spans: current.spans()? };
        self.place.files.put(&closing_name(number), &closing.to_bytes())?;
        let mut row = self.row.write();
        let closed = self.place.closed_after(&row, number, closing.spans, Some(current));
        row.closed.push(Arc::new(closed));
        row.current = Arc::new(next);
        self.bytes.store(0, Ordering::Relaxed);
        self.is_next_asked_for.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the current segment durable, with all that it has in memory; those before it are.
    fn settle(&self, settle: Settle) {
        let _waiting = self.place.monitor.begin(WaitFor::Settle);
        let current = Arc::clone(&self.row.read().current);
        self.is_flush_asked_for.store(false, Ordering::Relaxed);
        let flushed = current.flush();
        if let Err(error) = &flushed {
            tracing::error!(%error, "the journal can't be made durable; nothing more is written by this process");
            self.poisoned.store(true, Ordering::SeqCst);
        }
        if settle == Settle::Filled {
            self.wal.settled(flushed.is_ok());
        }
    }

    /// Makes the next segment, which will soon be needed.
    fn make_next(&self) {
        // Held, so that a writer who needs the segment already waits for it.
        let mut next = self.next.lock();
        let number = self.row.read().number() + 1;
        if next.is_some() || !self.is_next_asked_for.load(Ordering::Relaxed) {
            return;
        }
        match self.place.make(number) {
            Ok(made) => *next = Some(made),
            Err(error) => {
                tracing::error!(%error, "the next segment can't be made; nothing more is written by this process");
                self.poisoned.store(true, Ordering::SeqCst);
            }
        }
    }

    fn write_closed_when(&self, requests: &Receiver<()>) {
        priority::run_last();
        for () in requests {
            let closed = self.row.read().closed.clone();
            for error in closed.iter().filter_map(|closed| closed.write(&self.place).err()) {
                tracing::error!(%error, "a closed segment of the journal can't be written into a file; it is tried again");
            }
        }
    }
}

/// The segments in their order.
#[derive(Debug)]
struct Row {
    closed: Vec<Arc<ClosedSegment>>,
    current: Arc<Segment>,
}

impl Row {
    /// The number of the current segment. The first is 1.
    fn number(&self) -> u32 {
        self.closed.len() as u32 + 1
    }

    fn heads_when_closed(&self) -> BTreeMap<Partition, Head> {
        self.closed.last().map(|closed| closed.heads.clone()).unwrap_or_default()
    }

    /// The closed segment that holds a Record, if it is not in the current one.
    fn closed_with(&self, partition: Partition, sequence: Sequence) -> Option<&Arc<ClosedSegment>> {
        let ends_before =
            |closed: &Arc<ClosedSegment>| closed.heads.get(&partition).is_none_or(|head| head.next <= sequence);
        self.closed.get(self.closed.partition_point(ends_before))
    }
}

/// A segment that is never written again.
#[derive(Debug)]
struct ClosedSegment {
    number: u32,
    spans: BTreeMap<Partition, Span>,
    /// The heads of all partitions at its end.
    heads: BTreeMap<Partition, Head>,
    file: Arc<SegmentFile>,
    /// Until its chunks are in the file.
    database: RwLock<Option<Arc<Segment>>>,
}

impl ClosedSegment {
    fn chunks(&self) -> Arc<dyn Chunks> {
        match &*self.database.read() {
            Some(segment) => Arc::<Segment>::clone(segment),
            None => Arc::<SegmentFile>::clone(&self.file),
        }
    }

    /// Writes its chunks into the file, if they are in a database still and the disk has room for
    /// both, and then removes the database.
    fn write(&self, place: &Place) -> Result<()> {
        let Some(mut segment) = self.database.read().clone() else { return Ok(()) };
        let folder = place.segment_path(self.number);
        if space::free_bytes(&place.path)? < place.options.reserve_bytes + bytes_below(&folder)? {
            return Ok(());
        }
        check_ends(&segment, &self.spans)?;
        self.file.write(&segment)?;
        if self.file.spans().ok().as_ref() != Some(&self.spans) {
            self.file.remove()?;
            return Err(damaged(self.file.path(), "it does not hold what its database has"));
        }
        *self.database.write() = None;
        // A reader holds it for one block.
        for _ in 0..READER_WAITS_MAX {
            match Arc::try_unwrap(segment) {
                Ok(unread) => {
                    drop(unread);
                    return remove_folder(&folder);
                }
                Err(read) => segment = read,
            }
            std::thread::sleep(READER_WAIT);
        }
        // The next start removes it.
        Ok(())
    }
}

/// Compares the database of a closed segment with its closing line: a database that lost the end of
/// its log opens as if nothing had been there.
fn check_ends(segment: &Segment, expected: &BTreeMap<Partition, Span>) -> Result<()> {
    let spans = segment.spans()?;
    let Some((partition, expected)) = expected.iter().find(|(partition, span)| spans.get(partition) != Some(span))
    else {
        return Ok(());
    };
    let end = spans.get(partition).map_or(expected.first, |span| span.head.next);
    let detail = format!(
        "it ends before sequence {}, but it was closed before sequence {}, or has other blocks",
        end.0, expected.head.next.0
    );
    Err(StoreError::Damaged { folder: segment.path().to_path_buf(), sequence: Some(end), detail })
}

const READER_WAIT: Duration = Duration::from_millis(5);
const READER_WAITS_MAX: u32 = 1_000;

/// Folder of the segments, and options for opening them.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    files: Arc<Files>,
    recent: Arc<RecentDirectories>,
    options: SledOptions,
    monitor: Arc<Monitor>,
}

impl Place {
    /// Opens the last segment, inserts the blocks that it lacks of the write-ahead log's `frames`,
    /// and learns what the others hold. Also returns the next segment, if it was made already.
    fn open_row(&self, expected: bool, frames: Vec<WalFrame>) -> Result<(Row, Option<Segment>)> {
        let last = self.last_number()?;
        if last == 0 && expected {
            return Err(damaged(&self.segment_path(1), MISSING));
        }
        let is_made = |number: u32| self.file(number).is_made() || Database::is_made(&self.segment_path(number));
        if let Some(missing) = (1..=last).find(|number| !is_made(*number)) {
            return Err(damaged(&self.segment_path(missing), MISSING));
        }
        let mut number = last.max(1);
        let mut current = self.make(number)?;
        let mut next = None;
        // An empty segment behind one that is not closed was made ahead of time.
        let is_closed = |number| Ok::<_, StoreError>(self.file(number).is_made() || self.closing(number)?.is_some());
        if number > 1 && current.is_empty()? && !is_closed(number - 1)? {
            number -= 1;
            next = Some(std::mem::replace(&mut current, self.open(number)?));
        }
        let mut row = Row { closed: Vec::new(), current: Arc::new(current) };
        let mut lost = Vec::new();
        for number in 1..number {
            let file = self.file(number);
            let database = match file.is_made() {
                // A process ended before it had removed the database. The file's name is durable:
                // the write-ahead log has synced the folder.
                true => remove_folder(&self.segment_path(number)).map(|()| None)?,
                false => Some(Arc::new(self.open(number)?)),
            };
            let closing = self.closing(number)?;
            lost.extend(closing.is_none().then_some(number));
            if let (Some(closing), Some(database), true) = (&closing, &database, self.options.checks_end) {
                check_ends(database, &closing.spans)?;
            }
            let spans = match (closing, &database) {
                (Some(closing), _) => closing.spans,
                (None, Some(database)) => database.spans()?,
                (None, None) => file.spans()?,
            };
            self.check_border(&row, number, &spans)?;
            row.closed.push(Arc::new(self.closed_after(&row, number, spans, database)));
        }
        self.complete(&row, number, frames)?;
        let spans = row.current.spans()?;
        self.check_border(&row, number, &spans)?;
        // Only now the segment behind each has confirmed where it ends.
        lost.into_iter().try_for_each(|number| self.restore_closing(&row, number))?;
        Ok((row, next))
    }

    /// Inserts into the current segment the blocks of the write-ahead log that it lacks.
    fn complete(&self, row: &Row, number: u32, frames: Vec<WalFrame>) -> Result<()> {
        let closed = row.heads_when_closed();
        let mut is_complete = true;
        for frame in frames {
            let before = closed.get(&frame.partition).map(|head| (head.next, head.hash));
            let end = row.current.end(frame.partition)?.or(before);
            let (next, hash) = end.unwrap_or((Sequence::FIRST, BlockHash::ZERO));
            if frame.first < next {
                continue;
            }
            if (frame.first, frame.previous) != (next, hash) {
                if !self.options.checks_end {
                    break;
                }
                let detail = format!(
                    "it ends before sequence {}, but the write-ahead log goes on with sequence {}, or after another block",
                    next.0, frame.first.0
                );
                return Err(StoreError::Damaged { folder: self.segment_path(number), sequence: Some(next), detail });
            }
            row.current.insert_chunks(&frame.chunks)?;
            is_complete = false;
        }
        // Before a file of the write-ahead log is begun anew.
        if is_complete { Ok(()) } else { row.current.flush() }
    }

    /// The number of the last segment that is there, or that must be there since the one before it
    /// was closed.
    fn last_number(&self) -> Result<u32> {
        let mut last = 0;
        let names = std::fs::read_dir(&self.path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for entry in names.map_err(|source| machine(&self.path, source))? {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let behind = name.strip_suffix(CLOSED).or_else(|| name.strip_suffix(segment_file::CHUNKS));
            let (digits, is_closed) = (behind.unwrap_or(&name), behind.is_some());
            let is_plain = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(number) = digits.parse::<u32>().ok().filter(|_| is_plain) {
                last = last.max(number + u32::from(is_closed));
            }
        }
        Ok(last)
    }

    /// A segment that is closed behind the others of the row.
    fn closed_after(
        &self,
        row: &Row,
        number: u32,
        spans: BTreeMap<Partition, Span>,
        database: Option<Arc<Segment>>,
    ) -> ClosedSegment {
        let mut heads = row.heads_when_closed();
        heads.extend(spans.iter().map(|(partition, span)| (*partition, span.head)));
        ClosedSegment { number, spans, heads, file: Arc::new(self.file(number)), database: RwLock::new(database) }
    }

    fn file(&self, number: u32) -> SegmentFile {
        SegmentFile::new(&self.path, number, Arc::clone(&self.files), Arc::clone(&self.recent))
    }

    /// Whether the blocks of a segment continue those of the segments before it.
    fn check_border(&self, row: &Row, number: u32, spans: &BTreeMap<Partition, Span>) -> Result<()> {
        let before = row.heads_when_closed();
        for (partition, span) in spans {
            let head = before.get(partition).copied().unwrap_or(Head::EMPTY);
            if (span.first, span.previous) != (head.next, head.hash) {
                let detail = format!(
                    "it begins with sequence {}, but the segments before it end before sequence {}, or with another block: \
                     one of them is damaged or belongs to another journal",
                    span.first.0, head.next.0
                );
                let sequence = Some(span.first.min(head.next));
                return Err(StoreError::Damaged { folder: self.segment_path(number), sequence, detail });
            }
        }
        Ok(())
    }

    /// Writes a closing line anew.
    fn restore_closing(&self, row: &Row, number: u32) -> Result<()> {
        let line = self.closing_path(number);
        tracing::warn!(line = %line.display(), "this closing line was lost or damaged and is written anew from its segment");
        let closing = SegmentClosing { spans: row.closed[number as usize - 1].spans.clone() };
        self.files.put(&closing_name(number), &closing.to_bytes())
    }

    /// The closing line of a segment, if it is there and whole.
    fn closing(&self, number: u32) -> Result<Option<SegmentClosing>> {
        let Some(bytes) = self.files.part(&closing_name(number), 0, CLOSING_BYTES_MAX)? else { return Ok(None) };
        match SegmentClosing::parse(&bytes) {
            Ok(closing) => Ok(Some(closing)),
            Err(None) => Ok(None),
            Err(Some(found)) => {
                Err(StoreError::NewerFormat { folder: self.closing_path(number), found, known: CLOSING_FORMAT })
            }
        }
    }

    /// Opens a segment, which is made if it is not there.
    fn make(&self, number: u32) -> Result<Segment> {
        let path = self.segment_path(number);
        Database::open_or_make(&path, &self.opening()).map(Segment::new)
    }

    fn open(&self, number: u32) -> Result<Segment> {
        let path = self.segment_path(number);
        if !Database::is_made(&path) {
            return Err(damaged(&path, MISSING));
        }
        Database::open(&path, &self.opening()).map(Segment::new)
    }

    fn opening(&self) -> DatabaseOptions {
        let SledOptions { journal_cache_bytes: cache_bytes, lock_wait, .. } = self.options;
        let (unflushed_bytes_max, monitor) = (UNFLUSHED_BYTES_MAX_OF_JOURNAL, Arc::clone(&self.monitor));
        DatabaseOptions { cache_bytes, unflushed_bytes_max, lock_wait, monitor }
    }

    fn segment_path(&self, number: u32) -> PathBuf {
        self.path.join(format!("{number:06}"))
    }

    fn closing_path(&self, number: u32) -> PathBuf {
        self.path.join(closing_name(number))
    }
}

/// Closing line: what a closed segment holds, as a small file beside it. A byte for the format, and
/// for each partition its number, the first sequence, the hash before it, the next sequence, the
/// hash of the last block, and when the first and the last block were booked. The last four bytes
/// are, in this format and every later one, the CRC32C of all before them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SegmentClosing {
    spans: BTreeMap<Partition, Span>,
}

impl SegmentClosing {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![CLOSING_FORMAT];
        for (partition, span) in &self.spans {
            bytes.extend_from_slice(&partition.0.to_be_bytes());
            bytes.extend_from_slice(&span.first.0.to_be_bytes());
            bytes.extend_from_slice(&span.previous.0);
            bytes.extend_from_slice(&span.head.next.0.to_be_bytes());
            bytes.extend_from_slice(&span.head.hash.0);
            bytes.extend_from_slice(&span.first_booked_at_ms.to_be_bytes());
            bytes.extend_from_slice(&span.head.booked_at_ms.to_be_bytes());
        }
        add_checksum(b"", &mut bytes);
        bytes
    }

    /// The line; or, as an error, the newer format in which it is written, if it is not damaged.
    fn parse(bytes: &[u8]) -> Result<SegmentClosing, Option<u8>> {
        let mut rest = in_format(CLOSING_FORMAT, b"", bytes)?;
        let mut spans = BTreeMap::new();
        while let Some((span, behind)) = rest.split_first_chunk::<SPAN_BYTES>() {
            let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| span[at + byte]));
            let hash = |at: usize| BlockHash(std::array::from_fn(|byte| span[at + byte]));
            let head = Head { next: Sequence(number(42)), hash: hash(50), booked_at_ms: number(90).cast_signed() };
            let partition = Partition(u16::from_be_bytes([span[0], span[1]]));
            let (first, previous, first_booked_at_ms) = (Sequence(number(2)), hash(10), number(82).cast_signed());
            spans.insert(partition, Span { first, previous, first_booked_at_ms, head });
            rest = behind;
        }
        if rest.is_empty() { Ok(SegmentClosing { spans }) } else { Err(None) }
    }
}

const CLOSING_FORMAT: u8 = 1;
const SPAN_BYTES: usize = 98;
/// More than the spans of all partitions take.
const CLOSING_BYTES_MAX: usize = (SPAN_BYTES << 16) + 16;

fn closing_name(number: u32) -> String {
    format!("{number:06}{CLOSED}")
}

const JOURNAL: &str = "journal";
const CLOSED: &str = ".closed";
pub(super) const MISSING: &str = "this segment of the journal is missing; put it back if it was moved";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::checksum_of;

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_a_closing_line_stay_as_they_are() {
        let head = Head { next: Sequence(42), hash: BlockHash([2; 32]), booked_at_ms: 1_700_000_000_000 };
        let span = Span { first: Sequence(7), previous: BlockHash([1; 32]), first_booked_at_ms: -5, head };
        let closing = SegmentClosing { spans: BTreeMap::from([(Partition(3), span)]) };
        let bytes = closing.to_bytes();
        assert_eq!((bytes.len(), checksum_of(b"format", &bytes)), (103, [176, 69, 65, 111]));
        assert_eq!(SegmentClosing::parse(&bytes), Ok(closing));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentClosing::parse(&flipped), Err(None), "bit {bit}");
        }
    }
}
