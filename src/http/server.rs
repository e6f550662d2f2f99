//! The connections: accepting them, serving HTTP/1.1 on them, and ending them in good order.
//!
//! Every connection has a limit on how long the head of a request may take, and all of them together on their number:
//! one more waits in the system's queue until another ends. At shutdown nothing new is accepted, idle connections
//! are closed, and requests under way are answered as long as the drain lasts.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::Service;

/// How much a listener takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that may be open at a time.
    pub connections_max: usize,
    /// How long a connection may take to send the head of a request, its idle time before included.
    pub head_arrival_max: Duration,
    /// How many bytes the head of a request may have; at least 8,192.
    pub head_bytes_max: usize,
    /// How long requests under way may go on after the shutdown.
    pub drain_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 4_096,
            head_arrival_max: Duration::from_secs(10),
            head_bytes_max: 64 * 1024,
            drain_max: Duration::from_secs(20),
        }
    }
}

/// How the connections ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy when the drain was over, and were cut.
    pub cut: usize,
}

/// Serves a router on a listener until `shutdown` is true, or its sender is gone.
pub async fn run(
    listener: TcpListener,
    router: Router,
    mut shutdown: watch::Receiver<bool>,
    limits: Limits,
) -> Drained {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = asked(&mut shutdown) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limits.connections_max => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, router.clone(), shutdown.clone(), limits));
                }
                Err(error) => recover(error).await,
            },
        }
    }
    drop(listener);
    let ended = timeout(limits.drain_max, async { while connections.join_next().await.is_some() {} }).await;
    let cut = if ended.is_ok() { 0 } else { connections.len() };
    connections.shutdown().await;
    Drained { cut }
}

async fn serve(stream: TcpStream, router: Router, mut shutdown: watch::Receiver<bool>, limits: Limits) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended before it was served");
        return;
    }
    let service = service_fn(move |request: Request<Incoming>| router.clone().call(request.map(Body::new)));
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
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Waits for the shutdown to be asked for; a sender that is gone asks for it as well.
async fn asked(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|asked| *asked).await;
}

/// A peer that gave up is no matter; out of file descriptors, say, it is better to pause than to spin.
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
    use std::sync::Arc;

    use axum::routing::get;
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;

    use super::*;

    struct Served {
        address: SocketAddr,
        entered: Arc<Notify>,
        release: Arc<Notify>,
        shutdown: watch::Sender<bool>,
        running: JoinHandle<Drained>,
    }

    async fn serving(limits: Limits) -> Served {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (entered, release) = (entered.clone(), release.clone());
            move || async move {
                entered.notify_one();
                release.notified().await;
                "slow"
            }
        };
        let router = Router::new().route("/", get(|| async { "fast" })).route("/slow", get(slow));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, watched) = watch::channel(false);
        let running = tokio::spawn(run(listener, router, watched, limits));
        Served { address, entered, release, shutdown, running }
    }

    async fn send(stream: &TcpStream, text: &str) {
        stream.writable().await.unwrap();
        assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
    }

    async fn request(stream: &TcpStream, path: &str) {
        send(stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
    }

    /// What arrives next; nothing when the connection is closed.
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
        let served = serving(Limits::default()).await;
        let stream = TcpStream::connect(served.address).await.unwrap();
        for _ in 0..2 {
            request(&stream, "/").await;
            assert!(read_until(&stream, "fast").await.starts_with("HTTP/1.1 200 OK"));
        }
    }

    #[tokio::test]
    async fn shutdown_answers_what_is_under_way_and_closes_what_is_idle() {
        let served = serving(Limits::default()).await;
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
        assert_eq!(served.running.await.unwrap(), Drained { cut: 0 });
    }

    #[tokio::test]
    async fn what_outlasts_the_drain_is_cut() {
        let served = serving(Limits { drain_max: Duration::ZERO, ..Limits::default() }).await;
        let busy = TcpStream::connect(served.address).await.unwrap();
        request(&busy, "/slow").await;
        served.entered.notified().await;
        drop(served.shutdown);
        assert_eq!(served.running.await.unwrap(), Drained { cut: 1 });
        assert!(is_closed(&busy).await);
    }

    #[tokio::test]
    async fn one_connection_too_many_waits_for_another_to_end() {
        let served = serving(Limits { connections_max: 1, ..Limits::default() }).await;
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
    async fn a_head_that_never_ends_is_given_up() {
        let served = serving(Limits { head_arrival_max: Duration::from_millis(50), ..Limits::default() }).await;
        let stream = TcpStream::connect(served.address).await.unwrap();
        send(&stream, "GET / HTTP/1.1\r\nhost:").await;
        let answer = receive(&stream).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
}
