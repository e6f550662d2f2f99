//! Facets of subscriptions: begun, charged, paused, resumed, cancelled. A subscription posts no
//! entries; its charges do.

use crate::facts::facets::Facets;
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::recurrence::{CycleOutcome, SubscriptionStatus};
use crate::{ObjectId, SubscriptionStanding};

/// Emits a webhook event of a subscription; nothing else changes.
pub(super) fn changed(to: &mut impl Facets, id: ObjectId, standing: &SubscriptionStanding, kind: WebhookEventKind) {
    to.about(id);
    to.emit(kind, WebhookObject::Subscription { id, standing: standing.clone(), charge: None });
}

/// A charge of a subscription was opened.
pub(super) fn billed(to: &mut impl Facets, id: ObjectId, charge: ObjectId, standing: &SubscriptionStanding) {
    to.about(id);
    let about = WebhookObject::Subscription { id, standing: standing.clone(), charge: Some(charge) };
    to.emit(WebhookEventKind::SubscriptionChargeCreated, about);
}

/// A charge of a subscription ended, or a cycle passed without one.
pub(super) fn advanced(to: &mut impl Facets, id: ObjectId, outcome: CycleOutcome, standing: &SubscriptionStanding) {
    let is_paid = outcome == CycleOutcome::Paid;
    let kind = match standing.status {
        SubscriptionStatus::Completed => WebhookEventKind::SubscriptionCompleted,
        _ if is_paid => WebhookEventKind::SubscriptionRenewed,
        _ if outcome == CycleOutcome::Refused && standing.is_retried() => WebhookEventKind::SubscriptionChargeFailed,
        _ => WebhookEventKind::SubscriptionPastDue,
    };
    changed(to, id, standing, kind);
    // Its last charge was paid, and an earlier cycle never was.
    if is_paid && standing.status == SubscriptionStatus::PastDue && standing.has_ended() {
        to.emit(
            WebhookEventKind::SubscriptionPastDue,
            WebhookObject::Subscription { id, standing: standing.clone(), charge: None },
        );
    }
}
