//! Interface of the reports: a fold over Records that gives typed rows.

use std::io;

use chrono::NaiveDate;
use derived::balance_files::{BooksAsOf, CarriedFact};
use derived::names::Names;
use derived::records::LoadError;
use ledger::source::{self, Source};
use ledger::{Account, Entry, LedgerId, Record, Timestamp};
use store::cut::Position;

use super::openings::Openings;
use super::table::{Column, Rows};
use crate::ledger_scope::LedgerScope;

/// One Record, as a report gets it.
pub(super) struct PostedRecord<'a> {
    pub(super) at: Position,
    /// When it was booked.
    pub(super) booked_at: Timestamp,
    /// Day of the booking in America/Sao_Paulo.
    pub(super) day: NaiveDate,
    pub(super) record: &'a Record,
    pub(super) names: &'a Names,
    pub(super) scope: &'a LedgerScope,
    /// The books before the first Record that the fold gets; `None` if that is the first of all.
    pub(super) before: Option<&'a BooksAsOf>,
}

impl<'a> PostedRecord<'a> {
    /// The entries that the report is of, with their sources.
    pub(super) fn entries(&self) -> Vec<(&'a Entry, Source)> {
        let entries = &self.record.entries;
        if !entries.iter().any(|entry| self.scope.takes(entry.ledger())) {
            return Vec::new();
        }
        let all = entries.iter().zip(source::of_entries(self.record));
        all.filter(|(entry, _)| self.scope.takes(entry.ledger())).collect()
    }
}

/// State of the journal at the end of a report.
pub(super) struct ReportSpan<'a> {
    /// The first day that the report is of.
    pub(super) from: NaiveDate,
    /// The last day that the report is of.
    pub(super) to: NaiveDate,
    pub(super) names: &'a Names,
    pub(super) scope: &'a LedgerScope,
}

/// A fold over Records that gives the rows of a report.
pub(super) trait Fold {
    /// The columns of its rows.
    fn columns(&self) -> &'static [Column];

    /// Whether it uses the names of ledgers, which are then in memory.
    fn uses_names(&self) -> bool {
        true
    }

    /// Takes an id or an account of books before the first Record that it gets.
    fn take(&mut self, _fact: CarriedFact, _scope: &LedgerScope) -> io::Result<()> {
        Ok(())
    }

    /// Whether the balance of an account before the first day is of use.
    fn opens(&self, _ledger: LedgerId, _account: Account) -> bool {
        false
    }

    /// Begins with books before the first day, instead of with the first Record.
    fn carry(&mut self, _before: &mut BooksAsOf) -> Result<(), LoadError> {
        Ok(())
    }

    /// Takes a Record of a day before the first one.
    fn open(&mut self, _posted: &PostedRecord<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Begins with the first day, and the balances before it.
    fn begin(&mut self, _openings: Openings, _begun: &ReportSpan<'_>, _rows: &mut Rows<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Takes the next Record of the days.
    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()>;

    /// Writes the rows that are left.
    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()>;
}
