//! Money and rates. Integer centavos, checked arithmetic, decimal rates, half-up rounding: no float
//! touches money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use minicbor::{Decode, Encode};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

/// The largest amount that a request may name: 10^12 centavos (ten billion reais).
pub const AMOUNT_MAX: Centavos = Centavos(1_000_000_000_000);

/// An amount of money in centavos, the hundredth part of a real (BRL).
///
/// Every amount that enters is at most [`AMOUNT_MAX`], so the sum of nine million of them still
/// fits. The operators panic when a sum does not: such an overflow is a defect of the program,
/// never a property of the input.
///
/// ```
/// use ledger::money::Centavos;
///
/// let total: Centavos = [Centavos(2_000), Centavos(1_500)].into_iter().sum();
/// assert_eq!(Centavos(10_000) - total, Centavos(6_500));
/// // Cumulative rounding: what is left over goes with the last part.
/// assert_eq!(Centavos(100).share(Centavos(1), Centavos(3)), Centavos(33));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Centavos(#[n(0)] pub i64);

impl Centavos {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// True for amounts above zero.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// True for zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This amount in the proportion of `part` to `whole`, which is above zero, rounded half up to
    /// the centavo.
    pub fn share(self, part: Self, whole: Self) -> Self {
        let (amount, part, whole) = (i128::from(self.0), i128::from(part.0), i128::from(whole.0));
        let rounded = (2 * amount * part + whole).div_euclid(2 * whole);
        Self(i64::try_from(rounded).expect("a part of an amount fits where the amount fits"))
    }

    /// The amount, or zero when it is negative.
    pub fn or_zero(self) -> Self {
        self.max(Self::ZERO)
    }
}

/// Whether an amount is left out of an encoding.
pub(crate) fn is_nothing(amount: &Centavos) -> bool {
    amount.is_zero()
}

impl fmt::Debug for Centavos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Centavos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Add for Centavos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("amounts are bounded at the door, so sums fit"))
    }
}

impl Sub for Centavos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("amounts are bounded at the door, so differences fit"))
    }
}

impl Neg for Centavos {
    type Output = Self;
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl AddAssign for Centavos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Centavos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Centavos {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// A rate in percent, with at most four decimals.
///
/// ```
/// use ledger::money::{Centavos, Rate};
///
/// let mdr = Rate::basis_points(299);
/// assert_eq!(mdr.as_percent().to_string(), "2.99");
/// assert_eq!(mdr.of(Centavos(10_000)), Centavos(299));
/// // Half up: 2.99 % of 50 is 1.495.
/// assert_eq!(mdr.of(Centavos(50)), Centavos(1));
/// assert_eq!(Rate::basis_points(150).of(Centavos(100)), Centavos(2));
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct Rate(#[n(0)] u32);

/// A percentage that is no [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rate is a percentage from 0 to 100 with at most four decimals")]
pub struct NotARate;

impl Rate {
    const SCALE: u32 = 4;

    /// The rate of `hundredths` of a percent: `Rate::basis_points(299)` is 2.99 %.
    pub const fn basis_points(hundredths: u32) -> Self {
        Self(hundredths * 100)
    }

    /// A rate from a decimal percentage (units: percent).
    pub fn percent(percent: Decimal) -> Result<Self, NotARate> {
        let normal = percent.normalize();
        if normal.scale() > Self::SCALE || normal < Decimal::ZERO || normal > Decimal::ONE_HUNDRED {
            return Err(NotARate);
        }
        (normal * Decimal::from(10_000)).to_u32().map(Self).ok_or(NotARate)
    }

    /// The rate as a decimal percentage, without trailing zeros.
    pub fn as_percent(self) -> Decimal {
        Decimal::new(i64::from(self.0), Self::SCALE).normalize()
    }

    /// The rate in millionths of the whole.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// This share of `amount`, rounded half up to the centavo (interface 2.13; each fee is rounded
    /// by itself).
    pub fn of(self, amount: Centavos) -> Centavos {
        let share = Decimal::from(amount.0) * Decimal::new(i64::from(self.0), Self::SCALE + 2);
        let rounded = share.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero);
        Centavos(rounded.to_i64().expect("at most 100 % of an amount fits where the amount fits"))
    }
}

/// `part` in percent of `whole`, rounded half up to two decimals; 0 when `whole` is 0
/// (`breakdown.feePercent`, interface 2.4).
pub fn percent_of(part: Centavos, whole: Centavos) -> Decimal {
    if whole.is_zero() {
        return Decimal::ZERO;
    }
    (Decimal::from(part.0) * Decimal::ONE_HUNDRED / Decimal::from(whole.0))
        .round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero)
        .normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_takes_its_share_rounded_half_up() {
        for (basis_points, amount, expected) in [
            (299, 10_000, 299),
            (99, 6_500, 64),
            (100, 150, 2),
            (100, 149, 1),
            (50, 100, 1),
            (49, 100, 0),
            (238, 2_000, 48),
            (10_000, 7, 7),
        ] {
            let share = Rate::basis_points(basis_points).of(Centavos(amount));
            assert_eq!(share, Centavos(expected), "{basis_points} hundredths of a percent of {amount}");
        }
    }

    #[test]
    fn a_rate_has_at_most_four_decimals_and_lies_between_0_and_100() {
        for (text, expected) in [
            ("2.99", true),
            ("0", true),
            ("100", true),
            ("100.0001", false),
            ("-1", false),
            ("1.00001", false),
            ("1.0000000", true),
        ] {
            let percent: Decimal = text.parse().unwrap();
            assert_eq!(Rate::percent(percent).is_ok(), expected, "{text}");
        }
        assert_eq!(Rate::percent("2.38".parse().unwrap()).unwrap().as_percent().to_string(), "2.38");
    }

    /// Sums of decimals drop fractions without a word beyond 28 digits: none of ours comes near.
    #[test]
    fn the_largest_amount_keeps_every_centavo_of_every_rate() {
        for basis in [1, 299, 9_999, 10_000] {
            let rate = Rate::basis_points(basis);
            for amount in [AMOUNT_MAX.0, AMOUNT_MAX.0 - 1, 333_333_333_333] {
                let exact = (i128::from(amount) * i128::from(basis) + 5_000) / 10_000;
                assert_eq!(i128::from(rate.of(Centavos(amount)).0), exact, "{amount} {basis}");
            }
        }
    }

    #[test]
    fn a_share_is_rounded_half_up() {
        for (amount, part, whole, expected) in [
            (597, 4_000, 10_000, 239),
            (299, 1, 2, 150),
            (299, 10_000, 10_000, 299),
            (1, 1, 3, 0),
            (1, 2, 3, 1),
            (0, 1, 1, 0),
            (1_000_000_000_000, 999_999_999_999, 1_000_000_000_000, 999_999_999_999),
        ] {
            assert_eq!(Centavos(amount).share(Centavos(part), Centavos(whole)), Centavos(expected), "{amount} {part}");
        }
    }

    #[test]
    fn a_fee_percent_has_two_decimals() {
        for (part, whole, expected) in
            [(562, 6_500, "8.65"), (1, 3, "33.33"), (2, 3, "66.67"), (5, 0, "0"), (1, 8, "12.5")]
        {
            assert_eq!(percent_of(Centavos(part), Centavos(whole)).to_string(), expected);
        }
    }
}
