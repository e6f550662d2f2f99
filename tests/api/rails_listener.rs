//! Listener of callbacks: what rings there, what does not, and what it never serves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::rails::{Call, NamedRails, OpenPix, PixFate, PixOpening, PixRail, PixReceipts, PixSpan, RailError, Rails};
use actors::rails::{Repay, RepayAnswer};
use centavo::server::named_rails::settings::BellSettings;
use centavo::server::{self, RunningServer};
use centavo::settings::checked::Settings;
use ledger::id::ObjectId;
use ledger::rail_name::RailName;
use ledger::record::RailStamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use web::tls::TlsFiles;

use crate::world::{OPS_TOKEN, settings};

const SECRET: &str = "the-secret-of-the-paths-with-32-characters";

/// An institution that counts how often its list is read, and has nothing in it.
struct Institution(watch::Sender<u64>);

impl PixRail for Institution {
    fn location(&self, _: ObjectId) -> Option<String> {
        None
    }

    fn open(&self, _: OpenPix) -> Call<'_, PixOpening> {
        Box::pin(async { Err(RailError::NotSent) })
    }

    fn received(&self, _: PixSpan) -> Call<'_, PixReceipts> {
        self.0.send_modify(|looks| *looks += 1);
        Box::pin(async { Ok(PixReceipts::default()) })
    }

    fn cancel(&self, _: ObjectId) -> Call<'_, PixFate> {
        Box::pin(async { Err(RailError::NoAnswer) })
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(async { Err(RailError::NoAnswer) })
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        Box::pin(async { Err(RailError::NoAnswer) })
    }
}

/// A live server with the institutions `efi` and `itau`.
struct Live {
    running: RunningServer,
    bells: SocketAddr,
    /// How often the list of `efi` was read, and that of `itau`.
    looks: [watch::Receiver<u64>; 2],
    folder: TempDir,
}

impl Live {
    async fn with(guard: impl FnOnce(&Path, BellSettings) -> BellSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let bells = BellSettings { listen, tls: None, client_authority: None, path_secret: None };
        let bells = Some(guard(folder.path(), bells));
        let settings = Settings { bells, ..settings(&folder.path().join("data"), false) };
        let senders = [(); 2].map(|()| watch::channel(0).0);
        let looks = [0, 1].map(|place: usize| senders[place].subscribe());
        let names = ["efi", "itau"].map(|name| RailName::parse(name).unwrap());
        let institutions = senders.map(|sender| Arc::new(Institution(sender)) as Arc<dyn PixRail>);
        let by_name: BTreeMap<_, _> = names.iter().cloned().zip(institutions).collect();
        let rails = Rails { pix: NamedRails::named(by_name, Some(names[1].clone())), ..Rails::default() };
        let running = server::start_with(rails, settings, |_, _| {}).await.unwrap();
        let bells = running.bells.unwrap();
        Self { running, bells, looks, folder }
    }

    async fn with_secret() -> Self {
        Self::with(|folder, bells| BellSettings { path_secret: Some(secret_file(folder, SECRET)), ..bells }).await
    }

    /// Bells that were rung, of `efi` and of `itau`.
    async fn rung(&self) -> [u64; 2] {
        let head = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let metrics = exchange(TcpStream::connect(self.running.operations).await.unwrap(), head.as_bytes()).await;
        ["efi", "itau"].map(|rail| {
            let sample = format!("centavo_rail_bells_total{{rail=\"{rail}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&sample)).unwrap().parse().unwrap()
        })
    }

    async fn exchange(&self, request: &str) -> String {
        exchange(TcpStream::connect(self.bells).await.unwrap(), request.as_bytes()).await
    }

    async fn status(&self, request: &str) -> String {
        status(&self.exchange(request).await)
    }
}

fn secret_file(folder: &Path, secret: &str) -> PathBuf {
    let path = folder.join("path-secret");
    std::fs::write(&path, format!("{secret}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Sends bytes, and reads until the server ends the connection.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

fn status(answer: &str) -> String {
    answer.split(' ').nth(1).unwrap_or("none").to_owned()
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bell_makes_the_list_be_read_and_nothing_else_is_served() {
    let mut live = Live::with_secret().await;
    for looks in &mut live.looks {
        looks.wait_for(|looks| *looks > 0).await.unwrap();
    }
    // The institution's own words are not believed, and need not be words.
    let forged = r#"{"pix": [{"endToEndId": "E1", "txid": "t", "valor": "1.00"}]}"#;
    let answer = live.exchange(&post(&format!("/{SECRET}/itau/pix"), forged)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert_eq!(live.rung().await, [0, 1]);
    assert_eq!(live.status(&post(&format!("/{SECRET}/pix/"), "no JSON")).await, "200");
    assert_eq!(live.rung().await, [1, 2]);
    // Without a bell, each of these looks would be ten seconds after the one before.
    let begun = Instant::now();
    for _ in 0..4 {
        let before = *live.looks[0].borrow();
        assert_eq!(live.status(&post(&format!("/{SECRET}/efi/pix"), "")).await, "200");
        live.looks[0].wait_for(|looks| *looks > before).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(29), "{:?}", begun.elapsed());

    let with_token = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {OPS_TOKEN}\r\nconnection: close\r\n\r\n")
    };
    let wrong = SECRET.replace("32", "33");
    for request in [
        post("/pix", ""),
        post("/itau/pix", ""),
        post(&format!("/{wrong}/pix"), ""),
        post(&format!("/{}/pix", &SECRET[1..]), ""),
        post(&format!("/{SECRET}/bb/pix"), ""),
        post(&format!("/{SECRET}"), ""),
        post(&format!("/{SECRET}/api/pix"), "{}"),
        with_token(&format!("/{SECRET}/pix")),
        with_token("/metrics"),
        with_token("/healthz"),
        with_token("/ops/queue"),
        with_token(&format!("/{SECRET}/ops/queue")),
        with_token("/openapi.json"),
        with_token("/console"),
        with_token("/"),
    ] {
        let answer = live.exchange(&request).await;
        assert!(
            answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.ends_with("\r\n\r\n"),
            "{request}: {answer}"
        );
        assert!(!answer.to_lowercase().contains("api-version"), "{answer}");
    }
    assert_eq!(live.rung().await, [5, 2]);
    live.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_and_slow_bodies_ring_nothing_and_hold_up_nobody() {
    let live = Live::with_secret().await;
    let head = |length: &str| format!("POST /{SECRET}/efi/pix HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n");
    assert_eq!(live.status(&head("content-length: 1048577")).await, "413");
    let mut chunks = head("transfer-encoding: chunked");
    for _ in 0..17 {
        chunks.push_str(&format!("10000\r\n{}\r\n", "x".repeat(0x10000)));
    }
    let mut stream = TcpStream::connect(live.bells).await.unwrap();
    // The server may end the connection before it has taken all.
    let _cut = stream.write_all(chunks.as_bytes()).await;
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).await.is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(live.bells).await.unwrap();
        stream.write_all(head("content-length: 9").as_bytes()).await.unwrap();
        slow.push(stream);
    }
    assert_eq!(live.rung().await, [0, 0]);
    assert_eq!(live.status(&post(&format!("/{SECRET}/efi/pix"), &"x".repeat(1 << 20))).await, "200");
    assert_eq!(live.rung().await, [1, 0]);
    // A body that arrives in the end rings like any other.
    let last = slow.pop().unwrap();
    drop(slow);
    let answer = tokio::time::timeout(Duration::from_secs(30), async {
        let mut last = last;
        last.write_all(b"123456789").await.unwrap();
        let mut answer = [0; 12];
        last.read_exact(&mut answer).await.unwrap();
        answer
    });
    assert_eq!(&answer.await.unwrap(), b"HTTP/1.1 200");
    assert_eq!(live.rung().await, [2, 0]);
    live.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secret_is_read_again_while_the_server_runs() {
    let live = Live::with_secret().await;
    let other = "another-secret-of-the-paths-with-32-characters";
    // A file that others may read changes nothing.
    let path = secret_file(live.folder.path(), other);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    live.running.reload().await;
    assert_eq!(live.status(&post(&format!("/{SECRET}/pix"), "")).await, "200");
    secret_file(live.folder.path(), other);
    live.running.reload().await;
    assert_eq!(live.status(&post(&format!("/{SECRET}/pix"), "")).await, "404");
    assert_eq!(live.status(&post(&format!("/{other}/pix"), "")).await, "200");
    live.running.stop().await;
}

/// An authority, which signs certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    fn certificate(&self, name: &str) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let files = TlsFiles {
            certificates: self.folder.join(format!("{name}.pem")),
            key: self.folder.join(format!("{name}.key")),
        };
        std::fs::write(&files.certificates, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }
}

/// Sends a request over TLS, with a client's certificate or without; gives the answer, empty where
/// the server refuses the handshake.
async fn exchange_over_tls(to: SocketAddr, trusted: &Path, client: Option<&TlsFiles>, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(files) => {
            let chain = vec![CertificateDer::from_pem_file(&files.certificates).unwrap()];
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap()).unwrap()
        }
    };
    let name = ServerName::try_from("bells.test").unwrap();
    let stream = TcpStream::connect(to).await.unwrap();
    let Ok(mut stream) = TlsConnector::from(Arc::new(config)).connect(name, stream).await else {
        return String::new();
    };
    let _refused = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _refused = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_institution_shows_its_certificate_where_one_is_demanded() {
    let folder = tempfile::tempdir().unwrap();
    let [own, bank, other] = ["own", "bank", "other"].map(|name| Authority::new(folder.path(), name));
    let live = Live::with(|_, bells| BellSettings {
        tls: Some(own.certificate("bells.test")),
        client_authority: Some(bank.file()),
        ..bells
    })
    .await;
    let ring = async |client: Option<&TlsFiles>, path: &str| {
        status(&exchange_over_tls(live.bells, &own.file(), client, &post(path, "{}")).await)
    };
    let client = bank.certificate("itau.test");
    assert_eq!(ring(Some(&client), "/itau/pix").await, "200");
    assert_eq!(ring(Some(&client), "/pix").await, "200");
    assert_eq!(ring(Some(&client), "/api/pix").await, "404");
    assert_eq!(live.rung().await, [1, 2]);
    assert_eq!(ring(None, "/pix").await, "none");
    assert_eq!(ring(Some(&other.certificate("itau.test")), "/pix").await, "none");
    assert_eq!(ring(Some(&own.certificate("itau.test")), "/pix").await, "none", "its own authority is another one");
    let plain = live.exchange(&post("/pix", "")).await;
    assert!(!plain.starts_with("HTTP"), "{plain}");
    assert_eq!(live.rung().await, [1, 2]);
    live.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_cannot_be_used_refuses_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let bells = BellSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        client_authority: None,
        path_secret: Some(secret_file(folder.path(), "short")),
    };
    let settings = Settings { bells: Some(bells), ..settings(&folder.path().join("data"), false) };
    let refused = server::start(settings, |_, _| {}).await.err().unwrap().to_string();
    assert!(refused.contains("path-secret") && refused.contains("32 to 128"), "{refused}");
}
