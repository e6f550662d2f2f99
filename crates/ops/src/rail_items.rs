//! Orders whose rail left the outcome unknown for an hour: two operators end them, by the word of
//! the bank or acquirer that they have on paper.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ledger::rail_word::RailWord;
use ledger::{Cashout, Charge, Event, ObjectId, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DeciderCall, Desk};
use web::{Raw, Result, checked, not_found, ok, parse_exact};

/// The word of an operator on an order.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = RailItemWord, example = json!({"outcome": "did_not_happen", "reference": "PROTOCOLO-118", "reason": "Banco confirmou por escrito"}))]
pub struct RailItemWord<'a> {
    /// `happened`: money has moved as it was ordered. `did_not_happen`: it has not, and will not.
    #[schema(value_type = String, pattern = "^(happened|did_not_happen)$")]
    outcome: Raw<'a>,
    /// Reference of the document that proves it, at most 100 characters. Of a PIX payment or
    /// cashout that happened, its end-to-end id: `E` and 31 letters and digits.
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    reference: Raw<'a>,
    /// Why, at most 500 characters.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

/// An order, with the word of its operators.
#[derive(Debug, Serialize, ToSchema)]
pub struct RailItemView {
    /// The order.
    id: String,
    /// `happened` or `did_not_happen`.
    #[schema(pattern = "^(happened|did_not_happen)$")]
    outcome: &'static str,
    /// Reference of the document that proves it.
    reference: String,
    /// Why, as the second operator said, or the first where no second one has spoken.
    reason: String,
    /// `waiting_second` after the first word, `settled` after the second.
    #[schema(pattern = "^(waiting_second|settled)$")]
    status: &'static str,
    /// The operator who said it first.
    requested_by: String,
    /// The operator who said it second.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_by: Option<String>,
}

impl RailItemView {
    fn of(record: &Record) -> Option<Self> {
        let operator = record.operator.clone().unwrap_or_default();
        record.events.iter().find_map(|event| {
            let (id, happened, reference, reason, asked_by) = match event {
                Event::RailWordAsked { id, happened, reference, reason } => (id, happened, reference, reason, None),
                Event::RailWordGiven { id, happened, reference, reason, asked_by } => {
                    (id, happened, reference, reason, Some(asked_by))
                }
                _ => return None,
            };
            Some(Self {
                id: id.uuid().to_string(),
                outcome: outcome_name(*happened),
                reference: reference.clone(),
                reason: reason.clone(),
                status: if asked_by.is_some() { "settled" } else { "waiting_second" },
                requested_by: asked_by.unwrap_or(&operator).clone(),
                settled_by: asked_by.map(|_| operator.clone()),
            })
        })
    }
}

/// An outcome as requests name it.
pub fn outcome_name(happened: bool) -> &'static str {
    if happened { "happened" } else { "did_not_happen" }
}

/// Ends a charge, cashout, withdrawal or repayment that its rail has left unknown for an hour, or
/// drops a notification that waits (`did_not_happen`, at any time). Two
/// operators must say the same outcome with the same reference, one after the other: the first word
/// is 202 and changes nothing, the second one ends it as the rail's answer would. The same operator
/// gets 409 `second_operator_needed`; what is not unknown for an hour, 409 `outcome_not_unknown`.
/// From the first word on nothing is sent again. Another word takes its place, and after 24 hours
/// it lapses. The second word is 409 `outcome_not_unknown` until an hour after the order was last
/// sent, for that may be on its way. Before it is booked the rail is asked once more, for 5 seconds
/// at most: what it says is booked instead, and the word is 409 `outcome_not_unknown`. So is
/// `did_not_happen` of a transfer or repayment that the rail has under way. A capture or refund at
/// Adyen can't be asked about: look in its Customer Area first.
#[utoipa::path(post, path = "/ops/rail-items/{id}/settle", operation_id = "settle_rail_item",
    request_body = RailItemWord,
    responses((status = 200, body = RailItemView), (status = 202, body = RailItemView), (status = 404)))]
pub async fn settle(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: RailItemWord<'_> = parse_exact(sent.bytes())?;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let owner = desk.engine.owner_of_order(id)?.ok_or_else(not_found)?;
    let (key, wire) = (call.key(&id.txid())?, &wire);
    let execute = |admitted| async move {
        let (word, reason) = check(desk, id, wire)?;
        Ok(desk.engine.say_rail_word(id, word, reason, operator.context(admitted)).await?)
    };
    let said = key.run_recorded(owner, RailItemView::of, execute).await?;
    said.answer(|view| {
        let status = if view.settled_by.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok((status, ok(view)).into_response())
    })
}

fn check(desk: &Desk, id: ObjectId, wire: &RailItemWord<'_>) -> Result<(RailWord, String)> {
    let is_pix = is_pix(desk, id)?;
    checked(|check| {
        let happened = check.text("outcome", wire.outcome, 1..=20).and_then(|outcome| match &*outcome {
            "happened" => Some(true),
            "did_not_happen" => Some(false),
            _ => check.refuse("outcome", "unknown", "outcome deve ser happened ou did_not_happen"),
        });
        let reference = check.text("reference", wire.reference, 1..=100);
        let reason = check.prose("reason", wire.reason, 1..=500);
        if happened == Some(true) && is_pix && reference.as_deref().is_some_and(|text| !is_end_to_end_id(text)) {
            check.refuse::<()>("reference", "invalid_end_to_end_id", "reference deve ser o end-to-end id do PIX");
        }
        let word = RailWord { happened: happened?, reference: reference?.into_owned() };
        Some((word, reason?.into_owned()))
    })
}

/// True for what is paid by PIX: its end-to-end id is known where it happened.
fn is_pix(desk: &Desk, id: ObjectId) -> Result<bool> {
    if desk.engine.object::<Cashout>(id)?.is_some() {
        return Ok(true);
    }
    Ok(desk.engine.object::<Charge>(id)?.is_some_and(|charge| !charge.terms.method.is_card()))
}

/// `E` and 31 letters and digits, as the Central Bank's API Pix has it.
fn is_end_to_end_id(text: &str) -> bool {
    text.len() == 32 && text.starts_with('E') && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
