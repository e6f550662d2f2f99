//! Check of the runs against the journal, for `verify`, which reads the whole journal anyway.

use std::collections::VecDeque;
use std::io::{self, Write};

use ledger::{GroupNumber, IdMap, Record};

use super::key::{Balances, IndexKey, mix};
use super::memtable::each_occurrence;
use super::page_cache::{PageCache, RunFiles};
use super::run::{Builder, Cover, Run, RunError};
use store::{Part, StoreError};

/// Compares every run with the Records, which it gets one after the other from the first. A run
/// must have the occurrences of its Records and no others, and the bytes that a writer makes of
/// them. Hashes of personal data are taken as they are: they need keys that may be gone. However
/// large a run is, little of it is in memory.
pub struct RunCheck<'a> {
    store: &'a Part,
    cache: PageCache,
    /// The runs not yet compared, in order: first and last Record, name, length.
    files: VecDeque<(u64, u64, String, u64)>,
    counted: Occurrences,
    latest_ms: i64,
    balances: IdMap<GroupNumber, Balances>,
    whole: u64,
    unusable: u64,
}

/// A readable run that differs from the journal.
#[derive(Debug)]
pub struct RunDiffers {
    /// The name of its file.
    pub name: String,
}

/// Pages of directories and filters that a check keeps.
const PAGES_MAX: usize = 64;

impl<'a> RunCheck<'a> {
    /// Lists the runs.
    pub fn new(store: &'a Part) -> Result<Self, StoreError> {
        let files = store.files()?.into_iter().filter_map(|(name, bytes)| {
            let (first, last) = Cover::of_file_name(&name)?;
            Some((first, last, name, bytes))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|(first, last, ..)| (*first, u64::MAX - last));
        let mut covered = 0;
        // Merged runs that are not removed yet are not used.
        files.retain(|(_, last, ..)| {
            let is_used = *last > covered;
            covered = covered.max(*last);
            is_used
        });
        let (counted, balances) = Default::default();
        let cache = PageCache::new(PAGES_MAX);
        let files = files.into();
        Ok(Self { store, cache, files, counted, latest_ms: i64::MIN, balances, whole: 0, unusable: 0 })
    }

    /// Takes the next Record. If a run ends with it and differs from the journal, names the run.
    pub fn count(&mut self, sequence: u64, record: &Record) -> Result<Option<RunDiffers>, StoreError> {
        let counted = &mut self.counted;
        each_occurrence(sequence, record, &mut self.balances, |key, occurrence| counted.add(key, occurrence));
        self.latest_ms = self.latest_ms.max(record.effective_at.0);
        match self.files.front() {
            Some((first, last, ..)) if *first <= sequence && sequence < *last => Ok(None),
            Some((_, last, ..)) if *last == sequence => self.compare(),
            _ => {
                (self.counted, self.latest_ms) = (Occurrences::default(), i64::MIN);
                Ok(None)
            }
        }
    }

    /// Number of runs that were whole; and of those that are damaged or cover Records that are not
    /// there.
    pub fn finish(self) -> (u64, u64) {
        (self.whole, self.unusable + self.files.len() as u64)
    }

    fn compare(&mut self) -> Result<Option<RunDiffers>, StoreError> {
        let counted = std::mem::take(&mut self.counted);
        let latest_ms = std::mem::replace(&mut self.latest_ms, i64::MIN);
        let Some((first, last, name, length)) = self.files.pop_front() else { return Ok(None) };
        match self.says_the_same(&name, length, &counted, Cover { first, last, latest_ms }) {
            Ok(true) => self.whole += 1,
            Ok(false) => return Ok(Some(RunDiffers { name })),
            Err(RunError::Damaged) => self.unusable += 1,
            Err(RunError::Store(error)) => return Err(error),
        }
        Ok(None)
    }

    /// Reads a run, writes its content again, and compares the bytes.
    fn says_the_same(&self, name: &str, length: u64, counted: &Occurrences, cover: Cover) -> Result<bool, RunError> {
        let files = RunFiles { store: self.store, cache: &self.cache };
        let run = Run::open(files, name, length)?;
        let written = SameAs { store: self.store, name, at: 0, is_same: true };
        let (mut found, mut builder, mut is_in_order) =
            (Occurrences::default(), Builder::new(run.cover.first, written), true);
        let (mut before, failed) = ((IndexKey::least(), 0), |_| RunError::Damaged);
        for page in 0..run.pages() {
            for (key, occurrences) in run.groups(files, page)? {
                for occurrence in occurrences.chunks(key.width()) {
                    if !key.is_sealed() {
                        found.add(key, occurrence);
                    }
                    is_in_order &= before <= (key, occurrence[0]);
                    before = (key, occurrence[0]);
                    if is_in_order {
                        builder.push(key, occurrence).map_err(failed)?;
                    }
                }
            }
        }
        let same = builder.finish(cover).map_err(failed)?;
        if is_in_order && found == *counted && same.is_same && same.at == length {
            return Ok(true);
        }
        run.check_pages(files).map(|()| false)
    }
}

/// Digest of a multiset of occurrences: their count, and two sums of the hashes of each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Occurrences {
    count: u64,
    sums: [u64; 2],
}

impl Occurrences {
    fn add(&mut self, key: IndexKey, occurrence: &[u64]) {
        self.count += 1;
        for (seed, sum) in (1..).zip(&mut self.sums) {
            let of_key = mix(mix(seed ^ u64::from(key.kind) << 32) ^ key.whose);
            *sum = sum.wrapping_add(occurrence.iter().fold(of_key, |mixed, word| mix(mixed ^ word)));
        }
    }
}

/// Writer that compares the written bytes with those of a file.
struct SameAs<'a> {
    store: &'a Part,
    name: &'a str,
    at: u64,
    is_same: bool,
}

impl Write for SameAs<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = self.store.file_part(self.name, self.at, bytes.len()).map_err(io::Error::other)?;
        self.is_same &= part.as_deref() == Some(bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
