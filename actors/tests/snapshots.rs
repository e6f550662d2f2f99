//! Snapshots from outside: the golden file of their format, any history with snapshots that are
//! dropped or torn by a crash, and how large they are.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actors::resident::{OwnerMachine, Resident};
use derived::snapshots::{self, Snapshot, StatePosition};
use ledger::event_choice::EventChoice;
use ledger::fees::Settings;
use ledger::merchant::SplitRequest;
use ledger::scope::Scopes;
use ledger::{
    CardBrand, CardFace, Centavos, Decision, Fingerprint, GroupNumber, IdKey, LedgerId, MerchantCommand, MerchantState,
    PaymentMethod, RecipientNumber, RecipientState, Record, Sealed, Timestamp,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::testkit::{self, MemoryStore, Watch, WatchedStore};
use store::{Durability, Part, Sequence};

const GROUP: GroupNumber = GroupNumber(7);
const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
const RECIPIENT: LedgerId = LedgerId::Recipient(GROUP, RecipientNumber(1));
const BEGIN: Timestamp = Timestamp(1_790_000_000_000);

/// The Records of a merchant with two recipients, keys, paid charges and charges that wait. It
/// stands in golden files: never change it.
fn golden_history() -> Vec<Record> {
    let ids = IdKey::new([3; 16]);
    let seal = |mark: u8| Sealed { month: 680, bytes: vec![mark; 40], version: 0 };
    let recipient = |number: u32| ids.recipient(GROUP, RecipientNumber(number), BEGIN, number as u16);
    let splits = |amount: i64| {
        let part = |number, amount| SplitRequest { recipient: recipient(number), amount: Centavos(amount) };
        vec![part(1, amount), part(2, 100)]
    };
    let settings = Settings { split_enabled: true, ..Settings::default() };
    let mut commands = vec![MerchantCommand::Open { id: ids.object(GROUP, BEGIN, 1), settings, profile: seal(1) }];
    for mark in [2, 3] {
        commands.push(MerchantCommand::CreateApiKey {
            id: ids.object(GROUP, BEGIN, u64::from(mark)),
            digest: [mark; 32],
            webhook_url: Some(format!("https://{mark}.example.com/hook")),
            webhook_secret: vec![mark; 30],
            scopes: Scopes::ALL,
            events: EventChoice::ALL,
        });
    }
    commands.push(MerchantCommand::RevokeApiKey { id: ids.object(GROUP, BEGIN, 2) });
    for number in [1, 2] {
        let (document, profile) = (Fingerprint([number as u8; 16]), seal(10 + number as u8));
        commands.push(MerchantCommand::RegisterRecipient { random: number, document, profile });
        commands.push(MerchantCommand::ApproveRecipient { id: recipient(u32::from(number)) });
    }
    for number in 0..80 {
        let (charge, payer) = (ids.object(GROUP, BEGIN, 100 + number), seal(20));
        let amount = Centavos(10_000 + number as i64);
        if number % 3 == 0 {
            let expires_at = BEGIN.plus_days(1 + number as u16 % 3);
            commands.push(MerchantCommand::OpenPix {
                charge,
                amount,
                splits: splits(1_500),
                expires_at,
                payer,
                rail: None,
            });
            if number % 2 == 0 {
                commands.push(MerchantCommand::ConfirmPix { charge, amount, end_to_end_id: format!("E{number}") });
            }
        } else {
            let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
            let (method, installments) = (PaymentMethod::CreditCard, 1);
            let splits = splits(2_500);
            commands.push(MerchantCommand::OpenCard {
                charge,
                amount,
                method,
                installments,
                splits,
                card,
                payer,
                rail: None,
            });
            if number % 4 != 0 {
                commands.push(MerchantCommand::CaptureCard {
                    charge,
                    acquirer_mdr: Centavos(299),
                    captured_at: None,
                    brand: None,
                });
            }
        }
    }
    let mut state = MerchantState::default();
    let mut records: Vec<Record> = Vec::new();
    for (minutes, command) in (0..).zip(commands) {
        let now = BEGIN.plus_ms(minutes * 7 * 60_000);
        let now = if minutes < 8 { BEGIN } else { now };
        let record = state.decide(command, GROUP, now, &ids).unwrap();
        let record = record.into_record(MERCHANT, records.len() as u64 + 1, now);
        state.evolve(&record);
        records.push(record);
    }
    records
}

/// A resident that has replayed Records from this sequence on.
fn replay<B: OwnerMachine>(resident: &mut Resident<B>, first: u64, records: &[Record]) {
    for (sequence, record) in (first..).zip(records) {
        resident.replay(Sequence(sequence), record);
    }
}

fn replayed<B: OwnerMachine>(ledger: LedgerId, records: &[Record]) -> Resident<B> {
    let mut resident = Resident::new(ledger, GROUP, Arc::default());
    replay(&mut resident, 1, records);
    resident
}

fn restored<B: OwnerMachine>(store: &Part, ledger: LedgerId) -> Resident<B> {
    let mut resident = Resident::new(ledger, GROUP, Arc::default());
    if let Some(snapshot) = snapshots::load(store, ledger).unwrap() {
        assert!(resident.restore(&snapshot), "the stored state can be read");
    }
    resident
}

/// The sequence of the last own Record, where Records are counted from 1 and all of them
/// concern the ledger.
fn own_through(ledger: LedgerId, records: &[Record]) -> Sequence {
    let last = (1..).zip(records).filter(|(_, record)| record.owner == ledger).last();
    Sequence(last.map_or(0, |(sequence, _)| sequence))
}

fn golden_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Version 2 as a release stores it: keys and values, in hexadecimal, a line each.
#[test]
fn a_golden_snapshot_is_read_and_written_alike() {
    let records = golden_history();
    let store = MemoryStore::new().part();
    let file = golden_folder().join("snapshots-2.txt");
    if !file.exists() && std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, stored(&golden_store(&records))).unwrap();
    }
    let golden = std::fs::read_to_string(file).unwrap();
    for line in golden.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        store.put_state(&from_hex(key), &from_hex(value)).unwrap();
    }
    assert_eq!(snapshots::ledgers(&store).unwrap(), [MERCHANT, RECIPIENT]);
    let merchant = restored::<MerchantState>(&store, MERCHANT);
    assert!(merchant.books() == replayed::<MerchantState>(MERCHANT, &records).books());
    let recipient = restored::<RecipientState>(&store, RECIPIENT);
    assert_eq!(recipient.books(), replayed::<RecipientState>(RECIPIENT, &records).books());
    assert!(recipient.books().pending().is_positive() && recipient.books().available().is_positive());
    let last = records.len() as u64;
    assert_eq!(merchant.position(), StatePosition { own: last, foreign: 0 });
    assert_eq!(recipient.position(), StatePosition { own: 0, foreign: last });
    assert_eq!(stored(&golden_store(&records)), golden, "version 2 is still written alike");
}

/// The store with both snapshots, the merchant's of two writes.
fn golden_store(records: &[Record]) -> Part {
    let store = MemoryStore::new().part();
    let mut merchant = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
    let half = records.len() / 2;
    replay(&mut merchant, 1, &records[..half]);
    snapshots::write(&store, &merchant.snapshot(), Sequence(half as u64)).unwrap();
    replay(&mut merchant, half as u64 + 1, &records[half..]);
    snapshots::write(&store, &merchant.snapshot(), Sequence(records.len() as u64)).unwrap();
    let mut recipient = replayed::<RecipientState>(RECIPIENT, records);
    snapshots::write(&store, &recipient.snapshot(), Sequence(0)).unwrap();
    store
}

/// Keys and values, in hexadecimal.
fn stored(store: &Part) -> String {
    let line = |key: Vec<u8>| format!("{} {}\n", hex(&key), hex(&store.state(&key).unwrap().unwrap()));
    store.state_keys(b"").unwrap().into_iter().map(line).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn damage_and_other_versions_are_noticed_and_written_over() {
    let records = golden_history();
    let sound = golden_store(&records);
    let keys: Vec<_> = sound.state_keys(b"").unwrap();
    let whole = replayed::<MerchantState>(MERCHANT, &records);
    let mut damaged = 0;
    for key in &keys {
        let value = sound.state(key).unwrap().unwrap();
        let of_version = |version: u8| {
            let covered = [&value[..1], &[version], &value[2..value.len() - 4]].concat();
            let sum = crc32c::crc32c(&covered).to_be_bytes();
            [covered, sum.to_vec()].concat()
        };
        let (earlier, later) = (of_version(1), of_version(3));
        let torn = value[..value.len() / 2].to_vec();
        let mut flipped = value.clone();
        flipped[value.len() / 3] ^= 4;
        let bad = [
            ("earlier", Some(earlier)),
            ("later", Some(later)),
            ("torn", Some(torn)),
            ("flipped", Some(flipped)),
            ("gone", None),
        ];
        for (what, bad) in bad {
            let store = golden_store(&records);
            match bad {
                Some(bad) => store.put_state(key, &bad).unwrap(),
                None => store.delete_state(key).unwrap(),
            }
            let (is_manifest, is_gone) = (key.starts_with(b"snapshot/"), what == "gone");
            assert_eq!(
                snapshots::unusable(&store, GROUP).unwrap().len(),
                usize::from(is_manifest && !is_gone),
                "{what} {key:?}"
            );
            let usable = [MERCHANT, RECIPIENT].map(|ledger| snapshots::load(&store, ledger).unwrap().is_some());
            assert_eq!(usable.into_iter().filter(|usable| !usable).count(), 1, "{what} {key:?}");
            if !usable[0] {
                damaged += 1;
                let mut resident = whole.clone();
                snapshots::write(&store, &resident.snapshot(), Sequence(records.len() as u64)).unwrap();
                assert!(restored::<MerchantState>(&store, MERCHANT).books() == whole.books(), "{what} {key:?}");
                snapshots::sweep(&store, MERCHANT).unwrap();
                assert!(store.state_keys(b"section/").unwrap().len() < keys.len(), "nothing is left over");
            }
        }
    }
    assert!(damaged >= 4 * 5, "{damaged}");
}

/// Whatever an actor assumes, a snapshot is written only if it continues the stored one.
#[test]
fn a_snapshot_that_does_not_continue_what_is_kept_is_not_written() {
    let records = golden_history();
    let store = MemoryStore::new().part();
    let mut resident = Resident::<MerchantState>::new(MERCHANT, GROUP, Arc::default());
    let mut taken = Vec::new();
    for (number, third) in (1..).zip(records.chunks(records.len().div_ceil(3))) {
        let first = resident.own() + 1;
        replay(&mut resident, first, third);
        let snapshot = resident.snapshot();
        assert_eq!(snapshot.receipt.number, number);
        // The actor hears that each snapshot is stored, though none is.
        snapshot.receipt.stored.store(number, Ordering::Release);
        taken.push((snapshot, Sequence(resident.own())));
    }
    let kept_after = |taken: &(Snapshot, Sequence)| {
        snapshots::write(&store, &taken.0, taken.1).unwrap();
        snapshots::load(&store, MERCHANT).unwrap().map(|stored| stored.position)
    };
    let [first, second, third] = [&taken[0], &taken[1], &taken[2]];
    assert_eq!(kept_after(second), None, "no stored snapshot that it continues");
    assert_eq!(kept_after(first), Some(first.0.position), "it holds everything");
    assert_eq!(kept_after(third), Some(first.0.position), "the second is missing");
    assert_eq!(kept_after(second), Some(second.0.position));
    assert_eq!(kept_after(third), Some(third.0.position));
    assert_eq!(kept_after(second), Some(third.0.position), "it is older");
    assert!(restored::<MerchantState>(&store, MERCHANT).books() == resident.books());
}

#[test]
fn the_writer_keeps_what_waits_before_it_ends() {
    let records = golden_history();
    let store = MemoryStore::new().part();
    let writer = snapshots::SnapshotWriter::start();
    let (mut merchant, mut recipient) = (replayed::<MerchantState>(MERCHANT, &records), replayed(RECIPIENT, &records));
    let snapshot = Resident::<RecipientState>::snapshot(&mut recipient);
    let receipt = snapshot.receipt.clone();
    writer.keep(&store, merchant.snapshot(), Sequence(records.len() as u64));
    writer.keep(&store, snapshot, Sequence(0));
    drop(writer);
    assert_eq!(snapshots::ledgers(&store).unwrap(), [MERCHANT, RECIPIENT]);
    assert_eq!(receipt.stored.load(Ordering::Acquire), 1, "the actor knows that the snapshot is stored");
}

/// How many Records are replayed, and whether a snapshot follows: nothing new, nothing stored,
/// little after a stored one.
#[test]
fn an_actor_that_was_opened_without_a_snapshot_takes_one_at_once() {
    let records = golden_history();
    let store = golden_store(&records[..records.len() - 1]);
    let cases: [(&Part, &[Record], bool); 3] = [
        (&MemoryStore::new().part(), &[], false),
        (&MemoryStore::new().part(), &records[..1], true),
        (&store, &records, false),
    ];
    for (number, (store, records, follows)) in cases.into_iter().enumerate() {
        let mut resident = restored::<MerchantState>(store, MERCHANT);
        replay(&mut resident, 1, records);
        resident.opened(Sequence(records.len() as u64));
        assert_eq!(resident.due_snapshot().is_some(), follows, "case {number}");
        assert!(resident.due_snapshot().is_none(), "case {number}");
    }
}

/// What is asked of the state area in order, so that a crash can fall between any two steps.
#[derive(Default)]
struct Steps {
    steps: Mutex<Vec<Step>>,
}

/// A key, and its new value; `None` if it is removed.
type Step = (Vec<u8>, Option<Vec<u8>>);

impl Steps {
    /// The store after a crash that the first `count` steps survived.
    fn after_crash(&self, count: usize) -> Arc<WatchedStore<Steps>> {
        let survived = self.steps.lock()[..count].to_vec();
        let store = MemoryStore::new();
        let part = store.part();
        for (key, value) in &survived {
            match value {
                Some(value) => part.put_state(key, value).unwrap(),
                None => part.delete_state(key).unwrap(),
            }
        }
        Arc::new(WatchedStore { store, watch: Steps { steps: Mutex::new(survived) } })
    }
}

impl Watch for Steps {
    fn loses(&self, key: &[u8], value: Option<&[u8]>, _: Durability) -> bool {
        self.steps.lock().push((key.to_vec(), value.map(<[u8]>::to_vec)));
        false
    }
}

/// What happens next to one ledger's actor.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// It applies this number of Records of its history.
    Apply(usize),
    /// It takes a snapshot, which waits to be written.
    Take,
    /// The oldest snapshot that waits is written.
    Write,
    /// The newest one that waits is dropped.
    Drop,
    /// It goes to sleep and wakes: what waits to be written still waits.
    Sleep,
    /// The process dies; this percentage of the writes since the last crash survives.
    Crash(usize),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        6 => prop_oneof![1_usize..20, 1_usize..150].prop_map(Turn::Apply),
        5 => Just(Turn::Take),
        4 => Just(Turn::Write),
        1 => Just(Turn::Drop),
        1 => Just(Turn::Sleep),
        2 => (0_usize..=100).prop_map(Turn::Crash),
    ]
}

/// A merchant's history, long enough to touch several pages of sections: charges that stay open,
/// and more that are closed when their section is not touched any more by those that are opened.
fn long_history() -> Vec<Record> {
    let ids = IdKey::new([3; 16]);
    let mut state = MerchantState::default();
    let mut records = golden_history();
    records.iter().for_each(|record| state.evolve(record));
    let (mut now, mut opened) = (BEGIN.plus_days(1), Vec::new());
    for number in 0..300_u64 {
        now = now.plus_ms(2 * 60 * 60_000 + number as i64);
        let (charge, payer) = (ids.object(GROUP, now, number), Sealed::default());
        let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
        let (method, installments, amount) = (PaymentMethod::CreditCard, 1, Centavos(5_000));
        let open = MerchantCommand::OpenCard {
            charge,
            amount,
            method,
            installments,
            splits: Vec::new(),
            card,
            payer,
            rail: None,
        };
        let mut commands = vec![open];
        opened.push(charge);
        if let Some(charge) = opened.get((number as usize).wrapping_sub(70)).filter(|_| number % 5 > 0) {
            commands.push(MerchantCommand::CaptureCard {
                charge: *charge,
                acquirer_mdr: Centavos(99),
                captured_at: None,
                brand: None,
            });
        }
        if number % 7 == 0 {
            let (document, profile) =
                (Fingerprint([100 + (number / 7) as u8; 16]), Sealed { month: 1, bytes: vec![7; 300], version: 0 });
            commands.push(MerchantCommand::RegisterRecipient { random: 1, document, profile });
        }
        let mut decisions = Vec::from_iter(state.mature(now, 0));
        for command in commands {
            for decision in decisions.drain(..) {
                records.push(decided(&mut state, decision, records.len(), now));
            }
            decisions.push(state.decide(command, GROUP, now, &ids).unwrap());
        }
        for decision in decisions {
            records.push(decided(&mut state, decision, records.len(), now));
        }
    }
    records
}

fn decided(state: &mut MerchantState, decision: Decision, before: usize, now: Timestamp) -> Record {
    let record = decision.into_record(MERCHANT, before as u64 + 1, now);
    state.evolve(&record);
    record
}

/// The states after none, one, two … of the Records.
fn states<B: OwnerMachine>(ledger: LedgerId, history: &[Record]) -> Vec<B> {
    let mut resident = Resident::<B>::new(ledger, GROUP, Arc::default());
    let mut states = vec![B::default()];
    for (sequence, record) in (1..).zip(history) {
        resident.replay(Sequence(sequence), record);
        states.push(resident.books().clone());
    }
    states
}

/// Lives through the turns. After each, the stored state is the replay of the Records through its
/// position.
fn live<B: OwnerMachine>(
    ledger: LedgerId,
    history: &[Record],
    states: &[B],
    turns: &[Turn],
) -> Result<(), TestCaseError> {
    let mut steps_of = Arc::new(WatchedStore::<Steps>::default());
    let mut store = testkit::part(Arc::<WatchedStore<Steps>>::clone(&steps_of));
    let mut resident = Resident::<B>::new(ledger, GROUP, Arc::default());
    let (mut applied, mut survived) = (0, 0);
    let mut waiting: VecDeque<(Snapshot, Sequence)> = VecDeque::new();
    for turn in turns {
        match turn {
            Turn::Apply(count) => {
                let to = (applied + count).min(history.len());
                replay(&mut resident, applied as u64 + 1, &history[applied..to]);
                applied = to;
            }
            Turn::Take => waiting.push_back((resident.snapshot(), own_through(ledger, &history[..applied]))),
            Turn::Write => {
                if let Some((snapshot, own_through)) = waiting.pop_front() {
                    snapshots::write(&store, &snapshot, own_through).unwrap();
                }
            }
            Turn::Drop => drop(waiting.pop_back()),
            Turn::Sleep => {
                resident = restored(&store, ledger);
                replay(&mut resident, 1, &history[..applied]);
            }
            Turn::Crash(percent) => {
                waiting.clear();
                let steps = steps_of.watch.steps.lock().len();
                survived += (steps - survived) * percent / 100;
                steps_of = steps_of.watch.after_crash(survived);
                store = testkit::part(Arc::<WatchedStore<Steps>>::clone(&steps_of));
                resident = restored(&store, ledger);
                replay(&mut resident, 1, &history[..applied]);
                snapshots::sweep(&store, ledger).unwrap();
            }
        }
        let is_kept = !store.state_keys(b"snapshot/").unwrap().is_empty();
        prop_assert_eq!(snapshots::load(&store, ledger).unwrap().is_some(), is_kept, "after {:?}", turn);
        let restored_one = restored::<B>(&store, ledger);
        let position = restored_one.position().own.max(restored_one.position().foreign);
        prop_assert!(*restored_one.books() == states[position as usize], "after {:?}, at {}", turn, position);
        prop_assert!(*resident.books() == states[applied], "after {:?}", turn);
    }
    Ok(())
}

#[test]
fn whatever_is_dropped_or_torn_a_snapshot_is_a_replay() {
    let history = long_history();
    let (merchant, recipient) = (states(MERCHANT, &history), states(RECIPIENT, &history));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(512) });
    let lived = runner.run(&prop::collection::vec(turn(), 1..60), |turns| {
        live::<MerchantState>(MERCHANT, &history, &merchant, &turns)?;
        live::<RecipientState>(RECIPIENT, &history, &recipient, &turns)
    });
    lived.unwrap();
}
