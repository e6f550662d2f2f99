//! A form that an operator sent: its session, its fields, and the proof that a page of ours sent
//! it.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::{Extensions, Method};
use axum::response::{IntoResponse, Response};
use ledger::id::ObjectId;
use serde_json::Value;
use subtle::ConstantTimeEq;

use crate::page::{FORM_TOKEN, plain_refusal};
use crate::refused_form::SentForm;
use crate::{Console, Visit, Word, words};
use ops::{Desk, NeededRole, OperatorCall};
use web::body::{FileForm, InstitutionFile};
use web::server::OverTls;
use web::{Code, FormBody, KeyedBody, Language, PathId, Problem, Result, Role};

/// A form of a session. Its `Origin` is this listener, and it has the session's token.
pub(crate) struct PostedForm {
    /// State of the operators' handlers.
    pub desk: Arc<Desk>,
    /// The session.
    pub visit: Visit,
    /// The id in the path of the form; empty where that has none.
    pub id: String,
    /// The fields.
    pub form: FormBody,
}

impl PostedForm {
    /// Refuses an operator whose role is below the needed role, and what is outside of the scope.
    pub(crate) fn require(&self, needed: Role) -> Result<()> {
        self.visit.operator.require(needed)?;
        self.visit.sees(ObjectId::parse(&self.id).map(|id| self.desk.engine.ids().group(id)))
    }

    /// The request of a route of `/ops` for which the form stands.
    pub(crate) fn request(&self, path: &'static str, body: &Value) -> KeyedBody {
        KeyedBody::of_form(self.form.value("key"), path, body.to_string())
    }

    /// Calls a route of `/ops` about what the form's path names.
    pub(crate) async fn call<R: NeededRole, F: Future<Output = Result<Response>>>(
        &self,
        route: impl FnOnce(OperatorCall<R>) -> F,
        path: &'static str,
        body: Value,
    ) -> Result<Response> {
        self.require(R::ROLE)?;
        self.call_about(&self.id, route, path, body).await
    }

    /// Calls a route of `/ops` about what the form itself names.
    pub(crate) async fn call_about<R: NeededRole, F: Future<Output = Result<Response>>>(
        &self,
        id: &str,
        route: impl FnOnce(OperatorCall<R>) -> F,
        path: &'static str,
        body: Value,
    ) -> Result<Response> {
        route(OperatorCall::of_form(&self.desk, &self.visit.operator, id, self.request(path, &body))?).await
    }
}

impl FromRequest<Console> for PostedForm {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let id = PathId::from_request_parts(&mut parts, console).await.map(|PathId(id)| id).unwrap_or_default();
        let (visit, path, request) = visit_of(Request::from_parts(parts, body), console).await?;
        let form = FormBody::from_request(request, console).await.map_err(|problem| visit.answer(Err(problem)))?;
        Ok(Self { desk: Arc::clone(&console.desk), visit: of_session(visit, &path, &form)?, id, form })
    }
}

/// A form of a session with a file, checked as a [`PostedForm`] is.
pub(crate) struct PostedFile {
    /// The session.
    pub visit: Visit,
    /// The fields.
    pub form: FormBody,
    /// The file; empty where none was chosen.
    pub file: InstitutionFile,
}

impl FromRequest<Console> for PostedFile {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (visit, path, request) = visit_of(request, console).await?;
        let sent = FileForm::from_request(request, console).await.map_err(|problem| visit.answer(Err(problem)))?;
        let FileForm { fields: form, file } = sent;
        Ok(Self { visit: of_session(visit, &path, &form)?, form, file })
    }
}

/// The session of a form, which is sent from a page of ours, and the form's path.
async fn visit_of(request: Request, console: &Console) -> Result<(Visit, String, Request), Response> {
    let (mut parts, body) = request.into_parts();
    let visit = Visit::from_request_parts(&mut parts, console).await?;
    let path = parts.uri.path().to_owned();
    let here = from_here(&parts.headers, &parts.extensions);
    here.map_err(|why| visit.answer(Err(forged(visit.say(why)))))?;
    Ok((visit, path, Request::from_parts(parts, body)))
}

/// The visit of a form that has the session's token.
#[expect(clippy::result_large_err, reason = "it is what the extractors refuse with")]
fn of_session(visit: Visit, path: &str, form: &FormBody) -> Result<Visit, Response> {
    let sent = form.value(FORM_TOKEN).as_bytes();
    if !bool::from(sent.ct_eq(visit.form_token().as_bytes())) {
        return Err(visit.answer(Err(forged(visit.say(words::FORM_OF_NO_SESSION)))));
    }
    Ok(visit.of_form(SentForm::new(Method::POST, path, form.0.clone())))
}

/// A form that needs no session: the sign-in. Its `Origin` is this listener.
pub(crate) struct Anonymous(pub FormBody);

impl FromRequest<Console> for Anonymous {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let language = Language::preferred(request.headers());
        let refused = |problem: Problem| plain_refusal(language, &problem).into_response();
        let from_here = from_here(request.headers(), request.extensions());
        from_here.map_err(|why| refused(forged(why.text(language))))?;
        FormBody::from_request(request, console).await.map(Self).map_err(refused)
    }
}

/// Refuses a form that another site sent. Browsers name the sending site in `Origin`; its host must
/// be the one that is asked, and its scheme too, where that is known.
fn from_here(headers: &HeaderMap, extensions: &Extensions) -> Result<(), Word> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let sender = text(ORIGIN).and_then(|origin| origin.split_once("://"));
    let is_from_here = sender.is_some_and(|(scheme, host)| {
        Some(host) == text(HOST) && known_scheme(headers, extensions).is_none_or(|known| known == scheme)
    });
    if is_from_here && headers.get_all(ORIGIN).iter().count() == 1 {
        return Ok(());
    }
    Err(words::FORM_OF_ANOTHER_SITE)
}

/// The scheme by which a browser asked, where it is known: over TLS, or as a proxy says in
/// `X-Forwarded-Proto`. Plain HTTP may come from a proxy that speaks TLS and says nothing.
pub(crate) fn known_scheme<'a>(headers: &'a HeaderMap, extensions: &Extensions) -> Option<&'a str> {
    if extensions.get::<OverTls>().is_some() {
        return Some("https");
    }
    let said = headers.get(FORWARDED_SCHEME)?.to_str().ok()?;
    // The first proxy, which the browser spoke to, stands first.
    said.split(',').next().map(str::trim)
}

const FORWARDED_SCHEME: &str = "x-forwarded-proto";

fn forged(said: &'static str) -> Problem {
    Problem::new(Code::FormRefused).says(said)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_is_sent_from_the_host_and_by_the_scheme_of_its_page() {
        for (origin, over_tls, forwarded, is_from_here) in [
            ("http://ops.example", false, None, true),
            ("https://ops.example", false, None, true),
            ("http://ops.example", true, None, false),
            ("https://ops.example", true, None, true),
            ("http://ops.example", false, Some("https"), false),
            ("https://ops.example", false, Some("https, http"), true),
            ("https://ops.example", false, Some("http"), false),
            ("https://ops.example", true, Some("http"), true),
            ("https://ops.example:444", true, None, false),
            ("https://evil.example", true, None, false),
            ("ops.example", false, None, false),
            ("null", false, None, false),
        ] {
            let (mut headers, mut extensions) = (HeaderMap::new(), Extensions::new());
            headers.insert(HOST, HeaderValue::from_static("ops.example"));
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            forwarded.map(|scheme| headers.insert(FORWARDED_SCHEME, HeaderValue::from_static(scheme)));
            over_tls.then(|| extensions.insert(OverTls));
            assert_eq!(from_here(&headers, &extensions).is_ok(), is_from_here, "{origin} {over_tls} {forwarded:?}");
        }
    }
}
