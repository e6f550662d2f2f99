//! Returns (`devolucao`): ours, and those that the payer's institution asked for (MED).

use actors::rails::{CaseStage, PixSpan, RailCase, RailCases, RailError, RailResult, Repay, RepayAnswer};
use hyper::Method;
use ledger::{ObjectId, RailStamp, Timestamp};
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::Answer;
use crate::client::values::{REASON_LEN_MAX, amount, amount_text, is_message_id, shortened};

use super::calls::{Calls, Lookup};
use super::messages::{Return, ReturnedPayment, ReturnsOfPayment, reason};
use super::receipts::page;
use super::words::{RETURN_REFUSALS, ReturnStatus, is_of_dispute, return_status};

/// Orders a return under our id, once. An answer that is not known, and a refused repeat, are asked
/// for.
pub(super) async fn repay(calls: &Calls, call: &Repay) -> RailResult<RepayAnswer> {
    let payment = payment_path(calls, call)?;
    let path = format!("{payment}/devolucao/{}", call.id.txid());
    let body = json!({ "valor": amount_text(call.amount).ok_or(RailError::NoAnswer)? });
    let answer = match call.is_repeat {
        true => None,
        false => calls.order_once(Method::PUT, &path, &body).await?,
    };
    let refusal = answer.as_ref().filter(|answer| answer.says(RETURN_REFUSALS)).map(reason);
    let taken = answer.filter(|answer| matches!(answer.status.as_u16(), 200 | 201));
    match taken.map(|answer| read(&answer)) {
        Some(Ok(taken)) => return outcome(calls, &path, &taken, call),
        Some(Err(defect)) => calls.complain(&path, &defect),
        None => {}
    }
    match (calls.find(&path, calls.institution.preset.no_return).await, refusal) {
        (Ok(Lookup::It(answer)), _) => {
            let found = read(&answer).map_err(|defect| {
                calls.complain(&path, &defect);
                RailError::NoAnswer
            })?;
            outcome(calls, &path, &found, call)
        }
        (Ok(Lookup::None), Some(reason)) => Ok(RepayAnswer::Refused { reason }),
        (Ok(Lookup::None), None) => Err(RailError::HasNone),
        (Err(_), _) => Err(RailError::NoAnswer),
    }
}

/// Looks for the return that the institution made itself. Until it has, nothing is known.
pub(super) async fn accept_dispute(calls: &Calls, dispute: &Repay) -> RailResult<RailStamp> {
    let path = payment_path(calls, dispute)?;
    let answer = calls.get(&path, &[]).await?;
    let unknown = |defect: &str| {
        calls.complain(&path, defect);
        Err(RailError::NoAnswer)
    };
    if answer.status.as_u16() != 200 {
        return unknown(&format!("its answer {} is none that is known", answer.status.as_u16()));
    }
    let payment: ReturnsOfPayment = match answer.read() {
        Ok(payment) => payment,
        Err(defect) => return unknown(&defect),
    };
    if payment.end_to_end_id != dispute.payment {
        return unknown("endToEndId is another one");
    }
    let is_it = |of: &Return| {
        of.natureza.as_deref().is_some_and(is_of_dispute)
            && return_status(&of.status) == Some(ReturnStatus::Done)
            && amount(&of.valor) == Some(dispute.amount)
    };
    let made = payment.devolucoes.unwrap_or_default().into_iter().find(is_it);
    match made.as_ref().map(stamp) {
        Some(Ok(stamp)) => Ok(stamp),
        Some(Err(defect)) => unknown(defect),
        None => Err(RailError::NoAnswer),
    }
}

/// How long after its payment the payer's institution can have money back, milliseconds: 90 days.
const DISPUTED_WITHIN_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// The special returns (MED) that the institution made in a span, each as a debit. Payments are
/// listed by their own time, so the list begins 90 days earlier.
pub(super) async fn debits(calls: &Calls, span: PixSpan) -> RailResult<RailCases> {
    let paid = PixSpan { from: span.from.plus_ms(-DISPUTED_WITHIN_MS), ..span };
    let filters = [("devolucaoPresente", true.to_string())];
    let read = |text: &RawValue| {
        serde_json::from_str::<ReturnedPayment>(text.get()).map_err(|_| "a field is absent or wrong".to_owned())
    };
    let (payments, has_more) = page(calls, &calls.institution.pix, &filters, paid, read).await?;
    let mut cases: Vec<_> = payments.iter().flat_map(|payment| debits_of(calls, payment)).collect();
    cases.retain(|(at, _)| (span.from..=span.until).contains(at));
    Ok(RailCases { cases: cases.into_iter().map(|(_, case)| case).collect(), has_more })
}

/// The special returns of a payment, each with its time. The payment may be none of a charge.
fn debits_of(calls: &Calls, payment: &ReturnedPayment) -> Vec<(Timestamp, RailCase)> {
    let of_ours = payment.txid.as_deref().and_then(ObjectId::parse);
    let charge = of_ours.unwrap_or_else(|| ObjectId::of_text("a payment to the key"));
    let returns = payment.devolucoes.iter().flatten();
    let made = returns.filter(|of| {
        of.natureza.as_deref().is_some_and(is_of_dispute) && return_status(&of.status) == Some(ReturnStatus::Done)
    });
    let read = |of: &Return| {
        let stamp = stamp(of)?;
        let amount = amount(&of.valor).filter(|amount| amount.is_positive()).ok_or("valor is no amount")?;
        let reason = of.motivo.as_deref().or(of.natureza.as_deref()).unwrap_or_default();
        let reason = shortened(reason, REASON_LEN_MAX);
        let (id, at) = (stamp.id.clone(), stamp.at);
        let stage = CaseStage::Debited(stamp);
        Ok::<_, &str>((at, RailCase { id, charge, amount, reason, due_at: None, stage, is_debit_alone: true }))
    };
    let logged = |of: &Return| read(of).inspect_err(|defect| calls.complain(&calls.institution.pix, defect)).ok();
    made.filter_map(logged).collect()
}

fn payment_path(calls: &Calls, call: &Repay) -> RailResult<String> {
    if is_message_id(&call.payment) {
        return Ok(format!("{}/{}", calls.institution.pix, call.payment));
    }
    calls.complain(&calls.institution.pix, "the payment has no end-to-end id of 32 letters and digits");
    Err(RailError::NoAnswer)
}

fn read(answer: &Answer) -> Result<Return, String> {
    answer.read()
}

/// What became of a return, which must be ours.
fn outcome(calls: &Calls, path: &str, found: &Return, call: &Repay) -> RailResult<RepayAnswer> {
    let unknown = |defect: &str| {
        calls.complain(path, defect);
        Err(RailError::NoAnswer)
    };
    if found.id != call.id.txid() {
        return unknown("id is another one");
    }
    if amount(&found.valor) != Some(call.amount) {
        return unknown("valor is not the amount");
    }
    match return_status(&found.status) {
        Some(ReturnStatus::Done) => match stamp(found) {
            Ok(stamp) => Ok(RepayAnswer::Repaid(stamp)),
            Err(defect) => unknown(defect),
        },
        Some(ReturnStatus::UnderWay) => Ok(RepayAnswer::UnderWay),
        Some(ReturnStatus::Refused) => {
            let reason = found.motivo.as_deref().map(|reason| shortened(reason, REASON_LEN_MAX));
            let reason = reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| found.status.clone());
            Ok(RepayAnswer::Refused { reason })
        }
        None => unknown("status is a word that is not known"),
    }
}

fn stamp(made: &Return) -> Result<RailStamp, &'static str> {
    let id = made.return_id.clone().filter(|id| is_message_id(id)).ok_or("rtrId has not 32 letters and digits")?;
    let at = made.horario.as_ref().and_then(|times| times.at()).ok_or("horario has no instant with a zone")?;
    Ok(RailStamp::new(id, at))
}
