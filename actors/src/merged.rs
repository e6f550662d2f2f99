//! Journals of several partitions, read as one: in the order of booking, and where two blocks were
//! booked at the same time, in the order of their partitions. The order of two Records never
//! changes, and Records of one partition keep theirs.

use std::collections::VecDeque;
use std::iter::Peekable;

use ledger::record::Record;
use ledger::time::Timestamp;

use crate::cut::{Cut, Position};
use crate::records::{LoadError, booked_records};
use crate::store::{Block, Part, Sequence, StoreError};

/// Records of a partition that are read at a time on the way back.
const READ_BACK_AT_ONCE: u64 = 64;

type Blocks<'a> = Peekable<Box<dyn Iterator<Item = Result<Block, StoreError>> + Send + 'a>>;

/// Blocks of several partitions: see [`blocks`].
pub struct MergedBlocks<'a>(Vec<Blocks<'a>>);

/// The blocks of some partitions, merged, from the ones on that hold these Records, one of each
/// partition. The first block of each may hold Records before it too. One block of each partition
/// is in memory. It ends after its first error.
pub fn blocks<'a>(parts: impl IntoIterator<Item = &'a Part>, from: &Cut) -> MergedBlocks<'a> {
    let of_part = |part: &'a Part| part.blocks(from.of(part.partition()).max(Sequence::FIRST)).peekable();
    MergedBlocks(parts.into_iter().map(of_part).collect())
}

impl Iterator for MergedBlocks<'_> {
    type Item = Result<Block, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut first: Option<(i64, usize)> = None;
        for (place, blocks) in self.0.iter_mut().enumerate() {
            // An error comes before every block.
            let Some(next) = blocks.peek() else { continue };
            let at = (next.as_ref().map_or(i64::MIN, |block| block.booked_at_ms), place);
            first = Some(first.map_or(at, |first| first.min(at)));
        }
        let found = self.0[first?.1].next()?;
        if found.is_err() {
            self.0.clear();
        }
        Some(found)
    }
}

/// One Record, where it stands, and when it was booked.
pub type BookedRecord = (Position, Timestamp, Record);

/// Records of several partitions, newest first: see [`read_back`].
pub struct ReadBack<'a>(Vec<PartReadBack<'a>>);

struct PartReadBack<'a> {
    part: &'a Part,
    /// Records that were read and not given yet, newest first.
    read: VecDeque<BookedRecord>,
    /// The Records before this one were not read yet.
    before: Sequence,
}

/// The Records of some partitions through a cut, merged, newest first. For a thread that may wait.
pub fn read_back<'a>(parts: impl IntoIterator<Item = &'a Part>, through: &Cut) -> ReadBack<'a> {
    let of_part =
        |part: &'a Part| PartReadBack { part, read: VecDeque::new(), before: through.of(part.partition()).plus(1) };
    ReadBack(parts.into_iter().map(of_part).collect())
}

impl ReadBack<'_> {
    /// The Records that were not given yet.
    pub fn rest(&self) -> Cut {
        self.0.iter().fold(Cut::default(), |rest, of| match of.read.front() {
            Some((at, ..)) => rest.with(*at),
            None => rest.with(Position { partition: of.part.partition(), sequence: Sequence(of.before.0 - 1) }),
        })
    }
}

impl PartReadBack<'_> {
    /// The newest Record that was not given yet.
    fn newest(&mut self) -> Result<Option<&BookedRecord>, LoadError> {
        if self.read.is_empty() && self.before > Sequence::FIRST {
            let first = Sequence(self.before.0.saturating_sub(READ_BACK_AT_ONCE).max(1));
            let sequences: Vec<_> = (first.0..self.before.0).rev().map(Sequence).collect();
            let partition = self.part.partition();
            let read = booked_records(self.part, &sequences)?.into_iter();
            self.read.extend(read.map(|(sequence, at, record)| (Position { partition, sequence }, at, record)));
            self.before = first;
        }
        Ok(self.read.front())
    }
}

impl Iterator for ReadBack<'_> {
    type Item = Result<BookedRecord, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut newest: Option<(Timestamp, usize)> = None;
        for (place, of) in self.0.iter_mut().enumerate() {
            match of.newest() {
                Ok(Some((_, at, _))) => newest = newest.max(Some((*at, place))),
                Ok(None) => {}
                Err(error) => {
                    self.0.clear();
                    return Some(Err(error));
                }
            }
        }
        self.0[newest?.1].read.pop_front().map(Ok)
    }
}
