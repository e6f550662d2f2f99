//! Mixed load of everything that moves money: PIX in, withdrawals, anticipation, cashouts, refunds
//! with take-backs, a subscription that bills by the clock, and webhooks. Three logs are separate
//! from the server: the callers', the transfers of the sandbox's institution, and the webhooks that
//! a receiver got. After every crash they are compared with the server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::callers::{client, operate};
use testkit::server::{OPS_TOKEN, Server};
use tokio::task::JoinHandle;

/// How long webhooks that are due may take to arrive once the server is quiet.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a webhook said: its event's id, then the body's bytes.
type WebhookBodies = Arc<Mutex<BTreeMap<String, Bytes>>>;

/// A receiver of webhooks that outlives the server. Now and then it fails an event's first try, so
/// that the server delivers the event again.
pub(crate) struct Receiver {
    address: SocketAddr,
    received: WebhookBodies,
    contradictions: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let (received, contradictions) = (WebhookBodies::default(), Arc::<Mutex<Vec<String>>>::default());
        let (bodies, wrong, calls) = (Arc::clone(&received), Arc::clone(&contradictions), AtomicU64::new(0));
        let (calls, failed) = (Arc::new(calls), Arc::<Mutex<BTreeSet<String>>>::default());
        let hear = move |headers: HeaderMap, body: Bytes| {
            let (bodies, wrong, calls) = (Arc::clone(&bodies), Arc::clone(&wrong), Arc::clone(&calls));
            let failed = Arc::clone(&failed);
            async move {
                let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
                if calls.fetch_add(1, Ordering::Relaxed) % 10 == 9 && failed.lock().unwrap().insert(id.clone()) {
                    return axum::http::StatusCode::SERVICE_UNAVAILABLE;
                }
                let before = bodies.lock().unwrap().insert(id.clone(), body.clone());
                if before.is_some_and(|before| before != body) {
                    wrong.lock().unwrap().push(id);
                }
                axum::http::StatusCode::NO_CONTENT
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(hear);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, received, contradictions }
    }
}

/// One request of the log.
#[derive(Clone, Debug)]
struct Ask {
    by_operator: bool,
    path: String,
    body: Value,
    key: String,
}

/// A request and what it came to: status and body.
#[derive(Clone, Debug)]
struct Exchange {
    ask: Ask,
    status: u16,
    body: Value,
}

type Log = (Vec<Exchange>, Vec<Ask>);

/// A merchant, and the log of all its callers.
pub(crate) struct MixedLoad {
    client: Client,
    api_key: String,
    recipients: Vec<String>,
    subscription: String,
    receiver: Receiver,
    keys: Arc<AtomicU64>,
    exchanges: Vec<Exchange>,
    unknown: Vec<Ask>,
    /// Number of acknowledged requests that were sent again so far.
    recalled: usize,
}

impl MixedLoad {
    /// Opens a merchant with two active recipients, a key whose webhooks go to `receiver`, and a
    /// daily subscription.
    pub(crate) async fn open(server: &Server, receiver: Receiver) -> Result<Self, String> {
        let client = client();
        let merchant =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
        let merchant = text(&operate(&client, server, "/ops/merchants", &merchant).await?["id"]);
        let url = json!({"webhook_url": format!("http://{}/hook", receiver.address)});
        let key = operate(&client, server, &format!("/ops/merchants/{merchant}/api-keys"), &url).await?;
        let mut mixed = Self {
            client,
            api_key: text(&key["api_key"]),
            recipients: Vec::new(),
            subscription: String::new(),
            receiver,
            keys: Arc::default(),
            exchanges: Vec::new(),
            unknown: Vec::new(),
            recalled: 0,
        };
        for document in ["12345678909", "98765432100"] {
            let body = json!({
                "register_information": {
                    "type": "individual", "document_number": document, "name": "Maria", "birthdate": "01/02/1980",
                    "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
                    "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                        "zip_code": "01000000"}
                },
                "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
            });
            let id = text(&mixed.must(server, "/api/sub-recipients", body).await?["id"]);
            operate(&mixed.client, server, &format!("/ops/sub-recipients/{id}/approve"), &json!({})).await?;
            mixed.recipients.push(id);
        }
        let plan = json!({"tag": "diario", "amount": 4_990, "billingCycle": "DAILY", "totalBillingCycles": 1_000});
        let plan = text(&mixed.must(server, "/api/recurrency/plans", plan).await?["id"]);
        let customer = json!({"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"});
        let card = json!({"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": 12, "exp_year": 2039,
            "cvv": "123"});
        let card = json!({"credit_card": card, "customer": customer});
        let token = mixed.must(server, "/api/cards", card).await?["card_token"].clone();
        let subscription = json!({"plan_id": plan, "customer": customer, "payment_method": "credit_card",
            "card_token": token});
        mixed.subscription = text(&mixed.must(server, "/api/recurrency/subscriptions", subscription).await?["id"]);
        Ok(mixed)
    }

    /// Calls from this number of callers at once, until the end comes after `life`.
    pub(crate) async fn call_until(&mut self, server: &Server, callers: u64, life: Duration, end: impl FnOnce()) {
        let ending = Arc::new(AtomicBool::new(false));
        let tasks: Vec<JoinHandle<Log>> = (0..callers).map(|caller| self.caller(server, caller, &ending)).collect();
        tokio::time::sleep(life).await;
        end();
        ending.store(true, Ordering::Release);
        for task in tasks {
            let (exchanges, unknown) = task.await.expect("a caller");
            self.exchanges.extend(exchanges);
            self.unknown.extend(unknown);
        }
    }

    fn caller(&self, server: &Server, caller: u64, ending: &Arc<AtomicBool>) -> JoinHandle<Log> {
        let (client, api_key) = (self.client.clone(), self.api_key.clone());
        let (public, operations) = (server.public.clone(), server.operations.clone());
        let (recipients, keys, ending) = (self.recipients.clone(), Arc::clone(&self.keys), Arc::clone(ending));
        tokio::spawn(async move {
            let (mut exchanges, mut unknown): Log = Default::default();
            let mut chance = Chance(1 + caller + keys.load(Ordering::Relaxed));
            let mut next: Vec<Ask> = Vec::new();
            while !ending.load(Ordering::Acquire) {
                let number = keys.fetch_add(1, Ordering::Relaxed);
                let ask = next.pop().unwrap_or_else(|| any_ask(number, &recipients, &mut chance));
                match send(&client, &public, &operations, &api_key, &ask).await {
                    Ok(Some((status, body))) => {
                        let one = Exchange { ask, status, body };
                        next.extend(follow_up(&one, &mut chance));
                        exchanges.push(one);
                    }
                    // It was not carried out, for sure.
                    Ok(None) => {}
                    Err(_) => {
                        unknown.push(ask);
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            }
            (exchanges, unknown)
        })
    }

    /// Sends again, with the same keys, the unanswered requests and a part of the answered ones:
    /// these give the same answer. Within a day, before the keys expire.
    pub(crate) async fn recall(&mut self, server: &Server) -> Result<(), String> {
        // A charge whose acquirer was being asked when the end came is found by the reconciliation,
        // 60 seconds later.
        operate(&self.client, server, "/ops/sandbox/clock", &json!({"advance_seconds": 130})).await?;
        for ask in std::mem::take(&mut self.unknown) {
            let answer = send(&self.client, &server.public, &server.operations, &self.api_key, &ask).await;
            let answer = answer.map_err(|why| format!("{ask:?} has no answer after the restart: {why}"))?;
            self.exchanges.extend(answer.map(|(status, body)| Exchange { ask, status, body }));
        }
        self.check_log(server).await?;
        self.recalled = self.exchanges.len();
        Ok(())
    }

    /// Holds the log, the institution's record and the receiver's against the service.
    pub(crate) async fn reckon(&self, server: &Server, data: &Path) -> Result<(), String> {
        // Rails are asked about open objects, and due items are booked.
        operate(&self.client, server, "/ops/sandbox/clock", &json!({"advance_seconds": 130})).await?;
        self.check_payouts(server, data).await?;
        self.check_subscription(server).await?;
        self.check_webhooks(server).await?;
        let balance: Value = self.read(&format!("{}/ops/trial-balance", server.operations), OPS_TOKEN).await?;
        if balance["balanced"] == true { Ok(()) } else { Err("the trial balance does not balance".to_owned()) }
    }

    /// Everything that was acknowledged is there, and the same request gives the same object again.
    async fn check_log(&self, server: &Server) -> Result<(), String> {
        for exchange in self.exchanges[self.recalled..].iter().step_by(3) {
            let again = send(&self.client, &server.public, &server.operations, &self.api_key, &exchange.ask).await;
            let again = again.map_err(|why| format!("no answer to a replay of {exchange:?}: {why}"))?;
            let Some((status, body)) = again else {
                return Err(format!("{exchange:?} was acknowledged, and is not there"));
            };
            for name in ["id", "txid", "withdrawal_id"] {
                if (status, &body[name]) != (exchange.status, &exchange.body[name]) {
                    return Err(format!("answered {exchange:?} first, then {status} {body}"));
                }
            }
        }
        Ok(())
    }

    /// The institution sent what was processed or approved, each once, and nothing else.
    async fn check_payouts(&self, server: &Server, data: &Path) -> Result<(), String> {
        let record = std::fs::read_to_string(data.join("sandbox/payouts")).unwrap_or_default();
        let mut sent: BTreeMap<String, i64> = BTreeMap::new();
        for line in record.lines().filter(|line| !line.is_empty()) {
            let parts: Vec<&str> = line.split(' ').collect();
            let amount = parts.get(1).and_then(|amount| amount.parse().ok()).ok_or(format!("payouts: {line}"))?;
            if sent.insert(parts[0].to_owned(), amount).is_some() {
                return Err(format!("{} was sent twice", parts[0]));
            }
        }
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for exchange in self.exchanges.iter().filter(|exchange| exchange.ask.path == "/api/cashout") {
            let id = text(&exchange.body["id"]);
            let url = format!("{}/api/cashout/{id}", server.public);
            let cashout = self.read(&url, &self.api_key).await?;
            match cashout["status"].as_str() {
                Some("processed") => {
                    expected.insert(id, cashout["amount"].as_i64().unwrap_or_default());
                }
                Some("failed") => {}
                other => return Err(format!("two minutes later a cashout is {other:?}: {cashout}")),
            }
        }
        for recipient in &self.recipients {
            let url = format!("{}/api/dashboard/sub-recipients/{recipient}/withdraw", server.public);
            let list = self.read(&url, &self.api_key).await?;
            let approved = list["items"].as_array().into_iter().flatten().filter(|one| one["status"] == "approved");
            expected.extend(approved.map(|one| (text(&one["id"]), one["amount_cents"].as_i64().unwrap_or_default())));
        }
        if sent != expected {
            let only = |a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>| -> Vec<String> {
                a.iter().filter(|(id, amount)| b.get(*id) != Some(amount)).map(|(id, _)| id.clone()).collect()
            };
            let (extra, missing) = (only(&sent, &expected), only(&expected, &sent));
            return Err(format!("sent, but not booked: {extra:?}; booked, but not sent: {missing:?}"));
        }
        Ok(())
    }

    /// Every cycle up to the present one was paid once.
    async fn check_subscription(&self, server: &Server) -> Result<(), String> {
        let base = format!("{}/api/recurrency/subscriptions/{}", server.public, self.subscription);
        let subscription = self.read(&base, &self.api_key).await?;
        let cycle = subscription["cycle"].as_u64().unwrap_or_default();
        let mut paid = 0;
        for page in 1.. {
            let charges = self.read(&format!("{base}/charges?per_page=100&page={page}"), &self.api_key).await?;
            let items = charges["items"].as_array().into_iter().flatten();
            paid += items.filter(|charge| charge["status"] == "CONCLUIDA").count() as u64;
            if charges["pages"].as_u64().unwrap_or_default() <= page {
                break;
            }
        }
        if paid == cycle { Ok(()) } else { Err(format!("{paid} cycles were paid; the subscription: {subscription}")) }
    }

    /// Every event of the account has arrived, in bytes that never differed.
    async fn check_webhooks(&self, server: &Server) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let events = self.read(&format!("{}/api/events", server.public), &self.api_key).await?;
            let total = events["total"].as_u64().unwrap_or_default();
            let numbers: BTreeSet<u64> = {
                let received = self.receiver.received.lock().unwrap();
                let bodies = received.values().filter_map(|body| serde_json::from_slice::<Value>(body).ok());
                bodies.filter_map(|body| body["sequence"].as_u64()).collect()
            };
            if total > 0 && (1..=total).all(|number| numbers.contains(&number)) {
                break;
            }
            if Instant::now() > deadline {
                let missing: Vec<_> = (1..=total).filter(|number| !numbers.contains(number)).take(20).collect();
                return Err(format!("of {total} events these have not arrived: {missing:?}"));
            }
            // A try that failed is due five seconds later, and then five minutes, on the sandbox
            // clock.
            operate(&self.client, server, "/ops/sandbox/clock", &json!({"advance_seconds": 60})).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let contradictions = self.receiver.contradictions.lock().unwrap();
        if contradictions.is_empty() { Ok(()) } else { Err(format!("reported in two ways: {contradictions:?}")) }
    }

    /// Summary in one line.
    pub(crate) fn summary(&self) -> String {
        let received = self.receiver.received.lock().unwrap().len();
        let of = |path: &str| self.exchanges.iter().filter(|exchange| exchange.ask.path.contains(path)).count();
        let (cashouts, withdrawals, refunds) = (of("/api/cashout"), of("/withdraw"), of("refunds"));
        format!(
            "{} requests acknowledged ({cashouts} cashouts, {withdrawals} about withdrawals, {refunds} about refunds), {received} \
             events received; no payout twice, no cycle twice, no event lost",
            self.exchanges.len()
        )
    }

    async fn must(&self, server: &Server, path: &str, body: Value) -> Result<Value, String> {
        let request = self.client.post(format!("{}{path}", server.public)).bearer_auth(&self.api_key).json(&body);
        let response = request.send().await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body: Value = response.json().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(body) } else { Err(format!("{path}: {body}")) }
    }

    async fn read(&self, url: &str, token: &str) -> Result<Value, String> {
        let request = self.client.request(Method::GET, url).bearer_auth(token);
        let response = request.send().await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body: Value = response.json().await.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(body) } else { Err(format!("{url}: {body}")) }
    }
}

/// Any request that needs nothing to come before it.
fn any_ask(number: u64, recipients: &[String], chance: &mut Chance) -> Ask {
    let recipient = &recipients[usize::try_from(chance.below(recipients.len() as u64)).unwrap_or_default()];
    let (path, body) = match chance.below(10) {
        0..=3 => {
            let splits = json!([{"sub_recipient_id": recipient, "amount": 1_000}]);
            let valor = format!("{}.{:02}", 50 + chance.below(50), chance.below(100));
            let pix = json!({"valor": valor, "nome": "Pedro", "cpf": "12345678909", "splits": splits});
            ("/api/pix".to_owned(), pix)
        }
        4 => {
            let splits = json!([{"sub_recipient_id": recipient, "amount": 700}]);
            let customer = json!({"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"});
            let card = json!({"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": 12, "exp_year": 2039,
                "cvv": "123"});
            (
                "/api/card".to_owned(),
                json!({"amount": 5_000, "customer": customer, "credit_card": card, "splits": splits}),
            )
        }
        5..=6 => (format!("/api/dashboard/sub-recipients/{recipient}/withdraw"), json!({})),
        _ => {
            let key = ["ok", "ok", "fail", "timeout", "down"][usize::try_from(chance.below(5)).unwrap_or_default()];
            let body = json!({"amount": 500 + chance.below(500), "pix_key": format!("{key}@example.com"),
                "pix_key_type": "email"});
            ("/api/cashout".to_owned(), body)
        }
    };
    Ask { by_operator: false, path, body, key: format!("mixed-{number}") }
}

/// What follows from an answer: a code is paid, a withdrawal or a refund is decided, a paid charge
/// is refunded.
fn follow_up(exchange: &Exchange, chance: &mut Chance) -> Option<Ask> {
    let then = |by_operator, path: String, body| {
        Some(Ask { by_operator, path, body, key: format!("{}-then", exchange.ask.key) })
    };
    let (path, id) = (exchange.ask.path.as_str(), text(&exchange.body["id"]));
    if path == "/api/pix" {
        return then(false, format!("/api/sandbox/pix/{}/pay", text(&exchange.body["txid"])), json!({}));
    }
    if path.ends_with("/pay") && chance.below(3) == 0 {
        let mut body = json!({"payment_id": exchange.body["txid"], "amount": 900});
        if chance.below(2) == 0 {
            let recipient = &exchange.body["splits"][0]["sub_recipient_id"];
            body["splits"] = json!([{"sub_recipient_id": recipient, "amount": 300}]);
        }
        return then(false, "/api/refunds".to_owned(), body);
    }
    let verb = if chance.below(4) == 0 { "reject" } else { "approve" };
    let decision = if verb == "reject" { json!({"notes": "Dados divergentes"}) } else { json!({}) };
    if path == "/api/refunds" {
        return then(true, format!("/ops/refunds/{id}/{verb}"), decision);
    }
    if path.ends_with("/withdraw") {
        return then(true, format!("/ops/withdrawals/{}/{verb}", text(&exchange.body["withdrawal_id"])), decision);
    }
    None
}

/// Sends a request: its answer when it was carried out, `None` if it surely was not, an error when
/// nobody knows.
async fn send(
    client: &Client,
    public: &str,
    operations: &str,
    api_key: &str,
    ask: &Ask,
) -> Result<Option<(u16, Value)>, String> {
    let (base, token) = if ask.by_operator { (operations, OPS_TOKEN) } else { (public, api_key) };
    let request = client.post(format!("{base}{}", ask.path)).bearer_auth(token).header("Idempotency-Key", &ask.key);
    let response = request.json(&ask.body).send().await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body: Value = response.json().await.map_err(|error| error.to_string())?;
    match status {
        // A 502 is an outcome as well: the cashout failed, and its record remains.
        200..=299 | 502 => Ok(Some((status, body))),
        // Nothing to withdraw, one pending, decided before, or not enough money.
        400 | 409 | 422 if body["code"] != "idempotency_key_in_progress" => Ok(None),
        _ => Err(format!("{status} {body}")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
