//! Answers that say nothing, cuts after each byte, redirects.

use actors::rails::{CardAnswer, CardFate, CardRail, PayoutAnswer, PayoutRail, PixRail, PixSpan, RailError};
use actors::rails::{RepayAnswer, SettlementCursor};
use serde_json::{Value, json};
use testkit::cut_proxy::{Cut, Proxy};
use testkit::played_http::Oddity;
use testkit::rail_player::RailPlayer;
use testkit::useless_answers::{answer, useless_answers};

use crate::{World, charge, id, now, open_card, open_pix, ordered, payout, repay};

/// Each says nothing about an id.
fn says_nothing(id: &str) -> Vec<(&'static str, Vec<u8>)> {
    let problem = |status: u16, code: &str, id: &str| {
        json!({ "type": "about:blank", "title": "t", "status": status, "code": code, "id": id }).to_string()
    };
    let none = problem(404, "not_found", id);
    let mut all = useless_answers(&none, &problem(404, "declined", id));
    let media = "application/problem+json";
    let other = "0198f3a27c418d0e8000ffffffffffff";
    all.extend([
        ("none of another id", answer("404 Not Found", media, &problem(404, "not_found", other))),
        ("a refusal of another id", answer("422 No", media, &problem(422, "declined", other))),
        ("a refusal without an id", answer("422 No", media, "{\"code\":\"declined\"}")),
        ("a refusal with a new code", answer("422 No", media, &problem(422, "moon_phase", id))),
        ("a refusal with another status", answer("400 No", media, &problem(400, "declined", id))),
        ("409", answer("409 Conflict", media, &problem(409, "declined", id))),
        ("401", answer("401 No", media, &problem(401, "unauthorized", id))),
    ]);
    all
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_nothing() {
    let world = World::new("same").await;
    let payment = world.captured(1).await;
    let span = PixSpan { from: now().plus_ms(-60_000), until: now(), page: 0 };
    for (name, bytes) in says_nothing(&id(2).txid()) {
        // The capabilities were read before.
        for method in ["PUT", "GET"] {
            world.player.is_odd(method, "/", 99, Oddity::Says(bytes.clone()));
        }
        let unknown = Err(RailError::NoAnswer);
        assert_eq!(world.rail.charge(charge(id(2))).await.map(drop), unknown, "charge: {name}");
        assert_eq!(world.rail.close(id(2), &open_card()).await.map(drop), unknown, "close: {name}");
        assert_eq!(PixRail::open(&world.rail, open_pix(id(2))).await.map(drop), unknown, "open: {name}");
        assert_eq!(world.rail.cancel(id(2)).await.map(drop), unknown, "cancel: {name}");
        assert_eq!(world.rail.send(payout(2, "a@example.com")).await.map(drop), unknown, "send: {name}");
        assert_eq!(world.rail.find(payout(2, "a@example.com"), now()).await.map(drop), unknown, "find: {name}");
        let order = repay(2, id(1), &payment);
        assert_eq!(CardRail::repay(&world.rail, order.clone()).await.map(drop), unknown, "repay: {name}");
        assert_eq!(CardRail::accept_dispute(&world.rail, order).await.map(drop), unknown, "dispute: {name}");
        assert_eq!(world.rail.received(span).await.map(drop), unknown, "received: {name}");
        let batches = world.rail.settlements(SettlementCursor::default(), now()).await;
        assert_eq!(batches.map(drop), unknown, "settlements: {name}");
        world.player.stage().odd.clear();
    }
    assert_eq!(world.player.records().carried_out.len(), 1);
}

/// The order alone is answered with nothing, and was carried out or not: the look afterwards says
/// which.
#[tokio::test]
async fn an_order_with_a_useless_answer_is_carried_out_once() {
    for repeats in ["same", "refused"] {
        let world = World::new(repeats).await;
        let payment = world.captured(1).await;
        let count = says_nothing("").len() as u64;
        for (number, carries_out) in (100..100 + count).zip([false, true].into_iter().cycle()) {
            let (name, bytes) = says_nothing(&id(number).txid()).remove((number - 100) as usize);
            let oddity = || match carries_out {
                false => Oddity::Says(bytes.clone()),
                true => Oddity::CarriesOutAndSays(bytes.clone()),
            };
            world.player.is_odd("PUT", "/cards/", 1, oddity());
            let answer = world.rail.charge(charge(id(number))).await;
            match carries_out {
                true => assert!(matches!(answer, Ok(CardAnswer::Captured { .. })), "{name}: {answer:?}"),
                // Nobody orders a card charge a second time: its end is ordered.
                false => {
                    assert_eq!(answer, Err(RailError::NoAnswer), "{name}");
                    assert_eq!(world.rail.close(id(number), &open_card()).await, Ok(CardFate::Closed), "{name}");
                }
            }
            world.player.is_odd("PUT", "/payouts/", 1, oddity());
            let mut answer = world.rail.send(payout(number, "a@example.com")).await;
            if !carries_out {
                assert_eq!(answer, Err(RailError::NoAnswer), "{name}: it may turn up");
                answer = world.rail.send(payout(number, "a@example.com")).await;
            }
            assert!(matches!(answer, Ok(PayoutAnswer::Processed { .. })), "{name}: {answer:?}");
            world.player.is_odd("PUT", "/repayments/", 1, oddity());
            let mut order = repay(number, id(1), &payment);
            order.amount = ledger::money::Centavos(1);
            let answer = ordered(async || CardRail::repay(&world.rail, order.clone()).await).await;
            assert!(matches!(answer, Ok(RepayAnswer::Repaid(_))), "{name}: {answer:?}");
            let path = |list: &str| format!("/{list}/{}", id(number).txid());
            let times = ["cards", "payouts", "repayments"].map(|list| world.player.carried_out(&path(list)));
            assert_eq!(times, [usize::from(carries_out), 1, 1], "{name} {repeats}");
            world.player.stage().odd.clear();
        }
    }
}

/// Words and values that the document does not have are no outcome.
#[tokio::test]
async fn an_answer_must_be_ours_to_the_last_field() {
    let world = World::new("same").await;
    world.captured(1).await;
    let good = json!({
        "id": id(1).txid(), "status": "captured", "amount": 1_050, "fee": 31, "reference": "r", "at": "2026-11-28T12:00:00Z",
    });
    let wrong = [
        ("id", json!("0198f3a27c418d0e8000ffffffffffff")),
        ("id", Value::Null),
        ("status", json!("CAPTURED")),
        ("amount", json!(1_051)),
        ("amount", json!("1050")),
        ("amount", json!(10.50)),
        ("amount", Value::Null),
        ("fee", json!(-1)),
        ("fee", json!(1_051)),
        ("fee", Value::Null),
        ("reference", json!("")),
        ("reference", json!("r".repeat(65))),
        ("at", json!("2026-11-28 12:00:00")),
        ("at", json!(1_795_000_000)),
    ];
    let said = |body: &Value| Oddity::Says(answer("200 OK", "application/json", &body.to_string()));
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field] = value;
        for method in ["PUT", "GET"] {
            world.player.is_odd(method, "/cards/", 9, said(&body));
        }
        assert_eq!(world.rail.charge(charge(id(1))).await, Err(RailError::NoAnswer), "{body}");
        world.player.stage().odd.clear();
    }
    let mut more = good;
    (more["brand"], more["mood"]) = (json!("a new scheme"), json!(["fine"]));
    world.player.is_odd("PUT", "/cards/", 1, said(&more));
    assert!(matches!(world.rail.charge(charge(id(1))).await, Ok(CardAnswer::Captured { .. })), "members may be added");
}

/// A redirect is no answer, and the host that it names sees no connection.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (world, other) = (World::new("same").await, RailPlayer::start("same").await);
    world.captured(1).await;
    for status in ["300", "301", "302", "303", "307", "308"] {
        let head = format!("{status} Elsewhere\r\nlocation: {}/cards/{}", other.url(), id(2).txid());
        for method in ["PUT", "GET"] {
            world.player.is_odd(method, "/", 99, Oddity::Says(answer(&head, "application/json", "{}")));
        }
        assert_eq!(world.rail.charge(charge(id(2))).await, Err(RailError::NoAnswer), "{status}");
        assert_eq!(world.rail.close(id(2), &open_card()).await, Err(RailError::NoAnswer), "{status}");
        world.player.stage().odd.clear();
    }
    assert_eq!(other.stage().connections, 0);
}

/// Wherever request or answer is cut, a transfer is there once.
#[tokio::test]
async fn cuts_after_each_byte_lose_nothing_and_repeat_nothing() {
    let world = World::new("same").await;
    let cuts = (0..420).step_by(7).map(Cut::Request).chain((0..400).step_by(7).map(Cut::Answer));
    for (number, cut) in (1_000..).zip(cuts) {
        // The first connection is that of the capabilities.
        let proxy = Proxy::at(world.player.address, 1, cut).await;
        let rail = world.fresh_rail_at(&format!("http://{}", proxy.address));
        let transfer = || payout(number, "a@example.com");
        let mut answer = rail.send(transfer()).await;
        if answer == Err(RailError::NoAnswer) {
            assert_eq!(rail.find(transfer(), now()).await, Ok(PayoutAnswer::NotTaken), "{cut:?}");
            answer = rail.send(transfer()).await;
        }
        assert!(matches!(answer, Ok(PayoutAnswer::Processed { .. })), "{cut:?}: {answer:?}");
        assert_eq!(world.player.carried_out(&format!("/payouts/{}", id(number).txid())), 1, "{cut:?}");
    }
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn a_bridge_that_cannot_be_reached_got_nothing() {
    let world = World::new("same").await;
    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rail = world.fresh_rail_at(&format!("http://{nowhere}"));
    assert_eq!(rail.charge(charge(id(1))).await, Err(RailError::NotSent));
    assert_eq!(rail.close(id(1), &open_card()).await, Err(RailError::NotSent));
    assert_eq!(rail.send(payout(1, "a@example.com")).await, Err(RailError::NotSent));
}
