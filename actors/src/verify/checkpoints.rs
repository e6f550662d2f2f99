//! Check of the journal against checkpoints stored elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use ledger::period::MonthEnd;
use ledger::{Balance, Event, Month, Record, Timestamp};

use super::{Promise, VerifyError, VerifyResult, broken};
use derived::checkpoint::{Checkpoint, SignedCheckpoint, digest_of, hex};
use store::{Block, Head, Partition, Sequence};

/// Refuses a checkpoint of a chain that follows one that is not there, but for the first of each
/// partition: earlier ones may be stored elsewhere. Each partition has a chain of its own.
pub fn without_gaps(checkpoints: &[SignedCheckpoint]) -> VerifyResult<()> {
    let digests: BTreeSet<[u8; 32]> = checkpoints.iter().map(|signed| signed.checkpoint.digest()).collect();
    let mut chained = BTreeMap::<_, BTreeMap<_, _>>::new();
    for Checkpoint { partition, sequence, previous, .. } in checkpoints.iter().map(|signed| signed.checkpoint) {
        if let Some(previous) = previous {
            chained.entry(partition).or_default().insert(sequence, previous);
        }
    }
    for (sequence, previous) in chained.values().flat_map(|chain| chain.iter().skip(1)) {
        if !digests.contains(previous) {
            return Err(differs(*sequence, "the checkpoint that it follows".to_owned(), "none".to_owned()));
        }
    }
    Ok(())
}

/// Checkpoints that the journal has not come to, and the sums of its accounts so far.
#[derive(Default)]
pub(super) struct CheckpointCheck {
    ahead: BTreeMap<Sequence, Vec<Checkpoint>>,
    /// The sums of all accounts of a kind, at the place of its code.
    totals: Vec<Balance>,
    /// The block before this one: its month and its last Record.
    last: Option<(Month, u64)>,
    /// What the journal held at the end of each month in which something was booked.
    month_ends: BTreeMap<Month, MonthEnd>,
}

impl CheckpointCheck {
    /// The checkpoints of one partition. Refuses one that its key did not sign, and one whose key
    /// is not that of the others.
    pub(super) fn new(checkpoints: &[SignedCheckpoint], partition: Partition) -> VerifyResult<Self> {
        let mut against = Self::default();
        for signed in checkpoints.iter().filter(|signed| signed.checkpoint.partition == partition) {
            let checkpoint = signed.checkpoint;
            let defect = |expected, found| Err(differs(checkpoint.sequence, expected, found));
            if !signed.is_genuine() {
                return defect("a signature of its key".to_owned(), "another one".to_owned());
            }
            if signed.public_key != checkpoints[0].public_key {
                let key = |signed: &SignedCheckpoint| format!("the key {}", hex(&signed.public_key));
                return defect(key(&checkpoints[0]), key(signed));
            }
            against.ahead.entry(checkpoint.sequence).or_default().push(checkpoint);
        }
        Ok(against)
    }

    pub(super) fn count(&mut self, record: &Record) {
        for posting in record.entries.iter().flat_map(|entry| entry.postings()) {
            let code = usize::from(posting.account.code().0);
            if self.totals.len() <= code {
                self.totals.resize(code + 1, Balance::default());
            }
            self.totals[code].post(posting);
        }
    }

    /// Looks whether a block begins a month, before its Records are counted.
    pub(super) fn begin_block(&mut self, block: &Block) {
        let month = Timestamp(block.booked_at_ms).month();
        if let Some((before, through)) = self.last.filter(|(before, _)| *before != month) {
            let (head, totals) = (block.previous.0.into(), digest_of(&self.totals).into());
            self.month_ends.insert(before, MonthEnd { through, head, totals });
        }
    }

    /// Compares the months that a Record closes with the journal: what it held at their ends.
    pub(super) fn periods(&self, at: Sequence, record: &Record) -> VerifyResult<()> {
        for event in &record.events {
            let Event::PeriodClosed { month, end } = event else { continue };
            let nothing = MonthEnd { through: 0, head: [0; 32].into(), totals: digest_of(&[]).into() };
            let found = self.month_ends.range(..=*month).next_back().map_or(nothing, |(_, end)| *end);
            if found != *end {
                return Err(broken(Promise::Period, Some(at), "the journal", described(end), described(&found)));
            }
        }
        Ok(())
    }

    /// Compares the checkpoints at the end of a block, whose Records are counted.
    pub(super) fn end_of_block(&mut self, block: &Block) -> VerifyResult<()> {
        let last = Sequence(block.next().0 - 1);
        self.last = Some((Timestamp(block.booked_at_ms).month(), last.0));
        let Some(due) = self.ahead.first_entry().filter(|due| *due.key() <= last) else { return Ok(()) };
        let sequence = *due.key();
        if sequence < last {
            return Err(differs(
                sequence,
                "a block that ends there".to_owned(),
                format!("one that ends with {}", last.0),
            ));
        }
        for checkpoint in due.remove() {
            let (head, booked_at_ms, totals) = (block.hash(), block.booked_at_ms, digest_of(&self.totals));
            let (partition, previous) = (block.partition, checkpoint.previous);
            let found = Checkpoint { partition, sequence: last, booked_at_ms, head, totals, previous };
            if checkpoint != found {
                return Err(differs(sequence, on_one_line(&checkpoint), on_one_line(&found)));
            }
        }
        Ok(())
    }

    /// Refuses a journal that ends before a checkpoint.
    pub(super) fn finish(&self, head: Head) -> VerifyResult<()> {
        let Some(sequence) = self.ahead.keys().next() else { return Ok(()) };
        let found = format!("a journal that ends with Record {}", head.next.0 - 1);
        Err(differs(*sequence, "this Record".to_owned(), found))
    }
}

/// The end of a month in words.
fn described(end: &MonthEnd) -> String {
    let MonthEnd { through, head, totals } = end;
    format!("Record {through}, head {}, totals {}", hex(&**head), hex(&**totals))
}

fn on_one_line(checkpoint: &Checkpoint) -> String {
    checkpoint.text().trim_end().replace('\n', ", ")
}

fn differs(sequence: Sequence, expected: String, found: String) -> VerifyError {
    broken(Promise::Checkpoint, Some(sequence), "the journal", expected, found)
}
