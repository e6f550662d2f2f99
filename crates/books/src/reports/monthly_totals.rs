//! Monthly totals of each merchant by payment method, for tax declarations. A month is that of the
//! effect: of the payment, as its acquirer or institution says.

use std::collections::BTreeMap;
use std::io;

use ledger::{Centavos, Event, GroupNumber, LedgerId, PaymentMethod};

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::receivables::method_ptbr;
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("month", "Mês", Kind::Word),
    column("merchant", "Lojista", Kind::Owner),
    column("method", "Meio de pagamento", Kind::Word),
    count("count", "Cobranças pagas"),
    sum("gross", "Bruto"),
    sum("splits", "Repassado a recebedores"),
    sum("refunded", "Reembolsado"),
    sum("disputed", "Perdido em contestações"),
    sum("net", "Líquido"),
];

/// Fold of the monthly totals.
#[derive(Default)]
pub(super) struct MonthlyTotals(BTreeMap<(String, GroupNumber, &'static str), Totals>);

#[derive(Clone, Copy, Default)]
struct Totals {
    count: u64,
    gross: i128,
    splits: i128,
    refunded: i128,
    disputed: i128,
}

impl MonthlyTotals {
    fn of(&mut self, month: &str, group: GroupNumber, method: PaymentMethod) -> &mut Totals {
        self.0.entry((month.to_owned(), group, method.name())).or_default()
    }
}

impl Fold for MonthlyTotals {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        let Some(group) = posted.record.owner.group() else { return Ok(()) };
        let month = posted.record.takes_effect_at().month().to_string();
        let wide = |amount: Centavos| i128::from(amount.0);
        for event in &posted.record.events {
            match event {
                Event::CardCaptured { terms, .. } | Event::PixPaid { terms, .. } => {
                    let totals = self.of(&month, group, terms.method);
                    totals.count += 1;
                    totals.gross += wide(terms.amount);
                    totals.splits += wide(terms.splits_total());
                }
                Event::RefundApproved { method, amount, take_backs, .. } => {
                    let totals = self.of(&month, group, *method);
                    totals.refunded += wide(*amount);
                    totals.splits -= wide(take_backs.iter().map(|part| part.amount).sum());
                }
                Event::RefundFailed { method, amount, give_backs, .. } => {
                    let totals = self.of(&month, group, *method);
                    totals.refunded -= wide(*amount);
                    totals.splits += wide(give_backs.iter().map(|part| part.to_pending + part.to_available).sum());
                }
                Event::DisputeAccepted { method, amount, .. } => {
                    self.of(&month, group, *method).disputed += wide(*amount);
                }
                Event::DisputeReversed { method, amount, .. } => {
                    self.of(&month, group, *method).disputed -= wide(*amount);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((month, group, method), totals) in self.0 {
            if !ended.scope.takes(LedgerId::Merchant(group)) {
                continue;
            }
            let Totals { count, gross, splits, refunded, disputed } = totals;
            let mut cells = vec![Cell::Text(month), Cell::Text(ended.names.of(LedgerId::Merchant(group)))];
            let net = gross - splits - refunded - disputed;
            cells.extend([Cell::word(method, method_ptbr(method)), Cell::Count(count)]);
            cells.extend([gross, splits, refunded, disputed, net].map(Cell::Amount));
            rows.add(&cells)?;
        }
        Ok(())
    }
}
