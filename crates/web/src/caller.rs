//! Caller of a merchant route, and the id in its path, as handlers take them.

use actors::engine::CommandContext;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use ledger::{GroupNumber, LedgerId, ObjectId, Requester, Scopes};

use crate::idempotency::CommandPermit;
use crate::reply::only_known;
use crate::{Code, Problem, Result, not_found};

/// The merchant whose live API key the request carries (interface section 5).
/// `authenticate` of the program's `api` stands before every route that has a caller, and
/// finds out who it is. A query with a parameter that the route does not take is refused here.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its account group.
    pub group: GroupNumber,
    /// The API key; `None` if the service itself looks something up for the merchant.
    pub key: Option<ObjectId>,
    /// What the key may do.
    pub scopes: Scopes,
}

impl Caller {
    /// The merchant's books.
    pub fn ledger(self) -> LedgerId {
        LedgerId::Merchant(self.group)
    }

    /// Context of this caller's commands.
    pub fn context(self, admitted: impl Into<CommandPermit>) -> CommandContext {
        let CommandPermit { key, permit } = admitted.into();
        CommandContext { key, requester: self.key.map(Requester::ApiKey), permit }
    }
}

/// The two ids in a route's path. They name nothing where one is no text.
#[derive(Clone, Debug)]
pub struct PathIds(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let ids = Path::<(String, String)>::from_request_parts(parts, state).await;
        ids.map(|Path((first, second))| Self(first, second)).map_err(|_| not_found())
    }
}

/// The id in a route's path. An id that is not text names nothing.
#[derive(Clone, Debug)]
pub struct PathId(pub String);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let caller = parts.extensions.get().copied().ok_or_else(|| Problem::new(Code::Unauthorized))?;
        only_known(parts)?;
        Ok(caller)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id)).map_err(|_| not_found())
    }
}
