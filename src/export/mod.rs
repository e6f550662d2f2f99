//! Exports: the books of one ledger, or of all ledgers, as files for other programs.
//!
//! Every format is made of the same rows, one for each posting of the journal ([`PostingRow`]).
//! `jsonl` is that row, `csv` its columns. `beancount`, `hledger` and `ledger` make one transaction
//! of the rows that a Record has in a ledger, and add opening, running and closing balances, which
//! those programs check.
//!
//! A day is a day in America/Sao_Paulo. The day of a row is the day of its booking; bookings never
//! go back in time, so a day that is over never changes. The same request at the same cut gives the
//! same bytes.
//!
//! **Architecture Invariant:** an export holds ids, and no name, tax id, description or address of
//! a person. It therefore needs no master key. The free text that is left (an operator's name, a
//! rail's id) is cleaned by one list of allowed characters.
//!
//! Memory grows with the accounts of the exported ledgers and with the ids of all ledgers, not with
//! the Records.

pub mod command;
mod folder;
mod plain_text;
mod rows;

use std::collections::BTreeMap;
use std::io;

use actors::names::Names;
use actors::store::{Block, Sequence};
use chrono::{Datelike, NaiveDate};
use clap::ValueEnum;
use ledger::account::Account;
use ledger::entry::{Posting, Side};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::record::{DecodeError, Record};
use ledger::source::{self, Source};

use crate::http::timestamp::{day_of, with_milliseconds};

pub use folder::Folder;
use rows::PostingRow;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a row.
    Jsonl,
    /// The same columns, by RFC 4180.
    Csv,
    /// CSV as Brazilian spreadsheets read it. Not made by this release.
    #[value(hide = true)]
    CsvPtbr,
    /// Not made by this release.
    #[value(hide = true)]
    Parquet,
    /// Not made by this release.
    #[value(hide = true)]
    Xlsx,
    /// For beancount.
    Beancount,
    /// For hledger.
    Hledger,
    /// For ledger.
    Ledger,
    /// Not made by this release.
    #[value(hide = true)]
    Quickbooks,
    /// Not made by this release.
    #[value(hide = true)]
    Netsuite,
}

impl Format {
    /// The formats that this release makes.
    pub const MADE: [Self; 5] = [Self::Jsonl, Self::Csv, Self::Beancount, Self::Hledger, Self::Ledger];

    /// The format's name on the command line and in a query, also the ending of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::CsvPtbr => "csv-ptbr",
            Self::Parquet => "parquet",
            Self::Xlsx => "xlsx",
            Self::Beancount => "beancount",
            Self::Hledger => "hledger",
            Self::Ledger => "ledger",
            Self::Quickbooks => "quickbooks",
            Self::Netsuite => "netsuite",
        }
    }

    /// The format of a name, if this release makes it.
    pub fn made(name: &str) -> Option<Self> {
        Self::MADE.into_iter().find(|format| format.name() == name)
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/jsonl",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// Whether it is a format of plain-text accounting. Its files hold one ledger each, because
    /// accounts of two owners may have the same name.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Beancount | Self::Hledger | Self::Ledger)
    }
}

/// Request for an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One ledger, by its outside name (`M-…`, `R-…`, `P-…`); all of them when absent.
    pub ledger: Option<String>,
    /// Format of the files.
    pub format: Format,
    /// The first day; from the beginning when absent.
    pub from: Option<NaiveDate>,
    /// The last day; through the cut when absent.
    pub to: Option<NaiveDate>,
}

impl Request {
    /// File name of an export in one file.
    pub fn file_name(&self) -> String {
        format!("{}.{}", self.dated(self.ledger.as_deref().unwrap_or("all")), self.format.name())
    }

    /// A name with the requested days in it, so that another month gets another file.
    pub fn dated(&self, name: &str) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => format!("{name}_{from}_{to}"),
            (Some(from), None) => format!("{name}_from_{from}"),
            (None, Some(to)) => format!("{name}_to_{to}"),
            (None, None) => name.to_owned(),
        }
    }
}

/// Part of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Rows of all ledgers.
    Rows,
    /// Head of a ledger's books.
    Begin(&'a str),
    /// One month of a ledger's books: the ledger's name and the month's first day.
    Month(&'a str, NaiveDate),
}

/// Destination of an export. The parts of one ledger come in order; those of several ledgers are
/// interleaved.
pub trait Out {
    /// Writes the next text of a part.
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()>;
}

/// Destination that writes all parts to one stream: for rows, or for one ledger.
pub struct Stream<W>(pub W);

impl<W: io::Write> Out for Stream<W> {
    fn write(&mut self, _: Part<'_>, text: &[u8]) -> io::Result<()> {
        self.0.write_all(text)
    }
}

/// Totals of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of postings.
    pub rows: u64,
    /// Sum of the debit side, centavos.
    pub debits: i128,
    /// Sum of the credit side, centavos.
    pub credits: i128,
}

/// Why an export did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The destination failed.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A Record can't be read.
    #[error("Record {}: {error}", at.0)]
    Decode {
        /// Sequence of the Record.
        at: Sequence,
        /// The defect.
        error: DecodeError,
    },
    /// No Record names the ledger.
    #[error("there is no ledger {0}; ledgers are named M-…, R-… and P-…")]
    NoLedger(String),
}

/// Folds the Records of a journal, in order, into an export.
pub struct Exporter {
    request: Request,
    names: Names,
    /// The requested ledger, once a Record has named it.
    asked: Option<LedgerId>,
    ledgers: BTreeMap<LedgerId, LedgerBooks>,
    has_begun: bool,
    /// The last day so far.
    through: Option<NaiveDate>,
    exported: Exported,
    text: Vec<u8>,
}

/// State of one exported ledger.
struct LedgerBooks {
    /// Its outside name.
    name: String,
    accounts: BTreeMap<Account, AccountBooks>,
    /// Whether the head of its file was written; plain text only.
    has_begun: bool,
    /// The month that is being written, by its first day.
    month: Option<NaiveDate>,
    /// Names of metadata that were declared.
    tags: Vec<&'static str>,
}

/// State of one exported account.
struct AccountBooks {
    name: String,
    /// Debits minus credits, centavos.
    balance: i128,
    is_declared: bool,
}

/// Postings of one Record in one ledger.
struct Movement<'a> {
    sequence: Sequence,
    booked_at: String,
    day: NaiveDate,
    record: &'a Record,
    /// Outside name of the Record's owner.
    owner: String,
    /// The postings, in order.
    lines: Vec<Line<'a>>,
}

/// One posting and its place in the Record.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// The place of its entry in the Record, from 1.
    entry: usize,
    /// Its place in the entry, from 1.
    line: usize,
    source: &'a Source,
    posting: Posting,
}

impl Exporter {
    /// An export that has no Records yet.
    pub fn new(request: Request) -> Self {
        Self {
            request,
            names: Names::default(),
            asked: None,
            ledgers: BTreeMap::new(),
            has_begun: false,
            through: None,
            exported: Exported::default(),
            text: Vec::new(),
        }
    }

    /// Adds the id of a merchant or a recipient. Needed when the first Records are not exported.
    pub fn know(&mut self, ledger: LedgerId, id: ObjectId) {
        self.names.insert(ledger, id);
        let Some(asked) = self.request.ledger.as_deref() else { return };
        let shard = match ledger {
            LedgerId::Merchant(group) => Some(LedgerId::Platform(group)),
            _ => None,
        };
        let found = [Some(ledger), shard].into_iter().flatten().find(|ledger| self.names.of(*ledger) == asked);
        self.asked = found.or(self.asked);
    }

    /// Exports the next block of the journal through `cut`. False when no later Record is
    /// requested.
    pub fn post_block(&mut self, block: &Block, cut: Sequence, out: &mut dyn Out) -> Result<bool, ExportError> {
        for (at, bytes) in (block.first.0..).map(Sequence).zip(&block.records).take_while(|(at, _)| *at <= cut) {
            let record = Record::decode(bytes).map_err(|error| ExportError::Decode { at, error })?;
            if !self.post(at, block.booked_at_ms, &record, out)? {
                return Ok(false);
            }
        }
        Ok(block.next() <= cut)
    }

    /// Exports the next Record of the journal. False when its day is after the last requested one.
    pub fn post(
        &mut self,
        sequence: Sequence,
        booked_at_ms: i64,
        record: &Record,
        out: &mut dyn Out,
    ) -> io::Result<bool> {
        for (ledger, id) in Names::opened_by(record) {
            self.know(ledger, id);
        }
        let day = self.pass(booked_at_ms);
        if self.request.to.is_some_and(|to| day > to) {
            return Ok(false);
        }
        let is_before = self.request.from.is_some_and(|from| day < from);
        if is_before && !self.request.format.is_plain_text() {
            return Ok(true);
        }
        if !is_before {
            self.begin(day, out)?;
        }
        let mut of_ledgers: BTreeMap<LedgerId, Vec<usize>> = BTreeMap::new();
        for (place, entry) in record.entries.iter().enumerate().filter(|(_, entry)| self.takes(entry.ledger())) {
            of_ledgers.entry(entry.ledger()).or_default().push(place);
        }
        if of_ledgers.is_empty() {
            return Ok(true);
        }
        let sources = if is_before { Vec::new() } else { source::of_entries(record) };
        let (booked_at, owner) = (with_milliseconds(booked_at_ms), self.names.of(record.owner));
        for (ledger, places) in of_ledgers {
            let postings = places.iter().flat_map(|place| record.entries[*place].postings());
            if is_before {
                postings.for_each(|posting| self.account(ledger, posting).post(posting));
                continue;
            }
            postings.for_each(|posting| {
                self.account(ledger, posting);
                self.exported.count(posting);
            });
            let lines = places.iter().flat_map(|place| {
                let (entry, source) = (place + 1, &sources[*place]);
                let postings = (1..).zip(record.entries[*place].postings());
                postings.map(move |(line, posting)| Line { entry, line, source, posting: *posting })
            });
            let lines = lines.collect();
            let movement =
                Movement { sequence, booked_at: booked_at.clone(), day, record, owner: owner.clone(), lines };
            self.render(ledger, &movement, out)?;
        }
        Ok(true)
    }

    /// Notes that the journal reaches this time, and gives its day.
    pub fn pass(&mut self, booked_at_ms: i64) -> NaiveDate {
        let day = day_of(booked_at_ms);
        self.through = self.through.max(Some(day));
        day
    }

    /// Ends the export: writes the closing balances, and gives the totals.
    pub fn finish(mut self, out: &mut dyn Out) -> Result<Exported, ExportError> {
        if let (Some(asked), None) = (&self.request.ledger, self.asked) {
            return Err(ExportError::NoLedger(asked.clone()));
        }
        let last = self.request.to.into_iter().chain(self.through).min().max(self.request.from).unwrap_or_default();
        self.begin(self.request.from.unwrap_or(last), out)?;
        if self.request.format.is_plain_text() {
            for books in self.ledgers.values_mut() {
                self.text.clear();
                plain_text::close(self.request.format, books, last, &mut self.text);
                out.write(books.part(), &self.text)?;
            }
        }
        Ok(self.exported)
    }

    fn takes(&self, ledger: LedgerId) -> bool {
        self.request.ledger.is_none() || self.asked == Some(ledger)
    }

    fn ledger(&mut self, ledger: LedgerId) -> &mut LedgerBooks {
        let names = &self.names;
        self.ledgers.entry(ledger).or_insert_with(|| LedgerBooks {
            name: names.of(ledger),
            accounts: BTreeMap::new(),
            has_begun: false,
            month: None,
            tags: Vec::new(),
        })
    }

    fn account(&mut self, ledger: LedgerId, posting: &Posting) -> &mut AccountBooks {
        let group = ledger.group().unwrap_or(GroupNumber(0));
        self.ledger(ledger);
        let (names, books) = (&self.names, self.ledgers.get_mut(&ledger).expect("it was put there"));
        books.accounts.entry(posting.account).or_insert_with(|| AccountBooks {
            name: posting.account.name(group, |ledger| names.of(ledger)),
            balance: 0,
            is_declared: false,
        })
    }

    /// Writes the heads of the files and the balances brought forward, before the first row.
    fn begin(&mut self, day: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        match self.request.format {
            Format::Jsonl => return out.write(Part::Rows, b""),
            Format::Csv => return out.write(Part::Rows, rows::csv_head().as_bytes()),
            _ => {}
        }
        if let Some(asked) = self.asked {
            self.ledger(asked);
        }
        let Self { request, ledgers, text, .. } = self;
        ledgers.values_mut().try_for_each(|books| begin_books(request, books, day, text, out))
    }

    fn render(&mut self, ledger: LedgerId, movement: &Movement<'_>, out: &mut dyn Out) -> io::Result<()> {
        let Self { request, ledgers, text, .. } = self;
        let books = ledgers.get_mut(&ledger).expect("its accounts were looked at");
        text.clear();
        if !request.format.is_plain_text() {
            for line in &movement.lines {
                let row = PostingRow::of(books, movement, line);
                if request.format == Format::Csv { row.write_csv(text) } else { row.write_json(text)? }
            }
            return out.write(Part::Rows, text);
        }
        begin_books(request, books, movement.day, text, out)?;
        let month = first_of_month(movement.day);
        if books.month.is_some_and(|before| before != month) {
            plain_text::close(request.format, books, movement.day, text);
            out.write(books.part(), text)?;
            text.clear();
        }
        books.month = Some(month);
        plain_text::transaction(request.format, books, movement, text);
        out.write(books.part(), text)
    }
}

/// Writes the head of a ledger's books, once.
fn begin_books(
    request: &Request,
    books: &mut LedgerBooks,
    day: NaiveDate,
    text: &mut Vec<u8>,
    out: &mut dyn Out,
) -> io::Result<()> {
    if std::mem::replace(&mut books.has_begun, true) {
        return Ok(());
    }
    plain_text::begin(request.format, books, request.from.unwrap_or(day), text);
    out.write(Part::Begin(&books.name), text)?;
    text.clear();
    Ok(())
}

impl LedgerBooks {
    /// The part to which its next text belongs.
    fn part(&self) -> Part<'_> {
        self.month.map_or(Part::Begin(&self.name), |month| Part::Month(&self.name, month))
    }
}

impl Exported {
    fn count(&mut self, posting: &Posting) {
        self.rows += 1;
        match posting.side {
            Side::Debit => self.debits += i128::from(posting.amount.0),
            Side::Credit => self.credits += i128::from(posting.amount.0),
        }
    }
}

impl AccountBooks {
    fn post(&mut self, posting: &Posting) {
        match posting.side {
            Side::Debit => self.balance += i128::from(posting.amount.0),
            Side::Credit => self.balance -= i128::from(posting.amount.0),
        }
    }
}

fn first_of_month(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
}

/// Foreign text that is safe in every format: letters, digits and `. _ @ + -` stay, all else
/// becomes `_`.
fn cleaned(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '@' | '+' | '-');
    text.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}
