//! Who needs attention when: one time a ledger, no more. Credits lower it; only the owner, who knows exactly, raises it. A time
//! that is too early costs one needless look; a time that is too late cannot be.

use std::collections::{BTreeSet, HashMap};

use ledger::event::Event;
use ledger::id::LedgerId;
use ledger::merchant::RECONCILE_AFTER_MS;
use ledger::record::Record;
use ledger::time::Timestamp;

use crate::store::Sequence;

/// See the module.
#[derive(Debug, Default)]
pub struct Dues {
    at: HashMap<LedgerId, Hint>,
    in_order: BTreeSet<(Timestamp, LedgerId)>,
}

#[derive(Debug, Default)]
struct Hint {
    /// When to look.
    at: Option<Timestamp>,
    /// The earliest credit since the owner was last heard of, and the last one's sequence.
    since: Option<(Timestamp, Sequence)>,
}

impl Dues {
    /// Counts a published Record.
    pub fn count(&mut self, sequence: Sequence, record: &Record) {
        let Some(group) = record.owner.group() else { return };
        for event in &record.events {
            match event {
                Event::ChargeOpened { expires_at, .. } => {
                    let at = expires_at.unwrap_or(record.effective_at.plus_ms(RECONCILE_AFTER_MS));
                    self.lower(record.owner, at, sequence);
                }
                Event::CardCaptured { terms, seller_due, splits_due, .. } => {
                    self.lower(record.owner, (*seller_due).min(*splits_due).start(), sequence);
                    for split in &terms.splits {
                        self.lower(LedgerId::Recipient(group, split.recipient), splits_due.start(), sequence);
                    }
                }
                Event::Matured { foreign_through, next_due, .. } => {
                    self.matured(record.owner, *next_due, Sequence(*foreign_through));
                }
                _ => {}
            }
        }
    }

    /// The earliest time at which somebody needs attention.
    pub fn first(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// Up to `most` ledgers that need attention at `now`. Each is asked; meanwhile it is off the list, unless something new comes.
    pub fn take_due(&mut self, now: Timestamp, most: usize) -> Vec<LedgerId> {
        let due: Vec<_> = self.in_order.iter().take_while(|(at, _)| *at <= now).take(most).copied().collect();
        for (at, ledger) in &due {
            self.in_order.remove(&(*at, *ledger));
            if let Some(hint) = self.at.get_mut(ledger) {
                *hint = Hint::default();
            }
        }
        due.into_iter().map(|(_, ledger)| ledger).collect()
    }

    /// The owner, when asked, said when it needs attention next. What was published since it was asked still counts.
    pub fn answered(&mut self, ledger: LedgerId, next_due: Option<Timestamp>) {
        let hint = self.at.entry(ledger).or_default();
        let at = [next_due, hint.since.map(|(at, _)| at)].into_iter().flatten().min();
        let before = std::mem::replace(&mut hint.at, at);
        if hint.at.is_none() {
            self.at.remove(&ledger);
        }
        self.reorder(ledger, before, at);
    }

    fn lower(&mut self, ledger: LedgerId, at: Timestamp, sequence: Sequence) {
        let hint = self.at.entry(ledger).or_default();
        let earliest = hint.since.map_or(at, |(earliest, _)| earliest.min(at));
        hint.since = Some((earliest, sequence));
        if hint.at.is_none_or(|known| at < known) {
            let before = hint.at.replace(at);
            self.reorder(ledger, before, Some(at));
        }
    }

    /// The owner booked what was due. Credits that it had not seen are after its cut.
    fn matured(&mut self, ledger: LedgerId, next_due: Option<Timestamp>, cut: Sequence) {
        let hint = self.at.entry(ledger).or_default();
        let unseen = hint.since.filter(|(_, last)| *last > cut).map(|(at, _)| at);
        let at = [next_due, unseen].into_iter().flatten().min();
        hint.since = hint.since.filter(|(_, last)| *last > cut);
        let before = std::mem::replace(&mut hint.at, at);
        self.reorder(ledger, before, at);
    }

    fn reorder(&mut self, ledger: LedgerId, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.in_order.remove(&(before, ledger));
        }
        if let Some(after) = after {
            self.in_order.insert((after, ledger));
        }
    }
}
