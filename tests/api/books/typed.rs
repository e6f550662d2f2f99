//! Files with typed columns, Parquet and workbooks: read by readers that other people wrote, in
//! Rust always, and in Python where it is installed.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;

use axum::body::Bytes;
use books::export::{Folder, Format, Request};
use calamine::{Data, Reader, Xlsx, open_workbook_from_rs};
use chrono::{Datelike as _, Days, Months};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use wire::timestamp::{date, day, local, with_milliseconds};

use super::tools::is_required;
use super::{
    LedgerBalances, balances_by_ledger, balances_of_day, handmade_records, made_in_one, platform_of, rows_made, run,
    whole,
};
use crate::world::{World, text};

/// The rows of a file, in the form of JSON lines.
pub(crate) fn rows(format: Format, bytes: Vec<u8>) -> Vec<Value> {
    match format {
        Format::Parquet => parquet_rows(bytes),
        _ => xlsx_rows(bytes),
    }
}

fn parquet_rows(bytes: Vec<u8>) -> Vec<Value> {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let row = |row: parquet::record::Row| {
        let mut found = Map::new();
        for (name, field) in row.get_column_iter() {
            let value = match field {
                Field::Null => Value::Null,
                Field::Long(number) => json!(number),
                Field::Str(text) => json!(text),
                Field::Date(day) => json!(date(u32::try_from(*day).unwrap())),
                Field::TimestampMillis(at) => json!(with_milliseconds(*at)),
                Field::Decimal(decimal) => {
                    let (bytes, name) = (decimal.data(), name.strip_suffix("_brl").unwrap());
                    let centavos = bytes.iter().fold(0, |sum, byte| sum * 256 + i64::from(*byte));
                    assert_eq!((decimal.precision(), decimal.scale()), (18, 2));
                    assert_eq!(json!(centavos), found[name], "{row:?}");
                    continue;
                }
                other => panic!("{name} is {other:?}"),
            };
            found.insert(name.clone(), value);
        }
        Value::Object(found)
    };
    reader.get_row_iter(None).unwrap().map(|found| row(found.unwrap())).collect()
}

/// Row of the heads in a workbook, from 0: the title and the period stand above.
pub(super) const HEAD_ROW: usize = 3;

fn xlsx_rows(bytes: Vec<u8>) -> Vec<Value> {
    let mut book: Xlsx<_> = open_workbook_from_rs(Cursor::new(bytes)).unwrap();
    let sheet = book.worksheet_range_at(0).unwrap().unwrap();
    let mut lines: Vec<_> = sheet.rows().skip(HEAD_ROW).collect();
    let [names, heads] = [Format::Csv, Format::CsvPtbr].map(|format| {
        let head = String::from_utf8(made_in_one(&whole(format), &[])).unwrap();
        let cells = head.trim_start_matches('\u{feff}').trim_end().split([',', ';']);
        cells.map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(lines.remove(0).iter().map(ToString::to_string).collect::<Vec<_>>(), heads);
    let total = lines.pop().unwrap();
    assert_eq!(total[0], Data::String("Total".to_owned()));
    let cell = |name: &str, data: &Data| match data {
        Data::Empty => Value::Null,
        Data::String(text) => json!(text),
        Data::Float(reais) if matches!(name, "debit" | "credit") => json!((reais * 100.0).round() as i64),
        Data::Float(number) => json!(*number as i64),
        Data::DateTime(at) if name.ends_with("date") => {
            json!(date(at.as_f64() as u32 - 25_569))
        }
        // Three hours behind UTC.
        Data::DateTime(at) => {
            json!(with_milliseconds(((at.as_f64() - 25_569.0) * 86_400_000.0).round() as i64 + 3 * 3_600_000))
        }
        other => panic!("{name} is {other:?}"),
    };
    let row = |line: &[Data]| names.iter().zip(line).map(|(name, data)| (name.clone(), cell(name, data))).collect();
    let rows: Vec<_> = lines.into_iter().map(row).map(Value::Object).collect();
    for side in ["debit", "credit"] {
        let sum: i64 = rows.iter().map(|row: &Value| row[side].as_i64().unwrap()).sum();
        let place = names.iter().position(|name| name == side).unwrap();
        assert_eq!(cell(side, &total[place]), json!(sum), "{side}");
    }
    rows
}

#[test]
fn typed_files_have_the_rows_of_json_lines() {
    assert_eq!(local(0).to_string(), "1969-12-31 21:00:00");
    let records = handmade_records::manual();
    for from in [None, day("2026-08-01")] {
        let request = |format| Request { from, ..whole(format) };
        let expected = rows_made(&request(Format::Jsonl), &records);
        for format in [Format::Parquet, Format::Xlsx] {
            let [one, again] = [(); 2].map(|()| made_in_one(&request(format), &records));
            assert!(one == again, "{format:?} has the same bytes twice");
            assert_eq!(rows(format, one), expected, "{format:?}");
        }
    }
    let none = Request { from: day("2030-01-01"), ..whole(Format::Parquet) };
    assert!(rows(Format::Parquet, made_in_one(&none, &records)).is_empty());
    assert!(rows(Format::Xlsx, made_in_one(&Request { format: Format::Xlsx, ..none }, &records)).is_empty());
}

/// More rows than a group has: each is there once, in order.
#[test]
fn parquet_has_groups_of_32768_rows() {
    let manual = handmade_records::manual();
    let mut records = manual.clone();
    while records.len() < 7_000 {
        let last = records.last().unwrap().0;
        records.extend(manual.iter().skip(2).map(|(_, record)| (last, record.clone())));
    }
    let expected = rows_made(&whole(Format::Jsonl), &records);
    let bytes = made_in_one(&whole(Format::Parquet), &records);
    let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    let groups: Vec<_> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert!(groups.len() >= 2 && groups[..groups.len() - 1].iter().all(|rows| *rows == 32_768), "{groups:?}");
    assert_eq!(reader.metadata().file_metadata().created_by(), Some("centavo"));
    assert!(parquet_rows(bytes) == expected);
}

/// The sums of each account by programs that others wrote: `typed.py` reads the files of the whole
/// journal, of the platform as one ledger and of each month alone with DuckDB, pandas and openpyxl.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_the_same_books_from_every_file_of_rows() {
    let program = std::env::var_os("CENTAVO_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    let found = Command::new(&program).args(["-c", "import duckdb, openpyxl, pandas"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("not checked, because it is not installed: Python with duckdb, openpyxl and pandas");
        assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and Python has no duckdb, openpyxl and pandas");
        return;
    }
    let world = World::sandbox().await;
    super::month::play_wide(&world).await;
    let (all, platform) = (balances_by_ledger(&world).await, platform_of(&balances_by_ledger(&world).await));
    let rows = super::rows_of(&world.ops_get("/ops/export").await.text);
    let days = [&rows[0], &rows[rows.len() - 1]].map(|row| day(&text(&row["date"])).unwrap());
    let begin = days[0].with_day(1).unwrap();
    let months = std::iter::successors(Some(begin), |month| Some(*month + Months::new(1)));
    let months: Vec<_> = months.take_while(|month| *month <= days[1]).collect();
    assert!(months.len() >= 4, "{months:?}");
    let mut cases = vec![(None, None, None, all)];
    cases.push((Some("P-all".to_owned()), None, None, [("P-all".to_owned(), platform)].into()));
    for month in months {
        let last = month + Months::new(1) - Days::new(1);
        let [before, after] = [month - Days::new(1), last.min(days[1])];
        let before = balances_of_day(&world, before).await;
        let moved = difference(&balances_of_day(&world, after).await, &before);
        cases.push((None, Some(month), Some(last), moved));
    }
    for (place, (ledger, from, to, expected)) in cases.into_iter().enumerate() {
        let out = world.folder().join(format!("rows-{place}"));
        let request = |format| Request { ledger: ledger.clone(), from, to, format };
        for format in [Format::Jsonl, Format::Csv, Format::CsvPtbr, Format::Parquet, Format::Xlsx] {
            run(&world.folder(), &out, request(format), Some(&world)).await.unwrap();
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/books/typed.py");
        let name = request(Format::Csv).file_name();
        let output = Command::new(&program).arg(script).arg(out.join(name.trim_end_matches(".csv"))).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(read.len(), 6, "{:?}", read.keys());
        for (reader, sums) in read {
            let mut found: BTreeMap<String, BTreeMap<String, i128>> = BTreeMap::new();
            for sum in sums.iter().filter(|sum| sum[2] != 0) {
                let ledger = found.entry(text(&sum[0])).or_default();
                ledger.insert(text(&sum[1]), sum[2].as_i64().unwrap().into());
            }
            assert_eq!(found, expected, "{reader}, {ledger:?}, {from:?}");
        }
    }
}

/// By how much the balances moved, without zeros.
pub(crate) fn difference(after: &LedgerBalances, before: &LedgerBalances) -> LedgerBalances {
    let mut moved = after.clone();
    for (ledger, balances) in before {
        let of_ledger = moved.entry(ledger.clone()).or_default();
        balances.iter().for_each(|(account, balance)| *of_ledger.entry(account.clone()).or_default() -= balance);
    }
    moved.values_mut().for_each(|balances| balances.retain(|_, balance| *balance != 0));
    moved.retain(|_, balances| !balances.is_empty());
    moved
}

/// A folder gets these files as it gets others.
#[test]
fn a_typed_file_is_whole_when_it_has_its_name() {
    let records = handmade_records::manual();
    for format in [Format::Parquet, Format::Xlsx] {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Folder::open(folder.path(), &whole(format)).unwrap();
        handmade_records::export(&whole(format), &records, &mut out);
        assert_eq!(out.finish().unwrap(), 1);
        let bytes = std::fs::read(folder.path().join(format!("all.{}", format.name()))).unwrap();
        assert!(bytes == made_in_one(&whole(format), &records));
    }
}
