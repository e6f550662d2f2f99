//! Batches of the acquirer: money is at the bank when the acquirer has paid it, installment by
//! installment; refunds and disputes are taken from a later batch.

use serde_json::{Value, json};

use crate::world::*;

const DAY: i64 = 24 * 60 * 60;

/// The platform's shard of the merchant's group: what the acquirer owes, what is at the bank, and
/// the acquirer's fees.
async fn platform(merchant: &Merchant<'_>) -> [i64; 3] {
    let accounts = merchant.world.accounts().await;
    ["Assets:Acquirer:Receivable", "Assets:Bank:Settlement", "Expenses:Acquirer:Mdr"]
        .map(|account| accounts.get(&(format!("P-{}", merchant.id), account.to_owned())).copied().unwrap_or_default())
}

async fn charged(merchant: &Merchant<'_>, body: &Value) -> String {
    text(&merchant.post("/api/card", body).await.expect(201)["txid"])
}

async fn post(world: &World, path: &str) {
    world.ops_send(reqwest::Method::POST, path, &[], String::new()).await.expect(200);
}

#[tokio::test]
async fn the_acquirer_pays_in_batches_and_takes_back_from_later_ones() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = charged(&merchant, &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await;
    let [debit_net, _, debit_fee] = platform(&merchant).await;
    assert_eq!([debit_net, debit_fee], [9_701, 299]);
    let credit = charged(&merchant, &with(&card(10_000, APPROVED), "/installments", json!(3))).await;
    let [owed, _, fees] = platform(&merchant).await;
    let credit_net = owed - debit_net;
    assert_eq!(credit_net + fees - debit_fee, 10_000);

    world.advance(4 * DAY).await;
    assert_eq!(platform(&merchant).await, [credit_net, debit_net, fees], "a business day after its capture");
    let world_at = world.engine().now();
    world.advance(30 * DAY).await;
    let [owed, bank, _] = platform(&merchant).await;
    assert_eq!(owed + bank, credit_net + debit_net);
    let paid = bank - debit_net;
    assert!((paid - credit_net / 3).abs() <= 1, "the first of three installments, not {paid} of {credit_net}");
    assert!(world.engine().now() > world_at);

    let body = json!({"payment_id": debit, "amount": 4_000});
    let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    post(&world, &format!("/ops/refunds/{refund}/approve")).await;
    let body = json!({"amount": 1_000, "kind": "chargeback", "reason": "Compra não reconhecida"});
    let dispute = world.ops_post(&format!("/ops/charges/{credit}/disputes"), &body).await.expect(201);
    post(&world, &format!("/ops/disputes/{}/accept", text(&dispute["id"]))).await;
    assert_eq!(platform(&merchant).await, [owed - 5_000, bank, fees], "not yet taken");

    world.advance(4 * DAY).await;
    assert_eq!(platform(&merchant).await, [owed, bank - 4_000 + 120 - 1_000, fees - 120], "with the refund's fee");
    world.advance(62 * DAY).await;
    assert_eq!(platform(&merchant).await, [0, credit_net + debit_net - 5_000 + 120, fees - 120], "all is paid");
    world.check_books().await;
}

#[tokio::test]
async fn a_batch_is_booked_once_also_after_a_restart() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (id, key) = (merchant.id.clone(), charged(&merchant, &card(10_000, APPROVED)).await);
    world.advance(33 * DAY).await;
    assert_eq!(platform(&merchant).await, [0, 9_701, 299]);
    let sequence = world.cut().await;
    drop(merchant);
    let world = world.restarted().await;
    world.advance(10 * DAY).await;
    let accounts = world.accounts().await;
    assert_eq!(accounts.get(&(format!("P-{id}"), "Assets:Bank:Settlement".to_owned())), Some(&9_701), "{key}");
    assert_eq!(world.cut().await, sequence + 1, "the clock's Record only");
}
