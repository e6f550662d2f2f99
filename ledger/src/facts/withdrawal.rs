//! Facets of withdrawals: all available money of a recipient is held, then sent to its bank or
//! given back.

use crate::event::ReturnEntry;
use crate::facts::facets::{AuditedFact, Facets, uuid};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, Centavos, ObjectId, PayoutBank, SealedFor};

/// The recipient asked for all that is available.
pub(super) fn requested(to: &mut impl Facets, id: ObjectId, amount: Centavos) {
    to.about(id);
    to.personal(|_| SealedFor::account(id));
    to.objects(|| vec![uuid("withdrawal", id)]);
    to.entries(|books| books.between_claims(books.owner, Account::ReservedWithdrawal, Account::Available, amount));
}

/// An administrator approved; the money is to be sent.
pub(super) fn approved(to: &mut impl Facets, id: ObjectId) {
    to.about(id);
    to.audited(|| AuditedFact::of("approve", "withdrawal", id));
}

/// The institution took the transfer.
pub(super) fn paid(to: &mut impl Facets, id: ObjectId, amount: Centavos, transfer_id: &str, bank: Option<PayoutBank>) {
    to.about(id);
    to.objects(|| vec![uuid("withdrawal", id), ("transfer", transfer_id.to_owned())]);
    to.emit(WebhookEventKind::WithdrawalApproved, WebhookObject::Withdrawal(id));
    to.entries(|books| {
        let Some(number) = books.owning_recipient() else { return };
        let mut column = books.recipient(number, 2);
        column.debit(Account::TransitWithdrawal, amount).credit(Account::ReservedWithdrawal, amount);
        let mut platform = books.platform(2);
        platform.debit(Account::RecipientReservedWithdrawal(number), amount).credit(account_of(bank), amount);
        books.post(column);
        books.post(platform);
    });
}

/// An administrator rejected it, the merchant took it back, or the institution refused the
/// transfer.
pub(super) fn rejected(to: &mut impl Facets, id: ObjectId, amount: Centavos, notes: &str, by_merchant: bool) {
    to.about(id);
    to.objects(|| vec![uuid("withdrawal", id)]);
    to.emit(WebhookEventKind::WithdrawalRejected, WebhookObject::Withdrawal(id));
    match by_merchant {
        true => to.audited(|| AuditedFact::of("cancel", "withdrawal", id)),
        false => to.audited(|| AuditedFact::of("reject", "withdrawal", id).because(notes)),
    }
    to.entries(|books| books.between_claims(books.owner, Account::Available, Account::ReservedWithdrawal, amount));
}

/// The bank returned a transfer that had been taken: the institution said so, or two operators in
/// an entry.
pub(super) fn returned(
    to: &mut impl Facets,
    id: ObjectId,
    amount: Centavos,
    bank: Option<PayoutBank>,
    entry: Option<&ReturnEntry>,
) {
    to.about(id);
    if let Some(entry) = entry {
        to.about(entry.id);
        to.audited(|| AuditedFact::of("approve", "entry", entry.id));
    }
    to.objects(|| {
        let said = entry.map(|entry| [uuid("house_entry", entry.id), ("reference", entry.reference.clone())]);
        [uuid("withdrawal", id)].into_iter().chain(said.into_iter().flatten()).collect()
    });
    to.act("return");
    to.emit(WebhookEventKind::WithdrawalRejected, WebhookObject::Withdrawal(id));
    to.entries(|books| {
        let Some(number) = books.owning_recipient() else { return };
        let mut column = books.recipient(number, 2);
        column.debit(Account::Available, amount).credit(Account::TransitWithdrawal, amount);
        let mut platform = books.platform(2);
        platform.debit(account_of(bank), amount).credit(Account::RecipientAvailable(number), amount);
        books.post(column);
        books.post(platform);
    });
}

fn account_of(bank: Option<PayoutBank>) -> Account {
    bank.unwrap_or(PayoutBank::Settlement).account()
}
