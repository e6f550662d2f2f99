//! Values in messages: amounts, instants, ids and texts. An amount as a text has two decimals and
//! is read exactly, or not at all.

use chrono::DateTime;
use ledger::{Centavos, Timestamp};
use serde_json::Value;

/// The begin of a text, with blanks for control characters.
pub(crate) fn shortened(text: &str, len_max: usize) -> String {
    let plain = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(len_max).collect()
}

/// Characters of a reason that an institution gives.
pub(crate) const REASON_LEN_MAX: usize = 300;

/// The reason that an institution gives, or else its word for what it did.
pub(crate) fn reason_of(said: Option<&str>, word: &str) -> String {
    let said = said.map(|said| shortened(said, REASON_LEN_MAX)).filter(|said| !said.is_empty());
    said.unwrap_or_else(|| word.to_owned())
}

/// Characters of an id that an institution gives.
const REFERENCE_LEN_MAX: usize = 64;

/// Whether a text has 1 to 64 visible ASCII characters.
pub(crate) fn is_reference(text: &str) -> bool {
    (1..=REFERENCE_LEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The largest amount that has ten digits before its decimals, centavos.
const AMOUNT_MAX: i64 = 999_999_999_999;

/// An amount as text: `10.50`; `None` if it is not positive or has too many digits.
pub(crate) fn amount_text(amount: Centavos) -> Option<String> {
    (1..=AMOUNT_MAX).contains(&amount.0).then(|| format!("{}.{:02}", amount.0 / 100, amount.0 % 100))
}

/// The amount in a text of 1 to 10 digits, a point and 2 digits.
pub(crate) fn amount(text: &str) -> Option<Centavos> {
    let (reais, centavos) = text.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_sound = (1..=10).contains(&reais.len()) && centavos.len() == 2 && is_digits(reais) && is_digits(centavos);
    let value = || Some(Centavos(reais.parse::<i64>().ok()? * 100 + centavos.parse::<i64>().ok()?));
    is_sound.then(value).flatten()
}

/// The instant in a text of RFC 3339, to the millisecond.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp(at.timestamp_millis()))
}

/// A whole number, written as one or as a text of digits.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    let of_text = || value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    value.as_u64().or_else(of_text)
}

/// True for the shape of an end-to-end id, and of a return's.
pub(crate) fn is_message_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// True for the shape of a payment's txid.
pub(crate) fn is_txid(text: &str) -> bool {
    (1..=35).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        let cases =
            [("0.01", 1), ("10.50", 1_050), ("0000000010.50", 1_050), ("9999999999.99", AMOUNT_MAX), ("0.00", 0)];
        for (text, centavos) in cases {
            let expected = Some(Centavos(centavos)).filter(|centavos| centavos.0 >= 0);
            assert_eq!(amount(text), expected, "{text}");
        }
        for text in [
            "",
            "1",
            "1.5",
            "1.505",
            "00000000010.50",
            "10,50",
            "1e3",
            ".50",
            "1.",
            "-1.00",
            "+1.00",
            " 1.00",
            "1.00 ",
            "١.00",
        ] {
            assert_eq!(amount(text), None, "{text}");
        }
        assert_eq!(amount_text(Centavos(1)).as_deref(), Some("0.01"));
        assert_eq!(amount_text(Centavos(AMOUNT_MAX)).as_deref(), Some("9999999999.99"));
        assert_eq!([0, -1, AMOUNT_MAX + 1].map(|centavos| amount_text(Centavos(centavos))), [None, None, None]);
    }

    #[test]
    fn a_number_may_be_a_text_of_digits() {
        let cases = [("300", Some(300)), ("\"300\"", Some(300)), ("0", Some(0))];
        let wrong = ["-1", "1.5", "\"\"", "\"3e2\"", "\"+3\"", "null", "[]"].map(|text| (text, None));
        for (text, expected) in cases.into_iter().chain(wrong) {
            assert_eq!(whole(&serde_json::from_str(text).unwrap()), expected, "{text}");
        }
    }
}
