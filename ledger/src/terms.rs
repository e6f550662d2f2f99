//! Terms of a charge: the money that it moves once paid, and the known part of its card.

use minicbor::{Decode, Encode};

use crate::fees::{Commission, PaymentMethod};
use crate::id::RecipientNumber;
use crate::money::Centavos;

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

/// The card scheme, as told by the number's first digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
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
}
