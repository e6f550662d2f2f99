//! Disputes: operators open a dispute when a payer's bank wants a charge back, and accept or
//! release it. Two operators reverse one that was accepted and is won later.

use axum::response::Response;
use ledger::adjustment::{Adjustment, AdjustmentTerms};
use ledger::asked_entry::EntryCommand;
use ledger::merchant::OpenDispute;
use ledger::{
    AMOUNT_MAX, AdjustmentTarget, Centavos, ChargeFacts, Dispute, DisputeKind, FreeText, GroupNumber, LedgerId,
    MerchantCommand, Object, ObjectId, SealedFor,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::item_version::on_version;
use crate::refunds::decide;
use crate::{DeciderCall, Desk};
use web::json::or_empty;
use web::views::charge::paid_charge;
use web::views::dispute::DisputeView;
use web::views::house_entry::HouseEntryView;
use web::{Checker, Code, Problem, Raw, Result, checked, created, parse_exact};

/// A dispute, as a payer's bank tells it.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"amount": 3000, "kind": "med", "reason": "Transferência não reconhecida"}))]
pub struct DisputeRequest<'a> {
    /// What is disputed, centavos.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// `chargeback` or `med`.
    #[schema(value_type = String, pattern = "^(chargeback|med)$")]
    kind: Raw<'a>,
    /// Why, at most 500 characters.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

/// An acceptance, which needs no field.
#[derive(Default, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = Acceptance, example = json!({"amount": 2000, "version": 1}))]
pub struct AcceptanceRequest<'a> {
    /// The part that is accepted, centavos; the rest is released. All of it when absent.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// The `version` of the item that was seen in the queue; `If-Match` may have it instead.
    /// Without it, the item is decided on as it is now.
    #[schema(value_type = Option<u32>)]
    version: Raw<'a>,
}

/// A release, which needs no field.
#[derive(Default, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = Release, example = json!({"reason": "Entrega comprovada", "version": 1}))]
pub struct ReleaseRequest<'a> {
    /// Why, at most 500 characters. The rail that has the case gets it with the defense.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
    /// The `version` of the item that was seen in the queue; `If-Match` may have it instead.
    /// Without it, the item is decided on as it is now.
    #[schema(value_type = Option<u32>)]
    version: Raw<'a>,
}

/// The reversal of a dispute that was accepted and is won later.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = Reversal, example = json!({"reason": "Ganha na segunda instância", "reference": "CHAMADO-18"}))]
pub struct ReversalRequest<'a> {
    /// Why, at most 500 characters; it stands in the audit trail.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
    /// Reference of the document that proves it, at most 100 characters. The rail's id of the case
    /// when absent or null, or the dispute's id.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    reference: Raw<'a>,
}

/// Opens a dispute of a paid charge: the money is held.
#[utoipa::path(post, path = "/ops/charges/{txid}/disputes", operation_id = "open_dispute",
    request_body = DisputeRequest, responses((status = 201, body = DisputeView)))]
pub async fn open(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id: txid, sent, .. } = &call;
    let wire: DisputeRequest<'_> = parse_exact(sent.bytes())?;
    let charge = ObjectId::parse(txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let group = desk.engine.ids().group(charge);
    let (key, wire) = (call.key(&charge.txid())?, &wire);
    let execute = |admitted| async move {
        // Order of checks: the path, the body, then the state of the charge.
        let facts = match paid_charge(&desk.engine, desk.disputes, group, charge) {
            Err(problem) if problem.code() == Code::ChargeNotFound => return Err(problem),
            facts => facts,
        };
        let checked = check(wire)?;
        let command = opening(desk, group, facts?, checked)?;
        Ok(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let opened = key.run_recorded(LedgerId::Merchant(group), Dispute::made_by, execute).await?;
    opened.answer(|dispute| Ok(created(DisputeView::of(&desk.engine, &dispute))))
}

/// The command that opens a dispute under a new id.
pub(super) fn opening(
    desk: &Desk,
    group: GroupNumber,
    facts: ChargeFacts,
    (kind, amount, reason): (DisputeKind, Centavos, FreeText),
) -> Result<MerchantCommand> {
    let id = desk.engine.new_id(group)?;
    let reason = desk.engine.keyring().seal_value(SealedFor::reason(id), desk.engine.now(), &reason)?;
    Ok(MerchantCommand::OpenDispute(Box::new(OpenDispute { facts, id, kind, amount, reason, case: None })))
}

/// The kind of a dispute by its name.
pub(super) fn kind_named(name: &str) -> Option<DisputeKind> {
    match name {
        "chargeback" => Some(DisputeKind::Chargeback),
        "med" => Some(DisputeKind::Med),
        _ => None,
    }
}

fn check(wire: &DisputeRequest<'_>) -> Result<(DisputeKind, Centavos, FreeText)> {
    checked(|check| {
        let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
        let kind = check.text("kind", wire.kind, 1..=20).and_then(|kind| {
            kind_named(&kind).or_else(|| check.refuse("kind", "unknown", "kind deve ser chargeback ou med"))
        });
        let reason = check.prose("reason", wire.reason, 1..=500);
        Some((kind?, Centavos(amount?), FreeText::from(reason?.into_owned())))
    })
}

/// Accepts a dispute, or a part of it: the seller bears that, and the money goes back to the payer.
/// The rest is released.
#[utoipa::path(post, path = "/ops/disputes/{id}/accept", operation_id = "accept_dispute",
    request_body = Option<AcceptanceRequest>, responses((status = 200, body = DisputeView)))]
pub async fn accept(call: DeciderCall) -> Result<Response> {
    let wire: AcceptanceRequest<'_> = parse_exact(or_empty(call.sent.bytes()))?;
    let mut check = Checker::new();
    let amount = check.optional(wire.amount, |check, raw| check.centavos("amount", raw, 1..=AMOUNT_MAX.0));
    check.finish()?;
    let (seen, amount) = (call.if_match.or(wire.version)?, amount.map(Centavos));
    let command = |id, facts: ChargeFacts| {
        on_version(seen, id, MerchantCommand::AcceptDispute { id, amount, facts: Box::new(facts) })
    };
    conclude(&call, command).await
}

/// Releases a dispute: the seller has its money again.
#[utoipa::path(post, path = "/ops/disputes/{id}/release", operation_id = "release_dispute",
    request_body = Option<ReleaseRequest>, responses((status = 200, body = DisputeView)))]
pub async fn release(call: DeciderCall) -> Result<Response> {
    let wire: ReleaseRequest<'_> = parse_exact(or_empty(call.sent.bytes()))?;
    let seen = call.if_match.or(wire.version)?;
    let mut check = Checker::new();
    let notes = check.optional(wire.reason, |check, raw| check.prose("reason", raw, 1..=500));
    check.finish()?;
    let notes = notes.map(|notes| notes.into_owned());
    let command = |id, facts: ChargeFacts| {
        let facts = Box::new(facts);
        on_version(seen, id, MerchantCommand::ReleaseDispute { id, facts, notes: notes.clone() })
    };
    conclude(&call, command).await
}

/// Asks to give the merchant back what an accepted dispute took, since it was won later. It waits
/// in the queue as an entry until another operator approves it.
#[utoipa::path(post, path = "/ops/disputes/{id}/reverse", operation_id = "reverse_dispute",
    request_body = ReversalRequest, responses((status = 201, body = HouseEntryView)))]
pub async fn reverse(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: ReversalRequest<'_> = parse_exact(sent.bytes())?;
    let Dispute { id, .. } = desk.named(id)?;
    let group = desk.engine.ids().group(id);
    let (key, wire) = (call.key(&id.txid())?, &wire);
    let execute = |admitted| async move {
        let mut check = Checker::new();
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reference = check.optional_text("reference", wire.reference, 1..=100);
        let reason = check.finish_with(reason)?.into_owned();
        let (dispute, facts) = with_charge(desk, id)?;
        let case = || dispute.case.as_ref().map_or_else(|| id.uuid().to_string(), |case| case.id.clone());
        let reference = reference.map_or_else(case, |reference| reference.into_owned());
        let terms = AdjustmentTerms { amount: dispute.amount, reference, target: Some(AdjustmentTarget::Dispute(id)) };
        let command = EntryCommand::Request { id: desk.engine.new_id(group)?, terms, reason };
        Ok(desk.engine.reverse_dispute(dispute, facts, Some(command), operator.context(admitted)).await?)
    };
    let requested = key.run_recorded(LedgerId::Merchant(group), Adjustment::made_by, execute).await?;
    requested.answer(|entry| Ok(created(HouseEntryView::of_adjustment(&desk.engine, entry))))
}

/// A dispute of the books, and the facts of its charge.
pub(crate) fn with_charge(desk: &Desk, id: ObjectId) -> Result<(Dispute, ChargeFacts)> {
    let dispute: Dispute = desk.engine.known_object(id)?;
    let facts = paid_charge(&desk.engine, desk.disputes, desk.engine.ids().group(id), dispute.charge)?;
    Ok((dispute, facts))
}

async fn conclude(call: &DeciderCall, command: impl Fn(ObjectId, ChargeFacts) -> MerchantCommand) -> Result<Response> {
    let desk = &call.desk;
    let Dispute { id, charge, .. } = desk.named(&call.id)?;
    let command = || Ok(command(id, paid_charge(&desk.engine, desk.disputes, desk.engine.ids().group(id), charge)?));
    decide(call, id, command, DisputeView::of).await
}
