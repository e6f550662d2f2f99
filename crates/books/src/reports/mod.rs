//! Reports: tables that are folded from the journal, for accountants and operators.
//!
//! Each report is a fold over Records that gives typed rows ([`table`]); one renderer a format
//! writes them ([`render`]). A report states its cut: the last Record that it counts and the hash
//! of that Record's block, which covers all blocks before. The same request at the same cut gives
//! the same bytes, in every format.
//!
//! A day is a day in America/Sao_Paulo, of the booking. Bookings never go back in time, so a report
//! of days that are over never changes.
//!
//! **Architecture Invariant:** a report decides nothing and reads nothing but Records. It holds ids
//! and no personal data, and needs no master key. Names and tax ids of owners come from its caller
//! ([`ReportContext`]).
//!
//! Memory grows with open items and, save for the trial balance, with accounts; not with Records.
//! Rows are written as they are made; the format `table` holds them.

mod anticipation_income;
mod changed_days;
mod context;
mod daily_close;
mod fees;
mod fold;
mod general_ledger;
mod late_entries;
mod maker;
mod monthly_totals;
mod openings;
mod receivables;
mod render;
mod request;
mod settlement_calendar;
mod statement;
mod table;
mod trial_balance;

pub use context::{Owners, ReportContext, ReportOwner};
pub use maker::{ReportMaker, ReportSummary};
pub use request::{DayOf, Report, ReportFormat, ReportRequest, WrongReport};
