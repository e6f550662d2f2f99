//! `GET`, `POST /api/keys`, `PATCH` and `DELETE /api/keys/{id}`, and the rotation of its webhook
//! secret: the API keys of an account, as its own programs manage them. The merchant's actor
//! decides what the key that asks may do.

use axum::extract::State;
use axum::response::Response;
use ledger::scope::Scope;
use ledger::{GroupNumber, ObjectId};
use ops::api_keys::{
    ApiKeyChange, ApiKeyList, ApiKeyRequest, ApiKeyResponse, ApiKeyView, OwnSecretResponse, RevokedResponse,
    listed_with,
};
use ops::key_management::{KeyManagement, Manager};

use crate::api::scopes::lacking;
use crate::api::{App, AppState};
use web::json::or_empty;
use web::reply::{WholeListParams, first_of};
use web::{
    Caller, JsonBody, KeyScope, KeyedBody, PageQuery, PathId, Problem, Result, SentKey, not_found, ok, parse_exact,
    parse_unread_exact,
};

/// The account's API keys, oldest first, the revoked ones too; newest first with `limit`,
/// `per_page`, `before` or `after`, as other lists. The text of a key is stored nowhere.
#[utoipa::path(get, path = "/api/keys", operation_id = "list_keys", params(WholeListParams),
    responses((status = 200, body = ApiKeyList)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery) -> Result<Response> {
    // Merchants do not see the platform's operators.
    let shown = |_: &str| "operator".to_owned();
    let mut keys = listed_with(&app.engine, &app.last_uses, caller.group, shown);
    if query.cursors.are_given_to_whole_list() {
        keys.reverse();
        keys = query.cursors.between(keys, |key| ObjectId::parse(&key.id).unwrap_or_default())?;
    }
    let total = keys.len() as u64;
    let (items, next) = query.cursors.first(keys.into_iter().map(Ok::<_, Problem>), |key| key.id.clone())?;
    first_of(Some(total), next, items)
}

/// Makes an API key with these scopes; when absent, with those of the calling key. Its text and its
/// webhook secret are shown only now: a replay names the key that was made, and one that was lost
/// on the way is revoked. 403 `scopes_exceed_key` for scopes that the calling key has not, 403
/// `own_keys_not_allowed` where operators manage the keys, 409 `too_many_api_keys` with 20 live
/// keys. A key that receives events needs `read` of the calling key. A field that is unknown is
/// 400: no right comes of a misspelt name.
#[utoipa::path(post, path = "/api/keys", operation_id = "create_key",
    request_body(content = Option<ApiKeyRequest>, example = json!({"scopes": ["charges", "read"]})),
    responses((status = 201, body = ApiKeyResponse)))]
pub async fn create(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: ApiKeyRequest<'_> = parse_exact(or_empty(sent.bytes()))?;
    if wire.webhook_url.is_some() && !caller.scopes.has(Scope::Read) {
        return Err(lacking(Scope::Read));
    }
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    by(&app, caller).create(caller.group, &wire, &key).await
}

/// Says where a key's webhooks go, and which events; null for nowhere, and for all events. What is
/// left out stays. The scopes of a key never change: another key has others. An address gets the
/// events that come from here on; events that wait already are sent, whatever is chosen. 403
/// `scopes_exceed_key` for a key that may do more than the calling key, 409 `state_conflict` for a
/// revoked one.
#[utoipa::path(patch, path = "/api/keys/{id}", operation_id = "change_key",
    request_body(content = ApiKeyChange, example = json!({"webhook_url": null, "events": ["charge.paid"]})),
    responses((status = 200, body = ApiKeyView), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    let wire: ApiKeyChange<'_> = parse_exact(&body.bytes)?;
    let key = SentKey::none().read(&app.engine, KeyScope::Merchant(caller.group), None, b"")?;
    by(&app, caller).change(named(&app, caller, &id)?, &wire, &key).await
}

/// Makes a new webhook secret of a key, which is shown only now: a replay has null. The one
/// before signs beside it for 24 hours. 403 `scopes_exceed_key` for a key that may do more than the
/// calling key, 409 `state_conflict` for a revoked one, and while four replaced secrets still sign.
#[utoipa::path(post, path = "/api/keys/{id}/rotate-secret", operation_id = "rotate_key_secret",
    responses((status = 200, body = OwnSecretResponse), (status = 409)))]
pub async fn rotate_secret(
    State(app): AppState,
    caller: Caller,
    PathId(id): PathId,
    sent: KeyedBody,
) -> Result<Response> {
    parse_unread_exact(sent.bytes())?;
    let (group, id) = named(&app, caller, &id)?;
    let key = sent.key(&app.engine, KeyScope::Merchant(group), Some(&id.txid()))?;
    let rotated = by(&app, caller).rotate_secret((group, id), &key).await?;
    rotated.answer(|webhook_secret| Ok(ok(OwnSecretResponse { webhook_secret })))
}

/// Revokes an API key, at once; a key may revoke itself. 403 `scopes_exceed_key` for one that may
/// do more than the calling key.
#[utoipa::path(delete, path = "/api/keys/{id}", operation_id = "revoke_key",
    responses((status = 200, body = RevokedResponse)))]
pub async fn revoke(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    let key = SentKey::none().read(&app.engine, KeyScope::Merchant(caller.group), None, b"")?;
    by(&app, caller).revoke(named(&app, caller, &id)?, &key).await
}

/// API keys, as a merchant manages them.
fn by(app: &App, caller: Caller) -> KeyManagement<'_> {
    let (engine, webhooks, sandbox) = (&app.engine, &app.webhooks, app.sandbox);
    KeyManagement { engine, webhooks, sandbox, manager: Manager::Merchant(caller) }
}

/// The account's key of an id. Error: 404 when it has none.
fn named(app: &App, caller: Caller, id: &str) -> Result<(GroupNumber, ObjectId)> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let row = app.engine.api_key(id).filter(|row| row.group == caller.group);
    row.map(|row| (row.group, id)).ok_or_else(not_found)
}
