//! HTTP server: accepts connections, serves HTTP/1.1 on them, with TLS or without, and ends them in
//! good order.
//!
//! The head of a request must arrive within a time limit, the idle time before it included. The
//! number of connections is bounded, in all and of one address
//! ([`super::guards::connection_limits`]). A client that does not read is cut
//! ([`super::outgoing`]). At shutdown no connection is accepted, idle connections are closed, and
//! requests under way are answered as long as the drain lasts.
//!
//! The loop is written by hand because `axum::serve` has neither these limits nor a deadline for
//! the drain, and its connections cannot be cut one by one.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::{answer, asked, in_parts};
use super::guards::connection_limits::{ConnectionPlace, ConnectionTable, NoPlace};
use super::outgoing::Outgoing;

pub use super::connection::{ListenerService, OverTls, Peer, ServerLimits};

/// How the connections ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainResult {
    /// Connections that were still busy when the drain was over, and were cut.
    pub cut: usize,
}

/// Serves a router on a listener until `shutdown` is true, or its sender is gone.
pub async fn run(
    listener: TcpListener,
    served: impl Into<ListenerService>,
    mut shutdown: watch::Receiver<bool>,
    limits: ServerLimits,
) -> DrainResult {
    let served = served.into();
    let connections = ConnectionTable::new(&limits);
    let mut serving = JoinSet::new();
    // A connection that was accepted and has no place yet.
    let mut waiting: Option<(TcpStream, Peer)> = None;
    loop {
        if let Some((stream, peer)) = waiting.take() {
            match connections.enter(peer) {
                Ok(place) => {
                    serving.spawn(connected(stream, peer, place, served.clone(), shutdown.clone(), limits));
                }
                Err(NoPlace::Full) => waiting = Some((stream, peer)),
                Err(NoPlace::Share) => tracing::debug!(?peer, "an address has its share of connections"),
            }
        }
        tokio::select! {
            biased;
            _ = asked(&mut shutdown) => break,
            Some(_) = serving.join_next() => {}
            () = connections.one_is_idle(), if waiting.is_some() => {}
            accepted = listener.accept(), if waiting.is_none() => match accepted {
                Ok((stream, address)) => waiting = Some((stream, Peer::from(address.ip()))),
                Err(error) => recover(error).await,
            },
        }
    }
    drop(listener);
    let ended = timeout(limits.drain_max, async { while serving.join_next().await.is_some() {} }).await;
    let cut = if ended.is_ok() { 0 } else { serving.len() };
    serving.shutdown().await;
    DrainResult { cut }
}

/// Serves a connection: after the handshake, where the listener speaks TLS.
async fn connected(
    stream: TcpStream,
    peer: Peer,
    place: ConnectionPlace,
    served: ListenerService,
    mut shutdown: watch::Receiver<bool>,
    limits: ServerLimits,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended before it was served");
        return;
    }
    let stream = Outgoing::new(stream, Arc::clone(&served.backlog));
    let Some(tls) = served.tls.clone() else {
        return serve(stream, peer, place, served, shutdown, limits).await;
    };
    let handshake = tokio::select! {
        biased;
        handshake = timeout(limits.head_arrival_max, tls.accept(stream)) => handshake,
        _ = asked(&mut shutdown) => return,
        () = place.ends() => return,
    };
    match handshake {
        Ok(Ok(stream)) => serve(stream, peer, place, served, shutdown, limits).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    place: ConnectionPlace,
    served: ListenerService,
    mut shutdown: watch::Receiver<bool>,
    limits: ServerLimits,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let busy = place.begin();
        let (answering, backlog) = (answer(&served, peer, request), Arc::clone(&served.backlog));
        async move { Ok::<_, Infallible>(in_parts(answering.await?, backlog).map(|parts| parts.guarded(busy))) }
    });
    // The number of headers keeps hyper's own limit of 100, for which it needs no allocation.
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_arrival_max)
            .max_buf_size(limits.head_bytes_max)
            // One copy of a small answer costs less than a second part of a write.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        _ = asked(&mut shutdown) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = place.ends() => {
            // A request may have arrived meanwhile: it is answered.
            if !place.is_busy() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// A peer that gave up is no matter; out of file descriptors, say, it is better to pause than to
/// spin.
async fn recover(error: io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(%error, "no connection can be accepted");
        sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::body::Bytes;
    use axum::routing::get;
    use axum::{Extension, Router};
    use prometheus_client::registry::Registry;
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::outgoing::{Backlog, OneCopy, WriteLimits};
    use crate::pace::Pace;

    struct RunningServer {
        address: SocketAddr,
        entered: Arc<Notify>,
        release: Arc<Notify>,
        shutdown: watch::Sender<bool>,
        running: JoinHandle<DrainResult>,
        backlog: Arc<Backlog>,
    }

    /// More than the system takes for a client that does not read.
    const LARGE_BYTES: usize = 32 << 20;

    async fn serving(limits: ServerLimits) -> RunningServer {
        serving_with(limits, Backlog::default()).await
    }

    async fn serving_with(limits: ServerLimits, backlog: Backlog) -> RunningServer {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (entered, release) = (entered.clone(), release.clone());
            move || async move {
                entered.notify_one();
                release.notified().await;
                "slow"
            }
        };
        let large = Bytes::from(vec![b'x'; LARGE_BYTES]);
        let one_copy = large.clone();
        let router = Router::new()
            .route("/", get(|| async { "fast" }))
            .route("/slow", get(slow))
            .route("/large", get(|| async { large }))
            .route("/one-copy", get(|| async { (Extension(OneCopy), one_copy) }));
        let backlog = Arc::new(backlog);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, watched) = watch::channel(false);
        let served = super::ListenerService { router, middleware: None, backlog: Arc::clone(&backlog), tls: None };
        let running = tokio::spawn(run(listener, served, watched, limits));
        RunningServer { address, entered, release, shutdown, running, backlog }
    }

    async fn send(stream: &TcpStream, text: &str) {
        stream.writable().await.unwrap();
        assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
    }

    async fn request(stream: &TcpStream, path: &str) {
        send(stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
    }

    /// The bytes that arrive next; nothing when the connection is closed.
    async fn receive(stream: &TcpStream) -> Vec<u8> {
        let mut bytes = [0; 4_096];
        loop {
            stream.readable().await.unwrap();
            match stream.try_read(&mut bytes) {
                Ok(count) => return bytes[..count].to_vec(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Vec::new(),
            }
        }
    }

    /// Reads up to the end of a body that is known.
    async fn read_until(stream: &TcpStream, end: &str) -> String {
        let mut answer = String::new();
        while !answer.ends_with(end) {
            let bytes = receive(stream).await;
            assert!(!bytes.is_empty(), "closed after {answer}");
            answer.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        answer
    }

    async fn is_closed(stream: &TcpStream) -> bool {
        receive(stream).await.is_empty()
    }

    #[tokio::test]
    async fn a_connection_is_kept_for_the_next_request() {
        let served = serving(ServerLimits::default()).await;
        let stream = TcpStream::connect(served.address).await.unwrap();
        for _ in 0..2 {
            request(&stream, "/").await;
            assert!(read_until(&stream, "fast").await.starts_with("HTTP/1.1 200 OK"));
        }
    }

    #[tokio::test]
    async fn shutdown_answers_what_is_under_way_and_closes_what_is_idle() {
        let served = serving(ServerLimits::default()).await;
        let idle = TcpStream::connect(served.address).await.unwrap();
        request(&idle, "/").await;
        read_until(&idle, "fast").await;
        let busy = TcpStream::connect(served.address).await.unwrap();
        request(&busy, "/slow").await;
        served.entered.notified().await;

        served.shutdown.send(true).unwrap();
        assert!(is_closed(&idle).await);
        assert!(TcpStream::connect(served.address).await.is_err());
        served.release.notify_one();
        let answer = read_until(&busy, "slow").await;
        assert!(answer.contains("connection: close"), "{answer}");
        assert_eq!(served.running.await.unwrap(), DrainResult { cut: 0 });
    }

    #[tokio::test]
    async fn what_outlasts_the_drain_is_cut() {
        let served = serving(ServerLimits { drain_max: Duration::ZERO, ..ServerLimits::default() }).await;
        let busy = TcpStream::connect(served.address).await.unwrap();
        request(&busy, "/slow").await;
        served.entered.notified().await;
        drop(served.shutdown);
        assert_eq!(served.running.await.unwrap(), DrainResult { cut: 1 });
        assert!(is_closed(&busy).await);
    }

    #[tokio::test]
    async fn one_connection_too_many_waits_for_another_to_end() {
        let served = serving(ServerLimits { connections_max: 1, ..ServerLimits::default() }).await;
        let first = TcpStream::connect(served.address).await.unwrap();
        request(&first, "/slow").await;
        served.entered.notified().await;
        let second = TcpStream::connect(served.address).await.unwrap();
        request(&second, "/").await;
        assert!(timeout(Duration::from_millis(50), receive(&second)).await.is_err());
        served.release.notify_one();
        read_until(&first, "slow").await;
        drop(first);
        read_until(&second, "fast").await;
    }

    #[tokio::test]
    async fn idle_connections_of_one_caller_keep_nobody_out() {
        let forever = Duration::from_secs(3_600);
        let limits = ServerLimits { head_arrival_max: forever, ..ServerLimits::default() };
        let started = serving(limits).await;
        crate::descriptors::raise(0);
        // Both ends are open in this process, and other tests have files too.
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = files.saturating_sub(limits.connections_of_peer_max as u64 + 2_000).min(20_000);
        let busy = TcpStream::connect(started.address).await.unwrap();
        request(&busy, "/slow").await;
        started.entered.notified().await;
        let mut idle = Vec::new();
        for number in 0..most {
            let stream = TcpStream::connect(started.address).await.unwrap();
            if number % 3 == 0 {
                send(&stream, "GET / HTTP/1.1\r\nhost:").await;
            }
            idle.push(stream);
            if number % 1_000 == 999 {
                let good = TcpStream::connect(started.address).await.unwrap();
                request(&good, "/").await;
                let answer = timeout(Duration::from_secs(60), read_until(&good, "fast")).await;
                assert!(answer.is_ok(), "no answer beside {number} idle connections");
            }
        }
        if most > limits.connections_of_peer_max as u64 {
            assert!(is_closed(&idle[0]).await, "the longest idle connection ends");
        }
        started.release.notify_one();
        read_until(&busy, "slow").await;
    }

    /// Clients that ask for something large and never read it.
    async fn not_reading(started: &RunningServer, path: &str, count: usize) -> Vec<TcpStream> {
        let mut streams = Vec::new();
        for _ in 0..count {
            let stream = TcpStream::connect(started.address).await.unwrap();
            request(&stream, path).await;
            streams.push(stream);
        }
        streams
    }

    /// Reads all that comes until the connection ends; gives how much that was.
    async fn read_to_end(stream: &TcpStream) -> usize {
        let mut count = 0;
        loop {
            match receive(stream).await.len() {
                0 => return count,
                more => count += more,
            }
        }
    }

    fn impatient(waiting_max: usize) -> Backlog {
        let short = Duration::from_millis(100);
        let pace = Pace { idle_max: short, bytes_per_second: 1_024 };
        Backlog::new(WriteLimits { pace, waiting_max, idle_max_when_tight: short }, &mut Registry::default())
    }

    #[tokio::test]
    async fn clients_that_do_not_read_are_cut_and_others_are_served() {
        let limits = ServerLimits { connections_max: 4, ..ServerLimits::default() };
        let started = serving_with(limits, impatient(usize::MAX >> 1)).await;
        let silent = not_reading(&started, "/one-copy", 4).await;
        // The fifth waits for one of them to end, which none does by itself.
        let reader = TcpStream::connect(started.address).await.unwrap();
        request(&reader, "/").await;
        read_until(&reader, "fast").await;
        while started.backlog.cuts() < 4 {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(started.backlog.waiting(), 0);
        for stream in silent {
            assert!(read_to_end(&stream).await < LARGE_BYTES, "the answer is not whole");
        }
    }

    #[tokio::test]
    async fn one_who_reads_gets_all_of_a_large_answer() {
        let started = serving(ServerLimits::default()).await;
        for path in ["/large", "/one-copy"] {
            let stream = TcpStream::connect(started.address).await.unwrap();
            send(&stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).await;
            assert!(read_to_end(&stream).await > LARGE_BYTES, "{path}");
        }
        assert_eq!(started.backlog.waiting(), 0);
    }

    #[tokio::test]
    async fn what_waits_on_all_connections_is_bounded_and_a_body_that_is_one_copy_hardly_counts() {
        let waiting_max = LARGE_BYTES + LARGE_BYTES / 2;
        let limits = WriteLimits { waiting_max, ..WriteLimits::default() };
        let backlog = Backlog::new(limits, &mut Registry::default());
        let started = serving_with(ServerLimits::default(), backlog).await;
        let _first = not_reading(&started, "/large", 1).await;
        while started.backlog.waiting() < LARGE_BYTES / 2 {
            tokio::task::yield_now().await;
        }
        // There is room for one such answer.
        for stream in not_reading(&started, "/large", 3).await {
            assert!(read_to_end(&stream).await < LARGE_BYTES);
        }
        let before = started.backlog.waiting();
        let _same = not_reading(&started, "/one-copy", 8).await;
        while started.backlog.waiting() == before {
            tokio::task::yield_now().await;
        }
        assert!(started.backlog.waiting() <= before + 8 * (ServerLimits::default().head_bytes_max + 16 * 1024));
    }

    #[tokio::test]
    async fn a_head_that_never_ends_is_given_up() {
        let served =
            serving(ServerLimits { head_arrival_max: Duration::from_millis(50), ..ServerLimits::default() }).await;
        let stream = TcpStream::connect(served.address).await.unwrap();
        send(&stream, "GET / HTTP/1.1\r\nhost:").await;
        let answer = receive(&stream).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
}
