//! One recipient of any merchant.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::ObjectId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::operator::Operator;
use web::caller::PathId;
use web::problem::{Code, Problem};
use web::reply::{ok, only, query};
use web::views::recipient::{RecipientView, find_recipient, view_with};

/// A recipient, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientOfMerchant {
    /// The merchant.
    #[schema(format = "uuid")]
    merchant_id: String,
    /// The recipient, as its merchant's list has it.
    #[serde(flatten)]
    recipient: RecipientView,
}

/// A recipient of any merchant, after booking what is due.
#[utoipa::path(get, path = "/ops/recipients/{id}", operation_id = "get_recipient_of_any_merchant", params(("id" = String, Path)),
    responses((status = 200, body = RecipientOfMerchant), (status = 400)))]
pub async fn get(
    State(desk): State<Arc<Desk>>,
    _: Operator,
    PathId(id): PathId,
    parts: Parts,
) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    let not_found = || Problem::new(Code::NotFound);
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let (ledger, row) = find_recipient(&desk.engine, id).ok_or_else(not_found)?;
    let accounts = desk.engine.accounts(ledger).await?;
    let merchant = desk.engine.merchant_id(desk.engine.ids().group(id))?;
    let recipient = view_with(&desk.engine, &row, &accounts);
    Ok(ok(RecipientOfMerchant { merchant_id: merchant.uuid().to_string(), recipient }))
}
