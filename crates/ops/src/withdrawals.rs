//! Review of withdrawals by operators (interface 3.5).

use axum::response::Response;
use ledger::{Object, ObjectId, RecipientCommand, Withdrawal};

use crate::DeciderCall;
use crate::holds::{HoldReason, refuse_held_payout};
use crate::item_version::{Approval, unchanged, with_item};
use crate::second_operator::{answer, is_first};
use crate::sub_recipients::Notes;
use web::views::recipient::{find_recipient, known_recipient};
use web::views::withdrawal::{ReviewedWithdrawal, destination};
use web::{Result, created, decided, not_found, ok, parse_exact};

/// Approves a pending withdrawal and sends its money. It reads `pending` until the institution has
/// taken that. Above the limit of two operators the first approval is 202 and sends nothing;
/// another operator's is the decision. 403 `payouts_held` while the merchant's payouts are held.
#[utoipa::path(post, path = "/ops/withdrawals/{id}/approve", operation_id = "approve_withdrawal",
    request_body = Option<Approval>,
    responses((status = 200, body = ReviewedWithdrawal), (status = 202, body = ReviewedWithdrawal)))]
pub async fn approve(call: DeciderCall) -> Result<Response> {
    decide(&call, call.approved()?, None).await
}

/// Rejects a pending withdrawal: the money and the splits are available again.
#[utoipa::path(post, path = "/ops/withdrawals/{id}/reject", operation_id = "reject_withdrawal",
    request_body = Notes, responses((status = 200, body = ReviewedWithdrawal)))]
pub async fn reject(call: DeciderCall) -> Result<Response> {
    let (notes, seen) = call.rejected()?;
    decide(&call, seen, Some(notes)).await
}

/// Asks for a withdrawal of all that is available to a recipient, by an operator: also where the
/// merchant may not split, or is closing. It waits in the queue until another operator approves it.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/withdraw", operation_id = "withdraw_for_recipient",
    request_body = HoldReason, responses((status = 201, body = ReviewedWithdrawal)))]
pub async fn ask(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: HoldReason<'_> = parse_exact(sent.bytes())?;
    let found = || ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
    let (recipient, row) = found().ok_or_else(not_found)?;
    let (group, reason) = (desk.engine.ids().group(row.id), wire.check()?);
    let (key, reason) = (call.key(&row.id.txid())?, &reason);
    let execute = |admitted| async move {
        let (_, row) = known_recipient(&desk.engine, row.id)?;
        let id = desk.engine.new_id(group)?;
        let destination = destination(&desk.engine, &row, id)?;
        let command = RecipientCommand::Withdraw { id, destination, reason: Some(reason.clone()) };
        Ok(desk.engine.command_recipient(recipient, command, operator.context(admitted)).await?)
    };
    let asked = key.run_recorded(recipient, Withdrawal::made_by, execute).await?;
    asked.answer(|withdrawal| Ok(created(ReviewedWithdrawal::of(&desk.engine, &withdrawal))))
}

/// Rejects for the reason given, or approves when there is none.
async fn decide(call: &DeciderCall, seen: Option<u32>, reason: Option<Notes<'_>>) -> Result<Response> {
    let DeciderCall { desk, operator, .. } = call;
    let withdrawal: Withdrawal = desk.named(&call.id)?;
    let (id, withdrawal, reason) = (withdrawal.id, &withdrawal, &reason);
    let key = call.key(&id.txid())?;
    if reason.is_none() {
        refuse_held_payout(desk, desk.engine.ids().group(id))?;
    }
    let execute = |admitted| async move {
        unchanged(desk, id, seen)?;
        let (recipient, context) = (withdrawal.recipient, operator.context(admitted));
        let outcome = match reason {
            Some(notes) => {
                let command = RecipientCommand::RejectWithdrawal { id, notes: notes.check()? };
                desk.engine.command_recipient(recipient, command, context).await?
            }
            None if is_first(desk, operator, id, withdrawal.amount)? => {
                desk.engine.command_recipient(recipient, RecipientCommand::AskApproval { id }, context).await?
            }
            None => {
                let transfer = (id, withdrawal.amount, withdrawal.destination.clone());
                desk.engine.approve_withdrawal(recipient, transfer, context).await?
            }
        };
        decided(outcome).map_err(|problem| with_item(desk, id, problem))
    };
    let decided = key.run(withdrawal.recipient, |_| Ok(()), execute).await?;
    let answered = decided.answer(|()| Ok(ok(ReviewedWithdrawal::of(&desk.engine, &desk.named(&call.id)?))))?;
    Ok(if reason.is_none() { answer(desk, id, answered) } else { answered })
}
