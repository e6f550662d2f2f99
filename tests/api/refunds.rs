//! Refunds, from the request to the payer's money: answers, order of refusals, moved money; many at
//! once, a silent rail, a server that ends in between.

use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use actors::rails::{Call, PixFate, PixRail, RailError, Repay, RepayAnswer};
use ledger::id::ObjectId;
use ledger::record::RailStamp;
use ledger::time::Timestamp;
use serde_json::{Value, json};

use crate::world::*;

const PATH: &str = "/api/refunds";

fn body(payment: &str, amount: i64) -> Value {
    json!({"payment_id": payment, "amount": amount})
}

async fn request_refund(merchant: &Merchant<'_>, payment: &str, amount: i64) -> String {
    text(&merchant.post(PATH, &body(payment, amount)).await.expect(201)["id"])
}

async fn approve(world: &World, id: &str) -> Answer {
    world.ops_send(reqwest::Method::POST, &format!("/ops/refunds/{id}/approve"), &[], String::new()).await
}

async fn reject(world: &World, id: &str) -> Answer {
    world.ops_post(&format!("/ops/refunds/{id}/reject"), &json!({"notes": "Sem comprovante"})).await
}

async fn paid_pix(merchant: &Merchant<'_>, valor: &str) -> String {
    text(&merchant.paid_pix(&pix(valor)).await["txid"])
}

async fn captured(merchant: &Merchant<'_>, amount: i64) -> String {
    text(&merchant.post("/api/card", &card(amount, APPROVED)).await.expect(201)["txid"])
}

async fn refunded(merchant: &Merchant<'_>, txid: &str) -> Value {
    let charge = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!(charge["status"], "CONCLUIDA", "a refunded charge stays paid");
    charge["refunded_amount"].clone()
}

async fn owed_to_payers(merchant: &Merchant<'_>) -> i64 {
    of(merchant, &format!("P-{}", merchant.id), "Liabilities:Payers:Refunds").await
}

async fn of(merchant: &Merchant<'_>, ledger: &str, account: &str) -> i64 {
    let accounts = merchant.world.accounts().await;
    accounts.get(&(ledger.to_owned(), account.to_owned())).copied().unwrap_or_default()
}

/// Shows: 2.11.id, 2.11.payment_id, 2.11.amount, 2.11.status, 2.11.created_at, 3.6.requested,
/// 3.6.approved, 3.6.rejected, 4.POST./api/refunds, 4.GET./api/refunds.
#[tokio::test]
async fn a_refund_answers_as_the_interface_says() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    assert_eq!(merchant.balance().await, [7_921, 0, 0, 0]);

    let refund = merchant.post(PATH, &body(&txid, 4_000)).await.expect(201);
    has_exactly(&refund, &["id", "payment_id", "amount", "status", "created_at"]);
    is_uuid(&refund["id"]);
    time(&refund["created_at"]);
    assert_eq!(
        (&refund["payment_id"], &refund["amount"], &refund["status"]),
        (&json!(txid), &json!(4_000), &json!("pending"))
    );
    let one = format!("{PATH}/{}", text(&refund["id"]));
    assert_eq!(merchant.get(&one).await.expect(200), refund);
    assert_eq!(merchant.get(PATH).await.expect(200), json!({"items": [refund], "total": 1}));
    assert_eq!(merchant.balance().await, [7_921, 0, 0, 0], "money moves on approval");
    assert_eq!(refunded(&merchant, &txid).await, 0);

    let approved = approve(&world, &text(&refund["id"])).await.expect(200);
    assert_eq!(approved, with(&refund, "/status", json!("approved")));
    assert_eq!(merchant.get(&one).await.expect(200), approved);
    assert_eq!(merchant.balance().await, [3_921, 0, 0, 0]);
    assert_eq!(refunded(&merchant, &txid).await, 4_000);
    assert_eq!(of(&merchant, &merchant.ledger(), "Income:Contra:Refunds").await, 4_000);
    assert_eq!(owed_to_payers(&merchant).await, 0, "the rail has sent it");
    assert_eq!(of(&merchant, &format!("P-{}", merchant.id), "Assets:Bank:Pix").await, 4_000);

    let second = merchant.post(PATH, &with(&body(&txid, 1), "/reason", json!("  Tamanho errado "))).await.expect(201);
    has_exactly(&second, &["id", "payment_id", "amount", "status", "created_at", "reason"]);
    assert_eq!(second["reason"], "Tamanho errado");
    let rejected = reject(&world, &text(&second["id"])).await.expect(200);
    assert_eq!(rejected, with(&with(&second, "/status", json!("rejected")), "/notes", json!("Sem comprovante")));
    assert_eq!(
        merchant.get(PATH).await.expect(200),
        json!({"items": [rejected, approved], "total": 2}),
        "newest first"
    );
    assert_eq!(merchant.balance().await, [3_921, 0, 0, 0]);

    let lines = merchant.get("/api/balance/operations").await.expect(200);
    let line = &items(&lines)[0];
    let shown = ["type", "account", "amount", "source_id", "balance_after"].map(|name| line[name].clone());
    assert_eq!(shown, [json!("refund"), json!("available"), json!(-4_000), refund["id"].clone(), json!(3_921)]);
    assert_eq!(items(&lines)[1]["source_id"], txid, "a charge is named by its txid");
    world.check_books().await;
}

/// Shows: 4.POST./api/refunds, 8.reason.
#[tokio::test]
async fn a_refund_must_be_well_formed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    let before = world.trace(&[&merchant]).await;
    let good = body(&txid, 4_000);
    let split = |amount: Value| json!([{"sub_recipient_id": "00000000-0000-4000-8000-000000000000", "amount": amount}]);
    for (wrong, field) in [
        (without(&good, "/payment_id"), "payment_id"),
        (with(&good, "/payment_id", json!(7)), "payment_id"),
        (without(&good, "/amount"), "amount"),
        (with(&good, "/amount", json!("4000")), "amount"),
        (with(&good, "/amount", json!(40.0)), "amount"),
        (with(&good, "/amount", json!(0)), "amount"),
        (with(&good, "/amount", json!(-1)), "amount"),
        (with(&good, "/amount", json!(1_000_000_000_001_i64)), "amount"),
        (with(&good, "/reason", json!("x".repeat(501))), "reason"),
        (with(&good, "/reason", json!(1)), "reason"),
        (with(&good, "/splits", json!({})), "splits"),
        (with(&good, "/splits", split(json!(0))), "splits[0].amount"),
    ] {
        let refused = merchant.post(PATH, &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{wrong}");
    }
    let refused = merchant.post(PATH, &with(&good, "/amount", json!("4000"))).await.refused(400, "validation_failed");
    assert_eq!(refused["message"], "amount deve ser inteiro em centavos");
    merchant.post(PATH, &with(&good, "/splits", split(json!(1)))).await.refused(400, "recipient_not_found");
    assert_eq!(world.trace(&[&merchant]).await, before);
    merchant.post(PATH, &with(&good, "/reason", json!("ç".repeat(500)))).await.expect(201);
    merchant.post(PATH, &with(&with(&good, "/reason", json!(null)), "/splits", json!([]))).await.expect(201);
}

/// Shows: 5.5, 7.404-refund, 7.409-refund, 7.422-refund.
#[tokio::test]
async fn only_what_was_paid_can_be_refunded_and_the_order_of_refusals_is_fixed() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let paid = paid_pix(&merchant, "80.00").await;
    let foreign = paid_pix(&other, "80.00").await;
    let unpaid = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
    let cancelled = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
    merchant.post_raw(&format!("/api/charges/{cancelled}/cancel"), &[], "").await.expect(200);
    let silent = text(&merchant.post("/api/card", &card(8_000, SILENT)).await.expect(201)["txid"]);
    let refused = text(&merchant.post("/api/card", &card(8_000, REFUSED)).await.refused(402, "card_declined")["txid"]);
    let before = world.trace(&[&merchant]).await;
    let too_long = "x".repeat(65);
    let unknown = ["x", &foreign, "00000000000040008000000000000000"];
    for nothing in unknown.into_iter().chain([" ", "\u{0}", &too_long, "é"]) {
        let refused = merchant.post(PATH, &body(nothing, 99_999)).await.refused(404, "charge_not_found");
        assert_eq!(refused["message"], "Pagamento não encontrado");
    }
    for ineligible in [&unpaid, &cancelled, &silent, &refused] {
        let refused = merchant.post(PATH, &body(ineligible, 99_999)).await.refused(422, "charge_not_refundable");
        assert_eq!(refused["message"], "Pagamento não elegível");
    }
    let refused = merchant.post(PATH, &body(&paid, 8_001)).await.refused(409, "refund_exceeds_available");
    assert_eq!(refused["message"], "Valor maior que o disponível");
    assert_eq!(world.trace(&[&merchant]).await, before);

    // Wholly asked for is 409; wholly refunded is 422, before the amount is looked at.
    let whole = request_refund(&merchant, &paid, 8_000).await;
    merchant.post(PATH, &body(&paid, 1)).await.refused(409, "refund_exceeds_available");
    approve(&world, &whole).await.expect(200);
    merchant.post(PATH, &body(&paid, 99_999)).await.refused(422, "charge_not_refundable");
    assert_eq!(merchant.balance().await, [0, 0, 0, 79], "the commission stays");

    // Ids of nobody, of another kind and of another account.
    for nobody in ["x", "00000000-0000-4000-8000-000000000000", &paid] {
        merchant.get(&format!("{PATH}/{nobody}")).await.refused(404, "not_found");
        approve(&world, nobody).await.refused(404, "not_found");
        reject(&world, nobody).await.refused(404, "not_found");
    }
    other.get(&format!("{PATH}/{whole}")).await.refused(404, "not_found");
    assert_eq!(other.get(PATH).await.expect(200), json!({"items": [], "total": 0}));
    let path = format!("/ops/refunds/{whole}/reject");
    for body in ["", "{}"] {
        let refused = world.ops_send(reqwest::Method::POST, &path, &[], body.to_owned()).await;
        assert_eq!(refused.refused(400, "validation_failed")["message"], "notes é obrigatório");
    }
    world.ops_post(&path, &json!({"notes": "x".repeat(501)})).await.refused(400, "validation_failed");
    world.check_books().await;
}

#[tokio::test]
async fn a_charge_can_be_refunded_as_long_as_its_window_lasts() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (by_pix, by_card) = (paid_pix(&merchant, "80.00").await, captured(&merchant, 8_000).await);
    let charge = merchant.get(&format!("/api/charges/{by_pix}")).await.expect(200);
    world.advance_to(time(&charge["paid_at"]) + chrono::Duration::days(90) - chrono::Duration::seconds(3)).await;
    let [in_time, too_late] =
        [request_refund(&merchant, &by_pix, 1_000).await, request_refund(&merchant, &by_pix, 500).await];
    let queue = world.ops_get("/ops/queue").await.expect(200);
    let until = time(&charge["paid_at"]) + chrono::Duration::days(90);
    assert!(items(&queue).iter().all(|item| time(&item["approvable_until"]) == until), "{queue}");
    approve(&world, &in_time).await.expect(200);
    world.advance(5).await;
    // The rail would not carry it out any more.
    approve(&world, &too_late).await.refused(422, "charge_not_refundable");
    let queue = world.ops_get("/ops/queue").await.expect(200);
    assert!(items(&queue)[0]["note"].is_string(), "{queue}");
    reject(&world, &too_late).await.expect(200);
    merchant.post(PATH, &body(&by_pix, 1)).await.refused(422, "charge_not_refundable");
    request_refund(&merchant, &by_card, 1_000).await;
    world.advance(90 * DAY).await;
    merchant.post(PATH, &body(&by_card, 1)).await.refused(422, "charge_not_refundable");
    assert_eq!(refunded(&merchant, &by_pix).await, 1_000);
    world.check_books().await;
}

#[tokio::test]
async fn the_seller_bears_it_from_pending_then_available_then_deficit() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (card, pix) = (captured(&merchant, 10_000).await, paid_pix(&merchant, "5.00").await);
    assert_eq!(merchant.balance().await, [495, 9_403, 0, 0]);
    approve(&world, &request_refund(&merchant, &card, 4_000).await).await.expect(200);
    assert_eq!(merchant.balance().await, [495, 5_403, 0, 0]);
    approve(&world, &request_refund(&merchant, &card, 6_000).await).await.expect(200);
    assert_eq!(merchant.balance().await, [0, 0, 0, 102]);
    approve(&world, &request_refund(&merchant, &pix, 500).await).await.expect(200);
    assert_eq!(merchant.balance().await, [0, 0, 0, 602]);
    paid_pix(&merchant, "10.00").await;
    assert_eq!(merchant.balance().await, [388, 0, 0, 0], "a rise of Available repays the Deficit first");
    world.advance(31 * DAY).await;
    assert_eq!(merchant.balance().await, [388, 0, 0, 0], "nothing of the refunded charge falls due");
    world.check_books().await;
}

#[tokio::test]
async fn commission_comes_back_where_the_account_says_so() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": false,
            "options": {"refund_commission": true}}))
        .await;
    let (card, pix) = (captured(&merchant, 10_000).await, paid_pix(&merchant, "80.00").await);
    for (txid, amount, balance, fees) in [
        (&card, 3_333, [7_921, 6_269, 0, 0], json!({"mdr": 100, "antifraud": 66, "margin": 33})),
        (&card, 3_333, [7_921, 3_135, 0, 0], json!({"mdr": 99, "antifraud": 66, "margin": 34})),
        (&pix, 8_000, [0, 3_135, 0, 0], json!({"pix": 79})),
        (&card, 3_334, [0, 0, 0, 0], json!({"mdr": 100, "antifraud": 66, "margin": 33})),
    ] {
        let refund = request_refund(&merchant, txid, amount).await;
        let shown = approve(&world, &refund).await.expect(200);
        assert_eq!(merchant.balance().await, balance, "{amount}");
        let came_back = shown["fees"].as_array().unwrap().iter();
        let came_back: Value = came_back.map(|fee| (text(&fee["kind"]), fee["amount"].clone())).collect();
        assert_eq!(came_back, fees, "{amount}");
        assert_eq!(merchant.get(&format!("/api/refunds/{refund}")).await.expect(200)["fees"], shown["fees"]);
        let events = merchant.get("/api/events?limit=5").await.expect(200);
        let is_approval = |event: &&Value| event["event"] == "refund.approved" && event["refund"]["id"] == *refund;
        assert_eq!(items(&events).iter().find(is_approval).unwrap()["refund"]["fees"], shown["fees"]);
    }
    for (txid, count) in [(&card, 8), (&pix, 4)] {
        let list = merchant.get(&format!("/api/balance/operations?charge={txid}")).await.expect(200);
        let sum: i64 = items(&list).iter().map(|line| line["amount"].as_i64().unwrap()).sum();
        assert_eq!((sum, items(&list).len()), (0, count), "the charge and its refunds: {list}");
    }
    let accounts = world.accounts().await;
    let fees = accounts.iter().filter(|((_, account), _)| account.starts_with("Expenses:Fees:"));
    assert!(fees.clone().count() >= 4 && fees.into_iter().all(|(_, balance)| *balance == 0), "{accounts:?}");
    world.check_books().await;
}

#[tokio::test]
async fn a_take_back_makes_the_recipients_owe() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 2_000), (&bia, 1_500)]);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let ask = |amount, splits: &[(&str, i64)]| with_splits(body(&txid, amount), splits);
    for (refund, status, code) in [
        (ask(799, &[(&ana, 800)]), 409, "refund_exceeds_available"),
        (ask(4_000, &[(&ana, 2_001)]), 409, "refund_exceeds_available"),
        (ask(4_000, &[(&ana, 1_000), (&ana, 1_001)]), 409, "refund_exceeds_available"),
        (ask(4_000, &[(&ana, 1), ("00000000-0000-4000-8000-000000000000", 1)]), 400, "recipient_not_found"),
    ] {
        merchant.post(PATH, &refund).await.refused(status, code);
    }
    let created = merchant.post(PATH, &ask(4_000, &[(&ana, 800), (&bia, 500)])).await.expect(201);
    let taken = json!([{"sub_recipient_id": ana, "amount": 800}, {"sub_recipient_id": bia, "amount": 500}]);
    assert_eq!(created["splits"], taken);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 2_000], "nothing moves before it is approved");
    merchant.post(PATH, &ask(2_000, &[(&ana, 1_201)])).await.refused(409, "refund_exceeds_available");
    let approved = approve(&world, &text(&created["id"])).await.expect(200);
    assert_eq!(approved["splits"], taken);
    merchant.post(PATH, &ask(2_000, &[(&ana, 1_201)])).await.refused(409, "refund_exceeds_available");
    for (recipient, amount) in [(&ana, 800), (&bia, 500)] {
        let reversed = of(&merchant, &format!("R-{recipient}"), "Income:Contra:SplitReversals").await;
        assert_eq!(reversed, amount);
        let owed = of(&merchant, &format!("R-{recipient}"), &format!("Liabilities:Clawback:M-{}", merchant.id)).await;
        let due = of(&merchant, &merchant.ledger(), &format!("Assets:Receivable:Recipients:R-{recipient}")).await;
        assert_eq!(owed + due, 0, "what one owes is what the other is owed");
    }
    assert_eq!(of(&merchant, &merchant.ledger(), "Income:Contra:Splits").await, 2_200);
    world.check_books().await;
}

#[tokio::test]
async fn of_a_hundred_refunds_as_many_win_as_the_charge_has() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "10.00").await;
    let request = body(&txid, 130);
    let answers = futures_of(100, |_| merchant.post(PATH, &request)).await;
    let won: Vec<_> =
        answers.iter().filter(|answer| answer.status == 201).map(|answer| text(&answer.body["id"])).collect();
    assert_eq!(won.len(), 7);
    assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 409)));
    // Each is approved by one of several operators, and rejected by none after that, or the
    // reverse.
    let mut approved = 0;
    for id in &won {
        let (approvals, rejections) =
            tokio::join!(futures_of(6, |_| approve(&world, id)), futures_of(6, |_| reject(&world, id)));
        let decided: Vec<_> = approvals.into_iter().chain(rejections).collect();
        let mut winners = decided.iter().filter(|answer| answer.status == 200);
        let winner = winners.next().expect("somebody decides").body["status"].clone();
        assert!(winners.next().is_none(), "decided twice");
        for late in decided.into_iter().filter(|answer| answer.status != 200) {
            late.refused(409, "already_decided");
        }
        assert_eq!(merchant.get(&format!("{PATH}/{id}")).await.expect(200)["status"], winner);
        approved += i64::from(winner == "approved");
    }
    assert_eq!(refunded(&merchant, &txid).await, approved * 130);
    assert_eq!(merchant.balance().await[0], 990 - approved * 130);
    // What was rejected is free again.
    let left = 1_000 - approved * 130;
    merchant.post(PATH, &body(&txid, left + 1)).await.refused(409, "refund_exceeds_available");
    request_refund(&merchant, &txid, left).await;
    world.check_books().await;
}

#[tokio::test]
async fn a_key_makes_requests_and_decisions_one() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    let request = body(&txid, 4_000);
    let answers = futures_of(8, |_| merchant.post_keyed(PATH, "refund 1", &request)).await;
    let id = text(&answers[0].body["id"]);
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body["id"] == id.as_str()));
    merchant.post_keyed(PATH, "refund 1", &body(&txid, 4_001)).await.refused(422, "idempotency_key_reused");
    let path = format!("/ops/refunds/{id}/approve");
    let key = [("idempotency-key", "decision 1")];
    let send = || world.ops_send(reqwest::Method::POST, &path, &key, String::new());
    let first = send().await;
    assert_eq!(first.header("idempotent-replayed"), None);
    let first = first.expect(200);
    let again = send().await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(200), first);
    approve(&world, &id).await.refused(409, "already_decided");
    let replayed = merchant.post_keyed(PATH, "refund 1", &request).await;
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(replayed.expect(201)["status"], "pending", "the answer that was given");
    assert_eq!(merchant.get(PATH).await.expect(200)["total"], 1);
}

#[tokio::test]
async fn a_restart_forgets_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = captured(&merchant, 10_000).await;
    approve(&world, &request_refund(&merchant, &txid, 1_000).await).await.expect(200);
    let waiting = merchant.post(PATH, &with(&body(&txid, 2_000), "/reason", json!("Arrependimento"))).await.expect(201);
    let (list, names) = (merchant.get(PATH).await.expect(200), merchant.names);
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(merchant.get(PATH).await.expect(200), list);
    merchant.post(PATH, &body(&txid, 7_001)).await.refused(409, "refund_exceeds_available");
    approve(&world, &text(&waiting["id"])).await.expect(200);
    assert_eq!(refunded(&merchant, &txid).await, 3_000);
    assert_eq!(merchant.balance().await, [0, 6_403, 0, 0]);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    world.advance(31 * DAY).await;
    assert_eq!(merchant.balance().await, [6_403, 0, 0, 0]);
    world.check_books().await;
}

/// A PIX institution that has the orders to repay, and does not say so at first.
#[derive(Clone, Default)]
struct Institution {
    silent: Arc<Mutex<bool>>,
    orders: Arc<Mutex<BTreeMap<ObjectId, Vec<i64>>>>,
}

impl Institution {
    fn is_silent(&self, silent: bool) {
        *self.silent.lock().unwrap() = silent;
    }

    fn orders(&self) -> Vec<Vec<i64>> {
        self.orders.lock().unwrap().values().cloned().collect()
    }
}

impl PixRail for Institution {
    fn location(&self, charge: ObjectId) -> Option<String> {
        Some(format!("institution.example/{}", charge.txid()))
    }

    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(ready(Ok(PixFate::Cancelled)))
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Ok(RailStamp::new("r-1".to_owned(), Timestamp(1_000)))))
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        self.orders.lock().unwrap().entry(call.id).or_default().push(call.amount.0);
        if *self.silent.lock().unwrap() {
            Box::pin(ready(Err(RailError::NoAnswer)))
        } else {
            let stamp = RailStamp::new("r-1".to_owned(), Timestamp(1_000));
            Box::pin(ready(Ok(RepayAnswer::Repaid(stamp))))
        }
    }
}

#[tokio::test]
async fn a_silent_rail_is_told_again_under_the_same_id() {
    let institution = Institution::default();
    let world = World::with_institution(institution.clone()).await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    institution.is_silent(true);
    let id = request_refund(&merchant, &txid, 4_000).await;
    assert_eq!(approve(&world, &id).await.expect(200)["status"], "approved", "the decision stands");
    assert_eq!((merchant.balance().await[0], owed_to_payers(&merchant).await), (3_921, -4_000));
    world.advance(60).await;
    assert_eq!(owed_to_payers(&merchant).await, -4_000);
    institution.is_silent(false);
    world.advance(60).await;
    assert_eq!(owed_to_payers(&merchant).await, 0);
    let orders = institution.orders();
    assert!(orders.len() == 1 && orders[0].len() > 2 && orders[0].iter().all(|amount| *amount == 4_000), "{orders:?}");
    let orders = orders[0].len();
    world.advance(DAY).await;
    assert_eq!(institution.orders()[0].len(), orders, "what is sent is not sent again");
    world.check_books().await;
}

/// A PIX institution that never comes back.
struct Abyss;

impl PixRail for Abyss {
    fn location(&self, charge: ObjectId) -> Option<String> {
        Some(format!("institution.example/{}", charge.txid()))
    }

    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(ready(Ok(PixFate::Cancelled)))
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Ok(RailStamp::new("r-1".to_owned(), Timestamp(1_000)))))
    }

    fn repay(&self, _order: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(pending())
    }
}

#[tokio::test]
async fn what_a_server_did_not_send_the_next_one_sends() {
    let world = World::with_institution(Abyss).await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    approve(&world, &request_refund(&merchant, &txid, 4_000).await).await.expect(200);
    assert_eq!(owed_to_payers(&merchant).await, -4_000);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    world.advance(1).await;
    assert_eq!(owed_to_payers(&merchant).await, 0);
    assert_eq!(of(&merchant, &format!("P-{}", merchant.id), "Assets:Bank:Pix").await, 4_000);
    world.check_books().await;
}

#[tokio::test]
async fn a_code_that_is_paid_too_late_is_paid_back_once() {
    let institution = Institution::default();
    let world = World::with_institution(institution.clone()).await;
    let merchant = world.merchant().await;
    let txid =
        text(&merchant.post("/api/pix", &with(&pix("80.00"), "/expires_in", json!(60))).await.expect(201)["txid"]);
    world.advance(61).await;
    let before = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!(before["status"], "cancelled");
    let answers = futures_of(20, |_| merchant.pay(&txid)).await;
    for answer in answers {
        let refused = answer.refused(409, "charge_not_pending");
        assert_eq!(refused["charge_status"], "cancelled");
        assert!(text(&refused["detail"]).contains("goes back to the payer"), "{refused}");
    }
    merchant.pay(&txid).await.refused(409, "charge_not_pending");
    assert_eq!(institution.orders(), [[8_000]]);
    assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200), before);
    assert_eq!(merchant.balance().await, [0, 0, 0, 0]);
    let entries = world.ops_get(&format!("/ops/ledgers/P-{}/entries", merchant.id)).await.expect(200);
    assert_eq!(entries["total"], 2, "received, and sent back: {entries}");
    assert_eq!(
        (owed_to_payers(&merchant).await, of(&merchant, &format!("P-{}", merchant.id), "Assets:Bank:Pix").await),
        (0, 0)
    );
    // Long after, when the account has other things on its mind.
    world.advance(91 * DAY).await;
    merchant.post("/api/pix", &pix("1.00")).await.expect(201);
    merchant.pay(&txid).await.refused(409, "charge_not_pending");
    assert_eq!(institution.orders(), [[8_000]]);
    world.check_books().await;
}

/// Shows: 4.GET./api/refunds.
#[tokio::test]
async fn the_list_has_all_of_them() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = paid_pix(&merchant, "80.00").await;
    let mut ids = Vec::new();
    for _ in 0..205 {
        ids.push(request_refund(&merchant, &txid, 1).await);
    }
    let list = merchant.get(PATH).await.expect(200);
    let listed: Vec<_> = items(&list).iter().rev().map(|refund| text(&refund["id"])).collect();
    assert_eq!((&listed, &list["total"]), (&ids, &json!(205)));
    has_exactly(&list, &["items", "total"]);

    // A part of them, by status and by date.
    approve(&world, &ids[7]).await.expect(200);
    reject(&world, &ids[204]).await.expect(200);
    world.advance(10).await;
    let late = request_refund(&merchant, &txid, 1).await;
    let created_at = text(&merchant.get(&format!("{PATH}/{late}")).await.expect(200)["created_at"]);
    let part = async |query: &str| {
        let list = merchant.get(&format!("{PATH}?{query}")).await.expect(200);
        has_exactly(&list, &["items", "total"]);
        let found: Vec<_> = items(&list).iter().map(|refund| text(&refund["id"])).collect();
        assert_eq!(list["total"], found.len());
        found
    };
    assert_eq!(part("status=approved").await, [ids[7].clone()]);
    assert_eq!(part("status=rejected").await, [ids[204].clone()]);
    assert_eq!(part("status=pending").await.len(), 204);
    assert_eq!(part(&format!("from={created_at}")).await, std::slice::from_ref(&late));
    assert_eq!(part(&format!("to={created_at}")).await.len(), 205);
    assert_eq!(part(&format!("to={created_at}&status=pending")).await.len(), 203);
    assert!(part("from=2099-01-01&status=pending").await.is_empty());
    for (query, field) in [("status=paid", "status"), ("from=x", "from")] {
        let refused = merchant.get(&format!("{PATH}?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}

/// The amount of a refund that the sandbox's institutions refuse, centavos.
const REFUSED_REFUND: i64 = 1_357;

#[tokio::test]
async fn a_refund_that_the_rail_refuses_fails_and_all_money_is_back() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let of_pix = with_splits(pix("100.00"), &[(&ana, 2_000)]);
    let of_card = with_splits(card(10_000, APPROVED), &[(&ana, 2_000)]);
    let by_pix = text(&merchant.paid_pix(&of_pix).await["txid"]);
    let by_card = text(&merchant.post("/api/card", &of_card).await.expect(201)["txid"]);
    let before = (merchant.balance().await, merchant.statement(&ana).await);
    for txid in [&by_pix, &by_card] {
        let id = {
            let body = with_splits(body(txid, REFUSED_REFUND), &[(&ana, 800)]);
            text(&merchant.post(PATH, &body).await.expect(201)["id"])
        };
        let failed = approve(&world, &id).await.expect(200);
        assert_eq!((&failed["status"], failed["notes"].is_string()), (&json!("failed"), true), "{failed}");
        assert_eq!(merchant.get(&format!("{PATH}/{id}")).await.expect(200), failed);
        assert_eq!((merchant.balance().await, merchant.statement(&ana).await), before);
        assert_eq!((refunded(&merchant, txid).await, owed_to_payers(&merchant).await), (json!(0), 0));
        approve(&world, &id).await.refused(409, "already_decided");
        let events = merchant.get("/api/events").await.expect(200);
        let of_refund = items(&events).iter().filter(|event| event["refund"]["id"] == *id);
        let events_of: Vec<_> =
            of_refund.map(|event| (text(&event["event"]), event["refund"]["status"].clone())).collect();
        assert!(events_of.contains(&("refund.failed".to_owned(), json!("failed"))), "{events}");
        assert!(events_of.contains(&("refund.approved".to_owned(), json!("approved"))), "{events}");
        // Whoever stores the charge of each event has the amount that the charge shows now.
        let of_charge = items(&events).iter().filter(|event| event["charge"]["txid"] == **txid);
        let newest = of_charge.max_by_key(|event| event["sequence"].as_u64()).unwrap();
        assert_eq!(
            (&newest["event"], &newest["charge"]),
            (&json!("refund.failed"), &merchant.get(&format!("/api/charges/{txid}")).await.expect(200))
        );
    }
    let listed = merchant.get(&format!("{PATH}?status=failed")).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    // The same money can be asked back again, by another amount.
    let body = with_splits(body(&by_card, 10_000), &[(&ana, 2_000)]);
    let id = text(&merchant.post(PATH, &body).await.expect(201)["id"]);
    assert_eq!(approve(&world, &id).await.expect(200)["status"], "approved");
    assert_eq!(refunded(&merchant, &by_card).await, 10_000);
    world.check_books().await;
    let world = world.restarted().await;
    world.check_books().await;
}
