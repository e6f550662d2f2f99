//! The disk fills up under load. Commands are then refused with 503 before the store is touched,
//! reads go on, and service resumes by itself when there is room again. A server that is killed on
//! a full disk starts again, at worst once its ballast is deleted. Nothing that was acknowledged is
//! lost.
//!
//! The disk is a file system in memory. Mounting it takes the super-user, or the right to make a
//! user namespace.

#![allow(clippy::unwrap_used)]

mod disk;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::books::Books;
use testkit::callers::{Callers, client};
use testkit::server::{Launch, Server, must_verify};

use disk::SmallDisk;

/// Callers that charge at once.
const CALLERS: usize = 8;
/// Room for the ballast, the reserve and some data.
const DISK_MIB: u64 = 256;
/// How long the server may take to notice that there is no room, or that there is room again.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

/// Set by whoever lets the test mount a file system.
const REQUIRED: &str = "CENTAVO_FULL_DISK";

/// Set in the process that runs in a name space of its own.
const IN_NAME_SPACE: &str = "CENTAVO_TEST_IN_NAME_SPACE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_stops_no_reader() {
    if std::env::var_os(REQUIRED).is_none() {
        println!(
            "Nothing was tested: it mounts a small tmpfs, as root or in a user namespace; {REQUIRED}=required runs it"
        );
        return;
    }
    let why_not = match SmallDisk::mount(DISK_MIB) {
        Ok(disk) => return fill_and_free(&disk).await.unwrap_or_else(|failure| panic!("{failure}")),
        Err(why_not) => why_not,
    };
    assert!(std::env::var_os(IN_NAME_SPACE).is_none(), "a name space of users may not mount either: {why_not}");
    let mut again = Command::new("unshare");
    again.args(["--user", "--map-root-user", "--mount"]).arg(std::env::current_exe().unwrap());
    let ended = again.arg("--nocapture").env(IN_NAME_SPACE, "1").status();
    assert!(
        ended.as_ref().is_ok_and(std::process::ExitStatus::success),
        "without the right to mount ({why_not}) this runs under unshare, which came to {ended:?}"
    );
}

async fn fill_and_free(disk: &SmallDisk) -> Result<(), String> {
    let data = disk.folder("data");
    // Closed segments are read too.
    let launch = Launch::on(&data).with("CENTAVO_BALLAST_BYTES", (64 << 20).to_string());
    let launch = launch.with("CENTAVO_SEGMENT_BYTES", "200000");
    let mut server = Server::start(&launch).await?;
    let mut merchants = [Callers::open(&server).await?];
    merchants[0].charge(&server, CALLERS, 200).await;
    merchants[0].reckon(&server).await?;

    // The server itself finds the disk full: nothing fails, commands are refused, reads go on, and
    // it resumes by itself.
    merchants[0].charge_during(&server, CALLERS, disk.fill()).await;
    let books = full(&server, &merchants).await?;
    disk.free();
    resumed(&server, &merchants[0]).await?;
    let refused = merchants[0].unanswered();
    merchants[0].reckon(&server).await?;

    // It is killed while the disk is full.
    merchants[0].charge_during(&server, CALLERS, disk.fill()).await;
    let books_when_killed = full(&server, &merchants).await?;
    server.kill();
    server.wait();
    server = restarted(&launch, &data).await?;
    unchanged(&books_when_killed, &server).await?;
    disk.free();
    resumed(&server, &merchants[0]).await?;
    merchants[0].reckon(&server).await?;
    server.stop()?;
    must_verify(&data)?;
    let (first, second) = (books.cut, books_when_killed.cut);
    println!("full at Record {first}, {refused} requests refused until then; killed when full at Record {second}");
    Ok(())
}

/// On a full disk a command is refused and says so, and everything can be read.
async fn full(server: &Server, merchants: &[Callers]) -> Result<Books, String> {
    let begun = Instant::now();
    loop {
        let (status, headers, body) = charge(server, &merchants[0]).await?;
        if status == 503 && body["code"] == "storage_full" {
            let is_problem = headers.get("content-type").is_some_and(|kind| kind == "application/problem+json");
            if !is_problem || !headers.contains_key("retry-after") {
                return Err(format!("refused without the form of a problem: {headers:?} {body}"));
            }
            break;
        }
        if begun.elapsed() > NOTICED_WITHIN {
            return Err(format!("the disk is full, and a charge comes to {status} {body}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ready =
        client().get(format!("{}/readyz", server.operations)).send().await.map_err(|error| error.to_string())?;
    if ready.status() != 503 {
        return Err(format!("the disk is full, and /readyz says {}", ready.status()));
    }
    let books = Books::read(server, merchants).await?;
    unchanged(&books, server).await?;
    Ok(books)
}

async fn unchanged(books: &Books, server: &Server) -> Result<(), String> {
    let not_given = books.check(server, 100, &mut Chance(1)).await?;
    if not_given.is_empty() { Ok(()) } else { Err(format!("not given on a full disk: {}", not_given.join("; "))) }
}

/// With room again, commands are carried out without a restart.
async fn resumed(server: &Server, callers: &Callers) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match charge(server, callers).await? {
            (201, _, _) => return Ok(()),
            (503, _, _) if begun.elapsed() < NOTICED_WITHIN => tokio::time::sleep(Duration::from_millis(50)).await,
            (status, _, body) => return Err(format!("there is room again, and a charge comes to {status} {body}")),
        }
    }
}

/// Starts on a full disk; where that needs room, the refusal names the ballast, and without it the
/// start succeeds.
async fn restarted(launch: &Launch<'_>, data: &Path) -> Result<Server, String> {
    let refused = match Server::start(launch).await {
        Ok(server) => return Ok(server),
        Err(refused) => refused,
    };
    let ballast = data.join("ballast");
    if !refused.said.contains(&ballast.display().to_string()) {
        return Err(format!("a start on a full disk must name the ballast: {refused}"));
    }
    std::fs::remove_file(&ballast).map_err(|error| format!("{}: {error}", ballast.display()))?;
    Ok(Server::start(launch).await?)
}

/// A PIX charge of one centavo, which is not in the callers' sums.
async fn charge(server: &Server, callers: &Callers) -> Result<(u16, reqwest::header::HeaderMap, Value), String> {
    let body = json!({"valor": "0.01", "nome": "Pedro", "cpf": "12345678909"});
    let request = client().post(format!("{}/api/pix", server.public)).bearer_auth(&callers.api_key).json(&body);
    let response = request.send().await.map_err(|error| match server.ended_within(Duration::from_secs(1)) {
        Some(ended) => format!("the server is gone: {ended}"),
        None => error.to_string(),
    })?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok((status, headers, response.json().await.map_err(|error| error.to_string())?))
}
