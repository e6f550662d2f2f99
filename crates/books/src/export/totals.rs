//! Totals of an export, and of each account in it.

use std::io;

use ledger::{Balance, Posting};
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

use super::ledger_books::AccountBooks;
use crate::sorted_sums::{SortedSums, account_of_key, key_of_account};

/// Sums of all postings of an export; of each account where an export gathers them.
#[derive(Default)]
pub struct ExportTotals {
    /// Number of postings.
    pub rows: u64,
    /// Sums of both sides, centavos.
    pub sums: Balance,
    /// Totals of each account, for an export that gathers them.
    pub accounts: AccountSums,
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

/// Totals of all accounts, by ledger and account. What does not fit into memory is in a temporary
/// file of the system.
#[derive(Default)]
pub struct AccountSums(SortedSums);

impl ExportTotals {
    /// Adds a posting.
    pub(super) fn count(&mut self, posting: &Posting) {
        self.rows += 1;
        self.sums.post(posting);
    }
}

impl AccountSums {
    /// Adds to the totals of an account of the ledger with this outside name.
    pub(super) fn add(&mut self, ledger: &str, account: &AccountBooks) -> io::Result<()> {
        let AccountBooks { name, opening, moved, .. } = account;
        self.0.add(&key_of_account(ledger, name), [*opening, moved.debits, moved.credits])
    }

    /// The accounts that were not always empty, in the order of their names.
    pub fn iter(&self) -> io::Result<impl Iterator<Item = io::Result<AccountTotals>> + '_> {
        let was_moved = |row: &io::Result<(_, _)>| row.as_ref().map_or(true, |(_, sums)| *sums != [0; 3]);
        Ok(self.0.rows()?.filter(was_moved).map(|row| {
            let (key, [opening, debits, credits]) = row?;
            let (ledger, account) = account_of_key(key)?;
            Ok(AccountTotals { ledger, account, opening, debits, credits, closing: opening + debits - credits })
        }))
    }
}

impl Serialize for AccountSums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut accounts = serializer.serialize_seq(None)?;
        for account in self.iter().map_err(S::Error::custom)? {
            accounts.serialize_element(&account.map_err(S::Error::custom)?)?;
        }
        accounts.end()
    }
}
