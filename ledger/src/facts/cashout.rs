//! Facets of cashouts: money of the merchant is held, then sent or given back.

use crate::facts::facets::{Facets, uuid};
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, Centavos, Fingerprint, LedgerId, ObjectId, PayoutBank, SealedFor};

/// Money is held for a transfer out.
pub(super) fn created(to: &mut impl Facets, id: ObjectId, transaction_key: Fingerprint, amount: Centavos) {
    to.about(id);
    to.personal(|_| SealedFor::pix_destination(id));
    to.uses_up(transaction_key);
    to.objects(|| vec![uuid("cashout", id)]);
    to.lines(|lines| {
        lines.now(StatementLineKind::Cashout, StatementAccount::Available, -amount, id);
        lines.now(StatementLineKind::Cashout, StatementAccount::Reserved, amount, id);
    });
    to.entries(|books| {
        let merchant = LedgerId::Merchant(books.group);
        books.between_claims(merchant, Account::ReservedCashout, Account::Available, amount);
    });
}

/// The institution carried the transfer out. The fee is part of the amount.
pub(super) fn processed(
    to: &mut impl Facets,
    id: ObjectId,
    [amount, fee]: [Centavos; 2],
    (end_to_end_id, transfer_id): (&str, &str),
    bank: Option<PayoutBank>,
) {
    to.about(id);
    to.objects(|| {
        let (end_to_end_id, transfer) = (end_to_end_id.to_owned(), transfer_id.to_owned());
        vec![uuid("cashout", id), ("end_to_end_id", end_to_end_id), ("transfer", transfer)]
    });
    to.emit(WebhookEventKind::CashoutProcessed, WebhookObject::Cashout(id));
    to.lines(|lines| {
        lines.now(StatementLineKind::Cashout, StatementAccount::Reserved, fee - amount, id);
        lines.now(StatementLineKind::CashoutFee, StatementAccount::Reserved, -fee, id);
    });
    to.entries(|books| {
        let mut merchant = books.merchant(3);
        merchant
            .debit(Account::TransitCashout, amount - fee)
            .debit(Account::FeeCashout, fee)
            .credit(Account::ReservedCashout, amount);
        let mut platform = books.platform(3);
        platform
            .debit(Account::MerchantReservedCashout, amount)
            .credit(bank.unwrap_or(PayoutBank::Pix).account(), amount - fee)
            .credit(Account::IncomeCashout, fee);
        books.post(merchant);
        books.post(platform);
    });
}

/// The transfer did not happen; the whole amount is available again.
pub(super) fn failed(to: &mut impl Facets, id: ObjectId, amount: Centavos) {
    to.about(id);
    to.objects(|| vec![uuid("cashout", id)]);
    to.emit(WebhookEventKind::CashoutFailed, WebhookObject::Cashout(id));
    to.lines(|lines| {
        lines.now(StatementLineKind::CashoutReturned, StatementAccount::Reserved, -amount, id);
        lines.now(StatementLineKind::CashoutReturned, StatementAccount::Available, amount, id);
    });
    to.entries(|books| {
        let merchant = LedgerId::Merchant(books.group);
        books.between_claims(merchant, Account::Available, Account::ReservedCashout, amount);
    });
}

/// The bank sent the money back. The whole amount is available again, the fee too.
pub(super) fn returned(to: &mut impl Facets, id: ObjectId, [amount, fee]: [Centavos; 2], bank: PayoutBank) {
    to.about(id);
    to.objects(|| vec![uuid("cashout", id)]);
    to.emit(WebhookEventKind::CashoutReturned, WebhookObject::Cashout(id));
    to.lines(|lines| lines.now(StatementLineKind::CashoutReturned, StatementAccount::Available, amount, id));
    to.entries(|books| {
        let mut merchant = books.merchant(3);
        merchant
            .debit(Account::Available, amount)
            .credit(Account::TransitCashout, amount - fee)
            .credit(Account::FeeCashout, fee);
        let mut platform = books.platform(3);
        platform
            .debit(bank.account(), amount - fee)
            .debit(Account::IncomeCashout, fee)
            .credit(Account::MerchantAvailable, amount);
        books.post(merchant);
        books.post(platform);
    });
}
