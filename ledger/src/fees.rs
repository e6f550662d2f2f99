//! Fees of a charge and the rates of a merchant (interface 2.13). A charge's fees are fixed when it
//! is created.

use std::num::NonZeroU32;

use minicbor::{Decode, Encode};
use strum::IntoStaticStr;

use crate::money::{Centavos, Rate};

/// The rates of a merchant. Defaults are those of the price list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Fees {
    /// MDR for one installment, and for debit.
    #[n(0)]
    pub mdr_1x: Rate,
    /// MDR for 2 to 6 installments.
    #[n(1)]
    pub mdr_2_6x: Rate,
    /// MDR for 7 to 12 installments.
    #[n(2)]
    pub mdr_7_12x: Rate,
    /// Platform margin on the seller's gross.
    #[n(3)]
    pub margin: Rate,
    /// PIX commission on the seller's gross.
    #[n(4)]
    pub pix: Rate,
    /// Antifraud fee of a card charge, centavos.
    #[n(5)]
    pub antifraud: Centavos,
    /// Fee of a cashout, centavos.
    #[n(6)]
    pub cashout: Centavos,
    /// Anticipation, paid out in 2 days.
    #[n(7)]
    pub anticipation_d2: Rate,
    /// Anticipation, paid out in 7 days.
    #[n(8)]
    pub anticipation_d7: Rate,
    /// Anticipation, paid out in 15 days.
    #[n(9)]
    pub anticipation_d15: Rate,
}

impl Default for Fees {
    fn default() -> Self {
        Self {
            mdr_1x: Rate::basis_points(299),
            mdr_2_6x: Rate::basis_points(349),
            mdr_7_12x: Rate::basis_points(399),
            margin: Rate::basis_points(100),
            pix: Rate::basis_points(99),
            antifraud: Centavos(198),
            cashout: Centavos(100),
            anticipation_d2: Rate::basis_points(238),
            anticipation_d7: Rate::basis_points(200),
            anticipation_d15: Rate::basis_points(150),
        }
    }
}

impl Fees {
    /// The MDR of a card charge with `installments` (1 to 12).
    pub fn mdr(&self, installments: u8) -> Rate {
        match installments {
            0..=1 => self.mdr_1x,
            2..=6 => self.mdr_2_6x,
            _ => self.mdr_7_12x,
        }
    }
}

/// The choices of a merchant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Options {
    /// Refuse splits that leave the seller less than nothing after fees (`split_guard: "net"`).
    #[n(0)]
    pub split_guard_net: bool,
    /// Take the MDR of the seller's gross, not of the total (`mdr_base: "seller_gross"`).
    #[n(1)]
    pub mdr_on_seller_gross: bool,
    /// Give commission back in proportion when a charge is refunded.
    #[n(2)]
    pub refund_commission: bool,
    /// Days of 24 hours until the seller's own card money is available. Recipients always wait 30.
    #[n(3)]
    pub card_settlement_days: u16,
    /// Operators manage its API keys; it may not (`own_keys: false`).
    #[cbor(n(4), skip_if = "is_false")]
    pub own_keys_forbidden: bool,
}

/// Days until a card split is available (interface 2.13 rule 4).
pub const SPLIT_SETTLEMENT_DAYS: u16 = 30;

impl Default for Options {
    fn default() -> Self {
        Self {
            split_guard_net: false,
            mdr_on_seller_gross: false,
            refund_commission: false,
            card_settlement_days: SPLIT_SETTLEMENT_DAYS,
            own_keys_forbidden: false,
        }
    }
}

/// An operator's settings for a merchant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Settings {
    /// May charge with splits and register recipients.
    #[n(0)]
    pub split_enabled: bool,
    /// May cash out.
    #[n(1)]
    pub cashout_enabled: bool,
    /// Rates and fixed fees of its charges and payouts.
    #[n(2)]
    pub fees: Fees,
    /// How fees and refunds are treated.
    #[n(3)]
    pub options: Options,
    /// Card charges that each of its API keys may ask for in a minute; none: as many as the server
    /// allows to all.
    #[n(4)]
    pub card_requests_per_minute: Option<NonZeroU32>,
    /// Other requests of each of its API keys in a minute; none: as many as the server allows to
    /// all.
    #[n(5)]
    pub other_requests_per_minute: Option<NonZeroU32>,
    /// Suspended: it takes no new charges and pays nothing out. What is open goes on.
    #[cbor(n(6), skip_if = "is_false")]
    pub suspended: bool,
    /// Nothing is paid out to it or to its recipients.
    #[cbor(n(7), skip_if = "is_false")]
    pub payouts_held: bool,
    /// Closing: it takes no new charges. What is open goes on, and money leaves it.
    #[cbor(n(8), skip_if = "is_false")]
    pub closing: bool,
    /// Closed: nothing of it was open.
    #[cbor(n(9), skip_if = "is_false")]
    pub closed: bool,
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

impl Settings {
    /// The least that may be cashed out: something is left after the fee (interface 2.6).
    pub fn cashout_minimum(&self) -> Centavos {
        self.fees.cashout + Centavos(1)
    }
}

/// How the payer pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[cbor(index_only)]
pub enum PaymentMethod {
    /// Instant payment by PIX.
    #[n(0)]
    Pix,
    /// Credit card.
    #[n(1)]
    CreditCard,
    /// Debit card.
    #[n(2)]
    DebitCard,
}

impl PaymentMethod {
    /// Its name in the API and in exports: `pix`, `credit_card`, `debit_card`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True for credit and debit.
    pub fn is_card(self) -> bool {
        match self {
            Self::Pix => false,
            Self::CreditCard | Self::DebitCard => true,
        }
    }
}

/// The platform's commission on a charge, each part rounded by itself, centavos.
///
/// ```
/// use ledger::fees::{Commission, PaymentMethod, Settings};
/// use ledger::money::Centavos;
///
/// // R$ 100,00, of which R$ 35,00 are split: the margin is of the seller's R$ 65,00 alone.
/// let (amount, seller_gross) = (Centavos(10_000), Centavos(6_500));
/// let settings = Settings::default();
/// let method = PaymentMethod::CreditCard;
/// let commission = Commission::quote(&settings, method, 1, amount, seller_gross);
/// assert_eq!((commission.mdr, commission.antifraud), (Centavos(299), Centavos(198)));
/// assert_eq!((commission.margin, commission.total()), (Centavos(65), Centavos(562)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Commission {
    /// The acquirer's fee, centavos; 0 for a PIX.
    #[n(0)]
    pub mdr: Centavos,
    /// The fixed antifraud fee of a card charge, centavos.
    #[n(1)]
    pub antifraud: Centavos,
    /// The platform's margin on a card charge, centavos.
    #[n(2)]
    pub margin: Centavos,
    /// The flat commission on a PIX charge, centavos.
    #[n(3)]
    pub pix: Centavos,
}

impl Commission {
    /// The commission of a charge of `amount`; `seller_gross` is the rest after splits (interface
    /// 2.13 rules 1 and 2).
    pub fn quote(
        settings: &Settings,
        method: PaymentMethod,
        installments: u8,
        amount: Centavos,
        seller_gross: Centavos,
    ) -> Self {
        let fees = &settings.fees;
        let mdr = match method {
            PaymentMethod::Pix => return Self { pix: fees.pix.of(seller_gross), ..Self::default() },
            PaymentMethod::CreditCard => fees.mdr(installments),
            PaymentMethod::DebitCard => fees.mdr_1x,
        };
        let mdr_base = if settings.options.mdr_on_seller_gross { seller_gross } else { amount };
        Self {
            mdr: mdr.of(mdr_base),
            antifraud: fees.antifraud,
            margin: fees.margin.of(seller_gross),
            pix: Centavos::ZERO,
        }
    }

    /// Its parts that are not zero, by their names on the wire.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, Centavos)> {
        let Self { mdr, antifraud, margin, pix } = *self;
        let parts = [("mdr", mdr), ("antifraud", antifraud), ("margin", margin), ("pix", pix)];
        parts.into_iter().filter(|(_, amount)| !amount.is_zero())
    }

    /// All parts together.
    pub fn total(&self) -> Centavos {
        self.mdr + self.antifraud + self.margin + self.pix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_own_rate_limits_are_written_as_before_there_were_any() {
        let written = minicbor::to_vec(Settings::default()).unwrap();
        assert_eq!(written[0], 0x84, "an array of four");
        assert_eq!(minicbor::decode::<Settings>(&written).unwrap(), Settings::default());
        let own = Settings { other_requests_per_minute: NonZeroU32::new(900), ..Settings::default() };
        assert_eq!(minicbor::decode::<Settings>(&minicbor::to_vec(own).unwrap()).unwrap(), own);
    }
}
