//! Coverage of the interface: every row is shown by a test. The rows are named in `rows.txt`, and
//! the doc comment of a test names the rows that it shows. This test looks for rows that no test
//! shows, and for tests that name an unknown row. Nothing is marked by hand.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ROWS: &str = include_str!("rows.txt");

/// The names of the rows.
fn rows() -> BTreeSet<&'static str> {
    let lines = ROWS.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let names: Vec<_> = lines.map(|line| line.split_once(' ').expect("a name and what it promises").0).collect();
    let once: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(once.len(), names.len(), "a row is named once");
    once
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rows that tests say they show, with the tests. A claim stands in the doc comment of a
/// function that is a test.
fn claims(text: &str) -> Vec<(String, String)> {
    let mut claims = Vec::new();
    let mut doc = String::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            doc.push_str(comment);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            if let (Some((_, shown)), Some((_, named))) = (doc.split_once("Shows: "), line.split_once("fn ")) {
                let test = named.split(['(', '<']).next().unwrap_or_default();
                assert!(is_test, "{test} claims to show rows, but is no test");
                let shown = shown.trim_end().trim_end_matches('.').split(',').map(str::trim);
                claims.extend(shown.map(|row| (row.to_owned(), test.to_owned())));
            }
            doc.clear();
            is_test = false;
        }
    }
    claims
}

#[test]
fn every_row_of_the_interface_is_shown_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["tests", "src", "ledger", "actors"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    let here = root.join("tests/interface");
    let mut shown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.starts_with(&here)) {
        for (row, test) in claims(&fs::read_to_string(file).unwrap()) {
            shown.entry(row).or_default().push(test);
        }
    }
    let rows = rows();
    let unknown: Vec<_> = shown.iter().filter(|(row, _)| !rows.contains(row.as_str())).collect();
    assert!(unknown.is_empty(), "tests show what is no row: {unknown:?}");
    let missing: Vec<_> = rows.iter().filter(|row| !shown.contains_key(**row)).collect();
    assert!(missing.is_empty(), "{} rows are shown by no test: {missing:#?}", missing.len());
}

#[test]
fn a_claim_is_read_from_the_doc_comment_of_a_test() {
    let text = "/// Says. Shows: 2.1.amount,\n/// 5.1.\n#[tokio::test]\nasync fn one() {}\n#[test]\nfn two() {}\n";
    let expected = [("2.1.amount", "one"), ("5.1", "one")].map(|(row, test)| (row.to_owned(), test.to_owned()));
    assert_eq!(claims(text), expected);
    assert!(std::panic::catch_unwind(|| claims("/// Shows: 5.1.\nfn helper() {}\n")).is_err());
}
