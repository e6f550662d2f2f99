//! Operator whose token a request carries, as handlers take it, with what the operator may do.
//!
//! A handler that only reads takes [`Operator`], one that decides takes [`Decider`], and one that
//! changes merchants, keys or the clock takes [`Admin`]; where its path has an id, [`DeciderCall`]
//! or [`AdminCall`].

use std::marker::PhantomData;
use std::sync::Arc;

use actors::engine::CommandContext;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use ledger::record::Requester;

use crate::Desk;
use crate::item_version::IfMatch;
use web::guards::wrong_credentials::CredentialKind;
use web::idempotency::{CommandPermit, Key};
use web::reply::only_known;
use web::{Code, KeyScope, KeyedBody, PathId, Problem, Result, Role};

/// The operator whose token the request carries, whatever the role.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The name that was configured with the token.
    pub name: String,
    /// What the operator may do.
    pub role: Role,
}

/// An operator who may decide.
#[derive(Clone, Debug)]
pub struct Decider(pub Operator);

/// A role that a call needs, as the type of its operator.
pub trait NeededRole: Send {
    /// An operator of it, or of a greater one, may call.
    const ROLE: Role;
}

impl NeededRole for Decider {
    const ROLE: Role = Role::Decide;
}

impl NeededRole for Admin {
    const ROLE: Role = Role::Admin;
}

/// The call of a route that decides about what the id in its path names.
pub type DeciderCall = OperatorCall<Decider>;

/// The call of a route for which an operator needs to be allowed everything.
pub type AdminCall = OperatorCall<Admin>;

/// The call of a route that changes what the id in its path names.
pub struct OperatorCall<R> {
    /// State of the handlers.
    pub desk: Arc<Desk>,
    /// An operator of the needed role.
    pub operator: Operator,
    /// The id in the path.
    pub id: String,
    /// The version that the operator saw, as far as a header says it.
    pub(crate) if_match: IfMatch,
    /// The body and the idempotency key.
    pub sent: KeyedBody,
    needed: PhantomData<R>,
}

/// An operator who may do everything.
#[derive(Clone, Debug)]
pub struct Admin(pub Operator);

impl Operator {
    /// Context of this operator's commands.
    pub fn context(&self, admitted: impl Into<CommandPermit>) -> CommandContext {
        let CommandPermit { key, permit } = admitted.into();
        CommandContext { key, requester: Some(Requester::Operator(self.name.clone())), permit }
    }

    /// Refuses an operator whose role is below the needed role.
    pub fn require(&self, needed: Role) -> Result<()> {
        if self.role >= needed {
            return Ok(());
        }
        let detail = format!("This needs the role {}, and {} has {}.", needed.name(), self.name, self.role.name());
        Err(Problem::new(Code::RoleNotAllowed).detail(detail))
    }
}

impl FromRequestParts<Arc<Desk>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self> {
        let found = desk.ops_tokens.read().operator(&parts.headers).map(|(name, role)| (name.to_owned(), role));
        let unauthorized = match found {
            Ok((name, role)) => {
                only_known(parts)?;
                return Ok(Self { name, role });
            }
            Err(unauthorized) => unauthorized,
        };
        let answered =
            desk.wrong_credentials.note(CredentialKind::OperatorToken, &parts.headers, &parts.extensions, None);
        Err(answered.problem(unauthorized).await)
    }
}

/// The operator whose token the request carries, who must have the role.
async fn with_role<R: NeededRole>(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Operator> {
    let operator = Operator::from_request_parts(parts, desk).await?;
    operator.require(R::ROLE)?;
    Ok(operator)
}

impl FromRequestParts<Arc<Desk>> for Decider {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self> {
        with_role::<Self>(parts, desk).await.map(Self)
    }
}

impl<R: NeededRole> FromRequest<Arc<Desk>> for OperatorCall<R> {
    type Rejection = Problem;

    async fn from_request(request: Request, desk: &Arc<Desk>) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let operator = with_role::<R>(&mut parts, desk).await?;
        let PathId(id) = PathId::from_request_parts(&mut parts, desk).await?;
        let if_match = IfMatch::of(&parts.headers);
        let sent = KeyedBody::from_request(Request::from_parts(parts, body), desk).await?;
        Ok(Self { desk: Arc::clone(desk), operator, id, if_match, sent, needed: PhantomData })
    }
}

impl<R: NeededRole> OperatorCall<R> {
    /// The call of a form of the console. Error: 403 for an operator of a smaller role.
    pub fn of_form(desk: &Arc<Desk>, operator: &Operator, id: &str, sent: KeyedBody) -> Result<Self> {
        operator.require(R::ROLE)?;
        let (desk, operator, id) = (Arc::clone(desk), operator.clone(), id.to_owned());
        Ok(Self { desk, operator, id, if_match: IfMatch::Any, sent, needed: PhantomData })
    }

    /// The idempotency key. `id` is the id in the path, as the service writes it.
    pub fn key(&self, id: &str) -> Result<Key<'_>> {
        self.sent.key(&self.desk.engine, KeyScope::Operators, Some(id))
    }
}

impl FromRequestParts<Arc<Desk>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self> {
        with_role::<Self>(parts, desk).await.map(Self)
    }
}
