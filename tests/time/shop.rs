//! One merchant with recipients, at one server under a clock of the test's own.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, Server};

use testkit::wall_clock::WallClock;

/// A server with one merchant's callers, under a clock of the test's own.
pub(crate) struct Shop {
    pub(crate) server: Server,
    pub(crate) callers: Callers,
}

/// How long any request may take: whatever the wall clock does, nobody waits for it.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// What the first recipient gets of each charge.
pub(crate) const SPLIT: i64 = 1_500;

impl Shop {
    pub(crate) async fn open(data: &Path, clock: &WallClock) -> Result<Self, String> {
        let server = Server::start(&clock.rule(Launch::on(data))).await?;
        let callers = Callers::open(&server).await?;
        Ok(Self { server, callers })
    }

    /// The same after a good end.
    pub(crate) async fn restarted(self, data: &Path, clock: &WallClock) -> Result<Self, String> {
        self.server.stop()?;
        let server = Server::start(&clock.rule(Launch::on(data))).await?;
        Ok(Self { server, callers: self.callers })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        let request = client().get(format!("{}{path}", self.server.public)).bearer_auth(&self.callers.api_key);
        answer(path, request.timeout(ANSWERED_WITHIN)).await
    }

    pub(crate) async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Result<Value, String> {
        let request = client().post(format!("{}{path}", self.server.public)).bearer_auth(&self.callers.api_key);
        let request = key.into_iter().fold(request, |request, key| request.header("Idempotency-Key", key));
        answer(path, request.timeout(ANSWERED_WITHIN).json(body)).await
    }

    /// Moves the sandbox clock and gives the time.
    pub(crate) async fn advance(&self, seconds: i64) -> Result<DateTime<Utc>, String> {
        let body = json!({"advance_seconds": seconds});
        let moved = operate(&client(), &self.server, "/ops/sandbox/clock", &body).await?;
        Ok(time(&moved["now"]))
    }

    /// Moves the sandbox clock to a whole second.
    pub(crate) async fn advance_to(&self, target: DateTime<Utc>) -> Result<(), String> {
        let now = self.advance(0).await?;
        let reached = self.advance((target - now).num_seconds()).await?;
        if reached == target { Ok(()) } else { Err(format!("the clock stands at {reached}, not at {target}")) }
    }

    /// Charges a card, and gives the time at which the split of the first recipient will be
    /// available.
    pub(crate) async fn charge_card(&self) -> Result<DateTime<Utc>, String> {
        let body = json!({
            "amount": 10_000,
            "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
            "card": {"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039",
                "cvv": "123"},
            "splits": [{"sub_recipient_id": self.callers.recipients[0], "amount": SPLIT}]
        });
        self.post("/api/card", None, &body).await?;
        let statement = self.statement().await?;
        Ok(time(&statement["items"][0]["payment"]["balance_available_at"]))
    }

    /// Creates a PIX charge that expires after this number of seconds.
    pub(crate) async fn pix(&self, key: Option<&str>, expires_in: i64) -> Result<Value, String> {
        let body = json!({"valor": "12.34", "nome": "Pedro", "cpf": "12345678909", "expires_in": expires_in});
        self.post("/api/pix", key, &body).await
    }

    /// The first recipient's statement.
    pub(crate) async fn statement(&self) -> Result<Value, String> {
        self.get(&format!("/api/dashboard/sub-recipients/{}/splits?per_page=100", self.callers.recipients[0])).await
    }

    /// Available and pending money of the first recipient, centavos. The items must agree with the
    /// sums.
    pub(crate) async fn balance(&self) -> Result<[i64; 2], String> {
        let statement = self.statement().await?;
        let sums = ["available", "pending"].map(|name| statement["balance"][name].as_i64().unwrap());
        let items = statement["items"].as_array().unwrap();
        let with = |status: &str| items.iter().filter(|item| item["status"] == status).count() as i64 * SPLIT;
        match sums == [with("available"), with("pending")] {
            true => Ok(sums),
            false => Err(format!("the items do not add up to the balance: {statement}")),
        }
    }
}

async fn answer(path: &str, request: reqwest::RequestBuilder) -> Result<Value, String> {
    let response = request.send().await.map_err(|error| format!("{path}: {error}"))?;
    let (status, text) = (response.status(), response.text().await.map_err(|error| format!("{path}: {error}"))?);
    match serde_json::from_str(&text) {
        Ok(body) if status.is_success() => Ok(body),
        _ => Err(format!("{path}: {status} {text}")),
    }
}

/// A timestamp of the interface.
pub(crate) fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap_or_default().parse().unwrap_or_else(|_| panic!("{value} is no time"))
}
