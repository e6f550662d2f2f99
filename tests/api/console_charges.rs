//! Pages of charges that moved no money, and statements of recipients that add up.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::world::*;

/// A charge that ended unpaid shows no flow of money, and names its reason in both languages.
#[tokio::test]
async fn a_charge_that_moved_nothing_shows_no_flow_and_names_its_reason() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let mut charges = Vec::new();
    for (number, portuguese, english) in [
        (REFUSED, "O emissor do cartão recusou.", "issuer refused."),
        (WITHOUT_FUNDS, "O cartão não tem limite ou saldo.", "The card has no limit or balance"),
    ] {
        let charge = with_splits(card(10_000, number), &[(&ana, 3_000)]);
        let txid = text(&merchant.post("/api/card", &charge).await.expect(402)["txid"]);
        charges.push((txid, "refused", portuguese, english));
    }
    let lasting = with_splits(pix("80.00"), &[(&ana, 1_000)]);
    let opened = async |body: &Value| text(&merchant.post("/api/pix", body).await.expect(201)["txid"]);
    let cancelled = opened(&lasting).await;
    merchant.post(&format!("/api/charges/{cancelled}/cancel"), &json!({})).await.expect(200);
    charges.push((cancelled, "cancelled", "O lojista cancelou", "The merchant cancelled it"));
    let expired = opened(&with(&lasting, "/expires_in", json!(60))).await;
    world.advance(3_600).await;
    charges.push((expired, "cancelled", "O código PIX venceu", "The PIX code expired"));
    let pending = opened(&lasting).await;
    charges.push((pending, "pending", "Vence", "Expires"));

    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for (txid, status, portuguese, english) in &charges {
        browser.language = "en";
        let page = browser.page(&format!("/console/charges/{txid}")).await;
        page.has(&[&format!(">{status}<"), english]);
        assert!(!page.html.contains("<svg") && !page.html.contains("Where the money"), "{}", page.html);
        let asked = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
        assert_eq!((&asked["splits"][0]["sub_recipient_id"], asked["settles_at"].is_null()), (&json!(ana), true));
        let shares = [&asked["splits"][0]["amount"], &asked["net"], &asked["amount"]].map(|it| it.as_i64().unwrap());
        let shares = shares.map(|share| format!("R${}.{:02}", share / 100, share % 100));
        let table = page.html.split("What was asked for</h2>").nth(1).unwrap().split("</table>").next().unwrap();
        assert!(shares.iter().all(|share| table.contains(share)) && table.contains(">Ana<"), "{shares:?}: {table}");
        browser.language = "pt-BR";
        browser.page(&format!("/console/charges/{txid}")).await.has(&[portuguese]);
    }
}

/// The amounts of a statement, by what is said of them, are the balances: an unpaid PIX split is no
/// money, and a split under a withdrawal names the withdrawal.
#[tokio::test]
async fn the_splits_of_a_statement_sum_to_its_balances() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let of_ana = |charge: Value, amount: i64| with_splits(charge, &[(&ana, amount)]);
    merchant.paid_pix(&of_ana(pix("80.00"), 1_000)).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    world.advance(60).await;
    merchant.paid_pix(&of_ana(pix("80.00"), 700)).await;
    merchant.paid_pix(&of_ana(pix("80.00"), 500)).await;
    let open = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    merchant.paid_pix(&of_ana(pix("80.00"), 90)).await;
    merchant.post("/api/card", &of_ana(card(10_000, APPROVED), 2_000)).await.expect(201);
    merchant.post("/api/pix", &of_ana(pix("30.00"), 300)).await.expect(201);

    let statement = merchant.statement(&ana).await;
    let sum = |is_of: &dyn Fn(&Value) -> bool| {
        let amounts = items(&statement).iter().filter(|item| is_of(item)).map(|item| item["amount_cents"].as_i64());
        amounts.map(Option::unwrap).sum::<i64>()
    };
    let is_money = |item: &Value| !item["payment"]["balance_available_at"].is_null();
    let by = |status: &'static str, holder: Value| {
        sum(&move |item| is_money(item) && item["status"] == status && item["withdrawal_id"] == holder)
    };
    let sums = json!({
        "pending": by("pending", Value::Null), "available": by("available", Value::Null),
        "reserved": by("available", json!(open)), "paid": by("paid", json!(withdrawal)), "debt": 0,
    });
    assert_eq!(sums, statement["balance"]);
    assert_eq!(sums, json!({"pending": 2_000, "available": 90, "reserved": 1_200, "paid": 1_000, "debt": 0}));
    assert_eq!(sum(&|item| !is_money(item)), 300);

    // The page says the same: what is no money stands in brackets.
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/recipients/{ana}")).await;
    page.has(&["charge not paid yet", "(R$3.00)", "under a withdrawal", "R$12.00", "R$0.90"]);
    browser.language = "pt-BR";
    browser.page(&format!("/console/recipients/{ana}")).await.has(&["cobrança não paga", "(R$ 3,00)", "em saque"]);
}
