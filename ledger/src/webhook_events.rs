//! Webhook events of a Record: those of section 6 of the interface and those that the decisions
//! add. The journal is the outbox: a webhook event follows from a Record alone, so it is durable
//! with the money, and every try sends the same event.

use crate::facts::{self, Facets, Outbox};
use crate::{Centavos, Event, Record};

pub use crate::facts::webhook_event::{
    AvailableSplits, DecidedRefund, RecipientDebt, Subject, WebhookEvent, WebhookEventKind, WebhookObject,
};

/// The webhook events of a Record, in the order of delivery.
pub fn webhook_events(record: &Record) -> Vec<WebhookEvent> {
    let mut events = Vec::new();
    each_webhook_event(record, |event| events.push(event));
    events
}

/// Passes each of [`webhook_events`] to `sink`, without a list of them.
pub fn each_webhook_event(record: &Record, mut sink: impl FnMut(WebhookEvent)) {
    let (at, recovered) = (record.takes_effect_at(), record.events.iter().map(recovered).sum());
    let mut outbox = Outbox { owner: record.owner, at, recovered, sink: &mut sink };
    record.events.iter().for_each(|event| facts::say(event, &mut outbox));
}

/// What debts took of Available, centavos.
fn recovered(event: &Event) -> Centavos {
    match event {
        Event::ClawbackRecovered { debts, .. } => debts.iter().map(|debt| debt.from_available).sum(),
        _ => Centavos::ZERO,
    }
}

impl Facets for Outbox<'_> {
    fn webhook_events(&mut self, write: impl FnOnce(&mut Outbox<'_>)) {
        write(self);
    }
}
