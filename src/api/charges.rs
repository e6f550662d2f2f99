//! Charges: one charge, with its opening and its outcome (interface 2.2, 2.5, 3.1); the list of an
//! account's charges; changes of metadata; and the cancellation of an open PIX charge.

use std::sync::Arc;

use actors::engine::{ChargeFilter, Listed, NewChargeChange, Outcome, PixEnded};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use ledger::charge::{Charge, ChargeOutcome};
use ledger::id::ObjectId;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::app::App;
use crate::api::labels;
use web::body::JsonBody;
use web::caller::{Caller, PathId};
use web::idempotency::{CommandPermit, KeyScope, decided, naming};
use web::json::{Checker, Raw, parse, parse_unread};
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::{
    CursorParams, FILTERED_MAX, LabelFilter, LabelParams, List, PageParams, PageQuery, PeriodParams, ok, query,
    require_few,
};
use web::views::charge::{ChargeView, charge_filter, not_pending, payer};
use web::views::labels::labels as labels_of;

/// One charge of the account.
#[utoipa::path(get, path = "/api/charges/{txid}", operation_id = "get_charge", params(("txid" = String, Path)),
    responses((status = 200, body = ChargeView), (status = 405, description = "`batch` and `quote` are other addresses.")))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(txid): PathId) -> Result<Response, Problem> {
    Ok(ok(ChargeView::of(&app.engine, &named(&app, caller, &txid)?)?))
}

/// The account's charge of this txid.
pub(crate) fn named(app: &App, caller: Caller, txid: &str) -> Result<Charge, Problem> {
    let not_found = || Problem::new(Code::ChargeNotFound);
    let id = ObjectId::parse(txid).ok_or_else(not_found)?;
    app.engine.object_of(caller.group, id)?.ok_or_else(not_found)
}

/// Which charges a list is asked for.
#[derive(Debug)]
pub struct ChargeQuery {
    filter: ChargeFilter,
    labels: LabelFilter,
}

impl<S: Sync> FromRequestParts<S> for ChargeQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query(parts)?;
        Ok(Self { filter: charge_filter(&pairs)?, labels: LabelFilter::read(&pairs)? })
    }
}

/// The account's charges, newest first. A charge shows where it stands when it is read: one whose
/// outcome comes while the page is being read is listed by where it stood, and shows its outcome.
/// With `metadata` the period may hold 2,000 charges, and so may a `reference`.
#[utoipa::path(get, path = "/api/charges", operation_id = "list_charges",
    params(("status" = Option<String>, Query, pattern = "^(CONCLUIDA|pending|RECUSADA|cancelled)$", description = "`pending`, `CONCLUIDA`, `RECUSADA` or `cancelled`"),
        ("payment_method" = Option<String>, Query, pattern = "^(pix|credit_card|debit_card)$", description = "`pix`, `credit_card` or `debit_card`"),
        PeriodParams, LabelParams, PageParams, CursorParams),
    responses((status = 200, body = List<ChargeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ChargeQuery { filter, labels }: ChargeQuery,
    query: PageQuery,
) -> Result<Response, Problem> {
    let (page, merchant) = (query.page, caller.ledger());
    if !labels.is_empty() {
        let found = query.cursors.of_filtered(&app.engine, merchant, labelled(&app, caller, &filter, &labels)?)?;
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
fn labelled(app: &App, caller: Caller, filter: &ChargeFilter, labels: &LabelFilter) -> Result<Vec<ObjectId>, Problem> {
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

/// A change of a charge, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = ChargeChange, example = json!({"metadata": {"loja": "azul", "vendedor": null}}))]
pub struct ChargeChangeRequest<'a> {
    /// Values by key: a text replaces the value of its key, null or an empty text takes the key
    /// away, and other keys stay.
    #[schema(value_type = Option<HashMap<String, Option<String>>>)]
    metadata: Raw<'a>,
}

/// Changes the metadata of a charge. Metadata and fiscal documents change 1,000 times at most (then
/// 409 `state_conflict`). Nothing else of a charge changes, and no webhook is sent.
#[utoipa::path(patch, path = "/api/charges/{txid}", operation_id = "change_charge", params(("txid" = String, Path)),
    request_body = ChargeChangeRequest,
    responses((status = 200, body = ChargeView), (status = 405, description = "`batch` and `quote` are other addresses."), (status = 409)))]
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(txid): PathId,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: ChargeChangeRequest<'_> = parse(&body)?;
    let mut check = Checker::new();
    let changes = check.optional(wire.metadata, labels::read_changes).unwrap_or_default();
    check.finish()?;
    changed(&app, caller, &txid, |charge| {
        let payer = payer(&app.engine, charge.id, charge.payer.as_ref());
        let before = labels_of(&app.engine, charge, &payer).metadata;
        let metadata = labels::merged(before.clone(), changes.clone());
        let mut check = Checker::new();
        labels::check_size(&mut check, &metadata);
        check.finish()?;
        Ok((metadata != before).then_some(NewChargeChange::Metadata(metadata)))
    })
    .await
}

/// Changes the account's charge of this txid, as `plan` decides of the charge as it stands; `None`
/// changes nothing. The answer has the charge as it is then.
pub(crate) async fn changed(
    app: &App,
    caller: Caller,
    txid: &str,
    plan: impl Fn(&Charge) -> Result<Option<NewChargeChange>, Problem>,
) -> Result<Response, Problem> {
    for _ in 0..MERGES_MAX {
        let charge = named(app, caller, txid)?;
        let Some(change) = plan(&charge)? else { return Ok(ok(ChargeView::of(&app.engine, &charge)?)) };
        let permit = app.engine.permit_in_turn(Some(caller.group), CHANGE_BYTES).await?;
        if let Some(changed) = change_once(app, caller, &charge, change, Arc::clone(&permit).into()).await? {
            let view = ChargeView::of(&app.engine, &changed)?;
            return Ok(naming(permit.requested_record(), ok(view)));
        }
    }
    Err(Problem::new(Code::StateConflict).detail("The charge is being changed by others.").retry_after(1))
}

/// Makes a change of a charge; the charge as it is then. `None` where another change came between,
/// so that this one is planned again on what that one left.
pub(crate) async fn change_once(
    app: &App,
    caller: Caller,
    charge: &Charge,
    change: NewChargeChange,
    permit: CommandPermit,
) -> Result<Option<Charge>, Problem> {
    if charge.changes >= CHANGES_MAX {
        let detail = format!("Labels and fiscal documents of a charge change {CHANGES_MAX} times at most.");
        return Err(Problem::new(Code::StateConflict).detail(detail));
    }
    match app.engine.change_charge(caller.group, charge, change, caller.context(permit)).await? {
        Outcome::Unchanged | Outcome::KeyTaken => Ok(None),
        outcome => {
            decided(outcome)?;
            named(app, caller, &charge.id.txid()).map(Some)
        }
    }
}

/// How often a change is planned again on what another one left.
const MERGES_MAX: usize = 8;
/// How often a charge is changed, at most: each change is read with the charge.
const CHANGES_MAX: u32 = 1_000;
/// Most bytes of the Record of a change.
const CHANGE_BYTES: usize = 16 * 1024;

/// Ends a pending PIX charge. The institution is asked first: a payment that was faster is booked,
/// and the answer is 409.
#[utoipa::path(post, path = "/api/charges/{txid}/cancel", operation_id = "cancel_charge", params(("txid" = String, Path)),
    responses((status = 200, body = ChargeView)))]
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(txid): PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
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
