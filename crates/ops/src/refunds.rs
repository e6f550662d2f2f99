//! Review of refunds by operators (interface 3.6).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::refund::Refund;

use crate::desk::Desk;
use crate::item_version::{Approval, IfMatch, on_version, with_item};
use crate::operator::{Decider, Operator};
use crate::second_operator::{answer, is_first};
use crate::sub_recipients::Notes;
use web::caller::PathId;
use web::idempotency::{Key, KeyScope, KeyedResult, decided};
use web::json::parse_exact;
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::ok;
use web::views::charge::paid_charge;
use web::views::refund::RefundView;

/// Approves a refund: the money moves at once, and goes back to the payer. Above the limit of two
/// operators the first approval is 202 and moves nothing; another operator's is the decision.
#[utoipa::path(post, path = "/ops/refunds/{id}/approve", operation_id = "approve_refund", params(("id" = String, Path)),
    request_body = Option<Approval>,
    responses((status = 200, body = RefundView), (status = 202, body = RefundView)))]
pub async fn approve(
    State(desk): State<Arc<Desk>>,
    Decider(operator): Decider,
    PathId(id): PathId,
    if_match: IfMatch,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    let seen = if_match.or_in(&Approval::read(sent.bytes())?)?;
    let Refund { id, charge, amount, .. } = named(&desk, &id)?;
    let group = desk.engine.ids().group(id);
    let command = || {
        if is_first(&desk, &operator, id, amount)? {
            return Ok(on_version(seen, id, MerchantCommand::AskApproval { id }));
        }
        let facts = Box::new(paid_charge(&desk.engine, desk.disputes, group, charge)?);
        Ok(on_version(seen, id, MerchantCommand::ApproveRefund { id, facts }))
    };
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&id.txid()))?;
    let decided = decide(&desk, &operator, id, key, command).await?;
    let approved = decided.answer(|()| Ok(ok(RefundView::of(&desk.engine, &named(&desk, &id.txid())?))))?;
    Ok(answer(&desk, id, approved))
}

/// Rejects a refund.
#[utoipa::path(post, path = "/ops/refunds/{id}/reject", operation_id = "reject_refund", params(("id" = String, Path)),
    request_body = Notes,
    responses((status = 200, body = RefundView)))]
pub async fn reject(
    State(desk): State<Arc<Desk>>,
    Decider(operator): Decider,
    PathId(id): PathId,
    if_match: IfMatch,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    let wire: Notes<'_> = parse_exact(sent.bytes())?;
    let seen = if_match.or(wire.version)?;
    let Refund { id, .. } = named(&desk, &id)?;
    let command = || Ok(on_version(seen, id, MerchantCommand::RejectRefund { id, notes: wire.check()? }));
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&id.txid()))?;
    let decided = decide(&desk, &operator, id, key, command).await?;
    decided.answer(|()| Ok(ok(RefundView::of(&desk.engine, &named(&desk, &id.txid())?))))
}

fn named(desk: &Desk, id: &str) -> Result<Refund, Problem> {
    let found = ObjectId::parse(id).map(|id| desk.engine.object(id)).transpose()?.flatten();
    found.ok_or_else(|| Problem::new(Code::NotFound))
}

/// Carries out a decision on the refund or dispute of this id, and gives money back where it says
/// so. A decision is final: it is shown as it stands, whichever request made it.
pub(super) async fn decide(
    desk: &Desk,
    operator: &Operator,
    id: ObjectId,
    key: Key<'_>,
    command: impl Fn() -> Result<MerchantCommand, Problem>,
) -> Result<KeyedResult<()>, Problem> {
    let (command, group) = (&command, desk.engine.ids().group(id));
    let execute = |admitted| async move {
        let outcome = desk.engine.command_and_repay(group, command()?, operator.context(admitted)).await?;
        decided(outcome).map_err(|problem| with_item(desk, id, problem))
    };
    key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await
}
