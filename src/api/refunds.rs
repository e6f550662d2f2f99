//! Refunds, as merchants ask for them and read them (interface 2.11, 3.6). The operations team
//! decides ([`ops::refunds`]).

use std::sync::Arc;

use actors::engine::{LedgerList, Listed, ReferenceLookup, ReferenceOf, Slice};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::merchant::RequestRefund;
use ledger::{AMOUNT_MAX, Centavos, FreeText, MerchantCommand, Object, ObjectId, Refund, SealedFor};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::labels::{self, MetadataRequest, change_metadata};
use crate::api::splits;
use crate::api::{App, AppState};
use web::idempotency::body_digest;
use web::reply::{All, FILTERED_MAX, Filter, PeriodParams, WholeListParams, first_of};
use web::views::charge::paid_charge;
use web::views::refund::{RefundView, refund_labels, refund_status};
use web::{
    Caller, Checker, Code, Cursors, JsonBody, KeyScope, KeyedBody, LabelParams, PathId, Problem, Raw, Result, created,
    not_found, ok, parse, query,
};

/// A refund, as asked for.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "payment_id": "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", "amount": 3000, "reason": "Produto devolvido",
}))]
pub struct RefundRequest<'a> {
    /// The charge: its txid.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    payment_id: Raw<'a>,
    /// Centavos; may be a part of the charge.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Why, at most 500 characters.
    #[schema(value_type = Option<String>, max_length = 500)]
    reason: Raw<'a>,
    /// What to take back of recipients' splits; absent, they keep all of them.
    #[schema(value_type = Option<Vec<splits::TakeBackItem>>)]
    splits: Raw<'a>,
    /// Your reference, 1 to 64 characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    reference: Raw<'a>,
    /// True to refuse it when another refund of the account was made with this and the same
    /// `reference`, ever.
    #[schema(value_type = Option<bool>)]
    reference_unique: Raw<'a>,
    /// Values of yours by key: at most 20, of 500 characters.
    #[schema(value_type = Option<HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// Asks for a refund of a paid charge. The operations team decides; money moves when it approves.
#[utoipa::path(post, path = "/api/refunds", operation_id = "request_refund", request_body = RefundRequest,
    responses((status = 201, body = RefundView), (status = 404)))]
pub async fn request(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: RefundRequest<'_> = parse(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let (app, wire) = (&app, &wire);
    let digest = || body_digest(&app.engine, sent.bytes(), None);
    let look_up = || labels::look_up(app, caller, (ReferenceOf::Refund, unique.as_deref()), digest);
    let execute = |reference: Option<ReferenceLookup>, admitted| async move {
        let wanted = check(app, caller, wire, reference.as_ref())?;
        let (id, command) = (wanted.id, MerchantCommand::RequestRefund(Box::new(wanted)));
        let context = caller.context(admitted);
        Ok(app.engine.command_reserving(caller.group, id, command, reference, context).await?)
    };
    let asked = key.run_recorded_after(caller.ledger(), look_up, Refund::made_by, execute).await?;
    asked.answer(|refund| Ok(created(RefundView::of(&app.engine, &refund))))
}

fn check(
    app: &App,
    caller: Caller,
    wire: &RefundRequest<'_>,
    reference: Option<&ReferenceLookup>,
) -> Result<RequestRefund> {
    let mut check = Checker::new();
    // Any text names a charge or none: one that cannot be an id is not found (interface 7).
    let payment_id = check.any_text("payment_id", wire.payment_id);
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let reason = check.optional_prose("reason", wire.reason, 0..=500);
    let take_back = splits::read_take_back(&mut check, wire.splits);
    let labels = labels::read(&mut check, wire.reference, wire.reference_unique, wire.metadata);
    let payment = payment_id.zip(amount).zip(take_back);
    let ((payment_id, amount), take_back) = check.finish_with(payment)?;
    labels::require_new(ReferenceOf::Refund, reference)?;
    let charge = ObjectId::parse(payment_id.trim()).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let facts = paid_charge(&app.engine, app.disputes, caller.group, charge)?;
    let (now, id) = (app.engine.now(), app.engine.new_id(caller.group)?);
    let has_text = reason.is_some() || labels.is_some();
    let text = FreeText { text: reason.unwrap_or_default().into_owned(), labels };
    let seal = || app.engine.keyring().seal_value(SealedFor::reason(id), now, &text);
    let (amount, reason) = (Some(Centavos(amount)), has_text.then(seal).transpose()?);
    Ok(RequestRefund { facts, id, amount, take_back, reason })
}

/// One refund of the account.
#[utoipa::path(get, path = "/api/refunds/{id}", operation_id = "get_refund",
    responses((status = 200, body = RefundView)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    Ok(ok(RefundView::of(&app.engine, &named(&app, caller, &id)?)))
}

/// The account's refund of this id.
fn named(app: &App, caller: Caller, id: &str) -> Result<Refund> {
    let found = ObjectId::parse(id).map(|id| app.engine.object_of(caller.group, id)).transpose()?.flatten();
    found.ok_or_else(not_found)
}

/// Changes the metadata of a refund, 1,000 times at most (then 409 `state_conflict`). Nothing else
/// of it changes, and no webhook is sent.
#[utoipa::path(patch, path = "/api/refunds/{id}", operation_id = "change_refund",
    request_body = MetadataRequest, responses((status = 200, body = RefundView), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    let view = |refund: &Refund| Ok(ok(RefundView::of(&app.engine, refund)));
    change_metadata(&app, caller, &body.bytes, || named(&app, caller, &id), view).await
}

/// Values of `status`.
const STATUSES: [&str; 4] = ["pending", "approved", "rejected", "failed"];

/// All refunds of the account, newest first. With a status or a label, the period may hold 2,000
/// refunds.
#[utoipa::path(get, path = "/api/refunds", operation_id = "list_refunds",
    params(("status" = Option<String>, Query, pattern = "^(pending|approved|rejected|failed)$", description = "`pending`, `approved`, `rejected` or `failed`"),
        PeriodParams, LabelParams, WholeListParams), responses((status = 200, body = All<RefundView>)))]
pub async fn list(State(app): AppState, caller: Caller, parts: Parts) -> Result<Response> {
    let (merchant, filter) = (caller.ledger(), Filter::read(&query(&parts)?, "status", &STATUSES)?);
    // Later refunds are not in this list.
    let end = app.engine.published_of(caller.group).0 + 1;
    let range = filter.range(&app.engine, LedgerList::Refunds, merchant)?;
    let cursors = Cursors::read(&parts)?;
    let between = cursors.range(&app.engine, merchant)?;
    let range = range.start.max(between.start)..range.end.min(end).min(between.end);
    let count = if filter.looks_through() { FILTERED_MAX } else { 0 };
    let Listed { total, items } = app.engine.refunds(merchant, Slice::new(range.clone(), 0, count))?;
    filter.check("status", total)?;
    let id = |refund: &Refund| refund.id.uuid().to_string();
    let engine = Arc::clone(&app.engine);
    let view = move |refund: Result<Refund>| Ok(RefundView::of(&engine, &refund?));
    if !filter.looks_through() {
        let (items, next) = cursors.first(app.engine.all_refunds(merchant, range), id)?;
        return first_of(Some(total), next, items.map(view));
    }
    // Their ids, and not a page of views: a refund can take back ten thousand splits.
    let mut found = Vec::new();
    for refund in items {
        let refund = refund?;
        let is_in_status = filter.word.is_none_or(|status| refund_status(&refund.decision) == status);
        let labels = refund_labels(&app.engine, &refund);
        if is_in_status && filter.labels.admits_some(labels.as_ref()) {
            found.push(refund.id);
        }
    }
    let total = found.len() as u64;
    let (items, next) = cursors.first(found.into_iter().map(move |id| app.engine.known_object(id)), id)?;
    first_of(Some(total), next, items.map(view))
}
