//! Webhooks of two nodes: what happens at either arrives at the merchant's address, while nodes
//! end, start and die. The receiver is the test's own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;

/// Merchants that are opened at each node, which has them.
const MERCHANTS_A_NODE: usize = 2;

/// A webhook that came.
#[derive(Clone, Debug)]
struct Arrival {
    id: String,
    /// Events with the same subject come in their order.
    subject: String,
    sequence: u64,
}

/// Somebody who listens for the webhooks of all merchants, each at a path of its own.
struct Receiver {
    base: String,
    heard: Arc<Heard>,
}

struct Heard {
    arrivals: Mutex<HashMap<String, Vec<Arrival>>>,
    /// Merchants whose webhooks get no answer now.
    silent: watch::Sender<Vec<String>>,
}

impl Receiver {
    async fn listen() -> Self {
        let heard = Arc::new(Heard { arrivals: Mutex::default(), silent: watch::Sender::new(Vec::new()) });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(hear).with_state(Arc::clone(&heard));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, heard }
    }

    fn of(&self, merchant: &str) -> Vec<Arrival> {
        self.heard.arrivals.lock().unwrap().get(merchant).cloned().unwrap_or_default()
    }

    /// Waits until all these events came.
    async fn until_all(&self, merchant: &str, wanted: &BTreeMap<u64, String>, nodes: &Nodes<'_>) {
        let begun = Instant::now();
        loop {
            let came = self.of(merchant);
            let missing: Vec<_> =
                wanted.iter().filter(|(_, id)| !came.iter().any(|arrival| arrival.id == **id)).collect();
            if missing.is_empty() {
                return;
            }
            let said = || nodes.running().iter().map(|node| node.said()).collect::<Vec<_>>().join("\n----\n");
            assert!(begun.elapsed() < PATIENCE, "{merchant} never got {missing:?}: {}", said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Notes a webhook and answers; the ones of a silent merchant come to nothing.
async fn hear(State(heard): State<Arc<Heard>>, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
    let merchant = uri.path().trim_start_matches('/').to_owned();
    let mut silent = heard.silent.subscribe();
    if silent.borrow().contains(&merchant) {
        let _is_heard_again = silent.wait_for(|silent| !silent.contains(&merchant)).await;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let subject = match body["event"].as_str().unwrap().split_once('.').unwrap().0 {
        "split" => body["split"]["recipient_id"].to_string(),
        // Only a paid charge has its `id` beside the `txid`.
        "charge" => body["charge"]["txid"].to_string(),
        kind => body[kind]["id"].to_string(),
    };
    assert_ne!(subject, "null", "{body}");
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    let arrival = Arrival { id, subject, sequence: body["sequence"].as_u64().unwrap() };
    heard.arrivals.lock().unwrap().entry(merchant).or_default().push(arrival);
    StatusCode::NO_CONTENT
}

/// Gives a merchant an address.
async fn address(node: &Server, receiver: &Receiver, merchant: &str) {
    let body = json!({"webhook_url": format!("{}/{merchant}", receiver.base)});
    let (status, made) = post(node, OPS_TOKEN, &format!("/ops/merchants/{merchant}/api-keys"), &body).await;
    assert_eq!(status, 201, "{made}");
}

/// All events of a merchant after one: their ids by their numbers. One that comes before the
/// address was set is for nobody.
async fn events(node: &Server, callers: &Callers, after: u64) -> BTreeMap<u64, String> {
    let (mut found, mut after, begun) = (BTreeMap::new(), after, Instant::now());
    loop {
        let url = format!("{}/api/events?after={after}&per_page=100", node.public);
        let response = client().get(url).bearer_auth(&callers.api_key).send().await.unwrap();
        if response.status() != 200 {
            assert!(response.status() == 503 && begun.elapsed() < PATIENCE, "{} {}", response.status(), node.said());
            continue;
        }
        let list: Value = response.json().await.unwrap();
        let items = list["items"].as_array().unwrap();
        for event in items {
            after = event["sequence"].as_u64().unwrap();
            found.insert(after, event["id"].as_str().unwrap().to_owned());
        }
        if items.is_empty() {
            return found;
        }
    }
}

/// Of each subject the events arrive in their order, each first arrival counted.
fn must_be_in_order(arrivals: &[Arrival]) {
    let mut last: HashMap<&str, u64> = HashMap::new();
    let mut seen = std::collections::HashSet::new();
    for arrival in arrivals.iter().filter(|arrival| seen.insert(&arrival.id)) {
        let before = last.insert(&arrival.subject, arrival.sequence).unwrap_or_default();
        assert!(before < arrival.sequence, "{arrival:?} came after {before}: {arrivals:#?}");
    }
}

/// An event that was under way may come again. One whose successor had come was not: its answer
/// was known, or the successor would have waited.
fn only_what_was_under_way_came_again(arrivals: &[Arrival]) {
    let mut newest: HashMap<&str, u64> = HashMap::new();
    for arrival in arrivals {
        let newest = newest.entry(&arrival.subject).or_default();
        assert!(*newest <= arrival.sequence, "{arrival:?} came again after {newest}: {arrivals:#?}");
        *newest = arrival.sequence;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_arrive_while_nodes_end_start_and_die() {
    let Some(database) = shared() else { return };
    let (address_of_books, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::start(folder.path(), &address_of_books, 2).await;
    let receiver = Receiver::listen().await;
    // Two of each node, opened there.
    let (mut merchants, mut before) = (Vec::new(), Vec::new());
    for place in 0..2 {
        for _ in 0..MERCHANTS_A_NODE {
            let callers = Callers::open(nodes.node(place)).await.unwrap();
            before.push(events(nodes.node(0), &callers, 0).await.len() as u64);
            address(nodes.node(0), &receiver, &callers.merchant).await;
            merchants.push(callers);
        }
    }
    for place in [1, 0] {
        let (ending, through) = (nodes.servers[place].take().unwrap(), nodes.node(1 - place));
        let mut ended = Some(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ending.terminate();
            let ended = tokio::task::spawn_blocking(move || ending.ended_within(PATIENCE)).await.unwrap().unwrap();
            assert_eq!(ended.status.unwrap().code(), Some(0), "{}", ended.said);
        });
        join_all(merchants.iter_mut().map(|merchant| {
            let event = ended.take();
            merchant.charge_during(through, 2, async move {
                match event {
                    Some(event) => event.await,
                    None => tokio::time::sleep(Duration::from_secs(6)).await,
                }
            })
        }))
        .await;
        nodes.restart(place).await;
        nodes.settled().await;
        for (merchant, before) in merchants.iter().zip(&before) {
            let wanted = events(nodes.node(place), merchant, *before).await;
            receiver.until_all(&merchant.merchant, &wanted, &nodes).await;
            let arrivals = receiver.of(&merchant.merchant);
            assert!(arrivals.len() > 20, "little happened: {}", arrivals.len());
            must_be_in_order(&arrivals);
            only_what_was_under_way_came_again(&arrivals);
        }
    }
    // A node dies with webhooks that nobody has taken. Nothing more happens at its merchants.
    let of_killed: Vec<String> =
        merchants.iter().skip(MERCHANTS_A_NODE).map(|merchant| merchant.merchant.clone()).collect();
    receiver.heard.silent.send_replace(of_killed.clone());
    for (place, merchant) in merchants.iter_mut().enumerate() {
        merchant.charge(nodes.node(place % 2), 2, 20).await;
    }
    let mut wanted = Vec::new();
    for (merchant, before) in merchants.iter().zip(&before) {
        wanted.push(events(nodes.node(0), merchant, *before).await);
    }
    nodes.node(1).kill();
    nodes.servers[1].take().unwrap().wait();
    receiver.heard.silent.send_replace(Vec::new());
    for (merchant, wanted) in merchants.iter().zip(&wanted) {
        receiver.until_all(&merchant.merchant, wanted, &nodes).await;
        must_be_in_order(&receiver.of(&merchant.merchant));
    }
    // The same for a node that starts again, and has what the other one delivered.
    nodes.restart(1).await;
    nodes.settled().await;
    for merchant in &mut merchants {
        merchant.charge(nodes.node(0), 2, 20).await;
    }
    reckon_all(&nodes, &mut merchants).await;
    for (merchant, before) in merchants.iter().zip(&before) {
        let wanted = events(nodes.node(1), merchant, *before).await;
        receiver.until_all(&merchant.merchant, &wanted, &nodes).await;
        must_be_in_order(&receiver.of(&merchant.merchant));
        let (arrived, events) = (receiver.of(&merchant.merchant).len(), wanted.len());
        println!("{events} events, {} of them twice", arrived - events);
    }
    nodes.stop().await;
}
