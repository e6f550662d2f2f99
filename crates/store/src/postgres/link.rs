//! Connections to the database: how one is made, what it is set to, and which errors are tried
//! again.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::PostgresAddress;
use super::hosts::{FORMER, Hosts};
use crate::{Result, StoreError};

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

/// The identifier of the cluster, which all members of one have.
const SYSTEM: &str = "SELECT system_identifier FROM pg_control_system()";

/// The process of the server that serves a session. A pooler that shares sessions between
/// transactions changes it.
const BACKEND: &str = "SELECT pg_backend_pid()";

/// How the detail of an error begins when a server was reached and gave no answer.
pub(super) const NO_ANSWER: &str = "no answer in";

const SHARED_SESSIONS: &str = "its sessions are shared between transactions, by a pooler in transaction mode: use \
    session mode (pool_mode = session), or the address of the database itself";

/// Pauses between tries grow from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

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
        let mut config = address.config().clone();
        config.application_name(process).keepalives_idle(patience).tcp_user_timeout(patience);
        let mut roots = RootCertStore::empty();
        let found = match address.authorities() {
            Some(file) => load_certs_from_paths(Some(file), None),
            None => load_native_certs(),
        };
        roots.add_parsable_certificates(found.certs);
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = MakeRustlsConnect::new(tls);
        Self { hosts: Arc::new(Hosts::of(&config)), tls, runtime, place: address.place().to_owned(), patience }
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

    /// The servers of the address.
    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Connects to the first of the servers that takes writes and was not replaced. The first time
    /// all of them are asked, and of several that take writes it is the one with the newest
    /// timeline.
    async fn connect(&self) -> Result<Link, Trouble> {
        let (mut best, mut last) = (None, Trouble::Passing("the address names no server".to_owned()));
        for (place, config) in self.hosts.in_turn() {
            let link = match self.try_one(place, config).await {
                Ok(link) => link,
                Err(trouble) => {
                    let (Trouble::Passing(said) | Trouble::Lasting(said)) = &trouble;
                    self.hosts.note(place, said, said.starts_with(FORMER));
                    last = trouble;
                    continue;
                }
            };
            self.hosts.note(place, "", false);
            if !self.hosts.is_new() || self.hosts.count() == 1 {
                best = Some(link);
                break;
            }
            best = match best {
                None => Some(link),
                Some(other) => Some(self.newer(other, link)),
            };
        }
        let all = self.hosts.failures();
        let Some(link) = best else {
            return Err(match last {
                Trouble::Lasting(said) if self.hosts.count() == 1 => Trouble::Lasting(said),
                Trouble::Lasting(_) | Trouble::Passing(_) => Trouble::Passing(all),
            });
        };
        self.hosts.admit(link.host, link.timeline);
        Ok(link)
    }

    /// Of two servers that take writes the one with the newer timeline; the other one is a former
    /// primary.
    fn newer(&self, one: Link, other: Link) -> Link {
        let (newer, older) = if other.timeline > one.timeline { (other, one) } else { (one, other) };
        let said = former(older.timeline, newer.timeline);
        self.hosts.note(older.host, &said, true);
        newer
    }

    async fn try_one(&self, place: usize, config: &Config) -> Result<Link, Trouble> {
        let time = self.hosts.time_of_one(self.patience);
        match tokio::time::timeout(time, self.connect_to(place, config)).await {
            Ok(Ok(link)) if self.hosts.is_former(link.timeline) => {
                Err(Trouble::Passing(former(link.timeline, self.hosts.newest())))
            }
            Ok(connected) => Ok(connected?),
            Err(_) => Err(Trouble::Passing(format!("no connection in {} s", time.as_secs_f32()))),
        }
    }

    async fn connect_to(&self, host: usize, config: &Config) -> QueryResult<Link> {
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
        let (name, statements) = (self.hosts.name(host), Mutex::default());
        let mut link =
            Link { client, host, name, timeline: 0, system: None, backend: 0, is_doubtful, statements, driving };
        link.client.batch_execute(SESSION).await?;
        link.client.batch_execute(&format!("SET search_path = {SCHEMA}, pg_catalog")).await?;
        link.timeline = match link.client.simple_query(TIMELINE).await {
            Ok(messages) => messages.iter().find_map(timeline).unwrap_or_default(),
            // An administrator took this right away. Then no server is known to be replaced.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => 0,
            Err(error) => return Err(error),
        };
        link.system = match link.client.simple_query(SYSTEM).await {
            Ok(messages) => messages.iter().find_map(first_value),
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => None,
            Err(error) => return Err(error),
        };
        link.backend = link.backend_now().await?;
        Ok(link)
    }
}

/// What is said of a former primary.
fn former(timeline: u32, newest: u32) -> String {
    format!("{FORMER}, which was replaced: it is on timeline {timeline}, and {newest} was seen")
}

fn first_value(message: &SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }
}

/// The timeline that an answer to [`TIMELINE`] names.
fn timeline(message: &SimpleQueryMessage) -> Option<u32> {
    u32::from_str_radix(&first_value(message)?, 16).ok()
}

/// A connection. It is closed when this is dropped.
pub(super) struct Link {
    client: Client,
    /// The place of its server in the address, its name, and the timeline that it was on.
    host: usize,
    name: String,
    timeline: u32,
    system: Option<String>,
    /// The process of the server that served it first.
    backend: i64,
    /// The database has said of an answer that no standby has confirmed it.
    is_doubtful: Arc<AtomicBool>,
    statements: Mutex<HashMap<&'static str, Statement>>,
    driving: JoinHandle<()>,
}

impl Link {
    /// Host and port of its server.
    pub(super) fn host(&self) -> &str {
        &self.name
    }

    /// The timeline that its server was on; 0 where that may not be read.
    pub(super) fn timeline(&self) -> u32 {
        self.timeline
    }

    /// The identifier of the cluster, where that may be read.
    pub(super) fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// Whether another process of the server serves it by now: only a pooler does that.
    pub(super) async fn has_moved(&self) -> QueryResult<bool> {
        Ok(self.backend_now().await? != self.backend)
    }

    async fn backend_now(&self) -> QueryResult<i64> {
        let messages = self.client.simple_query(BACKEND).await?;
        Ok(messages.iter().find_map(first_value).and_then(|text| text.parse().ok()).unwrap_or_default())
    }

    /// The rows that a statement gives. It is prepared once.
    pub(super) async fn rows(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<Vec<Row>> {
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
    pub(super) async fn row(&self, sql: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<Option<Row>> {
        Ok(self.rows(sql, parameters).await?.into_iter().next())
    }

    /// Runs statements without parameters, one after the other.
    pub(super) async fn run(&self, sql: &str) -> QueryResult<()> {
        self.client.batch_execute(sql).await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The library would wait for a database that does not answer.
        self.driving.abort();
    }
}

/// Answer of the database to a statement.
pub(super) type QueryResult<T> = Result<T, tokio_postgres::Error>;

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
        let message = message_of(&error);
        match error.code().map(SqlState::code) {
            Some(code) if !["08", "25", "40", "53", "55", "57", "58", "XX"].contains(&&code[..2]) => {
                Trouble::Lasting(message)
            }
            _ => Trouble::Passing(message),
        }
    }
}

/// The text of an error and of its causes.
fn message_of(error: &tokio_postgres::Error) -> String {
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

    pub(super) fn hosts(&self) -> &Hosts {
        self.connector.hosts()
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
    pub(super) async fn once<T>(&self, work: &impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T, Trouble> {
        let link = self.in_time("no connection in", self.link()).await?;
        self.on(&link, work).await
    }

    /// Does work once on this connection, and on no other. For the steps of a transaction.
    pub(super) async fn on<T>(&self, link: &Link, work: &impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T, Trouble> {
        let done = self.in_time(NO_ANSWER, async {
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

    async fn in_time<T>(&self, late: &str, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        let patience = self.connector.patience;
        let done = tokio::time::timeout(patience, work).await;
        done.unwrap_or_else(|_| Err(Trouble::Passing(format!("{late} {} s", patience.as_secs_f32()))))
    }

    /// Does work again and again until it succeeds, for this long at most; for ever without a time.
    pub(super) async fn until<T>(
        &self,
        time: Option<Duration>,
        work: impl AsyncFn(&Link) -> QueryResult<T>,
    ) -> Result<T> {
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
    pub(super) async fn try_once<T>(&self, work: impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T> {
        self.once(&work).await.map_err(|trouble| self.error(trouble))
    }

    fn error(&self, trouble: Trouble) -> StoreError {
        match trouble {
            Trouble::Lasting(detail) => self.refused(detail),
            Trouble::Passing(detail) => StoreError::Unavailable { place: self.place().to_owned(), detail },
        }
    }

    /// The error of a statement that failed.
    pub(super) fn failed(&self, error: tokio_postgres::Error) -> StoreError {
        self.error(error.into())
    }

    /// A connection for several statements.
    pub(super) async fn connected(&self) -> Result<Arc<Link>> {
        self.in_time("no connection in", self.link()).await.map_err(|trouble| self.error(trouble))
    }

    /// Refuses a pooler that shares sessions between transactions: named statements and settings of
    /// a session get lost there. While all lines hold a transaction, each session keeps the server
    /// process with which it began.
    pub(super) async fn admit_sessions(lines: &[&Line]) -> Result<()> {
        let mut links: Vec<Arc<Link>> = Vec::new();
        for line in lines {
            links.push(line.connected().await?);
        }
        let shared = |line: &Line| StoreError::UnsafeDatabase { place: line.place().to_owned(), what: SHARED_SESSIONS };
        let backends: HashSet<i64> = links.iter().map(|link| link.backend).collect();
        if backends.len() < links.len() {
            return Err(shared(lines[0]));
        }
        for (line, link) in lines.iter().zip(&links) {
            let moved = line.on(link, &async |link: &Link| {
                link.run("BEGIN").await?;
                link.has_moved().await
            });
            if moved.await.map_err(|trouble| line.error(trouble))? {
                return Err(shared(line));
            }
        }
        for (line, link) in lines.iter().zip(&links) {
            line.on(link, &async |link: &Link| link.run("ROLLBACK").await)
                .await
                .map_err(|trouble| line.error(trouble))?;
        }
        Ok(())
    }
}
