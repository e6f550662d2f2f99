//! Wall clock of the process that is asked: what it shows beside the time that the books go by, and
//! the word of two operators that it is right after a jump.

use actors::engine::{Doubt, SecondOperatorNeeded};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Decider, Desk, DeskState, Operator};
use web::{Code, KeyScope, KeyedBody, Problem, Result, ok, parse_unread_exact, time};

/// The wall clock of a process.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProcessClockView {
    /// What the wall clock shows; the database's where the store is one. Without the offset of a
    /// sandbox.
    wall_clock: String,
    /// The time that the books go by.
    now: String,
    /// How far the wall clock is ahead of the time that has passed, seconds; negative when it is
    /// behind.
    ahead_seconds: i64,
    /// False while the wall clock is in doubt: nothing is written then.
    followed: bool,
    /// Why it is in doubt: it made a `step`, or a live server began too long after the last Record
    /// (`late_start`), or before it (`early_start`). Null while it is followed.
    #[schema(required, pattern = "^(step|late_start|early_start)$")]
    doubt: Option<&'static str>,
    /// The operator who confirmed it first; a second one must too.
    #[schema(required)]
    confirmed_by: Option<String>,
}

impl ProcessClockView {
    fn of(desk: &Desk) -> Self {
        let doubt = desk.engine.clock_doubt().map(Doubt::into);
        let reading = desk.engine.clock_reading();
        Self {
            wall_clock: time(reading.wall),
            now: time(desk.engine.now()),
            ahead_seconds: reading.ahead_ms / 1_000,
            followed: doubt.is_none(),
            doubt,
            confirmed_by: desk.engine.clock_asked_by().filter(|_| doubt.is_some()),
        }
    }
}

/// The wall clock of the process that answers.
#[utoipa::path(get, path = "/ops/clock", operation_id = "get_clock", responses((status = 200, body = ProcessClockView)))]
pub async fn get(State(desk): DeskState, _: Operator) -> Response {
    ok(ProcessClockView::of(&desk))
}

/// Confirms that the wall clock of the process that answers is right after a jump. The word of a
/// second operator within an hour lets the process go by it; the first one alone changes nothing,
/// and gets 409 `second_operator_needed` when it comes again. While the wall clock is followed,
/// nothing changes.
#[utoipa::path(post, path = "/ops/clock/confirm", operation_id = "confirm_clock",
    responses((status = 200, body = ProcessClockView), (status = 409)))]
pub async fn confirm(State(desk): DeskState, Decider(operator): Decider, sent: KeyedBody) -> Result<Response> {
    parse_unread_exact(sent.bytes())?;
    // No Record binds the word to a key: it is only checked.
    sent.key(&desk.engine, KeyScope::Operators, None)?;
    let confirmed = desk.engine.confirm_clock(&operator.name);
    confirmed.map_err(|SecondOperatorNeeded| Problem::new(Code::SecondOperatorNeeded))?;
    Ok(ok(ProcessClockView::of(&desk)))
}
