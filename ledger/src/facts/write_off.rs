//! Facets of write-offs: a merchant's Deficit or a recipient's Clawback that will not be paid back.
//! Who was to get the money bears the loss: the platform, or the merchant.

use crate::event::DebtPart;
use crate::facts::facets::{AuditedFact, Effect, Facets, uuid};
use crate::{Account, Centavos, ObjectId};

/// Another operator approved the write-off of a Deficit.
pub(super) fn of_deficit(to: &mut impl Facets, id: ObjectId, amount: Centavos, reference: &str) {
    to.about(id);
    to.audited(|| AuditedFact::of("approve", "entry", id));
    to.objects(|| vec![uuid("house_entry", id), ("reference", reference.to_owned())]);
    to.entries(|books| {
        let mut merchant = books.merchant(2);
        merchant.debit(Account::Deficit, amount).credit(Account::OtherIncome, amount);
        let mut platform = books.platform(2);
        platform.debit(Account::Losses, amount).credit(Account::MerchantDeficit, amount);
        books.post(merchant);
        books.post(platform);
    });
}

/// Another operator approved the write-off of a Clawback.
pub(super) fn of_clawback(to: &mut impl Facets, id: ObjectId, reference: &str, debts: &[DebtPart]) {
    to.about_each(debts.iter().flat_map(|debt| [debt.refund, debt.split.charge]).chain([id]));
    to.audited(|| AuditedFact::of("approve", "entry", id));
    to.others(std::iter::once((None, Effect::Changed)));
    to.objects(|| vec![uuid("house_entry", id), ("reference", reference.to_owned())]);
    to.entries(|books| {
        let Some(number) = books.owning_recipient() else { return };
        let amount = debts.iter().map(DebtPart::total).sum::<Centavos>();
        let mut column = books.recipient(number, 2);
        column.debit(Account::Clawback, amount).credit(Account::OtherIncome, amount);
        let mut merchant = books.merchant(2);
        merchant.debit(Account::LossClawback, amount).credit(Account::ReceivableRecipient(number), amount);
        books.post(column);
        books.post(merchant);
    });
}
