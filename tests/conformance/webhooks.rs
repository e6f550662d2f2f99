//! Webhook signatures: the libraries of the Standard Webhooks project verify every webhook, also
//! while two secrets sign.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};
use tokio::sync::Notify;

use crate::tool;

#[derive(Default)]
struct Heard {
    deliveries: Mutex<Vec<(HeaderMap, Bytes)>>,
    came: Notify,
}

async fn hear(State(heard): State<Arc<Heard>>, headers: HeaderMap, body: Bytes) {
    heard.deliveries.lock().unwrap().push((headers, body));
    heard.came.notify_one();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_pass_the_standard_libraries() {
    let tools: [(Option<Command>, &str); 2] =
        [(tool::python("standardwebhooks"), "webhooks.py"), (tool::node("standardwebhooks"), "webhooks.js")];
    if tools.iter().all(|(command, _)| command.is_none()) {
        return;
    }
    let heard = Arc::new(Heard::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = Router::new().fallback(hear).with_state(Arc::clone(&heard));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::on(folder.path()).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let merchant = json!({"name": "Ação & Cia.", "document": "12345678909"});
    let merchant = post(&server.operations, "/ops/merchants", OPS_TOKEN, &merchant).await;
    let keys = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
    let key = post(&server.operations, &keys, OPS_TOKEN, &json!({"webhook_url": url})).await;
    pay(&server, &key, "José da Conceição").await;
    until(&heard, 1).await;
    let rotate = format!("/ops/api-keys/{}/rotate-secret", key["id"].as_str().unwrap());
    let rotated = post(&server.operations, &rotate, OPS_TOKEN, &json!({})).await;
    pay(&server, &key, "喜 \"🙂\" \\ </script>").await;
    until(&heard, 2).await;
    let (old, new) = (&key["webhook_secret"], &rotated["webhook_secret"]);
    let deliveries = heard.deliveries.lock().unwrap().clone();
    let read = |(headers, body): &(HeaderMap, Bytes), secret: &Value| {
        let headers: serde_json::Map<_, _> =
            headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap()))).collect();
        json!({"secret": secret, "headers": headers, "body": std::str::from_utf8(body).unwrap()})
    };
    let to_verify = json!([read(&deliveries[0], old), read(&deliveries[1], new), read(&deliveries[1], old)]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), to_verify.to_string()).unwrap();
    for (command, script) in tools {
        let Some(mut command) = command else { continue };
        let script = format!("{}/tests/conformance/{script}", env!("CARGO_MANIFEST_DIR"));
        command.arg(&script).arg(file.path());
        let said = tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{script}: {said}"));
        assert_eq!(said.trim(), "3", "{script}");
    }
}

async fn pay(server: &Server, key: &Value, name: &str) {
    let credential = key["api_key"].as_str().unwrap();
    let body = json!({"valor": "1.00", "nome": name, "cpf": "12345678909"});
    let charge = post(&server.public, "/api/pix", credential, &body).await;
    let pay = format!("/api/sandbox/pix/{}/pay", charge["txid"].as_str().unwrap());
    post(&server.public, &pay, credential, &json!({})).await;
}

async fn until(heard: &Heard, count: usize) {
    let waited = async {
        while heard.deliveries.lock().unwrap().len() < count {
            heard.came.notified().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("every webhook comes");
}

async fn post(base: &str, path: &str, credential: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("{base}{path}")).bearer_auth(credential).json(body);
    request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
}
