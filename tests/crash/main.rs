//! Crash test: the server is killed, or its machine loses power, under concurrent load, again and
//! again. The callers keep an independent log of acknowledged requests. After each crash the log is
//! compared with the server: nothing acknowledged is missing, nothing is there twice, and the whole
//! journal verifies.
//!
//! `CENTAVO_KILLS=n` and `CENTAVO_CUTS=n` run more rounds; `CENTAVO_CRASH_SEED=s` begins with
//! another seed. The seed decides the time of the end and what survives on the disk; the rest is
//! timing.

#![allow(clippy::unwrap_used)]

mod at_once;
mod durable_files;
mod mixed;
mod settlement_file;

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use store::testkit::power_cut::{Chance, Disk, Shim};
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, Server, must_verify};
use testkit::setting;

use mixed::{MixedLoad, Receiver};

/// Callers that charge at once.
const CALLERS: usize = 24;
/// Callers that do everything at once.
const MIXED_CALLERS: u64 = 12;
/// One request in this number has ten thousand splits.
const LARGE_EVERY: u64 = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_by_kills() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = setting("CENTAVO_KILLS").unwrap_or(20);
    let summary =
        crash_again_and_again(folder.path(), None, rounds).await.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{rounds} kills: {summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_by_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = setting("CENTAVO_CUTS").unwrap_or(10);
    let shim = Shim::build();
    let summary =
        crash_again_and_again(folder.path(), Some(&shim), rounds).await.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{rounds} power cuts: {summary}");
}

/// Payouts, cycles of a subscription and webhooks are at stake as well as charges: kills and power
/// cuts by turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_payout_is_sent_twice_and_no_event_lost() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = setting("CENTAVO_KILLS").unwrap_or(12);
    let shim = Shim::build();
    let summary = mix_and_crash(folder.path(), &shim, rounds).await.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{rounds} crashes: {summary}");
}

/// The same money is asked for many times at once, with three kills a round: withdrawals, refunds,
/// anticipations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_goes_out_than_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let first_seed = setting("CENTAVO_CRASH_SEED").unwrap_or(1);
    let summary = at_once::ask_at_once_and_crash(&data, first_seed..first_seed + 4).await;
    println!("{}", summary.unwrap_or_else(|failure| panic!("{failure}")));
}

/// The booking of a settlement report breaks off between two of its batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_report_is_booked_once_across_kills() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let summary = settlement_file::book_and_crash(&data).await;
    println!("{}", summary.unwrap_or_else(|failure| panic!("{failure}")));
}

async fn mix_and_crash(folder: &Path, shim: &Shim, rounds: u64) -> Result<String, String> {
    let data = folder.join("data");
    std::fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let launch = Launch::on(&data).with_shim(Some(shim)).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let mut server = Server::start(&launch).await?;
    let mut mixed = MixedLoad::open(&server, Receiver::start().await).await?;
    let first_seed = setting("CENTAVO_CRASH_SEED").unwrap_or(1);
    for seed in first_seed..first_seed + rounds {
        let mut chance = Chance(seed);
        let life = Duration::from_millis(100 + chance.below(900));
        mixed.call_until(&server, MIXED_CALLERS, life, || server.kill()).await;
        server.wait();
        if seed.is_multiple_of(2) {
            shim.cut(&data, seed);
        }
        server = Server::start(&launch).await.map_err(|error| format!("seed {seed}: it does not open: {error}"))?;
        mixed.recall(&server).await.map_err(|error| format!("seed {seed}: {error}"))?;
        // A day goes by for the subscription; every other time the end comes while it does.
        let day = json!({"advance_seconds": 86_400});
        if seed.is_multiple_of(3) {
            let client = client();
            let moving = operate(&client, &server, "/ops/sandbox/clock", &day);
            let _cut_short = tokio::time::timeout(Duration::from_millis(chance.below(60)), moving).await;
            server.kill();
            server.wait();
            server = Server::start(&launch).await.map_err(|error| format!("seed {seed}: it does not open: {error}"))?;
        }
        operate(&client(), &server, "/ops/sandbox/clock", &day).await?;
        mixed.reckon(&server, &data).await.map_err(|error| format!("seed {seed}: {error}"))?;
    }
    server.stop()?;
    must_verify(&data)?;
    Ok(mixed.summary())
}

/// Under a disk that says that it has written, and has not, the same rounds must fail: this harness
/// can see a lost charge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_lies_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let shim = Shim::build().with_disk(Disk::Lying);
    let found = crash_again_and_again(folder.path(), Some(&shim), 40).await;
    println!("found out: {}", found.expect_err("forty power cuts on a disk that lies lose something"));
}

/// Rounds of load, crash, restart and comparison in one folder. Gives a summary, or the first
/// broken promise.
async fn crash_again_and_again(folder: &Path, shim: Option<&Shim>, rounds: u64) -> Result<String, String> {
    let data = folder.join("data");
    std::fs::create_dir_all(&data).map_err(|error| error.to_string())?;
    let first_seed = setting("CENTAVO_CRASH_SEED").unwrap_or(1);
    let launch = Launch::on(&data).with_shim(shim);
    let mut server = Server::start(&launch).await?;
    let mut callers = Callers::open(&server).await?;
    callers.large_every = LARGE_EVERY;
    for seed in first_seed..first_seed + rounds {
        let mut chance = Chance(seed);
        end_under_load(&server, &mut callers, &mut chance).await;
        cut_power(shim, &data, seed);
        // Every third time the end comes again while the data is being opened.
        if seed.is_multiple_of(3) {
            Server::start_and_kill(&launch, Duration::from_millis(chance.below(150))).await;
            cut_power(shim, &data, seed / 3);
        }
        server = Server::start(&launch).await.map_err(|error| format!("seed {seed}: it does not open: {error}"))?;
        callers.reckon(&server).await.map_err(|error| format!("seed {seed}: {error}"))?;
    }
    server.stop()?;
    must_verify(&data)?;
    Ok(callers.summary())
}

/// Load, and a kill. Every other time the server got a signal to stop a moment before, and keeps
/// its snapshots.
async fn end_under_load(server: &Server, callers: &mut Callers, chance: &mut Chance) {
    let life = Duration::from_millis(50 + chance.below(450));
    let grace = Duration::from_millis(chance.below(60));
    let end = || {
        if chance.below(2) == 0 {
            server.terminate();
            std::thread::sleep(grace);
        }
        server.kill();
    };
    callers.charge_until(server, CALLERS, life, end).await;
    server.wait();
}

fn cut_power(shim: Option<&Shim>, data: &Path, seed: u64) {
    if let Some(shim) = shim {
        shim.cut(data, seed);
    }
}
