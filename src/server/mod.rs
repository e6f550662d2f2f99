//! Wiring of a server: settings, secrets, engine, listeners, background tasks, and the orderly
//! stop. What is served stands in [`routes`]; the institutions that the settings name are in
//! [`named_rails`].

pub mod checkpoints;
pub mod log_queue;
pub mod logging;
pub mod named_rails;
pub mod routes;
pub mod runtime;
pub mod watchdog;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actors::engine::{AdmissionLimits, Engine, EngineOptions, OpenError, Unavailable};
use actors::metrics::Metrics;
use actors::rails::Rails;
use axum::Router;
use books::export::jobs::ExportJobs;
use ledger::rail_name::RailName;
use parking_lot::RwLock;
use prometheus_client::registry::Registry;
use rails::sandbox::Institutions;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use wire::case_folding::search_key;

use crate::api::app::App;
use crate::api::report_limit::ReportLimit;
use crate::server::checkpoints::{CheckpointMeasures, CheckpointSchedule};
use crate::server::named_rails::listener::{Bells, PathSecret};
use crate::server::named_rails::settings::BellSettings;
use crate::server::named_rails::{NamedRailFailure, OpenedRails};
use crate::settings::checked::Settings;
use crate::settings::secrets::{self, SecretError, SecretSource};
use crate::settings::store_choice::Store;
use console::Console;
use nodes::door::{Door, DoorParts};
use nodes::forward::PeerClient;
use nodes::listener::Behind;
use nodes::node::{JoinError, Node, NodeFailure};
use nodes::partition_measures::PartitionMeasures;
use nodes::peer_token::PeerToken;
use nodes::takeover;
use nodes::work_requests::OthersOverHttp;
use nodes::{self, Owners, PeerMeasures, PeerSettings, PeerTlsFiles};
use ops::account_sums::AccountSums;
use ops::desk::Desk;
use ops::health;
use ops::last_backup::LastBackup;
use web::body::WholeBody;
use web::credential::{OpsRoles, OpsTokens};
use web::descriptors;
use web::guards::rate_limit::RateLimits;
use web::guards::shed::RequestLimits;
use web::guards::wrong_credentials::WrongCredentials;
use web::measures::{Exposition, Measures};
use web::middleware::Middleware;
use web::openapi::Listener as Side;
use web::outgoing::{Backlog, WriteLimits};
use web::session::Sessions;
use web::tls::{MutualTls, Tls, TlsError, TlsFiles};
use web::{measures, server};
use webhooks::{self, Webhooks, deliverer};

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
    /// The operators' tokens or the master key cannot be read or made.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The store is a database, and no master key is given.
    #[error("{NO_MASTER_KEY}")]
    NoMasterKey,
    /// A listener's certificate or key cannot be used.
    #[error("{variable}: {source}")]
    Tls {
        /// The variable that names the certificate.
        variable: &'static str,
        /// The defect.
        source: TlsError,
    },
    /// An institution can't be called.
    #[error(transparent)]
    Rail(#[from] NamedRailFailure),
    /// Charges name institutions that are not configured.
    #[error(
        "charges of the last 120 days (of an acquirer: 550) name {}: add the tables to the configuration file again, \
         and the line `card` in [rails] where one is the acquirer's, or their payments are not found", tables(.0)
    )]
    MissingRails(Vec<RailName>),
    /// The acquirer of charges is at another host now: a repeat there would charge again.
    #[error(
        "charges of the last 550 days were ordered from rail.{0} at {1}, where alone its keys hold: give the new \
         address a table with another name, and leave this one"
    )]
    RailMoved(RailName, String),
    /// The books can't be asked which institutions charges name.
    #[error("the institutions that charges name can't be read: {0}")]
    RailsUnknown(Unavailable),
    /// This process can't be a node beside the others.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The operating system gives no thread for webhooks.
    #[error("webhooks: no thread could be started: {0}")]
    Thread(std::io::Error),
    /// TLS for webhooks can't be set up.
    #[error("https for webhooks: {0}")]
    Https(#[from] tokio_rustls::rustls::Error),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

fn tables(names: &[RailName]) -> String {
    let tables: Vec<_> = names.iter().map(|name| format!("[rail.{name}]")).collect();
    tables.join(" and ")
}

/// The error of an address, with advice to the operator.
pub(crate) fn why_not(source: &std::io::Error) -> String {
    let advice = match source.kind() {
        std::io::ErrorKind::AddrInUse => "another program listens there; end it, or choose another port",
        std::io::ErrorKind::PermissionDenied => "this user may not; choose a port from 1024 on",
        std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
        _ => return source.to_string(),
    };
    format!("{advice} ({source})")
}

pub(crate) const LISTEN_VARIABLE: &str = "CENTAVO_LISTEN";
pub(crate) const OPS_LISTEN_VARIABLE: &str = "CENTAVO_OPS_LISTEN";
pub(crate) const PEER_LISTEN_VARIABLE: &str = "CENTAVO_PEER_LISTEN";
pub(crate) const RAILS_LISTEN_VARIABLE: &str = "CENTAVO_RAILS_LISTEN";
const RAILS_TLS_VARIABLE: &str = "CENTAVO_RAILS_TLS_CERT";
const PEER_TLS_VARIABLE: &str = "CENTAVO_PEER_TLS_CERT";
const TLS_VARIABLE: &str = "CENTAVO_TLS_CERT";
const OPS_TLS_VARIABLE: &str = "CENTAVO_OPS_TLS_CERT";

/// Most requests under way at one listener.
const IN_FLIGHT_MAX: usize = 16_384;
/// Most connections that the operating system holds until they are accepted.
const BACKLOG: u32 = 1_024;
/// Most requests under way at the operators' listener of a process that does not serve yet.
const STARTING_REQUESTS_MAX: usize = 64;
/// Most requests that wait for an event at once.
const EVENT_WAITS_MAX: usize = 256;
/// How long requests under way wait at most for their answer that this process may not answer.
const LAPSE_SEEN_AFTER: Duration = Duration::from_millis(250);
/// Time after which an unused actor is put to sleep.
const IDLE: Duration = Duration::from_secs(60);

/// Why a server ends that nobody asked to. Nothing more can be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServingFailure {
    /// A block could not be made durable.
    #[error("a block could not be made durable; nothing of it was acknowledged. See the log, then start again.")]
    Journal,
    /// Another process has taken the store.
    #[error(
        "another process has taken what this one served. Start again: a node joins the others, and any \
         other process waits until that one ends."
    )]
    Superseded,
    /// As a node it can't go on.
    #[error("{0}.")]
    Node(NodeFailure),
}

/// A server that serves, until it is stopped.
pub struct RunningServer {
    /// The engine.
    pub engine: Arc<Engine>,
    /// State of the merchants' handlers.
    pub app: Arc<App>,
    /// State of the operators' handlers.
    pub desk: Arc<Desk>,
    /// Address of the merchants' listener.
    pub public: SocketAddr,
    /// Address of the operators' listener.
    pub operations: SocketAddr,
    /// Address of the peers' listener, where there is one.
    pub peers: Option<SocketAddr>,
    /// Address of the listener on which institutions ring, where there is one.
    pub bells: Option<SocketAddr>,
    sources: ReloadSources,
    shutdown: watch::Sender<bool>,
    tasks: Tasks,
}

/// Tasks of a running server.
struct Tasks {
    listeners: Vec<JoinHandle<server::DrainResult>>,
    schedule: JoinHandle<()>,
    /// Ends with the deliverer.
    deliverer: oneshot::Receiver<()>,
    /// This process as a node, and the task that keeps its partitions.
    node: Option<(JoinHandle<()>, Arc<Node>)>,
}

/// Opens the data and begins to serve. Calls `progress` with the number of Records that were read
/// so far, and their total.
pub async fn start(
    settings: Settings,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<RunningServer, StartError> {
    let opened = settings.sandbox.then(|| Institutions::open(&settings.sandbox_folder(), settings.shares_sandbox()));
    let (institutions, rails) = opened.unzip();
    let named = OpenedRails::open(settings.rails.as_ref())?;
    let current = || settings.rails.as_ref().map(|rails| rails.current.clone()).unwrap_or_default();
    let rails = rails.unwrap_or_else(|| named.rails(current()));
    run(rails, institutions.map(Arc::new), named, settings, progress).await
}

/// Begins to serve as [`start`] does, with the given rails instead of those that the settings name.
pub async fn start_with(
    rails: Rails,
    settings: Settings,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<RunningServer, StartError> {
    run(rails, None, OpenedRails::default(), settings, progress).await
}

/// Opens the engine: on the data folder, on a database once this process has it, or as a node of a
/// database beside others.
async fn open_engine(
    settings: &Settings,
    peering: Option<&Peering>,
    options: EngineOptions,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<(Arc<Engine>, Option<Arc<Node>>), OpenError> {
    let engine = match (&settings.store, peering) {
        (Store::Sled, _) => Engine::open(&settings.data, &settings.sled, options, progress).await?,
        (Store::Postgres(database), None) => {
            let (parts, extents) = takeover::take(database, &options).await?;
            Engine::open_parts(parts, extents, options, progress).await?
        }
        (Store::Postgres(database), Some(peering)) => {
            let node = Node::open(peering.address.clone(), database, options).await?;
            return Ok((Arc::clone(node.engine()), Some(node)));
        }
    };
    Ok((engine, None))
}

async fn run(
    rails: Rails,
    institutions: Option<Arc<Institutions>>,
    named: OpenedRails,
    settings: Settings,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<RunningServer, StartError> {
    let lacking =
        unserved([rails.card.current().is_some(), rails.pix.current().is_some(), rails.payout.current().is_some()]);
    let mut registry = Registry::default();
    let bells = Bells::of(rails.pix.named_ones().map(|(name, _)| name), named.notifying(), &mut registry);
    named.register(&mut registry);
    let mut sources = ReloadSources::of(&settings, named);
    let ops_tokens = sources.ops_tokens()?;
    let options = engine_options(&settings, rails, &mut registry)?;
    let measures = Measures::new(&mut registry);
    let of_peers = PeerMeasures::new(&mut registry);
    let peering = Peering::open_any(&settings, &options.master_key, &measures, of_peers)?;
    let ringing = Ringing::open_any(settings.bells.clone(), &measures)?;
    let [public_tls, ops_tls] = [
        open_tls("merchants", TLS_VARIABLE, settings.tls.clone(), &measures)?,
        open_tls("operators", OPS_TLS_VARIABLE, settings.ops_tls.clone(), &measures)?,
    ];
    sources.of_listeners([&public_tls, &ops_tls], ringing.as_ref(), peering.as_ref());
    let addresses = [(LISTEN_VARIABLE, settings.listen), (OPS_LISTEN_VARIABLE, settings.ops_listen)];
    let sockets = [bind(addresses[0])?, bind(addresses[1])?];
    let [public, operations] = sockets;
    let operations = listen(operations, addresses[1])?;
    let starting = say_starting(&operations, ops_tls.clone(), &settings, &measures)?;
    let (engine, node) = open_engine(&settings, peering.as_ref(), options, progress).await?;
    refuse_missing(&engine, settings.sandbox || node.is_some()).await?;
    let connections = descriptors::raise(webhooks::CONNECTIONS_MAX);
    let backlog = Arc::new(Backlog::new(WriteLimits::default(), &mut registry));
    let is_shared = settings.store.is_postgres();
    let (shutdown, ending) = watch::channel(false);
    let others = peering.as_ref().zip(node.clone()).map(|(peering, node)| peering.others(node));
    let checkpoints = (settings.checkpoints.clone(), CheckpointMeasures::new(&mut registry));
    let of_desk = node.clone();
    let beside = Beside { ops_tokens, institutions, ending: ending.clone(), node: of_desk, others };
    let states = states(Arc::clone(&engine), settings, beside, connections.webhooks, registry)?;
    let States { app, desk, console } = &states;
    let lapsed = is_shared.then(|| lapses(&engine));
    let listening = Listening { desk, measures, backlog, ending: ending.clone(), lapsed };
    let merchants = Listener { address: addresses[0], tls: public_tls, connections_max: connections.public };
    let operators = Listener { address: addresses[1], tls: ops_tls, connections_max: connections.operations };
    warn_of(lacking, [&merchants, &operators], ringing.as_ref());
    let door = peering.as_ref().zip(node.clone()).map(|(peering, node)| peering.door(console, node));
    let of_merchants = listening.behind(Side::Merchants, routes::public(app), door.as_ref())?;
    let of_operators = listening.behind(Side::Operators, routes::operations(console), door.as_ref())?;
    let both = [of_merchants.clone(), of_operators.clone()];
    let (peers, of_peers) = listening.serve_peers(peering, connections.operations, both).await?.unzip();
    let public = listen(public, addresses[0])?;
    let (public, merchants) = listening.serve(public, merchants, of_merchants.served())?;
    drop(starting);
    let (operations, operators) = listening.serve(operations, operators, of_operators.served())?;
    let (bells, of_bells) =
        listening.serve_bells(ringing, &bells, (sources.rails.clone(), connections.operations))?.unzip();
    let institutions = desk.institutions.clone();
    let schedule = tokio::spawn(keep_schedule(Arc::clone(&engine), institutions, checkpoints, sources.rails.clone()));
    let deliverer = deliver(Arc::clone(&engine), Arc::clone(&desk.webhooks), ending)?;
    let listeners = [merchants, operators].into_iter().chain(of_peers).chain(of_bells).collect();
    let node = node.map(|node| (tokio::spawn(Arc::clone(&node).run()), node));
    let States { app, desk, .. } = states;
    let tasks = Tasks { listeners, schedule, deliverer, node };
    Ok(RunningServer { engine, app, desk, public, operations, peers, bells, sources, shutdown, tasks })
}

fn engine_options(settings: &Settings, rails: Rails, registry: &mut Registry) -> Result<EngineOptions, StartError> {
    Ok(EngineOptions {
        sandbox: settings.sandbox,
        master_key: master_key(settings)?,
        admission: AdmissionLimits { wait_max: settings.turn_wait_max, ..AdmissionLimits::default() },
        idle: IDLE,
        awake_max: settings.awake_actors,
        rails,
        fold_name: search_key,
        index: settings.index,
        partitions: settings.partitions,
        start_gap_max: settings.start_gap_max,
        metrics: Arc::new(Metrics::new(registry, !settings.store.is_postgres())),
    })
}

/// The master key. One that is made stays in the data directory of this machine, so a database that
/// other machines have too needs one that is given.
fn master_key(settings: &Settings) -> Result<[u8; 32], StartError> {
    if settings.store.is_postgres() && settings.master_key == SecretSource::Data {
        return Err(StartError::NoMasterKey);
    }
    Ok(secrets::master_key(&settings.master_key, &settings.data)?)
}

/// Refuses a start without institutions that charges name. A sandbox has none, and of nodes none
/// has all of the books.
async fn refuse_missing(engine: &Engine, is_exempt: bool) -> Result<(), StartError> {
    if is_exempt {
        return Ok(());
    }
    let checked = || match engine.moved_acquirer()? {
        Some((name, host)) => Ok(Err(StartError::RailMoved(name, host))),
        None => Ok(match engine.missing_rails()? {
            missing if missing.is_empty() => Ok(()),
            missing => Err(StartError::MissingRails(missing)),
        }),
    };
    let refused = checked().map_err(StartError::RailsUnknown).flatten();
    if refused.is_err() {
        engine.stop().await;
    }
    refused
}

/// Files and secrets that SIGHUP reads again.
struct ReloadSources {
    ops_token: SecretSource,
    ops_roles: OpsRoles,
    data: PathBuf,
    tls: Vec<Arc<Tls>>,
    peer_tls: Option<Arc<MutualTls>>,
    rails: OpenedRails,
    path_secret: Option<(PathBuf, Arc<PathSecret>)>,
}

impl ReloadSources {
    fn of(settings: &Settings, rails: OpenedRails) -> Self {
        let (ops_token, ops_roles, data) =
            (settings.ops_token.clone(), settings.ops_roles.clone(), settings.data.clone());
        Self { ops_token, ops_roles, data, tls: Vec::new(), peer_tls: None, rails, path_secret: None }
    }

    /// Adds what the listeners have read.
    fn of_listeners(&mut self, tls: [&Option<Arc<Tls>>; 2], ringing: Option<&Ringing>, peering: Option<&Peering>) {
        self.tls = tls.into_iter().flatten().chain(ringing.and_then(|ringing| ringing.tls.as_ref())).cloned().collect();
        self.peer_tls = peering.and_then(|peering| peering.tls.clone());
        self.path_secret = ringing.and_then(|ringing| ringing.path_secret.clone());
    }

    /// Reads the operators' tokens, or makes one; logs where that is, since nobody has typed it.
    fn ops_tokens(&self) -> Result<OpsTokens, SecretError> {
        let (tokens, made) = secrets::ops_tokens(&self.ops_token, &self.data)?;
        if let Some(path) = made {
            tracing::info!(path = %path.display(), "no CENTAVO_OPS_TOKEN was given: a token for operators was made");
        }
        Ok(tokens.with_roles(&self.ops_roles)?)
    }

    /// Reads all of them but the operators' tokens. Where that fails, the present ones stay.
    async fn reload(&self) {
        self.tls.iter().for_each(|tls| tls.reload());
        self.peer_tls.iter().for_each(|tls| tls.reload());
        self.rails.reload().await;
        let Some((path, secret)) = &self.path_secret else { return };
        match secrets::path_secret(path) {
            Ok(read) => {
                secret.exchange(read);
                tracing::info!("the secret in the paths of callbacks was read again");
            }
            Err(error) => tracing::error!(%error, "the secret in the paths of callbacks stays as it was"),
        }
    }
}

/// What the handlers have beside the engine.
struct Beside {
    ops_tokens: OpsTokens,
    institutions: Option<Arc<Institutions>>,
    ending: watch::Receiver<bool>,
    node: Option<Arc<Node>>,
    others: Option<Arc<OthersOverHttp>>,
}

/// States of the three interfaces.
struct States {
    app: Arc<App>,
    desk: Arc<Desk>,
    console: Console,
}

/// Makes the states of the three interfaces, and registers the metrics.
fn states(
    engine: Arc<Engine>,
    settings: Settings,
    Beside { ops_tokens, institutions, ending, node, others }: Beside,
    webhook_connections: usize,
    mut registry: Registry,
) -> Result<States, StartError> {
    measures::register_process(&mut registry);
    logging::register(&mut registry);
    let last_backup = LastBackup::of(&settings.data);
    registry.register_collector(Box::new(last_backup.clone()));
    registry.register_collector(Box::new(PartitionMeasures::of(Arc::clone(&engine), node.clone())));
    registry.register_collector(Box::new(AccountSums(Arc::clone(&engine))));
    let webhooks = Arc::new(Webhooks::new(settings.webhook_allow, webhook_connections, &mut registry)?);
    let export_jobs = Arc::new(ExportJobs::new(settings.data.join("exports"), engine.shared_keyring()));
    let wrong_credentials = Arc::new(WrongCredentials::new(settings.rate_limits.is_some(), &mut registry));
    let app = App {
        engine: Arc::clone(&engine),
        is_node: node.is_some(),
        sandbox: settings.sandbox,
        rate_limits: settings.rate_limits.map(|limits| Arc::new(RateLimits::new(limits))),
        disputes: settings.disputes,
        last_uses: Arc::default(),
        wrong_credentials: Arc::clone(&wrong_credentials),
        export_jobs: Arc::clone(&export_jobs),
        reporting: ReportLimit::default(),
        event_waits: Semaphore::new(EVENT_WAITS_MAX),
        ending: ending.clone(),
        institutions: institutions.clone(),
        webhooks: Arc::clone(&webhooks),
        redelivered: Arc::default(),
    };
    let desk = Arc::new(Desk {
        engine,
        node,
        others,
        ops_tokens: RwLock::new(ops_tokens),
        sandbox: settings.sandbox,
        rate_limits: app.rate_limits.clone(),
        disputes: settings.disputes,
        second_operator_above: settings.second_operator_above,
        retention_months: settings.retention_months,
        company: settings.company.clone(),
        last_uses: Arc::clone(&app.last_uses),
        wrong_credentials,
        opening: tokio::sync::Mutex::default(),
        backing_up: Arc::new(Semaphore::new(2)),
        last_backup,
        exporting: Arc::new(Semaphore::new(1)),
        reading_past: Arc::new(Semaphore::new(1)),
        export_jobs,
        reconciling: Arc::new(Semaphore::new(1)),
        ending,
        institutions,
        exposition: Exposition(registry),
        webhooks,
        redelivered: Arc::clone(&app.redelivered),
    });
    let console = Console { desk: Arc::clone(&desk), sessions: Arc::new(Sessions::default()) };
    Ok(States { app: Arc::new(app), desk, console })
}

/// Parts of one listener.
struct Listener {
    /// The variable that sets the address, and the address.
    address: (&'static str, SocketAddr),
    tls: Option<Arc<Tls>>,
    connections_max: usize,
}

/// Parts of the way to other processes, before the engine is open.
struct Peering {
    listen: SocketAddr,
    /// How the other nodes reach this one.
    address: String,
    socket: TcpSocket,
    token: PeerToken,
    tls: Option<Arc<MutualTls>>,
    client: Arc<PeerClient>,
}

impl Peering {
    /// Binds the peers' listener and reads its certificates; `None` if there is no such listener.
    fn open_any(
        settings: &Settings,
        master_key: &[u8; 32],
        measures: &Measures,
        of_peers: PeerMeasures,
    ) -> Result<Option<Self>, StartError> {
        let Some(PeerSettings { listen, address, tls }) = settings.peers.clone() else { return Ok(None) };
        let expiry = || measures.certificate_expiry("peers");
        let opened = tls.map(|PeerTlsFiles { own, authority }| MutualTls::open(own, authority, expiry()));
        let tls = opened.transpose().map_err(|source| StartError::Tls { variable: PEER_TLS_VARIABLE, source })?;
        let socket = bind((PEER_LISTEN_VARIABLE, listen))?;
        // A port that the operating system chose is known now.
        let is_chosen = listen.port() == 0 && address == listen.to_string();
        let bound = socket.local_addr().ok().filter(|_| is_chosen);
        let address = bound.map_or(address, |bound| bound.to_string());
        let (token, tls) = (PeerToken::of(master_key), tls.map(Arc::new));
        let client = Arc::new(PeerClient::new(token.clone(), tls.clone(), of_peers));
        Ok(Some(Self { listen, address, socket, token, tls, client }))
    }

    /// How the other nodes are asked.
    fn others(&self, node: Arc<Node>) -> Arc<OthersOverHttp> {
        let owners: Arc<dyn Owners> = node;
        Arc::new(OthersOverHttp::new(Arc::downgrade(&owners), Arc::clone(&self.client)))
    }

    /// What the doors of both listeners need.
    fn door(&self, Console { desk, sessions }: &Console, node: Arc<Node>) -> DoorParts {
        if let Some(others) = desk.others.clone() {
            desk.engine.set_others(others);
        }
        DoorParts {
            owners: node,
            client: Arc::clone(&self.client),
            sessions: Arc::clone(sessions),
            ids: desk.engine.ids().clone(),
            sandbox: desk.sandbox,
        }
    }
}

/// Parts of the listener of callbacks, before the engine is open.
struct Ringing {
    listen: SocketAddr,
    socket: TcpSocket,
    tls: Option<Arc<Tls>>,
    /// The secret of the paths, and its file.
    path_secret: Option<(PathBuf, Arc<PathSecret>)>,
}

impl Ringing {
    /// Binds the listener, and reads its certificates and the secret of its paths; `None` if there
    /// is no such listener.
    fn open_any(settings: Option<BellSettings>, measures: &Measures) -> Result<Option<Self>, StartError> {
        let Some(BellSettings { listen, tls, client_authority, path_secret }) = settings else { return Ok(None) };
        let opened = tls.map(|files| Tls::open_for(files, client_authority, measures.certificate_expiry("rails")));
        let tls = opened.transpose().map_err(|source| StartError::Tls { variable: RAILS_TLS_VARIABLE, source })?;
        let path_secret = match path_secret {
            Some(path) => Some((path.clone(), Arc::new(PathSecret::new(secrets::path_secret(&path)?)))),
            None => None,
        };
        let socket = bind((RAILS_LISTEN_VARIABLE, listen))?;
        Ok(Some(Self { listen, socket, tls: tls.map(Arc::new), path_secret }))
    }
}

fn open_tls(
    listener: &'static str,
    variable: &'static str,
    files: Option<TlsFiles>,
    measures: &Measures,
) -> Result<Option<Arc<Tls>>, StartError> {
    let opened = files.map(|files| Tls::open(files, measures.certificate_expiry(listener))).transpose();
    Ok(opened.map_err(|source| StartError::Tls { variable, source })?.map(Arc::new))
}

/// Parts that the two listeners share.
struct Listening<'a> {
    desk: &'a Arc<Desk>,
    measures: Measures,
    backlog: Arc<Backlog>,
    ending: watch::Receiver<bool>,
    /// Notified while this process may not answer; `None` if it always may.
    lapsed: Option<Arc<Notify>>,
}

impl Listening<'_> {
    /// Routes of a listener behind its middleware, and behind the door to other processes.
    fn behind(&self, side: Side, router: axum::Router, door: Option<&DoorParts>) -> Result<Behind, StartError> {
        let router = match door {
            Some(parts) => Door::new(side, parts.clone()).before(router),
            None => router,
        };
        let engine = Arc::clone(&self.desk.engine);
        let is_current = Box::new(move || engine.is_current());
        let lapsed = self.lapsed.clone();
        let limits = RequestLimits { most: IN_FLIGHT_MAX, is_current, lapsed };
        let middleware = Middleware::new(limits, self.desk.sandbox, self.measures.clone())?;
        Ok(Behind { router: middleware.clone().before(router), middleware })
    }

    /// Listens on a bound socket and serves routes on it. Gives the address, and the task that ends
    /// when the listener is drained.
    fn serve(
        &self,
        listener: TcpListener,
        Listener { address: (variable, address), tls, connections_max }: Listener,
        (router, middleware): (Router, Option<Middleware>),
    ) -> Result<(SocketAddr, JoinHandle<server::DrainResult>), StartError> {
        let failed = |source| StartError::Listen { variable, address, source };
        let address = listener.local_addr().map_err(failed)?;
        let served = server::ListenerService { router, middleware, backlog: Arc::clone(&self.backlog), tls };
        let connections_of_peer_max = connections_max.div_ceil(2);
        let limits = server::ServerLimits { connections_max, connections_of_peer_max, ..Default::default() };
        Ok((address, tokio::spawn(server::run(listener, served, self.ending.clone(), limits))))
    }

    /// Serves the listener on which institutions ring, if there is one. It has no middleware, whose
    /// log and metrics name paths.
    fn serve_bells(
        &self,
        ringing: Option<Ringing>,
        bells: &Bells,
        (rails, connections_max): (OpenedRails, usize),
    ) -> Result<Option<(SocketAddr, JoinHandle<server::DrainResult>)>, StartError> {
        let Some(Ringing { listen, socket, tls, path_secret }) = ringing else { return Ok(None) };
        let address = (RAILS_LISTEN_VARIABLE, listen);
        let engine = Arc::clone(&self.desk.engine);
        let notified = Arc::clone(&engine);
        let notify = move |name: RailName, body: WholeBody| {
            let (engine, rails) = (Arc::clone(&notified), rails.clone());
            async move { rails.take_notification(&engine, &name, &body.bytes).await }
        };
        let router = bells.routes(path_secret.map(|(_, secret)| secret), move |name| _ = engine.ring(name), notify);
        let listener = self::listen(socket, address)?;
        self.serve(listener, Listener { address, tls, connections_max }, (router, None)).map(Some)
    }

    /// Serves the other processes, if there are any, with the routes of both listeners, and joins
    /// them.
    async fn serve_peers(
        &self,
        peering: Option<Peering>,
        connections_max: usize,
        [merchants, operators]: [Behind; 2],
    ) -> Result<Option<(SocketAddr, JoinHandle<server::DrainResult>)>, StartError> {
        let Some(Peering { listen, socket, token, tls, client, .. }) = peering else { return Ok(None) };
        let failed = |source| StartError::Listen { variable: PEER_LISTEN_VARIABLE, address: listen, source };
        let listener = self::listen(socket, (PEER_LISTEN_VARIABLE, listen))?;
        let address = listener.local_addr().map_err(failed)?;
        let process = self.desk.node.as_ref().map(|node| node.process().to_owned()).unwrap_or_default();
        let router = nodes::listener::routes(token, process, routes::peers(self.desk), merchants, operators);
        let (backlog, tls) = (Arc::clone(&self.backlog), tls.map(|tls| Arc::clone(&tls.server)));
        let served = server::ListenerService { router, middleware: None, backlog, tls };
        let limits = nodes::listener::limits(connections_max);
        let serving = tokio::spawn(server::run(listener, served, self.ending.clone(), limits));
        if let Some(node) = &self.desk.node {
            node.join(&client).await?;
        }
        Ok(Some((address, serving)))
    }
}

/// Warns of a server that lacks rails, and of listeners without TLS that other machines can reach.
fn warn_of(lacking: Option<String>, listeners: [&Listener; 2], ringing: Option<&Ringing>) {
    if let Some(lacking) = lacking {
        tracing::warn!("{lacking}");
    }
    let listeners = listeners.map(|Listener { address: (variable, address), tls, .. }| (*variable, *address, tls));
    let ringing = ringing.map(|Ringing { listen, tls, .. }| (RAILS_LISTEN_VARIABLE, *listen, tls));
    for (variable, address, tls) in listeners.into_iter().chain(ringing) {
        if let Some(warning) = unencrypted(variable, address, tls.is_some()) {
            tracing::warn!("{warning}");
        }
    }
}

/// What a database needs beside it.
pub(crate) const NO_MASTER_KEY: &str = "a database needs a master key that every process is given: set CENTAVO_MASTER_KEY or \
     CENTAVO_MASTER_KEY_FILE (`openssl rand -hex 32` makes one)";

/// What a server answers that lacks rails for card charges, PIX charges or payouts; `None` if it
/// has them all.
pub(crate) fn unserved(has: [bool; 3]) -> Option<String> {
    let kinds = ["card charges", "PIX charges", "payouts"].into_iter().zip(has);
    let lacking: Vec<_> = kinds.filter_map(|(kind, is_served)| (!is_served).then_some(kind)).collect();
    match lacking.len() {
        0 => None,
        3 => Some(
            "no rail is configured: every charge and payout will be answered with 503 rail_not_configured; \
             CENTAVO_SANDBOX=1 plays them"
                .to_owned(),
        ),
        _ => Some(format!(
            "no rail is configured for {}: they will be answered with 503 rail_not_configured",
            lacking.join(" and ")
        )),
    }
}

/// The warning of a listener that other machines can reach, and that does not speak TLS.
pub(crate) fn unencrypted(variable: &str, address: SocketAddr, has_tls: bool) -> Option<String> {
    let certificate = match variable {
        LISTEN_VARIABLE => TLS_VARIABLE,
        RAILS_LISTEN_VARIABLE => RAILS_TLS_VARIABLE,
        _ => OPS_TLS_VARIABLE,
    };
    (!has_tls && !address.ip().is_loopback()).then(|| {
        format!(
            "{variable}: {address} can be reached from other machines, and nothing is encrypted there: set {certificate}, \
             put a proxy with TLS before it, or choose a loopback address"
        )
    })
}

/// Notified while this process may not answer.
fn lapses(engine: &Arc<Engine>) -> Arc<Notify> {
    let lapsed = Arc::new(Notify::new());
    tokio::spawn(tell_of_lapses(Arc::downgrade(engine), Arc::clone(&lapsed)));
    lapsed
}

/// Notifies the requests under way while this process may not answer.
async fn tell_of_lapses(engine: Weak<Engine>, lapsed: Arc<Notify>) {
    while let Some(is_current) = engine.upgrade().map(|engine| engine.is_current()) {
        if !is_current {
            lapsed.notify_waiters();
        }
        tokio::time::sleep(LAPSE_SEEN_AFTER).await;
    }
}

/// How often the institutions of a sandbox look whether a day has ended.
const DAYS_CLOSED_EVERY: Duration = Duration::from_secs(60);

/// Has the institutions of a sandbox write their files of the days that have ended.
async fn close_days(engine: Arc<Engine>, institutions: Option<Arc<Institutions>>) {
    let Some(institutions) = institutions else { return };
    loop {
        // A day's last things are booked before its files are written.
        tokio::time::sleep(DAYS_CLOSED_EVERY).await;
        let (closing, now) = (Arc::clone(&institutions), engine.now());
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || closing.close_days(now)).await {
            tracing::error!(%error, "the sandbox's institutions can't write their files");
        }
    }
}

/// Runs the engine's schedule, and begins it again after a panic. Renews snapshots, and watches the
/// free space and the wall clock meanwhile, and names its addresses to the institutions.
async fn keep_schedule(
    engine: Arc<Engine>,
    institutions: Option<Arc<Institutions>>,
    (checkpoints, measures): (Option<CheckpointSchedule>, CheckpointMeasures),
    rails: OpenedRails,
) {
    let (renewing, watching) = (Arc::clone(&engine), Arc::clone(&engine));
    let mut while_the_schedule_runs = JoinSet::new();
    while_the_schedule_runs.spawn(close_days(Arc::clone(&engine), institutions));
    while_the_schedule_runs.spawn(rails.register_callbacks());
    if let Some(schedule) = checkpoints {
        while_the_schedule_runs.spawn(checkpoints::keep_sending(Arc::clone(&engine), schedule, measures));
    }
    while_the_schedule_runs.spawn(async move { renewing.renew_snapshots().await });
    while_the_schedule_runs.spawn(async move { watching.watch_space().await });
    let (watching, taking_in) = (Arc::clone(&engine), Arc::clone(&engine));
    while_the_schedule_runs.spawn(async move { watching.watch_clock().await });
    while_the_schedule_runs.spawn(keep_taking_in(taking_in));
    loop {
        let watched = Arc::clone(&engine);
        let ended = JoinSet::from_iter([async move { watched.run_schedule().await }]).join_next().await;
        tracing::error!(?ended, "the schedule failed, and begins again");
    }
}

/// Takes in the payments of named PIX institutions and the returns of transfers, and begins again
/// after a panic.
async fn keep_taking_in(engine: Arc<Engine>) {
    let run = || {
        let engine = Arc::clone(&engine);
        JoinSet::from_iter([async move {
            tokio::join!(engine.run_pix_intake(), engine.run_payout_returns(), engine.run_rail_cases())
        }])
    };
    while run().join_next().await.is_some_and(|ended| ended.is_err()) {
        tracing::error!("the intake of PIX payments failed, and begins again");
    }
}

/// Delivers webhooks on threads of their own until the program ends.
fn deliver(
    engine: Arc<Engine>,
    webhooks: Arc<Webhooks>,
    ending: watch::Receiver<bool>,
) -> Result<oneshot::Receiver<()>, StartError> {
    let delivering = keep_delivering(engine, webhooks, ending);
    runtime::beside("webhooks", delivering).map_err(StartError::Thread)
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

impl RunningServer {
    /// Waits until the process must end without being asked to.
    pub async fn failed(&self) -> ServingFailure {
        let engine = &self.engine;
        let of_node = async {
            match &self.tasks.node {
                Some((_, node)) => node.failed().await,
                None => std::future::pending().await,
            }
        };
        let failure = tokio::select! {
            () = engine.failed() => ServingFailure::Journal,
            failure = of_node => ServingFailure::Node(failure),
        };
        if engine.is_superseded() { ServingFailure::Superseded } else { failure }
    }

    /// Reads the certificates and secrets again, of the listeners and of the institutions, and the
    /// operators' tokens where they are in a file. When that fails, the present ones stay.
    pub async fn reload(&self) {
        self.sources.reload().await;
        match self.sources.ops_tokens() {
            Ok(tokens) => {
                *self.desk.ops_tokens.write() = tokens;
                tracing::info!(operators = ?*self.desk.ops_tokens.read(), "the operators' tokens were read again");
            }
            Err(error) => {
                tracing::error!(%error, "the operators' tokens could not be read again, and stay as they were")
            }
        }
    }

    /// Stops in order: hands its partitions over where there are other nodes, refuses new requests,
    /// answers those under way, puts the actors to sleep, and closes the data.
    pub async fn stop(self) {
        if let Some((_, node)) = &self.tasks.node {
            node.drain().await;
        }
        let _nobody_listens = self.shutdown.send(true);
        for listener in self.tasks.listeners {
            let _ended = listener.await;
        }
        // Until then it sees who has taken its partitions: requests that came before go there.
        if let Some((keeping, node)) = self.tasks.node {
            node.rest().await;
            keeping.abort();
        }
        let _ended = self.tasks.deliverer.await;
        self.tasks.schedule.abort();
        let _aborted = self.tasks.schedule.await;
        self.engine.stop().await;
    }
}

/// Answers on the operators' listener until what this returns is dropped: the process lives, and is
/// not ready.
fn say_starting(
    listener: &TcpListener,
    tls: Option<Arc<Tls>>,
    settings: &Settings,
    measures: &Measures,
) -> Result<watch::Sender<bool>, StartError> {
    let failed = |source| StartError::Listen { variable: OPS_LISTEN_VARIABLE, address: settings.ops_listen, source };
    let shared = listener.as_fd().try_clone_to_owned().map_err(failed)?;
    let shared = TcpListener::from_std(shared.into()).map_err(failed)?;
    let limits = RequestLimits { most: STARTING_REQUESTS_MAX, is_current: Box::new(|| true), lapsed: None };
    let router = health::starting().layer(Middleware::new(limits, settings.sandbox, measures.clone())?);
    let served = server::ListenerService { router, middleware: None, backlog: Arc::default(), tls };
    let limits = server::ServerLimits { connections_max: STARTING_REQUESTS_MAX, ..server::ServerLimits::default() };
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(server::run(shared, served, stopped, limits));
    Ok(stop)
}

fn listen(socket: TcpSocket, (variable, address): (&'static str, SocketAddr)) -> Result<TcpListener, StartError> {
    socket.listen(BACKLOG).map_err(|source| StartError::Listen { variable, address, source })
}

/// Binds an address without listening yet: merchants' connections are refused while the data opens.
fn bind((variable, address): (&'static str, SocketAddr)) -> Result<TcpSocket, StartError> {
    let failed = |source| StartError::Listen { variable, address, source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    socket.set_reuseaddr(true).and_then(|()| socket.bind(address)).map_err(failed)?;
    Ok(socket)
}
