//! Loader of actors' states: reads the snapshot, then replays the later Records that concern the
//! owner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ledger::recipient::Credit;
use ledger::{GroupNumber, LedgerId, Record};
use parking_lot::Mutex;

use crate::resident::{OwnerMachine, Resident};
use derived::read_model::ReadModel;
use derived::records::{LoadError, record};
use derived::snapshots;
use store::{Part, Sequence};

/// The large Records that were read last. A charge with ten thousand splits is in the tail of ten
/// thousand recipients, who are often opened one after the other: when it falls due, or in a
/// verification. Each would read and decode a megabyte for its one part.
#[derive(Default)]
pub struct LargeRecords(Mutex<VecDeque<(Sequence, Arc<Record>)>>);

/// A Record that names this number of ledgers is large.
const LEDGERS_MIN: usize = 64;
/// Number of large Records in the cache: some 10 megabytes, if each has ten thousand splits.
const LARGE_MAX: usize = 8;

impl LargeRecords {
    /// One Record of the journal.
    pub fn read(&self, store: &Part, sequence: Sequence) -> Result<Arc<Record>, LoadError> {
        let found = self.0.lock().iter().find(|(at, _)| *at == sequence).map(|(_, record)| Arc::clone(record));
        if let Some(record) = found {
            return Ok(record);
        }
        let record = Arc::new(record(store, sequence)?);
        if record.other_ledgers().len() >= LEDGERS_MIN {
            let mut large = self.0.lock();
            large.truncate(LARGE_MAX - 1);
            large.push_front((sequence, Arc::clone(&record)));
        }
        Ok(record)
    }
}

/// Number of Records that are looked through at once for those that concern a ledger: at most some
/// 20 MiB of answers.
const SEQUENCES_AT_ONCE: u64 = 1 << 18;

fn fall_due_together(one: Option<Credit>, next: Option<Credit>) -> bool {
    one.zip(next).is_some_and(|(one, next)| one.due == next.due)
}

/// The state of a ledger's owner with all Records through `through`. `durable` is the journal's
/// word on its own Records.
pub fn resident<B: OwnerMachine>(
    store: &Part,
    read_model: &ReadModel,
    large: &LargeRecords,
    ledger: LedgerId,
    through: Sequence,
    durable: Arc<AtomicU64>,
) -> Result<Resident<B>, LoadError> {
    let group = ledger.group().unwrap_or(GroupNumber(0));
    let mut resident = Resident::new(ledger, group, durable);
    let (mut own_after, mut foreign_after) = (Sequence(0), Sequence(0));
    if let Some(snapshot) = snapshots::load(store, ledger)?
        && snapshot.own_through <= through
        && snapshot.position.foreign <= through.0
        && resident.restore(&snapshot)
    {
        own_after = snapshot.own_through;
        foreign_after = Sequence(snapshot.position.foreign);
    }
    let mut from = own_after.min(foreign_after).0 + 1;
    while from <= through.0 {
        let end = (from + SEQUENCES_AT_ONCE).min(through.0 + 1);
        let (own, foreign) = (from.max(own_after.0 + 1)..end, from.max(foreign_after.0 + 1)..end);
        let concerning = read_model.concerning(ledger, own, foreign)?;
        for together in concerning.chunk_by(|(_, one), (_, next)| fall_due_together(*one, *next)) {
            let (through, credit) = together[together.len() - 1];
            match credit {
                Some(Credit { due, .. }) => {
                    let amount = together.iter().filter_map(|(_, credit)| Some(credit.as_ref()?.amount)).sum();
                    resident.credit(through, together.len() as u64, Credit { due, amount });
                }
                None => resident.replay(through, &*large.read(store, through)?),
            }
        }
        from = end;
    }
    resident.opened(through);
    Ok(resident)
}
