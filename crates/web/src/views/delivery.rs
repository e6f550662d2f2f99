//! Outcome of a try to deliver a webhook, as JSON.

use derived::outbox::{Answer, Cause};
use serde::Serialize;
use utoipa::ToSchema;

use crate::reply::time;

/// How a try to deliver a webhook ended.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookAnswer)]
pub struct AnswerView {
    /// The status of the HTTP answer; absent when there was none.
    #[schema(minimum = 100, maximum = 999, example = 503)]
    pub status: Option<u16>,
    /// Why it is a failure; absent when it is none. `status`: an answer that is neither 2xx nor
    /// 3xx. `redirect`: 3xx, which is not followed. `dns`: the host has no address. `not_public`:
    /// its address may not be called. `refused`: nobody listens there. `unreachable`: the network
    /// does not reach it. `tls`: no TLS, or a certificate that is not trusted. `timeout`: no answer
    /// within 15 s. `closed`: the connection ended before the answer. `too_large`: the answer's
    /// head has more than 16 KiB or 100 headers. `not_http`: the answer is not HTTP. `internal`:
    /// this service could not send it.
    #[schema(
        pattern = "^(status|redirect|dns|not_public|refused|unreachable|tls|timeout|closed|too_large|not_http|internal)$",
        example = "status"
    )]
    pub cause: Option<&'static str>,
    /// When it ended, on the service's clock.
    pub at: String,
    /// How long it took, milliseconds.
    pub duration_ms: u32,
}

impl AnswerView {
    /// How an answer is shown.
    pub fn of(answer: Answer) -> Self {
        let Answer { status, cause, at, duration_ms } = answer;
        Self { status, cause: cause.map(Cause::name), at: time(at), duration_ms }
    }
}
