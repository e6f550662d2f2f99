//! How answers that are no problems are written, and how a list is asked for.

use axum::Json;
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use ledger::time::Timestamp;
use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use super::problem::{Code, FieldError, Problem};
use super::timestamp::with_milliseconds;

/// 201 with a body.
pub fn created(body: impl Serialize) -> Response {
    (StatusCode::CREATED, Json(body)).into_response()
}

/// 200 with a body.
pub fn ok(body: impl Serialize) -> Response {
    Json(body).into_response()
}

/// A time in RFC 3339, milliseconds, `Z`.
pub fn time(at: Timestamp) -> String {
    with_milliseconds(at.0)
}

/// Writes a decimal as a JSON number, without passing through a float.
pub fn decimal<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let number: serde_json::Number = value.to_string().parse().map_err(serde::ser::Error::custom)?;
    number.serialize(serializer)
}

/// What a list is asked for in its query: a page, 20 items unless asked otherwise, newest first, and where the list can be
/// searched, a text. A page past the end is empty; other parameters are ignored.
#[derive(Debug)]
pub struct PageQuery {
    /// Which part of the list.
    pub page: Page,
    /// Text to look for; empty for everything.
    pub search: String,
}

/// A checked page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// From 1.
    pub page: u64,
    /// 1 to 100.
    pub per_page: u64,
}

impl<S: Sync> FromRequestParts<S> for PageQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query(parts)?;
        Ok(Self {
            page: Page { page: number(&pairs, "page", 1, u64::MAX)?, per_page: number(&pairs, "per_page", 20, 100)? },
            search: single(&pairs, "search")?.unwrap_or_default().to_owned(),
        })
    }
}

/// The parameters of a query, in order.
pub fn query(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    pairs.map(|Query(pairs)| pairs).map_err(|_| Problem::new(Code::ValidationFailed))
}

fn number(pairs: &[(String, String)], name: &'static str, default: u64, max: u64) -> Result<u64, Problem> {
    let Some(text) = single(pairs, name)? else { return Ok(default) };
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| wrong(name, "out_of_range", format!("{name} deve ser um número de 1 a {max}")))
}

/// The value of a parameter that may come once.
pub fn single<'a>(pairs: &'a [(String, String)], name: &'static str) -> Result<Option<&'a str>, Problem> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(wrong(name, "ambiguous", format!("{name} só pode vir uma vez"))),
    }
}

fn wrong(name: &'static str, code: &'static str, message: String) -> Problem {
    let error = FieldError { field: name.to_owned(), code, message: message.clone().into() };
    let problem = Problem::new(Code::ValidationFailed).message(message);
    problem.detail(format!("Wrong in the query: {name}.")).errors(vec![error])
}

impl Page {
    /// How many items come before this page.
    pub fn skip(self) -> u64 {
        (self.page - 1).saturating_mul(self.per_page)
    }

    /// How many items a page has.
    pub fn count(self) -> usize {
        usize::try_from(self.per_page).unwrap_or(usize::MAX)
    }

    /// How many pages so many items fill.
    pub fn pages(self, total: u64) -> u64 {
        total.div_ceil(self.per_page)
    }
}

/// A list in the shape of every list that the interface leaves open.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct List<T> {
    /// The items of this page, newest first.
    pub items: Vec<T>,
    /// Items on all pages.
    pub total: u64,
    /// This page, from 1.
    pub page: u64,
    /// How many pages there are.
    pub pages: u64,
    /// Items a page.
    pub per_page: u64,
}

impl<T> List<T> {
    /// A page of a list.
    pub fn new(items: Vec<T>, total: u64, page: Page) -> Self {
        Self { items, total, page: page.page, pages: page.pages(total), per_page: page.per_page }
    }
}
