//! From events to entries: the only place where money moves. Each event's columns are those of the accounting manual: the
//! merchant's ledger, each recipient's, the platform's shard.

use crate::account::Account;
use crate::entry::{Draft, Entry};
use crate::event::{Drawn, Event, PaidBack, SellerPart, Split, TakeBack, Terms};
use crate::fees::{Commission, PaymentMethod};
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
            between_claims(owner, Account::Available, Account::Pending, amount, entries);
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
        Event::WithdrawalRequested { amount, .. } => {
            between_claims(owner, Account::ReservedWithdrawal, Account::Available, *amount, entries);
        }
        Event::WithdrawalRejected { amount, .. } => {
            between_claims(owner, Account::Available, Account::ReservedWithdrawal, *amount, entries);
        }
        Event::WithdrawalPaid { amount, .. } => {
            let LedgerId::Recipient(_, number) = owner else { return };
            let mut column = Draft::of(owner, 2);
            column.debit(Account::TransitWithdrawal, *amount).credit(Account::ReservedWithdrawal, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform
                .debit(Account::RecipientReservedWithdrawal(number), *amount)
                .credit(Account::BankSettlement, *amount);
            entries.extend([column, platform].into_iter().filter_map(Draft::finish));
        }
        Event::WithdrawalReturned { amount, .. } => {
            let LedgerId::Recipient(_, number) = owner else { return };
            let mut column = Draft::of(owner, 2);
            column.debit(Account::Available, *amount).credit(Account::TransitWithdrawal, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::BankSettlement, *amount).credit(Account::RecipientAvailable(number), *amount);
            entries.extend([column, platform].into_iter().filter_map(Draft::finish));
        }
        Event::SplitsAnticipated { splits, .. } => {
            let LedgerId::Recipient(_, number) = owner else { return };
            let amount: Centavos = splits.iter().map(|split| split.amount).sum();
            let fee: Centavos = splits.iter().map(|split| split.fee).sum();
            let mut column = Draft::of(owner, 3);
            column
                .debit(Account::Available, amount - fee)
                .debit(Account::FeeAnticipation, fee)
                .credit(Account::Pending, amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 3);
            platform
                .debit(Account::RecipientPending(number), amount)
                .credit(Account::RecipientAvailable(number), amount - fee)
                .credit(Account::IncomeAnticipation, fee);
            entries.extend([column, platform].into_iter().filter_map(Draft::finish));
        }
        Event::ClawbackRecovered { debts } => clawback_recovered(owner, group, debts, entries),
        Event::CashoutCreated { amount, .. } => {
            between_claims(LedgerId::Merchant(group), Account::ReservedCashout, Account::Available, *amount, entries);
        }
        Event::CashoutFailed { amount, .. } => {
            between_claims(LedgerId::Merchant(group), Account::Available, Account::ReservedCashout, *amount, entries);
        }
        Event::CashoutProcessed { amount, fee, .. } => {
            let mut merchant = Draft::of(LedgerId::Merchant(group), 3);
            merchant
                .debit(Account::TransitCashout, *amount - *fee)
                .debit(Account::FeeCashout, *fee)
                .credit(Account::ReservedCashout, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 3);
            platform
                .debit(Account::MerchantReservedCashout, *amount)
                .credit(Account::BankPix, *amount - *fee)
                .credit(Account::IncomeCashout, *fee);
            entries.extend([merchant, platform].into_iter().filter_map(Draft::finish));
        }
        Event::RefundApproved { amount, drawn, commission, commission_pending, take_backs, .. } => {
            let raised = if *commission_pending { Account::Pending } else { Account::Available };
            commission_returned(group, commission, raised, entries);
            refund(group, *amount, drawn, take_backs, entries);
        }
        Event::PayerRepaid { method, amount, .. } => {
            let from = if method.is_card() { Account::AcquirerReceivable } else { Account::BankPix };
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::PayersRefunds, *amount).credit(from, *amount);
            entries.extend(platform.finish());
        }
        Event::LatePixReceived { amount, .. } => {
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::BankPix, *amount).credit(Account::PayersRefunds, *amount);
            entries.extend(platform.finish());
        }
        Event::DisputeOpened { amount, drawn, .. } => {
            let mut merchant = Draft::of(LedgerId::Merchant(group), 4);
            merchant.debit(Account::ReservedDispute, *amount);
            drawn_from_merchant(&mut merchant, drawn);
            let mut platform = Draft::of(LedgerId::Platform(group), 4);
            drawn_from_claims(&mut platform, drawn);
            platform.credit(Account::MerchantReservedDispute, *amount);
            entries.extend([merchant, platform].into_iter().filter_map(Draft::finish));
        }
        Event::DisputeAccepted { amount, .. } => {
            let mut merchant = Draft::of(LedgerId::Merchant(group), 2);
            merchant.debit(Account::ContraChargebacks, *amount).credit(Account::ReservedDispute, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 2);
            platform.debit(Account::MerchantReservedDispute, *amount).credit(Account::PayersRefunds, *amount);
            entries.extend([merchant, platform].into_iter().filter_map(Draft::finish));
        }
        Event::DisputeReleased { amount, to_pending, to_available, .. } => {
            let mut merchant = Draft::of(LedgerId::Merchant(group), 3);
            merchant
                .debit(Account::Pending, *to_pending)
                .debit(Account::Available, *to_available)
                .credit(Account::ReservedDispute, *amount);
            let mut platform = Draft::of(LedgerId::Platform(group), 3);
            platform
                .debit(Account::MerchantReservedDispute, *amount)
                .credit(Account::MerchantPending, *to_pending)
                .credit(Account::MerchantAvailable, *to_available);
            entries.extend([merchant, platform].into_iter().filter_map(Draft::finish));
        }
        Event::WithdrawalApproved { .. }
        | Event::RefundRequested { .. }
        | Event::RefundRejected { .. }
        | Event::MerchantOpened { .. }
        | Event::MerchantChanged { .. }
        | Event::ApiKeyCreated { .. }
        | Event::ApiKeyRevoked { .. }
        | Event::ApiKeyChanged { .. }
        | Event::WebhookSecretRotated { .. }
        | Event::RecipientRegistered { .. }
        | Event::RecipientRegisteredAgain { .. }
        | Event::RecipientSubmitted { .. }
        | Event::RecipientApproved { .. }
        | Event::RecipientRejected { .. }
        | Event::RecipientChanged { .. }
        | Event::BankAccountChanged { .. }
        | Event::BankAccountApproved { .. }
        | Event::BankAccountRejected { .. }
        | Event::ChargeOpened { .. }
        | Event::CardRefused { .. }
        | Event::CardUnanswered { .. }
        | Event::PixCancelled { .. }
        | Event::PlanCreated { .. }
        | Event::PlanDisabled { .. }
        | Event::CardStored { .. }
        | Event::SubscriptionCreated { .. }
        | Event::SubscriptionBilled { .. }
        | Event::SubscriptionAdvanced { .. }
        | Event::SubscriptionPaused { .. }
        | Event::SubscriptionResumed { .. }
        | Event::SubscriptionCancelled { .. }
        | Event::ClockMoved { .. } => {}
    }
}

/// The merchant's and the recipients' columns of a paid charge. `raised` is the account that the seller's part raises.
fn sale(group: GroupNumber, terms: &Terms, seller: &SellerPart, raised: Account, entries: &mut Vec<Entry>) {
    let (sales, splits) = match terms.method {
        PaymentMethod::Pix => (Account::SalesPix, Account::SplitsPix),
        PaymentMethod::CreditCard | PaymentMethod::DebitCard => (Account::SalesCard, Account::SplitsCard),
    };
    let initial_fee = terms.initial_fee.unwrap_or_default();
    let mut merchant = Draft::of(LedgerId::Merchant(group), 10);
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

/// Of an owner's claims on the platform one rises and another falls; the platform's shard mirrors both.
fn between_claims(owner: LedgerId, raised: Account, lowered: Account, amount: Centavos, entries: &mut Vec<Entry>) {
    let mut column = Draft::of(owner, 2);
    column.debit(raised, amount).credit(lowered, amount);
    entries.extend(column.finish());
    if let (Some((shard, raised)), Some((_, lowered))) = (raised.mirror(owner), lowered.mirror(owner)) {
        let mut platform = Draft::of(shard, 2);
        platform.debit(lowered, amount).credit(raised, amount);
        entries.extend(platform.finish());
    }
}

/// The columns of a refund: the seller bears it, and recipients owe what is taken back of their splits.
fn refund(group: GroupNumber, amount: Centavos, drawn: &Drawn, take_backs: &[TakeBack], entries: &mut Vec<Entry>) {
    let owed: Vec<_> = take_backs.iter().map(|part| Split { recipient: part.recipient, amount: part.amount }).collect();
    let owed = by_recipient(&owed);
    let mut merchant = Draft::of(LedgerId::Merchant(group), 5 + owed.len());
    merchant.debit(Account::ContraRefunds, amount);
    drawn_from_merchant(&mut merchant, drawn);
    for (recipient, part) in &owed {
        merchant.debit(Account::ReceivableRecipient(*recipient), *part);
    }
    merchant.credit(Account::ContraSplits, owed.iter().map(|(_, part)| *part).sum());
    entries.extend(merchant.finish());
    for (recipient, part) in &owed {
        let mut column = Draft::of(LedgerId::Recipient(group, *recipient), 2);
        column.debit(Account::SplitReversals, *part).credit(Account::Clawback, *part);
        entries.extend(column.finish());
    }
    let mut platform = Draft::of(LedgerId::Platform(group), 4);
    drawn_from_claims(&mut platform, drawn);
    platform.credit(Account::PayersRefunds, amount);
    entries.extend(platform.finish());
}

fn commission_returned(group: GroupNumber, commission: &Commission, raised: Account, entries: &mut Vec<Entry>) {
    let total = commission.total();
    let mut merchant = Draft::of(LedgerId::Merchant(group), 5);
    merchant
        .debit(raised, total)
        .credit(Account::FeeMdr, commission.mdr)
        .credit(Account::FeeAntifraud, commission.antifraud)
        .credit(Account::FeeMargin, commission.margin)
        .credit(Account::FeePix, commission.pix);
    let owed = if raised == Account::Pending { Account::MerchantPending } else { Account::MerchantAvailable };
    let mut platform = Draft::of(LedgerId::Platform(group), 5);
    platform
        .debit(Account::CommissionMdr, commission.mdr)
        .debit(Account::CommissionAntifraud, commission.antifraud)
        .debit(Account::CommissionMargin, commission.margin)
        .debit(Account::CommissionPix, commission.pix)
        .credit(owed, total);
    entries.extend([merchant, platform].into_iter().filter_map(Draft::finish));
}

/// The columns of a debt paid back: the recipient's, the merchant's and the platform's.
fn clawback_recovered(owner: LedgerId, group: GroupNumber, debts: &[PaidBack], entries: &mut Vec<Entry>) {
    let LedgerId::Recipient(_, number) = owner else { return };
    let sum = |part: fn(&PaidBack) -> Centavos| debts.iter().map(part).sum::<Centavos>();
    let (from_pending, from_available) = (sum(|debt| debt.from_pending), sum(|debt| debt.from_available));
    let (to_pending, to_available) = (sum(|debt| debt.to_pending), sum(|debt| debt.to_available));
    let mut column = Draft::of(owner, 3);
    column
        .debit(Account::Clawback, from_pending + from_available)
        .credit(Account::Pending, from_pending)
        .credit(Account::Available, from_available);
    let mut merchant = Draft::of(LedgerId::Merchant(group), 3);
    merchant
        .debit(Account::Pending, to_pending)
        .debit(Account::Available, to_available)
        .credit(Account::ReceivableRecipient(number), to_pending + to_available);
    let mut platform = Draft::of(LedgerId::Platform(group), 4);
    platform
        .debit(Account::RecipientPending(number), from_pending)
        .debit(Account::RecipientAvailable(number), from_available)
        .credit(Account::MerchantPending, to_pending)
        .credit(Account::MerchantAvailable, to_available);
    entries.extend([column, merchant, platform].into_iter().filter_map(Draft::finish));
}

fn drawn_from_merchant(merchant: &mut Draft, drawn: &Drawn) {
    merchant
        .credit(Account::Pending, drawn.from_pending)
        .credit(Account::Available, drawn.from_available)
        .credit(Account::Deficit, drawn.to_deficit);
}

fn drawn_from_claims(platform: &mut Draft, drawn: &Drawn) {
    platform
        .debit(Account::MerchantPending, drawn.from_pending)
        .debit(Account::MerchantAvailable, drawn.from_available)
        .debit(Account::MerchantDeficit, drawn.to_deficit);
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
