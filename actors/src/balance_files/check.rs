//! Check of the balance files against the journal, for `verify`, which reads the whole journal
//! anyway.

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::account::Account;
use ledger::entry::Balance;
use ledger::id::LedgerId;

use super::as_of::AsOf;
use super::file::{BalanceFile, Cut, FileError};
use crate::records::LoadError;
use crate::store::{Part, Sequence, StoreError};

/// Compares every balance file with the sums of the Records through its cut.
pub(crate) struct BalanceFileCheck<'a> {
    store: &'a Part,
    /// The files not yet compared, in order, each with its bytes.
    files: VecDeque<(Cut, u64)>,
    whole: u64,
    unusable: u64,
}

impl<'a> BalanceFileCheck<'a> {
    /// Lists the files.
    pub(crate) fn new(store: &'a Part) -> Result<Self, StoreError> {
        let found = store.files()?.into_iter().filter_map(|(name, bytes)| Some((Cut::of_file_name(&name)?, bytes)));
        let mut files: Vec<_> = found.collect();
        files.sort_unstable();
        Ok(Self { store, files: files.into(), whole: 0, unusable: 0 })
    }

    /// Whether a file ends with this Record.
    pub(crate) fn is_due(&self, at: Sequence) -> bool {
        self.files.front().is_some_and(|(cut, _)| cut.through <= at)
    }

    /// Compares the file that ends with this Record, if there is one, with the balances of all
    /// accounts that were ever posted to, in any order. Names the file if it differs.
    pub(crate) fn compare(
        &mut self,
        at: Sequence,
        balances: impl Iterator<Item = (LedgerId, Account, Balance)>,
    ) -> Result<Option<String>, StoreError> {
        let Some((cut, bytes)) = self.files.pop_front() else { return Ok(None) };
        let file = match BalanceFile::open(self.store, cut, bytes, Arc::default()) {
            Err(FileError::Store(error)) => return Err(error),
            Ok(file) if cut.through == at => file,
            _ => {
                self.unusable += 1;
                return Ok(None);
            }
        };
        let kept: Result<Vec<_>, LoadError> = AsOf::of(Some(file)).rows().collect();
        match kept {
            Ok(mut kept) => {
                let mut expected: Vec<_> = balances.collect();
                expected.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
                kept.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
                self.whole += 1;
                Ok((kept != expected).then(|| cut.file_name()))
            }
            Err(LoadError::Store(StoreError::Damaged { .. })) => {
                self.unusable += 1;
                Ok(None)
            }
            Err(LoadError::Store(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Number of files that were whole; and of those that are damaged or cover Records that are not
    /// there.
    pub(crate) fn finish(self) -> (u64, u64) {
        (self.whole, self.unusable + self.files.len() as u64)
    }
}
