//! A merchant whose callers charge cards, open PIX charges, refund them, withdraw and cash out, and
//! operators who approve, without waiting for anything to go well.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::adyen_player::CHALLENGED;
use testkit::callers::{client, operate, recipient};
use testkit::rail_player::{DECLINED, NOBODY};
use testkit::server::{OPS_TOKEN, Server};
use testkit::wall_clock::WallClock;

use crate::bridges::Bridges;
use crate::pass;

/// Looks for money to pay out, a quarter of a second apart.
const MONEY_LOOKS: u32 = 40;
/// Callers at once.
const CALLERS: u64 = 6;

#[derive(Default)]
struct Log {
    /// Charges, cashouts and withdrawals of which an answer spoke.
    acknowledged: BTreeSet<String>,
    /// Answers that nobody should get.
    surprises: Vec<String>,
}

pub(crate) struct Load {
    pub(crate) api_key: String,
    pub(crate) recipient: String,
    number: Arc<AtomicU64>,
    log: Arc<Mutex<Log>>,
}

impl Load {
    /// Opens a merchant with a recipient.
    pub(crate) async fn open(server: &Server) -> Result<Self, String> {
        let client = client();
        let merchant =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
        let id = text(&operate(&client, server, "/ops/merchants", &merchant).await?["id"]);
        let key = operate(&client, server, &format!("/ops/merchants/{id}/api-keys"), &json!({})).await?;
        let mut load = Self {
            api_key: text(&key["api_key"]),
            recipient: String::new(),
            number: Arc::default(),
            log: Arc::default(),
        };
        let mut registration = recipient("12345678909");
        registration["bank_account"]["ispb"] = json!("00000000");
        let registered = load.caller(server, &client).post("/api/sub-recipients", registration).await;
        load.recipient = text(&registered.ok_or("no recipient")?["id"]);
        operate(&client, server, &format!("/ops/sub-recipients/{}/approve", load.recipient), &json!({})).await?;
        Ok(load)
    }

    fn caller(&self, server: &Server, client: &Client) -> Caller {
        Caller {
            client: client.clone(),
            public: server.public.clone(),
            operations: server.operations.clone(),
            api_key: self.api_key.clone(),
            recipient: self.recipient.clone(),
            log: Arc::clone(&self.log),
        }
    }

    /// Calls while payers pay, for so long, and then `ends`. Meanwhile the clock goes ahead by what
    /// a server follows without asking, so that the schedule asks for orders that are held up.
    pub(crate) async fn run(
        &self,
        server: &Server,
        bridges: &Bridges,
        clock: &WallClock,
        life: Duration,
        ends: impl FnOnce(),
    ) {
        let ending = Arc::new(AtomicBool::new(false));
        let client = client();
        let callers = (0..CALLERS).map(|_| {
            let (caller, ending) = (self.caller(server, &client), Arc::clone(&ending));
            let number = Arc::clone(&self.number);
            tokio::spawn(async move {
                while !ending.load(Ordering::Acquire) {
                    caller.does_something(number.fetch_add(1, Ordering::Relaxed)).await;
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        let begun = std::time::Instant::now();
        let mut chance = Chance(self.number.load(Ordering::Relaxed));
        let (mut ahead, mut is_certified) = (0, false);
        while begun.elapsed() < life {
            if ahead < 48 && begun.elapsed() > Duration::from_millis(300) * (ahead / 8 + 1) {
                pass(clock, bridges, 8);
                ahead += 8;
            }
            if !is_certified && begun.elapsed() > life * 2 / 3 {
                bridges.certify(Some(server), None);
                is_certified = true;
            }
            bridges.some_payer_pays(&mut chance);
            bridges.adyen_acts(server, &client, &mut chance).await;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        ends();
        ending.store(true, Ordering::Release);
        for caller in callers {
            caller.await.unwrap();
        }
    }

    /// Waits until PIX payments are booked, so that there is money to pay out.
    pub(crate) async fn has_money(&self, server: &Server) {
        for _ in 0..MONEY_LOOKS {
            let balance = client().get(format!("{}/api/balance", server.public)).bearer_auth(&self.api_key);
            if let Ok(answer) = balance.send().await {
                let balance: Value = answer.json().await.unwrap_or_default();
                if balance["available"].as_i64().is_some_and(|available| available > 5_000) {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    pub(crate) fn acknowledged(&self) -> Vec<String> {
        self.log.lock().unwrap().acknowledged.iter().cloned().collect()
    }

    pub(crate) fn surprises(&self) -> Vec<String> {
        self.log.lock().unwrap().surprises.clone()
    }

    pub(crate) fn summary(&self) -> String {
        format!("{} requests, {} acknowledged", self.number.load(Ordering::Relaxed), self.acknowledged().len())
    }
}

struct Caller {
    client: Client,
    public: String,
    operations: String,
    api_key: String,
    recipient: String,
    log: Arc<Mutex<Log>>,
}

impl Caller {
    async fn does_something(&self, number: u64) {
        let mut chance = Chance(number);
        let split = json!([{"sub_recipient_id": self.recipient, "amount": 300}]);
        match chance.below(10) {
            0..=3 => {
                let valor = format!("{}.{:02}", 20 + chance.below(50), chance.below(100));
                let body = json!({"valor": valor, "nome": "Pedro", "cpf": "12345678909", "splits": split});
                self.post("/api/pix", body).await;
            }
            4 => {
                // A bridge charges the card whose payer Adyen has to ask.
                let card = match chance.below(8) {
                    0 => DECLINED,
                    1 => CHALLENGED,
                    _ => "4111111111111111",
                };
                let mut body = card_charge(2_000 + chance.below(5_000), card);
                body["splits"] = split;
                self.post("/api/card", body).await;
            }
            5..=6 => self.refund(&mut chance).await,
            7 => {
                let path = format!("/api/dashboard/sub-recipients/{}/withdraw", self.recipient);
                self.post(&path, json!({})).await;
                self.approve_waiting_withdrawals().await;
            }
            _ => {
                let key = if chance.below(6) == 0 { NOBODY } else { "ana@example.com" };
                let body = json!({"amount": 500 + chance.below(500), "pix_key": key, "pix_key_type": "email"});
                self.post("/api/cashout", body).await;
            }
        }
    }

    /// Gives a part of a charge back that was answered as paid.
    async fn refund(&self, chance: &mut Chance) {
        let list = format!("{}/api/charges?status=CONCLUIDA&per_page=20", self.public);
        let Ok(page) = self.client.get(list).bearer_auth(&self.api_key).send().await else { return };
        let page: Value = page.json().await.unwrap_or_default();
        let paid = page["items"].as_array().cloned().unwrap_or_default();
        if paid.is_empty() {
            return;
        }
        let charge = &paid[usize::try_from(chance.below(paid.len() as u64)).unwrap()];
        let body = json!({"payment_id": charge["txid"], "amount": 100 + chance.below(300)});
        if let Some(refund) = self.post("/api/refunds", body).await {
            self.approve("refunds", &refund["id"]).await;
        }
    }

    /// Also those whose callers lost the answer: a recipient has one at a time.
    async fn approve_waiting_withdrawals(&self) {
        let queue = self.client.get(format!("{}/ops/queue?kind=withdrawal", self.operations));
        let Ok(queue) = queue.bearer_auth(OPS_TOKEN).send().await else { return };
        let queue: Value = queue.json().await.unwrap_or_default();
        for item in queue["items"].as_array().into_iter().flatten() {
            self.approve("withdrawals", &item["id"]).await;
        }
    }

    async fn approve(&self, kind: &str, id: &Value) {
        let url = format!("{}/ops/{kind}/{}/approve", self.operations, text(id));
        let _may_fail = self.client.post(url).bearer_auth(OPS_TOKEN).json(&json!({})).send().await;
    }

    /// The body of a good answer. Refusals and lost answers are as may be.
    async fn post(&self, path: &str, body: Value) -> Option<Value> {
        let request = self.client.post(format!("{}{path}", self.public)).bearer_auth(&self.api_key).json(&body);
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.ok()?;
        let mut log = self.log.lock().unwrap();
        match status {
            200..=299 => {
                let id = ["txid", "withdrawal_id", "id"].into_iter().find_map(|name| body[name].as_str());
                log.acknowledged.extend(id.map(|id| id.replace('-', "")));
                Some(body)
            }
            400 | 402 | 409 | 422 | 502 | 503 => None,
            _ => {
                log.surprises.push(format!("{path}: {status} {body}"));
                None
            }
        }
    }
}

/// Request for a card charge of an amount, centavos.
pub(crate) fn card_charge(amount: u64, number: &str) -> Value {
    let customer = json!({"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"});
    let card = json!({"number": number, "holder_name": "PEDRO", "exp_month": 12, "exp_year": 2039, "cvv": "123"});
    json!({"amount": amount, "customer": customer, "credit_card": card})
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
