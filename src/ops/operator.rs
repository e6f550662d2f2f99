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
        let unauthorized = match app.ops_tokens.operator(&parts.headers) {
            Ok(name) => return Ok(Self(name.to_owned())),
            Err(unauthorized) => unauthorized,
        };
        let answered = app.guesses.note(Asked::OperatorToken, &parts.headers, &parts.extensions, None);
        Err(answered.problem(unauthorized).await)
    }
}
