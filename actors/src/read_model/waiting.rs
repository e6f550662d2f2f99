//! Operators' queue: everything that waits for a decision of an operator, oldest first.
//!
//! A new kind is a variant of [`WaitingKind`], an arm of [`WaitingSet::count`] and its events in
//! `concerns_registry`. It needs nothing else here: an item belongs to the ledger of its event, and
//! is kept with that ledger's page.

use std::collections::BTreeMap;

use ledger::event::{Event, ReturnEntry};
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::personal::Sealed;
use ledger::record::Record;
use minicbor::{Decode, Encode};

/// Decision that an operator has to make. The numbers are part of the pages' format.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum WaitingKind {
    /// A draft or pending recipient is to be approved or rejected (interface 3.4).
    #[n(0)]
    Recipient,
    /// An active recipient's changed bank account is to be approved or rejected.
    #[n(5)]
    BankAccount,
    /// A withdrawal is to be approved or rejected (interface 3.5).
    #[n(1)]
    Withdrawal {
        /// How much.
        #[n(0)]
        amount: Centavos,
        /// The account that it goes to.
        #[n(1)]
        destination: Sealed,
    },
    /// A refund is to be approved or rejected (interface 3.6).
    #[n(2)]
    Refund {
        /// The charge's id.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
    },
    /// A dispute is to be accepted or released.
    #[n(3)]
    Dispute {
        /// The charge's id.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
    },
    /// Money is on its way out, and the institution has not said yet what became of it.
    #[n(4)]
    Payout {
        /// How much.
        #[n(0)]
        amount: Centavos,
        /// The account that a withdrawal goes to; none of a cashout.
        #[n(1)]
        destination: Option<Sealed>,
    },
    /// An entry of the house ledger, the write-off of a debt of this ledger, or the return of a
    /// withdrawal of it, is to be approved by another operator, or rejected.
    #[n(6)]
    HouseEntry {
        /// How much.
        #[n(0)]
        amount: Centavos,
    },
}

/// One item of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingItem {
    /// The id of the object to decide on; it holds the time when the object was made.
    pub id: ObjectId,
    /// The ledger that it belongs to.
    pub ledger: LedgerId,
    /// The decision to make.
    pub what: WaitingKind,
}

/// Items that wait for an operator, oldest first.
#[derive(Default)]
pub(super) struct WaitingSet {
    by_ledger: BTreeMap<(LedgerId, ObjectId), WaitingKind>,
    /// An id begins with the time of its making: these are oldest first.
    in_order: BTreeMap<ObjectId, LedgerId>,
}

impl WaitingSet {
    /// Counts an event of a Record that is about a ledger, and about this recipient if it is about
    /// one.
    pub(super) fn count(&mut self, event: &Event, about: LedgerId, recipient: Option<ObjectId>, record: &Record) {
        match (event, recipient) {
            (Event::RecipientRegistered { .. } | Event::RecipientRegisteredAgain { .. }, Some(id)) => {
                self.put(about, id, WaitingKind::Recipient);
            }
            (Event::BankAccountChanged { active: true, .. }, Some(id)) => self.put(about, id, WaitingKind::BankAccount),
            (
                Event::RecipientApproved { .. }
                | Event::RecipientRejected { .. }
                | Event::BankAccountApproved { .. }
                | Event::BankAccountRejected { .. },
                Some(id),
            ) => self.remove(about, id),
            (Event::WithdrawalRequested { id, amount, .. }, _) => {
                let destination = record.personal.clone().unwrap_or_default();
                self.put(about, *id, WaitingKind::Withdrawal { amount: *amount, destination });
            }
            (Event::WithdrawalApproved { id }, _) => {
                if let Some(WaitingKind::Withdrawal { amount, destination }) =
                    self.by_ledger.get(&(about, *id)).cloned()
                {
                    self.put(about, *id, WaitingKind::Payout { amount, destination: Some(destination) });
                }
            }
            (Event::CashoutCreated { id, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Payout { amount: *amount, destination: None });
            }
            (Event::RefundRequested { id, charge, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Refund { charge: *charge, amount: *amount });
            }
            (Event::HouseEntryRequested { id, terms, .. }, _) => {
                self.put(about, *id, WaitingKind::HouseEntry { amount: terms.amount });
            }
            (Event::WriteOffRequested { id, amount, .. } | Event::WithdrawalReturnRequested { id, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::HouseEntry { amount: *amount });
            }
            (Event::DisputeOpened { id, charge, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Dispute { charge: *charge, amount: *amount });
            }
            (
                Event::WithdrawalPaid { id, .. }
                | Event::WithdrawalRejected { id, .. }
                | Event::CashoutProcessed { id, .. }
                | Event::CashoutFailed { id, .. }
                | Event::RefundApproved { id, .. }
                | Event::RefundRejected { id, .. }
                | Event::DisputeAccepted { id, .. }
                | Event::DisputeReleased { id, .. }
                | Event::HouseEntryApproved { id, .. }
                | Event::HouseEntryRejected { id, .. }
                | Event::WriteOffRejected { id, .. }
                | Event::WithdrawalReturnRejected { id, .. }
                | Event::WithdrawalReturned { entry: Some(ReturnEntry { id, .. }), .. }
                | Event::DeficitWrittenOff { id, .. }
                | Event::ClawbackWrittenOff { id, .. },
                _,
            ) => self.remove(about, *id),
            _ => {}
        }
    }

    pub(super) fn put(&mut self, ledger: LedgerId, id: ObjectId, what: WaitingKind) {
        self.by_ledger.insert((ledger, id), what);
        self.in_order.insert(id, ledger);
    }

    fn remove(&mut self, ledger: LedgerId, id: ObjectId) {
        self.by_ledger.remove(&(ledger, id));
        self.in_order.remove(&id);
    }

    /// The items of a ledger.
    pub(super) fn of(&self, ledger: LedgerId) -> impl Iterator<Item = (ObjectId, WaitingKind)> {
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
