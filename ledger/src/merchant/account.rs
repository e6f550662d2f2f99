//! Opening a merchant's books, and its API keys.

use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::event::Event;
use crate::fees::Settings;
use crate::id::ObjectId;
use crate::personal::Sealed;
use crate::record::Decision;
use crate::rejection::Rejection;

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
}

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
}
