//! Write-offs: what will not be paid back of a Deficit or a Clawback is booked as a loss, by two
//! operators.

use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{ANA, Browser, RUI, world_of_three};
use crate::console_books::DecisionPreview;
use crate::world::*;

/// A merchant that owes 496 centavos to the platform: its fees exceed its part of a card of 100.00.
async fn with_deficit<'a>(world: &'a World, recipient: &mut String) -> Merchant<'a> {
    let merchant = world.merchant().await;
    *recipient = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(10_000, APPROVED), &[(recipient, 9_999)]);
    merchant.post("/api/card", &charge).await.expect(201);
    assert_eq!(merchant.get("/api/balance").await.expect(200)["deficit"], 496);
    merchant
}

/// A recipient that owes 800 centavos to its merchant: it has withdrawn what a refund takes back.
async fn with_clawback(world: &World, merchant: &Merchant<'_>) -> String {
    let ana = merchant.recipient("Ana", 1).await;
    let charge = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    let refund = json!({"payment_id": charge["txid"], "amount": 4_000, "reason": "x"});
    let refund = merchant.post("/api/refunds", &with_splits(refund, &[(&ana, 800)])).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    ana
}

fn of_deficit(merchant: &Merchant<'_>, amount: i64) -> Value {
    json!({
        "debit": "Expenses:Losses:Other", "credit": format!("Assets:Merchants:M-{}:Deficit", merchant.id),
        "amount": amount, "reason": "Encerrou as atividades", "reference": "PARECER-17",
    })
}

fn of_clawback(recipient: &str, amount: i64) -> Value {
    json!({
        "debit": "Expenses:Losses:Clawback", "credit": format!("Assets:Receivable:Recipients:R-{recipient}"),
        "amount": amount, "reason": "Encerrou as atividades", "reference": "PARECER-18",
    })
}

async fn balance(world: &World, ledger: &str, account: &str) -> i64 {
    let balances = world.accounts().await;
    balances.get(&(ledger.to_owned(), account.to_owned())).copied().unwrap_or_default()
}

async fn queue(world: &World) -> Vec<Value> {
    items(&world.ops_get("/ops/queue?kind=entry").await.expect(200)).to_vec()
}

#[tokio::test]
async fn a_deficit_is_written_off_by_two_operators() {
    let world = World::sandbox().await;
    let mut ana = String::new();
    let merchant = with_deficit(&world, &mut ana).await;
    let (id, shard) = (merchant.id.clone(), format!("P-{}", merchant.id));
    let (ledger, key) = (merchant.ledger(), merchant.key.clone());
    let body = of_deficit(&merchant, 300);
    world.ops_post("/ops/entries", &of_deficit(&merchant, 497)).await.refused(409, "exceeds_debt");
    let headers = [("idempotency-key", "baixa-1"), ("content-type", "application/json")];
    let ask = || world.ops_send(Method::POST, "/ops/entries", &headers, body.to_string());
    let entry = ask().await.expect(201);
    assert_eq!(ask().await.expect(201), entry, "once");
    has_exactly(
        &entry,
        &["id", "status", "debit", "credit", "amount", "reason", "reference", "requested_by", "created_at"],
    );
    assert_eq!(
        [&entry["debit"], &entry["credit"], &entry["amount"]],
        [&body["debit"], &body["credit"], &body["amount"]]
    );
    world.ops_post("/ops/entries", &of_deficit(&merchant, 1)).await.refused(409, "write_off_pending");
    let item = queue(&world).await;
    assert_eq!([&item[0]["id"], &item[0]["merchant_id"], &item[0]["amount"]], [&entry["id"], &json!(id), &json!(300)]);
    drop(merchant);

    let world = world.restarted().await;
    assert_eq!(queue(&world).await, item, "it outlives the process");
    let path = format!("/ops/entries/{}", text(&entry["id"]));
    world.ops_post(&format!("{path}/approve"), &json!({})).await.refused(409, "second_operator_needed");
    let foreseen = DecisionPreview::of(&world, &text(&entry["id"]), "approve").await;
    let approved = world.second_ops_post(&format!("{path}/approve"), &[], &json!({})).await.expect(200);
    foreseen.is_booked(&world, 1).await;
    assert_eq!((&approved["status"], &approved["decided_by"]), (&json!("approved"), &json!("second")));
    world.second_ops_post(&format!("{path}/approve"), &[], &json!({})).await.refused(409, "already_decided");
    assert!(queue(&world).await.is_empty());
    let world = world.restarted().await;
    assert_eq!(world.ops_get(&path).await.expect(200), approved);
    assert_eq!(balance(&world, &ledger, "Liabilities:Platform:Deficit").await, -196);
    assert_eq!(balance(&world, &ledger, "Income:Other").await, -300);
    assert_eq!(balance(&world, &shard, "Expenses:Losses:Other").await, 300);
    let deficit = world.send(Method::GET, "/api/balance", &[("token", &key)], "").await.expect(200);
    assert_eq!(deficit["deficit"], 196);
    let exported = world.ops_get(&format!("/ops/export?ledger={ledger}")).await.text;
    let rows: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_it = rows.iter().filter(|row| row["event"] == "deficit_written_off");
    let fields: Vec<_> =
        of_it.map(|row| [&row["house_entry"], &row["reference"], &row["operator"]].map(text)).collect();
    assert_eq!(fields, [[text(&entry["id"]), "PARECER-17".to_owned(), "second".to_owned()], fields[0].clone()]);
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let rows: Vec<_> = items(&audit).iter().map(|row| [&row["action"], &row["kind"], &row["operator"]]).collect();
    assert_eq!(rows[..2], [["approve", "entry", "second"], ["request", "entry", "operator"]]);
    world.check_books().await;
}

#[tokio::test]
async fn what_a_recipient_owes_is_written_off_as_its_merchants_loss() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = with_clawback(&world, &merchant).await;
    let (ledger, recipient) = (merchant.ledger(), format!("R-{ana}"));
    let claim = format!("Assets:Receivable:Recipients:{recipient}");
    assert_eq!(balance(&world, &ledger, &claim).await, 800);
    let entry = world.ops_post("/ops/entries", &of_clawback(&ana, 600)).await.expect(201);
    let path = format!("/ops/entries/{}", text(&entry["id"]));
    let rejected = world.ops_post(&format!("{path}/reject"), &json!({"notes": "Ainda paga"})).await.expect(200);
    assert_eq!((&rejected["status"], &rejected["notes"]), (&json!("rejected"), &json!("Ainda paga")));
    world.second_ops_post(&format!("{path}/approve"), &[], &json!({})).await.refused(409, "already_decided");

    let entry = text(&world.ops_post("/ops/entries", &of_clawback(&ana, 600)).await.expect(201)["id"]);
    let foreseen = DecisionPreview::of(&world, &entry, "approve").await;
    let path = format!("/ops/entries/{entry}/approve");
    let nothing = json!({});
    let answers = futures_of(8, |_| world.second_ops_post(&path, &[], &nothing)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    foreseen.is_booked(&world, 1).await;
    assert_eq!(balance(&world, &ledger, &claim).await, 200);
    assert_eq!(balance(&world, &ledger, "Expenses:Losses:Clawback").await, 600);
    assert_eq!(balance(&world, &recipient, &format!("Liabilities:Clawback:{ledger}")).await, -200);
    // What comes later pays the rest, and no more than that.
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    world.advance(60).await;
    assert_eq!(merchant.recipient_balance(&ana).await, [800, 0]);
    assert_eq!(balance(&world, &ledger, &claim).await, 0);
    world.ops_post("/ops/entries", &of_clawback(&ana, 1)).await.refused(409, "exceeds_debt");
    world.check_books().await;
}

#[tokio::test]
async fn what_was_paid_meanwhile_is_not_written_off() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = with_clawback(&world, &merchant).await;
    let entry = text(&world.ops_post("/ops/entries", &of_clawback(&ana, 800)).await.expect(201)["id"]);
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 100)])).await;
    world.advance(60).await;
    let approve = format!("/ops/entries/{entry}/approve");
    world.second_ops_post(&approve, &[], &json!({})).await.refused(409, "exceeds_debt");
    assert_eq!(queue(&world).await.len(), 1, "it waits, to be rejected");
    world.check_books().await;
}

#[tokio::test]
async fn a_write_off_that_makes_no_sense_is_refused() {
    let world = World::sandbox().await;
    let mut ana = String::new();
    let merchant = with_deficit(&world, &mut ana).await;
    let deficit = of_deficit(&merchant, 1);
    let nobody = "01890000-0000-8000-8000-000000000000";
    for (body, field) in [
        (with(&deficit, "/debit", json!("Expenses:Losses:Clawback")), "debit"),
        (with(&deficit, "/debit", json!("Assets:Bank:Own")), "debit"),
        (with(&deficit, "/amount", json!(0)), "amount"),
        (with(&deficit, "/reason", json!("")), "reason"),
        (with(&deficit, "/reference", json!("x".repeat(101))), "reference"),
        (with(&deficit, "/effective_date", json!("2026-01-01")), "effective_date"),
        (with(&deficit, "/credit", json!(format!("Assets:Merchants:M-{nobody}:Deficit"))), "credit"),
        (with(&deficit, "/credit", json!(format!("Assets:Merchants:M-{}:Available", merchant.id))), "credit"),
        (with(&deficit, "/credit", json!(format!("Assets:Merchants:R-{ana}:Deficit"))), "credit"),
    ] {
        let refused = world.ops_post("/ops/entries", &body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{body}");
    }
    let refused = world.ops_post("/ops/entries", &of_clawback(nobody, 1)).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"].as_array().unwrap().len(), 1, "the debit is right: {refused}");
    assert_eq!(refused["errors"][0]["field"], "credit");
    world.ops_post("/ops/entries", &of_clawback(&ana, 1)).await.refused(409, "exceeds_debt");
    assert!(queue(&world).await.is_empty());
}

#[tokio::test]
async fn the_console_asks_for_a_write_off_and_another_operator_approves() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let ana = with_clawback(&world, &merchant).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let key = browser.page("/console/house").await.hidden("key");
    for (debtor, status) in [("R-nobody", 400), ("P-house", 404), (&format!("R-{ana}"), 303)] {
        let (reason, reference) = ("Encerrou as atividades", "PARECER-18");
        let fields =
            [("key", &*key), ("debtor", debtor), ("amount", "6.00"), ("reason", reason), ("reference", reference)];
        assert_eq!(browser.post("/console/house", &fields).await.status, status, "{debtor}");
    }
    let waits = queue(&world).await;
    let id = text(&waits[0]["id"]);
    let page = Browser::signed_in(&world, RUI).await.page(&format!("/console/queue/{id}")).await;
    page.has(&["Encerrou as atividades", "PARECER-18", "Expenses:<wbr>Losses:<wbr>Clawback"]);
    let found = Browser::signed_in(&world, RUI).await.get(&format!("/console/find?q={id}")).await;
    assert_eq!(found.header("location"), format!("/console/queue/{id}"));
}

/// The house gives money to a merchant: two operators, the merchant's reason, its line and event.
#[tokio::test]
async fn goodwill_is_credited_by_two_operators() {
    let world = World::sandbox().await;
    let mut ana = String::new();
    let merchant = with_deficit(&world, &mut ana).await;
    let wanted = json!({
        "debit": "Expenses:Losses:Other", "credit": format!("Liabilities:Merchants:M-{}:Available", merchant.id),
        "amount": 700, "reason": "Indisponibilidade de sábado", "reference": "CHAMADO-17",
    });
    for (member, value, field) in [
        ("debit", json!("Expenses:Losses:Clawback"), "debit"),
        ("credit", json!(format!("Liabilities:Merchants:M-{}:Pending", merchant.id)), "credit"),
        ("credit", json!(format!("Liabilities:Merchants:M-{ana}:Available")), "credit"),
        ("amount", json!(0), "amount"),
        ("effective_date", json!("2026-11-01"), "effective_date"),
    ] {
        let mut wrong = wanted.clone();
        wrong[member] = value;
        let refused = world.ops_post("/ops/entries", &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    let asked = world.ops_post("/ops/entries", &wanted).await.expect(201);
    assert_eq!((&asked["credit"], &asked["status"]), (&wanted["credit"], &json!("pending")));
    let id = text(&asked["id"]);
    assert_eq!(merchant.balance().await[0], 0, "nothing moves yet");
    let waiting = queue(&world).await;
    assert_eq!([&waiting[0]["id"], &waiting[0]["merchant_id"]], [&*id, &*merchant.id]);
    let preview = world.ops_get(&format!("/ops/queue/{id}/preview")).await.expect(200);
    assert!(preview["balances"].to_string().contains("\"after\":204"), "{preview}");
    let path = format!("/ops/entries/{id}/approve");
    world.ops_post(&path, &json!({})).await.refused(409, "second_operator_needed");
    let repeated = async |wanted: &Value| {
        let refused = world.ops_post("/ops/entries", wanted).await.refused(409, "reference_repeated");
        assert_eq!(refused["entry_id"], id, "{refused}");
    };
    repeated(&wanted).await;
    let approved = world.second_ops_post(&path, &[], &json!({})).await.expect(200);
    assert_eq!(approved["status"], "approved");
    world.second_ops_post(&path, &[], &json!({})).await.refused(409, "already_decided");
    repeated(&wanted).await;
    repeated(&with(&wanted, "/credit", json!(format!("Liabilities:Recipients:R-{ana}:Available")))).await;
    let again = with(&wanted, "/reference_repeats", json!(true));
    let again = text(&world.ops_post("/ops/entries", &again).await.expect(201)["id"]);
    let reject = json!({"notes": "Já foi dado"});
    world.ops_post(&format!("/ops/entries/{again}/reject"), &reject).await.expect(200);
    // One that was rejected holds no reference; nor does one of another merchant.
    let other = with(&wanted, "/reference", json!("CHAMADO-18"));
    let rejected = text(&world.ops_post("/ops/entries", &other).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/entries/{rejected}/reject"), &reject).await.expect(200);
    let waits = text(&world.ops_post("/ops/entries", &other).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/entries/{waits}/reject"), &reject).await.expect(200);
    let second = world.merchant().await;
    let of_second = with(&wanted, "/credit", json!(format!("Liabilities:Merchants:M-{}:Available", second.id)));
    world.ops_post("/ops/entries", &of_second).await.expect(201);

    // It repays the Deficit of 496 first.
    assert_eq!(merchant.get("/api/balance").await.expect(200)["deficit"], 0);
    assert_eq!(merchant.balance().await[0], 204);
    let lines = merchant.get("/api/balance/operations?type=adjustment").await.expect(200);
    let [line] = &items(&lines)[..] else { panic!("{lines}") };
    assert_eq!((&line["amount"], &line["account"]), (&json!(700), &json!("available")));
    let events = merchant.get("/api/events").await.expect(200);
    let event = items(&events).iter().find(|event| event["event"] == "adjustment.created").unwrap();
    let event = merchant.get(&format!("/api/events/{}", text(&event["id"]))).await.expect(200);
    assert_eq!(
        event["adjustment"],
        json!({"id": id, "amount": 700, "reason": "Indisponibilidade de sábado", "reference": "CHAMADO-17"})
    );
    assert_eq!(balance(&world, &format!("P-{}", merchant.id), "Expenses:Losses:Other").await, 700);
    world.check_books().await;
}

/// The house gives money to a recipient: what it owes is paid first, and it withdraws the rest.
#[tokio::test]
async fn goodwill_to_a_recipient_is_credited_by_two_operators() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = with_clawback(&world, &merchant).await;
    let credit = format!("Liabilities:Recipients:R-{ana}:Available");
    let wanted = json!({"debit": "Expenses:Losses:Other", "credit": credit, "amount": 1_100,
        "reason": "Indisponibilidade de sábado", "reference": "CHAMADO-17"});
    let asked = world.ops_post("/ops/entries", &wanted).await.expect(201);
    assert_eq!([&asked["debit"], &asked["credit"]], [&wanted["debit"], &wanted["credit"]]);
    let id = text(&asked["id"]);
    let item = queue(&world).await[0].clone();
    assert_eq!([&item["name"], &item["recipient_id"]], ["Ana", &ana], "{item}");
    let foreseen = DecisionPreview::of(&world, &id, "approve").await;
    let approve = format!("/ops/entries/{id}/approve");
    world.ops_post(&approve, &json!({})).await.refused(409, "second_operator_needed");
    world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    foreseen.is_booked(&world, 1).await;
    world.advance(0).await;
    let statement = merchant.statement(&ana).await;
    assert_eq!(statement["balance"]["available"], 300, "1,100 less the debt of 800: {statement}");
    let lines = merchant.get("/api/balance/operations?type=adjustment").await.expect(200);
    assert_eq!(items(&lines).len(), 0, "the merchant has none of it");
    let events = merchant.get("/api/events").await.expect(200);
    let event = items(&events).iter().find(|event| event["event"] == "adjustment.created").unwrap();
    let event = merchant.get(&format!("/api/events/{}", text(&event["id"]))).await.expect(200);
    assert_eq!((&event["adjustment"]["recipient_id"], &event["adjustment"]["amount"]), (&json!(ana), &json!(1_100)));
    // A split that is wholly taken back stays at nothing, before and after the next goodwill.
    let taken = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let refund = json!({"payment_id": taken["txid"], "amount": 4_000, "reason": "x"});
    let refund = merchant.post("/api/refunds", &with_splits(refund, &[(&ana, 1_000)])).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    world.advance(0).await;
    let left = async || {
        let statement = merchant.statement(&ana).await;
        let split = items(&statement).iter().find(|split| split["payment_id"] == taken["txid"]).unwrap();
        (split["amount_cents"].as_i64().unwrap(), statement["balance"]["available"].as_i64().unwrap())
    };
    // The goodwill that was left paid 300 of it.
    assert_eq!(left().await, (300, 300));
    let more = with(&with(&wanted, "/reference", json!("CHAMADO-18")), "/amount", json!(700));
    let more = text(&world.ops_post("/ops/entries", &more).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{more}/approve"), &[], &json!({})).await.expect(200);
    world.advance(0).await;
    assert_eq!(left().await, (300, 1_000));
    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    assert_eq!((&withdrawal["amount_cents"], left().await), (&json!(1_000), (300, 0)));
    let id = text(&withdrawal["withdrawal_id"]);
    world.ops_post(&format!("/ops/withdrawals/{id}/reject"), &json!({"notes": "não"})).await.expect(200);
    assert_eq!(left().await, (300, 1_000));
    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    world.approve(&text(&withdrawal["withdrawal_id"])).await.expect(200);
    assert_eq!(left().await, (300, 0));
    assert_eq!(balance(&world, &format!("P-{}", merchant.id), "Expenses:Losses:Other").await, 1_800);
    world.check_books().await;
}
