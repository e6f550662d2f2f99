//! The engine as a whole, on the embedded store: actors that sleep and wake under load, that fail,
//! and that start again after a restart.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actors::backup::durable_values;
use actors::engine::AdmissionLimits;
use actors::engine::IndexOptions;
use actors::engine::{ChargeFilter, Outcome};
use actors::engine::{Engine, EngineOptions, NOT_READY_AFTER, OpenError, Role, Unavailable};
use actors::growth::{GrowthError, grow};
use actors::metrics::Metrics;
use derived::extents::{Extent, Extents};
use ledger::fees::Settings;
use ledger::merchant::SplitRequest;
use ledger::{
    Centavos, GroupNumber, LedgerId, MerchantCommand, MerchantProfile, ObjectId, Payer, RecipientNumber,
    RecipientProfile, RecipientState, Record, SealedFor,
};
use parking_lot::{Condvar, Mutex};
use prometheus_client::registry::Registry;
use store::testkit::{MemoryStore, PowerCut, Watch, WatchedStore};
use store::{Durability, Part, Partition, Sequence, SledOptions, Store, WaitFor};

async fn open(folder: &Path, sandbox: bool) -> Result<Arc<Engine>, OpenError> {
    Engine::open(folder, &SledOptions::default(), options(sandbox), |_, _| {}).await
}

fn options(sandbox: bool) -> EngineOptions {
    EngineOptions {
        sandbox,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 1_000,
        rails: actors::rails::Rails::default(),
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    }
}

async fn record(engine: &Engine, group: GroupNumber, command: MerchantCommand) {
    let permit = engine.permit(1_024).unwrap();
    let outcome = engine.command(group, command, permit).await.unwrap();
    assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
}

/// A merchant with one active recipient.
async fn open_shop(engine: &Engine) -> (GroupNumber, ObjectId) {
    let (group, now) = (engine.new_group(None), engine.now());
    let profile = engine.keyring().seal_value(SealedFor::merchant(group), now, &MerchantProfile::default()).unwrap();
    let settings = Settings { split_enabled: true, ..Settings::default() };
    record(engine, group, MerchantCommand::Open { id: engine.ids().object(group, now, 1), settings, profile }).await;
    let document = engine.keyring().fingerprint("document", &[b"12345678909"]);
    let profile =
        engine.keyring().seal_value(SealedFor::recipient(document), now, &RecipientProfile::default()).unwrap();
    record(engine, group, MerchantCommand::RegisterRecipient { random: 1, document, profile }).await;
    let id = engine.merchant(group, |row| row.recipients[0].id).unwrap();
    record(engine, group, MerchantCommand::ApproveRecipient { id }).await;
    (group, id)
}

/// A paid PIX charge of 1000 with a split of 400.
async fn settle(engine: &Engine, group: GroupNumber, recipient: ObjectId, random: u64) {
    let now = engine.now();
    let charge = engine.ids().object(group, now, random);
    let splits = vec![SplitRequest { recipient, amount: Centavos(400) }];
    let payer = engine.keyring().seal_value(SealedFor::payer(charge), now, &Payer::default()).unwrap();
    let opened = MerchantCommand::OpenPix {
        charge,
        amount: Centavos(1_000),
        splits,
        expires_at: now.plus_days(1),
        payer,
        rail: None,
    };
    record(engine, group, opened).await;
    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
    record(engine, group, MerchantCommand::ConfirmPix { charge, amount: Centavos(1_000), end_to_end_id }).await;
}

async fn available(engine: &Engine, group: GroupNumber) -> (i64, i64) {
    let seller = engine.read_merchant(group, |books, _| books.available().0).await.unwrap();
    let recipient = LedgerId::Recipient(group, RecipientNumber(1));
    let split = engine.read_recipient(recipient, |books: &RecipientState, _| books.available().0).await.unwrap();
    (seller, split)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_sleep_and_wake_under_load_and_lose_nothing() {
    const CALLERS: u64 = 8;
    const CHARGES: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), true).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                for i in 0..CHARGES {
                    settle(&engine, group, recipient, caller * CHARGES + i).await;
                    engine.sleep_idle(Duration::ZERO);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let charges = (CALLERS * CHARGES) as i64;
    let expected = (charges * (600 - 6), charges * 400);
    assert_eq!(available(&engine, group).await, expected);
    engine.stop().await;
    drop(engine);
    let again = open(folder.path(), true).await.unwrap();
    assert_eq!(available(&again, group).await, expected, "after a restart");
    settle(&again, group, recipient, 1 << 40).await;
    again.stop().await;
}

/// A command that is refused leaves the others of its message alone; each has its own outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_carried_out_together_share_a_permit_and_no_outcome() {
    let engine = Engine::open_store(Arc::new(MemoryStore::new()), options(true), |_, _| {}).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    let open = async |random: u64, split: i64| {
        let permit = engine.permit_in_turn(Some(group), 1_024).await.unwrap();
        let now = engine.now();
        let charge = engine.ids().object(group, now, random);
        let payer = engine.keyring().seal_value(SealedFor::payer(charge), now, &Payer::default()).unwrap();
        let splits = vec![SplitRequest { recipient, amount: Centavos(split) }];
        let (amount, expires_at) = (Centavos(1_000), now.plus_days(1));
        let opening = MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer, rail: None };
        let opened = engine.command(group, opening, Arc::clone(&permit)).await.unwrap();
        let paying = MerchantCommand::ConfirmPix { charge, amount, end_to_end_id: format!("E{random}") };
        let paid = engine.command(group, paying, Arc::clone(&permit)).await.unwrap();
        let is_recorded = |outcome| matches!(outcome, Outcome::Recorded(_));
        (permit, is_recorded(opened), is_recorded(paid))
    };
    let requests =
        futures_util::future::join_all([(1, 400), (2, 1_000), (3, 100)].map(|(random, split)| open(random, split)));
    let carried_out = tokio::time::timeout(Duration::from_secs(60), engine.together(group, (3, 3_072), requests));
    let carried_out = carried_out.await.expect("none waits for another");
    let outcomes: Vec<_> = carried_out.iter().map(|(_, opened, paid)| (*opened, *paid)).collect();
    assert_eq!(outcomes, [(true, true), (false, false), (true, true)]);
    assert!(carried_out.iter().all(|(permit, ..)| Arc::ptr_eq(permit, &carried_out[0].0)));
    let alone = engine.permit_in_turn(Some(group), 1_024).await.unwrap();
    assert!(!Arc::ptr_eq(&alone, &carried_out[0].0));
    assert_eq!(available(&engine, group).await, (600 - 6 + 900 - 9, 500));
    engine.stop().await;
}

/// How many merchants and recipients are awake, or going to sleep.
fn awake(registry: &Registry) -> u64 {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let actors = text.lines().filter(|line| line.starts_with("centavo_actors_awake{"));
    actors.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Of more actors than may be awake, those sleep that were used least recently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_actors_than_may_be_awake_sleep() {
    const LONG: Duration = Duration::from_secs(3_600);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry, false));
    let options = EngineOptions { awake_max: 4, metrics, ..options(true) };
    let engine = Engine::open_store(store, options, |_, _| {}).await.unwrap();
    let mut shops = Vec::new();
    for _ in 0..5 {
        let (group, recipient) = open_shop(&engine).await;
        settle(&engine, group, recipient, 1).await;
        shops.push(group);
    }
    available(&engine, shops[0]).await;
    available(&engine, shops[3]).await;
    assert_eq!(awake(&registry), 7);
    let deadline = Instant::now() + Duration::from_secs(60);
    while awake(&registry) > 4 && Instant::now() < deadline {
        engine.sleep_idle(LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(awake(&registry), 4);
    // Those that were used last have not left.
    for used in [shops[0], shops[3]] {
        available(&engine, used).await;
    }
    assert_eq!(awake(&registry), 4);
    for shop in &shops {
        assert_eq!(available(&engine, *shop).await, (594, 400));
    }
    assert_eq!(awake(&registry), 10);
    engine.sleep_idle(LONG);
    engine.stop().await;
}

/// Stores no read model until it is let go on.
#[derive(Default)]
struct HeldPages {
    is_stored: AtomicBool,
    is_held: Mutex<bool>,
    released: Condvar,
}

impl HeldPages {
    fn hold(&self, holds: bool) {
        *self.is_held.lock() = holds;
        self.released.notify_all();
    }
}

impl Watch for HeldPages {
    fn loses(&self, key: &[u8], _: Option<&[u8]>, _: Durability) -> bool {
        if key == b"readers" {
            self.is_stored.store(true, Ordering::Release);
            self.released.wait_while(&mut self.is_held.lock(), |is_held| *is_held);
        }
        false
    }
}

/// To store the read model of a million merchants takes minutes; nobody waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_sleep_while_the_read_model_is_stored() {
    let store = Arc::new(WatchedStore::<HeldPages>::default());
    let pages = &store.watch;
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry, false));
    // Pages are stored after 1,024 Records of one of 64 partitions.
    let partitions = std::num::NonZeroU16::new(64).unwrap();
    let options =
        EngineOptions { awake_max: 4, idle: Duration::from_secs(3_600), metrics, partitions, ..options(true) };
    let engine = Engine::open_store(Arc::<WatchedStore<HeldPages>>::clone(&store), options, |_, _| {}).await.unwrap();
    pages.hold(true);
    let scheduled = Arc::clone(&engine);
    let schedule = tokio::spawn(async move { scheduled.run_schedule().await });
    let (group, recipient) = open_shop(&engine).await;
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut settled = 0;
    while !pages.is_stored.load(Ordering::Acquire) && Instant::now() < deadline {
        settled += 1;
        settle(&engine, group, recipient, settled).await;
    }
    for _ in 0..5 {
        let (group, recipient) = open_shop(&engine).await;
        settle(&engine, group, recipient, 1).await;
    }
    assert!(awake(&registry) >= 5);
    while awake(&registry) > 4 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let awake_meanwhile = awake(&registry);
    pages.hold(false);
    assert!(awake_meanwhile <= 4, "{awake_meanwhile} actors are awake");
    schedule.abort();
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_fails_starts_again_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), true).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    settle(&engine, group, recipient, 1).await;
    let failed = engine.read_merchant(group, |_, _| -> i64 { panic!("a defect in a handler") }).await;
    assert_eq!(failed, Err(Unavailable::OutcomeUnknown));
    // Until the directory has heard of the end, what is sent has no known outcome either.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while engine.read_merchant(group, |_, _| ()).await.is_err() {
        assert!(std::time::Instant::now() < deadline, "the actor did not start again");
        tokio::task::yield_now().await;
    }
    settle(&engine, group, recipient, 2).await;
    assert_eq!(available(&engine, group).await, (2 * 594, 800));
    engine.stop().await;
}

/// A store that answers no more is noticed, and what was sent to it is done once it answers again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_hangs_is_noticed() {
    let store = MemoryStore::new();
    let engine = Engine::open_store(Arc::new(store.clone()), options(true), |_, _| {}).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    assert_eq!(engine.monitor().longest_wait(), None);
    store.hang_appends(true);
    let settling = Arc::clone(&engine);
    let settled = tokio::spawn(async move { settle(&settling, group, recipient, 1).await });
    while engine.monitor().longest_wait().is_none_or(|waiting| waiting.what != WaitFor::Commit) {
        tokio::task::yield_now().await;
    }
    assert!(engine.stalled().is_none(), "not at once");
    store.hang_appends(false);
    settled.await.unwrap();
    let long_ago = Instant::now().checked_sub(NOT_READY_AFTER).unwrap();
    let hangs = engine.monitor().begin_since(WaitFor::Commit, long_ago);
    assert_eq!(engine.stalled().map(|waiting| waiting.what), Some(WaitFor::Commit));
    drop(hangs);
    assert!(engine.stalled().is_none());
    engine.stop().await;
}

/// Where no file of the index can be written, charges go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_cannot_be_written_does_not_stop_the_journal() {
    let store = MemoryStore::new();
    let index = IndexOptions { records_per_run: 10, runs_merged: 3 };
    let options = EngineOptions { index, ..options(true) };
    let engine = Engine::open_store(Arc::new(store.clone()), options, |_, _| {}).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    store.fail_files(true);
    for charge in 0..50 {
        settle(&engine, group, recipient, charge).await;
    }
    assert!(!engine.has_failed());
    assert_eq!(store.part().files().unwrap(), []);
    store.fail_files(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.part().files().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "it is not tried again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(available(&engine, group).await, (50 * 594, 50 * 400));
    engine.stop().await;
}

/// The keys of the months through which the sandbox clock moves are made before somebody seals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn month_keys_are_made_ahead() {
    let engine = Engine::open_store(Arc::new(MemoryStore::new()), options(true), |_, _| {}).await.unwrap();
    assert!(engine.keyring().is_prepared(engine.now()));
    for _ in 0..3 {
        engine.advance_clock(Duration::from_secs(40 * 86_400), engine.permit(0).unwrap()).await.unwrap();
        assert!(engine.keyring().is_prepared(engine.now()));
    }
    engine.stop().await;
}

/// Values stored beside the journal that can't be derived from it are in every backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_put_durably_is_in_a_backup() {
    let store = MemoryStore::new();
    let engine = Engine::open_store(Arc::new(store.clone()), options(true), |_, _| {}).await.unwrap();
    let (group, recipient) = open_shop(&engine).await;
    settle(&engine, group, recipient, 1).await;
    engine.sleep_idle(Duration::ZERO);
    engine.stop().await;
    let durable = store.after_power_cut(PowerCut::default()).unwrap().part();
    let copied: Vec<Vec<u8>> = durable_values([&durable]).unwrap().into_iter().map(|value| value.key).collect();
    assert_eq!(durable.state_keys(b"").unwrap(), Vec::<Vec<u8>>::new(), "all else can be derived");
    assert!(copied.len() >= 3, "the mode, the proof of the master key and the key of a month");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_in_which_a_sandbox_booked_does_not_open_live() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), true).await.unwrap().stop().await;
    open(folder.path(), false).await.unwrap().stop().await;
    let sandbox = open(folder.path(), true).await.unwrap();
    open_shop(&sandbox).await;
    sandbox.stop().await;
    drop(sandbox);
    let live = open(folder.path(), false).await.err();
    assert!(matches!(live, Some(OpenError::WrongMode { .. })), "{live:?}");
}

/// Several partitions of one process: each group is in the partition of its extent, with a sequence
/// of its own, and all of it is there again after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_live_in_the_partitions_of_their_extents() {
    const SHOPS: i64 = 7;
    let store = MemoryStore::new();
    let extents = Extents::new(vec![Extent { from: GroupNumber(0), first: Partition(0), count: 3 }]).unwrap();
    let open = || async {
        let taken = |number| Part::take(Arc::new(store.clone()), Partition(number)).unwrap();
        let parts = (0..3).map(taken).collect();
        Engine::open_parts(parts, extents.clone(), options(true), |_, _| {}).await.unwrap()
    };
    let engine = open().await;
    let mut shops = Vec::new();
    for _ in 0..SHOPS {
        shops.push(open_shop(&engine).await);
    }
    let groups: Vec<u32> = shops.iter().map(|(group, _)| group.0).collect();
    assert_eq!(groups, [1, 2, 3, 4, 5, 6, 7], "the partitions have their turns, and group 0 is the house's");
    let settling = shops.iter().map(|(group, recipient)| {
        let (engine, group, recipient) = (Arc::clone(&engine), *group, *recipient);
        tokio::spawn(async move {
            for charge in 0..20 {
                settle(&engine, group, recipient, charge).await;
            }
        })
    });
    for settled in settling.collect::<Vec<_>>() {
        settled.await.unwrap();
    }
    engine.advance_clock(Duration::from_secs(86_400), engine.permit(0).unwrap()).await.unwrap();
    engine.stop().await;
    drop(engine);
    for partition in (0..3).map(Partition) {
        let part = Part::reading(Arc::new(store.clone()), partition);
        let mut sequence = 1;
        for block in store.blocks(partition, Sequence::FIRST) {
            let block = block.unwrap();
            assert_eq!(block.first.0, sequence);
            for bytes in &block.records {
                let owner = Record::decode(bytes).unwrap().owner;
                assert_eq!(extents.partition_of(owner.group().unwrap_or_default()), partition, "a Record of {owner:?}");
            }
            sequence += block.records.len() as u64;
        }
        assert_eq!(part.head().unwrap().next.0, sequence);
        let shops_here = groups.iter().filter(|group| **group % 3 == u32::from(partition.0)).count() as u64;
        assert!(sequence > shops_here * 43, "{sequence} Records of {shops_here} merchants");
    }
    let again = open().await;
    for (group, recipient) in &shops {
        assert_eq!(available(&again, *group).await, (20 * 594, 20 * 400));
        settle(&again, *group, *recipient, 1 << 40).await;
        let listed = again.charges(*group, &ChargeFilter::default(), 0, 100).unwrap();
        assert_eq!(listed.total, 21);
        assert!(listed.items.into_iter().all(|charge| charge.is_ok()));
    }
    assert_eq!(again.new_group(None), GroupNumber(8), "no number is given twice");
    again.stop().await;
    let missing = Engine::open_parts(vec![store.part()], extents.clone(), options(true), |_, _| {}).await.err();
    assert!(matches!(missing, Some(OpenError::PartitionsMissing)), "{missing:?}");
}

/// Partitions are added to a store of one; a process that had read how many there are before takes
/// none of them up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_grows_and_a_process_that_does_not_know_it_ends() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let wanted = |count: u16| count.try_into().unwrap();
    let engine = Engine::open_store(Arc::clone(&store), options(true), |_, _| {}).await.unwrap();
    let (first, recipient) = open_shop(&engine).await;
    settle(&engine, first, recipient, 1).await;
    engine.stop().await;
    let late = Engine::open_node(Arc::clone(&store), Extents::of(&*store).unwrap(), options(true)).await.unwrap();
    let held = [Part::take(Arc::clone(&store), Partition(0)).unwrap()];
    let grown = grow(&held, wanted(3), 64, &mut |_, _| {}).unwrap();
    assert_eq!((grown.added, grown.extents.partitions(), grown.extents.growing().first), (2, 3, Partition(1)));
    assert!(grown.extents.growing().from > first);
    assert_eq!(grow(&held, wanted(3), 64, &mut |_, _| {}).unwrap().added, 0);
    assert!(matches!(grow(&held, wanted(2), 64, &mut |_, _| {}), Err(GrowthError::Fewer { has: 3 })));
    assert!(matches!(grow(&held, wanted(9), 8, &mut |_, _| {}), Err(GrowthError::TooMany { most: 8 })));
    let taken = Part::take(Arc::clone(&store), Partition(0)).unwrap();
    assert!(matches!(late.take_up(taken, |_, _| {}).await, Err(OpenError::Grown)));
    let again = Engine::open_store(Arc::clone(&store), options(true), |_, _| {}).await.unwrap();
    let (second, other) = open_shop(&again).await;
    settle(&again, second, other, 2).await;
    settle(&again, first, recipient, 3).await;
    assert_eq!(available(&again, first).await, (2 * 594, 2 * 400));
    assert_eq!(grown.extents.partition_of(second), Partition(1));
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_move_between_processes_and_are_followed() {
    const PARTITIONS: u16 = 3;
    let memory = MemoryStore::new();
    memory.set_followed();
    let store: Arc<dyn Store> = Arc::new(memory);
    let extents = Extents::made(&*store, PARTITIONS.try_into().unwrap()).unwrap();
    // Small runs, so that the owner writes and merges them while they are followed.
    let index = IndexOptions { records_per_run: 8, runs_merged: 2 };
    let options = || EngineOptions { index, ..options(true) };
    let node = async || Engine::open_node(Arc::clone(&store), extents.clone(), options()).await.unwrap();
    let take = async |engine: &Engine, partition| {
        engine.take_up(Part::take(Arc::clone(&store), partition).unwrap(), |_, _| {}).await.unwrap();
    };
    let nodes = [node().await, node().await];
    for partition in extents.all() {
        assert_eq!(nodes[0].role(partition), Role::Absent);
        take(&nodes[0], partition).await;
    }
    let mut shops = Vec::new();
    for _ in 0..2 * PARTITIONS {
        shops.push(open_shop(&nodes[0]).await);
    }
    let owner = |group| nodes.iter().find(|node| node.role(extents.partition_of(group)) == Role::Owner).unwrap();
    nodes[1].follow_others().await.unwrap();
    assert!(nodes[1].has_all());
    for round in 0..9 {
        let partition = Partition(round % PARTITIONS);
        let (from, to) = if nodes[0].role(partition) == Role::Owner { (0, 1) } else { (1, 0) };
        let hold = nodes[from].hold(partition).unwrap();
        assert!(hold.stands() && nodes[to].hold(partition).is_none());
        let handing = tokio::spawn({
            let node = Arc::clone(&nodes[from]);
            async move { node.hand_over(partition).await.unwrap() }
        });
        while nodes[from].hold(partition).is_some() {
            tokio::task::yield_now().await;
        }
        // Without a hold it takes less.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(hold.stands(), "it waits for those that hold it");
        drop(hold);
        handing.await.unwrap();
        // A caller that comes too late learns nothing, and nothing is booked.
        let (late, _) = *shops.iter().find(|(group, _)| extents.partition_of(*group) == partition).unwrap();
        let command = MerchantCommand::ApproveRecipient { id: shops[0].1 };
        let permit = nodes[from].permit(1_024).unwrap();
        let refused = nodes[from].command(late, command, permit).await.err();
        assert_eq!(refused, Some(Unavailable::Elsewhere(partition)));
        take(&nodes[to], partition).await;
        for (place, (group, recipient)) in shops.iter().enumerate() {
            settle(owner(*group), *group, *recipient, u64::from(round) * 100 + place as u64).await;
            let charges = i64::from(round) + 1;
            assert_eq!(available(owner(*group), *group).await, (charges * (600 - 6), charges * 400));
        }
        for node in &nodes {
            node.follow_others().await.unwrap();
            node.catch_up().await.unwrap();
            assert!(node.has_all());
        }
        assert_eq!(nodes[0].trial_balance(), nodes[1].trial_balance());
        for (group, _) in &shops {
            let listed = |node: &Engine| node.charges(*group, &ChargeFilter::default(), 0, 100).unwrap().total;
            assert_eq!([listed(&nodes[0]), listed(&nodes[1])], [u64::from(round) + 1; 2]);
        }
    }
    for node in &nodes {
        node.stop().await;
    }
    let alone = Engine::open_store(store, options(), |_, _| {}).await.unwrap();
    for (group, _) in &shops {
        assert_eq!(available(&alone, *group).await, (9 * (600 - 6), 9 * 400));
    }
    alone.stop().await;
}
