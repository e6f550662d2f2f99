//! The same money, asked for many times at once: a recipient's balance by withdrawals, a charge by
//! refunds, a split by anticipations. The process is killed in the middle of the requests, of their
//! repetition, and of the approvals. Never more goes out than there was.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, OPS_TOKEN, Server, must_verify};
use tokio::task::JoinSet;

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// What a recipient can withdraw, in centavos.
const WITHDRAWABLE: i64 = 1_000;
/// What a refund asks for, of a charge of 8,000 centavos: it has room for two.
const REFUND: i64 = 3_000;

/// One request.
#[derive(Clone, Debug)]
struct Ask {
    by_operator: bool,
    path: String,
    body: Value,
    key: String,
}

/// What a round asks for.
struct Prize {
    withdrawer: String,
    anticipator: String,
    charge: String,
    split: String,
}

/// A merchant whose money is asked for.
struct Shop {
    client: Client,
    callers: Callers,
}

/// Rounds on one folder, each with three kills. Gives what went out, or the first promise that was
/// broken.
pub(crate) async fn ask_at_once_and_crash(data: &Path, seeds: impl Iterator<Item = u64>) -> Result<String, String> {
    let launch = Launch::on(data);
    let mut server = Server::start(&launch).await?;
    let shop = Shop { client: client(), callers: Callers::open(&server).await? };
    let mut rounds = 0;
    for seed in seeds {
        let mut chance = Chance(seed);
        let prize = shop.offer(&server, seed).await?;
        let asks = prize.asks(seed);
        for _ in 0..2 {
            shop.ask_and_kill(&server, &asks, chance.below(AT_ONCE as u64)).await?;
            server = Server::start(&launch).await?;
        }
        shop.ask(&server, &asks, None).await?;
        let found = shop.found(&server, &prize).await.map_err(|error| format!("seed {seed}: {error}"))?;
        let approvals = found.approvals(seed);
        shop.ask_and_kill(&server, &approvals, chance.below(AT_ONCE as u64)).await?;
        server = Server::start(&launch).await?;
        shop.ask(&server, &approvals, None).await?;
        // The reconciliation finds, 60 seconds later, a payout that was being ordered at the kill.
        operate(&shop.client, &server, "/ops/sandbox/clock", &json!({"advance_seconds": 130})).await?;
        found.check_payouts(data).map_err(|error| format!("seed {seed}: {error}"))?;
        let again = shop.found(&server, &prize).await.map_err(|error| format!("seed {seed}: {error}"))?;
        if (&again.withdrawal, &again.refunds) != (&found.withdrawal, &found.refunds) {
            return Err(format!("seed {seed}: the approvals changed what there is"));
        }
        shop.check_outcome(&server, &prize).await.map_err(|error| format!("seed {seed}: {error}"))?;
        let balance = shop.read(&server.operations, "/ops/trial-balance", OPS_TOKEN).await?;
        if balance["balanced"] != true {
            return Err(format!("seed {seed}: the trial balance does not balance"));
        }
        rounds += 1;
    }
    server.stop()?;
    must_verify(data)?;
    Ok(format!("{rounds} rounds of {AT_ONCE} requests at once; in each one withdrawal, two refunds, one anticipation"))
}

impl Shop {
    /// Money that can be withdrawn, refunded and anticipated, each once.
    async fn offer(&self, server: &Server, seed: u64) -> Result<Prize, String> {
        let withdrawer = self.recipient(server, 2 * seed).await?;
        let anticipator = self.recipient(server, 2 * seed + 1).await?;
        let pix = json!({"valor": "80.00", "nome": "Pedro", "cpf": "12345678909"});
        let mut shared = pix.clone();
        shared["splits"] = json!([{"sub_recipient_id": withdrawer, "amount": WITHDRAWABLE}]);
        self.paid(server, &shared).await?;
        // More than the charge that is refunded, so that only its amount limits the refunds.
        self.paid(server, &json!({"valor": "500.00", "nome": "Pedro", "cpf": "12345678909"})).await?;
        let charge = self.paid(server, &pix).await?;
        let customer = json!({"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"});
        let card = json!({"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": 12, "exp_year": 2039,
            "cvv": "123"});
        let card = json!({"amount": 10_000, "customer": customer, "credit_card": card,
            "splits": [{"sub_recipient_id": anticipator, "amount": 2_000}]});
        let txid = text(&self.must(server, "/api/card", &card).await?["txid"]);
        Ok(Prize { withdrawer, anticipator, charge, split: format!("{txid}-0") })
    }

    async fn recipient(&self, server: &Server, number: u64) -> Result<String, String> {
        let body = json!({
            "register_information": {
                "type": "individual", "document_number": cpf(number), "name": "Maria", "birthdate": "01/02/1980",
                "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
                "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                    "zip_code": "01000000"}
            },
            "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
        });
        let id = text(&self.must(server, "/api/sub-recipients", &body).await?["id"]);
        operate(&self.client, server, &format!("/ops/sub-recipients/{id}/approve"), &json!({})).await?;
        Ok(id)
    }

    async fn paid(&self, server: &Server, pix: &Value) -> Result<String, String> {
        let txid = text(&self.must(server, "/api/pix", pix).await?["txid"]);
        self.must(server, &format!("/api/sandbox/pix/{txid}/pay"), &json!({})).await?;
        Ok(txid)
    }

    /// Sends all requests at once, and kills the server after this number of answers.
    async fn ask_and_kill(&self, server: &Server, asks: &[Ask], answered: u64) -> Result<(), String> {
        let outcome = self.ask(server, asks, Some(answered)).await;
        server.wait();
        outcome
    }

    /// Sends all requests at once. None that is answered is answered by an error of the server.
    async fn ask(&self, server: &Server, asks: &[Ask], kill_after: Option<u64>) -> Result<(), String> {
        let mut under_way = JoinSet::new();
        for ask in asks {
            let (base, token) = match ask.by_operator {
                true => (&server.operations, OPS_TOKEN),
                false => (&server.public, self.callers.api_key.as_str()),
            };
            let request = self.client.post(format!("{base}{}", ask.path)).bearer_auth(token);
            let request = request.header("Idempotency-Key", &ask.key).json(&ask.body);
            under_way.spawn(async move { request.send().await.map(|answer| answer.status()) });
        }
        let (mut answered, mut failed) = (0, Vec::new());
        while !under_way.is_empty() {
            if kill_after == Some(answered) {
                server.kill();
            }
            match under_way.join_next().await {
                Some(Ok(Ok(status))) if status.is_server_error() => failed.push(status),
                Some(Ok(Err(error))) if kill_after.is_none() => return Err(error.to_string()),
                _ => {}
            }
            answered += 1;
        }
        if failed.is_empty() { Ok(()) } else { Err(format!("the server failed: {failed:?}")) }
    }

    /// What there is of withdrawals, refunds and anticipations. It is an error where that is more
    /// or less than there was money for.
    async fn found(&self, server: &Server, prize: &Prize) -> Result<CarriedOut, String> {
        let of = |recipient: &str, what: &str| format!("/api/dashboard/sub-recipients/{recipient}/{what}");
        let withdrawals = self.items(server, &of(&prize.withdrawer, "withdraw")).await?;
        let [withdrawal] = withdrawals.as_slice() else {
            return Err(format!("one withdrawal has room: {withdrawals:?}"));
        };
        if withdrawal["amount_cents"] != WITHDRAWABLE {
            return Err(format!("another amount is withdrawn: {withdrawal}"));
        }
        let anticipated = self.read(&server.public, &of(&prize.anticipator, "splits"), &self.callers.api_key).await?;
        let available = anticipated["balance"]["available"].as_i64().unwrap_or_default();
        if anticipated["balance"]["pending"] != 0 || !(1..2_000).contains(&available) {
            return Err(format!("one anticipation has room: {anticipated}"));
        }
        let refunds = self.items(server, "/api/refunds").await?;
        let refunds: BTreeSet<String> =
            refunds.iter().filter(|one| one["payment_id"] == *prize.charge).map(|one| text(&one["id"])).collect();
        if refunds.len() != 2 {
            return Err(format!("two refunds have room: {refunds:?}"));
        }
        Ok(CarriedOut { withdrawal: text(&withdrawal["id"]), refunds })
    }

    /// What was approved is paid to the recipient, and given back of the charge, once.
    async fn check_outcome(&self, server: &Server, prize: &Prize) -> Result<(), String> {
        let splits = format!("/api/dashboard/sub-recipients/{}/splits", prize.withdrawer);
        let balance = self.read(&server.public, &splits, &self.callers.api_key).await?["balance"].take();
        if balance != json!({"available": 0, "pending": 0, "paid": WITHDRAWABLE, "reserved": 0, "debt": 0}) {
            return Err(format!("after one withdrawal the recipient has {balance}"));
        }
        let charge =
            self.read(&server.public, &format!("/api/charges/{}", prize.charge), &self.callers.api_key).await?;
        let given_back = &charge["refunded_amount"];
        if *given_back == 2 * REFUND { Ok(()) } else { Err(format!("of two refunds {given_back} were given back")) }
    }

    async fn items(&self, server: &Server, path: &str) -> Result<Vec<Value>, String> {
        let list = self.read(&server.public, path, &self.callers.api_key).await?;
        list["items"].as_array().cloned().ok_or_else(|| format!("{path}: {list}"))
    }

    async fn must(&self, server: &Server, path: &str, body: &Value) -> Result<Value, String> {
        let request =
            self.client.post(format!("{}{path}", server.public)).bearer_auth(&self.callers.api_key).json(body);
        answered(path, request).await
    }

    async fn read(&self, base: &str, path: &str, token: &str) -> Result<Value, String> {
        answered(path, self.client.request(Method::GET, format!("{base}{path}")).bearer_auth(token)).await
    }
}

impl Prize {
    /// This number of requests for the same money, each with a key of its own.
    fn asks(&self, seed: u64) -> Vec<Ask> {
        let of = |recipient: &str, what: &str| format!("/api/dashboard/sub-recipients/{recipient}/{what}");
        let ask = |number: usize| {
            let (path, body) = match number % 3 {
                0 => (of(&self.withdrawer, "withdraw"), json!({})),
                1 => ("/api/refunds".to_owned(), json!({"payment_id": self.charge, "amount": REFUND})),
                _ => (of(&self.anticipator, "anticipate"), json!({"split_ids": [self.split], "target_days": 2})),
            };
            Ask { by_operator: false, path, body, key: format!("at-once-{seed}-{number}") }
        };
        (0..AT_ONCE).map(ask).collect()
    }
}

/// What of the requests was carried out.
struct CarriedOut {
    withdrawal: String,
    refunds: BTreeSet<String>,
}

impl CarriedOut {
    /// Approvals of each, many times at once.
    fn approvals(&self, seed: u64) -> Vec<Ask> {
        let mut paths: Vec<String> = self.refunds.iter().map(|id| format!("/ops/refunds/{id}/approve")).collect();
        paths.push(format!("/ops/withdrawals/{}/approve", self.withdrawal));
        let paths = paths.into_iter().cycle().take(AT_ONCE).enumerate();
        paths
            .map(|(number, path)| Ask {
                by_operator: true,
                path,
                body: json!({}),
                key: format!("decided-{seed}-{number}"),
            })
            .collect()
    }

    /// The institution sent the withdrawal once.
    fn check_payouts(&self, data: &Path) -> Result<(), String> {
        let record = std::fs::read_to_string(data.join("sandbox/payouts")).map_err(|error| error.to_string())?;
        let sent: Vec<&str> = record.lines().filter(|line| line.starts_with(&self.withdrawal)).collect();
        let expected = format!("{} {WITHDRAWABLE}", self.withdrawal);
        match sent.as_slice() {
            [once] if once.starts_with(&expected) => Ok(()),
            _ => Err(format!("{expected} should be sent once: {sent:?}")),
        }
    }
}

async fn answered(path: &str, request: reqwest::RequestBuilder) -> Result<Value, String> {
    let response = request.send().await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body: Value = response.json().await.map_err(|error| error.to_string())?;
    if status.is_success() { Ok(body) } else { Err(format!("{path}: {body}")) }
}

/// A valid CPF, one for each number.
fn cpf(number: u64) -> String {
    let mut digits: Vec<u64> =
        format!("{:09}", 300_000_000 + number).bytes().map(|byte| u64::from(byte - b'0')).collect();
    for _ in 0..2 {
        let sum: u64 = digits.iter().rev().zip(2..).map(|(digit, weight)| digit * weight).sum();
        digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
    }
    digits.iter().map(u64::to_string).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
