//! Plans: created, listed, read, disabled.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

pub(crate) const PLANS: &str = "/api/recurrency/plans";

/// A monthly plan.
pub(crate) fn plan(tag: &str, amount: i64, cycles: u32) -> Value {
    json!({"tag": tag, "amount": amount, "billingCycle": "MONTHLY", "totalBillingCycles": cycles})
}

const FIELDS: [&str; 9] = [
    "id",
    "tag",
    "amount",
    "billingCycle",
    "totalBillingCycles",
    "initialGraceCycles",
    "initialFee",
    "enabled",
    "created_at",
];

async fn disable(merchant: &Merchant<'_>, id: &str) -> Answer {
    merchant.world.send(Method::DELETE, &format!("{PLANS}/{id}"), &[("token", &merchant.key)], "").await
}

async fn tags(merchant: &Merchant<'_>) -> Vec<String> {
    let list = merchant.get(PLANS).await.expect(200);
    has_exactly(&list, &["plans"]);
    list["plans"].as_array().unwrap().iter().map(|plan| text(&plan["tag"])).collect()
}

/// Shows: 2.12.id, 2.12.tag, 2.12.amount, 2.12.totalBillingCycles, 2.12.initialGraceCycles,
/// 2.12.initialFee, 2.12.enabled, 2.12.created_at, 4.POST./api/recurrency/plans,
/// 4.GET./api/recurrency/plans, 4.GET./api/recurrency/plans/{id},
/// 4.DELETE./api/recurrency/plans/{id}.
#[tokio::test]
async fn a_plan_is_created_listed_read_and_disabled() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    assert_eq!(tags(&merchant).await, [""; 0]);
    let simple = merchant.post(PLANS, &plan("ouro", 4_990, 12)).await.expect(201);
    has_exactly(&simple, &FIELDS);
    is_uuid(&simple["id"]);
    time(&simple["created_at"]);
    let said = ["tag", "amount", "billingCycle", "totalBillingCycles", "initialGraceCycles", "initialFee", "enabled"];
    let expected = json!(["ouro", 4_990, "MONTHLY", 12, 0, null, true]);
    assert_eq!(said.map(|name| simple[name].clone()).to_vec(), *expected.as_array().unwrap());
    let fee = json!({"description": "Adesão", "amount": 2_000, "cycles": 3});
    let whole = json!({"tag": "prata", "amount": 1, "billingCycle": "BIANNUAL", "totalBillingCycles": 3,
        "initialGraceCycles": 2, "initialFee": fee});
    let created = merchant.post(PLANS, &whole).await.expect(201);
    for (name, value) in whole.as_object().unwrap() {
        assert_eq!(created[name], *value, "{name}");
    }
    assert_eq!(tags(&merchant).await, ["prata", "ouro"]);
    let path = |plan: &Value| format!("{PLANS}/{}", text(&plan["id"]));
    assert_eq!(merchant.get(&path(&simple)).await.expect(200), simple);

    for who in [&other, &world.merchant().await] {
        assert_eq!(tags(who).await, [""; 0]);
        who.get(&path(&simple)).await.refused(404, "not_found");
        disable(who, &text(&simple["id"])).await.refused(404, "not_found");
    }
    merchant.get(&format!("{PLANS}/nothing")).await.refused(404, "not_found");

    for _ in 0..2 {
        let disabled = disable(&merchant, &text(&simple["id"])).await.expect(200);
        assert_eq!(disabled, json!({"id": simple["id"], "enabled": false}));
    }
    assert_eq!(tags(&merchant).await, ["prata"]);
    assert_eq!(merchant.get(&path(&simple)).await.expect(200), with(&simple, "/enabled", json!(false)));
    merchant.post(PLANS, &plan("ouro", 1, 1)).await.refused(409, "duplicate_tag");
    merchant.post(PLANS, &plan(" prata ", 1, 1)).await.refused(409, "duplicate_tag");
    merchant.post(PLANS, &plan("PRATA", 1, 1)).await.refused(409, "duplicate_tag");
    other.post(PLANS, &plan("ouro", 1, 1)).await.expect(201);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(tags(&merchant).await, ["prata"]);
    merchant.post(PLANS, &plan("ouro", 1, 1)).await.refused(409, "duplicate_tag");
}

/// Shows: 2.12.tag, 2.12.amount, 2.12.billingCycle, 2.12.totalBillingCycles,
/// 2.12.initialGraceCycles, 2.12.initialFee, 8.totalBillingCycles.
#[tokio::test]
async fn a_plan_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let fee = json!({"description": "Adesão", "amount": 2_000, "cycles": 2});
    let valid = with(&with(&plan("ouro", 4_990, 12), "/initialFee", fee), "/initialGraceCycles", json!(1));
    let cases = [
        ("/tag", json!(""), "tag"),
        ("/tag", json!("x".repeat(101)), "tag"),
        ("/tag", Value::Null, "tag"),
        ("/tag", json!(7), "tag"),
        ("/amount", json!("4990"), "amount"),
        ("/amount", json!(0), "amount"),
        ("/amount", json!(49.9), "amount"),
        ("/amount", json!(1_000_000_000_001_i64), "amount"),
        ("/billingCycle", json!("monthly"), "billingCycle"),
        ("/billingCycle", json!("FORTNIGHTLY"), "billingCycle"),
        ("/billingCycle", Value::Null, "billingCycle"),
        ("/totalBillingCycles", json!(0), "totalBillingCycles"),
        ("/totalBillingCycles", json!(3_651), "totalBillingCycles"),
        ("/totalBillingCycles", json!("12"), "totalBillingCycles"),
        ("/totalBillingCycles", Value::Null, "totalBillingCycles"),
        ("/totalBillingCycles", json!(1), "initialFee.cycles"),
        ("/initialGraceCycles", json!(-1), "initialGraceCycles"),
        ("/initialGraceCycles", json!(3_651), "initialGraceCycles"),
        ("/initialFee", json!(2_000), "initialFee"),
        ("/initialFee/amount", json!(0), "initialFee.amount"),
        ("/initialFee/amount", json!(999_999_995_011_i64), "initialFee.amount"),
        ("/initialFee/cycles", json!(13), "initialFee.cycles"),
        ("/initialFee/cycles", json!(0), "initialFee.cycles"),
        ("/initialFee/description", Value::Null, "initialFee.description"),
        ("/initialFee/description", json!("x".repeat(121)), "initialFee.description"),
    ];
    for (pointer, value, field) in cases {
        let refused = merchant.post(PLANS, &with(&valid, pointer, value)).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    assert_eq!(tags(&merchant).await, [""; 0]);
    merchant.post(PLANS, &with(&valid, "/initialFee/amount", json!(999_999_995_010_i64))).await.expect(201);
    for cycle in ["DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "BIANNUAL", "ANNUAL"] {
        let created =
            merchant.post(PLANS, &with(&plan(cycle, 4_990, 1), "/billingCycle", json!(cycle))).await.expect(201);
        assert_eq!([&created["billingCycle"], &created["totalBillingCycles"]], [&json!(cycle), &json!(1)]);
    }
}

#[tokio::test]
async fn a_hundred_callers_race_for_one_tag() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let body = plan("ouro", 4_990, 12).to_string();
    let answers = futures_of(100, |_| merchant.post_raw(PLANS, &[], body.clone())).await;
    let won = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(won, 1);
    for lost in answers.into_iter().filter(|answer| answer.status != 201) {
        lost.refused(409, "duplicate_tag");
    }
    assert_eq!(tags(&merchant).await, ["ouro"]);
}

#[tokio::test]
async fn the_same_plan_twice_is_created_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = merchant.post_keyed(PLANS, "k", &plan("ouro", 4_990, 12)).await;
    let first = first.expect(201);
    let again = merchant.post_keyed(PLANS, "k", &plan("ouro", 4_990, 12)).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(201), first);
    merchant.post_keyed(PLANS, "k", &plan("prata", 4_990, 12)).await.refused(422, "idempotency_key_reused");
}
