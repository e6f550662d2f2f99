//! Check of derived data against the journal: the runs of the index, the balance files and the
//! pages of the read model.

use std::collections::HashMap;

use ledger::invariants::GroupBooks;
use ledger::{GroupNumber, Record, Timestamp};

use super::{Promise, VerifyError, broken};
use derived::balance_files::BalanceFileCheck;
use derived::index::RunCheck;
use derived::names::Names;
use derived::read_model::{self, StoredPage};
use store::{Part, Sequence, StoreError};

/// Counts of whole and unusable parts. The next start makes the unusable ones again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DerivedParts {
    /// Runs of the index that are what the journal makes of them.
    pub runs: u64,
    /// Runs that are damaged.
    pub runs_unusable: u64,
    /// Pages of the read model with the balances of the journal.
    pub pages: u64,
    /// Pages that are damaged or of another version.
    pub pages_unusable: u64,
    /// Balance files with the balances of the journal, and receivables files with what is due.
    pub balance_files: u64,
    /// Balance files and receivables files that are damaged.
    pub balance_files_unusable: u64,
}

impl DerivedParts {
    pub(super) fn add(&mut self, others: Self) {
        self.runs += others.runs;
        self.runs_unusable += others.runs_unusable;
        self.pages += others.pages;
        self.pages_unusable += others.pages_unusable;
        self.balance_files += others.balance_files;
        self.balance_files_unusable += others.balance_files_unusable;
    }
}

/// Checks derived data with every Record, in order.
pub(super) struct DerivedCheck<'a> {
    runs: RunCheck<'a>,
    balance_files: BalanceFileCheck<'a>,
    /// The pages not yet compared, the last one first.
    pages: Vec<StoredPage>,
    found: DerivedParts,
}

impl<'a> DerivedCheck<'a> {
    pub(super) fn new(store: &'a Part) -> Result<Self, StoreError> {
        let stored_pages = read_model::stored_pages(store)?;
        let all = stored_pages.len();
        let mut pages: Vec<StoredPage> = stored_pages.into_iter().flatten().collect();
        pages.reverse();
        let pages_unusable = (all - pages.len()) as u64;
        let found = DerivedParts { pages_unusable, ..DerivedParts::default() };
        Ok(Self { runs: RunCheck::new(store)?, balance_files: BalanceFileCheck::new(store)?, pages, found })
    }

    /// Checks the parts that end with this Record; `books` have it already.
    pub(super) fn count(
        &mut self,
        (at, booked_at): (Sequence, Timestamp),
        record: &Record,
        books: &HashMap<Option<GroupNumber>, GroupBooks>,
        names: &Names,
    ) -> Result<(), VerifyError> {
        if let Some(run) = self.runs.count(at.0, record)? {
            return Err(broken(Promise::Index, Some(at), "the index", "what the journal makes of it", run.name));
        }
        self.balance_files.post(at, booked_at, record);
        let differs =
            |expected: &str, name| broken(Promise::BalanceFile, Some(at), "the balance files", expected, name);
        while self.balance_files.is_due(at) {
            let ledgers = books.values().flat_map(|books| books.ledgers());
            let balances = ledgers
                .flat_map(|(ledger, balances)| balances.iter().map(|(account, balance)| (*ledger, *account, *balance)));
            if let Some(name) = self.balance_files.compare(at, balances)? {
                return Err(differs("the balances of the journal", name));
            }
        }
        if let Some(name) = self.balance_files.compare_receivables(at)? {
            return Err(differs("the receivables of the journal", name));
        }
        while let Some(page) = self.pages.pop_if(|page| page.through <= at.0) {
            for (ledger, stored) in page.ledgers {
                let replayed = books.get(&ledger.group()).and_then(|books| books.ledgers().get(&ledger));
                if replayed.cloned().unwrap_or_default() != stored {
                    let (expected, found) = (format!("{replayed:?}"), format!("{stored:?}"));
                    return Err(broken(Promise::ReadersView, Some(at), names.of(ledger), expected, found));
                }
            }
            self.found.pages += 1;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> DerivedParts {
        let (runs, runs_unusable) = self.runs.finish();
        let (balance_files, balance_files_unusable) = self.balance_files.finish();
        let pages_unusable = self.found.pages_unusable + self.pages.len() as u64;
        DerivedParts {
            runs,
            runs_unusable,
            pages: self.found.pages,
            pages_unusable,
            balance_files,
            balance_files_unusable,
        }
    }
}
