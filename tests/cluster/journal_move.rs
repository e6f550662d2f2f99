//! A journal moves from the embedded store to a database and back, by way of a backup.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_moves_to_a_database_and_back_and_is_exported_beside_its_server() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    let (data, first, second) = (at("data"), at("first"), at("second"));
    let launch = Launch::on(&data).with("CENTAVO_MASTER_KEY", MASTER_KEY);
    let server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 200).await;
    reckon(&mut callers, &server).await;
    server.stop().unwrap();

    let run = |store: &str, words: &[&str], paths: &[(&str, PathBuf)]| {
        let Output { status, stdout, stderr } = run_on(store, words, paths);
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert!(status.success(), "{words:?}: {said}");
        said
    };
    run("sled", &["backup"], &[("--data", data.clone()), ("--out", first.clone())]);
    let there = run(&address, &["restore"], &[("--from", first.clone())]);
    assert!(there.contains("the books are whole"), "{there}");
    let again = run_on(&address, &["restore"], &[("--from", first)]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("there is a journal in it"), "{again:?}");

    let server = Server::start(&on(&data, &address)).await.unwrap();
    reckon(&mut callers, &server).await;
    callers.charge(&server, 4, 200).await;
    reckon(&mut callers, &server).await;
    // Beside the server, each from one snapshot of the database.
    let export = at("export");
    run(&address, &["export", "--format", "csv"], &[("--out", export.clone())]);
    assert!(std::fs::read_dir(&export).unwrap().next().is_some());
    must_verify(&address);
    server.stop().unwrap();
    run(&address, &["backup"], &[("--out", second.clone())]);
    let back = at("back");
    let here = run("sled", &["restore"], &[("--from", second), ("--data", back.clone())]);
    let head = |said: &str| said.lines().find(|line| line.contains("Head")).map(str::to_owned);
    assert_eq!(head(&here), head(&must_verify(&address)));
    let server = Server::start(&Launch::on(&back).with("CENTAVO_MASTER_KEY", MASTER_KEY)).await.unwrap();
    reckon(&mut callers, &server).await;
    server.stop().unwrap();
    println!("{}", callers.summary());
}
