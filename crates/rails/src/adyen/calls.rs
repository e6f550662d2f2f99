//! Calls to Adyen: orders, each under a key of ours on which Adyen is idempotent.

use std::sync::Arc;
use std::time::Duration;

use actors::rails::{RailError, RailResult};
use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::RwLock;

use super::settings::AdyenSettings;
use crate::client::{Address, Answer, Body, Credentials, Outgoing, SettingsError, send};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How often an order is sent in one call, under one key.
const SENDS_MAX: u32 = 3;
/// How long one sending may take.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// How long after the first sending the next one waits; each one later waits twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Adyen, with what is shown to it.
pub(super) struct AdyenCalls {
    address: Address,
    credentials: RwLock<Arc<Credentials>>,
    pub(super) merchant_account: String,
    pub(super) return_url: String,
}

/// Order under an idempotency key.
pub(super) struct KeyedRequest<'a> {
    /// Path below the address.
    pub(super) path: &'a str,
    /// Made of our id.
    pub(super) key: &'a str,
    pub(super) body: Bytes,
}

/// What an answer says about an order.
pub(super) enum Said<T> {
    /// Its outcome.
    Outcome(T),
    /// Nothing; with the reason. A repeat under the same key may say more.
    Nothing(String),
    /// Nothing, however often it is ordered.
    NothingForGood(String),
}

impl AdyenCalls {
    pub(super) fn open(settings: &AdyenSettings) -> Result<Self, SettingsError> {
        let address = settings.checked()?;
        let credentials = RwLock::new(Arc::new(Credentials::read(&settings.credential_files())?));
        let (merchant_account, return_url) = (settings.merchant_account.clone(), settings.return_url.clone());
        Ok(Self { address, credentials, merchant_account, return_url })
    }

    pub(super) fn host(&self) -> &str {
        &self.address.host
    }

    pub(super) fn reload(&self, settings: &AdyenSettings) -> Result<(), SettingsError> {
        *self.credentials.write() = Arc::new(Credentials::read(&settings.credential_files())?);
        Ok(())
    }

    /// Sends an order until its answer says something, at most three times under its key, and as
    /// long as `may_leave`. [`RailError::NotSent`] where no byte of it has left.
    pub(super) async fn order<T>(
        &self,
        request: KeyedRequest<'_>,
        may_leave: impl Fn() -> bool,
        read: impl Fn(&Answer) -> Said<T>,
    ) -> RailResult<T> {
        let mut has_left = false;
        for sending in 0..SENDS_MAX {
            if sending > 0 {
                tokio::time::sleep(PAUSE * (1 << (sending - 1))).await;
            }
            if !may_leave() {
                break;
            }
            match self.post(&request).await {
                Err(RailError::NotSent) => continue,
                Err(RailError::NoAnswer) => {}
                Ok(answer) => match read(&answer) {
                    Said::Outcome(outcome) => return Ok(outcome),
                    Said::Nothing(defect) => self.complain(request.path, &defect),
                    Said::NothingForGood(defect) => {
                        self.complain(request.path, &defect);
                        return Err(RailError::NoAnswer);
                    }
                },
            }
            has_left = true;
        }
        Err(if has_left { RailError::NoAnswer } else { RailError::NotSent })
    }

    async fn post(&self, request: &KeyedRequest<'_>) -> RailResult<Answer> {
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::try_from(request.key).map_err(|_| RailError::NotSent)?);
        let body = Some(Body { media_type: "application/json", bytes: request.body.clone() });
        self.send(Method::POST, request.path, headers, body).await
    }

    /// Deletes what a path names. A repeat deletes nothing else.
    pub(super) async fn delete(&self, path: &str) -> RailResult<Answer> {
        self.send(Method::DELETE, path, HeaderMap::new(), None).await
    }

    async fn send(&self, method: Method, path: &str, mut headers: HeaderMap, body: Option<Body>) -> RailResult<Answer> {
        let credentials = Arc::clone(&self.credentials.read());
        let secret = credentials.secret.as_ref().map(|secret| secret.as_str()).unwrap_or_default();
        let mut api_key = HeaderValue::try_from(secret).map_err(|_| RailError::NotSent)?;
        api_key.set_sensitive(true);
        headers.insert(API_KEY, api_key);
        let path = format!("{}{path}", self.address.path);
        let outgoing = Outgoing { method, path, headers, body };
        send(&self.address, &credentials.tls, outgoing, ANSWER_MAX).await
    }

    /// Logs why an answer is not believed.
    pub(super) fn complain(&self, path: &str, defect: &str) {
        tracing::warn!(host = %self.address.host, path, defect, "Adyen's answer is not believed");
    }
}
