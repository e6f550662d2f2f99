//! First exchange of a connection between two processes, before a request: one asks for the name of
//! the other.
//!
//! The answer proves that both have TLS or none, that each accepts the certificate of the other,
//! and that both have the same master key. So where that is not so, no request was written, and it
//! is known that none was carried out. Over TLS 1.3 the handshake does not prove it: a client has
//! ended it before the server refuses its certificate.

use std::io;

use axum::body::Bytes;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use tokio_rustls::rustls;

use super::peer_token::PeerToken;

/// Path of the question. The answer is the name of the process, as a text.
pub(super) const PATH: &str = "/peers/process";

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 256;

/// Asks for the name of the process at the other end of a new connection, which can have requests
/// afterwards.
pub(super) async fn greet(connection: &mut SendRequest<Full<Bytes>>, token: &PeerToken) -> io::Result<String> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = PATH.parse().map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, HeaderValue::from_static(""));
    token.put_in(request.headers_mut());
    let answer = connection.send_request(request).await.map_err(not_understood)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::FORBIDDEN => return Err(io::Error::other("the other process has another master key")),
        status => return Err(io::Error::other(format!("no node listens there: it answers {status}"))),
    }
    let name = Limited::new(answer.into_body(), NAME_BYTES_MAX).collect().await.map_err(io::Error::other)?;
    connection.ready().await.map_err(io::Error::other)?;
    String::from_utf8(name.to_bytes().into()).map_err(io::Error::other)
}

/// The error of an exchange without TLS. One who speaks TLS answers with an alert, which
/// is no HTTP.
fn not_understood(error: hyper::Error) -> io::Error {
    match error.is_parse() {
        true => io::Error::other("the other node speaks TLS, and this one does not"),
        false => io::Error::other(error),
    }
}

/// The error of a handshake of TLS. One who speaks plain HTTP answers with what is no
/// message of TLS.
pub(super) fn no_handshake(error: io::Error) -> io::Error {
    let found = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match found {
        Some(rustls::Error::InvalidMessage(_)) => io::Error::other("the other node speaks no TLS, and this one does"),
        _ => error,
    }
}
