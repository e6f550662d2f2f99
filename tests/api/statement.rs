//! `GET /api/dashboard/sub-recipients/{id}/splits`: the statement of a recipient.

use serde_json::{Value, json};

use crate::world::*;

/// Shows: 2.8.id, 2.8.payment_id, 2.8.amount_cents, 2.8.status, 2.8.paid_at, 2.8.created_at,
/// 2.8.payment.nome, 2.8.payment.cpf, 2.8.payment.gross_amount, 2.8.payment.payment_method,
/// 2.8.payment.balance_available_at, 2.8.wrapper, 4.GET./splits.
#[tokio::test]
async fn every_field_of_a_split_is_there() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let captured = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 2_000)])).await.expect(201);
    let captured = merchant.get(&format!("/api/charges/{}", text(&captured["txid"]))).await.expect(200);
    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let waiting = merchant.post("/api/pix", &with_splits(pix("30.00"), &[(&ana, 300)])).await.expect(201);

    let statement = merchant.statement(&ana).await;
    has_exactly(&statement, &["items", "total", "page", "pages", "per_page", "balance", "fiscal"]);
    let fiscal = json!({"platform_document": cnpj(1), "recipient_id": ana.replace('-', "")});
    assert_eq!(statement["fiscal"], fiscal);
    let numbers = ["total", "page", "pages", "per_page"].map(|name| statement[name].as_u64().unwrap());
    assert_eq!(numbers, [3, 1, 1, 20]);
    assert_eq!(
        statement["balance"],
        json!({"available": 1_000, "pending": 2_000, "paid": 0, "reserved": 0, "debt": 0})
    );
    let expected = |charge: &Value, amount: i64, status: &str, gross: i64, method: &str, nome: &str| {
        json!({"payment_id": charge["txid"], "amount_cents": amount, "status": status, "paid_at": null, "withdrawal_id": null,
            "payment": {"nome": nome, "cpf": "123.456.789-09", "gross_amount": gross, "payment_method": method}})
    };
    let expected = [
        expected(&waiting, 300, "pending", 3_000, "pix", "Maria das Dores"),
        expected(&paid, 1_000, "available", 8_000, "pix", "Maria das Dores"),
        expected(&captured, 2_000, "pending", 10_000, "credit_card", "João Ávila"),
    ];
    for (item, expected) in items(&statement).iter().zip(expected) {
        has_exactly(
            item,
            &["id", "payment_id", "amount_cents", "status", "paid_at", "withdrawal_id", "created_at", "payment"],
        );
        time(&item["created_at"]);
        assert!(!text(&item["id"]).is_empty());
        let rest = without(&without(&without(item, "/id"), "/created_at"), "/payment/balance_available_at");
        let rest = if rest["payment_id"] == paid["txid"] {
            assert_eq!(rest["payment"]["end_to_end_id"], paid["end_to_end_id"]);
            without(&rest, "/payment/end_to_end_id")
        } else if rest["payment_id"] == captured["txid"] {
            assert_eq!(rest["payment"]["authorization"], captured["authorization"]);
            without(&rest, "/payment/authorization")
        } else {
            rest
        };
        assert_eq!(rest, expected);
    }
    let available_at = |index: usize| &items(&statement)[index]["payment"]["balance_available_at"];
    assert_eq!((available_at(0), available_at(1)), (&Value::Null, &paid["paid_at"]));
    // A split comes to be with its PIX charge, or when the card is captured.
    assert!(time(&items(&statement)[1]["created_at"]) >= time(&paid["created_at"]));
    assert!(time(&items(&statement)[1]["created_at"]) <= time(&paid["paid_at"]));
    assert!(time(&items(&statement)[2]["created_at"]) >= time(&captured["paid_at"]), "booked after it was captured");
    assert_eq!(time(available_at(2)).timestamp_millis() % 60_000, 0);
}

#[tokio::test]
async fn a_recipient_named_twice_has_two_splits() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 2_000), (&ana, 300), (&ana, 2_000)]);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!(read["splits"], charge["splits"], "in the order of the request");
    let statement = merchant.statement(&ana).await;
    let mut amounts: Vec<i64> = items(&statement).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, [300, 2_000, 2_000]);
    let mut ids: Vec<String> = items(&statement).iter().map(|item| text(&item["id"])).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 4_300]);
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&ana, 1), (&ana, 2)])).await;
    assert_eq!(merchant.recipient_balance(&ana).await, [3, 4_300]);
    world.check_books().await;
}

/// Shows: 2.8.wrapper.
#[tokio::test]
async fn a_long_statement_is_read_in_pages() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    for batch in 0..5 {
        let splits: Vec<(&str, i64)> = (1..=5).map(|place| (ana.as_str(), batch * 5 + place)).collect();
        merchant.paid_pix(&with_splits(pix("80.00"), &splits)).await;
    }
    let path = format!("/api/dashboard/sub-recipients/{ana}/splits");
    let whole = merchant.get(&format!("{path}?per_page=100")).await.expect(200);
    let mut amounts: Vec<i64> = items(&whole).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, (1..=25).collect::<Vec<_>>());
    let times: Vec<_> = items(&whole).iter().map(|item| time(&item["created_at"])).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first");
    let mut gathered = Vec::new();
    for (page, count) in [(1, 20), (2, 5), (3, 0)] {
        let part = merchant.get(&format!("{path}?page={page}")).await.expect(200);
        let numbers = ["total", "page", "pages", "per_page"].map(|name| part[name].as_u64().unwrap());
        assert_eq!(numbers, [25, page, 2, 20]);
        assert_eq!(items(&part).len(), count, "page {page}");
        assert_eq!(part["balance"]["available"], 325, "the balance is of all pages");
        gathered.extend(items(&part).clone());
    }
    assert_eq!(&gathered, items(&whole));
}

#[tokio::test]
async fn a_statement_stays_within_the_account() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let ana = merchant.recipient("Ana", 1).await;
    other.get(&format!("/api/dashboard/sub-recipients/{ana}/splits")).await.refused(404, "not_found");
    merchant.get(&format!("/api/dashboard/sub-recipients/{}/splits", merchant.id)).await.refused(404, "not_found");
    let statement = merchant.statement(&ana).await;
    assert_eq!((&statement["total"], &statement["pages"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn debit_and_companies_read_well() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let debit = with(&with_splits(card(10_000, APPROVED), &[(&ana, 1)]), "/payment_type", json!("debit"));
    merchant.post("/api/card", &debit).await.expect(201);
    let company = with(&without(&pix("80.00"), "/cpf"), "/cnpj", json!("12345678000195"));
    merchant.paid_pix(&with_splits(company, &[(&ana, 2)])).await;
    let statement = merchant.statement(&ana).await;
    let payments: Vec<_> = items(&statement).iter().map(|item| &item["payment"]).collect();
    assert_eq!([&payments[0]["cpf"], &payments[0]["payment_method"]], ["**.345.678/0001-**", "pix"]);
    assert_eq!(payments[1]["payment_method"], "credit_card", "the interface knows two methods here");
}

/// Shows: 2.8.created_at.
#[tokio::test]
async fn a_card_that_was_captured_late_is_listed_by_the_time_that_it_shows() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.post("/api/card", &with_splits(card(10_000, SILENT), &[(&ana, 1)])).await.expect(201);
    world.advance(5).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 2)])).await;
    world.advance(120).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 3)])).await;
    let statement = merchant.statement(&ana).await;
    let amounts: Vec<_> = items(&statement).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [3, 1, 2], "the card was captured a minute after it was charged");
    let times: Vec<_> = items(&statement).iter().map(|item| time(&item["created_at"])).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{statement}");
}

#[tokio::test]
async fn a_statement_is_read_by_status_and_by_date() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    world.advance(10).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 300)])).await;
    // A debt consumes available money: the filter does not change the rest of each split.
    let refunded = text(&merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 200)])).await["txid"]);
    let take_back =
        json!({"payment_id": refunded, "amount": 200, "splits": [{"sub_recipient_id": ana, "amount": 200}]});
    let refund = text(&merchant.post("/api/refunds", &take_back).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    world.advance(10).await;
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 50)])).await.expect(201);
    merchant.post("/api/pix", &with_splits(pix("30.00"), &[(&ana, 7)])).await.expect(201);
    let path = format!("/api/dashboard/sub-recipients/{ana}/splits");
    let whole = merchant.get(&path).await.expect(200);
    let amounts =
        |list: &Value| items(list).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!(amounts(&whole), [7, 50, 200, 100, 1_000]);
    let part = async |query: &str| {
        let list = merchant.get(&format!("{path}?{query}")).await.expect(200);
        assert_eq!(list["balance"], whole["balance"], "the balance is of all splits");
        (amounts(&list), list["total"].as_u64().unwrap())
    };
    assert_eq!(part("status=paid").await, (vec![1_000], 1));
    assert_eq!(part("status=pending").await, (vec![7, 50], 2));
    assert_eq!(part("status=available").await, (vec![200, 100], 2));
    assert_eq!(part("status=available&per_page=1&page=2").await, (vec![100], 2));
    let at = text(&items(&whole)[3]["created_at"]);
    assert_eq!(part(&format!("from={at}")).await, (vec![7, 50, 200, 100], 4));
    assert_eq!(part(&format!("to={at}")).await, (vec![1_000], 1));
    let card_at = text(&items(&whole)[1]["created_at"]);
    assert_eq!(part(&format!("to={card_at}")).await, (vec![200, 100, 1_000], 3));
    assert_eq!(part(&format!("to={card_at}&status=available&per_page=1&page=2")).await, (vec![100], 2));
    assert_eq!(part(&format!("to={card_at}&per_page=1&page=2")).await, (vec![100], 3));
    assert_eq!(part("from=2099-01-01").await, (vec![], 0));
    for (query, field) in [("status=open", "status"), ("from=x", "from"), ("from=2026-02-02&to=2026-02-01", "to")] {
        let refused = merchant.get(&format!("{path}?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}
