//! Opening a merchant's books, and its API keys.

use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::event::Event;
use crate::fees::Settings;
use crate::id::ObjectId;
use crate::personal::Sealed;
use crate::record::Decision;
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// An API key, as kept: never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApiKey {
    /// SHA-256 of the key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// Where webhooks go.
    #[n(1)]
    pub webhook_url: Option<String>,
    /// The webhook secret, sealed under the master key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub webhook_secret: Vec<u8>,
    /// True once revoked.
    #[n(3)]
    pub revoked: bool,
    /// The webhook secret before the last rotation; it signs beside the new one for a while.
    #[n(4)]
    pub previous_secret: Option<PreviousSecret>,
}

/// A webhook secret that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PreviousSecret {
    /// The secret, sealed under the master key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub sealed: Vec<u8>,
    /// It signs until then.
    #[n(1)]
    pub until: Timestamp,
}

/// How long a webhook secret signs on after it was replaced, milliseconds: whoever receives has this long to change it.
pub const SECRET_OVERLAP_MS: i64 = 24 * 60 * 60 * 1000;

impl MerchantState {
    pub(super) fn open(&self, id: ObjectId, settings: Settings, profile: Sealed) -> Result<Decision, Rejection> {
        if self.id.is_some() {
            return Err(Rejection::MerchantExists);
        }
        Ok(Decision { events: vec![Event::MerchantOpened { id, settings }], personal: Some(profile) })
    }

    pub(super) fn revoke_api_key(&self, id: ObjectId) -> Result<Decision, Rejection> {
        match self.keys.by_id().get(&id) {
            None => Err(Rejection::ApiKeyNotFound),
            Some(key) if key.revoked => Ok(Decision::default()),
            Some(_) => Ok(Decision::of(Event::ApiKeyRevoked { id })),
        }
    }

    pub(super) fn change_api_key(&self, id: ObjectId, webhook_url: Option<String>) -> Result<Decision, Rejection> {
        if self.live_api_key(id)?.webhook_url == webhook_url {
            return Ok(Decision::default());
        }
        Ok(Decision::of(Event::ApiKeyChanged { id, webhook_url }))
    }

    /// Two secrets sign at most: a second rotation within the time ends the first one's.
    pub(super) fn rotate_webhook_secret(
        &self,
        id: ObjectId,
        webhook_secret: Vec<u8>,
        now: Timestamp,
    ) -> Result<Decision, Rejection> {
        self.live_api_key(id)?;
        let previous_until = now.plus_ms(SECRET_OVERLAP_MS);
        Ok(Decision::of(Event::WebhookSecretRotated { id, webhook_secret, previous_until }))
    }

    fn live_api_key(&self, id: ObjectId) -> Result<&ApiKey, Rejection> {
        match self.keys.by_id().get(&id) {
            None => Err(Rejection::ApiKeyNotFound),
            Some(key) if key.revoked => Err(Rejection::ApiKeyIsRevoked),
            Some(key) => Ok(key),
        }
    }
}
