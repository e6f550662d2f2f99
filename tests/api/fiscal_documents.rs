//! Fiscal documents of charges: access keys that are linked and taken back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

const KEY: &str = "35261111222333000181550010000012341531872043";
const OF_LETTERS: &str = "35261112ABC34501DE35550010000012341531872044";
const OF_SERVICES: &str = "35503082211222333000181000000000123426115318720413";

async fn make(merchant: &Merchant<'_>, path: &str, body: &Value) -> String {
    text(&merchant.post(path, body).await.expect(201)["txid"])
}

fn documents_of(txid: &str) -> String {
    format!("/api/charges/{txid}/fiscal-documents")
}

async fn unlink(merchant: &Merchant<'_>, txid: &str, key: &str) -> Answer {
    let path = format!("{}/{key}", documents_of(txid));
    merchant.world.send(Method::DELETE, &path, &[("token", &merchant.key)], "").await
}

/// The keys of a charge's documents, in order; empty where the charge shows none.
fn keys(charge: &Value) -> Vec<String> {
    let documents = charge.get("fiscal_documents").map(|documents| documents.as_array().unwrap().clone());
    documents.unwrap_or_default().iter().map(|document| text(&document["key"])).collect()
}

/// The key of a document of this issuer, with its check digit.
fn key_of(issuer: &str) -> String {
    with_digit(format!("352611{issuer}55001000001234153187204"))
}

/// The key of a document of a person: the series is one of those for a CPF.
fn key_of_person(cpf: &str) -> String {
    with_digit(format!("352611000{cpf}55920000001234153187204"))
}

fn with_digit(counted: String) -> String {
    let weighted = counted.bytes().rev().zip((2..=9).cycle()).map(|(digit, weight)| u32::from(digit - b'0') * weight);
    let rest = weighted.sum::<u32>() % 11;
    format!("{counted}{}", if rest < 2 { 0 } else { 11 - rest })
}

/// The CPF of a person who issued a document is for the merchant alone.
#[tokio::test]
async fn operators_see_no_cpf_in_the_key_of_a_document() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = make(&merchant, "/api/pix", &pix("80.00")).await;
    let of_person = key_of_person("12345678909");
    for key in [KEY, &*of_person] {
        merchant.post(&documents_of(&txid), &json!({"key": key})).await.expect(201);
    }
    let masked = of_person.replace("12345678909", "***********");
    assert_eq!(keys(&merchant.get(&format!("/api/charges/{txid}")).await.expect(200)), [KEY, &*of_person]);
    let of_operators = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
    assert_eq!(keys(&of_operators), [KEY, &*masked], "{of_operators}");
    merchant.pay(&txid).await.expect(200);
    let rows = merchant.get("/api/reports/ledger?labels=true").await.text;
    assert!(rows.contains(&of_person), "{rows}");
    let sent = items(&merchant.get("/api/events").await.expect(200))[0].clone();
    assert!(sent.to_string().contains(&of_person), "{sent}");
    let sent = world.ops_get(&format!("/ops/webhooks/{}", text(&sent["id"]))).await.text;
    assert!(sent.contains(&masked) && !sent.contains(&of_person), "{sent}");
    let rows = world.ops_get("/ops/export?labels=true").await.text;
    assert!(rows.contains(&masked) && !rows.contains("12345678909"), "{rows}");
}

#[tokio::test]
async fn documents_are_linked_and_taken_back() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, rui) = (merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await);
    let txid = make(&merchant, "/api/pix", &with_splits(pix("80.00"), &[(&ana, 2_000)])).await;
    let (path, read) = (documents_of(&txid), format!("/api/charges/{txid}"));
    let plain = merchant.get(&read).await.expect(200);
    assert_eq!(plain.get("fiscal_documents"), None);
    let printed = json!({"key": "NFe3526 1111 2223 3300 0181 5500 1000 0012 3415 3187 2043"});
    let linked = merchant.post(&path, &printed).await.expect(201);
    has_exactly(&linked["fiscal_documents"][0], &["key", "of", "issuer_known", "linked_at"]);
    assert_eq!((keys(&linked), &linked["fiscal_documents"][0]["of"]), (vec![KEY.to_owned()], &Value::Null));
    let cut = world.cut().await;
    let (of_ana, of_rui) = (json!({"key": KEY, "of": ana}), json!({"key": OF_LETTERS, "of": rui}));
    assert_eq!(merchant.post(&path, &json!({"key": KEY, "of": null})).await.expect(200), linked);
    merchant.post(&path, &of_ana).await.refused(409, "state_conflict");
    let refused = merchant.post(&path, &of_rui).await.refused(400, "validation_failed");
    assert_eq!([&refused["errors"][0]["field"], &refused["errors"][0]["code"]], ["of", "not_of_charge"]);
    unlink(&merchant, &txid, OF_LETTERS).await.refused(404, "not_found");
    unlink(&merchant, &txid, "1").await.refused(404, "not_found");
    assert_eq!(world.cut().await, cut, "nothing was written");
    merchant.post(&path, &json!({"key": OF_LETTERS.to_lowercase(), "of": ana})).await.expect(201);
    let three = merchant.post(&path, &json!({"key": format!("NFS{OF_SERVICES}")})).await.expect(201);
    assert_eq!(keys(&three), [KEY, OF_LETTERS, OF_SERVICES]);
    assert_eq!(three["fiscal_documents"][1]["of"], json!(ana));
    assert_eq!(without(&three, "/fiscal_documents"), plain, "nothing else changes");
    let left = unlink(&merchant, &txid, &KEY.to_lowercase()).await.expect(200);
    assert_eq!(keys(&left), [OF_LETTERS, OF_SERVICES]);
    unlink(&merchant, &txid, KEY).await.refused(404, "not_found");
    // Metadata and documents are changes of one charge, one after the other.
    merchant.patch(&read, &json!({"metadata": {"loja": "azul"}})).await.expect(200);
    let again = merchant.post(&path, &of_ana).await.expect(201);
    assert_eq!(
        (keys(&again), &again["metadata"]["loja"]),
        (keys(&left).into_iter().chain([KEY.to_owned()]).collect(), &json!("azul"))
    );
    // Webhooks and operators see them; the same document may be another charge's.
    merchant.pay(&txid).await.expect(200);
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let paid = items(&events).iter().find(|event| event["event"] == "charge.paid").unwrap();
    assert_eq!(paid["charge"]["fiscal_documents"], again["fiscal_documents"]);
    assert_eq!(
        world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200)["fiscal_documents"],
        again["fiscal_documents"]
    );
    let other = make(&merchant, "/api/card", &card(10_000, APPROVED)).await;
    assert_eq!(keys(&merchant.post(&documents_of(&other), &json!({"key": KEY})).await.expect(201)), [KEY]);
    let stranger = world.merchant().await;
    stranger.post(&path, &json!({"key": KEY})).await.refused(404, "charge_not_found");
    unlink(&stranger, &txid, KEY).await.refused(404, "charge_not_found");
    unlink(&merchant, &other, "%80").await.refused(404, "not_found");
    let names = merchant.names;
    let world = world.restarted().await;
    let shown = Merchant { world: &world, names }.get(&read).await.expect(200);
    assert_eq!(shown["fiscal_documents"], again["fiscal_documents"]);
    world.check_books().await;
}

#[tokio::test]
async fn wrong_keys_are_refused_by_what_is_wrong() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = make(&merchant, "/api/pix", &pix("80.00")).await;
    for (key, code) in [
        (json!("35261112ABC34501DE35550010000012341531872046"), "invalid_check_digit"),
        (json!("35261100000123450135550010000012341531872045"), "invalid_document"),
        (json!("99261111222333000181550010000012341531872043"), "invalid_key"),
        (json!("35261311222333000181550010000012341531872043"), "invalid_key"),
        (json!(&KEY[1..]), "invalid_key"),
        (json!(format!("{OF_SERVICES}0")), "invalid_key"),
        (json!(35_261_111), "not_a_string"),
        (json!("3".repeat(101)), "wrong_length"),
        (Value::Null, "required"),
    ] {
        let refused = merchant.post(&documents_of(&txid), &json!({"key": key})).await.refused(400, "validation_failed");
        assert_eq!([&refused["errors"][0]["field"], &refused["errors"][0]["code"]], ["key", code], "{key}");
        assert!(key.as_str().is_none_or(|key| !refused.to_string().contains(key)), "{refused}");
    }
    let refused = merchant.post(&documents_of(&txid), &json!({"key": KEY, "of": "Ana"})).await;
    assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["code"], "not_a_uuid");
}

#[tokio::test]
async fn an_unknown_issuer_is_shown() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let registered = merchant.post("/api/sub-recipients", &corporation("Oficina Sul", &cnpj(7))).await.expect(201);
    let shop = text(&registered["id"]);
    world.ops_post(&format!("/ops/sub-recipients/{shop}/approve"), &json!({})).await.expect(200);
    let ana = merchant.recipient("Ana", 1).await;
    let splits = [(shop.as_str(), 2_000), (ana.as_str(), 1_000)];
    let txid = make(&merchant, "/api/pix", &with_splits(pix("80.00"), &splits)).await;
    // A branch of the recipient has the same first 8.
    let branch = (0..100).map(|digits| format!("{}0002{digits:02}", &cnpj(7)[..8]));
    let branch = branch.into_iter().find(|document| ledger::tax_id::is_cnpj(document)).unwrap();
    for (issuer, known) in [
        (cnpj(1), true),
        (cnpj(7), true),
        (branch, true),
        (format!("000{}", cpf(1)), true),
        (cnpj(8), false),
        (format!("000{}", cpf(2)), false),
    ] {
        let linked = merchant.post(&documents_of(&txid), &json!({"key": key_of(&issuer)})).await.expect(201);
        let documents = linked["fiscal_documents"].as_array().unwrap();
        assert_eq!(documents.last().unwrap()["issuer_known"], known, "{issuer}");
    }
    // The issuer of another charge is unknown to this one.
    let alone = make(&merchant, "/api/pix", &pix("80.00")).await;
    let linked = merchant.post(&documents_of(&alone), &json!({"key": key_of(&cnpj(7))})).await.expect(201);
    assert_eq!(linked["fiscal_documents"][0]["issuer_known"], false);
}

#[tokio::test]
async fn a_charge_has_a_hundred_documents_at_most() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = make(&merchant, "/api/pix", &pix("80.00")).await;
    let bodies: Vec<_> = (0..101).map(|number| json!({"key": key_of(&cnpj(100 + number))})).collect();
    // Links that come at once are all there.
    let path = documents_of(&txid);
    for answer in futures_of(4, |place| merchant.post(&path, &bodies[place])).await {
        answer.expect(201);
    }
    for body in &bodies[4..100] {
        merchant.post(&path, body).await.expect(201);
    }
    merchant.post(&path, &bodies[100]).await.refused(409, "state_conflict");
    unlink(&merchant, &txid, &text(&bodies[7]["key"])).await.expect(200);
    assert_eq!(keys(&merchant.post(&path, &bodies[100]).await.expect(201)).len(), 100);
}
