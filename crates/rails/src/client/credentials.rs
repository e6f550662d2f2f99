//! What the client shows: its certificate, and its secret. Both are read from files at the start,
//! and again when an operator asks.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use super::error::SettingsError;

/// Files of credentials, as the settings name them.
#[derive(Default)]
pub(crate) struct CredentialFiles<'a> {
    /// The secret, with the name of its setting: one line.
    pub(crate) secret: Option<(&'static str, &'a Path)>,
    /// `certificate_file`: the client's certificate chain, PEM.
    pub(crate) certificate: Option<&'a Path>,
    /// `key_file`: the certificate's key, PEM.
    pub(crate) key: Option<&'a Path>,
    /// `ca_file`: certificates that are trusted instead of the operating system's, PEM.
    pub(crate) authorities: Option<&'a Path>,
}

/// Certificate, trust and secret, as they were read.
pub(crate) struct Credentials {
    /// Trust of the hosts, with the certificate that is shown to them.
    pub(crate) tls: Arc<ClientConfig>,
    /// End of the certificate's validity, seconds since 1970; none without one.
    pub(crate) certificate_expires_at: Option<i64>,
    /// The client's secret.
    pub(crate) secret: Option<Zeroizing<String>>,
}

impl Credentials {
    /// Reads the files.
    pub(crate) fn read(files: &CredentialFiles<'_>) -> Result<Self, SettingsError> {
        let secret = files.secret.map(|(setting, path)| read_secret(setting, path)).transpose()?;
        let roots = roots(files.authorities)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| SettingsError::setting("url", error.to_string()))?;
        let config = config.with_root_certificates(roots);
        let (mut tls, certificate_expires_at) = match files.certificate.zip(files.key) {
            None => (config.with_no_client_auth(), None),
            Some((certificate, key)) => {
                let (chain, expires_at) = chain("certificate_file", certificate, true)?;
                let key_text = read_private("key_file", key)?;
                let key_wrong = |error: &dyn fmt::Display| SettingsError::file("key_file", key, error);
                let secret_key = PrivateKeyDer::from_pem_slice(&key_text).map_err(|error| key_wrong(&error))?;
                let tls = config.with_client_auth_cert(chain, secret_key).map_err(|error| key_wrong(&error))?;
                (tls, Some(expires_at))
            }
        };
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(tls), certificate_expires_at, secret })
    }
}

/// The secret is one line; its end does not count.
pub(crate) fn read_secret(setting: &'static str, path: &Path) -> Result<Zeroizing<String>, SettingsError> {
    let bytes = read_private(setting, path)?;
    let text = std::str::from_utf8(&bytes).ok().map(|text| text.trim_end_matches(['\r', '\n']));
    let sound = text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()));
    let secret = sound.map(|text| Zeroizing::new(text.to_owned()));
    secret.ok_or_else(|| SettingsError::file(setting, path, "it must hold one line of visible ASCII"))
}

/// The certificates of a PEM file, and the end of the first one's validity, seconds since 1970.
fn chain(
    setting: &'static str,
    path: &Path,
    is_private: bool,
) -> Result<(Vec<CertificateDer<'static>>, i64), SettingsError> {
    let wrong = |error: &dyn fmt::Display| SettingsError::file(setting, path, error);
    let text = match is_private {
        true => read_private(setting, path)?,
        false => fs::read(path).map(Zeroizing::new).map_err(|error| wrong(&error))?,
    };
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    let first = chain.first().ok_or_else(|| wrong(&"it has no certificate"))?;
    let (_, parsed) = X509Certificate::from_der(first).map_err(|_| wrong(&"its first certificate is no X.509"))?;
    let expires_at = parsed.validity().not_after.timestamp();
    Ok((chain, expires_at))
}

/// The certificates of a file, or those that the operating system trusts.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        roots.add_parsable_certificates(load_native_certs().certs);
        return Ok(roots);
    };
    for certificate in chain("ca_file", path, false)?.0 {
        roots.add(certificate).map_err(|error| SettingsError::file("ca_file", path, error))?;
    }
    Ok(roots)
}

/// Bytes of a file of secrets.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Reads a file that only its owner may read.
fn read_private(setting: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, SettingsError> {
    let wrong = |defect: &dyn fmt::Display| SettingsError::file(setting, path, defect);
    let metadata = fs::metadata(path).map_err(|error| wrong(&error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if !matches!(mode, 0o600 | 0o400) {
        return Err(wrong(&format!("its mode is {mode:04o}; it must be 0600 or 0400")));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(wrong(&"it is too large"));
    }
    fs::read(path).map(Zeroizing::new).map_err(|error| wrong(&error))
}
