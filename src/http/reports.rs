//! A merchant's own books, as a file.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actors::records::LoadError;
use actors::store::Sequence;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use ledger::id::{GroupNumber, LedgerId, RecipientNumber};

use super::app::{App, Caller};
use super::json::Checker;
use super::ops::books::ledger_name;
use super::problem::{Code, Problem};
use super::reply::{only, query, single};
use super::streamed::{BoxError, Pace, streamed};
use super::timestamp::{day, day_of};
use crate::export::{Exporter, Format, Out, Request, Stream};

/// Reports that are being made: one a merchant, and so many in all.
#[derive(Default)]
pub struct Reporting(Mutex<HashSet<GroupNumber>>);

impl Reporting {
    fn groups(&self) -> MutexGuard<'_, HashSet<GroupNumber>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most reports at once.
const REPORTS_MAX: usize = 8;
/// Records of the journal whose numbers are looked up at once.
const LOOKED_UP_AT_ONCE: u64 = 1 << 18;

/// The caller's ledger from one day to another, both included, after booking what is due. Days are days in America/Sao_Paulo.
#[utoipa::path(get, path = "/api/reports/ledger",
    params(("format" = Option<String>, Query, pattern = "^(jsonl|csv|beancount|hledger|ledger)$", description = "`jsonl` when absent; `csv`, or the text of `beancount`, `hledger` or `ledger`."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; the first of the books when absent."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent.")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain")))))]
pub async fn ledger_report(State(app): State<Arc<App>>, caller: Caller, parts: Parts) -> Result<Response, Problem> {
    let ledger = ledger_name(&app, caller.ledger());
    let pairs = query(&parts)?;
    only(&pairs, &["format", "from", "to"])?;
    let request = request(&pairs, Some(ledger))?;
    let under_way = Under::way(&app, caller.group)?;
    app.engine.read_merchant(caller.group, |_, _| ()).await?;
    let asked = request.clone();
    let body = streamed("a report", move |out| write(&under_way, &asked, &mut Stream(out)));
    Ok(file(&request, body))
}

/// What the query of an export asks for.
pub(super) fn request(pairs: &[(String, String)], ledger: Option<String>) -> Result<Request, Problem> {
    let mut check = Checker::new();
    let format = match single(pairs, "format")? {
        None => Some(Format::Jsonl),
        Some(name) => Format::made(name)
            .or_else(|| check.refuse("format", "unknown", "format deve ser jsonl, csv, beancount, hledger ou ledger")),
    };
    let mut named = |name| {
        let text = single(pairs, name)?;
        Ok::<_, Problem>(text.and_then(|text| {
            day(text).or_else(|| check.refuse(name, "invalid_date", format!("{name} deve ser uma data (AAAA-MM-DD)")))
        }))
    };
    let (from, to) = (named("from")?, named("to")?);
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        check.refuse::<()>("to", "before_from", "to não pode ser anterior a from");
    }
    let is_of_one_ledger = ledger.is_some();
    if format.is_some_and(Format::is_plain_text) && !is_of_one_ledger {
        check.refuse::<()>("ledger", "one_ledger", "ledger deve ser um só neste formato");
    }
    let format = check.finish_with(format)?;
    Ok(Request { ledger, format, from, to })
}

/// An answer that browsers keep as a file.
pub(super) fn file(request: &Request, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{}\"", request.file_name());
    ([(CONTENT_TYPE, request.format.media_type().to_owned()), (CONTENT_DISPOSITION, disposition)], body).into_response()
}

/// One report of a merchant, until it is dropped.
struct Under {
    app: Arc<App>,
    group: GroupNumber,
}

impl Under {
    fn way(app: &Arc<App>, group: GroupNumber) -> Result<Self, Problem> {
        let mut reports = app.reporting.groups();
        if reports.len() >= REPORTS_MAX || !reports.insert(group) {
            let detail = "Another report of this account is under way, or too many of others are.";
            return Err(Problem::new(Code::Overloaded).retry_after(5).detail(detail));
        }
        drop(reports);
        Ok(Self { app: Arc::clone(app), group })
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.app.reporting.groups().remove(&self.group);
    }
}

/// Writes a merchant's ledger, through the last Record of this moment. The index says which Records are its own.
fn write(Under { app, group }: &Under, request: &Request, out: &mut dyn Out) -> Result<(), BoxError> {
    let (read_model, merchant) = (app.engine.read_model(), LedgerId::Merchant(*group));
    let through = read_model.published();
    let mut exporter = Exporter::new(request.clone());
    read_model.merchant(*group, |row| {
        exporter.know(merchant, row.id);
        for (number, recipient) in (1..).map(RecipientNumber).zip(&row.recipients) {
            exporter.know(LedgerId::Recipient(*group, number), recipient.id);
        }
    });
    let mut after = match request.from {
        // What is brought forward needs all that came before.
        Some(from) if !request.format.is_plain_text() => {
            last_before(through, |sequence| Ok(day_of(app.engine.booked_record(sequence)?.0.0) < from))?
        }
        _ => Sequence(0),
    };
    let mut pace = Pace::new(&app.engine);
    'journal: while after < through {
        let next = Sequence((after.0 + LOOKED_UP_AT_ONCE).min(through.0));
        for sequence in read_model.entries_between(merchant, after, next)? {
            let (booked_at, mut record) = app.engine.booked_record(sequence)?;
            // Who decided at the platform is nothing to its merchants.
            record.operator = None;
            if !exporter.post(sequence, booked_at.0, &record, out)? {
                break 'journal;
            }
            pace.step();
        }
        after = next;
    }
    if through.0 > 0 {
        exporter.pass(app.engine.booked_record(through)?.0.0);
    }
    exporter.finish(out)?;
    Ok(())
}

/// The last Record through `through` that comes before something; those before it do too.
fn last_before(
    through: Sequence,
    comes_before: impl Fn(Sequence) -> Result<bool, LoadError>,
) -> Result<Sequence, LoadError> {
    let (mut before, mut not_before) = (0, through.0 + 1);
    while before + 1 < not_before {
        let middle = before.midpoint(not_before);
        if comes_before(Sequence(middle))? { before = middle } else { not_before = middle }
    }
    Ok(Sequence(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_before_a_day_is_found() {
        for through in 0..20 {
            for last in 0..=through {
                let found = last_before(Sequence(through), |sequence| Ok(sequence.0 <= last)).unwrap();
                assert_eq!(found, Sequence(last), "of {through}");
            }
        }
    }
}
