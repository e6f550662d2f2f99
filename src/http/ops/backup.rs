//! A backup of the journal while the server runs, and when the last one was made.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use actors::backup::write_magic;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

use crate::http::app::{App, Operator};
use crate::http::problem::Problem;
use crate::http::reply::{number, query};
use crate::http::streamed::{streamed, turn};

/// What a backup lacks that has all before `from`, in the frames of a backup's files, through the head of this moment. One at a time. It
/// waits for the caller in a thread of its own, with a few parts in memory; nobody else waits for it.
#[utoipa::path(get, path = "/ops/backup", operation_id = "get_backup", params(("from" = Option<u64>, Query, minimum = 1, description = "The first Record that is lacking; 1 when absent.")),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub async fn backup(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let from = Sequence(number(&query(&parts)?, "from", 1, u64::MAX)?);
    let one_at_a_time = turn(&app.backing_up, "Another backup is under way.").await?;
    let body = streamed("a backup", move |mut out| {
        let _until_it_ends = one_at_a_time;
        write_magic(&mut out)?;
        for frame in app.engine.backup(from)? {
            out.write_all(&frame?.to_bytes()?)?;
        }
        out.flush()?;
        app.last_backup.note();
        Ok(())
    });
    Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// When a backup was last taken of a data directory: through its server, or while it was stopped. It is kept in a file, for a restart
/// does not make a backup younger.
#[derive(Clone, Debug)]
pub struct LastBackup(PathBuf);

impl LastBackup {
    /// That of a data directory.
    pub fn of(data: &Path) -> Self {
        Self(data.join("last-backup"))
    }

    /// One was taken, whole, just now.
    pub fn note(&self) {
        if let Err(error) = fs::write(&self.0, now_seconds().to_string()) {
            tracing::warn!(%error, "when the backup was made could not be kept");
        }
    }

    /// None where there was never one.
    fn age_seconds(&self) -> Option<u64> {
        let made: u64 = fs::read_to_string(&self.0).ok()?.trim().parse().ok()?;
        Some(now_seconds().saturating_sub(made))
    }
}

impl Collector for LastBackup {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(age) = self.age_seconds() else { return Ok(()) };
        let gauge = ConstGauge::new(age);
        let help = "Age of the last backup; absent where there was none";
        gauge.encode(encoder.encode_descriptor("centavo_backup_age_seconds", help, None, gauge.metric_type())?)
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
