//! Files beside the journal after a kill, their modes, and a server that may open few files.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, Server, must_verify};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(120);

/// The ids of the events that a receiver got.
type Heard = Arc<Mutex<Vec<String>>>;

async fn receiver() -> (String, Heard) {
    let heard = Heard::default();
    let hearing = Arc::clone(&heard);
    let hear = move |headers: HeaderMap| {
        let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        hearing.lock().unwrap().push(id);
        std::future::ready(StatusCode::NO_CONTENT)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(hear)).await });
    (url, heard)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How far webhooks were delivered is durable within seconds, so that a kill repeats those of the
/// last seconds and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_repeats_no_webhook_of_long_ago() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let mut server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    let (url, heard) = receiver().await;
    let keys = format!("/ops/merchants/{}/api-keys", callers.merchant);
    operate(&client(), &server, &keys, &json!({"webhook_url": url})).await.unwrap();
    callers.charge(&server, 4, 100).await;
    let count = || heard.lock().unwrap().len();
    until("the first events", || count() >= 20).await;
    let long_ago: BTreeSet<String> = heard.lock().unwrap().iter().cloned().collect();
    let kept_bytes = || std::fs::metadata(folder.path().join("cursors")).unwrap().len();
    // Each time the progress of later events is on the disk, it has that of the earlier ones as
    // well.
    for _ in 0..3 {
        let (before, kept) = (count(), kept_bytes());
        callers.charge(&server, 4, 12).await;
        until("later events", || count() > before).await;
        until("progress on the disk", || kept_bytes() > kept).await;
    }
    server.kill();
    server.wait();
    let before = count();
    server = Server::start(&launch).await.unwrap();
    callers.charge(&server, 4, 12).await;
    until("events after the kill", || count() >= before + 4).await;
    let after: BTreeSet<String> = heard.lock().unwrap()[before..].iter().cloned().collect();
    let repeated: Vec<_> = after.intersection(&long_ago).collect();
    assert!(repeated.is_empty(), "{} of {} were delivered again", repeated.len(), long_ago.len());
    server.stop().unwrap();
    must_verify(folder.path()).unwrap();
}

/// More idle connections than files may be open: the process lives, charges go on, and the index is
/// written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_take_the_files_of_the_store() {
    let own = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: own.maximum, ..own }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with_open_files_max(1_024);
    let server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    // These keep their connections.
    callers.charge(&server, 2, 20).await;
    let address = server.public.trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    for _ in 0..1_200 {
        let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(&address)).await;
        idle.push(connected.expect("the system queues connections").unwrap());
    }
    let runs = || std::fs::read_dir(folder.path().join("files")).unwrap().count();
    let before = runs();
    callers.charge(&server, 2, 400).await;
    until("a run of the index", || runs() > before).await;
    assert!(server.ended_within(Duration::ZERO).is_none(), "{}", server.said());
    assert!(callers.acknowledged() >= 400, "{} of 420 were acknowledged", callers.acknowledged());
    drop(idle);
    server.stop().unwrap();
    must_verify(folder.path()).unwrap();
}

/// The data are for their owner alone, also in a folder that others could enter before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_may_read_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 300).await;
    server.stop().unwrap();
    let mut seen = 0;
    only_for_the_owner(&data, &mut seen);
    assert!(seen > 10, "{seen} files");
}

fn only_for_the_owner(path: &Path, seen: &mut usize) {
    let metadata = std::fs::metadata(path).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    *seen += 1;
    if metadata.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| only_for_the_owner(&entry.unwrap().path(), seen));
    }
}
