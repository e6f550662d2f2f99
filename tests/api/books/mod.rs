//! Exports and reports, held against the programs that read them and against what the server says
//! of the same books: bean-check, hledger and ledger accept them and come to our balances, account
//! by account; a centavo that was moved is caught; names inject nothing.
//!
//! A program that is not installed is named and passed over, unless `CENTAVO_CONFORMANCE=required`.

mod made;
mod month;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use self::made::{M, P, R};
use self::tools::{Balances, tools, with_included, without_zeros};
use crate::world::{self, OPS_TOKEN, World, text};
use actors::store::Sequence;
use centavo::config::{ExportSettings, JournalSettings};
use centavo::export::{Exporter, Folder, Format, Out, Part, Request, Stream, command};
use centavo::http::timestamp::day;
use centavo::secrets::SecretSource;
use centavo::store::Store;
use ledger::record::Record;
use serde_json::Value;

/// The month's books of every ledger, as a server tells them.
type Told = BTreeMap<String, Balances>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_come_to_the_balances_that_the_server_tells() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    world.check_books().await;
    let told = told(&world).await;
    assert_eq!(told.len(), 4, "a merchant, two recipients and the platform's shard");
    assert!(told[&merchant.ledger()].len() >= 8, "{told:?}");
    let folder = world.stopped().await;
    for tool in tools() {
        let out = folder.path().join(format!("books-{}", tool.format.name()));
        run(folder.path(), &out, whole(tool.format), None).await.unwrap();
        for (ledger, balances) in &told {
            let main = out.join(ledger).join(format!("main.{}", tool.format.name()));
            tool.check(&main).unwrap_or_else(|error| panic!("{tool:?}, {ledger}: {error}"));
            assert_eq!(tool.balances(&main), *balances, "{tool:?}, {ledger}");
            let mut months = 0;
            for (file, text) in files(main.parent().unwrap()) {
                let file = main.with_file_name(file);
                for moved in with_a_centavo_moved(&text) {
                    months += 1;
                    std::fs::write(&file, &moved).unwrap();
                    tool.check(&main).expect_err(&format!("{tool:?}, {file:?} lets pass:\n{moved}"));
                }
                std::fs::write(&file, text).unwrap();
            }
            assert!(months >= 4, "{ledger} has two months");
            tool.check(&main).unwrap();
        }
    }
}

/// The file with a centavo put on one posting of its first transaction, and with a centavo moved
/// there from one posting to another.
fn with_a_centavo_moved(text: &str) -> Vec<String> {
    let Some(transaction) = text.split("\n\n").find(|block| block.contains("sequence: ")) else { return Vec::new() };
    let raised = |line: &str, by: i64| -> Option<String> {
        let (account, rest) = line.rsplit_once("  ")?;
        let (amount, rest) = rest.split_once(" BRL")?;
        let centavos: i64 = amount.replace('.', "").parse().ok()?;
        let moved = centavos + by;
        let sign = if moved < 0 { "-" } else { "" };
        Some(format!("{account}  {sign}{}.{:02} BRL{rest}", moved.abs() / 100, moved.abs() % 100))
    };
    let postings: Vec<_> = transaction.lines().filter(|line| raised(line, 0).is_some()).collect();
    let [first, second, ..] = postings[..] else { panic!("no two postings in {transaction}") };
    let one = transaction.replacen(first, &raised(first, 1).unwrap(), 1);
    let both = one.replacen(second, &raised(second, -1).unwrap(), 1);
    [one, both].map(|changed| text.replacen(transaction, &changed, 1)).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_month_holds_every_event_of_the_accounting_manual() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    world.check_books().await;
    let rows = rows_of(&world.ops_get("/ops/export").await.text);
    let holds = |event: &str, posting: &str| {
        let [ledger, side, account] = posting.split(' ').collect::<Vec<_>>()[..] else { panic!("{posting}") };
        rows.iter().any(|row| {
            row["event"] == event
                && text(&row["ledger"]).starts_with(ledger)
                && text(&row["account"]).starts_with(account)
                && row[side].as_i64() > Some(0)
        })
    };
    let missing: Vec<_> = month::EVENTS.iter().filter(|(_, event, posting)| !holds(event, posting)).collect();
    assert!(missing.is_empty(), "the month does not hold: {missing:#?}");
    let named: BTreeSet<_> = month::EVENTS.iter().map(|(_, event, _)| (*event).to_owned()).collect();
    let played: BTreeSet<_> = rows.iter().map(|row| text(&row["event"])).collect();
    assert_eq!(played, named, "whatever posts has its line in the list");
    let charges = |event: &str| -> BTreeSet<String> {
        rows.iter().filter(|row| row["event"] == event).map(|row| text(&row["objects"]["txid"])).collect()
    };
    assert!(charges("late_pix_received").is_subset(&charges("payer_repaid")), "what came too late is sent back");

    // What posts nothing.
    for (path, statuses) in [
        ("/api/charges?per_page=100", &["pending", "CONCLUIDA", "RECUSADA", "cancelled"][..]),
        ("/api/cashout", &["processed", "failed"]),
        ("/api/refunds", &["approved", "rejected"]),
        ("/api/disputes", &["accepted", "released"]),
    ] {
        let list = merchant.get(path).await.expect(200);
        let found: BTreeSet<_> = world::items(&list).iter().map(|item| text(&item["status"])).collect();
        assert_eq!(found, statuses.iter().map(ToString::to_string).collect(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_folder_and_a_server_give_the_same_bytes() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let data = world.folder();
    let day_of_the_first = text(&rows_of(&report(&merchant, "").await)[0]["date"]);
    let from = day(&day_of_the_first).unwrap().succ_opt().unwrap();
    let days = format!("&from={from}&to={}", from + chrono::Days::new(20));
    let ledger = merchant.ledger();
    let mut served = Vec::new();
    for format in Format::MADE {
        for (ledger, days) in [(Some(&ledger), ""), (Some(&ledger), days.as_str()), (None, ""), (None, days.as_str())] {
            let mut request = Request { ledger: ledger.cloned(), ..whole(format) };
            if !days.is_empty() {
                (request.from, request.to) = (Some(from), Some(from + chrono::Days::new(20)));
            }
            let out = data.join(format!("served-{}", served.len()));
            run(&data, &out, request.clone(), Some(&world)).await.unwrap();
            if let (Some(ledger), files) = (ledger, files(&out)) {
                let query = format!("format={}{days}", format.name());
                let exported = world.ops_get(&format!("/ops/export?ledger={ledger}&{query}")).await;
                let reported = merchant.get(&format!("/api/reports/ledger?{query}")).await;
                let whole = joined(&files, format);
                let without = without_operators(&whole, format);
                assert!(!days.is_empty() || without != whole, "operators decided something in the month");
                assert!(!whole.is_empty() && exported.status == 200, "{}", exported.text);
                assert_eq!(exported.text, whole, "{request:?}");
                assert_eq!(reported.text, without, "{request:?}");
                let disposition = format!("attachment; filename=\"{}\"", request.file_name());
                assert_eq!(reported.header("content-disposition"), Some(disposition.as_str()));
                assert_eq!(reported.header("content-type"), Some(format.media_type()));
            }
            served.push((request, files(&out)));
        }
    }
    let folder = world.stopped().await;
    for (place, (request, served)) in served.into_iter().enumerate() {
        for round in ["first", "again"] {
            let out = folder.path().join(format!("stopped-{place}-{round}"));
            run(folder.path(), &out, request.clone(), None).await.unwrap();
            assert!(files(&out) == served, "{request:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_sum_to_the_books_and_csv_has_the_same() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let told = told(&world).await;
    let json = rows_of(&world.ops_get("/ops/export").await.text);
    let mut sums: Told = BTreeMap::new();
    for row in &json {
        let net = i128::from(row["debit"].as_i64().unwrap() - row["credit"].as_i64().unwrap());
        let balances = sums.entry(text(&row["ledger"])).or_default();
        *balances.entry(text(&row["account"])).or_default() += net;
    }
    for balances in sums.values_mut() {
        assert_eq!(balances.values().sum::<i128>(), 0);
        balances.retain(|_, net| *net != 0);
    }
    assert_eq!(sums, told);
    assert!(json.iter().filter(|row| row["event"] == "pix_paid").all(|row| row["objects"]["txid"].is_string()));

    let csv = parsed_csv(&world.ops_get("/ops/export?format=csv").await.text);
    let (head, lines) = csv.split_first().unwrap();
    let as_cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::Object(objects) => {
            objects.iter().map(|(name, id)| format!("{name}={}", text(id))).collect::<Vec<_>>().join(" ")
        }
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let expected: Vec<Vec<String>> =
        json.iter().map(|row| head.iter().map(|column| as_cell(&row[column])).collect()).collect();
    assert!(lines.len() == json.len() && json.iter().all(|row| row.as_object().unwrap().len() == head.len()));
    let sorted = |cells: &Vec<String>| {
        let objects = head.iter().position(|column| column == "objects").unwrap();
        let mut cells = cells.clone();
        let mut ids: Vec<_> = cells[objects].split(' ').map(str::to_owned).collect();
        ids.sort();
        cells[objects] = ids.join(" ");
        cells
    };
    assert_eq!(lines.iter().map(sorted).collect::<Vec<_>>(), expected.iter().map(sorted).collect::<Vec<_>>());

    // Two halves are the whole, and a cut is a cut.
    let middle = text(&json[json.len() / 2]["date"]);
    let until = day(&middle).unwrap().pred_opt().unwrap();
    let first = world.ops_get(&format!("/ops/export?to={until}")).await.text;
    let second = world.ops_get(&format!("/ops/export?from={middle}")).await.text;
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!([rows_of(&first), rows_of(&second)].concat(), json);
    let at = json[json.len() / 3]["sequence"].as_u64().unwrap();
    let cut = rows_of(&world.ops_get(&format!("/ops/export?at={at}")).await.text);
    let through: Vec<_> = json.iter().filter(|row| row["sequence"].as_u64().unwrap() <= at).cloned().collect();
    assert_eq!(cut, through);
    let own: Vec<_> = json.iter().filter(|row| row["ledger"] == merchant.ledger().as_str()).cloned().collect();
    let without_operator = |mut row: Value| {
        row["operator"] = Value::Null;
        row
    };
    assert!(own.iter().any(|row| row["operator"].is_string()));
    assert_eq!(rows_of(&report(&merchant, "").await), own.into_iter().map(without_operator).collect::<Vec<_>>());
}

/// What is left of an export of one ledger without the names of the operators.
fn without_operators(text: &str, format: Format) -> String {
    let lines = text.split_inclusive('\n').enumerate().map(|(place, line)| match format {
        Format::Jsonl => format!("{}\"operator\":null}}\n", line.rsplit_once("\"operator\":").unwrap().0),
        Format::Csv if place > 0 => format!("{},\r\n", line.rsplit_once(',').unwrap().0),
        Format::Csv => line.to_owned(),
        _ if line.trim_start_matches([' ', ';']).starts_with("operator: ") => String::new(),
        _ => line.to_owned(),
    });
    lines.collect::<String>().replace("\ntag operator\n", "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_of_the_callers_own_books_and_bad_queries_are_named() {
    let world = World::sandbox().await;
    let (one, other) = (world.merchant().await, world.merchant().await);
    one.paid_pix(&world::pix("80.00")).await;
    assert!(rows_of(&report(&other, "").await).is_empty());
    assert!(rows_of(&report(&one, "").await).iter().all(|row| row["ledger"] == one.ledger().as_str()));
    for (query, field, code) in [
        ("format=pdf", "format", "unknown"),
        ("format=parquet", "format", "unknown"),
        ("from=2026-7-1", "from", "invalid_date"),
        ("from=2026-07-01T00:00:00Z", "from", "invalid_date"),
        ("to=2026-02-29", "to", "invalid_date"),
        ("from=2026-07-02&to=2026-07-01", "to", "before_from"),
        ("format=csv&format=jsonl", "format", "ambiguous"),
        ("form=2026-07-01", "form", "unknown_parameter"),
        ("From=2026-07-01", "From", "unknown_parameter"),
        ("format=csv&page=1", "page", "unknown_parameter"),
    ] {
        for answer in [
            one.get(&format!("/api/reports/ledger?{query}")).await,
            world.ops_get(&format!("/ops/export?{query}")).await,
        ] {
            let error = &answer.refused(400, "validation_failed")["errors"][0];
            assert_eq!((&error["field"], &error["code"]), (&field.into(), &code.into()), "{query}");
        }
    }
    for query in ["at=1", "ledger=all"] {
        let refused = one.get(&format!("/api/reports/ledger?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["code"], "unknown_parameter", "{query}");
    }
    let all = world.ops_get("/ops/export?format=beancount").await.refused(400, "validation_failed");
    assert_eq!(all["errors"][0]["field"], "ledger");
    world.ops_get("/ops/export?at=999999").await.refused(400, "validation_failed");
    world.ops_get(&format!("/ops/export?ledger=M-{}", made::id(1).uuid())).await.refused(404, "not_found");
    let no_key = world.send(reqwest::Method::GET, "/api/reports/ledger", &[], "").await;
    no_key.refused(401, "unauthorized");

    let (data, out) = (world.folder(), world.folder().join("out"));
    let unknown = Request { ledger: Some(format!("R-{}", made::id(1).uuid())), ..whole(Format::Csv) };
    let error = run(&data, &out, unknown, Some(&world)).await.unwrap_err();
    assert!(error.contains("there is no ledger R-"), "{error}");
    assert!(files(&out).is_empty(), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_person_and_no_hostile_name_is_in_an_export() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let folder = world.folder();
    for format in Format::MADE {
        let out = folder.join(format.name());
        run(&folder, &out, whole(format), Some(&world)).await.unwrap();
        let texts: Vec<String> = files(&out).into_iter().map(|(_, text)| text).collect();
        let texts = texts.iter().map(String::as_str).chain([report(&merchant, "").await.as_str()]).collect::<String>();
        for name in
            month::HOSTILE.into_iter().chain(["passwd", "calc", "Gift", "Maria", "João", "example.com", "12345678909"])
        {
            assert!(!texts.contains(name), "{format:?} has {name}");
        }
    }
}

/// Every account of the chart, the two months that the Records cross, days in Sao Paulo, and an
/// operator with a name that tries to get out of its line.
#[test]
fn the_programs_accept_every_line_of_the_manual() {
    let records = made::manual();
    let rows = rows_made(&whole(Format::Jsonl), &records);
    assert_eq!(rows[0]["date"], "2026-06-30", "a millisecond before midnight in Sao Paulo");
    assert_eq!(rows[0]["booked_at"], "2026-07-01T02:59:59.999Z");
    assert_eq!(rows[0]["operator"], "_cmd__2026-01-01_open_Assets_Gift_BRL____x_");
    let csv = String::from_utf8(made_in_one(&whole(Format::Csv), &records)).unwrap();
    assert_eq!(parsed_csv(&csv).len(), rows.len() + 1);
    let accounts: BTreeSet<_> = rows.iter().map(|row| (text(&row["ledger"]), text(&row["account"]))).collect();
    assert_eq!(accounts.len(), 50, "the 48 accounts of the chart, two of which are a merchant's and a recipient's");
    for tool in tools() {
        for from in [None, day("2026-08-01"), day("2026-08-15")] {
            let folder = tempfile::tempdir().unwrap();
            let request = Request { from, ..whole(tool.format) };
            let mut out = Folder::open(folder.path(), &request).unwrap();
            made::export(&request, &records, &mut out);
            out.finish().unwrap();
            for ledger in [M, R, P] {
                let expected = sums_made(&rows, ledger);
                let named = request.dated(&name_made(ledger));
                let main = folder.path().join(named).join(format!("main.{}", tool.format.name()));
                tool.check(&main).unwrap_or_else(|error| panic!("{tool:?}, {ledger:?}, {from:?}: {error}"));
                assert_eq!(tool.balances(&main), expected, "{tool:?}, {ledger:?}, {from:?}");
                let texts = with_included(&main).concat();
                assert!(!texts.contains("Assets:Gift") && !texts.contains("/etc/passwd"), "{texts}");
            }
        }
    }
}

/// Each of these is one line that somebody changed in the file.
#[test]
fn a_centavo_that_was_moved_is_caught() {
    let records = made::manual();
    for tool in tools() {
        let folder = tempfile::tempdir().unwrap();
        let request = whole(tool.format);
        let mut out = Folder::open(folder.path(), &request).unwrap();
        made::export(&request, &records, &mut out);
        out.finish().unwrap();
        let ledger = folder.path().join(name_made(M));
        let main = ledger.join(format!("main.{}", tool.format.name()));
        let july = ledger.join(format!("2026-07.{}", tool.format.name()));
        let sound = std::fs::read_to_string(&july).unwrap();
        tool.check(&main).unwrap();
        let of = |account: &str, amount: &str| format!("{account}  {amount} BRL");
        let (debit, credit) = (of("Expenses:Fees:Mdr", "2.99"), of("Income:Sales:InitialFee", "-20.00"));
        let moved: [(&str, String); 4] = [
            ("an amount", sound.replacen(&debit, &of("Expenses:Fees:Mdr", "3.00"), 1)),
            ("an account", sound.replacen(&debit, &of("Expenses:Fees:Antifraud", "2.99"), 1)),
            (
                "both sides",
                sound.replacen(&debit, &of("Expenses:Fees:Mdr", "2.98"), 1).replacen(
                    &credit,
                    &of("Income:Sales:InitialFee", "-19.99"),
                    1,
                ),
            ),
            ("a transaction that is gone", without_one(&sound)),
        ];
        for (what, text) in moved {
            assert_ne!(text, sound, "{tool:?}: {what}");
            std::fs::write(&july, text).unwrap();
            let said = tool.check(&main).expect_err(&format!("{tool:?} lets pass: {what}"));
            assert!(said.contains("2026-07"), "{tool:?}, {what}: {said}");
        }
    }
}

/// The last transaction of the last day that has one, without those that only assert.
fn without_one(text: &str) -> String {
    let blocks: Vec<&str> = text.split("\n\n").collect();
    let last = blocks.iter().rposition(|block| block.contains("sequence: ")).unwrap();
    let others = blocks.iter().enumerate().filter(|(place, _)| *place != last).map(|(_, block)| *block);
    others.collect::<Vec<_>>().join("\n\n")
}

/// What is written does not stay in memory.
#[test]
fn memory_does_not_grow_with_the_journal() {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    const ALONE: &str = "CENTAVO_BOOKS_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // Other tests would take memory meanwhile.
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "memory_does_not_grow_with_the_journal"]).env(ALONE, "1");
        let output = alone.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let records = made::manual();
    for (format, count) in [(Format::Jsonl, 10_000), (Format::Beancount, 40_000)] {
        let ledger = format.is_plain_text().then(|| name_made(P));
        let mut exporter = Exporter::new(Request { ledger, ..whole(format) });
        let mut out = Stream(Counter(0));
        let before = resident_kib();
        for sequence in 1..=count {
            let place = sequence as usize - 1;
            let (_, record) = &records[if place < 2 { place } else { 2 + place % (records.len() - 2) }];
            exporter.post(Sequence(sequence), sequence as i64 * 100_000, record, &mut out).unwrap();
        }
        exporter.finish(&mut out).unwrap();
        let (grown, written) = (resident_kib().saturating_sub(before), out.0.0 / 1024);
        assert!(written > 8 * 1024, "{format:?}: {written} KiB");
        assert!(grown < written / 2, "{format:?}: {grown} KiB for {written} KiB");
    }
}

/// The memory of this process.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// An export that fails leaves no file, and one that replaces another does so at its end.
#[test]
fn files_have_their_names_when_they_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let request = whole(Format::Csv);
    std::fs::write(folder.path().join("all.csv"), "before").unwrap();
    let mut out = Folder::open(folder.path(), &request).unwrap();
    for _ in 0..9 {
        out.write(Part::Rows, &vec![b'x'; 1 << 20]).unwrap();
    }
    assert!(folder.path().join("all.csv~").exists(), "what does not fit in memory is written");
    assert_eq!(std::fs::read_to_string(folder.path().join("all.csv")).unwrap(), "before");
    drop(out);
    assert!(!folder.path().join("all.csv~").exists());
    let mut out = Folder::open(folder.path(), &request).unwrap();
    out.write(Part::Rows, b"after").unwrap();
    out.finish().unwrap();
    assert_eq!(files(folder.path()), [("all.csv".into(), "after".to_owned())]);
}

/// Every file's path carries the days that were asked for, so that a month's export leaves those of
/// others as they are.
#[test]
fn the_export_of_a_month_leaves_that_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let records = made::manual();
    let month = |format, from, to| Request { from: day(from), to: day(to), ..whole(format) };
    let mut written = 0;
    for format in Format::MADE {
        let mut kept = Vec::new();
        for request in [
            month(format, "2026-06-01", "2026-06-30"),
            month(format, "2026-07-01", "2026-07-31"),
            month(format, "2026-07-01", ""),
            month(format, "", "2026-07-01"),
            whole(format),
        ] {
            let before = files(folder.path());
            let mut out = Folder::open(folder.path(), &request).unwrap();
            made::export(&request, &records, &mut out);
            written += out.finish().unwrap();
            let after = files(folder.path());
            assert!(before.iter().all(|file| after.contains(file)), "{request:?} changed what was there");
            kept = after;
        }
        assert!(!kept.is_empty());
    }
    let found = files(folder.path());
    assert_eq!(found.len(), written, "each has a file of its own");
    assert!(found.iter().any(|(path, _)| path == Path::new("all_2026-07-01_2026-07-31.csv")), "{found:?}");
}

fn whole(format: Format) -> Request {
    Request { ledger: None, format, from: None, to: None }
}

/// What `/ops/ledgers/{id}/accounts` says of every ledger, without zeros.
async fn told(world: &World) -> Told {
    let accounts = world.accounts().await;
    let ledgers: BTreeSet<&String> = accounts.keys().map(|(ledger, _)| ledger).collect();
    let mut told = Told::new();
    for ledger in ledgers {
        let shown = world.ops_get(&format!("/ops/ledgers/{ledger}/accounts")).await.expect(200);
        let rows = world::items(&shown).iter();
        let rows = rows.map(|row| (row["account"].as_str().unwrap(), i128::from(row["balance"].as_i64().unwrap())));
        told.insert(ledger.clone(), without_zeros(rows));
    }
    told
}

/// `centavo export`, through the server when there is one.
async fn run(data: &Path, out: &Path, request: Request, server: Option<&World>) -> Result<(), String> {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let journal = JournalSettings {
        store: Store::Sled,
        ops_tls_cert: None,
        data: data.to_path_buf(),
        ops_listen: server.map_or(nowhere, |world| world.address_of("/ops/export")),
        ops_token: server.map_or(SecretSource::Data, |_| SecretSource::Text(OPS_TOKEN.to_owned().into())),
    };
    let settings = ExportSettings { journal, request, at: None, out: out.to_path_buf() };
    command::run(settings).await.map_err(|error| error.to_string())
}

async fn report(merchant: &world::Merchant<'_>, query: &str) -> String {
    let answer = merchant.get(&format!("/api/reports/ledger{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

fn rows_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The files of a folder and of its folders, with their content, by path.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(folder).unwrap().to_path_buf(), text));
            }
        }
    }
    found.sort();
    found
}

/// The files of one ledger as they would be in one: the head, then month by month.
fn joined(files: &[(PathBuf, String)], format: Format) -> String {
    if !format.is_plain_text() {
        assert_eq!(files.len(), 1);
        return files[0].1.clone();
    }
    let (head, months): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| path.to_string_lossy().contains("main"));
    let (head, _includes) = head[0].1.split_once("\ninclude ").unwrap_or((&head[0].1, ""));
    std::iter::once(head).chain(months.iter().map(|(_, text)| text.as_str())).collect()
}

/// Reads CSV by RFC 4180.
fn parsed_csv(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => line.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted => {
                assert_eq!(letters.next(), Some('\n'));
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            letter => cell.push(letter),
        }
    }
    assert!(cell.is_empty() && line.is_empty() && !is_quoted, "the last line has its end");
    lines
}

fn made_in_one(request: &Request, records: &[(i64, Record)]) -> Vec<u8> {
    let mut out = Stream(Vec::new());
    made::export(request, records, &mut out);
    out.0
}

fn rows_made(request: &Request, records: &[(i64, Record)]) -> Vec<Value> {
    rows_of(&String::from_utf8(made_in_one(request, records)).unwrap())
}

fn name_made(ledger: ledger::id::LedgerId) -> String {
    let (letter, id) = match ledger {
        R => ("R", made::id(2)),
        P => ("P", made::id(1)),
        _ => ("M", made::id(1)),
    };
    format!("{letter}-{}", id.uuid())
}

/// The balances of a ledger by its rows.
fn sums_made(rows: &[Value], ledger: ledger::id::LedgerId) -> Balances {
    let rows = rows.iter().filter(|row| row["ledger"] == name_made(ledger).as_str());
    let net = |row: &Value| i128::from(row["debit"].as_i64().unwrap() - row["credit"].as_i64().unwrap());
    without_zeros(rows.map(|row| (row["account"].as_str().unwrap(), net(row))))
}
