//! Who there is: merchants, recipients and API keys, as published.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ledger::event::Event;
use ledger::fees::Settings;
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{BankReview, PreviousSecret, RecipientStatus};
use ledger::personal::{Sealed, SealedFor};
use ledger::record::Record;
use ledger::time::Timestamp;
use minicbor::{Decode, Encode};

use super::merchants::Merchants;
use super::pages;
use super::waiting::WaitingSet;
use crate::store::Sequence;

/// A merchant, as published. The numbers here and below are those of its packed form, which lasts as long as the process.
#[derive(Clone, Debug, Encode, Decode)]
pub struct MerchantRow {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// What the operator configured.
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

/// Sealed data that changes: each version with the ordinal of the owner's Record that brought it, oldest first. An answer that
/// is given again is written from the version of its time.
#[derive(Clone, Debug, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Versions(#[n(0)] Vec<(u64, Sealed)>);

impl Versions {
    /// The version in force.
    pub fn current(&self) -> Option<&Sealed> {
        self.0.last().map(|(_, sealed)| sealed)
    }

    /// The version that was in force once the owner's Record of this ordinal had taken effect; the oldest that is kept when that one
    /// is forgotten.
    pub fn at(&self, ordinal: u64) -> Option<&Sealed> {
        let known = self.0.partition_point(|(since, _)| *since <= ordinal);
        self.0.get(known.saturating_sub(1)).map(|(_, sealed)| sealed)
    }

    fn count(&mut self, record: &Record) {
        self.0.extend(record.personal.clone().map(|sealed| (record.ordinal, sealed)));
    }

    /// Counts a Record and forgets all but the newest [`RECIPIENT_VERSIONS_MAX`]: what may be changed without end must not grow with it.
    fn count_newest(&mut self, record: &Record) {
        self.count(record);
        self.0.drain(..self.0.len().saturating_sub(RECIPIENT_VERSIONS_MAX));
    }

    fn of(record: &Record) -> Self {
        let mut versions = Self::default();
        versions.count(record);
        versions
    }
}

/// Versions of a recipient's registration that are kept, for answers that are given again.
const RECIPIENT_VERSIONS_MAX: usize = 16;

/// A recipient, as published.
#[derive(Clone, Debug, Encode, Decode)]
pub struct RecipientRow {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Where its registration stands.
    #[n(1)]
    pub status: RecipientStatus,
    /// Its registration, in its last versions.
    #[n(2)]
    pub profiles: Versions,
    /// When it was registered.
    #[n(3)]
    pub created_at: Timestamp,
    /// Where the review of its bank account stands, and since when; none when the account was approved.
    #[n(4)]
    pub bank_review: Option<(BankReview, Timestamp)>,
    /// Keyed digest of its document.
    #[n(5)]
    pub document: Fingerprint,
    /// Its name, folded for search, once somebody searched: names stand sealed on the disk.
    #[cbor(skip)]
    search_key: OnceLock<String>,
}

impl RecipientRow {
    pub(super) fn new(id: ObjectId, status: RecipientStatus, profiles: Versions, created_at: Timestamp) -> Self {
        let (bank_review, document) = (None, Fingerprint([0; 16]));
        Self { id, status, profiles, created_at, bank_review, document, search_key: OnceLock::new() }
    }

    /// Takes the registration that a Record brought.
    fn change(&mut self, record: &Record, document: Fingerprint) {
        self.document = document;
        self.profiles.count_newest(record);
        self.search_key = OnceLock::new();
    }

    /// What its registration is sealed for.
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
    /// Whose.
    #[n(0)]
    pub group: GroupNumber,
    /// SHA-256 of the key.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// True once revoked.
    #[n(2)]
    pub revoked: bool,
    /// Where its webhooks go, and how they are signed.
    #[n(3)]
    pub webhook: WebhookRow,
}

/// Where an API key's webhooks go, and how they are signed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WebhookRow {
    /// Where they go; none for nowhere.
    #[n(0)]
    pub url: Option<String>,
    /// The Record since which they go anywhere: it told the first of the addresses without a break.
    #[n(1)]
    pub since: u64,
    /// The secret that signs them, sealed under the master key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub secret: Vec<u8>,
    /// The secret before that, which signs beside it for a while.
    #[n(3)]
    pub previous: Option<PreviousSecret>,
}

/// Merchants, keys, and what follows from them.
#[derive(Default)]
pub(super) struct Accounts {
    pub(super) merchants: Merchants,
    /// How many pages they take.
    pub(super) pages: u64,
    pub(super) drafts: BTreeSet<(GroupNumber, ObjectId)>,
    pub(super) waiting: WaitingSet,
    pub(super) clock_offset_ms: i64,
}

impl Accounts {
    fn key_mut(&mut self, group: GroupNumber, id: ObjectId) -> Option<&mut ApiKeyRow> {
        let keys = &mut self.merchants.get_mut(group)?.keys;
        keys.iter_mut().find(|(known, _)| *known == id).map(|(_, key)| key)
    }

    /// Counts an event of a Record that is about a ledger.
    pub(super) fn count(&mut self, event: &Event, about: LedgerId, record: &Record, sequence: Sequence) {
        if let Event::ClockMoved { offset_ms } = event {
            self.clock_offset_ms = *offset_ms;
        }
        let Some(group) = record.owner.group() else { return };
        match event {
            Event::MerchantOpened { id, settings } => {
                let row = MerchantRow {
                    id: *id,
                    settings: *settings,
                    profiles: Versions::of(record),
                    recipients: Vec::new(),
                    keys: Vec::new(),
                    created_at: record.effective_at,
                };
                self.merchants.insert(group, row);
                self.pages += 1;
            }
            Event::ApiKeyCreated { id, digest, webhook_url, webhook_secret } => {
                let (url, secret) = (webhook_url.clone(), webhook_secret.clone());
                let webhook = WebhookRow { url, since: sequence.0, secret, previous: None };
                if let Some(merchant) = self.merchants.get_mut(group) {
                    merchant.keys.push((*id, ApiKeyRow { group, digest: *digest, revoked: false, webhook }));
                }
            }
            Event::ApiKeyChanged { id, webhook_url } => {
                if let Some(key) = self.key_mut(group, *id) {
                    if key.webhook.url.is_none() {
                        key.webhook.since = sequence.0;
                    }
                    key.webhook.url.clone_from(webhook_url);
                }
            }
            Event::WebhookSecretRotated { id, webhook_secret, previous_until } => {
                if let Some(key) = self.key_mut(group, *id) {
                    let sealed = std::mem::replace(&mut key.webhook.secret, webhook_secret.clone());
                    key.webhook.previous = Some(PreviousSecret { sealed, until: *previous_until });
                }
            }
            Event::ApiKeyRevoked { id } => {
                if let Some(key) = self.key_mut(group, *id) {
                    key.revoked = true;
                }
            }
            event => {
                if let Event::RecipientRegistered { number, .. } = event
                    && pages::begins_with(*number)
                {
                    self.pages += 1;
                }
                let Some(merchant) = self.merchants.get_mut(group) else { return };
                let recipient = count_merchant(merchant, event, record).map(|row| (row.id, row.status));
                match recipient {
                    Some((id, RecipientStatus::Draft)) => drop(self.drafts.insert((group, id))),
                    Some((id, _)) => drop(self.drafts.remove(&(group, id))),
                    None => {}
                }
                self.waiting.count(event, about, recipient.map(|(id, _)| id), record);
            }
        }
    }
}

/// Counts an event about a merchant that is open; gives the recipient that it is about.
fn count_merchant<'a>(merchant: &'a mut MerchantRow, event: &Event, record: &Record) -> Option<&'a RecipientRow> {
    let (number, status) = match event {
        Event::MerchantChanged { settings } => {
            merchant.settings = *settings;
            merchant.profiles.count(record);
            return None;
        }
        Event::RecipientRegistered { number, id, document } => {
            let (status, profiles) = (RecipientStatus::Draft, Versions::of(record));
            let mut row = RecipientRow::new(*id, status, profiles, record.effective_at);
            row.document = *document;
            return Some(merchant.put_recipient(*number, row));
        }
        Event::RecipientRegisteredAgain { number, document } => {
            recipient_row(merchant, *number)?.change(record, *document);
            (number, RecipientStatus::Draft)
        }
        Event::RecipientChanged { number, document } => {
            let recipient = recipient_row(merchant, *number)?;
            recipient.change(record, *document);
            return Some(recipient);
        }
        Event::BankAccountChanged { number, active } => {
            return review_bank_account(merchant, *number, record, active.then_some(BankReview::Pending));
        }
        Event::BankAccountApproved { number } => return review_bank_account(merchant, *number, record, None),
        Event::BankAccountRejected { number, .. } => {
            return review_bank_account(merchant, *number, record, Some(BankReview::Rejected));
        }
        Event::RecipientSubmitted { number } => (number, RecipientStatus::Pending),
        Event::RecipientApproved { number } => (number, RecipientStatus::Active),
        Event::RecipientRejected { number, .. } => (number, RecipientStatus::Rejected),
        _ => return None,
    };
    let recipient = recipient_row(merchant, *number)?;
    recipient.status = status;
    Some(recipient)
}

fn review_bank_account<'a>(
    merchant: &'a mut MerchantRow,
    number: RecipientNumber,
    record: &Record,
    review: Option<BankReview>,
) -> Option<&'a RecipientRow> {
    let recipient = recipient_row(merchant, number)?;
    recipient.bank_review = review.map(|review| (review, record.effective_at));
    Some(recipient)
}

fn recipient_row(merchant: &mut MerchantRow, number: RecipientNumber) -> Option<&mut RecipientRow> {
    merchant.recipients.get_mut((number.0 as usize).checked_sub(1)?)
}

/// True for events that [`Accounts::count`] counts.
pub(super) fn is_about_accounts(event: &Event) -> bool {
    matches!(
        event,
        Event::MerchantOpened { .. }
            | Event::MerchantChanged { .. }
            | Event::ApiKeyCreated { .. }
            | Event::ApiKeyRevoked { .. }
            | Event::ApiKeyChanged { .. }
            | Event::WebhookSecretRotated { .. }
            | Event::RecipientRegistered { .. }
            | Event::RecipientRegisteredAgain { .. }
            | Event::RecipientSubmitted { .. }
            | Event::RecipientApproved { .. }
            | Event::RecipientRejected { .. }
            | Event::RecipientChanged { .. }
            | Event::BankAccountChanged { .. }
            | Event::BankAccountApproved { .. }
            | Event::BankAccountRejected { .. }
            | Event::ClockMoved { .. }
            | Event::WithdrawalRequested { .. }
            | Event::WithdrawalApproved { .. }
            | Event::WithdrawalPaid { .. }
            | Event::WithdrawalRejected { .. }
            | Event::CashoutCreated { .. }
            | Event::CashoutProcessed { .. }
            | Event::CashoutFailed { .. }
            | Event::RefundRequested { .. }
            | Event::RefundApproved { .. }
            | Event::RefundRejected { .. }
            | Event::DisputeOpened { .. }
            | Event::DisputeAccepted { .. }
            | Event::DisputeReleased { .. }
    )
}
