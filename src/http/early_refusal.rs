//! Early refusal: load shedding at the socket, before HTTP is parsed and a request is routed.
//!
//! While more commands are under way than the engine bears, most requests are refused. A refusal by
//! way of hyper costs a third of a charge, so that refusing would take the time that charges need.
//! [`EarlyRefusal`] stands between hyper and the socket of an HTTP/1.1 connection. It answers 503
//! itself where a request arrives whole and in a plain form; hyper never sees such a request. All
//! other requests pass, and are refused by [`super::middleware`] after hyper has parsed them.
//!
//! **Architecture Invariant:** a request is refused here only when no other request of the
//! connection is under way, all earlier answers are written, and hyper holds no byte of it. Else
//! answers would be in another order than their requests.
//!
//! It also limits how long the head of a request may take to arrive, its idle time before included.
//! hyper's own limit would count the requests that it does not see as idle time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::middleware::Middleware;

/// Headers that a request may have to be refused here; one with more passes.
const HEADERS_MAX: usize = 32;

/// Turn of a connection: who speaks next.
#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU8);

/// The client: no request is under way.
const CLIENT: u8 = 0;
/// The server: a request is under way, or its answer is not handed to hyper whole.
const SERVER: u8 = 1;
/// The whole answer was handed to hyper, which may still have to write it.
const ANSWERED: u8 = 2;

impl Turn {
    /// A request has arrived. Its answer is whole once the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> ServersTurn {
        self.0.store(SERVER, Ordering::Relaxed);
        ServersTurn(Arc::clone(self))
    }

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::Relaxed) == state
    }
}

/// Guard of a request that is under way.
#[derive(Debug)]
pub(super) struct ServersTurn(Arc<Turn>);

impl Drop for ServersTurn {
    fn drop(&mut self) {
        self.0.0.store(ANSWERED, Ordering::Relaxed);
    }
}

/// Stream of a connection on which requests are refused before hyper sees them.
pub(super) struct EarlyRefusal<S> {
    stream: S,
    middleware: Option<Middleware>,
    turn: Arc<Turn>,
    /// True while each request so far arrived whole and by itself, so that hyper holds nothing of
    /// the next one.
    is_in_step: bool,
    /// Refusals that are not written yet.
    refusals: Vec<u8>,
    head_arrival_max: Duration,
    head_due: Instant,
    head_timer: Option<Pin<Box<Sleep>>>,
}

impl<S> EarlyRefusal<S> {
    /// A stream whose requests pass through this middleware; without one none is refused.
    pub(super) fn new(stream: S, middleware: Option<Middleware>, turn: Arc<Turn>, head_arrival_max: Duration) -> Self {
        let head_due = Instant::now() + head_arrival_max;
        let (refusals, head_timer) = Default::default();
        Self { stream, middleware, turn, is_in_step: true, refusals, head_arrival_max, head_due, head_timer }
    }

    /// Looks at bytes that begin a request; true when the request is refused, so that hyper does
    /// not get them.
    fn refuses(&mut self, bytes: &[u8]) -> bool {
        let Some(middleware) = self.middleware.as_ref().filter(|_| self.is_in_step) else { return false };
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let Some(request) = PlainRequest::read(bytes, &mut headers) else {
            self.is_in_step = false;
            return false;
        };
        if !middleware.is_refusing() || !request.is_refusable() {
            return false;
        }
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
        let Some(refusal) = middleware.refusal(&method, request.path, || request.credentials()) else { return false };
        self.refusals.extend_from_slice(&refusal);
        self.head_due = Instant::now() + self.head_arrival_max;
        true
    }

    /// Fails once the head of a request takes too long.
    fn wait_for_head(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let due = self.head_due;
        let timer = self.head_timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= due {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no head of a request arrived in time"));
            }
            timer.as_mut().reset(due);
        }
        Ok(())
    }
}

impl<S: AsyncWrite + Unpin> EarlyRefusal<S> {
    /// Writes refusals that wait.
    fn poll_refusals(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusals.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.refusals))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusals.drain(..written);
            if self.refusals.is_empty() {
                ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EarlyRefusal<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.turn.is(CLIENT) {
            return Pin::new(&mut this.stream).poll_read(context, into);
        }
        loop {
            ready!(this.poll_refusals(context))?;
            let before = into.filled().len();
            if Pin::new(&mut this.stream).poll_read(context, into)?.is_pending() {
                this.wait_for_head(context)?;
                return Poll::Pending;
            }
            if into.filled().len() == before || !this.refuses(&into.filled()[before..]) {
                return Poll::Ready(Ok(()));
            }
            into.set_filled(before);
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for EarlyRefusal<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_refusals(context))?;
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusals(context))?;
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        // hyper flushes when it has written all that it has.
        if this.turn.is(ANSWERED) {
            this.turn.0.store(CLIENT, Ordering::Relaxed);
            this.head_due = Instant::now() + this.head_arrival_max;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusals(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

/// A request of HTTP/1.1 that has arrived whole, and nothing after it.
struct PlainRequest<'a, 'h> {
    method: &'a str,
    path: &'a str,
    headers: &'h [httparse::Header<'a>],
}

impl<'a, 'h> PlainRequest<'a, 'h> {
    /// Reads a request; none when the bytes are anything else, or its length cannot be told.
    fn read(bytes: &'a [u8], headers: &'h mut [httparse::Header<'a>]) -> Option<Self> {
        let mut request = httparse::Request::new(headers);
        let Ok(httparse::Status::Complete(head)) = request.parse(bytes) else { return None };
        let (method, path) = (request.method?, request.path?);
        let request = Self { method, path, headers: request.headers };
        let mut lengths = request.values("content-length");
        let body = match (lengths.next(), lengths.next()) {
            (None, _) => 0,
            (Some(length), None) if length.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(length).ok()?.parse().ok()?
            }
            _ => return None,
        };
        let is_framed = ["transfer-encoding", "expect", "upgrade"].iter().any(|name| request.has(name));
        (!is_framed && bytes.len() - head == body).then_some(request)
    }

    fn values(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'h> {
        let headers: &'h [httparse::Header<'a>] = self.headers;
        headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    fn has(&self, name: &'static str) -> bool {
        self.values(name).next().is_some()
    }

    /// True when the answer needs nothing of it but its path: it names one host, and has no id, no
    /// trace and no wish for the connection.
    fn is_refusable(&self) -> bool {
        let is_plain = self.path.starts_with('/') && !self.path.contains(['"', '\\']);
        let is_special = ["connection", "x-request-id", "traceparent"].iter().any(|name| self.has(name));
        let mut hosts = self.values("host");
        let host = hosts.next().filter(|host| host.iter().all(super::middleware::is_in_host));
        is_plain && !is_special && host.is_some() && hosts.next().is_none()
    }

    /// Headers that name the caller.
    fn credentials(&self) -> HeaderMap {
        let mut credentials = HeaderMap::new();
        for name in ["authorization", "token"] {
            for value in self.values(name).filter_map(|value| HeaderValue::from_bytes(value).ok()) {
                credentials.append(HeaderName::from_static(name), value);
            }
        }
        credentials
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicBool;

    use axum::Router;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{Notify, watch};

    use super::*;
    use crate::http::connection::{Served, ServerLimits};
    use crate::http::measures::Measures;
    use crate::http::middleware::{RequestLimits, Shedding};
    use crate::http::server;

    struct Started {
        address: std::net::SocketAddr,
        is_full: Arc<AtomicBool>,
        release: Arc<Notify>,
        _shutdown: watch::Sender<bool>,
    }

    /// A server that lets in requests of the token `fair` only while it is full.
    async fn started() -> Started {
        let (is_full, release) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let [full, refusing] = [(); 2].map(|()| Arc::clone(&is_full));
        let shedding = Shedding {
            is_full: Box::new(move || full.load(Ordering::SeqCst)),
            admits: Box::new(move |headers| {
                !refusing.load(Ordering::SeqCst) || headers.get("token").is_some_and(|token| token == "fair")
            }),
        };
        let limits = RequestLimits { most: 8, shedding, is_current: Box::new(|| true), lapsed: None };
        let middleware = Middleware::new(limits, true, Measures::default()).unwrap();
        let waiting = Arc::clone(&release);
        let router = Router::new().route("/", post(|body: String| async move { format!("<{body}>") })).route(
            "/slow",
            post(move || async move {
                waiting.notified().await;
                "slow"
            }),
        );
        let router = middleware.clone().before(router);
        let served = Served { router, middleware: Some(middleware), backlog: Arc::default(), tls: None };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_shutdown, watched) = watch::channel(false);
        tokio::spawn(server::run(listener, served, watched, ServerLimits::default()));
        Started { address, is_full, release, _shutdown }
    }

    fn request(path: &str, headers: &str, body: &str) -> String {
        format!("POST {path} HTTP/1.1\r\nhost: a\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Reads one answer; gives its status, its headers in order of their names, and its body.
    async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> (u16, Vec<(String, String)>, String) {
        let mut bytes = Vec::new();
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut response = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(head) = response.parse(&bytes).unwrap() {
                let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
                let mut named: Vec<_> =
                    response.headers.iter().map(|header| (header.name.to_lowercase(), text(header.value))).collect();
                named.sort();
                let length = named.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
                let status = response.code.unwrap();
                let mut body = bytes.split_off(head);
                while body.len() < length {
                    body.push(stream.read_u8().await.unwrap());
                }
                assert_eq!(body.len(), length);
                return (status, named, text(&body));
            }
            bytes.push(stream.read_u8().await.expect("an answer"));
        }
    }

    async fn asked(stream: &mut TcpStream, text: &str) -> (u16, Vec<(String, String)>, String) {
        stream.write_all(text.as_bytes()).await.unwrap();
        answer(stream).await
    }

    /// hyper writes this header, and a refusal at the socket has none.
    fn is_early(headers: &[(String, String)]) -> bool {
        !headers.iter().any(|(name, _)| name == "date")
    }

    #[tokio::test]
    async fn a_refusal_at_the_socket_is_the_answer_that_the_middleware_gives() {
        let server = started().await;
        server.is_full.store(true, Ordering::SeqCst);
        let stream = &mut TcpStream::connect(server.address).await.unwrap();
        let (status, headers, body) = asked(stream, &request("/thing?a=b", "", "x")).await;
        assert!(is_early(&headers) && status == 503);
        // A header that may ask for something of the connection goes to hyper.
        let (late_status, mut late, late_body) =
            asked(stream, &request("/thing?a=b", "connection: keep-alive\r\n", "x")).await;
        assert!(!is_early(&late) && late_status == 503);
        late.retain(|(name, _)| name != "date");
        let id =
            |headers: &[(String, String)]| headers.iter().find(|(name, _)| name == "x-request-id").unwrap().1.clone();
        let (early_id, late_id) = (id(&headers), id(&late));
        assert_ne!(early_id, late_id);
        let rename = |text: String| text.replace(&late_id, &early_id);
        assert_eq!(body, rename(late_body));
        let late: Vec<_> = late.into_iter().map(|(name, value)| (name, rename(value))).collect();
        assert_eq!(headers, late);
    }

    #[tokio::test]
    async fn what_is_let_in_passes_on_the_same_connection() {
        let server = started().await;
        let stream = &mut TcpStream::connect(server.address).await.unwrap();
        for is_full in [false, true, true, false, true] {
            server.is_full.store(is_full, Ordering::SeqCst);
            let (status, headers, body) = asked(stream, &request("/", "", "own")).await;
            assert_eq!((status == 503, is_early(&headers), body == "<own>"), (is_full, is_full, !is_full));
            let (status, _, body) = asked(stream, &request("/", "token: fair\r\n", "fair")).await;
            assert_eq!((status, body.as_str()), (200, "<fair>"), "below its share of the limit");
        }
    }

    #[tokio::test]
    async fn requests_in_another_form_pass_and_are_refused_after_them() {
        let chunked = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        let forms = [
            request("/", "x-request-id: own\r\n", ""),
            request("/", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n", ""),
            request("/\"", "", ""),
            request("/", "host: b\r\n", ""),
            "POST / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n".to_owned(),
            chunked.to_owned(),
        ];
        let server = started().await;
        server.is_full.store(true, Ordering::SeqCst);
        for form in forms {
            let stream = &mut TcpStream::connect(server.address).await.unwrap();
            let (status, headers, _) = asked(stream, &form).await;
            assert!(!is_early(&headers) && (400..=503).contains(&status), "{form}");
        }
    }

    #[tokio::test]
    async fn answers_keep_the_order_of_their_requests() {
        let server = started().await;
        let stream = &mut TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request("/slow", "", "").as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.is_full.store(true, Ordering::SeqCst);
        // It arrives whole while another is under way.
        stream.write_all(request("/", "", "").as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.release.notify_one();
        assert_eq!(answer(stream).await.2, "slow");
        assert_eq!(answer(stream).await.0, 503);

        // hyper holds the begin of the second request, and the rest of it looks like a whole one.
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let first = request("/", "token: fair\r\n", "first") + "POST / HTTP/1.1\r\nx-part: ";
        stream.write_all(first.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.2, "<first>");
        stream.write_all(request("/other", "", "").as_bytes()).await.unwrap();
        let (status, headers, body) = answer(&mut stream).await;
        assert!(status == 503 && !is_early(&headers) && !body.contains("other"), "{body}");
    }

    #[tokio::test]
    async fn a_refused_request_is_no_idle_time_and_a_head_must_arrive_in_time() {
        let limits = RequestLimits {
            most: 8,
            shedding: Shedding { is_full: Box::new(|| true), admits: Box::new(|_| false) },
            is_current: Box::new(|| true),
            lapsed: None,
        };
        let middleware = Middleware::new(limits, true, Measures::default()).unwrap();
        let (mut client, server) = tokio::io::duplex(4_096);
        let mut stream = EarlyRefusal::new(server, Some(middleware), Arc::default(), Duration::from_secs(3_600));
        let mut bytes = [0; 64];
        let past = Instant::now() - Duration::from_secs(1);
        for refused in [true, false] {
            (stream.head_due, stream.head_timer) = (past, None);
            if refused {
                client.write_all(request("/", "", "").as_bytes()).await.unwrap();
            }
            let mut into = ReadBuf::new(&mut bytes);
            let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_read(context, &mut into))).await;
            match polled {
                Poll::Pending => assert!(refused && stream.head_due > past),
                Poll::Ready(ended) => assert!(!refused && ended.unwrap_err().kind() == io::ErrorKind::TimedOut),
            }
        }
    }
}
