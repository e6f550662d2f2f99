//! Cashouts (interface 2.6, 3.2, 7): the answers, the money, and that each is carried out at most
//! once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actors::rails::{Call, PayoutAnswer, PayoutRail, RailError, SendPayout};
use chrono::DateTime;
use ledger::time::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::console::Browser;
use crate::world::*;

const ITEM: [&str; 6] = ["object", "id", "merchant_transaction_id", "amount", "status", "date_created"];
const VIEW: [&str; 11] = [
    "object",
    "id",
    "merchant_transaction_id",
    "picpay_transfer_id",
    "amount",
    "status",
    "pix_key",
    "pix_key_type",
    "end_to_end_id",
    "date_created",
    "date_updated",
];

fn cashout(amount: i64, key: &str) -> Value {
    json!({"amount": amount, "pix_key": key, "pix_key_type": "email"})
}

fn numbered(body: &Value, number: u32) -> Value {
    with(body, "/merchant_transaction_id", json!(format!("00000000-0000-4000-8000-{number:012}")))
}

/// A merchant with 100.00 reais less the commission: 9901 centavos are available.
async fn funded(world: &World) -> Merchant<'_> {
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    assert_eq!(merchant.balance().await, [9_901, 0, 0, 0]);
    merchant
}

async fn found(merchant: &Merchant<'_>, id: &Value) -> Value {
    let view = merchant.get(&format!("/api/cashout/{}", text(id))).await.expect(200);
    let reason = if view["status"] == "failed" { &["notes", "rejected_by"][..] } else { &[] };
    has_exactly(&view, &[&VIEW, reason].concat());
    view
}

/// What the sandbox's institution has carried out: id and centavos.
fn carried_out(world: &World) -> Vec<(String, i64)> {
    let lines = std::fs::read_to_string(world.folder().join("sandbox/payouts")).unwrap_or_default();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    lines.lines().map(words).map(|words| (words[0].clone(), words[1].parse().unwrap())).collect()
}

/// A timestamp, which must have microseconds and `+00:00`.
fn instant(value: &Value) -> DateTime<chrono::Utc> {
    let text = text(value);
    assert!(text.len() == 32 && text.ends_with("+00:00") && text.as_bytes()[19] == b'.', "{text}");
    DateTime::parse_from_rfc3339(&text).unwrap().to_utc()
}

/// Shows: 2.6.amount, 2.6.pix_key, 2.6.charging, 2.6.record.object, 2.6.record.id,
/// 2.6.record.picpay_transfer_id, 2.6.record.amount, 2.6.record.status, 2.6.record.pix_key,
/// 2.6.record.pix_key_type, 2.6.record.end_to_end_id, 2.6.record.date_created,
/// 2.6.record.date_updated, 3.2.created, 3.2.processed, 4.POST./api/cashout,
/// 4.GET./api/cashout/:id.
#[tokio::test]
async fn a_cashout_is_in_processing_and_then_processed() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let body = with(&numbered(&cashout(3_000, "Ana@Loja.com.br"), 1), "/info", json!("Fornecedor"));
    let created = merchant.post("/api/cashout", &body).await.expect(201);
    has_exactly(&created, &ITEM);
    is_uuid(&created["id"]);
    assert_eq!(created["merchant_transaction_id"], body["merchant_transaction_id"]);
    let fields = [&created["object"], &created["amount"], &created["status"]];
    assert_eq!(fields, [&json!("cashout"), &json!(2_900), &json!("in_processing")]);
    assert_eq!(merchant.balance().await[0], 6_901, "the gross is debited at once");
    world.advance(0).await;

    let view = found(&merchant, &created["id"]).await;
    for name in ["object", "id", "merchant_transaction_id", "amount", "date_created"] {
        assert_eq!(view[name], created[name], "{name}");
    }
    assert_eq!(view["status"], "processed");
    assert_eq!((&view["pix_key"], &view["pix_key_type"]), (&json!("ana@loja.com.br"), &json!("email")));
    assert_eq!(text(&view["end_to_end_id"]).len(), 32);
    assert!(!text(&view["picpay_transfer_id"]).is_empty());
    assert!(instant(&view["date_updated"]) >= instant(&view["date_created"]));
    assert_eq!(carried_out(&world), [(text(&created["id"]), 2_900)]);

    assert_eq!(merchant.balance().await, [6_901, 0, 0, 0]);
    let lines = merchant.get("/api/balance/operations?per_page=4").await.expect(200);
    let line = |row: &Value| format!("{} {} {} {}", row["type"], row["account"], row["amount"], row["balance_after"]);
    let expected = [
        r#""cashout_fee" "reserved" -100 0"#,
        r#""cashout" "reserved" -2900 100"#,
        r#""cashout" "reserved" 3000 3000"#,
        r#""cashout" "available" -3000 6901"#,
    ];
    assert_eq!(items(&lines).iter().map(line).collect::<Vec<_>>(), expected);
    assert!(items(&lines).iter().all(|row| row["source_id"] == created["id"]), "{lines}");
    let accounts = world.accounts().await;
    let net = |ledger: &str, account: &str| accounts[&(ledger.to_owned(), account.to_owned())];
    let platform = format!("P-{}", merchant.id);
    assert_eq!(net(&merchant.ledger(), "Assets:Transit:Cashout"), 2_900);
    assert_eq!(net(&merchant.ledger(), "Expenses:Fees:Cashout"), 100);
    assert_eq!(net(&platform, "Income:Fees:Cashout"), -100);
    assert_eq!(net(&platform, "Assets:Bank:Pix"), 10_000 - 2_900);
    world.check_books().await;
}

/// Shows: 2.6.record.status, 3.2.failed.
#[tokio::test]
async fn the_results_of_the_sandbox_follow_its_keys() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let silent = merchant.post("/api/cashout", &cashout(1_000, "timeout@loja.com.br")).await.expect(201);
    let failing = merchant.post("/api/cashout", &cashout(2_000, "FAIL@loja.com.br")).await.expect(201);
    assert_eq!((&silent["status"], &failing["status"]), (&json!("in_processing"), &json!("in_processing")));
    world.advance(0).await;
    let failed = found(&merchant, &failing["id"]).await;
    assert_eq!((&failed["status"], &failed["amount"]), (&json!("failed"), &json!(1_900)));
    assert_eq!((&failed["picpay_transfer_id"], &failed["end_to_end_id"]), (&Value::Null, &Value::Null));
    let reason = "O banco recusou a transferência: conta encerrada";
    assert_eq!([&failed["rejected_by"], &failed["notes"]], ["bank", reason]);
    let events = merchant.get("/api/events").await.expect(200);
    let sent = items(&events).iter().find(|event| event["event"] == "cashout.failed").expect("a webhook");
    assert_eq!(sent["cashout"], failed);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page("/console/lists/cashouts").await.has(&[reason]);
    let listed = world.ops_get("/ops/lists/cashouts?status=failed").await.expect(200);
    let record = format!("/console/records/{}", text(&items(&listed)[0]["record"]));
    browser.page(&record).await.has(&["Rejected by", "the bank, which did not pay it", reason]);
    assert_eq!(merchant.balance().await, [8_901, 0, 1_000, 0]);

    let waiting = found(&merchant, &silent["id"]).await;
    assert_eq!((&waiting["status"], &waiting["end_to_end_id"]), (&json!("in_processing"), &Value::Null));
    assert_eq!(waiting["date_updated"], waiting["date_created"]);
    world.advance(30).await;
    assert_eq!(found(&merchant, &silent["id"]).await["status"], "in_processing");
    let metrics = world.ops_get("/metrics").await.text;
    let unknown =
        metrics.lines().find_map(|line| line.strip_prefix("centavo_rail_oldest_unknown_seconds{rail=\"sandbox\"} "));
    assert!(unknown.is_some_and(|age| (25..40).contains(&age.parse::<i64>().unwrap())), "{unknown:?}");
    world.advance(40).await;
    assert_eq!(found(&merchant, &silent["id"]).await["status"], "processed");
    assert_eq!(merchant.balance().await, [8_901, 0, 0, 0]);
    assert_eq!(carried_out(&world), [(text(&silent["id"]), 900)]);
    world.check_books().await;
}

#[tokio::test]
async fn a_result_comes_without_a_clock_call() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let created = merchant.post("/api/cashout", &cashout(1_000, "ana@loja.com.br")).await.expect(201);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while found(&merchant, &created["id"]).await["status"] != "processed" {
        assert!(std::time::Instant::now() < deadline, "the schedule does not ask");
        tokio::task::yield_now().await;
    }
}

/// Shows: 7.502-cashout.
#[tokio::test]
async fn an_institution_that_did_not_take_it_is_a_502_and_the_money_is_back() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let body = numbered(&cashout(3_000, "down@loja.com.br"), 1);
    let problem = merchant.post_keyed("/api/cashout", "k", &body).await.refused(502, "rail_unavailable");
    assert_eq!(problem["message"], "Erro de comunicação com a instituição de pagamento");
    let view = found(&merchant, &problem["id"]).await;
    assert_eq!((&view["status"], &view["amount"]), (&json!("failed"), &json!(2_900)));
    let reason = "A instituição de pagamento não aceitou a transferência";
    assert_eq!([&view["rejected_by"], &view["notes"]], ["bank", reason]);
    assert_eq!(merchant.balance().await, [9_901, 0, 0, 0]);
    let list = merchant.get("/api/cashout").await.expect(200);
    assert_eq!((&items(&list)[0]["id"], &items(&list)[0]["status"]), (&problem["id"], &json!("failed")));

    let again = merchant.post_keyed("/api/cashout", "k", &body).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.refused(502, "rail_unavailable")["id"], problem["id"]);
    merchant.post("/api/cashout", &body).await.refused(409, "duplicate_transaction");
    world.advance(DAY).await;
    assert_eq!(merchant.balance().await, [9_901, 0, 0, 0]);
    assert!(carried_out(&world).is_empty());
    world.check_books().await;
}

/// Shows: 2.6.pix_key, 2.6.pix_key_type, 2.6.format.cpf, 2.6.format.cnpj, 2.6.format.email,
/// 2.6.format.phone, 2.6.format.evp, 2.6.record.pix_key, 2.6.record.pix_key_type.
#[tokio::test]
async fn keys_are_taken_in_the_form_of_their_type() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    for (kind, key, stored) in [
        ("cpf", "12345678909", Some("12345678909")),
        ("cpf", "123.456.789-09", None),
        ("cpf", "11222333000181", None),
        ("cnpj", "11222333000181", Some("11222333000181")),
        ("cnpj", "12ABC34501DE35", Some("12ABC34501DE35")),
        ("cnpj", "12345678909", None),
        ("email", "Ana@Loja.com.br", Some("ana@loja.com.br")),
        ("email", "11987654321", None),
        ("phone", "11987654321", Some("+5511987654321")),
        ("phone", "5511987654321", Some("+5511987654321")),
        ("phone", "+5511987654321", Some("+5511987654321")),
        ("phone", "55987654321", Some("+5555987654321")),
        ("phone", "ana@loja.com.br", None),
        ("phone", "1133334444", None),
        ("phone", "10987654321", None),
        ("phone", "23987654321", None),
        ("email", "100%@loja.com.br", None),
        ("email", "josé@loja.com.br", None),
        ("evp", "123E4567-e89b-12d3-a456-426614174000", Some("123e4567-e89b-12d3-a456-426614174000")),
        ("evp", "12345678909", None),
        ("CPF", "12345678909", None),
        ("random", "12345678909", None),
    ] {
        let answer = merchant.post("/api/cashout", &json!({"amount": 101, "pix_key": key, "pix_key_type": kind})).await;
        match stored {
            None => {
                let problem = answer.refused(400, "validation_failed");
                let field = if ["CPF", "random"].contains(&kind) { "pix_key_type" } else { "pix_key" };
                assert_eq!(problem["errors"][0]["field"], field, "{kind} {key}");
            }
            Some(stored) => {
                let view = found(&merchant, &answer.expect(201)["id"]).await;
                assert_eq!((&view["pix_key"], &view["pix_key_type"]), (&json!(stored), &json!(kind)));
            }
        }
    }
}

/// Shows: 2.6.amount, 2.6.pix_key, 2.6.pix_key_type, 2.6.info, 7.400-cashout-amount, 8.info.
#[tokio::test]
async fn a_bad_request_moves_nothing() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let good = cashout(3_000, "ana@loja.com.br");
    world.advance(0).await;
    let before = world.trace(&[&merchant]).await;
    for (body, code, field) in [
        (with(&good, "/amount", json!("3000")), "validation_failed", "amount"),
        (with(&good, "/amount", json!(3000.5)), "validation_failed", "amount"),
        (with(&good, "/amount", json!(-1)), "validation_failed", "amount"),
        (with(&good, "/amount", json!(1_000_000_000_001_i64)), "validation_failed", "amount"),
        (without(&good, "/amount"), "validation_failed", "amount"),
        (with(&good, "/amount", json!(0)), "amount_below_minimum", "amount"),
        (with(&good, "/amount", json!(100)), "amount_below_minimum", "amount"),
        (with(&good, "/amount", json!(9_902)), "insufficient_balance", "amount"),
        (without(&good, "/pix_key"), "validation_failed", "pix_key"),
        (without(&good, "/pix_key_type"), "validation_failed", "pix_key_type"),
        (with(&good, "/info", json!("x".repeat(141))), "validation_failed", "info"),
        (with(&good, "/info", json!(7)), "validation_failed", "info"),
        (with(&good, "/merchant_transaction_id", json!("7")), "validation_failed", "merchant_transaction_id"),
    ] {
        let problem = merchant.post("/api/cashout", &body).await.refused(400, code);
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
    let below = merchant.post("/api/cashout", &with(&good, "/amount", json!(100))).await;
    assert_eq!(below.refused(400, "amount_below_minimum")["minimum"], 101);
    assert_eq!(world.trace(&[&merchant]).await, before);
    // To the centavo, and with the longest description.
    let most = with(&with(&good, "/amount", json!(9_901)), "/info", json!("é".repeat(140)));
    merchant.post("/api/cashout", &most).await.expect(201);
    assert_eq!(merchant.balance().await[0], 0);
}

/// Shows: 5.3, 7.403-cashout.
#[tokio::test]
async fn refusals_come_in_their_order() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let used = numbered(&cashout(200, "ana@loja.com.br"), 1);
    let first = merchant.post_keyed("/api/cashout", "k", &used).await.expect(201);
    // Shape and minimum, then the duplicate, only then the balance.
    merchant.post("/api/cashout", &with(&used, "/amount", json!("1"))).await.refused(400, "validation_failed");
    merchant.post("/api/cashout", &with(&used, "/amount", json!(1))).await.refused(400, "amount_below_minimum");
    merchant
        .post("/api/cashout", &with(&used, "/amount", json!(1_000_000)))
        .await
        .refused(409, "duplicate_transaction");
    // The account: before the meaning, after syntax and replay.
    let patch = json!({"cashout_enabled": false}).to_string();
    let path = format!("/ops/merchants/{}", merchant.id);
    world.ops_send(reqwest::Method::PATCH, &path, &[], patch).await.expect(200);
    merchant.post_raw("/api/cashout", &[], "{").await.refused(400, "invalid_json");
    merchant.post("/api/cashout", &json!({"amount": "x"})).await.refused(403, "cashout_not_enabled");
    merchant.post("/api/cashout", &used).await.refused(403, "cashout_not_enabled");
    assert_eq!(merchant.post_keyed("/api/cashout", "k", &used).await.expect(201), first);
    merchant.get("/api/cashout").await.refused(403, "cashout_not_enabled");
    merchant.get(&format!("/api/cashout/{}", text(&first["id"]))).await.refused(403, "cashout_not_enabled");
    // What is under way goes on.
    world.advance(0).await;
    assert_eq!(carried_out(&world), [(text(&first["id"]), 100)]);
}

/// Shows: 2.6.record.merchant_transaction_id, 7.409-cashout.
#[tokio::test]
async fn a_transaction_id_is_used_up_for_ever_and_a_replay_is_no_duplicate() {
    let world = World::sandbox().await;
    let (merchant, other) = (funded(&world).await, funded(&world).await);
    let body = numbered(&cashout(200, "ana@loja.com.br"), 7);
    let first = merchant.post_keyed("/api/cashout", "k", &body).await.expect(201);
    let refused = merchant.post("/api/cashout", &body).await.refused(409, "duplicate_transaction");
    assert_eq!(refused["id"], first["id"]);
    merchant.post_keyed("/api/cashout", "k2", &body).await.refused(409, "duplicate_transaction");
    let upper = text(&body["merchant_transaction_id"]).to_uppercase();
    merchant
        .post("/api/cashout", &with(&body, "/merchant_transaction_id", json!(upper)))
        .await
        .refused(409, "duplicate_transaction");
    let again = merchant.post_keyed("/api/cashout", "k", &body).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(201), first);
    // It is the account's own.
    other.post("/api/cashout", &body).await.expect(201);
    other.get(&format!("/api/cashout/{}", text(&first["id"]))).await.refused(404, "not_found");
    // Without one, each request is another.
    let bare = cashout(200, "ana@loja.com.br");
    let made = [
        merchant.post("/api/cashout", &bare).await.expect(201),
        merchant.post("/api/cashout", &bare).await.expect(201),
    ];
    made.iter().for_each(|made| is_uuid(&made["merchant_transaction_id"]));
    assert_ne!(made[0]["merchant_transaction_id"], made[1]["merchant_transaction_id"]);
    let named = with(&bare, "/merchant_transaction_id", made[0]["merchant_transaction_id"].clone());
    merchant.post("/api/cashout", &named).await.refused(409, "duplicate_transaction");
    let listed = async |of: &Merchant<'_>, query: &str| {
        let list = of.get(&format!("/api/cashout?merchant_transaction_id={query}")).await.expect(200);
        items(&list).iter().map(|item| item["id"].clone()).collect::<Vec<_>>()
    };
    let number = text(&body["merchant_transaction_id"]);
    assert_eq!(listed(&merchant, &number).await, [first["id"].clone()]);
    assert_eq!(listed(&merchant, &text(&made[0]["merchant_transaction_id"])).await, [made[0]["id"].clone()]);
    for query in [format!("{number}&to=2020-01-01"), format!("{number}&before={}", text(&first["id"]))] {
        assert!(listed(&merchant, &query).await.is_empty(), "{query}");
    }
    assert!(listed(&merchant, &uuid::Uuid::nil().to_string()).await.is_empty());
    merchant.get("/api/cashout?merchant_transaction_id=7").await.refused(400, "validation_failed");

    world.advance(3 * DAY).await;
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    merchant.post("/api/cashout", &body).await.refused(409, "duplicate_transaction");
    merchant.post_keyed("/api/cashout", "k", &body).await.refused(409, "duplicate_transaction");
    assert_eq!(merchant.balance().await, [9_901 - 600, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn of_a_hundred_clients_as_many_win_as_the_balance_affords() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let answers =
        futures_of(100, |_| merchant.post_raw("/api/cashout", &[], cashout(1_000, "ana@loja.com.br").to_string()))
            .await;
    let won = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(won, 9);
    for answer in answers.into_iter().filter(|answer| answer.status != 201) {
        answer.refused(400, "insufficient_balance");
    }
    world.advance(0).await;
    assert_eq!(merchant.balance().await, [901, 0, 0, 0]);
    let sent: BTreeSet<_> = carried_out(&world).into_iter().map(|(id, _)| id).collect();
    assert_eq!((sent.len(), carried_out(&world).len()), (9, 9));
    world.check_books().await;
}

#[tokio::test]
async fn of_a_hundred_clients_one_gets_the_transaction_id() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let body = numbered(&cashout(200, "ana@loja.com.br"), 1);
    let answers = futures_of(100, |_| merchant.post("/api/cashout", &body)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    for answer in answers.into_iter().filter(|answer| answer.status != 201) {
        answer.refused(409, "duplicate_transaction");
    }
    assert_eq!(merchant.balance().await[0], 9_701);
    // With one idempotency key they are one request, and none of them is a duplicate.
    let body = numbered(&cashout(200, "bia@loja.com.br"), 2);
    let answers = futures_of(100, |_| merchant.post_keyed("/api/cashout", "k", &body)).await;
    let mut ids = BTreeSet::new();
    for answer in answers {
        match answer.status {
            201 => drop(ids.insert(text(&answer.body["id"]))),
            _ => drop(answer.refused(409, "idempotency_key_in_progress")),
        }
    }
    assert_eq!(ids.len(), 1);
    assert_eq!(merchant.balance().await[0], 9_501);
}

/// Shows: 4.GET./api/cashout, 8.cashouts-listed.
#[tokio::test]
async fn the_last_fifty_are_listed_newest_first() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let empty = merchant.get("/api/cashout").await.expect(200);
    assert_eq!(empty, json!({"items": [], "total": 0, "page": 1, "pages": 0, "per_page": 50}));
    let mut created = Vec::new();
    for number in 1..=52 {
        created
            .push(merchant.post("/api/cashout", &numbered(&cashout(101, "ana@loja.com.br"), number)).await.expect(201));
    }
    world.advance(0).await;
    let list = merchant.get("/api/cashout").await.expect(200);
    has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
    assert_eq!((items(&list).len(), &list["total"]), (50, &json!(52)));
    for (item, created) in items(&list).iter().zip(created.iter().rev()) {
        has_exactly(item, &ITEM);
        assert_eq!(*item, with(created, "/status", json!("processed")));
    }
    // Those beyond the last 50 are on the next page.
    let rest = merchant.get("/api/cashout?page=2").await.expect(200);
    assert_eq!([&rest["total"], &rest["page"], &rest["pages"], &rest["per_page"]], [52, 2, 2, 50]);
    let ids = |list: &Value| items(list).iter().map(|item| text(&item["id"])).collect::<Vec<_>>();
    let whole = merchant.get("/api/cashout?per_page=100").await.expect(200);
    assert_eq!([ids(&list), ids(&rest)].concat(), ids(&whole));
    assert_eq!(ids(&whole).len(), 52);
    let last = merchant.get("/api/cashout?page=3&per_page=20").await.expect(200);
    assert_eq!(ids(&last), ids(&whole)[40..]);
    assert!(items(&merchant.get("/api/cashout?page=3").await.expect(200)).is_empty());
    merchant.get("/api/cashout?per_page=101").await.refused(400, "validation_failed");
    merchant.get("/api/cashout?page=0").await.refused(400, "validation_failed");
}

#[tokio::test]
async fn cashouts_are_listed_by_status_and_by_date() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let mut made = Vec::new();
    for keys in [["ana@loja.com.br", "fail@loja.com.br"], ["timeout@loja.com.br", "ana@loja.com.br"]] {
        for key in keys {
            made.push(merchant.post("/api/cashout", &cashout(200, key)).await.expect(201));
        }
        world.advance(10).await;
    }
    let list = async |query: &str| {
        let list = merchant.get(&format!("/api/cashout?{query}")).await.expect(200);
        let place = |item: &Value| made.iter().position(|made| made["id"] == item["id"]).unwrap();
        (items(&list).iter().map(place).collect::<Vec<_>>(), list["total"].as_u64().unwrap())
    };
    assert_eq!(list("").await, (vec![3, 2, 1, 0], 4));
    assert_eq!(list("status=processed").await, (vec![3, 0], 2));
    assert_eq!(list("status=processed&per_page=1&page=2").await, (vec![0], 2));
    assert_eq!(list("status=failed").await, (vec![1], 1));
    assert_eq!(list("status=in_processing").await, (vec![2], 1));
    let at = text(&made[2]["date_created"]).replace('+', "%2B");
    assert_eq!(list(&format!("from={at}")).await, (vec![3, 2], 2));
    assert_eq!(list(&format!("to={at}")).await, (vec![1, 0], 2));
    assert_eq!(list(&format!("to={at}&status=processed")).await, (vec![0], 1));
    assert_eq!(list("from=2099-01-01").await, (vec![], 0));
    assert_eq!(list("to=2001-01-01").await, (vec![], 0));
    for (query, field) in [("status=paid", "status"), ("from=x", "from"), ("status=failed&status=failed", "status")] {
        let refused = merchant.get(&format!("/api/cashout?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}

#[tokio::test]
async fn what_is_in_processing_survives_a_restart() {
    let world = World::sandbox().await;
    let merchant = funded(&world).await;
    let silent = merchant.post_keyed("/api/cashout", "k", &cashout(1_000, "timeout@loja.com.br")).await.expect(201);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(found(&merchant, &silent["id"]).await["status"], "in_processing");
    assert_eq!(merchant.balance().await, [8_901, 0, 1_000, 0]);
    world.advance(61).await;
    assert_eq!(found(&merchant, &silent["id"]).await["status"], "processed");
    let again = merchant.post_keyed("/api/cashout", "k", &cashout(1_000, "timeout@loja.com.br")).await.expect(201);
    assert_eq!(again, silent, "the answer stays what it was");
    assert_eq!(carried_out(&world), [(text(&silent["id"]), 900)]);
    world.check_books().await;
}

/// An institution that is down, and says so when the test lets it.
#[derive(Clone, Default)]
struct Slow {
    called: Arc<Notify>,
    released: Arc<Notify>,
}

impl PayoutRail for Slow {
    fn send(&self, _: SendPayout) -> Call<'_, PayoutAnswer> {
        Box::pin(async {
            self.called.notify_one();
            self.released.notified().await;
            Ok(PayoutAnswer::NotTaken)
        })
    }

    fn find(&self, _: SendPayout, _: Timestamp) -> Call<'_, PayoutAnswer> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn horizon(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn while_the_institution_is_called_a_repeated_request_waits_for_its_answer() {
    let institution = Slow::default();
    let world = World::with_payouts(institution.clone()).await;
    let merchant = funded(&world).await;
    let body = numbered(&cashout(1_000, "ana@loja.com.br"), 1);
    let send = || merchant.post_keyed("/api/cashout", "k", &body);
    let meanwhile = async {
        institution.called.notified().await;
        let repeated = send().await;
        institution.released.notify_one();
        repeated
    };
    let (first, repeated) = tokio::join!(send(), meanwhile);
    repeated.refused(409, "idempotency_key_in_progress");
    let id = first.refused(502, "rail_unavailable")["id"].clone();
    assert_eq!(send().await.refused(502, "rail_unavailable")["id"], id);
}

#[tokio::test]
async fn without_an_institution_nobody_cashes_out() {
    let world = World::live().await;
    let merchant = world.merchant().await;
    let body = cashout(1_000, "ana@loja.com.br");
    merchant.post("/api/cashout", &body).await.refused(503, "rail_not_configured");
    assert_eq!(merchant.get("/api/cashout").await.expect(200)["total"], 0);
}

/// An institution that answers nothing to the first order of each transfer, and says when asked
/// that it does not have it, although the first order may still turn up for ten minutes. Ordered
/// again, it is down.
#[derive(Clone, Default)]
struct Forgetful {
    sent: Arc<AtomicU32>,
}

impl PayoutRail for Forgetful {
    fn send(&self, _: SendPayout) -> Call<'_, PayoutAnswer> {
        let first = self.sent.fetch_add(1, Ordering::AcqRel) == 0;
        Box::pin(std::future::ready(if first { Err(RailError::NoAnswer) } else { Ok(PayoutAnswer::NotTaken) }))
    }

    fn find(&self, _: SendPayout, _: Timestamp) -> Call<'_, PayoutAnswer> {
        Box::pin(std::future::ready(Ok(PayoutAnswer::NotTaken)))
    }

    fn horizon(&self) -> Duration {
        Duration::from_secs(600)
    }
}

#[tokio::test]
async fn what_the_institution_does_not_have_is_not_ordered_again_before_its_horizon() {
    let institution = Forgetful::default();
    let world = World::with_payouts(institution.clone()).await;
    let merchant = funded(&world).await;
    let body = numbered(&cashout(1_000, "ana@loja.com.br"), 1);
    let created = merchant.post_keyed("/api/cashout", "k", &body).await.expect(201);
    world.advance(590).await;
    assert_eq!(found(&merchant, &created["id"]).await["status"], "in_processing");
    assert_eq!(institution.sent.load(Ordering::Acquire), 1);
    world.advance(20).await;
    assert_eq!(found(&merchant, &created["id"]).await["status"], "failed");
    assert_eq!(institution.sent.load(Ordering::Acquire), 2);
    assert_eq!(merchant.balance().await, [9_901, 0, 0, 0]);
    // The first answer said `in_processing`, and the replay says it again.
    assert_eq!(merchant.post_keyed("/api/cashout", "k", &body).await.expect(201), created);
    world.advance(DAY / 2).await;
    assert_eq!(institution.sent.load(Ordering::Acquire), 2);
    world.check_books().await;
}

/// What becomes due while the clock goes on does not keep it from going on.
#[tokio::test]
async fn a_clock_call_ends_while_cashouts_keep_coming() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("50000.00")).await;
    let body = json!({"amount": 200, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    let coming = async {
        loop {
            merchant.post("/api/cashout", &body).await;
        }
    };
    let before = world.advance(0).await;
    let moved = async { world.advance(40 * DAY).await };
    tokio::select! {
        after = moved => assert!(after >= before + chrono::Duration::days(40)),
        () = coming => unreachable!("they keep coming"),
    }
}
