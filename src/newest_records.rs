//! Newest Records of the journal, read once and kept decoded while they are among the newest.
//!
//! The overview shows them every second while it is watched, and `GET /ops/records` lists them.
//! Charges pay nothing for it: a Record is read from the store when somebody first asks for it, and
//! a published Record never changes. Large Records, such as those of charges with hundreds of
//! splits, are read anew each time, so that the memory is bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::engine::Engine;
use actors::records::LoadError;
use actors::store::Sequence;
use ledger::record::Record;
use ledger::time::Timestamp;
use parking_lot::Mutex;

/// Records that are kept, the newest.
const KEPT_MAX: u64 = 128;
/// Facts and postings of a Record that is kept.
const PARTS_MAX: usize = 128;

/// One Record, and when it was booked.
#[derive(Clone, Debug)]
pub struct NewestRecord {
    /// Its place in the journal.
    pub sequence: Sequence,
    /// When it was booked.
    pub booked_at: Timestamp,
    /// The Record.
    pub record: Arc<Record>,
}

/// The newest Records that somebody asked for.
#[derive(Default)]
pub struct NewestRecords(Mutex<BTreeMap<Sequence, NewestRecord>>);

impl NewestRecords {
    /// The published Records before a place of the journal, newest first, so many at most. A caller
    /// may have to wait for the disk.
    pub fn before(&self, engine: &Engine, before: Sequence, most: u64) -> Result<Vec<NewestRecord>, LoadError> {
        let head = engine.published().0;
        let end = before.0.min(head + 1);
        let wanted = (end.saturating_sub(most).max(1)..end).rev().map(Sequence);
        let found: Vec<_> = {
            let kept = self.0.lock();
            wanted.map(|sequence| (sequence, kept.get(&sequence).cloned())).collect()
        };
        let mut records = Vec::with_capacity(found.len());
        let mut read = Vec::new();
        for (sequence, kept) in found {
            if let Some(kept) = kept {
                records.push(kept);
                continue;
            }
            let (booked_at, record) = engine.booked_record(sequence)?;
            let record = NewestRecord { sequence, booked_at, record: Arc::new(record) };
            read.extend(is_small(&record.record).then(|| record.clone()));
            records.push(record);
        }
        self.keep(head, read);
        Ok(records)
    }

    fn keep(&self, head: u64, read: Vec<NewestRecord>) {
        let first = Sequence(head.saturating_sub(KEPT_MAX) + 1);
        let mut kept = self.0.lock();
        if kept.keys().next().is_some_and(|oldest| *oldest < first) {
            *kept = kept.split_off(&first);
        }
        kept.extend(read.into_iter().filter(|record| record.sequence >= first).map(|record| (record.sequence, record)));
    }
}

fn is_small(record: &Record) -> bool {
    let postings = record.entries.iter().map(|entry| entry.postings().len()).sum::<usize>();
    record.events.len() + postings <= PARTS_MAX
}

#[cfg(test)]
mod tests {
    use ledger::id::LedgerId;

    use super::*;

    fn record(sequence: u64) -> NewestRecord {
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
        NewestRecord { sequence: Sequence(sequence), booked_at: Timestamp(0), record }
    }

    #[test]
    fn the_newest_are_kept_and_no_others() {
        let newest = NewestRecords::default();
        let kept = |newest: &NewestRecords| newest.0.lock().keys().map(|sequence| sequence.0).collect::<Vec<_>>();
        newest.keep(200, vec![record(10), record(73), record(200)]);
        assert_eq!(kept(&newest), [73, 200]);
        newest.keep(201, vec![record(201)]);
        assert_eq!(kept(&newest), [200, 201]);
    }
}
