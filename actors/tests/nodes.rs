//! Nodes on a real PostgreSQL: three processes look at one database, take partitions, hand them
//! over and write them, each by its own placement. It prints a note where PostgreSQL is missing.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actors::cluster::{Move, Placement, weight};
use store::testkit::postgres::shared;
use store::{Block, Part, Partition, PostgresAddress, PostgresOptions, PostgresStore, Sequence, Store, now_ms};

const NODES: [&str; 3] = ["10.0.0.1:8081", "10.0.0.2:8081", "10.0.0.3:8081"];

/// Rounds after which a test gives up; each one is a tenth of the takeover time.
const ROUNDS_MAX: usize = 2_000;

fn partitions() -> impl Iterator<Item = Partition> {
    (0..12).map(Partition)
}

struct Node {
    address: &'static str,
    store: Arc<PostgresStore>,
    placement: Placement,
    held: BTreeMap<Partition, Part>,
}

impl Node {
    fn start(database: &str, address: &'static str) -> Self {
        let takeover = Duration::from_secs(1);
        let options = PostgresOptions {
            takeover,
            node: Some(address.to_owned()),
            ..PostgresOptions::at(PostgresAddress::parse(database).unwrap())
        };
        let store = Arc::new(PostgresStore::open(&options).unwrap());
        store.join().unwrap();
        let placement = Placement::new(store.process().to_owned(), takeover);
        Self { address, store, placement, held: BTreeMap::new() }
    }

    /// One look, and what follows of it. Returns the number of hand-overs.
    fn look(&mut self, written: &mut u64) -> usize {
        let picture = self.store.picture().unwrap().with_all(partitions());
        let moves = self.placement.step(&picture, now_ms(), self.store.is_current());
        let handed_over = moves.iter().filter(|one| matches!(one, Move::HandOver { .. })).count();
        for one in moves {
            match one {
                Move::Take { partition, seen, gone } => {
                    if let Some(tenure) = self.store.take_from(partition, seen, gone).unwrap() {
                        let part = Part::of(self.store.clone(), tenure);
                        write(&part, written);
                        assert!(self.held.insert(partition, part).is_none());
                    }
                }
                Move::HandOver { partition } => {
                    let part = self.held.remove(&partition).unwrap();
                    write(&part, written);
                    part.release().unwrap();
                }
            }
        }
        assert!(!self.store.is_superseded(), "{} lost a partition against its will", self.address);
        handed_over
    }
}

fn write(part: &Part, written: &mut u64) {
    let head = part.head().unwrap();
    let (first, previous, booked_at_ms) = (head.next, head.hash, head.booked_at_ms.max(0));
    let records = vec![b"a Record".to_vec()];
    part.append(&Block { partition: part.partition(), first, booked_at_ms, previous, records }).unwrap();
    *written += 1;
}

/// The address that should have each partition: in their order, the heaviest that has room.
fn desired<'a>(candidates: &[&'a str]) -> BTreeMap<Partition, &'a str> {
    let room = partitions().count().div_ceil(candidates.len());
    let mut has: BTreeMap<&str, usize> = BTreeMap::new();
    let mut desired = BTreeMap::new();
    for partition in partitions() {
        let with_room = candidates.iter().filter(|address| has.get(*address).is_none_or(|has| *has < room));
        let heaviest = with_room.max_by_key(|address| weight(address, partition)).unwrap();
        *has.entry(heaviest).or_default() += 1;
        desired.insert(partition, *heaviest);
    }
    desired
}

/// Lets all look until each partition is held by the node that should have it.
fn settle(nodes: &mut [Node], candidates: &[&str], written: &mut u64) {
    for _ in 0..ROUNDS_MAX {
        for node in nodes.iter_mut() {
            assert!(node.look(written) <= 2);
        }
        let desired = desired(candidates);
        let is_served = |partition: Partition| {
            nodes.iter().any(|node| node.address == desired[&partition] && node.held.contains_key(&partition))
        };
        let held = nodes.iter().map(|node| node.held.len()).sum::<usize>();
        if held == partitions().count() && partitions().all(is_served) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the nodes do not come to rest");
}

#[test]
fn three_nodes_divide_a_database() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let mut written = 0;
    let mut nodes: Vec<_> = NODES.iter().map(|address| Node::start(&database, address)).collect();
    settle(&mut nodes, &NODES, &mut written);
    // The last one dies.
    drop(nodes.pop());
    settle(&mut nodes, &NODES[..2], &mut written);
    let of_two: Vec<_> = nodes[0].held.keys().copied().collect();
    // The first one leaves, and comes again under the same address.
    nodes[0].store.leave().unwrap();
    settle(&mut nodes, &NODES[1..2], &mut written);
    nodes[0] = Node::start(&database, NODES[0]);
    settle(&mut nodes, &NODES[..2], &mut written);
    assert!(nodes[0].held.keys().eq(&of_two), "it gets its own back");
    let store: Arc<dyn Store> = nodes[0].store.clone();
    let blocks = partitions().flat_map(|partition| {
        let part = Part::reading(Arc::clone(&store), partition);
        part.blocks(Sequence::FIRST).map(Result::unwrap).collect::<Vec<_>>()
    });
    assert_eq!(blocks.count() as u64, written, "each partition is one chain of all that its owners wrote");
}
