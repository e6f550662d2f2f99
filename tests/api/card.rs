//! `POST /api/card`, `GET /api/charges/{txid}` and the money of card charges.

use chrono::{DateTime, Datelike, Months, TimeDelta, Timelike, Utc};
use serde_json::{Value, json};

use crate::world::*;

/// Shows: 2.1.splits, 2.2.success, 2.2.txid, 2.2.status, 2.2.cardStatus, 2.2.breakdown,
/// 2.4.sub_recipient_id, 2.4.split-amount, 2.4.breakdown.amount, 2.4.breakdown.sellerAmount,
/// 2.4.breakdown.commission, 2.4.breakdown.feePercent, 2.13.rule-2, 2.13.rule-3, 3.1.CONCLUIDA,
/// 3.3.paid-charge, 4.POST./api/card.
#[tokio::test]
async fn a_card_charge_with_splits_is_answered_as_the_interface_says() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 2_000), (&rui, 1_500)]);
    let answer = merchant.post("/api/card", &charge).await.expect(201);
    has_exactly(&answer, &["success", "txid", "status", "cardStatus", "breakdown"]);
    is_txid(&answer["txid"]);
    assert_eq!(
        [&answer["success"], &answer["status"], &answer["cardStatus"]],
        [&json!(true), &json!("CONCLUIDA"), &json!("captured")]
    );
    let breakdown = json!({"amount": 10_000, "sellerAmount": 5_938, "commission": 562, "feePercent": 8.65});
    assert_eq!(answer["breakdown"], breakdown);
    assert_eq!(merchant.balance().await, [0, 5_938, 0, 0]);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 2_000]);
    assert_eq!(merchant.recipient_balance(&rui).await, [0, 1_500]);
    let accounts = world.accounts().await;
    let of_platform = |account: &str| accounts[&(format!("P-{}", merchant.id), account.to_owned())];
    assert_eq!(of_platform("Assets:Acquirer:Receivable"), 9_701);
    assert_eq!(of_platform("Expenses:Acquirer:Mdr"), 299);
    world.check_books().await;
}

/// The digits are those of a Visa card; from the capture on every view has the acquirer's word.
#[tokio::test]
async fn the_acquirer_says_of_which_brand_a_card_is() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut expected = Vec::new();
    for (number, brand) in [("4000000000000093", "elo"), (APPROVED, "visa")] {
        let charge = merchant.post("/api/card", &card(10_000, number)).await.expect(201);
        let read = merchant.get(&format!("/api/charges/{}", text(&charge["txid"]))).await.expect(200);
        assert_eq!(read["card"]["brand"], brand, "{number}");
        expected.push((text(&charge["txid"]), brand));
    }
    let list = merchant.get("/api/charges").await.expect(200);
    let listed = items(&list).iter().rev().map(|charge| text(&charge["card"]["brand"]));
    assert_eq!(listed.collect::<Vec<_>>(), ["elo", "visa"]);
    let report = world.ops_get("/ops/reports/receivables").await.expect(200);
    for brand in ["elo", "visa"] {
        let of_brand = report["rows"].as_array().unwrap().iter().filter(|row| row["brand"] == brand);
        assert_eq!(of_brand.count(), 2, "the merchant's part and the acquirer's debt: {report}");
    }
    let exported = world.ops_get("/ops/export").await.text;
    for row in exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let of_charge = expected.iter().find(|(txid, _)| row["txid"] == **txid);
        if let Some((_, brand)) = of_charge.filter(|_| row["event"] == "card_captured") {
            assert_eq!(row["brand"], *brand, "{row}");
        }
    }
    assert!(exported.contains("\"brand\":\"elo\""), "{exported}");
}

/// Shows: 2.2.breakdown.
#[tokio::test]
async fn a_charge_without_splits_has_no_breakdown() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for splits in [Value::Null, json!([])] {
        let answer = merchant.post("/api/card", &with(&card(10_000, APPROVED), "/splits", splits)).await.expect(201);
        has_exactly(&answer, &["success", "txid", "status", "cardStatus"]);
    }
    assert_eq!(merchant.balance().await, [0, 2 * (10_000 - 299 - 198 - 100), 0, 0]);
    world.check_books().await;
}

/// Shows: 2.1.description, 2.1.installments.
#[tokio::test]
async fn a_card_charge_is_read_in_every_field() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(10_000, "5555555555554444"), &[(&ana, 2_000)]);
    let charge = with(&with(&charge, "/description", json!("Pedido 7")), "/installments", json!(3));
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    has_exactly(
        &read,
        &[
            "txid",
            "status",
            "payment_method",
            "amount",
            "installments",
            "description",
            "cardStatus",
            "card",
            "paid_at",
            "created_at",
            "refunded_amount",
            "payer",
            "splits",
            "breakdown",
            "fees",
            "net",
            "settles_at",
            "fiscal",
            "authorization",
            "nsu",
            "acquirer_reference",
        ],
    );
    assert!(time(&read["created_at"]) <= time(&read["paid_at"]));
    // The sandbox makes them up of the id.
    let digits = |name: &str, count| text(&read[name]).parse::<u64>().is_ok() && text(&read[name]).len() == count;
    assert!(digits("authorization", 6) && digits("nsu", 12), "{read}");
    let expected = json!({
        "txid": txid,
        "status": "CONCLUIDA",
        "payment_method": "credit_card",
        "amount": 10_000,
        "installments": 3,
        "description": "Pedido 7",
        "cardStatus": "captured",
        "card": {"bin": "555555", "last4": "4444", "brand": "mastercard"},
        "paid_at": read["paid_at"],
        "created_at": read["created_at"],
        "refunded_amount": 0,
        "payer": {"name": "João Ávila", "document": "***.456.789-**"},
        "splits": [{"sub_recipient_id": ana, "amount": 2_000}],
        "breakdown": {"amount": 10_000, "sellerAmount": 8_000 - 349 - 198 - 80, "commission": 627, "feePercent": 7.84},
        "fees": [
            {"kind": "mdr", "amount": 349}, {"kind": "antifraud", "amount": 198}, {"kind": "margin", "amount": 80},
        ],
        "net": 8_000 - 349 - 198 - 80,
        "settles_at": read["settles_at"],
        "acquirer_reference": read["acquirer_reference"],
        "fiscal": {"means": "03", "brand": "02", "authorization": read["authorization"], "acquirer_document": null},
        "authorization": read["authorization"],
        "nsu": read["nsu"],
    });
    let month = time(&read["settles_at"]) - time(&read["paid_at"]);
    assert!((30 * DAY - 60..=30 * DAY).contains(&month.num_seconds()), "{month}");
    assert_eq!(read, expected);
}

/// Shows: 2.1.variant.
#[tokio::test]
async fn both_names_of_the_card_and_both_types_of_its_expiry_are_taken() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let credit_card = card(5_000, APPROVED);
    let named_card = with(&without(&credit_card, "/credit_card"), "/card", credit_card["credit_card"].clone());
    for (body, object) in [(&credit_card, "credit_card"), (&named_card, "card")] {
        for (month, year) in [(json!(12), json!(2099)), (json!("12"), json!("2099")), (json!("03"), json!(2099))] {
            let body = with(body, &format!("/{object}/exp_month"), month);
            let body = with(&body, &format!("/{object}/exp_year"), year);
            assert_eq!(merchant.post("/api/card", &body).await.expect(201)["status"], "CONCLUIDA", "{body}");
        }
    }
    let both = with(&credit_card, "/card", credit_card["credit_card"].clone());
    let refused = merchant.post("/api/card", &both).await.refused(400, "invalid_card_data");
    assert_eq!(refused["errors"][0]["code"], "ambiguous");
    let one_is_null = with(&credit_card, "/card", Value::Null);
    merchant.post("/api/card", &one_is_null).await.expect(201);
}

/// Shows: 2.13.rule-2.
#[tokio::test]
async fn fees_follow_the_installments_and_debit_is_one() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let cases = [(1, 299), (2, 349), (6, 349), (7, 399), (12, 399)];
    for (installments, mdr) in cases {
        let charge = with_splits(card(10_000, APPROVED), &[(&ana, 1_000)]);
        let charge = with(&charge, "/installments", json!(installments));
        let answer = merchant.post("/api/card", &charge).await.expect(201);
        assert_eq!(answer["breakdown"]["commission"], mdr + 198 + 90, "{installments}");
    }
    let debit = with(&with_splits(card(10_000, APPROVED), &[(&ana, 1_000)]), "/payment_type", json!("debit"));
    let answer = merchant.post("/api/card", &debit).await.expect(201);
    assert_eq!(answer["breakdown"]["commission"], 299 + 198 + 90);
    let read = merchant.get(&format!("/api/charges/{}", text(&answer["txid"]))).await.expect(200);
    assert_eq!((&read["payment_method"], &read["installments"]), (&json!("debit_card"), &json!(1)));
    let in_parts = with(&debit, "/installments", json!(2));
    merchant.post("/api/card", &in_parts).await.refused(400, "validation_failed");
    world.check_books().await;
}

/// Shows: 2.2.status, 3.1.RECUSADA, 7.402.
#[tokio::test]
async fn refused_cards_are_charges_without_money() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for (number, card_status) in [(REFUSED, "not_authorized"), (WITHOUT_FUNDS, "insufficient_funds")] {
        let refused = merchant.post("/api/card", &card(10_000, number)).await.refused(402, "card_declined");
        assert_eq!([&refused["status"], &refused["cardStatus"]], ["RECUSADA", card_status]);
        assert_eq!(refused["message"], "Transação recusada");
        let txid = is_txid(&refused["txid"]);
        let found = merchant.post("/api/pix", &json!({"txid": txid})).await.expect(200);
        assert_eq!(found, json!({"success": true, "txid": txid, "status": "RECUSADA"}));
        let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
        assert_eq!([&read["status"], &read["cardStatus"]], ["RECUSADA", card_status]);
        assert_eq!(read["paid_at"], Value::Null);
    }
    assert_eq!(merchant.balance().await, [0; 4]);
    assert!(world.accounts().await.is_empty());
}

/// Shows: 3.1.pending, 2.2.status.
#[tokio::test]
async fn a_silent_acquirer_is_asked_again_after_60_seconds() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let begun = std::time::Instant::now();
    let charge = with_splits(card(10_000, SILENT), &[(&ana, 2_000)]);
    let answer = merchant.post("/api/card", &charge).await.expect(201);
    assert!(begun.elapsed().as_millis() < 2_000, "{:?}", begun.elapsed());
    assert_eq!([&answer["status"], &answer["cardStatus"]], ["pending", "processing"]);
    let txid = text(&answer["txid"]);
    assert_eq!(merchant.balance().await, [0; 4]);
    assert!(items(&merchant.statement(&ana).await).is_empty(), "an intent is no split yet");

    let created_at = time(&merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["created_at"]);
    world.advance(30).await;
    let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!((&read["status"], &read["paid_at"]), (&json!("pending"), &Value::Null));
    world.advance(30).await;
    let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!([&read["status"], &read["cardStatus"]], ["CONCLUIDA", "captured"]);
    assert_eq!(time(&read["paid_at"]), created_at, "the acquirer captured it at once");
    assert_eq!(merchant.balance().await, [0, 8_000 - 299 - 198 - 80, 0, 0]);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 2_000]);
    world.check_books().await;
}

/// Shows: 2.13.rule-4, 3.3.30-days, 8.card-split-settlement.
#[tokio::test]
async fn splits_and_seller_wait_30_days_and_then_the_acquirer_pays() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 3_500)]);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let paid_at = time(&merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["paid_at"]);
    let statement = merchant.statement(&ana).await;
    let available_at = time(&items(&statement)[0]["payment"]["balance_available_at"]);
    let minute = 60_000;
    let due = (paid_at + TimeDelta::days(30)).timestamp_millis() / minute * minute;
    assert_eq!(available_at.timestamp_millis(), due, "30 days, rounded down to the minute");

    world.advance_to(available_at - TimeDelta::seconds(20)).await;
    assert_eq!(merchant.balance().await, [0, 5_938, 0, 0]);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 3_500]);
    assert_eq!(items(&merchant.statement(&ana).await)[0]["status"], "pending");

    world.advance_to(available_at).await;
    assert_eq!(merchant.balance().await, [5_938, 0, 0, 0]);
    assert_eq!(merchant.recipient_balance(&ana).await, [3_500, 0]);
    assert_eq!(items(&merchant.statement(&ana).await)[0]["status"], "available");
    for ledger in [merchant.ledger(), format!("R-{ana}")] {
        let entries = world.ops_get(&format!("/ops/ledgers/{ledger}/entries")).await.expect(200);
        let booked_at = time(&items(&entries)[0]["effective_at"]);
        let late = (booked_at - available_at).num_milliseconds();
        assert!((0..2_000).contains(&late), "{ledger} was booked at {booked_at}, due {available_at}");
    }
    // The acquirer pays on a business day.
    world.advance(4 * DAY).await;
    let accounts = world.accounts().await;
    let of_platform = |account: &str| accounts[&(format!("P-{}", merchant.id), account.to_owned())];
    assert_eq!((of_platform("Assets:Acquirer:Receivable"), of_platform("Assets:Bank:Settlement")), (0, 9_701));
    world.check_books().await;
}

/// A time without its seconds, as due times are.
fn time_of_minute(at: DateTime<Utc>) -> DateTime<Utc> {
    at.with_second(0).and_then(|at| at.with_nanosecond(0)).unwrap()
}

/// The last minute of this month in Sao Paulo, 40 seconds before its end.
async fn end_of_month(world: &World) -> DateTime<Utc> {
    let now = world.advance(0).await - TimeDelta::hours(3);
    let first = now.date_naive().with_day(1).unwrap() + Months::new(1);
    first.and_hms_opt(3, 0, 0).unwrap().and_utc() - TimeDelta::seconds(40)
}

#[tokio::test]
async fn a_card_answered_after_midnight_is_of_the_day_before_everywhere() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let last_minute = end_of_month(&world).await;
    world.advance_to(last_minute).await;
    let charge = with_splits(card(10_000, SILENT), &[(&ana, 1_500), (&ana, 500)]);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    world.advance(61).await;

    let read = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    let paid_at = time(&read["paid_at"]);
    let midnight = last_minute + TimeDelta::seconds(40);
    assert!((last_minute..midnight).contains(&paid_at), "{paid_at}");
    let looked_up = merchant.post("/api/pix", &json!({"txid": txid})).await.expect(200);
    assert_eq!(looked_up["paid_at"], read["paid_at"]);
    let events = merchant.get("/api/events").await.expect(200);
    let paid = items(&events).iter().find(|event| event["event"] == "charge.paid").unwrap();
    assert_eq!(paid["charge"]["paid_at"], read["paid_at"]);

    let due = time_of_minute(paid_at + TimeDelta::days(30));
    let statement = merchant.statement(&ana).await;
    for split in items(&statement) {
        assert_eq!(time(&split["payment"]["balance_available_at"]), due);
    }
    let operations = merchant.get("/api/balance/operations").await.expect(200);
    assert!(items(&operations).iter().all(|operation| time(&operation["available_at"]) == due), "{operations}");
    let month = (last_minute - TimeDelta::hours(3)).format("%Y-%m").to_string();
    for report in ["monthly-totals", "fees"] {
        let report = world.ops_get(&format!("/ops/reports/{report}")).await.expect(200);
        let rows = report["rows"].as_array().unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["month"] == *month), "{report}");
    }
    let receivables = world.ops_get("/ops/reports/receivables").await.expect(200);
    let day = (due - TimeDelta::hours(3)).format("%Y-%m-%d").to_string();
    assert!(receivables["rows"].as_array().unwrap().iter().all(|row| row["due_date"] == *day), "{receivables}");

    world.advance_to(due).await;
    assert_eq!(merchant.recipient_balance(&ana).await, [2_000, 0]);
    assert_eq!(merchant.balance().await, [8_000 - 299 - 198 - 80, 0, 0, 0]);
    let events = merchant.get("/api/events").await.expect(200);
    let paid = items(&events).iter().find(|event| event["event"] == "split.available").unwrap();
    assert_eq!([&paid["split"]["count"], &paid["split"]["amount_cents"]], [&json!(2), &json!(2_000)]);
    world.check_books().await;
}

#[tokio::test]
async fn a_card_that_was_answered_late_hides_no_split_that_is_still_pending() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let next_minute = time_of_minute(world.advance(0).await) + TimeDelta::minutes(1);
    world.advance_to(next_minute + TimeDelta::seconds(30)).await;
    // The silent one is captured first, and booked last.
    let late = with_splits(card(10_000, SILENT), &[(&ana, 2_000)]);
    let late = text(&merchant.post("/api/card", &late).await.expect(201)["txid"]);
    world.advance(56).await;
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 1_500)])).await.expect(201);
    world.advance(10).await;
    let due = |statement: &Value, place: usize| time(&items(statement)[place]["payment"]["balance_available_at"]);
    let statement = merchant.statement(&ana).await;
    assert_eq!(items(&statement)[0]["payment_id"], json!(late), "in the order of booking");
    assert_eq!(due(&statement, 1) - due(&statement, 0), TimeDelta::minutes(1));
    world.advance_to(due(&statement, 0)).await;
    assert_eq!(merchant.recipient_balance(&ana).await, [2_000, 1_500]);
    let list = merchant.get(&format!("/api/dashboard/sub-recipients/{ana}/anticipate")).await.expect(200);
    assert_eq!(items(&list).len(), 1, "{list}");
    world.check_books().await;
}

#[tokio::test]
async fn one_step_over_months_books_each_day_at_its_own_time() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for _ in 0..3 {
        merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
        world.advance(DAY).await;
    }
    assert_eq!(merchant.balance().await, [0, 3 * 9_403, 0, 0]);
    world.advance(90 * DAY).await;
    assert_eq!(merchant.balance().await, [3 * 9_403, 0, 0, 0]);
    let entries = world.ops_get(&format!("/ops/ledgers/{}/entries", merchant.ledger())).await.expect(200);
    let times: Vec<_> = items(&entries).iter().map(|entry| time(&entry["effective_at"])).collect();
    assert_eq!(times.len(), 6);
    for days in 0..3 {
        let waited = times[days] - times[days + 3];
        assert!((waited - TimeDelta::days(30)).abs() < TimeDelta::seconds(62), "{waited}");
    }
    world.check_books().await;
}

#[tokio::test]
async fn a_seller_may_settle_sooner_than_its_recipients() {
    let world = World::sandbox().await;
    let settings = |days: i64| {
        json!({"name": "Loja", "document": cnpj(2), "split_enabled": true, "cashout_enabled": false,
            "options": {"card_settlement_days": days}})
    };
    for days in [0, 2] {
        let merchant = world.open(settings(days)).await;
        let ana = merchant.recipient("Ana", 1).await;
        merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 3_500)])).await.expect(201);
        if days > 0 {
            assert_eq!(merchant.balance().await, [0, 5_938, 0, 0]);
            world.advance(days * DAY).await;
        }
        assert_eq!(merchant.balance().await, [5_938, 0, 0, 0], "{days}");
        assert_eq!(merchant.recipient_balance(&ana).await, [0, 3_500]);
        world.check_books().await;
        world.advance(30 * DAY).await;
        assert_eq!(merchant.recipient_balance(&ana).await, [3_500, 0]);
    }
    world.check_books().await;
}

#[tokio::test]
async fn fees_beyond_the_sellers_part_are_owed_and_repaid_by_the_next_pix() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(1_000, APPROVED), &[(&ana, 999)]);
    let answer = merchant.post("/api/card", &charge).await.expect(201);
    let breakdown = json!({"amount": 1_000, "sellerAmount": -227, "commission": 228, "feePercent": 22_800});
    assert_eq!(answer["breakdown"], breakdown);
    assert_eq!(merchant.balance().await, [0, 0, 0, 227]);
    world.check_books().await;
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(merchant.balance().await, [0, 0, 0, 227 - 99]);
    merchant.paid_pix(&pix("10.00")).await;
    assert_eq!(merchant.balance().await, [990 + 99 - 227, 0, 0, 0]);
    world.check_books().await;
    merchant.post("/api/card", &charge).await.expect(201);
    assert_eq!(merchant.balance().await, [990 + 99 - 2 * 227, 0, 0, 0], "drawn from what is available first");
    world.check_books().await;
}

#[tokio::test]
async fn an_account_may_refuse_what_fees_would_eat() {
    let world = World::sandbox().await;
    let settings = json!({"name": "Loja", "document": cnpj(2), "split_enabled": true, "cashout_enabled": false,
        "options": {"split_guard": "net"}});
    let merchant = world.open(settings).await;
    let ana = merchant.recipient("Ana", 1).await;
    let charge = |split| with_splits(card(1_000, APPROVED), &[(&ana, split)]);
    let before = world.trace(&[&merchant]).await;
    merchant.post("/api/card", &charge(999)).await.refused(400, "fees_exceed_seller_part");
    assert_eq!(world.trace(&[&merchant]).await, before);
    // 1000 − 764 leaves 236: 30 MDR, 198 antifraud and 2 margin still fit.
    assert_eq!(merchant.post("/api/card", &charge(764)).await.expect(201)["breakdown"]["sellerAmount"], 6);
}

#[tokio::test]
async fn mdr_may_be_taken_of_the_sellers_part() {
    let world = World::sandbox().await;
    let settings = json!({"name": "Loja", "document": cnpj(2), "split_enabled": true, "cashout_enabled": false,
        "options": {"mdr_base": "seller_gross"}});
    let merchant = world.open(settings).await;
    let ana = merchant.recipient("Ana", 1).await;
    let answer = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 5_000)])).await.expect(201);
    assert_eq!(answer["breakdown"]["commission"], 150 + 198 + 50);
    let accounts = world.accounts().await;
    let of_platform = |account: &str| accounts[&(format!("P-{}", merchant.id), account.to_owned())];
    assert_eq!((of_platform("Expenses:Acquirer:Mdr"), of_platform("Income:Commission:Mdr")), (299, -150));
    world.check_books().await;
}

/// Shows: 2.4.rule-3.
#[tokio::test]
async fn ten_thousand_splits_fit_one_charge() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let splits: Vec<(&str, i64)> = std::iter::repeat_n((ana.as_str(), 1), 10_000).collect();
    let answer = merchant.post("/api/card", &with_splits(card(20_000, APPROVED), &splits)).await.expect(201);
    assert_eq!(answer["breakdown"]["amount"], 20_000);
    assert_eq!(merchant.recipient_balance(&ana).await, [0, 10_000]);
    assert_eq!(merchant.statement(&ana).await["total"], 10_000);
    world.check_books().await;
}

/// Shows: 2.1.credit_card.number, 2.1.credit_card.holder_name, 2.1.credit_card.exp_month,
/// 2.1.credit_card.exp_year, 2.1.credit_card.cvv, 7.400-card, 8.expiry-month.
#[tokio::test]
async fn card_data_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let valid = card(10_000, APPROVED);
    let cases = [
        ("number", json!("4111111111111112"), "invalid_number"),
        ("number", json!("411111111111"), "wrong_length"),
        ("number", json!("4111 1111 1111 1111"), "not_digits"),
        ("number", json!(4111111111111111_i64), "not_digits"),
        ("number", Value::Null, "required"),
        ("holder_name", json!(" "), "wrong_length"),
        ("holder_name", json!(""), "required"),
        ("holder_name", Value::Null, "required"),
        ("exp_month", json!(0), "out_of_range"),
        ("exp_month", json!(13), "out_of_range"),
        ("exp_month", json!("13"), "out_of_range"),
        ("exp_month", json!(1.5), "not_an_integer"),
        ("exp_month", json!(" "), "not_an_integer"),
        ("exp_month", json!(""), "required"),
        ("exp_year", json!(99), "out_of_range"),
        ("exp_year", json!("99"), "out_of_range"),
        ("exp_year", json!(2020), "expired"),
        ("cvv", json!("12"), "wrong_length"),
        ("cvv", json!("12a"), "not_digits"),
        ("cvv", json!(737), "not_digits"),
        ("cvv", Value::Null, "required"),
    ];
    let before = world.trace(&[&merchant]).await;
    for (field, value, code) in cases {
        let charge = with(&valid, &format!("/credit_card/{field}"), value.clone());
        let refused = merchant.post("/api/card", &charge).await.refused(400, "invalid_card_data");
        assert_eq!(refused["message"], "Dados do cartão inválidos");
        let error = &refused["errors"][0];
        assert_eq!(
            [&error["field"], &error["code"]],
            [&json!(format!("credit_card.{field}")), &json!(code)],
            "{value}"
        );
        assert!(!refused.to_string().contains("411111"), "a card number is repeated: {refused}");
    }
    merchant.post("/api/card", &without(&valid, "/credit_card")).await.refused(400, "invalid_card_data");
    merchant.post("/api/card", &with(&valid, "/credit_card", json!([]))).await.refused(400, "invalid_card_data");
    assert_eq!(world.trace(&[&merchant]).await, before);
}

/// Shows: 2.1.customer.name, 2.1.customer.email, 2.1.customer.document, 2.1.customer.phone,
/// 2.1.installments, 2.1.description, 8.installments, 8.description.
#[tokio::test]
async fn the_rest_of_a_card_charge_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let valid = card(10_000, APPROVED);
    let cases = [
        ("/customer", Value::Null, "customer"),
        ("/customer", json!("João"), "customer"),
        ("/customer/name", Value::Null, "customer.name"),
        ("/customer/name", json!("a\u{0}b"), "customer.name"),
        ("/customer/name", json!("x".repeat(141)), "customer.name"),
        ("/customer/email", json!("joao"), "customer.email"),
        ("/customer/email", json!("a@b"), "customer.email"),
        ("/customer/email", json!("a@b@example.com"), "customer.email"),
        ("/customer/document", json!("123.456.789-0X"), "customer.document"),
        ("/customer/document", json!("12345678900"), "customer.document"),
        ("/customer/document", json!("11111111111"), "customer.document"),
        ("/customer/document", json!(12345678909_i64), "customer.document"),
        ("/customer/phone", json!("+55 11"), "customer.phone"),
        ("/installments", json!(0), "installments"),
        ("/installments", json!(13), "installments"),
        ("/installments", json!("2"), "installments"),
        ("/payment_type", json!("voucher"), "payment_type"),
        ("/payment_type", json!(1), "payment_type"),
        ("/description", json!("ç".repeat(121)), "description"),
        ("/description", json!(7), "description"),
    ];
    let before = world.trace(&[&merchant]).await;
    for (pointer, value, field) in cases {
        let refused = merchant.post("/api/card", &with(&valid, pointer, value)).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
    let longest = with(&with(&valid, "/description", json!("ç".repeat(120))), "/customer/phone", json!("11987654321"));
    merchant.post("/api/card", &longest).await.expect(201);
}
