//! Health and metrics. They need no credential.

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::desk::{Desk, DeskState};
use web::{Code, Problem, Result, failed, ok};

/// How the service is.
#[derive(serde::Serialize, utoipa::ToSchema)]
struct ServiceStatusView {
    /// `ok` or `ready`.
    #[schema(pattern = "^(ok|ready)$")]
    status: &'static str,
}

/// The process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", responses((status = 200, body = ServiceStatusView)))]
pub async fn healthz() -> Response {
    ok(ServiceStatusView { status: "ok" })
}

/// The service takes requests: the data is open, the journal has not failed, the store goes on,
/// the wall clock is followed, and there is space on the disk.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", responses((status = 200, body = ServiceStatusView)))]
pub async fn readyz(State(desk): DeskState) -> Result<Response> {
    readiness(&desk)?;
    Ok(ok(ServiceStatusView { status: "ready" }))
}

/// Error: why the service takes no requests.
pub fn readiness(desk: &Desk) -> Result<()> {
    if desk.engine.has_failed() {
        return Err(Problem::new(Code::Overloaded).retry_after(1).detail("The journal failed; the process is ending."));
    }
    if !desk.engine.is_current() {
        let unusable = Problem::new(Code::StoreUnavailable).retry_after(1);
        return Err(match desk.engine.store_trouble() {
            Some(trouble) => unusable.detail(format!("The database can't be used: {trouble}.")),
            None => unusable,
        });
    }
    if desk.node.as_ref().is_some_and(|node| node.is_leaving()) {
        let detail = "The process hands its merchants over to others, and ends.";
        return Err(Problem::new(Code::Overloaded).retry_after(1).detail(detail));
    }
    if let Some(process) = desk.node.as_ref().and_then(|node| node.lone()) {
        let detail = format!("{process} has the merchants, and is no node: this node waits until it ends.");
        return Err(Problem::new(Code::StoreUnavailable).retry_after(1).detail(detail));
    }
    if let Some(waiting) = desk.engine.stalled() {
        let detail = format!("The store makes no progress ({:?}, {} s).", waiting.what, waiting.took.as_secs());
        return Err(Problem::new(Code::Overloaded).retry_after(1).detail(detail));
    }
    if desk.engine.clock_doubt().is_some() {
        let ahead_s = desk.engine.clock_reading().ahead_ms / 1_000;
        let detail = format!("The wall clock is {ahead_s} s ahead of the time that has passed; see GET /ops/clock.");
        return Err(Problem::new(Code::ClockInDoubt).retry_after(5).detail(detail));
    }
    if desk.engine.is_storage_full() {
        return Err(Problem::new(Code::StorageFull).retry_after(5));
    }
    Ok(())
}

/// Routes of a process that does not serve yet: it reads the journal, waits for the process that
/// has the database, or waits to join the other nodes. It lives, is not ready, and has no metrics
/// yet.
pub fn starting() -> Router {
    let not_ready = || async {
        let detail = "The data is being opened, another process serves it, or this node has not joined the others.";
        Problem::new(Code::Overloaded).retry_after(1).detail(detail)
    };
    Router::new().route("/healthz", get(healthz)).route("/metrics", get(|| async { "" })).fallback(not_ready)
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn metrics(State(desk): DeskState) -> Result<Response> {
    let _refreshed = desk.engine.metrics();
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &desk.exposition.0).map_err(failed)?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], prometheus_text(&text)).into_response())
}

/// Writes OpenMetrics as the text format that every scraper reads: a counter is described under the
/// name of its sample, and there are no lines of units and of the end.
fn prometheus_text(open_metrics: &str) -> String {
    let lines: Vec<_> = open_metrics.lines().collect();
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    for (at, line) in lines.iter().enumerate() {
        let described = line.strip_prefix("# HELP ").or(line.strip_prefix("# TYPE "));
        let Some(name) = described.and_then(|described| described.split(' ').next()) else {
            if !line.starts_with('#') {
                text.push_str(line);
                text.push('\n');
            }
            continue;
        };
        let is_counter = [at, at + 1].iter().any(|at| lines.get(*at) == Some(&&*format!("# TYPE {name} counter")));
        let suffix = if is_counter { "_total" } else { "" };
        let rest = &line[7 + name.len()..];
        text.push_str(&format!("{}{name}{suffix}{rest}\n", &line[..7]));
    }
    text
}
