//! Reports and exports that begin at a balance file: the same bytes as those that are folded from
//! the first Record, for random months, days and cuts.

use std::path::{Path, PathBuf};

use books::export::{Chart, Format, Level, Request};
use books::reports::{DayOf, Report, ReportFormat, ReportRequest};
use centavo::commands::{export, report};
use centavo::settings::checked::{ExportSettings, JournalSettings, ReportSettings};
use centavo::settings::secrets::SecretSource;
use centavo::settings::store_choice::Store;
use chrono::{Days, NaiveDate};
use ledger::time::Timestamp;
use serde_json::{Value, json};
use store::Sequence;
use store::cut::Cut;
use wire::timestamp::day;

use super::{files, mapped, month, rows_of, unlocked};
use crate::closed_periods::next_month;
use crate::world::{DAY, Merchant, OPS_TOKEN, World, bearer, pix, text};

/// A report or an export, through a Record if one is named.
#[derive(Clone, Debug)]
pub(super) enum BookRequest {
    Report(ReportRequest, ReportFormat, Option<u64>),
    Export(Request, Option<u64>),
}

/// Pseudo-random numbers below an end.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// One or the other end of the days may be absent, and so may the cut.
    fn days(&mut self, days: &[NaiveDate], last: u64) -> (Option<NaiveDate>, Option<NaiveDate>, Option<u64>) {
        let (one, other) = (days[self.below(days.len())], days[self.below(days.len())]);
        let (from, to) = (one.min(other), one.max(other));
        let (has_from, has_to, has_cut) = (self.below(5), self.below(3), self.below(3));
        let at = Some(1 + self.below(last as usize) as u64).filter(|_| has_cut == 0);
        (Some(from).filter(|_| has_from > 0), Some(to).filter(|_| has_to > 0), at)
    }
}

fn settings(data: &Path, server: Option<&World>) -> JournalSettings {
    JournalSettings {
        store: Store::Sled,
        ops_tls_cert: None,
        data: data.to_path_buf(),
        ops_listen: server.map_or("127.0.0.1:1".parse().unwrap(), |world| world.address_of("/ops/export")),
        ops_token: server.map_or(SecretSource::Data, |_| SecretSource::Text(OPS_TOKEN.to_owned().into())),
    }
}

/// The files of a command, or why it made none.
pub(super) type FilesOrError = Result<Vec<(PathBuf, Vec<u8>)>, String>;

/// The files that the command makes, or why it makes none.
pub(super) async fn made(data: &Path, server: Option<&World>, book_request: &BookRequest) -> FilesOrError {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_owned();
    let run = async || {
        let journal = settings(data, server);
        match book_request.clone() {
            BookRequest::Report(request, format, at) => {
                let at = at.map(|at| Cut::new(vec![Sequence(at)]));
                let settings = ReportSettings { journal, request, format, at, out: Some(folder.clone()) };
                report::run(settings).await.map_err(|error| error.to_string())
            }
            BookRequest::Export(request, at) => {
                let at = at.map(|at| Cut::new(vec![Sequence(at)]));
                let chart = request.format.is_mapped().then(|| (Chart::parse(mapped::CHART).unwrap(), Level::Day));
                let settings = ExportSettings { journal, request, at, out: folder.clone(), compress: false, chart };
                export::run(settings).await.map_err(|error| error.to_string())
            }
        }
    };
    unlocked(run).await?;
    Ok(files(&folder).into_iter().map(|(path, _)| (path.clone(), std::fs::read(folder.join(path)).unwrap())).collect())
}

/// Fails unless two commands made the same files, or failed alike; says what is not alike.
fn alike(one: &FilesOrError, other: &FilesOrError, what: &str) {
    let shown = |made: &FilesOrError| match made {
        Ok(files) => files.iter().map(|(path, bytes)| format!("{} {}", path.display(), bytes.len())).collect(),
        Err(error) => error.clone(),
    };
    assert!(one == other, "{what}: {} and {}", shown(one), shown(other));
}

/// What the server answers.
async fn served(world: &World, book_request: &BookRequest) -> Option<Vec<u8>> {
    let (path, days) = match book_request {
        BookRequest::Report(request, format, at) if *format != ReportFormat::Table => {
            let account = request.account.as_ref().map(|account| format!("&account={account}")).unwrap_or_default();
            let path = format!("/ops/reports/{}?format={}{account}", request.report.name(), format.name());
            (path, (&request.ledger, request.from, request.to, at))
        }
        BookRequest::Export(request, at) if !request.format.is_mapped() => {
            let is_served = request.ledger.is_some() || !request.format.is_plain_text();
            let path = format!("/ops/export?format={}", request.format.name());
            (Some(path).filter(|_| is_served)?, (&request.ledger, request.from, request.to, at))
        }
        _ => return None,
    };
    let (ledger, from, to, at) = days;
    let part = |name: &str, value: Option<String>| value.map(|value| format!("&{name}={value}")).unwrap_or_default();
    let [ledger, from, to, at] = [
        part("ledger", ledger.clone()),
        part("from", from.map(|day| day.to_string())),
        part("to", to.map(|day| day.to_string())),
        part("at", at.map(|at| at.to_string())),
    ];
    let path = format!("{path}{ledger}{from}{to}{at}");
    Some(world.bytes(&path, &[("authorization", bearer(OPS_TOKEN).as_str())]).await.1)
}

/// Everything that may be asked for, each with days and a cut of its own.
fn all(random: &mut Random, merchant: &Merchant<'_>, days: &[NaiveDate], last: u64) -> Vec<BookRequest> {
    let house = "P-house".to_owned();
    let ledgers = [merchant.ledger(), merchant.ledger().replace("M-", "P-"), "P-all".to_owned(), house];
    let mut requests = Vec::new();
    for &report in Report::ALL {
        for format in [ReportFormat::Table].into_iter().chain(ReportFormat::SERVED) {
            let (from, to, at) = random.days(days, last);
            let ledger = Some(ledgers[random.below(4)].clone()).filter(|_| random.below(2) == 0);
            let account = Some("Assets:Bank".to_owned());
            let account = account.filter(|_| report == Report::GeneralLedger && random.below(3) == 0);
            let is_one = report == Report::Statement;
            let mut request = ReportRequest { report, ledger, account, by: DayOf::Booking, from, to };
            if is_one {
                request.ledger = Some(merchant.ledger());
            }
            if request.check().is_err() {
                request.ledger = request.ledger.filter(|_| is_one);
            }
            if matches!(report, Report::Receivables | Report::SettlementCalendar) {
                request.from = None;
            }
            request.check().unwrap();
            requests.push(BookRequest::Report(request, format, at));
        }
    }
    for format in Format::MADE.into_iter().chain([Format::JournalEntries]) {
        for _ in 0..3 {
            let (from, to, at) = random.days(days, last);
            let ledger = Some(ledgers[random.below(4)].clone());
            let ledger = ledger.filter(|_| format.is_mapped() || random.below(2) == 0);
            requests.push(BookRequest::Export(Request { ledger, format, from, to }, at));
        }
    }
    requests
}

/// What is due at the end of each fifth day, and at the cut of each ninth Record.
fn due_on_days(days: &[NaiveDate], last: u64) -> Vec<BookRequest> {
    let of = |report, to, at| {
        let request = ReportRequest { report, ledger: None, account: None, by: DayOf::Booking, from: None, to };
        BookRequest::Report(request, ReportFormat::Csv, at)
    };
    let reports = [Report::Receivables, Report::SettlementCalendar];
    let on_days = days.iter().step_by(5).map(|day| (Some(*day), None));
    let at_cuts = (1..=last).step_by(9).map(|at| (None, Some(at)));
    let ends: Vec<_> = on_days.chain(at_cuts).collect();
    reports.into_iter().flat_map(|report| ends.iter().map(move |(to, at)| of(report, *to, *at))).collect()
}

/// Whether a report begins with more than the balances of a file: what is due, or rates.
fn is_of_what_files_carry(book_request: &BookRequest) -> bool {
    let reports = [Report::Receivables, Report::SettlementCalendar, Report::Fees];
    matches!(book_request, BookRequest::Report(request, _, None) if reports.contains(&request.report))
}

/// The rows of a report from a day on are the last rows of the whole one, with their balances.
async fn ends_are_alike(world: &World, merchant: &Merchant<'_>, days: &[NaiveDate]) {
    let reports = [("daily-close", String::new()), ("statement", merchant.ledger()), ("general-ledger", String::new())];
    for (name, ledger) in reports {
        let ledger = if ledger.is_empty() { ledger } else { format!("&ledger={ledger}") };
        let whole = world.ops_get(&format!("/ops/reports/{name}?format=json{ledger}")).await.expect(200);
        for from in days.iter().step_by(9) {
            let path = format!("/ops/reports/{name}?format=json{ledger}&from={from}");
            let part = world.ops_get(&path).await.expect(200);
            let begins = from.to_string();
            let is_later =
                |row: &&Value| text(&row["date"]) >= begins && row["event"] != "opening" && row["event"] != "closing";
            let [expected, found] = [&whole, &part]
                .map(|report| report["rows"].as_array().unwrap().iter().filter(is_later).cloned().collect::<Vec<_>>());
            assert_eq!(found, expected, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beginning_at_a_balance_file_changes_no_byte() {
    for seed in [5, 6] {
        let world = World::sandbox().await;
        let merchant = month::play_random(&world, seed).await;
        let now = world.advance(0).await;
        world.advance_to(next_month(now)).await;
        // Rates change while a charge waits for its payer, across a day.
        let txid = text(&merchant.post("/api/pix", &pix("123.45")).await.expect(201)["txid"]);
        let fees = json!({"fees": {"pix": "2.5", "mdr_1x": "3.3"}});
        world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &fees).await.expect(200);
        world.advance(DAY - 2 * 3_600).await;
        assert_eq!(merchant.pay(&txid).await.status, 200);
        merchant.paid_pix(&pix("50.00")).await;
        world.engine().settle_balance_files().unwrap();
        let export = rows_of(&world.ops_get("/ops/export").await.text);
        let dates = [0, export.len() - 1].map(|place| day(&text(&export[place]["date"])).unwrap());
        let days: Vec<_> = dates[0].iter_days().take_while(|date| *date <= dates[1] + Days::new(3)).collect();
        assert!(days.len() > 10, "{days:?}");
        ends_are_alike(&world, &merchant, &days[..days.len() - 3]).await;
        let mut requests = all(&mut Random(seed), &merchant, &days, world.cut().await.records());
        let of_the_payment = Some(dates[1]);
        let fees = ReportRequest {
            report: Report::Fees,
            ledger: None,
            account: None,
            by: DayOf::Booking,
            from: of_the_payment,
            to: None,
        };
        requests.push(BookRequest::Report(fees, ReportFormat::Json, None));
        let mut answers = Vec::new();
        let begins_there = due_on_days(&days, world.cut().await.records());
        let engine = world.engine();
        let begun = engine.balances_before(Timestamp(i64::MAX), &engine.published(), true).unwrap().through();
        assert!(begun.records() > world.cut().await.records() / 2, "what is due is read from a file");
        for (place, request) in requests.into_iter().chain(begins_there).enumerate() {
            let answer = served(&world, &request).await;
            let sent = if place % 3 == 0 || is_of_what_files_carry(&request) {
                Some(made(&world.folder(), Some(&world), &request).await)
            } else {
                None
            };
            answers.push((request, answer, sent));
        }
        let folder = world.stopped().await;
        let mut begun = Vec::new();
        for (request, ..) in &answers {
            begun.push(made(folder.path(), None, request).await);
        }
        let mut count = 0;
        for file in std::fs::read_dir(folder.path().join("files")).unwrap() {
            let path = file.unwrap().path();
            if ["balances", "receivables"].iter().any(|kind| path.to_string_lossy().contains(kind)) {
                std::fs::remove_file(path).unwrap();
                count += 1;
            }
        }
        // Two of each, when the story begins on the first of a month.
        assert!(count >= 4, "{count} balance files and receivables files");
        let mut has_failed = 0;
        for ((request, answer, sent), begun) in answers.into_iter().zip(begun) {
            let whole = made(folder.path(), None, &request).await;
            has_failed += u32::from(whole.is_err());
            alike(&begun, &whole, &format!("seed {seed}, the command: {request:?}"));
            if let Some(sent) = sent {
                alike(&sent, &whole, &format!("seed {seed}, the command and a server: {request:?}"));
            }
            if let (Some(answer), Ok(files)) = (answer, whole) {
                let all = files.iter().filter(|(path, _)| !path.to_string_lossy().ends_with(".manifest.json"));
                let all: Vec<_> = all.map(|(_, bytes)| bytes.as_slice()).collect();
                assert!(all.len() != 1 || all[0] == answer, "seed {seed}, the server: {request:?}");
            }
        }
        assert_eq!(has_failed, 0, "seed {seed}: all can be made");
    }
}
