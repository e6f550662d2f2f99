//! What every handler needs: the engine, who is calling, and how the engine's refusals are told.

use std::sync::Arc;

use actors::engine::{CommandContext, Engine, KeyLookup, Unavailable};
use actors::journal::Permit;
use actors::records::LoadError;
use actors::resident::Outcome;
use actors::seal::stocked_random_bytes;
use actors::store::StoreError;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::record::{Record, Requester};
use ledger::rejection::Rejection;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::credential::{OpsTokens, api_key};
use super::guesses::{Answered, Asked, Guesses};
use super::ops::backup::LastBackup;
use super::ops::health::Exposition;
use super::problem::{Code, FieldError, Problem};
use super::rate_limits::RateLimits;
use super::reports::Reporting;
use crate::webhooks::Webhooks;

/// What the handlers share.
pub struct App {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Who may call the operations.
    pub ops_tokens: OpsTokens,
    /// True when money is fake and the clock can be moved.
    pub sandbox: bool,
    /// How often a caller may ask; none when that is switched off.
    pub rate_limits: Option<RateLimits>,
    /// The wrong credentials that came.
    pub guesses: Guesses,
    /// Held while a merchant is opened or changed: one at a time.
    pub opening: tokio::sync::Mutex<()>,
    /// Taken while a backup is read: one at a time.
    pub backing_up: Arc<Semaphore>,
    /// When a backup was last made.
    pub last_backup: LastBackup,
    /// Taken while an export is made: one at a time.
    pub exporting: Arc<Semaphore>,
    /// The reports that are being made.
    pub reporting: Reporting,
    /// The metrics.
    pub exposition: Exposition,
    /// Where webhooks go, and how far they have come.
    pub webhooks: Webhooks,
}

/// The merchant whose live API key the request carries (interface section 5). [`super::rate_limits::Admission`] stands before every route
/// that has a caller, and finds out who it is.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its account group.
    pub group: GroupNumber,
    /// The API key; none where the service itself looks something up for the merchant.
    pub key: Option<ObjectId>,
}

impl Caller {
    /// The merchant's books.
    pub fn ledger(self) -> LedgerId {
        LedgerId::Merchant(self.group)
    }

    /// What travels with a command of this caller.
    pub fn context(self, key: Option<KeyLookup>, permit: Arc<Permit>) -> CommandContext {
        CommandContext { key, requester: self.requester(), permit }
    }

    /// Who asks, as Records name it.
    pub fn requester(self) -> Option<Requester> {
        self.key.map(Requester::ApiKey)
    }
}

/// The operator whose token the request carries.
#[derive(Clone, Debug)]
pub struct Operator(pub String);

/// The id in a route's path. What is not even text names nothing.
#[derive(Clone, Debug)]
pub struct PathId(pub String);

/// An API key: `test_` or `live_`, the key's id, then its secret, all hexadecimal. The id finds the key; the digest of the whole
/// text, compared in constant time, proves it.
pub struct ApiKeyText;

impl ApiKeyText {
    /// The text of a new key.
    pub fn of(sandbox: bool, id: ObjectId, secret: [u8; 24]) -> String {
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}{}{secret}", Self::prefix(sandbox), id.txid())
    }

    /// What is kept of a key.
    pub fn digest(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }

    fn id(sandbox: bool, text: &str) -> Option<ObjectId> {
        ObjectId::parse(text.strip_prefix(Self::prefix(sandbox))?.get(..32)?)
    }

    fn prefix(sandbox: bool) -> &'static str {
        if sandbox { "test_" } else { "live_" }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        parts.extensions.get().copied().ok_or_else(|| Problem::new(Code::Unauthorized))
    }
}

/// Who is calling, and the id of the API key.
pub fn authenticated(app: &App, headers: &HeaderMap) -> Result<(Caller, ObjectId), Problem> {
    let text = api_key(headers)?;
    let id = ApiKeyText::id(app.sandbox, text).ok_or_else(|| Problem::new(Code::Unauthorized))?;
    let row = app.engine.read_model().api_key(id);
    let row = row.filter(|row| bool::from(row.digest.ct_eq(&ApiKeyText::digest(text))) && !row.revoked);
    row.map(|row| (Caller { group: row.group, key: Some(id) }, id)).ok_or_else(|| Problem::new(Code::Unauthorized))
}

/// Notes a request without an API key that opens. Of the key, no more is told than where its id begins, which is its time.
pub fn guessed(app: &App, headers: &HeaderMap, extensions: &Extensions) -> Answered {
    let text = api_key(headers).ok();
    let id = text.and_then(|text| text.strip_prefix(ApiKeyText::prefix(app.sandbox))?.get(..8));
    let id = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    app.guesses.note(Asked::ApiKey, headers, extensions, id)
}

/// The merchant whose API key the headers seem to have. It is not checked: enough to tell one caller from another under load.
pub fn supposed_group(engine: &Engine, sandbox: bool, headers: &HeaderMap) -> Option<GroupNumber> {
    let id = ApiKeyText::id(sandbox, api_key(headers).ok()?)?;
    Some(engine.ids().group(id))
}

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

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id)).map_err(|_| Problem::new(Code::NotFound))
    }
}

impl App {
    /// Random bits for an id.
    pub fn random(&self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(stocked_random_bytes()?))
    }

    /// A new id of a group.
    pub fn new_id(&self, group: GroupNumber) -> Result<ObjectId, Problem> {
        Ok(self.engine.new_id(group)?)
    }
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::JournalFull => Problem::new(Code::Overloaded).retry_after(1),
            Unavailable::StorageFull => Problem::new(Code::StorageFull).retry_after(5),
            Unavailable::OutcomeUnknown => Problem::new(Code::OutcomeUnknown).retry_after(1),
            Unavailable::NoRail => Problem::new(Code::RailNotConfigured),
            Unavailable::Unreadable => Problem::new(Code::Internal),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        LoadError::from(error).into()
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        tracing::error!(%error, "the journal could not be read");
        Problem::new(Code::Internal)
    }
}

impl From<actors::seal::SealError> for Problem {
    fn from(error: actors::seal::SealError) -> Self {
        tracing::error!(%error, "personal data could not be sealed");
        Problem::new(Code::Internal)
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let detail = rejection.to_string();
        let of_split = |code: Code, index: usize| {
            let row = code.row();
            let field = format!("splits[{index}].sub_recipient_id");
            Problem::new(code).errors(vec![FieldError { field, code: row.code, message: row.message.into() }])
        };
        let of_amount = |code: Code, message: String| {
            let error =
                FieldError { field: "amount".to_owned(), code: code.row().code, message: message.clone().into() };
            Problem::new(code).message(message).errors(vec![error])
        };
        let problem = match rejection {
            Rejection::SplitNotEnabled => Problem::new(Code::SplitNotEnabled),
            Rejection::SplitRecipientNotFound { index } => of_split(Code::RecipientNotFound, index),
            Rejection::SplitRecipientNotActive { index } => of_split(Code::RecipientNotActive, index),
            Rejection::SplitsReachTotal => Problem::new(Code::SplitsReachTotal),
            Rejection::SplitsExceedNet => Problem::new(Code::FeesExceedSellerPart),
            Rejection::RecipientNotFound
            | Rejection::MerchantNotFound
            | Rejection::ApiKeyNotFound
            | Rejection::PlanNotFound => Problem::new(Code::NotFound),
            Rejection::TagTaken => Problem::new(Code::TagTaken),
            Rejection::PlanDisabled => Problem::new(Code::PlanDisabled),
            Rejection::RecipientAlreadyDecided => Problem::new(Code::AlreadyDecided),
            Rejection::WithdrawalAlreadyDecided => Problem::new(Code::AlreadyDecided),
            Rejection::WithdrawalPending => Problem::new(Code::WithdrawalPending),
            Rejection::NothingAvailable => Problem::new(Code::NothingAvailable),
            Rejection::SplitNotAnticipable { index } => {
                let row = Code::SplitNotAnticipable.row();
                let field = format!("split_ids[{index}]");
                let error = FieldError { field, code: row.code, message: row.message.into() };
                Problem::new(Code::SplitNotAnticipable).errors(vec![error])
            }
            Rejection::ChargeNotPending => Problem::new(Code::ChargeNotPending),
            Rejection::CashoutNotEnabled => Problem::new(Code::CashoutNotEnabled),
            Rejection::CashoutBelowMinimum { minimum } => {
                let message = format!("Valor abaixo do mínimo de {minimum} centavos");
                of_amount(Code::AmountBelowMinimum, message).member("minimum", minimum.0)
            }
            Rejection::CashoutAboveAvailable => {
                of_amount(Code::InsufficientBalance, Code::InsufficientBalance.row().message.to_owned())
            }
            Rejection::MerchantExists
            | Rejection::ApiKeyIsRevoked
            | Rejection::SubscriptionEnded
            | Rejection::CashoutNotInProcessing
            | Rejection::RecipientIsRejected
            | Rejection::RecipientChangedMeanwhile => Problem::new(Code::StateConflict),
            Rejection::ChargeTooOld | Rejection::ChargeRefunded | Rejection::ChargeDisputed => {
                Problem::new(Code::ChargeNotRefundable)
            }
            Rejection::RefundExceedsCharge
            | Rejection::TakeBackExceedsRefund
            | Rejection::TakeBackExceedsSplit { .. } => Problem::new(Code::RefundExceedsAvailable),
            Rejection::DisputeExceedsCharge => Problem::new(Code::DisputeExceedsAvailable),
            Rejection::RefundAlreadyDecided | Rejection::DisputeAlreadyDecided => Problem::new(Code::AlreadyDecided),
        };
        problem.detail(detail)
    }
}

/// What a handler makes of an outcome: a Record, nothing to change, or a key that must be looked up again.
pub enum Settled {
    /// It is durable.
    Recorded(Arc<Record>),
    /// There was nothing to change.
    Unchanged,
    /// The idempotency key was used a moment ago.
    KeyTaken,
}

/// Turns refusals into problems.
pub fn settled(outcome: Outcome) -> Result<Settled, Problem> {
    match outcome {
        Outcome::Recorded(record) => Ok(Settled::Recorded(record)),
        Outcome::Unchanged => Ok(Settled::Unchanged),
        Outcome::KeyTaken => Ok(Settled::KeyTaken),
        Outcome::Refused(rejection) => Err(rejection.into()),
    }
}
