//! Facets of card charges: captured, refused or without an answer; and of stored cards.

use crate::event::SellerPart;
use crate::facts::charge;
use crate::facts::facets::Facets;
use crate::facts::statement_line::StatementAccount;
use crate::facts::webhook_event::{WebhookEventKind, WebhookObject};
use crate::{Account, Centavos, Minute, ObjectId, SealedFor, Terms};

/// The acquirer captured a charge: the money of seller and recipients falls due later.
pub(super) fn captured(
    to: &mut impl Facets,
    charge: ObjectId,
    terms: &Terms,
    acquirer_mdr: Centavos,
    seller: &SellerPart,
    [seller_due, splits_due]: [Minute; 2],
) {
    to.about(charge);
    charge::credited(to, &terms.splits, Some(splits_due));
    to.objects(|| vec![("txid", charge.txid())]);
    to.act("capture");
    to.emit(WebhookEventKind::ChargePaid, WebhookObject::Charge(charge));
    to.lines(|lines| charge::sold(lines, charge, terms, seller, (StatementAccount::Pending, seller_due.start())));
    to.entries(|books| {
        charge::sale(books, terms, seller, Account::Pending);
        let mut platform = books.platform(8 + terms.splits.len());
        platform
            .debit(Account::AcquirerReceivable, terms.amount - acquirer_mdr)
            .debit(Account::AcquirerMdr, acquirer_mdr)
            .credit(Account::MerchantPending, seller.raised);
        charge::owed_to_recipients(&mut platform, &terms.splits, Account::RecipientPending);
        platform
            .credit(Account::CommissionMdr, terms.commission.mdr)
            .credit(Account::CommissionAntifraud, terms.commission.antifraud)
            .credit(Account::CommissionMargin, terms.commission.margin);
        charge::shortfall_of_merchant(&mut platform, seller);
        books.post(platform);
    });
}

/// The acquirer refused a charge.
pub(super) fn refused(to: &mut impl Facets, charge: ObjectId) {
    to.about(charge);
    to.emit(WebhookEventKind::ChargeRefused, WebhookObject::Charge(charge));
}

/// The acquirer did not answer in time.
pub(super) fn unanswered(to: &mut impl Facets, charge: ObjectId) {
    to.about(charge);
}

/// A card was stored with the acquirer.
pub(super) fn stored(to: &mut impl Facets, id: ObjectId) {
    to.about(id);
    to.personal(|_| SealedFor::customer(id));
}
