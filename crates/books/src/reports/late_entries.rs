//! Late entries: postings that take effect in a month before that of their booking, for who closes
//! a month or has closed it.

use std::io;

use ledger::Balance;
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::general_ledger::ids;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("date", "Data", Kind::Day),
    column("sequence", "Sequência", Kind::Count).below(),
    column("effective_date", "Data de competência", Kind::Day),
    column("ledger", "Razão", Kind::Owner),
    column("account", "Conta", Kind::Text),
    column("account_name", "Nome da conta", Kind::Text).above(),
    column("event", "Histórico", Kind::Text),
    column("ids", "Identificadores", Kind::Text).below(),
    sum("debit", "Débito"),
    sum("credit", "Crédito"),
    column("partition", "Partição", Kind::Count).in_files(),
];

/// Fold of the late entries. It keeps nothing.
#[derive(Default)]
pub(super) struct LateEntries;

impl Fold for LateEntries {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn post(&mut self, posted: &PostedRecord<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let effective_at = posted.record.takes_effect_at();
        if effective_at.month() >= posted.booked_at.month() {
            return Ok(());
        }
        for (entry, source) in posted.entries() {
            for posting in entry.postings() {
                let of = posted.scope.shown(entry.ledger(), posting.account);
                let (ledger, account) = posted.scope.names(of, posted.names);
                let Balance { debits, credits } = posting.sums();
                rows.add(&[
                    Cell::Day(posted.day),
                    Cell::Count(posted.at.sequence.0),
                    Cell::Day(day_of(effective_at.0)),
                    Cell::Text(ledger),
                    Cell::Text(account),
                    Cell::text(of.1.name_ptbr()),
                    Cell::word(source.event, source.event_ptbr),
                    ids(&source),
                    Cell::Amount(debits),
                    Cell::Amount(credits),
                    Cell::Count(posted.at.partition.0.into()),
                ])?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &ReportSpan<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        Ok(())
    }
}
