//! The operators' listener: merchants, keys, the books, the clock, health and metrics; and the
//! description of both listeners.

use std::collections::BTreeMap;
use std::time::Instant;

use actors::engine::NOT_READY_AFTER;
use reqwest::Method;
use serde_json::{Value, json};
use store::WaitFor;

use crate::world::*;

async fn change(world: &World, merchant: &Merchant<'_>, body: Value) -> Answer {
    world.ops_send(Method::PATCH, &format!("/ops/merchants/{}", merchant.id), &[], body.to_string()).await
}

#[tokio::test]
async fn a_merchant_is_opened_read_and_changed() {
    let world = World::sandbox().await;
    let body =
        json!({"name": "Loja Azul", "document": "12.345.678/0001-95", "split_enabled": true, "cashout_enabled": false});
    let opened = world.ops_post("/ops/merchants", &body).await.expect(201);
    is_uuid(&opened["id"]);
    time(&opened["created_at"]);
    let mut expected = json!({
        "id": opened["id"],
        "name": "Loja Azul",
        "document": "**.345.678/0001-**",
        "city": null,
        "split_enabled": true,
        "cashout_enabled": false,
        "suspended": false,
        "payouts_held": false,
        "closing": false,
        "closed": false,
        "fees": {"mdr_1x": "2.99", "mdr_2_6x": "3.49", "mdr_7_12x": "3.99", "margin": "1", "pix": "0.99",
            "antifraud_cents": 198, "cashout_cents": 100, "anticipation": {"d2": "2.38", "d7": "2", "d15": "1.5"}},
        "options": {"split_guard": "none", "mdr_base": "total", "refund_commission": false, "card_settlement_days": 30, "own_keys": true},
        "rate_limits": {"card": null, "other": null},
        "effective_rate_limits": null,
        "created_at": opened["created_at"],
    });
    assert_eq!(opened, expected);
    let path = format!("/ops/merchants/{}", text(&opened["id"]));
    assert_eq!(world.ops_get(&path).await.expect(200), expected);
    for (pointer, value, shown) in [
        ("/name", json!("Loja Verde"), json!("Loja Verde")),
        ("/city", json!("Olinda"), json!("Olinda")),
        ("/split_enabled", json!(false), json!(false)),
        ("/cashout_enabled", json!(true), json!(true)),
        ("/fees/mdr_1x", json!("1.50"), json!("1.5")),
        ("/fees/pix", json!("0"), json!("0")),
        ("/fees/antifraud_cents", json!(0), json!(0)),
        ("/fees/anticipation/d7", json!("100"), json!("100")),
        ("/options/split_guard", json!("net"), json!("net")),
        ("/options/mdr_base", json!("seller_gross"), json!("seller_gross")),
        ("/options/refund_commission", json!(true), json!(true)),
        ("/options/card_settlement_days", json!(0), json!(0)),
        ("/options/own_keys", json!(false), json!(false)),
    ] {
        let names = pointer[1..].split('/').rev();
        let change = names.fold(value, |value, name| json!({ name: value }));
        expected = with(&expected, pointer, shown);
        let changed = world.ops_send(Method::PATCH, &path, &[], change.to_string()).await.expect(200);
        assert_eq!(changed, expected, "{pointer}: what is not sent stays");
    }
    assert_eq!(world.ops_send(Method::PATCH, &path, &[], "{}".to_owned()).await.expect(200), expected);
}

#[tokio::test]
async fn what_is_said_of_a_merchant_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let valid = json!({"name": "Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true,
        "fees": {"anticipation": {}}, "options": {}});
    let before = world.trace(&[&merchant]).await;
    for (pointer, value) in [
        ("/name", json!(" ")),
        ("/name", json!(7)),
        ("/document", json!("1")),
        ("/document", json!("12345678000196")),
        ("/city", json!("x".repeat(61))),
        ("/split_enabled", json!("yes")),
        ("/cashout_enabled", json!(1)),
        ("/fees", json!([])),
        ("/fees/mdr_1x", json!(2.99)),
        ("/fees/mdr_1x", json!("-1")),
        ("/fees/margin", json!("100.01")),
        ("/fees/pix", json!("1.00001")),
        ("/fees/pix", json!("1,5")),
        ("/fees/antifraud_cents", json!("198")),
        ("/fees/antifraud_cents", json!(-1)),
        ("/fees/anticipation/d2", json!("x")),
        ("/options/split_guard", json!("gross")),
        ("/options/mdr_base", json!("seller")),
        ("/options/refund_commission", json!("true")),
        ("/options/card_settlement_days", json!(-1)),
        ("/options/card_settlement_days", json!(366)),
        ("/options/own_keys", json!("no")),
    ] {
        let refused = world.ops_post("/ops/merchants", &with(&valid, pointer, value.clone())).await;
        let refused = refused.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], pointer[1..].replace('/', "."), "{value}");
        let names = pointer[1..].split('/').rev();
        let body = names.fold(value, |value, name| json!({ name: value }));
        change(&world, &merchant, body).await.refused(400, "validation_failed");
    }
    for name in ["name", "document"] {
        world.ops_post("/ops/merchants", &without(&valid, &format!("/{name}"))).await.refused(400, "validation_failed");
    }
    change(&world, &merchant, json!({"document": cnpj(1)})).await.refused(400, "validation_failed");
    assert_eq!(world.trace(&[&merchant]).await, before);
}

#[tokio::test]
async fn new_fees_are_for_new_charges() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let code = with_splits(pix("100.00"), &[(&ana, 100)]);
    let early = merchant.post("/api/pix", &code).await.expect(201);
    let silent = merchant.post("/api/card", &card(10_000, SILENT)).await.expect(201);
    let fees = json!({"fees": {"pix": "10", "mdr_1x": "10", "margin": "0", "antifraud_cents": 0}});
    change(&world, &merchant, fees).await.expect(200);
    let late = merchant.post("/api/pix", &code).await.expect(201);
    assert_eq!([&early["breakdown"]["commission"], &late["breakdown"]["commission"]], [98, 990]);
    for (charge, sum) in [(&early, 9_900 - 98), (&late, 2 * 9_900 - 98 - 990)] {
        merchant.pay(&text(&charge["txid"])).await.expect(200);
        assert_eq!(merchant.balance().await[0], sum);
    }
    world.advance(60).await;
    let found = merchant.post("/api/pix", &json!({"txid": silent["txid"]})).await.expect(200);
    assert_eq!((&found["status"], merchant.balance().await[1]), (&json!("CONCLUIDA"), 9_403), "the old fees");
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    assert_eq!(merchant.balance().await[1], 9_403 + 9_000);
    world.check_books().await;
}

#[tokio::test]
async fn a_key_is_made_and_shown_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let path = format!("/ops/merchants/{}/api-keys", merchant.id);
    let made = world.ops_post(&path, &json!({"webhook_url": "https://example.com/hook"})).await.expect(201);
    has_exactly(&made, &["id", "api_key", "webhook_secret", "scopes"]);
    is_uuid(&made["id"]);
    assert!(text(&made["api_key"]).starts_with("test_") && text(&made["webhook_secret"]).starts_with("whsec_"));
    for url in [json!("ftp://example.com"), json!(7), json!(" ")] {
        world.ops_post(&path, &json!({"webhook_url": url})).await.refused(400, "validation_failed");
    }
    let (merchant_now, key) = (world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await, text(&made["api_key"]));
    assert!(!merchant_now.text.contains(&key));
    let read = world.send(Method::GET, "/api/balance", &[("token", &key)], "").await.expect(200);
    assert_eq!(read, json!({"available": 0, "pending": 0, "reserved": 0, "deficit": 0}));
}

#[tokio::test]
async fn the_trial_balance_has_pages_and_sums_by_account() {
    let world = World::sandbox().await;
    for _ in 0..3 {
        let merchant = world.merchant().await;
        let ana = merchant.recipient("Ana", 1).await;
        merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 3_500)])).await.expect(201);
    }
    let whole = world.ops_get("/ops/trial-balance").await.expect(200);
    let mut accounts = Vec::new();
    for page in 1..=6 {
        let read = world.ops_get(&format!("/ops/trial-balance?page={page}&per_page=10")).await.expect(200);
        assert_eq!([&read["total"], &read["page"], &read["pages"], &read["per_page"]], [45, page, 5, 10]);
        assert!(read["balanced"] == true && read["cut"] == whole["cut"], "{read}");
        accounts.extend(read["accounts"].as_array().unwrap().clone());
    }
    assert_eq!(&accounts, whole["accounts"].as_array().unwrap(), "the sixth page is past the end, and empty");
    let sums = world.ops_get("/ops/trial-balance?by=account").await.expect(200);
    assert_eq!([&sums["balanced"], &sums["pages"], &sums["cut"]], [&json!(true), &json!(1), &whole["cut"]]);
    let sums = sums["accounts"].as_array().unwrap();
    sums.iter().for_each(|row| has_exactly(row, &["account", "debits", "credits", "balance"]));
    let sum = |name: &str| sums.iter().find(|row| row["account"] == name).map(|row| row["balance"].as_i64().unwrap());
    for (name, expected) in [
        ("Assets:Platform:Pending", 3 * (5_938 + 3_500)),
        ("Liabilities:Merchants:Pending", -3 * 5_938),
        ("Liabilities:Recipients:Pending", -3 * 3_500),
        ("Income:Sales:Card", -30_000),
    ] {
        assert_eq!(sum(name), Some(expected), "{name}");
    }
    assert_eq!(sums.iter().map(|row| row["balance"].as_i64().unwrap()).sum::<i64>(), 0);
    for wrong in ["by=merchant", "page=0", "per_page=1001", "by=account&by=ledger"] {
        world.ops_get(&format!("/ops/trial-balance?{wrong}")).await.expect(400);
    }
}

#[tokio::test]
async fn the_books_are_shown_by_ledger() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    assert_eq!(world.ops_get("/ops/trial-balance").await.expect(200)["accounts"], json!([]));
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 3_500)])).await.expect(201);
    let balance = world.ops_get("/ops/trial-balance").await.expect(200);
    has_exactly(&balance, &["cut", "balanced", "accounts", "total", "page", "pages", "per_page"]);
    assert_eq!([&balance["total"], &balance["page"], &balance["pages"], &balance["per_page"]], [15, 1, 1, 1_000]);
    assert!(cut_in(&balance).contains(world.last().await), "{balance}");
    for row in balance["accounts"].as_array().unwrap() {
        has_exactly(row, &["ledger", "account", "debits", "credits", "balance"]);
    }
    let expected = [
        (merchant.ledger(), "Assets:Platform:Pending", 5_938),
        (merchant.ledger(), "Expenses:Fees:Antifraud", 198),
        (merchant.ledger(), "Expenses:Fees:Margin", 65),
        (merchant.ledger(), "Expenses:Fees:Mdr", 299),
        (merchant.ledger(), "Income:Contra:Splits", 3_500),
        (merchant.ledger(), "Income:Sales:Card", -10_000),
        (format!("P-{}", merchant.id), "Assets:Acquirer:Receivable", 9_701),
        (format!("P-{}", merchant.id), "Expenses:Acquirer:Mdr", 299),
        (format!("P-{}", merchant.id), "Income:Commission:Antifraud", -198),
        (format!("P-{}", merchant.id), "Income:Commission:Margin", -65),
        (format!("P-{}", merchant.id), "Income:Commission:Mdr", -299),
        (format!("P-{}", merchant.id), &format!("Liabilities:Merchants:M-{}:Pending", merchant.id), -5_938),
        (format!("P-{}", merchant.id), &format!("Liabilities:Recipients:R-{ana}:Pending"), -3_500),
        (format!("R-{ana}"), "Assets:Platform:Pending", 3_500),
        (format!("R-{ana}"), "Income:Splits:Card", -3_500),
    ];
    let expected = expected.map(|(ledger, account, net)| ((ledger, account.to_owned()), net));
    assert_eq!(world.accounts().await, expected.into_iter().collect());

    let path = format!("/ops/ledgers/R-{ana}");
    let accounts = world.ops_get(&format!("{path}/accounts")).await.expect(200);
    assert_eq!((items(&accounts).len(), &accounts["total"]), (2, &json!(2)));
    let entries = world.ops_get(&format!("{path}/entries")).await.expect(200);
    has_exactly(&entries, &["items", "total", "page", "pages", "per_page"]);
    let entry = &items(&entries)[0];
    has_exactly(entry, &["sequence", "partition", "effective_at", "postings"]);
    time(&entry["effective_at"]);
    let of = place_in(entry);
    assert_eq!(of.sequence, cut_in(&balance).of(of.partition));
    let postings = json!([
        {"account": "Assets:Platform:Pending", "side": "debit", "amount": 3_500},
        {"account": "Income:Splits:Card", "side": "credit", "amount": 3_500},
    ]);
    assert_eq!(entry["postings"], postings);
    world.check_books().await;
}

#[tokio::test]
async fn a_trial_balance_refuses_what_it_does_not_know() {
    let world = World::sandbox().await;
    for (query, name) in [("cut=5", "cut"), ("to=2026-07-01", "to"), ("form=2026-07-01", "form"), ("AT=1&x", "AT")] {
        let refused = world.ops_get(&format!("/ops/trial-balance?{query}")).await.refused(400, "validation_failed");
        let error = &refused["errors"][0];
        assert_eq!((&error["field"], &error["code"]), (&json!(name), &json!("unknown_parameter")), "{query}");
        assert!(text(&error["message"]).contains(name), "{error}");
    }
    let hostile = format!("/ops/trial-balance?{}", "%22%3Cb%3E=1&".repeat(500));
    let refused = world.ops_get(&hostile).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"].as_array().unwrap().len(), 1);
    world.ops_get("/ops/trial-balance?").await.expect(200);
}

#[tokio::test]
async fn accounts_of_different_groups_do_not_touch() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (ana, rui) = (merchant.recipient("Ana", 1).await, other.recipient("Rui", 1).await);
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&ana, 100)])).await;
    assert_eq!((merchant.balance().await, other.balance().await), ([891, 0, 0, 0], [0; 4]));
    other.paid_pix(&with_splits(pix("20.00"), &[(&rui, 200)])).await;
    assert_eq!((merchant.balance().await, other.balance().await), ([891, 0, 0, 0], [1_782, 0, 0, 0]));
    assert_eq!(merchant.recipient_balance(&ana).await, [100, 0]);
    assert_eq!(other.recipient_balance(&rui).await, [200, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn concurrent_charges_all_count() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 2_000), (&rui, 1_500)]);
    let answers = futures_of(40, |_| merchant.post_raw("/api/card", &[], charge.to_string())).await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    assert_eq!(merchant.balance().await, [0, 40 * 5_938, 0, 0]);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 40 * 2_000]);
    world.check_books().await;
    world.advance(31 * DAY).await;
    assert_eq!(merchant.balance().await, [40 * 5_938, 0, 0, 0]);
    assert_eq!(merchant.recipient_balance(&rui).await, [40 * 1_500, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn the_clock_moves_forward_by_hand() {
    let world = World::sandbox().await;
    let first = world.advance(0).await;
    let second = world.advance(3_600).await;
    let moved = (second - first).num_seconds();
    assert!((3_600..3_660).contains(&moved), "{moved}");
    let cut = world.cut().await;
    for body in [
        json!({}),
        json!({"advance_seconds": -1}),
        json!({"advance_seconds": "1"}),
        json!({"advance_seconds": 1.5}),
        json!({"advance_seconds": 315_576_001}),
    ] {
        world.ops_post("/ops/sandbox/clock", &body).await.refused(400, "validation_failed");
    }
    assert_eq!(world.cut().await, cut);
    let third = world.advance(0).await;
    assert!(third >= second && (third - second).num_seconds() < 60, "a refused move moves nothing");
}

/// A store that makes no progress is no service, however well the door answers.
#[tokio::test]
async fn a_store_that_stands_still_is_not_ready() {
    let world = World::sandbox().await;
    let monitor = world.engine().monitor();
    let since = Instant::now().checked_sub(NOT_READY_AFTER).unwrap();
    let waiting = monitor.begin_since(WaitFor::Commit, since);
    let refused = world.send(Method::GET, "/readyz", &[], "").await;
    assert_eq!(refused.status, 503);
    assert!(refused.text.contains("The store makes no progress (Commit, "), "{}", refused.text);
    drop(waiting);
    world.send(Method::GET, "/readyz", &[], "").await.expect(200);
}

#[tokio::test]
async fn health_and_metrics_need_no_credential() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    for (path, status) in [("/healthz", "ok"), ("/readyz", "ready")] {
        assert_eq!(world.send(Method::GET, path, &[], "").await.expect(200), json!({"status": status}));
    }
    let answer = world.send(Method::GET, "/metrics", &[], "").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let samples = samples(&answer.text);
    let value = |name: &str| samples.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    assert_eq!(value("centavo_journal_records_total"), value("centavo_journal_published_sequence"));
    for name in [
        "centavo_journal_records_total",
        "centavo_journal_blocks_total",
        "centavo_journal_commit_seconds_count",
        "centavo_gate_wait_seconds_count",
        "centavo_permits_free{class=\"door\"}",
        "centavo_permits_free{class=\"inside\"}",
        "centavo_read_model_lag_seconds_count",
        "centavo_actors_awake{kind=\"merchant\"}",
        "centavo_http_request_seconds_count",
        "centavo_http_requests_total{route=\"/api/card\",method=\"POST\",status=\"2xx\"}",
        "centavo_http_requests_total{route=\"/ops/merchants\",method=\"POST\",status=\"2xx\"}",
        "centavo_build_info{version=\"0.1.0\"}",
        "process_start_time_seconds",
        "process_uptime_seconds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(value(name).is_some_and(|value| value > 0.0), "{name}: {:?}", value(name));
    }
    assert_eq!(value("centavo_http_failures_total"), Some(0.0));
    assert!(value("process_cpu_seconds_total").is_some());
    assert_eq!(value("centavo_backup_age_seconds"), None, "there was none");
    assert_eq!(world.ops_get("/ops/backups/last").await.expect(200), json!({}), "there was none");
    let cut = world.cut().await;
    let backup = world.ops_get("/ops/backup").await;
    assert_eq!(backup.status, 200);
    let last = world.ops_get("/ops/backups/last").await.expect(200);
    let age = chrono::Utc::now() - time(&last["taken_at"]).to_utc();
    assert!((0..3_600).contains(&age.num_seconds()), "{last}");
    assert_eq!(last["through"], cut.records());
    world.ops_get("/ops/backups/last?x=y").await.refused(400, "validation_failed");
    let mut made_up = 0;
    for (method, path) in [("BREW", "/api/card"), ("GET", "/nowhere/1"), ("GET", "/nowhere/2")] {
        made_up += u64::from(world.send(method.parse().unwrap(), path, &[], "").await.status >= 400);
    }
    let after = world.send(Method::GET, "/metrics", &[], "").await.text;
    let samples = self::samples(&after);
    let value = |name: &str| samples.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    assert!(value("centavo_backup_age_seconds").is_some_and(|age| (0.0..3_600.0).contains(&age)), "{after}");
    assert_eq!(made_up, 3);
    let made_up = "centavo_http_requests_total{route=\"none\",method=\"GET\",status=\"4xx\"}";
    assert_eq!(value(made_up), Some(2.0), "paths of no route are one: {after}");
    let brewed = "centavo_http_requests_total{route=\"/api/card\",method=\"other\",status=\"4xx\"}";
    assert_eq!(value(brewed), Some(1.0), "so are methods");
    for secret in [&merchant.key, "João", "12345678909", APPROVED] {
        assert!(!answer.text.contains(secret), "{secret} in the metrics");
    }
}

/// The samples of an exposition: a name, perhaps labels, and a number. HELP and TYPE stand before
/// each metric, and its name fits its type, as `promtool check metrics` demands.
fn samples(text: &str) -> Vec<(String, f64)> {
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut samples = Vec::new();
    let mut helped = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').filter(|(_, help)| !help.is_empty()).unwrap_or_else(|| panic!("{line}")).0;
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|described| described.split_once(' ')) {
            assert_eq!(name, helped, "{line}: help comes before the type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(!["_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end)), "{line}");
            assert!(kinds.insert(name, kind).is_none(), "{line}: twice");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let bare = name.split('{').next().unwrap();
        assert!(bare.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let of_histogram = ["_count", "_sum", "_bucket"].iter().find_map(|end| bare.strip_suffix(end));
        let is_described =
            kinds.contains_key(bare) || of_histogram.is_some_and(|name| kinds.get(name) == Some(&"histogram"));
        assert!(is_described, "{line} is not described");
        samples.push((name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}"))));
    }
    samples
}
