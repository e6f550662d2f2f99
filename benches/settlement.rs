//! How many split charges become durable in a second: through the actors alone, and over HTTP. It prints figures and judges nothing.
//!
//! `cargo bench --bench settlement` takes about a minute and a half; `-- --quick` less than one; `-- --only http` a part. The load
//! generator shares the machine with the server, as the output says.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[path = "shop/mod.rs"]
mod shop;

use actors::engine::Engine;
use centavo::config::{Args, Command, Settings};
use centavo::http::app::ApiKeyText;
use centavo::serve::{self, Running};
use clap::Parser;
use hdrhistogram::Histogram;
use ledger::id::GroupNumber;
use ledger::merchant::{MerchantCommand, SplitOrder};
use shop::{Shop, create_pix_charges, new_id, open_engine, open_shops, record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let seconds = Duration::from_secs(if quick { 2 } else { 5 });
    let only = arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    print_machine();
    if wanted("actors") {
        println!("\nsplit settlements through the actors: a paid PIX charge with 3 splits, one durable Record each");
        print_head("in flight");
        for merchants in [1, 100] {
            for in_flight in [16, 256, 4_096] {
                settle_through_actors(merchants, in_flight, seconds);
            }
        }
    }
    if wanted("http") {
        println!("\nsplit charges over HTTP: POST /api/card with 3 splits, two durable Records each");
        print_head("clients");
        for (merchants, clients) in [(1, 1), (1, 64), (100, 64), (1, 256)] {
            charge_over_http(merchants, clients, seconds);
        }
    }
}

fn print_machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    println!("{cores} cores, Linux {}, the load generator on the same cores", kernel.trim());
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("probe")).expect("a file");
    let mut syncs: Vec<Duration> = (0..200).map(|block| timed_sync(&file, block)).collect();
    syncs.sort_unstable();
    println!("fdatasync of 4 KiB appended: p50 {:.3} ms, p99 {:.3} ms", ms(syncs[100]), ms(syncs[197]));
}

fn timed_sync(file: &std::fs::File, block: u64) -> Duration {
    use std::os::unix::fs::FileExt;
    file.write_all_at(&[1; 4096], block * 4096).expect("a write");
    let begun = Instant::now();
    file.sync_data().expect("a sync");
    begun.elapsed()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn print_head(load: &str) {
    println!(
        "{:>10} {load:>10} {:>12} {:>9} {:>9} {:>13}",
        "merchants", "charges/s", "p50 ms", "p99 ms", "bytes/charge"
    );
}

fn print_row(merchants: usize, load: usize, times: &Histogram<u64>, took: Duration, bytes: u64) {
    let rate = times.len() as f64 / took.as_secs_f64();
    let at = |quantile| times.value_at_quantile(quantile) as f64 / 1_000.0;
    let each = bytes / times.len().max(1);
    println!("{merchants:>10} {load:>10} {rate:>12.0} {:>9.2} {:>9.2} {each:>13}", at(0.5), at(0.99));
}

/// PIX charges are created first, untimed; what is timed is their settlement.
fn settle_through_actors(merchants: usize, in_flight: usize, seconds: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    Runtime::new().expect("a runtime").block_on(async {
        let engine = open_engine(folder.path()).await;
        let shops = Arc::new(open_shops(&engine, merchants).await);
        let charges = Arc::new(create_pix_charges(&engine, &shops, 150_000 * seconds.as_secs() as usize).await);
        let before = engine.size_bytes().expect("a size");
        let (next, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let workers = (0..in_flight).map(|_| {
            let (engine, charges, next) = (Arc::clone(&engine), Arc::clone(&charges), Arc::clone(&next));
            tokio::spawn(async move {
                let mut times = histogram();
                while begun.elapsed() < seconds {
                    let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some((group, charge)) = charges.get(at) else { break };
                    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
                    let sent = Instant::now();
                    record(&engine, *group, MerchantCommand::ConfirmPix { charge: *charge, end_to_end_id }).await;
                    times.saturating_record(sent.elapsed().as_micros() as u64);
                }
                times
            })
        });
        let times = merged(workers.collect()).await;
        print_row(merchants, in_flight, &times, begun.elapsed(), engine.size_bytes().expect("a size") - before);
        engine.stop().await;
    });
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 120_000_000, 3).expect("two minutes in microseconds, to three digits")
}

async fn merged(workers: Vec<JoinHandle<Histogram<u64>>>) -> Histogram<u64> {
    let mut all = histogram();
    for worker in workers {
        all.add(worker.await.expect("a worker")).expect("equal histograms");
    }
    all
}

fn settings(data: &Path) -> Settings {
    let data = data.to_string_lossy();
    let sandbox = ["--sandbox", "on", "--rate-limit", "off"];
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"].into_iter().chain(sandbox);
    match Args::parse_from(fixed.chain(["--data", &data])).command {
        Command::Serve(args) => args.settings().expect("settings"),
        _ => unreachable!("serve was asked for"),
    }
}

fn charge_over_http(merchants: usize, clients: usize, seconds: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Runtime::new().expect("a runtime");
    let running: Running = server.block_on(serve::start(settings(folder.path()), |_, _| {})).expect("a server");
    let engine = Arc::clone(&running.app.engine);
    let requests = server.block_on(async {
        let mut requests = Vec::with_capacity(merchants);
        for shop in open_shops(&engine, merchants).await {
            requests.push(request(&shop, &make_key(&engine, shop.group).await));
        }
        Arc::new(requests)
    });
    let before = engine.size_bytes().expect("a size");
    let load = Runtime::new().expect("a runtime");
    let (address, begun) = (running.public, Instant::now());
    let times = load.block_on(async {
        let clients =
            (0..clients).map(|client| tokio::spawn(drive(address, Arc::clone(&requests), client, begun, seconds)));
        merged(clients.collect()).await
    });
    print_row(merchants, clients, &times, begun.elapsed(), engine.size_bytes().expect("a size") - before);
    server.block_on(running.stop());
}

async fn make_key(engine: &Engine, group: GroupNumber) -> String {
    let id = new_id(engine, group);
    let text = ApiKeyText::of(true, id, [7; 24]);
    let digest = ApiKeyText::digest(&text);
    let command = MerchantCommand::CreateApiKey { id, digest, webhook_url: None, webhook_secret: Vec::new() };
    record(engine, group, command).await;
    text
}

fn request(shop: &Shop, key: &str) -> Vec<u8> {
    let item = |split: &SplitOrder| {
        format!(r#"{{"sub_recipient_id":"{}","amount":{}}}"#, split.recipient.uuid(), split.amount)
    };
    let splits: Vec<String> = shop.splits().iter().map(item).collect();
    let body = format!(
        concat!(
            r#"{{"amount":10000,"customer":{{"name":"Pedro da Silva","email":"pedro@example.com","#,
            r#""document":"12345678909"}},"credit_card":{{"number":"4111111111111111","#,
            r#""holder_name":"PEDRO DA SILVA","exp_month":12,"exp_year":2039,"cvv":"123"}},"#,
            r#""installments":1,"splits":[{}]}}"#
        ),
        splits.join(",")
    );
    let head = format!("POST /api/card HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n");
    let length = body.len();
    format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// One connection with one request in flight.
async fn drive(
    address: SocketAddr,
    requests: Arc<Vec<Vec<u8>>>,
    client: usize,
    begun: Instant,
    seconds: Duration,
) -> Histogram<u64> {
    let mut times = histogram();
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut buffer = vec![0; 16 * 1024];
    for i in client.. {
        if begun.elapsed() >= seconds {
            break;
        }
        let sent = Instant::now();
        stream.write_all(&requests[i % requests.len()]).await.expect("a request");
        read_created(&mut stream, &mut buffer).await;
        times.saturating_record(sent.elapsed().as_micros() as u64);
    }
    times
}

/// Reads one whole response, which must be a 201.
async fn read_created(stream: &mut TcpStream, buffer: &mut [u8]) {
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await.expect("a response");
        assert!(read > 0, "the server closed the connection");
        filled += read;
        let Some(head_end) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..head_end]).expect("a head in ASCII");
        assert!(head.starts_with("HTTP/1.1 201"), "{}", String::from_utf8_lossy(&buffer[..filled]));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        if filled >= head_end + 4 + length.parse::<usize>().expect("a number") {
            return;
        }
    }
}
