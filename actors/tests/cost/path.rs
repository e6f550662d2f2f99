//! Path of a split charge, from its command to the read model: the real machines, one step after
//! the other on one thread, without a disk. Each stage is a function of its own that is never
//! inlined, so that an allocator and callgrind count the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actors::engine::IndexOptions;
use actors::journal::{Admission, AdmissionLimits, Input, Machine, Output, Sender, Submission};
use actors::resident::{Effects, Envelope, KeyLookup, Outcome, Resident};
use derived::read_model::{KeyFound, ReadModel};
use derived::seal::Keyring;
use ledger::fees::Settings;
use ledger::merchant::SplitRequest;
use ledger::{
    Account, CardBrand, CardFace, Centavos, Fingerprint, GroupNumber, IdKey, Idempotency, LedgerId, MerchantCommand,
    MerchantState, ObjectId, PaymentMethod, RecipientNumber, RecipientState, Record, Sealed, Timestamp,
};
use store::testkit::MemoryStore;
use store::{Block, BlockHash, ChunkKey, Head, Partition, Sequence, cut};

use crate::allocations::{Allocations, allocated};

/// Charges that go the way before the count, and as many again that are counted. What doubles as it
/// grows does so once meanwhile, wherever it stood: its growth is counted whole, and spread over
/// the charges.
pub(crate) const CHARGES: u64 = 1_024;
/// Charges whose Records share a block: as many callers wait.
const CHARGES_PER_BLOCK: u64 = 64;
/// Merchants, with three recipients each, that take the charges in turn.
const MERCHANTS: u32 = 8;
/// What each recipient gets of a charge, centavos.
const PARTS: [i64; 3] = [1_000, 2_000, 500];
/// Between one charge and the next, milliseconds: a minute passes while they are counted.
const CHARGE_EVERY_MS: i64 = 60;

/// The body of a request, of the usual length.
const BODY: [u8; 640] = [b'x'; 640];
/// So small runs that there are several of the charges' Records.
const RUNS: IndexOptions = IndexOptions { records_per_run: 128, runs_merged: 64 };

/// How the payer pays. Either charge is two Records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// The intent, and what the acquirer captured.
    Card,
    /// A code, and its payment.
    Pix,
}

/// A part of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Decide,
    Encode,
    Command,
    Block,
    Chunks,
    Land,
    Deliver,
    Publish,
    Key,
}

impl Stage {
    pub(crate) const ALL: [Self; 9] = [
        Self::Decide,
        Self::Encode,
        Self::Command,
        Self::Block,
        Self::Chunks,
        Self::Land,
        Self::Deliver,
        Self::Publish,
        Self::Key,
    ];

    /// Its name: that of its function.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Encode => "encode",
            Self::Command => "command",
            Self::Block => "block",
            Self::Chunks => "chunks",
            Self::Land => "land",
            Self::Deliver => "deliver",
            Self::Publish => "publish",
            Self::Key => "key",
        }
    }
}

/// The law alone: decides, makes the entries, applies. What the actor does is more of the same, so
/// its books come to the same.
#[inline(never)]
fn decide(law: &mut MerchantState, command: MerchantCommand, at: &At, ordinal: u64, ids: &IdKey) -> Record {
    let decision = law.decide(command, at.group, at.now, ids).expect("nothing is wrong with it");
    let record = decision.into_record(LedgerId::Merchant(at.group), ordinal, at.now);
    law.evolve(&record);
    record
}

/// Encodes into memory that is there already.
#[inline(never)]
fn encode(record: &Record, into: &mut Vec<u8>) {
    record.encode(into);
}

/// The actor with a command: the two above, and what it does besides.
#[inline(never)]
fn command(
    merchant: &mut Resident<MerchantState>,
    command: MerchantCommand,
    key: Option<KeyLookup>,
    now: Timestamp,
    admission: &Arc<Admission>,
    ids: &IdKey,
) -> Vec<Submission> {
    let permit = admission.try_take(Sender::Door, 1_024).expect("there is room");
    let mut effects = Effects::default();
    let order = Envelope { command, key, unique: [None; 2], requester: None, permit };
    let outcome = merchant.command(order, now, ids, &mut effects);
    assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
    effects.submissions
}

/// The journal takes Records and the replies behind them, and makes a block of those that wait.
#[inline(never)]
fn block(journal: &mut Journal, submissions: Vec<Vec<Submission>>, now: Timestamp) -> Block {
    let mut outputs = Vec::new();
    for submissions in submissions {
        journal.step(Input::Submit(submissions), &mut outputs);
        journal.step(Input::Answer(()), &mut outputs);
    }
    journal.gather(now, &mut outputs);
    match <[Output<(), LedgerId>; 1]>::try_from(outputs) {
        Ok([Output::Write(block)]) => block,
        other => panic!("one block, not {other:?}"),
    }
}

/// The store cuts a block.
#[inline(never)]
fn chunks(block: &Block) -> (BlockHash, Vec<(ChunkKey, Vec<u8>)>) {
    let hash = block.hash();
    (hash, cut(block, hash))
}

/// The block is durable: what the machine delivers, publishes and releases.
#[inline(never)]
fn land(journal: &mut Journal, hash: BlockHash) -> Vec<Output<(), LedgerId>> {
    let mut outputs = Vec::new();
    journal.step(Input::Written(hash), &mut outputs);
    outputs
}

/// A recipient's actor counts what it is credited.
#[inline(never)]
fn deliver(recipient: &mut Resident<RecipientState>, records: &[(Sequence, Arc<Record>)]) {
    recipient.deliver(records);
}

/// The readers' view and the index.
#[inline(never)]
fn publish(read_model: &ReadModel, records: &[(Sequence, Arc<Record>)]) {
    read_model.publish(records).expect("the index has room");
}

/// The door with an idempotency key that nobody used: its digests, and that no Record has it.
#[inline(never)]
fn key(read_model: &ReadModel, keyring: &Keyring, owner: LedgerId, sent: &[u8]) -> KeyFound {
    let key = keyring.fingerprint("idempotency-key", &[b"account", b"route", sent]);
    let body = keyring.fingerprint("idempotency-body", &[&BODY, &[]]);
    assert_ne!(key, body);
    read_model.find_key(owner, key).expect("the index can be read")
}

type Journal = Machine<(), LedgerId>;

/// Whose command, and when.
struct At {
    group: GroupNumber,
    now: Timestamp,
}

/// Counts allocations once it is switched on.
#[derive(Default)]
struct Meter(Option<BTreeMap<Stage, Allocations>>);

impl Meter {
    fn count<T>(&mut self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let before = allocated();
        let done = work();
        let here = allocated() - before;
        if let Some(counted) = &mut self.0 {
            *counted.entry(stage).or_default() += here;
        }
        done
    }
}

/// A merchant and its recipients.
struct Shop {
    group: GroupNumber,
    law: MerchantState,
    merchant: Resident<MerchantState>,
    durable: Arc<AtomicU64>,
    recipients: Vec<Resident<RecipientState>>,
    ids: Vec<ObjectId>,
}

impl Shop {
    fn splits(&self) -> Vec<SplitRequest> {
        let parts = self.ids.iter().zip(PARTS);
        parts.map(|(id, amount)| SplitRequest { recipient: *id, amount: Centavos(amount) }).collect()
    }
}

/// Everything that a charge passes.
pub(crate) struct World {
    ids: IdKey,
    admission: Arc<Admission>,
    journal: Journal,
    keyring: Arc<Keyring>,
    read_model: ReadModel,
    shops: Vec<Shop>,
    now: Timestamp,
    charges: u64,
    meter: Meter,
}

impl World {
    /// Merchants with their recipients, all awake.
    pub(crate) fn open(index: IndexOptions) -> Self {
        let store = MemoryStore::new().part();
        let keyring = Arc::new(Keyring::open([7; 32], Arc::clone(store.store())).unwrap());
        let keys = Arc::clone(&keyring);
        let read_model = ReadModel::unread(store, Arc::default(), keys, str::to_lowercase, index, Arc::default())
            .opened(|_, _| {})
            .unwrap();
        let mut world = Self {
            ids: IdKey::new([3; 16]),
            admission: Admission::new(AdmissionLimits::default()),
            journal: Machine::new(Partition(0), Head::EMPTY),
            keyring,
            read_model,
            shops: Vec::new(),
            now: Timestamp(1_790_000_000_000),
            charges: 0,
            meter: Meter::default(),
        };
        (0..MERCHANTS).for_each(|number| world.open_shop(GroupNumber(number)));
        world
    }

    fn open_shop(&mut self, group: GroupNumber) {
        let ledger = LedgerId::Merchant(group);
        let durable = Arc::new(AtomicU64::new(0));
        let merchant = Resident::new(ledger, group, Arc::clone(&durable));
        let law = MerchantState::default();
        self.shops.push(Shop { group, law, merchant, durable, recipients: Vec::new(), ids: Vec::new() });
        let shop = self.shops.len() - 1;
        self.register(ledger);
        let settings = Settings { split_enabled: true, ..Settings::default() };
        let id = self.ids.object(group, self.now, 1);
        self.pass(vec![(shop, MerchantCommand::Open { id, settings, profile: sealed() }, None)]);
        for number in (1..=PARTS.len() as u32).map(RecipientNumber) {
            let document = Fingerprint(u128::from(number.0).to_be_bytes());
            let command = MerchantCommand::RegisterRecipient { random: 1, document, profile: sealed() };
            self.pass(vec![(shop, command, None)]);
            let id = self.ids.recipient(group, number, self.now, 1);
            self.pass(vec![(shop, MerchantCommand::ApproveRecipient { id }, None)]);
            let ledger = LedgerId::Recipient(group, number);
            self.shops[shop].ids.push(id);
            self.shops[shop].recipients.push(Resident::new(ledger, group, Arc::default()));
            self.register(ledger);
        }
    }

    /// An actor wakes: the journal hears of it. Nothing waits, so it is answered at once.
    fn register(&mut self, ledger: LedgerId) {
        let mut outputs = Vec::new();
        self.journal.step(Input::Open { ledger, inbox: ledger }, &mut outputs);
        self.journal.gather(self.now, &mut outputs);
        match (outputs.as_slice(), ledger) {
            ([Output::Opened { through, .. }], LedgerId::Recipient(group, number)) => {
                self.shops[group.0 as usize].recipients[number.0 as usize - 1].opened(*through);
            }
            ([Output::Opened { through, .. }], _) => {
                self.shops.last_mut().expect("it was just made").merchant.opened(*through);
            }
            other => panic!("it is open, not {other:?}"),
        }
    }

    /// This number of charges go the whole way.
    pub(crate) fn charge(&mut self, kind: Kind, count: u64) {
        for _ in 0..count / CHARGES_PER_BLOCK {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for _ in 0..CHARGES_PER_BLOCK {
                self.now = self.now.plus_ms(CHARGE_EVERY_MS);
                self.charges += 1;
                let shop = (self.charges % self.shops.len() as u64) as usize;
                let [opening, paying] = self.commands(kind, shop);
                let scattered = u128::from(self.charges).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
                let digest = Fingerprint(scattered.to_be_bytes());
                first.push((shop, opening, Some(Idempotency { key: digest, body: digest })));
                second.push((shop, paying, None));
            }
            self.pass(first);
            self.pass(second);
        }
    }

    /// The commands that open and pay a charge.
    fn commands(&self, kind: Kind, shop: usize) -> [MerchantCommand; 2] {
        let shop = &self.shops[shop];
        let random = self.charges.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let charge = self.ids.object(shop.group, self.now, random);
        let (amount, splits, payer) = (Centavos(10_000), shop.splits(), sealed());
        match kind {
            Kind::Card => {
                let (method, installments) = (PaymentMethod::CreditCard, 1);
                let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
                [
                    MerchantCommand::OpenCard { charge, amount, method, installments, splits, card, payer, rail: None },
                    MerchantCommand::CaptureCard {
                        charge,
                        acquirer_mdr: Centavos(200),
                        captured_at: None,
                        brand: None,
                    },
                ]
            }
            Kind::Pix => {
                let (expires_at, end_to_end_id) =
                    (self.now.plus_days(1), "E0000000020260701120012345678901".to_owned());
                [
                    MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer, rail: None },
                    MerchantCommand::ConfirmPix { charge, amount, end_to_end_id },
                ]
            }
        }
    }

    /// Commands of merchants become one block, which is delivered and published as by the journal's
    /// thread.
    fn pass(&mut self, commands: Vec<(usize, MerchantCommand, Option<Idempotency>)>) {
        let Self { ids, admission, journal, read_model, shops, now, meter, .. } = self;
        let (mut submissions, mut bytes) = (Vec::new(), Vec::with_capacity(4_096));
        for (shop, action, idempotency) in commands {
            let Shop { group, law, merchant, .. } = &mut shops[shop];
            let (at, ordinal) = (At { group: *group, now: *now }, merchant.own() + 1);
            let (again, key) =
                (action.clone(), idempotency.map(|idempotency| KeyLookup { idempotency, looked_up_through: ordinal }));
            let mut record = meter.count(Stage::Decide, || decide(law, again, &at, ordinal, ids));
            record.idempotency = idempotency;
            bytes.clear();
            meter.count(Stage::Encode, || encode(&record, &mut bytes));
            let made = meter.count(Stage::Command, || command(merchant, action, key, *now, admission, ids));
            assert!(made.len() == 1 && made[0].bytes == bytes, "the actor decides what the law does");
            submissions.push(made);
        }
        let written = meter.count(Stage::Block, || block(journal, submissions, *now));
        let (hash, cut) = meter.count(Stage::Chunks, || chunks(&written));
        assert!(!cut.is_empty());
        for output in meter.count(Stage::Land, || land(journal, hash)) {
            match output {
                Output::Deliver { inbox: LedgerId::Recipient(group, number), records } => {
                    let recipient = &mut shops[group.0 as usize].recipients[number.0 as usize - 1];
                    meter.count(Stage::Deliver, || deliver(recipient, &records));
                }
                Output::Publish(records) => meter.count(Stage::Publish, || publish(read_model, &records)),
                Output::Durable { inbox: LedgerId::Merchant(group), ordinal } => {
                    shops[group.0 as usize].durable.store(ordinal, Ordering::Release);
                }
                Output::Release(()) => {}
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    /// Looks up this number of unused keys.
    fn look_up(&mut self, count: u64) {
        let Self { read_model, keyring, shops, meter, .. } = self;
        for number in 0..count {
            let (owner, sent) = (LedgerId::Merchant(shops[0].group), number.to_be_bytes());
            let found = meter.count(Stage::Key, || key(read_model, keyring, owner, &sent));
            assert!(found.sequence.is_none() && found.looked_up_through > 0);
        }
    }

    /// Every centavo has arrived: with its recipient, and in what readers see of it.
    pub(crate) fn check(&self) {
        for (at, shop) in (0..).zip(&self.shops) {
            let charges = (1..=self.charges).filter(|charge| charge % self.shops.len() as u64 == at).count() as i64;
            for (recipient, amount) in shop.recipients.iter().zip(PARTS) {
                let (books, total) = (recipient.books(), charges * amount);
                assert_eq!(books.pending() + books.available(), Centavos(total), "{:?}", recipient.ledger());
                let seen = |account| self.read_model.balance(recipient.ledger(), account);
                assert_eq!(seen(Account::Pending) + seen(Account::Available), i128::from(total));
            }
            assert!(shop.merchant.books() == &shop.law && shop.merchant.is_settled());
            assert_eq!(shop.merchant.own(), 1 + 2 * PARTS.len() as u64 + 2 * charges as u64);
        }
        assert_eq!(self.admission.commands(), 0, "every permit came back");
    }
}

/// Personal data of the usual length.
fn sealed() -> Sealed {
    Sealed { month: 680, bytes: vec![7; 96], version: 0 }
}

/// Charges go the way uncounted; then as many again, with each stage counted.
pub(crate) fn measure(kind: Kind) -> BTreeMap<Stage, Allocations> {
    let mut world = World::open(IndexOptions::default());
    world.charge(kind, CHARGES);
    world.meter = Meter(Some(BTreeMap::new()));
    counted(&mut world, kind);
    world.check();
    let mut stages = world.meter.0.take().expect("it was just set to count");
    let mut world = World::open(RUNS);
    world.charge(kind, CHARGES);
    world.read_model.settle();
    world.meter = Meter(Some(BTreeMap::new()));
    counted_keys(&mut world);
    stages.extend(world.meter.0.take().expect("it was just set to count"));
    stages
}

/// One merchant opens PIX charges with many splits, which nobody pays: allocations of the look
/// whether a snapshot is due, all in all. No snapshot is ever known to be stored, as on a disk that
/// is too slow.
pub(crate) fn looking(charges: u64, splits: usize) -> Allocations {
    let mut world = World::open(IndexOptions::default());
    world.shops.truncate(1);
    world.shops[0].ids.truncate(splits);
    let mut looked = Allocations::default();
    for _ in 0..charges {
        world.now = world.now.plus_ms(CHARGE_EVERY_MS);
        world.charges += 1;
        let [opening, _] = world.commands(Kind::Pix, 0);
        world.pass(vec![(0, opening, None)]);
        let before = allocated();
        drop(world.shops[0].merchant.due_snapshot());
        looked += allocated() - before;
    }
    looked
}

/// Callgrind counts while this runs.
#[inline(never)]
fn counted(world: &mut World, kind: Kind) {
    world.charge(kind, CHARGES);
}

/// Callgrind counts while this runs.
#[inline(never)]
fn counted_keys(world: &mut World) {
    world.look_up(CHARGES);
}
