//! Tokens: one for many calls, renewed before their end and after a refusal.

use actors::rails::{PixOpening, PixRail, RailError, RepayAnswer};
use futures_util::future::join_all;
use serde_json::json;
use testkit::played_http::Oddity;

use crate::{World, answer, charge, edits, id, repay};

#[tokio::test]
async fn many_calls_ask_for_one_token() {
    let world = World::new("bacen").await;
    let opened = join_all((1..=20).map(|number| world.rail.open(charge(number)))).await;
    assert!(opened.iter().all(|answer| matches!(answer, Ok(PixOpening::Registered { .. }))), "{opened:?}");
    assert_eq!(world.player.records().logins, 1);
}

/// As a number or a text; a token that is about to end is not used by later calls.
#[tokio::test]
async fn a_token_is_kept_until_half_a_minute_before_its_end() {
    for (life, logins) in [(json!(3600), 1), (json!("3600"), 1), (json!(30), 2), (json!("5"), 2), (json!(null), 2)] {
        let world = World::new("bacen").await;
        world.player.records().token_life = life.clone();
        world.opened(1).await;
        world.opened(2).await;
        assert_eq!(world.player.records().logins, logins, "{life}");
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_an_order_is_not_sent_again() {
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    world.player.records().end_tokens();
    world.player.stage().requests.clear();
    assert_eq!(world.rail.open(charge(2)).await, Err(RailError::HasNone));
    let seen: Vec<_> = world.player.stage().requests.iter().map(|request| request.method.clone()).collect();
    assert_eq!(seen, ["PUT", "POST", "GET"]);
    world.opened(2).await;
    // A gateway that says 401 and takes the order all the same.
    let unauthorized = answer("401 Unauthorized", "application/json", "{}");
    world.player.is_odd("PUT", "/cob/", 1, Oddity::CarriesOutAndSays(unauthorized.clone()));
    world.opened(3).await;
    assert_eq!(world.player.records().charges[&id(3).txid()].orders, 1);
    world.player.is_odd("PUT", "/devolucao/", 1, Oddity::CarriesOutAndSays(unauthorized.clone()));
    assert!(matches!(world.rail.repay(repay(4, &payment)).await, Ok(RepayAnswer::Repaid(_))));
    assert_eq!(world.player.requests("PUT", "/devolucao/").len(), 1);
    // A removal that was not taken is ordered once more.
    world.player.records().end_tokens();
    assert_eq!(world.rail.cancel(id(2)).await, Ok(actors::rails::PixFate::Cancelled));
    // A token that is refused for ever is asked for once a call.
    world.player.is_odd("GET", "/pix/", 99, Oddity::Says(unauthorized));
    let logins = world.player.records().logins;
    assert_eq!(world.rail.accept_dispute(repay(5, &payment)).await, Err(RailError::NoAnswer));
    assert_eq!(world.player.records().logins, logins + 1);
}

#[tokio::test]
async fn nothing_is_sent_without_a_token() {
    let world = World::new("bacen").await;
    let wrong = [
        Oddity::Says(answer("401 Unauthorized", "application/json", "{\"error\":\"invalid_client\"}")),
        Oddity::Says(answer("500 Error", "text/html", "<p>")),
        Oddity::Says(answer("302 Found\r\nlocation: http://127.0.0.1:1/", "text/html", "")),
        Oddity::Says(answer("200 OK", "text/html", "{\"access_token\":\"a\"}")),
        Oddity::Says(answer("200 OK", "application/json", "{}")),
        Oddity::Says(Vec::new()),
        Oddity::CutsAnswerAt(90),
        edits(|body| body["access_token"] = json!("a\nb")),
        edits(|body| body["token_type"] = json!("mac")),
    ];
    for (number, oddity) in wrong.into_iter().enumerate() {
        world.player.is_odd("POST", "/oauth/token", 1, oddity);
        let payment = "E".repeat(32);
        let answer = match number % 3 {
            0 => world.rail.open(charge(1)).await.map(drop),
            1 => world.rail.repay(repay(1, &payment)).await.map(drop),
            _ => world.rail.cancel(id(1)).await.map(drop),
        };
        assert_eq!(answer, Err(RailError::NotSent), "case {number}");
    }
    assert_eq!(world.player.requests("PUT", "").len() + world.player.requests("PATCH", "").len(), 0);
}

/// Those that waited for a login that failed do not each try one of their own.
#[tokio::test]
async fn a_failed_login_is_that_of_all_that_waited_for_it() {
    let world = World::new("bacen").await;
    world.player.is_odd("POST", "/oauth/token", 99, Oddity::Says(answer("500 Error", "text/html", "")));
    let opened = join_all((1..=20).map(|number| world.rail.open(charge(number)))).await;
    assert!(opened.iter().all(|answer| *answer == Err(RailError::NotSent)), "{opened:?}");
    assert_eq!(world.player.requests("POST", "/oauth/token").len(), 1);
}
