//! The refusals, whole on purpose: the support desk's page. A rejection is the business saying no; nothing has changed.

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
    /// No such charge, or no longer pending.
    #[error("the charge is not pending")]
    ChargeNotPending,
    /// The account group exists already.
    #[error("the merchant exists already")]
    MerchantExists,
    /// The account group does not exist.
    #[error("no such merchant")]
    MerchantNotFound,
    /// No such API key.
    #[error("no such API key")]
    ApiKeyNotFound,
    /// The API key was revoked: nothing of it can be changed any more.
    #[error("the API key is revoked")]
    ApiKeyIsRevoked,
}
