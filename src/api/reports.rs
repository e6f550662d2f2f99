//! `GET /api/reports/ledger`: export of a merchant's own ledger as a file.

use std::sync::Arc;

use actors::records::LoadError;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::{GroupNumber, LedgerId, RecipientNumber};

use crate::app::App;
use crate::export::{Exporter, Out, Request, Stream};
use crate::http::caller::Caller;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{only, query};
use crate::http::streamed::{BoxError, ReadPace, streamed};
use crate::http::timestamp::day_of;
use crate::views::export_file::{file, request};
use crate::views::ledger::ledger_name;

/// Records of the journal whose numbers are looked up at once.
const LOOKED_UP_AT_ONCE: u64 = 1 << 18;

/// The caller's ledger from one day to another, both included, after booking what is due. Days are
/// days in America/Sao_Paulo.
#[utoipa::path(get, path = "/api/reports/ledger",
    params(("format" = Option<String>, Query, pattern = "^(jsonl|csv|beancount|hledger|ledger)$", description = "`jsonl` when absent; `csv`, or the text of `beancount`, `hledger` or `ledger`."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; the first of the books when absent."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent.")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain")))))]
pub async fn ledger_report(State(app): State<Arc<App>>, caller: Caller, parts: Parts) -> Result<Response, Problem> {
    let ledger = ledger_name(&app.engine, caller.ledger());
    let pairs = query(&parts)?;
    only(&pairs, &["format", "from", "to"])?;
    let request = request(&pairs, Some(ledger))?;
    let Some(under_way) = app.reporting.begin(caller.group) else {
        let detail = "Another report of this account is under way, or too many of others are.";
        return Err(Problem::new(Code::Overloaded).retry_after(5).detail(detail));
    };
    app.engine.read_merchant(caller.group, |_, _| ()).await?;
    let asked = request.clone();
    let body = streamed("a report", move |out| {
        let _until_it_ends = under_way;
        write(&app, caller.group, &asked, &mut Stream(out))
    });
    Ok(file(&request, body))
}

/// Writes a merchant's ledger, through the last Record of this moment. The index says which Records
/// are its own.
fn write(app: &App, group: GroupNumber, request: &Request, out: &mut dyn Out) -> Result<(), BoxError> {
    let (through, merchant) = (app.engine.published(), LedgerId::Merchant(group));
    let mut exporter = Exporter::new(request.clone());
    app.engine.merchant(group, |row| {
        exporter.know(merchant, row.id);
        for (number, recipient) in (1..).map(RecipientNumber).zip(&row.recipients) {
            exporter.know(LedgerId::Recipient(group, number), recipient.id);
        }
    });
    let mut after = match request.from {
        // Balances brought forward need all earlier Records.
        Some(from) if !request.format.is_plain_text() => {
            last_before(through, |sequence| Ok(day_of(app.engine.booked_record(sequence)?.0.0) < from))?
        }
        _ => Sequence(0),
    };
    let mut pace = ReadPace::new(&app.engine);
    'journal: while after < through {
        let next = Sequence((after.0 + LOOKED_UP_AT_ONCE).min(through.0));
        for sequence in app.engine.entries_between(merchant, after, next)? {
            let (booked_at, mut record) = app.engine.booked_record(sequence)?;
            // Merchants do not see the platform's operators.
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
