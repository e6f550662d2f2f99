//! A store of three partitions, with a merchant in each: what works on it without its server takes
//! all of them along.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::callers::{Callers, KeyedAnswer};
use crate::commands::{
    BINARY, backup, backup_through, copy, files, head_of, restore, run, verify, verify_against, verify_live,
};
use crate::forged::{audit, python};
use crate::{Follower, until_copied};

const PARTITIONS: usize = 3;

/// Starts a server on a folder; a new one gets three partitions.
async fn start(data: &Path) -> Server {
    Server::start(&Launch::on(data).with("CENTAVO_PARTITIONS", PARTITIONS.to_string())).await.unwrap()
}

/// A merchant in each partition.
async fn open_all(server: &Server) -> Vec<Callers> {
    let mut all = Vec::new();
    for _ in 0..PARTITIONS {
        all.push(Callers::open(server).await);
    }
    all
}

/// All of them charge at a server for this many milliseconds.
async fn charge(all: &[Callers], server: &Server, millis: u64) {
    let loads: Vec<_> = all.iter().map(|callers| callers.charge_at(&server.public)).collect();
    tokio::time::sleep(Duration::from_millis(millis)).await;
    for load in loads {
        load.end().await;
    }
}

/// Answers to each merchant, and its books.
async fn answers_of(all: &[Callers], server: &Server) -> Vec<(Vec<KeyedAnswer>, [Value; 3])> {
    let mut answers = Vec::new();
    for callers in all {
        answers.push((callers.answers(), callers.books(server).await));
    }
    answers
}

/// The server has everything that the merchants' answers promised.
async fn check(all: &[Callers], server: &Server, answers: &[(Vec<KeyedAnswer>, [Value; 3])]) {
    for (callers, (answers, books)) in all.iter().zip(answers) {
        assert_eq!(callers.books(server).await, *books);
        callers.check(server, answers).await;
    }
}

/// `0=…,1=…,2=…`, each with Records.
fn assert_is_of_all(head: &str) {
    let cut = head.trim_start_matches("sequence ").split(", ").next().unwrap();
    let last: Vec<u64> = cut.split(',').map(|part| part.split_once('=').unwrap().1.parse().unwrap()).collect();
    assert!(last.len() == PARTITIONS && last.iter().all(|last| *last > 10), "{head}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_three_partitions_is_backed_up_restored_and_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, copies) = (path("data"), path("copies"));
    let server = start(&data).await;
    let all = open_all(&server).await;
    let mut follower = Follower::start(&path("followed"), &server.operations);
    charge(&all, &server, 700).await;
    backup_through(&data, &copies, &server.operations).await.unwrap();
    copy(&copies, &path("first"));
    charge(&all, &server, 300).await;
    until_copied(&path("followed"), all[0].sequence(&server).await).await;
    let answers = answers_of(&all, &server).await;
    follower.says("Up to date").await;
    drop(follower);
    server.stop().unwrap();

    let said = backup(&data, &copies).await.unwrap();
    assert_is_of_all(head_of(&said));
    assert_eq!(head_of(&said), head_of(&verify(&data).await.unwrap()));
    if let Some(python) = python() {
        let audited = audit(&python, &copies, None).unwrap();
        let hash = head_of(&said).rsplit(", ").next().unwrap();
        assert!(audited.contains(hash) && audited.contains("\"partitions\": 3"), "{audited}");
    }
    for (name, from, tail) in [
        ("whole", &copies, None),
        ("from-followed", &path("followed"), None),
        ("from-backup", &path("first"), Some(&copies)),
        ("from-data", &path("first"), Some(&data)),
    ] {
        let restored = path(name);
        let verified = restore(from, &restored, &data, tail.map(|tail| tail.as_path())).await.unwrap();
        assert_eq!(head_of(&verified), head_of(&said), "{name}");
        // Without the setting: the extents were restored.
        let server = Server::start(&Launch::on(&restored)).await.unwrap();
        check(&all, &server, &answers).await;
        server.stop().unwrap();
        verify(&restored).await.unwrap();
    }

    let moved = path("moved");
    let key = std::fs::read_to_string(data.join("master.key")).unwrap();
    let mut migrate = Command::new(BINARY);
    migrate.args(["migrate", "--from"]).arg(&data).arg("--to").arg(&moved).env("CENTAVO_MASTER_KEY", key);
    let migrated = run(&mut migrate).await.unwrap();
    assert!(migrated.contains("each the same byte by byte"), "{migrated}");
    std::fs::copy(data.join("master.key"), moved.join("master.key")).unwrap();
    let server = Server::start(&Launch::on(&moved)).await.unwrap();
    check(&all, &server, &answers).await;
    charge(&all, &server, 200).await;
    server.stop().unwrap();
    assert_is_of_all(head_of(&verify(&moved).await.unwrap()));
}

/// Also beside charges; it counts as no backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journals_of_a_running_server_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    let server = start(&data).await;
    let all = open_all(&server).await;
    charge(&all, &server, 300).await;
    let loads: Vec<_> = all.iter().map(|callers| callers.charge_at(&server.public)).collect();
    let said = verify_live(&data, &server.operations).await.unwrap();
    for load in loads {
        load.end().await;
    }
    assert!(said.contains("the server at 127.0.0.1:") && said.contains("the books are whole"), "{said}");
    assert!(said.contains("0 erased") && !said.contains("Snapshots  "), "{said}");
    assert_is_of_all(head_of(&said));
    let last = reqwest::Client::new().get(format!("{}/ops/backups/last", server.operations)).bearer_auth(OPS_TOKEN);
    assert_eq!(last.send().await.unwrap().text().await.unwrap(), "{}");
    let live = verify_live(&data, &server.operations).await.unwrap();
    let taken = backup_through(&data, &copies, &server.operations).await.unwrap();
    assert_eq!(head_of(&live), head_of(&taken));
    let refused = verify_live(&data, "127.0.0.1:1").await.unwrap_err();
    assert!(refused.contains("no server answers at 127.0.0.1:1"), "{refused}");
    let operations = server.operations.clone();
    server.stop().unwrap();
    let stopped = verify_live(&data, &operations).await.unwrap();
    assert!(stopped.contains("each equal to a replay"), "without a server all is verified: {stopped}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_write_what_the_server_of_three_partitions_writes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = start(&data).await;
    let all = open_all(&server).await;
    charge(&all, &server, 500).await;
    let get = async |path: &str| {
        let url = format!("{}{path}", server.operations);
        let answer = reqwest::Client::new().get(url).bearer_auth(OPS_TOKEN).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        let cut = ["x-cut", "report-cut"].iter().find_map(|name| answer.headers().get(*name).cloned());
        (cut.map(|cut| cut.to_str().unwrap().to_owned()), answer.bytes().await.unwrap().to_vec())
    };
    // In another month, so that the commands begin at balance files.
    let moved = reqwest::Client::new().post(format!("{}/ops/sandbox/clock", server.operations)).bearer_auth(OPS_TOKEN);
    let moved = moved.json(&json!({"advance_seconds": 40 * 86_400})).send().await.unwrap();
    let now = moved.json::<Value>().await.unwrap()["now"].as_str().unwrap()[..10].to_owned();
    charge(&all, &server, 500).await;
    let files_of = |partition: &str| {
        // Names alone: the server makes and renames files meanwhile.
        let names = std::fs::read_dir(data.join("files")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with(&format!("{partition}balances"))).count()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while ["", "00001.", "00002."].iter().any(|partition| files_of(partition) == 0) {
        assert!(Instant::now() < deadline, "no balance files are made");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (cut, exported) = get(&format!("/ops/export?ledger=all&format=csv&from={now}")).await;
    let cut = cut.expect("a cut");
    let (_, reported) = get(&format!("/ops/reports/trial-balance?format=csv&from={now}&at={cut}")).await;
    let (_, checkpoint) = get("/ops/checkpoint").await;
    let (_, in_last) = get("/ops/checkpoint?partition=2").await;
    std::fs::write(folder.path().join("checkpoints"), [checkpoint, in_last].concat()).unwrap();
    charge(&all, &server, 200).await;
    let operations = server.operations.trim_start_matches("http://").to_owned();
    let made = async |name: &str, verb: &[&str], at: &str| {
        let out = folder.path().join(name);
        let mut command = Command::new(BINARY);
        command
            .args(verb)
            .args(["--format", "csv", "--from", &now, "--at", at, "--data"])
            .arg(&data)
            .arg("--out")
            .arg(&out);
        command.args(["--ops-listen", &operations]).env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
        run(&mut command).await.map(|_| files(&out))
    };
    let of_kind = |files: Vec<(String, Vec<u8>)>| {
        files.into_iter().find(|(name, _)| name.ends_with(".csv")).expect("a file of rows").1
    };
    for is_served in [true, false] {
        let name = |what: &str| format!("{what}-{is_served}");
        let export = made(&name("export"), &["export"], &cut).await.unwrap();
        assert_eq!(of_kind(export), exported, "{is_served}");
        let report = made(&name("report"), &["report", "trial-balance"], &cut).await.unwrap();
        assert_eq!(of_kind(report), reported, "{is_served}");
        for wrong in ["7", "0=7", "0=99999999,1=1,2=1"] {
            let error = made(&name("wrong"), &["export"], wrong).await.unwrap_err();
            assert!(
                error.contains(&format!("there is no Record {wrong}"))
                    || error.contains("there is no Record 7 to cut at: the journal ends at 0="),
                "{error}"
            );
        }
        if is_served {
            assert_eq!(get("/ops/backups/last").await.1, b"{}", "neither an export nor a report is a backup");
            server.kill();
            server.wait();
        }
    }
    let said = verify_against(&data, &folder.path().join("checkpoints")).await.unwrap();
    assert!(said.contains("2 checkpoints agree"), "{said}");
}
