//! Callers that charge until the test stops them, and remember in order what was acknowledged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::Client;
use serde_json::{Value, json};
use testkit::server::{OPS_TOKEN, Server};
use tokio::task::JoinHandle;

/// Callers at once.
const CALLERS: usize = 8;

/// A charge that was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct KeyedAnswer {
    key: String,
    body: Value,
}

/// A merchant with one recipient, and the answers that its callers got.
pub(crate) struct Callers {
    client: Client,
    public: String,
    api_key: String,
    recipient: String,
    keys: Arc<AtomicU64>,
    answers: Arc<Mutex<Vec<KeyedAnswer>>>,
}

/// Callers that charge.
pub(crate) struct Load {
    ending: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Waits until each has its last answer.
    pub(crate) async fn end(self) {
        self.ending.store(true, Ordering::Release);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

impl Callers {
    pub(crate) async fn open(server: &Server) -> Self {
        let client = Client::new();
        let merchant =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
        let merchant = operate(&client, server, "/ops/merchants", &merchant).await;
        let path = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
        let api_key = operate(&client, server, &path, &json!({})).await["api_key"].as_str().unwrap().to_owned();
        let recipient = json!({
            "register_information": {
                "type": "individual", "document_number": "12345678909", "name": "Maria", "birthdate": "01/02/1980",
                "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
                "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                    "zip_code": "01000000"}
            },
            "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
        });
        let request = client.post(format!("{}/api/sub-recipients", server.public)).bearer_auth(&api_key);
        let recipient: Value = request.json(&recipient).send().await.unwrap().json().await.unwrap();
        let recipient = recipient["id"].as_str().unwrap().to_owned();
        operate(&client, server, &format!("/ops/sub-recipients/{recipient}/approve"), &json!({})).await;
        let public = server.public.clone();
        Self { client, public, api_key, recipient, keys: Arc::default(), answers: Arc::default() }
    }

    /// Charges until the load is ended.
    pub(crate) fn charge(&self) -> Load {
        self.charge_at(&self.public)
    }

    /// Charges at another server that has the merchant, until the load is ended.
    pub(crate) fn charge_at(&self, public: &str) -> Load {
        let ending = Arc::new(AtomicBool::new(false));
        let tasks = (0..CALLERS).map(|_| {
            let (client, ending, keys) = (self.client.clone(), Arc::clone(&ending), Arc::clone(&self.keys));
            let (public, api_key, answers) = (public.to_owned(), self.api_key.clone(), Arc::clone(&self.answers));
            let recipient = self.recipient.clone();
            tokio::spawn(async move {
                while !ending.load(Ordering::Acquire) {
                    let key = format!("key-{}", keys.fetch_add(1, Ordering::Relaxed));
                    let body = send(&client, &public, &api_key, &recipient, &key).await;
                    answers.lock().unwrap().push(KeyedAnswer { key, body });
                }
            })
        });
        let tasks = tasks.collect();
        Load { ending, tasks }
    }

    /// What was acknowledged so far.
    pub(crate) fn answers(&self) -> Vec<KeyedAnswer> {
        self.answers.lock().unwrap().clone()
    }

    /// Each of these charges is there, and its request gives the same answer again.
    pub(crate) async fn check(&self, server: &Server, answers: &[KeyedAnswer]) {
        for (at, KeyedAnswer { key, body }) in answers.iter().enumerate() {
            let charge = self.get(&format!("{}/api/charges/{}", server.public, body["txid"].as_str().unwrap())).await;
            assert_eq!(charge["status"], "CONCLUIDA", "{key}: {charge}");
            if at % 5 == 0 {
                let again = send(&self.client, &server.public, &self.api_key, &self.recipient, key).await;
                assert_eq!(again, *body, "{key}");
            }
        }
    }

    /// The trial balance, the recipient's statement and the merchant's balance.
    pub(crate) async fn books(&self, server: &Server) -> [Value; 3] {
        let url = format!("{}/ops/trial-balance", server.operations);
        let trial = self.client.get(url).bearer_auth(OPS_TOKEN).send().await.unwrap().json().await.unwrap();
        let statement = format!("{}/api/dashboard/sub-recipients/{}/splits", server.public, self.recipient);
        [trial, self.get(&statement).await, self.get(&format!("{}/api/balance", server.public)).await]
    }

    /// How many Records a server has.
    pub(crate) async fn sequence(&self, server: &Server) -> u64 {
        let url = format!("{}/ops/trial-balance?by=account", server.operations);
        let trial: Value = self.client.get(url).bearer_auth(OPS_TOKEN).send().await.unwrap().json().await.unwrap();
        let cut = trial["cut"].as_object().unwrap().values();
        cut.map(|sequence| sequence.as_u64().unwrap()).sum()
    }

    async fn get(&self, url: &str) -> Value {
        let response = self.client.get(url).bearer_auth(&self.api_key).send().await.unwrap();
        assert!(response.status().is_success(), "{url}: {}", response.status());
        response.json().await.unwrap()
    }
}

async fn send(client: &Client, public: &str, api_key: &str, recipient: &str, key: &str) -> Value {
    let body = json!({
        "amount": 5_000,
        "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
        "card": {"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039", "cvv": "123"},
        "splits": [{"sub_recipient_id": recipient, "amount": 1_000}]
    });
    let request = client.post(format!("{public}/api/card")).bearer_auth(api_key).header("Idempotency-Key", key);
    let response = request.json(&body).send().await.unwrap();
    assert!(response.status().is_success(), "{key}: {}", response.status());
    response.json().await.unwrap()
}

async fn operate(client: &Client, server: &Server, path: &str, body: &Value) -> Value {
    let request = client.post(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN).json(body);
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.json().await.unwrap()
}
