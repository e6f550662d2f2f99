//! Faults of real processes and databases while clients charge and read, each judged by the checker
//! of histories: killed, paused and cut off processes here, databases in [databases].
//!
//! `CENTAVO_TAKEOVERS` is the number of faults, `CENTAVO_TAKEOVER_SECONDS` the takeover time,
//! `CENTAVO_TAKEOVER_SEED` decides about the moments.

mod databases;
mod nodes;

use store::testkit::postgres::VARIABLE;

use super::*;
use crate::history::recorder::{Addresses, Recorder, captures, must_balance};
use crate::history::second_judge::samples_are_accepted;
use crate::proxy::{Proxy, Traffic};

/// Clients that charge, and clients that read.
const WRITERS: usize = 5;
const READERS: usize = 4;
const MERCHANTS: usize = 3;

/// How long a process may wait for the end of another one.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// These tests are loads that wait most of the time: two run at once.
static TURNS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(2);

/// The folder of PostgreSQL's programs, where the long histories are asked for
/// (`CENTAVO_POSTGRES=required`): together they take half an hour.
fn programs() -> Option<PathBuf> {
    if std::env::var(VARIABLE).as_deref() != Ok("required") {
        println!("NOT RUN: histories over faults take long; {VARIABLE}=required runs them");
        return None;
    }
    store::testkit::postgres::programs()
}

/// What happens to the process that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    /// SIGSTOP past the takeover time, then SIGCONT.
    Paused,
    /// From its database, in these ways.
    Separated(Traffic),
    /// Its way to the database is disturbed for a moment, without a takeover.
    Disturbed(Traffic),
    /// It ends in good order, on SIGTERM.
    HandsOver,
}

const FAULTS: [Fault; 8] = [
    Fault::Killed,
    Fault::Paused,
    Fault::Disturbed(Traffic::LosesAnswers),
    Fault::Separated(Traffic::LosesAnswers),
    Fault::HandsOver,
    Fault::Separated(Traffic::IsHeld),
    Fault::Disturbed(Traffic::Waits(Duration::from_millis(30))),
    Fault::Separated(Traffic::IsCut),
];

/// Processes over one database, of which one serves.
struct Cluster {
    data: tempfile::TempDir,
    /// Address and port of the database.
    address: String,
    port: u16,
    takeover_seconds: u64,
    addresses: Addresses,
}

/// A process, and its way to the database.
struct Node {
    server: Server,
    proxy: Proxy,
}

impl Cluster {
    fn on(database: &PostgresServer, takeover_seconds: u64) -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            address: database.database(),
            port: database.port(),
            takeover_seconds,
            addresses: Addresses::default(),
        }
    }

    /// Starts a process, which serves when the one before it has ended.
    async fn start(&self) -> tokio::task::JoinHandle<Node> {
        let proxy = Proxy::before(self.port).await;
        let address = self.address.replace(&format!(":{}/", self.port), &format!(":{}/", proxy.port()));
        let (data, seconds) = (self.data.path().to_owned(), self.takeover_seconds);
        let addresses = self.addresses.clone();
        tokio::spawn(async move {
            let launch = on(&data, &address).with("CENTAVO_POSTGRES_TAKEOVER_SECONDS", seconds.to_string());
            let launch = launch.with_patience(WAIT_MAX);
            let server = Server::start(&launch).await.unwrap();
            addresses.add(&server);
            Node { server, proxy }
        })
    }

    /// End of a process that lost its partition or got a signal.
    fn must_end(&self, node: &Node, code: i32) {
        let ended = node.server.ended_within(PATIENCE).expect("a process that was replaced ends");
        assert_eq!(ended.status.unwrap().code(), Some(code), "{}", ended.said);
        self.addresses.remove(&node.server);
    }
}

/// Does something to the process that serves, until another one serves or it does again. Gives the
/// one that serves.
async fn happens(fault: Fault, cluster: &Cluster, recorder: &Recorder, node: Node, life: Duration) -> Node {
    if let Fault::Disturbed(traffic) = fault {
        tokio::time::sleep(life).await;
        recorder.mark();
        node.proxy.let_traffic(traffic);
        tokio::time::sleep(Duration::from_millis(300)).await;
        node.proxy.let_traffic(Traffic::Passes);
        recorder.must_go_on().await;
        return node;
    }
    let next = cluster.start().await;
    // The next one looks at the signs of life from now on.
    tokio::time::sleep(Duration::from_millis(500) + life).await;
    recorder.mark();
    match fault {
        Fault::Killed => {
            node.server.kill();
            node.server.wait();
            cluster.addresses.remove(&node.server);
        }
        Fault::HandsOver => node.server.terminate(),
        Fault::Paused => stop_between_turns(node.server.id(), cluster.data.path()).await,
        Fault::Separated(traffic) => node.proxy.let_traffic(traffic),
        Fault::Disturbed(_) => {}
    }
    let successor = next.await.unwrap();
    // What the former one answers from now on is out of date.
    recorder.must_go_on().await;
    match fault {
        Fault::Paused => signal(node.server.id(), "CONT"),
        Fault::Separated(_) => node.proxy.let_traffic(Traffic::Passes),
        Fault::HandsOver => cluster.must_end(&node, 0),
        Fault::Killed | Fault::Disturbed(_) => {}
    }
    if matches!(fault, Fault::Paused | Fault::Separated(_)) {
        tokio::task::block_in_place(|| cluster.must_end(&node, 75));
    }
    recorder.must_go_on().await;
    successor
}

/// Takeovers, one after the other. The history of each is judged by itself; at the end all sales of
/// all of them are compared with the captures of the acquirer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_over_takeovers_are_linearizable() {
    let Some(database) = programs().and_then(|_| shared()) else { return };
    let _turn = TURNS.acquire().await;
    let cluster = Cluster::on(&database, testkit::setting("CENTAVO_TAKEOVER_SECONDS").unwrap_or(2));
    let rounds = testkit::setting("CENTAVO_TAKEOVERS").unwrap_or(FAULTS.len() as u64);
    let mut chance = Chance(testkit::setting("CENTAVO_TAKEOVER_SEED").unwrap_or(1));
    let mut node = cluster.start().await.await.unwrap();
    let (mut sales, mut gaps) = (std::collections::BTreeMap::new(), Gaps::default());
    for round in 0..rounds {
        let fault = FAULTS[(round % FAULTS.len() as u64) as usize];
        let recorder = Recorder::open(&node.server, &cluster.addresses, MERCHANTS).await.unwrap();
        let life = Duration::from_millis(chance.below(900));
        node = recorder.during(WRITERS, READERS, happens(fault, &cluster, &recorder, node, life)).await;
        let judged = recorder.settle_and_judge(&node.server, &format!("takeover-{round}")).await;
        let judged = judged.unwrap_or_else(|faults| panic!("{fault:?}, round {round}: {faults}"));
        assert!(samples_are_accepted(&recorder.history()), "the second judge finds what the first one does not");
        println!("{round} {fault:?}: {judged}");
        gaps.note(fault, recorder.first_answers());
        sales.extend(recorder.sales());
    }
    must_balance(&node.server).await.unwrap();
    node.server.stop().unwrap();
    assert_eq!(captures(cluster.data.path()), sales, "what the acquirer captured is what was sold");
    must_verify(&cluster.address);
    println!(
        "{rounds} rounds at {} s, {} sales; time to the first answer:\n{gaps}",
        cluster.takeover_seconds,
        sales.len()
    );
}

/// Times to the first answer, by what happened.
#[derive(Default)]
struct Gaps(std::collections::BTreeMap<String, Vec<Duration>>);

impl Gaps {
    fn note(&mut self, fault: impl std::fmt::Debug, gaps: Vec<Duration>) {
        self.0.entry(format!("{fault:?}")).or_default().extend(gaps);
    }
}

impl std::fmt::Display for Gaps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (fault, gaps) in &self.0 {
            let mut gaps = gaps.clone();
            gaps.sort();
            let at = |percent: usize| {
                let place = (gaps.len() * percent / 100).min(gaps.len().saturating_sub(1));
                gaps.get(place).copied().unwrap_or_default().as_secs_f32()
            };
            writeln!(formatter, "  {fault}: {} times, median {:.2} s, p99 {:.2} s", gaps.len(), at(50), at(99))?;
        }
        Ok(())
    }
}
