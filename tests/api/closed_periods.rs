//! Books of the past: trial balances of a day, and the closing of months.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Duration, FixedOffset, Utc};
use serde_json::{Value, json};

use crate::world::*;

/// Debits and credits of each account, by ledger and account.
type Sums = BTreeMap<(String, String), [i64; 2]>;

fn sums<'a>(rows: impl Iterator<Item = &'a Value>, [debits, credits]: [&str; 2]) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        let sum = sums.entry((text(&row["ledger"]), text(&row["account"]))).or_default();
        for (side, name) in sum.iter_mut().zip([debits, credits]) {
            *side += row[name].as_i64().unwrap();
        }
    }
    sums
}

/// Rows of the export of all ledgers.
async fn rows(world: &World) -> Vec<Value> {
    let exported = world.ops_get("/ops/export").await.text;
    exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All pages of a trial balance.
async fn shown(world: &World, query: &str) -> (Value, Sums) {
    let (mut accounts, mut page) = (Vec::new(), 1);
    loop {
        let read = world.ops_get(&format!("/ops/trial-balance?page={page}&per_page=7&{query}")).await.expect(200);
        accounts.extend(read["accounts"].as_array().unwrap().clone());
        if page >= read["pages"].as_u64().unwrap() {
            assert_eq!(read["total"], accounts.len());
            return (read, sums(accounts.iter(), ["debits", "credits"]));
        }
        page += 1;
    }
}

#[tokio::test]
async fn a_damaged_balance_file_is_made_again_and_read_at_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for amount in [1_000, 2_000, 3_000] {
        merchant.post("/api/card", &card(amount, APPROVED)).await.expect(201);
    }
    let now = world.advance(0).await;
    world.advance_to(next_month(now) + Duration::days(1)).await;
    merchant.post("/api/card", &card(4_000, APPROVED)).await.expect(201);
    world.engine().settle_balance_files().unwrap();
    let entries = std::fs::read_dir(world.folder().join("files")).unwrap().map(|entry| entry.unwrap().path());
    let is_balances = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("balances1-");
    let file = entries.filter(is_balances).max().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let damage = || {
        let mut damaged = whole.clone();
        damaged[0] ^= 1;
        std::fs::write(&file, damaged).unwrap();
    };
    let is_whole = || std::fs::read(&file).unwrap() == whole;
    let today = local(world.advance(0).await).format("%Y-%m-%d");
    let of_ledger = format!("/ops/trial-balance?date={today}&ledger={}", merchant.ledger());
    let cut = world.engine().published();
    let sums = || world.engine().sums_as_of(&cut);
    let before = (world.ops_get(&of_ledger).await.expect(200), sums().unwrap());
    damage();
    assert_eq!(world.ops_get(&of_ledger).await.expect(200), before.0);
    assert!(is_whole(), "the same file was made again");
    damage();
    assert_eq!(sums().unwrap(), before.1);
    assert!(is_whole(), "the same file was made again");
}

pub(crate) fn local(at: DateTime<Utc>) -> DateTime<FixedOffset> {
    at.with_timezone(&FixedOffset::west_opt(3 * 3_600).unwrap())
}

/// The first moment of the next month in Sao Paulo.
pub(crate) fn next_month(at: DateTime<Utc>) -> DateTime<Utc> {
    let first = local(at).with_day(1).unwrap().date_naive() + chrono::Months::new(1);
    (first.and_hms_opt(3, 0, 0).unwrap()).and_utc()
}

#[tokio::test]
async fn books_of_a_day_are_those_of_the_rows_through_it() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    for day in 0..5 {
        merchant.post("/api/card", &with_splits(card(10_000 + day, APPROVED), &[(&ana, 3_500)])).await.expect(201);
        merchant.paid_pix(&pix("10.00")).await;
        world.advance(9 * 86_400).await;
    }
    world.engine().settle_balance_files().unwrap();
    let all = rows(&world).await;
    let through = |day: &str| {
        let before = all.iter().filter(|row| row["date"].as_str().unwrap() <= day);
        sums(before, ["debit", "credit"])
    };
    let days: std::collections::BTreeSet<String> = all.iter().map(|row| text(&row["date"])).collect();
    assert!(days.len() > 5, "{days:?}");
    for day in &days {
        let expected = through(day);
        let (read, found) = shown(&world, &format!("date={day}")).await;
        assert_eq!((&read["balanced"], &found), (&json!(true), &expected), "{day}");
        let ledger = merchant.ledger();
        let (_, found) = shown(&world, &format!("date={day}&ledger={ledger}")).await;
        let own = expected.into_iter().filter(|((of, _), _)| *of == ledger).collect();
        assert_eq!(found, own, "{ledger} at the end of {day}");
    }
    assert!(shown(&world, "date=2020-01-01").await.1.is_empty());

    let middle = days.iter().nth(days.len() / 2).unwrap();
    let csv = world.ops_get(&format!("/ops/trial-balance?format=csv&date={middle}")).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let expected = through(middle);
    let lines: Vec<_> = csv.text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()).collect();
    assert_eq!(lines.len(), expected.len());
    for line in lines {
        let [debits, credits] = expected[&(line[0].to_owned(), line[1].to_owned())];
        assert_eq!(line[2..], [debits, credits, debits - credits].map(|sum| sum.to_string()));
    }
    let (_, groups) = shown(&world, &format!("level=1&ledger={}", merchant.ledger())).await;
    let names: Vec<_> = groups.keys().map(|(_, account)| account.as_str()).collect();
    assert_eq!(names, ["Assets", "Expenses", "Income"]);
    let by_kind = world.ops_get(&format!("/ops/trial-balance?by=account&date={middle}")).await.expect(200);
    let total = |of: &Sums| of.values().map(|[debits, _]| debits).sum::<i64>();
    let kinds = by_kind["accounts"].as_array().unwrap();
    let debits: i64 = kinds.iter().map(|row| row["debits"].as_i64().unwrap()).sum();
    assert_eq!(debits, total(&through(middle)));
    for wrong in ["at=1", "date=2026-13-01", "level=2", "format=xml", "format=csv&by=account", "until=3"] {
        world.ops_get(&format!("/ops/trial-balance?{wrong}")).await.refused(400, "validation_failed");
    }
    world.ops_get("/ops/trial-balance?ledger=M-1").await.refused(400, "validation_failed");
}

/// A card charge whose acquirer is silent at a month's end is open in that month, in no other. A
/// code that nobody has paid is no command without an end.
#[tokio::test]
async fn a_charge_without_an_answer_is_open_at_the_months_end() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let now = world.advance(0).await;
    merchant.post("/api/card", &card(3_000, APPROVED)).await.expect(201);
    merchant.post("/api/card", &card(3_000, SILENT)).await.expect(201);
    let unanswered = |period: Value| {
        let open = period["open"].as_array().unwrap();
        open.iter().filter(|item| item["kind"] == "unanswered").cloned().collect::<Vec<_>>()
    };
    let one = json!({"kind": "unanswered", "name": "charge", "count": 1});
    let path = |at: DateTime<Utc>| format!("/ops/periods/{}", local(at).format("%Y-%m"));
    assert_eq!(unanswered(world.ops_get(&path(now)).await.expect(200)), [one], "the month goes on");
    world.advance_to(next_month(now) - Duration::seconds(20)).await;
    assert_eq!(unanswered(world.ops_get(&path(now)).await.expect(200)), [Value::Null; 0], "it was answered meanwhile");

    merchant.post("/api/pix", &pix("10.00")).await.expect(201);
    for _ in 0..2 {
        merchant.post("/api/card", &card(7_000, SILENT)).await.expect(201);
    }
    world.advance_to(next_month(now) + Duration::days(1)).await;
    let two = [json!({"kind": "unanswered", "name": "charge", "count": 2})];
    assert_eq!(unanswered(world.ops_get(&path(now)).await.expect(200)), two);
    assert_eq!(unanswered(world.ops_get(&path(next_month(now))).await.expect(200)), [Value::Null; 0]);
    let pending = world.ops_post(&format!("{}/close", path(now)), &json!({})).await.expect(200);
    assert_eq!(unanswered(pending), two, "who closes it reads so");
}

/// Money that was paid out is not in flight any more; money of an order that waits is.
#[tokio::test]
async fn only_money_of_orders_without_an_end_is_in_flight() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let month = local(world.advance(0).await).format("%Y-%m").to_string();
    let in_flight = async || {
        let period = world.ops_get(&format!("/ops/periods/{month}")).await.expect(200);
        let open = period["open"].as_array().unwrap().iter().filter(|item| item["kind"] == "in_flight");
        open.map(|item| (text(&item["name"]), item["balance"].as_i64().unwrap())).collect::<Vec<_>>()
    };
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    assert_eq!(in_flight().await, []);
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    assert_eq!(in_flight().await, [("Assets:Platform:Reserved:Withdrawal".to_owned(), 1_000)]);
    world.approve(&withdrawal).await.expect(200);
    let cashout = json!({"amount": 2_000, "pix_key": "ok@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    world.advance(0).await;
    assert_eq!(in_flight().await, []);
}

#[tokio::test]
async fn a_month_is_closed_by_two_operators() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("10.00")).await;
    let through = world.cut().await;
    let now = world.advance(0).await;
    let (month, day) = (local(now).format("%Y-%m").to_string(), local(now).format("%Y-%m-%d").to_string());
    let path = format!("/ops/periods/{month}");
    world.ops_post(&format!("{path}/close"), &json!({})).await.refused(409, "period_not_over");
    let dated = |day: &str| {
        json!({"debit": "Assets:Bank:Pix", "credit": "Liabilities:Suspense", "amount": 700,
            "reason": "Depósito", "reference": "EXTRATO-9", "effective_date": day,
            "reference_repeats": true})
    };
    let waits = world.ops_post("/ops/entries", &dated(&day)).await.expect(201);
    assert_eq!(waits["effective_date"], day);
    assert_eq!(world.ops_get("/ops/queue").await.expect(200)["items"][0]["effective_date"], day);
    world.advance_to(next_month(now) + Duration::days(2)).await;
    assert_eq!(world.ops_get(&path).await.expect(200)["status"], "open");

    let booked = world.ops_post("/ops/entries", &dated(&day)).await.expect(201);
    let approve = |entry: &Value| format!("/ops/entries/{}/approve", text(&entry["id"]));
    world.second_ops_post(&approve(&booked), &[], &json!({})).await.expect(200);
    let last = rows(&world).await.into_iter().rfind(|row| row["event"] == "house_entry").unwrap();
    assert_eq!((&last["effective_date"], &last["late"]), (&json!(day), &Value::Null));
    assert_ne!(last["date"], last["effective_date"]);

    // It is reported, two postings of it; the payment of the month itself is not.
    let late = world.ops_get("/ops/reports/late-entries").await.expect(200);
    let found = |row: &Value| place_in(row) == place_in(&last) && row["effective_date"] == json!(day);
    let reported = late["rows"].as_array().unwrap();
    assert!(reported.len() == 2 && reported.iter().all(found), "{late}");
    assert_eq!([&late["totals"]["debit"], &late["totals"]["credit"]], [700, 700]);
    // By the day of effect it is of the month; by that of the booking it is not.
    let of = async |query: &str| {
        let report = world.ops_get(&format!("/ops/reports/{query}")).await.expect(200);
        let is_of_the_bank = |row: &&Value| row["ledger"] == "P-house" && row["account"] == "Assets:Bank:Pix";
        let found = report["rows"].as_array().unwrap().iter().filter(is_of_the_bank).cloned();
        found.collect::<Vec<_>>()
    };
    assert!(of(&format!("trial-balance?to={day}")).await.is_empty());
    let by_effect = of(&format!("trial-balance?by=effect&from={day}&to={day}")).await;
    assert_eq!((&by_effect[0]["opening"], &by_effect[0]["debits"]), (&json!(0), &json!(700)));
    assert_eq!(by_effect[0]["type"], "assets");
    let next = local(now).date_naive().succ_opt().unwrap();
    let opened = of(&format!("trial-balance?by=effect&from={next}")).await;
    assert_eq!([&opened[0]["opening"], &opened[0]["closing"]], [700, 700]);
    let lines = of(&format!("general-ledger?by=effect&from={day}&to={day}")).await;
    assert_eq!(lines.iter().map(|row| &row["balance"]).collect::<Vec<_>>(), [0, 700, 700], "{lines:?}");
    assert_eq!((&lines[1]["date"], &lines[1]["effective_date"]), (&last["date"], &json!(day)));
    let opened = of(&format!("general-ledger?by=effect&from={next}")).await;
    assert_eq!(opened.iter().map(|row| &row["balance"]).collect::<Vec<_>>(), [700, 700], "{opened:?}");
    // The balances by effect are those of the report; those by booking have none of it.
    let before = local(now).date_naive().pred_opt().unwrap();
    for (query, expected) in [
        (format!("trial-balance?by=account&date={day}"), None),
        (format!("trial-balance?by=effect&date={before}"), None),
        (format!("ledgers/P-house/accounts?by=effect&date={before}"), None),
        (format!("trial-balance?by=effect&date={day}"), Some(700)),
        (format!("trial-balance?by=effect&date={day}&ledger=P-house"), Some(700)),
        ("trial-balance?by=effect".to_owned(), Some(700)),
        (format!("ledgers/P-house/accounts?date={day}"), None),
        (format!("ledgers/P-house/accounts?by=effect&date={day}"), Some(700)),
        ("ledgers/P-house/accounts?by=effect".to_owned(), Some(700)),
    ] {
        let balances = world.ops_get(&format!("/ops/{query}")).await.expect(200);
        let rows = balances["accounts"].as_array().or(balances["items"].as_array()).unwrap();
        let suspense = rows.iter().find(|row| row["account"] == "Liabilities:Suspense");
        assert_eq!(suspense.map(|row| row["credits"].as_i64().unwrap()), expected, "{query}: {balances}");
        assert_ne!(balances["balanced"], false, "{query}");
    }
    world.ops_get("/ops/trial-balance?by=day").await.refused(400, "validation_failed");
    world.ops_get("/ops/ledgers/P-house/accounts?by=account").await.refused(400, "validation_failed");
    world.ops_get("/ops/reports/fees?by=effect").await.refused(400, "validation_failed");
    let changed = format!("/ops/reports/changed-days?from={}", text(&last["date"]));
    let changed = world.ops_get(&changed).await.expect(200);
    let changed = changed["rows"].as_array().unwrap().iter().find(|row| row["effective_date"] == day).unwrap();
    assert_eq!([&changed["records"], &changed["late"], &changed["debits"]], [1, 1, 700]);
    // A list of the PIX institution that lacks the payment of the month.
    let list = json!({"parametros": {"inicio": format!("{day}T03:00:00.000Z"), "fim": format!("{next}T02:59:59.999Z"),
        "paginacao": {"paginaAtual": 0, "itensPorPagina": 1, "quantidadeDePaginas": 1, "quantidadeTotalDeItens": 0}},
        "pix": []});
    let lacking = world.reconcile("application/json", "", list.to_string()).await.expect(200);
    assert_eq!(lacking["only_ours"], 1, "{lacking}");

    let key = [("idempotency-key", "close-1")];
    let pending = world.ops_post(&format!("{path}/close"), &json!({})).await.expect(200);
    assert_eq!((&pending["status"], &pending["requested_by"]), (&json!("pending"), &json!("operator")));
    let waiting = json!({"kind": "waiting", "name": "entry", "count": 1});
    assert!(pending["open"].as_array().unwrap().contains(&waiting), "{pending}");
    let unreconciled = json!({"kind": "unreconciled", "name": "pix", "count": 1});
    assert!(pending["open"].as_array().unwrap().contains(&unreconciled), "{pending}");
    world.ops_post(&format!("{path}/close"), &json!({})).await.refused(409, "second_operator_needed");
    let closed = world.second_ops_post(&format!("{path}/close"), &key, &json!({})).await.expect(200);
    assert_eq!((&closed["status"], &closed["closed_by"]), (&json!("closed"), &json!("second")));
    let sealed = cut_in(&closed);
    assert!(through.is_within(&sealed) && sealed != world.cut().await, "{closed}");
    assert!(["head", "totals"].iter().all(|name| text(&closed[*name]).len() == 64), "{closed}");
    assert_eq!(world.second_ops_post(&format!("{path}/close"), &key, &json!({})).await.expect(200), closed, "once");
    world.second_ops_post(&format!("{path}/close"), &[], &json!({})).await.refused(409, "period_closed");

    world.ops_post("/ops/entries", &dated(&day)).await.refused(409, "period_closed");
    world.second_ops_post(&approve(&waits), &[], &json!({})).await.refused(409, "period_closed");
    let tomorrow = (local(world.advance(0).await) + Duration::days(1)).format("%Y-%m-%d").to_string();
    let refused = world.ops_post("/ops/entries", &dated(&tomorrow)).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["field"], "effective_date");
    let world = world.restarted().await;
    assert_eq!(world.ops_get(&path).await.expect(200), closed);
    let listed = world.ops_get("/ops/periods").await.expect(200);
    assert_eq!((&listed["total"], &listed["items"][0]["period"]), (&json!(1), &json!(month)));
    world.ops_post("/ops/periods/2020-01/close", &json!({})).await.refused(409, "period_closed");
    assert_eq!(world.ops_get("/ops/periods/2020-01").await.expect(200)["status"], "closed");
    for wrong in ["2026-13", "2026", "x", "2026-1"] {
        world.ops_get(&format!("/ops/periods/{wrong}")).await.refused(404, "not_found");
    }
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let rows = items(&audit).iter().filter(|row| row["kind"] == "period");
    let rows: Vec<_> = rows.map(|row| [&row["action"], &row["notes"], &row["operator"]]).collect();
    assert_eq!(
        rows,
        [[&json!("close"), &json!(month), &json!("second")], [&json!("request"), &json!(month), &json!("operator")]]
    );
}
