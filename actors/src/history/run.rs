//! A run: the lists of a range of Records, sorted by term and packed into one file that is never changed.
//!
//! # Format 3
//! ```text
//! pages      4 KiB each: groups (u16), how many postings of the first group's term stand in pages before (u32), the groups,
//!            zeros, CRC32C of the run's first sequence, the page's number and all bytes before (u32)
//! group      kind (u8), whose (u64), postings (u16), then for each posting its number as LEB128, the first whole and the others
//!            as the difference from the one before, and what comes with it, zigzag, as LEB128
//! directory  for each page its first group's term and that group's first number
//! filter     a Bloom filter over the rare terms, in blocks of 64 bytes
//! footer     64 bytes, see [`Footer`]
//! ```
//! All numbers are big-endian. The bytes follow from the Records alone, so that a run can be checked against the journal, and one
//! that is lost or damaged is written again as it was. A change of this format, or of which lists there are of Records that earlier releases
//! write too, takes another number: a run of an earlier format is written again, a newer one is named and not read.

use std::ops::Range;

use super::term::Term;
use crate::load::may_wait;
use crate::store::{Store, StoreError};

/// The format that this release writes and reads. Runs of earlier formats are written again: those of format 1 have neither a list of what
/// operators asked for nor one of notices, those of format 2 name the Records that others are told of without what these mean to them.
const FORMAT: u8 = 3;
const MAGIC: [u8; 7] = *b"centavo";
const PAGE_BYTES: usize = 4096;
const PAGE_END: usize = PAGE_BYTES - 4;
const PAGE_HEADER_BYTES: usize = 6;
const GROUP_HEADER_BYTES: usize = 11;
/// A posting has up to four numbers of up to ten bytes.
const POSTING_BYTES_MAX: usize = 40;
const START_BYTES: usize = 21;
const FOOTER_BYTES: usize = 64;
const FILTER_BLOCK_WORDS: usize = 8;
/// At 12 bits and 6 probes about one look-up of a hundred reads a page in vain.
const FILTER_BITS_PER_TERM: usize = 12;
const FILTER_PROBES: u32 = 6;

/// Why a run cannot be used.
#[derive(Debug)]
pub(super) enum RunError {
    /// It is not what was written, or an earlier release wrote it; it can be written again from the journal.
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

    /// The range of Records that a file's name tells; none when it is no run's.
    pub(super) fn of_file_name(name: &str) -> Option<(u64, u64)> {
        let (first, last) = name.strip_prefix("run-")?.split_once('-')?;
        Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?))
    }
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageStart {
    term: Term,
    number: u64,
    preceding: u32,
}

/// Writes a run. Postings come in order of their terms, and of their numbers within a term.
pub(super) struct Builder {
    first: u64,
    pages: Vec<u8>,
    page: Vec<u8>,
    groups: u16,
    group_at: usize,
    postings_of_group: u16,
    postings_of_term: u32,
    term: Option<Term>,
    number: u64,
    starts: Vec<PageStart>,
    rare: Vec<u64>,
}

impl Builder {
    pub(super) fn new(first: u64) -> Self {
        Self {
            first,
            pages: Vec::new(),
            page: Vec::with_capacity(PAGE_BYTES),
            groups: 0,
            group_at: 0,
            postings_of_group: 0,
            postings_of_term: 0,
            term: None,
            number: 0,
            starts: Vec::new(),
            rare: Vec::new(),
        }
    }

    /// Adds one posting: the number that it is ordered by, and what comes with it.
    pub(super) fn push(&mut self, term: Term, posting: &[u64]) {
        let is_new_term = self.term != Some(term);
        if is_new_term {
            self.postings_of_term = 0;
            if term.is_rare() {
                self.rare.push(filter_hash(term));
            }
        }
        let room = GROUP_HEADER_BYTES + POSTING_BYTES_MAX;
        let is_full = self.page.is_empty() || self.page.len() + room > PAGE_END || self.postings_of_group == u16::MAX;
        if is_full {
            self.close_page();
            self.open_page(term, posting[0]);
        }
        if is_full || is_new_term {
            self.open_group(term);
        }
        write_leb(&mut self.page, posting[0] - self.number);
        self.number = posting[0];
        posting[1..].iter().for_each(|with| write_leb(&mut self.page, *with));
        self.postings_of_group += 1;
        self.postings_of_term += 1;
        let count_at = self.group_at + GROUP_HEADER_BYTES - 2;
        self.page[count_at..count_at + 2].copy_from_slice(&self.postings_of_group.to_be_bytes());
    }

    /// The whole file.
    pub(super) fn finish(mut self, cover: Cover) -> Vec<u8> {
        self.close_page();
        let mut bytes = self.pages;
        let tail_at = bytes.len();
        for start in &self.starts {
            bytes.push(start.term.kind);
            bytes.extend_from_slice(&start.term.whose.to_be_bytes());
            bytes.extend_from_slice(&start.number.to_be_bytes());
            bytes.extend_from_slice(&start.preceding.to_be_bytes());
        }
        let filter = filter_of(&self.rare);
        filter.iter().for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        let footer = Footer {
            cover,
            pages: self.starts.len() as u32,
            filter_words: filter.len() as u32,
            tail_checksum: crc32c::crc32c(&bytes[tail_at..]),
        };
        bytes.extend_from_slice(&footer.to_bytes());
        bytes
    }

    fn open_page(&mut self, term: Term, number: u64) {
        self.starts.push(PageStart { term, number, preceding: self.postings_of_term });
        self.page.extend_from_slice(&[0; 2]);
        self.page.extend_from_slice(&self.postings_of_term.to_be_bytes());
        self.groups = 0;
    }

    fn open_group(&mut self, term: Term) {
        self.group_at = self.page.len();
        self.page.push(term.kind);
        self.page.extend_from_slice(&term.whose.to_be_bytes());
        self.page.extend_from_slice(&[0; 2]);
        self.groups += 1;
        self.page[..2].copy_from_slice(&self.groups.to_be_bytes());
        (self.term, self.number, self.postings_of_group) = (Some(term), 0, 0);
    }

    fn close_page(&mut self) {
        if self.page.is_empty() {
            return;
        }
        self.page.resize(PAGE_END, 0);
        let checksum = page_checksum(self.first, self.starts.len() as u64 - 1, &self.page);
        self.page.extend_from_slice(&checksum.to_be_bytes());
        self.pages.append(&mut self.page);
    }
}

/// The end of a run's file.
struct Footer {
    cover: Cover,
    pages: u32,
    filter_words: u32,
    tail_checksum: u32,
}

impl Footer {
    fn to_bytes(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        bytes.extend_from_slice(&self.cover.first.to_be_bytes());
        bytes.extend_from_slice(&self.cover.last.to_be_bytes());
        bytes.extend_from_slice(&self.cover.latest_ms.to_be_bytes());
        bytes.extend_from_slice(&self.pages.to_be_bytes());
        bytes.extend_from_slice(&self.filter_words.to_be_bytes());
        bytes.extend_from_slice(&self.tail_checksum.to_be_bytes());
        bytes.resize(FOOTER_BYTES - MAGIC.len() - 1 - 4, 0);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(FORMAT);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
        bytes.try_into().expect("a footer has 64 bytes")
    }

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, RunError> {
        let (covered, checksum) = bytes.split_last_chunk::<4>().ok_or(RunError::Damaged)?;
        if bytes.len() != FOOTER_BYTES || crc32c::crc32c(covered).to_be_bytes() != *checksum {
            return Err(RunError::Damaged);
        }
        let (rest, [magic @ .., format]) = covered.split_last_chunk::<8>().ok_or(RunError::Damaged)?;
        if *magic != MAGIC {
            return Err(RunError::Damaged);
        }
        if *format < FORMAT {
            return Err(RunError::Damaged);
        }
        if *format > FORMAT {
            return Err(RunError::Store(StoreError::NewerFormat {
                folder: name.into(),
                found: *format,
                known: FORMAT,
            }));
        }
        if *format < FORMAT {
            return Err(RunError::Damaged);
        }
        let word = |at: usize| u64::from_be_bytes(rest[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        Ok(Self {
            cover: Cover { first: word(0), last: word(8), latest_ms: word(16) as i64 },
            pages: half(24),
            filter_words: half(28),
            tail_checksum: half(32),
        })
    }
}

/// A run that can be read: its directory and filter are in memory, its pages on the store.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) cover: Cover,
    name: String,
    starts: Vec<PageStart>,
    filter: Vec<u64>,
}

impl Run {
    /// Reads the footer, the directory and the filter.
    pub(super) fn open(store: &dyn Store, name: &str, bytes: u64) -> Result<Self, RunError> {
        let footer_at = bytes.checked_sub(FOOTER_BYTES as u64).ok_or(RunError::Damaged)?;
        let footer = store.file_part(name, footer_at, FOOTER_BYTES)?.ok_or(RunError::Damaged)?;
        let footer = Footer::parse(name, &footer)?;
        let tail_at = u64::from(footer.pages) * PAGE_BYTES as u64;
        let tail_bytes = footer.pages as usize * START_BYTES + footer.filter_words as usize * 8;
        if Cover::of_file_name(name) != Some((footer.cover.first, footer.cover.last))
            || tail_at + tail_bytes as u64 != footer_at
        {
            return Err(RunError::Damaged);
        }
        let tail = store.file_part(name, tail_at, tail_bytes)?.ok_or(RunError::Damaged)?;
        if tail.len() != tail_bytes || crc32c::crc32c(&tail) != footer.tail_checksum {
            return Err(RunError::Damaged);
        }
        let (starts, filter) = tail.split_at(footer.pages as usize * START_BYTES);
        let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        let start = |bytes: &[u8]| PageStart {
            term: Term { kind: bytes[0], whose: word(&bytes[1..9]) },
            number: word(&bytes[9..17]),
            preceding: u32::from_be_bytes(bytes[17..21].try_into().expect("four bytes")),
        };
        Ok(Self {
            cover: footer.cover,
            name: name.to_owned(),
            starts: starts.chunks_exact(START_BYTES).map(start).collect(),
            filter: filter.chunks_exact(8).map(word).collect(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The pages that may hold postings of a term.
    pub(super) fn span(&self, term: Term) -> Range<usize> {
        if term.is_rare() && !filter_may_hold(&self.filter, filter_hash(term)) {
            return 0..0;
        }
        let begins = self.starts.partition_point(|start| start.term < term);
        let ends = self.starts.partition_point(|start| start.term <= term);
        begins.saturating_sub(1)..ends
    }

    /// The page of a span that holds the first posting of the term whose number is not below `number`, or the one before it.
    pub(super) fn page_of(&self, span: &Range<usize>, term: Term, number: u64) -> usize {
        let starts = &self.starts[span.clone()];
        let after = starts.partition_point(|start| start.term < term || (start.term == term && start.number < number));
        span.start + after.saturating_sub(1)
    }

    /// The page of a span that holds the posting of the term at a place, counted from 0.
    pub(super) fn page_at(&self, span: &Range<usize>, term: Term, index: u64) -> usize {
        let begins_by = |start: &PageStart| start.term < term || u64::from(start.preceding) <= index;
        span.start + self.starts[span.clone()].partition_point(begins_by).saturating_sub(1)
    }

    /// How many postings of a term stand in pages before this one.
    pub(super) fn preceding(&self, page: usize, term: Term) -> u64 {
        let start = &self.starts[page];
        if start.term == term { u64::from(start.preceding) } else { 0 }
    }

    pub(super) fn pages(&self) -> usize {
        self.starts.len()
    }

    /// The groups of a page, in order: each a term and its postings, one after the other.
    pub(super) fn groups(&self, store: &dyn Store, page: usize) -> Result<Vec<(Term, Vec<u64>)>, RunError> {
        let bytes = self.read(store, page..page + 1)?;
        let mut groups = self.groups_of(page, &bytes)?;
        let mut all = Vec::with_capacity(usize::from(groups.left));
        while groups.left > 0 {
            let mut postings = Vec::new();
            let term = groups.next(|_| Some(&mut postings)).ok_or(RunError::Damaged)?;
            all.push((term, postings));
        }
        Ok(all)
    }

    /// The postings of one term in some pages, one after the other.
    pub(super) fn postings(&self, store: &dyn Store, pages: Range<usize>, term: Term) -> Result<Vec<u64>, RunError> {
        let bytes = self.read(store, pages.clone())?;
        let mut postings = Vec::new();
        for (page, bytes) in pages.zip(bytes.chunks_exact(PAGE_BYTES)) {
            let mut groups = self.groups_of(page, bytes)?;
            while groups.left > 0 {
                let found = groups.next(|found| (found == term).then_some(&mut postings)).ok_or(RunError::Damaged)?;
                if found >= term {
                    break;
                }
            }
        }
        Ok(postings)
    }

    /// The bytes of some pages, at once: a file is opened for each part of it that is read.
    fn read(&self, store: &dyn Store, pages: Range<usize>) -> Result<Vec<u8>, RunError> {
        let length = pages.len() * PAGE_BYTES;
        let bytes = may_wait(|| store.file_part(&self.name, (pages.start * PAGE_BYTES) as u64, length))?;
        bytes.filter(|bytes| bytes.len() == length).ok_or(RunError::Damaged)
    }

    /// The groups of a page whose bytes are as they were written.
    fn groups_of<'a>(&self, page: usize, bytes: &'a [u8]) -> Result<Groups<'a>, RunError> {
        let (covered, checksum) = bytes.split_last_chunk::<4>().ok_or(RunError::Damaged)?;
        if page_checksum(self.cover.first, page as u64, covered).to_be_bytes() != *checksum {
            return Err(RunError::Damaged);
        }
        let (left, rest) = covered.split_first_chunk::<2>().ok_or(RunError::Damaged)?;
        Ok(Groups { rest: &rest[PAGE_HEADER_BYTES - 2..], left: u16::from_be_bytes(*left) })
    }
}

/// Reads the groups of a page.
struct Groups<'a> {
    rest: &'a [u8],
    left: u16,
}

impl Groups<'_> {
    /// Reads one group, into the list that `wanted` gives for its term, or past it. None when it cannot be read.
    fn next<'v>(&mut self, wanted: impl FnOnce(Term) -> Option<&'v mut Vec<u64>>) -> Option<Term> {
        let (header, rest) = self.rest.split_first_chunk::<GROUP_HEADER_BYTES>()?;
        self.rest = rest;
        self.left -= 1;
        let term = Term { kind: header[0], whose: u64::from_be_bytes(header[1..9].try_into().ok()?) };
        let count = u16::from_be_bytes([header[9], header[10]]);
        let width = term.width();
        let mut into = wanted(term);
        if let Some(postings) = &mut into {
            postings.reserve(usize::from(count) * width);
        }
        let mut number = 0_u64;
        for _ in 0..count {
            number = number.checked_add(self.leb()?)?;
            if let Some(postings) = &mut into {
                postings.push(number);
            }
            for _ in 1..width {
                let with = self.leb()?;
                if let Some(postings) = &mut into {
                    postings.push(with);
                }
            }
        }
        Some(term)
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

fn page_checksum(first: u64, page: u64, covered: &[u8]) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(&first.to_be_bytes()), &page.to_be_bytes());
    crc32c::crc32c_append(place, covered)
}

fn filter_hash(term: Term) -> u64 {
    term.whose.wrapping_add(u64::from(term.kind)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn filter_of(hashes: &[u64]) -> Vec<u64> {
    let blocks = (hashes.len() * FILTER_BITS_PER_TERM).div_ceil(FILTER_BLOCK_WORDS * 64);
    let mut filter = vec![0; blocks * FILTER_BLOCK_WORDS];
    for hash in hashes {
        for (word, bit) in probes(*hash, blocks) {
            filter[word] |= bit;
        }
    }
    filter
}

fn filter_may_hold(filter: &[u64], hash: u64) -> bool {
    let blocks = filter.len() / FILTER_BLOCK_WORDS;
    blocks > 0 && probes(hash, blocks).all(|(word, bit)| filter[word] & bit != 0)
}

/// The words and bits of a hash, all in one block.
fn probes(hash: u64, blocks: usize) -> impl Iterator<Item = (usize, u64)> {
    let block = ((u128::from(hash) * blocks as u128) >> 64) as usize;
    (0..FILTER_PROBES).map(move |probe| {
        let bits = hash.rotate_left(9 * probe + 7) & 511;
        (block * FILTER_BLOCK_WORDS + (bits / 64) as usize, 1 << (bits % 64))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::MemoryStore;

    fn run_of(postings: &[(Term, Vec<u64>)]) -> (MemoryStore, Run) {
        let cover = Cover { first: 5, last: 900, latest_ms: -3 };
        let mut builder = Builder::new(cover.first);
        postings.iter().for_each(|(term, posting)| builder.push(*term, posting));
        let bytes = builder.finish(cover);
        let store = MemoryStore::new();
        store.put_file(&cover.file_name(), &bytes).unwrap();
        let run = Run::open(&store, &cover.file_name(), bytes.len() as u64).unwrap();
        assert_eq!(run.cover, cover);
        (store, run)
    }

    /// Terms with lists from one posting to several pages, sorted.
    fn lists() -> impl Strategy<Value = Vec<(Term, Vec<u64>)>> {
        let length = prop_oneof![1..4_usize, 1..4_usize, 1..4_usize, 1_000..9_000_usize];
        let list = (prop_oneof![Just(0_u8), Just(3), Just(8)], 0..40_u64, length, any::<u32>());
        proptest::collection::vec(list, 1..30).prop_map(|lists| {
            let mut postings = Vec::new();
            for (kind, whose, length, seed) in lists {
                let term = Term { kind, whose };
                let mut number = u64::from(seed) << 8;
                for step in 0..length as u64 {
                    number += (step * u64::from(seed)) % 300;
                    let mut posting = vec![number];
                    posting.resize(term.width(), zigzag(-(step as i64)));
                    postings.push((term, posting));
                }
            }
            postings.sort();
            postings
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_posting_comes_back_in_order(postings in lists()) {
            let (store, run) = run_of(&postings);
            let mut read = Vec::new();
            for page in 0..run.pages() {
                for (term, numbers) in run.groups(&store, page).unwrap() {
                    read.extend(numbers.chunks(term.width()).map(|posting| (term, posting.to_vec())));
                }
            }
            prop_assert_eq!(&read, &postings);
            for kind in [0, 3, 8] {
                for whose in 0..42 {
                    let term = Term { kind, whose };
                    let mut found = Vec::new();
                    for page in run.span(term) {
                        let postings = run.postings(&store, page..page + 1, term).unwrap();
                        if !postings.is_empty() {
                            prop_assert_eq!(run.preceding(page, term), (found.len() / term.width()) as u64);
                        }
                        found.extend(postings);
                    }
                    let expected: Vec<u64> =
                        postings.iter().filter(|(of, _)| *of == term).flat_map(|(_, posting)| posting.clone()).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let postings: Vec<_> = (0..3_000_u64).map(|n| (Term { kind: 3, whose: n / 2 }, vec![n])).collect();
        let (store, run) = run_of(&postings);
        let name = run.name().to_owned();
        let bytes = store.file_part(&name, 0, usize::MAX).unwrap().unwrap();
        for at in (0..bytes.len()).step_by(61) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            store.put_file(&name, &flipped).unwrap();
            let read = Run::open(&store, &name, flipped.len() as u64)
                .and_then(|run| (0..run.pages()).try_for_each(|page| run.groups(&store, page).map(drop)));
            assert!(matches!(read, Err(RunError::Damaged)), "byte {at}");
        }
    }

    #[test]
    fn the_filter_holds_what_was_put_in_and_little_else() {
        let hashes: Vec<u64> = (0..10_000).map(|whose| filter_hash(Term { kind: 4, whose })).collect();
        let filter = filter_of(&hashes);
        assert!(hashes.iter().all(|hash| filter_may_hold(&filter, *hash)));
        let others = (10_000..110_000).map(|whose| filter_hash(Term { kind: 4, whose }));
        let wrong = others.filter(|hash| filter_may_hold(&filter, *hash)).count();
        assert!(wrong < 3_000, "{wrong} of 100,000 look-ups would read a page in vain");
        assert!(!filter_may_hold(&[], 7));
    }

    /// Written down so that a change of the format does not pass unnoticed: runs of other builds are read as they are.
    #[test]
    fn the_bytes_of_format_3_stay_as_they_are() {
        let mut builder = Builder::new(5);
        for number in 0..3_000 {
            builder.push(Term { kind: 0, whose: 7 }, &[number * number]);
        }
        builder.push(Term { kind: 3, whose: u64::MAX }, &[9]);
        builder.push(Term { kind: 8, whose: 1 << 32 }, &[1 << 40, zigzag(-1), zigzag(i64::MAX), zigzag(i64::MIN)]);
        builder.push(Term { kind: 18, whose: 1 << 32 }, &[1 << 40, 29_000_001, 1_000]);
        let bytes = builder.finish(Cover { first: 5, last: 3_004, latest_ms: -3 });
        assert_eq!((bytes.len(), crc32c::crc32c(&bytes)), (8_362, 1_489_370_000));
    }

    #[test]
    fn a_newer_format_is_named_and_an_earlier_one_is_written_again() {
        let cover = Cover { first: 1, last: 2, latest_ms: 0 };
        let of_format = |format: u8| {
            let mut bytes = Builder::new(1).finish(cover);
            let format_at = bytes.len() - 5;
            bytes[format_at] = format;
            let covered = bytes.len() - FOOTER_BYTES..bytes.len() - 4;
            let checksum = crc32c::crc32c(&bytes[covered]);
            let end = bytes.len() - 4;
            bytes[end..].copy_from_slice(&checksum.to_be_bytes());
            let store = MemoryStore::new();
            store.put_file(&cover.file_name(), &bytes).unwrap();
            Run::open(&store, &cover.file_name(), bytes.len() as u64)
        };
        assert!(of_format(FORMAT).is_ok());
        assert!(matches!(of_format(FORMAT - 1), Err(RunError::Damaged)));
        let refused = of_format(FORMAT + 1).unwrap_err();
        assert!(matches!(refused, RunError::Store(StoreError::NewerFormat { found: 4, known: 3, .. })), "{refused:?}");
    }
}
