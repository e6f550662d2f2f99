//! HTTP client of the commands that read from a server: one request on a connection of its own,
//! over TLS where the listener speaks it.
//!
//! It stands on `hyper` and not on `reqwest`, whose TLS wants a provider of cryptography for the
//! whole process.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::tls::Trust;

/// Sends a request, whose URI is a path, to an address. With `trust` over TLS. The answer's body
/// arrives as it is read.
pub async fn send(
    address: SocketAddr,
    trust: Option<&Trust>,
    mut request: Request<Full<Bytes>>,
) -> io::Result<Response<Incoming>> {
    let host = address.to_string();
    request.headers_mut().insert(HOST, HeaderValue::try_from(host).map_err(io::Error::other)?);
    let name = |trust: &Trust| trust.name.clone().unwrap_or_else(|| address.ip().to_string());
    let tls = trust.map(|trust| (Arc::clone(&trust.config), name(trust)));
    dial(address, tls).await?.send_request(request).await.map_err(io::Error::other)
}

/// A new connection to a server; over TLS where a configuration is given, with the name or address
/// that the server's certificate must have.
pub async fn dial(
    server: impl ToSocketAddrs,
    tls: Option<(Arc<ClientConfig>, String)>,
) -> io::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let Some((config, name)) = tls else { return speak(stream).await };
    let name = ServerName::try_from(name).map_err(io::Error::other)?;
    speak(TlsConnector::from(config).connect(name, stream).await?).await
}

/// Begins HTTP/1.1 on a connection.
pub async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> io::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}
