//! Audit of a stopped journal: the times of its Records.

use std::collections::BTreeMap;
use std::path::Path;

use ledger::event::{Due, Event};
use ledger::id::LedgerId;
use ledger::record::Record;
use ledger::time::{Minute, Timestamp};
use store::{Partition, Sequence, SledOptions, SledStore, Store};

/// The owner of the money, and the minute from which on it is available.
type Promise = (LedgerId, Minute);

/// What was found.
pub(crate) struct Audit {
    pub(crate) records: u64,
    /// How long after its minute money was booked as available, at most, milliseconds.
    pub(crate) latest_ms: i64,
    promised: BTreeMap<Promise, i64>,
    matured: BTreeMap<Promise, i64>,
}

/// Reads a journal. Booking times never go back, no Record takes effect after it was booked, and no
/// owner's Records take effect out of order; no money is available before its minute, or more of it
/// than was promised for that minute.
pub(crate) fn audit(data: &Path) -> Result<Audit, String> {
    let store = SledStore::open_existing(data, &SledOptions::default()).map_err(|error| error.to_string())?;
    let mut audit = Audit { records: 0, latest_ms: 0, promised: BTreeMap::new(), matured: BTreeMap::new() };
    let (mut booked, mut effective) = (0, BTreeMap::<LedgerId, Timestamp>::new());
    for block in store.blocks(Partition(0), Sequence::FIRST) {
        let block = block.map_err(|error| error.to_string())?;
        if block.booked_at_ms < booked {
            return Err(format!("block {} is booked at {} after {booked}", block.first.0, block.booked_at_ms));
        }
        booked = block.booked_at_ms;
        for bytes in &block.records {
            let record = Record::decode(bytes).map_err(|error| error.to_string())?;
            let before = effective.insert(record.owner, record.effective_at).unwrap_or_default();
            if record.effective_at < before || record.effective_at.0 > booked {
                return Err(format!("after {before:?}, in a block booked at {booked}: {record:?}"));
            }
            audit.read(&record)?;
        }
    }
    Ok(audit)
}

impl Audit {
    /// All that was promised for minutes up to this one is available.
    pub(crate) fn all_is_available_through(&self, minute: Minute) -> Result<(), String> {
        let due = self.promised.iter().filter(|((_, of), _)| *of <= minute);
        for (promise, amount) in due.filter(|(_, amount)| **amount > 0) {
            let matured = self.matured.get(promise).copied().unwrap_or_default();
            if matured != *amount {
                return Err(format!("{promise:?}: {amount} promised, {matured} available at {minute:?}"));
            }
        }
        Ok(())
    }

    fn read(&mut self, record: &Record) -> Result<(), String> {
        self.records += 1;
        for event in &record.events {
            match event {
                Event::CardCaptured { terms, seller, seller_due, splits_due, .. } => {
                    *self.promised.entry((record.owner, *seller_due)).or_default() += seller.raised.0;
                    let group = record.owner.group().ok_or("a charge of nobody")?;
                    for split in &terms.splits {
                        let recipient = LedgerId::Recipient(group, split.recipient);
                        *self.promised.entry((recipient, *splits_due)).or_default() += split.amount.0;
                    }
                }
                Event::Matured { dues, .. } => {
                    dues.iter().try_for_each(|due| self.matured(record, due))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn matured(&mut self, record: &Record, due: &Due) -> Result<(), String> {
        let late_ms = record.effective_at.0 - due.minute.start().0;
        self.latest_ms = self.latest_ms.max(late_ms);
        let promise = (record.owner, due.minute);
        let matured = self.matured.entry(promise).or_default();
        *matured += due.amount.0;
        let promised = self.promised.get(&promise).copied().unwrap_or_default();
        if late_ms < 0 || *matured > promised {
            return Err(format!("{promised} promised, {matured} available {late_ms} ms after the minute: {record:?}"));
        }
        Ok(())
    }
}
