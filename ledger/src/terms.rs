//! Terms of a charge: the money that it moves once paid, and the known part of its card. Terms of
//! an entry of the house ledger. Seal of a closed month.

use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};
use strum::{IntoStaticStr, VariantArray};

use crate::fees::Commission;
use crate::{Account, Centavos, Month, ObjectId, PaymentMethod, RecipientNumber};

/// One part of a charge that belongs to a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Split {
    /// The recipient to whom it belongs.
    #[n(0)]
    pub recipient: RecipientNumber,
    /// How much, exactly, with no fee deducted.
    #[n(1)]
    pub amount: Centavos,
}

/// Terms of a charge: amount, splits and fees, fixed when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Terms {
    /// The charge's total, centavos.
    #[n(0)]
    pub amount: Centavos,
    /// How it is paid.
    #[n(1)]
    pub method: PaymentMethod,
    /// 1 to 12.
    #[n(2)]
    pub installments: u8,
    /// The recipients' parts, in the order of the request.
    #[n(3)]
    pub splits: Vec<Split>,
    /// The platform's part.
    #[n(4)]
    pub commission: Commission,
    /// Days of 24 hours until the seller's part of a card charge is available.
    #[n(5)]
    pub settlement_days: u16,
    /// The part of the total that is a plan's initial fee.
    #[n(6)]
    pub initial_fee: Option<Centavos>,
}

impl Terms {
    /// Sum of the recipients' parts.
    pub fn splits_total(&self) -> Centavos {
        self.splits.iter().map(|split| split.amount).sum()
    }

    /// Rest of the total after the recipients' parts (`sellerGross`).
    pub fn seller_gross(&self) -> Centavos {
        self.amount - self.splits_total()
    }

    /// Net amount of the seller (`sellerAmount`); negative when fees exceed the seller's part.
    pub fn seller_net(&self) -> Centavos {
        self.seller_gross() - self.commission.total()
    }
}

/// Face of a card: the part that may be stored, never the number.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CardFace {
    /// The first six digits.
    #[n(0)]
    pub bin: u32,
    /// The last four digits.
    #[n(1)]
    pub last4: u16,
    /// `visa`, `mastercard`, …
    #[n(2)]
    pub brand: CardBrand,
}

/// The card scheme: by the number's first digits until the acquirer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[cbor(index_only)]
pub enum CardBrand {
    /// Any other.
    #[n(0)]
    Other,
    /// The scheme Visa.
    #[n(1)]
    Visa,
    /// The scheme Mastercard.
    #[n(2)]
    Mastercard,
    /// American Express.
    #[n(3)]
    Amex,
    /// The Brazilian scheme Elo.
    #[n(4)]
    Elo,
    /// The Brazilian scheme Hipercard.
    #[n(5)]
    Hipercard,
    /// The scheme Diners Club.
    #[n(6)]
    Diners,
    /// The scheme Discover.
    #[n(7)]
    Discover,
    /// The scheme JCB.
    #[n(8)]
    Jcb,
}

impl CardBrand {
    /// Its name in the API and in exports: `visa`, `amex`, …, `other`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An account that an operator's entry may move. Claims of merchants and recipients are not among
/// them: only their owners' facts move those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, VariantArray)]
#[cbor(index_only)]
pub enum HouseAccount {
    /// The settlement account at the bank.
    #[n(0)]
    BankSettlement,
    /// The PIX account at the bank.
    #[n(1)]
    BankPix,
    /// The platform's own money at the bank.
    #[n(2)]
    BankOwn,
    /// Money that nobody has explained yet.
    #[n(3)]
    Suspense,
    /// Fees of the banks.
    #[n(4)]
    BankFees,
    /// Fees of the acquirer that belong to no charge.
    #[n(5)]
    AcquirerFees,
    /// Losses of the platform.
    #[n(6)]
    Losses,
    /// Capital of the platform's owners.
    #[n(7)]
    Capital,
}

impl HouseAccount {
    /// Every account of the house ledger.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The account in the chart.
    pub fn account(self) -> Account {
        match self {
            Self::BankSettlement => Account::BankSettlement,
            Self::BankPix => Account::BankPix,
            Self::BankOwn => Account::BankOwn,
            Self::Suspense => Account::Suspense,
            Self::BankFees => Account::BankFees,
            Self::AcquirerFees => Account::AcquirerFees,
            Self::Losses => Account::Losses,
            Self::Capital => Account::Capital,
        }
    }

    /// The account of this full name, such as `Assets:Bank:Own`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|account| account.account().kind_name() == name)
    }
}

/// The account at a bank that a transfer leaves, or comes back to, as the institution says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum PayoutBank {
    /// The settlement account.
    #[n(0)]
    Settlement,
    /// The PIX account.
    #[n(1)]
    Pix,
}

impl PayoutBank {
    /// Both accounts.
    pub const ALL: [Self; 2] = [Self::Settlement, Self::Pix];

    /// The account of this full name, such as `Assets:Bank:Pix`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bank| bank.account().kind_name() == name)
    }

    /// The account in the chart.
    pub fn account(self) -> Account {
        match self {
            Self::Settlement => Account::BankSettlement,
            Self::Pix => Account::BankPix,
        }
    }
}

/// What an entry of the house ledger moves.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HouseEntryTerms {
    /// The account that is debited.
    #[n(0)]
    pub debit: HouseAccount,
    /// The account that is credited, another one.
    #[n(1)]
    pub credit: HouseAccount,
    /// How much, centavos, above zero.
    #[n(2)]
    pub amount: Centavos,
    /// Reference of the document that proves it, such as a line of a bank statement.
    #[n(3)]
    pub reference: String,
    /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it is
    /// booked.
    #[n(4)]
    pub effective_day: Option<u32>,
}

impl HouseEntryTerms {
    /// The id under which the Records are found that ask for an entry with a reference.
    pub fn reference_id(reference: &str) -> ObjectId {
        ObjectId::of_text(&format!("house entry {reference}"))
    }
}

/// What an adjustment credits besides its merchant's Available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum AdjustmentTarget {
    /// A recipient of the merchant: goodwill that is available to it at once.
    #[n(0)]
    Recipient(#[n(0)] RecipientNumber),
    /// An accepted dispute that was won later: the merchant gets back what it took.
    #[n(1)]
    Dispute(#[n(0)] ObjectId),
}

/// The entry of two operators that a withdrawal came back.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReturnEntry {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Reference of the document that proves it.
    #[n(1)]
    pub reference: String,
    /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it is
    /// booked.
    #[n(2)]
    pub effective_day: Option<u32>,
}

/// What the journal held at the end of a month, in the partition of the Record that closes it: with
/// more partitions each has a closing Record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct MonthEnd {
    /// The last Record that was booked by then; 0 when there was none.
    #[n(0)]
    pub through: u64,
    /// SHA-256 of its block, and so of all before it.
    #[n(1)]
    pub head: ByteArray<32>,
    /// SHA-256 of the sums of all accounts after it, as in checkpoints.
    #[n(2)]
    pub totals: ByteArray<32>,
}

/// The id under which the Records about erasures of personal data are found. It is no object's: its
/// birth time is 0.
pub const ERASURES: ObjectId = ObjectId(2 << 64);

/// The id under which the erasure of a month waits for another operator. Its birth time is 0.
pub fn erasure_id(through: Month) -> ObjectId {
    ObjectId(ERASURES.0 | u128::from(through.0))
}

/// The id under which the notes of operators on a month are found. Its birth time is 0.
pub fn month_notes_id(month: Month) -> ObjectId {
    ObjectId(MONTH_NOTES | u128::from(month.0))
}

const MONTH_NOTES: u128 = 3 << 64;

/// The month whose notes are found under an id; `None` of other ids.
pub fn noted_month(id: ObjectId) -> Option<Month> {
    let month = id.0.checked_sub(MONTH_NOTES)?;
    u32::try_from(month).ok().map(Month)
}

/// The id under which the Records about the closing of a month are found. It is no object's: its
/// birth time is 0.
pub fn period_id(month: Month) -> ObjectId {
    ObjectId(1 << 64 | u128::from(month.0))
}
