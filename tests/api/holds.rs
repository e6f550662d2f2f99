//! Suspension and end of a merchant, hold of its payouts and freeze of a recipient, with their
//! reasons; withdrawals that operators ask for.

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

/// A frozen recipient receives, and nothing leaves to it until that ends; the rest is not touched.
#[tokio::test]
async fn a_frozen_recipient_receives_and_nothing_leaves_to_it() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    let splits = [(ana.as_str(), 1_000), (rui.as_str(), 500)];
    merchant.paid_pix(&with_splits(pix("100.00"), &splits)).await;
    let waiting = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &splits)).await.expect(201);
    let pending = text(&items(&merchant.statement(&ana).await)[0]["id"]);
    let path = format!("/ops/sub-recipients/{ana}");
    let before = world.cut().await;
    for body in [json!({}), json!({"reason": ""}), json!({"reason": 1}), json!({"reason": "x", "other": 1})] {
        world.ops_post(&format!("{path}/freeze"), &body).await.refused(400, "validation_failed");
    }
    let unknown = merchant.id.clone();
    let reason = json!({"reason": "Documentos falsos"});
    world.ops_post(&format!("/ops/sub-recipients/{unknown}/freeze"), &reason).await.refused(404, "not_found");
    assert_eq!(world.cut().await, before, "nothing was written");
    let frozen = world.ops_post(&format!("{path}/freeze"), &reason).await.expect(200);
    assert_eq!((&frozen["frozen"], &frozen["status"]), (&json!(true), &json!("active")));
    let written = world.cut().await;
    assert_eq!(world.ops_post(&format!("{path}/freeze"), &reason).await.expect(200)["frozen"], true);
    assert_eq!(world.cut().await, written, "frozen already: nothing changes");

    merchant.withdraw(&ana).await.refused(403, "recipient_frozen");
    let wanted = json!({"split_ids": [pending], "target_days": 2});
    for end in ["", "/simulate"] {
        let path = format!("/api/dashboard/sub-recipients/{ana}/anticipate{end}");
        merchant.post(&path, &wanted).await.refused(403, "recipient_frozen");
    }
    world.approve(&waiting).await.refused(403, "recipient_frozen");
    world.ops_get(&format!("/ops/queue/{waiting}/preview")).await.refused(403, "recipient_frozen");
    let queue = world.ops_get("/ops/queue").await.expect(200);
    assert_eq!(items(&queue)[0]["flags"], json!(["frozen"]), "{queue}");
    merchant.paid_pix(&with_splits(pix("100.00"), &splits)).await;
    assert_eq!(merchant.recipient_money(&ana).await[0], 1_000, "splits go on");
    text(&merchant.withdraw(&rui).await.expect(201)["withdrawal_id"]);

    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let shown = async |path: String| merchant.get(&path).await.expect(200)["frozen"].clone();
    assert_eq!(shown(format!("/api/sub-recipients/{ana}")).await, true, "it outlives the process");
    assert_eq!(shown(format!("/api/sub-recipients/{rui}")).await, false);
    assert_eq!(world.ops_get(&format!("/ops/recipients/{ana}")).await.expect(200)["frozen"], true);
    merchant.withdraw(&ana).await.refused(403, "recipient_frozen");
    let ended = world.ops_post(&format!("{path}/unfreeze"), &json!({"reason": "Esclarecido"})).await.expect(200);
    assert_eq!(ended["frozen"], false);
    world.approve(&waiting).await.expect(200);
    merchant.withdraw(&ana).await.expect(201);
    let audit = world.ops_get(&format!("/ops/audit?merchant_id={}", merchant.id)).await.expect(200);
    let rows: Vec<_> = items(&audit).iter().filter(|row| row["kind"] == "recipient").collect();
    let said: Vec<_> = rows.iter().map(|row| (text(&row["action"]), row["notes"].clone())).collect();
    let expected = [("unfreeze", json!("Esclarecido")), ("freeze", json!("Documentos falsos"))];
    assert_eq!(said[..2], expected.map(|(action, notes)| (action.to_owned(), notes)));
    assert_eq!(rows[1]["id"], *ana);
    world.check_books().await;
}

/// What is open of a merchant: kind, then id or account.
async fn open_items(world: &World, merchant: &Merchant<'_>) -> Vec<(String, String)> {
    let list = world.ops_get(&format!("/ops/merchants/{}/open-items", merchant.id)).await.expect(200);
    assert_eq!(list["total"], items(&list).len(), "{list}");
    let what = |item: &Value| text(if item["kind"] == "balance" { &item["account"] } else { &item["id"] });
    items(&list).iter().map(|item| (text(&item["kind"]), what(item))).collect()
}

/// A merchant that ends takes no new charges, its money and that of its recipients leaves, and it
/// is closed once nothing is open.
#[tokio::test]
async fn a_merchant_is_closed_once_nothing_of_it_is_open() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let paid = merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_000)])).await;
    let open = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
    let plan = json!({"tag": "Plano", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 12});
    let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
    let subscribe =
        json!({"plan_id": plan, "customer": card(1, APPROVED)["customer"].clone(), "payment_method": "pix"});
    let subscription = text(&merchant.post("/api/recurrency/subscriptions", &subscribe).await.expect(201)["id"]);
    world.advance(60).await;
    let charges = merchant.get(&format!("/api/recurrency/subscriptions/{subscription}/charges")).await.expect(200);
    let code = text(&items(&charges)[0]["txid"]);
    let balance = |ledger: &str, account: &str| ("balance".to_owned(), format!("{account}{ledger}"));
    let before = open_items(&world, &merchant).await;
    let [of_merchant, of_ana] = [balance("", "Assets:Platform:Available"), balance("", "Assets:Platform:Available")];
    for item in [("charge", &open), ("charge", &code), ("subscription", &subscription)] {
        assert!(before.contains(&(item.0.to_owned(), item.1.clone())), "{item:?} in {before:?}");
    }
    assert_eq!(before.len(), 5, "{before:?}");
    let close = format!("/ops/merchants/{}/close", merchant.id);
    let refused = world.ops_post(&close, &json!({})).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["field"], "reason");
    let shown = change(&world, &merchant, "close").await;
    assert_eq!((&shown["closing"], &shown["closed"]), (&json!(true), &json!(false)));
    assert_eq!(open_items(&world, &merchant).await, [of_merchant, of_ana]);
    for txid in [&open, &code] {
        assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["status"], "cancelled");
        merchant.pay(txid).await.refused(409, "charge_not_pending");
    }
    let ended = merchant.get(&format!("/api/recurrency/subscriptions/{subscription}")).await.expect(200);
    assert_eq!(ended["status"], "cancelled");
    for (path, body) in
        [("/api/card", card(1_000, APPROVED)), ("/api/pix", pix("1.00")), ("/api/recurrency/subscriptions", subscribe)]
    {
        merchant.post(path, &body).await.refused(403, "merchant_closing");
    }
    // Payouts, refunds and disputes go on; a split that is off stops no recipient's money.
    let dispute = json!({"amount": 100, "kind": "med", "reason": "x"});
    let path = format!("/ops/charges/{}/disputes", text(&paid["txid"]));
    let dispute = text(&world.ops_post(&path, &dispute).await.expect(201)["id"]);
    assert_eq!(open_items(&world, &merchant).await[0], ("dispute".to_owned(), dispute.clone()));
    let refund = json!({"payment_id": paid["txid"], "amount": 200});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    world.ops_post(&format!("/ops/disputes/{dispute}/release"), &json!({})).await.expect(200);
    world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &json!({"split_enabled": false})).await.expect(200);
    merchant.withdraw(&ana).await.refused(422, "split_not_enabled");
    let withdraw = format!("/ops/sub-recipients/{ana}/withdraw");
    let asked = world.ops_post(&withdraw, &json!({"reason": "Lojista em encerramento"})).await.expect(201);
    let id = text(&asked["id"]);
    assert_eq!((&asked["amount_cents"], &asked["status"]), (&json!(1_000), &json!("pending")));
    let queued = world.ops_get(&format!("/ops/queue/{id}")).await.expect(200);
    assert_eq!(
        (&queued["item"]["status"], &queued["item"]["requested_by"]),
        (&json!("waiting_second"), &json!("operator"))
    );
    assert_eq!(queued["decisions"][0]["notes"], "Lojista em encerramento", "{queued}");
    world.ops_post(&withdraw, &json!({"reason": "x"})).await.refused(409, "withdrawal_pending");
    world.approve(&id).await.refused(409, "second_operator_needed");
    world.second_ops_post(&format!("/ops/withdrawals/{id}/approve"), &[], &json!({})).await.expect(200);
    let left = merchant.get("/api/balance").await.expect(200)["available"].clone();
    let cashout = json!({"amount": left, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    change(&world, &merchant, "close").await;
    world.advance(3_600).await;
    assert_eq!(open_items(&world, &merchant).await, []);
    let shown = change(&world, &merchant, "close").await;
    assert_eq!((&shown["closing"], &shown["closed"]), (&json!(true), &json!(true)));
    let closed = world.cut().await;
    change(&world, &merchant, "close").await;
    assert_eq!(world.cut().await, closed, "closed already: nothing changes");
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    merchant.post("/api/pix", &pix("1.00")).await.refused(403, "merchant_closing");
    let audit = world.ops_get(&format!("/ops/audit?merchant_id={}&action=change", merchant.id)).await.expect(200);
    let changes = json!([{"field": "closed", "old": false, "new": true}]);
    assert_eq!(items(&audit)[0]["changes"], changes, "{audit}");
    let browser = crate::console::Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/merchants/{}", merchant.id)).await;
    page.has(&["value=\"reopen\""]);
    for left in ["value=\"suspend\"", "value=\"hold-payouts\"", "/change\""] {
        assert!(!page.html.contains(left), "a closed one has no {left}: {}", page.html);
    }
    let (close, again) = (format!("/ops/merchants/{}/close", merchant.id), json!({"reason": "x"}).to_string());
    let keyed = [("idempotency-key", "close")];
    change(&world, &merchant, "reopen").await;
    world.ops_send(reqwest::Method::POST, &close, &keyed, again.clone()).await.expect(200);
    let shown = change(&world, &merchant, "reopen").await;
    assert_eq!((&shown["closing"], &shown["closed"]), (&json!(false), &json!(false)));
    let code = text(&merchant.post("/api/pix", &pix("2.00")).await.expect(201)["txid"]);
    world.ops_send(reqwest::Method::POST, &close, &keyed, again).await.expect(200);
    assert_eq!(merchant.get(&format!("/api/charges/{code}")).await.expect(200)["status"], "pending", "a late copy");
    merchant.pay(&code).await.expect(200);
    merchant.paid_pix(&pix("1.00")).await;
    let ended = merchant.get(&format!("/api/recurrency/subscriptions/{subscription}")).await.expect(200);
    assert_eq!(ended["status"], "cancelled", "what was cancelled stays so");
    world.check_books().await;
}

/// A withdrawal that waits says how many came back before it.
#[tokio::test]
async fn withdrawals_that_came_back_are_counted() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let body = with(&individual("Caio Lima", &cpf(3)), "/bank_account/conta", json!("99991"));
    let caio = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/sub-recipients/{caio}/approve"), &json!({})).await.expect(200);
    merchant.paid_pix(&with_splits(pix("100.00"), &[(&caio, 1_000)])).await;
    for returned in [None, Some(1), Some(2)] {
        let id = text(&merchant.withdraw(&caio).await.expect(201)["withdrawal_id"]);
        let shown = world.ops_get(&format!("/ops/queue/{id}")).await.expect(200);
        let expected = returned.map(|count: u64| json!(count));
        assert_eq!(shown["item"].get("returned_before"), expected.as_ref(), "{shown}");
        world.approve(&id).await.expect(200);
        world.advance(3 * 24 * 3_600).await;
    }
    world.check_books().await;
}
