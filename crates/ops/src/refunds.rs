//! Refunds by operators: their review (interface 3.6), and those that an operator starts.

use actors::engine::Engine;
use axum::response::Response;
use ledger::merchant::RequestRefund;
use ledger::{AMOUNT_MAX, Centavos, FreeText, LedgerId, MerchantCommand, Object, ObjectId, Refund, SealedFor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::DeciderCall;
use crate::item_version::{Approval, on_version, with_item};
use crate::second_operator::{answer, is_first};
use crate::sub_recipients::Notes;
use web::views::charge::paid_charge;
use web::views::refund::RefundView;
use web::{Checker, Code, Problem, Raw, Result, created, decided, ok, parse_exact};

/// A refund that an operator starts.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = OperatorRefund, example = json!({"amount": 3000, "reason": "Produto devolvido"}))]
pub struct OperatorRefundRequest<'a> {
    /// Centavos; all that can still be given back, when absent.
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
    request_body = OperatorRefundRequest, responses((status = 201, body = RefundView)))]
pub async fn start(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id: txid, sent, .. } = &call;
    let wire: OperatorRefundRequest<'_> = parse_exact(sent.bytes())?;
    let charge = ObjectId::parse(txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let group = desk.engine.ids().group(charge);
    let (key, wire) = (call.key(&charge.txid())?, &wire);
    let execute = |admitted| async move {
        // Order of checks: the path, the body, then the state of the charge.
        let facts = match paid_charge(&desk.engine, desk.disputes, group, charge) {
            Err(problem) if problem.code() == Code::ChargeNotFound => return Err(problem),
            facts => facts,
        };
        let mut check = Checker::new();
        let amount = check.optional(wire.amount, |check, raw| check.centavos("amount", raw, 1..=AMOUNT_MAX.0));
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reason = FreeText::from(check.finish_with(reason)?.into_owned());
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
#[utoipa::path(post, path = "/ops/refunds/{id}/approve", operation_id = "approve_refund",
    request_body = Option<Approval>,
    responses((status = 200, body = RefundView), (status = 202, body = RefundView)))]
pub async fn approve(call: DeciderCall) -> Result<Response> {
    let (desk, seen) = (&call.desk, call.approved()?);
    let Refund { id, charge, amount, .. } = desk.named(&call.id)?;
    let group = desk.engine.ids().group(id);
    let command = || {
        if is_first(desk, &call.operator, id, amount)? {
            return Ok(on_version(seen, id, MerchantCommand::AskApproval { id }));
        }
        let facts = Box::new(paid_charge(&desk.engine, desk.disputes, group, charge)?);
        Ok(on_version(seen, id, MerchantCommand::ApproveRefund { id, facts }))
    };
    let approved = decide(&call, id, command, RefundView::of).await?;
    Ok(answer(desk, id, approved))
}

/// Rejects a refund.
#[utoipa::path(post, path = "/ops/refunds/{id}/reject", operation_id = "reject_refund", request_body = Notes,
    responses((status = 200, body = RefundView)))]
pub async fn reject(call: DeciderCall) -> Result<Response> {
    let (notes, seen) = call.rejected()?;
    let Refund { id, .. } = call.desk.named(&call.id)?;
    let command = || Ok(on_version(seen, id, MerchantCommand::RejectRefund { id, notes: notes.check()? }));
    decide(&call, id, command, RefundView::of).await
}

/// Carries out a decision on the refund or dispute of this id, and gives money back where it says
/// so. A decision is final: `view` shows it as it stands, whichever request made it.
pub(super) async fn decide<T: Object, V: Serialize>(
    call: &DeciderCall,
    id: ObjectId,
    command: impl Fn() -> Result<MerchantCommand>,
    view: impl Fn(&Engine, &T) -> V,
) -> Result<Response> {
    let DeciderCall { desk, operator, .. } = call;
    let (command, group) = (&command, desk.engine.ids().group(id));
    let execute = |admitted| async move {
        let outcome = desk.engine.command_and_repay(group, command()?, operator.context(admitted)).await?;
        decided(outcome).map_err(|problem| with_item(desk, id, problem))
    };
    let key = call.key(&id.txid())?;
    let decided = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    decided.answer(|()| Ok(ok(view(&desk.engine, &desk.named(&call.id)?))))
}
