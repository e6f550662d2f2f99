//! Card data of a request: its checks; the face of the card, which may be stored; the security
//! code, which is never stored.

use std::borrow::Cow;

use actors::rails::CardSecrets;
use ledger::{CardFace, Timestamp};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, OneOf, Schema, Type};

use super::card_brands::brand_of;
use web::{Checker, Code, Raw};

/// A card, as sent; never kept.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct CardData<'a> {
    /// Digits only, with its check digit.
    #[schema(value_type = String, pattern = "^[0-9]{13,19}$")]
    number: Raw<'a>,
    /// Name on the card.
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    holder_name: Raw<'a>,
    /// 1 to 12, as an integer or a string.
    #[schema(schema_with = month)]
    exp_month: Raw<'a>,
    /// Four digits, as an integer or a string.
    #[schema(schema_with = year)]
    exp_year: Raw<'a>,
    /// Three or four digits.
    #[schema(value_type = String, pattern = "^[0-9]{3,4}$")]
    cvv: Raw<'a>,
}

fn month() -> RefOr<Schema> {
    integer_or_string(1, 12, "^0*([1-9]|1[0-2])$")
}

fn year() -> RefOr<Schema> {
    integer_or_string(2000, 9999, "^0*[2-9][0-9]{3}$")
}

/// An integer, or a string of its digits (interface 2.1: both appear).
fn integer_or_string(minimum: i64, maximum: i64, pattern: &str) -> RefOr<Schema> {
    let integer = Object::builder().schema_type(Type::Integer).minimum(Some(minimum)).maximum(Some(maximum));
    let string = Object::builder().schema_type(Type::String).pattern(Some(pattern));
    OneOf::builder().item(integer).item(string).into()
}

/// The part of a body that must not be stored: the security code, of the card or of a stored one.
/// Other text in its place counts as a part of the body; such a body is refused, so nothing of it
/// is stored either.
pub fn security_code<'a>(credit_card: Raw<'a>, card: Raw<'a>, of_stored: Raw<'a>) -> Raw<'a> {
    let code = match credit_card.or(card) {
        Some(card) => serde_json::from_str::<CardData<'a>>(card.get()).ok()?.cvv,
        None => of_stored,
    };
    code.filter(|code| read_code(&mut Checker::new(), Some(code)).is_some())
}

/// The security code of a card: three or four digits.
pub fn read_code<'a>(check: &mut Checker, code: Raw<'a>) -> Option<Cow<'a, str>> {
    check.digits("cvv", code, 3..=4)
}

/// The card, under either of its names. Its errors are reported as invalid card data.
pub fn read_card(check: &mut Checker, credit_card: Raw<'_>, card: Raw<'_>, now: Timestamp) -> Option<CardSecrets> {
    check.reporting(Code::InvalidCardData, |check| read_either_card(check, credit_card, card, now))
}

fn read_either_card(check: &mut Checker, credit_card: Raw<'_>, card: Raw<'_>, now: Timestamp) -> Option<CardSecrets> {
    let (name, raw) = match (credit_card, card) {
        (Some(_), Some(_)) => {
            return check.refuse("card", "ambiguous", "envie credit_card ou card, não os dois");
        }
        (None, Some(card)) => ("card", Some(card)),
        (credit_card, None) => ("credit_card", credit_card),
    };
    check.object(name, raw, |check, card: CardData<'_>| {
        let number = check.digits("number", card.number, 13..=19);
        let is_sound = |number: &Cow<'_, str>| passes_luhn(number);
        let number = check.fitting(number, is_sound, "number", "invalid_number", "número do cartão inválido");
        let holder_name = check.text("holder_name", card.holder_name, 1..=100);
        let month = check.integer_or_string("exp_month", card.exp_month, 1..=12);
        let year = check.integer_or_string("exp_year", card.exp_year, 2000..=9999);
        let cvv = read_code(check, card.cvv);
        let (month, year) = (u8::try_from(month?).ok()?, u16::try_from(year?).ok()?);
        if is_expired(month, year, now) {
            return check.refuse("exp_year", "expired", "cartão vencido");
        }
        Some(CardSecrets {
            number: number?.into_owned(),
            holder_name: holder_name?.into_owned(),
            exp_month: month,
            exp_year: year,
            cvv: cvv?.into_owned(),
        })
    })
}

/// A card is good through the last day of its month, in São Paulo (UTC−3).
fn is_expired(month: u8, year: u16, now: Timestamp) -> bool {
    use chrono::{DateTime, Datelike, TimeDelta};
    let today = DateTime::from_timestamp_millis(now.0).unwrap_or_default() - TimeDelta::hours(3);
    (i32::from(year), u32::from(month)) < (today.year(), today.month())
}

/// Luhn's check digit (ISO/IEC 7812-1).
fn passes_luhn(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .zip(0..)
        .map(|(digit, place)| {
            let value = u32::from(digit - b'0') * (1 + place % 2);
            value / 10 + value % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Face of a card: the part of its number that may be stored.
pub fn face(number: &str) -> CardFace {
    let digits = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok()).unwrap_or_default();
    let bin = digits(number.get(..6));
    CardFace {
        bin,
        last4: u16::try_from(digits(number.get(number.len() - 4..))).unwrap_or_default(),
        brand: brand_of(bin),
    }
}

#[cfg(test)]
mod tests {
    use ledger::event::CardBrand;
    use zeroize::Zeroize as _;

    use super::*;

    #[test]
    fn numbers_are_told_by_luhn_and_schemes_by_their_prefix() {
        for (number, valid, expected) in [
            ("4000000000000002", true, CardBrand::Visa),
            ("4000000000009995", true, CardBrand::Visa),
            ("4000000000000119", true, CardBrand::Visa),
            ("4111111111111111", true, CardBrand::Visa),
            ("4111111111111112", false, CardBrand::Visa),
            ("5555555555554444", true, CardBrand::Mastercard),
            ("378282246310005", true, CardBrand::Amex),
            ("6062826786276634", true, CardBrand::Hipercard),
            ("6362970000457013", true, CardBrand::Elo),
            ("4011780000000006", true, CardBrand::Elo),
            ("4011110000000006", true, CardBrand::Visa),
            ("5066991111111118", true, CardBrand::Elo),
            ("6504870000000000", false, CardBrand::Elo),
            ("2223003122003222", true, CardBrand::Mastercard),
            ("30569309025904", true, CardBrand::Diners),
            ("36700102000000", true, CardBrand::Diners),
            ("3530111333300000", true, CardBrand::Jcb),
            ("6011111111111117", true, CardBrand::Discover),
            ("6500000000000002", true, CardBrand::Discover),
        ] {
            assert_eq!((passes_luhn(number), face(number).brand), (valid, expected), "{number}");
        }
    }

    #[test]
    fn nothing_of_a_card_is_left_after_use() {
        let mut card = CardSecrets {
            number: "4111111111111111".to_owned(),
            holder_name: "JOAO AVILA".to_owned(),
            exp_month: 12,
            exp_year: 2039,
            cvv: "737".to_owned(),
        };
        // As dropping it does.
        card.zeroize();
        assert_eq!((card.number.as_str(), card.holder_name.as_str(), card.cvv.as_str()), ("", "", ""));
        assert_eq!((card.exp_month, card.exp_year), (0, 0));
    }

    #[test]
    fn a_card_is_good_through_its_month() {
        let new_year = Timestamp(1_798_772_400_000); // 2027-01-01T03:00Z: midnight in São Paulo
        for (month, year, at, expected) in
            [(12, 2026, new_year.plus_ms(-1), false), (12, 2026, new_year, true), (1, 2027, new_year, false)]
        {
            assert_eq!(is_expired(month, year, at), expected);
        }
    }
}
