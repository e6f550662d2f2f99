//! Three nodes on one database: each serves some of the partitions, and every one answers all
//! requests. Nodes die, are paused, end and start again while callers charge.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use store::testkit::postgres::shared;
use testkit::callers::{Callers, client};
use testkit::server::{Launch, OPS_TOKEN, Server};

use super::{PATIENCE, TAKEOVER_SECONDS, free_address, must_verify, on, reckon, signal, wait_until_stopped};

mod cross_node_requests;
mod deliveries;
mod mixed_settings;

const PARTITIONS: usize = 16;

/// Nodes of one database, each at an address of its own that it keeps when it starts again.
pub(crate) struct Nodes<'a> {
    pub(crate) folder: &'a Path,
    address: &'a str,
    pub(crate) places: Vec<Place>,
    pub(crate) servers: Vec<Option<Server>>,
    pub(crate) takeover_seconds: u64,
}

/// What a node keeps when it starts again.
pub(crate) struct Place {
    /// The listener for the other nodes, and how these reach it.
    pub(crate) listen: String,
    pub(crate) peer: String,
    /// How the node reaches the database.
    pub(crate) database: String,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl<'a> Nodes<'a> {
    pub(crate) fn of(folder: &'a Path, address: &'a str, count: usize) -> Self {
        let place = |_| {
            let listen = free_address();
            Place { peer: listen.clone(), listen, database: address.to_owned(), environment: Vec::new() }
        };
        let (places, servers) = ((0..count).map(place).collect(), (0..count).map(|_| None).collect());
        Self { folder, address, places, servers, takeover_seconds: TAKEOVER_SECONDS }
    }

    async fn start(folder: &'a Path, address: &'a str, count: usize) -> Self {
        Self::of(folder, address, count).started().await
    }

    pub(crate) async fn started(mut self) -> Self {
        for place in 0..self.places.len() {
            self.restart(place).await;
        }
        self.settled().await;
        self
    }

    pub(crate) async fn restart(&mut self, place: usize) {
        self.servers[place] = Some(Server::start(&self.launch(place)).await.unwrap());
    }

    /// How a node is started.
    pub(crate) fn launch(&self, place: usize) -> Launch<'a> {
        let Place { listen, peer, database, environment } = &self.places[place];
        let launch = on(self.folder, database)
            .with("CENTAVO_POSTGRES_TAKEOVER_SECONDS", self.takeover_seconds.to_string())
            .with("CENTAVO_PEER_LISTEN", listen)
            .with("CENTAVO_PEER_ADDRESS", peer)
            .with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8")
            .with("CENTAVO_PARTITIONS", PARTITIONS.to_string());
        environment.iter().fold(launch, |launch, (name, value)| launch.with(name, value))
    }

    pub(crate) fn node(&self, place: usize) -> &Server {
        self.servers[place].as_ref().unwrap()
    }

    pub(crate) fn running(&self) -> Vec<&Server> {
        self.servers.iter().flatten().collect()
    }

    /// Waits until every partition has had the same owner for a while, and all running nodes see
    /// it; gives how many each address has.
    pub(crate) async fn settled(&self) -> BTreeMap<String, u64> {
        let (begun, running) = (Instant::now(), self.running());
        // Nodes look at each other more often than this.
        let settled_after = Duration::from_secs(self.takeover_seconds) * 5 / 8;
        // A busy node may miss an answer: what it saw last counts.
        let mut seen: (Vec<Option<Value>>, Instant) = (vec![None; running.len()], begun);
        // One that starts again has another name at the same address.
        let mut names = vec![None; running.len()];
        loop {
            let pictures = join_all(running.iter().map(|node| cluster(node))).await;
            for (place, picture) in pictures.iter().enumerate().filter(|(_, picture)| is_picture(picture)) {
                let owners = picture.as_ref().and_then(owners);
                names[place] = picture.as_ref().and_then(own_name);
                if seen.0[place] != owners {
                    seen.0[place] = owners;
                    seen.1 = Instant::now();
                }
            }
            let is_one = seen.0[0].is_some() && seen.0.iter().all(|owners| *owners == seen.0[0]);
            if is_one
                && seen.1.elapsed() > settled_after
                && let Some(picture) = pictures.iter().find(|picture| is_picture(picture))
                && let Some(held) = picture.as_ref().and_then(|picture| held(picture, &names))
            {
                return held;
            }
            let said = || running.iter().map(|node| node.said()).collect::<Vec<_>>().join("\n----\n");
            assert!(begun.elapsed() < PATIENCE, "{pictures:#?} {}", said());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends all that run, in good order.
    pub(crate) fn end(self) {
        self.servers.into_iter().flatten().for_each(|server| server.stop().unwrap());
    }

    /// Ends all that run; the books must be whole.
    pub(crate) async fn stop(self) {
        let address = self.address;
        self.end();
        let said = must_verify(address);
        assert!(said.contains("each equal to a replay"), "{said}");
    }
}

pub(crate) async fn cluster(node: &Server) -> Option<Value> {
    let request = client().get(format!("{}/ops/cluster", node.operations)).bearer_auth(OPS_TOKEN).send();
    request.await.ok()?.json().await.ok()
}

/// A gauge of partitions.
async fn metric(node: &Server, name: &str) -> u64 {
    let metrics = client().get(format!("{}/metrics", node.operations)).send().await.unwrap().text().await.unwrap();
    let begin = format!("centavo_partitions_{name} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&begin));
    line.unwrap_or_else(|| panic!("no {name}: {metrics}")).parse().unwrap()
}

fn is_picture(answer: &Option<Value>) -> bool {
    answer.as_ref().is_some_and(|answer| answer["partitions"].is_array())
}

/// The owner of each partition; none while one has none.
fn owners(picture: &Value) -> Option<Value> {
    let owners = picture["partitions"].as_array()?.iter().map(|partition| partition["owner"].clone());
    let owners: Vec<Value> = owners.collect();
    owners.iter().all(Value::is_string).then_some(Value::from(owners))
}

/// The name of the node that gave the picture.
fn own_name(picture: &Value) -> Option<String> {
    let own = picture["nodes"].as_array()?.iter().find(|node| node["this"] == true)?;
    Some(own["node"].as_str()?.to_owned())
}

/// How many partitions each node has; none while nodes of other names have some, or nobody.
fn held(picture: &Value, names: &[Option<String>]) -> Option<BTreeMap<String, u64>> {
    let is_named = |node: &&Value| names.iter().any(|name| name.as_deref() == node["node"].as_str());
    let of = |node: &Value| Some((node["address"].as_str()?.to_owned(), node["partitions"].as_u64()?));
    let held: BTreeMap<String, u64> = picture["nodes"].as_array()?.iter().filter(is_named).filter_map(of).collect();
    let is_whole = held.values().sum::<u64>() == PARTITIONS as u64 && held.values().all(|count| *count > 0);
    (is_whole && held.len() == names.len()).then_some(held)
}

/// A merchant for each node, opened there.
async fn merchants(nodes: &Nodes<'_>) -> Vec<Callers> {
    let mut all = Vec::new();
    for node in nodes.running() {
        all.push(Callers::open(node).await.unwrap());
    }
    all
}

/// Compares each merchant's log with the books, asking another node each time.
async fn reckon_all(nodes: &Nodes<'_>, merchants: &mut [Callers]) {
    let running = nodes.running();
    for (place, merchant) in merchants.iter_mut().enumerate() {
        reckon(merchant, running[(place + 1) % running.len()]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_divide_the_partitions_and_lose_nothing_when_one_dies() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::start(folder.path(), &address, 3).await;
    let before = nodes.settled().await;
    for node in nodes.running() {
        let own =
            cluster(node).await.unwrap()["nodes"].as_array().unwrap().iter().find(|node| node["this"] == true).cloned();
        let owned = own.unwrap()["partitions"].as_u64().unwrap();
        assert_eq!((metric(node, "owned").await, metric(node, "unserved").await), (owned, 0));
    }
    let mut merchants = merchants(&nodes).await;
    reckon_all(&nodes, &mut merchants).await;
    for is_paused in [false, true] {
        let killed = nodes.node(1);
        let charging = merchants.iter_mut().enumerate().map(|(place, merchant)| {
            merchant.charge_until(nodes.node(place), 3, Duration::from_millis(1_500), move || {
                if place == 1 {
                    if is_paused { signal(killed.id(), "STOP") } else { killed.kill() }
                }
            })
        });
        join_all(charging).await;
        if is_paused {
            wait_until_stopped(killed.id()).await;
        } else {
            killed.wait();
        }
        let paused = nodes.servers[1].take();
        nodes.settled().await;
        reckon_all(&nodes, &mut merchants).await;
        if is_paused {
            let paused = paused.unwrap();
            signal(paused.id(), "CONT");
            let ended = paused.ended_within(PATIENCE).unwrap();
            assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
        }
        nodes.restart(1).await;
        assert_eq!(nodes.settled().await, before, "a node that starts again gets its partitions back");
        reckon_all(&nodes, &mut merchants).await;
    }
    nodes.stop().await;
    merchants.iter().for_each(|merchant| println!("{}", merchant.summary()));
}

/// Asks for the balance again and again, until connections are refused. Gives how often it was
/// answered, and what was answered otherwise.
async fn ask_to_the_end(public: String, api_key: String) -> (u64, Vec<String>) {
    // A connection that waits would be closed at the end, with a request in it.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(PATIENCE).build().unwrap();
    let (mut answered, mut failures) = (0, Vec::new());
    loop {
        match client.get(format!("{public}/api/balance")).bearer_auth(&api_key).send().await {
            Ok(answer) if answer.status() == 200 => answered += 1,
            Ok(answer) => failures.push(format!("{} {}", answer.status(), answer.text().await.unwrap_or_default())),
            Err(error) if error.is_timeout() => failures.push(error.to_string()),
            // Refused; or not accepted yet, and reset.
            Err(_) => return (answered, failures),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Clients ask a node that lasts, and those that end, for merchants of each of its partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_end_and_start_again_and_no_request_fails() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::start(folder.path(), &address, 3).await;
    let mut merchants = merchants(&nodes).await;
    let mut others = Vec::new();
    for number in 0..2 * PARTITIONS {
        others.push(Callers::open(nodes.node(number % 3)).await.unwrap());
    }
    for place in [1, 2] {
        let public = &nodes.node(place).public;
        let asking = others.iter().map(|other| tokio::spawn(ask_to_the_end(public.clone(), other.api_key.clone())));
        let asking: Vec<_> = asking.collect();
        let ending = nodes.servers[place].take().unwrap();
        let through = nodes.node(0);
        let handed_over = async {
            ending.terminate();
            let ended = tokio::task::spawn_blocking(move || ending.ended_within(PATIENCE)).await.unwrap().unwrap();
            assert_eq!(ended.status.unwrap().code(), Some(0), "{}", ended.said);
        };
        let mut first = Some(handed_over);
        let mut charging = merchants.iter_mut().map(|merchant| {
            let event = first.take();
            merchant.charge_during(through, 2, async move {
                match event {
                    Some(event) => event.await,
                    None => tokio::time::sleep(Duration::from_secs(3)).await,
                }
            })
        });
        join_all(&mut charging).await;
        drop(charging);
        for result in join_all(asking).await {
            let (answered, failures) = result.unwrap();
            assert!(answered > 0 && failures.is_empty(), "{answered} {failures:?} {}", through.said());
        }
        for merchant in &merchants {
            assert!(merchant.unanswered() == 0, "{:#?} {}", merchant.failures(), through.said());
        }
        nodes.restart(place).await;
        nodes.settled().await;
    }
    reckon_all(&nodes, &mut merchants).await;
    nodes.stop().await;
    merchants.iter().for_each(|merchant| println!("{}", merchant.summary()));
}

/// The token of a second operator.
const OTHER_TOKEN: &str = "another-operator-of-the-test-with-32-characters";

pub(crate) async fn get(node: &Server, path: &str) -> Value {
    let begun = Instant::now();
    loop {
        let response = client().get(format!("{}{path}", node.operations)).bearer_auth(OPS_TOKEN).send().await.unwrap();
        if response.status() == 200 {
            return response.json().await.unwrap();
        }
        assert!(
            response.status() == 503 && begun.elapsed() < PATIENCE,
            "{path}: {} {}",
            response.status(),
            node.said()
        );
    }
}

async fn post(node: &Server, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = client().post(format!("{}{path}", node.operations)).bearer_auth(token).json(body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// What is about all merchants has one answer, whichever node is asked: lists and sums, the closing
/// of a month in all partitions, the acquirer's batches, the console.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_about_all_merchants_has_one_answer_at_every_node() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::of(folder.path(), &address, 3);
    for place in &mut nodes.places {
        place.environment.push(("CENTAVO_OPS_TOKEN", format!("ana:{OPS_TOKEN},rui:{OTHER_TOKEN}")));
        place.environment.push(("CENTAVO_OPS_ROLES", "ana=admin,rui=admin".to_owned()));
    }
    let nodes = nodes.started().await;
    let mut merchants = merchants(&nodes).await;
    for (place, merchant) in merchants.iter_mut().enumerate() {
        merchant.charge(nodes.node(place), 2, 30).await;
    }
    reckon_all(&nodes, &mut merchants).await;
    let (_, now) = post(nodes.node(0), OPS_TOKEN, "/ops/sandbox/clock", &json!({"advance_seconds": 0})).await;
    let month = now["now"].as_str().unwrap()[..7].to_owned();
    for (place, days) in [(0, 35), (1, 1), (2, 1)] {
        let body = json!({"advance_seconds": days * 86_400});
        let (status, moved) = post(nodes.node(place), OPS_TOKEN, "/ops/sandbox/clock", &body).await;
        assert_eq!(status, 200, "{moved}");
    }
    for place in [1, 2, 0, 2, 1, 0] {
        Callers::open(nodes.node(place)).await.unwrap();
    }
    let opened = get(nodes.node(0), "/ops/merchants?per_page=5").await;
    let opened = opened["items"].as_array().unwrap().iter().map(|merchant| merchant["created_at"].as_str().unwrap());
    let opened: Vec<_> = opened.collect();
    assert!(opened.len() == 5 && opened.is_sorted_by(|newer, older| newer >= older), "{opened:?}");
    let batches = get(nodes.node(0), "/ops/batches").await;
    assert!(batches["total"].as_u64() > Some(0), "{batches}");
    for (place, token, expected) in [(0, OPS_TOKEN, "pending"), (1, OTHER_TOKEN, "closed")] {
        let (status, closed) = post(nodes.node(place), token, &format!("/ops/periods/{month}/close"), &json!({})).await;
        assert_eq!((status, &closed["status"]), (200, &json!(expected)), "{closed}");
    }
    let paths = [
        "/ops/trial-balance",
        "/ops/merchants",
        "/ops/lists/charges?per_page=100",
        "/ops/audit?per_page=100",
        "/ops/queue",
        "/ops/batches",
        "/ops/periods",
        "/ops/records?per_page=50",
        "/ops/webhooks",
    ];
    for path in paths {
        let answers = [get(nodes.node(0), path).await, get(nodes.node(1), path).await, get(nodes.node(2), path).await];
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}: {answers:#?}");
    }
    let closed = get(nodes.node(2), "/ops/trial-balance").await;
    let cut = closed["cut"].as_object().unwrap();
    assert_eq!(cut.len(), PARTITIONS, "{cut:?}");
    assert!(cut.values().all(|last| last.as_u64() > Some(0)), "the month is closed in each partition: {cut:?}");
    // Signed in at one node, an operator reads the pages of all merchants at every other one.
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let form = format!("token={OPS_TOKEN}&next=%2Fconsole");
    let origin = &nodes.node(0).operations;
    let signed_in = browser.post(format!("{origin}/console/sign-in")).header("origin", origin).body(form);
    let signed_in = signed_in.header("content-type", "application/x-www-form-urlencoded");
    let signed_in = signed_in.send().await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    for node in nodes.running() {
        for merchant in &merchants {
            let url = format!("{}/console/merchants/{}", node.operations, merchant.merchant);
            let page = browser.get(url).header("cookie", &cookie).send().await.unwrap();
            assert_eq!(page.status(), 200, "{}", node.said());
            let page = page.text().await.unwrap();
            assert!(page.contains("Loja") && page.contains(&merchant.merchant), "{page}");
        }
    }
    nodes.stop().await;
}
