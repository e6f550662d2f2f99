//! Slow pages: a page that is not there within 300 ms, because it reads closed segments of the
//! journal or books of the past, tells that it reads, and follows by itself.
//!
//! The `Refresh` header asks the browser to look again, with JavaScript and without. A page tells
//! how far the books of the past are read while it waits for them, and so does a proof of the
//! chain.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};

use crate::app::App;
use crate::console::page::{Screen, Section, Visit};
use crate::console::show;
use crate::console::table::CSV;
use crate::console::words::{self, Word};
use crate::http::language::Language;
use crate::http::reply::query;
use crate::http::session::{digest, secret_of};
use crate::http::slow_pages::{PageKey, SlowAnswer};
use crate::http::trace::RequestContext;

const REFRESH: HeaderName = HeaderName::from_static("refresh");
/// Seconds after which the browser looks again.
const AGAIN: HeaderValue = HeaderValue::from_static("1");

/// Lets a page be read on when it is slow. Files and forms are waited for: a browser would keep
/// the page that tells of the reading as the file.
pub async fn told(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(key) = key(&parts) else { return next.run(Request::from_parts(parts, body)).await };
    if let Some(kept) = app.slow_pages.kept(&key).await {
        // Whoever is no longer signed in gets nothing of what was read.
        let visit = match Visit::from_request_parts(&mut parts, &app).await {
            Ok(visit) => visit,
            Err(to_sign_in) => return to_sign_in,
        };
        return answer(&app, &visit, kept);
    }
    let mut again = of_same_address(&parts);
    let work = next.run(Request::from_parts(parts, body));
    let read = match RequestContext::own() {
        Some(context) => app.slow_pages.read(key, context.around(work)).await,
        None => app.slow_pages.read(key, work).await,
    };
    match read {
        SlowAnswer::Page(page) => page,
        reads => match Visit::from_request_parts(&mut again, &app).await {
            Ok(visit) => answer(&app, &visit, reads),
            Err(to_sign_in) => to_sign_in,
        },
    }
}

/// Key of a page of a session; none for files, forms and requests without a session.
fn key(parts: &Parts) -> Option<PageKey> {
    let is_page = parts.method == Method::GET && parts.uri.path() != "/console/exports/file";
    let is_file = query(parts).is_ok_and(|pairs| pairs.iter().any(|(name, _)| name == CSV));
    let secret = secret_of(&parts.headers).filter(|_| is_page && !is_file)?;
    Some(PageKey { session: digest(&secret), address: parts.uri.path_and_query()?.to_string() })
}

/// The parts of a request for the same address by the same session.
fn of_same_address(parts: &Parts) -> Parts {
    let (mut again, ()) = Request::new(()).into_parts();
    (again.method, again.uri, again.headers) = (parts.method.clone(), parts.uri.clone(), parts.headers.clone());
    again
}

fn answer(app: &App, visit: &Visit, answered: SlowAnswer) -> Response {
    match answered {
        SlowAnswer::Page(page) => page,
        SlowAnswer::Reads(since) => {
            let under_way = if visit.here().starts_with("/console/trial-balance") {
                app.past_books.under_way().map(|(cut, read, of)| (words::AFTER_RECORD, cut.records(), read, of))
            } else if visit.here().starts_with("/console/journal/prove") {
                app.proofs.under_way().map(|proof| (words::FROM_RECORD, proof.from.sequence.0, proof.read, proof.of))
            } else {
                None
            };
            let body = body(visit.language, visit.here(), since.as_secs(), under_way);
            let title = visit.say(words::READING).to_owned();
            let mut page = visit.page(StatusCode::ACCEPTED, &Screen { section: Section::Found, title, body });
            page.headers_mut().insert(REFRESH, AGAIN);
            page
        }
    }
}

/// `under_way`: the Record that a job is about and how, how much is read, and how much there is.
fn body(language: Language, here: &str, seconds: u64, under_way: Option<(Word, u64, u64, u64)>) -> Markup {
    let (say, count) = (|word: Word| word.text(language), |number| show::count(language, number));
    html! {
        section.card id="reading" aria-label=(say(words::READING)) {
            p role="status" { (say(words::READING_WHAT)) }
            @if let Some((how, record, read, of)) = under_way {
                progress max=(of.max(1)) value=(read) aria-label=(say(words::READING)) {}
                p { (say(how)) " " (count(record)) ": " (count(read)) " " (say(words::OF)) " " (count(of)) }
            }
            p.dim { (seconds) " s" }
            p.actions { a.button href=(here) { (say(words::LOOK_AGAIN)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_how_far_the_books_of_the_past_are_read() {
        let of = |under_way| body(Language::English, "/console/trial-balance?a=1&b=2", 7, under_way).into_string();
        let told = of(Some((words::AFTER_RECORD, 1_234, 500, 2_000)));
        for text in ["max=\"2000\" value=\"500\"", "After Record 1,234: 500 of 2,000", "7 s", "?a=1&amp;b=2\""] {
            assert!(told.contains(text), "{text} in {told}");
        }
        assert!(!of(None).contains("<progress"));
    }
}
