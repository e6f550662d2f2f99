//! Plain-text accounting: one transaction for the postings of a Record in a ledger, in the syntax
//! of beancount, hledger and ledger.
//!
//! Those programs check the file when they read it. Every amount is written, with two decimals.
//! beancount asserts all balances on the day after each month and after the last day; `~ 0 BRL`
//! makes that exact, since beancount tolerates a centavo by default. hledger and ledger assert the
//! running balance with every posting, and all balances at the end, so that a removed posting is
//! noticed.
//!
//! Balances brought forward stand on the day before the first one, so that a program which asks for
//! the span shows its movement alone. Each is a transaction of two postings against
//! [`OPENING_ACCOUNT`], which comes to zero, and has a tag by which all can be left out.

use std::io;

use chrono::{Months, NaiveDate};
use ledger::source::Source;

use super::destination::{Out, Part};
use super::ledger_books::{AccountBooks, LedgerBooks, LedgerMovement, cleaned, first_of_month};
use super::request::{Format, Request};
use super::writer::{Ledgers, Writer};
use crate::error::BooksError;

/// Counter-account of balances brought forward; of no ledger's chart.
const OPENING_ACCOUNT: &str = "Equity:OpeningBalances";
/// Tag of balances brought forward, in hledger and ledger and in beancount.
const OPENING_TAGS: [&str; 2] = ["brought_forward", "brought-forward"];

/// Writer of plain-text accounting.
pub(super) struct PlainText {
    format: Format,
    /// The day before the first one that was requested.
    before: Option<NaiveDate>,
    text: Vec<u8>,
}

impl PlainText {
    pub(super) fn new(request: &Request) -> Self {
        let before = request.from.and_then(|from| from.pred_opt());
        Self { format: request.format, before, text: Vec::new() }
    }

    /// Writes the head of a ledger's books, once.
    fn begin_books(&mut self, books: &mut LedgerBooks, day: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        if std::mem::replace(&mut books.has_begun, true) {
            return Ok(());
        }
        self.text.clear();
        begin(self.format, books, self.before.unwrap_or(day), &mut self.text);
        out.write(Part::Begin(&books.name), &self.text)?;
        let Some(before) = self.before else { return Ok(()) };
        self.text.clear();
        bring_forward(self.format, books, before, &mut self.text);
        if self.text.is_empty() { Ok(()) } else { out.write(Part::Opening(&books.name), &self.text) }
    }

    /// Asserts the balances at the end of the ledger's current month, or of `last`.
    fn close(&mut self, books: &LedgerBooks, last: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        self.text.clear();
        close(self.format, books, last, &mut self.text);
        out.write(books.part(), &self.text)
    }
}

impl Writer for PlainText {
    fn begin(&mut self, ledgers: &mut Ledgers, first: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        ledgers.values_mut().try_for_each(|books| self.begin_books(books, first, out))
    }

    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        self.begin_books(books, movement.day, out)?;
        let month = first_of_month(movement.day);
        if books.month.is_some_and(|before| before != month) {
            self.close(books, movement.day, out)?;
        }
        books.month = Some(month);
        self.text.clear();
        transaction(self.format, books, movement, &mut self.text);
        out.write(books.part(), &self.text)
    }

    fn finish(
        mut self: Box<Self>,
        ledgers: &mut Ledgers,
        (last, _): (NaiveDate, i64),
        out: &mut dyn Out,
    ) -> Result<(), BooksError> {
        Ok(ledgers.values().try_for_each(|books| self.close(books, last, out))?)
    }
}

/// Writes the head of a ledger's books, which begin on a day.
fn begin(format: Format, books: &LedgerBooks, day: NaiveDate, text: &mut Vec<u8>) {
    let name = &books.name;
    match format {
        Format::Beancount => push(
            text,
            &format!(
                ";; The books of {name}. Days are days in America/Sao_Paulo.\noption \"title\" \"{name}\"\noption \
                 \"operating_currency\" \"BRL\"\n\n{day} commodity BRL\n"
            ),
        ),
        _ => push(
            text,
            &format!(
                "; The books of {name}. Days are days in America/Sao_Paulo.\ncommodity BRL\n    format 1000.00 BRL\n"
            ),
        ),
    }
}

/// Writes the balances at the end of the day before the first one: every account so far is
/// declared, also those at zero, so that months can follow each other in one file.
fn bring_forward(format: Format, books: &mut LedgerBooks, day: NaiveDate, text: &mut Vec<u8>) {
    if books.accounts.is_empty() {
        return;
    }
    for account in books.accounts.values_mut() {
        declare(format, account, day, text);
    }
    let forward: Vec<_> = books.accounts.values().filter(|account| account.balance != 0).collect();
    if forward.is_empty() {
        return;
    }
    match format {
        Format::Beancount => push(text, &format!("\n{day} open {OPENING_ACCOUNT} BRL\n")),
        _ => push(text, &format!("\naccount {OPENING_ACCOUNT}\n")),
    }
    if format == Format::Ledger {
        push(text, &format!("\ntag {}\n", OPENING_TAGS[0]));
    }
    let mut sum = 0;
    for AccountBooks { name, balance, .. } in forward {
        sum -= balance;
        match format {
            Format::Beancount => push(text, &format!("\n{day} * \"brought forward\" #{}\n", OPENING_TAGS[1])),
            _ => push(text, &format!("\n{day} * brought forward\n    ; {}: {day}\n", OPENING_TAGS[0])),
        }
        push(text, &posting(format, name, *balance, *balance));
        push(text, &posting(format, OPENING_ACCOUNT, -balance, sum));
    }
}

/// Writes the transaction of a movement.
fn transaction(format: Format, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, text: &mut Vec<u8>) {
    let mut sources: Vec<&Source> = Vec::new();
    for line in &movement.lines {
        if !sources.contains(&line.source) {
            sources.push(line.source);
        }
        let account = books.accounts.get_mut(&line.posting.account).expect("it was looked at");
        declare(format, account, movement.day, text);
    }
    let mut metadata = vec![("sequence", movement.at.sequence.0.to_string()), ("owner", movement.owner.to_owned())];
    if movement.at.partition.0 > 0 {
        metadata.push(("partition", movement.at.partition.0.to_string()));
    }
    metadata.push(("effective_date", movement.effective_date.to_owned()));
    for (name, value) in sources.iter().flat_map(|source| &source.objects) {
        add_value(&mut metadata, name, cleaned(value).into_owned());
    }
    metadata.extend(movement.record.operator.as_deref().map(|name| ("operator", cleaned(name).into_owned())));
    if format == Format::Ledger {
        for (name, _) in &metadata {
            if !books.tags.contains(name) {
                books.tags.push(*name);
                push(text, &format!("\ntag {name}\n"));
            }
        }
    }
    let events: Vec<_> = sources.iter().map(|source| source.event).collect();
    let links = links(&movement.name(), &sources);
    push(text, &head(format, movement.day, Some((&movement.name(), &links)), &events.join(" ")));
    for (name, value) in metadata {
        match (format, name) {
            (Format::Beancount, "sequence" | "partition" | "effective_date") => {
                push(text, &format!("  {name}: {value}\n"))
            }
            (Format::Beancount, _) => push(text, &format!("  {name}: \"{value}\"\n")),
            _ => push(text, &format!("    ; {name}: {value}\n")),
        }
    }
    for line in &movement.lines {
        let account = books.accounts.get_mut(&line.posting.account).expect("it was looked at");
        account.post(&line.posting);
        push(text, &posting(format, &account.name, line.posting.sums().net(), account.balance));
    }
}

/// Adds a value to the metadata of a transaction, where each name stands once and each value of it
/// too: beancount refuses a file in which one has a name twice. Several facts of a Record may be
/// about one object.
fn add_value(metadata: &mut Vec<(&'static str, String)>, name: &'static str, value: String) {
    match metadata.iter_mut().find(|(known, _)| *known == name) {
        Some((_, values)) if values.split(' ').any(|known| known == value) => {}
        Some((_, values)) => values.extend([" ", &value]),
        None => metadata.push((name, value)),
    }
}

/// Asserts every balance at the end of the current month or of `last`, whichever comes first.
fn close(format: Format, books: &LedgerBooks, last: NaiveDate, text: &mut Vec<u8>) {
    let next_month = books.month.and_then(|month| first_of_month(month).checked_add_months(Months::new(1)));
    let next = [last.succ_opt(), next_month].into_iter().flatten().min().unwrap_or(last);
    let accounts: Vec<_> = books.accounts.values().filter(|account| account.is_declared).collect();
    if accounts.is_empty() {
        return;
    }
    if format == Format::Beancount {
        push(text, "\n");
        for AccountBooks { name, balance, .. } in accounts {
            push(text, &format!("{next} balance {name}  {} ~ 0 BRL\n", decimal(*balance)));
        }
        return;
    }
    push(text, &head(format, next.pred_opt().unwrap_or(next), None, "balances"));
    for AccountBooks { name, balance, .. } in accounts {
        push(text, &posting(format, name, 0, *balance));
    }
}

/// Declares an account before its first use.
fn declare(format: Format, account: &mut AccountBooks, day: NaiveDate, text: &mut Vec<u8>) {
    if std::mem::replace(&mut account.is_declared, true) {
        return;
    }
    match format {
        Format::Beancount => push(text, &format!("\n{day} open {} BRL\n", account.name)),
        _ => push(text, &format!("\naccount {}\n", account.name)),
    }
}

/// The first line of a transaction; of a Record with its name and the links of beancount.
fn head(format: Format, day: NaiveDate, record: Option<(&str, &str)>, narration: &str) -> String {
    let (name, links) = record.unwrap_or_default();
    match format {
        Format::Beancount => format!("\n{day} * \"{narration}\"{links}\n"),
        _ if name.is_empty() => format!("\n{day} * {narration}\n"),
        _ => format!("\n{day} * ({name}) {narration}\n"),
    }
}

/// Links of beancount: the Record and its charges. Programs that look for duplicates read links
/// and no metadata.
fn links(name: &str, sources: &[&Source]) -> String {
    let ids = sources.iter().flat_map(|source| &source.objects);
    let mut txids: Vec<_> = ids.filter(|(name, _)| *name == Source::OBJECTS[0]).map(|(_, id)| id).collect();
    txids.sort();
    txids.dedup();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let link = |id: &String| format!(" ^{}", id.replace(|letter| !is_plain(letter), "_"));
    format!(" ^{name}{}", txids.into_iter().map(link).collect::<String>())
}

/// A posting, with the running balance where the format can assert it.
fn posting(format: Format, account: &str, amount: i128, balance: i128) -> String {
    match format {
        Format::Beancount => format!("  {account}  {} BRL\n", decimal(amount)),
        _ => format!("    {account}  {} BRL = {} BRL\n", decimal(amount), decimal(balance)),
    }
}

/// Centavos as reais with two decimals: `-1234.50`.
fn decimal(centavos: i128) -> String {
    let (sign, size) = (if centavos < 0 { "-" } else { "" }, centavos.unsigned_abs());
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

fn push(text: &mut Vec<u8>, more: &str) {
    text.extend_from_slice(more.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_metadata_stands_once_with_each_of_its_values() {
        let mut metadata = vec![("owner", "M-1".to_owned())];
        for (name, value) in [("txid", "a1"), ("dispute", "d"), ("txid", "a1"), ("txid", "a"), ("txid", "a")] {
            add_value(&mut metadata, name, value.to_owned());
        }
        let expected = [("owner", "M-1"), ("txid", "a1 a"), ("dispute", "d")];
        assert_eq!(metadata, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn an_amount_has_two_decimals_always() {
        for (centavos, expected) in [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (100, "1.00"), (-123_450, "-1234.50")] {
            assert_eq!(decimal(centavos), expected);
        }
    }
}
