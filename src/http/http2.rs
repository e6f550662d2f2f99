//! HTTP/2 of a connection (RFC 9113), which a client gets when it offers it in the TLS handshake
//! (ALPN `h2`).
//!
//! hyper speaks the protocol. This module adds what holds for a connection of HTTP/1.1: a
//! connection without a request ends after a time, and so does one whose head of a request does not
//! end; a client must take its answers at a pace, though its flow control lets it read the socket
//! and take nothing. A client that gives up many requests unanswered is cut (rapid reset): each has
//! cost a handler, which goes on without its caller. The number of requests at once, and the bytes
//! of a head, are settings that the client gets.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use super::connection::{Peer, Served, ServerLimits, answer, asked, in_parts};
use super::outgoing::{Backlog, Parts};
use super::pace::Deadline;

/// Requests of one connection at once.
pub(super) const STREAMS_MAX: u32 = 100;
/// Bytes of request bodies that one connection may send before they are read.
const WINDOW_BYTES: u32 = 64 * 1024;
/// Bytes of one answer that hyper takes before the client does.
const SEND_BYTES: usize = 16 * 1024;
/// Requests that a client may give up unanswered beyond those that it had answered.
const GIVEN_UP_MAX: u32 = 100;
/// How long a connection without a request may stay when the server stops.
const IDLE_MAX_AT_STOP: Duration = Duration::from_secs(1);

/// Serves a connection until it ends, its client breaks a limit, or the shutdown is over.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    served: Served,
    mut shutdown: watch::Receiver<bool>,
    limits: ServerLimits,
) {
    let streams = Arc::new(Streams::of(Arc::clone(&served.backlog)));
    let of_service = Arc::clone(&streams);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut open = Open::of(&of_service);
        let (answering, backlog) = (answer(&served, peer, request), Arc::clone(&served.backlog));
        async move {
            let response = answering.await?;
            open.is_answered = true;
            Ok::<_, Infallible>(in_parts(response, backlog).map(|parts| Taken::by(parts, open)))
        }
    });
    let head_bytes_max = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
    let mut connection = std::pin::pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(head_bytes_max)
            .initial_connection_window_size(WINDOW_BYTES)
            .initial_stream_window_size(WINDOW_BYTES)
            .max_send_buf_size(SEND_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    let (mut is_stopping, mut is_closing) = (false, false);
    loop {
        let idle_max = if is_stopping { IDLE_MAX_AT_STOP } else { limits.head_arrival_max };
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                return ended.unwrap_or_else(|error| tracing::debug!(%error, "a connection ended early"));
            }
            () = asked(&mut shutdown), if !is_stopping => (is_stopping, is_closing) = (true, true),
            fault = streams.fault(idle_max) => match fault {
                Fault::Idle if !is_closing => is_closing = true,
                fault => return tracing::debug!(?fault, "a connection is cut"),
            },
        }
        connection.as_mut().graceful_shutdown();
    }
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// No request was under way for too long.
    Idle,
    /// The client takes an answer too slowly.
    Unread,
    /// The client gave up too many requests.
    GivenUp,
}

/// The requests of one connection.
struct Streams {
    backlog: Arc<Backlog>,
    state: Mutex<State>,
    /// Told when too many requests were given up.
    abused: Notify,
}

struct State {
    /// Requests under way, until the last part of the answer was handed on.
    open: usize,
    /// Since when there is none.
    idle_since: Instant,
    /// Requests given up unanswered, less those that were answered.
    given_up: u32,
    /// Answers that wait for their client.
    unread: HashMap<u64, Unread>,
    next: u64,
}

/// An answer whose next part waits for its client.
struct Unread {
    /// When the client is given up.
    until: Instant,
    /// When it took something for the last time.
    moved_at: Instant,
}

impl Streams {
    fn of(backlog: Arc<Backlog>) -> Self {
        let state = State { open: 0, idle_since: Instant::now(), given_up: 0, unread: HashMap::new(), next: 0 };
        Self { backlog, state: Mutex::new(state), abused: Notify::new() }
    }

    /// Waits until the connection is to end.
    async fn fault(&self, idle_max: Duration) -> Fault {
        let limits = self.backlog.limits();
        let shortest = idle_max.min(limits.pace.idle_max).min(limits.idle_max_when_tight);
        let looks_every = (shortest / 4).max(Duration::from_millis(10));
        loop {
            tokio::select! {
                () = self.abused.notified() => return Fault::GivenUp,
                () = sleep(looks_every) => {}
            }
            if let Some(fault) = self.fault_at(Instant::now(), idle_max) {
                return fault;
            }
        }
    }

    fn fault_at(&self, now: Instant, idle_max: Duration) -> Option<Fault> {
        let state = self.state.lock();
        let when_tight = self.backlog.limits().idle_max_when_tight;
        let is_late =
            |unread: &Unread| now >= unread.until || self.backlog.is_tight() && now >= unread.moved_at + when_tight;
        if state.unread.values().any(is_late) {
            let _why = self.backlog.cut(std::io::ErrorKind::TimedOut, "the client does not take its answer");
            return Some(Fault::Unread);
        }
        (state.open == 0 && now >= state.idle_since + idle_max).then_some(Fault::Idle)
    }
}

/// A request under way.
struct Open {
    streams: Arc<Streams>,
    number: u64,
    is_answered: bool,
}

impl Open {
    fn of(streams: &Arc<Streams>) -> Self {
        let mut state = streams.state.lock();
        state.open += 1;
        state.next += 1;
        Self { streams: Arc::clone(streams), number: state.next, is_answered: false }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.streams.state.lock();
        state.unread.remove(&self.number);
        state.open -= 1;
        if state.open == 0 {
            state.idle_since = Instant::now();
        }
        state.given_up = if self.is_answered { state.given_up.saturating_sub(1) } else { state.given_up + 1 };
        if state.given_up > GIVEN_UP_MAX {
            self.streams.abused.notify_one();
        }
    }
}

/// The body of an answer, whose client must take it at the pace of the backlog.
///
/// hyper asks for a part when the client has room for it. Until then the client is waited for.
struct Taken {
    parts: Parts,
    open: Open,
    /// None while the answer itself is waited for.
    deadline: Option<Deadline>,
    /// Bytes of the part that was handed on last.
    handed: usize,
}

impl Taken {
    fn by(parts: Parts, open: Open) -> Self {
        let mut taken = Self { parts, open, deadline: None, handed: 0 };
        taken.wait_for_client();
        taken
    }

    fn wait_for_client(&mut self) {
        let (now, streams) = (Instant::now(), &self.open.streams);
        let deadline = self.deadline.get_or_insert_with(|| Deadline::begin(streams.backlog.limits().pace, now));
        deadline.moved(self.handed, now);
        let unread = Unread { until: deadline.at(), moved_at: now };
        streams.state.lock().unread.insert(self.open.number, unread);
    }
}

impl Body for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let taken = &mut *self;
        taken.open.streams.state.lock().unread.remove(&taken.open.number);
        let polled = Pin::new(&mut taken.parts).poll_frame(context);
        if polled.is_pending() {
            taken.deadline = None;
            taken.handed = 0;
        }
        let frame = ready!(polled);
        if let Some(Ok(frame)) = &frame {
            taken.wait_for_client();
            taken.handed = frame.data_ref().map_or(0, Bytes::len);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.parts.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::{Request, StatusCode};
    use axum::routing::get;
    use h2::client::{self, SendRequest};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;
    use crate::http::measures::Measures;
    use crate::http::middleware::{Middleware, RequestLimits, Shedding};
    use crate::http::outgoing::{Outgoing, WriteLimits};
    use crate::http::pace::Pace;

    const PATIENCE: Duration = Duration::from_secs(30);
    const LARGE_BYTES: usize = 4 << 20;

    struct Started {
        address: SocketAddr,
        /// Requests for `/slow` so far, and what lets one of them go on.
        slow: Arc<(AtomicUsize, Notify)>,
        shutdown: watch::Sender<bool>,
        /// A connection that ended.
        ended: tokio::sync::mpsc::UnboundedReceiver<()>,
        backlog: Arc<Backlog>,
    }

    async fn serving(limits: ServerLimits, writes: WriteLimits, admits: bool) -> Started {
        let slow = Arc::<(AtomicUsize, Notify)>::default();
        let entered = Arc::clone(&slow);
        let slowly = move || async move {
            entered.0.fetch_add(1, Ordering::Relaxed);
            entered.1.notified().await;
            "slow"
        };
        let large = Bytes::from(vec![b'x'; LARGE_BYTES]);
        let router = Router::new()
            .route("/", get(|| async { "fast" }))
            .route("/slow", get(slowly))
            .route("/large", get(|| async { large }));
        let most = RequestLimits {
            most: 10_000,
            shedding: Shedding { admits: Box::new(move |_| admits), ..Shedding::none() },
            is_current: Box::new(|| true),
            lapsed: None,
        };
        let middleware = Middleware::new(most, true, Measures::default()).unwrap();
        let router = middleware.clone().before(router);
        let backlog = Arc::new(Backlog::new(writes));
        let served = Served { router, middleware: Some(middleware), backlog: Arc::clone(&backlog), tls: None };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((shutdown, watched), (ends, ended)) = (watch::channel(false), tokio::sync::mpsc::unbounded_channel());
        tokio::spawn(async move {
            while let Ok((stream, from)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let stream = Outgoing::new(stream, Arc::clone(&served.backlog));
                let (served, watched, ends) = (served.clone(), watched.clone(), ends.clone());
                tokio::spawn(async move {
                    serve(stream, Peer::from(from.ip()), served, watched, limits).await;
                    let _nobody_waits = ends.send(());
                });
            }
        });
        Started { address, slow, shutdown, ended, backlog }
    }

    async fn by_default() -> Started {
        serving(ServerLimits::default(), WriteLimits::default(), true).await
    }

    impl Started {
        /// A client that takes this many bytes of an answer unasked.
        async fn client(&self, window: u32) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
            let stream = TcpStream::connect(self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut builder = client::Builder::new();
            let (sender, connection) = builder.initial_window_size(window).handshake(stream).await.unwrap();
            (sender, tokio::spawn(connection))
        }

        async fn one_has_ended(&mut self) {
            timeout(PATIENCE, self.ended.recv()).await.expect("the connection ends");
        }
    }

    fn to(path: &str) -> Request<()> {
        Request::get(format!("http://a{path}")).body(()).unwrap()
    }

    /// Reads an answer whole, and gives room for more as it does so.
    async fn read(answer: h2::client::ResponseFuture) -> Result<(StatusCode, usize), h2::Error> {
        let (head, mut body) = answer.await?.into_parts();
        let mut length = 0;
        while let Some(data) = body.data().await {
            let data = data?;
            length += data.len();
            body.flow_control().release_capacity(data.len())?;
        }
        Ok((head.status, length))
    }

    #[tokio::test]
    async fn a_connection_has_many_requests_at_once_and_no_more_than_the_limit() {
        let started = by_default().await;
        let (sender, _connection) = started.client(65_535).await;
        let mut sender = sender.ready().await.unwrap();
        let first = sender.send_request(to("/"), true).unwrap().0;
        assert_eq!(read(first).await.unwrap(), (StatusCode::OK, 4));
        assert_eq!(sender.current_max_send_streams(), STREAMS_MAX as usize, "the client was told");
        let mut large = tokio::task::JoinSet::new();
        (0..8).for_each(|_| drop(large.spawn(read(sender.send_request(to("/large"), true).unwrap().0))));
        while let Some(answer) = large.join_next().await {
            assert_eq!(answer.unwrap().unwrap(), (StatusCode::OK, LARGE_BYTES));
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_request_and_a_head_that_never_ends_are_given_up() {
        let limits = ServerLimits { head_arrival_max: Duration::from_millis(100), ..ServerLimits::default() };
        let mut started = serving(limits, WriteLimits::default(), true).await;
        let (sender, connection) = started.client(65_535).await;
        started.one_has_ended().await;
        connection.await.unwrap().unwrap();
        drop(sender);
        let mut raw = TcpStream::connect(started.address).await.unwrap();
        // Settings, and the first byte of a head.
        raw.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82")
            .await
            .unwrap();
        started.one_has_ended().await;
        let mut silent = TcpStream::connect(started.address).await.unwrap();
        started.one_has_ended().await;
        assert!(silent.read_to_end(&mut Vec::new()).await.unwrap_or_default() < 100);
        // A request under way is waited for, however long it takes.
        let (mut sender, _connection) = started.client(65_535).await;
        let slow = sender.send_request(to("/slow"), true).unwrap().0;
        sleep(3 * limits.head_arrival_max).await;
        started.slow.1.notify_one();
        assert_eq!(read(slow).await.unwrap(), (StatusCode::OK, 4));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_cut_though_it_reads() {
        let short = Duration::from_millis(200);
        let pace = Pace { idle_max: short, bytes_per_second: 1_024 };
        let writes = WriteLimits { pace, waiting_max: 64 << 20, idle_max_when_tight: short };
        for window in [0, 65_535] {
            let mut started = serving(ServerLimits::default(), writes, true).await;
            let (mut sender, connection) = started.client(window).await;
            let _answer = sender.send_request(to("/large"), true).unwrap().0.await.unwrap();
            started.one_has_ended().await;
            assert_eq!(started.backlog.cuts(), 1);
            let _however = connection.await.unwrap();
            while started.backlog.waiting() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_client_that_gives_up_its_requests_is_cut_and_others_are_not() {
        let mut started = by_default().await;
        let (sender, connection) = started.client(65_535).await;
        let (other, _connection) = started.client(65_535).await;
        let mut sender = sender;
        let mut sent = 0;
        while let Ok(mut ready) = sender.clone().ready().await {
            let Ok((_answer, mut request)) = ready.send_request(to("/slow"), true) else { break };
            sent += 1;
            assert!(sent < 10_000, "it goes on for ever");
            // The handler has begun when the request is given up.
            let begun = async {
                while started.slow.0.load(Ordering::Relaxed) < sent && !connection.is_finished() {
                    tokio::task::yield_now().await;
                }
            };
            timeout(PATIENCE, begun).await.unwrap();
            request.send_reset(h2::Reason::CANCEL);
            sender = ready;
        }
        started.one_has_ended().await;
        assert!(sent <= GIVEN_UP_MAX as usize + 20, "{sent} were begun");
        let answer = other.ready().await.unwrap().send_request(to("/"), true).unwrap().0;
        assert_eq!(read(answer).await.unwrap(), (StatusCode::OK, 4));
    }

    #[tokio::test]
    async fn shutdown_answers_what_is_under_way_and_ends_what_is_idle() {
        let mut started = by_default().await;
        let (_idle, idle_connection) = started.client(65_535).await;
        let (mut busy, busy_connection) = started.client(65_535).await;
        let slow = busy.send_request(to("/slow"), true).unwrap().0;
        while started.slow.0.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        started.shutdown.send(true).unwrap();
        started.one_has_ended().await;
        idle_connection.await.unwrap().unwrap();
        assert!(!busy_connection.is_finished());
        started.slow.1.notify_one();
        assert_eq!(read(slow).await.unwrap(), (StatusCode::OK, 4));
        started.one_has_ended().await;
        assert!(busy.ready().await.is_err(), "it takes no more requests");
    }

    #[tokio::test]
    async fn heads_have_a_limit_and_load_is_shed() {
        let started = by_default().await;
        let (mut sender, _connection) = started.client(65_535).await;
        let mut status =
            async |request: Request<()>| read(sender.send_request(request, true).unwrap().0).await.unwrap().0;
        let with = |name: &str, value: &str| Request::get("http://a/").header(name, value).body(()).unwrap();
        let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        assert_eq!(status(with("x", &"x".repeat(60 << 10))).await, StatusCode::OK);
        assert_eq!(status(with("x", &"x".repeat(70 << 10))).await, too_large);
        let mut many = to("/");
        for index in 0..101 {
            many.headers_mut().append("x", index.into());
        }
        assert_eq!(status(many).await, too_large);
        assert_eq!(status(with("host", "a")).await, StatusCode::OK);
        assert_eq!(status(with("host", "b")).await, StatusCode::BAD_REQUEST);
        let overloaded = serving(ServerLimits::default(), WriteLimits::default(), false).await;
        let (mut sender, _connection) = overloaded.client(65_535).await;
        let refused = sender.send_request(to("/"), true).unwrap().0.await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
    }
}
