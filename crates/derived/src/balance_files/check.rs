//! Check of the balance files against the journal, for `verify`, which reads the whole journal
//! anyway.

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::{Account, Balance, LedgerId, Receivables, Record, Timestamp};

use super::as_of::AsOf;
use super::carried_facts::RowKey;
use super::file::{BalanceFile, FileCut, FileError, FileSource, Row};
use super::receivables;
use store::{Part, Sequence, StoreError};

/// Compares every balance file with the sums of the Records through its cut, and every receivables
/// file with what is due then.
pub struct BalanceFileCheck<'a> {
    store: &'a Part,
    /// The files not yet compared, in order, each with its bytes.
    files: VecDeque<(FileCut, u64)>,
    /// What the files have besides accounts, folded from the first Record.
    carried: AsOf,
    /// The receivables files not yet compared, in order.
    receivables: VecDeque<FileCut>,
    /// What is due, folded from the first Record while there are such files.
    due: Receivables,
    whole: u64,
    unusable: u64,
}

impl<'a> BalanceFileCheck<'a> {
    /// Lists the files.
    pub fn new(store: &'a Part) -> Result<Self, StoreError> {
        let found = store.files()?.into_iter().filter_map(|(name, bytes)| Some((FileCut::of_file_name(&name)?, bytes)));
        let mut files: Vec<_> = found.collect();
        files.sort_unstable();
        let mut receivables = receivables::cuts(store)?;
        receivables.sort_unstable();
        let (carried, due) = (AsOf::of(None), Receivables::default());
        Ok(Self { store, files: files.into(), carried, receivables: receivables.into(), due, whole: 0, unusable: 0 })
    }

    /// Takes the next Record.
    pub fn post(&mut self, at: Sequence, booked_at: Timestamp, record: &Record) {
        self.carried.moved.carry(at, booked_at, record);
        (self.carried.through, self.carried.booked_at_ms) = (at, booked_at.0);
        if !self.receivables.is_empty() {
            self.due.post(record);
        }
    }

    /// Compares the receivables files that end with the Record taken last. Names one that differs.
    pub fn compare_receivables(&mut self, at: Sequence) -> Result<Option<String>, StoreError> {
        while let Some(cut) = self.receivables.front().copied().filter(|cut| cut.through <= at) {
            self.receivables.pop_front();
            let mut expected = self.due.items();
            let mut is_equal = true;
            let read = receivables::each(&receivables::stored(self.store, cut), cut, |receivable| {
                is_equal &= expected.next() == Some(receivable)
            });
            let is_complete = expected.next().is_none();
            match read {
                Ok(()) if cut.through == at => self.whole += 1,
                Err(FileError::Store(error)) => return Err(error),
                _ => {
                    self.unusable += 1;
                    continue;
                }
            }
            if !is_equal || !is_complete {
                return Ok(Some(receivables::file_name(cut)));
            }
        }
        if self.receivables.is_empty() {
            self.due = Receivables::default();
        }
        Ok(None)
    }

    /// Whether a file ends with this Record.
    pub fn is_due(&self, at: Sequence) -> bool {
        self.files.front().is_some_and(|(cut, _)| cut.through <= at)
    }

    /// Compares the file that ends with this Record, if there is one, with the balances of all
    /// accounts that were ever posted to, in any order. Names the file if it differs.
    pub fn compare(
        &mut self,
        at: Sequence,
        balances: impl Iterator<Item = (LedgerId, Account, Balance)>,
    ) -> Result<Option<String>, StoreError> {
        let Some((cut, bytes)) = self.files.pop_front() else { return Ok(None) };
        let source = FileSource::Stored(self.store.clone(), cut.file_name());
        let file = match BalanceFile::open(source, bytes, Arc::default()) {
            Err(FileError::Store(error)) => return Err(error),
            Ok(file) if cut.through == at => file,
            _ => {
                self.unusable += 1;
                return Ok(None);
            }
        };
        let file = AsOf::of(Some(file));
        match self.is_as_folded(&file, balances) {
            Ok(is_equal) => {
                self.whole += 1;
                Ok((!is_equal).then(|| cut.file_name()))
            }
            Err(FileError::Damaged) => {
                self.unusable += 1;
                Ok(None)
            }
            Err(FileError::Store(error)) => Err(error),
        }
    }

    /// Whether a file has the balances and what the Records so far carry.
    fn is_as_folded(
        &self,
        file: &AsOf,
        balances: impl Iterator<Item = (LedgerId, Account, Balance)>,
    ) -> Result<bool, FileError> {
        let mut expected: Vec<Row> =
            balances.map(|(ledger, account, balance)| (RowKey::of(ledger, account), balance)).collect();
        expected.sort_unstable_by_key(|(key, _)| *key);
        let mut expected = expected.into_iter();
        let mut carried = self.carried.sorted_rows();
        for row in file.sorted_rows() {
            let row = row?;
            let same = if row.0.is_account() { expected.next() } else { carried.next().transpose()? };
            if same != Some(row) {
                return Ok(false);
            }
        }
        Ok(expected.next().is_none() && carried.next().transpose()?.is_none())
    }

    /// Number of files that were whole; and of those that are damaged or cover Records that are not
    /// there.
    pub fn finish(self) -> (u64, u64) {
        (self.whole, self.unusable + (self.files.len() + self.receivables.len()) as u64)
    }
}
