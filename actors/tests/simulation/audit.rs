//! Auditor of a simulation: it sees every block that becomes durable and every answer that leaves,
//! and checks the promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use actors::engine::Outcome;
use derived::snapshots::{StatePosition, StoredSnapshot};
use ledger::invariants::GroupBooks;
use ledger::receivable_sums::ReceivableSums;
use ledger::{
    Account, Event, Fingerprint, GroupNumber, LedgerId, ObjectId, Receivables, RecipientNumber, Record, Timestamp,
};
use store::{Block, Head, Part, Sequence};

use crate::actor::{Answer, Core, Reply, Standing};
use crate::read_model::KEY_LIFE_MS;

/// What an acknowledged Record promised a recipient: how much, and from when it is available.
#[derive(Clone, Copy)]
struct Promise {
    available_from: Timestamp,
    amount: i128,
}

/// The least that a read must show, as known when it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Floor {
    own: u64,
    total: i128,
    available: i128,
}

impl Floor {
    /// The least that a read must show that may not book what is due.
    pub(crate) fn without_what_is_due(self) -> Self {
        Self { available: 0, ..self }
    }
}

pub(crate) struct Audit {
    head: Head,
    /// Every durable Record; sequence n stands at n − 1.
    stored: Vec<Arc<Record>>,
    /// The places of the Records that a ledger's state is built from: its own, and those that name
    /// it.
    places: BTreeMap<LedgerId, Vec<u64>>,
    ordinals: BTreeMap<LedgerId, u64>,
    groups: BTreeMap<GroupNumber, GroupBooks>,
    receivables: Receivables,
    receivable_sums: ReceivableSums,
    keys: BTreeMap<Fingerprint, Timestamp>,
    acknowledged: BTreeMap<(LedgerId, u64), Arc<Record>>,
    promises: BTreeMap<LedgerId, Vec<Promise>>,
    /// How often each order was sent again, by the Records.
    tries: BTreeMap<ObjectId, u32>,
    authorized: BTreeSet<ObjectId>,
}

impl Audit {
    pub(crate) fn new() -> Self {
        Self {
            head: Head::EMPTY,
            stored: Vec::new(),
            places: BTreeMap::new(),
            ordinals: BTreeMap::new(),
            groups: BTreeMap::new(),
            receivables: Receivables::default(),
            receivable_sums: ReceivableSums::default(),
            keys: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            promises: BTreeMap::new(),
            tries: BTreeMap::new(),
            authorized: BTreeSet::new(),
        }
    }

    /// How often an order was sent again, by durable Records.
    pub(crate) fn tries(&self, charge: ObjectId) -> u32 {
        self.tries.get(&charge).copied().unwrap_or_default()
    }

    /// Whether a durable Record has the authorization of a charge.
    pub(crate) fn is_authorized(&self, charge: ObjectId) -> bool {
        self.authorized.contains(&charge)
    }

    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Every durable Record, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Sequence, &Arc<Record>)> {
        self.stored.iter().enumerate().map(|(at, record)| (Sequence(at as u64 + 1), record))
    }

    /// The durable Records that a ledger's state is built from, in order.
    pub(crate) fn records_of(&self, ledger: LedgerId) -> impl Iterator<Item = (Sequence, &Arc<Record>)> {
        let places = self.places.get(&ledger).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| (Sequence(*place), &self.stored[*place as usize - 1]))
    }

    /// Ordinal of the owner's last durable Record.
    pub(crate) fn ordinal(&self, owner: LedgerId) -> u64 {
        self.ordinals.get(&owner).copied().unwrap_or_default()
    }

    /// The books of every group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&GroupNumber, &GroupBooks)> {
        self.groups.iter()
    }

    /// Of every idempotency key the last Record.
    pub(crate) fn last_of_each_key(&self) -> impl Iterator<Item = (Sequence, &Arc<Record>)> {
        let with_key = self.records().filter_map(|(at, record)| Some((record.idempotency?.key, (at, record))));
        with_key.collect::<BTreeMap<_, _>>().into_values()
    }

    pub(crate) fn knows_somebody(&self) -> bool {
        !self.places.is_empty()
    }

    pub(crate) fn ledgers(&self) -> Vec<LedgerId> {
        self.places.keys().copied().collect()
    }

    /// A block became durable: it continues the chain, every Record keeps the books, no key counts
    /// twice.
    pub(crate) fn append(&mut self, block: &Block) -> Result<(), String> {
        self.head.admit(block).map_err(|error| format!("chain: {error}"))?;
        self.head = Head::after(block, block.hash());
        for bytes in &block.records {
            let record = Record::decode(bytes).map_err(|error| format!("a stored Record: {error}"))?;
            let mut again = Vec::new();
            record.encode(&mut again);
            ensure(&again == bytes, || "a Record changes when it is read and written again".into())?;
            self.post(Arc::new(record))?;
        }
        Ok(())
    }

    /// After a crash: the store holds what was durable, neither more nor less, and everything that
    /// was acknowledged.
    pub(crate) fn reread(&self, store: &Part) -> Result<(), String> {
        let (mut head, mut records) = (Head::EMPTY, self.stored.iter());
        for block in store.blocks(Sequence::FIRST) {
            let block = block.map_err(|error| error.to_string())?;
            head.admit(&block).map_err(|error| format!("chain after a crash: {error}"))?;
            head = Head::after(&block, block.hash());
            for (sequence, bytes) in (block.first.0..).zip(&block.records) {
                let alone = store.record(Sequence(sequence)).map_err(|error| error.to_string())?;
                let is_same = alone.is_some_and(|alone| alone.bytes == *bytes);
                ensure(is_same, || format!("Record {sequence} is not found by its sequence"))?;
                let record = Record::decode(bytes).map_err(|error| format!("a stored Record: {error}"))?;
                ensure(records.next().is_some_and(|known| **known == record), || "the journal has changed".into())?;
            }
        }
        ensure(records.next().is_none(), || "the journal has become shorter".into())?;
        ensure(store.head().is_ok_and(|stored| stored == head), || "the head is not the end".into())?;
        self.acknowledged.values().try_for_each(|record| self.holds(record))
    }

    /// A reply leaves: all Records that its actor had handed on are durable, and it agrees with the
    /// journal.
    pub(crate) fn hear(&mut self, answer: &Answer, floor: Floor) -> Result<(), String> {
        ensure(self.ordinal(answer.ledger) >= answer.handed_on, || {
            let durable = self.ordinal(answer.ledger);
            format!("{:?} spoke after Record {}, but only {durable} are durable", answer.ledger, answer.handed_on)
        })?;
        match &answer.reply {
            Reply::Outcome(Outcome::Recorded(record)) => self.acknowledge(record),
            Reply::Outcome(_) => Ok(()),
            Reply::Standing(standing) => self.check_read(answer.ledger, standing, floor),
        }
    }

    /// A caller learned of a Record.
    pub(crate) fn acknowledge(&mut self, record: &Arc<Record>) -> Result<(), String> {
        self.holds(record)?;
        if self.acknowledged.insert((record.owner, record.ordinal), Arc::clone(record)).is_some() {
            return Ok(());
        }
        for event in &record.events {
            let (terms, available_from) = match event {
                Event::CardCaptured { terms, splits_due, .. } => (terms, splits_due.start()),
                Event::PixPaid { terms, .. } => (terms, record.effective_at),
                _ => continue,
            };
            let Some(group) = record.owner.group() else { continue };
            for split in &terms.splits {
                let promise = Promise { available_from, amount: i128::from(split.amount.0) };
                self.promises.entry(LedgerId::Recipient(group, split.recipient)).or_default().push(promise);
            }
        }
        Ok(())
    }

    /// The least that a read sent now must show: everything that any caller has learned by now.
    pub(crate) fn floor(&self, ledger: LedgerId, now: Timestamp) -> Floor {
        let acknowledged = self.acknowledged.range((ledger, 0)..=(ledger, u64::MAX)).next_back();
        let promises = self.promises.get(&ledger).map_or(&[][..], Vec::as_slice);
        let due = promises.iter().filter(|promise| promise.available_from <= now);
        Floor {
            own: acknowledged.map_or(0, |((_, ordinal), _)| *ordinal),
            total: promises.iter().map(|promise| promise.amount).sum(),
            available: due.map(|promise| promise.amount).sum(),
        }
    }

    /// A state agrees with the books at its two positions, and with a replay of the same Records
    /// from nothing.
    pub(crate) fn check_state(&self, core: &Core, ledger: LedgerId, what: &str) -> Result<(), String> {
        let standing = core.standing();
        let books = self.standing_at(ledger, standing.own, standing.foreign);
        ensure(standing == books, || format!("{what}: {ledger:?} shows {standing:?}, its books {books:?}"))?;
        let again = self.replayed(ledger, standing.own, standing.foreign);
        ensure(core.has_the_books_of(&again), || {
            format!("{what}: {ledger:?} at {}, {} differs from a replay from nothing", standing.own, standing.foreign)
        })
    }

    /// A snapshot holds only what is durable; continued to the end of the journal, it is the replay
    /// from nothing.
    pub(crate) fn check_snapshot(&self, ledger: LedgerId, snapshot: &StoredSnapshot) -> Result<(), String> {
        let StatePosition { own, foreign } = snapshot.position;
        ensure(own <= self.ordinal(ledger), || {
            format!("a snapshot of {ledger:?} at own Record {own} is stored before that is durable")
        })?;
        let mut core = Core::new(ledger, Arc::new(AtomicU64::new(0)));
        ensure(core.restore(snapshot), || format!("a snapshot of {ledger:?} cannot be read"))?;
        for (sequence, record) in self.records_of(ledger) {
            core.replay(sequence, record);
        }
        ensure(core.has_the_books_of(&self.replayed(ledger, u64::MAX, u64::MAX)), || {
            format!("a snapshot of {ledger:?} at {own}, {foreign} does not lead to the end of the journal")
        })
    }

    /// No Record that names this ledger is missing from a state that has nothing left to take in.
    pub(crate) fn check_complete(&self, core: &Core, ledger: LedgerId) -> Result<(), String> {
        let foreign = self.records_of(ledger).filter(|(_, record)| record.owner != ledger);
        let last = foreign.last().map_or(0, |(sequence, _)| sequence.0);
        ensure(core.foreign() >= last, || format!("{ledger:?} stands at {}, but {last} names it", core.foreign()))
    }

    /// The balances of a ledger's books, in the order pending, available, deficit; from the entries
    /// alone.
    pub(crate) fn balances(&self, ledger: LedgerId) -> (i128, i128, i128) {
        let books = ledger.group().and_then(|group| self.groups.get(&group));
        let balance = |account| books.map_or(0, |books| books.balance(ledger, account));
        (balance(Account::Pending), balance(Account::Available), -balance(Account::Deficit))
    }

    fn post(&mut self, record: Arc<Record>) -> Result<(), String> {
        let sequence = self.stored.len() as u64 + 1;
        let group = record.owner.group().ok_or("a Record of no group")?;
        let books = self.groups.entry(group).or_default();
        books.post(&record).map_err(|violation| format!("books at {sequence}: {violation}"))?;
        self.receivables.post(&record);
        self.receivables.check(&record, books).map_err(|differ| format!("receivables at {sequence}: {differ}"))?;
        self.receivable_sums.post(&record);
        let sums = self.receivable_sums.check(&record, books);
        sums.map_err(|wrong| format!("sums of receivables at {sequence}: {wrong}"))?;
        for event in &record.events {
            match event {
                Event::RailTried { id, .. } => *self.tries.entry(*id).or_default() += 1,
                Event::CardAuthorized { charge, .. } => drop(self.authorized.insert(*charge)),
                _ => {}
            }
        }
        if let Some(idempotency) = record.idempotency {
            let before = self.keys.insert(idempotency.key, record.effective_at);
            ensure(before.is_none_or(|before| record.effective_at.0 - before.0 >= KEY_LIFE_MS), || {
                format!("{:?} counts twice, the second time in Record {sequence}", idempotency.key)
            })?;
        }
        self.ordinals.insert(record.owner, record.ordinal);
        self.places.entry(record.owner).or_default().push(sequence);
        for ledger in record.other_ledgers() {
            if ledger != record.owner {
                self.places.entry(ledger).or_default().push(sequence);
            }
        }
        self.stored.push(record);
        Ok(())
    }

    fn holds(&self, record: &Record) -> Result<(), String> {
        let own = self.records_of(record.owner).filter(|(_, stored)| stored.owner == record.owner);
        let stored = own.map(|(_, stored)| stored).find(|stored| stored.ordinal == record.ordinal);
        ensure(stored.is_some_and(|stored| **stored == *record), || {
            format!("Record {} of {:?} was acknowledged and is not durable", record.ordinal, record.owner)
        })
    }

    fn check_read(&self, ledger: LedgerId, shown: &Standing, floor: Floor) -> Result<(), String> {
        let books = self.standing_at(ledger, shown.own, shown.foreign);
        ensure(*shown == books, || format!("a read of {ledger:?} shows {shown:?}, the books say {books:?}"))?;
        let is_recipient = matches!(ledger, LedgerId::Recipient(..));
        let includes = shown.own >= floor.own
            && (!is_recipient
                || (shown.pending + shown.available >= floor.total && shown.available >= floor.available));
        ensure(includes, || format!("a read of {ledger:?} shows {shown:?}, but {floor:?} was acknowledged before it"))
    }

    /// What the entries of the Records at two positions add up to.
    fn standing_at(&self, ledger: LedgerId, own: u64, foreign: u64) -> Standing {
        let mut standing = Standing { pending: 0, available: 0, deficit: 0, own, foreign };
        for (_, record) in self.counted(ledger, own, foreign) {
            for posting in record.entries_of(ledger).flat_map(|entry| entry.postings()) {
                let signed = match posting.side {
                    ledger::entry::Side::Debit => i128::from(posting.amount.0),
                    ledger::entry::Side::Credit => -i128::from(posting.amount.0),
                };
                match posting.account {
                    Account::Pending => standing.pending += signed,
                    Account::Available => standing.available += signed,
                    Account::Deficit => standing.deficit -= signed,
                    _ => {}
                }
            }
        }
        standing
    }

    fn replayed(&self, ledger: LedgerId, own: u64, foreign: u64) -> Core {
        let mut core = Core::new(ledger, Arc::new(AtomicU64::new(0)));
        for (sequence, record) in self.counted(ledger, own, foreign) {
            core.replay(sequence, record);
        }
        core
    }

    fn counted(&self, ledger: LedgerId, own: u64, foreign: u64) -> impl Iterator<Item = (Sequence, &Arc<Record>)> {
        self.records_of(ledger).filter(move |(sequence, record)| {
            if record.owner == ledger { record.ordinal <= own } else { sequence.0 <= foreign }
        })
    }
}

/// The recipients of a group that the durable journal knows.
pub(crate) fn recipients_in(records: &[&Arc<Record>]) -> Vec<LedgerId> {
    let mut ledgers = Vec::new();
    for record in records {
        for event in &record.events {
            if let (Event::RecipientRegistered { number, .. }, Some(group)) = (event, record.owner.group()) {
                ledgers.push(LedgerId::Recipient(group, RecipientNumber(number.0)));
            }
        }
    }
    ledgers
}

/// `Err` with a description unless `holds`.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
