//! Certificates of tests: authorities, what they sign, and TLS of a player that wants a client
//! certificate.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::DnType;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Signs certificates.
pub type Authority = rcgen::CertifiedIssuer<'static, rcgen::KeyPair>;

/// A new authority.
pub fn authority() -> Authority {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority of tests");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a name, and its key, as PEM.
pub fn certificate(name: &str, signed_by: &Authority) -> [String; 2] {
    certificate_of(&[name], signed_by)
}

/// A certificate for several names.
pub fn certificate_of(names: &[&str], signed_by: &Authority) -> [String; 2] {
    certificate_for(names, signed_by, None)
}

/// A certificate that ends after a time, where one is given.
pub fn certificate_for(names: &[&str], signed_by: &Authority, life: Option<Duration>) -> [String; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names.clone()).unwrap();
    // Another name than the authority's, which would look like a certificate signed by itself.
    params.distinguished_name.push(DnType::CommonName, names.concat());
    if let Some(life) = life {
        params.not_after = (SystemTime::now() + life).into();
    }
    [params.signed_by(&key, signed_by).unwrap().pem(), key.serialize_pem()]
}

/// TLS of a server that wants a client certificate of an authority.
pub fn server(own: &[String; 2], accepts: &Authority) -> Arc<ServerConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(accepts.der().clone()).unwrap();
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(own[0].as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(own[1].as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
    // A connection that is resumed shows no certificate, and would outlive it.
    config.send_tls13_tickets = 0;
    Arc::new(config)
}
