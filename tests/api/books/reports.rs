//! Reports, compared with the server's balances, against each other in every format,
//! and against an oracle in Python that reads the export alone (`oracle.py`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use books::reports::{DayOf, Report, ReportFormat, ReportRequest};
use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};
use centavo::settings::checked::ReportSettings;
use chrono::NaiveDate;
use serde_json::{Value, json};
use wire::timestamp::day;

use super::tools::is_required;
use super::typed::HEAD_ROW;
use super::{LedgerBalances, balances_by_ledger, cut_before_stop, month, parsed_csv, rows_of, without_ids};
use crate::console::Browser;
use crate::world::{
    APPROVED, DAY, Merchant, OPS_TOKEN, SECOND_OPS_TOKEN, World, bearer, card, cnpj, cut_in, items, journal_in, pix,
    place_in, text, with_splits,
};

/// The query of a report that is of one ledger; empty for the others.
fn ledger_of(report: Report, merchant: &Merchant<'_>) -> String {
    if report == Report::Statement { format!("&ledger={}", merchant.ledger()) } else { String::new() }
}

async fn get(world: &World, report: Report, query: &str) -> Value {
    world.ops_get(&format!("/ops/reports/{}?{query}", report.name())).await.expect(200)
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

fn amount(value: &Value) -> i128 {
    i128::from(value.as_i64().unwrap_or_else(|| panic!("{value} is no amount")))
}

/// The sum of a column over the rows that are chosen.
fn sum(report: &Value, column: &str, chosen: impl Fn(&Value) -> bool) -> i128 {
    rows(report).iter().filter(|row| chosen(row)).map(|row| amount(&row[column])).sum()
}

/// The balance of all accounts of a kind, over all ledgers.
fn of_kind(by_ledger: &LedgerBalances, kind: &str) -> i128 {
    let all = by_ledger.values().flat_map(|balances| balances.iter());
    all.filter(|(account, _)| without_ids(account) == kind).map(|(_, balance)| balance).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_report_sums_to_the_books() {
    let world = World::sandbox().await;
    let merchant = month::play_open(&world).await;
    let by_ledger = balances_by_ledger(&world).await;

    let balance = get(&world, Report::TrialBalance, "").await;
    let closing = rows(&balance).iter().filter(|row| row["closing"] != 0);
    let closing: Vec<_> =
        closing.map(|row| (text(&row["ledger"]), text(&row["account"]), amount(&row["closing"]))).collect();
    let expected: Vec<_> = by_ledger
        .iter()
        .flat_map(|(ledger, of)| of.iter().map(move |(account, net)| (ledger.clone(), account.clone(), *net)))
        .collect();
    assert_eq!(closing, expected);
    assert_eq!(balance["totals"]["debits"], balance["totals"]["credits"]);
    assert_eq!((&balance["totals"]["opening"], &balance["totals"]["closing"]), (&json!(0), &json!(0)));
    assert_eq!(cut_in(&balance), world.cut().await);

    let ledger = get(&world, Report::GeneralLedger, "").await;
    let mut last: BTreeMap<(String, String), i128> = BTreeMap::new();
    let account = |row: &Value| (text(&row["ledger"]), text(&row["account"]));
    for row in rows(&ledger) {
        let balance = last.entry(account(row)).or_default();
        *balance += amount(&row["debit"]) - amount(&row["credit"]);
        assert_eq!(*balance, amount(&row["balance"]), "{row}");
        assert_eq!(row["counter_accounts"].is_null(), row["sequence"].is_null(), "{row}");
    }
    assert!(rows(&ledger).is_sorted_by_key(account), "account by account");
    for of in rows(&ledger).chunk_by(|one, other| account(one) == account(other)) {
        let days: Vec<_> = of.iter().map(|row| text(&row["date"])).collect();
        assert!(days.is_sorted(), "{days:?}");
        assert_eq!(json!([of[0]["event"], of[of.len() - 1]["event"]]), json!(["opening", "closing"]));
    }
    let found: Vec<_> =
        last.into_iter().filter(|(_, net)| *net != 0).map(|((one, two), net)| (one, two, net)).collect();
    assert_eq!(found, expected);

    let close = get(&world, Report::DailyClose, "").await;
    for bank in ["Assets:Bank:Settlement", "Assets:Bank:Pix", "Assets:Bank:Own"] {
        let of_bank: Vec<_> = rows(&close).iter().filter(|row| row["account"] == bank).collect();
        assert!(
            of_bank.windows(2).all(|two| two[0]["closing"] == two[1]["opening"] && two[0]["date"] != two[1]["date"])
        );
        assert_eq!(amount(&of_bank.last().unwrap()["closing"]), of_kind(&by_ledger, bank), "{bank}");
        assert!(of_bank.iter().all(|row| amount(&row["unexplained"]) == 0), "nothing is in suspense");
    }
    receivables_sum(&world, &by_ledger).await;
    income_sums(&world, &by_ledger).await;

    let statement = get(&world, Report::Statement, &format!("ledger={}", merchant.ledger())).await;
    let last = rows(&statement).last().unwrap();
    assert_eq!(last["balance"], statement["totals"]["amount"]);
    for (column, account) in
        [("pending_balance", "Assets:Platform:Pending"), ("available_balance", "Assets:Platform:Available")]
    {
        let expected = by_ledger[&merchant.ledger()].get(account).copied().unwrap_or_default();
        assert_eq!(amount(&last[column]), expected, "{column}");
    }
}

async fn receivables_sum(world: &World, by_ledger: &LedgerBalances) {
    let receivables = get(world, Report::Receivables, "").await;
    let mut held: BTreeMap<String, i128> = BTreeMap::new();
    for row in rows(&receivables) {
        let parts = ["mdr", "fees", "anticipated", "net"].map(|column| amount(&row[column]));
        assert_eq!(amount(&row["gross"]), parts.iter().sum::<i128>(), "{row}");
        *held.entry(text(&row["holder"])).or_default() += amount(&row["net"]);
    }
    held.retain(|_, net| *net != 0);
    let account =
        |ledger: &str| if ledger.starts_with('P') { "Assets:Acquirer:Receivable" } else { "Assets:Platform:Pending" };
    let expected = by_ledger.iter().filter_map(|(ledger, of)| Some((ledger.clone(), *of.get(account(ledger))?)));
    assert_eq!(held, expected.collect());
    let found = |of: &[(&str, &str)]| {
        rows(&receivables).iter().any(|row| of.iter().all(|(column, value)| row[*column] == *value))
    };
    for object in ["1", "2", "3", "refund", "dispute"] {
        assert!(found(&[("object", object), ("brand", "visa"), ("method", "credit_card")]), "{object}");
    }
    assert!(found(&[("object", "refund"), ("brand", "visa"), ("method", "debit_card")]));
    for bucket in ["0-1", "8-30", "31-60", "61+"] {
        assert!(found(&[("bucket", bucket)]), "{bucket}");
    }
    assert!(rows(&receivables).iter().any(|row| amount(&row["anticipated"]) > 0));
    // The same sales are due to the platform and by it: only one side of them has a sum.
    assert_eq!(receivables["totals"], json!({}));
    let platform = get(world, Report::Receivables, "ledger=P-all").await;
    let of_platform = sum(&receivables, "net", |row| text(&row["holder"]).starts_with("P-"));
    assert_eq!(amount(&platform["totals"]["net"]), of_platform);
    let calendar = get(world, Report::SettlementCalendar, "").await;
    for (column, holder) in [("acquirer", "P-"), ("merchants", "M-"), ("recipients", "R-")] {
        let of_holder = sum(&receivables, "net", |row| text(&row["holder"]).starts_with(holder));
        assert_eq!(amount(&calendar["totals"][column]), of_holder, "{column}");
    }
}

async fn income_sums(world: &World, by_ledger: &LedgerBalances) {
    let fees = get(world, Report::Fees, "").await;
    for (component, account) in [
        ("mdr", "Income:Commission:Mdr"),
        ("antifraud", "Income:Commission:Antifraud"),
        ("margin", "Income:Commission:Margin"),
        ("pix", "Income:Commission:Pix"),
        ("cashout", "Income:Fees:Cashout"),
        ("anticipation", "Income:Fees:Anticipation"),
    ] {
        let net = sum(&fees, "net", |row| row["component"] == component);
        assert_eq!(net, -of_kind(by_ledger, account), "{component}");
        assert!(net > 0, "the month has {component}");
    }
    // A rate and a base make the fee, up to half a centavo for each charge.
    for row in rows(&fees).iter().filter(|row| !row["rate"].is_null()) {
        let percent: f64 = text(&row["rate"]).parse().unwrap();
        let computed = row["base"].as_i64().unwrap() as f64 * percent / 100.0;
        let off = (computed - row["charged"].as_i64().unwrap() as f64).abs();
        assert!(off <= row["count"].as_u64().unwrap() as f64 / 2.0 + 1e-6, "{row}: {computed}");
    }
    assert!(rows(&fees).iter().any(|row| amount(&row["returned"]) > 0), "a refund gave commission back");
    let sales = ["Income:Sales:Card", "Income:Sales:Pix", "Income:Sales:InitialFee"];
    let sales: i128 = sales.iter().map(|account| of_kind(by_ledger, account)).sum();
    assert_eq!(amount(&fees["totals"]["volume"]), -sales, "each sale once, and nothing else");

    let income = get(world, Report::AnticipationIncome, "").await;
    assert_eq!(amount(&income["totals"]["discount"]), -of_kind(by_ledger, "Income:Fees:Anticipation"));
    for row in rows(&income) {
        let parts = ["earned_before", "earned", "deferred"].map(|column| amount(&row[column]));
        assert_eq!(amount(&row["discount"]), parts.iter().sum::<i128>(), "{row}");
    }
    let totals = get(world, Report::MonthlyTotals, "").await;
    for (method, sales) in
        [("card", &["Income:Sales:Card", "Income:Sales:InitialFee"][..]), ("pix", &["Income:Sales:Pix"])]
    {
        let sales: i128 = sales.iter().map(|account| of_kind(by_ledger, account)).sum();
        assert_eq!(sum(&totals, "gross", |row| text(&row["method"]).ends_with(method)), -sales, "{method}");
    }
    assert_eq!(amount(&totals["totals"]["refunded"]), of_kind(by_ledger, "Income:Contra:Refunds"));
    assert_eq!(amount(&totals["totals"]["disputed"]), of_kind(by_ledger, "Income:Contra:Chargebacks"));
    assert_eq!(amount(&totals["totals"]["splits"]), of_kind(by_ledger, "Income:Contra:Splits"));
}

/// A movement has its whole amount also where the money is less than it, and the balances with the
/// debt are those of the owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_adds_up_to_the_balance_with_a_debt() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let paid = merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 500)])).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 9_999)])).await.expect(201);
    let refund = with_splits(json!({"payment_id": paid["txid"], "amount": 8_000}), &[(&ana, 500)]);
    let id = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    let own = merchant.get("/api/balance").await.expect(200);
    let of_ana = merchant.get(&format!("/api/sub-recipients/{ana}")).await.expect(200)["balance"].clone();
    let names = ["pending", "available", "reserved", "debt"];
    let of =
        |balance: &Value, debt: &str| ["pending", "available", "reserved", debt].map(|name| amount(&balance[name]));
    for (ledger, expected) in [(merchant.ledger(), of(&own, "deficit")), (format!("R-{ana}"), of(&of_ana, "debt"))] {
        assert!(expected[3] > 0, "{ledger} owes: {own} {of_ana}");
        let statement = get(&world, Report::Statement, &format!("ledger={ledger}")).await;
        let mut balance = 0;
        for row in rows(&statement) {
            let [pending, available, reserved, debt] = names.map(|name| amount(&row[name]));
            assert_eq!(amount(&row["amount"]), pending + available + reserved - debt, "{row}");
            balance += amount(&row["amount"]);
            assert_eq!(amount(&row["balance"]), balance, "{row}");
        }
        let last = rows(&statement).last().unwrap();
        assert_eq!(names.map(|name| amount(&last[format!("{name}_balance")])), expected, "{ledger}");
        let takes = rows(&statement).iter().find(|row| amount(&row["debt"]) > 0 && amount(&row["available"]) < 0);
        assert!(ledger.starts_with('R') || takes.is_some(), "one movement takes what there is, and more: {statement}");
    }
}

/// A ledger is asked for by the name of its owner where one has it, or by the owner's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_takes_the_name_of_a_merchant_or_recipient() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let [ana, other] = [merchant.recipient("Ana Exemplo", 1).await, merchant.recipient("Ana Outra", 2).await];
    let name = text(&world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await.expect(200)["name"]);
    let path = |ledger: &str| {
        let ledger: String = form_urlencoded::byte_serialize(ledger.as_bytes()).collect();
        format!("/ops/reports/statement?ledger={ledger}")
    };
    for (asked, ledger) in [
        (name.as_str(), merchant.ledger()),
        (merchant.id.as_str(), merchant.ledger()),
        ("  ana  EXEMPLO ", format!("R-{ana}")),
        (other.as_str(), format!("R-{other}")),
        ("outra", format!("R-{other}")),
    ] {
        assert_eq!(world.ops_get(&path(asked)).await.expect(200)["ledger"], ledger, "{asked}");
    }
    for (asked, code) in [("Ana", "ambiguous"), ("Ninguém", "unknown"), ("?", "unknown")] {
        let refused = world.ops_get(&path(asked)).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["code"], code, "{asked}");
    }
    world.ops_get(&path("019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")).await.refused(404, "not_found");
    assert_eq!(get(&world, Report::TrialBalance, "ledger=plataforma").await["ledger"], "P-all");
}

/// Money at a bank that nobody has explained is a column of its own, and so is its way out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daily_close_says_what_is_unexplained() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    for (debit, credit, amount) in [
        ("Assets:Bank:Pix", "Liabilities:Suspense", 700),
        ("Liabilities:Suspense", "Assets:Bank:Pix", 200),
        ("Assets:Bank:Own", "Assets:Bank:Pix", 69),
    ] {
        let body = json!({"debit": debit, "credit": credit, "amount": amount, "reason": "Extrato", "reference": "E-1", "reference_repeats": true});
        let id = text(&world.second_ops_post("/ops/entries", &[], &body).await.expect(201)["id"]);
        world.ops_post(&format!("/ops/entries/{id}/approve"), &json!({})).await.expect(200);
    }
    let close = get(&world, Report::DailyClose, "").await;
    let row = |account: &str| rows(&close).iter().find(|row| row["account"] == account).unwrap().clone();
    let columns = ["opening", "in", "out", "closing", "explained", "unexplained"];
    for (account, expected) in [
        ("Assets:Bank:Pix", [0, 8_700, 269, 8_431, 7_931, 500]),
        ("Assets:Bank:Own", [0, 69, 0, 69, 69, 0]),
        ("Assets:Bank:Settlement", [0; 6]),
    ] {
        assert_eq!(columns.map(|column| amount(&row(account)[column])), expected, "{account}");
    }
}

/// The overview counts what the reports come to, also after a start that reads the journal again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_is_what_the_reports_sum_to() {
    let world = World::sandbox().await;
    month::play_open(&world).await;
    // An overview ends today, and is of 90 days.
    let overview = world.ops_get("/ops/overview").await.expect(200);
    let days = overview["days"].as_array().unwrap();
    assert_eq!(days.len(), 90);
    let from = text(&days[0]["date"]);
    let sum = |name: &str| days.iter().map(|day| amount(&day[name])).sum::<i128>();
    let close = get(&world, Report::DailyClose, &format!("from={from}")).await;
    for day in days {
        let of_day = rows(&close).iter().filter(|row| row["date"] == day["date"]);
        let of_day = of_day.fold([0, 0], |sums, row| [sums[0] + amount(&row["in"]), sums[1] + amount(&row["out"])]);
        assert_eq!(of_day, [amount(&day["money_in"]), amount(&day["money_out"])], "{day}");
    }
    assert!(sum("money_in") > 0 && sum("money_out") > 0, "{overview}");
    let months = get(&world, Report::MonthlyTotals, "").await;
    assert_eq!(sum("card_amount") + sum("pix_amount"), amount(&months["totals"]["gross"]));
    assert_eq!(sum("card_count") + sum("pix_count"), amount(&months["totals"]["count"]));
    let refusals = overview["refusals"].as_array().unwrap();
    assert_eq!(sum("refused_count"), refusals.iter().map(|of| amount(&of["count"])).sum());
    world.ops_get("/ops/overview?from=2026-01-01").await.refused(400, "validation_failed");
    let world = world.restarted().await;
    assert_eq!(world.ops_get("/ops/overview").await.expect(200), overview);
}

/// Two halves of the days are the whole, and the second one begins where the first one ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_follow_each_other() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let ledger = get(&world, Report::GeneralLedger, "").await;
    let first = day(&text(&rows(&ledger)[0]["date"])).unwrap();
    let middle = first + chrono::Days::new(20);
    let halves = [format!("to={middle}"), format!("from={}", middle + chrono::Days::new(1))];
    for &report in Report::ALL {
        let of = ledger_of(report, &merchant);
        if matches!(report, Report::Receivables | Report::SettlementCalendar) {
            continue;
        }
        let whole = get(&world, report, &of[of.len().min(1)..]).await;
        let [one, other] = [
            get(&world, report, &(halves[0].clone() + &of)).await,
            get(&world, report, &(halves[1].clone() + &of)).await,
        ];
        assert_ne!(one["cut"], whole["cut"], "{report:?}");
        assert_eq!(other["cut"], whole["cut"], "{report:?}");
        let moved = match report {
            Report::TrialBalance => &["debits", "credits"][..],
            Report::GeneralLedger | Report::LateEntries => &["debit", "credit"],
            // A day of effect of both halves is in each: its Records are counted apart.
            Report::ChangedDays => &["records", "late", "debits"],
            Report::DailyClose => &["in", "out", "explained", "unexplained"],
            Report::Fees => &["volume", "charged", "returned", "net"],
            Report::AnticipationIncome => &["earned"],
            Report::MonthlyTotals => &["count", "gross", "splits", "refunded", "disputed", "net"],
            Report::Statement => &["amount", "pending", "available", "reserved", "debt"],
            Report::Receivables | Report::SettlementCalendar => &[],
        };
        for column in moved {
            let [one, other, whole] = [&one, &other, &whole].map(|of| amount(&of["totals"][column]));
            assert_eq!(one + other, whole, "{report:?} {column}");
        }
        if report == Report::TrialBalance {
            let names = |report: &Value, column: &str| {
                let rows = rows(report).iter().filter(|row| row[column] != 0);
                rows.map(|row| (text(&row["ledger"]), text(&row["account"]), amount(&row[column]))).collect::<Vec<_>>()
            };
            assert_eq!(names(&one, "closing"), names(&other, "opening"));
        }
    }
}

async fn bytes(world: &World, path: &str) -> (reqwest::header::HeaderMap, Vec<u8>) {
    world.bytes(path, &[("authorization", bearer(OPS_TOKEN).as_str())]).await
}

fn request(report: Report, merchant: &Merchant<'_>) -> ReportRequest {
    let ledger = (report == Report::Statement).then(|| merchant.ledger());
    ReportRequest { report, ledger, account: None, by: DayOf::Booking, from: None, to: None }
}

/// Each report in each format: the same bytes twice and from the command; the rows of all formats
/// are those of JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_format_has_the_same_rows() {
    let world = World::sandbox().await;
    let merchant = month::play_open(&world).await;
    let mut served = Vec::new();
    for &report in Report::ALL {
        let path = |format: ReportFormat| {
            format!("/ops/reports/{}?format={}{}", report.name(), format.name(), ledger_of(report, &merchant))
        };
        let json = world.ops_get(&path(ReportFormat::Json)).await.expect(200);
        for format in ReportFormat::SERVED {
            let (headers, one) = bytes(&world, &path(format)).await;
            let (_, again) = bytes(&world, &path(format)).await;
            assert!(one == again, "{report:?} {format:?}");
            assert_eq!(headers["content-type"], format.media_type());
            assert_eq!(headers["report-cut"].to_str().unwrap(), cut_in(&json).to_string());
            assert_eq!(headers["report-head"].to_str().unwrap(), json["head"]);
            same_rows(format, &one, &json);
            served.push((request(report, &merchant), format, one));
        }
    }
    let at = cut_before_stop(&world).await;
    let folder = world.stopped().await;
    for (request, format, served) in served {
        let out = folder.path().join("reports");
        let journal = journal_in(folder.path());
        let name = request.file_name(format);
        centavo::commands::report::run(ReportSettings {
            journal,
            request,
            format,
            at: at.clone(),
            out: Some(out.clone()),
        })
        .await
        .unwrap();
        assert!(std::fs::read(out.join(&name)).unwrap() == served, "{name}");
    }
}

/// Columns whose values people read in Portuguese words.
const IN_WORDS: [&str; 8] = ["type", "ids", "event", "component", "method", "object", "bucket", "counter_accounts"];

fn same_rows(format: ReportFormat, bytes: &[u8], json: &Value) {
    let as_cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let names: Vec<String> = json["columns"].as_array().unwrap().iter().map(|column| text(&column["name"])).collect();
    let expected = || rows(json).iter().map(|row| names.iter().map(|name| as_cell(&row[name])).collect::<Vec<_>>());
    match format {
        ReportFormat::Csv => {
            let csv = parsed_csv(std::str::from_utf8(bytes).unwrap());
            let (head, lines) = csv.split_first().unwrap();
            assert_eq!(*head, names);
            let lines = lines
                .iter()
                .map(|line| line.iter().map(|cell| cell.trim_start_matches('\'').to_owned()).collect::<Vec<_>>());
            assert!(lines.eq(expected()));
        }
        ReportFormat::CsvPtbr => {
            let lines = std::str::from_utf8(bytes).unwrap().lines().count();
            assert_eq!(lines, rows(json).len() + 1);
        }
        ReportFormat::Xlsx => {
            let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(bytes)).unwrap();
            let sheet = book.worksheet_range_at(0).unwrap().unwrap();
            for (line, row) in sheet.rows().skip(HEAD_ROW + 1).zip(rows(json)) {
                for (column, cell) in json["columns"].as_array().unwrap().iter().zip(line) {
                    let name = text(&column["name"]);
                    let value = &row[&name];
                    let is_word = IN_WORDS.contains(&name.as_str()) && !cell.to_string().contains('_');
                    let is_same = match (cell, column["kind"].as_str().unwrap()) {
                        (Data::Empty, _) => value.is_null() || *value == "",
                        (Data::Float(reais), "centavos") => amount(value) == (reais * 100.0).round() as i128,
                        (Data::Float(count), "count") => value.as_f64() == Some(*count),
                        (Data::DateTime(at), "date") => {
                            let zero = NaiveDate::from_ymd_opt(1899, 12, 30).unwrap();
                            *value == (zero + chrono::Days::new(at.as_f64() as u64)).to_string()
                        }
                        (Data::Float(share), "percent") => text(value).parse() == Ok((share * 1e6).round() / 1e4),
                        (Data::Float(installment), "text") if name == "object" => {
                            text(value).parse() == Ok(*installment)
                        }
                        (Data::String(shown), "text") => is_word || value == shown,
                        _ => false,
                    };
                    assert!(is_same, "{column} {cell:?} {value}");
                }
            }
            let cut = book.worksheet_range("Corte").unwrap();
            assert!(cut.get_value((0, 0)).unwrap().to_string().contains(&text(&json["head"])));
        }
        ReportFormat::Html => {
            let page = std::str::from_utf8(bytes).unwrap();
            assert!(page.contains("@media print") && page.contains("@page{size:A4"), "it prints");
            assert!(page.ends_with("</html>\n") && page.contains(&text(&json["head"])));
            let total = usize::from(json["totals"] != json!({}));
            assert_eq!(page.matches("<tr>").count(), rows(json).len() + 1 + total);
        }
        ReportFormat::Json | ReportFormat::Table => {}
    }
}

/// Each report as a workbook, by the programs of accountants: `accountant.py` reads it with
/// openpyxl and pandas, and as LibreOffice converts it, and compares it with the JSON of the same
/// report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_accountants_read_each_report() {
    let Some(program) = python() else { return };
    let world = World::sandbox().await;
    let merchant = month::play_open(&world).await;
    let folder = tempfile::tempdir().unwrap();
    let mut books = Vec::new();
    for &report in Report::ALL {
        let of = ledger_of(report, &merchant);
        let json = get(&world, report, of.trim_start_matches('&')).await;
        std::fs::write(folder.path().join(format!("{}.json", report.name())), json.to_string()).unwrap();
        let (_, book) = bytes(&world, &format!("/ops/reports/{}?format=xlsx{of}", report.name())).await;
        books.push(folder.path().join(format!("{}.xlsx", report.name())));
        std::fs::write(&books[books.len() - 1], book).unwrap();
    }
    let profile = format!("-env:UserInstallation=file://{}/office", folder.path().display());
    let mut office = Command::new("soffice");
    // Without the number of UTF-8, LibreOffice writes the character set of the system.
    let csv = "csv:Text - txt - csv (StarCalc):44,34,76";
    office.args([&profile, "--headless", "--convert-to", csv, "--outdir"]).arg(folder.path()).args(&books);
    match office.output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => {
            println!("not checked, because it is not installed: LibreOffice ({error})");
            assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and there is no soffice of LibreOffice");
        }
    }
    assert_eq!(differences(&program, "accountant.py", folder.path()), [""; 0]);
    let fees = folder.path().join("fees.json");
    let wrong = std::fs::read_to_string(&fees).unwrap().replacen("\"charged\":", "\"charged\":1", 1);
    std::fs::write(fees, wrong).unwrap();
    let found = differences(&program, "accountant.py", folder.path());
    assert!(!found.is_empty() && found.iter().all(|line| line.starts_with("fees")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_cannot_be_made_is_refused() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let ledger = merchant.ledger();
    for query in [
        "trial-balance?form=csv",
        "trial-balance?format=parquet",
        "trial-balance?from=2026-13-01",
        "trial-balance?from=2026-07-02&to=2026-07-01",
        "trial-balance?account=Assets",
        "general-ledger?account=",
        "general-ledger?account=a%20b",
        "receivables?from=2026-07-01",
        "settlement-calendar?from=2026-07-01",
        &format!("daily-close?ledger={ledger}"),
        "fees?ledger=P-all",
        "fees?names=yes",
        "fees?format=csv&page=1",
        "statement",
        "statement?ledger=P-all",
        "trial-balance?at=0",
        "trial-balance?at=999999",
    ] {
        world.ops_get(&format!("/ops/reports/{query}")).await.refused(400, "validation_failed");
    }
    for query in ["balance", "trial-balance?ledger=M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e"] {
        world.ops_get(&format!("/ops/reports/{query}")).await.refused(404, "not_found");
    }
    let below = get(&world, Report::GeneralLedger, "ledger=P-all&account=Income").await;
    assert!(rows(&below).iter().all(|row| text(&row["account"]).starts_with("Income:") && row["ledger"] == "P-all"));
    assert!(!rows(&below).is_empty());
    let none = get(&world, Report::GeneralLedger, "account=Inc").await;
    assert!(rows(&none).is_empty(), "a prefix is of whole components");
}

/// Tax ids are for those who have the right, and that they were read stands in the audit trail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tax_ids_are_read_by_right_and_never_unnoticed() {
    let world =
        World::with_settings(|settings| settings.ops_roles = "operator=admin,second=read+tax-ids".parse().unwrap())
            .await;
    let merchant = month::play_random(&world, 4).await;
    let path = "/ops/reports/monthly-totals?from=2026-01-01";
    let before = world.ops_get("/ops/audit").await.expect(200)["total"].clone();
    world.ops_get(&format!("{path}&tax_ids=true")).await.refused(403, "role_not_allowed");
    for query in ["fees?tax_ids=1", "monthly-totals?tax_ids=yes"] {
        world.ops_get(&format!("/ops/reports/{query}")).await.refused(400, "validation_failed");
    }
    let without = world.ops_get(path).await.expect(200);
    assert!(rows(&without).iter().all(|row| row.get("tax_id").is_none()));
    assert_eq!(world.ops_get("/ops/audit").await.expect(200)["total"], before, "nobody read one");
    let second = bearer(SECOND_OPS_TOKEN);
    let (path, headers) = (format!("{path}&tax_ids=true"), [("authorization", second.as_str())]);
    let with = world.send(reqwest::Method::GET, &path, &headers, "").await.expect(200);
    assert!(!rows(&with).is_empty() && rows(&with).len() == rows(&without).len());
    assert!(rows(&with).iter().all(|row| row["tax_id"] == cnpj(1) && row["merchant"] == merchant.ledger()), "{with}");
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let row = &items(&audit)[0];
    let read = json!(["second", "read", "tax_ids", null, null, "monthly-totals 2026-01-01 …"]);
    assert_eq!(json!(["operator", "action", "kind", "id", "merchant_id", "notes"].map(|name| row[name].clone())), read);
    let of = place_in(row);
    assert_eq!(cut_in(&with).of(of.partition), of.sequence, "the report counts its own Record");
    // The same by a tick of the console, for the one who has the right.
    let whole = "/console/reports?report=monthly-totals&tax_ids=true";
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    assert!(!browser.page("/console/reports?report=fees").await.html.contains("name=\"tax_ids\""));
    assert_eq!(browser.get(whole).await.status, 403);
    let browser = Browser::signed_in(&world, SECOND_OPS_TOKEN).await;
    let masked = browser.page("/console/reports?report=monthly-totals").await;
    masked.has(&["name=\"tax_ids\" value=\"true\">", &merchant.ledger()]);
    assert!(!masked.html.contains(&cnpj(1)));
    browser.page(whole).await.has(&["name=\"tax_ids\" value=\"true\" checked>", &cnpj(1)]);
    let file = browser.page("/console/reports/file?report=monthly-totals&format=csv-ptbr&tax_ids=true").await;
    assert!(file.html.contains(&cnpj(1)), "{}", file.html);
    let reads = world.ops_get("/ops/audit?kind=tax_ids").await.expect(200);
    assert_eq!(reads["total"], 3, "each read is in the audit trail");
}

/// Names and masked documents stand beside ledgers where they are asked for; a page has some of the
/// rows, and the totals of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_for_people_names_owners_and_company() {
    let company = "Exemplo Pagamentos Ltda · CNPJ 11.222.333/0001-81";
    let world = World::with_settings(|settings| settings.company = Some(company.to_owned())).await;
    let merchant = month::play(&world).await;
    let of = world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await.expect(200);
    for &report in Report::ALL {
        let json = get(&world, report, &format!("names=true{}", ledger_of(report, &merchant))).await;
        let columns: Vec<_> = json["columns"].as_array().unwrap().iter().map(|column| text(&column["name"])).collect();
        let ledger = columns.iter().position(|name| ["ledger", "holder", "merchant"].contains(&name.as_str()));
        let Some(ledger) = ledger else {
            assert!(!columns.contains(&"name".to_owned()), "{report:?}");
            continue;
        };
        assert_eq!(columns[ledger - 2..ledger], ["name", "tax_id"], "{report:?}: the name first");
        let is_own = |row: &&Value| text(&row[&columns[ledger]]) == merchant.ledger();
        for own in rows(&json).iter().filter(is_own) {
            assert_eq!((&own["name"], &own["tax_id"]), (&of["name"], &of["document"]), "{report:?}");
        }
        let is_open = matches!(report, Report::Receivables | Report::LateEntries | Report::AnticipationIncome);
        assert!(is_open || rows(&json).iter().any(|row| is_own(&row)), "{report:?}");
        assert!(rows(&json).iter().all(|row| !text(&row["name"]).is_empty()), "{report:?}");
    }
    let whole = get(&world, Report::TrialBalance, "names=true").await;
    let part = get(&world, Report::TrialBalance, "names=true&page=2&per_page=3").await;
    assert_eq!(part["rows"].as_array().unwrap()[..], rows(&whole)[3..6]);
    assert_eq!((&part["count"], &part["totals"]), (&whole["count"], &whole["totals"]));
    let path = "/ops/reports/trial-balance?format=html&names=true&page=2&per_page=3";
    let (headers, page) = bytes(&world, path).await;
    let page = String::from_utf8(page).unwrap();
    assert_eq!(headers["report-rows"].to_str().unwrap(), whole["count"].to_string());
    assert_eq!(page.matches("<tr>").count(), 5, "heads, three rows, totals");
    assert!(page.contains(company) && page.contains("Emitido em "), "{page}");
    // One merchant alone has its own fees.
    let fees = get(&world, Report::Fees, "").await;
    let own = get(&world, Report::Fees, &format!("ledger={}", merchant.ledger())).await;
    let is_own = |row: &&Value| text(&row["merchant"]) == merchant.ledger();
    assert_eq!(rows(&own).iter().collect::<Vec<_>>(), rows(&fees).iter().filter(is_own).collect::<Vec<_>>());
}

/// Where Python is.
pub(super) fn python() -> Option<PathBuf> {
    let program = std::env::var_os("CENTAVO_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    if Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    println!("not checked, because it is not installed: Python");
    assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and there is no Python");
    None
}

/// What an oracle finds wrong with a folder.
pub(super) fn differences(program: &Path, oracle: &str, folder: &Path) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/books").join(oracle);
    let output = Command::new(program).arg(script).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Rows of an export with a fault in them.
type Fault = fn(&[Value]) -> Vec<Value>;

/// Faults of the books that the oracle must see in the reports' place, each with the reports that
/// then differ.
const FAULTS: [(&str, Fault, &[&str]); 3] = [
    (
        "an MDR that is not booked",
        |rows| without(rows, |row| row["event"] == "card_captured" && text(&row["account"]).ends_with(":Mdr")),
        &["fees"],
    ),
    (
        "a batch that is booked twice",
        |rows| [rows, &chosen(rows, |row| row["event"] == "acquirer_settled")].concat(),
        &["daily-close", "receivables"],
    ),
    (
        "a refund that is not netted",
        |rows| without(rows, |row| row["event"] == "payer_repaid"),
        &["daily-close", "receivables"],
    ),
];

pub(super) fn chosen(rows: &[Value], of: impl Fn(&Value) -> bool) -> Vec<Value> {
    rows.iter().filter(|row| of(row)).cloned().collect()
}

pub(super) fn without(rows: &[Value], of: impl Fn(&Value) -> bool) -> Vec<Value> {
    chosen(rows, |row| !of(row))
}

/// Random months: a program that shares no code with the reports comes to the same from the export
/// alone, and sees each seeded fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oracle_comes_to_the_same_reports() {
    let Some(program) = python() else { return };
    let mut seen = BTreeSet::new();
    for seed in [1, 2, 3] {
        let world = World::sandbox().await;
        month::play_random(&world, seed).await;
        // So that a batch is paid and a refund is taken back.
        world.advance(40 * DAY).await;
        let folder = tempfile::tempdir().unwrap();
        let export = world.ops_get("/ops/export").await.text;
        std::fs::write(folder.path().join("export.jsonl"), &export).unwrap();
        for report in Report::ALL.iter().copied().filter(|report| *report != Report::Statement) {
            let made = get(&world, report, "").await;
            std::fs::write(folder.path().join(format!("{}.json", report.name())), made.to_string()).unwrap();
        }
        assert_eq!(differences(&program, "oracle.py", folder.path()), [""; 0], "seed {seed}");
        let rows = rows_of(&export);
        for (fault, seeded, differing) in FAULTS {
            let wrong = seeded(&rows);
            if wrong.len() == rows.len() {
                continue;
            }
            let wrong: Vec<_> = wrong.iter().map(Value::to_string).collect();
            std::fs::write(folder.path().join("export.jsonl"), wrong.join("\n")).unwrap();
            let found = differences(&program, "oracle.py", folder.path());
            for report in differing {
                assert!(
                    found.iter().any(|line| line.starts_with(report)),
                    "seed {seed}: {fault} is not seen in {report}: {found:?}"
                );
            }
            seen.insert(fault);
        }
    }
    assert_eq!(seen.len(), FAULTS.len(), "no month had what the other faults are about: {seen:?}");
}
