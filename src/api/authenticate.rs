//! Authentication of a request to the merchants' routes: its API key first (401), then its rate
//! limit (429), then the scope of its key (403).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ledger::id::ObjectId;
use subtle::ConstantTimeEq;

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

/// Lets a request through to its handler when its API key is live, has not asked too often and has
/// the scope of the route: 401 comes before 429, that before 403, and all before anything else is
/// looked at. Says on every answer how often the key may still ask.
pub async fn authenticate(
    State((app, policy)): State<(Arc<App>, Policy)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (caller, key) = match authenticated(&app, request.headers()) {
        Ok(known) => known,
        Err(unauthorized) => {
            let answered = wrong_credential(&app, request.headers(), request.extensions());
            return answered.problem(unauthorized).await.into_response();
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
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    if let Some((_, standing)) = standing {
        standing.add_to(policy, response.headers_mut());
    }
    response
}
