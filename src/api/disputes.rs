//! Disputes, as merchants read them. The operations team opens and decides them
//! ([`ops::disputes`]).

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::State;
use axum::response::Response;

use crate::api::app::App;
use web::caller::Caller;
use web::problem::Problem;
use web::reply::{List, PageQuery, list_of};
use web::views::dispute::DisputeView;

/// The disputes of the account's charges, newest first.
#[utoipa::path(get, path = "/api/disputes", operation_id = "list_disputes",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<DisputeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let Listed { total, items } = app.engine.disputes(caller.ledger(), page.skip(), page.count())?;
    list_of(total, page, items.map(move |dispute| Ok(DisputeView::of(&app.engine, &dispute?))))
}
