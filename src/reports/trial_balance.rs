//! Trial balance: opening, debits, credits and closing of each account.

use std::collections::BTreeMap;
use std::io;

use ledger::account::Account;
use ledger::entry::Balance;
use ledger::id::LedgerId;

use super::fold::{Ended, Fold, Posted};
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("ledger", "Razão", Kind::Text),
    column("account", "Conta", Kind::Text),
    sum("opening", "Saldo inicial"),
    sum("debits", "Débitos"),
    sum("credits", "Créditos"),
    sum("closing", "Saldo final"),
];

/// Fold of the trial balance.
pub(super) struct TrialBalanceReport {
    /// Whether its days begin with the first Record: then what was posted before is of its days.
    is_of_all_days: bool,
    accounts: BTreeMap<(LedgerId, Account), OfAccount>,
}

#[derive(Default)]
struct OfAccount {
    opening: i128,
    moved: Balance,
}

impl TrialBalanceReport {
    pub(super) fn new(is_of_all_days: bool) -> Self {
        Self { is_of_all_days, accounts: BTreeMap::new() }
    }
}

impl Fold for TrialBalanceReport {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn opens(&self, _: LedgerId, _: Account) -> bool {
        true
    }

    fn begin(&mut self, openings: Openings, _: &Ended<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for (of, sums) in openings.sums() {
            let account = self.accounts.entry(of).or_default();
            match self.is_of_all_days {
                true => account.moved = sums,
                false => account.opening = sums.net(),
            }
        }
        Ok(())
    }

    fn post(&mut self, posted: &Posted<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for entry in posted.record.entries.iter().filter(|entry| posted.scope.takes(entry.ledger())) {
            for posting in entry.postings() {
                let of = posted.scope.shown(entry.ledger(), posting.account);
                self.accounts.entry(of).or_default().moved.post(posting);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut named: Vec<_> =
            self.accounts.iter().map(|(of, account)| (ended.scope.names(*of, ended.names), account)).collect();
        named.retain(|(_, account)| (account.opening, account.moved) != (0, Balance::default()));
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        for ((ledger, name), OfAccount { opening, moved }) in named {
            rows.add(&[
                Cell::Text(ledger),
                Cell::Text(name),
                Cell::Centavos(*opening),
                Cell::Centavos(moved.debits),
                Cell::Centavos(moved.credits),
                Cell::Centavos(opening + moved.net()),
            ])?;
        }
        Ok(())
    }
}
