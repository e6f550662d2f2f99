//! The token of a client: fetched once for all calls that need it, and reused until half a
//! minute before its end.

use std::time::{Duration, Instant};

use actors::rails::RailError;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use crate::client::values::whole;
use crate::client::{Answer, Body, Credentials, Outgoing, send};

use super::dialects::Login;
use super::settings::Institution;

/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a login may take: shorter than a call's patience, so that its failure is known as one.
const LOGIN_MAX: Duration = Duration::from_secs(8);
/// Longer than any token lives.
const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A token, as the header `Authorization` shows it.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) header: HeaderValue,
    /// When it was asked for.
    asked_at: Instant,
    /// How long it lives from then on.
    life: Duration,
}

impl Token {
    /// Whether a call may use it that began at `since`. A token that lives for less than the margin
    /// serves those who waited for it.
    fn serves(&self, since: Instant) -> bool {
        let age = self.asked_at.elapsed();
        age < self.life.saturating_sub(MARGIN) || (self.asked_at >= since && age < self.life)
    }
}

/// The token of an institution.
#[derive(Default)]
pub(super) struct Tokens(Mutex<TokenState>);

#[derive(Default)]
struct TokenState {
    token: Option<Token>,
    /// When a login failed last.
    failed_at: Option<Instant>,
}

impl Tokens {
    /// The token; asks for one where there is none. A login that fails is [`RailError::NotSent`],
    /// for all that waited for it.
    pub(super) async fn get(&self, institution: &Institution, with: &Credentials) -> Result<Token, RailError> {
        let since = Instant::now();
        let mut state = self.0.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| token.serves(since)) {
            return Ok(token.clone());
        }
        state.token = None;
        if state.failed_at.is_some_and(|failed_at| failed_at >= since) {
            return Err(RailError::NotSent);
        }
        let asked_at = Instant::now();
        match log_in(institution, with, asked_at).await {
            Ok(token) => {
                state.token = Some(token.clone());
                Ok(token)
            }
            Err(error) => {
                state.failed_at = Some(Instant::now());
                tracing::warn!(host = %institution.token.host, %error, "an institution gives no token");
                Err(RailError::NotSent)
            }
        }
    }

    /// Forgets a refused token. A newer one stays.
    pub(super) async fn forget(&self, refused: &Token) {
        let mut state = self.0.lock().await;
        if state.token.as_ref().is_some_and(|token| token.asked_at <= refused.asked_at) {
            state.token = None;
        }
    }

    /// Forgets the token: the credentials are others.
    pub(super) async fn clear(&self) {
        self.0.lock().await.token = None;
    }
}

async fn log_in(institution: &Institution, with: &Credentials, asked_at: Instant) -> Result<Token, String> {
    let request = login_request(institution, with)?;
    let answer = send(&institution.token, &with.tls, request, LOGIN_MAX).await.map_err(|error| error.to_string())?;
    read_token(&answer, asked_at)
}

/// The request for a token, in the dialect's way.
fn login_request(institution: &Institution, with: &Credentials) -> Result<Outgoing, String> {
    let secret = with.secret.as_ref().map(|secret| secret.as_str()).unwrap_or_default();
    let id = institution.client_id.as_str();
    let mut headers = HeaderMap::new();
    if matches!(institution.login, Login::Basic | Login::Json) {
        let pair = Zeroizing::new(format!("{id}:{secret}"));
        let basic = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
        let mut value = HeaderValue::try_from(basic.as_str()).map_err(|_| "its secret fits no header")?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut fields = vec![("grant_type", "client_credentials")];
    match institution.login {
        Login::Certificate => fields.push(("client_id", id)),
        Login::Form => fields.extend([("client_id", id), ("client_secret", secret)]),
        Login::Basic | Login::Json => {}
    }
    fields.extend(institution.scope.as_deref().map(|scope| ("scope", scope)));
    let body = if institution.login == Login::Json {
        let fields: serde_json::Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        Body { media_type: "application/json", bytes: Bytes::from(Value::from(fields).to_string()) }
    } else {
        let form = Serializer::new(String::new()).extend_pairs(fields).finish();
        Body { media_type: "application/x-www-form-urlencoded", bytes: Bytes::from(form) }
    };
    Ok(Outgoing { method: Method::POST, path: institution.token.path.clone(), headers, body: Some(body) })
}

fn read_token(answer: &Answer, asked_at: Instant) -> Result<Token, String> {
    if !matches!(answer.status.as_u16(), 200 | 201) {
        return Err(format!("it answers {}", answer.status.as_u16()));
    }
    let body: Value = answer.read()?;
    let text = body["access_token"].as_str().filter(|text| !text.is_empty()).ok_or("it gives no access_token")?;
    let is_bearer = body["token_type"].as_str().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        return Err("its token_type is not Bearer".to_owned());
    }
    let mut header = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| "its token fits no header")?;
    header.set_sensitive(true);
    // Without an end it serves the calls that waited for it.
    let life = whole(&body["expires_in"]).map_or(MARGIN, Duration::from_secs).min(LIFE_MAX);
    Ok(Token { header, asked_at, life })
}
