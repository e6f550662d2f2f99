//! Facets of disputes: a payer's bank wants a charge back; the money is held, then taken by that
//! bank or released.

use crate::event::SellerDraw;
use crate::facts::facets::{AuditedFact, Facets, uuid};
use crate::facts::refund::{about, draw, drawn_from_claims, drawn_from_merchant};
use crate::facts::statement_line::{StatementAccount, StatementLineKind};
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, Centavos, Event, Minute, ObjectId, PaymentMethod, SealedFor};

/// The money is held.
pub(super) fn opened(
    to: &mut impl Facets,
    id: ObjectId,
    charge: ObjectId,
    amount: Centavos,
    drawn: &SellerDraw,
    seller_due: Option<Minute>,
) {
    about(to, id, charge);
    to.personal(|_| SealedFor::reason(id));
    to.objects(|| vec![uuid("dispute", id), ("txid", charge.txid())]);
    to.emit(WebhookEventKind::DisputeOpened, WebhookObject::Dispute(id));
    to.audited(|| AuditedFact::of("open", "dispute", id));
    to.lines(|lines| {
        draw(lines, StatementLineKind::Dispute, id, drawn, seller_due);
        lines.now(StatementLineKind::Dispute, StatementAccount::Reserved, amount, id);
    });
    to.entries(|books| {
        let mut merchant = books.merchant(4);
        merchant.debit(Account::ReservedDispute, amount);
        drawn_from_merchant(&mut merchant, drawn);
        let mut platform = books.platform(4);
        drawn_from_claims(&mut platform, drawn);
        platform.credit(Account::MerchantReservedDispute, amount);
        books.post(merchant);
        books.post(platform);
    });
}

/// It was accepted: the seller bears it. The acquirer nets a chargeback in a later batch; the
/// institution takes a PIX back itself.
pub(super) fn accepted(to: &mut impl Facets, id: ObjectId, charge: ObjectId, method: PaymentMethod, amount: Centavos) {
    about(to, id, charge);
    to.objects(|| vec![uuid("dispute", id), ("txid", charge.txid())]);
    to.emit(WebhookEventKind::DisputeAccepted, WebhookObject::Dispute(id));
    to.audited(|| AuditedFact::of("accept", "dispute", id));
    to.lines(|lines| lines.now(StatementLineKind::Dispute, StatementAccount::Reserved, -amount, id));
    to.entries(|books| {
        let mut merchant = books.merchant(2);
        merchant.debit(Account::ContraChargebacks, amount).credit(Account::ReservedDispute, amount);
        let mut platform = books.platform(2);
        let taken_from = if method.is_card() { Account::AcquirerReceivable } else { Account::BankPix };
        platform.debit(Account::MerchantReservedDispute, amount).credit(taken_from, amount);
        books.post(merchant);
        books.post(platform);
    });
}

/// It was released: the money goes back to where it was drawn from.
pub(super) fn released(to: &mut impl Facets, event: &Event) {
    let Event::DisputeReleased { id, charge, amount, to_pending, seller_due, to_available, accepted, .. } = event
    else {
        return;
    };
    let (id, charge, amount, to_pending, to_available) = (*id, *charge, *amount, *to_pending, *to_available);
    about(to, id, charge);
    to.objects(|| vec![uuid("dispute", id), ("txid", charge.txid())]);
    // The event of the acceptance covers a dispute that is accepted in part.
    if accepted.is_none() {
        to.emit(WebhookEventKind::DisputeReleased, WebhookObject::Dispute(id));
        to.audited(|| AuditedFact::of("release", "dispute", id));
    }
    to.lines(|lines| {
        lines.now(StatementLineKind::Dispute, StatementAccount::Reserved, -amount, id);
        let due = seller_due.map_or(lines.at, Minute::start);
        lines.moved(StatementLineKind::Dispute, StatementAccount::Pending, to_pending, id, due);
        lines.now(StatementLineKind::Dispute, StatementAccount::Available, to_available, id);
    });
    to.entries(|books| {
        let mut merchant = books.merchant(3);
        merchant
            .debit(Account::Pending, to_pending)
            .debit(Account::Available, to_available)
            .credit(Account::ReservedDispute, amount);
        let mut platform = books.platform(3);
        platform
            .debit(Account::MerchantReservedDispute, amount)
            .credit(Account::MerchantPending, to_pending)
            .credit(Account::MerchantAvailable, to_available);
        books.post(merchant);
        books.post(platform);
    });
}

/// An accepted dispute was won: the rail gives the money back, as the acceptance had let it take
/// it.
pub(super) fn reversed(to: &mut impl Facets, event: &Event) {
    let Event::DisputeReversed { id, charge, method, amount, to_pending, seller_due, to_available, key, entry } = event
    else {
        return;
    };
    let (id, charge, amount) = (*id, *charge, *amount);
    about(to, id, charge);
    to.uses_up(*key);
    if let Some(entry) = entry {
        to.about(entry.id);
        to.audited(|| AuditedFact::of("approve", "entry", entry.id));
    }
    to.objects(|| {
        let said = entry.as_ref().map(|entry| [uuid("house_entry", entry.id), ("reference", entry.reference.clone())]);
        [uuid("dispute", id), ("txid", charge.txid())].into_iter().chain(said.into_iter().flatten()).collect()
    });
    to.emit(WebhookEventKind::DisputeReversed, WebhookObject::Dispute(id));
    to.lines(|lines| {
        let due = seller_due.map_or(lines.at, Minute::start);
        lines.moved(StatementLineKind::Dispute, StatementAccount::Pending, *to_pending, id, due);
        lines.now(StatementLineKind::Dispute, StatementAccount::Available, *to_available, id);
    });
    to.entries(|books| {
        let mut merchant = books.merchant(3);
        merchant
            .debit(Account::Pending, *to_pending)
            .debit(Account::Available, *to_available)
            .credit(Account::ContraChargebacks, amount);
        let mut platform = books.platform(3);
        let given_by = if method.is_card() { Account::AcquirerReceivable } else { Account::BankPix };
        platform
            .debit(given_by, amount)
            .credit(Account::MerchantPending, *to_pending)
            .credit(Account::MerchantAvailable, *to_available);
        books.post(merchant);
        books.post(platform);
    });
}
