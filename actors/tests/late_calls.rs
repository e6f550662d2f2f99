//! Late calls to the acquirer, for the process stood still between the intent and the call, and an
//! acquirer that falls silent within a batch. Whatever it answers then, the books agree with it.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actors::engine::{
    AdmissionLimits, CommandContext, Engine, EngineOptions, FirstAnswer, IndexOptions, NewCardCharge, NewChargeCard,
    Outcome, WaitingKind,
};
use actors::rails::{
    Call, CaptureCard, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, ChargedCard, NamedRails,
    RailError, Rails, Repay, RepayAnswer, SettlementCursor, SettlementLine, SettlementPage,
};
use actors::testkit::rails;
use ledger::event::Batch;
use ledger::fees::{Commission, Settings};
use ledger::merchant::Authorization;
use ledger::rail_word::RailWord;
use ledger::{
    Account, CardBrand, CardFace, CardRefusal, Centavos, Event, GroupNumber, LedgerId, MerchantCommand,
    MerchantProfile, ObjectId, OpenCharge, Payer, PaymentMethod, RailName, RailStamp, Rejection, Requester, SealedFor,
    SettledObject, Terms, Timestamp,
};
use store::testkit::MemoryStore;
use tokio::sync::{Notify, Semaphore};

/// An acquirer that is far away: what is sent to it arrives when the test lets it, also when nobody
/// waits for the answer any more.
#[derive(Clone)]
struct Acquirer {
    desk: Arc<Mutex<Desk>>,
    sent: Arc<Notify>,
    arrivals: Arc<Semaphore>,
    arrived: Arc<Notify>,
}

#[derive(Default)]
struct Desk {
    captured: HashSet<ObjectId>,
    closed: HashSet<ObjectId>,
    sent: usize,
    /// Lines of its batches, served one at a time.
    batches: Vec<Vec<SettlementLine>>,
    /// After so many lines it is silent once.
    silent_after: Option<u64>,
    /// It does not say what became of a charge, nor of its capture.
    is_mute: bool,
    /// It has each charge, and has not decided.
    is_undecided: bool,
    /// It authorizes charges, whether they were closed or not, and captures them by another order.
    separates: bool,
    /// It never answers an order to capture, nor carries it out.
    loses_captures: bool,
    /// Orders to capture.
    capture_orders: usize,
    /// The charge that was ordered last.
    asked: Option<ObjectId>,
    /// Callers wait for its answers as long as is needed.
    is_waited_for: bool,
}

impl Acquirer {
    fn new() -> Self {
        Self {
            desk: Arc::default(),
            sent: Arc::default(),
            arrivals: Arc::new(Semaphore::new(0)),
            arrived: Arc::default(),
        }
    }

    fn captures(&self, charge: ObjectId) -> bool {
        self.desk.lock().unwrap().captured.contains(&charge)
    }

    fn arrive(&self, charge: ObjectId) -> CardAnswer {
        let mut desk = self.desk.lock().unwrap();
        if desk.separates {
            return CardAnswer::Authorized(Authorization { stamp: stamp(), brand: Some(CardBrand::Elo) });
        }
        if desk.closed.contains(&charge) {
            return CardAnswer::Refused(CardRefusal::Failed);
        }
        desk.captured.insert(charge);
        CardAnswer::Captured { acquirer_mdr: Centavos(299), brand: None, stamp: stamp() }
    }
}

/// What the acquirer says of a capture.
fn stamp() -> RailStamp {
    RailStamp::new("000000000017".to_owned(), Timestamp(1_000))
}

impl CardRail for Acquirer {
    fn answers_within(&self) -> Duration {
        Duration::from_millis(if self.desk.lock().unwrap().is_waited_for { 600_000 } else { 1_500 })
    }

    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer> {
        let (acquirer, charge) = (self.clone(), call.charge);
        let under_way = tokio::spawn(async move {
            acquirer.arrivals.acquire().await.unwrap().forget();
            let answer = acquirer.arrive(call.charge);
            acquirer.arrived.notify_one();
            answer
        });
        {
            let mut desk = self.desk.lock().unwrap();
            (desk.sent, desk.asked) = (desk.sent + 1, Some(charge));
        }
        self.sent.notify_one();
        Box::pin(async move { under_way.await.map_err(|_| RailError::NoAnswer) })
    }

    fn capture(&self, call: CaptureCard) -> Call<'_, CardAnswer> {
        let mut desk = self.desk.lock().unwrap();
        desk.capture_orders += 1;
        if desk.loses_captures {
            return Box::pin(std::future::pending());
        }
        if desk.is_mute {
            return Box::pin(std::future::ready(Err(RailError::NoAnswer)));
        }
        desk.captured.insert(call.charge);
        let Authorization { stamp, brand } = call.authorized;
        Box::pin(std::future::ready(Ok(CardAnswer::Captured { acquirer_mdr: Centavos::ZERO, brand, stamp })))
    }

    fn close<'a>(&'a self, charge: ObjectId, _: &'a OpenCharge) -> Call<'a, CardFate> {
        if self.desk.lock().unwrap().is_mute {
            return Box::pin(std::future::ready(Err(RailError::NoAnswer)));
        }
        if self.desk.lock().unwrap().is_undecided {
            return Box::pin(std::future::ready(Ok(CardFate::Answered(CardAnswer::UnderWay))));
        }
        let fate = match self.captures(charge) {
            true => {
                CardFate::Answered(CardAnswer::Captured { acquirer_mdr: Centavos(299), brand: None, stamp: stamp() })
            }
            false => CardFate::Closed,
        };
        if fate == CardFate::Closed {
            self.desk.lock().unwrap().closed.insert(charge);
        }
        Box::pin(std::future::ready(Ok(fate)))
    }

    fn tokenize(&self, _: CardSecrets) -> Call<'_, CardToken> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Ok(stamp())))
    }

    fn settlements(&self, after: SettlementCursor, _now: Timestamp) -> Call<'_, Option<SettlementPage>> {
        let mut desk = self.desk.lock().unwrap();
        if desk.silent_after.take_if(|lines| *lines == after.lines).is_some() {
            return Box::pin(std::future::ready(Err(RailError::NoAnswer)));
        }
        let number = BATCH.max(after.batch + 1);
        let lines = desk.batches.get((number - BATCH) as usize).map_or(&[][..], Vec::as_slice);
        let line = lines.get(after.lines as usize).copied();
        let batch = Batch { number, reference: format!("LOTE-{number}"), paid_on: 20_000, of_file: false };
        let is_last = after.lines + 1 == lines.len() as u64;
        Box::pin(std::future::ready(Ok(line.map(|line| SettlementPage { batch, lines: vec![line], is_last }))))
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }
}

async fn open(acquirer: &Acquirer) -> Arc<Engine> {
    open_with(NamedRails::sandbox(Arc::new(acquirer.clone())), true).await
}

async fn open_with(card: NamedRails<dyn CardRail>, sandbox: bool) -> Arc<Engine> {
    open_on(Arc::new(MemoryStore::default()), card, sandbox).await
}

async fn open_on(store: Arc<MemoryStore>, card: NamedRails<dyn CardRail>, sandbox: bool) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 1_000,
        rails: Rails { card, ..Rails::default() },
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    };
    Engine::open_store(store, options, |_, _| {}).await.unwrap()
}

async fn record(engine: &Engine, group: GroupNumber, command: MerchantCommand) {
    let permit = engine.permit(1_024).unwrap();
    let outcome = engine.command(group, command, permit).await.unwrap();
    assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
}

/// A merchant, and the intent of a card charge, durable.
async fn open_charge(engine: &Engine) -> (GroupNumber, ObjectId) {
    let (group, now) = (engine.new_group(None), engine.now());
    let profile = engine.keyring().seal_value(SealedFor::merchant(group), now, &MerchantProfile::default()).unwrap();
    let (id, settings) = (engine.new_id(group).unwrap(), Settings::default());
    record(engine, group, MerchantCommand::Open { id, settings, profile }).await;
    let charge = engine.new_id(group).unwrap();
    let opened = MerchantCommand::OpenCard {
        charge,
        amount: AMOUNT,
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        card: FACE,
        payer: engine.keyring().seal_value(SealedFor::payer(charge), now, &Payer::default()).unwrap(),
        rail: None,
    };
    record(engine, group, opened).await;
    (group, charge)
}

const BATCH: u64 = 7;
const AMOUNT: Centavos = Centavos(10_000);
const FACE: CardFace = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };

fn call(charge: ObjectId) -> ChargeCard {
    let card = ChargedCard::Token(CardToken("kept".to_owned()));
    ChargeCard {
        charge,
        amount: AMOUNT,
        installments: 1,
        method: PaymentMethod::CreditCard,
        card,
        merchant: MerchantProfile::default(),
        payer: Default::default(),
        not_after: charge.created_at().plus_ms(30_000),
    }
}

async fn advance(engine: &Engine, seconds: u64) {
    engine.advance_clock(Duration::from_secs(seconds), engine.permit(0).unwrap()).await.unwrap();
}

/// What the journal says of a charge after its intent.
fn outcomes(engine: &Arc<Engine>, charge: ObjectId) -> Vec<Event> {
    engine.history(charge).unwrap().skip(1).flat_map(|record| record.unwrap().1.events).collect()
}

fn is_refused(outcomes: &[Event]) -> bool {
    let [ended] = outcomes else { return false };
    matches!(ended, Event::CardRefused { refusal: CardRefusal::Failed, .. })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_arrives_after_the_reconciliation_charges_nobody() {
    let acquirer = Acquirer::new();
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    let caller = {
        let (engine, permit) = (Arc::clone(&engine), engine.permit(1_024).unwrap());
        tokio::spawn(async move { engine.ask_acquirer(group, call(charge), None, permit).await.unwrap() })
    };
    acquirer.sent.notified().await;
    advance(&engine, 61).await;
    let ended: Vec<_> = outcomes(&engine, charge);
    assert!(ended.iter().any(|event| matches!(event, Event::CardRefused { .. })), "{ended:?}");
    acquirer.arrivals.add_permits(1);
    acquirer.arrived.notified().await;
    drop(caller.await.unwrap());
    assert!(!acquirer.captures(charge), "the books say that it was refused");
    assert!(engine.read_merchant(group, |books, _| books.open_charges().is_empty()).await.unwrap());
    engine.stop().await;
}

/// The caller hears that the charge is pending; the call to a named acquirer goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_after_the_caller_has_gone_is_booked() {
    let (acquirer, name) = (Acquirer::new(), RailName::parse("adyen").unwrap());
    let rail: Arc<dyn CardRail> = Arc::new(acquirer.clone());
    let engine = open_with(NamedRails::named([(name.clone(), rail)].into(), Some(name.clone())), false).await;
    let schedule = Arc::clone(&engine);
    let schedule = tokio::spawn(async move { schedule.run_schedule().await });
    let (group, charge) = open_charge(&engine).await;
    let permit = engine.permit(1_024).unwrap();
    let outcome = engine.ask_acquirer(group, call(charge), Some(&name), permit).await.unwrap();
    let Outcome::Recorded(record) = outcome else { panic!("{outcome:?}") };
    assert_eq!(record.events, [Event::CardUnanswered { charge }]);
    acquirer.arrivals.add_permits(1);
    while outcomes(&engine, charge).len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(matches!(outcomes(&engine, charge)[1], Event::CardCaptured { .. }));
    assert_eq!(acquirer.desk.lock().unwrap().sent, 1);
    schedule.abort();
    engine.stop().await;
}

/// The process ends between the Record of the authorization and the capture. After its start the
/// schedule orders the capture.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_authorized_before_a_crash_is_captured_after_it() {
    let (acquirer, store) = (Acquirer::new(), Arc::new(MemoryStore::default()));
    *acquirer.desk.lock().unwrap() = Desk { separates: true, loses_captures: true, ..Desk::default() };
    acquirer.arrivals.add_permits(1);
    let opened = || open_on(Arc::clone(&store), NamedRails::sandbox(Arc::new(acquirer.clone())), true);
    let engine = opened().await;
    let (group, charge) = open_charge(&engine).await;
    let caller = {
        let (engine, permit) = (Arc::clone(&engine), engine.permit(1_024).unwrap());
        tokio::spawn(async move { engine.ask_acquirer(group, call(charge), None, permit).await })
    };
    while acquirer.desk.lock().unwrap().capture_orders == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(matches!(outcomes(&engine, charge)[..], [Event::CardAuthorized { .. }]), "before the order to capture");
    caller.abort();
    assert!(caller.await.is_err());
    engine.stop().await;
    acquirer.desk.lock().unwrap().loses_captures = false;
    let engine = opened().await;
    assert!(!acquirer.captures(charge));
    advance(&engine, 20).await;
    let captured = outcomes(&engine, charge);
    let [Event::CardAuthorized { .. }, Event::RailTried { attempt: 2, .. }, Event::CardCaptured { brand, .. }] =
        captured[..]
    else {
        panic!("{captured:?}");
    };
    assert_eq!(brand, Some(CardBrand::Elo));
    assert!(acquirer.captures(charge));
    advance(&engine, 3_600).await;
    assert_eq!((outcomes(&engine, charge).len(), acquirer.desk.lock().unwrap().capture_orders), (3, 2));
    engine.stop().await;
}

/// A repeat of a request waits while its charge is being asked about. Once the process that asked
/// has ended, the charge is pending, and stays what its caller was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_after_a_crash_is_answered_with_the_pending_charge() {
    let (acquirer, store) = (Acquirer::new(), Arc::new(MemoryStore::default()));
    acquirer.desk.lock().unwrap().is_waited_for = true;
    let opened = || open_on(Arc::clone(&store), NamedRails::sandbox(Arc::new(acquirer.clone())), true);
    let engine = opened().await;
    let (group, _) = open_charge(&engine).await;
    let card = NewChargeCard::Given(CardSecrets {
        number: "4111111111111111".to_owned(),
        holder_name: "ANA".to_owned(),
        exp_month: 12,
        exp_year: 2039,
        cvv: "123".to_owned(),
    });
    let wanted = NewCardCharge {
        amount: AMOUNT,
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        face: FACE,
        payer: Payer::default(),
        card,
        reference: None,
    };
    let caller = {
        let (engine, permit) = (Arc::clone(&engine), engine.permit(1_024).unwrap());
        let context = CommandContext { key: None, requester: None, permit };
        tokio::spawn(async move { engine.charge_card(group, wanted, context).await.map(drop) })
    };
    acquirer.sent.notified().await;
    let newest = acquirer.desk.lock().unwrap().asked.unwrap();
    let intent = engine.history(newest).unwrap().next().unwrap().unwrap().1;
    assert_eq!(engine.card_charged(&intent).await.unwrap(), None, "it is being asked");
    caller.abort();
    assert!(caller.await.is_err());
    engine.stop().await;
    let engine = opened().await;
    for _ in 0..2 {
        let known = engine.card_charged(&intent).await.unwrap().unwrap();
        assert_eq!((known.charge, known.answer), (newest, FirstAnswer::Silent));
    }
    assert!(matches!(outcomes(&engine, newest)[..], [Event::CardUnanswered { .. }]), "a Record says so, once");
    advance(&engine, 61).await;
    assert!(is_refused(&outcomes(&engine, newest)[1..]));
    assert_eq!(engine.card_charged(&intent).await.unwrap().unwrap().answer, FirstAnswer::Silent);
    engine.stop().await;
}

/// An authorization that comes after the books have ended the charge takes no money.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_that_comes_late_is_never_captured() {
    let acquirer = Acquirer::new();
    acquirer.desk.lock().unwrap().separates = true;
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    let caller = {
        let (engine, permit) = (Arc::clone(&engine), engine.permit(1_024).unwrap());
        tokio::spawn(async move { engine.ask_acquirer(group, call(charge), None, permit).await.unwrap() })
    };
    acquirer.sent.notified().await;
    advance(&engine, 61).await;
    acquirer.arrivals.add_permits(1);
    drop(caller.await.unwrap());
    assert!(outcomes(&engine, charge).iter().any(|event| matches!(event, Event::CardRefused { .. })));
    assert_eq!(acquirer.desk.lock().unwrap().capture_orders, 0);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_comes_late_is_not_made() {
    let acquirer = Acquirer::new();
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    advance(&engine, 30).await;
    acquirer.arrivals.add_permits(1);
    let permit = engine.permit(1_024).unwrap();
    let outcome = engine.ask_acquirer(group, call(charge), None, permit).await.unwrap();
    let Outcome::Recorded(record) = outcome else { panic!("{outcome:?}") };
    assert_eq!(record.events, [Event::CardUnanswered { charge }]);
    assert_eq!(acquirer.desk.lock().unwrap().sent, 0);
    advance(&engine, 31).await;
    assert!(is_refused(&outcomes(&engine, charge)[1..]), "{:?}", outcomes(&engine, charge));
    engine.stop().await;
}

/// A merchant's account at the bank, as the platform has it.
async fn at_bank(engine: &Engine, group: GroupNumber) -> i128 {
    let accounts = engine.accounts(LedgerId::Platform(group)).await.unwrap();
    accounts.get(&Account::BankSettlement).map_or(0, |balance| balance.net())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_interrupted_is_read_again_and_booked_once() {
    let acquirer = Acquirer::new();
    let engine = open(&acquirer).await;
    let (first, second) = (open_charge(&engine).await, open_charge(&engine).await);
    for (group, charge) in [first, second] {
        acquirer.arrivals.add_permits(1);
        engine.ask_acquirer(group, call(charge), None, engine.permit(1_024).unwrap()).await.unwrap();
    }
    let line =
        |charge, object, gross, fee| SettlementLine { charge, object, gross: Centavos(gross), fee: Centavos(fee) };
    {
        let mut desk = acquirer.desk.lock().unwrap();
        desk.batches = vec![vec![
            line(first.1, SettledObject::Installment(1), 10_000, 299),
            line(second.1, SettledObject::Installment(1), 10_000, 310),
            line(first.1, SettledObject::Refund(ObjectId(5)), -1_000, -30),
        ]];
        desk.silent_after = Some(2);
    }
    advance(&engine, 1).await;
    assert_eq!([at_bank(&engine, first.0).await, at_bank(&engine, second.0).await], [9_701, 9_690]);
    advance(&engine, 60).await;
    assert_eq!([at_bank(&engine, first.0).await, at_bank(&engine, second.0).await], [8_731, 9_690]);
    advance(&engine, 3_600).await;
    let settled = |charge| {
        let outcome_events = outcomes(&engine, charge);
        let lines = outcome_events.into_iter().filter_map(|event| match event {
            Event::AcquirerSettled { lines, .. } => Some(lines.len()),
            _ => None,
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!([settled(first.1), settled(second.1)], [vec![1, 1], vec![1]]);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_for_a_charge_that_nobody_captured_is_in_suspense() {
    let acquirer = Acquirer::new();
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    let line = |charge, gross, fee| {
        let object = SettledObject::Installment(1);
        SettlementLine { charge, object, gross: Centavos(gross), fee: Centavos(fee) }
    };
    let unknown = ObjectId(charge.0 ^ (1 << 80));
    acquirer.desk.lock().unwrap().batches = vec![vec![line(unknown, 5_000, 100), line(charge, 10_000, 299)]];
    let suspense = async || suspense(&engine).await;
    advance(&engine, 1).await;
    assert_eq!(suspense().await, [0, 0], "a charge without an outcome makes its batch wait");
    acquirer.arrivals.add_permits(1);
    engine.ask_acquirer(group, call(charge), None, engine.permit(1_024).unwrap()).await.unwrap();
    advance(&engine, 60).await;
    assert_eq!(suspense().await, [4_900, -4_900]);
    assert_eq!(at_bank(&engine, group).await, 9_701);
    advance(&engine, 3_600).await;
    assert_eq!(suspense().await, [4_900, -4_900], "once");
    engine.stop().await;
}

/// An installment or a refund that comes again, in its batch or in a later one, is booked once; the
/// money of the repetition is in suspense.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_comes_twice_is_in_suspense() {
    let acquirer = Acquirer::new();
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    acquirer.arrivals.add_permits(1);
    engine.ask_acquirer(group, call(charge), None, engine.permit(1_024).unwrap()).await.unwrap();
    let line = |object, gross, fee| SettlementLine { charge, object, gross: Centavos(gross), fee: Centavos(fee) };
    let paid = line(SettledObject::Installment(1), 10_000, 299);
    let refund = line(SettledObject::Refund(ObjectId(5)), -1_000, 0);
    {
        let mut desk = acquirer.desk.lock().unwrap();
        desk.batches = vec![vec![paid, paid], vec![refund, paid], vec![refund]];
        desk.silent_after = Some(1);
    }
    advance(&engine, 1).await;
    assert_eq!(suspense(&engine).await, [0, 0], "it is silent within the first batch");
    advance(&engine, 60).await;
    assert_eq!(at_bank(&engine, group).await, 9_701 - 1_000);
    assert_eq!(suspense(&engine).await, [2 * 9_701 - 1_000, -2 * 9_701 + 1_000]);
    engine.stop().await;
}

/// A charge that the acquirer never reports holds up its batches, until two operators end it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_end_a_charge_that_holds_up_the_batches() {
    for happened in [true, false] {
        let acquirer = Acquirer::new();
        let engine = open(&acquirer).await;
        let (group, charge) = open_charge(&engine).await;
        {
            let mut desk = acquirer.desk.lock().unwrap();
            let (gross, fee) = (AMOUNT, Centavos(299));
            desk.batches = vec![vec![SettlementLine { charge, object: SettledObject::Installment(1), gross, fee }]];
            desk.is_mute = true;
        }
        advance(&engine, 4_000).await;
        let waits = || engine.queue(|item| matches!(item.what, WaitingKind::Rail { .. }), |_| (), 10).items;
        assert_eq!(waits().iter().map(|item| item.id).collect::<Vec<_>>(), [charge]);
        assert_eq!((at_bank(&engine, group).await, suspense(&engine).await), (0, [0, 0]));
        for operator in ["ana", "bia"] {
            let said = say(&engine, charge, operator, happened).await;
            assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
        }
        assert!(waits().is_empty());
        advance(&engine, 120).await;
        let booked = (at_bank(&engine, group).await, suspense(&engine).await);
        assert_eq!(booked, if happened { (9_701, [0, 0]) } else { (0, [9_701, -9_701]) }, "{happened}");
        engine.stop().await;
    }
}

/// A charge that its acquirer has under way may still be captured: operators can't end it as one
/// that did not happen. By another word they can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_under_way_is_not_ended_as_not_carried_out() {
    let acquirer = Acquirer::new();
    acquirer.desk.lock().unwrap().is_undecided = true;
    let engine = open(&acquirer).await;
    let (_, charge) = open_charge(&engine).await;
    advance(&engine, 4_000).await;
    assert_eq!(outcomes(&engine, charge), [], "it is asked about, and waits");
    let said = say(&engine, charge, "ana", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    let said = say(&engine, charge, "bia", false).await;
    assert!(matches!(said, Outcome::Refused(Rejection::OutcomeNotUnknown)), "{said:?}");
    for operator in ["ana", "bia"] {
        let said = say(&engine, charge, operator, true).await;
        assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    }
    assert!(matches!(outcomes(&engine, charge)[2], Event::CardCaptured { .. }));
    engine.stop().await;
}

/// The word of an operator.
async fn say(engine: &Engine, charge: ObjectId, operator: &str, happened: bool) -> Outcome {
    let requester = Some(Requester::Operator(operator.to_owned()));
    let context = CommandContext { key: None, requester, permit: engine.permit(1_024).unwrap() };
    let word = RailWord { happened, reference: "NSU-17".to_owned() };
    engine.say_rail_word(charge, word, "extrato".to_owned(), context).await.unwrap()
}

/// An acquirer that does not answer the order to capture is given it again and again, until an
/// operator says that it did not happen. The last order has an hour to arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_is_on_its_way_is_not_ended_by_operators() {
    let acquirer = Acquirer::new();
    *acquirer.desk.lock().unwrap() = Desk { separates: true, is_mute: true, ..Desk::default() };
    acquirer.arrivals.add_permits(1);
    let engine = open(&acquirer).await;
    let (group, charge) = open_charge(&engine).await;
    engine.ask_acquirer(group, call(charge), None, engine.permit(1_024).unwrap()).await.unwrap();
    advance(&engine, 4_000).await;
    let orders = || acquirer.desk.lock().unwrap().capture_orders;
    let before = orders();
    assert!(before > 2, "{before}");
    let is_early = |said: &Outcome| matches!(said, Outcome::Refused(Rejection::OutcomeNotUnknown));
    let said = say(&engine, charge, "ana", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    let said = say(&engine, charge, "bia", false).await;
    assert!(is_early(&said), "{said:?}");
    advance(&engine, 3_600).await;
    let said = say(&engine, charge, "bia", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    assert_eq!(orders(), before, "it is not captured while operators end it");
    assert!(outcomes(&engine, charge).iter().any(|event| matches!(event, Event::CardRefused { .. })));
    engine.stop().await;
}

/// Balances of the house ledger: its money at the bank, and its suspense.
async fn suspense(engine: &Engine) -> [i128; 2] {
    let house = engine.accounts(LedgerId::System).await.unwrap();
    [Account::BankSettlement, Account::Suspense].map(|one| house.get(&one).map_or(0, |balance| balance.net()))
}

#[tokio::test]
async fn an_acquirer_that_closes_ids_conforms() {
    let acquirer = Acquirer::new();
    acquirer.arrivals.add_permits(100);
    let terms = Terms {
        amount: AMOUNT,
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        commission: Commission::default(),
        settlement_days: 30,
        initial_fee: None,
    };
    let open = OpenCharge {
        terms,
        attention_at: Timestamp(0),
        card: Some(FACE),
        opened: 1,
        rail: None,
        registers_until: None,
        authorized: None,
        tried_at: None,
    };
    rails::card(&acquirer, call, &open, [ObjectId(1), ObjectId(2)]).await;
}
