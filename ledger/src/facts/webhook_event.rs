//! Webhook event: one message of a Record to a merchant, and the object that it is about.

use crate::id::{ObjectId, RecipientNumber};
use crate::money::Centavos;
use crate::time::Timestamp;

/// Kind of a webhook event: its name on the wire.
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
    /// A charge of a subscription was opened: the event carries its PIX code.
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

/// The object that a webhook event is about. Events about the same object are delivered in their
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A charge, a withdrawal, a refund, …: whatever has an id of its own.
    Object(ObjectId),
    /// A recipient.
    Recipient(RecipientNumber),
}

/// One webhook event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// Its kind.
    pub kind: WebhookEventKind,
    /// The object that it is about.
    pub subject: Subject,
    /// The splits that became available; only with [`WebhookEventKind::SplitAvailable`].
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
