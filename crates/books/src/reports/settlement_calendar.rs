//! Settlement calendar: payments of the acquirer by due day, and money that becomes available to
//! merchants and recipients on it.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use derived::balance_files::BooksAsOf;
use derived::records::LoadError;
use ledger::{LedgerId, Receivables};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::receivables::bucket_cell;
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("date", "Vencimento", Kind::Day),
    column("bucket", "Prazo em dias", Kind::Word),
    sum("acquirer", "A receber da adquirente"),
    sum("merchants", "A liberar a lojistas"),
    sum("recipients", "A liberar a recebedores"),
    sum("net", "Diferença"),
    column("cumulative", "Diferença acumulada", Kind::Amount),
];

/// Fold of the settlement calendar.
#[derive(Default)]
pub(super) struct SettlementCalendar(Receivables);

impl Fold for SettlementCalendar {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn carry(&mut self, before: &mut BooksAsOf) -> Result<(), LoadError> {
        self.0 = before.take_receivables();
        Ok(())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        self.0.post(posted.record);
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut days: BTreeMap<NaiveDate, [i128; 3]> = BTreeMap::new();
        for open in self.0.open().filter(|open| !open.amounts.net.is_zero()) {
            let place = match open.holder {
                LedgerId::Platform(_) | LedgerId::System => 0,
                LedgerId::Merchant(_) => 1,
                LedgerId::Recipient(..) => 2,
            };
            days.entry(day_of(open.due.start().0)).or_default()[place] += i128::from(open.amounts.net.0);
        }
        let mut cumulative = 0;
        for (day, [acquirer, merchants, recipients]) in days {
            let net = acquirer - merchants - recipients;
            cumulative += net;
            rows.add(&[
                Cell::Day(day),
                bucket_cell(ended.to, day),
                Cell::Amount(acquirer),
                Cell::Amount(merchants),
                Cell::Amount(recipients),
                Cell::Amount(net),
                Cell::Amount(cumulative),
            ])?;
        }
        Ok(())
    }
}
