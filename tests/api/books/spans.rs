//! Exports of a span: programs show its own movement, months follow each other in one file, what is
//! joined wrongly is refused, and names of Records are unique in a journal of several partitions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use books::export::{Chart, Exporter, Folder, Format, Level, Request, Stream};
use chrono::NaiveDate;
use ledger::record::Record;
use serde_json::Value;
use store::cut::Position;
use store::{Partition, Sequence};
use wire::timestamp::day;

use super::handmade_records::{self, M, P, R};
use super::mapped::CHART;
use super::tools::{Balances, Selection, Tool, node, python, tools, without_zeros};
use super::{name_made, net, parsed_csv, rows_made, sums_made, whole, without_ids};
use crate::world::text;

/// The sums of a ledger by the rows of some days.
fn sums_of(rows: &[Value], ledger: &str, is_wanted: &dyn Fn(NaiveDate) -> bool) -> Balances {
    let rows = rows.iter().filter(|row| is_wanted(day(&text(&row["date"])).unwrap()));
    let rows: Vec<_> = match ledger {
        "P-all" => rows.filter(|row| text(&row["ledger"]).starts_with("P-")).collect(),
        ledger => rows.filter(|row| row["ledger"] == ledger).collect(),
    };
    let name =
        |row: &Value| if ledger == "P-all" { without_ids(&text(&row["account"])) } else { text(&row["account"]) };
    let rows: Vec<_> = rows.into_iter().map(|row| (name(row), net(row))).collect();
    without_zeros(rows.iter().map(|(account, net)| (account.as_str(), *net)))
}

fn exported(folder: &Path, request: &Request, records: &[(i64, Record)]) {
    let mut out = Folder::open(folder, request).unwrap();
    handmade_records::export(request, records, &mut out);
    out.finish().unwrap();
}

/// Income statement, cash flow and balance sheet are sums of accounts: those of the span, by each
/// program, are those of our rows.
#[test]
fn programs_show_the_movement_of_a_span_alone() {
    let records = handmade_records::manual();
    let rows = rows_made(&whole(Format::Jsonl), &records);
    for tool in tools() {
        for (from, to) in [("2026-07-01", "2026-07-31"), ("2026-08-01", "2026-08-31"), ("2026-07-15", "2026-09-30")] {
            let [from, to] = [from, to].map(|of| day(of).unwrap());
            for ledger in [name_made(M), name_made(R), name_made(P), "P-all".to_owned()] {
                let folder = tempfile::tempdir().unwrap();
                let request =
                    Request { ledger: Some(ledger.clone()), from: Some(from), to: Some(to), format: tool.format };
                exported(folder.path(), &request, &records);
                let main = folder.path().join(request.dated(&ledger)).join(format!("main.{}", tool.format.name()));
                tool.check(&main).unwrap_or_else(|error| panic!("{tool:?}, {ledger}: {error}"));
                let moved = sums_of(&rows, &ledger, &|day| (from..=to).contains(&day));
                for selection in [Selection::MovedSince(from), Selection::WithoutForward] {
                    let found = tool.sums(&main, selection).unwrap_or_else(|| moved.clone());
                    assert_eq!(found, moved, "{tool:?}, {ledger}, {from} to {to}, {selection:?}");
                }
                let closing = sums_of(&rows, &ledger, &|day| day <= to);
                assert_eq!(tool.balances(&main), closing, "{tool:?}, {ledger}, {from} to {to}");
            }
        }
    }
}

/// A file beside the folders of two months, which includes these files.
fn join(folder: &Path, tool: Tool, files: &[String]) -> std::path::PathBuf {
    let mut joined = String::new();
    for file in files {
        match tool.format {
            Format::Beancount => writeln!(joined, "include \"{file}\"").unwrap(),
            _ => writeln!(joined, "include {file}").unwrap(),
        }
    }
    let path = folder.join(format!("joined.{}", tool.format.name()));
    std::fs::write(&path, joined).unwrap();
    path
}

#[test]
fn months_follow_each_other_and_openings_read_twice_are_refused() {
    let records = handmade_records::manual();
    let rows = rows_made(&whole(Format::Jsonl), &records);
    for tool in tools() {
        let folder = tempfile::tempdir().unwrap();
        let month = |from, to| Request { from: day(from), to: day(to), ..whole(tool.format) };
        let (july, august) = (month("2026-07-01", "2026-07-31"), month("2026-08-01", "2026-08-31"));
        for request in [&july, &august] {
            exported(folder.path(), request, &records);
        }
        for ledger in [M, R, P].map(name_made) {
            let ending = tool.format.name();
            let [july, august] = [&july, &august].map(|request| request.dated(&ledger));
            let main = format!("{july}/main.{ending}");
            let right = join(folder.path(), tool, &[main.clone(), format!("{august}/2026-08.{ending}")]);
            tool.check(&right).unwrap_or_else(|error| panic!("{tool:?}, {ledger}: {error}"));
            let closing = sums_of(&rows, &ledger, &|of| of <= day("2026-08-31").unwrap());
            let found = tool.sums(&right, Selection::All).unwrap_or_else(|| closing.clone());
            assert_eq!(found, closing, "{tool:?}, {ledger}");
            let twice = join(folder.path(), tool, &[main, format!("{august}/main.{ending}")]);
            tool.check(&twice).expect_err(&format!("{tool:?}, {ledger} doubles"));
        }
    }
}

/// The same sequences in four partitions: every document, code and link names one Record.
#[test]
fn a_record_of_another_partition_has_another_name() {
    let manual = handmade_records::manual();
    let mut records: Vec<_> = (1..).map(handmade_records::place).zip(manual.iter().take(2)).collect();
    for (sequence, of) in (3..).zip(manual.iter().skip(2)) {
        records.extend(
            (0..4).map(|partition| (Position { partition: Partition(partition), sequence: Sequence(sequence) }, of)),
        );
    }
    let export = |request: &Request, chart: Option<Chart>| {
        let mut exporter = Exporter::new(request.clone());
        if let Some(chart) = chart {
            exporter = exporter.mapped(chart, Level::Entry);
        }
        let mut out = Stream(Vec::new());
        for (at, (booked_at_ms, record)) in &records {
            exporter.post(*at, *booked_at_ms, record, &mut out).unwrap();
        }
        exporter.finish(&mut out).unwrap();
        String::from_utf8(out.0).unwrap()
    };
    let of_platform = |format| Request { ledger: Some("P-all".to_owned()), ..whole(format) };
    let rows = export(&of_platform(Format::Jsonl), None);
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: BTreeSet<_> = rows.iter().map(|row| (row["partition"].as_u64(), row["sequence"].as_u64())).collect();
    assert!(expected.len() > 40, "{expected:?}");
    let name = |(partition, sequence): &(Option<u64>, Option<u64>)| match partition.unwrap() {
        0 => sequence.unwrap().to_string(),
        partition => format!("{partition}-{}", sequence.unwrap()),
    };
    let expected: BTreeSet<String> = expected.iter().map(name).collect();
    let documents = parsed_csv(&export(&of_platform(Format::JournalEntries), Some(Chart::parse(CHART).unwrap())));
    let place = documents[0].iter().position(|head| head == "document").unwrap();
    assert_eq!(documents[1..].iter().map(|cells| cells[place].clone()).collect::<BTreeSet<_>>(), expected);
    for (format, before, after) in
        [(Format::Hledger, " * (", ")"), (Format::Ledger, " * (", ")"), (Format::Beancount, "\" ^", " ")]
    {
        let text = export(&of_platform(format), None);
        let names: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once(before))
            .map(|(_, rest)| rest.split_once(after).map_or(rest, |(name, _)| name).to_owned())
            .collect();
        assert_eq!(names.len(), expected.len(), "{format:?}");
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected, "{format:?}");
    }
}

/// Two payments of the same amount on one day are no duplicates.
#[test]
fn beancount_finds_no_duplicate_where_there_is_none() {
    let Some(tool) = tools().into_iter().find(|tool| tool.format == Format::Beancount) else { return };
    let mut records = handmade_records::manual();
    let again = records[4].clone();
    records.insert(5, again);
    let folder = tempfile::tempdir().unwrap();
    exported(folder.path(), &whole(Format::Beancount), &records);
    for ledger in [M, P].map(name_made) {
        let main = folder.path().join(&ledger).join("main.beancount");
        let strict = main.with_file_name("strict.beancount");
        std::fs::write(&strict, "plugin \"beancount.plugins.noduplicates\"\ninclude \"main.beancount\"\n").unwrap();
        tool.check(&strict).unwrap_or_else(|error| panic!("{ledger}: {error}"));
        let month = main.with_file_name("2026-07.beancount");
        let text = std::fs::read_to_string(&month).unwrap();
        let without: Vec<_> = text.lines().map(|line| line.split_once(" ^").map_or(line, |(head, _)| head)).collect();
        std::fs::write(&month, without.join("\n")).unwrap();
        let said = tool.check(&strict).expect_err("without links the second is a duplicate");
        assert!(said.contains("uplicate"), "{said}");
    }
    assert_eq!(sums_made(&rows_made(&whole(Format::Jsonl), &records), M).values().sum::<i128>(), 0);
}

/// Columns that first have a value after the rows from which programs guess their type: each reader
/// counts as many values as Parquet has.
#[test]
fn rare_columns_are_read_from_json_lines_as_from_parquet() {
    let Some(mut python) = python("duckdb, pandas, polars, pyarrow") else { return };
    let manual = handmade_records::manual();
    let (returned, before) = manual.split_last().unwrap();
    let mut records = before.to_vec();
    while records.len() < 5_500 {
        let last = records.last().unwrap().0;
        records.extend(before.iter().skip(2).map(|(_, record)| (last, record.clone())));
    }
    records.push((records.last().unwrap().0, returned.1.clone()));
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Jsonl, Format::Parquet] {
        exported(folder.path(), &whole(format), &records);
    }
    let rows = rows_made(&whole(Format::Jsonl), &records);
    let first = rows.iter().position(|row| row["withdrawal"].is_string()).unwrap();
    assert!(first > 25_000, "{first}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/books/counts.py");
    let mut readers = vec![python.arg(script).current_dir(folder.path()).output().unwrap()];
    if let Some(mut node) = node(folder.path(), "hyparquet-compressors") {
        readers.push(node.arg(HYPARQUET).output().unwrap());
    }
    let mut counts = serde_json::Map::new();
    for output in &readers {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        counts.extend(serde_json::from_slice::<serde_json::Map<_, _>>(&output.stdout).unwrap());
    }
    assert_eq!(counts.len(), 4 + readers.len(), "{counts:?}");
    for (reader, counts) in counts {
        for (column, _) in rows[0].as_object().unwrap() {
            let expected = rows.iter().filter(|row| !row[column].is_null()).count();
            assert_eq!(counts[column], expected, "{reader}: {column}");
        }
    }
}

/// The line of exports.md for hyparquet: values in each column, and the sums of both sides in
/// centavos, which are alike.
const HYPARQUET: &str = "
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
const rows = await parquetReadObjects({ file: await asyncBufferFromFile('all.parquet'), compressors });
const counts = {};
for (const row of rows)
  for (const [name, value] of Object.entries(row))
    counts[name] = (counts[name] ?? 0) + (value == null ? 0 : 1);
const sum = (side) => rows.reduce((sum, row) => sum + row[side], 0n);
if (sum('debit') !== sum('credit') || sum('debit') === 0n) throw new Error(`${sum('debit')}, ${sum('credit')}`);
console.log(JSON.stringify({ hyparquet: counts }));
";
