//! A merchant's own API keys: made with scopes, listed, revoked, and refused what they may not do.

use reqwest::Method;
use serde_json::{Value, json};

use crate::webhooks::{Receiver, until, until_delivery};
use crate::world::*;

const KEYS: &str = "/api/keys";
const SCOPES: [&str; 4] = ["charges", "payouts", "recipients", "read"];

/// A key that a merchant made itself.
struct OwnKey<'a> {
    world: &'a World,
    id: String,
    key: String,
}

impl Merchant<'_> {
    async fn own_key(&self, scopes: &[&str]) -> OwnKey<'_> {
        let made = self.post(KEYS, &json!({"scopes": scopes})).await.expect(201);
        OwnKey { world: self.world, id: text(&made["id"]), key: text(&made["api_key"]) }
    }

    async fn revoke(&self, id: &str) -> Answer {
        self.world.send(Method::DELETE, &format!("{KEYS}/{id}"), &[("token", &self.key)], "").await
    }
}

impl OwnKey<'_> {
    async fn send(&self, method: Method, path: &str, body: &str) -> Answer {
        let headers = [("token", self.key.as_str()), ("content-type", "application/json")];
        self.world.send(method, path, &headers, body.to_owned()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &body.to_string()).await
    }
}

#[tokio::test]
async fn a_merchant_makes_lists_and_revokes_its_keys() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let made = merchant.post_keyed(KEYS, "k", &json!({"scopes": ["read", "charges"]})).await;
    let again = merchant.post_keyed(KEYS, "k", &json!({"scopes": ["read", "charges"]})).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let (made, again) = (made.expect(201), again.expect(201));
    has_exactly(&made, &["id", "api_key", "webhook_secret", "scopes"]);
    assert_eq!(made["scopes"], json!(["charges", "read"]));
    assert_eq!(again, with(&with(&made, "/api_key", json!(null)), "/webhook_secret", json!(null)), "shown once");
    let listed = merchant.get(KEYS).await.expect(200);
    assert_eq!(listed["total"], 2);
    let rows = items(&listed);
    assert_eq!((&rows[0]["id"], &rows[0]["scopes"]), (&json!(merchant.key_id), &json!(SCOPES)), "an old key may all");
    assert_eq!((&rows[1]["id"], &rows[1]["scopes"]), (&made["id"], &made["scopes"]));
    assert_eq!([&rows[0]["created_by"], &rows[1]["created_by"]], [&json!("operator"), &json!(merchant.key_id)]);
    let keys = format!("/ops/merchants/{}/api-keys", other.id);
    world.send(Method::POST, &keys, &[("authorization", &bearer(SECOND_OPS_TOKEN))], "").await.expect(201);
    let of_operators = world.ops_get(&keys).await.expect(200);
    assert_eq!(items(&of_operators)[1]["created_by"], "second", "operators see which of them it was");
    assert_eq!(items(&other.get(KEYS).await.expect(200))[1]["created_by"], "operator");
    assert!(!listed.to_string().contains(&text(&made["api_key"])));
    let id = text(&made["id"]);
    other.revoke(&id).await.refused(404, "not_found");
    other.revoke("x").await.refused(404, "not_found");
    let revoked = merchant.revoke(&id).await.expect(200);
    assert_eq!(revoked, json!({"id": id, "revoked": true}));
    merchant.revoke(&id).await.expect(200);
    let key = text(&made["api_key"]);
    world.send(Method::GET, KEYS, &[("token", &key)], "").await.refused(401, "unauthorized");
    for wrong in [json!([]), json!(["all"]), json!("read"), json!(["read", 7])] {
        merchant.post(KEYS, &json!({"scopes": wrong})).await.refused(400, "validation_failed");
    }
    // A right never comes of a misspelt name, and no scope changes.
    let misspelt = merchant.post(KEYS, &json!({"permissions": ["read"]})).await.refused(400, "validation_failed");
    assert_eq!(misspelt["errors"][0]["field"], "permissions");
    let path = format!("{KEYS}/{}", merchant.key_id);
    let scopes = merchant.patch(&path, &json!({"scopes": ["read"]})).await.refused(400, "validation_failed");
    assert_eq!(scopes["errors"][0]["field"], "scopes");
    let audited = world.ops_get(&format!("/ops/audit?merchant_id={}&kind=api_key", merchant.id)).await.expect(200);
    let created = items(&audited).iter().find(|row| row["api_key_id"] == merchant.key_id && row["action"] == "create");
    let change = json!([{"field": "scopes", "old": null, "new": ["charges", "read"]}]);
    assert_eq!(created.map(|row| &row["changes"]), Some(&change), "{audited}");
}

/// A key with all scopes of today is not one without scopes, which has those of later versions too.
#[tokio::test]
async fn a_key_with_every_scope_is_less_than_one_without_scopes() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let all = merchant.own_key(&SCOPES).await;
    assert_eq!(items(&merchant.get(KEYS).await.expect(200))[1]["scopes"], json!(SCOPES));
    all.post("/api/pix", &pix("1.00")).await.expect(201);
    let of_unscoped = format!("{KEYS}/{}", merchant.key_id);
    all.send(Method::DELETE, &of_unscoped, "").await.refused(403, "scopes_exceed_key");
    all.post(&format!("{of_unscoped}/rotate-secret"), &json!({})).await.refused(403, "scopes_exceed_key");
    merchant.revoke(&all.id).await.expect(200);
}

#[tokio::test]
async fn a_merchant_rotates_the_webhook_secret_of_its_keys() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let shop = merchant.own_key(&["charges"]).await;
    let reader = merchant.own_key(&["charges", "read"]).await;
    let path = format!("{KEYS}/{}/rotate-secret", reader.id);
    shop.post(&path, &json!({})).await.refused(403, "insufficient_scope");
    other.post(&path, &json!({})).await.refused(404, "not_found");
    let first = text(&reader.post(&path, &json!({})).await.expect(200)["webhook_secret"]);
    let again = merchant.post_keyed(&path, "k", &json!({})).await.expect(200);
    assert_ne!(again["webhook_secret"], first);
    // A key with fewer rights sees nothing by the key of another one's request.
    let of_unscoped = format!("{KEYS}/{}/rotate-secret", merchant.key_id);
    merchant.post_keyed(&of_unscoped, "k", &json!({})).await.expect(200);
    let headers = [("token", reader.key.as_str()), ("content-type", "application/json"), ("idempotency-key", "k")];
    let replayed = world.send(Method::POST, &of_unscoped, &headers, "{}").await;
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(replayed.expect(200), json!({"webhook_secret": null}));
    // Four secrets that were replaced sign for a day, the receiver's first one too; then it waits.
    let receiver = Receiver::listen().await;
    let listening = format!("{KEYS}/{}", reader.id);
    merchant.patch(&listening, &json!({"webhook_url": receiver.url})).await.expect(200);
    for _ in 0..2 {
        merchant.post(&path, &json!({})).await.expect(200);
    }
    merchant.post(&path, &json!({})).await.refused(409, "state_conflict");
    world
        .ops_post(&format!("/ops/api-keys/{}/rotate-secret", reader.id), &json!({}))
        .await
        .refused(409, "state_conflict");
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(receiver.heard(1).await[0].header("webhook-signature").split(' ').count(), 5);
    world.advance(86_400).await;
    merchant.post(&path, &json!({})).await.expect(200);
    merchant.post(&path, &json!({"secret": "x"})).await.refused(400, "validation_failed");
    merchant.revoke(&reader.id).await.expect(200);
    merchant.post(&path, &json!({})).await.refused(409, "state_conflict");
}

/// A key that leaked must not make itself mightier, or lock others out.
#[tokio::test]
async fn a_key_manages_no_key_that_may_more_than_itself() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let shop = merchant.own_key(&["charges", "read"]).await;
    let payer = merchant.own_key(&["payouts"]).await;
    for scopes in [json!({"scopes": ["read", "payouts"]}), json!({"scopes": SCOPES})] {
        shop.post(KEYS, &scopes).await.refused(403, "scopes_exceed_key");
    }
    let made = shop.post(KEYS, &json!({})).await.expect(201);
    assert_eq!(made["scopes"], json!(["charges", "read"]), "what was not said is as the key that asks");
    for id in [&payer.id, &merchant.key_id] {
        shop.send(Method::DELETE, &format!("{KEYS}/{id}"), "").await.refused(403, "scopes_exceed_key");
    }
    payer.post("/api/webhooks/test", &json!({})).await.refused(403, "insufficient_scope");
    let address = json!({"scopes": ["payouts"], "webhook_url": "http://127.0.0.1:9/"});
    payer.post(KEYS, &address).await.refused(403, "insufficient_scope");
    payer.send(Method::DELETE, &format!("{KEYS}/{}", payer.id), "").await.expect(200);
    payer.post(KEYS, &json!({})).await.refused(401, "unauthorized");
    shop.send(Method::DELETE, &format!("{KEYS}/{}", text(&made["id"])), "").await.expect(200);
}

#[tokio::test]
async fn operators_forbid_a_merchant_its_own_keys() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let own = merchant.own_key(&["read"]).await;
    let path = format!("/ops/merchants/{}", merchant.id);
    let forbidden = world.ops_patch(&path, &json!({"options": {"own_keys": false}})).await.expect(200);
    assert_eq!(forbidden["options"]["own_keys"], false);
    merchant.post(KEYS, &json!({})).await.refused(403, "own_keys_not_allowed");
    merchant.revoke(&own.id).await.refused(403, "own_keys_not_allowed");
    assert_eq!(merchant.get(KEYS).await.expect(200)["total"], 2);
    let keys = format!("{path}/api-keys");
    let made = world.ops_post(&keys, &json!({"scopes": ["recipients"]})).await.expect(201);
    assert_eq!(made["scopes"], json!(["recipients"]), "operators go on to make keys");
    let audit = format!("/ops/audit?merchant_id={}&kind=merchant", merchant.id);
    let audited = world.ops_get(&audit).await.expect(200);
    let change = json!([{"field": "options.own_keys", "old": true, "new": false}]);
    assert_eq!(items(&audited)[0]["changes"], change, "{audited}");
    world.ops_patch(&path, &json!({"options": {"own_keys": true}})).await.expect(200);
    for _ in 0..17 {
        merchant.post(KEYS, &json!({})).await.expect(201);
    }
    merchant.post(KEYS, &json!({})).await.refused(409, "too_many_api_keys");
    merchant.revoke(&own.id).await.expect(200);
    merchant.post(KEYS, &json!({})).await.expect(201);
}

/// Each route is refused to a key with all other scopes, whatever is in its body.
#[tokio::test]
async fn a_key_without_the_scope_of_a_route_is_refused_before_its_body() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let named = [
        ("POST /api/card", "charges"),
        ("POST /api/pix", "charges"),
        ("POST /api/charges/batch", "charges"),
        ("POST /api/cards", "charges"),
        ("POST /api/refunds", "charges"),
        ("PATCH /api/refunds/{id}", "charges"),
        ("PATCH /api/cashout/{id}", "payouts"),
        ("POST /api/keys/{id}/rotate-secret", "read"),
        ("POST /api/recurrency/plans", "charges"),
        ("POST /api/cashout", "payouts"),
        ("POST /api/dashboard/sub-recipients/{id}/withdraw", "payouts"),
        ("POST /api/dashboard/sub-recipients/{id}/anticipate", "payouts"),
        ("POST /api/sub-recipients", "recipients"),
        ("PATCH /api/sub-recipients/{id}", "recipients"),
        ("POST /api/reports", "read"),
        ("PATCH /api/keys/{id}", "read"),
    ];
    let mut without = Vec::new();
    for scope in SCOPES {
        let others: Vec<_> = SCOPES.into_iter().filter(|other| *other != scope).collect();
        without.push((scope, merchant.own_key(&others).await, merchant.own_key(&[scope]).await));
    }
    let (mut tried, mut of_table) = (0, 0);
    let operations = world.description.operations();
    for operation in operations.iter().filter(|operation| operation.path.starts_with("/api/")) {
        let path = operation.path_of("019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e");
        let method: Method = operation.method.parse().unwrap();
        let route = format!("{method} {}", operation.path);
        let row = named.iter().find(|(known, _)| *known == route).map(|(_, scope)| *scope);
        let Some(scope) = row.or((method == Method::GET).then_some("read")) else { continue };
        let (_, lacking, having) = without.iter().find(|(without, ..)| *without == scope).unwrap();
        let refused = lacking.send(method.clone(), &path, "{").await.refused(403, "insufficient_scope");
        assert_eq!(refused["scope"], scope, "{route}");
        assert_eq!(operation.described["x-required-scope"], scope, "{route}");
        let answered = having.send(method, &path, "{").await;
        assert!(![401, 403].contains(&answered.status), "{route}: {}", answered.text);
        tried += 1;
        of_table += usize::from(row.is_some());
    }
    assert_eq!(of_table, named.len());
    assert!(tried > 35, "{tried}");
}

/// An event that an endpoint did not choose is neither sent nor counted, also when it is asked for
/// again.
#[tokio::test]
async fn an_endpoint_receives_the_events_that_it_chose() {
    let (world, receiver, all) = (World::sandbox().await, Receiver::listen().await, Receiver::listen().await);
    let merchant = world.merchant().await;
    let body =
        json!({"scopes": ["read"], "webhook_url": receiver.url, "events": ["charge.refused", "charge.cancelled"]});
    let chosen = merchant.post(KEYS, &body).await.expect(201);
    let path = format!("{KEYS}/{}", text(&chosen["id"]));
    let other = merchant.post(KEYS, &json!({"webhook_url": all.url})).await.expect(201);
    let listed = merchant.get(KEYS).await.expect(200);
    assert_eq!(items(&listed)[1]["events"], json!(["charge.refused", "charge.cancelled"]));
    assert_eq!(items(&listed)[2].get("events"), None, "all");
    merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201);
    merchant.post("/api/card", &card(2_000, REFUSED)).await.refused(402, "card_declined");
    let heard = all.heard(2).await;
    let mut heard: Vec<_> = heard.iter().map(|told| told.event()).collect();
    heard.sort_unstable();
    assert_eq!(heard, ["charge.paid", "charge.refused"]);
    assert_eq!(receiver.heard(1).await[0].event(), "charge.refused");
    let events = merchant.get("/api/events").await.expect(200);
    let paid = items(&events).iter().find(|event| event["event"] == "charge.paid").unwrap();
    assert_eq!((&paid["event"], &paid["deliveries"].as_array().unwrap().len()), (&json!("charge.paid"), &1), "{paid}");
    assert_eq!(paid["deliveries"][0]["api_key_id"], other["id"]);
    let paid = text(&paid["id"]);
    // A try that is under way when its event is asked for again counts as that one.
    until_delivery(&merchant, &paid, |delivery| delivery["status"] == "delivered").await;
    merchant.post(&format!("/api/events/{paid}/redeliver"), &json!({})).await.expect(200);
    assert_eq!(all.heard(3).await[2].event(), "charge.paid");
    let waiting = world.ops_get(&format!("/ops/webhooks?merchant_id={}", merchant.id)).await.expect(200);
    assert!(items(&waiting).iter().all(|row| row["api_key_id"] != chosen["id"]), "{waiting}");

    let changed = merchant.patch(&path, &json!({"events": ["charge.paid"]})).await.expect(200);
    assert_eq!(changed, json!({"id": chosen["id"], "webhook_url": receiver.url, "events": ["charge.paid"]}));
    let changed = merchant.patch(&path, &json!({"events": null})).await.expect(200);
    assert_eq!(changed, json!({"id": chosen["id"], "webhook_url": receiver.url}));
    merchant.patch(&path, &json!({"events": ["charge.paid"]})).await.expect(200);
    merchant.post("/api/card", &card(3_000, REFUSED)).await.refused(402, "card_declined");
    merchant.post("/api/card", &card(4_000, APPROVED)).await.expect(201);
    let heard = receiver.heard(2).await;
    assert_eq!((heard.len(), heard[1].event()), (2, "charge.paid"), "the refused one before it was passed over");
    let sent = || async {
        let events = merchant.get("/api/events").await.expect(200);
        let is_of_it = |delivery: &&Value| delivery["api_key_id"] == chosen["id"];
        let of_it = |event: &Value| event["deliveries"].as_array().unwrap().iter().find(is_of_it).cloned();
        items(&events)
            .iter()
            .map(|event| of_it(event).map_or(json!(null), |delivery| delivery["status"].clone()))
            .collect()
    };
    let as_chosen_then = json!(["delivered", null, "delivered", null]);
    until(sent, |sent| *sent == as_chosen_then).await;
    merchant.patch(&path, &json!({"events": null})).await.expect(200);
    assert_eq!(sent().await, as_chosen_then, "newest first, whatever is chosen later");
    merchant.post(&format!("/api/events/{paid}/redeliver"), &json!({})).await.expect(200);
    all.heard(6).await;
    assert_eq!(sent().await, as_chosen_then, "not chosen when it came: not sent again");
    merchant.patch(&path, &json!({"events": ["charge.paid"]})).await.expect(200);
    for wrong in [json!([]), json!(["charge.payed"]), json!("charge.paid"), json!([1])] {
        merchant.patch(&path, &json!({"events": wrong})).await.refused(400, "validation_failed");
    }
    let page = format!("/ops/audit?merchant_id={}&kind=api_key&action=change", merchant.id);
    let audited = world.ops_get(&page).await.expect(200);
    let change = json!([{"field": "events", "old": null, "new": ["charge.paid"]}]);
    assert_eq!(items(&audited)[0]["changes"], change, "{audited}");
    merchant.patch(&path, &json!({"webhook_url": "http://10.0.0.1/"})).await.refused(400, "validation_failed");
    world.merchant().await.patch(&path, &json!({"events": null})).await.refused(404, "not_found");
    let paying = merchant.own_key(&["payouts", "read"]).await;
    let body = json!({"webhook_url": null}).to_string();
    paying.send(Method::PATCH, &format!("{KEYS}/{}", merchant.key_id), &body).await.refused(403, "scopes_exceed_key");
    merchant.revoke(&text(&chosen["id"])).await.expect(200);
    merchant.patch(&path, &json!({"events": null})).await.refused(409, "state_conflict");
}
