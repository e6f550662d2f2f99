//! API keys: create, change, revoke, and rotate the webhook secret. A key is shown once and kept as
//! a digest. What operators and merchants do alike is in [`crate::key_management`].

use actors::engine::{ApiKeyRow, Engine};
use axum::extract::State;
use axum::response::Response;
use ledger::id::{GroupNumber, ObjectId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::key_management::{KeyManagement, Manager};
use crate::merchants::find;
use crate::{AdminCall, Desk, DeskState, Operator};
use web::json::{or_empty, present};
use web::last_uses::LastUses;
use web::{PathId, Raw, Result, broken, not_found, ok, parse_exact, parse_unread_exact, time};

/// A new key, as asked for. The body may be left out.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"webhook_url": "https://loja.example.com/webhooks"}))]
pub struct ApiKeyRequest<'a> {
    /// Where webhooks go.
    #[schema(value_type = Option<String>, pattern = "^https?://", max_length = 2048)]
    pub webhook_url: Raw<'a>,
    /// What the key may do. When absent: everything that the one who asks may do.
    #[schema(value_type = Option<Vec<ScopeName>>, min_items = 1, max_items = 4)]
    pub scopes: Raw<'a>,
    /// The events that go to `webhook_url`, by the names that they have in its requests; all when
    /// absent.
    #[schema(value_type = Option<Vec<String>>, min_items = 1)]
    pub events: Raw<'a>,
}

/// One right of an API key, as the description of the interface has it.
#[derive(ToSchema)]
#[schema(as = ApiKeyScope, rename_all = "snake_case")]
pub enum ScopeName {
    /// Charge and refund payers.
    Charges,
    /// Send money out.
    Payouts,
    /// Register and change sub-recipients.
    Recipients,
    /// Read everything of the account.
    Read,
}

/// What is to change of a key.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"webhook_url": "https://loja.example.com/webhooks"}))]
pub struct ApiKeyChange<'a> {
    /// Where webhooks go from here on; null for nowhere. What is left out stays.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^https?://", max_length = 2048)]
    pub webhook_url: Option<Raw<'a>>,
    /// The events that go there from here on; null for all. What is left out stays.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>, min_items = 1)]
    pub events: Option<Raw<'a>>,
}

/// A key, as far as it can be shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    /// The key's id.
    pub(crate) id: String,
    /// Where webhooks go; null for nowhere.
    #[schema(required, example = "https://loja.example.com/webhooks")]
    pub(crate) webhook_url: Option<String>,
    /// The events that go there; absent where all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) events: Option<Vec<&'static str>>,
}

/// The API keys of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyList {
    /// The keys, oldest first, the revoked ones too.
    items: Vec<ListedApiKey>,
    /// How many there are.
    total: usize,
    /// Address of the keys that follow; where a merchant's request has `limit`, and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A key in a list. Its text is kept nowhere.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedApiKey {
    /// The key's id.
    pub id: String,
    /// When it was made.
    pub created_at: String,
    /// Where webhooks go; null for nowhere.
    #[schema(required, example = "https://loja.example.com/webhooks")]
    pub webhook_url: Option<String>,
    /// The events that go there; absent where all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub events: Option<Vec<&'static str>>,
    /// What it may do.
    #[schema(value_type = Vec<ScopeName>)]
    pub scopes: Vec<&'static str>,
    /// Who made it: the id of another key, or `operator`; null for a key that the service made
    /// itself. Operators see the operator's name.
    #[schema(required, example = "operator")]
    pub created_by: Option<String>,
    /// True once it was revoked: it opens nothing any more.
    pub revoked: bool,
    /// Begin of the minute in which it last opened a request; null when it did not since the
    /// server started.
    #[schema(required)]
    pub last_used_at: Option<String>,
}

/// A new webhook secret. The one before signs beside it for 24 hours.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretResponse {
    /// Signs the webhooks from here on.
    webhook_secret: String,
}

/// A new webhook secret of a merchant's own key. The one before signs beside it for 24 hours.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnSecretResponse {
    /// Signs the webhooks from here on; null in an idempotent replay.
    #[schema(required, example = "whsec_0000…")]
    pub webhook_secret: Option<String>,
}

/// A new key; the only time that its text and its secret are shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyResponse {
    /// The key's id.
    pub(crate) id: String,
    /// The key; null in an idempotent replay, since it is kept nowhere.
    #[schema(required, example = "test_019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e0000…")]
    pub(crate) api_key: Option<String>,
    /// Signs the webhooks; null in an idempotent replay.
    #[schema(required, example = "whsec_0000…")]
    pub(crate) webhook_secret: Option<String>,
    /// What it may do.
    #[schema(value_type = Vec<ScopeName>)]
    pub(crate) scopes: Vec<&'static str>,
}

/// A revoked key.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedResponse {
    /// The key's id.
    pub(crate) id: String,
    /// Always true.
    pub(crate) revoked: bool,
}

/// Makes a key. A replay names the key that was made and cannot show it again: one that was lost on
/// the way is revoked.
#[utoipa::path(post, path = "/ops/merchants/{id}/api-keys", operation_id = "create_api_key", request_body = Option<ApiKeyRequest>,
    responses((status = 201, body = ApiKeyResponse)))]
pub async fn create(call: AdminCall) -> Result<Response> {
    let wire: ApiKeyRequest<'_> = parse_exact(or_empty(call.sent.bytes()))?;
    let group = find(&call.desk, &call.id)?;
    by(&call).create(group, &wire, &call.key(&call.id)?).await
}

/// API keys, as an operator manages them.
fn by(AdminCall { desk, operator, .. }: &AdminCall) -> KeyManagement<'_> {
    let (engine, webhooks, sandbox) = (&desk.engine, &desk.webhooks, desk.sandbox);
    KeyManagement { engine, webhooks, sandbox, manager: Manager::Operator(operator) }
}

/// The API keys of a merchant, oldest first, the revoked ones too.
#[utoipa::path(get, path = "/ops/merchants/{id}/api-keys", operation_id = "list_api_keys",
    responses((status = 200, body = ApiKeyList), (status = 400)))]
pub async fn list(State(desk): DeskState, _: Operator, PathId(merchant): PathId) -> Result<Response> {
    Ok(ok(ApiKeyList::of(listed(&desk, find(&desk, &merchant)?))))
}

impl ApiKeyList {
    /// The list of these keys.
    pub fn of(items: Vec<ListedApiKey>) -> Self {
        Self { total: items.len(), items, next: None }
    }
}

/// The API keys of a group, oldest first.
pub fn listed(desk: &Desk, group: GroupNumber) -> Vec<ListedApiKey> {
    listed_with(&desk.engine, &desk.last_uses, group, str::to_owned)
}

/// The API keys of a group, oldest first, each with its last use. `shown` makes of an operator's
/// name what the reader sees of it.
pub fn listed_with(
    engine: &Engine,
    last_uses: &LastUses,
    group: GroupNumber,
    shown: fn(&str) -> String,
) -> Vec<ListedApiKey> {
    let view = |(id, key): &(ObjectId, ApiKeyRow)| ListedApiKey {
        id: id.uuid().to_string(),
        created_at: time(id.created_at()),
        webhook_url: key.webhook.url.clone(),
        events: key.webhook.events.names(),
        scopes: key.scopes.names(),
        created_by: match (&key.creator.operator, key.creator.key) {
            (Some(name), _) => Some(shown(name)),
            (None, by) => by.map(|id| id.uuid().to_string()),
        },
        revoked: key.revoked,
        last_used_at: last_uses.of(*id).map(time),
    };
    engine.merchant(group, |row| row.keys.iter().map(view).collect()).unwrap_or_default()
}

/// Begin of the minute in which a key last opened a request.
pub fn last_used_at(desk: &Desk, key: ObjectId) -> Option<String> {
    desk.last_uses.of(key).map(time)
}

/// Revokes a key, at once.
#[utoipa::path(delete, path = "/ops/api-keys/{id}", operation_id = "revoke_api_key",
    responses((status = 200, body = RevokedResponse)))]
pub async fn revoke(call: AdminCall) -> Result<Response> {
    let (group, id) = known(&call)?;
    by(&call).revoke((group, id), &call.key(&id.txid())?).await
}

/// Says where a key's webhooks go, and which events. A key that had no address gets the events from
/// here on; events that wait already are sent, whatever is chosen.
#[utoipa::path(patch, path = "/ops/api-keys/{id}", operation_id = "change_api_key", request_body = ApiKeyChange,
    responses((status = 200, body = ApiKeyView), (status = 409)))]
pub async fn change(call: AdminCall) -> Result<Response> {
    let wire: ApiKeyChange<'_> = parse_exact(call.sent.bytes())?;
    let (group, id) = known(&call)?;
    by(&call).change((group, id), &wire, &call.key(&id.txid())?).await
}

/// Makes a new webhook secret. Both it and the one before sign for 24 hours. 409 `state_conflict`
/// while four replaced secrets still sign.
#[utoipa::path(post, path = "/ops/api-keys/{id}/rotate-secret", operation_id = "rotate_webhook_secret",
    responses((status = 200, body = SecretResponse), (status = 409)))]
pub async fn rotate_secret(call: AdminCall) -> Result<Response> {
    parse_unread_exact(call.sent.bytes())?;
    let (group, id) = known(&call)?;
    let rotated = by(&call).rotate_secret((group, id), &call.key(&id.txid())?).await?;
    rotated.answer(|secret| Ok(ok(SecretResponse { webhook_secret: secret.ok_or_else(broken)? })))
}

/// The key that a path names, and its group.
fn known(call: &AdminCall) -> Result<(GroupNumber, ObjectId)> {
    let id = ObjectId::parse(&call.id).ok_or_else(not_found)?;
    let row = call.desk.engine.api_key(id).ok_or_else(not_found)?;
    Ok((row.group, id))
}
