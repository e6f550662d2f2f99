//! Authenticate of a request to the merchants' routes: its API key first (401), then its rate limit
//! (429), then the scope of its key (403).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use ledger::id::ObjectId;
use subtle::ConstantTimeEq;
use tower::{Layer, Service};

use crate::api::App;
use crate::api::scopes;
use web::api_key::ApiKeyText;
use web::credential::api_key;
use web::guards::rate_limit::Policy;
use web::guards::wrong_credentials::{CredentialKind, WrongCredentialAnswer};
use web::{Caller, Code, Problem, Result};

/// The caller, and the id of the API key.
pub fn authenticated(app: &App, headers: &HeaderMap) -> Result<(Caller, ObjectId)> {
    let text = api_key(headers)?;
    let id = ApiKeyText::id(app.sandbox, text).ok_or_else(|| Problem::new(Code::Unauthorized))?;
    let row = app.engine.api_key(id);
    let row = row.filter(|row| bool::from(row.digest.ct_eq(&ApiKeyText::digest(text))) && !row.revoked);
    let row = row.ok_or_else(|| Problem::new(Code::Unauthorized))?;
    Ok((Caller { group: row.group, key: Some(id), scopes: row.scopes }, id))
}

/// Notes a request without a valid API key. Of the key, the log has at most the begin of its id,
/// which is its time.
pub fn wrong_credential(app: &App, headers: &HeaderMap, extensions: &Extensions) -> WrongCredentialAnswer {
    let text = api_key(headers).ok();
    let id = text.and_then(|text| text.strip_prefix(ApiKeyText::prefix(app.sandbox))?.get(..8));
    let id = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    app.wrong_credentials.note(CredentialKind::ApiKey, headers, extensions, id)
}

/// The layer that lets a request through to its handler when its API key is live, has not asked
/// too often and has the scope of the route: 401 comes before 429, that before 403, and all before
/// anything else is looked at. Says on every answer how often the key may still ask.
#[derive(Clone)]
pub struct Authenticate {
    /// Knows the keys.
    pub app: Arc<App>,
    /// Rate limit of the routes behind it.
    pub policy: Policy,
}

/// A service behind an [`Authenticate`].
#[derive(Clone)]
pub struct Authenticating<S> {
    authenticate: Authenticate,
    inner: S,
}

impl<S> Layer<S> for Authenticate {
    type Service = Authenticating<S>;

    fn layer(&self, inner: S) -> Authenticating<S> {
        Authenticating { authenticate: self.clone(), inner }
    }
}

impl<S> Service<Request> for Authenticating<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let Authenticate { app, policy } = &self.authenticate;
        let policy = *policy;
        let (caller, key) = match authenticated(app, request.headers()) {
            Ok(known) => known,
            Err(unauthorized) => {
                let answered = wrong_credential(app, request.headers(), request.extensions());
                return Box::pin(async move { Ok(answered.problem(unauthorized).await.into_response()) });
            }
        };
        app.last_uses.note(key, app.engine.now());
        request.extensions_mut().insert(caller);
        let standing = app.rate_limits.as_ref().map(|limits| {
            let account = app.engine.merchant(caller.group, |row| row.settings).unwrap_or_default();
            limits.admit(policy, key, &account)
        });
        let allowed = match &standing {
            Some((false, standing)) => Err(standing.refusal()),
            _ => scopes::require(caller.scopes, &request),
        };
        let handled = allowed.map(|()| self.inner.call(request));
        Box::pin(async move {
            let mut response = match handled {
                Ok(handling) => handling.await?,
                Err(refusal) => refusal.into_response(),
            };
            if let Some((_, standing)) = standing {
                standing.add_to(policy, response.headers_mut());
            }
            Ok(response)
        })
    }
}
