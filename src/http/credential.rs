//! Authentication: a merchant's API key, or an operator's token.
//!
//! Both come as `Authorization: Bearer …`; a merchant's key also as a header named `token`
//! (interface section 5). A credential is never logged, and never repeated in an answer.

use std::fmt;
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::problem::{Code, Problem};

/// The API key of a request, from either header form.
///
/// A key that is missing, empty or not visible ASCII, a scheme other than Bearer, and headers that
/// disagree are all refused as [`Code::Unauthorized`].
pub fn api_key(headers: &HeaderMap) -> Result<&str, Problem> {
    let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| bearer(value.to_str().ok()?));
    let tokens = headers.get_all("token").iter().map(|value| visible(value.to_str().ok()?.trim()));
    agreed(bearers.chain(tokens))
}

/// The operators who may call, by the digests of their tokens.
///
/// Configured as one token, or as `name:token,name:token`; a token without a name belongs to
/// `operator`.
#[derive(Clone)]
pub struct OpsTokens(Vec<Operator>);

/// A text that is not shown when it is debugged, such as a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why operators' tokens can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpsTokensError {
    /// A token is empty or not visible ASCII.
    #[error("an operator's token must be visible ASCII characters")]
    Token,
    /// A token is so short that it can be guessed.
    #[error(
        "an operator's token must have at least {TOKEN_LEN_MIN} characters, so that nobody guesses it; `openssl rand -hex 32` makes one"
    )]
    Short,
    /// A name is empty or not visible ASCII.
    #[error("an operator's name must be visible ASCII characters")]
    Name,
    /// Several tokens are given, and one of them has no name.
    #[error("where there are several operators' tokens, each must be name:token")]
    Nameless,
    /// Two operators have the same token, so that the audit trail could not tell them apart.
    #[error("two operators have the same token")]
    Shared,
}

#[derive(Clone)]
struct Operator {
    name: String,
    token_digest: [u8; 32],
}

impl OpsTokens {
    /// The name of the operator whose token the request carries.
    pub fn operator(&self, headers: &HeaderMap) -> Result<&str, Problem> {
        let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| bearer(value.to_str().ok()?));
        let presented = digest(agreed(bearers)?);
        let mut found = None;
        for operator in &self.0 {
            if bool::from(operator.token_digest.ct_eq(&presented)) {
                found = Some(operator.name.as_str());
            }
        }
        found.ok_or_else(|| Problem::new(Code::Unauthorized))
    }

    /// The names of the operators, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|operator| operator.name.as_str())
    }

    /// The first token of a configured text, for whoever calls the server that is configured by it.
    pub fn first(text: &str) -> Result<Secret, OpsTokensError> {
        let first = text.split(',').next().unwrap_or_default().trim();
        let token = first.split_once(':').map_or(first, |(_, token)| token.trim());
        visible(token).map(|token| Secret(token.to_owned())).ok_or(OpsTokensError::Token)
    }
}

const LONE_OPERATOR: &str = "operator";
/// Characters of an operator's token at least.
const TOKEN_LEN_MIN: usize = 16;

impl FromStr for OpsTokens {
    type Err = OpsTokensError;

    fn from_str(text: &str) -> Result<Self, OpsTokensError> {
        let several = text.contains(',');
        let mut operators: Vec<Operator> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (name, token) = match item.split_once(':') {
                Some((name, token)) => (name.trim(), token.trim()),
                None if several => return Err(OpsTokensError::Nameless),
                None => (LONE_OPERATOR, item),
            };
            let name = visible(name).ok_or(OpsTokensError::Name)?.to_owned();
            let token = visible(token).ok_or(OpsTokensError::Token)?;
            if token.len() < TOKEN_LEN_MIN {
                return Err(OpsTokensError::Short);
            }
            let token_digest = digest(token);
            if operators.iter().any(|operator| operator.token_digest == token_digest) {
                return Err(OpsTokensError::Shared);
            }
            operators.push(Operator { name, token_digest });
        }
        Ok(OpsTokens(operators))
    }
}

impl fmt::Debug for OpsTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret(text)
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

/// The one credential that all of these are; none is as wrong as a broken or a differing one.
fn agreed<'a>(credentials: impl Iterator<Item = Option<&'a str>>) -> Result<&'a str, Problem> {
    let mut agreed = None;
    for credential in credentials {
        match (credential, agreed) {
            (Some(credential), None) => agreed = Some(credential),
            (Some(credential), Some(earlier)) if credential == earlier => {}
            _ => return Err(Problem::new(Code::Unauthorized)),
        }
    }
    agreed.ok_or_else(|| Problem::new(Code::Unauthorized))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, credential) = value.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { visible(credential.trim()) } else { None }
}

fn visible(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    type Lines<'a> = &'a [(&'static str, &'a str)];

    fn headers(lines: Lines<'_>) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_key_comes_in_either_header() {
        let cases: [(Lines<'_>, Option<&str>); 16] = [
            (&[("authorization", "Bearer test_a")], Some("test_a")),
            (&[("authorization", "bEARER   test_a ")], Some("test_a")),
            (&[("token", "test_a")], Some("test_a")),
            (&[("authorization", "Bearer test_a"), ("token", "test_a")], Some("test_a")),
            (&[("authorization", "Bearer test_a"), ("authorization", "Bearer test_a")], Some("test_a")),
            (&[("authorization", "Bearer test_a"), ("token", "test_b")], None),
            (&[("token", "test_a"), ("token", "test_b")], None),
            (&[("authorization", "Basic dGVzdA=="), ("token", "test_a")], None),
            (&[("authorization", "Basic dGVzdA==")], None),
            (&[("authorization", "Bearer")], None),
            (&[("authorization", "Bearer ")], None),
            (&[("authorization", "test_a")], None),
            (&[("authorization", "Bearer test a")], None),
            (&[("token", "")], None),
            (&[("token", "çç")], None),
            (&[], None),
        ];
        for (lines, key) in cases {
            match (api_key(&headers(lines)), key) {
                (Ok(found), Some(key)) => assert_eq!(found, key, "{lines:?}"),
                (Err(problem), None) => assert_eq!(problem.code(), Code::Unauthorized, "{lines:?}"),
                (found, key) => panic!("{lines:?}: {found:?} instead of {key:?}"),
            }
        }
    }

    #[test]
    fn an_operator_is_known_by_the_token() {
        let cases = [
            ("secret-of-sixteen-letters", "Bearer secret-of-sixteen-letters", Some("operator")),
            ("ana:one-of-sixteen-letters,rui:two-of-sixteen-letters", "Bearer one-of-sixteen-letters", Some("ana")),
            ("ana:one-of-sixteen-letters, rui:two-of-sixteen-letters", "Bearer two-of-sixteen-letters", Some("rui")),
            ("ana:one-of-sixteen-letters:more", "Bearer one-of-sixteen-letters:more", Some("ana")),
            ("ana:one-of-sixteen-letters,rui:two-of-sixteen-letters", "Bearer ana:one-of-sixteen-letters", None),
            ("ana:one-of-sixteen-letters,rui:two-of-sixteen-letters", "Bearer three-of-sixteen-letters", None),
            ("secret-of-sixteen-letters", "Bearer secret-of-sixteen-letter", None),
        ];
        for (configured, authorization, name) in cases {
            let tokens: OpsTokens = configured.parse().unwrap();
            let first = format!("Bearer {}", OpsTokens::first(configured).unwrap().reveal());
            assert!(tokens.operator(&headers(&[("authorization", &first)])).is_ok(), "{configured}");
            let found = tokens.operator(&headers(&[("authorization", authorization)])).ok();
            assert_eq!(found, name, "{configured} {authorization}");
        }
        let tokens: OpsTokens = "secret-of-sixteen-letters".parse().unwrap();
        assert!(tokens.operator(&headers(&[("token", "secret-of-sixteen-letters")])).is_err());
        assert!(tokens.operator(&headers(&[])).is_err());
    }

    #[test]
    fn tokens_that_cannot_be_told_apart_are_refused() {
        let cases = [
            ("", OpsTokensError::Token),
            ("a b", OpsTokensError::Token),
            ("ana:", OpsTokensError::Token),
            ("fifteen-letters", OpsTokensError::Short),
            ("ana:one-of-sixteen-letters,rui:two", OpsTokensError::Short),
            ("ana:one-of-sixteen-letters,", OpsTokensError::Nameless),
            ("one-of-sixteen-letters,two", OpsTokensError::Nameless),
            (":one-of-sixteen-letters", OpsTokensError::Name),
            ("ana:one-of-sixteen-letters,rui:one-of-sixteen-letters", OpsTokensError::Shared),
        ];
        for (configured, error) in cases {
            assert_eq!(configured.parse::<OpsTokens>().map(|_| ()), Err(error), "{configured}");
        }
    }

    #[test]
    fn secrets_are_not_debugged() {
        let (text, tokens) = ("secret-of-sixteen-letters", "secret-of-sixteen-letters".parse::<OpsTokens>().unwrap());
        assert!(!format!("{tokens:?} {:?}", Secret::from(text.to_owned())).contains(text));
    }
}
