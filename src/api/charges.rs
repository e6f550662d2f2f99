//! Charges: one charge, with its opening and its outcome (interface 2.2, 2.5, 3.1); the list of an
//! account's charges; changes of metadata; and the cancellation of an open PIX charge.

use actors::engine::{ChargeFilter, Listed, Outcome, PixEnded};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::{Charge, ChargeOutcome, ObjectId};

use crate::api::labels::{MetadataRequest, change_metadata};
use crate::api::{App, AppState};
use web::json::parse_unread;
use web::reply::{self, FILTERED_MAX, LabelFilter, PeriodParams, require_few};
use web::views::charge::{ChargeView, charge_filter, not_pending, payer};
use web::views::labels::labels as labels_of;
use web::{
    Caller, Code, CursorParams, JsonBody, KeyScope, KeyedBody, LabelParams, List, PageParams, PageQuery, PathId,
    Problem, Result, ok,
};

/// One charge of the account.
#[utoipa::path(get, path = "/api/charges/{txid}", operation_id = "get_charge",
    responses((status = 200, body = ChargeView), (status = 405, description = "`batch` and `quote` are other addresses.")))]
pub async fn get(State(app): AppState, caller: Caller, PathId(txid): PathId) -> Result<Response> {
    Ok(ok(ChargeView::of(&app.engine, &named(&app, caller, &txid)?)?))
}

/// The account's charge of this txid.
pub(crate) fn named(app: &App, caller: Caller, txid: &str) -> Result<Charge> {
    let not_found = || Problem::new(Code::ChargeNotFound);
    let id = ObjectId::parse(txid).ok_or_else(not_found)?;
    app.engine.object_of(caller.group, id)?.ok_or_else(not_found)
}

/// The account's charges, newest first. A charge shows where it stands when it is read: one whose
/// outcome comes while the page is being read is listed by where it stood, and shows its outcome.
/// With `metadata` the period may hold 2,000 charges, and so may a `reference`.
#[utoipa::path(get, path = "/api/charges", operation_id = "list_charges",
    params(("status" = Option<String>, Query, pattern = "^(CONCLUIDA|pending|RECUSADA|cancelled)$", description = "`pending`, `CONCLUIDA`, `RECUSADA` or `cancelled`"),
        ("payment_method" = Option<String>, Query, pattern = "^(pix|credit_card|debit_card)$", description = "`pix`, `credit_card` or `debit_card`"),
        PeriodParams, LabelParams, PageParams, CursorParams), responses((status = 200, body = List<ChargeView>)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery, parts: Parts) -> Result<Response> {
    let filter = charge_filter(&reply::query(&parts)?)?;
    let (page, merchant) = (query.page, caller.ledger());
    if !query.labels.is_empty() {
        let found = labelled(&app, caller, &filter, &query.labels)?;
        let found = query.cursors.of_filtered(&app.engine, merchant, found)?;
        let total = found.len() as u64;
        let shown = found.into_iter().skip(usize::try_from(page.skip()).unwrap_or(usize::MAX)).take(page.count());
        let shown: Vec<_> = shown.collect();
        let last = shown.last().map(|id| id.txid());
        let view = move |id| ChargeView::of(&app.engine, &app.engine.known_object(id)?);
        return query.answer(total, last, shown.into_iter().map(view));
    }
    let [after, before] = query.cursors.ordinals(&app.engine, merchant)?;
    let filter = ChargeFilter { after, before, ..filter };
    let Listed { total, items } = app.engine.charges(caller.group, &filter, page.skip(), page.count())?;
    let last = items.last_id()?.map(|id| id.txid());
    query.answer(total, last, items.map(move |charge| ChargeView::of(&app.engine, &charge?)))
}

/// The charges that meet a filter of labels too, newest first.
fn labelled(app: &App, caller: Caller, filter: &ChargeFilter, labels: &LabelFilter) -> Result<Vec<ObjectId>> {
    let engine = &app.engine;
    let admits = |charge: &Charge| {
        let payer = payer(engine, charge.id, charge.payer.as_ref());
        filter.admits(charge) && labels.admits(&labels_of(engine, charge, &payer))
    };
    let mut found = Vec::new();
    if let Some(reference) = &labels.reference {
        let (total, ids) = engine.charges_with_reference(caller.group, reference, FILTERED_MAX)?;
        require_few("reference", total as u64)?;
        for id in ids {
            found.extend(admits(&engine.known_object(id)?).then_some(id));
        }
        return Ok(found);
    }
    let Listed { total, items } = engine.charges(caller.group, filter, 0, FILTERED_MAX)?;
    require_few("metadata", total)?;
    for charge in items {
        let charge = charge?;
        found.extend(admits(&charge).then_some(charge.id));
    }
    Ok(found)
}

/// Changes the metadata of a charge. Metadata and fiscal documents change 1,000 times at most (then
/// 409 `state_conflict`). Nothing else of a charge changes, and no webhook is sent.
#[utoipa::path(patch, path = "/api/charges/{txid}", operation_id = "change_charge", request_body = MetadataRequest,
    responses((status = 200, body = ChargeView), (status = 405, description = "`batch` and `quote` are other addresses."), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(txid): PathId, body: JsonBody) -> Result<Response> {
    let view = |charge: &Charge| Ok(ok(ChargeView::of(&app.engine, charge)?));
    change_metadata(&app, caller, &body.bytes, || named(&app, caller, &txid), view).await
}

/// Ends a pending PIX charge. The institution is asked first: a payment that was faster is booked,
/// and the answer is 409.
#[utoipa::path(post, path = "/api/charges/{txid}/cancel", operation_id = "cancel_charge",
    responses((status = 200, body = ChargeView)))]
pub async fn cancel(State(app): AppState, caller: Caller, PathId(txid): PathId, sent: KeyedBody) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let id = named(&app, caller, &txid)?.id;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&id.txid()))?;
    let app = &app;
    let read = || named(app, caller, &id.txid());
    let execute = |charge: Charge, admitted| async move {
        if charge.card.is_some() || charge.outcome != ChargeOutcome::Pending {
            return Err(not_pending(&charge));
        }
        match app.engine.cancel_pix(caller.group, id, caller.context(admitted)).await? {
            Outcome::Recorded(PixEnded::Cancelled) => read().map(Some),
            Outcome::Recorded(PixEnded::NotPending) | Outcome::Unchanged => Err(not_pending(&read()?)),
            Outcome::KeyTaken => Ok(None),
            Outcome::Refused(rejection) => Err(rejection.into()),
        }
    };
    // A request that sees the charge ended by another one with the same key finds that key too.
    let ended = key.run_after(caller.ledger(), read, |_| read(), execute).await?;
    ended.answer(|charge| Ok(ok(ChargeView::of(&app.engine, &charge)?)))
}
