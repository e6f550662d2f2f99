//! Journals of several partitions, read as one: in the order of booking, and where two blocks were
//! booked at the same time, in the order of their partitions. The order of two Records never
//! changes, and Records of one partition keep theirs.

use std::collections::VecDeque;
use std::iter::Peekable;

use ledger::{Record, Timestamp};

use crate::records::{Result, booked_records};
use store::{Block, Cut, Part, Position, Sequence, StoreError};

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

/// Items of several lists, merged, newest first: see [`newest_first`].
pub struct NewestFirst<T, F>(Vec<(VecDeque<(Timestamp, T)>, F)>);

/// Merges lists, one of each partition in their order, newest first; of those of one time, that of
/// the last partition comes first. Each list gives its next items, with their times; none at its
/// end. It is asked for more when all it gave was taken. It ends after its first error.
pub fn newest_first<T, F, I>(lists: impl IntoIterator<Item = F>) -> NewestFirst<T, F>
where
    F: FnMut() -> Result<I>,
    I: IntoIterator<Item = (Timestamp, T)>,
{
    NewestFirst(lists.into_iter().map(|list| (VecDeque::new(), list)).collect())
}

impl<T, F, I> Iterator for NewestFirst<T, F>
where
    F: FnMut() -> Result<I>,
    I: IntoIterator<Item = (Timestamp, T)>,
{
    type Item = Result<(Timestamp, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut newest: Option<(Timestamp, usize)> = None;
        for (place, (read, more)) in self.0.iter_mut().enumerate() {
            if read.is_empty() {
                match more() {
                    Ok(items) => read.extend(items),
                    Err(error) => {
                        self.0.clear();
                        return Some(Err(error));
                    }
                }
            }
            newest = newest.max(read.front().map(|(at, _)| (*at, place)));
        }
        self.0[newest?.1].0.pop_front().map(Ok)
    }
}

/// One Record, when it was booked, and where it stands.
pub type BookedRecord = (Timestamp, (Position, Record));

/// The Records of some partitions through a cut, merged, newest first. For a thread that may wait.
pub fn read_back<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    through: Cut,
) -> impl Iterator<Item = Result<BookedRecord>> {
    newest_first(parts.into_iter().map(move |part| {
        let partition = part.partition();
        // The Records before this one were not read yet.
        let mut before = through.of(partition).plus(1);
        move || {
            let first = Sequence(before.0.saturating_sub(READ_BACK_AT_ONCE).max(1));
            let sequences: Vec<_> = (first.0..before.0).rev().map(Sequence).collect();
            before = first;
            let read = booked_records(part, &sequences)?.into_iter();
            Ok(read.map(move |(sequence, at, record)| (at, (Position { partition, sequence }, record))))
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::LoadError;

    /// A list that gives two items at a time; an error in place of a time that is not known.
    fn list(name: char, times: &[Option<i64>]) -> impl FnMut() -> Result<Vec<(Timestamp, char)>> {
        let mut pages = times.chunks(2).map(<[_]>::to_vec).collect::<VecDeque<_>>();
        let item = move |at: Option<i64>| Ok((Timestamp(at.ok_or(LoadError::Missing(1))?), name));
        move || pages.pop_front().unwrap_or_default().into_iter().map(item).collect()
    }

    fn merged(lists: [&[Option<i64>]; 3]) -> Vec<Option<(i64, char)>> {
        let lists = lists.into_iter().zip(['a', 'b', 'c']).map(|(times, name)| list(name, times));
        newest_first(lists).map(|item| item.ok().map(|(at, name)| (at.0, name))).collect()
    }

    #[test]
    fn lists_are_merged_newest_first_and_end_after_an_error() {
        let found = merged([&[Some(9), Some(5), Some(2)], &[], &[Some(7), Some(5), Some(5), Some(1)]]);
        let expected = [(9, 'a'), (7, 'c'), (5, 'c'), (5, 'c'), (5, 'a'), (2, 'a'), (1, 'c')];
        assert_eq!(found, expected.map(Some));
        let found = merged([&[Some(9), Some(5), None], &[Some(3)], &[]]);
        assert_eq!(found, [Some((9, 'a')), Some((5, 'a')), None]);
    }
}
