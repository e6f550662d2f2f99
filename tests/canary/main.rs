//! Canary secrets go through every path that takes them, the failing ones too. All that the server
//! wrote anywhere is then searched for them, in every form that a program is likely to give them:
//! the data folder's bytes, standard output and error at the finest level, the metrics, and every
//! answer. A key and a webhook secret stand once in the answer that made them; nothing else is
//! found.

#![allow(clippy::unwrap_used)]

mod needle;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use needle::{Needle, Search};

/// A caller that keeps every answer.
struct Caller<'a> {
    server: &'a Server,
    client: Client,
    answers: Mutex<Vec<Heard>>,
}

/// An answer, headers and body, and its request.
struct Heard {
    request: String,
    whole: Vec<u8>,
}

/// Everything that must not be found.
#[derive(Default)]
struct Secrets {
    /// Never in any answer.
    never: Vec<Needle>,
    /// Only in the answer that made it.
    once: Vec<Needle>,
    next_card: u64,
}

impl Secrets {
    /// A card number that passes Luhn, with a security code; no other card has either.
    fn card(&mut self) -> (String, String) {
        self.next_card += 1;
        let number = with_check_digit(&format!("53819{:010}", 7_460_351_928 - 104_729 * self.next_card));
        // A leading zero is no number of a log.
        let code = format!("0{:03}", (397 * self.next_card) % 1000);
        self.never.push(Needle::text("a card number", &number));
        self.never.push(Needle::code("a security code", &code));
        (number, code)
    }

    /// A text of which no part may be repeated.
    fn text(&mut self, what: &'static str, text: &str) -> String {
        self.never.push(Needle::text(what, text));
        text.to_owned()
    }
}

impl Caller<'_> {
    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Value {
        let of_operators =
            ["/ops", "/console", "/healthz", "/readyz", "/metrics"].iter().any(|start| path.starts_with(start));
        let base = if of_operators { &self.server.operations } else { &self.server.public };
        let mut request = self.client.request(method.clone(), format!("{base}{path}")).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let head = format!("{} {:?}\n", response.status(), response.headers());
        let body = response.bytes().await.unwrap();
        let request = format!("{method} {path} answered {}", head.split(' ').next().unwrap());
        self.answers.lock().unwrap().push(Heard { request, whole: [head.as_bytes(), &body].concat() });
        serde_json::from_slice(&body).unwrap_or_default()
    }

    async fn post(&self, path: &str, credential: &str, body: &Value) -> Value {
        self.send(Method::POST, path, &[("authorization", &format!("Bearer {credential}")), JSON], body.to_string())
            .await
    }

    /// Sends a body that is too large. The server may stop reading before its end, so this is no
    /// client's usual way.
    async fn send_too_much(&self, path: &str, authorization: &str, body: String) {
        let address = self.server.public.trim_start_matches("http://").to_owned();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: {authorization}\r\ncontent-type: application/json\r\n\
             connection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
            body.len()
        );
        let exchange = move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let _cut_short = stream.write_all(body.as_bytes()).and_then(|()| stream.write_all(b"\r\n0\r\n\r\n"));
            let mut whole = Vec::new();
            let _cut_short = stream.read_to_end(&mut whole);
            whole
        };
        let whole = tokio::task::spawn_blocking(exchange).await.unwrap();
        assert!(whole.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&whole));
        self.answers.lock().unwrap().push(Heard { request: format!("POST {path} of 5 MiB"), whole });
    }

    /// The status of the last answer.
    fn last_status(&self) -> u16 {
        let answers = self.answers.lock().unwrap();
        let head = String::from_utf8_lossy(&answers.last().unwrap().whole).into_owned();
        head[..3].parse().unwrap()
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_stays_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (data, stdout) = (folder.path().join("data"), folder.path().join("stdout"));
    let mut secrets = Secrets::default();
    secrets.never.push(Needle::text("the operators' token", OPS_TOKEN));
    let mut logs = Vec::new();
    let mut answers = Vec::new();
    // Twice: what the first run left behind is read and written again by the second.
    for run in 0..2 {
        let launch = Launch::on(&data).with("CENTAVO_LOG", "trace").with_stdout(&stdout);
        let server = Server::start(&launch).await.unwrap();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        let caller = Caller { server: &server, client, answers: Mutex::default() };
        let key = keys(&caller, &mut secrets, run).await;
        cards(&caller, &mut secrets, &key, run).await;
        reads(&caller, &key).await;
        pages(&caller, &mut secrets, &key).await;
        answers.append(&mut caller.answers.into_inner().unwrap());
        server.terminate();
        server.wait();
        logs.push(server.said().into_bytes());
        logs.push(fs::read(&stdout).unwrap());
    }
    assert!(logs[0].len() > 10_000, "the log is at its finest");
    assert!(secrets.never.len() > 40 && answers.len() > 60);
    let stored = files_of(&data);
    assert!(stored.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > 100_000, "the journal is there");
    let mut found = Vec::new();
    let everything = Search::of(secrets.never.iter().chain(&secrets.once));
    for log in &logs {
        found.extend(everything.of_all(log).into_iter().map(|finding| format!("in the log: {finding}")));
    }
    for (path, bytes) in &stored {
        found.extend(everything.of_all(bytes).into_iter().map(|finding| format!("in {}: {finding}", path.display())));
    }
    let never = Search::of(&secrets.never);
    for heard in &answers {
        found.extend(never.of_all(&heard.whole).into_iter().map(|finding| format!("in {}: {finding}", heard.request)));
    }
    for needle in &secrets.once {
        let once = Search::of([needle]);
        let places: Vec<_> = answers.iter().filter(|heard| !once.of_all(&heard.whole).is_empty()).collect();
        assert_eq!(places.len(), 1, "{needle}: {:?}", places.iter().map(|heard| &heard.request).collect::<Vec<_>>());
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Makes a merchant and keys, and presents keys that are right, wrong, revoked and doubled. Gives a
/// key that opens.
async fn keys(caller: &Caller<'_>, secrets: &mut Secrets, run: u32) -> String {
    let merchant =
        json!({"name": "Loja Azul", "document": "12345678909", "split_enabled": true, "cashout_enabled": true});
    let merchant = caller.post("/ops/merchants", OPS_TOKEN, &merchant).await;
    let path = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
    let mut made = Vec::new();
    for (idempotency_key, body) in [("a", "{}"), ("b", r#"{"webhook_url":"https://loja.example.com/hook"}"#)] {
        let name = format!("{idempotency_key}{run}");
        let authorization = format!("Bearer {OPS_TOKEN}");
        let headers = [("authorization", authorization.as_str()), JSON, ("idempotency-key", &name)];
        let key = caller.send(Method::POST, &path, &headers, body).await;
        for _replay in 0..2 {
            caller.send(Method::POST, &path, &headers, body).await;
            assert_eq!(caller.last_status(), 201);
        }
        caller.send(Method::POST, &path, &headers, r#"{"webhook_url":"https://other.example.com/"}"#).await;
        assert_eq!(caller.last_status(), 422);
        for (what, name) in [("an API key", "api_key"), ("a webhook secret", "webhook_secret")] {
            let text = key[name].as_str().unwrap();
            secrets.once.push(Needle::text(what, text));
            // The secret part, without the id and the prefix, which may be shown.
            secrets.once.push(Needle::text(what, &text[text.len() - 40..]));
        }
        made.push((key["id"].as_str().unwrap().to_owned(), key["api_key"].as_str().unwrap().to_owned()));
    }
    let (revoked, opens) = (made.remove(0), made.remove(0).1);
    let authorization = format!("Bearer {OPS_TOKEN}");
    caller
        .send(Method::DELETE, &format!("/ops/api-keys/{}", revoked.0), &[("authorization", &authorization)], "")
        .await;
    assert_eq!(caller.last_status(), 200);
    let invented = secrets.text("a key that opens nothing", &format!("test_7f3d{run}c0ffee8badf00d5e1f4a6b9c2d7e3f10"));
    let (opening, revoked, unknown) =
        (format!("Bearer {opens}"), format!("Bearer {}", revoked.1), format!("Bearer {invented}"));
    let basic = format!("Basic {}", needle::base64(format!("user:{opens}").as_bytes()));
    let refused: [&[(&str, &str)]; 6] = [
        &[("authorization", &revoked)],
        &[("authorization", &unknown)],
        &[("token", &invented)],
        &[("authorization", &opening), ("token", &invented)],
        &[("authorization", &basic)],
        &[("authorization", &opens)],
    ];
    for headers in refused {
        for path in ["/api/balance", "/api/charges/x", "/api/nothing", "/ops/trial-balance", "/ops/queue"] {
            caller.send(Method::GET, path, headers, "").await;
            assert!([401, 404].contains(&caller.last_status()), "{path} {headers:?}");
        }
    }
    caller.send(Method::GET, "/ops/trial-balance", &[("authorization", &opening)], "").await;
    assert_eq!(caller.last_status(), 401, "a merchant's key opens nothing of the operators'");
    opens
}

/// Sends cards to every operation that takes one, in every way that is taken or refused.
async fn cards(caller: &Caller<'_>, secrets: &mut Secrets, key: &str, run: u32) {
    let description = caller.send(Method::GET, "/openapi.json", &[], "").await;
    let authorization = format!("Bearer {key}");
    let own = [("authorization", authorization.as_str()), JSON];
    let mut operations = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        let example = &item["post"]["requestBody"]["content"]["application/json"]["example"];
        if example["credit_card"].is_null() {
            continue;
        }
        operations += 1;
        let mut body = example.clone();
        body.as_object_mut().unwrap().remove("splits");
        let mut with = |number: Option<&str>| {
            let (made, code) = secrets.card();
            body["credit_card"]["number"] = json!(number.unwrap_or(&made));
            body["credit_card"]["cvv"] = json!(code);
            body.clone()
        };
        let taken = with(None);
        let (other, changed, syntax, untyped, huge, late) =
            (with(None), with(None), with(None), with(None), with(None), with(None));
        let unkeyed = with(None);
        let refused = [with(Some("4000000000000002")), with(Some("4000000000009995")), with(Some("4000000000000119"))];
        let send = async |headers: &[(&str, &str)], body: String, statuses: &[u16]| {
            caller.send(Method::POST, path, &[&own, headers].concat(), body).await;
            let status = caller.last_status();
            assert!(statuses.contains(&status), "POST {path}: {status}");
        };
        // Accepted, and again with the same idempotency key; another body under that key.
        let idempotency_key = format!("cards-{run}");
        for _replay in 0..2 {
            send(&[("idempotency-key", &idempotency_key)], taken.to_string(), &[201]).await;
        }
        send(&[("idempotency-key", &idempotency_key)], other.to_string(), &[422]).await;
        for refused in &refused {
            send(&[], refused.to_string(), &[201, 402]).await;
        }
        // The other name of the card, with strings for numbers; then both at once.
        let mut variant = changed.clone();
        variant["card"] = variant["credit_card"].take();
        variant.as_object_mut().unwrap().remove("credit_card");
        variant["card"]["exp_year"] = json!("2039");
        send(&[], variant.to_string(), &[201, 400]).await;
        let mut both = changed.clone();
        both["card"] = both["credit_card"].clone();
        send(&[], both.to_string(), &[201, 400]).await;
        // Refused values; each could be repeated in an error.
        let card = |name: &str, value: Value| {
            let mut body = changed.clone();
            body["credit_card"][name] = value;
            body.to_string()
        };
        let number = changed["credit_card"]["number"].as_str().unwrap();
        let spaced = secrets.text("a card number with spaces", &format!("{} {}", &number[..8], &number[8..]));
        let letters = secrets.text("a security code of letters", &format!("cvv-canary-{run}-of-{operations}"));
        let as_number: Value = serde_json::from_str(number).unwrap();
        let unfit = &number[..15].to_owned();
        let wrong = [
            card("number", json!(spaced)),
            card("number", as_number),
            card("number", json!([number])),
            card("number", json!(format!("{unfit}x"))),
            card("cvv", json!(letters)),
            card("cvv", json!({"is": letters})),
            card("exp_year", json!(1999)),
            card("exp_month", json!(number)),
            card("holder_name", json!("")),
        ];
        for body in wrong {
            send(&[], body, &[400]).await;
        }
        // What is no JSON, no body of this size, or of no known type.
        let text = syntax.to_string();
        send(&[], text[..text.len() - 1].to_owned(), &[400]).await;
        send(&[], text.replacen('{', "{\"credit_card\":{},", 1), &[400]).await;
        caller.send_too_much(path, &authorization, format!("{huge}{}", " ".repeat(5 << 20))).await;
        let plain = [("authorization", authorization.as_str()), ("content-type", "text/plain")];
        caller.send(Method::POST, path, &plain, untyped.to_string()).await;
        assert_eq!(caller.last_status(), 415);
        caller.send(Method::POST, path, &[JSON], unkeyed.to_string()).await;
        assert_eq!(caller.last_status(), 401);
        // Where nobody takes a card.
        for (method, path) in
            [(Method::PUT, path.clone()), (Method::POST, format!("{path}-not")), (Method::POST, "/api/pix".to_owned())]
        {
            caller.send(method, &path, &own, late.to_string()).await;
            assert!([400, 404, 405].contains(&caller.last_status()), "{path}");
        }
        let in_query = format!("{path}?number={}", late["credit_card"]["number"].as_str().unwrap());
        caller.send(Method::POST, &in_query, &own, "{}").await;
        assert_eq!(caller.last_status(), 400);
    }
    assert!(operations >= 2, "a charge and a subscription's card take one");
}

/// Reads what can be read.
async fn reads(caller: &Caller<'_>, key: &str) {
    let of_merchants = caller.send(Method::GET, "/openapi.json", &[], "").await;
    let operators = format!("{}/openapi.json", caller.server.operations);
    let of_operators: Value = caller.client.get(operators).send().await.unwrap().json().await.unwrap();
    let described = [&of_merchants, &of_operators].map(|description| description["paths"].as_object().unwrap());
    for (path, item) in described.into_iter().flatten() {
        if item.get("get").is_some() && !path.contains('{') {
            let authorization = format!("Bearer {}", if path.starts_with("/api/") { key } else { OPS_TOKEN });
            let demanded = item["get"]["parameters"].as_array().into_iter().flatten();
            let demanded = demanded.filter(|one| one["in"] == "query" && one["required"] == true);
            let query: Vec<_> = demanded.map(|one| format!("{}=01890000", one["name"].as_str().unwrap())).collect();
            let path = format!("{path}?{}", query.join("&"));
            caller.send(Method::GET, &path, &[("authorization", &authorization)], "").await;
            assert_eq!(caller.last_status(), 200, "{path}");
        }
    }
}

/// Signs in to the console, with a wrong token first, and reads every page to which links lead. The
/// session's secret is in the answer that begins it, and nowhere else.
async fn pages(caller: &Caller<'_>, secrets: &mut Secrets, key: &str) {
    let origin = caller.server.operations.clone();
    let form = [("origin", origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let wrong = secrets.text("a wrong token", "wrong-Xk92-of-the-console-7731");
    caller.send(Method::POST, "/console/sign-in", &form, format!("token={wrong}")).await;
    assert_eq!(caller.last_status(), 401);
    caller.send(Method::POST, "/console/sign-in", &form, format!("token={OPS_TOKEN}&next=/console")).await;
    assert_eq!(caller.last_status(), 303);
    let began = String::from_utf8_lossy(&caller.answers.lock().unwrap().last().unwrap().whole).into_owned();
    let secret = began.split("__Host-centavo=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    secrets.once.push(Needle::text("the secret of a session", &secret));
    let cookie = format!("__Host-centavo={secret}");
    // A recipient, who waits in the queue.
    let registration = ops::invented_parties::registration("Recebedor Um", "52998224725");
    caller.post("/api/sub-recipients", key, &registration).await;
    assert_eq!(caller.last_status(), 201);
    // A bank statement that was compared.
    let authorization = format!("Bearer {OPS_TOKEN}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/x-ofx")];
    let statement = include_str!("../statements/nubank.ofx");
    let compared = caller.send(Method::POST, "/ops/reconciliations?account=own&again=true", &headers, statement).await;
    assert_eq!(caller.last_status(), 200, "{compared}");
    // A file of the books, once it is made.
    let job = caller.post("/ops/exports", OPS_TOKEN, &json!({"format": "csv"})).await;
    let path = format!("/ops/exports/{}", job["id"].as_str().unwrap());
    while caller.send(Method::GET, &path, &headers[..1], "").await["status"] != "done" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let visited = crawl(caller, &cookie).await;
    for template in templates().iter().filter(|template| !UNLINKED.contains(&template.as_str())) {
        assert!(visited.contains(template), "no link leads to {template}, of {visited:?}");
    }
    for path in ["/console/exports/file?format=csv", "/console/trial-balance?by=ledger", "/console/audit?format=csv"] {
        caller.send(Method::GET, path, &[("cookie", &cookie)], "").await;
        assert_eq!(caller.last_status(), 200, "{path}");
    }
    caller.send(Method::GET, "/console/find?q=nothing", &[("cookie", &cookie)], "").await;
    assert_eq!(caller.last_status(), 404);
}

/// Route templates of the console to which forms lead, and no link; there is no subscription here.
const UNLINKED: [&str; 5] = [
    "/console/charges/{txid}/dispute",
    "/console/queue/many",
    "/console/exports/file",
    "/console/find",
    "/console/subscriptions/{id}",
];
/// Pages of one route template that are read.
const PAGES_OF_TEMPLATE: usize = 5;

/// The route templates of the console that have a page.
fn templates() -> Vec<String> {
    let table = include_str!("../../crates/console/src/routes.rs").split("let sessions").next().unwrap();
    let routes = table.split(".route(\"").skip(1).filter_map(|route| route.split_once("\", "));
    routes
        .filter(|(_, method)| ["get(", "screen("].iter().any(|begin| method.starts_with(begin)))
        .map(|(path, _)| path.to_owned())
        .collect()
}

/// The template of a path; the most special one.
fn template_of(path: &str) -> Option<String> {
    let parts: Vec<_> = path.split('?').next().unwrap().split('/').collect();
    let fits = |template: &String| {
        let of: Vec<_> = template.split('/').collect();
        of.len() == parts.len() && of.iter().zip(&parts).all(|(of, part)| of == part || of.starts_with('{'))
    };
    templates().into_iter().filter(fits).min_by_key(|template| template.matches('{').count())
}

/// Reads every page to which links lead from the overview, some of each template; gives the
/// templates.
async fn crawl(caller: &Caller<'_>, cookie: &str) -> BTreeSet<String> {
    // The lists come first: of each template only the first pages are read.
    let begins = ["/console", "/console/lists/cards"];
    let (mut waiting, mut seen) = (VecDeque::from(begins.map(str::to_owned)), BTreeSet::new());
    let mut visited: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(path) = waiting.pop_front() {
        let Some(template) = template_of(&path) else { continue };
        let count = visited.get(&template).copied().unwrap_or_default();
        if count >= PAGES_OF_TEMPLATE || !seen.insert(path.clone()) {
            continue;
        }
        caller.send(Method::GET, &path, &[("cookie", cookie)], "").await;
        // A busy machine reads the books for longer than a page waits.
        for _ in 0..600 {
            if caller.last_status() != 202 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            caller.send(Method::GET, &path, &[("cookie", cookie)], "").await;
        }
        match caller.last_status() {
            200 => visited.insert(template, count + 1),
            // In the scope of one merchant, some pages lead to those of the merchant.
            status => {
                assert_eq!(status, 303, "{path}");
                continue;
            }
        };
        let page = String::from_utf8_lossy(&caller.answers.lock().unwrap().last().unwrap().whole).into_owned();
        let links = page.split("href=\"").skip(1).map(|link| link.split(['"', '#']).next().unwrap());
        let pages = links.filter(|link| link.starts_with("/console") && !link.contains("lang="));
        waiting.extend(pages.map(|link| link.replace("&amp;", "&")));
    }
    visited.into_keys().collect()
}

/// Every file of a folder, as it is on the disk.
fn files_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_of(&path)),
            false => files.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    files
}

/// Luhn's check digit put behind a number.
fn with_check_digit(number: &str) -> String {
    let digits = number.bytes().rev().zip(0..).map(|(digit, place)| {
        let value = u32::from(digit - b'0') * (2 - place % 2);
        value / 10 + value % 10
    });
    format!("{number}{}", (10 - digits.sum::<u32>() % 10) % 10)
}

/// Secrets that the environment gave at the start count, and stand no longer where others may read
/// the environment of the process. Cores are not written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_leave_the_environment_of_the_process() {
    let data = tempfile::tempdir().unwrap();
    let key = "5a".repeat(32);
    let launch = Launch::on(data.path()).with("CENTAVO_MASTER_KEY", &key).with("CENTAVO_STORE", "sled");
    let server = Server::start(&launch).await.unwrap();
    let process = format!("/proc/{}", server.id());
    match fs::read(format!("{process}/environ")) {
        Ok(environment) => {
            let environment = String::from_utf8_lossy(&environment).into_owned();
            for secret in ["CENTAVO_MASTER_KEY", "CENTAVO_OPS_TOKEN", "CENTAVO_STORE=", &key, OPS_TOKEN] {
                assert!(!environment.contains(secret), "{secret} is in {environment}");
            }
            let variables = environment.split('\0');
            let handed = variables.filter_map(|variable| variable.strip_prefix("CENTAVO_SECRETS_IN=")).next().unwrap();
            assert_eq!(fs::metadata(format!("{process}/fd/{handed}")).unwrap().len(), 0, "the file was emptied");
        }
        // The process is not dumpable, and this one is of another user than root.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    let limits = fs::read_to_string(format!("{process}/limits")).unwrap();
    let cores = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(cores.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{cores}");
    for made in ["master.key", "operator.token"] {
        assert!(!data.path().join(made).exists(), "{made} was made although the environment gave one");
    }
    let request = Client::new().get(format!("{}/ops/merchants", server.operations)).bearer_auth(OPS_TOKEN);
    assert_eq!(request.send().await.unwrap().status(), 200);
    server.stop().unwrap();
}
