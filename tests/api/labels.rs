//! Labels of charges: references that may be unique for ever, metadata and its changes, and lists
//! by both.

use serde_json::{Value, json};

use crate::world::*;

fn labelled(mut charge: Value, reference: &str, metadata: Value) -> Value {
    charge["reference"] = json!(reference);
    charge["metadata"] = metadata;
    charge
}

fn unique(charge: Value, reference: &str) -> Value {
    with(&with(&charge, "/reference", json!(reference)), "/reference_unique", json!(true))
}

async fn charge(merchant: &Merchant<'_>, txid: &str) -> Value {
    merchant.get(&format!("/api/charges/{txid}")).await.expect(200)
}

async fn make(merchant: &Merchant<'_>, body: &Value) -> String {
    let path = if body.get("valor").is_some() { "/api/pix" } else { "/api/card" };
    text(&merchant.post(path, body).await.expect(201)["txid"])
}

/// The txids of a list of charges that fits a page.
async fn listed(merchant: &Merchant<'_>, query: &str) -> Vec<String> {
    let list = merchant.get(&format!("/api/charges?per_page=100&{query}")).await.expect(200);
    assert_eq!(list["total"].as_u64(), Some(items(&list).len() as u64), "{query}");
    items(&list).iter().map(|item| text(&item["txid"])).collect()
}

#[tokio::test]
async fn a_charge_shows_its_labels_wherever_it_is_shown() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let metadata = json!({"loja": "azul", "nota": "duas\nlinhas"});
    for body in [card(10_000, APPROVED), pix("80.00")] {
        let plain = charge(&merchant, &make(&merchant, &body).await).await;
        assert_eq!((plain.get("reference"), plain.get("metadata")), (None, None));
        let body = labelled(body, " pedido-1042 ", metadata.clone());
        let path = if body.get("valor").is_some() { "/api/pix" } else { "/api/card" };
        for (name, value) in [("reference", json!("pedido-1042")), ("metadata", metadata.clone())] {
            let alone = with(&without(&without(&body, "/reference"), "/metadata"), &format!("/{name}"), value.clone());
            let answer = merchant.post_keyed(path, name, &alone).await.expect(201);
            let other = if name == "reference" { "metadata" } else { "reference" };
            assert_eq!((answer.get(name), answer.get(other)), (Some(&value), None), "{path}: {answer}");
            assert_eq!(merchant.post_keyed(path, name, &alone).await.expect(201), answer);
        }
        let txid = make(&merchant, &body).await;
        let shown = charge(&merchant, &txid).await;
        assert_eq!((&shown["reference"], &shown["metadata"]), (&json!("pedido-1042"), &metadata));
        if shown["payment_method"] == "pix" {
            merchant.pay(&txid).await.expect(200);
        }
        let events = merchant.get("/api/events?per_page=100").await.expect(200);
        let sent = items(&events).iter().map(|event| &event["charge"]).find(|sent| sent["txid"] == *txid);
        let sent = sent.unwrap_or_else(|| panic!("an event of {txid}: {events}"));
        assert_eq!((&sent["reference"], &sent["metadata"]), (&json!("pedido-1042"), &metadata));
        let of_operators = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
        assert_eq!(of_operators["metadata"], metadata);
        let found = world.ops_get("/ops/search?q=pedido-1042").await.expect(200).to_string();
        assert!(found.contains(&txid), "{found}");
    }
    // A refused card repeats them too.
    let refused = labelled(card(10_000, REFUSED), "recusado", metadata.clone());
    let refused = merchant.post("/api/card", &refused).await.refused(402, "card_declined");
    assert_eq!((&refused["reference"], &refused["metadata"]), (&json!("recusado"), &metadata));
    let refused = merchant.post("/api/card", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    assert_eq!((refused.get("reference"), refused.get("metadata")), (None, None));
    let other = world.merchant().await;
    assert!(listed(&other, "reference=pedido-1042").await.is_empty());
}

#[tokio::test]
async fn labels_that_are_too_long_or_no_texts_are_refused() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let many: Value = (0..21).map(|key| (format!("k{key}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let large: Value =
        (0..17).map(|key| (format!("k{key}"), json!("é".repeat(250)))).collect::<serde_json::Map<_, _>>().into();
    for (field, value, wrong, code) in [
        ("reference", json!("r".repeat(65)), "reference", "wrong_length"),
        ("reference", json!("a\u{7}"), "reference", "control_character"),
        ("reference", json!("\u{200b}"), "reference", "invisible_character"),
        ("reference", json!("a\u{202e}b"), "reference", "invisible_character"),
        ("reference", json!("a\u{feff}"), "reference", "invisible_character"),
        ("reference", json!("\u{2028}a"), "reference", "invisible_character"),
        ("reference", json!("a\u{2800}b"), "reference", "invisible_character"),
        ("reference", json!("a\u{2003}"), "reference", "invisible_character"),
        ("reference", json!("a\u{a0}b"), "reference", "invisible_character"),
        ("reference", json!(1042), "reference", "not_a_string"),
        ("reference_unique", json!("true"), "reference_unique", "not_a_boolean"),
        ("reference_unique", json!(true), "reference", "required"),
        ("metadata", json!([]), "metadata", "not_an_object"),
        ("metadata", json!("azul"), "metadata", "not_an_object"),
        ("metadata", json!({"k": 1}), "metadata", "not_a_string"),
        ("metadata", json!({"k": {"a": "b"}}), "metadata", "not_a_string"),
        ("metadata", json!({"k": "v".repeat(501)}), "metadata", "wrong_length"),
        ("metadata", json!({"k".repeat(41): "v"}), "metadata", "invalid_key"),
        ("metadata", json!({"": "v"}), "metadata", "invalid_key"),
        ("metadata", json!({"a[b]": "v"}), "metadata", "invalid_key"),
        ("metadata", many, "metadata", "wrong_count"),
        ("metadata", large, "metadata", "too_long"),
    ] {
        for (path, body) in [("/api/card", card(1_000, APPROVED)), ("/api/pix", pix("10.00"))] {
            let refused = merchant.post(path, &with(&body, &format!("/{field}"), value.clone())).await;
            let refused = refused.refused(400, "validation_failed");
            assert_eq!(
                (&refused["errors"][0]["field"], &refused["errors"][0]["code"]),
                (&json!(wrong), &json!(code)),
                "{value}"
            );
        }
    }
    let longest: Value =
        (0..20).map(|key| (format!("{key:k>40}"), json!("v".repeat(369)))).collect::<serde_json::Map<_, _>>().into();
    let txid = make(&merchant, &labelled(pix("10.00"), &"é".repeat(64), longest.clone())).await;
    assert_eq!(charge(&merchant, &txid).await["metadata"], longest);
    let txid = make(&merchant, &labelled(pix("10.00"), "", json!({"k": "", "l": null}))).await;
    assert_eq!(charge(&merchant, &txid).await.get("metadata"), None);
}

#[tokio::test]
async fn a_unique_reference_is_used_up_for_ever() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let body = unique(card(10_000, APPROVED), "1042");
    let first = make(&merchant, &body).await;
    let cut = world.cut().await;
    let check = async |merchant: &Merchant<'_>| {
        let again = merchant.post("/api/card", &body).await.refused(409, "duplicate_reference");
        assert_eq!(again["txid"], *first);
        let with_other_cvv = with(&body, "/credit_card/cvv", json!("738"));
        merchant.post("/api/card", &with_other_cvv).await.refused(409, "duplicate_reference");
        for (path, body) in [("/api/card", card(10_001, APPROVED)), ("/api/pix", pix("10.00"))] {
            let taken = merchant.post(path, &unique(body, "1042")).await.refused(409, "reference_taken");
            assert_eq!(taken["txid"], *first);
        }
    };
    check(&merchant).await;
    assert_eq!(world.cut().await, cut, "nothing was written");
    // Without the wish for a unique one, and for others, the reference is free.
    make(&merchant, &with(&pix("10.00"), "/reference", json!("1042"))).await;
    make(&other, &unique(pix("10.00"), "1042")).await;
    // Wrong bodies are refused first, and use nothing up.
    merchant.post("/api/card", &unique(card(0, APPROVED), "1042")).await.refused(400, "validation_failed");
    merchant.post("/api/card", &unique(card(0, APPROVED), "1043")).await.refused(400, "validation_failed");
    let refused = merchant.post("/api/card", &unique(card(10_000, REFUSED), "1043")).await.expect(402);
    let taken = merchant.post("/api/card", &unique(card(10_000, APPROVED), "1043")).await;
    assert_eq!(taken.refused(409, "reference_taken")["txid"], refused["txid"]);
    // A repeat with the key is the first answer while the key is known, and a conflict later.
    let keyed = unique(pix("20.00"), "1044");
    let made = merchant.post_keyed("/api/pix", "k", &keyed).await;
    let replayed = merchant.post_keyed("/api/pix", "k", &keyed).await;
    assert_eq!((replayed.status, &replayed.body["txid"]), (201, &made.body["txid"]));
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    world.advance(25 * 60 * 60).await;
    let late = merchant.post_keyed("/api/pix", "k", &keyed).await.refused(409, "duplicate_reference");
    assert_eq!(late["txid"], made.body["txid"]);
    check(&merchant).await;
    let names = merchant.names;
    let world = world.restarted().await;
    check(&Merchant { world: &world, names }).await;
    world.check_books().await;
}

#[tokio::test]
async fn of_many_at_once_one_has_the_reference() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let body = unique(pix("10.00"), "corrida");
    let answers = futures_of(16, |_| merchant.post("/api/pix", &body)).await;
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(made.len(), 1);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!((refused.status, &refused.body["code"]), (409, &json!("duplicate_reference")), "{}", refused.text);
        assert_eq!(refused.body["txid"], made[0].body["txid"]);
    }
    assert_eq!(listed(&merchant, "").await.len(), 1);
}

#[tokio::test]
async fn charges_are_listed_by_their_labels() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut txids = Vec::new();
    for (reference, store, body) in [
        ("a", "azul", pix("10.00")),
        ("a", "verde", card(1_000, APPROVED)),
        ("b", "azul", card(1_000, APPROVED)),
        ("a", "azul", card(1_000, APPROVED)),
    ] {
        txids.push(make(&merchant, &labelled(body, reference, json!({"loja": store, "com espaço": "a&b"}))).await);
    }
    make(&merchant, &pix("10.00")).await;
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|place| txids[place].as_str());
    for (query, expected) in [
        ("reference=a", vec![fourth, second, first]),
        ("reference=%20a%20", vec![fourth, second, first]),
        ("reference=A", vec![]),
        ("reference=", vec![]),
        ("reference=a&status=pending", vec![first]),
        ("reference=a&payment_method=credit_card", vec![fourth, second]),
        ("reference=a&metadata[loja]=azul", vec![fourth, first]),
        ("metadata[loja]=azul", vec![fourth, third, first]),
        ("metadata%5Bloja%5D=verde", vec![second]),
        ("metadata[com%20espa%C3%A7o]=a%26b&metadata[loja]=verde", vec![second]),
        ("metadata[loja]=azul&status=CONCLUIDA", vec![fourth, third]),
        ("metadata[loja]=az", vec![]),
        ("metadata[outra]=azul", vec![]),
        ("metadata[loja]=azul&to=2001-01-01", vec![]),
    ] {
        assert_eq!(listed(&merchant, query).await, expected, "{query}");
    }
    let page = merchant.get("/api/charges?metadata[loja]=azul&per_page=2&page=2").await.expect(200);
    assert_eq!((page["total"].as_u64(), page["pages"].as_u64()), (Some(3), Some(2)));
    assert_eq!(items(&page)[0]["txid"], first);
    for wrong in ["metadata=azul", "metadata[loja]=a&metadata[loja]=b", "reference=a&reference=b", "loja[a]=b"] {
        merchant.get(&format!("/api/charges?{wrong}")).await.refused(400, "validation_failed");
    }
    for _ in 0..2_000 {
        make(&merchant, &with(&pix("1.00"), "/reference", json!("muitas"))).await;
    }
    let many = merchant.get("/api/charges?metadata[loja]=azul").await.refused(400, "validation_failed");
    assert_eq!(
        (&many["errors"][0]["field"], &many["errors"][0]["code"]),
        (&json!("metadata"), &json!("too_many_items"))
    );
    assert_eq!(listed(&merchant, "reference=a").await, [fourth, second, first], "others do not count");
    assert_eq!(listed(&merchant, "metadata[loja]=azul&payment_method=credit_card").await, [fourth, third]);
    let page = merchant.get("/api/charges?reference=muitas").await.expect(200);
    assert_eq!(page["total"], 2_000);
}

#[tokio::test]
async fn metadata_is_changed_key_by_key() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = make(&merchant, &labelled(pix("10.00"), "a", json!({"loja": "azul", "nota": "1"}))).await;
    let path = format!("/api/charges/{txid}");
    let change = async |metadata: Value| merchant.patch(&path, &json!({ "metadata": metadata })).await;
    let changed = change(json!({"nota": null, "entrega": "hoje", "x": ""})).await.expect(200);
    assert_eq!(changed["metadata"], json!({"loja": "azul", "entrega": "hoje"}));
    assert_eq!((charge(&merchant, &txid).await, &changed["reference"]), (changed.clone(), &json!("a")));
    assert!(listed(&merchant, "metadata[nota]=1").await.is_empty());
    assert_eq!(listed(&merchant, "metadata[entrega]=hoje").await, [&*txid]);
    // Changes that come at once are all there.
    let of = |one: u32| json!({"metadata": {format!("k{}", one % 18): format!("{one}")}});
    let bodies: Vec<_> = (0..40).map(of).collect();
    for answer in futures_of(40, |place| merchant.patch(&path, &bodies[place])).await {
        answer.expect(200);
    }
    let shown = charge(&merchant, &txid).await;
    assert_eq!(shown["metadata"].as_object().unwrap().len(), 20, "{shown}");
    let many: Value = (0..13).map(|key| (format!("n{key}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(change(many).await.refused(400, "validation_failed")["errors"][0]["code"], "wrong_count");
    assert_eq!(change(json!({"k": 1})).await.refused(400, "validation_failed")["errors"][0]["code"], "not_a_string");
    for name in ["reference", "amount", "status", "note"] {
        let refused = merchant.patch(&path, &json!({"metadata": {"k": "v"}, (name): "b"})).await;
        let error = refused.refused(400, "validation_failed")["errors"][0].clone();
        assert_eq!((&error["field"], &error["code"]), (&json!(name), &json!("unknown_field")), "{error}");
    }
    for nothing in [json!({}), json!({"metadata": null})] {
        assert_eq!(merchant.patch(&path, &nothing).await.expect(200), shown);
    }
    assert_eq!(charge(&merchant, &txid).await, shown);
    world.merchant().await.patch(&path, &json!({"metadata": {"k": "v"}})).await.refused(404, "charge_not_found");
    // What was sent before the change stays as it was sent.
    merchant.pay(&txid).await.expect(200);
    let sent = merchant.get("/api/events?per_page=100").await.expect(200);
    change(json!({"loja": "verde"})).await.expect(200);
    let again = merchant.get("/api/events?per_page=100").await.expect(200);
    assert_eq!(items(&sent)[0]["charge"], items(&again)[0]["charge"]);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(charge(&merchant, &txid).await["metadata"]["loja"], "verde");
}

#[tokio::test]
async fn charges_of_a_subscription_have_its_labels() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let plan = json!({"tag": "mensal", "amount": 1_000, "billingCycle": "MONTHLY", "totalBillingCycles": 2});
    let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
    let customer = card(1, APPROVED)["customer"].clone();
    let body = json!({"plan_id": plan, "customer": customer, "payment_method": "pix"});
    let refused = merchant.post("/api/recurrency/subscriptions", &with(&body, "/metadata", json!({"k": 1}))).await;
    assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["code"], "not_a_string");
    let plain = merchant.post("/api/recurrency/subscriptions", &body).await.expect(201);
    assert_eq!((plain.get("reference"), plain.get("metadata")), (None, None));
    let body = labelled(body, "assinatura-77", json!({"loja": "azul"}));
    let begun = merchant.post("/api/recurrency/subscriptions", &body).await.expect(201);
    world.advance(0).await;
    let path = format!("/api/recurrency/subscriptions/{}", text(&begun["id"]));
    let changed = merchant.patch(&path, &json!({"metadata": {"loja": "verde"}})).await.expect(200);
    world.advance(40 * DAY).await;
    let read = merchant.get(&path).await.expect(200);
    let charges = merchant.get(&format!("{path}/charges")).await.expect(200);
    let events = merchant.get("/api/events?after=0&per_page=100").await.expect(200);
    let is_of_it = |event: &&Value| event["subscription"]["id"] == begun["id"];
    let events: Vec<_> = items(&events).iter().filter(is_of_it).map(|event| &event["subscription"]).collect();
    let [second, first] = items(&charges).as_slice() else { panic!("{charges}") };
    // What was made before the change stays as it was, and events keep their bodies.
    let shown = [(&begun, "azul"), (first, "azul"), (events[0], "azul"), (&changed, "verde"), (second, "verde")];
    for (labelled, loja) in shown.into_iter().chain([(&read, "verde"), (events[events.len() - 1], "verde")]) {
        let labels = (&labelled["reference"], &labelled["metadata"]);
        assert_eq!(labels, (&json!("assinatura-77"), &json!({"loja": loja})), "{labelled}");
    }
    let both = json!({"metadata": {"loja": "azul"}, "card_token": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e"});
    let both = merchant.patch(&path, &both).await.refused(400, "validation_failed");
    assert_eq!(both["errors"][0]["field"], "metadata");
    assert_eq!(listed(&merchant, "reference=assinatura-77").await.len(), 2);
    let found = world.ops_get("/ops/search?q=assinatura-77").await.expect(200).to_string();
    assert!(found.contains(&text(&begun["id"])), "{found}");
}
