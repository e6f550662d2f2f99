//! Webhook event: one message of a Record to a merchant, with the object that it is about. The wire
//! names of all kinds are here.

use strum::{EnumMessage, IntoStaticStr, VariantArray};

use crate::anticipation::Anticipation;
use crate::{Centavos, ObjectId, RecipientNumber, SubscriptionStanding, Timestamp};

/// Kind of a webhook event: its name on the wire. The description of the interface has these
/// sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumMessage, IntoStaticStr, VariantArray)]
pub enum WebhookEventKind {
    /// A charge was captured or its PIX confirmed.
    #[strum(serialize = "charge.paid")]
    ChargePaid,
    /// The acquirer refused a card charge.
    #[strum(serialize = "charge.refused")]
    ChargeRefused,
    /// A PIX charge expired or was cancelled, unpaid.
    #[strum(serialize = "charge.cancelled")]
    ChargeCancelled,
    /// A part of a charge, or all of it, was given back to its payer.
    #[strum(serialize = "charge.refunded")]
    ChargeRefunded,
    /// A recipient became active.
    #[strum(serialize = "recipient.approved")]
    RecipientApproved,
    /// A recipient was refused.
    #[strum(serialize = "recipient.rejected")]
    RecipientRejected,
    /// A recipient has another bank account.
    #[strum(serialize = "recipient.bank_account_changed")]
    BankAccountChanged,
    /// A recipient's changed bank account was approved.
    #[strum(serialize = "recipient.bank_account_approved")]
    BankAccountApproved,
    /// A recipient's changed bank account was refused.
    #[strum(serialize = "recipient.bank_account_rejected")]
    BankAccountRejected,
    /// The rail took the transfer of a withdrawal.
    #[strum(serialize = "withdrawal.approved")]
    WithdrawalApproved,
    /// A withdrawal was rejected, or its money came back.
    #[strum(serialize = "withdrawal.rejected")]
    WithdrawalRejected,
    /// The operations team approved a refund.
    #[strum(serialize = "refund.approved")]
    RefundApproved,
    /// The operations team rejected a refund.
    #[strum(serialize = "refund.rejected")]
    RefundRejected,
    /// The rail refused to carry out an approved refund; its money is back.
    #[strum(serialize = "refund.failed")]
    RefundFailed,
    /// The institution carried a cashout out.
    #[strum(serialize = "cashout.processed")]
    CashoutProcessed,
    /// A cashout came back.
    #[strum(serialize = "cashout.failed")]
    CashoutFailed,
    /// The bank sent the money of a processed cashout back.
    #[strum(serialize = "cashout.returned")]
    CashoutReturned,
    /// Money of splits became available to a recipient.
    #[strum(serialize = "split.available")]
    SplitAvailable,
    /// A refund takes parts of splits back: their recipient owes them.
    #[strum(serialize = "recipient.debt_opened")]
    DebtOpened,
    /// A recipient paid of what it owes.
    #[strum(serialize = "recipient.debt_paid")]
    DebtPaid,
    /// A recipient anticipated card splits.
    #[strum(serialize = "anticipation.completed")]
    AnticipationCompleted,
    /// A payer's bank wants a charge back.
    #[strum(serialize = "dispute.opened")]
    DisputeOpened,
    /// A dispute was accepted.
    #[strum(serialize = "dispute.accepted")]
    DisputeAccepted,
    /// A dispute was released.
    #[strum(serialize = "dispute.released")]
    DisputeReleased,
    /// An accepted dispute was won later; its money is back.
    #[strum(serialize = "dispute.reversed")]
    DisputeReversed,
    /// The house credited money.
    #[strum(serialize = "adjustment.created")]
    AdjustmentCreated,
    /// A subscription began.
    #[strum(serialize = "subscription.created")]
    SubscriptionCreated,
    /// A charge of a subscription was opened: the event carries its PIX code.
    #[strum(serialize = "subscription.charge_created")]
    SubscriptionChargeCreated,
    /// A cycle of a subscription was paid.
    #[strum(serialize = "subscription.renewed")]
    SubscriptionRenewed,
    /// A charge of a subscription came to nothing, and is tried again.
    #[strum(serialize = "subscription.charge_failed")]
    SubscriptionChargeFailed,
    /// A cycle of a subscription came to nothing.
    #[strum(serialize = "subscription.past_due")]
    SubscriptionPastDue,
    /// The last cycle of a subscription has ended.
    #[strum(serialize = "subscription.completed")]
    SubscriptionCompleted,
    /// A subscription was paused.
    #[strum(serialize = "subscription.paused")]
    SubscriptionPaused,
    /// A paused subscription goes on.
    #[strum(serialize = "subscription.resumed")]
    SubscriptionResumed,
    /// A subscription was cancelled.
    #[strum(serialize = "subscription.cancelled")]
    SubscriptionCancelled,
}

impl WebhookEventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of a name on the wire; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The identity of what webhook events are about. Events about the same are delivered in their
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A charge, a withdrawal, a dispute, …: whatever has an id of its own.
    Object(ObjectId),
    /// A recipient.
    Recipient(RecipientNumber),
}

/// One message to a merchant's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// Its kind.
    pub kind: WebhookEventKind,
    /// What it is about, with all that its Record alone says of it.
    pub about: WebhookObject,
}

/// What a webhook event is about: its body shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookObject {
    /// A charge.
    Charge(ObjectId),
    /// A recipient of the group.
    Recipient(RecipientNumber),
    /// Splits of a recipient.
    Splits(RecipientNumber, AvailableSplits),
    /// A debt of a recipient.
    Debt(RecipientDebt),
    /// A refund on which the operations team decided.
    Refund(DecidedRefund),
    /// A withdrawal.
    Withdrawal(ObjectId),
    /// A cashout.
    Cashout(ObjectId),
    /// A dispute.
    Dispute(ObjectId),
    /// An adjustment.
    Adjustment(ObjectId),
    /// A subscription, where it stands now, and the charge that was opened for it.
    Subscription {
        /// The subscription's id.
        id: ObjectId,
        /// Its standing after the Record.
        standing: SubscriptionStanding,
        /// The charge; only with [`WebhookEventKind::SubscriptionChargeCreated`].
        charge: Option<ObjectId>,
    },
    /// An anticipation.
    Anticipation(Anticipation),
}

/// A debt of a recipient that arose, or of which something was paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecipientDebt {
    /// The debtor.
    pub recipient: RecipientNumber,
    /// The refund that took back; none of a payment, which may be for several.
    pub refund: Option<ObjectId>,
    /// The charge of the refund.
    pub charge: Option<ObjectId>,
    /// How much arose or was paid, centavos.
    pub amount: Centavos,
    /// What the recipient still owes, centavos; only of a payment.
    pub left: Option<Centavos>,
}

/// Status of a refund.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RefundDecision {
    /// The operations team has not decided yet.
    Pending,
    /// The operations team approved it; the money has moved.
    Approved,
    /// The operations team rejected it.
    Rejected {
        /// The operator's reason.
        notes: String,
    },
    /// The rail refused to carry it out; the money is back.
    Failed {
        /// The rail's reason.
        notes: String,
    },
}

impl RefundDecision {
    /// Why it was rejected, or failed; none for any other.
    pub fn notes(&self) -> Option<&str> {
        match self {
            Self::Rejected { notes } | Self::Failed { notes } => Some(notes),
            Self::Pending | Self::Approved => None,
        }
    }
}

/// A refund that was approved or rejected, or that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedRefund {
    /// The refund's id.
    pub id: ObjectId,
    /// The charge's id.
    pub charge: ObjectId,
    /// Amount of the refund, centavos.
    pub amount: Centavos,
    /// What became of it.
    pub decision: RefundDecision,
}

impl WebhookEvent {
    /// The identity of what it is about.
    pub fn subject(&self) -> Subject {
        match &self.about {
            WebhookObject::Charge(id)
            | WebhookObject::Withdrawal(id)
            | WebhookObject::Cashout(id)
            | WebhookObject::Dispute(id)
            | WebhookObject::Adjustment(id)
            | WebhookObject::Subscription { id, .. } => Subject::Object(*id),
            // In the order of its charge, whose `refunded_amount` it changes.
            WebhookObject::Refund(refund) => Subject::Object(refund.charge),
            WebhookObject::Anticipation(done) => Subject::Object(done.id),
            WebhookObject::Debt(debt) => Subject::Recipient(debt.recipient),
            WebhookObject::Recipient(number) | WebhookObject::Splits(number, _) => Subject::Recipient(*number),
        }
    }
}

/// Splits of one recipient that one Record made available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableSplits {
    /// How many; `None` if the Record says only how much: of splits that fell due.
    pub count: Option<u64>,
    /// How much, less what debts took of it, centavos.
    pub amount: Centavos,
    /// What debts took of it, centavos.
    pub recovered: Centavos,
    /// The charge, when they are all of one that was just paid.
    pub charge: Option<ObjectId>,
    /// Since when.
    pub at: Timestamp,
}
