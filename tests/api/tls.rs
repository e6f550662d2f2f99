//! TLS of the listeners: calls over it, a certificate that is exchanged, and clients that do not
//! speak it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::http::Request;
use centavo::commands::journal_source::JournalSource;
use centavo::server::{self, RunningServer};
use centavo::settings::args::ServeArgs;
use centavo::settings::checked::{ConfigError, JournalSettings};
use centavo::settings::secrets::SecretSource;
use centavo::settings::store_choice::Store;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use web::client::send;
use web::tls::{TlsFiles, trust};

use crate::world::{OPS_TOKEN, serve_args, settings, text};

/// Writes a new certificate for a name, and its key.
fn certify(folder: &Path, name: &str) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let files = TlsFiles { certificates: folder.join("chain.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

/// Sends a request over TLS, trusting the present certificate of the files alone.
async fn call(files: &TlsFiles, to: SocketAddr, path: &str, credential: &str, body: Option<Value>) -> (u16, Value) {
    let request = Request::builder()
        .method(if body.is_some() { "POST" } else { "GET" })
        .uri(path)
        .header("authorization", format!("Bearer {credential}"))
        .header("content-type", "application/json");
    let request = request.body(Full::from(body.map(|body| body.to_string()).unwrap_or_default())).unwrap();
    let answer = send(to, Some(&trust(&files.certificates).unwrap()), request).await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8_lossy(&text).into()))
}

async fn serving(folder: &Path, files: &TlsFiles) -> RunningServer {
    let mut settings = settings(&folder.join("data"), true);
    settings.tls = Some(files.clone());
    settings.ops_tls = Some(files.clone());
    server::start(settings, |_, _| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_goes_over_tls_and_a_new_certificate_is_taken_while_serving() {
    let folder = tempfile::tempdir().unwrap();
    let files = certify(folder.path(), "first.test");
    let running = serving(folder.path(), &files).await;
    let operate = async |path: &str, body| call(&files, running.operations, path, OPS_TOKEN, body).await.1;
    let opened = json!({"name": "Loja", "document": "11222333000181"});
    let merchant = text(&operate("/ops/merchants", Some(opened)).await["id"]);
    let key = text(&operate(&format!("/ops/merchants/{merchant}/api-keys"), Some(json!({}))).await["api_key"]);
    let charge = json!({"valor": "10.00", "nome": "Maria", "cpf": "12345678909"});
    assert_eq!(call(&files, running.public, "/api/pix", &key, Some(charge.clone())).await.0, 201);
    let metrics = text(&operate("/metrics", None).await);
    for listener in ["merchants", "operators"] {
        let sample = format!("centavo_tls_expiry_timestamp_seconds{{listener=\"{listener}\"}} ");
        let at = metrics.lines().find_map(|line| line.strip_prefix(&sample)).unwrap_or_else(|| panic!("{metrics}"));
        assert!(at.parse::<i64>().unwrap() > 1_800_000_000, "{at}");
    }

    // A file that is no certificate changes nothing.
    let certificate = std::fs::read(&files.certificates).unwrap();
    std::fs::write(&files.certificates, "nothing").unwrap();
    running.reload().await;
    std::fs::write(&files.certificates, certificate).unwrap();
    assert_eq!(call(&files, running.public, "/api/balance", &key, None).await.0, 200);
    let renewed = certify(folder.path(), "second.test");
    running.reload().await;
    assert_eq!(trust(&renewed.certificates).unwrap().name.as_deref(), Some("second.test"));
    assert_eq!(call(&renewed, running.public, "/api/pix", &key, Some(charge)).await.0, 201);
    running.stop().await;
}

/// What a server answers to these bytes, until it ends the connection.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_speak_no_tls_learn_nothing_and_hold_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let files = certify(folder.path(), "only.test");
    let running = serving(folder.path(), &files).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(running.public).await.unwrap());
    }
    for plain in [&b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n"[..], b"\x16\x03\x01\xff\xff", &[0; 70_000]] {
        let answer = exchange(running.public, plain).await;
        assert!(!answer.starts_with(b"HTTP") && answer.len() < 64, "{answer:?}");
    }
    assert_eq!(call(&files, running.public, "/openapi.json", "", None).await.0, 200);
    // Handshakes that have not begun do not hold up the stop.
    running.stop().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reads_the_journal_of_a_server_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let files = certify(folder.path(), "books.test");
    let running = serving(folder.path(), &files).await;
    let journal = |ops_tls_cert| JournalSettings {
        store: Store::Sled,
        data: folder.path().join("data"),
        ops_listen: running.operations,
        ops_tls_cert,
        ops_token: SecretSource::Text(OPS_TOKEN.to_owned().into()),
    };
    let (with, without) = (journal(Some(files.certificates.clone())), journal(None));
    let read = tokio::task::spawn_blocking(move || {
        let frames =
            |settings| JournalSource::open(settings).unwrap().frames(&store::cut::Cut::default()).map(Iterator::count);
        (frames(&with).map_err(|error| error.to_string()), frames(&without).map_err(|error| error.to_string()))
    });
    let (with, without) = read.await.unwrap();
    assert!(with.unwrap() > 1);
    assert!(without.is_err(), "plain HTTP is not answered");
    running.stop().await;
}

#[tokio::test]
async fn files_that_do_not_fit_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = certify(folder.path(), "one.test");
    let other = tempfile::tempdir().unwrap();
    files.key = certify(other.path(), "other.test").key;
    let absent = TlsFiles { certificates: folder.path().join("absent.pem"), key: files.key.clone() };
    for (files, word) in [(files, "key.pem"), (absent, "absent.pem")] {
        let mut settings = settings(&folder.path().join("data"), true);
        settings.tls = Some(files);
        let refused = server::start(settings, |_, _| {}).await.err().expect("a refusal").to_string();
        assert!(refused.starts_with("CENTAVO_TLS_CERT: ") && refused.contains(word), "{refused}");
    }
    let half = ServeArgs { tls_cert: Some("a.pem".into()), ..serve_args() }.settings();
    assert!(matches!(half, Err(ConfigError::HalfTls("CENTAVO_TLS_CERT", "CENTAVO_TLS_KEY"))), "{half:?}");
}

/// A client that offers HTTP/2 first is answered in HTTP/1.1, which it offers too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_offers_http2_too_is_answered_in_http_1_1() {
    let folder = tempfile::tempdir().unwrap();
    let files = certify(folder.path(), "two.test");
    let running = serving(folder.path(), &files).await;
    for to in [running.public, running.operations] {
        let trust = trust(&files.certificates).unwrap();
        let mut config = ClientConfig::clone(&trust.config);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from(trust.name.unwrap()).unwrap();
        let stream = TcpStream::connect(to).await.unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        stream.write_all(b"GET /openapi.json HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
    }
    running.stop().await;
}
