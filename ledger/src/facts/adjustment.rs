//! Facets of adjustments: goodwill of the house, which bears it as a loss.

use crate::adjustment::AdjustmentTerms;
use crate::facts::facets::{AuditedFact, Effect, Facets, uuid};
use crate::facts::house;
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, AdjustmentTarget, Centavos, ObjectId};

/// An operator asked for it.
pub(super) fn requested(to: &mut impl Facets, id: ObjectId, reference: &str, reason: &str) {
    to.about(AdjustmentTerms::reference_id(reference));
    house::said(to, id, "request", reason);
}

/// Another operator approved it: the merchant has the money, or the recipient that it is for.
pub(super) fn created(
    to: &mut impl Facets,
    id: ObjectId,
    amount: Centavos,
    reference: &str,
    target: Option<AdjustmentTarget>,
) {
    let recipient = match target {
        Some(AdjustmentTarget::Recipient(number)) => Some(number),
        Some(AdjustmentTarget::Dispute(_)) | None => None,
    };
    to.about(id);
    to.others(recipient.into_iter().map(|number| (Some(number), Effect::Changed)));
    to.audited(|| AuditedFact::of("approve", "entry", id));
    to.objects(|| vec![uuid("house_entry", id), ("reference", reference.to_owned())]);
    to.emit(WebhookEventKind::AdjustmentCreated, WebhookObject::Adjustment(id));
    if recipient.is_none() {
        to.lines(|lines| lines.now(StatementLineKind::Adjustment, StatementAccount::Available, amount, id));
    }
    to.entries(|books| {
        let (mut credited, owed) = match recipient {
            Some(number) => (books.recipient(number, 2), Account::RecipientAvailable(number)),
            None => (books.merchant(2), Account::MerchantAvailable),
        };
        credited.debit(Account::Available, amount).credit(Account::OtherIncome, amount);
        let mut platform = books.platform(2);
        platform.debit(Account::Losses, amount).credit(owed, amount);
        books.post(credited);
        books.post(platform);
    });
}
