//! The review of withdrawals (interface 3.5).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::ObjectId;
use ledger::recipient::RecipientCommand;
use ledger::record::Requester;

use super::sub_recipients::Notes;
use crate::http::app::{App, Operator, PathId, Settled, settled};
use crate::http::body::JsonBody;
use crate::http::charges::recipient_id;
use crate::http::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use crate::http::json::parse;
use crate::http::problem::{Code, Problem};
use crate::http::reply::ok;
use crate::http::sub_recipients::find_recipient;
use crate::http::withdrawals::{ReviewedWithdrawal, Withdrawal, approved_account};

/// Approves a pending withdrawal and sends its money. It reads `pending` until the institution has taken that.
#[utoipa::path(post, path = "/ops/withdrawals/{id}/approve", operation_id = "approve_withdrawal",
    params(("id" = String, Path)),
    responses((status = 200, body = ReviewedWithdrawal)))]
pub async fn approve(
    State(app): State<Arc<App>>,
    operator: Operator,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    if !body.is_empty() {
        parse::<serde::de::IgnoredAny>(&body)?;
    }
    decide(&app, operator, &id, &sent_key, &body, None).await
}

/// Rejects a pending withdrawal: the money and the splits are available again.
#[utoipa::path(post, path = "/ops/withdrawals/{id}/reject", operation_id = "reject_withdrawal",
    params(("id" = String, Path)), request_body = Notes,
    responses((status = 200, body = ReviewedWithdrawal)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    operator: Operator,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let notes: Notes<'_> = parse(&body)?;
    decide(&app, operator, &id, &sent_key, &body, Some(notes)).await
}

/// Rejects for the reason given, or approves when there is none.
async fn decide(
    app: &App,
    Operator(operator): Operator,
    id: &str,
    sent_key: &SentKey,
    body: &[u8],
    reason: Option<Notes<'_>>,
) -> Result<Response, Problem> {
    let id = ObjectId::parse(id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let find = || Withdrawal::find(app, id)?.ok_or_else(|| Problem::new(Code::NotFound));
    let withdrawal = find()?;
    let verb = if reason.is_some() { "reject" } else { "approve" };
    let route = format!("POST /ops/withdrawals/{}/{verb}", id.txid());
    let key = Key::of(app, sent_key, "operations", &route, body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(app, withdrawal.recipient)? {
            Keyed::Replay(..) => return Ok(replayed(ok(find()?.review(app)))),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        let (recipient, operator) = (withdrawal.recipient, operator.clone());
        let outcome = match &reason {
            None => {
                // An older release pinned no account: the money goes to the one that is registered.
                if let (None, Some((_, row))) =
                    (&withdrawal.destination, recipient_id(app, recipient).and_then(|id| find_recipient(app, id)))
                {
                    approved_account(&row)?;
                }
                let transfer = (id, withdrawal.amount, withdrawal.destination.clone());
                app.engine.approve_withdrawal(recipient, transfer, lookup, operator, permit).await?
            }
            Some(notes) => {
                let command = RecipientCommand::RejectWithdrawal { id, notes: notes.check()? };
                app.engine
                    .command_recipient(recipient, command, lookup, Some(Requester::Operator(operator)), permit)
                    .await?
            }
        };
        match settled(outcome)? {
            Settled::KeyTaken => {}
            Settled::Recorded(_) | Settled::Unchanged => return Ok(ok(find()?.review(app))),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}
