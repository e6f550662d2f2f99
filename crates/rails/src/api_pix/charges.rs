//! Charges (`cob`): registered, looked at, removed.

use std::time::{SystemTime, UNIX_EPOCH};

use actors::rails::{OpenPix, PixFate, PixOpening, RailError, RailResult};
use hyper::Method;
use ledger::{ObjectId, Payer, Timestamp};
use serde_json::{Value, json};
use wire::brcode;

use crate::client::Answer;
use crate::client::values::{amount, amount_text, shortened};

use super::calls::{Calls, Lookup};
use super::messages::{Charge, reason};
use super::receipts::receipt;
use super::words::{CHARGE_REFUSALS, ChargeStatus, REMOVED_BY_RECEIVER, charge_status};

/// How often the end of a charge is ordered in one call.
const ENDS: usize = 2;
/// Characters of a text to the payer.
const TEXT_LEN_MAX: usize = 140;
/// Characters of a payer's name.
const NAME_LEN_MAX: usize = 200;

/// Registers a charge, once. An answer that is not known is asked for. Only a refusal that the
/// institution repeats by having no such charge is one.
pub(super) async fn open(calls: &Calls, call: &OpenPix) -> RailResult<PixOpening> {
    let path = path(calls, call.charge);
    let Some(body) = new_charge(calls, call) else {
        return Ok(PixOpening::Refused { reason: "the amount has more than ten digits".to_owned() });
    };
    let answer = match call.is_repeat {
        true => None,
        false => calls.order_once(Method::PUT, &path, &body).await?,
    };
    let refusal = answer.as_ref().filter(|answer| answer.says(CHARGE_REFUSALS)).map(reason);
    let charge = answer.filter(|answer| matches!(answer.status.as_u16(), 200 | 201)).map(|answer| charge(&answer));
    match charge {
        Some(Ok(charge)) => return registered(calls, &path, charge, call),
        Some(Err(defect)) => calls.complain(&path, &defect),
        None => {}
    }
    match (find(calls, &path, !call.is_repeat).await?, refusal) {
        (Some(charge), _) => registered(calls, &path, charge, call),
        (None, Some(reason)) => Ok(PixOpening::Refused { reason }),
        (None, None) => Err(RailError::HasNone),
    }
}

/// Removes a charge, again where the token was refused: that carries nothing out. Only what the
/// institution then says of it decides.
pub(super) async fn cancel(calls: &Calls, id: ObjectId) -> RailResult<PixFate> {
    let path = path(calls, id);
    let body = json!({ "status": REMOVED_BY_RECEIVER });
    for send in 0..ENDS {
        let answer = match calls.order(Method::PATCH, &path, &body).await {
            Err(RailError::NotSent) if send == 0 => return Err(RailError::NotSent),
            answer => answer.ok(),
        };
        let Some(charge) = find(calls, &path, true).await? else { return Ok(PixFate::Cancelled) };
        if let Some(fate) = fate(calls, &path, &charge, id)? {
            return Ok(fate);
        }
        // Only a refused token says that it did not take the order.
        if answer.is_none_or(|answer| answer.status.as_u16() != 401) {
            break;
        }
    }
    calls.complain(&path, "the charge is still ATIVA");
    Err(RailError::NoAnswer)
}

fn path(calls: &Calls, id: ObjectId) -> String {
    format!("{}/{}", calls.institution.cob, id.txid())
}

/// The charge as the institution has it; `None` if it says so itself. Where an order has left,
/// nothing is [`RailError::NotSent`] any more.
async fn find(calls: &Calls, path: &str, has_left: bool) -> RailResult<Option<Charge>> {
    match calls.find(path, calls.institution.preset.no_charge).await {
        Ok(Lookup::None) => Ok(None),
        Ok(Lookup::It(answer)) => charge(&answer).map(Some).map_err(|defect| {
            calls.complain(path, &defect);
            RailError::NoAnswer
        }),
        Err(error) => Err(if has_left { RailError::NoAnswer } else { error }),
    }
}

fn charge(answer: &Answer) -> Result<Charge, String> {
    answer.read()
}

fn new_charge(calls: &Calls, call: &OpenPix) -> Option<Value> {
    let seconds = (call.expires_at.0 - now().0).div_euclid(1000).clamp(1, i64::from(i32::MAX));
    let mut body = json!({
        "calendario": { "expiracao": seconds },
        "valor": { "original": amount_text(call.amount)? },
        "chave": calls.institution.key,
    });
    if let Some(debtor) = debtor(&call.payer) {
        body["devedor"] = debtor;
    }
    let text = call.payer.description.as_deref().map(|text| shortened(text, TEXT_LEN_MAX));
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        body["solicitacaoPagador"] = text.into();
    }
    Some(body)
}

/// The payer, where name and document are known.
fn debtor(payer: &Payer) -> Option<Value> {
    let name = shortened(&payer.name, NAME_LEN_MAX);
    let document = match payer.document.len() {
        11 => "cpf",
        14 => "cnpj",
        _ => return None,
    };
    (!name.is_empty()).then(|| json!({ document: payer.document, "nome": name }))
}

/// What an answer to an order, or about one, comes to. It must be our charge to the last field.
fn registered(calls: &Calls, path: &str, charge: Charge, call: &OpenPix) -> RailResult<PixOpening> {
    let (code, status) = (charge.code.unwrap_or_default(), charge_status(&charge.status));
    let differs = if charge.txid != call.charge.txid() {
        "txid is another one"
    } else if amount(&charge.valor.original) != Some(call.amount) {
        "valor.original is not the amount"
    } else if status.is_none() {
        "status is a word that is not known"
    } else if status != Some(ChargeStatus::Active) {
        return Ok(PixOpening::Ended);
    } else if !brcode::is_sound(&code) {
        "pixCopiaECola is no BR Code with a right checksum"
    } else {
        return Ok(PixOpening::Registered { code });
    };
    calls.complain(path, differs);
    Err(RailError::NoAnswer)
}

/// What became of a charge; none while it may still be paid.
fn fate(calls: &Calls, path: &str, charge: &Charge, id: ObjectId) -> RailResult<Option<PixFate>> {
    let unknown = |defect: &str| {
        calls.complain(path, defect);
        Err(RailError::NoAnswer)
    };
    if charge.txid != id.txid() {
        return unknown("txid is another one");
    }
    let Some(status) = charge_status(&charge.status) else { return unknown("status is a word that is not known") };
    // Payments that there are count more than the status.
    if let Some(payment) = charge.pix.as_ref().and_then(|payments| payments.first()) {
        return match receipt(payment) {
            Ok(receipt) if receipt.txid.as_deref().is_none_or(|txid| txid == charge.txid) => {
                Ok(Some(PixFate::Paid(receipt)))
            }
            Ok(_) => unknown("pix[0].txid is another one"),
            Err(defect) => unknown(&format!("pix[0]: {defect}")),
        };
    }
    let is_expired = charge.calendario.expires_at().is_some_and(|expires_at| expires_at < now());
    match status {
        ChargeStatus::Removed => Ok(Some(PixFate::Cancelled)),
        ChargeStatus::Active if is_expired => Ok(Some(PixFate::Cancelled)),
        ChargeStatus::Active => Ok(None),
        ChargeStatus::Paid => unknown("it is CONCLUIDA without a payment"),
    }
}

/// The time by this machine's clock.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
