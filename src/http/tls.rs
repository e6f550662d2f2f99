//! TLS of a listener: its certificate and key, read from PEM files at the start and again
//! at SIGHUP.
//!
//! Connections speak HTTP/2 or HTTP/1.1, as the client chooses, over TLS 1.2 or 1.3. A handshake
//! has as long as the head of a request. [`super::outgoing`] stands below TLS, so a client that
//! does not read is cut here too.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::metrics::gauge::Gauge;
use rustls_native_certs::load_native_certs;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
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
pub struct Loaded {
    config: Arc<ServerConfig>,
    /// End of the first certificate's validity, seconds since 1970.
    pub expires_at: i64,
}

impl TlsFiles {
    /// Reads both files, and checks that they belong together.
    pub fn load(&self) -> Result<Loaded, TlsError> {
        let chain = chain(&self.certificates)?;
        let unusable = |what: String| TlsError::Unusable { path: self.certificates.clone(), what };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|source| TlsError::Unreadable { path: self.key.clone(), source })?;
        let (_, first) =
            X509Certificate::from_der(&chain[0]).map_err(|error| unusable(format!("no certificate: {error}")))?;
        let expires_at = first.validity().not_after.timestamp();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| unusable(format!("{error} (key: {})", self.key.display())))?;
        config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(Loaded { config: Arc::new(config), expires_at })
    }
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
    /// The first DNS name of the certificate; none where it has none.
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| TlsError::Unusable {
        path: certificates.cloned().unwrap_or_default(),
        what: error.to_string(),
    })?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Name of HTTP/2 in a handshake (RFC 9113, 3.2).
const HTTP_2: &[u8] = b"h2";

/// True when the client has chosen HTTP/2.
pub(super) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP_2)
}

/// Bytes of answers that TLS holds for a connection whose client does not read.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// TLS of a listener, whose certificate can be exchanged while it serves.
pub struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
    expires_at: Gauge,
}

impl Tls {
    /// Reads the files. The gauge gets the end of the certificate's validity, seconds since 1970.
    pub fn open(files: TlsFiles, expires_at: Gauge) -> Result<Self, TlsError> {
        let loaded = files.load()?;
        expires_at.set(loaded.expires_at);
        Ok(Self { files, config: RwLock::new(loaded.config), expires_at })
    }

    /// Reads the files again, for connections from now on. When that fails, the present certificate
    /// stays.
    pub fn reload(&self) {
        let path = self.files.certificates.display();
        match self.files.load() {
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
