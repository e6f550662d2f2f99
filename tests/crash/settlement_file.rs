//! A settlement report whose booking breaks off: the server is killed between its batches, again
//! and again. Each time the same report is sent once more; in the end every line is booked once.

use std::path::Path;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use testkit::callers::{Callers, client};
use testkit::server::{Launch, OPS_TOKEN, Server, must_verify};

/// Token of the second operator.
const SECOND_TOKEN: &str = "second-operator-of-the-test-32-characters";
/// Batches of the report. Each settles one installment of every charge, and has a fee of no charge.
const BATCHES: usize = 12;
/// Merchants, each with one charge.
const MERCHANTS: usize = 16;
/// Numbers of booked batches at which the server is killed.
const KILLED_AT: [usize; 3] = [1, 4, 8];
/// What the acquirer pays for an installment, centavos.
const NET: usize = 970;
/// The fee of a batch, centavos.
const FEE: usize = 198;

/// Books a report across kills. Gives how many batches were booked at each, or the first promise
/// that was broken.
pub(crate) async fn book_and_crash(data: &Path) -> Result<String, String> {
    let launch = Launch::on(data).with("CENTAVO_OPS_TOKEN", format!("first:{OPS_TOKEN},second:{SECOND_TOKEN}"));
    let launch = launch.with("CENTAVO_OPS_ROLES", "first=admin,second=decide");
    let (client, mut server) = (client(), Server::start(&launch).await?);
    let mut charges = Vec::new();
    for _ in 0..MERCHANTS {
        let shop = Callers::open(&server).await?;
        let txid = charge(&client, &server, &shop.api_key).await?;
        charges.push((shop.merchant, txid));
    }
    let report = report(charges.iter().map(|(_, txid)| txid.as_str()));
    let asked = send(&client, &server, OPS_TOKEN, &report).await?;
    if asked != StatusCode::ACCEPTED {
        return Err(format!("the report waits for a second operator, and not: {asked}"));
    }
    let mut broken_off = Vec::new();
    for number in KILLED_AT {
        let kill = async {
            while booked(&client, &server).await?.len() < number {}
            server.kill();
            Ok::<_, String>(())
        };
        let (_cut_off, killed) = tokio::join!(send(&client, &server, SECOND_TOKEN, &report), kill);
        killed?;
        server.wait();
        server = Server::start(&launch).await?;
        broken_off.push(booked(&client, &server).await?.len());
        if broken_off.last() == Some(&BATCHES) {
            break;
        }
    }
    if !(1..BATCHES).contains(&broken_off[0]) {
        return Err(format!("no booking broke off between two batches: {broken_off:?}"));
    }
    // Any operator may end what two have approved. Then there is nothing left to book.
    if broken_off.last() < Some(&BATCHES) {
        let ended = send(&client, &server, OPS_TOKEN, &report).await?;
        if ended != StatusCode::OK {
            return Err(format!("after {broken_off:?} batches the rest of the report is not booked: {ended}"));
        }
    }
    let again = send(&client, &server, SECOND_TOKEN, &report).await?;
    if again != StatusCode::CONFLICT {
        return Err(format!("a booked report is taken again: {again}"));
    }
    check(&client, &server, &charges, report).await?;
    server.stop()?;
    must_verify(data)?;
    Ok(format!("{BATCHES} batches of {MERCHANTS} merchants, broken off after {broken_off:?}"))
}

/// A card charge in as many installments as the report has batches.
async fn charge(client: &Client, server: &Server, api_key: &str) -> Result<String, String> {
    let customer = json!({"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"});
    let card = json!({"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": 12, "exp_year": 2039,
        "cvv": "123"});
    let body = json!({"amount": 12_000, "installments": BATCHES, "customer": customer, "credit_card": card});
    let request = client.post(format!("{}/api/card", server.public)).bearer_auth(api_key).json(&body);
    let answer: Value = json_of(request).await?;
    answer["txid"].as_str().map(str::to_owned).ok_or_else(|| format!("no charge: {answer}"))
}

/// Adyen's report of all batches.
fn report<'a>(charges: impl Iterator<Item = &'a str> + Clone) -> String {
    let head = "Merchant Account,Psp Reference,Merchant Reference,Creation Date,Type,Modification Reference,\
                Gross Currency,Gross Debit (GC),Gross Credit (GC),Net Currency,Net Debit (NC),Net Credit (NC),\
                Modification Merchant Reference,Batch Number\n";
    let batch = |number: usize| {
        let row = |charge: &str, kind: &str, gross: &str, net: &str| {
            format!("Loja,PSP{number},{charge},2026-11-27 03:12:45,{kind},,BRL,{gross},BRL,{net},,{number}\n")
        };
        let settled: String = charges.clone().map(|charge| row(charge, "Settled", ",10.00", ",9.70")).collect();
        settled + &row("", "Fee", ",", "1.98,")
    };
    head.to_owned() + &(1..=BATCHES).map(batch).collect::<String>()
}

async fn send(client: &Client, server: &Server, token: &str, report: &str) -> Result<StatusCode, String> {
    let request = client.post(format!("{}/ops/batches", server.operations)).bearer_auth(token);
    let sent = request.header("content-type", "text/csv").body(report.to_owned()).send().await;
    sent.map(|answer| answer.status()).map_err(|error| error.to_string())
}

/// The references of the batches that are booked, newest first.
async fn booked(client: &Client, server: &Server) -> Result<Vec<Value>, String> {
    let list = client.get(format!("{}/ops/batches?per_page=100", server.operations)).bearer_auth(OPS_TOKEN);
    let batches = json_of(list).await?["items"].as_array().cloned().unwrap_or_default();
    Ok(batches.iter().map(|batch| batch["batch"].clone()).collect())
}

async fn json_of(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let response = request.send().await.map_err(|error| error.to_string())?;
    response.json().await.map_err(|error| error.to_string())
}

/// Every batch is booked once and in order, every line once, and the report agrees with the books.
async fn check(client: &Client, server: &Server, charges: &[(String, String)], report: String) -> Result<(), String> {
    let expected: Vec<_> = (1..=BATCHES).rev().map(|number| json!(format!("ADYEN-Loja-{number}"))).collect();
    let batches = booked(client, server).await?;
    if batches != expected {
        return Err(format!("batches are absent, twice or in another order: {batches:?}"));
    }
    let trial = json_of(client.get(format!("{}/ops/trial-balance", server.operations)).bearer_auth(OPS_TOKEN)).await?;
    let debits = |ledger: &str, account: &str| {
        let rows = trial["accounts"].as_array().into_iter().flatten();
        let found = rows.into_iter().find(|row| row["ledger"] == *ledger && row["account"] == *account);
        found.and_then(|row| row["debits"].as_u64()).unwrap_or_default()
    };
    for (merchant, _) in charges {
        let paid = debits(&format!("P-{merchant}"), "Assets:Bank:Settlement");
        if paid != (BATCHES * NET) as u64 {
            return Err(format!("{BATCHES} installments of {NET} are booked as {paid}"));
        }
    }
    let fees = debits("P-house", "Liabilities:Suspense");
    if fees != (BATCHES * FEE) as u64 || trial["balanced"] != true {
        return Err(format!("{BATCHES} fees of {FEE} are booked as {fees}"));
    }
    let compared = client.post(format!("{}/ops/reconciliations", server.operations)).bearer_auth(OPS_TOKEN);
    let found = json_of(compared.header("content-type", "text/csv").body(report)).await?;
    match [&found["matched"], &found["in_suspense"]] == [BATCHES * MERCHANTS, BATCHES] {
        true => Ok(()),
        false => Err(format!("the report and the books differ: {found}")),
    }
}
