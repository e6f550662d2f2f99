//! Nodes whose machines' clocks are wrong: one an hour ahead, one an hour behind. They go by the
//! database's clock, so nothing of it is in the books.
//!
//! Clocks are moved by libfaketime, without which the test says so and passes.
//! `CENTAVO_FAKETIME=required` makes that an error.

use std::collections::BTreeMap;

use chrono::DateTime;
use ledger::id::ObjectId;
use serde_json::Value;

use super::nodes::{Nodes, get};
use super::*;

/// How far the clock of each node is ahead, seconds.
const AHEAD: [i64; 3] = [0, 3_600, -3_600];

/// More than the test takes, and than it moves the sandbox clock; less than the clocks differ.
const DIFFERENCE_MAX_MS: i64 = 1_200_000;

/// The library, where Debian's package has it.
fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    if found.is_none() {
        let missing = "libfaketime is missing (Debian: apt-get install libfaketime): clocks are not moved";
        assert!(std::env::var("CENTAVO_FAKETIME").as_deref() != Ok("required"), "{missing}");
        println!("{missing}");
    }
    found
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// The charge is there at every node, for its merchant and for operators, and its id has the time
/// of now.
async fn must_be_everywhere(nodes: &Nodes<'_>, merchant: &Callers, txid: &str) {
    let created = ObjectId::parse(txid).unwrap().created_at().0;
    assert!(created.abs_diff(now_ms()) < DIFFERENCE_MAX_MS as u64, "{txid} was made at {created}, not {}", now_ms());
    for node in nodes.running() {
        let url = format!("{}/api/charges/{txid}", node.public);
        let found = client().get(url).bearer_auth(&merchant.api_key).send().await.unwrap();
        assert_eq!(found.status(), 200, "{}", node.said());
        let found = get(node, &format!("/ops/charges/{txid}")).await;
        assert_eq!(found["merchant_id"], merchant.merchant.as_str());
    }
    let newest = get(nodes.running()[0], "/ops/lists/charges?per_page=100").await;
    assert!(newest["items"].as_array().unwrap().iter().any(|charge| charge["id"] == txid), "{txid}: {newest}");
}

/// Charges through every node, and looks for each charge everywhere.
async fn charge_everywhere(nodes: &Nodes<'_>, merchants: &mut [Callers]) {
    for node in nodes.running() {
        for merchant in &mut *merchants {
            let before = merchant.charges().count();
            merchant.charge(node, 1, 3).await;
            let made: Vec<String> = merchant.charges().skip(before).map(str::to_owned).collect();
            assert!(!made.is_empty(), "{:?} {}", merchant.failures(), node.said());
            must_be_everywhere(nodes, merchant, &made[made.len() - 1]).await;
        }
    }
}

/// Booking times rise in each partition, and are of now.
async fn must_be_of_now(node: &Server, begun_ms: i64) {
    let (mut path, mut later) = ("/ops/records?per_page=100".to_owned(), BTreeMap::<u64, (u64, i64)>::new());
    let mut records = 0;
    loop {
        let page = get(node, &path).await;
        for record in page["items"].as_array().unwrap() {
            records += 1;
            let booked = DateTime::parse_from_rfc3339(record["booked_at"].as_str().unwrap()).unwrap();
            let (booked, sequence) = (booked.timestamp_millis(), record["sequence"].as_u64().unwrap());
            let is_of_now = booked > begun_ms - DIFFERENCE_MAX_MS && booked < now_ms() + DIFFERENCE_MAX_MS;
            assert!(is_of_now, "{record}");
            let next = later.insert(record["partition"].as_u64().unwrap(), (sequence, booked));
            let is_before = next.is_none_or(|(after, at)| sequence + 1 == after && booked <= at);
            assert!(is_before, "{next:?} comes after {record}");
        }
        match &page["next_before"] {
            Value::String(before) => path = format!("/ops/records?per_page=100&before={before}"),
            _ => break,
        }
    }
    assert!(later.values().all(|(first, _)| *first == 1), "{later:?}");
    println!("{records} Records of {} partitions, each booked in its order", later.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_differ_by_hours_change_nothing_in_the_books() {
    let (Some(database), Some(faketime)) = (shared(), faketime()) else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let begun_ms = now_ms();
    let mut nodes = Nodes::of(folder.path(), &address, AHEAD.len());
    for (place, ahead) in nodes.places.iter_mut().zip(AHEAD) {
        place.environment.extend([
            ("LD_PRELOAD", faketime.display().to_string()),
            ("FAKETIME", format!("{ahead:+}")),
            // Clocks that count since the machine's start, and times of files, are left alone.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]);
    }
    let mut nodes = nodes.started().await;
    let mut merchants = Vec::new();
    for number in 0..AHEAD.len() {
        merchants.push(Callers::open(nodes.node(number)).await.unwrap());
    }
    charge_everywhere(&nodes, &mut merchants).await;
    // Each node's partitions go to the others, and come back.
    for place in [1, 2, 0] {
        let ended = nodes.servers[place].take().unwrap();
        if place == 2 {
            ended.stop().unwrap();
        } else {
            ended.kill();
            ended.wait();
        }
        nodes.settled().await;
        charge_everywhere(&nodes, &mut merchants).await;
        nodes.restart(place).await;
        nodes.settled().await;
        charge_everywhere(&nodes, &mut merchants).await;
    }
    // The clocks were moved indeed.
    for (place, ahead) in AHEAD.iter().enumerate() {
        let warns = nodes.node(place).said().contains("this machine's clock differs from the store's");
        assert_eq!(warns, *ahead != 0, "{}", nodes.node(place).said());
    }
    for (place, merchant) in merchants.iter_mut().enumerate() {
        reckon(merchant, nodes.node(place % AHEAD.len())).await;
    }
    must_be_of_now(nodes.node(1), begun_ms).await;
    nodes.stop().await;
}
