//! Subscriptions and stored cards, read from the journal: the Record that began one, and the last
//! Record about it. So an ended subscription is read like a running one.

use ledger::recurrence::SubscriptionTerms;
use ledger::{CardFace, Event, LedgerId, ObjectId, RailName, Record, Sealed, StoredCard, SubscriptionStanding};

use super::ReadModel;
use crate::index::{IndexKey, LedgerList, ObjectList, Slice};
use crate::records::{LoadError, Result};
use store::Sequence;

/// A subscription, as published.
#[derive(Clone, Debug)]
pub struct SubscriptionRow {
    /// Its id.
    pub id: ObjectId,
    /// Its terms.
    pub terms: SubscriptionTerms,
    /// Its standing.
    pub standing: SubscriptionStanding,
    /// The payer, with the first labels.
    pub customer: Sealed,
    /// Last change of its metadata, sealed. The engine adds it, which has the keys of changes.
    pub metadata: Option<Sealed>,
    /// How often its metadata was changed.
    pub changes: u32,
}

/// A stored card, as published.
#[derive(Clone, Debug)]
pub struct CardRow {
    /// The face of the card: the part that may be stored.
    pub face: CardFace,
    /// The acquirer's token for it, sealed under the master key.
    pub token: Vec<u8>,
    /// The acquirer; none in a sandbox.
    pub rail: Option<RailName>,
    /// Its id, the `card_token`.
    pub id: ObjectId,
    /// Whose it is.
    pub customer: Sealed,
    /// True once it was deleted: nothing is charged to it.
    pub is_deleted: bool,
}

impl SubscriptionRow {
    /// The stored card that it is charged to; none for PIX.
    pub fn card(&self) -> Option<&StoredCard> {
        self.standing.card_of(&self.terms)
    }

    /// The subscription that a Record began, as it stood then.
    pub fn begun_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::SubscriptionCreated { id, terms, standing } => Some(Self {
                id: *id,
                terms: terms.clone(),
                standing: standing.clone(),
                customer: record.personal.clone().unwrap_or_default(),
                metadata: None,
                changes: 0,
            }),
            _ => None,
        })
    }
}

impl ReadModel {
    /// A merchant's subscription; `None` if it has none of this id.
    pub fn subscription(&self, merchant: LedgerId, id: ObjectId) -> Result<Option<SubscriptionRow>> {
        let about = self.about(id)?;
        // The index may name Records about another object too: only the Record says whose it is.
        for (place, sequence) in about.iter().enumerate() {
            let record = self.record(*sequence)?;
            let begun = SubscriptionRow::begun_by(&record).filter(|row| row.id == id && record.owner == merchant);
            if let Some(mut row) = begun {
                for later in about[place + 1..].iter().rev() {
                    if let Some(standing) = SubscriptionStanding::in_record(&self.record(*later)?, id) {
                        row.standing = standing;
                        break;
                    }
                }
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// How many subscriptions a merchant has had, and those on the page that begins `skip` from the
    /// newest.
    pub fn subscriptions_page(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<SubscriptionRow>)> {
        let (total, listed) = self.index().page(&[IndexKey::of(LedgerList::Subscriptions, merchant)], &[], slice)?;
        let mut page = Vec::with_capacity(listed.len());
        for listed in listed {
            let begun = SubscriptionRow::begun_by(&self.record(Sequence(listed.number))?);
            let begun = begun.ok_or(LoadError::Missing(listed.number))?;
            page.push(self.subscription(merchant, begun.id)?.ok_or(LoadError::Missing(listed.number))?);
        }
        Ok((total, page))
    }

    /// A card that a merchant stored, deleted or not; `None` if it has none of this id.
    pub fn card(&self, merchant: LedgerId, id: ObjectId) -> Result<Option<CardRow>> {
        let mut card: Option<CardRow> = None;
        for sequence in self.about(id)? {
            let record = self.record(sequence)?;
            for event in record.events.iter().filter(|_| record.owner == merchant) {
                match event {
                    Event::CardStored { id: stored, face, token, rail } if *stored == id => {
                        let (face, token, rail) = (face.clone(), token.clone(), rail.clone());
                        let customer = record.personal.clone().unwrap_or_default();
                        card = Some(CardRow { face, token, rail, id, customer, is_deleted: false });
                    }
                    Event::CardDeleted { id: deleted } if *deleted == id => {
                        card.iter_mut().for_each(|card| card.is_deleted = true);
                    }
                    _ => {}
                }
            }
        }
        Ok(card)
    }

    /// A merchant's stored cards, deleted or not: their number, and those on the page that begins
    /// `skip` from the newest.
    pub fn cards_page(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<CardRow>)> {
        let key = IndexKey::objects(ObjectList::Cards, merchant.group());
        let (total, listed) = self.page(key, slice)?;
        let mut page = Vec::with_capacity(listed.len());
        for sequence in listed {
            let stored = StoredCard::stored_by(&self.record(sequence)?).ok_or(LoadError::Missing(sequence.0))?;
            page.push(self.card(merchant, stored.id)?.ok_or(LoadError::Missing(sequence.0))?);
        }
        Ok((total, page))
    }
}
