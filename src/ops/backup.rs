//! Backup of the journal while the server runs, and the time of the last one.

use std::sync::Arc;

use actors::backup::write_magic;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::http::problem::Problem;
use crate::http::reply::{number, query};
use crate::http::streamed::{streamed, turn};
use crate::ops::operator::Operator;

/// What a backup lacks that has all before `from`, in the frames of a backup's files, through the
/// head of this moment. One at a time. It waits for the caller in a thread of its own, with a few
/// parts in memory; nobody else waits for it.
#[utoipa::path(get, path = "/ops/backup", operation_id = "get_backup", params(("from" = Option<u64>, Query, minimum = 1, description = "The first Record that is lacking; 1 when absent.")),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub async fn backup(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let from = Sequence(number(&query(&parts)?, "from", 1..=u64::MAX)?.unwrap_or(1));
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
