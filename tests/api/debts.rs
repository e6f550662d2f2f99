//! Debts of recipients after a refund took back a part of their splits: the rest of each split,
//! money that is not touched, later payments, and the merchant's side of them.

use serde_json::{Value, json};

use crate::balance::{checked, lines};
use crate::world::*;

/// A PIX charge with one split, paid; its txid.
async fn paid(merchant: &Merchant<'_>, recipient: &str, amount: i64) -> String {
    text(&merchant.paid_pix(&with_splits(pix("80.00"), &[(recipient, amount)])).await["txid"])
}

/// The same, when the recipient has withdrawn its part.
async fn paid_out(world: &World, merchant: &Merchant<'_>, recipient: &str, amount: i64) -> String {
    let txid = paid(merchant, recipient, amount).await;
    let withdrawal = text(&merchant.withdraw(recipient).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    txid
}

/// A card charge with one split; its txid.
async fn captured(merchant: &Merchant<'_>, recipient: &str, amount: i64) -> String {
    let charge = with_splits(card(10_000, APPROVED), &[(recipient, amount)]);
    text(&merchant.post("/api/card", &charge).await.expect(201)["txid"])
}

/// A refund that takes back this amount of a split, requested and approved; its id. The recipients
/// have paid what they can.
async fn take_back(merchant: &Merchant<'_>, txid: &str, recipient: &str, amount: i64) -> String {
    let body = with_splits(json!({"payment_id": txid, "amount": amount}), &[(recipient, amount)]);
    let id = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    merchant.world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    merchant.world.advance(0).await;
    id
}

/// `available 200` for each split, oldest first. The listed splits add up to the totals of the
/// statement.
async fn listed(merchant: &Merchant<'_>, recipient: &str) -> Vec<String> {
    let path = format!("/api/dashboard/sub-recipients/{recipient}/splits?per_page=100");
    let statement = merchant.get(&path).await.expect(200);
    let sum = |status: &str| -> i64 {
        let of_status = items(&statement).iter().filter(|item| item["status"] == status);
        of_status.map(|item| item["amount_cents"].as_i64().unwrap()).sum()
    };
    let of = |name: &str| statement["balance"][name].as_i64().unwrap();
    // A pinned split reads `available` until its withdrawal is decided.
    assert_eq!(sum("available"), of("available") + of("reserved"), "{statement}");
    assert_eq!([sum("pending"), sum("paid")], [of("pending"), of("paid")], "{statement}");
    let line = |item: &Value| format!("{} {}", text(&item["status"]), item["amount_cents"]);
    items(&statement).iter().rev().map(line).collect()
}

/// What a recipient still owes, in its own books and in its merchant's.
async fn owed(merchant: &Merchant<'_>, recipient: &str) -> i64 {
    let accounts = merchant.world.accounts().await;
    let of = |ledger: String, account: String| accounts.get(&(ledger, account)).copied().unwrap_or_default();
    let owed = of(merchant.ledger(), format!("Assets:Receivable:Recipients:R-{recipient}"));
    assert_eq!(of(format!("R-{recipient}"), format!("Liabilities:Clawback:M-{}", merchant.id)), -owed);
    let shown = merchant.get(&format!("/api/sub-recipients/{recipient}")).await.expect(200);
    assert_eq!([&shown["balance"]["debt"], &merchant.statement(recipient).await["balance"]["debt"]], [owed, owed]);
    owed
}

#[tokio::test]
async fn what_is_taken_from_available_is_missing_from_the_oldest_splits() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    paid(&merchant, &ana, 300).await;
    let second = paid(&merchant, &ana, 500).await;
    let third = paid(&merchant, &ana, 900).await;
    paid(&merchant, &bia, 700).await;
    let before = checked(&merchant).await.len();

    let refund = take_back(&merchant, &third, &ana, 600).await;
    assert_eq!(listed(&merchant, &ana).await, ["available 0", "available 200", "available 900"]);
    assert_eq!(merchant.recipient_money(&ana).await, [1_100, 0, 0, 0]);
    let operations = checked(&merchant).await;
    let all = lines(&operations);
    let standing = operations[2]["balance_after"].as_i64().unwrap();
    let expected = [format!("refund available -600 {}", standing - 600), format!("take_back available 600 {standing}")];
    assert_eq!(all[before..], expected);
    assert!(operations[..2].iter().all(|line| line["source_id"] == refund.as_str()), "{operations:?}");

    take_back(&merchant, &second, &ana, 500).await;
    assert_eq!(listed(&merchant, &ana).await, ["available 0", "available 0", "available 600"]);
    let statement = merchant.statement(&ana).await;
    assert_eq!([&statement["total"], &statement["balance"]["available"]], [3, 600], "at nothing it stays listed");
    assert_eq!(listed(&merchant, &bia).await, ["available 700"], "who owes nothing pays nothing");
    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    assert_eq!(withdrawal["amount_cents"], 600);
    world.approve(&text(&withdrawal["withdrawal_id"])).await.expect(200);
    assert_eq!(listed(&merchant, &ana).await, ["paid 0", "paid 0", "paid 600"]);
    assert_eq!((merchant.recipient_money(&ana).await, owed(&merchant, &ana).await), ([0, 0, 0, 600], 0));
    world.check_books().await;
}

#[tokio::test]
async fn splits_that_pay_a_debt_tell_what_became_available() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = paid_out(&world, &merchant, &ana, 2_000).await;
    captured(&merchant, &ana, 3_000).await;
    take_back(&merchant, &txid, &ana, 2_000).await;
    assert_eq!(owed(&merchant, &ana).await, 2_000);
    world.advance(30 * DAY).await;
    let events = merchant.get("/api/events").await.expect(200);
    let available = items(&events).iter().find(|event| event["event"] == "split.available").expect("splits fell due");
    let split = &available["split"];
    assert_eq!([&split["amount_cents"], &split["recovered_cents"]], [&json!(1_000), &json!(2_000)], "{available}");
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 2_000]);
    world.check_books().await;
}

#[tokio::test]
async fn money_under_a_withdrawal_is_not_touched_and_the_next_rise_pays() {
    for is_paid_out in [true, false] {
        let world = World::sandbox().await;
        let merchant = world.merchant().await;
        let ana = merchant.recipient("Ana", 1).await;
        let txid = paid(&merchant, &ana, 400).await;
        let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
        paid(&merchant, &ana, 100).await;
        take_back(&merchant, &txid, &ana, 400).await;
        assert_eq!(listed(&merchant, &ana).await, ["available 400", "available 0"]);
        assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 400, 0]);
        assert_eq!(owed(&merchant, &ana).await, 300);
        paid(&merchant, &ana, 50).await;
        assert_eq!(listed(&merchant, &ana).await, ["available 400", "available 0", "available 0"]);
        assert_eq!(owed(&merchant, &ana).await, 250);

        if is_paid_out {
            world.approve(&withdrawal).await.expect(200);
            assert_eq!(listed(&merchant, &ana).await, ["paid 400", "available 0", "available 0"]);
            assert_eq!(owed(&merchant, &ana).await, 250, "what was paid out is not asked back");
            let names = merchant.names;
            let world = world.restarted().await;
            let merchant = Merchant { world: &world, names };
            paid(&merchant, &ana, 330).await;
            assert_eq!(listed(&merchant, &ana).await, ["paid 400", "available 0", "available 0", "available 80"]);
            assert_eq!((merchant.recipient_money(&ana).await, owed(&merchant, &ana).await), ([80, 0, 0, 400], 0));
            let taken = taken_back(&merchant).await;
            assert_eq!(taken.len(), 3, "100, 50 and 250: {taken:?}");
            world.check_books().await;
        } else {
            world.reject(&withdrawal, "conta de outra pessoa").await.expect(200);
            // The oldest is there again, so the amount taken is missing there.
            assert_eq!(listed(&merchant, &ana).await, ["available 0", "available 100", "available 50"]);
            assert_eq!((merchant.recipient_money(&ana).await, owed(&merchant, &ana).await), ([150, 0, 0, 0], 0));
            world.check_books().await;
        }
    }
}

/// The lines of the merchant's statement that say what recipients paid back.
async fn taken_back(merchant: &Merchant<'_>) -> Vec<String> {
    lines(&checked(merchant).await).into_iter().filter(|line| line.starts_with("take_back ")).collect()
}

#[tokio::test]
async fn a_pending_split_pays_from_itself_alone() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let (first, second) = (captured(&merchant, &ana, 2_000).await, captured(&merchant, &ana, 1_000).await);
    paid(&merchant, &ana, 70).await;
    take_back(&merchant, &second, &ana, 800).await;
    assert_eq!(listed(&merchant, &ana).await, ["pending 2000", "pending 200", "available 70"]);
    let taken = taken_back(&merchant).await;
    assert!(taken.len() == 1 && taken[0].starts_with("take_back pending 800 "), "{taken:?}");
    let path = format!("/api/dashboard/sub-recipients/{ana}/anticipate");
    let anticipable = merchant.get(&path).await.expect(200);
    let amounts: Vec<_> = items(&anticipable).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [200, 2_000]);

    // Anticipated, it owes its nominal amount, and the fee stays: what is missing comes from
    // Available, oldest first.
    let ids = json!({"split_ids": [items(&anticipable)[1]["id"]], "target_days": 15});
    assert_eq!(merchant.post(&path, &ids).await.expect(200)["net_cents"], 1_970);
    take_back(&merchant, &first, &ana, 2_000).await;
    assert_eq!(listed(&merchant, &ana).await, ["available 0", "pending 200", "available 40"]);
    assert_eq!((merchant.recipient_money(&ana).await, owed(&merchant, &ana).await), ([40, 200, 0, 0], 0));
    world.advance(31 * DAY).await;
    assert_eq!(
        listed(&merchant, &ana).await,
        ["available 0", "available 170", "available 70"],
        "the older one lacks it"
    );
    assert_eq!(merchant.recipient_money(&ana).await, [240, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn what_comes_back_first_repays_the_deficit_of_its_refund() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = paid(&merchant, &ana, 7_999).await;
    assert_eq!(merchant.balance().await, [1, 0, 0, 0]);
    let before = checked(&merchant).await.len();
    take_back(&merchant, &txid, &ana, 5_000).await;
    assert_eq!(merchant.balance().await, [1, 0, 0, 0]);
    let expected = [
        "deficit available 4999 5000",
        "refund available -5000 0",
        "take_back available 5000 5000",
        "deficit available -4999 1",
    ];
    assert_eq!(lines(&checked(&merchant).await)[before..], expected);
    assert_eq!(listed(&merchant, &ana).await, ["available 2999"]);
    world.check_books().await;
}

#[tokio::test]
async fn pages_of_a_statement_with_debts_are_parts_of_one_list() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let five = [(ana.as_str(), 10); 5];
    let mut charges = Vec::new();
    for round in 0..4 {
        charges.push(text(&merchant.paid_pix(&with_splits(pix("80.00"), &five)).await["txid"]));
        merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 7)])).await.expect(201);
        // The first ten are under a withdrawal, and lost 15 centavos before.
        if round == 1 {
            take_back(&merchant, &charges[0], &ana, 10).await;
            take_back(&merchant, &charges[0], &ana, 5).await;
            merchant.withdraw(&ana).await.expect(201);
        }
    }
    take_back(&merchant, &charges[3], &ana, 10).await;
    take_back(&merchant, &charges[2], &ana, 8).await;
    let whole = listed(&merchant, &ana).await;
    // What the splits of a charge show among each other is in any order; the card's is the seven
    // that are pending.
    for (shown, expected) in whole.chunks(6).zip([[0, 5, 10, 10, 10], [10; 5], [0, 2, 10, 10, 10], [10; 5]]) {
        let mut shown = shown.to_vec();
        shown.sort_by_key(|line| (line.len(), line.clone()));
        let expected = expected.map(|amount| format!("available {amount}")).into_iter();
        let mut expected: Vec<_> = expected.chain(["pending 7".to_owned()]).collect();
        expected.sort_by_key(|line| (line.len(), line.clone()));
        assert_eq!(shown, expected, "{whole:?}");
    }
    let path = format!("/api/dashboard/sub-recipients/{ana}/splits?per_page=");
    let all = merchant.get(&format!("{path}100")).await.expect(200);
    for per_page in [1, 5, 7] {
        let mut gathered = Vec::new();
        for page in 1..=24_usize.div_ceil(per_page) {
            let part = merchant.get(&format!("{path}{per_page}&page={page}")).await.expect(200);
            gathered.extend(items(&part).clone());
        }
        assert_eq!(&gathered, items(&all), "{per_page} a page");
    }
    world.check_books().await;
}

/// A refund of a charge whose seller has too little: without the recipient's part it would be in
/// deficit.
#[tokio::test]
async fn an_approved_take_back_shows_no_deficit_that_is_none() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = paid(&merchant, &ana, 3_000).await;
    merchant.paid_pix(&pix("20.00")).await;
    let before = merchant.balance().await[0];
    let body = with_splits(json!({"payment_id": txid, "amount": 8_000}), &[(&ana, 3_000)]);
    let id = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    assert_eq!(merchant.balance().await, [before - 5_000, 0, 0, 0]);
    let cashout = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    world.check_books().await;
}

#[tokio::test]
async fn a_payment_that_lets_a_recipient_pay_its_debt_repays_the_deficit_at_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = paid_out(&world, &merchant, &ana, 7_000).await;
    take_back(&merchant, &txid, &ana, 7_000).await;
    let [available, _, _, deficit] = merchant.balance().await;
    assert!(available == 0 && deficit > 0);
    let fee = 10;
    paid(&merchant, &ana, 7_000).await;
    assert_eq!(merchant.balance().await, [7_000 + 1_000 - fee - deficit, 0, 0, 0]);
    assert_eq!(owed(&merchant, &ana).await, 0);
    world.check_books().await;
}

#[tokio::test]
async fn events_tell_of_a_debt_when_it_arises_and_when_it_is_paid() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = paid_out(&world, &merchant, &ana, 2_000).await;
    let refund = take_back(&merchant, &txid, &ana, 2_000).await;
    paid(&merchant, &ana, 500).await;
    paid(&merchant, &ana, 1_600).await;
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let events_named = |name: &str| -> Vec<Value> {
        let of = items(&events).iter().rev().filter(|event| event["event"] == name);
        of.map(|event| event["debt"].clone()).collect()
    };
    let opened = json!({"recipient_id": ana, "amount_cents": 2_000, "refund_id": refund, "payment_id": txid});
    assert_eq!(events_named("recipient.debt_opened"), [opened]);
    let paid = |amount: i64, left: i64| json!({"recipient_id": ana, "amount_cents": amount, "debt_cents": left});
    assert_eq!(events_named("recipient.debt_paid"), [paid(500, 1_500), paid(1_500, 0)]);
    assert_eq!(items(&events).iter().filter(|event| event["recipient"]["id"] == *ana).count(), 4, "with the approval");
}
