//! Closed segment: its chunks in one file, in the order of their keys. The file is never written
//! again, and nothing of it has to be opened, recovered or kept in memory before it is read.
//!
//! The file is a row of pages of 256 KiB. A page holds whole chunks: their number (u16); the key
//! (14 bytes) of each, and where its value ends in the page (u32); the values; and zeros up to the
//! end. Numbers are big-endian. So a chunk is found by a binary search over the first keys of the
//! pages, in the directory of one page, and nothing is read but its value. Each value ends with a
//! checksum of its key and itself, by which damage is found.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Result;
use super::chunk::{Chunk, Fault, KEY_BYTES, Key};
use super::files::{Files, damaged, machine, read_part};
use super::segment::{ChunkBytes, Chunks, Segment};

/// A closed segment of the journal.
#[derive(Debug)]
pub(super) struct SegmentFile {
    number: u32,
    name: String,
    path: PathBuf,
    files: Arc<Files>,
    recent: Arc<RecentDirectories>,
}

/// Directories of the pages that were read last, the last one in front; of all closed segments
/// together.
#[derive(Debug, Default)]
pub(super) struct RecentDirectories(Mutex<VecDeque<Arc<Directory>>>);

/// What a page holds.
#[derive(Debug)]
struct Directory {
    segment: u32,
    /// The page's place in the file, from 0.
    page: u64,
    entries: Vec<Entry>,
}

/// Place of a chunk in its page.
#[derive(Debug)]
struct Entry {
    key: [u8; KEY_BYTES],
    begin: u32,
    end: u32,
}

const PAGE_BYTES: usize = 256 << 10;
const COUNT_BYTES: usize = 2;
const ENTRY_BYTES: usize = KEY_BYTES + 4;
/// Bytes of a page that are read first: as a rule, the whole directory.
const READ_FIRST: usize = 2 << 10;
const RECENT_MAX: usize = 64;
/// What follows the number in the name of the file.
pub(super) const CHUNKS: &str = ".chunks";

impl SegmentFile {
    /// The file of a segment in the journal's folder. It need not be there yet.
    pub(super) fn new(folder: &Path, number: u32, files: Arc<Files>, recent: Arc<RecentDirectories>) -> SegmentFile {
        let name = format!("{number:06}{CHUNKS}");
        SegmentFile { path: folder.join(&name), number, name, files, recent }
    }

    pub(super) fn is_made(&self) -> bool {
        self.path.is_file()
    }

    /// Writes the chunks of a segment, whole or not at all. A damaged chunk is an error, and so is
    /// one that is missing between the others.
    pub(super) fn write(&self, segment: &Segment) -> Result<()> {
        let written = self.files.put_in_parts(&self.name, &mut |out: &mut dyn Write| {
            let (mut page, mut order) = (OpenPage::default(), ChunkOrder::default());
            for chunk in segment.chunks() {
                let (key, value) = chunk.map_err(io::Error::other)?;
                let chunk =
                    Chunk::parse(&key, &value).and_then(|chunk| order.admit(chunk)).map_err(io::Error::other)?;
                if !page.has_room(value.len()) {
                    std::mem::take(&mut page).write(out)?;
                }
                page.values.extend_from_slice(&value);
                page.keys.push((chunk.to_bytes(), page.values.len()));
            }
            page.write(out)
        });
        written.map(drop)
    }

    /// Removes the file, and forgets its directories: another one may be written.
    pub(super) fn remove(&self) -> Result<()> {
        self.recent.0.lock().retain(|directory| directory.segment != self.number);
        self.files.remove(&self.name)
    }

    fn open(&self) -> Result<OpenFile<'_>> {
        let file = self.files.file(&self.name)?.ok_or_else(|| damaged(&self.path, super::segments::MISSING))?;
        let bytes = file.metadata().map_err(|source| machine(&self.path, source))?.len();
        Ok(OpenFile { segment: self, file, pages: bytes.div_ceil(PAGE_BYTES as u64) })
    }
}

impl Chunks for SegmentFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn first_from(&self, from: Key) -> Result<Option<ChunkBytes>> {
        let (key, file) = (from.to_bytes(), self.open()?);
        let at = file.page_of(&key)?;
        for page in at..file.pages.min(at + 2) {
            let directory = file.directory(page)?;
            let place = directory.entries.partition_point(|entry| entry.key < key);
            if let Some(entry) = directory.entries.get(place) {
                return file.chunk(page, entry).map(Some);
            }
        }
        Ok(None)
    }

    fn last_below(&self, end: Key) -> Result<Option<ChunkBytes>> {
        let (key, file) = (end.to_bytes(), self.open()?);
        let at = file.page_of(&key)?;
        for page in (at.saturating_sub(1)..file.pages.min(at + 1)).rev() {
            let directory = file.directory(page)?;
            let place = directory.entries.partition_point(|entry| entry.key < key);
            if let Some(entry) = directory.entries[..place].last() {
                return file.chunk(page, entry).map(Some);
            }
        }
        Ok(None)
    }
}

/// The chunk before, whose successor is known: in its block, or the first of the block behind.
#[derive(Default)]
struct ChunkOrder(Option<Chunk>);

impl ChunkOrder {
    fn admit(&mut self, chunk: Chunk) -> std::result::Result<Key, Fault> {
        let key = chunk.key;
        let is_next = match &self.0 {
            Some(before) if before.key.partition == key.partition && before.key.index + 1 < before.count => {
                before.first == chunk.first && before.key.index + 1 == key.index
            }
            Some(before) if before.key.partition == key.partition => key.index == 0 && before.next_block() == key.at,
            _ => key.index == 0,
        };
        self.0 = Some(chunk);
        if is_next { Ok(key) } else { Err(Fault::Missing) }
    }
}

/// A page that is being filled: keys, and where their values end among the values.
#[derive(Default)]
struct OpenPage {
    keys: Vec<([u8; KEY_BYTES], usize)>,
    values: Vec<u8>,
}

impl OpenPage {
    fn has_room(&self, value: usize) -> bool {
        COUNT_BYTES + (self.keys.len() + 1) * ENTRY_BYTES + self.values.len() + value <= PAGE_BYTES
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut page = (self.keys.len() as u16).to_be_bytes().to_vec();
        let begin = COUNT_BYTES + self.keys.len() * ENTRY_BYTES;
        for (key, end) in &self.keys {
            page.extend_from_slice(key);
            page.extend_from_slice(&((begin + end) as u32).to_be_bytes());
        }
        page.extend_from_slice(&self.values);
        page.resize(PAGE_BYTES, 0);
        out.write_all(&page)
    }
}

/// The file while something is looked up.
struct OpenFile<'a> {
    segment: &'a SegmentFile,
    file: Arc<File>,
    pages: u64,
}

impl OpenFile<'_> {
    /// The last page whose first key is not above `key`; the first page if there is none.
    fn page_of(&self, key: &[u8; KEY_BYTES]) -> Result<u64> {
        let number = self.segment.number;
        if let Some(directory) = self.segment.recent.find(|recent| recent.segment == number && recent.is_around(key)) {
            return Ok(directory.page);
        }
        let (mut at, mut end) = (0, self.pages);
        while at + 1 < end {
            let middle = at.midpoint(end);
            let first = self.read(middle, COUNT_BYTES, KEY_BYTES)?;
            if first.as_slice() <= key.as_slice() { at = middle } else { end = middle }
        }
        Ok(at)
    }

    fn directory(&self, page: u64) -> Result<Arc<Directory>> {
        let SegmentFile { number: segment, recent, .. } = self.segment;
        if let Some(directory) = recent.find(|recent| (recent.segment, recent.page) == (*segment, page)) {
            return Ok(directory);
        }
        let mut bytes = self.read(page, 0, READ_FIRST)?;
        let count = bytes.first_chunk().map_or(0, |count| usize::from(u16::from_be_bytes(*count)));
        let needed = (COUNT_BYTES + count * ENTRY_BYTES).min(PAGE_BYTES);
        if bytes.len() < needed {
            bytes = self.read(page, 0, needed)?;
        }
        let directory = Arc::new(Directory { segment: *segment, page, entries: entries_of(&bytes, count) });
        recent.put(&directory);
        Ok(directory)
    }

    fn chunk(&self, page: u64, entry: &Entry) -> Result<ChunkBytes> {
        let value = self.read(page, entry.begin as usize, (entry.end - entry.begin) as usize)?;
        Ok((entry.key.to_vec(), value))
    }

    fn read(&self, page: u64, at: usize, bytes: usize) -> Result<Vec<u8>> {
        let part = read_part(&self.file, page * PAGE_BYTES as u64 + at as u64, bytes);
        part.map_err(|source| machine(&self.segment.path, source))
    }
}

/// The entries of a directory. One that names no place in its page ends them.
fn entries_of(bytes: &[u8], count: usize) -> Vec<Entry> {
    let mut begin = (COUNT_BYTES + count * ENTRY_BYTES) as u32;
    let entries = bytes.get(COUNT_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES).take(count);
    let entries = entries.map_while(|entry| {
        let (key, end) = entry.split_first_chunk::<KEY_BYTES>()?;
        let end = u32::from_be_bytes(end.try_into().ok()?);
        let is_within = begin <= end && end as usize <= PAGE_BYTES;
        let entry = is_within.then_some(Entry { key: *key, begin, end });
        begin = end;
        entry
    });
    entries.collect()
}

impl Directory {
    /// Whether its keys begin not above and end not below `key`.
    fn is_around(&self, key: &[u8; KEY_BYTES]) -> bool {
        let [first, .., last] = self.entries.as_slice() else { return false };
        first.key <= *key && *key <= last.key
    }
}

impl RecentDirectories {
    fn find(&self, is_it: impl Fn(&Directory) -> bool) -> Option<Arc<Directory>> {
        self.0.lock().iter().find(|directory| is_it(directory)).cloned()
    }

    fn put(&self, directory: &Arc<Directory>) {
        let mut recent = self.0.lock();
        recent.push_front(Arc::clone(directory));
        recent.truncate(RECENT_MAX);
    }
}
