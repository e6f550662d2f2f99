//! Storage of the copy-and-paste payload of a PIX charge: what nearly all codes have alike is one
//! control character each, which no code has itself.

use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decoder, Encoder};

/// What codes have alike, the longer first; the first one has the character 1. Their numbers are on
/// disk: a new one goes to the end.
const PARTS: [&str; 6] = [
    "0014br.gov.bcb.pix25",
    "0014BR.GOV.BCB.PIX25",
    "5204000053039865802BR59",
    "520400005303986",
    "5802BR59",
    "62070503***6304",
];

fn parts() -> impl Iterator<Item = (String, &'static str)> {
    (1_u8..).map(|byte| char::from(byte).to_string()).zip(PARTS)
}

pub(crate) fn encode<C, W: Write>(
    code: &str,
    encoder: &mut Encoder<W>,
    _: &mut C,
) -> std::result::Result<(), EncodeError<W::Error>> {
    let packed = parts().fold(code.to_owned(), |text, (short, part)| text.replace(part, &short));
    encoder.str(&packed)?.ok()
}

pub(crate) fn decode<C>(decoder: &mut Decoder<'_>, _: &mut C) -> std::result::Result<String, minicbor::decode::Error> {
    let packed = decoder.str()?;
    Ok(parts().fold(packed.to_owned(), |text, (short, part)| text.replace(&short, part)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn stored(code: &str) -> usize {
        let mut bytes = Vec::new();
        encode(code, &mut Encoder::new(&mut bytes), &mut ()).unwrap();
        assert_eq!(decode(&mut Decoder::new(&bytes), &mut ()).unwrap(), code);
        bytes.len()
    }

    #[test]
    fn a_code_takes_less_room_and_is_read_as_it_was() {
        let code = |scheme: &str, amount: &str| {
            format!(
                "00020101021226850014{scheme}2563pix.example.com/qr/v2/cobv/9d36b84fc70b478fb95c12729b90ca25\
                 520400005303986{amount}5802BR5905Loja 6006Recife62070503***6304ABCD"
            )
        };
        for (code, most) in [
            (code("br.gov.bcb.pix", ""), 103),
            (code("BR.GOV.BCB.PIX", "540582.53"), 113),
            ("00020126850014br.gov.bcb.pix2501x".to_owned(), 19),
            ("another text".to_owned(), 13),
            (String::new(), 1),
        ] {
            assert!(stored(&code) <= most, "{code}: {}", stored(&code));
        }
    }
}
