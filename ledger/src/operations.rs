//! What a merchant sees of its own money, Record by Record: the lines of its account statement. The books say the same with debits
//! and credits: for each account, the operations of a Record add up to what its entries post there.

use crate::event::{Event, SellerPart, Terms};
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;
use crate::record::Record;
use crate::time::Timestamp;

/// Which of the merchant's money an operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationAccount {
    /// Money that falls due later.
    Pending,
    /// Money that can be paid out.
    Available,
    /// Money held for cashouts and disputes.
    Reserved,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// The total of a paid charge.
    Charge,
    /// The platform's part of a charge.
    Fee,
    /// The recipients' parts of a charge, all of them together.
    Split,
    /// Pending money became available: one line on each account.
    Settlement,
    /// Given back to a payer.
    Refund,
    /// Paid back by a recipient.
    TakeBack,
    /// Sent out, or held for it.
    Cashout,
    /// The platform's part of a cashout.
    CashoutFee,
    /// A cashout that failed came back.
    CashoutReturned,
    /// The platform stood in for missing money, or took it back when some came in. These lines add up to the deficit.
    Deficit,
    /// Held for a dispute, or taken by it.
    Dispute,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it is.
    pub kind: OperationKind,
    /// Centavos: above zero when the account rises, below when it falls.
    pub amount: Centavos,
    /// What it moves.
    pub account: OperationAccount,
    /// The charge or other object that it comes from; none for what sums up many.
    pub source: Option<ObjectId>,
    /// When the money is available, for money that is or will be: its due time, or the time of the operation.
    pub available_at: Option<Timestamp>,
}

/// The operations of a Record on the merchant's money, in order. A line that moves nothing is left out. No account is below zero
/// after a line if it was not before.
pub fn operations(record: &Record) -> Vec<Operation> {
    let mut lines = Vec::new();
    let LedgerId::Merchant(_) = record.owner else { return lines };
    for event in &record.events {
        of_event(event, record.effective_at, &mut lines);
    }
    lines.retain(|line| !line.amount.is_zero());
    lines
}

fn of_event(event: &Event, at: Timestamp, lines: &mut Vec<Operation>) {
    match event {
        Event::CardCaptured { charge, terms, seller, seller_due, .. } => {
            sale(*charge, terms, seller, (OperationAccount::Pending, seller_due.start()), at, lines);
        }
        Event::PixPaid { charge, terms, seller, .. } => {
            sale(*charge, terms, seller, (OperationAccount::Available, at), at, lines);
        }
        Event::Matured { dues, .. } => {
            for due in dues {
                let available_at = Some(due.minute.start());
                let line = |account, amount| Operation {
                    kind: OperationKind::Settlement,
                    amount,
                    account,
                    source: None,
                    available_at,
                };
                lines.push(line(OperationAccount::Pending, -due.amount));
                lines.push(line(OperationAccount::Available, due.amount));
            }
        }
        Event::DeficitRecovered { amount } => lines.push(Operation {
            kind: OperationKind::Deficit,
            amount: -*amount,
            account: OperationAccount::Available,
            source: None,
            available_at: Some(at),
        }),
        Event::AcquirerPaid { .. }
        | Event::MerchantOpened { .. }
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

/// A paid charge. What its own money does not cover of the fees is drawn from Available, where the platform stands in for what is
/// missing.
fn sale(
    charge: ObjectId,
    terms: &Terms,
    seller: &SellerPart,
    (raised, due): (OperationAccount, Timestamp),
    at: Timestamp,
    lines: &mut Vec<Operation>,
) {
    let shortfall = seller.from_available + seller.to_deficit;
    let of_charge =
        |kind, amount| Operation { kind, amount, account: raised, source: Some(charge), available_at: Some(due) };
    let drawn = |kind, amount| Operation {
        account: OperationAccount::Available,
        available_at: Some(at),
        ..of_charge(kind, amount)
    };
    lines.extend([
        of_charge(OperationKind::Charge, terms.amount),
        of_charge(OperationKind::Split, -terms.splits_total()),
        of_charge(OperationKind::Fee, shortfall - terms.commission.total()),
        drawn(OperationKind::Deficit, seller.to_deficit),
        drawn(OperationKind::Fee, -shortfall),
    ]);
}
