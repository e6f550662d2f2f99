//! The database fails, with a synchronous standby: servers are killed, paused and promoted. Each
//! happens to processes of which one serves, and to three nodes that all serve.

use super::nodes::{MERCHANTS_OF_NODES, NODES};
use super::*;
use crate::nodes::Nodes;

/// A primary with a synchronous standby.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    /// The standby of the standby, once it was promoted.
    third: Option<PostgresServer>,
    database: String,
}

impl Pair {
    fn start() -> Option<Self> {
        let primary = PostgresServer::start(&programs()?, &[]);
        let standby = primary.standby("second");
        primary.set(&["synchronous_standby_names = 'second'"]);
        primary.reload();
        let database = primary.database().rsplit('/').next().unwrap().to_owned();
        Some(Self { primary, standby, third: None, database })
    }

    fn address(&self) -> String {
        let (primary, standby) = (self.primary.port(), self.standby.port());
        format!("postgres://centavo@127.0.0.1:{primary},127.0.0.1:{standby}/{}", self.database)
    }

    /// Makes the standby a primary, with a standby of its own.
    fn promote(&mut self) {
        self.standby.set(&["synchronous_standby_names = '*'", "synchronous_commit = local"]);
        self.standby.reload();
        self.standby.promote();
        self.third = Some(self.standby.standby("third"));
    }

    fn pause(server: &PostgresServer) {
        // The second time for a process that was just being made.
        server.signal_all("STOP");
        server.signal_all("STOP");
    }
}

/// Who serves over a pair.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// One process at a time; another one waits for its end.
    One,
    ThreeNodes,
}

/// Processes over a pair, and what clients know of them.
struct Processes<'a> {
    addresses: Addresses,
    running: Running<'a>,
}

enum Running<'a> {
    One(Successors<'a>),
    Nodes(Nodes<'a>),
}

/// The process that serves, or did, and its successor.
struct Successors<'a> {
    folder: &'a Path,
    address: &'a str,
    serving: Option<Server>,
    waiting: Option<tokio::task::JoinHandle<Server>>,
}

impl<'a> Successors<'a> {
    fn process(&self, addresses: &Addresses) -> tokio::task::JoinHandle<Server> {
        let (folder, address, addresses) = (self.folder.to_owned(), self.address.to_owned(), addresses.clone());
        tokio::spawn(async move {
            let launch = on(&folder, &address).with("CENTAVO_POSTGRES_STANDBY", "on").with_patience(WAIT_MAX);
            let server = Server::start(&launch).await.unwrap();
            addresses.add(&server);
            server
        })
    }

    /// Starts both, of which the first one serves.
    async fn start(&mut self, addresses: &Addresses) {
        self.serving = Some(self.process(addresses).await.unwrap());
        self.waiting = Some(self.process(addresses));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// Waits until one of the two serves. The other one has ended, or waits.
    async fn serve(&mut self, addresses: &Addresses) {
        // Until then the first one may answer from before.
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS)).await;
        if self.serving.is_none() && self.waiting.is_none() {
            return self.start(addresses).await;
        }
        let deadline = Instant::now() + 2 * PATIENCE;
        loop {
            if let Some(waiting) = self.waiting.take_if(|waiting| waiting.is_finished()) {
                self.serving.iter().for_each(|former| addresses.remove(former));
                self.serving = Some(waiting.await.unwrap());
                return;
            }
            if let Some(serving) = &self.serving {
                let ready = client().get(format!("{}/readyz", serving.operations)).send().await;
                if ready.is_ok_and(|answer| answer.status() == 200) {
                    return;
                }
            }
            let said = || self.serving.as_ref().map(Server::said);
            assert!(Instant::now() < deadline, "nobody serves: {:?}", said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl<'a> Processes<'a> {
    async fn start(who: Who, folder: &'a Path, address: &'a str) -> Self {
        let addresses = Addresses::default();
        let running = match who {
            Who::One => {
                let mut successors = Successors { folder, address, serving: None, waiting: None };
                successors.start(&addresses).await;
                Running::One(successors)
            }
            Who::ThreeNodes => {
                let mut nodes = Nodes::of(folder, address, NODES);
                nodes.places.iter_mut().for_each(|place| {
                    place.environment.push(("CENTAVO_POSTGRES_STANDBY", "on".to_owned()));
                });
                let nodes = nodes.started().await;
                nodes.running().into_iter().for_each(|node| addresses.add(node));
                Running::Nodes(nodes)
            }
        };
        Self { addresses, running }
    }

    /// Those that clients may ask.
    fn serving(&self) -> Vec<&Server> {
        match &self.running {
            Running::One(successors) => successors.serving.iter().collect(),
            Running::Nodes(nodes) => nodes.running(),
        }
    }

    /// Merchants of a history.
    fn merchants(&self) -> usize {
        match self.running {
            Running::One(_) => MERCHANTS,
            Running::Nodes(_) => MERCHANTS_OF_NODES,
        }
    }

    /// Kills those that serve, at most so many of them.
    fn kill(&mut self, most: usize) {
        let places = match &mut self.running {
            Running::One(successors) => std::slice::from_mut(&mut successors.serving),
            Running::Nodes(nodes) => &mut nodes.servers[..],
        };
        for killed in places.iter_mut().take(most).filter_map(Option::take) {
            killed.kill();
            killed.wait();
            self.addresses.remove(&killed);
        }
    }

    /// Waits until all merchants are served. Nodes that were killed, or ended since another one
    /// took their partitions, start again.
    async fn serve(&mut self) {
        match &mut self.running {
            Running::One(successors) => successors.serve(&self.addresses).await,
            Running::Nodes(nodes) => {
                // Until then those that will end may answer from before.
                tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS)).await;
                start_again(nodes, &self.addresses).await;
            }
        }
    }

    async fn stop(self) {
        match self.running {
            Running::One(Successors { serving, waiting, .. }) => {
                serving.into_iter().for_each(|server| server.stop().unwrap());
                if let Some(waiting) = waiting {
                    // It is its turn.
                    waiting.await.unwrap().stop().unwrap();
                }
            }
            Running::Nodes(nodes) => nodes.end(),
        }
    }
}

/// Starts nodes again that have ended, until all partitions are served.
async fn start_again(nodes: &mut Nodes<'_>, addresses: &Addresses) {
    let begun = Instant::now();
    loop {
        for place in 0..nodes.servers.len() {
            let ended = nodes.servers[place].as_ref().map(|node| node.ended_within(Duration::ZERO));
            match ended {
                Some(None) => continue,
                Some(Some(ended)) => {
                    assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
                    addresses.remove(nodes.node(place));
                }
                None => {}
            }
            nodes.restart(place).await;
            addresses.add(nodes.node(place));
        }
        tokio::select! {
            _ = nodes.settled() => return,
            () = any_has_ended(nodes) => {}
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "nodes end again and again");
    }
}

async fn any_has_ended(nodes: &Nodes<'_>) {
    while nodes.running().iter().all(|node| node.ended_within(Duration::ZERO).is_none()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs clients while something happens to the databases, and judges the history. The address is
/// that of the database in which the books must be whole at the end.
async fn is_linearizable(
    name: &str,
    who: Who,
    happens: impl AsyncFnOnce(&mut Pair, &Recorder, &mut Processes<'_>),
    address: impl Fn(&Pair) -> String,
) {
    let _turn = TURNS.acquire().await;
    let Some(mut pair) = Pair::start() else { return };
    let (folder, both) = (tempfile::tempdir().unwrap(), pair.address());
    let mut processes = Processes::start(who, folder.path(), &both).await;
    let recorder = Recorder::open_at(&processes.serving(), &processes.addresses, processes.merchants()).await.unwrap();
    let during = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        happens(&mut pair, &recorder, &mut processes).await;
        recorder.must_go_on().await;
    };
    recorder.during(WRITERS, READERS, during).await;
    let name = format!("{name}-{who:?}");
    let server = *processes.serving().last().unwrap();
    let judged = recorder.settle_and_judge(server, &name).await;
    let judged = judged.unwrap_or_else(|faults| panic!("{name}: {faults}"));
    assert!(samples_are_accepted(&recorder.history()), "the second judge finds what the first one does not");
    must_balance(server).await.unwrap();
    processes.stop().await;
    assert_eq!(captures(folder.path()), recorder.sales(), "what the acquirer captured is what was sold");
    must_verify(&address(&pair));
    println!("{name}: {judged}; first answers after {:?}", recorder.first_answers());
}

/// Some of those that serve die with it.
async fn primary_dies(who: Who, killed: usize) {
    let dies = async |pair: &mut Pair, recorder: &Recorder, processes: &mut Processes<'_>| {
        tokio::task::block_in_place(|| {
            pair.primary.crash();
            processes.kill(killed);
            recorder.mark();
            pair.promote();
        });
        processes.serve().await;
    };
    is_linearizable(&format!("primary-dies-with-{killed}"), who, dies, Pair::address).await;
}

/// The former primary takes writes again, which no standby of it confirms.
async fn primary_is_paused_and_replaced(who: Who) {
    let is_replaced = async |pair: &mut Pair, recorder: &Recorder, processes: &mut Processes<'_>| {
        tokio::task::block_in_place(|| {
            Pair::pause(&pair.primary);
            recorder.mark();
            pair.promote();
        });
        processes.serve().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        recorder.mark();
        pair.primary.signal_all("CONT");
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS)).await;
    };
    let address = |pair: &Pair| pair.standby.address_of(&pair.database);
    is_linearizable("primary-replaced", who, is_replaced, address).await;
}

/// A primary that restarts shows blocks that no standby has. Answers of the processes in between
/// must be in the standby all the same.
async fn primary_forgets(who: Who) {
    let restarts = |pair: &Pair| {
        Pair::pause(&pair.standby);
        std::thread::sleep(Duration::from_millis(700));
        pair.primary.crash();
        pair.primary.go_on();
    };
    standby_lacks(who, "primary-forgets", restarts, |standby| standby.signal_all("CONT")).await;
}

/// A commit that waits for the standby is cancelled, and answered as done, with a warning.
async fn commits_are_cancelled(who: Who) {
    let cancels = |pair: &Pair| {
        pair.standby.crash();
        let (mut cancelled, begun) = (0, Instant::now());
        while begun.elapsed() < Duration::from_secs(1) || (cancelled == 0 && begun.elapsed() < PATIENCE) {
            let waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
            cancelled += pair.primary.run_in(&pair.database, waiting).matches('t').count();
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(cancelled > 0, "nothing waited for the standby");
    };
    standby_lacks(who, "commits-cancelled", cancels, PostgresServer::go_on).await;
}

/// The standby is away, the primary has blocks that it lacks and dies, the standby comes back and
/// is promoted.
async fn standby_lacks(who: Who, name: &str, blocks: fn(&Pair), comes_back: fn(&PostgresServer)) {
    let forgets = async |pair: &mut Pair, recorder: &Recorder, processes: &mut Processes<'_>| {
        tokio::task::block_in_place(|| blocks(pair));
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS + 1)).await;
        tokio::task::block_in_place(|| {
            pair.primary.crash();
            recorder.mark();
            comes_back(&pair.standby);
            pair.promote();
        });
        processes.serve().await;
    };
    is_linearizable(name, who, forgets, Pair::address).await;
}

async fn everything_restarts(who: Who) {
    let restarts = async |pair: &mut Pair, recorder: &Recorder, processes: &mut Processes<'_>| {
        for _ in 0..2 {
            tokio::task::block_in_place(|| {
                pair.primary.crash();
                pair.standby.crash();
                processes.kill(usize::MAX);
                recorder.mark();
                pair.primary.go_on();
                pair.standby.go_on();
            });
            processes.serve().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    is_linearizable("all-restart", who, restarts, Pair::address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_dies_is_linearizable() {
    primary_dies(Who::One, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_dies_with_the_process_that_serves_is_linearizable() {
    primary_dies(Who::One, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_is_paused_and_replaced_is_linearizable() {
    primary_is_paused_and_replaced(Who::One).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_forgets_is_linearizable() {
    primary_forgets(Who::One).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_commits_that_were_cancelled_and_forgotten_is_linearizable() {
    commits_are_cancelled(Who::One).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_restart_of_everything_is_linearizable() {
    everything_restarts(Who::One).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_a_primary_that_dies_is_linearizable() {
    primary_dies(Who::ThreeNodes, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_a_primary_that_dies_with_one_of_them_is_linearizable() {
    primary_dies(Who::ThreeNodes, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_a_primary_that_is_paused_and_replaced_is_linearizable() {
    primary_is_paused_and_replaced(Who::ThreeNodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_a_primary_that_forgets_is_linearizable() {
    primary_forgets(Who::ThreeNodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_commits_that_were_cancelled_and_forgotten_is_linearizable() {
    commits_are_cancelled(Who::ThreeNodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_of_nodes_over_a_restart_of_everything_is_linearizable() {
    everything_restarts(Who::ThreeNodes).await;
}
