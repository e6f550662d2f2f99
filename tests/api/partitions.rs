//! Several partitions in one process: queries over all merchants give the same answers as with one,
//! and a cut of all partitions.

use std::collections::{BTreeMap, BTreeSet};

use books::reports::{DayOf, Report, ReportFormat, ReportRequest};
use centavo::settings::checked::ReportSettings;
use chrono::Duration;
use serde_json::{Value, json};
use store::Sequence;

use crate::closed_periods::{local, next_month};
use crate::world::*;

const PARTITIONS: u16 = 3;

async fn divided() -> World {
    World::with_settings(|settings| settings.partitions = PARTITIONS.try_into().unwrap()).await
}

/// A merchant with a number of its own.
async fn merchant(world: &World, number: u32) -> Merchant<'_> {
    let body = json!({"name": format!("Loja {number}"), "document": cnpj(number), "split_enabled": true});
    world.open(body).await
}

/// Merchants in all partitions, each with charges, one after the other.
async fn traded(world: &World) -> Vec<Merchant<'_>> {
    let mut merchants = Vec::new();
    for number in 1..=7 {
        merchants.push(merchant(world, number).await);
    }
    for amount in [1_000, 2_000, 3_000] {
        for merchant in &merchants {
            merchant.post("/api/card", &card(amount, APPROVED)).await.expect(201);
        }
    }
    let of_merchant = |merchant: &Merchant<'_>| {
        let group = world.engine().ids().group(ledger::id::ObjectId::parse(&merchant.id).unwrap());
        world.engine().position_of(ledger::id::LedgerId::Merchant(group), store::Sequence::FIRST).partition.0
    };
    let used: BTreeSet<_> = merchants.iter().map(of_merchant).collect();
    assert_eq!(used, (0..PARTITIONS).collect(), "all partitions are used");
    merchants
}

fn cut_text(cut: &Value) -> String {
    let parts: BTreeMap<u64, u64> = cut
        .as_object()
        .unwrap()
        .iter()
        .map(|(partition, last)| (partition.parse().unwrap(), last.as_u64().unwrap()))
        .collect();
    parts.into_iter().map(|(partition, last)| format!("{partition}={last}")).collect::<Vec<_>>().join(",")
}

fn place(row: &Value) -> (u64, u64) {
    (row["partition"].as_u64().unwrap(), row["sequence"].as_u64().unwrap())
}

/// All items of a list that goes on with `next_before`.
async fn listed(world: &World, path: &str) -> Vec<Value> {
    let (mut all, mut query) = (Vec::new(), "per_page=5".to_owned());
    loop {
        let page = world.ops_get(&format!("{path}?{query}")).await.expect(200);
        all.extend(items(&page).clone());
        let Some(before) = page.get("next_before") else { return all };
        query = format!("per_page=5&before={}", before.as_str().unwrap());
    }
}

fn rows(export: &str) -> Vec<Value> {
    export.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn records_and_charges_of_all_partitions_are_listed_newest_first() {
    let world = divided().await;
    traded(&world).await;
    let records = listed(&world, "/ops/records").await;
    let cut = world.ops_get("/ops/trial-balance").await.expect(200)["cut"].clone();
    let published: u64 = cut.as_object().unwrap().values().map(|last| last.as_u64().unwrap()).sum();
    assert_eq!(records.len() as u64, published);
    let places: BTreeSet<_> = records.iter().map(place).collect();
    assert_eq!(places.len() as u64, published, "each once");
    let times: Vec<_> = records.iter().map(|record| time(&record["booked_at"])).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first");
    for record in records.iter().step_by(5) {
        let (partition, sequence) = place(record);
        let one = world.ops_get(&format!("/ops/records/{sequence}?partition={partition}")).await.expect(200);
        assert_eq!((&one["booked_at"], &one["owner"]), (&record["booked_at"], &record["owner"]));
        let block = world.ops_get(&format!("/ops/journal/{sequence}?partition={partition}")).await.expect(200);
        assert_eq!(block["partition"], partition);
        assert!((block["first"].as_u64().unwrap()..=block["last"].as_u64().unwrap()).contains(&sequence));
    }
    let charges = listed(&world, "/ops/lists/charges").await;
    assert_eq!(charges.len(), 21);
    let txids: BTreeSet<_> = charges.iter().map(|charge| text(&charge["id"])).collect();
    assert_eq!(txids.len(), 21, "each once");
    let amounts: Vec<_> = charges.iter().map(|charge| charge["amount"].as_i64().unwrap()).collect();
    assert!(amounts.is_sorted_by(|newer, older| newer >= older), "newest first: {amounts:?}");
    for wrong in ["/ops/records/1?partition=3", "/ops/records/99999?partition=1", "/ops/journal/1?partition=3"] {
        world.ops_get(wrong).await.refused(404, "not_found");
    }
    for wrong in
        ["/ops/records?before=7", "/ops/lists/charges?before=0=7", "/ops/export?at=7", "/ops/reports/fees?at=0=1"]
    {
        world.ops_get(wrong).await.refused(400, "validation_failed");
    }
}

#[tokio::test]
async fn books_are_whole_at_every_cut() {
    let world = divided().await;
    let merchants = traded(&world).await;
    world.check_books().await;
    let before = world.ops_get("/ops/trial-balance?by=account").await.expect(200);
    let at = cut_text(&before["cut"]);
    let export = world.ops_get("/ops/export").await;
    assert_eq!(export.header("x-cut"), Some(at.as_str()));
    let exported = rows(&export.text);
    let day = local(world.advance(0).await).format("%Y-%m-%d").to_string();
    world.advance(86_400).await;
    for merchant in &merchants {
        merchant.post("/api/card", &card(500, APPROVED)).await.expect(201);
    }
    let then = world.ops_get(&format!("/ops/trial-balance?by=account&date={day}")).await.expect(200);
    // The cut may be later: what the house books without money is of that day too.
    assert_eq!(then["accounts"], before["accounts"]);
    let again = rows(&world.ops_get(&format!("/ops/export?at={at}")).await.text);
    assert_eq!(again, exported, "what is before a cut never changes");

    // All rows are those before the cut and the later ones, in the order of booking.
    let all = rows(&world.ops_get("/ops/export").await.text);
    let is_before = |row: &Value| place(row).1 <= before["cut"][place(row).0.to_string()].as_u64().unwrap();
    let (first, later): (Vec<_>, Vec<_>) = all.iter().cloned().partition(is_before);
    assert_eq!(first, exported);
    assert!(later.len() >= 7 * 5, "{}", later.len());
    let times: Vec<_> = all.iter().map(|row| time(&row["booked_at"])).collect();
    assert!(times.is_sorted(), "in the order of booking");
    let sums = |rows: &[Value], side: &str| rows.iter().map(|row| row[side].as_i64().unwrap()).sum::<i64>();
    assert_eq!(sums(&all, "debit"), sums(&all, "credit"));

    // The report has the same sums, and names the cut and a hash of all heads.
    let report = world.ops_get(&format!("/ops/reports/trial-balance?at={at}")).await;
    assert_eq!(report.header("report-cut"), Some(at.as_str()));
    let report = report.expect(200);
    assert_eq!(report["cut"], before["cut"]);
    let later = world.ops_get("/ops/reports/trial-balance").await.expect(200);
    assert_ne!(later["head"], report["head"]);
    let entries = world.ops_get(&format!("/ops/reports/general-ledger?at={at}")).await.expect(200);
    let places = |rows: &[Value]| {
        let mut places: Vec<_> = rows.iter().filter(|row| !row["sequence"].is_null()).map(place).collect();
        places.sort_unstable();
        places
    };
    assert_eq!(places(entries["rows"].as_array().unwrap()), places(&exported));

    // The hash covers the Records of each partition: one more in any of them is another head.
    let mut heads = BTreeSet::from([text(&report["head"])]);
    for partition in 0..PARTITIONS {
        let mut more = before["cut"].clone();
        more[partition.to_string()] = json!(more[partition.to_string()].as_u64().unwrap() + 1);
        let report = world.ops_get(&format!("/ops/reports/fees?at={}", cut_text(&more))).await.expect(200);
        heads.insert(text(&report["head"]));
    }
    assert_eq!(heads.len(), 1 + usize::from(PARTITIONS));

    // Accounts of all ledgers, on pages of now and of the past, and as a file.
    let (now, past) = (ledger_pages(&world, "").await, ledger_pages(&world, &format!("&date={day}")).await);
    assert!(past.keys().all(|account| now.contains_key(account)), "no account is lost");
    assert!(past.len() >= 7 * 10 && now != past, "{}", now.len());
    let file = world.ops_get(&format!("/ops/trial-balance?format=csv&date={day}")).await;
    assert_eq!(file.text.lines().count(), 1 + past.len());

    // Each ledger's own books are of its partition.
    for merchant in merchants.iter().take(3) {
        let ledger = merchant.ledger();
        let own = rows(&world.ops_get(&format!("/ops/export?ledger={ledger}")).await.text);
        let of_all: Vec<_> = all.iter().filter(|row| row["ledger"] == ledger.as_str()).cloned().collect();
        assert_eq!(own, of_all);
        let report = merchant.get("/api/reports/ledger").await;
        assert_eq!(rows(&report.text), own);
        let statement = world.ops_get(&format!("/ops/reports/statement?ledger={ledger}")).await.expect(200);
        let (opening, moved) = statement["rows"].as_array().unwrap().split_first().unwrap();
        assert_eq!((&opening["sequence"], &opening["partition"]), (&Value::Null, &Value::Null));
        let of_ledger: BTreeSet<_> = own.iter().map(place).collect();
        assert!(!moved.is_empty() && moved.iter().all(|row| of_ledger.contains(&place(row))), "{statement}");
        let past = world.ops_get(&format!("/ops/trial-balance?ledger={ledger}&date={day}")).await.expect(200);
        let sum: i64 = past["accounts"].as_array().unwrap().iter().map(|row| row["balance"].as_i64().unwrap()).sum();
        assert_eq!(sum, 0);
    }
}

/// All accounts of the trial balance, from pages of four, each once, with their balances.
async fn ledger_pages(world: &World, query: &str) -> BTreeMap<(String, String), i64> {
    let mut all = BTreeMap::new();
    for page in 1.. {
        let path = format!("/ops/trial-balance?per_page=4&page={page}{query}");
        let balance = world.ops_get(&path).await.expect(200);
        for row in balance["accounts"].as_array().unwrap() {
            let account = (text(&row["ledger"]), text(&row["account"]));
            assert!(all.insert(account, row["balance"].as_i64().unwrap()).is_none(), "twice: {row}");
        }
        if page >= balance["pages"].as_u64().unwrap() {
            assert_eq!(all.len() as u64, balance["total"].as_u64().unwrap(), "{path}");
            return all;
        }
    }
    all
}

#[tokio::test]
async fn a_key_opens_one_account_wherever_it_is() {
    let world = divided().await;
    for number in 1..=12 {
        let body = json!({"name": format!("Loja {number}"), "document": cnpj(number)}).to_string();
        let key = format!("abertura-{number}");
        let headers = [("idempotency-key", key.as_str())];
        let send = || world.ops_send(reqwest::Method::POST, "/ops/merchants", &headers, body.clone());
        let first = send().await;
        let named =
            (first.header("centavo-partition").map(str::to_owned), first.header("centavo-sequence").map(str::to_owned));
        let first = first.expect(201);
        let again = send().await;
        assert_eq!(
            (again.header("centavo-partition").map(str::to_owned), again.header("centavo-sequence").map(str::to_owned)),
            named
        );
        assert_eq!(again.expect(201)["id"], first["id"]);
    }
    let listed = world.ops_get("/ops/merchants?per_page=100").await.expect(200);
    assert_eq!(listed["total"], 12);
    let created: Vec<_> = items(&listed).iter().map(|merchant| text(&merchant["id"])).collect();
    assert_eq!(created.iter().collect::<BTreeSet<_>>().len(), 12);
}

#[tokio::test]
async fn a_month_is_closed_in_every_partition() {
    let world = divided().await;
    let now = world.advance(0).await;
    world.advance_to(next_month(now) + Duration::days(1)).await;
    let month = world.advance(0).await;
    let merchants = traded(&world).await;
    let named = local(month).format("%Y-%m").to_string();
    world.advance_to(next_month(month) + Duration::days(1)).await;
    for merchant in &merchants {
        merchant.post("/api/card", &card(700, APPROVED)).await.expect(201);
    }
    let path = format!("/ops/periods/{named}/close");
    world.ops_post(&path, &json!({})).await.expect(200);
    let waits = world.ops_get("/ops/queue?kind=period").await.expect(200);
    let waits = &items(&waits)[0];
    assert_eq!((&waits["id"], &waits["requested_by"]), (&json!(named), &json!("operator")));
    let closed = world.second_ops_post(&path, &[], &json!({})).await.expect(200);
    assert_eq!(closed["status"], "closed");
    let last_day = local(next_month(month) - Duration::seconds(1)).format("%Y-%m-%d");
    let then = world.ops_get(&format!("/ops/trial-balance?by=account&date={last_day}")).await.expect(200);
    assert_eq!((&then["balanced"], &then["cut"]), (&json!(true), &closed["cut"]));
    assert!(then["cut"].as_object().unwrap().len() == usize::from(PARTITIONS));
    let listed = world.ops_get("/ops/periods").await.expect(200);
    assert_eq!((&listed["total"], &items(&listed)[0]["period"]), (&json!(1), &json!(named)));
    // Every partition has a Record that closes the month, and the house's names who did it.
    let records = listed_all(&world).await;
    let closing: Vec<_> = records.iter().filter(|record| record["events"] == json!(["period_closed"])).collect();
    let of: BTreeSet<_> = closing.iter().map(|record| place(record).0).collect();
    assert_eq!((closing.len(), of.len()), (usize::from(PARTITIONS), usize::from(PARTITIONS)));
    assert_eq!(closing.iter().filter(|record| record["operator"].is_string()).count(), 1);
    let audit = world.ops_get("/ops/audit?per_page=100").await.expect(200);
    assert_eq!(items(&audit).iter().filter(|row| row["kind"] == "period").count(), 2, "asked for, and closed");
}

async fn listed_all(world: &World) -> Vec<Value> {
    listed(world, "/ops/records").await
}

#[tokio::test]
async fn the_audit_trail_and_the_queue_are_of_all_partitions() {
    let world = divided().await;
    let merchants = traded(&world).await;
    let mut drafts = Vec::new();
    for (number, merchant) in (1..).zip(&merchants) {
        drafts.push(merchant.draft(&format!("Ana {number}"), number).await);
        world.advance(1).await;
    }
    let queue = world.ops_get("/ops/queue").await.expect(200);
    let ids: Vec<_> = items(&queue).iter().map(|item| text(&item["id"])).collect();
    assert_eq!((ids, &queue["total"]), (drafts, &json!(7)), "oldest first");

    let whole = world.ops_get("/ops/audit?per_page=100").await.expect(200);
    // Records of one commit are booked at the same time, and decided at times of their own.
    let booked: BTreeMap<_, _> =
        listed_all(&world).await.iter().map(|record| (place(record), time(&record["booked_at"]))).collect();
    let times: Vec<_> = items(&whole).iter().map(|row| booked[&place(row)]).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older));
    assert!(times.len() as u64 == whole["total"].as_u64().unwrap() && times.len() >= 14, "{}", times.len());
    let mut paged = Vec::new();
    for page in 1..=times.len().div_ceil(4) {
        let page = world.ops_get(&format!("/ops/audit?per_page=4&page={page}")).await.expect(200);
        paged.extend(items(&page).clone());
    }
    assert_eq!(&paged, items(&whole));
    for merchant in merchants.iter().take(3) {
        let of_one = world.ops_get(&format!("/ops/audit?merchant_id={}", merchant.id)).await.expect(200);
        assert!(items(&of_one).iter().all(|row| row["merchant_id"] == merchant.id.as_str()));
        assert!(of_one["total"].as_u64().unwrap() >= 2);
    }
}

/// A cut names all partitions, also those without Records: a report of a command has the cut and
/// the hash of the server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_on_partitions_without_records_makes_the_report_of_the_server() {
    let world = divided().await;
    merchant(&world, 1).await.paid_pix(&pix("10.00")).await;
    assert!(world.cut().await.iter().any(|last| last.sequence == Sequence(0)), "a partition is empty");
    let mut served = Vec::new();
    for report in [Report::GeneralLedger, Report::TrialBalance, Report::Fees] {
        let answer = world.ops_get(&format!("/ops/reports/{}", report.name())).await;
        served.push((report, answer.text));
    }
    let folder = world.stopped().await;
    for (report, served) in served {
        let (format, out) = (ReportFormat::Json, folder.path().join("reports"));
        let journal = journal_in(folder.path());
        let request = ReportRequest { report, ledger: None, account: None, by: DayOf::Booking, from: None, to: None };
        let name = request.file_name(format);
        let settings = ReportSettings { journal, request, format, at: None, out: Some(out.clone()) };
        centavo::commands::report::run(settings).await.unwrap();
        assert_eq!(std::fs::read_to_string(out.join(name)).unwrap(), served);
    }
}

#[tokio::test]
async fn checkpoints_are_of_each_partition_and_a_restart_changes_nothing() {
    let world = divided().await;
    traded(&world).await;
    let cut = world.ops_get("/ops/trial-balance").await.expect(200)["cut"].clone();
    for partition in 0..PARTITIONS {
        let signed = world.ops_get(&format!("/ops/checkpoint?partition={partition}")).await.expect(200);
        assert_eq!((&signed["partition"], &signed["sequence"]), (&json!(partition), &cut[partition.to_string()]));
    }
    world.ops_get("/ops/checkpoint?partition=3").await.refused(404, "not_found");
    let export = world.ops_get("/ops/export").await.text;
    let balance = world.ops_get("/ops/trial-balance").await.expect(200);
    // The setting is of new stores: this one keeps its partitions.
    let world = world.restarted_with(|settings| settings.partitions = 1.try_into().unwrap()).await;
    assert_eq!(world.ops_get("/ops/trial-balance").await.expect(200), balance);
    assert_eq!(world.ops_get("/ops/export").await.text, export);
    merchant(&world, 50).await.post("/api/card", &card(100, APPROVED)).await.expect(201);
    world.check_books().await;
}
