//! Wiring of a server: settings, master key, engine, listeners, background tasks, and the orderly
//! stop.

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
use crate::descriptors::{self, Connections};
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
use crate::routes;
use crate::webhooks::{Webhooks, deliverer};

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The program can't listen on an address.
    #[error("{variable}: can't listen on {address}: {}", why_not(.source))]
    Listen {
        /// The variable that sets the address.
        variable: &'static str,
        /// The address as it was set.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The data directory cannot be made or written to.
    #[error("the data directory {}: it can't be written to: {source}", data.display())]
    Unwritable {
        /// The data directory.
        data: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The master key cannot be read or made.
    #[error("the master key: {0}")]
    MasterKey(String),
    /// TLS for webhooks can't be set up.
    #[error("https for webhooks: {0}")]
    Https(#[from] tokio_rustls::rustls::Error),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// The error of an address, with advice to the operator.
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

/// Most requests under way at one listener.
const IN_FLIGHT_MAX: usize = 16_384;
/// Most connections that the operating system holds until they are accepted.
const BACKLOG: u32 = 1_024;
/// Time after which an unused actor is put to sleep.
const IDLE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Running {
    /// State that the handlers share.
    pub app: Arc<App>,
    /// Address of the merchants' listener.
    pub public: SocketAddr,
    /// Address of the operators' listener.
    pub operations: SocketAddr,
    shutdown: watch::Sender<bool>,
    listeners: [JoinHandle<server::Drained>; 2],
    schedule: JoinHandle<()>,
    deliverer: JoinHandle<()>,
}

/// Opens the data and begins to serve. Calls `progress` with the number of Records that were read
/// so far, and their total.
pub async fn start(settings: Settings, progress: impl Fn(u64, u64) + Send + 'static) -> Result<Running, StartError> {
    let rails = settings.sandbox.then(|| sandbox::rails(&settings.data.join("sandbox")));
    start_with(rails, settings, progress).await
}

/// Begins to serve as [`start`] does, with the given rails instead of those that the settings name.
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
    let connections = descriptors::raise();
    let measures = Measures::default();
    let backlog = Arc::new(Backlog::default());
    let app = app(engine, settings, &connections, &measures, &backlog)?;
    let (shutdown, ending) = watch::channel(false);
    let listening = Listening { app: &app, measures, backlog, ending: ending.clone() };
    let [public, operations] = sockets;
    let (engine, sandbox) = (Arc::clone(&app.engine), app.sandbox);
    let shedding: Admits = Box::new(move |headers| engine.admits(|| supposed_group(&engine, sandbox, headers)));
    // Operators are few, and they are needed most when there is much to do.
    let everybody: Admits = Box::new(|_| true);
    let (public, merchants) =
        listening.serve(public, addresses[0], routes::public(&app), shedding, connections.public)?;
    let (operations, operators) =
        listening.serve(operations, addresses[1], routes::operations(&app), everybody, connections.operations)?;
    warn_of(has_rail, operations);
    let schedule = tokio::spawn(keep_schedule(Arc::clone(&app.engine)));
    let deliverer = tokio::spawn(keep_delivering(Arc::clone(&app.engine), Arc::clone(&app.webhooks), ending));
    Ok(Running { app, public, operations, shutdown, listeners: [merchants, operators], schedule, deliverer })
}

/// Makes the state that the handlers share, and registers the metrics.
fn app(
    engine: Arc<Engine>,
    settings: Settings,
    connections: &Connections,
    measures: &Measures,
    backlog: &Backlog,
) -> Result<Arc<App>, StartError> {
    let mut registry = Registry::default();
    engine.metrics().register(&mut registry);
    measures.register(&mut registry);
    measures::register_process(&mut registry);
    let last_backup = LastBackup::of(&settings.data);
    registry.register_collector(Box::new(last_backup.clone()));
    let webhooks = Webhooks::new(settings.webhook_allow, connections.webhooks, &mut registry)?;
    backlog.register(&mut registry);
    let guesses = Guesses::new(settings.rate_limit);
    guesses.register(&mut registry);
    Ok(Arc::new(App {
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
    }))
}

/// Parts that the two listeners share.
struct Listening<'a> {
    app: &'a App,
    measures: Measures,
    backlog: Arc<Backlog>,
    ending: watch::Receiver<bool>,
}

impl Listening<'_> {
    /// Listens on a bound socket and serves a router on it. Gives the address, and the task that
    /// ends when the listener is drained.
    fn serve(
        &self,
        socket: TcpSocket,
        (variable, address): (&'static str, SocketAddr),
        router: axum::Router,
        admits: Admits,
        connections_max: usize,
    ) -> Result<(SocketAddr, JoinHandle<server::Drained>), StartError> {
        let failed = |source| StartError::Listen { variable, address, source };
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let limits = middleware::RequestLimits { most: IN_FLIGHT_MAX, admits };
        let middleware = Middleware::new(limits, self.app.sandbox, self.measures.clone())?;
        let router = middleware.clone().before(router);
        let served = server::Served { router, middleware: Some(middleware), backlog: Arc::clone(&self.backlog) };
        let limits = server::ServerLimits { connections_max, ..server::ServerLimits::default() };
        Ok((address, tokio::spawn(server::run(listener, served, self.ending.clone(), limits))))
    }
}

/// Warns of a server without rails, and of an operators' listener that other machines can reach.
fn warn_of(has_rail: bool, operations: SocketAddr) {
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
}

/// Runs the engine's schedule, and begins it again after a panic. Renews snapshots and watches the
/// free space meanwhile.
async fn keep_schedule(engine: Arc<Engine>) {
    let (renewing, watching) = (Arc::clone(&engine), Arc::clone(&engine));
    let mut while_the_schedule_runs = JoinSet::new();
    while_the_schedule_runs.spawn(async move { renewing.renew_snapshots().await });
    while_the_schedule_runs.spawn(async move { watching.watch_space().await });
    loop {
        let watched = Arc::clone(&engine);
        let ended = JoinSet::from_iter([async move { watched.run_schedule().await }]).join_next().await;
        tracing::error!(?ended, "the schedule failed, and begins again");
    }
}

/// Delivers webhooks until the program ends, and begins again after a panic.
async fn keep_delivering(engine: Arc<Engine>, webhooks: Arc<Webhooks>, ending: watch::Receiver<bool>) {
    while JoinSet::from_iter([deliverer::run(Arc::clone(&engine), Arc::clone(&webhooks), ending.clone())])
        .join_next()
        .await
        .is_some_and(|ended| ended.is_err())
    {
        tracing::error!("the deliverer of webhooks failed, and begins again");
    }
}

impl Running {
    /// Waits until a Record could not be made durable. Nothing more can be acknowledged then, and
    /// the process must end.
    pub async fn failed(&self) {
        self.app.engine.failed().await;
    }

    /// Stops in order: refuses new requests, answers those under way, puts the actors to sleep, and
    /// closes the data.
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

/// Binds an address without listening yet: connections are refused while the data opens.
fn bind((variable, address): (&'static str, SocketAddr)) -> Result<TcpSocket, StartError> {
    let failed = |source| StartError::Listen { variable, address, source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    socket.set_reuseaddr(true).and_then(|()| socket.bind(address)).map_err(failed)?;
    Ok(socket)
}

/// The master key, which encrypts all other keys: `CENTAVO_MASTER_KEY` (64 hexadecimal digits), or
/// the file `master.key` in the data directory, which is made with the data. Without it no personal
/// data can be read, by anybody.
pub fn master_key(data: &Path, configured: Option<&Secret>) -> Result<[u8; 32], StartError> {
    match existing_master_key(data, configured)? {
        Some(key) => Ok(key),
        // A new key would not open the data that is there.
        None if data.join("journal").exists() => {
            let path = data.join(MASTER_KEY_FILE);
            Err(StartError::MasterKey(format!("{} is missing: {PUT_IT_BACK}", path.display())))
        }
        None => make_master_key(data),
    }
}

/// The master key, if there is one: from the variable, from the settings' file, or from the data
/// directory, in this order.
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
        // Where there is no directory, there is no file. If it can't be made, making it gives the
        // error.
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
    // Written under another name first: a power cut must not leave an empty key behind.
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
