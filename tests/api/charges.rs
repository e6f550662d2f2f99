//! The list of an account's charges, and the cancellation of a PIX charge.

use std::collections::{BTreeSet, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex};

use actors::rails::{Call, PixFate, PixRail, PixReceipt, RailError, Repay, RepayAnswer};
use chrono::{SecondsFormat, TimeDelta};
use ledger::id::ObjectId;
use ledger::record::RailStamp;
use serde_json::{Value, json};

use crate::world::*;

const STATUSES: [&str; 4] = ["pending", "CONCLUIDA", "RECUSADA", "cancelled"];

async fn new_pix(merchant: &Merchant<'_>) -> String {
    text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"])
}

async fn cancel(merchant: &Merchant<'_>, txid: &str) -> Answer {
    merchant.post_raw(&format!("/api/charges/{txid}/cancel"), &[], "").await
}

async fn charge(merchant: &Merchant<'_>, txid: &str) -> Value {
    merchant.get(&format!("/api/charges/{txid}")).await.expect(200)
}

/// The txids of a list that fits one page.
async fn listed(merchant: &Merchant<'_>, query: &str) -> Vec<String> {
    let list = merchant.get(&format!("/api/charges?per_page=100&{query}")).await.expect(200);
    assert_eq!(list["total"].as_u64(), Some(items(&list).len() as u64), "{query}");
    items(&list).iter().map(|item| text(&item["txid"])).collect()
}

/// Each charge is in the list of its status and in no other, newest first, and shows there what it
/// shows alone.
async fn check_lists(merchant: &Merchant<'_>, txids: &[String]) {
    let mut charges = Vec::new();
    for txid in txids.iter().rev() {
        charges.push(charge(merchant, txid).await);
    }
    let whole = merchant.get("/api/charges").await.expect(200);
    has_exactly(&whole, &["items", "total", "page", "pages", "per_page"]);
    assert_eq!(items(&whole), &charges);
    for status in STATUSES {
        let list = merchant.get(&format!("/api/charges?status={status}")).await.expect(200);
        let expected: Vec<Value> = charges.iter().filter(|charge| charge["status"] == status).cloned().collect();
        assert_eq!((items(&list), list["total"].as_u64()), (&expected, Some(expected.len() as u64)), "{status}");
    }
}

#[tokio::test]
async fn every_transition_moves_a_charge_to_the_list_of_its_status() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    new_pix(&other).await;
    let mut txids = Vec::new();
    check_lists(&merchant, &txids).await;
    for _ in 0..3 {
        txids.push(new_pix(&merchant).await);
        check_lists(&merchant, &txids).await;
    }
    merchant.pay(&txids[0]).await.expect(200);
    check_lists(&merchant, &txids).await;
    cancel(&merchant, &txids[1]).await.expect(200);
    check_lists(&merchant, &txids).await;
    for (number, status) in [(APPROVED, 201), (REFUSED, 402), (SILENT, 201)] {
        let answer = merchant.post("/api/card", &card(10_000, number)).await.expect(status);
        txids.push(text(&answer["txid"]));
        check_lists(&merchant, &txids).await;
    }
    let statuses = async || {
        let mut statuses = Vec::new();
        for txid in &txids {
            statuses.push(text(&charge(&merchant, txid).await["status"]));
        }
        statuses
    };
    assert_eq!(statuses().await, ["CONCLUIDA", "cancelled", "pending", "CONCLUIDA", "RECUSADA", "pending"]);
    world.advance(120).await;
    check_lists(&merchant, &txids).await;
    world.advance(DAY).await;
    check_lists(&merchant, &txids).await;
    assert_eq!(statuses().await, ["CONCLUIDA", "cancelled", "cancelled", "CONCLUIDA", "RECUSADA", "CONCLUIDA"]);
    assert_eq!(listed(&merchant, "payment_method=pix").await, [&*txids[2], &txids[1], &txids[0]]);
    assert_eq!(listed(&merchant, "payment_method=credit_card&status=RECUSADA").await, [&*txids[4]]);
    assert!(listed(&merchant, "payment_method=debit_card").await.is_empty());
    assert!(listed(&merchant, "payment_method=pix&status=RECUSADA").await.is_empty());
    let names = merchant.names;
    let world = world.restarted().await;
    check_lists(&Merchant { world: &world, names }, &txids).await;
}

#[tokio::test]
async fn charges_are_found_by_the_time_of_their_creation() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut charges = Vec::new();
    for _ in 0..12 {
        world.advance(6 * 60 * 60).await;
        let txid = new_pix(&merchant).await;
        charges.push((time(&charge(&merchant, &txid).await["created_at"]), txid));
    }
    charges.reverse();
    let within = |admits: &dyn Fn(chrono::DateTime<chrono::Utc>) -> bool| -> Vec<String> {
        charges.iter().filter(|(at, _)| admits(*at)).map(|(_, txid)| txid.clone()).collect()
    };
    let in_sao_paulo = |at: chrono::DateTime<chrono::Utc>| (at - TimeDelta::hours(3)).date_naive();
    let days: BTreeSet<_> = charges.iter().map(|(at, _)| in_sao_paulo(*at)).collect();
    for day in &days {
        assert_eq!(listed(&merchant, &format!("from={day}")).await, within(&|at| in_sao_paulo(at) >= *day));
        assert_eq!(listed(&merchant, &format!("to={day}")).await, within(&|at| in_sao_paulo(at) <= *day));
        assert_eq!(listed(&merchant, &format!("from={day}&to={day}")).await, within(&|at| in_sao_paulo(at) == *day));
    }
    for (moment, _) in &charges {
        let zulu = moment.to_rfc3339_opts(SecondsFormat::Millis, true);
        assert_eq!(listed(&merchant, &format!("from={zulu}")).await, within(&|at| at >= *moment));
        assert_eq!(listed(&merchant, &format!("to={zulu}")).await, within(&|at| at < *moment));
        assert!(listed(&merchant, &format!("from={zulu}&to={zulu}")).await.is_empty());
        let here = moment.with_timezone(&chrono::FixedOffset::west_opt(3 * 60 * 60).unwrap());
        let here = here.to_rfc3339_opts(SecondsFormat::Millis, false);
        assert_eq!(listed(&merchant, &format!("from={here}")).await, within(&|at| at >= *moment));
    }
}

#[tokio::test]
async fn filters_are_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let wrong = [
        ("status=paid", vec![("status", "unknown")]),
        ("status=concluida", vec![("status", "unknown")]),
        ("status=", vec![("status", "unknown")]),
        ("status=pending&status=pending", vec![("status", "ambiguous")]),
        ("payment_method=card", vec![("payment_method", "unknown")]),
        ("from=yesterday", vec![("from", "invalid_time")]),
        ("from=2026-02-30", vec![("from", "invalid_time")]),
        ("to=2026-07-01T12:00:00", vec![("to", "invalid_time")]),
        ("to=1782907200", vec![("to", "invalid_time")]),
        ("from=2026-07-02&to=2026-07-01", vec![("to", "before_from")]),
        ("from=2026-07-02T03:00:00Z&to=2026-07-01", vec![("to", "before_from")]),
        ("from=2026-07-02T03:00:00.001Z&to=2026-07-02T03:00:00Z", vec![("to", "before_from")]),
        (
            "status=x&payment_method=x&from=x",
            vec![("status", "unknown"), ("payment_method", "unknown"), ("from", "invalid_time")],
        ),
    ];
    for (query, expected) in wrong {
        let refused = merchant.get(&format!("/api/charges?{query}")).await.refused(400, "validation_failed");
        let found: Vec<_> =
            refused["errors"].as_array().unwrap().iter().map(|error| (&error["field"], &error["code"])).collect();
        let expected: Vec<_> = expected.into_iter().map(|(field, code)| (json!(field), json!(code))).collect();
        assert_eq!(found, expected.iter().map(|(field, code)| (field, code)).collect::<Vec<_>>(), "{query}");
    }
    for query in [
        "from=2026-07-01&to=2026-07-01",
        "from=2026-07-02T02:59:59.999Z&to=2026-07-01",
        "from=2026-07-01&to=2026-07-01T03:00:00Z",
        "to=2026-07-01T12:00:00%2B01:00",
        "to=0001-01-01",
        "from=9999-12-31",
    ] {
        assert!(listed(&merchant, query).await.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn pages_lose_nothing_while_charges_come_in() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut old = Vec::new();
    for _ in 0..25 {
        old.push(new_pix(&merchant).await);
    }
    old.reverse();
    let until = world.advance(1).await.to_rfc3339_opts(SecondsFormat::Millis, true);
    let (mut all, mut bounded) = (Vec::new(), Vec::new());
    for page in 1..=7 {
        let list = merchant.get(&format!("/api/charges?page={page}&per_page=4&to={until}")).await.expect(200);
        assert_eq!([&list["total"], &list["pages"], &list["per_page"]], [&json!(25), &json!(7), &json!(4)]);
        bounded.extend(items(&list).iter().map(|item| text(&item["txid"])));
    }
    assert_eq!(bounded, old, "each once, in order");
    bounded.clear();
    for page in 1..=9_u64 {
        let list = merchant.get(&format!("/api/charges?page={page}&per_page=4")).await.expect(200);
        assert_eq!(list["total"].as_u64(), Some(24 + page));
        all.extend(items(&list).iter().map(|item| text(&item["txid"])));
        let list = merchant.get(&format!("/api/charges?page={page}&per_page=4&to={until}")).await.expect(200);
        assert_eq!(list["total"], 25);
        bounded.extend(items(&list).iter().map(|item| text(&item["txid"])));
        new_pix(&merchant).await;
    }
    assert_eq!(bounded, old, "what comes in later is not in the bounded list");
    // Each new charge pushes the others down by one: the last of a page is the first of the next.
    assert_eq!(all.len(), 33);
    all.dedup();
    assert_eq!(all, old, "nothing is lost between pages");
}

#[tokio::test]
async fn a_page_of_large_charges_is_whole() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let splits: Vec<(&str, i64)> = (1..=2_000).map(|amount| (ana.as_str(), amount)).collect();
    let mut txids = Vec::new();
    for _ in 0..3 {
        let paid = merchant.paid_pix(&with_splits(pix("90000.00"), &splits)).await;
        txids.push(text(&paid["txid"]));
    }
    check_lists(&merchant, &txids).await;
    let path = format!("/api/dashboard/sub-recipients/{ana}/splits?page=30&per_page=100");
    let page = merchant.get(&path).await.expect(200);
    assert_eq!((page["total"].as_u64(), items(&page).len()), (Some(6_000), 100));
    assert!(
        items(&page).iter().all(|item| item["payment_id"] == txids[1]),
        "splits 2901 to 3000 are the second charge's"
    );
    world.check_books().await;
}

#[tokio::test]
async fn a_pending_pix_is_cancelled() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let ana = merchant.recipient("Ana", 1).await;
    let created = merchant.post("/api/pix", &with_splits(pix("80.00"), &[(&ana, 1_000)])).await.expect(201);
    let txid = text(&created["txid"]);
    cancel(&other, &txid).await.refused(404, "charge_not_found");
    let before = charge(&merchant, &txid).await;
    assert_eq!(merchant.statement(&ana).await["total"], 1);
    let cancelled = cancel(&merchant, &txid).await.expect(200);
    assert_eq!(cancelled, with(&before, "/status", json!("cancelled")));
    assert_eq!(charge(&merchant, &txid).await, cancelled);
    assert_eq!(merchant.statement(&ana).await["total"], 0);
    merchant.pay(&txid).await.refused(409, "charge_not_pending");
    assert_eq!(merchant.balance().await, [0; 4]);
    // Only the platform's bank saw the money, and gave it back.
    assert!(world.accounts().await.values().all(|balance| *balance == 0));
}

#[tokio::test]
async fn only_a_pending_pix_is_cancelled() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut finals = Vec::new();
    for (number, status) in [(APPROVED, 201), (REFUSED, 402), (SILENT, 201)] {
        finals.push(text(&merchant.post("/api/card", &card(10_000, number)).await.expect(status)["txid"]));
    }
    let (paid, cancelled) = (new_pix(&merchant).await, new_pix(&merchant).await);
    merchant.pay(&paid).await.expect(200);
    cancel(&merchant, &cancelled).await.expect(200);
    finals.extend([paid, cancelled]);
    let before = world.trace(&[&merchant]).await;
    for (txid, status) in finals.iter().zip(["CONCLUIDA", "RECUSADA", "pending", "CONCLUIDA", "cancelled"]) {
        let refused = cancel(&merchant, txid).await.refused(409, "charge_not_pending");
        assert_eq!([&refused["txid"], &refused["charge_status"]], [&json!(txid), &json!(status)]);
        assert_eq!(charge(&merchant, txid).await["status"], status);
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_payment_and_a_cancellation_one_wins() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut payments = 0;
    for round in 0..50 {
        let txid = new_pix(&merchant).await;
        let (paid, cancelled) = if round % 2 == 0 {
            tokio::join!(merchant.pay(&txid), cancel(&merchant, &txid))
        } else {
            let (cancelled, paid) = tokio::join!(cancel(&merchant, &txid), merchant.pay(&txid));
            (paid, cancelled)
        };
        let (winner, loser, status) =
            if paid.status == 200 { (paid, cancelled, "CONCLUIDA") } else { (cancelled, paid, "cancelled") };
        payments += i64::from(status == "CONCLUIDA");
        loser.refused(409, "charge_not_pending");
        assert_eq!(winner.expect(200)["status"], status);
        assert_eq!(charge(&merchant, &txid).await["status"], status);
    }
    assert_eq!(merchant.balance().await, [990 * payments, 0, 0, 0]);
    assert_eq!(listed(&merchant, "status=CONCLUIDA").await.len() as i64, payments);
    assert_eq!(listed(&merchant, "status=cancelled").await.len() as i64, 50 - payments);
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_cancellations_wins_and_a_key_makes_them_one() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for round in 0..60 {
        let txid = new_pix(&merchant).await;
        let answers = futures_of(6, |_| cancel(&merchant, &txid)).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
        let txid = new_pix(&merchant).await;
        let (path, key, body) = (format!("/api/charges/{txid}/cancel"), format!("key {round}"), json!({}));
        let answers = futures_of(6, |_| merchant.post_keyed(&path, &key, &body)).await;
        let fresh = answers.iter().filter(|answer| answer.header("idempotent-replayed").is_none()).count();
        assert_eq!(fresh, 1);
        for answer in answers {
            assert_eq!(answer.expect(200)["status"], "cancelled");
        }
    }
}

/// Institution with the answers of the test, one answer a call.
#[derive(Clone, Default)]
struct Institution(Arc<Mutex<VecDeque<Result<PixFate, RailError>>>>);

impl Institution {
    fn will_say(&self, answer: Result<PixFate, RailError>) {
        self.0.lock().unwrap().push_back(answer);
    }
}

impl PixRail for Institution {
    fn location(&self, charge: ObjectId) -> Option<String> {
        Some(format!("institution.example/{}", charge.txid()))
    }

    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(ready(self.0.lock().unwrap().pop_front().expect("the institution is asked as often as the test says")))
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Ok(RailStamp::new("r-1".to_owned(), ledger::time::Timestamp(1_000)))))
    }

    fn repay(&self, _order: Repay) -> Call<'_, RepayAnswer> {
        let stamp = RailStamp::new("r-1".to_owned(), ledger::time::Timestamp(1_000));
        Box::pin(ready(Ok(RepayAnswer::Repaid(stamp))))
    }
}

#[tokio::test]
async fn the_institution_has_the_last_word() {
    let institution = Institution::default();
    let world = World::with_institution(institution.clone()).await;
    let merchant = world.merchant().await;
    let body = json!({});

    // It does not answer: nothing is known, nothing changes, and the key is free.
    let txid = new_pix(&merchant).await;
    let path = format!("/api/charges/{txid}/cancel");
    institution.will_say(Err(RailError::NoAnswer));
    let unknown = merchant.post_keyed(&path, "one", &body).await;
    assert!(unknown.header("retry-after").is_some());
    unknown.refused(503, "outcome_unknown");
    assert_eq!(charge(&merchant, &txid).await["status"], "pending");
    institution.will_say(Ok(PixFate::Cancelled));
    let cancelled = merchant.post_keyed(&path, "one", &body).await;
    assert_eq!(cancelled.header("idempotent-replayed"), None);
    assert_eq!(cancelled.expect(200)["status"], "cancelled");

    // A payment was faster: it is booked, and the caller hears of it.
    let txid = new_pix(&merchant).await;
    let path = format!("/api/charges/{txid}/cancel");
    let end_to_end_id = "E0000000020260701120012345678901";
    let paid_at = world.engine().now().plus_ms(-2 * DAY * 1000);
    let amount = ledger::money::Centavos(1_000);
    let (end_to_end_id_there, of) = (end_to_end_id.to_owned(), Some(txid.clone()));
    let payment = PixReceipt { end_to_end_id: end_to_end_id_there, txid: of, amount, paid_at };
    institution.will_say(Ok(PixFate::Paid(payment)));
    for _ in 0..2 {
        let refused = merchant.post_keyed(&path, "two", &body).await.refused(409, "charge_not_pending");
        assert_eq!([&refused["txid"], &refused["charge_status"]], [&json!(txid), &json!("CONCLUIDA")]);
    }
    let paid = charge(&merchant, &txid).await;
    assert_eq!([&paid["status"], &paid["end_to_end_id"]], ["CONCLUIDA", end_to_end_id]);
    // It takes effect when the institution says that it was paid.
    let export = world.ops_get("/ops/export?ledger=all").await.text;
    let rows: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let row = rows.iter().find(|row| row["event"] == "pix_paid").unwrap();
    assert_eq!(row["effective_date"], wire::timestamp::day_of(paid_at.0).to_string(), "{row}");
    assert_ne!(row["effective_date"], row["date"]);
    let record = world.ops_get(&read_at("/ops/records", place_in(row))).await.expect(200);
    assert_eq!(record["institution"]["id"], end_to_end_id);
    assert_eq!(merchant.balance().await, [990, 0, 0, 0]);
    world.check_books().await;
}

/// The index is looked up by a digest of the id that anybody can compute: an id that somebody chose
/// to have the digest of another merchant's charge, and a group of its own, finds nothing.
#[tokio::test]
async fn an_id_made_to_look_like_a_foreign_charge_finds_nothing() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let number = |txid: &str| u128::from_str_radix(txid, 16).unwrap();
    let (own, foreign) = (number(&new_pix(&merchant).await), number(&new_pix(&other).await));
    let digest = (foreign >> 64) as u64 ^ scatter(foreign as u64);
    let low = |n: u64| (2 << 62) | (n << 32) | (own as u64 & 0xFFFF_FFFF);
    let crafted = (0..1 << 20).map(low).map(|low| (u128::from(digest ^ scatter(low)) << 64) | u128::from(low));
    let is_id = |id: &u128| (id >> 76) & 15 == 8 && (id >> 80) <= (foreign >> 80);
    for id in crafted.filter(is_id).take(3) {
        let path = format!("/api/charges/{id:032x}");
        merchant.get(&path).await.refused(404, "charge_not_found");
        merchant.post(&format!("{path}/cancel"), &json!({})).await.refused(404, "charge_not_found");
    }
    let path = format!("/api/charges/{foreign:032x}");
    assert_eq!(other.get(&path).await.expect(200)["status"], "pending");
}

/// As the index scatters a word.
fn scatter(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
