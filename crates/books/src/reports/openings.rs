//! Balances at the beginning of a report's first day.

use std::collections::BTreeMap;

use ledger::{Account, Balance, Balances, LedgerId, Record};

use crate::ledger_scope::LedgerScope;

/// Balances of the accounts that a report is of, before its first day: those of a balance file, and
/// the Records after it.
#[derive(Debug, Default)]
pub(super) struct Openings(BTreeMap<LedgerId, Balances>);

impl Openings {
    /// Adds a balance of a balance file.
    pub(super) fn add(&mut self, ledger: LedgerId, account: Account, balance: Balance, scope: &LedgerScope) {
        let (ledger, account) = scope.shown(ledger, account);
        self.0.entry(ledger).or_default().entry(account).or_default().add(balance);
    }

    /// Adds the postings that the report takes of a Record of a day before the first one.
    pub(super) fn post(&mut self, record: &Record, scope: &LedgerScope, takes: impl Fn(LedgerId, Account) -> bool) {
        for entry in record.entries.iter().filter(|entry| scope.takes(entry.ledger())) {
            for posting in entry.postings().iter().filter(|posting| takes(entry.ledger(), posting.account)) {
                let (ledger, account) = scope.shown(entry.ledger(), posting.account);
                self.0.entry(ledger).or_default().entry(account).or_default().post(posting);
            }
        }
    }

    /// Every account that was ever moved, with its balance: debits minus credits, centavos.
    pub(super) fn balances(&self) -> impl Iterator<Item = ((LedgerId, Account), i128)> {
        let accounts = self.0.iter().flat_map(|(ledger, balances)| balances.iter().map(move |of| (*ledger, of)));
        accounts.map(|(ledger, (account, balance))| ((ledger, *account), balance.net()))
    }
}
