//! Faults of three nodes that all serve: each is killed, paused, cut off from the database or from
//! the other nodes while clients ask any of them, and operators read what is about all merchants.

use super::*;
use crate::nodes::{Nodes, cluster};

pub(super) const NODES: usize = 3;
pub(super) const MERCHANTS_OF_NODES: usize = 8;

/// How long the ways between nodes are disturbed: longer than clients wait at a door.
const DISTURBED: Duration = Duration::from_millis(1_500);

/// What happens to one of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeFault {
    /// SIGKILL, and it starts again.
    Killed,
    /// SIGSTOP past the takeover time, then SIGCONT.
    Paused,
    /// It hands over on SIGTERM, and starts again.
    EndsAndStarts,
    /// From the database, past the takeover time.
    Separated(Traffic),
    /// Its way to the database is disturbed for a moment.
    Disturbed(Traffic),
    /// The way of the other nodes to it is disturbed.
    HardToReach(Traffic),
    /// The database is killed, and comes back.
    DatabaseRestarts,
}

/// Faults of a run without `CENTAVO_TAKEOVERS`: the first ones.
const ROUNDS: u64 = 4;

const FAULTS_OF_NODES: [NodeFault; 13] = [
    NodeFault::Separated(Traffic::LosesAnswers),
    NodeFault::HardToReach(Traffic::LosesAnswers),
    NodeFault::Paused,
    NodeFault::EndsAndStarts,
    NodeFault::Killed,
    NodeFault::HardToReach(Traffic::IsCut),
    NodeFault::DatabaseRestarts,
    NodeFault::Separated(Traffic::IsCut),
    NodeFault::HardToReach(Traffic::IsHeld),
    NodeFault::Disturbed(Traffic::LosesAnswers),
    NodeFault::Separated(Traffic::IsHeld),
    NodeFault::HardToReach(Traffic::Waits(Duration::from_millis(50))),
    NodeFault::Disturbed(Traffic::Waits(Duration::from_millis(30))),
];

/// The ways to a node, and its way to the database.
struct Ways {
    to_database: Proxy,
    from_peers: Proxy,
}

/// Three nodes, and what clients know of them.
struct Over<'a> {
    nodes: Nodes<'a>,
    ways: Vec<Ways>,
    database: &'a PostgresServer,
    addresses: Addresses,
}

impl<'a> Over<'a> {
    async fn started(database: &'a PostgresServer, folder: &'a Path, address: &'a str, takeover_seconds: u64) -> Self {
        let mut nodes = Nodes::of(folder, address, NODES);
        nodes.takeover_seconds = takeover_seconds;
        let (mut ways, port) = (Vec::new(), database.port());
        for place in &mut nodes.places {
            let to_database = Proxy::before(port).await;
            let from_peers = Proxy::before(place.listen.rsplit(':').next().unwrap().parse().unwrap()).await;
            place.database = address.replace(&format!(":{port}/"), &format!(":{}/", to_database.port()));
            place.peer = format!("127.0.0.1:{}", from_peers.port());
            ways.push(Ways { to_database, from_peers });
        }
        let (nodes, addresses) = (nodes.started().await, Addresses::default());
        nodes.running().into_iter().for_each(|node| addresses.add(node));
        Self { nodes, ways, database, addresses }
    }

    /// The node that has a partition.
    async fn owner(&self, partition: u64) -> usize {
        let picture = cluster(self.nodes.node(0)).await.unwrap();
        let owner = &picture["partitions"][partition as usize]["owner"];
        let nodes = picture["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["node"] == *owner).unwrap_or_else(|| panic!("{picture}"));
        self.nodes.places.iter().position(|place| node["address"] == place.peer.as_str()).unwrap()
    }

    /// Starts the node again that has ended.
    async fn start_again(&mut self, victim: usize) {
        self.nodes.restart(victim).await;
        self.addresses.add(self.nodes.node(victim));
    }

    /// Others have its partitions, it goes on, and learns of it.
    async fn must_end(&mut self, recorder: &Recorder, victim: usize, goes_on: impl FnOnce(&Self, &Server)) {
        let replaced = self.nodes.servers[victim].take().unwrap();
        self.nodes.settled().await;
        recorder.must_go_on().await;
        goes_on(self, &replaced);
        let ended = tokio::task::block_in_place(|| replaced.ended_within(PATIENCE)).expect("a fenced node ends");
        assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
        self.addresses.remove(&replaced);
        self.start_again(victim).await;
    }

    async fn happens(&mut self, fault: NodeFault, victim: usize, recorder: &Recorder, life: Duration) {
        tokio::time::sleep(Duration::from_millis(500) + life).await;
        let node = self.nodes.node(victim);
        match fault {
            NodeFault::Killed => {
                node.kill();
                node.wait();
                self.addresses.remove(node);
                self.nodes.servers[victim] = None;
                self.nodes.settled().await;
                recorder.must_go_on().await;
                self.start_again(victim).await;
            }
            NodeFault::EndsAndStarts => {
                node.terminate();
                let ended = tokio::task::block_in_place(|| node.ended_within(PATIENCE)).expect("a node ends");
                assert_eq!(ended.status.unwrap().code(), Some(0), "{}", ended.said);
                self.addresses.remove(node);
                self.nodes.servers[victim] = None;
                recorder.must_go_on().await;
                self.start_again(victim).await;
            }
            NodeFault::Paused => {
                stop_between_turns(node.id(), self.nodes.folder).await;
                self.must_end(recorder, victim, |_, node| signal(node.id(), "CONT")).await;
            }
            NodeFault::Separated(traffic) => {
                self.ways[victim].to_database.let_traffic(traffic);
                let passes = |over: &Self, _: &Server| over.ways[victim].to_database.let_traffic(Traffic::Passes);
                self.must_end(recorder, victim, passes).await;
            }
            NodeFault::Disturbed(traffic) => {
                self.ways[victim].to_database.let_traffic(traffic);
                tokio::time::sleep(Duration::from_millis(300)).await;
                self.ways[victim].to_database.let_traffic(Traffic::Passes);
            }
            NodeFault::HardToReach(traffic) => {
                self.ways[victim].from_peers.let_traffic(traffic);
                tokio::time::sleep(DISTURBED).await;
                self.ways[victim].from_peers.let_traffic(Traffic::Passes);
            }
            NodeFault::DatabaseRestarts => tokio::task::block_in_place(|| {
                self.database.crash();
                self.database.go_on();
            }),
        }
        self.nodes.settled().await;
        recorder.must_go_on().await;
    }
}

/// One fault after the other, each with a history of its own. The fault hits the node of a merchant
/// without charges in between, the node of the house, or any node. The seed is the number of the
/// first fault, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_over_faults_of_nodes_are_linearizable() {
    let Some(programs) = programs() else { return };
    let _turn = TURNS.acquire().await;
    let database = PostgresServer::start(&programs, &[]);
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let takeover_seconds = testkit::setting("CENTAVO_TAKEOVER_SECONDS").unwrap_or(TAKEOVER_SECONDS);
    let rounds = testkit::setting("CENTAVO_TAKEOVERS").unwrap_or(ROUNDS);
    let seed = testkit::setting("CENTAVO_TAKEOVER_SEED").unwrap_or(1);
    let (mut chance, first) = (Chance(seed), seed.saturating_sub(1));
    let begun = Instant::now();
    let mut over = Over::started(&database, folder.path(), &address, takeover_seconds).await;
    let mut sales = std::collections::BTreeMap::new();
    for round in first as usize..(first + rounds) as usize {
        let fault = FAULTS_OF_NODES[round % FAULTS_OF_NODES.len()];
        let recorder = Recorder::open_at(&over.nodes.running(), &over.addresses, MERCHANTS_OF_NODES).await.unwrap();
        let quiet = recorder.partition_of_quiet(over.nodes.node(round % NODES)).await.unwrap();
        let victim = match round % 3 {
            0 => over.owner(quiet).await,
            1 => over.owner(0).await,
            _ => round % NODES,
        };
        over.addresses.put_first(over.nodes.node(victim));
        let life = Duration::from_millis(chance.below(900));
        recorder.during(WRITERS, READERS, over.happens(fault, victim, &recorder, life)).await;
        let node = over.nodes.node((round + 1) % NODES);
        let judged = recorder.settle_and_judge(node, &format!("nodes-{round}")).await;
        let judged = judged.unwrap_or_else(|faults| panic!("{fault:?}, round {round}, node {victim}: {faults}"));
        assert!(samples_are_accepted(&recorder.history()), "the second judge finds what the first one does not");
        println!("{round} {fault:?}: {judged}");
        sales.extend(recorder.sales());
    }
    must_balance(over.nodes.node(0)).await.unwrap();
    over.nodes.stop().await;
    assert_eq!(captures(folder.path()), sales, "what the acquirer captured is what was sold");
    println!("{rounds} rounds at {takeover_seconds} s in {:?}, {} sales", begun.elapsed(), sales.len());
}
