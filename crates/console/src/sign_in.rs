//! Sign-in with an operator's token, and sign-out.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderMap, ORIGIN, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::form::{HOME, inside};
use crate::page::{asked_language, other, plain_page, plain_refusal};
use crate::sent_form::{Anonymous, known_scheme};
use crate::{Console, PostedForm, Word, words};
use axum::extract::FromRequest;
use web::guards::wrong_credentials::CredentialKind;
use web::server::Peer;
use web::session::COOKIE_NAME;
use web::{Language, query, single};

/// The form of the sign-in.
pub(crate) async fn form(parts: Parts) -> Response {
    let language = asked_language(&parts).unwrap_or_else(|| Language::preferred(&parts.headers));
    let pairs = query(&parts).unwrap_or_default();
    let next = single(&pairs, "next").ok().flatten().map(inside).unwrap_or(HOME);
    let warning = (!keeps_cookie(&parts.headers, &parts.extensions)).then_some(words::NEEDS_HTTPS);
    page(language, StatusCode::OK, next, warning)
}

/// Opens a session for a right token.
pub(crate) async fn sign_in(State(console): State<Console>, request: Request) -> Response {
    let desk = &console.desk;
    let (headers, extensions) = (request.headers().clone(), request.extensions().clone());
    let Anonymous(form) = match Anonymous::from_request(request, &console).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let chosen = Language::tagged(form.value("lang"));
    let language = chosen.unwrap_or_else(|| Language::preferred(&headers));
    let next = inside(form.value("next"));
    if !keeps_cookie(&headers, &extensions) {
        return page(language, StatusCode::BAD_REQUEST, next, Some(words::NEEDS_HTTPS));
    }
    let peer = extensions.get::<Peer>().copied();
    if let Err(seconds) = console.sessions.try_token(peer, Instant::now()) {
        let later = page(language, StatusCode::TOO_MANY_REQUESTS, next, Some(words::TOKEN_LATER));
        return ([(RETRY_AFTER, seconds.to_string())], later).into_response();
    }
    let opened_by = desk.ops_tokens.read().opened_by(form.value("token"));
    let Some(opened_by) = opened_by else {
        let _counted = desk.wrong_credentials.note(CredentialKind::OperatorToken, &headers, &extensions, None);
        return page(language, StatusCode::UNAUTHORIZED, next, Some(words::TOKEN_WRONG));
    };
    console.sessions.was_right(peer);
    tracing::info!(operator = opened_by.name, "an operator signed in to the console");
    match console.sessions.begin(opened_by, chosen, Instant::now()) {
        Ok(secret) => (AppendHeaders([(SET_COOKIE, cookie(&secret))]), Redirect::to(next)).into_response(),
        Err(problem) => plain_refusal(language, &problem),
    }
}

/// Ends the session.
pub(crate) async fn sign_out(State(console): State<Console>, PostedForm { visit, .. }: PostedForm) -> Response {
    console.sessions.end(&visit.secret);
    let gone = format!("{}; Max-Age=0", cookie(""));
    (AppendHeaders([(SET_COOKIE, gone)]), Redirect::to("/console/sign-in")).into_response()
}

fn cookie(secret: &str) -> String {
    format!("{COOKIE_NAME}={secret}; Secure; HttpOnly; SameSite=Strict; Path=/")
}

/// Whether the browser keeps a `Secure` cookie: over https, or from this very machine. A form says
/// in its `Origin` whether its page came over https. Where nothing says so it does not, since a
/// token would be sent in clear.
fn keeps_cookie(headers: &HeaderMap, extensions: &Extensions) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = text(HOST);
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&name) || name.ends_with(".localhost");
    let of_page = text(ORIGIN).split_once("://").map(|(scheme, _)| scheme);
    is_here || of_page.or(known_scheme(headers, extensions)) == Some("https")
}

fn page(language: Language, status: StatusCode, next: &str, warning: Option<Word>) -> Response {
    plain_page(language, status, words::SIGN_IN.text(language), fields(language, next, warning))
}

fn fields(language: Language, next: &str, warning: Option<Word>) -> Markup {
    let say = |word: Word| word.text(language);
    let elsewhere = other(language).tag();
    let encoded: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    html! {
        @if let Some(warning) = warning {
            p.warning role="alert" id="warning" { (say(warning)) }
        }
        form.card method="post" action="/console/sign-in" {
            input type="hidden" name="next" value=(next);
            input type="hidden" name="lang" value=(language.tag());
            // A name for password managers; the token alone says who signs in.
            input.unseen type="text" name="username" value="operator" autocomplete="username" tabindex="-1" aria-hidden="true" readonly;
            label for="token" { (say(words::TOKEN)) }
            input id="token" type="password" name="token" required autocomplete="current-password" maxlength="500"
                autofocus aria-describedby=[warning.map(|_| "warning")];
            p.dim { (say(words::ENDED_OR_NEW)) }
            button.primary type="submit" { (say(words::SIGN_IN)) }
        }
        p { a href={"/console/sign-in?lang=" (elsewhere) "&next=" (encoded)} lang=(elsewhere) hreflang=(elsewhere) { (say(words::OTHER_LANGUAGE)) } }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use web::server::OverTls;

    #[test]
    fn the_sign_in_leads_to_the_console_only() {
        for (next, is_inside) in [
            ("/console", true),
            ("/console?lang=en", true),
            ("/console/charges/1?x=y", true),
            ("//evil.example/console/", false),
            ("/consoles", false),
            ("https://evil.example/console", false),
            ("/console/\\evil", false),
            ("/console/\r\nSet-Cookie: x", false),
            ("", false),
        ] {
            assert_eq!(inside(next) == next, is_inside, "{next}");
        }
    }

    #[test]
    fn a_browser_keeps_the_cookie_over_https_or_on_this_machine() {
        for (host, origin, over_tls, forwarded, keeps) in [
            ("127.0.0.1:8081", Some("http://127.0.0.1:8081"), false, None, true),
            ("localhost:8081", None, false, None, true),
            ("[::1]:8081", Some("http://[::1]:8081"), false, None, true),
            ("ops.example:8081", Some("http://ops.example:8081"), false, None, false),
            ("127.0.0.1.example", Some("http://127.0.0.1.example"), false, None, false),
            ("ops.example", Some("https://ops.example"), false, None, true),
            ("ops.example", None, false, None, false),
            ("ops.example", None, true, None, true),
            ("ops.example", None, false, Some("https"), true),
            ("ops.example", None, false, Some("http"), false),
            ("ops.example", Some("http://ops.example"), false, Some("https"), false),
        ] {
            let (mut headers, mut extensions) = (HeaderMap::new(), Extensions::new());
            headers.insert(HOST, HeaderValue::from_static(host));
            origin.map(|origin| headers.insert(ORIGIN, HeaderValue::from_static(origin)));
            forwarded.map(|scheme| headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme)));
            over_tls.then(|| extensions.insert(OverTls));
            assert_eq!(keeps_cookie(&headers, &extensions), keeps, "{host} {origin:?} {over_tls} {forwarded:?}");
        }
    }
}
