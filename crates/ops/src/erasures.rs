//! Retention of personal data: the months whose keys are stored, and their erasure after ten years,
//! by two operators. It drops keys; the books stay as they are.

use actors::engine::Slice;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ledger::erasure::{Erasure, retained_until};
use ledger::{GroupNumber, LedgerId, Month};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Admin, AdminCall, Desk, DeskState, Operator};
use web::views::recipient::status_name;
use web::views::subscription;
use web::{
    Code, KeyScope, KeyedBody, Problem, Raw, Result, checked, decided, not_found, ok, parse_exact, parse_unread_exact,
    time,
};

/// Objects that are named in a refusal, at most.
const IN_USE_MAX: usize = 100;
/// Subscriptions that are read at once.
const READ_AT_ONCE: usize = 500;

/// Months whose keys seal personal data, and the erasures.
#[derive(Debug, Serialize, ToSchema)]
pub struct RetentionView {
    /// Months for which what was sealed in a month is stored after it.
    retention_months: u32,
    /// The months whose keys are stored, oldest first.
    pub months: Vec<SealedMonth>,
    /// The erasures in the order in which they were asked for.
    pub erasures: Vec<ErasureView>,
}

/// A month whose key is stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct SealedMonth {
    /// The month.
    pub month: String,
    /// When its retention ends.
    pub until: String,
    /// Whether it may be erased.
    pub is_over: bool,
}

/// An erasure.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct ErasureView {
    /// What was sealed in this month or before it.
    #[schema(pattern = "^[0-9]{4}-[0-9]{2}$", example = "2016-10")]
    pub through: String,
    /// `waiting_second` or `erased`.
    #[schema(pattern = "^(waiting_second|erased)$")]
    pub status: &'static str,
    /// The operator who asked for it.
    pub requested_by: String,
    /// When that was asked.
    pub requested_at: String,
    /// The operator who carried it out.
    pub erased_by: Option<String>,
    /// When it was carried out.
    pub erased_at: Option<String>,
}

impl ErasureView {
    fn of(erasure: Erasure) -> Self {
        let (erased_by, erased_at) = erasure.done.map(|(by, at)| (by, time(at))).unzip();
        Self {
            through: erasure.through.to_string(),
            status: if erased_by.is_some() { "erased" } else { "waiting_second" },
            requested_by: erasure.requested_by,
            requested_at: time(erasure.requested_at),
            erased_by,
            erased_at,
        }
    }
}

/// The months whose keys seal personal data, until when each is stored, and the erasures that were
/// asked for.
#[utoipa::path(get, path = "/ops/erasures", operation_id = "list_erasures",
    responses((status = 200, body = RetentionView)))]
pub async fn list(State(desk): DeskState, _: Operator) -> Result<Response> {
    Ok(ok(retention(&desk)?))
}

/// The months whose keys are stored, and the erasures.
pub fn retention(desk: &Desk) -> Result<RetentionView> {
    let now = desk.engine.now();
    let month = |number: u16| {
        let until = retained_until(Month(number.into()), desk.retention_months);
        SealedMonth { month: Month(number.into()).to_string(), until: time(until), is_over: until <= now }
    };
    Ok(RetentionView {
        retention_months: desk.retention_months,
        months: desk.engine.sealed_months()?.into_iter().map(month).collect(),
        erasures: desk.engine.erasures()?.into_iter().map(ErasureView::of).collect(),
    })
}

/// What is to be erased.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = ErasureRequest, example = json!({"through": "2016-10"}))]
pub struct ErasureRequest<'a> {
    /// Personal data that was sealed in this month or before it.
    #[schema(value_type = String, pattern = "^[0-9]{4}-[0-9]{2}$")]
    through: Raw<'a>,
}

/// Asks for the erasure of personal data: 202 `waiting_second`. When another operator asks for the
/// same month, the keys of that month and of all before it are dropped, for good: names, documents,
/// contacts and bank accounts that were sealed then open nowhere, and are not found. Amounts and
/// books stay. 409 `state_conflict` within the retention of ten years, and while a registration in
/// force or a live subscription was sealed then: `in_use` names them, at most 100. After a 503 the
/// same request is sent once more.
#[utoipa::path(post, path = "/ops/erasures", operation_id = "erase", request_body = ErasureRequest,
    responses((status = 200, body = ErasureView), (status = 202, body = ErasureView),
        (status = 409, description = "`state_conflict`: within the retention, or in use. `second_operator_needed`: the operator who asked asks again.")))]
pub async fn erase(State(desk): DeskState, Admin(operator): Admin, sent: KeyedBody) -> Result<Response> {
    let wire: ErasureRequest<'_> = parse_exact(sent.bytes())?;
    let through = checked(|check| {
        let text = check.text("through", wire.through, 1..=7)?;
        Month::parse(&text).or_else(|| check.refuse("through", "invalid", "through deve ser um mês, como 2016-10"))
    })?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    let (desk, operator) = (&desk, &operator);
    let execute = |admitted| async move {
        if is_erased(desk, through)? {
            return Ok(Some(()));
        }
        refuse_unfit(desk, through)?;
        decided(desk.engine.erase_through(through, operator.context(admitted)).await?)
    };
    let done = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    // Also when it was decided before and the keys could not be removed then.
    desk.engine.drop_erased_keys().await?;
    let erasures = desk.engine.erasures()?;
    // A later month that was erased took this one with it.
    let own = erasures.iter().find(|erasure| erasure.through == through);
    let erasure = own.or_else(|| erasures.iter().find(|erasure| erasure.through > through && erasure.done.is_some()));
    let view = ErasureView::of(erasure.cloned().ok_or_else(not_found)?);
    done.answer(|()| {
        let status = if view.erased_by.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok((status, ok(view)).into_response())
    })
}

/// Takes back a request for an erasure that another operator has not carried out, whoever asked for
/// it. 404 where nobody did, 409 `already_decided` once it is erased.
#[utoipa::path(post, path = "/ops/erasures/{through}/cancel", operation_id = "cancel_erasure",
    params(("through" = String, Path, pattern = "^[0-9]{4}-[0-9]{2}$", example = "2016-10", description = "The month that was asked for.")),
    responses((status = 200, body = RetentionView), (status = 404), (status = 409)))]
pub async fn cancel(call: AdminCall) -> Result<Response> {
    let AdminCall { desk, operator, id: through, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let through = Month::parse(through).ok_or_else(not_found)?;
    let key = call.key(&through.to_string())?;
    let execute = |admitted| async move {
        let withdrawn = desk.engine.withdraw_erasure(through, operator.context(admitted)).await?;
        decided(withdrawn.ok_or_else(not_found)?)
    };
    let done = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    done.answer(|()| Ok(ok(retention(desk)?)))
}

fn is_erased(desk: &Desk, through: Month) -> Result<bool> {
    Ok(desk.engine.erasures()?.iter().any(|erasure| erasure.through >= through && erasure.done.is_some()))
}

/// Refuses an erasure within the retention, or of what is in use.
fn refuse_unfit(desk: &Desk, through: Month) -> Result<()> {
    let until = retained_until(through, desk.retention_months);
    if desk.engine.now() < until {
        let detail = format!("What was sealed in {through} is stored until {}.", time(until));
        return Err(Problem::new(Code::StateConflict).detail(detail));
    }
    let in_use = in_use(desk, u16::try_from(through.0).unwrap_or(u16::MAX))?;
    if !in_use.is_empty() {
        let detail = "Registrations in force, or live subscriptions, were sealed then: a change seals one anew.";
        return Err(Problem::new(Code::StateConflict).detail(detail).member("in_use", in_use));
    }
    Ok(())
}

/// Ids of merchants, of recipients that were not rejected, and of live subscriptions whose personal
/// data in force was sealed in a month or before it.
fn in_use(desk: &Desk, month: u16) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for group in desk.engine.groups() {
        let sealed = desk.engine.glance(group, |row| {
            let is_old = |sealed: Option<&ledger::personal::Sealed>| sealed.is_some_and(|sealed| sealed.month <= month);
            let recipients = row.recipients.iter().filter(|recipient| status_name(recipient.status) != "rejected");
            let recipients = recipients.filter(|recipient| is_old(recipient.profiles.current()));
            let merchant = is_old(row.profiles.current()).then_some(row.id);
            merchant.into_iter().chain(recipients.map(|recipient| recipient.id)).take(IN_USE_MAX).collect::<Vec<_>>()
        });
        ids.extend(sealed.into_iter().flatten().map(|id| id.uuid().to_string()));
        ids.extend(subscriptions_in_use(desk, group, month)?);
        if ids.len() >= IN_USE_MAX {
            break;
        }
    }
    ids.truncate(IN_USE_MAX);
    Ok(ids)
}

fn subscriptions_in_use(desk: &Desk, group: GroupNumber, month: u16) -> Result<Vec<String>> {
    let (mut ids, mut passed) = (Vec::new(), 0);
    loop {
        let (_, rows) = desk.engine.subscriptions(LedgerId::Merchant(group), Slice::of_all(passed, READ_AT_ONCE))?;
        let is_last = rows.len() < READ_AT_ONCE;
        passed += rows.len() as u64;
        let live =
            rows.iter().filter(|row| !["cancelled", "completed"].contains(&subscription::status_name(&row.standing)));
        let old = live.filter(|row| row.customer.month <= month);
        ids.extend(old.map(|row| row.id.uuid().to_string()));
        if is_last || ids.len() >= IN_USE_MAX {
            return Ok(ids);
        }
    }
}
