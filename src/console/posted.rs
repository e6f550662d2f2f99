//! A form that an operator sent: its session, its fields, and the proof that a page of ours sent
//! it.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::app::App;
use crate::console::page::{FORM_TOKEN, Visit, plain_refusal};
use crate::http::body::FormBody;
use crate::http::problem::{Code, Problem};

/// A form of a session. Its `Origin` is this listener, and it has the session's token.
pub struct Posted {
    /// The session.
    pub visit: Visit,
    /// The fields.
    pub form: FormBody,
}

impl FromRequest<Arc<App>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, app).await?;
        let refused = |problem| visit.answer(Err(problem));
        from_here(&parts.headers).map_err(refused)?;
        let form = FormBody::from_request(Request::from_parts(parts, body), app).await.map_err(refused)?;
        let sent = form.value(FORM_TOKEN).as_bytes();
        if !bool::from(sent.ct_eq(visit.form_token().as_bytes())) {
            return Err(refused(forged("The form has no token of this session.")));
        }
        Ok(Self { visit, form })
    }
}

/// A form that needs no session: the sign-in. Its `Origin` is this listener.
pub struct Anonymous(pub FormBody);

impl FromRequest<Arc<App>> for Anonymous {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let refused = |problem: Problem| plain_refusal(&problem).into_response();
        from_here(request.headers()).map_err(refused)?;
        FormBody::from_request(request, app).await.map(Self).map_err(refused)
    }
}

/// Refuses a form that another site sent. Browsers name the sending site in `Origin`; its host must
/// be the one that is asked.
fn from_here(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |value: Option<&axum::http::HeaderValue>| value.and_then(|value| value.to_str().ok().map(str::to_owned));
    let (origin, host) = (text(headers.get(ORIGIN)), text(headers.get(HOST)));
    let sender = origin.as_deref().and_then(|origin| origin.split_once("://")).map(|(_, host)| host.to_owned());
    if sender.is_some() && sender == host && headers.get_all(ORIGIN).iter().count() == 1 {
        return Ok(());
    }
    Err(forged("The form was not sent by a page of this console (Origin)."))
}

fn forged(detail: &'static str) -> Problem {
    Problem::new(Code::FormRefused).detail(detail)
}
