//! Exports that are made in the background, for operators.

use std::io::Write;
use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::{GroupNumber, ObjectId};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::export::jobs::{Job, Made, NewJob, WorkError};
use crate::export::{Exporter, Request, Stream};
use crate::http::body::JsonBody;
use crate::http::caller::PathId;
use crate::http::idempotency::{KeyScope, SentKey};
use crate::http::json::{Raw, parse};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{All, ok, only, query};
use crate::ops::export::{self, ledger_of};
use crate::ops::operator::{Decider, Operator};
use crate::views::export_file::{booked_before, request};
use crate::views::export_job::{ExportJobView, WireDays, accepted, download, manifest, unreadable};

/// The group in the ids of the operators' exports: no merchant's.
const NO_GROUP: GroupNumber = GroupNumber(0);
/// Their path.
const PATH: &str = "/ops/exports";

/// An export to make, as `GET /ops/export` takes it in its query.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"ledger": "all", "format": "csv", "from": "2026-01-01", "to": "2099-12-31"}))]
#[expect(dead_code, reason = "it describes the body, which is read as WireDays")]
pub struct ExportJobRequest<'a> {
    /// `M-…`, `R-…`, `P-…` or `P-house`; `P-all` for the platform as one ledger; `all` when absent.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    ledger: Raw<'a>,
    /// `jsonl` when absent; `csv`, `csv-ptbr`, `parquet`, `xlsx`; of one ledger `beancount`,
    /// `hledger` or `ledger`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    format: Raw<'a>,
    /// The first day; the first of the books when absent.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, format = Date)]
    from: Raw<'a>,
    /// The last day; the last of the books when absent.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, format = Date)]
    to: Raw<'a>,
}

/// Takes on an export, which is made in the background through the last Record of this moment. Its
/// file is kept for seven days, with a signed manifest. At most two of the operators' at once.
#[utoipa::path(post, path = "/ops/exports", operation_id = "create_export", request_body = ExportJobRequest,
    responses((status = 202, body = ExportJobView), (status = 404)))]
pub async fn create(
    State(app): State<Arc<App>>,
    _: Decider,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: WireDays<'_> = parse(&body)?;
    let pairs = wire.pairs()?;
    // Each request makes an export of its own: a key is only checked.
    sent_key.read(&app.engine, KeyScope::Operators, None, &body)?;
    let ledger = ledger_of(&app, &pairs)?;
    let request = request(&pairs, ledger)?;
    let (id, cut) = (app.new_id(NO_GROUP)?, app.engine.published());
    let new = NewJob { id, owner: None, request: request.clone(), now_ms: app.engine.now().0 };
    let (maker, clock) = (Arc::clone(&app), Arc::clone(&app.engine));
    let work = Box::new(move |out: &mut dyn Write| write(&maker, &request, cut, out));
    let taken_on = tokio::task::spawn_blocking(move || app.export_jobs.submit(new, work, move || clock.now().0)).await;
    accepted(taken_on.unwrap_or_else(|error| Err(std::io::Error::other(error))), PATH)
}

/// Writes an export through a Record.
fn write(app: &App, request: &Request, cut: Sequence, out: &mut dyn Write) -> Result<Made, WorkError> {
    let (mut out, mut exporter) = (Stream(out), Exporter::new(request.clone()).keeping_balances());
    let before = booked_before(&app.engine, request.from)?;
    let (last, head) = export::write(app, request, cut, &mut exporter, &mut out)?;
    Ok(Made { exported: exporter.finish(&mut out)?, cut: last.0, head: head.0, before })
}

/// The operators' exports that are kept, newest first.
#[utoipa::path(get, path = "/ops/exports", operation_id = "list_exports",
    responses((status = 200, body = All<ExportJobView>)))]
pub async fn list(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    let jobs = app.export_jobs.list(None, app.engine.now().0).map_err(unreadable)?;
    Ok(ok(All { total: jobs.len() as u64, items: jobs.iter().map(ExportJobView::of).collect() }))
}

fn find(app: &App, id: &str) -> Result<Job, Problem> {
    let id = ObjectId::parse(id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let found = app.export_jobs.find(id, None, app.engine.now().0).map_err(unreadable)?;
    found.ok_or_else(|| Problem::new(Code::NotFound))
}

/// An export.
#[utoipa::path(get, path = "/ops/exports/{id}", operation_id = "get_export", params(("id" = String, Path)),
    responses((status = 200, body = ExportJobView)))]
pub async fn get(State(app): State<Arc<App>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    Ok(ok(ExportJobView::of(&find(&app, &id)?)))
}

/// The file of an export that is done, whole or a range of it (`Range`, one range of bytes).
#[utoipa::path(get, path = "/ops/exports/{id}/file", operation_id = "download_export", params(("id" = String, Path)),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 206, description = "The range that was asked for.", content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 409), (status = 416)))]
pub async fn file(
    State(app): State<Arc<App>>,
    _: Operator,
    PathId(id): PathId,
    parts: Parts,
) -> Result<Response, Problem> {
    download(&app.export_jobs, &find(&app, &id)?, &parts.headers)
}

/// The manifest of an export that is done, byte by byte as it was signed.
#[utoipa::path(get, path = "/ops/exports/{id}/manifest", operation_id = "get_export_manifest", params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value, example = json!({"schema": 2, "rows": 0})), (status = 409)))]
pub async fn get_manifest(State(app): State<Arc<App>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    manifest(&app.export_jobs, &find(&app, &id)?)
}
