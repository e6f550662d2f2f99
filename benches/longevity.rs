//! Longevity benchmark: cost of a journal that has grown. Bytes and work a Record, and the rate of
//! writing at its end. After a kill, with an empty page cache: time to open, to wake actors and to
//! read pages of a statement, and memory. It prints figures beside their targets and judges
//! nothing.
//!
//! `cargo bench --bench longevity` writes a million Records and takes about a minute; `-- --records
//! 10000000` ten million, for which some 4 GB must be free where temporary files go; `--
//! --recipient 1000000` instead gives one recipient a million pending card splits, and `--
//! --merchants 1000000` opens a million merchants, of whom 10 thousand are active while all is
//! verified; with `--rounds 3` each of the million makes a card charge, three times. The page cache
//! is dropped where the process may do that (`/proc/sys/vm/drop_caches`), and the output says
//! whether it was.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::{Engine, Slice};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use centavo::commands::verify;
use centavo::server::routes;
use centavo::server::{self, RunningServer};
use centavo::settings::args::{Args, Command as CashoutInquiryTimes};
use centavo::settings::checked::Settings;
use centavo::settings::secrets::SecretSource;
use centavo::settings::store_choice::Store;
use clap::Parser;
use derived::read_model::{ChargeFilter, ChargeStatus};
use http_body_util::BodyExt;
use ledger::event::{CardBrand, CardFace};
use ledger::event_choice::EventChoice;
use ledger::fees::PaymentMethod;
use ledger::id::{GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{MerchantCommand, MerchantState, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::{Payer, SealedFor};
use ledger::recipient::RecipientState;
use ledger::scope::Scopes;
use rails::sandbox;
use serde_json::{Value, json};
use testkit::shop::{
    CHARGED, Shop, create_pix_charge, create_pix_charges, new_id, open_engine, open_merchant, open_shops, record,
};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tower::ServiceExt;
use web::api_key::ApiKeyText;
use wire::case_folding::search_key;

const MERCHANTS: usize = 100;
/// Charges that are opened and then paid together.
const ROUND: usize = 25_600;
/// One merchant in this number has recipients and is active.
const MERCHANTS_AN_ACTIVE: u32 = 100;
/// Merchants that do something at the same time.
const AT_ONCE: usize = 256;
/// How many of each kind are woken.
const WOKEN: u32 = 10;
/// The prefix of a line of the table on standard output.
const ROW: &str = "row ";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let number = |name: &str| after(name).and_then(|number| number.parse::<u64>().ok());
    let runtime = Runtime::new().expect("a runtime");
    if let (Some(folder), Some(stage)) = (after("--in"), after("--stage")) {
        let (folder, count) = (Path::new(&folder), number("--count").expect("a count"));
        match stage.as_str() {
            "fill" => runtime.block_on(fill(folder, count)),
            "open" => runtime.block_on(open(folder)),
            "credit" => runtime.block_on(credit(folder, count)),
            "ask" => runtime.block_on(ask(folder)),
            "found" => runtime.block_on(found(folder, count)),
            "trade" => runtime.block_on(trade(folder, count)),
            "charge" => runtime.block_on(charge_each(folder, count, number("--rounds").unwrap_or(1))),
            "verify" => verify_copy(folder),
            _ => unreachable!("a stage of this program"),
        }
        return;
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let rows = if let Some(splits) = number("--recipient") {
        println!("one recipient with {splits} pending card splits, {cores} cores, durable");
        after_a_kill(["credit", "ask"], splits)
    } else if let Some(merchants) = number("--merchants") {
        println!(
            "{merchants} merchants with an API key each; one in {MERCHANTS_AN_ACTIVE} has 3 recipients and is active; {cores} cores, durable"
        );
        after_a_kill(["found", if number("--rounds").is_some() { "charge" } else { "trade" }], merchants)
    } else {
        let records = number("--records").unwrap_or(1_000_000);
        println!("{records} Records of PIX charges with 3 splits, {MERCHANTS} merchants, {cores} cores, durable");
        after_a_kill(["fill", "open"], records)
    };
    println!("\n| row | what | figure | target |\n|---|---|---|---|");
    rows.iter().for_each(|row| println!("{row}"));
}

/// Runs two stages, each as a process of its own: the first is killed when it has done its work.
/// Gives the lines of the table.
fn after_a_kill([before, after]: [&str; 2], count: u64) -> Vec<String> {
    let place = tempfile::tempdir().expect("a folder");
    let mut rows = Vec::new();
    let mut writing = stage(before, place.path(), count, Stdio::piped());
    listen(&mut writing, &mut rows);
    writing.kill().expect("a process that can be killed");
    writing.wait().expect("a process that ends");
    println!("killed; page cache dropped: {}", if drop_page_cache() { "yes" } else { "no, this process may not" });
    let mut reading = stage(after, place.path(), count, Stdio::piped());
    listen(&mut reading, &mut rows);
    assert!(reading.wait().expect("a process that ends").success());
    rows
}

fn stage(what: &str, folder: &Path, count: u64, says: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--stage", what, "--count", &count.to_string(), "--in"]).arg(folder).stdout(says);
    command.args(std::env::args().skip_while(|argument| argument != "--rounds").take(2));
    command.spawn().expect("a process")
}

/// Prints what a stage says until it has done its work or ends, and keeps the lines of the table.
fn listen(stage: &mut Child, rows: &mut Vec<String>) {
    let output = BufReader::new(stage.stdout.take().expect("its output"));
    for line in output.lines().map_while(Result::ok).take_while(|line| line != "done") {
        match line.strip_prefix(ROW) {
            Some(row) => rows.push(row.to_owned()),
            None => println!("{line}"),
        }
    }
}

fn row(number: u8, what: &str, figure: impl std::fmt::Display, target: &str) {
    println!("{ROW}| {number} | {what} | {figure} | {target} |");
}

/// Writes Records until there are enough, then waits to be killed.
async fn fill(folder: &Path, records: u64) {
    let engine = open_engine(folder, sandbox::rails(&folder.join("sandbox")), search_key).await;
    let shops = Arc::new(open_shops(&engine, MERCHANTS).await);
    let keeping = Arc::clone(&engine);
    tokio::spawn(async move { keeping.run_schedule().await });
    let (mut rates, mut works) = (Vec::new(), Vec::new());
    let (begun, first) = (Instant::now(), engine.records_published());
    while engine.records_published() < records {
        let worked = work();
        let charges = create_pix_charges(&engine, &shops, ROUND).await;
        let begun = Instant::now();
        let paid = charges.chunks(charges.len().div_ceil(1_024)).map(|part| {
            let (engine, part) = (Arc::clone(&engine), part.to_vec());
            tokio::spawn(async move {
                for (group, charge) in part {
                    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
                    record(&engine, group, MerchantCommand::ConfirmPix { charge, amount: CHARGED, end_to_end_id })
                        .await;
                }
            })
        });
        for worker in paid.collect::<Vec<_>>() {
            worker.await.expect("a worker");
        }
        rates.push(charges.len() as f64 / begun.elapsed().as_secs_f64());
        works.push((work() - worked).as_secs_f64() * 1e6 / charges.len() as f64);
    }
    let written = engine.records_published();
    let few = rates.len().min(4);
    let [rates, works] =
        [rates, works].map(|all| (middle(all[..few].to_vec()), middle(all[all.len() - few..].to_vec())));
    println!(
        "written at {:.0} Records/s; settlements/s, median of the first {few} rounds {:.0}, of the last {few} {:.0}; CPU a charge, \
         opened and paid, {:.1} µs and {:.1} µs",
        (written - first) as f64 / begun.elapsed().as_secs_f64(),
        rates.0,
        rates.1,
        works.0,
        works.1,
    );
    let bytes = engine.size_bytes().expect("a size");
    println!("{written} Records, {bytes} bytes: {} a Record; memory while writing {}", bytes / written, memory());
    let [speed, ease] = [rates.1 / rates.0, works.0 / works.1].map(|part| 100.0 * part);
    let figure = format!("{speed:.0} % of the speed, {ease:.0} % of the charges for the same CPU time");
    row(7, &format!("settlements after {written} Records against the first"), figure, "≥ 90 %");
    println!("done");
    std::future::pending::<()>().await;
}

/// Opens what a killed process left, and reads.
async fn open(folder: &Path) {
    let begun = Instant::now();
    let engine = open_engine(folder, sandbox::rails(&folder.join("sandbox")), search_key).await;
    let merchant = GroupNumber(MERCHANTS as u32 / 2);
    let balance = |group| engine.read_merchant(group, |books: &MerchantState, _| books.available());
    let opened = begun.elapsed();
    balance(merchant).await.expect("a balance");
    row(8, "cold start to the first answer", format!("{:.2?}", begun.elapsed()), "≤ 3 s");
    println!("opened in {opened:.2?}; memory {}", memory());
    let (mut merchants, mut recipients) = (Vec::new(), Vec::new());
    for group in (1..=WOKEN).map(GroupNumber) {
        let begun = Instant::now();
        balance(group).await.expect("a balance");
        merchants.push(begun.elapsed());
        let recipient = LedgerId::Recipient(group, RecipientNumber(2));
        let begun = Instant::now();
        engine.read_recipient(recipient, |books: &RecipientState, _| books.available()).await.expect("a balance");
        recipients.push(begun.elapsed());
    }
    println!("merchants woken in {merchants:.1?}\nrecipients, never awake before, woken in {recipients:.1?}");
    row(8, "to wake a merchant, median and longest of 10", spread(merchants), "≤ 50 ms");
    row(8, "to wake a recipient that was never awake", spread(recipients), "≤ 50 ms");
    let recipient = LedgerId::Recipient(merchant, RecipientNumber(2));
    let (splits, _) = engine.splits(recipient, Slice::of_all(0, 0)).expect("a list");
    for (name, skip) in [("first", 0), ("middle", splits / 2), ("last", splits.saturating_sub(20))] {
        let (cold, warm) = (statement(&engine, recipient, skip), statement(&engine, recipient, skip));
        println!("statement of {splits} splits, {name} page of 20: {cold:.2?}, again {warm:.2?}");
    }
    let filter = ChargeFilter { status: Some(ChargeStatus::Paid), ..ChargeFilter::default() };
    let begun = Instant::now();
    let paid = engine.charges(merchant, &filter, 1_000, 20).expect("a list").total;
    println!("one page of {paid} paid charges in {:.2?}", begun.elapsed());
    println!("memory after reading {}", memory());
    engine.stop().await;
}

fn statement(engine: &Engine, recipient: LedgerId, skip: u64) -> Duration {
    let begun = Instant::now();
    let (_, page) = engine.splits(recipient, Slice::of_all(skip, 20)).expect("a page");
    for split in page {
        engine.record(engine.position_of(recipient, split.sequence)).expect("a Record");
    }
    begun.elapsed()
}

/// Card charges of one merchant with a split for one recipient, captured over 27 days; then waits
/// to be killed.
async fn credit(folder: &Path, splits: u64) {
    const STEPS: u64 = 10_000;
    const STEP: Duration = Duration::from_secs(4 * 60);
    let running = server(folder).await;
    let engine = Arc::clone(&running.engine);
    let shops = open_shops(&engine, 1).await;
    let group = shops[0].group;
    let splits_of_each: Vec<SplitRequest> = shops[0].splits().into_iter().take(1).collect();
    let payer = Payer { name: "Pedro da Silva".into(), document: "12345678909".into(), ..Payer::default() };
    let begun = Instant::now();
    for step in 0..STEPS.min(splits) {
        let charges = (splits * (step + 1) / STEPS.min(splits)) - (splits * step / STEPS.min(splits));
        let charging = (0..charges).map(|_| {
            let (engine, splits, payer) = (Arc::clone(&engine), splits_of_each.clone(), payer.clone());
            tokio::spawn(async move {
                let charge = new_id(&engine, group);
                let payer = engine.keyring().seal_value(SealedFor::payer(charge), engine.now(), &payer);
                let payer = payer.expect("sealing");
                let open = MerchantCommand::OpenCard {
                    charge,
                    amount: Centavos(10_000),
                    method: PaymentMethod::CreditCard,
                    installments: 1,
                    splits,
                    card: CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa },
                    payer,
                    rail: None,
                };
                record(&engine, group, open).await;
                let acquirer_mdr = Centavos(200);
                let capture = MerchantCommand::CaptureCard { charge, acquirer_mdr, captured_at: None, brand: None };
                record(&engine, group, capture).await;
            })
        });
        for charge in charging.collect::<Vec<_>>() {
            charge.await.expect("a charge");
        }
        engine.advance_clock(STEP, engine.permit(0).expect("room in the journal")).await.expect("a clock that moves");
    }
    println!("{splits} charges in {:.1?}", begun.elapsed());
    println!("done");
    std::future::pending::<()>().await;
}

/// Opens what a killed process left, and asks for everything about one recipient over the
/// merchants' routes.
async fn ask(folder: &Path) {
    let begun = Instant::now();
    let running = server(folder).await;
    println!("opened in {:.2?}", begun.elapsed());
    let engine = &running.engine;
    let group = GroupNumber(1);
    let recipient = LedgerId::Recipient(group, RecipientNumber(1));
    let id = engine.merchant(group, |row| row.recipients[0].id).expect("a merchant").uuid();
    let pending = |ledger| engine.read_recipient(ledger, |books: &RecipientState, _| books.pending());
    let (resident, begun) = (kilobytes("VmRSS:"), Instant::now());
    let sum = pending(recipient).await.expect("a balance");
    let (woken, grown) = (begun.elapsed(), kilobytes("VmRSS:").saturating_sub(resident));
    row(
        10,
        &format!("a recipient with {sum} centavos pending, memory"),
        format!("{:.1} MB", grown as f64 / 1e3),
        "≤ 32 MB",
    );
    row(10, "to wake it, never awake before", format!("{woken:.1?}"), "≤ 100 ms");
    engine.sleep_idle(Duration::ZERO);
    let begun = Instant::now();
    pending(recipient).await.expect("a balance");
    println!("to put it to sleep and wake it from its snapshot: {:.1?}", begun.elapsed());
    let key = make_key(engine, group).await;
    let routes = routes::public(&running.app);
    let of = |what: &str| format!("/api/dashboard/sub-recipients/{id}/{what}");
    let (mut pages, mut split_ids) = (Vec::new(), Vec::new());
    let (_, first) = call(&routes, &key, "GET", &of("splits"), None).await;
    let total = first["total"].as_u64().expect("a total");
    for page in [2, total / 40, total / 20, 3, total / 30] {
        pages.push(call(&routes, &key, "GET", &of(&format!("splits?page={page}")), None).await.0);
    }
    println!("pages of {total} splits: {pages:.1?}");
    row(10, &format!("a page of its statement of {total} splits, median and longest of 5"), spread(pages), "≤ 20 ms");
    for page in 1..=5 {
        let path = of(&format!("splits?per_page=100&page={}", page * (total / 600).max(1)));
        let (_, page) = call(&routes, &key, "GET", &path, None).await;
        let ids = page["items"].as_array().expect("items").iter().map(|split| split["id"].clone());
        split_ids.push(ids.collect::<Vec<_>>());
    }
    let mut anticipations = Vec::new();
    for split_ids in split_ids {
        let body = json!({ "split_ids": split_ids, "target_days": 2 });
        anticipations.push(call(&routes, &key, "POST", &of("anticipate"), Some(body)).await.0);
    }
    println!("anticipations of 100 splits: {anticipations:.1?}");
    row(10, "an anticipation of 100 splits, median and longest of 5", spread(anticipations), "≤ 20 ms");
    let (withdrawal, _) = call(&routes, &key, "POST", &of("withdraw"), None).await;
    row(10, "a withdrawal", format!("{withdrawal:.1?}"), "≤ 20 ms");
    let after = call(&routes, &key, "GET", &of("splits?page=2"), None).await.0;
    println!("a page of the statement after that: {after:.1?}; memory {}", memory());
    running.stop().await;
}

/// Opens merchants, each with an API key, and puts them to sleep; then waits to be killed.
async fn found(folder: &Path, merchants: u64) {
    const AWAKE_MAX: u32 = 16_384;
    let running = server(folder).await;
    let engine = Arc::clone(&running.engine);
    let begun = Instant::now();
    let merchants = u32::try_from(merchants).expect("a number of merchants");
    for first in (1..=merchants).step_by(AWAKE_MAX as usize) {
        let last = merchants.min(first + AWAKE_MAX - 1);
        at_once(first..=last, |group| {
            let engine = Arc::clone(&engine);
            async move {
                open_merchant(&engine, group).await;
                make_key(&engine, group).await;
                if group.0.is_multiple_of(MERCHANTS_AN_ACTIVE) {
                    Shop::staff(&engine, group).await;
                }
            }
        })
        .await;
        engine.sleep_idle(Duration::ZERO);
    }
    let bytes = engine.size_bytes().expect("a size");
    println!(
        "{merchants} merchants in {:.1?}, {} bytes each on the disk",
        begun.elapsed(),
        bytes / u64::from(merchants)
    );
    println!("memory while they are opened {}", memory());
    println!("done");
    std::future::pending::<()>().await;
}

/// Opens what a killed process left; then some merchants settle charges and read statements while a
/// copy is verified.
async fn trade(folder: &Path, merchants: u64) {
    let copy = tempfile::tempdir().expect("a folder");
    let copied = Command::new("cp").arg("-r").arg(folder.join(".")).arg(copy.path()).status();
    assert!(copied.expect("cp").success());
    let begun = Instant::now();
    let running = server(folder).await;
    println!("opened in {:.2?}; memory {}", begun.elapsed(), memory());
    let (engine, routes) = (Arc::clone(&running.engine), routes::public(&running.app));
    let active = || (MERCHANTS_AN_ACTIVE..=merchants as u32).step_by(MERCHANTS_AN_ACTIVE as usize);
    let mut verifying = stage("verify", copy.path(), merchants, Stdio::inherit());
    let (begun, mut charges) = (Instant::now(), 0);
    while charges == 0 || verifying.try_wait().expect("a process that ends").is_none() {
        at_once(active(), |group| settle_and_read(Arc::clone(&engine), routes.clone(), group)).await;
        charges += active().count();
    }
    assert!(verifying.wait().expect("a process that ends").success());
    println!("{charges} charges settled, and as many statements and balances read, in {:.1?}", begun.elapsed());
    let what = format!("memory: {merchants} merchants, {} active", active().count());
    row(9, &what, format!("{} MB at most", kilobytes("VmHWM:") * 1_024 / 1_000_000), "≤ 768 MB");
    println!("memory with the active ones awake {}", memory());
    running.stop().await;
}

/// Opens what a killed process left; then each merchant makes a card charge, in rounds. An owner
/// that is in no memory is read again, as far more are used than may be awake.
async fn charge_each(folder: &Path, merchants: u64, rounds: u64) {
    let begun = Instant::now();
    let running = server(folder).await;
    println!("opened in {:.2?}; memory {}", begun.elapsed(), memory());
    let (engine, routes) = (Arc::clone(&running.engine), routes::public(&running.app));
    let body = json!({
        "amount": 10_000,
        "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
        "card": {"number": "4111111111111111", "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039", "cvv": "123"},
    });
    for round in 1..=rounds {
        let (begun, before) = (Instant::now(), work());
        let charge = |group| {
            let (key, routes, body) = (key_text(engine.live_keys(group)[0].0), routes.clone(), body.clone());
            async move { drop(call(&routes, &key, "POST", "/api/card", Some(body)).await) }
        };
        at_once(1..=merchants as u32, charge).await;
        let (took, cpu) = (begun.elapsed(), work() - before);
        let (rate, each) = (merchants as f64 / took.as_secs_f64(), cpu.as_secs_f64() * 1e6 / merchants as f64);
        let what = format!("round {round}: each of {merchants} merchants makes a card charge");
        row(11, &what, format!("{rate:.0}/s, {each:.0} µs of CPU each, {}", memory()), "2 GB at most");
    }
    running.stop().await;
}

/// A merchant with recipients gets a charge, which is paid, and reads a statement and its balance.
async fn settle_and_read(engine: Arc<Engine>, routes: Router, group: GroupNumber) {
    let key = key_text(engine.live_keys(group)[0].0);
    let recipients = engine.merchant(group, |row| row.recipients.iter().map(|one| one.id).collect());
    let shop = Shop { group, recipients: recipients.expect("a merchant") };
    let end_to_end_id = "E0000000020260701120012345678901".to_owned();
    let charge = create_pix_charge(&engine, &shop).await;
    record(&engine, group, MerchantCommand::ConfirmPix { charge, amount: CHARGED, end_to_end_id }).await;
    let statement = format!("/api/dashboard/sub-recipients/{}/splits", shop.recipients[0].uuid());
    for path in [&*statement, "/api/balance"] {
        call(&routes, &key, "GET", path, None).await;
    }
}

/// What `centavo verify` does, with the memory that it takes.
fn verify_copy(folder: &Path) {
    let begun = Instant::now();
    verify::run(folder, &Store::Sled, &SecretSource::Data, None).expect("books that are whole");
    println!("verified beside it in {:.1?}; memory of that process {}", begun.elapsed(), memory());
}

/// Does something for each of these groups, some at a time.
async fn at_once<F>(groups: impl Iterator<Item = u32>, what: impl Fn(GroupNumber) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut under_way = JoinSet::new();
    for group in groups {
        if under_way.len() == AT_ONCE {
            under_way.join_next().await.expect("one of many").expect("what does not fail");
        }
        under_way.spawn(what(GroupNumber(group)));
    }
    under_way.join_all().await;
}

/// One request, in this process; it must succeed.
async fn call(routes: &Router, key: &str, method: &str, path: &str, body: Option<Value>) -> (Duration, Value) {
    let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = request.header("content-type", "application/json").body(body).expect("a request");
    let begun = Instant::now();
    let response = routes.clone().oneshot(request).await.expect("a response");
    let status = response.status();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let took = begun.elapsed();
    assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
    (took, serde_json::from_slice(&bytes).expect("JSON"))
}

async fn server(folder: &Path) -> RunningServer {
    let data = folder.to_string_lossy();
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"];
    let flags = ["--sandbox", "on", "--rate-limit", "off", "--data", &data];
    let settings: Settings = match Args::parse_from(fixed.into_iter().chain(flags)).command {
        CashoutInquiryTimes::Serve { args, .. } => args.settings().expect("settings"),
        _ => unreachable!("serve was asked for"),
    };
    server::start(settings, |_, _| {}).await.expect("a server")
}

async fn make_key(engine: &Engine, group: GroupNumber) -> String {
    let id = new_id(engine, group);
    let text = key_text(id);
    let digest = ApiKeyText::digest(&text);
    let webhook_secret = engine.keyring().seal_secret(SealedFor::webhook_secret(id), &[7; 38]).expect("sealing");
    let command = MerchantCommand::CreateApiKey {
        id,
        digest,
        webhook_url: None,
        webhook_secret,
        scopes: Scopes::ALL,
        events: EventChoice::ALL,
    };
    record(engine, group, command).await;
    text
}

fn key_text(id: ObjectId) -> String {
    ApiKeyText::of(true, id, [7; 24])
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// The median and the longest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    format!("{:.1} ms, {:.1} ms", median.as_secs_f64() * 1e3, longest.as_secs_f64() * 1e3)
}

/// The CPU time that this process has taken, all threads.
fn work() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets; user and system time are numbers 14 and 15, in hundredths of a
    // second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(10 * fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>())
}

/// Of this process: now, and at most.
fn memory() -> String {
    format!("{} MiB (at most {} MiB)", kilobytes("VmRSS:") / 1_024, kilobytes("VmHWM:") / 1_024)
}

fn kilobytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn drop_page_cache() -> bool {
    Command::new("sync").status().is_ok() && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
