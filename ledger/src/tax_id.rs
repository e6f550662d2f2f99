//! CPF and CNPJ: check digits; the form of an ISPB. A CNPJ may be alphanumeric (since July 2026): a
//! character counts as its ASCII code minus 48.
//!
//! ```
//! use ledger::tax_id::{DocumentKind, kind, normalize};
//!
//! assert_eq!(kind(&normalize("123.456.789-09")), Some(DocumentKind::Cpf));
//! assert_eq!(kind(&normalize("12.abc.345/01de-35")), Some(DocumentKind::Cnpj));
//! assert_eq!(kind("12345678900"), None, "its check digits are wrong");
//! ```

/// Which kind of document a text is, by its check digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A person's: 11 digits.
    Cpf,
    /// A company's: 12 letters or digits and 2 check digits.
    Cnpj,
}

/// Strips the punctuation of a document (`123.456.789-09`, `12.ABC.345/01DE-35`), and raises
/// letters to upper case.
pub fn normalize(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '.' | '-' | '/' | ' ')).map(|c| c.to_ascii_uppercase()).collect()
}

/// The kind of a normalized document; `None` if it is neither.
pub fn kind(document: &str) -> Option<DocumentKind> {
    if is_cpf(document) {
        Some(DocumentKind::Cpf)
    } else if is_cnpj(document) {
        Some(DocumentKind::Cnpj)
    } else {
        None
    }
}

/// True for 11 digits, not all equal, with the right check digits.
pub fn is_cpf(document: &str) -> bool {
    let digits = document.as_bytes();
    digits.len() == 11
        && digits.iter().all(u8::is_ascii_digit)
        && !all_equal(digits)
        && check_digit(&digits[..9], usize::MAX) == digits[9]
        && check_digit(&digits[..10], usize::MAX) == digits[10]
}

/// True for 12 digits or upper-case letters and two check digits, not all equal.
pub fn is_cnpj(document: &str) -> bool {
    let characters = document.as_bytes();
    characters.len() == 14
        && characters[..12].iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
        && characters[12..].iter().all(u8::is_ascii_digit)
        && !all_equal(characters)
        && check_digit(&characters[..12], 8) == characters[12]
        && check_digit(&characters[..13], 8) == characters[13]
}

/// True for the ISPB of an institution: 8 digits or upper-case letters.
pub fn is_ispb(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
}

fn all_equal(characters: &[u8]) -> bool {
    characters.windows(2).all(|pair| pair[0] == pair[1])
}

/// Modulo 11 with weights 2, 3, 4, … from the right, starting over after `cycle` weights.
pub(crate) fn check_digit(characters: &[u8], cycle: usize) -> u8 {
    let weighted = characters.iter().rev().enumerate().map(|(i, c)| u32::from(c - b'0') * (i % cycle + 2) as u32);
    match weighted.sum::<u32>() % 11 {
        0 | 1 => b'0',
        rest => b'0' + (11 - rest) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_by_their_check_digits() {
        for (text, expected) in [
            ("123.456.789-09", Some(DocumentKind::Cpf)),
            ("12345678909", Some(DocumentKind::Cpf)),
            ("12345678900", None),
            ("11111111111", None),
            ("1234567890", None),
            ("11.222.333/0001-81", Some(DocumentKind::Cnpj)),
            ("11222333000182", None),
            ("00000000000000", None),
            ("12.ABC.345/01DE-35", Some(DocumentKind::Cnpj)),
            ("12abc34501de35", Some(DocumentKind::Cnpj)),
            ("12ABC34501DE36", None),
            ("12ABC34501DEA5", None),
            ("", None),
            ("1234567890é", None),
        ] {
            assert_eq!(kind(&normalize(text)), expected, "{text}");
        }
    }
}
