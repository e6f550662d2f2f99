//! Overload: merchants' commands wait for their turn, and are refused only when it does not come in
//! time.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::world::*;

/// Commands that arrive together, each on a connection of its own: three times as many as have
/// their turn at once.
const AT_ONCE: usize = 1_536;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_arrive_together_wait_for_their_turn() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = json!({"valor": "10.00", "nome": "Maria", "cpf": "12345678909"}).to_string();
    let credential = bearer(&merchant.key);
    let charges = (0..AT_ONCE).map(|_| async {
        let headers = [("authorization", credential.as_str()), ("content-type", "application/json")];
        world.send(Method::POST, "/api/pix", &headers, charge.clone()).await.status
    });
    let statuses = join_all(charges).await;
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    let metrics = world.ops_get("/metrics").await.text;
    let waited = metrics.lines().find_map(|line| line.strip_prefix("centavo_turn_wait_seconds_count "));
    assert!(waited.unwrap().parse::<usize>().unwrap() >= AT_ONCE, "{metrics}");
    assert!(metrics.contains("centavo_turns_waiting 0\n"), "{metrics}");
    world.check_books().await;
}
