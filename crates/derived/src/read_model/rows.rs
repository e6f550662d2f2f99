//! Rows of merchants, recipients and API keys, as published. The CBOR numbers are those of a row's
//! packed form, which lasts as long as the process.

use std::sync::OnceLock;

use ledger::merchant::{BankReview, PreviousSecret};
use ledger::{
    EventChoice, Fingerprint, GroupNumber, ObjectId, RecipientNumber, RecipientStatus, Record, Scopes, Sealed,
    SealedFor, Settings, Timestamp,
};
use minicbor::{Decode, Encode};
use store::Sequence;

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
    pub(super) fn put_recipient(&mut self, row: RecipientRow) -> &RecipientRow {
        let place = (row.number.0 as usize).saturating_sub(1);
        for number in (1..).map(RecipientNumber).take(place + 1).skip(self.recipients.len()) {
            self.recipients.push(RecipientRow::new(number, ObjectId::default(), Versions::default(), Timestamp(0)));
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

/// A recipient, as published. Its CBOR numbers are those of the read model's pages too.
#[derive(Clone, Debug, Encode, Decode)]
pub struct RecipientRow {
    /// Its number among those of its merchant.
    #[n(0)]
    pub(super) number: RecipientNumber,
    /// Its id.
    #[n(1)]
    pub id: ObjectId,
    /// Status of its registration.
    #[n(2)]
    pub status: RecipientStatus,
    /// Its registration, in its last versions.
    #[n(3)]
    pub profiles: Versions,
    /// When it was registered.
    #[n(4)]
    pub created_at: Timestamp,
    /// Status of the review of its bank account, and since when; `None` if the account was
    /// approved.
    #[n(5)]
    pub bank_review: Option<(BankReview, Timestamp)>,
    /// Keyed digest of its tax id.
    #[cbor(n(6), default)]
    pub document: Fingerprint,
    /// Operators froze it: nothing leaves to it.
    #[cbor(n(7), skip_if = "std::ops::Not::not")]
    pub frozen: bool,
    /// Its name, folded for search, once somebody searched: names stand sealed on the disk.
    #[cbor(skip)]
    pub(super) search_key: OnceLock<String>,
}

impl RecipientRow {
    /// A draft.
    pub(super) fn new(number: RecipientNumber, id: ObjectId, profiles: Versions, created_at: Timestamp) -> Self {
        let (status, bank_review, frozen, search_key) = (RecipientStatus::Draft, None, false, OnceLock::new());
        let document = Fingerprint::default();
        Self { number, id, status, profiles, created_at, bank_review, document, frozen, search_key }
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
    /// Who made it.
    #[n(5)]
    pub creator: KeyCreator,
}

/// Creator of an API key: an operator, by name, or another key of the merchant; neither for the
/// service itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct KeyCreator {
    /// The operator.
    #[n(0)]
    pub operator: Option<String>,
    /// The key.
    #[n(1)]
    pub key: Option<ObjectId>,
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
    /// The choices before that, since the key has had an address.
    #[cbor(n(5), default, skip_if = "PastChoices::is_empty")]
    pub past_choices: PastChoices,
}

impl WebhookRow {
    /// Takes the address and the choice that a Record brought.
    pub(super) fn change(&mut self, url: Option<&str>, events: EventChoice, sequence: Sequence) {
        if self.url.is_none() {
            (self.since, self.past_choices) = (sequence.0, PastChoices::default());
        } else if self.events != events {
            self.past_choices.push(PastChoice { until: sequence.0, events: self.events });
        }
        (self.url, self.events) = (url.map(str::to_owned), events);
    }
}

/// Changes of a choice that are remembered.
const PAST_CHOICES_MAX: usize = 16;

/// Choices of events that an address had, oldest first. Of many the oldest become one with the
/// kinds of all of them: an event may be sent that was not chosen when it came, and none is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct PastChoices(#[n(0)] Vec<PastChoice>);

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct PastChoice {
    /// The Record that brought the next choice.
    #[n(0)]
    until: u64,
    #[n(1)]
    events: EventChoice,
}

impl PastChoices {
    fn push(&mut self, past: PastChoice) {
        self.0.push(past);
        if self.0.len() > PAST_CHOICES_MAX {
            let oldest = self.0.remove(0);
            self.0[0].events = self.0[0].events.and(oldest.events);
        }
    }

    /// True if there was no other choice.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The choice at a Record; `None` if it was the present one.
    pub fn at(&self, sequence: Sequence) -> Option<EventChoice> {
        self.0.iter().find(|past| sequence.0 < past.until).map(|past| past.events)
    }
}

#[cfg(test)]
mod tests {
    use ledger::webhook_events::WebhookEventKind::{self, ChargeCancelled, ChargePaid, ChargeRefused};

    use super::*;

    fn row(url: Option<&str>) -> WebhookRow {
        let (url, events) = (url.map(str::to_owned), EventChoice::ALL);
        WebhookRow {
            url,
            since: 1,
            secret: Vec::new(),
            previous: Vec::new(),
            events,
            past_choices: PastChoices::default(),
        }
    }

    fn chosen(row: &WebhookRow, sequence: u64) -> EventChoice {
        row.past_choices.at(Sequence(sequence)).unwrap_or(row.events)
    }

    #[test]
    fn a_choice_holds_from_its_record_on_until_the_next() {
        let url = Some("https://loja.example");
        let [paid, refused] = [[ChargePaid], [ChargeRefused]].map(EventChoice::from_iter);
        let mut row = row(url);
        for (sequence, events) in [(10, paid), (15, paid), (20, refused), (30, EventChoice::ALL)] {
            row.change(url, events, Sequence(sequence));
        }
        let row: WebhookRow = minicbor::decode(&minicbor::to_vec(&row).unwrap()).unwrap();
        let expected = [(9, EventChoice::ALL), (11, paid), (19, paid), (21, refused), (29, refused)];
        for (sequence, events) in expected.into_iter().chain([(31, EventChoice::ALL)]) {
            assert_eq!(chosen(&row, sequence), events, "{sequence}");
        }
        assert_eq!(row.since, 1);
    }

    #[test]
    fn a_new_address_has_no_choices_before_its_own() {
        let mut row = row(Some("https://loja.example"));
        row.change(None, [ChargePaid].into_iter().collect(), Sequence(10));
        assert!(!row.past_choices.is_empty());
        row.change(Some("https://loja.example"), EventChoice::ALL, Sequence(20));
        assert_eq!((row.since, row.past_choices), (20, PastChoices::default()));
    }

    #[test]
    fn of_many_choices_the_oldest_become_one_that_loses_no_event() {
        let url = Some("https://loja.example");
        let mut row = row(url);
        row.events = [ChargeCancelled].into_iter().collect();
        let at = |change: u64| [[ChargePaid], [ChargeRefused]][change as usize % 2].into_iter().collect();
        (1..=40).for_each(|change| row.change(url, at(change), Sequence(change * 10)));
        assert_eq!(row.past_choices.0.len(), PAST_CHOICES_MAX);
        for change in 25..=40 {
            assert_eq!(chosen(&row, change * 10 + 5), at(change), "{change}");
        }
        let all: Vec<WebhookEventKind> = vec![ChargeCancelled, ChargePaid, ChargeRefused];
        assert_eq!([5, 15, 235].map(|sequence| chosen(&row, sequence)), [all.into_iter().collect(); 3]);
    }
}
