//! Large owners: a small change writes little, and costs grow linearly with the owner.
//! `--nocapture` prints figures.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::AdmissionLimits;
use actors::engine::IndexOptions;
use actors::engine::{Engine, EngineOptions};
use actors::resident::{Outcome, OwnerMachine, Resident};
use actors::verify;
use derived::snapshots::{self, Snapshot};
use ledger::event::SellerPart;
use ledger::fees::{Commission, Settings};
use ledger::merchant::SplitRequest;
use ledger::{
    Centavos, Decision, Event, Fingerprint, GroupNumber, IdKey, LedgerId, MerchantCommand, MerchantProfile,
    MerchantState, ObjectId, Payer, PaymentMethod, RecipientNumber, RecipientProfile, RecipientState, Record, Sealed,
    SealedFor, Split, Terms, Timestamp,
};
use store::testkit::MemoryStore;
use store::{Part, Partition, Sequence, SledOptions, SledStore};

const GROUP: GroupNumber = GroupNumber(1);
const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
const RECIPIENT: LedgerId = LedgerId::Recipient(GROUP, RecipientNumber(1));
const BEGIN: Timestamp = Timestamp(1_790_000_000_000);
/// What a store keeps inline in one key, bytes.
const INLINE_BYTES: usize = 6_900;

/// What a snapshot carries: bytes, and the largest of its sections.
fn carried(snapshot: &Snapshot) -> (usize, usize) {
    let sizes = || snapshot.sections.values().flatten().map(Vec::len);
    (snapshot.head.len() + sizes().sum::<usize>(), sizes().max().unwrap_or_default())
}

/// Bytes of keys and values that stand in one store and not in the other.
fn written(before: &Part, after: &Part) -> usize {
    let bytes = |key: Vec<u8>| {
        let value = after.state(&key).unwrap().unwrap();
        if before.state(&key).unwrap().as_ref() == Some(&value) { 0 } else { key.len() + value.len() }
    };
    after.state_keys(b"").unwrap().into_iter().map(bytes).sum()
}

/// The store as it is now, by itself.
fn copy(store: &Part) -> Part {
    let copy = MemoryStore::new().part();
    for key in store.state_keys(b"").unwrap() {
        copy.put_state(&key, &store.state(&key).unwrap().unwrap()).unwrap();
    }
    copy
}

/// Keeps a snapshot of everything, applies one Record more, keeps that, and reads it. Gives the
/// bytes of each write.
fn kept_twice<B: OwnerMachine>(resident: &mut Resident<B>, last: (u64, Record)) -> (usize, usize) {
    let ledger = resident.ledger();
    let through = |resident: &Resident<B>| Sequence(resident.own());
    let store = MemoryStore::new().part();
    let taking = Instant::now();
    let snapshot = resident.snapshot();
    let (bytes, largest) = carried(&snapshot);
    let sections = snapshot.sections.len();
    println!("  whole: {bytes} bytes in {sections} sections, the largest {largest}, {:?}", taking.elapsed());
    assert!(largest <= INLINE_BYTES, "{largest}");
    snapshots::write(&store, &snapshot, through(resident)).unwrap();
    let before = copy(&store);
    resident.replay(Sequence(last.0), &last.1);
    let taking = Instant::now();
    snapshots::write(&store, &resident.snapshot(), through(resident)).unwrap();
    let taken = taking.elapsed();
    let after = written(&before, &store);
    println!("  after one Record more: {after} bytes written, {taken:?}");
    let loading = Instant::now();
    let mut again = Resident::<B>::new(ledger, GROUP, Arc::default());
    assert!(again.restore(&snapshots::load(&store, ledger).unwrap().unwrap()));
    println!("  read in {:?}", loading.elapsed());
    assert!(again.books() == resident.books());
    (written(&MemoryStore::new().part(), &before), after)
}

#[test]
fn of_a_hundred_thousand_recipients_one_changes() {
    const RECIPIENTS: u32 = 100_000;
    let ids = IdKey::new([3; 16]);
    let mut resident = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
    let record = |ordinal: u64, event| {
        // A registration with address and bank account, sealed.
        let decision =
            Decision { events: vec![event], personal: Some(Sealed { month: 680, bytes: vec![7; 300], version: 0 }) };
        decision.into_record(MERCHANT, ordinal, BEGIN)
    };
    for number in 1..=RECIPIENTS {
        let id = ids.recipient(GROUP, RecipientNumber(number), BEGIN, 1);
        let document = Fingerprint(u128::from(number).to_be_bytes());
        let registered = Event::RecipientRegistered { number: RecipientNumber(number), id, document };
        resident.replay(Sequence(u64::from(number)), &record(u64::from(number), registered));
    }
    println!("{RECIPIENTS} recipients:");
    let next = u64::from(RECIPIENTS) + 1;
    let approved = record(next, Event::RecipientApproved { number: RecipientNumber(77_777) });
    let (whole, after) = kept_twice(&mut resident, (next, approved));
    assert!(whole > 30_000_000 && after < 16_000, "{whole} bytes, then {after}");
}

/// A capture with these splits, decided by nobody: the Record is what counts.
fn captured(ordinal: u64, at: Timestamp, splits: Vec<Split>) -> Record {
    let total: Centavos = splits.iter().map(|split| split.amount).sum();
    let (amount, method) = (total + Centavos(100), PaymentMethod::CreditCard);
    let commission = Commission::default();
    let terms = Terms { amount, method, installments: 1, splits, commission, settlement_days: 30, initial_fee: None };
    let event = Event::CardCaptured {
        charge: ObjectId(u128::from(ordinal)),
        acquirer_mdr: Centavos(0),
        seller: SellerPart { raised: Centavos(100), from_available: Centavos(0), to_deficit: Centavos(0) },
        seller_due: at.plus_days(30).minute(),
        splits_due: at.plus_days(30).minute(),
        terms,
        opened: 1,
        brand: None,
    };
    Decision::of(event).into_record(MERCHANT, ordinal, at)
}

#[test]
fn of_a_million_pending_splits_one_is_added() {
    const SPLITS: u64 = 1_000_000;
    let mut resident = Resident::<RecipientState>::new(RECIPIENT, GROUP, Arc::default());
    let split = |amount| vec![Split { recipient: RecipientNumber(1), amount: Centavos(amount) }];
    let month_ms = 30 * 24 * 60 * 60 * 1_000_u64;
    let begun = Instant::now();
    for number in 1..=SPLITS {
        let at = BEGIN.plus_ms((number * month_ms / SPLITS) as i64);
        resident.replay(Sequence(number), &captured(number, at, split(1_000_000 + number as i64)));
    }
    println!("{SPLITS} pending splits of 30 days, replayed in {:?}:", begun.elapsed());
    let one_more = captured(SPLITS + 1, BEGIN.plus_ms(month_ms as i64), split(1));
    let (whole, after) = kept_twice(&mut resident, (SPLITS + 1, one_more));
    assert!(whole < 1_000_000 && after < 16_000, "{whole} bytes, then {after}");
    assert_eq!(resident.books().pending().0, (1..=SPLITS as i64).map(|number| 1_000_000 + number).sum::<i64>() + 1);
}

/// A merchant's own Records are read again one by one, what others credit to a recipient is not.
#[test]
fn a_tail_stays_as_short_as_replaying_it_is_dear() {
    let mut merchant = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
    let mut recipient = Resident::<RecipientState>::new(RECIPIENT, GROUP, Arc::default());
    let due_after = (1..).find(|ordinal| {
        let cancelled = Event::PixCancelled { charge: ObjectId(7), recipients: Vec::new(), opened: 1 };
        merchant.replay(Sequence(*ordinal), &Decision::of(cancelled).into_record(MERCHANT, *ordinal, BEGIN));
        merchant.due_snapshot().is_some()
    });
    assert_eq!(due_after, Some(1_000));
    let split = || vec![Split { recipient: RecipientNumber(1), amount: Centavos(1) }];
    let due_after = (1..).find(|number| {
        recipient.replay(Sequence(*number), &captured(*number, BEGIN, split()));
        recipient.due_snapshot().is_some()
    });
    assert_eq!(due_after, Some(20_000));
}

/// Snapshots are taken by what they cost: many charges that wait, closed in no order, touch every
/// section.
#[test]
fn sections_stay_a_small_part_of_the_work() {
    const WAITING: u64 = 6_000;
    let mut resident = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
    let ids = IdKey::new([3; 16]);
    let id = |number: u64| ids.object(GROUP, BEGIN, number);
    let opened = |number: u64| {
        let splits = vec![Split { recipient: RecipientNumber(1), amount: Centavos(400) }];
        let commission = Commission::default();
        let (amount, method) = (Centavos(1_000), PaymentMethod::Pix);
        let terms =
            Terms { amount, method, installments: 1, splits, commission, settlement_days: 30, initial_fee: None };
        let expires_at = Some(BEGIN.plus_days(30));
        Event::ChargeOpened { charge: id(number), terms, card: None, expires_at, rail: None }
    };
    let store = MemoryStore::new().part();
    let (mut ordinal, mut bytes, mut count) = (0, 0, 0);
    let mut apply = |event: Event| {
        ordinal += 1;
        resident.replay(Sequence(ordinal), &Decision::of(event).into_record(MERCHANT, ordinal, BEGIN));
        if let Some(snapshot) = resident.due_snapshot() {
            snapshots::write(&store, &snapshot, Sequence(ordinal)).unwrap();
            let mut again = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
            assert!(again.restore(&snapshots::load(&store, MERCHANT).unwrap().unwrap()));
            assert!(again.books() == resident.books(), "after {ordinal} Records");
            (bytes, count) = (bytes + carried(&snapshot).0, count + 1);
        }
    };
    (0..WAITING).for_each(|number| apply(opened(number)));
    let mut at = 0;
    for _ in WAITING..4 * WAITING {
        // Some charge that waits is cancelled, and its id opens again: 6,000 wait all the time.
        at = (at + 2_503) % WAITING;
        apply(Event::PixCancelled { charge: id(at), recipients: Vec::new(), opened: 1 });
        apply(opened(at));
    }
    println!("{ordinal} Records, {WAITING} charges wait: {count} snapshots, {} bytes a Record", bytes as u64 / ordinal);
    assert!(count >= 2 && bytes as u64 / ordinal <= 80, "{count} snapshots of {bytes} bytes for {ordinal} Records");
}

async fn open(folder: &Path) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox: true,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(600),
        awake_max: 1_000,
        rails: actors::rails::Rails::default(),
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    };
    Engine::open(folder, &SledOptions::default(), options, |_, _| {}).await.unwrap()
}

async fn record(engine: &Engine, group: GroupNumber, command: MerchantCommand, bytes: usize) {
    let permit = engine.permit(bytes).unwrap();
    let outcome = engine.command(group, command, permit).await.unwrap();
    assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
}

/// One charge with 10,000 splits is one Record; every recipient has its part, also after a restart,
/// and a month later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_with_ten_thousand_splits() {
    const RECIPIENTS: u32 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (group, now) = (engine.new_group(None), engine.now());
    let profile = engine.keyring().seal_value(SealedFor::merchant(group), now, &MerchantProfile::default()).unwrap();
    let settings = Settings { split_enabled: true, ..Settings::default() };
    let id = engine.ids().object(group, now, 1);
    record(&engine, group, MerchantCommand::Open { id, settings, profile }, 1_024).await;
    let begun = Instant::now();
    for first in (1..=RECIPIENTS).step_by(500) {
        let register = (first..first + 500).map(|number| {
            let document = engine.keyring().fingerprint("document", &[&number.to_be_bytes()]);
            let profile =
                engine.keyring().seal_value(SealedFor::recipient(document), now, &RecipientProfile::default()).unwrap();
            record(&engine, group, MerchantCommand::RegisterRecipient { random: 1, document, profile }, 1_024)
        });
        futures_util::future::join_all(register).await;
    }
    let ids: Vec<ObjectId> = engine.merchant(group, |row| row.recipients.iter().map(|one| one.id).collect()).unwrap();
    for page in ids.chunks(500) {
        let approve =
            page.iter().map(|id| record(&engine, group, MerchantCommand::ApproveRecipient { id: *id }, 1_024));
        futures_util::future::join_all(approve).await;
    }
    println!("{RECIPIENTS} recipients registered and approved: {:?}", begun.elapsed());
    let begun = Instant::now();
    let part = |(number, id): (i64, &ObjectId)| SplitRequest { recipient: *id, amount: Centavos(100 + number) };
    let splits: Vec<SplitRequest> = (1..).zip(&ids).map(part).collect();
    let total: i64 = splits.iter().map(|split| split.amount.0).sum();
    let (charge, amount) = (engine.ids().object(group, now, 2), Centavos(total + 100_000));
    let payer = engine.keyring().seal_value(SealedFor::payer(charge), now, &Payer::default()).unwrap();
    let expires_at = now.plus_days(1);
    record(&engine, group, MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer, rail: None }, 4 << 20)
        .await;
    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
    record(&engine, group, MerchantCommand::ConfirmPix { charge, amount, end_to_end_id }, 4 << 20).await;
    println!("opened and paid: {:?}", begun.elapsed());
    let begun = Instant::now();
    assert_available(&engine, group, RECIPIENTS).await;
    println!("every recipient woken and asked: {:?}", begun.elapsed());
    let begun = Instant::now();
    engine.stop().await;
    drop(engine);
    println!("stopped: {:?}", begun.elapsed());
    let begun = Instant::now();
    let store = SledStore::open(folder.path(), &SledOptions::default()).unwrap();
    let store = Part::reading(Arc::new(store), Partition(0));
    let verified = verify::verify(std::slice::from_ref(&store), None, &mut |_| {}).unwrap();
    assert_eq!((verified.snapshots, verified.snapshots_unusable), (u64::from(RECIPIENTS) + 1, 0));
    drop(store);
    println!("verified: {:?}", begun.elapsed());
    let begun = Instant::now();
    let engine = open(folder.path()).await;
    println!("opened again: {:?}", begun.elapsed());
    let begun = Instant::now();
    assert_available(&engine, group, RECIPIENTS).await;
    println!("every recipient woken from its snapshot: {:?}", begun.elapsed());
    engine.stop().await;
}

async fn assert_available(engine: &Engine, group: GroupNumber, recipients: u32) {
    for first in (1..=recipients).step_by(500) {
        let reads = (first..first + 500).map(|number| async move {
            let ledger = LedgerId::Recipient(group, RecipientNumber(number));
            let available = engine.read_recipient(ledger, |books: &RecipientState, _| books.available().0).await;
            assert_eq!(available, Ok(100 + i64::from(number)), "{ledger:?}");
        });
        futures_util::future::join_all(reads).await;
    }
}
