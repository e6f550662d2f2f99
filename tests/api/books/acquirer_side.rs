//! Books against the other side: a program that shares no code (`acquirer_oracle.py`) computes
//! banks, income, fees and receivables of random months from the files of the sandbox's
//! institutions and the story of what was asked for. It reads our entries only to compare.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Datelike, Days, FixedOffset};
use serde_json::Value;
use wire::timestamp::begin_of;

use super::reports::{chosen, differences, python, without};
use super::{month, rows_of};
use crate::world::{World, text};

/// The institutions whose files the oracle reads.
const INSTITUTIONS: [&str; 3] = ["acquirer", "bank-settlement", "bank-pix"];

/// Something wrong in the books' rows, or in what the acquirer did.
enum Wrong {
    Rows(fn(&[Value]) -> Vec<Value>),
    /// Of a batch as a file: its lines without the head, each by its columns.
    Batches(fn(&mut Vec<Vec<String>>)),
}

/// Faults, each with beginnings of lines that the oracle must print.
const FAULTS: [(&str, Wrong, &[&str]); 6] = [
    (
        "an MDR that is not booked",
        Wrong::Rows(|rows| {
            without(rows, |row| row["event"] == "card_captured" && text(&row["account"]).ends_with(":Mdr"))
        }),
        &["Expenses:Acquirer:Mdr", "Income:Commission:Mdr"],
    ),
    (
        "a batch that is booked twice",
        Wrong::Rows(|rows| [rows, &chosen(rows, |row| row["event"] == "acquirer_settled")].concat()),
        &["Assets:Acquirer:Receivable", "Assets:Bank:Settlement"],
    ),
    (
        "a refund that is not netted",
        Wrong::Rows(|rows| without(rows, |row| row["event"] == "payer_repaid")),
        &["Assets:Acquirer:Receivable", "Liabilities:Payers:Refunds"],
    ),
    (
        "an MDR that the acquirer keeps, and the books give back",
        Wrong::Batches(|lines| {
            for line in lines.iter_mut().filter(|line| line[3] == "refund") {
                let [gross, fee, net] = &mut line[5..] else { panic!("a line has a gross amount, a fee and a net") };
                "0".clone_into(fee);
                net.clone_from(gross);
            }
        }),
        &["Expenses:Acquirer:Mdr", "banks, by what came and went"],
    ),
    (
        "a batch that the acquirer pays twice, and the books book once",
        Wrong::Batches(|lines| lines.extend(lines.clone())),
        &["Assets:Acquirer:Receivable", "banks, by what came and went"],
    ),
    (
        "a refund that the acquirer has not netted, and the books have",
        Wrong::Batches(|lines| lines.retain(|line| line[3] != "refund")),
        &["Assets:Acquirer:Receivable", "receivables of the acquirer", "banks, by what came and went"],
    ),
];

/// The local time of a world.
fn local(world: &World) -> DateTime<FixedOffset> {
    let now = DateTime::from_timestamp_millis(world.engine().now().0).unwrap();
    now.with_timezone(&FixedOffset::west_opt(3 * 3_600).unwrap())
}

/// Moves the clock to noon, so many days later.
async fn advance_to_noon(world: &World, days: u64) {
    let day = local(world).date_naive() + Days::new(days + 1);
    let noon = begin_of(day) + 12 * 3_600_000;
    world.advance_to(DateTime::from_timestamp_millis(noon).unwrap()).await;
}

/// The files that the institutions have sent so far.
fn copy_files(world: &World, to: &Path) {
    for institution in INSTITUTIONS {
        let to = to.join("sandbox").join(institution);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(world.folder().join("sandbox").join(institution)).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "csv" || ending == "ofx") {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
}

/// Changes every batch in a folder of files. False when none has changed.
fn change_batches(folder: &Path, change: fn(&mut Vec<Vec<String>>)) -> bool {
    let mut has_changed = false;
    for entry in fs::read_dir(folder.join("sandbox/acquirer")).unwrap() {
        let path = entry.unwrap().path();
        let before = fs::read_to_string(&path).unwrap();
        let (head, lines) = before.split_once('\n').unwrap();
        let mut lines: Vec<Vec<String>> =
            lines.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        change(&mut lines);
        let lines = lines.iter().map(|line| line.join(",") + "\n");
        let after = std::iter::once(format!("{head}\n")).chain(lines).collect::<String>();
        has_changed |= after != before;
        fs::write(&path, after).unwrap();
    }
    has_changed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_side_comes_to_the_same_books() {
    let Some(program) = python() else { return };
    let mut seen = BTreeSet::new();
    for seed in [1, 2, 3, 4] {
        let world = World::sandbox().await;
        // What happens at noon is of one day, also for the institutions.
        advance_to_noon(&world, 0).await;
        let (_, story) = month::play_random_told(&world, seed).await;
        // To a Sunday: no batch is paid, so that every movement stands on a statement.
        advance_to_noon(&world, 40).await;
        let days = 6 - u64::from(local(&world).weekday().num_days_from_monday());
        if days > 0 {
            advance_to_noon(&world, days - 1).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let export = world.ops_get("/ops/export").await.text;
        let report = world.ops_get("/ops/reports/receivables").await.expect(200);
        let lines = |rows: &[Value]| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
        fs::write(folder.path().join("story.jsonl"), lines(&story)).unwrap();
        fs::write(folder.path().join("books.jsonl"), &export).unwrap();
        fs::write(folder.path().join("receivables.json"), report.to_string()).unwrap();
        copy_files(&world, folder.path());
        let oracle = || differences(&program, "acquirer_oracle.py", folder.path());
        assert_eq!(oracle(), [""; 0], "seed {seed}");
        let rows = rows_of(&export);
        for (fault, wrong, expected) in &FAULTS {
            let is_there = match wrong {
                Wrong::Rows(seeded) => {
                    let wrong = seeded(&rows);
                    fs::write(folder.path().join("books.jsonl"), lines(&wrong)).unwrap();
                    wrong.len() != rows.len()
                }
                Wrong::Batches(change) => change_batches(folder.path(), *change),
            };
            let found = if is_there { oracle() } else { Vec::new() };
            for line in expected.iter().filter(|_| is_there) {
                let is_seen = found.iter().any(|found| found.starts_with(line));
                assert!(is_seen, "seed {seed}: {fault} is not seen in {line}: {found:#?}");
                seen.insert(*fault);
            }
            fs::write(folder.path().join("books.jsonl"), &export).unwrap();
            copy_files(&world, folder.path());
        }
        assert_eq!(oracle(), [""; 0], "seed {seed}, again without faults");
    }
    assert_eq!(seen.len(), FAULTS.len(), "no month had what the other faults are about: {seen:?}");
}
