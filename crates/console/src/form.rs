//! Parts of forms: the key that makes a form sent twice one request, parameters that may be empty,
//! and the page to which a form leads.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use derived::seal::stocked_random_bytes;
use maud::{Markup, html};

use crate::words;
use web::{Code, Language, Problem, Result, single};
use wire::reais;

/// A hidden idempotency key. Without randomness there is none, and the form is sent without.
pub(crate) fn hidden_key() -> Markup {
    let key = stocked_random_bytes::<16>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default();
    html! { input type="hidden" name="key" value=(key); }
}

/// An amount as people write it, in centavos: see [`reais::centavos`]. Without decimals, only the
/// language's own sign parts thousands, so that `1.234` is no amount in English.
fn centavos(language: Language, text: &str) -> Option<i64> {
    reais::centavos(text, if language == Language::Portuguese { '.' } else { ',' })
}

/// An amount that a field of a form has, in centavos. Error: 400 `validation_failed`, of the field.
pub(crate) fn amount(language: Language, name: &str, text: &str) -> Result<i64> {
    centavos(language, text).ok_or_else(|| {
        let message = words::AMOUNT_WRONG.text(Language::Portuguese);
        let problem = Problem::new(Code::ValidationFailed).field(name, "not_an_amount", message);
        // Messages of fields are in Portuguese.
        match language {
            Language::Portuguese => problem,
            Language::English => problem.says(words::AMOUNT_WRONG.text(language)),
        }
    })
}

/// The value of a parameter; `None` if it is absent or, as a form sends it, empty.
pub(crate) fn optional<'a>(pairs: &'a [(String, String)], name: &'static str) -> Result<Option<&'a str>> {
    Ok(single(pairs, name)?.filter(|value| !value.is_empty()))
}

/// The overview.
pub(crate) const HOME: &str = "/console";

/// The page that a form names, where it is one of the console; the overview otherwise.
pub(crate) fn inside(next: &str) -> &str {
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_ours = next == HOME || next.starts_with("/console/") || next.starts_with("/console?");
    if is_plain && is_ours { next } else { HOME }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        // What is written, and the centavos that it is in Portuguese and in English.
        for (text, portuguese, english) in [
            ("1.234,56", Some(123_456), Some(123_456)),
            ("1,234.56", Some(123_456), Some(123_456)),
            ("1.234.567,89", Some(123_456_789), Some(123_456_789)),
            ("R$ 12,50", Some(1_250), Some(1_250)),
            ("12.50", Some(1_250), Some(1_250)),
            (" 1234,56 ", Some(123_456), Some(123_456)),
            ("7", Some(700), Some(700)),
            ("0,01", Some(1), Some(1)),
            ("0.00", Some(0), Some(0)),
            ("1.000", Some(100_000), None),
            ("1,000", None, Some(100_000)),
            ("12,5", None, None),
            ("12.5", None, None),
            ("0,005", None, None),
            ("0.005", None, None),
            ("0.123", None, None),
            ("0,123", None, None),
            ("1234.567", None, None),
            ("12.34.56", None, None),
            ("1.23,45", None, None),
            ("1,234,56", None, None),
            ("1.234.56", None, None),
            ("1..234,56", None, None),
            ("1.2345,67", None, None),
            ("1 234,56", None, None),
            ("12,", None, None),
            (",50", None, None),
            ("", None, None),
            ("R$", None, None),
            ("-1", None, None),
            ("+1", None, None),
            ("1e3", None, None),
            ("1,2x", None, None),
            ("1,é", None, None),
            ("١٢", None, None),
            ("99999999999999999999", None, None),
            ("92233720368547758,08", None, None),
        ] {
            assert_eq!(centavos(Language::Portuguese, text), portuguese, "{text} in Portuguese");
            assert_eq!(centavos(Language::English, text), english, "{text} in English");
        }
    }
}
