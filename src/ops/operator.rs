//! Operator whose token a request carries, as handlers take it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::app::App;
use crate::http::guesses::Asked;
use crate::http::problem::Problem;

/// The operator whose token the request carries.
#[derive(Clone, Debug)]
pub struct Operator(pub String);

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let found = app.ops_tokens.read().operator(&parts.headers).map(str::to_owned);
        let unauthorized = match found {
            Ok(name) => return Ok(Self(name)),
            Err(unauthorized) => unauthorized,
        };
        let answered = app.guesses.note(Asked::OperatorToken, &parts.headers, &parts.extensions, None);
        Err(answered.problem(unauthorized).await)
    }
}
