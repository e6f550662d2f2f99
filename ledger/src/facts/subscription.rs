//! Facets of subscriptions: begun, charged, paused, resumed, cancelled. A subscription posts no
//! entries; its charges do.

use crate::facts::facets::Facets;
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::id::ObjectId;
use crate::recurrence::{CycleOutcome, SubscriptionStanding, SubscriptionStatus};

/// Something happened to a subscription that only has to be told.
pub(super) fn changed(to: &mut impl Facets, id: ObjectId, standing: &SubscriptionStanding, kind: WebhookEventKind) {
    to.about(id);
    to.tell(kind, WebhookObject::Subscription { id, standing: *standing, charge: None });
}

/// A charge of a subscription was opened.
pub(super) fn billed(to: &mut impl Facets, id: ObjectId, charge: ObjectId, standing: &SubscriptionStanding) {
    to.about(id);
    let about = WebhookObject::Subscription { id, standing: *standing, charge: Some(charge) };
    to.tell(WebhookEventKind::SubscriptionChargeCreated, about);
}

/// A charge of a subscription ended, or a cycle passed without one.
pub(super) fn advanced(to: &mut impl Facets, id: ObjectId, outcome: CycleOutcome, standing: &SubscriptionStanding) {
    let kind = if standing.status == SubscriptionStatus::Completed {
        WebhookEventKind::SubscriptionCompleted
    } else if outcome == CycleOutcome::Paid {
        WebhookEventKind::SubscriptionRenewed
    } else if standing.retry_at.is_some() {
        WebhookEventKind::SubscriptionChargeFailed
    } else {
        WebhookEventKind::SubscriptionPastDue
    };
    changed(to, id, standing, kind);
}
