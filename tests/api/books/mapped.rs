//! Entries for other bookkeeping programs: every document balances, every account comes to the sum
//! of ours, and what another program could not take is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use books::error::BooksError;
use books::export::{Chart, Exporter, Folder, Format, Level, Request, Stream};
use ledger::record::Record;

use super::{handmade_records, net, parsed_csv, rows_made, whole};
use crate::world::text;

/// Two accounts share a code, and one has a code of its own below that of its parent.
pub(super) const CHART: &str = "
[[account]]
prefix = 'Assets'
code = '1'
[[account]]
prefix = 'Assets:Bank:Pix'
code = '1.1.2'
history = '=Pix {event} {reference}, de {date}'
cost_center = 'TES'
[[account]]
prefix = 'Liabilities'
code = '2'
[[account]]
prefix = 'Equity'
code = '2'
[[account]]
prefix = 'Income'
code = '3'
[[account]]
prefix = 'Expenses'
code = '4'
";

/// The code that the chart gives to an account.
fn code(account: &str) -> &'static str {
    match account.split_once(':').unwrap().0 {
        "Assets" if account == "Assets:Bank:Pix" => "1.1.2",
        "Assets" => "1",
        "Liabilities" | "Equity" => "2",
        "Income" => "3",
        "Expenses" => "4",
        other => panic!("{other}"),
    }
}

fn request(format: Format) -> Request {
    Request { ledger: Some("P-all".to_owned()), ..whole(format) }
}

fn export(
    request: &Request,
    level: Level,
    records: &[(i64, Record)],
    out: &mut dyn books::export::Out,
) -> Result<(), BooksError> {
    let mut exporter = Exporter::new(request.clone()).mapped(Chart::parse(CHART).unwrap(), level);
    for (at, (booked_at_ms, record)) in (1..).map(handmade_records::place).zip(records) {
        exporter.post(at, *booked_at_ms, record, out).unwrap();
    }
    exporter.finish(out).map(drop)
}

/// The lines of the files of a folder, each by the names of the file's columns.
fn lines(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let mut lines = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for name in names {
        let rows = parsed_csv(&std::fs::read_to_string(&name).unwrap());
        let (head, rows) = rows.split_first().unwrap();
        lines.extend(rows.iter().map(|row| head.iter().cloned().zip(row.iter().cloned()).collect()));
    }
    lines
}

/// Reais with two decimals, or nothing, in centavos.
fn centavos(amount: &str) -> i128 {
    if amount.is_empty() {
        return 0;
    }
    let (reais, centavos) = amount.split_once('.').unwrap();
    assert_eq!(centavos.len(), 2, "{amount}");
    format!("{reais}{centavos}").parse().unwrap()
}

#[test]
fn every_document_balances_and_every_code_comes_to_its_accounts() {
    let records = handmade_records::manual();
    let rows = rows_made(&request(Format::Jsonl), &records);
    let mut expected: BTreeMap<&str, i128> = BTreeMap::new();
    rows.iter().for_each(|row| *expected.entry(code(row["account"].as_str().unwrap())).or_default() += net(row));
    let days: BTreeSet<_> = rows.iter().map(|row| text(&row["date"])).collect();
    let of_records: BTreeSet<_> = rows.iter().map(|row| row["sequence"].to_string()).collect();
    let format = Format::JournalEntries;
    for (level, documents) in [(Level::Entry, of_records.len()), (Level::Day, days.len())] {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Folder::open(folder.path(), &request(format)).unwrap();
        export(&request(format), level, &records, &mut out).unwrap();
        out.finish().unwrap();
        let (mut sums, mut found) = (BTreeMap::<&str, i128>::new(), BTreeMap::<&str, i128>::new());
        let lines = lines(folder.path());
        for line in &lines {
            let moved = centavos(&line["debit"]) - centavos(&line["credit"]);
            assert!(moved != 0 && (centavos(&line["debit"]) == 0 || centavos(&line["credit"]) == 0), "{line:?}");
            assert!(!line["history"].is_empty() && !line["history"].starts_with('='), "{line:?}");
            *sums.entry(&line["account_code"]).or_default() += moved;
            *found.entry(&line["document"]).or_default() += moved;
        }
        assert!(found.values().all(|sum| *sum == 0), "{level:?}: {found:?}");
        assert_eq!(found.len(), documents, "{level:?}");
        assert_eq!(sums, expected, "{level:?}");
        let numbers = lines.chunk_by(|one, other| one["document"] == other["document"]);
        let numbers = numbers.flat_map(|lines| (1..).zip(lines));
        numbers.for_each(|(number, line)| assert_eq!(line["line"], number.to_string(), "{line:?}"));
        let center = |line: &BTreeMap<String, String>| line["cost_center"] == "TES";
        assert!(lines.iter().all(|line| center(line) == (line["account_code"] == "1.1.2")));
    }
}

/// The sample maps of the examples: their documents balance, in the columns that they ask for.
#[test]
fn the_sample_maps_have_the_columns_of_their_programs() {
    let records = handmade_records::manual();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/journal-entries");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let stems: Vec<_> = names.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(stems, ["dominio", "netsuite", "quickbooks", "totvs"]);
    for (name, path) in stems.iter().zip(&names) {
        let chart = Chart::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        for level in [Level::Entry, Level::Day] {
            let mut exporter = Exporter::new(request(Format::JournalEntries)).mapped(chart.clone(), level);
            let mut out = Stream(Vec::new());
            for (at, (booked_at_ms, record)) in (1..).map(handmade_records::place).zip(&records) {
                exporter.post(at, *booked_at_ms, record, &mut out).unwrap();
            }
            exporter.finish(&mut out).unwrap();
            let text = String::from_utf8(out.0).unwrap();
            let in_portuguese = ["dominio", "totvs"].contains(name) && level == Level::Entry;
            assert_eq!(text.contains("pix_paid"), !in_portuguese && level == Level::Entry, "{name}: {text}");
            let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
            for line in text.lines().skip(usize::from(*name != "dominio")) {
                let cells: Vec<_> = line.split(if line.contains(';') { ';' } else { ',' }).collect();
                let (document, moved) = match *name {
                    "dominio" => (cells[5], signed(&cells[3].replace(',', "."), !cells[1].is_empty())),
                    "totvs" => (cells[1], signed(&cells[5].replace(',', "."), cells[3] == "D")),
                    _ => (cells[0], centavos(cells[3]) - centavos(cells[4])),
                };
                assert_ne!(moved, 0, "{line}");
                *sums.entry(document).or_default() += moved;
            }
            assert!(sums.len() > 3 && sums.values().all(|sum| *sum == 0), "{name} {level:?}: {text}");
        }
    }
}

fn signed(amount: &str, is_debit: bool) -> i128 {
    if is_debit { centavos(amount) } else { -centavos(amount) }
}

#[test]
fn accounts_without_a_code_are_all_named() {
    let records = handmade_records::manual();
    let chart = Chart::parse("[[account]]\nprefix = 'Assets'\ncode = '1'").unwrap();
    for level in [Level::Entry, Level::Day] {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Folder::open(folder.path(), &request(Format::JournalEntries)).unwrap();
        let mut exporter = Exporter::new(request(Format::JournalEntries)).mapped(chart.clone(), level);
        for (at, (booked_at_ms, record)) in (1..).map(handmade_records::place).zip(&records) {
            exporter.post(at, *booked_at_ms, record, &mut out).unwrap();
        }
        let Err(BooksError::NoCode(missing)) = exporter.finish(&mut out) else { panic!("accounts have no code") };
        let rows = rows_made(&request(Format::Jsonl), &records);
        let accounts: BTreeSet<_> = rows.iter().map(|row| text(&row["account"])).collect();
        let expected: Vec<_> = accounts.into_iter().filter(|account| !account.starts_with("Assets:")).collect();
        assert_eq!(missing, expected);
        drop(out);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
