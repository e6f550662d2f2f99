//! Daily close: each bank account by day, over all ledgers of the platform.
//!
//! Movements against `Liabilities:Suspense` are unexplained; all others have a fact behind them.

use std::io;

use chrono::NaiveDate;
use ledger::{Account, Entry, LedgerId};

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("account", "Conta", Kind::Text),
    column("account_name", "Nome da conta", Kind::Text).above(),
    column("opening", "Saldo inicial", Kind::Amount),
    sum("in", "Entradas"),
    sum("out", "Saídas"),
    column("closing", "Saldo final", Kind::Amount),
    sum("explained", "Explicado"),
    sum("unexplained", "Não explicado"),
];

const BANKS: [Account; 3] = [Account::BankSettlement, Account::BankPix, Account::BankOwn];

/// Fold of the daily close.
#[derive(Default)]
pub(super) struct DailyClose {
    /// The day that is being added up.
    day: Option<NaiveDate>,
    banks: [OfBank; 3],
}

#[derive(Clone, Copy, Default)]
struct OfBank {
    opening: i128,
    incoming: i128,
    outgoing: i128,
    unexplained: i128,
}

impl OfBank {
    fn closing(&self) -> i128 {
        self.opening + self.incoming - self.outgoing
    }
}

fn is_of_platform(ledger: LedgerId) -> bool {
    matches!(ledger, LedgerId::Platform(_) | LedgerId::System)
}

impl DailyClose {
    fn add(&mut self, entry: &Entry) {
        if !is_of_platform(entry.ledger()) {
            return;
        }
        let is_unexplained = entry.postings().iter().any(|posting| posting.account == Account::Suspense);
        for posting in entry.postings() {
            let Some(place) = BANKS.iter().position(|bank| *bank == posting.account) else { continue };
            let (bank, sums) = (&mut self.banks[place], posting.sums());
            bank.incoming += sums.debits;
            bank.outgoing += sums.credits;
            if is_unexplained {
                bank.unexplained += sums.net();
            }
        }
    }

    /// Closes the days before this one.
    fn close_through(&mut self, last: NaiveDate, rows: &mut Rows<'_>) -> io::Result<()> {
        while let Some(day) = self.day.filter(|day| *day <= last) {
            for (bank, account) in self.banks.iter_mut().zip(BANKS) {
                let OfBank { opening, incoming, outgoing, unexplained } = *bank;
                rows.add(&[
                    Cell::Day(day),
                    Cell::Text(account.kind_name()),
                    Cell::text(account.name_ptbr()),
                    Cell::Amount(opening),
                    Cell::Amount(incoming),
                    Cell::Amount(outgoing),
                    Cell::Amount(bank.closing()),
                    Cell::Amount(incoming - outgoing - unexplained),
                    Cell::Amount(unexplained),
                ])?;
                *bank = OfBank { opening: bank.closing(), ..OfBank::default() };
            }
            self.day = day.succ_opt();
        }
        Ok(())
    }
}

impl Fold for DailyClose {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn opens(&self, ledger: LedgerId, account: Account) -> bool {
        is_of_platform(ledger) && BANKS.contains(&account)
    }

    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        if let Some(before) = posted.day.pred_opt() {
            self.close_through(before, rows)?;
        }
        self.day = self.day.or(Some(posted.day));
        posted.record.entries.iter().for_each(|entry| self.add(entry));
        Ok(())
    }

    fn begin(&mut self, openings: Openings, begun: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for ((_, account), balance) in openings.balances() {
            if let Some(place) = BANKS.iter().position(|bank| *bank == account) {
                self.banks[place].opening += balance;
            }
        }
        self.day = Some(begun.from);
        Ok(())
    }

    fn finish(mut self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        self.close_through(ended.to, rows)
    }
}
