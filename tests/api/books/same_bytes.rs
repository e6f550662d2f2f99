//! Exports and reports of days that are over: the same bytes twice, after the Records of the next
//! month, after a restart, without a server, and from a restored backup.

use std::path::{Path, PathBuf};
use std::process::Command;

use books::export::{Format, Request};
use books::reports::{DayOf, Report, ReportFormat, ReportRequest};
use chrono::{Days, NaiveDate};
use wire::timestamp::day;

use super::balance_file_starts::{BookRequest, made};
use super::{month, rows_of};
use crate::world::{DAY, World, pix, text};

/// Every export and report that can be made again, of the days from one to another.
fn all(merchant: &str, from: NaiveDate, to: NaiveDate) -> Vec<BookRequest> {
    let days = (Some(from), Some(to));
    let mut requests = Vec::new();
    for format in Format::MADE.into_iter().chain([Format::JournalEntries]) {
        let ledgers = [Some(merchant.to_owned()), Some("P-all".to_owned()), None];
        for ledger in ledgers.into_iter().filter(|ledger| ledger.is_some() || !format.is_mapped()) {
            requests.push(BookRequest::Export(Request { ledger, format, from: days.0, to: days.1 }, None));
        }
    }
    for &report in Report::ALL {
        for format in ReportFormat::SERVED {
            let ledger = (report == Report::Statement).then(|| merchant.to_owned());
            let is_of_one_day = matches!(report, Report::Receivables | Report::SettlementCalendar);
            let from = days.0.filter(|_| !is_of_one_day);
            requests.push(BookRequest::Report(
                ReportRequest { report, ledger, account: None, by: DayOf::Booking, from, to: days.1 },
                format,
                None,
            ));
        }
    }
    requests
}

type AllFiles = Vec<Vec<(PathBuf, Vec<u8>)>>;

async fn made_all(data: &Path, server: Option<&World>, requests: &[BookRequest]) -> AllFiles {
    let mut all = Vec::new();
    for request in requests {
        all.push(made(data, server, request).await.unwrap_or_else(|error| panic!("{request:?}: {error}")));
    }
    all
}

fn same(when: &str, requests: &[BookRequest], first: &AllFiles, again: &AllFiles) {
    for ((request, first), again) in requests.iter().zip(first).zip(again) {
        assert!(!first.is_empty(), "{request:?}");
        for ((path, bytes), (other, found)) in first.iter().zip(again) {
            assert!(path == other && bytes == found, "{when}: {path:?} of {request:?}");
        }
        assert_eq!(first.len(), again.len(), "{when}: {request:?}");
    }
    assert_eq!(first.len(), again.len());
}

/// Runs `centavo`.
fn run(arguments: &[&str], paths: [(&str, &Path); 2], key: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_centavo"));
    command.args(arguments).env("CENTAVO_MASTER_KEY", key);
    for (flag, path) in paths {
        command.arg(flag).arg(path);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_that_are_over_have_the_same_bytes_for_ever() {
    let world = World::sandbox().await;
    let merchant = month::play(&world).await;
    let export = rows_of(&world.ops_get("/ops/export").await.text);
    let from = day(&text(&export[0]["date"])).unwrap();
    let requests = all(&merchant.ledger(), from + Days::new(1), from + Days::new(25));
    let first = made_all(&world.folder(), Some(&world), &requests).await;
    same("twice", &requests, &first, &made_all(&world.folder(), Some(&world), &requests).await);

    let before = world.cut().await;
    merchant.paid_pix(&pix("77.00")).await;
    world.advance(33 * DAY).await;
    assert!(world.since(&before).await.len() > 3, "the next month has Records");
    same("later", &requests, &first, &made_all(&world.folder(), Some(&world), &requests).await);
    let world = world.restarted().await;
    same("after a restart", &requests, &first, &made_all(&world.folder(), Some(&world), &requests).await);

    let folder = world.stopped().await;
    same("without a server", &requests, &first, &made_all(folder.path(), None, &requests).await);
    let (copies, restored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = std::fs::read_to_string(folder.path().join("master.key")).unwrap();
    let (copies, restored) = (copies.path().join("copies"), restored.path().join("restored"));
    run(&["backup"], [("--data", folder.path()), ("--out", &copies)], &key);
    run(&["restore"], [("--from", &copies), ("--data", &restored)], &key);
    same("restored", &requests, &first, &made_all(&restored, None, &requests).await);
}
