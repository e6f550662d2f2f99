//! Attempt to deliver a webhook event: reads it from the journal, signs its body, and sends it to a
//! checked address.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actors::engine::{Engine, WebhookRow};
use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{HeaderName, Request, StatusCode};
use derived::outbox::{Answer, Cause};
use http_body_util::Full;
use ledger::{ObjectId, SealedFor};

use super::body::WebhookBody;
use super::event::OutboxEvent;
use super::guard::{Addresses, Refusal, Target};
use super::post::PostError;
use super::signature::{service_signature, standard_signature};
use super::{EndpointId, Webhooks};
use web::problem::{Code, Problem};

/// How long one try may take: look-up, connection, request and answer.
pub(super) const TRY_MAX: Duration = Duration::from_secs(15);

const SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How a try ended, and the first KiB of the answer's body.
pub(super) type EndedTry = (Answer, String);

/// Makes one try; `None` if there was no room for its body.
pub(super) async fn attempt(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    number: u64,
    addresses: &Addresses,
) -> Option<EndedTry> {
    timed(engine, id, Some(number), send(engine, webhooks, id, number, addresses)).await
}

/// Sends a body to an endpoint once, whatever waits there; `None` if there was no room for it.
pub(super) async fn attempt_once(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    (event, body): (&str, Vec<u8>),
) -> Option<EndedTry> {
    timed(engine, id, None, post(engine, webhooks, id, &Addresses::default(), (event, body))).await
}

/// Times a try, and writes a line where it failed; a test has no number.
async fn timed(
    engine: &Engine,
    id: EndpointId,
    number: Option<u64>,
    sending: impl Future<Output = Result<(StatusCode, String), TryFailure>>,
) -> Option<EndedTry> {
    let begun = Instant::now();
    let tried = tokio::time::timeout(TRY_MAX, sending).await.unwrap_or(Err(TryFailure::Late));
    let (status, cause, response, why) = match tried {
        Ok((status, response)) => (Some(status.as_u16()), failure_of(status), response, None),
        Err(TryFailure::NoRoom) => return None,
        Err(why) => (None, Some(why.cause()), String::new(), Some(why.to_string())),
    };
    if let Some(cause) = cause {
        tracing::info!(key = ?id.1, number, status, cause = cause.name(), why, "a webhook was not delivered");
    }
    let duration_ms = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
    Some((Answer { status, cause, at: engine.now(), duration_ms }, response))
}

/// Why a status is a failure; `None` if it is none.
fn failure_of(status: StatusCode) -> Option<Cause> {
    match status {
        status if status.is_success() => None,
        status if status.is_redirection() => Some(Cause::Redirect),
        _ => Some(Cause::Status),
    }
}

/// Why a try failed, or was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum TryFailure {
    #[error("the key has no address any more")]
    NoAddress,
    #[error("the address is refused: {0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Post(#[from] PostError),
    #[error("there was no answer in time")]
    Late,
    #[error("it could not be written: {0}")]
    Unwritten(&'static str),
    #[error("there is no room for its body now")]
    NoRoom,
}

impl TryFailure {
    fn cause(&self) -> Cause {
        match self {
            Self::Refused(Refusal::Unknown) => Cause::Dns,
            Self::Refused(_) => Cause::NotPublic,
            Self::Post(error) => error.cause(),
            Self::Late => Cause::Timeout,
            Self::NoAddress | Self::Unwritten(_) | Self::NoRoom => Cause::Internal,
        }
    }
}

impl From<Problem> for TryFailure {
    fn from(problem: Problem) -> Self {
        Self::Unwritten(problem.code().row().code)
    }
}

async fn send(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    number: u64,
    addresses: &Addresses,
) -> Result<(StatusCode, String), TryFailure> {
    let group = id.0;
    let listed = engine.webhook_events(group, number..number + 1).map_err(Problem::from)?;
    let event = OutboxEvent::read(engine, group, *listed.first().ok_or(TryFailure::Unwritten("missing"))?)?;
    let body =
        serde_json::to_vec(&WebhookBody::of(engine, &event)?).map_err(|_| TryFailure::Unwritten("unwritable"))?;
    post(engine, webhooks, id, addresses, (&event.id.uuid().to_string(), body)).await
}

/// Signs a body, and sends it to the address of an endpoint.
async fn post(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    addresses: &Addresses,
    (event, body): (&str, Vec<u8>),
) -> Result<(StatusCode, String), TryFailure> {
    let key = id.1;
    let row = engine.api_key(key).filter(|row| !row.revoked).ok_or(TryFailure::NoAddress)?.webhook;
    let target = Target::parse(row.url.as_deref().ok_or(TryFailure::NoAddress)?)?;
    let _until_it_has_ended = webhooks.body_room.take(id, body.len()).ok_or(TryFailure::NoRoom)?;
    let request = request(&target, &secrets(engine, key, &row)?, event, wall_seconds(), body)?;
    let addresses = webhooks.guard.look_up_once(&target, addresses).await?;
    Ok(webhooks.poster.send(&target, &addresses, request).await?)
}

/// The secrets that sign now, the newest first: those of the last 24 hours.
fn secrets(engine: &Engine, key: ObjectId, row: &WebhookRow) -> Result<Vec<String>, TryFailure> {
    let now = engine.now();
    let previous = row.previous.iter().filter(|previous| now < previous.until).map(|previous| &previous.sealed);
    let open = |sealed: &Vec<u8>| {
        let opened = engine.keyring().open_secret(SealedFor::webhook_secret(key), sealed);
        let opened = opened.and_then(|secret| String::from_utf8(secret).ok());
        opened.ok_or(TryFailure::Unwritten(Code::Internal.row().code))
    };
    [&row.secret].into_iter().chain(previous).map(open).collect()
}

/// The request with an event: its body, signed with every secret, the newest first.
pub(super) fn request(
    target: &Target,
    secrets: &[String],
    id: &str,
    timestamp: i64,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, TryFailure> {
    let standard: Vec<String> = secrets.iter().map(|secret| standard_signature(secret, id, timestamp, &body)).collect();
    let newest = secrets.first().ok_or(TryFailure::Unwritten("secretless"))?;
    let request = Request::post(&target.path)
        .header(HOST, &target.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("centavo/", env!("CARGO_PKG_VERSION")))
        .header(WEBHOOK_ID, id)
        .header(WEBHOOK_TIMESTAMP, timestamp)
        .header(WEBHOOK_SIGNATURE, standard.join(" "))
        .header(SERVICE_SIGNATURE, service_signature(newest, &body));
    request.body(Full::new(body.into())).map_err(|_| TryFailure::Unwritten("unsendable"))
}

/// Seconds since 1970 by the wall clock: receivers compare the timestamp with theirs.
pub(super) fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
