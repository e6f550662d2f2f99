//! Statement of one merchant or recipient: the movements of its pending, available and reserved
//! money, with the balances after each.

use std::io;

use ledger::account::Account;
use ledger::entry::Side;
use ledger::id::LedgerId;
use ledger::source;
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::general_ledger::ids;
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("sequence", "Sequência", Kind::Count),
    column("event", "Histórico", Kind::Text),
    column("ids", "Identificadores", Kind::Text),
    sum("pending", "A vencer"),
    sum("available", "Disponível"),
    sum("reserved", "Reservado"),
    column("pending_balance", "Saldo a vencer", Kind::Centavos),
    column("available_balance", "Saldo disponível", Kind::Centavos),
    column("reserved_balance", "Saldo reservado", Kind::Centavos),
    column("partition", "Partição", Kind::Count),
    column("effective_date", "Data de competência", Kind::Day),
];

/// Fold of a statement: balances of pending, available and reserved money, centavos.
#[derive(Default)]
pub(super) struct StatementReport([i128; 3]);

/// The place of an account among pending, available and reserved.
fn place(account: Account) -> Option<usize> {
    match account {
        Account::Pending => Some(0),
        Account::Available => Some(1),
        Account::ReservedCashout | Account::ReservedDispute | Account::ReservedWithdrawal => Some(2),
        _ => None,
    }
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
        let [pending, available, reserved] = self.0.map(Cell::Centavos);
        let zero = || Cell::Centavos(0);
        let (day, event) = (Cell::Day(begun.from), Cell::word("opening", "Saldo anterior"));
        let balances = [pending, available, reserved, Cell::Empty, Cell::Empty];
        rows.add(&[&[day, Cell::Empty, event, Cell::Empty, zero(), zero(), zero()][..], &balances].concat())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        if !posted.record.entries.iter().any(|entry| posted.scope.takes(entry.ledger())) {
            return Ok(());
        }
        let sources = source::of_entries(posted.record);
        for (entry, source) in posted.record.entries.iter().zip(&sources) {
            let mut moved = [0; 3];
            for posting in entry.postings().iter().filter(|_| posted.scope.one() == Some(entry.ledger())) {
                let Some(place) = place(posting.account) else { continue };
                let amount = i128::from(posting.amount.0);
                moved[place] += if posting.side == Side::Debit { amount } else { -amount };
            }
            if moved == [0; 3] {
                continue;
            }
            for (balance, by) in self.0.iter_mut().zip(moved) {
                *balance += by;
            }
            let [pending, available, reserved] = moved.map(Cell::Centavos);
            let [pending_balance, available_balance, reserved_balance] = self.0.map(Cell::Centavos);
            rows.add(&[
                Cell::Day(posted.day),
                Cell::Count(posted.at.sequence.0),
                Cell::word(source.event, source.event_ptbr),
                ids(source),
                pending,
                available,
                reserved,
                pending_balance,
                available_balance,
                reserved_balance,
                Cell::Count(posted.at.partition.0.into()),
                Cell::Day(day_of(posted.record.takes_effect_at().0)),
            ])?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        Ok(())
    }
}
