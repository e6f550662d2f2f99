//! Facets of charges: the opening, and the entries and lines that every paid charge has, by card or
//! by PIX.

use std::collections::BTreeMap;

use crate::entry::Draft;
use crate::event::SellerPart;
use crate::facts::facets::{Books, Effect, Facets, Lines};
use crate::facts::statement_line::{StatementAccount, StatementLine, StatementLineKind};
use crate::{
    Account, Centavos, Fingerprint, Minute, ObjectId, PaymentMethod, RecipientNumber, SealedFor, Split, Terms,
    Timestamp,
};

/// A charge was created and waits for its payment. The statements of its recipients show the splits
/// of a PIX, which has an expiry, from here on.
pub(super) fn opened(to: &mut impl Facets, charge: ObjectId, terms: &Terms, expires_at: Option<Timestamp>) {
    to.about(charge);
    to.personal(|_| SealedFor::payer(charge));
    let splits = terms.splits.iter().filter(|_| expires_at.is_some());
    to.others(splits.map(|split| (Some(split.recipient), Effect::RecordOnly)));
}

/// A caller replaced the metadata, which the Record has.
pub(super) fn metadata_changed(to: &mut impl Facets, id: ObjectId, key: Fingerprint) {
    to.about(id);
    to.personal(|_| SealedFor::metadata(id));
    to.uses_up(key);
}

/// A caller linked a fiscal document, whose key the Record has.
pub(super) fn fiscal_document_linked(to: &mut impl Facets, charge: ObjectId, key: Fingerprint, document: Fingerprint) {
    fiscal_document_unlinked(to, charge, key);
    to.personal(|_| SealedFor::fiscal_key(document));
}

/// A caller took the link of a fiscal document back.
pub(super) fn fiscal_document_unlinked(to: &mut impl Facets, charge: ObjectId, key: Fingerprint) {
    to.about(charge);
    to.uses_up(key);
}

/// The charge was paid: each split is a credit, at its due minute or at once.
pub(super) fn credited(to: &mut impl Facets, splits: &[Split], due: Option<Minute>) {
    to.others(splits.iter().map(|split| (Some(split.recipient), Effect::Credited { due, amount: split.amount })));
}

/// The merchant's and the recipients' columns of a paid charge. `raised` is the account that the
/// seller's part raises.
pub(super) fn sale(books: &mut Books, terms: &Terms, seller: &SellerPart, raised: Account) {
    let (sales, splits) = match terms.method {
        PaymentMethod::Pix => (Account::SalesPix, Account::SplitsPix),
        PaymentMethod::CreditCard | PaymentMethod::DebitCard => (Account::SalesCard, Account::SplitsCard),
    };
    let initial_fee = terms.initial_fee.unwrap_or_default();
    let mut merchant = books.merchant(10);
    merchant
        .debit(raised, seller.raised)
        .debit(Account::FeeMdr, terms.commission.mdr)
        .debit(Account::FeeAntifraud, terms.commission.antifraud)
        .debit(Account::FeeMargin, terms.commission.margin)
        .debit(Account::FeePix, terms.commission.pix)
        .debit(Account::ContraSplits, terms.splits_total())
        .credit(sales, terms.amount - initial_fee)
        .credit(Account::SalesInitialFee, initial_fee)
        .credit(Account::Available, seller.from_available)
        .credit(Account::Deficit, seller.to_deficit);
    books.post(merchant);
    for (recipient, amount) in by_recipient(&terms.splits) {
        let mut column = books.recipient(recipient, 2);
        column.debit(raised, amount).credit(splits, amount);
        books.post(column);
    }
}

/// The platform's debt to each recipient of a paid charge.
pub(super) fn owed_to_recipients(platform: &mut Draft, splits: &[Split], account: fn(RecipientNumber) -> Account) {
    for (recipient, amount) in by_recipient(splits) {
        platform.credit(account(recipient), amount);
    }
}

/// The platform's side of fees that exceed the seller's part.
pub(super) fn shortfall_of_merchant(platform: &mut Draft, seller: &SellerPart) {
    platform
        .debit(Account::MerchantAvailable, seller.from_available)
        .debit(Account::MerchantDeficit, seller.to_deficit);
}

/// The lines of a paid charge. Fees that its own money does not cover are drawn from Available,
/// where the platform stands in for what is missing.
pub(super) fn sold(
    lines: &mut Lines<'_>,
    charge: ObjectId,
    terms: &Terms,
    seller: &SellerPart,
    (raised, due): (StatementAccount, Timestamp),
) {
    let at = lines.at;
    let shortfall = seller.from_available + seller.to_deficit;
    let of_charge =
        |kind, amount| StatementLine { kind, amount, account: raised, source: Some(charge), available_at: Some(due) };
    let drawn = |kind, amount| StatementLine {
        account: StatementAccount::Available,
        available_at: Some(at),
        ..of_charge(kind, amount)
    };
    [
        of_charge(StatementLineKind::Charge, terms.amount),
        of_charge(StatementLineKind::Split, -terms.splits_total()),
        of_charge(StatementLineKind::Fee, shortfall - terms.commission.total()),
        drawn(StatementLineKind::Deficit, seller.to_deficit),
        drawn(StatementLineKind::Fee, -shortfall),
    ]
    .into_iter()
    .for_each(|line| lines.add(line));
}

/// The splits summed up per recipient, in the order of first mention.
pub(super) fn by_recipient(splits: &[Split]) -> Vec<(RecipientNumber, Centavos)> {
    let mut sums: Vec<(RecipientNumber, Centavos)> = Vec::with_capacity(splits.len());
    let mut places = BTreeMap::new();
    for split in splits {
        let place = *places.entry(split.recipient).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => sum.1 += split.amount,
            None => sums.push((split.recipient, split.amount)),
        }
    }
    sums
}
