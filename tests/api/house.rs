//! House ledger: one operator asks for an entry, another approves it.

use serde_json::{Value, json};

use crate::world::*;

fn sweep() -> Value {
    json!({
        "debit": "Assets:Bank:Own", "credit": "Assets:Bank:Settlement", "amount": 250_000,
        "reason": "Comissão de novembro", "reference": "EXTRATO-17",
    })
}

/// Balances of the house ledger, debits minus credits.
async fn house(world: &World) -> Vec<(String, i64)> {
    let accounts = world.ops_get("/ops/ledgers/P-house/accounts").await.expect(200);
    items(&accounts).iter().map(|row| (text(&row["account"]), row["balance"].as_i64().unwrap())).collect()
}

async fn waiting(world: &World) -> Vec<Value> {
    items(&world.ops_get("/ops/queue?kind=entry").await.expect(200)).to_vec()
}

#[tokio::test]
async fn an_entry_is_booked_when_another_operator_approves_it() {
    let world = World::sandbox().await;
    let entry = world.ops_post("/ops/entries", &sweep()).await.expect(201);
    has_exactly(
        &entry,
        &["id", "status", "debit", "credit", "amount", "reason", "reference", "requested_by", "created_at"],
    );
    assert_eq!((&entry["status"], &entry["requested_by"]), (&json!("pending"), &json!("operator")));
    let id = text(&entry["id"]);
    let queued = json!({
        "kind": "entry", "id": id, "amount": 250_000, "created_at": entry["created_at"], "status": "pending",
        "requested_by": "operator", "debit": entry["debit"], "credit": entry["credit"], "reason": entry["reason"],
        "reference": entry["reference"], "version": 1,
    });
    assert_eq!(waiting(&world).await, std::slice::from_ref(&queued));
    assert!(house(&world).await.is_empty(), "nothing is booked yet");

    let approve = format!("/ops/entries/{id}/approve");
    world.ops_post(&approve, &json!({})).await.refused(409, "second_operator_needed");
    let world = world.restarted().await;
    assert_eq!(waiting(&world).await, [queued], "it outlives the process");
    let key = [("idempotency-key", "approval-1")];
    let approved = world.second_ops_post(&approve, &key, &json!({})).await.expect(200);
    assert_eq!((&approved["status"], &approved["decided_by"]), (&json!("approved"), &json!("second")));
    assert_eq!(world.second_ops_post(&approve, &key, &json!({})).await.expect(200), approved, "once");
    world.second_ops_post(&approve, &[], &json!({})).await.refused(409, "already_decided");
    assert!(waiting(&world).await.is_empty());
    let booked = [("Assets:Bank:Settlement".to_owned(), -250_000), ("Assets:Bank:Own".to_owned(), 250_000)];
    assert_eq!(house(&world).await, booked);
    let world = world.restarted().await;
    assert_eq!(house(&world).await, booked);
    assert_eq!(world.ops_get(&format!("/ops/entries/{id}")).await.expect(200), approved);
    world.check_books().await;

    let audit = world.ops_get("/ops/audit").await.expect(200);
    let rows: Vec<_> = items(&audit).iter().map(|row| [&row["action"], &row["kind"], &row["operator"]]).collect();
    assert_eq!(rows, [["approve", "entry", "second"], ["request", "entry", "operator"]]);
    let exported = world.ops_get("/ops/export?ledger=P-house").await.text;
    let rows: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["ledger"] == "P-house" && row["event"] == "house_entry"), "{exported}");
}

#[tokio::test]
async fn a_rejected_entry_moves_nothing() {
    let world = World::sandbox().await;
    let id = text(&world.ops_post("/ops/entries", &sweep()).await.expect(201)["id"]);
    let path = format!("/ops/entries/{id}");
    let rejected = world.ops_post(&format!("{path}/reject"), &json!({"notes": "Valor errado"})).await.expect(200);
    assert_eq!((&rejected["status"], &rejected["notes"]), (&json!("rejected"), &json!("Valor errado")));
    world.second_ops_post(&format!("{path}/approve"), &[], &json!({})).await.refused(409, "already_decided");
    assert!(waiting(&world).await.is_empty() && house(&world).await.is_empty());
}

#[tokio::test]
async fn an_entry_that_makes_no_sense_is_refused() {
    let world = World::sandbox().await;
    for (field, value) in [
        ("debit", json!("Assets:Platform:Available")),
        ("debit", json!("Income:Commission:Mdr")),
        ("credit", json!("Assets:Bank:Own")),
        ("amount", json!(0)),
        ("amount", json!(1_000_000_000_001_i64)),
        ("reason", json!("")),
        ("reference", json!("x".repeat(101))),
        ("withdrawal", json!({})),
        ("bank", json!("Assets:Bank:Pix")),
    ] {
        let mut body = sweep();
        body[field] = value.clone();
        let refused = world.ops_post("/ops/entries", &body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{value}");
    }
    let merchant = world.merchant().await;
    for id in ["x", &merchant.id, "01890000-0000-8000-8000-000000000000"] {
        world.ops_get(&format!("/ops/entries/{id}")).await.refused(404, "not_found");
        world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.refused(404, "not_found");
    }
    assert!(waiting(&world).await.is_empty());
}

#[tokio::test]
async fn an_entry_is_decided_once_by_many_at_once() {
    let world = World::sandbox().await;
    let id = text(&world.ops_post("/ops/entries", &sweep()).await.expect(201)["id"]);
    let path = format!("/ops/entries/{id}/approve");
    let nothing = json!({});
    let answers = futures_of(8, |_| world.second_ops_post(&path, &[], &nothing)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 409).count(), 7);
    assert_eq!(house(&world).await[1].1, 250_000);
}

#[tokio::test]
async fn one_document_proves_one_entry_unless_it_is_said_to_prove_several() {
    let world = World::sandbox().await;
    let first = text(&world.ops_post("/ops/entries", &sweep()).await.expect(201)["id"]);
    let refused = world.ops_post("/ops/entries", &sweep()).await.refused(409, "reference_repeated");
    assert_eq!((&refused["entry_id"], &refused["errors"][0]["field"]), (&json!(first), &json!("reference")));
    let approve = format!("/ops/entries/{first}/approve");
    world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    world.ops_post("/ops/entries", &sweep()).await.refused(409, "reference_repeated");
    for may_repeat in [json!(false), Value::Null] {
        let body = with(&sweep(), "/reference_repeats", may_repeat);
        world.ops_post("/ops/entries", &body).await.refused(409, "reference_repeated");
    }
    let again = with(&sweep(), "/reference_repeats", json!(true));
    let second = world.ops_post("/ops/entries", &again).await.expect(201);
    assert_ne!(second["id"], first);
    let other = with(&sweep(), "/reference", json!("EXTRATO-18"));
    let rejected = text(&world.ops_post("/ops/entries", &other).await.expect(201)["id"]);
    let notes = json!({"notes": "Valor errado"});
    world.second_ops_post(&format!("/ops/entries/{rejected}/reject"), &[], &notes).await.expect(200);
    world.ops_post("/ops/entries", &other).await.expect(201);
    world
        .ops_post("/ops/entries", &with(&sweep(), "/reference_repeats", json!("yes")))
        .await
        .refused(400, "validation_failed");
}
