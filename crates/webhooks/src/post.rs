//! HTTP client of webhook delivery: one connection to a checked address, one request, and the
//! status and the begin of its answer. It follows no redirect, uses no proxy, and never looks the
//! name up again.
//!
//! It is written by hand on `hyper`, and not with `reqwest`, for three reasons. The receiver may be
//! hostile: `reqwest` hides its connection, so the bytes of an answer could not be bounded together
//! with their framing (`hyper` reads the leading zeros of a chunk size without end), and it offers
//! no limit for the size of the head. It parses the URL again by rules of its own, and may call
//! a host or path that was not checked. It adds an `accept` header to the request.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use derived::outbox::Cause;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::guard::Target;

/// Why a try got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// No address could be connected to.
    #[error("connection: {0}")]
    Connect(std::io::Error),
    /// The receiver does not speak TLS, or its certificate is not trusted.
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    /// The host's name can't be in a certificate.
    #[error("name: {0}")]
    Name(#[from] InvalidDnsNameError),
    /// The receiver does not speak HTTP, or the connection broke.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
}

impl PostError {
    /// The cause as the merchant sees it.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Connect(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Cause::Refused,
                ErrorKind::TimedOut => Cause::Timeout,
                _ => Cause::Unreachable,
            },
            Self::Tls(_) | Self::Name(_) => Cause::Tls,
            Self::Http(error) if error.is_parse_too_large() => Cause::TooLarge,
            Self::Http(error) if error.is_parse() => Cause::NotHttp,
            Self::Http(_) => Cause::Closed,
        }
    }
}

/// How long a connection to one address may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Most bytes of an answer's head: the size of the connection's buffer.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of an answer's body. They are read so that the receiver can finish its answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of an answer in all, framing included: chunk sizes and trailers can be endless, too.
const WIRE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of an answer's body that are given.
const GIVEN_BYTES_MAX: usize = 1024;
/// How long the body of an answer is read.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Sends webhooks over https, with the certificates that the operating system trusts, or over http.
pub(super) struct Poster {
    tls: TlsConnector,
}

impl Poster {
    /// Reads the operating system's certificates, or those of `SSL_CERT_FILE`. Without any, no
    /// https endpoint can be called.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        let found = load_native_certs();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 {
            tracing::warn!("no trusted certificates were found on this machine: webhooks over https will fail");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Sends a request to the first of a target's addresses that accepts a connection. Gives the
    /// status of the answer, and the first KiB of its body as text.
    pub(super) async fn send(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, String), PostError> {
        let stream = connect(addresses).await.map_err(PostError::Connect)?;
        if target.is_https {
            let name = ServerName::try_from(target.host.clone())?;
            let stream = self.tls.connect(name, stream).await.map_err(PostError::Tls)?;
            exchange(stream, request).await
        } else {
            exchange(stream, request).await
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, io::Error> {
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, String), PostError> {
    let (answer, request_out) = tokio::io::split(stream);
    let stream = tokio::io::join(answer.take(WIRE_BYTES_MAX), request_out);
    let mut http = hyper::client::conn::http1::Builder::new();
    let (mut sender, connection) = http.max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let mut begin = Vec::new();
        let _cut_off = tokio::time::timeout(ANSWER_MAX, read_a_little(answer.into_body(), &mut begin)).await;
        Ok((status, String::from_utf8_lossy(&begin).into_owned()))
    };
    // The connection ends with the exchange: nothing of it outlives a try.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        _ended = connection => exchange.await,
    }
}

/// Reads the body of an answer, and adds its first bytes to `begin`.
async fn read_a_little(mut body: Incoming, begin: &mut Vec<u8>) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        let data = frame.data_ref().map_or(&[][..], Bytes::as_ref);
        begin.extend_from_slice(&data[..data.len().min(GIVEN_BYTES_MAX - begin.len())]);
        read += data.len();
        if read > ANSWER_BYTES_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Sends a request to a receiver that answers with `head` and then with `part` without end.
    /// Gives the result, and the number of bytes of the answer that were read.
    async fn answered(head: &'static [u8], part: &'static [u8]) -> (Result<StatusCode, Cause>, u64) {
        // Nothing of an answer is taken by buffers between the two.
        let (ours, mut theirs): (DuplexStream, DuplexStream) = tokio::io::duplex(1);
        let receiver = tokio::spawn(async move {
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                read.push(theirs.read_u8().await.unwrap());
            }
            let mut taken = 0;
            for byte in head.iter().chain(part.iter().cycle()) {
                if theirs.write_u8(*byte).await.is_err() {
                    break;
                }
                taken += 1;
            }
            taken
        });
        let request = Request::post("/hook").body(Full::new(Bytes::new())).unwrap();
        let answer = exchange(ours, request).await;
        let status = answer.map(|(status, _)| status).map_err(|error| error.cause());
        (status, receiver.await.unwrap())
    }

    #[tokio::test]
    async fn of_an_answer_without_end_little_is_taken() {
        const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
        const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        const GZIP: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
        type Case<'a> = (&'a str, &'a [u8], &'a [u8], Result<StatusCode, Cause>);
        let cases: [Case<'_>; 10] = [
            ("a line without end", b"", b"x", Err(Cause::NotHttp)),
            ("a status line without end", b"HTTP/1.1 200 ", b"x", Err(Cause::TooLarge)),
            ("a header without end", b"HTTP/1.1 200 OK\r\nx: ", b"x", Err(Cause::TooLarge)),
            ("headers without end", b"HTTP/1.1 200 OK\r\n", b"x: x\r\n", Err(Cause::TooLarge)),
            ("a body without end", OK, b"x", Ok(StatusCode::OK)),
            ("chunks of a byte", CHUNKED, b"1\r\nx\r\n", Ok(StatusCode::OK)),
            ("a chunk's extension without end", CHUNKED, b"1;x", Ok(StatusCode::OK)),
            ("a chunk's size without end", CHUNKED, b"0", Ok(StatusCode::OK)),
            ("a trailer without end", CHUNKED, b"0\r\nx: x", Ok(StatusCode::OK)),
            ("what would be much when it is unpacked", GZIP, b"2\r\n\x1f\x8b\r\n", Ok(StatusCode::OK)),
        ];
        for (what, head, part, expected) in cases {
            let (status, taken) = answered(head, part).await;
            assert_eq!(status, expected, "{what}");
            // One byte more stands in the pipe.
            assert!(taken <= WIRE_BYTES_MAX + 1, "{what}: {taken} bytes were taken");
        }
    }

    #[tokio::test]
    async fn what_went_wrong_is_told_apart() {
        let request = || Request::post("/").body(Full::new(Bytes::new())).unwrap();
        let poster = Poster::new().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = |url: String| Target::parse(&url).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _read = stream.read(&mut [0; 1_024]).await.unwrap();
                stream.write_all(b"220 mail.example.com\r\n").await.unwrap();
            }
        });
        let to = async |url: &str, addresses: &[SocketAddr]| {
            let target = target(url.replace("HERE", &address.to_string()));
            poster.send(&target, addresses, request()).await.map_err(|error| error.cause())
        };
        assert_eq!(to("https://HERE/", &[address]).await, Err(Cause::Tls));
        assert_eq!(to("http://HERE/", &[address]).await, Err(Cause::NotHttp));
        assert_eq!(to("http://HERE/", &[]).await, Err(Cause::Unreachable));
        let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert_eq!(to("http://HERE/", &[nobody]).await, Err(Cause::Refused));
        assert_eq!(to("http://HERE/", &[nobody, address]).await, Err(Cause::NotHttp), "the second one is called");
    }
}
