use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ledger::account::Account::{self, AcquirerReceivable, Capital, ContraSplits, FeeMdr, Pending, SalesCard};
use ledger::event_choice::EventChoice;
use ledger::fees::Settings;
use ledger::merchant::SplitRequest;
use ledger::period::MonthEnd;
use ledger::postings;
use ledger::scope::Scopes;
use ledger::{
    Balance, CardBrand, CardFace, Centavos, Decision, Entry, Event, Fingerprint, GroupNumber, IdKey, Idempotency,
    LedgerId, MerchantCommand, MerchantState, Month, ObjectId, PaymentMethod, Posting, RecipientNumber, RecipientState,
    Record, Sealed, SealedFor, Side, Timestamp,
};

use super::*;
use crate::resident::{OwnerMachine, Resident};
use derived::checkpoint::{Checkpoint, digest_of};
use derived::extents::Extent;
use derived::snapshots;
use store::testkit::{MemoryStore, Watch, WatchedStore};
use store::{Block, BlockHash, Durability, Store};

const GROUP: GroupNumber = GroupNumber(1);
const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
const RECIPIENT: LedgerId = LedgerId::Recipient(GROUP, RecipientNumber(1));
const PLATFORM: LedgerId = LedgerId::Platform(GROUP);
const DAY_MS: i64 = 86_400_000;

/// A store and what to write to it: a merchant, a key, a recipient, a card charge (Records 5 and
/// 6), a PIX charge (7 and 8), and what falls due a month later (9 and 10).
struct Scene {
    /// All partitions of the store.
    parts: Vec<Part>,
    /// That of the merchant.
    store: Part,
    keyring: Keyring,
    records: Vec<Record>,
}

impl Scene {
    fn new() -> Self {
        Self::of(vec![MemoryStore::new().part()])
    }

    /// The same in the last of three partitions.
    fn of_three() -> Self {
        Self::of_three_in(Arc::new(MemoryStore::new()))
    }

    fn of_three_in(store: Arc<dyn Store>) -> Self {
        let extent = |from, first, count| Extent { from: GroupNumber(from), first: Partition(first), count };
        let extents = Extents::new(vec![extent(0, 0, 2), extent(1, 2, 1)]).unwrap().keep(&*store).unwrap();
        Self::of(extents.all().map(|one| Part::take(Arc::clone(&store), one).unwrap()).collect())
    }

    fn of(parts: Vec<Part>) -> Self {
        let extents = Extents::of(&**parts[0].store()).unwrap();
        let store = parts[usize::from(extents.partition_of(GROUP).0)].clone();
        let keyring = Keyring::open([7; 32], Arc::clone(store.store())).unwrap();
        let records = records(&keyring);
        Self { parts, store, keyring, records }
    }

    /// Writes the Records in blocks of up to three, with a valid chain, and verifies.
    fn verify(&self) -> VerifyResult<VerificationResult> {
        let encoded: Vec<Vec<u8>> = self.records.iter().map(encoded).collect();
        self.verify_bytes(&encoded)
    }

    fn verify_bytes(&self, encoded: &[Vec<u8>]) -> VerifyResult<VerificationResult> {
        for records in encoded.chunks(3) {
            let head = self.store.head().unwrap();
            let booked_at_ms = head.booked_at_ms.max(0) + 1;
            let (partition, records) = (self.store.partition(), records.to_vec());
            let block = Block { partition, first: head.next, booked_at_ms, previous: head.hash, records };
            self.store.append(&block).unwrap();
        }
        super::verify(&self.parts, Some(&self.keyring), &mut |_| {})
    }

    /// Keeps the state that the Records make, at two positions.
    fn keep<B: OwnerMachine>(&self, ledger: LedgerId, own_through: u64, foreign: u64) {
        self.keep_at::<B>(ledger, own_through, foreign, 0);
    }

    /// The same, but for a count of own Records that is wrong by `miscounted`.
    fn keep_at<B: OwnerMachine>(&self, ledger: LedgerId, own_through: u64, foreign: u64, miscounted: i64) {
        let mut resident = Resident::<B>::new(ledger, GROUP, Arc::new(AtomicU64::new(0)));
        for (sequence, record) in (1..).zip(&self.records) {
            let is_own = record.owner == ledger;
            if is_own && sequence <= own_through || !is_own && sequence <= foreign {
                resident.replay(Sequence(sequence), record);
            }
        }
        let mut snapshot = resident.snapshot();
        snapshot.position.foreign = foreign;
        snapshot.position.own = snapshot.position.own.saturating_add_signed(miscounted);
        snapshots::write(&self.store, &snapshot, Sequence(own_through)).unwrap();
    }
}

fn records(keyring: &Keyring) -> Vec<Record> {
    let ids = IdKey::new([3; 16]);
    let begin = Timestamp(1_790_000_000_000);
    let id = |number| ids.object(GROUP, begin, number);
    let seal = |sealed_for, text: &str| {
        keyring.seal(sealed_for, u32::from(sealed_for.is_versioned()), begin, text.as_bytes()).unwrap()
    };
    let document = Fingerprint([1; 16]);
    let mut state = MerchantState::default();
    let mut records: Vec<Record> = Vec::new();
    let mut decided = |decision: Decision, state: &mut MerchantState, now: Timestamp| {
        let record = decision.into_record(MERCHANT, records.len() as u64 + 1, now);
        state.evolve(&record);
        records.push(record);
    };
    let settings = Settings { split_enabled: true, ..Settings::default() };
    let recipient = ids.recipient(GROUP, RecipientNumber(1), begin, 9);
    let split = |amount| vec![SplitRequest { recipient, amount: Centavos(amount) }];
    let commands = [
        MerchantCommand::Open { id: id(1), settings, profile: seal(SealedFor::merchant(GROUP), "Estúdio") },
        MerchantCommand::CreateApiKey {
            id: id(2),
            digest: [2; 32],
            webhook_url: None,
            webhook_secret: keyring.seal_secret(SealedFor::webhook_secret(id(2)), b"whsec").unwrap(),
            scopes: Scopes::ALL,
            events: EventChoice::ALL,
        },
        MerchantCommand::RegisterRecipient {
            random: 9,
            document,
            profile: seal(SealedFor::recipient(document), "Ana"),
        },
        MerchantCommand::ApproveRecipient { id: recipient },
        MerchantCommand::OpenCard {
            charge: id(3),
            amount: Centavos(10_000),
            method: PaymentMethod::CreditCard,
            installments: 1,
            splits: split(3_500),
            card: CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa },
            payer: seal(SealedFor::payer(id(3)), "Maria"),
            rail: None,
        },
        MerchantCommand::CaptureCard { charge: id(3), acquirer_mdr: Centavos(299), captured_at: None, brand: None },
        MerchantCommand::OpenPix {
            charge: id(4),
            amount: Centavos(8_000),
            splits: split(1_000),
            expires_at: begin.plus_days(1),
            payer: seal(SealedFor::payer(id(4)), "José"),
            rail: None,
        },
        MerchantCommand::ConfirmPix { charge: id(4), amount: Centavos(8_000), end_to_end_id: "E1".to_owned() },
    ];
    for command in commands {
        let decision = state.decide(command, GROUP, begin, &ids).unwrap();
        decided(decision, &mut state, begin);
    }
    let later = begin.plus_days(31);
    decided(state.mature(later, 0).unwrap(), &mut state, later);
    let mut owed = RecipientState::default();
    records.iter().for_each(|record| owed.receive(record, RECIPIENT));
    records.push(owed.mature(later, 9).unwrap().into_record(RECIPIENT, 1, later));
    records
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

fn entry(ledger: LedgerId, lines: &[(Account, Side, i64)]) -> Entry {
    let posting = |(account, side, amount): &(Account, Side, i64)| Posting {
        account: *account,
        side: *side,
        amount: Centavos(*amount),
    };
    Entry::try_new(ledger, lines.iter().map(posting).collect()).unwrap()
}

/// Changes amounts of the merchant's entry, which still balances.
fn change(record: &mut Record, changes: &[(Account, i64)]) {
    let entry = record.entries.iter_mut().find(|entry| entry.ledger() == MERCHANT).unwrap();
    let mut postings = entry.postings().to_vec();
    for (account, amount) in changes {
        postings.iter_mut().find(|posting| posting.account == *account).unwrap().amount += Centavos(*amount);
    }
    *entry = Entry::try_new(MERCHANT, postings).unwrap();
}

/// Adds an event and the entries that it makes.
fn add(record: &mut Record, event: Event) {
    record.entries.extend(postings::entries(record.owner, std::slice::from_ref(&event)));
    record.events.push(event);
}

fn same_key(records: &mut [Record], places: [usize; 2]) {
    for place in places {
        let key = Fingerprint([5; 16]);
        records[place].idempotency = Some(Idempotency { key, body: Fingerprint([place as u8; 16]) });
    }
}

fn verify(
    store: &Part,
    keyring: Option<&Keyring>,
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<VerificationResult> {
    super::verify(std::slice::from_ref(store), keyring, progress)
}

fn outcome(verified: VerifyResult<VerificationResult>) -> Result<VerificationResult, BrokenPromise> {
    verified.map_err(|error| match error {
        VerifyError::Broken(broken) => *broken,
        other => panic!("{other}"),
    })
}

#[test]
fn a_sound_journal_verifies() {
    let scene = Scene::new();
    scene.keep::<MerchantState>(MERCHANT, 6, 3);
    scene.keep::<RecipientState>(RECIPIENT, 0, 6);
    let mut progress_reports = Vec::new();
    let encoded: Vec<Vec<u8>> = scene.records.iter().map(encoded).collect();
    scene.verify_bytes(&encoded).unwrap();
    let verified = verify(&scene.store, Some(&scene.keyring), &mut |progress| progress_reports.push(progress)).unwrap();
    let counts = (verified.records, verified.blocks, verified.ledgers, verified.snapshots, verified.snapshots_unusable);
    assert_eq!(counts, (10, 4, 3, 2, 0));
    assert_eq!(verified.sealed, SealedParts { found: 5, opened: Some(5), erased: 0 });
    assert_eq!(verified.debits, verified.credits);
    assert!(progress_reports.ends_with(&[VerifyProgress::Journal(10, 10)]), "{progress_reports:?}");
}

/// With few states in memory at once the journal is read again, and the outcome is the same.
#[test]
fn states_are_checked_in_as_many_passes_as_they_take() {
    type Keep = fn(&Scene);
    let cases: [(&str, Keep, bool); 3] = [
        ("no snapshots", |_| {}, true),
        (
            "snapshots at positions that differ",
            |scene| {
                scene.keep::<MerchantState>(MERCHANT, 6, 9);
                scene.keep::<RecipientState>(RECIPIENT, 10, 6);
            },
            true,
        ),
        ("a miscounted snapshot", |scene| scene.keep_at::<RecipientState>(RECIPIENT, 0, 8, 1), false),
    ];
    for (name, keep, is_sound) in cases {
        let scene = Scene::new();
        keep(&scene);
        scene.verify().ok();
        let outcomes: Vec<_> = [OWNERS_MAX, 2, 1]
            .map(|owners_max| {
                let mut passes = BTreeSet::new();
                let mut note = |progress| match progress {
                    VerifyProgress::Journal(..) => {}
                    VerifyProgress::States(_, total) => drop(passes.insert(total)),
                };
                let (parts, keyring) = (&scene.parts, Some(&scene.keyring));
                let verified = outcome(verify_in_passes(parts, keyring, &[], owners_max, &mut note));
                if is_sound {
                    // The merchant, the recipient and the platform's shard.
                    assert_eq!(passes.len(), 3_usize.div_ceil(owners_max) - 1, "{name}");
                }
                verified.map(|verified| (verified.ledgers, verified.snapshots, verified.snapshots_unusable))
            })
            .into();
        assert_eq!(outcomes[0].is_ok(), is_sound, "{name}: {outcomes:?}");
        assert!(outcomes.iter().all(|other| *other == outcomes[0]), "{name}: {outcomes:?}");
    }
}

/// As a server could send it.
#[test]
fn a_journal_that_ends_before_its_head_is_damaged() {
    let scene = Scene::new();
    scene.verify().unwrap();
    let (store, head, extents) = (&scene.store, scene.store.head().unwrap(), Extents::default());
    for (beyond, is_whole) in [(0, true), (1, false)] {
        let head = Head { next: Sequence(head.next.0 + beyond), ..head };
        let checker = Checker::new(store, &extents, true, CheckpointCheck::default()).unwrap();
        let replays = Replays::new(store, head, OWNERS_MAX).unwrap();
        let verified = verify_part(store, head, Some(&scene.keyring), (checker, replays), &mut |_| {});
        assert_eq!(verified.is_ok(), is_whole, "{beyond}");
    }
}

#[test]
fn an_empty_journal_verifies() {
    let store = MemoryStore::new().part();
    let verified = verify(&store, None, &mut |_| {}).unwrap();
    assert_eq!((verified.records, verified.blocks, verified.ledgers, verified.debits), (0, 0, 0, 0));
}

/// Each case is a journal with a valid chain that no sound program writes, and the promise and
/// sequence at which it is found.
#[test]
fn seeded_damage_is_found_where_it_is() {
    type Damage = fn(&mut Vec<Record>);
    let cases: [(&str, Damage, Promise, u64); 17] = [
        (
            "the payer of another charge",
            |records| records[4].personal = records[6].personal.clone(),
            Promise::Sealed,
            5,
        ),
        (
            "the webhook secret of another API key",
            |records| match &mut records[1].events[0] {
                Event::ApiKeyCreated { id, .. } => *id = ObjectId(id.0 + 1),
                other => panic!("{other:?}"),
            },
            Promise::Sealed,
            2,
        ),
        ("a wrong ordinal", |records| records[4].ordinal = 6, Promise::Ordinal, 5),
        ("a lost Record", |records| drop(records.remove(6)), Promise::Ordinal, 7),
        ("a Record twice", |records| records.insert(6, records[5].clone()), Promise::Ordinal, 7),
        (
            "a split without the recipient's entry",
            |records| records[5].entries.retain(|entry| entry.ledger() != RECIPIENT),
            Promise::Mirror,
            6,
        ),
        (
            "a claim without its liability",
            |records| change(&mut records[5], &[(Pending, 1), (FeeMdr, -1)]),
            Promise::Mirror,
            6,
        ),
        (
            "a split given and not received",
            |records| change(&mut records[5], &[(ContraSplits, 1), (FeeMdr, -1)]),
            Promise::Splits,
            6,
        ),
        (
            "a fee paid and not earned",
            |records| change(&mut records[5], &[(FeeMdr, 1), (SalesCard, 1)]),
            Promise::Fees,
            6,
        ),
        (
            "a negative available",
            |records| add(&mut records[6], Event::DeficitRecovered { amount: Centavos(1) }),
            Promise::NotNegative,
            7,
        ),
        (
            "entries without an event",
            |records| {
                let lines = [(AcquirerReceivable, Side::Debit, 5), (Capital, Side::Credit, 5)];
                records[3].entries.push(entry(PLATFORM, &lines));
            },
            Promise::Entries,
            4,
        ),
        ("an event without its entries", |records| records[8].entries.clear(), Promise::Entries, 9),
        (
            "events that do not add up",
            |records| match &mut records[5].events[0] {
                Event::CardCaptured { seller, .. } => seller.raised += Centavos(1),
                event => panic!("{event:?}"),
            },
            Promise::Entries,
            6,
        ),
        (
            "money that matures in a minute in which nothing was due",
            |records| match &mut records[8].events[0] {
                Event::Matured { dues, .. } => dues[0].minute.0 += 1,
                event => panic!("{event:?}"),
            },
            Promise::Receivables,
            9,
        ),
        (
            "a split that matures before its day",
            |records| match &mut records[5].events[0] {
                Event::CardCaptured { splits_due, .. } => splits_due.0 += 1,
                event => panic!("{event:?}"),
            },
            Promise::Receivables,
            10,
        ),
        ("a key used twice", |records| same_key(records, [4, 6]), Promise::IdempotencyKey, 7),
        (
            "a sealed part of another key",
            |records| records[4].personal.as_mut().unwrap().bytes[20] ^= 1,
            Promise::Sealed,
            5,
        ),
    ];
    for (name, damage, promise, sequence) in cases {
        let mut scene = Scene::new();
        damage(&mut scene.records);
        let broken = outcome(scene.verify()).expect_err(name);
        assert_eq!((broken.promise, broken.sequence), (promise, Some(Sequence(sequence))), "{name}: {broken}");
    }
}

/// The former bank account in place of the newer one, under the former version and under the new.
#[test]
fn a_former_profile_in_place_of_a_newer_one_is_found() {
    let document = Fingerprint([1; 16]);
    let sealed_for = SealedFor::recipient(document);
    for (version, found) in [(None, None), (Some(1), Some("version 1")), (Some(2), Some("bytes that its key refuses"))]
    {
        let mut scene = Scene::new();
        let former = scene.records[2].personal.clone().unwrap();
        let now = scene.records.last().unwrap().effective_at;
        let personal = match version {
            None => scene.keyring.seal(sealed_for, 2, now, b"Ana").unwrap(),
            Some(version) => Sealed { version, ..former },
        };
        let ordinal = scene.records.iter().filter(|record| record.owner == MERCHANT).count() as u64 + 1;
        let events = vec![Event::RecipientChanged { number: RecipientNumber(1), document }];
        let change = Decision { events, personal: Some(personal) }.into_record(MERCHANT, ordinal, now);
        scene.records.push(change);
        let broken = outcome(scene.verify()).err();
        assert_eq!(broken.as_ref().map(|broken| broken.promise), found.map(|_| Promise::Sealed), "{broken:?}");
        assert!(found.is_none_or(|found| broken.unwrap().found.contains(found)), "{version:?}");
    }
}

#[test]
fn an_unbalanced_entry_is_found() {
    let scene = Scene::new();
    let mut encoded: Vec<Vec<u8>> = scene.records.iter().map(encoded).collect();
    // The seller's part, 5938 centavos, in CBOR: the last one stands in the platform's entry.
    let seller = [0x19, 0x17, 0x32];
    let at = encoded[5].windows(3).rposition(|bytes| bytes == seller).unwrap();
    encoded[5][at + 2] += 1;
    let broken = outcome(scene.verify_bytes(&encoded)).unwrap_err();
    assert_eq!((broken.promise, broken.sequence), (Promise::Readable, Some(Sequence(6))));
    assert!(broken.found.contains("does not balance"), "{broken}");
}

#[test]
fn a_break_is_told_by_its_place_and_by_outside_names() {
    let mut scene = Scene::new();
    let Event::MerchantOpened { id, .. } = scene.records[0].events[0] else {
        panic!("the first Record opens the group")
    };
    scene.records[5].entries.retain(|entry| entry.ledger() != RECIPIENT);
    let broken = outcome(scene.verify()).unwrap_err().to_string();
    assert!(
        broken.starts_with(&format!("sequence 6, P-{}: a claim and its mirror sum to zero: ", id.uuid())),
        "{broken}"
    );
    assert!(broken.ends_with(", found -3500 centavos"), "{broken}");
}

#[test]
fn a_key_may_be_used_again_after_24_hours() {
    for (between_ms, is_sound) in [(DAY_MS - 1, false), (DAY_MS, true)] {
        let mut scene = Scene::new();
        same_key(&mut scene.records, [4, 6]);
        for record in &mut scene.records[6..] {
            record.effective_at = record.effective_at.plus_ms(between_ms);
        }
        assert_eq!(scene.verify().is_ok(), is_sound, "{between_ms}");
    }
}

#[test]
fn what_was_erased_is_counted_and_without_a_key_nothing_is_opened() {
    let scene = Scene::new();
    scene.verify().unwrap();
    let without = verify(&scene.store, None, &mut |_| {}).unwrap();
    assert_eq!(without.sealed, SealedParts { found: 5, opened: None, erased: 0 });
    for (key, _) in scene.store.store().commons().unwrap() {
        scene.store.store().remove_common(&key).unwrap();
    }
    let later = Keyring::open_unchanged([7; 32], Arc::clone(scene.store.store())).unwrap();
    let erased = verify(&scene.store, Some(&later), &mut |_| {}).unwrap();
    assert_eq!(
        erased.sealed,
        SealedParts { found: 5, opened: Some(1), erased: 4 },
        "the webhook secret has the master key"
    );
}

/// The merchant's state does not count a sale that a recipient decided, though the books balance.
#[test]
fn a_state_that_differs_from_the_books_is_found() {
    let mut scene = Scene::new();
    let events = scene.records[5].events.clone();
    let now = scene.records[9].effective_at;
    scene.records.push(Decision { events, personal: None }.into_record(RECIPIENT, 2, now));
    let broken = outcome(scene.verify()).unwrap_err();
    assert_eq!((broken.promise, broken.found.as_str()), (Promise::State, "0"), "{broken}");
    assert!(broken.expected.contains("Assets:Platform:Pending of 5938 centavos"), "{broken}");
}

/// A snapshot of records that differ from the journal's, or at positions that are not its own.
#[test]
fn a_snapshot_that_is_no_replay_is_found() {
    type Damage = fn(&mut Scene);
    let cases: [(&str, Damage, &str); 5] = [
        (
            "a recipient one centavo richer",
            |scene| {
                let richer = &mut scene.records[5];
                let Event::CardCaptured { terms, .. } = &mut richer.events[0] else { panic!("{richer:?}") };
                terms.splits[0].amount += Centavos(1);
                terms.amount += Centavos(1);
                richer.entries = ledger::postings::entries(MERCHANT, &richer.events);
                scene.keep::<RecipientState>(RECIPIENT, 0, 8);
            },
            "Assets:Platform:Pending of 3500 centavos, found 3501",
        ),
        (
            "a merchant with another status of a recipient",
            |scene| {
                scene.records[3].events.clear();
                scene.keep::<MerchantState>(MERCHANT, 9, 0);
            },
            "the replayed state, found another one with the same balances",
        ),
        (
            "a count of Records that is one short",
            |scene| {
                let removed = scene.records.remove(7);
                scene.keep_at::<MerchantState>(MERCHANT, 7, 7, -1);
                scene.records.insert(7, removed);
            },
            "its Records through 7, found through 6",
        ),
        (
            "positions beyond the journal",
            |scene| scene.keep::<RecipientState>(RECIPIENT, 10, 11),
            "positions through sequence 10, the journal's last, found sequence 11",
        ),
        (
            "a ledger that the journal does not know",
            |scene| {
                let mut resident = Resident::<RecipientState>::new(RECIPIENT, GROUP, Arc::default());
                scene.records.iter().zip(1..).for_each(|(record, at)| resident.replay(Sequence(at), record));
                let unknown = LedgerId::Recipient(GROUP, RecipientNumber(2));
                let snapshot = derived::snapshots::Snapshot { ledger: unknown, ..resident.snapshot() };
                snapshots::write(&scene.store, &snapshot, Sequence(10)).unwrap();
            },
            "its Records through 0, found through 1",
        ),
    ];
    for (name, damage, expected) in cases {
        let mut scene = Scene::new();
        damage(&mut scene);
        scene.records = records(&scene.keyring);
        let broken = outcome(scene.verify()).expect_err(name);
        assert_eq!(broken.promise, Promise::Snapshot, "{name}: {broken}");
        assert!(broken.to_string().ends_with(expected), "{name}: {broken}");
    }
}

#[test]
fn a_snapshot_of_another_release_is_counted_and_not_trusted() {
    let scene = Scene::new();
    scene.keep::<RecipientState>(RECIPIENT, 0, 6);
    let key = scene.store.state_keys(b"snapshot/").unwrap().remove(0);
    scene.store.put_state(&key, b"of another release").unwrap();
    let verified = scene.verify().unwrap();
    assert_eq!((verified.snapshots, verified.snapshots_unusable), (0, 1));
}

/// Writes the Records as [`Scene::verify`] does, and gives a checkpoint at the end of each block.
fn checkpoints(scene: &Scene) -> Vec<SignedCheckpoint> {
    scene.verify().unwrap();
    let mut sums: Vec<Balance> = vec![Balance::default(); 64];
    let mut made = Vec::new();
    for block in scene.store.blocks(Sequence::FIRST) {
        let block = block.unwrap();
        let records = block.records.iter().map(|bytes| Record::decode(bytes).unwrap());
        for posting in records.flat_map(|record| record.entries).flat_map(|entry| entry.postings().to_vec()) {
            sums[usize::from(posting.account.code().0)].post(&posting);
        }
        let (partition, booked_at_ms, head) = (block.partition, block.booked_at_ms, block.hash());
        let (sequence, totals) = (Sequence(block.next().0 - 1), digest_of(&sums));
        let previous = made.last().map_or([0; 32], |last: &SignedCheckpoint| last.checkpoint.digest());
        let previous = Some(previous);
        made.push(scene.keyring.sign(Checkpoint { partition, sequence, booked_at_ms, head, totals, previous }));
    }
    made
}

fn against(scene: &Scene, signed: &[SignedCheckpoint]) -> Result<VerificationResult, BrokenPromise> {
    let verified = without_gaps(signed);
    outcome(verified.and_then(|()| verify_against(&scene.parts, Some(&scene.keyring), signed, &mut |_| {})))
}

/// Somebody with the master key can forge a past that verifies. It is not the one of which others
/// hold a checkpoint.
#[test]
fn a_forged_past_is_not_that_of_its_checkpoints() {
    type Forge = fn(&mut Vec<Record>);
    let sound = Scene::new();
    let signed = checkpoints(&sound);
    assert_eq!(signed.len(), 4);
    against(&sound, &signed).unwrap();
    let forgeries: [(&str, Forge); 4] = [
        ("another operator", |records| records[3].operator = Some("rui".to_owned())),
        ("three days earlier", |records| records[6].effective_at = records[6].effective_at.plus_ms(-3 * DAY_MS)),
        ("the tail cut", |records| drop(records.split_off(8))),
        ("a centavo more", |records| {
            let Event::CardCaptured { acquirer_mdr, .. } = &mut records[5].events[0] else { panic!("a capture") };
            *acquirer_mdr -= Centavos(1);
            records[5].entries = postings::entries(records[5].owner, &records[5].events);
        }),
    ];
    for (name, forge) in forgeries {
        let mut scene = Scene::new();
        forge(&mut scene.records);
        scene.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        let broken = against(&scene, &signed).unwrap_err();
        assert_eq!(broken.promise, Promise::Checkpoint, "{name}: {broken}");
    }
}

#[test]
fn a_checkpoint_that_was_left_out_between_others_is_noticed() {
    let scene = Scene::new();
    let signed = checkpoints(&scene);
    let alone = scene.keyring.sign(Checkpoint { previous: None, ..signed[2].checkpoint });
    for sound in [vec![], vec![signed[3]], signed[1..].to_vec(), signed[..3].to_vec(), [&signed[..], &[alone]].concat()]
    {
        against(&scene, &sound).unwrap();
    }
    for lacking in
        [vec![signed[0], signed[2], signed[3]], vec![signed[0], signed[3]], vec![signed[1], alone, signed[3]]]
    {
        let broken = against(&scene, &lacking).unwrap_err();
        assert_eq!((broken.promise, broken.found.as_str()), (Promise::Checkpoint, "none"), "{broken}");
    }
}

#[test]
fn a_checkpoint_that_is_not_genuine_is_refused() {
    let scene = Scene::new();
    let signed = checkpoints(&scene);
    let other = Keyring::open([8; 32], Arc::clone(MemoryStore::new().part().store())).unwrap();
    let later = Checkpoint { sequence: Sequence(4), ..signed[0].checkpoint };
    for (forged, found) in [
        (vec![SignedCheckpoint { checkpoint: later, ..signed[0] }], "another one"),
        (vec![signed[0], other.sign(signed[1].checkpoint)], "the key "),
        (vec![scene.keyring.sign(later)], "one that ends with 6"),
        (vec![scene.keyring.sign(Checkpoint { sequence: Sequence(99), ..later })], "ends with Record 10"),
        (vec![scene.keyring.sign(Checkpoint { totals: [0; 32], ..signed[0].checkpoint })], "sequence 3"),
    ] {
        let broken = against(&scene, &forged).unwrap_err();
        assert_eq!(broken.promise, Promise::Checkpoint, "{broken}");
        assert!(broken.found.contains(found), "{broken}");
    }
}

/// Blocks of a Record each, eleven days apart, and the end of the month of the first one.
fn months(scene: &Scene, forge: impl Fn(&mut MonthEnd)) -> (Vec<Record>, Month) {
    let at = |block: usize| Timestamp(block as i64 * 11 * DAY_MS);
    let month = at(1).month();
    let in_month = (1..).take_while(|block| at(*block).month() == month).count();
    let (mut head, mut totals) = (Head::EMPTY, Vec::new());
    for (block, record) in (1..).zip(&scene.records[..in_month]) {
        for posting in record.entries.iter().flat_map(Entry::postings) {
            let code = usize::from(posting.account.code().0);
            totals.resize(totals.len().max(code + 1), Balance::default());
            totals[code].post(posting);
        }
        let (first, previous, booked_at_ms) = (head.next, head.hash, at(block).0);
        let block = Block { partition: Partition(0), first, booked_at_ms, previous, records: vec![encoded(record)] };
        head = Head::after(&block, block.hash());
    }
    let through = in_month as u64;
    let mut end = MonthEnd { through, head: head.hash.0.into(), totals: digest_of(&totals).into() };
    forge(&mut end);
    let mut records = scene.records.clone();
    let closed = Decision::of(Event::PeriodClosed { month, end });
    records.push(closed.into_record(LedgerId::System, 1, Timestamp(100)));
    (records, month)
}

#[test]
fn a_closed_month_says_what_the_journal_held() {
    type Forge = fn(&mut MonthEnd);
    let forged: [(&str, Forge, bool); 4] = [
        ("nothing", |_| (), true),
        ("another Record", |end| end.through -= 1, false),
        ("another hash", |end| end.head[3] ^= 1, false),
        ("other sums", |end| end.totals[0] ^= 1, false),
    ];
    for (name, forge, is_sound) in forged {
        let scene = Scene::new();
        let (records, _) = months(&scene, forge);
        for (block, record) in (1..).zip(&records) {
            let head = scene.store.head().unwrap();
            let (first, previous, booked_at_ms) = (head.next, head.hash, block * 11 * DAY_MS);
            let records = vec![encoded(record)];
            scene.store.append(&Block { partition: Partition(0), first, booked_at_ms, previous, records }).unwrap();
        }
        match outcome(verify(&scene.store, Some(&scene.keyring), &mut |_| {})) {
            Ok(_) => assert!(is_sound, "{name}"),
            Err(broken) => assert!(!is_sound && broken.promise == Promise::Period, "{name}: {broken}"),
        }
    }
}

/// A block of the house ledger in each partition but the merchant's.
fn fill_others(scene: &Scene) {
    for part in scene.parts.iter().filter(|part| part.partition() != scene.store.partition()) {
        let record = Decision::of(Event::ClockMoved { offset_ms: 0 }).into_record(LedgerId::System, 1, Timestamp(100));
        let (partition, head) = (part.partition(), Head::EMPTY);
        let (first, previous) = (head.next, head.hash);
        part.append(&Block { partition, first, booked_at_ms: 1, previous, records: vec![encoded(&record)] }).unwrap();
    }
}

#[test]
fn every_partition_is_verified_and_counted() {
    let scene = Scene::of_three();
    assert_eq!(scene.store.partition(), Partition(2), "the merchant is not in the first one");
    fill_others(&scene);
    scene.keep::<MerchantState>(MERCHANT, 6, 3);
    scene.verify().unwrap();
    let mut reports = Vec::new();
    let verified = super::verify(&scene.parts, Some(&scene.keyring), &mut |progress| reports.push(progress)).unwrap();
    let counts = (verified.records, verified.blocks, verified.ledgers, verified.snapshots);
    assert_eq!(counts, (12, 6, 3, 1));
    assert_eq!(verified.heads, Heads::of_parts(&scene.parts).unwrap());
    assert_eq!(verified.sealed, SealedParts { found: 5, opened: Some(5), erased: 0 });
    let journal: Vec<_> = reports
        .iter()
        .filter_map(|progress| match progress {
            VerifyProgress::Journal(done, total) => Some((*done, *total)),
            VerifyProgress::States(..) => None,
        })
        .collect();
    assert!(journal.is_sorted() && journal.ends_with(&[(12, 12)]) && journal.starts_with(&[(1, 12), (2, 12)]));
}

#[test]
fn damage_in_any_partition_is_found_and_names_it() {
    for (damage, promise) in [
        ((|records| records[4].ordinal = 6) as fn(&mut Vec<Record>), Promise::Ordinal),
        (|records| records[8].entries.clear(), Promise::Entries),
    ] {
        let mut scene = Scene::of_three();
        fill_others(&scene);
        damage(&mut scene.records);
        let error = scene.verify().unwrap_err();
        assert!(error.to_string().starts_with("partition 2: sequence "), "{error}");
        let VerifyError::OfPartition { partition: Partition(2), error } = error else { panic!("{error}") };
        assert_eq!(outcome(Err(*error)).unwrap_err().promise, promise);
    }
    // A snapshot and a page with another balance, in the third partition.
    let mut scene = Scene::of_three();
    fill_others(&scene);
    let records = scene.records.clone();
    change(&mut scene.records[5], &[(Pending, 1), (SalesCard, 1)]);
    scene.keep::<MerchantState>(MERCHANT, 8, 3);
    scene.records = records;
    scene.keep_at::<MerchantState>(MERCHANT, 6, 3, 1);
    let error = scene.verify().unwrap_err();
    assert!(error.to_string().starts_with("partition 2: ") && error.to_string().contains("a snapshot"), "{error}");
}

#[test]
fn a_group_outside_its_partition_is_found() {
    let mut scene = Scene::of_three();
    scene.store = scene.parts[1].clone();
    let error = scene.verify().unwrap_err().to_string();
    assert!(error.contains("partition 1: sequence 1, ") && error.contains("expected partition 2"), "{error}");
}

#[test]
fn checkpoints_tell_of_their_own_partition() {
    let scene = Scene::of_three();
    fill_others(&scene);
    let signed = checkpoints(&scene);
    let head = scene.parts[1].head().unwrap();
    let (partition, previous) = (Partition(1), Some([0; 32]));
    let (sequence, booked_at_ms, totals) = (Sequence(1), head.booked_at_ms, digest_of(&[]));
    let other = Checkpoint { partition, sequence, booked_at_ms, head: head.hash, totals, previous };
    let other = scene.keyring.sign(other);
    let verified = |signed: &[SignedCheckpoint]| {
        let verified = verify_against(&scene.parts, Some(&scene.keyring), signed, &mut |_| {});
        verified.map(drop).map_err(|error| error.to_string())
    };
    verified(&[&signed[..], &[other]].concat()).unwrap();
    let wrong = scene.keyring.sign(Checkpoint { head: BlockHash([1; 32]), ..other.checkpoint });
    let error = verified(&[signed[0], wrong]).unwrap_err();
    assert!(error.starts_with("partition 1: sequence 1, the journal: "), "{error}");
    let later = scene.keyring.sign(Checkpoint { sequence: Sequence(2), ..other.checkpoint });
    assert!(verified(&[later]).unwrap_err().contains("ends with Record 1"));
    let nowhere = scene.keyring.sign(Checkpoint { partition: Partition(3), ..other.checkpoint });
    assert!(verified(&[nowhere]).unwrap_err().contains("expected partition 3, found a store with 3 partitions"));
    let stranger = Keyring::open([8; 32], Arc::clone(MemoryStore::new().part().store())).unwrap();
    assert!(verified(&[signed[0], stranger.sign(other.checkpoint)]).unwrap_err().contains("the key "));
}

/// Damage of a block of the third partition.
struct DamageInThird;

impl Watch for DamageInThird {
    fn loses(&self, _: &[u8], _: Option<&[u8]>, _: Durability) -> bool {
        false
    }

    fn damages(&self, block: &Block) -> bool {
        (block.partition, block.first) == (Partition(2), Sequence(4))
    }
}

#[test]
fn a_damaged_block_of_the_third_partition_is_found_there() {
    let scene = Scene::of_three_in(Arc::new(WatchedStore { store: MemoryStore::new(), watch: DamageInThird }));
    fill_others(&scene);
    let error = scene.verify().unwrap_err().to_string();
    assert!(error.starts_with("partition 2: memory: damaged at sequence 4"), "{error}");
}
