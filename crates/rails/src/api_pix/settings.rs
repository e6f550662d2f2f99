//! Settings of an institution, as an operator writes them, and what they come to with the preset of
//! the dialect.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::client::{Address, CredentialFiles, SettingsError};

use super::dialects::{Dialect, Login, Preset, TokenAddress};

/// Settings of an institution that speaks API Pix. What is absent is the dialect's.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiPixSettings {
    /// The institution's way to speak it.
    pub dialect: Dialect,
    /// Address of the API: `https`, or `http` on loopback. Without it the dialect's production.
    pub url: Option<String>,
    /// Address at which tokens are asked for.
    pub token_url: Option<String>,
    /// How tokens are asked for.
    pub token_auth: Option<Login>,
    /// The client's id at the institution.
    pub client_id: String,
    /// File of the client's secret: one line, mode 0600 or 0400.
    pub client_secret_file: Option<PathBuf>,
    /// File of the client's certificate chain, PEM, mode 0600 or 0400.
    pub certificate_file: Option<PathBuf>,
    /// File of the certificate's key, PEM, mode 0600 or 0400.
    pub key_file: Option<PathBuf>,
    /// File of the certificates that are trusted instead of the operating system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// The receiver's PIX key (`chave`).
    pub key: String,
    /// Scopes of a token, between blanks.
    pub scope: Option<String>,
    /// The account, where the institution wants it in a header.
    pub account: Option<String>,
    /// More headers of every call.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// More query parameters of every call.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// Paths that are not the dialect's.
    #[serde(default)]
    pub paths: ApiPixPaths,
}

/// Paths of resources, behind the address of the API.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiPixPaths {
    /// Of charges: `/v2/cob`.
    pub cob: Option<String>,
    /// Of payments: `/v2/pix`.
    pub pix: Option<String>,
    /// Of callback addresses: `/v2/webhook`.
    pub webhook: Option<String>,
}

impl ApiPixSettings {
    pub(super) fn credential_files(&self) -> CredentialFiles<'_> {
        CredentialFiles {
            secret: self.client_secret_file.as_deref().map(|path| ("client_secret_file", path)),
            certificate: self.certificate_file.as_deref(),
            key: self.key_file.as_deref(),
            authorities: self.ca_file.as_deref(),
        }
    }
}

/// Keys, headers and parameters may be secret or personal.
impl fmt::Debug for ApiPixSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiPixSettings").field("dialect", &self.dialect).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Settings and preset together: what the calls go by.
pub(super) struct Institution {
    pub(super) preset: &'static Preset,
    pub(super) api: Address,
    pub(super) token: Address,
    pub(super) login: Login,
    pub(super) client_id: String,
    pub(super) scope: Option<String>,
    pub(super) key: String,
    /// Of every call but that for a token.
    pub(super) headers: HeaderMap,
    /// Of every call but that for a token.
    pub(super) query: Vec<(String, String)>,
    pub(super) cob: String,
    pub(super) pix: String,
    pub(super) webhook: String,
}

/// A PIX key has at most this many characters.
const KEY_LEN_MAX: usize = 77;

impl Institution {
    /// Checks the settings, without their files.
    pub(super) fn of(settings: &ApiPixSettings) -> Result<Self, SettingsError> {
        let preset = settings.dialect.preset();
        let absent = |setting, defect: &str| SettingsError::setting(setting, defect);
        let url = settings.url.as_deref().or(preset.url).ok_or_else(|| absent("url", "this dialect needs it"))?;
        let api = Address::parse("url", url)?;
        let token = match (&settings.token_url, preset.token) {
            (Some(url), _) => Address::parse("token_url", url)?,
            (None, TokenAddress::Path(path)) => api.at(path),
            (None, TokenAddress::Address(address)) if settings.url.is_none() => Address::parse("token_url", address)?,
            // A secret of a test environment is not for the host of production.
            (None, TokenAddress::Address(_)) => {
                return Err(absent("token_url", "this dialect asks another host for tokens: with url it needs both"));
            }
        };
        let login = settings.token_auth.unwrap_or(preset.login);
        if settings.client_secret_file.is_none() && login != Login::Certificate {
            return Err(absent("client_secret_file", "a token is asked for with it"));
        }
        if settings.certificate_file.is_some() != settings.key_file.is_some() {
            return Err(absent("certificate_file", "it goes with key_file"));
        }
        if settings.certificate_file.is_none() && login == Login::Certificate && token.is_tls() {
            return Err(absent("certificate_file", "a token is asked for with it"));
        }
        let is_visible = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible(&settings.client_id) {
            return Err(absent("client_id", "it is visible ASCII"));
        }
        if !is_visible(&settings.key) || settings.key.len() > KEY_LEN_MAX {
            return Err(absent("key", "it is 1 to 77 visible ASCII characters"));
        }
        let paths = &settings.paths;
        Ok(Self {
            preset,
            login,
            client_id: settings.client_id.clone(),
            scope: settings.scope.as_deref().or(preset.scope).map(str::to_owned).filter(|scope| !scope.is_empty()),
            key: settings.key.clone(),
            headers: headers(settings, preset)?,
            query: settings.query.clone().into_iter().collect(),
            cob: path("paths.cob", paths.cob.as_deref().unwrap_or(preset.cob))?,
            pix: path("paths.pix", paths.pix.as_deref().unwrap_or(preset.pix))?,
            webhook: path("paths.webhook", paths.webhook.as_deref().unwrap_or(preset.webhook))?,
            api,
            token,
        })
    }
}

/// Headers that the adapter writes itself.
const OWN_HEADERS: [&str; 7] =
    ["authorization", "host", "content-type", "content-length", "transfer-encoding", "connection", "accept"];

fn headers(settings: &ApiPixSettings, preset: &Preset) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        let parsed = (HeaderName::try_from(name).ok()).zip(HeaderValue::try_from(value).ok());
        let (header, mut value) =
            parsed.ok_or_else(|| SettingsError::setting("headers", format!("{name:?} is none")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
        Ok(())
    };
    for (name, value) in preset.headers {
        match *value {
            "{client_id}" => add(name, &settings.client_id)?,
            "{account}" => settings.account.iter().try_for_each(|account| add(name, account))?,
            value => add(name, value)?,
        }
    }
    for (name, value) in &settings.headers {
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(SettingsError::setting("headers", format!("{name:?} is written by Centavo itself")));
        }
        add(name, value)?;
    }
    Ok(headers)
}

fn path(setting: &'static str, path: &str) -> Result<String, SettingsError> {
    let is_sound = path.starts_with('/')
        && !path.ends_with('/')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte));
    let wrong = || SettingsError::setting(setting, "it begins with a slash, ends with none, and is plain ASCII");
    is_sound.then(|| path.to_owned()).ok_or_else(wrong)
}
