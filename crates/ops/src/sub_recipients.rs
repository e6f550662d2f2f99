//! Review of sub-recipients by operators (interface 3.4).

use std::sync::Arc;

use axum::response::Response;
use ledger::{LedgerId, MerchantCommand, ObjectId, Record};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::DeciderCall;
use crate::item_version::{Approval, on_version, with_item};
use web::views::recipient::{RecipientView, find_recipient, known_recipient, view, view_at_decision};
use web::{Raw, Result, checked, decided, not_found, ok};

/// Why something is refused.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = DecisionNotes, example = json!({"notes": "O documento não confere com o nome"}))]
pub struct Notes<'a> {
    /// The reason, at most 500 characters.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    notes: Raw<'a>,
    /// The `version` of the item that was seen in the queue; `If-Match` may have it instead.
    /// Without it, the item is decided on as it is now.
    #[schema(value_type = Option<u32>)]
    pub version: Raw<'a>,
}

impl Notes<'_> {
    /// The reason.
    pub fn check(&self) -> Result<String> {
        Ok(checked(|check| check.prose("notes", self.notes, 1..=500))?.into_owned())
    }
}

/// Approves a draft or pending recipient, which is active at once; or an active recipient's changed
/// bank account.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/approve", operation_id = "approve_recipient",
    request_body = Option<Approval>, responses((status = 200, body = RecipientView)))]
pub async fn approve(call: DeciderCall) -> Result<Response> {
    decide(&call, call.approved()?, |id| Ok(MerchantCommand::ApproveRecipient { id })).await
}

/// Refuses a draft or pending recipient; or an active recipient's changed bank account, and leaves
/// the recipient active.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/reject", operation_id = "reject_recipient", request_body = Notes,
    responses((status = 200, body = RecipientView)))]
pub async fn reject(call: DeciderCall) -> Result<Response> {
    let (notes, seen) = call.rejected()?;
    decide(&call, seen, |id| Ok(MerchantCommand::RejectRecipient { id, notes: notes.check()? })).await
}

async fn decide(
    call: &DeciderCall,
    seen: Option<u32>,
    command: impl Fn(ObjectId) -> Result<MerchantCommand>,
) -> Result<Response> {
    let DeciderCall { desk, operator, id, .. } = call;
    let found = ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
    let (ledger, row) = found.ok_or_else(not_found)?;
    let group = desk.engine.ids().group(row.id);
    let key = call.key(&row.id.txid())?;
    let (row, command) = (&row, &command);
    let execute = |admitted| async move {
        let command = on_version(seen, row.id, command(row.id)?);
        let outcome = desk.engine.command(group, command, operator.context(admitted)).await?;
        let Some(()) = decided(outcome).map_err(|problem| with_item(desk, row.id, problem))? else { return Ok(None) };
        let (ledger, row) = known_recipient(&desk.engine, row.id)?;
        Ok(Some(view(&desk.engine, ledger, &row)))
    };
    let replay = |record: Arc<Record>| Ok(view_at_decision(&desk.engine, ledger, row, &record));
    key.run(LedgerId::Merchant(group), replay, execute).await?.answer(|view| Ok(ok(view)))
}
