//! Benchmark of the operators' console: how long its pages take in a process with many merchants,
//! how large they are, and the memory that signing in and looking at all of them takes. It prints
//! figures and judges nothing.
//!
//! `cargo bench --bench console` opens ten thousand merchants and makes 25,600 charges; `--
//! --merchants 1000000 --charges 1024000` more of both. Times are of the whole request over a
//! socket, one at a time, in one process with the client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::Engine;
use actors::store::Sequence;
use centavo::config::{Args, Command, Settings};
use centavo::serve::{self, Running};
use clap::Parser;
use ledger::id::GroupNumber;
use ledger::merchant::MerchantCommand;
use reqwest::Client;
use reqwest::redirect::Policy;
use testkit::shop::{create_pix_charges, open_merchant, open_shops, record};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Merchants that sell, each with three recipients.
const SHOPS: usize = 100;
/// Requests for each page.
const REQUESTS: usize = 200;
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
    Runtime::new().expect("a runtime").block_on(measure(merchants, charges));
}

async fn measure(merchants: u64, charges: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve::start(settings(&folder.path().to_string_lossy()), |_, _| {}).await.expect("a server");
    let paths = fill(&running.app.engine, merchants, charges).await;
    let token = std::fs::read_to_string(folder.path().join("operator.token")).expect("a token");
    let (client, cookie) = sign_in(&running, token.trim()).await;
    let head = running.app.engine.published().0;
    println!("{} merchants, {head} Records; {REQUESTS} requests a page", running.app.engine.groups().len());
    println!(
        "memory before: {} KiB\n\n| page | p50 ms | p99 ms | longest ms | bytes |\n|---|---|---|---|---|",
        resident()
    );
    for path in paths {
        let address = format!("http://{}{path}", running.operations);
        let (mut times, mut bytes) = (Vec::new(), 0);
        for _ in 0..REQUESTS {
            let begun = Instant::now();
            let answer = client.get(&address).header("cookie", &cookie).send().await.expect("an answer");
            assert_eq!(answer.status(), 200, "{path}");
            bytes = answer.bytes().await.expect("a page").len();
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1_000.0);
        let [half, most, longest] = [REQUESTS / 2, REQUESTS * 99 / 100, REQUESTS - 1].map(|at| ms(times[at]));
        println!("| {path} | {half} | {most} | {longest} | {bytes} |");
    }
    println!("\nmemory after: {} KiB", resident());
    running.stop().await;
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
        let command = MerchantCommand::ConfirmPix { charge, end_to_end_id: "E".repeat(32) };
        paying.spawn(async move { record(&engine, group, command).await });
    }
    paying.join_all().await;
    for _ in (0..merchants).step_by(AWAKE_MAX as usize) {
        let mut opening = JoinSet::new();
        for _ in 0..AWAKE_MAX.min(merchants) {
            if opening.len() >= AT_ONCE {
                opening.join_next().await.expect("one of them").expect("a merchant");
            }
            let (engine, group): (_, GroupNumber) = (Arc::clone(engine), engine.new_group());
            opening.spawn(async move { open_merchant(&engine, group).await });
        }
        opening.join_all().await;
        engine.sleep_idle(Duration::ZERO);
    }
    let charge = made.last().expect("a charge").1.txid();
    let merchant = engine.merchant(shops[0].group, |row| row.id).expect("a merchant").uuid();
    let Sequence(head) = engine.published();
    let pages = ["", "/charges", "/merchants", "/queue", "/trial-balance", "/trial-balance?by=ledger", "/house"];
    let others = ["/journal", "/webhooks", "/health", "/audit", "/exports", "/sandbox"];
    let mut paths: Vec<_> = pages.into_iter().chain(others).map(|page| format!("/console{page}")).collect();
    paths.extend([
        format!("/console/charges/{charge}"),
        format!("/console/merchants/{merchant}"),
        format!("/console/merchants/{merchant}/charges"),
        format!("/console/ledgers/M-{merchant}"),
        format!("/console/recipients/{}", shops[0].recipients[0].uuid()),
        format!("/console/records/{head}"),
    ]);
    paths
}

async fn sign_in(running: &Running, token: &str) -> (Client, String) {
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
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap_or_default().trim().trim_end_matches(" kB").to_owned()
}
