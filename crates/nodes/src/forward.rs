//! Requests to the other processes: connections that are used again, the headers of a hop, and what
//! is known when no answer came. A new connection is used once the other process has answered on it
//! ([`super::peer_greeting`]).

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER};
use axum::http::header::{TRANSFER_ENCODING, UPGRADE};
use axum::http::request::Parts;
use axum::http::{Extensions, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use store::Partition;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::measures::PeerMeasures;
use super::peer_greeting::{greet, no_handshake};
use super::peer_token::{PeerToken, TOKEN};
use super::settings::host;
use web::client::dial;
use web::openapi::Listener;
use web::request_context::RequestContext;
use web::server::{OverTls, Peer};
use web::session::Session;
use web::tls::MutualTls;

/// How long a connection to another process may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Deadline for the other process to send its name.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// Most connections to one process at a time; each has one request at a time.
const CONNECTIONS_MAX: usize = 1_024;
/// A connection that was unused for this long is not used again. The listener closes it later than
/// that, so no request meets its end.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// Which listener a request came to.
const LISTENER: HeaderName = HeaderName::from_static("centavo-listener");
/// The partition that a request needs, by its number.
const PARTITION: HeaderName = HeaderName::from_static("centavo-needs-partition");
/// The address that a request came from.
const CALLER: HeaderName = HeaderName::from_static("centavo-caller");
/// There where the request came over TLS.
const OVER_TLS: HeaderName = HeaderName::from_static("centavo-over-tls");
/// The session of an operator, both ways.
const SESSION: HeaderName = HeaderName::from_static("centavo-session");
/// All headers that only the processes of an installation send each other.
const OF_THE_HOP: [HeaderName; 6] = [LISTENER, PARTITION, CALLER, OVER_TLS, TOKEN, SESSION];

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Headers of one connection (RFC 9110, 7.6.1), beside those that `Connection` names. The length
/// is written anew.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Message of one process to another, sent with the request.
#[derive(Debug)]
pub struct Hop {
    /// The listener to which the request came.
    pub listener: Listener,
    /// The partition that it needs now. What opens an account without a key names none by itself.
    pub partition: Partition,
    /// Where it came from.
    pub caller: Option<Peer>,
    /// Whether it came over TLS.
    pub over_tls: bool,
    /// The session of the operator.
    pub session: Option<Session>,
}

impl Hop {
    /// Reads the message of another process, and removes it from the headers. None where the token
    /// is not right, or the rest has not its form.
    pub fn read(headers: &mut HeaderMap, token: &PeerToken) -> Option<Self> {
        if !token.opens(headers) {
            return None;
        }
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let listener = match text(&LISTENER)? {
            "merchants" => Listener::Merchants,
            "operators" => Listener::Operators,
            _ => return None,
        };
        let partition = Partition(text(&PARTITION)?.parse().ok()?);
        let caller = text(&CALLER).map(str::parse::<IpAddr>).transpose().ok()?.map(Peer::from);
        let session = text(&SESSION).map(serde_json::from_str).transpose().ok()?;
        let hop = Hop { listener, partition, caller, over_tls: headers.contains_key(OVER_TLS), session };
        OF_THE_HOP.iter().for_each(|name| drop(headers.remove(name)));
        Some(hop)
    }

    /// The headers of a request for another process: those of the caller without what is of its
    /// connection, or only looks like a hop's.
    fn headers(&self, of_caller: &HeaderMap, token: &PeerToken) -> HeaderMap {
        let mut headers = of_caller.clone();
        remove_of_connection(&mut headers);
        OF_THE_HOP.iter().for_each(|name| drop(headers.remove(name)));
        let listener = match self.listener {
            Listener::Merchants => "merchants",
            Listener::Operators => "operators",
        };
        headers.insert(LISTENER, HeaderValue::from_static(listener));
        token.put_in(&mut headers);
        headers.insert(PARTITION, HeaderValue::from(self.partition.0));
        // HTTP/1.0 may leave it out.
        headers.entry(HOST).or_insert(HeaderValue::from_static(""));
        let caller = self.caller.map(|Peer(address)| address.to_string());
        for (name, value) in [(CALLER, caller), (SESSION, self.session.as_ref().and_then(written))] {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
        if self.over_tls {
            headers.insert(OVER_TLS, HeaderValue::from_static("yes"));
        }
        RequestContext::current(|context| drop(headers.insert(X_REQUEST_ID, context.id.clone())));
        headers
    }

    /// What the request had at this process's listener.
    pub(super) fn of(listener: Listener, partition: Partition, extensions: &Extensions) -> Self {
        let (caller, over_tls) = (extensions.get().copied(), extensions.get::<OverTls>().is_some());
        Self { listener, partition, caller, over_tls, session: None }
    }
}

/// A session as a header has it.
fn written(session: &Session) -> Option<String> {
    serde_json::to_string(session).ok()
}

/// Sends a session back with an answer.
pub(super) fn return_session(headers: &mut HeaderMap, session: &Session) {
    if let Some(value) = written(session).and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(SESSION, value);
    }
}

/// Takes the session that came back out of the headers of an answer.
pub(super) fn returned_session(headers: &mut HeaderMap) -> Option<Session> {
    serde_json::from_slice(headers.remove(SESSION)?.as_bytes()).ok()
}

fn remove_of_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> = named.flat_map(|value| value.split(',')).map(str::trim).map(str::to_owned).collect();
    named.iter().for_each(|name| drop(headers.remove(name.as_str())));
    OF_THE_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
}

/// What became of a request to another process.
#[derive(Debug)]
pub enum ForwardOutcome {
    /// It was answered.
    Answered(Response<Body>),
    /// Nothing of it was sent, so it may be sent again.
    Not,
    /// It was sent, at least in part, and not answered: it may have been carried out.
    Lost,
}

/// A request that can be sent more than once.
pub struct Sendable<'a> {
    /// Method, path and headers.
    pub parts: &'a Parts,
    /// The body.
    pub body: Bytes,
    /// What goes with it.
    pub hop: Hop,
}

type Connection = SendRequest<Full<Bytes>>;

/// The connections to one process.
struct Pool {
    /// Idle connections, the last used at the end.
    idle: Mutex<VecDeque<(Connection, Instant)>>,
    room: Arc<Semaphore>,
    /// Whether the log has said that the process does not answer.
    is_silent: AtomicBool,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            is_silent: AtomicBool::default(),
        }
    }
}

impl Pool {
    /// The connection that was used last, if that is not too long ago.
    fn take(&self) -> Option<Connection> {
        let (connection, since) = self.idle.lock().pop_back()?;
        (since.elapsed() < IDLE_MAX).then_some(connection)
    }

    /// Keeps a connection, and closes those that were unused for too long.
    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        while idle.front().is_some_and(|(_, since)| since.elapsed() >= IDLE_MAX) {
            idle.pop_front();
        }
        idle.push_back((connection, Instant::now()));
    }

    /// Says in the log that the process does not answer: once until it answers again.
    fn note_silence(&self, address: &str, error: &dyn std::fmt::Display) {
        if !self.is_silent.swap(true, Ordering::AcqRel) {
            tracing::warn!(address, %error, "another node does not answer; requests of its partitions wait, and fail");
        }
    }

    /// Says in the log that a process which did not answer does so again.
    fn note_answer(&self, address: &str) {
        if self.is_silent.swap(false, Ordering::AcqRel) {
            tracing::info!(address, "the other node answers again");
        }
    }
}

/// Sends requests to the other processes.
pub struct PeerClient {
    token: PeerToken,
    tls: Option<Arc<MutualTls>>,
    measures: PeerMeasures,
    pools: Mutex<HashMap<String, Arc<Pool>>>,
}

impl PeerClient {
    /// A client that proves itself with this token; with `tls` it shows a certificate too.
    pub fn new(token: PeerToken, tls: Option<Arc<MutualTls>>, measures: PeerMeasures) -> Self {
        Self { token, tls, measures, pools: Mutex::default() }
    }

    /// Sends a request to a process and waits for the head of the answer, as long as `abandoned`
    /// does not end. A connection has until `deadline` to be free or made.
    pub async fn send(
        &self,
        address: &str,
        request: Sendable<'_>,
        deadline: Instant,
        abandoned: impl Future<Output = ()>,
    ) -> ForwardOutcome {
        let began = Instant::now();
        let sent = self.sent(address, request, deadline, abandoned).await;
        let outcome = match &sent {
            ForwardOutcome::Not => "not_sent",
            ForwardOutcome::Lost => "lost",
            ForwardOutcome::Answered(answer) if answer.status() == StatusCode::MISDIRECTED_REQUEST => "misdirected",
            ForwardOutcome::Answered(answer) => match answer.status().as_u16() / 100 {
                2 => "2xx",
                3 => "3xx",
                4 => "4xx",
                _ => "5xx",
            },
        };
        self.measures.tried(outcome, began.elapsed());
        tracing::debug!(address, outcome, "a request was sent to another process");
        sent
    }

    async fn sent(
        &self,
        address: &str,
        Sendable { parts, body, hop }: Sendable<'_>,
        deadline: Instant,
        abandoned: impl Future<Output = ()>,
    ) -> ForwardOutcome {
        let pool = Arc::clone(self.pools.lock().entry(address.to_owned()).or_default());
        let Ok(Ok(room)) = timeout_at(deadline, Arc::clone(&pool.room).acquire_owned()).await else {
            return ForwardOutcome::Not;
        };
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = path.parse::<Uri>() else { return ForwardOutcome::Not };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = hop.headers(&parts.headers, &self.token);
        let Some(mut connection) = self.connection(address, &pool, deadline).await else { return ForwardOutcome::Not };
        let answer = tokio::select! {
            biased;
            answer = connection.try_send_request(request) => answer,
            () = abandoned => return ForwardOutcome::Lost,
        };
        match answer {
            Ok(answer) => {
                pool.note_answer(address);
                ForwardOutcome::Answered(streamed(answer, ConnectionInUse { connection, pool, _room: room }))
            }
            Err(mut error) => {
                // The request comes back where nothing of it was written.
                let sent = error.take_message().map_or(ForwardOutcome::Lost, |_unsent| ForwardOutcome::Not);
                if matches!(sent, ForwardOutcome::Lost) {
                    pool.note_silence(address, error.error());
                }
                sent
            }
        }
    }

    /// A connection that is ready for a request: one that was used before, or a new one.
    async fn connection(&self, address: &str, pool: &Pool, deadline: Instant) -> Option<Connection> {
        while let Some(mut connection) = pool.take() {
            match timeout(CONNECT_MAX, connection.ready()).await {
                Ok(Ok(())) => return Some(connection),
                Ok(Err(_closed)) => {}
                Err(_) => break,
            }
        }
        match timeout_at(deadline, self.connect(address)).await {
            Ok(Ok((connection, _process))) => Some(connection),
            Ok(Err(error)) => {
                pool.note_silence(address, &error);
                None
            }
            Err(_) => {
                pool.note_silence(address, &too_long("no connection was made in time"));
                None
            }
        }
    }

    /// The name of the process that answers at an address, on a connection of its own.
    pub async fn process_at(&self, address: &str) -> io::Result<String> {
        Ok(self.connect(address).await?.1)
    }

    /// Makes a connection on which both understand each other, and gives the other's name.
    async fn connect(&self, address: &str) -> io::Result<(Connection, String)> {
        let made = timeout(CONNECT_MAX, self.connected(address)).await;
        let mut connection = made.map_err(|_| too_long("the connection took too long to be made"))??;
        let greeted = timeout(GREETING_MAX, greet(&mut connection, &self.token)).await;
        let process = greeted.map_err(|_| too_long("a connection was made, and nobody answers on it"))??;
        Ok((connection, process))
    }

    async fn connected(&self, address: &str) -> io::Result<Connection> {
        let tls = self.tls.as_ref().map(|tls| (tls.client(), host(address).unwrap_or_default().to_owned()));
        dial(address, tls).await.map_err(no_handshake)
    }
}

fn too_long(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

#[cfg(test)]
impl PeerClient {
    /// How many tries have had an outcome.
    pub(super) fn tries(&self, outcome: &'static str) -> u64 {
        self.measures.tries(outcome)
    }

    /// TLS of both sides.
    pub(super) fn tls(&self) -> Option<Arc<MutualTls>> {
        self.tls.clone()
    }

    /// How many connections to a process wait for a request.
    pub(super) fn idle(&self, address: &str) -> usize {
        self.pools.lock().get(address).map_or(0, |pool| pool.idle.lock().len())
    }
}

/// An answer whose body keeps its connection until it ends.
fn streamed(answer: Response<Incoming>, used: ConnectionInUse) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    let length = parts.headers.get(CONTENT_LENGTH).cloned();
    remove_of_connection(&mut parts.headers);
    // An answer to HEAD has the length of a body that it does not have.
    length.into_iter().for_each(|length| drop(parts.headers.insert(CONTENT_LENGTH, length)));
    parts.extensions = Extensions::new();
    let mut body = AnswerBody { body, used: Some(used) };
    if body.body.is_end_stream() {
        body.ended();
    }
    Response::from_parts(parts, Body::new(body))
}

/// A connection with a request.
struct ConnectionInUse {
    connection: Connection,
    pool: Arc<Pool>,
    _room: OwnedSemaphorePermit,
}

struct AnswerBody {
    body: Incoming,
    used: Option<ConnectionInUse>,
}

impl AnswerBody {
    /// Gives the connection back. One whose answer is not read to its end is closed instead.
    fn ended(&mut self) {
        if let Some(ConnectionInUse { connection, pool, .. }) = self.used.take()
            && !connection.is_closed()
        {
            pool.keep(connection);
        }
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.ended();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
