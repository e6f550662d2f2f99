//! Health and metrics. They need no credential.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::registry::Registry;

use crate::http::app::App;
use crate::http::problem::{Code, Problem};
use crate::http::reply::ok;

/// The metrics' registry.
pub struct Exposition(pub Registry);

/// How the service is.
#[derive(serde::Serialize, utoipa::ToSchema)]
struct Status {
    /// `ok` or `ready`.
    #[schema(pattern = "^(ok|ready)$")]
    status: &'static str,
}

/// The process lives.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", responses((status = 200, body = Status)))]
pub async fn healthz() -> Response {
    ok(Status { status: "ok" })
}

/// The service takes requests: the data is open, the journal has not failed, the store goes on, and there is space on the disk.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", responses((status = 200, body = Status)))]
pub async fn readyz(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.engine.has_failed() {
        return Err(Problem::new(Code::Overloaded).retry_after(1).detail("The journal failed; the process is ending."));
    }
    if let Some(waiting) = app.engine.stalled() {
        let detail = format!("The store makes no progress ({:?}, {} s).", waiting.what, waiting.took.as_secs());
        return Err(Problem::new(Code::Overloaded).retry_after(1).detail(detail));
    }
    if app.engine.is_storage_full() {
        return Err(Problem::new(Code::StorageFull).retry_after(5));
    }
    Ok(ok(Status { status: "ready" }))
}

/// Metrics in the OpenMetrics text format.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let _refreshed = app.engine.metrics();
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &app.exposition.0)
        .map_err(|_| Problem::new(Code::Internal))?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}
