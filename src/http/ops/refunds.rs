//! The review of refunds (interface 3.6).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::record::Requester;

use crate::http::app::{App, Caller, Operator, PathId, Settled, settled};
use crate::http::body::JsonBody;
use crate::http::charges::Charge;
use crate::http::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use crate::http::json::parse;
use crate::http::ops::sub_recipients::Notes;
use crate::http::problem::{Code, Problem};
use crate::http::refunds::{Refund, RefundView};
use crate::http::reply::ok;

/// Approves a refund: the money moves at once, and goes back to the payer.
#[utoipa::path(post, path = "/ops/refunds/{id}/approve", operation_id = "approve_refund", params(("id" = String, Path)),
    responses((status = 200, body = RefundView)))]
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
    let Refund { id, charge, group, .. } = named(&app, &id)?;
    let command = || {
        let facts = Box::new(Charge::facts(&app, Caller { group, key: None }, charge)?);
        Ok(MerchantCommand::ApproveRefund { id, facts })
    };
    let route = format!("POST /ops/refunds/{}/approve", id.txid());
    let decided = decide(&app, operator, group, &route, &sent_key, &body, command).await?;
    Ok(decided.shown(ok(named(&app, &id.txid())?.view(&app))))
}

/// Rejects a refund.
#[utoipa::path(post, path = "/ops/refunds/{id}/reject", operation_id = "reject_refund", params(("id" = String, Path)),
    request_body = Notes,
    responses((status = 200, body = RefundView)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    operator: Operator,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: Notes<'_> = parse(&body)?;
    let Refund { id, group, .. } = named(&app, &id)?;
    let command = || Ok(MerchantCommand::RejectRefund { id, notes: wire.check()? });
    let route = format!("POST /ops/refunds/{}/reject", id.txid());
    let decided = decide(&app, operator, group, &route, &sent_key, &body, command).await?;
    Ok(decided.shown(ok(named(&app, &id.txid())?.view(&app))))
}

fn named(app: &App, id: &str) -> Result<Refund, Problem> {
    let found = ObjectId::parse(id).map(|id| Refund::find(app, id)).transpose()?.flatten();
    found.ok_or_else(|| Problem::new(Code::NotFound))
}

/// How an operator's decision came about.
pub(super) enum Decided {
    /// By this request.
    Now,
    /// By the same request, before.
    Before,
}

impl Decided {
    /// The answer, marked if it was given before. A decision is final, so what it decided is shown as it stands.
    pub(super) fn shown(self, answer: Response) -> Response {
        match self {
            Self::Now => answer,
            Self::Before => replayed(answer),
        }
    }
}

/// Carries out a decision on something of a merchant's, and gives money back where it says so.
pub(super) async fn decide(
    app: &App,
    Operator(operator): Operator,
    group: GroupNumber,
    route: &str,
    sent_key: &SentKey,
    body: &[u8],
    command: impl Fn() -> Result<MerchantCommand, Problem>,
) -> Result<Decided, Problem> {
    let key = Key::of(app, sent_key, "operations", route, body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(app, LedgerId::Merchant(group))? {
            Keyed::Replay(..) => return Ok(Decided::Before),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        let command = command()?;
        let outcome = app
            .engine
            .command_and_repay(group, command, lookup, Some(Requester::Operator(operator.clone())), permit)
            .await?;
        match settled(outcome)? {
            Settled::KeyTaken => {}
            Settled::Recorded(_) | Settled::Unchanged => return Ok(Decided::Now),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}
