//! `Idempotency-Key`: a request that was carried out is answered again, and not carried out again.

use serde_json::{Value, json};

use crate::world::*;

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotent-replayed") == Some("true")
}

#[tokio::test]
async fn a_replay_gives_the_same_answer_and_moves_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let draft = merchant.draft("Rui", 2).await;
    let refused_one = merchant.draft("Eva", 3).await;
    let code = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let unwanted = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let new_merchant = json!({"name": "Nova", "document": cnpj(9), "split_enabled": true, "cashout_enabled": false});
    let requests = [
        ("/api/card".to_owned(), with_splits(card(10_000, APPROVED), &[(&ana, 100)]), 201),
        ("/api/card".to_owned(), card(10_000, REFUSED), 402),
        ("/api/card".to_owned(), card(10_000, SILENT), 201),
        ("/api/pix".to_owned(), with_splits(pix("80.00"), &[(&ana, 100)]), 201),
        ("/api/sub-recipients".to_owned(), individual("Lia", &cpf(4)), 201),
        (format!("/api/sandbox/pix/{code}/pay"), json!({}), 200),
        (format!("/api/charges/{unwanted}/cancel"), json!({}), 200),
        ("/ops/merchants".to_owned(), new_merchant, 201),
        (format!("/ops/sub-recipients/{draft}/approve"), json!({}), 200),
        (format!("/ops/sub-recipients/{refused_one}/reject"), json!({"notes": "Ilegível"}), 200),
        ("/ops/sandbox/clock".to_owned(), json!({"advance_seconds": 30}), 200),
    ];
    let mut firsts = Vec::new();
    for (index, (path, body, status)) in requests.iter().enumerate() {
        let first = send(&merchant, path, index, body).await;
        assert_eq!((first.status, is_replay(&first)), (*status, false), "{path}: {}", first.text);
        firsts.push(first);
    }
    // What happens afterwards changes no answer: the silent charge is found, names and fees change,
    // money arrives.
    world.advance(120).await;
    let change = json!({"name": "Outro nome", "split_enabled": true, "fees": {"pix": "5", "margin": "5"}});
    for id in [&merchant.id, &text(&firsts[7].body["id"])] {
        let path = format!("/ops/merchants/{id}");
        world.ops_send(reqwest::Method::PATCH, &path, &[], change.to_string()).await.expect(200);
    }
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&draft, 100)])).await;
    merchant.post("/api/sub-recipients", &individual("Eva Nova", &cpf(3))).await.expect(200);
    world.advance(0).await;
    let before = world.trace(&[&merchant]).await;
    for (index, ((path, body, _), first)) in requests.iter().zip(&firsts).enumerate() {
        let again = send(&merchant, path, index, body).await;
        assert_eq!((again.status, &again.text), (first.status, &first.text), "{path}");
        assert!(is_replay(&again), "{path}");
        let mut other = body.clone();
        other["extra"] = json!(1);
        let reused = send(&merchant, path, index, &other).await;
        // Operators' routes refuse an unknown name before they look the key up.
        match path.starts_with("/ops") {
            true => reused.refused(400, "validation_failed"),
            false => reused.refused(422, "idempotency_key_reused"),
        };
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
    world.check_books().await;
}

#[tokio::test]
async fn a_replay_of_a_new_key_names_it_and_does_not_show_it() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let path = format!("/ops/merchants/{}/api-keys", merchant.id);
    let first = send(&merchant, &path, 0, &json!({})).await;
    let cut = world.cut().await;
    let again = send(&merchant, &path, 0, &json!({})).await;
    assert!(is_replay(&again) && !is_replay(&first));
    assert_eq!((first.status, again.status, world.cut().await), (201, 201, cut));
    let hidden = with(&with(&first.body, "/api_key", json!(null)), "/webhook_secret", json!(null));
    assert_eq!(again.body, hidden);
    assert!(first.body["api_key"].is_string());
}

async fn send(merchant: &Merchant<'_>, path: &str, index: usize, body: &Value) -> Answer {
    let key = format!("key-{index}");
    let headers = [("idempotency-key", key.as_str()), ("x-request-id", "the-same")];
    if path.starts_with("/api") {
        merchant.post_raw(path, &headers, body.to_string()).await
    } else {
        merchant.world.ops_send(reqwest::Method::POST, path, &headers, body.to_string()).await
    }
}

#[tokio::test]
async fn what_was_refused_is_not_kept() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja", "document": cnpj(1), "split_enabled": false, "cashout_enabled": false}))
        .await;
    let unknown = "01890000-0000-8000-8000-000000000000";
    merchant
        .post_keyed("/api/card", "k", &with(&card(1, APPROVED), "/amount", json!("1")))
        .await
        .refused(400, "validation_failed");
    merchant.post_raw("/api/card", &[("idempotency-key", "k")], "{").await.refused(400, "invalid_json");
    let with_split = with_splits(card(10_000, APPROVED), &[(unknown, 1)]);
    merchant.post_keyed("/api/card", "k", &with_split).await.refused(422, "split_not_enabled");
    let first = merchant.post_keyed("/api/card", "k", &card(10_000, APPROVED)).await;
    assert!(first.status == 201 && !is_replay(&first));
    assert!(is_replay(&merchant.post_keyed("/api/card", "k", &card(10_000, APPROVED)).await));
    // Once it is stored: the syntax comes before the replay, and the replay before the capability
    // and the meaning.
    merchant.post_raw("/api/card", &[("idempotency-key", "k")], "{").await.refused(400, "invalid_json");
    merchant.post_keyed("/api/card", "k", &with_split).await.refused(422, "idempotency_key_reused");
    assert_eq!(merchant.balance().await, [0, 9_403, 0, 0]);
}

#[tokio::test]
async fn the_security_code_is_not_part_of_the_request() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = card(10_000, APPROVED);
    let first = merchant.post_keyed("/api/card", "k", &charge).await.expect(201);
    let other_code = with(&charge, "/credit_card/cvv", json!("1234"));
    assert_eq!(merchant.post_keyed("/api/card", "k", &other_code).await.expect(201), first);
    for no_code in [json!({}), json!(737), json!("12"), json!("12345"), json!("12a"), Value::Null] {
        let other = with(&charge, "/credit_card/cvv", no_code);
        merchant.post_keyed("/api/card", "k", &other).await.refused(422, "idempotency_key_reused");
    }
    let other_number = with(&charge, "/credit_card/number", json!("5555555555554444"));
    merchant.post_keyed("/api/card", "k", &other_number).await.refused(422, "idempotency_key_reused");
    let named = with(&without(&charge, "/credit_card"), "/card", charge["credit_card"].clone());
    let first = merchant.post_keyed("/api/card", "k2", &named).await.expect(201);
    let other_code = with(&named, "/card/cvv", json!("999"));
    assert_eq!(merchant.post_keyed("/api/card", "k2", &other_code).await.expect(201), first);
    assert_eq!(merchant.balance().await, [0, 2 * 9_403, 0, 0]);
}

#[tokio::test]
async fn a_key_is_kept_24_hours() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = merchant.post_keyed("/api/pix", "k", &pix("10.00")).await.expect(201);
    world.advance(DAY - 60).await;
    assert_eq!(merchant.post_keyed("/api/pix", "k", &pix("10.00")).await.expect(201), first);
    merchant.post_keyed("/api/pix", "k", &pix("11.00")).await.refused(422, "idempotency_key_reused");
    world.advance(60).await;
    let answer = merchant.post_keyed("/api/pix", "k", &pix("11.00")).await;
    assert!(!is_replay(&answer));
    let second = answer.expect(201);
    assert_ne!(second["txid"], first["txid"]);
    assert_eq!(
        merchant.post_keyed("/api/pix", "k", &pix("11.00")).await.expect(201),
        second,
        "the new request is stored as well"
    );
    merchant.post_keyed("/api/pix", "k", &pix("10.00")).await.refused(422, "idempotency_key_reused");
}

#[tokio::test]
async fn a_key_belongs_to_one_account_and_route() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    for caller in [&merchant, &other] {
        for (path, body) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("10.00"))] {
            let answer = caller.post_keyed(path, "k", &body).await;
            assert!(answer.status == 201 && !is_replay(&answer), "{path}: {}", answer.text);
        }
        caller.post_keyed("/api/sub-recipients", "k", &individual("Ana", &cpf(1))).await.expect(201);
    }
    for _ in 0..2 {
        let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
        let paid = merchant.post_keyed(&format!("/api/sandbox/pix/{txid}/pay"), "k", &json!({})).await;
        assert!(!is_replay(&paid), "each charge's route is its own");
        assert_eq!(paid.expect(200)["txid"], txid);
    }
}

#[tokio::test]
async fn of_concurrent_requests_with_one_key_one_is_carried_out() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for (path, body) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("10.00"))] {
        let answers = futures_of(16, |_| merchant.post_keyed(path, "k", &body)).await;
        let fresh = answers.iter().filter(|answer| answer.status == 201 && !is_replay(answer)).count();
        assert_eq!(fresh, 1, "{path}");
        let txid = &answers.iter().find(|answer| answer.status == 201).unwrap().body["txid"];
        for answer in &answers {
            match answer.status {
                201 => assert_eq!(&answer.body["txid"], txid),
                status => assert_eq!((status, &answer.body["code"]), (409, &json!("idempotency_key_in_progress"))),
            }
        }
        let settled = merchant.post_keyed(path, "k", &body).await;
        assert!(is_replay(&settled));
        assert_eq!(&settled.body["txid"], txid);
    }
    assert_eq!(merchant.balance().await, [0, 9_403, 0, 0]);
    world.check_books().await;
    let new_merchant =
        json!({"name": "Nova", "document": cnpj(9), "split_enabled": true, "cashout_enabled": false}).to_string();
    let headers = [("idempotency-key", "k")];
    let answers =
        futures_of(16, |_| world.ops_send(reqwest::Method::POST, "/ops/merchants", &headers, new_merchant.clone()))
            .await;
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body["id"] == answers[0].body["id"]));
    assert_eq!(answers.iter().filter(|answer| !is_replay(answer)).count(), 1);
}

#[tokio::test]
async fn of_concurrent_requests_with_different_bodies_one_is_carried_out() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let answers =
        futures_of(8, async |index| merchant.post_keyed("/api/pix", "k", &pix(&format!("10.0{index}"))).await).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 422, 422, 422, 422, 422, 422, 422]);
}

#[tokio::test]
async fn keys_survive_a_restart() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = merchant.post_keyed("/api/card", "k", &card(10_000, APPROVED)).await.expect(201);
    let refused = merchant.post_keyed("/api/card", "r", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let again = merchant.post_keyed("/api/card", "k", &card(10_000, APPROVED)).await;
    assert!(is_replay(&again));
    assert_eq!(again.expect(201), first);
    let again = merchant.post_keyed("/api/card", "r", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    assert_eq!(again["txid"], refused["txid"]);
    merchant.post_keyed("/api/card", "k", &card(1, APPROVED)).await.refused(422, "idempotency_key_reused");
    assert_eq!(merchant.balance().await, [0, 9_403, 0, 0]);
}

#[tokio::test]
async fn keys_have_a_form() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (longest, too_long) = ("k".repeat(255), "k".repeat(256));
    let before = world.trace(&[&merchant]).await;
    for key in [too_long.as_str(), "", "chave-ção"] {
        let refused = merchant.post_keyed("/api/pix", key, &pix("10.00")).await.refused(400, "validation_failed");
        assert_eq!(refused["message"], "Idempotency-Key inválida");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "a")];
    merchant.post_raw("/api/pix", &twice, pix("10.00").to_string()).await.refused(400, "validation_failed");
    assert_eq!(world.trace(&[&merchant]).await, before);
    for key in [longest.as_str(), "a key with spaces", "8e03978e-40d5-43e8-bc93-6894a57f9324"] {
        let first = merchant.post_keyed("/api/pix", key, &pix("10.00")).await.expect(201);
        assert_eq!(merchant.post_keyed("/api/pix", key, &pix("10.00")).await.expect(201), first);
    }
}

#[tokio::test]
async fn without_a_key_every_request_is_a_new_one() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let [first, second] = [
        merchant.post("/api/pix", &pix("10.00")).await.expect(201),
        merchant.post("/api/pix", &pix("10.00")).await.expect(201),
    ];
    assert_ne!(first["txid"], second["txid"]);
    // A look-up commits no Record, so it stores nothing.
    let look_up = json!({"txid": first["txid"]});
    merchant.post_keyed("/api/pix", "k", &look_up).await.expect(200);
    merchant.pay(&text(&first["txid"])).await.expect(200);
    let answer = merchant.post_keyed("/api/pix", "k", &look_up).await;
    assert!(!is_replay(&answer));
    assert_eq!(answer.expect(200)["status"], "CONCLUIDA");
}
