//! A minimal client: opens a split card charge against a running demo, and looks it up.
//!
//! ```text
//! cargo run --release -- demo                # prints an API key and three recipients
//! CENTAVO_API_KEY=test_… cargo run --example client
//! ```
//!
//! `CENTAVO_URL` says where the merchants' listener is, `http://127.0.0.1:8080` when absent.

use std::env;
use std::error::Error;

use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("CENTAVO_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let key = env::var("CENTAVO_API_KEY").map_err(|_| "CENTAVO_API_KEY is not set; the demo prints one")?;
    let client = reqwest::Client::new();

    let recipients = client.get(format!("{url}/api/dashboard/sub-recipients")).bearer_auth(&key).send().await?;
    let recipients = body(recipients).await?;
    let active = recipients["items"].as_array().into_iter().flatten().find(|item| item["status"] == "active");
    let recipient = active.ok_or("the account has no active recipient")?["id"].clone();

    let charge = json!({
        "amount": 10_000,
        "customer": {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"},
        "credit_card": {"number": "4111111111111111", "holder_name": "MARIA SOUZA", "exp_month": 12, "exp_year": 2039, "cvv": "123"},
        "splits": [{"sub_recipient_id": recipient, "amount": 3_500}],
    });
    // The same key and body again, after an answer that was lost, gives the same charge: no second
    // one is made.
    let request = client.post(format!("{url}/api/card")).bearer_auth(&key).header("Idempotency-Key", order_id());
    let opened = body(request.json(&charge).send().await?).await?;
    println!(
        "{} {}: the seller gets {} centavos",
        opened["txid"], opened["status"], opened["breakdown"]["sellerAmount"]
    );

    let txid = opened["txid"].as_str().ok_or("an answer without a txid")?;
    let found = body(client.get(format!("{url}/api/charges/{txid}")).bearer_auth(&key).send().await?).await?;
    println!("{found:#}");
    Ok(())
}

/// The body of an answer. An error of the service has a message for people and a code for programs.
async fn body(answer: reqwest::Response) -> Result<Value, Box<dyn Error>> {
    let status = answer.status();
    let body: Value = answer.json().await?;
    if status.is_success() {
        return Ok(body);
    }
    Err(format!("{status} {}: {} ({})", body["code"], body["detail"], body["errors"]).into())
}

/// In a shop this is the order's own number, which is known before the first try.
fn order_id() -> String {
    format!("order-{}", std::process::id())
}
