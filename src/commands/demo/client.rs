//! HTTP client of the demonstration: calls this program's own listeners from outside, with a
//! credential.

use std::net::SocketAddr;

use axum::http::{Method, StatusCode};
use reqwest::redirect::Policy;
use serde_json::Value;
use tokio::task::JoinError;

use web::network::{reachable, root_cause};

/// Why a call has no answer, or an unexpected one.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The listener can't be reached, the connection broke, or the answer is no JSON.
    #[error("a request of the demonstration got no answer: {}", root_cause(.0))]
    NoAnswer(#[from] reqwest::Error),
    /// An unexpected status.
    #[error("{what} was answered {status}: {body}")]
    Unexpected {
        /// Method and path.
        what: String,
        /// Status of the answer.
        status: StatusCode,
        /// Body of the answer.
        body: Value,
    },
    /// The task of a caller panicked.
    #[error("a caller of the demonstration failed: {0}")]
    Caller(#[from] JoinError),
}

/// Client of one listener. Its clones share their connections.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    address: SocketAddr,
    credential: String,
}

impl Client {
    /// A client of a listener, with a credential for all requests. It connects at the first call.
    pub(super) fn new(address: SocketAddr, credential: &str) -> Result<Self, CallError> {
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build()?;
        Ok(Self { http, address: reachable(address), credential: credential.to_owned() })
    }

    /// Sends a request and reads its answer, whatever the status.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), CallError> {
        let mut request = self.http.request(method, format!("http://{}{path}", self.address));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.bearer_auth(&self.credential).send().await?;
        Ok((answer.status(), answer.json().await?))
    }

    /// Sends a request that must succeed.
    pub(super) async fn expect(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, CallError> {
        let what = format!("{method} {path}");
        let (status, body) = self.call(method, path, body).await?;
        if status.is_success() { Ok(body) } else { Err(CallError::Unexpected { what, status, body }) }
    }
}
