//! From events to entries: the only place where money moves. Each event's columns are those of the accounting manual: the
//! merchant's ledger, each recipient's, the platform's shard.

use crate::account::Account;
use crate::entry::{Draft, Entry};
use crate::event::{Event, SellerPart, Split, Terms};
use crate::fees::PaymentMethod;
use crate::id::{GroupNumber, LedgerId, RecipientNumber};
use crate::money::Centavos;

/// The entries of a Record's events, in order. `owner` decided them; every entry stays in its group.
pub fn entries(owner: LedgerId, events: &[Event]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for event in events {
        of_event(owner, event, &mut entries);
    }
    entries
}

fn of_event(owner: LedgerId, event: &Event, entries: &mut Vec<Entry>) {
    let Some(group) = owner.group() else { return };
    match event {
        Event::CardCaptured { terms, acquirer_mdr, seller, .. } => {
            sale(group, terms, seller, Account::Pending, entries);
            let mut platform = Draft::of(LedgerId::Platform(group), 8 + terms.splits.len());
            platform
                .debit(Account::AcquirerReceivable, terms.amount - *acquirer_mdr)
                .debit(Account::AcquirerMdr, *acquirer_mdr)
                .credit(Account::MerchantPending, seller.raised);
            owed_to_recipients(&mut platform, &terms.splits, Account::RecipientPending);
            platform
                .credit(Account::CommissionMdr, terms.commission.mdr)
                .credit(Account::CommissionAntifraud, terms.commission.antifraud)
                .credit(Account::CommissionMargin, terms.commission.margin);
            shortfall_of_merchant(&mut platform, seller);
            entries.extend(platform.finish());
        }
        Event::PixPaid { terms, seller, .. } => {
            sale(group, terms, seller, Account::Available, entries);
            let mut platform = Draft::of(LedgerId::Platform(group), 5 + terms.splits.len());
            platform.debit(Account::BankPix, terms.amount).credit(Account::MerchantAvailable, seller.raised);
            owed_to_recipients(&mut platform, &terms.splits, Account::RecipientAvailable);
            platform.credit(Account::CommissionPix, terms.commission.pix);
            shortfall_of_merchant(&mut platform, seller);
            entries.extend(platform.finish());
        }
        Event::Matured { dues, .. } => {
            let amount = dues.iter().map(|due| due.amount).sum();
            matured(owner, group, amount, entries);
        }
        Event::AcquirerPaid { dues } => {
            let amount = dues.iter().map(|due| due.amount).sum();
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::BankSettlement, amount).credit(Account::AcquirerReceivable, amount);
            entries.extend(platform.finish());
        }
        Event::DeficitRecovered { amount } => {
            let mut merchant = Draft::of(LedgerId::Merchant(group), 2);
            merchant.debit(Account::Deficit, *amount).credit(Account::Available, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::MerchantAvailable, *amount).credit(Account::MerchantDeficit, *amount);
            entries.extend(merchant.finish());
            entries.extend(platform.finish());
        }
        Event::MerchantOpened { .. }
        | Event::MerchantChanged { .. }
        | Event::ApiKeyCreated { .. }
        | Event::ApiKeyRevoked { .. }
        | Event::RecipientRegistered { .. }
        | Event::RecipientRegisteredAgain { .. }
        | Event::RecipientSubmitted { .. }
        | Event::RecipientApproved { .. }
        | Event::RecipientRejected { .. }
        | Event::RecipientChanged { .. }
        | Event::ChargeOpened { .. }
        | Event::CardRefused { .. }
        | Event::CardUnanswered { .. }
        | Event::PixCancelled { .. }
        | Event::ClockMoved { .. } => {}
    }
}

/// The merchant's and the recipients' columns of a paid charge. `raised` is the account that the seller's part raises.
fn sale(group: GroupNumber, terms: &Terms, seller: &SellerPart, raised: Account, entries: &mut Vec<Entry>) {
    let (sales, splits) = match terms.method {
        PaymentMethod::Pix => (Account::SalesPix, Account::SplitsPix),
        PaymentMethod::CreditCard | PaymentMethod::DebitCard => (Account::SalesCard, Account::SplitsCard),
    };
    let mut merchant = Draft::of(LedgerId::Merchant(group), 9);
    merchant
        .debit(raised, seller.raised)
        .debit(Account::FeeMdr, terms.commission.mdr)
        .debit(Account::FeeAntifraud, terms.commission.antifraud)
        .debit(Account::FeeMargin, terms.commission.margin)
        .debit(Account::FeePix, terms.commission.pix)
        .debit(Account::ContraSplits, terms.splits_total())
        .credit(sales, terms.amount)
        .credit(Account::Available, seller.from_available)
        .credit(Account::Deficit, seller.to_deficit);
    entries.extend(merchant.finish());
    for (recipient, amount) in by_recipient(&terms.splits) {
        let mut column = Draft::of(LedgerId::Recipient(group, recipient), 2);
        column.debit(raised, amount).credit(splits, amount);
        entries.extend(column.finish());
    }
}

fn owed_to_recipients(platform: &mut Draft, splits: &[Split], account: fn(RecipientNumber) -> Account) {
    for (recipient, amount) in by_recipient(splits) {
        platform.credit(account(recipient), amount);
    }
}

/// The platform's side of fees that exceed the seller's part.
fn shortfall_of_merchant(platform: &mut Draft, seller: &SellerPart) {
    platform
        .debit(Account::MerchantAvailable, seller.from_available)
        .debit(Account::MerchantDeficit, seller.to_deficit);
}

fn matured(owner: LedgerId, group: GroupNumber, amount: Centavos, entries: &mut Vec<Entry>) {
    let (pending, available) = match owner {
        LedgerId::Recipient(_, number) => (Account::RecipientPending(number), Account::RecipientAvailable(number)),
        _ => (Account::MerchantPending, Account::MerchantAvailable),
    };
    let mut column = Draft::of(owner, 2);
    column.debit(Account::Available, amount).credit(Account::Pending, amount);
    let mut platform = Draft::of(LedgerId::Platform(group), 2);
    platform.debit(pending, amount).credit(available, amount);
    entries.extend(column.finish());
    entries.extend(platform.finish());
}

/// The splits summed up per recipient, in the order of first mention.
fn by_recipient(splits: &[Split]) -> Vec<(RecipientNumber, Centavos)> {
    let mut sums: Vec<(RecipientNumber, Centavos)> = Vec::with_capacity(splits.len());
    let mut places = std::collections::BTreeMap::new();
    for split in splits {
        let place = *places.entry(split.recipient).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => sum.1 += split.amount,
            None => sums.push((split.recipient, split.amount)),
        }
    }
    sums
}
