//! Labels of cashouts, refunds and recipients: in answers, views, webhooks, lists and the search.

use serde_json::{Value, json};

use crate::world::*;

fn labelled(mut body: Value, reference: &str) -> Value {
    body["reference"] = json!(reference);
    body["metadata"] = json!({"loja": "azul"});
    body
}

fn labels(of: &Value) -> [Option<&Value>; 2] {
    [of.get("reference"), of.get("metadata")]
}

#[track_caller]
fn has_labels(of: &Value, reference: &str) {
    assert_eq!(labels(of), [Some(&json!(reference)), Some(&json!({"loja": "azul"}))], "{of}");
}

/// What an event of this name says of its object.
async fn told(merchant: &Merchant<'_>, event: &str, object: &str) -> Value {
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let found = items(&events).iter().find(|one| one["event"] == event);
    found.unwrap_or_else(|| panic!("{event} of {events}"))[object].clone()
}

async fn search(world: &World, text: &str) -> String {
    world.ops_get(&format!("/ops/search?q={text}")).await.expect(200).to_string()
}

/// The ids of a list, for each query.
async fn lists(merchant: &Merchant<'_>, path: &str, cases: &[(&str, &[&str])]) {
    for (query, expected) in cases {
        let list = merchant.get(&format!("{path}?{query}")).await.expect(200);
        let ids: Vec<_> = items(&list).iter().map(|item| text(&item["id"])).collect();
        assert_eq!(
            (ids.as_slice(), list["total"].as_u64()),
            (to_owned(expected).as_slice(), Some(ids.len() as u64)),
            "{path} {query}"
        );
    }
}

fn to_owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test]
async fn a_cashout_shows_its_labels() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("100.00")).await;
    let body = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let plain = merchant.post("/api/cashout", &body).await.expect(201);
    assert_eq!(labels(&plain), [None, None]);
    let body = labelled(body, "repasse-9");
    let made = merchant.post_keyed("/api/cashout", "k", &body).await.expect(201);
    let again = merchant.post_keyed("/api/cashout", "k", &body).await.expect(201);
    assert_eq!(made, again);
    let (id, plain) = (text(&made["id"]), text(&plain["id"]));
    world.advance(60).await;
    has_labels(&made, "repasse-9");
    has_labels(&merchant.get(&format!("/api/cashout/{id}")).await.expect(200), "repasse-9");
    has_labels(&told(&merchant, "cashout.processed", "cashout").await, "repasse-9");
    let cases: &[(&str, &[&str])] = &[
        ("reference=repasse-9", &[&id]),
        ("reference=outro", &[]),
        ("metadata[loja]=azul&status=processed", &[&id]),
        ("metadata[loja]=azul&status=failed", &[]),
        ("", &[&id, &plain]),
    ];
    lists(&merchant, "/api/cashout", cases).await;
    assert!(search(&world, "repasse-9").await.contains(&id));
    let refused = merchant.post("/api/cashout", &with(&body, "/metadata", json!({"k": 1}))).await;
    assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], "metadata");
    assert_eq!(merchant.get("/api/charges?reference=repasse-9").await.expect(200)["total"], 0, "it is no charge");
}

#[tokio::test]
async fn a_refund_shows_its_labels() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let body = json!({"payment_id": txid, "amount": 1_000});
    let plain = merchant.post("/api/refunds", &body).await.expect(201);
    let unreasoned = merchant.post("/api/refunds", &labelled(body.clone(), "troca-1")).await.expect(201);
    let reasoned = labelled(with(&body, "/reason", json!("Troca")), "troca-2");
    let reasoned = merchant.post("/api/refunds", &reasoned).await.expect(201);
    assert_eq!((labels(&plain), plain.get("reason")), ([None, None], None));
    assert_eq!((unreasoned.get("reason"), &reasoned["reason"]), (None, &json!("Troca")));
    let [plain, first, second] = [&plain, &unreasoned, &reasoned].map(|refund| text(&refund["id"]));
    for (id, reference) in [(&first, "troca-1"), (&second, "troca-2")] {
        has_labels(&merchant.get(&format!("/api/refunds/{id}")).await.expect(200), reference);
        world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    }
    has_labels(&told(&merchant, "refund.approved", "refund").await, "troca-2");
    let cases: &[(&str, &[&str])] = &[
        ("reference=troca-1", &[&first]),
        ("metadata[loja]=azul", &[&second, &first]),
        ("metadata[loja]=azul&status=pending", &[]),
        ("", &[&second, &first, &plain]),
    ];
    lists(&merchant, "/api/refunds", cases).await;
}

#[tokio::test]
async fn a_recipient_shows_its_labels_and_changes_them() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let plain = merchant.draft("Rui Prado", 1).await;
    let registration = labelled(individual("Ana Prado", &cpf(2)), "loja-2");
    let registered = merchant.post("/api/sub-recipients", &registration).await.expect(201);
    has_labels(&registered, "loja-2");
    let id = text(&registered["id"]);
    let path = format!("/api/sub-recipients/{id}");
    has_labels(&merchant.get(&path).await.expect(200), "loja-2");
    let again = merchant.post("/api/sub-recipients", &labelled(individual("Ana Prado", &cpf(2)), "loja-3")).await;
    assert_eq!(again.expect(200)["ignored"], json!(["reference"]));
    world.ops_post(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await.expect(200);
    has_labels(&told(&merchant, "recipient.approved", "recipient").await, "loja-2");
    let cases: &[(&str, &[&str])] = &[
        ("reference=loja-2", &[&id]),
        ("metadata[loja]=azul&search=ana", &[&id]),
        ("metadata[loja]=azul&search=rui", &[]),
        ("reference=loja-1", &[]),
        ("", &[&id, &plain]),
    ];
    lists(&merchant, "/api/dashboard/sub-recipients", cases).await;
    assert!(search(&world, "loja-2").await.contains(&id));
    let changed = merchant.patch(&path, &json!({"metadata": {"loja": "verde", "x": "1"}})).await.expect(200);
    assert_eq!([&changed["reference"], &changed["metadata"]], [&json!("loja-2"), &json!({"loja": "verde", "x": "1"})]);
    let changed = merchant.patch(&path, &json!({"reference": "", "metadata": {"x": null}})).await.expect(200);
    assert_eq!(labels(&changed), [None, Some(&json!({"loja": "verde"}))]);
    let renamed = json!({"register_information": {"name": "Ana Prado Lima"}});
    let changed = merchant.patch(&path, &renamed).await.expect(200);
    assert_eq!((&changed["name"], &changed["metadata"]["loja"]), (&json!("Ana Prado Lima"), &json!("verde")));
    let names = merchant.names;
    let world = world.restarted().await;
    let read = Merchant { world: &world, names }.get(&path).await.expect(200);
    assert_eq!(read["metadata"], json!({"loja": "verde"}));
}
