//! Facets of PIX charges: paid, cancelled, or paid after the code had expired or was cancelled.

use crate::event::SellerPart;
use crate::facts::facets::{AuditedFact, Effect, Facets};
use crate::facts::statement_line::StatementAccount;
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::facts::{charge, refund};
use crate::{Account, Centavos, ObjectId, RecipientNumber, Terms};

/// The payer paid: the money is available at once.
pub(super) fn paid(to: &mut impl Facets, charge: ObjectId, terms: &Terms, seller: &SellerPart, end_to_end_id: &str) {
    to.about(charge);
    charge::credited(to, &terms.splits, None);
    to.audited(|| AuditedFact::of("pay", "charge", charge));
    to.objects(|| vec![("txid", charge.txid()), ("end_to_end_id", end_to_end_id.to_owned())]);
    to.webhook_events(|outbox| {
        outbox.emit(WebhookEventKind::ChargePaid, WebhookObject::Charge(charge));
        let mut splits: Vec<_> = terms.splits.iter().map(|split| (split.recipient, split.amount)).collect();
        splits.sort_unstable_by_key(|(number, _)| *number);
        for of_recipient in splits.chunk_by(|(one, _), (other, _)| one == other) {
            let amount = of_recipient.iter().map(|(_, amount)| *amount).sum();
            outbox.available(of_recipient[0].0, Some(of_recipient.len() as u64), amount, Some(charge));
        }
    });
    to.lines(|lines| {
        let at = lines.at;
        charge::sold(lines, charge, terms, seller, (StatementAccount::Available, at));
    });
    to.entries(|books| {
        charge::sale(books, terms, seller, Account::Available);
        let mut platform = books.platform(5 + terms.splits.len());
        platform.debit(Account::BankPix, terms.amount).credit(Account::MerchantAvailable, seller.raised);
        charge::owed_to_recipients(&mut platform, &terms.splits, Account::RecipientAvailable);
        platform.credit(Account::CommissionPix, terms.commission.pix);
        charge::shortfall_of_merchant(&mut platform, seller);
        books.post(platform);
    });
}

/// The code expired or was cancelled, unpaid.
pub(super) fn cancelled(to: &mut impl Facets, charge: ObjectId, recipients: &[RecipientNumber]) {
    to.about(charge);
    to.others(recipients.iter().map(|number| (Some(*number), Effect::RecordOnly)));
    to.emit(WebhookEventKind::ChargeCancelled, WebhookObject::Charge(charge));
}

/// A payment that nobody asked for: the money is the payer's.
pub(super) fn received_unordered(
    to: &mut impl Facets,
    (id, charge): (ObjectId, ObjectId),
    amount: Centavos,
    end_to_end_id: &str,
) {
    refund::about(to, id, charge);
    to.audited(|| AuditedFact::of("pay", "charge", charge));
    to.objects(|| vec![("txid", charge.txid()), ("end_to_end_id", end_to_end_id.to_owned())]);
    to.entries(|books| {
        let mut platform = books.platform(2);
        platform.debit(Account::BankPix, amount).credit(Account::PayersRefunds, amount);
        books.post(platform);
    });
}
