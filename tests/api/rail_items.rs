//! Orders whose rail left the outcome unknown: two operators end them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use actors::rails::{
    Call, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, PayoutAnswer, PayoutRail, PixFate,
    PixRail, RailError, Repay, RepayAnswer, SendPayout, SettlementCursor, SettlementPage,
};
use ledger::time::Timestamp;
use ledger::{Centavos, ObjectId, OpenCharge, PayoutBank, RailStamp};
use serde_json::{Value, json};

use crate::console::Browser;
use crate::world::*;

/// An institution that does not answer until it is back, and has carried out what it was sent; or
/// has none of it.
#[derive(Default)]
struct SilentRail {
    is_back: Arc<AtomicBool>,
    has_none: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
}

impl PayoutRail for SilentRail {
    fn send(&self, _: SendPayout) -> Call<'_, PayoutAnswer> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn find(&self, _: SendPayout, at: Timestamp) -> Call<'_, PayoutAnswer> {
        let (transfer_id, end_to_end_id, from) = ("T-1".to_owned(), END_TO_END_ID.to_owned(), PayoutBank::Pix);
        let done = PayoutAnswer::Processed { transfer_id, end_to_end_id, at, from };
        let answer = match [&self.is_back, &self.has_none].map(|flag| flag.load(Ordering::Relaxed)) {
            [true, _] => Ok(done),
            [false, true] => Ok(PayoutAnswer::NotTaken),
            [false, false] => Err(RailError::NoAnswer),
        };
        Box::pin(std::future::ready(answer))
    }

    fn horizon(&self) -> Duration {
        Duration::from_secs(600)
    }
}

const END_TO_END_ID: &str = "E0000000020261128120012345678901";

fn word(outcome: &str, reference: &str) -> Value {
    json!({"outcome": outcome, "reference": reference, "reason": "O banco confirmou por escrito"})
}

#[tokio::test]
async fn two_operators_say_what_became_of_a_cashout() {
    let world = World::with_payouts(SilentRail::default()).await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    let body = json!({"amount": 1_000, "pix_key": "ana@loja.com.br", "pix_key_type": "email"});
    let id = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let settle = format!("/ops/rail-items/{id}/settle");
    world.ops_post(&settle, &word("happened", END_TO_END_ID)).await.refused(409, "outcome_not_unknown");
    world.advance(3_700).await;
    for (wrong, field) in [
        (word("perhaps", "P-1"), "outcome"),
        (word("happened", "P-1"), "reference"),
        (word("did_not_happen", ""), "reference"),
        (json!({"outcome": "happened", "reference": END_TO_END_ID}), "reason"),
    ] {
        let refused = world.ops_post(&settle, &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    let unknown = "/ops/rail-items/00000000-0000-8000-8000-000000000000/settle";
    world.ops_post(unknown, &word("did_not_happen", "P-1")).await.refused(404, "not_found");
    let first = world.ops_post(&settle, &word("happened", END_TO_END_ID)).await.expect(202);
    assert_eq!([&first["status"], &first["requested_by"]], ["waiting_second", "operator"]);
    let queued = items(&world.ops_get("/ops/queue?kind=payout").await.expect(200))[0].clone();
    assert_eq!([&queued["id"], &queued["status"]], [&*id, "waiting_second"]);
    assert_eq!([&queued["outcome"], &queued["reference"]], ["happened", END_TO_END_ID]);
    assert_eq!([&queued["ordered"], &queued["rail"]], [&json!("cashout"), &Value::Null]);
    world.ops_post(&settle, &word("happened", END_TO_END_ID)).await.refused(409, "second_operator_needed");
    let world = World::with_payouts_on(world.stopped().await, SilentRail::default()).await;
    let key = [("idempotency-key", "word-1")];
    let settled = world.second_ops_post(&settle, &key, &word("happened", END_TO_END_ID)).await.expect(200);
    assert_eq!([&settled["status"], &settled["settled_by"]], ["settled", "second"]);
    assert_eq!(world.second_ops_post(&settle, &key, &word("happened", END_TO_END_ID)).await.expect(200), settled);
    world.second_ops_post(&settle, &[], &word("happened", END_TO_END_ID)).await.refused(409, "outcome_not_unknown");
    assert!(items(&world.ops_get("/ops/queue").await.expect(200)).is_empty());
    world.check_books().await;
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let rows = items(&audit).iter().filter(|row| row["kind"] == "rail_item");
    let said = |row: &Value| [0, 1].map(|at| text(&row["changes"][at]["new"]));
    let rows: Vec<_> = rows.map(|row| ([text(&row["action"]), text(&row["operator"])], said(row))).collect();
    let word = || ["happened", END_TO_END_ID].map(str::to_owned);
    assert_eq!(rows[0], (["settle", "second"].map(str::to_owned), word()));
    assert_eq!(rows[1], (["request", "operator"].map(str::to_owned), word()));
}

/// The first word was said of a cashout whose outcome nobody knew: once its rail has spoken, it
/// takes no money back.
#[tokio::test]
async fn the_first_word_lapses_when_the_rail_speaks() {
    let rail = SilentRail::default();
    let is_back = Arc::clone(&rail.is_back);
    let world = World::with_payouts(rail).await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    let body = json!({"amount": 1_000, "pix_key": "ana@loja.com.br", "pix_key_type": "email"});
    let id = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let shown = async || text(&merchant.get(&format!("/api/cashout/{id}")).await.expect(200)["status"]);
    world.advance(3_700).await;
    let (settle, wrong) = (format!("/ops/rail-items/{id}/settle"), word("did_not_happen", "P-1"));
    world.ops_post(&settle, &wrong).await.expect(202);
    is_back.store(true, Ordering::Relaxed);
    world.advance(3_700).await;
    let [after, _, _, _] = merchant.balance().await;
    assert_eq!(shown().await, "processed");
    let said = world.second_ops_post(&settle, &[], &wrong).await.expect(202);
    assert_eq!([&said["status"], &said["requested_by"]], ["waiting_second", "second"]);
    assert_eq!((shown().await, merchant.balance().await[0]), ("processed".to_owned(), after));
    // Of the cashout as it is now, two operators may say that it came back.
    world.ops_post(&settle, &wrong).await.expect(200);
    assert_eq!((shown().await, merchant.balance().await[0]), ("failed".to_owned(), after + 1_000));
    world.check_books().await;
}

/// A PIX institution that answers neither the end of a code nor a repayment.
struct SilentPix;

impl PixRail for SilentPix {
    fn location(&self, charge: ObjectId) -> Option<String> {
        Some(format!("institution.example/{}", charge.txid()))
    }

    fn cancel(&self, _: ObjectId) -> Call<'_, PixFate> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }
}

/// Whoever settles an item reads what it is, in the queue and in the console.
#[tokio::test]
async fn an_item_names_what_was_ordered() {
    let world = World::with_institution(SilentPix).await;
    let merchant = world.merchant().await;
    let paid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let refund = merchant.post("/api/refunds", &json!({"payment_id": paid, "amount": 4_000})).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    let expiring = with(&pix("80.00"), "/expires_in", json!(60));
    let open = text(&merchant.post("/api/pix", &expiring).await.expect(201)["txid"]);
    world.advance(4_000).await;
    let queue = world.ops_get("/ops/queue?kind=rail").await.expect(200);
    let of = |item: &Value| ["payment_id", "ordered"].map(|name| text(&item[name]));
    let mut shown: Vec<_> = items(&queue).iter().map(of).collect();
    shown.sort_by_key(|[_, ordered]| ordered.clone());
    assert_eq!(shown, [[open, "pix".to_owned()], [paid, "repayment".to_owned()]]);
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page("/console/queue").await.has(&["PIX charge", "repayment to a payer"]);
    let item = format!("/console/queue/{}", text(&items(&queue)[0]["id"]));
    browser.language = "pt";
    browser.page("/console/queue").await.has(&["cobrança PIX", "devolução a quem pagou"]);
    browser.page(&item).await.has(&["O que foi pedido", "O lojista lê o motivo"]);
}

/// An acquirer that has each charge under way, until it captures them, or is silent.
#[derive(Default)]
struct SlowAcquirer {
    captures: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
}

impl CardRail for SlowAcquirer {
    fn charge(&self, _: ChargeCard) -> Call<'_, CardAnswer> {
        Box::pin(std::future::ready(Ok(CardAnswer::UnderWay)))
    }

    fn close<'a>(&'a self, charge: ObjectId, _: &'a OpenCharge) -> Call<'a, CardFate> {
        let stamp = RailStamp::new("000000000017".to_owned(), charge.created_at());
        let answer = match [&self.captures, &self.is_silent].map(|flag| flag.load(Ordering::Relaxed)) {
            [_, true] => Err(RailError::NoAnswer),
            [true, _] => Ok(CardAnswer::Captured { acquirer_mdr: Centavos(299), brand: None, stamp }),
            [false, _] => Ok(CardAnswer::UnderWay),
        };
        Box::pin(std::future::ready(answer.map(CardFate::Answered)))
    }

    fn tokenize(&self, _: CardSecrets) -> Call<'_, CardToken> {
        Box::pin(std::future::ready(Err(RailError::NotSent)))
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn settlements(&self, _: SettlementCursor, _: Timestamp) -> Call<'_, Option<SettlementPage>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A charge that its acquirer has under way is pending, and operators can't end it as one that did
/// not happen: the card is charged an hour later.
#[tokio::test]
async fn a_card_charge_under_way_stays_until_its_acquirer_has_decided() {
    let acquirer = SlowAcquirer::default();
    let captures = Arc::clone(&acquirer.captures);
    let world = World::with_acquirer(acquirer).await;
    let merchant = world.merchant().await;
    let charged = merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    let shown = async || merchant.get(&format!("/api/charges/{}", text(&charged["txid"]))).await.expect(200);
    world.advance(3_700).await;
    assert_eq!([&charged["status"], &shown().await["status"]], ["pending", "pending"]);
    let queue = world.ops_get("/ops/queue?kind=rail").await.expect(200);
    let (settle, wrong) =
        (format!("/ops/rail-items/{}/settle", text(&items(&queue)[0]["id"])), word("did_not_happen", "P-1"));
    world.ops_post(&settle, &wrong).await.expect(202);
    world.second_ops_post(&settle, &[], &wrong).await.refused(409, "outcome_not_unknown");
    assert_eq!(shown().await["status"], "pending");
    captures.store(true, Ordering::Relaxed);
    world.second_ops_post(&settle, &[], &wrong).await.refused(409, "outcome_not_unknown");
    assert_eq!(shown().await["status"], "CONCLUIDA", "the acquirer's word is booked");
    world.check_books().await;
}

/// A charge that was under way a while ago may still be captured: the second word waits until its
/// acquirer has been silent for 70 minutes. One that is under way has no unknown outcome.
#[tokio::test]
async fn a_silent_acquirer_has_a_card_charge_under_way_for_seventy_minutes() {
    let acquirer = SlowAcquirer::default();
    let is_silent = Arc::clone(&acquirer.is_silent);
    let world = World::with_acquirer(acquirer).await;
    let merchant = world.merchant().await;
    let charged = merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    let shown = async || merchant.get(&format!("/api/charges/{}", text(&charged["txid"]))).await.expect(200);
    let unknown_for = async || {
        let metrics = world.ops_get("/metrics").await.text;
        let age = "centavo_rail_oldest_unknown_seconds{rail=\"sandbox\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(age)).unwrap().parse::<i64>().unwrap()
    };
    world.advance(3_700).await;
    assert_eq!(unknown_for().await, 0);
    let queue = world.ops_get("/ops/queue?kind=rail").await.expect(200);
    let (settle, wrong) =
        (format!("/ops/rail-items/{}/settle", text(&items(&queue)[0]["id"])), word("did_not_happen", "P-1"));
    world.ops_post(&settle, &wrong).await.expect(202);
    is_silent.store(true, Ordering::Relaxed);
    world.second_ops_post(&settle, &[], &wrong).await.refused(409, "outcome_not_unknown");
    world.advance(3_000).await;
    world.second_ops_post(&settle, &[], &wrong).await.refused(409, "outcome_not_unknown");
    assert_eq!(shown().await["status"], "pending");
    assert!(unknown_for().await > 6_000);
    world.advance(1_300).await;
    world.second_ops_post(&settle, &[], &wrong).await.expect(200);
    assert_eq!(shown().await["status"], "RECUSADA");
    world.check_books().await;
}

/// Before the second word is booked the rail is asked once more: its own word goes before that of
/// the operators.
#[tokio::test]
async fn a_rail_that_is_back_is_asked_before_the_second_word() {
    let rail = SilentRail::default();
    let (is_back, sent) = (Arc::clone(&rail.is_back), Arc::clone(&rail.sent));
    let world = World::with_payouts(rail).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_000)])).await;
    let body = json!({"amount": 1_000, "pix_key": "ana@loja.com.br", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    world.advance(3_700).await;
    let wrong = word("did_not_happen", "P-1");
    let settle = |id: &str| format!("/ops/rail-items/{id}/settle");
    for id in [&cashout, &withdrawal] {
        world.ops_post(&settle(id), &wrong).await.expect(202);
    }
    is_back.store(true, Ordering::Relaxed);
    for id in [&cashout, &withdrawal] {
        world.second_ops_post(&settle(id), &[], &wrong).await.refused(409, "outcome_not_unknown");
    }
    let shown = merchant.get(&format!("/api/cashout/{cashout}")).await.expect(200);
    assert_eq!([&shown["status"], &merchant.withdrawals(&ana).await[0]["status"]], ["processed", "approved"]);
    assert_eq!(sent.load(Ordering::Relaxed), 2, "it is asked, and nothing is sent");
    assert!(items(&world.ops_get("/ops/queue").await.expect(200)).is_empty());
    world.check_books().await;
}

/// A rail that has none of a transfer is sent it again and again, until the first word; the last
/// sending has an hour to arrive.
#[tokio::test]
async fn nothing_is_sent_again_before_the_second_word() {
    let rail = SilentRail::default();
    let sent = Arc::clone(&rail.sent);
    rail.has_none.store(true, Ordering::Relaxed);
    let world = World::with_payouts(rail).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_000)])).await;
    let body = json!({"amount": 1_000, "pix_key": "ana@loja.com.br", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    world.advance(3_700).await;
    let before = sent.load(Ordering::Relaxed);
    assert!(before > 4, "{before}");
    let (ids, word) = ([cashout, withdrawal], word("did_not_happen", "P-1"));
    let settles = ids.map(|id| format!("/ops/rail-items/{id}/settle"));
    for settle in &settles {
        world.ops_post(settle, &word).await.expect(202);
        world.second_ops_post(settle, &[], &word).await.refused(409, "outcome_not_unknown");
    }
    let queue = world.ops_get("/ops/queue?kind=payout").await.expect(200);
    assert_eq!(items(&queue).len(), 2);
    assert!(items(&queue).iter().all(|item| !item["settles_from"].is_null()), "{queue}");
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let item = format!("/console/queue/{}", text(&items(&queue)[0]["id"]));
    let own = ["Another operator may say it from", "Another operator says the same", "name=\"reference\""];
    browser.page(&item).await.has(&own);
    world.advance(3_600).await;
    for settle in &settles {
        world.second_ops_post(settle, &[], &word).await.expect(200);
    }
    assert_eq!(sent.load(Ordering::Relaxed), before);
    world.check_books().await;
}

#[tokio::test]
async fn two_operators_say_that_a_withdrawal_did_not_go() {
    let world = World::with_payouts(SilentRail::default()).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&id).await.expect(200);
    world.advance(3_700).await;
    let queued = items(&world.ops_get("/ops/queue?kind=payout").await.expect(200))[0].clone();
    assert_eq!([&queued["id"], &queued["ordered"]], [&*id, "withdrawal"]);
    let settle = format!("/ops/rail-items/{id}/settle");
    world.ops_post(&settle, &word("did_not_happen", "P-1")).await.expect(202);
    world.second_ops_post(&settle, &[], &word("did_not_happen", "P-1")).await.expect(200);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    let shown = &merchant.withdrawals(&ana).await[0];
    assert_eq!([&shown["status"], &shown["notes"]], ["rejected", "O banco confirmou por escrito"]);
    let item = world.ops_get(&format!("/ops/queue/{id}")).await.expect(200);
    let actions: Vec<_> = item["decisions"].as_array().unwrap().iter().map(|taken| text(&taken["action"])).collect();
    assert_eq!(actions, ["approve", "request", "settle"]);
    let rows = world.ops_get("/ops/audit?kind=rail_item").await.expect(200);
    assert_eq!([&items(&rows)[0]["action"], &items(&rows)[0]["id"]], ["settle", &*id]);
    world.check_books().await;
}

/// The books say what the bank's statement says: the sandbox's bank has a line for each way.
#[tokio::test]
async fn a_cashout_that_the_bank_sends_back_is_available_again() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    let [before, _, _, _] = merchant.balance().await;
    let ids = async |key: &str| {
        let body = json!({"amount": 1_000, "pix_key": key, "pix_key_type": "email"});
        text(&merchant.post("/api/cashout", &body).await.expect(201)["id"])
    };
    let [returned, sent] = [ids("return@loja.com.br").await, ids("ana@loja.com.br").await];
    world.advance(0).await;
    let shown = async |id: &str| merchant.get(&format!("/api/cashout/{id}")).await.expect(200);
    let processed = shown(&returned).await;
    assert_eq!([&processed["status"], &shown(&sent).await["status"]], ["processed", "processed"]);
    for _ in 0..3 {
        world.advance(86_400).await;
        let back = shown(&returned).await;
        let reason = "O banco devolveu a transferência: a conta da chave foi encerrada";
        assert_eq!([&back["rejected_by"], &back["notes"]], ["returned", reason]);
        assert_eq!([&back["status"], &back["end_to_end_id"]], [&json!("failed"), &processed["end_to_end_id"]]);
        assert_eq!(merchant.balance().await[0], before - 1_000);
    }
    // Two operators have the other one's return on paper.
    let settle = format!("/ops/rail-items/{sent}/settle");
    world.ops_post(&settle, &word("did_not_happen", "D-1")).await.expect(202);
    world.second_ops_post(&settle, &[], &word("did_not_happen", "D-1")).await.expect(200);
    world.ops_post(&settle, &word("did_not_happen", "D-1")).await.refused(409, "outcome_not_unknown");
    world.ops_post(&settle, &word("happened", END_TO_END_ID)).await.refused(409, "outcome_not_unknown");
    assert_eq!((&shown(&sent).await["status"], merchant.balance().await[0]), (&json!("failed"), before));
    let back = shown(&sent).await;
    assert_eq!([&back["rejected_by"], &back["notes"]], ["returned", "O banco confirmou por escrito"]);
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let count = items(&events).iter().filter(|event| event["event"] == "cashout.returned").count();
    assert_eq!(count, 2, "{events}");
    world.check_books().await;
}
