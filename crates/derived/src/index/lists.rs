//! Reader of one list, whose numbers lie partly in sorted runs and partly in memory.
//!
//! Counts and pages are found by rank, so neither depends on the length of a list. Removals from a
//! list are a list of their own, which is subtracted.

use std::ops::Range;
use std::sync::Arc;

use super::key::IndexKey;
use super::page_cache::RunFiles;
use super::run::{Run, RunError};
use store::StoreError;

/// Why a list cannot be read.
#[derive(Debug)]
pub(super) enum ListTrouble {
    /// This run is damaged, or has just been merged into another.
    Run(Arc<Run>),
    /// The store failed.
    Store(StoreError),
}

/// One number of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedNumber {
    /// A sequence or an ordinal.
    pub number: u64,
    /// Its place among equal numbers of the list, from 0.
    pub index: u32,
}

/// A range of a list with up to this many numbers is read at once; a longer one is halved.
const READ_AT_ONCE: u64 = 1_024;
/// A list over up to this many pages of a run is read whole.
const PAGES_OF_SHORT: usize = 2;
/// Pages of a longer list that are read at once.
const PAGES_AT_ONCE: usize = 16;

/// The part of one list that lies in one place.
pub(super) enum Source {
    /// Occurrences, one after the other, in order.
    Memory { key: IndexKey, occurrences: Vec<u64> },
    /// Pages of a run; caches the last page read.
    Paged { key: IndexKey, run: Arc<Run>, span: Range<usize>, length: u64, read: Option<(usize, Vec<u64>)> },
}

impl Source {
    pub(super) fn of_run(files: RunFiles<'_>, run: &Arc<Run>, key: IndexKey) -> Result<Option<Self>, ListTrouble> {
        let span = run.span(files, key).map_err(|error| trouble(run, error))?;
        if span.is_empty() {
            return Ok(None);
        }
        let occurrences = |pages| run.occurrences(files, pages, key).map_err(|error| trouble(run, error));
        if span.len() <= PAGES_OF_SHORT {
            let all = occurrences(span)?;
            return Ok((!all.is_empty()).then_some(Self::Memory { key, occurrences: all }));
        }
        let last = span.end - 1;
        let preceding = run.preceding(files, last, key).map_err(|error| trouble(run, error))?;
        let length = preceding + (occurrences(last..span.end)?.len() / key.width()) as u64;
        Ok(Some(Self::Paged { key, run: Arc::clone(run), span, length, read: None }))
    }

    fn length(&self) -> u64 {
        match self {
            Self::Memory { key, occurrences } => (occurrences.len() / key.width()) as u64,
            Self::Paged { length, .. } => *length,
        }
    }

    /// Count of the numbers below `number`.
    fn rank(&mut self, files: RunFiles<'_>, number: u64) -> Result<u64, ListTrouble> {
        match self {
            Self::Memory { key, occurrences } => Ok(below(occurrences, key.width(), number) as u64),
            Self::Paged { key, run, span, read, .. } => {
                let page = run.page_of(files, span, *key, number).map_err(|error| trouble(run, error))?;
                let occurrences = page_of(files, run, page, *key, read)?;
                let below = below(occurrences, key.width(), number) as u64;
                Ok(run.preceding(files, page, *key).map_err(|error| trouble(run, error))? + below)
            }
        }
    }

    /// The number at a place of the list, counted from 0.
    fn nth(&mut self, files: RunFiles<'_>, index: u64) -> Result<Option<u64>, ListTrouble> {
        let at = |occurrences: &[u64], width: usize, index: u64| occurrences.get(index as usize * width).copied();
        match self {
            Self::Memory { key, occurrences } => Ok(at(occurrences, key.width(), index)),
            Self::Paged { key, run, span, read, .. } => {
                let page = run.page_at(files, span, *key, index).map_err(|error| trouble(run, error))?;
                let preceding = run.preceding(files, page, *key).map_err(|error| trouble(run, error))?;
                Ok(at(page_of(files, run, page, *key, read)?, key.width(), index - preceding))
            }
        }
    }

    /// Adds the numbers from `range` to `into`, in order.
    fn collect(&mut self, files: RunFiles<'_>, range: Range<u64>, into: &mut Vec<u64>) -> Result<(), ListTrouble> {
        self.each(files, range, |occurrences, width| into.extend(occurrences.iter().step_by(width)))
    }

    /// Calls `take` with the occurrences whose numbers are in `range`, in order and some at a time,
    /// and with the width of each.
    fn each(
        &mut self,
        files: RunFiles<'_>,
        range: Range<u64>,
        mut take: impl FnMut(&[u64], usize),
    ) -> Result<(), ListTrouble> {
        let mut add = |occurrences: &[u64], width: usize| {
            let (from, to) = (below(occurrences, width, range.start), below(occurrences, width, range.end));
            take(&occurrences[from * width..to.max(from) * width], width);
        };
        match self {
            Self::Memory { key, occurrences } => add(occurrences, key.width()),
            Self::Paged { key, run, span, .. } => {
                let page_of = |number| run.page_of(files, span, *key, number).map_err(|error| trouble(run, error));
                let (first, last) = (page_of(range.start)?, page_of(range.end)?);
                for page in (first..=last).step_by(PAGES_AT_ONCE) {
                    let pages = page..(page + PAGES_AT_ONCE).min(last + 1);
                    let occurrences = run.occurrences(files, pages, *key).map_err(|error| trouble(run, error))?;
                    add(&occurrences, key.width());
                }
            }
        }
        Ok(())
    }

    /// The last occurrence whose number is below `number`.
    fn last_below(&mut self, files: RunFiles<'_>, number: u64) -> Result<Option<Vec<u64>>, ListTrouble> {
        let last = |occurrences: &[u64], width: usize| {
            let at = below(occurrences, width, number).checked_sub(1)?;
            Some(occurrences[at * width..(at + 1) * width].to_vec())
        };
        match self {
            Self::Memory { key, occurrences } => Ok(last(occurrences, key.width())),
            Self::Paged { key, run, span, read, .. } => {
                let page = run.page_of(files, span, *key, number).map_err(|error| trouble(run, error))?;
                Ok(last(page_of(files, run, page, *key, read)?, key.width()))
            }
        }
    }
}

fn below(occurrences: &[u64], width: usize, number: u64) -> usize {
    let (mut low, mut high) = (0, occurrences.len() / width);
    while low < high {
        let middle = low.midpoint(high);
        if occurrences[middle * width] < number {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn page_of<'a>(
    files: RunFiles<'_>,
    run: &Arc<Run>,
    page: usize,
    key: IndexKey,
    read: &'a mut Option<(usize, Vec<u64>)>,
) -> Result<&'a [u64], ListTrouble> {
    if read.as_ref().is_none_or(|(known, _)| *known != page) {
        *read = Some((page, run.occurrences(files, page..page + 1, key).map_err(|error| trouble(run, error))?));
    }
    Ok(read.as_ref().map_or(&[], |(_, occurrences)| occurrences))
}

fn trouble(run: &Arc<Run>, error: RunError) -> ListTrouble {
    match error {
        RunError::Damaged => ListTrouble::Run(Arc::clone(run)),
        RunError::Store(error) => ListTrouble::Store(error),
    }
}

/// Part of a list: the numbers in a range, highest first, from one of them on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The numbers of the list that count.
    pub range: Range<u64>,
    /// How many of the highest are passed over.
    pub skip: u64,
    /// How many there are at most.
    pub count: usize,
}

impl Slice {
    /// The numbers in a range, `count` of them after `skip`.
    pub fn new(range: Range<u64>, skip: u64, count: usize) -> Self {
        Self { range, skip, count }
    }

    /// Of the whole list, `count` numbers after `skip`.
    pub fn of_all(skip: u64, count: usize) -> Self {
        Self::new(0..u64::MAX, skip, count)
    }
}

/// Several lists as one: those added, less those subtracted.
pub(super) struct Lists<'a> {
    pub(super) files: RunFiles<'a>,
    pub(super) plus: Vec<Source>,
    pub(super) minus: Vec<Source>,
}

impl Lists<'_> {
    /// How many numbers there are in `range`.
    pub(super) fn count(&mut self, range: &Range<u64>) -> Result<u64, ListTrouble> {
        let plus = count(self.files, &mut self.plus, range)?;
        Ok(plus.saturating_sub(count(self.files, &mut self.minus, range)?))
    }

    /// How many numbers there are in `range`, and a page of them, highest first.
    pub(super) fn page(&mut self, slice: &Slice) -> Result<(u64, Vec<ListedNumber>), ListTrouble> {
        let end = slice.range.end.min(self.end()?);
        let range = slice.range.start.min(end)..end;
        let total = self.count(&range)?;
        let mut page = ListPage { skip: slice.skip, room: slice.count, items: Vec::new() };
        self.descend(range, &mut page)?;
        Ok((total, page.items))
    }

    /// The numbers in `range`, lowest first.
    pub(super) fn numbers(&mut self, range: Range<u64>) -> Result<Vec<u64>, ListTrouble> {
        let mut numbers = Vec::new();
        for source in &mut self.plus {
            source.collect(self.files, range.clone(), &mut numbers)?;
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The occurrences with numbers in `range` of one list that was added, one after the other.
    pub(super) fn occurrences(&mut self, range: Range<u64>) -> Result<Vec<u64>, ListTrouble> {
        let mut all = Vec::new();
        for source in &mut self.plus {
            source.each(self.files, range.clone(), |occurrences, _| all.extend_from_slice(occurrences))?;
        }
        Ok(all)
    }

    /// The number at a place, counted from 0, of one list that was added and whose numbers rise
    /// from place to place.
    pub(super) fn nth(&mut self, mut index: u64) -> Result<Option<u64>, ListTrouble> {
        for source in &mut self.plus {
            if index < source.length() {
                return source.nth(self.files, index);
            }
            index -= source.length();
        }
        Ok(None)
    }

    /// The last occurrence whose number is below `number`, of the lists added.
    pub(super) fn last_below(&mut self, number: u64) -> Result<Option<Vec<u64>>, ListTrouble> {
        let mut last: Option<Vec<u64>> = None;
        for source in &mut self.plus {
            let found = source.last_below(self.files, number)?;
            last = last.into_iter().chain(found).max_by_key(|occurrence| occurrence[0]);
        }
        Ok(last)
    }

    /// One past the highest number.
    fn end(&mut self) -> Result<u64, ListTrouble> {
        Ok(self.last_below(u64::MAX)?.map_or(0, |occurrence| occurrence[0] + 1))
    }

    /// Fills a page from the upper end of a range. Subtraction may leave long stretches empty:
    /// their counts pass over them. At most [`READ_AT_ONCE`] numbers are in memory, unless one
    /// number is listed more often.
    fn descend(&mut self, range: Range<u64>, page: &mut ListPage) -> Result<(), ListTrouble> {
        let here = self.count(&range)?;
        if here <= page.skip || page.room == 0 {
            page.skip -= here.min(page.skip);
            return Ok(());
        }
        let added = count(self.files, &mut self.plus, &range)?;
        if added > READ_AT_ONCE && range.end - range.start > 1 {
            let middle = range.start.midpoint(range.end);
            self.descend(middle..range.end, page)?;
            return self.descend(range.start..middle, page);
        }
        let (mut plus, mut minus) = (Vec::new(), Vec::new());
        for source in &mut self.plus {
            source.collect(self.files, range.clone(), &mut plus)?;
        }
        for source in &mut self.minus {
            source.collect(self.files, range.clone(), &mut minus)?;
        }
        plus.sort_unstable();
        minus.sort_unstable();
        page.fill(&plus, &minus);
        Ok(())
    }
}

fn count(files: RunFiles<'_>, sources: &mut [Source], range: &Range<u64>) -> Result<u64, ListTrouble> {
    let mut total = 0;
    for source in sources {
        let above = if range.end == u64::MAX { source.length() } else { source.rank(files, range.end)? };
        let below = if range.start == 0 { 0 } else { source.rank(files, range.start)? };
        total += above.saturating_sub(below);
    }
    Ok(total)
}

struct ListPage {
    skip: u64,
    room: usize,
    items: Vec<ListedNumber>,
}

impl ListPage {
    /// Adds the numbers of `plus` that are not in `minus`, from the upper end. Both are in order.
    fn fill(&mut self, plus: &[u64], minus: &[u64]) {
        let mut left: Vec<ListedNumber> = Vec::with_capacity(plus.len());
        let mut minus = minus.iter().peekable();
        for number in plus {
            while minus.next_if(|removed| *removed < number).is_some() {}
            if minus.next_if_eq(&number).is_none() {
                let index = left.last().filter(|last| last.number == *number).map_or(0, |last| last.index + 1);
                left.push(ListedNumber { number: *number, index });
            }
        }
        for listed in left.into_iter().rev() {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.room > 0 {
                self.room -= 1;
                self.items.push(listed);
            }
        }
    }
}
