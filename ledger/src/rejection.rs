//! Rejections: every refusal of a command, on one page on purpose, for the support desk. A
//! rejection is the business saying no; nothing has changed. Failures of the machine are errors,
//! and not here.

use crate::{Centavos, ObjectId};

/// What is decided of a command, or why it was refused.
pub type Result<T, E = Rejection> = std::result::Result<T, E>;

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The account is not configured for split (interface 5.4).
    #[error("the account is not configured for split")]
    SplitNotEnabled,
    /// No such recipient in this account (interface 7).
    #[error("split {index}: no such sub-recipient in this account")]
    SplitRecipientNotFound {
        /// Position in `splits`, from 0.
        index: usize,
    },
    /// The recipient of a split is not active (interface 7).
    #[error("split {index}: the sub-recipient is not active")]
    SplitRecipientNotActive {
        /// Position in `splits`, from 0.
        index: usize,
    },
    /// A split by percent is less than half a centavo of the total.
    #[error("split {index}: the percent of the total is below one centavo")]
    SplitBelowCentavo {
        /// Position in `splits`, from 0.
        index: usize,
    },
    /// The splits reach or pass the total (interface 2.4 rule 2).
    #[error("the splits reach the charge's total")]
    SplitsReachTotal,
    /// The account refuses splits that leave the seller less than nothing (`split_guard: "net"`).
    #[error("the splits and the fees exceed the charge's total")]
    SplitsExceedNet,
    /// No such recipient.
    #[error("no such sub-recipient")]
    RecipientNotFound,
    /// The recipient was approved or rejected before.
    #[error("the sub-recipient was decided before")]
    RecipientAlreadyDecided,
    /// The recipient was rejected: it registers again (interface 3.4).
    #[error("the sub-recipient was rejected and must be registered again")]
    RecipientIsRejected,
    /// The registration has changed since the caller read it: read it and merge again.
    #[error("the sub-recipient was changed meanwhile")]
    RecipientChangedMeanwhile,
    /// No such stored card, or it was deleted.
    #[error("No such stored card.")]
    CardNotStored,
    /// A PIX subscription has no card.
    #[error("the subscription is paid by PIX")]
    SubscriptionByPix,
    /// A subscription that goes on is charged to the card: it is cancelled first.
    #[error("a subscription that goes on is charged to the card")]
    CardOfSubscription,
    /// No such order, or its rail has not left it unknown for an hour.
    #[error(
        "the order has ended, its rail has it under way, or its rail knows it for less than an hour: see the order \
         itself, and GET /ops/queue"
    )]
    OutcomeNotUnknown,
    /// No such charge, or no longer pending.
    #[error("the charge is not pending")]
    ChargeNotPending,
    /// Operators suspended the merchant: it takes no new charges and pays nothing out.
    #[error("the merchant is suspended")]
    MerchantSuspended,
    /// The merchant is closing, or closed: it takes no new charges.
    #[error("the merchant is closing")]
    MerchantIsClosing,
    /// Something of the merchant is open, so it is not closed.
    #[error("something of the merchant is open")]
    MerchantNotEmpty,
    /// Operators hold the payouts of the merchant and its recipients.
    #[error("payouts of the merchant are held")]
    PayoutsHeld,
    /// Operators froze the recipient: nothing leaves to it.
    #[error("the sub-recipient is frozen")]
    RecipientIsFrozen,
    /// The account is not enabled for cashout (interface 5.3).
    #[error("the account is not enabled for cashout")]
    CashoutNotEnabled,
    /// Nothing, or less, would be left of the cashout after the fee (interface 2.6, 7).
    #[error("a cashout is of {minimum} centavos at least")]
    CashoutBelowMinimum {
        /// The fee and one centavo.
        minimum: Centavos,
    },
    /// The cashout is above the available balance (interface 7).
    #[error("the cashout is above the available balance")]
    CashoutAboveAvailable,
    /// No such cashout, or no longer in processing.
    #[error("the cashout is not in processing")]
    CashoutNotInProcessing,
    /// The recipient has a withdrawal that is not settled yet (interface 3.5).
    #[error("the sub-recipient has a pending withdrawal")]
    WithdrawalPending,
    /// The recipient has nothing to withdraw.
    #[error("nothing is available")]
    NothingAvailable,
    /// The withdrawal was approved or rejected before.
    #[error("the withdrawal was decided before")]
    WithdrawalAlreadyDecided,
    /// A split is not a pending card split, or nothing is left of it (interface 3.3).
    #[error("split {index}: not a pending card split")]
    SplitNotAnticipable {
        /// Position in `split_ids`, from 0.
        index: usize,
    },
    /// Anticipated in so many days, a split would be sent later than without an anticipation.
    #[error("split {index}: falls due before the money would be sent")]
    AnticipationAfterDue {
        /// Position in `split_ids`, from 0.
        index: usize,
    },
    /// The fee of an anticipation differs from the caller's.
    #[error("the fee of the anticipation is {fee} centavos")]
    AnticipationFeeDiffers {
        /// What it is now, centavos.
        fee: Centavos,
    },
    /// What waits for a decision is not as its decider saw it.
    #[error("it changed after the version that was decided on")]
    VersionChanged,
    /// The charge was paid longer ago than it can be refunded.
    #[error("the charge is older than the time in which it can be refunded")]
    ChargeTooOld,
    /// All of the charge was given back (interface 7).
    #[error("the charge is wholly refunded")]
    ChargeRefunded,
    /// The money is held for a dispute, or lost to one.
    #[error("the part of the charge that is left is under a dispute or lost to one")]
    ChargeDisputed,
    /// The refunds would sum to more than was charged (interface 7).
    #[error("the charge's refunds, with those that wait for their decision, would sum to more than was charged")]
    RefundExceedsCharge,
    /// More would be taken back than the refund gives.
    #[error("more would be taken back from the splits than is refunded")]
    TakeBackExceedsRefund,
    /// More would be taken back of a split than it has.
    #[error("split {index}: more would be taken back than the recipient got of this charge")]
    TakeBackExceedsSplit {
        /// Position in `splits`, from 0.
        index: usize,
    },
    /// The refund was approved or rejected before.
    #[error("the refund was decided before")]
    RefundAlreadyDecided,
    /// The disputes would sum to more than was charged.
    #[error("the charge's disputes would sum to more than was charged")]
    DisputeExceedsCharge,
    /// The charge was paid longer ago than it can be disputed.
    #[error("the charge is older than the time in which it can be disputed")]
    DisputeTooLate,
    /// A chargeback of a PIX charge, or the return of a card charge by the PIX mechanism.
    #[error("card charges have chargebacks, PIX charges the special return mechanism (MED)")]
    DisputeKindUnfit,
    /// More would be accepted of a dispute than it holds.
    #[error("more would be accepted than is disputed")]
    AcceptanceExceedsDispute,
    /// The dispute was accepted or released before.
    #[error("the dispute was decided before")]
    DisputeAlreadyDecided,
    /// The dispute is not accepted, or was won before.
    #[error("the dispute is not accepted, or was reversed before")]
    DisputeNotAccepted,
    /// The reversal of the dispute was asked for before, and waits for its decision.
    #[error("the reversal of this dispute waits for its decision")]
    ReversalWaits,
    /// No such entry of the house ledger.
    #[error("no such entry of the house ledger")]
    HouseEntryNotFound,
    /// The entry of the house ledger was approved or rejected before.
    #[error("the entry was decided before")]
    HouseEntryAlreadyDecided,
    /// The operator who asked for an entry of the house ledger may not approve it.
    #[error("another operator than the one who asked for it must decide")]
    SecondOperatorNeeded,
    /// More would be written off than is owed.
    #[error("more would be written off than is owed")]
    WriteOffExceedsDebt,
    /// The debtor has a write-off that waits for its decision.
    #[error("a write-off of this debt waits for its decision")]
    WriteOffWaits,
    /// The withdrawal is not paid, or its money came back before.
    #[error("the withdrawal is not paid, or came back before")]
    WithdrawalNotPaid,
    /// The return of the withdrawal was asked for before, and waits for its decision.
    #[error("the return of this withdrawal waits for its decision")]
    ReturnWaits,
    /// The money would come back before the day on which it left.
    #[error("the withdrawal would come back before the day on which it was paid")]
    ReturnedBeforePaid,
    /// Another entry of the house has this reference, and was not rejected.
    #[error("another entry has this reference")]
    ReferenceRepeated {
        /// The first such entry.
        entry: ObjectId,
    },
    /// The month is closed: nothing is booked into it by hand, and it is not closed again.
    #[error("the month is closed")]
    PeriodIsClosed,
    /// The month is not over, or has been over for less than a minute.
    #[error("the month is not over")]
    PeriodNotOver,
    /// The account group exists already.
    #[error("the merchant exists already")]
    MerchantExists,
    /// The account group does not exist.
    #[error("no such merchant")]
    MerchantNotFound,
    /// The account has used this tag for a plan before (interface 2.12).
    #[error("the tag is another plan's, or was")]
    TagTaken,
    /// No such plan.
    #[error("no such plan")]
    PlanNotFound,
    /// The plan takes no subscriptions any more (interface 3.7).
    #[error("the plan is disabled")]
    PlanDisabled,
    /// The subscription was cancelled or is completed.
    #[error("the subscription has ended")]
    SubscriptionEnded,
    /// No such API key.
    #[error("no such API key")]
    ApiKeyNotFound,
    /// The API key was revoked: nothing of it can be changed any more.
    #[error("the API key is revoked")]
    ApiKeyIsRevoked,
    /// Operators manage the keys of this merchant: it makes, changes and revokes none itself.
    #[error("the merchant may not manage its own API keys")]
    OwnKeysNotAllowed,
    /// The key would manage one that may do more than itself.
    #[error("the other API key may do more than the calling key")]
    ScopesExceedKey,
    /// The merchant has as many live keys as it may make itself, or has made as many as it may
    /// ever.
    #[error("the merchant may make no further API key itself")]
    TooManyApiKeys,
    /// Four replaced webhook secrets of the key still sign.
    #[error("the webhook secret was replaced four times within 24 hours")]
    WebhookSecretsStillSign,
}
