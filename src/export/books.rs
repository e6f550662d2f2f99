//! State of an export: the ledgers and accounts so far, and the postings of the current Record.

use std::collections::BTreeMap;

use actors::store::Sequence;
use chrono::{Datelike, NaiveDate};
use ledger::account::Account;
use ledger::entry::{Posting, Side};
use ledger::record::Record;
use ledger::source::Source;

use super::destination::Part;

/// State of one exported ledger.
pub(super) struct LedgerBooks {
    /// Its outside name.
    pub(super) name: String,
    pub(super) accounts: BTreeMap<Account, AccountBooks>,
    /// Whether the head of its file was written; plain text only.
    pub(super) has_begun: bool,
    /// The month that is being written, by its first day.
    pub(super) month: Option<NaiveDate>,
    /// Names of metadata that were declared.
    pub(super) tags: Vec<&'static str>,
}

/// State of one exported account.
pub(super) struct AccountBooks {
    pub(super) name: String,
    /// Debits minus credits, centavos.
    pub(super) balance: i128,
    pub(super) is_declared: bool,
}

/// Postings of one Record in one ledger.
pub(super) struct Movement<'a> {
    pub(super) sequence: Sequence,
    pub(super) booked_at: String,
    pub(super) day: NaiveDate,
    pub(super) record: &'a Record,
    /// Outside name of the Record's owner.
    pub(super) owner: String,
    /// The postings, in order.
    pub(super) lines: Vec<Line<'a>>,
}

/// One posting and its place in the Record.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// The place of its entry in the Record, from 1.
    pub(super) entry: usize,
    /// Its place in the entry, from 1.
    pub(super) line: usize,
    pub(super) source: &'a Source,
    pub(super) posting: Posting,
}

impl LedgerBooks {
    /// The part to which its next text belongs.
    pub(super) fn part(&self) -> Part<'_> {
        self.month.map_or(Part::Begin(&self.name), |month| Part::Month(&self.name, month))
    }
}

impl AccountBooks {
    pub(super) fn post(&mut self, posting: &Posting) {
        match posting.side {
            Side::Debit => self.balance += i128::from(posting.amount.0),
            Side::Credit => self.balance -= i128::from(posting.amount.0),
        }
    }
}

pub(super) fn first_of_month(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
}

/// Foreign text that is safe in every format: letters, digits and `. _ @ + -` stay, all else
/// becomes `_`.
pub(super) fn cleaned(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '@' | '+' | '-');
    text.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}
