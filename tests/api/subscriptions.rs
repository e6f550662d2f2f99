//! Stored cards and subscriptions: what they charge, and when.

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::plans::{PLANS, plan};
use crate::world::*;

const SUBSCRIPTIONS: &str = "/api/recurrency/subscriptions";
const CARDS: &str = "/api/cards";

fn customer() -> Value {
    card(1, APPROVED)["customer"].clone()
}

/// A card to be stored.
fn stored(number: &str) -> Value {
    without(&card(1, number), "/amount")
}

fn pix_of(plan: &Value) -> Value {
    json!({"plan_id": plan["id"], "customer": customer(), "payment_method": "pix"})
}

fn card_of(plan: &Value, token: &str) -> Value {
    json!({"plan_id": plan["id"], "customer": customer(), "payment_method": "credit_card", "card_token": token})
}

impl Merchant<'_> {
    async fn token(&self, number: &str) -> String {
        text(&self.post(CARDS, &stored(number)).await.expect(201)["card_token"])
    }

    async fn plan(&self, body: Value) -> Value {
        self.post(PLANS, &body).await.expect(201)
    }

    /// The id of a new subscription.
    async fn subscribe(&self, body: &Value) -> String {
        text(&self.post(SUBSCRIPTIONS, body).await.expect(201)["id"])
    }

    async fn subscription(&self, id: &str) -> Value {
        self.get(&format!("{SUBSCRIPTIONS}/{id}")).await.expect(200)
    }

    /// Where a subscription stands: status, cycle, and the day in Sao Paulo on which it is charged
    /// next.
    async fn standing(&self, id: &str) -> (String, u64, Option<String>) {
        let read = self.subscription(id).await;
        let next = read["next_charge_at"].as_str().map(|_| day(time(&read["next_charge_at"])));
        (text(&read["status"]), read["cycle"].as_u64().unwrap(), next)
    }

    /// Paid and unpaid cycles of a subscription, and why the last one was not paid.
    async fn cycles(&self, id: &str) -> Value {
        let read = self.subscription(id).await;
        json!([read["paid_cycles"], read["unpaid_cycles"], read["unpaid_reason"]])
    }

    /// The charges of a subscription, oldest first.
    async fn charges_of(&self, id: &str) -> Vec<Value> {
        let list = self.get(&format!("{SUBSCRIPTIONS}/{id}/charges?per_page=100")).await.expect(200);
        let charges: Vec<Value> = items(&list).iter().rev().cloned().collect();
        assert_eq!(list["total"], charges.len());
        charges
    }

    async fn change(&self, id: &str, verb: &str) -> Answer {
        self.post_raw(&format!("{SUBSCRIPTIONS}/{id}/{verb}"), &[], "").await
    }
}

fn day(at: DateTime<Utc>) -> String {
    (at - TimeDelta::hours(3)).format("%Y-%m-%d").to_string()
}

fn of<'a>(charges: &'a [Value], name: &str) -> Vec<&'a Value> {
    charges.iter().map(|charge| &charge[name]).collect()
}

/// The same day this number of months later, or that month's last.
fn months_later(at: DateTime<Utc>, months: u32) -> DateTime<Utc> {
    let local = at - TimeDelta::hours(3);
    local.checked_add_months(chrono::Months::new(months)).unwrap() + TimeDelta::hours(3)
}

#[tokio::test]
async fn a_card_is_stored_without_its_number() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let answer = merchant.post_keyed(CARDS, "k", &stored(APPROVED)).await.expect(201);
    has_exactly(&answer, &["card_token", "bin", "last4", "brand"]);
    assert_eq!([&answer["bin"], &answer["last4"], &answer["brand"]], ["411111", "1111", "visa"]);
    let again = merchant.post_keyed(CARDS, "k", &with(&stored(APPROVED), "/credit_card/cvv", json!("111"))).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "the security code is not stored");
    assert_eq!(again.expect(201), answer);
    let named_card = json!({"customer": customer(), "card": stored(APPROVED)["credit_card"]});
    assert_ne!(merchant.post(CARDS, &named_card).await.expect(201)["card_token"], answer["card_token"]);
    for (pointer, value, code) in [
        ("/credit_card/number", json!("4111111111111112"), "invalid_card_data"),
        ("/credit_card/cvv", json!("1"), "invalid_card_data"),
        ("/credit_card/exp_year", json!(2020), "invalid_card_data"),
        ("/credit_card", Value::Null, "invalid_card_data"),
        ("/customer/document", json!("12345678900"), "validation_failed"),
        ("/customer", Value::Null, "validation_failed"),
    ] {
        merchant.post(CARDS, &with(&stored(APPROVED), pointer, value)).await.refused(400, code);
    }
    let plan = other.plan(plan("ouro", 4_990, 12)).await;
    let foreign = card_of(&plan, &text(&answer["card_token"]));
    let refused = other.post(SUBSCRIPTIONS, &foreign).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["field"], "card_token");
}

/// Shows: 3.7.disabled.
#[tokio::test]
async fn a_subscription_answers_and_is_checked() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let ana = merchant.recipient("Ana", 1).await;
    let dora = merchant.draft("Dora", 2).await;
    let token = merchant.token(APPROVED).await;
    let plan = merchant.plan(with(&plan("ouro", 4_990, 12), "/initialGraceCycles", json!(1))).await;
    let valid = with_splits(card_of(&plan, &token), &[(&ana, 1_000)]);
    let foreign = other.plan(crate::plans::plan("ouro", 1, 1)).await;
    // The draft is submitted before, so that nothing is booked beside what is refused.
    world.advance(0).await;
    let before = world.trace(&[&merchant]).await;
    for (pointer, value, code, field) in [
        ("/plan_id", json!("x"), "validation_failed", "plan_id"),
        ("/plan_id", Value::Null, "validation_failed", "plan_id"),
        ("/customer/email", json!("x"), "validation_failed", "customer.email"),
        ("/payment_method", json!("debit_card"), "validation_failed", "payment_method"),
        ("/payment_method", Value::Null, "validation_failed", "payment_method"),
        ("/payment_method", json!("pix"), "validation_failed", "card_token"),
        ("/card_token", Value::Null, "validation_failed", "card_token"),
        ("/card_token", json!("x"), "validation_failed", "card_token"),
        ("/card_token", plan["id"].clone(), "validation_failed", "card_token"),
        ("/splits/0/amount", json!("1"), "validation_failed", "splits[0].amount"),
        ("/splits/0/sub_recipient_id", json!(dora), "recipient_not_active", "splits[0].sub_recipient_id"),
        ("/splits/0/sub_recipient_id", plan["id"].clone(), "recipient_not_found", "splits[0].sub_recipient_id"),
    ] {
        let refused = merchant.post(SUBSCRIPTIONS, &with(&valid, pointer, value)).await.refused(400, code);
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    merchant
        .post(SUBSCRIPTIONS, &with(&valid, "/splits/0/amount", json!(4_990)))
        .await
        .refused(400, "splits_reach_total");
    merchant.post(SUBSCRIPTIONS, &with(&valid, "/plan_id", json!(ana))).await.refused(404, "not_found");
    merchant.post(SUBSCRIPTIONS, &with(&valid, "/plan_id", foreign["id"].clone())).await.refused(404, "not_found");
    assert_eq!(world.trace(&[&merchant]).await, before);
    assert_eq!(merchant.get(SUBSCRIPTIONS).await.expect(200)["total"], 0);

    let created = merchant.post_keyed(SUBSCRIPTIONS, "k", &valid).await.expect(201);
    let fields = [
        "id",
        "plan_id",
        "customer",
        "payment_method",
        "card_token",
        "splits",
        "status",
        "cycle",
        "paid_cycles",
        "unpaid_cycles",
        "unpaid_reason",
        "next_charge_at",
        "started_at",
        "cancelled_at",
    ];
    has_exactly(&created, &fields);
    is_uuid(&created["id"]);
    let expected =
        json!({"name": "João Ávila", "email": "joao@example.com", "document": "***.456.789-**", "phone": null});
    assert_eq!(created["customer"], expected);
    assert_eq!(created["splits"], json!([{"sub_recipient_id": ana, "amount": 1_000}]));
    let said =
        ["plan_id", "payment_method", "card_token", "status", "cycle", "cancelled_at"].map(|name| &created[name]);
    assert_eq!(said, [&plan["id"], &json!("credit_card"), &json!(token), &json!("pending"), &json!(0), &Value::Null]);
    let started = time(&created["started_at"]);
    assert_eq!(time(&created["next_charge_at"]), months_later(started, 1));
    let again = merchant.post_keyed(SUBSCRIPTIONS, "k", &valid).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(201), created);

    let id = text(&created["id"]);
    assert_eq!(merchant.subscription(&id).await, created);
    let pix = merchant.subscribe(&pix_of(&plan)).await;
    let list = merchant.get(SUBSCRIPTIONS).await.expect(200);
    has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
    assert_eq!(items(&list)[1], created);
    assert_eq!((&items(&list)[0]["id"], &items(&list)[0]["card_token"]), (&json!(pix), &Value::Null));
    assert_eq!(merchant.charges_of(&id).await, [Value::Null; 0]);
    for path in ["", "/charges"] {
        other.get(&format!("{SUBSCRIPTIONS}/{id}{path}")).await.refused(404, "not_found");
    }
    for verb in ["pause", "resume", "cancel"] {
        other.change(&id, verb).await.refused(404, "not_found");
    }
    assert_eq!(other.get(SUBSCRIPTIONS).await.expect(200)["total"], 0);

    let path = format!("{PLANS}/{}", text(&plan["id"]));
    world.send(reqwest::Method::DELETE, &path, &[("token", &merchant.key)], "").await.expect(200);
    merchant.post(SUBSCRIPTIONS, &valid).await.refused(409, "plan_disabled");
    world.advance_to(months_later(time(&created["started_at"]), 1)).await;
    assert_eq!(merchant.charges_of(&id).await.len(), 1, "existing subscriptions go on");
    let closed = world
        .open(json!({"name": "Loja", "document": cnpj(3), "split_enabled": false, "cashout_enabled": false}))
        .await;
    closed.post(SUBSCRIPTIONS, &valid).await.refused(422, "split_not_enabled");
}

/// Shows: 2.12.initial-fee-rule.
#[tokio::test]
async fn twelve_months_in_one_step_are_twelve_charges_each_on_its_date() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let token = merchant.token(APPROVED).await;
    let fee = json!({"description": "Adesão", "amount": 2_000, "cycles": 2});
    let plan = merchant.plan(with(&plan("ouro", 4_990, 12), "/initialFee", fee)).await;
    let id = merchant.subscribe(&with_splits(card_of(&plan, &token), &[(&ana, 1_000)])).await;
    let started = time(&merchant.subscription(&id).await["started_at"]);
    world.advance(0).await;
    let charges = merchant.charges_of(&id).await;
    assert_eq!(of(&charges, "amount"), [6_990]);
    assert_eq!(of(&charges, "status"), ["CONCLUIDA"]);
    assert_eq!(charges[0]["payer"]["name"], "João Ávila");
    assert_eq!(charges[0]["card"]["last4"], "1111");
    assert_eq!(charges[0]["splits"], json!([{"sub_recipient_id": ana, "amount": 1_000}]));
    let next = day(months_later(started, 1));
    assert_eq!(merchant.standing(&id).await, ("active".to_owned(), 1, Some(next)));

    world.advance(400 * DAY).await;
    let charges = merchant.charges_of(&id).await;
    assert_eq!(charges.len(), 12);
    for (months, charge) in (0..).zip(&charges) {
        let (due, made) = (months_later(started, months), time(&charge["created_at"]));
        assert!(made >= due && made - due < TimeDelta::seconds(60), "{months}: due {due}, made {made}");
        assert_eq!(charge["amount"], if months < 2 { 6_990 } else { 4_990 });
        assert_eq!(charge["status"], "CONCLUIDA");
    }
    // Months of America/Sao_Paulo: late on the 28th of February it is March in UTC.
    let dates: std::collections::BTreeSet<_> =
        charges.iter().map(|charge| (time(&charge["created_at"]) - TimeDelta::hours(3)).month()).collect();
    assert_eq!(dates.len(), 12);
    assert_eq!(merchant.standing(&id).await, ("completed".to_owned(), 12, None));
    assert_eq!(merchant.get("/api/charges?payment_method=credit_card").await.expect(200)["total"], 12);
    assert_eq!(merchant.recipient_balance(&ana).await, [12_000, 0]);
    let accounts = world.accounts().await;
    let sales = |name: &str| accounts[&(merchant.ledger(), format!("Income:Sales:{name}"))];
    assert_eq!((sales("Card"), sales("InitialFee")), (-12 * 4_990, -2 * 2_000));
    for verb in ["pause", "resume", "cancel"] {
        merchant.change(&id, verb).await.refused(409, "state_conflict");
    }
    world.check_books().await;
    world.advance(400 * DAY).await;
    assert_eq!(merchant.charges_of(&id).await.len(), 12);
}

#[tokio::test]
async fn a_refused_card_is_tried_again_after_one_three_and_five_days() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let token = merchant.token(REFUSED).await;
    let plan = merchant.plan(plan("ouro", 4_990, 2)).await;
    let id = merchant.subscribe(&card_of(&plan, &token)).await;
    let started = time(&merchant.subscription(&id).await["started_at"]);
    world.advance(0).await;
    assert_eq!(merchant.standing(&id).await, ("pending".to_owned(), 1, Some(day(started + TimeDelta::days(1)))));
    world.advance(5 * DAY - 60).await;
    assert_eq!(merchant.standing(&id).await, ("pending".to_owned(), 1, Some(day(started + TimeDelta::days(5)))));
    world.advance(120).await;
    let charges = merchant.charges_of(&id).await;
    let days: Vec<i64> = charges.iter().map(|charge| (time(&charge["created_at"]) - started).num_days()).collect();
    assert_eq!(days, [0, 1, 3, 5]);
    assert!(charges.iter().all(|charge| charge["status"] == "RECUSADA"), "{charges:?}");
    let next = day(months_later(started, 1));
    assert_eq!(merchant.standing(&id).await, ("past_due".to_owned(), 1, Some(next)));
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    world.advance(60 * DAY).await;
    assert_eq!(merchant.charges_of(&id).await.len(), 8, "a cycle that was not paid does not end it");
    assert_eq!(merchant.standing(&id).await, ("past_due".to_owned(), 2, None));
    assert_eq!(merchant.cycles(&id).await, json!([0, 2, "card_refused"]));
    for verb in ["pause", "resume", "cancel"] {
        merchant.change(&id, verb).await.refused(409, "state_conflict");
    }
    assert_eq!(merchant.balance().await, [0, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn a_silent_acquirer_is_asked_again_and_charges_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let token = merchant.token(SILENT).await;
    let plan = merchant.plan(plan("ouro", 4_990, 2)).await;
    let id = merchant.subscribe(&card_of(&plan, &token)).await;
    world.advance(0).await;
    assert_eq!(of(&merchant.charges_of(&id).await, "cardStatus"), ["processing"]);
    assert_eq!(merchant.standing(&id).await.0, "pending");
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    world.advance(61).await;
    assert_eq!(of(&merchant.charges_of(&id).await, "cardStatus"), ["captured"]);
    assert_eq!((merchant.standing(&id).await.0, merchant.standing(&id).await.1), ("active".to_owned(), 1));
}

#[tokio::test]
async fn a_pix_subscription_has_one_code_a_cycle() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let plan = merchant.plan(with(&plan("ouro", 8_000, 3), "/billingCycle", json!("WEEKLY"))).await;
    let id = merchant.subscribe(&with_splits(pix_of(&plan), &[(&ana, 1_000)])).await;
    let started = time(&merchant.subscription(&id).await["started_at"]);
    world.advance(0).await;
    let first = merchant.charges_of(&id).await;
    assert_eq!(of(&first, "status"), ["pending"]);
    assert!(first[0]["pixCopiaECola"].is_string());
    assert_eq!(time(&first[0]["expires_at"]), started + TimeDelta::days(7));
    let week = |weeks: i64| Some(day(started + TimeDelta::days(7 * weeks)));
    assert_eq!(merchant.standing(&id).await, ("pending".to_owned(), 1, week(1)));
    merchant.pay(&text(&first[0]["txid"])).await.expect(200);
    assert_eq!(merchant.standing(&id).await, ("active".to_owned(), 1, week(1)));

    world.advance(7 * DAY + 60).await;
    assert_eq!(merchant.standing(&id).await, ("active".to_owned(), 2, week(2)));
    world.advance(7 * DAY).await;
    let charges = merchant.charges_of(&id).await;
    assert_eq!(of(&charges, "status"), ["CONCLUIDA", "cancelled", "pending"]);
    assert_eq!(merchant.standing(&id).await, ("past_due".to_owned(), 3, None));
    assert_eq!(merchant.cycles(&id).await, json!([1, 1, "pix_not_paid"]));
    merchant.pay(&text(&charges[2]["txid"])).await.expect(200);
    assert_eq!(merchant.standing(&id).await, ("past_due".to_owned(), 3, None), "a cycle was never paid");
    assert_eq!(merchant.cycles(&id).await, json!([2, 1, null]));
    assert_eq!(merchant.recipient_balance(&ana).await, [2_000, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn a_subscription_is_paused_resumed_and_cancelled() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let token = merchant.token(APPROVED).await;
    let plan = merchant.plan(plan("ouro", 4_990, 12)).await;
    let id = merchant.subscribe(&card_of(&plan, &token)).await;
    let started = time(&merchant.subscription(&id).await["started_at"]);
    world.advance(0).await;
    for _ in 0..2 {
        let paused = merchant.change(&id, "pause").await.expect(200);
        assert_eq!((&paused["status"], &paused["next_charge_at"]), (&json!("paused"), &Value::Null));
        assert_eq!(paused, merchant.subscription(&id).await);
    }
    world.advance(70 * DAY).await;
    assert_eq!(merchant.charges_of(&id).await.len(), 1);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let path = format!("{SUBSCRIPTIONS}/{id}/resume");
    let resumed = merchant.post_raw(&path, &[("idempotency-key", "r")], "").await.expect(200);
    assert_eq!(merchant.standing(&id).await, ("active".to_owned(), 1, Some(day(months_later(started, 3)))));
    world.advance(30 * DAY).await;
    assert_eq!(merchant.standing(&id).await.1, 2, "what was missed is neither charged nor counted");
    let again = merchant.post_raw(&path, &[("idempotency-key", "s")], "").await.expect(200);
    assert_eq!(again["cycle"], 2);

    let before = world.cut().await;
    for _ in 0..2 {
        let cancelled = merchant.change(&id, "cancel").await.expect(200);
        assert_eq!((&cancelled["status"], &cancelled["next_charge_at"]), (&json!("cancelled"), &Value::Null));
        time(&cancelled["cancelled_at"]);
    }
    assert_eq!(world.cut().await.records(), before.records() + 1, "the second time changes nothing");
    for verb in ["pause", "resume"] {
        merchant.change(&id, verb).await.refused(409, "state_conflict");
    }
    assert_eq!(resumed["status"], "active");
    world.advance(100 * DAY).await;
    assert_eq!(merchant.charges_of(&id).await.len(), 2);
    assert_eq!(items(&merchant.get(SUBSCRIPTIONS).await.expect(200))[0]["status"], "cancelled");
}

#[tokio::test]
async fn cancelling_a_subscription_cancels_its_open_code() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let plan = merchant.plan(plan("ouro", 8_000, 12)).await;
    let id = merchant.subscribe(&pix_of(&plan)).await;
    world.advance(0).await;
    let charge = text(&merchant.charges_of(&id).await[0]["txid"]);
    merchant.change(&id, "cancel").await.expect(200);
    assert_eq!(merchant.get(&format!("/api/charges/{charge}")).await.expect(200)["status"], "cancelled");
    merchant.pay(&charge).await.refused(409, "charge_not_pending");
    assert_eq!(merchant.standing(&id).await, ("cancelled".to_owned(), 1, None));
    world.check_books().await;
}

#[tokio::test]
async fn each_day_has_its_own_tries() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let token = merchant.token(REFUSED).await;
    let plan = merchant.plan(with(&plan("ouro", 4_990, 3), "/billingCycle", json!("DAILY"))).await;
    let id = merchant.subscribe(&card_of(&plan, &token)).await;
    let started = time(&merchant.subscription(&id).await["started_at"]);
    world.advance(9 * DAY).await;
    let charges = merchant.charges_of(&id).await;
    let mut days: Vec<i64> = charges.iter().map(|charge| (time(&charge["created_at"]) - started).num_days()).collect();
    days.sort_unstable();
    // Days 0, 1 and 2, and each again after 1, 3 and 5 days.
    assert_eq!(days, [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7]);
    assert_eq!(merchant.standing(&id).await, ("past_due".to_owned(), 3, None));
    assert_eq!(merchant.cycles(&id).await, json!([0, 3, "card_refused"]));
    world.check_books().await;
}

#[tokio::test]
async fn a_cycle_that_the_account_may_not_split_passes_without_a_charge() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let token = merchant.token(APPROVED).await;
    let plan = merchant.plan(with(&plan("ouro", 4_990, 3), "/billingCycle", json!("DAILY"))).await;
    let id = merchant.subscribe(&with_splits(card_of(&plan, &token), &[(&ana, 1_000)])).await;
    world.advance(0).await;
    let path = format!("/ops/merchants/{}", merchant.id);
    let may_split = async |may: bool| {
        world.ops_send(reqwest::Method::PATCH, &path, &[], json!({"split_enabled": may}).to_string()).await.expect(200);
    };
    may_split(false).await;
    world.advance(DAY).await;
    assert_eq!((merchant.charges_of(&id).await.len(), merchant.standing(&id).await.0), (1, "past_due".to_owned()));
    assert_eq!(merchant.cycles(&id).await, json!([1, 1, "split_not_enabled"]));
    may_split(true).await;
    world.advance(DAY).await;
    assert_eq!((merchant.charges_of(&id).await.len(), merchant.standing(&id).await.0), (2, "past_due".to_owned()));
    assert_eq!(merchant.cycles(&id).await, json!([2, 1, null]));
}
