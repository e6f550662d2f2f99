//! Registration of sub-recipients, its changes and its review (interface 2.7, 3.4).

use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::event::Event;
use crate::id::{Fingerprint, IdKey, ObjectId, RecipientNumber};
use crate::personal::Sealed;
use crate::record::Decision;
use crate::rejection::Rejection;

/// Where a recipient's registration stands (interface 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
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
    /// Refused.
    #[n(3)]
    Rejected,
}

/// Where the review of a changed bank account stands. Splits are not held up by it; withdrawals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum BankReview {
    /// It waits for a decision.
    #[n(0)]
    Pending,
    /// It was refused and must be changed again.
    #[n(1)]
    Rejected,
}

/// A recipient, as its merchant keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Recipient {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Where its registration stands.
    #[n(1)]
    pub status: RecipientStatus,
    /// Keyed digest of its document.
    #[n(2)]
    pub document: Fingerprint,
    /// Its registration.
    #[n(3)]
    pub profile: Sealed,
    /// Where the review of its bank account stands; none when the account was approved, with the registration or by itself.
    #[n(4)]
    pub bank_review: Option<BankReview>,
}

impl MerchantState {
    /// The recipient of a number.
    pub fn recipient(&self, number: RecipientNumber) -> Option<&Recipient> {
        self.recipients.list().get((number.0 as usize).checked_sub(1)?)
    }

    /// The recipient of an id, if it is this merchant's.
    pub fn find_recipient(&self, id: ObjectId, ids: &IdKey) -> Option<(RecipientNumber, &Recipient)> {
        let number = ids.recipient_number(id);
        self.recipient(number).filter(|recipient| recipient.id == id).map(|recipient| (number, recipient))
    }

    /// A new document makes a draft; a rejected recipient becomes a draft again under its id; any other is left as it is. An
    /// account that is not configured for split registers nobody (interface 5.4).
    pub(super) fn register_recipient(
        &self,
        document: Fingerprint,
        profile: Sealed,
        id_of: impl FnOnce(RecipientNumber) -> ObjectId,
    ) -> Result<Decision, Rejection> {
        if !self.settings.split_enabled {
            return Err(Rejection::SplitNotEnabled);
        }
        let Some(number) = self.recipients.number_of(document) else {
            let count = u32::try_from(self.recipients.list().len()).expect("a group has fewer than 2^30 recipients");
            let number = RecipientNumber(count + 1);
            let registered = Event::RecipientRegistered { number, id: id_of(number), document };
            return Ok(Decision { events: vec![registered], personal: Some(profile) });
        };
        Ok(match self.recipient(number).map(|recipient| recipient.status) {
            Some(RecipientStatus::Rejected) => {
                Decision { events: vec![Event::RecipientRegisteredAgain { number, document }], personal: Some(profile) }
            }
            _ => Decision::default(),
        })
    }

    /// A draft becomes pending; later states are left as they are.
    pub(super) fn submit_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<Decision, Rejection> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        Ok(match recipient.status {
            RecipientStatus::Draft => Decision::of(Event::RecipientSubmitted { number }),
            _ => Decision::default(),
        })
    }

    pub(super) fn approve_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<Decision, Rejection> {
        Ok(Decision::of(match self.undecided_recipient(id, ids)? {
            (number, Review::Registration) => Event::RecipientApproved { number },
            (number, Review::BankAccount) => Event::BankAccountApproved { number },
        }))
    }

    pub(super) fn reject_recipient(&self, id: ObjectId, notes: String, ids: &IdKey) -> Result<Decision, Rejection> {
        Ok(Decision::of(match self.undecided_recipient(id, ids)? {
            (number, Review::Registration) => Event::RecipientRejected { number, notes },
            (number, Review::BankAccount) => Event::BankAccountRejected { number, notes },
        }))
    }

    /// A rejected recipient is not changed but registered again. `standing` is the profile that the new one was merged from.
    pub(super) fn change_recipient(
        &self,
        id: ObjectId,
        standing: &Sealed,
        profile: Sealed,
        bank_account_changed: bool,
        ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        if recipient.status == RecipientStatus::Rejected {
            return Err(Rejection::RecipientIsRejected);
        }
        if recipient.profile != *standing {
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

    pub(super) fn set_recipient_status(&mut self, number: RecipientNumber, status: RecipientStatus) {
        self.recipients.change(number, |recipient| recipient.status = status);
    }

    pub(super) fn set_bank_review(&mut self, number: RecipientNumber, review: Option<BankReview>) {
        self.recipients.change(number, |recipient| recipient.bank_review = review);
    }

    /// What of a recipient waits for a decision.
    fn undecided_recipient(&self, id: ObjectId, ids: &IdKey) -> Result<(RecipientNumber, Review), Rejection> {
        let (number, recipient) = self.find_recipient(id, ids).ok_or(Rejection::RecipientNotFound)?;
        match (recipient.status, recipient.bank_review) {
            (RecipientStatus::Draft | RecipientStatus::Pending, _) => Ok((number, Review::Registration)),
            (RecipientStatus::Active, Some(BankReview::Pending)) => Ok((number, Review::BankAccount)),
            (RecipientStatus::Active | RecipientStatus::Rejected, _) => Err(Rejection::RecipientAlreadyDecided),
        }
    }
}

/// What of a recipient is decided on.
enum Review {
    Registration,
    BankAccount,
}
