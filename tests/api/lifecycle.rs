//! The program as a process: starting, stopping, starting again; sandbox and live.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::world::*;

/// How long a process may take for what it is asked.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, serving.
struct Process {
    child: Child,
    log: Box<dyn BufRead + Send>,
    /// What it said before it served.
    begun: String,
    public: String,
    operations: String,
    client: Client,
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_centavo"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CENTAVO_")) {
        command.env_remove(name);
    }
    command
        .arg("serve")
        .env("CENTAVO_DATA", folder)
        .env("CENTAVO_LISTEN", "127.0.0.1:0")
        .env("CENTAVO_OPS_LISTEN", "127.0.0.1:0")
        .env(
            "CENTAVO_OPS_TOKEN",
            "ana:token-of-operator-ana-with-32-characters,rui:token-of-operator-rui-with-32-characters",
        )
        .env("CENTAVO_OPS_ROLES", "ana=admin,rui=admin")
        .env("CENTAVO_RATE_LIMIT", "off")
        .env("CENTAVO_LOG_FORMAT", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn sandbox(folder: &Path) -> Command {
    let mut command = command(folder);
    command.env("CENTAVO_SANDBOX", "1");
    command
}

impl Process {
    /// Starts the program and waits until it says where it listens.
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (mut line, mut begun) = (String::new(), String::new());
        let serving = loop {
            begun.push_str(&line);
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "it ended before it served: {:?}", child.wait());
            let entry: Value = serde_json::from_str(&line).unwrap_or_default();
            if entry["message"] == "serving" {
                break entry.clone();
            }
        };
        let address = |name: &str| format!("http://{}", text(&serving[name]));
        let client = Client::builder().no_proxy().build().unwrap();
        Self { child, log: Box::new(log), begun, public: address("public"), operations: address("operations"), client }
    }

    async fn ops(&self, token: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.operations));
        answer(request.bearer_auth(token).json(&body)).await
    }

    async fn merchant(&self) -> String {
        let body = json!({"name": "Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": false});
        let (_, merchant) =
            self.ops("token-of-operator-ana-with-32-characters", Method::POST, "/ops/merchants", body).await;
        let path = format!("/ops/merchants/{}/api-keys", text(&merchant["id"]));
        let (_, key) = self.ops("token-of-operator-rui-with-32-characters", Method::POST, &path, json!({})).await;
        text(&key["api_key"])
    }

    async fn api(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        answer(self.client.post(format!("{}{path}", self.public)).bearer_auth(key).json(body)).await
    }

    async fn balance(&self, key: &str) -> Value {
        answer(self.client.get(format!("{}/api/balance", self.public)).bearer_auth(key)).await.1
    }

    async fn cut(&self) -> u64 {
        let (_, balance) =
            self.ops("token-of-operator-ana-with-32-characters", Method::GET, "/ops/trial-balance", json!({})).await;
        balance["cut"]["0"].as_u64().unwrap()
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Waits for the end; gives how it ended and its log.
    fn ended(&mut self) -> (ExitStatus, String) {
        let mut said = std::mem::take(&mut self.begun);
        self.log.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// Runs a program that is expected to end by itself.
fn refused(command: Command) -> String {
    ended_with(1, command)
}

fn ended_with(code: i32, mut command: Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[tokio::test]
async fn sigterm_answers_what_is_under_way_and_exits_0() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(sandbox(folder.path()));
    let key = process.merchant().await;
    let before = process.cut().await;
    let charge = card(10_000, SILENT);
    let under_way = async {
        let (status, body) = process.api(&key, "/api/card", &charge).await;
        assert_eq!((status, &body["status"]), (201, &json!("pending")));
        body
    };
    let termination = async {
        let begun = Instant::now();
        while process.cut().await == before {
            assert!(begun.elapsed() < PATIENCE, "the intent never became durable");
            tokio::task::yield_now().await;
        }
        process.terminate();
    };
    let (charge, ()) = tokio::join!(under_way, termination);
    let (status, _) = process.ended();
    assert_eq!(status.code(), Some(0));

    let process = Process::start(sandbox(folder.path()));
    let (status, found) = process.api(&key, "/api/pix", &json!({"txid": charge["txid"]})).await;
    assert_eq!((status, &found["status"]), (200, &json!("pending")));
    let (_, _) = process
        .ops(
            "token-of-operator-ana-with-32-characters",
            Method::POST,
            "/ops/sandbox/clock",
            json!({"advance_seconds": 60}),
        )
        .await;
    let (_, found) = process.api(&key, "/api/pix", &json!({"txid": charge["txid"]})).await;
    assert_eq!(found["status"], "CONCLUIDA", "a charge that was pending at the end is not forgotten");
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(sandbox(folder.path()));
    let key = process.merchant().await;
    for _ in 0..5 {
        assert_eq!(process.api(&key, "/api/card", &card(10_000, APPROVED)).await.0, 201);
    }
    let (_, moved) = process
        .ops(
            "token-of-operator-ana-with-32-characters",
            Method::POST,
            "/ops/sandbox/clock",
            json!({"advance_seconds": 86_400}),
        )
        .await;
    let expected = process.balance(&key).await;
    assert_eq!(expected["pending"], 5 * 9_403);
    process.child.kill().unwrap();
    process.child.wait().unwrap();

    let process = Process::start(sandbox(folder.path()));
    assert_eq!(process.balance(&key).await, expected);
    let (_, now) = process
        .ops(
            "token-of-operator-ana-with-32-characters",
            Method::POST,
            "/ops/sandbox/clock",
            json!({"advance_seconds": 0}),
        )
        .await;
    assert!(time(&now["now"]) >= time(&moved["now"]), "the clock went back: {now} after {moved}");
}

#[tokio::test]
async fn the_books_are_found_again_after_a_restart() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 2_000)])).await.expect(201);
    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let waiting = text(&merchant.post("/api/pix", &with_splits(pix("10.00"), &[(&ana, 10)])).await.expect(201)["txid"]);
    let now = world.advance(3_600).await;
    let (before, statement) = (world.trace(&[&merchant]).await, merchant.statement(&ana).await);
    let names = merchant.names;

    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(world.trace(&[&merchant]).await, before);
    assert_eq!(merchant.statement(&ana).await, statement);
    assert_eq!(merchant.get(&format!("/api/charges/{}", text(&paid["txid"]))).await.expect(200), paid);
    assert!(world.advance(0).await >= now, "the clock's offset is stored");
    merchant.pay(&waiting).await.expect(200);
    assert_eq!(merchant.recipient_balance(&ana).await, [1_010, 2_000]);
    world.advance(31 * DAY).await;
    assert_eq!(merchant.recipient_balance(&ana).await, [3_010, 0]);
    let new_one = world.merchant().await;
    assert_ne!(new_one.id, merchant.id);
    assert_eq!(new_one.balance().await, [0; 4]);
    world.check_books().await;
}

#[tokio::test]
async fn one_folder_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Process::start(sandbox(folder.path()));
    let said = refused(sandbox(folder.path()));
    assert!(said.contains(folder.path().to_str().unwrap()), "the folder is not named: {said}");
    assert!(["lock", "in use", "another process"].iter().any(|word| said.contains(word)), "{said}");
    assert!(!first.merchant().await.is_empty(), "the first one goes on");
    first.terminate();
    assert_eq!(first.ended().0.code(), Some(0));
}

#[tokio::test]
async fn a_folder_stays_in_the_mode_in_which_something_was_booked() {
    for is_sandbox in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let in_mode = |is_sandbox: bool| if is_sandbox { sandbox(folder.path()) } else { command(folder.path()) };
        // One who forgot to say which has lost nothing yet.
        let mut process = Process::start(in_mode(!is_sandbox));
        process.terminate();
        assert_eq!(process.ended().0.code(), Some(0));
        let mut process = Process::start(in_mode(is_sandbox));
        process.merchant().await;
        process.terminate();
        assert_eq!(process.ended().0.code(), Some(0));
        let said = refused(in_mode(!is_sandbox));
        assert!(said.contains("sandbox mode") && said.contains("live mode"), "{said}");
        let mut process = Process::start(in_mode(is_sandbox));
        process.terminate();
        assert_eq!(process.ended().0.code(), Some(0));
    }
}

#[tokio::test]
async fn a_start_warns_of_what_one_would_find_out_too_late() {
    let said_by = |mut command: Command| {
        let folder = tempfile::tempdir().unwrap();
        command.env("CENTAVO_DATA", folder.path());
        let mut process = Process::start(command);
        process.terminate();
        process.ended().1
    };
    let folder = tempfile::tempdir().unwrap();
    let warnings = |log: &str| -> Vec<String> {
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["level"] == "WARN").map(|line| text(&line["message"])).collect()
    };
    let live = warnings(&said_by(command(folder.path())));
    assert!(live.len() == 1 && live[0].contains("no rail") && live[0].contains("503"), "{live:?}");
    assert_eq!(warnings(&said_by(sandbox(folder.path()))), [""; 0]);
    let mut exposed = sandbox(folder.path());
    exposed.env("CENTAVO_OPS_LISTEN", ":0");
    let exposed = warnings(&said_by(exposed));
    assert!(exposed.len() == 1 && exposed[0].contains("can be reached from other machines"), "{exposed:?}");
}

#[tokio::test]
async fn a_log_for_people_that_is_no_terminal_has_no_colors() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    command.env("CENTAVO_LOG_FORMAT", "text").env("CENTAVO_LOG", "info,centavo=debug");
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("serving") {
        assert!(log.read_line(&mut said).unwrap() > 0, "it ended before it served: {said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("WARN") && said.contains("no rail") && !said.contains('\u{1b}'), "{said}");
}

/// Wrong keys are logged, each with a long path: more than a pipe holds.
#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    for reader_is_gone in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = sandbox(folder.path());
        command.env("CENTAVO_LOG", "info,centavo=debug");
        let mut process = Process::start(command);
        if reader_is_gone {
            process.log = Box::new(std::io::empty());
        }
        let path = format!("{}/api/{}", process.public, "wrong".repeat(2_000));
        for _ in 0..19 {
            let request = process.client.get(&path).bearer_auth("wrong").send();
            let answered =
                tokio::time::timeout(PATIENCE, request).await.expect("no request waits for the log").unwrap();
            assert!([401, 404].contains(&answered.status().as_u16()), "{answered:?}");
        }
        let key = process.merchant().await;
        assert_eq!(process.api(&key, "/api/card", &card(10_000, APPROVED)).await.0, 201);
        let metrics = process.client.get(format!("{}/metrics", process.operations)).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        let dropped = metrics.lines().find_map(|line| line.strip_prefix("centavo_log_lines_dropped_total "));
        assert_eq!(dropped.unwrap().parse::<u64>().unwrap() > 0, reader_is_gone, "{dropped:?}");
        process.terminate();
        assert_eq!(process.child.wait().unwrap().code(), Some(0));
    }
}

#[tokio::test]
async fn the_memory_is_not_dumped_and_an_empty_variable_is_unset() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = sandbox(folder.path());
    // An empty variable is one that is not set.
    command.env("CENTAVO_MASTER_KEY", "a7".repeat(32)).env("CENTAVO_PARTITIONS", "").env("CENTAVO_TLS_CERT", "");
    let mut process = Process::start(command);
    let place = format!("/proc/{}", process.child.id());
    let limits = std::fs::read_to_string(format!("{place}/limits")).unwrap();
    let core: Vec<_> = limits.lines().find(|line| line.starts_with("Max core")).unwrap().split_whitespace().collect();
    assert_eq!(core[4..6], ["0", "0"], "{limits}");
    assert!(!process.merchant().await.is_empty(), "the tokens are known all the same");
    assert!(!folder.path().join("master.key").exists(), "and so is the key");
    process.terminate();
    assert_eq!(process.ended().0.code(), Some(0));
}

#[test]
fn an_error_of_a_variable_names_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [("CENTAVO_LISTEN", "here"), ("CENTAVO_PARTITIONS", "99"), ("CENTAVO_RATE_LIMIT", "maybe")] {
        let mut command = sandbox(folder.path());
        command.env(name, value);
        let said = ended_with(2, command);
        assert!(said.contains(&format!("for '{name}'")) && said.contains(value), "{said}");
    }
}

#[tokio::test]
async fn every_line_of_a_request_has_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = sandbox(folder.path());
    command.env("CENTAVO_LOG", "info,centavo=debug");
    let mut process = Process::start(command);
    let request = process.client.get(format!("{}/api/balance", process.public)).header("x-request-id", "r-42");
    request.send().await.unwrap();
    process.terminate();
    let log = process.ended().1;
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_request: Vec<_> = lines.filter(|line| line["request_id"] == "r-42").collect();
    let answered = of_request.iter().find(|line| line["message"] == "answered").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(answered["status"], 401);
    assert_eq!((&answered["path"], &answered["level"]), (&json!("/api/balance"), &json!("DEBUG")));
}

/// A GET runs on a thread that may wait: what it logs there has the request's id as well.
#[tokio::test]
async fn a_line_of_a_thread_that_waits_has_the_id_of_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = sandbox(folder.path());
        command.env("CENTAVO_RECORDS_PER_RUN", "10");
        Process::start(command)
    };
    let mut process = start();
    let key = process.merchant().await;
    let mut charges = Vec::new();
    for _ in 0..20 {
        charges.push(text(&process.api(&key, "/api/card", &card(10_000, APPROVED)).await.1["txid"]));
    }
    process.terminate();
    process.ended();
    let mut process = start();
    for run in std::fs::read_dir(folder.path().join("files")).unwrap() {
        let run = run.unwrap().path();
        if run.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-")) {
            // In place: the process has it open.
            let file = std::fs::OpenOptions::new().write(true).open(&run).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; run.metadata().unwrap().len() as usize], 0)
                .unwrap();
        }
    }
    let address = format!("{}/ops/charges/{}", process.operations, charges[0]);
    let request = process
        .client
        .get(address)
        .bearer_auth("token-of-operator-ana-with-32-characters")
        .header("x-request-id", "r-43");
    assert_eq!(request.send().await.unwrap().status(), 200);
    process.terminate();
    let log = process.ended().1;
    let lines: Vec<_> = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let is_of_damage =
        |line: &&Value| line["message"].as_str().is_some_and(|text| text.contains("index is lost or damaged"));
    let damage = lines.iter().find(is_of_damage).unwrap_or_else(|| panic!("{log}"));
    assert_eq!(damage["request_id"], "r-43", "{log}");
}

#[tokio::test]
async fn every_named_operator_may_call_and_no_token_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(sandbox(folder.path()));
    for (token, status) in [
        ("token-of-operator-ana-with-32-characters", 200),
        ("token-of-operator-rui-with-32-characters", 200),
        ("ana", 401),
        ("ana:token-of-operator-ana-with-32-characters", 401),
    ] {
        assert_eq!(process.ops(token, Method::GET, "/ops/trial-balance", json!({})).await.0, status, "{token}");
    }
    let key = process.merchant().await;
    assert_eq!(process.api(&key, "/api/card", &card(10_000, APPROVED)).await.0, 201);
    assert_eq!(process.api(&key, "/api/card", &card(10_000, REFUSED)).await.0, 402);
    process.terminate();
    let (_, log) = process.ended();
    assert!(log.contains("stopping"), "{log}");
    // Times and ids may have any digits.
    let text = log.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "timestamp" | "request_id"));
        line.to_string()
    });
    let text: String = text.collect();
    for secret in ["token-of", &key, APPROVED, REFUSED, "737", "12345678909", "João"] {
        assert!(!text.contains(secret), "{secret} in the log: {text}");
    }
}

#[tokio::test]
async fn without_a_token_one_is_made_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("operator.token");
    let start = || {
        let mut command = sandbox(folder.path());
        command.env_remove("CENTAVO_OPS_TOKEN").env_remove("CENTAVO_OPS_ROLES");
        Process::start(command)
    };
    let status =
        async |process: &Process, token: &str| process.ops(token, Method::GET, "/ops/trial-balance", json!({})).await.0;
    let mut process = start();
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(process.begun.contains("operator.token") && !process.begun.contains(&token), "{}", process.begun);
    assert_eq!(status(&process, &token).await, 200);
    process.terminate();
    assert!(!process.ended().1.contains(&token));
    let mut process = start();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);
    assert_eq!(status(&process, &token).await, 200);
    process.terminate();
    assert_eq!(process.ended().0.code(), Some(0));
}

#[tokio::test]
async fn secrets_come_from_files_and_sighup_reads_the_tokens_again() {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, key) = (folder.path().join("tokens"), folder.path().join("key"));
    std::fs::write(&tokens, "ana:token-of-operator-ana-with-32-characters\n").unwrap();
    std::fs::write(&key, "0a".repeat(32)).unwrap();
    let data = folder.path().join("data");
    let mut command = sandbox(&data);
    command.env_remove("CENTAVO_OPS_TOKEN").env_remove("CENTAVO_OPS_ROLES");
    command
        .env("CENTAVO_OPS_TOKEN_FILE", &tokens)
        .env("CENTAVO_MASTER_KEY_FILE", &key)
        .env("CENTAVO_OPS_ROLES", "ana=admin");
    let mut process = Process::start(command);
    assert!(!data.join("master.key").exists() && !data.join("operator.token").exists());
    let status =
        async |process: &Process, token: &str| process.ops(token, Method::GET, "/ops/trial-balance", json!({})).await.0;
    assert_eq!(status(&process, "token-of-operator-ana-with-32-characters").await, 200);
    assert_eq!(status(&process, "token-of-operator-rui-with-32-characters").await, 401);
    let mut log = String::new();
    for (content, expected) in
        [("ana:token-of-operator-rui-with-32-characters", "were read again"), ("short", "could not be read again")]
    {
        std::fs::write(&tokens, content).unwrap();
        process.signal("-HUP");
        while !log.contains(expected) {
            assert!(process.log.read_line(&mut log).unwrap() > 0, "{log}");
        }
        assert_eq!(status(&process, "token-of-operator-ana-with-32-characters").await, 401);
        assert_eq!(status(&process, "token-of-operator-rui-with-32-characters").await, 200);
    }
    process.terminate();
    let (ended, rest) = process.ended();
    assert_eq!(ended.code(), Some(0));
    log += &rest;
    assert!(!log.contains("token-of"), "{log}");
}

#[tokio::test]
async fn a_service_manager_learns_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let seen = || {
        let mut bytes = [0; 64];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap().trim().to_owned()
    };
    let until = |wanted: &str| while seen() != wanted {};
    let mut command = sandbox(&folder.path().join("data"));
    command.env("NOTIFY_SOCKET", &path);
    let mut process = Process::start(command);
    until("READY=1");
    until("WATCHDOG=1");
    process.terminate();
    until("STOPPING=1");
    assert_eq!(process.ended().0.code(), Some(0));
}

#[tokio::test]
async fn a_check_of_the_settings_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("centavo.toml"));
    std::fs::write(&file, "log = 'warn'\ncard_rate_limit = 7\n").unwrap();
    let check = |changes: &[(&str, &str)]| {
        let mut command = sandbox(&data);
        command.args(["--check", "--ballast-bytes", "5"]).env("CENTAVO_CONFIG", &file).stdout(Stdio::piped());
        command.env_remove("CENTAVO_RATE_LIMIT");
        command.envs(changes.iter().copied());
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
    };
    let (code, said) = check(&[]);
    assert_eq!(code, Some(0), "{said}");
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    let file = file.to_str().unwrap();
    for row in [
        ["sandbox", "on", "CENTAVO_SANDBOX"],
        ["log", "warn", file],
        ["card_rate_limit", "7", file],
        ["other_rate_limit", "600", "default"],
        ["ballast_bytes", "5", "--ballast-bytes"],
        ["store", "sled", "default"],
    ] {
        assert!(rows.iter().any(|found| found == &row), "{row:?} in {said}");
    }
    assert!(rows.contains(&vec!["operators", "ana,rui"]) && !said.contains("token-of-operator"), "{said}");
    assert!(said.ends_with("A server starts with these settings.\n"), "{said}");
    assert!(!data.exists(), "a check makes nothing");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let cases = [
        ("CENTAVO_LISTEN", address.as_str(), "error: CENTAVO_LISTEN: can't listen on"),
        ("CENTAVO_DATA", "/dev/null/data", "error: the data directory /dev/null/data"),
        ("CENTAVO_SANDBOX_DIR", "/dev/null/shared", "error: the directory of the sandbox /dev/null/shared"),
        ("CENTAVO_MASTER_KEY", "short", "error: the master key: CENTAVO_MASTER_KEY must be"),
        ("CENTAVO_MASTER_KEY_FILE", "/nowhere", "error: the file /nowhere of a secret"),
        ("CENTAVO_OPS_TOKEN", "one,two", "centavo: the operators' tokens are wrong"),
    ];
    for (name, value, expected) in cases {
        let (code, said) = check(&[(name, value)]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let live = [("CENTAVO_SANDBOX", "off"), ("CENTAVO_OPS_LISTEN", "0.0.0.0:0"), ("CENTAVO_RATE_LIMIT", "off")];
    let (code, said) = check(&live);
    assert_eq!(code, Some(0), "a warning is no error: {said}");
    for expected in [
        "warning: no rail is configured",
        "warning: CENTAVO_OPS_LISTEN: 0.0.0.0:0 can be reached",
        "warning: requests and",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let served = "warning: /";
    assert!(!said.contains(served), "{said}");
    std::fs::create_dir_all(data.join("sandbox")).unwrap();
    let (code, said) = check(&live);
    assert!(code == Some(0) && said.contains(served) && said.contains("has served a sandbox"), "{said}");
    assert!(!check(&[]).1.contains(served));
}

#[tokio::test]
async fn a_check_names_private_keys_that_others_can_read_and_a_place_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(vec!["pay.test".to_owned()]).unwrap();
    std::fs::write(path("chain"), made.cert.pem()).unwrap();
    for name in ["key", "ops-key"] {
        std::fs::write(path(name), made.signing_key.serialize_pem()).unwrap();
    }
    let check = || {
        let mut command = sandbox(&folder.path().join("data"));
        command.arg("--check").stdout(Stdio::piped());
        command.env("CENTAVO_TLS_CERT", path("chain")).env("CENTAVO_TLS_KEY", path("key"));
        command.env("CENTAVO_OPS_TLS_CERT", path("chain")).env("CENTAVO_OPS_TLS_KEY", path("ops-key"));
        command.env("CENTAVO_CHECKPOINTS_TO", path("auditor"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let mode = |name: &str, mode| {
        std::fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    let open = |name: &str| format!("warning: {}: others than its owner may read it", path(name));
    let no_place = format!("warning: CENTAVO_CHECKPOINTS_TO: {} is no folder", path("auditor"));
    mode("key", 0o640);
    mode("ops-key", 0o600);
    let said = check();
    assert!(said.contains(&open("key")) && !said.contains(&open("ops-key")) && said.contains(&no_place), "{said}");
    for (name, file, variable) in
        [("tls_key", "key", "CENTAVO_TLS_KEY"), ("ops_tls_key", "ops-key", "CENTAVO_OPS_TLS_KEY")]
    {
        let file = path(file);
        let row = [name, file.as_str(), variable];
        assert!(said.lines().any(|line| line.split_whitespace().eq(row)), "{name}: {said}");
    }
    mode("key", 0o600);
    mode("ops-key", 0o644);
    std::fs::create_dir(path("auditor")).unwrap();
    let said = check();
    assert!(!said.contains(&open("key")) && said.contains(&open("ops-key")) && !said.contains(&no_place), "{said}");
}

#[tokio::test]
async fn wrong_settings_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, value: &str| {
        let mut command = sandbox(folder.path());
        command.env(name, value);
        command
    };
    for (name, value, expected) in [
        ("CENTAVO_STORE", "postgres://localhost/centavo", "a database needs a master key"),
        ("CENTAVO_STORE", "floppy", "sled"),
        ("CENTAVO_OPS_TOKEN", "one,two", "name:token"),
        ("CENTAVO_WEBHOOK_ALLOW", "10.0.0.0/99", "networks"),
        ("CENTAVO_CONFIG", "/nowhere/centavo.toml", "/nowhere/centavo.toml"),
        ("CENTAVO_MASTER_KEY", "short", "64 hexadecimal digits"),
        ("CENTAVO_OPS_TOKEN", "fifteen-letters", "at least 32 characters"),
        ("CENTAVO_DATA", "/dev/null/data", "/dev/null/data: it can't be written to"),
    ] {
        let said = refused(with(name, value));
        assert!(said.contains(expected), "{name}={value}: {said}");
    }
    for (name, value, expected) in [("CENTAVO_LOG", "loud", "no level"), ("CENTAVO_LISTEN", "8080", "localhost:8080")] {
        let said = ended_with(2, with(name, value));
        assert!(said.contains(expected), "{name}={value}: {said}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(with("CENTAVO_LISTEN", &address));
    let parts = [&address, "CENTAVO_LISTEN", "another program listens there"];
    assert!(parts.iter().all(|part| said.contains(*part)), "{said}");
}

#[tokio::test]
async fn a_live_server_without_a_rail_mints_no_money() {
    let world = World::live().await;
    let merchant = world.merchant().await;
    assert!(merchant.key.starts_with("live_"));
    let ana = merchant.recipient("Ana", 1).await;
    let before = world.trace(&[&merchant]).await;
    for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("10.00"))] {
        for charge in [charge.clone(), with_splits(charge, &[(&ana, 1)])] {
            let answer = merchant.post(path, &charge).await;
            assert_eq!(answer.header("x-sandbox"), None);
            answer.refused(503, "rail_not_configured");
        }
    }
    let txid = "01890000000080008000000000000000";
    merchant.pay(txid).await.refused(404, "not_found");
    world.ops_post("/ops/sandbox/clock", &json!({"advance_seconds": 1})).await.refused(404, "not_found");
    let test_key = merchant.key.replace("live_", "test_");
    world.send(Method::GET, "/api/balance", &[("token", &test_key)], "").await.refused(401, "unauthorized");
    merchant.post("/api/pix", &json!({"txid": txid})).await.refused(404, "charge_not_found");
    merchant
        .post("/api/card", &with(&card(1, APPROVED), "/amount", json!("1")))
        .await
        .refused(400, "validation_failed");
    assert_eq!(world.trace(&[&merchant]).await, before);
}

#[tokio::test]
async fn people_and_cards_stand_nowhere_in_the_clear() {
    let world = World::sandbox().await;
    let folder = world.folder();
    let merchant = world
        .open(json!({"name": "Nome Da Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true}))
        .await;
    let ana = merchant.recipient("Recebedora Sigilosa", 1).await;
    let charge = with_splits(card(10_000, "5555555555554444"), &[(&ana, 100)]);
    merchant
        .post_keyed("/api/card", "chave-idempotente", &with(&charge, "/customer/name", json!("Pagador Sigiloso")))
        .await
        .expect(201);
    merchant.paid_pix(&with(&pix("10.00"), "/nome", json!("Pagadora Sigilosa"))).await;
    let cashout =
        json!({"amount": 200, "pix_key": "destino@example.com", "pix_key_type": "email", "info": "Motivo Sigiloso"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    world.advance(0).await;
    let in_the_clear = "https://example.com/no-secret";
    let path = format!("/ops/merchants/{}/api-keys", merchant.id);
    let made = world.ops_post(&path, &json!({"webhook_url": in_the_clear})).await.expect(201);
    let (key, webhook_secret) = (merchant.key.clone(), text(&made["webhook_secret"]));
    let _world = world.restarted().await;
    let bytes = bytes_of(&folder);
    let stands = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(stands(in_the_clear), "what is no secret is found, so that a secret would be");
    for secret in [
        "Sigilos",
        "Nome Da Loja",
        "5555555555554444",
        "12345678909",
        &cpf(1),
        &cnpj(1),
        &key,
        &webhook_secret,
        "joao@example.com",
        "destino@example.com",
        "chave-idempotente",
    ] {
        assert!(!stands(secret), "{secret} stands in the data folder");
    }
}

/// Every byte of every file of a folder.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(bytes_of(&path));
        } else {
            bytes.extend(std::fs::read(&path).unwrap());
        }
    }
    bytes
}
