//! The outside world, as traits: the card acquirer and the PIX institution. The intent is in the journal before a rail is called;
//! a call never happens inside an actor's handler; an unknown outcome stays pending and is asked again by our own id.
//!
//! A rail must be idempotent on our id: asking twice for the same charge has the effect of asking once.

use std::future::Future;
use std::pin::Pin;

use ledger::event::CardRefusal;
use ledger::fees::PaymentMethod;
use ledger::id::ObjectId;
use ledger::merchant::OpenCharge;
use ledger::money::Centavos;

/// A call to a rail.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, RailError>> + Send + 'a>>;

/// Why a rail's answer is not known. It is never taken for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RailError {
    /// No answer in time.
    #[error("the rail did not answer")]
    NoAnswer,
}

/// What a card charge needs from the payer, for the time of the call only: never stored, logged, traced or printed.
pub struct CardSecrets {
    /// The number, digits only.
    pub number: String,
    /// The name on the card.
    pub holder_name: String,
    /// 1 to 12.
    pub exp_month: u8,
    /// Four digits.
    pub exp_year: u16,
    /// The security code.
    pub cvv: String,
}

impl std::fmt::Debug for CardSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CardSecrets")
    }
}

/// A card charge, as told to the acquirer.
#[derive(Debug)]
pub struct CardOrder {
    /// Our id, on which the acquirer is idempotent.
    pub charge: ObjectId,
    /// Total, centavos.
    pub amount: Centavos,
    /// 1 to 12.
    pub installments: u8,
    /// Credit or debit.
    pub method: PaymentMethod,
    /// The card.
    pub card: CardSecrets,
}

/// What the acquirer says of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardAnswer {
    /// Captured; the acquirer keeps this much.
    Captured {
        /// Centavos.
        acquirer_mdr: Centavos,
    },
    /// Refused.
    Refused(CardRefusal),
}

/// The card acquirer.
pub trait CardRail: Send + Sync + 'static {
    /// Authorizes and captures.
    fn charge(&self, order: CardOrder) -> Call<'_, CardAnswer>;

    /// What became of a charge. `None`: the acquirer never had it.
    fn find<'a>(&'a self, charge: ObjectId, open: &'a OpenCharge) -> Call<'a, Option<CardAnswer>>;
}

/// What the PIX institution says of a code that is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PixFate {
    /// Unpaid, and from now on it cannot be paid.
    Cancelled,
    /// Paid before.
    Paid {
        /// The payment's end-to-end id.
        end_to_end_id: String,
    },
}

/// The PIX institution.
pub trait PixRail: Send + Sync + 'static {
    /// Where a payer's bank fetches the charge: the location of its dynamic BR Code, without a scheme.
    fn location(&self, charge: ObjectId) -> String;

    /// Ends a code.
    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate>;
}

/// The rails of an installation.
pub struct Rails {
    /// The card acquirer.
    pub card: Box<dyn CardRail>,
    /// The PIX institution.
    pub pix: Box<dyn PixRail>,
}
