//! Operator whose token a request carries, as handlers take it.

use std::sync::Arc;

use actors::engine::CommandContext;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ledger::record::Requester;

use crate::app::App;
use crate::http::guesses::Asked;
use crate::http::idempotency::Admitted;
use crate::http::problem::Problem;

/// The operator whose token the request carries.
#[derive(Clone, Debug)]
pub struct Operator(pub String);

impl Operator {
    /// Context of this operator's commands.
    pub fn context(&self, admitted: impl Into<Admitted>) -> CommandContext {
        let Admitted { key, permit } = admitted.into();
        CommandContext { key, requester: Some(Requester::Operator(self.0.clone())), permit }
    }
}

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
