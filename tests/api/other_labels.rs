//! Labels of cashouts, refunds, recipients and subscriptions: in answers, views, webhooks, lists
//! and the search; their changes; references that are unique for ever.

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

/// A body of each kind for which a reference may be unique, and another one of the same kind.
async fn with_references(merchant: &Merchant<'_>) -> Vec<(&'static str, Value, Value)> {
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let cashout = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let plan = json!({"tag": "ouro", "amount": 1, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
        "initialGraceCycles": 1});
    let plan = merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"].clone();
    let subscription = json!({"plan_id": plan, "payment_method": "pix", "customer": card(1, APPROVED)["customer"]});
    vec![
        ("/api/cashout", cashout.clone(), with(&cashout, "/amount", json!(1_001))),
        ("/api/refunds", json!({"payment_id": txid, "amount": 10}), json!({"payment_id": txid, "amount": 11})),
        (
            "/api/recurrency/subscriptions",
            subscription.clone(),
            with(&subscription, "/customer/name", json!("Bia Lima")),
        ),
        ("/api/sub-recipients", individual("Ana Prado", &cpf(3)), individual("Bia Lima", &cpf(4))),
    ]
}

#[tokio::test]
async fn a_unique_reference_is_of_one_thing_of_its_kind_for_ever() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    merchant.post("/api/pix", &unique(pix("9.00"))).await.expect(201);
    for ((path, body, another), (_, of_other, _)) in
        with_references(&merchant).await.into_iter().zip(with_references(&other).await)
    {
        let wrong = with(&body, "/reference_unique", json!(true));
        let wrong = merchant.post(path, &wrong).await.refused(400, "validation_failed");
        assert_eq!(wrong["errors"][0]["field"], "reference", "{path}");
        let first = merchant.post_keyed(path, "k", &unique(body.clone())).await.expect(201);
        let again = merchant.post_keyed(path, "k", &unique(body.clone())).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
        let is_recipient = path == "/api/sub-recipients";
        let check = async || {
            let repeated = merchant.post(path, &unique(body.clone())).await;
            if is_recipient {
                assert_eq!(repeated.expect(200)["already_exists"], json!(true));
            } else {
                assert_eq!(repeated.refused(409, "duplicate_reference")["id"], first["id"], "{path}");
            }
            let taken = merchant.post(path, &unique(another.clone())).await.refused(409, "reference_taken");
            assert_eq!(taken["id"], first["id"], "{path}");
        };
        check().await;
        // Others, and those who do not ask for a unique one, have it too.
        other.post(path, &unique(of_other)).await.expect(201);
        merchant.post(path, &with(&another, "/reference", json!("pedido-9"))).await.expect(201);
        world.advance(25 * 60 * 60).await;
        check().await;
    }
    // A transfer may have two ids that are used once.
    let body = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email", "reference": "dois",
        "reference_unique": true, "merchant_transaction_id": "5f0c2a9d-8e7b-461f-9a3c-0d1e2f3a4b5c"});
    let made = merchant.post("/api/cashout", &body).await.expect(201);
    merchant.post("/api/cashout", &body).await.refused(409, "duplicate_transaction");
    let other_id = without(&body, "/merchant_transaction_id");
    assert_eq!(merchant.post("/api/cashout", &other_id).await.refused(409, "reference_taken")["id"], made["id"]);
    world.check_books().await;
}

fn unique(body: Value) -> Value {
    with(&with(&body, "/reference", json!("pedido-9")), "/reference_unique", json!(true))
}

/// Requests that come at once: one of them makes something.
#[tokio::test]
async fn a_unique_reference_is_taken_once_by_requests_that_come_at_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for (path, body, _) in with_references(&merchant).await {
        let body = unique(body);
        let all = (0..8).map(|_| merchant.post(path, &body));
        let answers = futures_util::future::join_all(all).await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(made, 1, "{path}: {:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    }
    world.check_books().await;
}

#[tokio::test]
async fn metadata_of_cashouts_refunds_and_subscriptions_changes() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let mut paths = Vec::new();
    for (path, body, _) in with_references(&merchant).await.into_iter().take(3) {
        let id = text(&merchant.post(path, &labelled(body.clone(), "r-1")).await.expect(201)["id"]);
        let plain = text(&merchant.post(path, &body).await.expect(201)["id"]);
        let one = format!("{path}/{id}");
        let change = json!({"metadata": {"loja": "verde", "nota": "1"}});
        let unchanged = world.requested().await;
        let changed = merchant.patch(&one, &change).await;
        let sequence = changed.header("centavo-sequence").map(str::to_owned);
        assert!(sequence.is_some(), "{one}: the change has a Record");
        let changed = changed.expect(200);
        assert_eq!([&changed["reference"], &changed["metadata"]], [&json!("r-1"), &change["metadata"]]);
        let before = world.requested().await;
        assert_ne!(before, unchanged, "{one}: the change is among what was asked for");
        merchant.patch(&one, &change).await.expect(200);
        assert_eq!(world.requested().await, before, "{one}: the same again writes nothing");
        let less = json!({"metadata": {"nota": null}});
        assert_eq!(merchant.patch(&one, &less).await.expect(200)["metadata"], json!({"loja": "verde"}));
        merchant.patch(&format!("{path}/{plain}"), &json!({"metadata": {"loja": "azul"}})).await.expect(200);
        let cases: &[(&str, &[&str])] =
            &[("metadata[loja]=verde", &[&id]), ("metadata[loja]=azul", &[&plain]), ("reference=r-1", &[&id])];
        lists(&merchant, path, cases).await;
        other.patch(&one, &change).await.refused(404, "not_found");
        let wrong = merchant.patch(&one, &json!({"metadata": {"k": 1}})).await.refused(400, "validation_failed");
        assert_eq!(wrong["errors"][0]["field"], "metadata", "{one}");
        paths.push(one);
    }
    let id = paths[1].rsplit('/').next().unwrap();
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    assert_eq!(told(&merchant, "refund.approved", "refund").await["metadata"], json!({"loja": "verde"}));
    let (names, world) = (merchant.names.clone(), world.restarted().await);
    for path in paths {
        let read = Merchant { world: &world, names: names.clone() }.get(&path).await.expect(200);
        assert_eq!(read["metadata"], json!({"loja": "verde"}), "{path}");
    }
}

/// Rows of an export as JSON lines, with and without labels.
async fn rows(merchant: &Merchant<'_>, query: &str) -> Vec<Value> {
    let answer = merchant.get(&format!("/api/reports/ledger?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LABEL_COLUMNS: [&str; 3] = ["merchant_reference", "metadata", "fiscal_documents"];
const FISCAL_KEY: &str = "35261111222333000181550010000012341531872043";

#[tokio::test]
async fn rows_of_exports_and_reports_have_labels_where_they_are_asked_for() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&labelled(pix("100.00"), "pedido-1")).await["txid"]);
    merchant.post(&format!("/api/charges/{txid}/fiscal-documents"), &json!({"key": FISCAL_KEY})).await.expect(201);
    merchant.patch(&format!("/api/charges/{txid}"), &json!({"metadata": {"loja": "verde"}})).await.expect(200);
    let plain = text(&merchant.paid_pix(&pix("50.00")).await["txid"]);
    let refund = labelled(json!({"payment_id": txid, "amount": 1_000}), "troca-1");
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    let body = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &labelled(body, "repasse-1")).await.expect(201)["id"]);
    let (unlabelled, labelled) = (rows(&merchant, "").await, rows(&merchant, "labels=true").await);
    let cut_off = |row: &Value| {
        let mut row = row.clone();
        LABEL_COLUMNS.iter().for_each(|name| drop(row.as_object_mut().unwrap().remove(*name).unwrap()));
        row
    };
    assert_eq!(labelled.iter().map(cut_off).collect::<Vec<_>>(), unlabelled, "the other columns are the same");
    let of = |name: &str, id: &str, refund: bool| {
        let is_it = |row: &&Value| row[name] == id && (row["refund"] != Value::Null) == refund;
        let found: Vec<_> =
            labelled.iter().filter(is_it).map(|row| LABEL_COLUMNS.map(|name| row[name].clone())).collect();
        assert!(!found.is_empty() && found.iter().all(|labels| *labels == found[0]), "{name} {id}: {found:?}");
        found[0].clone()
    };
    let none = Value::Null;
    assert_eq!(of("txid", &txid, false), [json!("pedido-1"), json!(r#"{"loja":"verde"}"#), json!(FISCAL_KEY)]);
    assert_eq!(of("refund", &refund, true), [json!("troca-1"), json!(r#"{"loja":"azul"}"#), json!(FISCAL_KEY)]);
    assert_eq!(of("cashout", &cashout, false), [json!("repasse-1"), json!(r#"{"loja":"azul"}"#), none.clone()]);
    assert_eq!(of("txid", &plain, false), [none.clone(), none.clone(), none]);
    for (format, head) in [("csv", "merchant_reference,metadata"), ("csv-ptbr", "Referência do lojista;Metadados")] {
        let query = format!("/ops/export?format={format}&ledger=M-{}&labels=true", merchant.id);
        let file = world.ops_get(&query).await;
        assert!(file.text.lines().next().unwrap().contains(head), "{}", file.text);
        assert!(file.text.contains("repasse-1") && file.text.contains(r#""{""loja"":""verde""}""#), "{}", file.text);
    }
    for format in ["parquet", "xlsx"] {
        assert_eq!(merchant.get(&format!("/api/reports/ledger?format={format}&labels=true")).await.status, 200);
    }
    for wrong in ["format=hledger&labels=true", "labels=yes", "labels"] {
        merchant.get(&format!("/api/reports/ledger?{wrong}")).await.refused(400, "validation_failed");
    }
    let statement = format!("/ops/reports/statement?ledger={}", merchant.id);
    let columns = |report: &Value| -> Vec<String> {
        report["columns"].as_array().unwrap().iter().map(|column| text(&column["name"])).collect()
    };
    let without = world.ops_get(&statement).await.expect(200);
    assert!(!columns(&without).contains(&"metadata".to_owned()), "{without}");
    let with = world.ops_get(&format!("{statement}&labels=true&names=true")).await.expect(200);
    assert_eq!(columns(&with)[4..7], LABEL_COLUMNS);
    let shown: Vec<_> = with["rows"].as_array().unwrap().iter().map(|row| row["merchant_reference"].clone()).collect();
    for reference in ["pedido-1", "troca-1", "repasse-1"] {
        assert!(shown.contains(&json!(reference)), "{shown:?}");
    }
    assert_eq!(with["totals"], without["totals"], "totals do not move");
}
