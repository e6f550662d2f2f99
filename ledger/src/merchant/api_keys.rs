//! API keys of a merchant: creation, revocation, scopes, webhook address and webhook secret.

use std::collections::BTreeMap;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::{MerchantCommand, MerchantState};
use crate::section::{Section, TouchedSections};
use crate::{Decision, Event, EventChoice, ObjectId, Record, Rejection, Result, Scopes, Timestamp};

/// An API key as its merchant keeps it: the digest, never the key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApiKey {
    /// SHA-256 of the key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// Address of its webhooks; `None` if it has none.
    #[n(1)]
    pub webhook_url: Option<String>,
    /// The webhook secret, sealed under the master key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub webhook_secret: Vec<u8>,
    /// True once revoked.
    #[n(3)]
    pub revoked: bool,
    /// The webhook secrets before, the newest first; they sign beside the new one for a while.
    #[cbor(n(5), default)]
    pub previous_secrets: Vec<PreviousSecret>,
    /// What the key may do.
    #[cbor(n(6), default, skip_if = "Scopes::are_all")]
    pub scopes: Scopes,
    /// The events that its address receives.
    #[cbor(n(7), default, skip_if = "EventChoice::are_all")]
    pub events: EventChoice,
}

impl ApiKey {
    /// The id and the scopes of the key that a Record creates; `None` if it creates none.
    pub fn created_by(record: &Record) -> Option<(ObjectId, Scopes)> {
        record.events.iter().find_map(|event| match event {
            Event::ApiKeyCreated { id, scopes, .. } => Some((*id, *scopes)),
            _ => None,
        })
    }

    /// The key whose webhook secret a Record replaces, and the new secret, sealed under the master
    /// key.
    pub fn secret_rotated_by(record: &Record) -> Option<(ObjectId, &[u8])> {
        record.events.iter().find_map(|event| match event {
            Event::WebhookSecretRotated { id, webhook_secret, .. } => Some((*id, webhook_secret.as_slice())),
            _ => None,
        })
    }
}

/// A webhook secret that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PreviousSecret {
    /// The secret, sealed under the master key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub sealed: Vec<u8>,
    /// It signs until this time.
    #[n(1)]
    pub until: Timestamp,
}

impl PreviousSecret {
    /// Puts a secret that signs on until `until` before those that were replaced less than that
    /// time ago; older ones are forgotten.
    pub fn push(previous: &mut Vec<Self>, sealed: Vec<u8>, until: Timestamp) {
        let now = until.plus_ms(-SECRET_OVERLAP_MS);
        previous.retain(|known| now < known.until);
        previous.insert(0, Self { sealed, until });
    }
}

/// Replaced secrets that sign on, at which no further one is replaced: each is in the header of
/// every webhook.
const PREVIOUS_MAX: usize = 4;

/// How long a webhook secret signs on after it was replaced, milliseconds: the receiver has this
/// time to change it.
pub const SECRET_OVERLAP_MS: i64 = 24 * 60 * 60 * 1000;

/// Live keys up to which a merchant makes further ones itself: each has rate limits of its own.
pub const LIVE_KEYS_MAX: usize = 20;
/// Keys of a merchant, with the revoked ones, up to which it makes further ones itself: a revoked
/// key stays in the state.
pub const KEYS_MAX: usize = 1_000;

impl MerchantState {
    /// Refuses a command on keys that a merchant asks for by its key `by`: where operators manage
    /// its keys, and where the key that is made, changed, revoked or gets another secret may do
    /// more than `by`.
    pub(super) fn may_manage_keys(&self, by: ObjectId, command: &MerchantCommand) -> Result<()> {
        if self.settings.options.own_keys_forbidden {
            return Err(Rejection::OwnKeysNotAllowed);
        }
        let own = self.live_api_key(by)?.scopes;
        let wanted = match command {
            MerchantCommand::CreateApiKey { scopes, .. } => Some(*scopes),
            MerchantCommand::RevokeApiKey { id }
            | MerchantCommand::ChangeApiKey { id, .. }
            | MerchantCommand::RotateWebhookSecret { id, .. } => self.keys.by_id.get(id).map(|key| key.scopes),
            _ => None,
        };
        if !own.include(wanted.ok_or(Rejection::ApiKeyNotFound)?) {
            return Err(Rejection::ScopesExceedKey);
        }
        let live = self.keys.by_id.values().filter(|key| !key.revoked).count();
        let is_full = live >= LIVE_KEYS_MAX || self.keys.by_id.len() >= KEYS_MAX;
        match command {
            MerchantCommand::CreateApiKey { .. } if is_full => Err(Rejection::TooManyApiKeys),
            _ => Ok(()),
        }
    }

    /// The API keys, by id.
    pub fn api_keys(&self) -> &BTreeMap<ObjectId, ApiKey> {
        &self.keys.by_id
    }

    pub(super) fn revoke_api_key(&self, id: ObjectId) -> Result<Decision> {
        match self.keys.by_id.get(&id) {
            None => Err(Rejection::ApiKeyNotFound),
            Some(key) if key.revoked => Ok(Decision::default()),
            Some(_) => Ok(Decision::of(Event::ApiKeyRevoked { id })),
        }
    }

    pub(super) fn change_api_key(
        &self,
        id: ObjectId,
        webhook_url: Option<Option<String>>,
        events: Option<EventChoice>,
    ) -> Result<Decision> {
        let key = self.live_api_key(id)?;
        let webhook_url = webhook_url.unwrap_or_else(|| key.webhook_url.clone());
        let events = events.unwrap_or(key.events);
        if (&webhook_url, events) == (&key.webhook_url, key.events) {
            return Ok(Decision::default());
        }
        Ok(Decision::of(Event::ApiKeyChanged { id, webhook_url, events }))
    }

    /// The secret that is replaced signs on for a day, as do those that were replaced before.
    /// Refused while [`PREVIOUS_MAX`] of them do: the receiver may know the oldest one alone.
    pub(super) fn rotate_webhook_secret(
        &self,
        id: ObjectId,
        webhook_secret: Vec<u8>,
        now: Timestamp,
    ) -> Result<Decision> {
        let signing = self.live_api_key(id)?.previous_secrets.iter().filter(|known| now < known.until);
        if signing.count() >= PREVIOUS_MAX {
            return Err(Rejection::WebhookSecretsStillSign);
        }
        let previous_until = now.plus_ms(SECRET_OVERLAP_MS);
        Ok(Decision::of(Event::WebhookSecretRotated { id, webhook_secret, previous_until }))
    }

    fn live_api_key(&self, id: ObjectId) -> Result<&ApiKey> {
        match self.keys.by_id.get(&id) {
            None => Err(Rejection::ApiKeyNotFound),
            Some(key) if key.revoked => Err(Rejection::ApiKeyIsRevoked),
            Some(key) => Ok(key),
        }
    }
}

/// The API keys, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ApiKeys {
    by_id: BTreeMap<ObjectId, ApiKey>,
    touched: TouchedSections,
}

impl ApiKeys {
    pub(super) fn create(&mut self, id: ObjectId, created: &Event) {
        let Event::ApiKeyCreated { digest, webhook_url, webhook_secret, scopes, events, .. } = created else { return };
        let (webhook_url, webhook_secret) = (webhook_url.clone(), webhook_secret.clone());
        let (digest, scopes, events, previous_secrets) = (*digest, *scopes, *events, Vec::new());
        let key = ApiKey { digest, webhook_url, webhook_secret, revoked: false, previous_secrets, scopes, events };
        self.by_id.insert(id, key);
        self.touched.touch(0);
    }

    pub(super) fn revoke(&mut self, id: ObjectId) {
        self.change(id, |key| key.revoked = true);
    }

    pub(super) fn send_webhooks_to(&mut self, id: ObjectId, webhook_url: Option<&str>, events: EventChoice) {
        self.change(id, |key| (key.webhook_url, key.events) = (webhook_url.map(str::to_owned), events));
    }

    /// The secret that is replaced signs beside the new one until this time.
    pub(super) fn rotate_secret(&mut self, id: ObjectId, webhook_secret: &[u8], until: Timestamp) {
        self.change(id, |key| {
            let sealed = std::mem::replace(&mut key.webhook_secret, webhook_secret.to_vec());
            PreviousSecret::push(&mut key.previous_secrets, sealed, until);
        });
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of all keys, `{id: key, …}`; `None` if there are none.
    pub(super) fn section(&self) -> Option<Vec<u8>> {
        (!self.by_id.is_empty()).then(|| minicbor::to_vec(&self.by_id).expect("writing into memory cannot fail"))
    }

    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.by_id = minicbor::decode(bytes)?;
        Ok(())
    }

    fn change(&mut self, id: ObjectId, change: impl FnOnce(&mut ApiKey)) {
        if let Some(key) = self.by_id.get_mut(&id) {
            change(key);
            self.touched.touch(0);
        }
    }
}
