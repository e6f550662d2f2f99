//! PIX charges: registered, ended.

use actors::rails::{OpenPix, PixFate, PixOpening, PixReceipt, RailError, RailResult};
use ledger::{Centavos, ObjectId};
use serde::Serialize;
use wire::brcode;
use wire::timestamp::with_milliseconds;

use super::calls::{BridgeCalls, now};
use super::cards::sure_at;
use super::messages::{Object, Outcome, PixPayment, body, end_to_end_id};
use super::settings::RailKind;
use crate::client::values::{instant, is_txid};
use crate::shared_settings::Repeats;

pub(super) const LIST: &str = "/pix";

#[derive(Serialize)]
struct NewCharge<'a> {
    amount: i64,
    expires_at: String,
    payer: NewPayer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
}

#[derive(Serialize)]
struct NewPayer<'a> {
    name: &'a str,
    document: &'a str,
}

/// Registers a charge.
pub(super) async fn open(calls: &BridgeCalls, call: &OpenPix) -> RailResult<PixOpening> {
    let of = calls.serving(RailKind::Pix).await?;
    let id = call.charge.txid();
    let path = format!("{LIST}/{id}");
    if of.repeats == Repeats::Again {
        calls.complain(&path, "PIX charges need a rail whose repeats are same or refused");
        return Err(RailError::NotSent);
    }
    let message = NewCharge {
        amount: call.amount.0,
        expires_at: with_milliseconds(call.expires_at.0),
        payer: NewPayer { name: &call.payer.name, document: &call.payer.document },
        description: call.payer.description.as_deref(),
    };
    let may_repeat = of.may_repeat(call.charge.created_at(), now());
    let outcome = match call.is_repeat || !may_repeat {
        true => calls.find(LIST, &id).await?,
        false => calls.order(LIST, &id, body(&message)).await?,
    };
    match outcome {
        Outcome::None if may_repeat => Err(RailError::HasNone),
        Outcome::Refused(refusal) => Ok(PixOpening::Refused { reason: refusal.reason }),
        Outcome::It(object) => registered(&object, call.amount).map_err(|defect| calls.unknown(&path, defect)),
        Outcome::None => Err(calls.unknown(&path, "it has none, and the order is too old to be sent again")),
    }
}

/// A charge of this amount that can be paid, to the last field, or one that has ended.
pub(super) fn registered(object: &Object, amount: Centavos) -> Result<PixOpening, &'static str> {
    match object.status.as_str() {
        "closed" => return Ok(PixOpening::Ended),
        _ if !object.has_amount(amount) => return Err("amount is not that of the order"),
        "paid" => return Ok(PixOpening::Ended),
        "open" => {}
        _ => return Err("status says no outcome"),
    }
    let code = object.code.clone().filter(|code| brcode::is_sound(code));
    let code = code.ok_or("code is no BR Code with a right checksum")?;
    match brcode::amount(&code) {
        Some(other) if other != 0 && other != amount.0 => Err("code has another amount than the order"),
        _ => Ok(PixOpening::Registered { code }),
    }
}

/// Ends a charge.
pub(super) async fn cancel(calls: &BridgeCalls, charge: ObjectId) -> RailResult<PixFate> {
    let of = calls.serving(RailKind::Pix).await?;
    let unknown = |defect: &str| calls.unknown(&format!("{LIST}/{}", charge.txid()), defect);
    let object = match calls.close(&of, LIST, &charge.txid(), sure_at(&of, charge)).await? {
        Outcome::None | Outcome::Refused(_) => return Ok(PixFate::Cancelled),
        Outcome::It(object) => object,
    };
    match object.status.as_str() {
        "closed" => Ok(PixFate::Cancelled),
        "paid" => {
            let payment =
                object.payment.ok_or_else(|| unknown("it is paid, and payment is absent or lacks a field"))?;
            receipt(payment, Some(charge)).map(PixFate::Paid).map_err(unknown)
        }
        _ => Err(unknown("status says no outcome")),
    }
}

/// A payment; one of a charge must name it, or nothing.
pub(super) fn receipt(payment: PixPayment, of: Option<ObjectId>) -> Result<PixReceipt, &'static str> {
    let amount = Centavos::from(payment.amount);
    if !amount.is_positive() {
        return Err("amount is not above 0");
    }
    let (txid, of) = (payment.charge, of.map(ObjectId::txid));
    if txid.as_deref().is_some_and(|txid| !is_txid(txid) || of.as_deref().is_some_and(|of| of != txid)) {
        return Err("charge is another one, or has not 1 to 35 letters and digits");
    }
    Ok(PixReceipt {
        end_to_end_id: end_to_end_id(&payment.end_to_end_id)?,
        txid: txid.or(of),
        amount,
        paid_at: instant(&payment.at).ok_or("at is no instant with a zone")?,
    })
}
