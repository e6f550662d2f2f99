//! What waits for an operator: the queue, oldest first.
//!
//! A new kind is a variant of [`Waiting`], an arm of [`WaitingSet::count`] and its events in `is_about_accounts`. It needs nothing else
//! here: an item belongs to the ledger that the event is about, and is kept with that ledger's page.

use std::collections::BTreeMap;

use ledger::event::Event;
use ledger::id::{LedgerId, ObjectId};
use minicbor::{Decode, Encode};

/// What an operator is to decide. The numbers are part of the pages' format.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Waiting {
    /// A draft or pending recipient is to be approved or rejected (interface 3.4).
    #[n(0)]
    Recipient,
}

/// One item of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingItem {
    /// Of what is to be decided on; it tells when that was made.
    pub id: ObjectId,
    /// Whose books it belongs to.
    pub ledger: LedgerId,
    /// What it is.
    pub what: Waiting,
}

/// See the module.
#[derive(Default)]
pub(super) struct WaitingSet {
    by_ledger: BTreeMap<(LedgerId, ObjectId), Waiting>,
    /// An id begins with the time of its making: these are oldest first.
    in_order: BTreeMap<ObjectId, LedgerId>,
}

impl WaitingSet {
    /// Counts an event that is about a ledger, and about this recipient if it is about one.
    pub(super) fn count(&mut self, event: &Event, about: LedgerId, recipient: Option<ObjectId>) {
        match (event, recipient) {
            (Event::RecipientRegistered { .. } | Event::RecipientRegisteredAgain { .. }, Some(id)) => {
                self.put(about, id, Waiting::Recipient);
            }
            (Event::RecipientApproved { .. } | Event::RecipientRejected { .. }, Some(id)) => self.remove(about, id),
            _ => {}
        }
    }

    pub(super) fn put(&mut self, ledger: LedgerId, id: ObjectId, what: Waiting) {
        self.by_ledger.insert((ledger, id), what);
        self.in_order.insert(id, ledger);
    }

    fn remove(&mut self, ledger: LedgerId, id: ObjectId) {
        self.by_ledger.remove(&(ledger, id));
        self.in_order.remove(&id);
    }

    /// What belongs to a ledger.
    pub(super) fn of(&self, ledger: LedgerId) -> impl Iterator<Item = (ObjectId, Waiting)> {
        let range = (ledger, ObjectId(0))..=(ledger, ObjectId(u128::MAX));
        self.by_ledger.range(range).map(|((_, id), what)| (*id, what.clone()))
    }

    /// Everything, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = WaitingItem> {
        self.in_order.iter().filter_map(|(id, ledger)| {
            let what = self.by_ledger.get(&(*ledger, *id))?.clone();
            Some(WaitingItem { id: *id, ledger: *ledger, what })
        })
    }
}
