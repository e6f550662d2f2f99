//! Returns of withdrawals that the institution did not report: two operators book that the money
//! came back, however long ago it was paid.

use chrono::Duration;
use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{ANA, Browser, RUI, world_of_three};
use crate::console_books::DecisionPreview;
use crate::world::*;

/// The id of a withdrawal of 1000 centavos that is paid, and its recipient.
async fn paid(world: &World, merchant: &Merchant<'_>, account: &str) -> (String, String) {
    let body = with(&individual("Ana", &cpf(1)), "/bank_account/conta", json!(account));
    let ana = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/approve"), &json!({})).await.expect(200);
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&id).await.expect(200);
    (id, ana)
}

fn came_back(withdrawal: &str) -> Value {
    json!({"kind": "withdrawal_returned", "withdrawal": withdrawal, "reason": "Conta encerrada",
        "reference": "EXTRATO-9"})
}

fn approve(entry: &Value) -> String {
    format!("/ops/entries/{}/approve", text(&entry["id"]))
}

async fn queue(world: &World) -> Vec<Value> {
    items(&world.ops_get("/ops/queue?kind=entry").await.expect(200)).to_vec()
}

/// The status of the recipient's newest withdrawal, and its notes.
async fn newest(merchant: &Merchant<'_>, recipient: &str) -> [Value; 2] {
    let listed = merchant.withdrawals(recipient).await;
    ["status", "notes"].map(|name| listed[0][name].clone())
}

/// The rows of all exports that a withdrawal's return makes.
async fn rows(world: &World) -> Vec<Value> {
    let exported = world.ops_get("/ops/export").await.text;
    let rows = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["event"] == "withdrawal_returned").collect()
}

#[tokio::test]
async fn two_operators_book_that_an_old_withdrawal_came_back() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (id, ana) = paid(&world, &merchant, "12345").await;
    // The institution is not asked any more, and the recipient's state has forgotten it.
    world.advance(40 * DAY).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 30)])).await;
    let next = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.reject(&next, "ainda não").await.expect(200);
    assert_eq!(merchant.recipient_money(&ana).await, [30, 0, 0, 1_000]);

    let headers = [("idempotency-key", "volta-1"), ("content-type", "application/json")];
    let ask = || world.ops_send(Method::POST, "/ops/entries", &headers, came_back(&id).to_string());
    let entry = ask().await.expect(201);
    let replayed = ask().await;
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(replayed.expect(201), entry, "once");
    let fields = ["id", "status", "debit", "credit", "amount", "reason", "reference", "requested_by", "created_at"];
    has_exactly(&entry, &[&fields[..], &["withdrawal"]].concat());
    assert_eq!([&entry["status"], &entry["withdrawal"]], ["pending", &*id]);
    assert_eq!([&entry["debit"], &entry["amount"]], [&json!("Assets:Bank:Pix"), &json!(1_000)]);
    assert_eq!(entry["credit"], format!("Liabilities:Recipients:R-{ana}:Available"));
    world.ops_post("/ops/entries", &came_back(&id)).await.refused(409, "return_pending");
    let waits = queue(&world).await;
    assert_eq!(
        [&waits[0]["id"], &waits[0]["withdrawal"], &waits[0]["recipient_id"]],
        [&entry["id"], &json!(id), &json!(ana)]
    );
    assert_eq!(merchant.recipient_money(&ana).await, [30, 0, 0, 1_000], "nothing is booked yet");

    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(queue(&world).await, waits, "it outlives the process");
    world.ops_post(&approve(&entry), &json!({})).await.refused(409, "second_operator_needed");
    let foreseen = DecisionPreview::of(&world, &text(&entry["id"]), "approve").await;
    let nothing = json!({});
    let path = approve(&entry);
    let answers = futures_of(8, |_| world.second_ops_post(&path, &[], &nothing)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    foreseen.is_booked(&world, 1).await;
    world.second_ops_post(&path, &[], &nothing).await.refused(409, "already_decided");
    world.ops_post("/ops/entries", &came_back(&id)).await.refused(409, "withdrawal_not_paid");
    assert!(queue(&world).await.is_empty());
    assert_eq!(merchant.recipient_money(&ana).await, [1_030, 0, 0, 0]);
    let listed = merchant.withdrawals(&ana).await;
    let shown = listed.iter().find(|listed| listed["id"] == json!(id)).unwrap();
    assert_eq!([&shown["status"], &shown["notes"]], ["rejected", "Conta encerrada"]);
    let statuses: Vec<_> = items(&merchant.statement(&ana).await).iter().map(|item| text(&item["status"])).collect();
    assert_eq!(statuses, ["available", "available"]);
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let of_it = items(&events).iter().filter(|event| event["withdrawal"]["id"] == json!(id));
    let of_it: Vec<_> = of_it.map(|event| text(&event["event"])).collect();
    assert_eq!(of_it, ["withdrawal.rejected", "withdrawal.approved"]);

    let booked = rows(&world).await;
    assert_eq!(booked.len(), 4);
    for row in &booked {
        let said = ["withdrawal", "house_entry", "reference", "operator"].map(|name| text(&row[name]));
        assert_eq!(said, [id.clone(), text(&entry["id"]), "EXTRATO-9".to_owned(), "second".to_owned()]);
    }
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let of_entry: Vec<_> = items(&audit)[..2].iter().map(|row| row.to_string()).collect();
    let said = [["approve", "\"second\""], ["request", "Conta encerrada"]];
    assert!(said.iter().zip(&of_entry).all(|(said, row)| said.iter().all(|said| row.contains(said))), "{of_entry:?}");
    world.check_books().await;

    // All of it can be sent again, and comes back again.
    let again = merchant.withdraw(&ana).await.expect(201);
    assert_eq!(again["amount_cents"], 1_030);
    world.approve(&text(&again["withdrawal_id"])).await.expect(200);
    let entry = world.ops_post("/ops/entries", &came_back(&text(&again["withdrawal_id"]))).await.expect(201);
    world.second_ops_post(&approve(&entry), &[], &nothing).await.expect(200);
    let world = world.restarted().await;
    assert_eq!(rows(&world).await.len(), 8);
    assert_eq!(world.ops_get(&format!("/ops/entries/{}", text(&entry["id"]))).await.expect(200)["status"], "approved");
    world.check_books().await;
}

#[tokio::test]
async fn a_withdrawal_comes_back_once_whoever_tells_it() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    // Its bank sends the money back after a day.
    let (id, ana) = paid(&world, &merchant, "99991").await;
    let entry = world.ops_post("/ops/entries", &came_back(&id)).await.expect(201);
    world.advance(2 * DAY).await;
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    world.second_ops_post(&approve(&entry), &[], &json!({})).await.refused(409, "withdrawal_not_paid");
    let preview = format!("/ops/queue/{}/preview", text(&entry["id"]));
    world.ops_get(&preview).await.refused(409, "withdrawal_not_paid");
    assert_eq!(queue(&world).await.len(), 1, "it waits, to be rejected");
    let reject = format!("/ops/entries/{}/reject", text(&entry["id"]));
    let rejected = world.ops_post(&reject, &json!({"notes": "O banco já disse"})).await.expect(200);
    assert_eq!([&rejected["status"], &rejected["notes"]], ["rejected", "O banco já disse"]);
    assert!(queue(&world).await.is_empty());
    world.second_ops_post(&approve(&entry), &[], &json!({})).await.refused(409, "already_decided");

    // Operators are faster than the institution.
    let again = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&again).await.expect(200);
    let entry = world.ops_post("/ops/entries", &came_back(&again)).await.expect(201);
    world.second_ops_post(&approve(&entry), &[], &json!({})).await.expect(200);
    world.advance(40 * DAY).await;
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(newest(&merchant, &ana).await, [json!("rejected"), json!("Conta encerrada")]);
    let decided: Vec<_> = rows(&world).await.iter().map(|row| row["house_entry"].is_string()).collect();
    assert_eq!(decided, [[false; 4], [true; 4]].concat());
    world.check_books().await;
}

#[tokio::test]
async fn only_a_paid_withdrawal_comes_back_by_hand() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (id, ana) = paid(&world, &merchant, "12345").await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 30)])).await;
    let pending = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let before = world.cut().await;
    world.ops_post("/ops/entries", &came_back(&pending)).await.refused(409, "withdrawal_not_paid");
    let body = came_back(&id);
    for (body, field) in [
        (with(&body, "/kind", json!("withdrawal")), "kind"),
        (with(&body, "/kind", json!(1)), "kind"),
        (without(&body, "/withdrawal"), "withdrawal"),
        (with(&body, "/withdrawal", json!("x")), "withdrawal"),
        (with(&body, "/withdrawal", json!("01890000-0000-8000-8000-000000000000")), "withdrawal"),
        (with(&body, "/withdrawal", json!(ana)), "withdrawal"),
        (with(&body, "/bank", json!("Assets:Bank:Own")), "bank"),
        (with(&body, "/amount", json!(1_000)), "amount"),
        (with(&body, "/debit", json!("Assets:Bank:Pix")), "debit"),
        (with(&body, "/reason", json!("")), "reason"),
        (without(&body, "/reference"), "reference"),
        (with(&body, "/effective_date", json!("2999-01-01")), "effective_date"),
        (with(&body, "/effective_date", json!("2020-01-01")), "effective_date"),
    ] {
        let refused = world.ops_post("/ops/entries", &body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{body}");
    }
    assert_eq!(world.cut().await, before);
    world.reject(&pending, "why").await.expect(200);
    world.ops_post("/ops/entries", &came_back(&pending)).await.refused(409, "withdrawal_not_paid");
    assert!(queue(&world).await.is_empty());
    assert_eq!(merchant.recipient_money(&ana).await, [30, 0, 0, 1_000]);
}

#[tokio::test]
async fn a_return_takes_effect_on_its_day_and_not_in_a_closed_month() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (id, ana) = paid(&world, &merchant, "12345").await;
    let paid_on = world.advance(0).await - Duration::hours(3);
    let now = world.advance(70 * DAY).await - Duration::hours(3);
    let day = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d").to_string();
    let body = with(&came_back(&id), "/bank", json!("Assets:Bank:Settlement"));
    let first = with(&body, "/effective_date", json!(day(paid_on)));
    let waits = world.ops_post("/ops/entries", &first).await.expect(201);
    assert_eq!([&waits["debit"], &waits["effective_date"]], ["Assets:Bank:Settlement", &*day(paid_on)]);

    let close = format!("/ops/periods/{}/close", paid_on.format("%Y-%m"));
    world.ops_post(&close, &json!({})).await.expect(200);
    world.second_ops_post(&close, &[], &json!({})).await.expect(200);
    world.second_ops_post(&approve(&waits), &[], &json!({})).await.refused(409, "period_closed");
    let reject = format!("/ops/entries/{}/reject", text(&waits["id"]));
    world.ops_post(&reject, &json!({"notes": "mês fechado"})).await.expect(200);
    world.ops_post("/ops/entries", &first).await.refused(409, "period_closed");

    let yesterday = day(now - Duration::days(1));
    let entry = world.ops_post("/ops/entries", &with(&body, "/effective_date", json!(yesterday))).await.expect(201);
    world.second_ops_post(&approve(&entry), &[], &json!({})).await.expect(200);
    let booked = rows(&world).await;
    assert!(booked.len() == 4 && booked.iter().all(|row| row["effective_date"] == json!(yesterday)), "{booked:#?}");
    assert!(booked.iter().all(|row| row["date"] == json!(day(now))), "{booked:#?}");
    let accounts = world.accounts().await;
    let shard = format!("P-{}", merchant.id);
    assert_eq!(accounts.get(&(shard, "Assets:Bank:Settlement".to_owned())), Some(&1_000));
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn the_console_asks_for_a_return_and_another_operator_approves() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let (id, ana) = paid(&world, &merchant, "12345").await;
    let browser = Browser::signed_in(&world, ANA).await;
    let key = browser.page("/console/house").await.hidden("key");
    for (withdrawal, status) in [("nothing", 400), (&*id, 303)] {
        let fields = [
            ("key", &*key),
            ("withdrawal", withdrawal),
            ("bank", ""),
            ("reason", "Conta encerrada"),
            ("reference", "EXTRATO-9"),
            ("effective_date", ""),
        ];
        assert_eq!(browser.post("/console/house", &fields).await.status, status, "{withdrawal}");
    }
    let waits = queue(&world).await;
    let entry = text(&waits[0]["id"]);
    let said = ["Conta encerrada", "EXTRATO-9", "Return of a withdrawal", &*id, ">ana<"];
    let rui = Browser::signed_in(&world, RUI).await;
    let place = format!("/console/queue/{entry}");
    let item = rui.page(&place).await;
    item.has(&said);
    rui.page("/console/queue").await.has(&["Return of a withdrawal", "EXTRATO-9"]);
    let (key, kind) = (item.hidden("key"), item.hidden("kind"));
    let fields = [("key", &*key), ("kind", &*kind), ("decision", "approve")];
    assert_eq!(rui.post(&place, &fields).await.status, 303);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    let page = rui.page(&page_of(world.last().await)).await;
    page.has(&said[..2]);
    page.has(&["Approved by", ">rui<", ">ana<", &*id]);
}

/// A closed merchant is shown as closing while money that came back waits with its recipient.
#[tokio::test]
async fn a_closed_merchant_is_closing_while_its_recipient_has_money_again() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja Azul", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true}))
        .await;
    // Its bank sends the money back after a day.
    let (_, ana) = paid(&world, &merchant, "99991").await;
    let left = merchant.get("/api/balance").await.expect(200)["available"].clone();
    let cashout = json!({"amount": left, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    world.advance(3_600).await;
    let reason = json!({"reason": "Contrato encerrado"});
    let path = format!("/ops/merchants/{}", merchant.id);
    world.ops_post(&format!("{path}/close"), &reason).await.expect(200);
    let standing = async || {
        let shown = world.ops_get(&path).await.expect(200);
        let listed = world.ops_get("/ops/lists/merchants?status=closed").await.expect(200);
        assert_eq!(shown["closing"], true);
        assert_eq!(items(&listed).len(), usize::from(shown["closed"] == true), "{listed}");
        let page =
            Browser::signed_in(&world, OPS_TOKEN).await.page(&format!("/console/merchants/{}", merchant.id)).await;
        assert_eq!(page.html.contains(">Closed</span>"), shown["closed"] == true);
        shown["closed"].clone()
    };
    assert_eq!(standing().await, true);
    world.advance(2 * DAY).await;
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(standing().await, false);
    let open = world.ops_get(&format!("{path}/open-items")).await.expect(200);
    assert_eq!((&open["total"], &items(&open)[0]["owner"]), (&json!(1), &json!("Ana")));
    let again = world.ops_post(&format!("/ops/sub-recipients/{ana}/withdraw"), &reason).await.expect(201);
    let approve = format!("/ops/withdrawals/{}/approve", text(&again["id"]));
    world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    assert_eq!(standing().await, true, "until it comes back again");
    world.check_books().await;
}
