//! Calls to a bridge. An order is sent once in a call.

use std::sync::Arc;
use std::time::Duration;

use actors::rails::{RailError, RailResult};
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use ledger::ObjectId;
use ledger::time::Timestamp;
use parking_lot::RwLock;
use zeroize::Zeroizing;

use super::capabilities::{Capabilities, KnownCapabilities};
use super::messages::{Outcome, outcome};
use super::payouts;
use super::settings::RailKind;
pub(super) use crate::client::now;
use crate::client::{ANSWER_MAX, Address, Answer, Body, Credentials, Outgoing, send};

/// How long an answer about the capabilities may take: shorter than a call's patience.
const CAPABILITIES_MAX: Duration = Duration::from_secs(5);

/// A bridge, with what is shown to it.
pub(super) struct BridgeCalls {
    address: Address,
    credentials: RwLock<Arc<Credentials>>,
    pub(super) known: KnownCapabilities,
}

impl BridgeCalls {
    pub(super) fn new(address: Address, credentials: Credentials) -> Self {
        let credentials = RwLock::new(Arc::new(credentials));
        Self { address, credentials, known: KnownCapabilities::default() }
    }

    pub(super) fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.credentials.read())
    }

    /// The same bridge, to which another secret is shown.
    pub(super) fn with_secret(&self, secret: &str) -> Self {
        let own = self.credentials();
        let shown = Credentials {
            tls: Arc::clone(&own.tls),
            certificate_expires_at: own.certificate_expires_at,
            secret: Some(Zeroizing::new(secret.to_owned())),
        };
        Self::new(self.address.clone(), shown)
    }

    pub(super) fn exchange_credentials(&self, credentials: Credentials) {
        *self.credentials.write() = Arc::new(credentials);
    }

    /// The capabilities; asks for them where the last answer is an hour old.
    pub(super) async fn capabilities(&self) -> RailResult<Capabilities> {
        match self.known.fresh() {
            Some(known) => Ok(known),
            None => self.ask_capabilities().await.or_else(|error| self.known.last().ok_or(error)),
        }
    }

    /// The same of a bridge that serves a kind of rail. Without any answer, and for another kind,
    /// nothing is sent.
    pub(super) async fn serving(&self, kind: RailKind) -> RailResult<Capabilities> {
        let known = self.capabilities().await?;
        if known.has(kind) {
            return Ok(known);
        }
        self.complain("/capabilities", &format!("it does not serve {}", kind.name()));
        Err(RailError::NotSent)
    }

    async fn ask_capabilities(&self) -> RailResult<Capabilities> {
        let path = "/capabilities";
        let answer = self.call(Method::GET, path, None, CAPABILITIES_MAX).await.map_err(|_| RailError::NotSent)?;
        let read = match answer.status.as_u16() {
            200 => answer.read::<Capabilities>().and_then(Capabilities::checked),
            status => Err(format!("its answer {status} is none")),
        };
        match read {
            Ok(answered) => {
                self.known.note(answered.clone());
                Ok(answered)
            }
            Err(defect) => {
                self.complain(path, &defect);
                Err(RailError::NotSent)
            }
        }
    }

    /// Sends an order in a list (`/cards`, `/pix`, `/payouts` or `/repayments`), under an id of
    /// ours; gives what the bridge then has.
    pub(super) async fn order(&self, list: &str, id: &str, body: Bytes) -> RailResult<Outcome> {
        let path = with_short_id(format!("{list}/{id}"));
        let answer = match self.call(Method::PUT, &path, Some(body), ANSWER_MAX).await {
            Err(RailError::NotSent) => return Err(RailError::NotSent),
            answer => answer.ok(),
        };
        match answer.map(|answer| outcome(&answer, id)) {
            Some(Ok(result @ (Outcome::It(_) | Outcome::Refused(_)))) => return Ok(result),
            Some(Err(defect)) => self.complain(&path, &defect),
            Some(Ok(Outcome::None)) | None => {}
        }
        self.find(list, id).await.map_err(|_| RailError::NoAnswer)
    }

    /// What the bridge has under an id.
    pub(super) async fn find(&self, list: &str, id: &str) -> RailResult<Outcome> {
        let path = with_short_id(format!("{list}/{id}"));
        let answer = self.call(Method::GET, &path, None, ANSWER_MAX).await?;
        outcome(&answer, id).map_err(|defect| self.unknown(&path, &defect))
    }

    /// Orders the end of a charge where that can be ordered, and asks for it where not; gives what
    /// the bridge has. Nothing at all is no answer before the id is so old that none will come.
    pub(super) async fn close(
        &self,
        of: &Capabilities,
        list: &str,
        id: &str,
        sure_at: Timestamp,
    ) -> RailResult<Outcome> {
        if !of.closes {
            let found = self.find(list, id).await?;
            let is_sure = now() >= sure_at;
            return if matches!(found, Outcome::None) && !is_sure { Err(RailError::NoAnswer) } else { Ok(found) };
        }
        let path = format!("{list}/{id}/close");
        let body = Bytes::from_static(b"{}");
        let answer = match self.call(Method::PUT, &path, Some(body), ANSWER_MAX).await {
            Err(RailError::NotSent) => return Err(RailError::NotSent),
            answer => answer.ok(),
        };
        let result = match answer.map(|answer| outcome(&answer, id)) {
            Some(Ok(result)) => result,
            other => {
                if let Some(Err(defect)) = other {
                    self.complain(&path, &defect);
                }
                self.find(list, id).await.map_err(|_| RailError::NoAnswer)?
            }
        };
        match result {
            // A late order could still be carried out.
            Outcome::None => Err(self.unknown(&path, "it has closed nothing")),
            result => Ok(result),
        }
    }

    /// Asks for a list.
    pub(super) async fn list(&self, path: &str, query: &[(&str, String)]) -> RailResult<Answer> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        self.call(Method::GET, &format!("{path}?{query}"), None, ANSWER_MAX).await
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        within: Duration,
    ) -> RailResult<Answer> {
        let credentials = self.credentials();
        let mut headers = HeaderMap::new();
        let secret = credentials.secret.as_ref().map(|secret| secret.as_str()).unwrap_or_default();
        let bearer = Zeroizing::new(format!("Bearer {secret}"));
        let mut value = HeaderValue::try_from(bearer.as_str()).map_err(|_| RailError::NotSent)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        let body = body.map(|bytes| Body { media_type: "application/json", bytes });
        let request = Outgoing { method, path: format!("{}{path}", self.address.path), headers, body };
        send(&self.address, &credentials.tls, request, within).await
    }

    /// Logs why an answer is not believed.
    pub(super) fn complain(&self, path: &str, defect: &str) {
        tracing::warn!(host = %self.address.host, path, defect, "a bridge's answer is not believed");
    }

    /// The same, as an answer that is not known.
    pub(super) fn unknown(&self, path: &str, defect: &str) -> RailError {
        self.complain(path, defect);
        RailError::NoAnswer
    }
}

/// The path of a request. That of a transfer has its short id, for an institution that keeps no
/// longer one: an order is found by it whatever the bridge declared when it was sent.
pub(super) fn with_short_id(path: String) -> String {
    let id = path.strip_prefix(payouts::LIST).and_then(|id| ObjectId::parse(id.get(1..)?));
    id.map_or(path.clone(), |id| format!("{path}?short_id={}", id.short_text()))
}
