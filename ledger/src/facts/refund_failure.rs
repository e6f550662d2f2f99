//! Facets of a refund that its rail refused: the reverse of its approval.

use crate::event::{GiveBack, SellerDraw};
use crate::facts::facets::{Books, Effect, Facets, uuid};
use crate::facts::refund::{about, draw, drawn_from_claims, drawn_from_merchant};
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{DecidedRefund, RefundDecision, WebhookEventKind, WebhookObject};
use crate::fees::Commission;
use crate::{Account, Centavos, Event, Minute};

/// The rail refused to carry out a refund; its money is back.
pub(super) fn failed(to: &mut impl Facets, event: &Event) {
    let Event::RefundFailed {
        id,
        charge,
        amount,
        notes,
        to_pending,
        seller_due,
        to_available,
        give_backs,
        commission,
        charged,
        ..
    } = event
    else {
        return;
    };
    about(to, *id, *charge);
    to.others(give_backs.iter().map(|part| (Some(part.recipient), Effect::Changed)));
    to.objects(|| vec![uuid("refund", *id), ("txid", charge.txid())]);
    to.webhook_events(|outbox| {
        let decision = RefundDecision::Failed { notes: notes.to_owned() };
        let refund = DecidedRefund { id: *id, charge: *charge, amount: *amount, decision };
        outbox.emit(WebhookEventKind::RefundFailed, WebhookObject::Refund(refund));
    });
    let given = sum(give_backs, |part| part.to_pending + part.to_available);
    to.lines(|lines| {
        let due = seller_due.map_or(lines.at, Minute::start);
        lines.moved(StatementLineKind::Refund, StatementAccount::Pending, *to_pending, *id, due);
        lines.now(StatementLineKind::Refund, StatementAccount::Available, *to_available + given, *id);
        lines.now(StatementLineKind::TakeBack, StatementAccount::Available, -given, *id);
        draw(lines, StatementLineKind::Fee, *id, charged, *seller_due);
    });
    to.entries(|books| {
        returned(books, *amount, [*to_pending, *to_available], give_backs);
        commission_charged(books, commission, charged);
    });
}

fn sum(parts: &[GiveBack], of: impl Fn(&GiveBack) -> Centavos) -> Centavos {
    parts.iter().map(of).sum()
}

fn returned(books: &mut Books, amount: Centavos, [to_pending, to_available]: [Centavos; 2], give_backs: &[GiveBack]) {
    let given = sum(give_backs, |part| part.to_pending + part.to_available);
    let mut merchant = books.merchant(4);
    merchant
        .debit(Account::Pending, to_pending)
        .debit(Account::Available, to_available)
        .debit(Account::ContraSplits, given)
        .credit(Account::ContraRefunds, amount);
    books.post(merchant);
    let mut platform = books.platform(3 + 2 * give_backs.len());
    platform
        .debit(Account::PayersRefunds, amount)
        .credit(Account::MerchantPending, to_pending)
        .credit(Account::MerchantAvailable, to_available);
    for part in give_backs {
        let GiveBack { recipient, to_pending, to_available, .. } = *part;
        let mut column = books.recipient(recipient, 3);
        column
            .debit(Account::Pending, to_pending)
            .debit(Account::Available, to_available)
            .credit(Account::SplitReversals, to_pending + to_available);
        books.post(column);
        platform
            .credit(Account::RecipientPending(recipient), to_pending)
            .credit(Account::RecipientAvailable(recipient), to_available);
    }
    books.post(platform);
}

fn commission_charged(books: &mut Books, commission: &Commission, charged: &SellerDraw) {
    let mut merchant = books.merchant(7);
    merchant
        .debit(Account::FeeMdr, commission.mdr)
        .debit(Account::FeeAntifraud, commission.antifraud)
        .debit(Account::FeeMargin, commission.margin)
        .debit(Account::FeePix, commission.pix);
    drawn_from_merchant(&mut merchant, charged);
    let mut platform = books.platform(7);
    drawn_from_claims(&mut platform, charged);
    platform
        .credit(Account::CommissionMdr, commission.mdr)
        .credit(Account::CommissionAntifraud, commission.antifraud)
        .credit(Account::CommissionMargin, commission.margin)
        .credit(Account::CommissionPix, commission.pix);
    books.post(merchant);
    books.post(platform);
}
