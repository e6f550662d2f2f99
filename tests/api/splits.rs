//! Splits by percent: resolved once to centavos, in charges and in the cycles of subscriptions.

use serde_json::{Value, json};

use crate::plans::{PLANS, plan};
use crate::world::*;

const SUBSCRIPTIONS: &str = "/api/recurrency/subscriptions";

fn by_percent(charge: &Value, parts: &[(&str, &str)]) -> Value {
    let parts = parts.iter().map(|(id, percent)| json!({"sub_recipient_id": id, "percent": percent}));
    with(charge, "/splits", parts.collect())
}

/// The recipients' parts of a charge or a subscription, in order.
fn parts(of: &Value) -> Vec<i64> {
    let parts = of["splits"].as_array().unwrap().iter();
    parts.map(|split| split["amount"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn a_split_by_percent_is_an_amount_from_the_answer_on() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    // 12.5 % of 99.99 is 12.49875, and 0.0051 % of it is 0.51 centavos: each is rounded by itself.
    let cases = [
        (9_999, [("12.5", 1_250), ("0.0051", 1)]),
        (10_000, [("33.3333", 3_333), ("66.6666", 6_667)]),
        (3, [("49.9999", 1), ("50", 2)]),
        (3, [("49.9999", 1), ("40", 1)]),
    ];
    for (total, [(first, first_part), (second, second_part)]) in cases {
        let (card, valor) = (card(total, APPROVED), format!("{}.{:02}", total / 100, total % 100));
        for (path, charge) in [("/api/card", card), ("/api/pix", pix(&valor))] {
            let charge = by_percent(&charge, &[(&ana, first), (&rui, second)]);
            if first_part + second_part >= total {
                merchant.post(path, &charge).await.refused(400, "splits_reach_total");
                continue;
            }
            let answer = merchant.post(path, &charge).await.expect(201);
            let read = merchant.get(&format!("/api/charges/{}", text(&answer["txid"]))).await.expect(200);
            assert_eq!(parts(&read), [first_part, second_part], "{path} {total}");
            has_exactly(&read["splits"][0], &["sub_recipient_id", "amount"]);
            assert_eq!((&answer["breakdown"]["amount"], &answer["splits"]), (&json!(total), &read["splits"]), "{path}");
        }
    }
    world.check_books().await;
}

#[tokio::test]
async fn an_amount_and_a_percent_stand_side_by_side() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    let mixed = json!([{"sub_recipient_id": ana, "amount": 2_000}, {"sub_recipient_id": rui, "percent": "15"}]);
    let charge = with(&card(10_000, APPROVED), "/splits", mixed);
    let by_amounts = with_splits(card(10_000, APPROVED), &[(&ana, 2_000), (&rui, 1_500)]);
    let [answer, same] = [
        merchant.post("/api/card", &charge).await.expect(201),
        merchant.post("/api/card", &by_amounts).await.expect(201),
    ];
    assert_eq!((parts(&answer), same.get("splits")), (vec![2_000, 1_500], None), "only what is new is answered anew");
    assert_eq!(answer["breakdown"], same["breakdown"]);
    assert_eq!(merchant.recipient_balance(&rui).await, [0, 3_000]);
    for (item, code, field) in [
        (json!({"sub_recipient_id": ana, "amount": 1, "percent": "1"}), "ambiguous", "splits[0].percent"),
        (json!({"sub_recipient_id": ana}), "required", "splits[0].amount"),
        (json!({"sub_recipient_id": ana, "percentage": "10"}), "unknown_field", "splits[0].percentage"),
        (json!({"sub_recipient_id": ana, "percent": 10}), "not_a_percentage", "splits[0].percent"),
        (json!({"sub_recipient_id": ana, "percent": "10,5"}), "not_a_percentage", "splits[0].percent"),
        (json!({"sub_recipient_id": ana, "percent": "1.00001"}), "not_a_percentage", "splits[0].percent"),
        (json!({"sub_recipient_id": ana, "percent": "100.1"}), "out_of_range", "splits[0].percent"),
        (json!({"sub_recipient_id": ana, "percent": "0"}), "out_of_range", "splits[0].percent"),
        (json!({"sub_recipient_id": ana, "percent": "0.0001"}), "out_of_range", "splits[0].percent"),
    ] {
        for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("100.00"))] {
            let refused = merchant.post(path, &with(&charge, "/splits", json!([item]))).await;
            let refused = refused.refused(400, "validation_failed");
            assert_eq!([&refused["errors"][0]["code"], &refused["errors"][0]["field"]], [code, field], "{path} {item}");
        }
    }
    let all = by_percent(&card(10_000, APPROVED), &[(&ana, "60"), (&rui, "40")]);
    merchant.post("/api/card", &all).await.refused(400, "splits_reach_total");
    world.check_books().await;
}

#[tokio::test]
async fn a_cycle_is_split_by_percent_of_its_own_total() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let fee = json!({"description": "adesão", "amount": 2_000, "cycles": 1});
    let plan = merchant.post(PLANS, &with(&plan("ouro", 4_990, 2), "/initialFee", fee)).await.expect(201);
    let customer = card(1, APPROVED)["customer"].clone();
    let wanted = json!({"plan_id": plan["id"], "customer": customer, "payment_method": "pix"});
    let begun = merchant.post(SUBSCRIPTIONS, &by_percent(&wanted, &[(&ana, "10.015")])).await.expect(201);
    assert_eq!(begun["splits"], json!([{"sub_recipient_id": ana, "amount": 500, "percent": "10.015"}]));
    let charges = format!("{SUBSCRIPTIONS}/{}/charges", text(&begun["id"]));
    let mut cycles = Vec::new();
    for _ in 0..2 {
        world.advance(1).await;
        let newest = items(&merchant.get(&charges).await.expect(200))[0].clone();
        cycles.push((newest["amount"].as_i64().unwrap(), parts(&newest)));
        let pay = format!("/api/sandbox/pix/{}/pay", text(&newest["txid"]));
        merchant.post_raw(&pay, &[], "").await.expect(200);
        world.advance(32 * DAY).await;
    }
    assert_eq!(cycles, [(6_990, vec![700]), (4_990, vec![500])]);
    assert_eq!(merchant.recipient_balance(&ana).await, [1_200, 0]);
    world.check_books().await;
}
