//! Registry of merchants, recipients and API keys, as published; with the drafts to be submitted,
//! and the items that wait for an operator.

use std::collections::BTreeSet;

use ledger::merchant::{BankReview, PreviousSecret};
use ledger::{Event, GroupNumber, LedgerId, Month, ObjectId, RecipientNumber, RecipientStatus, Record};
use minicbor::{Decode, Encode};

use super::merchants::Merchants;
use super::operator_queue::WaitingSet;
use super::page_id;
use super::rows::{ApiKeyRow, KeyCreator, MerchantRow, PastChoices, RecipientRow, Versions, WebhookRow};
use crate::extents::Places;
use store::Sequence;

/// The acquirer's batches from files of operators, which are numbered from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct FileBatches {
    /// Number of the last one that is booked whole; 0 before the first one.
    #[n(0)]
    pub booked: u64,
    /// Number of the last one that was approved.
    #[n(1)]
    pub approved: u64,
}

/// Merchants, keys, and what follows from them.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) merchants: Merchants,
    /// How many pages they take.
    pub(super) pages: u64,
    pub(super) drafts: BTreeSet<(GroupNumber, ObjectId)>,
    pub(super) waiting: WaitingSet,
    pub(super) house: HouseFacts,
}

/// What Records of the house said of the whole installation.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct HouseFacts {
    /// The sandbox clock's offset, milliseconds.
    #[n(0)]
    pub clock_offset_ms: i64,
    /// Number of the acquirer's last batch that is booked whole; 0 before the first one.
    #[n(1)]
    pub booked_batch: u64,
    /// The acquirer's batches from files of operators.
    #[n(2)]
    pub file_batches: FileBatches,
    /// The map to the company's chart of accounts, as it was set last.
    #[n(3)]
    pub chart: Option<String>,
    /// The months that were closed, in order, each with the sequence of the Record that closed it.
    #[n(4)]
    pub closed: Vec<(Month, u64)>,
}

impl HouseFacts {
    fn count(&mut self, event: &Event, sequence: Sequence) {
        match event {
            Event::ClockMoved { offset_ms } => self.clock_offset_ms = *offset_ms,
            Event::AcquirerBatchBooked { batch, .. } if batch.of_file => self.file_batches.booked = batch.number,
            Event::AcquirerBatchBooked { batch, .. } => self.booked_batch = batch.number,
            Event::AcquirerFileSent { references, approval: Some(approval), .. } => {
                self.file_batches.approved = approval.first_number - 1 + references.len() as u64;
            }
            Event::ChartOfAccountsSet { map } => self.chart = Some(map.clone()),
            Event::PeriodClosed { month, .. } => self.closed.push((*month, sequence.0)),
            _ => {}
        }
    }
}

impl Registry {
    /// Nothing registered yet.
    pub(super) fn new(places: Places) -> Self {
        Self { merchants: Merchants::new(places), ..Self::default() }
    }

    fn key_mut(&mut self, group: GroupNumber, id: ObjectId) -> Option<&mut ApiKeyRow> {
        let keys = &mut self.merchants.get_mut(group)?.keys;
        keys.iter_mut().find(|(known, _)| *known == id).map(|(_, key)| key)
    }

    /// Counts an event of a Record that is about a ledger.
    pub(super) fn count(&mut self, event: &Event, about: LedgerId, record: &Record, sequence: Sequence) {
        self.house.count(event, sequence);
        let Some(group) = record.owner.group() else {
            self.waiting.count(event, about, None, record);
            return;
        };
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
            Event::ApiKeyCreated { id, digest, webhook_url, webhook_secret, scopes, events } => {
                let (url, secret) = (webhook_url.clone(), webhook_secret.clone());
                let (previous, events, past_choices) = (Vec::new(), *events, PastChoices::default());
                let webhook = WebhookRow { url, since: sequence.0, secret, previous, events, past_choices };
                if let Some(merchant) = self.merchants.get_mut(group) {
                    let (digest, scopes) = (*digest, *scopes);
                    let creator = KeyCreator { operator: record.operator.clone(), key: record.api_key };
                    merchant.keys.push((*id, ApiKeyRow { group, digest, revoked: false, webhook, scopes, creator }));
                }
            }
            Event::ApiKeyChanged { id, webhook_url, events } => {
                if let Some(key) = self.key_mut(group, *id) {
                    key.webhook.change(webhook_url.as_deref(), *events, sequence);
                }
            }
            Event::WebhookSecretRotated { id, webhook_secret, previous_until } => {
                if let Some(key) = self.key_mut(group, *id) {
                    let sealed = std::mem::replace(&mut key.webhook.secret, webhook_secret.clone());
                    PreviousSecret::push(&mut key.webhook.previous, sealed, *previous_until);
                }
            }
            Event::ApiKeyRevoked { id } => {
                if let Some(key) = self.key_mut(group, *id) {
                    key.revoked = true;
                }
            }
            event => {
                if let Event::RecipientRegistered { number, .. } = event
                    && page_id::begins_with(*number)
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
        Event::MerchantChanged { settings, .. } => {
            merchant.settings = *settings;
            merchant.profiles.count(record);
            return None;
        }
        Event::RecipientRegistered { number, id, document } => {
            let draft = RecipientRow::new(*number, *id, Versions::of(record), record.effective_at);
            return Some(merchant.put_recipient(RecipientRow { document: *document, ..draft }));
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
        Event::RecipientFrozen { number, .. } | Event::RecipientUnfrozen { number, .. } => {
            let recipient = recipient_row(merchant, *number)?;
            recipient.frozen = matches!(event, Event::RecipientFrozen { .. });
            return Some(recipient);
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

/// False for the frequent events that [`Registry::count`] does not count: they need no lock of it,
/// and wake no merchant that is at rest.
pub(super) fn concerns_registry(event: &Event) -> bool {
    !matches!(
        event,
        Event::ChargeOpened { .. }
            | Event::CardAuthorized { .. }
            | Event::CardCaptured { .. }
            | Event::CardRefused { .. }
            | Event::CardUnanswered { .. }
            | Event::PixRegistered { .. }
            | Event::PixPaid { .. }
            | Event::PixCancelled { .. }
            | Event::ReferenceReserved { .. }
            | Event::MetadataChanged { .. }
            | Event::FiscalDocumentLinked { .. }
            | Event::Matured { .. }
            | Event::DeficitRecovered { .. }
            | Event::ClawbackRecovered { .. }
            | Event::SplitsAnticipated { .. }
            | Event::AcquirerSettled { .. }
            | Event::PayerRepaid { is_unordered: false, .. }
            | Event::SubscriptionBilled { .. }
            | Event::SubscriptionAdvanced { .. }
    )
}
