//! Suspension of a merchant and hold of its payouts, with their reasons.

use serde_json::{Value, json};

use crate::world::*;

async fn change(world: &World, merchant: &Merchant<'_>, what: &str) -> Value {
    let path = format!("/ops/merchants/{}/{what}", merchant.id);
    world.ops_post(&path, &json!({"reason": format!("por {what}")})).await.expect(200)
}

/// A suspended merchant creates nothing and pays nothing out; what is open goes on.
#[tokio::test]
async fn a_suspended_merchant_creates_no_charges() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let open = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
    let plan = json!({"tag": "Plano", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 12,
        "initialGraceCycles": 1});
    let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
    let subscribe =
        json!({"plan_id": plan, "customer": card(1, APPROVED)["customer"].clone(), "payment_method": "pix"});
    let subscription = text(&merchant.post("/api/recurrency/subscriptions", &subscribe).await.expect(201)["id"]);
    let shown = change(&world, &merchant, "suspend").await;
    assert_eq!((&shown["suspended"], &shown["payouts_held"]), (&json!(true), &json!(false)));
    let cashout = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    let refused = [
        ("/api/card", card(1_000, APPROVED)),
        ("/api/pix", pix("1.00")),
        ("/api/cashout", cashout),
        ("/api/recurrency/subscriptions", subscribe),
    ];
    let before = world.cut().await;
    for (path, body) in &refused {
        merchant.post(path, body).await.refused(403, "merchant_suspended");
    }
    assert_eq!(world.cut().await, before, "nothing was written");
    merchant.pay(&open).await.expect(200);
    let refund = json!({"payment_id": open, "amount": 100});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    // A cycle passes without a charge.
    world.advance(40 * 24 * 3_600).await;
    let charges = merchant.get(&format!("/api/recurrency/subscriptions/{subscription}/charges")).await.expect(200);
    assert_eq!(charges["total"], 0, "{charges}");
    let world = &world;
    change(world, &merchant, "resume").await;
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    let audit = world.ops_get(&format!("/ops/audit?merchant_id={}", merchant.id)).await.expect(200);
    let notes: Vec<_> =
        items(&audit).iter().filter(|row| row["action"] == "change").map(|row| text(&row["notes"])).collect();
    assert_eq!(notes, ["por resume", "por suspend"]);
    let changes = json!([{"field": "suspended", "old": true, "new": false}]);
    assert_eq!(items(&audit).iter().find(|row| row["notes"] == "por resume").unwrap()["changes"], changes);
    world.check_books().await;
}

/// While payouts are held, nothing leaves to the merchant or its recipients; charges go on.
#[tokio::test]
async fn held_payouts_stay_until_they_are_released() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_000)])).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let before = world.cut().await;
    let path = format!("/ops/merchants/{}/hold-payouts", merchant.id);
    for (body, field) in [(json!({}), "reason"), (json!({"reason": ""}), "reason"), (json!({"reason": 1}), "reason")] {
        let refused = world.ops_post(&path, &body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
    assert_eq!(world.cut().await, before);
    let key = [("idempotency-key", "hold-1")];
    let body = json!({"reason": "Suspeita de fraude"}).to_string();
    for _ in 0..2 {
        let held = world.ops_send(reqwest::Method::POST, &path, &key, body.clone()).await.expect(200);
        assert_eq!(held["payouts_held"], true);
    }
    let held = world.cut().await;
    change(&world, &merchant, "hold-payouts").await;
    assert_eq!(world.cut().await, held, "held already: nothing changes");
    let cashout = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.refused(403, "payouts_held");
    world.approve(&withdrawal).await.refused(403, "payouts_held");
    world.ops_get(&format!("/ops/queue/{withdrawal}/preview")).await.refused(403, "payouts_held");
    merchant.paid_pix(&pix("10.00")).await;
    let world = world.restarted().await;
    let shown = world.ops_get(path.trim_end_matches("/hold-payouts")).await.expect(200);
    assert_eq!(shown["payouts_held"], true, "it outlives the process");
    let release = path.replace("hold-payouts", "release-payouts");
    world.ops_post(&release, &json!({"reason": "Esclarecido"})).await.expect(200);
    world.approve(&withdrawal).await.expect(200);
    world.check_books().await;
}
