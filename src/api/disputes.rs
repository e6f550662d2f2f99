//! Disputes, as merchants read them. The operations team opens and decides them
//! ([`ops::disputes`]).

use actors::engine::Listed;
use axum::extract::State;
use axum::response::Response;

use crate::api::app::AppState;
use web::views::dispute::DisputeView;
use web::{Caller, CursorParams, List, PageParams, PageQuery, Result};

/// The disputes of the account's charges, newest first.
#[utoipa::path(get, path = "/api/disputes", operation_id = "list_disputes",
    params(PageParams, CursorParams), responses((status = 200, body = List<DisputeView>)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery) -> Result<Response> {
    let slice = query.part(&app.engine, caller.ledger())?;
    let Listed { total, items } = app.engine.disputes(caller.ledger(), slice)?;
    let last = items.last_id()?.map(|id| id.uuid().to_string());
    query.answer(total, last, items.map(move |dispute| Ok(DisputeView::of(&app.engine, &dispute?))))
}
