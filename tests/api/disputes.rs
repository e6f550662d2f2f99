//! Disputes: the money is held while one is open, gone when it is accepted, back when it is
//! released, or reversed after it was accepted.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::console_books::DecisionPreview;
use crate::world::*;

fn body(amount: i64, kind: &str) -> Value {
    json!({"amount": amount, "kind": kind, "reason": "Compra não reconhecida"})
}

async fn open(world: &World, txid: &str, amount: i64) -> Answer {
    world.ops_post(&format!("/ops/charges/{txid}/disputes"), &body(amount, "chargeback")).await
}

async fn open_med(world: &World, txid: &str, amount: i64) -> Answer {
    world.ops_post(&format!("/ops/charges/{txid}/disputes"), &body(amount, "med")).await
}

async fn opened(world: &World, txid: &str, amount: i64) -> String {
    text(&open(world, txid, amount).await.expect(201)["id"])
}

async fn decide(world: &World, id: &str, verb: &str) -> Answer {
    world.ops_send(reqwest::Method::POST, &format!("/ops/disputes/{id}/{verb}"), &[], String::new()).await
}

async fn captured(merchant: &Merchant<'_>, amount: i64) -> String {
    text(&merchant.post("/api/card", &card(amount, APPROVED)).await.expect(201)["txid"])
}

async fn paid_pix(merchant: &Merchant<'_>, valor: &str) -> String {
    text(&merchant.paid_pix(&pix(valor)).await["txid"])
}

#[tokio::test]
async fn a_dispute_holds_the_money_until_it_is_decided() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (first, second) = (captured(&merchant, 10_000).await, paid_pix(&merchant, "80.00").await);
    assert_eq!(merchant.balance().await, [7_921, 9_403, 0, 0]);

    let dispute = open(&world, &first, 3_000).await.expect(201);
    has_exactly(
        &dispute,
        &["id", "payment_id", "kind", "amount", "exceeds_charge", "status", "reason", "created_at", "decided_at"],
    );
    is_uuid(&dispute["id"]);
    time(&dispute["created_at"]);
    let said = ["payment_id", "kind", "amount", "status", "reason", "decided_at"].map(|name| dispute[name].clone());
    let reason = json!("Compra não reconhecida");
    assert_eq!(said, [json!(first), json!("chargeback"), json!(3_000), json!("open"), reason, json!(null)]);
    assert_eq!(merchant.balance().await, [7_921, 6_403, 3_000, 0]);
    let path = format!("/ops/charges/{second}/disputes");
    let other = world.ops_post(&path, &body(8_000, "med")).await.expect(201);
    assert_eq!(merchant.balance().await, [0, 6_403, 11_000, 79]);
    let list = merchant.get("/api/disputes").await.expect(200);
    assert_eq!(items(&list), &[other.clone(), dispute.clone()]);
    assert_eq!(
        (&list["total"], &list["page"], &list["pages"], &list["per_page"]),
        (&json!(2), &json!(1), &json!(1), &json!(20))
    );
    let line = merchant.get("/api/balance/operations").await.expect(200)["items"][0].clone();
    let shown = ["type", "account", "amount", "source_id", "balance_after"].map(|name| line[name].clone());
    assert_eq!(shown, [json!("dispute"), json!("reserved"), json!(8_000), other["id"].clone(), json!(11_000)]);

    let accepted = decide(&world, &text(&dispute["id"]), "accept").await.expect(200);
    assert_eq!(accepted["status"], "accepted");
    time(&accepted["decided_at"]);
    assert_eq!(merchant.balance().await, [0, 6_403, 8_000, 79]);
    let released = decide(&world, &text(&other["id"]), "release").await.expect(200);
    assert_eq!(released["status"], "released");
    assert_eq!(merchant.balance().await, [7_921, 6_403, 0, 0], "the Deficit is repaid at once");
    assert_eq!(items(&merchant.get("/api/disputes").await.expect(200)), &[released, accepted]);
    let accounts = world.accounts().await;
    let of = |ledger: String, account: &str| accounts.get(&(ledger, account.to_owned())).copied().unwrap_or_default();
    assert_eq!(of(merchant.ledger(), "Income:Contra:Chargebacks"), 3_000);
    assert_eq!(of(format!("P-{}", merchant.id), "Liabilities:Payers:Refunds"), 0, "the payer has it");
    let charge = merchant.get(&format!("/api/charges/{first}")).await.expect(200);
    assert_eq!((&charge["status"], &charge["refunded_amount"]), (&json!("CONCLUIDA"), &json!(0)));
    world.check_books().await;
}

#[tokio::test]
async fn what_is_disputed_is_not_refunded_too() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = captured(&merchant, 10_000).await;
    let refund = |amount: i64| json!({"payment_id": txid, "amount": amount});
    let dispute = opened(&world, &txid, 6_000).await;
    merchant.post("/api/refunds", &refund(4_001)).await.refused(422, "charge_not_refundable");
    merchant.post("/api/refunds", &refund(10_001)).await.refused(409, "refund_exceeds_available");
    let waiting = text(&merchant.post("/api/refunds", &refund(4_000)).await.expect(201)["id"]);
    open(&world, &txid, 4_001).await.refused(409, "dispute_exceeds_available");
    decide(&world, &dispute, "release").await.expect(200);
    world.ops_post(&format!("/ops/refunds/{waiting}/reject"), &json!({"notes": "não"})).await.expect(200);
    let whole = opened(&world, &txid, 10_000).await;
    decide(&world, &whole, "accept").await.expect(200);
    merchant.post("/api/refunds", &refund(1)).await.refused(422, "charge_not_refundable");
    open(&world, &txid, 1).await.refused(409, "dispute_exceeds_available");
    assert_eq!(merchant.balance().await, [0, 0, 0, 597]);
    world.check_books().await;
}

#[tokio::test]
async fn a_dispute_must_be_of_a_paid_charge_and_well_formed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let paid = captured(&merchant, 10_000).await;
    let unpaid = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
    let before = world.trace(&[&merchant]).await;
    for nothing in ["x", "00000000000040008000000000000000"] {
        open(&world, nothing, 1).await.refused(404, "charge_not_found");
    }
    open(&world, &unpaid, 1).await.refused(422, "charge_not_refundable");
    open(&world, &paid, 10_001).await.refused(409, "dispute_exceeds_available");
    let path = format!("/ops/charges/{paid}/disputes");
    for (pointer, wrong) in [
        ("/amount", json!("3000")),
        ("/amount", json!(0)),
        ("/kind", json!("fraud")),
        ("/kind", json!(null)),
        ("/reason", json!(null)),
        ("/reason", json!("x".repeat(501))),
    ] {
        let refused = world.ops_post(&path, &with(&body(3_000, "med"), pointer, wrong)).await;
        assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], pointer[1..]);
    }
    for verb in ["accept", "release"] {
        for nobody in ["x", "00000000-0000-4000-8000-000000000000", &paid] {
            decide(&world, nobody, verb).await.refused(404, "not_found");
        }
    }
    merchant.post_raw(&path, &[], body(1, "med").to_string()).await.refused(401, "unauthorized");
    assert_eq!(world.trace(&[&merchant]).await, before);
}

#[tokio::test]
async fn what_is_released_goes_back_where_it_was_drawn_from() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": false,
            "options": {"card_settlement_days": 10}}))
        .await;
    let txid = captured(&merchant, 10_000).await;
    let (early, late) = (opened(&world, &txid, 5_000).await, opened(&world, &txid, 4_403).await);
    assert_eq!(merchant.balance().await, [0, 0, 9_403, 0]);
    // Something else falls due meanwhile, and the schedule learns that after it only the acquirer's
    // payment does.
    merchant.post("/api/pix", &with(&pix("80.00"), "/expires_in", json!(60))).await.expect(201);
    world.advance(61).await;
    decide(&world, &early, "release").await.expect(200);
    assert_eq!(merchant.balance().await, [0, 5_000, 4_403, 0]);
    // Nobody reads the balance or calls: the schedule knows when the released money falls due.
    world.advance(10 * DAY).await;
    let accounts = world.accounts().await;
    let available = accounts[&(merchant.ledger(), "Assets:Platform:Available".to_owned())];
    assert_eq!(available, 5_000);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    decide(&world, &late, "release").await.expect(200);
    assert_eq!(merchant.balance().await, [9_403, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn a_dispute_is_decided_once_whoever_decides() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut expected = 0;
    for _ in 0..6 {
        let txid = paid_pix(&merchant, "10.00").await;
        let id = text(&open_med(&world, &txid, 990).await.expect(201)["id"]);
        let (accepted, released) = tokio::join!(
            futures_of(5, |_| decide(&world, &id, "accept")),
            futures_of(5, |_| decide(&world, &id, "release"))
        );
        let answers: Vec<_> = accepted.into_iter().chain(released).collect();
        let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(winners.len(), 1);
        expected += if winners[0].body["status"] == "released" { 990 } else { 0 };
        for late in answers.into_iter().filter(|answer| answer.status != 200) {
            late.refused(409, "already_decided");
        }
    }
    assert_eq!(merchant.balance().await, [expected, 0, 0, 0]);
    let txid = captured(&merchant, 1_000).await;
    let answers = futures_of(40, |_| open(&world, &txid, 90)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 11);
    assert_eq!(merchant.balance().await[2], 990);
    world.check_books().await;
}

#[tokio::test]
async fn a_key_makes_one_dispute_of_several_requests() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = captured(&merchant, 10_000).await;
    let (path, request) = (format!("/ops/charges/{txid}/disputes"), body(3_000, "chargeback").to_string());
    let key = [("idempotency-key", "dispute 1")];
    let answers = futures_of(6, |_| world.ops_send(reqwest::Method::POST, &path, &key, request.clone())).await;
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
    assert_eq!(merchant.get("/api/disputes").await.expect(200)["total"], 1);
    assert_eq!(merchant.balance().await[2], 3_000);
}

fn refund(txid: &str, amount: i64) -> Value {
    json!({"payment_id": txid, "amount": amount})
}

async fn queued(world: &World, id: &str) -> Value {
    let queue = world.ops_get("/ops/queue").await.expect(200);
    items(&queue).iter().find(|item| item["id"] == *id).cloned().unwrap_or_default()
}

/// A payer's bank does not ask whether the charge was refunded: the dispute is recorded, and what
/// passes the rest of the charge is marked.
#[tokio::test]
async fn a_dispute_of_a_refunded_charge_is_recorded() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for (txid, kind) in
        [(captured(&merchant, 10_000).await, "chargeback"), (paid_pix(&merchant, "100.00").await, "med")]
    {
        let id = text(&merchant.post("/api/refunds", &refund(&txid, 8_000)).await.expect(201)["id"]);
        world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
        let path = format!("/ops/charges/{txid}/disputes");
        let within = world.ops_post(&path, &body(2_000, kind)).await.expect(201);
        assert_eq!((&within["exceeds_charge"], within.get("exceeding_amount")), (&json!(false), None));
        assert_eq!(queued(&world, &text(&within["id"])).await["exceeds_charge"], false);
        decide(&world, &text(&within["id"]), "release").await.expect(200);
        let beyond = world.ops_post(&path, &body(10_000, kind)).await.expect(201);
        assert_eq!((&beyond["exceeds_charge"], &beyond["exceeding_amount"]), (&json!(true), &json!(8_000)));
        let item = queued(&world, &text(&beyond["id"])).await;
        assert_eq!((&item["exceeds_charge"], &item["amount"]), (&json!(true), &json!(10_000)));
        decide(&world, &text(&beyond["id"]), "accept").await.expect(200);
    }
    let [available, pending, held, deficit] = merchant.balance().await;
    assert_eq!([available, pending, held], [0, 0, 0], "what the charges lack is a deficit");
    assert_eq!(deficit, 2 * 18_000 - 9_403 - 9_901);
    world.advance(3 * DAY).await;
    let batches = world.ops_get("/ops/batches").await.expect(200);
    assert!(items(&batches).iter().all(|batch| batch["unexplained_lines"] == 0), "{batches}");
    world.check_books().await;
}

/// A refund that waits goes on waiting while a dispute needs its part of the charge, and the queue
/// says so; it is another version from then on.
#[tokio::test]
async fn a_refund_waits_for_the_dispute_of_its_charge() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = captured(&merchant, 10_000).await;
    let id = text(&merchant.post("/api/refunds", &refund(&txid, 10_000)).await.expect(201)["id"]);
    let before = queued(&world, &id).await;
    assert_eq!((&before["version"], before.get("note"), before.get("disputes")), (&json!(1), None, None));
    let dispute = open(&world, &txid, 10_000).await.expect(201);
    assert_eq!(dispute["exceeds_charge"], false, "the refund is not given");
    let item = queued(&world, &id).await;
    assert_eq!((&item["version"], &item["disputes"]), (&json!(2), &json!([dispute["id"]])));
    assert!(item["note"].is_string(), "{item}");
    let approve = format!("/ops/refunds/{id}/approve");
    world.ops_post(&approve, &json!({})).await.refused(422, "charge_not_refundable");
    let changed = world.ops_post(&approve, &json!({"version": 1})).await.refused(409, "item_changed");
    assert_eq!((&changed["version"], &changed["item"]), (&json!(2), &item));
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "en";
    let page = format!("/console/queue/{id}");
    browser.page(&page).await.has(&["the refund waits for it"]);
    decide(&world, &text(&dispute["id"]), "release").await.expect(200);
    let item = queued(&world, &id).await;
    assert_eq!((&item["version"], item.get("note")), (&json!(3), None));

    // Beside a dispute that leaves enough of the charge, another refund need not wait.
    let (second, part) = (captured(&merchant, 10_000).await, 4_000);
    let beside = text(&merchant.post("/api/refunds", &refund(&second, part)).await.expect(201)["id"]);
    let (lost, open) = (opened(&world, &second, 1_000).await, opened(&world, &second, 5_000).await);
    decide(&world, &lost, "accept").await.expect(200);
    assert_eq!(queued(&world, &beside).await["disputes"], json!([open]));
    let note = text(&queued(&world, &beside).await["note"]);
    assert!(note.ends_with("resta valor que baste para o reembolso"), "{note}");
    browser.page(&format!("/console/queue/{beside}")).await.has(&["enough is left for the refund"]);
    world.ops_post(&format!("/ops/refunds/{beside}/approve"), &json!({})).await.expect(200);
    let headers = [("if-match", "\"2\"")];
    world.ops_send(reqwest::Method::POST, &approve, &headers, String::new()).await.refused(409, "item_changed");
    let headers = [("if-match", "\"3\"")];
    world.ops_send(reqwest::Method::POST, &approve, &headers, String::new()).await.expect(200);
    world.check_books().await;
}

#[tokio::test]
async fn a_part_is_accepted_and_the_rest_released() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = captured(&merchant, 10_000).await;
    let id = opened(&world, &txid, 9_403).await;
    let accept = format!("/ops/disputes/{id}/accept");
    for wrong in [json!({"amount": 0}), json!({"amount": "1"}), json!({"amount": -1})] {
        let refused = world.ops_post(&accept, &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], "amount");
    }
    world.ops_post(&accept, &json!({"amount": 9_404})).await.refused(409, "dispute_exceeds_available");
    let before = world.cut().await;
    let accepted = world.ops_post(&accept, &json!({"amount": 4_000, "version": 1})).await.expect(200);
    let said = ["status", "amount", "accepted_amount"].map(|name| accepted[name].clone());
    assert_eq!(said, [json!("accepted"), json!(9_403), json!(4_000)]);
    assert_eq!(merchant.balance().await, [0, 5_403, 0, 0]);
    assert_eq!(items(&merchant.get("/api/disputes").await.expect(200)), &[accepted]);
    let audit = world.ops_get(&format!("/ops/audit?kind=dispute&id={id}")).await.expect(200);
    let part = json!([{"field": "accepted_amount", "old": null, "new": 4_000}]);
    assert_eq!([&items(&audit)[0]["changes"], &items(&audit)[0]["amount"]], [&part, &json!(9_403)], "{audit}");
    // The acceptance, and the acquirer's word on it: the release is no Record of its own.
    assert_eq!(world.since(&before).await.len(), 2);
    world.advance(5 * DAY).await;
    world.check_books().await;
}

#[tokio::test]
async fn the_kind_fits_the_method_and_each_kind_has_its_deadline() {
    let world = World::with_settings(|settings| settings.disputes.med_days = 100).await;
    let merchant = world.merchant().await;
    let (by_card, by_pix) = (captured(&merchant, 10_000).await, paid_pix(&merchant, "80.00").await);
    for refused in [open_med(&world, &by_card, 1).await, open(&world, &by_pix, 1).await] {
        assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], "kind");
    }
    world.advance(100 * DAY - 60).await;
    open_med(&world, &by_pix, 1).await.expect(201);
    world.advance(120).await;
    open_med(&world, &by_pix, 1).await.refused(422, "charge_not_refundable");
    world.advance(440 * DAY - 120).await;
    open(&world, &by_card, 1).await.expect(201);
    world.advance(120).await;
    open(&world, &by_card, 1).await.refused(422, "charge_not_refundable");
    merchant.post("/api/refunds", &refund(&by_card, 1)).await.refused(422, "charge_not_refundable");
}

/// What was accepted is won later: one operator says so, another one approves, once.
#[tokio::test]
async fn a_dispute_that_was_lost_is_won_by_two_operators() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (txid, paid) = (captured(&merchant, 10_000).await, paid_pix(&merchant, "80.00").await);
    let lost = [opened(&world, &txid, 3_000).await, text(&open_med(&world, &paid, 8_000).await.expect(201)["id"])];
    let path = format!("/ops/disputes/{}/reverse", lost[0]);
    let why = json!({"reason": "Ganha na segunda instância", "reference": "CHAMADO-18"});
    world.ops_post(&path, &why).await.refused(409, "state_conflict");
    decide(&world, &lost[0], "accept").await.expect(200);
    world.ops_post(&format!("/ops/disputes/{}/accept", lost[1]), &json!({"amount": 5_000})).await.expect(200);
    let long = json!({"reason": "x", "reference": "x".repeat(101)});
    for (wrong, field) in [(json!({}), "reason"), (long, "reference")] {
        let refused = world.ops_post(&path, &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    let before = merchant.balance().await;
    let asked = world.ops_post(&path, &why).await.expect(201);
    let said = ["status", "debit", "amount", "reference", "dispute"].map(|name| asked[name].clone());
    assert_eq!(
        said,
        [json!("pending"), json!("Assets:Acquirer:Receivable"), json!(3_000), json!("CHAMADO-18"), json!(lost[0])]
    );
    world.ops_post(&path, &why).await.refused(409, "state_conflict");
    assert_eq!(queued(&world, &text(&asked["id"])).await["dispute"], lost[0]);
    assert_eq!(merchant.balance().await, before, "nothing moves yet");
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let approve = format!("/ops/entries/{}/approve", text(&asked["id"]));
    world.ops_post(&approve, &json!({})).await.refused(409, "second_operator_needed");
    let foreseen = DecisionPreview::of(&world, &text(&asked["id"]), "approve").await;
    world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    foreseen.is_booked(&world, 1).await;
    let [available, pending, ..] = before;
    assert_eq!(merchant.balance().await, [available, pending + 3_000, 0, 0]);
    world.second_ops_post(&approve, &[], &json!({})).await.refused(409, "state_conflict");
    world.ops_post(&path, &why).await.refused(409, "state_conflict");

    // The part that was accepted, without a document: the entry has the dispute's id.
    let path = format!("/ops/disputes/{}/reverse", lost[1]);
    let asked = world.ops_post(&path, &json!({"reason": "x"})).await.expect(201);
    let said = ["debit", "amount", "reference"].map(|name| asked[name].clone());
    assert_eq!(said, [json!("Assets:Bank:Pix"), json!(5_000), json!(lost[1])]);
    let reject = format!("/ops/entries/{}/reject", text(&asked["id"]));
    world.ops_post(&reject, &json!({"notes": "ainda não"})).await.expect(200);
    let asked = world.ops_post(&path, &json!({"reason": "x"})).await.expect(201);
    let approve = format!("/ops/entries/{}/approve", text(&asked["id"]));
    let nothing = json!({});
    let answers = futures_of(5, |_| world.second_ops_post(&approve, &[], &nothing)).await;
    assert!(answers.iter().any(|answer| answer.status == 200));
    assert_eq!(merchant.balance().await, [available + 5_000, pending + 3_000, 0, 0]);
    let disputes = merchant.get("/api/disputes").await.expect(200);
    for dispute in items(&disputes) {
        let accepted = if dispute["id"] == lost[0] { 3_000 } else { 5_000 };
        assert_eq!((&dispute["status"], &dispute["accepted_amount"]), (&json!("reversed"), &json!(accepted)));
    }
    let events = merchant.get("/api/events").await.expect(200);
    let reversed: Vec<_> = items(&events).iter().filter(|event| event["event"] == "dispute.reversed").collect();
    assert_eq!(reversed.len(), 2, "{events}");
    let event = merchant.get(&format!("/api/events/{}", text(&reversed[0]["id"]))).await.expect(200);
    assert!(items(&disputes).contains(&event["dispute"]), "{event}");
    world.check_books().await;
}
