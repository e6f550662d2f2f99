//! Disputes, as merchants read them. The operations team opens and decides them
//! ([`crate::ops::disputes`]).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::app::App;
use crate::http::caller::Caller;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{List, PageQuery, list_of};
use crate::views::dispute::{Dispute, DisputeView};

/// The disputes of the account's charges, newest first.
#[utoipa::path(get, path = "/api/disputes", operation_id = "list_disputes",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<DisputeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let read_model = app.engine.read_model();
    let (total, opened) = read_model.disputes_page(caller.ledger(), page.skip(), page.count())?;
    let items = opened.into_iter().map(move |sequence| {
        let dispute = Dispute::opened_by(&app.engine, &app.engine.record(sequence)?);
        Ok(dispute.ok_or_else(|| Problem::new(Code::Internal))?.followed(&app.engine)?.view())
    });
    list_of(total, page, items)
}
