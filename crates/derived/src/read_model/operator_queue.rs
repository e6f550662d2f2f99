//! Operators' queue: everything that waits for a decision of an operator, oldest first.
//!
//! A new kind is a variant of [`WaitingKind`] and an arm of [`WaitingSet::count`]. It needs nothing
//! else here: an item belongs to the ledger of its event, and is stored with that ledger's page.

use std::collections::{BTreeMap, BinaryHeap};

use ledger::erasure::erasure_id;
use ledger::event::DisputeCase;
use ledger::merchant::file_id;
use ledger::period::period_id;
use ledger::{Centavos, Event, LedgerId, Month, ObjectId, Record, Sealed, Timestamp};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

/// Decision that an operator has to make. The numbers are part of the pages' format.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum WaitingKind {
    /// A draft or pending recipient is to be approved or rejected (interface 3.4).
    #[n(0)]
    Recipient,
    /// An active recipient's changed bank account is to be approved or rejected.
    #[n(5)]
    BankAccount {
        /// When it was changed; none in a snapshot that did not say it.
        #[n(0)]
        since: Option<Timestamp>,
    },
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
        /// Until when it can be carried out.
        #[n(2)]
        until: Option<Timestamp>,
        /// The open disputes of its charge.
        #[n(3)]
        disputes: Option<Vec<ObjectId>>,
        /// Its version.
        #[n(4)]
        version: Option<u32>,
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
        /// The part that passes what was left of the charge.
        #[n(2)]
        exceeds: Option<Centavos>,
        /// The rail's case.
        #[n(3)]
        case: Option<DisputeCase>,
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
    /// An entry of the house ledger, the write-off of a debt of this ledger, a credit to it, or the
    /// return of a withdrawal of it, is to be approved by another operator, or rejected.
    #[n(6)]
    HouseEntry {
        /// How much.
        #[n(0)]
        amount: Centavos,
    },
    /// A rail has left the outcome of an order unknown for an hour, or refuses to send a payment
    /// back that nobody asked for; or a notification does not fit the disputes of its charge.
    #[n(7)]
    Rail {
        /// The charge.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
    },
    /// A month is to be closed by another operator than the one who asked for it.
    #[n(8)]
    Period {
        /// The month.
        #[n(0)]
        month: Month,
        /// When that was asked for.
        #[n(1)]
        since: Timestamp,
    },
    /// A settlement file of the acquirer is to be sent by another operator too, or rejected.
    #[n(10)]
    File {
        /// SHA-256 of its lines.
        #[n(0)]
        digest: ByteArray<32>,
        /// The sum of its lines, after fees.
        #[n(1)]
        net: Centavos,
        /// When it was sent.
        #[n(2)]
        since: Timestamp,
    },
    /// Another operator is to ask for an erasure of personal data too, or it is taken back.
    #[n(11)]
    Erasure {
        /// What was sealed in this month or before it.
        #[n(0)]
        through: Month,
        /// When that was asked for.
        #[n(1)]
        since: Timestamp,
    },
}

impl WaitingKind {
    /// A dispute of a charge was opened, or decided. It concerns a refund of the charge, which is
    /// another version from here on.
    fn note_dispute(&mut self, id: ObjectId, disputed: ObjectId, is_open: bool) {
        let Self::Refund { charge, disputes, version, .. } = self else { return };
        if *charge == disputed {
            let disputes = disputes.get_or_insert_default();
            disputes.retain(|dispute| *dispute != id);
            disputes.extend(is_open.then_some(id));
            *version = Some(version.unwrap_or(1) + 1);
        }
    }
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

impl WaitingItem {
    /// How much it is about, where it is about money.
    pub fn amount(&self) -> Option<Centavos> {
        match &self.what {
            WaitingKind::Recipient
            | WaitingKind::BankAccount { .. }
            | WaitingKind::Period { .. }
            | WaitingKind::Erasure { .. } => None,
            WaitingKind::File { net, .. } => Some(*net),
            WaitingKind::Withdrawal { amount, .. }
            | WaitingKind::Refund { amount, .. }
            | WaitingKind::Dispute { amount, .. }
            | WaitingKind::Payout { amount, .. }
            | WaitingKind::HouseEntry { amount }
            | WaitingKind::Rail { amount, .. } => Some(*amount),
        }
    }

    /// When it was asked for.
    pub fn since(&self) -> Timestamp {
        match &self.what {
            WaitingKind::Period { since, .. }
            | WaitingKind::File { since, .. }
            | WaitingKind::Erasure { since, .. }
            | WaitingKind::BankAccount { since: Some(since) } => *since,
            _ => self.id.created_at(),
        }
    }

    /// Until when it can be decided on as it was asked for.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.what {
            WaitingKind::Refund { until, .. } => *until,
            WaitingKind::Dispute { case, .. } => case.as_ref()?.due_at,
            _ => None,
        }
    }
}

/// Some of the items that wait for an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingPage {
    /// The first of them.
    pub items: Vec<WaitingItem>,
    /// How many there are.
    pub total: usize,
    /// Sum of the amounts of all of them, centavos.
    pub amount: i128,
}

impl WaitingPage {
    /// Puts the items of another page among these, by rank and then by age, and leaves the first
    /// `most`.
    pub fn merge<R: Ord>(&mut self, other: Self, rank: impl Fn(&WaitingItem) -> R, most: usize) {
        self.total += other.total;
        self.amount += other.amount;
        self.items.extend(other.items);
        // An id begins with the time of its making.
        self.items.sort_by_key(|item| (rank(item), item.id));
        self.items.truncate(most);
    }
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
            (Event::BankAccountChanged { active: true, .. }, Some(id)) => {
                self.put(about, id, WaitingKind::BankAccount { since: Some(record.effective_at) });
            }
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
            (Event::WithdrawalApproved { id, .. }, _) => {
                if let Some(WaitingKind::Withdrawal { amount, destination }) =
                    self.by_ledger.get(&(about, *id)).cloned()
                {
                    self.put(about, *id, WaitingKind::Payout { amount, destination: Some(destination) });
                }
            }
            (Event::CashoutCreated { id, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Payout { amount: *amount, destination: None });
            }
            (Event::RefundRequested { id, charge, amount, window_ends, .. }, _) => {
                let (charge, amount, until) = (*charge, *amount, Some(*window_ends));
                let disputes = self.disputes_of(about, charge);
                self.put(about, *id, WaitingKind::Refund { charge, amount, until, disputes, version: None });
            }
            (Event::PayerNotRepaid { id, charge, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Rail { charge: *charge, amount: *amount });
            }
            (Event::CaseDeferred { id: Some(id), charge, amount, .. }, _) => {
                self.put(about, *id, WaitingKind::Rail { charge: *charge, amount: *amount });
            }
            (Event::DisputeOpened { id, charge, amount, exceeds, case, .. }, _) => {
                let (charge, amount, exceeds, case) = (*charge, *amount, *exceeds, case.clone());
                self.put(about, *id, WaitingKind::Dispute { charge, amount, exceeds, case });
                self.note_dispute(about, *id, charge, true);
            }
            (Event::DisputeAccepted { id, charge, .. } | Event::DisputeReleased { id, charge, .. }, _) => {
                self.remove(about, *id);
                self.note_dispute(about, *id, *charge, false);
            }
            (
                Event::WithdrawalPaid { id, .. }
                | Event::WithdrawalRejected { id, .. }
                | Event::CashoutProcessed { id, .. }
                | Event::CashoutFailed { id, .. }
                | Event::RefundApproved { id, .. }
                | Event::RefundRejected { id, .. }
                | Event::PayerRepaid { id, .. }
                | Event::DeferredCaseEnded { id, .. },
                _,
            ) => self.remove(about, *id),
            _ => self.count_entry(event, about, record),
        }
    }

    /// Counts an event of an entry by two operators, of the closing of a month, or of a file.
    fn count_entry(&mut self, event: &Event, about: LedgerId, record: &Record) {
        match event {
            Event::HouseEntryRequested { id, terms, .. } => {
                self.put(about, *id, WaitingKind::HouseEntry { amount: terms.amount });
            }
            Event::WriteOffRequested { id, amount, .. }
            | Event::AdjustmentRequested { id, amount, .. }
            | Event::WithdrawalReturnRequested { id, amount, .. } => {
                self.put(about, *id, WaitingKind::HouseEntry { amount: *amount });
            }
            _ => match event.decided_entry() {
                Some((id, _)) => self.remove(about, id),
                None => self.count_month(event, about, record),
            },
        }
    }

    /// Counts an event of the closing of a month, of an erasure, or of a settlement file.
    fn count_month(&mut self, event: &Event, about: LedgerId, record: &Record) {
        match event {
            Event::PeriodCloseRequested { month } => {
                self.put(about, period_id(*month), WaitingKind::Period { month: *month, since: record.effective_at });
            }
            Event::PeriodClosed { month, .. } => self.close_months(about, *month),
            Event::AcquirerFileSent { digest, net, approval: None, .. } => {
                let (digest, net, since) = (*digest, *net, record.effective_at);
                self.put(about, file_id(&digest), WaitingKind::File { digest, net, since });
            }
            Event::ErasureRequested { through } => {
                let what = WaitingKind::Erasure { through: *through, since: record.effective_at };
                self.put(about, erasure_id(*through), what);
            }
            Event::ErasureWithdrawn { through } => self.remove(about, erasure_id(*through)),
            Event::KeysErased { through } => {
                let is_over =
                    |what: &WaitingKind| matches!(what, WaitingKind::Erasure { through: own, .. } if own <= through);
                self.remove_where(about, is_over);
            }
            Event::AcquirerFileSent { digest, .. } | Event::AcquirerFileRejected { digest, .. } => {
                self.remove(about, file_id(digest));
            }
            _ => {}
        }
    }

    /// A month is closed, and all before it are.
    fn close_months(&mut self, ledger: LedgerId, through: Month) {
        self.remove_where(ledger, |what| matches!(what, WaitingKind::Period { month, .. } if *month <= through));
    }

    fn remove_where(&mut self, ledger: LedgerId, is_over: impl Fn(&WaitingKind) -> bool) {
        let over: Vec<_> = self.range(ledger).filter(|(_, what)| is_over(what)).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.remove(ledger, id));
    }

    /// The open disputes of a charge of this ledger.
    fn disputes_of(&self, ledger: LedgerId, disputed: ObjectId) -> Option<Vec<ObjectId>> {
        let is_of = |what: &WaitingKind| matches!(what, WaitingKind::Dispute { charge, .. } if *charge == disputed);
        let open: Vec<_> = self.range(ledger).filter(|(_, what)| is_of(what)).map(|(id, _)| *id).collect();
        Some(open).filter(|open| !open.is_empty())
    }

    fn note_dispute(&mut self, ledger: LedgerId, id: ObjectId, charge: ObjectId, is_open: bool) {
        let range = (ledger, ObjectId(0))..=(ledger, ObjectId(u128::MAX));
        self.by_ledger.range_mut(range).for_each(|(_, what)| what.note_dispute(id, charge, is_open));
    }

    fn range(&self, ledger: LedgerId) -> impl Iterator<Item = (&ObjectId, &WaitingKind)> {
        let range = (ledger, ObjectId(0))..=(ledger, ObjectId(u128::MAX));
        self.by_ledger.range(range).map(|((_, id), what)| (id, what))
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
        self.range(ledger).map(|(id, what)| (*id, what.clone()))
    }

    /// The first `most` of those that are wanted, by rank and then by age.
    pub(super) fn page<R: Ord>(
        &self,
        is_wanted: impl Fn(&WaitingItem) -> bool,
        rank: impl Fn(&WaitingItem) -> R,
        most: usize,
    ) -> WaitingPage {
        let mut page = WaitingPage::default();
        let mut first = BinaryHeap::new();
        for item in self.iter().filter(is_wanted) {
            page.total += 1;
            page.amount += item.amount().map_or(0, |amount| i128::from(amount.0));
            first.push((rank(&item), item.id, item.ledger));
            if first.len() > most {
                first.pop();
            }
        }
        let first = first.into_sorted_vec().into_iter();
        page.items = first.filter_map(|(_, id, ledger)| self.item(ledger, id)).collect();
        page
    }

    fn item(&self, ledger: LedgerId, id: ObjectId) -> Option<WaitingItem> {
        Some(WaitingItem { id, ledger, what: self.by_ledger.get(&(ledger, id))?.clone() })
    }

    /// The item of an id.
    pub(super) fn find(&self, id: ObjectId) -> Option<WaitingItem> {
        self.item(*self.in_order.get(&id)?, id)
    }

    /// Everything, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = WaitingItem> {
        self.in_order.iter().filter_map(|(id, ledger)| self.item(*ledger, *id))
    }
}
