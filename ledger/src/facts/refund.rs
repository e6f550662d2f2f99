//! Facets of refunds: requested, rejected or approved. The seller bears a refund; recipients owe
//! the part of their splits that it takes back.

use crate::entry::Draft;
use crate::event::{SellerDraw, TakeBack};
use crate::facts::charge::by_recipient;
use crate::facts::facets::{AuditedFact, Books, Effect, Facets, Lines, uuid};
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{DecidedRefund, RecipientDebt, RefundDecision, WebhookEventKind, WebhookObject};
use crate::fees::Commission;
use crate::{Account, Centavos, Event, Minute, ObjectId, PaymentMethod, SealedFor, Split};

/// A merchant, or an operator for it, asked for a refund.
pub(super) fn requested(to: &mut impl Facets, id: ObjectId, charge: ObjectId) {
    about(to, id, charge);
    to.audited(|| AuditedFact::of("request", "refund", id));
    to.personal(|_| SealedFor::reason(id));
}

/// The operations team rejected it.
pub(super) fn rejected(to: &mut impl Facets, id: ObjectId, charge: ObjectId, amount: Centavos, notes: &str) {
    about(to, id, charge);
    to.webhook_events(|outbox| {
        let refund =
            DecidedRefund { id, charge, amount, decision: RefundDecision::Rejected { notes: notes.to_owned() } };
        outbox.emit(WebhookEventKind::RefundRejected, WebhookObject::Refund(refund));
    });
    to.audited(|| AuditedFact::of("reject", "refund", id).because(notes));
}

/// The operations team approved it.
pub(super) fn approved(to: &mut impl Facets, event: &Event) {
    let Event::RefundApproved { id, charge, amount, drawn, commission, take_backs, .. } = event else { return };
    let Event::RefundApproved { seller_due, commission_pending, .. } = event else { return };
    let (id, charge, amount, seller_due, commission_pending) =
        (*id, *charge, *amount, *seller_due, *commission_pending);
    about(to, id, charge);
    to.others(take_backs.iter().map(|part| (Some(part.recipient), Effect::Changed)));
    to.objects(|| vec![uuid("refund", id), ("txid", charge.txid())]);
    let decided = DecidedRefund { id, charge, amount, decision: RefundDecision::Approved };
    to.emit(WebhookEventKind::RefundApproved, WebhookObject::Refund(decided));
    to.emit(WebhookEventKind::ChargeRefunded, WebhookObject::Charge(charge));
    to.webhook_events(|outbox| {
        let owed: Vec<_> =
            take_backs.iter().map(|part| Split { recipient: part.recipient, amount: part.amount }).collect();
        for (recipient, amount) in by_recipient(&owed) {
            let debt = RecipientDebt { recipient, refund: Some(id), charge: Some(charge), amount, left: None };
            outbox.emit(WebhookEventKind::DebtOpened, WebhookObject::Debt(debt));
        }
    });
    to.audited(|| AuditedFact::of("approve", "refund", id));
    to.lines(|lines| {
        let (account, due) = match seller_due {
            Some(due) if commission_pending => (StatementAccount::Pending, due.start()),
            _ => (StatementAccount::Available, lines.at),
        };
        // Commission that comes back can be drawn at once.
        lines.moved(StatementLineKind::Fee, account, commission.total(), id, due);
        draw(lines, StatementLineKind::Refund, id, drawn, seller_due);
    });
    to.entries(|books| {
        let raised = if commission_pending { Account::Pending } else { Account::Available };
        commission_returned(books, commission, raised);
        columns(books, amount, drawn, take_backs);
    });
}

/// The rail sent a refund, or a payment that nobody asked for, back to the payer.
pub(super) fn repaid(
    to: &mut impl Facets,
    [id, charge]: [ObjectId; 2],
    method: PaymentMethod,
    amount: Centavos,
    is_unordered: bool,
) {
    about(to, id, charge);
    to.objects(|| {
        let refund = (!is_unordered && id != charge).then(|| uuid("refund", id));
        refund.into_iter().chain([("txid", charge.txid())]).collect()
    });
    to.act("return");
    to.entries(|books| {
        let from = if method.is_card() { Account::AcquirerReceivable } else { Account::BankPix };
        let mut platform = books.platform(2);
        platform.debit(Account::PayersRefunds, amount).credit(from, amount);
        books.post(platform);
    });
}

/// The rail has the money of a refund again. The event beside it, which ends the refund, is about
/// it.
pub(super) fn reversed(to: &mut impl Facets, method: PaymentMethod, amount: Centavos) {
    to.entries(|books| {
        let back_in = if method.is_card() { Account::AcquirerReceivable } else { Account::BankPix };
        let mut platform = books.platform(2);
        platform.debit(back_in, amount).credit(Account::PayersRefunds, amount);
        books.post(platform);
    });
}

/// The objects of a refund or of a dispute: itself and its charge, which are one for a late
/// payment.
pub(super) fn about(to: &mut impl Facets, id: ObjectId, charge: ObjectId) {
    to.about(id);
    if charge != id {
        to.about(charge);
    }
}

/// Lines of an amount that is taken from the seller for one charge: from its Pending, then from
/// Available; the platform advances the rest.
pub(super) fn draw(
    lines: &mut Lines<'_>,
    kind: StatementLineKind,
    source: ObjectId,
    drawn: &SellerDraw,
    seller_due: Option<Minute>,
) {
    let due = seller_due.map_or(lines.at, Minute::start);
    let shortfall = drawn.from_available + drawn.to_deficit;
    lines.moved(kind, StatementAccount::Pending, -drawn.from_pending, source, due);
    lines.now(StatementLineKind::Deficit, StatementAccount::Available, drawn.to_deficit, source);
    lines.now(kind, StatementAccount::Available, -shortfall, source);
}

/// The merchant's side of an amount that is taken for one charge.
pub(super) fn drawn_from_merchant(merchant: &mut Draft, drawn: &SellerDraw) {
    merchant
        .credit(Account::Pending, drawn.from_pending)
        .credit(Account::Available, drawn.from_available)
        .credit(Account::Deficit, drawn.to_deficit);
}

/// The platform's side of an amount that is taken from the merchant for one charge.
pub(super) fn drawn_from_claims(platform: &mut Draft, drawn: &SellerDraw) {
    platform
        .debit(Account::MerchantPending, drawn.from_pending)
        .debit(Account::MerchantAvailable, drawn.from_available)
        .debit(Account::MerchantDeficit, drawn.to_deficit);
}

fn columns(books: &mut Books, amount: Centavos, drawn: &SellerDraw, take_backs: &[TakeBack]) {
    let owed: Vec<_> = take_backs.iter().map(|part| Split { recipient: part.recipient, amount: part.amount }).collect();
    let owed = by_recipient(&owed);
    let mut merchant = books.merchant(5 + owed.len());
    merchant.debit(Account::ContraRefunds, amount);
    drawn_from_merchant(&mut merchant, drawn);
    for (recipient, part) in &owed {
        merchant.debit(Account::ReceivableRecipient(*recipient), *part);
    }
    merchant.credit(Account::ContraSplits, owed.iter().map(|(_, part)| *part).sum());
    books.post(merchant);
    for (recipient, part) in &owed {
        let mut column = books.recipient(*recipient, 2);
        column.debit(Account::SplitReversals, *part).credit(Account::Clawback, *part);
        books.post(column);
    }
    let mut platform = books.platform(4);
    drawn_from_claims(&mut platform, drawn);
    platform.credit(Account::PayersRefunds, amount);
    books.post(platform);
}

fn commission_returned(books: &mut Books, commission: &Commission, raised: Account) {
    let total = commission.total();
    let mut merchant = books.merchant(5);
    merchant
        .debit(raised, total)
        .credit(Account::FeeMdr, commission.mdr)
        .credit(Account::FeeAntifraud, commission.antifraud)
        .credit(Account::FeeMargin, commission.margin)
        .credit(Account::FeePix, commission.pix);
    let owed = if raised == Account::Pending { Account::MerchantPending } else { Account::MerchantAvailable };
    let mut platform = books.platform(5);
    platform
        .debit(Account::CommissionMdr, commission.mdr)
        .debit(Account::CommissionAntifraud, commission.antifraud)
        .debit(Account::CommissionMargin, commission.margin)
        .debit(Account::CommissionPix, commission.pix)
        .credit(owed, total);
    books.post(merchant);
    books.post(platform);
}
