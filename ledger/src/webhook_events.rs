//! What a Record gives to tell outside: the webhook events of section 6 of the interface and those that the decisions add. The journal
//! is the outbox: a notice follows from a Record alone, so it is durable with the money, and every try tells the same.

use crate::event::Event;
use crate::id::{LedgerId, ObjectId, RecipientNumber};
use crate::money::Centavos;
use crate::record::Record;
use crate::recurrence::{CycleOutcome, Standing, SubscriptionStatus};
use crate::time::Timestamp;

/// What happened, as told outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookEventKind {
    /// A charge was captured or its PIX confirmed.
    ChargePaid,
    /// The acquirer refused a card charge.
    ChargeRefused,
    /// A PIX charge expired or was cancelled, unpaid.
    ChargeCancelled,
    /// A part of a charge, or all of it, was given back to its payer.
    ChargeRefunded,
    /// A recipient became active.
    RecipientApproved,
    /// A recipient was refused.
    RecipientRejected,
    /// A recipient has another bank account.
    BankAccountChanged,
    /// A recipient's changed bank account was approved.
    BankAccountApproved,
    /// A recipient's changed bank account was refused.
    BankAccountRejected,
    /// The rail took the transfer of a withdrawal.
    WithdrawalApproved,
    /// A withdrawal was rejected, or its money came back.
    WithdrawalRejected,
    /// The operations team approved a refund.
    RefundApproved,
    /// The operations team rejected a refund.
    RefundRejected,
    /// The institution carried a cashout out.
    CashoutProcessed,
    /// A cashout came back.
    CashoutFailed,
    /// Money of splits became available to a recipient.
    SplitAvailable,
    /// A recipient anticipated card splits.
    AnticipationCompleted,
    /// A payer's bank wants a charge back.
    DisputeOpened,
    /// A dispute was accepted.
    DisputeAccepted,
    /// A dispute was released.
    DisputeReleased,
    /// A subscription began.
    SubscriptionCreated,
    /// A charge of a subscription was opened: a PIX code is told here.
    SubscriptionChargeCreated,
    /// A cycle of a subscription was paid.
    SubscriptionRenewed,
    /// A charge of a subscription came to nothing, and is tried again.
    SubscriptionChargeFailed,
    /// A cycle of a subscription came to nothing.
    SubscriptionPastDue,
    /// The last cycle of a subscription has ended.
    SubscriptionCompleted,
    /// A subscription was paused.
    SubscriptionPaused,
    /// A paused subscription goes on.
    SubscriptionResumed,
    /// A subscription was cancelled.
    SubscriptionCancelled,
}

impl WebhookEventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChargePaid => "charge.paid",
            Self::ChargeRefused => "charge.refused",
            Self::ChargeCancelled => "charge.cancelled",
            Self::ChargeRefunded => "charge.refunded",
            Self::RecipientApproved => "recipient.approved",
            Self::RecipientRejected => "recipient.rejected",
            Self::BankAccountChanged => "recipient.bank_account_changed",
            Self::BankAccountApproved => "recipient.bank_account_approved",
            Self::BankAccountRejected => "recipient.bank_account_rejected",
            Self::WithdrawalApproved => "withdrawal.approved",
            Self::WithdrawalRejected => "withdrawal.rejected",
            Self::RefundApproved => "refund.approved",
            Self::RefundRejected => "refund.rejected",
            Self::CashoutProcessed => "cashout.processed",
            Self::CashoutFailed => "cashout.failed",
            Self::SplitAvailable => "split.available",
            Self::AnticipationCompleted => "anticipation.completed",
            Self::DisputeOpened => "dispute.opened",
            Self::DisputeAccepted => "dispute.accepted",
            Self::DisputeReleased => "dispute.released",
            Self::SubscriptionCreated => "subscription.created",
            Self::SubscriptionChargeCreated => "subscription.charge_created",
            Self::SubscriptionRenewed => "subscription.renewed",
            Self::SubscriptionChargeFailed => "subscription.charge_failed",
            Self::SubscriptionPastDue => "subscription.past_due",
            Self::SubscriptionCompleted => "subscription.completed",
            Self::SubscriptionPaused => "subscription.paused",
            Self::SubscriptionResumed => "subscription.resumed",
            Self::SubscriptionCancelled => "subscription.cancelled",
        }
    }
}

/// The thing that a notice is about. WebhookEvents about the same thing are delivered in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A charge, a withdrawal, a refund, …: whatever has an id of its own.
    Object(ObjectId),
    /// A recipient.
    Recipient(RecipientNumber),
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// What happened.
    pub kind: WebhookEventKind,
    /// To what.
    pub subject: Subject,
    /// What became available, with [`WebhookEventKind::SplitAvailable`] only.
    pub available: Option<AvailableSplits>,
}

/// Splits of one recipient that one Record made available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableSplits {
    /// How many; none where the Record says only how much: of splits that fell due.
    pub count: Option<u64>,
    /// How much, centavos.
    pub amount: Centavos,
    /// The charge, when they are all of one that was just paid.
    pub charge: Option<ObjectId>,
    /// Since when.
    pub at: Timestamp,
}

/// The notices of a Record, in the order in which they are told.
pub fn webhook_events(record: &Record) -> Vec<WebhookEvent> {
    let mut notices = Vec::new();
    each_webhook_event(record, |notice| notices.push(notice));
    notices
}

/// Calls `tell` for each of [`notices`], without a list of them.
pub fn each_webhook_event(record: &Record, mut tell: impl FnMut(WebhookEvent)) {
    for event in &record.events {
        of_event(event, record, &mut tell);
    }
}

fn of_event(event: &Event, record: &Record, tell: &mut impl FnMut(WebhookEvent)) {
    let about = |kind, id: &ObjectId| WebhookEvent { kind, subject: Subject::Object(*id), available: None };
    let of_recipient =
        |kind, number: &RecipientNumber| WebhookEvent { kind, subject: Subject::Recipient(*number), available: None };
    match event {
        Event::CardCaptured { charge, .. } => tell(about(WebhookEventKind::ChargePaid, charge)),
        Event::PixPaid { charge, terms, .. } => {
            tell(about(WebhookEventKind::ChargePaid, charge));
            let mut splits: Vec<_> = terms.splits.iter().map(|split| (split.recipient, split.amount)).collect();
            splits.sort_unstable_by_key(|(number, _)| *number);
            for of_recipient in splits.chunk_by(|(one, _), (other, _)| one == other) {
                let amount = of_recipient.iter().map(|(_, amount)| *amount).sum();
                let (number, count) = (of_recipient[0].0, of_recipient.len() as u64);
                tell(available(number, Some(count), amount, Some(*charge), record.effective_at));
            }
        }
        Event::CardRefused { charge, .. } => tell(about(WebhookEventKind::ChargeRefused, charge)),
        Event::PixCancelled { charge, .. } => tell(about(WebhookEventKind::ChargeCancelled, charge)),
        Event::RecipientApproved { number } => tell(of_recipient(WebhookEventKind::RecipientApproved, number)),
        Event::RecipientRejected { number, .. } => tell(of_recipient(WebhookEventKind::RecipientRejected, number)),
        Event::BankAccountChanged { number, active: true } => {
            tell(of_recipient(WebhookEventKind::BankAccountChanged, number))
        }
        Event::BankAccountApproved { number } => tell(of_recipient(WebhookEventKind::BankAccountApproved, number)),
        Event::BankAccountRejected { number, .. } => tell(of_recipient(WebhookEventKind::BankAccountRejected, number)),
        Event::WithdrawalPaid { id, .. } => tell(about(WebhookEventKind::WithdrawalApproved, id)),
        Event::WithdrawalRejected { id, .. } | Event::WithdrawalReturned { id, .. } => {
            tell(about(WebhookEventKind::WithdrawalRejected, id));
        }
        Event::SplitsAnticipated { id, splits, .. } => {
            tell(about(WebhookEventKind::AnticipationCompleted, id));
            if let LedgerId::Recipient(_, number) = record.owner {
                let (count, net) = (splits.len() as u64, splits.iter().map(|split| split.amount - split.fee).sum());
                tell(available(number, Some(count), net, None, record.effective_at));
            }
        }
        // What falls due of the seller's own money is no split.
        Event::Matured { dues, .. } => {
            let amount = dues.iter().map(|due| due.amount).sum::<Centavos>();
            if let LedgerId::Recipient(_, number) = record.owner
                && amount.is_positive()
            {
                tell(available(number, None, amount, None, record.effective_at));
            }
        }
        Event::CashoutProcessed { id, .. } => tell(about(WebhookEventKind::CashoutProcessed, id)),
        Event::CashoutFailed { id, .. } => tell(about(WebhookEventKind::CashoutFailed, id)),
        Event::RefundApproved { id, charge, .. } => {
            tell(about(WebhookEventKind::RefundApproved, id));
            tell(about(WebhookEventKind::ChargeRefunded, charge));
        }
        Event::RefundRejected { id, .. } => tell(about(WebhookEventKind::RefundRejected, id)),
        Event::DisputeOpened { id, .. } => tell(about(WebhookEventKind::DisputeOpened, id)),
        Event::DisputeAccepted { id, .. } => tell(about(WebhookEventKind::DisputeAccepted, id)),
        Event::DisputeReleased { id, .. } => tell(about(WebhookEventKind::DisputeReleased, id)),
        Event::SubscriptionCreated { id, .. } => tell(about(WebhookEventKind::SubscriptionCreated, id)),
        Event::SubscriptionBilled { id, .. } => tell(about(WebhookEventKind::SubscriptionChargeCreated, id)),
        Event::SubscriptionAdvanced { id, outcome, standing, .. } => {
            tell(about(advanced(*outcome, standing), id));
        }
        Event::SubscriptionPaused { id, .. } => tell(about(WebhookEventKind::SubscriptionPaused, id)),
        Event::SubscriptionResumed { id, .. } => tell(about(WebhookEventKind::SubscriptionResumed, id)),
        Event::SubscriptionCancelled { id, .. } => tell(about(WebhookEventKind::SubscriptionCancelled, id)),
        Event::MerchantOpened { .. }
        | Event::MerchantChanged { .. }
        | Event::ApiKeyCreated { .. }
        | Event::ApiKeyRevoked { .. }
        | Event::ApiKeyChanged { .. }
        | Event::WebhookSecretRotated { .. }
        | Event::RecipientRegistered { .. }
        | Event::RecipientRegisteredAgain { .. }
        | Event::RecipientSubmitted { .. }
        | Event::RecipientChanged { .. }
        | Event::BankAccountChanged { active: false, .. }
        | Event::PlanCreated { .. }
        | Event::PlanDisabled { .. }
        | Event::CardStored { .. }
        | Event::ChargeOpened { .. }
        | Event::CardUnanswered { .. }
        | Event::LatePixReceived { .. }
        | Event::PayerRepaid { .. }
        | Event::AcquirerPaid { .. }
        | Event::DeficitRecovered { .. }
        | Event::ClawbackRecovered { .. }
        | Event::WithdrawalRequested { .. }
        | Event::WithdrawalApproved { .. }
        | Event::CashoutCreated { .. }
        | Event::RefundRequested { .. }
        | Event::ClockMoved { .. } => {}
    }
}

/// What the end of a charge says of its subscription.
fn advanced(outcome: CycleOutcome, standing: &Standing) -> WebhookEventKind {
    if standing.status == SubscriptionStatus::Completed {
        WebhookEventKind::SubscriptionCompleted
    } else if outcome == CycleOutcome::Paid {
        WebhookEventKind::SubscriptionRenewed
    } else if standing.retry_at.is_some() {
        WebhookEventKind::SubscriptionChargeFailed
    } else {
        WebhookEventKind::SubscriptionPastDue
    }
}

fn available(
    number: RecipientNumber,
    count: Option<u64>,
    amount: Centavos,
    charge: Option<ObjectId>,
    at: Timestamp,
) -> WebhookEvent {
    let available = Some(AvailableSplits { count, amount, charge, at });
    WebhookEvent { kind: WebhookEventKind::SplitAvailable, subject: Subject::Recipient(number), available }
}
