//! Facets of adjustments: goodwill of the house, which bears it as a loss.

use crate::account::Account;
use crate::facts::facets::{AuditedFact, Facets, uuid};
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::id::ObjectId;
use crate::money::Centavos;

/// Another operator approved it: the merchant has the money.
pub(super) fn created(to: &mut impl Facets, id: ObjectId, amount: Centavos, reference: &str) {
    to.about(id);
    to.audited(|| AuditedFact::of("approve", "entry", id));
    to.objects(|| vec![uuid("house_entry", id), ("reference", reference.to_owned())]);
    to.emit(WebhookEventKind::AdjustmentCreated, WebhookObject::Adjustment(id));
    to.lines(|lines| lines.now(StatementLineKind::Adjustment, StatementAccount::Available, amount, id));
    to.entries(|books| {
        let mut merchant = books.merchant(2);
        merchant.debit(Account::Available, amount).credit(Account::OtherIncome, amount);
        let mut platform = books.platform(2);
        platform.debit(Account::Losses, amount).credit(Account::MerchantAvailable, amount);
        books.post(merchant);
        books.post(platform);
    });
}
