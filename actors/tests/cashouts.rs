//! Cashouts against a failing institution: whatever it answers, and wherever the process is cut
//! off, a cashout has one outcome, the institution's.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actors::engine::{
    AdmissionLimits, CommandContext, Engine, EngineOptions, IndexOptions, NewCashout, Outcome, Slice,
};
use actors::rails::{Call, Destination, NamedRails, PayoutAnswer, PayoutRail, RailError, Rails, SendPayout};
use actors::verify::verify;
use ledger::event::CashoutFailure;
use ledger::fees::Settings;
use ledger::personal::PixKeyKind;
use ledger::rail_word::RailWord;
use ledger::{
    Centavos, Event, GroupNumber, LedgerId, MerchantCommand, MerchantProfile, ObjectId, Payer, PayoutBank,
    PixDestination, Record, Rejection, Requester, SealedFor, Timestamp,
};
use parking_lot::Mutex;
use store::Store;
use store::testkit::{MemoryStore, PowerCut};
use tokio::sync::Notify;

/// What the institution does with a transfer, chosen by the PIX key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Takes it, and has carried it out when it is asked.
    Process,
    /// Carries it out at once.
    AtOnce,
    /// Takes it, and can't carry it out.
    Fail,
    /// Is down.
    Refuse,
    /// Takes it and carries it out, but the answer is lost.
    LoseAnswer,
    /// The first order does not reach it.
    LoseOrder,
    /// Takes it and answers nothing, ever.
    Silence,
    /// Takes it and goes on carrying it out, whenever it is asked.
    GoOn,
}

/// The institution's own state; it survives the process that calls it.
#[derive(Default)]
struct Book {
    ordered: BTreeMap<ObjectId, u32>,
    taken: BTreeSet<ObjectId>,
    /// A transfer that is carried out is written down: twice would be seen.
    carried_out: Vec<ObjectId>,
    /// When it was asked, on the clock of who asks.
    inquiries: BTreeMap<ObjectId, Vec<Timestamp>>,
}

impl Book {
    fn carry_out(&mut self, id: ObjectId) -> PayoutAnswer {
        if !self.carried_out.contains(&id) {
            self.carried_out.push(id);
        }
        PayoutAnswer::Processed {
            transfer_id: "t".to_owned(),
            end_to_end_id: format!("E{}", id.txid()),
            at: Timestamp(1_000),
            from: PayoutBank::Pix,
        }
    }
}

/// The moment at which a process is cut off: before or after the institution does what it is called
/// for.
struct Cut {
    at: u32,
    passed: Mutex<u32>,
    store: MemoryStore,
    left: Mutex<Option<MemoryStore>>,
    is_cut: Notify,
}

impl Cut {
    /// True when the process is cut off here, or was before.
    fn passes(&self) -> bool {
        let mut passed = self.passed.lock();
        *passed += 1;
        if *passed == self.at {
            *self.left.lock() = Some(self.store.after_power_cut(PowerCut::default()).unwrap());
            self.is_cut.notify_one();
        }
        *passed >= self.at
    }
}

/// An order that is answered when the test says so.
#[derive(Default)]
struct Gate {
    called: Notify,
    released: Notify,
}

struct Institution {
    book: Arc<Mutex<Book>>,
    cut: Option<Arc<Cut>>,
    held: Option<Arc<Gate>>,
    /// Carries a transfer out again when it is ordered again.
    repeats: bool,
}

impl Institution {
    /// One that always answers.
    fn of(book: &Arc<Mutex<Book>>) -> Self {
        Self { book: Arc::clone(book), cut: None, held: None, repeats: false }
    }
}

impl Institution {
    fn is_cut(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.passes())
    }

    fn call(&self, act: impl FnOnce(&mut Book) -> Result<PayoutAnswer, RailError>) -> Call<'_, PayoutAnswer> {
        if self.is_cut() {
            return Box::pin(std::future::pending());
        }
        let answer = act(&mut self.book.lock());
        if self.is_cut() {
            return Box::pin(std::future::pending());
        }
        let held = self.held.clone();
        Box::pin(async move {
            if let Some(held) = held {
                held.called.notify_one();
                held.released.notified().await;
            }
            answer
        })
    }
}

fn script(call: &SendPayout) -> Script {
    let Destination::PixKey(destination) = &call.to else { panic!("a cashout goes to a PIX key") };
    assert_eq!(call.amount, Centavos(900));
    let scripts = [
        Script::Process,
        Script::AtOnce,
        Script::Fail,
        Script::Refuse,
        Script::LoseAnswer,
        Script::LoseOrder,
        Script::Silence,
        Script::GoOn,
    ];
    scripts.into_iter().find(|script| destination.key == key(*script)).unwrap()
}

fn under_way() -> PayoutAnswer {
    PayoutAnswer::Taken { transfer_id: "t".to_owned(), at: Timestamp(1_000), from: PayoutBank::Pix }
}

fn key(script: Script) -> String {
    format!("{script:?}@example.com")
}

impl PayoutRail for Institution {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        self.call(|book| {
            let times = book.ordered.entry(call.id).or_default();
            *times += 1;
            let is_first = *times == 1;
            let script = script(&call);
            if script == Script::Refuse {
                return Ok(PayoutAnswer::NotTaken);
            }
            if script == Script::LoseOrder && is_first {
                return Err(RailError::NoAnswer);
            }
            book.taken.insert(call.id);
            match script {
                Script::AtOnce => Ok(book.carry_out(call.id)),
                Script::LoseAnswer => {
                    book.carry_out(call.id);
                    Err(RailError::NoAnswer)
                }
                Script::Silence => Err(RailError::NoAnswer),
                _ => Ok(under_way()),
            }
        })
    }

    fn find(&self, call: SendPayout, now: Timestamp) -> Call<'_, PayoutAnswer> {
        self.call(|book| {
            book.inquiries.entry(call.id).or_default().push(now);
            if !book.taken.contains(&call.id) {
                return Ok(PayoutAnswer::NotTaken);
            }
            match script(&call) {
                Script::Fail => Ok(PayoutAnswer::Failed { reason: "closed".to_owned() }),
                Script::Silence => Err(RailError::NoAnswer),
                Script::GoOn => Ok(under_way()),
                _ => Ok(book.carry_out(call.id)),
            }
        })
    }

    fn horizon(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn may_send_again(&self, _: Timestamp, _: Timestamp) -> bool {
        !self.repeats
    }
}

async fn open(store: &MemoryStore, payout: Institution) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox: true,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 1_000,
        rails: Rails { payout: NamedRails::sandbox(Arc::new(payout)), ..Rails::default() },
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    };
    let store: Arc<dyn Store> = Arc::new(store.clone());
    Engine::open_store(store, options, |_, _| {}).await.unwrap()
}

async fn record(engine: &Engine, group: GroupNumber, command: MerchantCommand) {
    let permit = engine.permit(1_024).unwrap();
    let outcome = engine.command(group, command, permit).await.unwrap();
    assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
}

/// A merchant with this amount available: PIX charges cost it nothing.
async fn open_shop(engine: &Engine, available: i64) -> GroupNumber {
    let (group, now) = (engine.new_group(None), engine.now());
    let mut settings = Settings { cashout_enabled: true, ..Settings::default() };
    settings.fees.pix = ledger::money::Rate::basis_points(0);
    let profile = engine.keyring().seal_value(SealedFor::merchant(group), now, &MerchantProfile::default()).unwrap();
    record(engine, group, MerchantCommand::Open { id: engine.ids().object(group, now, 1), settings, profile }).await;
    let charge = engine.ids().object(group, now, 2);
    let (amount, payer) =
        (Centavos(available), engine.keyring().seal_value(SealedFor::payer(charge), now, &Payer::default()).unwrap());
    let expires_at = now.plus_days(1);
    record(
        engine,
        group,
        MerchantCommand::OpenPix { charge, amount, splits: Vec::new(), expires_at, payer, rail: None },
    )
    .await;
    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
    record(engine, group, MerchantCommand::ConfirmPix { charge, amount, end_to_end_id }).await;
    group
}

/// Asks for a cashout of 1000, which costs 100.
async fn cash_out(engine: &Arc<Engine>, group: GroupNumber, script: Script, number: u64) -> ObjectId {
    let destination = PixDestination { kind: PixKeyKind::Email, key: key(script), info: None, labels: None };
    let transaction = engine.look_up_transaction(group, Some(u128::from(number).to_be_bytes())).unwrap();
    assert_eq!(transaction.used_by, None);
    let context = CommandContext { key: None, requester: None, permit: engine.permit(1_024).unwrap() };
    let call = NewCashout { amount: Centavos(1_000), destination, transaction, reference: None };
    let outcome = engine.cash_out(group, call, context).await.unwrap();
    let Outcome::Recorded(ordered) = outcome else { panic!("{outcome:?}") };
    let replayed = engine.cashout_ordered(&records(engine, ordered.id)[0]).unwrap();
    assert_eq!(replayed, Some(ordered), "a replay has the outcome of the request");
    ordered.id
}

fn records(engine: &Arc<Engine>, id: ObjectId) -> Vec<Record> {
    engine.history(id).unwrap().map(|record| record.unwrap().1).collect()
}

/// Available, and held.
async fn money(engine: &Engine, group: GroupNumber) -> (i64, i64) {
    engine.read_merchant(group, |books, _| (books.available().0, books.reserved_cashout().0)).await.unwrap()
}

async fn advance(engine: &Engine, seconds: u64) {
    engine.advance_clock(Duration::from_secs(seconds), engine.permit(0).unwrap()).await.unwrap();
}

const GROUP: GroupNumber = GroupNumber(1);
const SHOP: i64 = 10_000;

/// The first process: it is cut off at some point, or ends in good order. Gives what it leaves.
async fn first_process(script: Script, book: &Arc<Mutex<Book>>, at: u32) -> (MemoryStore, bool) {
    let store = MemoryStore::new();
    let cut = Arc::new(Cut {
        at,
        passed: Mutex::default(),
        store: store.clone(),
        left: Mutex::default(),
        is_cut: Notify::new(),
    });
    let engine = open(&store, Institution { cut: Some(Arc::clone(&cut)), ..Institution::of(book) }).await;
    assert_eq!(open_shop(&engine, SHOP).await, GROUP);
    let life = async {
        cash_out(&engine, GROUP, script, 7).await;
        advance(&engine, 0).await;
        advance(&engine, 60).await;
    };
    tokio::select! {
        () = cut.is_cut.notified() => {}
        () = life => {}
    }
    engine.stop().await;
    let left = cut.left.lock().take();
    let was_cut = left.is_some();
    (left.unwrap_or(store), was_cut)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_the_process_is_cut_off_a_cashout_has_the_outcome_that_the_institution_knows() {
    let mut cuts = 0;
    for script in [Script::Process, Script::AtOnce, Script::Fail, Script::Refuse, Script::LoseAnswer, Script::LoseOrder]
    {
        for at in 1.. {
            let book = Arc::new(Mutex::new(Book::default()));
            let (store, was_cut) = first_process(script, &book, at).await;
            cuts += u32::from(was_cut);
            let engine = open(&store, Institution::of(&book)).await;
            advance(&engine, 0).await;
            advance(&engine, 120).await;
            let is_processed = only_outcome(&engine, &book.lock(), &format!("{script:?} {at}"));
            let left = if is_processed { SHOP - 1_000 } else { SHOP };
            assert_eq!(money(&engine, GROUP).await, (left, 0), "{script:?} {at}");
            engine.stop().await;
            verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
            if !was_cut {
                break;
            }
        }
    }
    assert!(cuts >= 20, "{cuts} cuts prove little");
}

/// True when the one cashout of the shop was processed, false when it failed; the institution knows
/// it so too.
fn only_outcome(engine: &Arc<Engine>, book: &Book, case: &str) -> bool {
    let mut listed = engine.cashouts(LedgerId::Merchant(GROUP), Slice::of_all(0, 2)).unwrap();
    assert_eq!(listed.total, 1, "{case}: the intent is durable before the institution is called");
    let id = listed.items.next().unwrap().unwrap().id;
    let events: Vec<Event> = records(engine, id).into_iter().flat_map(|record| record.events).collect();
    let is_carried_out = book.carried_out == [id];
    assert!(is_carried_out || book.carried_out.is_empty(), "{case}: {:?}", book.carried_out);
    assert!(book.ordered.keys().chain(book.inquiries.keys()).all(|known| *known == id), "{case}");
    let is_retry = |event: &Event| matches!(event, Event::RailTried { .. });
    let orders = book.ordered.get(&id).copied().unwrap_or_default();
    assert!(orders <= 1 + events.iter().filter(|event| is_retry(event)).count() as u32, "{case}: {orders} orders");
    let events: Vec<_> = events.iter().filter(|event| !is_retry(event)).collect();
    let is_processed = match &events[1..] {
        [Event::CashoutProcessed { .. }] => true,
        [Event::CashoutFailed { .. }] => false,
        others => panic!("{case}: {others:?}"),
    };
    assert_eq!(is_processed, is_carried_out, "{case}");
    is_processed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_caller_who_waits_is_told_that_it_was_not_taken() {
    let book = Arc::new(Mutex::new(Book::default()));
    let engine = open(&MemoryStore::new(), Institution::of(&book)).await;
    let group = open_shop(&engine, SHOP).await;
    let refused = cash_out(&engine, group, Script::Refuse, 1).await;
    let failure = |id| {
        records(&engine, id).iter().flat_map(|record| record.events.clone()).find_map(|event| match event {
            Event::CashoutFailed { failure, .. } => Some(failure),
            _ => None,
        })
    };
    assert_eq!(failure(refused), Some(CashoutFailure::NotTaken));
    assert_eq!(book.lock().ordered[&refused], 1);
    engine.stop().await;
}

/// The schedule comes while the institution has not answered the caller yet: it waits, and the
/// outcome is the caller's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schedule_does_not_overtake_a_first_try() {
    let book = Arc::new(Mutex::new(Book::default()));
    let held = Arc::new(Gate::default());
    let institution = Institution { held: Some(Arc::clone(&held)), ..Institution::of(&book) };
    let engine = open(&MemoryStore::new(), institution).await;
    let group = open_shop(&engine, SHOP).await;
    let caller = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { cash_out(&engine, group, Script::Refuse, 1).await })
    };
    held.called.notified().await;
    let schedule = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { advance(&engine, 0).await })
    };
    for _ in 0..500 {
        assert_eq!(money(&engine, group).await, (SHOP - 1_000, 1_000));
    }
    assert!(
        book.lock().inquiries.is_empty() && !schedule.is_finished(),
        "the schedule asked before the caller was answered"
    );
    held.released.notify_one();
    let id = caller.await.unwrap();
    schedule.await.unwrap();
    let events: Vec<Event> = records(&engine, id).into_iter().flat_map(|record| record.events).collect();
    let is_the_callers = matches!(
        events[..],
        [Event::CashoutCreated { .. }, Event::CashoutFailed { failure: CashoutFailure::NotTaken, .. }]
    );
    assert!(is_the_callers, "{events:?}");
    assert!(book.lock().inquiries.is_empty(), "what has ended is not asked about");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_transfers_hold_up_no_other_and_are_asked_about_every_five_seconds() {
    const SILENT: u64 = 150;
    let book = Arc::new(Mutex::new(Book::default()));
    let store = MemoryStore::new();
    let engine = open(&store, Institution::of(&book)).await;
    let group = open_shop(&engine, 1_000_000).await;
    for number in 0..SILENT {
        cash_out(&engine, group, Script::Silence, number).await;
    }
    let last = cash_out(&engine, group, Script::Process, SILENT).await;
    advance(&engine, 0).await;
    assert_eq!(records(&engine, last).len(), 2, "its result comes before the clock call answers");
    let next = cash_out(&engine, group, Script::Process, SILENT + 1).await;
    advance(&engine, 0).await;
    assert_eq!(records(&engine, next).len(), 2);
    advance(&engine, 5).await;
    let inquiries = book.lock().inquiries.clone();
    assert_eq!(inquiries.len() as u64, SILENT + 2);
    for (id, times) in inquiries.iter().filter(|(id, _)| ![last, next].contains(id)) {
        assert!(times.len() > 1, "{id:?} is asked about again: {times:?}");
        assert!(times.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 5_000), "{times:?}");
    }
    assert_eq!(money(&engine, group).await.1, 1_000 * SILENT as i64);
    assert!(book.lock().ordered.values().all(|times| *times == 1), "what may be under way is not ordered again");
    let before = money(&engine, group).await;
    engine.stop().await;
    let verified = verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    assert!(verified.snapshots > 0, "the cashouts that wait are in a snapshot");
    let again = open(&store, Institution::of(&book)).await;
    assert_eq!(money(&again, group).await, before);
    again.stop().await;
}

/// What a Record says of a cashout after its creation, by the names of its facts.
fn facts(engine: &Arc<Engine>, id: ObjectId) -> Vec<&'static str> {
    records(engine, id).iter().skip(1).flat_map(|record| record.events.iter().map(Event::name)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_order_is_a_record_first_and_the_horizon_counts_from_it() {
    let book = Arc::new(Mutex::new(Book::default()));
    let engine = open(&MemoryStore::new(), Institution::of(&book)).await;
    let group = open_shop(&engine, SHOP).await;
    let id = cash_out(&engine, group, Script::LoseOrder, 1).await;
    advance(&engine, 29).await;
    assert_eq!((book.lock().ordered[&id], facts(&engine, id)), (1, vec![]));
    advance(&engine, 40).await;
    assert_eq!(book.lock().ordered[&id], 2);
    assert_eq!(facts(&engine, id), ["rail_tried", "cashout_processed"]);
    engine.stop().await;
}

/// The word of an operator on a cashout.
async fn say(engine: &Arc<Engine>, id: ObjectId, operator: &str, happened: bool, reference: &str) -> Outcome {
    let requester = Some(Requester::Operator(operator.to_owned()));
    let context = CommandContext { key: None, requester, permit: engine.permit(1_024).unwrap() };
    let word = RailWord { happened, reference: reference.to_owned() };
    engine.say_rail_word(id, word, "o banco confirmou".to_owned(), context).await.unwrap()
}

/// The money of a transfer that the institution has under way has left: it is not given back to the
/// merchant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cashout_that_is_under_way_is_not_ended_as_not_carried_out() {
    let (book, store) = (Arc::new(Mutex::new(Book::default())), MemoryStore::new());
    let engine = open(&store, Institution::of(&book)).await;
    let group = open_shop(&engine, SHOP).await;
    let id = cash_out(&engine, group, Script::GoOn, 1).await;
    advance(&engine, 3_700).await;
    assert!(matches!(say(&engine, id, "ana", false, "P-1").await, Outcome::Recorded(_)));
    let said = say(&engine, id, "bia", false, "P-1").await;
    assert!(matches!(said, Outcome::Refused(Rejection::OutcomeNotUnknown)), "{said:?}");
    assert_eq!(money(&engine, group).await, (SHOP - 1_000, 1_000));
    assert!(matches!(say(&engine, id, "bia", true, "E1").await, Outcome::Recorded(_)));
    assert!(matches!(say(&engine, id, "ana", true, "E1").await, Outcome::Recorded(_)));
    let words = ["rail_word_asked"; 2];
    assert_eq!(facts(&engine, id), [&words[..], &["cashout_processed", "rail_word_given"]].concat());
    engine.stop().await;
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_end_what_may_not_be_ordered_twice() {
    let (book, store) = (Arc::new(Mutex::new(Book::default())), MemoryStore::new());
    let engine = open(&store, Institution { repeats: true, ..Institution::of(&book) }).await;
    let group = open_shop(&engine, SHOP).await;
    let [lost, sent] =
        [cash_out(&engine, group, Script::LoseOrder, 1).await, cash_out(&engine, group, Script::Silence, 2).await];
    advance(&engine, 3_500).await;
    assert_eq!(book.lock().ordered[&lost], 1, "it would be carried out twice");
    let early = say(&engine, lost, "ana", false, "P-1").await;
    assert!(matches!(early, Outcome::Refused(Rejection::OutcomeNotUnknown)), "{early:?}");
    advance(&engine, 200).await;
    assert!(matches!(say(&engine, lost, "ana", false, "P-1").await, Outcome::Recorded(_)));
    assert_eq!(engine.asked_rail_word(lost).unwrap().unwrap().by, "ana");
    let again = say(&engine, lost, "ana", false, "P-1").await;
    assert!(matches!(again, Outcome::Refused(Rejection::SecondOperatorNeeded)), "{again:?}");
    // Another word is a first word.
    assert!(matches!(say(&engine, lost, "bia", true, "P-1").await, Outcome::Recorded(_)));
    assert!(matches!(say(&engine, lost, "caio", true, "P-2").await, Outcome::Recorded(_)));
    assert_eq!(money(&engine, group).await, (SHOP - 2_000, 2_000));
    assert!(matches!(say(&engine, lost, "bia", false, "P-1").await, Outcome::Recorded(_)));
    assert!(matches!(say(&engine, lost, "caio", false, "P-1").await, Outcome::Recorded(_)));
    let words = ["rail_word_asked"; 4];
    assert_eq!(facts(&engine, lost), [&words[..], &["cashout_failed", "rail_word_given"]].concat());
    assert_eq!(money(&engine, group).await, (SHOP - 1_000, 1_000));
    assert!(matches!(say(&engine, sent, "ana", true, "E1").await, Outcome::Recorded(_)));
    let note = MerchantCommand::WriteNote { object: sent, text: "bia liga amanhã".to_owned() };
    engine.command(group, note, engine.permit(1_024).unwrap()).await.unwrap();
    assert!(matches!(say(&engine, sent, "bia", true, "E1").await, Outcome::Recorded(_)));
    let ended = ["rail_word_asked", "note_written", "cashout_processed", "rail_word_given"];
    assert_eq!(facts(&engine, sent), ended, "a note is no word of the rail");
    assert_eq!(money(&engine, group).await, (SHOP - 1_000, 0));
    let over = say(&engine, sent, "caio", true, "P-3").await;
    assert!(matches!(over, Outcome::Refused(Rejection::OutcomeNotUnknown)), "{over:?}");
    // Neither is an unknown outcome any more.
    cash_out(&engine, group, Script::Process, 3).await;
    advance(&engine, 60).await;
    assert_eq!(engine.metrics().oldest_unknown_seconds.get(), 0);
    engine.stop().await;
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
}
