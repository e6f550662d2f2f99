//! PIX at a named institution that fails in every way: a charge is registered once, a payment is
//! booked once, and money that no charge waits for goes back, whatever is lost on the way.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actors::engine::{
    AdmissionLimits, CommandContext, Engine, EngineOptions, IndexOptions, NewPixCharge, Outcome, PixEnded, PixOpened,
    PixPayment, Unavailable, WaitingKind,
};
use actors::metrics::Metrics;
use actors::rails::{
    Call, CaseAnswer, CaseStage, NamedRails, OpenPix, PixFate, PixOpening, PixRail, PixReceipt, PixReceipts, PixSpan,
    RailCase, RailCases, RailError, Rails, Repay, RepayAnswer,
};
use actors::verify::verify;
use ledger::fees::Settings;
use ledger::merchant::RecipientStatus;
use ledger::rail_word::RailWord;
use ledger::{
    Account, Centavos, Charge, ChargeOutcome, Dispute, Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand,
    MerchantProfile, MerchantState, Object, ObjectId, Payer, RailName, RailStamp, Record, Rejection, Requester,
    SealedFor, Timestamp,
};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use store::Store;
use store::testkit::MemoryStore;

/// The institution's records: they survive the process that calls it.
#[derive(Default)]
struct Book {
    /// What it will say instead, one a call.
    will_say: VecDeque<RailError>,
    refuses: bool,
    registered: BTreeMap<ObjectId, Centavos>,
    cancelled: Vec<ObjectId>,
    payments: Vec<PixReceipt>,
    /// Returns by our id: the payment, and how much.
    returned: BTreeMap<ObjectId, (String, Centavos)>,
    /// It will not send money back.
    refuses_repayments: bool,
    /// Repayments are under way so many times before they are done.
    under_way: u32,
    looks: u32,
    /// So many orders are lost on their way; it is asked for them, and has none.
    loses: u32,
    /// Orders to send money back do not arrive: it has nothing of them.
    is_far: bool,
    on_its_way: BTreeMap<ObjectId, (String, Centavos)>,
    /// The orders that were sent, by id.
    sent: Vec<ObjectId>,
    /// The Records, which are durable before an order is sent again.
    journal: Option<MemoryStore>,
    /// It never answers a question for its list of payments.
    hangs: bool,
    cases: Vec<RailCase>,
    /// It never says that it has this answer to a case.
    hangs_at: &'static str,
    /// Every page of its list is the first one, and has another one behind it.
    repeats_pages: bool,
}

impl Book {
    /// An order that is sent: each but the first is a Record before. Error: it is lost.
    fn is_sent(&mut self, id: ObjectId) -> Result<(), RailError> {
        let sent = self.sent.iter().filter(|sent| **sent == id).count();
        if let Some(journal) = &self.journal {
            let part = journal.part();
            let blocks = part.blocks(store::Sequence::FIRST).map(Result::unwrap);
            let records: Vec<_> = blocks.flat_map(|block| block.records).collect();
            let events = records.iter().flat_map(|bytes| Record::decode(bytes).unwrap().events);
            let is_try = |event: &Event| matches!(event, Event::RailTried { id: of, .. } if *of == id);
            let tries = events.filter(is_try).count();
            assert!(sent <= tries, "{id:?} is sent again before that is a Record");
        }
        self.sent.push(id);
        if self.is_far {
            return Err(RailError::NoAnswer);
        }
        self.loses.checked_sub(1).map_or(Ok(()), |left| {
            self.loses = left;
            Err(RailError::HasNone)
        })
    }
}

#[derive(Clone, Default)]
struct Institution(Arc<Mutex<Book>>);

impl Institution {
    fn answer<T: Send + 'static>(&self, work: impl FnOnce(&mut Book) -> T) -> Call<'static, T> {
        self.answer_order(|book| Ok(work(book)))
    }

    fn answer_order<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Book) -> Result<T, RailError>,
    ) -> Call<'static, T> {
        let mut book = self.0.lock();
        let answer = match book.will_say.pop_front() {
            // What never reached it did nothing; a lost answer did.
            Some(RailError::NoAnswer) => {
                drop(work(&mut book));
                Err(RailError::NoAnswer)
            }
            Some(error) => Err(error),
            None => work(&mut book),
        };
        Box::pin(std::future::ready(answer))
    }

    fn pays(&self, txid: Option<&str>, amount: i64, number: u64, paid_at: Timestamp) -> String {
        let end_to_end_id = format!("E00000000202611281200{number:011}");
        let receipt = PixReceipt {
            end_to_end_id: end_to_end_id.clone(),
            txid: txid.map(str::to_owned),
            amount: Centavos(amount),
            paid_at,
        };
        self.0.lock().payments.push(receipt);
        end_to_end_id
    }
}

impl PixRail for Institution {
    fn location(&self, _: ObjectId) -> Option<String> {
        None
    }

    fn open(&self, call: OpenPix) -> Call<'_, PixOpening> {
        self.answer_order(move |book| {
            if !call.is_repeat {
                book.is_sent(call.charge)?;
                if book.refuses {
                    return Ok(PixOpening::Refused { reason: "chave inválida".to_owned() });
                }
                book.registered.insert(call.charge, call.amount);
            }
            let _has_it = book.registered.get(&call.charge).ok_or(RailError::HasNone)?;
            Ok(PixOpening::Registered { code: format!("code of {}", call.charge.txid()) })
        })
    }

    fn received(&self, span: PixSpan) -> Call<'_, PixReceipts> {
        if self.0.lock().hangs {
            return Box::pin(std::future::pending());
        }
        self.answer(move |book| {
            book.looks += 1;
            let of_span = |paid: &&PixReceipt| span.from <= paid.paid_at && paid.paid_at <= span.until;
            let all: Vec<_> = book.payments.iter().filter(of_span).cloned().collect();
            assert!(span.page < 1_000, "it is asked for its next page for ever");
            // Pages of two.
            let page = if book.repeats_pages { 0 } else { usize::try_from(span.page).unwrap() };
            let payments = all.chunks(2).nth(page).unwrap_or_default().to_vec();
            PixReceipts { payments, has_more: (book.repeats_pages && !all.is_empty()) || all.len() > 2 * (page + 1) }
        })
    }

    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate> {
        self.answer(move |book| {
            let txid = charge.txid();
            match book.payments.iter().find(|paid| paid.txid.as_deref() == Some(txid.as_str())) {
                Some(paid) => PixFate::Paid(paid.clone()),
                None => {
                    book.cancelled.push(charge);
                    PixFate::Cancelled
                }
            }
        })
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        self.answer_order(move |book| {
            if !call.is_repeat {
                if book.is_far {
                    book.on_its_way.insert(call.id, (call.payment.clone(), call.amount));
                }
                book.is_sent(call.id)?;
                if book.refuses_repayments {
                    return Ok(RepayAnswer::Refused { reason: "conta encerrada".to_owned() });
                }
                book.returned.insert(call.id, (call.payment, call.amount));
            }
            let _has_it = book.returned.get(&call.id).ok_or(RailError::HasNone)?;
            if book.under_way > 0 {
                book.under_way -= 1;
                return Ok(RepayAnswer::UnderWay);
            }
            Ok(RepayAnswer::Repaid(RailStamp::new(format!("D{}", call.id.txid()), call.decided_at)))
        })
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        self.answer(|_| RailStamp::new("D".to_owned(), Timestamp(0)))
    }

    fn cases(&self, _: PixSpan) -> Call<'_, RailCases> {
        self.answer(|book| RailCases { cases: book.cases.clone(), has_more: false })
    }

    fn cases_every(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn answer_case(&self, answer: CaseAnswer) -> Call<'_, ()> {
        if self.0.lock().hangs_at == answer.id {
            return Box::pin(std::future::pending());
        }
        self.answer(|_| ())
    }
}

fn name(text: &str) -> RailName {
    RailName::parse(text).unwrap()
}

fn rails(institution: &Institution, text: &str) -> Rails {
    let rail: Arc<dyn PixRail> = Arc::new(institution.clone());
    Rails { pix: NamedRails::named(BTreeMap::from([(name(text), rail)]), Some(name(text))), ..Rails::default() }
}

async fn open(store: &MemoryStore, rails: Rails) -> Arc<Engine> {
    open_engine(store, rails, true, Arc::default()).await
}

/// An engine on a clock that can be moved, or a live one.
async fn open_engine(store: &MemoryStore, rails: Rails, sandbox: bool, metrics: Arc<Metrics>) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 1_000,
        rails,
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: NonZeroU16::MIN,
        start_gap_max: Duration::from_secs(7 * 86_400),
        metrics,
    };
    Engine::open_store(Arc::new(store.clone()) as Arc<dyn Store>, options, |_, _| {}).await.unwrap()
}

async fn open_shop(engine: &Engine) -> GroupNumber {
    let (group, now) = (engine.new_group(None), engine.now());
    let mut settings = Settings { split_enabled: true, ..Settings::default() };
    settings.fees.pix = ledger::money::Rate::basis_points(0);
    let profile = engine.keyring().seal_value(SealedFor::merchant(group), now, &MerchantProfile::default()).unwrap();
    let id = engine.ids().object(group, now, 1);
    let outcome =
        engine.command(group, MerchantCommand::Open { id, settings, profile }, engine.permit(1_024).unwrap()).await;
    assert!(matches!(outcome.unwrap(), Outcome::Recorded(_)));
    group
}

fn context(engine: &Engine) -> CommandContext {
    CommandContext { key: None, requester: None, permit: engine.permit(1_024).unwrap() }
}

async fn open_charge(engine: &Engine, group: GroupNumber) -> PixOpened {
    open_charge_for(engine, group, 3_600).await
}

async fn open_charge_for(engine: &Engine, group: GroupNumber, expires_in_seconds: i64) -> PixOpened {
    let payer = Payer { name: "Maria".to_owned(), ..Payer::default() };
    let wanted =
        NewPixCharge { amount: Centavos(8_000), splits: Vec::new(), payer, expires_in_seconds, reference: None };
    match engine.open_pix(group, wanted, context(engine)).await.unwrap() {
        Outcome::Recorded(opened) => opened,
        other => panic!("{other:?}"),
    }
}

async fn registered(engine: &Engine, group: GroupNumber) -> ObjectId {
    let opened = open_charge(engine, group).await;
    let registration = engine.register_pix(group, &opened).await.unwrap();
    let code = format!("code of {}", opened.charge.txid());
    assert_eq!(registration, PixOpening::Registered { code: code.clone() });
    assert_eq!(charge(engine, opened.charge).code, Some(code));
    opened.charge
}

fn charge(engine: &Engine, id: ObjectId) -> Charge {
    engine.object(id).unwrap().unwrap()
}

fn records(engine: &Engine, id: ObjectId) -> Vec<Record> {
    engine.history(id).unwrap().map(|record| record.unwrap().1).collect()
}

/// Names of the facts about a charge.
fn facts(engine: &Engine, id: ObjectId) -> Vec<&'static str> {
    records(engine, id).iter().flat_map(|record| record.events.iter().map(Event::name)).collect()
}

/// The merchant's available money, what is owed to payers, what is in suspense, what is at the
/// bank.
async fn money(engine: &Engine, group: GroupNumber) -> [i64; 4] {
    let available = engine.read_merchant(group, |books, _| books.available().0).await.unwrap();
    let of = |ledger, account| {
        let balances = engine.published_accounts(ledger);
        balances.get(&account).map_or(0, |balance| balance.net() as i64)
    };
    let platform = LedgerId::Platform(group);
    let bank = of(platform, Account::BankPix) + of(LedgerId::System, Account::BankPix);
    [available, of(platform, Account::PayersRefunds), of(LedgerId::System, Account::Suspense), bank]
}

/// Waits until what is wanted is so, ringing the bell.
async fn until(engine: &Engine, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..200 {
        engine.ring(&name("itau"));
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}");
}

/// Runs the intake beside what a test does.
fn take_in(engine: &Arc<Engine>) -> tokio::task::JoinHandle<()> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move { engine.run_pix_intake().await })
}

#[tokio::test]
async fn a_charge_is_registered_before_it_has_a_code() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let opened = open_charge(&engine, group).await;
    assert_eq!(opened.registers.as_ref().unwrap().0, name("itau"));
    let is_unknown = |error: Unavailable| matches!(error, Unavailable::OutcomeUnknown);
    let is_unsent = |error: Unavailable| matches!(error, Unavailable::RailUnavailable);
    institution.0.lock().will_say = VecDeque::from([RailError::NotSent, RailError::NoAnswer]);
    assert!(is_unsent(engine.register_pix(group, &opened).await.unwrap_err()));
    assert!(is_unknown(engine.register_pix(group, &opened).await.unwrap_err()));
    assert_eq!((charge(&engine, opened.charge).code, facts(&engine, opened.charge).len()), (None, 1));
    let again = PixOpened { is_new: false, ..opened.clone() };
    for _ in 0..2 {
        let registration = engine.register_pix(group, &again).await.unwrap();
        assert_eq!(registration, PixOpening::Registered { code: format!("code of {}", opened.charge.txid()) });
    }
    assert_eq!(facts(&engine, opened.charge), ["charge_opened", "pix_registered"]);
    assert_eq!(institution.0.lock().sent, [opened.charge], "asked for, and not sent again");
    // A charge that the institution refuses ends.
    institution.0.lock().refuses = true;
    let refused = open_charge(&engine, group).await;
    let registration = engine.register_pix(group, &refused).await.unwrap();
    assert_eq!(registration, PixOpening::Refused { reason: "chave inválida".to_owned() });
    assert_eq!(charge(&engine, refused.charge).outcome, ChargeOutcome::Cancelled);
    assert_eq!(engine.register_pix(group, &refused).await.unwrap(), PixOpening::Ended);
    engine.stop().await;
}

async fn advance(engine: &Engine, seconds: u64) {
    engine.advance_clock(Duration::from_secs(seconds), engine.permit(0).unwrap()).await.unwrap();
}

#[tokio::test]
async fn what_its_caller_left_is_registered_later_and_ends_in_its_time() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let [left, registered_charge] = [open_charge(&engine, group).await.charge, registered(&engine, group).await];
    advance(&engine, 29).await;
    assert_eq!(charge(&engine, left).code, None);
    institution.0.lock().will_say = VecDeque::from([RailError::NoAnswer]);
    advance(&engine, 2).await;
    advance(&engine, 6).await;
    assert_eq!(charge(&engine, left).code, Some(format!("code of {}", left.txid())));
    assert_eq!(facts(&engine, left), ["charge_opened", "rail_tried", "pix_registered"]);
    engine.stop().await;
    let engine = open(&store, rails(&institution, "itau")).await;
    advance(&engine, 3_550).await;
    assert_eq!(institution.0.lock().cancelled, []);
    advance(&engine, 60).await;
    assert_eq!(institution.0.lock().cancelled.len(), 2);
    for ended in [left, registered_charge] {
        assert_eq!(charge(&engine, ended).outcome, ChargeOutcome::Cancelled);
    }
    engine.stop().await;
}

#[tokio::test]
async fn a_listed_payment_is_booked_once() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let mut charges = Vec::new();
    for _ in 0..5 {
        charges.push(registered(&engine, group).await);
    }
    let intake = take_in(&engine);
    for (number, charge) in (0..).zip(&charges) {
        institution.pays(Some(&charge.txid()), 8_000, number, engine.now());
    }
    // An institution that is silent for a while loses nothing.
    institution.0.lock().will_say = VecDeque::from([RailError::NotSent, RailError::NoAnswer]);
    until(&engine, "five payments are booked", async || money(&engine, group).await == [40_000, 0, 0, 40_000]).await;
    intake.abort();
    engine.stop().await;
    // The next process reads the list again.
    let engine = open(&store, rails(&institution, "itau")).await;
    let intake = take_in(&engine);
    let looks = institution.0.lock().looks;
    until(&engine, "it looks", async || institution.0.lock().looks > looks + 1).await;
    assert_eq!(money(&engine, group).await, [40_000, 0, 0, 40_000]);
    for charge in &charges {
        assert_eq!(facts(&engine, *charge), ["charge_opened", "pix_registered", "pix_paid"]);
    }
    let paid = &records(&engine, charges[0])[2];
    let payment = institution.0.lock().payments[0].clone();
    assert_eq!(paid.rail, Some(RailStamp::new(payment.end_to_end_id, payment.paid_at)));
    intake.abort();
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

/// An institution that passes over the number of a page is no list without end: what it has is
/// booked, and what is paid later too.
#[tokio::test]
async fn a_page_that_comes_again_ends_a_look() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    institution.0.lock().repeats_pages = true;
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let charges = [registered(&engine, group).await, registered(&engine, group).await];
    institution.pays(Some(&charges[0].txid()), 8_000, 1, engine.now());
    let intake = take_in(&engine);
    until(&engine, "the first is paid", async || money(&engine, group).await[0] == 8_000).await;
    institution.pays(Some(&charges[1].txid()), 8_000, 2, engine.now());
    until(&engine, "the second is paid", async || money(&engine, group).await[0] == 16_000).await;
    intake.abort();
    engine.stop().await;
}

#[tokio::test]
async fn a_payment_that_no_charge_waits_for_goes_back() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let [paid, other_amount, cancelled] =
        [registered(&engine, group).await, registered(&engine, group).await, registered(&engine, group).await];
    let ended = engine.cancel_pix(group, cancelled, context(&engine)).await.unwrap();
    assert!(matches!(ended, Outcome::Recorded(PixEnded::Cancelled)));
    assert_eq!(institution.0.lock().cancelled, [cancelled]);
    let now = engine.now();
    institution.0.lock().under_way = 2;
    institution.pays(Some(&paid.txid()), 8_000, 1, now);
    let second = institution.pays(Some(&paid.txid()), 8_000, 2, now);
    let less = institution.pays(Some(&other_amount.txid()), 7_999, 3, now);
    let late = institution.pays(Some(&cancelled.txid()), 8_000, 4, now);
    let intake = take_in(&engine);
    until(&engine, "all are booked", async || institution.0.lock().returned.len() == 3).await;
    until(&engine, "all are sent back", async || {
        advance(&engine, 10).await;
        money(&engine, group).await == [8_000, 0, 0, 8_000]
    })
    .await;
    let returned: Vec<_> = institution.0.lock().returned.values().cloned().collect();
    for wanted in [(second, Centavos(8_000)), (less, Centavos(7_999)), (late, Centavos(8_000))] {
        assert_eq!(returned.iter().filter(|one| **one == wanted).count(), 1, "{returned:?}");
    }
    assert_eq!(charge(&engine, other_amount).outcome, ChargeOutcome::Pending, "it can still be paid");
    assert_eq!(
        facts(&engine, paid),
        ["charge_opened", "pix_registered", "pix_paid", "late_pix_received", "payer_repaid"]
    );
    // Heard of again, by the list and by the question at the end of a code.
    let payment = institution.0.lock().payments[1].clone();
    let again = engine.receive_pix(group, paid, payment, context(&engine)).await.unwrap();
    assert!(matches!(again, Outcome::Recorded(PixPayment::Unordered(_))));
    assert_eq!(facts(&engine, paid).len(), 5);
    intake.abort();
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

/// A charge and a return whose first orders are lost: each is sent again in the same call, or by
/// the schedule, and its Record is there before. One that is under way is only asked for.
#[tokio::test]
async fn what_is_sent_again_is_a_record_first() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    institution.0.lock().journal = Some(store.clone());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    institution.0.lock().loses = 1;
    let first = registered(&engine, group).await;
    assert_eq!(facts(&engine, first), ["charge_opened", "rail_tried", "pix_registered"]);
    institution.0.lock().loses = 2;
    let lost = open_charge(&engine, group).await;
    assert!(matches!(engine.register_pix(group, &lost).await, Err(Unavailable::OutcomeUnknown)), "sent twice at most");
    advance(&engine, 31).await;
    let attempts = |id| {
        let events = records(&engine, id).into_iter().flat_map(|record| record.events);
        let attempts = events.filter_map(|event| match event {
            Event::RailTried { id: of, attempt } if of == id => Some(attempt),
            _ => None,
        });
        attempts.collect::<Vec<_>>()
    };
    assert_eq!(attempts(lost.charge), [2, 3]);
    assert!(charge(&engine, lost.charge).code.is_some());
    // A second payment goes back: its order is lost twice, and is then under way.
    let now = engine.now();
    (institution.0.lock().loses, institution.0.lock().under_way) = (2, 3);
    institution.pays(Some(&first.txid()), 8_000, 1, now);
    institution.pays(Some(&first.txid()), 8_000, 2, now);
    let intake = take_in(&engine);
    until(&engine, "it is sent back", async || {
        advance(&engine, 10).await;
        let is_returned = !institution.0.lock().returned.is_empty();
        is_returned && money(&engine, group).await == [8_000, 0, 0, 8_000]
    })
    .await;
    let returned = *institution.0.lock().returned.keys().next().unwrap();
    assert_eq!(attempts(returned), [2, 3]);
    assert_eq!(institution.0.lock().sent.iter().filter(|sent| **sent == returned).count(), 3);
    intake.abort();
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

#[tokio::test]
async fn money_that_cannot_go_back_stays_owed_and_is_an_operators() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let paid = registered(&engine, group).await;
    let now = engine.now();
    institution.0.lock().refuses_repayments = true;
    institution.pays(Some(&paid.txid()), 8_000, 1, now);
    institution.pays(Some(&paid.txid()), 8_000, 2, now);
    let intake = take_in(&engine);
    let waits = || engine.queue(|item| matches!(item.what, WaitingKind::Rail { .. }), |_| (), 10).items;
    until(&engine, "it is an operator's", async || waits().len() == 1).await;
    let item = waits().remove(0);
    assert_eq!(item.what, WaitingKind::Rail { charge: paid, amount: Centavos(8_000) });
    // Of the 16,000 at the bank, 8,000 are the payer's; the rail is not asked again.
    assert_eq!(money(&engine, group).await[3], 16_000);
    institution.0.lock().refuses_repayments = false;
    advance(&engine, 7_200).await;
    assert!(institution.0.lock().returned.is_empty());
    for operator in ["ana", "bia"] {
        let said = say(&engine, item.id, operator, true).await;
        assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    }
    assert_eq!((waits().len(), money(&engine, group).await), (0, [8_000, 0, 0, 8_000]));
    intake.abort();
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

/// The word of an operator.
async fn say(engine: &Engine, id: ObjectId, operator: &str, happened: bool) -> Outcome {
    let context = CommandContext { requester: Some(Requester::Operator(operator.to_owned())), ..context(engine) };
    let word = RailWord { happened, reference: "P-118".to_owned() };
    engine.say_rail_word(id, word, "o banco confirmou".to_owned(), context).await.unwrap()
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(Rejection::OutcomeNotUnknown))
}

/// A charge was paid twice, an hour ago. The second payment is sent back: its order is the second
/// of `sent`.
async fn paid_twice(is_so: impl FnOnce(&mut Book)) -> (MemoryStore, Institution, Arc<Engine>, GroupNumber) {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let paid = registered(&engine, group).await;
    is_so(&mut institution.0.lock());
    let now = engine.now();
    institution.pays(Some(&paid.txid()), 8_000, 1, now);
    institution.pays(Some(&paid.txid()), 8_000, 2, now);
    let intake = take_in(&engine);
    until(&engine, "it is sent back", async || institution.0.lock().sent.len() == 2).await;
    intake.abort();
    advance(&engine, 3_700).await;
    (store, institution, engine, group)
}

/// The institution has nothing of an order that is on its way to it. From the first word on nothing
/// more is sent, and the second one ends the order an hour after the last sending: money that
/// arrives until then is not kept as the payer's too.
#[tokio::test]
async fn an_order_that_is_on_its_way_is_not_ended_by_operators() {
    for arrives in [true, false] {
        let (store, institution, engine, group) = paid_twice(|book| book.is_far = true).await;
        let sent = institution.0.lock().sent.clone();
        let id = sent[1];
        assert!(sent.len() > 3, "it is sent again and again: {sent:?}");
        let said = say(&engine, id, "ana", false).await;
        assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
        let early = say(&engine, id, "bia", false).await;
        assert!(is_refused(&early), "{early:?}");
        if arrives {
            let mut book = institution.0.lock();
            let mut arrived = std::mem::take(&mut book.on_its_way);
            book.returned.append(&mut arrived);
        }
        advance(&engine, 3_600).await;
        let said = say(&engine, id, "bia", false).await;
        assert_eq!(is_refused(&said), arrives, "{said:?}");
        assert_eq!(institution.0.lock().sent, sent, "nothing is sent while operators end it");
        let end = if arrives { "payer_repaid" } else { "payer_not_repaid" };
        assert!(facts(&engine, id).contains(&end), "{:?}", facts(&engine, id));
        let at_bank = if arrives { 8_000 } else { 16_000 };
        assert_eq!(money(&engine, group).await[3], at_bank);
        verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
        engine.stop().await;
    }
}

/// What the institution has under way may still end as it was ordered: operators may say that it
/// happened, and not that it did not.
#[tokio::test]
async fn a_repayment_that_is_under_way_is_not_ended_as_not_carried_out() {
    let (store, institution, engine, _) = paid_twice(|book| book.under_way = u32::MAX).await;
    let id = institution.0.lock().sent[1];
    let said = say(&engine, id, "ana", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    let said = say(&engine, id, "bia", false).await;
    assert!(is_refused(&said), "{said:?}");
    assert!(!facts(&engine, id).contains(&"payer_not_repaid"), "{:?}", facts(&engine, id));
    for operator in ["bia", "ana"] {
        let said = say(&engine, id, operator, true).await;
        assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    }
    assert!(facts(&engine, id).contains(&"payer_repaid"), "{:?}", facts(&engine, id));
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

/// A first word that nobody confirms holds nothing back for ever: after a day the order is sent
/// again.
#[tokio::test]
async fn a_first_word_that_nobody_confirms_lapses() {
    let (store, institution, engine, _) = paid_twice(|book| book.is_far = true).await;
    let sent = institution.0.lock().sent.clone();
    let id = sent[1];
    let said = say(&engine, id, "ana", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    advance(&engine, 23 * 3_600).await;
    assert_eq!(institution.0.lock().sent, sent, "nothing is sent while the word waits");
    advance(&engine, 2 * 3_600).await;
    assert!(institution.0.lock().sent.len() > sent.len(), "it is sent again");
    let said = say(&engine, id, "bia", false).await;
    assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
    let words = ["rail_word_asked", "rail_word_given"];
    let words = words.map(|word| facts(&engine, id).iter().filter(|fact| **fact == word).count());
    assert_eq!(words, [2, 0], "it is a first word again");
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

/// A charge without a code is asked for before the second word, and not registered.
#[tokio::test]
async fn a_charge_without_a_code_is_asked_for_before_the_second_word() {
    for has_it in [true, false] {
        let (store, institution) = (MemoryStore::new(), Institution::default());
        let engine = open(&store, rails(&institution, "itau")).await;
        let group = open_shop(&engine).await;
        let opened = open_charge_for(&engine, group, 7_200).await;
        institution.0.lock().will_say = VecDeque::from([RailError::NoAnswer; 1_000]);
        if has_it {
            assert!(engine.register_pix(group, &opened).await.is_err(), "its answer is lost");
        }
        advance(&engine, 3_700).await;
        let said = say(&engine, opened.charge, "ana", false).await;
        assert!(matches!(said, Outcome::Recorded(_)), "{said:?}");
        institution.0.lock().will_say.clear();
        let said = say(&engine, opened.charge, "bia", false).await;
        assert_eq!(is_refused(&said), has_it, "{said:?}");
        let end = if has_it { ChargeOutcome::Pending } else { ChargeOutcome::Cancelled };
        let known = charge(&engine, opened.charge);
        assert_eq!((known.code.is_some(), known.outcome), (has_it, end));
        assert_eq!(institution.0.lock().sent.len(), usize::from(has_it), "it is not registered");
        verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
        engine.stop().await;
    }
}

#[tokio::test]
async fn a_payment_without_a_charge_is_in_suspense() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let old = engine.now().plus_ms(-180_000);
    institution.pays(None, 1_234, 1, old);
    institution.pays(Some("someonesowntxid00000000000"), 1_000, 2, old);
    // A charge of ours that it cannot know.
    institution.pays(Some(&engine.ids().object(group, old, 99).txid()), 66, 3, old);
    institution.pays(None, 700, 4, engine.now());
    let intake = take_in(&engine);
    until(&engine, "the old ones are in suspense", async || money(&engine, group).await == [0, 0, -2_300, 2_300]).await;
    let looks = institution.0.lock().looks;
    until(&engine, "it looks", async || institution.0.lock().looks > looks + 2).await;
    assert_eq!(money(&engine, group).await, [0, 0, -2_300, 2_300], "a young one waits for its charge");
    intake.abort();
    engine.stop().await;
    let engine = open(&store, rails(&institution, "itau")).await;
    let intake = take_in(&engine);
    advance(&engine, 300).await;
    until(&engine, "all are in suspense", async || money(&engine, group).await == [0, 0, -3_000, 3_000]).await;
    intake.abort();
    verify(&[store.part()], Some(engine.keyring()), &mut |_| {}).unwrap();
    engine.stop().await;
}

async fn wait_until(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("waited for a minute");
}

/// An institution that is asked and never answers, and counts whose patience ended.
#[derive(Default)]
struct Silence {
    inquiries: AtomicUsize,
    given_up: AtomicUsize,
}

struct GivenUp<'a>(&'a AtomicUsize);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl PixRail for Silence {
    fn location(&self, _: ObjectId) -> Option<String> {
        None
    }

    fn cancel(&self, _: ObjectId) -> Call<'_, PixFate> {
        self.inquiries.fetch_add(1, Ordering::SeqCst);
        let given_up = GivenUp(&self.given_up);
        Box::pin(async move {
            let _until_dropped = given_up;
            std::future::pending().await
        })
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(std::future::pending())
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::pending())
    }
}

/// Opens a live engine, and one more try of what a silent institution may not hold up: false when
/// the engine gave up on a call of it before `is_done`. A machine that stands still for ten seconds
/// is no fault: it may do so once or twice.
async fn is_not_held_up(try_once: impl AsyncFn(&MemoryStore, &Arc<Silence>) -> Arc<Engine>) {
    for _ in 0..3 {
        let (store, silence) = (MemoryStore::new(), Arc::new(Silence::default()));
        let engine = try_once(&store, &silence).await;
        let was_held_up = silence.given_up.load(Ordering::SeqCst) > 0;
        engine.stop().await;
        if !was_held_up {
            return;
        }
    }
    panic!("it waited until the engine gave up on a call");
}

fn run_schedule(engine: &Arc<Engine>) -> tokio::task::JoinHandle<()> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move { engine.run_schedule().await })
}

/// Drafts are submitted by the same sweep that finds codes which have expired.
#[tokio::test]
async fn nothing_that_falls_due_waits_for_a_silent_institution() {
    is_not_held_up(async |store, silence| {
        let rail: Arc<dyn PixRail> = Arc::clone(silence) as Arc<dyn PixRail>;
        let pix = NamedRails::named(BTreeMap::from([(name("itau"), rail)]), Some(name("itau")));
        let engine = open_engine(store, Rails { pix, ..Rails::default() }, false, Arc::default()).await;
        for _ in 0..3 {
            let group = open_shop(&engine).await;
            open_charge_for(&engine, group, 1).await;
        }
        let schedule = run_schedule(&engine);
        wait_until(async || silence.inquiries.load(Ordering::SeqCst) >= 3).await;
        let group = open_shop(&engine).await;
        let profile = engine.keyring().seal_value(SealedFor::merchant(group), engine.now(), &0_u8).unwrap();
        let draft = MerchantCommand::RegisterRecipient { random: 1, document: Fingerprint([1; 16]), profile };
        let outcome = engine.command(group, draft, engine.permit(1_024).unwrap()).await.unwrap();
        assert!(matches!(outcome, Outcome::Recorded(_)), "{outcome:?}");
        wait_until(async || {
            let status = |books: &MerchantState, _| books.recipients()[0].status;
            engine.read_merchant(group, status).await.unwrap() == RecipientStatus::Pending
        })
        .await;
        schedule.abort();
        engine
    })
    .await;
}

/// Both institutions have charges of one merchant; those of the silent one are older, and more than
/// are asked about at once.
#[tokio::test]
async fn a_silent_institution_holds_up_no_charge_of_another() {
    is_not_held_up(async |store, silence| {
        let (rail, other): (Arc<dyn PixRail>, _) = (Arc::clone(silence) as _, Arc::new(Institution::default()));
        let all = BTreeMap::from([(name("itau"), rail), (name("efi"), other as Arc<dyn PixRail>)]);
        let live = |current| Rails { pix: NamedRails::named(all.clone(), Some(name(current))), ..Rails::default() };
        let engine = open_engine(store, live("itau"), false, Arc::default()).await;
        let group = open_shop(&engine).await;
        for _ in 0..70 {
            open_charge_for(&engine, group, 1).await;
        }
        engine.stop().await;
        let engine = open_engine(store, live("efi"), false, Arc::default()).await;
        let schedule = run_schedule(&engine);
        wait_until(async || silence.inquiries.load(Ordering::SeqCst) >= 64).await;
        let opened = open_charge_for(&engine, group, 1).await;
        wait_until(async || charge(&engine, opened.charge).outcome == ChargeOutcome::Cancelled).await;
        schedule.abort();
        engine
    })
    .await;
}

/// An engine, and the registry of what it measures.
async fn open_measured(store: &MemoryStore, rails: Rails) -> (Arc<Engine>, Registry) {
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry, false));
    (open_engine(store, rails, true, metrics).await, registry)
}

fn text_of(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

/// The list of one institution hangs: payments at another one are booked.
#[tokio::test]
async fn a_list_that_hangs_holds_up_no_other_institution() {
    let (store, hung, other) = (MemoryStore::new(), Institution::default(), Institution::default());
    hung.0.lock().hangs = true;
    let named = |institution: &Institution| Arc::new(institution.clone()) as Arc<dyn PixRail>;
    let all = BTreeMap::from([(name("itau"), named(&hung)), (name("efi"), named(&other))]);
    let pix = NamedRails::named(all, Some(name("efi")));
    let (engine, registry) = open_measured(&store, Rails { pix, ..Rails::default() }).await;
    let group = open_shop(&engine).await;
    let paid = registered(&engine, group).await;
    other.pays(Some(&paid.txid()), 8_000, 1, engine.now());
    let intake = take_in(&engine);
    until(&engine, "it is booked", async || money(&engine, group).await == [8_000, 0, 0, 8_000]).await;
    // An alert finds that the list of the other one was not read since the start.
    let read_at = "centavo_pix_read_timestamp_seconds{rail=\"itau\"} ";
    until(&engine, "its reading has a time", async || text_of(&registry).contains(read_at)).await;
    intake.abort();
    engine.stop().await;
}

/// The answer to one case hangs: the others of the same page are booked.
#[tokio::test]
async fn an_answer_that_hangs_holds_up_no_other_case() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    let group = open_shop(&engine).await;
    let charges = [registered(&engine, group).await, registered(&engine, group).await];
    for (number, charge) in (0..).zip(charges) {
        institution.pays(Some(&charge.txid()), 8_000, number, engine.now());
    }
    let intake = take_in(&engine);
    until(&engine, "both are paid", async || money(&engine, group).await[0] == 16_000).await;
    let cases = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.run_rail_cases().await })
    };
    let case = |id: &str, charge| RailCase {
        id: id.to_owned(),
        charge,
        amount: Centavos(8_000),
        reason: "golpe".to_owned(),
        due_at: None,
        stage: CaseStage::Open,
        is_debit_alone: false,
    };
    institution.0.lock().cases = vec![case("MED-1", charges[0])];
    let dispute_of = |charge| records(&engine, charge).iter().find_map(Dispute::made_by);
    until(&engine, "the first is opened", async || dispute_of(charges[0]).is_some()).await;
    // It is decided, and its answer hangs, when both are listed: a look at the first one alone
    // would wait for that answer to the end.
    institution.0.lock().cases.clear();
    institution.0.lock().hangs_at = "MED-1";
    let facts = Box::new(engine.charge_facts(charges[0]).unwrap().unwrap());
    let release = MerchantCommand::ReleaseDispute { id: dispute_of(charges[0]).unwrap().id, facts, notes: None };
    let released = engine.command(group, release, engine.permit(1_024).unwrap()).await.unwrap();
    assert!(matches!(released, Outcome::Recorded(_)), "{released:?}");
    institution.0.lock().cases = vec![case("MED-1", charges[0]), case("MED-2", charges[1])];
    until(&engine, "the second is opened", async || dispute_of(charges[1]).is_some()).await;
    cases.abort();
    intake.abort();
    engine.stop().await;
}

#[tokio::test]
async fn each_rail_has_the_age_of_its_oldest_unknown_order() {
    let (store, silent, other) = (MemoryStore::new(), Institution::default(), Institution::default());
    let named = |institution: &Institution| Arc::new(institution.clone()) as Arc<dyn PixRail>;
    let all = || BTreeMap::from([(name("itau"), named(&silent)), (name("efi"), named(&other))]);
    let live = |current| Rails { pix: NamedRails::named(all(), Some(name(current))), ..Rails::default() };
    let (engine, registry) = open_measured(&store, live("itau")).await;
    silent.0.lock().will_say = VecDeque::from([RailError::NoAnswer; 1_000]);
    // Of two merchants; one that nobody has registered is asked for half a minute later.
    for seconds in [100, 500] {
        let group = open_shop(&engine).await;
        open_charge(&engine, group).await;
        advance(&engine, seconds).await;
    }
    let text = text_of(&registry);
    let age = |rail: &str| {
        let label = format!("centavo_rail_oldest_unknown_seconds{{rail=\"{rail}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&label)).map(|age| age.parse::<i64>().unwrap())
    };
    assert!(age("itau").is_some_and(|age| (550..600).contains(&age)), "{text}");
    assert_eq!(age("efi"), Some(0));
    engine.stop().await;
}

#[tokio::test]
async fn an_institution_that_charges_name_is_needed() {
    let (store, institution) = (MemoryStore::new(), Institution::default());
    let engine = open(&store, rails(&institution, "itau")).await;
    assert_eq!(engine.missing_rails().unwrap(), []);
    engine.stop().await;
    let engine = open(&store, rails(&institution, "efi")).await;
    assert_eq!(engine.missing_rails().unwrap(), [name("itau")]);
    engine.stop().await;
    let engine = open(&store, rails(&institution, "itau")).await;
    assert_eq!(engine.missing_rails().unwrap(), [], "the refused start has noted nothing");
    engine.stop().await;
    let engine = open(&store, rails(&institution, "efi")).await;
    assert_eq!(engine.missing_rails().unwrap(), [name("itau")]);
    advance(&engine, 121 * 86_400).await;
    assert_eq!(engine.missing_rails().unwrap(), []);
    assert!(!engine.ring(&name("itau")) && engine.ring(&name("efi")));
    engine.stop().await;
}
