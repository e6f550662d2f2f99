//! Exports of a merchant's own ledger: `GET /api/reports/ledger` as a stream, `POST /api/reports`
//! as a file that is made in the background.

use std::io::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use books::export::jobs::{Job, JobOutcome, NewJob};
use books::export::{ExportTotals, Exporter, Out, Request, Stream};
use ledger::{GroupNumber, LedgerId, ObjectId, Timestamp};
use serde::Deserialize;
use store::Sequence;
use store::cut::{Cut, Position};
use utoipa::ToSchema;
use wire::timestamp::begin_of;

use crate::api::app::{App, AppState};
use web::streamed_body::{BoxError, ReadPace, streamed};
use web::views::export_file::{
    begin, booked_before, cut_header, encoding, file, head_of, know_cards, know_group, request, wants_labels,
};
use web::views::export_job::{ExportJobView, download, manifest, pairs_of, take_on, unreadable};
use web::views::ledger::ledger_name;
use web::views::row_labels::exporter;
use web::{Caller, Code, KeyScope, KeyedBody, PathId, Problem, Raw, Result, not_found, ok, parse, query, refused};

/// Records of the journal whose numbers are looked up at once.
const LOOKED_UP_AT_ONCE: u64 = 1 << 18;

/// The caller's ledger from one day to another, both included, after booking what is due. Days are
/// days in America/Sao_Paulo.
#[utoipa::path(get, path = "/api/reports/ledger",
    params(("format" = Option<String>, Query, pattern = "^(jsonl|csv|csv-ptbr|parquet|xlsx|beancount|hledger|ledger)$", description = "`jsonl` when absent; `csv`, `csv-ptbr`, `parquet`, `xlsx`, or the text of `beancount`, `hledger` or `ledger`."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; the first of the books when absent."),
        ("labels" = Option<bool>, Query, description = "`true` adds the columns `merchant_reference`, `metadata` (a JSON object) and `fiscal_documents` of the charge, cashout or refund of each row, as they are now; of rows alone."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent.")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")))))]
pub async fn ledger_report(State(app): AppState, caller: Caller, parts: Parts) -> Result<Response> {
    let ledger = ledger_name(&app.engine, caller.ledger());
    let pairs = query(&parts)?;
    let request = request(&pairs, Some(ledger))?;
    let has_labels = wants_labels(&pairs, request.format)?;
    let Some(under_way) = app.reporting.begin(caller.group) else {
        let detail = "Another report of this account is under way, or too many of others are.";
        return Err(Problem::new(Code::Overloaded).retry_after(5).detail(detail));
    };
    app.engine.read_merchant(caller.group, |_, _| ()).await?;
    let (asked, encoding, through) = (request.clone(), encoding(&request, &parts.headers), app.engine.published());
    let read_through = through.clone();
    let body = streamed("a report", move |out| {
        let _until_it_ends = under_way;
        let mut encoded = encoding.encoder(out);
        let exporter = exporter(&app.engine, &asked, has_labels.then_some(true));
        write(&app, (caller.group, &read_through), &asked, exporter, &mut Stream(&mut encoded))?;
        Ok(encoded.finish()?)
    });
    Ok(([cut_header(&through)], file(&request, encoding, body)).into_response())
}

/// The path of reports that are made in the background.
const PATH: &str = "/api/reports";

/// A report to make, as `GET /api/reports/ledger` takes it in its query.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"format": "csv", "from": "2026-01-01", "to": "2099-12-31"}))]
pub struct ReportJobRequest<'a> {
    /// Not taken: a report is of the caller's ledger.
    #[schema(ignore)]
    ledger: Raw<'a>,
    /// `jsonl` when absent; `csv`, `csv-ptbr`, `parquet`, `xlsx`, `beancount`, `hledger` or
    /// `ledger`.
    #[schema(value_type = Option<String>)]
    format: Raw<'a>,
    /// The first day; the first of the books when absent.
    #[schema(value_type = Option<String>, format = Date)]
    from: Raw<'a>,
    /// The last day; the last of the books when absent.
    #[schema(value_type = Option<String>, format = Date)]
    to: Raw<'a>,
    /// True adds `merchant_reference`, `metadata` and `fiscal_documents` to each row, as they are
    /// when the file is made. It has no manifest then.
    #[schema(value_type = Option<bool>)]
    labels: Raw<'a>,
}

/// Takes on a report of the caller's ledger, which is made in the background through the last
/// Record of this moment. Its file is kept for seven days, with a signed manifest where it has no
/// labels. At most two of an account at once.
#[utoipa::path(post, path = "/api/reports", operation_id = "create_report", request_body = ReportJobRequest,
    responses((status = 202, body = ExportJobView)))]
pub async fn create(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: ReportJobRequest<'_> = parse(sent.bytes())?;
    let texts = [("ledger", wire.ledger), ("format", wire.format), ("from", wire.from), ("to", wire.to)];
    let pairs = pairs_of(&texts, wire.labels)?;
    // Each request makes a report of its own: a key is only checked.
    sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    if pairs.iter().any(|(name, _)| name == "ledger") {
        return Err(refused("ledger", "unknown", "um relatório é do livro da própria conta"));
    }
    let ledger = ledger_name(&app.engine, caller.ledger());
    let request = request(&pairs, Some(ledger.clone()))?;
    let has_labels = wants_labels(&pairs, request.format)?;
    app.engine.read_merchant(caller.group, |_, _| ()).await?;
    let (id, through) = (app.engine.new_id(caller.group)?, app.engine.published());
    let new = NewJob::export((id, Some(ledger)), request.clone(), None, has_labels, app.engine.now().0);
    let maker = Arc::clone(&app);
    let work = Box::new(move |out: &mut dyn Write| {
        let exporter = exporter(&maker.engine, &request, has_labels.then_some(true)).keeping_balances();
        let exported = write(&maker, (caller.group, &through), &request, exporter, &mut Stream(out))?;
        let (engine, after) = (&maker.engine, request.to.and_then(|to| to.succ_opt()));
        let before = booked_before(engine, request.from)?;
        let last = after.map_or(Ok(through.clone()), |after| engine.last_booked_before(Timestamp(begin_of(after))))?;
        let (cut, head) = head_of(engine, last.up_to(&through))?;
        Ok(JobOutcome { exported, cut, head, before })
    });
    take_on(&app.export_jobs, &app.engine, new, work, PATH).await
}

/// Where reports are files of one of several processes.
const NOT_HERE: &str = "No report of this id is kept: it is older than seven days, or the node that made it does not \
                        serve this account any more. Ask for the report again.";

fn find(app: &App, caller: Caller, id: &str) -> Result<Job> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let owner = ledger_name(&app.engine, caller.ledger());
    let found = app.export_jobs.find(id, Some(&owner), app.engine.now().0).map_err(unreadable)?;
    found.ok_or_else(|| match app.is_node {
        true => not_found().detail(NOT_HERE),
        false => not_found(),
    })
}

/// A report that is made in the background.
#[utoipa::path(get, path = "/api/reports/{id}", operation_id = "get_report",
    responses((status = 200, body = ExportJobView)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    Ok(ok(ExportJobView::of(&find(&app, caller, &id)?)))
}

/// The file of a report that is done.
#[utoipa::path(get, path = "/api/reports/{id}/file", operation_id = "download_report",
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 409)))]
pub async fn download_file(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    download(&app.export_jobs, &find(&app, caller, &id)?)
}

/// The manifest of a report that is done, byte by byte as it was signed.
#[utoipa::path(get, path = "/api/reports/{id}/manifest", operation_id = "get_report_manifest",
    responses((status = 200, body = serde_json::Value, example = json!({"schema": 2, "rows": 0})), (status = 409)))]
pub async fn get_manifest(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    manifest(&app.export_jobs, &find(&app, caller, &id)?)
}

/// Writes a merchant's ledger through a Record. The index says which Records are its own.
fn write(
    app: &App,
    (group, through): (GroupNumber, &Cut),
    request: &Request,
    mut exporter: Exporter,
    out: &mut dyn Out,
) -> Result<ExportTotals, BoxError> {
    let merchant = LedgerId::Merchant(group);
    know_group(&app.engine, group, &mut exporter);
    let partition = app.engine.position_of(LedgerId::Merchant(group), Sequence::FIRST).partition;
    let mut after = begin(&app.engine, request, through, &mut exporter)?.of(partition);
    let last = through.of(partition);
    let mut pace = ReadPace::new(&app.engine);
    'journal: while after < last {
        let next = Sequence((after.0 + LOOKED_UP_AT_ONCE).min(last.0));
        for sequence in app.engine.entries_between(merchant, after, next)? {
            let at = Position { partition, sequence };
            let (booked_at, mut record) = app.engine.booked_record(at)?;
            know_cards(&app.engine, &record, &mut exporter)?;
            // Merchants do not see the platform's operators.
            record.operator = None;
            if !exporter.post(at, booked_at.0, &record, out)? {
                break 'journal;
            }
            pace.step();
        }
        after = next;
    }
    if let Some(booked_at) = app.engine.booked_at(through)? {
        exporter.pass(booked_at.0);
    }
    Ok(exporter.finish(out)?)
}
