//! API keys: create and revoke. A key is shown once and kept as a digest.

use std::sync::Arc;

use actors::seal::random_bytes;
use axum::extract::State;
use axum::response::Response;
use ledger::id::ObjectId;
use ledger::merchant::MerchantCommand;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::merchants::find;
use crate::http::app::{ApiKeyText, App, Operator, PathId, settled};
use crate::http::body::JsonBody;
use crate::http::json::{Checker, Raw, parse};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{created, ok};

/// A new key, as asked for. The body may be left out.
#[derive(Deserialize, ToSchema)]
pub struct ApiKeyRequest<'a> {
    /// Where webhooks go.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    webhook_url: Raw<'a>,
}

/// A new key; the only time that its text and its secret are shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiKeyResponse {
    /// The key's id.
    id: String,
    /// The key.
    api_key: String,
    /// Signs the webhooks.
    webhook_secret: String,
}

/// A revoked key.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedResponse {
    /// The key's id.
    id: String,
    /// True.
    revoked: bool,
}

/// Makes a key. It has no idempotent replay, since what it answers is kept nowhere; a key that was lost on the way is revoked.
#[utoipa::path(post, path = "/ops/merchants/{id}/api-keys", params(("id" = String, Path)), request_body = ApiKeyRequest,
    responses((status = 201, body = ApiKeyResponse), (status = 404)))]
pub async fn create(
    State(app): State<Arc<App>>,
    Operator(operator): Operator,
    PathId(id): PathId,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: ApiKeyRequest<'_> = parse(if body.is_empty() { b"{}" } else { &body })?;
    let group = find(&app, &id)?;
    let permit = app.engine.permit(body.len())?;
    let mut check = Checker::new();
    let webhook_url = check.optional_text("webhook_url", wire.webhook_url, 1..=2_048);
    if webhook_url.as_deref().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
        check.refuse::<()>("webhook_url", "invalid_url", "webhook_url deve ser uma URL https");
    }
    check.finish()?;
    let id = app.new_id(group)?;
    let text = ApiKeyText::of(app.sandbox, id, random_bytes()?);
    let secret: String = random_bytes::<24>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = format!("whsec_{secret}");
    let command = MerchantCommand::CreateApiKey {
        id,
        digest: ApiKeyText::digest(&text),
        webhook_url: webhook_url.map(std::borrow::Cow::into_owned),
        webhook_secret: app.engine.keyring().seal_secret(secret.as_bytes())?,
    };
    settled(app.engine.command(group, command, None, Some(operator), permit).await?)?;
    Ok(created(ApiKeyResponse { id: id.uuid().to_string(), api_key: text, webhook_secret: secret }))
}

/// Revokes a key, at once.
#[utoipa::path(delete, path = "/ops/api-keys/{id}", params(("id" = String, Path)),
    responses((status = 200, body = RevokedResponse), (status = 404)))]
pub async fn revoke(
    State(app): State<Arc<App>>,
    Operator(operator): Operator,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = ObjectId::parse(&id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let row = app.engine.projector().api_key(id).ok_or_else(|| Problem::new(Code::NotFound))?;
    let permit = app.engine.permit(0)?;
    let command = MerchantCommand::RevokeApiKey { id };
    settled(app.engine.command(row.group, command, None, Some(operator), permit).await?)?;
    Ok(ok(RevokedResponse { id: id.uuid().to_string(), revoked: true }))
}
