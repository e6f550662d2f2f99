//! Stored cards: charged once by their token, listed, deleted, and exchanged in a subscription.

use reqwest::Method;
use serde_json::{Value, json};

use crate::plans::{PLANS, plan};
use crate::world::*;

const CARDS: &str = "/api/cards";
const SUBSCRIPTIONS: &str = "/api/recurrency/subscriptions";

/// A card charge to a stored card.
fn charge_of(token: &str) -> Value {
    json!({"amount": 10_000, "card_token": token})
}

impl Merchant<'_> {
    async fn store(&self, number: &str) -> String {
        text(&self.post(CARDS, &without(&card(1, number), "/amount")).await.expect(201)["card_token"])
    }

    async fn delete_card(&self, token: &str) -> Answer {
        self.world.send(Method::DELETE, &format!("{CARDS}/{token}"), &[("token", &self.key)], "").await
    }

    async fn change_card(&self, subscription: &str, token: &str) -> Answer {
        let headers = [("token", self.key.as_str()), ("content-type", "application/json")];
        let body = json!({"card_token": token}).to_string();
        self.world.send(Method::PATCH, &format!("{SUBSCRIPTIONS}/{subscription}"), &headers, body).await
    }
}

#[tokio::test]
async fn a_stored_card_is_charged_by_its_token() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let token = merchant.store(APPROVED).await;
    let by_token = with(&with_splits(charge_of(&token), &[(&ana, 2_000)]), "/installments", json!(3));
    let answer = merchant.post_keyed("/api/card", "k", &with(&by_token, "/cvv", json!("737"))).await.expect(201);
    let given = with(&with_splits(card(10_000, APPROVED), &[(&ana, 2_000)]), "/installments", json!(3));
    let same = merchant.post("/api/card", &given).await.expect(201);
    assert_eq!(without(&answer, "/txid"), without(&same, "/txid"));
    let again = merchant.post_keyed("/api/card", "k", &with(&by_token, "/cvv", json!("111"))).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "the security code is not stored");
    assert_eq!(again.expect(201), answer);
    let read = merchant.get(&format!("/api/charges/{}", text(&answer["txid"]))).await.expect(200);
    assert_eq!(read["card"], json!({"bin": "411111", "last4": "1111", "brand": "visa"}));
    assert_eq!(read["payer"], json!({"name": "João Ávila", "document": "***.456.789-**"}));
    let said = card(1, APPROVED)["customer"].clone();
    let renamed = with(&with(&charge_of(&token), "/customer", said), "/customer/name", json!("João Ávila Neto"));
    let charged = merchant.post("/api/card", &renamed).await.expect(201);
    let read = merchant.get(&format!("/api/charges/{}", text(&charged["txid"]))).await.expect(200);
    assert_eq!(read["payer"]["name"], "João Ávila Neto");
    let refused = merchant.store(REFUSED).await;
    let refused = merchant.post("/api/card", &charge_of(&refused)).await.refused(402, "card_declined");
    assert_eq!(refused["status"], "RECUSADA");
    world.check_books().await;
}

#[tokio::test]
async fn a_card_token_is_checked() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (token, foreign) = (merchant.store(APPROVED).await, other.store(APPROVED).await);
    let valid = charge_of(&token);
    let customer = card(1, APPROVED)["customer"].clone();
    let other_customer = with(&customer, "/document", json!("52998224725"));
    let cases = [
        ("/card_token", json!("x"), "validation_failed", "card_token", "not_found"),
        ("/card_token", json!(foreign), "validation_failed", "card_token", "not_found"),
        ("/card_token", json!(7), "validation_failed", "card_token", "not_a_string"),
        ("/credit_card", card(1, APPROVED)["credit_card"].clone(), "validation_failed", "card_token", "ambiguous"),
        ("/cvv", json!("12"), "validation_failed", "cvv", "wrong_length"),
        ("/cvv", json!(123), "validation_failed", "cvv", "not_digits"),
        ("/customer", other_customer, "validation_failed", "customer.document", "other_customer"),
        (
            "/customer",
            with(&customer, "/email", json!("a.b.c")),
            "validation_failed",
            "customer.email",
            "invalid_email",
        ),
    ];
    let before = world.trace(&[&merchant]).await;
    for (pointer, value, problem, field, code) in cases {
        let refused = merchant.post("/api/card", &with(&valid, pointer, value)).await.refused(400, problem);
        assert_eq!([&refused["errors"][0]["field"], &refused["errors"][0]["code"]], [field, code], "{pointer}");
    }
    let cvv_alone = with(&card(10_000, APPROVED), "/cvv", json!("737"));
    assert_eq!(world.trace(&[&merchant]).await, before);
    let answer = merchant.post("/api/card", &cvv_alone).await;
    answer.expect(201);
    let other = with(&card(10_000, APPROVED), "/token", json!("of another system"));
    merchant.post("/api/card", &other).await.expect(201);
}

#[tokio::test]
async fn stored_cards_are_listed_and_deleted() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let mut tokens = Vec::new();
    for number in [APPROVED, REFUSED, "5555555555554444"] {
        tokens.push(merchant.store(number).await);
    }
    let list = merchant.get(&format!("{CARDS}?per_page=2")).await.expect(200);
    has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
    assert_eq!((&list["total"], &list["pages"]), (&json!(3), &json!(2)));
    let listed = items(&list).iter().map(|card| text(&card["card_token"])).collect::<Vec<_>>();
    assert_eq!(listed, [tokens[2].clone(), tokens[1].clone()]);
    let read = merchant.get(&format!("{CARDS}/{}", tokens[2])).await.expect(200);
    assert_eq!(read, items(&list)[0]);
    has_exactly(&read, &["card_token", "bin", "last4", "brand", "customer", "created_at", "deleted"]);
    assert_eq!([&read["brand"], &read["customer"]["document"]], ["mastercard", "***.456.789-**"]);
    assert_eq!(other.get(CARDS).await.expect(200)["total"], 0);
    for path in [format!("{CARDS}/{}", tokens[0]), format!("{CARDS}/x")] {
        other.get(&path).await.refused(404, "not_found");
        world.send(Method::DELETE, &path, &[("token", &other.key)], "").await.refused(404, "not_found");
    }

    let plan = merchant.post(PLANS, &plan("ouro", 4_990, 12)).await.expect(201);
    let customer = card(1, APPROVED)["customer"].clone();
    let wanted =
        json!({"plan_id": plan["id"], "customer": customer, "payment_method": "credit_card", "card_token": tokens[0]});
    let subscription = text(&merchant.post(SUBSCRIPTIONS, &wanted).await.expect(201)["id"]);
    merchant.delete_card(&tokens[0]).await.refused(409, "state_conflict");
    merchant.change_card(&subscription, &tokens[2]).await.expect(200);
    let deleted = merchant.delete_card(&tokens[0]).await.expect(200);
    assert_eq!(deleted["deleted"], true);
    assert_eq!(merchant.delete_card(&tokens[0]).await.expect(200), deleted, "again");
    assert_eq!(merchant.get(&format!("{CARDS}/{}", tokens[0])).await.expect(200), deleted);
    assert_eq!(merchant.get(CARDS).await.expect(200)["total"], 3);
    let of_another = with(&without(&card(1, APPROVED), "/amount"), "/customer/document", json!(cpf(7)));
    tokens.push(text(&merchant.post(CARDS, &of_another).await.expect(201)["card_token"]));
    other.post(CARDS, &of_another).await.expect(201);
    for (query, expected) in [
        ("document=12345678909", vec![2, 1, 0]),
        ("document=123.456.789-09&deleted=false", vec![2, 1]),
        ("document=12345678909&deleted=true", vec![0]),
        (&*format!("document={}", cpf(7)), vec![3]),
        (&*format!("document={}", cnpj(7)), vec![]),
        ("deleted=false", vec![3, 2, 1]),
        ("deleted=true", vec![0]),
        (&*format!("document=12345678909&before={}", tokens[2]), vec![1, 0]),
    ] {
        let list = merchant.get(&format!("{CARDS}?{query}")).await.expect(200);
        let found: Vec<_> = items(&list).iter().map(|card| text(&card["card_token"])).collect();
        let expected: Vec<_> = expected.into_iter().map(|at: usize| tokens[at].clone()).collect();
        assert_eq!((found.len() as u64, found), (list["total"].as_u64().unwrap(), expected), "{query}");
    }
    let first = merchant.get(&format!("{CARDS}?document=12345678909&limit=1")).await.expect(200);
    assert_eq!(items(&merchant.get(&text(&first["next"])).await.expect(200))[0]["card_token"], tokens[1]);
    for wrong in ["deleted=no", "document=1", "document=12345678900", "document=x"] {
        merchant.get(&format!("{CARDS}?{wrong}")).await.refused(400, "validation_failed");
    }
    merchant.post("/api/card", &charge_of(&tokens[0])).await.refused(400, "validation_failed");
    merchant.post(SUBSCRIPTIONS, &wanted).await.refused(400, "validation_failed");
    merchant.change_card(&subscription, &tokens[0]).await.refused(400, "validation_failed");
    merchant.delete_card(&tokens[2]).await.refused(409, "state_conflict");
}

#[tokio::test]
async fn a_subscription_takes_no_card_of_another_customer() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let plan = merchant.post(PLANS, &plan("ouro", 4_990, 12)).await.expect(201);
    let begin = json!({"plan_id": plan["id"], "customer": card(1, APPROVED)["customer"],
        "payment_method": "credit_card", "card_token": merchant.store(APPROVED).await});
    let subscription = text(&merchant.post(SUBSCRIPTIONS, &begin).await.expect(201)["id"]);
    let strange = without(&with(&card(1, APPROVED), "/customer/document", json!("52998224725")), "/amount");
    let strange = text(&merchant.post(CARDS, &strange).await.expect(201)["card_token"]);
    let refused = merchant.change_card(&subscription, &strange).await.refused(400, "validation_failed");
    assert_eq!([&refused["errors"][0]["field"], &refused["errors"][0]["code"]], ["card_token", "other_customer"]);
    let own = merchant.store(APPROVED).await;
    assert_eq!(merchant.change_card(&subscription, &own).await.expect(200)["card_token"], json!(own));
}

#[tokio::test]
async fn a_cycle_that_was_not_paid_is_tried_with_the_new_card_at_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (bad, good) = (merchant.store(REFUSED).await, merchant.store(APPROVED).await);
    let plan = merchant.post(PLANS, &plan("ouro", 4_990, 12)).await.expect(201);
    let customer = card(1, APPROVED)["customer"].clone();
    let wanted =
        json!({"plan_id": plan["id"], "customer": customer, "payment_method": "credit_card", "card_token": bad});
    // One is changed while its card is tried again, the other after its last try.
    for days in [0, 6] {
        let begun = merchant.post(SUBSCRIPTIONS, &wanted).await.expect(201);
        let path = format!("{SUBSCRIPTIONS}/{}", text(&begun["id"]));
        world.advance(days * DAY + 60).await;
        let before = merchant.get(&path).await.expect(200);
        assert_eq!(before["unpaid_cycles"], i64::from(days > 0), "{before}");
        let changed = merchant.change_card(&text(&begun["id"]), &good).await.expect(200);
        assert_eq!((&changed["card_token"], &changed["unpaid_cycles"]), (&json!(good), &json!(0)), "{changed}");
        world.advance(1).await;
        let read = merchant.get(&path).await.expect(200);
        assert_eq!([&read["status"], &read["card_token"]], ["active", good.as_str()], "{read}");
        assert_eq!((&read["cycle"], &read["paid_cycles"], &read["unpaid_cycles"]), (&json!(1), &json!(1), &json!(0)));
        assert_eq!(read["started_at"], begun["started_at"]);
        let charges = merchant.get(&format!("{path}/charges")).await.expect(200);
        assert_eq!(items(&charges)[0]["card"]["last4"], "1111");
        let unchanged = merchant.change_card(&text(&begun["id"]), &good).await.expect(200);
        assert_eq!(unchanged, read, "again");
    }
    let pix = json!({"plan_id": plan["id"], "customer": customer, "payment_method": "pix"});
    let pix = text(&merchant.post(SUBSCRIPTIONS, &pix).await.expect(201)["id"]);
    merchant.change_card(&pix, &good).await.refused(409, "state_conflict");
    merchant.change_card(&pix, "x").await.refused(400, "validation_failed");
    merchant.change_card("x", &good).await.refused(404, "not_found");
    world.check_books().await;
}
