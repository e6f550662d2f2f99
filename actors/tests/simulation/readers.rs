//! The product's read model and index beside those of the simulation, for some of the seeds.
//! Crashes come at any stage of keeping their pages and runs; after each, every look-up must say
//! what the journal says.
//!
//! They get blocks later than the simulation's own read model, at any time. The simulation's own
//! checks when each block must be published.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use actors::engine::IndexOptions;
use actors::load::{self, LargeRecords};
use actors::resident::{OwnerMachine, Resident};
use derived::index::{IndexKey, Slice};
use derived::read_model::{
    ChargeFilter, ChargeStatus, KeyFound, ListedSplit, ListedStatementLine, ReadModel, WaitingItem, WaitingKind,
};
use derived::seal::Keyring;
use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::statement::{StatementAccount, statement_lines};
use ledger::{
    Centavos, Event, GroupNumber, LedgerId, MerchantState, ObjectId, RecipientNumber, RecipientState, Record,
};
use parking_lot::Mutex;
use store::testkit::{self, MemoryStore, Watch, WatchedStore};
use store::{Durability, Sequence};

use crate::audit::{Audit, ensure};
use crate::world::Defect;

type Published = Vec<(Sequence, Arc<Record>)>;

/// Small, so that a run of the simulation makes and merges several.
const OPTIONS: IndexOptions = IndexOptions { records_per_run: 8, runs_merged: 3 };

pub(crate) struct Readers {
    read_model: ReadModel,
    store: Arc<WatchedStore<Meddling>>,
    /// Published blocks that it has not received yet.
    behind: Mutex<VecDeque<Published>>,
    defect: Option<Defect>,
}

impl Readers {
    /// Start of a new process from the pages and runs of the last one.
    pub(crate) fn open(store: &MemoryStore, defect: Option<Defect>) -> Result<Arc<Self>, String> {
        let store = Arc::new(WatchedStore { store: store.clone(), watch: Meddling::default() });
        let keyring = Keyring::open([7; 32], Arc::new(MemoryStore::new())).map_err(|error| error.to_string())?;
        let shared = testkit::part(Arc::<WatchedStore<Meddling>>::clone(&store));
        let (keyring, outbox) = (Arc::new(keyring), Arc::default());
        let read_model =
            ReadModel::unread(shared, Arc::default(), keyring, str::to_owned, OPTIONS, outbox).opened(|_, _| {});
        let read_model = read_model.map_err(text_of)?;
        read_model.settle();
        let readers = Arc::new(Self { read_model, store, behind: Mutex::default(), defect });
        let _first = readers.store.watch.readers.set(Arc::downgrade(&readers));
        Ok(readers)
    }

    /// A block was published.
    pub(crate) fn publish(&self, mut records: Published) {
        if self.defect == Some(Defect::PublishesOneShort) && records.len() > 1 {
            records.remove(0);
        }
        self.behind.lock().push_back(records);
    }

    pub(crate) fn is_behind(&self) -> bool {
        !self.behind.lock().is_empty()
    }

    /// Publishes the next block to the read model, if there is one.
    pub(crate) fn follow(&self) -> Result<(), String> {
        let next = self.behind.lock().pop_front();
        if let Some(records) = next {
            self.read_model.publish(&records).map_err(text_of)?;
            self.read_model.settle();
        }
        Ok(())
    }

    /// Keeps the pages of the read model, one after the other, while this number of blocks are
    /// published. `is_lossy` is for the defect.
    pub(crate) fn keep(&self, blocks_meanwhile: usize, is_lossy: bool) -> Result<(), String> {
        *self.store.watch.meddling.lock() =
            Meddle { blocks_meanwhile, loses_page: is_lossy && self.defect == Some(Defect::LosesOnePage) };
        let result = self.read_model.keep().map_err(text_of);
        *self.store.watch.meddling.lock() = Meddle::default();
        result
    }

    /// Every look-up says what the published part of the journal says.
    pub(crate) fn check(&self, audit: &Audit) -> Result<(), String> {
        while self.is_behind() {
            self.follow()?;
        }
        let expected = ExpectedView::of(audit);
        let latest_ms = audit.records().map(|(_, record)| record.effective_at.0).max().unwrap_or_default();
        let waiting: Vec<_> = expected.waiting.values().cloned().collect();
        same("what waits for", &"operators", &self.read_model.waiting(|_| true, |_| (), usize::MAX).items, &waiting)?;
        let by_operators = |of: Option<GroupNumber>| -> Vec<_> {
            let rows = expected.by_operators.iter().rev();
            rows.filter(|(group, _)| of.is_none() || of == *group).map(|(_, sequence)| *sequence).collect()
        };
        for group in [None].into_iter().chain(audit.groups().map(|(group, _)| Some(*group))) {
            paged("what operators did to", &group, &by_operators(group), |skip, count| {
                self.read_model.page(IndexKey::audit(group), Slice::of_all(skip, count)).map_err(text_of)
            })?;
        }
        for (group, books) in audit.groups() {
            for (ledger, balances) in books.ledgers() {
                same("the balances of", ledger, &self.read_model.balances(*ledger), balances)?;
            }
            let filter = |status| ChargeFilter { status, ..ChargeFilter::default() };
            let statuses =
                [ChargeStatus::Pending, ChargeStatus::Paid, ChargeStatus::Refused, ChargeStatus::Cancelled].map(Some);
            for status in [None].into_iter().chain(statuses) {
                let charges = expected.charges.iter().filter(|charge| charge.group == *group).rev();
                let charges = charges.filter(|charge| status.is_none_or(|status| status == charge.status));
                let charges: Vec<_> = charges.map(|charge| charge.opened).collect();
                paged("the charges of", group, &charges, |skip, count| {
                    self.read_model.charges_page(*group, &filter(status), skip, count).map_err(text_of)
                })?;
            }
            let merchant = LedgerId::Merchant(*group);
            let lines = expected.operations.get(group).map_or(&[][..], Vec::as_slice);
            let lines: Vec<_> = lines.iter().rev().copied().collect();
            paged("the operations of", &merchant, &lines, |skip, count| {
                self.read_model.statement_in(merchant, Slice::of_all(skip, count)).map_err(text_of)
            })?;
        }
        for ledger in audit.ledgers() {
            match ledger {
                LedgerId::Merchant(_) => self.check_state::<MerchantState>(audit, ledger)?,
                LedgerId::Recipient(..) => self.check_state::<RecipientState>(audit, ledger)?,
                LedgerId::Platform(_) | LedgerId::System => {}
            }
            let splits = expected.splits_of(ledger);
            paged("the splits of", &ledger, &splits, |skip, count| {
                self.read_model.splits_in(ledger, Slice::of_all(skip, count)).map_err(text_of)
            })?;
        }
        for (id, about) in &expected.about {
            same("the Records about", id, &self.read_model.about(*id).map_err(text_of)?, about)?;
        }
        for (sequence, record) in audit.last_of_each_key() {
            let Some(idempotency) = record.idempotency else { continue };
            let is_kept = latest_ms - record.effective_at.0 < IDEMPOTENCY_KEPT_MS;
            let looked_up_through = audit.ordinal(record.owner);
            let known = KeyFound { sequence: is_kept.then_some(sequence), looked_up_through };
            let found = self.read_model.find_key(record.owner, idempotency.key).map_err(text_of)?;
            same("the key", &idempotency.key, &found, &known)?;
        }
        Ok(())
    }

    /// A state built from the index equals the fold of all Records.
    fn check_state<B: OwnerMachine>(&self, audit: &Audit, ledger: LedgerId) -> Result<(), String> {
        let store = testkit::part(Arc::<WatchedStore<Meddling>>::clone(&self.store));
        let (large, through) = (LargeRecords::default(), self.read_model.published());
        let built = load::resident::<B>(&store, &self.read_model, &large, ledger, through, Arc::default());
        let mut read = Resident::<B>::new(ledger, ledger.group().unwrap_or_default(), Arc::default());
        audit.records_of(ledger).for_each(|(sequence, record)| read.replay(sequence, record));
        same("the state of", &ledger, built.map_err(text_of)?.books(), read.books())
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    format!("the readers' view: {error}")
}

fn same<Key: std::fmt::Debug, T: PartialEq + std::fmt::Debug>(
    what: &str,
    key: &Key,
    found: &T,
    known: &T,
) -> Result<(), String> {
    ensure(found == known, || {
        format!("the readers' view: it sees {what} {key:?} as {found:?}, the journal says {known:?}")
    })
}

/// The whole list, and a page in the middle of it.
fn paged<Key: std::fmt::Debug, T: Copy + PartialEq + std::fmt::Debug>(
    what: &str,
    key: &Key,
    known: &[T],
    page: impl Fn(u64, usize) -> Result<(u64, Vec<T>), String>,
) -> Result<(), String> {
    let total = known.len() as u64;
    same(what, key, &page(0, known.len() + 1)?, &(total, known.to_vec()))?;
    let from = known.len() / 3;
    let part = known[from..].iter().take(3).copied().collect();
    same(what, key, &page(from as u64, 3)?, &(total, part))
}

/// Charge as the journal shows it.
struct Charge {
    id: ObjectId,
    group: GroupNumber,
    opened: Sequence,
    status: ChargeStatus,
    /// The Record that made its splits, and whose each of them is.
    splits: Option<(Sequence, Vec<LedgerId>)>,
}

/// What readers should see, from a plain reading of the journal.
#[derive(Default)]
struct ExpectedView {
    about: BTreeMap<ObjectId, Vec<Sequence>>,
    /// In the order of their opening.
    charges: Vec<Charge>,
    operations: BTreeMap<GroupNumber, Vec<ListedStatementLine>>,
    /// Oldest first.
    waiting: BTreeMap<ObjectId, WaitingItem>,
    recipients: BTreeMap<LedgerId, ObjectId>,
    by_operators: Vec<(Option<GroupNumber>, Sequence)>,
}

impl ExpectedView {
    fn of(audit: &Audit) -> Self {
        let mut expected = Self::default();
        let mut balances: BTreeMap<(GroupNumber, StatementAccount), Centavos> = BTreeMap::new();
        for (sequence, record) in audit.records() {
            if record.is_audited() {
                expected.by_operators.push((record.owner.group(), sequence));
            }
            let Some(group) = record.owner.group() else { continue };
            for (index, line) in (0..).zip(statement_lines(record)) {
                let balance = balances.entry((group, line.account)).or_default();
                *balance += line.amount;
                let line = ListedStatementLine { sequence, index, balance_after: *balance };
                expected.operations.entry(group).or_default().push(line);
            }
            for event in &record.events {
                expected.count(sequence, group, event);
                expected.count_review(group, event);
            }
        }
        expected
    }

    fn count_review(&mut self, group: GroupNumber, event: &Event) {
        let ledger = |number: &RecipientNumber| LedgerId::Recipient(group, *number);
        match event {
            Event::RecipientRegistered { number, id, .. } => {
                self.recipients.insert(ledger(number), *id);
                self.wait_for_review(ledger(number));
            }
            Event::RecipientRegisteredAgain { number, .. } => self.wait_for_review(ledger(number)),
            Event::RecipientApproved { number } | Event::RecipientRejected { number, .. } => {
                self.waiting.remove(&self.recipients[&ledger(number)]);
            }
            _ => {}
        }
    }

    fn wait_for_review(&mut self, ledger: LedgerId) {
        let id = self.recipients[&ledger];
        self.waiting.insert(id, WaitingItem { id, ledger, what: WaitingKind::Recipient });
    }

    fn count(&mut self, sequence: Sequence, group: GroupNumber, event: &Event) {
        let (id, status) = match event {
            Event::ChargeOpened { charge, .. } => (*charge, ChargeStatus::Pending),
            Event::CardUnanswered { charge } | Event::CardAuthorized { charge, .. } => (*charge, ChargeStatus::Pending),
            Event::RailTried { id, .. } => (*id, ChargeStatus::Pending),
            Event::CardCaptured { charge, .. } | Event::PixPaid { charge, .. } => (*charge, ChargeStatus::Paid),
            Event::CardRefused { charge, .. } => (*charge, ChargeStatus::Refused),
            Event::PixCancelled { charge, .. } => (*charge, ChargeStatus::Cancelled),
            _ => return,
        };
        self.about.entry(id).or_default().push(sequence);
        if matches!(event, Event::ChargeOpened { .. }) {
            self.charges.push(Charge { id, group, opened: sequence, status, splits: None });
        }
        let Some(charge) = self.charges.iter_mut().find(|charge| charge.id == id) else { return };
        charge.status = status;
        match event {
            Event::ChargeOpened { terms, expires_at: Some(_), .. } | Event::CardCaptured { terms, .. } => {
                let whose = terms.splits.iter().map(|split| LedgerId::Recipient(group, split.recipient));
                charge.splits = Some((sequence, whose.collect()));
            }
            Event::PixCancelled { .. } => charge.splits = None,
            _ => {}
        }
    }

    /// A recipient's statement, newest first.
    fn splits_of(&self, recipient: LedgerId) -> Vec<ListedSplit> {
        let mut listed = Vec::new();
        for (sequence, whose) in self.charges.iter().filter_map(|charge| charge.splits.as_ref()) {
            let of_recipient = (0..).zip(whose).filter(|(_, whose)| **whose == recipient);
            listed.extend(of_recipient.map(|(index, _)| ListedSplit { sequence: *sequence, index }));
        }
        listed.sort_unstable_by_key(|split| std::cmp::Reverse((split.sequence, split.index)));
        listed
    }
}

/// What is done to a keeping of the pages.
#[derive(Default)]
struct Meddle {
    /// How many blocks are published, one after each page.
    blocks_meanwhile: usize,
    /// The next page is lost although those after it are not.
    loses_page: bool,
}

/// Watcher of the pages: more is published between any two of them.
#[derive(Default)]
struct Meddling {
    meddling: Mutex<Meddle>,
    readers: OnceLock<Weak<Readers>>,
}

impl Watch for Meddling {
    fn loses(&self, _: &[u8], value: Option<&[u8]>, how: Durability) -> bool {
        let is_page = how == Durability::Lazy && value.is_some();
        if !is_page {
            return false;
        }
        let mut meddling = self.meddling.lock();
        let is_lost = std::mem::take(&mut meddling.loses_page);
        let has_written = meddling.blocks_meanwhile > 0;
        meddling.blocks_meanwhile -= usize::from(has_written);
        drop(meddling);
        if has_written && let Some(readers) = self.readers.get().and_then(Weak::upgrade) {
            readers.follow().expect("what was published can be counted");
        }
        is_lost
    }
}
