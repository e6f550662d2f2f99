//! Clients that do not behave: who do not read, send slowly, guess credentials, or break HTTP. The
//! others are served meanwhile.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use web::guards::rate_limit::RateLimitSettings;

use crate::world::*;

/// What one connection may have waiting: hyper's buffer and one part more.
const WAITING_ON_A_CONNECTION: u64 = (64 + 16) * 1024;

/// By when the server has cut a connection of which nothing is read: 20 s, and some more.
const CUT_AFTER: Duration = Duration::from_secs(25);
/// How often such connections are made in one test.
const ROUNDS_MAX: u32 = 10;

/// A connection whose client has a very small receive buffer.
async fn connected(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(address).await.unwrap()
}

/// Sends what is to be sent and reads until the server closes; what it had read before matters no
/// more.
async fn exchanged(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may stop reading once it has seen enough.
    let _cut_short = stream.write_all(request).await;
    answer(&mut stream).await
}

async fn answer(stream: &mut TcpStream) -> String {
    let (mut answer, mut part) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        answer.extend_from_slice(&part[..count]);
    }
    String::from_utf8(answer).unwrap()
}

async fn metric(world: &World, name: &str) -> u64 {
    let text = world.send(Method::GET, "/metrics", &[], "").await.text;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Connections that ask for much and read nothing.
struct SilentClients {
    streams: Vec<TcpStream>,
    begun: Instant,
    rounds: u32,
}

impl SilentClients {
    async fn of(world: &World, count: usize) -> Self {
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let mut stream = connected(world.address_of("/openapi.json")).await;
            // Requests that follow each other, so that what the system keeps for a client is full.
            let request = "GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(16);
            stream.write_all(request.as_bytes()).await.unwrap();
            streams.push(stream);
        }
        Self { streams, begun: Instant::now(), rounds: 1 }
    }

    /// New ones in place of those that the server has cut, as a busy machine may take longer than
    /// that to answer a single one.
    async fn begin_again_when_cut(&mut self, world: &World) {
        if self.begun.elapsed() > CUT_AFTER {
            assert!(self.rounds < ROUNDS_MAX, "what waits was never seen");
            let count = self.streams.len();
            self.streams.clear();
            *self = Self { rounds: self.rounds + 1, ..Self::of(world, count).await };
        }
    }
}

#[tokio::test]
async fn what_is_not_read_is_not_kept_for_each_connection() {
    const CLIENTS: u64 = 32;
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let length = world.send(Method::GET, "/openapi.json", &[], "").await.text.len() as u64;
    assert!(length > 4 * WAITING_ON_A_CONNECTION, "{length} bytes say nothing");
    let mut silent = SilentClients::of(&world, CLIENTS as usize).await;
    // Others are served meanwhile. Little waits where the system's buffer is full near the end of
    // an answer.
    while metric(&world, "centavo_http_waiting_bytes").await < CLIENTS * WAITING_ON_A_CONNECTION / 16 {
        merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
        silent.begin_again_when_cut(&world).await;
    }
    let waiting = metric(&world, "centavo_http_waiting_bytes").await;
    assert!(waiting <= CLIENTS * WAITING_ON_A_CONNECTION, "{waiting} bytes wait");
    drop(silent);
    world.check_books().await;
}

/// A thousand such clients ask for gigabytes. What waits for all of them is bounded, and others are
/// served.
#[tokio::test]
async fn what_waits_for_a_thousand_clients_is_bounded_in_sum() {
    const CLIENTS: usize = 1_000;
    const WAITING_IN_ALL: u64 = 64 << 20;
    let own = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: own.maximum, ..own }).unwrap();
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let length = world.send(Method::GET, "/openapi.json", &[], "").await.text.len() as u64;
    assert!(16 * length * CLIENTS as u64 > 64 * WAITING_IN_ALL, "{length} bytes say nothing");
    let mut silent = SilentClients::of(&world, CLIENTS).await;
    let (mut most, mut looks) = (0, 0);
    while most < WAITING_IN_ALL / 4 || looks < 20 {
        merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
        let waiting = metric(&world, "centavo_http_waiting_bytes").await;
        assert!(waiting <= WAITING_IN_ALL, "{waiting} bytes wait");
        (most, looks) = (most.max(waiting), looks + 1);
        silent.begin_again_when_cut(&world).await;
    }
    drop(silent);
    world.check_books().await;
}

#[tokio::test]
async fn one_key_cannot_take_the_room_of_all_bodies() {
    let world = World::sandbox().await;
    let (slow, other) = (world.merchant().await, world.merchant().await);
    let address = world.address_of("/api/card");
    let mut streams = Vec::new();
    for _ in 0..80 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /api/card HTTP/1.1\r\nhost: a\r\ntoken: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{{",
            slow.key,
            4 << 20
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // All these bodies are on their way once one that came after them has been answered.
    let late = "POST /api/card HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n";
    let late = late.replacen("\r\n\r\n", &format!("\r\nconnection: close\r\ntoken: {}\r\n\r\n", slow.key), 1);
    assert!(exchanged(address, late.as_bytes()).await.starts_with("HTTP/1.1 415"), "its body was read");
    for _ in 0..10 {
        other.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
        slow.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    }
    other.recipient("Ana", 1).await;
    // They are given up, since nothing more comes.
    let answer_text = answer(&mut streams.pop().unwrap()).await;
    assert!(answer_text.starts_with("HTTP/1.1 408") && answer_text.contains("\"request_timeout\""), "{answer_text}");
    world.check_books().await;
}

#[tokio::test]
async fn a_body_is_framed_in_one_way() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let address = world.address_of("/api/pix");
    let before = world.trace(&[&merchant]).await;
    let body = pix("90.00").to_string();
    let sent = async |codings: &[&str]| {
        let codings: String = codings.iter().map(|coding| format!("transfer-encoding: {coding}\r\n")).collect();
        let request = format!(
            "POST /api/pix HTTP/1.1\r\nhost: a\r\ntoken: {}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             {codings}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            merchant.key,
            body.len()
        );
        exchanged(address, request.as_bytes()).await
    };
    for codings in [&["chunked", "chunked"][..], &["chunked, chunked"], &["gzip, chunked"], &["identity", "chunked"]] {
        let answer = sent(codings).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{codings:?}: {answer}");
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
    assert!(sent(&["Chunked"]).await.starts_with("HTTP/1.1 201"));
}

#[tokio::test]
async fn two_million_numbers_are_not_parsed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let numbers = format!("{{\"amount\": [{}1]}}", "1,".repeat(2_000_000));
    let refused = merchant.post_raw("/api/card", &[], numbers).await.refused(400, "invalid_json");
    assert_eq!(refused["detail"], "The body has more than 100000 values.");
}

/// Large bodies of one merchant without a pause: each is refused, and the other merchant's charges
/// are answered meanwhile.
#[tokio::test]
async fn others_are_answered_beside_bodies_of_two_million_numbers() {
    let world = World::sandbox().await;
    let (large, other) = (world.merchant().await, world.merchant().await);
    let numbers = format!("{{\"amount\": [{}1]}}", "1,".repeat(2_000_000));
    let (is_over, refused) = (Cell::new(false), Cell::new(0));
    let send = async || {
        while !is_over.get() {
            large.post_raw("/api/card", &[], numbers.clone()).await.refused(400, "invalid_json");
            refused.set(refused.get() + 1);
        }
    };
    let charge = async {
        let mut charged = 0;
        while charged < 40 || refused.get() < 12 {
            other.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
            charged += 1;
        }
        is_over.set(true);
    };
    tokio::join!(send(), send(), send(), send(), charge);
    world.check_books().await;
}

#[tokio::test]
async fn guessing_is_slowed_down_and_refused_and_who_is_right_passes() {
    let world = World::with_settings(|settings| settings.rate_limits = Some(RateLimitSettings::default())).await;
    let merchant = world.merchant().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (path, label) in [("/api/balance", "merchants"), ("/ops/queue", "operators")] {
        let mut asking = JoinSet::new();
        for number in 0..400 {
            let url = format!("http://{}{path}", world.address_of(path));
            let request = client.get(url).header("authorization", format!("Bearer wrong-{number}"));
            asking.spawn(async move {
                let answer = request.send().await.unwrap();
                let retry_after = answer.headers().get("retry-after").cloned();
                (answer.status().as_u16(), retry_after.is_some())
            });
        }
        let answers = asking.join_all().await;
        let count = |expected| answers.iter().filter(|answer| **answer == expected).count();
        let (unauthorized, refused) = (count((401, false)), count((429, true)));
        assert_eq!(unauthorized + refused, 400);
        assert!(refused > 0, "all were answered");
        let name = format!("centavo_http_unauthorized_total{{listener=\"{label}\"}}");
        assert_eq!(metric(&world, &name).await, 400);
        // The same address, with a right credential.
        merchant.get("/api/balance").await.expect(200);
        world.ops_get("/ops/queue").await.expect(200);
        // What is no guess is answered as ever.
        world.send(Method::GET, path, &[], "").await.refused(401, "unauthorized");
    }
    let refused = world.send(Method::GET, "/api/balance", &[("token", "wrong")], "").await;
    assert!([401, 429].contains(&refused.status), "{}", refused.text);
}

#[tokio::test]
async fn requests_that_break_http_are_told_so() {
    let world = World::sandbox().await;
    let key = format!("token: {}\r\nconnection: close\r\n", world.merchant().await.key);
    let head = |hosts: &str| format!("GET /api/balance HTTP/1.1\r\n{hosts}{key}\r\n");
    let long = format!("host: a\r\nx-long: {}\r\n", "x".repeat(70_000));
    let many = format!("host: a\r\n{}", "x-many: x\r\n".repeat(200));
    let address = world.address_of("/api/balance");
    for (hosts, status) in
        [("host: a\r\n", 200), ("", 400), ("host: a\r\nhost: a\r\n", 400), (&long, 431), (&many, 431)]
    {
        let answer = exchanged(address, head(hosts).as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        let code = match status {
            400 => "validation_failed",
            431 if hosts.len() > 65_000 => "headers_too_large",
            // Of more than 100 headers hyper says it without a body.
            _ => continue,
        };
        let body: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!([&body["code"], &body["instance"]], [code, "/api/balance"]);
    }
    let old = exchanged(address, format!("GET /api/balance HTTP/1.0\r\n{key}\r\n").as_bytes()).await;
    assert!(old.contains(" 200 OK\r\n"), "{old}");
}

#[tokio::test]
async fn metrics_and_health_stay_off_the_merchants_listener() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for path in ["/metrics", "/healthz", "/readyz", "/ops/queue"] {
        for token in [merchant.key.as_str(), OPS_TOKEN] {
            let request =
                format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n");
            let answer = exchanged(world.address_of("/api"), request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        }
    }
}
