//! Facets of anticipation: pending card splits become available before they are due, less a fee.

use crate::account::Account;
use crate::event::AnticipatedSplit;
use crate::facts::facets::{Facets, uuid};
use crate::facts::webhook_event::{Subject, WebhookEventKind};
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;

/// A recipient anticipated these splits.
pub(super) fn anticipated(to: &mut impl Facets, id: ObjectId, splits: &[AnticipatedSplit]) {
    to.about(id);
    to.about_each(splits.iter().map(|split| split.split.charge));
    to.objects(|| vec![uuid("anticipation", id)]);
    to.webhook_events(|outbox| {
        outbox.tell(WebhookEventKind::AnticipationCompleted, Subject::Object(id));
        if let LedgerId::Recipient(_, number) = outbox.owner {
            let (count, net) = (splits.len() as u64, splits.iter().map(|split| split.amount - split.fee).sum());
            outbox.available(number, Some(count), net, None);
        }
    });
    to.entries(|books| {
        let Some(number) = books.owning_recipient() else { return };
        let amount: Centavos = splits.iter().map(|split| split.amount).sum();
        let fee: Centavos = splits.iter().map(|split| split.fee).sum();
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
