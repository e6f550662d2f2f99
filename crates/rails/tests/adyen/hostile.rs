//! Answers that say nothing, and answers that are about something else.

use actors::rails::{CaptureCard, CardAnswer, CardRail, RailError};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::played_http::Oddity;
use testkit::useless_answers::{answer, useless_answers};

use crate::{AMOUNT, World, charge, id, open_card, repay};

/// Each says nothing about an order.
fn says_nothing() -> Vec<(&'static str, Vec<u8>)> {
    let error = |code: &str| json!({ "status": 422, "errorCode": code, "message": "m", "errorType": "t" }).to_string();
    let mut all = useless_answers(&error("101"), &error("704"));
    let json = "application/json";
    all.extend([
        ("422 still at work", answer("422 No", json, &error("704"))),
        ("422 with a code that is not known", answer("422 No", json, &error("9999"))),
        ("422 without a code", answer("422 No", json, "{\"status\":422}")),
        ("422 HTML", answer("422 No", "text/html", &error("101"))),
        ("400 with the code of a card", answer("400 No", json, &error("101"))),
        ("500 whose body says 422", answer("500 No", json, &error("101"))),
        ("401", answer("401 No", json, &error("000"))),
        ("302", b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ("307", b"HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n".to_vec()),
    ]);
    all
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_nothing() {
    let unknown = Err(RailError::NoAnswer);
    join_all(says_nothing().into_iter().map(|(name, bytes)| async move {
        let world = World::new().await;
        let authorized = world.authorized(1).await;
        world.player.is_odd("/", 99, Oddity::Says(bytes));
        let capture = CaptureCard { charge: id(1), amount: AMOUNT, authorized: authorized.clone() };
        assert_eq!(world.rail.charge(charge(id(2))).await.map(drop), unknown, "charge: {name}");
        assert_eq!(world.rail.capture(capture).await.map(drop), unknown, "capture: {name}");
        assert_eq!(world.rail.close(id(2), &open_card()).await.map(drop), unknown, "close: {name}");
        let refund = repay(3, id(1), &authorized.stamp.id, 1);
        assert_eq!(world.rail.repay(refund).await.map(drop), unknown, "refund: {name}");
        assert_eq!(world.player.records().payments.len(), 1);
    }))
    .await;
}

/// The first answer says nothing, and the order was carried out or not: the same key in a later
/// call gives the outcome, once.
#[tokio::test]
async fn an_order_with_a_useless_answer_is_carried_out_once() {
    join_all([false, true].into_iter().cycle().zip(says_nothing()).map(|(carries_out, (name, bytes))| async move {
        let world = World::new().await;
        let oddity = match carries_out {
            false => Oddity::Says(bytes),
            true => Oddity::CarriesOutAndSays(bytes),
        };
        world.player.is_odd("/payments", 1, oddity);
        assert_eq!(world.rail.charge(charge(id(1))).await, Err(RailError::NoAnswer), "{name}");
        let answer = world.rail.charge(charge(id(1))).await;
        assert!(matches!(answer, Ok(CardAnswer::Authorized(_))), "{name}: {answer:?}");
        assert_eq!(world.player.records().payments.len(), 1, "{name}");
    }))
    .await;
}

/// Words and values that the document does not have are no outcome.
#[tokio::test]
async fn an_answer_must_be_ours_to_the_last_field() {
    let world = World::new().await;
    let good = json!({
        "pspReference": "QFQTPCQ8HXSKGK82",
        "resultCode": "Authorised",
        "merchantReference": id(1).txid(),
        "amount": { "currency": "BRL", "value": 1_050 },
    });
    let said = |body: &Value| Oddity::Says(answer("200 OK", "application/json", &body.to_string()));
    let wrong = [
        ("pspReference", json!("")),
        ("pspReference", Value::Null),
        ("merchantReference", json!("0198f3a27c418d0e8000ffffffffffff")),
        ("merchantReference", Value::Null),
        ("resultCode", json!("authorised")),
        ("resultCode", json!("Success")),
        ("resultCode", json!("Pending")),
        ("resultCode", json!("Received")),
        ("resultCode", json!("PartiallyAuthorised")),
        ("resultCode", json!("RedirectShopper")),
        ("resultCode", json!("IdentifyShopper")),
        ("resultCode", json!("ChallengeShopper")),
        ("resultCode", Value::Null),
        ("amount", json!({ "currency": "BRL", "value": 1_049 })),
        ("amount", json!({ "currency": "USD", "value": 1_050 })),
        ("amount", json!({ "currency": "BRL", "value": "1050" })),
        ("amount", json!({ "currency": "BRL", "value": 10.50 })),
        ("amount", Value::Null),
    ];
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field] = value;
        world.player.is_odd("/payments", 9, said(&body));
        assert_eq!(world.rail.charge(charge(id(1))).await, Err(RailError::NoAnswer), "{body}");
        world.player.stage().odd.clear();
    }
    let mut more = good;
    (more["paymentMethod"], more["mood"]) = (json!({ "brand": "a new scheme" }), json!(["fine"]));
    world.player.is_odd("/payments", 1, said(&more));
    assert!(matches!(world.rail.charge(charge(id(1))).await, Ok(CardAnswer::Authorized(_))), "members may be added");
}
