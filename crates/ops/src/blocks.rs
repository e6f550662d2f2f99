//! One block of the journal, with its place in the chain.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::time::Timestamp;
use serde::Serialize;
use store::Block;
use utoipa::ToSchema;

use crate::{DeskState, Operator};
use web::cut::requested_position;
use web::{PathId, Result, not_found, ok, query, time};

/// A block: Records that became durable together.
#[derive(Debug, Serialize, ToSchema)]
pub struct JournalBlockView {
    /// The partition of the journal.
    partition: u16,
    /// Its first Record.
    first: u64,
    /// Its last Record.
    last: u64,
    /// When it was booked.
    booked_at: String,
    /// Its hash (SHA-256), over its Records and the hash before it.
    hash: String,
    /// The hash of the block before it; zeros before the first.
    previous: String,
}

impl JournalBlockView {
    fn of(block: &Block) -> Self {
        Self {
            partition: block.partition.0,
            first: block.first.0,
            last: block.next().0 - 1,
            booked_at: time(Timestamp(block.booked_at_ms)),
            hash: format!("{:?}", block.hash()),
            previous: format!("{:?}", block.previous),
        }
    }
}

/// The block of the journal that holds a Record. Its hash is computed again from its Records.
#[utoipa::path(get, path = "/ops/journal/{sequence}", operation_id = "get_block",
    params(("sequence" = String, Path, pattern = "^[1-9][0-9]{0,18}$", example = "1", description = "The place of one of its Records in the journal."),
        ("partition" = Option<u64>, Query, maximum = 65535, description = "The Record's partition; 0 when absent.")),
    responses((status = 200, body = JournalBlockView), (status = 400)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(sequence): PathId, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let at = requested_position(&sequence, &pairs)?.ok_or_else(not_found)?;
    let block = desk.engine.block(at)?.ok_or_else(not_found)?;
    Ok(ok(JournalBlockView::of(&block)))
}
