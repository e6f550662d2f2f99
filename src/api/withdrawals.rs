//! Withdrawals of a recipient (interface 2.9, 3.5): a request takes all available money. A
//! withdrawal is read from its Records.

use axum::extract::State;
use axum::response::Response;
use ledger::{Object, ObjectId, RecipientCommand, Withdrawal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::AppState;
use crate::api::splits::require_split;
use crate::api::sub_recipients::find_own;
use web::json::parse_unread;
use web::reply::{WholeListParams, first_of};
use web::views::withdrawal::{WithdrawalView, destination};
use web::{Caller, KeyScope, KeyedBody, PageQuery, PathId, Result, created, decided, not_found, ok};

/// A withdrawal that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalRequested {
    /// Always true.
    success: bool,
    /// The withdrawal's id.
    withdrawal_id: String,
    /// All that was available, centavos.
    #[schema(example = 1200)]
    amount_cents: i64,
    /// Always `pending`.
    #[schema(pattern = "^(pending)$")]
    status: &'static str,
}

/// A list of withdrawals, whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WithdrawalList)]
pub struct Withdrawals {
    /// Newest first.
    items: Vec<WithdrawalView>,
    /// Address of the items that follow; where the request has `limit`, and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Asks for a withdrawal of all that is available.
#[utoipa::path(post, path = "/api/dashboard/sub-recipients/{id}/withdraw", operation_id = "withdraw",
    responses((status = 201, body = WithdrawalRequested), (status = 403)))]
pub async fn withdraw(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let Ok((recipient, row)) = find_own(&app, caller, &id) else {
        require_split(&app, caller)?;
        return Err(not_found());
    };
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&row.id.txid()))?;
    let (app, id) = (&app, &id);
    let execute = |admitted| async move {
        require_split(app, caller)?;
        let (_, row) = find_own(app, caller, id)?;
        let withdrawal = app.engine.new_id(caller.group)?;
        let destination = destination(&app.engine, &row, withdrawal)?;
        let command = RecipientCommand::Withdraw { id: withdrawal, destination, reason: None };
        Ok(app.engine.command_recipient(recipient, command, caller.context(admitted)).await?)
    };
    let asked = key.run_recorded(recipient, Withdrawal::made_by, execute).await?;
    asked.answer(|Withdrawal { id, amount, .. }| {
        let (withdrawal_id, amount_cents) = (id.uuid().to_string(), amount.0);
        Ok(created(WithdrawalRequested { success: true, withdrawal_id, amount_cents, status: "pending" }))
    })
}

/// Takes a withdrawal back that nobody has approved: its money and its splits are available again.
/// 409 `already_decided` once it was approved or rejected.
#[utoipa::path(post, path = "/api/dashboard/withdraw/{id}/cancel", operation_id = "cancel_withdrawal",
    responses((status = 200, body = WithdrawalView)))]
pub async fn cancel(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let id = ObjectId::parse(&id).filter(|id| app.engine.ids().group(*id) == caller.group).ok_or_else(not_found)?;
    let find = || app.engine.object(id)?.ok_or_else(not_found);
    let Withdrawal { recipient, .. } = find()?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&id.txid()))?;
    let app = &app;
    let execute = |admitted| async move {
        let command = RecipientCommand::CancelWithdrawal { id };
        decided(app.engine.command_recipient(recipient, command, caller.context(admitted)).await?)
    };
    let cancelled = key.run(recipient, |_| Ok(()), execute).await?;
    cancelled.answer(|()| Ok(ok(WithdrawalView::of(&app.engine, &find()?))))
}

/// All withdrawals of a recipient, newest first.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients/{id}/withdraw", operation_id = "list_withdrawals",
    params(WholeListParams), responses((status = 200, body = Withdrawals)))]
pub async fn list(State(app): AppState, caller: Caller, PathId(id): PathId, query: PageQuery) -> Result<Response> {
    let (recipient, _) = find_own(&app, caller, &id)?;
    let all = app.engine.all_withdrawals(recipient, query.cursors.range(&app.engine, recipient)?);
    let (items, next) = query.cursors.first(all, |withdrawal| withdrawal.id.uuid().to_string())?;
    first_of(None, next, items.map(move |found| Ok(WithdrawalView::of(&app.engine, &found?))))
}
