//! State of an export: the ledgers and accounts so far, and the postings of the current Record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};
use ledger::source::Source;
use ledger::{Account, Balance, CardBrand, LedgerId, Posting, Record};
use store::cut::Position;

use super::destination::Part;

/// State of one exported ledger.
pub(super) struct LedgerBooks {
    pub(super) ledger: LedgerId,
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
    /// The balance before the first requested day.
    pub(super) opening: i128,
    /// Both sides since then.
    pub(super) moved: Balance,
    pub(super) is_declared: bool,
}

/// Postings of one Record in one ledger.
pub(super) struct LedgerMovement<'a> {
    pub(super) at: Position,
    /// Time of the booking, in milliseconds since the Unix epoch.
    pub(super) booked_at_ms: i64,
    /// The same: RFC 3339, milliseconds, `Z`.
    pub(super) booked_at: &'a str,
    /// Time of the effect, in milliseconds since the Unix epoch.
    pub(super) effective_at_ms: i64,
    /// Whether it takes effect in a month that was closed before it was booked.
    pub(super) is_late: bool,
    /// Time of the effect, in the same form.
    pub(super) effective_at: &'a str,
    /// Day of the booking in America/Sao_Paulo, and its text.
    pub(super) day: NaiveDate,
    pub(super) date: &'a str,
    /// Day of the effect in America/Sao_Paulo, and its text.
    pub(super) effective_day: NaiveDate,
    pub(super) effective_date: &'a str,
    pub(super) record: &'a Record,
    /// Brand of the card that the Record captured, if it did.
    pub(super) brand: Option<CardBrand>,
    /// Outside name of the Record's owner.
    pub(super) owner: &'a str,
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
    /// Labels of what its entry is about, if the export has labels.
    pub(super) labels: [Option<&'a str>; 3],
    pub(super) posting: Posting,
}

impl LedgerMovement<'_> {
    /// Name of the Record: its sequence, and before it its partition where that is not 0.
    pub(super) fn name(&self) -> String {
        record_name(self.at)
    }
}

impl LedgerBooks {
    /// The part to which its next text belongs.
    pub(super) fn part(&self) -> Part<'_> {
        self.month.map_or(Part::Begin(&self.name), |month| Part::Month(&self.name, month))
    }
}

impl AccountBooks {
    /// Adds a posting before the first requested day.
    pub(super) fn open(&mut self, posting: &Posting) {
        self.post(posting);
        self.opening = self.balance;
    }

    /// Adds a posting of the requested days to the totals.
    pub(super) fn count(&mut self, posting: &Posting) {
        self.moved.post(posting);
    }

    pub(super) fn post(&mut self, posting: &Posting) {
        self.balance += posting.sums().net();
    }
}

/// Name of a Record in documents of other programs: its sequence, and before it its partition
/// where that is not 0.
fn record_name(at: Position) -> String {
    match at.partition.0 {
        0 => at.sequence.0.to_string(),
        partition => format!("{partition}-{}", at.sequence.0),
    }
}

pub(super) fn first_of_month(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
}

/// Foreign text that is safe in every format: letters, digits and `. _ @ + -` stay, all else
/// becomes `_`.
pub(crate) fn cleaned(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '@' | '+' | '-');
    let is_ascii = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'@' | b'+' | b'-');
    // Without an early end, so that it is done for many bytes at once.
    if text.bytes().fold(true, |is_plain, byte| is_plain & is_ascii(byte)) || text.chars().all(is_plain) {
        return text.into();
    }
    text.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}
