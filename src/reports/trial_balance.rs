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
#[derive(Default)]
pub(super) struct TrialBalance(BTreeMap<(LedgerId, Account), OfAccount>);

#[derive(Default)]
struct OfAccount {
    opening: i128,
    moved: Balance,
}

impl Fold for TrialBalance {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn begin(&mut self, openings: Openings, _: &Ended<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for (of, opening) in openings.balances() {
            self.0.entry(of).or_default().opening = opening;
        }
        Ok(())
    }

    fn post(&mut self, posted: &Posted<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for entry in posted.record.entries.iter().filter(|entry| posted.scope.takes(entry.ledger())) {
            for posting in entry.postings() {
                self.0.entry(posted.scope.shown(entry.ledger(), posting.account)).or_default().moved.post(posting);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut named: Vec<_> =
            self.0.iter().map(|(of, account)| (ended.scope.names(*of, ended.names), account)).collect();
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
