//! Files beside the journal after a kill, their modes, and a server that may open few files.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use store::testkit::power_cut::Shim;
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, Server, must_verify};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(120);

/// The ids of the events that a receiver got, and when.
type Heard = Arc<Mutex<Vec<(String, Instant)>>>;

async fn receiver() -> (String, Heard) {
    let heard = Heard::default();
    let hearing = Arc::clone(&heard);
    let hear = move |headers: HeaderMap| {
        let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        hearing.lock().unwrap().push((id, Instant::now()));
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

/// Deliveries that a kill may repeat: those of the last second.
const REPEATED: Duration = Duration::from_secs(1);
/// When servers are killed, after some seconds: progress is stored at a pace of its own.
const PHASES_MS: [u64; 3] = [0, 350, 700];
/// How many kills may find a server that was held up by other work of the machine.
const KILLS_MAX: usize = 4;

/// How far webhooks were delivered is durable within a second and the time of a sync, so that a
/// kill repeats the deliveries of that time and none from before. Another thread measures how long
/// this machine takes for a sync, and for being woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_repeats_the_webhooks_of_the_last_second_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let mut server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    let (url, heard) = receiver().await;
    let keys = format!("/ops/merchants/{}/api-keys", callers.merchant);
    operate(&client(), &server, &keys, &json!({"webhook_url": url})).await.unwrap();
    let mut phases = PHASES_MS.into_iter().map(Duration::from_millis).peekable();
    let mut too_old = Vec::new();
    while let Some(phase) = phases.peek().copied() {
        assert!(
            too_old.len() < KILLS_MAX,
            "how many were repeated, the oldest, the bound, delivered before it: {too_old:?}"
        );
        let (first, holdup) = (heard.lock().unwrap().len(), Holdup::measured_in(folder.path()));
        let begun = Instant::now();
        while begun.elapsed() < 3 * REPEATED + phase {
            callers.charge(&server, 4, 20).await;
        }
        let (killed, at_kill) = (Instant::now(), heard.lock().unwrap().len());
        let delivered: BTreeMap<String, Instant> = heard.lock().unwrap()[first..at_kill].iter().cloned().collect();
        server.kill();
        server.wait();
        let bound = REPEATED + holdup.longest();
        server = Server::start(&launch).await.unwrap();
        callers.charge(&server, 4, 12).await;
        let after = || heard.lock().unwrap()[at_kill..].iter().map(|(id, _)| id.clone()).collect::<BTreeSet<_>>();
        until("events after the kill", || after().iter().filter(|id| !delivered.contains_key(*id)).count() >= 12).await;
        let after = after();
        let ages = delivered.iter().filter(|(id, _)| after.contains(*id)).map(|(_, at)| killed - *at);
        let ages: Vec<Duration> = ages.filter(|age| *age > bound).collect();
        let long_ago = delivered.values().filter(|at| killed - **at > bound).count();
        if ages.is_empty() && long_ago > 0 {
            phases.next();
        } else {
            too_old.push((ages.len(), ages.into_iter().max(), bound, long_ago));
        }
    }
    server.stop().unwrap();
    must_verify(folder.path()).unwrap();
}

/// The longest time that a thread waited to be woken and for a sync of the disk.
struct Holdup {
    measuring: JoinHandle<Duration>,
    is_over: Arc<AtomicBool>,
}

impl Holdup {
    fn measured_in(folder: &Path) -> Self {
        const PAUSE: Duration = Duration::from_millis(50);
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, file) = (Arc::clone(&is_over), tempfile::tempfile_in(folder).unwrap());
        let measuring = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(PAUSE);
                file.write_all_at(&[7; 4_096], 0).and_then(|()| file.sync_data()).unwrap();
                longest = longest.max(begun.elapsed().saturating_sub(PAUSE));
            }
            longest
        });
        Self { measuring, is_over }
    }

    fn longest(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.measuring.join().unwrap()
    }
}

/// A disk that no longer ends a sync: the process ends with 74 and says why, and the next one has
/// all that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_hangs_ends_the_process_with_74() {
    let folder = tempfile::tempdir().unwrap();
    let (data, stuck) = (folder.path().join("data"), folder.path().join("stuck"));
    std::fs::create_dir_all(&data).unwrap();
    let shim = Shim::build();
    let launch = Launch::on(&data).with_shim(Some(&shim)).with("CENTAVO_CUT_STUCK", stuck.to_str().unwrap());
    let server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 40).await;
    std::fs::write(&stuck, "").unwrap();
    let (client, keys) = (client(), format!("/ops/merchants/{}/api-keys", callers.merchant));
    let no_body = json!({});
    let outcome = operate(&client, &server, &keys, &no_body);
    let ended = until("the end of the process", || server.ended_within(Duration::ZERO).is_some());
    let (outcome, ()) = tokio::join!(outcome, ended);
    assert!(outcome.is_err(), "what is not durable is not acknowledged: {outcome:?}");
    let ended = server.ended_within(Duration::ZERO).unwrap();
    assert_eq!(ended.status.and_then(|status| status.code()), Some(74), "{}", ended.said);
    assert!(ended.said.contains("the store has made no progress"), "{}", ended.said);
    std::fs::remove_file(&stuck).unwrap();
    let server = Server::start(&launch).await.unwrap();
    callers.reckon(&server).await.unwrap();
    callers.check_books(&server).await.unwrap();
    server.stop().unwrap();
    must_verify(&data).unwrap();
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
