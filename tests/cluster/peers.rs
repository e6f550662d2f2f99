//! The listener for the other processes of a database.

use super::*;

/// It serves only processes with the token of the master key; the other listeners go on as without
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_learn_nothing_at_the_peers_listener() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let launch = on(folder.path(), &address).with("CENTAVO_PEER_LISTEN", "127.0.0.1:0");
    let server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge(&server, 4, 20).await;
    reckon(&mut callers, &server).await;
    let lines = server.said();
    let serving = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let peers = serving.filter_map(|line| line["peers"].as_str().map(str::to_owned)).next().unwrap();
    for path in ["/healthz", "/api/balance", "/ops/merchants", "/console"] {
        let answer = client().get(format!("http://{peers}{path}")).bearer_auth(&callers.api_key).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (403, ""), "{path}");
    }
    let metrics = client().get(format!("{}/metrics", server.operations)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("centavo_peer_request_seconds"), "{metrics}");
    server.stop().unwrap();
}

/// Card numbers pass between processes: a listener that others reach without TLS is refused.
#[test]
fn a_peers_listener_in_clear_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (store, listen, reason) in [
        ("postgres://centavo@127.0.0.1:1/books", "0.0.0.0:0", "card numbers pass there"),
        ("sled", "127.0.0.1:0", "wants a PostgreSQL store"),
    ] {
        let mut command = Command::new(centavo());
        command.args(["serve", "--data"]).arg(folder.path()).args(["--peer-listen", listen]);
        let ended = command.env("CENTAVO_STORE", store).env("CENTAVO_MASTER_KEY", MASTER_KEY).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && said.contains(reason), "{said}");
    }
}
