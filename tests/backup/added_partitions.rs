//! A store that began with one partition gets others: accounts that are there stay, new ones are in
//! the new partitions, and retries of requests from before find what they opened.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::callers::Callers;
use crate::commands::{BINARY, backup, head_of, restore, run, verify};

/// `centavo grow` on a data directory.
async fn grow(data: &Path, partitions: &str) -> Result<String, String> {
    run(Command::new(BINARY).args(["grow", "--partitions", partitions, "--data"]).arg(data)).await
}

/// Opens an account; gives its id and its partition.
async fn open(server: &Server, key: Option<&str>) -> (Value, u16) {
    let request = reqwest::Client::new().post(format!("{}/ops/merchants", server.operations)).bearer_auth(OPS_TOKEN);
    let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    let merchant =
        json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
    let answer = request.json(&merchant).send().await.unwrap();
    let partition = answer.headers().get("centavo-partition").map_or(0, |text| text.to_str().unwrap().parse().unwrap());
    (answer.json::<Value>().await.unwrap()["id"].clone(), partition)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_grows_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies, restored) =
        (folder.path().join("data"), folder.path().join("copies"), folder.path().join("new"));
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let old = Callers::open(&server).await;
    let first = open(&server, Some("abertura-1")).await;
    assert_eq!(first.1, 0);
    let load = old.charge();
    let refused = grow(&data, "4").await.unwrap_err();
    assert!(refused.contains("has it open"), "{refused}");
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    load.end().await;
    let answers = old.answers();
    server.stop().unwrap();
    backup(&data, &copies).await.unwrap();

    let said = grow(&data, "4").await.unwrap();
    assert!(said.contains("4 partitions now, of which 3 are new") && said.contains("partitions 1 to 3"), "{said}");
    let again = grow(&data, "4").await.unwrap();
    assert!(again.contains("4 partitions already; nothing was changed"), "{again}");
    let fewer = grow(&data, "2").await.unwrap_err();
    assert!(fewer.contains("has 4 partitions already, and none can be taken away"), "{fewer}");

    // Also in a store that was restored from a backup of before and after.
    backup(&data, &copies).await.unwrap();
    let verified = restore(&copies, &restored, &data, None).await.unwrap();
    assert_eq!(head_of(&verified), head_of(&verify(&data).await.unwrap()));
    for data in [&restored, &data] {
        let server = Server::start(&Launch::on(data)).await.unwrap();
        old.check(&server, &answers).await;
        assert_eq!(open(&server, Some("abertura-1")).await, first, "a retry meets its first");
        let mut opened = BTreeSet::new();
        for _ in 0..6 {
            opened.insert(open(&server, None).await.1);
        }
        assert_eq!(opened, BTreeSet::from([1, 2, 3]));
        let second = open(&server, Some("abertura-2")).await;
        assert!(second.1 > 0 && open(&server, Some("abertura-2")).await == second, "{second:?}");
        let new = Callers::open(&server).await;
        for callers in [&old, &new] {
            let before = callers.answers().len();
            let load = callers.charge_at(&server.public);
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            load.end().await;
            callers.check(&server, &callers.answers()[before..]).await;
        }
        server.stop().unwrap();
        let verified = verify(data).await.unwrap();
        let cut = head_of(&verified).trim_start_matches("sequence ").split(", ").next().unwrap().to_owned();
        assert!(cut.starts_with("0=") && cut.contains(",3=") && !cut.contains("=0,"), "{cut}");
    }
}
