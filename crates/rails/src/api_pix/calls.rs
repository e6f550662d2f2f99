//! Calls to an institution with its token: queries, which may be repeated, and orders, which are
//! sent once.

use std::sync::Arc;

use actors::rails::RailError;
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::header::AUTHORIZATION;
use hyper::{Method, StatusCode};
use parking_lot::RwLock;
use serde_json::Value;

use crate::client::{ANSWER_MAX, Answer, Body, Credentials, Outgoing, Word, send};

use super::settings::Institution;
use super::token::Tokens;

/// The institution, with what is shown to it.
pub(super) struct Calls {
    pub(super) institution: Institution,
    credentials: RwLock<Arc<Credentials>>,
    tokens: Tokens,
}

/// What the institution has under an id of ours.
pub(super) enum Found {
    /// Its answer, with status 200.
    It(Answer),
    /// It says itself that it has none.
    None,
}

impl Calls {
    pub(super) fn new(institution: Institution, credentials: Credentials) -> Self {
        Self { institution, credentials: RwLock::new(Arc::new(credentials)), tokens: Tokens::default() }
    }

    pub(super) fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.credentials.read())
    }

    /// Shows others from now on, and asks for a new token with them.
    pub(super) async fn exchange_credentials(&self, credentials: Credentials) {
        *self.credentials.write() = Arc::new(credentials);
        self.tokens.clear().await;
    }

    /// Sends an order once. A token that it refuses is forgotten; the order is not sent again.
    /// [`RailError::NotSent`] also where no token is given.
    pub(super) async fn order(&self, method: Method, path: &str, body: &Value) -> Result<Answer, RailError> {
        self.call(method, path, &[], Some(body)).await
    }

    /// Asks; a second time with a new token where the first one is refused.
    pub(super) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, RailError> {
        let answer = self.call(Method::GET, path, query, None).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        self.call(Method::GET, path, query, None).await
    }

    /// What it has under an id of ours. `none` are the answers for nothing; all others but 200 are
    /// no answer.
    pub(super) async fn find(&self, path: &str, none: &[Word]) -> Result<Found, RailError> {
        let answer = self.get(path, &[]).await?;
        if answer.status == StatusCode::OK {
            return Ok(Found::It(answer));
        }
        if answer.says(none) {
            return Ok(Found::None);
        }
        self.complain(path, &format!("its answer {} is none that is known", answer.status.as_u16()));
        Err(RailError::NoAnswer)
    }

    /// Logs why an answer is not believed.
    pub(super) fn complain(&self, path: &str, defect: &str) {
        tracing::warn!(host = %self.institution.api.host, path, defect, "an institution's answer is not believed");
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<Answer, RailError> {
        let credentials = self.credentials();
        let token = self.tokens.get(&self.institution, &credentials).await?;
        let mut headers = self.institution.headers.clone();
        headers.insert(AUTHORIZATION, token.header.clone());
        let body = body.map(|body| Body { media_type: "application/json", bytes: Bytes::from(body.to_string()) });
        let request = Outgoing { method, path: self.path(path, query), headers, body };
        let answer = send(&self.institution.api, &credentials.tls, request, ANSWER_MAX).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            self.tokens.forget(&token).await;
        }
        Ok(answer)
    }

    fn path(&self, path: &str, query: &[(&str, String)]) -> String {
        let own = self.institution.query.iter().map(|(name, value)| (name.as_str(), value));
        let query = query.iter().map(|(name, value)| (*name, value)).chain(own);
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{query}", self.institution.api.path)
    }
}
