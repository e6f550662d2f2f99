//! Statement line: one movement of a merchant's money, as its account statement shows it.

use strum::{IntoStaticStr, VariantNames};

use crate::{Centavos, ObjectId, Timestamp};

/// Which of the merchant's money an operation moves: its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StatementAccount {
    /// Money that falls due later.
    Pending,
    /// Money that can be paid out.
    Available,
    /// Money held for cashouts and disputes.
    Reserved,
}

/// Why the merchant's money moved: its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
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
    /// The platform stood in for missing money, or took it back when some came in. These lines add
    /// up to the deficit.
    Deficit,
    /// Held for a dispute, or taken by it.
    Dispute,
    /// Goodwill of the house.
    Adjustment,
}

/// One movement on an account of the merchant, as the statement lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementLine {
    /// Its kind.
    pub kind: StatementLineKind,
    /// Centavos: above zero when the account rises, below when it falls.
    pub amount: Centavos,
    /// The account that it moves.
    pub account: StatementAccount,
    /// The charge or other object that it comes from; none for what sums up many.
    pub source: Option<ObjectId>,
    /// When the money is available, for money that is or will be: its due time, or the time of the
    /// operation.
    pub available_at: Option<Timestamp>,
}
