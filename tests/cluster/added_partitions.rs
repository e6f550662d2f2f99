//! A database that one process served gets partitions, and several nodes divide them.

use std::cmp::Reverse;

use actors::cluster::weight;
use serde_json::json;
use store::Partition;
use testkit::server::OPS_TOKEN;

use super::*;
use crate::nodes::{Nodes, cluster};

/// The first partition, and as many as nodes have.
const PARTITIONS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_one_partition_grows_and_nodes_divide_it() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let server = Server::start(&on(folder.path(), &address)).await.unwrap();
    let mut old = Callers::open(&server).await.unwrap();
    old.charge(&server, 4, 40).await;
    reckon(&mut old, &server).await;
    let first = open(&server.operations).await;
    let grow = ["grow", "--partitions", "16"];
    let served = run_on(&address, &grow, &[]);
    let said = String::from_utf8(served.stderr).unwrap();
    assert!(!served.status.success() && said.contains("has it open; stop it"), "{said}");
    server.stop().unwrap();
    let grown = run_on(&address, &grow, &[]);
    let said = String::from_utf8(grown.stdout).unwrap();
    assert!(said.contains("16 partitions now, of which 15 are new"), "{said}");

    let nodes = Nodes::of(folder.path(), &address, 2).started().await;
    let held = nodes.settled().await;
    assert_eq!(held.values().sum::<u64>(), PARTITIONS as u64, "{held:?}");
    for node in nodes.running() {
        assert_eq!(open(&node.operations).await, first, "a retry meets its first, whichever node it asks");
    }
    let mut new = Vec::new();
    for place in 0..4 {
        new.push(Callers::open(nodes.node(place % 2)).await.unwrap());
    }
    for (place, merchant) in new.iter_mut().chain([&mut old]).enumerate() {
        merchant.charge(nodes.node(place % 2), 4, 20).await;
        reckon(merchant, nodes.node((place + 1) % 2)).await;
    }
    nodes.stop().await;
}

/// A node that stands still looks dead, so the store grows without it. It has no partition that
/// could be taken from it, and wakes up among partitions that it does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_slept_while_partitions_were_added_says_so_and_ends() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::of(folder.path(), &address, 2);
    for place in &mut nodes.places {
        place.environment.push(("CENTAVO_PARTITIONS", "1".to_owned()));
    }
    // The first has the partition from the beginning.
    nodes.places.sort_by_key(|place| Reverse(weight(&place.peer, Partition(0))));
    for place in [0, 1] {
        nodes.restart(place).await;
    }
    let begun = Instant::now();
    while !cluster(nodes.node(1)).await.is_some_and(|picture| picture["partitions"][0]["owner"].is_string()) {
        assert!(begun.elapsed() < PATIENCE, "{}", nodes.node(0).said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let sleeping = nodes.servers[1].take().unwrap();
    signal(sleeping.id(), "STOP");
    wait_until_stopped(sleeping.id()).await;
    let owner = nodes.servers[0].take().unwrap();
    owner.kill();
    owner.wait();
    let grown = run_on(&address, &["grow", "--partitions", "16"], &[]);
    assert!(grown.status.success(), "{}", String::from_utf8_lossy(&grown.stderr));

    signal(sleeping.id(), "CONT");
    let ended = sleeping.ended_within(PATIENCE).unwrap();
    assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
    assert!(ended.said.contains("partitions were added to this store; start again"), "{}", ended.said);
    assert!(!ended.said.contains("made durable"), "{}", ended.said);
    for place in [0, 1] {
        nodes.restart(place).await;
    }
    assert_eq!(nodes.settled().await.values().sum::<u64>(), PARTITIONS as u64);
    nodes.stop().await;
}

/// Asks for an account, always with the same key; gives its id.
async fn open(operations: &str) -> serde_json::Value {
    let merchant =
        json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
    let request = client().post(format!("{operations}/ops/merchants")).bearer_auth(OPS_TOKEN);
    let answer = request.header("idempotency-key", "abertura-1").json(&merchant).send().await.unwrap();
    answer.json::<serde_json::Value>().await.unwrap()["id"].clone()
}
