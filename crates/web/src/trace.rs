//! Request context for the log: the request's id, and the trace of its caller (W3C Trace Context).
//! It is not sent on: institutions get no trace, and a webhook follows from a Record, which does
//! not carry the trace.
//!
//! It is a task-local. The whole task of the handler has it, also after the caller has hung up.
//! Threads and tasks that a handler starts have it when they are started through
//! [`spawn_blocking`], [`in_this_request`] or [`RequestContext::around`]. It is no span of
//! `tracing`: a task-local costs a request a few nanoseconds, a span several hundred.

use std::fmt;
use std::future::Future;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::JoinHandle;
use tokio::task::futures::TaskLocalFuture;

/// The header by which a caller names its trace.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Response header with the same trace and the span of this request.
pub const TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");

tokio::task_local! {
    static REQUEST: RequestContext;
}

/// Request context: the id and the trace.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The request's id: visible ASCII.
    pub id: HeaderValue,
    /// The caller's trace, if it sent a valid one.
    pub trace: Option<TraceContext>,
}

impl RequestContext {
    /// Does all of `work` in the name of this request.
    pub fn around<F: Future>(self, work: F) -> TaskLocalFuture<Self, F> {
        REQUEST.scope(self, work)
    }

    /// The same, at once.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        REQUEST.sync_scope(self.clone(), work)
    }

    /// The request that is being handled here, if there is one.
    pub fn own() -> Option<Self> {
        REQUEST.try_with(Clone::clone).ok()
    }

    /// Shows the request that is being handled here, if there is one.
    pub fn current(show: impl FnOnce(&Self)) {
        let _outside_of_requests = REQUEST.try_with(show);
    }

    /// The id as text.
    pub fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }
}

/// Work for another thread, in the name of the request that is being handled here.
pub fn in_this_request<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let request = RequestContext::own();
    move || match request {
        Some(request) => request.during(work),
        None => work(),
    }
}

/// Does work that may block on a thread of its own, in the name of the request that is being
/// handled here.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(in_this_request(work))
}

/// Place in a trace: 32 hexadecimal digits of the trace, 16 of the span, 2 of flags. As text it is
/// a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The caller's span; here, that of this request.
    pub span: u64,
    /// Whether it is recorded, and what later versions add.
    pub flags: u8,
}

impl TraceContext {
    /// The caller's trace, continued by this request as `span`. `None` if `traceparent` is missing,
    /// repeated or invalid: then the request has no trace, as the standard says.
    pub fn of(headers: &HeaderMap, span: u64) -> Option<Self> {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return None };
        Self::parse(sent.as_bytes()).map(|caller| Self { span: span.max(1), ..caller })
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(55)?;
        let version = hex(&known[..2])? as u8;
        // A later version may have more behind another hyphen; this one may not, and 255 is none.
        let ends_well = if version == 0 { rest.is_empty() } else { rest.first().is_none_or(|byte| *byte == b'-') };
        let is_cut_well = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        if version == 0xFF || !ends_well || !is_cut_well {
            return None;
        }
        let (trace, span, flags) = (hex(&known[3..35])?, hex(&known[36..52])? as u64, hex(&known[53..])? as u8);
        (trace != 0 && span != 0).then_some(Self { trace, span, flags })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Lower-case hexadecimal digits, at most 32.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number << 4 | u128::from(digit - b'0')),
        b'a'..=b'f' => Some(number << 4 | u128::from(digit - b'a' + 10)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_traceparent_is_taken_and_written_as_it_came() {
        let parsed = TraceContext::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(
            (parsed.trace, parsed.span, parsed.flags),
            (0x4bf92f3577b34da6a3ce929d0e0e4736, 0xf067aa0ba902b7, 1)
        );
        assert_eq!(parsed.to_string(), GOOD);
        for later in ["cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &format!("01{}-more", &GOOD[2..])] {
            assert!(TraceContext::parse(later.as_bytes()).is_some(), "{later}");
        }
    }

    #[test]
    fn what_is_no_traceparent_is_ignored() {
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
        ] {
            assert_eq!(TraceContext::parse(wrong.as_bytes()), None, "{wrong}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(TraceContext::of(&headers, 7), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(TraceContext::of(&headers, 7).unwrap().span, 7);
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(TraceContext::of(&headers, 7), None, "two are none");
    }
}
