//! Totals of an export, and of each account in it.

use ledger::entry::{Posting, Side};
use serde::{Deserialize, Serialize};

/// Totals of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of postings.
    pub rows: u64,
    /// Sum of the debit side, centavos.
    pub debits: i128,
    /// Sum of the credit side, centavos.
    pub credits: i128,
    /// Totals of each account, for an export that keeps them.
    pub accounts: Vec<AccountTotals>,
}

/// Totals of one account, centavos; balances are debits minus credits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountTotals {
    /// `M-…`, `R-…`, `P-…`.
    pub ledger: String,
    /// Its full name.
    pub account: String,
    /// Balance before the first day.
    pub opening: i128,
    /// Sum of the debit side.
    pub debits: i128,
    /// Sum of the credit side.
    pub credits: i128,
    /// Balance after the last day.
    pub closing: i128,
}

impl Exported {
    /// Adds a posting.
    pub(super) fn count(&mut self, posting: &Posting) {
        self.rows += 1;
        match posting.side {
            Side::Debit => self.debits += i128::from(posting.amount.0),
            Side::Credit => self.credits += i128::from(posting.amount.0),
        }
    }
}
