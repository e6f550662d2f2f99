//! Index: sorted runs with Bloom filters, as in an LSM tree. It finds the Records about an object,
//! an owner or a key without a database key for each Record.
//!
//! The index maps an [`IndexKey`] to a list, a sorted multiset of numbers: the sequences of the
//! Records about a charge, the ordinals of the Records that opened a merchant's charges. The lists
//! of the last Records are in memory. When they cover [`IndexOptions::records_per_run`] Records, a
//! thread sorts and packs them into one immutable file, a run. Another thread merges
//! [`IndexOptions::runs_merged`] runs of about one size into one, at every size. So there are few
//! runs however long the journal is.
//!
//! A look-up asks each run's filter and reads a page of those runs that may hold the key.
//! Directories and filters are read through a cache of bounded size. A page of a list is found by
//! rank, so its cost does not grow with the list.
//!
//! The index is derived from the journal. A start opens the runs and adds the Records after them to
//! the lists in memory. A run that is lost or damaged is written again from the journal, at the
//! start or when a reader comes upon it. The index uses only the [`Store`] trait.

mod check;
mod filter;
mod key;
mod key_filters;
mod lists;
mod memtable;
mod numbers;
mod page_cache;
mod run;
mod search_key;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ledger::recipient::credits::Credit;
use ledger::{Fingerprint, GroupNumber, IdMap, IdSet, LedgerId, Record, Timestamp};
use parking_lot::{Condvar, Mutex, ReentrantMutex, RwLock};

use crate::personal_index::PersonalIndex;
use crate::records::{LoadError, Result};
use store::priority;
use store::{Part, Sequence, StoreError, WriteBytes};

use key::credit_of;
use key_filters::{KeyFilters, KeyWriter};
use lists::{ListTrouble, Lists, Source};
use memtable::{Recent, moves_money_of};
use page_cache::{PageCache, RunFiles};
use run::{Builder, Cover, Run, RunError, unzigzag};

pub use check::RunCheck;
pub(crate) use key::registered;
pub use key::{Balances, ChargeList, IndexKey, LedgerList, ObjectList};
pub use lists::{ListedNumber, Slice};
pub(crate) use search_key::WORD_BEGIN;
pub use search_key::{FoundKind, PlainValue, SearchKey, TXID_PREFIX_MIN};

/// Sizes of the index's runs.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// Records of a run, at least; a block is not divided.
    pub records_per_run: u64,
    /// Runs that are merged into one.
    pub runs_merged: usize,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { records_per_run: 65_536, runs_merged: 16 }
    }
}

/// Records of a run of one of several indexes, at least.
const RECORDS_PER_SHARED_RUN_MIN: u64 = 1_024;

impl IndexOptions {
    /// The sizes for one of so many indexes of a process, which share the memory of one.
    pub fn shared_by(self, indexes: u64) -> Self {
        let least = self.records_per_run.min(RECORDS_PER_SHARED_RUN_MIN);
        Self { records_per_run: (self.records_per_run / indexes.max(1)).max(least), ..self }
    }
}

/// A range with this many occurrences is full too, so that Records with thousands of splits do not
/// fill the memory.
const OCCURRENCES_PER_RUN_MAX: usize = 4 << 20;
/// Records of each part in which a run is written again, so that little of a large run is in
/// memory.
const RECORDS_WRITTEN_AGAIN: u64 = 1 << 20;
/// Full ranges that may wait to be written before [`Index::count`] waits for them.
const WAITING_MAX: usize = 4;
/// The same while writing fails: the journal goes on meanwhile, as long as there is memory.
const WAITING_WHILE_FAILING_MAX: usize = 32;
/// How often runs are looked for again that another process merged meanwhile.
const FOUND_AGAIN_MAX: usize = 8;
/// How long an index of another process's runs may be used.
pub const FOLLOWED_MAX: Duration = Duration::from_secs(30);
/// Retention of a merged run for processes that follow.
const MERGED_KEPT: Duration = FOLLOWED_MAX.saturating_mul(4);
/// Pause before a failed write is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The index of a store, with the threads that write and merge its runs.
pub struct Index {
    shared: Arc<IndexShared>,
    threads: Vec<thread::JoinHandle<()>>,
}

struct IndexShared {
    store: Part,
    options: IndexOptions,
    personal: Option<PersonalIndex>,
    state: RwLock<UnwrittenRuns>,
    /// In order, without a gap. Replaced only while `state` is locked for writing: who holds that
    /// lock sees both as of one moment.
    runs: RwLock<Arc<Vec<Arc<Run>>>>,
    keys: KeyFilters,
    cache: PageCache,
    work: Mutex<IndexWork>,
    /// True once the process is about to end: a merge is given up and made at a later start.
    is_ending: AtomicBool,
    changed: Condvar,
    mending: ReentrantMutex<()>,
    /// Whether another process writes the runs, and this one only reads them.
    is_reading: bool,
    /// Runs that were merged, and when. Processes that read them find them for a while longer.
    merged: Mutex<VecDeque<(Instant, Arc<Run>)>>,
}

#[derive(Default)]
struct IndexWork {
    waiting: usize,
    /// New runs may be merged with others.
    is_merging: bool,
    ending: bool,
    /// The last range could not be written; it is tried again.
    is_failing: bool,
}

impl IndexWork {
    fn is_too_much(&self) -> bool {
        self.waiting > if self.is_failing { WAITING_WHILE_FAILING_MAX } else { WAITING_MAX }
    }
}

#[derive(Default)]
struct UnwrittenRuns {
    /// Full ranges after the runs that are being written, in order.
    full: VecDeque<Arc<Recent>>,
    /// The Records after those ranges.
    recent: Recent,
    /// Balances of each merchant that this process has seen, after its last counted Record.
    balances: IdMap<GroupNumber, Balances>,
    keys: KeyWriter,
}

/// File of a run, and what its name says.
struct RunFile {
    first: u64,
    last: u64,
    name: String,
    bytes: u64,
}

/// Places of a look-up: the runs, and the lists in memory of the keys that are added and of those
/// that are subtracted.
type Places = (Arc<Vec<Arc<Run>>>, [Vec<Source>; 2]);

impl Index {
    /// Opens the runs of a store; writes those that are lost or damaged again from the journal. The
    /// caller counts the Records after [`Index::indexed_through`] next. Without `personal`, no
    /// Record is found by its personal data.
    pub fn open(store: Part, options: IndexOptions, personal: Option<PersonalIndex>) -> Result<Self> {
        let shared = IndexShared::new(store, options, personal, false);
        shared.take_up()?;
        shared.keys.begin(shared.indexed_through() + 1);
        let start = |name: &str, run: fn(&IndexShared)| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared));
            thread.expect("a thread can be started")
        };
        let threads = vec![start("history", IndexShared::run), start("history merge", IndexShared::run_merges)];
        Ok(Self { shared, threads })
    }

    /// The index of a partition that another process writes: its runs as they are now. They are
    /// merged there, so it is to be opened again within [`FOLLOWED_MAX`].
    pub fn following(store: Part, options: IndexOptions, personal: Option<PersonalIndex>) -> Result<Self> {
        let shared = IndexShared::new(store, options, personal, true);
        shared.find_runs()?;
        shared.keys.begin(shared.indexed_through() + 1);
        Ok(Self { shared, threads: Vec::new() })
    }

    /// The index of a partition that this process does not have: nothing is in it.
    pub fn unread(store: Part, options: IndexOptions) -> Self {
        Self { shared: IndexShared::new(store, options, None, true), threads: Vec::new() }
    }

    /// The Records through this one are in runs.
    pub fn indexed_through(&self) -> Sequence {
        Sequence(self.shared.indexed_through())
    }

    /// Adds the next Records to the lists. `before` gives a merchant's balances before the first of
    /// these Records that moves its money; it is called once for each merchant.
    pub fn count(
        &self,
        records: &[(Sequence, Arc<Record>)],
        before: impl Fn(GroupNumber) -> Result<Balances>,
    ) -> Result<()> {
        let mut groups: IdSet<_> = records.iter().filter_map(|(_, record)| moves_money_of(record)).collect();
        {
            let state = self.shared.state.read();
            groups.retain(|group| !state.balances.contains_key(group));
        }
        let unknown = groups.into_iter().map(|group| Ok((group, before(group)?))).collect::<Result<Vec<_>>>()?;
        let personal = records.iter().map(|(_, record)| self.shared.personal_keys(record));
        let personal = personal.collect::<Result<Vec<_>, _>>()?;
        let is_full = {
            let mut state = self.shared.state.write();
            let unwritten = self.shared.indexed_through() + 1;
            let UnwrittenRuns { recent, balances, keys, .. } = &mut *state;
            balances.extend(unknown);
            for ((sequence, record), personal) in records.iter().zip(&personal) {
                let keep = |key| keys.add(&self.shared.keys, key, sequence.0, unwritten);
                recent.count(sequence.0, record, personal, balances, keep);
            }
            let is_full = state.recent.records() >= self.shared.options.records_per_run
                || state.recent.occurrences >= OCCURRENCES_PER_RUN_MAX;
            if is_full {
                // The next range is about like this one.
                let next = Recent {
                    lists: IdMap::with_capacity_and_hasher(state.recent.lists.len(), Default::default()),
                    ..Recent::default()
                };
                let full = std::mem::replace(&mut state.recent, next);
                state.full.push_back(Arc::new(full));
            }
            is_full
        };
        if is_full && !self.shared.is_reading {
            let mut work = self.shared.work.lock();
            work.waiting += 1;
            self.shared.changed.notify_all();
            self.shared.changed.wait_while(&mut work, |work| work.is_too_much());
        }
        Ok(())
    }

    /// How many numbers the lists of `plus` have in `range`, less those of `minus`, and a page of
    /// them, highest first.
    pub fn page(&self, plus: &[IndexKey], minus: &[IndexKey], slice: Slice) -> Result<(u64, Vec<ListedNumber>)> {
        self.shared.read(plus, minus, i64::MIN, 0..u64::MAX, |lists| lists.page(&slice))
    }

    /// The sequences of a list of sequences in `range`, lowest first.
    pub fn sequences(&self, key: IndexKey, range: Range<u64>) -> Result<Vec<Sequence>> {
        let found = self.shared.read(&[key], &[], i64::MIN, range.clone(), |lists| lists.numbers(range.clone()))?;
        Ok(found.into_iter().map(Sequence).collect())
    }

    /// The Records of others in `range` that changed a ledger's state, in order, each with its
    /// credit if it was only that.
    pub fn changed(&self, ledger: LedgerId, range: Range<u64>) -> Result<Vec<(Sequence, Option<Credit>)>> {
        let found = self.occurrences(IndexKey::of(LedgerList::Changed, ledger), range)?;
        Ok(found.into_iter().map(|[number, due, amount]| (Sequence(number), credit_of([due, amount]))).collect())
    }

    /// The sequences of the Records with a value, lowest first, each with what it makes. Very
    /// rarely a Record of another value is among them.
    pub fn with_value(&self, value: SearchKey, range: Range<u64>) -> Result<Vec<(Sequence, FoundKind)>> {
        let found = self.occurrences(value.list, range)?.into_iter();
        Ok(found.filter_map(|[number, with]| Some((Sequence(number), value.matches(with)?))).collect())
    }

    /// The occurrences of a list in `range`: each is a sequence and the words with it.
    fn occurrences<const WIDTH: usize>(&self, key: IndexKey, range: Range<u64>) -> Result<Vec<[u64; WIDTH]>> {
        let found = self.shared.read(&[key], &[], i64::MIN, range.clone(), |lists| lists.occurrences(range.clone()))?;
        Ok(found.as_chunks().0.to_vec())
    }

    /// How many charges the Records of a range opened that were created in a span: their txids
    /// begin with the time of it. A list has those of 65 seconds.
    pub fn charges_created(&self, span: Range<Timestamp>, range: Range<u64>) -> Result<usize, LoadError> {
        let mut count = 0;
        for key in SearchKey::txids_of(&span) {
            let created = self.occurrences(key, range.clone())?.into_iter();
            count += created.filter(|[_, with]| span.contains(&SearchKey::created_at(key, *with))).count();
        }
        Ok(count)
    }

    /// The sequences of a list, lowest first. Runs without a Record as late as `time` are left out.
    pub fn since(&self, key: IndexKey, time: Timestamp) -> Result<Vec<Sequence>> {
        let numbers = self.shared.read(&[key], &[], time.0, 0..u64::MAX, |lists| lists.numbers(0..u64::MAX))?;
        Ok(numbers.into_iter().map(Sequence).collect())
    }

    /// The sequences of the Records with a key, lowest first. Runs without a Record as late as
    /// `time` are left out. Very rarely a Record of another key is among them. Where no Record has
    /// the key, this hardly ever waits for [`Index::count`].
    pub fn with_key(&self, key: Fingerprint, time: Timestamp) -> Result<Vec<Sequence>> {
        let key = IndexKey::key(key);
        if self.shared.is_new(key, time) { Ok(Vec::new()) } else { self.since(key, time) }
    }

    /// Number of runs, and the bytes that they take in memory without the cache of their pages.
    pub fn runs(&self) -> (usize, usize) {
        let runs = self.shared.runs.read();
        (runs.len(), runs.iter().map(|run| run.memory_bytes()).sum())
    }

    /// The sequences of a ledger's Records of these ordinals.
    pub fn own(&self, ledger: LedgerId, ordinals: &[u64]) -> Result<Vec<Sequence>> {
        let found =
            self.shared.read(&[IndexKey::of(LedgerList::Own, ledger)], &[], i64::MIN, 0..u64::MAX, |lists| {
                let places = ordinals.iter().map(|ordinal| ordinal.wrapping_sub(1));
                places.map(|place| lists.nth(place)).collect::<Result<Vec<_>, _>>()
            })?;
        let found = found.into_iter().zip(ordinals);
        found.map(|(found, ordinal)| found.map(Sequence).ok_or(LoadError::Missing(*ordinal))).collect()
    }

    /// The numbers at these places of a list, counted from 0. Places past its end give none.
    pub fn places(&self, key: IndexKey, places: Range<u64>) -> Result<Vec<u64>> {
        let found = self.shared.read(&[key], &[], i64::MIN, 0..u64::MAX, |lists| {
            places.clone().map(|place| lists.nth(place)).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// A merchant's balances after its last Record with an entry before each of these sequences.
    pub fn balances_before(&self, group: GroupNumber, sequences: &[Sequence]) -> Result<Vec<Balances>> {
        let sequences: Vec<u64> = sequences.iter().map(|sequence| sequence.0).collect();
        self.shared.balances_before(group, &sequences, u64::MAX)
    }

    /// Waits until all full ranges are written and merged.
    pub fn settle(&self) {
        let mut work = self.shared.work.lock();
        self.shared.changed.wait_while(&mut work, |work| (work.waiting > 0 || work.is_merging) && !work.is_failing);
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.work.lock().ending = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl IndexShared {
    fn new(store: Part, options: IndexOptions, personal: Option<PersonalIndex>, is_reading: bool) -> Arc<Self> {
        let keys_each = options.records_per_run.saturating_mul(options.runs_merged as u64);
        Arc::new(IndexShared {
            store,
            options,
            personal,
            state: RwLock::default(),
            runs: RwLock::default(),
            keys: KeyFilters::new(keys_each as usize),
            cache: PageCache::new(page_cache::PAGES_MAX),
            work: Mutex::new(IndexWork { is_merging: true, ..IndexWork::default() }),
            is_ending: AtomicBool::new(false),
            changed: Condvar::new(),
            mending: ReentrantMutex::new(()),
            is_reading,
            merged: Mutex::default(),
        })
    }

    /// The keys of a Record's personal data.
    fn personal_keys(&self, record: &Record) -> Result<Vec<(SearchKey, FoundKind)>> {
        let Some(personal) = &self.personal else { return Ok(Vec::new()) };
        Ok(personal.of_record(record)?)
    }

    fn indexed_through(&self) -> u64 {
        self.runs.read().last().map_or(0, |run| run.cover.last)
    }

    /// Runs a look-up over all places that a list may be in. A run that turns out to be damaged is
    /// mended first. Runs without a Record in `sequences`, and runs without one as late as
    /// `since_ms`, are left out.
    fn read<T>(
        &self,
        plus: &[IndexKey],
        minus: &[IndexKey],
        since_ms: i64,
        sequences: Range<u64>,
        mut look: impl FnMut(&mut Lists<'_>) -> Result<T, ListTrouble>,
    ) -> Result<T> {
        let keys = [plus, minus];
        loop {
            let (runs, memory) = self.places(keys, &sequences);
            let sources = |keys: &[IndexKey], memory: Vec<Source>| {
                let mut sources = Vec::new();
                let is_asked = |run: &&Arc<Run>| run.cover.latest_ms >= since_ms && run.cover.meets(&sequences);
                for run in runs.iter().filter(is_asked) {
                    for key in keys {
                        sources.extend(Source::of_run(self.files(), run, *key)?);
                    }
                }
                sources.extend(memory);
                Ok(sources)
            };
            let [plus_in_memory, minus_in_memory] = memory;
            let read = sources(plus, plus_in_memory)
                .and_then(|added| Ok((added, sources(minus, minus_in_memory)?)))
                .and_then(|(plus, minus)| look(&mut Lists { files: self.files(), plus, minus }));
            match read {
                Ok(found) => return Ok(found),
                Err(ListTrouble::Store(error)) => return Err(error.into()),
                Err(ListTrouble::Run(run)) => self.mend(&run)?,
            }
        }
    }

    /// The runs, and for each set of keys what is in memory: all at one moment.
    fn places(&self, keys: [&[IndexKey]; 2], sequences: &Range<u64>) -> Places {
        let state = self.state.read();
        let runs = Arc::clone(&self.runs.read());
        let recents = state.full.iter().map(|full| &**full).chain([&state.recent]);
        let recents: Vec<_> =
            recents.filter(|recent| recent.cover.is_some_and(|cover| cover.meets(sequences))).collect();
        let memory = keys.map(|keys| {
            let lists =
                recents.iter().flat_map(|recent| keys.iter().filter_map(|key| Some((*key, recent.lists.get(key)?))));
            lists
                .map(|(key, occurrences)| Source::Memory { key, occurrences: occurrences.as_slice().to_vec() })
                .collect()
        });
        (runs, memory)
    }

    /// True where no Record as late as `time` has a key: neither one whose keys are in memory, nor
    /// one of the runs before. A run that cannot be read may.
    fn is_new(&self, key: IndexKey, time: Timestamp) -> bool {
        let Some(since) = self.keys.lacks(key) else { return false };
        let runs = Arc::clone(&self.runs.read());
        let mut candidates = runs.iter().filter(|run| run.cover.first < since && run.cover.latest_ms >= time.0);
        candidates.all(|run| matches!(run.may_hold(self.files(), key), Ok(false)))
    }

    fn balances_before(&self, group: GroupNumber, sequences: &[u64], limit: u64) -> Result<Vec<Balances>> {
        let key = IndexKey::entries(LedgerId::Merchant(group));
        self.read(&[key], &[], i64::MIN, 0..limit, |lists| {
            let last = sequences.iter().map(|sequence| lists.last_below(*sequence));
            let balances = last.map(|last| {
                Ok(last?
                    .map_or(Balances::default(), |occurrence| Balances([1, 2, 3].map(|at| unzigzag(occurrence[at])))))
            });
            balances.collect()
        })
    }

    /// Reads the directories of the runs, and writes again what is missing between them.
    fn take_up(&self) -> Result<()> {
        let head = self.store.head()?.next.0;
        let mut next = 1;
        for RunFile { first, last, name, bytes } in self.run_files()? {
            if last < next {
                self.store.remove_file(&name)?;
                continue;
            }
            if last >= head {
                let detail = format!("the index knows of Record {last}, but the journal ends before Record {head}");
                return Err(StoreError::Damaged { folder: name.into(), sequence: Some(Sequence(head)), detail }.into());
            }
            if first > next {
                self.write_again(next, first - 1)?;
            }
            match Run::open(self.files(), &name, bytes) {
                Ok(run) => Arc::make_mut(&mut self.runs.write()).push(Arc::new(run)),
                Err(RunError::Damaged) => self.write_again(first, last)?,
                Err(RunError::Store(error)) => return Err(error.into()),
            }
            next = last + 1;
        }
        Ok(())
    }

    /// The runs of the store. Of those with the same begin the longest comes first: the others were
    /// merged into it.
    fn run_files(&self) -> Result<Vec<RunFile>, StoreError> {
        let files = self.store.files()?.into_iter().filter_map(|(name, bytes)| {
            let (first, last) = Cover::of_file_name(&name)?;
            Some(RunFile { first, last, name, bytes })
        });
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|file| (file.first, u64::MAX - file.last));
        Ok(files)
    }

    /// Opens the runs that another process wrote, from the first Record on without a gap. What is
    /// missing stays in memory. A run that was merged meanwhile is looked for again.
    fn find_runs(&self) -> Result<()> {
        for _ in 0..FOUND_AGAIN_MAX {
            let mut runs: Vec<Arc<Run>> = Vec::new();
            let mut is_whole = true;
            for RunFile { first, last, name, bytes } in self.run_files()? {
                let next = runs.last().map_or(1, |run| run.cover.last + 1);
                if last < next {
                    continue;
                }
                if first != next {
                    break;
                }
                match Run::open(self.files(), &name, bytes) {
                    Ok(run) => runs.push(Arc::new(run)),
                    Err(RunError::Store(error)) => return Err(error.into()),
                    Err(RunError::Damaged) => {
                        is_whole = false;
                        break;
                    }
                }
            }
            *self.runs.write() = Arc::new(runs);
            if is_whole {
                break;
            }
        }
        Ok(())
    }

    /// Writes the run of a range of Records from the journal, and takes it up in place of the one
    /// of that range, if there is one.
    fn write_again(&self, first: u64, last: u64) -> Result<()> {
        tracing::warn!(first, last, "a part of the index is lost or damaged; it is written again from the journal");
        let (mut recent, mut balances, mut written) = (Recent::default(), IdMap::default(), Vec::new());
        for block in self.store.blocks(Sequence(first)) {
            let block = block?;
            if block.first.0 > last {
                break;
            }
            for (sequence, bytes) in (block.first.0..).zip(&block.records) {
                if (first..=last).contains(&sequence) {
                    let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
                    if let Some(group) = moves_money_of(&record).filter(|group| !balances.contains_key(group)) {
                        balances.extend(
                            self.balances_before(group, &[first], first)?.into_iter().map(|before| (group, before)),
                        );
                    }
                    let personal = self.personal_keys(&record)?;
                    recent.count(sequence, &record, &personal, &mut balances, |_| ());
                }
            }
            if recent.records() >= RECORDS_WRITTEN_AGAIN {
                written.extend(self.keep_recent(&std::mem::take(&mut recent))?);
            }
        }
        written.extend(self.keep_recent(&recent)?);
        let _state = self.state.write();
        let mut runs = self.runs.write();
        let is_in = |known: &Arc<Run>| {
            let cover = known.cover;
            cover.first <= first && last <= cover.last && (cover.first, cover.last) != (first, last)
        };
        if runs.iter().any(is_in) {
            // It was merged meanwhile.
            return written.iter().try_for_each(|run| Ok(self.store.remove_file(run.name())?));
        }
        let runs = Arc::make_mut(&mut runs);
        let at = runs.partition_point(|known| known.cover.first < first);
        let replaced = runs[at..].iter().take_while(|known| known.cover.last <= last).count();
        runs.splice(at..at + replaced, written);
        Ok(())
    }

    fn keep_recent(&self, recent: &Recent) -> Result<Option<Arc<Run>>> {
        let Some((cover, bytes)) = recent.to_run() else { return Ok(None) };
        Ok(Some(Arc::new(self.keep(cover, &mut |out| out.write_all(&bytes))?)))
    }

    fn files(&self) -> RunFiles<'_> {
        RunFiles { store: &self.store, cache: &self.cache }
    }

    /// Writes a damaged run again. One that is gone by now was merged: nothing is to be done.
    fn mend(&self, run: &Arc<Run>) -> Result<()> {
        if self.is_reading {
            let detail = "a part of the index was merged by its owner; it is found again in a moment".to_owned();
            return Err(StoreError::Unavailable { place: run.name().to_owned(), detail }.into());
        }
        let _one_at_a_time = self.mending.lock();
        let is_current = self.runs.read().iter().any(|known| Arc::ptr_eq(known, run));
        if is_current { self.write_again(run.cover.first, run.cover.last) } else { Ok(()) }
    }

    /// Keeps a run; `write` gives its bytes.
    fn keep(&self, cover: Cover, write: WriteBytes<'_>) -> Result<Run, StoreError> {
        let name = cover.file_name();
        let bytes = self.store.put_file_in_parts(&name, write)?;
        Run::open(self.files(), &name, bytes).map_err(|error| not_as_written(&name, error))
    }

    /// The thread that writes runs.
    fn run(&self) {
        loop {
            {
                let mut work = self.work.lock();
                self.changed.wait_while(&mut work, |work| work.waiting == 0 && !work.ending);
                if work.ending {
                    return;
                }
            }
            let written = self.write_full();
            let mut work = self.work.lock();
            work.is_failing = written.is_err();
            if let Err(error) = written {
                tracing::error!(%error, waiting = work.waiting, "a part of the index can't be written; it is tried again");
                self.changed.notify_all();
                let until = Instant::now() + TRY_AGAIN_AFTER;
                while !work.ending && !self.changed.wait_until(&mut work, until).timed_out() {}
                continue;
            }
            work.waiting -= 1;
            work.is_merging = true;
            self.changed.notify_all();
        }
    }

    fn write_full(&self) -> Result<()> {
        let Some(full) = self.state.read().full.front().cloned() else { return Ok(()) };
        let Some(run) = self.keep_recent(&full)? else { return Ok(()) };
        let mut state = self.state.write();
        Arc::make_mut(&mut self.runs.write()).push(run);
        state.full.pop_front();
        Ok(())
    }

    /// The thread that merges runs. Nobody waits for it: without it look-ups ask more runs.
    fn run_merges(&self) {
        priority::run_last();
        loop {
            {
                let mut work = self.work.lock();
                self.changed.wait_while(&mut work, |work| !work.is_merging && !work.ending);
                if work.ending {
                    return;
                }
            }
            let known = Arc::clone(&self.runs.read());
            let merged = self.merge(&known);
            if let Err(error) = &merged {
                tracing::warn!(%error, "runs of the index are not merged; that is tried again when there are more");
            }
            let mut work = self.work.lock();
            let is_done = !matches!(merged, Ok(true)) && Arc::ptr_eq(&known, &self.runs.read());
            if is_done || merged.is_err() {
                work.is_merging = false;
                self.changed.notify_all();
            }
        }
    }

    /// Merges the first runs that follow each other and are of one size, if there are enough of
    /// them; true when it did.
    fn merge(&self, runs: &[Arc<Run>]) -> Result<bool> {
        let Some(merged) = self.to_merge(runs) else { return Ok(false) };
        let (Some(first), Some(last)) = (merged.first(), merged.last()) else { return Ok(false) };
        let latest_ms = merged.iter().map(|run| run.cover.latest_ms).max().unwrap_or_default();
        let cover = Cover { first: first.cover.first, last: last.cover.last, latest_ms };
        let mut given_up = None;
        let result = self.keep(cover, &mut |out| {
            let written = self.write_merged(cover, merged, out);
            written.map_err(|why| {
                given_up = Some(why);
                io::ErrorKind::Interrupted.into()
            })
        });
        let run = match (result, given_up) {
            // A damaged run is mended by its next reader, and merged later.
            (_, Some(GivenUp::Damaged | GivenUp::Ending)) => return Ok(false),
            (_, Some(GivenUp::Store(error))) => return Err(error.into()),
            (result, _) => Arc::new(result?),
        };
        let is_current = {
            let _state = self.state.write();
            let mut runs = self.runs.write();
            let runs = Arc::make_mut(&mut runs);
            let at = runs.iter().position(|known| Arc::ptr_eq(known, first));
            let at = at.filter(|at| runs[*at..].iter().zip(merged).all(|(known, merged)| Arc::ptr_eq(known, merged)));
            at.map(|at| drop(runs.splice(at..at + merged.len(), [Arc::clone(&run)]))).is_some()
        };
        if !is_current {
            // One of them was mended meanwhile: it is merged the next time.
            self.store.remove_file(run.name())?;
            return Ok(true);
        }
        let now = Instant::now();
        self.merged.lock().extend(merged.iter().map(|run| (now, Arc::clone(run))));
        self.remove_merged()?;
        Ok(true)
    }

    /// Removes the runs that were merged so long ago that no process reads them any more.
    fn remove_merged(&self) -> Result<(), StoreError> {
        let mut merged = self.merged.lock();
        while merged.front().is_some_and(|(since, _)| since.elapsed() >= self.keeps_merged()) {
            if let Some((_, run)) = merged.pop_front() {
                self.store.remove_file(run.name())?;
            }
        }
        Ok(())
    }

    fn keeps_merged(&self) -> Duration {
        if self.store.store().is_followed() { MERGED_KEPT } else { Duration::ZERO }
    }

    /// The runs to merge next: the first [`IndexOptions::runs_merged`] in a row of one size, the
    /// smallest size first. `None` if the disk lacks the room.
    fn to_merge<'a>(&self, runs: &'a [Arc<Run>]) -> Option<&'a [Arc<Run>]> {
        let count = self.options.runs_merged;
        let size = |run: &Arc<Run>| {
            let records = run.cover.last - run.cover.first + 1;
            let mut above = 2 * self.options.records_per_run;
            let mut size = 0;
            while records >= above {
                above = above.saturating_mul(count as u64);
                size += 1;
            }
            size
        };
        let rows = runs.chunk_by(|one, next| size(one) == size(next)).filter(|row| row.len() >= count);
        let merged = &rows.min_by_key(|row| size(&row[0]))?[..count];
        let bytes: u64 = merged.iter().map(|run| run.file_bytes()).sum();
        let free = self.store.store().free_bytes().ok().flatten();
        free.is_none_or(|free| free > bytes.saturating_add(self.store.store().reserve_bytes())).then_some(merged)
    }

    /// Merges runs that follow each other into one, and reads some pages of each at a time.
    fn write_merged(&self, cover: Cover, runs: &[Arc<Run>], out: &mut dyn io::Write) -> Result<(), GivenUp> {
        let mut builder = Builder::new(cover.first, out);
        let files = self.files();
        let mut readers: Vec<_> = runs.iter().map(|run| Reader { run, page: 0, groups: VecDeque::new() }).collect();
        let mut heads = readers.iter_mut().map(|reader| reader.head(files)).collect::<Result<Vec<_>, _>>()?;
        loop {
            let next = |but: Option<usize>| {
                let heads = heads.iter().enumerate().filter(|(at, _)| Some(*at) != but);
                heads.filter_map(|(at, head)| Some((((*head)?), at))).min()
            };
            let Some((_, at)) = next(None) else { break };
            let until = next(Some(at));
            // All that comes before what the others have: lists of sequences follow each other run
            // by run.
            while let Some(head) = heads[at]
                && until.is_none_or(|until| (head, at) < until)
            {
                readers[at].write_one(&mut builder).map_err(GivenUp::writing)?;
                heads[at] = readers[at].head(files)?;
                if self.is_ending.load(Ordering::Relaxed) {
                    return Err(GivenUp::Ending);
                }
            }
        }
        builder.finish(cover).map(drop).map_err(GivenUp::writing)
    }
}

/// Why runs were not merged.
enum GivenUp {
    Damaged,
    Ending,
    Store(StoreError),
}

impl GivenUp {
    fn writing(source: io::Error) -> Self {
        Self::Store(StoreError::Machine { folder: "files".into(), source })
    }
}

impl From<RunError> for GivenUp {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Damaged => Self::Damaged,
            RunError::Store(error) => Self::Store(error),
        }
    }
}

fn not_as_written(name: &str, error: RunError) -> StoreError {
    match error {
        RunError::Store(error) => error,
        RunError::Damaged => {
            let detail = "a file of the index is not what was just written".to_owned();
            StoreError::Damaged { folder: name.into(), sequence: None, detail }
        }
    }
}

/// Reads a run from its first page to its last.
struct Reader<'a> {
    run: &'a Run,
    page: usize,
    /// Each a key and its occurrences, the next one first.
    groups: VecDeque<(IndexKey, std::vec::IntoIter<u64>)>,
}

impl Reader<'_> {
    /// The next occurrence's key and number; none at the end.
    fn head(&mut self, files: RunFiles<'_>) -> Result<Option<(IndexKey, u64)>, RunError> {
        loop {
            match self.groups.front() {
                Some((key, occurrences)) => match occurrences.as_slice().first() {
                    Some(number) => return Ok(Some((*key, *number))),
                    None => drop(self.groups.pop_front()),
                },
                None if self.page < self.run.pages() => {
                    let groups = self.run.groups(files, self.page)?.into_iter();
                    self.groups = groups.map(|(key, occurrences)| (key, occurrences.into_iter())).collect();
                    self.page += 1;
                }
                None => return Ok(None),
            }
        }
    }

    /// Writes the next occurrence.
    fn write_one<W: io::Write>(&mut self, builder: &mut Builder<W>) -> io::Result<()> {
        let Some((key, occurrences)) = self.groups.front_mut() else { return Ok(()) };
        let width = key.width();
        builder.push(*key, &occurrences.as_slice()[..width])?;
        occurrences.nth(width - 1);
        Ok(())
    }
}
