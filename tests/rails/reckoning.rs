//! The books against the records of the bridges.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::callers::client;
use testkit::server::{OPS_TOKEN, Server};

use crate::SECOND_TOKEN;
use crate::adyen::Acquirer;
use crate::bridges::{Bridges, carried_out};
use crate::load::{Load, text};

async fn read(server: &Server, path: &str) -> Result<Value, String> {
    let request = client().get(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN);
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body: Value = answer.json().await.map_err(|error| error.to_string())?;
    if status.is_success() { Ok(body) } else { Err(format!("{path}: {body}")) }
}

/// Balances of the platform's accounts, summed over its ledgers, centavos.
async fn platform_balances(server: &Server) -> Result<BTreeMap<String, i64>, String> {
    let (mut balances, mut page) = (BTreeMap::new(), 1);
    loop {
        let trial = read(server, &format!("/ops/trial-balance?page={page}")).await?;
        for row in trial["accounts"].as_array().into_iter().flatten() {
            if text(&row["ledger"]).starts_with("P-") {
                *balances.entry(text(&row["account"])).or_default() += row["balance"].as_i64().unwrap_or_default();
            }
        }
        if trial["pages"].as_u64().unwrap_or_default() <= page {
            return Ok(balances);
        }
        page += 1;
    }
}

/// What the accounts at institutions must have by their records.
fn expected(bridges: &Bridges) -> BTreeMap<&'static str, i64> {
    let (moved, money) = (bridges.moved(), bridges.money.records());
    let by_word = bridges.by_word.lock();
    let fee = |path: &str, amount: i64| if by_word.contains(path) { 0 } else { amount * 3 / 100 };
    let captured = carried_out(&money, "/cards/", fee);
    let refunded = carried_out(&money, "/repayments/", |_, _| 0);
    let of_adyen = bridges.adyen.as_ref().map_or(0, Acquirer::owes);
    [
        ("Assets:Bank:Pix", moved.came_in - moved.gone_back - moved.gone_out),
        ("Assets:Acquirer:Receivable", captured - refunded + of_adyen),
        ("Liabilities:Payers:Refunds", 0),
        ("Liabilities:Suspense", -moved.of_nothing),
    ]
    .into()
}

/// Where the books and the bridges' records differ; empty when all agrees and nothing is unknown.
pub(crate) async fn differences(server: &Server, bridges: &Bridges, load: &Load) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (path, times) in bridges.carried_out().iter().filter(|(_, times)| **times > 1) {
        found.push(format!("{path} was carried out {times} times"));
    }
    found.extend(bridges.violations().iter().map(|violation| format!("violation: {violation}")));
    let balances = platform_balances(server).await?;
    for (account, expected) in expected(bridges) {
        let booked = balances.get(account).copied().unwrap_or_default();
        if booked != expected {
            found.push(format!("{account}: booked {booked}, by the bridges {expected}"));
        }
    }
    found.extend(statuses(server, bridges, load).await?);
    let queue = read(server, "/ops/queue").await?;
    let open = queue["items"].as_array().into_iter().flatten();
    let open = open.filter(|item| matches!(text(&item["kind"]).as_str(), "rail" | "payout"));
    found.extend(open.map(|item| format!("in the queue: {item}")));
    Ok(found)
}

/// Each charge as its bridge has it, and everything that was acknowledged is there.
async fn statuses(server: &Server, bridges: &Bridges, load: &Load) -> Result<Vec<String>, String> {
    let (mut found, mut seen) = (Vec::new(), load.acknowledged());
    let mut of_books = BTreeMap::new();
    for page in 1.. {
        let url = format!("{}/api/charges?per_page=100&page={page}", server.public);
        let answer = client().get(url).bearer_auth(&load.api_key).send().await.map_err(|error| error.to_string())?;
        let list: Value = answer.json().await.map_err(|error| error.to_string())?;
        for charge in list["items"].as_array().into_iter().flatten() {
            of_books.insert(text(&charge["txid"]), text(&charge["status"]));
        }
        if list["pages"].as_u64().unwrap_or_default() <= page {
            break;
        }
    }
    seen.retain(|id| of_books.contains_key(id));
    if seen.is_empty() {
        found.push("no charge was acknowledged: the load came to nothing".to_owned());
    }
    let pix: BTreeMap<_, _> = bridges.pix_charges().into_iter().map(|(id, status, _)| (id, status)).collect();
    let cards: BTreeMap<_, _> = bridges.card_charges().into_iter().collect();
    for (id, status) in pix.iter().chain(&cards) {
        let booked = of_books.get(id).map(String::as_str);
        let is_right = match *status {
            "captured" => booked == Some("CONCLUIDA"),
            "refused" | "not captured" => booked == Some("RECUSADA"),
            // Before it was booked as paid, or after.
            "taken" => matches!(booked, Some("CONCLUIDA" | "RECUSADA")),
            "closed" => matches!(booked, Some("RECUSADA" | "cancelled")),
            "paid" => matches!(booked, Some("CONCLUIDA" | "cancelled" | "pending")),
            _ => matches!(booked, Some("pending" | "cancelled")),
        };
        if !is_right {
            found.push(format!("{id} is {status}, in the books {booked:?}"));
        }
    }
    let unknown = of_books.iter().filter(|(id, status)| {
        *status == "pending" && !pix.contains_key(*id)
            || *status == "CONCLUIDA" && cards.get(*id).is_some_and(|status| !matches!(*status, "captured" | "taken"))
    });
    found.extend(unknown.map(|(id, status)| format!("{id} is {status} in the books, and no bridge says so")));
    Ok(found)
}

/// Two operators end what the queue has as unknown, by the bridge's record.
pub(crate) async fn settle_unknown(server: &Server, bridges: &Bridges) {
    let Ok(queue) = read(server, "/ops/queue").await else { return };
    for item in queue["items"].as_array().into_iter().flatten() {
        let is_unknown = matches!(text(&item["kind"]).as_str(), "rail" | "payout") && item["waits_for"].is_null();
        if !is_unknown {
            continue;
        }
        let id = text(&item["id"]).replace('-', "");
        let paths = ["/cards/", "/payouts/", "/repayments/", "/pix/"].map(|list| format!("{list}{id}"));
        let carried_out = bridges.carried_out();
        let happened = paths.iter().any(|path| carried_out.contains_key(path));
        let reference = if happened && carried_out.contains_key(&paths[1]) {
            format!("E87654321{}", &id[9..])
        } else {
            format!("ref-{id}")
        };
        let outcome = if happened { "happened" } else { "did_not_happen" };
        let body = json!({"outcome": outcome, "reference": reference, "reason": "O banco confirmou por escrito"});
        let url = format!("{}/ops/rail-items/{}/settle", server.operations, text(&item["id"]));
        for token in [OPS_TOKEN, SECOND_TOKEN] {
            let Ok(answer) = client().post(&url).bearer_auth(token).json(&body).send().await else { continue };
            // It may be early, or the order has ended meanwhile.
            if answer.status() == 200 && carried_out.contains_key(&paths[0]) {
                bridges.by_word.lock().insert(paths[0].clone());
            }
        }
    }
}
