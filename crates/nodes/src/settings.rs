//! Settings of the peers' listener.

use std::net::{IpAddr, SocketAddr};
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

/// Why the settings of the peers' listener are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerSettingsError {
    /// A setting has no meaning without a listener.
    #[error("{0} has no meaning without CENTAVO_PEER_LISTEN")]
    NoListener(&'static str),
    /// The store is in the data directory of one process.
    #[error("CENTAVO_PEER_LISTEN wants a PostgreSQL store (CENTAVO_STORE), which several processes share")]
    NoDatabase,
    /// Some settings of TLS are lacking.
    #[error(
        "CENTAVO_PEER_TLS_CERT, CENTAVO_PEER_TLS_KEY and CENTAVO_PEER_TLS_CA belong together; one of them is not set"
    )]
    HalfTls,
    /// Card numbers would leave the machine in clear.
    #[error(
        "{0}: {1} can be reached from other machines, and card numbers pass there: set CENTAVO_PEER_TLS_CERT, \
         CENTAVO_PEER_TLS_KEY and CENTAVO_PEER_TLS_CA, or choose a loopback address"
    )]
    Unencrypted(&'static str, String),
    /// Nobody can connect to all addresses of a machine.
    #[error(
        "CENTAVO_PEER_LISTEN is all addresses of the machine: set CENTAVO_PEER_ADDRESS, by which the others reach it"
    )]
    NoAddress,
    /// The address is not a host and a port.
    #[error("CENTAVO_PEER_ADDRESS: `{0}` is not a host and a port, such as node-1.internal:8082")]
    Address(String),
}

/// The settings as they are given.
#[derive(Debug, Default)]
pub struct GivenPeerSettings {
    /// Address of the listener: `CENTAVO_PEER_LISTEN`.
    pub listen: Option<SocketAddr>,
    /// Host and port by which others reach it: `CENTAVO_PEER_ADDRESS`.
    pub address: Option<String>,
    /// Certificate chain, PEM: `CENTAVO_PEER_TLS_CERT`.
    pub certificates: Option<PathBuf>,
    /// Private key, PEM: `CENTAVO_PEER_TLS_KEY`.
    pub key: Option<PathBuf>,
    /// Certificates of the authority, PEM: `CENTAVO_PEER_TLS_CA`.
    pub authority: Option<PathBuf>,
}

impl GivenPeerSettings {
    /// Checks the settings; `None` if there is no listener.
    pub fn checked(self, is_database: bool) -> Result<Option<PeerSettings>, PeerSettingsError> {
        let Self { listen, address, certificates, key, authority } = self;
        let Some(listen) = listen else {
            let given = [
                ("CENTAVO_PEER_ADDRESS", address.is_some()),
                ("CENTAVO_PEER_TLS_CERT", certificates.is_some()),
                ("CENTAVO_PEER_TLS_KEY", key.is_some()),
                ("CENTAVO_PEER_TLS_CA", authority.is_some()),
            ];
            let useless = given.into_iter().find_map(|(variable, is_given)| is_given.then_some(variable));
            return useless.map_or(Ok(None), |variable| Err(PeerSettingsError::NoListener(variable)));
        };
        if !is_database {
            return Err(PeerSettingsError::NoDatabase);
        }
        let tls = match (certificates, key, authority) {
            (Some(certificates), Some(key), Some(authority)) => {
                Some(PeerTlsFiles { own: TlsFiles { certificates, key }, authority })
            }
            (None, None, None) => None,
            _ => return Err(PeerSettingsError::HalfTls),
        };
        if tls.is_none() && !listen.ip().is_loopback() {
            return Err(PeerSettingsError::Unencrypted("CENTAVO_PEER_LISTEN", listen.to_string()));
        }
        let address = match address {
            Some(address) if host(&address).is_none() => return Err(PeerSettingsError::Address(address)),
            Some(address) => address,
            None if listen.ip().is_unspecified() => return Err(PeerSettingsError::NoAddress),
            None => listen.to_string(),
        };
        if tls.is_none() && !is_local(&address) {
            return Err(PeerSettingsError::Unencrypted("CENTAVO_PEER_ADDRESS", address));
        }
        Ok(Some(PeerSettings { listen, address, tls }))
    }
}

/// The host of an address; `None` if it is not a host and a port.
pub(super) fn host(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    (is_host && port.parse::<u16>().is_ok()).then(|| bare.unwrap_or(host))
}

/// True for an address that only this machine reaches.
fn is_local(address: &str) -> bool {
    host(address)
        .is_some_and(|host| host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(listen: Option<&str>, address: Option<&str>, tls: [bool; 3]) -> GivenPeerSettings {
        let [certificates, key, authority] = tls.map(|is_set| is_set.then(|| PathBuf::from("a.pem")));
        let listen = listen.map(|text| text.parse().unwrap());
        GivenPeerSettings { listen, address: address.map(str::to_owned), certificates, key, authority }
    }

    #[test]
    fn card_numbers_leave_the_machine_only_over_tls() {
        let (none, all) = ([false; 3], [true; 3]);
        let found = |listen, address, tls| {
            given(listen, address, tls)
                .checked(true)
                .map(|found| found.map(|found| (found.address, found.tls.is_some())))
        };
        let settings = |address: &str, tls| Ok(Some((address.to_owned(), tls)));
        use PeerSettingsError as E;
        let unencrypted = |variable, address: &str| Err(E::Unencrypted(variable, address.to_owned()));
        for (listen, address, tls, expected) in [
            (None, None, none, Ok(None)),
            (Some("127.0.0.1:9"), None, none, settings("127.0.0.1:9", false)),
            (Some("[::1]:9"), Some("localhost:9"), none, settings("localhost:9", false)),
            (Some("10.0.0.1:9"), None, none, unencrypted("CENTAVO_PEER_LISTEN", "10.0.0.1:9")),
            (Some("0.0.0.0:9"), Some("localhost:9"), none, unencrypted("CENTAVO_PEER_LISTEN", "0.0.0.0:9")),
            (Some("127.0.0.1:9"), Some("node-1:9"), none, unencrypted("CENTAVO_PEER_ADDRESS", "node-1:9")),
            (Some("10.0.0.1:9"), None, all, settings("10.0.0.1:9", true)),
            (Some("0.0.0.0:9"), None, all, Err(E::NoAddress)),
            (Some("0.0.0.0:9"), Some("node-1.internal:9"), all, settings("node-1.internal:9", true)),
            (Some("0.0.0.0:9"), Some("http://node-1"), all, Err(E::Address("http://node-1".to_owned()))),
            (Some("127.0.0.1:9"), None, [true, true, false], Err(E::HalfTls)),
            (None, Some("localhost:9"), none, Err(E::NoListener("CENTAVO_PEER_ADDRESS"))),
            (None, None, [false, false, true], Err(E::NoListener("CENTAVO_PEER_TLS_CA"))),
        ] {
            assert_eq!(found(listen, address, tls), expected, "{listen:?} {address:?} {tls:?}");
        }
        assert_eq!(given(Some("127.0.0.1:9"), None, none).checked(false), Err(E::NoDatabase));
    }
}
