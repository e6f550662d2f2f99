//! API keys: create, change, revoke, and rotate the webhook secret. A key is shown once and kept as
//! a digest.

use std::sync::Arc;

use actors::engine::ApiKeyRow;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use derived::seal::random_bytes;
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::merchant::{ApiKey, MerchantCommand};
use ledger::personal::SealedFor;
use ledger::record::Record;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::merchants::find;
use crate::operator::{Admin, Operator};
use web::api_key::ApiKeyText;
use web::body::JsonBody;
use web::caller::PathId;
use web::idempotency::{KeyScope, SentKey, decided};
use web::json::{Checker, Raw, or_empty, parse_exact, parse_unread_exact, present};
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::{created, ok, only, query, time};
use webhooks::{Refusal, new_secret};

/// A new key, as asked for. The body may be left out.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"webhook_url": "https://loja.example.com/webhooks"}))]
pub struct ApiKeyRequest<'a> {
    /// Where webhooks go.
    #[schema(value_type = Option<String>, pattern = "^https?://", max_length = 2048)]
    webhook_url: Raw<'a>,
}

/// What is to change of a key.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"webhook_url": "https://loja.example.com/webhooks"}))]
pub struct ApiKeyChange<'a> {
    /// Where webhooks go from here on; null for nowhere. What is left out stays.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^https?://", max_length = 2048)]
    webhook_url: Option<Raw<'a>>,
}

/// A key, as far as it can be shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    /// The key's id.
    #[schema(format = "uuid")]
    id: String,
    /// Where webhooks go; null for nowhere.
    #[schema(required, example = "https://loja.example.com/webhooks")]
    webhook_url: Option<String>,
}

/// The API keys of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyList {
    /// The keys, oldest first, the revoked ones too.
    items: Vec<ListedApiKey>,
    /// How many there are.
    total: usize,
}

/// A key in a list. Its text is kept nowhere.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedApiKey {
    /// The key's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// When it was made.
    pub created_at: String,
    /// Where webhooks go; null for nowhere.
    #[schema(required, example = "https://loja.example.com/webhooks")]
    pub webhook_url: Option<String>,
    /// True once it was revoked: it opens nothing any more.
    pub revoked: bool,
    /// Begin of the minute in which it last opened a request; null when it did not since the
    /// server started.
    #[schema(required, format = "date-time")]
    pub last_used_at: Option<String>,
}

/// A new webhook secret. The one before signs beside it for 24 hours.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretResponse {
    /// Signs the webhooks from here on.
    #[schema(example = "whsec_0000…")]
    webhook_secret: String,
}

/// A new key; the only time that its text and its secret are shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyResponse {
    /// The key's id.
    #[schema(format = "uuid")]
    id: String,
    /// The key; null in an idempotent replay, since it is kept nowhere.
    #[schema(required, example = "test_019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e0000…")]
    api_key: Option<String>,
    /// Signs the webhooks; null in an idempotent replay.
    #[schema(required, example = "whsec_0000…")]
    webhook_secret: Option<String>,
}

/// A revoked key.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedResponse {
    /// The key's id.
    #[schema(format = "uuid")]
    id: String,
    /// Always true.
    revoked: bool,
}

/// Makes a key. A replay names the key that was made and cannot show it again: one that was lost on
/// the way is revoked.
#[utoipa::path(post, path = "/ops/merchants/{id}/api-keys", operation_id = "create_api_key", params(("id" = String, Path)), request_body = Option<ApiKeyRequest>,
    responses((status = 201, body = ApiKeyResponse)))]
pub async fn create(
    State(desk): State<Arc<Desk>>,
    Admin(operator): Admin,
    PathId(merchant): PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    let wire: ApiKeyRequest<'_> = parse_exact(or_empty(sent.bytes()))?;
    let group = find(&desk, &merchant)?;
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&merchant))?;
    let (desk, wire, operator) = (&desk, &wire, &operator);
    let execute = |admitted| async move {
        let webhook_url = check(desk, wire.webhook_url).await?;
        let id = desk.engine.new_id(group)?;
        let text = ApiKeyText::of(desk.sandbox, id, random_bytes()?);
        let secret = new_secret()?;
        let command = MerchantCommand::CreateApiKey {
            id,
            digest: ApiKeyText::digest(&text),
            webhook_url,
            webhook_secret: desk.engine.keyring().seal_secret(SealedFor::webhook_secret(id), secret.as_bytes())?,
        };
        let made = desk.engine.command(group, command, operator.context(admitted)).await?;
        Ok(made.typed(|record| Some((ApiKey::created_by(record)?, Some((text, secret)))))?)
    };
    // A replay names the key without its text, which is not stored.
    let of = |record: &Record| Some((ApiKey::created_by(record)?, None));
    let made = key.run_typed(LedgerId::Merchant(group), of, execute).await?;
    made.answer(|(id, texts)| {
        let (api_key, webhook_secret) = texts.unzip();
        Ok(created(ApiKeyResponse { id: id.uuid().to_string(), api_key, webhook_secret }))
    })
}

/// The API keys of a merchant, oldest first, the revoked ones too.
#[utoipa::path(get, path = "/ops/merchants/{id}/api-keys", operation_id = "list_api_keys", params(("id" = String, Path)),
    responses((status = 200, body = ApiKeyList), (status = 400)))]
pub async fn list(
    State(desk): State<Arc<Desk>>,
    _: Operator,
    PathId(merchant): PathId,
    parts: Parts,
) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    let items = listed(&desk, find(&desk, &merchant)?);
    Ok(ok(ApiKeyList { total: items.len(), items }))
}

/// The API keys of a group, oldest first.
pub fn listed(desk: &Desk, group: GroupNumber) -> Vec<ListedApiKey> {
    let view = |(id, key): &(ObjectId, ApiKeyRow)| ListedApiKey {
        id: id.uuid().to_string(),
        created_at: time(id.created_at()),
        webhook_url: key.webhook.url.clone(),
        revoked: key.revoked,
        last_used_at: last_used_at(desk, *id),
    };
    desk.engine.merchant(group, |row| row.keys.iter().map(view).collect()).unwrap_or_default()
}

/// Begin of the minute in which a key last opened a request.
pub fn last_used_at(desk: &Desk, key: ObjectId) -> Option<String> {
    desk.last_uses.of(key).map(time)
}

async fn check(desk: &Desk, webhook_url: Raw<'_>) -> Result<Option<String>, Problem> {
    let mut check = Checker::new();
    let webhook_url = check.optional_text("webhook_url", webhook_url, 1..=2_048).map(std::borrow::Cow::into_owned);
    if let Some(url) = &webhook_url
        && let Err(refusal) = desk.webhooks.check(url).await
    {
        let (code, message) = match refusal {
            Refusal::NotPublic => ("not_public", "webhook_url deve apontar para um endereço público"),
            Refusal::NamesAUser => ("credentials", "webhook_url não pode ter usuário nem senha"),
            _ => ("invalid_url", "webhook_url deve ser uma URL https; http, só para redes em CENTAVO_WEBHOOK_ALLOW"),
        };
        check.refuse::<()>("webhook_url", code, message);
    }
    check.finish()?;
    Ok(webhook_url)
}

/// Revokes a key, at once.
#[utoipa::path(delete, path = "/ops/api-keys/{id}", operation_id = "revoke_api_key", params(("id" = String, Path)),
    responses((status = 200, body = RevokedResponse)))]
pub async fn revoke(
    State(desk): State<Arc<Desk>>,
    Admin(operator): Admin,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    revoke_once(&desk, &operator, &id, &SentKey::none()).await
}

/// Revokes a key; a form that is sent twice, once.
pub async fn revoke_once(desk: &Desk, operator: &Operator, id: &str, sent_key: &SentKey) -> Result<Response, Problem> {
    let (id, group) = known(desk, id)?;
    let key = sent_key.read(&desk.engine, KeyScope::Operators, Some(&id.txid()), b"")?;
    let execute = |admitted| async move {
        let command = MerchantCommand::RevokeApiKey { id };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let revoked = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    revoked.answer(|()| Ok(ok(RevokedResponse { id: id.uuid().to_string(), revoked: true })))
}

/// Says where a key's webhooks go. A key that had no address gets the events from here on.
#[utoipa::path(patch, path = "/ops/api-keys/{id}", operation_id = "change_api_key", params(("id" = String, Path)),
    request_body = ApiKeyChange,
    responses((status = 200, body = ApiKeyView), (status = 409)))]
pub async fn change(
    State(desk): State<Arc<Desk>>,
    Admin(operator): Admin,
    PathId(id): PathId,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    change_once(&desk, &operator, &id, &SentKey::none(), &body).await
}

/// Changes a key; a form that is sent twice, once.
pub async fn change_once(
    desk: &Desk,
    operator: &Operator,
    id: &str,
    sent_key: &SentKey,
    body: &[u8],
) -> Result<Response, Problem> {
    let wire: ApiKeyChange<'_> = parse_exact(body)?;
    let (id, group) = known(desk, id)?;
    let key = sent_key.read(&desk.engine, KeyScope::Operators, Some(&id.txid()), body)?;
    let changed = || {
        let row = desk.engine.known_api_key(id)?;
        Ok(ok(ApiKeyView { id: id.uuid().to_string(), webhook_url: row.webhook.url }))
    };
    let Some(webhook_url) = wire.webhook_url else { return changed() };
    let execute = |admitted| async move {
        let command = MerchantCommand::ChangeApiKey { id, webhook_url: check(desk, webhook_url).await? };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let made = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    made.answer(|()| changed())
}

/// Makes a new webhook secret. Both it and the one before sign for 24 hours.
#[utoipa::path(post, path = "/ops/api-keys/{id}/rotate-secret", operation_id = "rotate_webhook_secret",
    params(("id" = String, Path)), responses((status = 200, body = SecretResponse)))]
pub async fn rotate_secret(
    State(desk): State<Arc<Desk>>,
    Admin(operator): Admin,
    PathId(id): PathId,
    sent: KeyedBody,
) -> Result<Response, Problem> {
    parse_unread_exact(sent.bytes())?;
    let (id, group) = known(&desk, &id)?;
    let key = sent.key(&desk.engine, KeyScope::Operators, Some(&id.txid()))?;
    let (desk, operator) = (&desk, &operator);
    let execute = |admitted| async move {
        let webhook_secret = new_secret()?;
        let webhook_secret =
            desk.engine.keyring().seal_secret(SealedFor::webhook_secret(id), webhook_secret.as_bytes())?;
        let command = MerchantCommand::RotateWebhookSecret { id, webhook_secret };
        Ok(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let of = |record: &Record| {
        let (id, sealed) = ApiKey::secret_rotated_by(record)?;
        String::from_utf8(desk.engine.keyring().open_secret(SealedFor::webhook_secret(id), sealed)?).ok()
    };
    let rotated = key.run_recorded(LedgerId::Merchant(group), of, execute).await?;
    rotated.answer(|webhook_secret| Ok(ok(SecretResponse { webhook_secret })))
}

/// A key and its group.
fn known(desk: &Desk, id: &str) -> Result<(ObjectId, GroupNumber), Problem> {
    let id = ObjectId::parse(id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let row = desk.engine.api_key(id).ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok((id, row.group))
}
