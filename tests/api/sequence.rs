//! `Centavo-Sequence`: the answer of each request that wrote a Record names that Record. The routes
//! are those that the description lists, so a new command is held to this without being named here.

use reqwest::Method;
use serde_json::json;
use store::cut::{Cut, Position};
use store::{Partition, Sequence};

use crate::description::Operation;
use crate::makers::make;
use crate::world::*;

/// Commands that write nothing.
const READS: [&str; 9] = [
    "/simulate",
    "/quote",
    "/redeliver",
    "/test",
    "/dismiss",
    "/explain",
    "/clock/confirm",
    "/ops/exports",
    "/api/reports",
];

/// The Record that an answer names.
fn named(answer: &Answer) -> Option<Position> {
    let sequence = answer.header("centavo-sequence")?.parse().unwrap();
    let partition = answer.header("centavo-partition").map_or(0, |partition| partition.parse().unwrap());
    Some(Position { partition: Partition(partition), sequence: Sequence(sequence) })
}

/// The Records after a cut that somebody asked for.
async fn requested_after(world: &World, before: &Cut) -> Vec<Position> {
    let mut records = world.since(before).await;
    records.retain(|at| world.engine().record(*at).unwrap().is_requested());
    records
}

#[tokio::test]
async fn every_command_names_its_record_and_a_replay_the_first_one() {
    let world = World::sandbox().await;
    let operations = world.description.operations();
    let mut commands = 0;
    // The charges of a batch write a Record each.
    let is_one = |operation: &Operation| operation.path != "/api/charges/batch";
    let changes =
        |operation: &&Operation| operation.method != "GET" && operation.example_file().is_none() && is_one(operation);
    for operation in operations.iter().filter(changes) {
        let owner = world.merchant().await;
        let id = if operation.kind().is_some() { make(&owner, operation).await } else { String::new() };
        let mut body = operation.body_for(&owner, &id).await.map(|body| body.to_string()).unwrap_or_default();
        let (method, path) = (operation.method.parse::<Method>().unwrap(), operation.path_of(&id));
        let credential = bearer(if operation.is_of_operators() { OPS_TOKEN } else { &owner.key });
        let headers =
            [("authorization", credential.as_str()), ("content-type", "application/json"), ("idempotency-key", "k")];
        // So that there is something to change.
        if operation.is_of_operators() {
            for (end, begin) in [
                ("/resume", "/suspend"),
                ("/release-payouts", "/hold-payouts"),
                ("/unfreeze", "/freeze"),
                ("/reopen", "/close"),
            ] {
                if path.ends_with(end) {
                    world.ops_post(&path.replace(end, begin), &json!({"reason": "x"})).await.expect(200);
                }
            }
        } else if path.ends_with("/resume") {
            owner.post(&path.replace("/resume", "/pause"), &json!({})).await.expect(200);
        }
        if path == "/api/webhooks/test" {
            owner.has_address().await;
        }
        let is_labelled = ["/api/charges/", "/api/cashout/", "/api/refunds/"].iter().any(|of| path.starts_with(of));
        if method == Method::PATCH && is_labelled {
            body = json!({"metadata": {"loja": "azul"}}).to_string();
        }
        if method == Method::PATCH && (path.starts_with("/ops/api-keys/") || path.starts_with("/api/keys/")) {
            body = json!({"webhook_url": "http://127.0.0.1:9/"}).to_string();
        }
        let before = world.cut().await;
        let answer = world.send(method.clone(), &path, &headers, body.clone()).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text);
        if READS.iter().any(|end| path.ends_with(end)) {
            assert_eq!(named(&answer), None, "{method} {path}");
            continue;
        }
        let recorded = requested_after(&world, &before).await;
        assert_eq!(recorded.len(), 1, "{method} {path}: {recorded:?}");
        assert_eq!(named(&answer), Some(recorded[0]), "{method} {path}");
        // Each look at personal data is a Record of its own.
        if method == Method::POST && !["/reveal", "/people"].iter().any(|end| path.ends_with(end)) {
            let again = world.send(method.clone(), &path, &headers, body).await;
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}: {}", again.text);
            assert_eq!(named(&again), named(&answer), "{path}");
        }
        commands += 1;
    }
    assert!(commands >= 25, "{commands} commands");
}

#[tokio::test]
async fn an_answer_without_a_record_names_none() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let pix_charge = merchant.post("/api/pix", &pix("10.00")).await;
    let txid = text(&pix_charge.body["txid"]);
    let refused = [
        merchant.get(&format!("/api/charges/{txid}")).await,
        merchant.post("/api/pix", &json!({"txid": txid})).await,
        merchant.post("/api/card", &with(&card(1, APPROVED), "/amount", json!("1"))).await,
        merchant.post("/api/card", &with_splits(card(100, APPROVED), &[(&recipient, 100)])).await,
        merchant.withdraw(&recipient).await,
        merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 100})).await,
        // It changes nothing: the recipient is there already.
        merchant.post("/api/sub-recipients", &individual("Ana", &cpf(1))).await,
    ];
    for answer in &refused {
        assert_eq!(named(answer), None, "{}", answer.text);
    }
    assert_eq!(refused.map(|answer| answer.status), [200, 200, 400, 400, 422, 422, 200]);
}

/// A declined card and a cashout that the institution did not take are answered with a problem, and
/// are in the journal.
#[tokio::test]
async fn a_declined_command_names_its_record_too() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    let declined = merchant.post("/api/card", &card(10_000, REFUSED)).await;
    let body = json!({"amount": 1_000, "pix_key": "down@example.com", "pix_key_type": "email"});
    let not_taken = merchant.post("/api/cashout", &body).await;
    assert_eq!((declined.status, not_taken.status), (402, 502));
    assert!(named(&declined).is_some() && named(&not_taken) > named(&declined));
}
