//! Balances as of a Record: the nearest balance file before it, and the Records after that file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::iter::Peekable;
use std::sync::Arc;

use ledger::{
    Account, Balance, Balances, GroupNumber, LedgerId, Month, ObjectId, Receivables, Record, Settings, Timestamp,
};

use super::carried_facts::{AnticipatedOn, AnticipatedSums, CarriedFact, Change, Changes, Kind, RowKey, SettingsPart};
use super::file::{self, BalanceFile, FileCut, FileError, FileSource, Row, Rows};
use crate::records::{LoadError, Result};
use store::{Block, Part, Sequence, StoreError};

/// Every account of every ledger after a Record of the past, and what else a balance file has.
pub struct AsOf {
    pub(super) file: Option<BalanceFile>,
    /// The changes by the Records after the file.
    pub(super) moved: Changes,
    pub(super) through: Sequence,
    /// When the last Record was booked, milliseconds since 1970 (UTC).
    pub(super) booked_at_ms: i64,
    /// What is due to whom; `None` if nobody asked for it.
    pub(super) receivables: Option<Receivables>,
}

/// Sums of all ledgers of a partition after a Record of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
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

impl AsOf {
    /// The balances of a file; those before the first Record without one.
    pub(super) fn of(file: Option<BalanceFile>) -> Self {
        let cut = file.as_ref().map(BalanceFile::cut);
        let (through, booked_at_ms) = cut.map_or((Sequence(0), 0), |cut| (cut.through, cut.booked_at_ms));
        Self { file, moved: Changes::default(), through, booked_at_ms, receivables: None }
    }

    /// Reads a balance file outside of a store.
    pub fn of_file(file: File) -> Result<Self> {
        let bytes = file.metadata().map_err(|error| unreadable(FileError::Store(machine(error))))?.len();
        BalanceFile::open(FileSource::Alone(file), bytes, Arc::default())
            .map(|file| Self::of(Some(file)))
            .map_err(unreadable)
    }

    /// Writes all of it as a balance file.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        file::write(self.cut(), self.sorted_rows(), out)?.map_err(|_unreadable| io::ErrorKind::InvalidData.into())
    }

    /// The last Record that counts.
    pub fn through(&self) -> Sequence {
        self.through
    }

    /// When it was booked, milliseconds since 1970 (UTC); 0 before the first Record.
    pub fn booked_at_ms(&self) -> i64 {
        self.booked_at_ms
    }

    /// What is due to whom, for one who asked for it; nothing before the first Record.
    pub fn take_receivables(&mut self) -> Receivables {
        self.receivables.take().unwrap_or_default()
    }

    /// Adds the Records of a block that are not counted yet, through `last`.
    pub(super) fn post(&mut self, block: &Block, last: Sequence) -> Result<()> {
        let counted = self.through.0;
        for (sequence, bytes) in (block.first.0..=last.0).zip(&block.records).filter(|(at, _)| *at > counted) {
            let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
            self.moved.post(Sequence(sequence), Timestamp(block.booked_at_ms), &record);
        }
        let last = last.min(Sequence(block.next().0 - 1));
        if last > self.through {
            (self.through, self.booked_at_ms) = (last, block.booked_at_ms);
        }
        Ok(())
    }

    /// Adds the Records through `last`, which is durable.
    pub(super) fn catch_up(&mut self, store: &Part, last: Sequence) -> Result<()> {
        if self.through >= last {
            return Ok(());
        }
        for block in store.blocks(self.through.plus(1)) {
            self.post(&block?, last)?;
            if self.through >= last {
                break;
            }
        }
        Ok(())
    }

    /// All rows in the order of a file.
    pub(super) fn sorted_rows(&self) -> SortedRows<'_> {
        self.rows_from(RowKey::FIRST)
    }

    fn rows_from(&self, key: RowKey) -> SortedRows<'_> {
        let rows = self.file.as_ref().map(|file| file.rows_from(key).peekable());
        SortedRows {
            stored: rows,
            moved: self.moved.0.range(key..).peekable(),
            day: Timestamp(self.booked_at_ms).day(),
        }
    }

    /// Facts in the rows of one kind, of one group or of all.
    fn facts(&self, kind: Kind, group: Option<GroupNumber>) -> impl Iterator<Item = Result<CarriedFact>> + '_ {
        let (first, last) = RowKey::all_of(kind, group);
        let rows = self.rows_from(first).take_while(move |row| row.as_ref().map_or(true, |(key, _)| *key <= last));
        rows.map(read)
    }

    /// Ids and accounts, group by group, each with its merchant, the platform's shard and its
    /// recipients, and the house last; the id of a ledger before its accounts. Of one group, or of
    /// all. For a thread that may wait.
    pub fn ledgers(&self, group: Option<GroupNumber>) -> impl Iterator<Item = Result<CarriedFact>> + '_ {
        self.facts(Kind::Ledgers, group)
    }

    /// The ids of merchants and recipients, in the same order.
    pub fn ids(&self) -> impl Iterator<Item = Result<(LedgerId, ObjectId)>> + '_ {
        self.ledgers(None).filter_map(|fact| match fact {
            Ok(CarriedFact::Ledger(ledger, id)) => Some(Ok((ledger, id))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// All accounts, in the same order. For a thread that may wait.
    pub fn rows(&self) -> impl Iterator<Item = Result<(LedgerId, Account, Balance)>> + '_ {
        self.ledgers(None).filter_map(|fact| match fact {
            Ok(CarriedFact::Account(ledger, account, balance)) => Some(Ok((ledger, account, balance))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// The accounts of one ledger.
    pub fn ledger(&self, ledger: LedgerId) -> Result<Balances> {
        let rows = self.rows_from(RowKey::first_of(ledger)).map(read);
        let mut balances = Balances::new();
        for fact in rows {
            match fact? {
                CarriedFact::Account(of, account, balance) if of == ledger => drop(balances.insert(account, balance)),
                CarriedFact::Ledger(of, _) if of == ledger => {}
                _ => break,
            }
        }
        Ok(balances)
    }

    /// The pending charges of one group, or of all: [`CarriedFact::Pending`].
    pub fn pending(&self, group: Option<GroupNumber>) -> impl Iterator<Item = Result<CarriedFact>> + '_ {
        self.facts(Kind::Pending, group)
    }

    /// How many card charges wait for the acquirer's answer. For a thread that may wait.
    pub fn unanswered_cards(&self) -> Result<u64> {
        let mut count = 0;
        for fact in self.pending(None) {
            count += u64::from(matches!(fact?, CarriedFact::Pending { brand: Some(_), .. }));
        }
        Ok(count)
    }

    /// The Record that opened a pending charge; `None` if it is not pending.
    pub fn opened(&self, group: GroupNumber, ordinal: u64) -> Result<Option<Sequence>> {
        let key = RowKey::pending(group, ordinal);
        let row = self.rows_from(key).next().transpose().map_err(unreadable)?.filter(|(found, _)| *found == key);
        Ok(match row.map(|row| read(Ok(row))).transpose()? {
            Some(CarriedFact::Pending { opened, .. }) => Some(opened),
            _ => None,
        })
    }

    /// The settings of a merchant, in order, each with the Record that set them.
    pub fn settings(&self, group: GroupNumber) -> Result<Vec<(Sequence, Settings)>> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        let mut facts = self.facts(Kind::Settings, Some(group)).peekable();
        while let Some(CarriedFact::Settings(_, by, part)) = facts.next().transpose()? {
            part.add_to(&mut bytes);
            let goes_on = matches!(facts.peek(), Some(Ok(CarriedFact::Settings(_, next, _))) if *next == by);
            if !goes_on {
                found.push((by, SettingsPart::read(&bytes).ok_or_else(|| unreadable(FileError::Damaged))?));
            }
        }
        Ok(found)
    }

    /// The sums of splits that were anticipated and are due today or later.
    pub fn anticipated(&self) -> Result<BTreeMap<AnticipatedOn, AnticipatedSums>> {
        let mut all: BTreeMap<AnticipatedOn, AnticipatedSums> = BTreeMap::new();
        for fact in self.facts(Kind::Anticipated, None) {
            let CarriedFact::Anticipated(on, AnticipatedSums { amount, discount, count }) = fact? else { continue };
            let sums = all.entry(on).or_default();
            sums.amount += amount;
            sums.discount += discount;
            sums.count += count;
        }
        Ok(all)
    }

    /// The months that were closed, in order, each with the Record that closed it.
    pub fn closed(&self) -> Result<Vec<(Month, Sequence)>> {
        let mut all = Vec::new();
        for fact in self.facts(Kind::Closed, None) {
            if let CarriedFact::Closed(month, by) = fact? {
                all.push((month, by));
            }
        }
        Ok(all)
    }

    /// The sums of all ledgers, in one pass.
    pub fn sums(&self) -> Result<Sums> {
        let mut sums: BTreeMap<u16, (Balance, u64)> = BTreeMap::new();
        let (mut ledger, mut net, mut is_balanced) = (None, 0, true);
        for row in self.rows() {
            let (of, account, balance) = row?;
            if ledger != Some(of) {
                is_balanced &= net == 0;
                (ledger, net) = (Some(of), 0);
            }
            net += balance.net();
            let (sum, count) = sums.entry(account.code().0).or_default();
            sum.add(balance);
            *count += 1;
        }
        let kinds = sums.into_iter().filter_map(|(code, (balance, count))| {
            Some(SumOfKind { account: Account::of_kind(code)?, balance, count })
        });
        Ok(Sums { is_balanced: is_balanced && net == 0, kinds: kinds.collect() })
    }

    /// Reads all rows, so that nobody comes upon a damaged one later.
    pub(super) fn check(&self) -> Result<(), FileError> {
        self.sorted_rows().try_for_each(|row| row.map(drop))
    }

    pub(super) fn cut(&self) -> FileCut {
        FileCut { through: self.through, booked_at_ms: self.booked_at_ms }
    }
}

fn read(row: Result<Row, FileError>) -> Result<CarriedFact> {
    let (key, balance) = row.map_err(unreadable)?;
    key.fact(balance).ok_or_else(|| unreadable(FileError::Damaged))
}

fn machine(source: io::Error) -> StoreError {
    StoreError::Machine { folder: "balances".into(), source }
}

/// The error for a file that was whole when it was opened.
fn unreadable(error: FileError) -> LoadError {
    match error {
        FileError::Store(error) => error.into(),
        FileError::Damaged => LoadError::DamagedBalances,
    }
}

/// Rows of a file and of the Records after it, merged.
pub(super) struct SortedRows<'a> {
    stored: Option<Peekable<Rows<'a>>>,
    moved: Peekable<std::collections::btree_map::Range<'a, RowKey, Change>>,
    /// The day of the last Record: what was due before it is over.
    day: u32,
}

impl SortedRows<'_> {
    /// The next place, and its numbers if it still has a row.
    fn next_merged(&mut self) -> Option<Result<(RowKey, Option<Balance>), FileError>> {
        let moved = self.moved.peek().map(|(key, _)| **key);
        let key_in_file = match self.stored.as_mut().and_then(Peekable::peek) {
            Some(Ok((key, _))) => Some(*key),
            Some(Err(_)) => return self.stored.as_mut()?.next()?.err().map(Err),
            None => None,
        };
        let key = key_in_file.into_iter().chain(moved).min()?;
        let row = if key_in_file == Some(key) { self.stored.as_mut()?.next()?.ok() } else { None };
        let mut numbers = row.map(|(_, numbers)| numbers);
        if moved == Some(key) {
            match self.moved.next()?.1 {
                Change::Add(sums) => numbers.get_or_insert_default().add(*sums),
                Change::Put(put) => numbers = Some(*put),
                Change::Gone => numbers = None,
            }
        }
        Some(Ok((key, numbers)))
    }
}

impl Iterator for SortedRows<'_> {
    type Item = Result<Row, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_merged()? {
                Ok((key, Some(numbers))) if !key.is_over(self.day) => return Some(Ok((key, numbers))),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
