//! Outbox of webhooks: the signal that wakes the deliverer, and how far each endpoint has come. The
//! webhook events themselves stand in the journal ([`ledger::webhook_events`]) and are found in the
//! index.
//!
//! Progress is a cursor of the store. It is put every half second and on the disk 0.4 s later, so
//! that after a crash it is behind by a second and the time of a sync of the disk at most: what was
//! delivered in that time is delivered again. It is never ahead, so no event is lost. An endpoint
//! whose progress is gone begins at the Record that brought its address.

use std::sync::Arc;

use ledger::webhook_events::{Subject, each_webhook_event};
use ledger::{Event, GroupNumber, IdSet, LedgerId, ObjectId, Record, Timestamp};
use minicbor::{Decode, Encode};
use parking_lot::Mutex;
use strum::IntoStaticStr;
use tokio::sync::Notify;

use store::{Part, Sequence, StoreError};

/// Prefix of the keys of progress: the group's number and the API key's id follow.
pub const PREFIX: &[u8] = b"webhooks/";
/// The same of the last tries: longer, so that no group's number makes the one the other.
const TRIES_PREFIX: &[u8] = b"webhooks/tries/";

/// Groups with new webhook events since the deliverer last took them. The journal's thread notes
/// them and goes on.
#[derive(Debug, Default)]
pub struct OutboxSignal {
    groups: Mutex<IdSet<GroupNumber>>,
    came: Notify,
}

impl OutboxSignal {
    /// Notes the groups of published Records that have webhook events for an endpoint, or whose
    /// keys changed; `listens` says whether a group has an endpoint. A move of the clock wakes the
    /// deliverer too: a try may be due.
    pub fn note(&self, records: &[(Sequence, Arc<Record>)], listens: impl Fn(GroupNumber) -> bool) {
        let has_events_of = |record: &Record| {
            let mut has_events_of = false;
            each_webhook_event(record, |_| has_events_of = true);
            has_events_of
        };
        let clock_moved = records.iter().any(|(_, record)| record.owner == LedgerId::System);
        let has_events = {
            let mut noted = self.groups.lock();
            for (_, record) in records {
                // Most Records of a block are of few groups: one that is noted need not be looked
                // at.
                if let Some(group) = record.owner.group().filter(|group| !noted.contains(group))
                    && (record.events.iter().any(is_about_keys) || listens(group) && has_events_of(record))
                {
                    noted.insert(group);
                }
            }
            !noted.is_empty()
        };
        if has_events || clock_moved {
            self.came.notify_one();
        }
    }

    /// Notes groups whose partition was taken or is given up.
    pub fn note_groups(&self, groups: Vec<GroupNumber>) {
        self.groups.lock().extend(groups);
        self.came.notify_one();
    }

    /// Waits until something was noted, or until it is time to look at the clock.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// The groups that were noted; they are forgotten.
    pub fn take(&self) -> IdSet<GroupNumber> {
        std::mem::take(&mut self.groups.lock())
    }
}

fn is_about_keys(event: &Event) -> bool {
    matches!(
        event,
        Event::ApiKeyCreated { .. }
            | Event::ApiKeyRevoked { .. }
            | Event::ApiKeyChanged { .. }
            | Event::WebhookSecretRotated { .. }
    )
}

/// How far one endpoint has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Progress {
    /// The Record since which the endpoint gets webhook events.
    #[n(0)]
    pub since: u64,
    /// Every webhook event of the group through this number was delivered, waits, or was given up.
    #[n(1)]
    pub through: u64,
    /// Events that wait, in the order of their numbers.
    #[n(2)]
    pub waiting: Vec<WaitingDelivery>,
    /// Events that were given up, oldest first; the oldest of many are forgotten.
    #[n(3)]
    pub given_up: Vec<u64>,
    /// How the last try of those ended that wait after a try or were given up, in the order of
    /// their numbers.
    #[n(4)]
    pub last_answers: Vec<LastAnswer>,
}

/// How the last try to deliver a webhook event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LastAnswer {
    /// The webhook event's number in the group.
    #[n(0)]
    pub number: u64,
    /// How that try ended.
    #[n(1)]
    pub answer: Answer,
}

/// How one try to deliver a webhook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Answer {
    /// The status of the HTTP answer; `None` if there was no answer.
    #[n(0)]
    pub status: Option<u16>,
    /// Why it counts as a failure; `None` if it does not, or when a later build named a cause that
    /// this one does not know.
    #[n(1)]
    pub cause: Option<Cause>,
    /// When it ended, on the service's clock.
    #[n(2)]
    pub at: Timestamp,
    /// How long it took, in milliseconds of the wall's clock.
    #[n(3)]
    pub duration_ms: u32,
}

/// Why a try to deliver a webhook failed. It is not written as a bare number: a build could not
/// pass over one that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// The answer's status was neither 2xx nor 3xx.
    #[n(0)]
    Status,
    /// The answer was a redirect, which is not followed.
    #[n(1)]
    Redirect,
    /// The host's name has no address.
    #[n(2)]
    Dns,
    /// The address may not be called: it is not public, or not https.
    #[n(3)]
    NotPublic,
    /// Nobody listens at the address.
    #[n(4)]
    Refused,
    /// The network does not reach the address.
    #[n(5)]
    Unreachable,
    /// No secure connection came about: no TLS, or a certificate that is not trusted.
    #[n(6)]
    Tls,
    /// There was no answer in time.
    #[n(7)]
    Timeout,
    /// The connection ended before an answer.
    #[n(8)]
    Closed,
    /// The answer's head was longer than is read.
    #[n(9)]
    TooLarge,
    /// The answer was not HTTP.
    #[n(10)]
    NotHttp,
    /// The service itself could not send.
    #[n(11)]
    Internal,
}

impl Cause {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A webhook event that waits to be delivered to one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WaitingDelivery {
    /// Its number in the group.
    #[n(0)]
    pub number: u64,
    /// How often it was tried in vain.
    #[n(1)]
    pub tries: u32,
    /// When it is tried next.
    #[n(2)]
    pub next_at: Timestamp,
    /// True when it was asked for again: then it waits for no other.
    #[n(3)]
    pub again: bool,
    /// Digest of its subject: events with the same subject wait for each other.
    #[n(4)]
    pub subject: u64,
    /// When the webhook event's Record took effect.
    #[n(5)]
    pub told_at: Timestamp,
}

/// A digest of the subject of a webhook event. Two subjects with the same digest wait for each
/// other needlessly; that is the only effect.
pub fn subject_digest(subject: Subject) -> u64 {
    match subject {
        Subject::Object(id) => (id.0 >> 64) as u64 ^ (id.0 as u64).rotate_left(17),
        Subject::Recipient(number) => u64::from(number.0),
    }
}

/// Progress of all endpoints, in the store.
pub struct Outbox {
    store: Part,
}

impl Outbox {
    /// The progress that one partition keeps.
    pub fn new(store: Part) -> Self {
        Self { store }
    }

    /// Stored progress of an endpoint; `None` if there is none, or none that can be read.
    pub fn progress(&self, group: GroupNumber, key: ObjectId) -> Result<Option<Progress>, StoreError> {
        Ok(self.store.cursor(&name(PREFIX, group, key))?.and_then(|bytes| minicbor::decode(&bytes).ok()))
    }

    /// Keeps an endpoint's progress, without waiting for the disk.
    pub fn keep(&self, group: GroupNumber, key: ObjectId, progress: &Progress) -> Result<(), StoreError> {
        let bytes = minicbor::to_vec(progress).expect("writing into memory cannot fail");
        self.store.put_cursor(&name(PREFIX, group, key), &bytes)
    }

    /// The last tries at an endpoint, as the deliverer writes and seals them; `None` if none are
    /// stored.
    pub fn sealed_tries(&self, group: GroupNumber, key: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.cursor(&name(TRIES_PREFIX, group, key))
    }

    /// Keeps the last tries at an endpoint, without waiting for the disk.
    pub fn keep_tries(&self, group: GroupNumber, key: ObjectId, sealed: &[u8]) -> Result<(), StoreError> {
        self.store.put_cursor(&name(TRIES_PREFIX, group, key), sealed)
    }

    /// Deletes the progress and the tries of an endpoint that has no address any more.
    pub fn forget(&self, group: GroupNumber, key: ObjectId) -> Result<(), StoreError> {
        self.store.delete_cursor(&name(TRIES_PREFIX, group, key))?;
        self.store.delete_cursor(&name(PREFIX, group, key))
    }
}

fn name(prefix: &[u8], group: GroupNumber, key: ObjectId) -> Vec<u8> {
    [prefix, &group.0.to_be_bytes(), &key.0.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::testkit::MemoryStore;

    #[test]
    fn progress_is_kept_apart_for_each_key_and_survives() {
        let outbox = Outbox::new(MemoryStore::new().part());
        let waiting = vec![WaitingDelivery {
            number: 7,
            tries: 3,
            next_at: Timestamp(1_800_000_000_000),
            again: true,
            subject: u64::MAX,
            told_at: Timestamp(4),
        }];
        let last_answers = vec![answer_to(6, Some(Cause::NotHttp)), answer_to(7, None)];
        let progress = Progress { since: 5, through: 9, waiting, given_up: vec![6], last_answers };
        let (group, key) = (GroupNumber(3), ObjectId(11));
        outbox.keep(group, key, &progress).unwrap();
        outbox.keep_tries(group, key, b"tries").unwrap();
        assert!(TRIES_PREFIX.starts_with(PREFIX), "a backup knows cursors by their prefix");
        assert_eq!(outbox.sealed_tries(group, key).unwrap().as_deref(), Some(b"tries".as_slice()));
        assert_eq!(outbox.progress(group, key).unwrap(), Some(progress));
        assert_eq!(outbox.progress(group, ObjectId(12)).unwrap(), None);
        assert_eq!(outbox.progress(GroupNumber(4), key).unwrap(), None);
        outbox.forget(group, key).unwrap();
        assert_eq!((outbox.progress(group, key).unwrap(), outbox.sealed_tries(group, key).unwrap()), (None, None));
    }

    fn answer_to(number: u64, cause: Option<Cause>) -> LastAnswer {
        LastAnswer { number, answer: Answer { status: Some(500), cause, at: Timestamp(5), duration_ms: 7 } }
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_progress_stay_as_they_are() {
        let waiting = vec![WaitingDelivery {
            number: 2,
            tries: 1,
            next_at: Timestamp(5),
            again: false,
            subject: 6,
            told_at: Timestamp(4),
        }];
        let mut progress = Progress { since: 1, through: 3, waiting, given_up: vec![1], ..Progress::default() };
        let without_answers = [0x85, 1, 3, 0x81, 0x86, 2, 1, 5, 0xf4, 6, 4, 0x81, 1, 0x80];
        assert_eq!(minicbor::to_vec(&progress).unwrap(), without_answers);
        assert_eq!(minicbor::decode::<Progress>(&without_answers).unwrap(), progress);
        progress.last_answers.push(answer_to(2, Some(Cause::Status)));
        let mut with_answers = without_answers[..without_answers.len() - 1].to_vec();
        with_answers.extend([0x81, 0x82, 2, 0x84, 0x19, 0x01, 0xf4, 0x82, 0, 0x80, 5, 7]);
        assert_eq!(minicbor::to_vec(&progress).unwrap(), with_answers);
        assert_eq!(minicbor::decode::<Progress>(&with_answers).unwrap(), progress);
        let cause = with_answers.len() - 4;
        with_answers[cause] = 23;
        progress.last_answers = vec![answer_to(2, None)];
        let with_a_cause_of_later = minicbor::decode::<Progress>(&with_answers).unwrap();
        assert_eq!(with_a_cause_of_later, progress);
    }

    #[test]
    fn each_cause_has_a_name_of_its_own() {
        let causes: Vec<Cause> = (0..24).filter_map(|index| minicbor::decode(&[0x82, index, 0x80]).ok()).collect();
        let names: std::collections::BTreeSet<_> = causes.iter().map(|cause| cause.name()).collect();
        assert_eq!((causes.len(), names.len()), (12, 12));
    }
}
