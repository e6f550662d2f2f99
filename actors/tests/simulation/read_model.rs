//! Published part of the journal, as readers see it. It stands in for the read model and the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::{Event, Fingerprint, GroupNumber, LedgerId, ObjectId, Record, Timestamp};
use store::Sequence;

/// Lifetime of an idempotency key.
pub(crate) const KEY_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Default)]
pub(crate) struct ReadModel {
    through: u64,
    keys: BTreeMap<Fingerprint, Arc<Record>>,
    ordinals: BTreeMap<LedgerId, u64>,
    recipients: BTreeMap<(GroupNumber, Fingerprint), ObjectId>,
}

impl ReadModel {
    pub(crate) fn publish(&mut self, sequence: Sequence, record: &Arc<Record>) -> Result<(), String> {
        if sequence.0 != self.through + 1 {
            return Err(format!("published {} after {}", sequence.0, self.through));
        }
        self.through = sequence.0;
        self.ordinals.insert(record.owner, record.ordinal);
        if let Some(idempotency) = record.idempotency {
            self.keys.insert(idempotency.key, Arc::clone(record));
        }
        for event in &record.events {
            if let (Event::RecipientRegistered { id, document, .. }, Some(group)) = (event, record.owner.group()) {
                self.recipients.insert((group, *document), *id);
            }
        }
        Ok(())
    }

    /// Sequence of the last Record that was published.
    pub(crate) fn through(&self) -> u64 {
        self.through
    }

    /// Ordinal of the owner's last Record that was published.
    pub(crate) fn ordinal(&self, owner: LedgerId) -> u64 {
        self.ordinals.get(&owner).copied().unwrap_or_default()
    }

    /// The Record that answered a key within the last 24 hours.
    pub(crate) fn answer_to(&self, key: Fingerprint, now: Timestamp) -> Option<Arc<Record>> {
        let record = self.keys.get(&key)?;
        (now.0 - record.effective_at.0 < KEY_LIFE_MS).then(|| Arc::clone(record))
    }

    /// True when the key was used, but too long ago to count.
    pub(crate) fn has_outlived(&self, key: Fingerprint, now: Timestamp) -> bool {
        self.keys.contains_key(&key) && self.answer_to(key, now).is_none()
    }

    pub(crate) fn recipient(&self, group: GroupNumber, document: Fingerprint) -> Option<ObjectId> {
        self.recipients.get(&(group, document)).copied()
    }
}
