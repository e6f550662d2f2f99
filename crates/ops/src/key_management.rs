//! API keys as operators and merchants manage them: the same checks, commands and answers. What a
//! merchant asks for by one of its keys is decided by its actor too: a key manages no key that may
//! do more than itself.

use actors::engine::{CommandContext, Engine};
use axum::response::Response;
use derived::seal::random_bytes;
use ledger::merchant::ApiKey;
use ledger::scope::Scope;
use ledger::{
    EventChoice, GroupNumber, LedgerId, MerchantCommand, ObjectId, Record, Scopes, SealedFor, WebhookEventKind,
};
use webhooks::{Refusal, Webhooks, new_secret};

use crate::Operator;
use crate::api_keys::{ApiKeyChange, ApiKeyRequest, ApiKeyResponse, ApiKeyView, RevokedResponse};
use web::api_key::ApiKeyText;
use web::idempotency::{CommandPermit, Key};
use web::json::ITSELF;
use web::{Caller, Checker, KeyedResult, Raw, Result, broken, created, decided, ok};

/// Who manages a key.
#[derive(Clone, Copy)]
pub enum Manager<'a> {
    /// An operator, who may make every key.
    Operator(&'a Operator),
    /// A merchant, by one of its keys.
    Merchant(Caller),
}

/// Management of API keys.
#[derive(Clone, Copy)]
pub struct KeyManagement<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// Checks the addresses.
    pub webhooks: &'a Webhooks,
    /// True if money is fake: the text of a key says so.
    pub sandbox: bool,
    /// Who manages.
    pub manager: Manager<'a>,
}

impl Manager<'_> {
    fn context(self, admitted: CommandPermit) -> CommandContext {
        match self {
            Self::Operator(operator) => operator.context(admitted),
            Self::Merchant(caller) => caller.context(admitted),
        }
    }

    /// The command, as the manager may give it. Error: 500 for a merchant without a key.
    fn asks(self, command: MerchantCommand) -> Result<MerchantCommand> {
        match self {
            Self::Operator(_) => Ok(command),
            Self::Merchant(caller) => {
                let command = Box::new(command);
                Ok(MerchantCommand::ManageKeys { by: caller.key.ok_or_else(broken)?, command })
            }
        }
    }

    /// Scopes of a new key for which none were asked.
    fn scopes(self) -> Scopes {
        match self {
            Self::Operator(_) => Scopes::ALL,
            Self::Merchant(caller) => caller.scopes,
        }
    }
}

impl KeyManagement<'_> {
    /// Makes a key. A replay names the key without its text, which is not stored.
    pub async fn create(self, group: GroupNumber, wire: &ApiKeyRequest<'_>, key: &Key<'_>) -> Result<Response> {
        let Self { engine, sandbox, manager, .. } = self;
        let execute = |admitted| async move {
            let (webhook_url, scopes, events) = self.check_new(wire).await?;
            let id = engine.new_id(group)?;
            let text = ApiKeyText::of(sandbox, id, random_bytes()?);
            let secret = new_secret()?;
            let command = manager.asks(MerchantCommand::CreateApiKey {
                id,
                digest: ApiKeyText::digest(&text),
                webhook_url,
                webhook_secret: engine.keyring().seal_secret(SealedFor::webhook_secret(id), secret.as_bytes())?,
                scopes,
                events,
            })?;
            let made = engine.command(group, command, manager.context(admitted)).await?;
            Ok(made.typed(|record| Some((ApiKey::created_by(record)?, Some((text, secret)))))?)
        };
        let of = |record: &Record| Some((ApiKey::created_by(record)?, None));
        let made = key.run_typed(LedgerId::Merchant(group), of, execute).await?;
        made.answer(|((id, scopes), texts)| {
            let (api_key, webhook_secret) = texts.unzip();
            let (id, scopes) = (id.uuid().to_string(), scopes.names());
            Ok(created(ApiKeyResponse { id, api_key, webhook_secret, scopes }))
        })
    }

    /// Revokes a key.
    pub async fn revoke(self, (group, id): (GroupNumber, ObjectId), key: &Key<'_>) -> Result<Response> {
        let Self { engine, manager, .. } = self;
        let execute = |admitted| async move {
            let command = manager.asks(MerchantCommand::RevokeApiKey { id })?;
            decided(engine.command(group, command, manager.context(admitted)).await?)
        };
        let revoked = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
        revoked.answer(|()| Ok(ok(RevokedResponse { id: id.uuid().to_string(), revoked: true })))
    }

    /// Changes a key.
    pub async fn change(
        self,
        (group, id): (GroupNumber, ObjectId),
        wire: &ApiKeyChange<'_>,
        key: &Key<'_>,
    ) -> Result<Response> {
        let Self { engine, manager, .. } = self;
        let changed = || {
            let row = engine.known_api_key(id)?;
            let (webhook_url, events) = (row.webhook.url, row.webhook.events.names());
            Ok(ok(ApiKeyView { id: id.uuid().to_string(), webhook_url, events }))
        };
        if wire.webhook_url.is_none() && wire.events.is_none() {
            return changed();
        }
        let execute = |admitted| async move {
            let mut check = Checker::new();
            let events = wire.events.and_then(|raw| read_events(&mut check, raw));
            let webhook_url = match wire.webhook_url {
                Some(raw) => Some(self.check_address(&mut check, raw).await),
                None => None,
            };
            check.finish()?;
            let command = manager.asks(MerchantCommand::ChangeApiKey { id, webhook_url, events })?;
            decided(engine.command(group, command, manager.context(admitted)).await?)
        };
        let made = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
        made.answer(|()| changed())
    }

    /// Makes a new webhook secret of a key. Both it and the one before sign for 24 hours. A replay
    /// shows it to operators alone: what a merchant's key may see of another one, its actor
    /// decides, which a replay does not ask.
    pub async fn rotate_secret(
        self,
        (group, id): (GroupNumber, ObjectId),
        key: &Key<'_>,
    ) -> Result<KeyedResult<Option<String>>> {
        let Self { engine, manager, .. } = self;
        let execute = |admitted| async move {
            let secret = new_secret()?;
            let webhook_secret = engine.keyring().seal_secret(SealedFor::webhook_secret(id), secret.as_bytes())?;
            let command = manager.asks(MerchantCommand::RotateWebhookSecret { id, webhook_secret })?;
            let rotated = engine.command(group, command, manager.context(admitted)).await?;
            Ok(rotated.typed(|_| Some(Some(secret)))?)
        };
        let of = |record: &Record| {
            let (id, sealed) = ApiKey::secret_rotated_by(record)?;
            let Manager::Operator(_) = manager else { return Some(None) };
            Some(String::from_utf8(engine.keyring().open_secret(SealedFor::webhook_secret(id), sealed)?).ok())
        };
        key.run_typed(LedgerId::Merchant(group), of, execute).await
    }

    async fn check_new(self, wire: &ApiKeyRequest<'_>) -> Result<(Option<String>, Scopes, EventChoice)> {
        let mut check = Checker::new();
        let scopes = check.given_or(self.manager.scopes(), wire.scopes, read_scopes);
        let events = read_events(&mut check, wire.events);
        let webhook_url = self.check_address(&mut check, wire.webhook_url).await;
        check.finish_with(scopes.zip(events).map(|(scopes, events)| (webhook_url, scopes, events)))
    }

    async fn check_address(self, check: &mut Checker, webhook_url: Raw<'_>) -> Option<String> {
        let webhook_url = check.optional_text("webhook_url", webhook_url, 1..=2_048)?.into_owned();
        if let Err(refusal) = self.webhooks.check(&webhook_url).await {
            let (code, message) = match refusal {
                Refusal::NotPublic => ("not_public", "webhook_url deve apontar para um endereço público"),
                Refusal::NamesAUser => ("credentials", "webhook_url não pode ter usuário nem senha"),
                _ => {
                    ("invalid_url", "webhook_url deve ser uma URL https; http, só para redes em CENTAVO_WEBHOOK_ALLOW")
                }
            };
            check.refuse::<()>("webhook_url", code, message);
        }
        Some(webhook_url)
    }
}

fn read_scopes(check: &mut Checker, raw: Raw<'_>) -> Option<Scopes> {
    let scopes = check.array("scopes", raw, 1..=4, |check, raw| {
        let name = check.any_text(ITSELF, raw)?;
        let unknown = "deve ser charges, payouts, recipients ou read";
        Scope::named(&name).or_else(|| check.refuse(ITSELF, "unknown_value", unknown))
    });
    Some(scopes?.into_iter().collect())
}

/// All events where none are named.
fn read_events(check: &mut Checker, raw: Raw<'_>) -> Option<EventChoice> {
    let Some(raw) = raw else { return Some(EventChoice::ALL) };
    let kinds = check.array("events", Some(raw), 1..=64, |check, raw| {
        let name = check.any_text(ITSELF, raw)?;
        let unknown = "deve ser o nome de um evento, como charge.paid";
        WebhookEventKind::named(&name).or_else(|| check.refuse(ITSELF, "unknown_value", unknown))
    });
    Some(kinds?.into_iter().collect())
}
