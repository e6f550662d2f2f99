//! Stored cards: deletion, and the refusal of a card that was deleted. Which cards are stored is
//! history: a request looks its card up in the journal before it sends its command. The state has
//! the cards that were deleted since any such look-up, so that the order of the two commands
//! decides.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use super::{MerchantState, Subscription};
use crate::{Decision, Event, ObjectId, Rejection, Result, Timestamp};

/// How long a deletion is remembered, milliseconds: much longer than a request takes from its
/// look-up to its command.
const DELETION_KEPT_MS: i64 = 60 * 60 * 1000;

/// Stored cards that were deleted within the last hour, with the times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub(super) struct DeletedCards(#[n(0)] BTreeMap<ObjectId, Timestamp>);

impl DeletedCards {
    /// Refuses a card that was deleted since it was looked up.
    pub(super) fn refuse(&self, card: ObjectId) -> Result<()> {
        if self.has(card) { Err(Rejection::CardNotStored) } else { Ok(()) }
    }

    fn has(&self, card: ObjectId) -> bool {
        self.0.contains_key(&card)
    }

    /// Notes that a card was deleted, and forgets deletions of more than an hour ago.
    pub(super) fn note(&mut self, card: ObjectId, now: Timestamp) {
        self.0.retain(|_, at| at.plus_ms(DELETION_KEPT_MS) > now);
        self.0.insert(card, now);
    }

    /// True when none was deleted within the last hour.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl MerchantState {
    /// Deletes a stored card that no subscription that goes on is charged to. Again: nothing
    /// changes.
    pub(super) fn delete_card(&self, id: ObjectId) -> Result<Decision> {
        if self.deleted_cards.has(id) {
            return Ok(Decision::default());
        }
        let is_charged = |of: &Subscription| of.card().is_some_and(|card| card.id == id);
        if self.subscriptions().values().any(is_charged) {
            return Err(Rejection::CardOfSubscription);
        }
        Ok(Decision::of(Event::CardDeleted { id }))
    }
}
