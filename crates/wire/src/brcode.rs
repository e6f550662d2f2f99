//! Dynamic BR Code: the text that a payer copies into a bank's application to pay a PIX charge.
//!
//! The format is EMV QRCPS-MPM as profiled by the Central Bank of Brazil: fields of a two-digit id,
//! a two-digit length and a value, closed by a CRC-16/CCITT-FALSE over everything before it. It
//! uses printable ASCII only: names lose their accents and all other characters.

use crate::case_folding::without_accents;

/// Content of a dynamic BR Code.
#[derive(Debug, Clone, Copy)]
pub struct BrCode<'a> {
    /// URL at which the payer's institution fetches the charge, without the scheme: at most 77
    /// characters.
    pub location: &'a str,
    /// The amount in centavos, 1 to 999,999,999,999.
    pub amount_centavos: i64,
    /// The receiver's name; cut to 25 characters.
    pub merchant_name: &'a str,
    /// The receiver's city; cut to 15 characters.
    pub merchant_city: &'a str,
}

/// Why a BR Code can't be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrCodeError {
    /// The location is empty, longer than 77 characters, has a scheme, or is not visible ASCII.
    #[error("the location must be 1 to 77 visible ASCII characters without a scheme")]
    Location,
    /// The amount does not fit 13 characters with two decimals, or is not positive.
    #[error("the amount must be 1 to 999999999999 centavos")]
    Amount,
    /// No character of the receiver's name can be written in ASCII.
    #[error("the merchant's name has no character that a BR Code can carry")]
    MerchantName,
    /// No character of the receiver's city can be written in ASCII.
    #[error("the merchant's city has no character that a BR Code can carry")]
    MerchantCity,
}

const ARRANGEMENT: &str = "br.gov.bcb.pix";
const LOCATION_LEN_MAX: usize = 77;
const AMOUNT_CENTAVOS_MAX: i64 = 999_999_999_999;
const NAME_LEN_MAX: usize = 25;
const CITY_LEN_MAX: usize = 15;

impl BrCode<'_> {
    /// The text of the code, to be copied or drawn as a QR code.
    pub fn payload(&self) -> Result<String, BrCodeError> {
        let location_fits = (1..=LOCATION_LEN_MAX).contains(&self.location.len());
        if !location_fits || !self.location.bytes().all(|byte| byte.is_ascii_graphic()) || self.location.contains("://")
        {
            return Err(BrCodeError::Location);
        }
        if !(1..=AMOUNT_CENTAVOS_MAX).contains(&self.amount_centavos) {
            return Err(BrCodeError::Amount);
        }
        let name = ascii(self.merchant_name, NAME_LEN_MAX).ok_or(BrCodeError::MerchantName)?;
        let city = ascii(self.merchant_city, CITY_LEN_MAX).ok_or(BrCodeError::MerchantCity)?;
        let amount = format!("{}.{:02}", self.amount_centavos / 100, self.amount_centavos % 100);

        let mut payload = String::with_capacity(256);
        field(&mut payload, "00", "01");
        field(&mut payload, "01", "12");
        let account_len = 4 + ARRANGEMENT.len() + 4 + self.location.len();
        header(&mut payload, "26", account_len);
        field(&mut payload, "00", ARRANGEMENT);
        field(&mut payload, "25", self.location);
        field(&mut payload, "52", "0000");
        field(&mut payload, "53", "986");
        field(&mut payload, "54", &amount);
        field(&mut payload, "58", "BR");
        field(&mut payload, "59", &name);
        field(&mut payload, "60", &city);
        field(&mut payload, "62", "0503***");
        header(&mut payload, "63", 4);
        let checksum = checksum(payload.as_bytes());
        payload.push_str(&format!("{checksum:04X}"));
        Ok(payload)
    }
}

/// The longest BR Code, characters.
const CODE_LEN_MAX: usize = 512;

/// Whether a text that another institution gave is a BR Code: at most 512 characters, none of them
/// a control character, with the right checksum.
pub fn is_sound(text: &str) -> bool {
    let ends = text.len().checked_sub(4).and_then(|end| text.split_at_checked(end));
    ends.is_some_and(|(content, digits)| {
        text.chars().count() <= CODE_LEN_MAX
            && !text.contains(char::is_control)
            && content.starts_with("000201")
            && content.ends_with("6304")
            && digits.eq_ignore_ascii_case(&format!("{:04X}", checksum(content.as_bytes())))
    })
}

/// The amount in a code (field 54), centavos; `None` if it has none that can be read. In a dynamic
/// code the field is optional.
pub fn amount(text: &str) -> Option<i64> {
    let mut rest = text;
    loop {
        let (id, behind) = rest.split_at_checked(2)?;
        let (length, behind) = behind.split_at_checked(2)?;
        let (value, behind) = behind.split_at_checked(length.parse().ok()?)?;
        if id == "54" {
            let (reais, part) = value.split_once('.').unwrap_or((value, ""));
            return (part.len() <= 2).then(|| format!("{reais}{part:0<2}").parse().ok()).flatten();
        }
        rest = behind;
    }
}

fn field(payload: &mut String, id: &str, value: &str) {
    header(payload, id, value.len());
    payload.push_str(value);
}

fn header(payload: &mut String, id: &str, value_len: usize) {
    debug_assert!(value_len <= 99);
    payload.push_str(id);
    payload.push(char::from(b'0' + (value_len / 10) as u8));
    payload.push(char::from(b'0' + (value_len % 10) as u8));
}

/// The printable ASCII of a text, at most `len_max` characters, each run of white space as one
/// space; `None` if no character is left.
fn ascii(text: &str, len_max: usize) -> Option<String> {
    let mut folded = String::with_capacity(len_max);
    for word in text.split_whitespace() {
        let mut letters = without_accents(word).filter(char::is_ascii_graphic).peekable();
        if letters.peek().is_some() && !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(letters);
    }
    folded.truncate(len_max);
    folded.truncate(folded.trim_end().len());
    (!folded.is_empty()).then_some(folded)
}

/// CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF, nothing reflected.
fn checksum(bytes: &[u8]) -> u16 {
    let mut register: u16 = 0xFFFF;
    for byte in bytes {
        register ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = register & 0x8000 != 0;
            register <<= 1;
            if carry {
                register ^= 0x1021;
            }
        }
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dynamic example of the Central Bank's manual of standards for PIX, which carries no
    /// amount.
    const PUBLISHED: &str = "00020101021226700014br.gov.bcb.pix2548pix.example.com/8b3da2f39a4140d1a91abd93113bd441\
                             5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***630464E4";

    fn example() -> BrCode<'static> {
        BrCode {
            location: "pix.example.com/8b3da2f39a4140d1a91abd93113bd441",
            amount_centavos: 12_345,
            merchant_name: "Fulano de Tal",
            merchant_city: "BRASILIA",
        }
    }

    #[test]
    fn the_published_example_is_met_but_for_the_amount() {
        let (body, crc) = PUBLISHED.split_at(PUBLISHED.len() - 4);
        assert_eq!(format!("{:04X}", checksum(body.as_bytes())), crc);
        let payload = example().payload().unwrap();
        let without_crc = &payload[..payload.len() - 4];
        assert_eq!(without_crc.replacen("5406123.45", "", 1), body);
        assert_eq!(format!("{:04X}", checksum(without_crc.as_bytes())), &payload[payload.len() - 4..]);
    }

    #[test]
    fn the_checksum_is_ccitt_false() {
        assert_eq!(checksum(b"123456789"), 0x29B1);
    }

    #[test]
    fn codes_of_other_institutions_are_checked() {
        let sound = example().payload().unwrap();
        let coded = |content: &str| format!("{content}{:04X}", checksum(content.as_bytes()));
        let (fits, too_long) =
            (coded(&format!("000201{}6304", "a".repeat(498))), coded(&format!("000201{}6304", "a".repeat(499))));
        for text in [PUBLISHED, &PUBLISHED.replace("64E4", "64e4"), &sound, &fits] {
            assert!(is_sound(text), "{text}");
        }
        let cut = &sound[..sound.len() - 1];
        let accents = coded("000201Açúcar6304");
        assert!(is_sound(&accents));
        for text in [
            "",
            "é",
            "6304",
            cut,
            &too_long,
            &format!(" {sound}"),
            &format!("{sound}\n"),
            &PUBLISHED.replace("64E4", "+4E4"),
        ] {
            assert!(!is_sound(text), "{text}");
        }
        assert!(!is_sound(&sound.replacen("123.45", "923.45", 1)));
    }

    #[test]
    fn the_amount_of_a_code_is_read() {
        assert_eq!(amount(&example().payload().unwrap()), Some(12_345));
        for (value, read) in [
            ("0310", None),
            ("021", None),
            ("0210", Some(1_000)),
            ("0410.5", Some(1_050)),
            ("0510.05", Some(1_005)),
            ("0610.050", None),
            ("03a.b", None),
        ] {
            assert_eq!(amount(&format!("0002015303986 54{value}").replace(' ', "")), read, "{value}");
        }
        for text in ["", "0002", "000201", "00020153039866304", "é"] {
            assert_eq!(amount(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_have_two_decimals() {
        let cases =
            [(1, "54040.01"), (100, "54041.00"), (123_456, "54071234.56"), (999_999_999_999, "54139999999999.99")];
        for (amount_centavos, written) in cases {
            let payload = BrCode { amount_centavos, ..example() }.payload().unwrap();
            assert!(payload.contains(&format!("5303986{written}5802BR")), "{payload}");
        }
    }

    #[test]
    fn names_are_folded_and_cut() {
        let cases = [
            ("Pão de Açúcar Ltda", "São José", "5918Pao de Acucar Ltda6008Sao Jose"),
            ("Comércio de Alimentos São João Ltda", "B", "5925Comercio de Alimentos Sao6001B"),
            ("Loja 🍞  do Zé", "São José dos Campos", "5910Loja do Ze6015Sao Jose dos Ca"),
            ("Ateliê & Cia.", "Mogi-Guaçu", "5913Atelie & Cia.6010Mogi-Guacu"),
        ];
        for (merchant_name, merchant_city, written) in cases {
            let payload = BrCode { merchant_name, merchant_city, ..example() }.payload().unwrap();
            assert!(payload.contains(&format!("{written}6207")), "{payload}");
            assert!(payload.is_ascii());
        }
    }

    #[test]
    fn what_the_format_cannot_carry_is_refused() {
        let long = "a".repeat(78);
        let cases = [
            (BrCode { location: "", ..example() }, BrCodeError::Location),
            (BrCode { location: &long, ..example() }, BrCodeError::Location),
            (BrCode { location: "https://pix.example.com/a", ..example() }, BrCodeError::Location),
            (BrCode { location: "pix.example.com/a b", ..example() }, BrCodeError::Location),
            (BrCode { amount_centavos: 0, ..example() }, BrCodeError::Amount),
            (BrCode { amount_centavos: -1, ..example() }, BrCodeError::Amount),
            (BrCode { amount_centavos: 1_000_000_000_000, ..example() }, BrCodeError::Amount),
            (BrCode { merchant_name: "東京", ..example() }, BrCodeError::MerchantName),
            (BrCode { merchant_city: "  ", ..example() }, BrCodeError::MerchantCity),
        ];
        for (code, error) in cases {
            assert_eq!(code.payload(), Err(error), "{code:?}");
        }
        let longest = &long[..77];
        assert!(BrCode { location: longest, ..example() }.payload().unwrap().contains("26990014br.gov.bcb.pix2577aaa"));
    }
}
