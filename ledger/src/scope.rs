//! Scopes of API keys: which requests of the merchants' API a key may make.

use minicbor::{Decode, Encode};
use strum::{IntoStaticStr, VariantArray};

/// One right of an API key. Its number is a bit of the encoding of [`Scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    /// Charge and refund payers, by card, PIX, plan or subscription.
    Charges = 1,
    /// Send money out: cashouts, withdrawals and anticipations.
    Payouts = 2,
    /// Register and change sub-recipients.
    Recipients = 4,
    /// Read everything of the account, and receive its webhooks.
    Read = 8,
}

impl Scope {
    /// Its name on the wire: `charges`, `payouts`, `recipients`, `read`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The scope of a name on the wire; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|scope| scope.name() == name)
    }
}

/// A set of scopes. A key whose Record names no scopes may do everything, also what later versions
/// add.
///
/// ```
/// use ledger::scope::{Scope, Scopes};
///
/// let shop: Scopes = [Scope::Charges, Scope::Read].into_iter().collect();
/// assert!(shop.has(Scope::Read) && !shop.has(Scope::Payouts));
/// assert!(Scopes::ALL.include(shop) && !shop.include(Scopes::ALL));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Scopes(#[n(0)] u8);

impl Scopes {
    /// Every scope, of this version and of later ones.
    pub const ALL: Self = Self(u8::MAX);

    /// True if the set has this scope.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope as u8 != 0
    }

    /// True if the set has every scope of another one.
    pub fn include(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// True if the set is [`Scopes::ALL`]: it is not written then.
    pub fn are_all(&self) -> bool {
        *self == Self::ALL
    }

    /// The wire names of the scopes of this version that the set has.
    pub fn names(self) -> Vec<&'static str> {
        Scope::VARIANTS.iter().filter(|scope| self.has(**scope)).map(|scope| scope.name()).collect()
    }
}

impl Default for Scopes {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope as u8))
    }
}
