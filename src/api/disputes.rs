//! Disputes, as merchants read them. The operations team opens and decides them
//! ([`ops::disputes`]).

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::State;
use axum::response::Response;

use crate::api::app::App;
use web::caller::Caller;
use web::problem::Problem;
use web::reply::{List, PageQuery, list_on};
use web::views::dispute::DisputeView;

/// The disputes of the account's charges, newest first.
#[utoipa::path(get, path = "/api/disputes", operation_id = "list_disputes",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query),
        ("limit" = Option<u64>, Query), ("before" = Option<String>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = List<DisputeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, cursors, .. }: PageQuery,
) -> Result<Response, Problem> {
    let range = cursors.range(&app.engine, caller.group)?;
    let Listed { total, items } = app.engine.disputes(caller.ledger(), range, page.skip(), page.count())?;
    let next = cursors.next(total, page, items.last_id()?.map(|id| id.uuid().to_string()));
    list_on(total, page, next, items.map(move |dispute| Ok(DisputeView::of(&app.engine, &dispute?))))
}
