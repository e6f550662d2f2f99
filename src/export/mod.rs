//! Exports: the books of a ledger, or of all, as files that other programs read.
//!
//! Every format is made of one thing: the rows of the journal, one for each posting ([`Row`]). `jsonl` is that row, `csv` its columns;
//! `beancount`, `hledger` and `ledger` make one transaction of the rows that a Record has in a ledger, and add what those programs
//! check: an opening balance, running balances, closing balances.
//!
//! A day is a day in America/Sao_Paulo, and a row's day is that of its booking, which never goes back: rows are in the order of the
//! journal, the order of days is the same, and a day that is over never changes. The same request, at the same cut, gives the same
//! bytes.
//!
//! **Architecture Invariant:** no name, document, description or address of anybody is in an export, only ids, which is why none of
//! this needs the master key. What is free text all the same (an operator's name, a rail's id) is cleaned by one whitelist.
//!
//! # Memory
//! It grows with the accounts of the ledgers that are exported and with the ids of all ledgers, never with the Records.

pub mod command;
mod folder;
mod plain_text;
pub mod reporting;
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
pub use rows::Row;

/// What the books are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a row.
    Jsonl,
    /// The same columns, by RFC 4180.
    Csv,
    /// For people, as Brazilian spreadsheets read it. Not made by this release.
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

    /// True for the formats of plain-text accounting, whose files hold one ledger each: two owners have accounts of the same name.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Beancount | Self::Hledger | Self::Ledger)
    }
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One ledger, by its outside name (`M-…`, `R-…`, `P-…`); all of them when absent.
    pub ledger: Option<String>,
    /// As what.
    pub format: Format,
    /// The first day; from the beginning when absent.
    pub from: Option<NaiveDate>,
    /// The last day; through the cut when absent.
    pub to: Option<NaiveDate>,
}

impl Request {
    /// The name of a file with all of it.
    pub fn file_name(&self) -> String {
        format!("{}.{}", self.dated(self.ledger.as_deref().unwrap_or("all")), self.format.name())
    }

    /// A name, with the days that are asked for: another month does not take its place.
    pub fn dated(&self, name: &str) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => format!("{name}_{from}_{to}"),
            (Some(from), None) => format!("{name}_from_{from}"),
            (None, Some(to)) => format!("{name}_to_{to}"),
            (None, None) => name.to_owned(),
        }
    }
}

/// Which part of an export a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The rows, of whatever ledger.
    Rows,
    /// The beginning of a ledger's books.
    Begin(&'a str),
    /// A month of a ledger's books, by its first day.
    Month(&'a str, NaiveDate),
}

/// Where an export goes. The parts of a ledger come in order, and those of several ledgers interleaved.
pub trait Out {
    /// Takes the next text of a part.
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()>;
}

/// An export in one stream: fit for one ledger, or for rows.
pub struct Stream<W>(pub W);

impl<W: io::Write> Out for Stream<W> {
    fn write(&mut self, _: Part<'_>, text: &[u8]) -> io::Result<()> {
        self.0.write_all(text)
    }
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many postings.
    pub rows: u64,
    /// Sum of the debit side, centavos.
    pub debits: i128,
    /// Sum of the credit side, centavos.
    pub credits: i128,
}

/// Why an export did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A Record can't be read.
    #[error("Record {}: {error}", at.0)]
    Decode {
        /// Which.
        at: Sequence,
        /// Why.
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
    /// The ledger that is asked for, once a Record has named it.
    asked: Option<LedgerId>,
    ledgers: BTreeMap<LedgerId, LedgerBooks>,
    has_begun: bool,
    /// The last day that was seen.
    through: Option<NaiveDate>,
    exported: Exported,
    text: Vec<u8>,
}

/// One ledger of the export, so far.
struct LedgerBooks {
    /// Its outside name.
    name: String,
    accounts: BTreeMap<Account, AccountBooks>,
    /// Whether its books have begun: a file of plain text has a head.
    has_begun: bool,
    /// The month that is being written, by its first day.
    month: Option<NaiveDate>,
    /// The names of metadata that were declared.
    tags: Vec<&'static str>,
}

/// One account of the export, so far.
struct AccountBooks {
    name: String,
    /// Debits minus credits, centavos.
    balance: i128,
    is_declared: bool,
}

/// All that one Record moves in one ledger.
struct Movement<'a> {
    sequence: Sequence,
    booked_at: String,
    day: NaiveDate,
    record: &'a Record,
    /// Who decided.
    owner: String,
    /// Its lines, in order.
    lines: Vec<Line<'a>>,
}

/// One posting and where it stands.
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
    /// Begins an export.
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

    /// Takes up the id of a merchant or a recipient: for Records that are not read from the first on.
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

    /// Takes the next block of the journal, its Records through `cut`; false when nothing that follows is asked for.
    pub fn post_block(&mut self, block: &Block, cut: Sequence, out: &mut dyn Out) -> Result<bool, ExportError> {
        for (at, bytes) in (block.first.0..).map(Sequence).zip(&block.records).take_while(|(at, _)| *at <= cut) {
            let record = Record::decode(bytes).map_err(|error| ExportError::Decode { at, error })?;
            if !self.post(at, block.booked_at_ms, &record, out)? {
                return Ok(false);
            }
        }
        Ok(block.next() <= cut)
    }

    /// Takes the next Record of the journal; false when its day and all that follow are past the last one that is asked for.
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

    /// Notes that the journal goes on to this time at least, and gives its day.
    pub fn pass(&mut self, booked_at_ms: i64) -> NaiveDate {
        let day = day_of(booked_at_ms);
        self.through = self.through.max(Some(day));
        day
    }

    /// Ends the export.
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

    /// Before the first row: what stands at the head of the files, and the balances brought forward.
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
                let row = Row::of(books, movement, line);
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

/// Writes the head of a ledger's books, unless it is there.
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
    /// Where its next text belongs.
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

/// Makes of a text of somebody else's one that can stand anywhere: letters, digits, and `. _ @ + -` within; all else becomes `_`.
fn cleaned(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '@' | '+' | '-');
    text.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}
