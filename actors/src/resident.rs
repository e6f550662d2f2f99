//! The synchronous core of an actor: one owner's state, its two positions, and what each message does to them. It neither waits
//! nor looks at a clock; the ractor shell and the simulation drive it.
//!
//! A handler decides, applies what it decided at once, hands the Record on, and is ready for the next command. Nothing that it
//! says may leave before the last Record that it handed on is durable: a reply goes through the journal unless nothing is in
//! flight.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId};
use ledger::merchant::{MerchantCommand, MerchantState};
use ledger::recipient::RecipientState;
use ledger::record::{Decision, Idempotency, Record};
use ledger::rejection::Rejection;
use ledger::time::Timestamp;
use minicbor::{Decode, Encode};

use crate::journal::{Permit, Submission};
use crate::snapshots::Snapshot;
use crate::store::Sequence;

/// One owner's state machine: a merchant's or a recipient's.
pub trait Books:
    Clone + Default + std::fmt::Debug + PartialEq + Encode<()> + for<'b> Decode<'b, ()> + Send + 'static
{
    /// What it is called in metrics.
    const KIND: &'static str;

    /// What can be asked of it.
    type Command: Send + 'static;

    /// Decides a command; changes nothing.
    fn decide(
        &self,
        command: Self::Command,
        group: GroupNumber,
        now: Timestamp,
        ids: &IdKey,
    ) -> Result<Decision, Rejection>;

    /// What is due, if anything.
    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision>;

    /// Applies an own Record.
    fn evolve(&mut self, record: &Record);

    /// Counts a foreign Record.
    fn receive(&mut self, record: &Record, ledger: LedgerId);

    /// When it needs attention next.
    fn next_due(&self) -> Option<Timestamp>;

    /// Encodes the state.
    fn to_bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("writing into memory cannot fail")
    }

    /// Decodes a state; none when the bytes are not of this release.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        minicbor::decode(bytes).ok()
    }

    /// True when no claim on the platform is negative.
    fn is_sound(&self) -> bool;
}

impl Books for MerchantState {
    const KIND: &'static str = "merchant";

    type Command = MerchantCommand;

    fn decide(
        &self,
        command: MerchantCommand,
        group: GroupNumber,
        now: Timestamp,
        ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        self.decide(command, group, now, ids)
    }

    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        self.mature(now, foreign_through)
    }

    fn evolve(&mut self, record: &Record) {
        self.evolve(record);
    }

    fn receive(&mut self, record: &Record, _ledger: LedgerId) {
        self.receive(record);
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.next_due()
    }

    fn is_sound(&self) -> bool {
        self.is_sound()
    }
}

/// A recipient decides nothing yet but what falls due.
#[derive(Debug)]
pub enum RecipientCommand {}

impl Books for RecipientState {
    const KIND: &'static str = "recipient";

    type Command = RecipientCommand;

    fn decide(
        &self,
        command: RecipientCommand,
        _group: GroupNumber,
        _now: Timestamp,
        _ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        match command {}
    }

    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        self.mature(now, foreign_through)
    }

    fn evolve(&mut self, record: &Record) {
        self.evolve(record);
    }

    fn receive(&mut self, record: &Record, ledger: LedgerId) {
        self.receive(record, ledger);
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.next_due()
    }

    fn is_sound(&self) -> bool {
        self.is_sound()
    }
}

/// A command and what travels with it.
#[derive(Debug)]
pub struct Order<C> {
    /// What is asked.
    pub command: C,
    /// The caller's idempotency key, if it sent one.
    pub key: Option<KeyLookup>,
    /// The operator who asks, for the audit trail.
    pub operator: Option<String>,
    /// Room in the journal for all that the command can cause.
    pub permit: Arc<Permit>,
}

/// An idempotency key that was looked up in the published journal before the command was sent, and not found.
#[derive(Clone, Copy, Debug)]
pub struct KeyLookup {
    /// Key and body.
    pub idempotency: Idempotency,
    /// The look-up saw the owner's Records through this ordinal.
    pub looked_up_through: u64,
}

/// What an actor says to a command.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It decided this Record.
    Recorded(Arc<Record>),
    /// There was nothing to change.
    Unchanged,
    /// The business says no.
    Refused(Rejection),
    /// A Record with this idempotency key was decided since the key was looked up: look it up again.
    KeyTaken,
}

/// The idempotency keys of recent own Records, so that a key that was looked up too early is noticed.
#[derive(Clone, Debug, Default)]
struct RecentKeys {
    by_key: HashMap<Fingerprint, u64>,
    in_order: VecDeque<(u64, Fingerprint)>,
    /// Keys of own Records through this ordinal may have been forgotten.
    forgotten_through: u64,
}

/// How many keys an actor remembers beyond those whose Records are still in flight.
const RECENT_KEYS_MAX: usize = 4_096;

impl RecentKeys {
    /// True when the look-up may have missed the key.
    fn is_taken(&self, lookup: &KeyLookup) -> bool {
        lookup.looked_up_through < self.forgotten_through
            || self.by_key.get(&lookup.idempotency.key).is_some_and(|ordinal| *ordinal > lookup.looked_up_through)
    }

    fn remember(&mut self, key: Fingerprint, ordinal: u64, durable: u64) {
        self.by_key.insert(key, ordinal);
        self.in_order.push_back((ordinal, key));
        while self.in_order.len() > RECENT_KEYS_MAX {
            match self.in_order.front() {
                Some((ordinal, key)) if *ordinal <= durable => {
                    if self.by_key.get(key) == Some(ordinal) {
                        self.by_key.remove(key);
                    }
                    self.forgotten_through = *ordinal;
                    self.in_order.pop_front();
                }
                _ => return,
            }
        }
    }
}

/// One owner's state and where it stands.
#[derive(Clone, Debug)]
pub struct Resident<B> {
    ledger: LedgerId,
    group: GroupNumber,
    books: B,
    own: u64,
    foreign: u64,
    keys: RecentKeys,
    /// Ordinal through which the own Records are durable; the journal raises it.
    durable: Arc<AtomicU64>,
    records_since_snapshot: u64,
    snapshot_bytes: u64,
}

/// A snapshot is taken after this many Records, or after more of them when the state is large: its encoding must stay a small part
/// of the work.
const RECORDS_PER_SNAPSHOT_MIN: u64 = 20_000;
/// Bytes of a snapshot that one Record may pay for.
const SNAPSHOT_BYTES_PER_RECORD: u64 = 16;

/// What is left to do after a message: Records to hand on, in order, before anything that is said.
#[derive(Debug, Default)]
pub struct Effects {
    /// For the journal.
    pub submissions: Vec<Submission>,
}

impl<B: Books> Resident<B> {
    /// A state at its two positions, all of it durable. A new owner begins at nothing.
    pub fn new(ledger: LedgerId, group: GroupNumber, durable: Arc<AtomicU64>) -> Self {
        Self {
            ledger,
            group,
            books: B::default(),
            own: 0,
            foreign: 0,
            keys: RecentKeys::default(),
            durable,
            records_since_snapshot: 0,
            snapshot_bytes: 0,
        }
    }

    /// Continues from a snapshot; false when it cannot be read and the state must be built from the journal alone.
    pub fn restore(&mut self, snapshot: &Snapshot) -> bool {
        let Some(books) = B::from_bytes(&snapshot.state) else { return false };
        self.books = books;
        self.own = snapshot.own;
        self.foreign = snapshot.foreign;
        self.snapshot_bytes = snapshot.state.len() as u64;
        true
    }

    /// Applies one Record of the journal's tail, in order; what is in the state already is passed over.
    pub fn replay(&mut self, sequence: Sequence, record: &Record) {
        if record.owner == self.ledger {
            if record.ordinal > self.own {
                self.books.evolve(record);
                self.own = record.ordinal;
                self.records_since_snapshot += 1;
            }
        } else {
            self.receive(sequence, record);
        }
    }

    /// The tail has been replayed through `through`: from here on deliveries follow.
    pub fn opened(&mut self, through: Sequence) {
        self.foreign = self.foreign.max(through.0);
        self.keys.forgotten_through = self.own;
        self.durable.store(self.own, Ordering::Release);
    }

    /// Counts delivered foreign Records.
    pub fn deliver(&mut self, records: &[(Sequence, Arc<Record>)]) {
        for (sequence, record) in records {
            self.receive(*sequence, record);
        }
    }

    /// Takes a command: first what is due, then the decision. Both are applied at once.
    pub fn command(&mut self, order: Order<B::Command>, now: Timestamp, ids: &IdKey, effects: &mut Effects) -> Outcome {
        if order.key.is_some_and(|lookup| self.keys.is_taken(&lookup)) {
            return Outcome::KeyTaken;
        }
        self.mature(now, &order.permit, effects);
        let decision = match self.books.decide(order.command, self.group, now, ids) {
            Ok(decision) if decision.events.is_empty() => return Outcome::Unchanged,
            Ok(decision) => decision,
            Err(rejection) => return Outcome::Refused(rejection),
        };
        // From here on it must succeed: the permit holds room in the journal.
        let idempotency = order.key.map(|lookup| lookup.idempotency);
        Outcome::Recorded(self.hand_on(decision, now, idempotency, order.operator, &order.permit, effects))
    }

    /// Books what is due. A read calls this first, so that it shows what has fallen due.
    pub fn mature(&mut self, now: Timestamp, permit: &Arc<Permit>, effects: &mut Effects) {
        if let Some(decision) = self.books.mature(now, self.foreign) {
            self.hand_on(decision, now, None, None, permit, effects);
        }
    }

    /// True when every Record that was handed on is durable, so that a reply may leave at once.
    pub fn is_settled(&self) -> bool {
        self.durable.load(Ordering::Acquire) >= self.own
    }

    /// The state.
    pub fn books(&self) -> &B {
        &self.books
    }

    /// Whose state.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// Ordinal of the last own Record.
    pub fn own(&self) -> u64 {
        self.own
    }

    /// Sequence through which foreign Records are counted.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// True when the last snapshot is old enough for another.
    pub fn wants_snapshot(&self) -> bool {
        let interval = RECORDS_PER_SNAPSHOT_MIN.max(self.snapshot_bytes / SNAPSHOT_BYTES_PER_RECORD);
        self.records_since_snapshot >= interval
    }

    /// True when Records were applied since the last snapshot.
    pub fn has_changed(&self) -> bool {
        self.records_since_snapshot > 0
    }

    /// The state at its two positions.
    pub fn snapshot(&mut self) -> Snapshot {
        let state = self.books.to_bytes();
        self.records_since_snapshot = 0;
        self.snapshot_bytes = state.len() as u64;
        Snapshot { ledger: self.ledger, own: self.own, foreign: self.foreign, state }
    }

    fn receive(&mut self, sequence: Sequence, record: &Record) {
        if sequence.0 > self.foreign {
            self.books.receive(record, self.ledger);
            self.foreign = sequence.0;
            self.records_since_snapshot += 1;
        }
    }

    fn hand_on(
        &mut self,
        decision: Decision,
        now: Timestamp,
        idempotency: Option<Idempotency>,
        operator: Option<String>,
        permit: &Arc<Permit>,
        effects: &mut Effects,
    ) -> Arc<Record> {
        let mut record = decision.into_record(self.ledger, self.own + 1, now);
        record.idempotency = idempotency;
        record.operator = operator;
        self.books.evolve(&record);
        debug_assert!(self.books.is_sound(), "{:?} drew more than it has: {:?}", self.ledger, record.events);
        self.own = record.ordinal;
        self.records_since_snapshot += 1;
        if let Some(idempotency) = idempotency {
            self.keys.remember(idempotency.key, record.ordinal, self.durable.load(Ordering::Acquire));
        }
        let mut bytes = Vec::with_capacity(512);
        record.encode(&mut bytes);
        let record = Arc::new(record);
        effects.submissions.push(Submission { record: Arc::clone(&record), bytes, permit: Arc::clone(permit) });
        record
    }
}
