//! Receivables by due date: what is due to whom at the end of a day, by arrangement and age.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use derived::balance_files::BooksAsOf;
use derived::names::Names;
use derived::records::LoadError;
use ledger::receivables::{Receivable, ReceivableAmounts};
use ledger::{CardBrand, PaymentMethod, Receivables, SettledObject};
use wire::timestamp::day_of;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("holder", "Titular", Kind::Owner),
    column("method", "Meio de pagamento", Kind::Word),
    column("brand", "Bandeira", Kind::Word),
    column("object", "Parcela", Kind::Word),
    column("due_date", "Vencimento", Kind::Day),
    column("bucket", "Prazo em dias", Kind::Word),
    count("count", "Quantidade"),
    sum("gross", "Bruto"),
    sum("mdr", "MDR"),
    sum("fees", "Outras tarifas"),
    sum("anticipated", "Antecipado"),
    sum("net", "Líquido"),
];

/// Fold of the receivables.
#[derive(Default)]
pub(super) struct ReceivablesReport(Receivables);

/// Receivables that stand in one row.
type Key = (String, &'static str, &'static str, String, NaiveDate);

impl Fold for ReceivablesReport {
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
        let mut sums: BTreeMap<Key, (u64, [i128; 5])> = BTreeMap::new();
        for open in self.0.open().filter(|open| ended.scope.takes(open.holder)) {
            let (count, amounts) = sums.entry(key(&open, ended.names)).or_default();
            let ReceivableAmounts { gross, mdr, fees, anticipated, net } = open.amounts;
            *count += 1;
            for (sum, amount) in amounts.iter_mut().zip([gross, mdr, fees, anticipated, net]) {
                *sum += i128::from(amount.0);
            }
        }
        for ((holder, method, brand, object, due), (count, amounts)) in sums {
            let [gross, mdr, fees, anticipated, net] = amounts.map(Cell::Amount);
            let bucket = bucket_cell(ended.to, due);
            let (method, brand) = (Cell::word(method, method_ptbr(method)), Cell::text(brand));
            let (holder, object, due, count) =
                (Cell::Text(holder), object_cell(object), Cell::Day(due), Cell::Count(count));
            rows.add(&[holder, method, brand, object, due, bucket, count, gross, mdr, fees, anticipated, net])?;
        }
        Ok(())
    }
}

fn key(open: &Receivable, names: &Names) -> Key {
    let object = match open.object {
        None => String::new(),
        Some(SettledObject::Installment(number)) => number.to_string(),
        Some(SettledObject::Refund(_)) => "refund".to_owned(),
        Some(SettledObject::Dispute(_)) => "dispute".to_owned(),
    };
    let method = open.arrangement.method.map(PaymentMethod::name).unwrap_or_default();
    let brand = open.arrangement.brand.map(CardBrand::name).unwrap_or_default();
    (names.of(open.holder), method, brand, object, day_of(open.due.start().0))
}

/// The age class of a due date, in days after the day that the report is of.
pub(super) fn bucket(today: NaiveDate, due: NaiveDate) -> &'static str {
    match (due - today).num_days() {
        ..0 => "overdue",
        0..=1 => "0-1",
        2..=7 => "2-7",
        8..=30 => "8-30",
        31..=60 => "31-60",
        61.. => "61+",
    }
}

/// The age class as a cell.
pub(super) fn bucket_cell(today: NaiveDate, due: NaiveDate) -> Cell {
    match bucket(today, due) {
        overdue @ "overdue" => Cell::word(overdue, "vencido"),
        days => Cell::text(days),
    }
}

/// What an acquirer's debt is of, as a cell.
fn object_cell(object: String) -> Cell {
    match object.as_str() {
        "refund" => Cell::word("refund", "reembolso"),
        "dispute" => Cell::word("dispute", "contestação"),
        _ => object.parse().map_or(Cell::Text(object), Cell::Count),
    }
}

/// A payment method in Portuguese, by its name in the API.
pub(super) fn method_ptbr(name: &'static str) -> &'static str {
    match name {
        "credit_card" => "cartão de crédito",
        "debit_card" => "cartão de débito",
        "pix" => "PIX",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Dialect;

    /// A spreadsheet sorts and filters installments as numbers.
    #[test]
    fn the_number_of_an_installment_is_a_number_in_a_file() {
        let mut line = Vec::new();
        Dialect::Plain.write(&["1", "12", "refund", ""].map(|object| object_cell(object.to_owned())), &mut line);
        assert_eq!(line, b"1,12,refund,\r\n");
    }

    #[test]
    fn every_due_date_has_one_bucket() {
        let today = NaiveDate::from_ymd_opt(2026, 7, 1).unwrap();
        for (days, expected) in [
            (-400, "overdue"),
            (-1, "overdue"),
            (0, "0-1"),
            (1, "0-1"),
            (2, "2-7"),
            (7, "2-7"),
            (8, "8-30"),
            (30, "8-30"),
            (31, "31-60"),
            (60, "31-60"),
            (61, "61+"),
        ] {
            assert_eq!(bucket(today, today + chrono::TimeDelta::days(days)), expected, "{days}");
        }
    }
}
