//! Access keys of fiscal documents: their forms, check digits and issuers. Two forms exist: 44
//! positions (NF-e, NFC-e, CT-e and others) and the 50 of the national NFS-e. Since July 2026 the
//! CNPJ in a key may have letters: a character counts as its ASCII code minus 48. A right check
//! digit proves little, since issuers compute it over whatever they wrote: the CNPJ or CPF inside
//! is tested too. Models are not tested.
//!
//! ```
//! use ledger::fiscal_key::FiscalKey;
//!
//! let key = FiscalKey::parse("NFe3526 1111 2223 3300 0181 5500 1000 0012 3415 3187 2043")?;
//! assert_eq!(key.issuer(), "11222333000181");
//! # Ok::<(), ledger::fiscal_key::FiscalKeyError>(())
//! ```

use std::ops::Range;

use thiserror::Error;

use crate::tax_id::{check_digit, is_cnpj, is_cpf};

/// An access key in capital letters, without blanks or prefix, whose issuer is a valid CNPJ or
/// a valid CPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiscalKey(String);

/// Why a text is no access key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FiscalKeyError {
    /// Neither 44 nor 50 positions, or a letter outside of the CNPJ.
    #[error("neither 44 nor 50 positions of digits, with letters in the CNPJ only")]
    WrongForm,
    /// The first two digits are those of no state.
    #[error("the first two digits are those of no state")]
    UnknownState,
    /// The month of issue is not 01 to 12.
    #[error("the month of issue is not 01 to 12")]
    WrongMonth,
    /// The CNPJ or CPF of the issuer is not valid.
    #[error("the CNPJ or CPF of the issuer is not valid")]
    WrongIssuer,
    /// The check digit is wrong.
    #[error("the check digit is wrong")]
    WrongDigit,
}

/// Where the parts of a key stand.
struct Layout {
    positions: usize,
    month: Range<usize>,
    /// CNPJ, or a CPF behind three zeros.
    issuer: Range<usize>,
}

/// cUF 2, AAMM 4, issuer 14, model 2, series 3, number 9, kind of issue 1, code 8, digit 1.
const GOODS: Layout = Layout { positions: 44, month: 4..6, issuer: 6..20 };
/// Municipality 7, environment 1, kind of registration 1, issuer 14, number 13, AAMM 4, code 9,
/// digit 1.
const SERVICES: Layout = Layout { positions: 50, month: 38..40, issuer: 9..23 };

/// Most positions of a prefix, such as `NFe` or `NFCom`.
const PREFIX_MAX: usize = 5;
/// Where the series of a key of 44 stands.
const SERIES: Range<usize> = 22..25;
/// Series of documents that a person issues.
const SERIES_OF_PEOPLE: Range<&str> = "920".."970";
/// Where a key of 50 says what the issuer is registered as: 1 is a CPF, 2 a CNPJ.
const REGISTRATION: usize = 8;
/// Codes of the states (IBGE).
const STATES: [&str; 27] = [
    "11", "12", "13", "14", "15", "16", "17", "21", "22", "23", "24", "25", "26", "27", "28", "29", "31", "32", "33",
    "35", "41", "42", "43", "50", "51", "52", "53",
];

impl FiscalKey {
    /// Reads a key as it is written or printed: blanks, small letters and a prefix are taken away.
    pub fn parse(text: &str) -> Result<Self, FiscalKeyError> {
        let written: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        if !written.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(FiscalKeyError::WrongForm);
        }
        let written = written.to_ascii_uppercase();
        let prefix_max = if written.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { PREFIX_MAX };
        let layout = [GOODS, SERVICES].into_iter().find_map(|layout| {
            let prefix = written.len().checked_sub(layout.positions)?;
            (prefix <= prefix_max).then_some((layout, &written[prefix..]))
        });
        let (layout, key) = layout.ok_or(FiscalKeyError::WrongForm)?;
        layout.check(key).map(|()| Self(key.to_owned()))
    }

    /// The key, 44 or 50 positions.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The issuer's CNPJ or CPF.
    pub fn issuer(&self) -> &str {
        let layout = if self.0.len() == GOODS.positions { GOODS } else { SERVICES };
        let issuer = &self.0[layout.issuer.clone()];
        if layout.is_of_person(&self.0) { &issuer[3..] } else { issuer }
    }

    /// Whether the issuer may be the owner of that document: by the first 8 of a CNPJ, which all
    /// branches of a company share.
    pub fn is_issued_by(&self, document: &str) -> bool {
        let root = |document: &str| document.get(..if document.len() == 14 { 8 } else { 11 }).map(str::to_owned);
        root(document).is_some_and(|of| root(self.issuer()) == Some(of))
    }
}

impl Layout {
    fn check(&self, key: &str) -> Result<(), FiscalKeyError> {
        let letters = self.issuer.start..self.issuer.end - 2;
        let is_in_form = |(place, byte): (usize, u8)| byte.is_ascii_digit() || letters.contains(&place);
        let is_registered = self.positions == GOODS.positions || matches!(key.as_bytes()[REGISTRATION], b'1' | b'2');
        if !key.bytes().enumerate().all(is_in_form) || !is_registered {
            return Err(FiscalKeyError::WrongForm);
        }
        if !STATES.contains(&&key[..2]) {
            return Err(FiscalKeyError::UnknownState);
        }
        if !("01"..="12").contains(&&key[self.month.clone()]) {
            return Err(FiscalKeyError::WrongMonth);
        }
        let issuer = &key[self.issuer.clone()];
        let is_person = |issuer: &str| issuer.strip_prefix("000").is_some_and(is_cpf);
        let is_valid = if self.is_of_person(key) { is_person(issuer) } else { is_cnpj(issuer) };
        if !is_valid {
            return Err(FiscalKeyError::WrongIssuer);
        }
        // No text says how letters of an NFS-e count.
        let has_digit = self.positions == GOODS.positions || key.bytes().all(|byte| byte.is_ascii_digit());
        let (counted, digit) = key.split_at(self.positions - 1);
        if has_digit && check_digit(counted.as_bytes(), 8) != digit.as_bytes()[0] {
            return Err(FiscalKeyError::WrongDigit);
        }
        Ok(())
    }

    /// Whether the issuer is a CPF. In keys of 44 the series says it; a CPF in another series is
    /// one where the 14 positions are no CNPJ.
    fn is_of_person(&self, key: &str) -> bool {
        let issuer = &key[self.issuer.clone()];
        if self.positions == SERVICES.positions {
            return key.as_bytes()[REGISTRATION] == b'1';
        }
        issuer.starts_with("000") && (SERIES_OF_PEOPLE.contains(&&key[SERIES]) || !is_cnpj(issuer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of 44 with its right check digit.
    fn goods(first_43: &str) -> String {
        format!("{first_43}{}", char::from(check_digit(first_43.as_bytes(), 8)))
    }

    #[test]
    fn keys_are_read_in_one_form() {
        for (text, key, issuer) in [
            ("35261111222333000181550010000012341531872043", "", "11222333000181"),
            ("35261112ABC34501DE35550010000012341531872044", "", "12ABC34501DE35"),
            ("35503082211222333000181000000000123426115318720413", "", "11222333000181"),
            (
                "NFe3526 1112 abc3 4501 de35 5500 1000 0012 3415 3187 2044",
                "35261112ABC34501DE35550010000012341531872044",
                "12ABC34501DE35",
            ),
            (
                "NFS35503082211222333000181000000000123426115318720413",
                "35503082211222333000181000000000123426115318720413",
                "11222333000181",
            ),
            // The digit of an NFS-e with letters is not known.
            ("35503082212ABC34501DE35000000000123426115318720410", "", "12ABC34501DE35"),
            (&goods("3526110001234567890955920000001234153187204"), "", "12345678909"),
            (&goods("3526110001234567890955001000001234153187204"), "", "12345678909"),
            // A CNPJ that begins with zeros.
            (&goods("3526110000000000019155001000001234153187204"), "", "00000000000191"),
        ] {
            let read = FiscalKey::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
            assert_eq!((read.as_str(), read.issuer()), (if key.is_empty() { text } else { key }, issuer));
        }
    }

    #[test]
    fn wrong_keys_are_refused() {
        for (text, wrong) in [
            ("35261112ABC34501DE35550010000012341531872046", FiscalKeyError::WrongDigit),
            ("35261100000123450135550010000012341531872045", FiscalKeyError::WrongIssuer),
            ("35503082211222333000181000000000123426115318720414", FiscalKeyError::WrongDigit),
            ("35503082212ABC34501DE36000000000123426115318720410", FiscalKeyError::WrongIssuer),
            ("35503082111222333000181000000000123426115318720413", FiscalKeyError::WrongIssuer),
            ("35503082311222333000181000000000123426115318720413", FiscalKeyError::WrongForm),
            ("36261111222333000181550010000012341531872043", FiscalKeyError::UnknownState),
            ("35261311222333000181550010000012341531872043", FiscalKeyError::WrongMonth),
            ("35260011222333000181550010000012341531872043", FiscalKeyError::WrongMonth),
            ("3526111122233300018155001000001234153187204A", FiscalKeyError::WrongForm),
            ("35261111222333000181A50010000012341531872043", FiscalKeyError::WrongForm),
            ("035261111222333000181550010000012341531872043", FiscalKeyError::WrongForm),
            ("ABCDEF35261111222333000181550010000012341531872043", FiscalKeyError::WrongForm),
            ("3526111122233300018155001000001234153187204３", FiscalKeyError::WrongForm),
            ("352611112223330001815500100000123415318720-3", FiscalKeyError::WrongForm),
            ("", FiscalKeyError::WrongForm),
        ] {
            assert_eq!(FiscalKey::parse(text), Err(wrong), "{text}");
        }
    }

    #[test]
    fn branches_of_a_company_share_the_first_8() {
        let key = FiscalKey::parse("35261111222333000181550010000012341531872043").unwrap();
        for (document, expected) in
            [("11222333000181", true), ("11222333000262", true), ("12222333000181", false), ("", false)]
        {
            assert_eq!(key.is_issued_by(document), expected, "{document}");
        }
        let of_person = FiscalKey::parse(&goods("3526110001234567890955920000001234153187204")).unwrap();
        assert!(of_person.is_issued_by("12345678909") && !of_person.is_issued_by("12345678000195"));
    }
}
