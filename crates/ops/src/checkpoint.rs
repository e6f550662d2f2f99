//! Checkpoint of the journal, for whoever wants to show later that the past was not changed.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;

use crate::{DeskState, Operator};
use web::cut::requested_partition;
use web::views::checkpoint::CheckpointView;
use web::{Result, not_found, ok, query};

/// A signed statement of what the journal of a partition holds now. Keep it where nobody of this
/// installation can change it; `centavo verify --against` compares it with a journal. It is of no
/// chain (no `previous`), as those are that the server sends on a schedule. 404 while nothing was
/// booked.
#[utoipa::path(get, path = "/ops/checkpoint", operation_id = "get_checkpoint",
    params(("partition" = Option<u64>, Query, maximum = 65535, description = "The partition; 0 when absent.")),
    responses((status = 200, body = CheckpointView), (status = 400), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let signed = desk.engine.checkpoint(requested_partition(&pairs)?, None)?.ok_or_else(not_found)?;
    Ok(ok(CheckpointView::of(&signed)))
}
