//! Exporter: folds the Records of a journal, in order, into an export.

use std::collections::BTreeMap;
use std::io;

use actors::names::Names;
use actors::store::{Block, Sequence};
use chrono::NaiveDate;
use ledger::entry::{Posting, Side};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::record::{DecodeError, Record};
use ledger::source;

use super::books::{AccountBooks, LedgerBooks, Line, Movement, first_of_month};
use super::destination::{Out, Part};
use super::plain_text;
use super::request::{Format, Request};
use super::rows::{self, PostingRow};
use crate::http::timestamp::{day_of, with_milliseconds};

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

impl Exported {
    fn count(&mut self, posting: &Posting) {
        self.rows += 1;
        match posting.side {
            Side::Debit => self.debits += i128::from(posting.amount.0),
            Side::Credit => self.credits += i128::from(posting.amount.0),
        }
    }
}
