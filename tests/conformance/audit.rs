//! A backup, judged by the auditors' program (`docs/audit/verify_backup.py`), which shares no code
//! with this one: it finds the balances that the server shows, and any byte that was changed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::callers::Callers;
use testkit::server::{Launch, OPS_TOKEN, Server, centavo};

use crate::tool;

const LONGEST: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_program_finds_the_same_books_and_every_change() {
    if tool::python("cryptography").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(&Launch::on(&path("data"))).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 60).await;
    let get = async |place: &str| {
        let client = reqwest::Client::new();
        let answer = client.get(format!("{}{place}", server.operations)).bearer_auth(OPS_TOKEN).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let mut checkpoints = get("/ops/checkpoint").await;
    callers.charge(&server, 4, 20).await;
    checkpoints += &get("/ops/checkpoint").await;
    let shown: Value = serde_json::from_str(&get("/ops/trial-balance?by=account").await).unwrap();
    server.stop().unwrap();
    std::fs::write(path("checkpoints"), &checkpoints).unwrap();
    let mut backup = Command::new(centavo());
    backup.arg("backup").arg("--data").arg(path("data")).arg("--out").arg(path("copies"));
    assert!(backup.output().unwrap().status.success());

    let verify = |copies: &Path, checkpoints: &Path| {
        let mut python = tool::python("cryptography").unwrap();
        python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit/verify_backup.py"));
        python.arg(copies).arg("--against").arg(checkpoints).arg("--json");
        tool::run(python, LONGEST)
    };
    let found: Value = serde_json::from_str(&verify(&path("copies"), &path("checkpoints")).unwrap()).unwrap();
    assert_eq!(found["checkpoints"], 2);
    assert_eq!(found["debits"], found["credits"]);
    let accounts = shown["accounts"].as_array().unwrap();
    assert!(accounts.len() > 10, "{shown}");
    for account in accounts {
        let sums = &found["accounts"][account["account"].as_str().unwrap()];
        assert_eq!([&sums[0], &sums[1]], [&account["debits"], &account["credits"]], "{account}");
    }
    assert_eq!(found["accounts"].as_object().unwrap().len(), accounts.len());

    let blocks = path("copies").join("000001.blocks");
    let whole = std::fs::read(&blocks).unwrap();
    for place in (20..whole.len()).step_by(whole.len() / 40) {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        std::fs::write(&blocks, changed).unwrap();
        let said = verify(&path("copies"), &path("checkpoints")).unwrap_err();
        assert!(said.contains("verify_backup: "), "byte {place}: {said}");
    }
    std::fs::write(&blocks, &whole).unwrap();
    let digit = checkpoints.find("\"head\":\"").unwrap() + 8;
    let other = if &checkpoints[digit..=digit] == "0" { "1" } else { "0" };
    checkpoints.replace_range(digit..=digit, other);
    std::fs::write(path("forged"), &checkpoints).unwrap();
    let said = verify(&path("copies"), &path("forged")).unwrap_err();
    assert!(said.contains("wrong signature"), "{said}");
    std::fs::remove_file(&blocks).unwrap();
    let said = verify(&path("copies"), &path("checkpoints")).unwrap_err();
    assert!(said.contains("the end names Record"), "{said}");
}
