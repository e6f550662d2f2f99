//! A request's body, taken in whole and no larger than its route allows.

use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::time::timeout;

use super::problem::{Code, Problem};

/// The body of a request of at most 256 KiB.
pub type JsonBody = Body<{ 256 * 1024 }>;

/// The body of a request for a charge: at most 4 MiB, so that 10,000 splits fit.
pub type ChargeBody = Body<{ 4 * 1024 * 1024 }>;

/// The bytes of a body that is declared as JSON, or empty when no body came.
///
/// As an extractor it refuses, in this order, a body of more than `BYTES_MAX` bytes ([`Code::PayloadTooLarge`], before
/// reading it if its length is declared), one that finds no room beside the others
/// ([`Code::Overloaded`]), one that does not arrive in time or breaks off, and one of another media type.
#[derive(Debug)]
pub struct Body<const BYTES_MAX: usize> {
    /// What came.
    pub bytes: Bytes,
    _room: SemaphorePermit<'static>,
}

/// How much all bodies together may hold, in KiB, from before they arrive until they are answered.
static ROOM_KIB: Semaphore = Semaphore::const_new(256 * 1024);

/// How long a body may take to arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

impl<State: Sync, const BYTES_MAX: usize> FromRequest<State> for Body<BYTES_MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &State) -> Result<Self, Problem> {
        let is_json = declares_json(request.headers());
        let body = request.into_body();
        if body.size_hint().lower() > BYTES_MAX as u64 {
            return Err(too_large(BYTES_MAX));
        }
        let most = body.size_hint().exact().unwrap_or(BYTES_MAX as u64);
        let kib = u32::try_from(most.div_ceil(1024)).unwrap_or(u32::MAX);
        let overloaded = |_: TryAcquireError| Problem::new(Code::Overloaded).retry_after(1);
        let room = ROOM_KIB.try_acquire_many(kib).map_err(overloaded)?;
        let bytes = match timeout(ARRIVAL_MAX, Limited::new(body, BYTES_MAX).collect()).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large(BYTES_MAX)),
            Ok(Err(_)) => return Err(Problem::new(Code::IncompleteBody)),
            Err(_) => return Err(Problem::new(Code::RequestTimeout)),
        };
        if !bytes.is_empty() && !is_json {
            return Err(Problem::new(Code::UnsupportedMediaType));
        }
        Ok(Body { bytes, _room: room })
    }
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge).detail(format!("The body is larger than {bytes_max} bytes."))
}

/// Whether the content type is `application/json` or `application/…+json`, parameters aside.
fn declares_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let Some((kind, subtype)) = media_type.split_once('/') else {
        return false;
    };
    let suffix = subtype.rsplit_once('+').map_or(subtype, |(_, suffix)| suffix);
    kind.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in a body of at most 8 bytes.
    async fn taken(content_type: Option<&str>, body: &'static str) -> Result<Bytes, Code> {
        let mut request = axum::http::Request::builder().uri("/");
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(axum::body::Body::from(body)).unwrap();
        Body::<8>::from_request(request, &()).await.map(|body| body.bytes).map_err(|problem| problem.code())
    }

    #[tokio::test]
    async fn bodies_are_json_and_fit() {
        let cases = [
            (Some("application/json"), "{}", Ok("{}")),
            (Some("Application/JSON; charset=utf-8"), "{}", Ok("{}")),
            (Some("application/problem+json"), "{}", Ok("{}")),
            (Some("application/json"), "{\"a\":12}", Ok("{\"a\":12}")),
            (Some("application/json"), "{\"a\":123}", Err(Code::PayloadTooLarge)),
            (Some("text/plain"), "{\"a\":123}", Err(Code::PayloadTooLarge)),
            (Some("text/plain"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("text/json"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("application/jsonl"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("application"), "{}", Err(Code::UnsupportedMediaType)),
            (None, "{}", Err(Code::UnsupportedMediaType)),
            (Some("text/plain"), "", Ok("")),
            (None, "", Ok("")),
        ];
        for (content_type, body, expected) in cases {
            let expected = expected.map(Bytes::from);
            assert_eq!(taken(content_type, body).await, expected, "{content_type:?} {body}");
        }
    }
}
