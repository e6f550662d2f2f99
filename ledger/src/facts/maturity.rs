//! Facets of maturity: money falls due, and incoming money pays debts back.

use crate::event::{Due, PaidBack};
use crate::facts::facets::{Books, Effect, Facets};
use crate::facts::statement_line::{StatementAccount, StatementLine, StatementLineKind};
use crate::facts::webhook_event::{RecipientDebt, WebhookEventKind, WebhookObject};
use crate::{Account, Centavos, LedgerId, Minute};

/// Pending money of the owner became available.
pub(super) fn matured(to: &mut impl Facets, dues: &[Due]) {
    let total = || dues.iter().map(|due| due.amount).sum::<Centavos>();
    // What falls due of the seller's own money is no split.
    to.webhook_events(|outbox| {
        let amount = total();
        if let LedgerId::Recipient(_, number) = outbox.owner
            && amount.is_positive()
        {
            outbox.available(number, None, amount, None);
        }
    });
    to.lines(|lines| {
        for due in dues {
            let (kind, available_at) = (StatementLineKind::Settlement, Some(due.minute.start()));
            let line = |account, amount| StatementLine { kind, amount, account, source: None, available_at };
            lines.add(line(StatementAccount::Pending, -due.amount));
            lines.add(line(StatementAccount::Available, due.amount));
        }
    });
    to.entries(|books| books.between_claims(books.owner, Account::Available, Account::Pending, total()));
}

/// Available money of the merchant repaid its deficit.
pub(super) fn deficit_recovered(to: &mut impl Facets, amount: Centavos) {
    to.lines(|lines| {
        let at = lines.at;
        lines.add(StatementLine {
            kind: StatementLineKind::Deficit,
            amount: -amount,
            account: StatementAccount::Available,
            source: None,
            available_at: Some(at),
        });
    });
    to.entries(|books| {
        let mut merchant = books.merchant(2);
        merchant.debit(Account::Deficit, amount).credit(Account::Available, amount);
        let mut platform = books.platform(2);
        platform.debit(Account::MerchantAvailable, amount).credit(Account::MerchantDeficit, amount);
        books.post(merchant);
        books.post(platform);
    });
}

/// A recipient paid back what refunds took back of its splits.
pub(super) fn clawback_recovered(to: &mut impl Facets, debts: &[PaidBack], left: Option<Centavos>) {
    to.about_each(debts.iter().flat_map(|debt| [debt.refund, debt.split.charge]));
    to.others(std::iter::once((None, Effect::Changed)));
    to.webhook_events(|outbox| {
        if let (LedgerId::Recipient(_, recipient), Some(_)) = (outbox.owner, left) {
            let amount = debts.iter().map(|debt| debt.from_pending + debt.from_available).sum();
            let debt = RecipientDebt { recipient, refund: None, charge: None, amount, left };
            outbox.emit(WebhookEventKind::DebtPaid, WebhookObject::Debt(debt));
        }
    });
    to.lines(|lines| {
        for debt in debts {
            let due = debt.seller_due.map_or(lines.at, Minute::start);
            let kind = StatementLineKind::TakeBack;
            lines.moved(kind, StatementAccount::Pending, debt.to_pending, debt.refund, due);
            lines.now(kind, StatementAccount::Available, debt.to_available, debt.refund);
        }
    });
    to.entries(|books| clawback_columns(books, debts));
}

fn clawback_columns(books: &mut Books, debts: &[PaidBack]) {
    let Some(number) = books.owning_recipient() else { return };
    let sum = |part: fn(&PaidBack) -> Centavos| debts.iter().map(part).sum::<Centavos>();
    let (from_pending, from_available) = (sum(|debt| debt.from_pending), sum(|debt| debt.from_available));
    let (to_pending, to_available) = (sum(|debt| debt.to_pending), sum(|debt| debt.to_available));
    let mut column = books.recipient(number, 3);
    column
        .debit(Account::Clawback, from_pending + from_available)
        .credit(Account::Pending, from_pending)
        .credit(Account::Available, from_available);
    let mut merchant = books.merchant(3);
    merchant
        .debit(Account::Pending, to_pending)
        .debit(Account::Available, to_available)
        .credit(Account::ReceivableRecipient(number), to_pending + to_available);
    let mut platform = books.platform(4);
    platform
        .debit(Account::RecipientPending(number), from_pending)
        .debit(Account::RecipientAvailable(number), from_available)
        .credit(Account::MerchantPending, to_pending)
        .credit(Account::MerchantAvailable, to_available);
    books.post(column);
    books.post(merchant);
    books.post(platform);
}
