//! Calls to an institution with its token: queries, which may be repeated, and orders, which are
//! sent once.

use std::sync::Arc;

use actors::rails::{RailError, RailResult};
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::header::AUTHORIZATION;
use hyper::{Method, StatusCode};
use parking_lot::RwLock;
use serde_json::Value;

use crate::client::{ANSWER_MAX, Answer, Body, Credentials, Outgoing, SettingsError, Word, send};

use super::settings::{ApiPixSettings, Institution};
use super::token::Tokens;

/// The institution, with what is shown to it.
pub(crate) struct Calls {
    pub(super) institution: Institution,
    credentials: RwLock<Arc<Credentials>>,
    tokens: Tokens,
}

/// What the institution has under an id of ours.
pub(crate) enum Lookup {
    /// Its answer, with status 200.
    It(Answer),
    /// It says itself that it has none.
    None,
}

impl Calls {
    /// Checks the settings and reads their files. Nothing is sent.
    pub(crate) fn open(settings: &ApiPixSettings) -> Result<Self, SettingsError> {
        let credentials = RwLock::new(Arc::new(Credentials::read(&settings.credential_files())?));
        Ok(Self { institution: Institution::of(settings)?, credentials, tokens: Tokens::default() })
    }

    /// Reads certificate and secret again, for calls from now on, which ask for a new token. When
    /// that fails, the present ones stay.
    pub(crate) async fn reload(&self, settings: &ApiPixSettings) -> Result<(), SettingsError> {
        *self.credentials.write() = Arc::new(Credentials::read(&settings.credential_files())?);
        self.tokens.clear().await;
        Ok(())
    }

    /// End of the client certificate's validity, seconds since 1970; none without a certificate.
    pub(crate) fn certificate_expires_at(&self) -> Option<i64> {
        self.credentials.read().certificate_expires_at
    }

    /// Our PIX key at the institution.
    pub(crate) fn key(&self) -> &str {
        &self.institution.key
    }

    /// Sends an order once. A token that it refuses is forgotten; the order is not sent again.
    /// [`RailError::NotSent`] also where no token is given.
    pub(crate) async fn order(&self, method: Method, path: &str, body: &Value) -> RailResult<Answer> {
        self.call(method, path, &[], Some(body)).await
    }

    /// The same; `None` where it has left and there is no answer.
    pub(crate) async fn order_once(&self, method: Method, path: &str, body: &Value) -> RailResult<Option<Answer>> {
        match self.order(method, path, body).await {
            Err(RailError::NotSent) => Err(RailError::NotSent),
            answer => Ok(answer.ok()),
        }
    }

    /// Asks; a second time with a new token where the first one is refused.
    pub(super) async fn get(&self, path: &str, query: &[(&str, String)]) -> RailResult<Answer> {
        let answer = self.call(Method::GET, path, query, None).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        self.call(Method::GET, path, query, None).await
    }

    /// What it has under an id of ours. `none` are the answers for nothing; all others but 200 are
    /// no answer.
    pub(crate) async fn find(&self, path: &str, none: &[Word]) -> RailResult<Lookup> {
        let answer = self.get(path, &[]).await?;
        if answer.status == StatusCode::OK {
            return Ok(Lookup::It(answer));
        }
        if answer.says(none) {
            return Ok(Lookup::None);
        }
        self.complain(path, &format!("its answer {} is none that is known", answer.status.as_u16()));
        Err(RailError::NoAnswer)
    }

    /// Logs why an answer is not believed.
    pub(crate) fn complain(&self, path: &str, defect: &str) {
        tracing::warn!(host = %self.institution.api.host, path, defect, "an institution's answer is not believed");
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> RailResult<Answer> {
        let credentials = Arc::clone(&self.credentials.read());
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
