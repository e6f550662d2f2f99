//! Benchmark of several nodes over one PostgreSQL database, each a process of its own: what the way
//! over another node costs, how long it takes until the first answer after a node died, and what
//! clients see of nodes that end and start again. It prints figures and judges nothing.
//!
//! `cargo bench --bench nodes`; `-- --help` shows how to change the load.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use store::testkit::postgres::{PostgresServer, programs};
use tempfile::TempDir;
use testkit::callers::{client, operate};
use testkit::server::{Launch, OPS_TOKEN, Server};

const NODES: usize = 3;
const PARTITIONS: usize = 16;
/// Merchants that are opened until each node has one.
const MERCHANTS_MAX: usize = 100;
/// Turns at the node that has a merchant and at another one.
const TURNS: usize = 4;
/// Clients of a merchant while nodes die, or end and start again.
const CLIENTS: usize = 4;

const HELP: &str = "\
cargo bench --bench nodes -- [OPTIONS]

Three nodes and their PostgreSQL, which must be installed, on this machine.

  --takeover-seconds N  after which a node without signs of life is gone, 2 to 600 (10)
  --deaths N            how often a node is killed and started again (15)
  --rounds N            how often each node ends on SIGTERM and starts again (2)
  --seconds N           how long a turn of the first part takes (3)
";

/// What the command line asks for.
struct Options {
    takeover: Duration,
    deaths: usize,
    rounds: usize,
    turn: Duration,
}

impl Options {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        if arguments.iter().any(|argument| argument == "--help") {
            print!("{HELP}");
            std::process::exit(0);
        }
        let number = |name: &str, otherwise: u64| {
            let at = arguments.iter().position(|argument| argument == name);
            at.and_then(|at| arguments.get(at + 1)).map_or(otherwise, |number| number.parse().expect("a number"))
        };
        Self {
            takeover: Duration::from_secs(number("--takeover-seconds", 10)),
            deaths: number("--deaths", 15) as usize,
            rounds: number("--rounds", 2) as usize,
            turn: Duration::from_secs(number("--seconds", 3)),
        }
    }
}

#[tokio::main]
async fn main() {
    let options = Options::read();
    let Some(programs) = programs() else {
        eprintln!("PostgreSQL is missing: install Debian's package `postgresql`");
        std::process::exit(1);
    };
    let database = PostgresServer::start(&programs, &[]);
    let mut nodes = Nodes::start(database.database(), options.takeover).await;
    let merchants = nodes.merchants().await;
    println!(
        "{NODES} nodes, {PARTITIONS} partitions, takeover time {} s; 3 splits a charge\n",
        options.takeover.as_secs()
    );
    hop(&nodes, &merchants[0], options.turn).await;
    deaths(&mut nodes, &merchants, options.deaths).await;
    restarts(&mut nodes, &merchants, options.rounds).await;
}

/// The nodes, each at an address of its own that it keeps when it starts again.
struct Nodes {
    folder: TempDir,
    database: String,
    takeover: Duration,
    peers: Vec<String>,
    servers: Vec<Option<Server>>,
}

/// A merchant, and the place of the node that has it while all are there.
#[derive(Clone)]
struct Merchant {
    api_key: String,
    recipients: Vec<String>,
    home: usize,
}

impl Nodes {
    async fn start(database: String, takeover: Duration) -> Self {
        let peers = (0..NODES).map(|place| format!("127.0.0.1:{}", 29_500 + place)).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut nodes = Self { folder, database, takeover, peers, servers: (0..NODES).map(|_| None).collect() };
        for place in 0..NODES {
            nodes.restart(place).await;
        }
        nodes.settled().await;
        nodes
    }

    async fn restart(&mut self, place: usize) {
        let launch = Launch::as_shipped(self.folder.path())
            .with("CENTAVO_STORE", &self.database)
            .with("CENTAVO_MASTER_KEY", "0a".repeat(32))
            .with("CENTAVO_POSTGRES_TAKEOVER_SECONDS", self.takeover.as_secs().to_string())
            .with("CENTAVO_PEER_LISTEN", &self.peers[place])
            .with("CENTAVO_PARTITIONS", PARTITIONS.to_string());
        self.servers[place] = Some(Server::start(&launch).await.expect("a node that serves"));
    }

    fn node(&self, place: usize) -> &Server {
        self.servers[place].as_ref().expect("a node that runs")
    }

    /// Waits until each running node has partitions and each partition an owner, and nothing has
    /// moved for as long as nodes take to look at each other. Gives the place of each owner.
    async fn settled(&self) -> Vec<usize> {
        let running = self.servers.iter().flatten().count();
        let mut same: (Vec<usize>, Instant) = (Vec::new(), Instant::now());
        loop {
            let places = self.places().await.unwrap_or_default();
            if places != same.0 {
                same = (places, Instant::now());
            }
            let has_each = |place: &usize| same.0.contains(place);
            if (0..NODES).filter(has_each).count() == running && same.1.elapsed() > self.takeover / 2 {
                return same.0;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The place of the owner of each partition, as a running node sees it; none while one has no
    /// owner.
    async fn places(&self) -> Option<Vec<usize>> {
        let node = self.servers.iter().flatten().next()?;
        let url = format!("{}/ops/cluster", node.operations);
        let picture: Value = client().get(url).bearer_auth(OPS_TOKEN).send().await.ok()?.json().await.ok()?;
        let named: BTreeMap<&str, &str> = picture["nodes"].as_array()?.iter().filter_map(name_and_address).collect();
        let place = |partition: &Value| {
            let address = named.get(partition["owner"].as_str()?)?;
            self.peers.iter().position(|peer| peer == address)
        };
        picture["partitions"].as_array()?.iter().map(place).collect()
    }

    /// A merchant of each node.
    async fn merchants(&self) -> Vec<Merchant> {
        let places = self.settled().await;
        let mut of: BTreeMap<usize, Merchant> = BTreeMap::new();
        for number in 0..MERCHANTS_MAX {
            // Without a key, an account is opened where it is asked for.
            let merchant = open(self.node(number % NODES), &places).await;
            of.insert(merchant.home, merchant);
            if of.len() == NODES {
                return of.into_values().collect();
            }
        }
        panic!("a node has none of {MERCHANTS_MAX} merchants");
    }
}

fn name_and_address(node: &Value) -> Option<(&str, &str)> {
    Some((node["node"].as_str()?, node["address"].as_str()?))
}

/// Opens a merchant with three recipients, and looks where it is.
async fn open(node: &Server, places: &[usize]) -> Merchant {
    let client = client();
    let merchant =
        json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
    let merchant = operate(&client, node, "/ops/merchants", &merchant).await.expect("a merchant");
    let path = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().expect("an id"));
    let key = operate(&client, node, &path, &json!({})).await.expect("an API key");
    let api_key = key["api_key"].as_str().expect("an API key").to_owned();
    let mut recipients = Vec::new();
    for document in ["12345678909", "98765432100", "11144477735"] {
        let recipient = testkit::callers::recipient(document);
        let url = format!("{}/api/sub-recipients", node.public);
        let answer = client.post(url).bearer_auth(&api_key).json(&recipient).send().await.expect("an answer");
        let recipient: Value = answer.json().await.expect("a recipient");
        let id = recipient["id"].as_str().expect("an id").to_owned();
        let path = format!("/ops/sub-recipients/{id}/approve");
        operate(&client, node, &path, &json!({})).await.expect("an approval");
        recipients.push(id);
    }
    let mut merchant = Merchant { api_key, recipients, home: 0 };
    let answer = charge(&client, node, &merchant).await.expect("a charge");
    let partition = answer.headers().get("centavo-partition").map_or("0", |text| text.to_str().expect("digits"));
    merchant.home = places[partition.parse::<usize>().expect("a partition")];
    merchant
}

/// Asks a node for a card charge.
async fn charge(client: &Client, node: &Server, merchant: &Merchant) -> reqwest::Result<reqwest::Response> {
    let split = |id: &String| json!({"sub_recipient_id": id, "amount": 1_000});
    let splits: Vec<Value> = merchant.recipients.iter().map(split).collect();
    let body = json!({
        "amount": 10_000, "splits": splits,
        "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
        "card": {"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039", "cvv": "123"}
    });
    client.post(format!("{}/api/card", node.public)).bearer_auth(&merchant.api_key).json(&body).send().await
}

/// What clients saw.
#[derive(Default)]
struct ClientFigures {
    /// How long each charge took.
    took: Vec<Duration>,
    /// When the first one was made.
    first: Option<Instant>,
    /// Answers other than a charge, by status; 0 where there was no answer.
    failed: BTreeMap<u16, u64>,
}

impl ClientFigures {
    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.first = [self.first, other.first].into_iter().flatten().min();
        other.failed.into_iter().for_each(|(status, count)| *self.failed.entry(status).or_default() += count);
    }

    fn quantiles(&mut self) -> String {
        format!("{} charges, {}, failed: {:?}", self.took.len(), times(&mut self.took), self.failed)
    }
}

/// The median, the 99th percentile and the longest.
fn times(took: &mut [Duration]) -> String {
    took.sort_unstable();
    let ms = |part: f64| {
        let at = ((took.len() as f64 * part) as usize).min(took.len().saturating_sub(1));
        took.get(at).map_or(0.0, Duration::as_secs_f64) * 1_000.0
    };
    format!("p50 {:.2}, p99 {:.2}, longest {:.2} ms", ms(0.5), ms(0.99), ms(1.0))
}

/// One client that charges until it is ended.
async fn charges(
    client: &Client,
    node: &Server,
    merchant: &Merchant,
    ends: &AtomicBool,
    pause: Duration,
) -> ClientFigures {
    let mut seen = ClientFigures::default();
    while !ends.load(Ordering::Acquire) {
        let begun = Instant::now();
        match charge(client, node, merchant).await {
            Ok(answer) if answer.status() == StatusCode::CREATED => {
                let _ = answer.bytes().await;
                seen.took.push(begun.elapsed());
                seen.first.get_or_insert_with(Instant::now);
            }
            Ok(answer) => *seen.failed.entry(answer.status().as_u16()).or_default() += 1,
            Err(_) => *seen.failed.entry(0).or_default() += 1,
        }
        tokio::time::sleep(pause).await;
    }
    seen
}

/// Clients that charge while something happens.
async fn during<T>(
    (node, merchant): (&Server, &Merchant),
    (clients, pause): (usize, Duration),
    event: impl Future<Output = T>,
) -> (ClientFigures, T) {
    let (client, ends) = (client(), Arc::new(AtomicBool::new(false)));
    let clients = (0..clients).map(|_| charges(&client, node, merchant, &ends, pause));
    let ended = async {
        let happened = event.await;
        ends.store(true, Ordering::Release);
        happened
    };
    let (all, happened) = tokio::join!(futures_util::future::join_all(clients), ended);
    let mut seen = ClientFigures::default();
    all.into_iter().for_each(|one| seen.add(one));
    (seen, happened)
}

/// The same charges at the node that has the merchant, and at another one, in turns.
async fn hop(nodes: &Nodes, merchant: &Merchant, turn: Duration) {
    println!("Charges at the node that has the merchant, and at another one: CPU of the nodes, µs a charge");
    let (home, other) = (merchant.home, (merchant.home + 1) % NODES);
    for clients in [1, 32] {
        let mut all: [(ClientFigures, [Duration; 2]); 2] = Default::default();
        for at in (0..TURNS).flat_map(|turn| if turn % 2 == 0 { [0, 1] } else { [1, 0] }) {
            let node = nodes.node([home, other][at]);
            let before = [home, other].map(|place| cpu_of(nodes.node(place).id()));
            let load = (clients, Duration::ZERO);
            let (seen, ()) = during((node, merchant), load, tokio::time::sleep(turn)).await;
            all[at].0.add(seen);
            for (index, place) in [home, other].into_iter().enumerate() {
                all[at].1[index] += cpu_of(nodes.node(place).id()) - before[index];
            }
        }
        for ((mut seen, cpu), at) in all.into_iter().zip(["that has it", "another"]) {
            let count = seen.took.len().max(1) as f64;
            let [home, other] = cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / count);
            let rate = count / (turn.as_secs_f64() * TURNS as f64);
            println!("  {clients} clients, node {at}: {rate:.0}/s, {}", seen.quantiles());
            println!("    CPU of the node that has it {home:.0}, of the other {other:.0}");
        }
    }
    println!();
}

/// Nodes are killed in turn, and start again.
async fn deaths(nodes: &mut Nodes, merchants: &[Merchant], deaths: usize) {
    println!("A node is killed: from then until the first charge of a merchant that it had, asked from another node");
    let pause = Duration::from_millis(20);
    let (mut gaps, mut others) = (Vec::new(), ClientFigures::default());
    for death in 0..deaths {
        let (killed, other, third) = (death % NODES, (death + 1) % NODES, (death + 2) % NODES);
        tokio::time::sleep(Duration::from_millis(death as u64 * 137 % 2_000)).await;
        let begun = Instant::now();
        nodes.node(killed).kill();
        let patience = nodes.takeover * 3;
        let (seen, (of_others, ())) = during(
            (nodes.node(other), &merchants[killed]),
            (CLIENTS, pause),
            during((nodes.node(third), &merchants[third]), (1, pause), tokio::time::sleep(patience)),
        )
        .await;
        nodes.node(killed).wait();
        gaps.push(seen.first.map_or(patience, |first| first - begun));
        others.add(of_others);
        nodes.restart(killed).await;
        nodes.settled().await;
    }
    println!("  {} deaths: {}", gaps.len(), times(&mut gaps));
    println!("  meanwhile at a node that lives, for a merchant of its own: {}\n", others.quantiles());
}

/// Nodes end on SIGTERM and start again, one after the other.
async fn restarts(nodes: &mut Nodes, merchants: &[Merchant], rounds: usize) {
    println!("Nodes end on SIGTERM and start again in turn, while clients charge at the next node");
    let (mut seen, mut quiet) = (ClientFigures::default(), ClientFigures::default());
    let (mut ended, mut back) = (Vec::new(), Vec::new());
    for place in (0..rounds).flat_map(|_| 0..NODES) {
        let other = (place + 1) % NODES;
        let (before, ()) = during(
            (nodes.node(other), &merchants[place]),
            (CLIENTS, Duration::ZERO),
            tokio::time::sleep(nodes.takeover / 4),
        )
        .await;
        quiet.add(before);
        let ending = nodes.servers[place].take().expect("a node that runs");
        let patience = nodes.takeover * 6;
        let (of_ending, took) = during((nodes.node(other), &merchants[place]), (CLIENTS, Duration::ZERO), async {
            let begun = Instant::now();
            ending.terminate();
            let ended = tokio::task::spawn_blocking(move || ending.ended_within(patience)).await.expect("a thread");
            assert!(ended.is_some_and(|ended| ended.status.is_some_and(|status| status.success())), "it does not end");
            begun.elapsed()
        })
        .await;
        ended.push(took);
        seen.add(of_ending);
        let begun = Instant::now();
        nodes.restart(place).await;
        let (of_start, ()) = during((nodes.node(other), &merchants[place]), (CLIENTS, Duration::ZERO), async {
            nodes.settled().await;
        })
        .await;
        back.push(begun.elapsed().saturating_sub(nodes.takeover / 2));
        seen.add(of_start);
    }
    println!("  nothing happens: {}", quiet.quantiles());
    println!("  nodes end and start: {}", seen.quantiles());
    println!("  from SIGTERM to the end: {}", times(&mut ended));
    println!("  from its start until a node has its partitions: {}", times(&mut back));
}

/// Of the kernel's CPU times (`sysconf(_SC_CLK_TCK)` on Linux).
const TICKS_PER_SECOND: u64 = 100;

/// CPU time that a process has used.
fn cpu_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name in brackets").1.split(' ').collect();
    let ticks: u64 = [11, 12].into_iter().map(|field| fields[field].parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}
