//! The commands for a terminal beside a running server, as programs: `listen`, `trigger`, and the
//! end of `demo`.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use ledger::webhook_events::WebhookEventKind;
use serde_json::{Value, json};
use sha2::Sha256;
use strum::VariantArray as _;
use testkit::server::{Launch, OPS_TOKEN, Server, centavo};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// A local program that receives webhooks.
#[derive(Default)]
struct Receiver {
    heard: Mutex<Vec<(HeaderMap, Bytes)>>,
    came: Notify,
}

impl Receiver {
    async fn listen() -> (Arc<Self>, String) {
        let receiver = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
        let router = Router::new().fallback(Self::hear).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (receiver, url)
    }

    async fn hear(State(receiver): State<Arc<Self>>, headers: HeaderMap, body: Bytes) -> StatusCode {
        receiver.heard.lock().unwrap().push((headers, body));
        receiver.came.notify_one();
        StatusCode::ACCEPTED
    }

    /// The first `count` requests.
    async fn heard(&self, count: usize) -> Vec<(HeaderMap, Bytes)> {
        let waited = async {
            while self.heard.lock().unwrap().len() < count {
                self.came.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.expect("every event comes");
        self.heard.lock().unwrap().clone()
    }
}

/// The event of a webhook whose two signatures are right.
fn verified((headers, body): &(HeaderMap, Bytes), secret: &str) -> Value {
    let header = |name: &str| headers[name].to_str().unwrap();
    let mac = |key: &[u8], text: &[u8]| {
        Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes()
    };
    let hex: String = mac(secret.as_bytes(), body).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header("x-service-signature"), hex);
    let signed = [header("webhook-id").as_bytes(), b".", header("webhook-timestamp").as_bytes(), b".", body].concat();
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(mac(&key, &signed))));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(header("webhook-timestamp").parse().unwrap()) < 300);
    assert_eq!(header("content-type"), "application/json");
    serde_json::from_slice(body).unwrap()
}

/// A command that is killed when it is dropped, and what it printed so far.
struct Printing {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Printing {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (stdout, lines) = (child.stdout.take().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let sink = Arc::clone(&lines);
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| sink.lock().unwrap().push(line));
        });
        Self { child, lines }
    }

    /// The first line that contains a text, once it was printed.
    async fn line(&self, with: &str) -> String {
        let find = || self.lines.lock().unwrap().iter().find(|line| line.contains(with)).cloned();
        let waited = async {
            loop {
                match find() {
                    Some(line) => return line,
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, waited).await;
        found.unwrap_or_else(|_| panic!("no `{with}` in {:#?}", self.lines.lock().unwrap()))
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        let _has_ended = (self.child.kill(), self.child.wait());
    }
}

/// The tokens of a server that two operators serve.
fn two_operators() -> String {
    format!("ana:{OPS_TOKEN},rui:second-{OPS_TOKEN}")
}

fn trigger(event: &str, server: &Server, key: Option<&str>) -> Output {
    let mut command = Command::new(centavo());
    command.args(["trigger", event, "--url", &server.public, "--ops-url", &server.operations]);
    command.env("CENTAVO_OPS_TOKEN", two_operators()).env_remove("CENTAVO_API_KEY");
    command.args(key.map(|key| ["--key", key]).into_iter().flatten());
    command.output().unwrap()
}

async fn call(method: reqwest::Method, url: String, credential: &str, body: Value) -> Value {
    let request = reqwest::Client::new().request(method, url).bearer_auth(credential).json(&body);
    request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
}

/// A new account's API key.
async fn account(server: &Server, webhook: Option<&str>) -> Value {
    let url = format!("{}/ops/merchants", server.operations);
    let body = json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
    let merchant = call(reqwest::Method::POST, url.clone(), OPS_TOKEN, body).await;
    let keys = format!("{url}/{}/api-keys", merchant["id"].as_str().unwrap());
    call(reqwest::Method::POST, keys, OPS_TOKEN, json!({"webhook_url": webhook})).await
}

async fn events(server: &Server, key: &str) -> Vec<Value> {
    let url = format!("{}/api/events?after=0&per_page=100", server.public);
    call(reqwest::Method::GET, url, key, Value::Null).await["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_can_be_triggered() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with("CENTAVO_OPS_TOKEN", two_operators());
    let launch = launch.with("CENTAVO_OPS_ROLES", "ana=admin,rui=admin");
    let server = Arc::new(Server::start(&launch).await.unwrap());
    for kind in WebhookEventKind::VARIANTS {
        let (name, shared) = (kind.name(), Arc::clone(&server));
        let done = tokio::task::spawn_blocking(move || trigger(name, &shared, None)).await.unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&done.stderr));
        let key = said.split_once("API key: ").unwrap().1.lines().next().unwrap();
        let happened = events(&server, key).await;
        let line = happened.iter().find(|event| event["event"] == name);
        let line = line.unwrap_or_else(|| panic!("{name} is not among {happened:?}"));
        let last = said.lines().last().unwrap();
        assert_eq!(last, format!("{name}  #{}  {}", line["sequence"], line["id"].as_str().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_triggered_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let failed = |event: &str, key: Option<&str>| {
        let done = trigger(event, &server, key);
        assert!(!done.status.success());
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    assert!(failed("charge.payed", None).contains("possible values: charge.paid"));
    let foreign = failed("charge.paid", Some("test_0123"));
    assert!(
        foreign.contains("GET /api/events?per_page=1 was answered 401") && foreign.contains("unauthorized"),
        "{foreign}"
    );
    let mut listen = Command::new(centavo());
    listen.args(["listen", "--url", &server.public, "--key", "test_0123"]);
    let refused = String::from_utf8_lossy(&listen.output().unwrap().stderr).into_owned();
    assert!(refused.contains("was answered 401") && refused.contains("that of --key"), "{refused}");
}

/// Passes connections on to a server that moves.
async fn moving(upstream: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let to = upstream.lock().unwrap().trim_start_matches("http://").to_owned();
            tokio::spawn(async move {
                // Where there is no server, the connection just ends.
                if let Ok(mut server) = TcpStream::connect(to).await {
                    let _either_has_ended = copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_forwarded_as_webhooks_across_a_restart() {
    let ((direct, webhook), (receiver, forward_to)) = (Receiver::listen().await, Receiver::listen().await);
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let key = account(&server, Some(&webhook)).await;
    let (key, webhook_secret) = (key["api_key"].as_str().unwrap(), key["webhook_secret"].as_str().unwrap());
    let upstream = Arc::new(Mutex::new(server.public.clone()));
    let url = moving(Arc::clone(&upstream)).await;
    assert!(trigger("charge.paid", &server, Some(key)).status.success());
    let listen = Printing::start(
        Command::new(centavo())
            .args(["listen", "--url", &url, "--after", "0", "--forward-to", &forward_to])
            .env("CENTAVO_API_KEY", key)
            .env("CENTAVO_WEBHOOK_SECRET", SECRET),
    );
    receiver.heard(1).await;
    let printed = listen.line("charge.paid").await;
    assert!(printed.contains("#1 ") && printed.contains("202 in "), "{printed}");

    *upstream.lock().unwrap() = "127.0.0.1:1".to_owned();
    server.stop().unwrap();
    listen.line("It is asked again every second.").await;
    let server = Server::start(&launch).await.unwrap();
    assert!(trigger("split.available", &server, Some(key)).status.success());
    *upstream.lock().unwrap() = server.public.clone();
    listen.line("The server answers again.").await;
    // charge.paid, recipient.approved, charge.paid, split.available
    let forwarded = receiver.heard(4).await;
    let by_id = |heard: &[(HeaderMap, Bytes)]| -> BTreeMap<String, Bytes> {
        heard.iter().map(|(headers, body)| (headers["webhook-id"].to_str().unwrap().to_owned(), body.clone())).collect()
    };
    let sequences: Vec<_> = forwarded.iter().map(|one| verified(one, SECRET)["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, [1, 2, 3, 4], "each event once, in its order");
    let sent = direct.heard(4).await;
    sent.iter().for_each(|one| drop(verified(one, webhook_secret)));
    assert_eq!(by_id(&forwarded), by_id(&sent), "the same ids, and the same bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listening_begins_now_and_makes_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let key = account(&server, None).await;
    let key = key["api_key"].as_str().unwrap();
    assert!(trigger("charge.paid", &server, Some(key)).status.success());
    let (receiver, forward_to) = Receiver::listen().await;
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    let mut command = Command::new(centavo());
    command.args(["listen", "--url", &server.public, "--forward-to", &forward_to, "--key-file"]).arg(&file);
    let listen = Printing::start(&mut command);
    let secret = listen.line("signed with whsec_").await.split(' ').next_back().unwrap().to_owned();
    listen.line("after number 1.").await;
    assert!(trigger("charge.refused", &server, Some(key)).status.success());
    let heard = receiver.heard(1).await;
    assert_eq!(verified(&heard[0], &secret)["event"], "charge.refused", "earlier events are not shown");
    let nowhere = Printing::start(
        Command::new(centavo())
            .args(["listen", "--url", &server.public, "--after", "1", "--forward-to", "http://127.0.0.1:1/"])
            .env("CENTAVO_API_KEY", key),
    );
    let printed = nowhere.line("charge.refused").await;
    assert!(printed.contains("no answer: connection: Connection refused"), "{printed}");
}

fn demo(data: &Path, webhook: &str) -> Printing {
    let mut command = Command::new(centavo());
    command.args(["demo", "--charges", "3", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]);
    command.args(["--webhook", webhook, "--data"]).arg(data).env_remove("CENTAVO_OPS_TOKEN");
    Printing::start(&mut command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demonstration_sends_its_webhooks_and_ends_with_commands_that_work() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, webhook) = Receiver::listen().await;
    let demo = demo(&folder.path().join("data"), &webhook);
    let secret = demo.line("signed with whsec_").await.split(' ').next_back().unwrap().to_owned();
    // A paid PIX, and its splits that became available to three recipients.
    let heard = receiver.heard(4).await;
    let mut lines: Vec<_> =
        heard.iter().map(|one| verified(one, &secret)["event"].as_str().unwrap().to_owned()).collect();
    lines.sort();
    assert_eq!(lines, ["charge.paid", "split.available", "split.available", "split.available"]);

    let listen = demo.line(" listen --key ").await;
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {}", line.trim())]);
        command
    };
    let (receiver, other) = Receiver::listen().await;
    let listen = Printing::start(&mut shell(&listen.replace("http://127.0.0.1:8090/", &other)));
    listen.line("Waiting for events").await;
    let trigger = shell(&demo.line(" trigger refund.approved ").await).output().unwrap();
    assert!(trigger.status.success(), "{}", String::from_utf8_lossy(&trigger.stderr));
    receiver.heard(1).await;
    listen.line("refund.approved").await;
    let reference = demo.line("/reference").await;
    let page = reqwest::get(reference.trim()).await.unwrap().error_for_status().unwrap();
    assert!(page.text().await.unwrap().contains("/openapi.json"));
    let first = demo.lines.lock().unwrap().iter().find(|line| line.starts_with("  ")).cloned().unwrap();
    assert!(first.trim_start().starts_with("console") && first.contains("/console"), "{first}");
    assert!(Command::new("kill").arg(demo.child.id().to_string()).status().unwrap().success());
    demo.line("Stopped. The books stay").await;
}
