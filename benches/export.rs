//! Benchmark of exports and of books of the past, from a running server by HTTP: postings a second
//! of each format and the memory for them, a month with nothing and with many months before it, the
//! trial balance of all merchants, charges beside an endless export, and the command with a file a
//! ledger. It prints figures and judges nothing.
//!
//! `cargo bench --bench export` is small, to try it. The figures of `docs/performance.md` want
//! `-- --postings 1000000 --merchants 10000 --months 12 --seconds 20 --rounds 5`, and for the
//! trial balance `-- --postings 3000000 --merchants 1000000 --only balance`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::{Days, Months, NaiveDate};
use ledger::event::{Event, SellerPart, Split, Terms};
use ledger::fees::{Commission, PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::{Decision, Record};
use ledger::time::Timestamp;
use reqwest::Client;
use serde_json::{Value, json};
use store::{Block, Part, Partition, SledOptions, SledStore};
use testkit::callers::Callers;
use testkit::server::{Launch, OPS_TOKEN, Server, centavo};
use wire::timestamp::day_of;

/// Records of a block.
const BLOCK: usize = 512;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How long the server may take to make the balance files.
const FILES_MAX: Duration = Duration::from_secs(600);
/// How long no file may have changed before something is measured.
const FILES_REST: Duration = Duration::from_secs(5);
/// Callers that charge at once.
const CALLERS: usize = 32;

/// What is to be measured.
struct Plan {
    postings: u64,
    merchants: u32,
    months: u32,
    seconds: u64,
    rounds: u64,
    /// One part alone: `formats`, `month`, `balance`, `whole`, `charges` or `files`.
    only: Option<String>,
}

impl Plan {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let text = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name);
            at.and_then(|at| arguments.get(at + 1)).cloned()
        };
        let number = |name: &str, otherwise: u64| {
            text(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} wants a number")))
        };
        Self {
            postings: number("--postings", 100_000),
            merchants: u32::try_from(number("--merchants", 100)).expect("a number of merchants"),
            months: u32::try_from(number("--months", 4)).expect("a number of months"),
            seconds: number("--seconds", 2),
            rounds: number("--rounds", 2),
            only: text("--only"),
        }
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

/// A running server, and the client that asks it.
struct ServerClient {
    server: Server,
    client: Client,
}

/// A file that was read to its end.
struct Download {
    bytes: u64,
    lines: u64,
    seconds: f64,
    /// Memory of the server at most, above what it had before, bytes.
    above: u64,
}

impl ServerClient {
    /// The same with a server that was started anew: memory that something before took and gave
    /// back would count as the server's own.
    async fn anew(self, launch: &Launch<'_>) -> Self {
        let Self { server, client } = self;
        server.stop().expect("a good end");
        Self { server: started(launch).await, client }
    }

    /// Reads an answer to its end, as fast as it comes.
    async fn get(&self, path: &str) -> Download {
        // The peak begins anew.
        let process = format!("/proc/{}", self.server.id());
        std::fs::write(format!("{process}/clear_refs"), "5").expect("the peak of an own process can be reset");
        let before = memory(&process, "VmRSS:");
        let begun = Instant::now();
        let url = format!("{}{path}", self.server.operations);
        let mut answer = self.client.get(url).bearer_auth(OPS_TOKEN).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        let (mut bytes, mut lines) = (0, 0);
        while let Some(part) = answer.chunk().await.expect("the next part") {
            bytes += part.len() as u64;
            lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        let seconds = begun.elapsed().as_secs_f64();
        Download { bytes, lines, seconds, above: memory(&process, "VmHWM:").saturating_sub(before) }
    }

    /// Makes an export of these days in the background, and reads its manifest.
    async fn background(&self, mut request: Value) {
        let process = format!("/proc/{}", self.server.id());
        std::fs::write(format!("{process}/clear_refs"), "5").expect("the peak of an own process can be reset");
        let before = memory(&process, "VmRSS:");
        let begun = Instant::now();
        request["format"] = "csv".into();
        let url = format!("{}/ops/exports", self.server.operations);
        let job_request = self.client.post(&url).bearer_auth(OPS_TOKEN).json(&request);
        let job: Value = job_request.send().await.expect("an answer").json().await.expect("a job");
        let url = format!("{url}/{}", job["id"].as_str().unwrap_or_else(|| panic!("{job}")));
        loop {
            let answer = self.client.get(&url).bearer_auth(OPS_TOKEN).send().await.expect("an answer");
            let job: Value = answer.json().await.expect("a job");
            match job["status"].as_str() {
                Some("done") => break,
                Some("queued" | "running") => tokio::time::sleep(Duration::from_millis(200)).await,
                _ => panic!("{job}"),
            }
        }
        let (seconds, above) = (begun.elapsed().as_secs_f64(), memory(&process, "VmHWM:").saturating_sub(before));
        let sent = self.get(&format!("{}/manifest", &url[self.server.operations.len()..])).await;
        println!(
            "background export {request}: {seconds:.2} s, {} above the server; its manifest of {}: {}",
            mib(above),
            mib(sent.bytes),
            mib(sent.above)
        );
    }
}

/// A line of a process's status, bytes.
fn memory(process: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("{process}/status")).expect("the status of an own process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the status");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

#[tokio::main]
async fn main() {
    let plan = Plan::read();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis() as i64;
    let begun = Instant::now();
    let written = write(&data, &plan, now);
    println!(
        "{} Records with {} postings of {} merchants in {} months, written in {:.1} s",
        written.records,
        written.postings,
        plan.merchants,
        plan.months,
        begun.elapsed().as_secs_f64()
    );
    let launch = Launch::on(&data)
        .with("CENTAVO_MASTER_KEY", "07".repeat(32))
        .with("CENTAVO_SEGMENT_BYTES", (256_u64 << 20).to_string())
        .with("CENTAVO_RECORDS_PER_RUN", "65536");
    let begun = Instant::now();
    let server = started(&launch).await;
    println!("the server serves after {:.1} s", begun.elapsed().as_secs_f64());
    files_are_made(&data, plan.months).await;
    let mut served = ServerClient { server, client: Client::new() };
    if plan.wants("formats") {
        for format in ["csv", "jsonl", "parquet", "xlsx", "csv", "jsonl", "parquet", "xlsx"] {
            served = served.anew(&launch).await;
            export(&served, format, written.postings).await;
        }
    }
    if plan.wants("month") {
        months(&served, written.first).await;
    }
    if plan.wants("balance") {
        served = served.anew(&launch).await;
        balance(&served).await;
    }
    if plan.wants("whole") {
        served = whole(served, &launch, written.first).await;
    }
    if plan.wants("charges") {
        charges(&served, &plan).await;
    }
    served.server.stop().expect("a good end");
    if plan.wants("files") {
        files(&data, &folder.path().join("files"));
    }
}

/// The command on the stopped folder, for a program that wants a file a ledger.
fn files(data: &Path, out: &Path) {
    let begun = Instant::now();
    let mut command = Command::new(centavo());
    command.args(["export", "--format", "ledger", "--data"]).arg(data).arg("--out").arg(out);
    let ended = command.stdout(Stdio::null()).status().expect("the command");
    assert!(ended.success(), "{ended}");
    let made = std::fs::read_dir(out).into_iter().flatten().count();
    println!("{made} files of ledgers by the command: {:.2} s", begun.elapsed().as_secs_f64());
}

/// Starts the server. It makes the index of the whole journal first: when that takes longer than it
/// is waited for, it goes on where it was ended.
async fn started(launch: &Launch<'_>) -> Server {
    for _ in 0..20 {
        match Server::start(launch).await {
            Ok(server) => return server,
            Err(refused) if refused.status.is_some() => panic!("{refused}"),
            Err(_still_busy) => {}
        }
    }
    panic!("the server does not come to serve");
}

/// Waits until the balance files of all months but the last are there, and nothing has been written
/// in their folder for some seconds: a server that still makes them takes memory and time for that.
async fn files_are_made(data: &Path, months: u32) {
    let begun = Instant::now();
    let files = || {
        let entries = std::fs::read_dir(data.join("files")).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.len())));
        named.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (mut seen, mut changed) = (files(), Instant::now());
    loop {
        let count = seen.keys().filter(|name| is_balance_file(&name.to_string_lossy())).count();
        if count + 1 >= months as usize && changed.elapsed() > FILES_REST {
            let seconds = (changed - begun).as_secs_f64();
            println!("{count} balance files after another {seconds:.1} s");
            return;
        }
        assert!(begun.elapsed() < FILES_MAX, "{count} balance files, of {months} months");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = files();
        if now != seen {
            (seen, changed) = (now, Instant::now());
        }
    }
}

fn is_balance_file(name: &str) -> bool {
    name.starts_with("balances") && !name.ends_with('~')
}

async fn export(served: &ServerClient, format: &str, postings: u64) {
    let sent = served.get(&format!("/ops/export?format={format}")).await;
    println!(
        "{format}: {:.0} postings/s ({:.2} s, {}), {} above the server",
        postings as f64 / sent.seconds,
        sent.seconds,
        mib(sent.bytes),
        mib(sent.above)
    );
}

/// Exports and a report of whole months, one after the other: what lies before grows. The first
/// ones have few rows or none, since the merchants are opened then.
async fn months(served: &ServerClient, first: NaiveDate) {
    let today = day_of(SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis() as i64);
    let starts = std::iter::successors(Some(first_of_next(first)), |month| Some(first_of_next(*month)));
    let whole = starts.take_while(|month| first_of_next(*month) <= today);
    for (before, month) in (1..).zip(whole) {
        let days = format!("from={month}&to={}", first_of_next(month) - Days::new(1));
        let csv = served.get(&format!("/ops/export?format=csv&{days}")).await;
        let balance = served.get(&format!("/ops/reports/trial-balance?format=csv&{days}")).await;
        println!(
            "{month} with {before} months before: export {} rows in {:.3} s, trial balance {:.3} s",
            csv.lines.saturating_sub(1),
            csv.seconds,
            balance.seconds
        );
    }
}

fn first_of_next(day: NaiveDate) -> NaiveDate {
    use chrono::Datelike;
    day.with_day(1).and_then(|first| first.checked_add_months(Months::new(1))).expect("a month after it")
}

async fn balance(served: &ServerClient) {
    for _ in 0..2 {
        let sent = served.get("/ops/trial-balance?format=csv").await;
        println!(
            "trial balance of {} accounts: {:.2} s, {} above the server",
            sent.lines.saturating_sub(1),
            sent.seconds,
            mib(sent.above)
        );
    }
}

/// What has every account: the report `trial-balance` in formats of rows, of all days and of the
/// last whole month, and an export in the background with its manifest.
async fn whole(mut served: ServerClient, launch: &Launch<'_>, first: NaiveDate) -> ServerClient {
    let second = first_of_next(first_of_next(first));
    for query in ["format=csv".to_owned(), "format=json".to_owned(), format!("format=csv&from={second}")] {
        served = served.anew(launch).await;
        let sent = served.get(&format!("/ops/reports/trial-balance?{query}")).await;
        println!(
            "report trial-balance, {query}: {} lines in {:.2} s, {} above the server",
            sent.lines,
            sent.seconds,
            mib(sent.above)
        );
    }
    for days in [json!({}), json!({"from": second.to_string()})] {
        served = served.anew(launch).await;
        served.background(days).await;
    }
    served
}

/// Charges with nothing beside them and beside exports, in turns.
async fn charges(served: &ServerClient, plan: &Plan) {
    let mut callers = Callers::open(&served.server).await.expect("merchants");
    let life = Duration::from_secs(plan.seconds);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..2 * plan.rounds {
        let before = callers.acknowledged();
        let begun = Instant::now();
        let exports = callers
            .charge_during(&served.server, CALLERS, async {
                let mut exports = 0_u64;
                while begun.elapsed() < life {
                    if round % 2 == 0 {
                        tokio::time::sleep(life.saturating_sub(begun.elapsed())).await;
                    } else {
                        // An export that takes longer is broken off at the end.
                        let path = "/ops/export?format=csv";
                        let rest = life.saturating_sub(begun.elapsed());
                        exports += u64::from(tokio::time::timeout(rest, served.get(path)).await.is_ok());
                    }
                }
                exports
            })
            .await;
        let rate = (callers.acknowledged() - before) as f64 / begun.elapsed().as_secs_f64();
        println!("charges {}: {rate:.0}/s, {exports} whole exports", if round % 2 == 0 { "alone" } else { "beside" });
        if round % 2 == 0 { alone.push(rate) } else { beside.push(rate) }
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let (alone, beside) = (median(&mut alone), median(&mut beside));
    println!("charges beside an endless export: {:.0} % ({beside:.0} against {alone:.0}/s)", 100.0 * beside / alone);
}

/// What was written.
struct JournalFigures {
    records: u64,
    postings: u64,
    /// The day of the first block.
    first: NaiveDate,
}

/// Writes merchants with a recipient each, and PIX charges with a split, spread over the months
/// before now.
fn write(data: &Path, plan: &Plan, now: i64) -> JournalFigures {
    let store = SledStore::open(data, &SledOptions::default()).expect("a store");
    let part = Part::take(Arc::new(store), Partition(0)).expect("its partition");
    let each = paid(1, 1, 0, Timestamp(0)).entries.iter().map(|entry| entry.postings().len() as u64).sum::<u64>();
    let charges = plan.postings.div_ceil(each);
    let blocks = (charges + 2 * u64::from(plan.merchants)).div_ceil(BLOCK as u64);
    let begin = now - i64::from(plan.months) * 30 * DAY_MS;
    let step = (now - DAY_MS - begin) / i64::try_from(blocks).expect("a number of blocks").max(1);
    let opened = (1..=plan.merchants).flat_map(|group| [RecordPlan::Merchant(group), RecordPlan::Recipient(group)]);
    let mut ordinals = vec![2_u64; plan.merchants as usize + 1];
    let charged = (0..charges).map(|number| {
        let group = 1 + (spread(number) % u64::from(plan.merchants)) as u32;
        ordinals[group as usize] += 1;
        RecordPlan::Charge(group, ordinals[group as usize], number)
    });
    let mut records = opened.chain(charged).peekable();
    let (mut written, mut at) = (0, begin);
    while records.peek().is_some() {
        let head = part.head().expect("a head");
        let block = records.by_ref().take(BLOCK).map(|made| {
            let record = made.record(Timestamp(at));
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        });
        let records: Vec<_> = block.collect();
        written += records.len() as u64;
        let block = Block { partition: Partition(0), first: head.next, booked_at_ms: at, previous: head.hash, records };
        part.append(&block).expect("a durable block");
        at += step;
    }
    JournalFigures { records: written, postings: charges * each, first: day_of(begin) }
}

/// A Record that is to be written.
enum RecordPlan {
    /// A group's merchant is opened.
    Merchant(u32),
    /// It registers its recipient.
    Recipient(u32),
    /// A charge is paid: the group, the ordinal of the Record, the charge's number.
    Charge(u32, u64, u64),
}

impl RecordPlan {
    fn record(&self, at: Timestamp) -> Record {
        let id = |kind: u128, group: u32| ObjectId(kind << 64 | u128::from(group));
        let of = |group, ordinal, event| {
            Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(group)), ordinal, at)
        };
        match *self {
            Self::Merchant(group) => {
                of(group, 1, Event::MerchantOpened { id: id(1, group), settings: Settings::default() })
            }
            Self::Recipient(group) => {
                let (number, document) = (RecipientNumber(1), Fingerprint(u128::from(group).to_be_bytes()));
                of(group, 2, Event::RecipientRegistered { number, id: id(2, group), document })
            }
            Self::Charge(group, ordinal, number) => paid(group, ordinal, number, at),
        }
    }
}

fn paid(group: u32, ordinal: u64, number: u64, at: Timestamp) -> Record {
    let terms = Terms {
        amount: Centavos(10_000 + (number % 977) as i64),
        method: PaymentMethod::Pix,
        installments: 1,
        splits: vec![Split { recipient: RecipientNumber(1), amount: Centavos(3_500) }],
        commission: Commission { pix: Centavos(99), ..Commission::default() },
        settlement_days: 0,
        initial_fee: None,
    };
    let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
    let charge = ObjectId(u128::from(number) << 64 | u128::from(group) << 16 | 7);
    let event = Event::PixPaid { charge, terms, seller, end_to_end_id: format!("E{number:031}"), opened: ordinal };
    Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(group)), ordinal, at)
}

/// A number that looks like any other.
fn spread(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 31)
}
