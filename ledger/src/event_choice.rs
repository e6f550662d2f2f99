//! Choice of webhook events: the kinds that an endpoint receives.

use minicbor::data::Type;
use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decode, Decoder, Encode, Encoder};
use strum::VariantArray;

use crate::webhook_events::WebhookEventKind;

/// A set of kinds of webhook events. It is written as an array of their wire names, so that their
/// order in a build does not matter; a name that this build does not know is left out.
///
/// ```
/// use ledger::event_choice::EventChoice;
/// use ledger::webhook_events::WebhookEventKind::{ChargePaid, ChargeRefused};
///
/// let choice: EventChoice = [ChargePaid].into_iter().collect();
/// assert!(choice.has(ChargePaid) && !choice.has(ChargeRefused));
/// let written = minicbor::to_vec(choice).unwrap();
/// assert_eq!(written, b"\x81\x6bcharge.paid");
/// assert_eq!(minicbor::decode::<EventChoice>(&written).unwrap(), choice);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventChoice(u64);

const _: () = assert!(WebhookEventKind::VARIANTS.len() < 64, "a bit for each kind, and one for those to come");

impl EventChoice {
    /// Every kind, also those of later versions.
    pub const ALL: Self = Self(u64::MAX);

    /// True if the kind was chosen.
    pub fn has(self, kind: WebhookEventKind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// The kinds of both choices.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the choice is [`EventChoice::ALL`]: it is not written then.
    pub fn are_all(&self) -> bool {
        *self == Self::ALL
    }

    /// The wire names of the kinds, in the order of the interface; `None` for all.
    pub fn names(self) -> Option<Vec<&'static str>> {
        (!self.are_all()).then(|| self.kinds().map(WebhookEventKind::name).collect())
    }

    fn kinds(self) -> impl Iterator<Item = WebhookEventKind> {
        WebhookEventKind::VARIANTS.iter().copied().filter(move |kind| self.has(*kind))
    }
}

impl Default for EventChoice {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<WebhookEventKind> for EventChoice {
    fn from_iter<I: IntoIterator<Item = WebhookEventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | bit(kind)))
    }
}

impl<C> Encode<C> for EventChoice {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        if self.are_all() {
            return to.null()?.ok();
        }
        to.array(self.kinds().count() as u64)?;
        self.kinds().try_for_each(|kind| to.str(kind.name())?.ok())
    }
}

impl<'b, C> Decode<'b, C> for EventChoice {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        if from.datatype()? == Type::Null {
            return from.null().map(|()| Self::ALL);
        }
        let names = from.array_iter::<&str>()?;
        let kinds: Result<Vec<_>, _> = names.map(|name| name.map(WebhookEventKind::named)).collect();
        Ok(kinds?.into_iter().flatten().collect())
    }
}

fn bit(kind: WebhookEventKind) -> u64 {
    1 << kind as u32
}
