//! Forwarding of webhook events by a program that is not the server, such as `centavo listen`: the
//! same request as that of a webhook, to any address, once.
//!
//! The address is not checked, since whoever runs the program names it.

use axum::http::StatusCode;
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::attempt::{TRY_MAX, TryFailure, request, wall_seconds};
use super::guard::{Refusal, Target};
use super::post::Poster;
use web::network::root_cause;

/// Posts events to one address, signed with one secret.
pub struct Forwarder {
    target: Target,
    poster: Poster,
    secret: String,
}

/// Why an event was not forwarded.
#[derive(Debug, thiserror::Error)]
pub enum ForwardFailure {
    /// The address cannot be one.
    #[error("the address to forward to: {0}")]
    Address(#[from] Refusal),
    /// The address did not answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

impl Forwarder {
    /// Forwards to a URL of http or https. Nothing is connected to yet.
    pub fn new(url: &str, secret: String) -> Result<Self, ForwardFailure> {
        let poster = Poster::new().map_err(|error| ForwardFailure::NoAnswer(error.to_string()))?;
        Ok(Self { target: Target::parse(url)?, poster, secret })
    }

    /// Posts the body of an event, and gives the status of the answer, whatever it is. `id` is the
    /// event's, and becomes `webhook-id`.
    pub async fn forward(&self, id: &str, body: Vec<u8>) -> Result<StatusCode, ForwardFailure> {
        match timeout(TRY_MAX, self.post(id, body)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(failure)) => Err(ForwardFailure::NoAnswer(root_cause(&failure))),
            Err(_) => Err(ForwardFailure::NoAnswer(format!("none within {} seconds", TRY_MAX.as_secs()))),
        }
    }

    async fn post(&self, id: &str, body: Vec<u8>) -> Result<StatusCode, TryFailure> {
        let secrets = [self.secret.clone()];
        let request = request(&self.target, &secrets, id, wall_seconds(), body)?;
        let found = lookup_host((self.target.host.as_str(), self.target.port)).await;
        let addresses: Vec<_> = found.map_err(|_| Refusal::Unknown)?.collect();
        Ok(self.poster.send(&self.target, &addresses, request).await?.0)
    }
}
