//! One stored card of any merchant: an operator reads it, and deletes it for a customer who asks
//! for it.

use axum::extract::State;
use axum::response::Response;
use ledger::{LedgerId, MerchantCommand, ObjectId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::webhooks::without_contacts;
use crate::{DeciderCall, DeskState, Operator};
use web::views::stored_card::CardDetails;
use web::{PathId, Result, decided, not_found, ok};

/// A stored card, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct CardOfMerchant {
    /// The merchant.
    merchant_id: String,
    /// The card, as its merchant reads it.
    #[serde(flatten)]
    card: CardDetails,
}

/// A stored card of any merchant, deleted or not; its customer's e-mail and phone masked.
#[utoipa::path(get, path = "/ops/cards/{id}", operation_id = "get_card_of_any_merchant",
    responses((status = 200, body = CardOfMerchant), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    let row = desk.engine.card(LedgerId::Merchant(group), id)?.ok_or_else(not_found)?;
    let merchant_id = desk.engine.merchant_id(group)?.uuid().to_string();
    without_contacts(&CardOfMerchant { merchant_id, card: CardDetails::of(&desk.engine, &row) })
}

/// A stored card that was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedCard {
    /// The card's token.
    id: String,
    /// Always true.
    deleted: bool,
    /// What is left: `customer`, the customer's data of the day on which the card was stored,
    /// sealed until its retention ends; `acquirer_token` where the acquirer did not say that it has
    /// deleted its own token, which is then deleted at the acquirer.
    #[schema(example = json!(["customer"]))]
    left: Vec<&'static str>,
}

/// Deletes a stored card of any merchant: its token opens no charge from here on. 409
/// `state_conflict` while a subscription that goes on is charged to it: that one is cancelled
/// first. The acquirer is asked to delete its token: `left` says what else is stored.
#[utoipa::path(delete, path = "/ops/cards/{id}", operation_id = "delete_card",
    responses((status = 200, body = DeletedCard), (status = 404), (status = 409)))]
pub async fn delete(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, .. } = &call;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let (group, key) = (desk.engine.ids().group(id), call.key(&id.txid())?);
    let execute = |admitted| async move {
        let card = desk.engine.stored_card(LedgerId::Merchant(group), id)?.ok_or_else(not_found)?;
        let command = MerchantCommand::DeleteCard { id };
        let deleted = decided(desk.engine.command(group, command, operator.context(admitted)).await?)?;
        // Once no charge can name it.
        Ok(match deleted {
            Some(()) => Some(desk.engine.delete_token(&card).await),
            None => None,
        })
    };
    // A repeat does not know what the acquirer said.
    let deleted = key.run(LedgerId::Merchant(group), |_| Ok(false), execute).await?;
    deleted.answer(|token_is_deleted| {
        let left = ["customer"].into_iter().chain((!token_is_deleted).then_some("acquirer_token")).collect();
        Ok(ok(DeletedCard { id: id.uuid().to_string(), deleted: true, left }))
    })
}
