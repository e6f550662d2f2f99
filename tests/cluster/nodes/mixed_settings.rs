//! Processes that are set otherwise than the nodes beside them: another takeover time, no listener
//! for others.

use super::*;

/// Time in which a node with the shortest takeover time would have taken what others have.
const LONG_FOR_THE_SHORTEST: Duration = Duration::from_secs(4);

/// The owners of all partitions. A busy node may miss an answer, and is asked again.
async fn owners_at(node: &Server) -> Value {
    let begun = Instant::now();
    loop {
        let picture = cluster(node).await;
        if let Some(owners) = picture.as_ref().filter(|_| is_picture(&picture)).and_then(owners) {
            return owners;
        }
        assert!(begun.elapsed() < PATIENCE, "{picture:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The beats of the others are slow for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_shorter_takeover_time_takes_nothing_from_those_that_live() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let mut nodes = Nodes::of(folder.path(), &address, 3);
    nodes.takeover_seconds = 10;
    nodes.places[2].environment.push(("CENTAVO_POSTGRES_TAKEOVER_SECONDS", "1".to_owned()));
    let nodes = nodes.started().await;
    let before = owners_at(nodes.node(0)).await;
    tokio::time::sleep(LONG_FOR_THE_SHORTEST).await;
    assert_eq!(owners_at(nodes.node(0)).await, before);
    for node in nodes.running() {
        assert!(!node.said().contains("taken from a node that is gone"), "{}", node.said());
    }
    let warned = nodes.running().iter().filter(|node| node.said().contains("which counts for all")).count();
    assert_eq!(warned, 1, "{}", nodes.node(2).said());
    nodes.stop().await;
}

/// It has all partitions, and passes no request on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_beside_a_process_that_is_none_is_not_ready_until_that_has_ended() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let partitions = PARTITIONS.to_string();
    let lone = Server::start(&on(folder.path(), &address).with("CENTAVO_PARTITIONS", partitions)).await.unwrap();
    let mut nodes = Nodes::of(folder.path(), &address, 1);
    nodes.restart(0).await;
    let ready = async || {
        let answer = client().get(format!("{}/readyz", nodes.node(0).operations)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let begun = Instant::now();
    while !nodes.node(0).said().contains("without CENTAVO_PEER_LISTEN has the merchants") {
        assert!(begun.elapsed() < PATIENCE, "{}", nodes.node(0).said());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, detail) = ready().await;
    assert!(status == 503 && detail.contains("is no node: this node waits until it ends"), "{status} {detail}");
    lone.stop().unwrap();
    nodes.settled().await;
    assert_eq!(ready().await.0, 200);
    nodes.stop().await;
}
