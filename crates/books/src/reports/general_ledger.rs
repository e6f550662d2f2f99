//! General ledger: account by account, in the order of their names, the balance before the days,
//! each posting with its counter-accounts and the balance after it, and the balance at the end.
//!
//! There are more postings than fit into memory: they are sorted in a temporary file of the system.

use std::collections::BTreeSet;
use std::io;

use chrono::NaiveDate;
use ledger::source::Source;
use ledger::{Account, Balance, Entry, LedgerId};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};
use crate::export::{cleaned, head_ptbr};
use crate::sorted_sums::{SortedSums, key_of_account};

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("sequence", "Sequência", Kind::Count).below(),
    column("ledger", "Razão", Kind::Owner),
    column("account", "Conta", Kind::Text),
    column("account_name", "Nome da conta", Kind::Text).above(),
    column("event", "Histórico", Kind::Text),
    column("ids", "Identificadores", Kind::Text).below(),
    column("counter_accounts", "Contrapartidas", Kind::Text),
    sum("debit", "Débito"),
    sum("credit", "Crédito"),
    column("balance", "Saldo", Kind::Amount),
    column("partition", "Partição", Kind::Count).in_files(),
    column("effective_date", "Data de competência", Kind::Day),
];

/// Counter-accounts that are named; the others are *diversos*.
const COUNTER_ACCOUNTS_MAX: usize = 12;
/// Lines in memory, some 500 bytes each.
const HELD_MAX: usize = 8_192;
/// Between the texts of a posting in its key: no id or name has it.
const SEPARATOR: &str = "\u{1f}";

/// Fold of the general ledger.
pub(super) struct GeneralLedger {
    /// Account whose postings are listed, with those below it.
    account: Option<String>,
    /// The balance before the days and the postings of each account. A key begins with the account
    /// and the posting's place, so none is there twice; the sums are debit, credit and days.
    lines: SortedSums,
    /// How many postings there are.
    count: u64,
}

impl GeneralLedger {
    pub(super) fn new(account: Option<String>) -> Self {
        Self { account, lines: SortedSums::holding(HELD_MAX), count: 0 }
    }

    fn takes(&self, name: &str) -> bool {
        let Some(account) = &self.account else { return true };
        name.strip_prefix(account.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    fn post_entry(&mut self, posted: &PostedRecord<'_>, (entry, source): (&Entry, &Source)) -> io::Result<()> {
        let named: Vec<_> = entry
            .postings()
            .iter()
            .map(|posting| posted.scope.names(posted.scope.shown(entry.ledger(), posting.account), posted.names))
            .collect();
        for (posting, (ledger, account)) in entry.postings().iter().zip(&named) {
            if !self.takes(account) {
                continue;
            }
            let others = entry.postings().iter().zip(&named).filter(|(other, _)| other.side != posting.side);
            let (names, ptbr): (BTreeSet<_>, BTreeSet<_>) =
                others.map(|(other, (_, name))| (name.as_str(), other.account.name_ptbr())).unzip();
            let (sequence, partition) = (posted.at.sequence.0.to_string(), posted.at.partition.0.to_string());
            let [names, ptbr] = [(names, " "), (ptbr, "; ")].map(|(names, between)| joined(names, between));
            let [ids, ids_ptbr] = ids_and_ptbr(source);
            let texts = [&sequence, &partition, source.event, source.event_ptbr, &ids, &ids_ptbr, &names, &ptbr];
            let Balance { debits, credits } = posting.sums();
            self.count += 1;
            let number = (u64::from(days(posted.day)) << 36) + self.count;
            let key = line_key((ledger, account), number, &texts.join(SEPARATOR));
            let [booked, effective] = [posted.booked_at, posted.record.takes_effect_at()].map(|at| days(day_of(at.0)));
            self.lines.add(&key, [debits, credits, (i128::from(booked) << 32) | i128::from(effective)])?;
        }
        Ok(())
    }
}

/// Key of a line: it sorts by ledger and account, then by number, which begins with the day.
fn line_key((ledger, account): (&str, &str), number: u64, texts: &str) -> Vec<u8> {
    [&key_of_account(ledger, account)[..], b"\0", &number.to_be_bytes(), texts.as_bytes()].concat()
}

/// Ledger and account, number and texts of a key of [`line_key`].
fn line_of(key: &[u8]) -> Option<((&str, &str), u64, &str)> {
    let ends: Vec<usize> = key.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at).take(2).collect();
    let [ledger_end, account_end] = ends[..] else { return None };
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let (number, texts) = key[account_end + 1..].split_first_chunk()?;
    let names = (text(&key[..ledger_end])?, text(&key[ledger_end + 1..account_end])?);
    Some((names, u64::from_be_bytes(*number), text(texts)?))
}

/// Days since the beginning of our era, of which [`day`] makes the day again.
fn days(day: NaiveDate) -> u32 {
    chrono::Datelike::num_days_from_ce(&day).unsigned_abs()
}

fn day(days: i128) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(i32::try_from(days).ok()?)
}

/// The first names; how many more there are is left open.
fn joined(names: BTreeSet<&str>, between: &str) -> String {
    let more = (names.len() > COUNTER_ACCOUNTS_MAX).then_some("…");
    names.into_iter().take(COUNTER_ACCOUNTS_MAX).chain(more).collect::<Vec<_>>().join(between)
}

/// The ids of a source, each with its name: `txid=… refund=…`; and the same in Portuguese.
fn ids_and_ptbr(source: &Source) -> [String; 2] {
    let named = |name_of: fn(&'static str) -> &'static str| {
        let ids = source.objects.iter().map(|(name, id)| format!("{}={}", name_of(name), cleaned(id)));
        ids.collect::<Vec<_>>().join(" ")
    };
    [named(|name| name), named(head_ptbr)]
}

/// The cell of [`ids_and_ptbr`].
pub(super) fn ids(source: &Source) -> Cell {
    let [ids, ptbr] = ids_and_ptbr(source);
    Cell::Word(ids.into(), ptbr.into())
}

/// Account whose lines are being written.
struct OpenAccount {
    ledger: String,
    account: String,
    /// Debits minus credits, centavos.
    balance: i128,
}

impl OpenAccount {
    /// The row of its balance before the days, or at their end.
    fn balance_row(&self, day: NaiveDate, event: Cell, rows: &mut Rows<'_>) -> io::Result<()> {
        self.row(
            [Cell::Day(day), Cell::Empty],
            [event, Cell::Empty, Cell::Empty],
            [0, 0],
            [Cell::Empty, Cell::Empty],
            rows,
        )
    }

    fn row(
        &self,
        [day, sequence]: [Cell; 2],
        [event, ids, others]: [Cell; 3],
        [debit, credit]: [i128; 2],
        [partition, effective]: [Cell; 2],
        rows: &mut Rows<'_>,
    ) -> io::Result<()> {
        rows.add(&[
            day,
            sequence,
            Cell::text(&self.ledger),
            Cell::text(&self.account),
            Cell::account_name(&self.account),
            event,
            ids,
            others,
            Cell::Amount(debit),
            Cell::Amount(credit),
            Cell::Amount(self.balance),
            partition,
            effective,
        ])
    }

    /// Writes a posting; its texts are those of [`GeneralLedger::post_entry`].
    fn post(&mut self, texts: &str, [debit, credit, on]: [i128; 3], rows: &mut Rows<'_>) -> io::Result<()> {
        let texts: Vec<&str> = texts.split(SEPARATOR).collect();
        let [sequence, partition, event, event_ptbr, ids, ids_ptbr, names, ptbr] = texts[..] else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        self.balance += debit - credit;
        let count = |text: &str| text.parse().map_or(Cell::Empty, Cell::Count);
        let date = |days| day(days).map_or(Cell::Empty, Cell::Day);
        let word = |name: &str, ptbr: &str| Cell::Word(name.to_owned().into(), ptbr.to_owned().into());
        let texts = [word(event, event_ptbr), word(ids, ids_ptbr), word(names, ptbr)];
        let ends = [count(partition), date(on & i128::from(u32::MAX))];
        self.row([date(on >> 32), count(sequence)], texts, [debit, credit], ends, rows)
    }
}

fn opening() -> Cell {
    Cell::word("opening", "Saldo anterior")
}

fn closing() -> Cell {
    Cell::word("closing", "Saldo final")
}

impl Fold for GeneralLedger {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn opens(&self, _: LedgerId, _: Account) -> bool {
        true
    }

    fn begin(&mut self, openings: Openings, begun: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        for (of, balance) in openings.balances().filter(|(_, balance)| *balance != 0) {
            let (ledger, account) = begun.scope.names(of, begun.names);
            if self.takes(&account) {
                self.lines.add(&line_key((&ledger, &account), 0, ""), [balance, 0, 0])?;
            }
        }
        Ok(())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        posted.entries().iter().try_for_each(|(entry, source)| self.post_entry(posted, (*entry, source)))
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut open: Option<OpenAccount> = None;
        for line in self.lines.rows()? {
            let (key, sums) = line?;
            let ((ledger, account), number, texts) = line_of(&key).ok_or(io::ErrorKind::InvalidData)?;
            let mut of = match open.take() {
                Some(of) if (of.ledger.as_str(), of.account.as_str()) == (ledger, account) => of,
                ended_account => {
                    if let Some(of) = ended_account {
                        of.balance_row(ended.to, closing(), rows)?;
                    }
                    let balance = if number == 0 { sums[0] } else { 0 };
                    let of = OpenAccount { ledger: ledger.to_owned(), account: account.to_owned(), balance };
                    of.balance_row(ended.from, opening(), rows)?;
                    of
                }
            };
            if number > 0 {
                of.post(texts, sums, rows)?;
            }
            open = Some(of);
        }
        open.map_or(Ok(()), |of| of.balance_row(ended.to, closing(), rows))
    }
}
