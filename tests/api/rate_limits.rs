//! Rate limits (interface 7, 8). The passing of a minute is tested beside the counting itself:
//! nothing sleeps here.

use std::num::NonZeroU32;

use reqwest::Method;
use serde_json::{Value, json};
use web::guards::rate_limit::RateLimitSettings;

use crate::world::*;

async fn limited() -> World {
    World::with_settings(|settings| settings.rate_limits = Some(RateLimitSettings::default())).await
}

/// The number of a parameter, such as `r` of `"card";r=119;t=60`.
#[track_caller]
fn parameter(answer: &Answer, header: &str, name: &str) -> u64 {
    let value = answer.header(header).unwrap_or_else(|| panic!("no {header}"));
    let found = value.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {value}")).parse().unwrap()
}

#[track_caller]
fn refused(answer: Answer, limit: u64) -> Value {
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(parameter(&answer, "ratelimit", "t"), seconds);
    assert_eq!([parameter(&answer, "ratelimit", "r"), parameter(&answer, "ratelimit-policy", "q")], [0, limit]);
    let body = answer.refused(429, "rate_limited");
    assert_eq!(body["message"], "Limite de requisições atingido");
    body
}

#[tokio::test]
async fn an_operator_sets_the_numbers() {
    let number = |number| NonZeroU32::new(number).unwrap();
    let limits = RateLimitSettings { card: number(2), other: number(1) };
    let world = World::with_settings(|settings| settings.rate_limits = Some(limits)).await;
    let merchant = world.merchant().await;
    for left in [1, 0] {
        let paid = merchant.post("/api/card", &card(10_000, APPROVED)).await;
        assert_eq!([parameter(&paid, "ratelimit", "r"), parameter(&paid, "ratelimit-policy", "q")], [left, 2]);
        paid.expect(201);
    }
    refused(merchant.post("/api/card", &card(10_000, APPROVED)).await, 2);
    merchant.get("/api/balance").await.expect(200);
    refused(merchant.get("/api/balance").await, 1);
}

#[tokio::test]
async fn a_merchant_has_numbers_of_its_own_that_survive_a_restart() {
    let world = limited().await;
    let own = json!({"name": "Loja Viva", "document": cnpj(2), "rate_limits": {"card": 2}});
    let (busy, other) = (world.open(own).await, world.merchant().await);
    let path = format!("/ops/merchants/{}", busy.id);
    let shown = async |world: &World| {
        let shown = world.ops_get(&path).await.expect(200);
        (shown["rate_limits"].clone(), shown["effective_rate_limits"].clone())
    };
    let expected = (json!({"card": 2, "other": null}), json!({"card": 2, "other": 600}));
    assert_eq!(shown(&world).await, expected);
    let left = |answer: Answer| [parameter(&answer, "ratelimit", "r"), parameter(&answer, "ratelimit-policy", "q")];
    for remaining in [1, 0] {
        assert_eq!(left(busy.post("/api/card", &card(10_000, APPROVED)).await), [remaining, 2]);
    }
    refused(busy.post("/api/card", &card(10_000, APPROVED)).await, 2);
    assert_eq!(left(busy.get("/api/balance").await), [599, 600]);
    assert_eq!(left(other.post("/api/card", &card(10_000, APPROVED)).await), [119, 120]);
    // A new number holds at once, for what has passed in this minute too.
    world.ops_patch(&path, &json!({"rate_limits": {"card": 5, "other": 900}})).await.expect(200);
    assert_eq!(left(busy.post("/api/card", &card(10_000, APPROVED)).await), [2, 5]);
    assert_eq!(left(busy.get("/api/balance").await), [898, 900]);
    world.ops_patch(&path, &json!({"city": "Recife", "rate_limits": {"other": null}})).await.expect(200);

    let names = busy.names;
    let world = world.restarted_with(|settings| settings.rate_limits = Some(RateLimitSettings::default())).await;
    let busy = Merchant { world: &world, names };
    assert_eq!(shown(&world).await, (json!({"card": 5, "other": null}), json!({"card": 5, "other": 600})));
    assert_eq!(left(busy.post("/api/card", &card(10_000, APPROVED)).await), [4, 5]);
    assert_eq!(left(busy.get("/api/balance").await), [599, 600]);
    for (wrong, field) in [
        (json!({"card": 0}), "rate_limits.card"),
        (json!({"other": 1_000_001}), "rate_limits.other"),
        (json!({"card": "5"}), "rate_limits.card"),
        (json!([]), "rate_limits"),
    ] {
        let body = json!({"rate_limits": wrong});
        let problem = world.ops_patch(&path, &body).await.refused(400, "validation_failed");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    world.ops_patch(&path, &json!({"rate_limits": null})).await.expect(200);
    assert_eq!(shown(&world).await, (json!({"card": null, "other": null}), json!({"card": 120, "other": 600})));
    let names = busy.names;
    let world = world.restarted().await;
    let busy = Merchant { world: &world, names };
    assert_eq!(shown(&world).await.1, Value::Null, "this start limits nobody");
    assert_eq!(busy.get("/api/balance").await.header("ratelimit"), None);
}

/// Shows: 7.429, 8.rate-limiting.
#[tokio::test]
async fn a_key_may_ask_so_often_in_a_minute() {
    let world = limited().await;
    let merchant = world.merchant().await;
    let second = world.ops_post(&format!("/ops/merchants/{}/api-keys", merchant.id), &json!({})).await.expect(201);
    let second = text(&second["api_key"]);
    let card_charge = card(10_000, APPROVED).to_string();
    let cases = [
        (Method::POST, "/api/card", "{}", 400, "card", 120, card_charge.as_str(), 201),
        (Method::GET, "/api/balance", "", 200, "default", 600, "", 200),
    ];
    for (method, path, body, status, name, limit, second_body, second_status) in cases {
        let json_type = ("content-type", "application/json");
        let own = [("token", merchant.key.as_str()), json_type];
        for left in (0..limit).rev() {
            let answer = world.send(method.clone(), path, &own, body).await;
            assert_eq!(answer.header("ratelimit-policy"), Some(format!("\"{name}\";q={limit};w=60").as_str()));
            assert!(answer.header("ratelimit").unwrap().starts_with(&format!("\"{name}\";r={left};t=")));
            assert!((1..=60).contains(&parameter(&answer, "ratelimit", "t")));
            assert_eq!((answer.status, answer.header("retry-after")), (status, None), "{path}: {left} left");
        }
        for _ in 0..3 {
            refused(world.send(method.clone(), path, &own, body).await, limit);
        }
        // The key is checked first, the request after it.
        let unknown = world.send(method.clone(), path, &[("token", "test_x"), json_type], body).await;
        assert_eq!((unknown.header("ratelimit"), unknown.header("ratelimit-policy")), (None, None));
        unknown.refused(401, "unauthorized");
        if method == Method::POST {
            refused(world.send(Method::POST, path, &[own[0], ("content-type", "text/plain")], "{").await, limit);
        }
        let other = world.send(method, path, &[("token", &second), json_type], second_body.to_owned()).await;
        assert_eq!(parameter(&other, "ratelimit", "r"), limit - 1, "keys are counted apart");
        other.expect(second_status);
    }
    // What has no caller has no limit.
    let described = world.send(Method::GET, "/openapi.json", &[], "").await;
    assert_eq!(described.header("ratelimit"), None);
    described.expect(200);
}

#[tokio::test]
async fn a_route_is_counted_with_the_others_of_its_limit() {
    let world = limited().await;
    let merchant = world.merchant().await;
    let left = |answer: &Answer| parameter(answer, "ratelimit", "r");
    for (expected, path) in
        [(599, "/api/balance"), (598, "/api/charges"), (597, "/api/charges/x"), (596, "/api/balance")]
    {
        assert_eq!(left(&merchant.get(path).await), expected, "{path}");
    }
    assert_eq!(left(&merchant.post("/api/pix", &pix("1.00")).await), 595);
    assert_eq!(left(&merchant.post("/api/card", &card(100, APPROVED)).await), 119);
    assert_eq!(left(&merchant.patch("/api/sub-recipients/x", &json!({})).await), 594);
    let nowhere = merchant.get("/api/nowhere").await;
    assert_eq!(nowhere.header("ratelimit"), None);
    nowhere.refused(404, "not_found");
}

#[tokio::test]
async fn a_card_that_was_refused_ten_times_is_not_tried_again() {
    let world = limited().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let first = merchant.post_keyed("/api/card", "try-1", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    // What the acquirer never saw, or did not refuse, does not count.
    for _ in 0..10 {
        merchant.post("/api/card", &card(0, REFUSED)).await.refused(400, "validation_failed");
        merchant.post_keyed("/api/card", "try-1", &card(10_000, REFUSED)).await.refused(402, "card_declined");
        merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    }
    for _ in 1..10 {
        merchant.post("/api/card", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    }
    let charges = async |merchant: &Merchant<'_>| merchant.get("/api/charges").await.expect(200)["total"].clone();
    let before = (charges(&merchant).await, charges(&other).await);
    for caller in [&merchant, &other] {
        let answer = caller.post("/api/card", &card(10_000, REFUSED)).await;
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert_eq!(answer.refused(429, "rate_limited")["message"], "Limite de requisições atingido");
    }
    assert_eq!((charges(&merchant).await, charges(&other).await), before, "no charge was opened");
    // Its shape is looked at before; another card is another matter; what was answered is answered
    // again.
    merchant.post("/api/card", &card(0, REFUSED)).await.refused(400, "validation_failed");
    other.post("/api/card", &card(10_000, WITHOUT_FUNDS)).await.refused(402, "card_declined");
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    let again = merchant.post_keyed("/api/card", "try-1", &card(10_000, REFUSED)).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.refused(402, "card_declined")["txid"], first["txid"]);
    world.check_books().await;
}

/// Cards are tried one after the other through each door that takes one.
#[tokio::test]
async fn a_key_with_sixty_refused_cards_tries_no_more_through_any_door() {
    let world = limited().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let plan = json!({"tag": "ouro", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 3});
    let of_plan = |plan: &Value, token: &Value| {
        let customer = card(1, APPROVED)["customer"].clone();
        json!({"plan_id": plan["id"], "customer": customer, "payment_method": "credit_card", "card_token": token})
    };
    let store = async |merchant: &Merchant<'_>, number: &str| {
        merchant.post("/api/cards", &without(&card(1, number), "/amount")).await
    };
    let subscriptions = "/api/recurrency/subscriptions";
    let plan = merchant.post("/api/recurrency/plans", &plan).await.expect(201);
    let good = store(&merchant, APPROVED).await.expect(201)["card_token"].clone();
    // Eighty that were paid count for nothing; ten of one stored card that were refused end its
    // tries.
    for _ in 0..8 {
        for _ in 0..10 {
            merchant.post(subscriptions, &of_plan(&plan, &good)).await.expect(201);
        }
        world.advance(1).await;
    }
    for _ in 0..2 {
        let bad = store(&merchant, REFUSED).await.expect(201)["card_token"].clone();
        for _ in 0..10 {
            merchant.post(subscriptions, &of_plan(&plan, &bad)).await.expect(201);
        }
        world.advance(1).await;
        merchant.post(subscriptions, &of_plan(&plan, &bad)).await.refused(429, "rate_limited");
    }
    // Forty more, of cards that are another each, and the key tries none through any door.
    for _ in 0..4 {
        let bad = store(&merchant, WITHOUT_FUNDS).await.expect(201)["card_token"].clone();
        for _ in 0..10 {
            merchant.post(subscriptions, &of_plan(&plan, &bad)).await.expect(201);
        }
    }
    let refused = merchant.post("/api/card", &card(10_000, APPROVED)).await;
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(refused.refused(429, "rate_limited")["message"], "Limite de requisições atingido");
    store(&merchant, APPROVED).await.refused(429, "rate_limited");
    merchant.post(subscriptions, &of_plan(&plan, &good)).await.refused(429, "rate_limited");
    merchant.post("/api/card", &json!({"amount": 1_000, "card_token": good})).await.refused(429, "rate_limited");
    let mut charge = card(10_000, APPROVED);
    charge["idempotency_key"] = json!("k");
    let batch = merchant.post("/api/charges/batch", &json!([charge])).await.expect(200);
    assert_eq!((&items(&batch)[0]["status"], &items(&batch)[0]["body"]["code"]), (&json!(429), &json!("rate_limited")));
    let listed = merchant.get(subscriptions).await.expect(200);
    let path = format!("{subscriptions}/{}", text(&items(&listed)[0]["id"]));
    let headers = [("token", merchant.key.as_str()), ("content-type", "application/json")];
    let change = json!({"card_token": good}).to_string();
    world.send(reqwest::Method::PATCH, &path, &headers, change).await.refused(429, "rate_limited");
    other.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    // PIX has no card, and what is only read is no try.
    merchant.post("/api/pix", &pix("10.00")).await.expect(201);
    merchant.get("/api/charges").await.expect(200);
}

/// A batch is one request, and each of its card charges counts as a card charge.
#[tokio::test]
async fn each_card_charge_of_a_batch_counts() {
    let limits = RateLimitSettings { card: 2.try_into().unwrap(), other: 9.try_into().unwrap() };
    let world = World::with_settings(|settings| settings.rate_limits = Some(limits)).await;
    let merchant = world.merchant().await;
    let keyed = |n: u32| {
        let mut charge = card(10_000, APPROVED);
        charge["idempotency_key"] = json!(format!("k{n}"));
        charge
    };
    let answer = merchant.post("/api/charges/batch", &(0..3).map(keyed).collect()).await.expect(200);
    let statuses: Vec<_> = items(&answer).iter().map(|item| item["status"].clone()).collect();
    assert_eq!(statuses, [201, 201, 429]);
    merchant.post("/api/card", &card(10_000, APPROVED)).await.refused(429, "rate_limited");
    // What was charged is answered again, and counts no more.
    let again = merchant.post("/api/charges/batch", &(0..3).map(keyed).collect()).await.expect(200);
    let statuses: Vec<_> = items(&again).iter().map(|item| item["status"].clone()).collect();
    assert_eq!(statuses, [201, 201, 429]);
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 2);
}

#[tokio::test]
async fn limits_that_are_off_limit_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for _ in 0..121 {
        let answer = merchant.post("/api/card", &json!({})).await;
        assert_eq!((answer.header("ratelimit"), answer.header("ratelimit-policy")), (None, None));
        answer.refused(400, "validation_failed");
    }
    for _ in 0..12 {
        merchant.post("/api/card", &card(10_000, REFUSED)).await.refused(402, "card_declined");
    }
}
