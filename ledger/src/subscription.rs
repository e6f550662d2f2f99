//! Subscription: its standing after a Record (interface 2.12, 3.7).

use crate::{Event, ObjectId, Record, StoredCard, SubscriptionStanding};

impl SubscriptionStanding {
    /// The standing that a Record gives to a subscription; `None` if it gives none.
    pub fn in_record(record: &Record, subscription: ObjectId) -> Option<Self> {
        let standings = record.events.iter().rev().filter_map(Self::in_event);
        standings.into_iter().find(|(id, _)| *id == subscription).map(|(_, standing)| standing.clone())
    }

    /// The subscription that an event is about, and where it stands after it.
    pub fn in_event(event: &Event) -> Option<(ObjectId, &Self)> {
        match event {
            Event::SubscriptionCreated { id, standing, .. }
            | Event::SubscriptionBilled { id, standing, .. }
            | Event::SubscriptionAdvanced { id, standing, .. }
            | Event::SubscriptionPaused { id, standing }
            | Event::SubscriptionResumed { id, standing }
            | Event::SubscriptionCardChanged { id, standing }
            | Event::SubscriptionCancelled { id, standing } => Some((*id, standing)),
            _ => None,
        }
    }
}

impl StoredCard {
    /// The card that a Record stores; `None` if it stores none.
    pub fn stored_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::CardStored { id, face, .. } => Some(Self { id: *id, face: face.clone() }),
            _ => None,
        })
    }
}
