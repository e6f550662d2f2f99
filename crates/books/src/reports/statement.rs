//! Statement of one merchant or recipient: each movement with its whole amount, the parts of it in
//! pending, available and reserved money and in debt, and the balances after it.

use std::io;

use ledger::{Account, LedgerId};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::general_ledger::ids;
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("sequence", "Sequência", Kind::Count).below(),
    column("event", "Histórico", Kind::Text),
    column("ids", "Identificadores", Kind::Text).below(),
    sum("amount", "Valor"),
    sum("pending", "A vencer"),
    column("pending_balance", "Saldo a vencer", Kind::Amount).below(),
    sum("available", "Disponível"),
    column("available_balance", "Saldo disponível", Kind::Amount).below(),
    sum("reserved", "Reservado"),
    column("reserved_balance", "Saldo reservado", Kind::Amount).below(),
    sum("debt", "Dívida"),
    column("debt_balance", "Saldo da dívida", Kind::Amount).below(),
    column("balance", "Saldo", Kind::Amount),
    column("partition", "Partição", Kind::Count).in_files(),
    column("effective_date", "Data de competência", Kind::Day),
];

/// Fold of a statement: balances of pending, available and reserved money, and of debt as debits
/// minus credits, so that they add up to what its owner has. Centavos.
#[derive(Default)]
pub(super) struct StatementReport([i128; 4]);

/// The place of an account among pending, available and reserved money, and debt: a merchant's to
/// the platform, a recipient's to its merchant.
fn place(account: Account) -> Option<usize> {
    match account {
        Account::Pending => Some(0),
        Account::Available => Some(1),
        Account::ReservedCashout | Account::ReservedDispute | Account::ReservedWithdrawal => Some(2),
        Account::Deficit | Account::Clawback => Some(3),
        _ => None,
    }
}

/// Cells of four amounts, each with the balance after it; a debt is above zero.
fn with_balances(moved: [i128; 4], balances: [i128; 4]) -> Vec<Cell> {
    let signs = [1, 1, 1, -1];
    let pairs = moved.into_iter().zip(balances).zip(signs);
    pairs.flat_map(|((amount, balance), sign)| [sign * amount, sign * balance].map(Cell::Amount)).collect()
}

/// What four amounts come to.
fn whole(amounts: [i128; 4]) -> Cell {
    Cell::Amount(amounts.iter().sum())
}

impl Fold for StatementReport {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn opens(&self, _: LedgerId, account: Account) -> bool {
        place(account).is_some()
    }

    fn begin(&mut self, openings: Openings, begun: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((_, account), balance) in openings.balances() {
            if let Some(place) = place(account) {
                self.0[place] += balance;
            }
        }
        let (parts, balance) = (with_balances([0; 4], self.0), whole(self.0));
        let (day, event) = (Cell::Day(begun.from), Cell::word("opening", "Saldo anterior"));
        let heads = [day, Cell::Empty, event, Cell::Empty, Cell::Amount(0)];
        rows.add(&[&heads[..], &parts, &[balance, Cell::Empty, Cell::Empty]].concat())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for (entry, source) in posted.entries() {
            let mut moved = [0; 4];
            for posting in entry.postings().iter().filter(|_| posted.scope.one() == Some(entry.ledger())) {
                let Some(place) = place(posting.account) else { continue };
                moved[place] += posting.sums().net();
            }
            if moved == [0; 4] {
                continue;
            }
            for (balance, by) in self.0.iter_mut().zip(moved) {
                *balance += by;
            }
            let (amount, parts, balance) = (whole(moved), with_balances(moved, self.0), whole(self.0));
            let (day, sequence) = (Cell::Day(posted.day), Cell::Count(posted.at.sequence.0));
            let event = Cell::word(source.event, source.event_ptbr);
            let partition = Cell::Count(posted.at.partition.0.into());
            let effective = Cell::Day(day_of(posted.record.takes_effect_at().0));
            let heads = [day, sequence, event, ids(&source), amount];
            rows.add(&[&heads[..], &parts, &[balance, partition, effective]].concat())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        Ok(())
    }
}
