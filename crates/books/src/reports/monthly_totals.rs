//! Monthly totals of each merchant by payment method, for tax declarations. A month is that of the
//! effect: of the payment, as its acquirer or institution says.

use std::collections::BTreeMap;
use std::io;

use ledger::event::Event;
use ledger::fees::PaymentMethod;
use ledger::id::{GroupNumber, LedgerId};
use ledger::money::Centavos;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("month", "Mês", Kind::Text),
    column("merchant", "Lojista", Kind::Text),
    column("method", "Meio de pagamento", Kind::Text),
    count("count", "Cobranças pagas"),
    sum("gross", "Bruto"),
    sum("splits", "Repassado a recebedores"),
    sum("refunded", "Reembolsado"),
    sum("disputed", "Perdido em disputas"),
    sum("net", "Líquido"),
];

/// The same columns with the tax id of the merchant.
const COLUMNS_WITH_TAX_IDS: &[Column] = &[
    COLUMNS[0],
    COLUMNS[1],
    column("tax_id", "CPF ou CNPJ", Kind::Text),
    COLUMNS[2],
    COLUMNS[3],
    COLUMNS[4],
    COLUMNS[5],
    COLUMNS[6],
    COLUMNS[7],
    COLUMNS[8],
];

/// Looks up the tax id of a group's merchant; empty when the personal data was erased.
pub type TaxIds = Box<dyn Fn(GroupNumber) -> String + Send>;

/// Fold of the monthly totals.
pub(super) struct MonthlyTotals {
    totals: BTreeMap<(String, GroupNumber, &'static str), Totals>,
    tax_ids: Option<TaxIds>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    count: u64,
    gross: i128,
    splits: i128,
    refunded: i128,
    disputed: i128,
}

impl MonthlyTotals {
    pub(super) fn new(tax_ids: Option<TaxIds>) -> Self {
        Self { totals: BTreeMap::new(), tax_ids }
    }

    fn of(&mut self, month: &str, group: GroupNumber, method: PaymentMethod) -> &mut Totals {
        self.totals.entry((month.to_owned(), group, method.name())).or_default()
    }
}

impl Fold for MonthlyTotals {
    fn columns(&self) -> &'static [Column] {
        if self.tax_ids.is_some() { COLUMNS_WITH_TAX_IDS } else { COLUMNS }
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
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((month, group, method), totals) in self.totals {
            let Totals { count, gross, splits, refunded, disputed } = totals;
            let mut cells = vec![Cell::Text(month), Cell::Text(ended.names.of(LedgerId::Merchant(group)))];
            cells.extend(self.tax_ids.as_ref().map(|tax_id| Cell::Text(tax_id(group))));
            let net = gross - splits - refunded - disputed;
            cells.extend([Cell::text(method), Cell::Count(count)]);
            cells.extend([gross, splits, refunded, disputed, net].map(Cell::Centavos));
            rows.add(&cells)?;
        }
        Ok(())
    }
}
