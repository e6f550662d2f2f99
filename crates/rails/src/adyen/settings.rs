//! Settings of cards by Adyen, as an operator writes them.

use std::path::PathBuf;

use hyper::Uri;
use zeroize::Zeroizing;

use crate::client::{Address, CredentialFiles, SettingsError, read_secret};

/// Bytes of the key of notifications.
const HMAC_KEY_BYTES_MIN: usize = 16;

/// Longest address to which a payer would return.
const RETURN_URL_LEN_MAX: usize = 1_024;

/// Settings of cards by Adyen.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdyenSettings {
    /// Address of the Checkout API with its version, of one region: `https`, or `http` on loopback.
    /// A key holds in one region alone, so the address stays as long as the rail has its name.
    pub url: String,
    /// The merchant account at Adyen.
    pub merchant_account: String,
    /// File of the API key: one line, mode 0600 or 0400.
    pub api_key_file: PathBuf,
    /// Address of yours that Adyen demands, to which payers would return: `https`.
    pub return_url: String,
    /// File of the certificates that are trusted instead of the operating system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// File of the key with which notifications are signed: one line of hexadecimal digits, mode
    /// 0600 or 0400. Without it none is believed.
    pub hmac_key_file: Option<PathBuf>,
}

impl AdyenSettings {
    pub(super) fn credential_files(&self) -> CredentialFiles<'_> {
        CredentialFiles {
            secret: Some(("api_key_file", &self.api_key_file)),
            authorities: self.ca_file.as_deref(),
            ..CredentialFiles::default()
        }
    }

    /// The key of notifications, if there is one.
    pub(super) fn hmac_key(&self) -> Result<Option<Zeroizing<Vec<u8>>>, SettingsError> {
        let Some(path) = &self.hmac_key_file else { return Ok(None) };
        let text = read_secret("hmac_key_file", path)?;
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0 && digits.len() >= 2 * HMAC_KEY_BYTES_MIN);
        let bytes = digits.map(|digits| digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect());
        let wrong = || SettingsError::file("hmac_key_file", path, "it must hold 32 or more hexadecimal digits");
        bytes.map(Zeroizing::new).map(Some).ok_or_else(wrong)
    }

    /// The address, where all settings are sound.
    pub(super) fn checked(&self) -> Result<Address, SettingsError> {
        let is_name = |text: &str| (1..=80).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name(&self.merchant_account) {
            return Err(SettingsError::setting("merchant_account", "it has 1 to 80 visible ASCII characters"));
        }
        let uri = self.return_url.parse::<Uri>().ok().filter(|_| self.return_url.len() <= RETURN_URL_LEN_MAX);
        if uri.is_none_or(|uri| uri.scheme_str() != Some("https") || uri.host().is_none()) {
            return Err(SettingsError::setting("return_url", "it must begin with https:// and a host"));
        }
        Address::parse("url", &self.url)
    }
}
