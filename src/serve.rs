//! Wiring: settings, keys, engine, listeners, and the end in good order.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actors::engine::{Engine, EngineOptions, OpenError};
use actors::journal::AdmissionLimits;
use actors::rails::Rails;
use prometheus_client::registry::Registry;
use tokio::net::TcpSocket;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::app::App;
use crate::config::Settings;
use crate::export::reporting::Reporting;
use crate::folding::search_key;
use crate::http::api_key::supposed_group;
use crate::http::credential::Secret;
use crate::http::guesses::Guesses;
use crate::http::measures::{Exposition, Measures};
use crate::http::middleware::{Admits, Middleware};
use crate::http::outgoing::Backlog;
use crate::http::rate_limits::RateLimits;
use crate::http::{measures, middleware, server};
use crate::last_backup::LastBackup;
use crate::rails::sandbox;
use crate::webhooks::Webhooks;
use crate::{descriptors, routes, webhooks};

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An address cannot be listened on.
    #[error("{variable}: can't listen on {address}: {}", why_not(.source))]
    Listen {
        /// What sets the address.
        variable: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The data directory cannot be made or written to.
    #[error("the data directory {}: it can't be written to: {source}", data.display())]
    Unwritable {
        /// The data directory.
        data: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The master key cannot be read or made.
    #[error("the master key: {0}")]
    MasterKey(String),
    /// Webhooks could not be sent over https.
    #[error("https for webhooks: {0}")]
    Https(#[from] tokio_rustls::rustls::Error),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// What a person can do about an address.
fn why_not(source: &std::io::Error) -> String {
    let advice = match source.kind() {
        std::io::ErrorKind::AddrInUse => "another program listens there; end it, or choose another port",
        std::io::ErrorKind::PermissionDenied => "this user may not; choose a port from 1024 on",
        std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
        _ => return source.to_string(),
    };
    format!("{advice} ({source})")
}

const LISTEN_VARIABLE: &str = "CENTAVO_LISTEN";
const OPS_LISTEN_VARIABLE: &str = "CENTAVO_OPS_LISTEN";

/// Requests of one listener that may be under way at once.
const IN_FLIGHT_MAX: usize = 16_384;
/// Connections that the system may hold until they are accepted.
const BACKLOG: u32 = 1_024;
/// An actor that was not used for this long goes to sleep.
const IDLE: Duration = Duration::from_secs(60);

/// A program that serves.
pub struct Running {
    /// What the handlers share.
    pub app: Arc<App>,
    /// Where merchants call.
    pub public: SocketAddr,
    /// Where operators call.
    pub operations: SocketAddr,
    shutdown: watch::Sender<bool>,
    listeners: [JoinHandle<server::Drained>; 2],
    schedule: JoinHandle<()>,
    deliverer: JoinHandle<()>,
}

/// Opens the data and begins to serve. `progress` is told how many Records of how many have been read.
pub async fn start(settings: Settings, progress: impl Fn(u64, u64) + Send + 'static) -> Result<Running, StartError> {
    let rails = settings.sandbox.then(|| sandbox::rails(&settings.data.join("sandbox")));
    start_with(rails, settings, progress).await
}

/// The same, with these rails to the outside.
pub async fn start_with(
    rails: Option<Rails>,
    settings: Settings,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<Running, StartError> {
    let has_rail = rails.is_some();
    let options = EngineOptions {
        sandbox: settings.sandbox,
        master_key: master_key(&settings.data, settings.master_key.as_ref())?,
        admission: AdmissionLimits::default(),
        idle: IDLE,
        rails,
        fold_name: search_key,
        index: settings.index,
    };
    let addresses = [(LISTEN_VARIABLE, settings.listen), (OPS_LISTEN_VARIABLE, settings.ops_listen)];
    let sockets = [bind(addresses[0])?, bind(addresses[1])?];
    let engine = Engine::open(&settings.data, &settings.sled, options, progress).await?;
    let mut registry = Registry::default();
    engine.metrics().register(&mut registry);
    let measures = Measures::default();
    measures.register(&mut registry);
    measures::register_process(&mut registry);
    let last_backup = LastBackup::of(&settings.data);
    registry.register_collector(Box::new(last_backup.clone()));
    let connections = descriptors::raise();
    let webhooks = Webhooks::new(settings.webhook_allow, connections.webhooks, &mut registry)?;
    let backlog = Arc::new(Backlog::default());
    backlog.register(&mut registry);
    let guesses = Guesses::new(settings.rate_limit);
    guesses.register(&mut registry);
    let app = Arc::new(App {
        engine,
        ops_tokens: settings.ops_tokens,
        sandbox: settings.sandbox,
        rate_limits: settings.rate_limit.then(RateLimits::default),
        guesses,
        opening: tokio::sync::Mutex::default(),
        backing_up: Arc::new(Semaphore::new(1)),
        last_backup,
        exporting: Arc::new(Semaphore::new(1)),
        reporting: Reporting::default(),
        exposition: Exposition(registry),
        webhooks: Arc::new(webhooks),
    });
    let (shutdown, told) = watch::channel(false);
    let serve = |socket: TcpSocket,
                 (variable, address),
                 router: axum::Router,
                 admits: Admits,
                 connections_max|
     -> Result<_, StartError> {
        let failed = |source| StartError::Listen { variable, address, source };
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let limits = middleware::Limits { most: IN_FLIGHT_MAX, admits };
        let middleware = Middleware::new(limits, settings.sandbox, measures.clone())?;
        let router = middleware.clone().before(router);
        let served = server::Served { router, middleware: Some(middleware), backlog: Arc::clone(&backlog) };
        let limits = server::Limits { connections_max, ..server::Limits::default() };
        Ok((address, tokio::spawn(server::run(listener, served, told.clone(), limits))))
    };
    let [public, operations] = sockets;
    let (engine, sandbox) = (Arc::clone(&app.engine), settings.sandbox);
    let shedding: Admits = Box::new(move |headers| engine.admits(|| supposed_group(&engine, sandbox, headers)));
    // Operators are few, and they are needed most when there is much to do.
    let everybody: Admits = Box::new(|_| true);
    let (public, merchants) = serve(public, addresses[0], routes::public(&app), shedding, connections.public)?;
    let (operations, operators) =
        serve(operations, addresses[1], routes::operations(&app), everybody, connections.operations)?;
    if !has_rail {
        tracing::warn!(
            "no rail is configured: every charge and payout will be answered with 503 rail_not_configured; \
             CENTAVO_SANDBOX=1 plays them"
        );
    }
    if !operations.ip().is_loopback() {
        tracing::warn!(
            %operations,
            "operators and metrics can be reached from beyond this machine, and nothing is encrypted here: put a proxy with TLS \
             before it, or set CENTAVO_OPS_LISTEN to a loopback address"
        );
    }
    let engine = Arc::clone(&app.engine);
    let schedule = tokio::spawn(async move {
        let (renewing, watching) = (Arc::clone(&engine), Arc::clone(&engine));
        let mut while_the_schedule_runs = JoinSet::new();
        while_the_schedule_runs.spawn(async move { renewing.renew_snapshots().await });
        while_the_schedule_runs.spawn(async move { watching.watch_space().await });
        loop {
            let watched = Arc::clone(&engine);
            let ended = JoinSet::from_iter([async move { watched.run_schedule().await }]).join_next().await;
            tracing::error!(?ended, "the schedule failed, and begins again");
        }
    });
    let (asked, delivered) = (Arc::clone(&app.engine), Arc::clone(&app.webhooks));
    let deliverer = tokio::spawn(async move {
        while JoinSet::from_iter([webhooks::run(Arc::clone(&asked), Arc::clone(&delivered), told.clone())])
            .join_next()
            .await
            .is_some_and(|ended| ended.is_err())
        {
            tracing::error!("the deliverer of webhooks failed, and begins again");
        }
    });
    Ok(Running { app, public, operations, shutdown, listeners: [merchants, operators], schedule, deliverer })
}

impl Running {
    /// Waits until making a Record durable has failed: nothing more can be acknowledged, and the process must end.
    pub async fn failed(&self) {
        self.app.engine.failed().await;
    }

    /// Takes nothing new, answers what is under way, puts the actors to sleep and closes the data.
    pub async fn stop(self) {
        let _nobody_listens = self.shutdown.send(true);
        for listener in self.listeners {
            let _ended = listener.await;
        }
        let _ended = self.deliverer.await;
        self.schedule.abort();
        let _aborted = self.schedule.await;
        self.app.engine.stop().await;
    }
}

/// Takes an address without listening yet: whoever connects while the data opens is refused, and sees that nothing is ready.
fn bind((variable, address): (&'static str, SocketAddr)) -> Result<TcpSocket, StartError> {
    let failed = |source| StartError::Listen { variable, address, source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    socket.set_reuseaddr(true).and_then(|()| socket.bind(address)).map_err(failed)?;
    Ok(socket)
}

/// The key that seals all others: `CENTAVO_MASTER_KEY` (64 hexadecimal digits), or the file `master.key` beside the data, made
/// with the data. Whoever has the data and not this key cannot read a person's name; whoever loses it, neither.
pub fn master_key(data: &Path, configured: Option<&Secret>) -> Result<[u8; 32], StartError> {
    match existing_master_key(data, configured)? {
        Some(key) => Ok(key),
        // Another key would open nothing of what is there.
        None if data.join("journal").exists() => {
            let path = data.join(MASTER_KEY_FILE);
            Err(StartError::MasterKey(format!("{} is missing: {PUT_IT_BACK}", path.display())))
        }
        None => make_master_key(data),
    }
}

/// The key that seals all others, where there is one: that of the variable, that of the settings' file, that of the data directory.
pub fn existing_master_key(data: &Path, configured: Option<&Secret>) -> Result<Option<[u8; 32]>, StartError> {
    let wrong = |what: String| StartError::MasterKey(what);
    let variable = std::env::var("CENTAVO_MASTER_KEY").ok();
    if let Some(text) = variable.as_deref().or(configured.map(Secret::reveal)) {
        let key = unhex(text.trim());
        return key.map(Some).ok_or_else(|| wrong("CENTAVO_MASTER_KEY must be 64 hexadecimal digits".to_owned()));
    }
    let path = data.join(MASTER_KEY_FILE);
    match fs::read(&path) {
        Ok(bytes) => match std::str::from_utf8(&bytes).ok().and_then(|text| unhex(text.trim())) {
            Some(key) => Ok(Some(key)),
            None => Err(wrong(format!("{} is not 64 hexadecimal digits: {PUT_IT_BACK}", path.display()))),
        },
        // Where there is no directory, there is no file: what keeps it from being made is told when it is.
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(wrong(format!("{}: {error}", path.display()))),
    }
}

const MASTER_KEY_FILE: &str = "master.key";
const PUT_IT_BACK: &str =
    "put the file back, or set CENTAVO_MASTER_KEY; without the key names and documents can't be read";

fn make_master_key(data: &Path) -> Result<[u8; 32], StartError> {
    let path = data.join(MASTER_KEY_FILE);
    let failed = |source| StartError::Unwritable { data: data.to_owned(), source };
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::create_dir_all(data).map_err(failed)?;
    // Under another name first: a power cut must not leave an empty key behind.
    let unfinished = data.join(format!("{MASTER_KEY_FILE}.unfinished"));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&unfinished, &path).map_err(failed)?;
    fs::File::open(data).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(key)
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
