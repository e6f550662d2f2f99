//! Statement lines of a merchant: `GET /api/balance/operations`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::world::*;

const FIELDS: [&str; 8] =
    ["id", "type", "amount", "account", "source_id", "available_at", "created_at", "balance_after"];

/// All operations, newest first, read `per_page` at a time.
async fn operations(merchant: &Merchant<'_>, per_page: u64) -> Vec<Value> {
    let mut gathered = Vec::new();
    for page in 1.. {
        let path = format!("/api/balance/operations?page={page}&per_page={per_page}");
        let list = merchant.get(&path).await.expect(200);
        has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
        let (total, pages) = (list["total"].as_u64().unwrap(), list["pages"].as_u64().unwrap());
        assert_eq!(pages, total.div_ceil(per_page));
        gathered.extend(items(&list).clone());
        if page >= pages {
            assert_eq!(gathered.len() as u64, total);
            break;
        }
    }
    gathered
}

/// The statement adds up: each balance follows from the one before on its account, the newest are
/// what the account's balance says, and the lines of the deficit add up to it. Gives it, newest
/// first.
pub(crate) async fn checked(merchant: &Merchant<'_>) -> Vec<Value> {
    let newest_first = operations(merchant, 100).await;
    assert_eq!(operations(merchant, 7).await, newest_first, "pages are parts of one list");
    let mut balances: BTreeMap<String, i64> = BTreeMap::new();
    let mut deficit = 0;
    for row in newest_first.iter().rev() {
        has_exactly(row, &FIELDS);
        is_uuid(&row["id"]);
        time(&row["created_at"]);
        let (amount, after) = (row["amount"].as_i64().unwrap(), row["balance_after"].as_i64().unwrap());
        assert!(amount != 0 && after >= 0, "{row}");
        let balance = balances.entry(text(&row["account"])).or_default();
        assert_eq!(after - amount, *balance, "{row}");
        *balance = after;
        deficit += if row["type"] == "deficit" { amount } else { 0 };
    }
    let of = |account: &str| balances.get(account).copied().unwrap_or_default();
    assert_eq!([of("available"), of("pending"), of("reserved"), deficit], merchant.balance().await);
    let times: Vec<_> = newest_first.iter().map(|row| time(&row["created_at"])).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older));
    let ids: BTreeSet<String> = newest_first.iter().map(|row| text(&row["id"])).collect();
    assert_eq!(ids.len(), newest_first.len());
    newest_first
}

/// `charge pending 10000 10000`: type, account, amount, balance after it; oldest first.
pub(crate) fn lines(newest_first: &[Value]) -> Vec<String> {
    let line = |row: &Value| {
        format!("{} {} {} {}", text(&row["type"]), text(&row["account"]), row["amount"], row["balance_after"])
    };
    newest_first.iter().rev().map(line).collect()
}

#[tokio::test]
async fn every_movement_of_the_merchants_money_is_a_line() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    assert!(checked(&merchant).await.is_empty());

    let splits = [(ana.as_str(), 2_000), (bia.as_str(), 1_500)];
    let captured = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &splits)).await.expect(201);
    let first = checked(&merchant).await;
    assert_eq!(lines(&first), ["charge pending 10000 10000", "split pending -3500 6500", "fee pending -562 5938"]);
    let due = merchant.statement(&ana).await["items"][0]["payment"]["balance_available_at"].clone();
    let charge = merchant.get(&format!("/api/charges/{}", text(&captured["txid"]))).await.expect(200);
    for row in &first {
        assert_eq!([&row["source_id"], &row["available_at"]], [&captured["txid"], &due]);
        assert_eq!(row["created_at"], charge["paid_at"]);
    }

    // A code that nobody paid, and a card that was refused, move nothing.
    merchant.post("/api/pix", &pix("10.00")).await.expect(201);
    merchant.post("/api/card", &card(10_000, REFUSED)).await.expect(402);
    assert_eq!(checked(&merchant).await, first);

    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let second = checked(&merchant).await;
    let expected = ["charge available 8000 8000", "split available -1000 7000", "fee available -69 6931"];
    assert_eq!(lines(&second)[3..], expected);
    for row in &second[..3] {
        assert_eq!([&row["source_id"], &row["available_at"]], [&paid["txid"], &paid["paid_at"]]);
        assert_eq!(row["created_at"], paid["paid_at"]);
    }
    assert_eq!(second[3..], first, "what was listed stays as it was");

    world.advance_to(time(&due)).await;
    let third = checked(&merchant).await;
    assert_eq!(lines(&third)[6..], ["settlement pending -5938 0", "settlement available 5938 12869"]);
    for row in &third[..2] {
        assert_eq!([&row["source_id"], &row["available_at"]], [&Value::Null, &due]);
    }
    assert!(checked(&other).await.is_empty());
    world.check_books().await;

    let names = merchant.names;
    let world = world.restarted().await;
    assert_eq!(checked(&Merchant { world: &world, names }).await, third, "also after a restart");
}

#[tokio::test]
async fn a_shortfall_and_its_recovery_are_lines() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&pix("3.00")).await;
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 9_999)])).await.expect(201);
    assert_eq!(merchant.balance().await, [0, 0, 0, 199]);
    let expected = [
        "charge available 300 300",
        "fee available -3 297",
        "charge pending 10000 10000",
        "split pending -9999 1",
        "fee pending -1 0",
        "deficit available 199 496",
        "fee available -496 0",
    ];
    assert_eq!(lines(&checked(&merchant).await), expected);
    merchant.paid_pix(&pix("1.00")).await;
    merchant.paid_pix(&pix("5.00")).await;
    let recovered = [
        "charge available 100 100",
        "fee available -1 99",
        "deficit available -99 0",
        "charge available 500 500",
        "fee available -5 495",
        "deficit available -100 395",
    ];
    assert_eq!(lines(&checked(&merchant).await)[expected.len()..], recovered);
    world.check_books().await;
}

#[tokio::test]
async fn a_long_statement_adds_up_while_charges_are_paid() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    for round in 0..12 {
        merchant
            .post("/api/card", &with_splits(card(1_000 + round, APPROVED), &[(&ana, 100 + round)]))
            .await
            .expect(201);
        merchant.paid_pix(&with_splits(pix("9.99"), &[(&ana, 998)])).await;
        world.advance(3 * DAY).await;
    }
    let rows = checked(&merchant).await;
    assert!(rows.len() > 60, "{} lines", rows.len());
    let kinds: BTreeSet<String> = rows.iter().map(|row| text(&row["type"])).collect();
    assert!(kinds.is_superset(&BTreeSet::from(["charge", "fee", "split", "settlement"].map(str::to_owned))));
    // Each payment pushes the older lines down by as many as it has: nothing is lost between pages.
    let mut seen = BTreeSet::new();
    for page in 1..=rows.len() / 4 {
        let list = merchant.get(&format!("/api/balance/operations?page={page}&per_page=10")).await.expect(200);
        seen.extend(items(&list).iter().map(|row| text(&row["id"])));
        merchant.paid_pix(&pix("1.00")).await;
    }
    assert!(rows.iter().all(|row| seen.contains(&text(&row["id"]))));
    assert_eq!(checked(&merchant).await.last(), rows.last());
    world.check_books().await;
    assert_eq!(world.merchant().await.get("/api/balance/operations").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn operations_are_listed_by_type_and_by_date() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(10).await;
    merchant.paid_pix(&pix("10.00")).await;
    let whole = checked(&merchant).await;
    assert_eq!(whole.len(), 4);
    let part = async |query: &str| {
        let list = merchant.get(&format!("/api/balance/operations?{query}")).await.expect(200);
        (items(&list).clone(), list["total"].as_u64().unwrap())
    };
    let at = text(&whole[0]["created_at"]);
    assert_eq!(part(&format!("from={at}")).await, (whole[..2].to_vec(), 2));
    assert_eq!(part(&format!("to={at}")).await, (whole[2..].to_vec(), 2));
    assert_eq!(part(&format!("to={at}&per_page=1&page=2")).await, (whole[3..].to_vec(), 2));
    let fees: Vec<_> = whole.iter().filter(|line| line["type"] == "fee").cloned().collect();
    assert_eq!(part("type=fee").await, (fees.clone(), 2));
    assert_eq!(part("type=fee&per_page=1&page=2").await, (fees[1..].to_vec(), 2));
    assert_eq!(part(&format!("type=fee&from={at}")).await, (fees[..1].to_vec(), 1));
    assert_eq!(part("type=dispute").await, (vec![], 0));
    let of_first = text(&whole[3]["source_id"]);
    assert_eq!(part(&format!("charge={of_first}")).await, (whole[2..].to_vec(), 2));
    assert_eq!(part(&format!("charge={of_first}&type=fee&from=2020-01-01")).await, (fees[1..].to_vec(), 1));
    assert_eq!(part(&format!("charge={of_first}&per_page=1&page=2")).await, (whole[3..].to_vec(), 2));
    assert_eq!(part(&format!("charge={of_first}&from={at}")).await, (vec![], 0));
    let foreign = text(&world.merchant().await.paid_pix(&pix("1.00")).await["txid"]);
    for unknown in [&foreign, "x"] {
        let path = format!("/api/balance/operations?charge={unknown}");
        merchant.get(&path).await.refused(404, "charge_not_found");
    }
    for (query, field) in [("type=gift", "type"), ("to=x", "to")] {
        let refused = merchant.get(&format!("/api/balance/operations?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}
