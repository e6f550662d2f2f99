//! TLS of a listener: its certificate and key, read from PEM files at the start and again
//! at SIGHUP.
//!
//! Connections speak HTTP/1.1 over TLS 1.2 or 1.3. A handshake has as long as the head of a
//! request. [`super::outgoing`] stands below TLS, so a client that does not read is cut here too.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::metrics::gauge::Gauge;
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Files of a listener's certificate chain and private key, PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, with the listener's own certificate first.
    pub certificates: PathBuf,
    /// The key of the first certificate: PKCS #8, PKCS #1 or SEC1.
    pub key: PathBuf,
}

/// Why a listener cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no certificate or key.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The defect.
        source: pem::Error,
    },
    /// The first certificate is not X.509, or the key does not fit it.
    #[error("{path}: {what}")]
    Unusable {
        /// The file of the certificates.
        path: PathBuf,
        /// The defect.
        what: String,
    },
}

/// A certificate chain and its key, as they were read.
pub struct LoadedCertificate {
    config: Arc<ServerConfig>,
    /// End of the first certificate's validity, seconds since 1970.
    pub expires_at: i64,
}

impl TlsFiles {
    /// Reads both files, and checks that they belong together.
    pub fn load(&self) -> Result<LoadedCertificate, TlsError> {
        self.load_for(None)
    }

    /// Reads both files; with `authority` clients must show a certificate that one of that file
    /// signed.
    pub fn load_for(&self, authority: Option<&PathBuf>) -> Result<LoadedCertificate, TlsError> {
        let chain = chain(&self.certificates)?;
        let unusable = |what: String| TlsError::Unusable { path: self.certificates.clone(), what };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|source| TlsError::Unreadable { path: self.key.clone(), source })?;
        let (_, first) =
            X509Certificate::from_der(&chain[0]).map_err(|error| unusable(format!("no certificate: {error}")))?;
        let expires_at = first.validity().not_after.timestamp();
        let verifier = match authority {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(authority) => client_verifier(authority)?,
        };
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_client_cert_verifier(verifier).with_single_cert(chain, key));
        let mut config = config.map_err(|error| unusable(format!("{error} (key: {})", self.key.display())))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(LoadedCertificate { config: Arc::new(config), expires_at })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a file as those that are trusted, and no others.
fn only(authority: &PathBuf) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(authority)? {
        let unusable = |error: rustls::Error| TlsError::Unusable { path: authority.clone(), what: error.to_string() };
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(Arc::new(roots))
}

fn client_verifier(authority: &PathBuf) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let built = WebPkiClientVerifier::builder_with_provider(only(authority)?, provider()).build();
    built.map_err(|error| TlsError::Unusable { path: authority.clone(), what: error.to_string() })
}

/// The certificates of a PEM file; one at least.
pub fn chain(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.clone(), source };
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<_, _>>).map_err(unreadable)?;
    if chain.is_empty() { Err(unreadable(pem::Error::NoItemsFound)) } else { Ok(chain) }
}

/// Certificates that a command trusts at the server of its own configuration, and the name that the
/// server's certificate has.
pub struct Trust {
    /// Configuration of the client.
    pub config: Arc<ClientConfig>,
    /// The first DNS name of the certificate; `None` if it has none.
    pub name: Option<String>,
}

/// Trusts the certificates of a listener's file, and those that the operating system trusts.
pub fn trust(certificates: &PathBuf) -> Result<Trust, TlsError> {
    let chain = chain(certificates)?;
    let unusable = |what: String| TlsError::Unusable { path: certificates.clone(), what };
    let (_, first) =
        X509Certificate::from_der(&chain[0]).map_err(|error| unusable(format!("no certificate: {error}")))?;
    let names = first.subject_alternative_name().ok().flatten();
    let mut names = names.iter().flat_map(|names| &names.value.general_names);
    let name = names.find_map(|name| match name {
        GeneralName::DNSName(name) if !name.starts_with('*') => Some((*name).to_owned()),
        _ => None,
    });
    Ok(Trust { config: trusting(Some(certificates))?, name })
}

/// The configuration of a client that trusts the certificates of the operating system, and those of
/// a file.
pub fn trusting(certificates: Option<&PathBuf>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(load_native_certs().certs);
    roots.add_parsable_certificates(certificates.map(chain).transpose()?.unwrap_or_default());
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| TlsError::Unusable {
        path: certificates.cloned().unwrap_or_default(),
        what: error.to_string(),
    })?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Bytes of answers that TLS holds for a connection whose client does not read.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// TLS of a listener, whose certificate can be exchanged while it serves.
pub struct Tls {
    files: TlsFiles,
    authority: Option<PathBuf>,
    config: RwLock<Arc<ServerConfig>>,
    expires_at: Gauge,
}

impl Tls {
    /// Reads the files. The gauge gets the end of the certificate's validity, seconds since 1970.
    pub fn open(files: TlsFiles, expires_at: Gauge) -> Result<Self, TlsError> {
        Self::open_for(files, None, expires_at)
    }

    /// The same; with `authority` clients must show a certificate that one of that file signed.
    pub fn open_for(files: TlsFiles, authority: Option<PathBuf>, expires_at: Gauge) -> Result<Self, TlsError> {
        let loaded = files.load_for(authority.as_ref())?;
        expires_at.set(loaded.expires_at);
        Ok(Self { files, authority, config: RwLock::new(loaded.config), expires_at })
    }

    /// Reads the files again, for connections from now on. When that fails, the present certificate
    /// stays.
    pub fn reload(&self) {
        let path = self.files.certificates.display();
        match self.files.load_for(self.authority.as_ref()) {
            Ok(loaded) => {
                self.expires_at.set(loaded.expires_at);
                *self.config.write() = loaded.config;
                tracing::info!(%path, "the certificate was read again");
            }
            Err(error) => {
                tracing::error!(%error, %path, "the certificate could not be read again, and stays as it was")
            }
        }
    }

    /// The handshake of a connection.
    pub(super) async fn accept<S>(&self, stream: S) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config.read()));
        acceptor.accept_with(stream, |session| session.set_buffer_limit(Some(WAITING_BYTES_MAX))).await
    }
}

/// TLS in which both sides show a certificate of the same authority. This side is a server, and a
/// client with the same certificate.
pub struct MutualTls {
    /// This side as a server.
    pub server: Arc<Tls>,
    client: RwLock<Arc<ClientConfig>>,
}

impl MutualTls {
    /// Reads the files. The gauge gets the end of the certificate's validity, seconds since 1970.
    pub fn open(own: TlsFiles, authority: PathBuf, expires_at: Gauge) -> Result<Self, TlsError> {
        let client = RwLock::new(client_of(&own, &authority)?);
        let server = Arc::new(Tls::open_for(own, Some(authority), expires_at)?);
        Ok(Self { server, client })
    }

    /// This side as a client.
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client.read())
    }

    /// Reads the files again, for connections from now on. When that fails, the present
    /// certificates stay.
    pub fn reload(&self) {
        self.server.reload();
        if let Some(authority) = &self.server.authority
            && let Ok(client) = client_of(&self.server.files, authority)
        {
            *self.client.write() = client;
        }
    }
}

fn client_of(own: &TlsFiles, authority: &PathBuf) -> Result<Arc<ClientConfig>, TlsError> {
    let (chain, trusted) = (chain(&own.certificates)?, only(authority)?);
    let key = PrivateKeyDer::from_pem_file(&own.key)
        .map_err(|source| TlsError::Unreadable { path: own.key.clone(), source })?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_root_certificates(trusted).with_client_auth_cert(chain, key));
    let config = config.map_err(|error| TlsError::Unusable { path: own.certificates.clone(), what: error.to_string() });
    Ok(Arc::new(config?))
}
