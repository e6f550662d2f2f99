//! `Idempotency-Key`: the same request twice is carried out once. A key is optional on every POST, kept for 24 hours, within one
//! account and route. What is kept is the answer of a request that committed a Record, and nothing else: the answer is written
//! again from the Record's facts.
//!
//! The look-up comes before the command is sent; the actor knows the keys that were used since ([`KeyLookup`]).

use std::convert::Infallible;
use std::sync::Arc;

use actors::resident::KeyLookup;
use actors::store::Sequence;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use ledger::id::LedgerId;
use ledger::record::{IDEMPOTENCY_KEPT_MS, Idempotency, Record};
use serde_json::value::RawValue;

use super::app::App;
use super::problem::{Code, Problem};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const KEY_LEN_MAX: usize = 255;

/// How often a key is looked up again when another request with it was decided meanwhile.
pub const LOOK_UPS_MAX: usize = 8;

/// What the look-up of a request's key found.
pub enum Keyed {
    /// The request goes ahead; with its key, if it has one.
    Fresh(Option<KeyLookup>),
    /// The request was carried out: its Record.
    Replay(Arc<Record>, Sequence),
}

/// The header as it was sent; not looked at yet, so that what is wrong with it is told after what comes before.
pub struct SentKey {
    first: Option<HeaderValue>,
    has_more: bool,
}

impl<S: Sync> FromRequestParts<S> for SentKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut keys = parts.headers.get_all(KEY).iter();
        Ok(Self { first: keys.next().cloned(), has_more: keys.next().is_some() })
    }
}

impl SentKey {
    /// True when there was one, valid or not.
    pub fn is_given(&self) -> bool {
        self.first.is_some()
    }
}

/// The key and body of a request, as kept.
pub struct Key(Option<Idempotency>);

impl Key {
    /// Reads the request's key. `secret` is the part of the body that must not be kept, not even as a digest: a card's security
    /// code. `account` and `route` are the key's scope.
    pub fn of(
        app: &App,
        sent: &SentKey,
        account: &str,
        route: &str,
        body: &[u8],
        secret: Option<&RawValue>,
    ) -> Result<Self, Problem> {
        let Some(key) = &sent.first else { return Ok(Self(None)) };
        let fits =
            (1..=KEY_LEN_MAX).contains(&key.len()) && key.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte));
        if !fits || sent.has_more {
            let problem = Problem::new(Code::ValidationFailed).message("Idempotency-Key inválida");
            return Err(problem.detail("Idempotency-Key must be one header of 1 to 255 visible ASCII characters."));
        }
        let keyring = app.engine.keyring();
        let scope = [account.as_bytes(), route.as_bytes(), key.as_bytes()];
        let (before, after) = around(body, secret);
        Ok(Self(Some(Idempotency {
            key: keyring.fingerprint("idempotency-key", &scope),
            body: keyring.fingerprint("idempotency-body", &[before, after]),
        })))
    }

    /// Looks the key up in the published journal.
    pub fn look_up(&self, app: &App, owner: LedgerId) -> Result<Keyed, Problem> {
        let Some(idempotency) = self.0 else { return Ok(Keyed::Fresh(None)) };
        let found = app.engine.read_model().find_key(owner, idempotency.key)?;
        let fresh = Keyed::Fresh(Some(KeyLookup { idempotency, looked_up_through: found.looked_up_through }));
        let Some(sequence) = found.sequence else { return Ok(fresh) };
        let record = app.engine.record(sequence)?;
        if record.effective_at.plus_ms(IDEMPOTENCY_KEPT_MS) <= app.engine.now() {
            return Ok(fresh);
        }
        match record.idempotency {
            Some(kept) if kept.body == idempotency.body => Ok(Keyed::Replay(Arc::new(record), sequence)),
            _ => Err(Problem::new(Code::IdempotencyKeyReused)),
        }
    }
}

/// Marks an answer as given before.
pub fn replayed(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// The body before and after a part of it.
fn around<'a>(body: &'a [u8], secret: Option<&RawValue>) -> (&'a [u8], &'a [u8]) {
    let begins = secret.map(|secret| (secret.get().as_ptr() as usize).wrapping_sub(body.as_ptr() as usize));
    match (begins, secret) {
        (Some(from), Some(secret)) if from + secret.get().len() <= body.len() => {
            (&body[..from], &body[from + secret.get().len()..])
        }
        _ => (body, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_security_code_is_left_out() {
        let body = br#"{"card": {"cvv": "123", "number": "4"}}"#;
        let value: std::collections::HashMap<&str, std::collections::HashMap<&str, &RawValue>> =
            serde_json::from_slice(body).unwrap();
        let (before, after) = around(body, Some(value["card"]["cvv"]));
        assert_eq!([before, after].concat(), br#"{"card": {"cvv": , "number": "4"}}"#);
        assert_eq!(around(body, None).0, body);
    }
}
