//! Needle: a secret in every form that a program is likely to give it.

use std::fmt;

/// A secret, and the forms in which it would be found.
pub(crate) struct Needle {
    what: &'static str,
    forms: Vec<(&'static str, Vec<u8>)>,
    /// True for what is so short that it must stand alone to be a finding.
    is_short: bool,
}

impl Needle {
    /// A text that is long enough to be found nowhere by chance.
    pub(crate) fn text(what: &'static str, text: &str) -> Self {
        assert!(text.len() >= 12, "{what} is too short to be searched for");
        let bytes = text.as_bytes();
        let mut forms = vec![
            ("as it is", bytes.to_vec()),
            ("reversed", bytes.iter().rev().copied().collect()),
            ("in hexadecimal", hexadecimal(bytes).into_bytes()),
            ("in capital hexadecimal", hexadecimal(bytes).to_uppercase().into_bytes()),
            ("in UTF-16", bytes.iter().flat_map(|byte| [*byte, 0]).collect()),
            ("as a list of bytes", format!("{bytes:?}").trim_matches(['[', ']']).as_bytes().to_vec()),
            ("in the encoding of URLs", bytes.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect()),
            ("in the encoding of URLs", bytes.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect()),
            ("with a plus for a space", text.replace(' ', "+").into_bytes()),
            ("with %20 for a space", text.replace(' ', "%20").into_bytes()),
        ];
        for shift in 0..3 {
            let encoded = base64(&[&b"\0\0\0"[..shift], bytes].concat());
            // What the neighbors of the text decide is left off at both ends.
            let inner = &encoded[[0, 2, 3][shift]..];
            let inner = &inner[..inner.trim_end_matches('=').len() - 1];
            let for_urls = inner.replace('+', "-").replace('/', "_");
            forms.extend([("in Base64", inner.as_bytes().to_vec()), ("in Base64 for URLs", for_urls.into_bytes())]);
        }
        if let Ok(number) = text.parse::<u64>() {
            forms.extend([
                ("as a number", number.to_be_bytes().to_vec()),
                ("as a number", number.to_le_bytes().to_vec()),
            ]);
        }
        Self { what, forms, is_short: false }
    }

    /// A few digits: a finding only where no letter, digit, dot, hyphen or colon stands beside
    /// them.
    pub(crate) fn code(what: &'static str, digits: &str) -> Self {
        Self { what, forms: vec![("as it is", digits.as_bytes().to_vec())], is_short: true }
    }
}

/// Many needles at once.
pub(crate) struct Search<'a> {
    /// Every form, by its first two bytes.
    by_start: Vec<Vec<(&'a Needle, &'static str, &'a [u8])>>,
}

impl<'a> Search<'a> {
    pub(crate) fn of(needles: impl IntoIterator<Item = &'a Needle>) -> Self {
        let mut by_start = vec![Vec::new(); 1 << 16];
        for needle in needles {
            for (form, wanted) in &needle.forms {
                by_start[start_of(wanted)].push((needle, *form, wanted.as_slice()));
            }
        }
        Self { by_start }
    }

    /// Everything that is found in some bytes: the secret, its form, and the surrounding bytes.
    pub(crate) fn of_all(&self, bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for at in 0..bytes.len().saturating_sub(1) {
            for (needle, form, wanted) in &self.by_start[start_of(&bytes[at..])] {
                if bytes[at..].starts_with(wanted) && (!needle.is_short || is_alone(bytes, at, wanted.len())) {
                    let around = &bytes[at.saturating_sub(60)..bytes.len().min(at + wanted.len() + 20)];
                    found.push(format!("{needle} {form}: {}", String::from_utf8_lossy(around)));
                }
            }
        }
        found
    }
}

fn start_of(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

impl fmt::Display for Needle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }
}

fn is_alone(bytes: &[u8], at: usize, length: usize) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || b".-:_".contains(byte);
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    !before.is_some_and(joins) && !bytes.get(at + length).is_some_and(joins)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().chain(&[0, 0]).take(3).fold(0_usize, |bits, byte| (bits << 8) | usize::from(*byte));
        for place in 0..4 {
            let letter = char::from(ALPHABET[(bits >> (18 - 6 * place)) & 63]);
            text.push(if place <= group.len() { letter } else { '=' });
        }
    }
    text
}

#[test]
fn every_form_is_found_and_nothing_else() {
    assert_eq!(base64(b"Man Ma M"), "TWFuIE1hIE0=");
    let needle = Needle::text("a number", "5381974603519286");
    let number = |bytes: &[u8]| Search::of([&needle]).of_all(bytes);
    let hidden = [
        "a 5381974603519286 b".to_owned(),
        "a 6829153064791835 b".to_owned(),
        hexadecimal(b"x5381974603519286x"),
        hexadecimal(b"5381974603519286").to_uppercase(),
        base64(b"5381974603519286"),
        base64(b"x5381974603519286yz"),
        base64(b"xy5381974603519286z"),
        base64(b"{\"number\":\"5381974603519286\",\"cvv\":1}"),
        format!("{:?}", b"number 5381974603519286"),
        b"5381974603519286".iter().map(|byte| format!("%{byte:x}")).collect(),
    ];
    for text in hidden {
        assert!(!number(text.as_bytes()).is_empty(), "{text}");
    }
    assert!(!number(&[&[7], &5_381_974_603_519_286_u64.to_be_bytes()[..], &[9]].concat()).is_empty());
    for text in ["538197460351928", "381974603519286", "53819746 03519286"] {
        assert!(number(text.as_bytes()).is_empty(), "{text}");
    }
    let needle = Needle::code("a code", "0713");
    let code = |bytes: &[u8]| Search::of([&needle]).of_all(bytes);
    for text in ["\"0713\"", "cvv=0713", " 0713,", "0713"] {
        assert!(!code(text.as_bytes()).is_empty(), "{text}");
    }
    for text in ["10713", "0713a", "12:0713", "ab-0713-cd", "5.0713"] {
        assert!(code(text.as_bytes()).is_empty(), "{text}");
    }
}
