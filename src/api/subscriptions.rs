//! Subscriptions of plans (interface 3.7): start, read, change, pause, resume, cancel. The schedule
//! charges them.

use std::sync::Arc;

use actors::engine::{CardRow, Listed, Outcome, ReferenceLookup, ReferenceOf, Slice, SubscriptionRow};
use axum::extract::State;
use axum::response::Response;
use ledger::merchant::{Subscribe, SubscriptionChange};
use ledger::recurrence::SubscriptionStatus;
use ledger::{
    Fingerprint, MerchantCommand, ObjectId, Payer, PaymentMethod, Record, Rejection, Requester, SealedFor, StoredCard,
    SubscriptionStanding,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::labels::{self, change_values};
use crate::api::payer::{CustomerRequest, read_customer};
use crate::api::splits;
use crate::api::stored_cards::{stored_card, stored_fingerprint};
use crate::api::{App, AppState};
use web::guards::rate_limit::RateLimits;
use web::idempotency::{body_digest, naming};
use web::json::parse_unread;
use web::views::charge::ChargeView;
use web::views::subscription::SubscriptionView;
use web::{
    Caller, Checker, Code, CursorParams, JsonBody, KeyScope, KeyedBody, LabelParams, List, PageParams, PageQuery,
    PathId, Problem, Raw, Result, created, decided, not_found, ok, parse, parse_exact, refused,
};

/// A subscription, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "plan_id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e",
    "customer": {"name": "João Ávila", "email": "joao@example.com", "document": "12345678909"},
    "payment_method": "credit_card",
    "card_token": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e",
}))]
pub struct SubscriptionRequest<'a> {
    /// The plan.
    #[schema(value_type = String, format = "uuid")]
    plan_id: Raw<'a>,
    /// Who pays.
    #[schema(value_type = CustomerRequest)]
    customer: Raw<'a>,
    /// `credit_card` or `pix`.
    #[schema(value_type = String, pattern = "^(credit_card|pix)$")]
    payment_method: Raw<'a>,
    /// A stored card; for `credit_card` only, and required there.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    card_token: Raw<'a>,
    /// The recipients' parts of every cycle's charge; a percent is of the cycle's total, with its
    /// initial fee.
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
    /// The caller's own id of it, 1 to 64 characters; its charges have it too.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    reference: Raw<'a>,
    /// True to refuse it when another subscription of the account was made with this and the same
    /// `reference`, ever.
    #[schema(value_type = Option<bool>)]
    reference_unique: Raw<'a>,
    /// The caller's own values, as those of a charge; its charges have them too.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// Begins a subscription. Its first charge is due after the plan's grace cycles, at once when there
/// are none; the schedule makes it.
#[utoipa::path(post, path = "/api/recurrency/subscriptions", operation_id = "create_subscription",
    request_body = SubscriptionRequest,
    responses((status = 201, body = SubscriptionView), (status = 403), (status = 404)))]
pub async fn create(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: SubscriptionRequest<'_> = parse(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let (app, wire) = (&app, &wire);
    let digest = || body_digest(&app.engine, sent.bytes(), None);
    let look_up = || labels::look_up(app, caller, (ReferenceOf::Subscription, unique.as_deref()), digest);
    let execute = |reference: Option<ReferenceLookup>, admitted| async move {
        splits::admit(app, caller, wire.splits)?;
        let wanted = check(app, caller, wire)?;
        labels::require_new(ReferenceOf::Subscription, reference.as_ref())?;
        let rails = app.engine.rails();
        let is_card = wanted.card.is_some();
        let has_rail = if is_card { rails.card.current().is_some() } else { rails.pix.current().is_some() };
        if !has_rail {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        let limited = app.rate_limits.as_ref().zip(wanted.card.as_ref().map(|card| stored_fingerprint(app, card.id)));
        if let Some((limits, card)) = limited {
            limits.admit_card(card, caller.group, |id| first_charge_was_paid(app, caller, id))?;
        }
        let (id, context) = (wanted.id, caller.context(admitted));
        let command = MerchantCommand::Subscribe(wanted);
        let outcome = app.engine.command_reserving(caller.group, id, command, reference, context).await?;
        if let (Some((limits, card)), Outcome::Recorded(record)) = (limited, &outcome) {
            count_try(limits, caller, id, card, record);
        }
        Ok(outcome)
    };
    let begun = key.run_recorded_after(caller.ledger(), look_up, SubscriptionRow::begun_by, execute).await?;
    begun.answer(|row| Ok(created(SubscriptionView::of(&app.engine, &row))))
}

/// Counts a charge that follows a Record of a subscription at once as a try of its card.
fn count_try(limits: &RateLimits, caller: Caller, id: ObjectId, card: Fingerprint, record: &Record) {
    let standing = SubscriptionStanding::in_record(record, id);
    if standing.and_then(|one| one.next_charge_at()).is_some_and(|at| at <= record.effective_at) {
        limits.count_first_charge(id, card, caller.group);
    }
}

/// Whether the charge that was tried last for a subscription of the caller's was paid; `None` while
/// that is not known.
pub fn first_charge_was_paid(app: &App, caller: Caller, id: ObjectId) -> Option<bool> {
    let SubscriptionRow { standing, .. } = app.engine.subscription(caller.ledger(), id).ok().flatten()?;
    let is_due = standing.next_charge_at().is_some_and(|at| at <= app.engine.now());
    match standing.status {
        // Also of one whose earlier cycles were paid.
        _ if standing.open.is_some() || is_due => None,
        _ if standing.retry_at.is_some() => Some(false),
        SubscriptionStatus::Active | SubscriptionStatus::Completed => Some(true),
        SubscriptionStatus::PastDue => Some(false),
        SubscriptionStatus::Pending | SubscriptionStatus::Cancelled => None,
    }
}

/// The account's subscriptions, newest first. With a label, the account may have 2,000 of them.
#[utoipa::path(get, path = "/api/recurrency/subscriptions", operation_id = "list_subscriptions",
    params(LabelParams, PageParams, CursorParams), responses((status = 200, body = List<SubscriptionView>)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery) -> Result<Response> {
    let (range, labels) = (query.cursors.range(&app.engine, caller.ledger())?, &query.labels);
    let (skip, count) = query.to_read(!labels.is_empty());
    let found = app.engine.subscriptions(caller.ledger(), Slice::new(range, skip, count))?;
    let admits = |row: &SubscriptionRow| labels.admits_some(app.engine.subscriber(row).labels.as_ref());
    let (total, rows) = query.page_of(labels.parameter(), found, admits)?;
    let last = rows.last().map(|row| row.id.uuid().to_string());
    query.answer(total, last, rows.into_iter().map(move |row| Ok(SubscriptionView::of(&app.engine, &row))))
}

/// One subscription of the account.
#[utoipa::path(get, path = "/api/recurrency/subscriptions/{id}", operation_id = "get_subscription",
    responses((status = 200, body = SubscriptionView)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    Ok(ok(SubscriptionView::of(&app.engine, &named(&app, caller, &id)?)))
}

/// The charges of a subscription, newest first: one for each time that a cycle was charged.
#[utoipa::path(get, path = "/api/recurrency/subscriptions/{id}/charges", operation_id = "list_subscription_charges",
    params(PageParams, CursorParams), responses((status = 200, body = List<ChargeView>)))]
pub async fn charges(State(app): AppState, caller: Caller, PathId(id): PathId, query: PageQuery) -> Result<Response> {
    let id = named(&app, caller, &id)?.id;
    let slice = query.part(&app.engine, caller.ledger())?;
    let Listed { total, items } = app.engine.subscription_charges(id, slice)?;
    let last = items.last_id()?.map(|id| id.txid());
    query.answer(total, last, items.map(move |charge| ChargeView::of(&app.engine, &charge?)))
}

/// Ends a subscription for good. An open PIX code is cancelled at the institution first; if it was
/// paid meanwhile, `paid_cycles` counts it. A card charge that waits for its outcome is left to it,
/// and so is a code about which the institution does not answer.
#[utoipa::path(post, path = "/api/recurrency/subscriptions/{id}/cancel", operation_id = "cancel_subscription",
    responses((status = 200, body = SubscriptionView)))]
pub async fn cancel(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    carry_out(&app, caller, &id, &sent, SubscriptionChange::Cancel).await
}

/// Charges nothing until the subscription is resumed.
#[utoipa::path(post, path = "/api/recurrency/subscriptions/{id}/pause", operation_id = "pause_subscription",
    responses((status = 200, body = SubscriptionView)))]
pub async fn pause(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    carry_out(&app, caller, &id, &sent, SubscriptionChange::Pause).await
}

/// Goes on with the next date to come. Dates that passed meanwhile are neither charged nor counted.
#[utoipa::path(post, path = "/api/recurrency/subscriptions/{id}/resume", operation_id = "resume_subscription",
    responses((status = 200, body = SubscriptionView)))]
pub async fn resume(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    carry_out(&app, caller, &id, &sent, SubscriptionChange::Resume).await
}

/// Another card, or other metadata, of a subscription, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = SubscriptionChange, example = json!({"card_token": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e"}))]
pub struct SubscriptionChangeRequest<'a> {
    /// A stored card, whose next cycles are charged to.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64, example = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    card_token: Raw<'a>,
    /// Values by key, as those of a charge: a text replaces the value of its key, null or an empty
    /// text takes the key away, and other keys stay. Not with `card_token`.
    #[schema(value_type = Option<HashMap<String, Option<String>>>)]
    metadata: Raw<'a>,
}

/// Charges a subscription to another stored card: the same dates, the same cycles. A cycle whose
/// card was refused is tried at once, also the last one that was given up; a charge that waits for
/// its outcome goes on. A subscription that has ended, or is paid by PIX, is 409; a card of another
/// customer is 400. Or changes its metadata, 1,000 times at most (then 409): charges that are made
/// from then on have the new one.
#[utoipa::path(patch, path = "/api/recurrency/subscriptions/{id}", operation_id = "change_subscription",
    request_body = SubscriptionChangeRequest, responses((status = 200, body = SubscriptionView), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    let wire: SubscriptionChangeRequest<'_> = parse_exact(&body.bytes)?;
    let mut check = Checker::new();
    let token = check.optional_text("card_token", wire.card_token, 1..=64);
    if wire.card_token.and(wire.metadata).is_some() {
        check.refuse::<()>("metadata", "ambiguous", "envie card_token ou metadata, não os dois");
    }
    check.finish()?;
    let read = || named(&app, caller, &id);
    let Some(token) = token else {
        let view = |row: &SubscriptionRow| Ok(ok(SubscriptionView::of(&app.engine, row)));
        return change_values(&app, caller, wire.metadata, read, view).await;
    };
    let row = read()?;
    let card = stored_card(&app, caller, &token)?;
    require_same_customer(&app, &row, &card)?;
    let limited = app.rate_limits.as_ref().map(|limits| (limits, stored_fingerprint(&app, card.id)));
    if let Some((limits, fingerprint)) = limited {
        limits.admit_card(fingerprint, caller.group, |id| first_charge_was_paid(&app, caller, id))?;
    }
    let card = StoredCard { id: card.id, face: card.face };
    let permit = app.engine.permit_in_turn(Some(caller.group), body.bytes.len()).await?;
    let command = MerchantCommand::ChangeSubscriptionCard { id: row.id, card };
    let outcome = app.engine.command(caller.group, command, caller.context(Arc::clone(&permit))).await?;
    if let (Some((limits, fingerprint)), Outcome::Recorded(record)) = (limited, &outcome) {
        count_try(limits, caller, row.id, fingerprint, record);
    }
    decided(outcome)?;
    let changed = SubscriptionView::of(&app.engine, &read()?);
    Ok(naming(permit.requested_record(), ok(changed)))
}

/// Refuses a stored card of another customer than the subscription's. Where the data of one of them
/// was erased, nothing is compared.
fn require_same_customer(app: &App, row: &SubscriptionRow, card: &CardRow) -> Result<()> {
    let open = |id, sealed| app.engine.keyring().open_value::<Payer>(SealedFor::customer(id), sealed);
    let both = open(row.id, &row.customer).zip(open(card.id, &card.customer));
    match both {
        Some((subscriber, owner)) if subscriber.document != owner.document => {
            Err(refused("card_token", "other_customer", "card_token é de outro cliente"))
        }
        _ => Ok(()),
    }
}

/// A change that is already made is answered as it is; a subscription that has ended can't be
/// changed.
async fn carry_out(
    app: &App,
    caller: Caller,
    id: &str,
    sent: &KeyedBody,
    change: SubscriptionChange,
) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let row = named(app, caller, id)?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&row.id.uuid().to_string()))?;
    let row = &row;
    let at = |record: &Record| {
        let standing = SubscriptionStanding::in_record(record, row.id)?;
        Some(SubscriptionView::of(&app.engine, &SubscriptionRow { standing, ..row.clone() }))
    };
    let current = || named(app, caller, id).map(|row| SubscriptionView::of(&app.engine, &row));
    let execute = |admitted| async move {
        if change == SubscriptionChange::Cancel
            && let Some(code) = row.standing.open.filter(|_| row.card().is_none())
        {
            app.engine.end_code(caller.group, code, caller.key.map(Requester::ApiKey)).await?;
        }
        let command = MerchantCommand::ChangeSubscription { id: row.id, change };
        match app.engine.command(caller.group, command, caller.context(admitted)).await? {
            Outcome::Unchanged => current().map(Outcome::Recorded),
            Outcome::Refused(Rejection::SubscriptionEnded) => {
                let ended = current()?;
                let is_wanted = change == SubscriptionChange::Cancel && ended.status == "cancelled";
                let detail = format!("The subscription is {}.", ended.status);
                if is_wanted {
                    Ok(Outcome::Recorded(ended))
                } else {
                    Err(Problem::new(Code::StateConflict).detail(detail))
                }
            }
            outcome => Ok(outcome.typed(at)?),
        }
    };
    key.run_typed(caller.ledger(), at, execute).await?.answer(|view| Ok(ok(view)))
}

/// The account's subscription of this id.
fn named(app: &App, caller: Caller, id: &str) -> Result<SubscriptionRow> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    app.engine.subscription(caller.ledger(), id)?.ok_or_else(not_found)
}

fn check(app: &App, caller: Caller, wire: &SubscriptionRequest<'_>) -> Result<Subscribe> {
    let mut check = Checker::new();
    let plan = check.uuid("plan_id", wire.plan_id);
    let customer = read_customer(&mut check, wire.customer);
    let name = check.text("payment_method", wire.payment_method, 1..=20);
    let method = name.and_then(|name| match &*name {
        "credit_card" => Some(PaymentMethod::CreditCard),
        "pix" => Some(PaymentMethod::Pix),
        _ => check.refuse("payment_method", "unknown_value", "payment_method deve ser credit_card ou pix"),
    });
    let token = match (method, wire.card_token) {
        (Some(PaymentMethod::Pix), Some(_)) => check.refuse("card_token", "ambiguous", "pix não usa card_token"),
        (Some(PaymentMethod::Pix) | None, _) => None,
        (Some(_), raw) => check.text("card_token", raw, 1..=64),
    };
    let splits = splits::read(&mut check, wire.splits);
    let labels = labels::read(&mut check, wire.reference, wire.reference_unique, wire.metadata);
    let customer = customer.map(|customer| Payer { labels, ..customer });
    let checked = (|| Some((ObjectId(plan?.as_u128()), method?, splits?, customer?)))();
    let (plan, method, splits, customer) = check.finish_with(checked)?;
    let card = token.map(|token| stored_card(app, caller, &token)).transpose()?;
    let card = card.map(|CardRow { id, face, .. }| StoredCard { id, face });
    let id = app.engine.new_id(caller.group)?;
    let customer = app.engine.keyring().seal_value(SealedFor::customer(id), app.engine.now(), &customer)?;
    Ok(Subscribe { id, plan, method, card, splits, customer })
}
