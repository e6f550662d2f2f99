//! Two processes that share the partitions, played in one: real sockets, made-up owners.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{collections::HashMap, sync::Arc};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use derived::extents::HOUSE;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use ledger::{IdKey, ObjectId, Timestamp};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::door::{Door, DoorParts};
use super::forward::PeerClient;
use super::listener::{Behind, limits, routes};
use super::peer_token::PeerToken;
use super::*;
use web::api_key::ApiKeyText;
use web::client::speak;
use web::credential::OpenedBy;
use web::guards::shed::RequestLimits;
use web::measures::Measures;
use web::middleware::Middleware;
use web::openapi::Listener;
use web::server::{self, ListenerService, OverTls, Peer};
use web::session::{COOKIE_NAME, Sessions, secret_of};
use web::tls::{MutualTls, TlsFiles};
use web::{FormOutcome, Language, Problem};

const KEY: [u8; 32] = [7; 32];

fn ids() -> IdKey {
    IdKey::new([7; 16])
}

fn id_in(group: u32) -> ObjectId {
    ids().object(GroupNumber(group), Timestamp(1_795_000_000_000), 3)
}

/// Owners as a test says they are: an even group is in partition 0, an odd one in partition 1.
#[derive(Default)]
struct MadeUp {
    owners: Mutex<HashMap<u16, Owner>>,
    has_lapsed: Arc<AtomicBool>,
    /// A partition of another process is out of sight.
    lacks_one: Arc<AtomicBool>,
    /// Partitions that are neither owned nor read.
    missing: Mutex<Vec<Partition>>,
}

struct MadeUpHold(Arc<AtomicBool>);

impl Hold for MadeUpHold {
    fn stands(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl MadeUp {
    fn set(&self, partition: u16, owner: Owner) {
        self.owners.lock().insert(partition, owner);
    }
}

impl Owners for MadeUp {
    fn all(&self) -> Vec<Partition> {
        vec![Partition(0)]
    }

    fn read_all(&self) -> HoldFuture<'_> {
        let hold = || Box::new(MadeUpHold(Arc::clone(&self.lacks_one))) as Box<dyn Hold>;
        Box::pin(std::future::ready(self.missing.lock().is_empty().then(hold)))
    }

    fn missing(&self) -> Vec<Partition> {
        self.missing.lock().clone()
    }

    fn partition_of(&self, group: GroupNumber) -> Partition {
        Partition((group.0 % 2) as u16)
    }

    fn house(&self) -> Partition {
        self.partition_of(HOUSE)
    }

    /// Without a key each process wants the other one.
    fn partition_for_new(&self, key: Option<&str>) -> Partition {
        let other = u16::from(self.owner(Partition(0)) == Owner::Here);
        Partition(key.map_or(other, |key| (key.len() % 2) as u16))
    }

    fn owner(&self, partition: Partition) -> Owner {
        self.owners.lock().get(&partition.0).cloned().unwrap_or(Owner::Nobody)
    }

    fn hold(&self, partition: Partition) -> Option<Box<dyn Hold>> {
        let is_here = self.owner(partition) == Owner::Here;
        is_here.then(|| Box::new(MadeUpHold(Arc::clone(&self.has_lapsed))) as Box<dyn Hold>)
    }
}

/// What the handlers of a process know.
struct Handling {
    name: &'static str,
    arrivals: AtomicUsize,
    sessions: Arc<Sessions>,
    owners: Arc<MadeUp>,
    /// What a body that names a merchant of partition 1 finds.
    meets: Mutex<Meets>,
    arrived: Notify,
    release: Notify,
}

/// What a request finds whose body alone names a merchant of partition 1.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Meets {
    /// It is answered where the partition is.
    #[default]
    Owner,
    /// The partition comes here at this moment.
    Arrival,
    /// The partition is elsewhere, whatever was seen of it.
    Never,
}

/// Answers where partition 1 is; elsewhere it does nothing, and says so.
async fn of_body(State(handling): State<Arc<Handling>>, request: Request) -> Response {
    let (is_here, meets) = (handling.owners.owner(Partition(1)) == Owner::Here, *handling.meets.lock());
    if is_here && meets != Meets::Never {
        return echo(State(handling), request).await.into_response();
    }
    handling.arrivals.fetch_add(1, Ordering::SeqCst);
    if meets != Meets::Owner {
        handling.owners.set(1, Owner::Here);
    }
    Problem::elsewhere(Partition(1)).into_response()
}

/// Answers with what arrived.
async fn echo(State(handling): State<Arc<Handling>>, request: Request) -> Json<Value> {
    handling.arrivals.fetch_add(1, Ordering::SeqCst);
    let (parts, body) = request.into_parts();
    let headers: HashMap<_, _> =
        parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap())).collect();
    Json(json!({
        "by": handling.name,
        "method": parts.method.as_str(),
        "uri": parts.uri.to_string(),
        "headers": headers,
        "caller": parts.extensions.get::<Peer>().map(|Peer(address)| address.to_string()),
        "over_tls": parts.extensions.get::<OverTls>().is_some(),
        "body": body.collect().await.unwrap().to_bytes().len(),
    }))
}

/// Arrives, and is not answered before it is released.
async fn slow(State(handling): State<Arc<Handling>>) -> &'static str {
    handling.arrivals.fetch_add(1, Ordering::SeqCst);
    handling.arrived.notify_one();
    handling.release.notified().await;
    "slow"
}

/// Two events, the second once it is released.
async fn events(State(handling): State<Arc<Handling>>) -> Response {
    let parts = futures_util::stream::unfold(0, move |sent| {
        let handling = Arc::clone(&handling);
        async move {
            if sent == 1 {
                handling.release.notified().await;
            }
            (sent < 2).then(|| (Ok::<_, Infallible>(Bytes::from(format!("data: {sent}\n\n"))), sent + 1))
        }
    });
    ([("content-type", "text/event-stream")], Body::from_stream(parts)).into_response()
}

/// Acts in the session of the request, as pages of the console do.
async fn visited(State(handling): State<Arc<Handling>>, headers: HeaderMap) -> Response {
    handling.arrivals.fetch_add(1, Ordering::SeqCst);
    let secret = secret_of(&headers).unwrap_or_default();
    let found = handling.sessions.find(&secret, Instant::now());
    handling.sessions.choose(&secret, Language::English);
    handling.sessions.keep_done(&secret, "/console/queue", FormOutcome::Decided);
    let form_token = found.as_ref().map(|session| session.form_token.clone());
    Json(json!({ "by": handling.name, "name": found.map(|session| session.opened_by.name), "form": form_token }))
        .into_response()
}

/// One process.
struct Node {
    owners: Arc<MadeUp>,
    handling: Arc<Handling>,
    client: Arc<PeerClient>,
    merchants: SocketAddr,
    operators: SocketAddr,
    peers: SocketAddr,
    running: Vec<JoinHandle<server::DrainResult>>,
    _serving: watch::Sender<bool>,
}

fn middleware() -> Middleware {
    let limits = RequestLimits { most: 64, is_current: Box::new(|| true), lapsed: None };
    Middleware::new(limits, true, Measures::default()).unwrap()
}

async fn node(name: &'static str, key: [u8; 32], tls: Option<Arc<MutualTls>>) -> Node {
    let (owners, sessions) = (Arc::new(MadeUp::default()), Arc::new(Sessions::default()));
    let (arrivals, arrived, release) = Default::default();
    let handling = Handling {
        name,
        arrivals,
        sessions: Arc::clone(&sessions),
        owners: Arc::clone(&owners),
        meets: Mutex::default(),
        arrived,
        release,
    };
    let handling = Arc::new(handling);
    let token = PeerToken::of(&key);
    let client = Arc::new(PeerClient::new(token.clone(), tls.clone(), PeerMeasures::default()));
    let shared = DoorParts {
        owners: Arc::clone(&owners) as Arc<dyn Owners>,
        client: Arc::clone(&client),
        sessions,
        ids: ids(),
        sandbox: true,
    };
    let of_merchants = Router::new()
        .route("/api/charges", any(echo))
        .route("/api/slow", any(slow))
        .route("/api/events", get(events))
        .route("/openapi.json", get(echo));
    let of_operators = Router::new()
        .route("/healthz", get(echo))
        .route("/ops/merchants", any(echo))
        .route("/ops/merchants/{id}", any(echo))
        .route("/ops/entries", any(of_body))
        .route("/ops/reconciliations", any(echo))
        .route("/ops/backup", get(|| async { vec![b'x'; 8 << 20] }))
        .route("/console/charges/{txid}", any(visited));
    let behind = |listener, routes: Router<Arc<Handling>>| {
        let routes = Door::new(listener, shared.clone()).before(routes.with_state(Arc::clone(&handling)));
        let middleware = middleware();
        Behind { router: middleware.clone().before(routes), middleware }
    };
    let merchants = behind(Listener::Merchants, of_merchants);
    let operators = behind(Listener::Operators, of_operators);
    let (serving, ending) = watch::channel(false);
    let mut running = Vec::new();
    let mut listen = async |served: ListenerService, limits| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        running.push(tokio::spawn(server::run(listener, served, ending.clone(), limits)));
        address
    };
    let outside = server::ServerLimits::default();
    let peers = ListenerService {
        tls: tls.map(|tls| Arc::clone(&tls.server)),
        ..routes(token, name.to_owned(), Router::new(), merchants.clone(), operators.clone()).into()
    };
    let peers = listen(peers, limits(16)).await;
    let [merchants, operators] =
        [listen(merchants.router.into(), outside).await, listen(operators.router.into(), outside).await];
    Node { owners, handling, client, merchants, operators, peers, running, _serving: serving }
}

impl Node {
    fn arrivals(&self) -> usize {
        self.handling.arrivals.load(Ordering::SeqCst)
    }

    /// Ends the process as a kill does: its connections end with it.
    fn kill(&self) {
        self.running.iter().for_each(JoinHandle::abort);
    }
}

/// Two processes; the first owns the even groups, and so the house.
async fn pair() -> [Node; 2] {
    let nodes = [node("first", KEY, None).await, node("second", KEY, None).await];
    let [first, second] = &nodes;
    first.owners.set(0, Owner::Here);
    first.owners.set(1, Owner::At(second.peers.to_string()));
    second.owners.set(0, Owner::At(first.peers.to_string()));
    second.owners.set(1, Owner::Here);
    nodes
}

/// Sends a request from an address of this machine that no process has.
async fn ask(to: SocketAddr, request: axum::http::request::Builder, body: impl Into<Bytes>) -> Response<Incoming> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let request = request.header("host", "centavo.example").body(Full::new(body.into())).unwrap();
    speak(socket.connect(to).await.unwrap()).await.unwrap().send_request(request).await.unwrap()
}

async fn read(answer: Response<Incoming>) -> (u16, Value) {
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn of_merchant(group: u32, method: Method, path: &str) -> axum::http::request::Builder {
    let key = ApiKeyText::of(true, id_in(group), [9; 24]);
    Request::builder().method(method).uri(path).header("token", key)
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_request_is_answered_by_the_owner_as_if_it_had_come_to_it() {
    let [first, second] = pair().await;
    let request = || {
        of_merchant(1, Method::POST, "/api/charges?page=2&q=%C3%A9")
            .header("x-request-id", "r-1")
            .header("idempotency-key", "k-1")
            .header("connection", "keep-alive, x-secret")
            .header("x-secret", "of this connection")
    };
    let answer = ask(first.merchants, request(), "{\"a\":1}").await;
    assert_eq!(
        (answer.headers()["x-request-id"].as_bytes(), answer.headers()["api-version"].as_bytes()),
        (&b"r-1"[..], web::middleware::API_VERSION.as_bytes())
    );
    let (status, echoed) = read(answer).await;
    assert_eq!(
        (status, &echoed["by"], &echoed["method"], &echoed["body"]),
        (200, &json!("second"), &json!("POST"), &json!(7))
    );
    assert_eq!(echoed["uri"], "/api/charges?page=2&q=%C3%A9");
    assert_eq!(
        (&echoed["caller"], &echoed["over_tls"]),
        (&json!("127.0.0.2"), &json!(false)),
        "not the process between"
    );
    let headers = echoed["headers"].as_object().unwrap();
    assert_eq!((&headers["host"], &headers["idempotency-key"]), (&json!("centavo.example"), &json!("k-1")));
    assert_eq!(headers["x-request-id"], "r-1");
    let of_the_hop: Vec<_> = headers.keys().filter(|name| name.starts_with("centavo-")).collect();
    assert!(of_the_hop.is_empty() && !headers.contains_key("x-secret"), "{headers:?}");

    let (_, echoed) = read(ask(second.merchants, request(), "{\"a\":1}").await).await;
    assert_eq!((&echoed["by"], &echoed["caller"]), (&json!("second"), &json!("127.0.0.2")));
    assert_eq!((first.arrivals(), second.arrivals()), (0, 2));
}

#[tokio::test]
async fn what_needs_no_partition_is_answered_where_it_comes() {
    let [first, second] = pair().await;
    for node in [&first, &second] {
        node.owners.set(0, Owner::Nobody);
        let answer = ask(node.merchants, Request::builder().uri("/openapi.json"), "").await;
        assert_eq!(read(answer).await.1["by"], node.handling.name);
        let answer = ask(node.merchants, Request::builder().uri("/api/charges"), "").await;
        assert_eq!(read(answer).await.1["by"], node.handling.name, "no key");
        let answer = ask(node.operators, Request::builder().uri("/healthz"), "").await;
        assert_eq!(read(answer).await.1["by"], node.handling.name);
        assert_eq!(ask(node.operators, Request::builder().uri("/nowhere"), "").await.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn operators_reach_the_owner_of_what_the_path_names_or_of_the_house() {
    let [first, second] = pair().await;
    let of_second = format!("/ops/merchants/{}", id_in(1).uuid());
    let cases = [
        ("GET", of_second.as_str(), "", "second"),
        ("DELETE", of_second.as_str(), "", "second"),
        ("GET", "/ops/merchants/nothing", "", "first"),
        ("GET", "/ops/merchants", "", "first"),
        ("GET", "/ops/merchants?merchant=019b8c4e", "", "first"),
        ("POST", "/ops/merchants", "odd", "second"),
        ("POST", "/ops/merchants", "even", "first"),
    ];
    for (node, other) in [(&first, "second"), (&second, "first")] {
        let answer = ask(node.operators, Request::builder().method("POST").uri("/ops/merchants"), "").await;
        assert_eq!(read(answer).await.1["by"], other, "an account without a key");
        for (method, path, key, by) in cases {
            let request = Request::builder().method(method).uri(path).header("idempotency-key", key);
            assert_eq!(read(ask(node.operators, request, "").await).await.1["by"], by, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn headers_of_a_hop_count_only_with_its_token() {
    let [first, second] = pair().await;
    let forged = || {
        of_merchant(1, Method::GET, "/api/charges")
            .header("centavo-listener", "operators")
            .header("centavo-caller", "198.51.100.9")
            .header("centavo-needs-partition", "1")
            .header("centavo-over-tls", "yes")
            .header("centavo-session", "{}")
    };
    for to in [first.merchants, second.merchants] {
        let (status, echoed) = read(ask(to, forged(), "").await).await;
        assert_eq!((status, &echoed["caller"], &echoed["over_tls"]), (200, &json!("127.0.0.2"), &json!(false)));
        // One who gets them may believe them.
        let is_direct = to == second.merchants;
        assert_eq!(echoed["headers"].get("centavo-caller").is_some(), is_direct, "they are not sent on");
    }
    let (right, wrong) = (PeerToken::of(&KEY).text(), PeerToken::of(&[8; 32]).text());
    let of_a_process = |token: Option<String>, listener| {
        let request = of_merchant(1, Method::GET, "/api/charges")
            .header("centavo-listener", listener)
            .header("centavo-needs-partition", "1");
        let request = request.header("centavo-caller", "198.51.100.9");
        token.into_iter().fold(request, |request, token| request.header("centavo-peer-token", token))
    };
    let echoed = read(ask(second.peers, of_a_process(Some(right.clone()), "merchants"), "").await).await.1;
    assert_eq!((&echoed["by"], &echoed["caller"]), (&json!("second"), &json!("198.51.100.9")));
    let arrivals = second.arrivals();
    let strangers = [
        (None, "merchants"),
        (Some(format!("{:064x}", 7)), "merchants"),
        (Some(wrong), "merchants"),
        (Some(right), "x"),
    ];
    for (token, listener) in strangers {
        let answer = ask(second.peers, of_a_process(token, listener), "").await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    assert_eq!(second.arrivals(), arrivals);
}

async fn until_misdirected(node: &Node, times: u64) {
    let tried = async {
        while node.client.tries("misdirected") < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), tried).await.unwrap();
}

#[tokio::test]
async fn what_a_process_did_not_do_is_tried_again_until_one_has_the_partition() {
    let [first, second] = pair().await;
    second.owners.set(1, Owner::Nobody);
    let asking = tokio::spawn(ask(first.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}"));
    until_misdirected(&first, 2).await;
    assert_eq!(second.arrivals(), 0, "it is refused before it is read");
    second.owners.set(1, Owner::Here);
    let echoed = read(asking.await.unwrap()).await.1;
    assert_eq!((&echoed["by"], &echoed["body"]), (&json!("second"), &json!(2)));

    // The partition comes to the process that was asked.
    second.owners.set(1, Owner::Nobody);
    let asking = tokio::spawn(ask(first.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}"));
    until_misdirected(&first, first.client.tries("misdirected") + 2).await;
    first.owners.set(1, Owner::Here);
    let echoed = read(asking.await.unwrap()).await.1;
    assert_eq!((&echoed["by"], &echoed["body"]), (&json!("first"), &json!(2)));
    assert_eq!((first.arrivals(), second.arrivals()), (1, 1));
}

#[tokio::test]
async fn without_an_owner_a_request_is_refused_after_a_while_and_was_not_carried_out() {
    let [first, second] = pair().await;
    let nobody_listens = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for owner in [Owner::Nobody, Owner::At(nobody_listens.to_string())] {
        first.owners.set(1, owner);
        let began = Instant::now();
        let answer = ask(first.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await;
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(code(&read(answer).await), (503, "store_unavailable"));
        assert!(began.elapsed() >= door::PATIENCE - Duration::from_millis(200));
    }
    assert_eq!(second.arrivals(), 0);
    // The asked process does not wait; the asking one does.
    first.owners.set(1, Owner::At(second.peers.to_string()));
    second.owners.set(1, Owner::Nobody);
    let request = of_merchant(1, Method::GET, "/api/charges")
        .header("centavo-peer-token", PeerToken::of(&KEY).text())
        .header("centavo-listener", "merchants")
        .header("centavo-needs-partition", "1");
    assert_eq!(code(&read(ask(second.peers, request, "").await).await), (421, "misdirected"));
}

#[tokio::test]
async fn a_process_that_ends_in_the_middle_leaves_an_unknown_outcome_and_is_not_asked_again() {
    for (method, expected) in [(Method::POST, "outcome_unknown"), (Method::GET, "store_unavailable")] {
        let [first, second] = pair().await;
        let asking = tokio::spawn(ask(first.merchants, of_merchant(1, method, "/api/slow"), "{}"));
        second.handling.arrived.notified().await;
        // Whoever asked again would ask the next owner, who answers.
        first.owners.set(1, Owner::Here);
        first.handling.release.notify_one();
        second.kill();
        assert_eq!(code(&read(asking.await.unwrap()).await), (503, expected));
        assert_eq!((first.arrivals(), second.arrivals()), (0, 1));
    }
}

#[tokio::test]
async fn an_owner_that_is_silent_and_has_lost_the_partition_is_given_up() {
    let [first, second] = pair().await;
    let asking = tokio::spawn(ask(first.merchants, of_merchant(1, Method::POST, "/api/slow"), "{}"));
    second.handling.arrived.notified().await;
    first.owners.set(1, Owner::Nobody);
    let answer = tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap().unwrap();
    assert_eq!(code(&read(answer).await), (503, "outcome_unknown"));
    second.handling.release.notify_one();
}

#[tokio::test]
async fn no_answer_leaves_once_the_partition_is_not_held() {
    let [first, second] = pair().await;
    second.owners.has_lapsed.store(true, Ordering::Relaxed);
    for to in [first.merchants, second.merchants] {
        let answer = read(ask(to, of_merchant(1, Method::POST, "/api/charges"), "{}").await).await;
        assert_eq!(code(&answer), (503, "outcome_unknown"));
    }
    assert_eq!(second.arrivals(), 2);
}

/// Lists and sums would lack what is in it.
#[tokio::test]
async fn no_answer_about_all_leaves_once_a_partition_is_out_of_sight() {
    let [first, second] = pair().await;
    first.owners.lacks_one.store(true, Ordering::Relaxed);
    for to in [first.operators, second.operators] {
        let request = Request::builder().method("GET").uri("/ops/merchants");
        assert_eq!(code(&read(ask(to, request, "").await).await), (503, "store_unavailable"));
    }
}

/// The body alone names the merchant: the owner of the house reads it first, and does nothing.
#[tokio::test]
async fn a_request_whose_merchant_only_its_body_names_is_carried_out_where_the_merchant_is() {
    let [first, second] = pair().await;
    let ask =
        async || read(ask(second.operators, Request::builder().method("POST").uri("/ops/entries"), "{}").await).await;
    let echoed = ask().await.1;
    assert_eq!((&echoed["by"], &echoed["body"]), (&json!("second"), &json!(2)));
    assert_eq!((first.arrivals(), second.arrivals()), (1, 1));

    // The partition comes to the owner of the house between the two looks at it.
    *first.handling.meets.lock() = Meets::Arrival;
    let echoed = ask().await.1;
    assert_eq!((&echoed["by"], &echoed["body"]), (&json!("first"), &json!(2)));
    assert_eq!((first.arrivals(), second.arrivals()), (3, 1));

    // It is tried again once.
    first.owners.set(1, Owner::At(second.peers.to_string()));
    *first.handling.meets.lock() = Meets::Never;
    assert_eq!(code(&ask().await), (503, "store_unavailable"));
    assert_eq!((first.arrivals(), second.arrivals()), (5, 1));
}

#[tokio::test]
async fn what_is_about_all_waits_for_the_partitions_that_are_missing() {
    let [first, second] = pair().await;
    *first.owners.missing.lock() = vec![Partition(1)];
    let request = || Request::builder().method("GET").uri("/ops/merchants");
    let began = Instant::now();
    assert_eq!(code(&read(ask(second.operators, request(), "").await).await), (503, "store_unavailable"));
    assert!(began.elapsed() >= door::PATIENCE - Duration::from_millis(200));
    let asking = tokio::spawn(ask(first.operators, request(), ""));
    tokio::time::sleep(door::PAUSE).await;
    first.owners.missing.lock().clear();
    assert_eq!(read(asking.await.unwrap()).await.1["by"], "first");
}

#[tokio::test]
async fn large_bodies_pass_and_too_large_ones_do_not() {
    let [first, second] = pair().await;
    let file = vec![b'x'; 16 << 20];
    let request = || Request::builder().method("POST").uri("/ops/reconciliations").header("content-type", "text/csv");
    let echoed = read(ask(second.operators, request(), file.clone()).await).await.1;
    assert_eq!((&echoed["by"], &echoed["body"]), (&json!("first"), &json!(16 << 20)));
    let too_large = read(ask(second.operators, request(), [&file[..], b"x"].concat()).await).await;
    assert_eq!(code(&too_large), (413, "payload_too_large"));
    let (request, json) = (of_merchant(1, Method::POST, "/api/charges"), vec![b' '; 256 * 1024 + 1]);
    assert_eq!(code(&read(ask(first.merchants, request, json).await).await), (413, "payload_too_large"));
    let answer = ask(second.operators, Request::builder().uri("/ops/backup"), "").await;
    assert_eq!(answer.headers()["content-length"], (8 << 20).to_string().as_str());
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 8 << 20);
}

#[tokio::test]
async fn events_pass_as_they_are_sent() {
    let [first, second] = pair().await;
    let answer = ask(first.merchants, of_merchant(1, Method::GET, "/api/events"), "").await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    let mut next = async || body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
    assert_eq!(next().await.unwrap(), "data: 0\n\n");
    second.handling.release.notify_one();
    assert_eq!((next().await.unwrap(), next().await), (Bytes::from("data: 1\n\n"), None));
}

#[tokio::test]
async fn connections_are_used_again() {
    let [first, second] = pair().await;
    for _ in 0..5 {
        let answer = ask(first.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await;
        assert_eq!(read(answer).await.0, 200);
    }
    assert_eq!((first.client.idle(&second.peers.to_string()), second.arrivals()), (1, 5));
    // One that the other process has closed meanwhile is not the end of a request.
    let peers = second.peers;
    second.kill();
    let again = node("again", KEY, None).await;
    again.owners.set(1, Owner::Here);
    first.owners.set(1, Owner::At(again.peers.to_string()));
    let echoed = read(ask(first.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await).await.1;
    assert_eq!((&echoed["by"], peers == again.peers), (&json!("again"), false));
}

#[tokio::test]
async fn a_session_goes_with_its_requests_and_comes_back() {
    let [first, second] = pair().await;
    let (home, guest, now) = (&first.handling.sessions, &second.handling.sessions, Instant::now());
    let ana = OpenedBy { name: "ana \"a\"".to_owned(), token_digest: [7; 32] };
    for to in [first.operators, second.operators] {
        let secret = home.begin(ana.clone(), None, now).unwrap();
        let path = format!("/console/charges/{}", id_in(1).txid());
        let request = Request::builder().method("POST").uri(path).header("cookie", format!("{COOKIE_NAME}={secret}"));
        let answer = ask(to, request, "a=b").await;
        assert!(!answer.headers().contains_key("centavo-session"));
        let echoed = read(answer).await.1;
        let session = home.find(&secret, now).unwrap();
        assert_eq!(echoed, json!({ "by": "second", "name": ana.name, "form": session.form_token }));
        assert_eq!(session.language, Some(Language::English), "what changed is known at home");
        assert_eq!(home.take_done(&secret, "/console/queue"), Some(FormOutcome::Decided));
        assert!(guest.find(&secret, now).is_none(), "it stays for one request");
    }
    // Without a session nothing is sent on; a cookie alone opens nothing elsewhere.
    let path = format!("/console/charges/{}", id_in(1).txid());
    let request = Request::builder().uri(path).header("cookie", format!("{COOKIE_NAME}=nothing"));
    assert_eq!(
        read(ask(second.operators, request, "").await).await.1,
        json!({ "by": "first", "name": null, "form": null })
    );
}

type Authority = rcgen::CertifiedIssuer<'static, rcgen::KeyPair>;

/// Certificates of a process: one authority signed its own, it accepts those of another.
fn certify(folder: &std::path::Path, signed_by: &Authority, accepts: &Authority) -> Arc<MutualTls> {
    let key = rcgen::KeyPair::generate().unwrap();
    let made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, signed_by).unwrap();
    let own = TlsFiles { certificates: folder.join("chain.pem"), key: folder.join("key.pem") };
    std::fs::write(&own.certificates, made.pem()).unwrap();
    std::fs::write(&own.key, key.serialize_pem()).unwrap();
    std::fs::write(folder.join("ca.pem"), accepts.as_ref().pem()).unwrap();
    Arc::new(MutualTls::open(own, folder.join("ca.pem"), Gauge::default()).unwrap())
}

fn authority() -> Authority {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test]
async fn over_tls_only_processes_with_certificates_of_one_authority_speak() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (authority(), authority());
    let owner = node("owner", KEY, Some(certify(folder.path(), &ours, &ours))).await;
    owner.owners.set(1, Owner::Here);
    let cases = [
        (Some(certify(folder.path(), &ours, &ours)), 200, ""),
        (Some(certify(folder.path(), &theirs, &ours)), 503, "store_unavailable"),
        (Some(certify(folder.path(), &ours, &theirs)), 503, "store_unavailable"),
    ];
    for (tls, status, expected) in cases {
        let asked = node("asked", KEY, tls).await;
        asked.owners.set(1, Owner::At(owner.peers.to_string()));
        let answer = ask(asked.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await;
        assert_eq!(code(&read(answer).await), (status, expected));
    }
    assert_eq!(owner.arrivals(), 1);
}

/// A connection on which the other process has said nothing yet carries no request: so it is known
/// that none was carried out.
#[tokio::test]
async fn a_process_that_is_not_understood_was_sent_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority();
    let tls = || certify(folder.path(), &ours, &ours);
    for (of_asked, of_owner, key, expected) in [
        (None, Some(tls()), KEY, "speaks TLS, and this one does not"),
        (Some(tls()), None, KEY, "speaks no TLS, and this one does"),
        (None, None, [8; 32], "another master key"),
    ] {
        let (asked, owner) = (node("asked", KEY, of_asked).await, node("owner", key, of_owner).await);
        owner.owners.set(1, Owner::Here);
        asked.owners.set(1, Owner::At(owner.peers.to_string()));
        let answer = ask(asked.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await;
        assert_eq!(code(&read(answer).await), (503, "store_unavailable"), "{expected}");
        assert_eq!((asked.client.tries("lost"), owner.arrivals()), (0, 0), "{expected}");
        let error = asked.client.process_at(&owner.peers.to_string()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        // The request goes as soon as they agree.
        let agreeing = node("agreeing", KEY, asked.client.tls()).await;
        agreeing.owners.set(1, Owner::Here);
        asked.owners.set(1, Owner::At(agreeing.peers.to_string()));
        let echoed = read(ask(asked.merchants, of_merchant(1, Method::POST, "/api/charges"), "{}").await).await.1;
        assert_eq!(echoed["by"], "agreeing");
        assert_eq!(asked.client.process_at(&agreeing.peers.to_string()).await.unwrap(), "agreeing");
    }
}
