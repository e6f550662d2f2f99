//! HTTP client of the commands that read from a server: one request on a connection of its own,
//! over TLS where the listener speaks it.
//!
//! It stands on `hyper` and not on `reqwest`, whose TLS wants a provider of cryptography for the
//! whole process.

use std::io;
use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::tls::Trust;

/// Sends a request, whose URI is a path, to an address. With `trust` over TLS. The answer's body
/// arrives as it is read.
pub async fn send(
    address: SocketAddr,
    trust: Option<&Trust>,
    mut request: Request<Full<Bytes>>,
) -> io::Result<Response<Incoming>> {
    let host = HeaderValue::try_from(address.to_string()).map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, host);
    let stream = TcpStream::connect(address).await?;
    match trust {
        None => exchange(stream, request).await,
        Some(trust) => {
            let name = match &trust.name {
                Some(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
                None => address.ip().into(),
            };
            let connector = TlsConnector::from(trust.config.clone());
            exchange(connector.connect(name, stream).await?, request).await
        }
    }
}

/// Sends one request on a connection that is made for it.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> io::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(io::Error::other)
}
