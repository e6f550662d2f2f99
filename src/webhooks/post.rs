//! One try: a connection to an address that was checked, one request, and the status of its answer. There are no redirects, no proxy, and
//! no second look-up of the name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::guard::Target;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    /// No address could be connected to, or the connection broke.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
    /// The name can't stand in a certificate.
    #[error("name: {0}")]
    Name(#[from] InvalidDnsNameError),
    /// It does not speak HTTP.
    #[error("HTTP: {0}")]
    Http(#[from] hyper::Error),
}

/// How long one of several addresses may take to be connected to.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How much of an answer's body is read, so that an endpoint can finish its answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// How long that may take.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Speaks https with the certificates that the operating system trusts.
pub(super) struct Poster {
    tls: TlsConnector,
}

impl Poster {
    /// Reads the operating system's certificates (or those of `SSL_CERT_FILE`). Without any, no https endpoint can be called.
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

    /// Sends a request to a target at the first of these addresses that can be connected to.
    pub(super) async fn send(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        request: Request<Full<Bytes>>,
    ) -> Result<StatusCode, PostError> {
        let stream = connect(addresses).await?;
        if target.is_https {
            let name = ServerName::try_from(target.host.clone())?;
            exchange(self.tls.connect(name, stream).await?, request).await
        } else {
            exchange(stream, request).await
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, std::io::Error> {
    let mut failed = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = std::io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, PostError> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let _cut_off = tokio::time::timeout(ANSWER_MAX, read_a_little(answer.into_body())).await;
        Ok(status)
    };
    // The connection ends with the exchange: nothing of it outlives a try.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        _ended = connection => exchange.await,
    }
}

async fn read_a_little(mut body: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > ANSWER_BYTES_MAX {
            return;
        }
    }
}
