//! A webhook event, read from the journal.

use actors::engine::{Engine, ListedWebhookEvent};
use ledger::{GroupNumber, LedgerId, ObjectId, Record, Timestamp, WebhookEvent};
use store::cut::Position;

use web::problem::Result;

/// A webhook event of one group, with its Record.
pub struct OutboxEvent {
    /// The event's id: the same on every try.
    pub id: ObjectId,
    /// Its kind and subject.
    pub content: WebhookEvent,
    pub(super) group: GroupNumber,
    pub(super) record: Record,
    pub(super) listed: ListedWebhookEvent,
}

impl OutboxEvent {
    /// Reads an event of a group from its Record.
    pub fn read(engine: &Engine, group: GroupNumber, listed: ListedWebhookEvent) -> Result<Self> {
        let (content, record) = engine.webhook_event_at(group, listed)?;
        let id = engine.ids().object(group, record.effective_at, listed.number);
        Ok(Self { id, content, group, record, listed })
    }

    /// An event by its number, which an endpoint waits for, tried or gave up.
    pub fn numbered(engine: &Engine, group: GroupNumber, number: u64) -> Result<Self> {
        Self::read(engine, group, engine.known_webhook_event(group, number)?)
    }

    /// The event of a group that has this id.
    pub fn find(engine: &Engine, group: GroupNumber, id: ObjectId) -> Result<Option<Self>> {
        if engine.ids().group(id) != group {
            return Ok(None);
        }
        let number = engine.ids().object_number(id);
        let listed = engine.webhook_events(group, number..number + 1)?;
        let Some(listed) = listed.first().filter(|_| number > 0) else { return Ok(None) };
        let event = Self::read(engine, group, *listed)?;
        Ok((event.id == id).then_some(event))
    }

    /// When it happened.
    pub fn at(&self) -> Timestamp {
        self.record.effective_at
    }

    /// Its number among the group's events, from 1.
    pub fn number(&self) -> u64 {
        self.listed.number
    }

    /// The place of its Record.
    pub fn position(&self, engine: &Engine) -> Position {
        engine.position_of(LedgerId::Merchant(self.group), self.listed.sequence)
    }
}
