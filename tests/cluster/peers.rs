//! The listener for the other processes of a database.

use super::nodes::{Nodes, cluster};
use super::proxy::{Proxy, Traffic};
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

/// What the process at a place shows the others: its address, once it has one and its row is there.
async fn shown(seen_by: &Server) -> Vec<Option<String>> {
    let picture = cluster(seen_by).await.unwrap();
    let nodes = picture["nodes"].as_array().unwrap().iter().filter(|node| node["this"] == false);
    nodes.map(|node| node["address"].as_str().map(str::to_owned)).collect()
}

/// Others would send requests to nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_once_its_address_leads_to_it() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::of(folder.path(), &address, 2);
    let port = nodes.places[1].listen.rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::before(port).await;
    proxy.let_traffic(Traffic::IsCut);
    nodes.places[1].peer = format!("127.0.0.1:{}", proxy.port());
    nodes.restart(0).await;
    let alone = nodes.settled().await;
    let launch = nodes.launch(1);
    let mut starting = std::pin::pin!(Server::start(&launch));
    let watching = async {
        let begun = Instant::now();
        while shown(nodes.node(0)).await.is_empty() {
            assert!(begun.elapsed() < PATIENCE, "it does not beat");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Its beats go on, and it looks at its address several times.
        for _ in 0..10 {
            assert_eq!(shown(nodes.node(0)).await, [None]);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(nodes.settled().await, alone, "nothing moves to it");
    };
    tokio::select! {
        started = &mut starting => panic!("it serves: {}", started.unwrap().said()),
        () = watching => {}
    }
    proxy.let_traffic(Traffic::Passes);
    let joined = starting.await.unwrap();
    assert!(joined.said().contains("does not join the others"), "{}", joined.said());
    nodes.servers[1] = Some(joined);
    nodes.settled().await;
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_at_the_address_of_one_that_lives_does_not_start() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::of(folder.path(), &address, 2);
    // Each listens where it alone is reached, and shows one address that leads to the first.
    let first = nodes.places[0].peer.clone();
    nodes.places[1].peer = first.clone();
    nodes.restart(0).await;
    let alone = nodes.settled().await;
    let refused = Server::start(&nodes.launch(1)).await.map(|server| server.said()).unwrap_err();
    assert_eq!(refused.status.and_then(|status| status.code()), Some(1), "{}", refused.said);
    let expected = format!("CENTAVO_PEER_ADDRESS: {first} is the address of another node that lives: centavo-");
    assert!(refused.said.contains(&expected), "{}", refused.said);
    assert_eq!(nodes.settled().await, alone);
    // A process that was killed is no other node, nor is one that has ended in good order.
    nodes.node(0).kill();
    nodes.servers[0].take().unwrap().wait();
    nodes.restart(0).await;
    nodes.settled().await;
    nodes.servers[0].take().unwrap().stop().unwrap();
    nodes.restart(0).await;
    nodes.settled().await;
    nodes.stop().await;
}
