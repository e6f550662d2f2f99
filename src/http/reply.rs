//! How answers that are no problems are written.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ledger::time::Timestamp;
use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use super::problem::{Code, Problem};
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

/// A page of a list: 20 items unless asked otherwise, newest first; a page past the end is empty.
#[derive(Debug, serde::Deserialize)]
pub struct PageQuery {
    /// From 1.
    pub page: Option<String>,
    /// 1 to 100.
    pub per_page: Option<String>,
    /// Text to look for, where the list can be searched.
    pub search: Option<String>,
}

/// A checked page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// From 1.
    pub page: u64,
    /// 1 to 100.
    pub per_page: u64,
}

impl PageQuery {
    /// Checks the numbers.
    pub fn checked(&self) -> Result<Page, Problem> {
        let number = |name: &'static str, text: &Option<String>, default: u64, max: u64| match text.as_deref() {
            None => Ok(default),
            Some(text) => text.parse().ok().filter(|number| (1..=max).contains(number)).ok_or_else(|| {
                Problem::new(Code::ValidationFailed)
                    .message(format!("{name} deve ser um número de 1 a {max}"))
                    .detail(format!("The query parameter {name} must be a number from 1 to {max}."))
            }),
        };
        Ok(Page {
            page: number("page", &self.page, 1, 1_000_000_000)?,
            per_page: number("per_page", &self.per_page, 20, 100)?,
        })
    }
}

impl Page {
    /// How many items come before this page.
    pub fn skip(self) -> usize {
        usize::try_from((self.page - 1) * self.per_page).unwrap_or(usize::MAX)
    }

    /// How many items a page has.
    pub fn count(self) -> usize {
        usize::try_from(self.per_page).unwrap_or(usize::MAX)
    }

    /// How many pages so many items fill.
    pub fn pages(self, total: usize) -> u64 {
        (total as u64).div_ceil(self.per_page)
    }
}

/// A list in the shape of every list that the interface leaves open.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct List<T> {
    /// The items of this page, newest first.
    pub items: Vec<T>,
    /// Items on all pages.
    pub total: usize,
    /// This page, from 1.
    pub page: u64,
    /// How many pages there are.
    pub pages: u64,
    /// Items a page.
    pub per_page: u64,
}

impl<T> List<T> {
    /// A page of a list.
    pub fn new(items: Vec<T>, total: usize, page: Page) -> Self {
        Self { items, total, page: page.page, pages: page.pages(total), per_page: page.per_page }
    }
}
