//! Transfers: ordered, and looked up by our id. The two have other versions in their paths.

use actors::rails::{PayoutAnswer, PixSpan, RailError, RailResult, ReturnedPayouts, SendPayout};
use hyper::Method;
use ledger::event::PayoutBank;
use serde_json::Value;

use super::messages::{outcome, reason, returned_payout, word};
use super::words::{NO_TRANSFER, REFUSALS};
use crate::api_pix::{Calls, Lookup, page};

/// Path of orders, `/{idEnvio}` follows.
const ORDERS: &str = "/v3/gn/pix";
/// Path of the list of transfers.
const LIST: &str = "/v2/gn/pix/enviados";
/// Path of transfers by our id, `/{idEnvio}` follows.
const BY_ID: &str = "/v2/gn/pix/enviados/id-envio";

/// Orders a transfer, once; an error in place of its body is why it is not. An answer that is not
/// known, a refusal and a refused repeat are asked for: only a refusal that Efí repeats by having
/// none under the id is one.
pub(super) async fn send(
    calls: &Calls,
    call: &SendPayout,
    body: Result<Value, String>,
    from: PayoutBank,
) -> RailResult<PayoutAnswer> {
    let path = format!("{ORDERS}/{}", call.id.txid());
    let body = match body {
        Ok(body) => body,
        Err(reason) => return Ok(PayoutAnswer::Failed { reason }),
    };
    let answer = calls.order_once(Method::PUT, &path, &body).await?;
    let refusal = answer.as_ref().filter(|answer| answer.says(REFUSALS)).map(reason);
    match answer {
        Some(taken) if matches!(taken.status.as_u16(), 200 | 201) => match outcome(&taken, call, from) {
            Ok(outcome) => return Ok(outcome),
            Err(defect) => calls.complain(&path, &defect),
        },
        Some(other) => calls.complain(&path, &format!("it answers {}{}", other.status.as_u16(), word(&other))),
        None => {}
    }
    match (find(calls, call, from).await, refusal) {
        (Ok(PayoutAnswer::NotTaken), Some(reason)) => Ok(PayoutAnswer::Failed { reason }),
        // It may still be on its way.
        (Ok(PayoutAnswer::NotTaken) | Err(_), _) => Err(RailError::NoAnswer),
        (Ok(found), _) => Ok(found),
    }
}

/// What became of a transfer. [`PayoutAnswer::NotTaken`] where Efí says itself that it has none.
pub(super) async fn find(calls: &Calls, call: &SendPayout, from: PayoutBank) -> RailResult<PayoutAnswer> {
    let path = format!("{BY_ID}/{}", call.id.txid());
    match calls.find(&path, NO_TRANSFER).await? {
        Lookup::None => Ok(PayoutAnswer::NotTaken),
        Lookup::It(answer) => outcome(&answer, call, from).map_err(|defect| {
            calls.complain(&path, &defect);
            RailError::NoAnswer
        }),
    }
}

/// How long after it was sent the money of a transfer can come back, milliseconds: 90 days.
const RETURNS_WITHIN_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// The transfers of ours whose money came back whole in a span. Efí lists transfers by the time of
/// their order, so the list begins 90 days earlier.
pub(super) async fn returned(calls: &Calls, span: PixSpan, to: PayoutBank) -> RailResult<ReturnedPayouts> {
    let ordered = PixSpan { from: span.from.plus_ms(-RETURNS_WITHIN_MS), ..span };
    let filters = [("devolucaoPresente", true.to_string())];
    let (transfers, has_more) = page(calls, LIST, &filters, ordered, |text| returned_payout(text.get(), to)).await?;
    let mut transfers: Vec<_> = transfers.into_iter().flatten().collect();
    transfers.retain(|transfer| (span.from..=span.until).contains(&transfer.stamp.at));
    Ok(ReturnedPayouts { transfers, has_more })
}
