//! One recipient of any merchant, and its registration unmasked.

use axum::extract::State;
use axum::response::Response;
use ledger::{LedgerId, MerchantCommand, ObjectId, RecipientProfile};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Desk, DeskState, Operator};
use web::views::recipient::{RecipientView, find_recipient, open, view_with};
use web::views::registration::Registration;
use web::{
    Code, JsonBody, KeyScope, KeyedResult, PathId, Problem, Result, SentKey, decided, not_found, ok, parse_unread_exact,
};

/// A recipient, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientOfMerchant {
    /// The merchant.
    merchant_id: String,
    /// The recipient, as its merchant's list has it.
    #[serde(flatten)]
    recipient: RecipientView,
}

/// A recipient of any merchant, after booking what is due.
#[utoipa::path(get, path = "/ops/recipients/{id}", operation_id = "get_recipient_of_any_merchant",
    responses((status = 200, body = RecipientOfMerchant), (status = 400)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let (ledger, row) = find_recipient(&desk.engine, id).ok_or_else(not_found)?;
    let accounts = desk.engine.accounts(ledger).await?;
    let merchant = desk.engine.merchant_id(desk.engine.ids().group(id))?;
    let recipient = view_with(&desk.engine, &row, &accounts);
    Ok(ok(RecipientOfMerchant { merchant_id: merchant.uuid().to_string(), recipient }))
}

/// The registration of a recipient, with documents and bank account unmasked. It needs the right
/// `reveal`, which no role includes (403 `role_not_allowed`), and stands in the audit trail before
/// it is answered.
#[utoipa::path(post, path = "/ops/recipients/{id}/reveal", operation_id = "reveal_recipient",
    responses((status = 200, body = Registration), (status = 404)))]
pub async fn reveal(
    State(desk): DeskState,
    operator: Operator,
    PathId(id): PathId,
    body: JsonBody,
) -> Result<Response> {
    parse_unread_exact(&body.bytes)?;
    let shown = revealed(&desk, &operator, &id).await?;
    shown.answer(|profile| Ok(ok(Registration::of(profile, str::to_owned))))
}

/// Refuses an operator without the right `reveal`: 403 `role_not_allowed`.
pub fn require_reveal(desk: &Desk, operator: &Operator) -> Result<()> {
    if desk.ops_tokens.read().reveals(&operator.name) {
        return Ok(());
    }
    let detail = format!("This needs the right reveal, which {} does not have.", operator.name);
    Err(Problem::new(Code::RoleNotAllowed).detail(detail))
}

/// The registration of a recipient; a Record says first that this operator reads it. A key repeats
/// nothing: each look is a Record of its own.
pub async fn revealed(desk: &Desk, operator: &Operator, id: &str) -> Result<KeyedResult<RecipientProfile>> {
    require_reveal(desk, operator)?;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let (_, row) = find_recipient(&desk.engine, id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    let key = SentKey::none();
    let key = key.read(&desk.engine, KeyScope::Operators, Some(&id.txid()), b"")?;
    let profile = || open(&desk.engine, &row, row.profiles.current());
    let execute = |admitted| async move {
        let command = MerchantCommand::NoteRegistrationRead { id };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let noted = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    Ok(noted.map(|()| profile()))
}
