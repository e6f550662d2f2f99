//! Wall clock tests: the clock stands still, jumps, and passes from month to month. Meanwhile the
//! time of the books only goes forward; money is available exactly from its minute on, once; keys
//! live 24 hours of the server's time; and no request waits for a clock. A clock that jumps ahead
//! is not followed before two operators confirm it ([`ahead`]).
//!
//! `CENTAVO_CLOCK_SEED=s` begins with another seed, `CENTAVO_CLOCK_ROUNDS=n` runs more rounds of
//! the test under load.

#![allow(clippy::unwrap_used)]

mod audit;
mod clock_jump;
mod shop;

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use ledger::time::Timestamp;
use serde_json::Value;
use store::testkit::power_cut::Chance;
use testkit::callers::Callers;
use testkit::server::{Launch, Server, must_verify};
use testkit::setting;
use testkit::wall_clock::WallClock;

use audit::audit;
use shop::{SPLIT, Shop, time};

/// Callers that charge at once.
const CALLERS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_available_exactly_from_its_minute_on() {
    let data = tempfile::tempdir().unwrap();
    step_through_minutes(data.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_codes_live_by_the_time_of_the_books() {
    let data = tempfile::tempdir().unwrap();
    live_and_expire(data.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_only_goes_forward_whatever_the_wall_clock_does() {
    let data = tempfile::tempdir().unwrap();
    let summary = jump_under_load(data.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary}");
}

/// Charges at the end of January, and the clock moved to the second before each of their minutes,
/// to the minute, and over several.
async fn step_through_minutes(data: &Path) -> Result<(), String> {
    let clock = WallClock::standing_at("2027-01-31T23:58:20Z");
    let mut shop = Shop::open(data, &clock).await?;
    if shop.advance(0).await?.to_rfc3339() != "2027-01-31T23:58:20+00:00" {
        return Err("the server does not go by the clock of the test".to_owned());
    }
    let mut due = Vec::new();
    for wait in [0, 60, 60, 25, 86_400, 86_400] {
        let now = shop.advance(wait).await?;
        let minute = (now + TimeDelta::days(30)).duration_trunc(TimeDelta::minutes(1)).unwrap();
        due.push(shop.charge_card().await?);
        if due.last() != Some(&minute) {
            return Err(format!("a charge at {now} is available at {due:?}, not at {minute}"));
        }
    }
    for (first, at) in due.iter().enumerate().take(2) {
        let first = first as i64;
        shop.advance_to(*at - TimeDelta::seconds(1)).await?;
        has(&shop, first, 6 - first).await?;
        if first == 1 {
            shop = shop.restarted(data, &clock).await?;
            has(&shop, first, 6 - first).await?;
        }
        shop.advance_to(*at).await?;
        has(&shop, first + 1, 5 - first).await?;
    }
    // Two of one minute at once; then over two minutes a day apart, one after the other.
    shop.advance_to(due[2] - TimeDelta::seconds(1)).await?;
    has(&shop, 2, 4).await?;
    shop.advance_to(due[3]).await?;
    has(&shop, 4, 2).await?;
    shop.advance(5 * 86_400).await?;
    has(&shop, 6, 0).await?;
    let now = shop.advance(0).await?;
    shop.server.stop()?;
    must_verify(data)?;
    let audit = audit(data)?;
    audit.all_is_available_through(Timestamp(now.timestamp_millis()).minute())?;
    match audit.latest_ms {
        0 => Ok(()),
        late => {
            Err(format!("money was booked as available {late} ms after its minute, though the clock went through it"))
        }
    }
}

/// Available and pending splits of the first recipient.
async fn has(shop: &Shop, available: i64, pending: i64) -> Result<(), String> {
    let found = shop.balance().await?;
    match found == [available * SPLIT, pending * SPLIT] {
        true => Ok(()),
        false => Err(format!("{available} splits available and {pending} pending, expected; found {found:?} centavos")),
    }
}

/// A key and a PIX code under a clock that stands, is set back by an hour, and forward.
async fn live_and_expire(data: &Path) -> Result<(), String> {
    let clock = WallClock::standing_at("2028-02-29T12:00:00Z");
    let shop = Shop::open(data, &clock).await?;
    let first = shop.pix(Some("key"), 86_400).await?;
    let born = time(&first["created_at"]);
    shop.advance(86_399).await?;
    let again = shop.pix(Some("key"), 86_400).await?;
    let shop = shop.restarted(data, &clock).await?;
    let after_restart = shop.pix(Some("key"), 86_400).await?;
    let now = shop.advance(1).await?;
    let next_day = shop.pix(Some("key"), 86_400).await?;
    let is_replayed = again["txid"] == first["txid"] && after_restart["txid"] == first["txid"];
    if !is_replayed || next_day["txid"] == first["txid"] || now - born != TimeDelta::days(1) {
        return Err(format!("from {born} to {now}: {first} {again} {after_restart} {next_day}"));
    }

    // Two seconds of a clock that stands do not pass, however long one waits; nor do they behind a
    // clock that was set back.
    let code = shop.pix(None, 2).await?;
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    status_is(&shop, &code, "pending").await?;
    clock.go_on();
    clock.jump(-3_600);
    let held = shop.pix(None, 86_400).await?;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let later = shop.pix(None, 86_400).await?;
    status_is(&shop, &code, "pending").await?;
    if time(&held["created_at"]) != time(&later["created_at"]) || time(&held["created_at"]) < now {
        return Err(format!("behind a clock that was set back: {held}, then {later}"));
    }
    // Once it is set right the code expires. One of half an hour does not when the clock is set
    // forward by an hour, which is not followed, and nobody gets a new one; it does when the time
    // of the books has passed.
    clock.jump(3_600);
    let half_an_hour = shop.pix(None, 1_800).await?;
    status_becomes(&shop, &code, "cancelled").await?;
    status_is(&shop, &half_an_hour, "pending").await?;
    clock.jump(3_600);
    let refused = shop.pix(None, 86_400).await.unwrap_err();
    if !refused.contains("503") || !refused.contains("clock_in_doubt") {
        return Err(format!("a clock that was set forward by an hour: {refused}"));
    }
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    status_is(&shop, &half_an_hour, "pending").await?;
    clock.jump(-3_600);
    shop.advance(1_800).await?;
    status_is(&shop, &half_an_hour, "cancelled").await?;
    shop.server.stop()?;
    must_verify(data)?;
    audit(data).map(drop)
}

async fn status_is(shop: &Shop, charge: &Value, expected: &str) -> Result<(), String> {
    let found = shop.get(&format!("/api/charges/{}", charge["txid"].as_str().unwrap())).await?;
    if found["status"] == expected { Ok(()) } else { Err(format!("{expected}, expected: {found}")) }
}

/// The schedule looks every second, by a clock that nobody sets.
async fn status_becomes(shop: &Shop, charge: &Value, expected: &str) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match status_is(shop, charge, expected).await {
            Err(_) if begun.elapsed() < Duration::from_secs(10) => tokio::time::sleep(Duration::from_millis(100)).await,
            found => return found,
        }
    }
}

/// Load over the end of a month while the wall clock is set back by an hour and right again, stands
/// still and runs on; with kills.
async fn jump_under_load(data: &Path) -> Result<String, String> {
    let clock = WallClock::standing_at("2027-02-28T23:59:58Z");
    let launch = clock.rule(Launch::on(data));
    clock.run();
    clock.begins();
    let mut server = Server::start(&launch).await?;
    let mut callers = Callers::open(&server).await?;
    let first = setting("CENTAVO_CLOCK_SEED").unwrap_or(1);
    let rounds = setting("CENTAVO_CLOCK_ROUNDS").unwrap_or(16);
    for seed in first..first + rounds {
        let mut chance = Chance(seed);
        let life = Duration::from_millis(100 + chance.below(200));
        let changing = async {
            tokio::time::sleep(life / 2).await;
            change(&clock, chance.below(4));
            tokio::time::sleep(life / 2).await;
        };
        callers.charge_during(&server, CALLERS, changing).await;
        if callers.unanswered() > 0 {
            return Err(format!("seed {seed}: {} requests had no answer", callers.unanswered()));
        }
        if seed % 4 == 0 {
            callers.charge_until(&server, CALLERS, life, || server.kill()).await;
            server.wait();
            change(&clock, chance.below(4));
            clock.begins();
            server = Server::start(&launch).await?;
        }
        callers.reckon(&server).await.map_err(|error| format!("seed {seed}: {error}"))?;
    }
    let shop = Shop { server, callers };
    let now: DateTime<Utc> = shop.advance(32 * 86_400).await?;
    shop.server.stop()?;
    must_verify(data)?;
    let audit = audit(data)?;
    audit.all_is_available_through(Timestamp(now.timestamp_millis()).minute())?;
    Ok(format!("{rounds} rounds, {} Records; {}", audit.records, shop.callers.summary()))
}

/// Sets the clock back or right, stops it, or lets it run.
fn change(clock: &WallClock, choice: u64) {
    match choice {
        0 => clock.jump(-3_600),
        1 => clock.set_right(),
        2 => clock.stand(),
        _ => clock.run(),
    }
}
