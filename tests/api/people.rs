//! Personal data: what is stored of a person, deletion of a stored card, and the erasure of months
//! past their retention.

use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{ANA, Browser, EVA, RUI, world_of_three};
use crate::makers::store_card;
use crate::world::*;

/// CPF of the payer of the examples.
const PAYER: &str = "123.456.789-09";

async fn look_up(world: &World, document: &str) -> Value {
    world.ops_post("/ops/people", &json!({ "document": document })).await.expect(200)
}

/// Kind, month and ids of the parts of an answer.
fn parts(person: &Value) -> Vec<(String, String, Vec<String>)> {
    let parts = person["parts"].as_array().unwrap().iter().map(|part| {
        assert_eq!(part["count"], part["ids"].as_array().unwrap().len());
        let ids = part["ids"].as_array().unwrap().iter().map(text).collect();
        (text(&part["kind"]), text(&part["month"]), ids)
    });
    parts.collect()
}

#[tokio::test]
async fn what_is_stored_of_a_person_is_listed_by_month_and_each_look_is_audited() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let card_token = store_card(&merchant).await;
    let old = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let first = month_of(&world).await;
    world.advance(40 * 86_400).await;
    let new = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let second = month_of(&world).await;
    let recipient = merchant.recipient("Ana", 1).await;

    let person = look_up(&world, PAYER).await;
    has_exactly(&person, &["document", "parts", "more"]);
    assert_eq!((&person["document"], &person["more"]), (&json!("***.456.789-**"), &json!(false)));
    let expected = [
        ("charges".to_owned(), first.clone(), vec![old]),
        ("cards".to_owned(), first, vec![card_token.clone()]),
        ("charges".to_owned(), second.clone(), vec![new]),
    ];
    assert_eq!(parts(&person), expected);
    has_exactly(&person["parts"][0], &["kind", "month", "until", "count", "ids"]);
    let registration = parts(&look_up(&world, &cpf(1)).await);
    assert_eq!(registration, [("recipients".to_owned(), second.clone(), vec![recipient])]);
    let shop = parts(&look_up(&world, &cnpj(1)).await);
    assert_eq!((shop[0].0.as_str(), &shop[0].2), ("merchants", &vec![merchant.id.clone()]));
    assert_eq!(parts(&look_up(&world, &cpf(77)).await), []);

    let audit = world.ops_get("/ops/audit?kind=person").await.expect(200);
    let rows = items(&audit);
    assert_eq!(rows.len(), 4, "{audit}");
    assert!(rows.iter().all(|row| row["action"] == "read" && row["operator"] == "operator"));
    assert!(!audit.to_string().contains("12345678909"), "the tax id is not in the journal");
    assert_ne!(rows[0]["notes"], rows[1]["notes"]);
    let refused = world.second_ops_post("/ops/people", &[], &json!({"document": PAYER})).await;
    refused.refused(403, "role_not_allowed");
    world.ops_post("/ops/people", &json!({"document": "123"})).await.refused(400, "validation_failed");
    assert_eq!(world.ops_get("/ops/audit?kind=person").await.expect(200)["total"], 4);

    let path = format!("/ops/cards/{card_token}");
    let plan = json!({"tag": "Plano", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 2});
    let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
    let subscription = json!({"plan_id": plan, "payment_method": "credit_card", "card_token": card_token,
        "customer": card(1, APPROVED)["customer"]});
    let goes_on = text(&merchant.post("/api/recurrency/subscriptions", &subscription).await.expect(201)["id"]);
    world.ops_send(Method::DELETE, &path, &[], String::new()).await.refused(409, "state_conflict");
    merchant.post(&format!("/api/recurrency/subscriptions/{goes_on}/cancel"), &json!({})).await.expect(200);
    let deleted = world.ops_send(Method::DELETE, &path, &[], String::new()).await.expect(200);
    assert_eq!(deleted, json!({"id": card_token, "deleted": true, "left": ["customer"]}));
    world.ops_send(Method::DELETE, &path, &[], String::new()).await.refused(404, "not_found");
    let refused = merchant.post("/api/recurrency/subscriptions", &subscription).await;
    assert!((400..500).contains(&refused.status), "a deleted card pays nothing: {}", refused.text);
    assert_eq!(parts(&look_up(&world, PAYER).await)[1].2, [card_token], "its customer stays sealed");
    world.check_books().await;
}

async fn month_of(world: &World) -> String {
    (world.advance(0).await).format("%Y-%m").to_string()
}

#[tokio::test]
async fn keys_of_months_past_retention_are_dropped_by_two_operators() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let old = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let first = month_of(&world).await;
    let ask = json!({"through": first});
    let within = world.ops_post("/ops/erasures", &ask).await.refused(409, "state_conflict");
    assert!(text(&within["detail"]).contains("is stored until"), "{within}");
    for _ in 0..10 {
        world.advance(370 * 86_400).await;
    }
    let used = world.ops_post("/ops/erasures", &ask).await.refused(409, "state_conflict");
    assert_eq!(used["in_use"], json!([merchant.id]), "a registration in force is not erased");
    world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &json!({"name": "Loja Nova"})).await.expect(200);
    let new = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let listed = world.ops_get("/ops/erasures").await.expect(200);
    assert_eq!(listed["retention_months"], 120);
    let months = listed["months"].as_array().unwrap();
    assert!(months.iter().any(|month| month["month"] == json!(first) && month["is_over"] == true), "{listed}");
    assert_eq!(months.last().unwrap()["is_over"], false);

    let asked = world.ops_post("/ops/erasures", &ask).await;
    assert_eq!((asked.status, &asked.body["status"]), (202, &json!("waiting_second")));
    world.ops_post("/ops/erasures", &ask).await.refused(409, "second_operator_needed");
    let waits = world.ops_get("/ops/queue?kind=erasure").await.expect(200);
    let item = &items(&waits)[0];
    assert_eq!(
        (&item["id"], &item["status"], &item["requested_by"]),
        (&json!(first), &json!("waiting_second"), &json!("operator"))
    );
    let path = format!("/ops/erasures/{first}/cancel");
    let left = world.ops_post(&path, &json!({})).await.expect(200);
    assert_eq!(left["erasures"], json!([]), "it was taken back");
    world.ops_post(&path, &json!({})).await.refused(404, "not_found");
    assert_eq!(world.ops_get("/ops/queue?kind=erasure").await.expect(200)["total"], 0);
    assert_eq!(
        world.second_ops_post("/ops/erasures", &[], &ask).await.status,
        202,
        "the next one who asks is the first"
    );
    world.ops_post(&path, &json!({})).await.expect(200);
    assert_eq!(world.ops_post("/ops/erasures", &ask).await.status, 202);
    assert_eq!(parts(&look_up(&world, PAYER).await).len(), 2, "nothing is dropped yet");
    let erased = world.second_ops_post("/ops/erasures", &[], &ask).await.expect(200);
    has_exactly(&erased, &["through", "status", "requested_by", "requested_at", "erased_by", "erased_at"]);
    assert_eq!((&erased["status"], &erased["erased_by"]), (&json!("erased"), &json!("second")));
    assert_eq!(world.ops_post("/ops/erasures", &ask).await.expect(200), erased, "it is done once");
    world.ops_post(&path, &json!({})).await.refused(409, "already_decided");
    assert_eq!(world.ops_get("/ops/queue?kind=erasure").await.expect(200)["total"], 0);
    let shows = async |world: &World, name: &str| {
        let charge = world.ops_get(&format!("/ops/charges/{old}")).await.expect(200);
        assert_eq!((&charge["payer"]["name"], &charge["amount"]), (&json!(name), &json!(8_253)));
        let found: Vec<_> = parts(&look_up(world, PAYER).await).into_iter().flat_map(|part| part.2).collect();
        assert_eq!(found, std::slice::from_ref(&new));
    };
    // Another node forgets the keys when it next looks.
    until("the erased name is gone", async || {
        world.ops_get(&format!("/ops/charges/{old}")).await.expect(200)["payer"]["name"] == ""
    })
    .await;
    shows(&world, "").await;
    let months = world.ops_get("/ops/erasures").await.expect(200)["months"].clone();
    assert!(months.as_array().unwrap().iter().all(|month| text(&month["month"]) > first), "{months}");
    let rows = world.ops_get("/ops/audit?kind=personal_data").await.expect(200);
    let actions: Vec<_> = items(&rows).iter().map(|row| (text(&row["action"]), text(&row["notes"]))).collect();
    let expected = ["erase", "request", "cancel", "request", "cancel", "request"];
    assert_eq!(actions, expected.map(|action| (action.to_owned(), first.clone())));
    for wrong in [json!({}), json!({"through": "2016"}), json!({"through": "2016-13"})] {
        world.ops_post("/ops/erasures", &wrong).await.refused(400, "validation_failed");
    }
    world.check_books().await;
    let world = world.restarted().await;
    shows(&world, "").await;
}

/// The page of the data protection officer: for whom, and that both decisions work without script.
#[tokio::test]
async fn the_page_of_personal_data_is_for_those_who_may() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let card_token = store_card(&merchant).await;
    let ana = Browser::signed_in(&world, ANA).await;
    let page = ana.page("/console/people").await;
    page.has(&["/console/people/erase", &month_of(&world).await]);
    assert!(!page.html.contains("/console/people/person"), "ana has no right to reveal");
    assert_eq!(ana.post("/console/people/person", &[("document", PAYER)]).await.status, 403);
    let within = ana.post("/console/people/erase", &[("through", &month_of(&world).await)]).await;
    assert_eq!(within.status, 409);
    for token in [RUI, EVA] {
        let small = Browser::signed_in(&world, token).await;
        assert!(!small.page("/console/people").await.html.contains("/console/people/erase"));
        assert_eq!(small.post("/console/people/erase", &[("through", "2016-10")]).await.status, 403);
    }
    let path = format!("/console/cards/{card_token}/delete");
    assert_eq!(Browser::signed_in(&world, EVA).await.post(&path, &[]).await.status, 403);
    assert_eq!(Browser::signed_in(&world, RUI).await.post(&path, &[]).await.header("location"), "/console/people");
    assert_eq!(ana.post(&path, &[]).await.status, 404);
    let asked = ana.post("/console/people/erase", &[("through", "2016-10")]).await;
    assert_eq!((asked.status, asked.header("location")), (303, "/console/people"));
    ana.page("/console/people").await.has(&["Another operator has to ask"]);

    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/card", &card(1_000, APPROVED)).await.expect(201)["txid"]);
    let operator = Browser::signed_in(&world, OPS_TOKEN).await;
    operator.page("/console/people").await.has(&["/console/people/person"]);
    let shown = operator.post("/console/people/person", &[("document", PAYER)]).await;
    assert_eq!(shown.status, 200);
    shown.has(&["***.456.789-**", &txid]);
    assert_eq!(operator.post("/console/people/person", &[("document", "1")]).await.status, 400);
}

/// The retention is a setting: what is over after five years is not after ten.
#[tokio::test]
async fn the_retention_is_as_it_is_set() {
    for (months, status) in [(60, 202), (120, 409)] {
        let world = World::with_settings(|settings| settings.retention_months = months).await;
        let first = month_of(&world).await;
        let ask = json!({"through": first});
        for _ in 0..5 {
            world.ops_post("/ops/erasures", &ask).await.refused(409, "state_conflict");
            world.advance(372 * DAY).await;
        }
        assert_eq!(world.ops_post("/ops/erasures", &ask).await.status, status, "{months}");
        assert_eq!(world.ops_get("/ops/erasures").await.expect(200)["retention_months"], months);
    }
}
