//! Facets of recipients: the review of a registration and of a bank account.

use crate::RecipientNumber;
use crate::facts::facets::{AuditSubject, AuditedFact, Effect, Facets};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};

/// The service's team approved the registration.
pub(super) fn approved(to: &mut impl Facets, number: RecipientNumber) {
    emit(to, WebhookEventKind::RecipientApproved, number);
    audited(to, "approve", "recipient", number, None);
}

/// The service's team refused the registration.
pub(super) fn rejected(to: &mut impl Facets, number: RecipientNumber, notes: &str) {
    emit(to, WebhookEventKind::RecipientRejected, number);
    audited(to, "reject", "recipient", number, Some(notes));
}

/// The recipient has another bank account. A webhook goes out only for an active recipient.
pub(super) fn bank_account_changed(to: &mut impl Facets, number: RecipientNumber, active: bool) {
    if active {
        emit(to, WebhookEventKind::BankAccountChanged, number);
    }
    audited(to, "change", "bank_account", number, None);
}

/// The service's team approved the changed bank account.
pub(super) fn bank_account_approved(to: &mut impl Facets, number: RecipientNumber) {
    emit(to, WebhookEventKind::BankAccountApproved, number);
    audited(to, "approve", "bank_account", number, None);
}

/// The service's team refused the changed bank account.
pub(super) fn bank_account_rejected(to: &mut impl Facets, number: RecipientNumber, notes: &str) {
    emit(to, WebhookEventKind::BankAccountRejected, number);
    audited(to, "reject", "bank_account", number, Some(notes));
}

/// An operator read the registration in the clear.
pub(super) fn registration_read(to: &mut impl Facets, number: RecipientNumber) {
    audited(to, "read", "recipient", number, None);
}

/// An operator froze the recipient, or ended that. Its own actor is to know.
pub(super) fn froze(to: &mut impl Facets, number: RecipientNumber, action: &'static str, reason: &str) {
    to.others(std::iter::once((Some(number), Effect::Changed)));
    audited(to, action, "recipient", number, Some(reason));
}

fn emit(to: &mut impl Facets, kind: WebhookEventKind, number: RecipientNumber) {
    to.webhook_events(|outbox| outbox.emit(kind, WebhookObject::Recipient(number)));
}

fn audited(
    to: &mut impl Facets,
    action: &'static str,
    kind: &'static str,
    number: RecipientNumber,
    notes: Option<&str>,
) {
    to.audited(|| {
        let subject = AuditSubject::Recipient(number);
        AuditedFact { action, kind, subject, notes: notes.map(str::to_owned) }
    });
}
