//! The database fails under two processes: killed, paused and promoted servers, with a synchronous
//! standby.

use super::*;

/// A primary with a synchronous standby, and two processes of which one waits.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    /// The standby of the standby, once it was promoted.
    third: Option<PostgresServer>,
    data: tempfile::TempDir,
    database: String,
    addresses: Addresses,
}

/// The process that serves, or did, and the one that waits.
struct Processes {
    first: Server,
    second: tokio::task::JoinHandle<Server>,
}

impl Pair {
    fn start() -> Option<Self> {
        let primary = PostgresServer::start(&programs()?, &[]);
        let standby = primary.standby("second");
        primary.set(&["synchronous_standby_names = 'second'"]);
        primary.reload();
        let database = primary.database().rsplit('/').next().unwrap().to_owned();
        let (data, addresses) = (tempfile::tempdir().unwrap(), Addresses::default());
        Some(Self { primary, standby, third: None, data, database, addresses })
    }

    /// Starts two processes, of which the first one serves.
    async fn processes(&self) -> Processes {
        let first = Self::process(self.data.path(), &self.address(), &self.addresses).await;
        let (data, address, addresses) = (self.data.path().to_owned(), self.address(), self.addresses.clone());
        let second = tokio::spawn(async move { Self::process(&data, &address, &addresses).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        Processes { first, second }
    }

    async fn process(data: &Path, address: &str, addresses: &Addresses) -> Server {
        let launch = on(data, address).with("CENTAVO_POSTGRES_STANDBY", "on").with_patience(WAIT_MAX);
        let server = Server::start(&launch).await.unwrap();
        addresses.add(&server);
        server
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

/// The process that serves in the end, and the one that waits, if there still is one.
struct Serving {
    server: Server,
    waiting: Option<tokio::task::JoinHandle<Server>>,
}

impl Processes {
    /// Waits until one of the two serves. The other one has ended, or waits.
    async fn serving(self, addresses: &Addresses) -> Serving {
        // Until then the first one may answer from before.
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS)).await;
        let deadline = Instant::now() + 2 * PATIENCE;
        loop {
            if self.second.is_finished() {
                addresses.remove(&self.first);
                return Serving { server: self.second.await.unwrap(), waiting: None };
            }
            let ready = client().get(format!("{}/readyz", self.first.operations)).send().await;
            if ready.is_ok_and(|answer| answer.status() == 200) {
                return Serving { server: self.first, waiting: Some(self.second) };
            }
            assert!(Instant::now() < deadline, "nobody serves: {}", self.first.said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Runs clients while something happens to the databases, and judges the history. The address is
/// that of the database in which the books must be whole at the end.
async fn is_linearizable(
    name: &str,
    mut pair: Pair,
    happens: impl AsyncFnOnce(&mut Pair, &Recorder, Processes) -> Serving,
    address: impl Fn(&Pair) -> String,
) {
    let _turn = TURN.lock().await;
    let processes = pair.processes().await;
    let recorder = Recorder::open(&processes.first, &pair.addresses, MERCHANTS).await.unwrap();
    let during = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let serving = happens(&mut pair, &recorder, processes).await;
        recorder.must_go_on().await;
        serving
    };
    let Serving { server, waiting } = recorder.during(WRITERS, READERS, during).await;
    let judged = recorder.settle_and_judge(&server, name).await;
    let judged = judged.unwrap_or_else(|faults| panic!("{name}: {faults}"));
    assert!(samples_are_accepted(&recorder.history()), "the second judge finds what the first one does not");
    must_balance(&server).await.unwrap();
    server.stop().unwrap();
    if let Some(waiting) = waiting {
        // It is its turn.
        waiting.await.unwrap().stop().unwrap();
    }
    assert_eq!(captures(pair.data.path()), recorder.sales(), "what the acquirer captured is what was sold");
    must_verify(&address(&pair));
    println!("{name}: {judged}; first answers after {:?}", recorder.first_answers());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_dies_is_linearizable() {
    let Some(pair) = Pair::start() else { return };
    let dies = async |pair: &mut Pair, recorder: &Recorder, processes: Processes| {
        tokio::task::block_in_place(|| {
            pair.primary.crash();
            recorder.mark();
            pair.promote();
        });
        processes.serving(&pair.addresses).await
    };
    is_linearizable("primary-dies", pair, dies, Pair::address).await;
}

/// The former primary takes writes again, which no standby of it confirms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_is_paused_and_replaced_is_linearizable() {
    let Some(pair) = Pair::start() else { return };
    let is_replaced = async |pair: &mut Pair, recorder: &Recorder, processes: Processes| {
        tokio::task::block_in_place(|| {
            Pair::pause(&pair.primary);
            recorder.mark();
            pair.promote();
        });
        let serving = processes.serving(&pair.addresses).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        recorder.mark();
        pair.primary.signal_all("CONT");
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS)).await;
        serving
    };
    let address = |pair: &Pair| pair.standby.address_of(&pair.database);
    is_linearizable("primary-replaced", pair, is_replaced, address).await;
}

/// A primary that restarts shows blocks that no standby has. What the processes told meanwhile must
/// be in the standby all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_primary_that_forgets_is_linearizable() {
    let Some(pair) = Pair::start() else { return };
    let forgets = async |pair: &mut Pair, recorder: &Recorder, processes: Processes| {
        Pair::pause(&pair.standby);
        tokio::time::sleep(Duration::from_millis(700)).await;
        tokio::task::block_in_place(|| {
            pair.primary.crash();
            pair.primary.go_on();
        });
        tokio::time::sleep(Duration::from_secs(TAKEOVER_SECONDS + 1)).await;
        tokio::task::block_in_place(|| {
            pair.primary.crash();
            recorder.mark();
            pair.standby.signal_all("CONT");
            pair.promote();
        });
        processes.serving(&pair.addresses).await
    };
    is_linearizable("primary-forgets", pair, forgets, Pair::address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_over_a_restart_of_everything_is_linearizable() {
    let Some(pair) = Pair::start() else { return };
    let restarts = async |pair: &mut Pair, recorder: &Recorder, processes: Processes| {
        let restart = |server: &Server| {
            pair.primary.crash();
            pair.standby.crash();
            server.kill();
            server.wait();
            recorder.mark();
            pair.addresses.remove(server);
            pair.primary.go_on();
            pair.standby.go_on();
        };
        tokio::task::block_in_place(|| restart(&processes.first));
        let second = processes.second.await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::task::block_in_place(|| restart(&second));
        pair.processes().await.serving(&pair.addresses).await
    };
    is_linearizable("all-restart", pair, restarts, Pair::address).await;
}
