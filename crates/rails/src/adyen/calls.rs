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

/// How long an answer may take: a charge, which is ordered half a minute after its id at most, has
/// its answer before its end is ordered.
const ANSWER_MAX: Duration = Duration::from_secs(20);

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

    /// Sends an order, once. `read` gives its outcome, or why the answer says none.
    pub(super) async fn order<T>(
        &self,
        request: KeyedRequest<'_>,
        read: impl Fn(&Answer) -> Result<T, String>,
    ) -> RailResult<T> {
        let KeyedRequest { path, key, body } = request;
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::try_from(key).map_err(|_| RailError::NotSent)?);
        let body = Some(Body { media_type: "application/json", bytes: body });
        read(&self.send(Method::POST, path, headers, body).await?).map_err(|defect| {
            self.complain(path, &defect);
            RailError::NoAnswer
        })
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
