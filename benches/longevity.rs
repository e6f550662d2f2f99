//! What a journal that has grown costs: bytes a Record, how fast it is written at its end, and, after a kill and with nothing in the page
//! cache, how long opening takes, waking an actor, reading pages of a statement, and how much memory. It prints figures and judges
//! nothing.
//!
//! `cargo bench --bench longevity` writes a million Records and takes about a minute; `-- --records 10000000` ten million. The page
//! cache is dropped where the process may do that (`/proc/sys/vm/drop_caches`), and the output says whether it was.

#[path = "shop/mod.rs"]
mod shop;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::Engine;
use actors::projector::ChargeFilter;
use ledger::id::{GroupNumber, LedgerId, RecipientNumber};
use ledger::merchant::{MerchantCommand, MerchantState};
use ledger::recipient::RecipientState;
use shop::{create_pix_charges, open_engine, open_shops, record};
use tokio::runtime::Runtime;

const MERCHANTS: usize = 100;
/// Charges that are opened and then paid together.
const ROUND: usize = 25_600;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let records: u64 = after("--records").and_then(|number| number.parse().ok()).unwrap_or(1_000_000);
    let runtime = Runtime::new().expect("a runtime");
    if let Some(folder) = after("--fill") {
        return runtime.block_on(fill(Path::new(&folder), records));
    }
    if let Some(folder) = after("--open") {
        return runtime.block_on(open(Path::new(&folder)));
    }
    let place = tempfile::tempdir().expect("a folder");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{records} Records of PIX charges with 3 splits, {MERCHANTS} merchants, {cores} cores, durable");
    let mut filling = child("--fill", place.path(), records);
    let told = BufReader::new(filling.stdout.take().expect("its output"));
    for line in told.lines().map_while(Result::ok) {
        if line == "full" {
            break;
        }
        println!("{line}");
    }
    filling.kill().expect("a process that can be killed");
    filling.wait().expect("a process that ends");
    println!("killed; page cache dropped: {}", if drop_page_cache() { "yes" } else { "no, this process may not" });
    child("--open", place.path(), records)
        .wait_with_output()
        .map_or_else(|error| println!("{error}"), |output| print!("{}", String::from_utf8_lossy(&output.stdout)));
}

fn child(what: &str, folder: &Path, records: u64) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.arg(what).arg(folder).arg("--records").arg(records.to_string()).stdout(Stdio::piped());
    command.spawn().expect("a process")
}

/// Writes Records until there are enough, then waits to be killed.
async fn fill(folder: &Path, records: u64) {
    let engine = open_engine(folder).await;
    let shops = Arc::new(open_shops(&engine, MERCHANTS).await);
    let keeping = Arc::clone(&engine);
    tokio::spawn(async move { keeping.run_schedule().await });
    let mut rates = Vec::new();
    let (begun, first) = (Instant::now(), engine.projector().published().0);
    while engine.projector().published().0 < records {
        let charges = create_pix_charges(&engine, &shops, ROUND).await;
        let begun = Instant::now();
        let paid = charges.chunks(charges.len().div_ceil(1_024)).map(|part| {
            let (engine, part) = (Arc::clone(&engine), part.to_vec());
            tokio::spawn(async move {
                for (group, charge) in part {
                    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
                    record(&engine, group, MerchantCommand::ConfirmPix { charge, end_to_end_id }).await;
                }
            })
        });
        for worker in paid.collect::<Vec<_>>() {
            worker.await.expect("a worker");
        }
        rates.push(charges.len() as f64 / begun.elapsed().as_secs_f64());
    }
    let written = engine.projector().published().0;
    let rate = |rates: &[f64]| {
        let mut rates = rates.to_vec();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    };
    let few = rates.len().min(4);
    println!(
        "written at {:.0} Records/s; settlements/s, median of the first {few} rounds {:.0}, of the last {few} {:.0}",
        (written - first) as f64 / begun.elapsed().as_secs_f64(),
        rate(&rates[..few]),
        rate(&rates[rates.len() - few..]),
    );
    let bytes = engine.size_bytes().expect("a size");
    println!("{written} Records, {bytes} bytes: {} a Record; memory while writing {}", bytes / written, memory());
    println!("full");
    std::future::pending::<()>().await;
}

/// Opens what a killed process left, and reads.
async fn open(folder: &Path) {
    let begun = Instant::now();
    let engine = open_engine(folder).await;
    println!("opened in {:.2?}; memory {}", begun.elapsed(), memory());
    let merchant = GroupNumber(MERCHANTS as u32 / 2);
    let recipient = LedgerId::Recipient(merchant, RecipientNumber(2));
    let begun = Instant::now();
    engine.read_merchant(merchant, |books: &MerchantState, _| books.available()).await.expect("a balance");
    println!("a merchant woken in {:.2?}", begun.elapsed());
    let begun = Instant::now();
    engine.read_recipient(recipient, |books: &RecipientState, _| books.available()).await.expect("a balance");
    println!("a recipient woken in {:.2?}", begun.elapsed());
    let (splits, _) = engine.projector().splits_page(recipient, 0, 0).expect("a list");
    for (name, skip) in [("first", 0), ("middle", splits / 2), ("last", splits.saturating_sub(20))] {
        let (cold, warm) = (statement(&engine, recipient, skip), statement(&engine, recipient, skip));
        println!("statement of {splits} splits, {name} page of 20: {cold:.2?}, again {warm:.2?}");
    }
    let filter = ChargeFilter { status: Some(actors::projector::ChargeStatus::Paid), ..ChargeFilter::default() };
    let begun = Instant::now();
    let (paid, _) = engine.projector().charges_page(merchant, &filter, 1_000, 20).expect("a list");
    println!("one page of {paid} paid charges in {:.2?}", begun.elapsed());
    println!("memory after reading {}", memory());
    engine.stop().await;
}

fn statement(engine: &Engine, recipient: LedgerId, skip: u64) -> Duration {
    let begun = Instant::now();
    let (_, page) = engine.projector().splits_page(recipient, skip, 20).expect("a page");
    for split in page {
        engine.record(split.sequence).expect("a Record");
    }
    begun.elapsed()
}

/// Of this process: now, and at most.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.map_or("unknown".to_owned(), |kilobytes| format!("{} MiB", kilobytes / 1_024))
    };
    format!("{} (at most {})", of("VmRSS:"), of("VmHWM:"))
}

fn drop_page_cache() -> bool {
    Command::new("sync").status().is_ok() && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
