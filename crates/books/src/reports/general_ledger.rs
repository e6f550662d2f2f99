//! General ledger: each posting in the order of the journal, with its counter-accounts and the
//! balance of its account after it.

use std::collections::BTreeMap;
use std::io;

use ledger::account::Account;
use ledger::entry::{Entry, Side};
use ledger::id::LedgerId;
use ledger::source::{self, Source};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::openings::Openings;
use super::table::{Cell, Column, Kind, Rows, column, sum};
use crate::export::cleaned;

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("sequence", "Sequência", Kind::Count),
    column("ledger", "Razão", Kind::Text),
    column("account", "Conta", Kind::Text),
    column("event", "Evento", Kind::Text),
    column("ids", "Identificadores", Kind::Text),
    column("counter_accounts", "Contrapartidas", Kind::Text),
    sum("debit", "Débito"),
    sum("credit", "Crédito"),
    column("balance", "Saldo", Kind::Centavos),
    column("partition", "Partição", Kind::Count),
    column("effective_date", "Data efetiva", Kind::Day),
];

/// Name of the row that brings a balance forward.
const OPENING: &str = "opening";

/// Fold of the general ledger.
pub(super) struct GeneralLedger {
    /// Account whose postings are listed, with those below it.
    account: Option<String>,
    balances: BTreeMap<(LedgerId, Account), i128>,
}

impl GeneralLedger {
    pub(super) fn new(account: Option<String>) -> Self {
        Self { account, balances: BTreeMap::new() }
    }

    fn takes(&self, name: &str) -> bool {
        let Some(account) = &self.account else { return true };
        name.strip_prefix(account.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    fn post_entry(
        &mut self,
        posted: &PostedRecord<'_>,
        (entry, source): (&Entry, &Source),
        rows: &mut Rows<'_>,
    ) -> io::Result<()> {
        let named: Vec<_> = entry
            .postings()
            .iter()
            .map(|posting| {
                let of = posted.scope.shown(entry.ledger(), posting.account);
                (of, posted.scope.names(of, posted.names))
            })
            .collect();
        for (posting, (of, (ledger, account))) in entry.postings().iter().zip(&named) {
            let amount = i128::from(posting.amount.0);
            let (debit, credit) = if posting.side == Side::Debit { (amount, 0) } else { (0, amount) };
            let balance = self.balances.entry(*of).or_default();
            *balance += debit - credit;
            let balance = *balance;
            if !self.takes(account) {
                continue;
            }
            let others = entry.postings().iter().zip(&named).filter(|(other, _)| other.side != posting.side);
            let mut others: Vec<&str> = others.map(|(_, (_, (_, name)))| name.as_str()).collect();
            others.dedup();
            rows.add(&[
                Cell::Day(posted.day),
                Cell::Count(posted.at.sequence.0),
                Cell::Text(ledger.clone()),
                Cell::Text(account.clone()),
                Cell::text(source.event),
                Cell::Text(ids(source)),
                Cell::Text(others.join(" ")),
                Cell::Centavos(debit),
                Cell::Centavos(credit),
                Cell::Centavos(balance),
                Cell::Count(posted.at.partition.0.into()),
                Cell::Day(day_of(posted.record.takes_effect_at().0)),
            ])?;
        }
        Ok(())
    }
}

/// The ids of a source, each with its name: `txid=… refund=…`.
pub(super) fn ids(source: &Source) -> String {
    let ids: Vec<_> = source.objects.iter().map(|(name, id)| format!("{name}={}", cleaned(id))).collect();
    ids.join(" ")
}

impl Fold for GeneralLedger {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn opens(&self, _: LedgerId, _: Account) -> bool {
        true
    }

    fn begin(&mut self, openings: Openings, begun: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        self.balances = openings.balances().filter(|(_, balance)| *balance != 0).collect();
        let mut named: Vec<_> =
            self.balances.iter().map(|(of, balance)| (begun.scope.names(*of, begun.names), *balance)).collect();
        named.retain(|((_, account), _)| self.takes(account));
        named.sort();
        for ((ledger, account), balance) in named {
            rows.add(&[
                Cell::Day(begun.from),
                Cell::Empty,
                Cell::Text(ledger),
                Cell::Text(account),
                Cell::text(OPENING),
                Cell::Empty,
                Cell::Empty,
                Cell::Centavos(0),
                Cell::Centavos(0),
                Cell::Centavos(balance),
                Cell::Empty,
                Cell::Empty,
            ])?;
        }
        Ok(())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        if !posted.record.entries.iter().any(|entry| posted.scope.takes(entry.ledger())) {
            return Ok(());
        }
        let sources = source::of_entries(posted.record);
        for of in posted.record.entries.iter().zip(&sources).filter(|(entry, _)| posted.scope.takes(entry.ledger())) {
            self.post_entry(posted, of, rows)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        Ok(())
    }
}
