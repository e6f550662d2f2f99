//! A wall clock that jumps ahead while a server runs, and one that a live server finds far from the
//! last Record at its start.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::callers::{Callers, client};
use testkit::server::{Launch, OPS_TOKEN, Server, must_verify};

use crate::shop::{SPLIT, Shop};
use testkit::wall_clock::WallClock;

/// Token of the second operator.
const SECOND_TOKEN: &str = "second-operator-of-the-test-32-characters";
const DAY: i64 = 86_400;

fn two_operators<'a>(launch: Launch<'a>, clock: &WallClock) -> Launch<'a> {
    let launch = launch.with("CENTAVO_OPS_TOKEN", format!("ana:{OPS_TOKEN},rui:{SECOND_TOKEN}"));
    clock.rule(launch.with("CENTAVO_OPS_ROLES", "ana=admin,rui=decide"))
}

/// A request to the operators' listener; gives its status and body.
async fn ask(server: &Server, method: Method, path: &str, token: &str, body: Option<Value>) -> (u16, Value) {
    let request = client().request(method, format!("{}{path}", server.operations)).bearer_auth(token);
    let request = body.into_iter().fold(request, |request, body| request.json(&body));
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or_else(|_| text.into()))
}

async fn confirm(server: &Server, token: &str) -> (u16, Value) {
    ask(server, Method::POST, "/ops/clock/confirm", token, Some(json!({}))).await
}

async fn reads(server: &Server, path: &str) -> (u16, Value) {
    ask(server, Method::GET, path, OPS_TOKEN, None).await
}

async fn opens_an_account(server: &Server) -> (u16, Value) {
    let body = json!({"name": "Outra", "document": "11444777000161", "split_enabled": true});
    ask(server, Method::POST, "/ops/merchants", OPS_TOKEN, Some(body)).await
}

/// Waits until `/readyz` answers with a status: the server looks every second.
async fn readiness_becomes(server: &Server, status: u16) -> Value {
    let begun = Instant::now();
    loop {
        let (found, body) = reads(server, "/readyz").await;
        if found == status {
            return body;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{status}, expected: {found} {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How far the wall clock is ahead by the metrics, seconds.
async fn ahead_seconds(server: &Server) -> i64 {
    let metrics = reads(server, "/metrics").await.1;
    let lines = metrics.as_str().unwrap().lines();
    let mut found = lines.filter_map(|line| line.strip_prefix("centavo_clock_ahead_seconds "));
    found.next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_year_ahead_is_not_followed_before_two_operators_confirm_it() {
    let data = tempfile::tempdir().unwrap();
    let clock = WallClock::standing_at("2027-03-10T12:00:00Z");
    clock.run();
    let server = Server::start(&two_operators(Launch::on(data.path()), &clock)).await.unwrap();
    let callers = Callers::open(&server).await.unwrap();
    let shop = Shop { server, callers };
    shop.charge_card().await.unwrap();
    assert_eq!(shop.balance().await.unwrap(), [0, SPLIT]);
    assert_eq!(reads(&shop.server, "/ops/clock").await.1["followed"], true);

    clock.jump(366 * DAY);
    let problem = readiness_becomes(&shop.server, 503).await;
    assert_eq!(problem["code"], "clock_in_doubt", "{problem}");
    assert!(ahead_seconds(&shop.server).await >= 366 * DAY - 60);
    let refused = shop.charge_card().await.unwrap_err();
    assert!(refused.contains("503") && refused.contains("clock_in_doubt"), "{refused}");
    let refused = opens_an_account(&shop.server).await;
    assert_eq!((refused.0, &refused.1["code"]), (503, &json!("clock_in_doubt")));
    // The schedule looks every second, and books nothing.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(shop.balance().await.unwrap(), [0, SPLIT]);
    let seen = reads(&shop.server, "/ops/clock").await.1;
    assert_eq!([&seen["doubt"], &seen["confirmed_by"]], [&json!("step"), &Value::Null]);
    assert!(seen["now"].as_str().unwrap().starts_with("2027-03-10T"), "{seen}");
    assert!(seen["wall_clock"].as_str().unwrap().starts_with("2028-03-10T"), "{seen}");

    // Set right, it is followed again, and nobody needs to say so.
    clock.jump(-366 * DAY);
    readiness_becomes(&shop.server, 200).await;
    shop.charge_card().await.unwrap();
    assert_eq!(confirm(&shop.server, OPS_TOKEN).await.1["followed"], true);
    assert_eq!(confirm(&shop.server, OPS_TOKEN).await.0, 200, "there is nothing to confirm");

    clock.jump(366 * DAY);
    readiness_becomes(&shop.server, 503).await;
    let first = confirm(&shop.server, OPS_TOKEN).await;
    assert_eq!((first.0, &first.1["followed"], &first.1["confirmed_by"]), (200, &json!(false), &json!("ana")));
    assert_eq!(confirm(&shop.server, OPS_TOKEN).await.1["code"], "second_operator_needed");
    assert_eq!(reads(&shop.server, "/readyz").await.0, 503, "one word changes nothing");
    let second = confirm(&shop.server, SECOND_TOKEN).await;
    assert_eq!((second.0, &second.1["followed"]), (200, &json!(true)));
    readiness_becomes(&shop.server, 200).await;
    assert_eq!(shop.balance().await.unwrap(), [2 * SPLIT, 0], "what is due by the confirmed clock is booked");
    let said = shop.server.said();
    assert!(
        said.contains("the wall clock is in doubt") && said.contains("operators confirmed the wall clock"),
        "{said}"
    );
    shop.server.stop().unwrap();
    must_verify(data.path()).unwrap();
}

async fn live(data: &Path, clock: &WallClock) -> Server {
    Server::start(&two_operators(Launch::on(data).live(), clock)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_start_far_from_the_last_record_waits_for_two_operators() {
    let data = tempfile::tempdir().unwrap();
    let clock = WallClock::standing_at("2027-03-10T12:00:00Z");
    clock.run();
    let server = live(data.path(), &clock).await;
    assert_eq!(opens_an_account(&server).await.0, 201);
    server.stop().unwrap();
    // Six days later nobody is asked.
    clock.jump(6 * DAY);
    let server = live(data.path(), &clock).await;
    readiness_becomes(&server, 200).await;
    server.stop().unwrap();
    // The process that began six days later wrote nothing.
    clock.jump(2 * DAY);
    let server = live(data.path(), &clock).await;
    assert_eq!(readiness_becomes(&server, 503).await["code"], "clock_in_doubt");
    assert_eq!(reads(&server, "/ops/clock").await.1["doubt"], "late_start");
    assert_eq!(reads(&server, "/ops/merchants").await.1["total"], 1);
    assert_eq!(opens_an_account(&server).await.0, 503);
    assert_eq!(confirm(&server, SECOND_TOKEN).await.0, 200);
    assert_eq!(opens_an_account(&server).await.0, 503, "one word changes nothing");
    assert_eq!(confirm(&server, OPS_TOKEN).await.0, 200);
    assert_eq!(opens_an_account(&server).await.0, 201);
    server.stop().unwrap();
    // An hour before the last Record it waits until the clock is right.
    clock.jump(-3_600);
    let server = live(data.path(), &clock).await;
    readiness_becomes(&server, 503).await;
    assert_eq!(reads(&server, "/ops/clock").await.1["doubt"], "early_start");
    clock.jump(3_600);
    readiness_becomes(&server, 200).await;
    assert_eq!(opens_an_account(&server).await.0, 201);
    server.stop().unwrap();
    must_verify(data.path()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_that_is_opened_a_month_later_says_so_and_works() {
    let data = tempfile::tempdir().unwrap();
    let clock = WallClock::standing_at("2027-03-10T12:00:00Z");
    clock.run();
    let launch = two_operators(Launch::on(data.path()), &clock);
    let server = Server::start(&launch).await.unwrap();
    let callers = Callers::open(&server).await.unwrap();
    let shop = Shop { server, callers };
    shop.charge_card().await.unwrap();
    // Its own clock counts: moved ahead, it is not before the last Record.
    shop.advance(40 * DAY).await.unwrap();
    shop.charge_card().await.unwrap();
    shop.server.stop().unwrap();
    clock.jump(6 * DAY);
    let server = Server::start(&launch).await.unwrap();
    let said = server.said();
    assert!(!said.contains("last Record"), "{said}");
    let shop = Shop { server, callers: shop.callers };
    shop.charge_card().await.unwrap();
    shop.server.stop().unwrap();
    clock.jump(31 * DAY);
    let shop = Shop { server: Server::start(&launch).await.unwrap(), callers: shop.callers };
    readiness_becomes(&shop.server, 200).await;
    let said = shop.server.said();
    assert!(said.contains("the last Record of this sandbox is long ago"), "{said}");
    assert_eq!(shop.balance().await.unwrap(), [3 * SPLIT, 0]);
    shop.charge_card().await.unwrap();
    shop.server.stop().unwrap();
}
