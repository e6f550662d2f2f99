//! Resident: the synchronous core of an actor. It has one owner's state and two positions, and
//! changes them for each message. It neither waits nor looks at a clock; the ractor shell and the
//! simulation drive it.
//!
//! A handler decides, applies its decision at once, hands the Record on, and is ready for the next
//! command. No reply may leave before the last Record that was handed on is durable: a reply goes
//! through the journal unless nothing is in flight.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::event::Cut;
use ledger::recipient::Credit;
use ledger::section::{Section, Sectioned};
use ledger::{
    Balances, Decision, Fingerprint, GroupNumber, IdKey, Idempotency, LedgerId, MerchantCommand, MerchantState,
    RecipientCommand, RecipientState, Record, Rejection, Requester, Timestamp,
};

use crate::journal::{Permit, Submission};
use derived::snapshots::{Receipt, Snapshot, StatePosition, StoredSnapshot};
use store::Sequence;

/// State machine of one owner: a merchant's or a recipient's.
pub trait OwnerMachine: Sectioned + Clone + Default + std::fmt::Debug + PartialEq + Send + 'static {
    /// Its name in metrics.
    const KIND: &'static str;

    /// The commands that it decides.
    type Command: Send + 'static;

    /// Decides a command and changes nothing. `cut` is how far this state has come.
    fn decide(
        &self,
        command: Self::Command,
        group: GroupNumber,
        now: Timestamp,
        cut: Cut,
        ids: &IdKey,
    ) -> Result<Decision, Rejection>;

    /// The facts that book what is due; `None` if nothing is.
    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision>;

    /// When the next facts of [`OwnerMachine::mature`] take effect: at `now`, or in an earlier
    /// minute in which money fell due.
    fn matures_at(&self, now: Timestamp) -> Timestamp;

    /// Applies an own Record.
    fn evolve(&mut self, record: &Record);

    /// Applies a Record of another owner of the group.
    fn receive(&mut self, record: &Record, ledger: LedgerId);

    /// Applies a foreign Record that only credits, without the Record.
    fn credit(&mut self, credit: Credit);

    /// When it needs attention next.
    fn next_due(&self) -> Option<Timestamp>;

    /// The balances of the owner's accounts.
    fn accounts(&self) -> Balances;

    /// True when no claim on the platform is below zero, and sums of parts equal the balances of
    /// the accounts.
    fn is_sound(&self) -> bool;
}

impl OwnerMachine for MerchantState {
    const KIND: &'static str = "merchant";

    type Command = MerchantCommand;

    fn decide(
        &self,
        command: MerchantCommand,
        group: GroupNumber,
        now: Timestamp,
        _cut: Cut,
        ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        self.decide(command, group, now, ids)
    }

    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        self.mature(now, foreign_through)
    }

    fn matures_at(&self, now: Timestamp) -> Timestamp {
        self.matures_at(now)
    }

    fn evolve(&mut self, record: &Record) {
        self.evolve(record);
    }

    fn receive(&mut self, record: &Record, _ledger: LedgerId) {
        self.receive(record);
    }

    /// Nobody else credits a merchant.
    fn credit(&mut self, _credit: Credit) {}

    fn next_due(&self) -> Option<Timestamp> {
        self.next_due()
    }

    fn accounts(&self) -> Balances {
        self.ledger().balances()
    }

    fn is_sound(&self) -> bool {
        self.is_sound()
    }
}

impl OwnerMachine for RecipientState {
    const KIND: &'static str = "recipient";

    type Command = RecipientCommand;

    fn decide(
        &self,
        command: RecipientCommand,
        _group: GroupNumber,
        now: Timestamp,
        cut: Cut,
        _ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        self.decide(command, now, cut)
    }

    fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        self.mature(now, foreign_through)
    }

    fn matures_at(&self, now: Timestamp) -> Timestamp {
        self.matures_at(now)
    }

    fn evolve(&mut self, record: &Record) {
        self.evolve(record);
    }

    fn receive(&mut self, record: &Record, ledger: LedgerId) {
        self.receive(record, ledger);
    }

    fn credit(&mut self, credit: Credit) {
        self.credit(credit);
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.next_due()
    }

    fn accounts(&self) -> Balances {
        self.ledger().balances()
    }

    fn is_sound(&self) -> bool {
        self.is_sound()
    }
}

/// Envelope of a command: what travels with it to the actor.
#[derive(Debug)]
pub struct Envelope<C> {
    /// The command.
    pub command: C,
    /// The caller's idempotency key, if it sent one.
    pub key: Option<KeyLookup>,
    /// The keys that the command uses up for ever, if it has some.
    pub unique: [Option<UniqueLookup>; 2],
    /// The operator or API key that asks; `None` if the engine itself does.
    pub requester: Option<Requester>,
    /// Room in the journal for all that the command can cause.
    pub permit: Arc<Permit>,
}

/// Idempotency key that was looked up in the published journal before the command was sent, and not
/// found.
#[derive(Clone, Copy, Debug)]
pub struct KeyLookup {
    /// Key and body.
    pub idempotency: Idempotency,
    /// The look-up saw the owner's Records through this ordinal.
    pub looked_up_through: u64,
}

/// Key that only one Record of an owner may ever have: the `merchant_transaction_id` of a cashout.
/// It was looked up in the published journal before the command was sent, and not found.
#[derive(Clone, Copy, Debug)]
pub struct UniqueLookup {
    /// The key.
    pub key: Fingerprint,
    /// The look-up saw the owner's Records through this ordinal.
    pub looked_up_through: u64,
}

/// Outcome of a command. An actor gives the Record that it decided; the engine gives a typed
/// outcome that is read from that Record.
#[derive(Clone, Debug)]
pub enum Outcome<T = Arc<Record>> {
    /// It was decided, and is durable.
    Recorded(T),
    /// There was nothing to change.
    Unchanged,
    /// A rule of the business refuses it.
    Refused(Rejection),
    /// A Record with one of the envelope's keys was decided since these were looked up: look them
    /// up again.
    KeyTaken,
}

/// Keys of the recent own Records, in the order of their ordinals: they show that a key was looked
/// up too early. A look-up is a moment old, so few of them are compared.
#[derive(Clone, Debug, Default)]
struct OwnKeys {
    in_order: VecDeque<(u64, Fingerprint)>,
    /// Keys of own Records through this ordinal may have been forgotten.
    forgotten_through: u64,
}

/// Number of keys that an actor remembers beyond those whose Records are still in flight.
const RECENT_KEYS_MAX: usize = 4_096;

impl OwnKeys {
    /// True when the look-up may have missed the key.
    fn is_taken(&self, key: Fingerprint, looked_up_through: u64) -> bool {
        let mut since = self.in_order.iter().rev().take_while(|(ordinal, _)| *ordinal > looked_up_through);
        looked_up_through < self.forgotten_through || since.any(|(_, known)| *known == key)
    }

    fn remember(&mut self, key: Fingerprint, ordinal: u64, durable: u64) {
        self.in_order.push_back((ordinal, key));
        while self.in_order.len() > RECENT_KEYS_MAX
            && let Some((first, _)) = self.in_order.front().filter(|(first, _)| *first <= durable)
        {
            self.forgotten_through = *first;
            self.in_order.pop_front();
        }
    }
}

/// State of one owner, and its two positions: that of its own Records and that in the journal. A
/// command is decided and applied at once; its Record is handed on, and is durable later.
///
/// ```
/// use actors::engine::AdmissionLimits;
/// use actors::journal::{Admission, Sender};
/// use actors::resident::{Effects, Envelope, Outcome, Resident};
/// use ledger::fees::Settings;
/// use ledger::id::{GroupNumber, IdKey, LedgerId, ObjectId};
/// use ledger::merchant::{MerchantCommand, MerchantState};
/// use ledger::personal::Sealed;
/// use ledger::rejection::Rejection;
/// use ledger::time::Timestamp;
///
/// let (group, ids, now) = (GroupNumber(1), IdKey::new([3; 16]), Timestamp(1_767_225_600_000));
/// let owner = LedgerId::Merchant(group);
/// let mut resident = Resident::<MerchantState>::new(owner, group, Default::default());
/// let admission = Admission::new(AdmissionLimits::default());
/// let mut effects = Effects::default();
/// let mut open = |id| {
///     let (settings, profile) = (Settings::default(), Sealed::default());
///     let command = MerchantCommand::Open { id, settings, profile };
///     let permit = admission.try_take(Sender::Door, 1_024).unwrap();
///     let envelope = Envelope { command, key: None, unique: [None; 2], requester: None, permit };
///     resident.command(envelope, now, &ids, &mut effects)
/// };
/// assert!(matches!(open(ObjectId(7)), Outcome::Recorded(_)));
/// assert!(matches!(open(ObjectId(8)), Outcome::Refused(Rejection::MerchantExists)));
/// assert_eq!(resident.books().id(), Some(ObjectId(7)));
/// assert_eq!(effects.submissions.len(), 1, "a refusal hands nothing on");
/// ```
#[derive(Clone, Debug)]
pub struct Resident<B> {
    ledger: LedgerId,
    group: GroupNumber,
    books: B,
    own: u64,
    foreign: u64,
    keys: OwnKeys,
    /// Ordinal through which the own Records are durable; the journal raises it.
    durable: Arc<AtomicU64>,
    /// The cost of replaying what came since the last snapshot.
    cost_since_snapshot: u64,
    /// From this cost on, each message asks whether a snapshot is due.
    look_after: u64,
    /// Sections touched since the last snapshot known to be stored. Sections that the
    /// state has noted since it was last asked come on top.
    touched: BTreeSet<Section>,
    /// Sections touched since the last snapshot, stored or not.
    touched_since_taken: BTreeSet<Section>,
    /// Position of the last snapshot known to be stored; `None` if there is none.
    stored: Option<StatePosition>,
    /// The last snapshot, stored or not.
    taken: Receipt,
    taken_at: StatePosition,
}

/// Cost of replaying an own Record, which is read from anywhere in the journal. A foreign one costs
/// 1: it is hardly ever more than a credit that the index knows.
const OWN_COST: u64 = 20;
/// A snapshot is due at this cost of a replay: a thousand own Records, which wakes an actor in some
/// 20 ms. It is due later where the touched sections have more bytes than these Records pay for.
const COST_PER_SNAPSHOT_MIN: u64 = 1_000 * OWN_COST;
/// Bytes of sections that one own Record pays for. To encode and write them stays a small part of
/// its work, as a Record takes some 300 bytes of the journal.
const SECTION_BYTES_PER_RECORD: u64 = 64;

/// Effects of a message: Records to hand on, in order, before any reply.
#[derive(Debug, Default)]
pub struct Effects {
    /// For the journal.
    pub submissions: Vec<Submission>,
}

impl<B: OwnerMachine> Resident<B> {
    /// A state at its two positions, all of it durable. A new owner begins at nothing.
    pub fn new(ledger: LedgerId, group: GroupNumber, durable: Arc<AtomicU64>) -> Self {
        Self {
            ledger,
            group,
            books: B::default(),
            own: 0,
            foreign: 0,
            keys: OwnKeys::default(),
            durable,
            cost_since_snapshot: 0,
            look_after: COST_PER_SNAPSHOT_MIN,
            touched: BTreeSet::new(),
            touched_since_taken: BTreeSet::new(),
            stored: None,
            taken: Receipt::default(),
            taken_at: StatePosition::default(),
        }
    }

    /// Continues from a snapshot; false when it cannot be read and the state must be built from the
    /// journal alone.
    pub fn restore(&mut self, snapshot: &StoredSnapshot) -> bool {
        let Ok(books) = B::from_sections(&snapshot.head, snapshot.sections()) else { return false };
        self.books = books;
        self.own = snapshot.position.own;
        self.foreign = snapshot.position.foreign;
        self.stored = Some(snapshot.position);
        true
    }

    /// Applies one Record of the journal, in order; Records that are in the state already are
    /// passed over.
    pub fn replay(&mut self, sequence: Sequence, record: &Record) {
        if record.owner == self.ledger {
            if record.ordinal > self.own {
                self.books.evolve(record);
                self.own = record.ordinal;
                self.cost_since_snapshot += OWN_COST;
            }
        } else {
            self.receive(sequence, record);
        }
    }

    /// The same with a number of Records of other owners, through this one, that only credit.
    /// `credit` is their sum.
    pub(crate) fn credit(&mut self, through: Sequence, records: u64, credit: Credit) {
        self.count_foreign(through, records, |books| books.credit(credit));
    }

    /// The journal has been replayed through `through`; deliveries follow. A snapshot is due at
    /// once if the replay was long, or if there was no snapshot that the next one can continue.
    pub fn opened(&mut self, through: Sequence) {
        if self.cost_since_snapshot >= if self.stored.is_some() { COST_PER_SNAPSHOT_MIN } else { 1 } {
            self.look_after = 0;
        }
        self.foreign = self.foreign.max(through.0);
        self.keys.forgotten_through = self.own;
        self.durable.store(self.own, Ordering::Release);
    }

    /// Applies delivered foreign Records.
    pub fn deliver(&mut self, records: &[(Sequence, Arc<Record>)]) {
        for (sequence, record) in records {
            self.receive(*sequence, record);
        }
    }

    /// Takes a command: first what is due, then the decision. Both are applied at once.
    pub fn command(
        &mut self,
        envelope: Envelope<B::Command>,
        now: Timestamp,
        ids: &IdKey,
        effects: &mut Effects,
    ) -> Outcome {
        let key = envelope.key.map(|lookup| (lookup.idempotency.key, lookup.looked_up_through));
        let unique = envelope.unique.into_iter().flatten().map(|lookup| (lookup.key, lookup.looked_up_through));
        if key.into_iter().chain(unique).any(|(key, through)| self.keys.is_taken(key, through)) {
            return Outcome::KeyTaken;
        }
        self.mature(now, &envelope.permit, effects);
        let cut = Cut { foreign: self.foreign, minute: now.minute(), own: self.own };
        let decision = match self.books.decide(envelope.command, self.group, now, cut, ids) {
            Ok(decision) if decision.events.is_empty() => return Outcome::Unchanged,
            Ok(decision) => decision,
            Err(rejection) => return Outcome::Refused(rejection),
        };
        // From here on it must succeed: the permit holds room in the journal.
        let idempotency = envelope.key.map(|lookup| lookup.idempotency);
        Outcome::Recorded(self.hand_on(decision, now, idempotency, envelope.requester, &envelope.permit, effects))
    }

    /// Books all money that is due, each minute's in a Record of its own that takes effect in that
    /// minute. A read calls this first, so that its figures are current.
    pub fn mature(&mut self, now: Timestamp, permit: &Arc<Permit>, effects: &mut Effects) {
        while permit.may_write() {
            let at = self.books.matures_at(now);
            let Some(decision) = self.books.mature(at, self.foreign) else { return };
            self.hand_on(decision, at, None, None, permit, effects);
        }
    }

    /// True when every Record that was handed on is durable, so that a reply may leave at once.
    pub fn is_settled(&self) -> bool {
        self.durable.load(Ordering::Acquire) >= self.own
    }

    /// The owner's state.
    pub fn books(&self) -> &B {
        &self.books
    }

    /// The owner's ledger.
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

    /// Both positions of the state.
    pub fn position(&self) -> StatePosition {
        StatePosition { own: self.own, foreign: self.foreign }
    }

    /// True when Records were applied since the last snapshot.
    pub(crate) fn has_changed(&self) -> bool {
        self.cost_since_snapshot > 0
    }

    /// A snapshot, if one is due.
    pub fn due_snapshot(&mut self) -> Option<Snapshot> {
        if self.cost_since_snapshot < self.look_after {
            return None;
        }
        let sections = self.touched_sections();
        let bytes: usize = sections.values().flatten().map(Vec::len).sum();
        let paid_after = bytes as u64 * OWN_COST / SECTION_BYTES_PER_RECORD;
        if self.look_after > 0 && self.cost_since_snapshot < paid_after {
            // Asking again means encoding again. When each Record touches about as many bytes as it
            // pays for, asking soon would encode the same sections again and again.
            self.look_after = paid_after.max(self.cost_since_snapshot / 2 * 3);
            return None;
        }
        Some(self.snapshot_of(sections))
    }

    /// Snapshot of the state at its position: all sections that may differ from the stored
    /// snapshot.
    pub fn snapshot(&mut self) -> Snapshot {
        let sections = self.touched_sections();
        self.snapshot_of(sections)
    }

    /// Encodes every section touched since the last snapshot known to be stored.
    fn touched_sections(&mut self) -> BTreeMap<Section, Option<Vec<u8>>> {
        if self.taken.number > 0 && self.taken.stored.load(Ordering::Acquire) == self.taken.number {
            self.touched.clone_from(&self.touched_since_taken);
            self.stored = Some(self.taken_at);
        }
        let touched = self.books.take_touched();
        self.touched_since_taken.extend(&touched);
        self.touched.extend(touched);
        self.touched.iter().map(|section| (*section, self.books.section(*section))).collect()
    }

    fn snapshot_of(&mut self, sections: BTreeMap<Section, Option<Vec<u8>>>) -> Snapshot {
        self.cost_since_snapshot = 0;
        self.look_after = COST_PER_SNAPSHOT_MIN;
        self.touched_since_taken.clear();
        self.taken.number += 1;
        self.taken_at = self.position();
        Snapshot {
            ledger: self.ledger,
            position: self.taken_at,
            since: self.stored,
            head: self.books.head(),
            sections,
            receipt: self.taken.clone(),
        }
    }

    fn receive(&mut self, sequence: Sequence, record: &Record) {
        let ledger = self.ledger;
        self.count_foreign(sequence, 1, |books| books.receive(record, ledger));
    }

    fn count_foreign(&mut self, through: Sequence, records: u64, count: impl FnOnce(&mut B)) {
        if through.0 > self.foreign {
            count(&mut self.books);
            self.foreign = through.0;
            self.cost_since_snapshot += records;
        }
    }

    fn hand_on(
        &mut self,
        decision: Decision,
        now: Timestamp,
        idempotency: Option<Idempotency>,
        requester: Option<Requester>,
        permit: &Arc<Permit>,
        effects: &mut Effects,
    ) -> Arc<Record> {
        let mut record = decision.into_record(self.ledger, self.own + 1, now);
        record.idempotency = idempotency;
        record.requested_by(requester);
        self.books.evolve(&record);
        debug_assert!(self.books.is_sound(), "{:?} drew more than it has: {:?}", self.ledger, record.events);
        self.own = record.ordinal;
        self.cost_since_snapshot += OWN_COST;
        for key in record.keys() {
            self.keys.remember(key, record.ordinal, self.durable.load(Ordering::Acquire));
        }
        let mut bytes = Vec::with_capacity(512);
        record.encode(&mut bytes);
        let record = Arc::new(record);
        effects.submissions.push(Submission { record: Arc::clone(&record), bytes, permit: Arc::clone(permit) });
        record
    }
}

#[cfg(test)]
mod tests {
    use ledger::event::{CardBrand, CardFace, Event};
    use ledger::fees::{PaymentMethod, Settings};
    use ledger::id::ObjectId;
    use ledger::money::Centavos;
    use ledger::personal::Sealed;
    use ledger::time::Minute;

    use super::*;
    use crate::journal::{Admission, AdmissionLimits, Sender};

    const GROUP: GroupNumber = GroupNumber(1);
    const BEGIN: Timestamp = Timestamp(1_790_000_000_000);

    /// A merchant, what it has decided, and the admission of its commands.
    struct World {
        resident: Resident<MerchantState>,
        admission: Arc<Admission>,
        decided: Vec<Record>,
    }

    impl World {
        fn new() -> Self {
            let resident = Resident::new(LedgerId::Merchant(GROUP), GROUP, Arc::default());
            Self { resident, admission: Admission::new(AdmissionLimits::default()), decided: Vec::new() }
        }

        fn command(&mut self, at: Timestamp, command: MerchantCommand) {
            let (mut effects, permit) = (Effects::default(), self.admission.try_take(Sender::Door, 1_024).unwrap());
            let envelope = Envelope { command, key: None, unique: [None; 2], requester: None, permit };
            let outcome = self.resident.command(envelope, at, &IdKey::new([3; 16]), &mut effects);
            assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
            self.decided.extend(effects.submissions.into_iter().map(|submission| (*submission.record).clone()));
        }

        fn capture(&mut self, at: Timestamp, charge: ObjectId) {
            let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
            let (amount, method, payer) = (Centavos(10_000), PaymentMethod::CreditCard, Sealed::default());
            self.command(
                at,
                MerchantCommand::OpenCard {
                    charge,
                    amount,
                    method,
                    installments: 1,
                    splits: Vec::new(),
                    card,
                    payer,
                    rail: None,
                },
            );
            self.command(
                at,
                MerchantCommand::CaptureCard { charge, acquirer_mdr: Centavos(299), captured_at: None, brand: None },
            );
        }
    }

    /// A process that was not there when money fell due books it later, in the month in which it
    /// fell due.
    #[test]
    fn money_matures_in_its_due_minute_also_when_it_is_booked_later() {
        let mut world = World::new();
        let (id, settings, profile) = (ObjectId(1), Settings::default(), Sealed::default());
        world.command(BEGIN, MerchantCommand::Open { id, settings, profile });
        let captured = [BEGIN.plus_ms(7), BEGIN.plus_days(2), BEGIN.plus_days(4)];
        for (at, charge) in captured.into_iter().zip([ObjectId(2), ObjectId(3), ObjectId(4)]) {
            world.capture(at, charge);
        }
        world.decided.clear();
        let later = BEGIN.plus_days(34).plus_ms(5);
        world.capture(later, ObjectId(5));
        let matured: Vec<(Timestamp, Vec<Minute>)> = world
            .decided
            .iter()
            .filter_map(|record| match &record.events[..] {
                [Event::Matured { dues, .. }] => {
                    Some((record.effective_at, dues.iter().map(|due| due.minute).collect()))
                }
                _ => None,
            })
            .collect();
        let due = |captured: Timestamp| captured.plus_days(30).minute();
        let expected = [
            (due(captured[0]).end(), vec![due(captured[0])]),
            (due(captured[1]).end(), vec![due(captured[1])]),
            (later, vec![due(captured[2])]),
        ];
        assert_eq!(matured, expected);
        assert!(world.decided.is_sorted_by_key(|record| (record.effective_at, record.ordinal)));
    }
}
