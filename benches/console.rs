//! Benchmark of the operators' console: how long its pages take in a process with many merchants,
//! how large they are, and the memory that looking at all pages takes. It prints figures and judges
//! nothing.
//!
//! `cargo bench --bench console` opens ten thousand merchants and makes 25,600 charges; `--
//! --merchants 1000000 --charges 1024000` more of both, `--requests 20` fewer requests a page.
//! Times are of the whole request over a socket, one at a time, in one process with the client.
//!
//! All pages are looked at twice. What the second time adds to memory is what the pages keep; the
//! first time also fills the caches of the journal and of the index, which have a bound, and which
//! every read of history fills.
//! `--charges` is rounded down to a multiple of 1,024.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::Engine;
use centavo::server::{self, RunningServer};
use centavo::settings::args::{Args, Command};
use centavo::settings::checked::Settings;
use clap::Parser;
use ledger::id::GroupNumber;
use ledger::merchant::MerchantCommand;
use reqwest::Client;
use reqwest::redirect::Policy;
use testkit::shop::{CHARGED, create_pix_charges, open_merchant, open_shops, record, register_recipient};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Merchants that sell, each with three recipients.
const SHOPS: usize = 100;
/// Recipients of each shop that wait for approval: the queue has a thousand things.
const WAITING: usize = 10;
/// Requests for each page, when it is not said how many.
const REQUESTS: u64 = 200;
/// How long the process rests before its memory is measured: it still writes what was made.
const SETTLES: Duration = Duration::from_secs(5);
/// Commands at a time while the books are made.
const AT_ONCE: usize = 256;
/// Merchants that are opened before those that are awake go to sleep.
const AWAKE_MAX: u64 = 16_384;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, otherwise: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).and_then(|number| number.parse().ok()).unwrap_or(otherwise)
    };
    let (merchants, charges) = (number("--merchants", 10_000), number("--charges", 25_600));
    let requests = number("--requests", REQUESTS);
    Runtime::new().expect("a runtime").block_on(measure(merchants, charges, requests));
}

async fn measure(merchants: u64, charges: u64, requests: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let running = server::start(settings(&folder.path().to_string_lossy()), |_, _| {}).await.expect("a server");
    let paths = fill(&running.engine, merchants, charges).await;
    let token = std::fs::read_to_string(folder.path().join("operator.token")).expect("a token");
    let head = running.engine.records_published();
    let requests = usize::try_from(requests.max(1)).expect("a number");
    println!("{} merchants, {head} Records; {requests} requests a page", running.engine.groups().len());
    tokio::time::sleep(SETTLES).await;
    let before = resident_kib();
    println!("memory before: {before} KiB");
    let print = |when: &str| {
        let now = resident_kib();
        println!("\nmemory {when}: {now} KiB, {:+} KiB", now - before);
    };
    let (client, cookie) = sign_in(&running, token.trim()).await;
    let visitor = Visitor { client, cookie, host: format!("http://{}", running.operations) };
    for time in ["first", "second"] {
        table(&format!("the {time} time"), &visitor.pages(&paths, requests).await);
        print(&format!("after all pages, the {time} time"));
    }
    running.stop().await;
}

/// A browser that is signed in.
struct Visitor {
    client: Client,
    cookie: String,
    host: String,
}

/// The requests for one page.
struct PageFigures {
    path: String,
    /// Of the requests, sorted.
    times: Vec<Duration>,
    bytes: usize,
    /// Resident memory after the requests.
    kib: i64,
}

impl Visitor {
    async fn pages(&self, paths: &[String], requests: usize) -> Vec<PageFigures> {
        let mut all = Vec::new();
        for path in paths {
            all.push(self.page(path, requests).await);
        }
        all
    }

    async fn page(&self, path: &str, requests: usize) -> PageFigures {
        let times = Vec::with_capacity(requests);
        let mut measured = PageFigures { path: path.to_owned(), times, bytes: 0, kib: 0 };
        for _ in 0..requests {
            let begun = Instant::now();
            measured.bytes = self.get(path).await;
            measured.times.push(begun.elapsed());
        }
        measured.times.sort_unstable();
        measured.kib = resident_kib();
        measured
    }

    /// Bytes of a page.
    async fn get(&self, path: &str) -> usize {
        let request = self.client.get(format!("{}{path}", self.host)).header("cookie", &self.cookie);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer.bytes().await.expect("a page").len()
    }
}

fn table(heading: &str, pages: &[PageFigures]) {
    println!("\n{heading}:\n");
    println!("| page | p50 ms | p99 ms | longest ms | bytes | memory KiB |");
    println!("|---|---|---|---|---|---|");
    for PageFigures { path, times, bytes, kib } in pages {
        let ms = |part: usize| {
            let place = (times.len() * part / 100).min(times.len() - 1);
            format!("{:.2}", times[place].as_secs_f64() * 1_000.0)
        };
        let (half, most, longest) = (ms(50), ms(99), ms(100));
        println!("| {path} | {half} | {most} | {longest} | {bytes} | {kib} |");
    }
}

/// Makes the books; gives the pages to look at.
async fn fill(engine: &Arc<Engine>, merchants: u64, charges: u64) -> Vec<String> {
    let shops = Arc::new(open_shops(engine, SHOPS).await);
    let made = create_pix_charges(engine, &shops, usize::try_from(charges).expect("a number")).await;
    let mut paying = JoinSet::new();
    for (group, charge) in &made {
        if paying.len() >= AT_ONCE {
            paying.join_next().await.expect("one of them").expect("a payment");
        }
        let (engine, group, charge) = (Arc::clone(engine), *group, *charge);
        let command = MerchantCommand::ConfirmPix { charge, amount: CHARGED, end_to_end_id: "E".repeat(32) };
        paying.spawn(async move { record(&engine, group, command).await });
    }
    paying.join_all().await;
    for _ in (0..merchants).step_by(AWAKE_MAX as usize) {
        let mut opening = JoinSet::new();
        for _ in 0..AWAKE_MAX.min(merchants) {
            if opening.len() >= AT_ONCE {
                opening.join_next().await.expect("one of them").expect("a merchant");
            }
            let (engine, group): (_, GroupNumber) = (Arc::clone(engine), engine.new_group(None));
            opening.spawn(async move { open_merchant(&engine, group).await });
        }
        opening.join_all().await;
        engine.sleep_idle(Duration::ZERO);
    }
    for shop in shops.iter() {
        for number in 0..WAITING {
            register_recipient(engine, shop.group, &format!("{number:011}")).await;
        }
    }
    let charge = made.last().expect("a charge").1.txid();
    let merchant = engine.merchant(shops[0].group, |row| row.id).expect("a merchant").uuid();
    let head = engine.records_published();
    let pages = ["", "/charges", "/merchants", "/queue", "/trial-balance", "/trial-balance?by=ledger", "/house"];
    let others = ["/journal", "/webhooks", "/health", "/audit", "/exports", "/sandbox"];
    let mut paths: Vec<_> = pages.into_iter().chain(others).map(|page| format!("/console{page}")).collect();
    paths.extend([
        format!("/console/charges/{charge}"),
        format!("/console/merchants/{merchant}"),
        format!("/console/charges?merchant_id={merchant}"),
        format!("/console/ledgers/M-{merchant}"),
        format!("/console/recipients/{}", shops[0].recipients[0].uuid()),
        format!("/console/records/{head}"),
    ]);
    paths
}

async fn sign_in(running: &RunningServer, token: &str) -> (Client, String) {
    let client = Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
    let origin = format!("http://{}", running.operations);
    let request = client.post(format!("{origin}/console/sign-in")).header("origin", &origin);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(format!("token={token}&next=/console")).send().await.expect("an answer");
    let cookie = answer.headers()["set-cookie"].to_str().expect("a text").to_owned();
    (client, cookie.split(';').next().unwrap_or_default().to_owned())
}

fn settings(data: &str) -> Settings {
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--sandbox", "on"];
    match Args::parse_from(fixed.into_iter().chain(["--data", data])).command {
        Command::Serve { args, .. } => args.settings().expect("settings"),
        _ => unreachable!("serve was asked for"),
    }
}

/// Resident memory of this process, KiB.
fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap_or_default().trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
