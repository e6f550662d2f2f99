//! Backups of the real server, and what is restored from them: made while callers charge, cut,
//! damaged, killed in the middle, continued with a second copy; and the books that come out are the
//! books that went in.

#![allow(clippy::unwrap_used)]

mod added_partitions;
mod callers;
mod commands;
mod forged;
mod memory;
mod partitions;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::server::{Launch, OPS_TOKEN, Server};

use callers::Callers;
use commands::{
    backup, backup_through, backup_without_token, copy, files, fill, head_of, kill_after, restore, verify,
    verify_against,
};

/// Backups that are made while callers charge.
const BACKUPS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_load_hold_all_that_was_acknowledged_before_they_began() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let callers = Callers::open(&server).await;
    let refusal = backup_without_token(&data, &copies).await.unwrap_err();
    assert!(refusal.contains("set CENTAVO_OPS_TOKEN"), "{refusal}");
    assert!(!copies.exists());

    // Somebody asks for everything and takes nothing: nobody waits for that, but a second backup.
    let load = callers.charge();
    let mut before = Vec::new();
    for round in 0..BACKUPS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        before.push(callers.answers());
        let made = backup_through(&data, &copies, &server.operations).await.unwrap();
        assert!(made.contains("Taken from"), "{made}");
        copy(&copies, &folder.path().join(format!("copy-{round}")));
        assert!(callers.answers().len() > before[round].len(), "callers charge while a backup is made");
    }
    let stalled = ask_and_take_nothing(&server);
    let so_far = callers.answers().len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(callers.answers().len() > so_far, "a caller that takes nothing holds nobody up");
    drop(stalled);
    load.end().await;
    let acknowledged = callers.answers();
    let books = callers.books(&server).await;
    server.stop().unwrap();
    let last = backup(&data, &copies).await.unwrap();
    assert_eq!(head_of(&last), head_of(&verify(&data).await.unwrap()));

    for (round, before) in before.iter().enumerate() {
        let restored = folder.path().join(format!("restored-{round}"));
        restore(&folder.path().join(format!("copy-{round}")), &restored, &data, None).await.unwrap();
        let server = Server::start(&Launch::on(&restored)).await.unwrap();
        callers.check(&server, before).await;
        server.stop().unwrap();
    }
    // An old copy, and the rest from a second one: a backup, or the data of the server.
    for (name, tail) in [("from-backup", &copies), ("from-data", &data)] {
        let restored = folder.path().join(name);
        let said = restore(&folder.path().join("copy-0"), &restored, &data, Some(tail)).await.unwrap();
        assert_eq!(head_of(&said), head_of(&last));
        let server = Server::start(&Launch::on(&restored)).await.unwrap();
        assert_eq!(callers.books(&server).await, books);
        callers.check(&server, &acknowledged).await;
        server.stop().unwrap();
        let said = verify(&restored).await.unwrap();
        assert!(said.contains("each equal to a replay") && !said.contains("unusable"), "{said}");
    }
    println!("{} requests acknowledged, {} of them before the first backup", acknowledged.len(), before[0].len());
}

/// Asks for a backup on a connection of its own, and reads no byte of it.
fn ask_and_take_nothing(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.operations.trim_start_matches("http://")).unwrap();
    let request = format!("GET /ops/backup HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {OPS_TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// A backup that goes on until it is killed, when this is dropped, and the file of what it says.
struct Follower(std::process::Child, std::path::PathBuf);

impl Follower {
    fn start(copies: &Path, url: &str) -> Self {
        let said = copies.with_extension("said");
        let mut command = std::process::Command::new(testkit::server::centavo());
        command.args(["backup", "--follow", url, "--out"]).arg(copies).env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
        Self(command.stdout(std::fs::File::create(&said).unwrap()).spawn().unwrap(), said)
    }

    /// Waits until it says this.
    async fn says(&mut self, text: &str) {
        for _ in 0..6_000 {
            if std::fs::read_to_string(&self.1).unwrap().contains(text) {
                return;
            }
            assert!(self.0.try_wait().unwrap().is_none(), "it has ended without {text}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {text} in {}", std::fs::read_to_string(&self.1).unwrap());
    }
}

/// An address that passes connections on to a server that moves.
fn moving(upstream: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for caller in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(upstream.lock().unwrap().trim_start_matches("http://")) else {
                continue;
            };
            for (from, to) in [(&caller, &server), (&server, &caller)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _one_has_ended = std::io::copy(&mut from, &mut to);
                    let _other_too = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _has_ended = (self.0.kill(), self.0.wait());
    }
}

/// Waits until a copy has this Record, a minute at most; gives how long that took.
async fn until_copied(copies: &Path, sequence: u64) -> Duration {
    let begun = std::time::Instant::now();
    loop {
        let through = actors::backup::BackupFolder::open(copies).map(|folder| folder.heads().records());
        if through.is_ok_and(|through| through >= sequence) {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the copy does not keep up with {sequence}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_keeps_up_and_goes_on_after_either_side_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let callers = Callers::open(&server).await;
    let upstream = Arc::new(Mutex::new(server.operations.clone()));
    let url = moving(Arc::clone(&upstream));
    let mut follower = Follower::start(&copies, &url);
    let load = callers.charge();
    let mut lags = Vec::new();
    let rounds = std::env::var("CENTAVO_FOLLOW_ROUNDS").map_or(12, |count| count.parse().expect("a number of rounds"));
    for round in 0..rounds {
        tokio::time::sleep(Duration::from_millis(250)).await;
        // No narrower bound than that of `until_copied`: how late it is says more of a busy machine
        // than of the program.
        lags.push(until_copied(&copies, callers.sequence(&server).await).await);
        if round == rounds / 2 {
            drop(follower);
            follower = Follower::start(&copies, &url);
        }
    }
    load.end().await;
    until_copied(&copies, callers.sequence(&server).await).await;
    let (acknowledged, books) = (callers.answers(), callers.books(&server).await);
    // While it is followed, a backup is made as ever.
    backup_through(&data, &folder.path().join("other"), &server.operations).await.unwrap();
    server.kill();
    server.wait();
    follower.says("It is asked again every second.").await;
    let restored = folder.path().join("restored");
    restore(&copies, &restored, &data, None).await.unwrap();
    let server = Server::start(&Launch::on(&restored)).await.unwrap();
    assert_eq!(callers.books(&server).await, books);
    callers.check(&server, &acknowledged).await;
    // The copy follows the server that took over, which has the same Records.
    upstream.lock().unwrap().clone_from(&server.operations);
    let load = callers.charge_at(&server.public);
    // An answer waits for a new Record, so it is heard of once there are some.
    follower.says("The server answers again.").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    load.end().await;
    until_copied(&copies, callers.sequence(&server).await).await;
    drop(follower);
    let blocks = files(&copies).iter().filter(|(name, _)| name.ends_with(".blocks")).count();
    println!("{} requests acknowledged, {blocks} files", acknowledged.len());
    lags.sort();
    println!("copied after {:?} in the median of {rounds} rounds, {:?} at most", lags[rounds / 2], lags[rounds - 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_of_another_journal_or_without_a_token_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    fill(&folder.path().join("other"), 400);
    backup(&folder.path().join("other"), &copies).await.unwrap();
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let followed = |token: &str| {
        let mut command = std::process::Command::new(testkit::server::centavo());
        command.args(["backup", "--follow", &server.operations, "--out"]).arg(&copies).env("CENTAVO_OPS_TOKEN", token);
        let done = command.output().unwrap();
        assert!(!done.status.success());
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let before = files(&copies);
    let wrong = followed("a-token-of-nobody-here");
    assert!(wrong.contains("the server answered 401"), "{wrong}");
    let other = followed(OPS_TOKEN);
    assert!(other.contains("another journal") || other.contains("the journal ends at"), "{other}");
    assert_eq!(files(&copies), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_off_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    fill(&data, 400);
    backup(&data, &copies).await.unwrap();
    let before = files(&copies);
    fill(&data, 2_000);
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    for bytes in [0, 100, 1_000, 50_000, 200_000] {
        let error = backup_through(&data, &copies, &cut_after(&server, bytes)).await.unwrap_err();
        assert!(!error.contains("panicked"), "{error}");
        assert_eq!(files(&copies), before, "after {bytes} bytes: {error}");
    }
    let refused = commands::backup_with_token(&data, &copies, &server.operations, "wrong").await.unwrap_err();
    let expected = "does not accept the token: set CENTAVO_OPS_TOKEN";
    assert!(
        refused.contains(expected) && refused.contains(server.operations.trim_start_matches("http://")),
        "{refused}"
    );
    server.stop().unwrap();
    assert_eq!(head_of(&backup(&data, &copies).await.unwrap()), head_of(&verify_head(&data, &copies).await));
}

/// A backup holds amounts, dates and ids: whatever the process's umask is, nobody else reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_can_read_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    for records in [40, 400] {
        fill(&data, records);
        commands::backup_with_umask("0022", &data, &copies).await.unwrap();
    }
    let mut open = vec![copies.clone(), data.join("last-backup")];
    let mut seen = Vec::new();
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, if metadata.is_dir() { 0o700 } else { 0o600 }, "{}: {mode:o}", path.display());
        if metadata.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen.push(path);
    }
    for name in ["keys", "lock", "000001.blocks", "000002.blocks"] {
        assert!(seen.contains(&copies.join(name)), "{name} is not in {seen:?}");
    }
}

/// A restored copy's head, as `verify` says it.
async fn verify_head(data: &Path, copies: &Path) -> String {
    restore(copies, &copies.with_file_name("restored"), data, None).await.unwrap()
}

/// Somebody who keeps checkpoints finds that books were exchanged for older ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_that_went_back_in_time_are_found_by_their_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, copies, checkpoints_file) = (path("data"), path("copies"), path("checkpoints.jsonl"));
    fill(&data, 40);
    backup(&data, &copies).await.unwrap();
    let mut checkpoints = String::new();
    for _ in 0..2 {
        let server = Server::start(&Launch::on(&data)).await.unwrap();
        let client = reqwest::Client::new();
        let request = client.get(format!("{}/ops/checkpoint", server.operations)).bearer_auth(OPS_TOKEN);
        checkpoints += &(request.send().await.unwrap().text().await.unwrap() + "\n");
        server.stop().unwrap();
        fill(&data, 40);
    }
    std::fs::write(&checkpoints_file, &checkpoints).unwrap();
    let said = verify_against(&data, &checkpoints_file).await.unwrap();
    assert!(said.contains("2 checkpoints agree"), "{said}");

    restore(&copies, &path("older"), &data, None).await.unwrap();
    let found = verify_against(&path("older"), &checkpoints_file).await.unwrap_err();
    assert!(found.contains("the journal is the one of which a checkpoint tells"), "{found}");
    for (text, defect) in [
        ("", "there is none in it"),
        ("{}", "missing field"),
        (&checkpoints[..checkpoints.len() - 20], "EOF while parsing"),
        (&checkpoints.replacen("\"sequence\":", "\"sequence\":1", 1), "a signature of its key"),
    ] {
        std::fs::write(&checkpoints_file, text).unwrap();
        let found = verify_against(&data, &checkpoints_file).await.unwrap_err();
        assert!(found.contains(defect), "{found}");
    }
}

/// A server sends a checkpoint at each start, as one chain; one that is left out is noticed. A
/// place that fails is counted, and ends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_sent_to_a_folder_as_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, place) = (path("data"), path("place"));
    let sending = |to: &Path| Launch::on(&data).with("CENTAVO_CHECKPOINTS_TO", to.display().to_string());
    fill(&data, 40);
    let server = Server::start(&sending(&path("missing"))).await.unwrap();
    let metrics = async || {
        let response = reqwest::get(format!("{}/metrics", server.operations)).await.unwrap();
        response.text().await.unwrap()
    };
    while !metrics().await.contains("centavo_checkpoint_failures_total 1") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().unwrap();
    std::fs::create_dir(&place).unwrap();
    for count in 1..=3 {
        fill(&data, 40);
        let server = Server::start(&sending(&place)).await.unwrap();
        while sent(&place).len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The backup is stored before the next one is made.
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.stop().unwrap();
    }
    let said = verify_against(&data, &place).await.unwrap();
    assert!(said.contains("3 checkpoints agree"), "{said}");
    std::fs::remove_file(&sent(&place)[1]).unwrap();
    let found = verify_against(&data, &place).await.unwrap_err();
    assert!(found.contains("the checkpoint that it follows"), "{found}");
}

/// The checkpoints in a folder, the oldest first.
fn sent(place: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(place).into_iter().flatten().map(|file| file.unwrap().path());
    let mut sent: Vec<_> = names.filter(|name| name.extension().unwrap() == "json").collect();
    sent.sort();
    sent
}

/// Without a setting they stand in the data folder, and `verify` compares with them, also where
/// some are missing between others: a place that was set for a while has those. `off` writes none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_on_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, copies) = (path("data"), path("copies"));
    let own = data.join("checkpoints");
    fill(&data, 40);
    let said = verify(&data).await.unwrap();
    assert!(said.contains("not compared with any checkpoint"), "{said}");
    backup(&data, &copies).await.unwrap();
    for count in 1..=3 {
        fill(&data, 40);
        let server = Server::start(&Launch::on(&data)).await.unwrap();
        while sent(&own).len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.stop().unwrap();
    }
    let said = verify(&data).await.unwrap();
    assert!(said.contains("3 checkpoints agree"), "{said}");
    assert!(said.contains(&format!("They are those in {}", own.display())), "{said}");
    std::fs::remove_file(&sent(&own)[1]).unwrap();
    let said = verify(&data).await.unwrap();
    assert!(said.contains("2 checkpoints agree"), "{said}");

    let older = path("older");
    restore(&copies, &older, &data, None).await.unwrap();
    assert!(verify(&older).await.unwrap().contains("not compared with any checkpoint"));
    std::fs::rename(&own, older.join("checkpoints")).unwrap();
    let found = verify(&older).await.unwrap_err();
    assert!(found.contains("the journal is the one of which a checkpoint tells"), "{found}");
    assert!(found.contains(&older.join("checkpoints").display().to_string()), "{found}");

    fill(&data, 40);
    let server = Server::start(&Launch::on(&data).with("CENTAVO_CHECKPOINTS_TO", "off")).await.unwrap();
    server.stop().unwrap();
    assert!(!own.exists());
}

/// An address that forwards requests to a server, and returns this number of bytes of the answer.
fn cut_after(server: &Server, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let behind = server.operations.trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let length = caller.read(&mut request).unwrap();
        let mut server = TcpStream::connect(behind).unwrap();
        server.write_all(&request[..length]).unwrap();
        let mut answer = vec![0; bytes];
        server.read_exact(&mut answer).unwrap();
        caller.write_all(&answer).unwrap();
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_it_can_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies, restored) =
        (folder.path().join("data"), folder.path().join("copies"), folder.path().join("restored"));
    fill(&data, 3_000);
    let mut cut = 0;
    for millis in (1..40).step_by(3) {
        cut += u32::from(kill_after(millis, &["backup", "--out"], &copies, &["--data"], &data).await);
        assert!(!copies.join("keys").exists() || files(&copies).iter().any(|(name, _)| name == "keys"));
    }
    let made = backup(&data, &copies).await.unwrap();
    assert!(files(&copies).iter().all(|(name, _)| !name.ends_with('~')), "{made}");

    let mut half_made = 0;
    for millis in (10..200).step_by(30) {
        if kill_after(millis, &["restore", "--from"], &copies, &["--data"], &restored).await {
            cut += 1;
            half_made += u32::from(folder.path().join("restored.restoring").join("journal").exists());
            assert!(!restored.exists(), "no half journal has the name");
        } else {
            std::fs::remove_dir_all(&restored).unwrap();
        }
    }
    assert!(half_made > 0, "a restore was killed in the middle");
    let said = restore(&copies, &restored, &data, None).await.unwrap();
    assert_eq!(head_of(&said), head_of(&made));
    assert!(!folder.path().join("restored.restoring").exists());
    let again = restore(&copies, &restored, &data, None).await.unwrap_err();
    assert!(again.contains("not empty"), "{again}");
    println!("{cut} runs were killed, {half_made} restores with half a journal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_backup_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies, other) = (folder.path().join("data"), folder.path().join("copies"), folder.path().join("other"));
    fill(&data, 300);
    backup(&data, &copies).await.unwrap();
    fill(&data, 300);
    backup(&data, &copies).await.unwrap();
    let restored = folder.path().join("restored");
    for (name, bytes) in files(&copies).into_iter().filter(|(name, _)| name != "lock") {
        let path = copies.join(&name);
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        for damage in [Some(&flipped[..]), Some(&bytes[..bytes.len() - 7]), None] {
            damage.map_or_else(|| std::fs::remove_file(&path), |damage| std::fs::write(&path, damage)).unwrap();
            let errors =
                [restore(&copies, &restored, &data, None).await, backup(&data, &copies).await].map(Result::unwrap_err);
            for error in errors {
                assert!(error.contains(&format!("{}: damaged", path.display())), "{error}");
            }
            assert!(!restored.exists() && !folder.path().join("restored.restoring").exists());
            std::fs::write(&path, &bytes).unwrap();
        }
    }
    fill(&other, 300);
    let before = files(&copies);
    let error = backup(&other, &copies).await.unwrap_err();
    assert!(error.contains("a backup of another journal"), "{error}");
    assert_eq!(files(&copies), before);
    let error = restore(&copies, &restored, &data, Some(&folder.path().join("nowhere"))).await.unwrap_err();
    assert!(error.contains("the second copy does not open") && !restored.exists(), "{error}");
    let error = backup(&folder.path().join("nowhere"), &folder.path().join("new")).await.unwrap_err();
    assert!(error.contains("there is no journal here") && !folder.path().join("new").exists(), "{error}");
}
