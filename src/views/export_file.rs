//! Export of a ledger over HTTP: the query of the request, and the headers of the file.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::export::{Format, Request};
use crate::http::json::Checker;
use crate::http::problem::Problem;
use crate::http::reply::single;
use crate::http::timestamp::day;

/// What the query of an export asks for.
pub fn request(pairs: &[(String, String)], ledger: Option<String>) -> Result<Request, Problem> {
    let mut check = Checker::new();
    let format = match single(pairs, "format")? {
        None => Some(Format::Jsonl),
        Some(name) => Format::made(name)
            .or_else(|| check.refuse("format", "unknown", "format deve ser jsonl, csv, beancount, hledger ou ledger")),
    };
    let mut named = |name| {
        let text = single(pairs, name)?;
        Ok::<_, Problem>(text.and_then(|text| {
            day(text).or_else(|| check.refuse(name, "invalid_date", format!("{name} deve ser uma data (AAAA-MM-DD)")))
        }))
    };
    let (from, to) = (named("from")?, named("to")?);
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        check.refuse::<()>("to", "before_from", "to não pode ser anterior a from");
    }
    let is_of_one_ledger = ledger.is_some();
    if format.is_some_and(Format::is_plain_text) && !is_of_one_ledger {
        check.refuse::<()>("ledger", "one_ledger", "ledger deve ser um só neste formato");
    }
    let format = check.finish_with(format)?;
    Ok(Request { ledger, format, from, to })
}

/// An answer that browsers keep as a file.
pub fn file(request: &Request, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{}\"", request.file_name());
    ([(CONTENT_TYPE, request.format.media_type().to_owned()), (CONTENT_DISPOSITION, disposition)], body).into_response()
}
