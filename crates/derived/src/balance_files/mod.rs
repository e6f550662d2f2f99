//! Balance files: the balances of all ledgers at each month's end, stored so that books of the past
//! need not be folded from the first Record. They also have what an export or a report that begins
//! there needs besides: see [`CarriedFact`]. What is due to whom stands in a receivables file
//! beside each.
//!
//! Balances as of a Record are those of the nearest file before it, and the Records after that
//! file, which are a month's at most. A thread in the background makes the files from the journal.
//! They are derived: the files of a store that has none are made again in one pass, and a damaged
//! one is made again when somebody comes upon it. `verify` compares each with the journal.
//!
//! Months are those of America/Sao_Paulo, by the time of booking, which never goes back.

mod as_of;
mod at_cut;
mod carried_facts;
mod check;
mod file;
mod receivables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirEntry, File};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use ledger::{Month, Receivables, Record, Timestamp};
use parking_lot::Mutex;

use crate::records::{LoadError, Result, booked_record};
use store::priority;
use store::{Part, Partition, Sequence, StoreError, file_name_of, file_of};

use file::{BalanceFile, FileCut, FileError, FileSource};

pub use as_of::Sums;
pub use as_of::{AsOf, SumOfKind};
pub use at_cut::{BooksAsOf, PendingCards, SumsAsOf};
pub use carried_facts::{AnticipatedOn, AnticipatedSums, CarriedFact};
pub use check::BalanceFileCheck;

/// Receivables and charges that are followed at most, which bounds the memory of the thread that
/// makes a receivables file and of a report that begins at one: some 150 bytes each. No receivables
/// file is made once there are more.
const RECEIVABLES_MAX: usize = 1 << 20;

/// The balance files of a store, and the thread that makes them.
pub struct BalanceFiles {
    shared: Arc<FilesInner>,
    maker: Mutex<Option<JoinHandle<()>>>,
}

struct FilesInner {
    store: Part,
    receivables_max: usize,
    known: Mutex<FileCatalog>,
    /// Held while files are made: two threads would write the same one.
    making: Mutex<()>,
    is_ending: AtomicBool,
    /// Whether nothing may be written or removed.
    is_reading: bool,
}

#[derive(Default)]
struct FileCatalog {
    /// The files, by their cuts.
    files: BTreeMap<FileCut, StoredFile>,
    /// The cuts with a receivables file.
    receivables: BTreeSet<FileCut>,
    /// Whether more is due than is followed.
    is_too_much_due: bool,
    /// Cuts of files that were damaged, to be made again.
    lost: Vec<FileCut>,
    /// The month of the newest Record at the last look for a month's end.
    looked_at: Option<Month>,
}

impl FileCatalog {
    /// The cuts whose receivables file is to be made, in order; none once too much was due, since a
    /// pass over the Records would end there again.
    fn lacking_receivables(&self) -> impl Iterator<Item = FileCut> {
        let lacking = self.files.keys().filter(|cut| !self.receivables.contains(cut));
        lacking.copied().filter(|_| !self.is_too_much_due)
    }
}

/// A file of the store.
#[derive(Clone)]
struct StoredFile {
    bytes: u64,
    /// Set by whoever reads a damaged page of it.
    is_damaged: Arc<AtomicBool>,
}

impl StoredFile {
    fn of(bytes: u64) -> Self {
        Self { bytes, is_damaged: Arc::default() }
    }
}

impl BalanceFiles {
    /// The files of a store.
    pub fn open(store: Part) -> Result<Self, StoreError> {
        Self::of(store, RECEIVABLES_MAX, false)
    }

    /// The files of a store that is only read.
    pub fn reading(store: Part) -> Result<Self, StoreError> {
        Self::of(store, RECEIVABLES_MAX, true)
    }

    fn of(store: Part, receivables_max: usize, is_reading: bool) -> Result<Self, StoreError> {
        let found = store
            .files()?
            .into_iter()
            .filter_map(|(name, bytes)| Some((FileCut::of_file_name(&name)?, StoredFile::of(bytes))));
        let (files, receivables) = (found.collect(), receivables::cuts(&store)?.into_iter().collect());
        let known = Mutex::new(FileCatalog { files, receivables, ..FileCatalog::default() });
        let shared = Arc::new(FilesInner {
            store,
            receivables_max,
            known,
            making: Mutex::default(),
            is_ending: AtomicBool::new(false),
            is_reading,
        });
        Ok(Self { shared, maker: Mutex::default() })
    }

    /// Makes, in the background, the files that are missing: to be called every second or so with
    /// the last published Record and the latest time at which one took effect.
    pub fn wake(&self, published: Sequence, latest: Timestamp) {
        if !self.shared.wants_file(published, latest) {
            return;
        }
        let mut maker = self.maker.lock();
        if maker.as_ref().is_some_and(|maker| !maker.is_finished()) {
            return;
        }
        self.shared.known.lock().looked_at = Some(latest.month());
        let shared = Arc::clone(&self.shared);
        let make = move || {
            priority::run_last();
            if let Err(error) = shared.make(published) {
                tracing::warn!(%error, "the balance files could not be made; books as of the past take longer");
            }
        };
        let made = thread::Builder::new().name("balance-files".to_owned()).spawn(make);
        *maker = made.inspect_err(|error| tracing::warn!(%error, "no thread makes balance files")).ok();
    }

    /// Makes the files that are missing now, on this thread.
    pub fn settle(&self, published: Sequence) -> Result<()> {
        self.shared.make(published)
    }

    /// The balances after a published Record; those before the first one for 0. For a thread that
    /// may wait: it reads the Records after the nearest file.
    pub fn as_of(&self, through: Sequence) -> Result<AsOf> {
        let mut as_of = self.shared.nearest(through)?;
        as_of.catch_up(&self.shared.store, through)?;
        Ok(as_of)
    }

    /// The sums of all ledgers after a published Record. For a thread that may wait.
    pub fn sums_as_of(&self, through: Sequence) -> Result<Sums> {
        self.read(|| self.as_of(through)?.sums())
    }

    /// Reads; and once more when it comes upon a damaged page, after the file was made again. For a
    /// thread that may wait.
    pub fn read<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(LoadError::DamagedBalances) => {
                self.mend()?;
                read()
            }
            read => read,
        }
    }

    /// Makes the files again that a reader found damaged. Of files that are only read, the one
    /// before a damaged file counts from then on. For a thread that may wait.
    pub fn mend(&self) -> Result<()> {
        if self.shared.is_reading {
            return Ok(());
        }
        let _alone = self.shared.making.lock();
        self.shared.make_lost()
    }

    /// The balances of the nearest file at or before a Record.
    pub fn nearest(&self, through: Sequence) -> Result<AsOf> {
        self.shared.nearest(through)
    }

    /// The balances of the nearest file through a Record that was booked before a time; those
    /// before the first Record when there is none. All of the file was read once. With
    /// `has_receivables` it has what is due then ([`AsOf::take_receivables`]). For a thread that
    /// may wait.
    pub fn nearest_before(&self, time: Timestamp, through: Sequence, has_receivables: bool) -> Result<AsOf> {
        loop {
            let cut = {
                let known = self.shared.known.lock();
                let mut cuts = known.files.keys().rev();
                cuts.find(|cut| {
                    let is_before = cut.through <= through && cut.booked_at_ms < time.0;
                    is_before && (!has_receivables || known.receivables.contains(cut))
                })
                .copied()
            };
            let Some(cut) = cut else { return Ok(AsOf::of(None)) };
            let mut as_of = self.shared.nearest(cut.through)?;
            match as_of.check() {
                Ok(()) if as_of.cut() != cut => continue,
                Ok(()) => {}
                Err(FileError::Damaged) => {
                    self.shared.lose(as_of.cut())?;
                    continue;
                }
                Err(FileError::Store(error)) => return Err(error.into()),
            }
            if has_receivables {
                let Some(receivables) = self.shared.receivables(cut)? else { continue };
                as_of.receivables = Some(receivables);
            }
            return Ok(as_of);
        }
    }

    /// The partitions that may have files in such a folder, in their order from 0.
    pub fn partitions_in(folder: &Path) -> impl Iterator<Item = Partition> {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let numbers = names.filter_map(|name| Some(file_of(name.to_str()?).0.0));
        (0..=numbers.max().unwrap_or_default()).map(Partition)
    }

    /// The same from the folder of the files of a store that another process has open; those before
    /// the first Record when none can be read.
    pub fn nearest_in(
        folder: &Path,
        partition: Partition,
        (time, through): (Timestamp, Sequence),
        has_receivables: bool,
    ) -> AsOf {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let of_entry = |entry: DirEntry| {
            let name = entry.file_name();
            let (_, name) = Some(file_of(name.to_str()?)).filter(|(owner, _)| *owner == partition)?;
            Some((FileCut::of_file_name(name)?, entry.path()))
        };
        let mut found: Vec<_> = entries.filter_map(of_entry).collect();
        found.retain(|(cut, _)| cut.through <= through && cut.booked_at_ms < time.0);
        found.sort_unstable();
        let opened = |(cut, path): &(FileCut, _)| {
            let mut as_of = AsOf::of_file(File::open(path).ok()?).ok().filter(|as_of| as_of.check().is_ok())?;
            if has_receivables {
                let name = file_name_of(partition, &receivables::file_name(*cut));
                let file = File::open(folder.join(name)).ok()?;
                as_of.receivables = Some(receivables::read(&FileSource::Alone(file), *cut).ok()?);
            }
            Some(as_of)
        };
        found.iter().rev().find_map(opened).unwrap_or_else(|| AsOf::of(None))
    }

    /// The last published Record that was booked before a time; 0 when there is none. For a thread
    /// that may wait.
    pub fn last_booked_before(&self, time: Timestamp, published: Sequence) -> Result<Sequence> {
        let around = self.around(time, published);
        let (mut low, mut high) = (around.start, around.end);
        while low < high {
            let middle = low.midpoint(high);
            let (booked_at, _) = booked_record(&self.shared.store, Sequence(middle))?;
            if booked_at < time { low = middle + 1 } else { high = middle }
        }
        Ok(Sequence(low - 1))
    }

    /// Sequences between which the first Record lies that was booked at `time` or later: the files
    /// answer without a look at the journal.
    fn around(&self, time: Timestamp, published: Sequence) -> Range<u64> {
        let known = self.shared.known.lock();
        let before = known.files.keys().rev().find(|cut| cut.booked_at_ms < time.0);
        let after = known.files.keys().find(|cut| cut.booked_at_ms >= time.0);
        let low = before.map_or(1, |cut| cut.through.0 + 1);
        let high = after.map_or(published.0 + 1, |cut| cut.through.0);
        low..high.min(published.0 + 1).max(low)
    }
}

impl Drop for BalanceFiles {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(maker) = self.maker.get_mut().take() {
            let _panicked = maker.join();
        }
    }
}

impl FilesInner {
    fn wants_file(&self, published: Sequence, latest: Timestamp) -> bool {
        let known = self.known.lock();
        let last = known.files.keys().next_back().map_or(0, |cut| cut.through.0);
        let is_new_month = published.0 > last && known.looked_at != Some(latest.month());
        let is_one_damaged = known.files.values().any(|file| file.is_damaged.load(Ordering::Relaxed));
        is_new_month || !known.lost.is_empty() || is_one_damaged || known.lacking_receivables().next().is_some()
    }

    /// Makes the files that are missing through a published Record.
    fn make(&self, published: Sequence) -> Result<()> {
        let _alone = self.making.lock();
        self.make_lost()?;
        let mut as_of = self.nearest(published)?;
        let mut kept_at = as_of.through;
        for block in self.store.blocks(as_of.through.plus(1)) {
            let block = block?;
            if block.next().0 - 1 > published.0 || self.is_ending.load(Ordering::Relaxed) {
                break;
            }
            let ends_month = month(as_of.booked_at_ms) != month(block.booked_at_ms);
            if as_of.through > kept_at && ends_month {
                as_of = self.keep(&as_of)?;
                kept_at = as_of.through;
            }
            as_of.post(&block, Sequence(block.next().0 - 1))?;
        }
        self.make_receivables()
    }

    /// Makes the damaged files again. The caller holds `making`.
    fn make_lost(&self) -> Result<()> {
        let damaged: Vec<_> = {
            let known = self.known.lock();
            let damaged = known.files.iter().filter(|(_, file)| file.is_damaged.load(Ordering::Relaxed));
            damaged.map(|(cut, _)| *cut).collect()
        };
        damaged.into_iter().try_for_each(|cut| self.lose(cut))?;
        while let Some(cut) = { self.known.lock().lost.pop() } {
            let mut as_of = self.nearest(Sequence(cut.through.0 - 1))?;
            as_of.catch_up(&self.store, cut.through)?;
            self.keep(&as_of)?;
            tracing::info!(through = cut.through.0, "the damaged balance file was made again");
        }
        Ok(())
    }

    /// Makes the receivables files that are missing beside balance files, in one pass over the
    /// Records after the last file before them.
    fn make_receivables(&self) -> Result<()> {
        let missing: Vec<FileCut> = self.known.lock().lacking_receivables().collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let (mut through, mut due) = self.receivables_before(*first)?;
        let mut missing = missing.into_iter().peekable();
        while missing.next_if(|cut| cut.through <= through).is_some() {}
        for block in self.store.blocks(through.plus(1)) {
            if missing.peek().is_none() || self.is_ending.load(Ordering::Relaxed) {
                break;
            }
            let block = block?;
            for (sequence, bytes) in (block.first.0..).zip(&block.records) {
                let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
                due.post(&record);
            }
            through = Sequence(block.next().0 - 1);
            if due.len() > self.receivables_max {
                tracing::info!(through = through.0, "too much is due to keep it; reports of receivables read more");
                self.known.lock().is_too_much_due = true;
                break;
            }
            if let Some(cut) = missing.next_if(|cut| cut.through == through) {
                let mut write = |out: &mut dyn Write| receivables::write(cut, &due, out);
                self.store.put_file_in_parts(&receivables::file_name(cut), &mut write)?;
                self.known.lock().receivables.insert(cut);
            }
        }
        Ok(())
    }

    /// What is due at the last receivables file before a cut, and its last Record; nothing when
    /// there is none.
    fn receivables_before(&self, before: FileCut) -> Result<(Sequence, Receivables)> {
        loop {
            let last = { self.known.lock().receivables.range(..before).next_back().copied() };
            let Some(cut) = last else { return Ok((Sequence(0), Receivables::default())) };
            if let Some(receivables) = self.receivables(cut)? {
                return Ok((cut.through, receivables));
            }
        }
    }

    /// What is due at a cut; `None` if its file is damaged, which is removed and made again.
    fn receivables(&self, cut: FileCut) -> Result<Option<Receivables>, StoreError> {
        match receivables::read(&receivables::stored(&self.store, cut), cut) {
            Ok(receivables) => Ok(Some(receivables)),
            Err(FileError::Damaged) => {
                tracing::warn!(through = cut.through.0, "a receivables file is damaged; it is made again");
                self.known.lock().receivables.remove(&cut);
                if !self.is_reading {
                    self.store.remove_file(&receivables::file_name(cut))?;
                }
                Ok(None)
            }
            Err(FileError::Store(error)) => Err(error),
        }
    }

    /// Writes balances as a file, and opens it.
    fn keep(&self, as_of: &AsOf) -> Result<AsOf> {
        let cut = FileCut { through: as_of.through, booked_at_ms: as_of.booked_at_ms };
        let bytes = self.store.put_file_in_parts(&cut.file_name(), &mut |out| as_of.write(out))?;
        let file = StoredFile::of(bytes);
        self.known.lock().files.insert(cut, file.clone());
        let whole = BalanceFile::open(self.source(cut), bytes, file.is_damaged).map_err(|_not_as_written| {
            let detail = "a balance file is not what was just written".to_owned();
            StoreError::Damaged { folder: cut.file_name().into(), sequence: Some(cut.through), detail }
        })?;
        Ok(AsOf::of(Some(whole)))
    }

    fn source(&self, cut: FileCut) -> FileSource {
        FileSource::Stored(self.store.clone(), cut.file_name())
    }

    /// Removes a damaged file, which will be made again.
    fn lose(&self, cut: FileCut) -> Result<(), StoreError> {
        tracing::warn!(through = cut.through.0, "a balance file is damaged; it is made again");
        let mut known = self.known.lock();
        known.files.remove(&cut);
        if !known.lost.contains(&cut) {
            known.lost.push(cut);
        }
        drop(known);
        if self.is_reading { Ok(()) } else { self.store.remove_file(&cut.file_name()) }
    }

    /// The nearest whole file at or before a Record, without the Records after it.
    fn nearest(&self, through: Sequence) -> Result<AsOf> {
        loop {
            let before = {
                let known = self.known.lock();
                let end = FileCut { through, booked_at_ms: i64::MAX };
                known.files.range(..=end).next_back().map(|(cut, file)| (*cut, file.clone()))
            };
            let Some((cut, StoredFile { bytes, is_damaged })) = before else { return Ok(AsOf::of(None)) };
            if is_damaged.load(Ordering::Relaxed) {
                self.lose(cut)?;
                continue;
            }
            match BalanceFile::open(self.source(cut), bytes, is_damaged) {
                Ok(file) => return Ok(AsOf::of(Some(file))),
                Err(FileError::Damaged) => self.lose(cut)?,
                Err(FileError::Store(error)) => return Err(error.into()),
            }
        }
    }
}

fn month(booked_at_ms: i64) -> Month {
    Timestamp(booked_at_ms).month()
}
