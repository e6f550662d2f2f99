//! Connections to the database: how one is made, what it is set to, and which errors are tried
//! again.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls_native_certs::load_native_certs;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::hosts::Hosts;
use crate::store::StoreError;

/// The schema that holds all tables.
pub(super) const SCHEMA: &str = "centavo";

/// Settings of every session. The journal's statements find their rows by primary key; without
/// `enable_seqscan = off` a plan that was made on small tables reads all of a large one. It makes a
/// plan that must read all of a small one seem so dear that PostgreSQL would compile it each time,
/// for most of a second: hence `jit = off`.
/// `remote_apply` stays where it is set, since it promises more than `on`.
const SESSION: &str = "SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET jit = off;
    SET lock_timeout = '2s';
    SET statement_timeout = 0;
    SET idle_in_transaction_session_timeout = 0;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';";

/// The timeline of a server that takes writes: of which promotion it is the outcome.
const TIMELINE: &str = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// Pauses between tries grow from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// An address of a database: `postgres://user:password@host:port/database?…`.
///
/// Its text shows host, port and database, never the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Config,
    place: String,
}

impl PostgresAddress {
    /// Parses an address. Of several hosts with commas between them one that takes writes is used,
    /// and none that was replaced as far as this process knows. TLS is required of a host that is
    /// not this machine, unless the address says `sslmode=disable`; the host's certificate is
    /// always checked.
    pub fn parse(address: &str) -> Result<Self, String> {
        // All of these check the certificate here, which the library knows as `require` alone.
        let address = ["verify-full", "verify-ca"]
            .iter()
            .fold(address.to_owned(), |address, mode| address.replace(&format!("sslmode={mode}"), "sslmode=require"));
        let before_settings = address.split('?').next().unwrap_or_default();
        if before_settings.contains("://") && before_settings.matches('@').count() > 1 {
            return Err("it has more than one @: one in a user or a password is written %40".to_owned());
        }
        let mut config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        let ports = config.get_ports();
        let names = config.get_hosts().iter().enumerate().map(|(at, host)| match ports.get(at).or(ports.first()) {
            Some(port) => format!("{}:{port}", named(host)),
            None => named(host),
        });
        let names: Vec<_> = names.collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default().to_owned();
        let place = format!("postgres://{}/{database}", names.join(","));
        if config.get_ssl_mode() == SslMode::Prefer {
            let is_local = config.get_hosts().iter().all(is_local);
            config.ssl_mode(if is_local { SslMode::Disable } else { SslMode::Require });
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { config, place })
    }

    /// Host, port and database, without the user and the password.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.place)
    }
}

fn named(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// Makes connections.
pub(super) struct Connector {
    hosts: Arc<Hosts>,
    tls: MakeRustlsConnect,
    runtime: Handle,
    place: String,
    /// How long one answer may take.
    patience: Duration,
}

impl Connector {
    /// `process` names this process to the database, so that its successor can end its sessions.
    pub(super) fn new(address: &PostgresAddress, process: &str, runtime: Handle, patience: Duration) -> Self {
        let mut config = address.config.clone();
        config.application_name(process).keepalives_idle(patience).tcp_user_timeout(patience);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(load_native_certs().certs);
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = MakeRustlsConnect::new(tls);
        Self { hosts: Arc::new(Hosts::of(&config)), tls, runtime, place: address.place.clone(), patience }
    }

    /// The same with another patience: what one knows of the servers, both know.
    pub(super) fn with_patience(&self, patience: Duration) -> Self {
        let Self { hosts, tls, runtime, place, .. } = self;
        Self { hosts: Arc::clone(hosts), tls: tls.clone(), runtime: runtime.clone(), place: place.clone(), patience }
    }

    /// The same with connections that another runtime drives.
    pub(super) fn on(&self, runtime: Handle) -> Self {
        Self { runtime, ..self.with_patience(self.patience) }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Connects to the first of the servers that takes writes and was not replaced.
    async fn connect(&self) -> Result<Link, Trouble> {
        let time = self.hosts.time_of_one(self.patience);
        let mut trouble = Trouble::Passing("the address names no server".to_owned());
        for (place, config) in self.hosts.in_turn() {
            trouble = match tokio::time::timeout(time, self.connect_to(place, config)).await {
                Ok(Ok(link)) if self.hosts.admit(place, link.timeline) => return Ok(link),
                Ok(Ok(_)) => Trouble::Passing("it is a former primary, which was replaced".to_owned()),
                Ok(Err(error)) => error.into(),
                Err(_) => Trouble::Passing(format!("no connection in {} s", time.as_secs_f32())),
            };
        }
        Err(trouble)
    }

    async fn connect_to(&self, host: usize, config: &Config) -> Result<Link, tokio_postgres::Error> {
        let (client, mut connection) = config.connect(self.tls.clone()).await?;
        let is_doubtful = Arc::new(AtomicBool::new(false));
        let doubtful = Arc::clone(&is_doubtful);
        // A warning comes before the answer that it is about, so the mark is there before the
        // answer is.
        let driving = self.runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(warning) = message
                    && [&SqlState::WARNING, &SqlState::ADMIN_SHUTDOWN].contains(&warning.code())
                {
                    tracing::warn!(warning = warning.message(), "the database doubts its last answer");
                    doubtful.store(true, Ordering::Release);
                }
            }
        });
        let mut link = Link { client, host, timeline: 0, is_doubtful, statements: Mutex::default(), driving };
        link.client.batch_execute(SESSION).await?;
        link.client.batch_execute(&format!("SET search_path = {SCHEMA}, pg_catalog")).await?;
        link.timeline = match link.client.simple_query(TIMELINE).await {
            Ok(messages) => messages.iter().find_map(timeline).unwrap_or_default(),
            // An administrator took this right away. Then no server is known to be replaced.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => 0,
            Err(error) => return Err(error),
        };
        Ok(link)
    }
}

/// The timeline that an answer to [`TIMELINE`] names.
fn timeline(message: &SimpleQueryMessage) -> Option<u32> {
    match message {
        SimpleQueryMessage::Row(row) => u32::from_str_radix(row.get(0)?, 16).ok(),
        _ => None,
    }
}

/// A connection. It is closed when this is dropped.
pub(super) struct Link {
    client: Client,
    /// The place of its server in the address, and the timeline that it was on.
    host: usize,
    timeline: u32,
    /// The database has said of an answer that no standby has confirmed it.
    is_doubtful: Arc<AtomicBool>,
    statements: Mutex<HashMap<&'static str, Statement>>,
    driving: JoinHandle<()>,
}

impl Link {
    /// The rows that a statement gives. It is prepared once.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let known = self.statements.lock().get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let statement = self.client.prepare(sql).await?;
                self.statements.lock().insert(sql, statement.clone());
                statement
            }
        };
        self.client.query(&statement, parameters).await
    }

    /// The first row.
    pub(super) async fn row(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, tokio_postgres::Error> {
        Ok(self.rows(sql, parameters).await?.into_iter().next())
    }

    /// Runs statements without parameters, one after the other.
    pub(super) async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The library would wait for a database that does not answer.
        self.driving.abort();
    }
}

/// Why work on a connection came to nothing, or to nothing that is known.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The work may be done or not; the same work again may succeed.
    Passing(String),
    /// The same again would fail too.
    Lasting(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        let told = told(&error);
        match error.code().map(SqlState::code) {
            Some(code) if !["08", "25", "40", "53", "55", "57", "58", "XX"].contains(&&code[..2]) => {
                Trouble::Lasting(told)
            }
            _ => Trouble::Passing(told),
        }
    }
}

/// The text of an error and of its causes.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", answer.message(), answer.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// One connection for one kind of work, made again when it was lost.
pub(super) struct Line {
    connector: Arc<Connector>,
    link: AsyncMutex<Option<Arc<Link>>>,
    /// Whether it reads one snapshot of the database, which ends with the connection.
    is_snapshot: bool,
}

impl Line {
    pub(super) fn new(connector: &Arc<Connector>) -> Self {
        Self { connector: Arc::clone(connector), link: AsyncMutex::default(), is_snapshot: false }
    }

    /// A line that reads the database as it was at its first read, and writes nothing.
    pub(super) fn of_snapshot(connector: &Arc<Connector>) -> Self {
        Self { is_snapshot: true, ..Self::new(connector) }
    }

    pub(super) fn place(&self) -> &str {
        self.connector.place()
    }

    /// Gives the connection up, with whatever is open on it.
    pub(super) async fn close(&self) {
        *self.link.lock().await = None;
    }

    /// The connection, which is made where there is none.
    pub(super) async fn link(&self) -> Result<Arc<Link>, Trouble> {
        let mut current = self.link.lock().await;
        if let Some(link) = current.as_ref() {
            if !link.client.is_closed() && !self.connector.hosts.is_former(link.timeline) {
                return Ok(Arc::clone(link));
            }
            if self.is_snapshot {
                return Err(Trouble::Lasting("the connection was lost in the middle of a snapshot".to_owned()));
            }
        }
        let link = Arc::new(self.connector.connect().await?);
        if self.is_snapshot {
            link.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        }
        *current = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Does work once. After a failure, or without an answer in time, the connection is given up.
    pub(super) async fn once<T>(
        &self,
        work: &impl AsyncFn(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Trouble> {
        let link = self.in_time(self.link()).await?;
        self.on(&link, work).await
    }

    /// Does work once on this connection, and on no other. For the steps of a transaction.
    pub(super) async fn on<T>(
        &self,
        link: &Link,
        work: &impl AsyncFn(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Trouble> {
        let done = self.in_time(async {
            let done = work(link).await?;
            match link.is_doubtful.load(Ordering::Acquire) {
                true => Err(Trouble::Passing("no standby has confirmed the answer".to_owned())),
                false => Ok(done),
            }
        });
        let done = done.await;
        if done.is_err() && !self.is_snapshot {
            self.connector.hosts.suspect(link.host);
            self.close().await;
        }
        done
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        let patience = self.connector.patience;
        let done = tokio::time::timeout(patience, work).await;
        done.unwrap_or_else(|_| Err(Trouble::Passing(format!("no answer in {} s", patience.as_secs_f32()))))
    }

    /// Does work again and again until it succeeds, for this long at most; for ever without a time.
    pub(super) async fn until<T>(
        &self,
        time: Option<Duration>,
        work: impl AsyncFn(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            let detail = match self.once(&work).await {
                Ok(done) => {
                    if pause > PAUSES.0 {
                        tracing::info!(database = self.place(), "the database answers again");
                    }
                    return Ok(done);
                }
                Err(Trouble::Lasting(detail)) => return Err(self.refused(detail)),
                Err(Trouble::Passing(detail)) => detail,
            };
            if self.is_snapshot || time.is_some_and(|time| begun.elapsed() >= time) {
                return Err(StoreError::Unavailable { place: self.place().to_owned(), detail });
            }
            tracing::warn!(database = self.place(), detail, "the database does not answer; it is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn refused(&self, detail: String) -> StoreError {
        StoreError::Refused { place: self.place().to_owned(), detail }
    }

    /// Does work once, for a caller who wants to know at once.
    pub(super) async fn try_once<T>(
        &self,
        work: impl AsyncFn(&Link) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.once(&work).await.map_err(|trouble| match trouble {
            Trouble::Lasting(detail) => self.refused(detail),
            Trouble::Passing(detail) => StoreError::Unavailable { place: self.place().to_owned(), detail },
        })
    }
}
