//! `GET /api/balance`: a merchant's money.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::merchant::MerchantState;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Caller};
use super::problem::Problem;
use super::reply::ok;

/// A merchant's money, centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct Balance {
    /// Can be paid out.
    available: i64,
    /// Falls due later.
    pending: i64,
    /// Held for cashouts and disputes.
    reserved: i64,
    /// What the merchant owes.
    deficit: i64,
}

/// The account's balance, after booking what is due.
#[utoipa::path(get, path = "/api/balance", responses((status = 200, body = Balance)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let look = |books: &MerchantState, _: Timestamp| Balance {
        available: books.available().0,
        pending: books.pending().0,
        reserved: 0,
        deficit: books.deficit().0,
    };
    Ok(ok(app.engine.read_merchant(caller.group, look).await?))
}
