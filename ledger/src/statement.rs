//! What a merchant sees of its own money, Record by Record: the lines of its account statement. The books say the same with debits
//! and credits: for each account, the operations of a Record add up to what its entries post there.

use crate::event::{Drawn, Event, SellerPart, Terms};
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;
use crate::record::Record;
use crate::time::{Minute, Timestamp};

/// Which of the merchant's money an operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementAccount {
    /// Money that falls due later.
    Pending,
    /// Money that can be paid out.
    Available,
    /// Money held for cashouts and disputes.
    Reserved,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementLineKind {
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
pub struct StatementLine {
    /// What it is.
    pub kind: StatementLineKind,
    /// Centavos: above zero when the account rises, below when it falls.
    pub amount: Centavos,
    /// What it moves.
    pub account: StatementAccount,
    /// The charge or other object that it comes from; none for what sums up many.
    pub source: Option<ObjectId>,
    /// When the money is available, for money that is or will be: its due time, or the time of the operation.
    pub available_at: Option<Timestamp>,
}

/// The operations of a Record on the merchant's money, in order. A line that moves nothing is left out. No account is below zero
/// after a line if it was not before.
pub fn statement_lines(record: &Record) -> Vec<StatementLine> {
    let mut lines = Vec::new();
    each_statement_line(record, |line| lines.push(line));
    lines
}

/// Calls `tell` for each of [`operations`], without a list of them.
pub fn each_statement_line(record: &Record, mut tell: impl FnMut(StatementLine)) {
    let by_merchant = matches!(record.owner, LedgerId::Merchant(_));
    let lines = &mut |line: StatementLine| {
        if !line.amount.is_zero() {
            tell(line);
        }
    };
    // Of what a recipient decides, only a debt that it pays back moves its merchant's money.
    for event in record.events.iter().filter(|event| by_merchant || matches!(event, Event::ClawbackRecovered { .. })) {
        of_event(event, record.effective_at, lines);
    }
}

fn of_event(event: &Event, at: Timestamp, lines: &mut impl FnMut(StatementLine)) {
    match event {
        Event::CardCaptured { charge, terms, seller, seller_due, .. } => {
            sale(*charge, terms, seller, (StatementAccount::Pending, seller_due.start()), at, lines);
        }
        Event::PixPaid { charge, terms, seller, .. } => {
            sale(*charge, terms, seller, (StatementAccount::Available, at), at, lines);
        }
        Event::Matured { dues, .. } => {
            for due in dues {
                let available_at = Some(due.minute.start());
                let line = |account, amount| StatementLine {
                    kind: StatementLineKind::Settlement,
                    amount,
                    account,
                    source: None,
                    available_at,
                };
                lines(line(StatementAccount::Pending, -due.amount));
                lines(line(StatementAccount::Available, due.amount));
            }
        }
        Event::DeficitRecovered { amount } => lines(StatementLine {
            kind: StatementLineKind::Deficit,
            amount: -*amount,
            account: StatementAccount::Available,
            source: None,
            available_at: Some(at),
        }),
        Event::CashoutCreated { id, amount, .. } => {
            lines(moved(StatementLineKind::Cashout, StatementAccount::Available, -*amount, *id, at));
            lines(moved(StatementLineKind::Cashout, StatementAccount::Reserved, *amount, *id, at));
        }
        Event::CashoutProcessed { id, amount, fee, .. } => {
            lines(moved(StatementLineKind::Cashout, StatementAccount::Reserved, *fee - *amount, *id, at));
            lines(moved(StatementLineKind::CashoutFee, StatementAccount::Reserved, -*fee, *id, at));
        }
        Event::CashoutFailed { id, amount, .. } => {
            lines(moved(StatementLineKind::CashoutReturned, StatementAccount::Reserved, -*amount, *id, at));
            lines(moved(StatementLineKind::CashoutReturned, StatementAccount::Available, *amount, *id, at));
        }
        Event::RefundApproved { id, drawn, seller_due, commission, commission_pending, .. } => {
            let (account, due) = match seller_due {
                Some(due) if *commission_pending => (StatementAccount::Pending, due.start()),
                _ => (StatementAccount::Available, at),
            };
            // What comes back is there to be drawn on.
            lines(moved(StatementLineKind::Fee, account, commission.total(), *id, due));
            draw(StatementLineKind::Refund, *id, drawn, *seller_due, at, lines);
        }
        Event::DisputeOpened { id, amount, drawn, seller_due, .. } => {
            draw(StatementLineKind::Dispute, *id, drawn, *seller_due, at, lines);
            lines(moved(StatementLineKind::Dispute, StatementAccount::Reserved, *amount, *id, at));
        }
        Event::DisputeAccepted { id, amount, .. } => {
            lines(moved(StatementLineKind::Dispute, StatementAccount::Reserved, -*amount, *id, at));
        }
        Event::DisputeReleased { id, amount, to_pending, seller_due, to_available, .. } => {
            lines(moved(StatementLineKind::Dispute, StatementAccount::Reserved, -*amount, *id, at));
            let due = seller_due.map_or(at, Minute::start);
            lines(moved(StatementLineKind::Dispute, StatementAccount::Pending, *to_pending, *id, due));
            lines(moved(StatementLineKind::Dispute, StatementAccount::Available, *to_available, *id, at));
        }
        Event::ClawbackRecovered { debts } => {
            for debt in debts {
                let due = debt.seller_due.map_or(at, Minute::start);
                let kind = StatementLineKind::TakeBack;
                lines(moved(kind, StatementAccount::Pending, debt.to_pending, debt.refund, due));
                lines(moved(kind, StatementAccount::Available, debt.to_available, debt.refund, at));
            }
        }
        Event::WithdrawalRequested { .. }
        | Event::WithdrawalApproved { .. }
        | Event::WithdrawalPaid { .. }
        | Event::WithdrawalRejected { .. }
        | Event::WithdrawalReturned { .. }
        | Event::SplitsAnticipated { .. }
        | Event::RefundRequested { .. }
        | Event::RefundRejected { .. }
        | Event::PayerRepaid { .. }
        | Event::LatePixReceived { .. }
        | Event::AcquirerPaid { .. }
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

fn moved(
    kind: StatementLineKind,
    account: StatementAccount,
    amount: Centavos,
    source: ObjectId,
    available_at: Timestamp,
) -> StatementLine {
    StatementLine { kind, amount, account, source: Some(source), available_at: Some(available_at) }
}

/// What the seller's money of one charge gives: its Pending, then Available, where the platform stands in for what is missing.
fn draw(
    kind: StatementLineKind,
    source: ObjectId,
    drawn: &Drawn,
    seller_due: Option<Minute>,
    at: Timestamp,
    lines: &mut impl FnMut(StatementLine),
) {
    let due = seller_due.map_or(at, Minute::start);
    let shortfall = drawn.from_available + drawn.to_deficit;
    lines(moved(kind, StatementAccount::Pending, -drawn.from_pending, source, due));
    lines(moved(StatementLineKind::Deficit, StatementAccount::Available, drawn.to_deficit, source, at));
    lines(moved(kind, StatementAccount::Available, -shortfall, source, at));
}

/// A paid charge. What its own money does not cover of the fees is drawn from Available, where the platform stands in for what is
/// missing.
fn sale(
    charge: ObjectId,
    terms: &Terms,
    seller: &SellerPart,
    (raised, due): (StatementAccount, Timestamp),
    at: Timestamp,
    lines: &mut impl FnMut(StatementLine),
) {
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
    .for_each(lines);
}
