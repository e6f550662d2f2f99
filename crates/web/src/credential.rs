//! Authentication: a merchant's API key, or an operator's token.
//!
//! Both come as `Authorization: Bearer …`; a merchant's key also as a header named `token`
//! (interface section 5). A credential is never logged, and never repeated in an answer.

use std::fmt;
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::problem::{Code, Problem, Result};

/// The API key of a request, from either header form.
///
/// A key that is missing, empty or not visible ASCII, a scheme other than Bearer, and headers that
/// disagree are all refused as [`Code::Unauthorized`].
pub fn api_key(headers: &HeaderMap) -> Result<&str> {
    let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| bearer(value.to_str().ok()?));
    let tokens = headers.get_all("token").iter().map(|value| visible(value.to_str().ok()?.trim()));
    agreed(bearers.chain(tokens))
}

/// The operators who may call, by the digests of their tokens.
///
/// Configured as one token, or as `name:token,name:token`; a token without a name belongs to
/// `operator`, an admin. Each name needs a role ([`OpsTokens::with_roles`]).
#[derive(Clone)]
pub struct OpsTokens(Vec<Operator>);

/// A text that is not shown when it is debugged, such as a token.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
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
    /// Two operators have the same token, so that the audit trail could not distinguish them.
    #[error("two operators have the same token")]
    Shared,
    /// A name has no role.
    #[error("CENTAVO_OPS_ROLES gives {0} no role: set it to a list such as {0}=admin; a role is read, decide or admin")]
    NoRole(String),
    /// A role is given to a name that has no token: it may be a misspelling.
    #[error("CENTAVO_OPS_ROLES names {0}, who has no token")]
    Unknown(String),
    /// The roles can't be read.
    #[error(
        "CENTAVO_OPS_ROLES must be name=role,name=role, each name once; a role is read, decide or admin, with +tax-ids for tax ids in reports and +reveal for registrations unmasked"
    )]
    Roles,
}

/// Role of an operator. Each role includes the rights of the roles before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Look at everything, and export it.
    Read,
    /// Decide on what waits, open disputes, and deliver webhooks again.
    Decide,
    /// Everything, as also the operator may whose token has no name.
    #[default]
    Admin,
}

impl Role {
    /// Its name in the settings and on pages.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The roles of operators by name, as configured: `ana=admin,rui=decide`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpsRoles(Vec<(String, Rights)>);

/// Rights of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// What the operator may do.
    pub role: Role,
    /// Whether the operator may read tax ids of merchants in reports. No role includes it.
    pub reads_tax_ids: bool,
    /// Whether the operator may read registrations of recipients unmasked. No role includes it.
    pub reveals: bool,
}

impl Rights {
    /// As the settings name them: `read`, `decide+tax-ids+reveal`.
    pub fn name(self) -> String {
        let right = |name: &str, has_it: bool| if has_it { format!("+{name}") } else { String::new() };
        format!("{}{}{}", self.role.name(), right("tax-ids", self.reads_tax_ids), right("reveal", self.reveals))
    }

    /// The rights of a name; `None` if it has an unknown role or right, or a right twice.
    fn named(name: &str) -> Option<Self> {
        let mut parts = name.trim().split('+');
        let role = parts.next()?;
        let role = [Role::Read, Role::Decide, Role::Admin].into_iter().find(|known| known.name() == role)?;
        let mut rights = Self { role, ..Self::default() };
        for right in parts {
            let has_it = match right {
                "tax-ids" => &mut rights.reads_tax_ids,
                "reveal" => &mut rights.reveals,
                _ => return None,
            };
            if std::mem::replace(has_it, true) {
                return None;
            }
        }
        Some(rights)
    }
}

impl OpsRoles {
    /// Each name with its rights, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Rights)> {
        self.0.iter().map(|(name, rights)| (name.as_str(), *rights))
    }
}

impl FromStr for OpsRoles {
    type Err = OpsTokensError;

    fn from_str(text: &str) -> Result<Self, OpsTokensError> {
        let mut roles: Vec<(String, Rights)> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (name, role) = item.split_once('=').ok_or(OpsTokensError::Roles)?;
            let rights = Rights::named(role).ok_or(OpsTokensError::Roles)?;
            let name = visible(name.trim()).ok_or(OpsTokensError::Roles)?;
            if roles.iter().any(|(known, _)| known == name) {
                return Err(OpsTokensError::Roles);
            }
            roles.push((name.to_owned(), rights));
        }
        Ok(Self(roles))
    }
}

/// A token that was presented and opens, as a session remembers it: the name, and the token's
/// digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedBy {
    /// The operator's name.
    pub name: String,
    /// SHA-256 of the token.
    pub token_digest: [u8; 32],
}

#[derive(Clone)]
struct Operator {
    name: String,
    token_digest: [u8; 32],
    /// None until a role is given to the name.
    rights: Option<Rights>,
}

impl OpsTokens {
    /// The name and role of the operator whose token the request carries.
    pub fn operator(&self, headers: &HeaderMap) -> Result<(&str, Role)> {
        let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| bearer(value.to_str().ok()?));
        let found = self.of_digest(&digest(agreed(bearers)?));
        found
            .and_then(|operator| Some((operator.name.as_str(), operator.rights?.role)))
            .ok_or_else(|| Problem::new(Code::Unauthorized))
    }

    /// Who has this token; `None` if it opens nothing.
    pub fn opened_by(&self, token: &str) -> Option<OpenedBy> {
        let found = self.of_digest(&digest(visible(token.trim())?))?;
        Some(OpenedBy { name: found.name.clone(), token_digest: found.token_digest })
    }

    /// The role of an operator whose token opened before; `None` if that token is gone.
    pub fn role_of(&self, opened_by: &OpenedBy) -> Option<Role> {
        let found = self.of_digest(&opened_by.token_digest)?;
        found.rights.filter(|_| found.name == opened_by.name).map(|rights| rights.role)
    }

    fn of_digest(&self, presented: &[u8; 32]) -> Option<&Operator> {
        let mut found = None;
        for operator in &self.0 {
            if bool::from(operator.token_digest.ct_eq(presented)) {
                found = Some(operator);
            }
        }
        found
    }

    /// The same operators with roles; an error when a name has none, or a role is given to an
    /// unknown name.
    pub fn with_roles(mut self, roles: &OpsRoles) -> Result<Self, OpsTokensError> {
        for (name, rights) in roles.iter() {
            let mut named = self.0.iter_mut().filter(|operator| operator.name == name).peekable();
            if named.peek().is_none() {
                return Err(OpsTokensError::Unknown(name.to_owned()));
            }
            named.for_each(|operator| operator.rights = Some(rights));
        }
        match self.0.iter().find(|operator| operator.rights.is_none()) {
            Some(operator) => Err(OpsTokensError::NoRole(operator.name.clone())),
            None => Ok(self),
        }
    }

    /// Whether the operator of this name may read tax ids of merchants in reports.
    pub fn reads_tax_ids(&self, name: &str) -> bool {
        self.rights_of(name).any(|rights| rights.reads_tax_ids)
    }

    /// Whether the operator of this name may read registrations of recipients unmasked.
    pub fn reveals(&self, name: &str) -> bool {
        self.rights_of(name).any(|rights| rights.reveals)
    }

    fn rights_of(&self, name: &str) -> impl Iterator<Item = Rights> {
        self.0.iter().filter(move |operator| operator.name == name).filter_map(|operator| operator.rights)
    }

    /// The names of the operators, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|operator| operator.name.as_str())
    }

    /// The tokens of a configured text, in its order, for whoever calls the server that is
    /// configured by it.
    pub fn in_order(text: &str) -> Result<Vec<Secret>, OpsTokensError> {
        let tokens = text.split(',').map(|item| {
            let token = item.split_once(':').map_or(item, |(_, token)| token).trim();
            visible(token).map(|token| Secret(token.to_owned())).ok_or(OpsTokensError::Token)
        });
        tokens.collect()
    }
}

const LONE_OPERATOR: &str = "operator";
/// Characters of an operator's token at least.
const TOKEN_LEN_MIN: usize = 32;

impl FromStr for OpsTokens {
    type Err = OpsTokensError;

    fn from_str(text: &str) -> Result<Self, OpsTokensError> {
        let several = text.contains(',');
        let mut operators: Vec<Operator> = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (name, token, rights) = match item.split_once(':') {
                Some((name, token)) => (name.trim(), token.trim(), None),
                None if several => return Err(OpsTokensError::Nameless),
                None => (LONE_OPERATOR, item, Some(Rights::default())),
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
            operators.push(Operator { name, token_digest, rights });
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

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

/// The one credential that all of these are; none is as wrong as a broken or a differing one.
fn agreed<'a>(credentials: impl Iterator<Item = Option<&'a str>>) -> Result<&'a str> {
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

    /// The operators of a text, each of them an admin.
    fn all_admins(configured: &str) -> OpsTokens {
        let tokens: OpsTokens = configured.parse().unwrap();
        let roles: Vec<_> = tokens.names().map(|name| format!("{name}=admin")).collect();
        let roles = roles.join(",").parse().unwrap();
        tokens.with_roles(&roles).unwrap()
    }

    #[test]
    fn a_name_without_a_role_is_nobody() {
        let named: OpsTokens = "ana:one-of-thirty-two-characters-or-more".parse().unwrap();
        let authorization = [("authorization", "Bearer one-of-thirty-two-characters-or-more")];
        assert!(named.operator(&headers(&authorization)).is_err());
        assert!(named.role_of(&named.opened_by("one-of-thirty-two-characters-or-more").unwrap()).is_none());
        let refused = named.with_roles(&OpsRoles::default()).unwrap_err();
        assert_eq!(refused, OpsTokensError::NoRole("ana".to_owned()));
        let several: OpsTokens =
            "ana:one-of-thirty-two-characters-or-more,rui:two-of-thirty-two-characters-or-more".parse().unwrap();
        let refused = several.with_roles(&"ana=admin".parse().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("rui=admin"), "{refused}");
        let lone: OpsTokens = "one-of-thirty-two-characters-or-more".parse().unwrap();
        let lone = lone.with_roles(&OpsRoles::default()).unwrap();
        assert_eq!(lone.operator(&headers(&authorization)).unwrap(), ("operator", Role::Admin));
    }

    #[test]
    fn an_operator_is_known_by_the_token() {
        let cases = [
            (
                "secret-of-thirty-two-characters-or-more",
                "Bearer secret-of-thirty-two-characters-or-more",
                Some("operator"),
            ),
            (
                "ana:one-of-thirty-two-characters-or-more,rui:two-of-thirty-two-characters-or-more",
                "Bearer one-of-thirty-two-characters-or-more",
                Some("ana"),
            ),
            (
                "ana:one-of-thirty-two-characters-or-more, rui:two-of-thirty-two-characters-or-more",
                "Bearer two-of-thirty-two-characters-or-more",
                Some("rui"),
            ),
            (
                "ana:one-of-thirty-two-characters-or-more:more",
                "Bearer one-of-thirty-two-characters-or-more:more",
                Some("ana"),
            ),
            (
                "ana:one-of-thirty-two-characters-or-more,rui:two-of-thirty-two-characters-or-more",
                "Bearer ana:one-of-thirty-two-characters-or-more",
                None,
            ),
            (
                "ana:one-of-thirty-two-characters-or-more,rui:two-of-thirty-two-characters-or-more",
                "Bearer three-of-thirty-two-characters-or-more",
                None,
            ),
            ("secret-of-thirty-two-characters-or-more", "Bearer secret-of-thirty-two-characters-or-mor", None),
        ];
        for (configured, authorization, name) in cases {
            let tokens = all_admins(configured);
            let first = format!("Bearer {}", OpsTokens::in_order(configured).unwrap()[0].reveal());
            assert!(tokens.operator(&headers(&[("authorization", &first)])).is_ok(), "{configured}");
            let found = tokens.operator(&headers(&[("authorization", authorization)])).ok();
            assert_eq!(found, name.map(|name| (name, Role::Admin)), "{configured} {authorization}");
        }
        let tokens: OpsTokens = "secret-of-thirty-two-characters-or-more".parse().unwrap();
        assert!(tokens.operator(&headers(&[("token", "secret-of-thirty-two-characters-or-more")])).is_err());
        assert!(tokens.operator(&headers(&[])).is_err());
    }

    #[test]
    fn tokens_that_cannot_be_told_apart_are_refused() {
        let cases = [
            ("", OpsTokensError::Token),
            ("a b", OpsTokensError::Token),
            ("ana:", OpsTokensError::Token),
            ("fifteen-letters", OpsTokensError::Short),
            ("ana:one-of-thirty-two-characters-or-more,rui:two", OpsTokensError::Short),
            ("ana:one-of-thirty-two-characters-or-more,", OpsTokensError::Nameless),
            ("one-of-thirty-two-characters-or-more,two", OpsTokensError::Nameless),
            (":one-of-thirty-two-characters-or-more", OpsTokensError::Name),
            (
                "ana:one-of-thirty-two-characters-or-more,rui:one-of-thirty-two-characters-or-more",
                OpsTokensError::Shared,
            ),
        ];
        for (configured, error) in cases {
            assert_eq!(configured.parse::<OpsTokens>().map(|_| ()), Err(error), "{configured}");
        }
    }

    #[test]
    fn roles_belong_to_names_that_have_a_token() {
        let tokens: OpsTokens =
            "ana:one-of-thirty-two-characters-or-more,rui:two-of-thirty-two-characters-or-more".parse().unwrap();
        let given = tokens.clone().with_roles(&"ana=admin,rui=read".parse().unwrap()).unwrap();
        for (token, role) in [
            ("one-of-thirty-two-characters-or-more", Role::Admin),
            ("two-of-thirty-two-characters-or-more", Role::Read),
        ] {
            let opened_by = given.opened_by(token).unwrap();
            assert_eq!(given.role_of(&opened_by), Some(role));
            let renamed: OpsTokens = format!("eva:{token}").parse().unwrap();
            assert_eq!(renamed.role_of(&opened_by), None, "the token has another owner now");
        }
        assert!(!given.reads_tax_ids("ana") && !given.reads_tax_ids("rui"), "no role includes it");
        let roles: OpsRoles = "rui=read+tax-ids,ana=admin".parse().unwrap();
        assert_eq!(roles.iter().map(|(_, rights)| rights.name()).collect::<Vec<_>>(), ["read+tax-ids", "admin"]);
        let given = tokens.clone().with_roles(&roles).unwrap();
        assert!(given.reads_tax_ids("rui") && !given.reads_tax_ids("ana") && !given.reads_tax_ids("eva"));
        let unknown = tokens.with_roles(&"ana=admin,rui=read,eva=read".parse().unwrap()).map(|_| ());
        assert_eq!(unknown, Err(OpsTokensError::Unknown("eva".to_owned())));
        for wrong in
            ["", "ana", "ana=", "ana=root", "=read", "ana=read,", "ana=read,ana=admin", "ana=+tax-ids", "ana=read+x"]
        {
            assert_eq!(wrong.parse::<OpsRoles>(), Err(OpsTokensError::Roles), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_debugged() {
        let (text, tokens) = (
            "secret-of-thirty-two-characters-or-more",
            "secret-of-thirty-two-characters-or-more".parse::<OpsTokens>().unwrap(),
        );
        assert!(!format!("{tokens:?} {:?}", Secret::from(text.to_owned())).contains(text));
    }
}
