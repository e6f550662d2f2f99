//! Settings of the peers' listener.

use std::net::SocketAddr;
use std::path::PathBuf;

use web::tls::TlsFiles;

/// Settings of the listener that serves the other processes of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSettings {
    /// Address of the listener.
    pub listen: SocketAddr,
    /// How the other processes reach it: a host and a port.
    pub address: String,
    /// TLS of both sides; plain HTTP without it, on this machine only.
    pub tls: Option<PeerTlsFiles>,
}

/// Certificates of mutual TLS, PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTlsFiles {
    /// Certificate chain and key of this process, which it shows as a server and as a client.
    pub own: TlsFiles,
    /// Certificates of the authority that signed those of the other processes.
    pub authority: PathBuf,
}

/// The host of an address; `None` if it is not a host and a port.
pub fn host(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    (is_host && port.parse::<u16>().is_ok()).then(|| bare.unwrap_or(host))
}
