//! Sorted run, as in an LSM tree: the lists of a range of Records, sorted by key, in one file that
//! is never changed.
//!
//! # Format
//! ```text
//! segments   each up to 194 pages, their directory page, and the pages of their filter
//! page       groups (u16), how many occurrences of the first group's key stand in pages before
//!            (u32), the groups, zeros
//! group      kind (u8), whose (u64), occurrences (u16), then each occurrence: its number as LEB128
//!            (the first whole, the others as the difference from the one before), and the words
//!            that come with it, zigzag, as LEB128
//! directory  for each page of the segment its first group's key, that group's first number, and
//!            the occurrences before; zeros
//! filter     a Bloom filter over the segment's rare keys, in blocks of 64 bytes, 63 a page
//! fences     for each segment the begin of its directory, its place, its pages and the blocks of
//!            its filter
//! footer     64 bytes, see [`Footer`]
//! ```
//! Each page of 4 KiB, of whichever kind, ends with the CRC32C of the run's first
//! sequence, its place in the file and its bytes. All numbers are big-endian. Only the fences are
//! in memory, some 40 bytes for 800 KiB of a file; pages of directories and filters are read
//! through a cache that has a bound.
//!
//! The bytes follow from the Records alone, but for hashes of personal data. So a run can be
//! checked against the journal, and a run that is lost or damaged is written again as it was. A
//! change of this format takes another number; so does a change of the lists that are made of
//! Records. A run of a newer format is refused by name.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::filter;
use super::key::IndexKey;
use super::page_cache::RunFiles;
use crate::records::may_wait;
use store::{StoreError, covered};

/// The format that is written and read.
const FORMAT: u8 = 7;
const MAGIC: [u8; 7] = *b"centavo";
const PAGE_BYTES: usize = 4096;
const PAGE_END: usize = PAGE_BYTES - 4;
const PAGE_HEADER_BYTES: usize = 6;
const GROUP_HEADER_BYTES: usize = 11;
/// An occurrence has up to four numbers of up to ten bytes.
const OCCURRENCE_BYTES_MAX: usize = 40;
const START_BYTES: usize = 21;
const FENCE_BYTES: usize = START_BYTES + 10;
const PAGES_PER_SEGMENT: usize = PAGE_END / START_BYTES;
const FOOTER_BYTES: usize = 64;
const FILTER_BLOCKS_PER_PAGE: usize = PAGE_END / filter::BLOCK_BYTES;

/// Why a run cannot be used.
#[derive(Debug)]
pub(super) enum RunError {
    /// It is not what was written; it can be written again from the journal.
    Damaged,
    /// The store failed, or the run was written by a newer release.
    Store(StoreError),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The Records that a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    /// Sequence of the first one.
    pub(super) first: u64,
    /// Sequence of the last one.
    pub(super) last: u64,
    /// The latest time at which one of them took effect, milliseconds.
    pub(super) latest_ms: i64,
}

impl Cover {
    pub(super) fn file_name(&self) -> String {
        format!("run-{:016x}-{:016x}", self.first, self.last)
    }

    /// True when some of these Records may be among them.
    pub(super) fn meets(self, sequences: &Range<u64>) -> bool {
        self.first < sequences.end && self.last >= sequences.start
    }

    /// Range of Records in a file's name; `None` if it is no run's.
    pub(super) fn of_file_name(name: &str) -> Option<(u64, u64)> {
        let (first, last) = name.strip_prefix("run-")?.split_once('-')?;
        Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?))
    }
}

/// First key and rank of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageStart {
    key: IndexKey,
    number: u64,
    preceding: u32,
}

impl PageStart {
    fn to_bytes(self) -> [u8; START_BYTES] {
        let mut bytes = [0; START_BYTES];
        bytes[0] = self.key.kind;
        bytes[1..9].copy_from_slice(&self.key.whose.to_be_bytes());
        bytes[9..17].copy_from_slice(&self.number.to_be_bytes());
        bytes[17..].copy_from_slice(&self.preceding.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Self {
        Self {
            key: IndexKey { kind: bytes[0], whose: word_at(bytes, 1) },
            number: word_at(bytes, 9),
            preceding: half_at(bytes, 17),
        }
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn half_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Place and first key of a segment.
#[derive(Clone, Copy, Debug)]
struct Fence {
    start: PageStart,
    /// The place of its first page in the file, counted in pages.
    place: u32,
    pages: u16,
    filter_blocks: u32,
}

impl Fence {
    fn to_bytes(self) -> [u8; FENCE_BYTES] {
        let mut bytes = [0; FENCE_BYTES];
        bytes[..START_BYTES].copy_from_slice(&self.start.to_bytes());
        bytes[START_BYTES..START_BYTES + 4].copy_from_slice(&self.place.to_be_bytes());
        bytes[START_BYTES + 4..START_BYTES + 6].copy_from_slice(&self.pages.to_be_bytes());
        bytes[START_BYTES + 6..].copy_from_slice(&self.filter_blocks.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Self {
        Self {
            start: PageStart::parse(bytes),
            place: half_at(bytes, START_BYTES),
            pages: u16::from_be_bytes([bytes[START_BYTES + 4], bytes[START_BYTES + 5]]),
            filter_blocks: half_at(bytes, START_BYTES + 6),
        }
    }

    /// The place of its directory; the filter is behind it.
    fn directory(&self) -> u32 {
        self.place + u32::from(self.pages)
    }
}

/// Writes a run, a page at a time. Occurrences come in order of their keys, and of their numbers
/// within a key.
pub(super) struct Builder<W> {
    first: u64,
    out: W,
    /// Pages of any kind that were written.
    places: u32,
    page: Vec<u8>,
    groups: u16,
    group_at: usize,
    occurrences_of_group: u16,
    occurrences_of_key: u32,
    key: Option<IndexKey>,
    number: u64,
    /// Page starts of the segment that is being written.
    starts: Vec<PageStart>,
    rare: Vec<u64>,
    fences: Vec<Fence>,
}

impl<W: Write> Builder<W> {
    pub(super) fn new(first: u64, out: W) -> Self {
        Self {
            first,
            out,
            places: 0,
            page: Vec::with_capacity(PAGE_BYTES),
            groups: 0,
            group_at: 0,
            occurrences_of_group: 0,
            occurrences_of_key: 0,
            key: None,
            number: 0,
            starts: Vec::new(),
            rare: Vec::new(),
            fences: Vec::new(),
        }
    }

    /// Adds one occurrence: the number that it is ordered by, and what comes with it.
    pub(super) fn push(&mut self, key: IndexKey, occurrence: &[u64]) -> io::Result<()> {
        let is_new_key = self.key != Some(key);
        if is_new_key {
            self.occurrences_of_key = 0;
        }
        let room = GROUP_HEADER_BYTES + OCCURRENCE_BYTES_MAX;
        let is_full =
            self.page.is_empty() || self.page.len() + room > PAGE_END || self.occurrences_of_group == u16::MAX;
        if is_full {
            self.close_page()?;
            self.open_page(key, occurrence[0]);
        }
        if is_full || is_new_key {
            self.open_group(key);
        }
        if key.is_rare() {
            let hash = filter::hash(key);
            if self.rare.last() != Some(&hash) {
                self.rare.push(hash);
            }
        }
        write_leb(&mut self.page, occurrence[0] - self.number);
        self.number = occurrence[0];
        occurrence[1..].iter().for_each(|with| write_leb(&mut self.page, *with));
        self.occurrences_of_group += 1;
        self.occurrences_of_key = self.occurrences_of_key.saturating_add(1);
        let count_at = self.group_at + GROUP_HEADER_BYTES - 2;
        self.page[count_at..count_at + 2].copy_from_slice(&self.occurrences_of_group.to_be_bytes());
        Ok(())
    }

    /// Writes what is left, and gives back where it was written to.
    pub(super) fn finish(mut self, cover: Cover) -> io::Result<W> {
        self.close_page()?;
        self.close_segment()?;
        let fences: Vec<u8> = self.fences.iter().flat_map(|fence| fence.to_bytes()).collect();
        let fences_checksum = crc32c::crc32c(&fences);
        let footer = Footer { cover, places: self.places, fences: self.fences.len() as u32, fences_checksum };
        self.out.write_all(&fences)?;
        self.out.write_all(&footer.to_bytes())?;
        Ok(self.out)
    }

    fn open_page(&mut self, key: IndexKey, number: u64) {
        self.starts.push(PageStart { key, number, preceding: self.occurrences_of_key });
        self.page.extend_from_slice(&[0; 2]);
        self.page.extend_from_slice(&self.occurrences_of_key.to_be_bytes());
        self.groups = 0;
    }

    fn open_group(&mut self, key: IndexKey) {
        self.group_at = self.page.len();
        self.page.push(key.kind);
        self.page.extend_from_slice(&key.whose.to_be_bytes());
        self.page.extend_from_slice(&[0; 2]);
        self.groups += 1;
        self.page[..2].copy_from_slice(&self.groups.to_be_bytes());
        (self.key, self.number, self.occurrences_of_group) = (Some(key), 0, 0);
    }

    fn close_page(&mut self) -> io::Result<()> {
        if !self.page.is_empty() {
            let mut page = std::mem::take(&mut self.page);
            self.write(&mut page)?;
            page.clear();
            self.page = page;
        }
        if self.starts.len() == PAGES_PER_SEGMENT { self.close_segment() } else { Ok(()) }
    }

    fn close_segment(&mut self) -> io::Result<()> {
        let (starts, rare) = (std::mem::take(&mut self.starts), std::mem::take(&mut self.rare));
        let Some(start) = starts.first().copied() else { return Ok(()) };
        let (place, pages) = (self.places - starts.len() as u32, starts.len() as u16);
        let mut directory: Vec<u8> = starts.iter().flat_map(|start| start.to_bytes()).collect();
        self.write(&mut directory)?;
        let filter: Vec<u8> = filter::of(&rare).into_iter().flat_map(u64::to_be_bytes).collect();
        for blocks in filter.chunks(FILTER_BLOCKS_PER_PAGE * filter::BLOCK_BYTES) {
            let mut page = blocks.to_vec();
            self.write(&mut page)?;
        }
        let filter_blocks = (filter.len() / filter::BLOCK_BYTES) as u32;
        self.fences.push(Fence { start, place, pages, filter_blocks });
        Ok(())
    }

    fn write(&mut self, page: &mut Vec<u8>) -> io::Result<()> {
        page.resize(PAGE_END, 0);
        let checksum = page_checksum(self.first, self.places, page);
        page.extend_from_slice(&checksum.to_be_bytes());
        self.places = self.places.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write_all(page)
    }
}

/// The end of a run's file.
struct Footer {
    cover: Cover,
    /// Pages of any kind.
    places: u32,
    fences: u32,
    /// CRC32C of the fences.
    fences_checksum: u32,
}

impl Footer {
    fn to_bytes(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        bytes.extend_from_slice(&self.cover.first.to_be_bytes());
        bytes.extend_from_slice(&self.cover.last.to_be_bytes());
        bytes.extend_from_slice(&self.cover.latest_ms.to_be_bytes());
        bytes.extend_from_slice(&self.places.to_be_bytes());
        bytes.extend_from_slice(&self.fences.to_be_bytes());
        bytes.extend_from_slice(&self.fences_checksum.to_be_bytes());
        bytes.resize(FOOTER_BYTES - MAGIC.len() - 1 - 4, 0);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(FORMAT);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
        bytes.try_into().expect("a footer has 64 bytes")
    }

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, RunError> {
        let covered = covered(b"", bytes).filter(|_| bytes.len() == FOOTER_BYTES).ok_or(RunError::Damaged)?;
        let (rest, [magic @ .., format]) = covered.split_last_chunk::<8>().ok_or(RunError::Damaged)?;
        // One of a former format lacks lists of today: it is written again.
        if *magic != MAGIC || *format < FORMAT {
            return Err(RunError::Damaged);
        }
        if *format > FORMAT {
            return Err(RunError::Store(StoreError::NewerFormat {
                folder: name.into(),
                found: *format,
                known: FORMAT,
            }));
        }
        Ok(Self {
            cover: Cover { first: word_at(rest, 0), last: word_at(rest, 8), latest_ms: word_at(rest, 16) as i64 },
            places: half_at(rest, 24),
            fences: half_at(rest, 28),
            fences_checksum: half_at(rest, 32),
        })
    }
}

/// A run that can be read: its fences are in memory, its pages on the store, some of them in the
/// cache.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) cover: Cover,
    name: String,
    file_bytes: u64,
    /// Among all that this process read: pages in the cache are its.
    number: u64,
    fences: Vec<Fence>,
}

impl Run {
    /// Reads the footer and the fences.
    pub(super) fn open(files: RunFiles<'_>, name: &str, bytes: u64) -> Result<Self, RunError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let footer_at = bytes.checked_sub(FOOTER_BYTES as u64).ok_or(RunError::Damaged)?;
        let footer = files.store.file_part(name, footer_at, FOOTER_BYTES)?.ok_or(RunError::Damaged)?;
        let footer = Footer::parse(name, &footer)?;
        let fences_at = u64::from(footer.places) * PAGE_BYTES as u64;
        let fences_bytes = footer.fences as usize * FENCE_BYTES;
        if Cover::of_file_name(name) != Some((footer.cover.first, footer.cover.last))
            || fences_at + fences_bytes as u64 != footer_at
        {
            return Err(RunError::Damaged);
        }
        let fences = files.store.file_part(name, fences_at, fences_bytes)?.ok_or(RunError::Damaged)?;
        if fences.len() != fences_bytes || crc32c::crc32c(&fences) != footer.fences_checksum {
            return Err(RunError::Damaged);
        }
        Ok(Self {
            cover: footer.cover,
            name: name.to_owned(),
            file_bytes: bytes,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            fences: fences.chunks_exact(FENCE_BYTES).map(Fence::parse).collect(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The bytes that it takes in memory, but for the cache.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.fences.capacity() * size_of::<Fence>()
    }

    /// Whether it may hold occurrences of a key: false is certain.
    pub(super) fn may_hold(&self, files: RunFiles<'_>, key: IndexKey) -> Result<bool, RunError> {
        let begins = self.fences.partition_point(|fence| fence.start.key < key).saturating_sub(1);
        let ends = begins + self.fences[begins..].partition_point(|fence| fence.start.key <= key);
        Ok(ends > 0 && (!key.is_rare() || self.any_may_hold(files, begins..ends, key)?))
    }

    /// The pages that may hold occurrences of a key.
    pub(super) fn span(&self, files: RunFiles<'_>, key: IndexKey) -> Result<Range<usize>, RunError> {
        if !self.may_hold(files, key)? {
            return Ok(0..0);
        }
        let begins = self.partition_point(files, |start| start.key < key)?;
        let ends = self.partition_point(files, |start| start.key <= key)?;
        Ok(begins.saturating_sub(1)..ends)
    }

    /// The page of a span that holds the first occurrence of the key whose number is not below
    /// `number`, or the one before it.
    pub(super) fn page_of(
        &self,
        files: RunFiles<'_>,
        span: &Range<usize>,
        key: IndexKey,
        number: u64,
    ) -> Result<usize, RunError> {
        let is_before = |start: &PageStart| start.key < key || (start.key == key && start.number < number);
        Ok(self.partition_point(files, is_before)?.clamp(span.start + 1, span.end) - 1)
    }

    /// The page of a span that holds the occurrence of the key at a place, counted from 0.
    pub(super) fn page_at(
        &self,
        files: RunFiles<'_>,
        span: &Range<usize>,
        key: IndexKey,
        index: u64,
    ) -> Result<usize, RunError> {
        let begins_by =
            |start: &PageStart| start.key < key || (start.key == key && u64::from(start.preceding) <= index);
        Ok(self.partition_point(files, begins_by)?.clamp(span.start + 1, span.end) - 1)
    }

    /// How many occurrences of a key stand in pages before this one.
    pub(super) fn preceding(&self, files: RunFiles<'_>, page: usize, key: IndexKey) -> Result<u64, RunError> {
        let fence = self.fences.get(page / PAGES_PER_SEGMENT).ok_or(RunError::Damaged)?;
        let directory = self.page(files, fence.directory())?;
        let start = PageStart::parse(&directory[page % PAGES_PER_SEGMENT * START_BYTES..]);
        Ok(if start.key == key { u64::from(start.preceding) } else { 0 })
    }

    pub(super) fn pages(&self) -> usize {
        let before = self.fences.len().saturating_sub(1) * PAGES_PER_SEGMENT;
        self.fences.last().map_or(0, |last| before + usize::from(last.pages))
    }

    /// The first page whose start is not before the requested place.
    fn partition_point(&self, files: RunFiles<'_>, is_before: impl Fn(&PageStart) -> bool) -> Result<usize, RunError> {
        let segments = self.fences.partition_point(|fence| is_before(&fence.start));
        let Some(segment) = segments.checked_sub(1) else { return Ok(0) };
        let fence = &self.fences[segment];
        let directory = self.page(files, fence.directory())?;
        let (starts, _) = directory.as_chunks::<START_BYTES>();
        let later = starts[1..usize::from(fence.pages)].partition_point(|start| is_before(&PageStart::parse(start)));
        Ok(segment * PAGES_PER_SEGMENT + 1 + later)
    }

    fn any_may_hold(&self, files: RunFiles<'_>, segments: Range<usize>, key: IndexKey) -> Result<bool, RunError> {
        let hash = filter::hash(key);
        for fence in self.fences[segments].iter().filter(|fence| fence.filter_blocks > 0) {
            let block = filter::block_of(hash, fence.filter_blocks as usize);
            let place = fence.directory() + 1 + (block / FILTER_BLOCKS_PER_PAGE) as u32;
            let block_at = block % FILTER_BLOCKS_PER_PAGE * filter::BLOCK_BYTES;
            let has_all = |page: &[u8]| filter::has(&page[block_at..block_at + filter::BLOCK_BYTES], hash);
            let may_hold = match files.cache.look((self.number, place), |page| has_all(page)) {
                Some(known) => known,
                None => has_all(&self.page(files, place)?),
            };
            if may_hold {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A page of a directory or a filter.
    fn page(&self, files: RunFiles<'_>, place: u32) -> Result<Arc<[u8]>, RunError> {
        if let Some(known) = files.cache.get((self.number, place)) {
            return Ok(known);
        }
        let offset = u64::from(place) * PAGE_BYTES as u64;
        let bytes = may_wait(|| files.store.file_part(&self.name, offset, PAGE_BYTES))?.ok_or(RunError::Damaged)?;
        let bytes: Arc<[u8]> = self.checked(place, &bytes)?.into();
        files.cache.put((self.number, place), Arc::clone(&bytes));
        Ok(bytes)
    }

    /// The groups of a page, in order: each a key and its occurrences, one after the other.
    pub(super) fn groups(&self, files: RunFiles<'_>, page: usize) -> Result<Vec<(IndexKey, Vec<u64>)>, RunError> {
        let mut all = Vec::new();
        self.each_page(files, page..page + 1, |mut groups| {
            while groups.left > 0 {
                let mut occurrences = Vec::new();
                let key = groups.next(|_| Some(&mut occurrences)).ok_or(RunError::Damaged)?;
                all.push((key, occurrences));
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// The occurrences of one key in some pages, one after the other.
    pub(super) fn occurrences(
        &self,
        files: RunFiles<'_>,
        pages: Range<usize>,
        key: IndexKey,
    ) -> Result<Vec<u64>, RunError> {
        let mut occurrences = Vec::new();
        self.each_page(files, pages, |mut groups| {
            while groups.left > 0 {
                let found = groups.next(|found| (found == key).then_some(&mut occurrences)).ok_or(RunError::Damaged)?;
                if found >= key {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(occurrences)
    }

    /// Reads some pages, those of a segment at once.
    fn each_page(
        &self,
        files: RunFiles<'_>,
        mut pages: Range<usize>,
        mut take: impl FnMut(Groups<'_>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        while !pages.is_empty() {
            let (segment, first) = (pages.start / PAGES_PER_SEGMENT, pages.start % PAGES_PER_SEGMENT);
            let fence = self.fences.get(segment).ok_or(RunError::Damaged)?;
            let count = pages.len().min(PAGES_PER_SEGMENT - first);
            let place = fence.place + first as u32;
            let (offset, length) = (u64::from(place) * PAGE_BYTES as u64, count * PAGE_BYTES);
            let bytes = may_wait(|| files.store.file_part(&self.name, offset, length))?;
            let bytes = bytes.filter(|bytes| bytes.len() == length).ok_or(RunError::Damaged)?;
            for (place, bytes) in (place..).zip(bytes.chunks_exact(PAGE_BYTES)) {
                take(self.groups_of(place, bytes)?)?;
            }
            pages.start += count;
        }
        Ok(())
    }

    /// Looks whether all pages, those of directories and filters too, are as they were written.
    pub(super) fn check_pages(&self, files: RunFiles<'_>) -> Result<(), RunError> {
        let places = self.file_bytes.saturating_sub(FOOTER_BYTES as u64) / PAGE_BYTES as u64;
        let last = self.fences.last().map_or(0, |last| {
            let filter = (last.filter_blocks as usize).div_ceil(FILTER_BLOCKS_PER_PAGE);
            u64::from(last.directory()) + 1 + filter as u64
        });
        for place in 0..last.min(places) {
            let bytes = files.store.file_part(&self.name, place * PAGE_BYTES as u64, PAGE_BYTES)?;
            self.checked(place as u32, &bytes.ok_or(RunError::Damaged)?)?;
        }
        Ok(())
    }

    /// The bytes of a page without their checksum, if they are as they were written.
    fn checked<'a>(&self, place: u32, bytes: &'a [u8]) -> Result<&'a [u8], RunError> {
        let (covered, checksum) = bytes.split_last_chunk::<4>().ok_or(RunError::Damaged)?;
        let is_right =
            covered.len() == PAGE_END && page_checksum(self.cover.first, place, covered).to_be_bytes() == *checksum;
        if is_right { Ok(covered) } else { Err(RunError::Damaged) }
    }

    fn groups_of<'a>(&self, place: u32, bytes: &'a [u8]) -> Result<Groups<'a>, RunError> {
        let (left, rest) = self.checked(place, bytes)?.split_first_chunk::<2>().ok_or(RunError::Damaged)?;
        Ok(Groups { rest: &rest[PAGE_HEADER_BYTES - 2..], left: u16::from_be_bytes(*left) })
    }
}

/// Reads the groups of a page.
struct Groups<'a> {
    rest: &'a [u8],
    left: u16,
}

impl Groups<'_> {
    /// Reads one group, into the list that `wanted` gives for its key, or past it. `None` if it
    /// cannot be read.
    fn next<'v>(&mut self, wanted: impl FnOnce(IndexKey) -> Option<&'v mut Vec<u64>>) -> Option<IndexKey> {
        let (header, rest) = self.rest.split_first_chunk::<GROUP_HEADER_BYTES>()?;
        self.rest = rest;
        self.left -= 1;
        let key = IndexKey { kind: header[0], whose: u64::from_be_bytes(header[1..9].try_into().ok()?) };
        let count = u16::from_be_bytes([header[9], header[10]]);
        let width = key.width();
        let mut into = wanted(key);
        if let Some(occurrences) = &mut into {
            occurrences.reserve(usize::from(count) * width);
        }
        let mut number = 0_u64;
        for _ in 0..count {
            number = number.checked_add(self.leb()?)?;
            if let Some(occurrences) = &mut into {
                occurrences.push(number);
            }
            for _ in 1..width {
                let with = self.leb()?;
                if let Some(occurrences) = &mut into {
                    occurrences.push(with);
                }
            }
        }
        Some(key)
    }

    fn leb(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn write_leb(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// A signed number as one that is small when it is near zero.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The opposite of [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// CRC32C over the run's first sequence, the place in the file and the bytes.
fn page_checksum(first: u64, place: u32, covered: &[u8]) -> u32 {
    let first = crc32c::crc32c(&first.to_be_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(first, &place.to_be_bytes()), covered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::page_cache::PageCache;
    use store::Part;
    use store::testkit::MemoryStore;

    fn built(cover: Cover, occurrences: impl IntoIterator<Item = (IndexKey, Vec<u64>)>) -> Vec<u8> {
        let mut builder = Builder::new(cover.first, Vec::new());
        occurrences.into_iter().for_each(|(key, occurrence)| builder.push(key, &occurrence).unwrap());
        builder.finish(cover).unwrap()
    }

    fn run_of(occurrences: &[(IndexKey, Vec<u64>)]) -> (Part, Run) {
        let cover = Cover { first: 5, last: 900, latest_ms: -3 };
        let bytes = built(cover, occurrences.iter().cloned());
        let store = MemoryStore::new().part();
        store.put_file(&cover.file_name(), &bytes).unwrap();
        let cache = PageCache::new(64);
        let run = Run::open(RunFiles { store: &store, cache: &cache }, &cover.file_name(), bytes.len() as u64).unwrap();
        assert_eq!(run.cover, cover);
        (store, run)
    }

    /// Keys with lists from one occurrence to several pages, sorted.
    fn lists() -> impl Strategy<Value = Vec<(IndexKey, Vec<u64>)>> {
        let length = prop_oneof![1..4_usize, 1..4_usize, 1..4_usize, 1_000..9_000_usize];
        let list = (prop_oneof![Just(0_u8), Just(3), Just(8)], 0..40_u64, length, any::<u32>());
        proptest::collection::vec(list, 1..30).prop_map(|lists| {
            let mut occurrences = Vec::new();
            for (kind, whose, length, seed) in lists {
                let key = IndexKey { kind, whose };
                let mut number = u64::from(seed) << 8;
                for step in 0..length as u64 {
                    number += (step * u64::from(seed)) % 300;
                    let mut occurrence = vec![number];
                    occurrence.resize(key.width(), zigzag(-(step as i64)));
                    occurrences.push((key, occurrence));
                }
            }
            occurrences.sort();
            occurrences
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_posting_comes_back_in_order(occurrences in lists()) {
            let (store, run) = run_of(&occurrences);
            let cache = PageCache::new(64);
            let files = RunFiles { store: &store, cache: &cache };
            let mut read = Vec::new();
            for page in 0..run.pages() {
                for (key, numbers) in run.groups(files, page).unwrap() {
                    read.extend(numbers.chunks(key.width()).map(|occurrence| (key, occurrence.to_vec())));
                }
            }
            prop_assert_eq!(&read, &occurrences);
            for kind in [0, 3, 8] {
                for whose in 0..42 {
                    let key = IndexKey { kind, whose };
                    let mut found = Vec::new();
                    for page in run.span(files, key).unwrap() {
                        let occurrences = run.occurrences(files, page..page + 1, key).unwrap();
                        if !occurrences.is_empty() {
                            prop_assert_eq!(run.preceding(files, page, key).unwrap(), (found.len() / key.width()) as u64);
                        }
                        found.extend(occurrences);
                    }
                    let expected: Vec<u64> =
                        occurrences.iter().filter(|(of, _)| *of == key).flat_map(|(_, occurrence)| occurrence.clone()).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let occurrences: Vec<_> = (0..3_000_u64).map(|n| (IndexKey { kind: 3, whose: n / 2 }, vec![n])).collect();
        let (store, run) = run_of(&occurrences);
        let name = run.name().to_owned();
        let bytes = store.file_part(&name, 0, usize::MAX).unwrap().unwrap();
        for at in (0..bytes.len()).step_by(61) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            store.put_file(&name, &flipped).unwrap();
            let cache = PageCache::new(64);
            let files = RunFiles { store: &store, cache: &cache };
            let read = Run::open(files, &name, flipped.len() as u64).and_then(|run| {
                (0..run.pages()).try_for_each(|page| run.groups(files, page).map(drop))?;
                (0..1_500).try_for_each(|whose| run.span(files, IndexKey { kind: 3, whose }).map(drop))
            });
            assert!(matches!(read, Err(RunError::Damaged)), "byte {at}");
        }
    }

    #[test]
    fn the_filter_holds_what_was_put_in_and_little_else() {
        let key = |whose: u64| IndexKey { kind: 4, whose: whose.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
        let mut occurrences: Vec<_> = (0..200_000).map(|whose| (key(whose), vec![7])).collect();
        occurrences.sort();
        let (store, run) = run_of(&occurrences);
        assert!(run.fences.len() > 2, "several segments");
        let cache = PageCache::new(64);
        let files = RunFiles { store: &store, cache: &cache };
        let may_hold = |whose| !run.span(files, key(whose)).unwrap().is_empty();
        assert!((0..200_000).step_by(7).all(may_hold));
        let wrong = (200_000..240_000).filter(|whose| may_hold(*whose)).count();
        assert!(wrong < 20, "{wrong} of 40,000 look-ups would read a page in vain");
        let per_mebibyte = run.memory_bytes() as u64 * (1 << 20) / store.files().unwrap()[0].1;
        assert!(per_mebibyte < 256, "{per_mebibyte} bytes of memory a MiB of a run");
        assert!(cache.len() <= 64);
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_format_7_stay_as_they_are() {
        let many = (0..3_000).map(|number| (IndexKey { kind: 0, whose: 7 }, vec![number * number]));
        let balances = vec![1 << 40, zigzag(-1), zigzag(i64::MAX), zigzag(i64::MIN)];
        let others = [
            (IndexKey { kind: 3, whose: u64::MAX }, vec![9]),
            (IndexKey { kind: 8, whose: 1 << 32 }, balances),
            (IndexKey { kind: 18, whose: 1 << 32 }, vec![1 << 40, 29_000_001, 1_000]),
        ];
        let occurrences = many.chain(others);
        let cover = Cover { first: 5, last: 3_004, latest_ms: -3 };
        let bytes = built(cover, occurrences);
        assert_eq!((bytes.len(), crc32c::crc32c(&bytes)), (16_479, 1_423_695_863));
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let cover = Cover { first: 1, last: 2, latest_ms: 0 };
        let of_format = |format: u8| {
            let mut bytes = built(cover, []);
            let format_at = bytes.len() - 5;
            bytes[format_at] = format;
            let covered = bytes.len() - FOOTER_BYTES..bytes.len() - 4;
            let checksum = crc32c::crc32c(&bytes[covered]);
            let end = bytes.len() - 4;
            bytes[end..].copy_from_slice(&checksum.to_be_bytes());
            let store = MemoryStore::new().part();
            store.put_file(&cover.file_name(), &bytes).unwrap();
            let cache = PageCache::new(64);
            Run::open(RunFiles { store: &store, cache: &cache }, &cover.file_name(), bytes.len() as u64)
        };
        assert!(of_format(FORMAT).is_ok());
        assert!(matches!(of_format(FORMAT - 1), Err(RunError::Damaged)), "a former one is written again");
        let refused = of_format(FORMAT + 1).unwrap_err();
        assert!(matches!(refused, RunError::Store(StoreError::NewerFormat { found: 8, known: 7, .. })), "{refused:?}");
    }
}
