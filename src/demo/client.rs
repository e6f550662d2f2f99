//! A caller from outside: one connection to one of this program's own listeners, one request after the other.

use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::network::reachable;

/// Why a call has no answer, or not the one that was expected.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The listener can't be reached.
    #[error("the demonstration can't reach its own listener: {0}")]
    Connect(#[from] std::io::Error),
    /// The connection broke.
    #[error("a request of the demonstration got no answer: {0}")]
    Broken(#[from] hyper::Error),
    /// The answer is no JSON.
    #[error("an answer that is no JSON: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another status than the one that was expected.
    #[error("{what} was answered {status}: {body}")]
    Unexpected {
        /// Method and path.
        what: String,
        /// The status.
        status: StatusCode,
        /// The body.
        body: Value,
    },
}

/// See the module.
pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    authorization: String,
}

impl Client {
    /// Connects to a listener, with a credential for all requests.
    pub(super) async fn connect(address: SocketAddr, credential: &str) -> Result<Self, CallError> {
        let address = reachable(address);
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends when the sender is dropped; what breaks it is told to the request under way.
        tokio::spawn(connection);
        Ok(Self { sender, host: address.to_string(), authorization: format!("Bearer {credential}") })
    }

    /// Sends a request and reads its answer, whatever it is.
    pub(super) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), CallError> {
        let content = body.map(ToString::to_string).unwrap_or_default();
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, &self.host).header(AUTHORIZATION, &self.authorization);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(content))).expect("paths and headers here are plain ASCII");
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let content = body.collect().await?.to_bytes();
        Ok((head.status, serde_json::from_slice(&content)?))
    }

    /// Sends a request that must succeed.
    pub(super) async fn expect(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let what = format!("{method} {path}");
        let (status, body) = self.call(method, path, body).await?;
        if status.is_success() { Ok(body) } else { Err(CallError::Unexpected { what, status, body }) }
    }
}
