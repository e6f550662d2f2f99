//! Maker of reports: reads the Records of a journal in order, from the first one or from a balance
//! file before the first day, and writes a report.

use std::io::{self, Write};

use chrono::NaiveDate;
use derived::balance_files::{BooksAsOf, CarriedFact};
use derived::names::Names;
use ledger::{LedgerId, ObjectId, Record, Timestamp};
use store::Block;
use store::cut::{Cut, PassedBlocks, Position, positions};
use wire::timestamp::day_of;

use super::anticipation_income::AnticipationIncome;
use super::changed_days::ChangedDays;
use super::context::ReportContext;
use super::daily_close::DailyClose;
use super::fees::Fees;
use super::fold::{Fold, PostedRecord, ReportSpan};
use super::general_ledger::GeneralLedger;
use super::late_entries::LateEntries;
use super::monthly_totals::MonthlyTotals;
use super::openings::Openings;
use super::receivables::ReceivablesReport;
use super::request::{DayOf, Report, ReportFormat, ReportRequest};
use super::settlement_calendar::SettlementCalendar;
use super::statement::StatementReport;
use super::table::Rows;
use super::trial_balance::TrialBalanceReport;
use crate::error::BooksError;
use crate::ledger_scope::LedgerScope;

/// A report that was written, and the part of the journal that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSummary {
    /// The last Records that count.
    pub cut: Cut,
    /// Hash of the journal there, in hexadecimal digits.
    pub head: String,
    /// How many rows there are.
    pub rows: u64,
}

/// Reads the blocks of a journal in order, and writes a report.
pub struct ReportMaker<'a> {
    request: ReportRequest,
    /// The books before the first Record that is read.
    before: Option<BooksAsOf>,
    names: Names,
    scope: LedgerScope,
    fold: Box<dyn Fold>,
    openings: Option<Openings>,
    rows: Rows<'a>,
    /// Day of the first Record that belongs to the days.
    first_day: Option<NaiveDate>,
    /// Day of the last block that was looked at, whatever the days.
    through: Option<NaiveDate>,
    reached: PassedBlocks,
    booked_at_ms: i64,
}

impl<'a> ReportMaker<'a> {
    /// Begins a report that was checked; its file goes to `out`.
    pub fn new(request: ReportRequest, format: ReportFormat, out: &'a mut dyn Write) -> Result<Self, BooksError> {
        Self::with_context(request, format, ReportContext::default(), out)
    }

    /// Begins a report that has more than Records.
    pub fn with_context(
        request: ReportRequest,
        format: ReportFormat,
        context: ReportContext,
        out: &'a mut dyn Write,
    ) -> Result<Self, BooksError> {
        let fold = fold(&request);
        Self::of_fold((request, format), fold, context, out)
    }

    /// Begins a report with its fold.
    pub(super) fn of_fold(
        (request, format): (ReportRequest, ReportFormat),
        fold: Box<dyn Fold>,
        context: ReportContext,
        out: &'a mut dyn Write,
    ) -> Result<Self, BooksError> {
        let rows = Rows::new(fold.columns(), &request, format, context, out)?;
        Ok(Self {
            scope: LedgerScope::new(request.ledger.as_deref()),
            request,
            before: None,
            names: Names::default(),
            fold,
            openings: Some(Openings::default()),
            rows,
            first_day: None,
            through: None,
            reached: PassedBlocks::default(),
            booked_at_ms: 0,
        })
    }

    /// Begins with books before [`ReportRequest::begins_before`], whose last Record is in the next
    /// block.
    pub fn begin_at(&mut self, mut before: BooksAsOf) -> Result<(), BooksError> {
        for fact in before.ledgers() {
            let fact = fact?;
            match fact {
                CarriedFact::Ledger(ledger, id) => self.learn(ledger, id),
                CarriedFact::Account(ledger, account, balance)
                    if self.scope.takes(ledger) && self.fold.opens(ledger, account) =>
                {
                    if let Some(openings) = &mut self.openings {
                        openings.add(ledger, account, balance, &self.scope);
                    }
                }
                _ => {}
            }
            self.fold.take(fact, &self.scope)?;
        }
        self.fold.carry(&mut before)?;
        self.reached = PassedBlocks::at(before.through());
        self.before = Some(before);
        Ok(())
    }

    /// Says through which Records the journal will be read: of each partition, also where none of
    /// its blocks comes.
    pub fn read_through(&mut self, cut: &Cut) {
        self.reached.widen(cut);
    }

    /// Takes the next block of the journal through `cut`. False when no later Record is asked for.
    pub fn post_block(&mut self, block: &Block, cut: &Cut) -> Result<bool, BooksError> {
        let day = day_of(block.booked_at_ms);
        if block.first > cut.of(block.partition) {
            return Ok(!cut.is_within(self.reached.cut()));
        }
        // The journal goes on after the last day: that day is over.
        self.through = Some(day);
        // What takes effect in the days may be booked after them.
        if self.request.by == DayOf::Booking && self.request.to.is_some_and(|to| day > to) {
            return Ok(false);
        }
        let counted = self.reached.cut().of(block.partition);
        let records = positions(block).filter(|(at, _)| at.sequence > counted);
        for (at, bytes) in records.take_while(|(at, _)| cut.contains(*at)) {
            let record = Record::decode(bytes).map_err(|error| BooksError::Decode { at, error })?;
            self.post(at, Timestamp(block.booked_at_ms), &record)?;
        }
        self.reached.pass(block, cut);
        self.booked_at_ms = block.booked_at_ms;
        Ok(!cut.is_within(self.reached.cut()))
    }

    fn learn(&mut self, ledger: LedgerId, id: ObjectId) {
        if self.fold.uses_names() {
            self.names.insert(ledger, id);
        }
        self.scope.learn(ledger, id);
    }

    fn post(&mut self, at: Position, booked_at: Timestamp, record: &Record) -> io::Result<()> {
        for (ledger, id) in Names::opened_by(record) {
            self.learn(ledger, id);
        }
        let counts_at = match self.request.by {
            DayOf::Booking => booked_at,
            DayOf::Effect => record.takes_effect_at(),
        };
        let day = day_of(counts_at.0);
        if self.request.to.is_some_and(|to| day > to) {
            return Ok(());
        }
        let is_before = self.request.from.is_some_and(|from| day < from);
        match (&mut self.openings, is_before, self.request.by) {
            (Some(openings), true, _) => {
                openings.post(record, &self.scope, |ledger, account| self.fold.opens(ledger, account));
            }
            (_, false, DayOf::Booking) => self.begin(day)?,
            // What takes effect before the first day may still come: the balances before it are
            // whole at the end.
            (_, false, DayOf::Effect) => self.first_day = Some(self.first_day.map_or(day, |first| first.min(day))),
            (None, true, _) => {}
        }
        let Self { names, scope, before, fold, rows, .. } = self;
        let posted = PostedRecord { at, booked_at, day, record, names, scope, before: before.as_ref() };
        match is_before {
            true => fold.open(&posted),
            false => fold.post(&posted, rows),
        }
    }

    fn begin(&mut self, day: NaiveDate) -> io::Result<()> {
        let Some(openings) = self.openings.take() else { return Ok(()) };
        self.first_day = self.first_day.or(Some(day));
        let (from, to) = self.days();
        let begun = ReportSpan { from, to, names: &self.names, scope: &self.scope };
        self.fold.begin(openings, &begun, &mut self.rows)
    }

    /// The first and the last day that the report is of.
    fn days(&self) -> (NaiveDate, NaiveDate) {
        let through = self.through.unwrap_or_default();
        let to = self.request.to.unwrap_or(through).min(through).max(self.request.from.unwrap_or_default());
        (self.request.from.or(self.first_day).unwrap_or(to), to)
    }

    /// Ends the report.
    pub fn finish(mut self) -> Result<ReportSummary, BooksError> {
        if let Some(missing) = self.scope.missing() {
            return Err(BooksError::NoLedger(missing.to_owned()));
        }
        self.begin(self.request.from.or(self.through).unwrap_or_default())?;
        let (from, to) = self.days();
        let ended = ReportSpan { from, to, names: &self.names, scope: &self.scope };
        self.fold.finish(&ended, &mut self.rows)?;
        let head = format!("{:?}", self.reached.head());
        let closing = self.rows.finish(self.reached.cut().clone(), head, self.booked_at_ms)?;
        Ok(ReportSummary { cut: closing.cut, head: closing.head, rows: closing.rows })
    }
}

fn fold(request: &ReportRequest) -> Box<dyn Fold> {
    match request.report {
        Report::TrialBalance => Box::new(TrialBalanceReport::new(request.from.is_none())),
        Report::GeneralLedger => Box::new(GeneralLedger::new(request.account.clone())),
        Report::DailyClose => Box::new(DailyClose::default()),
        Report::Receivables => Box::new(ReceivablesReport::default()),
        Report::SettlementCalendar => Box::new(SettlementCalendar::default()),
        Report::Fees => Box::new(Fees::default()),
        Report::AnticipationIncome => Box::new(AnticipationIncome::default()),
        Report::MonthlyTotals => Box::new(MonthlyTotals::default()),
        Report::LateEntries => Box::new(LateEntries),
        Report::ChangedDays => Box::new(ChangedDays::default()),
        Report::Statement => Box::new(StatementReport::default()),
    }
}
