//! Three nodes on one PostgreSQL database. The node that serves a merchant is paused while its
//! orders are under way, for longer than any horizon; the others ask, order again and end what it
//! left. When it goes on, it orders nothing more.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::testkit::postgres::shared;
use store::testkit::power_cut::Chance;
use testkit::callers::client;
use testkit::server::{Launch, OPS_TOKEN, Server, centavo, free_address};
use testkit::wall_clock::WallClock;

use crate::bridges::Bridges;
use crate::load::Load;
use crate::{LOOKS, setting, settled_within};

const NODES: usize = 3;
const PARTITIONS: usize = 6;
const MASTER_KEY: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";
/// How long after its order a transfer may turn up at the bridge, seconds. Nodes go by the
/// database's clock, which passes as it does.
const HORIZON_S: u64 = 10;
/// How long nodes may take until each partition has an owner, and until a fenced one has ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the others may take until nothing is unknown: a card charge is closed after a minute.
const SETTLED_AFTER: Duration = Duration::from_secs(180);

/// A node on a database, at an address of its own.
async fn start(folder: &Path, config: &Path, (database, peer): (&str, &str)) -> Server {
    let launch = Launch::on(folder)
        .live()
        .with("CENTAVO_CONFIG", config.to_str().unwrap())
        .with("CENTAVO_STORE", database)
        .with("CENTAVO_MASTER_KEY", MASTER_KEY)
        .with("CENTAVO_POSTGRES_TAKEOVER_SECONDS", "4")
        .with("CENTAVO_PARTITIONS", PARTITIONS.to_string())
        .with("CENTAVO_PEER_LISTEN", peer)
        .with("CENTAVO_PEER_ADDRESS", peer);
    Server::start(&launch).await.unwrap()
}

/// Waits until so many nodes share all partitions.
async fn shared_by(node: &Server, nodes: usize) {
    let begun = Instant::now();
    loop {
        let request = client().get(format!("{}/ops/cluster", node.operations)).bearer_auth(OPS_TOKEN).send();
        let picture: Value = match request.await {
            Ok(answer) => answer.json().await.unwrap_or_default(),
            Err(_) => Value::Null,
        };
        let owners = picture["partitions"].as_array().into_iter().flatten().map(|partition| &partition["owner"]);
        let mut owners: Vec<_> = owners.filter_map(Value::as_str).collect();
        let all = owners.len();
        owners.sort_unstable();
        owners.dedup();
        if all == PARTITIONS && owners.len() == nodes {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{picture} {}", node.said());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_paused_beyond_each_horizon_orders_nothing_again() {
    let Some(database) = shared() else { return };
    let (address, data, clock) = (database.database(), tempfile::tempdir().unwrap(), WallClock::running());
    let mut bridges = Bridges::start("same").await;
    bridges.only_ordered = true;
    bridges.money.records().capabilities["horizon_s"] = json!(HORIZON_S);
    let config = bridges.settings(data.path());
    let places: Vec<_> = (0..NODES).map(|_| free_address()).collect();
    let node = async |place: usize| start(data.path(), &config, (&address, &places[place])).await;
    let (paused, asked, other) = (node(0).await, node(1).await, node(2).await);
    shared_by(&asked, NODES).await;
    let load = Load::open(&paused).await.unwrap();
    let seed = setting("CENTAVO_RAILS_SEED").unwrap_or(0) + 6;
    bridges.misbehave(seed);
    let life = Duration::from_millis(1_500 + Chance(seed).below(1_500));
    load.run(&asked, &bridges, &clock, life, || paused.signal("STOP")).await;
    bridges.behave().await;
    shared_by(&asked, NODES - 1).await;
    let (begun, mut left) = (Instant::now(), Vec::new());
    while begun.elapsed() < SETTLED_AFTER {
        left = settled_within(&asked, &bridges, &load, false, LOOKS).await;
        if left.is_empty() {
            break;
        }
    }
    assert!(left.is_empty(), "seed {seed}: {left:#?}\n{}\n{}", load.summary(), asked.said());
    paused.signal("CONT");
    let ended = tokio::task::block_in_place(|| paused.ended_within(PATIENCE)).expect("a fenced node ends");
    assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
    let left = settled_within(&asked, &bridges, &load, false, 10 * LOOKS).await;
    assert!(left.is_empty(), "seed {seed}, after it went on: {left:#?}");
    assert_eq!(load.surprises(), [""; 0], "seed {seed}");
    asked.stop().unwrap();
    other.stop().unwrap();
    let mut verify = Command::new(centavo());
    verify.arg("verify").env("CENTAVO_STORE", &address).env("CENTAVO_MASTER_KEY", MASTER_KEY);
    let verified = verify.output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    println!("nodes: {}; {}", load.summary(), bridges.summary());
}
