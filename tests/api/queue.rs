//! Operators' queue: registrations, changed bank accounts, withdrawals and refunds that wait for a
//! decision.

use serde_json::{Value, json};

use crate::world::*;

async fn queue(world: &World, query: &str) -> Value {
    let queue = world.ops_get(&format!("/ops/queue{query}")).await.expect(200);
    has_exactly(&queue, &["items", "total", "amount"]);
    assert!(items(&queue).is_sorted_by_key(|item| time(&item["created_at"])), "oldest first: {queue}");
    queue
}

fn ids(queue: &Value) -> Vec<String> {
    items(queue).iter().map(|item| text(&item["id"])).collect()
}

#[tokio::test]
async fn recipients_wait_until_they_are_decided_on() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    assert_eq!(queue(&world, "").await, json!({"items": [], "total": 0, "amount": 0}));
    let ana = merchant.draft("Ana", 1).await;
    world.advance(1).await;
    let sol = text(&other.post("/api/sub-recipients", &corporation("Sol", &cnpj(2))).await.expect(201)["id"]);
    world.advance(1).await;
    let bia = merchant.draft("Bia", 3).await;
    world.advance(1).await;
    let eva = merchant.draft("Eva", 4).await;
    assert_eq!(ids(&queue(&world, "").await), [&*ana, &sol, &bia, &eva]);
    let all = queue(&world, "").await;
    let item = &items(&all)[1];
    let company = cnpj(2);
    let expected = json!({
        "kind": "recipient", "id": sol, "version": 1, "merchant_id": other.id, "merchant_name": item["merchant_name"], "created_at": item["created_at"], "status": "pending",
        "name": "Sol", "document": format!("**.{}.{}/{}-**", &company[2..5], &company[5..8], &company[8..12]),
        "review": "registration", "destination": item["destination"], "bank_name": "Banco do Brasil",
        "flags": ["shared_address"],
    });
    assert_eq!(item["destination"]["conta"], "*");
    assert_eq!(*item, expected);
    let (kind, unknown) = ("?kind=recipient", "01890000-0000-8000-8000-000000000000");
    for (query, expected) in [
        (format!("?merchant_id={}", merchant.id), vec![&ana, &bia, &eva]),
        (format!("?merchant_id={}", other.id), vec![&sol]),
        (kind.to_owned(), vec![&ana, &sol, &bia, &eva]),
        (format!("{kind}&merchant_id={}", other.id), vec![&sol]),
        (format!("?merchant={}", other.id), vec![&sol]),
        ("?recipient=eva".to_owned(), vec![&eva]),
        (format!("?recipient_id={ana}"), vec![&ana]),
    ] {
        let found = queue(&world, &query).await;
        assert_eq!(
            (ids(&found).iter().collect::<Vec<_>>(), &found["total"]),
            (expected.clone(), &json!(expected.len())),
            "{query}"
        );
    }
    for (query, field) in [
        ("kind=robot", "kind"),
        ("kind=", "kind"),
        ("kind=recipient&kind=recipient", "kind"),
        ("recipient=Rui", "recipient"),
        ("who=x", "who"),
    ] {
        let refused = world.ops_get(&format!("/ops/queue?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{query}");
    }
    for unknown in [unknown, "x", ana.as_str()] {
        world.ops_get(&format!("/ops/queue?merchant_id={unknown}")).await.refused(404, "not_found");
    }

    world.ops_post(&format!("/ops/sub-recipients/{sol}/approve"), &json!({})).await.expect(200);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/reject"), &json!({"notes": "x"})).await.expect(200);
    assert_eq!(ids(&queue(&world, "").await), [&*bia, &eva]);
    let audit = world.ops_get(&format!("/ops/audit?id={sol}")).await.expect(200);
    assert_eq!(items(&audit)[0]["changes"], json!([{"field": "status", "old": "pending", "new": "active"}]));
    merchant
        .patch(&format!("/api/sub-recipients/{bia}"), &json!({"register_information": {"name": "Bia Lima"}}))
        .await
        .expect(200);
    // Registered again, it waits again, in the place of its first registration.
    merchant.post("/api/sub-recipients", &individual("Ana Prado", &cpf(1))).await.expect(200);
    world.advance(1).await;
    // A changed account waits from its change on, however old the recipient is.
    let account = json!({"bank_account": {"conta": "97531"}});
    other.patch(&format!("/api/sub-recipients/{sol}"), &account).await.expect(200);
    world.advance(0).await;
    let before = queue(&world, "").await;
    assert_eq!(ids(&before), [&*ana, &bia, &eva, &sol]);
    let names: Vec<_> = items(&before).iter().map(|item| text(&item["name"])).collect();
    assert_eq!(names, ["Ana Prado", "Bia Lima", "Eva", "Sol"]);
    let world = world.restarted().await;
    assert_eq!(queue(&world, "").await, before, "it outlives the process");
}

#[tokio::test]
async fn a_long_queue_shows_its_oldest_and_counts_all() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = merchant.draft("First", 0).await;
    world.advance(1).await;
    // Fewer at once than are never refused, however slow the machine is.
    for batch in 0..21 {
        let answers = futures_of(50, |index| {
            let number = 1 + batch * 50 + index as u32;
            merchant.post_raw("/api/sub-recipients", &[], individual("Ana", &cpf(number)).to_string())
        })
        .await;
        answers.into_iter().for_each(|answer| drop(answer.expect(201)));
    }
    world.advance(1).await;
    let last = merchant.draft("Last", 2_000).await;
    let long = queue(&world, "").await;
    assert_eq!((items(&long).len(), &long["total"]), (1_000, &json!(1_052)));
    assert_eq!(ids(&long)[0], first);
    assert!(!ids(&long).contains(&last));
}

/// A decision is on what its decider saw: the key's holder changes the account between the look and
/// the click, of a registration and of an active recipient.
#[tokio::test]
async fn an_account_that_was_not_seen_is_not_approved() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = merchant.draft("Ana", 1).await;
    let account = |conta: &str| json!({"bank_account": {"conta": conta, "conta_dv": null}});
    let change = format!("/api/sub-recipients/{id}");
    let path = |verb: &str| format!("/ops/sub-recipients/{id}/{verb}");
    for seen in [1, 3] {
        world.advance(10).await;
        let shown = items(&queue(&world, "").await)[0].clone();
        assert_eq!(shown["version"], seen, "{shown}");
        assert_eq!(world.ops_get(&format!("/ops/queue/{id}/preview")).await.expect(200)["version"], seen);
        // The account has the same masked form, so that only the version shows it.
        merchant.patch(&change, &account(&format!("9{seen}"))).await.expect(200);
        let before = world.cut().await;
        for body in [json!({"version": seen}), json!({"version": seen, "notes": "x"})] {
            let verb = if body.get("notes").is_some() { "reject" } else { "approve" };
            let changed = world.ops_post(&path(verb), &body).await.refused(409, "item_changed");
            assert_eq!((&changed["version"], &changed["item"]["version"]), (&json!(seen + 1), &json!(seen + 1)));
            assert_eq!(changed["item"], items(&queue(&world, "").await)[0]);
        }
        for tag in [format!("\"{seen}\""), seen.to_string()] {
            let headers = [("if-match", &*tag)];
            world
                .ops_send(reqwest::Method::POST, &path("approve"), &headers, String::new())
                .await
                .refused(409, "item_changed");
        }
        for (tag, version) in [("\"1\"", json!({"version": 9})), ("x", json!({})), ("\"-1\"", json!({}))] {
            let headers = [("if-match", tag)];
            world
                .ops_send(reqwest::Method::POST, &path("approve"), &headers, version.to_string())
                .await
                .refused(400, "validation_failed");
        }
        for wrong in [json!("1"), json!(-1), json!(1.5)] {
            world.ops_post(&path("approve"), &json!({"version": wrong})).await.refused(400, "validation_failed");
        }
        assert_eq!(world.cut().await, before, "nothing was decided");
        world.ops_post(&path("approve"), &json!({"version": seen + 1})).await.expect(200);
        world.ops_post(&path("approve"), &json!({"version": seen})).await.refused(409, "already_decided");
        // Active: the next account waits by itself.
        merchant.patch(&change, &account(&format!("8{seen}"))).await.expect(200);
    }
    // Without a version it is decided on as it is.
    world.ops_post(&path("approve"), &json!({})).await.expect(200);
}

/// Every item has a version, also where nothing changes while it waits, and another one is refused.
#[tokio::test]
async fn every_decision_takes_the_version_that_was_seen() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let txid = text(&merchant.paid_pix(&with_splits(pix("100.00"), &[(&recipient, 3_000)])).await["txid"]);
    merchant.draft("Bia", 2).await;
    merchant.withdraw(&recipient).await.expect(201);
    merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 100})).await.expect(201);
    let dispute = json!({"amount": 200, "kind": "med", "reason": "x"});
    world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201);
    let entry =
        json!({"debit": "Assets:Bank:Own", "credit": "Equity:Capital", "amount": 1, "reason": "x", "reference": "R1"});
    world.second_ops_post("/ops/entries", &[], &entry).await.expect(201);
    let mut kinds = Vec::new();
    for item in items(&queue(&world, "").await) {
        let (kind, version) = (text(&item["kind"]), item["version"].as_i64().unwrap());
        let (noun, approve, reject) = match &*kind {
            "recipient" => ("sub-recipients", "approve", "reject"),
            "withdrawal" => ("withdrawals", "approve", "reject"),
            "refund" => ("refunds", "approve", "reject"),
            "dispute" => ("disputes", "accept", "release"),
            _ => ("entries", "approve", "reject"),
        };
        let path = |verb: &str| format!("/ops/{noun}/{}/{verb}", text(&item["id"]));
        let before = world.requested().await;
        for verb in [approve, reject] {
            let notes = if verb == "reject" { json!({"notes": "x"}) } else { json!({}) };
            let mut body = notes.clone();
            body["version"] = json!(version + 1);
            let changed = world.ops_post(&path(verb), &body).await.refused(409, "item_changed");
            assert_eq!(changed["item"], *item, "{kind} {verb}");
            let headers = [("if-match", "\"7\"")];
            let notes = notes.to_string();
            world.ops_send(reqwest::Method::POST, &path(verb), &headers, notes).await.refused(409, "item_changed");
        }
        assert_eq!(world.requested().await, before, "{kind}");
        world.ops_post(&path(approve), &json!({"version": version})).await.expect(200);
        world.ops_post(&path(approve), &json!({"version": version + 1})).await.refused(409, "already_decided");
        kinds.push(kind);
    }
    kinds.sort();
    assert_eq!(kinds, ["dispute", "entry", "recipient", "refund", "withdrawal"]);
}

/// A name leads to the recipient of the merchant that is asked for, and of merchants only merchants
/// are counted.
#[tokio::test]
async fn a_recipient_is_named_among_those_of_its_merchant() {
    let world = World::sandbox().await;
    let one = world.merchant().await;
    let other = world.open(json!({"name": "Padaria", "document": cnpj(90), "split_enabled": true})).await;
    let (ana, another) = (one.draft("Ana", 1).await, other.draft("Ana", 2).await);
    let refused = world.ops_get("/ops/queue?recipient=Ana").await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["code"], "ambiguous");
    for (query, expected) in [("merchant=Padaria".to_owned(), &another), (format!("merchant_id={}", one.id), &ana)] {
        assert_eq!(ids(&queue(&world, &format!("?recipient=Ana&{query}")).await), [&**expected], "{query}");
    }
    for batch in 0..5 {
        let answers = futures_of(50, |index| {
            let number = 10 + batch * 50 + index as u32;
            one.post_raw("/api/sub-recipients", &[], individual("Padaria Nova", &cpf(number)).to_string())
        })
        .await;
        answers.into_iter().for_each(|answer| drop(answer.expect(201)));
    }
    assert_eq!(ids(&queue(&world, "?merchant=Padaria").await), [&*another]);
}
