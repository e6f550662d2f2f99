//! Callers with a log of their own: requests, their idempotency keys, and the answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::server::{OPS_TOKEN, Server};

/// What is asked for: a card charge, or a PIX charge that is then paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Card,
    Pix,
    Pay,
}

/// One request.
#[derive(Clone, Debug)]
struct Ask {
    kind: Kind,
    key: String,
    path: String,
    body: Value,
    amount: i64,
}

/// A request that was acknowledged.
#[derive(Clone, Debug)]
struct Reply {
    ask: Ask,
    txid: String,
    body: Value,
    took: Duration,
}

/// A merchant with recipients, and the log of all its callers.
pub struct Callers {
    client: Client,
    pub api_key: String,
    pub merchant: String,
    pub recipients: Vec<String>,
    /// One request in this number is a charge with [`SPLITS_OF_LARGE`] splits; 0 for no such
    /// charges.
    pub large_every: u64,
    /// How long each caller waits between its requests.
    pub pause: Duration,
    keys: Arc<AtomicU64>,
    replies: Vec<Reply>,
    unknown: Vec<(Ask, String)>,
    reckoned: usize,
    unanswered: u64,
}

/// How long a caller waits after a request that came to nothing.
const PAUSE: Duration = Duration::from_millis(10);

/// Answers that one caller got, and requests without an answer, with what there was instead.
type Log = (Vec<Reply>, Vec<(Ask, String)>);

/// What a request came to.
enum Answer {
    Body(Value),
    /// No usable answer, and what came instead.
    Unknown(String),
}

impl Callers {
    /// Opens a merchant with three active recipients.
    pub async fn open(server: &Server) -> Result<Self, String> {
        let client = client();
        let merchant =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
        let merchant = operate(&client, server, "/ops/merchants", &merchant).await?["id"].clone();
        let merchant = merchant.as_str().unwrap_or_default().to_owned();
        let key = operate(&client, server, &format!("/ops/merchants/{merchant}/api-keys"), &json!({})).await?;
        let api_key = key["api_key"].as_str().unwrap_or_default().to_owned();
        let mut callers = Self {
            client,
            api_key,
            merchant,
            recipients: Vec::new(),
            large_every: 0,
            pause: Duration::ZERO,
            keys: Arc::default(),
            replies: Vec::new(),
            unknown: Vec::new(),
            reckoned: 0,
            unanswered: 0,
        };
        for document in ["12345678909", "98765432100", "11144477735"] {
            callers.register(server, document).await?;
        }
        Ok(callers)
    }

    /// Charges from this number of callers at once. After `life` the end comes; requests without an
    /// answer by then have an unknown outcome.
    pub async fn charge_until(&mut self, server: &Server, callers: usize, life: Duration, end: impl FnOnce()) {
        let life = async {
            tokio::time::sleep(life).await;
            end();
        };
        self.charge_during(server, callers, life).await;
    }

    /// Charges from this number of callers at once, until something has happened.
    pub async fn charge_during<T>(&mut self, server: &Server, callers: usize, event: impl Future<Output = T>) -> T {
        let ending = Arc::new(AtomicBool::new(false));
        let tasks = self.callers(server, callers, u64::MAX, &ending);
        let happened = event.await;
        ending.store(true, Ordering::Release);
        self.note(tasks).await;
        happened
    }

    /// Sends a number of requests from a number of callers at once.
    pub async fn charge(&mut self, server: &Server, callers: usize, requests: u64) {
        let last = self.keys.load(Ordering::Relaxed) + requests;
        let tasks = self.callers(server, callers, last, &Arc::default());
        self.note(tasks).await;
    }

    /// Callers that go on until `ending` is set, or the keys have reached `last`.
    fn callers(&self, server: &Server, callers: usize, last: u64, ending: &Arc<AtomicBool>) -> Vec<JoinHandle<Log>> {
        let calling = (0..callers).map(|_| {
            let (client, ending, keys) = (self.client.clone(), Arc::clone(ending), Arc::clone(&self.keys));
            let (base, api_key) = (server.public.clone(), self.api_key.clone());
            let (recipients, large_every, pause) = (self.recipients.clone(), self.large_every, self.pause);
            tokio::spawn(async move {
                let (mut replies, mut unknown, mut to_pay) = (Vec::new(), Vec::new(), None);
                while !ending.load(Ordering::Acquire) && keys.load(Ordering::Relaxed) < last {
                    let number = keys.fetch_add(1, Ordering::Relaxed);
                    let is_large = number.checked_rem(large_every) == Some(0);
                    let ask = next_ask(number, is_large, &recipients, to_pay.take());
                    let begun = Instant::now();
                    match send(&client, &base, &api_key, &ask).await {
                        Answer::Body(body) => {
                            let answered = remember(ask, body, begun.elapsed());
                            to_pay = (answered.ask.kind == Kind::Pix).then(|| answered.clone());
                            replies.push(answered);
                        }
                        Answer::Unknown(why) => {
                            unknown.push((ask, why));
                            tokio::time::sleep(PAUSE).await;
                        }
                    }
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                }
                (replies, unknown)
            })
        });
        calling.collect()
    }

    async fn note(&mut self, tasks: Vec<JoinHandle<Log>>) {
        for task in tasks {
            let (replies, unknown) = task.await.expect("a caller");
            self.replies.extend(replies);
            self.unknown.extend(unknown);
        }
    }

    /// Compares the log with the server: first the acknowledged requests, then, with the same keys,
    /// the others.
    pub async fn reckon(&mut self, server: &Server) -> Result<(), String> {
        for reply in &self.replies[self.reckoned..] {
            self.check_charge(server, reply).await?;
        }
        // A charge whose acquirer was being asked when the end came is found by the reconciliation,
        // 60 seconds later.
        operate(&self.client, server, "/ops/sandbox/clock", &json!({"advance_seconds": 61})).await?;
        self.unanswered += self.unknown.len() as u64;
        for (ask, _) in std::mem::take(&mut self.unknown) {
            let begun = Instant::now();
            match send(&self.client, &server.public, &self.api_key, &ask).await {
                Answer::Body(body) => self.replies.push(remember(ask, body, begun.elapsed())),
                Answer::Unknown(why) => return Err(format!("{ask:?} has no answer after the restart: {why}")),
            }
        }
        let fresh: Vec<Reply> = self.replies[self.reckoned..].iter().step_by(7).cloned().collect();
        for reply in &fresh {
            self.check_replay(server, reply).await?;
        }
        self.reckoned = self.replies.len();
        self.check_books(server).await
    }

    /// Every charge that was acknowledged.
    pub fn charges(&self) -> impl Iterator<Item = &str> {
        let made = self.replies.iter().filter(|reply| reply.ask.kind != Kind::Pay);
        made.map(|reply| reply.txid.as_str())
    }

    /// How long each acknowledged request took, from the `first` on.
    pub fn latencies(&self, first: usize) -> impl Iterator<Item = Duration> {
        self.replies[first.min(self.replies.len())..].iter().map(|reply| reply.took)
    }

    /// How many requests were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.replies.len()
    }

    /// How many requests have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.unknown.len()
    }

    /// What there was instead of their answers.
    pub fn failures(&self) -> Vec<&str> {
        self.unknown.iter().map(|(_, why)| why.as_str()).collect()
    }

    /// Repeats a request that was acknowledged since the last reckoning, chosen by `number`; false
    /// when there was no clear answer.
    pub async fn repeat(&self, server: &Server, number: u64) -> Result<bool, String> {
        let recent = &self.replies[self.reckoned..];
        let reply = &recent[usize::try_from(number % recent.len() as u64).unwrap_or_default()];
        match send(&self.client, &server.public, &self.api_key, &reply.ask).await {
            Answer::Body(body) => self.same(reply, &body).map(|()| true),
            Answer::Unknown(_) => Ok(false),
        }
    }

    /// Summary in one line.
    pub fn summary(&self) -> String {
        let (replies, unanswered) = (self.replies.len(), self.unanswered);
        format!("{replies} requests acknowledged, {unanswered} of them only after a crash; none lost, none twice")
    }

    async fn register(&mut self, server: &Server, document: &str) -> Result<(), String> {
        let request = self.client.post(format!("{}/api/sub-recipients", server.public)).bearer_auth(&self.api_key);
        let response = request.json(&recipient(document)).send().await.map_err(|error| error.to_string())?;
        let recipient: Value = response.json().await.map_err(|error| error.to_string())?;
        let id = recipient["id"].as_str().ok_or_else(|| format!("no recipient: {recipient}"))?.to_owned();
        operate(&self.client, server, &format!("/ops/sub-recipients/{id}/approve"), &json!({})).await?;
        self.recipients.push(id);
        Ok(())
    }

    /// An acknowledged charge is there, as in its answer.
    async fn check_charge(&self, server: &Server, reply: &Reply) -> Result<(), String> {
        let url = format!("{}/api/charges/{}", server.public, reply.txid);
        let response =
            self.client.get(url).bearer_auth(&self.api_key).send().await.map_err(|error| error.to_string())?;
        let found = response.status();
        let charge: Value = response.json().await.map_err(|error| error.to_string())?;
        let is_paid = charge["status"] == "CONCLUIDA";
        let is_right = match reply.ask.kind {
            // The acquirer of a pending card charge is asked later; the books say whether it was
            // asked.
            Kind::Card => is_paid || reply.body["status"] == "pending" && charge["status"] == "pending",
            Kind::Pay => is_paid,
            Kind::Pix => is_paid || charge["status"] == "pending",
        };
        if found != StatusCode::OK || !is_right || charge["amount"] != reply.ask.amount {
            return Err(format!("acknowledged, and now {found}: {reply:?} is {charge}"));
        }
        Ok(())
    }

    /// The same request again gives the same answer.
    async fn check_replay(&self, server: &Server, reply: &Reply) -> Result<(), String> {
        match send(&self.client, &server.public, &self.api_key, &reply.ask).await {
            Answer::Body(body) => self.same(reply, &body),
            Answer::Unknown(why) => Err(format!("no answer to a replay of {:?}: {why}", reply.ask)),
        }
    }

    fn same(&self, reply: &Reply, again: &Value) -> Result<(), String> {
        match again["txid"] == reply.body["txid"] && again["status"] == reply.body["status"] {
            true => Ok(()),
            false => Err(format!("answered {} first, then {again}", reply.body)),
        }
    }

    /// The books hold every charge of the log once: a lost or doubled one would show in the sums.
    pub async fn check_books(&self, server: &Server) -> Result<(), String> {
        let url = format!("{}/ops/trial-balance", server.operations);
        let response = self.client.get(url).bearer_auth(OPS_TOKEN).send().await.map_err(|error| error.to_string())?;
        let trial: Value = response.json().await.map_err(|error| error.to_string())?;
        if trial["balanced"] != true {
            return Err("the trial balance does not balance".to_owned());
        }
        let ledger = format!("M-{}", self.merchant);
        let mut paid: HashMap<&str, (&str, i64)> = HashMap::new();
        for reply in &self.replies {
            let account = match reply.ask.kind {
                Kind::Card => "Income:Sales:Card",
                Kind::Pay => "Income:Sales:Pix",
                Kind::Pix => continue,
            };
            paid.insert(&reply.txid, (account, reply.ask.amount));
        }
        for account in ["Income:Sales:Card", "Income:Sales:Pix"] {
            let expected: i64 = paid.values().filter(|(of, _)| *of == account).map(|(_, amount)| amount).sum();
            let rows = trial["accounts"].as_array().into_iter().flatten();
            let row = rows.into_iter().find(|row| row["ledger"] == *ledger && row["account"] == account);
            let booked = row.and_then(|row| row["credits"].as_i64()).unwrap_or_default();
            if booked != expected {
                return Err(format!("{account}: the callers' log says {expected}, the books {booked}"));
            }
        }
        Ok(())
    }
}

/// The body of the registration of a recipient.
pub fn recipient(document: &str) -> Value {
    json!({
        "register_information": {
            "type": "individual", "document_number": document, "name": "Maria", "birthdate": "01/02/1980",
            "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
            "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                "zip_code": "01000000"}
        },
        "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
    })
}

/// Splits of a large charge: its Record takes many chunks of the journal.
const SPLITS_OF_LARGE: usize = 10_000;

/// A card charge, a PIX charge, or the payment of the caller's last PIX charge.
fn next_ask(number: u64, is_large: bool, recipients: &[String], to_pay: Option<Reply>) -> Ask {
    let key = format!("key-{number}");
    if let Some(Reply { ask, txid, .. }) = to_pay {
        let path = format!("/api/sandbox/pix/{txid}/pay");
        return Ask { kind: Kind::Pay, key, path, body: json!({}), amount: ask.amount };
    }
    let split = |recipient: &String| json!({"sub_recipient_id": recipient, "amount": 1_000});
    let (splits, amount): (Vec<Value>, _) = match is_large {
        true => (recipients.iter().cycle().take(SPLITS_OF_LARGE).map(split).collect(), 10_100_000),
        false => (recipients.iter().map(split).collect(), 5_000 + (number % 5_000) as i64),
    };
    if is_large || number.is_multiple_of(3) {
        let valor = format!("{}.{:02}", amount / 100, amount % 100);
        let body = json!({"valor": valor, "nome": "Pedro", "cpf": "12345678909", "splits": splits});
        return Ask { kind: Kind::Pix, key, path: "/api/pix".to_owned(), body, amount };
    }
    let body = json!({
        "amount": amount,
        "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
        "card": {"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039", "cvv": "123"},
        "splits": splits
    });
    Ask { kind: Kind::Card, key, path: "/api/card".to_owned(), body, amount }
}

/// Sends a request; whatever is no clear acknowledgement is unknown, and is asked again later with
/// its key.
async fn send(client: &Client, base: &str, api_key: &str, ask: &Ask) -> Answer {
    let request = client.post(format!("{base}{}", ask.path)).bearer_auth(api_key).header("Idempotency-Key", &ask.key);
    let response = match request.json(&ask.body).send().await {
        Ok(response) => response,
        Err(error) => return Answer::Unknown(error.to_string()),
    };
    let status = response.status();
    match response.json::<Value>().await {
        Ok(body) if status.is_success() => Answer::Body(body),
        Ok(body) => {
            assert!(status.is_server_error() || status == StatusCode::CONFLICT, "{ask:?} was refused: {body}");
            Answer::Unknown(body.to_string())
        }
        Err(error) => Answer::Unknown(error.to_string()),
    }
}

fn remember(ask: Ask, body: Value, took: Duration) -> Reply {
    let txid = body["txid"].as_str().unwrap_or_default().to_owned();
    Reply { ask, txid, body, took }
}

/// A client that goes to the server itself, whatever proxy the environment names.
pub fn client() -> Client {
    let client = Client::builder().no_proxy().timeout(Duration::from_secs(30));
    client.build().expect("a client needs nothing")
}

/// Posts to the operators' listener.
pub async fn operate(client: &Client, server: &Server, path: &str, body: &Value) -> Result<Value, String> {
    let request = client.post(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN).json(body);
    let response = request.send().await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("{path}: {}", response.status()));
    }
    response.json().await.map_err(|error| error.to_string())
}
