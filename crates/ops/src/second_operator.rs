//! Approval by two operators of a refund or withdrawal above a limit
//! (`CENTAVO_PAYOUT_SECOND_OPERATOR_ABOVE`), and of a withdrawal that an operator asked for. The
//! first approval is a Record that moves no money; the second one, of another operator, is the
//! decision.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ledger::{Centavos, ObjectId, Rejection};

use crate::queue::waiting;
use crate::queue_item::is_decided_on;
use crate::{Desk, Operator};
use web::Result;

/// The operator who approved an item first, or asked for it, where it needs two; `None` if nobody
/// did, or it needs one.
pub fn first_approval(desk: &Desk, id: ObjectId, amount: Centavos) -> Result<Option<String>> {
    let first = desk.engine.first_approval(id)?;
    Ok(first.filter(|(_, is_asked)| *is_asked || needs_two(desk, amount)).map(|(operator, _)| operator))
}

/// Whether an approval of an amount takes two operators.
pub fn needs_two(desk: &Desk, amount: Centavos) -> bool {
    desk.second_operator_above.is_some_and(|limit| amount > limit)
}

/// Whether an approval is the first of two. Error: 409 `second_operator_needed` for the operator
/// who was the first.
pub fn is_first(desk: &Desk, operator: &Operator, id: ObjectId, amount: Centavos) -> Result<bool> {
    match first_approval(desk, id, amount)? {
        None => Ok(needs_two(desk, amount)),
        Some(by) if by == operator.name => Err(Rejection::SecondOperatorNeeded.into()),
        Some(_) => Ok(false),
    }
}

/// The answer to an approval: 202 while the item still waits, for a second operator.
pub fn answer(desk: &Desk, id: ObjectId, mut answer: Response) -> Response {
    if waiting(desk, id).is_some_and(|item| is_decided_on(&item)) {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    answer.into_response()
}
