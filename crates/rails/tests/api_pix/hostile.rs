//! Answers that say nothing, cuts after each byte, redirects.

use actors::rails::{PixFate, PixOpening, PixRail, PixSpan, RailError, RepayAnswer};
use serde_json::json;
use testkit::api_pix_player::Player;
use testkit::cut_proxy::{Cut, Proxy};
use testkit::played_http::Oddity;
use testkit::useless_answers::{answer, useless_answers};

use crate::{World, charge, id, now, ordered, repay};

/// None of these names our charge, return or transfer. `none` is the institution's word for nothing.
pub(crate) fn says_nothing(none: &str) -> Vec<(&'static str, Vec<u8>)> {
    let problem = |word: &str| {
        json!({ "type": format!("https://pix.bcb.gov.br/api/v2/error/{word}"), "title": "t", "status": 404 })
            .to_string()
    };
    useless_answers(&problem(none), &problem("RecNaoEncontrada"))
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_nothing() {
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
    for (name, bytes) in says_nothing("CobNaoEncontrado") {
        for method in ["PUT", "PATCH", "GET"] {
            world.player.is_odd(method, "/api/v2/", 99, Oddity::Says(bytes.clone()));
        }
        assert_eq!(world.rail.open(charge(2)).await, Err(RailError::NoAnswer), "open: {name}");
        assert_eq!(world.rail.cancel(id(2)).await, Err(RailError::NoAnswer), "cancel: {name}");
        assert_eq!(world.rail.repay(repay(2, &payment)).await, Err(RailError::NoAnswer), "repay: {name}");
        assert_eq!(world.rail.received(span).await, Err(RailError::NoAnswer), "received: {name}");
        assert_eq!(world.rail.accept_dispute(repay(2, &payment)).await, Err(RailError::NoAnswer), "dispute: {name}");
        world.player.stage().odd.clear();
    }
    assert_eq!(
        world.player.requests("PUT", "/devolucao/").len(),
        says_nothing("CobNaoEncontrado").len(),
        "none is sent a second time"
    );
    assert_eq!(world.player.returns_done().len(), 0);
}

/// The order alone is answered with nothing, and was carried out or not: the look afterwards says
/// which.
#[tokio::test]
async fn an_order_with_a_useless_answer_is_carried_out_once() {
    let world = World::new("bacen").await;
    for (number, (name, bytes)) in (100..).zip(says_nothing("CobNaoEncontrado")) {
        let oddity = match number % 2 {
            0 => Oddity::Says(bytes),
            _ => Oddity::CarriesOutAndSays(bytes),
        };
        for (method, path) in [("PUT", "/cob/"), ("PUT", "/devolucao/"), ("PATCH", "/cob/")] {
            world.player.is_odd(method, path, 1, oddity.clone());
        }
        let opened = ordered(async || world.rail.open(charge(number)).await).await;
        assert!(matches!(opened, Ok(PixOpening::Registered { .. })), "{name}: {opened:?}");
        assert_eq!(world.player.records().charges[&id(number).txid()].orders, 1, "{name}");
        let payment = world.player.pay(Some(&id(number).txid()), "10.50");
        let repaid = ordered(async || world.rail.repay(repay(number, &payment)).await).await;
        assert!(matches!(repaid, Ok(RepayAnswer::Repaid(_))), "{name}: {repaid:?}");
        let fate = world.rail.cancel(id(number)).await;
        assert!(matches!(fate, Ok(PixFate::Paid(_))), "{name}: {fate:?}");
        world.player.stage().odd.clear();
    }
    assert_eq!(world.player.returns_done().len(), says_nothing("CobNaoEncontrado").len());
}

/// A redirect is no answer, and the host that it names sees no connection.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (world, other) = (World::new("bacen").await, Player::start("bacen").await);
    let payment = world.paid(1).await;
    for status in ["300", "301", "302", "303", "307", "308"] {
        let head = format!("{status} Elsewhere\r\nlocation: http://{}/api/v2/cob/{}", other.address, id(2).txid());
        let bytes = answer(&head, "application/json", "{}");
        for method in ["PUT", "PATCH", "GET"] {
            world.player.is_odd(method, "/api/v2/", 99, Oddity::Says(bytes.clone()));
        }
        assert_eq!(world.rail.open(charge(2)).await, Err(RailError::NoAnswer), "{status}");
        assert_eq!(world.rail.cancel(id(2)).await, Err(RailError::NoAnswer), "{status}");
        assert_eq!(world.rail.repay(repay(2, &payment)).await, Err(RailError::NoAnswer), "{status}");
        world.player.stage().odd.clear();
    }
    assert_eq!(other.stage().connections, 0);
}

/// Wherever request or answer is cut, the charge and the return are there once, or nothing is known
/// and a later call finds out.
#[tokio::test]
async fn cuts_after_each_byte_lose_nothing_and_repeat_nothing() {
    let world = World::new("bacen").await;
    world.paid(1).await;
    let cuts = (0..500).step_by(7).map(Cut::Request).chain((0..1_100).step_by(13).map(Cut::Answer));
    for (number, cut) in (1_000..).zip(cuts) {
        let proxy = Proxy::before(world.player.address, cut).await;
        let rail = world.rail_at(&format!("http://{}", proxy.address));
        let opened = ordered(async || rail.open(charge(number)).await).await;
        assert!(matches!(opened, Ok(PixOpening::Registered { .. })), "{cut:?}: {opened:?}");
        assert_eq!(world.player.records().charges[&id(number).txid()].orders, 1, "{cut:?}");
        let payment = world.player.pay(Some(&id(number).txid()), "10.50");
        let proxy = Proxy::before(world.player.address, cut).await;
        let rail = world.rail_at(&format!("http://{}", proxy.address));
        let repaid = ordered(async || rail.repay(repay(number, &payment)).await).await;
        assert!(matches!(repaid, Ok(RepayAnswer::Repaid(_))), "{cut:?}: {repaid:?}");
    }
    let returns = world.player.returns_done().len();
    assert_eq!(returns, (0..500).step_by(7).count() + (0..1_100).step_by(13).count());
    assert_eq!(world.player.records().violations, [""; 0]);
}

/// A call that nobody waits for ends, and leaves nothing behind that later ones wait for.
#[tokio::test]
async fn a_silent_institution_holds_up_no_other_call() {
    let world = World::new("bacen").await;
    world.player.is_odd("PUT", "/cob/", 1, Oddity::IsSilent);
    world.player.is_odd("POST", "/oauth/token", 1, Oddity::IsSilent);
    for _ in 0..2 {
        let call = tokio::time::timeout(std::time::Duration::from_millis(200), world.rail.open(charge(1)));
        assert!(call.await.is_err(), "it is silent");
    }
    world.opened(1).await;
    assert_eq!(world.player.records().charges[&id(1).txid()].orders, 2, "the engine orders it again");
}

#[tokio::test]
async fn an_institution_that_cannot_be_reached_got_nothing() {
    let world = World::new("bacen").await;
    world.opened(1).await;
    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rail = world.rail_at(&format!("http://{nowhere}"));
    assert_eq!(rail.open(charge(2)).await, Err(RailError::NotSent));
    assert_eq!(rail.cancel(id(1)).await, Err(RailError::NotSent));
    assert_eq!(rail.repay(repay(2, &"E".repeat(32))).await, Err(RailError::NotSent));
}
