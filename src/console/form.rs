//! Parts of forms: the key that makes a form sent twice one request, and parameters that may be
//! empty.

use actors::seal::stocked_random_bytes;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};

use crate::http::problem::Problem;
use crate::http::reply::single;

/// A hidden idempotency key. Without randomness there is none, and the form is sent without.
pub fn hidden_key() -> Markup {
    let key = stocked_random_bytes::<16>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default();
    html! { input type="hidden" name="key" value=(key); }
}

/// An amount as people write it, `1.234,56`, `1,234.56`, `12.5` or `7`, in centavos; none when it
/// is none. The last point or comma begins the centavos when one or two digits follow it.
pub fn centavos(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches("R$").trim();
    let (whole, part) = match text.rfind([',', '.']) {
        Some(at) if text.len() - at <= 3 => (&text[..at], &text[at + 1..]),
        _ => (text, ""),
    };
    let whole: String = whole.chars().filter(|letter| !matches!(letter, ',' | '.' | ' ')).collect();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(&whole) || !is_number(part) {
        return None;
    }
    let part: i64 = format!("{part:0<2}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(part)
}

/// The value of a parameter; none when it is absent or, as a form sends it, empty.
pub fn optional<'a>(pairs: &'a [(String, String)], name: &'static str) -> Result<Option<&'a str>, Problem> {
    Ok(single(pairs, name)?.filter(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1.234,56", Some(123_456)),
            ("1,234.56", Some(123_456)),
            ("R$ 12,5", Some(1_250)),
            ("7", Some(700)),
            ("1.000", Some(100_000)),
            ("0,01", Some(1)),
            ("", None),
            ("-1", None),
            ("1,2x", None),
            (",50", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(centavos(text), expected, "{text}");
        }
    }
}
