//! Charges: one charge, with its opening and its outcome (interface 2.2, 2.5, 3.1); the list of an
//! account's charges; and the cancellation of an open PIX charge.

use std::sync::Arc;

use actors::engine::{ChargeFilter, Listed, Outcome, PixEnded};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use ledger::charge::{Charge, ChargeOutcome};
use ledger::id::ObjectId;

use crate::api::app::App;
use web::caller::{Caller, PathId};
use web::idempotency::KeyScope;
use web::json::parse_unread;
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::{List, PageQuery, list_of, ok, query};
use web::views::charge::{ChargeView, charge_filter, not_pending};

/// One charge of the account.
#[utoipa::path(get, path = "/api/charges/{txid}", operation_id = "get_charge", params(("txid" = String, Path)),
    responses((status = 200, body = ChargeView)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(txid): PathId) -> Result<Response, Problem> {
    Ok(ok(ChargeView::of(&app.engine, &named(&app, caller, &txid)?)?))
}

/// The account's charge of this txid.
fn named(app: &App, caller: Caller, txid: &str) -> Result<Charge, Problem> {
    let not_found = || Problem::new(Code::ChargeNotFound);
    let id = ObjectId::parse(txid).ok_or_else(not_found)?;
    app.engine.object_of(caller.group, id)?.ok_or_else(not_found)
}

/// Which charges a list is asked for.
#[derive(Debug)]
pub struct ChargeQuery(ChargeFilter);

impl<S: Sync> FromRequestParts<S> for ChargeQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        charge_filter(&query(parts)?).map(Self)
    }
}

/// The account's charges, newest first. A charge shows where it stands when it is read: one whose
/// outcome comes while the page is being read is listed by where it stood, and shows its outcome.
#[utoipa::path(get, path = "/api/charges", operation_id = "list_charges",
    params(("status" = Option<String>, Query, pattern = "^(CONCLUIDA|pending|RECUSADA|cancelled)$", description = "`pending`, `CONCLUIDA`, `RECUSADA` or `cancelled`"),
        ("payment_method" = Option<String>, Query, pattern = "^(pix|credit_card|debit_card)$", description = "`pix`, `credit_card` or `debit_card`"),
        ("from" = Option<String>, Query, description = "Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Created before this instant, or on this day at the latest"),
        ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<ChargeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ChargeQuery(filter): ChargeQuery,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let Listed { total, items } = app.engine.charges(caller.group, &filter, page.skip(), page.count())?;
    list_of(total, page, items.map(move |charge| ChargeView::of(&app.engine, &charge?)))
}

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
