//! Balances as of a Record: the nearest balance file before it, and the Records after that file.

use std::collections::BTreeMap;
use std::iter::Peekable;

use ledger::account::Account;
use ledger::entry::{Balance, Balances, Entry};
use ledger::id::LedgerId;
use ledger::record::Record;

use super::file::{BalanceFile, FileError, Key, Row, Rows};
use crate::records::LoadError;
use crate::store::{Block, Part, Sequence, StoreError};

/// Every account of every ledger after a Record of the past.
pub struct AsOf {
    pub(super) file: Option<BalanceFile>,
    /// The sums of the Records after the file.
    pub(super) moved: BTreeMap<Key, Balance>,
    pub(super) through: Sequence,
    /// When the last Record was booked, milliseconds since 1970 (UTC).
    pub(super) booked_at_ms: i64,
}

/// Sums of all ledgers after a Record of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumsAsOf {
    /// The last Record that counts.
    pub through: Sequence,
    /// Whether debits equal credits in every ledger.
    pub is_balanced: bool,
    /// The sums by kind of account, in the order of the chart's codes.
    pub kinds: Vec<SumOfKind>,
}

/// Sum of the accounts of one kind over all ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumOfKind {
    /// One account of the kind. A recipient's account stands for all of its kind.
    pub account: Account,
    /// The sum.
    pub balance: Balance,
    /// How many accounts are of this kind.
    pub count: u64,
}

/// Rows between two reports of progress.
const TOLD_EVERY: u64 = 1_024;

impl AsOf {
    /// The balances of a file; those before the first Record without one.
    pub(super) fn of(file: Option<BalanceFile>) -> Self {
        let cut = file.as_ref().map(BalanceFile::cut);
        let (through, booked_at_ms) = cut.map_or((Sequence(0), 0), |cut| (cut.through, cut.booked_at_ms));
        Self { file, moved: BTreeMap::new(), through, booked_at_ms }
    }

    /// The last Record that counts.
    pub fn through(&self) -> Sequence {
        self.through
    }

    /// When it was booked, milliseconds since 1970 (UTC); 0 before the first Record.
    pub fn booked_at_ms(&self) -> i64 {
        self.booked_at_ms
    }

    /// Adds the Records of a block that are not counted yet, through `last`.
    pub(super) fn post(&mut self, block: &Block, last: Sequence) -> Result<(), LoadError> {
        let counted = self.through.0;
        for (sequence, bytes) in (block.first.0..=last.0).zip(&block.records).filter(|(at, _)| *at > counted) {
            let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
            record.entries.iter().for_each(|entry| self.post_entry(entry));
        }
        let last = last.min(Sequence(block.next().0 - 1));
        if last > self.through {
            (self.through, self.booked_at_ms) = (last, block.booked_at_ms);
        }
        Ok(())
    }

    fn post_entry(&mut self, entry: &Entry) {
        for posting in entry.postings() {
            self.moved.entry(Key::of(entry.ledger(), posting.account)).or_default().post(posting);
        }
    }

    /// Adds the Records through `last`, which is durable. `told` gets the last Record that was
    /// added, block by block.
    pub(super) fn catch_up(&mut self, store: &Part, last: Sequence, told: impl Fn(Sequence)) -> Result<(), LoadError> {
        if self.through >= last {
            return Ok(());
        }
        for block in store.blocks(self.through.plus(1)) {
            self.post(&block?, last)?;
            told(self.through);
            if self.through >= last {
                break;
            }
        }
        Ok(())
    }

    /// The rows of all accounts in the order of a file.
    pub(super) fn sorted_rows(&self) -> SortedRows<'_> {
        self.rows_from(Key::first_of(LedgerId::Merchant(Default::default())))
    }

    fn rows_from(&self, key: Key) -> SortedRows<'_> {
        let kept = self.file.as_ref().map(|file| file.rows_from(key).peekable());
        SortedRows { kept, moved: self.moved.range(key..).peekable() }
    }

    /// All accounts, group by group, each with its merchant, the platform's shard and its
    /// recipients, and the house last. For a thread that may wait.
    pub fn rows(&self) -> impl Iterator<Item = Result<(LedgerId, Account, Balance), LoadError>> + '_ {
        self.sorted_rows().map(read)
    }

    /// The accounts of one ledger.
    pub fn ledger(&self, ledger: LedgerId) -> Result<Balances, LoadError> {
        let rows = self.rows_from(Key::first_of(ledger)).map(read);
        let own = rows.take_while(|row| row.as_ref().map_or(true, |(of, ..)| *of == ledger));
        own.map(|row| row.map(|(_, account, balance)| (account, balance))).collect()
    }

    /// The sums of all ledgers, in one pass. `told` gets how many accounts were read.
    pub fn sums(&self, told: impl Fn(u64)) -> Result<SumsAsOf, LoadError> {
        let mut sums: BTreeMap<u16, (Balance, u64)> = BTreeMap::new();
        let (mut ledger, mut net, mut is_balanced) = (None, 0, true);
        for (read, row) in (1..).zip(self.rows()) {
            let (of, account, balance) = row?;
            if ledger != Some(of) {
                is_balanced &= net == 0;
                (ledger, net) = (Some(of), 0);
            }
            net += balance.net();
            let (sum, count) = sums.entry(account.code().0).or_default();
            sum.add(balance);
            *count += 1;
            if u64::is_multiple_of(read, TOLD_EVERY) {
                told(read);
            }
        }
        let kinds = sums.into_iter().filter_map(|(code, (balance, count))| {
            Some(SumOfKind { account: Account::of_kind(code)?, balance, count })
        });
        Ok(SumsAsOf { through: self.through, is_balanced: is_balanced && net == 0, kinds: kinds.collect() })
    }

    /// How many accounts the file has, and how many were changed after it.
    pub(super) fn counts(&self) -> (u64, usize) {
        (self.file.as_ref().map_or(0, BalanceFile::count), self.moved.len())
    }
}

fn read(row: Result<Row, FileError>) -> Result<(LedgerId, Account, Balance), LoadError> {
    let (key, balance) = row.map_err(unreadable)?;
    let (ledger, account) = key.account().ok_or_else(|| unreadable(FileError::Damaged))?;
    Ok((ledger, account, balance))
}

/// The error for a file that was whole when it was opened.
fn unreadable(error: FileError) -> LoadError {
    LoadError::Store(match error {
        FileError::Store(error) => error,
        FileError::Damaged => {
            StoreError::Damaged { folder: "balances".into(), sequence: None, detail: error.to_string() }
        }
    })
}

/// Rows of a file and of the Records after it, merged.
pub(super) struct SortedRows<'a> {
    kept: Option<Peekable<Rows<'a>>>,
    moved: Peekable<std::collections::btree_map::Range<'a, Key, Balance>>,
}

impl Iterator for SortedRows<'_> {
    type Item = Result<Row, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let moved = self.moved.peek().map(|(key, _)| **key);
        let kept = match self.kept.as_mut().and_then(Peekable::peek) {
            Some(Ok((key, _))) => Some(*key),
            Some(Err(_)) => return self.kept.as_mut().and_then(Iterator::next),
            None => None,
        };
        let takes_kept = kept.is_some_and(|kept| moved.is_none_or(|moved| kept <= moved));
        let takes_moved = moved.is_some_and(|moved| kept.is_none_or(|kept| moved <= kept));
        let mut row = if takes_kept { self.kept.as_mut()?.next()?.ok() } else { None };
        if takes_moved {
            let (key, balance) = self.moved.next()?;
            row.get_or_insert((*key, Balance::default())).1.add(*balance);
        }
        row.map(Ok)
    }
}
