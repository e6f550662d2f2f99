//! Two processes on one PostgreSQL database: one serves, the other waits and takes over. Processes
//! and databases are killed, paused and promoted while callers charge; nothing acknowledged is lost
//! and nothing happens twice.
//!
//! What clients were answered meanwhile is judged as a [history]; [faults] has what happens to
//! them.
//!
//! Books move between folders and databases, too, for which some tests need no database.
//!
//! The others need PostgreSQL's programs, and print a note where they are missing.
//! `CENTAVO_POSTGRES=required` makes that an error.

#![allow(clippy::unwrap_used)]

mod added_partitions;
mod clocks;
mod database;
mod faults;
mod history;
mod journal_move;
mod migration;
mod nodes;
mod peers;
mod proxy;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use store::testkit::postgres::{PostgresServer, programs, shared};
use store::testkit::power_cut::Chance;
use testkit::callers::{Callers, client};
use testkit::server::{Launch, Server, centavo, free_address};

/// The takeover time of the tests, seconds.
const TAKEOVER_SECONDS: u64 = 4;

const MASTER_KEY: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// How long something may take that has no limit of its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process on a database. The folder holds what the sandbox's institution remembers.
fn on<'a>(folder: &'a Path, address: &str) -> Launch<'a> {
    Launch::on(folder)
        .with("CENTAVO_STORE", address)
        .with("CENTAVO_MASTER_KEY", MASTER_KEY)
        .with("CENTAVO_POSTGRES_TAKEOVER_SECONDS", TAKEOVER_SECONDS.to_string())
}

/// Starts a process that waits until the serving process has ended.
fn wait_in_line(folder: &Path, address: &str) -> tokio::task::JoinHandle<(Server, Instant)> {
    let (folder, address) = (folder.to_owned(), address.to_owned());
    tokio::spawn(async move {
        let server = Server::start(&on(&folder, &address)).await.unwrap();
        (server, Instant::now())
    })
}

/// Runs a command of the program on a database.
fn run_on(address: &str, words: &[&str], paths: &[(&str, PathBuf)]) -> Output {
    let mut command = Command::new(centavo());
    command.args(words).env("CENTAVO_STORE", address).env("CENTAVO_MASTER_KEY", MASTER_KEY);
    for (flag, path) in paths {
        command.arg(flag).arg(path);
    }
    command.output().unwrap()
}

/// The database must verify; gives what was said.
fn must_verify(address: &str) -> String {
    let Output { status, stdout, stderr } = run_on(address, &["verify"], &[]);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Compares the callers' log with the server. On a slow disk a sign of life may be late: the server
/// then answers 503 for a moment, and is asked again.
async fn reckon(callers: &mut Callers, server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(failure) = callers.reckon(server).await {
        assert!(failure.contains("503") && Instant::now() < deadline, "{failure}: {}", server.said());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until every thread of a process stands still: on a busy machine some run on for a moment
/// after the signal.
async fn wait_until_stopped(process: u32) {
    let is_stopped = |task: std::fs::DirEntry| {
        // A thread may end meanwhile. After its name in brackets comes the state.
        let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { return true };
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    let begun = std::time::Instant::now();
    while !std::fs::read_dir(format!("/proc/{process}/task")).unwrap().map(Result::unwrap).all(is_stopped) {
        assert!(begun.elapsed() < PATIENCE, "the process does not stop");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Stops a process (SIGSTOP) that is in no turn at an institution of the sandbox. One that stood
/// still with the lock of an institution's folder would keep the institution from all others, which
/// nothing does to a real one.
async fn stop_between_turns(process: u32, data: &Path) {
    let folders = std::fs::read_dir(data.join("sandbox")).into_iter().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).into_iter().flatten());
    let locks = files.map(|file| file.unwrap().path()).filter(|path| path.to_string_lossy().ends_with("lock"));
    let locks: Vec<_> = locks.map(|path| std::fs::File::open(path).unwrap()).collect();
    tokio::task::block_in_place(|| locks.iter().for_each(|lock| lock.lock().unwrap()));
    signal(process, "STOP");
    wait_until_stopped(process).await;
}

fn signal(process: u32, signal: &str) {
    let status = Command::new("kill").args([format!("-{signal}"), process.to_string()]).status().unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_waits_takes_over_and_loses_nothing() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut chance = Chance(7);
    let mut server = Server::start(&on(folder.path(), &address)).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    let mut gaps = Vec::new();
    for round in 0..4 {
        let next = wait_in_line(folder.path(), &address);
        // The first one waits for the look at a beat that stands still, too.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let life = Duration::from_millis(200 + chance.below(1_500));
        let mut killed = Instant::now();
        let is_orderly = round % 4 == 3;
        callers
            .charge_until(&server, 8, life, || {
                killed = Instant::now();
                if is_orderly { server.terminate() } else { server.kill() }
            })
            .await;
        server.wait();
        let (successor, serving) = next.await.unwrap();
        gaps.push((serving.saturating_duration_since(killed), is_orderly));
        reckon(&mut callers, &successor).await;
        server = successor;
    }
    server.stop().unwrap();
    let said = must_verify(&address);
    assert!(said.contains("each equal to a replay"), "{said}");
    let longest = |orderly| gaps.iter().filter(|(_, is_orderly)| *is_orderly == orderly).map(|(gap, _)| gap).max();
    println!("{} takeovers at {TAKEOVER_SECONDS} s; {}", gaps.len(), callers.summary());
    println!("longest time without an owner: killed {:?}, ended in good order {:?}", longest(false), longest(true));
}

/// A process that is paused longer than its successor waits answers nothing when it goes on, and
/// ends: whether it was idle, or had requests under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_paused_answers_nothing_and_ends() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut server = Server::start(&on(folder.path(), &address)).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 40).await;
    for is_idle in [true, false] {
        reckon(&mut callers, &server).await;
        let next = wait_in_line(folder.path(), &address);
        tokio::time::sleep(Duration::from_millis(500)).await;
        match is_idle {
            true => signal(server.id(), "STOP"),
            false => {
                callers.charge_until(&server, 8, Duration::from_millis(700), || signal(server.id(), "STOP")).await;
            }
        }
        wait_until_stopped(server.id()).await;
        let url = format!("{}/api/balance", server.public);
        // They wait in its sockets until it goes on, and race with its next sign of life.
        let waiting: Vec<_> = (0..64)
            .map(|_| client().get(&url).bearer_auth(&callers.api_key).timeout(PATIENCE).send())
            .map(tokio::spawn)
            .collect();
        let (successor, _) = next.await.unwrap();
        // The former one's balance is out of date now.
        callers.charge(&successor, 4, 40).await;
        signal(server.id(), "CONT");
        for waiting in waiting {
            if let Ok(answer) = waiting.await.unwrap() {
                assert_eq!(answer.status(), 503);
            }
        }
        let ended = server.ended_within(PATIENCE).unwrap();
        assert_eq!(ended.status.unwrap().code(), Some(75), "{}", ended.said);
        server = successor;
    }
    reckon(&mut callers, &server).await;
    server.stop().unwrap();
    must_verify(&address);
    println!("{}", callers.summary());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_waits_can_be_ended_and_settings_that_do_not_do_are_refused() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let server = Server::start(&on(folder.path(), &address)).await.unwrap();
    let nobody = "postgres://127.0.0.1:1/books?user=ana";
    for (address, expected) in [(address.as_str(), "another process serves"), (nobody, "the database is waited for")] {
        let mut command = Command::new(centavo());
        command.args(["serve", "--listen", "127.0.0.1:0", "--sandbox", "--data"]).arg(folder.path());
        command.env("CENTAVO_STORE", address).env("CENTAVO_MASTER_KEY", MASTER_KEY);
        let operations = free_address();
        command.env("CENTAVO_OPS_LISTEN", &operations);
        let log = folder.path().join("log");
        let mut waiting = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(&log).unwrap().contains(expected) {
            assert!(Instant::now() < deadline, "{expected}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for (path, status) in [("/healthz", 200), ("/readyz", 503), ("/ops/trial-balance", 503)] {
            let answer = client().get(format!("http://{operations}{path}")).send().await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
        }
        signal(waiting.id(), "TERM");
        assert_eq!(waiting.wait().unwrap().code(), Some(0));
    }

    let refused = |address: &str, settings: &[(&str, &str)]| {
        let mut command = Command::new(centavo());
        command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--sandbox", "--data"]);
        command.arg(folder.path()).env("CENTAVO_STORE", address).envs(settings.iter().copied());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let key = ("CENTAVO_MASTER_KEY", MASTER_KEY);
    let said = refused(&address, &[]);
    assert!(said.contains("a database needs a master key that every process is given"), "{said}");
    let said = refused(&address, &[key, ("CENTAVO_POSTGRES_STANDBY", "on")]);
    assert!(said.contains("synchronous_standby_names is empty"), "{said}");
    let said = refused(&address, &[("CENTAVO_MASTER_KEY", &"0c".repeat(32))]);
    assert!(said.contains("the master key is not the one"), "{said}");
    let nowhere = format!("postgres://ana:tesouro@127.0.0.1:{}/nowhere", database.port());
    let said = refused(&nowhere, &[key]);
    assert!(said.contains("ana") && !said.contains("tesouro"), "{said}");
    let verified = run_on(nobody, &["verify"], &[]);
    let said = String::from_utf8(verified.stderr).unwrap();
    assert!(said.contains("postgres://127.0.0.1:1/books does not answer"), "{said}");
    server.stop().unwrap();
}
