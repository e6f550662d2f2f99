//! Exports and reports that are made in the background, for operators.

use std::io::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use books::export::jobs::{Job, JobFile, JobOutcome, NewJob, Work, WorkError};
use books::export::{Chart, ExportTotals, Exporter, Format, Level, Request, Stream};
use books::reports::{Report, ReportContext, ReportRequest};
use ledger::id::{GroupNumber, ObjectId};
use serde::Deserialize;
use store::BlockHash;
use store::cut::Cut;
use utoipa::ToSchema;

use crate::chart::MAP_CHARS_MAX;
use crate::export_stream::{self, ledger_of};
use crate::{Decider, Desk, DeskState, Operator, reports};
use web::reply::All;
use web::views::export_file::{booked_before, request, wants_labels};
use web::views::export_job::{ExportJobView, download, manifest, pairs_of, take_on, unreadable};
use web::views::row_labels::exporter;
use web::{Checker, KeyScope, KeyedBody, PathId, Raw, Result, not_found, ok, parse_exact, refused, single};

/// The group in the ids of the operators' exports: no merchant's.
const NO_GROUP: GroupNumber = GroupNumber(0);
/// Their path.
const PATH: &str = "/ops/exports";

/// An export or a report to make, as `GET /ops/export` and `GET /ops/reports/{name}` take it in
/// their queries.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"ledger": "all", "format": "csv", "from": "2026-01-01", "to": "2099-12-31"}))]
pub struct ExportJobRequest<'a> {
    /// Name of a report, such as `trial-balance`; an export when absent.
    #[schema(value_type = Option<String>)]
    report: Raw<'a>,
    /// `M-…`, `R-…`, `P-…` or `P-house`; the id of a merchant or recipient, or its name where one
    /// has it; `P-all` for the platform as one ledger; `all` when absent.
    #[schema(value_type = Option<String>)]
    ledger: Raw<'a>,
    /// Of the report `general-ledger`: an account, with those below it.
    #[schema(value_type = Option<String>)]
    account: Raw<'a>,
    /// Of an export `jsonl` when absent; `csv`, `csv-ptbr`, `parquet`, `xlsx`; of one ledger
    /// `beancount`, `hledger` or `ledger`, and with `map` `journal-entries`. Of a report `json`
    /// when absent; `csv`, `csv-ptbr`, `xlsx` or `html`.
    #[schema(value_type = Option<String>)]
    format: Raw<'a>,
    /// The first day; the first of the books when absent.
    #[schema(value_type = Option<String>, format = Date)]
    from: Raw<'a>,
    /// The last day; the last of the books when absent.
    #[schema(value_type = Option<String>, format = Date)]
    to: Raw<'a>,
    /// The codes of another chart of accounts, as text of the TOML file that `--map` of the command
    /// reads; for `journal-entries`. When absent it is that of `POST /ops/chart`.
    #[schema(value_type = Option<String>, max_length = 50_000)]
    map: Raw<'a>,
    /// Of a report, `booking` when absent, or `effect`: as `by` of the report.
    #[schema(value_type = Option<String>, pattern = "^(booking|effect)$")]
    by: Raw<'a>,
    /// With `map`: `entry` when absent, or `day` for one entry a day.
    #[schema(value_type = Option<String>, pattern = "^(entry|day)$")]
    level: Raw<'a>,
    /// True adds `merchant_reference`, `metadata` and `fiscal_documents` to each row of an export,
    /// which has no manifest then, or of a report with ids; as they are when the file is made.
    #[schema(value_type = Option<bool>)]
    labels: Raw<'a>,
}

/// Takes on an export or a report, which is made in the background through the last Record of this
/// moment. Its file is kept for seven days, that of an export with a signed manifest. At most two
/// of the operators' at once.
#[utoipa::path(post, path = "/ops/exports", operation_id = "create_export", request_body = ExportJobRequest,
    responses((status = 202, body = ExportJobView), (status = 404)))]
pub async fn create(State(desk): DeskState, _: Decider, sent: KeyedBody) -> Result<Response> {
    let wire: ExportJobRequest<'_> = parse_exact(sent.bytes())?;
    // Each request makes an export of its own: a key is only checked.
    sent.key(&desk.engine, KeyScope::Operators, None)?;
    let cut = desk.engine.published();
    let (new, work) = match report_of(&wire)? {
        Some(report) => report_job(&desk, report, &wire, cut)?,
        None => export_job(&desk, &wire, cut)?,
    };
    take_on(&desk.export_jobs, &desk.engine, new, work, PATH).await
}

/// The report that a body names, if it does.
fn report_of(wire: &ExportJobRequest<'_>) -> Result<Option<Report>> {
    let mut check = Checker::new();
    let name = check.optional_text("report", wire.report, 1..=50);
    let report =
        name.map(|name| Report::named(&name).or_else(|| check.refuse("report", "unknown", "report é desconhecido")));
    if report.is_some() {
        for (name, text) in [
            ("map", check.optional_lines("map", wire.map, MAP_CHARS_MAX)),
            ("level", check.optional_text("level", wire.level, 1..=50)),
        ] {
            if text.is_some() {
                check.refuse::<()>(name, "not_taken", format!("um relatório não tem {name}"));
            }
        }
    }
    check.finish()?;
    Ok(report.flatten())
}

fn report_job(desk: &Arc<Desk>, report: Report, wire: &ExportJobRequest<'_>, cut: Cut) -> Result<(NewJob, Work)> {
    let texts = [
        ("ledger", wire.ledger),
        ("account", wire.account),
        ("by", wire.by),
        ("format", wire.format),
        ("from", wire.from),
        ("to", wire.to),
    ];
    let pairs = pairs_of(&texts, wire.labels)?;
    let (asked, format) = reports::asked(desk, report, &pairs)?;
    let labels = reports::labels(desk, &pairs)?;
    let ReportRequest { ledger, from, to, .. } = asked.clone();
    let new = NewJob {
        id: desk.engine.new_id(NO_GROUP)?,
        owner: None,
        report: Some(report.name().to_owned()),
        request: Request { ledger, format: Format::Jsonl, from, to },
        format: format.name().to_owned(),
        labels: labels.is_some(),
        file: JobFile { name: asked.file_name(format), media_type: format.media_type(), manifest: None },
        now_ms: desk.engine.now().0,
    };
    let maker = Arc::clone(desk);
    let work: Work = Box::new(move |out| {
        let context = ReportContext { labels, ..ReportContext::default() };
        let made = reports::write(&maker, (&asked, format, context), &cut, out)?;
        Ok(JobOutcome {
            exported: ExportTotals::default(),
            cut: made.cut,
            head: BlockHash::ZERO,
            before: (Cut::default(), BlockHash::ZERO),
        })
    });
    Ok((new, work))
}

fn export_job(desk: &Arc<Desk>, wire: &ExportJobRequest<'_>, cut: Cut) -> Result<(NewJob, Work)> {
    let texts = [("ledger", wire.ledger), ("format", wire.format), ("from", wire.from), ("to", wire.to)];
    let pairs = pairs_of(&texts, wire.labels)?;
    let format =
        single(&pairs, "format")?.filter(|name| *name == Format::JournalEntries.name()).map(|_| Format::JournalEntries);
    let chart = chart_of(desk, wire, format.is_some())?;
    let ledger = ledger_of(desk, &pairs)?;
    let request = match format {
        Some(format) => {
            if ledger.is_none() {
                return Err(refused("ledger", "one_ledger", "ledger deve ser um só neste formato"));
            }
            let others: Vec<_> = pairs.iter().filter(|(name, _)| name != "format").cloned().collect();
            Request { format, ..request(&others, ledger)? }
        }
        None => request(&pairs, ledger)?,
    };
    let has_labels = wants_labels(&pairs, request.format)?;
    let (id, now_ms) = (desk.engine.new_id(NO_GROUP)?, desk.engine.now().0);
    let new = NewJob::export((id, None), request.clone(), chart.clone(), has_labels, now_ms);
    let maker = Arc::clone(desk);
    let work: Work = Box::new(move |out| {
        let exporter = exporter(&maker.engine, &request, has_labels.then_some(false));
        write(&maker, (&request, exporter), chart, &cut, out)
    });
    Ok((new, work))
}

/// The chart of accounts of a body, which the formats of bookkeeping programs need.
fn chart_of(desk: &Desk, wire: &ExportJobRequest<'_>, is_wanted: bool) -> Result<Option<(Chart, Level)>> {
    let mut check = Checker::new();
    for (name, raw) in [("account", wire.account), ("by", wire.by)] {
        if check.optional_text(name, raw, 1..=200).is_some() {
            check.refuse::<()>(name, "not_taken", format!("{name} é de um relatório"));
        }
    }
    let given = check.optional_lines("map", wire.map, MAP_CHARS_MAX).map(|map| map.into_owned());
    let map = given.or_else(|| desk.engine.chart().filter(|_| is_wanted));
    let level = check.optional_text("level", wire.level, 1..=50);
    let chart = match (is_wanted, &map) {
        (true, Some(map)) => {
            Chart::parse(map).map_or_else(|error| check.refuse("map", "invalid", error.in_portuguese(map)), Some)
        }
        (true, None) => check.refuse("map", "required", "map é obrigatório neste formato, se nenhum foi guardado"),
        (false, None) => None,
        (false, Some(_)) => check.refuse("map", "not_taken", "map é de journal-entries"),
    };
    let level = match level.as_deref() {
        None => Some(Level::default()),
        Some(_) if !is_wanted => check.refuse("level", "not_taken", "level é de journal-entries"),
        Some("entry") => Some(Level::Entry),
        Some("day") => Some(Level::Day),
        Some(_) => check.refuse("level", "unknown", "level deve ser entry ou day"),
    };
    check.finish()?;
    Ok(chart.zip(level))
}

/// Writes an export through a Record.
fn write(
    desk: &Desk,
    (request, exporter): (&Request, Exporter),
    chart: Option<(Chart, Level)>,
    cut: &Cut,
    out: &mut dyn Write,
) -> Result<JobOutcome, WorkError> {
    let (mut out, mut exporter) = (Stream(out), exporter.keeping_balances());
    if let Some((chart, level)) = chart {
        exporter = exporter.mapped(chart, level);
    }
    let before = booked_before(&desk.engine, request.from)?;
    let (last, head) = export_stream::write(desk, request, cut, &mut exporter, &mut out)?;
    Ok(JobOutcome { exported: exporter.finish(&mut out)?, cut: last, head, before })
}

/// The operators' exports that are kept, newest first.
#[utoipa::path(get, path = "/ops/exports", operation_id = "list_exports",
    responses((status = 200, body = All<ExportJobView>)))]
pub async fn list(State(desk): DeskState, _: Operator) -> Result<Response> {
    let jobs = desk.export_jobs.list(None, desk.engine.now().0).map_err(unreadable)?;
    Ok(ok(All::of(jobs.iter().map(ExportJobView::of).collect())))
}

fn find(desk: &Desk, id: &str) -> Result<Job> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let found = desk.export_jobs.find(id, None, desk.engine.now().0).map_err(unreadable)?;
    found.ok_or_else(not_found)
}

/// An export.
#[utoipa::path(get, path = "/ops/exports/{id}", operation_id = "get_export",
    responses((status = 200, body = ExportJobView)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    Ok(ok(ExportJobView::of(&find(&desk, &id)?)))
}

/// The file of an export that is done.
#[utoipa::path(get, path = "/ops/exports/{id}/file", operation_id = "download_export",
    responses((status = 200, content((String = "application/jsonl"), (String = "application/json"), (String = "text/csv"), (String = "text/plain"), (String = "text/html"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 409)))]
pub async fn file(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    download(&desk.export_jobs, &find(&desk, &id)?)
}

/// The manifest of an export that is done, byte by byte as it was signed.
#[utoipa::path(get, path = "/ops/exports/{id}/manifest", operation_id = "get_export_manifest",
    responses((status = 200, body = serde_json::Value, example = json!({"schema": 2, "rows": 0})), (status = 409)))]
pub async fn get_manifest(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    manifest(&desk.export_jobs, &find(&desk, &id)?)
}
