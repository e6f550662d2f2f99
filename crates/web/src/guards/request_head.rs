//! Head of a request: sizes, one host, one framing. What is wrong is refused before the request is
//! routed.

use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Version};

use crate::problem::{Code, Problem, Result};

/// Refuses a head that is too large (431), or that two servers could read differently (400).
pub fn check(version: Version, headers: &HeaderMap) -> Result<()> {
    fits(headers)?;
    names_one_host(version, headers)?;
    is_framed_once(headers)
}

/// Most bytes of the headers of a request. hyper, which reads them, has a limit of its own, above
/// this one.
pub const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// Most headers of a request. hyper has the same limit.
const HEADERS_MAX: usize = 100;

/// Refuses headers that are too large (RFC 6585, 5).
fn fits(headers: &HeaderMap) -> Result<()> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes <= HEADERS_BYTES_MAX && headers.len() <= HEADERS_MAX {
        return Ok(());
    }
    let detail = format!("There are more than {HEADERS_MAX} headers, or more than {HEADERS_BYTES_MAX} bytes of them.");
    Err(Problem::new(Code::HeadersTooLarge).detail(detail))
}

/// Refuses a request that does not say once, and in the characters of a name, which host it is for
/// (RFC 9112, 3.2). Only HTTP/1.0 may leave it out.
fn names_one_host(version: Version, headers: &HeaderMap) -> Result<()> {
    let mut hosts = headers.get_all(HOST).iter();
    let (code, message) = match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => return Ok(()),
        (Some(host), None) if host.as_bytes().iter().all(is_in_host) => return Ok(()),
        (None, _) => ("required", "Host é obrigatório"),
        (Some(_), None) => ("not_a_host", "Host deve ser um nome ou endereço"),
        (Some(_), Some(_)) => ("ambiguous", "Host só pode vir uma vez"),
    };
    let problem = Problem::new(Code::ValidationFailed).message(message).field("Host", code, message);
    Err(problem.detail("A request must have exactly one Host header (RFC 9112, section 3.2)."))
}

/// Refuses a body whose transfer coding is anything but `chunked`, named once (RFC 9112, 6.1): two
/// servers could disagree on where it ends.
fn is_framed_once(headers: &HeaderMap) -> Result<()> {
    let values = headers.get_all(TRANSFER_ENCODING).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b',');
    if values.is_empty() || values.trim_ascii().eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let message = "Transfer-Encoding deve ser chunked, uma vez";
    Err(Problem::new(Code::ValidationFailed).message(message).field("Transfer-Encoding", "ambiguous", message))
}

/// True for a character that the name of a host may have.
fn is_in_host(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(byte)
}
