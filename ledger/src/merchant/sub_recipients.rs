//! Registration of sub-recipients, its changes and its review (interface 2.7, 3.4).

use std::collections::BTreeMap;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};
use strum::IntoStaticStr;

use super::MerchantState;
use crate::fees::is_false;
use crate::section::{Section, TouchedSections};
use crate::{Decision, Event, Fingerprint, IdKey, ObjectId, RecipientNumber, Record, Rejection, Result, Sealed};

/// A registration with an address and a bank account takes about 350 bytes, sealed.
const RECIPIENTS_PER_SECTION: usize = 16;

/// Status of a recipient's registration (interface 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[cbor(index_only)]
#[strum(serialize_all = "snake_case")]
pub enum RecipientStatus {
    /// Registered, not yet submitted to the acquirer.
    #[n(0)]
    Draft,
    /// Submitted for analysis.
    #[n(1)]
    Pending,
    /// Can receive splits.
    #[n(2)]
    Active,
    /// Refused by the team; it may register again.
    #[n(3)]
    Rejected,
}

/// Status of the review of a changed bank account. It holds up withdrawals, not splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[cbor(index_only)]
#[strum(serialize_all = "snake_case")]
pub enum BankReview {
    /// It waits for a decision.
    #[n(0)]
    Pending,
    /// It was refused and must be changed again.
    #[n(1)]
    Rejected,
}

/// What a registration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationResult {
    /// The recipient's number.
    pub number: RecipientNumber,
    /// True for one that was rejected before and registers again.
    pub again: bool,
}

impl RegistrationResult {
    /// The registration that a Record made; `None` if it made none.
    pub fn by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::RecipientRegistered { number, .. } => Some(Self { number: *number, again: false }),
            Event::RecipientRegisteredAgain { number, .. } => Some(Self { number: *number, again: true }),
            _ => None,
        })
    }
}

/// A recipient as its merchant keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Recipient {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Status of its registration.
    #[n(1)]
    pub status: RecipientStatus,
    /// Keyed digest of its document.
    #[n(2)]
    pub document: Fingerprint,
    /// Its registration.
    #[n(3)]
    pub profile: Sealed,
    /// Status of the review of its bank account; `None` if the account was approved, with the
    /// registration or by itself.
    #[n(4)]
    pub bank_review: Option<BankReview>,
    /// Operators froze it: nothing leaves to it.
    #[cbor(n(5), skip_if = "is_false")]
    pub frozen: bool,
}

impl MerchantState {
    /// The recipients; number n stands at n − 1.
    pub fn recipients(&self) -> &[Recipient] {
        &self.recipients.list
    }

    /// The recipient registered under a document's fingerprint.
    pub fn recipient_by_document(&self, document: Fingerprint) -> Option<&Recipient> {
        self.recipients.number_of(document).and_then(|number| self.recipient(number))
    }

    /// The recipient of a number.
    pub fn recipient(&self, number: RecipientNumber) -> Option<&Recipient> {
        self.recipients.list.get((number.0 as usize).checked_sub(1)?)
    }

    /// The recipient of an id, if it is this merchant's.
    pub fn find_recipient(&self, id: ObjectId, ids: &IdKey) -> Option<(RecipientNumber, &Recipient)> {
        let number = ids.recipient_number(id);
        self.recipient(number).filter(|recipient| recipient.id == id).map(|recipient| (number, recipient))
    }

    /// A new document makes a draft. A rejected recipient becomes a draft again under its id. Any
    /// other recipient stays as it is. The profile must be the next version. An account that is not
    /// configured for split registers nobody (interface 5.4).
    pub(super) fn register_recipient(
        &self,
        document: Fingerprint,
        profile: Sealed,
        id_of: impl FnOnce(RecipientNumber) -> ObjectId,
    ) -> Result<Decision> {
        if !self.settings.split_enabled {
            return Err(Rejection::SplitNotEnabled);
        }
        let Some(number) = self.recipients.number_of(document) else {
            let count = u32::try_from(self.recipients.list.len()).expect("a group has fewer than 2^30 recipients");
            let number = RecipientNumber(count + 1);
            let registered = Event::RecipientRegistered { number, id: id_of(number), document };
            return Ok(Decision { events: vec![registered], personal: Some(profile) });
        };
        Ok(match self.recipient(number) {
            Some(rejected) if rejected.status == RecipientStatus::Rejected => {
                if !profile.follows(&rejected.profile) {
                    return Err(Rejection::RecipientChangedMeanwhile);
                }
                Decision { events: vec![Event::RecipientRegisteredAgain { number, document }], personal: Some(profile) }
            }
            _ => Decision::default(),
        })
    }

    /// A draft becomes pending; a recipient with a later status keeps it.
    pub(super) fn submit_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<Decision> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        Ok(match recipient.status {
            RecipientStatus::Draft => Decision::of(Event::RecipientSubmitted { number }),
            _ => Decision::default(),
        })
    }

    pub(super) fn approve_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<Decision> {
        Ok(Decision::of(match self.undecided_recipient(id, ids)? {
            (number, Review::Registration) => Event::RecipientApproved { number },
            (number, Review::BankAccount) => Event::BankAccountApproved { number },
        }))
    }

    pub(super) fn reject_recipient(&self, id: ObjectId, notes: String, ids: &IdKey) -> Result<Decision> {
        Ok(Decision::of(match self.undecided_recipient(id, ids)? {
            (number, Review::Registration) => Event::RecipientRejected { number, notes },
            (number, Review::BankAccount) => Event::BankAccountRejected { number, notes },
        }))
    }

    pub(super) fn note_registration_read(&self, id: ObjectId, ids: &IdKey) -> Result<Decision> {
        let (number, _) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        Ok(Decision::of(Event::RegistrationRead { number }))
    }

    pub(super) fn freeze_recipient(&self, id: ObjectId, frozen: bool, reason: String, ids: &IdKey) -> Result<Decision> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        Ok(match (recipient.frozen, frozen) {
            (false, true) => Decision::of(Event::RecipientFrozen { number, reason }),
            (true, false) => Decision::of(Event::RecipientUnfrozen { number, reason }),
            _ => Decision::default(),
        })
    }

    /// The version of the profile of a recipient that waits for a decision.
    pub(super) fn undecided_version(&self, id: ObjectId, ids: &IdKey) -> Option<u32> {
        self.undecided_recipient(id, ids).ok()?;
        self.find_recipient(id, ids).map(|(_, recipient)| recipient.profile.version)
    }

    /// A rejected recipient is not changed but registered again. `standing` is the profile that the
    /// new one was merged from.
    pub(super) fn change_recipient(
        &self,
        id: ObjectId,
        standing: &Sealed,
        profile: Sealed,
        bank_account_changed: bool,
        ids: &IdKey,
    ) -> Result<Decision> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        if recipient.status == RecipientStatus::Rejected {
            return Err(Rejection::RecipientIsRejected);
        }
        if recipient.profile != *standing || !profile.follows(standing) {
            return Err(Rejection::RecipientChangedMeanwhile);
        }
        let bank_account = bank_account_changed
            .then_some(Event::BankAccountChanged { number, active: recipient.status == RecipientStatus::Active });
        let events = [Event::RecipientChanged { number, document: recipient.document }]
            .into_iter()
            .chain(bank_account)
            .collect();
        Ok(Decision { events, personal: Some(profile) })
    }

    /// The part of a recipient that waits for a decision: the registration before the bank account.
    fn undecided_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<(RecipientNumber, Review)> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        match (recipient.status, recipient.bank_review) {
            (RecipientStatus::Draft | RecipientStatus::Pending, _) => Ok((number, Review::Registration)),
            (RecipientStatus::Active, Some(BankReview::Pending)) => Ok((number, Review::BankAccount)),
            (RecipientStatus::Active | RecipientStatus::Rejected, _) => Err(Rejection::RecipientAlreadyDecided),
        }
    }
}

/// The part of a recipient that is decided on.
enum Review {
    Registration,
    BankAccount,
}

/// The sub-recipients, by number and by document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recipients {
    /// Number n stands at n − 1.
    list: Vec<Recipient>,
    by_document: BTreeMap<Fingerprint, RecipientNumber>,
    touched: TouchedSections,
}

impl Recipients {
    /// Appends the next one, as a draft.
    pub(super) fn register(&mut self, id: ObjectId, document: Fingerprint, record: &Record) {
        self.touched.touch((self.list.len() / RECIPIENTS_PER_SECTION) as u64);
        let (status, profile) = (RecipientStatus::Draft, record.personal.clone().unwrap_or_default());
        self.index(Recipient { id, status, document, profile, bank_review: None, frozen: false });
    }

    pub(super) fn set_status(&mut self, number: RecipientNumber, status: RecipientStatus) {
        self.change(number, |recipient| recipient.status = status);
    }

    /// A rejected one is registered again, with another profile.
    pub(super) fn register_again(&mut self, number: RecipientNumber, record: &Record) {
        self.set_status(number, RecipientStatus::Draft);
        self.set_profile(number, record);
    }

    pub(super) fn set_bank_review(&mut self, number: RecipientNumber, review: Option<BankReview>) {
        self.change(number, |recipient| recipient.bank_review = review);
    }

    pub(super) fn set_frozen(&mut self, number: RecipientNumber, frozen: bool) {
        self.change(number, |recipient| recipient.frozen = frozen);
    }

    pub(super) fn set_profile(&mut self, number: RecipientNumber, record: &Record) {
        let profile = record.personal.clone().unwrap_or_default();
        self.change(number, |recipient| recipient.profile = profile);
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    fn number_of(&self, document: Fingerprint) -> Option<RecipientNumber> {
        self.by_document.get(&document).copied()
    }

    fn change(&mut self, number: RecipientNumber, change: impl FnOnce(&mut Recipient)) {
        let Some(at) = (number.0 as usize).checked_sub(1) else { return };
        if let Some(recipient) = self.list.get_mut(at) {
            change(recipient);
            self.touched.touch((at / RECIPIENTS_PER_SECTION) as u64);
        }
    }

    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let page = self.list.chunks(RECIPIENTS_PER_SECTION).nth(usize::try_from(number).ok()?)?;
        Some(minicbor::to_vec(page).expect("writing into memory cannot fail"))
    }

    /// Sections come in order, and all but the last are full.
    pub(super) fn read_section(&mut self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        if self.list.len() as u64 != number * RECIPIENTS_PER_SECTION as u64 {
            return Err(Error::message("recipients are counted without a gap"));
        }
        let page: Vec<Recipient> = minicbor::decode(bytes)?;
        page.into_iter().for_each(|recipient| self.index(recipient));
        Ok(())
    }

    fn index(&mut self, recipient: Recipient) {
        let number = u32::try_from(self.list.len() + 1).expect("a group has fewer than 2^30 recipients");
        self.by_document.insert(recipient.document, RecipientNumber(number));
        self.list.push(recipient);
    }
}
