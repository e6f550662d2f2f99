//! What no reconciliation covers: days of the bank accounts and of PIX payments, and batches of the
//! acquirer, for the closing of a month.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::engine::Engine;
use books::reconcile::booked_movements::{self, BankAccount, DailyFile, FileDays};
use chrono::NaiveDate;

use crate::booked_records::EngineRecords;
use crate::reconciliations::coverage::Coverage;
use web::Result;

/// How many days and batches of some days no result covers, by what is to be compared:
/// the account of a bank statement (days on which it moved), `pix` (days with payments), `acquirer`
/// (batches). What is covered may have differences.
pub fn uncompared(
    engine: &Arc<Engine>,
    coverage: &Coverage,
    [from, to]: [NaiveDate; 2],
) -> Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    let records = EngineRecords::new(engine);
    let paid = booked_movements::batches(&records, from, to)?;
    let batches = paid.iter().filter(|batch| !coverage.covers("acquirer", None, batch.paid_on)).count();
    counts.insert("acquirer".to_owned(), batches as u64);
    let statements = BankAccount::ALL.map(DailyFile::Statement);
    let files = [statements.as_slice(), &[DailyFile::PixList]].concat();
    let days = from.iter_days().take_while(|day| *day <= to);
    let asked: FileDays = days.flat_map(|day| files.iter().map(move |file| (day, *file))).collect();
    let open = asked.into_iter().filter(|(day, file)| match file {
        DailyFile::Statement(account) => !coverage.covers("bank", Some(account.name()), *day),
        DailyFile::PixList => !coverage.covers("pix", None, *day),
    });
    for (_, file) in booked_movements::days_with_movements(&records, open.collect())? {
        let name = match file {
            DailyFile::Statement(account) => account.house().account().kind_name(),
            DailyFile::PixList => "pix".to_owned(),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}
