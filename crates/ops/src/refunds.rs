//! Refunds by operators: their review (interface 3.6), and those that an operator starts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::{MerchantCommand, RequestRefund};
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::object::Object;
use ledger::personal::{FreeText, SealedFor};
use ledger::refund::Refund;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::item_version::{Approval, IfMatch, on_version, with_item};
use crate::operator::{Decider, Operator};
use crate::second_operator::{answer, is_first};
use crate::sub_recipients::Notes;
use web::caller::PathId;
use web::idempotency::{Key, KeyScope, KeyedResult, decided};
use web::json::{Checker, Raw, parse_exact};
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::{created, ok};
use web::views::charge::paid_charge;
use web::views::refund::RefundView;

/// A refund that an operator starts.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = OperatorRefund, example = json!({"amount": 3000, "reason": "Produto devolvido"}))]
pub struct OperatorRefundRequest<'a> {
    /// Centavos; all that can still be given back, when absent.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Why, at most 500 characters; the merchant reads it.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

/// Starts a refund of a paid charge. It waits in the queue like one that a merchant asks for, and
/// moves no money until it is approved; recipients keep their splits. Above the limit of two
/// operators, whoever starts it counts as the first of the two.
#[utoipa::path(post, path = "/ops/charges/{txid}/refunds", operation_id = "start_refund",
    params(("txid" = String, Path)), request_body = OperatorRefundRequest,
    responses((status = 201, body = RefundView)))]
pub async fn start(
    State(desk): State<Arc<Desk>>,
    Decider(operator): Decider,
    PathId(txid): PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    let wire: OperatorRefundRequest<'_> = parse_exact(sent.bytes())?;
    let charge = ObjectId::parse(&txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let group = desk.engine.ids().group(charge);
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&charge.txid()))?;
    let (desk, wire, operator) = (&desk, &wire, &operator);
    let execute = |admitted| async move {
        // Order of checks: the path, the body, then the state of the charge.
        let facts = match paid_charge(&desk.engine, desk.disputes, group, charge) {
            Err(problem) if problem.code() == Code::ChargeNotFound => return Err(problem),
            facts => facts,
        };
        let mut check = Checker::new();
        let amount = check.optional(wire.amount, |check, raw| check.centavos("amount", raw, 1..=AMOUNT_MAX.0));
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reason = FreeText { text: check.finish_with(reason)?.into_owned() };
        let (id, amount) = (desk.engine.new_id(group)?, amount.map(Centavos));
        let reason = Some(desk.engine.keyring().seal_value(SealedFor::reason(id), desk.engine.now(), &reason)?);
        let wanted = RequestRefund { id, facts: facts?, amount, take_back: Vec::new(), reason };
        let command = MerchantCommand::RequestRefund(Box::new(wanted));
        Ok(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let asked = key.run_recorded(LedgerId::Merchant(group), Refund::made_by, execute).await?;
    asked.answer(|refund| Ok(created(RefundView::of(&desk.engine, &refund))))
}

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
