//! Plans (interface 2.12, 3.7): `POST` and `GET /api/recurrency/plans`, `GET` and `DELETE
//! /api/recurrency/plans/{id}`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::merchant::Plan;
use ledger::recurrence::{BillingCycle, CYCLES_MAX, InitialFee, PlanTerms};
use ledger::{AMOUNT_MAX, Centavos, MerchantCommand, ObjectId};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::api::app::AppState;
use web::idempotency::naming;
use web::reply::{WholeListParams, linked};
use web::{
    Caller, Checker, KeyScope, KeyedBody, PageQuery, PathId, Problem, Raw, Result, checked, created, decided,
    not_found, ok, parse, time,
};

/// A plan, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "tag": "Mensal", "amount": 4990, "billingCycle": "MONTHLY", "totalBillingCycles": 12, "initialGraceCycles": 1,
    "initialFee": {"description": "Adesão", "amount": 1000, "cycles": 1},
}))]
#[serde(rename_all = "camelCase")]
pub struct PlanRequest<'a> {
    /// Name of the plan, of which the account has one; 1 to 100 characters.
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    tag: Raw<'a>,
    /// Centavos a cycle.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// `DAILY`, `WEEKLY`, `MONTHLY`, `QUARTERLY`, `BIANNUAL` or `ANNUAL`.
    #[schema(value_type = String, pattern = "^(DAILY|WEEKLY|MONTHLY|QUARTERLY|BIANNUAL|ANNUAL)$")]
    billing_cycle: Raw<'a>,
    /// Total number of charges.
    #[schema(value_type = u32, minimum = 1, maximum = 3650)]
    total_billing_cycles: Raw<'a>,
    /// Cycles before the first charge; 0 when absent.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 3650)]
    initial_grace_cycles: Raw<'a>,
    /// What the first charges cost in addition.
    #[schema(value_type = Option<InitialFeeRequest>)]
    initial_fee: Raw<'a>,
}

/// An initial fee, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct InitialFeeRequest<'a> {
    /// What it is for; 1 to 120 characters.
    #[schema(value_type = String, min_length = 1, max_length = 120)]
    description: Raw<'a>,
    /// Centavos; with the plan's amount at most 10^12.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// How many initial charges carry it; at most `totalBillingCycles`.
    #[schema(value_type = u32, minimum = 1, maximum = 3650)]
    cycles: Raw<'a>,
}

/// A plan (interface 2.12).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Plan)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// Its id.
    id: String,
    /// Its name.
    #[schema(example = "Mensal")]
    tag: String,
    /// Centavos a cycle.
    #[schema(example = 4990)]
    amount: i64,
    /// How often it charges.
    #[schema(pattern = "^(DAILY|WEEKLY|MONTHLY|QUARTERLY|BIANNUAL|ANNUAL)$")]
    billing_cycle: &'static str,
    /// Total number of charges.
    #[schema(example = 12)]
    total_billing_cycles: u32,
    /// Cycles before the first charge.
    initial_grace_cycles: u32,
    /// What the first charges cost in addition.
    #[schema(required)]
    initial_fee: Option<InitialFeeView>,
    /// True while it takes subscriptions.
    enabled: bool,
    /// When it was created.
    #[serde(rename = "created_at")]
    created_at: String,
}

/// An initial fee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InitialFee)]
pub struct InitialFeeView {
    /// What it is for.
    #[schema(example = "Adesão")]
    description: String,
    /// Amount of the fee, centavos.
    #[schema(example = 1000)]
    amount: i64,
    /// How many initial charges carry it.
    #[schema(example = 1)]
    cycles: u32,
}

/// The plans that take subscriptions.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlanList {
    /// All of them, newest first.
    plans: Vec<PlanView>,
    /// Address of the plans that follow; where the request has `limit`, and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A plan that takes no subscriptions any more.
#[derive(Debug, Serialize, ToSchema)]
pub struct DisabledPlan {
    /// Its id.
    id: String,
    /// Always false.
    #[schema(example = false)]
    enabled: bool,
}

const CYCLES: [(BillingCycle, &str); 6] = [
    (BillingCycle::Daily, "DAILY"),
    (BillingCycle::Weekly, "WEEKLY"),
    (BillingCycle::Monthly, "MONTHLY"),
    (BillingCycle::Quarterly, "QUARTERLY"),
    (BillingCycle::Biannual, "BIANNUAL"),
    (BillingCycle::Annual, "ANNUAL"),
];

impl PlanView {
    fn of(Plan { id, terms, enabled }: &Plan) -> Self {
        let known = CYCLES.iter().find(|(cycle, _)| *cycle == terms.billing_cycle);
        Self {
            id: id.uuid().to_string(),
            tag: terms.tag.clone(),
            amount: terms.amount.0,
            billing_cycle: known.map_or("", |(_, name)| name),
            total_billing_cycles: terms.total_cycles,
            initial_grace_cycles: terms.grace_cycles,
            initial_fee: terms.initial_fee.as_ref().map(|fee| InitialFeeView {
                description: fee.description.clone(),
                amount: fee.amount.0,
                cycles: fee.cycles,
            }),
            enabled: *enabled,
            created_at: time(id.created_at()),
        }
    }
}

/// Creates a plan.
#[utoipa::path(post, path = "/api/recurrency/plans", operation_id = "create_plan", request_body = PlanRequest,
    responses((status = 201, body = PlanView)))]
pub async fn create(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: PlanRequest<'_> = parse(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let (app, wire) = (&app, &wire);
    let execute = |admitted| async move {
        let plan = check(wire)?;
        let command = MerchantCommand::CreatePlan { id: app.engine.new_id(caller.group)?, plan };
        Ok(app.engine.command(caller.group, command, caller.context(admitted)).await?)
    };
    let made = key.run_recorded(caller.ledger(), Plan::created_by, execute).await?;
    made.answer(|plan| Ok(created(PlanView::of(&plan))))
}

/// The account's plans that take subscriptions, newest first.
#[utoipa::path(get, path = "/api/recurrency/plans", operation_id = "list_plans",
    params(WholeListParams), responses((status = 200, body = PlanList)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery) -> Result<Response> {
    let all = app.engine.read_merchant(caller.group, |books, _| books.plans().iter().rev().cloned().collect()).await?;
    // A cursor may name a plan that takes no subscriptions any more.
    let enabled = query.cursors.between(all, |plan| plan.id)?.into_iter().filter(|plan: &Plan| plan.enabled);
    let (plans, next) = query.cursors.first(enabled.map(Ok::<_, Problem>), |plan| plan.id.uuid().to_string())?;
    let plans = plans.map(|plan| Ok(PlanView::of(&plan?))).collect::<Result<_>>()?;
    let list = PlanList { plans, next };
    Ok(list.next.clone().iter().fold(ok(list), |answer, next| linked(answer, next)))
}

/// One plan of the account, also one that takes no subscriptions any more.
#[utoipa::path(get, path = "/api/recurrency/plans/{id}", operation_id = "get_plan",
    responses((status = 200, body = PlanView)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let plan = app.engine.read_merchant(caller.group, move |books, _| books.plan(id).map(PlanView::of));
    plan.await?.map(ok).ok_or_else(not_found)
}

/// Takes no subscriptions of a plan any more. Those that it has go on; doing it again changes
/// nothing.
#[utoipa::path(delete, path = "/api/recurrency/plans/{id}", operation_id = "disable_plan",
    responses((status = 200, body = DisabledPlan)))]
pub async fn disable(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let permit = app.engine.permit_in_turn(Some(caller.group), 0).await?;
    let context = caller.context(Arc::clone(&permit));
    decided(app.engine.command(caller.group, MerchantCommand::DisablePlan { id }, context).await?)?;
    Ok(naming(permit.requested_record(), ok(DisabledPlan { id: id.uuid().to_string(), enabled: false })))
}

fn check(wire: &PlanRequest<'_>) -> Result<PlanTerms> {
    checked(|check| {
        let tag = check.prose("tag", wire.tag, 1..=100);
        let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
        let billing_cycle = read_cycle(check, wire.billing_cycle);
        let total = check.integer("totalBillingCycles", wire.total_billing_cycles, 1..=i64::from(CYCLES_MAX));
        let grace = check.given_or(0, wire.initial_grace_cycles, |check, raw| {
            check.integer("initialGraceCycles", raw, 0..=i64::from(CYCLES_MAX))
        });
        let initial_fee = check.optional(wire.initial_fee, |check, raw| {
            check.object("initialFee", raw, |check, fee: InitialFeeRequest<'_>| {
                let description = check.prose("description", fee.description, 1..=120);
                let most = (AMOUNT_MAX.0 - amount.unwrap_or_default()).max(0);
                let amount = check.centavos("amount", fee.amount, 1..=most);
                let cycles = check.integer("cycles", fee.cycles, 1..=total.unwrap_or(i64::from(CYCLES_MAX)));
                let (description, cycles) = (description?.into_owned(), u32::try_from(cycles?).ok()?);
                Some(InitialFee { description, amount: Centavos(amount?), cycles })
            })
        });
        Some(PlanTerms {
            // Composed, so that both spellings of an accent are one tag.
            tag: tag?.nfc().collect(),
            amount: Centavos(amount?),
            billing_cycle: billing_cycle?,
            total_cycles: u32::try_from(total?).ok()?,
            grace_cycles: u32::try_from(grace?).ok()?,
            initial_fee,
        })
    })
}

fn read_cycle(check: &mut Checker, raw: Raw<'_>) -> Option<BillingCycle> {
    let name = check.text("billingCycle", raw, 1..=20)?;
    let known = CYCLES.iter().find(|(_, known)| *known == name).map(|(cycle, _)| *cycle);
    known.or_else(|| {
        let message = "billingCycle deve ser DAILY, WEEKLY, MONTHLY, QUARTERLY, BIANNUAL ou ANNUAL";
        check.refuse("billingCycle", "unknown_value", message)
    })
}
