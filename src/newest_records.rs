//! Newest Records of the journals, read once and kept decoded while they are among the newest.
//!
//! The overview shows them every second while it is watched, and `GET /ops/records` lists them.
//! Charges pay nothing for it: a Record is read from the store when somebody first asks for it, and
//! a published Record never changes. Large Records, such as those of charges with hundreds of
//! splits, are read anew each time, so that the memory is bounded.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use actors::cut::{Cut, Position};
use actors::engine::Engine;
use actors::merged::newest_first;
use actors::records::LoadError;
use actors::store::Sequence;
use ledger::record::Record;
use ledger::time::Timestamp;
use parking_lot::Mutex;

/// Records of each partition that are kept, the newest.
const KEPT_MAX: u64 = 128;
/// Facts and postings of a Record that is kept.
const PARTS_MAX: usize = 128;

/// One Record, and when it was booked.
#[derive(Clone, Debug)]
pub struct NewestRecord {
    /// Its place in the journals.
    pub at: Position,
    /// When it was booked.
    pub booked_at: Timestamp,
    /// The Record.
    pub record: Arc<Record>,
}

/// The newest Records that somebody asked for.
#[derive(Default)]
pub struct NewestRecords(Mutex<BTreeMap<Position, NewestRecord>>);

impl NewestRecords {
    /// The published Records through a cut, in the order of booking, newest first, so many at most;
    /// and those that are left. A caller may have to wait for the disk.
    pub fn through(&self, engine: &Engine, through: &Cut, most: u64) -> Result<(Vec<NewestRecord>, Cut), LoadError> {
        let head = engine.published();
        let mut rest = through.up_to(&head);
        let read = RefCell::new(Vec::new());
        let lists = rest.iter().map(|mut at| {
            let read = &read;
            move || {
                if at.sequence < Sequence::FIRST {
                    return Ok(None);
                }
                let record = self.get(engine, at)?;
                at = at.before();
                read.borrow_mut().extend(is_small(&record.record).then(|| record.clone()));
                Ok(Some((record.booked_at, record)))
            }
        });
        let mut found = Vec::new();
        for record in newest_first(lists).take(usize::try_from(most).unwrap_or(usize::MAX)) {
            let (_, record) = record?;
            rest.reach(record.at.before());
            found.push(record);
        }
        self.keep(&head, read.into_inner());
        Ok((found, rest))
    }

    fn get(&self, engine: &Engine, at: Position) -> Result<NewestRecord, LoadError> {
        if let Some(kept) = self.0.lock().get(&at) {
            return Ok(kept.clone());
        }
        let (booked_at, record) = engine.booked_record(at)?;
        Ok(NewestRecord { at, booked_at, record: Arc::new(record) })
    }

    fn keep(&self, head: &Cut, read: Vec<NewestRecord>) {
        let is_newest = |at: &Position| at.sequence.0 + KEPT_MAX > head.of(at.partition).0;
        let mut kept = self.0.lock();
        kept.retain(|at, _| is_newest(at));
        kept.extend(read.into_iter().filter(|record| is_newest(&record.at)).map(|record| (record.at, record)));
    }
}

fn is_small(record: &Record) -> bool {
    let postings = record.entries.iter().map(|entry| entry.postings().len()).sum::<usize>();
    record.events.len() + postings <= PARTS_MAX
}

#[cfg(test)]
mod tests {
    use actors::store::Partition;
    use ledger::id::LedgerId;

    use super::*;

    fn record(partition: u16, sequence: u64) -> NewestRecord {
        let record = Arc::new(Record {
            owner: LedgerId::System,
            ordinal: 1,
            effective_at: Timestamp(0),
            idempotency: None,
            operator: None,
            api_key: None,
            rail: None,
            personal: None,
            events: Vec::new(),
            entries: Vec::new(),
        });
        let at = Position { partition: Partition(partition), sequence: Sequence(sequence) };
        NewestRecord { at, booked_at: Timestamp(0), record }
    }

    #[test]
    fn the_newest_of_each_partition_are_kept_and_no_others() {
        let newest = NewestRecords::default();
        let kept = |newest: &NewestRecords| {
            newest.0.lock().keys().map(|at| (at.partition.0, at.sequence.0)).collect::<Vec<_>>()
        };
        let head = |last: [u64; 2]| Cut::new(last.map(Sequence).to_vec());
        newest.keep(&head([200, 5]), vec![record(0, 10), record(0, 73), record(0, 200), record(1, 4)]);
        assert_eq!(kept(&newest), [(0, 73), (0, 200), (1, 4)]);
        newest.keep(&head([201, 140]), vec![record(0, 201)]);
        assert_eq!(kept(&newest), [(0, 200), (0, 201)]);
    }
}
