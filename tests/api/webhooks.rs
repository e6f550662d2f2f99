//! Webhooks (interface section 6): choice of endpoints, order, signatures, and endpoints that do
//! not listen.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::console::Browser;
use crate::world::*;

/// Somebody who listens for webhooks on this machine.
pub(crate) struct Receiver {
    pub(crate) url: String,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    tries: Mutex<Vec<Try>>,
    came: Notify,
    /// The status of every answer; 0 for no answer at all.
    status: AtomicU16,
    /// The event that gets 500 instead.
    refused: Mutex<Option<&'static str>>,
    at_once: AtomicUsize,
    at_once_max: AtomicUsize,
    /// Holds answers until as many tries came as a wave has.
    waves: Mutex<Option<Waves>>,
}

/// Answers that leave together: one, then two, then four …, through those of the last wave.
struct Waves {
    size: usize,
    last: usize,
    held: Vec<tokio::sync::oneshot::Sender<()>>,
}

impl Waves {
    /// Holds one more answer, or lets the whole wave go.
    fn hold(&mut self) -> Option<tokio::sync::oneshot::Receiver<()>> {
        if self.size > self.last {
            return None;
        }
        if self.held.len() + 1 == self.size {
            self.size *= 2;
            self.held.drain(..).for_each(|held| held.send(()).unwrap());
            return None;
        }
        let (held, released) = tokio::sync::oneshot::channel();
        self.held.push(held);
        Some(released)
    }
}

/// Counts those that are under way.
struct UnderWay<'a>(&'a Heard);

impl<'a> UnderWay<'a> {
    fn begin(heard: &'a Heard) -> Self {
        let at_once = heard.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        heard.at_once_max.fetch_max(at_once, Ordering::SeqCst);
        Self(heard)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Try {
    path: String,
    headers: HeaderMap,
    bytes: Bytes,
    body: Value,
    answered: u16,
}

impl Try {
    pub(crate) fn event(&self) -> &str {
        self.body["event"].as_str().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl Receiver {
    pub(crate) async fn listen() -> Self {
        let heard = Arc::new(Heard::default());
        heard.status.store(204, Ordering::SeqCst);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&heard));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, heard }
    }

    fn answers(&self, status: u16) {
        self.heard.status.store(status, Ordering::SeqCst);
    }

    fn tries(&self) -> Vec<Try> {
        self.heard.tries.lock().unwrap().clone()
    }

    /// Waits until the tries that came are what was waited for.
    async fn until(&self, is_so: impl Fn(&[Try]) -> bool) -> Vec<Try> {
        let waited = async {
            while !is_so(&self.tries()) {
                self.heard.came.notified().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), waited).await;
        let tries = self.tries();
        assert!(ended.is_ok(), "others are expected: {tries:#?}");
        tries
    }

    /// Waits for this number of tries; there must be no more.
    pub(crate) async fn heard(&self, count: usize) -> Vec<Try> {
        let tries = self.until(|tries| tries.len() >= count).await;
        assert_eq!(tries.len(), count, "{tries:#?}");
        tries
    }
}

async fn hear(State(heard): State<Arc<Heard>>, uri: Uri, headers: HeaderMap, bytes: Bytes) -> impl IntoResponse {
    let _until_answered = UnderWay::begin(&heard);
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let is_refused = heard.refused.lock().unwrap().is_some_and(|event| body["event"] == event);
    let answered = if is_refused { 500 } else { heard.status.load(Ordering::SeqCst) };
    heard.tries.lock().unwrap().push(Try { path: uri.to_string(), headers, bytes, body, answered });
    heard.came.notify_one();
    let held = heard.waves.lock().unwrap().as_mut().and_then(Waves::hold);
    if let Some(released) = held {
        released.await.unwrap();
    }
    match answered {
        0 => std::future::pending().await,
        status => (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")], long_answer(status)),
    }
}

/// What a receiver answers: more than is stored of it.
fn long_answer(status: u16) -> String {
    format!("answered {status} {}", "x".repeat(2_000))
}

/// A key of the merchant with an address; gives its id and its secret.
async fn key_with(merchant: &Merchant<'_>, url: &str) -> (String, String) {
    let path = format!("/ops/merchants/{}/api-keys", merchant.id);
    let key = merchant.world.ops_post(&path, &json!({"webhook_url": url})).await.expect(201);
    (text(&key["id"]), text(&key["webhook_secret"]))
}

async fn patch(world: &World, key: &str, body: &Value) -> Answer {
    world.ops_send(Method::PATCH, &format!("/ops/api-keys/{key}"), &[], body.to_string()).await
}

/// Asks until what it answers is so.
pub(crate) async fn until<F: Future<Output = Value>>(ask: impl Fn() -> F, is_so: impl Fn(&Value) -> bool) -> Value {
    let polling = async {
        loop {
            let answer = ask().await;
            if is_so(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), polling).await.unwrap()
}

/// Waits until an event's delivery to its one endpoint stands so.
pub(crate) async fn until_delivery(merchant: &Merchant<'_>, event: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/api/events/{event}");
    let ask = || async { merchant.get(&path).await.expect(200)["deliveries"][0].clone() };
    until(ask, is_so).await
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn service_signature(secret: &str, one: &Try) -> String {
    mac(secret.as_bytes(), &one.bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn standard_signature(secret: &str, one: &Try) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let head = format!("{}.{}.", one.header("webhook-id"), one.header("webhook-timestamp"));
    format!("v1,{}", STANDARD.encode(mac(&key, &[head.as_bytes(), &one.bytes].concat())))
}

fn service_signatures(one: &Try) -> Vec<&str> {
    one.headers.get_all("x-service-signature").iter().map(|value| value.to_str().unwrap()).collect()
}

/// The charge of `charge.paid`: as it is read, with its `id`, and a PIX with its `valor`.
fn paid_as(charge: &Value, valor: Option<&str>) -> Value {
    let mut body = charge.clone();
    body["id"] = charge["txid"].clone();
    if let Some(valor) = valor {
        body["valor"] = json!(valor);
    }
    body
}

/// Shows: 5.6, 6.delivery, 6.pix-paid, 6.recipient.approved, 6.recipient.rejected.
#[tokio::test]
async fn what_happens_is_told_in_the_documented_shapes_and_signed() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    let (_, secret) = key_with(&merchant, &receiver.url).await;
    let ana = merchant.recipient("Ana Prado", 1).await;
    let bia = merchant.draft("Bia Lima", 2).await;
    world.ops_post(&format!("/ops/sub-recipients/{bia}/reject"), &json!({"notes": "ilegível"})).await.expect(200);
    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000), (&ana, 500)])).await;
    let ended = merchant.post("/api/pix", &pix("9.90")).await.expect(201);
    merchant.post_raw(&format!("/api/charges/{}/cancel", text(&ended["txid"])), &[], "").await.expect(200);
    let captured =
        merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 700), (&ana, 300)])).await.expect(201);
    let refused = merchant.post("/api/card", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    world.advance(30 * DAY).await;
    let mut tries = receiver.heard(8).await;
    tries.sort_by_key(|one| one.body["sequence"].as_u64());
    let events: Vec<_> = tries.iter().map(Try::event).collect();
    assert_eq!(
        events,
        [
            "recipient.approved",
            "recipient.rejected",
            "charge.paid",
            "split.available",
            "charge.cancelled",
            "charge.paid",
            "charge.refused",
            "split.available"
        ]
    );
    let charge = |value: &Value| format!("/api/charges/{}", text(&value["txid"]));
    let mut objects = vec![
        json!({"recipient": {"id": ana, "status": "active", "name": "Ana Prado", "document_type": "CPF"}}),
        json!({"recipient": {"id": bia, "status": "rejected", "name": "Bia Lima", "document_type": "CPF"}}),
        json!({"charge": paid_as(&paid, Some("80.00"))}),
        json!({"split": {"recipient_id": ana, "count": 2, "amount_cents": 1_500, "recovered_cents": 0, "payment_id": paid["txid"],
            "available_at": paid["paid_at"]}}),
    ];
    assert_eq!(paid, merchant.get(&charge(&paid)).await.expect(200));
    objects.push(json!({"charge": merchant.get(&charge(&ended)).await.expect(200)}));
    let captured = merchant.get(&charge(&captured)).await.expect(200);
    objects.push(json!({"charge": paid_as(&captured, None)}));
    objects.push(json!({"charge": merchant.get(&charge(&refused)).await.expect(200)}));
    let available_at = &tries[7].body["split"]["available_at"];
    objects.push(json!({"split": {"recipient_id": ana, "count": 2, "amount_cents": 1_000, "recovered_cents": 0,
        "available_at": available_at}}));
    let listed = merchant.get("/api/events").await.expect(200);
    assert_eq!((&listed["total"], &listed["pages"]), (&json!(8), &json!(1)));
    for (place, (one, object)) in tries.iter().zip(&objects).enumerate() {
        let mut expected = object.clone();
        expected["event"] = json!(one.event());
        expected["timestamp"] = one.body["timestamp"].clone();
        expected["sequence"] = json!(place + 1);
        time(&one.body["timestamp"]);
        assert_eq!(one.body, expected);
        assert_eq!(service_signatures(one), [service_signature(&secret, one)]);
        assert_eq!(one.header("webhook-signature"), standard_signature(&secret, one));
        assert_eq!((one.path.as_str(), one.header("content-type")), ("/hook", "application/json"));
        let wall = one.header("webhook-timestamp").parse::<i64>().unwrap() - chrono::Utc::now().timestamp();
        assert!(wall.abs() <= 120, "wall time, not the sandbox's: {wall}");
        let id = one.header("webhook-id");
        let ask = || async { merchant.get(&format!("/api/events/{id}")).await.expect(200) };
        let event = until(ask, |event| event["deliveries"][0]["status"] == "delivered").await;
        assert_eq!((&event["id"], &event["created_at"]), (&json!(id), &one.body["timestamp"]));
        for (name, value) in one.body.as_object().unwrap() {
            assert_eq!(&event[name], value, "{name}");
        }
        assert_eq!(items(&merchant.get("/api/events").await.expect(200))[7 - place], event);
    }
    let page = merchant.get("/api/events?page=2&per_page=3").await.expect(200);
    let page: Vec<_> = items(&page).iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(page, [5, 4, 3]);
    assert_eq!(items(&merchant.get("/api/events?page=4&per_page=3").await.expect(200)).len(), 0);
}

/// An account without a webhook address reads on from the last event that it knows.
#[tokio::test]
async fn events_are_read_on_from_a_number() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let numbers =
        |list: &Value| -> Vec<u64> { items(list).iter().map(|event| event["sequence"].as_u64().unwrap()).collect() };
    for _ in 0..3 {
        merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    }
    let from_the_first = merchant.get("/api/events?after=0&per_page=2").await.expect(200);
    assert_eq!(
        (numbers(&from_the_first), &from_the_first["total"], &from_the_first["pages"]),
        (vec![1, 2], &json!(3), &json!(2))
    );
    assert_eq!(numbers(&merchant.get("/api/events?after=2&wait=20").await.expect(200)), [3], "nothing to wait for");
    assert_eq!(numbers(&merchant.get("/api/events?after=0&per_page=2&page=2").await.expect(200)), [3]);
    assert_eq!(numbers(&merchant.get("/api/events?after=3").await.expect(200)), Vec::<u64>::new());
    assert_eq!(numbers(&merchant.get("/api/events?after=3&wait=1").await.expect(200)), Vec::<u64>::new());
    assert_eq!(
        numbers(&merchant.get("/api/events?after=9&wait=20").await.expect(200)),
        Vec::<u64>::new(),
        "no such event"
    );
    let waits = merchant.get("/api/events?after=3&wait=20");
    let comes = async { merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201) };
    let (response, _) = tokio::join!(waits, comes);
    assert_eq!(numbers(&response.expect(200)), [4]);
    for (wrong, field) in [("after=-1", "after"), ("after=x", "after"), ("after=1&wait=21", "wait")] {
        let refused = merchant.get(&format!("/api/events?{wrong}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}

/// The body of a webhook event is the GET body of its object at the time of the event.
///
/// Shows: 6.refund.approved, 6.refund.rejected, 6.withdrawals.
#[tokio::test]
async fn money_that_leaves_and_what_recurs_is_told_as_it_is_read() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    key_with(&merchant, &receiver.url).await;
    let ana = merchant.recipient("Ana Prado", 1).await;
    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let captured = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 2_000)])).await.expect(201);
    let recipient = format!("/api/dashboard/sub-recipients/{ana}");
    let split = format!("{}-0", text(&captured["txid"]));
    let body = json!({"split_ids": [split], "target_days": 2});
    merchant.post(&format!("{recipient}/anticipate"), &body).await.expect(200);
    for verb in ["reject", "approve"] {
        let decision = |notes: &str| if verb == "reject" { json!({"notes": notes}) } else { json!({}) };
        let withdrawal = merchant.post(&format!("{recipient}/withdraw"), &json!({})).await.expect(201);
        let path = format!("/ops/withdrawals/{}/{verb}", text(&withdrawal["withdrawal_id"]));
        world.ops_post(&path, &decision("Conta divergente")).await.expect(200);
        let refund = json!({"payment_id": paid["txid"], "amount": 300, "reason": "Devolução"});
        let refund = merchant.post("/api/refunds", &refund).await.expect(201);
        let path = format!("/ops/refunds/{}/{verb}", text(&refund["id"]));
        world.ops_post(&path, &decision("Fora da política")).await.expect(200);
    }
    let mut cashouts = Vec::new();
    for key in ["ok@example.com", "fail@example.com"] {
        let cashout = json!({"amount": 1_000, "pix_key": key, "pix_key_type": "email"});
        cashouts.push(text(&merchant.post("/api/cashout", &cashout).await.expect(201)["id"]));
        world.advance(0).await;
    }
    let dispute = json!({"amount": 100, "kind": "med", "reason": "Não reconhecida"});
    let path = format!("/ops/charges/{}/disputes", text(&paid["txid"]));
    let dispute = world.ops_post(&path, &dispute).await.expect(201);
    world.ops_post(&format!("/ops/disputes/{}/release", text(&dispute["id"])), &json!({})).await.expect(200);
    let plan = json!({"tag": "mensal", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 1});
    let plan = merchant.post("/api/recurrency/plans", &plan).await.expect(201);
    let subscription =
        json!({"plan_id": plan["id"], "customer": card(1, APPROVED)["customer"], "payment_method": "pix"});
    let subscription = merchant.post("/api/recurrency/subscriptions", &subscription).await.expect(201);
    world.advance(1).await;
    let path = format!("/api/recurrency/subscriptions/{}", text(&subscription["id"]));
    let charges = merchant.get(&format!("{path}/charges")).await.expect(200);
    merchant.pay(&text(&items(&charges)[0]["txid"])).await.expect(200);

    let expected = [
        "recipient.approved",
        "charge.paid",
        "split.available",
        "charge.paid",
        "anticipation.completed",
        "split.available",
        "withdrawal.rejected",
        "refund.rejected",
        "withdrawal.approved",
        "refund.approved",
        "charge.refunded",
        "cashout.processed",
        "cashout.failed",
        "dispute.opened",
        "dispute.released",
        "subscription.created",
        "subscription.charge_created",
        "charge.paid",
        "subscription.completed",
    ];
    let mut tries = receiver.heard(expected.len()).await;
    tries.sort_by_key(|one| one.body["sequence"].as_u64());
    assert_eq!(tries.iter().map(Try::event).collect::<Vec<_>>(), expected);
    let body_of = |event: &str| tries.iter().find(|one| one.event() == event).unwrap().body.clone();

    let refunds = merchant.get("/api/refunds").await.expect(200);
    for (event, refund) in ["refund.approved", "refund.rejected"].into_iter().zip(items(&refunds)) {
        let mut expected = json!({"id": refund["id"], "charge_id": paid["txid"], "amount": 300,
            "status": event.trim_start_matches("refund.")});
        if event == "refund.rejected" {
            expected["notes"] = json!("Fora da política");
        }
        assert_eq!(body_of(event)["refund"], expected);
    }
    let withdrawals = merchant.get(&format!("{recipient}/withdraw")).await.expect(200);
    for (event, withdrawal) in ["withdrawal.approved", "withdrawal.rejected"].into_iter().zip(items(&withdrawals)) {
        let mut expected = withdrawal.clone();
        expected["recipient_id"] = json!(ana);
        assert_eq!(body_of(event)["withdrawal"], expected);
    }
    for (event, id) in ["cashout.processed", "cashout.failed"].into_iter().zip(&cashouts) {
        assert_eq!(body_of(event)["cashout"], merchant.get(&format!("/api/cashout/{id}")).await.expect(200));
    }
    let disputes = merchant.get("/api/disputes").await.expect(200);
    assert_eq!(body_of("dispute.released")["dispute"], items(&disputes)[0]);
    assert_eq!(body_of("dispute.opened")["dispute"], dispute);
    assert_eq!(body_of("charge.refunded")["charge"]["refunded_amount"], 300);
    assert_eq!(body_of("subscription.completed")["subscription"], merchant.get(&path).await.expect(200));
    let code = &body_of("subscription.charge_created")["charge"]["pixCopiaECola"];
    assert!(text(code).starts_with("000201"), "{code}");
}

#[tokio::test]
async fn events_of_another_account_are_not_there() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.recipient("Ana", 1).await;
    let id = text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"]);
    let other = world
        .open(json!({"name": "Outra", "document": cnpj(2), "split_enabled": true, "cashout_enabled": false}))
        .await;
    other.recipient("Eva", 3).await;
    for id in [id.as_str(), "x", &merchant.id, &other.id] {
        other.get(&format!("/api/events/{id}")).await.refused(404, "not_found");
        other.post_raw(&format!("/api/events/{id}/redeliver"), &[], "").await.refused(404, "not_found");
    }
    assert_eq!(merchant.get(&format!("/api/events/{id}")).await.expect(200)["deliveries"], json!([]));
    assert_eq!(items(&other.get("/api/events").await.expect(200)).len(), 1);
}

#[tokio::test]
async fn a_failure_is_tried_again_by_the_clock_ten_times_and_once_more_when_asked() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(302);
    key_with(&merchant, &receiver.url).await;
    merchant.paid_pix(&pix("1.00")).await;
    let id = receiver.heard(1).await[0].header("webhook-id").to_owned();
    for (tries, seconds) in (1..).zip([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]) {
        let has_failed =
            |delivery: &Value| delivery["failed_tries"].as_u64().is_some_and(|failed| failed >= tries as u64);
        let pending = until_delivery(&merchant, &id, has_failed).await;
        assert_eq!(pending["status"], "pending");
        // The clock goes on while the test runs: five seconds may be over.
        if seconds > 5 {
            assert!(time(&pending["next_try_at"]) > world.advance(seconds - 200).await, "{seconds} s are not over");
            receiver.heard(tries).await;
            world.advance(200).await;
        } else {
            world.advance(seconds).await;
        }
        receiver.heard(tries + 1).await;
    }
    until_delivery(&merchant, &id, |delivery| delivery["status"] == "failed").await;
    world.advance(10 * DAY).await;
    receiver.answers(200);
    let path = format!("/api/events/{id}/redeliver");
    assert_eq!(merchant.post_keyed(&path, "again", &json!({})).await.expect(200)["id"], id.as_str());
    let tries = receiver.heard(11).await;
    assert!(tries.iter().all(|one| one.path == "/hook"), "a redirect is not followed");
    assert!(tries.iter().all(|one| one.header("webhook-id") == id && one.bytes == tries[0].bytes));
    until_delivery(&merchant, &id, |delivery| delivery["status"] == "delivered").await;
    merchant.post_raw(&path, &[], "").await.expect(200);
    receiver.heard(12).await;
}

#[tokio::test]
async fn events_about_one_thing_come_in_order_and_others_do_not_wait() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    *receiver.heard.refused.lock().unwrap() = Some("recipient.rejected");
    key_with(&merchant, &receiver.url).await;
    let ana = merchant.draft("Ana", 1).await;
    let reject = format!("/ops/sub-recipients/{ana}/reject");
    world.ops_post(&reject, &json!({"notes": "ilegível"})).await.expect(200);
    receiver.until(|tries| !tries.is_empty()).await;
    merchant.post("/api/sub-recipients", &individual("Ana", &cpf(1))).await.expect(200);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/approve"), &json!({})).await.expect(200);
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&ana, 100)])).await;
    let tries = receiver.until(|tries| tries.iter().any(|one| one.event() == "charge.paid")).await;
    assert!(tries.iter().all(|one| ["recipient.rejected", "charge.paid"].contains(&one.event())), "{tries:#?}");
    *receiver.heard.refused.lock().unwrap() = None;
    world.advance(300).await;
    let tries = receiver.until(|tries| tries.iter().any(|one| one.event() == "split.available")).await;
    let taken: Vec<_> = tries.iter().filter(|one| one.answered == 204).map(Try::event).collect();
    assert_eq!(taken, ["charge.paid", "recipient.rejected", "recipient.approved", "split.available"]);
}

#[tokio::test]
async fn an_endpoint_that_never_answers_delays_no_other() {
    let world = World::sandbox().await;
    let (dead, live) = (Receiver::listen().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    dead.answers(0);
    key_with(&merchant, &dead.url).await;
    key_with(&merchant, &live.url).await;
    for _ in 0..12 {
        merchant.paid_pix(&pix("1.00")).await;
    }
    live.heard(12).await;
    dead.until(|tries| !tries.is_empty()).await;
    let at_once = dead.heard.at_once_max.load(Ordering::SeqCst);
    assert!((1..=4).contains(&at_once), "{at_once} at once");
}

#[tokio::test]
async fn a_restart_loses_no_event_and_a_new_address_gets_what_comes_after_it() {
    let (world, receiver, late) = (World::sandbox().await, Receiver::listen().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(503);
    key_with(&merchant, &receiver.url).await;
    for _ in 0..3 {
        merchant.paid_pix(&pix("1.00")).await;
    }
    let numbers = |tries: &[Try], answered: u16| -> BTreeSet<u64> {
        let with_answer = tries.iter().filter(|one| one.answered == answered);
        with_answer.map(|one| one.body["sequence"].as_u64().unwrap()).collect()
    };
    receiver.until(|tries| numbers(tries, 503).len() == 3).await;
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    receiver.answers(200);
    let (key, _) = key_with(&merchant, &late.url).await;
    merchant.paid_pix(&pix("1.00")).await;
    world.advance(300).await;
    receiver.until(|tries| numbers(tries, 200) == BTreeSet::from([1, 2, 3, 4])).await;
    assert_eq!(late.heard(1).await[0].body["sequence"], 4);
    patch(&world, &key, &json!({"webhook_url": null})).await.expect(200);
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(patch(&world, &key, &json!({})).await.expect(200), json!({"id": key, "webhook_url": null}));
    let set = patch(&world, &key, &json!({"webhook_url": late.url})).await.expect(200);
    assert_eq!(set, json!({"id": key, "webhook_url": late.url}));
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(late.heard(2).await[1].body["sequence"], 6, "not the one of the time without an address");
    world.ops_send(Method::DELETE, &format!("/ops/api-keys/{key}"), &[], String::new()).await.expect(200);
    merchant.paid_pix(&pix("1.00")).await;
    receiver.until(|tries| numbers(tries, 200).contains(&7)).await;
    late.heard(2).await;
    for refused in [
        patch(&world, &key, &json!({"webhook_url": late.url})).await,
        world.ops_post(&format!("/ops/api-keys/{key}/rotate-secret"), &json!({})).await,
    ] {
        refused.refused(409, "state_conflict");
    }
}

#[tokio::test]
async fn all_secrets_of_the_last_day_sign_after_rotations() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    let (key, old) = key_with(&merchant, &receiver.url).await;
    let path = format!("/ops/api-keys/{key}/rotate-secret");
    let rotated = world.ops_send(Method::POST, &path, &[("idempotency-key", "k")], "{}".to_owned()).await.expect(200);
    has_exactly(&rotated, &["webhook_secret"]);
    let new = text(&rotated["webhook_secret"]);
    assert_ne!(old, new);
    let again = world.ops_send(Method::POST, &path, &[("idempotency-key", "k")], "{}".to_owned()).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(200), rotated);
    merchant.paid_pix(&pix("1.00")).await;
    let both = receiver.heard(1).await.remove(0);
    assert_eq!(service_signatures(&both), [service_signature(&new, &both)], "one line, made with the new secret");
    let standard = format!("{} {}", standard_signature(&new, &both), standard_signature(&old, &both));
    assert_eq!(both.header("webhook-signature"), standard);
    let newest = text(&world.ops_post(&path, &json!({})).await.expect(200)["webhook_secret"]);
    merchant.paid_pix(&pix("1.00")).await;
    let all = receiver.heard(2).await.remove(1);
    let signed: Vec<_> = [&newest, &new, &old].map(|secret| standard_signature(secret, &all)).into();
    assert_eq!(all.header("webhook-signature"), signed.join(" "));
    world.advance(DAY).await;
    merchant.paid_pix(&pix("1.00")).await;
    let one = receiver.heard(3).await.remove(2);
    assert_eq!(service_signatures(&one), [service_signature(&newest, &one)]);
    assert_eq!(one.header("webhook-signature"), standard_signature(&newest, &one));
    for id in ["x", &merchant.id] {
        world.ops_post(&format!("/ops/api-keys/{id}/rotate-secret"), &json!({})).await.refused(404, "not_found");
        patch(&world, id, &json!({"webhook_url": null})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (key, _) = key_with(&merchant, "https://1.1.1.1/hook").await;
    let create = format!("/ops/merchants/{}/api-keys", merchant.id);
    for url in [
        "http://1.1.1.1/",
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "https://192.168.0.1:8443/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[fd00::1]/",
        "https://167772161/",
        "https://0xa.1/",
        "https://user:pass@1.1.1.1/",
        "ftp://1.1.1.1/",
        "1.1.1.1",
    ] {
        let body = json!({"webhook_url": url});
        for answer in [world.ops_post(&create, &body).await, patch(&world, &key, &body).await] {
            let refused = answer.refused(400, "validation_failed");
            assert_eq!(refused["errors"][0]["field"], "webhook_url", "{url}");
        }
    }
    let unchanged = patch(&world, &key, &json!({})).await.expect(200);
    assert_eq!(unchanged["webhook_url"], "https://1.1.1.1/hook");
}

/// The body follows from the journal: what becomes of the charge between two tries changes nothing.
#[tokio::test]
async fn every_try_says_the_same_whatever_happens_between() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    *receiver.heard.refused.lock().unwrap() = Some("charge.paid");
    key_with(&merchant, &receiver.url).await;
    let paid = merchant.paid_pix(&pix("1.00")).await;
    let id = receiver.until(|tries| !tries.is_empty()).await[0].header("webhook-id").to_owned();
    let refund = json!({"payment_id": paid["txid"], "amount": 30});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    *receiver.heard.refused.lock().unwrap() = None;
    world.advance(300).await;
    let tries = receiver.until(|tries| tries.iter().any(|one| one.event() == "charge.refunded")).await;
    let tries: Vec<_> = tries.iter().filter(|one| one.header("webhook-id") == id).collect();
    assert!(tries.len() > 1 && tries.iter().all(|one| one.bytes == tries[0].bytes), "{tries:#?}");
    assert_eq!(tries[0].body["charge"], paid_as(&paid, Some("1.00")));
}

/// Sixty endpoints answer nothing and hold their connections. An endpoint that comes after them in
/// every order gets its events meanwhile.
#[tokio::test]
async fn endpoints_that_hold_their_connections_keep_no_other_waiting() {
    let world = World::sandbox().await;
    let (slow, good) = (Receiver::listen().await, Receiver::listen().await);
    slow.answers(0);
    let crowd = world.merchant().await;
    for _ in 0..60 {
        key_with(&crowd, &slow.url).await;
    }
    let other = json!({"name": "Outra", "document": cnpj(2), "split_enabled": true, "cashout_enabled": false});
    let other = world.open(other).await;
    key_with(&other, &good.url).await;
    for _ in 0..4 {
        crowd.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    }
    slow.until(|tries| tries.len() >= 192).await;
    other.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    good.heard(1).await;
    let held = slow.heard.at_once.load(Ordering::SeqCst);
    assert_eq!(held, slow.tries().len(), "none had ended when the good one was delivered");
}

/// An endpoint that answers gets twice as many at once after each round; one that failed begins
/// with one.
#[tokio::test]
async fn an_endpoint_that_answers_gets_more_at_once() {
    const WAVES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
    let count: usize = WAVES.iter().sum();
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(500);
    key_with(&merchant, &receiver.url).await;
    for _ in 0..count {
        merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    }
    // After the second try the next is five minutes later: nothing is under way when the receiver
    // recovers.
    let failed = |tries: u64| {
        let merchant = &merchant;
        move || async move {
            let mut failed = 0;
            for page in 1..=2 {
                let events = merchant.get(&format!("/api/events?per_page=100&page={page}")).await.expect(200);
                let has_failed = |event: &&Value| event["deliveries"][0]["failed_tries"].as_u64() >= Some(tries);
                failed += items(&events).iter().filter(has_failed).count();
            }
            json!(failed)
        }
    };
    until(failed(1), |failed| *failed == count).await;
    world.advance(5).await;
    until(failed(2), |failed| *failed == count).await;
    let last = WAVES[WAVES.len() - 1];
    *receiver.heard.waves.lock().unwrap() = Some(Waves { size: 1, last, held: Vec::new() });
    receiver.heard.at_once_max.store(0, Ordering::SeqCst);
    receiver.answers(204);
    world.advance(300).await;
    receiver.until(|tries| tries.iter().filter(|one| one.answered == 204).count() == count).await;
    assert_eq!(receiver.heard.at_once_max.load(Ordering::SeqCst), last);
}

/// A receiver that is no HTTP server: gives its address.
async fn raw_receiver<F: Future<Output = std::io::Result<()>> + Send>(
    scheme: &str,
    answer: impl Fn(TcpStream) -> F + Send + Sync + Copy + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // The head of the request or response.
                let _read = stream.read(&mut [0; 16 * 1024]).await?;
                answer(stream).await
            });
        }
    });
    url
}

/// Writes without end.
async fn flood(mut stream: TcpStream, head: &[u8], part: &[u8]) -> std::io::Result<()> {
    stream.write_all(head).await?;
    loop {
        stream.write_all(part).await?;
    }
}

/// What was last heard of an endpoint, of one event, is shown to its merchant, and to operators.
#[tokio::test]
async fn a_webhook_that_failed_says_why() {
    let (world, plain) = (World::sandbox().await, Receiver::listen().await);
    let (failing, redirecting) = (Receiver::listen().await, Receiver::listen().await);
    failing.answers(503);
    redirecting.answers(302);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoints = [
        (failing.url.clone(), Some(("status", Some(503)))),
        (redirecting.url.clone(), Some(("redirect", Some(302)))),
        (format!("http://{nobody}/"), Some(("refused", None))),
        (plain.url.replace("http:", "https:"), Some(("tls", None))),
        (raw_receiver("http", |_| async { Ok(()) }).await, Some(("closed", None))),
        (
            raw_receiver("http", |mut stream| async move { stream.write_all(b"220 mail.example.com ESMTP\r\n").await })
                .await,
            Some(("not_http", None)),
        ),
        (
            raw_receiver("http", |stream| flood(stream, b"HTTP/1.1 200 OK\r\nx: ", b"xxxxxxxxxxxxxxxx")).await,
            Some(("too_large", None)),
        ),
        (
            raw_receiver("http", |stream| flood(stream, b"HTTP/1.1 200 OK\r\n", b"x: x\r\n")).await,
            Some(("too_large", None)),
        ),
        (raw_receiver("http", |stream| flood(stream, b"HTTP/1.1 200 OK\r\n\r\n", b"xxxxxxxxxxxxxxxx")).await, None),
        (
            raw_receiver("http", |stream| {
                let bomb = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
                flood(stream, bomb, b"1\r\n\x1f\r\n")
            })
            .await,
            None,
        ),
        (
            raw_receiver("http", |mut stream| async move {
                for byte in b"HTTP/1.1 200 OK\r\nx: ".iter().chain(std::iter::repeat(&b'x')) {
                    stream.write_all(&[*byte]).await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ok(())
            })
            .await,
            Some(("timeout", None)),
        ),
    ];
    let merchant = world.merchant().await;
    let mut expected = Vec::new();
    for (url, failure) in endpoints {
        expected.push((key_with(&merchant, &url).await.0, url, failure));
    }
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let event = text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"]);
    let path = format!("/api/events/{event}");
    let of_key = |event: &Value, key: &str| {
        let deliveries = event["deliveries"].as_array().unwrap();
        deliveries.iter().find(|delivery| delivery["api_key_id"] == key).unwrap().clone()
    };
    let is_settled = |event: &Value| {
        expected.iter().all(|(key, _, failure)| match failure {
            Some(_) => of_key(event, key).get("last_answer").is_some(),
            None => of_key(event, key)["status"] == "delivered",
        })
    };
    let event = until(|| async { merchant.get(&path).await.expect(200) }, is_settled).await;
    let troubled = world.ops_get("/ops/webhooks").await.expect(200);
    for (key, url, failure) in &expected {
        let delivery = of_key(&event, key);
        let listed = items(&troubled).iter().find(|endpoint| endpoint["api_key_id"] == key.as_str());
        let Some((cause, status)) = failure else {
            assert_eq!((delivery.get("last_answer"), listed), (None, None), "{url}");
            continue;
        };
        let answer = &delivery["last_answer"];
        assert_eq!((&answer["cause"], &answer["status"]), (&json!(cause), &json!(status)), "{url}");
        assert!(time(&answer["at"]) <= time(&delivery["next_try_at"]), "{delivery}");
        assert_eq!(answer["duration_ms"].as_u64().unwrap() >= 15_000, *cause == "timeout", "{delivery}");
        let listed = listed.unwrap();
        assert_eq!((&listed["webhook_url"], &listed["merchant_id"]), (&json!(url), &json!(merchant.id)));
        assert_eq!((&listed["waiting"], &listed["given_up"]), (&json!(1), &json!(0)));
        assert_eq!(listed["oldest_at"], event["created_at"]);
        assert_eq!(listed["last_answer"]["cause"], *cause);
    }
    assert_eq!(troubled["total"], expected.iter().filter(|(.., failure)| failure.is_some()).count());
    assert!(redirecting.tries().iter().all(|one| one.path == "/hook"), "a redirect is not followed");
    let of_another =
        world.open(json!({"name": "Outra", "document": cnpj(2), "split_enabled": false, "cashout_enabled": false}));
    let none = world.ops_get(&format!("/ops/webhooks?merchant_id={}", of_another.await.id)).await.expect(200);
    assert_eq!(none, json!({"items": [], "total": 0}));
}

#[tokio::test]
async fn why_a_webhook_failed_survives_a_restart_and_its_last_try() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(418);
    let (key, _) = key_with(&merchant, &receiver.url).await;
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let id = receiver.heard(1).await[0].header("webhook-id").to_owned();
    until_delivery(&merchant, &id, |delivery| delivery["failed_tries"].as_u64() >= Some(1)).await;
    world.advance(5).await;
    let failed = until_delivery(&merchant, &id, |delivery| delivery["failed_tries"] == 2).await;
    assert_eq!((&failed["last_answer"]["cause"], &failed["last_answer"]["status"]), (&json!("status"), &json!(418)));
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    until_delivery(&merchant, &id, |delivery| *delivery == failed).await;
    let listed = world.ops_get("/ops/webhooks").await.expect(200);
    assert_eq!(items(&listed)[0]["last_answer"], failed["last_answer"]);
    receiver.answers(410);
    for tries in 3..=10 {
        world.advance(DAY).await;
        receiver.heard(tries).await;
        let is_over = |delivery: &Value| delivery["status"] == "failed" || delivery["failed_tries"] == tries;
        until_delivery(&merchant, &id, is_over).await;
    }
    let given_up = until_delivery(&merchant, &id, |delivery| delivery["status"] == "failed").await;
    assert_eq!(given_up["last_answer"]["status"], 410);
    let listed = world.ops_get("/ops/webhooks").await.expect(200);
    let listed = &items(&listed)[0];
    assert_eq!((&listed["waiting"], &listed["given_up"], listed.get("oldest_at")), (&json!(0), &json!(1), None));
    let tries = world.ops_get(&format!("/ops/endpoints/{key}/tries")).await.expect(200);
    let statuses: Vec<_> = items(&tries).iter().map(|tried| tried["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [[410; 8].as_slice(), &[418; 2]].concat(), "also those of before the restart: {tries}");
    let of_event = merchant.get(&format!("/api/events/{id}/tries")).await.expect(200);
    assert_eq!((&of_event["total"], &items(&of_event)[9]["response"]), (&json!(10), &json!(long_answer(418)[..1024])));
    has_exactly(&items(&tries)[0], &["event_id", "kind", "status", "cause", "at", "duration_ms", "response"]);
    for one in items(&tries) {
        assert_eq!((&one["event_id"], &one["kind"]), (&json!(id), &json!("charge.paid")));
    }
    assert!(items(&tries).windows(2).all(|two| time(&two[0]["at"]) >= time(&two[1]["at"])), "newest first");
    receiver.answers(204);
    let again = format!("/ops/endpoints/{key}/redeliver");
    let redelivered = json!({"redelivered": 1, "hastened": 0, "left": 0});
    assert_eq!(world.ops_post(&again, &json!({})).await.expect(200), redelivered);
    let delivered = until_delivery(&merchant, &id, |delivery| delivery["status"] == "delivered").await;
    has_exactly(&delivered, &["api_key_id", "status"]);
    assert_eq!(world.ops_get("/ops/webhooks").await.expect(200)["total"], 0);
    assert_eq!(world.ops_post(&again, &json!({})).await.expect(200)["redelivered"], 0, "nothing is given up");
    let tries = world.ops_get(&format!("/ops/endpoints/{key}/tries")).await.expect(200);
    has_exactly(&items(&tries)[0], &["event_id", "kind", "status", "at", "duration_ms", "response"]);
    world.ops_get("/ops/endpoints/x/tries").await.refused(404, "not_found");
    world.ops_get(&format!("/ops/endpoints/{key}/tries?x=1")).await.refused(400, "validation_failed");
}

/// An operator reads what was sent and answered, tests the endpoint once it is repaired, and sends
/// the event again.
#[tokio::test]
async fn an_endpoint_is_repaired_tested_and_gets_its_event_again() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(500);
    let (key, secret) = key_with(&merchant, &receiver.url).await;
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let sent = receiver.heard(1).await.remove(0);
    let path = format!("/ops/webhooks/{}", sent.header("webhook-id"));
    let read = || async { world.ops_get(&path).await.expect(200) };
    let event = until(read, |event| !event["tries"].as_array().unwrap().is_empty()).await;
    has_exactly(&event, &["id", "merchant_id", "payload", "tries"]);
    assert_eq!((&event["payload"], &event["merchant_id"]), (&sent.body, &json!(merchant.id)));
    let tried = &event["tries"][0];
    has_exactly(tried, &["api_key_id", "status", "cause", "at", "duration_ms", "response"]);
    assert_eq!((&tried["api_key_id"], &tried["status"]), (&json!(key), &json!(500)));
    assert_eq!(tried["response"], long_answer(500)[..1024]);

    let test = format!("/ops/endpoints/{key}/test");
    let headers = [("idempotency-key", "t-1"), ("content-type", "application/json")];
    let send_test = async || world.ops_send(Method::POST, &test, &headers, "{}".to_owned()).await;
    let before = world.cut().await;
    let failed = send_test().await.expect(200);
    has_exactly(&failed, &["id", "status", "cause", "at", "duration_ms", "response"]);
    assert_eq!((&failed["cause"], &failed["response"]), (&json!("status"), &json!(long_answer(500)[..1024])));
    let tested = receiver.heard(2).await.remove(1);
    has_exactly(&tested.body, &["event", "timestamp"]);
    assert_eq!((tested.event(), tested.header("webhook-id")), ("webhook.test", failed["id"].as_str().unwrap()));
    assert_eq!(tested.header("webhook-signature"), standard_signature(&secret, &tested));
    assert_eq!(service_signatures(&tested), [service_signature(&secret, &tested)]);
    receiver.answers(204);
    assert_eq!(send_test().await.expect(200), failed, "the same key is the same test");
    receiver.heard(2).await;
    let accepted = world.ops_post(&test, &json!({})).await.expect(200);
    assert_eq!((&accepted["status"], accepted.get("cause")), (&json!(204), None));
    assert_eq!(world.cut().await, before, "a test event is in no journal");

    world.ops_post(&format!("{path}/redeliver"), &json!({})).await.expect(200);
    let event = until(read, |event| event["tries"].as_array().unwrap().len() == 2).await;
    assert_eq!((&event["tries"][0]["status"], &event["tries"][1]["status"]), (&json!(204), &json!(500)));
    assert_eq!(world.ops_get("/ops/webhooks").await.expect(200)["total"], 0);
    let no_address = format!("/ops/endpoints/{}/test", merchant.key_id);
    world.ops_post(&no_address, &json!({})).await.refused(409, "state_conflict");
    world.ops_get(&format!("{path}?x=1")).await.refused(400, "validation_failed");
    world.ops_get("/ops/webhooks/x").await.refused(404, "not_found");
}

/// What waits at an address for a later try is sent at once where an operator says so.
#[tokio::test]
async fn events_that_wait_at_a_repaired_endpoint_are_sent_together() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    receiver.answers(500);
    let (key, _) = key_with(&merchant, &receiver.url).await;
    for _ in 0..2 {
        merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    }
    let events: Vec<_> = receiver.heard(2).await.iter().map(|sent| sent.header("webhook-id").to_owned()).collect();
    // The second failed try of each is followed by five minutes.
    world.advance(5).await;
    for event in &events {
        until_delivery(&merchant, event, |delivery| delivery["failed_tries"] == 2).await;
    }
    receiver.answers(204);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page(&format!("/console/keys/{key}")).await.has(&["Send all that wait or were given up now"]);
    let again = format!("/ops/endpoints/{key}/redeliver");
    let sent = world.ops_post(&again, &json!({})).await.expect(200);
    assert_eq!(sent, json!({"redelivered": 0, "hastened": 2, "left": 0}));
    for event in &events {
        until_delivery(&merchant, event, |delivery| delivery["status"] == "delivered").await;
    }
    assert_eq!(world.ops_get("/ops/webhooks").await.expect(200)["total"], 0);
}

/// A merchant sees what its address answered, and tries it.
#[tokio::test]
async fn a_merchant_reads_its_tries_and_tests_its_address() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let url = json!({"webhook_url": receiver.url});
    let test = "/api/webhooks/test";
    merchant.post(test, &json!({})).await.refused(409, "state_conflict");
    world.ops_patch(&format!("/ops/api-keys/{}", merchant.key_id), &url).await.expect(200);
    receiver.answers(500);
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let id = receiver.heard(1).await[0].header("webhook-id").to_owned();
    let path = format!("/api/events/{id}/tries");
    let read = || async { merchant.get(&path).await.expect(200) };
    let tries = until(read, |tries| tries["total"] == 1).await;
    let tried = &items(&tries)[0];
    assert_eq!((&tried["api_key_id"], &tried["status"]), (&json!(merchant.key_id), &json!(500)));
    assert_eq!((&tried["cause"], &tried["response"]), (&json!("status"), &json!(long_answer(500)[..1024])));
    other.get(&path).await.refused(404, "not_found");
    receiver.answers(204);
    let before = world.cut().await;
    let tested = merchant.post_keyed(test, "t-1", &json!({})).await.expect(200);
    has_exactly(&tested, &["id", "status", "at", "duration_ms", "response"]);
    assert_eq!(tested["status"], 204);
    assert_eq!(merchant.post_keyed(test, "t-1", &json!({})).await.expect(200), tested, "the same key is the same test");
    let heard = receiver.heard(2).await;
    assert_eq!((heard.len(), heard[1].event()), (2, "webhook.test"));
    assert_eq!(world.cut().await, before, "a test event is in no journal");
    merchant.post_raw(&format!("/api/events/{id}/redeliver"), &[], "").await.expect(200);
    let tries = until(read, |tries| tries["total"] == 2).await;
    let newest = merchant.get(&format!("{path}?limit=1")).await.expect(200);
    let oldest = merchant.get(&text(&newest["next"])).await.expect(200);
    assert_eq!((&items(&newest)[0], &items(&oldest)[0]), (&items(&tries)[0], &items(&tries)[1]));
    assert_eq!((items(&oldest).len(), &oldest["total"]), (1, &json!(1)));
    assert_eq!((tries.get("next"), oldest.get("next")), (None, None));
    for wrong in ["before=3", "before=0", "before=x", "limit=0"] {
        merchant.get(&format!("{path}?{wrong}")).await.refused(400, "validation_failed");
    }
}

/// Operators see no more personal data in a payload than elsewhere.
#[tokio::test]
async fn contacts_are_masked_in_the_payload_that_operators_read() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    let cashout = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    world.advance(60).await;
    let events = merchant.get("/api/events").await.expect(200);
    let processed = items(&events).iter().find(|event| event["event"] == "cashout.processed").unwrap();
    assert_eq!(processed["cashout"]["pix_key"], "ana.prado@example.com");
    let read = world.ops_get(&format!("/ops/webhooks/{}", text(&processed["id"]))).await.expect(200);
    assert_eq!(read["payload"]["cashout"]["pix_key"], "a***@example.com");
    assert_eq!(read["payload"]["cashout"]["end_to_end_id"], processed["cashout"]["end_to_end_id"]);
}

/// A thousand wait at an endpoint, whoever asks for more.
#[tokio::test]
async fn what_is_asked_for_again_waits_within_the_bound() {
    let (world, receiver) = (World::sandbox().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    let (key, _) = key_with(&merchant, &receiver.url).await;
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let id = receiver.heard(1).await[0].header("webhook-id").to_owned();
    until_delivery(&merchant, &id, |delivery| delivery["status"] == "delivered").await;
    // What is not answered is not given up while the clock goes on.
    receiver.answers(0);
    let plan = json!({"tag": "diário", "amount": 500, "billingCycle": "DAILY", "totalBillingCycles": 600});
    let plan = merchant.post("/api/recurrency/plans", &plan).await.expect(201);
    let stored = merchant.post("/api/cards", &without(&card(1, APPROVED), "/amount")).await.expect(201);
    let subscription = json!({"plan_id": plan["id"], "customer": card(1, APPROVED)["customer"],
        "payment_method": "credit_card", "card_token": stored["card_token"]});
    merchant.post("/api/recurrency/subscriptions", &subscription).await.expect(201);
    // Two events a day.
    world.advance(510 * DAY).await;
    let waiting = || async {
        let metrics = world.ops_get("/metrics").await.text;
        let line = metrics.lines().find_map(|line| line.strip_prefix("centavo_webhook_waiting "));
        json!(line.unwrap().parse::<u64>().unwrap())
    };
    until(waiting, |waiting| *waiting == 1_000).await;
    let path = format!("/api/events/{id}/redeliver");
    let refused = merchant.post_raw(&path, &[], "").await;
    assert_eq!(refused.header("retry-after"), Some("60"));
    refused.refused(429, "rate_limited");
    assert_eq!(waiting().await, 1_000);
    let waits = receiver.tries()[1].header("webhook-id").to_owned();
    merchant.post_raw(&format!("/api/events/{waits}/redeliver"), &[], "").await.expect(200);
    let live = Receiver::listen().await;
    key_with(&merchant, &live.url).await;
    until(|| async { merchant.post_raw(&path, &[], "").await.body }, |answer| answer["status"] != 429).await;
    assert_eq!(live.heard(1).await[0].header("webhook-id"), id, "this one has room");
    // The newest stays in the journal while a thousand wait: a later choice does not take it away.
    let newest = items(&merchant.get("/api/events?per_page=1").await.expect(200))[0].clone();
    assert_eq!(newest["deliveries"][0]["status"], "pending", "{newest}");
    patch(&world, &key, &json!({"events": ["charge.refused"]})).await.expect(200);
    receiver.answers(204);
    until_delivery(&merchant, &text(&newest["id"]), |delivery| delivery["status"] == "delivered").await;
}
