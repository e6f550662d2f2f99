//! Exports: the books as files, by the route of `/ops`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use maud::html;

use crate::page::{Screen, Section, Visit};
use crate::words;
use ops::desk::Desk;
use ops::export::{export, format_names};
use web::problem::{Code, Problem};
use web::reply::query;

/// Form that asks for an export.
pub(crate) async fn form(visit: Visit) -> Response {
    if let Err(problem) = visit.whole() {
        return visit.answer(Err(problem));
    }
    let day = |name: &'static str, word| {
        html! { div { label for=(name) { (visit.say(word)) } input id=(name) type="date" name=(name); } }
    };
    let body = html! {
        form.card action="/console/exports/file" {
            label for="ledger" { (visit.say(words::LEDGER)) }
            input id="ledger" name="ledger" maxlength="60" placeholder="M-…, R-…, P-…, P-all, P-house" aria-describedby="of-all";
            p.dim id="of-all" { (visit.say(words::OF_ALL_LEDGERS)) }
            label for="format" { (visit.say(words::FORMAT)) }
            select id="format" name="format" { @for format in format_names() { option value=(format) { (format) } } }
            p.dim { (visit.say(words::OTHER_FORMATS)) }
            div.actions { (day("from", words::FROM)) (day("to", words::TO)) }
            p.actions { button.primary type="submit" { (visit.say(words::DOWNLOAD)) } }
        }
    };
    visit.answer(Ok(Screen { section: Section::Exports, title: visit.say(words::EXPORTS).to_owned(), body }))
}

/// File of the export that the form asked for.
pub(crate) async fn file(State(desk): State<Arc<Desk>>, visit: Visit, mut parts: Parts) -> Response {
    let made = async {
        visit.whole()?;
        parts.uri = given_only(&parts)?;
        export(State(desk), visit.operator.clone(), parts).await
    };
    match made.await {
        Ok(file) => file,
        Err(problem) => visit.answer(Err(problem)),
    }
}

/// The address without the fields that the form left empty.
fn given_only(parts: &Parts) -> Result<Uri, Problem> {
    let pairs = query(parts)?;
    let given = pairs.iter().filter(|(name, value)| !value.is_empty() && name != "lang");
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    format!("{}?{query}", parts.uri.path()).parse().map_err(|_| Problem::new(Code::ValidationFailed))
}
