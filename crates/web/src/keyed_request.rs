//! Keyed requests: the body of a request that may carry an `Idempotency-Key`, and that key.

use actors::engine::{Engine, OpeningKey};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use serde_json::value::RawValue;

use super::body::{Body, CHARGE_BYTES_MAX};
use super::idempotency::{Key, KeyScope, SentKey};
use super::problem::{Problem, Result};

/// Body of a request that may carry an `Idempotency-Key`, and that key. It refuses as [`Body`]
/// does.
pub struct KeyedRequest<const BYTES_MAX: usize> {
    key: SentKey,
    body: Body<BYTES_MAX>,
}

/// A keyed request with a body of at most 256 KiB.
pub type KeyedBody = KeyedRequest<{ 256 * 1024 }>;

/// A keyed request for a charge: at most 4 MiB.
pub type KeyedCharge = KeyedRequest<CHARGE_BYTES_MAX>;

impl<S: Sync, const BYTES_MAX: usize> FromRequest<S> for KeyedRequest<BYTES_MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let Ok(key) = SentKey::from_request_parts(&mut parts, state).await;
        Ok(Self { key, body: Body::from_request(Request::from_parts(parts, body), state).await? })
    }
}

impl<const BYTES_MAX: usize> KeyedRequest<BYTES_MAX> {
    /// The request of a form of the console: see [`SentKey::of_form`].
    pub fn of_form(key: &str, path: &'static str, body: impl Into<Bytes>) -> Self {
        Self { key: SentKey::of_form(key, path), body: Body::made(body) }
    }

    /// The key, as it was sent.
    pub fn sent_key(&self) -> &SentKey {
        &self.key
    }

    /// The bytes of the body.
    pub fn bytes(&self) -> &[u8] {
        &self.body.bytes
    }

    /// True when a key came, valid or not.
    pub fn has_key(&self) -> bool {
        self.key.is_given()
    }

    /// See [`SentKey::opening`].
    pub fn opening(&self, engine: &Engine) -> Option<OpeningKey> {
        self.key.opening(engine)
    }

    /// Reads the key. `id` is the id in the route's path, as the service writes it.
    pub fn key<'a>(&self, engine: &'a Engine, scope: KeyScope, id: Option<&str>) -> Result<Key<'a>> {
        self.key.read(engine, scope, id, self.bytes())
    }

    /// Reads the key: see [`SentKey::read_without`].
    pub fn key_without<'a>(&self, engine: &'a Engine, scope: KeyScope, secret: Option<&RawValue>) -> Result<Key<'a>> {
        self.key.read_without(engine, scope, None, self.bytes(), secret)
    }
}
