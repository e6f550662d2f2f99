//! Closing of a month: what reconciliations found in its days, and what none of them covers.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};

use crate::closed_periods::{local, next_month};
use crate::reconciliations::files;
use crate::world::*;

const CSV: &str = "text/csv";
const PIX: &str = "application/json";
const OFX: &str = "application/x-ofx";

/// The counts of a kind that are open in a month.
async fn open(world: &World, month: DateTime<Utc>, kind: &str) -> BTreeMap<String, u64> {
    let period = world.ops_get(&format!("/ops/periods/{}", local(month).format("%Y-%m"))).await.expect(200);
    let items = period["open"].as_array().unwrap().iter().filter(|item| item["kind"] == kind);
    items.map(|item| (text(&item["name"]), item["count"].as_u64().unwrap())).collect()
}

fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// A day early in the month that begins next.
async fn early_in_a_month(world: &World) -> DateTime<Utc> {
    let now = world.advance(0).await;
    early_after(world, now).await
}

/// A day early in the month after one.
async fn early_after(world: &World, month: DateTime<Utc>) -> DateTime<Utc> {
    world.advance_to(next_month(month) + Duration::days(1)).await;
    world.advance(0).await
}

async fn debit(merchant: &Merchant<'_>) {
    let debit = with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
    merchant.post("/api/card", &debit).await.expect(201);
}

/// A file of the acquirer counts in the month of its payments, whenever it is compared, until an
/// operator says that it is a wrong one.
#[tokio::test]
async fn a_file_counts_in_the_month_of_its_payments_until_it_is_dismissed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    debit(&merchant).await;
    world.advance(5 * DAY).await;
    let [file] = files(&world, "acquirer", "csv").try_into().unwrap();
    let wrong = file.replace(",299,9701", ",298,9702");
    assert_ne!(file, wrong);
    let later = early_after(&world, month).await;
    let found = world.reconcile(CSV, "", wrong.clone()).await.expect(200);
    assert_eq!((&found["differs"], &found["from"]), (&json!(1), &found["findings"][0]["ours"]["paid_on"]));
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[("acquirer", 1)]));
    assert_eq!(open(&world, later, "unreconciled").await, counts(&[]), "the month in which it was compared");

    let path = format!("/ops/reconciliations/{}/dismiss", text(&found["sha256"]));
    let reason = |reason: &str| json!({"reason": reason});
    world.ops_post(&path, &json!({})).await.refused(400, "validation_failed");
    world.ops_post(&path, &reason(&"x".repeat(501))).await.refused(400, "validation_failed");
    let dismissed = world.ops_post(&path, &reason("Arquivo de outro mês")).await.expect(200);
    let Value::Object(mut rest) = dismissed.clone() else { panic!("{dismissed}") };
    let by = rest.remove("dismissed").unwrap();
    assert_eq!((&by["by"], &by["reason"]), (&json!("operator"), &json!("Arquivo de outro mês")));
    assert!(time(&by["at"]) >= later);
    assert_eq!(Value::Object(rest), found, "all else is as it was");
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));

    world.second_ops_post(&path, &[], &reason("Outra razão")).await.refused(409, "already_decided");
    let path_of_it = path.trim_end_matches("/dismiss");
    assert_eq!(world.ops_get(path_of_it).await.expect(200), dismissed, "the first one stands");
    let listed = world.ops_get("/ops/reconciliations").await.expect(200);
    assert_eq!((&items(&listed)[0]["dismissed"], &listed["total"]), (&by, &json!(1)));
    let unknown = format!("/ops/reconciliations/{}/dismiss", "0".repeat(64));
    world.ops_post(&unknown, &reason("Nenhum")).await.refused(404, "not_found");

    world.reconcile(CSV, "", wrong.clone()).await.refused(409, "already_reconciled");
    let again = world.reconcile(CSV, "?again=true", wrong).await.expect(200);
    assert_eq!(again.get("dismissed"), None);
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[("acquirer", 1)]), "it counts again");
    world.ops_post(&path, &reason("Agora sim")).await.expect(200);
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));
}

/// The month lists batches, days of the bank accounts and days of PIX payments until a file of each
/// was compared; a dismissed one covers nothing.
#[tokio::test]
async fn a_month_lists_what_no_file_covers() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana Prado", 1).await;
    let month = early_in_a_month(&world).await;
    for _ in 0..2 {
        debit(&merchant).await;
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
        merchant.paid_pix(&pix("10.00")).await;
        world.advance(7 * DAY).await;
    }
    // A day on which the PIX account only pays.
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.ops_post(&format!("/ops/withdrawals/{withdrawal}/approve"), &json!({})).await.expect(200);
    let [settlement, bank_pix] = ["Assets:Bank:Settlement", "Assets:Bank:Pix"];
    let later = early_after(&world, month).await;
    let paid = files(&world, "bank-pix", "ofx").len() as u64;
    let settled = files(&world, "bank-settlement", "ofx").len() as u64;
    assert!(paid + settled == 5, "two batches, two days of payments and the withdrawal");
    let all = counts(&[("acquirer", 2), ("pix", 2), (settlement, settled), (bank_pix, paid)]);
    assert_eq!(open(&world, month, "uncompared").await, all);
    assert_eq!(open(&world, later, "uncompared").await, counts(&[]));
    assert_eq!(open(&world, month - Duration::days(40), "uncompared").await, counts(&[]), "before the first Record");

    // A fee that is dated to a day on which nothing else moved.
    let day = (local(month) + Duration::days(2)).format("%Y-%m-%d").to_string();
    let entry = json!({"debit": "Expenses:Bank:Fees", "credit": settlement, "amount": 250, "reason": "Tarifa",
        "reference": "EXTRATO-1", "effective_date": day});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    let open_of = async |name: &str| open(&world, month, "uncompared").await.get(name).copied().unwrap_or_default();
    assert_eq!(open_of(settlement).await, settled + 1);

    let batches = files(&world, "acquirer", "csv");
    world.reconcile(CSV, "", batches[0].clone()).await.expect(200);
    assert_eq!(open_of("acquirer").await, 1);
    world.reconcile(CSV, "", batches[1].clone()).await.expect(200);
    for list in files(&world, "pix", "json") {
        world.reconcile(PIX, "", list).await.expect(200);
    }
    assert_eq!([open_of("acquirer").await, open_of("pix").await], [0, 0]);
    assert_eq!([open_of(settlement).await, open_of(bank_pix).await], [settled + 1, paid], "the bank's are apart");
    for statement in files(&world, "bank-pix", "ofx") {
        world.reconcile(OFX, "?account=pix", statement).await.expect(200);
    }
    let mut last = Value::Null;
    for statement in files(&world, "bank-settlement", "ofx") {
        last = world.reconcile(OFX, "?account=settlement", statement).await.expect(200);
    }
    assert_eq!(open(&world, month, "uncompared").await, counts(&[(settlement, 1)]), "the fee's day");
    let path = format!("/ops/reconciliations/{}/dismiss", text(&last["sha256"]));
    world.ops_post(&path, &json!({"reason": "Outra conta"})).await.expect(200);
    assert_eq!(open(&world, month, "uncompared").await, counts(&[(settlement, 2)]));
    world.check_books().await;
}
