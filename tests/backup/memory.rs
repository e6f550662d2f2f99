//! Memory of a serving process beside which everything old is read: an export of the whole, a
//! report over all days, a backup. The bound is that of docs/limits.md.

use std::path::Path;
use std::process::Command;

use ledger::merchant::MerchantCommand;
use ledger::money::Centavos;
use ledger::personal::{Payer, SealedFor};
use store::SledOptions;
use testkit::server::{Launch, OPS_TOKEN, Server};
use testkit::shop::{new_id, open_shops, record};

use crate::commands::{BINARY, backup_through, files, open, run};

/// Bytes of a segment of the journal.
const SEGMENT_BYTES: u64 = 32 << 20;
/// Bytes of a payer's name in a charge. They are encrypted, so that nothing makes them smaller.
const NAME_BYTES: usize = 60_000;
/// Charges: nine segments are closed, a tenth is open.
const CHARGES: u64 = 19 * SEGMENT_BYTES / 2 / NAME_BYTES as u64;
/// How much more memory the server may have than one with empty books, MiB. The journal has more.
const GROWTH_MAX: u64 = 224;

#[test]
fn an_export_a_report_and_a_backup_leave_the_memory_of_a_server_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime().block_on(charge(&data));
    let segments = files_below(&data.join("journal"));
    assert!(segments > 9 * SEGMENT_BYTES, "{segments} bytes of journal");
    runtime().block_on(read_all(folder.path(), &data));
}

/// PIX charges that are paid, each with a payer of many bytes.
async fn charge(data: &Path) {
    let engine = open(data, &SledOptions { segment_bytes: SEGMENT_BYTES, ..SledOptions::default() }).await;
    let shop = open_shops(&engine, 1).await.remove(0);
    for number in 0..CHARGES {
        let (now, charge) = (engine.now(), new_id(&engine, shop.group));
        let payer = Payer { name: format!("{number:0NAME_BYTES$}"), ..Payer::default() };
        let payer = engine.keyring().seal_value(SealedFor::payer(charge), now, &payer).unwrap();
        let (amount, expires_at) = (Centavos(10_000), now.plus_days(1));
        let opened = MerchantCommand::OpenPix { charge, amount, splits: shop.splits(), expires_at, payer, rail: None };
        record(&engine, shop.group, opened).await;
        let end_to_end_id = format!("E{number:031}");
        record(&engine, shop.group, MerchantCommand::ConfirmPix { charge, amount, end_to_end_id }).await;
    }
    engine.stop().await;
}

async fn read_all(folder: &Path, data: &Path) {
    // As it is shipped.
    let launch = Launch::as_shipped(data).with("CENTAVO_SEGMENT_BYTES", SEGMENT_BYTES.to_string());
    let server = Server::start(&launch).await.unwrap();
    let get = async |path: &str| {
        let request = reqwest::Client::new().get(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN);
        request.send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap().len() as u64
    };
    let empty = Server::start(&Launch::as_shipped(&folder.join("empty"))).await.unwrap();
    let before = resident_mib(&empty);
    empty.stop().unwrap();
    let mut grown = Vec::new();
    let mut note = |what: &'static str| grown.push((what, resident_mib(&server).saturating_sub(before)));
    note("start");
    assert!(get("/ops/export?ledger=all&format=jsonl").await > 100 * CHARGES);
    note("export");
    assert!(get("/ops/reports/general-ledger?format=csv&ledger=P-all").await > 100 * CHARGES);
    note("report");
    let made = backup_through(data, &folder.join("copies"), &server.operations).await.unwrap();
    assert!(made.contains("Taken from"), "{made}");
    note("backup");
    let out = folder.join("out");
    let mut command = Command::new(BINARY);
    command.args(["export", "--format", "csv", "--data"]).arg(data).arg("--out").arg(&out);
    command.args(["--ops-listen", server.operations.trim_start_matches("http://")]).env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
    run(&mut command).await.unwrap();
    assert!(!files(&out).is_empty());
    note("export by the command");
    server.stop().unwrap();
    println!("{before} MiB with empty books; more than that: {grown:?} MiB");
    assert!(
        grown.iter().all(|(_, mib)| *mib < GROWTH_MAX),
        "{before} MiB with empty books; more than that: {grown:?} MiB"
    );
}

/// Resident memory of the server's process, MiB.
fn resident_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

/// Bytes of the files below a folder.
fn files_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { entry.metadata().unwrap().len() })
        .sum()
}
