//! Rows of merchants, recipients and API keys, as published. The CBOR numbers are those of a row's
//! packed form, which lasts as long as the process.

use std::sync::OnceLock;

use ledger::event_choice::EventChoice;
use ledger::fees::Settings;
use ledger::id::{Fingerprint, GroupNumber, ObjectId, RecipientNumber};
use ledger::merchant::{BankReview, PreviousSecret, RecipientStatus};
use ledger::personal::{Sealed, SealedFor};
use ledger::record::Record;
use ledger::scope::Scopes;
use ledger::time::Timestamp;
use minicbor::{Decode, Encode};

/// A merchant, as published.
#[derive(Clone, Debug, Encode, Decode)]
pub struct MerchantRow {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// The operator's settings.
    #[n(1)]
    pub settings: Settings,
    /// Its profile, in every version.
    #[n(2)]
    pub profiles: Versions,
    /// Its recipients; number n stands at n − 1.
    #[n(3)]
    pub recipients: Vec<RecipientRow>,
    /// Its API keys, oldest first.
    #[n(4)]
    pub keys: Vec<(ObjectId, ApiKeyRow)>,
    /// When it was opened.
    #[n(5)]
    pub created_at: Timestamp,
}

impl MerchantRow {
    /// Puts a recipient in its place; places before it that are still empty are filled later.
    pub(super) fn put_recipient(&mut self, number: RecipientNumber, row: RecipientRow) -> &RecipientRow {
        let place = (number.0 as usize).saturating_sub(1);
        while self.recipients.len() <= place {
            let nobody =
                RecipientRow::new(ObjectId::default(), RecipientStatus::Draft, Versions::default(), Timestamp(0));
            self.recipients.push(nobody);
        }
        self.recipients[place] = row;
        &self.recipients[place]
    }

    /// One of its API keys.
    pub(super) fn key(&self, id: ObjectId) -> Option<&ApiKeyRow> {
        self.keys.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }
}

/// Versions of sealed data that changes, oldest first, each with the ordinal of the owner's Record
/// that brought it. A replayed answer is written from the version of its time.
#[derive(Clone, Debug, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Versions(#[n(0)] Vec<(u64, Sealed)>);

impl Versions {
    /// The version in force.
    pub fn current(&self) -> Option<&Sealed> {
        self.0.last().map(|(_, sealed)| sealed)
    }

    /// The stored versions, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Sealed> {
        self.0.iter().map(|(_, sealed)| sealed)
    }

    /// The version that was in force once the owner's Record of this ordinal had taken effect. When
    /// that version is forgotten, the oldest stored one.
    pub fn at(&self, ordinal: u64) -> Option<&Sealed> {
        let known = self.0.partition_point(|(since, _)| *since <= ordinal);
        self.0.get(known.saturating_sub(1)).map(|(_, sealed)| sealed)
    }

    /// Counts the version that a Record brings. One that is not the next is a former one in the
    /// wrong place: it opens for nobody.
    pub(super) fn count(&mut self, record: &Record) {
        let Some(sealed) = &record.personal else { return };
        let is_next = self.current().is_none_or(|former| sealed.follows(former));
        self.0.push((record.ordinal, if is_next { sealed.clone() } else { Sealed::default() }));
    }

    /// Counts a Record and forgets all but the newest [`RECIPIENT_VERSIONS_MAX`]: memory must not
    /// grow with the number of changes.
    fn count_newest(&mut self, record: &Record) {
        self.count(record);
        self.0.drain(..self.0.len().saturating_sub(RECIPIENT_VERSIONS_MAX));
    }

    pub(super) fn of(record: &Record) -> Self {
        let mut versions = Self::default();
        versions.count(record);
        versions
    }
}

/// Stored versions of a recipient's registration, for replayed answers.
const RECIPIENT_VERSIONS_MAX: usize = 16;

/// A recipient, as published.
#[derive(Clone, Debug, Encode, Decode)]
pub struct RecipientRow {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Status of its registration.
    #[n(1)]
    pub status: RecipientStatus,
    /// Its registration, in its last versions.
    #[n(2)]
    pub profiles: Versions,
    /// When it was registered.
    #[n(3)]
    pub created_at: Timestamp,
    /// Status of the review of its bank account, and since when; `None` if the account was
    /// approved.
    #[n(4)]
    pub bank_review: Option<(BankReview, Timestamp)>,
    /// Keyed digest of its tax id.
    #[n(5)]
    pub document: Fingerprint,
    /// Operators froze it: nothing leaves to it.
    #[cbor(n(6), skip_if = "std::ops::Not::not")]
    pub frozen: bool,
    /// Its name, folded for search, once somebody searched: names stand sealed on the disk.
    #[cbor(skip)]
    search_key: OnceLock<String>,
}

impl RecipientRow {
    pub(super) fn new(id: ObjectId, status: RecipientStatus, profiles: Versions, created_at: Timestamp) -> Self {
        let (bank_review, document, frozen, search_key) = (None, Fingerprint([0; 16]), false, OnceLock::new());
        Self { id, status, profiles, created_at, bank_review, document, frozen, search_key }
    }

    /// Takes the registration that a Record brought.
    pub(super) fn change(&mut self, record: &Record, document: Fingerprint) {
        self.document = document;
        self.profiles.count_newest(record);
        self.search_key = OnceLock::new();
    }

    /// Purpose under which its registration is sealed.
    pub fn sealed_for(&self) -> SealedFor {
        SealedFor::recipient(self.document)
    }

    /// Its name, folded for search; `fold` makes it of its registration.
    pub fn search_key(&self, fold: impl FnOnce(&Sealed) -> String) -> &str {
        self.search_key.get_or_init(|| self.profiles.current().map(fold).unwrap_or_default())
    }
}

/// An API key, as published.
#[derive(Clone, Debug, Encode, Decode)]
pub struct ApiKeyRow {
    /// The merchant that it belongs to.
    #[n(0)]
    pub group: GroupNumber,
    /// SHA-256 of the key.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// True once revoked.
    #[n(2)]
    pub revoked: bool,
    /// Webhook address and signing secrets.
    #[n(3)]
    pub webhook: WebhookRow,
    /// What the key may do.
    #[n(4)]
    pub scopes: Scopes,
}

/// Webhook address and signing secrets of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WebhookRow {
    /// The address; none for no webhooks.
    #[n(0)]
    pub url: Option<String>,
    /// The Record since which the key has had an address without a break.
    #[n(1)]
    pub since: u64,
    /// The secret that signs them, sealed under the master key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub secret: Vec<u8>,
    /// The secrets before that, the newest first, which sign beside it for a while.
    #[n(3)]
    pub previous: Vec<PreviousSecret>,
    /// The events that the address receives.
    #[cbor(n(4), default, skip_if = "EventChoice::are_all")]
    pub events: EventChoice,
}
