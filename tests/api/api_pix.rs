//! The whole way of a PIX payment at an institution of the settings: registered there, rung for,
//! found in its list, and told to the merchant. The institution is played, and keeps what it is
//! sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use centavo::config::Settings;
use centavo::named_rails::settings::{BellSettings, NamedRail, NamedRailSettings};
use centavo::serve::{self, Running};
use chrono::{SecondsFormat, Utc};
use ledger::rail_name::RailName;
use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use wire::brcode::BrCode;

use crate::world::{OPS_TOKEN, pix, settings, text};

const SECRET: &str = "the-secret-of-the-paths-with-32-characters";

/// What the institution has.
#[derive(Default)]
struct Institution {
    charges: Mutex<BTreeMap<String, Value>>,
    payments: Mutex<Vec<Value>>,
    callback: watch::Sender<Value>,
}

type Has = State<Arc<Institution>>;

async fn register(State(has): Has, Path(txid): Path<String>, Json(asked): Json<Value>) -> Json<Value> {
    let location = format!("pix.bank.example.com/{txid}");
    let code = BrCode { location: &location, amount_centavos: 1_000, merchant_name: "Loja", merchant_city: "Natal" };
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    let charge = json!({
        "txid": txid, "status": "ATIVA", "chave": asked["chave"], "valor": asked["valor"], "revisao": 0,
        "calendario": {"criacao": now, "expiracao": asked["calendario"]["expiracao"]},
        "pixCopiaECola": code.payload().unwrap(),
    });
    has.charges.lock().insert(txid, charge.clone());
    Json(charge)
}

async fn list(State(has): Has) -> Json<Value> {
    let payments = has.payments.lock().clone();
    let pages = json!({
        "paginaAtual": 0, "itensPorPagina": 1_000, "quantidadeDePaginas": 1, "quantidadeTotalDeItens": payments.len(),
    });
    Json(json!({"parametros": {"paginacao": pages}, "pix": payments}))
}

async fn take_callback(State(has): Has, Path(key): Path<String>, Json(asked): Json<Value>) {
    has.callback.send_replace(json!([key, asked]));
}

/// Plays the institution on a port of its own.
async fn played() -> (Arc<Institution>, SocketAddr) {
    let has = Arc::new(Institution::default());
    let token = || async { Json(json!({"access_token": "t", "token_type": "Bearer", "expires_in": 3_600})) };
    let routes = Router::new()
        .route("/oauth/token", post(token))
        .route("/cob/{txid}", put(register))
        .route("/pix", get(list))
        .route("/webhook/{key}", put(take_callback))
        .with_state(Arc::clone(&has));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_forever, ending) = watch::channel(false);
    tokio::spawn(async move {
        let _kept = _forever;
        centavo::http::server::run(listener, routes, ending, Default::default()).await
    });
    (has, address)
}

fn write_secret(folder: &FilePath, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, SECRET).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

async fn serving(folder: &FilePath, institution: SocketAddr) -> Running {
    let adapter = format!(
        "dialect = 'bacen'\nurl = 'http://{institution}'\nclient_id = 'shop'\nclient_secret_file = '{}'\nkey = 'a@b.example'",
        write_secret(folder, "client-secret").display()
    );
    let name = RailName::parse("itau").unwrap();
    let callback_url = Some(format!("https://pay.example.com/{SECRET}/itau"));
    let rail = NamedRail { line: 1, callback_url, adapter: toml::from_str(&adapter).unwrap() };
    let by_name = BTreeMap::from([(name.clone(), rail)]);
    let rails = Some(NamedRailSettings { file: "centavo.toml".into(), line: 1, pix: Some(name), by_name });
    let bells = Some(BellSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        client_authority: None,
        path_secret: Some(write_secret(folder, "path-secret")),
    });
    let settings = Settings { rails, bells, ..settings(&folder.join("data"), false) };
    serve::start(settings, |_, _| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_registered_rung_for_found_and_booked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (institution, address) = played().await;
    let running = serving(folder.path(), address).await;
    let (client, mut callback) = (Client::builder().no_proxy().build().unwrap(), institution.callback.subscribe());
    let called = async |at: SocketAddr, path: &str, credential: &str, body: &Value| {
        let request = client.post(format!("http://{at}{path}")).bearer_auth(credential).json(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice::<Value>(&answer.bytes().await.unwrap()).unwrap_or_default())
    };
    let named = callback.wait_for(|named| !named.is_null()).await.unwrap().clone();
    assert_eq!(named, json!(["a@b.example", {"webhookUrl": format!("https://pay.example.com/{SECRET}/itau")}]));

    let merchant = json!({"name": "Loja", "document": "11222333000181"});
    let merchant = text(&called(running.operations, "/ops/merchants", OPS_TOKEN, &merchant).await.1["id"]);
    let keys = format!("/ops/merchants/{merchant}/api-keys");
    let key = text(&called(running.operations, &keys, OPS_TOKEN, &json!({})).await.1["api_key"]);
    let (status, charge) = called(running.public, "/api/pix", &key, &pix("10.00")).await;
    assert_eq!(status, 201, "{charge}");
    let txid = text(&charge["txid"]);
    let registered = institution.charges.lock()[&txid].clone();
    assert_eq!(charge["pixCopiaECola"], registered["pixCopiaECola"]);
    assert_eq!(registered["valor"], json!({"original": "10.00"}));
    // A card charge has no institution yet.
    let refused = called(running.public, "/api/card", &key, &crate::world::card(1_000, crate::world::APPROVED)).await;
    assert_eq!((refused.0, &refused.1["code"]), (503, &json!("rail_not_configured")));

    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    let payment = json!({"endToEndId": format!("E{}", "1".repeat(31)), "txid": txid, "valor": "10.00", "horario": now});
    institution.payments.lock().push(payment);
    let bell = format!("/{SECRET}/itau/pix");
    assert_eq!(called(running.bells.unwrap(), &bell, "", &json!({"pix": []})).await.0, 200);
    let looked_up = json!({"txid": txid});
    while called(running.public, "/api/pix", &key, &looked_up).await.1["status"] != "CONCLUIDA" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let balance = async || {
        let answer =
            client.get(format!("http://{}/api/balance", running.public)).bearer_auth(&key).send().await.unwrap();
        serde_json::from_slice::<Value>(&answer.bytes().await.unwrap()).unwrap()
    };
    // Listed for ever, and rung for again: it counts once.
    let before = balance().await;
    assert_eq!(called(running.bells.unwrap(), &bell, "", &json!({})).await.0, 200);
    assert_eq!(balance().await, before);
    running.stop().await;
}
