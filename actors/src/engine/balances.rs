//! Balances: as published, and as they were at a cut of the past. What is about all partitions is
//! put together from what each of them says.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use ledger::{Account, Balance, Balances, Entry, LedgerId, Timestamp};

use super::Engine;
use super::shard::Shard;
use derived::balance_files::{AsOf, BooksAsOf, SumsAsOf};
use derived::checkpoint::{Checkpoint, SignedCheckpoint};
use derived::read_model::DayFigures;
use derived::records::{LoadError, Result};
use store::cut::head_hash;
use store::{BlockHash, Cut, Partition, Position, Sequence};

/// Time between two looks at a block that is being published.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(1);
/// A ledger with entries in more than this part of the Records is read with all others.
const READ_ALONE_PART: u64 = 8;

/// A part of the trial balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialBalance {
    /// The Records through these are folded.
    pub through: Cut,
    /// True when debits equal credits in every ledger.
    pub is_balanced: bool,
    /// Accounts of all ledgers.
    pub total: u64,
    /// The accounts of this part, ledger by ledger.
    pub rows: Vec<(LedgerId, Account, Balance)>,
}

/// Sums of the accounts of all ledgers by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The Records through these are folded.
    pub through: Cut,
    /// True when debits equal credits in every ledger.
    pub is_balanced: bool,
    /// The sums, in the order of the chart. A recipient's account stands for all of its kind.
    pub kinds: Vec<(Account, Balance)>,
}

/// Balances as published.
impl Engine {
    /// The balances of a ledger's accounts as published. What is due is not booked first: for lists
    /// of many ledgers.
    pub fn published_accounts(&self, ledger: LedgerId) -> Balances {
        self.shard_of(ledger).read_model().balances(ledger)
    }

    /// Every account of every ledger in order, and the cut through which they are folded.
    pub fn trial_balance(&self) -> (Cut, Vec<(LedgerId, Account, Balance)>) {
        let (mut through, mut rows) = (Vec::new(), Vec::new());
        for shard in self.shards.all() {
            let (last, of_shard) = shard.read_model().trial_balance();
            through.push(last);
            rows.extend(of_shard);
        }
        rows.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
        (Cut::new(through), rows)
    }

    /// A part of the trial balance: up to `most` accounts from the one at place `skip`, partition
    /// by partition, each at one cut.
    pub fn trial_balance_page(&self, skip: u64, most: usize) -> TrialBalance {
        let (mut through, mut is_balanced, mut total, mut rows) = (Vec::new(), true, 0, Vec::new());
        for shard in self.shards.all() {
            let page = shard.read_model().trial_balance_page(skip.saturating_sub(total), most - rows.len());
            through.push(page.through);
            is_balanced &= page.is_balanced;
            total += page.total;
            rows.extend(page.rows);
        }
        TrialBalance { through: Cut::new(through), is_balanced, total, rows }
    }

    /// The sums of the accounts of all ledgers by kind.
    pub fn totals(&self) -> Totals {
        let (mut through, mut is_balanced, mut sums) = (Vec::new(), true, Vec::new());
        for shard in self.shards.all() {
            let (last, of_shard_balanced, of_shard) = shard.read_model().totals();
            through.push(last);
            is_balanced &= of_shard_balanced;
            sums.resize(sums.len().max(of_shard.len()), Balance::default());
            sums.iter_mut().zip(of_shard).for_each(|(sum, of_shard): (&mut Balance, _)| sum.add(of_shard));
        }
        let kinds = (0..).zip(sums).filter(|(_, sum)| *sum != Balance::default());
        let kinds = kinds.filter_map(|(code, sum)| Some((Account::of_kind(code)?, sum))).collect();
        Totals { through: Cut::new(through), is_balanced, kinds }
    }

    /// The figures of the last [`super::DAYS_MAX`] days with Records, of all partitions, by day
    /// (days since 1970-01-01).
    pub fn daily_figures(&self) -> BTreeMap<u32, DayFigures> {
        let mut days = BTreeMap::<u32, DayFigures>::new();
        for figures in self.shards.all().iter().flat_map(|shard| shard.read_model().daily_figures()) {
            let day = figures.day;
            days.entry(day).or_insert_with(|| DayFigures { day, ..DayFigures::default() }).add(&figures);
        }
        days
    }

    /// A signed statement of what the journal of a partition holds now, which follows the
    /// checkpoint with the digest `previous`; none while it holds nothing. For a thread that
    /// may wait.
    pub fn checkpoint(&self, partition: Partition, previous: Option<[u8; 32]>) -> Result<Option<SignedCheckpoint>> {
        let Some(shard) = self.shards.get(partition) else { return Ok(None) };
        loop {
            let (sequence, totals) = shard.read_model().digest_of_totals();
            if sequence < Sequence::FIRST {
                return Ok(None);
            }
            let block = shard.part().blocks(sequence).next().transpose()?;
            // A block that is being published may have ended since.
            let Some(block) = block.filter(|block| block.next() == sequence.plus(1)) else {
                thread::sleep(CHECKPOINT_PAUSE);
                continue;
            };
            let (partition, booked_at_ms, head) = (block.partition, block.booked_at_ms, block.hash());
            let checkpoint = Checkpoint { partition, sequence, booked_at_ms, head, totals, previous };
            return Ok(Some(self.keyring().sign(checkpoint)));
        }
    }
}

/// Books of the past, for threads that may wait.
impl Engine {
    /// What each partition says, with the last Record of it that counts.
    fn of_each<T>(
        &self,
        through: &Cut,
        of_shard: impl Fn(&Shard, Sequence) -> Result<T>,
    ) -> Result<Vec<(Partition, T)>> {
        let shards = self.shards.all().into_iter().map(|shard| {
            let partition = shard.part().partition();
            Ok((partition, of_shard(&shard, through.of(partition).min(shard.published()))?))
        });
        shards.collect()
    }

    fn books(&self, through: &Cut, of_shard: impl Fn(&Shard, Sequence) -> Result<AsOf>) -> Result<BooksAsOf> {
        self.of_each(through, of_shard).map(BooksAsOf::new)
    }

    /// The balances of all ledgers at a published cut; those before the first Record for an empty
    /// one.
    pub fn balances_as_of(&self, through: &Cut) -> Result<BooksAsOf> {
        self.books(through, |shard, through| shard.balance_files.as_of(through))
    }

    /// The balances of the nearest balance files within a published cut that were cut before a
    /// time; those before the first Record where there is none. With what is due then for a report
    /// of receivables.
    pub fn balances_before(&self, time: Timestamp, through: &Cut, has_receivables: bool) -> Result<BooksAsOf> {
        self.books(through, |shard, through| shard.balance_files.nearest_before(time, through, has_receivables))
    }

    /// Reads the balances of all ledgers at a published cut; and once more when it comes upon a
    /// damaged page of a balance file, after the file was made again.
    pub fn read_as_of<T>(&self, through: &Cut, read: impl Fn(&BooksAsOf) -> Result<T>) -> Result<T> {
        let read = || read(&self.balances_as_of(through)?);
        match read() {
            Err(LoadError::DamagedBalances) => {
                self.shards.all().iter().try_for_each(|shard| shard.balance_files.mend())?;
                read()
            }
            read => read,
        }
    }

    /// The sums of all ledgers at a published cut.
    pub fn sums_as_of(&self, through: &Cut) -> Result<SumsAsOf> {
        self.read_as_of(through, BooksAsOf::sums)
    }

    /// The balances of one ledger at a published cut.
    pub fn ledger_as_of(&self, ledger: LedgerId, through: &Cut) -> Result<Balances> {
        let shard = self.shard_of(ledger);
        let through = through.of(shard.part().partition()).min(shard.published());
        shard.balance_files.read(|| {
            let nearest = shard.balance_files.nearest(through)?;
            let moved = shard.read_model().entries_between(ledger, nearest.through(), through)?;
            if moved.len() as u64 > (through.0 - nearest.through().0) / READ_ALONE_PART {
                return shard.balance_files.as_of(through)?.ledger(ledger);
            }
            let mut balances = nearest.ledger(ledger)?;
            for sequence in moved {
                let record = shard.record(sequence)?;
                for posting in record.entries_of(ledger).flat_map(Entry::postings) {
                    balances.entry(posting.account).or_default().post(posting);
                }
            }
            Ok(balances)
        })
    }

    /// The last published Records that were booked before a time.
    pub fn last_booked_before(&self, time: Timestamp) -> Result<Cut> {
        let last = self.shards.all().into_iter().map(|shard| shard.last_booked_before(time));
        last.collect::<Result<_, _>>().map(Cut::new)
    }

    /// When the last Record of a cut was booked; none for an empty one.
    pub fn booked_at(&self, cut: &Cut) -> Result<Option<Timestamp>> {
        let mut latest = None;
        for at in cut.iter().filter(|at| at.sequence >= Sequence::FIRST) {
            latest = latest.max(Some(self.booked_record(at)?.0));
        }
        Ok(latest)
    }

    /// Hash of everything through a cut: see [`head_hash`].
    pub fn head_hash(&self, cut: &Cut) -> Result<BlockHash> {
        let of = |at: Position| Ok(self.block(at)?.map_or(BlockHash::ZERO, |block| block.hash()));
        let hashes: Result<Vec<_>> = cut.iter().map(of).collect();
        Ok(head_hash(&hashes?))
    }

    /// Makes the balance files that are missing now, so that a test finds the same files every
    /// time. Those of partitions of others are their owners' to write.
    pub fn settle_balance_files(&self) -> Result<()> {
        self.shards.owned().iter().try_for_each(|shard| shard.balance_files.settle(shard.published()))
    }
}
