//! Refusal of a card by its acquirer. In a Record it is a number, or an acquirer's code in an
//! array.

use minicbor::data::Type;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

/// Why the acquirer said no. Its text is the name in the API, `cardStatus`: an acquirer's code as
/// `refused_51`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum CardRefusal {
    /// The issuer refused.
    NotAuthorized,
    /// No limit or balance.
    InsufficientFunds,
    /// The acquirer never had the charge, or has ended it.
    Failed,
    /// Refused with a code of the acquirer.
    #[strum(to_string = "refused_{code}")]
    Coded {
        /// The code, a number in the acquirer's own list.
        code: u16,
        /// True where the schemes forbid to try this card again.
        is_final: bool,
    },
}

/// The refusals without a code, by their numbers.
const NUMBERED: [CardRefusal; 3] = [CardRefusal::NotAuthorized, CardRefusal::InsufficientFunds, CardRefusal::Failed];

impl CardRefusal {
    /// Whether the schemes forbid to try the card again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Coded { is_final: true, .. })
    }
}

impl<C> Encode<C> for CardRefusal {
    fn encode<W: encode::Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        match self {
            Self::Coded { code, is_final } => e.array(2)?.u16(*code)?.bool(*is_final)?.ok(),
            Self::NotAuthorized => e.u8(0)?.ok(),
            Self::InsufficientFunds => e.u8(1)?.ok(),
            Self::Failed => e.u8(2)?.ok(),
        }
    }
}

impl<'b, C> Decode<'b, C> for CardRefusal {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        if d.datatype()? == Type::Array {
            return match d.array()? {
                Some(2) => Ok(Self::Coded { code: d.u16()?, is_final: d.bool()? }),
                _ => Err(decode::Error::message("a refusal's code of a later release")),
            };
        }
        let number = d.u32()?;
        let known = usize::try_from(number).ok().and_then(|number| NUMBERED.get(number));
        known.copied().ok_or_else(|| decode::Error::unknown_variant(i64::from(number)))
    }
}
