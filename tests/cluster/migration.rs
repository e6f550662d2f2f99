//! `centavo migrate`: the books move between data folders and databases. What moved has the same
//! chain, shows the same books over the API and delivers no webhook again; what is cut off, damaged
//! or in use is never served.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use serde_json::json;
use testkit::books::Books;
use testkit::callers::operate;

use super::*;

const OTHER_KEY: &str = "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c";

/// `centavo migrate` with these arguments.
fn migrate(arguments: &[&str]) -> Command {
    let mut command = Command::new(centavo());
    command.arg("migrate").args(arguments).env("CENTAVO_MASTER_KEY", MASTER_KEY);
    command.env("CENTAVO_POSTGRES_TAKEOVER_SECONDS", TAKEOVER_SECONDS.to_string());
    command
}

/// It must move the books; gives what was said.
fn moved(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = migrate(arguments).output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    let said = String::from_utf8(stdout).unwrap();
    let head = |name: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
        line.split("sequence ").nth(1).and_then(|head| head.rsplit_once(',')).map(|(head, _)| head.to_owned())
    };
    assert!(head("Head before").is_some() && head("Head before") == head("Head now"), "{said}");
    said
}

/// It must refuse with code 1; gives why.
fn refused(arguments: &[&str]) -> String {
    why(migrate(arguments).output().unwrap())
}

fn why(Output { status, stdout, stderr }: Output) -> String {
    assert_eq!(status.code(), Some(1), "{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A server of the books at a place: a folder, or a database whose server has this folder.
fn at<'a>(folder: &'a Path, address: Option<&str>) -> Launch<'a> {
    let launch = match address {
        Some(address) => on(folder, address),
        None => Launch::on(folder).with("CENTAVO_MASTER_KEY", MASTER_KEY),
    };
    launch.with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8")
}

/// What a server says that must not start.
async fn not_served(launch: &Launch<'_>) -> String {
    let refused = Server::start(launch).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.status.unwrap().code(), Some(1), "{}", refused.said);
    refused.said
}

/// The ids of all deliveries that came, in order.
type Heard = Arc<Mutex<Vec<String>>>;

async fn receiver() -> (String, Heard) {
    let heard = Heard::default();
    let hearing = Arc::clone(&heard);
    let hear = move |headers: HeaderMap| {
        hearing.lock().unwrap().push(headers["webhook-id"].to_str().unwrap().to_owned());
        std::future::ready(StatusCode::NO_CONTENT)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(hear)).await });
    (url, heard)
}

/// Waits until nothing waits at the endpoint, and more has come than before.
async fn delivered(server: &Server, heard: &Heard, before: usize) -> usize {
    let deadline = Instant::now() + 2 * PATIENCE;
    loop {
        let metrics =
            client().get(format!("{}/metrics", server.operations)).send().await.unwrap().text().await.unwrap();
        let waits = metrics.lines().any(|line| line.starts_with("centavo_webhook_waiting ") && !line.ends_with(" 0"));
        let count = heard.lock().unwrap().len();
        if count > before && !waits {
            return count;
        }
        assert!(Instant::now() < deadline, "webhooks do not come: {metrics}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All that a server shows of its books.
async fn read(server: &Server, callers: &Callers) -> Books {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Books::read(server, std::slice::from_ref(callers)).await {
            Ok(books) => return books,
            Err(failure) => assert!(failure.contains("503") && Instant::now() < deadline, "{failure}"),
        }
    }
}

/// Books in a folder whose server has ended, with a merchant that has webhooks.
struct World {
    folder: tempfile::TempDir,
    callers: Callers,
    heard: Heard,
    books: Books,
}

impl World {
    async fn make(requests: u64) -> Self {
        Self::make_of(1, requests).await
    }

    /// The same in a store of so many partitions.
    async fn make_of(partitions: u16, requests: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let launch = at(&data, None).with("CENTAVO_PARTITIONS", partitions.to_string());
        let server = Server::start(&launch).await.unwrap();
        let mut callers = Callers::open(&server).await.unwrap();
        let (url, heard) = receiver().await;
        let keys = format!("/ops/merchants/{}/api-keys", callers.merchant);
        operate(&client(), &server, &keys, &json!({"webhook_url": url})).await.unwrap();
        callers.charge(&server, 4, requests).await;
        delivered(&server, &heard, 0).await;
        let books = read(&server, &callers).await;
        server.stop().unwrap();
        Self { folder, callers, heard, books }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Serves the books where they moved to: they show what they showed before, nothing that was
    /// delivered is delivered again, and they go on.
    async fn goes_on(&mut self, launch: &Launch<'_>) {
        let before = self.heard.lock().unwrap().len();
        let server = Server::start(launch).await.unwrap();
        let deadline = Instant::now() + PATIENCE;
        // On a slow disk a sign of life may be late: the server then answers 503 for a moment.
        while !self.books.check(&server, 20, &mut Chance(11)).await.unwrap().is_empty() {
            assert!(Instant::now() < deadline, "{}", server.said());
        }
        reckon(&mut self.callers, &server).await;
        self.callers.charge(&server, 4, 60).await;
        delivered(&server, &self.heard, before).await;
        let heard = self.heard.lock().unwrap().clone();
        assert_eq!(heard.iter().collect::<BTreeSet<_>>().len(), heard.len(), "a webhook came again");
        self.books = read(&server, &self.callers).await;
        server.stop().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_move_to_another_folder_with_all_that_cannot_be_made_again() {
    let mut world = World::make(160).await;
    let (data, second) = (world.path("data"), world.path("second"));
    std::fs::create_dir_all(world.path("full")).unwrap();
    std::fs::write(world.path("full").join("note"), "").unwrap();
    let server = Server::start(&at(&data, None)).await.unwrap();
    let said = refused(&["--from", text(&data), "--to", text(&second)]);
    assert!(said.contains("has it open; stop it"), "{said}");
    server.stop().unwrap();
    for (to, expected) in [(world.path("full"), "it holds something already"), (data.clone(), "the same place")] {
        let said = refused(&["--from", text(&data), "--to", text(&to)]);
        assert!(said.contains(expected), "{said}");
    }
    let nowhere = world.path("nowhere");
    let said = refused(&["--from", text(&nowhere), "--to", text(&second)]);
    assert!(said.contains("there is no journal here") && !nowhere.exists(), "{said}");
    let mut wrong = migrate(&["--from", text(&data), "--to", text(&second)]);
    let said = why(wrong.env("CENTAVO_MASTER_KEY", OTHER_KEY).output().unwrap());
    assert!(said.contains("the master key is not the one"), "{said}");
    let mut without = migrate(&["--from", text(&data), "--to", text(&second)]);
    let said = why(without.env_remove("CENTAVO_MASTER_KEY").output().unwrap());
    assert!(said.contains("set CENTAVO_MASTER_KEY"), "{said}");
    let said = refused(&["--from", text(&data), "--to", text(&second), "--beside", text(&second)]);
    assert!(said.contains("--beside is for moves"), "{said}");
    assert!(!second.exists() && !world.path("second.moving").exists());
    for usage in [&["--from", "a"][..], &["--to", "a"], &["--from", "a", "--to", "b", "--to-file", "c"]] {
        assert_eq!(migrate(usage).output().unwrap().status.code(), Some(2), "{usage:?}");
    }

    let said = moved(&["--from", text(&data), "--to", text(&second)]);
    assert!(said.contains("each the same byte by byte") && said.contains("sandbox copied to"), "{said}");
    let opened = said.lines().find_map(|line| line.trim().strip_prefix("Sealed parts")).unwrap();
    assert!(!opened.trim().starts_with("0 "), "{said}");
    assert!(second.join("sandbox").is_dir() && !second.join("master.key").exists());
    // At most one of the two is served, and the old one is no source any more.
    let said = not_served(&at(&data, None)).await;
    assert!(said.contains(&format!("were moved to {}", second.display())), "{said}");
    let said = refused(&["--from", text(&data), "--to", text(&world.path("third"))]);
    assert!(said.contains("were moved from here to"), "{said}");
    world.goes_on(&at(&second, None)).await;

    // Back where they were, with all that was booked since, into a new folder.
    moved(&["--from", text(&second), "--to", text(&world.path("third"))]);
    not_served(&at(&second, None)).await;
    world.goes_on(&at(&world.path("third"), None)).await;
}

/// Kills a migration once something is so, and says whether it was still under way.
fn kill_once(mut command: Command, is_so: impl Fn() -> bool) -> bool {
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + 2 * PATIENCE;
    while !is_so() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the migration does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_to_a_folder_that_is_killed_leaves_nothing_to_serve_and_goes_on() {
    let mut world = World::make_of(3, 300).await;
    let (data, to, moving) = (world.path("data"), world.path("to"), world.path("to.moving"));
    let run = ["--from", text(&data), "--to", text(&to)];
    // Before the first block, and among the blocks.
    let has_block = || std::fs::read(moving.join("journal/wal-0")).is_ok_and(|log| log.iter().any(|byte| *byte != 0));
    let moments: [&dyn Fn() -> bool; 2] = [&|| moving.join("state").exists(), &has_block];
    for moment in moments {
        assert!(kill_once(migrate(&run), moment), "it was too quick");
        assert!(!to.exists());
    }
    let said = not_served(&at(&moving, None)).await;
    assert!(said.contains("has not finished"), "{said}");
    let said = moved(&run);
    assert!(!moving.exists() && said.contains("the books are whole"), "{said}");
    world.goes_on(&at(&to, None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_source_is_found_and_nothing_of_it_can_be_served() {
    let world = World::make(300).await;
    let data = world.path("data");
    let bytes = std::fs::read(data.join("journal/000001/db")).unwrap();
    let mut found = 0;
    for place in (1..12).map(|part| bytes.len() * part / 12) {
        // What opens a damaged database may change it.
        let flipped = |name: &str| {
            let folder = world.path(name);
            assert!(Command::new("cp").arg("-a").args([&data, &folder]).status().unwrap().success());
            let file = std::fs::File::options().write(true).open(folder.join("journal/000001/db")).unwrap();
            file.write_all_at(&[bytes[place] ^ 1], place as u64).unwrap();
            folder
        };
        let (verified, source) = (flipped(&format!("verified-{place}")), flipped(&format!("moved-{place}")));
        let to = world.path(&format!("to-{place}"));
        let is_damaged = !run_on("sled", &["verify"], &[("--data", verified)]).status.success();
        let moved = migrate(&["--from", text(&source), "--to", text(&to)]).output().unwrap();
        if !is_damaged {
            // A byte that nothing reads: space that the database left free.
            assert!(moved.status.success(), "{moved:?}");
            continue;
        }
        found += 1;
        let said = why(moved);
        assert!(said.contains("damaged") || said.contains("could not go on"), "{said}");
        assert!(!to.exists());
        let moving = to.with_extension("moving");
        if moving.exists() {
            not_served(&at(&moving, None)).await;
        }
        if found == 2 {
            return;
        }
    }
    assert!(found > 0, "no byte of it matters");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_move_to_a_database_and_back() {
    let Some(database) = shared() else { return };
    let address = database.database();
    let mut world = World::make_of(3, 160).await;
    let (data, beside, back) = (world.path("data"), world.path("beside"), world.path("back"));
    let (from, there) = (text(&data), address.as_str());
    let mut wrong = migrate(&["--from", from, "--to", there]);
    let said = why(wrong.env("CENTAVO_MASTER_KEY", OTHER_KEY).output().unwrap());
    assert!(said.contains("the master key is not the one"), "{said}");
    let file = world.path("store");
    std::fs::write(&file, format!("{there}\n")).unwrap();
    let said = moved(&["--from", from, "--to-file", text(&file), "--beside", text(&beside)]);
    assert!(said.contains("It is not in the database"), "{said}");
    assert!(beside.join("sandbox").is_dir() && !beside.join("master.key").exists());
    let said = not_served(&at(&data, None)).await;
    assert!(said.contains("were moved to postgres://"), "{said}");
    world.goes_on(&at(&beside, Some(there))).await;

    // A served source, also one with a process that waits; a target that is not empty.
    let other = database.database();
    let server = Server::start(&at(&beside, Some(there))).await.unwrap();
    for (from, to, expected) in
        [(there, text(&back), "has it open; stop it"), (from, there, "it holds something already")]
    {
        let said = refused(&["--from", from, "--to", to]);
        assert!(said.contains(expected), "{said}");
    }
    must_verify(there);
    server.stop().unwrap();
    let second = World::make(8).await;
    let said = refused(&["--from", text(&second.path("data")), "--to", there]);
    assert!(said.contains("it holds something already"), "{said}");
    let said = refused(&["--from", &other, "--to", text(&back)]);
    assert!(said.contains("there is no journal here"), "{said}");

    moved(&["--from", there, "--to", text(&back), "--beside", text(&beside)]);
    let said = not_served(&at(&beside, Some(there))).await;
    assert!(said.contains(&format!("were moved to {}", back.display())), "{said}");
    world.goes_on(&at(&back, None)).await;
    // Into the other database, without its data folder.
    let said = moved(&["--from", text(&back), "--to", &other]);
    assert!(said.contains("sandbox stay in"), "{said}");
    let said = refused(&["--from", &other, "--to", text(&back)]);
    assert!(said.contains("it holds something already"), "{said}");

    // A backup of all partitions, restored into a third one.
    let (copy, third) = (world.path("copy"), database.database());
    assert!(run_on(&other, &["backup"], &[("--out", copy.clone())]).status.success());
    let mut restore = Command::new(centavo());
    restore.args(["restore", "--from"]).arg(&copy).env("CENTAVO_STORE", &third).env("CENTAVO_MASTER_KEY", MASTER_KEY);
    let restored = restore.output().unwrap();
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert!(String::from_utf8_lossy(&restored.stdout).contains("restored through sequence 0="));
    must_verify(&third);
    world.goes_on(&at(&beside, Some(&third))).await;
}

/// Whether some blocks are in a database.
fn has_blocks(database: &PostgresServer, address: &str) -> bool {
    let name = address.rsplit('/').next().unwrap();
    let is_so = |question: &str| database.run_in(name, question).trim() == "t";
    is_so("SELECT to_regclass('centavo.block') IS NOT NULL") && is_so("SELECT count(*) > 5 FROM centavo.block")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_to_a_database_that_is_killed_is_never_served_and_goes_on() {
    let Some(database) = shared() else { return };
    let address = database.database();
    let mut world = World::make_of(3, 500).await;
    let (data, beside) = (world.path("data"), world.path("beside"));
    let run = ["--from", text(&data), "--to", &address, "--beside", text(&beside)];
    assert!(kill_once(migrate(&run), || has_blocks(&database, &address)), "it was too quick");
    let said = not_served(&at(&beside, Some(&address))).await;
    assert!(said.contains("has not finished"), "{said}");
    for command in ["verify", "export"] {
        let words =
            if command == "verify" { &["verify"][..] } else { &["export", "--format", "csv", "--out", "/nowhere"] };
        let said = why(run_on(&address, words, &[]));
        assert!(said.contains("has not finished"), "{command}: {said}");
    }
    // The old place still serves.
    world.goes_on(&at(&data, None)).await;
    let said = moved(&run);
    assert!(said.contains("which has ") && !said.contains("which has 0 of them"), "{said}");
    world.goes_on(&at(&beside, Some(&address))).await;

    // A restore that was cut off is not served either, and no migration goes on with it.
    let cut = database.database();
    let (copy, restored) = (world.path("copy"), world.path("fresh"));
    let out = [("--out", copy.clone())];
    assert!(run_on(&address, &["backup"], &out).status.success());
    let mut restore = Command::new(centavo());
    restore.args(["restore", "--from"]).arg(&copy).env("CENTAVO_STORE", &cut).env("CENTAVO_MASTER_KEY", MASTER_KEY);
    assert!(kill_once(restore, || has_blocks(&database, &cut)), "it was too quick");
    let said = not_served(&at(&restored, Some(&cut))).await;
    assert!(said.contains("`restore into an empty database` has not finished"), "{said}");
}
