//! Settings that several adapters have.

use ledger::event::PayoutBank;

/// An account of the books that money is paid from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaysFrom {
    /// The account that receives PIX payments: `Assets:Bank:Pix`.
    #[default]
    Pix,
    /// The account that the acquirer pays to: `Assets:Bank:Settlement`.
    Settlement,
}

impl PaysFrom {
    pub(crate) fn bank(self) -> PayoutBank {
        match self {
            Self::Pix => PayoutBank::Pix,
            Self::Settlement => PayoutBank::Settlement,
        }
    }
}

/// What an institution does with a second order of an id. It is to be proved in its test
/// environment before anything is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// It refuses the order, and carries nothing out.
    #[default]
    Refused,
    /// It answers as before, and carries nothing out.
    Same,
    /// It may carry the transfer out again: then nothing is ordered a second time.
    Again,
}
