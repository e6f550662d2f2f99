//! Facets of anticipation: pending card splits become available before they are due, less a fee.

use crate::anticipation::Anticipation;
use crate::event::AnticipatedSplit;
use crate::facts::facets::{Facets, uuid};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, LedgerId};

/// A recipient anticipated these splits.
pub(super) fn anticipated(to: &mut impl Facets, splits: &[AnticipatedSplit], done: &Anticipation) {
    to.about(done.id);
    to.about_each(splits.iter().map(|split| split.split.charge));
    to.objects(|| vec![uuid("anticipation", done.id)]);
    to.webhook_events(|outbox| {
        outbox.emit(WebhookEventKind::AnticipationCompleted, WebhookObject::Anticipation(*done));
        if let LedgerId::Recipient(_, number) = outbox.owner {
            outbox.available(number, Some(done.count as u64), done.net(), None);
        }
    });
    to.entries(|books| {
        let Some(number) = books.owning_recipient() else { return };
        let (amount, fee) = (done.original, done.fee);
        let mut column = books.recipient(number, 3);
        column
            .debit(Account::Available, amount - fee)
            .debit(Account::FeeAnticipation, fee)
            .credit(Account::Pending, amount);
        let mut platform = books.platform(3);
        platform
            .debit(Account::RecipientPending(number), amount)
            .credit(Account::RecipientAvailable(number), amount - fee)
            .credit(Account::IncomeAnticipation, fee);
        books.post(column);
        books.post(platform);
    });
}
